"""Ranked lists: the best documents of every query with their scores, for leaderboards and tools that score them.

They need no labels, so they work for tasks whose relevance is hidden (ARK), with stages around the model, too. What is
in the store is not embedded, written or scored again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embark import readers
from embark.catalogue import check_name
from embark.evaluators.ranks import tie_places
from embark.evaluators.topk import topk
from embark.field_types import checked
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.outgoing import write_text
from embark.paths import place
from embark.planning import Demand, task_demand
from embark.redaction import Content, redacted, this_machine
from embark.results.selection import select_tasks
from embark.run.crash_log import CrashLog
from embark.run.models import Models, choose_models
from embark.run.stages import StagedWorkbench, Stages
from embark.run.workbench import Workbench, readable_items
from embark.settings import Settings, load_settings
from embark.tables import Columnar
from embark.tasks import Tasks
from embark.types import Array, Dataset, EmbarkError, Task

DEPTH = 100
FORMATS = {"jsonl": ".jsonl", "trec": ".run"}


@dataclass(frozen=True)
class Ranking(Columnar):
    """The best documents of each query of one split and subset, best first."""

    model: str
    task: str
    split: str
    subset: str
    queries: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    scores: Array
    protocol: str = "paper"  # names the stages, where there are some

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """A line per query and document: their ids, the rank and the score."""
        lists = zip(self.queries, self.documents, self.scores.tolist(), strict=True)
        return ["query_id", "corpus_id", "rank", "score"], [
            [query, document, rank, score]
            for query, documents, scores in lists
            for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1)
        ]

    def lines(self, format: str) -> Iterator[str]:
        """One JSON object per query, or one line per document as trec_eval reads it."""
        tag = redacted(self.model, this_machine()).replace(" ", "_")
        for query, documents, scores in zip(self.queries, self.documents, self.scores.tolist(), strict=True):
            if format == "jsonl":
                yield json.dumps({"query_id": query, "corpus_ids": documents, "scores": scores}, ensure_ascii=False)
            else:
                for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1):
                    yield f"{query} Q0 {document} {rank} {score:.9g} {tag}"

    def save(self, folder: Path, format: str = "jsonl") -> Path:
        """Write it as <model>/<task>.jsonl, or .run; splits, subsets and stages are named where there are several."""
        check_name("format of ranked lists", format, FORMATS)
        part = "" if (self.split, self.subset) == ("test", "default") else f".{self.split}.{self.subset}"
        part += "" if self.protocol == "paper" else f".{self.protocol}"
        path = place(place(folder, redacted(self.model, this_machine())), f"{self.task}{part}", FORMATS[format])
        return write_text(path, Content("".join(f"{line}\n" for line in self.lines(format))))  # ids are content


@checked
def rank(
    model: Models,
    tasks: Tasks,
    *,
    depth: int = DEPTH,
    stages: Stages | None = None,
    settings: Settings | None = None,
    loading: Loading | None = None,
    show_progress: bool = True,
) -> Iterator[Ranking]:
    """The rankings of one or more models on retrieval tasks: the `depth` best documents of each query.

    `stages` are models that work before and after: captions, rewritten queries, re-ranking. Documents that were
    re-ranked have the re-ranker's scores; those below them keep their order, with scores that continue downwards.

    A failure costs its task; when all others are ranked, one error lists what failed.
    """
    settings = settings or load_settings()
    chosen = select_tasks(tasks, None, settings)
    if others := [task.name for task in chosen if task.evaluator != "retrieval"]:
        raise EmbarkError(f"Only retrieval tasks rank a corpus; {', '.join(others[:3])} do not. Leave them out.")
    bench: Workbench = Unlabeled(settings, show_progress=show_progress)
    if stages:
        bench = StagedUnlabeled(stages, loading or Loading(), bench)
    rows = [bench.row(task) for task in chosen]
    log = CrashLog(bench.settings)
    failures = []
    for encoder in choose_models(model, loading, bench.settings):
        for task in rows:
            if why := bench.incompatibility(encoder.card, task):
                raise EmbarkError(f"{encoder.card.name} cannot do {task.name}: {why}.")
            for part in task.parts:
                try:
                    ranking = ranking_of(bench, encoder, task, *part, depth)
                except Exception as error:
                    where = f"{task.name} for {encoder.card.name}"
                    failures.append(f"{where}: {log.reason(error, where)}")
                else:
                    yield ranking
    if failures:
        raise EmbarkError("\n".join(["Some tasks could not be ranked.", *failures]))


class Unlabeled(Workbench):
    """A workbench that reads tasks without their labels."""

    def _read(self, task: Task, split: str, subset: str) -> Dataset:
        return readers.read_unlabeled(task, split, subset, self.hub)


class StagedUnlabeled(StagedWorkbench, Unlabeled):
    """The same with stages."""


def ranking_of(bench: Workbench, encoder: Encoder, task: Task, split: str, subset: str, depth: int) -> Ranking:
    """The `depth` best documents of each query of one split and subset; what is not stored is embedded."""
    demand = task_demand(task, split, subset, bench.read(task, split, subset), encoder)
    for keys in demand.keys.values():
        bench.space(encoder.card).discard(keys)  # damaged vectors are embedded again
    demand = readable_items(demand, bench.embed(encoder, bench.plan(encoder, [demand])))
    vectors = bench.vectors(encoder, demand)
    documents = demand.data.sides["document"].ids
    stage = bench if isinstance(bench, StagedWorkbench) and bench.reranker is not None else None
    best, scores = topk(
        vectors["query"],
        vectors["document"],
        max(depth, stage.depth) if stage else depth,
        encoder.card.similarity,
        ids=np.asarray(documents, np.str_),
        memory=bench.settings.memory << 20,
    )
    if stage:
        best, scores = _reranked(stage, demand, best, scores)
    best, scores = best[:, :depth], scores[:, :depth]
    return Ranking(
        bench.card(encoder.card).name,
        task.name,
        split,
        subset,
        queries=tuple(demand.data.sides["query"].ids),
        documents=tuple(tuple(documents[position] for position in row) for row in best.tolist()),
        scores=scores,
        protocol=task.protocol if isinstance(bench, StagedWorkbench) else "paper",
    )


def _reranked(bench: StagedWorkbench, demand: Demand, best: Array, scores: Array) -> tuple[Array, Array]:
    """The best documents in the order of a re-ranker's scores, ties by id as in evaluations; the others below them."""
    count = min(bench.depth, best.shape[1])
    head, rest = best[:, :count], best[:, count:]
    queries = np.repeat(np.arange(len(best)), count)
    new = bench.reranker_scores(demand, queries, head.ravel()).reshape(head.shape)
    place = tie_places(np.asarray(demand.data.sides["document"].ids, np.str_), len(demand.data.sides["document"]))
    order = np.lexsort((place[head], -new), axis=1)
    head, new = np.take_along_axis(head, order, 1), np.take_along_axis(new, order, 1)
    below = scores[:, count:]
    if below.shape[1]:  # on another scale: moved down as a whole
        below = new[:, -1:] - 1 + below - below[:, :1]
    return np.concatenate([head, rest], axis=1), np.concatenate([new, below], axis=1)
