"""mteb's own task classes and our readers and evaluators give the same scores of one encoder on the same messy data."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
import samples_mteb
from embark.tasks import TASKS
from embark.types import Array, Task
from hub import FakeHub


class Toy:
    """Vectors of +1 and -1 that hang on every character and every pixel, and a little on words and colours.

    Their length is a power of two where `dim` is one of four, so that cosines are exact, and equal ones tie everywhere.
    A small `dim` has many ties.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def texts(self, values: Sequence[str]) -> Array:
        return np.stack([self._signs(text.encode(), [self._noise(w.encode()) for w in text.split()]) for text in values])

    def images(self, values: Sequence[Image.Image]) -> Array:
        return np.stack([self._image(value.convert("RGB")) for value in values])

    def _image(self, image: Image.Image) -> Array:
        colours = np.asarray(image, np.float64).mean((0, 1)) / 64
        content = f"{image.size}".encode() + image.tobytes()
        return self._signs(content, [4 * weight * self._noise(bytes([n])) for n, weight in enumerate(colours - 1.5)])

    def _signs(self, content: bytes, parts: Sequence[Array]) -> Array:
        whole = self._noise(content) + sum(parts) / max(len(parts), 1)
        return np.where(whole >= 0, 1, -1).astype(np.float32)

    def _noise(self, content: bytes) -> Array:
        seed = int.from_bytes(hashlib.sha256(content).digest()[:8])
        return np.random.default_rng(seed).standard_normal(self.dim)

    def ours(self) -> embark.Encoder:
        return embark.encoder(
            text=self.texts, image=self.images, name=f"toy/{self.dim}", revision="1", fusion="sum", stored="float32"
        )

    def of_mteb(self) -> Any:
        """The same as a model of mteb's protocol; parts of an item are added, as ours are."""
        from mteb.models.model_meta import ModelMeta
        from mteb.similarity_functions import cos_sim, pairwise_cos_sim

        toy = self

        class Model:
            mteb_model_meta = ModelMeta.create_empty(
                {"name": f"toy/{toy.dim}", "revision": "1", "modalities": ["text", "image"]}
            )

            def encode(self, inputs: Any, **_: Any) -> Array:
                return np.concatenate([self._batch(batch) for batch in inputs])

            def _batch(self, batch: Mapping[str, Any]) -> Array:
                parts = [toy.texts(batch["text"])] if "text" in batch else []
                parts += [toy.images(batch["image"])] if "image" in batch else []
                return np.sum(parts, axis=0)

            def similarity(self, left: Array, right: Array) -> Any:
                return cos_sim(left, right)

            def similarity_pairwise(self, left: Array, right: Array) -> Any:
                return pairwise_cos_sim(left, right)

        return Model()
