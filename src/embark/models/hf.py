"""Models, tokenisers and image processors of transformers, loaded from a checkpoint folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from embark.models.checkpoints import Checkpoint
from embark.models.device import pad, split_options, to_device, to_numpy, varying_shapes, without_gradients
from embark.models.encoder import Tower
from embark.models.loading import Loading
from embark.models.text_length import UNLIMITED, TextLength, text_length
from embark.models.tokens import FastTokenizer, Tokens
from embark.types import Array, EmbarkError

VOCABULARIES = ("tokenizer.json", "*vocab*", "*.model", "*.tiktoken")
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)  # of pixels
CLIP_SPREAD = (0.26862954, 0.26130258, 0.27577711)


def load_model(
    kind: Any, checkpoint: Checkpoint, loading: Loading, state: Mapping[str, Any] | None = None, **options: Any
) -> Any:
    """A model of a class of transformers, on its device; weights that are missing are an error, never random numbers.

    `state` are its weights, where the checkpoint has them by other names than the class. Where `loading` wants none,
    this is the model's configuration.
    """
    import torch

    if not loading.weights:
        return WithoutWeights(checkpoint, options.get("config"))
    if state is None:
        checkpoint.weight_files()  # raises unless pickles are trusted
    with quiet():
        model, report = kind.from_pretrained(
            checkpoint.folder if state is None else None, state_dict=None if state is None else dict(state),
            dtype=getattr(torch, checkpoint.card.dtype), local_files_only=True, output_loading_info=True,
            ignore_mismatched_sizes=True,  # or the library raises before it says which
            trust_remote_code=checkpoint.trusted, use_safetensors=None if checkpoint.trusted else True,
            **split_options(loading.device, checkpoint.name), **options,
        )  # fmt: skip
    misfits = {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
    if misfits:
        raise EmbarkError(
            f"The checkpoint of {checkpoint.name} lacks {len(misfits)} weights of {kind.__name__}, the first is "
            f"{min(misfits)} (of that name and shape): it is of another architecture, or not whole."
        )
    return to_device(model, checkpoint.card, loading)


class WithoutWeights:
    """What stands for a model that prepares items alone: its configuration. Whatever else is asked for is an error."""

    def __init__(self, checkpoint: Checkpoint, config: Any = None) -> None:
        from transformers import AutoConfig

        self.name = checkpoint.name
        self.config = config or AutoConfig.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=checkpoint.trusted
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for these by itself
            raise AttributeError(name)
        raise EmbarkError(f"{self.name} was loaded without its weights: it prepares items, and embeds none.")


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' reports of unused heads and its progress bars."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def load_tensors(path: Path) -> dict[str, Any]:
    """The tensors in a file of weights, by name; nothing else in a pickle is read."""
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


def read_weights(checkpoint: Checkpoint, name: str = "*") -> dict[str, Any]:
    """The tensors in the folder's weight files of that name; files in sub-folders are left out."""
    files = [path for path in checkpoint.weight_files() if path.match(name)]
    if not files:
        raise EmbarkError(f"{checkpoint.name} has no weights '{name}' in {checkpoint.folder}.")
    return {tensor_name: tensor for path in files for tensor_name, tensor in load_tensors(path).items()}


def rename_tensors(state: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The tensors by other names: `names` are patterns and replacements, applied in order."""
    out = {}
    for name, tensor in state.items():
        for pattern, replacement in names.items():
            name = re.sub(pattern, replacement, name)
        out[name] = tensor
    return out


def two_layers(state: Mapping[str, Any], activation: Any) -> Any:
    """Two linear layers with an activation between them, which their weights call 0, 1 and 2."""
    import torch

    first, second = (torch.nn.Linear(*reversed(state[f"{layer}.weight"].shape)) for layer in (0, 2))
    layers = torch.nn.Sequential(first, activation, second)
    layers.load_state_dict(state)
    return layers


def image_processor(checkpoint: Checkpoint, **options: Any) -> Any:
    """The checkpoint's image processor on Pillow: other back-ends make other pixels, and so other vectors."""
    from transformers import AutoImageProcessor

    return AutoImageProcessor.from_pretrained(
        checkpoint.folder, backend="pil", local_files_only=True, trust_remote_code=checkpoint.trusted, **options
    )


def check_vocabulary(checkpoint: Checkpoint, tokenizer: Any) -> None:
    """Raise an error if the checkpoint has no tokeniser: transformers would make up one with a single token."""
    if getattr(tokenizer, "vocab_files_names", None) and not any(any(checkpoint.folder.rglob(p)) for p in VOCABULARIES):
        raise EmbarkError(
            f"{checkpoint.name} is not loaded: {checkpoint.folder} holds no tokeniser (tokenizer.json, vocab.txt…)."
        )


class Tokenizer:
    """A checkpoint's tokeniser, safe for threads: that of transformers keeps state between calls.

    `tokens` is the card's number for `text_length`; `config` is that of the model where it is not the checkpoint's.
    Without `cut`, texts stay whole: the caller cuts its prompts itself.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        tokens: int | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        cut: bool = True,
        **options: Any,
    ) -> None:
        from transformers import AutoTokenizer

        self.inner = AutoTokenizer.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=checkpoint.trusted, **options
        )
        check_vocabulary(checkpoint, self.inner)
        stated = options.get("model_max_length") if tokens is None else tokens
        length = text_length(checkpoint.folder, config or checkpoint.config, stated)
        self.length = length if cut else TextLength(None)
        self.limit = self.length.tokens or UNLIMITED
        self.lock = Lock()
        self.fast = only_wraps(self.inner)

    def __call__(self, text: str) -> list[int]:
        """The text's tokens with the special ones, cut to the limit and without padding."""
        with self.lock:
            return list(self.inner(text, truncation=True, max_length=self.limit)["input_ids"])

    def many(self, texts: list[str]) -> list[list[int]]:
        """The tokens of each text, as of one alone; a fast tokeniser shares them out to its own threads."""
        if not self.fast or len(texts) == 1:
            return [self(text) for text in texts]
        with self.lock:
            encodings = self._backend.encode_batch_fast(texts)
        return [encoding.ids for encoding in encodings]

    def packed(self, texts: list[str]) -> Tokens:
        """As `many`, in one array."""
        return Tokens.of(self.many(texts))

    @cached_property
    def sendable(self) -> FastTokenizer | None:
        """What does the same as `packed` and can be sent to a process; None where only this one can do it."""
        if not self.fast:
            return None
        with self.lock:
            return FastTokenizer(self._backend.to_str())

    @property
    def _backend(self) -> Any:
        """What a fast tokeniser wraps, after a call which sets all that `__call__` sets of it."""
        self.inner("", truncation=True, max_length=self.limit)
        return self.inner.backend_tokenizer

    @property
    def padding(self) -> int:
        """The padding token; 0 where the checkpoint names none, as padding is masked."""
        return int(self.inner.pad_token_id or 0)


def text_tower(
    tokenizer: Tokenizer,
    model: Any,
    forward: Callable[[Any, Any], Any],
    prepare_many: Callable[[list[str]], list[list[int]]] | None = None,
) -> Tower:
    """The tower of texts: `prepare_many` (default: the tokenizer's), then `forward` from ids and mask to vectors."""
    many = prepare_many or tokenizer.many

    @without_gradients
    def embed(rows: Sequence[list[int]]) -> Array:
        with varying_shapes():
            return to_numpy(forward(*pad(rows, tokenizer.padding, "right", model.device)))

    return Tower(
        embed,
        lambda text: many([text])[0],
        prepare_many=prepare_many or tokenizer.packed,
        sendable=None if prepare_many else lambda: tokenizer.sendable,
    )


def only_wraps(tokenizer: Any) -> bool:
    """Whether a tokeniser does no more to texts than the one of the library tokenizers behind it.

    Some classes change texts before that, as CPM's does; slow tokenisers have none behind them.
    """
    from transformers import PreTrainedTokenizerFast

    methods = ("__call__", "_encode_plus", "_batch_encode_plus")
    return isinstance(tokenizer, PreTrainedTokenizerFast) and all(
        getattr(type(tokenizer), name, None) is getattr(PreTrainedTokenizerFast, name, None) for name in methods
    )
