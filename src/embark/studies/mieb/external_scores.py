"""Embedding scores compared with a table from elsewhere: does a good encoder make a good multimodal LLM (MIEB, 6.2)?"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from embark import published
from embark.boards.comparable_results import Include
from embark.boards.matrix import Matrix, load_matrix
from embark.catalogue import listed
from embark.settings import Settings
from embark.studies.analysis import Analysis
from embark.studies.correlate import OVER_MODELS, Agreement, agreement
from embark.studies.model_filter import FEWEST_MODELS, group_means
from embark.studies.plotting import draw_heat
from embark.tables import Row, Table, applicable, rounded, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks
from embark.types import EmbarkError

ExternalScores = Mapping[str, Mapping[str, float]]  # measure → model → value


def mllm(
    tasks: Tasks = None,
    *,
    table: Path | str | ExternalScores | None = None,
    by: str = "category",
    correlation: str = "pearson",
    include: Include = "all",
    settings: Settings | None = None,
) -> ExternalCorrelations:
    """Correlate embedding scores with those of multimodal LLMs built on the encoders, or with any other table.

    `table` is a CSV file (a column of models, then a column for each measure) or {measure: {model: value}}; without
    one, Cambrian-1's scores of multimodal LLMs on 16 benchmarks, as in MIEB's Figure 4.
    """
    matrix = load_matrix(tasks, include=include, settings=settings)
    if table is not None:
        measures = read_external_scores(Path(table)) if isinstance(table, (str, Path)) else table
        return correlate_external(matrix, measures, by, correlation)
    shipped = published.mllm_scores()
    near = f"Other resolutions of these encoders were used there: {listed([*map(short, shipped.near)])}."
    analysis = correlate_external(matrix, shipped.scores, by, correlation)
    return replace(analysis, source=f"Scores of multimodal LLMs on frozen encoders: {shipped.source}. {near}")


@dataclass(frozen=True)
class ExternalCorrelations(Analysis):
    """Correlations of a benchmark's groups with each external measure, over the models in both."""

    by: str
    correlation: str
    measures: tuple[str, ...]
    groups: tuple[str, ...]
    values: Mapping[tuple[str, str], Agreement]  # by group and measure
    unmatched: tuple[str, ...]  # models of the external table without scores here
    source: str = ""  # of the table, if it is the one that is shipped

    @property
    def title(self) -> str:
        return f"Embedding scores and {'multimodal LLMs' if self.source else 'the outside table'}"

    @property
    def size(self) -> tuple[float, float]:
        return min(2.6 + 0.95 * max(len(self.measures), 4), PAGE), 1.6 + 0.3 * len(self.groups)

    def table(self) -> Table:
        """One line per group and measure, each with its interval and number of models."""
        rows = []
        for measure in self.measures:
            cells = [(group, self.values[group, measure]) for group in self.groups if (group, measure) in self.values]
            cells.sort(key=lambda cell: -cell[1].value)
            rows += [Row((group, *astuple(r)), measure) for group, r in cells]
        name = self.correlation.capitalize()
        counts = sorted({r.n for r in self.values.values()})
        models = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        unmatched = listed([*map(short, self.unmatched)], 3)
        notes = {
            f"{name} r of a {self.by}'s mean score and the measure over {models} models; {OVER_MODELS}.": True,
            self.source: self.source,
            "Drawn in bold: the interval is on one side of zero.": True,
            "With so few models an interval this wide says: more are needed.": counts[0] < 10,
            f"No scores on all tasks of a {self.by} here for: {unmatched}.": self.unmatched,
        }
        return Table((self.by, "r", "low", "high", "models"), tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """A heat map of groups × measures; numbers in bold where the interval is on one side of zero."""
        axes = figure.subplots()
        cells = [[self.values.get((group, measure)) for measure in self.measures] for group in self.groups]
        values = np.array([[r.value if r else np.nan for r in line] for line in cells])
        names = [short(name, 16) for name in self.measures]
        groups = [short(name, 30) for name in self.groups]
        image = draw_heat(axes, values, groups, names, ends=(-1, 1), cmap="RdBu_r", text=_short_number)
        certain = [r.low > 0 or r.high < 0 for line in cells for r in line if r]
        for number, text in zip(certain, axes.texts, strict=True):
            text.set_fontweight("bold" if number else "normal")
        figure.colorbar(image, ax=axes, label=f"{self.correlation.capitalize()} r")


def _short_number(value: float) -> str:
    """A correlation as it stands in a cell beside many others: .43, −.07, 1.00."""
    return rounded(value, 2).replace("0.", ".")


def correlate_external(
    matrix: Matrix, table: ExternalScores, by: str = "category", correlation: str = "pearson"
) -> ExternalCorrelations:
    """Correlate each group's mean with each measure, over the models that have both."""
    external_models = dict.fromkeys(model for values in table.values() for model in values)
    row_of = _rows(matrix.models, external_models)
    correlations: dict[tuple[str, str], Agreement] = {}
    matched: set[str] = set()
    for group, mean in group_means(matrix, by).items():
        for measure, values in table.items():
            models = [model for model in values if model in row_of and not np.isnan(mean[row_of[model]])]
            matched.update(models)
            if len(models) >= FEWEST_MODELS:
                x = np.array([mean[row_of[model]] for model in models])
                y = np.array([values[model] for model in models])
                correlations[group, measure] = agreement(x, y, correlation)
    if not correlations:
        raise EmbarkError(
            f"Fewer than {FEWEST_MODELS} models of the table have scores here. Its first column must hold models' "
            "names as `embark leaderboard` prints them."
        )
    return ExternalCorrelations(
        by,
        correlation,
        measures=tuple(dict.fromkeys(measure for _, measure in correlations)),
        groups=tuple(dict.fromkeys(group for group, _ in correlations)),
        values=correlations,
        unmatched=tuple(model for model in external_models if model not in matched),
        notes=matrix.notes,
    )


def read_external_scores(path: Path) -> dict[str, dict[str, float]]:
    """A CSV: the first column names models, every other is a measure; an empty cell is no score."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            lines = [(reader.line_num, cells) for line in reader if any(cells := [cell.strip() for cell in line])]
    except OSError as error:
        raise EmbarkError(f"The table {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise EmbarkError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8."
        ) from error
    if len(lines) < 2 or len(lines[0][1]) < 2:
        raise EmbarkError(f"{path} needs a header line, a first column of models, and a column of scores at least.")
    (_, (_, *names)), *rows = lines
    for position, name in enumerate(names):
        if name and name in names[:position]:
            raise EmbarkError(f"{path}: columns {names.index(name) + 2} and {position + 2} are both named '{name}'.")
    table: dict[str, dict[str, float]] = {name: {} for name in names if name}
    line_of: dict[str, int] = {}
    for number, (model, *cells) in rows:
        if (other := line_of.setdefault(model, number)) != number:
            raise EmbarkError(f"{path}: lines {other} and {number} are both about '{model}'.")
        for name, cell in zip_longest(names, cells, fillvalue=""):
            if cell and not name:
                raise EmbarkError(f"{path}, line {number}: '{cell}' stands in a column without a name.")
            if cell:
                table[name][model] = _number(cell, path, number, name)
    return table


def _rows(models: Sequence[str], names: Iterable[str]) -> dict[str, int]:
    """The row of each model that a table names, in full or without its organization; unknown names are left out."""
    names_by_row: dict[int, str] = {}
    for name in names:
        rows = [row for row, model in enumerate(models) if model == name]
        rows = rows or [row for row, model in enumerate(models) if short(model, 99) == name]
        if len(rows) > 1:
            raise EmbarkError(f"'{name}' in the table may be {models[rows[0]]} or {models[rows[1]]}: write it in full.")
        if rows and (other := names_by_row.setdefault(rows[0], name)) != name:
            raise EmbarkError(f"The table has {models[rows[0]]} twice: as '{other}' and as '{name}'.")
    return {name: row for row, name in names_by_row.items()}


def _number(cell: str, path: Path, line: int, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise EmbarkError(f"{path}, line {line}: '{cell}' under '{column}' is not a number.")
    return value
