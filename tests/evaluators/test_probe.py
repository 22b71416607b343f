"""The linear probe: parity with mteb, sampling and measures against plain oracles, and the trap it must not hide."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from embark.evaluators import evaluate as evaluate_kind
from embark.evaluators.probe import evaluate, measures, probes, samples
from embark.types import Array, EmbarkError, Split

PARITY = Path(__file__).parents[1] / "samples" / "parity"
MEASURES = ["accuracy", "f1", "f1_weighted", "precision", "precision_weighted", "recall", "recall_weighted"]


def split(train: Any, test: Any, classes: int | None = None) -> Split:
    train, test = np.asarray(train, np.int64), np.asarray(test, np.int64)
    count = classes or int(max(train.max(), test.max())) + 1
    return Split(train, test, tuple(f"class {number}" for number in range(count)))


def clouds(
    classes: int, dim: int, train: int, test: int, noise: float, seed: int = 0
) -> tuple[Split, dict[str, Array]]:
    """Items scattered about one centre a class, `train` and `test` of each class."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(classes, dim))
    label = {"train": np.tile(np.arange(classes), train), "test": np.tile(np.arange(classes), test)}
    vectors = {
        side: (centre[own] + noise * rng.normal(size=(len(own), dim))).astype(np.float32) for side, own in label.items()
    }
    return split(label["train"], label["test"]), vectors


# ── parity and known answers ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", ["linear_probe", "linear_probe_binary"])
def test_every_number_of_mteb(case: str) -> None:
    given_, expected = (json.loads((PARITY / case / f"{name}.json").read_text()) for name in ("truth", "expected"))
    truth = split(given_["train_labels"], given_["test_labels"])
    vectors = dict(np.load(PARITY / case / "inputs.npz"))
    runs, seed, limit = given_["n_experiments"], given_["seed"], given_["max_iter"]
    params = {"shots": given_["samples_per_label"], "runs": runs, "seed": seed, "max_iter": limit}
    found = evaluate(truth, vectors, params)
    assert found.value == pytest.approx(expected.pop("main_score"), abs=1e-6)
    each = expected.pop("scores_per_experiment")
    assert found.metrics == pytest.approx({k: v for k, v in expected.items() if v is not None}, abs=1e-6)
    picks = samples(truth.train, params["shots"], runs, seed)
    for run, one in zip(probes(truth.train, picks, vectors, "published", limit, seed), each, strict=True):
        values = measures(truth.test, run.predicted, np.unique(truth.train), len(truth.names))
        assert values == pytest.approx({k: v for k, v in one.items() if v is not None}, abs=1e-6)
    for number, one in enumerate(each, 1):
        assert found.outcomes[f"accuracy_run{number}"].mean() == pytest.approx(one["accuracy"], abs=1e-6)


def test_a_golden_case() -> None:
    truth, vectors = clouds(classes=6, dim=8, train=20, test=15, noise=1.5, seed=7)
    found = evaluate(truth, vectors, {"shots": 4, "runs": 3})
    assert found.metrics == pytest.approx(GOLDEN, abs=1e-6)
    sound = evaluate(truth, vectors, {"shots": 4, "runs": 3, "probe": "sound"})
    assert {name: sound.metrics[name] for name in SOUND} == pytest.approx(SOUND, abs=1e-6)
    assert found.warnings == sound.warnings == ()


def test_outcomes_are_each_run_and_their_mean() -> None:
    truth, vectors = clouds(classes=3, dim=4, train=10, test=20, noise=1.0)
    found = evaluate(truth, vectors, {"shots": 2, "runs": 4})
    runs = np.stack([found.outcomes[f"accuracy_run{number}"] for number in range(1, 5)])
    assert set(np.unique(runs)) <= {0.0, 1.0}
    assert found.outcomes["accuracy"] == pytest.approx(runs.mean(axis=0))
    assert found.outcomes["accuracy"].mean() == pytest.approx(found.value)
    assert (found.main, found.unit, found.statistic, len(found.rows)) == ("accuracy", "test", "runs", 60)
    assert found.counts["examples a run"] == 6
    assert list(found.outcomes)[:5] == ["accuracy", *(f"accuracy_run{number}" for number in range(1, 5))]
    np.testing.assert_array_equal(found.outcomes["predicted_run2"] == found.outcomes["label"], runs[1] == 1)


def test_measures_of_all_items_together_are_reported_and_cannot_be_the_metric() -> None:
    truth, vectors = clouds(classes=3, dim=4, train=10, test=20, noise=1.0)
    assert "f1" in evaluate(truth, vectors, {}).metrics
    for metric in ("f1", "ap", "auc"):
        with pytest.raises(EmbarkError, match=f"'probe' has no measure '{metric}'; it has accuracy."):
            evaluate(truth, vectors, {"metric": metric})


@pytest.mark.parametrize("probe", ["published", "sound"])
def test_the_same_twice_and_from_halves(probe: str) -> None:
    truth, vectors = clouds(classes=5, dim=16, train=30, test=30, noise=2.0)
    halves = {side: rows.astype(np.float16) for side, rows in vectors.items()}
    first, again = (evaluate_kind("probe", truth, halves, {"probe": probe}) for _ in range(2))
    assert first.metrics == again.metrics
    floats = evaluate(truth, {side: rows.astype(np.float32) for side, rows in halves.items()}, {"probe": probe})
    assert first.metrics == floats.metrics


# ── sampling ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_sampling_is_one_list_shuffled_again_and_again(labels: list[int], shots: int, runs: int, seed: int) -> None:
    order: list[int] = list(range(len(labels)))
    expected: list[list[int]] = []
    for _ in range(runs):
        np.random.RandomState(seed).shuffle(order)
        seen: Counter[int] = Counter()
        expected.append([])
        for row in order:
            if seen[labels[row]] < shots:
                expected[-1].append(row)
            seen[labels[row]] += 1
    assert [pick.tolist() for pick in samples(np.array(labels), shots, runs, seed)] == expected


# ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), min_size=1)))
def test_measures_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    true, predicted = np.array(pairs).T
    expected = {"accuracy": oracle.accuracy_score(true, predicted)}
    for name in ("f1", "precision", "recall"):
        for suffix, average in (("", "macro"), ("_weighted", "weighted")):
            score = getattr(oracle, f"{name}_score")
            expected[name + suffix] = score(true, predicted, average=average, zero_division=0)
    found = measures(true, predicted, np.arange(7), 7)
    assert found == pytest.approx(expected, abs=1e-12)
    assert list(found) == MEASURES


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_average_precision_of_two_classes_is_that_of_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    true, predicted = np.array(pairs, np.int64).T
    found = measures(2 * true + 1, 2 * predicted + 1, np.array([1, 3]), 5)
    if len(np.unique(true)) < 2:
        assert "ap" not in found
        return
    assert found["ap"] == pytest.approx(oracle.average_precision_score(true, predicted), abs=1e-12)
    assert found["ap_weighted"] == found["ap"]


# ── the trap ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def cone(classes: int = 80, dim: int = 32) -> tuple[Split, dict[str, Array]]:
    """Unit vectors in a narrow cone, as many models give them; the classes lie well apart within it."""
    truth, vectors = clouds(classes, dim, train=16, test=5, noise=0.3)
    for side, rows in vectors.items():
        rows = rows + 200 * np.ones(dim, np.float32)
        vectors[side] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return truth, vectors


def test_a_probe_that_did_not_train_is_flagged() -> None:
    truth, vectors = cone()
    found = evaluate(truth, vectors, {})
    assert found.value == pytest.approx(1 / 80)
    assert found.warnings == (
        "the probe did not train: 5 of 5 runs stopped at iteration 0 and 5 predicted one class; "
        "the score is an artefact (use probe='sound')",
    )


def test_the_sound_probe_learns_from_the_same_vectors() -> None:
    truth, vectors = cone()
    found = evaluate(truth, vectors, {"probe": "sound"})
    assert found.value > 0.95
    assert found.warnings == ()
    assert found.counts["runs at the iteration limit"] == 0


def test_vectors_that_are_all_alike_are_flagged_whatever_the_probe() -> None:
    truth, vectors = split([0, 1] * 16, [0, 1]), {"train": np.ones((32, 3)), "test": np.ones((2, 3))}
    (said,) = evaluate(truth, vectors, {"probe": "sound"}).warnings
    assert said == (
        "the probe did not train: 5 of 5 runs stopped at iteration 0 and 5 predicted one class; "
        "the score is an artefact"
    )


def test_one_predicted_class_is_right_where_the_test_has_only_one() -> None:
    truth, vectors = clouds(classes=2, dim=8, train=16, test=4, noise=0.1)
    only = {"train": vectors["train"], "test": vectors["test"][::2]}
    found = evaluate(split(truth.train, [0] * 4), only, {})
    assert (found.value, found.warnings) == (1.0, ())
    assert "ap" not in found.metrics


def test_the_iteration_limit_is_counted_and_not_shouted() -> None:
    truth, vectors = clouds(classes=4, dim=8, train=20, test=5, noise=2.0)
    assert evaluate(truth, vectors, {"max_iter": 2}).counts["runs at the iteration limit"] == 5
    assert evaluate(truth, vectors, {}).counts["runs at the iteration limit"] == 0


# ── odd and bad inputs ───────────────────────────────────────────────────────────────────────────────────────────────


def test_many_classes_of_one_item_raise_no_warning_of_scikit_learn() -> None:
    truth, vectors = clouds(classes=30, dim=16, train=1, test=2, noise=0.1)
    assert evaluate(truth, vectors, {"shots": 4, "runs": 2, "seed": 0, "max_iter": 50}).value > 0.5


def test_classes_with_too_few_items_give_all_they_have() -> None:
    truth, vectors = clouds(classes=4, dim=8, train=16, test=5, noise=0.5)
    keep = np.r_[0:14, 16:64]  # leaves out one item of class 2 and one of class 3
    found = evaluate(split(truth.train[keep], truth.test), vectors | {"train": vectors["train"][keep]}, {})
    assert found.warnings == ("2 of 4 classes have fewer than 16 training items: all they have were used",)
    assert found.counts["examples a run"] == 62


def test_a_test_class_that_was_never_learnt_is_a_miss() -> None:
    truth, vectors = clouds(classes=3, dim=8, train=16, test=5, noise=0.1)
    known = truth.train < 2
    found = evaluate(split(truth.train[known], truth.test, 3), vectors | {"train": vectors["train"][known]}, {})
    assert found.warnings == ("1 test classes have no training item ('class 2' first): their 5 items are misses",)
    assert found.value == pytest.approx(2 / 3)
    assert "ap" not in found.metrics


@pytest.mark.parametrize(
    ("train", "test", "params", "message"),
    [
        ([], [0], {}, "The training side is empty"),
        ([0, 1], [], {}, "The test side is empty"),
        ([1, 1], [0], {}, r"All training items are of one class \('class 1'\)"),
        ([[0, 1], [1, 0]], [[0, 1]], {}, "The probe needs one label per item; for several use 'multilabel'."),
        ([0, 1], [0], {"shots": 0}, "'shots' must be at least 1, not 0"),
        ([0, 1], [0], {"runs": 0}, "'runs' must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_probed_says_why(
    train: list[Any], test: list[Any], params: dict[str, Any], message: str
) -> None:
    vectors = {"train": np.eye(2)[: len(train)], "test": np.eye(2)[: len(test)]}
    with pytest.raises(EmbarkError, match=message):
        evaluate(split(train, test, 2), vectors, params)


@pytest.mark.parametrize("side", ["train", "test"])
def test_a_vector_that_is_not_finite_is_named(side: str) -> None:
    truth, vectors = clouds(classes=2, dim=4, train=40, test=40, noise=0.1)
    vectors[side][60, 1] = np.nan
    with pytest.raises(EmbarkError, match="1 vectors are not finite, the first at row 60"):
        evaluate(truth, vectors, {"shots": 1})


# Computed with plain loops and scikit-learn 1.9.1, not with the code under test.
GOLDEN = {
    "accuracy": 0.411111111,
    "f1": 0.406972203,
    "f1_weighted": 0.406972203,
    "precision": 0.42191173,
    "precision_weighted": 0.42191173,
    "recall": 0.411111111,
    "recall_weighted": 0.411111111,
}
SOUND = {
    "accuracy": 0.425925926,
    "f1": 0.420947475,
}
