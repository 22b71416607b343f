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
from itertools import islice
from queue import SimpleQueue
from threading import Semaphore
from typing import Any

import numpy as np
from PIL import Image

from embark.data.jpeg import plain_jpeg
from embark.data.lazy_media import ArchiveFile
from embark.data.media import UnreadableMedia
from embark.data.upright import UprightMedia
from embark.engine.activity import SILENT, Activity
from embark.engine.batches import BatchSize, Ready
from embark.engine.item_worker import PillowOptions, RenderedItem, item_worker
from embark.engine.preparing import FEW_THREADS, FILES, MOST_BYTES, byte_sizes, prepare
from embark.models.encoder import Encoder, Preparation
from embark.planning import Need, take
from embark.processes import AHEAD, ITEM_SECONDS, POSSIBLE, SINGLE_THREADED, NoWorkers, WorkerLost, Workers, WorkersDie
from embark.threads import DaemonThreads
from embark.types import Array, Media, Modality, Part

PICTURES = 8  # pictures that a process prepares at a time
ENOUGH = {"image": 2000, "audio": 400, "video": 100}  # items that make up for the start of processes, half a second
SLOW_START = 20  # times as many for those that import torch or transformers, ten seconds
MORE_TO_HELP = 10  # times as many where the device decodes, too: it is about as much faster
PICTURED = {"image", "video"}
LOOKED_AT = 16  # pictures, to tell whether processes or the device decode most of them
FEWEST = 2  # workers for which processes are started: as fast as two threads, and other threads need not wait for them


def pays(kind: str, items: int, workers: int, slow_start: bool) -> bool:
    """Whether so many items of a kind are prepared sooner by processes than by threads."""
    return workers >= FEWEST and items >= ENOUGH[kind] * (SLOW_START if slow_start else 1)


class Preparer(AbstractContextManager["Preparer"]):
    """Worker processes that prepare items; they live from call to call, until the encoder changes or it is closed.

    `start` says whether so many items are enough to start them (default: `pays`); `seconds` is the limit for one item.
    """

    def __init__(
        self, workers: int, start: Callable[[str, int, int, bool], bool] | None = None, seconds: float | None = None
    ) -> None:
        self.workers = workers
        self.processes: Workers | None = None
        self._start = start or pays
        self._seconds = seconds or ITEM_SECONDS
        self._of: Preparation | None = None  # what the processes do
        self._factory = b""  # the same, pickled
        self._items = 0  # that could have been prepared by processes so far
        self._shared: set[tuple[Modality, ...]] = set()  # kinds of which the device decodes most, processes others
        self._refused: set[bytes] = set()  # factories that do not work in a process
        self._lost: dict[bytes, UnreadableMedia] = {}  # by key: items that killed their process are not tried again

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they work on."""
        if self.processes is not None:
            self.processes.close()
            self.processes = None

    def begin(self, encoder: Encoder, needs: Sequence[Need]) -> None:
        """Start the processes, if these needs, all of one kind, and those before them are enough to pay for it."""
        preparation = getattr(encoder, "preparation", None)  # encoders of others may not inherit it
        if not POSSIBLE or preparation is None or not needs or not _covers(preparation, needs[0].item.parts):
            return
        modalities = needs[0].item.modalities
        if not ENOUGH.keys() & set(modalities):
            return  # texts are prepared faster than they are sent
        exact = getattr(encoder, "decodes_as_workers", False)
        encoded: frozenset[Modality] = getattr(encoder, "encoded", frozenset())
        kind = max(set(modalities) & ENOUGH.keys(), key=list(ENOUGH).index)
        enough = len(needs)
        self._shared.discard(modalities)
        if encoded & set(modalities) and _mostly_plain_jpegs(needs):
            if not exact:
                return  # the device decodes them: they are only read, which threads do as well
            self._shared.add(modalities)
            enough //= MORE_TO_HELP
        if PICTURED & set(modalities) and _knows_other_formats():
            return
        left = frozenset() if exact else encoded  # to the device; where it is exact, processes decode whatever they get
        worker = partial(item_worker, preparation, encoder.card.sample_rate, left, PillowOptions.of_this_process())
        try:
            factory = pickle.dumps(worker, 5)
        except Exception:  # classes of others raise whatever they like
            return
        if factory in self._refused:
            return
        if factory != self._factory:
            self.close()
            self._factory = factory
            self._items = 0
        self._items += enough
        slow_start = b"torch" in factory or b"transformers" in factory
        self._of = preparation
        if self.processes is None and self._start(kind, self._items, self.workers, slow_start):
            self.processes = Workers([worker] * self.workers, seconds=self._seconds, environment=SINGLE_THREADED)

    def takes(self, encoder: Encoder, need: Need) -> bool:
        """Whether the processes prepare such needs, all of them."""
        return self._can_prepare(encoder, need) and not self.helps(encoder, need)

    def helps(self, encoder: Encoder, need: Need) -> bool:
        """Whether the processes decode some of such needs, where the encoder itself decodes the others."""
        return need.item.modalities in self._shared and self._can_prepare(encoder, need)

    def _can_prepare(self, encoder: Encoder, need: Need) -> bool:
        preparation: Preparation | None = getattr(encoder, "preparation", None)
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

    def shared(
        self,
        pool: DaemonThreads,
        encoder: Encoder,
        needs: Sequence[Need],
        size: BatchSize,
        here: Callable[[Need], Any],
        activity: Activity = SILENT,
    ) -> Generator[Ready]:
        """The prepared values of needs, as they come: threads read files for the encoder, which decodes them, and the
        processes decode as many others as they can meanwhile. What they cannot decode the encoder tries, too, so that
        it does not depend on who took a picture whether it is readable.
        """
        turns = Semaphore(FEW_THREADS)
        finished: SimpleQueue[tuple[bool, Array, list[Need], Future[Any] | None]] = SimpleQueue()
        futures: set[Future[Any]] = set()
        begun = 0
        in_hand = {True: 0, False: 0}  # needs, of processes and of threads
        item_bytes = 0.0  # of a prepared item, about

        def read(chunk: list[Need]) -> list[Any]:
            with turns:
                return self._finished(chunk, None, here)

        def decoded(chunk: list[Need], future: Future[Any] | None) -> list[Any]:
            values = zip(chunk, self._finished(chunk, future, here), strict=True)
            return [
                here(need) if isinstance(value, UnreadableMedia) and need.key not in self._lost else value
                for need, value in values
            ]

        def begin(by_processes: bool, most: int) -> None:
            """Have the next needs prepared, at most so many."""
            nonlocal begun
            rows = np.arange(begun, min(begun + most, len(needs)))
            chunk = list(take(needs, rows))
            begun += len(rows)
            in_hand[by_processes] += len(rows)
            future = self._submit(encoder, chunk) if by_processes else pool.submit(read, chunk)
            if future is None:
                finished.put((by_processes, rows, chunk, future))
            else:
                futures.add(future)
                future.add_done_callback(lambda done: finished.put((by_processes, rows, chunk, done)))

        try:
            while True:
                room = max(1, int(MOST_BYTES / item_bytes) // 2) if item_bytes else 2 * FILES
                limits = {
                    True: min(room, AHEAD * PICTURES * self.workers) if self.processes is not None else 0,
                    False: min(room, 2 * size.now + FILES),
                }
                for by_processes, limit in limits.items():
                    while begun < len(needs) and in_hand[by_processes] < limit:
                        begin(by_processes, min(room, PICTURES if by_processes else FILES))
                if not any(in_hand.values()):
                    return
                with activity.waiting("decode"):
                    by_processes, rows, chunk, future = finished.get()
                in_hand[by_processes] -= len(rows)
                if future is not None:
                    futures.discard(future)
                values = decoded(chunk, future) if by_processes or not future else future.result()
                sizes = byte_sizes(values)
                item_bytes = max(0.9 * item_bytes, float(sizes.mean()), 1.0)
                yield Ready(rows, values, sizes)
                del values, future
        finally:
            for future in futures:
                future.cancel()

    def _submit(self, encoder: Encoder, chunk: Sequence[Need]) -> Future[list[Any]] | None:
        """The work on a chunk, without lost items; None if it is to be done here."""
        rendered = [need.render(encoder) for need in chunk if need.key not in self._lost]
        preparation = encoder.preparation
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
        self.close()
        if isinstance(error, WorkersDie):
            raise error
        self._refused.add(self._factory)

    def _result(self, need: Need, value: Any) -> Any:
        if not isinstance(value, WorkerLost):
            return value
        return self._lost.setdefault(need.key, UnreadableMedia(f"it does not decode: it {value}"))


@contextmanager
def preparer_of_call(preparer: Preparer | None, workers: int) -> Iterator[Preparer]:
    """The caller's preparer, or one that ends with the block."""
    if preparer is not None:
        yield preparer
        return
    with Preparer(workers) as own:
        yield own


def _mostly_plain_jpegs(needs: Sequence[Need]) -> bool:
    """Whether most pictures are such, by a look at a few."""
    plain = []
    for need in needs[:: max(1, len(needs) // LOOKED_AT)]:
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
