"""Scores by language: by hand, and on a task that has several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import embark
from embark.boards.leaderboards import rank_models
from embark.results import Record, TaskResult
from embark.site.plot_data import plot_data
from embark.studies.languages import by_language
from embark.tasks import TASKS
from embark.types import EmbarkError


def result(model: str, task: str, scores: dict[tuple[str, ...], float]) -> TaskResult:
    records = tuple(
        Record(model, "1", task, "test", str(group), group, "accuracy", score, (score - 0.1, score + 0.1), {}, "", "")
        for group, score in scores.items()
    )
    mean = sum(scores.values()) / len(scores)
    return TaskResult(model, "1", task, "1", records, mean, (mean, mean), 0.0)


def results(*each: TaskResult) -> dict[tuple[str, str, str], dict[str, TaskResult]]:
    models: dict[tuple[str, str, str], dict[str, TaskResult]] = {}
    for one in each:
        models.setdefault((one.model, "1", "embark"), {})[one.task] = one
    return models


def test_languages_by_hand(tmp_path: Path) -> None:
    study = by_language(
        results(
            result("a", "One", {("deu-Latn",): 0.4, ("eng-Latn",): 0.8}),
            result("a", "Two", {("deu",): 0.2, ("zho-Hans",): 0.6, ("zho-Hant",): 0.5}),
            result("b", "One", {("deu-Latn",): 0.6, ("eng-Latn",): 0.9}),
            result("b", "All", {("deu", "eng", "fra", "spa"): 0.5}),  # one score for all languages
        )
    )
    assert study.models == ("a", "b")  # those with most scores first
    assert study.scores["One", "deu"]["b"].value == 0.6
    mean = study.scores["", "deu"]["a"]
    assert (mean.value, mean.count, mean.of) == (pytest.approx(0.3), 2, 2)
    assert study.scores["", "deu"]["b"].partial
    assert ("Two", "zho-Hans") in study.scores  # two scripts of one language
    assert [language for task, language in study.scores if task == "One"] == ["eng", "deu"]  # best first
    assert study.notes == ("left out, one score for several languages: All (1 model)",)
    assert "compare languages within a task" in str(study)
    study.plot(tmp_path / "languages.svg")
    many = by_language(results(*(result(f"m{n}", "One", {("deu",): 0.1, ("eng",): 0.01 * n}) for n in range(9))))
    many.plot(tmp_path / "many.svg")
    assert "Scores by language: One" in (tmp_path / "many.svg").read_text()
    with pytest.raises(EmbarkError, match="subsets by language"):
        by_language({})


def test_a_mean_over_other_tasks_has_a_number_and_no_color() -> None:
    from matplotlib.figure import Figure

    of_models = [
        result(f"m{n}", task, {("deu",): 0.5 + n / 20, ("eng",): 0.4 + n / 20})
        for n in range(9)
        for task in ("One", "Two")
        if (n, task) != (8, "Two")
    ]
    study = by_language(results(*of_models))
    figure = Figure()
    study.draw(figure)
    [axes] = figure.axes
    shades = np.ma.getmaskarray(np.ma.masked_invalid(axes.images[0].get_array()))
    assert [label.get_text() for label in axes.get_xticklabels()][-1] == study.models[-1] == "m8"
    assert shades[:, -1].all()
    assert not shades[:, :-1].any()
    assert sum(text.get_text() == "90" for text in axes.texts) == 1  # m8 has 90 points of German on one task
    row = replace(next(iter(TASKS.values())), family="Test", tags={})
    tasks = [replace(row, name=name) for name in ("One", "Two")]
    shown = plot_data(rank_models(tasks, of_models[-5:]), {})["languages"]
    assert [row["covered"] for row in shown["rows"]] == [["", "", "1/2"]] * 2


def test_languages_of_published_scores() -> None:
    frame = embark.analyze.languages(tasks="XM3600T2IRetrieval", models="*siglip-so400m-patch14-384").to_frame()
    assert {"eng", "deu", "tel"} <= {*frame["language"]}
    assert len(frame) == 36
