"""Two baselines without training: random vectors, and hand-made features."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from embark.models.encoder import Encoder, Tower, Towers, image_towers, unit
from embark.models.loading import Loading
from embark.models.pocket import WORD, gram_hash, log_mel, ngrams, pixels
from embark.types import Array, Audio, Modality, ModelCard

if TYPE_CHECKING:
    from PIL.Image import Image

DIM = 256
SLOPE = np.sqrt(2) - 1  # of a line at 22.5°
# The lines (down, right) between eight orientations of edges, from 22.5° to 157.5°. Those of axes and diagonals, which
# drawings are full of, are whole numbers: how an angle is rounded there depends on the processor.
BORDERS = ((SLOPE, 1), (1, 1), (1, SLOPE), (1, 0), (1, -SLOPE), (1, -1), (SLOPE, -1))


def load_random(card: ModelCard, _: Loading) -> Encoder:
    """A random direction for each content, always the same one: the score of a model that understands nothing."""
    return Towers(
        card,
        {
            "text": Tower(_gaussian, lambda text: _noise("text", [text.encode("utf-8", "surrogatepass")])),
            "image": Tower(_gaussian, _image_noise),
            "audio": Tower(_gaussian, _audio_noise),
            "video": Tower(_gaussian, _video_noise),
        },
    )


def load_handmade(card: ModelCard, _: Loading) -> Encoder:
    """Spelling, colours, edges and spectra. The modalities share no coordinates, so it is at chance across them."""
    images = image_towers(_image_features, pixels)
    return Towers(card, {"text": Tower(_stacked, _spelling), "audio": Tower(_stacked, _spectrum), **images})


# ── random ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _raw(image: Image) -> bytes:
    return f"{image.mode} {image.size} ".encode() + image.tobytes()


def _image_noise(image: Image) -> Array:
    return _noise("image", [_raw(image)])


def _audio_noise(audio: Audio) -> Array:
    return _noise("audio", [audio.samples.tobytes()])


def _video_noise(frames: Iterable[Image]) -> Array:
    return _noise("video", map(_raw, frames))


def _noise(kind: Modality, chunks: Iterable[bytes]) -> Array:
    """Uniform 32-bit numbers from a hash of the content, because numpy's streams may change with its version."""
    content = hashlib.shake_128(kind.encode())
    for chunk in chunks:
        content.update(len(chunk).to_bytes(8, "little") + chunk)
    return np.frombuffer(content.digest(4 * DIM), "<u4")


def _gaussian(noise: list[Array]) -> Array:
    """Box and Muller's transform: two uniform numbers give two normal ones."""
    first, second = np.split((np.stack(noise) + 0.5) / 2**32, 2, axis=1)
    radius = np.sqrt(-2 * np.log(first))
    angle = 2 * np.pi * second
    return unit(np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)).astype(np.float32)


# ── handmade ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _stacked(vectors: list[Array]) -> Array:
    return unit(np.stack(vectors))


def _spelling(text: str) -> Array:
    """Words and their n-grams of 2 to 4 characters: log counts, with a sign, in hashed dimensions."""
    counts = Counter(gram for word in WORD.findall(text.casefold()) or [""] for gram in _grams(word))
    hashes = np.fromiter(counts, np.uint32, len(counts))
    weights = 1 + np.log(np.fromiter(counts.values(), np.float64, len(counts)))
    signs = np.where(hashes >> 31, -1.0, 1.0)
    return np.bincount(hashes % DIM, signs * weights, DIM).astype(np.float32)


@lru_cache(1 << 16)
def _grams(word: str) -> list[int]:
    return [gram_hash(gram) for gram in ngrams(word)]


def _image_features(images: list[Array]) -> Array:
    """Colours (64), edges (128) and layout (64) of (64, 64, 3) bytes, each of the three with the same weight."""
    batch = np.stack(images)
    return unit(np.concatenate([unit(feature(batch)) for feature in (_colors, _edges, _layout)], axis=1))


def _colors(batch: Array) -> Array:
    """The square roots of the numbers of pixels of 4 × 4 × 4 colours, so that a white background does not dominate."""
    step = batch >> 6
    return np.sqrt(_histogram(step[..., 0] * 16 + step[..., 1] * 4 + step[..., 2], 64, None))


def _edges(batch: Array) -> Array:
    """The strength of edges of 8 orientations in each of 4 × 4 cells."""
    gray = batch.sum(axis=-1, dtype=np.float32)
    down, right = np.gradient(gray, axis=(1, 2))  # whole and half numbers, without rounding
    flipped = np.where((down < 0) | ((down == 0) & (right < 0)), np.float32(-1), np.float32(1))
    beyond = [flipped * down * across >= flipped * right * along for along, across in BORDERS]
    cell = np.arange(64) // 16
    bins = (cell[:, None] * 4 + cell) * 8 + np.sum(beyond, axis=0)
    return np.sqrt(_histogram(bins, 128, np.sqrt(down * down + right * right)))


def _layout(batch: Array) -> Array:
    """The mean colour and the contrast of each of 4 × 4 cells, around the middle of the scale."""
    values = batch.astype(np.float32) / 255
    color = _cell_means(values)
    contrast = np.sqrt(np.maximum(_cell_means(values * values) - color * color, 0)).mean(-1, keepdims=True)
    return np.concatenate([color - 0.5, contrast], axis=-1).reshape(len(batch), -1)


def _cell_means(batch: Array) -> Array:
    down = batch.reshape(len(batch), 4, 16, 64 * 3).mean(2)  # an axis at a time: the inner loop stays contiguous
    return np.asarray(down.reshape(len(batch), 4, 4, 16, 3).mean(3))


def _histogram(bins: Array, size: int, weights: Array | None) -> Array:
    """(images, size): the counts, or sums of weights, of each image's bins."""
    offsets = np.arange(len(bins))[:, None, None] * size
    counts = np.bincount((offsets + bins).ravel(), None if weights is None else weights.ravel(), len(bins) * size)
    return counts.reshape(len(bins), size).astype(np.float32)


def _spectrum(audio: Audio) -> Array:
    """Mean and spread of each mel band, and its mean in each quarter of the sound; padded with zeros."""
    mel = log_mel(audio.samples)
    quarters = [quarter.mean(0) if len(quarter) else mel.mean(0) for quarter in np.array_split(mel, 4)]
    features = np.concatenate([mel.mean(0), mel.std(0), *quarters])
    return np.pad(features, (0, DIM - len(features)))
