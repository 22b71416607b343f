"""`embark analyze` and `embark recommend` as people meet them; what they compute is tested beside the studies."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cases import slow
from embark.boards.matrix import load_matrix
from embark.cli import app
from embark.studies import STUDIES
from embark.types import EmbarkError

MODEL = "embark/random"


@pytest.fixture(scope="module")
def home(pocket_vectors: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the vectors of a few tasks."""
    return shutil.copytree(pocket_vectors, tmp_path_factory.mktemp("store") / "home")


def printed(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("command", "task", "words"),
    [
        ("geometry", "PocketFlagZeroShot", ("modality gap", "anti-hubs", "uniformity", "item → prompt")),
        ("truncate", "PocketClockReading", ("all 256", "first 128", "PCA 8", "difference")),
        ("similarity", "PocketNameSTS", ("cosine", "manhattan", "length one")),
        *slow(  # each is also run, and drawn, beside its study
            ("map", "PocketFlagZeroShot", ("item (image)", "Trustworthiness")),
            ("quantize", "PocketClockReading", ("float32, 256", "float16, 256", "int8, 128", "binary, 64")),
            ("topk", "PocketFlagZeroShot", ("hit_rate at 1", "hit_rate at 100")),
            ("shots", "PocketMotionProbe", ("1 a class", "16 a class")),
            ("robustness", "PocketRobustness", ("clean", "low-contrast", "hit_rate_at_1")),
            ("index", "PocketClockArithmetic", ("binary, 4× re-scored", "int8 graph, 64", "graph, 256", "of exact")),
            ("prompts", "PocketSubgroupZeroShot", ("3 together", "“a picture of {}”")),
        ),
    ],
)
def test_vectors_are_printed_and_drawn(
    command: str, task: str, words: tuple[str, ...], home: Path, tmp_path: Path
) -> None:
    method = ("--method", "pca") if command == "map" else ()
    plot = tmp_path / "plot.svg"
    text = printed("analyze", command, "-m", MODEL, "-t", task, *method, "--home", home, "--plot", plot)
    assert [word for word in words if word not in text] == []
    assert max(map(len, text.splitlines())) <= 100
    assert plot.stat().st_size > 5_000


@pytest.mark.parametrize(
    "command",
    [
        ["recommend", "--need", "retrieval,documents", "--max-params", "1B", "--modality", "text,image"],
        ["recommend", "-b", "ARK", "--need", "natural science"],
        ["analyze", "pareto", "--against", "dim"],
        *slow(  # likewise
            ["analyze", "correlate", "-b", "ARK"],
            ["analyze", "distill", "--threshold", "0.8", "-b", "MIEB(lite)"],
            ["analyze", "distill", "--check", "MIEB(lite)"],
            ["analyze", "distill", "--representatives", "--by", "type"],
            ["analyze", "predict"],
            ["analyze", "scaling", "--against", "data", "--by", "type"],
        ),
    ],
    ids=" ".join,
)
def test_scores_are_printed_and_drawn(command: list[str], tmp_path: Path) -> None:
    text = printed(*command, "--plot", tmp_path / "plot.svg")
    assert max(map(len, text.splitlines())) <= 100
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")


def test_a_table_of_yours(tmp_path: Path) -> None:
    lines = [f"{model},1,{number}\n" for number, model in enumerate(load_matrix("ARK").models)]
    (tmp_path / "mllm.csv").write_text("model,MMMU,OCRBench\n" + "".join(lines))
    text = printed("analyze", "mllm", "--table", tmp_path / "mllm.csv", "-b", "ARK", "--format", "csv")
    assert text.startswith("category,r,low,high,models,section\n")
    rows = [(row["category"], row["section"]) for row in csv.DictReader(io.StringIO(text))]
    assert len(rows) == len(set(rows)) == 2 * len({category for category, _ in rows})
    assert {section for _, section in rows} == {"MMMU", "OCRBench"}


@pytest.mark.parametrize("command", [*(("analyze", name) for name in STUDIES.own), ("recommend",)], ids=" ".join)
def test_help_has_an_example_and_fits_a_screen(command: tuple[str, ...]) -> None:
    text = printed(*command, "--help")
    assert f"embark {' '.join(command)} -" in text
    assert len(text.splitlines()) <= 50


def test_a_task_of_a_file(home: Path, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("one,other,score\n" + "".join(f"a{n},b{n},{n}\n" for n in range(9)))
    (tmp_path / "tasks.toml").write_text(
        '[[task]]\nname = "MyPairs"\nevaluator = "sts"\nreader = "rendered-sts"\nmodalities = ["text"]\n'
        'columns = { left = "one", right = "other", score = "score" }\nsource = { id = "." }\n'
    )
    words = ("-m", MODEL, "-t", "MyPairs", "--tasks-file", tmp_path / "tasks.toml", "--home", home, "--embed")
    assert "left → right" in printed("analyze", "geometry", *words)


def test_no_scores_is_an_error_that_names_the_command() -> None:
    result = CliRunner().invoke(app, ["analyze", "correlate", "-b", "Pocket"])
    assert isinstance(result.exception, EmbarkError)
    assert "embark run -b 'Pocket'" in str(result.exception)


def test_a_task_must_be_named() -> None:
    assert "name a benchmark (-b), tasks (-t)" in CliRunner().invoke(app, ["analyze", "truncate", "-m", MODEL]).output


@pytest.mark.parametrize("option", ["--top", "--min-dim", "--max-dim"])
@pytest.mark.parametrize("number", ["0", "-3"])
def test_counts_begin_at_one(option: str, number: str) -> None:
    result = CliRunner().invoke(app, ["recommend", "-b", "ARK", "--need", "engineering", option, number])
    assert result.exit_code == 2
    assert option in result.output
