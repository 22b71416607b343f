"""The forward pass over a batch: halved where memory does not suffice, its vectors checked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from embark.engine.batches import BatchSize
from embark.engine.check import InvalidVectors, check_vectors
from embark.engine.report import Report
from embark.models.encoder import Encoder, Interrupted
from embark.planning import Need
from embark.processes import WorkerLost

NO_MEMORY = ("out of memory", "allocate memory", "alloc_failed", "bad_alloc", "bad allocation")  # of torch, onnx…


def forward(
    encoder: Encoder, batch: list[tuple[Need, Any]], size: BatchSize, report: Report, name: Callable[[Need], str]
) -> Iterator[tuple[list[tuple[Need, Any]], Any]]:
    """(piece, vectors) of the batch: one piece, or halves of halves where memory does not suffice.

    An item that does not fit even alone is reported, and the others go on; so is one that no worker process survives.
    """
    if not batch:
        return
    start = time.perf_counter()
    lost = ""
    try:
        vectors = encoder.embed([value for _, value in batch])
    except Interrupted as cut:
        if cut.done:  # a provider has charged for them, so they are stored
            rows = sorted(cut.done)
            yield from _valid(
                encoder, [batch[row] for row in rows], np.stack([cut.done[row] for row in rows]), report, name
            )
        raise
    except WorkerLost as error:
        lost = str(error)
    except Exception as error:
        if not out_of_memory(error):
            raise
    else:
        size.record_time(len(batch), time.perf_counter() - start)
        yield from _valid(encoder, batch, vectors, report, name)
        return
    # Outside the handler, because the error holds all that the failed pass had put on the device.
    free_device_memory()
    if len(batch) == 1:
        need = batch[0][0]
        if lost:
            report.unreadable[need.key] = f"the model cannot embed it: it {lost}"
            return
        report.too_large[need.key] = f"{encoder.card.name} has not enough memory for one item: {name(need)}"
        return
    if not lost:
        size.record_out_of_memory(len(batch))
        report.batch_size = min(size.now, report.batch_size or size.now)
    half = len(batch) // 2
    yield from forward(encoder, batch[:half], size, report, name)
    yield from forward(encoder, batch[half:], size, report, name)


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


def free_device_memory() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
