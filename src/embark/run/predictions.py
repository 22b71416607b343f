"""How long a run will take: what a plan measures and predicts, kept for a day, and compared with what the run took."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embark import evaluators
from embark.catalogue import group_values
from embark.planning import Demand
from embark.protocol import vector_space
from embark.run.embedded_task import item_columns
from embark.run.workbench import Workbench
from embark.seams import COMMON_PARAMS
from embark.settings import Settings
from embark.stats.shared import ItemNumbers, Part, interval
from embark.types import ModelCard, Qrels, Task

DAY = 24 * 3600.0
RANKING = "ranking"
SMALL, LARGE = (64, 64), (512, 16_384)  # queries and documents of the rankings that are tried
MOST_ITEMS = 2_000  # of the part of another evaluator that is tried
USUAL = 0.0005  # seconds for an item of another evaluator that was not tried: too many items, or no time left


@dataclass(frozen=True)
class TimePrediction:
    """The seconds that a run will take, if it computes so many scores and embeds so many items; `took` is what it did
    take, once it ran.
    """

    scores: int
    embedded: int
    seconds: float
    date: float
    took: float | None = None

    @classmethod
    def load(cls, path: Path) -> TimePrediction | None:
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
    names = [*map(vector_space, cards), "", *(f"{task.name} {task.protocol} {task.limit}" for task in tasks)]
    name = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    return settings.home / "predictions" / f"{name}.json"


def settle_prediction(path: Path, scores: int, embedded: int, seconds: float) -> float | None:
    """The seconds that were predicted for a run that did just this, recorded beside what it took; None where the plan
    was about another one: scores that are on disk by now, vectors that were stored meanwhile.
    """
    prediction = TimePrediction.load(path)
    if prediction is None or (prediction.scores, prediction.embedded) != (scores, embedded) or not scores:
        return None
    TimePrediction(scores, embedded, prediction.seconds, prediction.date, took=seconds).save(path)
    return prediction.seconds


def scoring_seconds(bench: Workbench, card: ModelCard, demands: Sequence[Demand], seconds: float) -> list[float]:
    """The seconds that scoring each demand takes, by trials on random vectors while the time lasts: rankings go by
    queries × documents, other evaluators by items. Late interaction is not estimated (0).
    """
    out = [0.0] * len(demands)
    if card.similarity == "maxsim" or not demands:
        return out
    end = time.perf_counter() + seconds
    kinds = group_values((_kind(demand), number) for number, demand in enumerate(demands))
    rankings = kinds.pop(RANKING, [])
    if rankings:
        (small, overhead), (large, most) = _ranking_trials(bench.params(demands[rankings[0]].task, card), card).items()
    for number in rankings:
        pairs = _pairs(demands[number])
        out[number] = overhead + max(0.0, most - overhead) * max(0, pairs - small) / (large - small)
    items = [sum(map(len, demand.keys.values())) for demand in demands]
    trials = [max(numbers, key=lambda row: items[row] * (items[row] <= MOST_ITEMS)) for numbers in kinds.values()]
    rates: dict[str, float] = {}
    for number in sorted(trials, key=items.__getitem__):
        if items[number] <= MOST_ITEMS and time.perf_counter() < end:
            with suppress(Exception):  # the run will report it
                rates[_kind(demands[number])] = _scoring_trial(bench, card, demands[number]) / items[number]
    for kind, numbers in kinds.items():
        for number in numbers:
            out[number] = items[number] * rates.get(kind, USUAL)
    return out


def _scoring_trial(bench: Workbench, card: ModelCard, demand: Demand) -> float:
    """The seconds for scoring a demand as a run does, on random vectors."""
    rng = np.random.default_rng(0)
    vectors = {side: _random(rng, len(keys), card) for side, keys in demand.keys.items()}
    params = bench.params(demand.task, card)
    modules = len(sys.modules)
    start = time.perf_counter()
    scores = evaluators.evaluate(demand.task.evaluator, demand.data.truth, vectors, params)
    items = item_columns(demand.data.sides, demand.data.truth, scores)
    interval([Part(scores.statistic, scores.main, scores.outcomes, ItemNumbers().observations("", items))])
    taken = time.perf_counter() - start
    return taken if len(sys.modules) == modules else _scoring_trial(bench, card, demand)  # importing is done once


def _ranking_trials(params: Mapping[str, Any], card: ModelCard) -> dict[int, float]:
    """The seconds for a small and a large ranking, by queries × documents; the first pays for imports."""
    rng = np.random.default_rng(0)
    common = {name: value for name, value in params.items() if name in COMMON_PARAMS} | {"metric": "ndcg_at_10"}
    out = {}
    for queries, documents in (SMALL, SMALL, LARGE):
        truth = Qrels(np.arange(queries), rng.integers(0, documents, queries), np.ones(queries, np.int64))
        vectors = {"query": _random(rng, queries, card), "document": _random(rng, documents, card)}
        start = time.perf_counter()
        evaluators.evaluate("retrieval", truth, vectors, common)
        out[queries * documents] = time.perf_counter() - start
    return out


def _random(rng: np.random.Generator, count: int, card: ModelCard) -> Any:
    return rng.standard_normal((count, card.dim or 1024), np.float32).astype(card.stored)


def _kind(demand: Demand) -> str:
    """What scoring a demand is estimated by: the trial of its evaluator, or of rankings."""
    ranks_all = isinstance(demand.data.truth, Qrels) and not demand.task.params.get("judged_only")
    return RANKING if ranks_all else demand.task.evaluator


def _pairs(demand: Demand) -> int:
    """The queries × documents of a ranking, under all its conditions."""
    conditions = max(1, len(demand.keys) - 1)
    return len(demand.keys["query"]) * len(demand.keys["document"]) * conditions
