"""Models by name: cards say what there is, loaders build it when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from embark.catalogue import Catalogue
from embark.models.cards import builtin
from embark.models.encoder import Encoder
from embark.models.functions import encoder
from embark.types import EmbarkError, ModelCard

__all__ = ["LOADERS", "MODELS", "Encoder", "encoder", "get_model"]

MODELS: Catalogue[ModelCard] = Catalogue("model", builtin.CARDS, lambda card: card.name)

# Loader → "module:function", imported at use: some of them need libraries that not everybody has.
LOADERS: dict[str, str] = {
    "pocket": "embark.models.pocket:load",
    "handmade": "embark.models.baselines:load_handmade",
    "random": "embark.models.baselines:load_random",
}


def get_model(name: str, revision: str | None = None) -> Encoder:
    """The encoder of that name, ready to embed; its card's revision unless another is asked for."""
    card = MODELS[name]
    if revision not in (None, card.revision):
        raise EmbarkError(f"{name} has no revision '{revision}'; the one available is '{card.revision}'.")
    module, function = LOADERS[card.loader].split(":")
    load: Callable[[ModelCard], Encoder] = getattr(import_module(module), function)
    return load(card)
