"""`embark leaderboard` on a fresh install: the published models, by each benchmark's own rule."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

import embark
from embark import published
from embark.cli import app
from embark.models import LOADERS, MODELS
from embark.tasks import BENCHMARKS

MIEB = "MIEB(Multilingual)"
WITH_TABLES = [b.name for b in BENCHMARKS.values() if published.results(b.name)]


def board(*words: str) -> Any:
    made = CliRunner().invoke(app, ["leaderboard", *words], env={"COLUMNS": "110"})
    assert made.exit_code == 0, made.output
    return made


def rows(*words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(board(*words, "--format", "json").stdout)["rows"]
    return found


def test_a_fresh_install_shows_the_field(elsewhere: object) -> None:
    words = [sys.executable, "-m", "embark", "leaderboard", "-b", MIEB]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"})
    lines = ran.stdout.splitlines()
    assert re.match(r" 2 +2–11 +B +royokong/e5-v +58\.2 +58\.6", lines[3])  # below two lines of names
    assert lines[-1] == "source of all scores: published"
    assert max(map(len, lines)) <= 120
    assert "20 of 48 models are shown" in ran.stderr


def test_the_collapsed_probes_are_marked_wherever_they_show() -> None:
    content = json.loads(board("-b", MIEB, "--by-task", "--format", "json").stdout)
    [sign] = [note[1 : note.index(")")] for note in content["notes"] if "mieb-collapsed-probe" in note]
    cells = [
        (row["task"], model)
        for row in content["rows"]
        if "section" in row
        for model, cell in row.items()
        if isinstance(cell, dict) and sign in cell["marks"]
    ]
    assert len(cells) == 13
    content = json.loads(board("-b", MIEB, "--format", "json").stdout)
    [sign] = [note[1 : note.index(")")] for note in content["notes"] if "mieb-collapsed-probe" in note]
    moved = [row["model"] for row in content["rows"] if sign in row["mean"]["marks"]]
    probed = [row["model"] for row in content["rows"] if sign in (row["ImageClassification"] or {}).get("marks", ())]
    assert (len(moved), probed) == (6, moved)
    assert {model for _, model in cells} == {model.split("/")[1] for model in moved}


@pytest.mark.parametrize("name", WITH_TABLES)
def test_every_benchmark_with_tables_has_a_board(name: str) -> None:
    found = rows("-b", name)
    assert found
    ranked = [row for row in found if row["#"] != "–"]
    totals = [next(cell["score"] for cell in row.values() if isinstance(cell, dict)) for row in ranked]
    assert totals == sorted(totals, reverse=True)
    for line in board("-b", name).stdout.splitlines():
        assert len(line) <= 120


def test_filters_narrow_by_what_cards_say() -> None:
    small = rows("-b", "MIEB(lite)", "--type", "encoder", "--max-params", "200M", "--modality", "text")
    cards = [MODELS[row["model"]] for row in small]
    assert cards
    assert all(
        LOADERS[c.loader].type == "encoder" and (c.parameters or 0) <= 200e6 and "text" in c.modalities for c in cards
    )
    assert {MODELS[row["model"]].family for row in rows("-b", "MIEB(lite)", "--family", "SigLIP")} == {"SigLIP"}
    built_on_llms = {row["model"] for row in rows("-b", "MIEB(lite)", "--type", "mllm")}
    assert built_on_llms == {"royokong/e5-v", "TIGER-Lab/VLM2Vec-LoRA", "TIGER-Lab/VLM2Vec-Full"}
    nothing = CliRunner().invoke(app, ["leaderboard", "-b", "ARK", "--family", "GME"])
    assert "No model with results passes the filters" in str(nothing.exception)
    assert "no model among these results" in str(
        CliRunner().invoke(app, ["leaderboard", "-b", "ARK", "-m", "x"]).exception
    )


@pytest.mark.parametrize("family", published.FAMILIES)
def test_published_models_are_joined_to_cards(family: str) -> None:
    names = {card.aliases.get(family) for card in MODELS.values()} | {*MODELS}
    printed = {score.model for score in published.scores(family) if score.kind == "task"}
    assert printed - names <= {"BAAI/EVA-CLIP-18B"}  # which has no loader


def test_models_have_the_names_of_their_cards() -> None:
    names = {row["model"] for row in rows("-b", "UniBench")}
    assert "laion/CLIP-ViT-bigG-14-laion2B-39B-b160k" in names
    assert "openclip_vitbigG14_2b" not in names


def test_comparable_is_over_what_all_share() -> None:
    content = json.loads(board("-b", "MMEB-V3", "--comparable", "--format", "json").stdout)
    assert any(note.startswith("177 tasks by the rule mmeb") for note in content["notes"])
    assert all(row["All"]["tasks"] == row["All"]["of"] == 177 for row in content["rows"])


def test_models_with_gaps_are_sorted_by_coverage_and_told_where_they_compare() -> None:
    content = json.loads(board("-b", "UniBench", "--format", "json").stdout)
    counts = [row["mean"]["tasks"] for row in content["rows"]]
    assert counts == [41, *[1] * 9]  # the only one with many benchmarks is not below those with one
    assert content["notes"][-1].startswith("the 10 models share 0 of the tasks: --comparable")
    assert any("the 7 models share 177 of the tasks" in line for line in board("-b", "MMEB-V3").stdout.splitlines())


def test_scores_on_other_data_are_left_out_and_named() -> None:
    said = board("-b", "MMEB-V3").stderr
    assert "MMEB/ViDoSeek-page of 5 models, MMEB/MMLongBench-page of 5 models" in said
    assert "left out" not in board("-b", "ARK").stderr


def test_arks_reasoning_axis_stands_beside_the_knowledge_axis() -> None:
    content = json.loads(board("-b", "ARK", "--format", "json").stdout)
    by_model = {row["model"]: row for row in content["rows"]}
    best = by_model["Qwen/Qwen3-VL-Embedding-8B"]
    assert list(best).index("reasoning axis") == list(best).index("knowledge axis") + 1
    skills = [name for name in best if name.endswith((" reasoning", " abstraction"))]
    assert len(skills) == 6
    assert best["reasoning axis"]["score"] == pytest.approx(sum(best[s]["score"] for s in skills) / 6, abs=2e-4)
    assert best["perception-only"]["score"] == 0.6907  # Daily-Life's, and the same queries
    [sign] = [note[1 : note.index(")")] for note in content["notes"] if "ark-siglip2-link" in note]
    doubtful = by_model["google/siglip-so400m-patch14-384"]
    assert all(doubtful[name]["marks"] == [sign] for name in ("knowledge axis", "reasoning axis", "both"))
    captioned = rows("-b", "ARK", "--protocol", "captions")
    assert all(row["reasoning axis"]["score"] > 0 for row in captioned)


def test_omniset_has_a_column_a_direction() -> None:
    [first, *_] = rows("-b", "OmniSET")
    scores = [name for name, cell in first.items() if isinstance(cell, dict)]
    assert scores[0] == "All"
    assert len(scores) == 1 + 12
    assert scores[1] == "OmniSET/T2I"


def test_other_rules() -> None:
    medians = rows("-b", "MIEB(lite)", "--rule", "median-of-types")
    assert list(medians[0]).index("median") == 6
    assert {row["95 %"] for row in medians} == {""}  # nothing is claimed about a median
    hard = json.loads(
        board("-b", "MIEB(lite)", "--weigh-by", "openai/clip-vit-base-patch32", "--format", "json").stdout
    )
    by_model = {row["model"]: row["weighted mean"]["score"] for row in hard["rows"]}
    plain = {row["model"]: row["mean"]["score"] for row in rows("-b", "MIEB(lite)")}
    assert by_model["openai/clip-vit-base-patch32"] < plain["openai/clip-vit-base-patch32"]
    assert any("mean weighted by what openai/clip-vit-base-patch32 lacks" in note for note in hard["notes"])
    for words, why in (
        (["--rule", "mean-of-type"], "Did you mean mean-of-types"),
        (["--rule", "mean-of-capabilities"], "not for MIEB"),
        (["--weigh-by", "clip"], "no model with results on MIEB"),
        (["--weigh-by", "royokong/e5-v", "--rule", "mean-of-types"], "give one of them"),
    ):
        assert why in str(CliRunner().invoke(app, ["leaderboard", "-b", "MIEB(lite)", *words]).exception)


def test_a_protocol_with_aggregates_alone_names_their_table() -> None:
    nothing = CliRunner().invoke(app, ["leaderboard", "-b", "ARK", "--protocol", "rewrite"])
    assert "embark published show 'ARK Table 8'" in str(nothing.exception)


def test_unlike_protocols_are_shown_only_when_asked_for() -> None:
    captions = {row["model"] for row in rows("-b", "ARK", "--protocol", "captions")}
    assert "BAAI/bge-m3" in captions
    assert captions.isdisjoint(row["model"] for row in rows("-b", "ARK"))
    old = rows("-b", MIEB, "--protocol", "mteb2")
    assert max(row["mean"]["tasks"] for row in old) < 130  # the paper's scores on rows that mteb 2 scores otherwise


def test_borda_and_exports() -> None:
    [first, *_] = csv.DictReader(io.StringIO(board("-b", "ARK", "--borda", "--format", "csv").stdout))
    assert first["#"] == "1"
    assert float(first["Borda"]) > 17 * 12 / 2
    assert board("-b", "ARK", "--format", "markdown").stdout.startswith("| # | 95 % | tie | model | source |")
    assert r"\# & 95 \% & tie & model & source" in board("-b", "ARK", "--format", "latex").stdout
    few = board("-b", "ARK", "--top", "3").stdout.splitlines()
    assert [line.split()[0] for line in few if line.endswith(tuple("0123456789"))] == ["1", "2", "3"]


def test_yours_stand_beside_the_published(tiny: embark.Encoder, pocket_home: object) -> None:
    """A model that was run here is ranked by items; one protocol and source a row."""
    embark.evaluate([tiny, "embark/random"], "Pocket(lite)", show_progress=False)
    found = board("-b", "Pocket(lite)", "--own", "--format", "json")
    content = json.loads(found.stdout)
    assert {row["source"] for row in content["rows"]} == {"yours"}
    one = json.loads(board("-b", "Pocket(lite)", "-m", "embark/*", "--comparable", "--format", "json").stdout)
    assert one["rows"][0]["#"] == "1"
    without = board("-b", "Pocket(lite)", "--modality", "image")
    assert "left out, because no card tells what they are: test/tiny" in without.stderr
    only = CliRunner().invoke(app, ["leaderboard", "-b", "Pocket(lite)", "--published"])
    assert "There are no results for Pocket(lite)" in str(only.exception)


def test_show_tells_published_scores() -> None:
    def shown(name: str) -> str:
        return CliRunner().invoke(app, ["show", name]).stdout

    assert "published     MIEB(Multilingual): 58.2" in shown("royokong/e5-v")
    assert "published     voyageai/voyage-multimodal-3: 63.8 (erratum mieb-voyage-rerun)" in shown(MIEB)
    assert "(46 models): accuracy; embark leaderboard has all" in shown("Imagenet1k")
    assert "published" not in json.loads(CliRunner().invoke(app, ["show", "Pocket", "--json"]).stdout)
