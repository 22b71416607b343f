"""The outcomes of a result on disk, split by split and subset by subset, with the items that they stand on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from embark.results import Damaged, TaskResult
from embark.stats.shared import Evidence, ItemNumbers, Observations, Part, interval_of
from embark.stats.statistics import Outcomes, Pushes, columns_of, pushes
from embark.types import Array, EmbarkError

LARGEST_NUMBER = 1e15  # of a number in outcomes: squares of larger ones are not finite
KEYS = ("split", "subset", "id")
NAMES = ("id", "content", "partner", "partner_content", "right")  # columns that tell which items a row stands on
Parts: TypeAlias = dict[tuple[str, str], Part]


class NotComparable(EmbarkError):
    """Two results that must not be compared; the message says why."""


def parts_of(result: TaskResult, numbers: ItemNumbers) -> Parts:
    """The parts of a result, their rows in the order of their ids."""
    try:
        table = result.outcomes().sort_by([(key, "ascending") for key in KEYS])
        columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
        split, subset = columns["split"], columns["subset"]
    except Damaged as damage:
        raise NotComparable(str(damage)) from damage
    except (EmbarkError, OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        raise NotComparable("the outcomes of its items are not on disk, or cannot be read") from None
    statistic = result.records[0].statistic
    require_outcomes(statistic, result.metric, columns)
    # Rows of a part follow each other, since they are sorted.
    starts = np.flatnonzero(np.append(True, (split[1:] != split[:-1]) | (subset[1:] != subset[:-1]))[: len(split)])
    parts: Parts = {}
    for start, end in zip(starts, np.append(starts[1:], len(split)), strict=True):
        rows = {name: values[start:end] for name, values in columns.items()}
        observations = observations_of(rows, result.dataset_revision, numbers)
        parts[str(split[start]), str(subset[start])] = Part(statistic, result.metric, rows, observations)
    return parts


def observations_of(rows: Outcomes, source: str, numbers: ItemNumbers) -> Observations:
    """The items behind rows of outcomes; equal ids of one source are one item."""
    return numbers.observations(source, {name: rows[name].tolist() for name in NAMES if name in rows})


def require_outcomes(statistic: str, metric: str, columns: Outcomes) -> None:
    """Raise `NotComparable` unless a statistic can be computed from the columns of outcomes."""
    needed = columns_of(statistic, metric, columns)
    if not needed or any(name not in columns or not _is_usable(columns[name]) for name in needed):
        raise NotComparable(f"its items have no outcomes that {metric} could be computed from")


def _is_usable(column: Array) -> bool:
    """Whether a column has numbers of usual size, or texts and no empty cell."""
    return None not in column if column.dtype == object else not (np.abs(column.astype(float)) > LARGEST_NUMBER).any()


class Reading(NamedTuple):
    """What the items of one split and subset push its score."""

    observations: Observations
    pushes: Pushes


class Readings:
    """The outcomes of a model's results by task, each read once and when it is needed.

    `numbers` are the items of all models that are compared.
    """

    def __init__(self, results: Mapping[str, TaskResult], numbers: ItemNumbers | None = None) -> None:
        self.results = results
        self.numbers = numbers or ItemNumbers()
        self.damaged: dict[str, str] = {}  # by task: why its outcomes cannot be read, though they are on disk
        self._read: dict[str, list[Reading]] = {}

    @property
    def on_disk(self) -> bool:
        """Whether there are outcomes of all results."""
        return all(result.path is not None and result.made_by == "embark" for result in self.results.values())

    def of(self, task: str) -> list[Reading]:
        """The parts of a task; an error where they cannot be read."""
        if task in self.damaged:
            raise NotComparable(self.damaged[task])
        if task not in self._read:
            try:
                parts = parts_of(self.results[task], self.numbers)
            except NotComparable as error:
                if isinstance(error.__cause__, Damaged):
                    self.damaged[task] = str(error)
                raise
            self._read[task] = [
                Reading(part.observations, pushes(part.statistic, part.main, part.outcomes)) for part in parts.values()
            ]
        return self._read[task]

    def add(self, evidence: Evidence, weights: Mapping[str, float], model: int = 0) -> list[str]:
        """Add the weighted sum of the tasks to the evidence on a model, and return the scales of its scores."""
        scales = []
        for task in (name for name in self.results if name in weights):
            parts = self.of(task)
            for observations, values in parts:
                evidence.add(task, observations, values, weights[task] / len(parts), model)
                scales.append(values.scale)
        return scales

    def uniform(self, tasks: Iterable[str]) -> bool:
        """Whether on one of these tasks all items have the same outcome."""
        return any(all(part.pushes.uniform for part in self.of(task)) for task in tasks if task in self.results)

    def interval(self, value: float, weights: Mapping[str, float]) -> tuple[float, float] | None:
        """Interval of a weighted mean of the tasks' scores; None where outcomes are not on disk, or do not vary."""
        if not self.on_disk:
            return None
        evidence = Evidence()
        try:
            scales = self.add(evidence, weights)
        except EmbarkError:
            return None
        uncertainty = evidence.of() if scales else None
        if uncertainty is None or uncertainty.variance <= 0:
            return None
        return interval_of(value, uncertainty, "share" if set(scales) == {"share"} else "signed")
