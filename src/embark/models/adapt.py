"""The door for models: whatever has the methods of an encoder, re-ranker or generator becomes one, once.

Past it, every model has `card`, `capabilities`, `render` and `prepare`, so that nobody has to ask for them.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from embark.models.encoder import Capabilities, Encoder, Generator, Reranker
from embark.types import EmbarkError, ModelCard

M = TypeVar("M", Encoder, Reranker, Generator)


def as_encoder(model: Any, revision: str | None = None) -> Encoder:
    """A live model as an encoder: one that has a card and `embed`, a SentenceTransformer, or an mteb encoder.

    `revision` is that of an object of another library; without one, it is a hash of its vectors of fixed inputs.
    """
    encoder = encoder_of(model, revision)
    if encoder is None:
        raise EmbarkError(f"{model!r} is no model: give a name or an encoder (embark.encoder wraps functions).")
    return encoder


def encoder_of(model: Any, revision: str | None = None) -> Encoder | None:
    """As `as_encoder`; None where the object is no model."""
    if isinstance(model, Encoder):
        return model
    if hasattr(model, "card") and hasattr(model, "embed"):
        return _adapted(Encoder(), model, "embed")
    from embark.models import interop

    if hasattr(model, "mteb_model_meta"):
        return interop.from_mteb(model, revision=revision)
    if hasattr(model, "encode") and hasattr(model, "max_seq_length"):
        return interop.from_sentence_transformers(model, revision=revision)
    return None


def as_reranker(model: Any) -> Reranker:
    """A model that has a card and `score` as a re-ranker."""
    if isinstance(model, Reranker):
        return model
    if hasattr(model, "card") and hasattr(model, "score"):
        return _adapted(Reranker(), model, "score")
    raise EmbarkError(
        f"{model!r} is no re-ranker: give a name or a re-ranker (embark.models.reranker wraps a function)."
    )


def as_generator(model: Any) -> Generator:
    """A model that has a card and `generate` as a generator."""
    if isinstance(model, Generator):
        return model
    if hasattr(model, "card") and hasattr(model, "generate"):
        return _adapted(Generator(), model, "generate")
    raise EmbarkError(
        f"{model!r} is no generator: give a name or a generator (embark.models.generator wraps a function)."
    )


def _adapted(empty: M, model: Any, method: str) -> M:
    """The empty model with the card, the capabilities and the methods of an object that inherits none of ours."""
    if not isinstance(model.card, ModelCard):
        raise EmbarkError(f"The card of {model!r} is no embark.types.ModelCard, but {model.card!r}.")
    empty.card = model.card
    empty.capabilities = _own_capabilities(model)
    for name in ("render", "prepare", method):
        if hasattr(model, name):
            setattr(empty, name, getattr(model, name))
    return empty


def _own_capabilities(model: Any) -> Capabilities:
    """Those that the object states itself: an object that passes on what it lacks to another prepares otherwise."""
    if inspect.getattr_static(model, "capabilities", None) is None:
        return Capabilities()
    if not isinstance(model.capabilities, Capabilities):
        raise EmbarkError(f"The capabilities of {model.card.name} are no Capabilities, but {model.capabilities!r}.")
    return model.capabilities
