"""Clustering: measures against scikit-learn's, a case worked out by hand, and a clusterer that collapses.

Parity with mteb's scores is in tests/test_parity.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.evaluators import clustering, evaluate
from embark.evaluators.clustering import contingency, from_contingency
from embark.types import Array, EmbarkError, Groups, Scores

MEASURES = ["nmi", "v_measure", "ari", "cluster_accuracy"]
partitions = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 5), min_size=n, max_size=n) for _ in range(2)))
)


def score(label: list[int] | Array, items: Array, **params: object) -> Scores:
    label = np.asarray(label)
    return evaluate("clustering", Groups(label, tuple(map(str, np.unique(label)))), {"item": items}, params)


def islands(groups: int, each: int, spread: float = 0.01, dim: int = 8) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(groups), each)
    return label, (rng.normal(size=(groups, dim))[label] + spread * rng.normal(size=(len(label), dim))).astype("f4")


# ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_worked_out_by_hand() -> None:
    found = from_contingency(np.array([[2, 0], [1, 1]]))
    shared = 0.5 * np.log(0.5 / (0.5 * 0.75)) + 0.25 * np.log(0.25 / 0.375) + 0.25 * np.log(0.25 / 0.125)
    assert found["nmi"] == pytest.approx(2 * shared / (np.log(2) - 0.75 * np.log(0.75) - 0.25 * np.log(0.25)))
    assert found["v_measure"] == found["nmi"]
    assert found["ari"] == pytest.approx(0)  # one pair together in both, and one is expected: 2 × 3 / 6
    assert found["cluster_accuracy"] == 0.75


@given(partitions)
def test_measures_are_those_of_scikit_learn(partition: tuple[list[int], list[int]]) -> None:
    from sklearn import metrics

    label, cluster = map(np.array, partition)
    found = from_contingency(contingency(label, cluster)[0])
    assert found["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(label, cluster), abs=1e-12)
    assert found["v_measure"] == pytest.approx(metrics.v_measure_score(label, cluster), abs=1e-12)
    assert found["ari"] == pytest.approx(metrics.adjusted_rand_score(label, cluster), abs=1e-12)


@given(partitions, st.permutations(range(6)))
def test_the_names_of_clusters_do_not_matter(partition: tuple[list[int], list[int]], names: list[int]) -> None:
    label, cluster = map(np.array, partition)
    before, after = (from_contingency(contingency(label, c)[0]) for c in (cluster, np.array(names)[cluster]))
    assert list(before) == MEASURES
    for name in MEASURES:
        assert before[name] == pytest.approx(after[name], abs=1e-12)


@given(st.integers(0, 1000))
def test_a_batch_is_scored_as_its_tables_are(seed: int) -> None:
    tables = np.random.default_rng(seed).integers(0, 4, size=(5, 3, 4))
    tables[:, 0, 0] += 1  # no table is empty
    batch = from_contingency(tables)
    for name in MEASURES[:3]:
        assert batch[name] == pytest.approx([float(from_contingency(table)[name]) for table in tables], abs=1e-12)
    assert (batch["cluster_accuracy"] <= [from_contingency(table)["cluster_accuracy"] for table in tables]).all()


def test_a_cluster_counts_for_one_label_only() -> None:
    assert from_contingency(np.array([[3], [2]]))["cluster_accuracy"] == 0.6
    assert from_contingency(np.array([[5, 4], [4, 0]]))["cluster_accuracy"] == 8 / 13  # not 5 + 0


# ── the evaluator ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_separate_groups_are_found() -> None:
    label, items = islands(4, 25)
    found = score(label + 7, items)
    assert [found.metrics[name] for name in MEASURES] == [1, 1, 1, 1]
    assert [found.metrics[f"sound_{name}"] for name in MEASURES] == [1, 1, 1, 1]
    assert 0 < found.metrics["sound_inertia"] <= found.metrics["inertia"] * 1.001
    assert (found.main, found.statistic, found.unit, found.warnings) == ("nmi", "nmi", "item", ())
    assert found.outcomes["label"].tolist() == (label + 7).tolist()
    assert len(np.unique(found.outcomes["cluster_run1"])) == 4
    assert found.counts == {"items": 100, "groups": 4, "clusters": 4, "runs": 10}


def test_the_published_clustering_is_scikit_learns_on_raw_vectors() -> None:
    from sklearn.cluster import MiniBatchKMeans

    label, items = islands(6, 40, spread=1.0)
    model = MiniBatchKMeans(6, batch_size=50, n_init="auto", random_state=3).fit(items)
    found = score(label, items.astype(np.float64), batch_size=50, seed=3, metric="ari")
    assert found.outcomes["cluster_run1"].tolist() == model.labels_.tolist()
    assert (found.main, found.statistic) == ("ari", "ari")
    assert score(label, items, seed=3, batch_size=50).metrics == found.metrics


def test_a_collapse_is_told() -> None:
    label, items = islands(4, 25)
    found = score(label, np.repeat(items[::50], 50, axis=0))  # two distinct vectors for four groups
    assert found.counts["clusters"] == 2
    assert found.warnings[0].startswith("MiniBatchKMeans collapsed: it fills 2 of 4 clusters; a full k-means gives nmi")


@pytest.mark.parametrize("seed", range(6))
def test_equal_vectors_are_one_cluster_and_no_error(seed: int) -> None:
    """Of numbers whose sums are rounded: sklearn's inertia is then not quite zero."""
    one = np.random.default_rng(seed).normal(size=(1, 8)).astype(np.float32)
    found = score(np.arange(60) % 3, np.tile(one, (60, 1)))
    assert found.value == pytest.approx(0, abs=1e-9)
    assert found.warnings == ("all items have the same vector: there is nothing to cluster",)


def test_a_bad_fit_is_told_even_where_inertia_hardly_shows_it() -> None:
    def doubts(inertia: float, best: float) -> tuple[str, ...]:
        metrics = {"inertia": inertia, "sound_inertia": best, "published_nmi": 0.15, "sound_nmi": 0.97}
        return clustering._warnings(metrics, "nmi", 9, 9, 1000.0)

    assert doubts(12.5, 10) == (
        "MiniBatchKMeans fits badly: it explains 98.8% of the scatter where 99.0% is possible; "
        "a full k-means gives nmi 0.9700 instead of 0.1500.",
    )
    assert len(doubts(975, 885)) == 1  # 10 % more inertia, but a fifth of what the clusters could explain
    assert doubts(900, 885) == doubts(11.5, 10) == doubts(1e-4, 1e-6) == ()


def test_costly_k_means_starts_fewer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    label, items = islands(3, 20)
    before = score(label, items).metrics
    monkeypatch.setattr(clustering, "WORK", 1)
    assert score(label, items).metrics["sound_nmi"] == before["sound_nmi"] == 1


@pytest.mark.parametrize(
    ("label", "items", "message"),
    [
        ([], 0, "no items to cluster"),
        ([0, 0, 0], 3, "All 3 items have the same label"),
        ([0, 1, 2], 3, "Each of the 3 items has a label of its own"),
        ([0, 1, 1], 4, "3 labels for 4 items"),
    ],
)
def test_what_cannot_be_clustered_is_an_error(label: list[int], items: int, message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        score(label, np.eye(4, dtype=np.float32)[:items])


def test_unknown_measures_and_broken_vectors_are_errors() -> None:
    label, items = islands(2, 5)
    with pytest.raises(EmbarkError, match="no measure 'sound_nmi'; it has nmi, v_measure, ari, cluster_accuracy"):
        score(label, items, metric="sound_nmi")
    items[3, 0] = np.nan
    with pytest.raises(EmbarkError, match="not finite, the first at row 3"):
        score(label, items)
