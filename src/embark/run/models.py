"""The models that a run is about, given by name or as objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from embark.models import Loading, get_model
from embark.models.encoder import Encoder
from embark.settings import Settings
from embark.types import EmbarkError

DEFAULT_MODELS = ("embark/pocket", "embark/handmade", "embark/random")

Models = str | Encoder | Iterable[str | Encoder]


def choose_models(
    models: Models | None, loading: Loading | None = None, settings: Settings | None = None
) -> list[Encoder]:
    """Names and encoders as encoders; None is the pocket model and two baselines.

    `loading` says how those given by name are loaded.
    """
    models = DEFAULT_MODELS if models is None else models
    chosen: list[Any] = [models] if isinstance(models, str) or not isinstance(models, Iterable) else list(models)
    if not chosen:
        raise EmbarkError("No model was chosen.")
    for model in chosen:
        if not isinstance(model, str) and not hasattr(model, "card"):
            raise EmbarkError(f"{model!r} is no model: give a name or an encoder (embark.encoder wraps functions).")
    options = vars(replace(loading or Loading(), settings=settings))
    return [get_model(model, **options) if isinstance(model, str) else model for model in chosen]
