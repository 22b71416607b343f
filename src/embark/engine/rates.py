"""How long GPUs take for an item: an estimate by a model's size, from what was measured on one of them.

A forward pass takes 2 × parameters × tokens operations, at a share of the GPU's peak that was measured. The CPU cores
beside a GPU prepare pictures meanwhile; whichever takes longer counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from embark.catalogue import Catalogue


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU: its dense bfloat16 peak in TFLOP/s, and its memory in GB, as its maker states them."""

    name: str
    teraflops: float
    memory: float


@dataclass(frozen=True)
class Measured:
    """The forward pass of a model with random weights in bfloat16, its inputs on the GPU."""

    model: str
    parameters: float
    tokens: int  # of an item
    rate: float  # items a second
    gpu: str = "h200"

    @property
    def utilization(self) -> float:
        """The share of the GPU's peak that it reached."""
        return 2 * self.parameters * self.tokens * self.rate / (GPUS[self.gpu].teraflops * 1e12)


@dataclass(frozen=True)
class Assumption:
    """What an estimate takes for granted: the share of a GPU's peak, tokens by part of an item, rates of pictures."""

    utilization: float
    tokens: Mapping[str, int]
    prepared: int  # pictures a second, by the cores beside a GPU
    on_gpu: bool = False  # pictures are decoded there where that is quicker


ROWS = (Gpu("a100", 312, 80), Gpu("h100", 989, 80), Gpu("h200", 989, 141))
GPUS: Catalogue[Gpu] = Catalogue(
    "kind of GPU", ROWS, lambda gpu: gpu.name, f"Known are {', '.join(gpu.name for gpu in ROWS)}."
)

# On one H200 with 16 CPU cores (benchmarks/pipeline.py): pictures of 224 pixels, captions of 6 to 14 words.
MEASURED = (
    Measured("CLIP ViT-B/32, pictures", 88e6, 50, 29_100),
    Measured("CLIP ViT-B/16, pictures", 86e6, 197, 7_000),
    Measured("CLIP ViT-L/14, pictures", 304e6, 257, 2_400),
    Measured("CLIP ViT-B/32, captions", 63e6, 14, 130_000),
)
SHARES = sorted(measured.utilization for measured in MEASURED)
CORES = 16  # beside each GPU
PREPARED = 3_200  # pictures a second that they decode, resize and scale
PREPARED_FROM_FILES = 1_300  # the same from JPEGs of 640 × 480 pixels to committed vectors (docs/performance.md)
DECODED = 17_800  # JPEGs of 110 KB a second that the GPU decodes, while it does nothing else
FRAMES = 8  # of a film, as MMEB's models see it

# Rows do not state lengths, so tokens are assumed. A picture is 50 tokens to a ViT-B/32 and 257 to a ViT-L/14; language
# models that see pictures in their own size take hundreds to thousands.
FASTEST = Assumption(
    SHARES[-1], {"text": 8, "passage": 64, "image": 50, "audio": 100, "video": FRAMES * 50}, PREPARED, on_gpu=True
)
TYPICAL = Assumption(
    math.sqrt(SHARES[0] * SHARES[-1]),
    {"text": 32, "passage": 256, "image": 256, "audio": 250, "video": FRAMES * 256},
    PREPARED,
)
SLOWEST = Assumption(
    SHARES[0],
    {"text": 128, "passage": 512, "image": 1024, "audio": 1500, "video": FRAMES * 1024},
    PREPARED_FROM_FILES,
)

WEIGHT = 2  # bytes of a parameter in bfloat16
ROOM = 0.8  # share of a GPU's memory for weights: the rest is for batches


def seconds_per_item(parts: Iterable[str], parameters: float, gpu: Gpu, assumption: Assumption = TYPICAL) -> float:
    """Seconds that one copy of a model takes for an item with these parts, on one GPU and the cores beside it."""
    parts = tuple(parts)
    tokens = sum(assumption.tokens[part] for part in parts)
    forward = 2 * parameters * tokens / (assumption.utilization * gpu.teraflops * 1e12)
    pictures = parts.count("image") + FRAMES * parts.count("video")
    on_cores = max(forward, pictures / assumption.prepared)
    return min(on_cores, forward + pictures / DECODED) if assumption.on_gpu else on_cores


def gpus_per_copy(parameters: float, gpu: Gpu) -> int:
    """How many GPUs hold one copy of a model in bfloat16."""
    return max(1, math.ceil(WEIGHT * parameters / (ROOM * gpu.memory * 1e9)))
