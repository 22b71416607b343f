"""What the transformers families share: weights, tokenisers and image processors from a checkpoint folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, Literal

from embark.models.device import settle
from embark.models.hub import Checkpoint
from embark.models.loading import Loading, put_to_work
from embark.types import EmbarkError, ModelCard


def weights(kind: Any, found: Checkpoint, loading: Loading, **settings: Any) -> Any:
    """A model of that transformers class, at work; weights that are missing are an error, never random numbers."""
    import torch

    found.weights()  # consent, where they are pickles
    with _quiet():
        model, told = kind.from_pretrained(
            found.folder, dtype=getattr(torch, found.card.dtype), local_files_only=True, output_loading_info=True,
            trust_remote_code=found.trusted, use_safetensors=None if found.trusted else True, **settings,
        )  # fmt: skip
    if missing := sorted(told["missing_keys"]):
        raise EmbarkError(
            f"The checkpoint of {found.card.name} lacks {len(missing)} weights of {kind.__name__}, "
            f"the first is {missing[0]}: it is of another architecture, or not whole."
        )
    return settle(model, found.card, loading)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's report of weights that fit nowhere: a head that is not asked for is no news."""
    from transformers.utils import logging

    said = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(said)


def loaded(found: Checkpoint, loading: Loading, dim: int, fusion: Literal["sum", "unit-sum", "native"]) -> ModelCard:
    """The card of a model of text and images that was loaded, with what the checkpoint tells where the row does not."""
    card = found.card
    if card.dim not in (None, dim):
        raise EmbarkError(f"{card.name} makes vectors of {dim} dimensions; its card says {card.dim}.")
    known = replace(card, dim=dim, modalities=("text", "image", "video"), fusion=card.fusion or fusion)
    return put_to_work(known, loading, ("torch", "transformers"))


def image_processor(found: Checkpoint, **settings: Any) -> Any:
    """The checkpoint's image processor on Pillow: other back-ends make other pixels, and so other vectors."""
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(
        found.folder, backend="pil", local_files_only=True, trust_remote_code=found.trusted, **settings
    )


class Tokenizer:
    """A checkpoint's tokeniser, for several threads at once: the library's own keeps state between calls."""

    def __init__(self, found: Checkpoint, limit: int | None = None, **settings: Any) -> None:
        from transformers import AutoTokenizer

        self.inner = AutoTokenizer.from_pretrained(
            found.folder, local_files_only=True, trust_remote_code=found.trusted, **settings
        )
        self.limit, self.lock = limit or min(self.inner.model_max_length, 1 << 16), Lock()

    def __call__(self, text: str) -> list[int]:
        """The text's tokens with the special ones, cut to the limit; padding is for the batch to decide."""
        with self.lock:
            ids: list[int] = self.inner(text, truncation=True, max_length=self.limit)["input_ids"]
        return ids

    @property
    def padding(self) -> int:
        """The token that fills up short rows; masked, so any will do where the checkpoint names none."""
        return int(self.inner.pad_token_id or 0)
