"""The seam of loaders: what one declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from embark.types import EmbarkError, ModelCard

KINDS = ("embedder", "reranker", "generator")  # of models
TYPES = ("encoder", "mllm", "late", "api")  # of what models are built on


@dataclass(frozen=True)
class Loader:
    """How a card becomes a model.

    `load(card, loading)` is a function, or its "module:function", which is imported when a model is loaded: most need
    libraries that not everybody has. `loading` is an `embark.models.Loading`.
    """

    name: str
    load: str | Callable[[ModelCard, Any], Any]
    kind: Literal["embedder", "reranker", "generator"] = "embedder"
    type: Literal["encoder", "mllm", "late", "api"] = "encoder"  # what its models are built on; "late" is interaction
    version: int = 1  # part of every identity from 2 on: raised when its code makes other vectors
    extra: str = ""  # of embark, which installs its libraries
    torch: bool = False  # its models run on torch: on several devices, and in other precisions than the card's
    lanes: int = 1  # batches that its models take at once on a CUDA device
    weightless: bool = False  # it loads models that only prepare without weights; others load them always
    recognize: Callable[[Path, Mapping[str, Any]], bool] | None = None  # whether a folder, and its config.json, is its
    options: Mapping[str, str] | None = None  # of a card that it reads, and what they say; None: any

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+", self.name):
            raise EmbarkError(f"A loader's name has letters, digits, dots and dashes alone, not {self.name!r}.")
        if not callable(self.load) and not re.fullmatch(r"[\w.]+:\w+", str(self.load)):
            raise EmbarkError(f"The loader '{self.name}' loads by a function or 'module:function', not {self.load!r}.")
        for what, value, known in (("kind", self.kind, KINDS), ("type", self.type, TYPES)):
            if value not in known:
                raise EmbarkError(f"The loader '{self.name}' has the {what} '{value}'; it may be {', '.join(known)}.")
        if not (self.recognize is None or callable(self.recognize)):
            raise EmbarkError(f"The loader '{self.name}' recognizes folders by a function, not {self.recognize!r}.")
        if not (self.options is None or isinstance(self.options, Mapping)):
            raise EmbarkError(f"The options of the loader '{self.name}' are no table of names and what they say.")
        if self.version < 1 or self.lanes < 1:
            raise EmbarkError(f"The loader '{self.name}' has at least version 1 and 1 lane.")
