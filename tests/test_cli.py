"""The command line as people meet it: real processes for the way in and out, the runner for the rest."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from cases import slow
from embark.cli import app
from embark.models import MODELS
from embark.tasks import BENCHMARKS, TASKS
from embark.types import EmbarkError
from hub import FakeHub
from pseudo_terminal import CODES

LITE, TASK = "Pocket(lite)", "PocketFlagZeroShot"
Pictures = Callable[..., Path]


def process(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "embark", *map(str, words)], capture_output=True, text=True, check=False
    )


def said(*words: str | Path, code: int = 0) -> str:
    """What a command writes to standard output."""
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == code, result.output
    return result.stdout


def error(*words: str | Path) -> str:
    """The message of a command that a user can mend."""
    result = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(result.exception, EmbarkError), result.output
    assert result.stdout == ""
    return str(result.exception)


@pytest.fixture(scope="module")
def lite(pocket_vectors: Path) -> Path:
    """Results of the small benchmark, to be read alone."""
    return pocket_vectors / "results"


# ── real processes ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_prints_the_table_and_reports_beside_it(tmp_path: Path) -> None:
    results = tmp_path / "results"
    tasks = ["-t", TASK, "-t", "PocketNameSTS"]
    ran = process("run", *tasks, "-m", "embark/random", "--home", tmp_path / "home", "--results", results)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].split() == ["task", "metric", "chance", "random"]
    assert any(line.startswith(TASK) for line in lines)
    assert "scores computed, 0 already on disk" in ran.stderr
    assert "each is embedded once and serves" in ran.stderr
    assert (results / "embark__random" / MODELS["embark/random"].revision / f"{TASK}.json").is_file()


def test_an_unknown_name_is_a_message_and_not_a_traceback() -> None:
    ran = process("run", "-t", "PocketFlagZeroshot", "-m", "embark/random")
    assert (ran.returncode, ran.stdout) == (2, "")
    message = "error: There is no task or benchmark named 'PocketFlagZeroshot'. Did you mean PocketFlagZeroShot"
    assert ran.stderr.startswith(message)
    assert len(ran.stderr.splitlines()) == 1


def test_help_lists_the_commands() -> None:
    ran = process("--help")
    assert ran.returncode == 0
    for command in ("run", "plan", "leaderboard", "tasks", "benchmarks", "models", "show"):
        assert f"\n  {command} " in ran.stdout


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_keeps_what_it_did(elsewhere: Path) -> None:
    words = [sys.executable, "-m", "embark", "run", "-m", "embark/pocket", "-b", "Pocket"]  # long
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not any(elsewhere.glob("home/store/*/*.vectors")):
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted; what was embedded is kept, run the same command to go on"
    assert "Traceback" not in err


def test_the_version_is_told() -> None:
    assert said("--version") == f"embark {embark.__version__}\n"


def test_results_that_cannot_be_written_are_an_error_before_the_work(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    ran = process("run", "-t", TASK, "-m", "embark/random", "--home", tmp_path / "home", "--results", taken)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"error: Scores cannot be written to {taken} (File exists): set --results.\n"
    assert not (tmp_path / "home").exists()


def on_a_terminal(columns: int, *words: str | Path) -> list[str]:
    """The lines that a command writes to a terminal of that width."""
    program = [sys.executable, "-m", "embark", *map(str, words)]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(program[0], program, os.environ | {"COLUMNS": str(columns), "TERM": "xterm"})
    told = b""
    with suppress(OSError):  # how Linux says that the other side has closed
        while block := os.read(terminal, 1 << 16):
            told += block
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, told
    return told.decode().splitlines()


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (40, ["task", "random"]),
        *slow((50, ["task", "random"]), (120, ["task", "metric", "chance", "random"])),
    ],
)
def test_no_number_is_cut_on_a_narrow_terminal(lite: Path, columns: int, head: list[str]) -> None:
    styled = on_a_terminal(columns, "leaderboard", "-b", LITE, "--by-task", "--results", lite)
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in styled]
    assert plain != styled
    assert plain[0].split() == head
    assert max(map(len, plain)) <= columns
    scores = [line for line in plain if re.search(r" ± | \[", line)]
    assert len(scores) == len(BENCHMARKS[LITE].tasks) + 1
    ends = r"\d( ± \d+\.\d| \[-?\d+\.\d, \d+\.\d\])( \(\w\))?$"
    assert all(re.search(ends, line) for line in scores)


# ── listings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tasks_are_listed_and_filtered() -> None:
    assert [task["name"] for task in json.loads(said("tasks", "--format", "json"))] == list(TASKS)
    lines = said("tasks", "--evaluator", "zeroshot", "--modality", "text", "--modality", "image").splitlines()
    assert lines[0].split()[0] == "task"
    assert TASK in [line.split()[0] for line in lines]
    assert all("zeroshot" in line.split() for line in lines[1:])
    assert [task["name"] for task in json.loads(said("tasks", "PocketFlagZ*", "--format", "json"))] == [TASK]
    assert "Did you mean zeroshot" in error("tasks", "--evaluator", "zeroshoot")


def test_more_filters_and_sizes() -> None:
    counting = said("tasks", "--capability", "counting", "--family", "Pocket", "--format", "json")
    names = [task["name"] for task in json.loads(counting)]
    assert names == ["PocketCounting"]
    filters = ("--family", "ARK", "--max-items", "400", "--evaluator", "retrieval")
    small = json.loads(said("tasks", *filters, "--format", "json"))
    assert [task["name"] for task in small] == ["ARK/Metro", "ARK/Electronics"]
    assert said("tasks", "ARK/Metro", "--license", "*CC BY-NC-SA*").splitlines()[1].split()[-1] == "317"


def test_no_match_says_so_beside_the_output() -> None:
    result = CliRunner().invoke(app, ["tasks", TASK, "--evaluator", "retrieval"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing matches\n")


def test_benchmarks_are_listed() -> None:
    listed = {one["name"]: one for one in json.loads(said("benchmarks", "--format", "json"))}
    assert list(listed) == list(BENCHMARKS)
    assert listed["Pocket"]["count"] == len(listed["Pocket"]["tasks"]) == len(BENCHMARKS["Pocket"].tasks)
    assert LITE in said("benchmarks")


def test_models_are_listed_and_filtered() -> None:
    assert [model["name"] for model in json.loads(said("models", "--format", "json"))] == list(MODELS)
    lines = said("models", "--loader", "random").splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("embark/random")
    assert "Did you mean embark/pocket" in error("models", "embark/pockt")
    assert "There are text, image, audio, video." in error("models", "--modality", "smell")
    assert "There is no loader named 'smell'" in error("models", "--loader", "smell")


def test_models_are_filtered_by_what_they_are() -> None:
    def names(*options: str) -> list[str]:
        return [model["name"] for model in json.loads(said("models", *options, "--format", "json"))]

    small = names("--family", "CLIP", "--max-params", "200M")
    assert "openai/clip-vit-base-patch32" in small
    assert all(MODELS[name].family == "CLIP" and (MODELS[name].parameters or 0) <= 200e6 for name in small)
    assert names("--kind", "embedder") == [name for name, card in MODELS.items() if card.kind == "embedder"]
    assert set(names("--family", "DINO*", "--family", "CLIP")) > set(names("--family", "DINO*"))
    assert "Did you mean CLIP" in error("models", "--family", "Clap")
    assert "There are embedder" in error("models", "--kind", "smell")
    assert "write 400M or 1.5B" in error("models", "--max-params", "seven")


@pytest.mark.slow
def test_the_list_of_models_fits_a_terminal() -> None:
    assert max(len(CODES.sub("", line)) for line in on_a_terminal(100, "models")) <= 100


# ── leaderboards ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_leaderboard_in_every_format(lite: Path) -> None:
    def board(style: str, *more: str) -> str:
        return said("leaderboard", "-b", LITE, "--results", lite, "--format", style, *more)

    content = json.loads(board("json"))
    [row] = content["rows"]
    assert (row["#"], row["model"]) == ("1", "embark/random")
    [line] = csv.DictReader(io.StringIO(board("csv")))
    assert float(line["mean"]) == row["mean"]["score"]
    assert re.search(rf" {100 * row['mean']['score']:.1f} (± |\[)", board("text"))
    assert row["source"] == "yours"
    assert board("markdown").startswith("| # | 95 % | tie | model | source | mean |")
    assert board("latex").startswith(r"\begin{tabular}{rrlllr")
    assert TASK in board("text", "--by-task")


def test_a_leaderboard_of_nothing_says_how_to_make_one(elsewhere: Path) -> None:
    assert "Make some: embark run -b 'Pocket'. Other benchmarks have published ones: embark" in error("leaderboard")
    assert "Did you mean Pocket? `embark benchmarks` lists them all." in error("leaderboard", "-b", "Poket")
    assert error("compare", "one", "other").endswith("Make some: embark run")


def test_an_unknown_format_is_an_error(lite: Path) -> None:
    assert "Did you mean latex" in error("leaderboard", "-b", LITE, "--results", lite, "--format", "latx")


# ── plan and run ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_counts_and_prices(elsewhere: Path) -> None:
    content = json.loads(said("plan", "-m", "embark/random", "-t", TASK, "--format", "json"))
    [model] = content["models"]
    task, total = model["tasks"]
    assert (task["task"], total["task"]) == (TASK, "all")
    assert task["to embed"] == total["to embed"] == task["unique"] <= task["items"]
    assert task["bytes"] > 256 * 2 * task["unique"]
    assert [path.name for path in (elsewhere / "home").iterdir()] == ["predictions"]  # and no vectors
    assert "Each distinct item serves" in said("plan", "-m", "embark/random", "-t", TASK)


def test_a_folder_of_ones_own_is_run(pictures: Pictures) -> None:
    content = json.loads(said("run", "-m", "embark/random", "--folder", pictures("Holiday"), "--format", "json"))
    names = [row["task"] for row in content["results"]]
    assert names == ["HolidayRetrieval", "HolidayImageToText", "HolidayZeroShot"]
    assert content["skipped"] == []


def test_a_task_that_fails_makes_the_run_fail(pictures: Pictures) -> None:
    folder = pictures("Bad")
    (folder / "red.png").write_bytes(b"not a picture")
    result = CliRunner().invoke(app, ["run", "-m", "embark/random", "--folder", str(folder)])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "failed: BadRetrieval for embark/random: 1 unreadable items: document 'red.png'" in result.stderr


def test_ones_own_data_is_scored_without_unreadable_files_if_asked(pictures: Pictures) -> None:
    folder = pictures("Bad")
    (folder / "red.png").write_bytes(b"not a picture")
    words = ("run", "-m", "embark/random", "--folder", folder, "--skip-unreadable", "--format", "json")
    assert {row["warnings"] for row in json.loads(said(*words))["results"]} == {
        "left out 1 unreadable items: document 'red.png'",
        "left out 1 unreadable items: query 'red.png'",
        "left out 1 unreadable items: item 'red.png'",
    }


def test_offline_asks_nobody(hub: FakeHub) -> None:
    words = ["-m", "embark/random", "-t", "VOC2007", "--offline"]
    ran = CliRunner().invoke(app, ["run", *words])
    assert "Offline, and the data of 1 task is not on this machine: VOC2007" in str(ran.exception)
    planned = CliRunner().invoke(app, ["plan", "--data", *words])
    assert "failed: VOC2007 for embark/random: Offline, and the list of files" in planned.stderr
    assert hub.requests == []


def test_a_reason_that_tasks_share_is_said_once() -> None:
    result = CliRunner().invoke(app, ["run", "-m", "embark/random", "-b", "ARK"])
    assert result.exit_code == 1
    [failed] = [line for line in result.stderr.splitlines() if line.startswith("failed: ")]
    assert "ARK/Art and 5 more for embark/random: The relevance labels of each are not published" in failed


def test_a_benchmark_beside_tasks_is_refused() -> None:
    result = CliRunner().invoke(app, ["run", "-b", LITE, "-t", TASK])
    assert result.exit_code == 2
    assert "either a benchmark or tasks, not both" in result.stderr


@pytest.mark.parametrize("words", [("run", "--workers", "0"), ("run", "--batch-size", "0"), ("fly",), ("run", "--fly")])
def test_wrong_usage_is_refused(words: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, list(words)).exit_code == 2
