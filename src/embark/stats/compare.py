"""Two models on the same items: the differences, their significance, and the items behind them.

Only scores of one protocol are compared, item by item; see `paired` for the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embark.catalogue import Catalogue, counted, group_values, listed
from embark.field_types import checked
from embark.models.encoder import Encoder
from embark.results import Results, TaskResult
from embark.results.of_model import results_of_model
from embark.results.task_rows import NO_TASK, known_tasks, without_task
from embark.settings import Settings, load_settings
from embark.stats.gate import ModelPair, Tally, draw_differences, losses, verdict_of
from embark.stats.intervals import holm
from embark.stats.outcomes import NotComparable, Parts, observations_of, parts_of
from embark.stats.paired import Contrast, Difference, contrasts, mean_difference, task_difference
from embark.stats.shared import ItemNumbers
from embark.tables import (
    Cell,
    Exact,
    Interval,
    Row,
    Table,
    Tabular,
    applicable,
    p_value,
    points,
    signed_ends,
    signed_points,
)
from embark.tables.drawing import Drawn
from embark.tasks import Tasks, by_benchmark, choose_tasks
from embark.types import Array, EmbarkError, Task

TOO_FEW = "A mean has no interval if one of its tasks has too few pairs."
NAMED_TASKS = 3  # tasks and reasons that the note on refused ones names


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
class Comparison(Drawn):
    """Every task on which model a can be compared with model b, and why the others cannot."""

    a: str
    b: str
    pairs: tuple[ModelPair, ...]
    categories: Mapping[str, Tally]  # in the order of the tasks
    total: Tally  # all tasks, each counting once
    refused: Mapping[str, str]
    notes: tuple[str, ...] = ()
    results: tuple[Sequence[TaskResult], Sequence[TaskResult]] = field(default=((), ()), repr=False, compare=False)
    tasks: tuple[Task, ...] = field(default=(), repr=False, compare=False)

    def table(self) -> Table:
        """One row per task: both scores, their difference, and whether it is more than chance; then their means."""
        columns = ("task", self.a, self.b, "difference", "95 %", "p", "p (Holm)", "verdict")
        rows = [Row(_cells(pair)) for pair in self.pairs]
        if len(self.pairs) > 1:
            rows.append(Row(self._mean_cells(), total=True))
        notes = {
            f"The means are over the {len(self.pairs)} tasks that can be compared; {len(self.refused)} cannot.": (
                self.refused and len(self.pairs) > 1
            ),
            TOO_FEW: len(self.pairs) > 1 and self.total.p is None,
        }
        return Table(columns, tuple(rows), applicable(notes))

    def categories_table(self) -> Table:
        """Verdicts by category, and of all tasks."""
        tallies = [*self.categories.items(), ("all", self.total)]
        rows = [Row((name, t.wins, t.ties, t.losses, *difference_cells(t), p_value(t.p))) for name, t in tallies]
        notes = {TOO_FEW: any(tally.p is None for _, tally in tallies)}
        columns = ("category", "wins", "ties", "losses", "mean difference", "95 %", "p")
        return Table(columns, tuple(rows), applicable(notes))

    def _mean_cells(self) -> tuple[Cell, ...]:
        total = self.total
        means = [float(np.mean([getattr(pair, side) for pair in self.pairs])) for side in ("a", "b")]
        verdict = "" if total.p is None else verdict_of(total.difference, total.p)
        return ("mean", *map(points, means), *difference_cells(total), p_value(total.p), None, verdict)

    def sentence(self) -> str:
        """The comparison in words."""
        total = self.total
        tasks = counted(len(self.pairs), "task")
        mean = f"{signed_points(total.difference).text} points{_ends(total)}"
        if total.wins or total.losses:
            return (
                f"Over {tasks}, {self.a} is better than {self.b} on {total.wins}, worse on {total.losses}, and cannot "
                f"be told apart on {total.ties} (mean difference {mean})."
            )
        if total.p is None or verdict_of(total.difference, total.p) == "tie":
            return f"On {tasks}, no difference between {self.a} and {self.b} is significant."
        word = "better" if total.difference > 0 else "worse"
        return f"Over {tasks}, {self.a} is {word} than {self.b} in the mean ({mean}), though on no task alone."

    def worse(self, margin: float = 0.0) -> tuple[str, ...]:
        """Where a is worse than b by more than chance would make, and by more than `margin` points; one line each.

        That is a task whose p-value stays below 0.05 after Holm's correction, or the mean of all tasks; and a task that
        only b has a score on, because a failed there or was not run.
        """
        scored = {result.task for result in self.results[0]}
        missing = [f"{task}: {self.a} has no score" for task in self.refused if task not in scored]
        return (*losses(self.pairs, self.total, margin), *missing)

    @property
    def title(self) -> str:
        return f"{self.a} − {self.b}"

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, 1.8 + 0.19 * len(self.pairs)

    def draw(self, figure: Any) -> None:
        """The difference of each task with its interval, and their mean."""
        draw_differences(figure, self.pairs, self.total)

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


@checked
def compare(
    a: str | Encoder,
    b: str | Encoder,
    tasks: Tasks = None,
    *,
    settings: Settings | None = None,
) -> Comparison:
    """Model a against model b, item by item, on every task that the results folder has of them; deterministic.

    A model is what `evaluate` takes: a name, name@revision where it has several, a checkpoint folder, LOADER:SOURCE, or
    an encoder. `tasks` (names, patterns, benchmarks, rows; your own tasks, too) choose among the tasks.
    """
    settings = settings or load_settings()
    folder = settings.results
    stored = Results(folder)
    results = list(stored.all())
    if not results:
        raise EmbarkError(f"There are no results in {folder}. Make some: embark run")
    known = known_tasks(results, settings.home)
    rows = list(known.values()) if tasks is None else choose_tasks(tasks, known=known)
    of_a, of_b = (results_of_model(stored, results, model) for model in (a, b))
    a, b = (model if isinstance(model, str) else model.card.name for model in (a, b))
    comparison = compare_results(of_a, of_b, rows)
    unknown = without_task([*of_a, *of_b], known) if tasks is None else []
    tasks_of_none = dict.fromkeys(result.task for result in unknown)
    absent = [f"left out, because {NO_TASK}: {listed(list(tasks_of_none))}"] * bool(tasks_of_none)
    comparison = replace(comparison, a=a, b=b, notes=(*stored.notes, *absent, *comparison.notes))
    if not comparison.pairs and not comparison.refused:
        where = "a known task" if tasks is None else ", ".join(by_benchmark(tasks))
        raise EmbarkError(". ".join((f"Neither {a} nor {b} has a score on {where} in {folder}", *absent)) + ".")
    if not comparison.pairs:
        why = listed([f"{task}: {reason}" for task, reason in comparison.refused.items()])
        reasons = "; ".join((why, *absent))
        raise EmbarkError(f"{a} and {b} have no task in common that can be compared ({reasons}).")
    return comparison


def compare_results(a: Sequence[TaskResult], b: Sequence[TaskResult], tasks: Sequence[Task]) -> Comparison:
    """One model's results against another's on every task that either of them has; deterministic."""
    pairs: list[ModelPair] = []
    parts: dict[str, list[Contrast]] = {}
    refused: dict[str, str] = {}
    numbers = ItemNumbers()  # of all tasks; those of one alone stand by themselves
    for task in tasks:
        result_a, result_b = _result(a, task), _result(b, task)
        if result_a or result_b:
            try:
                pair, parts[task.name] = _pair(task, result_a, result_b, numbers)
                pairs.append(pair)
            except NotComparable as error:
                refused[task.name] = str(error)
    corrected = holm([pair.p for pair in pairs])
    pairs = [replace(pair, holm=p) for pair, p in zip(pairs, corrected, strict=True)]
    groups = group_values((pair.category, pair) for pair in pairs)
    categories = {name: _tally(of_category, parts) for name, of_category in groups.items()}
    notes = (_refusals(refused),) if refused else ()
    total = _tally(pairs, parts)
    return Comparison(_name(a), _name(b), tuple(pairs), categories, total, refused, notes, (a, b), tuple(tasks))


def _refusals(refused: Mapping[str, str]) -> str:
    """The tasks that cannot be compared, by reason, in one line."""
    reasons = group_values((reason, task) for task, reason in refused.items())
    parts = [f"{listed(tasks, NAMED_TASKS)} ({reason})" for reason, tasks in reasons.items()]
    return f"not comparable: {counted(len(refused), 'task')}: {listed(parts, NAMED_TASKS)}"


def flipped_items(a: Sequence[TaskResult], b: Sequence[TaskResult], task: Task) -> tuple[list[str], list[str]]:
    """Items that only a gets right, and those that only b does.

    Right is an outcome of 1; where outcomes are not right or wrong, a first hit at rank 1.
    """
    parts_a, parts_b = _aligned(_result(a, task), _result(b, task))
    only_a: list[str] = []
    only_b: list[str] = []
    several = len({subset for _, subset in parts_a}) > 1
    for (_, subset), part in parts_a.items():
        right_a = right_items(part.outcomes, task)
        right_b = right_items(parts_b[_, subset].outcomes, task)
        names = np.array([f"{subset}/{item}" if several else str(item) for item in part.outcomes["id"]], dtype=object)
        only_a += names[right_a & ~right_b].tolist()
        only_b += names[right_b & ~right_a].tolist()
    return only_a, only_b


def right_items(columns: Mapping[str, Array], task: Task) -> Array:
    """Which items of these outcomes are right: an outcome of 1, else a first hit at rank 1."""
    values = columns.get(task.metric)
    if values is not None and np.isin(values, (0, 1)).all():
        return np.asarray(values == 1)
    if "rank" in columns:
        return np.asarray(columns["rank"] == 1)
    raise NotComparable(f"The items of {task.name} are not right or wrong, so none can flip.")


def _pair(
    task: Task, a: TaskResult | None, b: TaskResult | None, numbers: ItemNumbers
) -> tuple[ModelPair, list[Contrast]]:
    """The pair of scores, and its contrasts with items numbered among those of all tasks."""
    parts_a, parts_b = _aligned(a, b)
    assert a is not None
    assert b is not None
    own, other = list(parts_a.values()), [parts_b[key] for key in parts_a]
    parts = contrasts(task.name, own, other)
    _, low, high, p = task_difference(parts, own, other)
    items = {item for part in own for item in part.outcomes["id"].tolist()}
    shared = [
        contrast._replace(observations=observations_of(part.outcomes, a.dataset_revision, numbers))
        for contrast, part in zip(parts, own, strict=True)
    ]
    return ModelPair(task.name, task.category, a.score, b.score, low, high, p, len(items)), shared


def _aligned(a: TaskResult | None, b: TaskResult | None) -> tuple[Parts, Parts]:
    """The outcomes of both by split and subset, row by row the same item."""
    if a is None or b is None:
        raise NotComparable(f"only {(a or b).model} has a score")  # type: ignore[union-attr]
    prints_a, prints_b = ({(r.split, r.subset): r.fingerprint for r in result.records} for result in (a, b))
    if prints_a != prints_b:
        raise NotComparable("the scores were made under other protocols, or on other data")
    if a.dataset_revision != b.dataset_revision:
        commits = f"{a.dataset_revision[:12]} and {b.dataset_revision[:12]}"
        raise NotComparable(f"the scores are of different commits of the data ({commits}): run both models again")
    numbers = ItemNumbers()
    parts_a, parts_b = parts_of(a, numbers), parts_of(b, numbers)
    if parts_a.keys() != parts_b.keys() or any(
        not np.array_equal(part.outcomes["id"], parts_b[key].outcomes["id"]) for key, part in parts_a.items()
    ):
        raise NotComparable("the models were scored on other items (some were left out)")
    return parts_a, parts_b


def _name(results: Sequence[TaskResult]) -> str:
    return results[0].model if results else ""


def _cells(pair: ModelPair) -> tuple[Cell, ...]:
    scores = (points(pair.a), points(pair.b))
    return (pair.task, *scores, *difference_cells(pair), p_value(pair.p), p_value(pair.holm), pair.verdict)


def difference_cells(pair: ModelPair | Tally) -> tuple[Exact, Interval | None]:
    """A difference in points, and its interval, as cells of a table."""
    if pair.low is None or pair.high is None:
        return signed_points(pair.difference), None
    return signed_points(pair.difference), signed_ends(pair.low, pair.high)


def _ends(tally: Tally) -> str:
    interval = difference_cells(tally)[1]
    return f" {interval.text}" if interval else ""


def _result(results: Sequence[TaskResult], task: Task) -> TaskResult | None:
    of_task = (result for result in results if (result.task, result.protocol) == (task.name, task.protocol))
    return next(of_task, None)


def _tally(pairs: Sequence[ModelPair], parts: Mapping[str, Sequence[Contrast]]) -> Tally:
    verdicts = [pair.verdict for pair in pairs]
    counts = (verdicts.count("win"), verdicts.count("tie"), verdicts.count("loss"))
    mean = float(np.mean([pair.difference for pair in pairs])) if pairs else 0.0
    alone = [Difference(pair.difference, pair.low, pair.high, pair.p) for pair in pairs]
    over_tasks = mean_difference([parts[pair.task] for pair in pairs], alone)
    return Tally(*counts, mean, *(over_tasks[1:] if over_tasks else ()))
