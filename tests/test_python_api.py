"""No command decides anything about scores: public names alone reproduce what commands print, cell by cell.

The results are small ones of a folder of one's own, which is gone before anything is read.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import embark
from color_models import COLORS, model
from embark.cli import app  # to run commands; all else is public
from folders import two_tasks

OWN = ["HolidayRetrieval", "HolidayZeroShot"]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> embark.Settings:
    """Results of four models on an own folder and two pocket tasks; the folder is deleted."""
    root = tmp_path_factory.mktemp("api")
    settings = embark.load_settings(root / "home", root / "results")
    folder = root / "Holiday"
    folder.mkdir()
    lines = ["file,caption,label"]
    for number in range(16):
        color, rgb = list(COLORS.items())[number % 4]
        shade = tuple(max(0, value - 2 * number) for value in rgb)
        Image.new("RGB", (4, 4), shade).save(folder / f"{number:02}.png")
        lines.append(f"{number:02}.png,{color} page {number},{color}")
    (folder / "metadata.csv").write_text("\n".join(lines))
    models = [model("test/sharp", 0.1), model("test/dim", 6.0), model("test/blind", 40.0), "embark/random"]
    tasks = [*two_tasks(folder), *embark.get_tasks(["PocketClockReading", "PocketFlagZeroShot"])]
    run = embark.evaluate(models, tasks, settings=settings, show_progress=False)
    assert len(run.results) == 16
    shutil.rmtree(folder)
    return settings


@pytest.fixture(autouse=True)
def here(scored: embark.Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and functions find the results by the environment."""
    monkeypatch.setenv("EMBARK_HOME", str(scored.home))
    monkeypatch.setenv("EMBARK_RESULTS", str(scored.results))


def printed(*words: str) -> str:
    ran = CliRunner().invoke(app, [*words])
    assert ran.exit_code == 0, (ran.output, ran.exception)
    return ran.stdout


def csv_rows(*words: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(printed(*words, "--format", "csv"))))


def same(cell: str, number: float | None) -> bool:
    return cell == ("" if number is None or np.isnan(number) else str(number))


def test_leaderboard() -> None:
    """Over all results, over own tasks, and over published scores."""
    for words, board in (
        (
            (
                "--include",
                "own",
            ),
            embark.leaderboard(include="own"),
        ),
        (("-t", "Holiday*"), embark.leaderboard(tasks="Holiday*")),
        (("-b", "ARK"), embark.leaderboard("ARK")),
    ):
        rows = csv_rows("leaderboard", *words)
        assert len(rows) == len(board.entries)
        for row, (standing, place, _) in zip(rows, board.entries, strict=True):
            assert (row["model"], row["source"]) == (standing.model, standing.source)
            assert row["#"] == ("–" if place is None else str(place.rank))
            assert row["95 %"] == ("" if place is None else place.interval)
            assert row["tie"] == ("" if place is None else place.tie)
            scores = {name: score for name, score in (standing.categories | standing.totals).items() if name in row}
            assert set(standing.totals) <= set(scores)
            for name, score in scores.items():
                assert same(row[name], score.value)
                assert same(row[f"{name} low"], score.low)
                assert same(row[f"{name} high"], score.high)


def test_leaderboard_by_task() -> None:
    board = embark.leaderboard(include="own")
    rows = {row["task"]: row for row in csv_rows("leaderboard", "--include", "own", "--by-task")}
    assert set(rows) == {*OWN, "PocketClockReading", "PocketFlagZeroShot", "Mean of categories"}
    for entry in board.entries:
        column = entry.model.model.split("/")[1]
        for task, score in entry.model.tasks.items():
            assert same(rows[task][column], score.value)
        assert same(rows["Mean of categories"][column], entry.model.mean.value)


def test_compare() -> None:
    comparison = embark.compare("test/sharp", "test/blind")
    content = json.loads(printed("compare", "test/sharp", "test/blind", "--format", "json"))
    assert [pair["task"] for pair in content["tasks"]] == [pair.task for pair in comparison.pairs]
    assert set(OWN) <= {pair.task for pair in comparison.pairs}
    for cells, pair in zip(content["tasks"], comparison.pairs, strict=True):
        for name in ("category", "a", "b", "low", "high", "p", "holm", "items", "difference", "verdict"):
            assert cells[name] == getattr(pair, name), name
    assert content["categories"].keys() == comparison.categories.keys()
    for tallies in (*zip(content["categories"].values(), comparison.categories.values(), strict=True),
                    (content["total"], comparison.total)):  # fmt: skip
        cells, tally = tallies
        assert cells == {
            name: getattr(tally, name) for name in ("wins", "ties", "losses", "difference", "low", "high", "p")
        }
    flips = comparison.flips("HolidayZeroShot")
    shown = json.loads(printed("compare", "test/sharp", "test/blind", "--show", "HolidayZeroShot", "--format", "json"))
    assert shown == {"test/sharp": list(flips.only_a), "test/blind": list(flips.only_b)}
    assert flips.only_a  # the better model is right where the other is not


def test_correlations() -> None:
    study = embark.analyze.correlate(tasks=["Holiday*", "Pocket*"], include="own")
    rows = csv_rows("analyze", "correlate", "-t", "Holiday*", "-t", "Pocket*", "--include", "own")
    assert len(rows) == len(study.table().rows) > 0
    names = study.matrix.names
    for row in rows:
        first, second = names.index(row["task"]), names.index(row["with"])
        assert float(row["r"]) == pytest.approx(study.values[first, second])
        assert float(row["low"]) <= float(row["r"]) <= float(row["high"])


def test_pareto_front() -> None:
    study = embark.analyze.pareto(tasks="Holiday*", against="time", include="own")
    rows = {
        row["model"]: row
        for row in csv_rows("analyze", "pareto", "-t", "Holiday*", "--against", "time", "--include", "own")
    }
    assert set(rows) == set(study.models)
    for name, cost, score, unbeaten in zip(study.models, study.costs, study.scores, study.unbeaten, strict=True):
        assert same(rows[name]["total"], float(score))
        assert float(cost) in [float(cell) for cell in rows[name].values() if _is_number(cell)]
        assert (rows[name]["section"] == "on the front") == bool(unbeaten)


def test_quantized_vectors() -> None:
    sweep = embark.analyze.quantize("embark/random", "PocketClockReading", dims=[64])
    rows = csv_rows("analyze", "quantize", "-m", "embark/random", "-t", "PocketClockReading", "--dims", "64")
    points = [point for curve in sweep.curves for point in curve.points]
    assert [row["setting"] for row in rows] == [point.variant.name for point in points]
    for row, point in zip(rows, points, strict=True):
        assert same(row["score"], point.score.value)
        assert same(row["score high"], point.score.high)
        assert same(row["difference"], None if point.difference is None else point.difference.value)


def test_recommendation() -> None:
    choice = embark.recommend("Retrieval,Zero-shot", tasks="Holiday*", include="own")
    rows = csv_rows("recommend", "--need", "Retrieval,Zero-shot", "-t", "Holiday*", "--include", "own")
    assert [row["model"] for row in rows] == [model.name for model in choice.models]
    for row, recommended in zip(rows, choice.models, strict=True):
        assert same(row["mean"], float(recommended.total))


def test_facts_and_results_of_own_tasks() -> None:
    facts = embark.show("HolidayZeroShot")
    assert set(facts["results"]) == {"test/sharp", "test/dim", "test/blind", "embark/random"}
    shown = json.loads(printed("show", "HolidayZeroShot", "--format", "json"))
    assert (shown["category"], shown["results"]) == (facts.row.category, facts["results"])  # type: ignore[union-attr]
    loaded = embark.load_results(tasks="Holiday*")
    assert {(result.model, result.task) for result in loaded.results} == {
        (name, task) for name in facts["results"] for task in OWN
    }
    best = embark.leaderboard(tasks="HolidayZeroShot").entries[0].model
    assert loaded.to_frame().query("task == 'HolidayZeroShot'")["score"].max() == best.mean.value


def test_own_results_are_exported(tmp_path: Path) -> None:
    written = embark.exchange.export_mteb(tmp_path)
    assert set(OWN) <= {result.task for result in written}
    assert (tmp_path / "results" / "test__sharp" / "1" / "HolidayRetrieval.json").is_file()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: embark.leaderboard(["Poket"]), "no task or benchmark named .Poket.. Did you mean Pocket"),
        (lambda: embark.leaderboard(include="none"), "no choice of results named .none."),  # type: ignore[arg-type]
        (lambda: embark.leaderboard(tasks="Holiday*").table(top=0), "At least 1 row"),
        (lambda: embark.leaderboard(tasks="Holiday*").tasks_table(top=-1), "At least 1 row"),
        (lambda: embark.compare("test/sharper", "test/dim"), "no model in the results folder"),
        (lambda: embark.evaluate([], "PocketFlagZeroShot"), "No model was chosen"),
        (lambda: embark.plan([], "PocketFlagZeroShot"), "No model was chosen"),
        (lambda: embark.analyze.geometry("embark/random", []), "No task was chosen"),
        (lambda: embark.analyze.mllm(table="no-such.csv"), "no-such.csv cannot be read: No such file"),
        (lambda: embark.recommend([], "MIEB(lite)"), "such as retrieval"),
        (lambda: embark.show(""), "no task, benchmark or model named ''"),
    ],
)
def test_what_is_misused_is_told_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(embark.EmbarkError, match=message):
        call()


def test_a_frame_without_results_has_its_columns() -> None:
    full = embark.load_results(tasks=OWN).to_frame()
    empty = embark.load_results(tasks="PocketNameSTS").to_frame()
    assert not len(empty)
    assert list(empty.columns) == list(full.columns)


def test_an_outline_prints_its_sums() -> None:
    report = embark.plan(tasks="CIFAR10ZeroShot")
    assert "1 task, by the rows' own counts" in str(report)
    assert "1 task, by the rows&#x27; own counts" in report._repr_html_()


def test_what_cannot_be_fetched_is_a_note(scored: embark.Settings) -> None:
    report = embark.fetch("CIFAR10ZeroShot", settings=replace(scored, offline=True), show_progress=False)
    assert list(report.problems.values()) == [["CIFAR10ZeroShot"]]
    assert report.notes == tuple(f"failed: CIFAR10ZeroShot: {why}" for why in report.problems)


def test_show_tells_own_results_on_built_in_tasks_too() -> None:
    assert set(embark.show("PocketFlagZeroShot")["results"]) == {
        "embark/random", "test/blind", "test/dim", "test/sharp"
    }  # fmt: skip
