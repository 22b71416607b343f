"""A damaged result is set aside, named and computed again; the others stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import embark
from embark.results import TaskResult
from embark.run import Run
from embark.types import Array
from folders import two_tasks

Damage = Callable[[Path], object]


def edited(**fields: object) -> Damage:
    """Damage of a JSON: fields of ours with values of the wrong type."""

    def damage(path: Path) -> None:
        content = json.loads(path.read_text())
        content["embark"].update(fields)
        path.write_text(json.dumps(content))

    return damage


def changed(old: bytes, new: bytes) -> Damage:
    """Damage of a file: a few bytes are others, and what it holds can still be read."""

    def damage(path: Path) -> None:
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new, 1))

    return damage


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


CUT: Damage = lambda path: path.write_bytes(path.read_bytes()[:90])  # noqa: E731
ZEROED: Damage = lambda path: path.write_bytes(bytes(path.stat().st_size))  # noqa: E731
EMPTY: Damage = lambda path: path.write_bytes(b"")  # noqa: E731
NESTED: Damage = lambda path: path.write_bytes(b"[" * 100_000)  # noqa: E731
FEWER_ROWS: Damage = lambda path: pq.write_table(pq.read_table(path)[:2], path)  # noqa: E731


@pytest.fixture
def run(tiny: embark.Encoder, pictures: Any) -> Callable[..., Run]:
    """Runs the same two tasks again."""
    tasks = two_tasks(pictures())
    return lambda encoder=tiny: embark.evaluate(encoder, tasks, show_progress=False)


def alike(items: Sequence[object]) -> Array:
    return np.ones((len(items), 3), np.float32)


def path_of(result: TaskResult) -> Path:
    assert result.path is not None
    return result.path


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        *((".json", damage) for damage in (CUT, ZEROED, EMPTY, NESTED, edited(score="high"), edited(interval=3))),
        (".json", changed(b'"ndcg_at_3": 1.0', b'"ndcg_at_3": 0.0')),
        (".json", changed(b'"checksum"', b'"chucksum"')),
        *((".parquet", damage) for damage in (CUT, ZEROED, EMPTY, FEWER_ROWS, flip)),
    ],
)
def test_a_damaged_result_is_computed_again(run: Callable[[], Run], suffix: str, damage: Damage) -> None:
    whole = run()
    path = path_of(whole.results[0]).with_suffix(suffix)
    damage(path)
    damaged = path.read_bytes()
    again = run()
    assert (again.computed, again.embedded, again.skipped) == (1, 0, [])
    assert [result.score for result in again.results] == [result.score for result in whole.results]
    assert again.results[0].outcomes() == whole.results[0].outcomes()
    aside = path.with_name(f"{path.name}.damaged")
    assert aside.read_bytes() == damaged
    [note] = again.warnings
    assert str(aside) in note
    assert run().warnings == []


def test_outcomes_that_are_gone_are_computed_again(run: Callable[[], Run]) -> None:
    path_of(run().results[0]).with_suffix(".parquet").unlink()
    again = run()
    assert again.computed == 1
    assert "has lost its outcomes" in again.notes[0]


@pytest.mark.parametrize("read", [embark.load_results, embark.leaderboard])
def test_tables_name_the_damaged_file_and_go_on(run: Callable[[], Run], read: Any) -> None:
    retrieval, zeroshot = run().results
    CUT(path_of(retrieval))
    shown = read(include="own")
    assert f"left out: {retrieval.path} is damaged" in shown.notes[0]
    assert path_of(retrieval).is_file()  # readers change nothing
    assert [task.name for task in shown.tasks] == [zeroshot.task]


@pytest.mark.parametrize(("suffix", "reason"), [(".json", "left out"), (".parquet", "Retrieval.parquet is damaged")])
def test_compare_goes_on_without_it(run: Callable[..., Run], suffix: str, reason: str) -> None:
    retrieval, zeroshot = run().results
    run(embark.encoder(text=alike, image=alike, name="test/other", revision="1"))
    CUT(path_of(retrieval).with_suffix(suffix))
    comparison = embark.compare("test/tiny", "test/other")
    assert [pair.task for pair in comparison.pairs] == [zeroshot.task]
    assert reason in comparison.notes[0]


def test_a_damaged_card_costs_nothing(run: Callable[[], Run]) -> None:
    path = path_of(run().results[0]).with_name("model_meta.json")
    CUT(path)
    shown = embark.load_results(include="own")
    assert len(shown.results) == 2
    assert "model_meta.json is damaged" in shown.notes[0]


def test_an_export_says_what_it_leaves_out(
    run: Callable[[], Run], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    retrieval, zeroshot = run().results
    CUT(path_of(retrieval))
    assert [result.task for result in embark.exchange.export_mteb(tmp_path / "out")] == [zeroshot.task]
    assert f"{retrieval.path} is damaged" in caplog.text
