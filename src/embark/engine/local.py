"""The local engine, a pipeline: decode workers → batches → encoder → writer.

Workers prepare items ahead of the encoder and a writer thread commits its vectors, so the device waits for neither.
Each batch is durable soon after it was computed; a killed run loses the last few batches at most.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import islice
from threading import Condition
from typing import Any, TypeAlias

import numpy as np
from PIL import Image

from embark.catalogue import group_values
from embark.data.items import as_keys
from embark.data.media import UnreadableMedia, decode
from embark.engine.check import InvalidVectors, check_vectors
from embark.engine.self_check import batch_warning
from embark.engine.sink import Sink
from embark.models.encoder import Billed, Encoder, Interrupted
from embark.planning import Need
from embark.store import Writer
from embark.types import EmbarkError, Modality, Text

CHUNK = 4  # items that a worker prepares at a time
TEXT_CHUNK = 64  # handing over a short text costs more than preparing it
FIRST_BATCH = 32
LARGEST_BATCH = 1024
WORTH_IT = 1.05  # gain in items a second for which the batch size is doubled again
NO_MEMORY = ("out of memory", "allocate memory", "alloc_failed", "bad_alloc", "bad allocation")  # of torch, onnx…
CHECKED = 4  # items of the self-check
HOPELESS = 256  # items of a kind without one valid vector, after which the others of that kind are not tried
MOST_BYTES = 1 << 30  # limit for prepared items: those of a batch, and those waiting for the next

Ready: TypeAlias = tuple[Need, Any, int]  # a need, its prepared value (or the error that it is unreadable), its bytes


@dataclass
class Report:
    """The result of embedding: how many vectors in how many seconds, and the items that have none.

    `unreadable` items do not decode; `too_large` ones do not fit the device's memory even alone; of `invalid` ones, the
    model returned a vector that is none. `batch_size` is what batches came down to where memory did not suffice.
    """

    embedded: int = 0
    seconds: float = 0.0
    unreadable: dict[bytes, str] = field(default_factory=dict)  # key → reason
    too_large: dict[bytes, str] = field(default_factory=dict)  # key → reason
    invalid: dict[bytes, str] = field(default_factory=dict)  # key → what the model returned
    batch_size: int | None = None
    warnings: tuple[str, ...] = ()

    def add(self, other: Report) -> None:
        """Count what was embedded after this."""
        self.embedded += other.embedded
        self.seconds += other.seconds
        self.unreadable |= other.unreadable
        self.too_large |= other.too_large
        self.invalid |= other.invalid
        self.batch_size = min(filter(None, (self.batch_size, other.batch_size)), default=None)
        self.warnings = tuple(dict.fromkeys((*self.warnings, *other.warnings)))


@dataclass
class BatchSize:
    """The size of the next batch: doubles while that is faster, halves for good when memory runs out."""

    now: int = FIRST_BATCH
    limit: int = LARGEST_BATCH
    best: float = 0.0  # items a second
    growing: bool = True

    def record_time(self, items: int, seconds: float) -> None:
        """Record that a batch of `items` took `seconds`."""
        rate = items / max(seconds, 1e-9)
        if not self.growing or items < self.now:
            return
        self.growing = rate > WORTH_IT * self.best and self.now < self.limit
        self.best = max(rate, self.best)
        if self.growing:
            self.now = min(2 * self.now, self.limit)

    def record_out_of_memory(self, items: int) -> None:
        """Record that memory did not suffice for a batch of `items`."""
        self.now = self.limit = max(1, min(self.now, items // 2))
        self.growing = False


def embed(
    encoder: Encoder,
    needs: Sequence[Need],
    writer: Writer,
    *,
    workers: int = 2,
    batch_size: int | None = None,
    self_check: bool = False,
    name: Callable[[Need], str] = lambda need: need.key.hex()[:12],
    advance: Callable[[int, float | None], None] = lambda items, left: None,
) -> Report:
    """Embed every need and commit its vector.

    `self_check` begins with a few items of each kind, alone and in a batch; a model that mixes them up is an error.
    `name` returns the name of a needed item for messages; `advance` is called with the number of items just finished
    and the seconds that the others will take.
    """
    report = Report()
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool, _cancelling(pool), Sink(writer) as sink:
        fixed = batch_size or encoder.batch_size
        kinds = [_Kind(group, _batch_size(fixed)) for group in by_kind(needs)]
        if self_check and not isinstance(encoder, Billed):
            for kind in kinds:
                rest = _embed_twice(encoder, kind.needs, min(CHECKED, fixed or CHECKED), sink, report, name)
                kind.valid = len(kind.needs) - len(rest)
                kind.needs = rest
                advance(kind.valid, None)
        for kind, part in _first_batches_first(kinds):
            with closing(_prepared(pool, encoder, part, workers, kind.size, name)) as ready:
                while not kind.hopeless and (done := _timed_batch(encoder, ready, kind, sink, report, name)):
                    advance(done, _seconds_left(kinds))
        for kind in kinds:
            if kind.hopeless:
                kind.give_up(report)
    report.seconds = time.perf_counter() - start
    return report


@dataclass
class _Kind:
    """The items of one kind: those to embed, the size of their batches, and what became of them so far."""

    needs: list[Need]
    size: BatchSize
    done: int = 0
    seconds: float = 0.0
    valid: int = 0
    invalid: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether the model returned many invalid vectors for it, and no valid one."""
        return self.invalid >= HOPELESS and not self.valid

    def give_up(self, report: Report) -> None:
        """Report the items that were not tried like the others of their kind."""
        reason = next(report.invalid[need.key] for need in self.needs if need.key in report.invalid)
        for need in self.needs:
            if need.key not in report.unreadable:
                report.invalid.setdefault(need.key, reason)


def _batch_size(fixed: int | None) -> BatchSize:
    return BatchSize(fixed, fixed, growing=False) if fixed else BatchSize()


def _first_batches_first(kinds: Sequence[_Kind]) -> Iterator[tuple[_Kind, list[Need]]]:
    """The items to embed, in parts; of several kinds, a few of each come first and tell what the others will cost."""
    kinds = [kind for kind in kinds if kind.needs]
    samples = {}
    for number, kind in enumerate(kinds if len(kinds) > 1 else ()):
        count = min(FIRST_BATCH, kind.size.now)
        samples[number] = range(0, len(kind.needs), max(1, len(kind.needs) // count))[:count]
        yield kind, [kind.needs[row] for row in samples[number]]
    for number, kind in enumerate(kinds):
        if rest := [need for row, need in enumerate(kind.needs) if row not in samples.get(number, ())]:
            yield kind, rest


def _seconds_left(kinds: Sequence[_Kind]) -> float:
    """The time for all other items, by what an item of their kind took; a kind that has not begun costs the most."""
    prices = [kind.seconds / kind.done for kind in kinds if kind.done]
    return sum(
        (len(kind.needs) - kind.done) * (kind.seconds / kind.done if kind.done else max(prices)) for kind in kinds
    )


@contextmanager
def _cancelling(pool: ThreadPoolExecutor) -> Iterator[None]:
    """A block that cancels the pool's queued work on an error instead of waiting for it."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _batch(
    encoder: Encoder,
    ready: Iterator[Ready],
    size: BatchSize,
    sink: Sink,
    report: Report,
    name: Callable[[Need], str],
) -> int:
    """Embed the next batch and hand its vectors to the writer; returns how many items that were.

    A function of its own, so that a batch's memory is free before the next one is gathered.
    """
    batch = []
    items = 0
    batch_bytes = 0
    for need, value, size_in_bytes in islice(ready, size.now):
        if isinstance(value, UnreadableMedia):
            report.unreadable[need.key] = str(value)
        else:
            batch.append((need, value))
        items += 1
        batch_bytes += size_in_bytes
        if batch_bytes >= MOST_BYTES:
            break
    for piece, vectors in _forward(encoder, batch, size, report, name):
        sink.put(as_keys([need.key for need, _ in piece]), vectors)
        report.embedded += len(piece)
    return items


def _timed_batch(
    encoder: Encoder, ready: Iterator[Ready], kind: _Kind, sink: Sink, report: Report, name: Callable[[Need], str]
) -> int:
    """Embed the next batch, and count what it took; returns how many items that were."""
    start = time.perf_counter()
    valid = report.embedded
    invalid = len(report.invalid)
    items = _batch(encoder, ready, kind.size, sink, report, name)
    kind.done += items
    kind.seconds += time.perf_counter() - start
    kind.valid += report.embedded - valid
    kind.invalid += len(report.invalid) - invalid
    return items


def _embed_twice(
    encoder: Encoder, group: list[Need], count: int, sink: Sink, report: Report, name: Callable[[Need], str]
) -> list[Need]:
    """Embed a few items alone and together, compare and store them; returns the others of the group.

    Whatever fails meanwhile is left to the run itself, where it is named.
    """
    spread = [group[row] for row in sorted({row * (len(group) - 1) // max(1, count - 1) for row in range(count)})]
    sample = []
    for need in spread[1::2] + spread[::2]:  # neither the shortest nor the longest first: models sort by length
        with suppress(Exception):
            sample.append((need, prepare(encoder, need)))
    if len(sample) < 2:
        return group
    needs = [need for need, _ in sample]
    try:
        together = encoder.embed([value for _, value in sample])
        stored = check_vectors(together, encoder.card, needs, name)
        alone = [encoder.embed([value])[0] for _, value in sample]
        check_vectors(alone, encoder.card, needs, name)
    except Exception as error:
        if out_of_memory(error):
            _free_device_memory()
        return group
    if warning := batch_warning(encoder.card, alone, together):
        report.warnings += (warning,)
    keys = [need.key for need in needs]
    sink.put(as_keys(keys), stored)
    report.embedded += len(keys)
    return [need for need in group if need.key not in keys]


def measure(encoder: Encoder, needs: Sequence[Need], sample: int = 24) -> dict[tuple[Modality, ...], float]:
    """Seconds for an item of each kind, timed on a small sample; nothing is stored."""
    out = {}
    for group in by_kind(needs):
        timed = group[:: max(1, len(group) // sample)][:sample]
        _try(encoder, timed[:2])  # the first pass pays for loading
        start = time.perf_counter()
        _try(encoder, timed)
        out[group[0].item.modalities] = (time.perf_counter() - start) / len(timed)
    return out


def by_kind(needs: Sequence[Need]) -> list[list[Need]]:
    """Needs grouped by kind of item, short texts first: batches are even and need little padding."""
    groups = group_values((need.item.modalities, need) for need in needs)
    return [sorted(group, key=_length) for group in groups.values()]


def prepare(encoder: Encoder, need: Need) -> Any:
    """The encoder's input for a need: decoded media, and the encoder's own CPU work on them."""
    rendered = need.render(encoder)
    contents = decode(rendered.parts, rendered.frames or encoder.card.frames, encoder.card.sample_rate)
    return encoder.prepare(contents, rendered.mode)


def _try(encoder: Encoder, needs: Sequence[Need]) -> None:
    """Embed the needs that can be read, without storing the vectors."""
    ready = []
    for need in needs:
        with suppress(UnreadableMedia):
            ready.append(prepare(encoder, need))
    if ready:
        encoder.embed(ready)


def _length(need: Need) -> int:
    return sum(len(part.text) for part in need.item.parts if isinstance(part, Text))


def byte_size(value: Any) -> int:
    """The approximate memory of a prepared value in bytes: pixels, samples, tensors.

    Texts and unknown types count as 0.
    """
    if isinstance(value, Image.Image):
        return 4 * value.width * value.height  # Pillow's size of a color pixel
    if isinstance(value, list) and value and isinstance(value[0], (int, float)):
        return 0  # tokens: few bytes
    if isinstance(value, (list, tuple)):
        return sum(map(byte_size, value))
    if isinstance(value, Mapping):
        return sum(map(byte_size, value.values()))
    if is_dataclass(value) and not isinstance(value, type):
        return sum(byte_size(getattr(value, part.name, None)) for part in fields(value))
    size = len(value) if isinstance(value, bytes) else getattr(value, "nbytes", 0)  # numpy and torch both have it
    return size if isinstance(size, int) else 0


class Backlog:
    """The bytes of prepared items that wait for the encoder.

    At the limit, workers pause, except on the chunk that the encoder waits for.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.awaited = -1  # number of the chunk that the encoder waits for
        self.closed = False
        self.changed = Condition()

    def admits(self, chunk: int) -> bool:
        """Wait until one more item of this chunk may be prepared; False when no more items are wanted."""
        if self.bytes >= MOST_BYTES:
            with self.changed:
                self.changed.wait_for(lambda: self.bytes < MOST_BYTES or chunk == self.awaited or self.closed)
        return not self.closed

    def update(self, added: int = 0, chunks: int = 0, closed: bool = False) -> None:
        """Add so many bytes (a negative number removes them), wait for so many chunks more, or want no more items."""
        with self.changed:
            self.bytes += added
            self.awaited += chunks
            self.closed |= closed
            self.changed.notify_all()


def _prepared(
    pool: ThreadPoolExecutor,
    encoder: Encoder,
    needs: Sequence[Need],
    workers: int,
    size: BatchSize,
    name: Callable[[Need], str],
) -> Generator[Ready]:
    """Needs with their prepared values, in order; workers prepare a bounded number ahead of the encoder."""
    backlog = Backlog()
    only_text = needs[0].item.modalities == ("text",)

    def work(number: int, chunk: Sequence[Need]) -> list[Ready]:
        out: list[Ready] = []
        for need in chunk:
            if not backlog.admits(number):
                break
            try:
                value = prepare(encoder, need)
            except UnreadableMedia as error:
                value = error
            except EmbarkError as error:
                raise EmbarkError(f"{encoder.card.name} cannot embed {name(need)}: {error}") from error
            except Exception as error:
                error.add_note(f"{encoder.card.name} was preparing {name(need)}.")
                raise
            size_in_bytes = 0 if only_text else byte_size(value)
            if size_in_bytes:
                backlog.update(added=size_in_bytes)
            out.append((need, value, size_in_bytes))
        return out

    step = TEXT_CHUNK if only_text else CHUNK
    chunks = enumerate([needs[start : start + step] for start in range(0, len(needs), step)])
    ahead: deque[Future[list[Ready]]] = deque()
    try:
        while True:
            room = 2 * workers + 2 * size.now // step - len(ahead)
            ahead.extend(pool.submit(work, number, chunk) for number, chunk in islice(chunks, max(0, room)))
            if not ahead:
                return
            backlog.update(chunks=1)
            for need, value, size_in_bytes in ahead.popleft().result():
                if size_in_bytes:
                    backlog.update(added=-size_in_bytes)
                yield need, value, size_in_bytes
    finally:
        backlog.update(closed=True)


def _forward(
    encoder: Encoder, batch: list[tuple[Need, Any]], size: BatchSize, report: Report, name: Callable[[Need], str]
) -> Iterator[tuple[list[tuple[Need, Any]], Any]]:
    """(piece, vectors) of the batch: one piece, or halves of halves where memory does not suffice.

    An item that does not fit even alone is reported, and the others go on.
    """
    if not batch:
        return
    start = time.perf_counter()
    try:
        vectors = encoder.embed([value for _, value in batch])
    except Interrupted as cut:
        if cut.done:  # a provider has charged for them, so they are stored
            rows = sorted(cut.done)
            yield from _valid(
                encoder, [batch[row] for row in rows], np.stack([cut.done[row] for row in rows]), report, name
            )
        raise
    except Exception as error:
        if not out_of_memory(error):
            raise
    else:
        size.record_time(len(batch), time.perf_counter() - start)
        yield from _valid(encoder, batch, vectors, report, name)
        return
    # Outside the handler, because the error holds all that the failed pass had put on the device.
    _free_device_memory()
    if len(batch) == 1:
        need = batch[0][0]
        report.too_large[need.key] = f"{encoder.card.name} has not enough memory for one item: {name(need)}"
        return
    size.record_out_of_memory(len(batch))
    report.batch_size = min(size.now, report.batch_size or size.now)
    half = len(batch) // 2
    yield from _forward(encoder, batch[:half], size, report, name)
    yield from _forward(encoder, batch[half:], size, report, name)


def _valid(
    encoder: Encoder, batch: list[Any], vectors: Any, report: Report, name: Callable[[Need], str]
) -> Iterator[tuple[Any, Any]]:
    """A batch with its checked vectors, without the items that got an invalid one: these are reported."""
    try:
        stored = check_vectors(vectors, encoder.card, [need for need, _ in batch], name)
    except InvalidVectors as error:
        report.invalid |= {batch[row][0].key: error.problem for row in error.rows}
        if valid := sorted(set(range(len(batch))) - set(error.rows)):
            valid_vectors = vectors[valid] if hasattr(vectors, "shape") else [vectors[row] for row in valid]
            yield from _valid(encoder, [batch[row] for row in valid], valid_vectors, report, name)
        return
    yield batch, stored


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory did not suffice, of whatever library."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in NO_MEMORY)


def _free_device_memory() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
