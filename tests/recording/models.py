"""A plugin of pytest: writes down what every model returned that the tests of models loaded, by loader and input.

Those tests make a tiny checkpoint for each family of models. `-p recording.models` with EMBARK_RECORDING=FOLDER writes
a file of facts for each process to the folder.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recording
from embark.models import LOADERS
from embark.models.loading import ADAPTERS
from embark.protocol import identity, vector_space

METHODS = ("embed", "score", "generate")  # of encoders, re-rankers and generators
PART = "models"
# Of a server of the tests, whose port is part of a model's identity. What a provider answers is not ours, either.
SERVED = re.compile(r"(127\.0\.0\.1|localhost):\d+")

found: dict[str, recording.Fact] = {}  # by name: what a test asks twice is one fact


def pytest_configure() -> None:
    """Models that are loaded from now on are listened to."""
    for kind, adapt in ADAPTERS.items():
        ADAPTERS[kind] = _listened_to(adapt)  # type: ignore[index]


def _listened_to(adapt: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @wraps(adapt)
    def listening(loaded: Any) -> Any:
        model = adapt(loaded)
        loader = LOADERS.own.get(model.card.loader)
        if (loader is not None and loader.type == "api") or SERVED.search(str(identity(model.card))):
            return model
        for method in METHODS:
            if hasattr(model, method):
                setattr(model, method, _recorded(model, getattr(model, method)))
        if (likelihoods := model.capabilities.likelihoods) is not None:
            model.capabilities = replace(model.capabilities, likelihoods=_recorded(model, likelihoods))
        return model

    return listening


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Random weights of a tiny checkpoint do not depend on the tests that ran before."""
    torch.manual_seed(0)


def pytest_sessionfinish() -> None:
    """Write down what was found."""
    recording.write(found.values(), Path(os.environ["EMBARK_RECORDING"]) / f"{os.getpid()}.parquet")


def _recorded(model: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def listening(batch: Sequence[Any], *others: Any) -> Any:
        outputs = method(batch, *others)
        for value, output in zip(batch, outputs, strict=False):
            for fact in _facts(model.card, (value, *others), output):
                found.setdefault(fact.name, fact)
        return outputs

    return listening


def _facts(card: Any, inputs: Any, output: Any) -> Iterator[recording.Fact]:
    name = f"{card.loader} vectors {vector_space(card)} {_digest(inputs)}"
    if isinstance(output, str):
        yield recording.Fact(PART, f"{name} text", text=output)
    else:
        numbers = output.detach().float().cpu().numpy() if hasattr(output, "detach") else output
        yield from recording.numbers(PART, name, np.atleast_2d(np.asarray(numbers)))


def _digest(value: Any) -> str:
    """A short hash of a prepared input."""
    return hashlib.sha256(pickle.dumps(_plain(value))).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """The value in types whose bytes are the same in every process."""
    if isinstance(value, dict):
        return [(name, _plain(inner)) for name, inner in value.items()]
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tobytes"):  # an array or a picture
        return value.tobytes()
    if hasattr(value, "numpy"):
        return value.detach().float().cpu().numpy().tobytes()
    if hasattr(value, "__dict__"):
        return _plain(vars(value))
    return repr(value)
