"""Measures by name, and the arithmetic of ranks and predictions: a value for each query or item.

A ranking is described by its relevant documents alone: which query, at which rank (1 is best), of which grade. Every
measure here follows from these three columns, so no ranked list is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embark.types import Array, EmbarkError

CUTOFFS = (1, 3, 5, 10, 20, 100, 1000)  # that every ranking is measured at
RANKING = ("ndcg", "map", "recall", "precision", "mrr", "hit_rate", "success")  # measures of the first k of a ranking
_DEEPEST = 999_999_999  # cut-off: no corpus is larger
_AT_K = re.compile(r"(.+)_at_([1-9][0-9]{0,8})", re.DOTALL)


@dataclass(frozen=True)
class Measure:
    """A measure, as a row's `metric` names it: accuracy, or ndcg_at_7, which looks at the first 7 of a ranking."""

    name: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.cutoff is not None and not 1 <= self.cutoff <= _DEEPEST:
            raise EmbarkError(f"The cut-off of '{self.name}' must be from 1 to {_DEEPEST:,}, not {self.cutoff}.")
        if self.cutoff is None and _AT_K.fullmatch(self.name):
            raise EmbarkError(f"'{self.name}' has a cut-off: use Measure.parse.")

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure that a text names; what does not end with a cut-off is a name as it is."""
        at_k = _AT_K.fullmatch(text)
        return cls(at_k[1], int(at_k[2])) if at_k else cls(text)

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}_at_{self.cutoff}"


def cutoffs(metric: str) -> tuple[int, ...]:
    """The cut-offs that a ranking is measured at: `CUTOFFS`, and that of the task's metric."""
    return tuple(sorted({*CUTOFFS, Measure.parse(metric).cutoff or CUTOFFS[0]}))


def ranking(
    query: Array, rank: Array, grade: Array, queries: int, cutoffs: Sequence[int] = CUTOFFS
) -> dict[str, Array]:
    """Every ranking measure at every cut-off, for each of `queries` queries (0 where there is nothing relevant).

    nDCG has linear gain. Average precision divides by all relevant documents, whatever the cut-off, as trec_eval does.
    """
    order = np.lexsort((rank, query))
    query, rank, grade = query[order], rank[order].astype(np.float64), grade[order].astype(np.float64)
    relevant = np.bincount(query, minlength=queries)
    place = np.arange(len(query)) - np.repeat(np.cumsum(relevant) - relevant, relevant)  # 0: a query's first hit
    gain = grade / np.log2(rank + 1)
    ideal = _ideal_gain(query, grade, place)
    precision = (place + 1) / rank
    first = np.full(queries, np.inf)
    np.minimum.at(first, query, rank)

    out: dict[str, Array] = {}
    for k in cutoffs:
        hit = rank <= k
        hits = np.bincount(query[hit], minlength=queries)
        dcg = np.bincount(query[hit], gain[hit], minlength=queries)
        best_dcg = np.bincount(query[place < k], ideal[place < k], minlength=queries)
        out[f"ndcg_at_{k}"] = dcg / np.where(best_dcg > 0, best_dcg, 1)
        out[f"map_at_{k}"] = np.bincount(query[hit], precision[hit], minlength=queries) / np.maximum(relevant, 1)
        out[f"recall_at_{k}"] = hits / np.maximum(relevant, 1)
        out[f"precision_at_{k}"] = hits / k
        out[f"mrr_at_{k}"] = np.where(first <= k, 1 / first, 0.0)
        out[f"hit_rate_at_{k}"] = out[f"success_at_{k}"] = (first <= k).astype(np.float64)
    return out


def classification(label: Array, predicted: Array, classes: int) -> dict[str, float]:
    """Accuracy, and precision, recall and F1 as plain and as support-weighted means over classes.

    Classes that no item has and none is predicted to have do not count; a ratio with denominator 0 is 0.
    """
    support = np.bincount(label, minlength=classes)
    predictions = np.bincount(predicted, minlength=classes)
    hits = np.bincount(label[label == predicted], minlength=classes)
    present = support + predictions > 0
    by_class = {
        "f1": 2 * hits / np.maximum(support + predictions, 1),
        "precision": hits / np.maximum(predictions, 1),
        "recall": hits / np.maximum(support, 1),
    }
    out = {"accuracy": float(hits.sum() / len(label))}
    for name, values in by_class.items():
        out[name] = float(values[present].mean())
        out[f"{name}_weighted"] = float(values @ support / len(label))
    return out


def _ideal_gain(query: Array, grade: Array, place: Array) -> Array:
    """The gain at each place of a query's best possible ranking: its grades in falling order."""
    falling = grade[np.lexsort((-grade, query))]
    return np.asarray(falling / np.log2(place + 2))
