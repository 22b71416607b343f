"""Encoders that read a picture and a text together, in one pass: BLIP-2, VISTA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.models.encoder import Encoder, unit
from embark.types import Array, Content, ModelCard

Prepared = tuple[list[Any], list[int]]  # pixels of each picture, tokens of the text


@dataclass
class Joint(Encoder):
    """A native encoder of one picture, one text, or both.

    `tokens(text, pictured)` gets None where an item has no text; `texts` embeds token lists, `pictures` embeds pixels
    and the tokens beside them. An item with several pictures or frames is read once with each: the unit vectors are
    added and scaled to length one, as films are by every other family.
    """

    card: ModelCard
    pixels: Callable[[Any], Any]
    tokens: Callable[[str | None, bool], list[int]]
    texts: Callable[[list[list[int]]], Array]
    pictures: Callable[[list[Any], list[list[int]]], Array]

    def prepare(self, contents: Sequence[Content], mode: str) -> Prepared:
        """Pictures and frames one by one, and the text parts joined by a space."""
        images = [content.value for content in contents if content.kind == "image"]
        images += [frame for content in contents if content.kind == "video" for frame in content.value]
        words = [content.value for content in contents if content.kind == "text"]
        return [self.pixels(image) for image in images], self.tokens(" ".join(words) if words else None, bool(images))

    def embed(self, batch: Sequence[Prepared]) -> Array:
        """Texts in one pass, pictures in another."""
        out = np.zeros((len(batch), self.card.dim or 0), np.float32)
        if alone := [row for row, (images, _) in enumerate(batch) if not images]:
            out[alone] = self.texts([batch[row][1] for row in alone])
        owners = np.array([row for row, (images, _) in enumerate(batch) for _ in images], int)
        if owners.size:
            vectors = self.pictures(
                [image for images, _ in batch for image in images], [tokens for images, tokens in batch for _ in images]
            )
            several = np.bincount(owners, minlength=len(batch)) > 1
            np.add.at(out, owners, np.where(several[owners, None], unit(vectors), vectors))
            out[several] = unit(out[several])
        return out


def cut(tokens: list[int], limit: int) -> list[int]:
    """As a tokeniser truncates: the closing token stays."""
    return tokens if len(tokens) <= limit else [*tokens[: limit - 1], tokens[-1]]
