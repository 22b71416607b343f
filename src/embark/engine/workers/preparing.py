"""Items made ready for the encoder: decoded, and put through its own CPU work, by workers ahead of the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from threading import Condition
from typing import Any, TypeAlias

import numpy as np
from PIL import Image

from embark.engine.batching.batches import BatchSize, Ready
from embark.engine.workers.watch import Attempt, Job, Watch, begin_stage
from embark.items import ItemList
from embark.items.decoding import Budget, UnreadableMedia, decode
from embark.items.jpeg import plain_jpeg
from embark.models.encoder import Encoder, prepare_many, renders_plainly
from embark.planning import Need, Needs, take
from embark.types import Array, Content, EmbarkError, Encoded, Modality, Text

Prepared: TypeAlias = tuple[Sequence[Any], Array]  # values of a chunk, and their bytes

CHUNK = 4  # items that a worker prepares at a time
TEXT_CHUNK = 64  # handing over a short text costs more than preparing it
TOGETHER = 512  # texts at a time, for an encoder that prepares many together
SENT = 2048  # texts at a time that go to a process: sending and receiving wait for other threads' turns each time
CHARACTERS = 128  # of a text, for that many of them at a time; of longer ones fewer, as they take long
DEVICE_FILES = 256  # files at a time that the device decodes: they are only read, a row group by each thread
MOST_TOGETHER = 128 << 20  # bytes of these files; of larger ones, each waits for room among the prepared items
FEW_THREADS = 3  # for texts and files: their work is Python, of which one thread runs, and lanes wait for their turn
MOST_BYTES = 1 << 30  # limit for prepared items: those of a batch, and those waiting for the next
REPORTED = MOST_BYTES // 64  # bytes that a worker has prepared before it says so


def prepare(encoder: Encoder, need: Need) -> Any:
    """The encoder's input for a need: decoded media, and the encoder's own CPU work on them."""
    rendered = need.render(encoder)
    encoded: frozenset[Modality] = frozenset() if rendered.mode else encoder.capabilities.encoded
    contents = decode(rendered.parts, rendered.frames or encoder.card.frames, encoder.card.sample_rate, encoded)
    begin_stage("prepare")
    return encoder.prepare(contents, rendered.mode)


def prepare_texts(
    encoder: Encoder, needs: Sequence[Need], by_processes: Callable[[Sequence[str]], Sequence[Any] | None] | None = None
) -> Sequence[Any]:
    """As `prepare` for needs of texts alone, all together; by processes, if they can. One that is too long is an error
    about all.
    """
    if _seen_as_they_are(encoder, needs, "text"):
        texts = needs.texts() if by_processes and isinstance(needs, Needs) else None
        if texts is not None:
            Budget().take_text(max(map(len, texts), default=0))
        values = by_processes(texts) if by_processes and texts is not None else None
        if values is None:
            contents = _contents(needs)
            Budget().take_text(max((sum(len(part.value) for part in parts) for parts in contents), default=0))
            begin_stage("prepare")
            values = prepare_many(encoder, contents, [""] * len(needs))
    else:
        rendered = [need.render(encoder) for need in needs]
        contents = [decode(seen.parts, encoder.card.frames, encoder.card.sample_rate) for seen in rendered]
        begin_stage("prepare")
        values = prepare_many(encoder, contents, [seen.mode for seen in rendered])
    if len(values) != len(needs):
        raise EmbarkError(f"{encoder.card.name} prepared {len(values)} items of {len(needs)}.")
    return values


def prepare_files(encoder: Encoder, needs: Sequence[Need], alone: Callable[[Need], Any]) -> list[Any] | None:
    """As `prepare` for needs of pictures whose files the encoder takes, without objects for every step; None where that
    is not possible. Pictures that are no plain JPEG are left to `alone`.
    """
    if not isinstance(needs, Needs) or not _seen_as_they_are(encoder, needs, "image"):
        return None
    pictures = needs.pictures()
    if pictures is None or sum(len(data) for data, _ in pictures) > MOST_TOGETHER:
        return None
    jpegs = [plain_jpeg(data, orientation) for data, orientation in pictures]
    begin_stage("prepare")
    values = [encoder.prepare([Content("image", jpeg)], "") if jpeg else None for jpeg in jpegs]
    others = [row for row, jpeg in enumerate(jpegs) if jpeg is None]
    for row, need in zip(others, take(needs, np.array(others, np.int64)), strict=True):
        begin_stage("decode")
        values[row] = alone(need)
    return values


def _seen_as_they_are(encoder: Encoder, needs: Sequence[Need], modality: Modality) -> bool:
    """Whether the encoder sees these texts, or pictures, without a prompt or anything else."""
    if not isinstance(needs, Needs) and any(type(need) is not Need for need in needs):
        return False  # one that renders in its own way
    styles = needs.styles if isinstance(needs, Needs) else [need.style for need in needs]
    distinct = {id(style): style for style in styles}.values()
    return all(renders_plainly(encoder, style, {modality}) for style in distinct)


def _contents(needs: Sequence[Need]) -> list[list[Content]]:
    """The contents of texts, without an object for each need where that is possible: there are millions of them."""
    if isinstance(needs, Needs) and (texts := needs.texts()) is not None:
        return [[Content("text", text)] for text in texts]
    return [[Content("text", part.text) for part in need.item.parts if isinstance(part, Text)] for need in needs]


def prepare_named(encoder: Encoder, need: Need, name: Callable[[Need], str]) -> Any:
    """As `prepare`, or the error that the item is unreadable; another error says which item it was."""
    try:
        return prepare(encoder, need)
    except UnreadableMedia as error:
        return error
    except EmbarkError as error:
        raise EmbarkError(f"{encoder.card.name} cannot embed {name(need)}: {error}") from error
    except Exception as error:
        error.add_note(f"{encoder.card.name} was preparing {name(need)}.")
        raise


def byte_size(value: Any) -> int:
    """The approximate memory of a prepared value in bytes: pixels, samples, tensors.

    Texts and unknown types count as 0.
    """
    if isinstance(value, Encoded):
        return len(value.data)
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


def byte_sizes(values: Sequence[Any]) -> Array:
    """The approximate memory of each prepared value."""
    return np.fromiter(map(byte_size, values), np.int64, len(values))


def chunked(needs: Sequence[Need], size: int) -> Iterator[Sequence[Need]]:
    """The needs in order, so many at a time; fewer where texts are long. Short ones stand before long ones."""
    rows = needs if isinstance(needs, Needs) else ItemList([need.item for need in needs])
    lengths = rows.lengths() if size > CHUNK else np.zeros(len(needs))
    characters = CHARACTERS * max(size, TOGETHER)
    start = 0
    while start < len(needs):
        longest = int(lengths[start : start + size][-1])
        end = start + min(size, max(CHUNK, characters // max(1, longest)))
        yield needs[start:end]
        start = end


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

    def count(self, attempt: Attempt, added: int) -> None:
        """Add the bytes of items that an attempt has prepared, unless nobody waits for it any more."""
        with self.changed:
            if not attempt.left:
                self.bytes += added
                attempt.bytes += added

    def drop(self, attempt: Attempt) -> None:
        """Remove the bytes of an attempt that nobody waits for any more."""
        with self.changed:
            attempt.left = True
            self.bytes -= attempt.bytes
            self.changed.notify_all()

    def update(self, removed: int = 0, chunks: int = 0, closed: bool = False) -> None:
        """Remove so many bytes, wait for so many chunks more, or want no more items."""
        with self.changed:
            self.bytes -= removed
            self.awaited += chunks
            self.closed |= closed
            self.changed.notify_all()


def _one_by_one(
    chunk: Sequence[Need],
    number: int,
    backlog: Backlog,
    alone: Callable[[Need], Any],
    measured: bool,
    attempt: Attempt,
    watch: Watch,
) -> tuple[list[Any], Array]:
    """The prepared values of a chunk, and their bytes if they are `measured`; fewer when no more are wanted."""
    values: list[Any] = []
    sizes: list[int] = []
    unreported = 0  # bytes: threads that report every small item wait for each other
    for need in chunk:
        if backlog.bytes >= MOST_BYTES:
            attempt.begin(())  # while it waits
        if attempt.left or not backlog.admits(number):
            break
        if need.key in watch.stalled:
            values.append(watch.stalled[need.key])
            sizes.append(0)
            continue
        attempt.begin([need])
        values.append(alone(need))
        watch.finished += 1
        sizes.append(byte_size(values[-1]) if measured else 0)
        unreported += sizes[-1]
        if unreported >= REPORTED:
            backlog.count(attempt, unreported)
            unreported = 0
    if unreported:
        backlog.count(attempt, unreported)
    return values, np.array(sizes, np.int64)


def prepared_by_threads(
    encoder: Encoder,
    needs: Sequence[Need],
    done: int,
    workers: int,
    size: BatchSize,
    alone: Callable[[Need], Any],
    watch: Watch,
    by_processes: Callable[[Sequence[str]], Sequence[Any] | None] | None,
) -> Generator[Ready]:
    """The prepared values of needs, in order, after so many that are done; `alone` prepares one, and texts are perhaps
    prepared `by_processes`. A chunk whose preparation stalls is begun again without the item that it stalls with.
    """
    backlog = Backlog()
    modalities = needs[0].item.modalities
    only_text = modalities == ("text",)
    files = not encoder.capabilities.encoded.isdisjoint(modalities)
    threads = min(FEW_THREADS, workers) if (only_text and not by_processes) or files else workers
    together = only_text and encoder.capabilities.prepare_many is not None

    def prepare_all(number: int, chunk: Sequence[Need], attempt: Attempt) -> Prepared:
        failure: Exception | None = None
        if together and not watch.singly and backlog.admits(number):
            attempt.begin(chunk)
            try:
                values = prepare_texts(encoder, chunk, by_processes)
                watch.finished += len(chunk)
                return values, np.zeros(len(chunk), np.int64)
            except Exception as error:  # again one by one, where the error names its item
                failure = error
        if files and not watch.singly and backlog.admits(number):
            attempt.begin(chunk)
            with suppress(Exception):  # again one by one, where the error names its item
                if (of_files := prepare_files(encoder, chunk, alone)) is not None:
                    in_bytes = byte_sizes(of_files)
                    backlog.count(attempt, int(in_bytes.sum()))
                    watch.finished += len(chunk)
                    return of_files, in_bytes
        values, sizes = _one_by_one(chunk, number, backlog, alone, not only_text, attempt, watch)
        if failure and len(values) == len(chunk) and not isinstance(failure, UnreadableMedia):
            failure.add_note(f"{encoder.card.name} prepares these items one by one, but not together (prepare_many).")
            raise failure
        return values, sizes

    of_texts = (SENT if by_processes else TOGETHER) if together else TEXT_CHUNK
    step = of_texts if only_text else DEVICE_FILES if files else CHUNK
    chunks = enumerate(chunked(needs, step))
    ahead: deque[tuple[int, Job[Prepared]]] = deque()
    with watch.threads(threads) as pool:
        try:
            while True:
                items = sum(count for count, _ in ahead)
                while len(ahead) < 2 * threads or items < 2 * size.now:
                    number, chunk = next(chunks, (0, ()))
                    if not chunk:
                        break
                    ahead.append((len(chunk), pool.start(partial(prepare_all, number, chunk), backlog.drop)))
                    items += len(chunk)
                if not ahead:
                    return
                backlog.update(chunks=1)
                values, sizes = pool.result(ahead.popleft()[1])
                if size_in_bytes := int(sizes.sum()):
                    backlog.update(removed=size_in_bytes)
                yield Ready(np.arange(done, done + len(values)), values, sizes)
                done += len(values)
                del values  # their memory is free while the next are waited for
        finally:
            backlog.update(closed=True)
