"""Pictures with an EXIF orientation: turned where the row says so, and only those get another key."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image, ImageOps

import embark
from embark import items
from embark.items import decoding, lazy_media, upright
from embark.items.upright import UprightMedia
from embark.protocol import fingerprint_of
from embark.tasks import TASKS
from embark.types import Dataset, Item, Media, Qrels, Rendered, Side
from folders import two_tasks
from hub import FakeHub
from tables import Make

PICTURE = Image.fromarray(np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3) * 3)


def encoded(orientation: int | None, form: str = "PNG", mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    PICTURE.convert(mode).save(out, form, exif=exif, **({"lossless": True} if form == "WEBP" else {}))
    return out.getvalue()


def turned(data: bytes) -> Media:
    return UprightMedia("image", (data,), Media("image", (data,)))


def key(part: Media) -> bytes:
    return items.key("space", Rendered((part,)))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", [None, *range(10)])
def test_pixels_are_those_of_the_datasets_library(form: str, orientation: int | None) -> None:
    """`datasets` loads a picture and, where it states an orientation, calls Pillow's exif_transpose."""
    data = encoded(orientation, form)
    plain = Image.open(io.BytesIO(data))
    plain.load()
    stated = plain.getexif().get(0x0112)
    expected = ImageOps.exif_transpose(plain) if stated is not None else plain
    [content] = decoding.decode([turned(data)], 8, 16_000)
    assert np.array_equal(np.asarray(content.value), np.asarray(expected.convert("RGB")))
    [stored] = decoding.decode([Media("image", (data,))], 8, 16_000)
    assert np.array_equal(np.asarray(stored.value), np.asarray(plain.convert("RGB")))
    same = np.array_equal(np.asarray(content.value), np.asarray(stored.value))
    assert (key(turned(data)) == key(Media("image", (data,)))) == same  # only other pixels are another key


def test_transparency_turns_too() -> None:
    [content] = decoding.decode([turned(encoded(6, mode="RGBA"))], 8, 16_000)
    assert (content.value.mode, content.value.size) == ("RGBA", (4, 6))


def test_the_key_of_a_picture_that_does_not_turn_is_that_of_its_bytes() -> None:
    """It is the same on every machine."""
    assert key(turned(b"picture")) == key(Media("image", (b"picture",)))
    assert key(Media("image", (b"picture",))).hex().startswith("0b66fec4dfd9b8be")


def test_damaged_exif_data_turn_nothing() -> None:
    data = encoded(6, "JPEG")
    place = data.index(b"Exif")
    damaged = data[: place + 8] + b"\xff" * 12 + data[place + 20 :]
    assert upright.orientation(damaged) == 1
    decoding.decode([turned(damaged)], 8, 16_000)


@given(st.integers(0, 700), st.binary(max_size=3), st.sampled_from([None, 1, 3, 6]))
@example(465, b"\xd9", 3)  # a length that reaches behind the end
def test_only_what_is_before_a_jpegs_pixels_can_tell(place: int, spoilt: bytes, orientation: int | None) -> None:
    """Whatever is broken in a JPEG, Pillow finds no orientation that the quick look at its segments misses."""
    data = encoded(orientation, "JPEG")
    data = data[:place] + spoilt + data[place + len(spoilt) :]
    for content in (data, data + b"Exif Orientation" * 3):  # the longer one completes a segment that was too short
        try:
            with Image.open(io.BytesIO(content)) as image:
                stated = image.getexif().get(0x0112, 1)
        except Exception:  # whatever it says about damage
            stated = 1
        expected = stated if content.startswith(upright.JPEG) and stated in upright.TURNS else 1
        assert upright.orientation(content) == expected


def test_only_pictures_turn_and_shared_parts_stay_shared() -> None:
    picture, film = Media("image", (encoded(6),)), Media("video", (encoded(6), encoded(1)))
    side = Side(("a", "b", "c"), (Item((picture,)), items.mixed(Item((picture,)), items.text("x")), Item((film,))))
    empty = np.zeros(0, np.int64)
    first = upright.upright(Dataset({"query": side}, Qrels(empty, empty, empty)))
    a, b, c = first.sides["query"].items
    assert a.parts[0] is b.parts[0]
    assert isinstance(a.parts[0], UprightMedia)
    assert (b.parts[1], c.parts[0]) == (items.text("x").parts[0], film)
    assert upright.upright(first).sides["query"].items[0].parts[0] is a.parts[0]


def test_orientations_of_stored_pictures_are_kept_with_their_hashes(
    read: Make, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass over a file finds both; a second run reads no picture. Hashes that were kept before stay in use."""
    pictures = [encoded(1), encoded(6), encoded(None)]
    files = {"data/test-0.parquet": {"image": pictures, "text": ["a", "b", "c"]}}
    columns = {"image": "image", "text": "text"}

    def keys(**more: Any) -> list[bytes]:
        data = read("paired", "retrieval", files, columns=columns, **more)
        return [items.key("", Rendered(item.parts)) for item in data.sides["document"].items]

    def forget() -> None:
        lazy_media._facts.cache_clear()

    before = keys()
    after = keys(upright=True)
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]
    forget()
    with monkeypatch.context() as patch:
        patch.setattr(lazy_media.ParquetColumn, "read", None)
        patch.setattr(lazy_media.ParquetColumn, "read_in_order", None)
        assert keys(upright=True) == after


def test_families_turn_pictures_as_their_own_loaders_do() -> None:
    by_family: dict[str, set[bool]] = {}
    for task in TASKS.values():
        by_family.setdefault(task.family, set()).add(task.upright)
    turned = {"MIEB", "UniBench", "ARK"}  # MTEB's rows have no pictures
    assert by_family == {family: {family in turned} for family in (*turned, "MMEB-V3", "MTEB", "Pocket")}


def test_it_is_part_of_the_protocol_where_there_are_pictures() -> None:
    row = TASKS["MNIST"]
    assert fingerprint_of(row, "test", "default") != fingerprint_of(replace(row, upright=False), "test", "default")
    words = TASKS["WebQAT2TRetrieval"]
    assert fingerprint_of(words, "test", "default") == fingerprint_of(replace(words, upright=False), "test", "default")


def test_own_pictures_are_upright_and_the_row_says_so(pictures: Callable[..., Path]) -> None:
    folder = pictures()
    tasks = two_tasks(folder)
    assert all(task.upright for task in tasks)
    assert "turned as their EXIF orientation says" in str(embark.show("MNIST"))
    assert "EXIF" not in str(embark.show("PocketFlagZeroShot"))
