"""Plain functions as an encoder: what they are given, what is asked of them, and the revision that a probe finds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark import models
from embark.items.decoding import on_white
from embark.protocol import vector_space
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
    assert model.card.options["functions"] == {"text": "lengths"}
    out = model.embed([model.prepare([Content("text", text)], "") for text in ("a", "abc")])
    assert np.array_equal(out, [[1, 1, 0], [3, 1, 0]])
    assert out.dtype == np.float32


def test_images_make_films() -> None:
    model = models.encoder(text=lengths, image=colours, fusion="sum", similarity="dot", license="MIT")
    assert model.card.modalities == ("text", "image", "video")
    assert (model.card.fusion, model.card.similarity, model.card.license) == ("sum", "dot", "MIT")
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("#f00", "#0f0")]
    film, mixed = model.embed(
        [
            model.prepare([Content("video", frames)], ""),
            model.prepare([Content("text", "ab"), Content("image", frames[0])], ""),
        ]
    )
    assert np.allclose(film, [0.5**0.5, 0.5**0.5, 0])
    assert np.allclose(mixed, [2 + 255, 1, 0])


def test_a_video_function_replaces_the_mean_of_frames() -> None:
    model = models.encoder(image=colours, video=lengths)
    frames = [Image.new("RGB", (4, 4))] * 5
    assert model.embed([model.prepare([Content("video", frames)], "")]).tolist() == [[5, 1, 0]]


def test_sounds_arrive_as_samples() -> None:
    seen: list[Any] = []

    def audio(waves: list[Array]) -> Array:
        seen.extend(waves)
        return lengths(waves)

    model = models.encoder(audio=audio, sample_rate=8000)
    assert all(isinstance(wave, np.ndarray) and wave.dtype == np.float32 and wave.ndim == 1 for wave in seen)
    assert max(map(len, seen)) == 40 * 8000
    assert model.embed([model.prepare([Content("audio", Audio(np.zeros(7, np.float32), 8000))], "")])[0, 0] == 7


def test_other_weights_are_another_revision() -> None:
    one, same, other = (models.encoder(text=Weighted(weight)).card for weight in (1.0, 1.0, 1.001))
    assert one.revision.startswith("probe-")
    assert len(one.revision) == len("probe-") + 12
    assert vector_space(one) == vector_space(same)
    assert vector_space(one) != vector_space(other)
    assert one.options["functions"] == {"text": "Weighted"}


class Through:
    """A function with a rule for its inputs before it."""

    def __init__(self, rule: Callable[[Any], Any], embed: Callable[[list[Any]], Array]) -> None:
        self.rule, self.embed = rule, embed

    def __call__(self, values: list[Any]) -> Array:
        return self.embed([self.rule(value) for value in values])


def small(images: list[Image.Image]) -> Array:
    return np.stack([np.asarray(image.convert("RGB").resize((4, 4)), np.float32).ravel() for image in images])


def square(image: Image.Image) -> Image.Image:
    return image.crop((0, 0, min(image.size), min(image.size)))


def as_it_is(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("kind", "embed", "one", "other"),
    [
        ("text", lengths, lambda text: text[:60], lambda text: text[:2000]),
        ("text", lengths, lambda text: text[:2000], as_it_is),
        ("text", lengths, lambda text: text.encode("ascii", "ignore"), lambda text: text.encode("latin-1", "ignore")),
        ("text", lengths, as_it_is, lambda text: "".join(letter for letter in text if letter < "\U00010000")),
        ("image", small, as_it_is, square),
        ("image", colours, as_it_is, on_white),
        ("image", small, as_it_is, lambda image: image.resize([max(side, 8) for side in image.size])),
        ("image", small, as_it_is, lambda image: image if max(image.size) < 20 * min(image.size) else square(image)),
        ("audio", lengths, lambda wave: wave[: 10 * 16_000], lambda wave: wave[: 30 * 16_000]),
        ("audio", lengths, as_it_is, lambda wave: np.pad(wave, (0, max(0, 8_000 - len(wave))))),
        ("video", lengths, lambda film: film[:4], lambda film: film[:6]),
    ],
)  # fmt: skip
def test_another_rule_for_unusual_inputs_is_another_revision(kind: str, embed: Any, one: Any, other: Any) -> None:
    first, again, second = (models.encoder(**{kind: Through(rule, embed)}).card.revision for rule in (one, one, other))  # type: ignore[arg-type]
    assert first == again
    assert first != second


def test_films_have_no_more_frames_than_are_decoded() -> None:
    seen: list[int] = []

    def video(films: list[list[Image.Image]]) -> Array:
        seen.extend(len(film) for film in films)
        return np.array([[np.asarray(film).mean(), 1] for film in films])  # frames of one film have one size

    models.encoder(video=video, frames=32)
    assert max(seen) == 32


def test_an_input_may_be_refused() -> None:
    def short(text: str) -> str:
        if len(text) > 512:
            raise RuntimeError("the sequence is too long")
        return text

    def pixels(images: list[Image.Image]) -> Array:
        return np.stack([np.asarray(image) for image in images]).mean((1, 2))  # four numbers for RGBA

    strict, same, lax = (
        models.encoder(text=Through(rule, lengths), image=pixels).card for rule in (short, short, as_it_is)
    )
    assert strict.dim == 3
    assert strict.revision == same.revision
    assert strict.revision != lax.revision
    with pytest.raises(ZeroDivisionError):
        models.encoder(text=lambda texts: 1 / 0)


class Fragile:
    """A model that one long text breaks for good, as an index out of range does on a GPU."""

    broken = False

    def __call__(self, texts: list[str]) -> Array:
        self.broken = self.broken or any(len(text) > 512 for text in texts)
        if self.broken:
            raise RuntimeError("device-side assert triggered")
        return lengths(texts)


def test_what_an_unusual_input_breaks_is_explained() -> None:
    with pytest.raises(EmbarkError, match=r"failed on an unusual input \(device-side assert.*If you give a revision"):
        models.encoder(text=Fragile())
    model = models.encoder(text=Fragile(), revision="1")
    assert model.embed([model.prepare([Content("text", "ab")], "")]).tolist() == [[2, 1, 0]]


SCRIPT = """
import embark
import numpy as np

MARKS = {"a", "b", "c", "d"}

def text(texts):
    return [[len(text), sum(letter in MARKS for letter in text)] for text in texts]

def image(images):
    return [[image.width, np.asarray(image).mean()] for image in images]

models = [
    embark.encoder(text=text, image=image, audio=lambda waves: [[wave.sum(), 1] for wave in waves]),
    embark.reranker(lambda pairs: [len(query) - len(document) for query, document in pairs]),
    embark.generator(lambda values, prompt: [prompt] * len(values)),
]
print(*(model.card.revision for model in models))
"""


def test_a_revision_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    first, second = (
        subprocess.run(
            [sys.executable, "script.py"], cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed},
            check=True, capture_output=True, text=True, timeout=60,
        ).stdout.split()
        for seed in ("1", "2")
    )  # fmt: skip
    assert first == second
    assert len(set(first)) == 3
    assert all(revision.startswith("probe-") for revision in first)


def test_a_change_that_no_fixed_input_shows_needs_a_revision() -> None:
    def cut(limit: int, revision: str | None = None) -> str:
        rule = Through(lambda text: text[:limit], lengths)
        return models.encoder(text=rule, revision=revision).card.revision

    assert cut(7_000) != cut(7_001)
    assert cut(9_000) == cut(9_001)  # the longest fixed text has fewer characters
    assert cut(9_000, "1") != cut(9_001, "2")


def test_how_a_function_is_written_does_not_matter() -> None:
    def doubled(texts: list[str]) -> Array:
        return 2 * lengths(texts)

    written = {models.encoder(text=function).card.revision for function in (doubled, partial(doubled), Weighted(2.0))}
    assert len(written) == 1


def test_tensors_come_off_their_graph() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.ones(3, requires_grad=True)

    def whole(texts: list[str]) -> Any:
        return torch.tensor(lengths(texts), dtype=torch.float32) * weight

    for function in (whole, lambda texts: list(whole(texts)), lambda texts: whole(texts).bfloat16()):
        model = models.encoder(text=function)
        assert model.embed([model.prepare([Content("text", "ab")], "")]).tolist() == [[2, 1, 0]]
    judge = models.reranker(lambda pairs: whole([document for _, document in pairs])[:, 0])
    assert judge.score([("a", "bc")]).tolist() == [2]
    with pytest.raises(EmbarkError, match=r"returned a list that is not an array of \(2, dimension\) numbers"):
        models.encoder(text=lambda texts: [list(row) for row in whole(texts)])


def test_a_revision_by_hand_is_kept() -> None:
    assert models.encoder(text=lengths, revision="v2").card.revision == "v2"


def test_settings_of_the_user_are_part_of_the_identity() -> None:
    plain, long = models.encoder(text=lengths).card, models.encoder(text=lengths, options={"tokens": 512}).card
    assert long.options["tokens"] == 512
    assert "functions" in long.options
    assert vector_space(plain) != vector_space(long)


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
        ({"text": lambda texts: np.ones((len(texts), 4), complex)}, "numbers: they are complex"),
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


def test_longer_texts_tell_rerankers_and_generators_apart() -> None:
    class Cut:
        def __init__(self, limit: int) -> None:
            self.limit = limit

        def __call__(self, values: list[Any], prompt: str = "") -> list[Any]:
            if prompt:
                return [str(len(value[: self.limit])) for value in values]
            return [len(document[: self.limit]) for _, document in values]

    for make in (models.reranker, partial(models.generator, modalities=("text",))):
        short, same, long = (make(Cut(limit)).card.revision for limit in (100, 100, 3000))
        assert short == same
        assert short != long

    def refuses(pairs: list[tuple[str, str]]) -> list[int]:
        return [len(document) // (len(query) < 100) for query, document in pairs]

    assert models.reranker(refuses).card.revision.startswith("probe-")


def test_one_number_a_pair() -> None:
    with pytest.raises(EmbarkError, match=r"given 4 pairs and returned an array of shape \(4, 1\)"):
        models.reranker(lambda pairs: np.ones((len(pairs), 1)))


def test_a_function_of_inputs_and_a_prompt_is_a_generator() -> None:
    def write(values: list[Any], prompt: str) -> list[str]:
        return [f"{prompt} {value if isinstance(value, str) else 'seen'}" for value in values]

    model = models.generator(write, name="me/writer")
    rendered = model.render(Item((Text("dogs"),)), "Two")
    contents = [Content("text", part.text) for part in rendered.parts if isinstance(part, Text)]
    asked = [model.prepare(contents, ""), model.prepare([Content("text", "One"), Content("text", "dog")], "")]
    assert model.generate(asked) == ["Two dogs", "One dog"]
    assert (model.card.kind, model.card.stored, model.card.modalities) == ("generator", "uint8", ("text", "image"))
    assert models.generator(lambda values, _: [""] * len(values)).card.revision != model.card.revision


def test_one_text_an_input() -> None:
    with pytest.raises(EmbarkError, match="one text for each of its 4 inputs"):
        models.generator(lambda values, _: ["alone"])
