"""The pocket model: what its towers see, that batches do not matter, and that it knows its emoji."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.numpy import load_file
from threadpoolctl import threadpool_limits

import embark
from cases import slow
from embark.models import MODELS, get_model
from embark.models.pocket import BUCKETS, FRAMES, MELS, WEIGHTS, log_mel, pixels, spectrogram, text_ids
from embark.types import Array, Audio, Content

DATA = Path(embark.__file__).parent / "items" / "pocket"
Embed = Callable[[str, Sequence[Any]], Array]


@pytest.fixture(scope="module")
def embed() -> Embed:
    model = get_model("embark/pocket")
    return lambda kind, values: model.embed([model.prepare([Content(kind, value)], "") for value in values])


@pytest.fixture(scope="module")
def emoji() -> list[dict[str, Any]]:
    columns = ["emoji", "skin_tone", "country", "name_en", "name_ja", "image"]
    rows = pq.read_table(DATA / "emoji.parquet", columns=columns).to_pylist()
    return [row for row in rows if row["skin_tone"] is None]


@pytest.fixture(scope="module")
def speech() -> list[dict[str, Any]]:
    rows = pq.read_table(DATA / "speech.parquet").to_pylist()
    return [row for row in rows if row["language"] == "en"]


def drawing(row: dict[str, Any]) -> Image.Image:
    return Image.open(io.BytesIO(row["image"])).convert("RGBA")


def sound(row: dict[str, Any]) -> Audio:
    return Audio(*soundfile.read(io.BytesIO(row["audio"]), dtype="float32"))


# ── what the towers see ──────────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(st.characters(), max_size=60))
def test_any_text_has_buckets(text: str) -> None:
    ids = text_ids(text)
    assert ids.ndim == 1
    assert len(ids) > 0
    assert ids.min() >= 0
    assert ids.max() < BUCKETS


def test_lone_surrogates_do_not_stop_a_run() -> None:
    assert len(text_ids("\ud83d broken")) > 1


def test_text_ids_by_hand() -> None:
    # crc32 of <ab>, <a, ab, b>, <ab, ab> modulo 2^14
    assert text_ids("Ab!").tolist() == [11676, 15054, 2157, 1649, 8052, 11403]


def test_case_width_and_silent_marks_do_not_count() -> None:
    assert np.array_equal(text_ids("Flag: Côte d’Ivoire"), text_ids("flag CÔTE d Ivoire"))
    assert np.array_equal(text_ids("ＡＢＣ"), text_ids("abc"))
    assert text_ids("  …").size
    assert text_ids("").tolist() == [0]


@given(st.integers(0, 60_000))
def test_log_mel_has_a_row_each_20_ms(samples: int) -> None:
    mel = log_mel(np.sin(np.arange(samples, dtype=np.float32)))
    assert mel.shape == (1 + (max(samples, 512) - 512) // 320, MELS)
    assert mel.dtype == np.float32
    assert mel.min() >= 0
    assert mel.max() == 1


def test_log_mel_finds_the_tone() -> None:
    loudest = [
        log_mel(np.sin(2 * np.pi * hertz * np.arange(16_000) / 16_000)).mean(0).argmax() for hertz in (200, 1000, 4000)
    ]
    assert loudest == sorted(set(loudest))


def test_spectrograms_are_cut_and_filled() -> None:
    tone = np.sin(np.arange(80_000, dtype=np.float32))
    assert spectrogram(Audio(tone, 16_000)).shape == (FRAMES, MELS)
    assert not spectrogram(Audio(tone[:8000], 16_000))[30:].any()


def test_pixels_lay_drawings_on_white() -> None:
    clear = Image.new("RGBA", (64, 64), (255, 0, 0, 0))
    half = Image.new("RGBA", (64, 64), (0, 0, 0, 128))
    assert (pixels(clear) == 255).all()
    assert (pixels(half) == 127).all()
    assert pixels(Image.new("L", (200, 31), 7)).shape == (64, 64, 3)
    assert pixels(clear).dtype == np.uint8


# ── batches do not matter ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["text", *slow("image", "audio", "video")])
def test_a_vector_does_not_depend_on_its_batch(
    kind: str, embed: Embed, emoji: list[dict[str, Any]], speech: list[dict[str, Any]]
) -> None:
    rows = speech[:100] if kind == "audio" else emoji[::19][:100]
    shapes: dict[str, Callable[[int], Any]] = {
        "text": lambda at: rows[at]["name_en"] * (1 + at % 7),
        "image": lambda at: drawing(rows[at]),
        "audio": lambda at: sound(rows[at]),
        "video": lambda at: [drawing(row) for row in rows[at : at + 1 + at % 3]],
    }
    values = [shapes[kind](at) for at in range(24 if kind == "video" else 100)]
    whole = embed(kind, values)
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            for size in (1, 7, 32):
                few = values[: 2 * size]
                parts = [embed(kind, few[at : at + size]) for at in range(0, len(few), size)]
                assert np.array_equal(np.concatenate(parts), whole[: len(few)]), f"batches of {size}, {threads} threads"
        order = np.random.default_rng(0).permutation(len(values))
        assert np.array_equal(embed(kind, [values[at] for at in order]), whole[order])


def test_vectors_are_unit_float32(embed: Embed) -> None:
    vectors = embed("text", ["a", "", "日本語", "a long line " * 50])
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


# ── it knows its emoji ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def names(embed: Embed, emoji: list[dict[str, Any]]) -> Array:
    return embed("text", [row["name_en"] for row in emoji])


@pytest.fixture(scope="module")
def drawings(embed: Embed, emoji: list[dict[str, Any]]) -> Array:
    return embed("image", [drawing(row) for row in emoji])


def recall(queries: Array, documents: Array, wanted: Sequence[int]) -> float:
    return float(((queries @ documents.T).argmax(1) == wanted).mean())


@pytest.mark.slow
def test_names_find_drawings(names: Array, drawings: Array) -> None:
    assert len(names) == 1906
    assert 0.66 < recall(names, drawings, range(1906)) < 0.70


def test_flags_find_their_countries(embed: Embed, emoji: list[dict[str, Any]]) -> None:
    flags = [row for row in emoji if row["country"]]
    assert len(flags) == 262
    names = embed("text", [row["name_en"] for row in flags])
    assert 0.94 < recall(embed("image", [drawing(row) for row in flags]), names, range(262)) < 0.97


@pytest.mark.slow
def test_voices_find_names(
    embed: Embed, names: Array, emoji: list[dict[str, Any]], speech: list[dict[str, Any]]
) -> None:
    places = {row["emoji"]: at for at, row in enumerate(emoji)}
    said = embed("audio", [sound(row) for row in speech])
    assert 0.83 < recall(said, names, [places[row["emoji"]] for row in speech]) < 0.88


@pytest.mark.slow
def test_other_languages_are_understood(embed: Embed, drawings: Array, emoji: list[dict[str, Any]]) -> None:
    assert recall(embed("text", [row["name_ja"] for row in emoji]), drawings, range(1906)) > 0.4


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_card_tells_the_weights() -> None:
    card = MODELS["embark/pocket"]
    assert hashlib.sha256(WEIGHTS.read_bytes()).hexdigest().startswith(card.revision)
    assert len(card.revision) == 12
    assert sum(array.size for array in load_file(WEIGHTS).values()) == card.parameters
