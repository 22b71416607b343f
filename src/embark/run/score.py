"""From stored vectors to a task's result: scores, intervals, the record on disk."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import pyarrow as pa

from embark import __version__, results
from embark.engine.report import EmbeddingReport
from embark.hub import Hub
from embark.items.lazy_items import id_array, take_ids
from embark.models.encoder import Encoder
from embark.planning import Count, Demand
from embark.protocol import encoder_fingerprint, fingerprint_of, style_used
from embark.results import SAMPLED, Record, Results, TaskResult
from embark.run.embedded_task import item_columns, part_columns
from embark.run.workbench import Workbench, readable_items
from embark.stats.shared import ItemNumbers, Part, interval
from embark.stats.statistics import check_score
from embark.tasks import TASKS
from embark.types import Array, ClaimedTask, Classes, ModelCard, Scores, Split, Task


def commit_now(task: Task, recorded: str, hub: Hub) -> str:
    """The commit that a task's data has now, where a result on disk has the `recorded` one."""
    by_itself = recorded == task.source.revision  # it names its content: a commit, a folder's state
    if by_itself or isinstance(task, ClaimedTask):  # a hub is not asked about what only a result names
        return recorded
    return hub.resolve(task.source.id, task.source.revision)


@dataclass(frozen=True)
class Scoring:
    """The inputs of scoring one model's tasks: workbench, model, the report of embedding, the results folder."""

    bench: Workbench
    encoder: Encoder
    report: EmbeddingReport
    folder: Results
    run: str  # the id of the evaluation
    tasks_at_once: int = 1
    outdated: Mapping[str, TaskResult] = field(default_factory=dict)  # by task: results that are replaced


def score_task(task: Task, demands: Sequence[tuple[Demand, Count]], scoring: Scoring) -> TaskResult:
    """Score every split and subset of a task, and save the result."""
    card = scoring.bench.card(scoring.encoder.card)
    parts: list[Part] = []
    records: list[Record] = []
    outcomes: list[dict[str, Any]] = []
    numbers = ItemNumbers()
    revision = demands[0][0].data.revision or task.source.revision
    spent = _embedding_spent(scoring.outdated.get(task.name), revision, encoder_fingerprint(card))
    for demand, count in demands:
        start = time.perf_counter()
        demand = readable_items(demand, scoring.report)
        scores = scoring.bench.score(scoring.encoder, demand, scoring.tasks_at_once)
        check_score(scores)
        items = item_columns(demand.data.sides, demand.data.truth, scores)
        parts_of_items = part_columns(demand.data.sides, demand.data.truth, scores)
        columns = _with_names(scores.outcomes, demand) | _of_items(items) | parts_of_items | _facts(scores, demand)
        outcomes.append(results.outcome_columns(demand.split, demand.subset, columns.pop("id"), columns))
        part = Part(scores.statistic, scores.main, scores.outcomes, numbers.observations("", items))
        embedded, seconds = spent.get((demand.split, demand.subset), (0, 0.0))
        seconds += _embedding_time(scoring.report, count)
        timings = {"embed": seconds, "score": time.perf_counter() - start}
        record = _record(demand, scores, interval([part]), card, scoring, count, timings)
        records.append(replace(record, counts={**record.counts, "embedded": embedded + count.missing}))
        parts.append(part)
    result = TaskResult(
        model=card.name,
        revision=card.revision,
        task=task.name,
        dataset_revision=revision,
        records=tuple(records),
        score=float(np.mean([record.score for record in records])),
        interval=records[0].interval if len(parts) == 1 else interval(parts),
        date=time.time(),
        protocol=task.protocol,
        row=None if task.name in TASKS else task,
    )
    return scoring.folder.save(result, card, outcomes)


def _embedding_spent(
    result: TaskResult | None, revision: str, encoder: str
) -> dict[tuple[str, str], tuple[int, float]]:
    """By part, the items that were embedded for the result that is replaced, and the seconds that this took: its
    vectors are used again, if they are of this encoder and this revision of the data.
    """
    if result is None or result.dataset_revision != revision:
        return {}
    return {
        (record.split, record.subset): (record.counts.get("embedded", 0), record.timings.get("embed", 0.0))
        for record in result.records
        if record.encoder == encoder
    }


def _embedding_time(report: EmbeddingReport, count: Count) -> float:
    """The share of the embedding time for a demand's own items, as if all items took the same time."""
    return report.seconds / report.embedded * count.missing if report.embedded else 0.0


def _with_names(outcomes: Mapping[str, Array], demand: Demand) -> dict[str, Any]:
    """Outcomes that point at items (the top document, a pair's other half) or classes with their ids and names."""
    columns: dict[str, Any] = dict(outcomes)
    truth = demand.data.truth
    classes = truth.names if isinstance(truth, Classes | Split) else ()
    for name in columns if classes else ():
        if name == "label" or re.fullmatch(results.PREDICTED, name):
            columns[name] = id_array(classes).take(pa.array(columns[name]))
    for name, side in (("top", "document"), ("right", "right")):
        if name in columns and side in demand.data.sides:
            ids = demand.data.sides[side].ids
            known = columns[name] >= 0
            names = id_array(take_ids(ids, columns[name][known]))
            columns[name] = names.take(pa.array(np.cumsum(known) - 1, mask=~known))
    return columns


def _of_items(items: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of `item_columns`, ids as Arrow arrays."""
    return {name: id_array(column) if name in ("id", "partner") else column for name, column in items.items()}


def _facts(scores: Scores, demand: Demand) -> dict[str, Any]:
    """What the data tell about the items that were scored, as columns."""
    about = demand.data.about.get(scores.unit, {})
    return {f"{results.ABOUT}{fact}": [values[row] for row in scores.rows.tolist()] for fact, values in about.items()}


def _record(
    demand: Demand,
    scores: Scores,
    ends: tuple[float, float],
    card: ModelCard,
    scoring: Scoring,
    count: Count,
    timings: Mapping[str, float],
) -> Record:
    report = scoring.report
    halved = {"batch size": report.batch_size} if report.batch_size and count.missing else {}
    used = style_used(card, demand.task.style)
    return Record(
        model=card.name,
        revision=card.revision,
        task=demand.task.name,
        split=demand.split,
        subset=demand.subset,
        languages=demand.task.subsets[demand.subset],
        metric=scores.main,
        score=scores.value,
        interval=ends,
        statistic=scores.statistic,
        metrics=scores.metrics,
        fingerprint=fingerprint_of(demand.task, demand.split, demand.subset),
        encoder=encoder_fingerprint(card),
        run=scoring.run,
        counts={
            **scores.counts,
            **demand.data.counts,
            "items": count.items,
            "unique": count.unique,
            "first": count.first,
            "embedded": count.missing,
            **({} if demand.data.sampled_from is None else {SAMPLED: demand.data.sampled_from}),
        },
        timings=timings,
        versions=_versions(),
        loaded={
            **card.loaded,
            **halved,  # what memory sufficed for
            **({"style": used} if used else {}),
            **scoring.bench.stage_facts(demand),
        },
        warnings=(
            *demand.data.skipped,
            *scores.warnings,
            *(report.warnings if count.missing else ()),
            *scoring.bench.stage_notes(demand.task),
        ),
    )


@cache
def _versions() -> dict[str, str]:
    """The versions of what computes: a score can be traced to them."""
    libraries = ("numpy", "pillow", "scikit-learn", "pyarrow")
    return {"embark": __version__} | {name: metadata.version(name) for name in libraries}
