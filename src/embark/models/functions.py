"""Plain functions become an encoder, a re-ranker or a generator in one call."""

from __future__ import annotations

import dis
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from itertools import groupby, product
from types import CodeType, FunctionType
from typing import Any, Literal

import numpy as np

from embark.models.device import to_numpy
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
    facts["options"] = {**facts.get("options", {}), "functions": {kind: _name(f) for kind, f in functions.items()}}
    card = ModelCard(name, revision or "", "functions", tuple(towers), **facts)
    found = probe(Towers(card, towers))
    revision = revision or revision_of(found, *functions.values())
    return Towers(replace(card, dim=dim_of(card, found), revision=revision), towers)


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
    facts = {"dim": 1, "stored": "float32", "options": {"function": _name(score)}, **card_fields}
    card = ModelCard(name, revision or "", "functions", modalities, kind="reranker", **facts)
    made = _ByPairs(card, score)
    usual, odd = ([_plain(content) for content in contents] for contents in _probes(card))
    pairs = [pair for each in odd for pair in ((usual[0], each), (each, usual[0]))]
    first, others = _tried(card, made.score, list(product(usual, usual)), pairs)
    seen = b"".join([first.tobytes(), *(REFUSED if one is None else one.tobytes() for one in others)])
    return _ByPairs(replace(card, revision=revision or _probed(seen, score)), score)


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
    facts = {"dim": 1, "stored": "uint8", "options": {"function": _name(write)}, **card_fields}
    card = ModelCard(name, revision or "", "functions", modalities, kind="generator", **facts)
    made, asked = _ByPrompt(card, write), Content("text", "Describe this.")
    usual, odd = ([made.prepare([asked, content]) for content in contents] for contents in _probes(card))
    first, others = _tried(card, made.generate, usual, odd)
    seen = [*(text.encode() for text in first), *(REFUSED if one is None else one[0].encode() for one in others)]
    return _ByPrompt(replace(card, revision=revision or _probed(b"\0".join(seen), write)), write)


class _ByPairs(Reranker):
    def __init__(self, card: ModelCard, function: Callable[[list[tuple[Any, Any]]], Any]) -> None:
        self.card, self.function = card, function

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[Any, Any]:
        query, document = super().prepare(contents, mode)
        return _plain(*query), _plain(*document)

    def score(self, batch: Sequence[tuple[Any, Any]]) -> Array:
        out = _numbers(self.function, list(batch), "pairs", "one number a pair")
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
        return _numbers(function, values, f"{kind} inputs", f"an array of ({len(values)}, dimension) numbers")

    return Tower(embed, _samples) if kind == "audio" else Tower(embed)


def _numbers(function: Function, values: list[Any], inputs: str, wanted: str) -> Array:
    out = function(values)
    try:
        if hasattr(out, "detach"):  # a tensor: it may have a gradient, lie on another device or hold bfloat16
            return to_numpy(out)
        if isinstance(out, (list, tuple)):
            out = [to_numpy(row) if hasattr(row, "detach") else row for row in out]
        return np.asarray(out, np.float32)
    except (ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise EmbarkError(
            f"{_name(function)} was given {len(values)} {inputs} and returned a {type(out).__name__} that is "
            f"not {wanted}: {error}"
        ) from error


def _samples(audio: Audio) -> Array:
    return audio.samples


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


# ── the probe ────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# Stored vectors are found again by the encoder's revision, and a function has none: its name stays the same when its
# weights change. What it makes of fixed inputs and how it is written do change, so that is its revision, and nobody has
# to remember to count one up. The usual inputs find weights; the odd ones find where a function cuts, crops or pads.
# A function whose output differs from run to run should be given a revision by hand.

REFUSED = b"refused"


def probe(model: Encoder) -> dict[Modality, Array]:
    """The vectors of fixed inputs of each modality; a wrong shape is found here and not hours into a run.

    NaN stands for odd inputs that the model refused. A model that has a revision is not asked for odd ones.
    """
    usual, odd = _usual(model.card), _odd(model.card)
    found: dict[Modality, Array] = {}
    for kind in model.card.modalities:
        first, others = _tried(model.card, partial(_embed, model, kind), usual[kind], odd[kind])
        none = np.full_like(first[:1], np.nan)
        rows = [none if one is None or one.shape != none.shape else one for one in others]
        found[kind] = np.concatenate([first, *rows])
    return found


def _embed(model: Encoder, kind: Modality, values: Sequence[Any]) -> Array:
    return np.asarray(model.embed([model.prepare([Content(kind, value)]) for value in values]))


def _probes(card: ModelCard) -> tuple[list[Content], list[Content]]:
    usual, odd = (
        [Content(kind, value) for kind in card.modalities for value in inputs[kind]]
        for inputs in (_usual(card), _odd(card))
    )
    return usual, odd


def _tried(
    card: ModelCard, call: Callable[[Sequence[Any]], Any], usual: Sequence[Any], odd: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """What comes of the usual inputs together, and of each odd one alone: None where it was refused."""
    first, others, refusal = call(usual), [], None
    for each in () if card.revision else odd:
        try:
            others.append(call([each]))
        except Exception as error:  # whatever it is: nobody has to take every input
            others.append(None)
            refusal = error
    if refusal is not None:
        try:
            call(usual)
        except Exception as error:  # such as CUDA, where one text too long ends all work on the device
            raise EmbarkError(
                f"{card.name} failed on an unusual input ({refusal}), and on usual ones after that ({error}). "
                "Given a revision by hand, it is asked for usual ones only."
            ) from error
    return first, others


def _usual(card: ModelCard) -> dict[Modality, list[Any]]:
    from PIL import Image

    ramp = np.arange(64, dtype=np.uint8)
    across, down = np.meshgrid(ramp, ramp)
    drawn = [
        np.stack([across * 4, down * 4, across ^ down], -1),
        np.stack([across & down, across | down, across * down], -1),
    ]
    images = [Image.fromarray(pixels) for pixels in drawn]
    time = np.arange(card.sample_rate) / card.sample_rate
    tones = [np.sin(440 * 2 * np.pi * time), np.sin(2000 * 2 * np.pi * time**2) * (1 - time)]
    return {
        "text": ["a red circle on a white page", "Zwei Hunde spielen im Schnee"],
        "image": images,
        "audio": [Audio((tone / 2).astype(np.float32), card.sample_rate) for tone in tones],
        "video": [images, images[::-1] + images],
    }


def _odd(card: ModelCard) -> dict[Modality, list[Any]]:
    """Long, large, tiny, narrow and transparent inputs, nowhere the same; all of them as `data.media` decodes them."""
    words = ["naïve", "CAFÉ,", "(x_1 + y²)", "Übergröße!", "“so”…", "ёлка", "नमस्ते", "مرحبا", "👩‍🚀🇯🇵", "\t—\n"]
    text = " ".join(f"{words[at % len(words)]} {at * at} {chr(0x4E00 + at)}" for at in range(500))
    large = _drawn(640, 427)
    time = np.arange(40 * card.sample_rate, dtype=np.int64)
    sweep = ((time * time // 3 % 65_521 - 32_760) / 65_521).astype(np.float32)  # in whole numbers: the same everywhere
    film = [large.crop((at, at, at + 160, at + 90)) for at in range(card.frames)]  # more frames are never decoded
    return {
        "text": [text],
        "image": [large, _drawn(3, 2), _drawn(24, 800), _drawn(96, 64, layers=4)],
        "audio": [Audio(samples, card.sample_rate) for samples in (sweep, sweep[: card.sample_rate // 20])],
        "video": [film, film[:1]],
    }


def _drawn(width: int, height: int, layers: int = 3) -> Any:
    """An image full of detail: RGB, or RGBA if it has four layers."""
    from PIL import Image

    across, down = np.meshgrid(np.arange(width), np.arange(height))
    drawn = (across * 255 // width, down * 255 // height, across * down * 7 >> 4, (across ^ down) * 5)
    return Image.fromarray(np.stack(drawn[:layers], -1).astype(np.uint8))


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


def revision_of(found: Mapping[Modality, Array], *functions: Function) -> str:
    """A name for probed vectors, and for the functions that made them."""
    seen = b"".join(f"{kind} {each.shape} ".encode() + each.tobytes() for kind, each in found.items())
    return _probed(seen, *functions)


def _probed(seen: bytes, *functions: Callable[..., Any]) -> str:
    code = "\n".join(_written(function) for function in functions)
    return f"probe-{hashlib.sha256(seen + code.encode()).hexdigest()[:12]}"


# ── the code ─────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# No probe finds everything (a limit of 9,000 letters, a rare letter), so a function's own code counts as well: as
# Python compiled it, without the addresses, file names and orders of sets that differ from process to process.


def _written(function: Any, seen: set[FunctionType] | None = None) -> str:
    """A function's code, the plain values that it names, and the same of the functions of its module that it names."""
    seen = set() if seen is None else seen
    if isinstance(function, partial):
        given = (function.args, tuple(sorted(function.keywords.items())))
        return f"{_written(function.func, seen)} {_told(given)}"
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(function, FunctionType):
        function = inspect.unwrap(type(function).__call__)
    if not isinstance(function, FunctionType) or function in seen:
        return ""  # written in C, or told already
    seen.add(function)
    told = [_told(function.__code__), _told(function.__defaults__)]
    for name, value in sorted((_named(function) | (function.__kwdefaults__ or {})).items()):
        ours = callable(value) and getattr(value, "__module__", None) == function.__module__
        told.append(f"{name}={_written(value, seen) if ours else _told(value)}")
    return " ".join(told)


def _named(function: FunctionType) -> dict[str, Any]:
    """Globals and variables of outer functions that a function reads; one that it also sets is no constant."""
    steps = [step for code in _codes(function.__code__) for step in dis.get_instructions(code)]
    changed = {step.argval for step in steps if step.opname in ("STORE_GLOBAL", "STORE_DEREF")}
    read = {step.argval for step in steps if step.opname == "LOAD_GLOBAL"}
    found = {name: function.__globals__[name] for name in read if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not set yet
            found[name] = cell.cell_contents
    return {name: value for name, value in found.items() if name not in changed}


def _codes(code: CodeType) -> list[CodeType]:
    return [code, *(deep for each in code.co_consts if isinstance(each, CodeType) for deep in _codes(each))]


def _told(value: Any) -> str:
    """Code or a plain value as text that is the same in every process; nothing for other objects."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {_told(value.co_consts)}"
    if isinstance(value, tuple | frozenset):
        parts = [_told(each) for each in value]
        return f"{type(value).__name__}({', '.join(sorted(parts) if isinstance(value, frozenset) else parts)})"
    return repr(value) if type(value) in (str, bytes, bool, int, float, complex, type(None)) else ""
