"""Every evaluator's main score has an interval that contains it; and what is narrowed or left out changes no other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embark import evaluators
from embark.engine.report import EmbeddingReport
from embark.items import as_keys, text
from embark.items.drop_items import without
from embark.planning import Demand
from embark.registries import EVALUATORS
from embark.run.workbench import needed_items, readable_items
from embark.stats.shared import Observations, Part
from embark.stats.shared import interval as interval_of_parts
from embark.types import (
    Array,
    Classes,
    Dataset,
    EmbarkError,
    Gold,
    Groups,
    Matches,
    Qrels,
    Scores,
    Side,
    Source,
    Split,
    Task,
    Truth,
)

Case = tuple[str, Truth, dict[str, Array], dict[str, Any]]


def case(kind: str, size: int, noise: float = 1.0) -> Case:
    """A task of about `size` items that is neither trivial nor hopeless."""
    rng = np.random.default_rng(size)
    label = np.arange(size) % 3
    centres = rng.normal(size=(3, 5)) * 2
    near = (centres[label] + noise * rng.normal(size=(size, 5))).astype(np.float32)
    twin = (near + noise * rng.normal(size=near.shape)).astype(np.float32)
    ids = {
        "query_ids": np.array([f"q{n}" for n in range(size)]),
        "document_ids": np.array([f"d{n}" for n in range(size)]),
    }
    names, at = ("a", "b", "c"), np.arange(size)
    if kind in ("retrieval", "robustness"):
        vectors = {"query": near, "document": twin}
        if kind == "robustness":
            vectors["document:noise"] = (twin + noise * rng.normal(size=twin.shape)).astype(np.float32)
        metric = {"metric": "mean_corrupted"} if kind == "robustness" else {}
        return kind, Qrels(at, at, np.ones(size, np.int64), **ids), vectors, metric
    if kind == "choice":
        query, document = np.repeat(at, 3), (np.repeat(at, 3) + np.tile([0, 1, 2], size)) % size
        grade = (document == query).astype(np.int64)
        return kind, Qrels(query, document, grade, **ids), {"query": near, "document": twin}, {}
    if kind == "zeroshot":
        prompts = (centres + noise * rng.normal(size=centres.shape)).astype(np.float32)
        return kind, Classes(label, np.arange(3), names), {"item": near, "prompt": prompts}, {}
    if kind == "probe":
        return kind, Split(label, label, names), {"train": near, "test": twin}, {"shots": 2, "runs": 3}
    if kind == "multilabel":
        several = np.stack([label == 0, label != 1, rng.random(size) < 0.5], axis=1)
        return kind, Split(several, several, names), {"train": near, "test": twin}, {"shots": 2, "runs": 3}
    if kind == "clustering":
        return kind, Groups(label, names), {"item": near}, {}
    if kind == "pairs":
        rows = at[: size // 2 * 2].reshape(-1, 2)
        return kind, Matches(rows, rows), {"image": near, "text": twin}, {}
    if kind == "pair-classification":
        twin[at % 2 == 0] = twin[(at[at % 2 == 0] + 1) % size]
        return kind, Gold(at, at, at % 2), {"left": near, "right": twin}, {}
    assert kind == "sts", f"add a case of '{kind}' here, and its items to UNRANKED"
    gold = np.einsum("nd,nd->n", near, twin) + rng.normal(size=size)
    return kind, Gold(at, at, gold), {"left": near, "right": twin}, {}


def data_of(truth: Truth, vectors: Mapping[str, Array]) -> Dataset:
    sides = {
        side: Side([f"{side[0]}{n}" for n in range(len(rows))], [text(f"{side} {n}") for n in range(len(rows))])
        for side, rows in vectors.items()
    }
    return Dataset(sides, truth)


KINDS = sorted(EVALUATORS)


def interval(*scores: Scores) -> tuple[float, float]:
    """Of the mean of scores over the same items."""
    parts = [Part(s.statistic, s.main, s.outcomes, Observations.apart(len(s.rows))) for s in scores]
    return interval_of_parts(parts)


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_the_main_score_lies_in_an_interval_of_sensible_width(kind: str) -> None:
    widths = []
    for size in (60, 600):
        found = evaluators.evaluate(*case(kind, size, 1.5))
        low, high = interval(found)
        assert 0 < low <= found.value <= high <= 1
        widths.append(high - low)
    assert 0.01 < widths[1] < (0.5 if found.statistic == "runs" else widths[0]) <= 0.5  # more items, not more runs


@pytest.mark.parametrize("size", [4, 5, 6, 9])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_few_items_and_perfect_scores_have_an_interval_too(kind: str, size: int, noise: float) -> None:
    found = evaluators.evaluate(*case(kind, size, noise))
    low, high = interval(found)
    assert -1 <= low <= found.value + 1e-12
    assert found.value - 1e-12 <= high <= 1 + 1e-12
    assert high > low or (kind, noise) == ("sts", 0)  # equal pairs: a constant similarity scores 0 by definition


@pytest.mark.parametrize("kind", ["sts", "clustering", "probe"])
def test_copies_of_a_subset_add_no_certainty(kind: str) -> None:
    """The same pictures in several languages: their scores rise and fall together."""
    found = evaluators.evaluate(*case(kind, 200, 1.5))
    one = interval(found)
    low, high = interval(*[found] * 4)
    assert high - low == pytest.approx(one[1] - one[0], rel=0.1)
    others = [evaluators.evaluate(*case(kind, size, 1.5)) for size in (200, 210, 220, 230)]
    around = [interval(each) for each in others]
    value = float(np.mean([each.value for each in others]))
    low, high = interval(*others)
    assert low <= value <= high
    assert high - low < max(b - a for a, b in around)


def test_a_measure_without_items_has_no_interval_and_is_refused_as_the_metric() -> None:
    found = evaluators.evaluate(*case("probe", 30)[:3], {})
    with pytest.raises(EmbarkError, match="choose one that items have"):
        interval(replace(found, main="f1"))
    with pytest.raises(EmbarkError, match="'probe' has no measure 'f1'"):
        evaluators.evaluate(*case("probe", 30)[:3], {"metric": "f1"})


# ── narrowing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def task(kind: str, params: Mapping[str, Any], unreadable: Any = "skip") -> Task:
    source = Source("test/none", "1")
    return Task("T", "Test", kind, "none", source, "m", "C", ("text",), params=params, unreadable=unreadable)


def kept(data: Dataset, vectors: Mapping[str, Array]) -> dict[str, Array]:
    """The vectors of the items that a dataset still has."""
    return {side: vectors[side][[int(one[1:]) for one in data.sides[side].ids]] for side in data.sides}


def same(one: Scores, other: Scores) -> None:
    assert one.metrics == other.metrics
    for name, values in one.outcomes.items():
        if name not in ("top", "right"):  # positions, which move
            np.testing.assert_array_equal(values, other.outcomes[name])


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_same_before_and_after_narrowing(kind: str) -> None:
    _, truth, vectors, params = case(kind, 40)
    if isinstance(truth, Qrels):  # a third of the queries have no judgement
        judged = truth.query % 3 > 0
        truth = replace(truth, query=truth.query[judged], document=truth.document[judged], grade=truth.grade[judged])
    small = needed_items(task(kind, params), data_of(truth, vectors))
    if kind in ("probe", "multilabel", "retrieval"):
        assert sum(map(len, small.sides.values())) < sum(map(len, vectors.values()))
    same(evaluators.evaluate(kind, truth, vectors, params),
         evaluators.evaluate(kind, small.truth, kept(small, vectors), params))  # fmt: skip


def test_a_mask_of_another_length_than_its_side_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, truth, vectors, params = case("sts", 40)
    short = replace(EVALUATORS[kind], narrow=lambda truth, params: (truth, {"left": np.zeros(3, bool)}))
    monkeypatch.setattr(EVALUATORS, "own", {**EVALUATORS.own, kind: short})
    with pytest.raises(EmbarkError, match="broke its contract: it needs a mask of 3 items of 'left', which has"):
        needed_items(task(kind, params), data_of(truth, vectors))


@pytest.mark.parametrize("kind", ["probe", "multilabel"])
def test_runs_keep_their_samples_when_an_example_is_left_out(kind: str) -> None:
    _, truth, vectors, params = case(kind, 40)
    small = needed_items(task(kind, params), data_of(truth, vectors))
    less = without(small, {"train": [0, 3]})
    assert isinstance(small.truth, Split)
    assert isinstance(less.truth, Split)
    lost = {small.sides["train"].ids[at] for at in (0, 3)}

    def samples(data: Dataset) -> list[list[str]]:
        from embark.evaluators.probe import drawn_samples

        assert isinstance(data.truth, Split)
        runs = drawn_samples(data.truth, lambda *given: pytest.fail("drawn again"), 2, 3, 42)
        return [[data.sides["train"].ids[row] for row in run] for run in runs]

    assert samples(less) == [[one for one in run if one not in lost] for run in samples(small)]


# ── unreadable items ─────────────────────────────────────────────────────────────────────────────────────────────────

UNRANKED = {
    "retrieval": {"document": [2, 5]},
    "robustness": {"document:noise": [2], "document": [5]},
    "choice": {"document": [2]},
    "zeroshot": {"item": [2, 5]},
    "probe": {"train": [1], "test": [0, 7]},
    "multilabel": {"train": [1], "test": [0, 7]},
    "clustering": {"item": [2, 5]},
    "pairs": {"image": [2], "text": [9]},
    "sts": {"left": [2], "right": [5]},
    "pair-classification": {"left": [2], "right": [5]},
}


def fewer(kind: str, truth: Any, vectors: dict[str, Array]) -> tuple[Any, dict[str, Array]]:
    """The truth without what UNRANKED names, written out for each kind."""

    def cut(side: str, at: list[int]) -> None:
        vectors[side] = np.delete(vectors[side], at, axis=0)

    def aligned(at: list[int], **columns: Array) -> dict[str, Array]:
        return {name: np.delete(column, at, axis=0) for name, column in columns.items()}

    if kind in ("zeroshot", "clustering"):
        cut("item", [2, 5])
        return replace(truth, **aligned([2, 5], label=truth.label)), vectors
    if kind in ("probe", "multilabel"):
        cut("train", [1])
        cut("test", [0, 7])
        more = aligned([1], train=truth.train, drawn=truth.drawn)
        return replace(truth, **more, **aligned([0, 7], test=truth.test)), vectors
    if kind in ("pairs", "sts", "pair-classification"):  # positions may stay: only rows go
        rows = [1, 4] if kind == "pairs" else [2, 5]
        names = ("image", "text") if kind == "pairs" else ("left", "right", "score")
        return replace(truth, **aligned(rows, **{name: getattr(truth, name) for name in names})), vectors
    gone = [2] if kind == "choice" else [2, 5]
    for side in vectors:
        if side.startswith("document"):
            cut(side, gone)
    there = ~np.isin(truth.document, gone)
    number = np.cumsum(~np.isin(np.arange(40), gone)) - 1
    document_ids = np.delete(truth.document_ids, gone)
    columns = {"query": truth.query[there], "document": number[truth.document[there]], "grade": truth.grade[there]}
    return replace(truth, **columns, document_ids=document_ids), vectors


@pytest.mark.parametrize("kind", KINDS)
def test_unreadable_items_leave_a_smaller_task_and_a_warning(kind: str) -> None:
    _, truth, vectors, params = case(kind, 40)
    if isinstance(truth, Split):
        truth = evaluators.narrow(kind, truth, params)[0]  # draws the samples
    data = data_of(truth, vectors)
    keys = {side: as_keys([f"{side} {n}".encode().ljust(32) for n in range(len(s))]) for side, s in data.sides.items()}
    bad = {keys[side][row].tobytes(): "broken" for side, rows in UNRANKED[kind].items() for row in rows}
    asked = Demand(task(kind, params), "test", "default", data, keys)
    left = readable_items(asked, EmbeddingReport(unreadable=bad))
    (warning,) = left.data.skipped
    assert warning.startswith(f"left out {len(bad)} unreadable items: ")
    assert {side: len(k) for side, k in left.keys.items()} == {side: len(s) for side, s in left.data.sides.items()}
    found = evaluators.evaluate(kind, left.data.truth, kept(left.data, vectors), params)
    same(found, evaluators.evaluate(kind, *fewer(kind, truth, dict(vectors)), params))
    with pytest.raises(EmbarkError, match="set unreadable='skip'"):
        readable_items(replace(asked, task=task(kind, params, "error")), EmbeddingReport(unreadable=bad))


def test_a_scores_version_changes_with_the_evaluator_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from embark.evaluators.retrieval import RETRIEVAL

    before = {kind: evaluators.version(kind, {}) for kind in KINDS}
    raised = replace(RETRIEVAL, version=RETRIEVAL.version + 1)
    monkeypatch.setattr(EVALUATORS, "own", {**EVALUATORS.own, "retrieval": raised})
    changed = {kind for kind in KINDS if evaluators.version(kind, {}) != before[kind]}
    assert changed == {"retrieval", "robustness"}
