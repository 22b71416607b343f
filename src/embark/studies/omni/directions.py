"""The directions of an OmniSET-like task as a model embedded them: ranks, the modalities of what it retrieves, and what
the instruction does to each query.

A direction has queries of one modality, one right answer for each in another, and lists of candidates of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embark.catalogue import listed
from embark.evaluators.ranks import listed_ranks, tie_places
from embark.evaluators.similarity import has_token_vectors, whole
from embark.items import as_items, content_numbers
from embark.items.drop_items import without
from embark.models.encoder import Encoder
from embark.planning import Demand, task_demand
from embark.run.embedded_task import Embedded, EmbeddedPart
from embark.run.stored_vectors import Stored
from embark.stats.shared import ItemNumbers, Observations
from embark.tasks.omni import KINDS
from embark.types import Array, Dataset, EmbarkError, Modality, Qrels, Side, Task

TOP = 10  # results whose modalities are counted


@dataclass(frozen=True)
class Direction:
    """Queries of one modality and their targets in another; arrays have a row for each query."""

    query: Modality
    target: Modality
    task: str
    instruction: str | None
    rank: Array  # of the target
    top: Array  # (queries, modalities): how many of the first ten are of each
    first: Array  # the modality of the first result, as a number of KINDS
    itself: Array  # whether the first result is the query itself
    pool: Array  # (queries, modalities): how many candidates are of each
    raw: Array  # unit vectors of the queries without their instruction
    instructed: Array
    targets: Array
    contents: Array  # (queries, 2): numbers of the contents of query and target
    observations: Observations
    documents: Array  # unit vectors of all candidates
    document_kinds: Array  # their modalities, as numbers of KINDS

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def name(self) -> str:
        """Both modalities by their first letters: T→I."""
        return f"{self.query[0].upper()}→{self.target[0].upper()}"

    @property
    def reciprocal(self) -> Array:
        """The reciprocal rank of each target."""
        return np.asarray(1 / self.rank)

    @property
    def hit(self) -> Array:
        """1 where the target is first."""
        return np.asarray(self.rank == 1, np.float64)

    @property
    def moved(self) -> Array:
        """How far the instruction moves each query: 1 − cos(raw, instructed)."""
        return cosine_distance(self.raw, self.instructed)

    @property
    def shift(self) -> Array:
        """d(instructed query, target) − d(raw query, target), d the cosine distance: negative is closer."""
        return cosine_distance(self.instructed, self.targets) - cosine_distance(self.raw, self.targets)


def cosine_distance(a: Array, b: Array) -> Array:
    """1 − cosine of unit vectors, row by row; exactly 0 for equal ones."""
    return np.asarray(((a.astype(np.float64) - b) ** 2).sum(axis=1) / 2)


def stored_directions(encoder: Stored, tasks: Sequence[Task]) -> tuple[Direction, ...]:
    """All directions of the tasks, in the order of modalities; queries are embedded with and without instruction."""
    if others := [task.name for task in tasks if task.evaluator != "choice"]:  # before anything is embedded
        raise EmbarkError(f"{listed(others)}: no list of candidates for each query, as OmniSET has. Leave them out.")
    numbers = ItemNumbers()
    directions: dict[tuple[Modality, Modality], Direction] = {}
    for task in tasks:
        plain = {role: text for role, text in task.instructions.items() if role.split(":")[0] != "query"}
        raw = encoder.task(replace(task, instructions=plain))
        for direction in _directions(encoder.task(task), raw, numbers):
            pair = direction.query, direction.target
            if pair in directions:
                both = f"{directions[pair].task} and {task.name} both go from {pair[0]} to {pair[1]}"
                raise EmbarkError(f"{both}: diagnose one set at a time.")
            directions[pair] = direction
    if not directions:
        names = ", ".join(task.name for task in tasks[:3])
        raise EmbarkError(f"{encoder.encoder.card.name} takes too few modalities for any direction of {names}.")
    return tuple(directions[pair] for pair in sorted(directions, key=lambda pair: [*map(KINDS.index, pair)]))


class MixedLists(Stored):
    """Stored vectors of tasks whose lists mix modalities: those that the model does not take are left out."""

    def task(self, task: Task, command: str = "") -> Embedded:
        """A task with its vectors, on the modalities that the model takes; parts without any are left out."""
        taken = tuple(kind for kind in task.modalities if kind in self.encoder.card.modalities)
        limited = {part: _limited(self.read(task, *part), taken) for part in task.parts}
        self._parts = {part: data for part, data in limited.items() if data is not None}
        row = replace(task, modalities=taken)
        return super().task(row, command) if self._parts else Embedded(self.encoder.card.name, row, ())

    def demands(self, task: Task, encoder: Encoder) -> list[Demand]:
        """The keys of the items of modalities that the model takes."""
        return [task_demand(task, *part, data, encoder) for part, data in self._parts.items()]


def _limited(data: Dataset, taken: Sequence[Modality]) -> Dataset | None:
    """The data without items of other modalities; None where nothing is left to find."""
    unused = {
        name: [row for row, kind in enumerate(_kinds(side).tolist()) if KINDS[kind] not in taken]
        for name, side in data.sides.items()
    }
    if not any(unused.values()):
        return data
    truth = data.truth
    assert isinstance(truth, Qrels)
    right = truth.document[truth.grade > 0]
    if len(unused["query"]) == len(data.sides["query"]) or np.isin(right, unused["document"]).all():
        return None
    return without(data, unused)


def _directions(task: Embedded, raw: Embedded, numbers: ItemNumbers) -> Iterator[Direction]:
    for part, plain in zip(task.parts, raw.parts, strict=True):
        truth = part.truth
        assert isinstance(truth, Qrels)
        if any(has_token_vectors(vectors) for vectors in part.vectors.values()):
            raise EmbarkError(f"{task.model} has several vectors for an item: distances of queries are not defined.")
        yield _direction(task.task, part, plain, truth, numbers)


def _direction(task: Task, part: EmbeddedPart, plain: EmbeddedPart, truth: Qrels, numbers: ItemNumbers) -> Direction:
    queries, documents = part.sides["query"], part.sides["document"]
    kinds = _kinds(documents)
    [query_kind] = _only(task, _kinds(queries), "queries")
    relevant = np.flatnonzero(truth.grade > 0)
    relevant = relevant[np.argsort(truth.query[relevant], kind="stable")]
    target = truth.document[relevant]
    if not np.array_equal(truth.query[relevant], np.arange(len(queries))):
        raise EmbarkError(f"{task.name} has queries with several right answers, or none: OmniSET has one for each.")
    [target_kind] = _only(task, kinds[target], "targets")
    pool = _counts(truth.query, kinds[truth.document], len(queries))
    if (pool > 0).sum(axis=1).max() < 2 or query_kind == target_kind:
        raise EmbarkError(f"{task.name} mixes no modalities in the candidates of a query, as OmniSET does.")
    vectors = part.vectors
    place = tie_places(truth.document_ids, len(documents))
    pairs = (truth.query, truth.document)
    rank, best = listed_ranks(vectors["query"], vectors["document"], *pairs, part.params["similarity"], place)
    high = rank <= TOP
    contents = np.stack(
        [
            content_numbers(queries.items, np.arange(len(queries))).astype(np.int64),
            content_numbers(documents.items, target).astype(np.int64),
        ],
        axis=1,
    )
    best_contents = content_numbers(documents.items, best).astype(np.int64)
    unit = whole(vectors["document"], "cosine")
    columns = {
        "id": list(queries.ids), "content": contents[:, 0],
        "partner": [documents.ids[row] for row in target.tolist()], "partner_content": contents[:, 1],
    }  # fmt: skip
    return Direction(
        KINDS[query_kind],
        KINDS[target_kind],
        task.name,
        task.instruction("query", part.subset),
        rank[relevant],
        _counts(truth.query[high], kinds[truth.document[high]], len(queries)),
        kinds[best],
        best_contents == contents[:, 0],
        pool,
        whole(plain.vectors["query"], "cosine"),
        whole(vectors["query"], "cosine"),
        unit[target],
        contents,
        numbers.observations(task.source.revision, columns),
        unit,
        kinds,
    )


def _kinds(side: Side) -> Array:
    """The modality of each item, as a number of KINDS."""
    names, numbers = as_items(side.items).kinds()
    if any(len(kinds) != 1 for kinds in names):
        raise EmbarkError("Items of several modalities have no direction from one to another.")
    return np.array([KINDS.index(kinds[0]) for kinds in names])[numbers]


def _only(task: Task, kinds: Array, what: str) -> list[int]:
    """The one modality that items have."""
    distinct: list[int] = np.unique(kinds).tolist()
    if len(distinct) != 1:
        raise EmbarkError(f"The {what} of {task.name} are of several modalities: a direction has one.")
    return distinct


def _counts(query: Array, kind: Array, queries: int) -> Array:
    """(queries, modalities): how often each modality occurs for each query."""
    size = queries * len(KINDS)
    return np.bincount(query * len(KINDS) + kind, minlength=size).reshape(queries, len(KINDS))
