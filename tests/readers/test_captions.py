"""Readers of captions and of scored pairs, on small datasets of MIEB's shapes: good values and bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from embark.types import (
    EmbarkError,
    Gold,
    Matches,
)
from tables import IMAGES, Make, colours, texts

# ── captions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("images", [IMAGES[:2], [[IMAGES[0]], [IMAGES[1]]]], ids=["single", "lists"])
def test_one_image_and_several_captions(read: Make, images: list[Any]) -> None:
    held = {"images": images, "right": ["a", "b"], "wrong": ["c", "d"]}
    data = read(
        "captions", "pairs", {"data/test-0.parquet": held}, columns={"images": "images", "texts": "right,wrong"}
    )
    assert isinstance(data.truth, Matches)
    assert data.truth.image.tolist() == [[0], [1]]
    assert data.truth.text.tolist() == [[0, 1], [2, 3]]
    assert texts(data.sides["text"].items) == ["a", "c", "b", "d"]
    assert colours(data.sides["image"].items) == ["red", "green"]


def test_two_images_and_two_captions_in_columns_or_lists(read: Make) -> None:
    held = {"image_0": IMAGES[:2], "image_1": IMAGES[2:4], "caption_0": ["a", "b"], "caption_1": ["c", "d"]}
    columns = {"images": "image_0, image_1", "texts": "caption_0, caption_1"}
    apart = read("captions", "pairs", {"data/test-0.parquet": held}, columns=columns)
    listed = {"i": [[IMAGES[0], IMAGES[2]], [IMAGES[1], IMAGES[3]]], "t": [["a", "c"], ["b", "d"]]}
    together = read("captions", "pairs", {"data/test-0.parquet": listed}, columns={"images": "i", "texts": "t"})
    for data in (apart, together):
        assert isinstance(data.truth, Matches)
        assert colours(data.sides["image"].items) == ["red", "blue", "green", "yellow"]
        assert texts(data.sides["text"].items) == ["a", "c", "b", "d"]
        assert data.truth.image.tolist() == data.truth.text.tolist() == [[0, 1], [2, 3]]


def test_a_split_may_be_stored_under_another_name(read: Make) -> None:
    held = {"images": IMAGES[:2], "t": ["a", "b"]}
    data = read("captions", "pairs", {"data/train-0.parquet": held}, columns={"images": "images", "texts": "t"},
                options={"splits": {"test": "train"}}, rows={"test": 2})  # fmt: skip
    assert len(data.sides["image"]) == 2
    with pytest.raises(EmbarkError, match=r"has 2 rows at revision .*, expected 3"):
        read("captions", "pairs", {"data/train-0.parquet": held}, columns={"images": "images", "texts": "t"},
             options={"splits": {"test": "train"}}, rows={"train": 3})  # fmt: skip


def test_samples_with_holes_or_of_other_sizes(read: Make) -> None:
    held = {"images": [IMAGES[0], None], "t": [["a", "b"], ["c", "d"]]}
    columns = {"images": "images", "texts": "t"}
    with pytest.raises(EmbarkError, match="1 of 2 rows of test have no images or t: row 1"):
        read("captions", "pairs", {"data/test-0.parquet": held}, columns=columns)
    data = read("captions", "pairs", {"data/test-0.parquet": held}, columns=columns, unreadable="skip")
    assert (len(data.sides["image"]), len(data.sides["text"])) == (1, 2)
    with pytest.raises(EmbarkError, match="row 1 of test has 1 texts where the first has 2"):
        read(
            "captions",
            "pairs",
            {"data/test-0.parquet": {"images": IMAGES[:2], "t": [["a", "b"], ["c"]]}},
            columns=columns,
        )


# ── similarity ───────────────────────────────────────────────────────────────────────────────────────────────────────

STS = {"left": "sentence1", "right": "sentence2", "score": "score"}


def test_pairs_with_a_score(read: Make) -> None:
    held = {"sentence1": IMAGES[:3], "sentence2": IMAGES[3:6], "score": [5.0, 2.5, 0.0]}
    data = read("rendered-sts", "sts", {"en-de/test-0.parquet": held}, subset="en-de", columns=STS)
    assert isinstance(data.truth, Gold)
    assert data.truth.score.tolist() == [5.0, 2.5, 0.0]
    assert colours(data.sides["left"].items) == ["red", "green", "blue"]
    assert colours(data.sides["right"].items) == ["yellow", "white", "black"]


def test_a_pair_with_a_hole_goes_as_a_whole(read: Make) -> None:
    held = {"sentence1": [IMAGES[0], None, IMAGES[2]], "sentence2": [*IMAGES[3:5], None], "score": [1.0, 2.0, 3.0]}
    data = read("rendered-sts", "sts", {"data/test-0.parquet": held}, columns=STS, unreadable="skip")
    assert data.sides["left"].ids == data.sides["right"].ids == ("0",)
    assert len(data.skipped) == 2


def test_a_score_must_be_a_number(read: Make) -> None:
    held = {"sentence1": IMAGES[:2], "sentence2": IMAGES[2:4], "score": [1.0, float("nan")]}
    with pytest.raises(EmbarkError, match="'score' is nan in row 1 of test, not a finite number"):
        read("rendered-sts", "sts", {"data/test-0.parquet": held}, columns=STS)
