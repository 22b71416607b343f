"""The models that a run is about, given by name or as objects."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from embark.models import LOADERS, MODELS, Loading, find_card, get_model, known_models, own_models
from embark.models.adapt import as_encoder
from embark.models.encoder import CUDA_PIXELS, Encoder, Tower, Towers, cuda_pixels
from embark.protocol import vector_space
from embark.results.of_model import results_card
from embark.settings import Settings, load_settings
from embark.store.buckets import open_store
from embark.types import Array, EmbarkError, ModelCard

logger = logging.getLogger("embark")
DEFAULT_MODELS = ("embark/pocket", "embark/handmade", "embark/random")

Models = str | Encoder | ModelCard | Iterable[str | Encoder | ModelCard]


@dataclass(frozen=True)
class NamedModel:
    """A model under a name that the user gave it, for results and tables; its vectors are those of the model."""

    model: str | Encoder | ModelCard
    name: str


Model = str | Encoder | ModelCard | NamedModel


def choose_models(
    models: Models | None, loading: Loading | None = None, settings: Settings | None = None
) -> list[Encoder]:
    """Names and encoders as encoders; None is the pocket model and two baselines.

    `loading` says how those given by name are loaded.
    """
    return [load_model(model, loading, settings) for model in name_models(models, settings=settings)]


def name_models(
    models: Models | None, names: str | Sequence[str] | None = None, settings: Settings | None = None
) -> list[Model]:
    """The models to load one by one; a name that stands for none is an error now, not after hours of another model.

    None is the models that embark.toml of the working folder names, else the pocket model and two baselines. `names`
    are those that results and tables get, one for each model.
    """
    models = tuple(own_models()) or DEFAULT_MODELS if models is None else models
    chosen: list[Any] = [models] if isinstance(models, str) or not isinstance(models, Iterable) else list(models)
    if not chosen:
        raise EmbarkError("No model was chosen.")
    chosen = [model if isinstance(model, (str, ModelCard)) else as_encoder(model) for model in chosen]
    for model in chosen:
        model_card(model, settings)
    return chosen if names is None else _named(chosen, [names] if isinstance(names, str) else list(names))


def load_model(model: Model, loading: Loading | None = None, settings: Settings | None = None) -> Encoder:
    """The encoder of a name or card; an encoder is one already.

    A name is of the catalogue, of embark.toml, a checkpoint folder, LOADER:SOURCE, or of a model that has results.
    """
    if isinstance(model, NamedModel):
        return renamed(load_model(model.model, loading, settings), model.name)
    if not isinstance(model, (str, ModelCard)):
        return as_encoder(model)
    card = None if isinstance(model, ModelCard) or _is_listed(model) else results_card(model, settings)
    loading = replace(loading or Loading(), settings=settings)
    if card is not None:
        return _load_again(card, loading)
    encoder = get_model(model, loading=loading)
    return _stored_pixels(encoder, settings or load_settings()) if loading.pixels == "auto" else encoder


def _stored_pixels(encoder: Encoder, settings: Settings) -> Encoder:
    """The encoder with the pixels that its stored vectors are of; with those of its GPU, where none are stored."""
    device = str(encoder.card.loaded.get("device", ""))
    if not device.startswith("cuda") or "+" in device or encoder.card.pixels == "cuda":
        return encoder
    store = open_store(settings)
    if len(store.space(vector_space(encoder.card))):
        return encoder
    try:
        other = cuda_pixels(encoder)
    except EmbarkError as error:
        logger.info("%s: pictures are prepared on the CPU: %s.", encoder.card.name, error)
        return encoder
    if not len(store.space(vector_space(other.card))):
        logger.warning(
            "%s has no stored vectors: JPEGs are decoded and resized on the GPU (--pixels pillow: on the CPU). "
            "Its results are those of %s.",
            encoder.card.name,
            other.card.name,
        )
    return other


def model_card(model: Model, settings: Settings | None = None) -> ModelCard | None:
    """The card of a model before it is loaded; None of a folder, which is looked at when it is loaded."""
    if isinstance(model, NamedModel):
        card = model_card(model.model, settings)
        return card and card.called(model.name)
    if isinstance(model, ModelCard) or not isinstance(model, str):
        return model if isinstance(model, ModelCard) else model.card
    if Path(model).expanduser().is_dir() or "checkpoint" in own_models().get(model, {}):
        return None
    return (None if _is_listed(model) else results_card(model, settings)) or find_card(model)


def model_name(model: Model) -> str:
    """What messages call a model."""
    if isinstance(model, (NamedModel, ModelCard)):
        return model.name
    return model if isinstance(model, str) else model.card.name


def check_free(name: str) -> None:
    """An error if the name is that of another model: a built-in one, or one of embark.toml."""
    if name in MODELS or name in own_models():
        owner = "A built-in model" if name in MODELS else "A model of embark.toml"
        raise EmbarkError(f"{owner} is named {name}, too: choose another name.")


def renamed(encoder: Encoder, name: str) -> Encoder:
    """The encoder under a name of the user's; the encoder itself keeps its own."""
    other = copy.copy(encoder)
    other.card = encoder.card.called(name)
    return other


def _named(models: Sequence[str | Encoder | ModelCard], names: Sequence[str]) -> list[Model]:
    if len(names) != len(models) or len(set(names)) != len(names) or not all(names):
        raise EmbarkError(f"Give each of the {len(models)} models a different name, not {', '.join(names)}.")
    for model, name in zip(models, names, strict=True):
        if name != model_name(model):
            check_free(name)
    return [NamedModel(model, name) for model, name in zip(models, names, strict=True)]


def _is_listed(name: str) -> bool:
    """Whether the name says by itself what to load."""
    loader, colon, _ = name.partition(":")
    return name in known_models() or Path(name).expanduser().is_dir() or bool(colon and loader in LOADERS)


# ── models that have results ─────────────────────────────────────────────────────────────────────────────────────────
#
# A results folder may be a stranger's. So of a card beside results, a loader gets nothing but the place of the
# checkpoint: the model is found again as its user named it, and must be the one whose vectors were stored.


def _load_again(card: ModelCard, loading: Loading) -> Encoder:
    """The model of a card that stands beside results."""
    if card.loader == "functions" or (card.loader == "open_clip" and not card.source):
        return StoredOnly(card)
    name = (card.keyed_as or card.name).removesuffix(CUDA_PIXELS)
    if loading.pixels == "auto":
        loading = replace(loading, pixels=card.pixels)
    if loading.stored_dtype is None:
        loading = replace(loading, stored_dtype=card.stored)
    plain = name.removesuffix(f" ({card.dtype})")
    if plain != name and loading.dtype is None:
        loading = replace(loading, dtype=card.dtype)
    ours = LOADERS.own  # those of plug-ins may do anything with the place
    if plain in MODELS:
        source = plain
    elif card.loader not in ours or LOADERS[card.loader].type == "api" or not card.source or "://" in card.source:
        _cannot_load(card, "the source of its checkpoint is unknown")
    else:
        source = f"{card.loader}:{card.source}" if ":" in plain else card.source
    revision = card.revision if plain in MODELS else None
    try:
        encoder = get_model(source, revision, loading=loading)
    except EmbarkError as error:
        _cannot_load(card, str(error))
    if vector_space(encoder.card) != vector_space(card):
        _cannot_load(card, f"the files of {source} have changed")
    return renamed(encoder, card.name)


def _cannot_load(card: ModelCard, why: str) -> NoReturn:
    raise EmbarkError(
        f"{card.name} has results, but cannot be loaded by its name: {why.rstrip('.')}. Give its folder, LOADER:SOURCE "
        "or, in Python, the encoder itself."
    )


class StoredOnly(Towers):
    """A model of a user's functions, of which only the stored vectors are at hand."""

    def __init__(self, card: ModelCard) -> None:
        def embed(values: list[Any]) -> Array:
            raise EmbarkError(f"{card.name} is made of functions: give the encoder itself, in Python.")

        super().__init__(card, {kind: Tower(embed) for kind in card.modalities})
