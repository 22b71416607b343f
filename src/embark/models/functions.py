"""Plain functions become an encoder in one call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from embark.models.encoder import Encoder, Tower, Towers, frame_mean
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
    found = _probe(Towers(card, towers))
    return Towers(replace(card, dim=_dim(card, found), revision=revision or _revision(found)), towers)


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


def _name(function: Function) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


# ── the probe ────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# Stored vectors are found again by the encoder's revision, and a function has none: its name stays the same when its
# weights change. What it makes of a few fixed inputs does change, so that is its revision, and nobody has to remember
# to count one up. A function whose output differs from run to run should be given a revision by hand.


def _probe(model: Towers) -> dict[Modality, Array]:
    """The vectors of two fixed inputs a modality; a wrong shape is found here and not hours into a run."""
    inputs = _inputs(model.card.sample_rate)
    return {
        kind: model.embed([model.prepare([Content(kind, value)]) for value in inputs[kind]])
        for kind in model.card.modalities
    }


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


def _dim(card: ModelCard, found: Mapping[Modality, Array]) -> int:
    dims = {kind: vectors.shape[1] for kind, vectors in found.items()}
    wanted = card.dim or next(iter(dims.values()))
    if set(dims.values()) != {wanted}:
        told = ", ".join(f"{kind} {dim}" for kind, dim in dims.items())
        raise EmbarkError(
            f"{card.name} should have {wanted} dimensions in every modality, but its functions return: {told}."
        )
    return wanted


def _revision(found: Mapping[Modality, Array]) -> str:
    seen = hashlib.sha256()
    for kind, vectors in found.items():
        seen.update(f"{kind} {vectors.shape} ".encode() + vectors.tobytes())
    return f"probe-{seen.hexdigest()[:12]}"
