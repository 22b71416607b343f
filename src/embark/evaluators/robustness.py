"""Robustness: a clean task against its corrupted variants.

A side such as "document:noise" holds the items of "document", in the same order, under a condition. Each condition is
scored by the base evaluator; the differences to the clean score say what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from embark.types import EmbarkError, Scores, Truth, role_of

VERSION = 1
PARAMS = {"base": str, "base_metric": str}
MAIN = ("mean_corrupted", "clean", "drop")


def base(params: Mapping[str, Any]) -> str:
    """The evaluator that scores each condition."""
    return str(params.get("base", "retrieval"))


def evaluate(truth: Truth, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Clean score, mean over conditions, drop and relative drop. Parameters: base, base_metric, metric, similarity."""
    clean = {side: found for side, found in vectors.items() if side == role_of(side)}
    conditions = list(dict.fromkeys(side.split(":", 1)[1] for side in vectors if side != role_of(side)))
    if not conditions:
        raise EmbarkError("There is no corrupted variant to compare the clean task with.")
    scorer = import_module(f"embark.evaluators.{base(params)}")
    settings = {**params, "metric": params.get("base_metric", "hit_rate_at_1")}

    def score(condition: str | None) -> Scores:
        changed = {side: vectors.get(f"{side}:{condition}", found) for side, found in clean.items()}
        found: Scores = scorer.evaluate(truth, changed, settings)
        return found

    before, after = score(None), {condition: score(condition) for condition in conditions}
    if before.statistic != "mean":
        raise EmbarkError(f"Robustness needs a base score that is a mean over items, not {before.main}.")
    per_item = {condition: found.outcomes[found.main] for condition, found in after.items()}
    corrupted = np.mean(list(per_item.values()), axis=0)
    values = {"clean": before.outcomes[before.main], "mean_corrupted": corrupted}
    values["drop"] = values["clean"] - corrupted
    main = params.get("metric", "mean_corrupted")
    if main not in MAIN:
        raise EmbarkError(f"Robustness has no main measure '{main}'; it has {', '.join(MAIN)}.")
    metrics = {name: float(value.mean()) for name, value in values.items()}
    metrics["relative_drop"] = metrics["drop"] / metrics["clean"] if metrics["clean"] else 0.0
    metrics |= {condition: found.value for condition, found in after.items()}
    counts = {**before.counts, "conditions": len(conditions)}
    return Scores(metrics, main, before.unit, before.rows, values | per_item, counts=counts, warnings=before.warnings)
