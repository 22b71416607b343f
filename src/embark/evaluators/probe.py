"""Linear probe: a logistic regression learns a few examples of each class, several times over, and classifies the rest.

`published` is the papers' probe: raw vectors and scikit-learn's default tolerance, with which it may stop before it has
learnt anything (short vectors, many classes). `sound` standardises each dimension by the mean and deviation of the
sampled examples alone, and runs to convergence. A probe that did not train is never passed over in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from embark import metrics
from embark.evaluators.similarity import blocks, whole
from embark.evaluators.threads import blas_threads
from embark.types import Array, EmbarkError, Scores, Split

VERSION = 1
PARAMS = {"shots": int, "runs": int, "seed": int, "max_iter": int, "probe": ("published", "sound")}
MAX_ITER = {"published": 100, "sound": 1_000}
Job = TypeVar("Job")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Run:
    """One probe: the class it gave each test item, and how many steps its solver made."""

    predicted: Array
    iterations: int


def evaluate(truth: Split, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Means over the runs. Parameters: probe, shots, runs, seed, max_iter, metric."""
    shots, runs, seed = sizes(truth, params, shots=16)
    if truth.train.ndim != 1 or truth.test.ndim != 1:
        raise EmbarkError("The probe needs one label an item; for several use 'multilabel'.")
    known, size = np.unique(truth.train, return_counts=True)
    if len(known) < 2:
        raise EmbarkError(
            f"All training items are of one class ('{truth.names[known[0]]}'): there is nothing to learn."
        )
    kind = params.get("probe", "published")
    if kind not in MAX_ITER:
        raise EmbarkError(f"Unknown probe '{kind}'; known: {', '.join(MAX_ITER)}.")
    limit = int(params.get("max_iter", MAX_ITER[kind]))
    picks = picked(truth, samples, shots, runs, seed)
    found = probes(truth.train, picks, vectors, kind, limit, seed)
    each = [measures(truth.test, run.predicted, known, len(truth.names)) for run in found]
    means = {name: float(np.mean([values[name] for values in each])) for name in each[0]}
    main = params.get("metric", "accuracy")
    if main not in means:
        raise EmbarkError(f"The probe has no measure '{main}'; it has {', '.join(means)}.")
    right = np.stack([run.predicted == truth.test for run in found]).astype(np.float64)
    counts = {"test items": len(truth.test), "classes": len(known), "runs": runs, "examples a run": len(picks[0])}
    counts["runs at the iteration limit"] = sum(run.iterations >= limit for run in found)
    said = [*_trap(found, truth.test, kind), *_gaps(truth, known, int((size < shots).sum()), shots)]
    return Scores(
        means, main, "test", np.arange(len(truth.test)), columns("accuracy", right), "runs", counts, tuple(said)
    )


def narrow(truth: Split, params: Mapping[str, Any]) -> tuple[Split, dict[str, Array]]:
    """Draw the samples now, so that only the training rows that some run learns from need vectors."""
    shots, runs, seed = sizes(truth, params, shots=16)
    return with_samples(truth, samples(truth.train, shots, runs, seed))


def with_samples(truth: Split, picks: Sequence[Array]) -> tuple[Split, dict[str, Array]]:
    """The truth with each row's place in each run's sample, and which training rows are in any."""
    drawn = np.full((len(truth.train), len(picks)), -1, np.int64)
    for run, rows in enumerate(picks):
        drawn[rows, run] = np.arange(len(rows))
    return replace(truth, drawn=drawn), {"train": np.asarray((drawn >= 0).any(axis=1))}


def picked(truth: Split, samples: Callable[..., list[Array]], shots: int, runs: int, seed: int) -> list[Array]:
    """The rows each run learns from: as drawn before, or drawn now."""
    if truth.drawn is None:
        return samples(truth.train, shots, runs, seed)
    return [order[place[order] >= 0] for place in truth.drawn.T for order in [np.argsort(place, kind="stable")]]


def samples(labels: Array, shots: int, runs: int, seed: int) -> list[Array]:
    """The rows each run learns from: the first so many of each label, in shuffled order.

    As published, the generator starts afresh for each run but the list stays shuffled, so permutations compose.
    """
    order, picks = np.arange(len(labels)), []
    for _ in range(runs):
        np.random.RandomState(seed).shuffle(order)
        given = labels[order]
        grouped = np.argsort(given, kind="stable")
        _, start, size = np.unique(given[grouped], return_index=True, return_counts=True)
        place = np.empty(len(order), np.int64)  # of an item among those of its label
        place[grouped] = np.arange(len(order)) - np.repeat(start, size)
        picks.append(order[place < shots])
    return picks


def probes(
    labels: Array, picks: Sequence[Array], vectors: Mapping[str, Any], kind: str, limit: int, seed: int
) -> list[Run]:
    """Fit and apply one probe a run."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sound, test = kind == "sound", whole(vectors["test"], "dot")

    def run(job: tuple[Array, Array]) -> Run:
        examples, given = job
        if sound:  # in float32 the gradient is too noisy for this tolerance
            examples, steps = examples.astype(np.float64), [StandardScaler()]
            last = LogisticRegression(tol=1e-7, max_iter=limit, random_state=seed)
        else:
            steps, last = [], LogisticRegression(max_iter=limit, random_state=seed)
        model = make_pipeline(*steps, last).fit(examples, given)
        return Run(model.predict(test), int(last.n_iter_.max()))

    return in_parallel(run, list(zip(taken(vectors["train"], picks), (labels[rows] for rows in picks), strict=True)))


def measures(true: Array, predicted: Array, known: Array, classes: int) -> dict[str, float]:
    """The measures of a classification; for two classes average precision as well."""
    values, seen = metrics.classification(true, predicted, classes), np.unique(true)
    if len(known) == 2 and np.array_equal(seen, known):
        actual, guessed = true == known[1], predicted == known[1]
        hits, claimed = int((actual & guessed).sum()), int(guessed.sum())
        recall, precision = hits / int(actual.sum()), hits / max(claimed, 1)
        # Yes or no is a ranking of two steps: those predicted positive, then everything.
        ap = float(recall * precision + (1 - recall) * actual.mean())
        values |= {"ap": ap, "ap_weighted": ap}
    return values


# ── what the multilabel probe shares ─────────────────────────────────────────────────────────────────────────────────


def sizes(truth: Split, params: Mapping[str, Any], shots: int) -> tuple[int, int, int]:
    """Shots, runs and seed, after a look at both sides."""
    for side, labels in (("training", truth.train), ("test", truth.test)):
        if not len(labels):
            raise EmbarkError(f"The {side} side is empty: a probe needs items to learn from and items to classify.")
    chosen = {"shots": int(params.get("shots", shots)), "runs": int(params.get("runs", 5))}
    for name, number in chosen.items():
        if number < 1:
            raise EmbarkError(f"The parameter '{name}' must be at least 1, not {number}.")
    return chosen["shots"], chosen["runs"], int(params.get("seed", 42))


def taken(vectors: Any, picks: Sequence[Array]) -> list[Array]:
    """The picked rows of each run; every vector is checked, but only those that some run needs are held."""
    needed, parts = np.unique(np.concatenate(picks)), []
    for start, rows in blocks(vectors, "dot"):
        assert isinstance(rows, np.ndarray)
        here = needed[slice(*np.searchsorted(needed, (start, start + len(rows))))]
        parts.append(rows[here - start])
    held = np.concatenate(parts)
    return [held[np.searchsorted(needed, rows)] for rows in picks]


def in_parallel(work: Callable[[Job], Done], jobs: Sequence[Job]) -> list[Done]:
    """Results in order. Fits run side by side, each with its share of the cores for its matrix products: such small
    products gain nothing from more threads, and lose much where the threads get in each other's way."""
    from joblib import cpu_count  # type: ignore[import-untyped]  # knows a container's limits
    from sklearn.exceptions import ConvergenceWarning

    workers = min(len(jobs), cpu_count())
    share = max(1, cpu_count() // workers)
    # Not to converge is no news: iterations are counted instead.
    with blas_threads(share, ConvergenceWarning), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, jobs))


def columns(name: str, runs: Array) -> dict[str, Array]:
    """Outcomes from (runs, items): their mean, then a column for each run."""
    return {name: runs.mean(axis=0)} | {f"{name}_run{number}": run for number, run in enumerate(runs, 1)}


# ── warnings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _trap(found: Sequence[Run], test: Array, kind: str) -> list[str]:
    stopped = sum(run.iterations == 0 for run in found)
    alike = sum(len(np.unique(run.predicted)) == 1 for run in found) if len(np.unique(test)) > 1 else 0
    if not (stopped or alike):
        return []
    way_out = " (use probe='sound')" if kind == "published" else ""
    what = f"{stopped} of {len(found)} runs stopped at iteration 0 and {alike} predicted one class"
    return [f"the probe did not train: {what}; the score is an artefact{way_out}"]


def _gaps(truth: Split, known: Array, small: int, shots: int) -> list[str]:
    said, unseen = [], np.setdiff1d(truth.test, known)
    if small:
        said.append(f"{small} of {len(known)} classes have fewer than {shots} training items: all they have were used")
    if len(unseen):
        items = int(np.isin(truth.test, unseen).sum())
        first = truth.names[unseen[0]]
        said.append(
            f"{len(unseen)} test classes have no training item ('{first}' first): their {items} items are misses"
        )
    return said
