"""Embedding scores beside a table from elsewhere: does a good encoder make a good multimodal LLM (MIEB, 6.2)?"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from embark.boards.matrix import Matrix, grouped
from embark.results.table import Row, Table, short
from embark.studies.correlate import Agreement, agreement
from embark.studies.draw import some
from embark.studies.study import Study
from embark.types import EmbarkError

FEWEST = 3
Outside = Mapping[str, Mapping[str, float]]  # measure → model → value


@dataclass(frozen=True)
class Compared:
    """Correlations of a benchmark's groups with each outside measure, over the models in both."""

    by: str
    kind: str
    measures: tuple[str, ...]
    groups: tuple[str, ...]
    found: Mapping[tuple[str, str], Agreement]
    unmatched: tuple[str, ...]

    def study(self) -> Study:
        """Groups × measures, each with its interval and number of models; a heat map."""
        rows = []
        for measure in self.measures:
            cells = [(group, self.found[group, measure]) for group in self.groups if (group, measure) in self.found]
            for group, one in sorted(cells, key=lambda cell: -cell[1].value):
                rows.append(Row((group, one.value, one.low, one.high, one.n), measure))
        notes = [f"{self.kind.capitalize()} r of a {self.by}'s mean score and the measure; 95 %, models resampled."]
        if any(one.n < 10 for one in self.found.values()):
            notes.append("With so few models an interval this wide says: more are needed.")
        if self.unmatched:
            notes.append(f"No scores on all tasks of a {self.by} here for: {some(self.unmatched)}.")
        size = (2.6 + 0.95 * max(len(self.measures), 4), 1.4 + 0.36 * len(self.groups))
        title = "Embedding scores and the outside table"
        return Study(title, Table((self.by, "r", "low", "high", "models"), tuple(rows), tuple(notes)), self._draw, size)

    def _draw(self, figure: Any) -> None:
        axes = figure.subplots()
        values = np.full((len(self.groups), len(self.measures)), np.nan)
        for (group, measure), one in self.found.items():
            values[self.groups.index(group), self.measures.index(measure)] = one.value
        image = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        for (group, measure), one in self.found.items():
            where = self.measures.index(measure), self.groups.index(group)
            ink = "white" if abs(one.value) > 0.65 else "black"
            axes.text(*where, f"{one.value:.2f}", ha="center", va="center", fontsize=8, color=ink)
        axes.set_xticks(range(len(self.measures)), [short(name, 16) for name in self.measures], rotation=30, ha="right")
        axes.set_yticks(range(len(self.groups)), [short(name, 30) for name in self.groups])
        axes.grid(False)
        figure.colorbar(image, ax=axes, label=f"{self.kind.capitalize()} r")


def outside(matrix: Matrix, table: Outside, by: str = "category", kind: str = "pearson") -> Compared:
    """Correlate each group's mean with each measure, over the models that have both."""
    row = _rows(matrix.models, dict.fromkeys(model for values in table.values() for model in values))
    found, used = {}, set()
    groups = grouped(matrix.tasks, by)
    for group, columns in groups.items():
        mean = matrix.values[:, columns].mean(axis=1)
        for measure, values in table.items():
            models = [model for model in values if model in row and not np.isnan(mean[row[model]])]
            used.update(models)
            if len(models) >= FEWEST:
                x = np.array([mean[row[model]] for model in models])
                found[group, measure] = agreement(x, np.array([values[model] for model in models]), kind)
    if not found:
        raise EmbarkError(
            f"Fewer than {FEWEST} models of the table have scores here. Its first column must hold models' names as "
            "`embark leaderboard` prints them."
        )
    unmatched = dict.fromkeys(model for values in table.values() for model in values if model not in used)
    groups_found = tuple(group for group in groups if any(group == name for name, _ in found))
    return Compared(by, kind, tuple(dict.fromkeys(name for _, name in found)), groups_found, found, tuple(unmatched))


def read(path: Path) -> dict[str, dict[str, float]]:
    """A CSV: the first column names models, every other is a measure; an empty cell is no score."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            lines = [(reader.line_num, cells) for line in reader if any(cells := [cell.strip() for cell in line])]
    except UnicodeDecodeError as error:
        raise EmbarkError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8."
        ) from error
    if len(lines) < 2 or len(lines[0][1]) < 2:
        raise EmbarkError(f"{path} needs a header line, a first column of models, and a column of scores at least.")
    (_, (_, *names)), *rows = lines
    for at, name in enumerate(names):
        if name and name in names[:at]:
            raise EmbarkError(f"{path}: columns {names.index(name) + 2} and {at + 2} are both named '{name}'.")
    table: dict[str, dict[str, float]] = {name: {} for name in names if name}
    seen: dict[str, int] = {}
    for number, (model, *cells) in rows:
        if (other := seen.setdefault(model, number)) != number:
            raise EmbarkError(f"{path}: lines {other} and {number} are both about '{model}'.")
        for name, cell in zip_longest(names, cells, fillvalue=""):
            if cell and not name:
                raise EmbarkError(f"{path}, line {number}: '{cell}' stands in a column without a name.")
            if cell:
                table[name][model] = _number(cell, path, number, name)
    return table


def _rows(models: Sequence[str], names: Iterable[str]) -> dict[str, int]:
    """Which model each name of a table means, in full or without its organisation; other names are left out."""
    found: dict[int, str] = {}
    for name in names:
        meant = [at for at, model in enumerate(models) if model == name]
        meant = meant or [at for at, model in enumerate(models) if short(model, 99) == name]
        if len(meant) > 1:
            raise EmbarkError(
                f"'{name}' in the table may be {models[meant[0]]} or {models[meant[1]]}: write it in full."
            )
        if meant and (other := found.setdefault(meant[0], name)) != name:
            raise EmbarkError(f"The table has {models[meant[0]]} twice: as '{other}' and as '{name}'.")
    return {name: at for at, name in found.items()}


def _number(cell: str, path: Path, line: int, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise EmbarkError(f"{path}, line {line}: '{cell}' under '{column}' is not a number.")
    return value
