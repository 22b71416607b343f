"""The local engine, a pipeline: decode workers → batches → encoder → writer.

Workers prepare items ahead of the encoder and a writer thread commits its vectors, so the device waits for neither.
Each batch is durable soon after it was computed; a killed run loses the last few batches at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice

from embark.data.items import as_keys
from embark.data.media import UnreadableMedia
from embark.engine.batches import BatchSize, Kind, by_kind, first_batches_first, new_batch_size, seconds_left
from embark.engine.check import check_vectors
from embark.engine.forward import forward, free_device_memory, out_of_memory
from embark.engine.preparing import MOST_BYTES, Ready, prepare, prepared
from embark.engine.preparing_processes import Preparer, preparer_of_call
from embark.engine.report import Report
from embark.engine.self_check import batch_warning
from embark.engine.sink import Sink
from embark.models.encoder import Billed, Encoder
from embark.planning import Need
from embark.store import Writer
from embark.threads import DaemonThreads
from embark.types import Modality

CHECKED = 4  # items of the self-check


def embed(
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
) -> Report:
    """Embed every need and commit its vector.

    `self_check` begins with a few items of each kind, alone and in a batch; a model that mixes them up is an error.
    `name` returns the name of a needed item for messages; `advance` is called with the number of items just finished
    and the seconds that the others will take. `preparer` has the worker processes of earlier calls, which it keeps.
    """
    report = Report()
    start = time.perf_counter()
    with (
        preparer_of_call(preparer, workers) as preparer,
        DaemonThreads(workers, "embark-prepare") as pool,
        Sink(writer) as sink,
    ):
        fixed = batch_size or encoder.batch_size
        kinds = [Kind(group, new_batch_size(fixed)) for group in by_kind(needs)]
        for kind in kinds:
            preparer.begin(encoder, kind.needs)
        if self_check and not isinstance(encoder, Billed):
            for kind in kinds:
                rest = _embed_twice(encoder, kind.needs, min(CHECKED, fixed or CHECKED), sink, report, name, preparer)
                kind.valid = len(kind.needs) - len(rest)
                kind.needs = rest
                advance(kind.valid, None)
        for kind, part in first_batches_first(kinds):
            with closing(prepared(pool, encoder, part, workers, kind.size, name, preparer)) as ready:
                while not kind.hopeless and (done := _timed_batch(encoder, ready, kind, sink, report, name)):
                    advance(done, seconds_left(kinds))
        for kind in kinds:
            if kind.hopeless:
                kind.give_up(report)
    report.seconds = time.perf_counter() - start
    return report


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
    for piece, vectors in forward(encoder, batch, size, report, name):
        sink.put(as_keys([need.key for need, _ in piece]), vectors)
        report.embedded += len(piece)
    return items


def _timed_batch(
    encoder: Encoder, ready: Iterator[Ready], kind: Kind, sink: Sink, report: Report, name: Callable[[Need], str]
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
    encoder: Encoder,
    group: list[Need],
    count: int,
    sink: Sink,
    report: Report,
    name: Callable[[Need], str],
    preparer: Preparer,
) -> list[Need]:
    """Embed a few items alone and together, compare and store them; returns the others of the group.

    Whatever fails meanwhile is left to the run itself, where it is named.
    """
    spread = [group[row] for row in sorted({row * (len(group) - 1) // max(1, count - 1) for row in range(count)})]
    sample = []
    for need in spread[1::2] + spread[::2]:  # neither the shortest nor the longest first: models sort by length
        with suppress(Exception):
            sample.append((need, preparer.prepare(encoder, need)))
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
            free_device_memory()
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


def _try(encoder: Encoder, needs: Sequence[Need]) -> None:
    """Embed the needs that can be read, without storing the vectors."""
    ready = []
    for need in needs:
        with suppress(UnreadableMedia):
            ready.append(prepare(encoder, need))
    if ready:
        encoder.embed(ready)
