"""Items and ids as rows of arrays: they are what the same items and ids in memory would be."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from embark import items
from embark.items import ItemList, Items, as_items, digest, lazy_items, lazy_media, limits
from embark.items.lazy_items import (
    Chained,
    MediaItems,
    Mixed,
    Names,
    Numbered,
    Texts,
    distinct_numbers,
    id_array,
    text_array,
)
from embark.items.lazy_media import ParquetColumn
from embark.items.upright import UprightMedia, upright
from embark.readers import rows
from embark.types import Dataset, Groups, Item, Media, Side, Source, Text
from hub import FakeHub, client, parquet
from tables import Make

ID = "org/data"
words = st.lists(st.text(st.characters(), max_size=6), max_size=12)


def encoded(orientation: int | None) -> bytes:
    out = io.BytesIO()
    exif = Image.Exif()
    if orientation is not None:
        exif[0x0112] = orientation
    Image.new("RGB", (4, 6)).save(out, "JPEG", exif=exif)
    return out.getvalue()


def check(made: Sequence[Item], expected: Sequence[Item]) -> None:
    """The methods of a sequence tell of its items what a list of them would."""
    assert isinstance(made, Items)
    plain = ItemList(list(expected))
    assert list(made) == list(expected) == [made[row] for row in range(len(made))]
    assert made == expected
    assert pickle.loads(pickle.dumps(made)) == expected
    assert made.lengths().tolist() == plain.lengths().tolist()
    assert made.texts() == plain.texts()
    assert [digest(item.parts) for item in expected] == items.digests(made).tolist()
    names, numbers = made.kinds()
    assert [names[number] for number in numbers.tolist()] == [item.modalities for item in expected]
    assert names == plain.kinds().names
    assert made.nbytes >= 0
    for part in (slice(1, None, 2), slice(None, None, -1), slice(0, 0)):
        assert list(made[part]) == list(expected[part])


def check_taken(made: Items, expected: Sequence[Item]) -> None:
    check(made, expected)
    order = np.random.default_rng(0).permutation(np.arange(len(expected)).repeat(2))
    check(made.take(order), [expected[row] for row in order.tolist()])


@given(words)
def test_texts_with_lone_surrogates_too(some: list[str]) -> None:
    check_taken(Texts(text_array(some)), [items.text(text) for text in some])


def test_texts_are_strings_unless_they_have_lone_surrogates() -> None:
    assert text_array(["a", None]).type == pa.large_string()
    assert text_array(["a", "\ud800"]).type == pa.large_binary()
    both = lazy_items.chain([Texts(text_array(["a"])), Texts(text_array(["\ud800"]))])
    check_taken(both, [items.text("a"), items.text("\ud800")])


@settings(max_examples=30)
@given(words, st.data())
def test_several_sequences_and_mixed_ones(some: list[str], data: st.DataObject) -> None:
    texts = [items.text(text) for text in some]
    pictures = [items.media("image", text.encode("utf-8", "replace")) for text in some]
    chained = Chained([Texts(text_array(some)), ItemList(pictures), Texts(text_array(some))])
    check_taken(chained, [*texts, *pictures, *texts])
    if some:
        present = np.array([data.draw(st.tuples(st.booleans(), st.booleans())) for _ in some], bool)
        expected = [
            Item(tuple(part for item, has in zip(row, there, strict=True) if has for part in item.parts))
            for row, there in zip(zip(pictures, texts, strict=True), present.tolist(), strict=True)
        ]
        check_taken(Mixed([ItemList(pictures), Texts(text_array(some))], present), expected)
        without = np.array([[False, True]] * len(some))
        check_taken(Mixed([ItemList([Item(())] * len(some)), Texts(text_array(some))], without), texts)


@pytest.fixture
def pictures(hub: FakeHub) -> tuple[list[bytes], Callable[[], rows.Rows]]:
    """Encoded pictures, one of them turned, and the rows of a table with them, in row groups of 3."""
    content = [encoded(None), encoded(6), encoded(1), *(b"\xff\xd8picture %d" % number for number in range(7))]
    hub.add(ID, {"data/test-0.parquet": parquet({"image": content, "text": [f"t{n}" for n in range(10)]}, rows=3)})
    return content, lambda: rows.open_rows(Source(ID, hub.branches[ID, "main"]), "test", client())


def test_pictures_of_a_table(pictures: tuple[list[bytes], Callable[[], rows.Rows]]) -> None:
    content, opened = pictures
    made, present = opened().media_items("image", "image")
    assert present.all()
    stored = [Item((media,)) for media in opened().media("image", "image") if media]
    assert isinstance(made, MediaItems)
    check_taken(made, stored)
    assert items.digests(made).tolist() == [digest((Media("image", (data,)),)) for data in content]


def test_pictures_are_turned_as_they_would_be_in_memory(pictures: tuple[list[bytes], Callable[[], rows.Rows]]) -> None:
    content, opened = pictures
    made, _ = opened().media_items("image", "image")
    media = [Media("image", (data,)) for data in content]
    in_memory = [Item((UprightMedia("image", each.chunks, each),)) for each in media]
    labels = np.zeros(len(content), np.int64)
    sides = {"item": Side(Numbered(range(len(content))), Chained([made, Texts(text_array(["x"]))]))}
    turned = upright(Dataset(sides, Groups(labels, ("a",)))).sides["item"].items
    assert items.digests(turned).tolist() == [digest(item.parts) for item in [*in_memory, items.text("x")]]
    assert isinstance(turned[0].parts[0], UprightMedia)
    check(turned[3:], [turned[row] for row in range(3, 11)])


def test_hashes_are_computed_in_blocks_and_kept(
    pictures: tuple[list[bytes], Callable[[], rows.Rows]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embark.items.lazy_media.FILE_HASHES", 4)
    content, opened = pictures
    made, _ = opened().media_items("image", "image")
    expected = [digest((Media("image", (data,)),)) for data in content]
    assert items.digests(made.take(np.array([9, 0, 5]))).tolist() == [expected[9], expected[0], expected[5]]
    kept = sorted(path.name.rpartition("-")[2] for path in (client().home / "digests").glob("*.facts"))
    assert kept == ["0.facts", "1.facts", "2.facts"]
    monkeypatch.setattr(ParquetColumn, "read", None)
    monkeypatch.setattr(ParquetColumn, "read_in_order", None)
    assert items.digests(made).tolist() == expected


def test_media_are_hashed_by_several_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "cores", lambda: 2)
    both = threading.Barrier(2, timeout=30)

    def slow(number: int) -> bytes:
        if number % items.HASHED_MEDIA == 0:
            both.wait()  # for another thread
        return b"%d" % number

    count = 2 * items.HASHED_MEDIA
    made = [items.media("image", partial(slow, number)) for number in range(count)]
    expected = [digest((Media("image", (b"%d" % number,)),)) for number in range(count)]
    assert items.digests(made).tolist() == expected


def test_an_error_of_one_of_many_media_is_raised() -> None:
    made = [items.media("image", Path(f"no such file {number}")) for number in range(100)]
    with pytest.raises(FileNotFoundError, match="no such file 0"):
        items.digests(made)


def test_what_readers_made_of_objects_takes_less_memory(
    pictures: tuple[list[bytes], Callable[[], rows.Rows]],
) -> None:
    _, opened = pictures
    media = [media for media in opened().media("image", "image") if media]
    made: list[Item] = [
        *(items.text(f"text {number}") for number in range(50)),
        *(Item((picture, Text("caption"))) for picture in media),
        *(Item((picture,)) for picture in media),
        items.media("image", b"in memory"),
        Item(()),
    ]
    order = np.random.default_rng(1).permutation(len(made)).tolist()
    shuffled = [made[row] for row in order]
    small = lazy_items.compact(shuffled)
    assert isinstance(small, Chained)
    check(small, shuffled)
    assert small.nbytes < as_items(shuffled).nbytes
    files = [items.media("image", Path(f"{number}.png")) for number in range(3)]
    assert lazy_items.compact(files) is files


def test_readers_return_rows_of_arrays(read: Make) -> None:
    table = {"image": [encoded(None), encoded(6)], "text": ["a", "b"], "label": [0, 1]}
    labelled = {"columns": {"image": "image"}, "labels": ("x", "y")}
    items_of = {
        "pictures": read("labelled", "clustering", {"data/test-0.parquet": table}, **labelled).sides["item"],
        "both": read(
            "labelled", "clustering", {"data/test-0.parquet": table}, columns={"image": "image", "text": "text"},
            labels=("x", "y"), mixed=True,
        ).sides["item"],
        "texts": read(
            "paired", "retrieval", {"data/test-0.parquet": table}, columns={"image": "image", "text": "text"}
        ).sides["query"],
        "prompts": read("labelled", "zeroshot", {"data/test-0.parquet": table}, **labelled).sides["prompt"],
    }  # fmt: skip
    kinds = {name: type(side.items) for name, side in items_of.items()}
    assert kinds == {"pictures": MediaItems, "both": Mixed, "texts": Texts, "prompts": Texts}
    assert all(isinstance(side.ids, lazy_items.Ids) for side in items_of.values())
    for side in items_of.values():
        check(side.items, list(side.items))


@given(st.lists(st.integers(0, 50), max_size=12), words)
def test_ids(numbers: list[int], names: list[str]) -> None:
    cases: list[tuple[lazy_items.Ids, list[str]]] = [
        (Numbered(numbers, "test-"), [f"test-{number}" for number in numbers]),
        (Numbered(range(len(numbers))), [str(number) for number in range(len(numbers))]),
        (Names(text_array(names)), names),
    ]
    for ids, expected in cases:
        assert list(ids) == expected == [ids[row] for row in range(len(ids))]
        assert ids == tuple(expected)
        assert tuple(expected) == ids
        assert ids != [*expected, "more"]
        assert list(ids[::-1]) == expected[::-1]
        assert lazy_items.distinct_ids(ids) == lazy_items.distinct_ids(expected) == len(set(expected))
        assert pickle.loads(pickle.dumps(ids)) == expected


@pytest.mark.parametrize("kind", ["dictionary", "plain"])
def test_small_texts_of_large_row_groups_are_decoded_many_at_a_time(kind: str, tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(30_000)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": texts}), path, use_dictionary=kind == "dictionary", row_group_size=30_000)
    batches = list(lazy_media.parquet_batches(str(path), ["text"]))
    assert len(batches) < 120
    assert [text for batch in batches for text in batch.column(0).to_pylist()] == texts


def test_large_values_of_a_dictionary_are_decoded_few_at_a_time(tmp_path: Path) -> None:
    value = pa.array(["a" * 9_000_000])
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * 100), value)}), path)
    [leaf] = [lazy_media.parquet_metadata(str(path)).row_group(0).column(0)]
    assert 9_000_000 <= lazy_media._dictionary_bytes(str(path), leaf) < 9_000_100
    dictionary = lazy_media._dictionary_bytes(str(path), leaf)
    rows = limits.UNPACKED // lazy_media.BATCHES // dictionary
    assert lazy_media._batch_rows(str(path), ("text",), 1 << 40) == rows


def test_the_size_of_a_dataset_is_about_that_of_its_content() -> None:
    count = 10_000
    text = "a text of some words"
    small = Side(Numbered(range(count)), Texts(text_array([text] * count)))
    large = Side([str(number) for number in range(count)], [items.text(text) for _ in range(count)])
    labels = np.zeros(count, np.int64)
    sizes = [items.size_of(Dataset({"item": side}, Groups(labels, ("a",)))) for side in (small, large)]
    content = count * (len(text) + 8 + 8 + 8)  # texts, offsets, numbers, labels
    assert content <= sizes[0] < 1.1 * content
    assert 5 * content < sizes[1] < 20 * content


def test_a_million_texts_take_few_bytes_each_and_are_planned_without_objects() -> None:
    """Counted by objects, not by seconds: no item is made while keys are computed."""
    texts = Texts(text_array(f"text {number}" for number in range(20_000)))
    made: list[int] = []

    class Counting(Texts):
        def item(self, row: int) -> Item:
            made.append(row)
            return super().item(row)

        def __iter__(self) -> Any:
            made.append(-1)
            return super().__iter__()

    counted = Counting(texts.array)
    assert items.plain_keys("space", counted).tolist() == items.plain_keys("space", list(texts)).tolist()
    assert (len(counted.lengths()), counted.kinds().names, made) == (20_000, (("text",),), [])
    assert counted.nbytes < 20_000 * (10 + 10)


@given(st.lists(st.integers(-5, 20), max_size=12))
def test_distinct_numbers_are_those_of_numpy(values: list[int]) -> None:
    for kind in (np.int64, np.uint64):
        numbers = np.array(values, np.int64).astype(kind)
        np.testing.assert_array_equal(distinct_numbers(numbers), np.unique(numbers))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=12))
def test_ids_become_an_array_of_strings(names: list[str]) -> None:
    numbered = [f"a{number}" for number in range(-2, len(names))]
    for ids, expected in (
        (Names(text_array(names)), names),
        (tuple(names), names),
        (Numbered(range(-2, len(names)), "a"), numbered),
    ):
        array = id_array(ids)
        assert array.to_pylist() == expected
        assert array.type == pa.string()


def test_ids_with_lone_surrogates_are_spelled_out() -> None:
    names = ["a", "b\udcff", "ü"]
    for ids in (Names(text_array(names)), tuple(names)):
        assert id_array(ids).to_pylist() == ["a", "b\\udcff", "ü"]
