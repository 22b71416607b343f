"""Semantic textual similarity, also of rendered text: does the similarity of two items follow human judgement?

Correlations of gold scores with cosine, dot product, and negated Manhattan and Euclidean distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark.evaluators.similarity import whole
from embark.seams import Evaluator
from embark.types import Array, EmbarkError, Gold, Scores

PAIRS = 4_096  # compared at a time
KINDS = ("cosine", "dot", "manhattan", "euclidean")


def evaluate(truth: Gold, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Pearson and Spearman for each similarity, and for the model's own similarity without its name.

    Parameters: similarity, metric.
    """
    from scipy.stats import rankdata

    own = params.get("similarity", "cosine")
    own = "cosine" if own == "maxsim" else own  # items have one vector here, as in `whole`
    gold = _gold(truth)
    by_kind = similarities(whole(vectors["left"], "dot"), whole(vectors["right"], "dot"), truth.left, truth.right)
    if own not in by_kind:
        raise EmbarkError(f"Unknown similarity '{own}'; known: {', '.join(KINDS)}.")
    gold_rank = rankdata(gold)
    ranks = {kind: rankdata(values) for kind, values in by_kind.items()}
    metrics = {"pearson": correlation(gold, by_kind[own]), "spearman": correlation(gold_rank, ranks[own])}
    metrics |= {f"{kind}_pearson": correlation(gold, values) for kind, values in by_kind.items()}
    metrics |= {f"{kind}_spearman": correlation(gold_rank, values) for kind, values in ranks.items()}
    main = STS.metric(params)
    kind = main.rpartition("_")[0] or own
    return Scores(
        metrics,
        main,
        "left",
        truth.left,
        {
            "gold": gold,
            "similarity": by_kind[kind],
            "gold_rank": gold_rank,
            "similarity_rank": ranks[kind],
            "right": truth.right,
        },
        statistic=STS.statistic(main),
        counts={"pairs": len(gold)},
        warnings=tuple(
            f"The {kind} similarity is the same for all {len(gold)} pairs: its correlations are set to 0."
            for kind, values in by_kind.items()
            if np.ptp(values) == 0
        ),
    )


def similarities(left: Array, right: Array, lefts: Array, rights: Array) -> dict[str, Array]:
    """Each kind of similarity of the pairs left[lefts[i]], right[rights[i]].

    Computed in double precision and rounded to single, so that pairs of equal items tie instead of ranking by noise.
    """
    out = {kind: np.empty(len(lefts), np.float32) for kind in KINDS}
    for start in range(0, len(lefts), PAIRS):
        rows = slice(start, start + PAIRS)
        a, b = left[lefts[rows]].astype(np.float64), right[rights[rows]].astype(np.float64)
        dot = np.einsum("nd,nd->n", a, b)
        length = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        out["dot"][rows] = dot
        out["cosine"][rows] = np.divide(dot, length, out=np.zeros_like(dot), where=length > 0)
        difference = np.abs(np.subtract(a, b, out=a), out=a)
        out["manhattan"][rows] = -difference.sum(axis=1)
        out["euclidean"][rows] = -np.linalg.norm(difference, axis=1)
    return out


def correlation(x: Array, y: Array) -> float:
    """Pearson's correlation; 0 where one of them is constant."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x / np.linalg.norm(x) @ (y / np.linalg.norm(y)), -1, 1))


def _gold(truth: Gold) -> Array:
    """The gold scores, or an error if nothing can correlate with them."""
    gold = np.asarray(truth.score, np.float64)
    if len(gold) < 2:
        raise EmbarkError(f"A correlation needs at least 2 pairs; there are {len(gold)}.")
    if bad := int(np.count_nonzero(~np.isfinite(gold))):
        raise EmbarkError(f"{bad} gold scores are not finite, the first at pair {np.argmin(np.isfinite(gold))}.")
    if np.ptp(gold) == 0:
        raise EmbarkError(f"All {len(gold)} gold scores are {gold[0]:g}: nothing can correlate with them.")
    return gold


STS = Evaluator(
    "sts",
    (__doc__ or "").strip(),
    (Gold,),
    evaluate,
    measures={
        f"{kind}{statistic}": statistic
        for kind in ("", *(f"{kind}_" for kind in KINDS))
        for statistic in ("pearson", "spearman")
    },
    main="cosine_spearman",
    chance=0.0,
)
