"""Scores by language: every model on every language of multilingual tasks, and what a language costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from embark.boards.comparable_results import Include, load_results
from embark.boards.matrix import MIEB
from embark.catalogue import counted, group_values, listed, match_words
from embark.results import TaskResult
from embark.results.table import Row, Score, Table, applicable, comparable, footnoted, short
from embark.settings import Settings
from embark.stats.intervals import combined_interval
from embark.stats.means import ModelKey, by_model, short_names
from embark.studies.analysis import Analysis
from embark.studies.plotting import COLORS, MARKERS, draw_heat, legend_below
from embark.tasks import Tasks, Wanted
from embark.types import EmbarkError

FEW = 8  # models that are drawn as points; more are a heat map
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
    known = {result.model for result in loaded.results}
    wanted = match_words("model with results", known, models) if known else None
    results = [result for result in loaded.results if wanted is None or result.model in wanted]
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
        return (7.0, 1.6 + 0.2 * rows) if len(self.models) <= FEW else (4.5 + 0.3 * len(self.models), 2.5 + 0.2 * rows)

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
        if len(self.models) > FEW:
            values = [
                [100 * scores[m].value if m in scores else np.nan for m in self.models] for scores in summary.values()
            ]
            colored = np.array([comparable([*map(scores.get, self.models)]) for scores in summary.values()])
            models = [short(model, 30) for model in self.models]
            draw_heat(axes, np.array(values), list(summary), models, colored=colored)
            return
        for number, model in enumerate(self.models):
            offset = 0.16 * ((len(self.models) - 1) / 2 - number) * min(1, 3 / len(self.models))
            own = [(offset - row, scores[model]) for row, scores in enumerate(summary.values()) if model in scores]
            color = COLORS[number % len(COLORS)]
            rows = [row for row, _ in own]
            axes.hlines(rows, [100 * s.low for _, s in own], [100 * s.high for _, s in own], color=color, lw=1)
            axes.plot(
                [100 * s.value for _, s in own],
                rows,
                MARKERS[number % len(MARKERS)],
                ms=3.5,
                color=color,
                label=short(model, 34),
            )
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
    cells: dict[tuple[str, str, str], Score] = {}  # by task, language, model
    whole: list[tuple[str, str]] = []  # tasks and models of results that do not tell languages apart
    for model, of_model in zip(short_names(list(results)), results.values(), strict=True):
        for task, result in of_model.items():
            records = group_values((record.languages, record) for record in result.records)
            if any(len(group) > TOGETHER for group in records):
                whole.append((task, model))
                continue
            for group, of_group in records.items():
                cells[task, " + ".join(group), model] = _mean([(record.score, record.interval) for record in of_group])
    if not cells:
        raise EmbarkError("No result has scores in several languages: choose tasks that have subsets by language.")
    cells = _without_scripts(cells)
    tasks = dict.fromkeys(task for task, _, _ in cells)
    if len(tasks) > 1:
        having = group_values((language, task) for task, language in dict.fromkeys(key[:2] for key in cells))
        of_cell = group_values(((language, model), (task, score)) for (task, language, model), score in cells.items())
        for (language, model), scores in of_cell.items():
            mean = _mean([(score.value, (score.low, score.high)) for _, score in scores])
            over = frozenset(task for task, _ in scores)
            cells["", language, model] = replace(mean, count=len(scores), of=len(having[language]), over=over)
    rows: dict[tuple[str, str], dict[str, Score]] = {}
    for (task, language, model), score in cells.items():
        rows.setdefault((task, language), {})[model] = score
    by_model = group_values((model, score.value) for (_, _, model), score in cells.items())
    models = sorted(by_model, key=lambda model: (-len(by_model[model]), -fmean(by_model[model])))
    order = {task: number for number, task in enumerate((*tasks, ""))}

    def place(row: tuple[str, str]) -> tuple[int, float]:
        return order[row[0]], -fmean(score.value for score in rows[row].values())

    models_by_task = group_values(whole)
    untold = [f"{task} ({counted(len(of_task), 'model')})" for task, of_task in models_by_task.items()]
    notes = (f"left out, languages are not told apart: {listed(untold)}",) if untold else ()
    return Languages(tuple(models), {row: rows[row] for row in sorted(rows, key=place)}, notes=notes)


def _without_scripts(cells: Mapping[tuple[str, str, str], Score]) -> dict[tuple[str, str, str], Score]:
    """The scores with languages by their codes alone (deu for deu-Latn), unless there are several scripts of one."""
    labels = {language for _, language, _ in cells}
    codes = {label: " + ".join(name.split("-")[0] for name in label.split(" + ")) for label in labels}
    scripts = Counter(codes[label] for label in labels if label != codes[label])
    return {
        (task, codes[language] if scripts[codes[language]] < 2 else language, model): score
        for (task, language, model), score in cells.items()
    }


def _mean(scores: Sequence[tuple[float, tuple[float, float]]]) -> Score:
    values = [value for value, _ in scores]
    return Score(fmean(values), *combined_interval(values, [ends for _, ends in scores]))
