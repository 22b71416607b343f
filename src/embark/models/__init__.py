"""Models by name: cards say what there is, loaders build it when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from embark.catalogue import Catalogue
from embark.models.cards import CARDS
from embark.models.encoder import Encoder, Generator, Reranker
from embark.models.functions import encoder
from embark.models.loading import Loader, Loading
from embark.settings import Settings
from embark.types import EmbarkError, ModelCard

__all__ = [
    "LOADERS",
    "MODELS",
    "Encoder",
    "Generator",
    "Loading",
    "Reranker",
    "encoder",
    "find_card",
    "get_generator",
    "get_model",
    "get_reranker",
]

MODELS: Catalogue[ModelCard] = Catalogue(
    "model",
    CARDS,
    lambda card: card.name,
    hint="A folder with a checkpoint works too, and so does LOADER:SOURCE (see: embark models --help).",
)

# Imported at use: most of them need libraries that not everybody has.
LOADERS: dict[str, Loader] = {
    "pocket": Loader("embark.models.pocket:load"),
    "handmade": Loader("embark.models.baselines:load_handmade"),
    "random": Loader("embark.models.baselines:load_random"),
    "dual": Loader("embark.models.dual:load", "torch"),  # CLIP, SigLIP, ALIGN… of transformers
}


def get_model(
    name: str,
    revision: str | None = None,
    *,
    device: str = "auto",
    dtype: str | None = None,
    compile: bool = False,
    trust: str | None = None,
    options: Settings | None = None,
) -> Encoder:
    """The encoder of that name, ready to embed. A name is a card's, a checkpoint folder's, or LOADER:SOURCE.

    The keywords are those of `Loading`: where it runs, in which precision, and the revision whose code you trust.
    """
    loading = Loading(device, dtype, compile, trust, options)
    model: Encoder = _load("embedder", name, revision, loading)
    return model


def get_reranker(name: str, revision: str | None = None, **loading: Any) -> Reranker:
    """The re-ranker of that name; keywords as for `get_model`."""
    model: Reranker = _load("reranker", name, revision, Loading(**loading))
    return model


def get_generator(name: str, revision: str | None = None, **loading: Any) -> Generator:
    """The captioner or rewriter of that name; keywords as for `get_model`."""
    model: Generator = _load("generator", name, revision, Loading(**loading))
    return model


def find_card(name: str, revision: str | None = None) -> ModelCard:
    """The facts about a model: its row, or what a folder or LOADER:SOURCE stands for."""
    loader, colon, source = name.partition(":")
    if name not in MODELS and colon and loader in LOADERS:
        return ModelCard(name, revision or "main", loader, (), source=source)
    if name not in MODELS and Path(name).expanduser().is_dir():
        from embark.models.recognise import recognise

        return recognise(Path(name).expanduser())
    card = MODELS[name]
    if revision not in (None, card.revision):
        if not card.source:
            raise EmbarkError(f"{name} has no revision '{revision}'; the one available is '{card.revision}'.")
        card = replace(card, revision=revision)
    return card


def _load(kind: str, name: str, revision: str | None, loading: Loading) -> Any:
    card = find_card(name, revision)
    if card.kind != kind:
        raise EmbarkError(f"{name} is a model of another kind: {card.kind}, where this needs a model of kind {kind}.")
    card, loader = replace(card, dtype=loading.dtype or card.dtype), LOADERS[card.loader]
    places = _devices(loader, card, loading)
    copies = [loader(card, replace(loading, device=place)) for place in places]
    if len(copies) == 1 or kind != "embedder":
        return copies[0]
    from embark.models.parallel import Replicas

    return Replicas(copies)


def _devices(loader: Loader, card: ModelCard, loading: Loading) -> tuple[str, ...]:
    """Where to load it: one copy a device, for what runs on torch."""
    if loader.extra != "torch":
        return (loading.device,)
    try:
        from embark.models.device import devices

        return devices(loading.device)[: None if card.kind == "embedder" else 1]
    except ImportError as error:
        raise EmbarkError(f"{card.name} needs torch: pip install 'embark[torch]'") from error
