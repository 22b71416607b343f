"""Scores of changed vectors: shortened, in fewer bits, or compared by another similarity. No model runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Unpack

import numpy as np

from embark.run.embedded_task import Change, Embedded, sampled
from embark.run.models import Models
from embark.studies.stored_tasks import SharedArguments, stored_tasks
from embark.studies.sweep import Sweep, Variant, score_variants
from embark.tasks import Tasks
from embark.types import Array, EmbarkError

FITTED = 20_000  # items of a side that axes and scales are learnt from
SMALLEST = 8  # dimensions that truncation goes down to by default
COMPARED = ("retrieval", "choice", "zeroshot", "pairs", "robustness")  # evaluators that ask for a similarity
SIMILARITIES = ("cosine", "dot", "manhattan", "euclidean")  # what the sts evaluator knows


def truncate(model: Models, tasks: Tasks, *, dims: Sequence[int] = (), **shared: Unpack[SharedArguments]) -> Sweep:
    """Score shortened vectors: the first `dims` dimensions (Matryoshka), and as many principal axes.

    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    return truncated(stored_tasks(model, tasks, **shared), dims)


def quantize(model: Models, tasks: Tasks, *, dims: Sequence[int] = (), **shared: Unpack[SharedArguments]) -> Sweep:
    """Score vectors in fewer bits (int8, binary), whole and cut to the first `dims` dimensions.

    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    return quantized(stored_tasks(model, tasks, **shared), dims)


def similarity(model: Models, tasks: Tasks, **shared: Unpack[SharedArguments]) -> Sweep:
    """Score by cosine and by dot product; similarity tasks by distances, too.

    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    return compared(stored_tasks(model, tasks, **shared))


# ── sweeps over tasks with their vectors ─────────────────────────────────────────────────────────────────────────────


def truncated(tasks: Iterable[Embedded], dims: Sequence[int] = ()) -> Sweep:
    """The first so many dimensions of every vector, and as many principal axes; both keep a vector's length."""

    def variants(task: Embedded) -> list[Variant]:
        sizes = [size for size in _dims(task, dims) if size < task.dim]
        axes = principal_axes(task)
        cuts: dict[str, Callable[[int], Change]] = {"first": first, "PCA": lambda size: projected(axes[:, :size])}
        return [
            Variant(f"all {task.dim}", task, "", task.dim, _bytes(task, task.dim)),
            *(
                Variant(f"{group} {size}", task.changed(cut(size)), group, size, _bytes(task, size))
                for group, cut in cuts.items()
                for size in sizes
            ),
        ]

    definitions = (
        "first d: the first dimensions (what Matryoshka training is for), scaled to the vector's length.",
        f"PCA d: the main axes of this very task's vectors (at most {FITTED:,} items per side), not centred;",
        "a rotation that was learnt on other data would keep less.",
    )
    curves = tuple(score_variants(variants(task)) for task in tasks)
    return Sweep("Score of shortened vectors", "dimensions", curves, definitions)


def quantized(tasks: Iterable[Embedded], dims: Sequence[int] = ()) -> Sweep:
    """Fewer bits a number: as stored, half precision, int8 and one bit; at full length and the first dimensions."""

    def variants(task: Embedded) -> list[Variant]:
        sizes = _dims(task, dims or (task.dim, task.dim // 2, task.dim // 4))
        sizes = [task.dim, *(size for size in sizes if size < task.dim)]
        stored = 8 * task.itemsize
        variants = []
        for group, bits in ((f"float{stored}", stored), ("float16", 16), ("int8", 8), ("binary", 1)):
            for size in sizes if bits < stored or group == f"float{stored}" else ():
                changed = task if size == task.dim else task.changed(first(size))
                if group == "int8":
                    changed = changed.changed(in_bytes(largest(changed)))
                elif group == "binary":
                    changed = changed.changed(signs)
                elif bits < stored:
                    changed = changed.changed(halves)
                item_bytes = task.tokens * (bits * size // 8 if bits > 1 else -(-size // 8))
                variants.append(Variant(f"{group}, {size}", changed, group, item_bytes, item_bytes))
        return variants

    definitions = (
        "Behind the format: dimensions kept (the first ones).",
        "int8: one scale per dimension, which takes its largest size on this task to 127.",
        "binary: the sign of each dimension; comparing two is counting bits that differ (Hamming).",
    )
    curves = tuple(score_variants(variants(task)) for task in tasks)
    return Sweep("Score against the size of a vector", "bytes an item", curves, definitions)


def compared(tasks: Iterable[Embedded]) -> Sweep:
    """The same vectors by cosine or by dot product; for sts by distances, too. The model's own comes first."""

    def variants(task: Embedded) -> list[Variant]:
        evaluator = task.task.evaluator
        own = str(task.parts[0].params.get("similarity", "cosine"))
        if own == "maxsim":
            raise EmbarkError(f"{task.model} compares tokens (maxsim): there is no other similarity to try.")
        if evaluator == "sts":
            stated, _, statistic = task.task.metric.rpartition("_")
            own = stated or own
            names = [own, *(name for name in SIMILARITIES if name != own)]
            return [Variant(name, task.under(metric=f"{name}_{statistic}")) for name in names]
        if evaluator not in COMPARED:
            raise EmbarkError(
                f"{task.task.name} is scored without the model's similarity: '{evaluator}' compares in its own way, or "
                "learns from raw vectors."
            )
        names = [own, *(name for name in SIMILARITIES[:2] if name != own)]
        return [Variant(name, task.under(similarity=name)) for name in names]

    tasks = tuple(tasks)
    unit_length = dict.fromkeys(task.model for task in tasks if _unit_length(task))
    definitions = tuple(f"{model}: all vectors have length one, so that these agree." for model in unit_length)
    curves = tuple(score_variants(variants(task)) for task in tasks)
    return Sweep("Score by similarity", "similarity", curves, definitions, "names")


# ── changes of vectors ───────────────────────────────────────────────────────────────────────────────────────────────


def first(size: int) -> Change:
    """The first dimensions, scaled so that the vector keeps its length."""
    return lambda rows: _scaled(np.ascontiguousarray(rows[:, :size]), rows)


def projected(axes: Array) -> Change:
    """The places along some axes, (dim, axes), scaled so that the vector keeps its length."""
    return lambda rows: _scaled(rows @ axes, rows)


def halves(rows: Array) -> Array:
    """Numbers in half precision."""
    return rows.astype(np.float16).astype(np.float32)


def in_bytes(most: Array) -> Change:
    """Whole numbers from -127 to 127 times a scale a dimension; what exceeds `most` is cut off."""
    scale = np.where(most > 0, most, 1).astype(np.float32) / 127
    return lambda rows: np.asarray(np.clip(np.rint(rows / scale), -127, 127) * scale, np.float32)


def signs(rows: Array) -> Array:
    """One bit a dimension, as 1 and -1."""
    return np.where(rows > 0, np.float32(1), np.float32(-1))


def principal_axes(task: Embedded) -> Array:
    """The axes of the task's unit vectors, (dim, dim), from the longest to the shortest."""
    total = np.zeros((task.dim, task.dim))
    for rows in _samples(task):
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0).astype(np.float64)
        total += rows.T @ rows
    return np.asarray(np.linalg.eigh(total)[1][:, ::-1], np.float32)


def largest(task: Embedded) -> Array:
    """The largest size of each dimension."""
    return np.asarray(np.max([np.abs(rows).max(axis=0) for rows in _samples(task)], axis=0))


def _samples(task: Embedded) -> list[Array]:
    """Some vectors of every side; a side that stands in several parts counts with each."""
    most = max(1, FITTED // len(task.parts))
    return [sampled(vectors, most) for part in task.parts for vectors in part.vectors.values()]


def _scaled(changed: Array, original: Array) -> Array:
    """The changed rows with the lengths of the original ones."""
    before = np.linalg.norm(original, axis=1, keepdims=True)
    after = np.linalg.norm(changed, axis=1, keepdims=True)
    return np.asarray(changed * np.divide(before, after, out=np.zeros_like(before), where=after > 0))


def _unit_length(task: Embedded) -> bool:
    return all(np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-2) for rows in _samples(task))


def _dims(task: Embedded, dims: Sequence[int]) -> list[int]:
    """The wanted dimensions, or halves of all; largest first."""
    if wrong := [size for size in dims if not 1 <= size <= task.dim]:
        raise EmbarkError(f"{task.model} has vectors of {task.dim} dimensions; it cannot be cut to {wrong[0]}.")
    halves = [task.dim >> times for times in range(task.dim.bit_length()) if task.dim >> times >= SMALLEST]
    return sorted(set(dims or halves), reverse=True)


def _bytes(task: Embedded, size: int) -> float:
    return task.tokens * task.itemsize * size
