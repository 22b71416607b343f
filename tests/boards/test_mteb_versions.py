"""Scores of mteb's releases that scored a task otherwise than its row are marked, and stay off boards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from embark import published
from embark.boards.comparable_results import load_results
from embark.boards.leaderboards import leaderboard
from embark.boards.matrix import load_matrix
from embark.boards.mteb_versions import agrees, fault
from embark.cli import app
from embark.evaluators.retrieval import evaluate
from embark.exchange.scores import import_results
from embark.exchange.tools import read_mteb
from embark.results import NO_INTERVAL, Record, Results, TaskResult
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import EmbarkError, Qrels, Task
from embark.verification.references import folder_references

PEER = os.environ.get("EMBARK_PEER", sys.executable if find_spec("mteb") else None)
SCRIPT = Path(__file__).with_name("mteb_skips_first.py")
KEPT = ("2.10.2", "2.10.13", "2.10.14", "2.11.5", "2.12.20", "2.12.21")
DROPPED = ("2.0.1", "2.10.0", "2.10.1", "2.12.22", "2.12.24", "2.26.24")
SKIPPING = sorted(row.name for row in TASKS.values() if row.under("mteb2").params.get("skip_first"))
MIXED = sorted(row.name for row in TASKS.values() if row.mixed and row.family == "MIEB")
SKIPS, MIXES = "RP2kI2IRetrieval", "CIRRIT2IRetrieval"
KEEPS = "mteb >=2.10.2,<2.12.22 keeps every query's first result, most often the query itself, where the task drops it"
AGAIN = "(score it again with mteb 2.12.22 or newer, or with embark run)"
WHY = f"{KEEPS} {AGAIN}"
TEXTLESS = "mteb >=2,<2.10.4 leaves out the text of every item that has a picture and a text"
TEXTLESS_AGAIN = "(score it again with mteb 2.10.4 or newer, or with embark run)"


def row(name: str) -> Task:
    """The row as mteb 2 scores it."""
    return TASKS[name].under("mteb2")


def write(folder: Path, version: str | None, score: float = 0.5, task: str = SKIPS, own: str | None = None) -> Path:
    """A file as mteb writes it, of a model that is named after the version; `own` is that of the one entry."""
    [split], [subset] = TASKS[task].source.splits, TASKS[task].subsets
    measures = {"hit_rate_at_1": score, "hit_rate_at_5": 0.75, "ndcg_at_10": 0.625, "main_score": score}
    about = {"hf_subset": subset, "languages": ["eng-Latn"], "mteb_version": own}
    content = {
        "dataset_revision": TASKS[task].source.revision, "task_name": task, "mteb_version": version,
        "scores": {split: [measures | about]}, "evaluation_time": 1.0,
    }  # fmt: skip
    path = folder / f"org__by-{version}" / "abc" / f"{task}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def shown(task: str = SKIPS, protocol: str | None = "mteb2") -> tuple[set[str], tuple[str, ...]]:
    """The versions whose models boards show on a task, and the notes on what was left out."""
    loaded = load_results(tasks=task, protocol=protocol, include="own")
    return {result.model.removeprefix("org/by-") for result in loaded.results}, loaded.notes


# ── which releases score which rows otherwise ────────────────────────────────────────────────────────────────────────


def test_the_rows_say_which_of_them_a_fault_is_about() -> None:
    assert len(SKIPPING) >= 5
    assert len(MIXED) >= 18
    assert [name for name in TASKS if fault(row(name), "2.11.0")] == [name for name in TASKS if name in SKIPPING]
    assert {name for name in TASKS if TASKS[name].family == "MIEB" and fault(row(name), "2.5.0")} == set(MIXED)
    assert not any(fault(row(name), version) for name in TASKS for version in ("1.39.7", "2.26.24"))


@pytest.mark.parametrize(
    "version",
    [*KEPT, "2.10.2.dev0", "2.12.22.dev0", "2.12.22rc1", "2.10.1-2.12.22", "2.12.21+g1a2b3c", "v2.11"],
)
def test_scores_of_releases_that_keep_the_first_result_are_not_the_rows(version: str) -> None:
    assert fault(row(SKIPS), version) == WHY
    assert not agrees(row(SKIPS), version, "hit_rate_at_1")


@pytest.mark.parametrize("version", [*DROPPED, "2.10.1.dev0", "2.12.24.dev0", "2.12.22.post1", "2.12.22-2.26.24"])
def test_hit_rates_of_the_other_releases_are_the_rows(version: str) -> None:
    assert fault(row(SKIPS), version) == ""
    assert agrees(row(SKIPS), version, "hit_rate_at_1")
    assert agrees(row(SKIPS), version, "cv_recall_at_1")


@pytest.mark.parametrize(("version", "right"), [("2.10.1", False), ("2.12.21", False), ("2.12.22", True)])
def test_other_measures_are_the_rows_since_all_of_them_drop_the_first_result(version: str, right: bool) -> None:
    assert agrees(row(SKIPS), version, "ndcg_at_10") == right
    assert agrees(TASKS[SKIPS], "1.39.7", "ndcg_at_10")  # as the paper's protocol has it


@pytest.mark.parametrize("version", ["2.0", "2.0.1", "2.10.3", "2.10.4.dev0", "2.0.1-2.26.24"])
def test_scores_of_mixed_items_without_their_text_are_not_the_rows(version: str) -> None:
    assert fault(TASKS[MIXES], version) == f"{TEXTLESS} {TEXTLESS_AGAIN}"


@pytest.mark.parametrize("version", ["1.16.5", "1.39.7", "2.10.4", "2.11.5", "2.26.24"])
def test_scores_of_mixed_items_with_their_text_are_the_rows(version: str) -> None:
    assert fault(TASKS[MIXES], version) == ""


def test_published_scores_are_of_releases_before_these_faults() -> None:
    made_by = published.tables("MIEB")["MIEB results"]["version"]
    versions = [word.strip(",;") for word in made_by.split() if word.startswith("1.")]
    assert versions == ["1.14.15", "1.16.5"]
    assert not any(fault(TASKS[name], version) for name in (*SKIPPING, *MIXED) for version in versions)
    scores = [result.score for result in published.results([TASKS[name] for name in SKIPPING])]
    assert max(scores) < 0.95  # with the query itself as the first result nearly every score is 1


# ── what a user sees ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_marked_scores_stay_off_boards_with_the_reason(tmp_path: Path) -> None:
    for version in (*KEPT, *DROPPED, "1.16.5", "1.39.7"):
        write(tmp_path, version, 0.9998 if version in KEPT else 0.5)
    names = ", ".join(f"{SKIPS} of org/by-{version}" for version in sorted(KEPT))
    imported = import_results(tmp_path)
    assert imported.notes == (f"kept off boards: 6 results, because {WHY}: {names}",)
    assert {result.model.removeprefix("org/by-") for result in imported.results if WHY in result.warnings} == {*KEPT}
    assert shown() == ({*DROPPED}, (f"left out, because {KEEPS}: {names} {AGAIN}",))
    assert shown(protocol="paper") == ({"1.16.5", "1.39.7"}, ())
    board = leaderboard(tasks=SKIPS, protocol="mteb2", include="own")
    assert {entry.model.totals["mean"].value for entry in board.entries} == {0.5}
    assert board.notes == shown()[1]
    marked = [result for result in Results(load_settings().results).all() if WHY in result.warnings]
    assert len(marked) == len(KEPT)  # the mark is on disk, too


def test_the_command_says_what_was_marked_and_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, "2.11.5", 0.9998)
    made = CliRunner().invoke(app, ["import", "mteb", str(tmp_path)])
    assert made.exit_code == 0, made.output
    assert made.stderr == f"kept off boards: 1 result, because {WHY}: {SKIPS} of org/by-2.11.5\n"
    assert made.stdout.startswith("1 result of 1 model to ")
    ranked = CliRunner().invoke(app, ["leaderboard", "-t", SKIPS, "--protocol", "mteb2", "--include", "own"])
    assert KEEPS in str(ranked.exception)  # printed as the error


def test_results_that_were_imported_before_are_known_by_their_version(elsewhere: Path) -> None:
    results = Results(load_settings().results)
    for version in ("2.11.5", "2.12.22"):
        where = (f"org/by-{version}", "abc", SKIPS)
        record = Record(
            *where, "test", "default", ("eng-Latn",), "hit_rate_at_1", 0.99, NO_INTERVAL, {}, f"mteb {version}", "mteb",
            versions={"mteb": version},
        )  # fmt: skip
        result = TaskResult(*where, "", (record,), 0.99, NO_INTERVAL, 0.0, protocol="mteb2", made_by="mteb")
        results.write(result, None)
    versions, [note] = shown()
    assert versions == {"2.12.22"}
    assert note == f"left out, because {KEEPS}: {SKIPS} of org/by-2.11.5 {AGAIN}"


def test_where_hit_rates_alone_are_right_only_they_are_read(tmp_path: Path) -> None:
    write(tmp_path, "2.5.0")
    [result] = read_mteb(tmp_path, TASKS).results
    assert (result.score, result.protocol) == (0.5, "mteb2")
    assert result.records[0].metrics == {"hit_rate_at_1": 0.5, "hit_rate_at_5": 0.75}
    assert result.warnings == ("without 1 measure that mteb 2.5.0 scores otherwise than the task",)
    write(tmp_path / "new", "2.26.24")
    [result] = read_mteb(tmp_path / "new", TASKS).results
    assert result.records[0].metrics.keys() == {"hit_rate_at_1", "hit_rate_at_5", "ndcg_at_10"}
    assert result.warnings == ()


def test_the_version_of_an_entry_goes_before_that_of_its_file(tmp_path: Path) -> None:
    write(tmp_path, "2.11.5-2.26.24", own="2.26.24")
    write(tmp_path, "2.26.20-2.26.24", own="2.11.5")
    nameless = write(tmp_path, None)
    content = json.loads(nameless.read_text())
    content["scores"]["train"] = [content["scores"]["test"][0] | {"mteb_version": "2.11.5"}]
    nameless.write_text(json.dumps(content))
    imported = import_results(tmp_path)
    assert shown()[0] == {"2.11.5-2.26.24"}
    assert len(imported.results) == 3


def test_matrices_recommendations_and_the_page_leave_marked_scores_out(tmp_path: Path) -> None:
    write(tmp_path, "2.10.3", 0.99, MIXES)
    write(tmp_path, "2.10.4", 0.25, MIXES)
    imported = import_results(tmp_path)
    names = f"{MIXES} of org/by-2.10.3"
    note = f"left out, because {TEXTLESS}: {names} {TEXTLESS_AGAIN}"
    assert imported.notes == (f"kept off boards: 1 result, because {TEXTLESS} {TEXTLESS_AGAIN}: {names}",)
    matrix = load_matrix(tasks=MIXES)
    assert "org/by-2.10.4 (mteb)" in " ".join(matrix.models) or "org/by-2.10.4" in matrix.models
    assert not any("2.10.3" in model for model in matrix.models)
    assert note in matrix.notes
    advice = embark.recommend("image", tasks=MIXES)
    assert note in advice.notes
    embark.site.export(tmp_path / "page", "MIEB(eng)")
    [board] = (tmp_path / "page" / "data" / "board").iterdir()
    text = board.read_text()
    assert "leaves out the text of every item" in text
    assert "org/by-2.10.4" in text
    assert '"org/by-2.10.3"' not in text


def test_marked_scores_are_no_reference(tmp_path: Path) -> None:
    write(tmp_path, "2.11.5")
    references = folder_references([row(SKIPS)], tmp_path, "org/by-2.11.5", TASKS, "mteb2")
    assert references == {SKIPS: WHY}


def test_a_board_without_other_scores_says_why_they_were_left_out(tmp_path: Path) -> None:
    write(tmp_path, "2.11.5")
    import_results(tmp_path)
    with pytest.raises(EmbarkError) as error:
        leaderboard(tasks=SKIPS, protocol="mteb2", include="own")
    assert f". Left out, because {KEEPS}: {SKIPS} of org/by-2.11.5 {AGAIN}. Make some: embark run" in str(error.value)


# ── the row itself ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.skipif(PEER is None, reason="needs mteb 2.26, here or where the python of EMBARK_PEER is")
def test_the_row_scores_as_the_mteb_that_drops_the_first_result(tmp_path: Path) -> None:
    assert PEER is not None
    rng = np.random.default_rng(0)
    document, kind = rng.normal(size=(90, 8)).astype(np.float32), rng.integers(0, 12, 90)
    document_ids = np.array([f"d{number}" for number in rng.permutation(90)])
    own = rng.permutation(90)[:38]  # queries that are documents, too, and two that are not
    query = np.concatenate([document[own], rng.normal(size=(2, 8)).astype(np.float32)])
    query_ids = np.array([*document_ids[own], "new-0", "new-1"])
    relevant = kind == np.append(kind[own], [0, 1])[:, None]
    relevant[np.arange(38)[1::3], own[1::3]] = False  # whether a query is relevant to itself differs between data sets
    truth = Qrels(*np.nonzero(relevant), np.ones(relevant.sum()), query_ids, document_ids)
    np.savez(tmp_path / "vectors.npz", query=query, document=document, query_ids=query_ids, document_ids=document_ids)
    qrels = {
        str(id): dict.fromkeys(document_ids[places].tolist(), 1) for id, places in zip(query_ids, relevant, strict=True)
    }
    (tmp_path / "qrels.json").write_text(json.dumps(qrels))
    command = [PEER, SCRIPT, tmp_path / "vectors.npz", tmp_path / "qrels.json", SKIPS]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    theirs = json.loads(ran.stdout.splitlines()[-1])
    ours = evaluate(truth, {"query": query, "document": document}, {"metric": "hit_rate_at_1", **row(SKIPS).params})
    shared = ours.metrics.keys() & theirs.keys()
    assert len(shared) > 40
    for name in shared:
        assert ours.metrics[name] == pytest.approx(theirs[name], abs=6e-6), name  # mteb rounds to 5 digits
    kept = evaluate(truth, {"query": query, "document": document}, {"metric": "hit_rate_at_1"})
    assert abs(kept.metrics["hit_rate_at_1"] - theirs["hit_rate_at_1"]) > 0.1
