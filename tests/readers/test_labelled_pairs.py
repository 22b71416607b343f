"""Pairs with a label: a row for each, or lists of them as mteb has, of one modality or two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from embark.types import Dataset, EmbarkError, Gold
from hub import png

MTEB = {"left": "sentence1", "right": "sentence2", "label": "labels"}
SENTENCES = {
    "sentence1": ["a cat asleep", "a dog", "a bird"],
    "sentence2": ["a sleeping cat", "a car", "a bird sings"],
    "labels": [1, 0, 1],
}


def texts(data: Dataset, side: str) -> list[str]:
    return [getattr(part, "text", part.kind) for item in data.sides[side].items for part in item.parts]


def labels(data: Dataset) -> list[float]:
    assert isinstance(data.truth, Gold)
    assert data.truth.left.tolist() == data.truth.right.tolist() == list(range(len(data.sides["left"])))
    return [float(value) for value in np.asarray(data.truth.score)]


@pytest.mark.parametrize("layout", ["rows", "one row", "two rows"])
def test_pairs_are_rows_or_places_in_lists(read: Any, layout: str) -> None:
    held: dict[str, Any] = SENTENCES
    if layout == "one row":
        held = {column: [values] for column, values in SENTENCES.items()}
    elif layout == "two rows":
        held = {column: [values[:1], values[1:]] for column, values in SENTENCES.items()}
    files = {"data/test-0.parquet": held}
    data = read("labelled-pairs", "pair-classification", files, columns=MTEB, modalities=("text",))
    assert texts(data, "left") == SENTENCES["sentence1"]
    assert texts(data, "right") == SENTENCES["sentence2"]
    assert labels(data) == [1, 0, 1]


def test_lists_of_different_lengths_are_an_error_that_names_the_row(read: Any) -> None:
    held = {column: [values[: 2 + (column == "labels")]] for column, values in SENTENCES.items()}
    with pytest.raises(EmbarkError, match=r"row 0 of test has lists of different lengths .*labels \(2, 3\)"):
        read("labelled-pairs", "pair-classification", {"data/test-0.parquet": held}, columns=MTEB, modalities=("text",))


@pytest.mark.parametrize("left", ["image", "text"])
def test_a_picture_and_a_text_match_or_not(read: Any, left: str) -> None:
    sides = {"image": "picture", "text": "caption"}
    right = "text" if left == "image" else "image"
    pictures = [{"bytes": png("red")}, {"bytes": png("blue")}]
    held = {"picture": pictures, "caption": ["red", "green"], "fits": [True, False]}
    data = read(
        "labelled-pairs", "pair-classification", {"data/test-0.parquet": held},
        columns={"left": sides[left], "right": sides[right], "label": "fits"}, options={"left": left},
    )  # fmt: skip
    assert [item.modalities for item in data.sides["left"].items] == [(left,)] * 2
    assert [item.modalities for item in data.sides["right"].items] == [(right,)] * 2
    assert labels(data) == [1, 0]


def test_pairs_that_lack_an_item_or_a_label_are_left_out_and_counted(read: Any) -> None:
    rows = b"sentence1,sentence2,labels\na,b,1\n,b,1\na,,0\na,b,\nc,d,0\n"
    row: dict[str, Any] = {"columns": MTEB, "modalities": ("text",), "unreadable": "skip"}
    data = read("labelled-pairs", "pair-classification", {"test.csv": rows}, **row)
    assert (texts(data, "left"), texts(data, "right"), labels(data)) == (["a", "c"], ["b", "d"], [1, 0])
    assert [warning.partition(" rows")[0] for warning in data.skipped] == [
        "left out 1 of 5", "left out 1 of 4", "left out 1 of 3",
    ]  # fmt: skip
    lists = {"sentence1": [["a", None]], "sentence2": [["b", "c"]], "labels": [[1, 0]]}
    data = read("labelled-pairs", "pair-classification", {"data/test-0.parquet": lists}, **row)
    assert data.skipped == ("left out 1 of 2 rows of test that have no text: row 1",)


@pytest.mark.parametrize(
    ("modalities", "options"), [(("image", "text"), {"left": "audio"}), (("image", "text", "audio"), {})]
)
def test_modalities_that_leave_a_doubt_are_an_error(read: Any, modalities: tuple[str, ...], options: Any) -> None:
    with pytest.raises(EmbarkError, match="pairs have one modality or two, and the option 'left' names one of them"):
        read(
            "labelled-pairs", "pair-classification", {"data/test-0.parquet": SENTENCES},
            columns=MTEB, modalities=modalities, options=options,
        )  # fmt: skip
