"""How long a run will take: what a plan measures and predicts, kept for a day, and compared with what the run took."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embark import evaluators
from embark.catalogue import group_values
from embark.models.encoder import fingerprint
from embark.planning import Demand
from embark.run.embedded_task import item_columns
from embark.run.workbench import Workbench
from embark.settings import Settings
from embark.stats.shared import ItemNumbers, Part, interval
from embark.types import ModelCard, Qrels, Task

DAY = 24 * 3600.0
QUERIES, DOCUMENTS = 512, 16_384  # of the ranking that is timed where there is a larger one
LARGEST = QUERIES * DOCUMENTS  # queries × documents that are ranked as they are
GROWTH = 4  # of the work, from one part that is timed to the next


@dataclass(frozen=True)
class Prediction:
    """The seconds that a run will take, if it computes so many scores and embeds so many items; `took` is what it did
    take, once it ran.
    """

    scores: int
    embedded: int
    seconds: float
    date: float
    took: float | None = None

    @classmethod
    def load(cls, path: Path) -> Prediction | None:
        """The prediction of a file; None where there is none of the last day that can be read."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            prediction = cls(**json.loads(path.read_bytes()))
            return prediction if abs(time.time() - prediction.date) < DAY else None
        return None

    def save(self, path: Path) -> None:
        """Write the file; in a home that cannot be written, nothing is kept."""
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(asdict(self)) + "\n")
            part.replace(path)


def prediction_file(settings: Settings, cards: Iterable[ModelCard], tasks: Iterable[Task]) -> Path:
    """The file of the prediction for these models and tasks."""
    names = [*map(fingerprint, cards), "", *(f"{task.name} {task.protocol} {task.limit}" for task in tasks)]
    name = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    return settings.home / "predictions" / f"{name}.json"


def settle_prediction(path: Path, scores: int, embedded: int, seconds: float) -> float | None:
    """The seconds that were predicted for a run that did just this, recorded beside what it took; None where the plan
    was about another one: scores that are on disk by now, vectors that were stored meanwhile.
    """
    prediction = Prediction.load(path)
    if prediction is None or (prediction.scores, prediction.embedded) != (scores, embedded) or not scores:
        return None
    Prediction(scores, embedded, prediction.seconds, prediction.date, took=seconds).save(path)
    return prediction.seconds


def scoring_seconds(bench: Workbench, card: ModelCard, demands: Sequence[Demand], seconds: float) -> list[float]:
    """The seconds that scoring each demand takes: a few of each evaluator's are scored, on random vectors; the others
    cost in proportion to their work. Models of late interaction are not estimated (0).
    """
    out = [0.0] * len(demands)
    if card.similarity == "maxsim":
        return out
    works = [_work(demand) for demand in demands]
    kinds = group_values((_kind(demand), number) for number, demand in enumerate(demands))
    end = time.perf_counter() + seconds
    for place, (kind, numbers) in enumerate(kinds.items()):
        share = max(0.0, end - time.perf_counter()) / (len(kinds) - place)
        points = dict(_timed_parts(bench, card, kind, [(works[number], demands[number]) for number in numbers], share))
        for number in numbers if points else ():
            most = max(points)
            known = np.interp(works[number], sorted(points), [points[work] for work in sorted(points)])
            out[number] = float(known) if works[number] <= most else points[most] * works[number] / most
    return out


def _timed_parts(
    bench: Workbench, card: ModelCard, kind: str, parts: list[tuple[int, Demand]], seconds: float
) -> Iterable[tuple[int, float]]:
    """(work, seconds) of some parts, from the smallest on, until the time is over."""
    end = time.perf_counter() + seconds
    largest = 0
    for work, demand in sorted(parts, key=lambda part: part[0]):
        if work < GROWTH * largest:
            continue
        bounded = kind == "ranking" and work > LARGEST
        try:
            taken = _timed_ranking(bench, card, demand) if bounded else _timed_score(bench, card, demand)
            if not largest and taken < end - time.perf_counter():  # the first pays for imports
                taken = _timed_ranking(bench, card, demand) if bounded else _timed_score(bench, card, demand)
        except Exception:  # the run will report it
            return
        yield min(work, LARGEST) if bounded else work, taken
        largest = work
        if bounded or GROWTH * taken > end - time.perf_counter():
            return


def _timed_score(bench: Workbench, card: ModelCard, demand: Demand) -> float:
    """The seconds for scoring a demand as a run does, on random vectors."""
    rng = np.random.default_rng(0)
    vectors = {side: _random(rng, len(keys), card) for side, keys in demand.keys.items()}
    params = bench.params(demand.task, card)
    start = time.perf_counter()
    scores = evaluators.evaluate(demand.task.evaluator, demand.data.truth, vectors, params)
    items = item_columns(demand.data.sides, demand.data.truth, scores)
    interval([Part(scores.statistic, scores.main, scores.outcomes, ItemNumbers().observations("", items))])
    return time.perf_counter() - start


def _timed_ranking(bench: Workbench, card: ModelCard, demand: Demand) -> float:
    """The seconds for a ranking of `LARGEST` random queries × documents."""
    rng = np.random.default_rng(0)
    truth = Qrels(np.arange(QUERIES), rng.integers(0, DOCUMENTS, QUERIES), np.ones(QUERIES, np.int64))
    vectors = {"query": _random(rng, QUERIES, card), "document": _random(rng, DOCUMENTS, card)}
    params = {name: value for name, value in bench.params(demand.task, card).items() if name in evaluators.COMMON}
    start = time.perf_counter()
    evaluators.evaluate("retrieval", truth, vectors, {**params, "metric": "ndcg_at_10"})
    return time.perf_counter() - start


def _random(rng: np.random.Generator, count: int, card: ModelCard) -> Any:
    return rng.standard_normal((count, card.dim or 1024), np.float32).astype(card.stored)


def _kind(demand: Demand) -> str:
    """What the work of scoring a demand goes by: rankings by queries × documents, others by items."""
    ranks_all = isinstance(demand.data.truth, Qrels) and not demand.task.params.get("judged_only")
    return "ranking" if ranks_all else demand.task.evaluator


def _work(demand: Demand) -> int:
    """The queries × documents of a ranking; the items of other tasks."""
    if _kind(demand) != "ranking":
        return sum(map(len, demand.keys.values()))
    conditions = max(1, len(demand.keys) - 1)
    return len(demand.keys["query"]) * len(demand.keys["document"]) * conditions
