"""Examines an encoder, in under a minute, for faults that spoil scores without any error.

A few sample items of every modality are embedded alone, together and in another order, with and without instruction;
each finding says what was seen and what it would do to scores. Where the checkpoint's files state what its vectors are,
the model's are compared with these.
"""

from __future__ import annotations

import io
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from embark.engine.batching.check import check_vectors
from embark.engine.batching.self_check import GROSS, apart, limit, pooled, unit_rows
from embark.engine.workers.preparing import prepare
from embark.items import key, media, mixed, text, wav
from embark.items.decoding import decode
from embark.models.encoder import Encoder
from embark.models.stated_vectors import Departure, StatedVectors
from embark.planning import Need
from embark.types import MODALITIES, Array, EmbarkError, Item, Modality, Text

Verdict = Literal["ok", "wrong", "note"]
INSTRUCTION = "Retrieve the picture that shows the opposite of this."
SAME = 1e-6  # vectors nearer than this are equal
RANDOM = ": deterministic"  # how the name of the check ends that dropout fails
TIMED = 16  # items of the speed check
MOST_WORDS = 512  # before the end of a long text
BY_FILES = 5  # times the limit of the precision: how far vectors may be from those of another library
QUERIES = (0, 7)  # samples that are compared as queries, too
SHORT, LONG = 1, 3  # samples of texts
TRIALS = 3  # of which the fastest counts


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    verdict: Verdict
    message: str


class Faulty(EmbarkError):
    """A fault that makes the later checks of a modality impossible; its arguments are (check, message)."""


def examine(
    encoder: Encoder,
    progress: Callable[[str], None] = lambda check: None,
    stated: Callable[[], StatedVectors] | None = None,
) -> list[Finding]:
    """Every finding, check by check; a modality that fails at once is not examined further.

    `stated` loads what the checkpoint's files state; its error says why they do not state enough.
    """
    findings: list[Finding] = []
    for kind in encoder.card.modalities:
        progress(kind)
        findings += _check_modality(encoder, kind)
    progress("mixed items and instructions")
    if random := [
        finding.check for finding in findings if finding.check.endswith(RANDOM) and finding.verdict == "wrong"
    ]:
        kinds = ", ".join(check.removesuffix(RANDOM) for check in random)
        reason = f"not examined, because {kinds} items get another vector each time: every difference would be chance"
        findings.append(Finding("mixed items, instructions and roles", "note", reason))
    else:
        findings += _check_mixed_items(encoder)
        findings += _check_roles(encoder)
        if stated is not None:
            progress("its files")
            findings += check_files(encoder, stated)
    if way := encoder.card.loaded.get("half precision"):
        findings.append(Finding("half precision", "note", f"runs {way}: slower, and the last digits may differ"))
    return findings


def _check_modality(encoder: Encoder, kind: Modality) -> Iterator[Finding]:
    try:
        yield from _check_samples(encoder, kind, samples(kind, encoder.card.sample_rate))
    except Faulty as fault:
        yield Finding(f"{kind}: {fault.args[0]}", "wrong", fault.args[1])
    except EmbarkError as error:
        yield Finding(f"{kind}: embeds", "wrong", str(error))
    except Exception as error:  # whatever a model raises is a finding
        yield Finding(f"{kind}: embeds", "wrong", f"`embed` failed on plain {kind} items: {_reason(error)}")


def _check_samples(encoder: Encoder, kind: Modality, items: Sequence[Item]) -> Iterator[Finding]:
    together = _embed(encoder, items)
    alone = np.concatenate([_embed(encoder, [item]) for item in items])
    yield Finding(f"{kind}: shape", "ok", f"one row per item, {alone.shape[1]} dimensions")
    yield Finding(
        f"{kind}: finite", "ok", f"finite, not zero, and within the range of {encoder.card.stored}, also for odd inputs"
    )
    yield _check_variety(kind, alone)
    yield _check_determinism(encoder, kind, items, alone, together)
    cost, many = _measure_cost(encoder, kind, items)
    batch = _check_batch(encoder, kind, alone, together, many)
    yield batch
    if batch.verdict == "ok":  # a fault of batches would fail this check as well
        yield _check_order(encoder, kind, items, together)
    if encoder.card.normalized is not None:
        yield _check_length(kind, alone, encoder.card.normalized)
    if kind == "text":
        yield from _check_end(encoder)
        yield from _check_padding(encoder)
    yield cost


# ── single checks ────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_variety(kind: Modality, alone: Array) -> Finding:
    spread = 1 - unit_rows(alone) @ unit_rows(alone).T
    if spread.max() < SAME:
        raise Faulty("varied", "all inputs give the same vector: the input does not reach the model.")
    distances = spread[~np.eye(len(alone), dtype=bool)]
    return Finding(
        f"{kind}: varied",
        "note" if distances.max() < 1e-3 else "ok",
        f"cosines of different items from {1 - distances.max():.2f} to {1 - distances.min():.2f}",
    )


def _check_determinism(
    encoder: Encoder, kind: Modality, items: Sequence[Item], alone: Array, together: Array
) -> Finding:
    again = np.concatenate([_embed(encoder, [item]) for item in items])
    worst = max(apart(encoder.card, alone, again).max(), apart(encoder.card, together, _embed(encoder, items)).max())
    if worst > limit(encoder.card) / 10 and not _is_permuted(encoder, alone, together):
        raise Faulty(
            "deterministic",
            f"the same items gave different vectors the second time (up to {worst:.2g} apart): dropout or sampling is "
            "on. Call .eval() and fix seeds.",
        )
    return Finding(f"{kind}: deterministic", "ok", "the same input gives the same vector")


def _check_batch(encoder: Encoder, kind: Modality, alone: Array, together: Array, many: Array) -> Finding:
    worst = 0.0
    for rows in (together, many):
        same = alone[np.arange(len(rows)) % len(alone)]
        worst = max(worst, float(apart(encoder.card, same, rows).max()))
        if worst <= limit(encoder.card):
            continue
        if _is_permuted(encoder, same, rows):
            return Finding(
                f"{kind}: order",
                "wrong",
                f"rows of a batch of {len(rows)} are returned in another order than the items, "
                "so items would get each other's vectors.",
            )
        return Finding(
            f"{kind}: batch",
            "wrong",
            f"a vector depends on its batch of {len(rows)} (up to {worst:.2g} apart): "
            "padding is not masked, or pooling reads it.",
        )
    return Finding(f"{kind}: batch", "ok", f"alone or in a batch, the vector is the same (within {worst:.1g})")


def _check_order(encoder: Encoder, kind: Modality, items: Sequence[Item], together: Array) -> Finding:
    if apart(encoder.card, _embed(encoder, items[::-1])[::-1], together).max() <= limit(encoder.card):
        return Finding(f"{kind}: order", "ok", "rows follow the items in any order")
    return Finding(f"{kind}: order", "wrong", "the same items in another order give other vectors or misplaced rows.")


def _check_length(kind: Modality, alone: Array, declared: bool) -> Finding:
    lengths = np.linalg.norm(alone, axis=1)
    if (unit := bool(np.abs(lengths - 1).max() < 1e-2)) == declared:
        return Finding(f"{kind}: length", "ok", "of unit length, as the card says")
    return Finding(
        f"{kind}: length",
        "wrong",
        f"lengths from {lengths.min():.3g} to {lengths.max():.3g}, "
        f"but the card declares {'unit' if declared else 'other'} length (found unit length: {unit}).",
    )


def _check_end(encoder: Encoder) -> Iterator[Finding]:
    """Whether the end of a text counts that fits into the length that the card or the checkpoint's files state."""
    card = encoder.card
    tokens = card.loaded.get("tokens") or card.options.get("tokens") or card.context
    if not tokens:
        return
    begin = min(3 * tokens // 4, MOST_WORDS)
    first, second = (text("the " * begin + ending * (1 + begin // 16)) for ending in ("red fox ", "cold rain "))
    full = _token_count(encoder, first) >= tokens > _token_count(encoder, text(TEXTS[1]))  # of bytes, say: none is lost
    if full or apart(card, _embed(encoder, [first]), _embed(encoder, [second])).max() >= SAME:
        stated = f"{tokens:,} tokens are stated by {card.loaded.get('tokens stated by') or 'the card'}"
        yield Finding("text: end", "ok", f"words count beyond the first {begin}; {stated}")
    else:
        yield Finding(
            "text: end",
            "wrong",
            f"words beyond the first {begin} change nothing, though the model should read {tokens:,} tokens: long "
            "texts are cut too early. Look for a truncation in the tokeniser, or for another `context` on the card.",
        )


def _check_padding(encoder: Encoder) -> Iterator[Finding]:
    """Whether short texts are filled up to the length of long ones before they are in a batch."""
    short, long = (_token_count(encoder, text(TEXTS[row])) for row in (SHORT, LONG))
    if short and short == long:
        message = f"every text is filled up to {short} tokens: a short one takes as long as a long one"
        yield Finding("text: padding", "note", message)


def _token_count(encoder: Encoder, item: Item) -> int:
    """The tokens of a text as the model prepares it; 0 where that holds no list of tokens."""

    def count(value: Any) -> int:
        if isinstance(value, list) and value and type(value[0]) is int:
            return len(value)
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
        return next(filter(None, map(count, parts)), 0)

    return count(prepare(encoder, Need(b"", item, "document", None, 0, 0)))


def _measure_cost(encoder: Encoder, kind: Modality, items: Sequence[Item]) -> tuple[Finding, Array]:
    """Speed and memory of a larger batch, and its vectors."""
    many = [items[number % len(items)] for number in range(TIMED)]
    memory_before = _memory()
    start = time.perf_counter()
    rows = _embed(encoder, many)
    seconds = (time.perf_counter() - start) / TIMED
    memory = max(0, _memory() - memory_before) / TIMED
    message = f"{1 / seconds:,.0f} items a second, {memory / 2**20:.1f} MB more per item at the peak"
    return Finding(f"{kind}: cost", "note", message), rows


def _check_mixed_items(encoder: Encoder) -> Iterator[Finding]:
    card = encoder.card
    kinds = [kind for kind in MODALITIES if kind in card.modalities]
    if len(kinds) < 2:
        return
    if card.fusion is None:
        yield Finding("mixed items", "note", "the card has no fusion rule: tasks with mixed items are not applicable")
        return
    parts = [samples(kind, card.sample_rate)[0] for kind in kinds[:2]]
    try:
        whole, first = _embed(encoder, [mixed(*parts)]), _embed(encoder, [parts[0]])
    except Exception as error:
        both = " and ".join(kinds[:2])
        yield Finding("mixed items", "wrong", f"an item of {both} cannot be embedded: {_reason(error)}")
        return
    if whole.shape == first.shape and apart(encoder.card, whole, first).max() < SAME:
        yield Finding(
            "mixed items", "wrong", f"the {kinds[1]} of a mixed item changes nothing: it does not reach the model."
        )
    else:
        yield Finding("mixed items", "ok", f"{' and '.join(kinds[:2])} both count ({card.fusion} fusion)")


def _check_roles(encoder: Encoder) -> Iterator[Finding]:
    """Findings on instructions and roles.

    An instruction must change the vector exactly where the card says so, and a role exactly where it changes the key.
    """
    kind: Modality = "text" if "text" in encoder.card.modalities else encoder.card.modalities[0]
    item = samples(kind, encoder.card.sample_rate)[0]
    try:
        document = _embed(encoder, [item], "document")
    except Exception:  # reported with its modality
        return
    try:
        query = _embed(encoder, [item], "query")
    except Exception as error:
        yield Finding("roles", "wrong", f"an item cannot be embedded as a query: {_reason(error)}")
        return
    try:
        instructed = _embed(encoder, [item], "query", INSTRUCTION)
    except Exception as error:
        yield Finding("instructions", "wrong", f"an item cannot be embedded with an instruction: {_reason(error)}")
        return
    yield _check_instructions(encoder, float(apart(encoder.card, query, instructed).max()))
    query_key, document_key = (key("", encoder.render(item, role, None)) for role in ("query", "document"))
    shared = query_key == document_key
    distance = float(apart(encoder.card, query, document).max())
    if shared and distance > limit(encoder.card):
        yield Finding(
            "roles",
            "wrong",
            "query and document have the same key but different vectors: `render` must return what differs.",
        )
    elif not shared and distance < SAME:
        yield Finding(
            "roles",
            "wrong",
            "query and document have different keys but the same vector: the role's prompt does not reach the model.",
        )
    else:
        relation = "share their vectors: items are embedded once for both" if shared else "differ"
        yield Finding("roles", "ok", f"query and document {relation}")


def _check_instructions(encoder: Encoder, moved: float) -> Finding:
    if encoder.card.instructed and moved < SAME:
        return Finding(
            "instructions",
            "wrong",
            "an instruction changes nothing, though the card says that the model reads it: the prompt is not applied.",
        )
    if not encoder.card.instructed and moved > limit(encoder.card):
        return Finding(
            "instructions", "wrong", "an instruction changes vectors, but the card does not say instructed=True."
        )
    return Finding("instructions", "ok", "applied" if encoder.card.instructed else "not read, as the card says")


# ── the checkpoint's files ───────────────────────────────────────────────────────────────────────────────────────────


def check_files(encoder: Encoder, load: Callable[[], StatedVectors]) -> list[Finding]:
    """Whether vectors and similarity are what the checkpoint's files state."""
    card = encoder.card
    try:
        stated = load()
        if stated.kind not in card.modalities or card.similarity == "maxsim":
            raise EmbarkError(
                f"{stated.folder} states one vector for each {stated.kind}, which the model does not make"
            )
        items = samples(stated.kind, card.sample_rate)
        values = [decode(item.parts, 1, card.sample_rate)[0].value for item in items]
        expected = stated.embed(values, "document")
        as_queries = stated.embed([values[row] for row in QUERIES], "query") if stated.kind == "text" else None
    except Exception as error:  # libraries raise whatever they like about files
        return [Finding("files", "note", f"not checked: {_reason(error).removeprefix('EmbarkError: ').rstrip('.')}")]
    queries = [] if as_queries is None else [items[row] for row in QUERIES]
    try:
        own = _embed(encoder, items)
        own_queries = _embed(encoder, queries, "query") if queries else own
    except Exception:  # reported with its modality, or with its role
        return []
    findings = [_check_stated(encoder, stated, values, own, expected, "document")]
    if as_queries is not None:
        query_values = [values[row] for row in QUERIES]
        of_queries = _check_stated(encoder, stated, query_values, own_queries, as_queries, "query")
        if of_queries.verdict != "ok" and (findings[0].verdict == "ok" or "query" in of_queries.message):
            findings.append(of_queries)  # else it is the fault of the documents
        findings += _check_filling(encoder, stated, items, values)
    return [*findings, *_check_similarity(encoder, stated, own)]


def _check_stated(
    encoder: Encoder, stated: StatedVectors, values: Sequence[Any], own: Array, expected: Array, role: str
) -> Finding:
    check, most = f"{stated.kind}: files", BY_FILES * limit(encoder.card)
    if own.shape != expected.shape:
        seen = f"vectors have {own.shape[1]} dimensions; by the files of {stated.folder} {expected.shape[1]}"
        return Finding(check, "wrong", seen)
    distances = _distances(own, expected)
    worst = float(distances.max())
    if worst > most:
        differing = [int(row) for row in np.argsort(distances) if distances[row] > most]
        rows = sorted({differing[0], differing[-1]})
        departures = stated.departures(role, _prompt(encoder, role))
        fault = _departure(departures, [values[row] for row in rows], own[rows], worst, most)
        if fault:
            return Finding(check, "wrong", f"{fault}.")
        example = values[rows[-1]]
        name = repr(example[:40]) if isinstance(example, str) else f"one of {example.width} × {example.height} pixels"
        partly = stated.kind == "text" and len(differing) < len(values)
        return Finding(
            check,
            "wrong" if partly or worst > GROSS else "note",
            f"vectors are others than the files of {stated.folder} state: {len(differing)} of {len(values)} differ, "
            f"such as {name}; the smallest cosine is {1 - worst**2 / 2:.4f}.",
        )
    lengths = np.linalg.norm(expected, axis=1)
    if np.abs(np.linalg.norm(own, axis=1) / lengths - 1).max() <= most:
        return Finding(check, "ok", f"vectors are those that the files of {stated.folder} state")
    verdict: Verdict = "note" if encoder.card.similarity == "cosine" else "wrong"  # the cosine sees no lengths
    if np.abs(lengths - 1).max() < most:
        return Finding(check, verdict, "the files say that vectors are normalized; the model's are of other lengths.")
    return Finding(check, verdict, "vectors have the directions that the files state, but other lengths.")


def _prompt(encoder: Encoder, role: str) -> str:
    """What the model puts before a text of a role."""
    parts = encoder.render(text(""), role, None).parts
    return "".join(part.text for part in parts[:-1] if isinstance(part, Text))


def _departure(
    departures: Iterator[Departure], values: Sequence[Any], own: Array, worst: float, most: float
) -> str | None:
    """The fault that gives the model's vectors; None where no usual one does."""
    nearest, fault = max(most, worst / 10), None
    for departure in departures:
        try:
            distance = float(_distances(own, departure.embed(values)).max())
        except Exception:  # one that cannot be made, such as more tokens than positions
            continue
        if distance < most:
            return departure.fault
        if distance < nearest:
            nearest, fault = distance, departure.fault
    return fault


def _distances(a: Array, b: Array) -> Array:
    return np.asarray(np.linalg.norm(unit_rows(a) - unit_rows(np.asarray(b, np.float64)), axis=1))


def _check_similarity(encoder: Encoder, stated: StatedVectors, own: Array) -> Iterator[Finding]:
    similarity = encoder.card.similarity
    if stated.similarity in (None, similarity):
        return
    message = f"the files of {stated.folder} compare vectors by {stated.similarity}, the card by {similarity}"
    if {stated.similarity, similarity} == {"cosine", "dot"} and np.abs(np.linalg.norm(own, axis=1) - 1).max() < 1e-3:
        yield Finding("similarity", "note", f"{message}: the same for vectors of unit length")
    else:
        yield Finding("similarity", "wrong", f"{message}.")


def _check_filling(
    encoder: Encoder, stated: StatedVectors, items: Sequence[Item], values: Sequence[Any]
) -> Iterator[Finding]:
    """Whether a short text takes as long as a long one, though it takes less by the files: it is filled up."""
    if _token_count(encoder, items[SHORT]):  # then `_check_padding` knows
        return
    short, long = (_seconds(lambda row=row: _embed(encoder, [items[row]])) for row in (SHORT, LONG))  # type: ignore[misc]
    short_stated, long_stated = (
        _seconds(lambda row=row: stated.embed([values[row]], "document")) for row in (SHORT, LONG)  # type: ignore[misc]
    )  # fmt: skip
    if short > 0.7 * long and short_stated < 0.4 * long_stated:
        yield Finding(
            "text: padding",
            "note",
            f"a short text takes {1000 * short:.0f} ms and a long one {1000 * long:.0f} (by the files "
            f"{1000 * short_stated:.0f} and {1000 * long_stated:.0f}): every text is filled up to one length",
        )


def _seconds(call: Callable[[], Any]) -> float:
    """The time of a call, the fastest of a few: of the processor, since other processes lengthen that by the clock.

    A call that takes hardly any of the processor's waits for a server: there the clock counts.
    """
    by_clock: list[float] = []
    of_processor: list[float] = []
    for _ in range(TRIALS):
        start = time.perf_counter(), time.process_time()
        call()
        by_clock.append(time.perf_counter() - start[0])
        of_processor.append(time.process_time() - start[1])
    return min(of_processor) if min(of_processor) > min(by_clock) / 50 else min(by_clock)


# ── embedding ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _embed(encoder: Encoder, items: Sequence[Item], role: str = "document", instruction: str | None = None) -> Array:
    """Vectors as the engine computes them, one row for each item (late interaction: the mean of its tokens).

    Invalid vectors raise `Faulty`.
    """
    needs = [Need(b"", item, role, instruction, 0, 0) for item in items]
    out: Any = encoder.embed([prepare(encoder, need) for need in needs])
    if len(out) != len(items):
        raise Faulty("shape", f"{len(items)} items went in and {len(out)} rows came out: one row per item is needed.")
    rows = pooled(out)
    if rows.ndim != 2:
        raise Faulty("shape", f"`embed` returned an array of shape {rows.shape}; (items, dimension) is needed.")
    if encoder.card.dim not in (None, rows.shape[1]):
        raise Faulty("shape", f"vectors have {rows.shape[1]} dimensions, but the card says {encoder.card.dim}.")
    try:
        check_vectors(out, encoder.card, needs, _item_name)
    except EmbarkError as error:
        raise Faulty("finite", f"{error} A run would stop there.") from error
    return rows


def _item_name(need: Need) -> str:
    part = need.item.parts[0]
    return f"'{part.text[:40]}'" if isinstance(part, Text) else f"a sample of {part.kind}"


def _reason(error: Exception) -> str:
    return str(error.args[-1]) if isinstance(error, Faulty) else f"{type(error).__name__}: {error}"


def _is_permuted(encoder: Encoder, alone: Array, together: Array) -> bool:
    """Whether the rows of a batch are the right vectors in the wrong order."""
    distance = np.linalg.norm(unit_rows(alone)[:, None] - unit_rows(together)[None], axis=2)
    nearest = distance.argmin(axis=1)
    return bool((distance.min(axis=1) <= limit(encoder.card)).all() and (nearest != np.arange(len(alone))).any())


def _memory() -> int:
    """The peak memory so far, in bytes: of the device where one is used, else of the process."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# ── sample items: of different lengths, sizes and scripts, because that is where models break ────────────────────────


def samples(kind: Modality, rate: int) -> list[Item]:
    """Eight fixed items of a modality."""
    if kind == "text":
        return [text(value) for value in TEXTS]
    if kind == "image":
        return [media("image", _png(number, size)) for number, size in enumerate(SIZES)]
    if kind == "audio":
        return [media("audio", _tone(number, rate)) for number in range(8)]
    return [media("video", *(_png(number + 3 * step, (64, 48)) for step in range(2 + number))) for number in range(8)]


TEXTS = (
    "a red circle on a white page",
    "cat",
    "Zwei Hunde spielen im Schnee, während ein Kind zusieht.",
    " ".join(f"The {turn}th paragraph tells of rivers, mountains and the people between them." for turn in range(60)),
    "夕焼けの海と小さな船",
    "🐘🎈",
    "?",
    "A sentence about a short train that stops at every station on its way south.",
)
SIZES = ((64, 64), (224, 160), (33, 97), (300, 300), (128, 32), (1, 1), (640, 480), (90, 90))


def _png(number: int, size: tuple[int, int]) -> bytes:
    from PIL import Image

    across, down = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    planes = [across * (3 + number), down * (5 + 2 * number), (across ^ down) * (number + 1) + 31 * number]
    out = io.BytesIO()
    Image.fromarray(np.stack(planes, -1).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def _tone(number: int, rate: int) -> bytes:
    moment = np.arange(int(rate * (0.3 + 0.25 * number))) / rate
    wave = np.sin(2 * np.pi * (180 + 170 * number) * moment * (1 + moment * number / 4)) * (0.2 + 0.1 * (number % 4))
    return wav.from_samples(wave.astype(np.float32), rate)
