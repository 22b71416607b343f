"""Evaluators: pure functions from truth and vectors to scores, one module per kind.

A module has `VERSION` (part of the protocol fingerprint; raise it when a score can change), `PARAMS` if a row may set
any (name → `Option`) and `evaluate(truth, vectors, params) -> Scores`, where `vectors` holds one matrix for each side
of the dataset. It may have `PRESET` (default values of parameters), `IMPORTS` (modules to load before, one thread at a
time), `base(params)` (the kind of the evaluator that it calls), `narrow(truth, params)` and `constant(truth, params)`
(the value that the main measure has for every model, and the names of measures that tell something; None where it
differs), see below.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any

from embark.catalogue import UnknownName
from embark.types import Array, EmbarkError, Option, Scores, Truth

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
COMMON = {
    "metric": Option(str, "The main measure."),
    "similarity": Option(str, "How the model compares vectors: cosine, dot or maxsim."),
    "logit_scale": Option(float, "What the model multiplies similarities by before a softmax."),
    "memory": Option(int, "The bytes that scoring may take."),
    "stages": Option(dict, "The models that work before and after."),
}


def version(kind: str, params: Mapping[str, Any]) -> int:
    """The version of an evaluator; one with a base adds the base's version times 1000."""
    module = _module(kind)
    base_version = version(module.base(params), params) if hasattr(module, "base") else 0
    return int(module.VERSION) + 1000 * base_version


def base(kind: str, params: Mapping[str, Any]) -> str:
    """The kind that does the scoring: that of the evaluator that this one calls, or itself."""
    module = _module(kind)
    return str(module.base(params)) if hasattr(module, "base") else kind


def full_params(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """A row's parameters, completed by the evaluator's `PRESET`."""
    return {**getattr(_module(kind), "PRESET", {}), **params}


def check(kind: str, params: Mapping[str, Any]) -> None:
    """Raise an error for an unknown parameter or value: ignored, it would leave the score under another protocol."""
    module = _module(kind)
    known = COMMON | own_params(kind)
    if hasattr(module, "base"):
        known |= own_params(module.base(params))
    for name, value in params.items():
        if name not in known:
            raise UnknownName(f"parameter of '{kind}'", name, known)
        allowed = known[name].kind
        if not known[name].accepts(value):
            one_of = f"one of {', '.join(map(repr, allowed))}" if isinstance(allowed, tuple) else ""
            expected = one_of or f"of type {getattr(allowed, '__name__', '')}"
            raise EmbarkError(f"The parameter '{name}' of '{kind}' must be {expected}, not {value!r}.")


def own_params(kind: str) -> dict[str, Option]:
    """The parameters that a row may set for an evaluator, besides `COMMON`."""
    return dict(getattr(_module(kind), "PARAMS", {}))


def about(kind: str) -> str:
    """What an evaluator measures."""
    return inspect.getdoc(_module(kind)) or ""


def narrow(kind: str, truth: Truth, params: Mapping[str, Any]) -> tuple[Truth, dict[str, Array]]:
    """The truth with its samples drawn, and by side a mask of the items that the score needs.

    Sides of which all items are needed have no mask. Items outside a mask are never embedded: training rows of a probe
    that no run draws, queries without judgements.
    """
    check(kind, params)
    module = _module(kind)
    return module.narrow(truth, params) if hasattr(module, "narrow") else (truth, {})


def check_measure(kind: str, truth: Truth, params: Mapping[str, Any]) -> None:
    """Raise an error if the main measure has one value whatever the vectors are, and name those that tell something."""
    module = _module(kind)
    if not hasattr(module, "constant") or not (others := module.constant(truth, params)):
        return
    value, possible = others
    advice = f"use {' or '.join(map(repr, possible))}" if possible else "there is nothing to choose from: add data"
    raise EmbarkError(f"'{params.get('metric')}' is {value:g} for every model on data of this shape: {advice}.")


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
