"""Free sweeps over stored vectors: shortened, in fewer bits, compared otherwise; scored by the task's own evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from embark.run.embedded_task import Change, Embedded, sampled
from embark.studies.curves import Setting, Sweep, curve
from embark.types import Array, EmbarkError

FITTED = 20_000  # items of a side that axes and scales are learnt from
LEAST = 8  # dimensions that truncation goes down to by default
COMPARED = ("retrieval", "choice", "zeroshot", "pairs", "robustness")  # evaluators that ask for a similarity
KINDS = ("cosine", "dot", "manhattan", "euclidean")  # what the sts evaluator knows


# ── the sweeps ───────────────────────────────────────────────────────────────────────────────────────────────────────


def truncate(tasks: Iterable[Embedded], dims: Sequence[int] = ()) -> Sweep:
    """The first so many dimensions of every vector, and as many principal axes; both keep a vector's length."""

    def settings(task: Embedded) -> list[Setting]:
        sizes, axes = _dims(task, dims), principal_axes(task)
        cuts: dict[str, Callable[[int], Change]] = {"first": first, "PCA": lambda size: projected(axes[:, :size])}
        found = [Setting(f"all {task.dim}", task, "", task.dim, _bytes(task, task.dim))]
        for group, cut in cuts.items():
            names = {size: f"{group} {size}" for size in sizes if size < task.dim}
            found += [
                Setting(name, task.changed(cut(size)), group, size, _bytes(task, size)) for size, name in names.items()
            ]
        return found

    notes = (
        "first d: the first dimensions (what Matryoshka training is for), scaled to the vector's length.",
        f"PCA d: the main axes of this very task's vectors (at most {FITTED:,} items a side), not centred;",
        "a rotation that was learnt on other data would keep less.",
    )
    return Sweep("Score of shortened vectors", "dimensions", tuple(curve(settings(task)) for task in tasks), notes)


def quantize(tasks: Iterable[Embedded], dims: Sequence[int] = ()) -> Sweep:
    """Fewer bits a number: as stored, int8 and one bit; at full length and at the first so many dimensions."""

    def settings(task: Embedded) -> list[Setting]:
        sizes = _dims(task, dims or (task.dim, task.dim // 2, task.dim // 4))
        sizes = [task.dim, *(size for size in sizes if size < task.dim)]
        kept = f"float{8 * task.itemsize}"
        found: list[Setting] = []
        for group, bits in ((kept, 8 * task.itemsize), ("int8", 8), ("binary", 1)):
            for size in sizes:
                cut = task if size == task.dim else task.changed(first(size))
                if group == "int8":
                    cut = cut.changed(in_bytes(largest(cut)))
                elif group == "binary":
                    cut = cut.changed(signs)
                room = task.tokens * (bits * size // 8 if bits > 1 else -(-size // 8))
                found.append(Setting(f"{group}, {size}", cut, group, room, room))
        return found

    notes = (
        "Behind the format: dimensions kept (the first ones).",
        "int8: one scale a dimension, which takes its largest size on this task to 127.",
        "binary: the sign of each dimension; comparing two is counting bits that differ (Hamming).",
    )
    return Sweep(
        "Score against the size of a vector", "bytes an item", tuple(curve(settings(task)) for task in tasks), notes
    )


def similarity(tasks: Iterable[Embedded]) -> Sweep:
    """The same vectors compared by cosine or by dot product; for sts by distances, too. The model's own comes first."""

    def settings(task: Embedded) -> list[Setting]:
        kind, own = task.task.evaluator, str(task.parts[0].params.get("similarity", "cosine"))
        if own == "maxsim":
            raise EmbarkError(f"{task.model} compares tokens (maxsim): there is no other similarity to try.")
        if kind == "sts":
            measure = task.task.metric.rpartition("_")
            own, statistic = measure[0] or own, measure[2]
            order = [own, *(each for each in KINDS if each != own)]
            return [Setting(each, task.under(metric=f"{each}_{statistic}")) for each in order]
        if kind not in COMPARED:
            raise EmbarkError(f"{task.task.name} is scored without a similarity ('{kind}' learns from raw vectors).")
        order = [own, *(each for each in KINDS[:2] if each != own)]
        return [Setting(each, task.under(similarity=each)) for each in order]

    tasks = tuple(tasks)
    alike = [task.model for task in tasks if _unit_length(task)]
    notes = tuple(f"{name}: all vectors have length one, so that these agree." for name in dict.fromkeys(alike))
    return Sweep("Score by similarity", "similarity", tuple(curve(settings(task)) for task in tasks), notes, "names")


# ── changes of vectors ───────────────────────────────────────────────────────────────────────────────────────────────


def first(size: int) -> Change:
    """The first dimensions, scaled so that the vector keeps its length."""
    return lambda rows: _as_long(np.ascontiguousarray(rows[:, :size]), rows)


def projected(axes: Array) -> Change:
    """The places along some axes, (dim, axes), scaled so that the vector keeps its length."""
    return lambda rows: _as_long(rows @ axes, rows)


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
    return [sampled(found, most) for part in task.parts for found in part.vectors.values()]


def _as_long(short: Array, whole: Array) -> Array:
    before, after = (np.linalg.norm(rows, axis=1, keepdims=True) for rows in (whole, short))
    return np.asarray(short * np.divide(before, after, out=np.zeros_like(before), where=after > 0))


def _unit_length(task: Embedded) -> bool:
    return all(np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-2) for rows in _samples(task))


def _dims(task: Embedded, dims: Sequence[int]) -> list[int]:
    """The sizes asked for, or halves; largest first."""
    if wrong := [size for size in dims if not 1 <= size <= task.dim]:
        raise EmbarkError(f"{task.model} has vectors of {task.dim} dimensions; it cannot be cut to {wrong[0]}.")
    halves = [task.dim >> times for times in range(task.dim.bit_length()) if task.dim >> times >= LEAST]
    return sorted(set(dims or halves), reverse=True)


def _bytes(task: Embedded, size: int) -> float:
    return task.tokens * task.itemsize * size
