"""The queries of ARK's tables: the rank of each query's right picture by every route, and the groups of both axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.boards.reasoning import AXIS, axis_labels
from embark.catalogue import group_values
from embark.results import TaskResult
from embark.run.stages import Stages
from embark.stats.outcomes import NAMES, observations_of
from embark.stats.shared import ItemNumbers, Observations, Part
from embark.tasks.ark import DEMANDS, SKILLS
from embark.types import Array, EmbarkError, Task

METRICS = ("recall_at_1", "recall_at_5", "recall_at_10", "ndcg_at_5", "ndcg_at_10", "ndcg_at_20")
KNOWLEDGE = "knowledge axis"


@dataclass(frozen=True)
class Route:
    """A way from queries to a ranking: the model alone, or with stages; its results by task."""

    name: str
    results: Mapping[str, TaskResult]
    stages: Stages | None = None


@dataclass(frozen=True, eq=False)
class QueryGroup:
    """Queries that are scored together: a subtype, a domain, a skill, a demand, or the average of an axis.

    Its score is the mean over `parts`, each of which is an array of places in `Queries`.
    """

    axis: str
    kind: str
    name: str
    parts: tuple[Array, ...]

    @property
    def count(self) -> int:
        """The number of its queries."""
        return len(np.unique(np.concatenate(self.parts)))


@dataclass(frozen=True)
class Queries:
    """The queries that all routes ranked: task, skills, demand, the items they stand on, and their ranks by route.

    A rank is that of the right document, −1 where it is below all that counts.
    """

    task: tuple[str, ...]
    skills: tuple[tuple[str, ...], ...]
    demand: tuple[str, ...]
    items: Observations
    ranks: Mapping[str, Array]
    dropped: int = 0  # queries that some route did not rank

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.task)

    @classmethod
    def of(cls, tasks: Sequence[Task], routes: Sequence[Route]) -> Queries:
        """The queries of tasks that all routes have results on, in the order of the first route."""
        columns: dict[str, list[Any]] = {"task": [], "skills": [], "demand": []}
        numbers: list[Observations] = []
        ranks: dict[str, list[Array]] = {route.name: [] for route in routes}
        dropped = 0
        counter = ItemNumbers()
        for task in (task for task in tasks if all(task.name in route.results for route in routes)):
            first = routes[0].results[task.name]
            labels = axis_labels(task, first)
            by_route = {route.name: _ranks(route.results[task.name]) for route in routes}
            shared = [key for key in by_route[routes[0].name] if all(key in ranked for ranked in by_route.values())]
            dropped += max(map(len, by_route.values())) - len(shared)
            place = {key: row for row, key in enumerate(by_route[routes[0].name])}
            rows = [place[key] for key in shared]
            table = first.outcomes()
            names = [name for name in NAMES if name in table.column_names]
            outcomes = {name: table[name].to_numpy(zero_copy_only=False)[rows] for name in names}
            numbers.append(observations_of(outcomes, task.name, counter))
            for name, route_ranks in by_route.items():
                ranks[name].append(np.array([route_ranks[key] for key in shared], np.int64))
            columns["task"] += [task.name] * len(shared)
            shared_labels = [labels.get(id, ((), "")) for _, _, id in shared]
            columns["skills"] += [skills for skills, _ in shared_labels]
            columns["demand"] += [demand for _, demand in shared_labels]
        if not numbers:
            raise EmbarkError("No task was ranked by all routes: see the notes on what failed.")
        items = Observations(*(np.concatenate([part[side] for part in numbers]) for side in (0, 1)))
        return cls(
            task=tuple(columns["task"]),
            skills=tuple(columns["skills"]),
            demand=tuple(columns["demand"]),
            items=items,
            ranks={name: np.concatenate(route_ranks) for name, route_ranks in ranks.items()},
            dropped=dropped,
        )

    def parts(self, route: str, group: QueryGroup, metric: str) -> list[Part]:
        """The outcomes of a route on each part of a group."""
        values = metric_values(self.ranks[route], metric)
        first, second = self.items
        return [
            Part("mean", metric, {metric: values[rows]}, Observations(first[rows], second[rows]))
            for rows in group.parts
        ]


def metric_values(ranks: Array, metric: str) -> Array:
    """The value of a metric for each query, from the rank of its one right document; −1 is not ranked."""
    name, _, depth = metric.partition("_at_")
    hit = (ranks > 0) & (ranks <= int(depth))
    return np.where(hit, 1.0 if name == "recall" else 1 / np.log2(1 + np.maximum(ranks, 1)), 0.0)


def _ranks(result: TaskResult) -> dict[tuple[str, str, str], int]:
    """The rank of the right document by split, subset and query; an error where queries have several right ones."""
    outcomes = result.outcomes()
    if "rank" not in outcomes.column_names or outcomes["rank"].null_count:
        raise EmbarkError(f"The outcomes of {result.model} on {result.task} have no ranks: run the task again.")
    columns = outcomes.select(["split", "subset", "id", "rank"]).to_pydict()
    keys = zip(columns["split"], columns["subset"], columns["id"], strict=True)
    ranks = dict(zip(keys, columns["rank"], strict=True))
    for record in result.records:
        part = (record.split, record.subset)
        values = np.array([rank for key, rank in ranks.items() if key[:2] == part])
        for metric in METRICS:
            mean = float(metric_values(values, metric).mean())
            if abs(mean - record.metrics.get(metric, mean)) > 1e-6:
                raise EmbarkError(
                    f"{result.task} has queries with several right answers ({metric} {record.metrics[metric]:.4f}, "
                    f"by the first one {mean:.4f}), and ARK's tables are of one: leave it out."
                )
    return ranks


def groups_of(tasks: Sequence[Task], queries: Queries) -> tuple[QueryGroup, ...]:
    """Subtypes, domains and the average of the knowledge axis; skills, their average and demands."""
    task_names = np.array(queries.task)
    subtypes = {task.name: np.flatnonzero(task_names == task.name) for task in tasks if task.name in queries.task}
    domains = group_values((task.category, subtypes[task.name]) for task in tasks if task.name in subtypes)
    skills = {name: np.array([name in own for own in queries.skills]) for name in SKILLS}
    demands = {name: np.array(queries.demand) == name for name in DEMANDS}
    labeled = {name: (np.flatnonzero(mask),) for name, mask in skills.items() if mask.any()}
    groups = [QueryGroup(KNOWLEDGE, "subtype", name, (rows,)) for name, rows in subtypes.items()]
    groups += [QueryGroup(KNOWLEDGE, "domain", name, tuple(parts)) for name, parts in domains.items()]
    groups.append(QueryGroup(KNOWLEDGE, "average", "average", tuple(subtypes.values())))
    groups += [QueryGroup(AXIS, "skill", name, parts) for name, parts in labeled.items()]
    if labeled:
        groups.append(QueryGroup(AXIS, "average", "average", tuple(rows for (rows,) in labeled.values())))
    groups += [
        QueryGroup(AXIS, "demand", name, (np.flatnonzero(mask),)) for name, mask in demands.items() if mask.any()
    ]
    return tuple(groups)
