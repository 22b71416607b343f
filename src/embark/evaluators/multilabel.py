"""Multilabel probe: items with several labels, learnt from a few examples of each label, in several runs.

`logistic` is one regression for each label, with probabilities ranked (the published numbers); `knn` is a vote of the
five nearest examples, with the bare decisions ranked (what mteb 2 runs). The main score is label ranking average
precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.evaluators.probe import columns, drawn_samples, in_parallel, labeled_samples, sampling_params, with_samples
from embark.evaluators.similarity import whole
from embark.seams import Evaluator
from embark.types import Array, EmbarkError, Option, Scores, Split

PARAMS = {
    "shots": Option(int, "Examples of each label that a run learns from (8)."),
    "runs": Option(int, "Samples of examples, over which the score is averaged."),
    "seed": Option(int, "The seed of the samples."),
    "classifier": Option(("logistic", "knn"), "A regression for each label, or a vote of the five nearest examples."),
}
NEIGHBOURS = 5


@dataclass(frozen=True)
class LabelPredictions:
    """One run: decisions and the scores that labels are ranked by, both (items, labels), and counts of bad fits."""

    predicted: Array
    score: Array
    constant: int = 0  # labels that all examples have, or none
    stopped: int = 0  # label probes that stopped at iteration 0
    limited: int = 0  # label probes that stopped at the iteration limit


def evaluate(truth: Split, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Scores:
    """Means over the runs. Parameters: classifier, shots, runs, seed, metric."""
    shots, runs, seed = sampling_params(truth, params, shots=8)
    if truth.train.ndim != 2 or truth.test.ndim != 2:
        raise EmbarkError("The multilabel probe needs labels as (items, classes); for one label per item use 'probe'.")
    if not truth.test.any():
        raise EmbarkError("No test item has a label: there is nothing to score.")
    used: Array = np.any(truth.test, axis=0)  # as published, a label that no test item has is not predicted
    train = truth.train[:, used]
    test = truth.test[:, used]
    classify = CLASSIFIERS[params.get("classifier", "logistic")]
    samples_of_runs = drawn_samples(truth, samples, shots, runs, seed)
    if not len(samples_of_runs[0]):
        raise EmbarkError("No training item has a label: there is nothing to learn.")
    test_vectors = whole(vectors["test"], "dot")
    jobs = labeled_samples(vectors["train"], train, samples_of_runs)
    predictions = in_parallel(lambda job: classify(*job, test_vectors), jobs)
    items = {
        name: np.stack([measure(test, run.predicted, run.score) for run in predictions])
        for name, measure in PER_ITEM.items()
    }
    means = {name: float(value.mean()) for name, value in items.items()}
    means["f1"] = float(np.mean([macro_f1(test, run.predicted) for run in predictions]))
    main = MULTILABEL.metric(params)
    return Scores(
        means,
        main,
        "test",
        np.arange(len(test)),
        columns(main, items[main]),
        "runs",
        counts={
            "test items": len(test),
            "labels": int(used.sum()),
            "runs": runs,
            "label probes at the iteration limit": sum(run.limited for run in predictions),
        },
        warnings=_warnings(predictions, used, test),
    )


def narrow(truth: Split, params: Mapping[str, Any]) -> tuple[Split, dict[str, Array]]:
    """Draw the samples now, so that only the training rows that some run learns from need vectors."""
    return with_samples(truth, samples(truth.train, *sampling_params(truth, params, shots=8)))


def samples(labels: Array, shots: int, runs: int, seed: int) -> list[Array]:
    """The training rows of each run: in shuffled order, every row with a label that still lacks examples.

    One generator serves all runs. A row counts for all its labels, so common labels end above the number of shots.
    """
    rng = np.random.default_rng(seed)
    labels_of_row = [np.flatnonzero(row).tolist() for row in labels]
    samples_of_runs = []
    for _ in range(runs):
        order = np.arange(len(labels))
        rng.shuffle(order)
        count = [0] * labels.shape[1]
        sample = []
        for row in order.tolist():
            if any(count[label] < shots for label in labels_of_row[row]):
                sample.append(row)
                for label in labels_of_row[row]:
                    count[label] += 1
        samples_of_runs.append(np.array(sample, np.int64))
    return samples_of_runs


# ── classifiers: examples, their labels, test rows ───────────────────────────────────────────────────────────────────


def logistic(examples: Array, labels: Array, test: Array) -> LabelPredictions:
    """One regression for each label; one matrix product applies them all to the test rows."""
    from scipy.special import expit
    from sklearn.linear_model import LogisticRegression

    weight = np.zeros((labels.shape[1], examples.shape[1]), np.float32)
    offset = np.where(labels[0], np.inf, -np.inf).astype(np.float32)  # certain, where the examples never differ
    varied = np.flatnonzero((labels != labels[0]).any(axis=0))
    models = [LogisticRegression().fit(examples, labels[:, label]) for label in varied]
    for label, model in zip(varied, models, strict=True):
        weight[label], offset[label] = model.coef_[0], model.intercept_[0]
    decision = test @ weight.T + offset
    stopped = sum(int(model.n_iter_[0]) == 0 for model in models)
    limited = sum(int(model.n_iter_[0]) >= model.max_iter for model in models)
    return LabelPredictions(decision > 0, expit(decision), len(offset) - len(varied), stopped, limited)


def knn(examples: Array, labels: Array, test: Array) -> LabelPredictions:
    """The majority of the nearest examples decides each label; labels are ranked by that decision."""
    from sklearn.neighbors import NearestNeighbors

    if len(examples) < NEIGHBOURS:
        raise EmbarkError(f"Only {len(examples)} training items were sampled; {NEIGHBOURS} neighbours are needed.")
    near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(examples).kneighbors(test, return_distance=False)
    predicted = labels[near].sum(axis=1) > NEIGHBOURS // 2
    return LabelPredictions(predicted, predicted.astype(np.float64), int((labels == labels[0]).all(axis=0).sum()))


CLASSIFIERS: Mapping[str, Callable[[Array, Array, Array], LabelPredictions]] = {"logistic": logistic, "knn": knn}


# ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def lrap(true: Array, predicted: Array, score: Array) -> Array:
    """Label ranking average precision of each item; ties rank last, and an item without labels scores 1."""
    order = np.argsort(-score, axis=1, kind="stable")
    score = np.take_along_axis(score, order, axis=1)
    relevant = np.take_along_axis(true, order, axis=1)
    place = np.arange(score.shape[1])
    ends = np.where(np.diff(score, axis=1, append=-np.inf) != 0, place, len(place))
    last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]  # the place of the last label with an equal score
    above = np.take_along_axis(np.cumsum(relevant, axis=1), last, axis=1)
    total = relevant.sum(axis=1)
    value: Array = (relevant * above / (last + 1)).sum(axis=1) / np.maximum(total, 1)
    return np.where(total == 0, 1.0, value)


def exact(true: Array, predicted: Array, score: Array) -> Array:
    """Whether all labels of an item are predicted right, both those it has and those it lacks."""
    right: Array = np.all(true == predicted, axis=1)
    return right.astype(np.float64)


def hamming(true: Array, predicted: Array, score: Array) -> Array:
    """mteb's "Hamming score": labels in truth and prediction over labels in either; 1 where there are none."""
    both = (true & predicted).sum(axis=1)
    either = (true | predicted).sum(axis=1)
    return np.where(either == 0, 1.0, both / np.maximum(either, 1))


PER_ITEM: Mapping[str, Callable[[Array, Array, Array], Array]] = {"lrap": lrap, "accuracy": exact, "hamming": hamming}


def macro_f1(true: Array, predicted: Array) -> float:
    """The mean of F1 over labels; a label neither true nor predicted scores 0."""
    hits = (true & predicted).sum(axis=0)
    total = true.sum(axis=0) + predicted.sum(axis=0)
    return float((2 * hits / np.maximum(total, 1)).mean())


def _warnings(predictions: Sequence[LabelPredictions], used: Array, test: Array) -> tuple[str, ...]:
    runs = len(predictions)
    constant = sum(bool((run.score == run.score[0]).all()) for run in predictions) if (test != test[0]).any() else 0
    probes = f"of {int(used.sum()) * runs} label probes"
    texts = (
        f"{sum(run.stopped for run in predictions)} {probes} did not train (they stopped at iteration 0)",
        f"{constant} of {runs} runs predicted the same for all items: the score is an artefact",
        f"{sum(run.constant for run in predictions)} {probes} saw their label in all of their examples, or in none",
        f"{int((~used).sum())} of {len(used)} labels have no test item and were left out",
    )
    return tuple(text for text in texts if not text.startswith("0 "))


MULTILABEL = Evaluator(
    "multilabel",
    (__doc__ or "").strip(),
    (Split,),
    evaluate,
    measures=dict.fromkeys(PER_ITEM, "runs"),
    main="lrap",
    params=PARAMS,
    imports=("sklearn.linear_model", "sklearn.neighbors"),
    narrow=narrow,
)
