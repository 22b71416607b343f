"""The pocket model: text, images, sounds and films in one space of 256 dimensions, in plain numpy.

It ships with the package, so everything can be tried in seconds without a download or a GPU.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from safetensors.numpy import load_file
from threadpoolctl import ThreadpoolController

from embark.models.encoder import Encoder, Tower, Towers, image_towers, unit
from embark.models.loading import Loading
from embark.settings import cores
from embark.types import Array, Audio, ModelCard

if TYPE_CHECKING:
    from PIL.Image import Image

WEIGHTS = Path(__file__).parent / "weights" / "pocket.safetensors"
BUCKETS = 1 << 14  # of hashed words and n-grams
MELS, FRAMES = 40, 128  # of a spectrogram
RATE, WINDOW, HOP = 16_000, 512, 320  # of sounds; samples
SIDE = 64  # of images; pixels
# Matrix libraries choose their kernels by the shape of a product, and some round a row by its place in it. Every item
# therefore has products of its own, and every forward pass one of these shapes, with zeros where items are missing: an
# item's vector is the same to the last bit in any batch.
TEXTS, IMAGES, SOUNDS = 64, 8, 16
CORES = min(8, cores())


def load(card: ModelCard, _: Loading) -> Encoder:
    """The encoder, with the weights of the package."""
    net = Network(WEIGHTS)
    sounds = Tower(net.sounds, spectrogram)
    return Towers(card, {"text": Tower(net.texts, text_ids), "audio": sounds, **image_towers(net.images, pixels)})


# ── preprocessing ────────────────────────────────────────────────────────────────────────────────────────────────────


def text_ids(text: str) -> Array:
    """Buckets of a text's words and of their character n-grams: any script, no vocabulary, never empty."""
    words = WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    ids = [_word_ids(word) for word in words if word not in _PUNCTUATION]
    return np.concatenate(ids) if ids else np.zeros(1, np.int64)


WORD = re.compile(r"\w+|[^\w\s]")
_PUNCTUATION = frozenset(":;,.-&()'“”‘’\"!/")


@lru_cache(1 << 16)  # names share their words
def _word_ids(word: str) -> Array:
    single = "" if word.isascii() else word  # one character can be a word in Chinese
    return np.array([gram_hash(gram) % BUCKETS for gram in (*ngrams(word), *single)], np.int64)


def ngrams(word: str) -> list[str]:
    """A word with marks at its ends, and its n-grams of 2 to 4 characters."""
    marked = f"<{word}>"
    sizes = range(2, min(5, len(marked)))
    return [marked, *(marked[start : start + n] for n in sizes for start in range(len(marked) - n + 1))]


def gram_hash(gram: str) -> int:
    """A number of 32 bits, the same in every process."""
    return zlib.crc32(gram.encode("utf-8", "surrogatepass"))


def pixels(image: Image) -> Array:
    """(64, 64, 3) bytes of an image, transparent parts laid on white."""
    from PIL import Image as pil

    if image.mode == "RGBA":
        image = pil.alpha_composite(pil.new("RGBA", image.size, "white"), image)
    image = image.convert("RGB")
    return np.asarray(image if image.size == (SIDE, SIDE) else image.resize((SIDE, SIDE), pil.Resampling.LANCZOS))


def log_mel(samples: Array) -> Array:
    """(frames, 40) loudness of a 16 kHz waveform every 20 ms: 1 for its loudest bin, 0 from 60 dB below that."""
    samples = np.pad(np.asarray(samples, np.float32), (0, max(0, WINDOW - len(samples))))
    spectrum = np.fft.rfft(sliding_window_view(samples, WINDOW)[::HOP] * np.hanning(WINDOW).astype(np.float32), axis=1)
    bins, weights, starts = _mel_bank()
    mels = np.add.reduceat((np.abs(spectrum) ** 2)[:, bins] * weights, starts, axis=1)
    decibels = 10 * np.log10(mels + 1e-10)
    return np.asarray(np.clip((decibels - decibels.max()) / 60 + 1, 0, 1), np.float32)


@cache
def _mel_bank() -> tuple[Array, Array, Array]:
    """40 triangles, evenly spaced in mel between 60 and 7600 Hz: the bins of each in turn, their weights, its start.

    As a matrix, nearly all of it would be zeros, and its product rounded by the number of threads.
    """
    low, high = 2595 * np.log10(1 + np.array([60, 7600]) / 700)
    hertz = 700 * (10 ** (np.linspace(low, high, MELS + 2) / 2595) - 1)
    left, peak, right = (side[:, None] for side in (hertz[:-2], hertz[1:-1], hertz[2:]))
    bins = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    triangles = np.minimum((bins - left) / (peak - left), (right - bins) / (right - peak))
    mel, places = np.nonzero(triangles > 0)
    return places, triangles[mel, places].astype(np.float32), np.searchsorted(mel, np.arange(MELS))


def spectrogram(audio: Audio) -> Array:
    """(128, 40): the first 2.56 seconds; a shorter sound is padded with zeros."""
    mel = log_mel(audio.samples)[:FRAMES]
    return np.pad(mel, ((0, FRAMES - len(mel)), (0, 0)))


# ── the forward passes ───────────────────────────────────────────────────────────────────────────────────────────────


class Network:
    """Three towers: hashed n-grams through two layers, a small residual net, and four convolutions over time."""

    def __init__(self, weights: Path) -> None:
        self.config = json.loads(weights.with_suffix(".json").read_text())
        self.weights = {name: _as_matrix(array.astype(np.float32)) for name, array in load_file(weights).items()}

    def texts(self, ids: list[Array]) -> Array:
        """From the buckets of each text."""
        return _in_chunks(self._texts, _mean_rows(self.weights["table"], ids), TEXTS)

    def images(self, images: list[Array]) -> Array:
        """From the (64, 64, 3) bytes of each image."""
        return _in_chunks(self._images, np.stack(images), IMAGES)

    def sounds(self, mels: list[Array]) -> Array:
        """From the (128, 40) spectrogram of each sound."""
        return _in_chunks(self._sounds, np.stack(mels), SOUNDS)

    def _texts(self, x: Array) -> Array:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        x = self._linear(x * self.weights["text_norm.w"] + self.weights["text_norm.b"], "text_1")
        x = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))  # GELU
        return self._linear(x, "text_2")

    def _images(self, x: Array) -> Array:
        x = _relu(self._convolve(x * np.float32(2 / 255) - np.float32(1), "stem", (3, 3), 2))
        for block, (_, _, stride) in enumerate(self.config["blocks"]):
            name = f"block{block}"
            y = _relu(self._convolve(x, f"{name}.1", (3, 3), stride))
            y = self._convolve(y, f"{name}.2", (3, 3))
            y += self._convolve(x, f"{name}.0", (1, 1), stride) if f"{name}.0.w" in self.weights else x
            x = _relu(y)
        layout = _relu(self._convolve(x, "squeeze", (1, 1)))
        return self._linear(np.concatenate([x.mean((1, 2)), layout.reshape(len(x), -1)], 1), "image_head")

    def _sounds(self, x: Array) -> Array:
        x = x * 2 - 1
        for layer, (_, _, width, stride) in enumerate(self.config["audio"]):
            x = _relu(self._convolve(x, f"audio{layer}", (width,), stride))
        return self._linear(np.concatenate([x.mean(1), x.max(1)], 1), "audio_head")

    def _linear(self, x: Array, name: str) -> Array:
        """One product an item."""
        return np.asarray((x[:, None] @ self.weights[f"{name}.w"].T)[:, 0] + self.weights[f"{name}.b"])

    def _convolve(self, x: Array, name: str, taps: tuple[int, ...], stride: int = 1) -> Array:
        """Channels last, any number of axes: every window becomes a row of its item's matrix product."""
        axes = tuple(range(1, x.ndim - 1))
        padded = np.pad(x, [(0, 0), *((tap // 2, tap // 2) for tap in taps), (0, 0)])
        windows = sliding_window_view(padded, taps, axes)[(slice(None), *(slice(None, None, stride) for _ in axes))]
        windows = np.moveaxis(windows, x.ndim - 1, -1)
        weights = self.weights[f"{name}.w"]
        out = windows.reshape(len(x), -1, len(weights)) @ weights
        out += self.weights[f"{name}.b"]
        return out.reshape(*windows.shape[: x.ndim - 1], -1)


def _as_matrix(weights: Array) -> Array:
    """A convolution (out, in, *taps) as (taps × in, out); anything else as it is."""
    if weights.ndim < 3:
        return weights
    return np.ascontiguousarray(np.moveaxis(weights, (0, 1), (-1, -2)).reshape(-1, len(weights)))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0, out=x)


def _mean_rows(table: Array, ids: list[Array]) -> Array:
    counts = np.array([len(row) for row in ids])
    starts = np.cumsum(counts) - counts
    return np.asarray(np.add.reduceat(table[np.concatenate(ids)], starts) / counts[:, None].astype(np.float32))


_ONE_PASS = Lock()  # the limit on BLAS threads is the process's: two passes at once would undo each other's


def _in_chunks(forward: Callable[[Array], Array], rows: Array, size: int) -> Array:
    """Unit vectors of the rows. One core a chunk is faster than many cores a product, also on a busy machine."""
    padded = np.pad(rows, [(0, -len(rows) % size), *[(0, 0)] * (rows.ndim - 1)])
    chunks = [padded[start : start + size] for start in range(0, len(padded), size)]
    with _ONE_PASS, _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(min(CORES, len(chunks))) as pool:
        out = np.concatenate(list(pool.map(forward, chunks)))
    return unit(out[: len(rows)])


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
