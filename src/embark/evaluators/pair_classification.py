"""Pair classification: do two items match (duplicates, a picture and its text)? Their cosine similarity decides.

Average precision is over all pairs, ranked by similarity; pairs that tie have one place, as in scikit-learn. Accuracy
and F1 are those at the threshold that is best on these very pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from embark.evaluators.similarity import exact, whole
from embark.seams import Evaluator
from embark.types import Array, EmbarkError, Gold, Scores


class Thresholds(NamedTuple):
    """What is accepted at each similarity of the pairs, from the highest: pairs, and matches among them."""

    accepted: Array
    matches: Array
    of_pair: Array  # the number of each pair's own similarity

    @property
    def precision(self) -> Array:
        """The share of matches among the accepted pairs."""
        return np.asarray(self.matches / self.accepted)

    @property
    def new_matches(self) -> Array:
        """The matches that no higher threshold accepts."""
        return np.diff(self.matches, prepend=0)

    @property
    def average_precision(self) -> float:
        """The mean over the matches of the precision at their own similarity."""
        return float(self.new_matches @ self.precision / self.matches[-1])


def thresholds(gold: Array, similarity: Array) -> Thresholds:
    """The thresholds of pairs; `gold` is 1 for those that match, and 0 for others."""
    _, of_pair, accepted = np.unique(-similarity, return_inverse=True, return_counts=True)
    return Thresholds(np.cumsum(accepted), np.cumsum(np.bincount(of_pair, gold)), of_pair)


def evaluate(truth: Gold, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Average precision, accuracy and F1 of the cosine similarity.

    Parameters: metric.
    """
    gold = _gold(truth)
    if np.ptp(gold) == 0:
        raise EmbarkError(f"All {len(gold)} pairs have the label {gold[0]:g}: there is nothing to tell apart.")
    left, right = (whole(vectors[side], "dot") for side in ("left", "right"))
    similarity = exact(left, right, truth.left, truth.right, "cosine")
    at = thresholds(gold, similarity)
    others = len(gold) - at.matches[-1]
    correct = at.matches + others - (at.accepted - at.matches)
    # Where even the best threshold is worse than none, no pair is accepted.
    accepted = at.of_pair <= correct.argmax() if correct.max() > others else np.zeros(len(gold), bool)
    right_or_wrong = (accepted == gold).astype(np.float64)
    main = PAIR_CLASSIFICATION.metric(params)
    return Scores(
        {
            "cosine_ap": at.average_precision,
            "cosine_accuracy": float(right_or_wrong.mean()),
            "cosine_f1": float((2 * at.matches / (at.accepted + at.matches[-1])).max()),
        },
        main,
        "left",
        truth.left,
        {"gold": gold, "similarity": similarity, "cosine_accuracy": right_or_wrong, "right": truth.right},
        statistic=PAIR_CLASSIFICATION.statistic(main),
        counts={"pairs": len(gold), "matches": int(at.matches[-1])},
    )


def constant(truth: Gold, params: Mapping[str, Any]) -> tuple[float, list[str]] | None:
    """The value of every measure where all pairs match; 0 where none does."""
    gold = _gold(truth)
    return None if np.ptp(gold) else (float(gold[0]), [])


def _gold(truth: Gold) -> Array:
    """The labels as 0 and 1; an error if there are none, or others."""
    gold = np.asarray(truth.score, np.float64)
    if not len(gold):
        raise EmbarkError("There are no pairs to classify.")
    if len(wrong := np.flatnonzero((gold != 0) & (gold != 1))):
        raise EmbarkError(
            f"The label of a pair is 1 (they match) or 0, not {gold[wrong[0]]:g} as of pair {wrong[0]} "
            f"({len(wrong)} such pairs). Graded similarities are scored by 'sts'."
        )
    return gold


PAIR_CLASSIFICATION = Evaluator(
    "pair-classification",
    (__doc__ or "").strip(),
    (Gold,),
    evaluate,
    measures={"cosine_ap": "average_precision", "cosine_accuracy": "mean"},
    main="cosine_ap",
    constant=constant,
)
