"""Grades, scores and labels that are no numbers are errors that name the row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from embark.items.consistency import problems
from embark.types import Classes, Dataset, EmbarkError, Gold, Groups, Qrels, Side, Truth
from tables import Make

nan, inf = float("nan"), float("inf")


def beir(read: Make, grades: list[Any]) -> Dataset:
    names = [f"d{number}" for number in range(len(grades))]
    files = {
        "corpus/test-0.parquet": {"id": names, "text": names},
        "query/test-0.parquet": {"id": ["q"], "text": ["q"]},
        "default/test-0.parquet": {"query-id": ["q"] * len(names), "corpus-id": names, "score": grades},
    }
    return read("beir", "retrieval", files, card="", modalities=("text",))


@pytest.mark.parametrize("grade", [nan, inf, -inf])
def test_a_grade_that_is_no_finite_number_names_its_row(read: Make, grade: float) -> None:
    with pytest.raises(EmbarkError, match=rf"'score' is {grade} in row 1 of qrels, not a finite number"):
        beir(read, [1.0, grade, 0.0])
    assert beir(read, [1.0, 2.0, 0.5]).truth.grade.tolist() == [1.0, 2.0, 0.5]  # type: ignore[union-attr]


def test_a_grade_that_is_a_word_names_its_row(read: Make) -> None:
    with pytest.raises(EmbarkError, match="'score' is 'high' in row 2 of qrels"):
        beir(read, ["1", "2", "high"])


@pytest.mark.parametrize("score", [nan, inf])
def test_a_gold_score_that_is_no_finite_number_names_its_row(read: Make, score: float) -> None:
    table = {"a": ["x", "y"], "b": ["x", "y"], "score": [1.0, score]}
    with pytest.raises(EmbarkError, match=rf"'score' is {score} in row 1 of test"):
        read(
            "rendered-sts", "sts", {"data/test-0.parquet": table}, modalities=("text",),
            columns={"left": "a", "right": "b"},
        )  # fmt: skip


@pytest.mark.parametrize("label", [nan, inf, 1.5, -1.0, 1e30])
def test_a_label_that_is_no_class_is_an_error(read: Make, label: float) -> None:
    table = {"text": ["a", "b", "c"], "label": [0.0, 1.0, label]}
    with pytest.raises(EmbarkError, match="has labels outside its 2 classes"):
        read("labelled", "clustering", {"data/test-0.parquet": table}, modalities=("text",), columns={"text": "text"})


def positions(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


SIDE = Side(("a", "b"), ("a", "b"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("truth", "problem"),
    [
        (Qrels(positions(0, 1), positions(0, 1), np.array([1.0, nan])), "'grade' is nan in row 1"),
        (Gold(positions(0, 1), positions(0, 1), np.array([inf, 1.0])), "'score' is inf in row 0"),
        (Groups(positions(0, 2), ("x", "y")), "'label' is 2 in row 1, and there are 2 classes"),
        (Groups(np.zeros((2, 3), bool), ("x", "y")), "'label' has other than 2 classes"),
        (Classes(positions(0, 1), positions(0, 5), ("x", "y")), "'prompt' is 5 in row 1, and there are 2 classes"),
        (Classes(np.array([0.0, nan]), positions(0, 1), ("x", "y")), "'label' is nan in row 1"),
    ],
)
def test_whatever_reader_made_it_a_truth_is_checked(truth: Truth, problem: str) -> None:
    sides = dict.fromkeys(("query", "document", "left", "right", "item", "prompt"), SIDE)
    assert list(problems(Dataset(sides, truth))) == [problem]
