"""Items hash by content: what a model would see differently must never share a key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embark import items
from embark.items.lazy_items import Chained
from embark.types import Item, Media, Part, Rendered, Text

texts = st.text(st.characters(), max_size=8).map(Text)  # surrogates too: captions in the wild have them
chunks = st.lists(st.binary(max_size=4), min_size=1, max_size=3).map(tuple)
media = st.builds(Media, st.sampled_from(["image", "audio", "video"]), chunks)
parts = st.lists(texts | media, min_size=1, max_size=3).map(tuple)


@given(parts, parts)
def test_equal_content_and_only_that_shares_a_digest(a: tuple[Part, ...], b: tuple[Part, ...]) -> None:
    assert (items.digest(a) == items.digest(b)) == (a == b)


@given(parts, st.text("ab", max_size=2), st.text("ab", max_size=2))
def test_the_mode_and_the_space_are_part_of_the_key(some: tuple[Part, ...], mode: str, space: str) -> None:
    plain = items.key("", Rendered(some))
    assert (items.key(space, Rendered(some, mode)) == plain) == (not mode and not space)


def test_the_order_of_parts_matters() -> None:
    a, b = items.text("a"), items.text("b")
    assert items.digest(items.mixed(a, b).parts) != items.digest(items.mixed(b, a).parts)


def test_two_texts_are_not_their_concatenation() -> None:
    assert items.digest(items.mixed(items.text("a"), items.text("b")).parts) != items.digest(items.text("ab").parts)


def test_text_is_not_media_of_the_same_bytes() -> None:
    same = [items.text("a"), items.media("image", b"a"), items.media("audio", b"a"), items.media("video", b"a")]
    assert len({items.digest(item.parts) for item in same}) == 4


def test_frames_are_not_one_file_of_their_bytes() -> None:
    a, b = items.media("video", b"ab", b"c"), items.media("video", b"a", b"bc")
    assert items.digest(a.parts) != items.digest(b.parts)


def test_lone_surrogates_hash_and_differ() -> None:
    assert items.digest(items.text("\ud800").parts) != items.digest(items.text("\ud801").parts)


def test_files_and_functions_are_read_when_needed_and_hash_as_their_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    item = items.media("image", file)
    file.write_bytes(b"later")
    expected = items.digest(items.media("image", b"later").parts)
    assert items.digest(item.parts) == items.digest(items.media("image", lambda: b"later").parts) == expected


def test_modalities_are_listed_once_in_order() -> None:
    mixed = items.mixed(items.media("image", b""), items.text("a"), items.media("image", b"1"))
    assert mixed.modalities == ("image", "text")
    assert Item(()).modalities == ()


def test_keys_become_one_array() -> None:
    keys = [items.key("space", Rendered(items.text(word).parts)) for word in "abc"]
    array = items.as_keys(keys)
    assert array.dtype == items.KEY
    assert [bytes(key) for key in array] == keys
    assert len(np.unique(array)) == 3


@given(st.lists(parts, min_size=1, max_size=6), st.data())
def test_numbers_of_contents_are_those_of_the_items_also_after_a_take(
    contents: list[tuple[Part, ...]], data: st.DataObject
) -> None:
    def numbers(sequence: items.Items) -> list[int]:
        return [int.from_bytes(items.digest(item.parts)[:8], "big", signed=True) for item in sequence]

    rows = np.array(data.draw(st.permutations(range(len(contents)))))
    sequence = items.as_items([Item(some) for some in contents])
    everything = np.arange(len(contents))
    assert items.content_numbers(sequence, everything).tolist() == numbers(sequence)
    items.plain_keys("", sequence)  # which remembers them
    assert items.content_numbers(sequence, rows).tolist() == np.array(numbers(sequence))[rows].tolist()
    for other in (sequence.take(rows), Chained([sequence], rows), Chained([sequence]).take(rows)):
        assert items.content_numbers(other, everything).tolist() == numbers(other)
    chained = Chained([sequence])
    items.plain_keys("", chained)
    assert items.content_numbers(chained.take(rows), everything).tolist() == numbers(chained.take(rows))
