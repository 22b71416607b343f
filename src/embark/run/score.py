"""From stored vectors to a task's result: the policy for unreadable items, the evaluator, intervals, the record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from embark import evaluators, results
from embark.data import readers
from embark.data.drop_items import without
from embark.engine.local import Report
from embark.models.encoder import fingerprint
from embark.plan import Count, Demand
from embark.results import Record, Results, TaskResult
from embark.run.stages import Staging
from embark.stats.statistics import interval, task_interval
from embark.store import Space
from embark.types import Array, EmbarkError, ModelCard, Scores, Task, role_of

NAMED = 5  # unreadable items that a message names


def fingerprint_of(task: Task, split: str, subset: str) -> str:
    """The fingerprint under which this part of a task is scored."""
    versions = evaluators.version(task.evaluator, task.params), readers.version(task.reader)
    return results.fingerprint(task, split, subset, *versions, readers.external_state(task))


def scored_by(card: ModelCard) -> str:
    """What of a model decides a score: its vectors, and how they are compared."""
    return f"{fingerprint(card)}-{card.similarity}"


@dataclass(frozen=True)
class Scoring:
    """What scoring one model's tasks takes: its card and vectors, what embedding reported, where results go."""

    card: ModelCard
    space: Space
    report: Report
    folder: Results
    memory: int  # bytes
    run: str  # names the evaluation
    staging: Staging | None = None


def score_task(task: Task, asked: Sequence[tuple[Demand, Count]], given: Scoring) -> TaskResult:
    """Score every part of a task, and save the result."""
    found: list[Scores] = []
    records: list[Record] = []
    outcomes: list[dict[str, Any]] = []
    for each, count in asked:
        start = time.perf_counter()
        each, warnings = readable(each, given.report)
        vectors: dict[str, Any] = {side: given.space.read(keys) for side, keys in each.keys.items()}
        said = {"metric": task.metric, "similarity": given.card.similarity, "memory": given.memory}
        params = {**task.params, **said}
        if given.staging and (second := given.staging.reranked(each, vectors, params)):
            vectors["reranked"] = second
        scores = evaluators.evaluate(task.evaluator, each.data.truth, vectors, params)
        ids = [each.data.sides[scores.unit].ids[row] for row in scores.rows]
        outcomes.append(results.outcome_columns(each.split, each.subset, ids, _named(scores.outcomes, each)))
        per_item = given.report.seconds / given.report.embedded if given.report.embedded else 0.0
        timings = {"embed": per_item * count.missing, "score": time.perf_counter() - start}
        records.append(_record(task, given, each, scores, count, timings, (*warnings, *scores.warnings)))
        found.append(scores)
    score = float(np.mean([record.score for record in records]))
    ids_of = [columns["id"] for columns in outcomes]
    around, card = task_interval(found, ids_of, [record.interval for record in records]), given.card
    who = (card.name, card.revision, task.name, asked[0][0].data.revision or task.source.revision)
    result = TaskResult(*who, tuple(records), score, around, time.time(), protocol=task.protocol)
    return given.folder.save(result, card, outcomes)


def readable(each: Demand, report: Report) -> tuple[Demand, tuple[str, ...]]:
    """Apply the task's policy to items that would not decode: leave them out and say so, or refuse to score."""
    if not report.unreadable:
        return each, each.data.skipped
    named: list[str] = []
    bad: dict[str, set[int]] = {}
    for side, keys in each.keys.items():
        rows = [row for row, key in enumerate(keys.tolist()) if key in report.unreadable]
        named += [f"{side} '{each.data.sides[side].ids[row]}'" for row in rows]
        for other in each.keys:  # the variants of a side keep in step
            if role_of(other) == role_of(side):
                bad.setdefault(other, set()).update(rows)
    if not named:
        return each, each.data.skipped
    said = f"{len(named)} unreadable items: {', '.join(named[:NAMED])}{'…' if len(named) > NAMED else ''}"
    if each.task.unreadable == "error":
        advice = "Mend them, or set unreadable='skip' on the task (--skip-unreadable) to score without them."
        raise EmbarkError(f"{said}. {advice}")
    kept = {side: np.delete(keys, list(bad[side])) for side, keys in each.keys.items()}
    return replace(each, data=without(each.data, bad), keys=kept), (*each.data.skipped, f"left out {said}")


def _named(outcomes: Mapping[str, Array], each: Demand) -> dict[str, Any]:
    """Outcomes that point at items (the top document, a pair's other half) name them by id."""
    sides = {"top": "document", "right": "right"}
    return {
        name: [each.data.sides[sides[name]].ids[at] if at >= 0 else None for at in values.tolist()]
        if sides.get(name) in each.data.sides
        else values
        for name, values in outcomes.items()
    }


def _record(
    task: Task,
    given: Scoring,
    each: Demand,
    scores: Scores,
    count: Count,
    timings: Mapping[str, float],
    warnings: tuple[str, ...],
) -> Record:
    asked = {"items": count.items, "unique": count.unique, "first": count.first, "embedded": count.missing}
    return Record(
        model=given.card.name,
        revision=given.card.revision,
        task=task.name,
        split=each.split,
        subset=each.subset,
        languages=task.subsets[each.subset],
        metric=scores.main,
        score=scores.value,
        interval=interval(scores.statistic, scores.main, scores.outcomes),
        metrics=scores.metrics,
        fingerprint=fingerprint_of(task, each.split, each.subset),
        encoder=scored_by(given.card),
        run=given.run,
        counts={**scores.counts, **asked},
        timings=timings,
        versions=_versions(),
        loaded=given.card.loaded,
        warnings=warnings,
    )


@cache
def _versions() -> dict[str, str]:
    """The versions of what computes: a score can be traced to them."""
    return {name: metadata.version(name) for name in ("embark", "numpy", "pillow", "scikit-learn", "pyarrow")}
