"""Variances of scores that share items: of records, tasks, categories, totals, boards and comparisons alike.

Every observation stands on one item (a query, a picture to classify) or on two (a pair of sentences; a caption and the
only picture that answers it). Two observations that have an item in common may vary together, whatever task, subset or
model they belong to; all others are independent. A score is, to first order, a sum of what its observations push it, so
the variance of any weighted sum or difference of scores is the sum of push × push over all pairs of observations that
share an item:

    Σ over items (sum of the pushes that stand on it)²  −  Σ over pairs of items (sum of the pushes that stand on both)²

Runs (a probe's training samples, a clusterer's seeds) were drawn, too: their variance is added, less the part of it
that the items have brought already. Intervals are Student's, with the degrees of freedom of the few that count most.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from embark.items.lazy_items import distinct_ids, distinct_numbers
from embark.stats.intervals import NO_SPREAD, correlation_interval, share_interval
from embark.stats.statistics import Outcomes, Pushes, certain, pushes
from embark.types import Array, Gold, Qrels, Truth

Contents: TypeAlias = Array | Sequence[int | None] | None  # hashes of items
FEW_QUERIES = 10  # queries that one document may answer on average and still be an item; a document of more is a class


class Observations(NamedTuple):
    """The items that each observation stands on, as numbers; `second` equals `first` where it stands on one."""

    first: Array
    second: Array

    @classmethod
    def apart(cls, count: int) -> Observations:
        """So many observations on different items."""
        numbers = np.arange(count)
        return cls(numbers, numbers)

    @property
    def cluster(self) -> Array:
        """One item of each observation: of a caption and its picture, the picture."""
        return self.second

    @property
    def items(self) -> int:
        """How many items they stand on; of captions and pictures, how many of either, whichever are fewer."""
        sides = (self.first,) if self.second is self.first else self
        return min(len(distinct_numbers(numbers)) for numbers in sides)


@dataclass
class ItemNumbers:
    """A number for every item, whatever it is called: equal content is one item, and so are equal ids of one source.

    Ids that are equal by accident (rows that are merely counted) do no harm: pushes of unrelated observations cancel
    out on average. An item is never joined to two others, so that chains of accidents do not grow.
    """

    _by_content: dict[int | None, int] = field(default_factory=dict)
    _by_id: dict[str, dict[str, int]] = field(default_factory=dict)  # by source
    _count: int = 0
    _first: tuple[str, Sequence[str], Contents] | None = None  # items of the first call, as long as there is no second

    def numbers(self, source: str, ids: Sequence[str], contents: Contents = None) -> Array:
        """The numbers of items with these ids and, where they are known, hashes of their contents."""
        if not self._count and _all_distinct(ids) and (contents is None or _all_distinct(contents)):
            self._first = source, ids, contents
            self._count = len(ids)
            return np.arange(len(ids))
        self._enter_first()
        names = list(ids)
        hashes = _listed(contents) or [None] * len(names)
        by_id = self._by_id.setdefault(source, {})
        number_of_id = _looked_up(by_id, names)
        number_of_content = _looked_up(self._by_content, hashes)
        out = np.where(number_of_content < 0, number_of_id, number_of_content)
        new_ids = np.flatnonzero(number_of_id < 0)
        new_contents = np.flatnonzero((number_of_content < 0) & (contents is not None))
        if not len(new_ids) and not len(new_contents):  # as of each further model on the same items
            return out
        if not (_all_distinct(names) and (contents is None or _all_distinct(hashes))):
            return self._one_by_one(by_id, names, hashes)
        new = out < 0
        out[new] = np.arange(self._count, self._count + new.sum())
        self._count += int(new.sum())
        _enter(by_id, names, new_ids, out)
        _enter(self._by_content, hashes, new_contents, out)
        return out

    def _one_by_one(self, by_id: dict[str, int], names: Sequence[str], hashes: Sequence[int | None]) -> Array:
        """The numbers of items of which some have an id or a content in common, so that one decides on the next."""
        out = np.empty(len(names), np.int64)
        for place, (name, content) in enumerate(zip(names, hashes, strict=True)):
            number = self._by_content.get(content)
            if number is None:
                number = by_id.get(name)
            if number is None:
                number = self._count
                self._count += 1
            by_id.setdefault(name, number)
            if content is not None:
                self._by_content.setdefault(content, number)
            out[place] = number
        return out

    def _enter_first(self) -> None:
        if self._first is not None:
            source, ids, contents = self._first
            self._by_id = {source: {name: number for number, name in enumerate(ids)}}
            hashes = enumerate(_listed(contents) or ())
            self._by_content = {content: number for number, content in hashes if content is not None}
            self._first = None

    def observations(self, source: str, columns: Mapping[str, Any]) -> Observations:
        """The items behind rows of outcomes: `id` and `content`, and those of a `partner` where there is one."""
        first = self.numbers(source, columns["id"], columns.get("content"))
        partner = columns.get("partner", columns.get("right"))
        if partner is None or None in partner:
            return Observations(first, first)
        return Observations(first, self.numbers(source, partner, columns.get("partner_content")))


def _looked_up(numbers: Mapping[Any, int], keys: Sequence[Any]) -> Array:
    """The number of each key; -1 where there is none."""
    return np.fromiter(map(numbers.get, keys, repeat(-1)), np.int64, len(keys))


def _enter(numbers: dict[Any, int], keys: Sequence[Any], rows: Array, of_all: Array) -> None:
    """Enter the keys of these rows with their numbers."""
    numbers.update(zip(map(keys.__getitem__, rows.tolist()), of_all[rows].tolist(), strict=True))
    numbers.pop(None, None)


def _listed(contents: Contents) -> Sequence[int | None] | None:
    return contents.tolist() if isinstance(contents, np.ndarray) else contents


def _all_distinct(names: Array | Sequence[Any]) -> bool:
    distinct = len(distinct_numbers(names)) if isinstance(names, np.ndarray) else distinct_ids(names)
    return distinct == len(names)


def partners(truth: Truth, rows: Array) -> tuple[str, Array] | None:
    """The second items of observations, as a side and positions in it: the other halves of pairs; or, of the queries
    `rows`, the documents that answer them (of several, the first).

    Queries that share their document vary together: captions of one picture. None where some queries have none, or
    where documents answer so many that they are rather classes.
    """
    if isinstance(truth, Gold):
        return "right", truth.right
    if not isinstance(truth, Qrels):
        return None
    relevant = truth.grade > 0
    pairs = np.unique(np.stack([truth.query[relevant], truth.document[relevant]], 1), axis=0)
    query, first = np.unique(pairs[:, 0], return_index=True)
    document = pairs[first, 1]
    if not np.array_equal(query, rows):
        return None
    sizes = np.unique(document, return_counts=True)[1]
    return ("document", document) if (sizes**2).sum() <= FEW_QUERIES * sizes.sum() else None


# ── evidence ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Entry(NamedTuple):
    model: int
    task: Hashable
    weight: float
    observations: Observations
    pushes: Pushes


class Uncertainty(NamedTuple):
    """The variance of a score or a difference, and its degrees of freedom."""

    variance: float
    freedom: float


class Evidence:
    """The scores of several models (on a task, a benchmark) as weighted sums over parts, and how they vary together."""

    def __init__(self, models: int = 1) -> None:
        self.models = models
        self._entries: list[_Entry] = []

    def add(
        self, task: Hashable, observations: Observations, values: Pushes, weight: float = 1.0, model: int = 0
    ) -> None:
        """Add a model's score on one split and subset of a task; these and the models share the task's runs."""
        self._entries.append(_Entry(model, task, weight, observations, values))

    def of(self, model: int = 0) -> Uncertainty:
        """The variance of a model's score."""
        return self.between(model, self.models)

    def between(self, a: int, b: int) -> Uncertainty:
        """The variance of the difference of two models' scores."""
        variance, freedom = self.differences
        return Uncertainty(float(variance[a, b]), float(freedom[a, b]))

    @cached_property
    def differences(self) -> tuple[Array, Array]:
        """Variances of the differences of every two models, and their degrees of freedom; the last row and column
        compare with nothing, which makes them the variances of the scores themselves.
        """
        size = self.models + 1
        covariance, count = self._items(size)
        items = _differences(covariance)
        freedom = np.maximum(np.minimum(count[:, None], count), 2) - 1
        runs = np.zeros((size, size))
        uncertain = np.zeros((size, size))
        for task in {entry.task: None for entry in self._entries if len(entry.pushes.runs) > 1}:
            entries = [entry for entry in self._entries if entry.task == task]
            for added, estimate, run_freedom in (_of_runs(entries, size), _of_refits(entries, size)):
                runs += added
                uncertain += estimate**2 / run_freedom
        variance = items + runs
        # Satterthwaite: as if the sum of variances were one.
        spread = items**2 / freedom + uncertain
        return variance, np.divide(variance**2, spread, out=np.full_like(spread, np.inf), where=spread > 0)

    def _items(self, size: int) -> tuple[Array, Array]:
        """Covariances of the scores over items, and the effective number of items of each."""
        entries = self._entries
        model = np.concatenate([np.full(len(e.observations.first), e.model) for e in entries])
        first = np.concatenate([e.observations.first for e in entries])
        second = np.concatenate([e.observations.second for e in entries])
        push = np.concatenate([e.weight * e.pushes.items.mean(axis=0) for e in entries])
        share = np.concatenate([np.full(n := len(e.observations.first), abs(e.weight) / n) for e in entries])
        alone = first == second
        numbers = np.concatenate([first, second[~alone]])
        models = np.concatenate([model, model[~alone]])
        held = np.concatenate([np.where(alone, share, share / 2), share[~alone] / 2])
        items, shares = _sums(numbers, models, (np.concatenate([push, push[~alone]]), held), size)
        total = shares.sum(axis=0)
        squares = np.divide((shares**2).sum(axis=0), total**2, out=np.zeros(size), where=total > 0)
        count = np.divide(1.0, squares, out=np.full(size, np.inf), where=squares > 0)
        covariance = items.T @ items
        if not alone.all():
            low, high = np.minimum(first, second), np.maximum(first, second)
            pair = low * (int(high.max()) + 1) + high
            (both,) = _sums(pair[~alone], model[~alone], (push[~alone],), size)
            (pairs,) = _sums(pair, model, (push,), size)
            covariance -= both.T @ both
            # Never less than if pairs varied by themselves: with few items, the difference may come out at nothing.
            covariance = _at_least(covariance, pairs.T @ pairs)
        finite = np.isfinite(count) & (count > 1)
        factor = np.sqrt(np.divide(count, count - 1, out=np.ones(size), where=finite))
        return covariance * factor[:, None] * factor, count


def _of_runs(entries: Sequence[_Entry], size: int) -> tuple[Array, Array, float]:
    """Variances of differences between models by the runs of a task, without what its items bring; with it, which is
    what was estimated from the few runs; and the estimate's freedom.
    """
    count = min(len(entry.pushes.runs) for entry in entries)
    deviation = np.zeros((count, size))
    residuals: list[list[Array]] = [[] for _ in range(size)]
    for entry in entries:
        values = entry.pushes.runs[:count]
        deviation[:, entry.model] += entry.weight * (values - values.mean())
        own = entry.pushes.items[:count]
        residuals[entry.model].append(entry.weight * (own - own.mean(axis=0)).ravel())
    residual = np.zeros((max(sum(map(len, parts)) for parts in residuals), size))
    for model, parts in enumerate(residuals):
        if parts:
            column = np.concatenate(parts)
            residual[: len(column), model] = column
    scale = max(count * (count - 1), 1)
    whole = _differences(deviation.T @ deviation / scale)
    return np.maximum(whole - _differences(residual.T @ residual / scale), 0), whole, max(count - 1, 1)


def _of_refits(entries: Sequence[_Entry], size: int) -> tuple[Array, Array, float]:
    """Variances of differences between models by clusters that other items would make, twice, and their freedom."""
    count = min(len(entry.pushes.refits) for entry in entries)
    deviation = np.zeros((count, size))
    for entry in entries:
        deviation[:, entry.model] += entry.weight * entry.pushes.refits[:count]
    variance = _differences(deviation.T @ deviation / max(count, 1))
    return variance, variance, max(count, 1)


def _sums(numbers: Array, models: Array, columns: Sequence[Array], size: int) -> list[Array]:
    """Sums of each column of values by item and model: (items, models)."""
    unique, place = np.unique(numbers, return_inverse=True)
    cell = place * size + models
    return [np.bincount(cell, values, minlength=len(unique) * size).reshape(len(unique), size) for values in columns]


def _differences(covariance: Array) -> Array:
    diagonal = np.diag(covariance)
    return np.asarray(np.maximum(diagonal[:, None] + diagonal - 2 * covariance, 0))


def _at_least(covariance: Array, least: Array) -> Array:
    """The covariance, raised where the variance of a score or a difference would fall below that of `least`."""
    variance = np.maximum(_differences(covariance), _differences(least))
    # Back to covariances: the last row compares with nothing.
    own = variance[:, -1]
    return np.asarray((own[:, None] + own - variance) / 2)


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Part(NamedTuple):
    """The outcomes of one split and subset, and the items that they stand on."""

    statistic: str
    main: str
    outcomes: Outcomes
    observations: Observations


def part_interval(statistic: str, main: str, outcomes: Outcomes, observations: Observations) -> tuple[float, float]:
    """Interval of the score on one split and subset; deterministic."""
    return interval([Part(statistic, main, outcomes, observations)])


def interval(parts: Sequence[Part]) -> tuple[float, float]:
    """Interval of a task's score, the mean over its parts: an item in several moves all of them."""
    values = [pushes(part.statistic, part.main, part.outcomes) for part in parts]
    evidence = Evidence()
    for part, of_part in zip(parts, values, strict=True):
        evidence.add("", part.observations, of_part, 1 / len(parts))
    value = float(np.mean([of_part.value for of_part in values]))
    uncertainty = evidence.of()
    items = max(part.observations.items for part in parts)
    correlated = parts[0].statistic in ("pearson", "spearman")
    # A perfect score has room on one side alone, whatever the variance (of clusterings, fits to other items have some).
    if uncertainty.variance < NO_SPREAD**2 or value > 1 - NO_SPREAD or (correlated and items <= 3):
        exact = [certain(part.statistic, part.main, part.outcomes, items) for part in parts]
        ends = [end or (of_part.value, of_part.value) for end, of_part in zip(exact, values, strict=True)]
        return float(np.mean([low for low, _ in ends])), float(np.mean([high for _, high in ends]))
    if len(parts) == 1 and items == len(parts[0].observations.first) and _right_or_wrong(parts[0]):
        uncertainty = Uncertainty(value * (1 - value) / items, np.inf)  # which the share alone determines
    return interval_of(value, uncertainty, scale_of([of_part.scale for of_part in values]))


def _right_or_wrong(part: Part) -> bool:
    """Whether the score is the share of items that are right."""
    values = np.asarray(part.outcomes.get(part.main, np.nan))
    return part.statistic == "mean" and bool(((values == 0) | (values == 1)).all())


def scale_of(scales: Sequence[str]) -> str:
    """The scale of a mean of scores."""
    kinds = set(scales)
    return kinds.pop() if len(kinds) == 1 else "signed"


def interval_of(value: float, uncertainty: Uncertainty, scale: str) -> tuple[float, float]:
    """Interval of a score on its scale."""
    if scale == "correlation":
        return correlation_interval(value, *uncertainty)
    return share_interval(value, *uncertainty, low=0.0 if scale == "share" else -1.0)
