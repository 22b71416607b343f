"""MIEB's tables by task are views of the scores that ship; Table 22's columns are a rule for anybody's results."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from embark import published
from embark.boards.leaderboards import leaderboard
from embark.boards.published_views import published_view, titles, views
from embark.boards.rules import RULES, summarize
from embark.cli import app
from embark.tables import Score
from embark.tasks import TASKS, get_benchmark
from embark.types import EmbarkError

E5V = "royokong/e5-v"
MIEB = "MIEB(Multilingual)"


def test_table_22_is_a_rule_that_gives_its_printed_columns() -> None:
    board = leaderboard(MIEB, rule="coarse-and-fine", models=E5V)
    [entry] = board.entries
    printed = {cell.name: cell.value for cell in published.cells("MIEB Table 22", E5V)}
    columns = entry.model.categories | {
        "Mean (m)": entry.model.totals["mean"], "Mean (en)": entry.model.totals["mean (en)"],
    }  # fmt: skip
    assert {name: round(score.value, 4) for name, score in columns.items()} == pytest.approx(printed, abs=1.1e-4)
    assert entry.model.mean.of == 125  # five tasks are not in Table 22
    assert "Fine Zero-shot" in board.table().columns


def test_the_rule_is_for_part_of_the_tasks_too_and_not_for_other_families() -> None:
    lite = leaderboard("MIEB(lite)", rule="coarse-and-fine").entries[0].model
    assert {"Coarse Linear Probing", "Fine Linear Probing"} <= lite.categories.keys()
    with pytest.raises(EmbarkError, match="This rule is not for UniBench"):
        leaderboard("UniBench", rule="coarse-and-fine")


def test_every_task_of_mieb_is_in_one_view() -> None:
    assert sorted(task.name for tasks in views().values() for task in tasks) == sorted(get_benchmark(MIEB).tasks)
    assert len(views()) == 12
    assert titles()["MIEB Coarse Linear Probing"] == "Main scores of 48 models on 9 tasks (Table 16)"


@pytest.mark.parametrize("name", ["MIEB Clustering", "MIEB Fine Zero-shot", "MIEB Visual STS (en)"])
def test_a_view_has_the_scores_that_ship_and_their_mean_is_table_22s(name: str) -> None:
    view = published_view(name)
    shipped = {(result.model, result.task): result.score for result in published.results(MIEB)}
    for model, scores in view.rows.items():
        for task, score in zip(view.columns, scores, strict=True):
            assert (score.value if score else None) == shipped.get((model, task))
    [cell] = [cell for cell in published.cells("MIEB Table 22", E5V) if cell.name == name.removeprefix("MIEB ")]
    means = {row.cells[0]: row.cells[1] for row in view.table().rows}
    mean = means[E5V]
    assert isinstance(mean, Score)
    assert mean.value == pytest.approx(cell.value, abs=1e-4)


def test_a_task_is_shown_by_language() -> None:
    view = published_view("XM3600T2IRetrieval")
    assert view.columns == tuple(TASKS["XM3600T2IRetrieval"].subsets)
    splits = published_view("STSBenchmarkMultilingualVisualSTS")
    assert {column.partition(", ")[0] for column in splits.columns} == {"dev", "test"}


def run(*words: str) -> str:
    ran = CliRunner().invoke(app, ["published", *words])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_the_command_lists_and_shows_them() -> None:
    assert "MIEB Vision-centric QA" in run("list", "--family", "MIEB")
    assert "MIEB Clustering" not in run("list", "--family", "ARK")
    assert json.loads(run("list", "--format", "json"))["MIEB Clustering"]["title"].endswith("5 tasks")
    assert run("show", "MIEB Clustering", "--format", "csv").startswith("model,mean,mean low,mean high,CIFAR10Clust")
    assert run("show", "MIEB Clustering", "-m", E5V, "--format", "csv").count("\n") == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: published_view("MIEB Clusterin"), "Did you mean MIEB Clustering"),
        (lambda: published_view("PocketNameSTS"), "No scores on PocketNameSTS are published"),
        (lambda: published_view("MIEB Clustering", "royokong/e5"), "Did you mean royokong/e5-v"),
    ],
)
def test_what_is_not_published_is_an_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        call()


def test_a_number_of_the_paper_leads_to_the_views() -> None:
    with pytest.raises(EmbarkError, match="Tables 9, 10 and 12 to 20 are views by name, as 'MIEB Clustering'"):
        published_view("MIEB Table 12")


def test_the_rule_leaves_its_tasks_out_of_all_columns() -> None:
    rule = RULES["coarse-and-fine"]
    tasks = TASKS.match(get_benchmark(MIEB).tasks)
    summary = summarize(rule, tasks, dict.fromkeys((task.name for task in tasks), 0.5))
    assert not {*rule.without} & {*summary.totals["mean"].weights}
    assert summary.groups["Retrieval"].of == 41
    assert summary.groups["Coarse Linear Probing"].of == 8
