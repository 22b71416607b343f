"""Choice: every query ranks its own candidates and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.evaluators import similarity
from embark.evaluators.choice import evaluate
from embark.types import Array, EmbarkError, Qrels

PLANE = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], np.float32)


def offered(*rows: tuple[int, int, int], **ids: Any) -> Qrels:
    query, document, grade = np.array(rows, np.int64).T
    return Qrels(query, document, grade, **ids)


def sides(query: Any, document: Any = PLANE) -> dict[str, Array]:
    return {"query": np.array(query, np.float32), "document": np.array(document, np.float32)}


def test_only_the_candidates_compete() -> None:
    truth = offered((0, 2, 1), (0, 3, 0), (1, 0, 0), (1, 2, 1))
    found = evaluate(truth, sides([[1, 0], [1, 0]]), {})
    assert found.main == "accuracy"
    assert found.outcomes["accuracy"].tolist() == [1, 0]  # documents 0 and 1 are nearer to query 0, but not offered
    assert found.outcomes["rank"].tolist() == [1, 2]
    assert found.outcomes["top"].tolist() == [2, 0]
    assert found.value == 0.5
    assert found.unit == "query"


def test_another_metric_can_be_the_main_one() -> None:
    truth = offered((0, 0, 0), (0, 1, 1))
    assert evaluate(truth, sides([[1, 0]]), {"metric": "mrr_at_5"}).value == 0.5
    with pytest.raises(EmbarkError, match="no measure 'luck'"):
        evaluate(truth, sides([[1, 0]]), {"metric": "luck"})


def test_rows_may_come_in_any_order() -> None:
    truth = offered((1, 0, 1), (0, 3, 0), (1, 3, 0), (0, 2, 1))
    found = evaluate(truth, sides([[0, 1], [1, 0]]), {})
    assert found.outcomes["rank"].tolist() == [1, 1]


def test_ties_go_to_the_larger_id() -> None:
    same = np.ones((2, 2))
    truth = [offered((0, 0, a), (0, 1, 1 - a), document_ids=np.array(["a", "b"])) for a in (0, 1)]
    assert [evaluate(t, sides([[1, 0]], same), {}).value for t in truth] == [1, 0]


def test_dot_looks_at_length() -> None:
    truth, vectors = offered((0, 0, 1), (0, 1, 0)), sides([[1, 0]], [[1, 0], [3, 3]])
    assert evaluate(truth, vectors, {"similarity": "cosine"}).value == 1
    assert evaluate(truth, vectors, {"similarity": "dot"}).value == 0


def test_a_query_without_a_right_candidate_is_dropped_and_counted() -> None:
    found = evaluate(offered((0, 0, 0), (2, 0, 1)), sides([[1, 0]] * 3), {})
    assert found.rows.tolist() == [2]
    assert found.counts == {"queries": 1, "queries left out": 2, "queries without positives": 0}
    with pytest.raises(EmbarkError, match="No query has a relevant document"):
        evaluate(offered((0, 0, 0)), sides([[1, 0]]), {})


def test_what_is_not_finite_is_an_error() -> None:
    with pytest.raises(EmbarkError, match="not finite, the first at row 1"):
        evaluate(offered((0, 0, 1)), sides([[1, 0]], [[1, 0], [np.nan, 0]]), {})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Array, Array, Array, list[tuple[int, int, int]]]:
    queries, documents, dim = draw(st.integers(1, 4)), draw(st.integers(1, 9)), draw(st.integers(1, 3))
    row = st.lists(st.integers(-1, 1), min_size=dim, max_size=dim)
    vectors = [draw(st.lists(row, min_size=n, max_size=n)) for n in (queries, documents)]
    ids = np.array(draw(st.permutations([f"d{n}" for n in range(documents)])))
    pairs = [(q, d) for q in range(queries) for d in range(documents)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    grades = draw(st.lists(st.integers(0, 2), min_size=len(chosen), max_size=len(chosen)))
    grades[0] = 1
    return *(np.array(v, np.float32) for v in vectors), ids, [(*p, g) for p, g in zip(chosen, grades, strict=True)]


@given(cases(), st.sampled_from([1, 30, 65_536]))
def test_ranks_are_places_in_the_sorted_candidates(case: tuple, block: int) -> None:
    queries, documents, ids, rows = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "BLOCK_BYTES", block)
        truth = offered(*rows, document_ids=ids)
        found = evaluate(truth, sides(queries, documents), {"similarity": "dot", "metric": "hit_rate_at_1"})
    for at, query in enumerate(found.rows):
        mine = sorted((d for q, d, _ in rows if q == query), key=lambda d: str(ids[d]), reverse=True)
        mine.sort(key=lambda d: -float(queries[query] @ documents[d]))
        right = {d for q, d, grade in rows if q == query and grade > 0}
        assert found.outcomes["rank"][at] == 1 + min(mine.index(d) for d in right)
        assert found.outcomes["top"][at] == mine[0]
        assert found.outcomes["hit_rate_at_1"][at] == (mine[0] in right)
    assert found.rows.tolist() == sorted({q for q, _, grade in rows if grade > 0})


def test_halves_are_fine_and_inputs_are_left_alone() -> None:
    vectors = {"query": np.array([[3, 4]], np.float16), "document": np.array([[3, 4], [4, 3]], np.float16)}
    before = {role: matrix.copy() for role, matrix in vectors.items()}
    assert evaluate(offered((0, 0, 1), (0, 1, 0)), vectors, {}).value == 1
    for role in vectors:
        np.testing.assert_array_equal(vectors[role], before[role])
