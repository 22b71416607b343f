"""A power cut at any moment leaves results that are old or new, never empty."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embark.atomic import atomically
from embark.results import Record, Results, TaskResult, outcome_columns
from embark.types import ModelCard

CARD = ModelCard("org/model", "r1", "none", ("text",))


def save(root: Path, score: float) -> TaskResult:
    record = Record("org/model", "r1", "Words", "test", "en", (), "m", score, (0, 1), {"m": score}, "p", "e")
    result = TaskResult("org/model", "r1", "Words", "abc", (record,), score, (0, 1), 0.0)
    return Results(root).save(result, CARD, [outcome_columns("test", "en", ["a", "b"], {"m": [score, score]})])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The (call, path) of everything that makes files durable or gives them their names, as it happens."""
    recorded: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(handle: int) -> None:
        fsync(handle)
        recorded.append(("fsync", os.readlink(f"/proc/self/fd/{handle}")))

    def record_replace(source: Path, target: Path) -> None:
        assert os.stat(source).st_size > 0
        replace(source, target)
        recorded.extend([("from", str(source)), ("to", str(target))])

    monkeypatch.setattr("os.fsync", record_fsync)
    monkeypatch.setattr("os.replace", record_replace)
    return recorded


def test_every_file_of_a_result_is_durable_before_its_name_and_its_name_before_the_next(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    save(tmp_path / "results", 0.5)
    folder = tmp_path / "results" / "org__model" / "r1"
    made = [path for call, path in calls[: calls.index(("to", str(folder / "Words.parquet")))] if call == "fsync"]
    assert made[:3] == [str(tmp_path), str(tmp_path / "results"), str(folder.parent)]  # the new folders' own names
    renames = [number for number, (call, _) in enumerate(calls) if call == "to"]
    assert [Path(calls[number][1]).name for number in renames] == ["Words.parquet", "model_meta.json", "Words.json"]
    for number in renames:
        _, part = calls[number - 1]
        assert calls[number - 2] == ("fsync", part)
        assert calls[number + 1] == ("fsync", str(folder))


def test_a_cut_before_the_rename_leaves_the_old_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = save(tmp_path, 0.25)

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(f"os.{call}", cut)
            with pytest.raises(KeyboardInterrupt):
                save(tmp_path, 0.75)
        [stored] = Results(tmp_path).all()
        assert stored == old
        assert stored.outcomes()["m"].to_pylist() == [0.25, 0.25]


def test_scores_never_stand_beside_outcomes_that_are_not_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cut comes after the new outcomes and before the new scores."""
    save(tmp_path, 0.25)
    replace = os.replace

    def cut(source: Path, target: Path) -> None:
        if Path(target).suffix == ".json":
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", cut)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, 0.75)
    results = Results(tmp_path)
    assert results.load("org/model", "r1", "Words") is None
    assert "Words.parquet.damaged" in results.notes[0]
    assert save(tmp_path, 0.75) == results.load("org/model", "r1", "Words")


def test_a_block_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")

    def stop() -> None:
        with atomically(tmp_path / "file") as out:
            out.write(b"new")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stop()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
