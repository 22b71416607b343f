"""Encoders that read an image and a text together, in one pass: BLIP-2, VISTA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.models.encoder import Capabilities, Encoder, unit
from embark.types import Array, Content, ModelCard

ImagesAndTokens = tuple[list[Any], list[int]]  # the pixels of each image, the tokens of the text


@dataclass(eq=False)  # two waves share its turns by identity
class JointEncoder(Encoder):
    """A native encoder of an image, a text, or both.

    `pixels` prepares an image; `tokens` prepares texts, each with whether images are beside it; it is None where an
    item has no text. `embed_texts` takes token lists, `embed_images` pixels and the tokens beside them. An item with
    several images or frames is read once with each: the unit vectors are added and scaled to length one, as every
    other family does with films.
    """

    card: ModelCard
    pixels: Callable[[Any], Any]
    tokens: Callable[[Sequence[tuple[str | None, bool]]], list[list[int]]]
    embed_texts: Callable[[list[list[int]]], Array]
    embed_images: Callable[[list[Any], list[list[int]]], Array]

    def __post_init__(self) -> None:
        self.capabilities = Capabilities(prepare_many=self._prepare_many)

    def prepare(self, contents: Sequence[Content], mode: str) -> ImagesAndTokens:
        """The pixels of each image and frame, and the tokens of the texts, joined by a space."""
        return self._prepared([contents])[0]

    def _prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> list[ImagesAndTokens]:
        """As `prepare` for each item; all texts are tokenised together."""
        return self._prepared(batch)

    def _prepared(self, batch: Sequence[Sequence[Content]]) -> list[ImagesAndTokens]:
        pixels = []
        texts = []
        for contents in batch:
            images = [content.value for content in contents if content.kind == "image"]
            images += [frame for content in contents if content.kind == "video" for frame in content.value]
            pixels.append([self.pixels(image) for image in images])
            words = [content.value for content in contents if content.kind == "text"]
            texts.append((" ".join(words) if words else None, bool(images)))
        return list(zip(pixels, self.tokens(texts), strict=True))

    def embed(self, batch: Sequence[ImagesAndTokens]) -> Array:
        """Items of text alone in one pass, images in another."""
        out = np.zeros((len(batch), self.card.dim or 0), np.float32)
        if text_rows := [row for row, (images, _) in enumerate(batch) if not images]:
            out[text_rows] = self.embed_texts([batch[row][1] for row in text_rows])
        owners = np.array([row for row, (images, _) in enumerate(batch) for _ in images], int)
        if owners.size:
            vectors = self.embed_images(
                [image for images, _ in batch for image in images], [tokens for images, tokens in batch for _ in images]
            )
            several = np.bincount(owners, minlength=len(batch)) > 1
            np.add.at(out, owners, np.where(several[owners, None], unit(vectors), vectors))
            out[several] = unit(out[several])
        return out


def truncate(tokens: list[int], limit: int) -> list[int]:
    """As a tokeniser truncates: the closing token stays."""
    return tokens if len(tokens) <= limit else [*tokens[: limit - 1], tokens[-1]]
