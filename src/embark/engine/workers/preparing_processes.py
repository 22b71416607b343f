"""Items prepared by worker processes, where there are enough of them: threads wait for each other's Python.

A process gets the rendered parts of an item, reads and decodes them and does the encoder's own CPU work, as a thread
would; the model stays here. An item that kills its process, or does not end, is unreadable.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from PIL import Image

from embark.engine.activity import SILENT, Activity
from embark.engine.batching.batches import BatchSize, Ready
from embark.engine.workers.item_worker import PillowOptions, RenderedItem, item_worker
from embark.engine.workers.preparing import MOST_BYTES, byte_sizes, prepare, prepare_named, prepared_by_threads
from embark.engine.workers.watch import Watch
from embark.items.decoding import UnreadableMedia
from embark.items.jpeg import plain_jpeg
from embark.items.lazy_media import ArchiveFile
from embark.items.upright import UprightMedia
from embark.models.encoder import Encoder, Preparation, TextParts, unchanged
from embark.models.tokens import FastTokenizer, Tokens
from embark.planning import Need
from embark.processes import POSSIBLE, SINGLE_THREADED, NoWorkers, WorkerLost, Workers, WorkersDie
from embark.settings import item_limits
from embark.types import Media, Part

PICTURES = 8  # pictures that a process prepares at a time
# Items that make up for the start of processes, half a second; of several modalities, the last decides.
ENOUGH_ITEMS = {"text": 50_000, "image": 2000, "audio": 400, "video": 100}
SLOW_START = 20  # times as many for those that import torch or transformers, ten seconds
PICTURED = {"image", "video"}
LOOKED_AT = 8  # pictures at each of two places, to tell whether processes or the device decode most of them
TEXT_PROCESSES = 8  # at most, and one a worker: one tokenises 13,000 to 50,000 short texts a second
WORKERS_FOR_TEXTS = 4
TOKENIZING = {**SINGLE_THREADED, "TOKENIZERS_PARALLELISM": "false"}
FEWEST_WORKERS = 2  # for which processes are started: as fast as two threads, and other threads need not wait for them


def pays(kind: str, items: int, workers: int, slow_start: bool) -> bool:
    """Whether so many items of a kind are prepared sooner by processes than by threads."""
    return workers >= FEWEST_WORKERS and items >= ENOUGH_ITEMS[kind] * (SLOW_START if slow_start else 1)


class Preparer(AbstractContextManager["Preparer"]):
    """Worker processes that prepare items; they live from call to call, until the encoder changes or it is closed.

    `start` says whether so many items are enough to start them (default: `pays`); `seconds` is the limit for one item
    (default: the setting `item_seconds`).
    """

    def __init__(
        self, workers: int, start: Callable[[str, int, int, bool], bool] | None = None, seconds: float | None = None
    ) -> None:
        self.workers = workers
        self.processes: Workers | None = None
        self._start = start or pays
        self._seconds = seconds or float(item_limits()["item_seconds"])
        self._of: Preparation | None = None  # what the processes do
        self._factory = b""  # the same, pickled
        self._items = 0  # that could have been prepared by processes so far
        self._refused: set[bytes] = set()  # factories that do not work in a process
        self._tokenizing: Workers | None = None
        self._tokenizer: FastTokenizer | None = None  # what they do
        self._texts = 0  # that they could have prepared so far
        self._lost: dict[bytes, UnreadableMedia] = {}  # by key: items that killed their process are not tried again

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they work on."""
        self._close_media()
        self._close_texts()

    def _close_media(self) -> None:
        if self.processes is not None:
            self.processes.close()
            self.processes = None

    def begin(self, encoder: Encoder, needs: Sequence[Need]) -> None:
        """Start the processes, if these needs, all of one kind, and those before them are enough to pay for it."""
        if POSSIBLE and needs and needs[0].item.modalities == ("text",):
            self._begin_texts(encoder, len(needs))
            return
        preparation = encoder.capabilities.preparation
        if not POSSIBLE or preparation is None or not needs or not _covers(preparation, needs[0].item.parts):
            return
        modalities = set(needs[0].item.modalities)
        encoded = encoder.capabilities.encoded
        if encoded & modalities and _mostly_plain_jpegs(needs):
            # The device decodes them: they are only read, which threads do as well. Where processes decoded some of
            # them, too, an H200 with 16 cores was up to a quarter slower: the threads that drive it waited for more.
            return
        if PICTURED & modalities and _knows_other_formats():
            return
        kind = max(modalities, key=list(ENOUGH_ITEMS).index)
        worker = partial(item_worker, preparation, encoder.card.sample_rate, encoded, PillowOptions.of_this_process())
        try:
            factory = pickle.dumps(worker, 5)
        except Exception:  # classes of others raise whatever they like
            return
        if factory in self._refused:
            return
        if factory != self._factory:
            self._close_media()
            self._factory = factory
            self._items = 0
        self._items += len(needs)
        slow_start = b"torch" in factory or b"transformers" in factory
        self._of = preparation
        if self.processes is None and self._start(kind, self._items, self.workers, slow_start):
            self.processes = Workers([worker] * self.workers, seconds=self._seconds, environment=SINGLE_THREADED)

    def _begin_texts(self, encoder: Encoder, count: int) -> None:
        """Start processes that tokenise. They pay where several threads drive a device, which wait for others' Python;
        elsewhere texts are prepared faster than they are sent.
        """
        able = encoder.capabilities
        if able.text_preparation is None or able.lanes == 1 or self.workers < WORKERS_FOR_TEXTS:
            return
        tokenizer = able.text_preparation()
        if tokenizer is None:
            return
        if tokenizer != self._tokenizer:
            self._close_texts()
            self._tokenizer = tokenizer
            self._texts = 0
        self._texts += count
        if self._tokenizing is None and self._start("text", self._texts, self.workers, False):
            self._tokenizing = Workers(
                [partial(unchanged, tokenizer)] * min(TEXT_PROCESSES, self.workers),
                seconds=self._seconds,
                environment=TOKENIZING,
            )

    def tokenizes(self, encoder: Encoder) -> bool:
        """Whether processes tokenise for this encoder."""
        own = encoder.capabilities.text_preparation
        if self._tokenizing is None or own is None:
            return False
        tokenizer = own()
        return tokenizer is not None and tokenizer == self._tokenizer

    def text_parts(self, texts: Sequence[str]) -> TextParts | None:
        """The tokens of texts, by a process; None if they are to be prepared here."""
        processes = self._tokenizing
        if processes is None:
            return None
        try:
            [tokens] = processes.submit([texts]).result()
        except NoWorkers:
            self._close_texts()
            return None
        except Exception:  # again here, for the error that names the item
            return None
        return TextParts(tokens) if isinstance(tokens, Tokens) and len(tokens) == len(texts) else None

    def _close_texts(self) -> None:
        if self._tokenizing is not None:
            self._tokenizing.close()
            self._tokenizing = None

    def takes(self, encoder: Encoder, need: Need) -> bool:
        """Whether the processes prepare such needs."""
        preparation = encoder.capabilities.preparation
        if self.processes is None or preparation is None or preparation is not self._of:
            return False
        return _covers(preparation, need.render(encoder).parts)

    def prepare(self, encoder: Encoder, need: Need) -> Any:
        """As `engine.preparing.prepare`, by a process if they take it."""
        if self.takes(encoder, need):
            [value] = self._finished([need], self._submit(encoder, [need]), lambda need: None)
            if isinstance(value, UnreadableMedia):
                raise value
            if value is not None:
                return value
        return prepare(encoder, need)

    def prepared(
        self,
        encoder: Encoder,
        needs: Sequence[Need],
        size: BatchSize,
        here: Callable[[Need], Any],
        activity: Activity = SILENT,
    ) -> Generator[Ready, None, int]:
        """The prepared values of needs, in order; processes prepare a bounded number ahead of the encoder.

        `here` prepares a need in this process: what cannot be sent, and what fails, for the error that names it.
        Returns the number of needs that are done; the others are left where no process can do the work, as threads are
        faster than `here`.
        """
        step = PICTURES if needs[0].item.modalities == ("image",) else 1
        chunks = (list(needs[start : start + step]) for start in range(0, len(needs), step))
        ahead: deque[tuple[Sequence[Need], Future[list[Any]] | None]] = deque()
        chunk_bytes: float | None = None  # of a prepared chunk, about
        done = 0
        try:
            while self.processes is not None:
                room = self.workers if chunk_bytes is None else 3 * self.workers + 2 * size.now // step
                room = min(room, int(MOST_BYTES / chunk_bytes) if chunk_bytes else room)
                ahead.extend(
                    (chunk, self._submit(encoder, chunk)) for chunk in islice(chunks, max(not ahead, room - len(ahead)))
                )
                if not ahead:
                    return done
                with activity.waiting("decode"):
                    values = self._finished(*ahead.popleft(), here)
                sizes = byte_sizes(values)
                chunk_bytes = max(0.9 * (chunk_bytes or 0), int(sizes.sum()))
                yield Ready(np.arange(done, done + len(values)), values, sizes)
                done += len(values)
                del values
            return done
        finally:
            for _, future in ahead:
                if future is not None:
                    future.cancel()

    def _submit(self, encoder: Encoder, chunk: Sequence[Need]) -> Future[list[Any]] | None:
        """The work on a chunk, without lost items; None if it is to be done here."""
        rendered = [need.render(encoder) for need in chunk if need.key not in self._lost]
        preparation = encoder.capabilities.preparation
        assert preparation is not None
        if self.processes is None or not rendered or not all(_covers(preparation, seen.parts) for seen in rendered):
            return None
        try:
            return self.processes.submit(
                [_Sent(RenderedItem(seen.parts, seen.mode, seen.frames or encoder.card.frames)) for seen in rendered]
            )
        except NoWorkers as error:
            self._refuse(error)
            return None

    def _finished(
        self, chunk: Sequence[Need], future: Future[list[Any]] | None, here: Callable[[Need], Any]
    ) -> list[Any]:
        if future is not None:
            try:
                values = future.result()
            except NoWorkers as error:
                self._refuse(error)
            except Exception:  # again here, for the error that names the item
                pass
            else:
                results = iter(values)
                lost = set(self._lost)  # before these results
                return [
                    self._lost[need.key] if need.key in lost else self._result(need, next(results)) for need in chunk
                ]
        return [here(need) if need.key not in self._lost else self._lost[need.key] for need in chunk]

    def _refuse(self, error: NoWorkers) -> None:
        """Do the work here from now on: in a process it lacks the main module, or a library.

        Where processes can do it but die of it, their error is raised: this one would die, too.
        """
        self._close_media()
        if isinstance(error, WorkersDie):
            raise error
        self._refused.add(self._factory)

    def _result(self, need: Need, value: Any) -> Any:
        if not isinstance(value, WorkerLost):
            return value
        return self._lost.setdefault(need.key, UnreadableMedia(f"it does not decode: it {value}"))


def prepared(
    encoder: Encoder,
    needs: Sequence[Need],
    workers: int,
    size: BatchSize,
    name: Callable[[Need], str],
    preparer: Preparer | None = None,
    activity: Activity = SILENT,
    watch: Watch | None = None,
) -> Generator[Ready]:
    """The prepared values of all needs, in order; workers prepare a bounded number ahead of the encoder.

    `watch` knows the items that stalled before, and is told of others.
    """
    alone = partial(prepare_named, encoder, name=name)
    watch = watch or Watch(encoder.card.name, name, activity)
    done = 0
    if preparer is not None and preparer.takes(encoder, needs[0]):
        done = yield from preparer.prepared(encoder, needs, size, partial(watch.prepare, alone), activity)
    if done < len(needs):
        tokens = preparer.text_parts if preparer is not None and preparer.tokenizes(encoder) else None
        yield from prepared_by_threads(encoder, needs[done:], done, workers, size, alone, watch, tokens)


@contextmanager
def preparer_of_call(preparer: Preparer | None, workers: int) -> Iterator[Preparer]:
    """The caller's preparer, or one that ends with the block."""
    if preparer is not None:
        yield preparer
        return
    with Preparer(workers) as own:
        yield own


def _mostly_plain_jpegs(needs: Sequence[Need]) -> bool:
    """Whether most pictures are such, by a look at the first and at some in the middle: of a parquet file, pictures far
    apart would each cost the reading of many.
    """
    plain = []
    middle = max(LOOKED_AT, len(needs) // 2)
    for need in chain(needs[:LOOKED_AT], needs[middle : middle + LOOKED_AT]):
        with suppress(Exception):  # preparing says what is wrong with it
            plain += [bool(plain_jpeg(part.read()[0])) for part in need.item.parts if isinstance(part, Media)]
    return 2 * sum(plain) >= len(plain)


def _knows_other_formats() -> bool:
    """Whether Pillow was taught to open formats in this process, which others would find unreadable."""
    openers = [opener for opener, _ in Image.OPEN.values()]
    return not all(getattr(opener, "__module__", "").startswith("PIL.") for opener in openers)


def _covers(preparation: Preparation, parts: Sequence[Part]) -> bool:
    return all(part.kind in preparation.modalities for part in parts)


class _Sent:
    """A rendered item on its way to a process."""

    def __init__(self, item: RenderedItem) -> None:
        self.item = item

    def __reduce__(self) -> tuple[Any, ...]:
        """As the item alone. Bytes of a parquet file are read here, where it is read once; other files, there."""
        return RenderedItem, (tuple(map(sendable, self.item.parts)), self.item.mode, self.item.frames)


def sendable(part: Part, files: bool = True) -> Part:
    """A part whose bytes another process has, or can read: where it sees the same `files`, those that are files."""
    readable = (bytes, partial, ArchiveFile) if files else (bytes,)
    if not isinstance(part, Media) or all(isinstance(chunk, readable) for chunk in part.chunks):
        return part
    chunks = part.read()
    plain = Media(part.kind, chunks)  # of a class that a process knows without reading parquet files
    if not isinstance(part, UprightMedia):
        return plain
    upright = UprightMedia(part.kind, chunks, plain)
    vars(upright)["orientation"] = part.orientation
    return upright
