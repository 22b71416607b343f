"""Ranked lists: the best documents of every query with their scores, for leaderboards and tools that score them.

They need no labels, so they work for tasks whose relevance is hidden (ARK). What is in the store is not embedded again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embark.data import readers
from embark.data.fetch import Hub
from embark.engine.local import embed
from embark.engine.progress import progress
from embark.evaluators.topk import topk
from embark.models import Loading
from embark.models.encoder import Encoder, fingerprint
from embark.plan import Demand, demand, plan
from embark.run import Models, Tasks, cannot, parts, resolve_models, resolve_tasks
from embark.run.score import readable
from embark.settings import Settings, load_settings
from embark.store import Space, Store
from embark.types import Array, EmbarkError, Task

DEPTH = 100
FORMATS = {"jsonl": ".jsonl", "trec": ".run"}


@dataclass(frozen=True)
class Ranking:
    """The best documents of each query of one split and subset, best first."""

    model: str
    task: str
    split: str
    subset: str
    queries: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    scores: Array

    def lines(self, style: str) -> Iterator[str]:
        """One JSON object a query, or one line a document as trec_eval reads it."""
        tag = self.model.replace(" ", "_")
        for query, documents, scores in zip(self.queries, self.documents, self.scores.tolist(), strict=True):
            if style == "jsonl":
                yield json.dumps({"query_id": query, "corpus_ids": documents, "scores": scores}, ensure_ascii=False)
            else:
                for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1):
                    yield f"{query} Q0 {document} {rank} {score:.9g} {tag}"

    def save(self, folder: Path, style: str = "jsonl") -> Path:
        """Write it as <model>/<task>.jsonl, or .run; splits and subsets are named where a task has several."""
        part = "" if (self.split, self.subset) == ("test", "default") else f".{self.split}.{self.subset}"
        name = f"{self.task.replace('/', '__')}{part}{FORMATS[style]}"
        path = folder / self.model.replace("/", "__") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in self.lines(style)), encoding="utf-8")
        return path


def ranked(
    model: Models,
    tasks: Tasks,
    *,
    depth: int = DEPTH,
    settings: Settings | None = None,
    loading: Loading | None = None,
    show_progress: bool = True,
) -> Iterator[Ranking]:
    """The rankings of one or more models on retrieval tasks, by similarity alone."""
    settings = settings or load_settings()
    chosen = resolve_tasks(tasks)
    if others := [task.name for task in chosen if task.evaluator != "retrieval"]:
        raise EmbarkError(f"Only retrieval tasks rank a corpus; {', '.join(others[:3])} do otherwise. Leave them out.")
    hub = Hub(settings)
    for encoder in resolve_models(model, loading, settings):
        space = Store(settings.store).space(fingerprint(encoder.card))
        for task in chosen:
            if why := cannot(encoder.card, task):
                raise EmbarkError(f"{encoder.card.name} cannot do {task.name}: {why}.")
            yield from _rankings(encoder, task, hub, space, depth, settings, show_progress)


def _rankings(
    encoder: Encoder, task: Task, hub: Hub, space: Space, depth: int, settings: Settings, show: bool
) -> Iterator[Ranking]:
    for split, subset in parts(task):
        data = readers.read_unlabeled(task, split, subset, hub)
        each = _embedded(demand(task, split, subset, data, encoder), encoder, space, settings, show)
        ids = {side: each.data.sides[side].ids for side in ("query", "document")}
        vectors: dict[str, Any] = {side: space.read(each.keys[side]) for side in ids}
        ties = np.asarray(ids["document"], np.str_)
        memory = settings.memory << 20
        similarity = encoder.card.similarity
        best, scores = topk(vectors["query"], vectors["document"], depth, similarity, ids=ties, memory=memory)
        named = tuple(tuple(ids["document"][at] for at in row) for row in best.tolist())
        yield Ranking(encoder.card.name, task.name, split, subset, tuple(ids["query"]), named, scores)


def _embedded(each: Demand, encoder: Encoder, space: Space, settings: Settings, show: bool) -> Demand:
    """The demand once all its vectors are stored, by the task's policy for items that do not decode."""
    planned = plan([each], space.has)
    if not planned.needs:
        return each
    with progress(encoder.card.name, len(planned.needs), show) as advance, space.writer() as writer:
        report = embed(encoder, planned.needs, writer, workers=settings.workers, advance=advance)
    space.refresh()
    return readable(each, report)[0]
