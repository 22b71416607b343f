"""Evaluators: pure functions from truth and vectors to scores, one module a kind.

A module has `VERSION` (part of the protocol fingerprint; raise it when a score can change), `PARAMS` if a row may set
any (name → type, or the values it may have) and `evaluate(truth, vectors, params) -> Scores`, where `vectors` holds
one matrix for each side of the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from embark.catalogue import UnknownName
from embark.types import Array, EmbarkError, Scores, Truth

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


# From the row's metric, the model's card, the settings, and a run's stages (which its fingerprint must tell).
COMMON = {"metric": str, "similarity": str, "memory": int, "stages": dict}


def _module(kind: str) -> ModuleType:
    if kind not in EVALUATORS:
        raise UnknownName("evaluator", kind, EVALUATORS)
    return import_module(EVALUATORS[kind])


def version(kind: str, params: Mapping[str, Any]) -> int:
    """The version of an evaluator's arithmetic, and of the one that it builds on."""
    module = _module(kind)
    below = version(module.base(params), params) if hasattr(module, "base") else 0
    return int(module.VERSION) + 1000 * below


def check(kind: str, params: Mapping[str, Any]) -> None:
    """Raise for a parameter that the evaluator does not know: the score would silently be another protocol's."""
    module = _module(kind)
    several = [module, _module(module.base(params))] if hasattr(module, "base") else [module]
    known: dict[str, Any] = COMMON | {
        name: what for one in several for name, what in getattr(one, "PARAMS", {}).items()
    }
    for name, value in params.items():
        if name not in known:
            raise UnknownName(f"parameter of '{kind}'", name, known)
        what = known[name]
        fits = value in what if isinstance(what, tuple) else type(value) is what
        if not fits:
            wanted = f"one of {', '.join(map(repr, what))}" if isinstance(what, tuple) else f"of type {what.__name__}"
            raise EmbarkError(f"The parameter '{name}' of '{kind}' must be {wanted}, not {value!r}.")


def narrow(kind: str, truth: Truth, params: Mapping[str, Any]) -> tuple[Truth, dict[str, Array]]:
    """The truth with its choices made, and for each side that holds more than the score needs, which items it needs.

    What no score looks at is never embedded: a probe's training rows that no run draws, queries without judgements.
    """
    check(kind, params)
    module = _module(kind)
    return module.narrow(truth, params) if hasattr(module, "narrow") else (truth, {})


def evaluate(kind: str, truth: Truth, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Score one dataset's vectors against its truth."""
    check(kind, params)
    scores = _module(kind).evaluate(truth, vectors, params)
    assert isinstance(scores, Scores)
    return scores
