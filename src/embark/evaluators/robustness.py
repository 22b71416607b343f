"""Robustness: a clean task against its corrupted variants.

A side such as "document:noise" holds the items of "document", in the same order, under a condition. Each condition is
scored by the base evaluator; the differences to the clean score say what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from embark.registries import EVALUATORS
from embark.seams import Evaluator
from embark.types import EmbarkError, Option, Scores, Truth, role_of

PARAMS = {
    "base": Option(str, "The evaluator that scores each condition (retrieval); its parameters may be set, too."),
    "base_metric": Option(str, "Its measure (hit_rate_at_1)."),
}


def base(params: Mapping[str, Any]) -> tuple[Evaluator, dict[str, Any]]:
    """The evaluator that scores each condition, and its parameters."""
    evaluator = EVALUATORS[str(params.get("base", "retrieval"))]
    others = {name: value for name, value in params.items() if name not in PARAMS}
    return evaluator, others | {"metric": params.get("base_metric", "hit_rate_at_1")}


def evaluate(truth: Truth, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Clean score, mean over conditions, drop and relative drop. Parameters: base, base_metric, metric, similarity."""
    clean = {side: matrix for side, matrix in vectors.items() if side == role_of(side)}
    conditions = list(dict.fromkeys(side.split(":", 1)[1] for side in vectors if side != role_of(side)))
    if not conditions:
        raise EmbarkError("There is no corrupted variant to compare the clean task with.")
    scorer, base_params = base(params)

    def score(condition: str | None) -> Scores:
        corrupted = {side: vectors.get(f"{side}:{condition}", matrix) for side, matrix in clean.items()}
        return scorer.evaluate(truth, corrupted, base_params)

    clean_scores = score(None)
    if clean_scores.statistic != "mean":
        raise EmbarkError(f"Robustness needs a base score that is a mean over items, not {clean_scores.main}.")
    by_condition = {condition: score(condition) for condition in conditions}
    per_item = {condition: scores.outcomes[scores.main] for condition, scores in by_condition.items()}
    values = {
        "clean": clean_scores.outcomes[clean_scores.main],
        "mean_corrupted": np.mean(list(per_item.values()), axis=0),
    }
    values["drop"] = values["clean"] - values["mean_corrupted"]
    metrics = {name: float(value.mean()) for name, value in values.items()}
    metrics["relative_drop"] = metrics["drop"] / metrics["clean"] if metrics["clean"] else 0.0
    metrics |= {condition: scores.value for condition, scores in by_condition.items()}
    return Scores(
        metrics,
        ROBUSTNESS.metric(params),
        clean_scores.unit,
        clean_scores.rows,
        values | per_item,
        counts={**clean_scores.counts, "conditions": len(conditions)},
        warnings=clean_scores.warnings,
    )


ROBUSTNESS = Evaluator(
    "robustness",
    (__doc__ or "").strip(),
    get_args(Truth),
    evaluate,
    measures=dict.fromkeys(("mean_corrupted", "clean", "drop"), "mean"),
    main="mean_corrupted",
    params=PARAMS,
    base=base,
)
