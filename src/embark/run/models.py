"""The models that a run is about, given by name or as objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from embark.models import Loading, find_card, get_model
from embark.models.encoder import Encoder
from embark.settings import Settings
from embark.types import EmbarkError, ModelCard

DEFAULT_MODELS = ("embark/pocket", "embark/handmade", "embark/random")

Models = str | Encoder | Iterable[str | Encoder]


def choose_models(
    models: Models | None, loading: Loading | None = None, settings: Settings | None = None
) -> list[Encoder]:
    """Names and encoders as encoders; None is the pocket model and two baselines.

    `loading` says how those given by name are loaded.
    """
    return [load_model(model, loading, settings) for model in name_models(models)]


def name_models(models: Models | None) -> list[str | Encoder]:
    """The models to load one by one; a name that stands for none is an error now, not after hours of another model."""
    models = DEFAULT_MODELS if models is None else models
    chosen: list[Any] = [models] if isinstance(models, str) or not isinstance(models, Iterable) else list(models)
    if not chosen:
        raise EmbarkError("No model was chosen.")
    for model in chosen:
        if not isinstance(model, str) and not hasattr(model, "card"):
            raise EmbarkError(f"{model!r} is no model: give a name or an encoder (embark.encoder wraps functions).")
        model_card(model)
    return chosen


def load_model(model: str | Encoder, loading: Loading | None = None, settings: Settings | None = None) -> Encoder:
    """The encoder of a name; an encoder is one already."""
    if not isinstance(model, str):
        return model
    return get_model(model, **vars(replace(loading or Loading(), settings=settings)))


def model_card(model: str | Encoder) -> ModelCard | None:
    """The card of a model before it is loaded; None of a folder, which is looked at when it is loaded."""
    if not isinstance(model, str):
        return model.card
    return None if Path(model).expanduser().is_dir() else find_card(model)


def model_name(model: str | Encoder) -> str:
    """What messages call a model."""
    return model if isinstance(model, str) else model.card.name
