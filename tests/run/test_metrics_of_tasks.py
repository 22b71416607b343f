"""The metric of a task: any cut-off is scored, and an unknown measure is refused before a model is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark import folder_task
from embark.cli import app
from embark.types import EmbarkError

Pictures = Callable[..., Path]
RANKED = "'retrieval' has no measure '{}'; it has ndcg_at_k, map_at_k, recall_at_k, precision_at_k, "

FILE = """
[[task]]
name = "Pages"
evaluator = "{evaluator}"
reader = "labelled"
metric = "{metric}"
modalities = ["text", "image"]
columns = {{ image = "file", label = "label" }}
source = {{ id = "Pages", files = {{ test = ["metadata.csv"] }} }}
"""


@pytest.fixture
def unloadable(tmp_path: Path) -> str:
    """A checkpoint whose loading fails: an error about anything else was raised before."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "hidden_size"')
    return str(folder)


@pytest.mark.parametrize("metric", ["recall_at_0", "recall", "auc", "nmi"])
def test_a_metric_that_the_evaluator_lacks_is_refused_before_the_model_is_loaded(
    metric: str, unloadable: str, pictures: Pictures
) -> None:
    pages = [replace(task, metric=metric) for task in folder_task(pictures(), kinds="retrieval")]
    for command in (embark.evaluate, embark.plan):
        with pytest.raises(EmbarkError) as raised:
            command(unloadable, pages, show_progress=False)
        assert str(raised.value).startswith(f"Task {pages[0].name} cannot be scored. {RANKED.format(metric)}")


def test_a_parameter_that_the_evaluator_lacks_is_refused_before_the_model_is_loaded(
    unloadable: str, pictures: Pictures
) -> None:
    pages = [replace(task, params={"shots": 3}) for task in folder_task(pictures(), kinds="retrieval")]
    with pytest.raises(EmbarkError, match="There is no parameter of 'retrieval' named 'shots'"):
        embark.evaluate(unloadable, pages, show_progress=False)


@pytest.mark.parametrize(
    ("evaluator", "metric", "has"),
    [
        ("zeroshot", "ndcg_at_5", "it has accuracy, top5_accuracy."),
        ("clustering", "accuracy", "it has nmi, v_measure, ari, cluster_accuracy."),
    ],
)
def test_a_wrong_metric_in_a_file_is_refused_with_its_place(
    evaluator: str, metric: str, has: str, unloadable: str, tmp_path: Path, pictures: Pictures
) -> None:
    pictures()
    file = tmp_path / "tasks.toml"
    file.write_text(FILE.format(evaluator=evaluator, metric=metric))
    message = f"task Pages: field 'metric': '{evaluator}' has no measure '{metric}'; {has}"
    with pytest.raises(EmbarkError, match=re.escape(message)):
        embark.load_tasks(file)
    ran = CliRunner().invoke(app, ["run", "-m", unloadable, "--tasks-file", str(file)])
    assert ran.exit_code != 0
    assert message in " ".join(str(ran.exception).split())


def test_a_wrong_parameter_in_a_file_is_refused_with_its_place(tmp_path: Path, pictures: Pictures) -> None:
    pictures()
    file = tmp_path / "tasks.toml"
    file.write_text(FILE.format(evaluator="probe", metric="accuracy") + "params = { shot = 3 }\n")
    message = r"task Pages: field 'params': There is no parameter of 'probe' named 'shot'\. Did you mean shots\?"
    with pytest.raises(EmbarkError, match=message):
        embark.load_tasks(file)


def test_a_task_of_a_table_in_memory_has_a_metric_of_its_evaluator() -> None:
    rows = [{"text": "red", "other": "rot"}, {"text": "green", "other": "grün"}, {"text": "blue", "other": "blau"}]
    columns = {"query_text": "text", "corpus_text": "other"}
    assert embark.task(rows, "retrieval", columns, metric="recall_at_2").metric == "recall_at_2"
    with pytest.raises(EmbarkError, match="'retrieval' has no measure 'recall_at_0'; it has ndcg_at_k, "):
        embark.task(rows, "retrieval", columns, metric="recall_at_0")


def test_a_task_is_scored_at_the_cutoff_of_its_metric(tiny: embark.Encoder, pictures: Pictures) -> None:
    [pages] = folder_task(pictures(), kinds="retrieval")
    usual, deeper = replace(pages, name="Usual"), replace(pages, name="AtTwo", metric="recall_at_2")
    first, second = embark.evaluate(tiny, [usual, deeper], show_progress=False).results
    assert (second.metric, second.score) == ("recall_at_2", second.records[0].metrics["recall_at_2"])
    assert second.interval[0] <= second.score <= second.interval[1]
    assert set(second.records[0].metrics) - set(first.records[0].metrics) == {
        f"{name}_at_2" for name in ("ndcg", "map", "recall", "precision", "mrr", "hit_rate", "success")
    }
    shared = first.records[0].metrics
    assert {name: second.records[0].metrics[name] for name in shared} == shared
