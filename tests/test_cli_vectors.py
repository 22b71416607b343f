"""`embark analyze` on stored vectors, as people meet it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.cli.analyze.vectors import COMMANDS
from embark.settings import load_settings
from embark.types import EmbarkError

MODEL = "embark/random"


@pytest.fixture(scope="module")
def home(pocket_vectors: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the vectors of a few tasks."""
    return shutil.copytree(pocket_vectors, tmp_path_factory.mktemp("store") / "home")


def said(*words: str | Path, home: Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["analyze", *map(str, words), "-m", MODEL, "--home", str(home)])
    assert result.exit_code == code, result.output
    return result.stdout


def error(*words: str | Path, home: Path) -> str:
    result = CliRunner().invoke(app, ["analyze", *map(str, words), "-m", MODEL, "--home", str(home)])
    assert isinstance(result.exception, EmbarkError), result.output
    return str(result.exception)


@pytest.mark.parametrize(
    ("command", "task", "words"),
    [
        ("geometry", "PocketFlagZeroShot", ("modality gap", "anti-hubs", "uniformity", "item → prompt")),
        ("map", "PocketFlagZeroShot", ("item (image)", "Trustworthiness")),
        ("truncate", "PocketClockReading", ("all 256", "first 128", "PCA 8", "difference")),
        ("quantize", "PocketClockReading", ("float16, 256", "int8, 128", "binary, 64")),
        ("similarity", "PocketNameSTS", ("cosine", "manhattan", "length one")),
        ("topk", "PocketFlagZeroShot", ("hit_rate at 1", "hit_rate at 100")),
        ("shots", "PocketMotionProbe", ("1 a class", "16 a class")),
        ("robustness", "PocketRobustness", ("clean", "low-contrast", "hit_rate_at_1")),
        ("prompts", "PocketSubgroupZeroShot", ("3 together", "“a picture of {}”")),
    ],
)
def test_each_prints_a_table_and_draws(
    command: str, task: str, words: tuple[str, ...], home: Path, tmp_path: Path
) -> None:
    method = ("--method", "pca") if command == "map" else ()
    text = said(command, "-t", task, *method, "--plot", tmp_path / "plot.svg", home=home)
    assert [word for word in words if word not in text] == []
    assert max(map(len, text.splitlines())) <= 100
    assert (tmp_path / "plot.svg").stat().st_size > 5_000


def test_every_command_has_help_with_an_example() -> None:
    for name in COMMANDS:
        text = CliRunner().invoke(app, ["analyze", name, "--help"]).stdout
        assert f"embark analyze {name} -m embark/pocket" in text


def test_scores_are_those_of_the_run(home: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(said("topk", "-t", "PocketFlagZeroShot", "--format", "csv", home=home))))
    run = embark.evaluate(MODEL, "PocketFlagZeroShot", settings=load_settings(home, home / "results"))
    assert run.computed == 0
    assert float(rows[0]["score"]) == run.results[0].score
    assert [float(rows[0][name]) for name in ("score low", "score high")] == list(run.results[0].interval)


def test_json_has_numbers(home: Path) -> None:
    found = json.loads(said("truncate", "-t", "PocketHairPairs", "--dims", "32", "--format", "json", home=home))
    assert [row["bytes an item"] for row in found["rows"]] == [512, 64, 64]
    assert found["rows"][1]["difference"]["low"] <= found["rows"][1]["difference"]["score"]


def test_a_csv_tells_the_curves_apart(home: Path) -> None:
    asked = ("topk", "-t", "PocketFlagZeroShot", "-t", "PocketSubgroupZeroShot", "--format", "csv")
    rows = [(row["setting"], row["section"]) for row in csv.DictReader(io.StringIO(said(*asked, home=home)))]
    assert len({section for _, section in rows}) == 2
    assert len(rows) == len(set(rows))


def test_missing_vectors_name_the_command(home: Path) -> None:
    message = error("geometry", "-t", "PocketCounting", home=home)
    assert f"Embed them: embark run -m {MODEL} -t PocketCounting" in message


def test_more_shots_need_embedding(home: Path) -> None:
    asked = ("shots", "-t", "PocketMotionProbe", "--shots", "40")
    assert "add --embed to this command" in error(*asked, home=home)
    assert "40 a class" in said(*asked, "--embed", home=home)
    assert "40 a class" in said(*asked, home=home)  # they are kept
    assert "learns from no examples" in error("shots", "-t", "PocketNameSTS", home=home)


def test_another_prompt_needs_embedding(home: Path) -> None:
    asked = ("prompts", "-t", "PocketFlagZeroShot", "--prompt", "the flag of {}")
    assert "add --embed to this command" in error(*asked, home=home)
    assert "“the flag of {}”" in said(*asked, "--embed", home=home)


def test_what_was_asked_wrongly(home: Path) -> None:
    assert "name a task" in CliRunner().invoke(app, ["analyze", "truncate", "-m", MODEL]).output
    result = CliRunner().invoke(app, ["analyze", "map", "-m", MODEL, "-t", "PocketNameSTS", "--by", "colour"])
    assert "--by is side or label" in result.output
