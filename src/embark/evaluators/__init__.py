"""Evaluators: pure functions from truth and vectors to scores, one module a kind.

A module has `VERSION` (part of the protocol fingerprint; raise it when a score can change) and
`evaluate(truth, vectors, params) -> Scores`, where `vectors` holds one matrix for each side of the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from embark.catalogue import UnknownName
from embark.types import Scores, Truth

# Kind → module, imported at use.
EVALUATORS = {
    "retrieval": "embark.evaluators.retrieval",
    "choice": "embark.evaluators.choice",
    "zeroshot": "embark.evaluators.zeroshot",
    "probe": "embark.evaluators.probe",
    "multilabel": "embark.evaluators.multilabel",
    "clustering": "embark.evaluators.clustering",
    "pairs": "embark.evaluators.pairs",
    "sts": "embark.evaluators.sts",
    "robustness": "embark.evaluators.robustness",
}


def _module(kind: str) -> ModuleType:
    if kind not in EVALUATORS:
        raise UnknownName("evaluator", kind, EVALUATORS)
    return import_module(EVALUATORS[kind])


def version(kind: str) -> int:
    """The version of an evaluator's arithmetic."""
    return int(_module(kind).VERSION)


def evaluate(kind: str, truth: Truth, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Score one dataset's vectors against its truth."""
    scores = _module(kind).evaluate(truth, vectors, params)
    assert isinstance(scores, Scores)
    return scores
