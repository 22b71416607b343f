"""The best answers of a model to a few items, from its stored vectors: documents of a query, classes of an item.

No model is loaded: where the vectors are not stored, or are of items that only the model itself can render, there are
no answers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embark.evaluators.similarity import exact, has_token_vectors, whole
from embark.evaluators.topk import topk
from embark.evaluators.zeroshot import class_vectors
from embark.items import take
from embark.planning import task_demand
from embark.run.models import StoredOnly
from embark.run.workbench import Workbench
from embark.store import MissingVectors
from embark.types import Array, Classes, Dataset, EmbarkError, ModelCard, Qrels, Side, Task

COUNT = 5
MOST_DOCUMENTS = 200_000  # documents that are ranked for a page
Answers = list[list[tuple[int, float]]]  # for each item, documents or classes with their similarities, best first


def best_answers(
    bench: Workbench, card: ModelCard, task: Task, part: tuple[str, str], data: Dataset, rows: Array
) -> Answers | None:
    """The best answers to the items at these rows of the queries, or of the items to classify; None where unknown."""
    truth = data.truth
    sides = ("query", "document") if isinstance(truth, Qrels) else ("item", "prompt")
    if not isinstance(truth, Qrels | Classes) or task.evaluator not in ("retrieval", "choice", "zeroshot"):
        return None
    if len(data.sides[sides[1]]) > MOST_DOCUMENTS:
        return None
    side = data.sides[sides[0]]
    few = Side([side.ids[row] for row in rows.tolist()], take(side.items, rows))
    try:
        demand = task_demand(task, *part, replace(data, sides={**data.sides, sides[0]: few}), StoredOnly(card))
        vectors = bench.vectors(StoredOnly(card), demand)
        queries, documents = vectors[sides[0]], vectors[sides[1]]
        if isinstance(truth, Classes):
            return _classes(queries, documents, truth, card)
        if task.evaluator == "choice" or task.params.get("judged_only"):
            return _judged(queries, documents, truth, rows, card)
        best, scores = topk(queries, documents, COUNT, card.similarity, ids=np.asarray(data.sides["document"].ids))
    except (MissingVectors, EmbarkError):
        return None
    return [list(zip(*pair, strict=True)) for pair in zip(best.tolist(), scores.tolist(), strict=True)]


def _judged(queries: object, documents: object, truth: Qrels, rows: Array, card: ModelCard) -> Answers:
    """The best of the documents that are listed for each query."""
    answers: Answers = []
    for place, row in enumerate(rows.tolist()):
        listed = truth.document[truth.query == row]
        scores = exact(queries, documents, np.full(len(listed), place), listed, card.similarity)
        order = np.argsort(-scores, kind="stable")[:COUNT]
        answers.append([(int(listed[rank]), float(scores[rank])) for rank in order])
    return answers


def _classes(items: object, prompts: object, truth: Classes, card: ModelCard) -> Answers | None:
    """The best classes of each item."""
    if has_token_vectors(prompts):
        return None
    centers = class_vectors(whole(prompts, card.similarity), truth.prompt, len(truth.names))
    scores = whole(items, card.similarity) @ centers.T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :COUNT]
    return [[(int(number), float(row[number])) for number in order] for order, row in zip(best, scores, strict=True)]
