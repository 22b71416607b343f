"""The seam of loaders: what one declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from embark.seams.checks import Declared, misnamed
from embark.types import ModelCard


@dataclass(frozen=True)
class Loader(Declared):
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

    def faults(self) -> Iterator[str]:
        """A message for a path that cannot be imported."""
        yield from misnamed(self.load, "load")
