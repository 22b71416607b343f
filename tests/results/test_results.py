"""Results on disk: exact, in mteb's layout, never half-written, and valid for one protocol alone."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embark.protocol import SCORED_BY, fingerprint
from embark.results import Record, Replaced, Results, TaskResult, long_table, outcome_columns
from embark.types import EmbarkError, ModelCard, Source, Task

CARD = ModelCard("org/model", "r1", "none", ("text",), dim=2, options={"pooling": ("mean", "max")})
TASK = Task(
    "Words", "Test", "retrieval", "words", Source("test/words", "abc", "plain", ("test",)), "ndcg_at_10", "Retrieval",
    ("text",), columns={"text": "t"}, params={"k": 3}, options={"o": 1}, instructions={"query": "Find."},
    labels=("a", "b"), templates=("a {}",), notes=("A note.",), tags={"domain": "words"},
)  # fmt: skip


def record(subset: str = "en", score: float = 0.1 + 0.2, **more: Any) -> Record:
    fields = {
        "languages": ("eng",), "metric": "ndcg_at_10", "interval": (score - 0.1, score + 0.1),
        "metrics": {"ndcg_at_10": score, "map_at_10": 1 / 3}, "fingerprint": "p" * 16, "encoder": "e" * 32,
        "counts": {"items": 7, "first": 5}, "timings": {"embed": 0.25, "score": 0.5}, "versions": {"numpy": "2"},
        "warnings": (f"row 3 of {subset} was left out",),
    }  # fmt: skip
    return Record("org/model", "r1", "Words", "test", subset, score=score, **(fields | more))


def result(*records: Record) -> TaskResult:
    records = records or (record("en"), record("fr", 2 / 3))
    return TaskResult("org/model", "r1", "Words", "abc", records, 0.48333333333333334, (0.3, 0.6), 1.7e9 + 0.125)


def outcomes(ids: str = "q1 q2", split: str = "test", subset: str = "en") -> dict[str, Any]:
    return outcome_columns(split, subset, ids.split(), {"ndcg_at_10": np.array([1 / 3, 1.0]), "rank": np.array([7, 1])})


BOTH = [outcomes(), outcomes(subset="fr")]


@pytest.fixture
def folder(tmp_path: Path) -> Results:
    return Results(tmp_path / "scores")


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_saved_is_what_is_loaded(folder: Results) -> None:
    saved = folder.save(result(), CARD, [outcomes(), outcomes(subset="fr")])
    assert saved.path == folder.root / "org__model" / "r1" / "Words.json"
    assert folder.load("org/model", "r1", "Words") == saved
    assert replace(saved, path=None) == result()
    assert saved.metric == "ndcg_at_10"
    assert saved.warnings == ("row 3 of en was left out", "row 3 of fr was left out")


@settings(max_examples=25)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_floats_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, a: float, b: float, c: float) -> None:
    folder = Results(tmp_path_factory.getbasetemp() / "floats")
    low, high = sorted((b, c))
    one = result(record(score=a, interval=(low, high), metrics={"ndcg_at_10": a, "map_at_10": np.float64(b)}))
    saved = folder.save(replace(one, score=b, interval=(low, high)), CARD, [outcomes()])
    assert folder.load("org/model", "r1", "Words") == saved


def test_what_is_not_there_is_none(folder: Results) -> None:
    assert folder.load("org/model", "r1", "Words") is None
    assert list(folder.all()) == []


def test_the_layout_is_mtebs(folder: Results) -> None:
    path = folder.save(result(), CARD, BOTH).path
    assert path is not None
    content = json.loads(path.read_text())
    assert {"dataset_revision", "task_name", "mteb_version", "scores", "evaluation_time", "kg_co2_emissions"} <= set(
        content
    )
    assert (content["task_name"], content["dataset_revision"]) == ("Words", "abc")
    assert content["evaluation_time"] == 1.5
    [english, french] = content["scores"]["test"]
    assert (english["main_score"], english["hf_subset"], english["languages"]) == (0.1 + 0.2, "en", ["eng"])
    assert french["map_at_10"] == 1 / 3
    meta = json.loads((path.parent / "model_meta.json").read_text())
    assert (meta["name"], meta["revision"]) == ("org/model", "r1")


def test_saving_again_replaces_and_leaves_nothing_behind(folder: Results) -> None:
    folder.save(result(), CARD, BOTH)
    again = folder.save(result(record(score=1.0)), CARD, [outcomes("q3 q4")])
    assert folder.load("org/model", "r1", "Words") == again
    assert again.outcomes()["id"].to_pylist() == ["q3", "q4"]
    assert sorted(path.name for path in (folder.root / "org__model" / "r1").iterdir()) == [
        "Words.json",
        "Words.parquet",
        "model_meta.json",
    ]


def test_a_file_that_cannot_be_written_is_named(folder: Results) -> None:
    blocked = folder.folder("org/model", "r1") / "Words.json"
    (blocked / "in the way").mkdir(parents=True)
    with pytest.raises(EmbarkError, match=f"could not be written to {blocked} .*directory"):
        folder.save(result(), CARD, BOTH)


def test_a_save_that_fails_leaves_the_old_files(folder: Results) -> None:
    before = folder.save(result(), CARD, BOTH)
    with pytest.raises(TypeError, match="has no place in a result file"):
        folder.save(result(record(counts={"items": object()})), CARD, [outcomes()])
    assert folder.load("org/model", "r1", "Words") == before
    assert len(list((folder.root / "org__model" / "r1").iterdir())) == 3


def test_outcomes_are_one_row_an_item(folder: Results) -> None:
    extra = outcome_columns("test", "fr", ["q9"], {"ndcg_at_10": np.array([0.5]), "top": np.array([4])})
    table = folder.save(result(), CARD, [outcomes(), extra]).outcomes()
    assert table.to_pylist() == [
        {"split": "test", "subset": "en", "id": "q1", "ndcg_at_10": 1 / 3, "rank": 7, "top": None},
        {"split": "test", "subset": "en", "id": "q2", "ndcg_at_10": 1.0, "rank": 1, "top": None},
        {"split": "test", "subset": "fr", "id": "q9", "ndcg_at_10": 0.5, "rank": None, "top": 4},
    ]
    with pytest.raises(EmbarkError, match="org/model on Words is not on disk"):
        result().outcomes()


READ = """
import sys
from pathlib import Path
from embark.results import Results
for result in Results(Path(sys.argv[1])).all():
    result.outcomes()
print("pyarrow.dataset" in sys.modules)
"""


def test_reading_outcomes_leaves_no_threads_that_abort_the_process_when_it_ends(pocket_vectors: Path) -> None:
    """pyarrow's scanner may work on when it has returned (apache/arrow 34314): `embark leaderboard` ended with -6."""
    command = [sys.executable, "-c", READ, str(pocket_vectors / "results")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("content", [b'{"task_name": "Wor', b"", b"\xff\xfe\x00", bytes(300), b"[" * 100_000])
def test_a_damaged_file_is_set_aside_and_named(folder: Results, content: bytes) -> None:
    path = folder.save(result(), CARD, BOTH).path
    assert path is not None
    path.write_bytes(content)
    assert folder.load("org/model", "r1", "Words") is None
    assert folder.notes[0].startswith(f"damaged and set aside as {path}.damaged (")
    assert path.with_name("Words.json.damaged").read_bytes() == content
    assert not path.exists()
    assert list(folder.all()) == []
    assert len(folder.notes) == 1


@pytest.mark.parametrize("content", ["[]", "3", "null", '"embark"'])
def test_a_file_that_is_no_table_is_named(folder: Results, content: str) -> None:
    ours = folder.save(result(), CARD, BOTH)
    (folder.root / "org__model" / "r1" / "Theirs.json").write_text(content)
    assert list(folder.all()) == [ours]
    assert "Theirs.json is damaged (its content must be a table of fields" in folder.notes[0]


@pytest.mark.parametrize("foreign", ['{"task_name": "Words", "scores": {}}', '{"scores": {"test": [{}, 3]}}', "{}"])
def test_files_of_others_are_passed_over(folder: Results, foreign: str) -> None:
    ours = folder.save(result(), CARD, BOTH)
    (folder.root / "org__model" / "r1" / "Theirs.json").write_text(foreign)
    (folder.root / "org__model" / "r1" / "notes.txt").write_text("not a result")
    (folder.root / "README.json").write_text("not a result either")
    assert list(folder.all()) == [ours]
    assert folder.load("org/model", "r1", "Theirs") is None


def test_all_finds_every_model_revision_and_task(folder: Results) -> None:
    for model, revision, task in (("a/x", "1", "T"), ("a/x", "2", "T"), ("b/y", "1", "T"), ("b/y", "1", "U")):
        folder.save(replace(result(), model=model, revision=revision, task=task), CARD, BOTH)
    found = [(one.model, one.revision, one.task) for one in folder.all()]
    assert found == [("a/x", "1", "T"), ("a/x", "2", "T"), ("b/y", "1", "T"), ("b/y", "1", "U")]


def test_the_long_table_has_a_row_for_each_record() -> None:
    english, french = long_table([result()])
    assert (english["subset"], french["subset"], french["score"]) == ("en", "fr", 2 / 3)
    assert (english["low"], english["high"]) == record("en").interval
    assert english["items"] == 7
    assert english["warnings"] == "row 3 of en was left out"


# ── the protocol ─────────────────────────────────────────────────────────────────────────────────────────────────────


def mark(task: Task = TASK, split: str = "test", subset: str = "default", evaluator: int = 1, reader: int = 1) -> str:
    return fingerprint(task, split, subset, evaluator, reader)


CHANGES: dict[str, Any] = {
    "name": "Other", "evaluator": "choice", "reader": "other", "columns": {"text": "u"}, "params": {"k": 4},
    "options": {"o": 2}, "instructions": {"query": "Seek."}, "labels": ("b", "a"), "templates": ("the {}",),
    "metric": "map_at_10", "unreadable": "skip",
}  # fmt: skip


@pytest.mark.parametrize("name", SCORED_BY)
def test_the_protocol_changes_with_each_field_that_changes_the_score(name: str) -> None:
    assert mark(replace(TASK, **{name: CHANGES[name]})) != mark()


@pytest.mark.parametrize("change", [{"id": "x"}, {"revision": "abd"}, {"config": None}])
def test_the_protocol_changes_with_the_source(change: dict[str, Any]) -> None:
    assert mark(replace(TASK, source=replace(TASK.source, **change))) != mark()


def test_the_protocol_changes_with_split_subset_and_versions() -> None:
    marks = {mark(), mark(split="dev"), mark(subset="fr"), mark(evaluator=2), mark(reader=2)}
    assert len(marks) == 5
    assert mark(evaluator=12, reader=1) != mark(evaluator=1, reader=21)


@pytest.mark.parametrize(
    "change",
    [
        {"notes": ("Another note.",)},
        {"tags": {"domain": "letters"}},
        {"category": "Other"},
        {"chance": 0.5},
        {"source": replace(TASK.source, license="MIT", reference="https://example.org")},
    ],
)
def test_the_protocol_does_not_change_with_what_is_only_said(change: dict[str, Any]) -> None:
    assert mark(replace(TASK, **change)) == mark()


def test_the_order_of_a_mapping_says_nothing() -> None:
    one, other = (replace(TASK, params=dict(pairs)) for pairs in ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)]))
    assert mark(one) == mark(other)


def test_the_protocol_is_the_same_in_every_process() -> None:
    """A change here makes every result on disk stale: it must be meant."""
    assert mark() == "e4eeeaab6bb23214"


def test_the_protocol_changes_with_the_files_a_row_names() -> None:
    marks = {mark(replace(TASK, source=replace(TASK.source, files={"test": (name,)}))) for name in ("a", "b")}
    assert len(marks | {mark()}) == 3


# ── what other tools and other versions make of it ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bad", [math.nan, math.inf, np.float32("nan")])
def test_a_number_that_is_none_is_null_and_comes_back(folder: Results, bad: float) -> None:
    one = record(metrics={"ndcg_at_10": 0.5, "map_at_10": bad}, interval=(bad, 0.6))
    saved = folder.save(replace(result(one), interval=(bad, 0.6)), CARD, [outcomes()])
    assert saved.path is not None

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    content = json.loads(saved.path.read_text(), parse_constant=refuse)
    assert content["scores"]["test"][0]["map_at_10"] is None
    loaded = folder.load("org/model", "r1", "Words")
    assert loaded is not None
    assert math.isnan(loaded.records[0].metrics["map_at_10"])
    assert math.isnan(loaded.interval[0])
    assert loaded.interval[1] == 0.6


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content.pop("scores"),
        lambda content: content["embark"].pop("interval"),
        lambda content: content["scores"]["test"][0]["embark"].pop("fingerprint"),
        lambda content: content["scores"]["test"][0]["embark"].update(colour="red"),
        lambda content: content["scores"].update(test=3),
        lambda content: content.update(scores={}),
        lambda content: content["embark"].update(score="0.5"),
        lambda content: content["embark"].update(model=3),
        lambda content: content["scores"]["test"][0].update(main_score=[1]),
    ],
)
def test_a_file_of_another_layout_is_set_aside(folder: Results, spoil: Any) -> None:
    path = folder.save(result(), CARD, BOTH).path
    assert path is not None
    content = json.loads(path.read_text())
    spoil(content)
    path.write_text(json.dumps(content))
    assert folder.load("org/model", "r1", "Words") is None
    assert "Words.json.damaged" in folder.notes[0]


SAVER = """
import sys
from pathlib import Path
from embark.results import Record, Results, TaskResult, outcome_columns
from embark.types import ModelCard
score = float(sys.argv[2])
for _ in range(25):
    record = Record("org/model", "r1", "Words", "test", "en", (), "m", score, (0, 1), {"m": score}, "p", "e")
    result = TaskResult("org/model", "r1", "Words", "abc", (record,), score, (0, 1), 0.0)
    columns = outcome_columns("test", "en", ["a", "b"], {"m": [score, score]})
    Results(Path(sys.argv[1])).save(result, ModelCard("org/model", "r1", "none", ("text",)), [columns])
"""


@pytest.mark.slow
def test_two_processes_may_save_the_same_task(folder: Results) -> None:
    args = [[sys.executable, "-c", SAVER, str(folder.root), score] for score in ("0.25", "0.75")]
    writers = [subprocess.Popen(one) for one in args]
    while any(writer.poll() is None for writer in writers):
        for stored in folder.all():
            score = stored.records[0].score
            assert score in (0.25, 0.75)
            with suppress(Replaced):
                assert stored.outcomes()["m"].to_pylist() == [score, score]  # never those of the other process
    assert [writer.wait() for writer in writers] == [0, 0]
    [stored] = folder.all()
    assert stored.outcomes()["m"].to_pylist() == [stored.score, stored.score]
    assert {path.name for path in folder.root.rglob("*.*")} == {"Words.json", "Words.parquet", "model_meta.json"}
