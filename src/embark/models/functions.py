"""Plain functions become an encoder, a re-ranker or a generator in one call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import groupby, product
from typing import Any, Literal

import numpy as np

from embark.models.encoder import Encoder, Generator, Reranker, Tower, Towers, frame_mean
from embark.types import MODALITIES, Array, Audio, Content, EmbarkError, Modality, ModelCard

Function = Callable[[list[Any]], Any]


def encoder(
    *,
    text: Function | None = None,
    image: Function | None = None,
    audio: Function | None = None,
    video: Function | None = None,
    name: str = "local/encoder",
    revision: str | None = None,
    fusion: Literal["sum", "unit-sum"] | None = "unit-sum",
    similarity: Literal["cosine", "dot"] = "cosine",
    **card_fields: Any,
) -> Encoder:
    """An encoder of the modalities given; each function takes a list and returns one row of numbers an input.

    The lists hold strings, PIL images (RGB or RGBA), mono float32 waveforms at the card's sample rate, or lists of
    PIL frames. Films need no function of their own where images have one. Further keywords go to the `ModelCard`.
    """
    given = dict(zip(MODALITIES, (text, image, audio, video), strict=True))
    functions = {kind: function for kind, function in given.items() if function is not None}
    _check(functions, card_fields)
    towers = {kind: _tower(kind, function) for kind, function in functions.items()}
    if "image" in towers and "video" not in towers:
        towers["video"] = frame_mean(towers["image"])
    facts: dict[str, Any] = {**card_fields, "fusion": fusion, "similarity": similarity}
    facts["settings"] = {**facts.get("settings", {}), "functions": {kind: _name(f) for kind, f in functions.items()}}
    card = ModelCard(name, revision or "", "functions", tuple(towers), **facts)
    found = probe(Towers(card, towers))
    return Towers(replace(card, dim=dim_of(card, found), revision=revision or revision_of(found)), towers)


def reranker(
    score: Callable[[list[tuple[Any, Any]]], Any],
    *,
    modalities: tuple[Modality, ...] = ("text",),
    name: str = "local/reranker",
    revision: str | None = None,
    **card_fields: Any,
) -> Reranker:
    """A re-ranker from a function that takes (query, document) pairs and returns one number a pair, higher is better.

    Either half is what the item holds (a string, a PIL image…), or a list of that where it has several parts.
    """
    facts = {"dim": 1, "stored": "float32", "settings": {"function": _name(score)}, **card_fields}
    card = ModelCard(name, revision or "", "functions", modalities, kind="reranker", **facts)
    made = _ByPairs(card, score)
    inputs = [_plain(Content(kind, value)) for kind, value in _probes(card)]
    seen = made.score(list(product(inputs, inputs))).tobytes()
    return _ByPairs(replace(card, revision=revision or _probed(seen)), score)


def generator(
    write: Callable[[list[Any], str], Sequence[str]],
    *,
    modalities: tuple[Modality, ...] = ("text", "image"),
    name: str = "local/generator",
    revision: str | None = None,
    **card_fields: Any,
) -> Generator:
    """A generator from a function that takes a list of inputs and a prompt, and returns one text an input.

    An input is what the item holds (a string, a PIL image…), or a list of that where it has several parts.
    """
    facts = {"dim": 1, "stored": "uint8", "settings": {"function": _name(write)}, **card_fields}
    card = ModelCard(name, revision or "", "functions", modalities, kind="generator", **facts)
    made, asked = _ByPrompt(card, write), Content("text", "Describe this.")
    seen = "\0".join(made.generate([made.prepare([asked, Content(*each)]) for each in _probes(card)])).encode()
    return _ByPrompt(replace(card, revision=revision or _probed(seen)), write)


class _ByPairs(Reranker):
    def __init__(self, card: ModelCard, function: Callable[[list[tuple[Any, Any]]], Any]) -> None:
        self.card, self.function = card, function

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[Any, Any]:
        query, document = super().prepare(contents, mode)
        return _plain(*query), _plain(*document)

    def score(self, batch: Sequence[tuple[Any, Any]]) -> Array:
        out = np.asarray(self.function(list(batch)), np.float32)
        if out.shape != (len(batch),):
            raise EmbarkError(
                f"{self.card.name} was given {len(batch)} pairs and returned an array of shape {out.shape}; "
                "expected one number a pair."
            )
        return out


class _ByPrompt(Generator):
    def __init__(self, card: ModelCard, function: Callable[[list[Any], str], Sequence[str]]) -> None:
        self.card, self.function = card, function

    def prepare(self, contents: Sequence[Content]) -> tuple[str, Any]:
        return contents[0].value, _plain(*contents[1:])

    def generate(self, batch: Sequence[tuple[str, Any]]) -> list[str]:
        out: list[str] = []
        for prompt, group in groupby(batch, key=lambda each: each[0]):
            values = [value for _, value in group]
            texts = list(self.function(values, prompt))
            if len(texts) != len(values) or not all(isinstance(text, str) for text in texts):
                raise EmbarkError(f"{self.card.name} must return one text for each of its {len(values)} inputs.")
            out += texts
        return out


def _plain(*contents: Content) -> Any:
    """The value of an item with one part, the list of values of one with several."""
    values = [content.value.samples if content.kind == "audio" else content.value for content in contents]
    return values[0] if len(values) == 1 else values


def _check(functions: Mapping[Modality, Function], card_fields: Mapping[str, Any]) -> None:
    if not functions:
        raise EmbarkError("An encoder needs a function for at least one modality, such as encoder(text=my_function).")
    for kind, function in functions.items():
        if not callable(function):
            raise EmbarkError(
                f"{kind}={function!r} cannot be called; give a function that takes a list of inputs and returns "
                "an array of (inputs, dimension)."
            )
    known = {field.name for field in fields(ModelCard)} - {"loader", "modalities"}
    if unknown := sorted(set(card_fields) - known):
        raise EmbarkError(f"An encoder has no field {' or '.join(unknown)}; known are {', '.join(sorted(known))}.")


def _tower(kind: Modality, function: Function) -> Tower:
    def embed(values: list[Any]) -> Array:
        out = function(values)
        try:
            return np.asarray(out, np.float32)
        except (ValueError, TypeError) as error:
            raise EmbarkError(
                f"{_name(function)} was given {len(values)} {kind} inputs and returned a {type(out).__name__} that is "
                f"no array of ({len(values)}, dimension) numbers: {error}"
            ) from error

    return Tower(embed, _samples) if kind == "audio" else Tower(embed)


def _samples(audio: Audio) -> Array:
    return audio.samples


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


# ── the probe ────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# Stored vectors are found again by the encoder's revision, and a function has none: its name stays the same when its
# weights change. What it makes of a few fixed inputs does change, so that is its revision, and nobody has to remember
# to count one up. A function whose output differs from run to run should be given a revision by hand.


def probe(model: Encoder) -> dict[Modality, Array]:
    """The vectors of two fixed inputs a modality; a wrong shape is found here and not hours into a run."""
    inputs = _inputs(model.card.sample_rate)
    return {
        kind: np.asarray(model.embed([model.prepare([Content(kind, value)]) for value in inputs[kind]]))
        for kind in model.card.modalities
    }


def _probes(card: ModelCard) -> list[tuple[Modality, Any]]:
    inputs = _inputs(card.sample_rate)
    return [(kind, value) for kind in card.modalities for value in inputs[kind]]


def _inputs(rate: int) -> dict[Modality, list[Any]]:
    from PIL import Image

    ramp = np.arange(64, dtype=np.uint8)
    across, down = np.meshgrid(ramp, ramp)
    drawn = [
        np.stack([across * 4, down * 4, across ^ down], -1),
        np.stack([across & down, across | down, across * down], -1),
    ]
    images = [Image.fromarray(pixels) for pixels in drawn]
    time = np.arange(rate) / rate
    tones = [np.sin(440 * 2 * np.pi * time), np.sin(2000 * 2 * np.pi * time**2) * (1 - time)]
    return {
        "text": ["a red circle on a white page", "Zwei Hunde spielen im Schnee"],
        "image": images,
        "audio": [Audio((tone / 2).astype(np.float32), rate) for tone in tones],
        "video": [images, images[::-1] + images],
    }


def dim_of(card: ModelCard, found: Mapping[Modality, Array]) -> int:
    """The dimension of probed vectors; one for all modalities, and the card's where that says one."""
    dims = {kind: vectors.shape[1] for kind, vectors in found.items()}
    wanted = card.dim or next(iter(dims.values()))
    if set(dims.values()) != {wanted}:
        told = ", ".join(f"{kind} {dim}" for kind, dim in dims.items())
        raise EmbarkError(
            f"{card.name} should have {wanted} dimensions in every modality, but its functions return: {told}."
        )
    return wanted


def revision_of(found: Mapping[Modality, Array]) -> str:
    """A name for probed vectors."""
    return _probed(b"".join(f"{kind} {each.shape} ".encode() + each.tobytes() for kind, each in found.items()))


def _probed(seen: bytes) -> str:
    return f"probe-{hashlib.sha256(seen).hexdigest()[:12]}"
