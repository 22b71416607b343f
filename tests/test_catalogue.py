"""Names: found exactly, by pattern and by property, and missed with a suggestion."""

from __future__ import annotations

import pytest

from embark.catalogue import Catalogue, UnknownName, check_name, group_values, match_words
from embark.types import EmbarkError

NAMES = ("FlagZeroShot", "ClockReading", "ClockArithmetic", "Counting(lite)")


@pytest.fixture
def names() -> Catalogue[str]:
    return Catalogue("task", NAMES, str, "Ask for a list.")


def test_it_is_a_mapping_in_the_order_of_its_rows(names: Catalogue[str]) -> None:
    assert list(names) == list(NAMES)
    assert len(names) == 4
    assert names["ClockReading"] == "ClockReading"
    assert "ClockReading" in names
    assert "clockreading" not in names
    assert names.get("Nothing") is None


def test_two_rows_of_one_name_are_an_error() -> None:
    with pytest.raises(EmbarkError, match="Two rows of the task catalogue are named 'A'"):
        Catalogue("task", ["A", "B", "A"], str)


def test_an_unknown_name_is_an_error_with_the_nearest_names_and_the_hint(names: Catalogue[str]) -> None:
    with pytest.raises(UnknownName) as error:
        names["flagzeroshoot"]
    assert str(error.value) == "There is no task named 'flagzeroshoot'. Did you mean FlagZeroShot? Ask for a list."
    assert isinstance(error.value, KeyError)


def test_a_part_of_a_name_is_near_enough(names: Catalogue[str]) -> None:
    with pytest.raises(UnknownName, match="Did you mean ClockReading or ClockArithmetic"):
        names["clock"]


def test_nothing_near_suggests_nothing(names: Catalogue[str]) -> None:
    with pytest.raises(UnknownName) as error:
        names["xyz"]
    assert "Did you mean" not in str(error.value)


def test_patterns_are_matched_in_their_order_each_value_once(names: Catalogue[str]) -> None:
    assert names.match(["Clock*"]) == ["ClockReading", "ClockArithmetic"]
    assert names.match(["*Arithmetic", "Clock*"]) == ["ClockArithmetic", "ClockReading"]
    assert names.match("*Arithmetic") == ["ClockArithmetic"]
    assert names.match([]) == []


def test_an_exact_name_is_no_pattern() -> None:
    assert Catalogue("task", ["A[bc]", "Ab", "Ac"], str).match(["A[bc]"]) == ["A[bc]"]
    assert Catalogue("task", ["Ab", "Ac"], str).match(["A[bc]"]) == ["Ab", "Ac"]


def test_a_pattern_without_a_match_is_an_error_even_beside_one_that_has(names: Catalogue[str]) -> None:
    with pytest.raises(UnknownName, match="no task named 'Speech\\*'"):
        names.match(["Clock*", "Speech*"])


def test_words_match_patterns() -> None:
    words = ["image", "text", "image", "video"]
    assert match_words("modality", words, None) is None
    assert match_words("modality", words, []) == set()
    assert match_words("modality", words, "image") == {"image"}
    assert match_words("modality", words, ["i*", "video"]) == {"image", "video"}
    with pytest.raises(
        UnknownName, match=r"no modality named 'images'. Did you mean image\? There are image, text, video\."
    ):
        match_words("modality", words, "images")


def test_a_name_is_checked() -> None:
    check_name("format", "csv", {"csv": 1, "json": 2})
    with pytest.raises(UnknownName, match=r"no format named 'cvs'. Did you mean csv\?"):
        check_name("format", "cvs", ("csv", "json"))
    with pytest.raises(UnknownName, match=r"no format named 'x'\. See the list\."):
        check_name("format", "x", ("csv", "json"), "See the list.")


def test_values_are_grouped_in_order() -> None:
    assert group_values([("b", 1), ("a", 2), ("b", 1)]) == {"b": [1, 1], "a": [2]}
    assert list(group_values([("b", 1), ("a", 2)])) == ["b", "a"]
