"""The local engine, a pipeline: decode workers → batches → encoder → writer.

Workers prepare ahead of the encoder, a writer thread commits behind it, so the device waits for neither. Each batch is
durable soon after it was computed; a killed run loses at most what was in flight.
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

from embark.data.items import as_keys
from embark.data.media import UnreadableMedia, decode
from embark.engine.check import Unsound, checked
from embark.engine.sink import Sink
from embark.models.encoder import Encoder, Interrupted
from embark.plan import Need
from embark.store import Writer
from embark.types import EmbarkError, Modality, Text

CHUNK, TEXT_CHUNK = 4, 64  # items a worker prepares at a time: a hand-over costs more than a short text
FIRST_BATCH, LARGEST_BATCH = 32, 1024
WORTH_IT = 1.05  # a larger batch must be this much faster an item to be kept
NO_MEMORY = ("out of memory", "allocate memory", "alloc_failed", "bad_alloc", "bad allocation")  # as torch, onnx… say
MOST_BYTES = 1 << 30  # of prepared items: no more are gathered for a batch, nor kept ready behind it

Ready: TypeAlias = tuple[Need, Any, int]  # a need, its prepared value or why it is unreadable, about how many bytes


@dataclass
class Report:
    """What an engine did: how many vectors in how many seconds, and which items would not decode (key → why)."""

    embedded: int = 0
    seconds: float = 0.0
    unreadable: dict[bytes, str] = field(default_factory=dict)


@dataclass
class BatchSize:
    """Doubles while that makes an item cheaper, halves when memory runs out and never returns there."""

    now: int = FIRST_BATCH
    limit: int = LARGEST_BATCH
    best: float = 0.0
    growing: bool = True

    def took(self, items: int, seconds: float) -> None:
        """A batch of `items` took `seconds`."""
        rate = items / max(seconds, 1e-9)
        if not self.growing or items < self.now:
            return
        self.growing = rate > WORTH_IT * self.best and self.now < self.limit
        self.best = max(rate, self.best)
        if self.growing:
            self.now = min(2 * self.now, self.limit)

    def failed(self, items: int) -> None:
        """A batch of `items` did not fit."""
        self.now = self.limit = max(1, min(self.now, items // 2))
        self.growing = False


def embed(
    encoder: Encoder,
    needs: Sequence[Need],
    writer: Writer,
    *,
    workers: int = 2,
    batch_size: int | None = None,
    name: Callable[[Need], str] = lambda need: need.key.hex()[:12],
    advance: Callable[[int], None] = lambda items: None,
) -> Report:
    """Embed every need and commit it; `name` is how errors call an item, `advance` hears of finished items."""
    report, start = Report(), time.perf_counter()
    with ThreadPoolExecutor(workers) as pool, _cancelling(pool), Sink(writer) as sink:
        for group in by_kind(needs):
            fixed = batch_size or encoder.batch_size
            size = BatchSize(fixed, fixed, growing=False) if fixed else BatchSize()
            with closing(_prepared(pool, encoder, group, workers, size, name)) as ready:
                while done := _batch(encoder, ready, size, sink, report, name):
                    advance(done)
    report.seconds = time.perf_counter() - start
    return report


@contextmanager
def _cancelling(pool: ThreadPoolExecutor) -> Iterator[None]:
    """An error need not wait for what was queued behind it."""
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
    """Embed what comes next and hand it to the writer; how many items that were. They are let go before the next."""
    good, done, held = [], 0, 0
    for need, value, weight in islice(ready, size.now):
        if isinstance(value, UnreadableMedia):
            report.unreadable[need.key] = str(value)
        else:
            good.append((need, value))
        done, held = done + 1, held + weight
        if held >= MOST_BYTES:
            break
    for piece, vectors in _forward(encoder, good, size, name):
        sink.put(as_keys([need.key for need, _ in piece]), vectors)
    report.embedded += len(good)
    return done


def measure(encoder: Encoder, needs: Sequence[Need], sample: int = 24) -> dict[tuple[Modality, ...], float]:
    """Seconds an item by kind, from a small sample of each; nothing is stored."""
    out = {}
    for group in by_kind(needs):
        few = group[:: max(1, len(group) // sample)][:sample]
        _try(encoder, few[:2])  # the first pass pays for loading
        start = time.perf_counter()
        _try(encoder, few)
        out[group[0].item.modalities] = (time.perf_counter() - start) / len(few)
    return out


def by_kind(needs: Sequence[Need]) -> list[list[Need]]:
    """Needs of one kind of item together, short texts first: even batches, little padding."""
    groups: dict[tuple[Modality, ...], list[Need]] = {}
    for need in needs:
        groups.setdefault(need.item.modalities, []).append(need)
    return [sorted(group, key=_length) for group in groups.values()]


def prepare(encoder: Encoder, need: Need) -> Any:
    """Decode what the encoder will see and let it do its CPU work."""
    rendered = need.render(encoder)
    contents = decode(rendered.parts, encoder.card.frames, encoder.card.sample_rate)
    return encoder.prepare(contents, rendered.mode)


def _try(encoder: Encoder, needs: Sequence[Need]) -> None:
    """A forward pass over what can be read."""
    ready = []
    for need in needs:
        with suppress(UnreadableMedia):
            ready.append(prepare(encoder, need))
    if ready:
        encoder.embed(ready)


def _length(need: Need) -> int:
    return sum(len(part.text) for part in need.item.parts if isinstance(part, Text))


def weigh(value: Any) -> int:
    """About how many bytes a prepared value holds: pixels, samples, tensors. Words and the unknown are nothing."""
    if isinstance(value, str):
        return 0
    if isinstance(value, Image.Image):
        return 4 * value.width * value.height  # as Pillow keeps colours
    if isinstance(value, list) and value and isinstance(value[0], (int, float)):
        return 0  # tokens: not worth a look at each
    if isinstance(value, (list, tuple)):
        return sum(map(weigh, value))
    if isinstance(value, Mapping):
        return sum(map(weigh, value.values()))
    if is_dataclass(value) and not isinstance(value, type):
        return sum(weigh(getattr(value, part.name, None)) for part in fields(value))
    held = len(value) if isinstance(value, bytes) else getattr(value, "nbytes", 0)  # of numpy and torch alike
    return held if isinstance(held, int) else 0


class Backlog:
    """Bytes prepared and not yet taken. While they are too many, only the chunk that is awaited goes on."""

    def __init__(self) -> None:
        self.held, self.turn, self.closed, self.changed = 0, -1, False, Condition()

    def admits(self, turn: int) -> bool:
        """Waits for room for one more of this chunk; False when nobody wants it any more."""
        if self.held >= MOST_BYTES:
            with self.changed:
                self.changed.wait_for(lambda: self.held < MOST_BYTES or turn == self.turn or self.closed)
        return not self.closed

    def change(self, weight: int = 0, turns: int = 0, closed: bool = False) -> None:
        """More or fewer bytes, the next chunk awaited, or the end."""
        with self.changed:
            self.held, self.turn, self.closed = self.held + weight, self.turn + turns, self.closed or closed
            self.changed.notify_all()


def _prepared(
    pool: ThreadPoolExecutor,
    encoder: Encoder,
    needs: Sequence[Need],
    workers: int,
    size: BatchSize,
    name: Callable[[Need], str],
) -> Generator[Ready]:
    """Needs with their prepared values (or why they are unreadable), in order, a bounded way ahead of the encoder."""
    backlog, words = Backlog(), needs[0].item.modalities == ("text",)

    def work(turn: int, chunk: Sequence[Need]) -> list[Ready]:
        out: list[Ready] = []
        for need in chunk:
            if not backlog.admits(turn):
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
            weight = 0 if words else weigh(value)
            if weight:
                backlog.change(weight)
            out.append((need, value, weight))
        return out

    step = TEXT_CHUNK if words else CHUNK
    chunks = enumerate([needs[at : at + step] for at in range(0, len(needs), step)])
    ahead: deque[Future[list[Ready]]] = deque()
    try:
        while True:
            room = 2 * workers + 2 * size.now // step - len(ahead)
            ahead.extend(pool.submit(work, turn, chunk) for turn, chunk in islice(chunks, max(0, room)))
            if not ahead:
                return
            backlog.change(turns=1)
            for need, value, weight in ahead.popleft().result():
                if weight:
                    backlog.change(-weight)
                yield need, value, weight
    finally:
        backlog.change(closed=True)


def _forward(
    encoder: Encoder, batch: list[tuple[Need, Any]], size: BatchSize, name: Callable[[Need], str]
) -> Iterator[tuple[list[tuple[Need, Any]], Any]]:
    """(piece, vectors) of the batch; in halves as long as memory does not suffice."""
    if not batch:
        return
    start = time.perf_counter()
    try:
        vectors = encoder.embed([value for _, value in batch])
    except Interrupted as cut:
        if cut.done:  # paid for, so kept
            rows = sorted(cut.done)
            piece = [batch[row] for row in rows]
            yield from _sound(encoder, piece, np.stack([cut.done[row] for row in rows]), name)
        raise
    except Exception as error:
        if not _out_of_memory(error):
            raise
        if len(batch) == 1:
            raise EmbarkError(
                f"{encoder.card.name} has not enough memory for one item: {name(batch[0][0])}."
            ) from error
    else:
        size.took(len(batch), time.perf_counter() - start)
        yield from _sound(encoder, batch, vectors, name)
        return
    # Outside the handler: as long as the error lives, so does all that the failed pass had put on the device.
    _free_device_memory()
    size.failed(len(batch))
    half = len(batch) // 2
    yield from _forward(encoder, batch[:half], size, name)
    yield from _forward(encoder, batch[half:], size, name)


def _sound(encoder: Encoder, batch: list[Any], vectors: Any, name: Callable[[Need], str]) -> Iterator[tuple[Any, Any]]:
    """A batch with its vectors, checked; where some are unsound, the others come first, and then the error."""
    try:
        kept = checked(vectors, encoder.card, [need for need, _ in batch], name)
    except Unsound as error:
        good = sorted(set(range(len(batch))) - set(error.rows))
        if good:
            some = vectors[good] if hasattr(vectors, "shape") else [vectors[row] for row in good]
            yield from _sound(encoder, [batch[row] for row in good], some, name)
        raise
    yield batch, kept


def _out_of_memory(error: Exception) -> bool:
    said = str(error).lower()
    return isinstance(error, MemoryError) or any(words in said for words in NO_MEMORY)


def _free_device_memory() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
