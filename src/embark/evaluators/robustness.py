"""Robustness: a clean task against its corrupted variants.

A side such as "document:noise" holds the items of "document", in the same order, under a condition. Each condition is
scored by the base evaluator; the differences to the clean score say what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import numpy as np

from embark.types import EmbarkError, Option, Scores, Truth, role_of

VERSION = 1
PARAMS = {
    "base": Option(str, "The evaluator that scores each condition (retrieval); its parameters may be set, too."),
    "base_metric": Option(str, "Its measure (hit_rate_at_1)."),
}
MAIN = ("mean_corrupted", "clean", "drop")


def base(params: Mapping[str, Any]) -> str:
    """The kind of evaluator that scores each condition."""
    return str(params.get("base", "retrieval"))


def evaluate(truth: Truth, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Clean score, mean over conditions, drop and relative drop. Parameters: base, base_metric, metric, similarity."""
    clean = {side: matrix for side, matrix in vectors.items() if side == role_of(side)}
    conditions = list(dict.fromkeys(side.split(":", 1)[1] for side in vectors if side != role_of(side)))
    if not conditions:
        raise EmbarkError("There is no corrupted variant to compare the clean task with.")
    scorer = import_module(f"embark.evaluators.{base(params)}")
    base_params = {**params, "metric": params.get("base_metric", "hit_rate_at_1")}

    def score(condition: str | None) -> Scores:
        corrupted = {side: vectors.get(f"{side}:{condition}", matrix) for side, matrix in clean.items()}
        return cast(Scores, scorer.evaluate(truth, corrupted, base_params))

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
    main = params.get("metric", "mean_corrupted")
    if main not in MAIN:
        raise EmbarkError(f"Robustness has no main measure '{main}'; it has {', '.join(MAIN)}.")
    metrics = {name: float(value.mean()) for name, value in values.items()}
    metrics["relative_drop"] = metrics["drop"] / metrics["clean"] if metrics["clean"] else 0.0
    metrics |= {condition: scores.value for condition, scores in by_condition.items()}
    return Scores(
        metrics,
        main,
        clean_scores.unit,
        clean_scores.rows,
        values | per_item,
        counts={**clean_scores.counts, "conditions": len(conditions)},
        warnings=clean_scores.warnings,
    )
