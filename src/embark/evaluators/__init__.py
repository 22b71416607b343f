"""Evaluators: pure functions from truth and vectors to scores, one module per kind.

A module has `VERSION` (part of the protocol fingerprint; raise it when a score can change), `PARAMS` if a row may set
any (name → type, or the values it may have) and `evaluate(truth, vectors, params) -> Scores`, where `vectors` holds
one matrix for each side of the dataset. It may have `PRESET` (default values of parameters), `IMPORTS` (modules to load
before, one thread at a time), `base(params)` (the kind of the evaluator that it calls) and `narrow(truth, params)`, see
below.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from threading import Lock
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

_IMPORTING = Lock()  # threads that import scikit-learn at once may see it half loaded

# Parameters that every kind accepts; they come from the row's metric, the model's card and the settings. `stages` (of a
# run with stages) is here only because the fingerprint covers a row's parameters; evaluators do not read it.
COMMON = {"metric": str, "similarity": str, "memory": int, "stages": dict}


def version(kind: str, params: Mapping[str, Any]) -> int:
    """The version of an evaluator; one with a base adds the base's version times 1000."""
    module = _module(kind)
    base_version = version(module.base(params), params) if hasattr(module, "base") else 0
    return int(module.VERSION) + 1000 * base_version


def full_params(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A row's parameters, completed by the evaluator's `PRESET`."""
    return {**getattr(_module(kind), "PRESET", {}), **params}


def check(kind: str, params: Mapping[str, Any]) -> None:
    """Raise an error for an unknown parameter or value: ignored, it would leave the score under another protocol."""
    module = _module(kind)
    known: dict[str, Any] = COMMON | getattr(module, "PARAMS", {})
    if hasattr(module, "base"):
        known |= getattr(_module(module.base(params)), "PARAMS", {})
    for name, value in params.items():
        if name not in known:
            raise UnknownName(f"parameter of '{kind}'", name, known)
        allowed = known[name]
        if isinstance(allowed, tuple):
            valid = value in allowed
            expected = f"one of {', '.join(map(repr, allowed))}"
        else:
            valid = type(value) is allowed
            expected = f"of type {allowed.__name__}"
        if not valid:
            raise EmbarkError(f"The parameter '{name}' of '{kind}' must be {expected}, not {value!r}.")


def narrow(kind: str, truth: Truth, params: Mapping[str, Any]) -> tuple[Truth, dict[str, Array]]:
    """The truth with its samples drawn, and by side a mask of the items that the score needs.

    Sides of which all items are needed have no mask. Items outside a mask are never embedded: training rows of a probe
    that no run draws, queries without judgements.
    """
    check(kind, params)
    module = _module(kind)
    return module.narrow(truth, params) if hasattr(module, "narrow") else (truth, {})


def evaluate(kind: str, truth: Truth, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Score one dataset's vectors against its truth."""
    check(kind, params)
    module = _module(kind)
    with _IMPORTING:
        for name in getattr(module, "IMPORTS", ()):
            import_module(name)
    scores = module.evaluate(truth, vectors, params)
    assert isinstance(scores, Scores)
    return scores


def _module(kind: str) -> ModuleType:
    if kind not in EVALUATORS:
        raise UnknownName("evaluator", kind, EVALUATORS)
    return import_module(EVALUATORS[kind])
