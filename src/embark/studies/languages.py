"""Scores by language: every model on every language of multilingual tasks, and what a language costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include, load_results
from embark.boards.matrix import MIEB
from embark.catalogue import counted, group_values, listed
from embark.results import TaskResult
from embark.settings import Settings
from embark.stats.intervals import combined_interval
from embark.stats.means import ModelKey, by_model, mean, mean_score, short_names
from embark.studies.analysis import Analysis
from embark.studies.model_filter import results_of
from embark.studies.plotting import draw_heat, draw_series, legend_below
from embark.tables import Row, Score, Table, applicable, comparable, footnoted, short
from embark.tasks import Tasks, Wanted
from embark.types import EmbarkError

DRAWN_AS_POINTS = 8  # models that are drawn as points; more are a heat map
TOGETHER = 3  # languages that one subset may hold: a pair of languages, the forms of Norwegian
ALL = "mean over the tasks"
PARTIAL = "over {} of the {} tasks that have the language"


def languages(
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    include: Include = "all",
    settings: Settings | None = None,
) -> Languages:
    """The scores of models in each language, on tasks (default: MIEB's) that have subsets in several.

    `models` are names or patterns.
    """
    loaded = load_results(MIEB if tasks is None else tasks, include=include, settings=settings)
    results = results_of(models, loaded.results)
    multilingual = [task for task in loaded.tasks if len({*task.subsets.values()}) > 1]
    analysis = by_language(by_model(multilingual, results))
    return Languages(analysis.models, analysis.scores, notes=(*loaded.notes, *analysis.notes))


@dataclass(frozen=True)
class Languages(Analysis):
    """The scores of each task and language by model; a task "" is the mean over all that have the language."""

    models: tuple[str, ...]
    scores: Mapping[tuple[str, str], Mapping[str, Score]]

    @property
    def title(self) -> str:
        return "Scores by language" + (f": {self.tasks[0]}" if len(self.tasks) == 1 else f", {ALL} that have it")

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, without the mean over them."""
        return tuple(dict.fromkeys(task for task, _ in self.scores if task))

    @property
    def size(self) -> tuple[float, float]:
        rows = len(self._summary)
        return (
            (7.0, 1.6 + 0.2 * rows)
            if len(self.models) <= DRAWN_AS_POINTS
            else (4.5 + 0.3 * len(self.models), 2.5 + 0.2 * rows)
        )

    def table(self) -> Table:
        """A row for each language of a task, best first, and a column for each model; then the mean over the tasks."""
        rows = [
            Row((language, *map(scores.get, self.models)), task or ALL)
            for (task, language), scores in self.scores.items()
        ]
        several = len(self.tasks) > 1
        notes = {
            "Points of each task's main score, with 95 % intervals where they are known.": True,
            "Languages differ in the tasks that have them: compare languages within a task.": several,
        }
        return footnoted(Table(("language", *self.models), tuple(rows), applicable(notes)), PARTIAL)

    def draw(self, figure: Any) -> None:
        """Few models as points with intervals, a line for each language; many as a heat map."""
        axes = figure.subplots()
        summary = self._summary
        if len(self.models) > DRAWN_AS_POINTS:
            values = [
                [100 * scores[m].value if m in scores else np.nan for m in self.models] for scores in summary.values()
            ]
            colored = np.array([comparable([*map(scores.get, self.models)]) for scores in summary.values()])
            models = [short(model, 30) for model in self.models]
            draw_heat(axes, np.array(values), list(summary), models, colored=colored)
            return
        rows = {-float(row): scores for row, scores in enumerate(summary.values())}
        points = {m: {row: scores[m] for row, scores in rows.items() if m in scores} for m in self.models}
        draw_series(axes, {short(model, 34): scores for model, scores in points.items()})
        axes.set_yticks(range(0, -len(summary), -1), list(summary), fontsize=7)
        axes.margins(y=1 / (2 + len(summary)))
        axes.set(xlabel="score (points)")
        legend_below(figure, *axes.get_legend_handles_labels()[::-1])

    @property
    def _summary(self) -> dict[str, Mapping[str, Score]]:
        """The scores by language: the means over tasks, or those of the only task."""
        task = "" if len(self.tasks) > 1 else self.tasks[0]
        return {language: scores for (name, language), scores in self.scores.items() if name == task}


def by_language(results: Mapping[ModelKey, Mapping[str, TaskResult]]) -> Languages:
    """The scores of each task's records by language and model; best models and languages come first."""
    scores: dict[tuple[str, str, str], Score] = {}  # by task, language, model
    unsplit: list[tuple[str, str]] = []  # tasks and models of results that have one score for several languages
    for model, model_results in zip(short_names(list(results)), results.values(), strict=True):
        for task, result in model_results.items():
            records = group_values((record.languages, record) for record in result.records)
            if any(len(languages) > TOGETHER for languages in records):
                unsplit.append((task, model))
                continue
            for languages, group in records.items():
                values = [record.score for record in group]
                ends = combined_interval(values, [record.interval for record in group])
                scores[task, " + ".join(languages), model] = Score(fmean(values), *ends)
    if not scores:
        raise EmbarkError("No result has scores in several languages: choose tasks that have subsets by language.")
    scores = _without_scripts(scores)
    tasks = [*dict.fromkeys(task for task, _, _ in scores)]
    if len(tasks) > 1:
        scores |= _means_over_tasks(scores)
        tasks.append("")
    rows: dict[tuple[str, str], dict[str, Score]] = {}
    for (task, language, model), score in scores.items():
        rows.setdefault((task, language), {})[model] = score
    values_by_model = group_values((model, score.value) for (_, _, model), score in scores.items())
    models = sorted(values_by_model, key=lambda model: (-len(values_by_model[model]), -fmean(values_by_model[model])))

    def place(row: tuple[str, str]) -> tuple[int, float]:
        return tasks.index(row[0]), -fmean(score.value for score in rows[row].values())

    names = [f"{task} ({counted(len(models), 'model')})" for task, models in group_values(unsplit).items()]
    notes = (f"left out, one score for several languages: {listed(names)}",) if names else ()
    return Languages(tuple(models), {row: rows[row] for row in sorted(rows, key=place)}, notes=notes)


def _means_over_tasks(scores: Mapping[tuple[str, str, str], Score]) -> dict[tuple[str, str, str], Score]:
    """The mean of each model in each language over the tasks that have the language, as those of a task ""."""
    pairs = dict.fromkeys((language, task) for task, language, _ in scores)
    tasks = group_values(pairs)
    means = {}
    for language, model in dict.fromkeys(key[1:] for key in scores):
        by_task = {task: scores[key] for task in tasks[language] if (key := (task, language, model)) in scores}
        values = {task: score.value for task, score in by_task.items()}
        means["", language, model] = mean_score(mean(tasks[language], values), by_task)
    return means


def _without_scripts(scores: Mapping[tuple[str, str, str], Score]) -> dict[tuple[str, str, str], Score]:
    """The scores with languages by their codes alone (deu for deu-Latn), unless there are several scripts of one."""
    labels = {language for _, language, _ in scores}
    codes = {label: " + ".join(name.split("-")[0] for name in label.split(" + ")) for label in labels}
    scripts = Counter(codes[label] for label in labels if label != codes[label])
    return {
        (task, codes[language] if scripts[codes[language]] < 2 else language, model): score
        for (task, language, model), score in scores.items()
    }
