"""Pareto fronts and recommendations."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from embark.boards.cards import cards
from embark.catalogue import UnknownName
from embark.cli import app
from embark.cli.analyze import scores
from embark.results import Record, TaskResult
from embark.studies.pareto import front, pareto, sizes, times
from embark.studies.recommend import Limits, amount, recommend
from embark.types import EmbarkError
from field import card, field

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20)


@given(POINTS)
def test_a_front_holds_exactly_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    cost, score = np.array(points, float).T
    found = front(cost, score)
    for at, (c, s) in enumerate(points):
        beaten = any(c2 <= c and s2 >= s and (c2, s2) != (c, s) for c2, s2 in points)
        assert found[at] == (not beaten)
    assert found.any()


def test_models_are_left_out_without_a_cost_or_a_score() -> None:
    values = np.array([[0.5], [0.6], [0.4], [np.nan], [0.9]])
    found = pareto(field(values), {"m0": 1.0, "m1": 2.0, "m2": 3.0, "m3": 0.1}, "mean-of-categories")
    assert found.models == ("m0", "m1", "m2")
    assert found.best.tolist() == [True, True, False]
    assert found.unknown == ("m4",)
    with pytest.raises(EmbarkError, match=r"^No model with a score on every task has a known number of parameters\.$"):
        pareto(field(values), {}, "mean-of-categories")


def test_a_field_of_gaps_has_no_front_and_says_why() -> None:
    values = np.array([[0.5, 0.1, np.nan], [np.nan, 0.6, np.nan], [np.nan, np.nan, 0.3]])
    with pytest.raises(EmbarkError, match=r"No model has a score on all 3 tasks.*the most is 2\."):
        pareto(field(values), {"m0": 1.0, "m1": 2.0}, "mean-of-categories")


def test_an_unknown_cost_gets_suggestions() -> None:
    for asked in (lambda: sizes({"a": card("a")}, "foo"), lambda: pareto(field(np.ones((3, 1))), {}, "mean", "foo")):
        with pytest.raises(UnknownName, match=r"no cost named 'foo'\. There are parameters, dim, time"):
            asked()


def test_files_tell_the_front_from_the_beaten_and_costs_are_numbers() -> None:
    study = pareto(
        field(np.array([[0.5], [0.6], [0.4]])), {"m0": 8355.25, "m1": 9000, "m2": 8400}, "mean-of-categories"
    )
    rows = list(csv.DictReader(io.StringIO(study.study().table.format("csv"))))
    found = [(row["model"], float(row["parameters (millions)"]), row["section"]) for row in rows]
    assert found == [
        ("m0", 8355.25, "on the front"),
        ("m1", 9000.0, "on the front"),
        ("m2", 8400.0, "beaten by another"),
    ]
    assert "8,355" in str(study.study().table)


def test_sizes_come_from_cards_and_times_from_runs() -> None:
    facts = {"a": card("a", parameters=5_000_000, dim=8), "b": card("b")}
    assert sizes(facts, "parameters") == {"a": 5.0}
    assert sizes(facts, "dim") == {"a": 8.0}
    shared = ("a", "1", "t", "test", "default", ("eng",), "m", 0.5, (0.4, 0.6), {}, "p", "e")
    fresh = Record(*shared, counts={"embedded": 200}, timings={"embed": 4.0})
    stored = Record(*shared, counts={"embedded": 0}, timings={"embed": 0.0})
    result = TaskResult("a", "1", "t", "1", (fresh, stored), 0.5, (0.4, 0.6), 0.0)
    assert times([result]) == {"a": 20.0, "a@1": 20.0}


def test_the_front_of_the_published_models(tmp_path: Path) -> None:
    matrix = scores("MIEB(Multilingual)")
    found = pareto(matrix, sizes(cards(matrix.models, "MIEB"), "parameters"), "mean-of-types")
    best = [model for model, on in zip(found.models, found.best, strict=True) if on]
    assert "google/siglip-so400m-patch14-384" in best
    assert "openai/clip-vit-base-patch32" not in best
    found.study().save(tmp_path / "front.svg")
    assert "parameters (millions)" in (tmp_path / "front.svg").read_text()


def test_needs_count_alike_and_gaps_are_not_ranked() -> None:
    values = np.array([[0.9, 0.9, 0.9, 0.1], [0.5, 0.5, 0.5, 0.7], [0.2, 0.2, 0.2, 0.3], [0.9, 0.9, 0.9, np.nan]])
    found = recommend(field(values, ["Search"] * 3 + ["Pages"]), {}, ["search", "page"])
    assert [one.model for one in found.entries] == ["m1", "m0", "m2", "m3"]
    assert found.entries[0].total == pytest.approx(0.6)
    assert found.entries[-1].place is None
    assert "Without a rank" in " ".join(found.study().table.notes)


def test_models_that_tasks_cannot_tell_apart_are_tied_and_a_clear_winner_is_not() -> None:
    rng = np.random.default_rng(0)
    hard = rng.uniform(0.2, 0.6, size=40)
    values = np.stack([hard + 0.3, hard + 0.001 * rng.normal(size=40), hard + 0.001 * rng.normal(size=40)])
    found = recommend(field(values, ["Search"] * 40), {}, ["search"])
    assert found.tellable
    assert [one.place.tie if one.place else "" for one in found.entries] == ["A", "B", "B"]
    few = recommend(field(values[:, :2], ["Search"] * 2), {}, ["search"])
    assert not few.tellable
    assert "Too few tasks" in " ".join(few.study().table.notes)


def test_equal_models_have_one_rank_and_gaps_have_none() -> None:
    values = np.array([[0.9, 0.9], [0.9, 0.9], [0.5, 0.5], [0.5, np.nan]])
    facts = {"m0": card("m0", parameters=1_234_567_890, dim=1024)}
    table = recommend(field(values, ["Search"] * 2), facts, ["search"]).study().table
    first, second, third, last = json.loads(table.format("json"))["rows"]
    assert [row["#"] for row in (first, second, third, last)] == [1, 1, 3, None]
    assert (first["size"], first["dim"], second["size"]) == (1_234_567_890, 1024, None)
    assert (first["tasks"], last["tasks"]) == ("2/2", "1/2")
    assert "1,235M  1024" in str(table)


def test_a_word_is_sought_before_its_singular() -> None:
    values = np.random.default_rng(0).uniform(size=(4, 4))
    matrix = field(values, ["Visual STS", "Understanding", "Document", "Classification"])

    def meant(need: str) -> tuple[int, ...]:
        return recommend(matrix, {}, [need]).needs[need]

    assert meant("sts") == (0,)
    assert meant("documents") == (2,)
    for need in ("st", "ios"):  # too short to be sought within a word: classificatIOn
        with pytest.raises(UnknownName):
            meant(need)


def test_files_name_models_and_needs_in_full() -> None:
    done = CliRunner().invoke(app, ["recommend", "-b", "ARK", "--need", "natural science", "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["model"] for row in rows} <= set(scores("ARK").models)
    assert any("/" in row["model"] for row in rows)
    assert all(row["natural science"] for row in rows)


@pytest.mark.parametrize("option", ["--top", "--min-dim", "--max-dim"])
@pytest.mark.parametrize("number", ["0", "-3"])
def test_counts_begin_at_one(option: str, number: str) -> None:
    done = CliRunner().invoke(app, ["recommend", "-b", "ARK", "--need", "engineering", option, number])
    assert done.exit_code == 2
    assert option in done.output


def test_limits_say_why_a_model_is_out() -> None:
    small = card("s", parameters=100_000_000, dim=512)
    assert Limits().against(None) is None
    assert Limits(parameters=1e9).against(None) == "no card"
    assert Limits(parameters=1e9).against(small) is None
    assert Limits(parameters=1e7).against(small) == "too large"
    assert Limits(parameters=1e9).against(card("u")) == "size not known"
    assert Limits(modalities=("audio",)).against(small) == "lacks a modality"
    assert Limits(min_dim=768).against(small) == "other dimension"
    assert Limits(max_dim=256).against(small) == "other dimension"
    assert Limits(max_dim=512).against(card("u")) == "dimension not known"


@pytest.mark.parametrize(("text", "number"), [("400M", 4e8), ("1.5b", 1.5e9), ("7e9", 7e9), ("12", 12), (" 3 K ", 3e3)])
def test_amounts(text: str, number: float) -> None:
    assert amount(text) == number


@pytest.mark.parametrize("text", ["many", "1..2M", "-3M", ""])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(EmbarkError, match="400M or"):
        amount(text)


def test_unknown_needs_get_suggestions() -> None:
    with pytest.raises(EmbarkError, match="Did you mean Retrieval"):
        recommend(scores("MIEB(Multilingual)"), {}, ["retreival"])


COMMANDS = [
    ["recommend", "--need", "retrieval,documents", "--max-params", "1B", "--modality", "text,image"],
    ["recommend", "-b", "ARK", "--need", "natural science"],
    ["analyze", "correlate", "-b", "ARK"],
    ["analyze", "distill", "--threshold", "0.8", "-b", "MIEB(lite)"],
    ["analyze", "distill", "--check", "MIEB(lite)"],
    ["analyze", "distill", "--representatives", "--by", "type"],
    ["analyze", "predict"],
    ["analyze", "scaling", "--against", "data", "--by", "type"],
    ["analyze", "pareto", "--against", "dim"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_print_within_100_columns_and_draw(command: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*command, "--plot", str(tmp_path / "plot.svg")])
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")


def test_tables_are_exported(tmp_path: Path) -> None:
    lines = "\n".join(f"{model},{at}" for at, model in enumerate(scores("ARK").models))
    lines = lines.replace(",", ",1,")
    (tmp_path / "mllm.csv").write_text(f"model,MMMU,OCRBench\n{lines}\n")
    done = CliRunner().invoke(app, ["analyze", "mllm", str(tmp_path / "mllm.csv"), "-b", "ARK", "--format", "csv"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("category,r,low,high,models,section\n")
    rows = [(row["category"], row["section"]) for row in csv.DictReader(io.StringIO(done.stdout))]
    assert len(rows) == len(set(rows)) == 2 * len({category for category, _ in rows})
    assert {section for _, section in rows} == {"MMMU", "OCRBench"}


def test_no_scores_is_said() -> None:
    done = CliRunner().invoke(app, ["analyze", "correlate", "-b", "Pocket"])
    assert isinstance(done.exception, EmbarkError)
    assert "embark run -b 'Pocket'" in str(done.exception)
