"""Two models on the same items: the differences, their significance, and the items behind them.

Only scores of one protocol are compared, item by item. A mean of items gets a bootstrap interval and a sign-flip test;
a statistic of all items together (a rank correlation, NMI) is resampled with the same items for both models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import erfc, sqrt
from typing import Any, TypeAlias

import numpy as np

from embark.catalogue import Catalogue, UnknownName, counted, listed
from embark.results import Damaged, Results, TaskResult
from embark.results.table import Cell, Exact, Interval, Row, Table, Tabular
from embark.results.task_rows import known_tasks
from embark.settings import Settings, load_settings
from embark.stats.intervals import LEVEL, REPLICATES, percentiles, subset_interval
from embark.stats.statistics import STATISTICS, replicates
from embark.tasks import Tasks, choose_tasks, get_benchmark
from embark.types import Array, Benchmark, EmbarkError, Task

FLIPS = 10_000
MAGNITUDES = 128  # distinct sizes of a difference kept apart in the sign-flip test
KEYS = ("split", "subset", "id")

Columns: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True)
class Pair:
    """Two scores on one task, and their difference with its 95 % interval and p-values (alone, and among all tasks)."""

    task: str
    category: str
    a: float
    b: float
    low: float
    high: float
    p: float
    items: int
    holm: float = 1.0

    @property
    def difference(self) -> float:
        """a − b."""
        return self.a - self.b

    @property
    def verdict(self) -> str:
        """Whether model a wins, ties or loses."""
        return "tie" if self.holm >= 1 - LEVEL else "win" if self.difference > 0 else "loss"


@dataclass(frozen=True)
class Tally:
    """Verdicts over several tasks, and the mean of their differences."""

    wins: int
    ties: int
    losses: int
    difference: float


@dataclass(frozen=True)
class Flips(Tabular):
    """The items of a task that only one of two models gets right."""

    task: str
    a: str
    b: str
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """One row per item, with the model that alone is right on it."""
        rows = [(self.a, item) for item in self.only_a] + [(self.b, item) for item in self.only_b]
        return Table(("only right", "item"), tuple(map(Row, rows)))

    def lines(self, most: int | None = None) -> list[str]:
        """The items in words, at most so many for each model."""
        lines = []
        for model, items in ((self.a, self.only_a), (self.b, self.only_b)):
            lines.append(f"Only {model} is right on {counted(len(items), 'item')}{':' if items else '.'}")
            lines += [f"  {item}" for item in items[:most]]
            if most is not None and len(items) > most:
                lines.append(f"  … and {len(items) - most} more (--format json lists all)")
        return lines

    def as_dict(self) -> dict[str, list[str]]:
        """The items by model."""
        return {self.a: list(self.only_a), self.b: list(self.only_b)}


@dataclass(frozen=True)
class Comparison(Tabular):
    """Every task on which model a can be compared with model b, and why the others cannot."""

    a: str
    b: str
    pairs: tuple[Pair, ...]
    refused: Mapping[str, str]
    notes: tuple[str, ...] = ()
    results: tuple[Sequence[TaskResult], Sequence[TaskResult]] = field(default=((), ()), repr=False, compare=False)
    tasks: tuple[Task, ...] = field(default=(), repr=False, compare=False)

    @property
    def categories(self) -> dict[str, Tally]:
        """One tally per category, in the order of the tasks."""
        names = dict.fromkeys(pair.category for pair in self.pairs)
        return {name: _tally([pair for pair in self.pairs if pair.category == name]) for name in names}

    @property
    def total(self) -> Tally:
        """All tasks, each counting once."""
        return _tally(self.pairs)

    def table(self) -> Table:
        """One row per task: both scores, their difference, and whether it is more than chance."""
        columns = ("task", self.a, self.b, "difference", "95 %", "p", "p (Holm)", "verdict")
        return Table(columns, tuple(Row(_cells(pair)) for pair in self.pairs))

    def categories_table(self) -> Table:
        """Verdicts by category, and of all tasks."""
        tallies = [*self.categories.items(), ("all", self.total)]
        rows = [Row((name, t.wins, t.ties, t.losses, _points(t.difference))) for name, t in tallies]
        return Table(("category", "wins", "ties", "losses", "mean difference"), tuple(rows))

    def sentence(self) -> str:
        """The comparison in words."""
        total = self.total
        tasks = counted(len(self.pairs), "task")
        if not total.wins and not total.losses:
            return f"On {tasks}, no difference between {self.a} and {self.b} is more than chance would make."
        return (
            f"Over {tasks}, {self.a} is better than {self.b} on {total.wins}, worse on {total.losses}, and cannot be "
            f"told apart on {total.ties} (mean difference {_points(total.difference).text} points)."
        )

    def flips(self, task: str) -> Flips:
        """The items of a task that only one of the models gets right."""
        row = Catalogue("task", self.tasks, lambda task: task.name)[task]
        only_a, only_b = flipped_items(*self.results, row)
        return Flips(task, self.a, self.b, tuple(only_a), tuple(only_b))

    def as_dict(self) -> dict[str, Any]:
        """All numbers, ready for JSON."""
        pairs = [vars(pair) | {"difference": pair.difference, "verdict": pair.verdict} for pair in self.pairs]
        return {
            "a": self.a,
            "b": self.b,
            "tasks": pairs,
            "categories": {name: vars(tally) for name, tally in self.categories.items()},
            "total": vars(self.total),
            "not comparable": dict(self.refused),
        }


class NotComparable(EmbarkError):
    """Two results that must not be compared; the message says why."""


def compare(
    a: str,
    b: str,
    benchmark: str | Benchmark | None = None,
    tasks: Tasks = None,
    *,
    settings: Settings | None = None,
) -> Comparison:
    """Model a against model b, item by item, on every task that the results folder has of them; deterministic.

    A model is named as in its results, or as name@revision where it has several. `benchmark` or `tasks` (names,
    patterns, rows; your own tasks, too) choose among the tasks.
    """
    folder = (settings or load_settings()).results
    stored = Results(folder)
    results = list(stored.all())
    if not results:
        raise EmbarkError(f"There are no results in {folder}. Make some: embark run")
    if benchmark is not None and tasks is not None:
        raise EmbarkError("Give a benchmark or tasks, not both.")
    known = known_tasks(results)
    if benchmark is not None:
        benchmark = get_benchmark(benchmark)
    chosen = benchmark if tasks is None else tasks
    rows = list(known.values()) if chosen is None else choose_tasks(chosen, known=known)
    comparison = compare_results(_results_of_model(results, a), _results_of_model(results, b), rows)
    comparison = replace(comparison, a=a, b=b, notes=(*stored.notes, *comparison.notes))
    if not comparison.pairs and not comparison.refused:
        where = benchmark.name if benchmark else "a known task" if tasks is None else "the chosen tasks"
        raise EmbarkError(f"Neither {a} nor {b} has a score on {where} in {folder}.")
    if not comparison.pairs:
        why = listed([f"{task}: {reason}" for task, reason in comparison.refused.items()])
        raise EmbarkError(f"{a} and {b} have no task in common that can be compared ({why}).")
    return comparison


def compare_results(a: Sequence[TaskResult], b: Sequence[TaskResult], tasks: Sequence[Task]) -> Comparison:
    """One model's results against another's on every task that either of them has; deterministic."""
    pairs: list[Pair] = []
    refused: dict[str, str] = {}
    for task in tasks:
        result_a, result_b = _result(a, task), _result(b, task)
        if result_a or result_b:
            try:
                pairs.append(_pair(task, result_a, result_b))
            except NotComparable as error:
                refused[task.name] = str(error)
    corrected = holm([pair.p for pair in pairs])
    pairs = [replace(pair, holm=p) for pair, p in zip(pairs, corrected, strict=True)]
    notes = tuple(f"not comparable: {task}: {reason}" for task, reason in refused.items())
    return Comparison(_name(a), _name(b), tuple(pairs), refused, notes, (a, b), tuple(tasks))


def flipped_items(a: Sequence[TaskResult], b: Sequence[TaskResult], task: Task) -> tuple[list[str], list[str]]:
    """Items that only a gets right, and those that only b does.

    Right is an outcome of 1; where outcomes are not right or wrong, a first hit at rank 1.
    """
    columns_a, columns_b, _ = _aligned(_result(a, task), _result(b, task))
    right_a = _right(columns_a, task)
    right_b = _right(columns_b, task)
    several = len(np.unique(columns_a["subset"])) > 1
    pairs = zip(columns_a["subset"], columns_a["id"], strict=True)
    names = np.array([f"{subset}/{item}" if several else str(item) for subset, item in pairs], dtype=object)
    return names[right_a & ~right_b].tolist(), names[right_b & ~right_a].tolist()


def replicates_of(result: TaskResult, draws: int, seed: int = 0) -> Array:
    """The score of a result in resamples of its items; results with the same items and seed share the draws."""
    try:
        table = result.outcomes().sort_by([(key, "ascending") for key in KEYS])
    except (OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        raise NotComparable("the outcomes of its items are not on disk, or cannot be read") from None
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return _replicates(statistic_of(result, columns), result.metric, columns, _parts(columns), draws, seed)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down correction of p-values, which controls the chance of any false rejection among them."""
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return [float(value) for value in corrected]


def sign_flip(differences: Array, seed: int = 0) -> float:
    """Two-sided p-value of a sum of paired differences, if the sign of each were random.

    Flipping signs is drawing, for every size of a difference, how many are positive: the cost does not grow with the
    number of items. Sizes beyond `MAGNITUDES` are grouped by their root mean square, which keeps the null's variance.
    """
    scaled = np.asarray(differences, np.float64) / max(float(np.abs(differences).max(initial=0)), np.finfo(float).tiny)
    size, count = np.unique(np.abs(scaled).round(9), return_counts=True)
    size, count = size[size > 0], count[size > 0]
    if len(size) > MAGNITUDES:
        parts = np.array_split(np.sort(np.abs(scaled[scaled != 0])), MAGNITUDES)
        size, count = np.array([np.sqrt((part**2).mean()) for part in parts]), np.array([len(part) for part in parts])
    positive = np.random.default_rng(seed).binomial(count, 0.5, size=(FLIPS, len(count)))
    null = np.abs((2 * positive - count) @ size)
    return float((1 + np.count_nonzero(null >= abs(scaled.sum()) - 1e-6)) / (1 + FLIPS))


def _pair(task: Task, a: TaskResult | None, b: TaskResult | None) -> Pair:
    columns_a, columns_b, part = _aligned(a, b)
    assert a is not None
    assert b is not None
    statistic = statistic_of(a, columns_a)
    if statistic == "mean":
        low, high, p = mean_difference(columns_a[a.metric] - columns_b[a.metric], columns_a["id"], part)
    else:
        draws_a, draws_b = (_replicates(statistic, a.metric, columns, part) for columns in (columns_a, columns_b))
        low, high = percentiles(draws_a - draws_b)
        # A normal tail with the bootstrap's spread: counting draws could not get below 1 in 1,000, which Holm's
        # correction over a large benchmark would always turn into a tie.
        p = erfc(abs(a.score - b.score) / (sqrt(2) * max(float((draws_a - draws_b).std()), 1e-300)))
    return Pair(task.name, task.category, a.score, b.score, low, high, p, len(np.unique(columns_a["id"])))


def statistic_of(result: TaskResult, columns: Columns) -> str:
    """The name of the statistic that computes a result's score from its outcomes.

    It is recorded with the result; for older records it is inferred from the columns of the outcomes.
    """
    if recorded := result.records[0].statistic:
        return recorded
    metric = result.metric
    if f"{metric}_run1" in columns:
        return "runs"
    names = [name for name in (metric, metric.rpartition("_")[2]) if name in STATISTICS]
    if not names and metric not in columns:
        raise NotComparable(f"its items have no outcome that {metric} could be computed from")
    return names[0] if names else "mean"


def _replicates(
    statistic: str, metric: str, columns: Columns, part: Array, draws: int = REPLICATES, seed: int = 0
) -> Array:
    """The score in resamples of the items. One seed for all: models, and parts with the same items, share the draws."""
    parts = [{name: values[part == p] for name, values in columns.items()} for p in np.unique(part)]
    return np.asarray(np.mean([replicates(statistic, metric, values, draws, seed) for values in parts], axis=0))


def mean_difference(difference: Array, ids: Array, part: Array) -> tuple[float, float, float]:
    """Interval and p-value of the mean over parts of mean differences.

    An item that is in several parts is resampled with all its appearances.
    """
    sizes = np.bincount(part)
    share = np.bincount(np.unique(ids, return_inverse=True)[1], difference / sizes[part])
    sign = -1.0 if share.sum() < 0 else 1.0  # makes b against a an exact mirror image of a against b
    rows = [part == p for p in range(len(sizes))]
    low, high = subset_interval([sign * difference[mask] for mask in rows], [ids[mask] for mask in rows])
    if not difference.any():
        low = -high  # no item differs: on other items, either model could be better
    return (low, high, sign_flip(share)) if sign > 0 else (-high, -low, sign_flip(share))


def _aligned(a: TaskResult | None, b: TaskResult | None) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """The outcomes of both, row by row the same item, and the part (split, subset) that each row belongs to."""
    if a is None or b is None:
        raise NotComparable(f"only {(a or b).model} has a score")  # type: ignore[union-attr]
    prints_a, prints_b = ({(r.split, r.subset): r.fingerprint for r in result.records} for result in (a, b))
    if prints_a != prints_b:
        raise NotComparable("the scores were made under other protocols, or on other data")
    if a.dataset_revision != b.dataset_revision:
        commits = f"{a.dataset_revision[:12]} and {b.dataset_revision[:12]}"
        raise NotComparable(f"the scores are of different commits of the data ({commits}): run both models again")
    try:
        tables = [result.outcomes().sort_by([(key, "ascending") for key in KEYS]) for result in (a, b)]
    except Damaged as damage:
        raise NotComparable(str(damage)) from None
    except (EmbarkError, OSError, ValueError, KeyError):  # pyarrow's errors for a damaged or foreign file among them
        raise NotComparable("the outcomes of its items are not on disk, or cannot be read") from None
    if not tables[0].select(KEYS).equals(tables[1].select(KEYS)):
        raise NotComparable("the models were scored on other items (some were left out)")
    columns_a, columns_b = ({name: table[name].to_numpy() for name in table.column_names} for table in tables)
    return columns_a | {"id": columns_a["id"].astype(np.str_)}, columns_b, _parts(columns_a)


def _parts(columns: Columns) -> Array:
    """The part (split and subset) that each row belongs to, as a number."""
    keys = list(zip(columns["split"], columns["subset"], strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], np.int64)


def _right(columns: Columns, task: Task) -> Array:
    values = columns.get(task.metric)
    if values is not None and np.isin(values, (0, 1)).all():
        return np.asarray(values == 1)
    if "rank" in columns:
        return np.asarray(columns["rank"] == 1)
    raise NotComparable(f"The items of {task.name} are not right or wrong, so none can flip.")


def _results_of_model(results: Sequence[TaskResult], name: str) -> list[TaskResult]:
    """A model's results; where the folder has several revisions, the name must say which."""
    named = [result for result in results if name in (result.model, f"{result.model}@{result.revision}")]
    if not named:
        raise UnknownName("model in the results folder", name, {result.model for result in results})
    if len(revisions := sorted({result.revision for result in named})) > 1:
        raise EmbarkError(f"{name} has several revisions; say {' or '.join(f'{name}@{r}' for r in revisions)}.")
    return named


def _name(results: Sequence[TaskResult]) -> str:
    return results[0].model if results else ""


def _cells(pair: Pair) -> tuple[Cell, ...]:
    scores = (Exact(pair.a, f"{100 * pair.a:.1f}"), Exact(pair.b, f"{100 * pair.b:.1f}"), _points(pair.difference))
    interval = Interval(pair.low, pair.high, f"[{_points(pair.low).text}, {_points(pair.high).text}]")
    return (pair.task, *scores, interval, _p_value(pair.p), _p_value(pair.holm), pair.verdict)


def _points(value: float) -> Exact:
    return Exact(value, f"{round(100 * value, 1) + 0.0:+.1f}")  # adding zero: no -0.0


def _p_value(value: float) -> Exact:
    return Exact(value, "<0.0001" if value < 5e-5 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}")


def _result(results: Sequence[TaskResult], task: Task) -> TaskResult | None:
    of_task = (result for result in results if (result.task, result.protocol) == (task.name, task.protocol))
    return next(of_task, None)


def _tally(pairs: Sequence[Pair]) -> Tally:
    verdicts = [pair.verdict for pair in pairs]
    mean = float(np.mean([pair.difference for pair in pairs])) if pairs else 0.0
    return Tally(verdicts.count("win"), verdicts.count("tie"), verdicts.count("loss"), mean)
