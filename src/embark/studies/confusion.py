"""Classification class by class: precision, recall, and which classes are taken for which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.catalogue import counted, listed
from embark.results import PREDICTED, TaskResult
from embark.settings import Settings
from embark.stats.intervals import mean_interval
from embark.studies.analysis import Analysis
from embark.studies.outcomes import columns_of, read_outcomes
from embark.studies.plotting import draw_heat
from embark.tables import Exact, Row, Score, Table, applicable, short
from embark.tasks import Tasks, Wanted
from embark.types import Array

PANELS = 4  # drawn side by side
CLASSES = 30  # drawn of each; of more, those with most errors


def confusion(
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    matrix: bool = False,
    settings: Settings | None = None,
) -> Confusion:
    """Zero-shot and probe tasks of your own runs class by class, from the outcomes of their items.

    `models` are names or patterns. With `matrix`, the table has the cells of the confusion matrix instead of a line per
    class. Published scores have no outcomes.
    """
    parts, notes = read_outcomes(classes_of, "classes", "zero-shot and probe", tasks, models, settings)
    return Confusion(parts, matrix, notes=notes)


@dataclass(frozen=True)
class ClassScores:
    """One class: its items, how many of them are right, how many predictions of it are, and F1."""

    name: str
    items: int
    recall: Score
    precision: Score
    f1: float
    taken_for: tuple[str, float] | None  # the class that most of its other items get, and how many


@dataclass(frozen=True)
class Classified:
    """A model's predictions on a task: `counts[i, j]` items of classes[i] get classes[j], in the mean of runs."""

    model: str
    task: str
    classes: tuple[str, ...]
    counts: Array
    right: Array  # by item: the share of runs that are right
    label: Array  # by item: the position of its class

    def scores(self) -> Iterator[ClassScores]:
        """Every class that has items, those with the lowest recall first."""
        predicted = self.counts.sum(axis=0)
        recalls = {row: float(self.right[self.label == row].mean()) for row in np.unique(self.label).tolist()}
        for row in sorted(recalls, key=lambda row: (recalls[row], self.classes[row])):
            hits = float(self.counts[row, row])
            items = int(self.counts[row].sum().round())
            recall = Score(recalls[row], *mean_interval(self.right[self.label == row]))
            outcomes = np.repeat([1.0, 0.0], [round(hits), round(predicted[row] - hits)])
            ends = mean_interval(outcomes) if len(outcomes) and self.one_run else (np.nan, np.nan)
            precision = Score(hits / predicted[row] if predicted[row] else 0.0, *ends)
            others = self.counts[row] * (np.arange(len(self.classes)) != row)
            worst = int(others.argmax())
            taken_for = (self.classes[worst], float(others[worst])) if others[worst] else None
            f1 = 2 * hits / (items + float(predicted[row]))
            yield ClassScores(self.classes[row], items, recall, precision, f1, taken_for)

    @property
    def one_run(self) -> bool:
        """Whether there was one run, so that counts are numbers of items."""
        return bool((self.counts == self.counts.round()).all())


@dataclass(frozen=True)
class Confusion(Analysis):
    """Tasks class by class, for several models."""

    parts: tuple[Classified, ...]
    matrix: bool = False

    @property
    def title(self) -> str:
        return "Items of each class (rows, in percent) by the class they get (columns)"

    @property
    def size(self) -> tuple[float, float]:
        panels = self.parts[:PANELS]
        sides = [1.6 + 0.26 * max(min(len(part.classes), CLASSES), 6) for part in panels]
        return max(6.5, sum(side + 1.2 for side in sides)), max(sides) + 1.2

    def table(self) -> Table:
        """A row for each class, or with `matrix` for each pair of a class and one that it is taken for."""
        if self.matrix:
            return Table(("class", "taken for", "items", "share"), tuple(self._cells()))
        rows = []
        for part in self.parts:
            for scores in part.scores():
                name, count = scores.taken_for or ("", 0.0)
                most = Exact(name, f"{name} ({count:.3g})" if name else "")
                cells = (scores.name, scores.items, scores.recall, scores.precision, _share(scores.f1), most)
                rows.append(Row(cells, f"{part.model} · {part.task}"))
        columns = ("class", "items", "recall", "precision", "F1", "most often taken for")
        runs = any(not part.one_run for part in self.parts)
        counts = listed([f"{part.task} {len(part.label):,}" for part in self.parts[:PANELS]])
        notes = {f"Items: {counts}.": True, "Predictions of probes are means over their runs.": runs}
        return Table(columns, tuple(rows), applicable(notes), models="rows")

    def _cells(self) -> Iterator[Row]:
        for part in self.parts:
            for row, column in np.argwhere(part.counts > 0).tolist():
                count = float(part.counts[row, column])
                share = count / float(part.counts[row].sum())
                names = (part.classes[row], part.classes[column])
                yield Row((*names, Exact(count, f"{count:.4g}"), _share(share)), f"{part.model} · {part.task}")

    def draw(self, figure: Any) -> None:
        """A confusion matrix for each model and task, as shares of each class."""
        panels = self.parts[:PANELS]
        for axes, part in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            classes = _most_confused(part)
            counts = part.counts[np.ix_(classes, classes)]
            shares = 100 * counts / np.maximum(part.counts[classes].sum(axis=1, keepdims=True), 1e-9)
            shown = [short(part.classes[i], 22) for i in classes]
            draw_heat(axes, shares, shown, shown, blank=0.5, ends=(0, 100))
            axes.set_aspect("equal")
            count = f" ({CLASSES} of {len(part.classes)} classes)" if len(classes) < len(part.classes) else ""
            axes.set_xlabel(f"{short(part.model, 30)}\n{short(part.task, 30)}{count}", fontsize=8)
        if len(self.parts) > PANELS:
            figure.text(0.01, 0.01, f"and {counted(len(self.parts) - PANELS, 'matrix')} more", fontsize=7)


def classes_of(result: TaskResult) -> Classified | None:
    """The predictions that a result's outcomes hold by name; None where they hold none."""
    columns = columns_of(result)
    runs = [name for name in columns if re.fullmatch(PREDICTED, name)]
    if "label" not in columns or not runs:
        return None
    predicted = np.array([columns[name] for name in runs]).astype(np.str_)
    return classified(result.model, result.task, columns["label"].astype(np.str_), predicted)


def classified(model: str, task: str, label: Array, predicted: Array) -> Classified:
    """The confusion matrix of the true class of each item, and the classes that it gets: (runs, items)."""
    classes, positions = np.unique(np.concatenate([label, *predicted]), return_inverse=True)
    positions = positions.reshape(-1, len(label))
    counts = np.zeros((len(classes), len(classes)))
    for run in positions[1:]:
        np.add.at(counts, (positions[0], run), 1 / len(predicted))
    right = (positions[1:] == positions[0]).mean(axis=0)
    return Classified(model, task, tuple(classes.tolist()), counts, right, positions[0])


def _most_confused(part: Classified) -> Sequence[int]:
    """The classes to draw: all, or those with most errors, in their order."""
    errors = part.counts.sum(axis=0) + part.counts.sum(axis=1) - 2 * np.diag(part.counts)
    return sorted(np.argsort(-errors, kind="stable")[:CLASSES].tolist())


def _share(value: float) -> Score:
    return Score(value, np.nan, np.nan)
