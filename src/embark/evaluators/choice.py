"""Choice: retrieval in which every query ranks its own listed documents; accuracy is recall at 1.

Queries without a right document are left out. Visual and temporal grounding and moment retrieval are choices too:
among crops, segments or moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.evaluators.retrieval import RETRIEVAL
from embark.seams import Evaluator
from embark.types import Qrels, Scores

PRESET = {"judged_only": True, "drop_unanswerable": True}  # parameters of `retrieval`


def evaluate(truth: Qrels, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Ranking measures within each query's listed documents. Parameters: similarity, metric."""
    return RETRIEVAL.evaluate(truth, vectors, {**PRESET, **params, "metric": CHOICE.metric(params)})


CHOICE = Evaluator(
    "choice",
    (__doc__ or "").strip(),
    (Qrels,),
    evaluate,
    measures=RETRIEVAL.measures,
    main="accuracy",
    version=2,
    preset=PRESET,
)
