"""Class by class: the counts by hand, and outcomes that name classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import embark
from embark.studies.confusion import Confusion, classified
from embark.tables.terminal import print_table
from embark.types import EmbarkError

LABEL = np.array(["cat", "cat", "cat", "dog", "dog", "owl"])


def test_classes_by_hand(tmp_path: Path) -> None:
    part = classified("m", "T", LABEL, np.array([["cat", "dog", "dog", "dog", "cat", "owl"]]))
    assert part.classes == ("cat", "dog", "owl")
    assert part.counts.tolist() == [[1, 2, 0], [1, 1, 0], [0, 0, 1]]
    study = Confusion((part,))
    rows = study.to_frame().set_index("class")
    assert rows.index.tolist() == ["cat", "dog", "owl"]  # the lowest recall first
    assert rows["recall"].tolist() == pytest.approx([1 / 3, 1 / 2, 1])
    assert rows["precision"].tolist() == pytest.approx([1 / 2, 1 / 3, 1])
    assert rows["F1"].tolist() == pytest.approx([0.4, 0.4, 1])
    assert rows["most often taken for"].tolist() == ["dog", "cat", ""]
    study.plot(tmp_path / "confusion.svg")
    assert "owl" in (tmp_path / "confusion.svg").read_text()
    cells = Confusion((part,), matrix=True).to_frame()
    assert cells[["class", "taken for", "items"]].values.tolist()[:2] == [["cat", "cat", 1.0], ["cat", "dog", 2.0]]


def test_long_names_are_wrapped_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    names = np.array([f"a class with a long name, number {number}" for number in (1, 22)])
    part = classified("m", "T", names, names[::-1][None])
    print_table(Confusion((part,)).table(), 80, limited=True)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    head, section, *rows = lines[1:-1]  # the head has two lines
    assert (head.split()[0], section) == ("class", "— m · T")
    words = [row[: head.index("items") - 2].strip() for row in rows]
    assert " ".join(filter(None, words)) == f"{names[0]} {names[1]}"


def test_runs_of_a_probe_count_with_their_mean() -> None:
    part = classified("m", "T", LABEL, np.array([LABEL, ["dog", "cat", "cat", "dog", "dog", "owl"]]))
    assert part.counts[0].tolist() == [2.5, 0.5, 0]
    assert next(part.scores()).recall.value == pytest.approx(2.5 / 3)
    assert "means over their runs" in str(Confusion((part,)))


def test_outcomes_name_classes() -> None:
    run = embark.evaluate("embark/random", ["PocketFlagZeroShot", "PocketMotionProbe"], show_progress=False)
    flags, motions = (result.outcomes() for result in run.results)
    assert isinstance(flags["predicted"][0].as_py(), str)
    right = np.array(flags["label"].to_pylist()) == np.array(flags["predicted"].to_pylist())
    np.testing.assert_array_equal(right, flags["accuracy"].to_numpy() == 1)
    right = np.array(motions["label"].to_pylist()) == np.array(motions["predicted_run2"].to_pylist())
    np.testing.assert_array_equal(right, motions["accuracy_run2"].to_numpy() == 1)
    study = embark.analyze.confusion(tasks="Pocket*", models="embark/random")
    assert [part.task for part in study.parts] == ["PocketFlagZeroShot", "PocketMotionProbe"]
    assert study.parts[1].counts.sum() == pytest.approx(len(motions))


def test_no_classes_is_an_error_that_names_the_tasks_that_have_them() -> None:
    embark.evaluate("embark/random", "PocketClockReading", show_progress=False)
    with pytest.raises(EmbarkError, match="only zero-shot and probe tasks do"):
        embark.analyze.confusion(tasks="PocketClockReading")
