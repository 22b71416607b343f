"""The contract of an evaluator: what is declared and what is returned are checked, ours and a plug-in's alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embark import evaluators
from embark.evaluators.chance import chance
from embark.registries import EVALUATORS
from embark.seams import COMMON_PARAMS, STATISTICS, Evaluator
from embark.stats import statistics
from embark.tasks import TASKS
from embark.types import EmbarkError, Gold, Groups, Option, Scores

GROUPS = Groups(np.array([0, 0, 1, 1]), ("a", "b"))
VECTORS = {"item": np.eye(4, dtype=np.float32)}


def half_right(truth: Groups, vectors: Any, params: Any) -> Scores:
    right = np.array([1.0, 0.0, 1.0, 0.0])
    return Scores({"share": 0.5}, "share", "item", np.arange(4), {"share": right})


HALF = Evaluator("half", "Half of the items.", (Groups,), half_right, measures={"share": "mean"}, main="share")


# ── what is declared ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", EVALUATORS.own)
def test_the_name_in_the_registry_is_the_evaluators_own(name: str) -> None:
    assert EVALUATORS[name].name == name
    assert EVALUATORS[name].about


def test_statistics_are_named_in_the_contract_as_they_are_computed() -> None:
    assert set(STATISTICS) == set(statistics.STATISTICS)
    assert all(name in str(Evaluator.__doc__) for name in STATISTICS)


WRONG = {
    "name": ({"name": ""}, "its `name` must not be empty"),
    "truth": ({"truth": Groups}, "its `truth` must be a tuple of types (Qrels, Classes"),
    "kind": ({"truth": (Scores,)}, "its `truth` must be a tuple of types (Qrels, Classes"),
    "evaluate": ({"evaluate": "half"}, "its `evaluate` must be a function, not 'half'"),
    "version": ({"version": 1000}, "its `version` must be a whole number below 1000, not 1000"),
    "measures": ({"measures": ("share",)}, "its `measures` must be a table of texts, not ('share',)"),
    "statistic": ({"measures": {"share": "median"}}, "'share' has the unknown statistic 'median'; known: mean, runs,"),
    "cut-off": ({"measures": {"mrr_at_5": "mean"}}, "'mrr_at_5' has a fixed cut-off; state 'mrr_at_k'"),
    "main": ({"main": "shares"}, "its `main` must be one of its measures (share), not 'shares'"),
    "params": ({"params": {"seed": int}}, "its `params` must be a table of Options"),
    "common": ({"params": {"metric": Option(str, "It.")}}, "its parameter 'metric' is one that every evaluator has"),
    "column": ({"measures": {"content": "mean"}, "main": "content"}, "no measure can have the name 'content'"),
    "field": ({"measures": {"share": "mean", "main_score": "mean"}}, "no measure can have the name 'main_score'"),
    "chance": ({"chance": "0.5"}, "its `chance` must be a number, not '0.5'"),
    "no number": ({"chance": float("nan")}, "its `chance` must be from -1 to 1, not nan"),
    "letters": ({"measures": {"the share": "mean"}, "main": "the share"}, "the measure 'the share' must have letters"),
    "control": ({"name": "half\x1b[31m"}, "its `name` must have letters, digits, dots and dashes alone"),
    "preset of all": ({"preset": {"metric": "f1"}}, "its parameter 'metric' is one that every evaluator has"),
    "preset": (
        {"params": {"seed": Option(int, "It.")}, "preset": {"seed": "7"}},
        "its preset 'seed' must be whole number, not '7'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_is_an_error_that_names_the_evaluator(case: str) -> None:
    fields, problem = WRONG[case]
    with pytest.raises(EmbarkError) as raised:
        replace(HALF, **fields)
    assert "is declared wrongly: " in str(raised.value)
    assert problem in str(raised.value)
    assert f"'{fields.get('name', 'half')}'" in str(raised.value)


# ── metrics of rows ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_row_has_parameters_and_a_metric_that_its_evaluator_knows() -> None:
    evaluators.check_tasks(TASKS.values())


@pytest.mark.parametrize("param", ["similarity", "logit_scale", "memory"])
def test_a_row_that_sets_what_the_run_sets_is_refused(param: str) -> None:
    """It would be ignored, and be part of the fingerprint."""
    value = COMMON_PARAMS[param].kind("1")
    row = replace(TASKS["PocketNameSTS"], params={param: value})
    with pytest.raises(EmbarkError, match=f"No row sets the parameter '{param}'"):
        evaluators.check_tasks([row])


@pytest.mark.parametrize("metric", ["recall_at_2", "ndcg_at_7", "success_at_1", "map_at_123456", "accuracy"])
def test_a_ranking_has_its_measures_at_any_cutoff(metric: str) -> None:
    assert {EVALUATORS[kind].metric({"metric": metric}) for kind in ("retrieval", "choice")} == {metric}


@pytest.mark.parametrize("metric", ["recall", "recall_at_0", "recall_at_k", "recall_at_-1", "recall_at_02", "auc_at_5"])
@pytest.mark.parametrize("kind", ["retrieval", "choice"])
def test_a_measure_that_a_ranking_lacks_is_refused_with_those_that_it_has(kind: str, metric: str) -> None:
    with pytest.raises(EmbarkError) as raised:
        evaluators.check(kind, {"metric": metric})
    assert str(raised.value) == (
        f"'{kind}' has no measure '{metric}'; it has ndcg_at_k, map_at_k, recall_at_k, precision_at_k, mrr_at_k, "
        "hit_rate_at_k, success_at_k, accuracy (k is a whole number from 1)."
    )


def test_the_measure_below_a_robustness_task_is_checked_too() -> None:
    evaluators.check("robustness", {"base": "choice", "base_metric": "mrr_at_4"})
    with pytest.raises(EmbarkError, match="'choice' has no measure 'lrap'"):
        evaluators.check("robustness", {"base": "choice", "base_metric": "lrap"})
    with pytest.raises(EmbarkError, match=r"no evaluator named 'choise'\. Did you mean choice"):
        evaluators.check("robustness", {"base": "choise"})


# ── what is returned ─────────────────────────────────────────────────────────────────────────────────────────────────

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "main": ({"main": "accuracy"}, "the main measure is 'accuracy', not 'share'"),
    "metrics": ({"metrics": {"accuracy": 0.5}}, r"metrics\['share'\] is missing or not finite"),
    "finite": ({"metrics": {"share": np.nan}}, r"metrics\['share'\] is missing or not finite"),
    "statistic": ({"statistic": "runs"}, "the statistic of 'share' is 'runs', not 'mean'"),
    "outcomes": ({"outcomes": {"right": np.ones(4)}}, r"the statistic 'mean' needs outcomes\['share'\]"),
    "length": ({"rows": np.arange(3)}, r"outcomes\['share'\] has 4 values for 3 rows"),
    "unit": ({"unit": "query"}, r"the unit 'query' is no side of the data \(item\)"),
    "matrix": ({"outcomes": {"share": np.ones((4, 2))}}, r"outcomes\['share'\] is no column, but of the shape \(4, 2"),
    "scalar": ({"outcomes": {"share": 0.5}}, r"outcomes\['share'\] is no column, but of the shape \(\)"),
    "empty": ({"rows": np.arange(0), "outcomes": {"share": np.ones(0)}}, "it returned no outcomes"),
    "of items": (
        {"outcomes": {"share": np.ones(4), "content": np.ones(4)}},
        r"outcomes\['content'\] has the name of a column about items",
    ),
    "text": ({"metrics": {"share": "0.5"}}, r"metrics\['share'\] is missing or not finite"),
    "taken": ({"metrics": {"share": 0.5, "languages": 1.0}}, "no measure can have the name 'languages'"),
    "warnings": ({"warnings": "careful"}, "its warnings must be a tuple of texts, not 'careful'"),
    "range": ({"outcomes": {"share": np.array([1, 0, 7, 0])}}, r"outcomes\['share'\] has values that are not from -1"),
    "hole": ({"outcomes": {"share": np.array([1, 0, np.nan, 0])}}, r"outcomes\['share'\] has values that are not from"),
    "list": ({"rows": [0, 1, 2, 3]}, "rows must be an array of positions"),
    "fractions": ({"rows": np.arange(4.0)}, "rows must be an array of positions"),
    "rows": ({"rows": np.arange(1, 5)}, "rows are not positions among the 4 items of 'item'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_scores_that_break_the_contract_are_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fields, problem = BROKEN[case]
    broken = replace(HALF, evaluate=lambda *given: replace(half_right(*given), **fields))
    monkeypatch.setattr(EVALUATORS, "own", {**EVALUATORS.own, "half": broken})
    with pytest.raises(EmbarkError, match=f"The evaluator 'half' broke its contract .*: {problem}"):
        evaluators.evaluate("half", GROUPS, VECTORS, {})


def test_a_score_that_its_outcomes_do_not_give_is_refused() -> None:
    scores = half_right(GROUPS, VECTORS, {})
    statistics.check_score(scores)
    with pytest.raises(EmbarkError, match=r"'share' is 0\.6, but the statistic 'mean' of its outcomes is 0\.5"):
        statistics.check_score(replace(scores, metrics={"share": 0.6}))


def test_another_kind_of_truth_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EVALUATORS, "own", {**EVALUATORS.own, "half": HALF})
    gold = Gold(np.arange(2), np.arange(2), np.array([0.0, 1.0]))
    with pytest.raises(EmbarkError, match="'half' scores data whose truth is Groups, not Gold"):
        evaluators.evaluate("half", gold, VECTORS, {})


def test_the_level_of_chance_that_is_declared_is_what_random_vectors_score() -> None:
    """Those of the others depend on the data: rows state them."""
    assert [name for name in EVALUATORS.own if EVALUATORS[name].chance is not None] == ["sts"]
    assert EVALUATORS["sts"].chance == 0
    rows = np.arange(2_000)
    gold = Gold(rows, rows, np.random.default_rng(9).normal(size=len(rows)))
    contents = {"left": rows, "right": rows + len(rows)}
    for metric in EVALUATORS["sts"].measures:
        assert chance("sts", gold, contents, {"metric": metric}, draws=2) == pytest.approx(0, abs=0.05)
