"""Plain functions as an encoder: what they are given, what is asked of them, and the revision that a probe finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark import models
from embark.models.encoder import fingerprint
from embark.types import Array, Audio, Content, EmbarkError, Item, Text


def lengths(values: list[Any]) -> Array:
    return np.array([[len(value), 1.0, 0.0] for value in values])


def colours(images: list[Image.Image]) -> Array:
    return np.stack([np.asarray(image.convert("RGB")).mean((0, 1)) for image in images])


class Weighted:
    """A model with weights, called like a function."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, texts: list[str]) -> Array:
        return self.weight * lengths(texts)


def test_one_function_is_enough() -> None:
    model = models.encoder(text=lengths)
    assert model.card.modalities == ("text",)
    assert model.card.dim == 3
    assert model.card.name == "local/encoder"
    assert model.card.settings["functions"] == {"text": "lengths"}
    out = model.embed([model.prepare([Content("text", text)]) for text in ("a", "abc")])
    assert np.array_equal(out, [[1, 1, 0], [3, 1, 0]])
    assert out.dtype == np.float32


def test_images_make_films() -> None:
    model = models.encoder(text=lengths, image=colours, fusion="sum", similarity="dot", licence="MIT")
    assert model.card.modalities == ("text", "image", "video")
    assert (model.card.fusion, model.card.similarity, model.card.licence) == ("sum", "dot", "MIT")
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("#f00", "#0f0")]
    film, mixed = model.embed(
        [model.prepare([Content("video", frames)]), model.prepare([Content("text", "ab"), Content("image", frames[0])])]
    )
    assert np.allclose(film, [0.5**0.5, 0.5**0.5, 0])
    assert np.allclose(mixed, [2 + 255, 1, 0])


def test_a_video_function_replaces_the_mean_of_frames() -> None:
    model = models.encoder(image=colours, video=lengths)
    frames = [Image.new("RGB", (4, 4))] * 5
    assert model.embed([model.prepare([Content("video", frames)])]).tolist() == [[5, 1, 0]]


def test_sounds_arrive_as_samples() -> None:
    seen: list[Any] = []

    def audio(waves: list[Array]) -> Array:
        seen.extend(waves)
        return lengths(waves)

    model = models.encoder(audio=audio, sample_rate=8000)
    assert all(isinstance(wave, np.ndarray) and wave.dtype == np.float32 and len(wave) == 8000 for wave in seen)
    assert model.embed([model.prepare([Content("audio", Audio(np.zeros(7, np.float32), 8000))])])[0, 0] == 7


def test_other_weights_are_another_revision() -> None:
    one, same, other = (models.encoder(text=Weighted(weight)).card for weight in (1.0, 1.0, 1.001))
    assert one.revision.startswith("probe-")
    assert len(one.revision) == len("probe-") + 12
    assert fingerprint(one) == fingerprint(same)
    assert fingerprint(one) != fingerprint(other)
    assert one.settings["functions"] == {"text": "Weighted"}


def test_a_revision_by_hand_is_kept() -> None:
    assert models.encoder(text=lengths, revision="v2").card.revision == "v2"


def test_settings_of_the_user_are_part_of_the_identity() -> None:
    plain, long = models.encoder(text=lengths).card, models.encoder(text=lengths, settings={"tokens": 512}).card
    assert long.settings["tokens"] == 512
    assert "functions" in long.settings
    assert fingerprint(plain) != fingerprint(long)


def test_nan_is_left_for_the_engine_to_name() -> None:
    model = models.encoder(text=lambda texts: np.full((len(texts), 3), np.nan))
    assert model.card.dim == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "at least one modality"),
        ({"text": "lengths"}, "text='lengths' cannot be called"),
        ({"text": lambda texts: np.zeros(len(texts))}, r"shape \(2,\)"),
        ({"text": lambda texts: np.zeros((1, 4))}, r"shape \(1, 4\)"),
        ({"text": lambda texts: [[1.0], [1.0, 2.0]]}, "returned a list"),
        ({"text": lambda texts: None}, r"shape \(\)|NoneType"),
        ({"text": lengths, "image": lambda images: np.zeros((len(images), 5))}, "text 3, image 5"),
        ({"text": lengths, "dim": 7}, "7 dimensions"),
        ({"text": lengths, "poolign": "mean"}, "no field poolign"),
        ({"text": lengths, "loader": "clip"}, "no field loader"),
    ],
)
def test_mistakes_are_explained(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        models.encoder(**arguments)


# ── re-rankers and generators ────────────────────────────────────────────────────────────────────────────────────────


def shared(pairs: list[tuple[Any, Any]]) -> list[int]:
    return [len(set(query) & set(document)) for query, document in pairs]


def test_a_function_of_pairs_is_a_reranker() -> None:
    model = models.reranker(shared, name="me/shared")
    rendered = model.render(Item((Text("ab"),)), Item((Text("bc"), Text("d"))), "not for a plain function")
    contents = [Content("text", part.text) for part in rendered.parts if isinstance(part, Text)]
    assert model.prepare(contents, rendered.mode) == ("ab", ["bc", "d"])
    assert model.score([("ab", "bc"), ("ab", "xy")]).tolist() == [1, 0]
    assert (model.card.kind, model.card.dim, model.card.stored) == ("reranker", 1, "float32")
    assert model.card.revision.startswith("probe-")
    other = models.reranker(lambda pairs: [-score for score in shared(pairs)], name="me/shared")
    assert other.card.revision != model.card.revision
    assert models.reranker(shared, revision="7").card.revision == "7"


def test_one_number_a_pair() -> None:
    with pytest.raises(EmbarkError, match=r"given 4 pairs and returned an array of shape \(4, 1\)"):
        models.reranker(lambda pairs: np.ones((len(pairs), 1)))


def test_a_function_of_inputs_and_a_prompt_is_a_generator() -> None:
    def write(values: list[Any], prompt: str) -> list[str]:
        return [f"{prompt} {value if isinstance(value, str) else 'seen'}" for value in values]

    model = models.generator(write, name="me/writer")
    rendered = model.render(Item((Text("dogs"),)), "Two")
    contents = [Content("text", part.text) for part in rendered.parts if isinstance(part, Text)]
    asked = [model.prepare(contents), model.prepare([Content("text", "One"), Content("text", "dog")])]
    assert model.generate(asked) == ["Two dogs", "One dog"]
    assert (model.card.kind, model.card.stored, model.card.modalities) == ("generator", "uint8", ("text", "image"))
    assert models.generator(lambda values, _: [""] * len(values)).card.revision != model.card.revision


def test_one_text_an_input() -> None:
    with pytest.raises(EmbarkError, match="one text for each of its 4 inputs"):
        models.generator(lambda values, _: ["alone"])
