"""How a checkpoint is loaded: the device, the precision, the revision that the user trusts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias

from embark.catalogue import check_name
from embark.models.adapt import as_encoder, as_generator, as_reranker
from embark.models.half_precision import secure
from embark.seams import Loader
from embark.settings import Settings
from embark.types import EmbarkError, Modality, ModelCard

DEVICES = ("cpu", "cuda", "mps", "xpu")  # each also with its number: cuda:1
DTYPES = ("float32", "bfloat16", "float16")
PIXELS = ("auto", "pillow", "cuda")
STORED_DTYPES = ("float32", "float16")
VERSION = "loader"  # the option of a loaded card that holds the version of its loader


@dataclass(frozen=True)
class Loading:
    """How to load a model.

    `device` is "auto", one device ("cpu", "cuda:1", "mps") or several ("cuda:0,cuda:1": a process for each, which takes
    the next batch when it is free); "cuda:0+cuda:1" is one copy on both, for a model that is larger than a GPU.
    `compile` compiles the forward pass; "auto" does on a CUDA device, where a trial shows that it pays. `dtype`
    overrides the card's precision, and so names another vector space. `trust` is the exact revision whose pickled
    weights or own code may be run; no other code of a checkpoint is ever executed. `settings` hold the hub's address
    and whether embark is offline. `pixels` says what decodes and resizes JPEGs: "pillow", on the CPU, or "cuda", on the
    model's GPU, whose pixels differ a little, and so name another vector space. With "auto", a run keeps to the pixels
    of the vectors that are stored for a model, and takes the GPU's for a model without any. Without `weights`, a model
    renders and prepares items, and embeds none: large ones are then not read, or let go once they are loaded.
    `stored_dtype` overrides the precision that an embedding model's vectors are stored in: "float32", or "float16" for
    half the disk space. Vectors of another precision are another vector space.
    """

    device: str = "auto"
    dtype: str | None = None
    compile: bool | Literal["auto"] = False
    trust: str | None = None
    settings: Settings | None = None
    pixels: str = "auto"
    weights: bool = True
    stored_dtype: str | None = None

    def __post_init__(self) -> None:
        if self.device not in ("auto", "split") and not all(map(_is_device, re.split("[,+]", str(self.device)))):
            raise EmbarkError(
                f"There is no device '{self.device}'. Write auto, {', '.join(DEVICES)}, one of several (cuda:1), or "
                "several (cuda:0,cuda:1)."
            )
        if self.compile not in (True, False, "auto"):
            raise EmbarkError(f"Compile or not: True, False or 'auto', not {self.compile!r}.")
        if self.pixels not in PIXELS:
            raise EmbarkError(f"There are no pixels '{self.pixels}'; there are {', '.join(PIXELS)}.")
        if self.dtype not in (None, *DTYPES):
            raise EmbarkError(f"There is no precision '{self.dtype}'; there are {', '.join(DTYPES)}.")
        if self.stored_dtype not in (None, *STORED_DTYPES):
            known = " and ".join(STORED_DTYPES)
            raise EmbarkError(f"Vectors cannot be stored as '{self.stored_dtype}'; known precisions: {known}.")


def _is_device(name: str) -> bool:
    """Whether a word can name a device: its kind, perhaps with a number."""
    kind, colon, number = name.strip().partition(":")
    return kind in DEVICES and (number.isdecimal() if colon else True)


Load: TypeAlias = Callable[[ModelCard, Loading], Any]
ADAPTERS: Mapping[str, Callable[[Any], Any]] = {
    "embedder": as_encoder,
    "reranker": as_reranker,
    "generator": as_generator,
}


def build(loader: Loader, card: ModelCard, loading: Loading) -> Any:
    """The model that a loader makes of a card: an encoder, a re-ranker or a generator."""
    for option in card.options if loader.options is not None else ():
        if option != VERSION:
            check_name(f"option of the loader {loader.name}", option, loader.options or {})
    if loader.version > 1:
        card = replace(card, options={**card.options, VERSION: loader.version})
    loading = replace(loading, weights=loading.weights or not loader.weightless)
    try:
        load: Load = resolve_name(loader.load) if isinstance(loader.load, str) else loader.load
        return ADAPTERS[loader.kind](load(card, loading))
    except ImportError as error:
        advice = f": pip install -U 'embark-bench[{loader.extra}]'" if loader.extra else "."
        raise EmbarkError(f"{card.name} cannot be loaded ({error}){advice}") from error
    except EmbarkError:
        raise
    except Exception as error:  # libraries raise all kinds of errors about files that are not as they expect
        reason = str(error).strip().partition("\n")[0]
        raise EmbarkError(f"{card.name} cannot be loaded as '{card.loader}': {reason}") from error


def loaded_card(
    card: ModelCard,
    loading: Loading,
    dim: int,
    modalities: tuple[Modality, ...] = ("text", "image", "video"),
    libraries: tuple[str, ...] = ("torch", "transformers"),
    record: Mapping[str, Any] | None = None,
    **facts: Any,
) -> ModelCard:
    """The card of a loaded model, with its dimension, its modalities and other `facts` of the checkpoint; `record` goes
    to every result.
    """
    card = replace(with_dim(card, dim), modalities=modalities, **facts)
    return record_loading(card, loading, libraries, **(record or {}))


def logit_scale(model: Any) -> float | None:
    """What a CLIP-like model multiplies similarities by: the exponential of its parameter; None where it has none."""
    parameter = getattr(model, "logit_scale", None)
    return float(parameter.detach().float().exp()) if parameter is not None and parameter.numel() == 1 else None


def with_dim(card: ModelCard, dim: int | None) -> ModelCard:
    """The card with the dimension of its checkpoint; another one on the card is an error."""
    if dim is not None and card.dim not in (None, dim):
        raise EmbarkError(f"{card.name} makes vectors of {dim} dimensions; its card says {card.dim}.")
    return replace(card, dim=card.dim or dim)


def record_loading(card: ModelCard, loading: Loading, libraries: tuple[str, ...], **more: Any) -> ModelCard:
    """The card with `loaded`: device, library versions and trust, which are recorded with every result."""
    trusted = loading.trust and any(loading.trust in str(value) for value in (card.revision, *card.options.values()))
    record: Mapping[str, Any] = {
        "device": loading.device,
        "compile": loading.compile,
        "trust": loading.trust if trusted else None,  # pickles were opened, or code was run
        "libraries": {name: metadata.version(name) for name in libraries},
        **(secure(card.dtype, loading.device) if "torch" in libraries else {}),
        **more,
    }
    return replace(card, loaded={name: value for name, value in record.items() if value})
