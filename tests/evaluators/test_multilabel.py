"""The multilabel probe: parity with mteb, sampling and measures against plain oracles, labels that never vary."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as oracle
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier

from embark.evaluators import evaluate as evaluate_kind
from embark.evaluators.multilabel import PER_ITEM, evaluate, exact, hamming, knn, logistic, lrap, macro_f1, samples
from embark.types import Array, EmbarkError, Split

PARITY = Path(__file__).parents[1] / "samples" / "parity" / "multilabel_probe"


def split(train: Array, test: Array) -> Split:
    return Split(train, test, tuple(f"label {number}" for number in range(train.shape[1])))


def case(labels: int = 5, dim: int = 8, noise: float = 1.0, seed: int = 3) -> tuple[Split, dict[str, Array]]:
    """Items are sums of the vectors of their labels, of which each has one at least."""
    rng = np.random.default_rng(seed)
    meaning, truth, vectors = rng.normal(size=(labels, dim)), {}, {}
    for side, count in (("train", 120), ("test", 60)):
        own = rng.random((count, labels)) < 0.25
        own[np.arange(count), rng.integers(labels, size=count)] = True
        truth[side] = own
        vectors[side] = (own @ meaning + noise * rng.normal(size=(count, dim))).astype(np.float32)
    return split(truth["train"], truth["test"]), vectors


# ── parity and known answers ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_number_of_mteb() -> None:
    given_, expected = (json.loads((PARITY / f"{name}.json").read_text()) for name in ("truth", "expected"))
    sides = {side: given_[f"{side}_labels"] for side in ("train", "test")}
    truth = split(*(np.array([[at in own for at in range(8)] for own in sides[side]]) for side in sides))
    vectors = dict(np.load(PARITY / "inputs.npz"))
    params = {"shots": given_["samples_per_label"], "runs": given_["n_experiments"], "seed": given_["seed"]}
    found = evaluate(truth, vectors, params)
    assert found.value == pytest.approx(expected.pop("main_score"), abs=1e-6)
    each = expected.pop("scores_per_experiment")
    assert found.metrics == pytest.approx(expected, abs=1e-6)
    for pick, one in zip(samples(truth.train, *params.values()), each, strict=True):
        run = logistic(vectors["train"][pick], truth.train[pick], vectors["test"])
        values = {name: f(truth.test, run.predicted, run.score).mean() for name, f in PER_ITEM.items()}
        assert values | {"f1": macro_f1(truth.test, run.predicted)} == pytest.approx(one, abs=1e-6)
    for number, one in enumerate(each, 1):
        assert found.outcomes[f"lrap_run{number}"].mean() == pytest.approx(one["lrap"], abs=1e-6)


@pytest.mark.parametrize("classifier", ["logistic", "knn"])
def test_a_golden_case(classifier: str) -> None:
    found = evaluate_kind("multilabel", *case(), {"classifier": classifier})
    assert found.metrics == pytest.approx(GOLDEN[classifier], abs=1e-6)
    assert found.warnings == ()


def test_outcomes_are_each_run_and_their_mean() -> None:
    truth, vectors = case()
    found = evaluate(truth, vectors, {"runs": 3})
    assert list(found.outcomes) == ["lrap", "lrap_run1", "lrap_run2", "lrap_run3"]
    runs = np.stack([found.outcomes[f"lrap_run{number}"] for number in (1, 2, 3)])
    assert found.outcomes["lrap"] == pytest.approx(runs.mean(axis=0))
    assert found.outcomes["lrap"].mean() == pytest.approx(found.value)
    assert (found.main, found.unit, found.statistic, len(found.rows)) == ("lrap", "test", "runs", 60)
    assert list(evaluate(truth, vectors, {"metric": "hamming", "runs": 1}).outcomes) == ["hamming", "hamming_run1"]
    assert "f1" in found.metrics
    with pytest.raises(EmbarkError, match="'multilabel' has no measure 'f1'"):  # no item has a value of it
        evaluate(truth, vectors, {"metric": "f1", "runs": 1})


def test_the_classifiers_are_those_of_scikit_learn() -> None:
    truth, vectors = case(noise=2.0)
    train, test = vectors["train"], vectors["test"]
    each = MultiOutputClassifier(LogisticRegression()).fit(train, truth.train)
    run = logistic(train, truth.train, test)
    assert np.array_equal(run.predicted, each.predict(test))
    assert run.score == pytest.approx(np.stack([p[:, 1] for p in each.predict_proba(test)], axis=1), abs=1e-6)
    near = KNeighborsClassifier(n_neighbors=5).fit(train, truth.train)
    assert np.array_equal(knn(train, truth.train, test).predicted, near.predict(test))


# ── sampling ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 5))), st.integers(1, 4), st.integers(1, 3))
def test_sampling_takes_rows_with_a_label_still_short(labels: Array, shots: int, runs: int) -> None:
    rng = np.random.default_rng(5)
    expected: list[list[int]] = []
    for _ in range(runs):
        order = list(range(len(labels)))
        rng.shuffle(order)
        seen: Counter[int] = Counter()
        expected.append([])
        for row in order:
            own = np.flatnonzero(labels[row]).tolist()
            if any(seen[label] < shots for label in own):
                expected[-1].append(row)
                seen.update(own)
    assert [pick.tolist() for pick in samples(labels, shots, runs, 5)] == expected


# ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SHAPE = st.shared(st.tuples(st.integers(1, 12), st.integers(2, 6)), key="shape")


@given(arrays(bool, SHAPE), arrays(bool, SHAPE), arrays(np.float64, SHAPE, elements=st.sampled_from([0, 0.1, 0.5, 1])))
def test_measures_are_those_of_scikit_learn(true: Array, predicted: Array, score: Array) -> None:
    expected = oracle.label_ranking_average_precision_score(true, score)
    assert lrap(true, predicted, score).mean() == pytest.approx(expected, abs=1e-12)
    assert exact(true, predicted, score).mean() == oracle.accuracy_score(true, predicted)
    expected = oracle.jaccard_score(true, predicted, average="samples", zero_division=1)
    assert hamming(true, predicted, score).mean() == pytest.approx(expected, abs=1e-12)
    expected = oracle.f1_score(true, predicted, average="macro", zero_division=0)
    assert macro_f1(true, predicted) == pytest.approx(expected, abs=1e-12)


# ── odd and bad inputs ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("classifier", ["logistic", "knn"])
def test_labels_that_never_vary_are_answered_as_seen(classifier: str) -> None:
    truth, vectors = case()
    truth.train[:, 0], truth.train[:, 1] = True, False
    found = evaluate(truth, vectors, {"classifier": classifier, "runs": 2})
    assert found.warnings == ("4 of 10 label probes saw their label in all of their examples, or in none",)
    run = {"logistic": logistic, "knn": knn}[classifier](vectors["train"], truth.train, vectors["test"])
    assert run.predicted[:, 0].all()
    assert not run.predicted[:, 1].any()
    assert set(run.score[:, 0]) == {1.0}
    assert set(run.score[:, 1]) == {0.0}


@pytest.mark.parametrize("classifier", ["logistic", "knn"])
def test_a_model_that_gives_everything_one_vector_is_flagged(classifier: str) -> None:
    truth, _ = case()
    vectors = {"train": np.ones((120, 3), np.float32), "test": np.ones((60, 3), np.float32)}
    found = evaluate(truth, vectors, {"classifier": classifier, "runs": 2})
    assert "2 of 2 runs predicted the same for all items: the score is an artefact" in found.warnings


def test_label_probes_that_did_not_train_are_flagged() -> None:
    truth, _ = case()
    truth.train[:, :2] = np.arange(120)[:, None] % 2 == [0, 1]
    truth.train[:, 2:] = True  # so every row is sampled, and the first two labels are even
    vectors = {"train": np.zeros((120, 3)), "test": np.zeros((60, 3))}
    found = evaluate(truth, vectors, {"shots": 120, "runs": 1})
    assert found.warnings[0] == "2 of 5 label probes did not train (they stopped at iteration 0)"


def test_the_iteration_limit_is_counted_and_not_shouted() -> None:
    truth, vectors = case(noise=3.0)
    stretched = {side: rows * np.geomspace(1, 1e4, 8) for side, rows in vectors.items()}
    assert evaluate(truth, stretched, {"shots": 100}).counts["label probes at the iteration limit"] > 0
    assert evaluate(truth, vectors, {}).counts["label probes at the iteration limit"] == 0


def test_a_label_that_no_test_item_has_is_left_out() -> None:
    truth, vectors = case()
    truth.test[:, 4] = False
    found = evaluate(truth, vectors, {})
    assert found.warnings == ("1 of 5 labels have no test item and were left out",)
    assert found.counts["labels"] == 4


NONE, ONE = np.zeros((2, 2), bool), np.eye(2, dtype=bool)


@pytest.mark.parametrize(
    ("train", "test", "params", "message"),
    [
        (NONE[:0], ONE, {}, "The training side is empty"),
        (ONE, NONE[:0], {}, "The test side is empty"),
        (NONE, ONE, {}, "No training item has a label"),
        (ONE, NONE, {}, "No test item has a label"),
        (np.array([0, 1]), np.array([0, 1]), {}, r"needs labels as \(items, classes\)"),
        (ONE, ONE, {"classifier": "knn"}, "Only 2 training items were sampled; 5 neighbours are needed."),
        (ONE, ONE, {"metric": "auc"}, "'multilabel' has no measure 'auc'; it has lrap, accuracy, hamming"),
        (ONE, ONE, {"shots": 0}, "'shots' must be at least 1"),
    ],
)
def test_what_cannot_be_probed_says_why(train: Array, test: Array, params: dict[str, Any], message: str) -> None:
    vectors = {"train": np.eye(2)[: len(train)], "test": np.eye(2)[: len(test)]}
    with pytest.raises(EmbarkError, match=message):
        evaluate(Split(train, test, ("one", "two")), vectors, params)


@pytest.mark.parametrize("side", ["train", "test"])
def test_a_vector_that_is_not_finite_is_named(side: str) -> None:
    truth, vectors = case()
    vectors[side][50, 1] = np.inf
    with pytest.raises(EmbarkError, match="1 vectors are not finite, the first at row 50"):
        evaluate(truth, vectors, {"shots": 1})


# Computed with plain loops and scikit-learn 1.9.1, not with the code under test.
GOLDEN = {
    "logistic": {"lrap": 0.939722222, "accuracy": 0.453333333, "hamming": 0.743722222, "f1": 0.8310779},
    "knn": {"lrap": 0.725282407, "accuracy": 0.286666667, "hamming": 0.600166667, "f1": 0.729460301},
}
