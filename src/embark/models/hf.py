"""What the transformers families share: weights, tokenisers and image processors from a checkpoint folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from embark.models.device import settle
from embark.models.hub import Checkpoint
from embark.models.loading import Loading
from embark.types import EmbarkError

VOCABULARIES = ("tokenizer.json", "*vocab*", "*.model", "*.tiktoken")
CLIP_MEAN, CLIP_SPREAD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # of pixels


def weights(
    kind: Any, found: Checkpoint, loading: Loading, state: Mapping[str, Any] | None = None, **options: Any
) -> Any:
    """A model of that transformers class, at work; weights that are missing are an error, never random numbers.

    `state` has the weights by their names in the class, where those in the checkpoint are others.
    """
    import torch

    if state is None:
        found.weights()  # consent, where they are pickles
    with quiet():
        model, told = kind.from_pretrained(
            found.folder if state is None else None, state_dict=None if state is None else dict(state),
            dtype=getattr(torch, found.card.dtype), local_files_only=True, output_loading_info=True,
            ignore_mismatched_sizes=True,  # or the library raises before it says which
            trust_remote_code=found.trusted, use_safetensors=None if found.trusted else True, **options,
        )  # fmt: skip
    misfits = {*told["missing_keys"], *(name for name, *_ in told["mismatched_keys"])}
    if misfits:
        raise EmbarkError(
            f"The checkpoint of {found.card.name} lacks {len(misfits)} weights of {kind.__name__}, the first is "
            f"{min(misfits)} (of that name and shape): it is of another architecture, or not whole."
        )
    return settle(model, found.card, loading)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's reports: a head that is not asked for is no news, and a bar a part is none either."""
    from transformers.utils import logging

    said, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(said)
        if bars:
            logging.enable_progress_bar()


def tensors(path: Path) -> dict[str, Any]:
    """The weights in a file, by name; of a pickle nothing but tensors is read."""
    import pickle
    import zipfile

    import torch
    from safetensors.torch import load_file

    if path.suffix == ".safetensors":
        return dict(load_file(path))
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)))
    except pickle.UnpicklingError as error:
        raise EmbarkError(f"{path} is not read: it is no file of weights, or holds more than weights.") from error


def renamed(state: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The weights by other names: each pattern that a name matches is replaced, in the table's order."""
    out = {}
    for name, tensor in state.items():
        for pattern, put in names.items():
            name = re.sub(pattern, put, name)
        out[name] = tensor
    return out


def image_processor(found: Checkpoint, **options: Any) -> Any:
    """The checkpoint's image processor on Pillow: other back-ends make other pixels, and so other vectors."""
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(
        found.folder, backend="pil", local_files_only=True, trust_remote_code=found.trusted, **options
    )


def check_vocabulary(found: Checkpoint, tokenizer: Any) -> None:
    """An error where the checkpoint brings no tokeniser: the library makes one up, to which all words are alike."""
    if getattr(tokenizer, "vocab_files_names", None) and not any(any(found.folder.rglob(p)) for p in VOCABULARIES):
        raise EmbarkError(
            f"{found.card.name} is not loaded: {found.folder} holds no tokeniser (tokenizer.json, vocab.txt…)."
        )


class Tokenizer:
    """A checkpoint's tokeniser, for several threads at once: the library's own keeps state between calls."""

    def __init__(self, found: Checkpoint, limit: int | None = None, **options: Any) -> None:
        from transformers import AutoTokenizer

        self.inner = AutoTokenizer.from_pretrained(
            found.folder, local_files_only=True, trust_remote_code=found.trusted, **options
        )
        check_vocabulary(found, self.inner)
        self.limit = limit or min(self.inner.model_max_length, _positions(found.config))
        self.lock = Lock()

    def __call__(self, text: str) -> list[int]:
        """The text's tokens with the special ones, cut to the limit; padding is for the batch to decide."""
        with self.lock:
            ids: list[int] = self.inner(text, truncation=True, max_length=self.limit)["input_ids"]
        return ids

    @property
    def padding(self) -> int:
        """The token that fills up short rows; masked, so any will do where the checkpoint names none."""
        return int(self.inner.pad_token_id or 0)


OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet")  # model types that count positions from two


def _positions(config: Mapping[str, Any]) -> int:
    """The longest text that a model has positions for: many tokenisers do not know."""
    places = int(config.get("max_position_embeddings") or 1 << 16)
    return min(1 << 16, places - 2 * (config.get("model_type") in OFFSET))
