"""Leaderboards on a fresh install (the published models, by each benchmark's own rule) and over own tasks."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import embark
from embark import published
from embark.boards.leaderboards import leaderboard
from embark.catalogue import UnknownName
from embark.cli import app
from embark.models import LOADERS, MODELS
from embark.tasks import BENCHMARKS
from embark.types import EmbarkError
from folders import two_tasks

MIEB = "MIEB(Multilingual)"
WITH_TABLES = [b.name for b in BENCHMARKS.values() if published.results(b.name)]
Pictures = Callable[..., Path]


def content(*names: str, **options: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(leaderboard(*names, **options).table().format("json"))
    return loaded


def rows(*names: str, **options: Any) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = content(*names, **options)["rows"]
    return listed


@pytest.mark.slow
def test_a_fresh_install_shows_the_field(elsewhere: object) -> None:
    words = [sys.executable, "-m", "embark", "leaderboard", "-b", MIEB]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"})
    lines = ran.stdout.splitlines()
    assert re.match(r" 2 +1–37 +A +royokong/e5-v +58\.2 +58\.6", lines[3])  # below two lines of names
    assert lines[-1] == "source of all scores: published"
    assert max(map(len, lines)) <= 120
    assert "20 of 48 models are shown" in ran.stderr
    assert "--wide shows more columns: " in ran.stderr


def test_the_collapsed_probes_are_marked_wherever_they_show() -> None:
    board = leaderboard(MIEB)
    by_task = json.loads(board.tasks_table().format("json"))
    [sign] = [note[1 : note.index(")")] for note in by_task["notes"] if "mieb-collapsed-probe" in note]
    cells = [
        (row["task"], model)
        for row in by_task["rows"]
        if "section" in row
        for model, cell in row.items()
        if isinstance(cell, dict) and sign in cell["marks"]
    ]
    assert len(cells) == 13
    ranks = json.loads(board.table().format("json"))
    [sign] = [note[1 : note.index(")")] for note in ranks["notes"] if "mieb-collapsed-probe" in note]
    moved = [row["model"] for row in ranks["rows"] if sign in row["mean"]["marks"]]
    probed = [row["model"] for row in ranks["rows"] if sign in (row["ImageClassification"] or {}).get("marks", ())]
    assert (len(moved), probed) == (6, moved)
    assert {model for _, model in cells} == {model.split("/")[1] for model in moved}


@pytest.mark.parametrize("name", WITH_TABLES)
def test_every_benchmark_with_tables_has_a_board(name: str) -> None:
    board = leaderboard(name)
    totals = [entry.model.mean.value for entry in board.entries if entry.place is not None]
    assert totals == sorted(totals, reverse=True)
    assert len(board.table().rows) == len(board.entries) > 0
    narrow = board.table(20, 110)
    assert len(narrow.rows) == min(20, len(board.entries))
    assert narrow.width() <= 110


def test_filters_narrow_by_what_cards_say() -> None:
    small = rows("MIEB(lite)", types="encoder", max_parameters="200M", modalities="text")
    cards = [MODELS[row["model"]] for row in small]
    assert cards
    assert all(
        LOADERS[c.loader].type == "encoder" and (c.parameters or 0) <= 200e6 and "text" in c.modalities for c in cards
    )
    assert {MODELS[row["model"]].family for row in rows("MIEB(lite)", families="SigLIP")} == {"SigLIP"}
    built_on_llms = {row["model"] for row in rows("MIEB(lite)", types=["mllm"])}
    assert built_on_llms == {"royokong/e5-v", "TIGER-Lab/VLM2Vec-LoRA", "TIGER-Lab/VLM2Vec-Full"}
    with pytest.raises(EmbarkError, match="No model with results passes the filters"):
        leaderboard("ARK", families="GME")
    with pytest.raises(UnknownName, match="no model among these results"):
        leaderboard("ARK", models="x")


@pytest.mark.parametrize("family", published.FAMILIES)
def test_published_models_are_joined_to_cards(family: str) -> None:
    names = {card.aliases.get(family) for card in MODELS.values()} | {*MODELS}
    printed = {score.model for score in published.scores(family) if score.kind == "task"}
    assert printed - names <= {"BAAI/EVA-CLIP-18B"}  # which has no loader


def test_models_have_the_names_of_their_cards() -> None:
    names = {row["model"] for row in rows("UniBench")}
    assert "laion/CLIP-ViT-bigG-14-laion2B-39B-b160k" in names
    assert "openclip_vitbigG14_2b" not in names


def test_comparable_is_over_what_all_share() -> None:
    shared = content("MMEB-V3", comparable=True)
    assert any(note.startswith("177 tasks by the rule mmeb") for note in shared["notes"])
    assert all(row["All"]["tasks"] == row["All"]["of"] == 177 for row in shared["rows"])
    with pytest.raises(EmbarkError, match="The 10 models have no task in common: choose fewer"):
        leaderboard("UniBench", comparable=True)


def test_models_with_gaps_are_sorted_by_coverage_and_told_where_they_compare() -> None:
    unibench = content("UniBench")
    counts = [row["mean"]["tasks"] for row in unibench["rows"]]
    assert counts == [41, *[1] * 9]  # the only one with many benchmarks is not below those with one
    assert unibench["notes"][-1].startswith("the 10 models share none of the tasks")
    assert any("the 7 models share 177 of the tasks" in note for note in content("MMEB-V3")["notes"])


def test_scores_on_other_data_are_left_out_and_named() -> None:
    [note] = leaderboard("MMEB-V3").notes
    assert "MMEB/ViDoSeek-page of 5 models, MMEB/MMLongBench-page of 5 models" in note
    assert leaderboard("ARK").notes == ()


def test_arks_reasoning_axis_stands_beside_the_knowledge_axis() -> None:
    ark = content("ARK")
    by_model = {row["model"]: row for row in ark["rows"]}
    best = by_model["Qwen/Qwen3-VL-Embedding-8B"]
    assert list(best).index("reasoning axis") == list(best).index("knowledge axis") + 1
    skills = [name for name in best if name.endswith((" reasoning", " abstraction"))]
    assert len(skills) == 6
    assert best["reasoning axis"]["score"] == pytest.approx(sum(best[s]["score"] for s in skills) / 6, abs=2e-4)
    assert best["perception-only"]["score"] == 0.6907  # Daily-Life's, and the same queries
    [sign] = [note[1 : note.index(")")] for note in ark["notes"] if "ark-siglip2-link" in note]
    doubtful = by_model["google/siglip-so400m-patch14-384"]
    assert all(doubtful[name]["marks"] == [sign] for name in ("knowledge axis", "reasoning axis", "both"))
    captioned = rows("ARK", protocol="captions")
    assert all(row["reasoning axis"]["score"] > 0 for row in captioned)


def test_omniset_has_a_column_a_direction() -> None:
    [first, *_] = rows("OmniSET")
    scores = [name for name, cell in first.items() if isinstance(cell, dict)]
    assert scores[0] == "All"
    assert len(scores) == 1 + 12
    assert scores[1] == "OmniSET/T2I"


def test_other_rules() -> None:
    medians = rows("MIEB(lite)", rule="median-of-types")
    assert list(medians[0]).index("median") == 6
    assert {row["95 %"] for row in medians} == {""}  # nothing is claimed about a median
    hard = content("MIEB(lite)", weigh_by="openai/clip-vit-base-patch32")
    by_model = {row["model"]: row["weighted mean"]["score"] for row in hard["rows"]}
    plain = {row["model"]: row["mean"]["score"] for row in rows("MIEB(lite)")}
    assert by_model["openai/clip-vit-base-patch32"] < plain["openai/clip-vit-base-patch32"]
    assert any("mean weighted by what openai/clip-vit-base-patch32 lacks" in note for note in hard["notes"])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rule": "mean-of-type"}, "Did you mean mean-of-types"),
        ({"rule": "mean-of-capabilities"}, "not for MIEB"),
        ({"weigh_by": "clip"}, r"no model with results on MIEB\(lite\)"),
        ({"weigh_by": "royokong/e5-v", "rule": "mean-of-types"}, "give one of them"),
        ({"types": "encoders"}, "Did you mean encoder"),
        ({"max_parameters": "seven"}, "is no number of parameters"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], why: str) -> None:
    with pytest.raises(EmbarkError, match=why):
        leaderboard("MIEB(lite)", **options)


def test_a_protocol_with_aggregates_alone_names_their_table() -> None:
    with pytest.raises(EmbarkError, match="embark published show 'ARK Table 8'"):
        leaderboard("ARK", protocol="rewrite")


def test_unlike_protocols_are_shown_only_when_asked_for() -> None:
    captions = {row["model"] for row in rows("ARK", protocol="captions")}
    assert "BAAI/bge-m3" in captions
    assert captions.isdisjoint(row["model"] for row in rows("ARK"))
    old = rows(MIEB, protocol="mteb2")
    assert max(row["mean"]["tasks"] for row in old) < 130  # the paper's scores on rows that mteb 2 scores otherwise


def test_borda_and_exports() -> None:
    board = leaderboard("ARK", borda=True)
    [first, *_] = csv.DictReader(io.StringIO(board.table().format("csv")))
    assert first["#"] == "1"
    assert float(first["Borda"]) > 17 * 12 / 2
    frame = board.to_frame()
    assert frame.loc[0, "model"] == first["model"]
    assert frame.loc[0, "knowledge axis"] == float(first["knowledge axis"])
    ark = leaderboard("ARK").table()
    assert ark.format("markdown").startswith("| # | 95 % | tie | model | source |")
    assert r"\# & 95 \% & tie & model & source" in ark.format("latex")
    few = CliRunner().invoke(app, ["leaderboard", "-b", "ARK", "--top", "3"], env={"COLUMNS": "110"}).stdout
    assert [line.split()[0] for line in few.splitlines() if line.endswith(tuple("0123456789"))] == ["1", "2", "3"]


def test_yours_stand_beside_the_published(tiny: embark.Encoder, pocket_home: object) -> None:
    """A model that was run here is ranked by items; one protocol and source a row."""
    embark.evaluate([tiny, "embark/random"], "Pocket(lite)", show_progress=False)
    board = leaderboard("Pocket(lite)", include="own")
    assert {entry.model.source for entry in board.entries} == {"yours"}
    assert board.resampled == "items"
    one = leaderboard("Pocket(lite)", models="embark/*", comparable=True)
    assert [entry.place.rank for entry in one.entries if entry.place] == [1]
    with_images = leaderboard("Pocket(lite)", modalities="image")
    assert "test/tiny" in {entry.model.model for entry in with_images.entries}
    for meta in embark.load_settings().results.glob("test__tiny/*/model_meta.json"):
        meta.unlink()
    without = leaderboard("Pocket(lite)", modalities="image")
    assert without.notes == ("left out, because they have no card: test/tiny",)
    with pytest.raises(EmbarkError, match=r"There are no results for Pocket\(lite\)"):
        leaderboard("Pocket(lite)", include="published")
    assert "There are no results for Pocket(lite)" in str(
        CliRunner().invoke(app, ["leaderboard", "-b", "Pocket(lite)", "--include", "published"]).exception
    )


# ── own tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_own_tasks_are_ranked_without_their_folder(tiny: embark.Encoder, pictures: Pictures) -> None:
    folder = pictures("Holiday")
    embark.evaluate([tiny, "embark/random"], two_tasks(folder), show_progress=False)
    shutil.rmtree(folder)
    board = leaderboard(tasks="Holiday*")
    assert [entry.model.model for entry in board.entries] == ["test/tiny", "embark/random"]
    assert board.entries[0].model.categories.keys() == {"Retrieval", "Zero-shot"}
    assert leaderboard(include="own").table() == board.table()  # all that there are results on
    words = ["leaderboard", "--include", "own", "--by-task", "--format", "csv"]
    assert CliRunner().invoke(app, words).stdout == board.tasks_table().format("csv") + "\n"
    with pytest.raises(EmbarkError, match="Results on other tasks are ranked by: embark leaderboard --include own"):
        leaderboard()


def test_nothing_on_the_chosen_tasks_is_an_error(elsewhere: Path) -> None:
    with pytest.raises(EmbarkError, match=f"There are no results for these tasks in {elsewhere}"):
        leaderboard(tasks="PocketFlagZeroShot")
    with pytest.raises(EmbarkError, match="Make some: embark run"):
        leaderboard(include="own")


def test_a_board_shows_itself_in_a_notebook() -> None:
    board = leaderboard("MMEB-V3")
    html = board._repr_html_()
    assert html.count("<tr>") == len(board.entries) + 1
    assert html.endswith(f"{board.notes[0]}</small></p>")
    assert str(board) == str(board.table())
