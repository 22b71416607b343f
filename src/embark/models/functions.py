"""Plain functions become an encoder, a re-ranker or a generator in one call.

Stored outputs are found again by the model's revision. Without a `revision` of the user's, it is a hash of the outputs
on fixed inputs ("probe-…"): other weights, limits or crops then are another model. A change that none of the fixed
inputs shows keeps the revision, and the outputs stored before are used again: a cut beyond 7,000 characters, a rule
for a rare word. Give a `revision` there, and where outputs differ from run to run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import groupby, product
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

    Without a `revision`, it is a hash of the outputs on fixed inputs: usual ones, a long text, large, tiny, narrow and
    transparent images, long and short sounds and films. A change that shows in none of these keeps the revision, and
    stored vectors are used again: give a revision of your own there.
    """
    arguments = dict(zip(MODALITIES, (text, image, audio, video), strict=True))
    functions = {kind: function for kind, function in arguments.items() if function is not None}
    _check(functions, card_fields)
    towers = {kind: _tower(kind, function) for kind, function in functions.items()}
    if "image" in towers and "video" not in towers:
        towers["video"] = frame_mean(towers["image"])
    facts: dict[str, Any] = {**card_fields, "fusion": fusion, "similarity": similarity}
    facts["options"] = {**facts.get("options", {}), "functions": {kind: _name(f) for kind, f in functions.items()}}
    card = ModelCard(name, revision or "", "functions", tuple(towers), **facts)
    return with_revision(Towers(card, towers), revision)


def reranker(
    score: Callable[[list[tuple[Any, Any]]], Any],
    *,
    modalities: tuple[Modality, ...] = ("text",),
    name: str = "local/reranker",
    revision: str | None = None,
    **card_fields: Any,
) -> Reranker:
    """A re-ranker from a function that takes (query, document) pairs and returns one number per pair, higher is better.

    Either half is what the item holds (a string, a PIL image…), or a list of that where it has several parts. Without
    a `revision`, it is a hash of the scores of fixed pairs, as for `encoder`.
    """
    facts = {"dim": 1, "stored": "float32", "options": {"function": _name(score)}, **card_fields}
    card = ModelCard(name, revision or "", "functions", modalities, kind="reranker", **facts)
    usual, odd = ([_plain(content) for content in contents] for contents in _probe_contents(card))
    odd_pairs = [pair for value in odd for pair in ((usual[0], value), (value, usual[0]))]
    model = _FunctionReranker(card, score)
    usual_scores, odd_scores = _outputs(card, model.score, list(product(usual, usual)), odd_pairs)
    hashed = [usual_scores.tobytes(), *(REFUSED if scores is None else scores.tobytes() for scores in odd_scores)]
    return _FunctionReranker(replace(card, revision=revision or _revision(b"".join(hashed))), score)


def generator(
    write: Callable[[list[Any], str], Sequence[str]],
    *,
    modalities: tuple[Modality, ...] = ("text", "image"),
    name: str = "local/generator",
    revision: str | None = None,
    **card_fields: Any,
) -> Generator:
    """A generator from a function that takes a list of inputs and a prompt, and returns one text per input.

    An input is what the item holds (a string, a PIL image…), or a list of that where it has several parts. Without a
    `revision`, it is a hash of the texts about fixed inputs, as for `encoder`.
    """
    facts = {"dim": 1, "stored": "uint8", "options": {"function": _name(write)}, **card_fields}
    card = ModelCard(name, revision or "", "functions", modalities, kind="generator", **facts)
    model = _FunctionGenerator(card, write)
    prompt = Content("text", "Describe this.")
    usual, odd = ([model.prepare([prompt, content], "") for content in contents] for contents in _probe_contents(card))
    usual_texts, odd_texts = _outputs(card, model.generate, usual, odd)
    hashed = [*(text.encode() for text in usual_texts), *(REFUSED if t is None else t[0].encode() for t in odd_texts)]
    return _FunctionGenerator(replace(card, revision=revision or _revision(b"\0".join(hashed))), write)


@dataclass(eq=False)
class _FunctionReranker(Reranker):
    card: ModelCard
    function: Callable[[list[tuple[Any, Any]]], Any]

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[Any, Any]:
        query, document = super().prepare(contents, mode)
        return _plain(*query), _plain(*document)

    def score(self, batch: Sequence[tuple[Any, Any]]) -> Array:
        scores = _numbers(self.function, list(batch), "pairs", "one number per pair")
        if scores.shape != (len(batch),):
            raise EmbarkError(
                f"{self.card.name} was given {len(batch)} pairs and returned an array of shape {scores.shape}; "
                "expected one number per pair."
            )
        return scores


@dataclass(eq=False)
class _FunctionGenerator(Generator):
    card: ModelCard
    function: Callable[[list[Any], str], Sequence[str]]

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[str, Any]:
        return contents[0].value, _plain(*contents[1:])

    def generate(self, batch: Sequence[tuple[str, Any]]) -> list[str]:
        out: list[str] = []
        for prompt, group in groupby(batch, key=lambda prepared: prepared[0]):
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

    return Tower(embed, lambda audio: audio.samples) if kind == "audio" else Tower(embed)


def _numbers(function: Function, values: list[Any], inputs: str, wanted: str) -> Array:
    out = function(values)
    try:
        if hasattr(out, "detach"):  # a tensor: it may have a gradient, lie on another device or hold bfloat16
            return to_numpy(out)
        if isinstance(out, (list, tuple)):
            out = [to_numpy(row) if hasattr(row, "detach") else row for row in out]
        if np.iscomplexobj(out):
            raise TypeError("they are complex")
        return np.asarray(out, np.float32)
    except (ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise EmbarkError(
            f"{_name(function)} was given {len(values)} {inputs} and returned a {type(out).__name__} that is "
            f"not {wanted}: {error}"
        ) from error


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


# ── fixed inputs ─────────────────────────────────────────────────────────────────────────────────────────────────────
#
# The usual ones show other weights; the odd ones show where a function cuts, crops or pads. Revisions hash the outputs,
# so changing an input gives every function and every object of another library a new revision.

REFUSED = b"refused"


def probe(model: Encoder) -> dict[Modality, Array]:
    """The vectors of fixed inputs of each modality; a wrong shape is an error here, and not hours into a run.

    NaN stands for odd inputs that the model refused. A model that has a revision is not given odd ones.
    """
    usual, odd = _usual(model.card), _odd(model.card)
    vectors: dict[Modality, Array] = {}
    for kind in model.card.modalities:
        usual_rows, odd_rows = _outputs(model.card, partial(_embed, model, kind), usual[kind], odd[kind])
        refused = np.full_like(usual_rows[:1], np.nan)
        rows = [refused if row is None or row.shape != refused.shape else row for row in odd_rows]
        vectors[kind] = np.concatenate([usual_rows, *rows])
    return vectors


def with_revision(model: Encoder, revision: str | None) -> Encoder:
    """The encoder with its dimension and revision on the card; the default revision is a hash of its vectors."""
    vectors = probe(model)
    model.card = replace(model.card, dim=_dim(model.card, vectors), revision=revision or _revision_of(vectors))
    return model


def _dim(card: ModelCard, vectors: Mapping[Modality, Array]) -> int:
    """The dimension of probed vectors: the card's where it states one, and the same for all modalities."""
    dims = {kind: rows.shape[1] for kind, rows in vectors.items()}
    wanted = card.dim or next(iter(dims.values()))
    if set(dims.values()) != {wanted}:
        listed = ", ".join(f"{kind} {dim}" for kind, dim in dims.items())
        raise EmbarkError(
            f"{card.name} should have {wanted} dimensions in every modality, but its functions return: {listed}."
        )
    return wanted


def _revision_of(vectors: Mapping[Modality, Array]) -> str:
    """A revision from probed vectors."""
    return _revision(b"".join(f"{kind} {rows.shape} ".encode() + rows.tobytes() for kind, rows in vectors.items()))


def _revision(outputs: bytes) -> str:
    return f"probe-{hashlib.sha256(outputs).hexdigest()[:12]}"


def _embed(model: Encoder, kind: Modality, values: Sequence[Any]) -> Array:
    return np.asarray(model.embed([model.prepare([Content(kind, value)], "") for value in values]))


def _outputs(
    card: ModelCard, call: Callable[[Sequence[Any]], Any], usual: Sequence[Any], odd: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """The output of the usual inputs together, and that of each odd one alone: None where it was refused."""
    usual_output = call(usual)
    odd_outputs = []
    refusal: Exception | None = None
    for value in () if card.revision else odd:
        try:
            odd_outputs.append(call([value]))
        except Exception as error:  # a function need not take every input
            odd_outputs.append(None)
            refusal = error
    if refusal is not None:
        try:
            call(usual)
        except Exception as error:  # such as CUDA, where one text too long ends all work on the device
            raise EmbarkError(
                f"{card.name} failed on an unusual input ({refusal}), and on usual ones after that ({error}). "
                "If you give a revision, only usual inputs are tried."
            ) from error
    return usual_output, odd_outputs


def _probe_contents(card: ModelCard) -> Iterator[list[Content]]:
    """The usual inputs of all modalities of a card, then the odd ones."""
    for inputs in (_usual(card), _odd(card)):
        yield [Content(kind, value) for kind in card.modalities for value in inputs[kind]]


def _usual(card: ModelCard) -> dict[Modality, list[Any]]:
    from PIL import Image

    ramp = np.arange(64, dtype=np.uint8)
    across, down = np.meshgrid(ramp, ramp)
    images = [
        Image.fromarray(np.stack([across * 4, down * 4, across ^ down], -1)),
        Image.fromarray(np.stack([across & down, across | down, across * down], -1)),
    ]
    time = np.arange(card.sample_rate) / card.sample_rate
    tones = [np.sin(440 * 2 * np.pi * time), np.sin(2000 * 2 * np.pi * time**2) * (1 - time)]
    return {
        "text": ["a red circle on a white page", "Zwei Hunde spielen im Schnee"],
        "image": images,
        "audio": [Audio((tone / 2).astype(np.float32), card.sample_rate) for tone in tones],
        "video": [images, images[::-1] + images],
    }


def _odd(card: ModelCard) -> dict[Modality, list[Any]]:
    """Unusual inputs: long, large, tiny, narrow and transparent ones, in the form that `items.decoding` decodes to."""
    words = ["naïve", "CAFÉ,", "(x_1 + y²)", "Übergröße!", "“so”…", "ёлка", "नमस्ते", "مرحبا", "👩‍🚀🇯🇵", "\t—\n"]
    text = " ".join(f"{words[n % len(words)]} {n * n} {chr(0x4E00 + n)}" for n in range(500))
    large = _picture(640, 427)
    time = np.arange(40 * card.sample_rate, dtype=np.int64)
    sweep = ((time * time // 3 % 65_521 - 32_760) / 65_521).astype(np.float32)  # in whole numbers: the same everywhere
    film = [large.crop((n, n, n + 160, n + 90)) for n in range(card.frames)]  # more frames are never decoded
    return {
        "text": [text],
        "image": [large, _picture(3, 2), _picture(24, 800), _picture(96, 64, bands=4)],
        "audio": [Audio(samples, card.sample_rate) for samples in (sweep, sweep[: card.sample_rate // 20])],
        "video": [film, film[:1]],
    }


def _picture(width: int, height: int, bands: int = 3) -> Any:
    """An image full of detail: RGB, or RGBA of four bands."""
    from PIL import Image

    across, down = np.meshgrid(np.arange(width), np.arange(height))
    channels = (across * 255 // width, down * 255 // height, across * down * 7 >> 4, (across ^ down) * 5)
    return Image.fromarray(np.stack(channels[:bands], -1).astype(np.uint8))
