"""The local engine, a pipeline: decode workers → batches → encoder → writer.

Workers prepare items ahead of the encoder and a writer thread commits its vectors, so the device waits for neither.
Where the encoder has several lanes, as many batches are in its hands at once. A killed run loses at most the commit
window (see `sink`), one that pays for its vectors at most the batch in flight.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np

from embark.allocation import keep_freed_memory
from embark.engine.activity import SILENT, Activity
from embark.engine.batching.batches import Batch, Kind, Window, by_kind, first_batches_first, fixed_size, seconds_left
from embark.engine.batching.compiling import trial_is_due, try_compiled
from embark.engine.batching.forward import Turns, forward, turns_of
from embark.engine.batching.self_check import checked_places, embed_twice
from embark.engine.batching.tuning import Tuning
from embark.engine.report import EmbeddingReport
from embark.engine.workers.lanes import Lanes
from embark.engine.workers.preparing import MOST_BYTES
from embark.engine.workers.preparing_processes import Preparer, prepared, preparer_of_call
from embark.engine.workers.sink import Sink
from embark.engine.workers.watch import Stalled, Watch
from embark.items.decoding import UnreadableMedia
from embark.models.device import own_stream
from embark.models.encoder import Encoder
from embark.planning import Need, keys_of, take
from embark.store import Writer
from embark.threads import rare_garbage_collection, short_turns

Job: TypeAlias = tuple[Kind, Batch, bool]  # whether a compiled pass is tried on the batch


class Embedding(AbstractContextManager["Embedding"]):
    """Needs whose batches are all in the encoder's hands, so that others may be handed over.

    `finish`, or leaving the `with` block, waits until their vectors are committed; `contexts` are what is open until
    then, and `conclude` is called at the end.
    """

    def __init__(
        self, report: EmbeddingReport, contexts: ExitStack, conclude: Callable[[], object] = lambda: None
    ) -> None:
        self.report = report
        self._contexts = contexts
        self._conclude = conclude

    def finish(self) -> EmbeddingReport:
        """Wait for the vectors; errors that the encoder meets meanwhile are raised."""
        with self:
            return self.report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._contexts.__exit__(kind, error, trace)
        if error is None:
            self._conclude()


def embed(encoder: Encoder, needs: Sequence[Need], writer: Writer, **options: Any) -> EmbeddingReport:
    """Embed every need and commit its vector; the options are those of `begin`."""
    return begin(encoder, needs, writer, **options).finish()


def begin(
    encoder: Encoder,
    needs: Sequence[Need],
    writer: Writer,
    *,
    workers: int = 2,
    batch_size: int | None = None,
    self_check: bool = False,
    preparer: Preparer | None = None,
    name: Callable[[Need], str] = lambda need: need.key.hex()[:12],
    advance: Callable[[int, float | None], None] = lambda items, left: None,
    tuning: Tuning | None = None,
    activity: Activity = SILENT,
) -> Embedding:
    """Hand every need to the encoder; where it has several lanes, the last batches are still there when this returns.

    `self_check` begins with a few items of each kind, alone and in a batch; a model that mixes them up is an error.
    `name` returns the name of a needed item for messages; `advance` is called with the number of items just finished
    and the seconds that the others will take. `preparer` has the worker processes of earlier calls, which it keeps;
    `tuning` remembers batch sizes from call to call, and from run to run; `activity` counts the time in the encoder and
    the waits for others.
    """
    keep_freed_memory()
    report = EmbeddingReport()
    tuning = tuning or Tuning()
    start = time.perf_counter()
    able = encoder.capabilities
    turns = turns_of(encoder)
    with ExitStack() as contexts:
        preparer = contexts.enter_context(preparer_of_call(preparer, workers))
        sink = contexts.enter_context(Sink(writer, activity, able.billed))
        contexts.enter_context(rare_garbage_collection())
        if able.lanes > 1:
            contexts.enter_context(short_turns())
        contexts.enter_context(tuning)
        watch = Watch(encoder.card.name, name, activity)
        fixed = batch_size or able.batch_size
        kinds = []
        for modalities, group in by_kind(needs):
            size = fixed_size(fixed) if fixed else tuning.size(encoder.card, modalities)
            kinds.append(Kind(group, size, modalities))
        for kind in kinds:
            preparer.begin(encoder, kind.needs)
        if self_check and not able.billed:
            for kind in kinds:
                rest = _embed_twice(encoder, kind.needs, fixed, sink, report, preparer, watch)
                kind.valid = len(kind.needs) - len(rest)
                kind.needs = rest
                advance(kind.valid, None)
        lanes = contexts.enter_context(_lanes(encoder, kinds, sink, report, name, advance, activity, turns))
        for kind, part in first_batches_first(kinds):
            with closing(prepared(encoder, part, workers, kind.size, name, preparer, activity, watch)) as ready:
                alike = not able.encoded.isdisjoint(kind.modalities)
                window = Window(part, ready, kind.size, MOST_BYTES // lanes.jobs_at_once, alike)
                while not kind.hopeless and _hand_over(encoder, lanes, kind, kinds, window, turns):
                    pass
        open_still = contexts.pop_all()

    def conclude() -> None:
        for kind in kinds:
            if kind.hopeless:
                kind.give_up(report)
        report.seconds = time.perf_counter() - start

    return Embedding(report, open_still, conclude)


def _hand_over(
    encoder: Encoder, lanes: Lanes[Job], kind: Kind, kinds: Sequence[Kind], window: Window, turns: Turns
) -> bool:
    """Hand the next batch of a kind to the lanes; False when there is none.

    A function of its own, so that a batch's memory is free before the next one is gathered.
    """
    batch = window.next_batch()
    if batch is None:
        return False
    if compilation := encoder.capabilities.compilation:
        compiled = compilation.decisions.get(kind.modalities, False)
        if compiled != compilation.on:
            lanes.wait()
            with turns.turn(alone=True):
                compilation.switch(compiled)
    trial = trial_is_due(encoder, kind, kinds)
    lanes.put((kind, batch, trial), alone=trial or kind.size.is_tried_by(batch))
    return True


def _lanes(
    encoder: Encoder,
    kinds: Sequence[Kind],
    sink: Sink,
    report: EmbeddingReport,
    name: Callable[[Need], str],
    advance: Callable[[int, float | None], None],
    activity: Activity,
    turns: Turns,
) -> Lanes[Job]:
    """The encoder's lanes, which embed batches, hand the vectors to the writer and count what became of the items."""
    lock = Lock()
    last = time.perf_counter()

    def work(job: Job) -> None:
        nonlocal last
        kind, batch, trial = job
        part = EmbeddingReport(unreadable=dict(batch.unreadable))  # its own: those that the model refuses are added
        if trial:
            with turns.turn(alone=True):
                warning = try_compiled(encoder, kind.modalities, batch.values)
            part.warnings += (warning,) if warning else ()
        alone = lanes.count == 1
        for needs, vectors in forward(encoder, batch, kind.size, part, name, turns, alone, activity):
            if lanes.left:  # after an error, when nobody waits for these vectors any more
                return
            sink.put(keys_of(needs), vectors)
            part.embedded += len(needs)
        with lock:
            now = time.perf_counter()
            kind.seconds += now - last
            last = now
            kind.done += len(batch) + len(batch.unreadable)
            kind.valid += part.embedded
            kind.invalid += len(part.invalid)
            report.add(part)
            advance(len(batch) + len(batch.unreadable), seconds_left(kinds))

    lanes = Lanes(encoder.capabilities.lanes, work, partial(own_stream, str(encoder.card.loaded.get("device", ""))))
    return lanes


def _embed_twice(
    encoder: Encoder,
    group: Sequence[Need],
    most: int | None,
    sink: Sink,
    report: EmbeddingReport,
    preparer: Preparer,
    watch: Watch,
) -> Sequence[Need]:
    """Embed a few items alone and together, at most so many, compare and store them; returns the others of the group.

    Whatever fails meanwhile is left to the run itself, where it is named.
    """
    rows = []
    sample = []
    for row in checked_places(len(group), most):
        try:
            value = watch.prepare(partial(preparer.prepare, encoder), group[row])
        except Stalled:
            raise
        except Exception:
            continue
        if not isinstance(value, UnreadableMedia):
            sample.append((group[row], value))
            rows.append(row)
    needs = [need for need, _ in sample]
    checked = embed_twice(encoder, needs, [value for _, value in sample], watch.name)
    if checked is None:
        return group
    stored, warning = checked
    report.warnings += (warning,) if warning else ()
    sink.put(keys_of(needs), stored)
    report.embedded += len(needs)
    return take(group, np.delete(np.arange(len(group)), rows))
