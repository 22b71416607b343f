"""Recommendations: needs, limits, ranks and ties."""

from __future__ import annotations

import json

import numpy as np
import pytest

from embark.boards.matrix import load_matrix
from embark.catalogue import UnknownName
from embark.studies.recommend import Limits, rank_models, recommend
from embark.types import EmbarkError
from field import card, field


def test_needs_count_alike_and_gaps_are_not_ranked() -> None:
    values = np.array([[0.9, 0.9, 0.9, 0.1], [0.5, 0.5, 0.5, 0.7], [0.2, 0.2, 0.2, 0.3], [0.9, 0.9, 0.9, np.nan]])
    recommendation = rank_models(field(values, ["Search"] * 3 + ["Pages"]), {}, ["search", "page"])
    models = recommendation.models
    assert [model.name for model in models] == ["m1", "m0", "m2", "m3"]
    assert models[0].total == pytest.approx(0.6)
    assert models[-1].place is None
    assert "Without a rank" in " ".join(recommendation.table().notes)


def test_models_that_tasks_cannot_tell_apart_are_tied_and_a_clear_winner_is_not() -> None:
    rng = np.random.default_rng(0)
    hard = rng.uniform(0.2, 0.6, size=40)
    values = np.stack([hard + 0.3, hard + 0.001 * rng.normal(size=40), hard + 0.001 * rng.normal(size=40)])
    many_tasks = rank_models(field(values, ["Search"] * 40), {}, ["search"])
    assert many_tasks.sure
    assert [model.place.tie if model.place else "" for model in many_tasks.models] == ["A", "B", "B"]
    few_tasks = rank_models(field(values[:, :2], ["Search"] * 2), {}, ["search"])
    assert not few_tasks.sure
    assert "Too few tasks" in " ".join(few_tasks.table().notes)


def test_equal_models_have_one_rank_and_gaps_have_none() -> None:
    values = np.array([[0.9, 0.9], [0.9, 0.9], [0.5, 0.5], [0.5, np.nan]])
    cards = {"m0": card("m0", parameters=1_234_567_890, dim=1024)}
    table = rank_models(field(values, ["Search"] * 2), cards, ["search"]).table()
    first, second, third, last = json.loads(table.format("json"))["rows"]
    assert [row["#"] for row in (first, second, third, last)] == [1, 1, 3, None]
    assert (first["size"], first["dim"], second["size"]) == (1_234_567_890, 1024, None)
    assert (first["tasks"], last["tasks"]) == ("2/2", "1/2")
    assert "1,235M  1024" in str(table)


def test_a_word_is_sought_before_its_singular() -> None:
    values = np.random.default_rng(0).uniform(size=(4, 4))
    matrix = field(values, ["Visual STS", "Understanding", "Document", "Classification"])

    def meant(need: str) -> tuple[int, ...]:
        return rank_models(matrix, {}, [need]).needs[need]

    assert meant("sts") == (0,)
    assert meant("documents") == (2,)
    for need in ("st", "ios"):  # too short to be sought within a word: classificatIOn
        with pytest.raises(UnknownName):
            meant(need)


def test_files_name_models_and_needs_in_full() -> None:
    frame = recommend("natural science", "ARK").to_frame()
    assert set(frame["model"]) <= set(load_matrix("ARK").models)
    assert frame["model"].str.contains("/").any()
    assert frame["natural science"].notna().all()


def test_needs_and_limits_as_text_and_as_values() -> None:
    as_text = recommend("retrieval, document", max_parameters="400M", modalities="text,image")
    as_values = recommend(["retrieval", "document"], max_parameters=4e8, modalities=["text", "image"])
    assert as_text.table() == as_values.table()
    assert any(note.startswith("Left out: ") and "(too large)" in note for note in as_text.table().notes)
    with pytest.raises(UnknownName, match="modality named 'smell'"):
        recommend("retrieval", modalities="smell")


def test_the_top_models_are_shown() -> None:
    recommendation = recommend("natural science", "ARK", top=3)
    assert len(recommendation.table().rows) == 3
    assert len(recommendation.table(top=5).rows) == 5
    assert f"{len(recommendation.models) - 3} more models follow" in recommendation.table().notes[-1]


def test_limits_say_why_a_model_is_out() -> None:
    small = card("s", parameters=100_000_000, dim=512)
    assert Limits().excludes(None) is None
    assert Limits(parameters=1e9).excludes(None) == "no card"
    assert Limits(parameters=1e9).excludes(small) is None
    assert Limits(parameters=1e7).excludes(small) == "too large"
    assert Limits(parameters=1e9).excludes(card("u")) == "size not known"
    assert Limits(modalities=frozenset({"audio"})).excludes(small) == "lacks a modality"
    assert Limits(min_dim=768).excludes(small) == "other dimension"
    assert Limits(max_dim=256).excludes(small) == "other dimension"
    assert Limits(max_dim=512).excludes(card("u")) == "dimension not known"
    assert Limits(max_dim=512).excludes(card("g", kind="generator", dim=1)) == "dimension not known"


def test_unknown_needs_get_suggestions() -> None:
    with pytest.raises(EmbarkError, match="Did you mean Retrieval"):
        recommend("retreival")


def test_a_mean_over_a_part_of_the_tasks_is_not_the_best() -> None:
    scores = field(np.array([[0.5, 0.5], [0.6, 0.4], [0.9, np.nan]]), ["one", "one"])
    ranked = rank_models(scores, {}, ["one"]).table().format("latex")
    assert r"\mathbf{50.0}" in ranked
    assert r"$90.0$" in ranked
