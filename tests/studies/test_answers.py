"""Generators as classifiers: answers are matched to classes, and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.studies.answers import NO_CLASS, match_answers

TASK = "PocketFlagZeroShot"


@pytest.mark.parametrize(
    ("answer", "matched"),
    [
        ("Tiger shark.", 1),
        ("It is a TIGER", 0),
        ("a tiger shark, or a tiger", 1),
        ("tigers", NO_CLASS),
        ("", NO_CLASS),
        ("ice-cream cone", 2),
        ("The answer: ice cream cone!", 2),
    ],
)
def test_an_answer_is_the_class_that_it_names(answer: str, matched: int) -> None:
    assert match_answers([answer], ["tiger", "tiger shark", "ice cream cone"]).tolist() == [matched]


def test_a_generator_that_knows_one_class_is_right_on_it(tmp_path: Path) -> None:
    calls = []

    def write(items: list[Any], prompt: str) -> list[str]:
        calls.append(len(items))
        return ["It is the flag: Japan." if "Japan" in prompt else "no idea" for _ in items]

    model = embark.generator(write, modalities=("text", "image"), name="test/one-answer", revision="1")
    before = len(calls)
    study = embark.analyze.answers(model, TASK, show_progress=False)
    [part] = study.parts
    japan = [number for number, hit in enumerate(part.right) if hit]
    assert len(japan) == 1
    assert part.unmatched == 0
    assert len(part.texts) == len(part.right) > 100
    assert part.score.low <= 1 / len(part.right) <= part.score.high
    asked = len(calls)
    assert asked > before
    again = embark.analyze.answers(model, TASK, show_progress=False)
    assert len(calls) == asked  # what was written is stored
    np.testing.assert_array_equal(again.parts[0].predicted, part.predicted)
    study.plot(tmp_path / "answers.svg")
    assert "accuracy" in str(study)


def test_answers_need_classes_to_choose_from() -> None:
    model = embark.generator(lambda items, prompt: ["a"] * len(items), name="test/a", revision="1")
    with pytest.raises(embark.EmbarkError, match=r"Answers need zero-shot tasks; chosen were PocketNameSTS \(sts\)"):
        embark.analyze.answers(model, "PocketNameSTS")
