"""The two baselines: deterministic, batch-proof, of unit length, and at chance where they should be."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import embark
from embark.models import get_model
from embark.types import Array, Audio, Content, Modality

DATA = Path(embark.__file__).parent / "items" / "pocket"
RANDOM, HANDMADE = get_model("embark/random"), get_model("embark/handmade")
BOTH = pytest.mark.parametrize("model", [RANDOM, HANDMADE], ids=["random", "handmade"])


def embed(model: Any, kind: Modality, values: Sequence[Any]) -> Array:
    return np.asarray(model.embed([model.prepare([Content(kind, value)], "") for value in values]))


def picture(seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (40 + seed, 64, 3)).astype(np.uint8))


def samples(seed: int) -> Audio:
    return Audio(np.random.default_rng(seed).standard_normal(300 + 900 * seed).astype(np.float32), 16_000)


MAKERS: dict[Modality, Callable[[int], Any]] = {
    "text": lambda seed: f"word{seed} and some more {seed % 5} words " * (seed % 4 + 1),
    "image": picture,
    "audio": samples,
    "video": lambda seed: [picture(seed + at) for at in range(1 + seed % 3)],
}


@BOTH
@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_vector_does_not_depend_on_its_batch(model: Any, kind: Modality) -> None:
    values = [MAKERS[kind](seed) for seed in range(50)]
    whole = embed(model, kind, values)
    assert whole.shape == (50, 256)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    for size in (1, 7, 32):
        parts = [embed(model, kind, values[at : at + size]) for at in range(0, 50, size)]
        assert np.array_equal(np.concatenate(parts), whole), f"in batches of {size}"
    order = np.random.default_rng(0).permutation(50)
    assert np.array_equal(embed(model, kind, [values[at] for at in order]), whole[order])


@BOTH
@given(text=st.text(max_size=40))
def test_any_text_has_one_unit_vector(model: Any, text: str) -> None:
    first, again = embed(model, "text", [text, text])
    assert np.array_equal(first, again)
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-6)


@given(st.lists(st.text(max_size=10), min_size=2, max_size=10, unique=True))
def test_random_tells_all_texts_apart(texts: list[str]) -> None:
    cosines = embed(RANDOM, "text", texts) @ embed(RANDOM, "text", texts).T
    assert np.abs(cosines - np.eye(len(texts))).max() < 0.5  # eight standard deviations


def test_random_is_the_same_everywhere() -> None:
    raw = hashlib.shake_128(b"text" + (6).to_bytes(8, "little") + b"embark").digest(1024)
    uniform = [(int.from_bytes(raw[at : at + 4], "little") + 0.5) / 2**32 for at in range(0, 1024, 4)]
    pairs = [(math.sqrt(-2 * math.log(u)), 2 * math.pi * v) for u, v in zip(uniform[:128], uniform[128:], strict=True)]
    normal = [r * math.cos(a) for r, a in pairs] + [r * math.sin(a) for r, a in pairs]
    assert embed(RANDOM, "text", ["embark"])[0] == pytest.approx(np.array(normal) / math.hypot(*normal), abs=1e-6)


def test_random_is_gaussian() -> None:
    vectors = embed(RANDOM, "text", [str(at) for at in range(2000)])
    assert abs(vectors.mean()) < 1e-3
    assert vectors.std() == pytest.approx(1 / 16, rel=1e-3)
    assert ((vectors * 16) ** 4).mean() == pytest.approx(3, rel=0.02)  # tails of a normal distribution


def test_random_sees_content_and_not_objects() -> None:
    assert np.array_equal(embed(RANDOM, "image", [picture(1)]), embed(RANDOM, "image", [picture(1).copy()]))
    assert not np.array_equal(*embed(RANDOM, "image", [picture(1), picture(1).convert("RGBA")]))
    flat = [Image.new("RGB", size) for size in ((2, 8), (8, 2))]  # the same bytes in another shape
    assert not np.array_equal(*embed(RANDOM, "image", flat))


def test_random_is_at_chance() -> None:
    names = [f"thing {at}" for at in range(300)]
    cosines = embed(RANDOM, "text", names) @ embed(RANDOM, "image", [picture(at) for at in range(300)]).T
    assert (cosines.argmax(1) == np.arange(300)).mean() < 0.03


def test_mixed_items_add_unit_vectors() -> None:
    parts = [Content("text", "a cat"), Content("image", picture(3))]
    mixed = RANDOM.embed([RANDOM.prepare(parts, "")])[0]
    alone = embed(RANDOM, "text", ["a cat"])[0] + embed(RANDOM, "image", [picture(3)])[0]
    assert np.allclose(mixed, alone, atol=1e-6)


def test_handmade_knows_like_from_unlike() -> None:
    near, far, query = embed(HANDMADE, "text", ["grinning cats", "stormy ocean", "grinning cat"])
    assert query @ near > 0.6 > 0.3 > query @ far
    red, dark_red, striped = (Image.new("RGB", (64, 64), colour) for colour in ("#f00", "#d00", "#00f"))
    striped.paste("white", (0, 0, 64, 20))
    images = embed(HANDMADE, "image", [red, dark_red, striped])
    assert images[0] @ images[1] > images[0] @ images[2] + 0.2
    time = np.arange(16_000, dtype=np.float32) / 16_000
    low, lower, high = embed(HANDMADE, "audio", [Audio(np.sin(2 * np.pi * f * time), 16_000) for f in (300, 290, 5000)])
    assert low @ lower > low @ high + 0.2


def test_handmade_finds_emoji_of_the_same_group() -> None:
    rows = pq.read_table(DATA / "emoji.parquet", columns=["group", "skin_tone", "image"]).to_pylist()
    rows = [row for row in rows if row["skin_tone"] is None][::3]
    vectors = embed(HANDMADE, "image", [Image.open(io.BytesIO(row["image"])).convert("RGBA") for row in rows])
    groups = np.array([row["group"] for row in rows])
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    assert (groups[cosines.argmax(1)] == groups).mean() > 0.5  # the largest group holds a fifth


@pytest.mark.parametrize(("across", "down", "orientation"), [(1, 0, 0), (1, 1, 2), (0, 1, 4), (1, -1, 6), (-1, 0, 0)])
def test_handmade_edges_of_axes_and_diagonals_have_one_orientation(across: int, down: int, orientation: int) -> None:
    """Whatever the processor rounds: drawings are full of such edges."""
    ramp = 100 + down * np.arange(64)[:, None] + across * np.arange(64)
    [vector] = embed(HANDMADE, "image", [Image.fromarray(np.stack([ramp, ramp + 1, ramp], -1).astype(np.uint8))])
    edges = vector[64:192].reshape(16, 8)  # cells × orientations
    assert (edges > 0).sum(axis=0).tolist() == [16 * (number == orientation) for number in range(8)]
