"""Linear probe: a logistic regression learns a few examples of each class, several times over, and classifies the rest.

`published` is the papers' probe: raw vectors and scikit-learn's default tolerance, with which it may stop before it has
learnt anything (short vectors, many classes). `sound` standardises each dimension by the mean and deviation of the
sampled examples alone, and runs to convergence. A warning reports a probe that did not train.
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
from embark.seams import Evaluator
from embark.types import Array, EmbarkError, Option, Scores, Split

PARAMS = {
    "shots": Option(int, "Examples of each class that a run learns from (16)."),
    "runs": Option(int, "Samples of examples, over which the score is averaged."),
    "seed": Option(int, "The seed of the samples."),
    "max_iter": Option(int, "The limit of the solver's iterations."),
    "probe": Option(("published", "sound"), "The papers' probe, or one that is standardised and runs to convergence."),
}
MAX_ITER = {"published": 100, "sound": 1_000}
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class FittedProbe:
    """The class that one run's probe gave each test item, and how many iterations its solver made."""

    predicted: Array
    iterations: int


def evaluate(truth: Split, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Means over the runs. Parameters: probe, shots, runs, seed, max_iter, metric."""
    shots, runs, seed = sampling_params(truth, params, shots=16)
    if truth.train.ndim != 1 or truth.test.ndim != 1:
        raise EmbarkError("The probe needs one label per item; for several use 'multilabel'.")
    classes, class_sizes = np.unique(truth.train, return_counts=True)
    if len(classes) < 2:
        raise EmbarkError(
            f"All training items are of one class ('{truth.names[classes[0]]}'): there is nothing to learn."
        )
    kind = params.get("probe", "published")
    max_iter = int(params.get("max_iter", MAX_ITER[kind]))
    samples_of_runs = drawn_samples(truth, samples, shots, runs, seed)
    fitted = probes(truth.train, samples_of_runs, vectors, kind, max_iter, seed)
    measured = [measures(truth.test, probe.predicted, classes, len(truth.names)) for probe in fitted]
    means = {name: float(np.mean([values[name] for values in measured])) for name in measured[0]}
    right = np.stack([probe.predicted == truth.test for probe in fitted]).astype(np.float64)
    counts = {
        "test items": len(truth.test),
        "classes": len(classes),
        "runs": runs,
        "examples a run": len(samples_of_runs[0]),
        "runs at the iteration limit": sum(probe.iterations >= max_iter for probe in fitted),
    }
    small = int((class_sizes < shots).sum())
    warnings = (*_training_warnings(fitted, truth.test, kind), *_class_warnings(truth, classes, small, shots))
    classes_of_items = {f"predicted_run{run}": probe.predicted for run, probe in enumerate(fitted, 1)}
    outcomes = columns("accuracy", right) | {"label": truth.test} | classes_of_items
    main = PROBE.metric(params)
    return Scores(means, main, "test", np.arange(len(truth.test)), outcomes, "runs", counts, warnings)


def narrow(truth: Split, params: Mapping[str, Any]) -> tuple[Split, dict[str, Array]]:
    """Draw the samples now, so that only the training rows that some run learns from need vectors."""
    return with_samples(truth, samples(truth.train, *sampling_params(truth, params, shots=16)))


def with_samples(truth: Split, samples_of_runs: Sequence[Array]) -> tuple[Split, dict[str, Array]]:
    """The truth with each training row's place in each run's sample, and a mask of the rows that are in any sample."""
    drawn = np.full((len(truth.train), len(samples_of_runs)), -1, np.int64)
    for run, rows in enumerate(samples_of_runs):
        drawn[rows, run] = np.arange(len(rows))
    return replace(truth, drawn=drawn), {"train": np.asarray((drawn >= 0).any(axis=1))}


def drawn_samples(truth: Split, samples: Callable[..., list[Array]], shots: int, runs: int, seed: int) -> list[Array]:
    """The training rows of each run: those that `narrow` has drawn, else drawn here."""
    if truth.drawn is None:
        return samples(truth.train, shots, runs, seed)
    return [order[place[order] >= 0] for place in truth.drawn.T for order in [np.argsort(place, kind="stable")]]


def samples(labels: Array, shots: int, runs: int, seed: int) -> list[Array]:
    """The training rows of each run: the first `shots` rows of each label, in shuffled order.

    As published, the generator starts afresh for each run but the list stays shuffled, so permutations compose.
    """
    order = np.arange(len(labels))
    samples_of_runs = []
    for _ in range(runs):
        np.random.RandomState(seed).shuffle(order)
        shuffled = labels[order]
        grouped = np.argsort(shuffled, kind="stable")
        _, start, size = np.unique(shuffled[grouped], return_index=True, return_counts=True)
        place = np.empty(len(order), np.int64)  # of an item among those of its label
        place[grouped] = np.arange(len(order)) - np.repeat(start, size)
        samples_of_runs.append(order[place < shots])
    return samples_of_runs


def probes(
    labels: Array, samples_of_runs: Sequence[Array], vectors: Mapping[str, Any], kind: str, max_iter: int, seed: int
) -> list[FittedProbe]:
    """Fit one probe for each run, and apply it to the test items."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    test = whole(vectors["test"], "dot")

    def fit(job: tuple[Array, Array]) -> FittedProbe:
        examples, example_labels = job
        if kind == "sound":
            examples = examples.astype(np.float64)  # in float32 the gradient is too noisy for this tolerance
            classifier = LogisticRegression(tol=1e-7, max_iter=max_iter, random_state=seed)
            model = make_pipeline(StandardScaler(), classifier)
        else:
            model = classifier = LogisticRegression(max_iter=max_iter, random_state=seed)
        model.fit(examples, example_labels)
        return FittedProbe(model.predict(test), int(classifier.n_iter_.max()))

    return in_parallel(fit, labeled_samples(vectors["train"], labels, samples_of_runs))


def measures(true: Array, predicted: Array, known: Array, classes: int) -> dict[str, float]:
    """The measures of a classification; average precision as well where the `known` classes are two."""
    values = metrics.classification(true, predicted, classes)
    if len(known) == 2 and np.array_equal(np.unique(true), known):
        actual, guessed = true == known[1], predicted == known[1]
        hits = int((actual & guessed).sum())
        recall, precision = hits / int(actual.sum()), hits / max(int(guessed.sum()), 1)
        # Predictions of two classes rank the items in two steps: predicted positives first, then the others.
        ap = float(recall * precision + (1 - recall) * actual.mean())
        values |= {"ap": ap, "ap_weighted": ap}
    return values


# ── shared with the multilabel probe ─────────────────────────────────────────────────────────────────────────────────


def sampling_params(truth: Split, params: Mapping[str, Any], shots: int) -> tuple[int, int, int]:
    """Shots (by default those given), runs and seed; an empty side, or a number below 1, is an error."""
    for side, labels in (("training", truth.train), ("test", truth.test)):
        if not len(labels):
            raise EmbarkError(f"The {side} side is empty: a probe needs items to learn from and items to classify.")
    shots, runs = int(params.get("shots", shots)), int(params.get("runs", 5))
    for name, number in (("shots", shots), ("runs", runs)):
        if number < 1:
            raise EmbarkError(f"The parameter '{name}' must be at least 1, not {number}.")
    return shots, runs, int(params.get("seed", 42))


def labeled_samples(vectors: Any, labels: Array, samples_of_runs: Sequence[Array]) -> list[tuple[Array, Array]]:
    """The vectors and labels of each run's sample.

    All vectors are checked, but only those that some run needs are held in memory.
    """
    needed = np.unique(np.concatenate(samples_of_runs))
    parts = []
    for start, rows in blocks(vectors, "dot"):
        assert isinstance(rows, np.ndarray)
        in_block = needed[slice(*np.searchsorted(needed, (start, start + len(rows))))]
        parts.append(rows[in_block - start])
    sampled = np.concatenate(parts)
    return [(sampled[np.searchsorted(needed, rows)], labels[rows]) for rows in samples_of_runs]


def in_parallel(work: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """The results of all jobs, in order, computed in threads.

    Each fit has its share of the cores for its matrix products: such small products gain nothing from more threads, and
    lose much where the threads get in each other's way.
    """
    from joblib import cpu_count  # type: ignore[import-untyped]  # knows a container's limits

    def quietly(job: Job) -> Result:
        # Libraries for matrix products now and then set the processor's error flags without any error; a fit that
        # really overflows shows in its predictions.
        with np.errstate(all="ignore"):
            return work(job)

    workers = min(len(jobs), cpu_count())
    # sklearn's warnings add nothing: fits that do not converge are counted by their iterations, and classes of few
    # items, which it takes for a regression, are noted.
    with blas_threads(max(1, cpu_count() // workers), UserWarning), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(quietly, jobs))


def columns(name: str, runs: Array) -> dict[str, Array]:
    """Outcome columns from (runs, items): the mean over runs, then a column for each run."""
    return {name: runs.mean(axis=0)} | {f"{name}_run{number}": run for number, run in enumerate(runs, 1)}


# ── warnings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _training_warnings(fitted: Sequence[FittedProbe], test: Array, kind: str) -> list[str]:
    """A warning if some run's solver made no iteration, or its probe gave all test items one class."""
    stopped = sum(probe.iterations == 0 for probe in fitted)
    constant = sum(len(np.unique(probe.predicted)) == 1 for probe in fitted) if len(np.unique(test)) > 1 else 0
    if not (stopped or constant):
        return []
    remedy = " (use probe='sound')" if kind == "published" else ""
    return [
        f"the probe did not train: {stopped} of {len(fitted)} runs stopped at iteration 0 and {constant} predicted "
        f"one class; the score is an artefact{remedy}"
    ]


def _class_warnings(truth: Split, classes: Array, small: int, shots: int) -> list[str]:
    """Warnings about the `small` classes with too few training items, and test classes with none."""
    warnings = []
    unseen = np.setdiff1d(truth.test, classes)
    if small:
        warnings.append(
            f"{small} of {len(classes)} classes have fewer than {shots} training items: all they have were used"
        )
    if len(unseen):
        items = int(np.isin(truth.test, unseen).sum())
        warnings.append(
            f"{len(unseen)} test classes have no training item ('{truth.names[unseen[0]]}' first): "
            f"their {items} items are misses"
        )
    return warnings


PROBE = Evaluator(
    "probe",
    (__doc__ or "").strip(),
    (Split,),
    evaluate,
    measures={"accuracy": "runs"},
    main="accuracy",
    params=PARAMS,
    imports=("sklearn.linear_model", "sklearn.pipeline", "sklearn.preprocessing"),
    narrow=narrow,
)
