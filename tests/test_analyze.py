"""Every `embark analyze` command prints the table of the function of its name, and all studies can be seen alike."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from cases import slow
from embark import analyze
from embark.cli import app
from embark.models import MODELS
from embark.protocol import fingerprint_of
from embark.results import ABOUT, Record, Results, TaskResult, outcome_columns
from embark.settings import Settings, load_settings
from embark.studies import STUDIES
from embark.studies.analysis import Analysis
from embark.tasks import TASKS, get_benchmark
from folders import two_tasks

MODEL = "embark/random"
BENCHMARK = "Pocket"
TIMES = ("build (s)", "queries a second", "range", "range low", "range high")  # columns that differ from run to run
SCORES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "correlate": ({"correlation": "pearson"}, ("--correlation", "pearson")),
    "distill": ({"size": 20}, ("--size", "20")),
    "predict": ({"part": "Pocket(lite)"}, ("--part", "Pocket(lite)")),
    "scaling": ({"by": "task"}, ("--by", "task")),
    "gains": (
        {"by": "domain", "against": "parameters", "reference": "PocketFlagZeroShot"},
        ("--by", "domain", "--against", "parameters", "--reference", "PocketFlagZeroShot"),
    ),
    "medians": ({"models": ["*clip*"]}, ("-m", "*clip*")),
    "extremes": ({"by": "task", "where": ["data=1.."]}, ("--by", "task", "--where", "data=1..")),
    "pareto": ({"against": "time"}, ("--against", "time")),
    "heatmap": ({"by": "capability"}, ("--by", "capability")),
    "profile": ({"models": ["*clip*"]}, ("-m", "*clip*")),
    "languages": ({}, ()),
    "confusion": ({"matrix": True}, ("--matrix",)),
    "calibration": ({"models": [MODEL]}, ("-m", MODEL)),
    "breakdown": ({"by": "kind"}, ("--by", "kind")),
    "rendering": ({}, ()),
    "mllm": ({"table": "mllm.csv"}, ("--table", "mllm.csv")),
}
VECTORS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "geometry": ("PocketFlagZeroShot", {}, ()),
    "map": ("PocketFlagZeroShot", {"method": "pca"}, ("--method", "pca")),
    "truncate": ("PocketClockReading", {"dims": [64]}, ("--dims", "64")),
    "quantize": ("PocketClockReading", {"dims": [64, 32]}, ("--dims", "64", "--dims", "32")),
    "similarity": ("PocketNameSTS", {}, ()),
    "topk": ("PocketFlagZeroShot", {"measure": "recall"}, ("--measure", "recall")),
    "shots": ("PocketMotionProbe", {"shots": [1, 4]}, ("--shots", "1", "--shots", "4")),
    "prompts": ("PocketSubgroupZeroShot", {}, ()),
    "robustness": ("PocketRobustness", {}, ()),
    "index": ("PocketClockArithmetic", {"repeats": 1, "threads": 1}, ("--repeats", "1", "--threads", "1")),
}

LONG = {"robustness", "correlate", "distill", "geometry", "shots"}  # seconds each
GENERATORS = ("answers",)  # tested beside their module: they need a model that writes


@pytest.fixture(scope="module")
def settings(pocket_vectors: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Vectors of a few tasks, and made-up scores of fourteen models on all pocket tasks."""
    root = shutil.copytree(pocket_vectors, tmp_path_factory.mktemp("analyze") / "home")
    settings = load_settings(root, root / "results")
    results = Results(settings.results)
    rng = np.random.default_rng(0)
    models = [card for card in MODELS.values() if card.parameters and card.dim][:14]
    for number, card in enumerate(models):
        for row in TASKS.match(get_benchmark(BENCHMARK).tasks):
            who = (card.name, "1", row.name)
            score = float(0.3 + 0.03 * number + 0.02 * rng.normal())
            records = tuple(
                Record(*who, *part, ("eng",), row.metric, score, (score - 0.1, score + 0.1), {},
                       fingerprint_of(row, *part), "e", statistic="mean", counts={"embedded": 100},
                       timings={"embed": 1.0 + number})
                for part in row.parts
            )  # fmt: skip
            result = TaskResult(*who, "1", records, score, (score - 0.1, score + 0.1), 0.0)
            if row.name == "PocketFlagZeroShot":  # whose items tell a fact
                outcomes = {row.metric: np.array([1.0, 0.0, 1.0]), f"{ABOUT}kind": ["a", "b", "a"]}
                results.save(result, card, [outcome_columns(*row.parts[0], ["0", "1", "2"], outcomes)])
            else:
                results.write(result, card)
    lines = [f"{card.name},{number}\n" for number, card in enumerate(models)]
    (root / "mllm.csv").write_text("model,MMMU\n" + "".join(lines))
    return settings


def study_of(name: str, settings: Settings) -> Analysis:
    """What the public function returns."""
    function: Callable[..., Analysis] = getattr(analyze, name)
    if name in VECTORS:
        task, arguments, _ = VECTORS[name]
        return function(MODEL, task, settings=settings, **arguments)
    arguments = dict(SCORES[name][0])
    if "table" in arguments:
        arguments["table"] = settings.home / arguments["table"]
    own = {} if STUDIES[name].needs == "outcomes" else {"include": "own"}
    return function(tasks=BENCHMARK, settings=settings, **own, **arguments)


def printed(name: str, style: str, settings: Settings) -> Any:
    """What the command of that name prints."""
    if name in VECTORS:
        task, _, options = VECTORS[name]
        words = ["-m", MODEL, "-t", task, "--home", str(settings.home), *options]
    else:
        options = tuple(str(settings.home / word) if word.endswith(".csv") else word for word in SCORES[name][1])
        own = [] if STUDIES[name].needs == "outcomes" else ["--include", "own"]
        words = ["-b", BENCHMARK, *own, "--results", str(settings.results), *options]
    result = CliRunner().invoke(app, ["analyze", name, *words, "--format", style])
    assert result.exit_code == 0, result.output
    return result


def without_times(text: str) -> Any:
    """A table as JSON, without the columns of times."""
    content = json.loads(text)
    content["rows"] = [{name: cell for name, cell in row.items() if name not in TIMES} for row in content["rows"]]
    return content


def test_every_study_is_tried_here() -> None:
    assert sorted(STUDIES.own) == sorted([*SCORES, *VECTORS, *GENERATORS])


@pytest.mark.parametrize("name", [*sorted({*SCORES, *VECTORS} - LONG), *slow(*sorted(LONG))])
def test_a_command_prints_what_its_function_returns(name: str, settings: Settings) -> None:
    study = study_of(name, settings)
    frame = study.to_frame()
    rows = list(csv.reader(io.StringIO(study.table().format("csv"))))
    assert rows[0] == list(frame.columns)
    assert len(rows) - 1 == len(frame) > 0
    for line, row in zip(rows[1:], frame.itertuples(index=False), strict=True):
        for text, value in zip(line, row, strict=True):
            missing = value is None or value != value
            assert text == "" if missing else (text == str(value) or float(text) == value)
    result = printed(name, "json", settings)
    assert without_times(result.stdout) == without_times(study.table().format("json"))
    assert result.stderr.splitlines() == list(study.notes)


@pytest.mark.parametrize("name", ["confusion", "robustness"])
def test_every_format_is_the_table_s(name: str, settings: Settings) -> None:
    table = study_of(name, settings).table()
    for style in ("csv", "json"):
        assert printed(name, style, settings).stdout.strip() == table.format(style).strip()


@pytest.mark.parametrize("name", ["distill", "map", "topk", "breakdown"])
def test_a_study_can_be_seen(name: str, settings: Settings, tmp_path: Path) -> None:
    study = study_of(name, settings)
    assert str(study) == str(study.table())
    page = study._repr_html_()
    assert page.startswith("<table>")
    assert 'src="data:image/svg+xml;base64,' in page
    study.plot(str(tmp_path / "plots" / "study.svg"))
    assert study.title in (tmp_path / "plots" / "study.svg").read_text()


def test_a_plot_has_a_format() -> None:
    study = analyze.correlate("ARK")
    with pytest.raises(embark.EmbarkError, match=r"written as \.svg, \.pdf, \.png, not as '\.gif'"):
        study.plot("tasks.gif")


def test_the_lite_set_of_a_choice_of_tasks(settings: Settings) -> None:
    study = analyze.distill(tasks="Pocket*", size=20, include="own", settings=settings)
    assert len(study.tasks) == 20


def test_vectors_of_several_models_and_tasks(settings: Settings) -> None:
    study = analyze.topk([MODEL, MODEL], ["PocketFlagZeroShot", "PocketSubgroupZeroShot"], settings=settings)
    assert [curve.task.task.name for curve in study.curves] == ["PocketFlagZeroShot", "PocketSubgroupZeroShot"] * 2
    sections = [(row.cells[0], row.section) for row in study.table().rows]
    assert len({section for _, section in sections}) == 2


def test_scores_are_those_of_the_run(settings: Settings) -> None:
    run = embark.evaluate(MODEL, "PocketFlagZeroShot", settings=settings, show_progress=False)
    assert run.computed == 0
    score = analyze.topk(MODEL, "PocketFlagZeroShot", settings=settings).curves[0].points[0].score
    assert (score.value, score.low, score.high) == pytest.approx(
        (run.results[0].score, *run.results[0].interval), abs=1e-3
    )  # as a ranking, an item also stands on its class


def test_own_tasks_are_known_by_their_results(
    settings: Settings, tiny: embark.Encoder, pictures: Callable[..., Path]
) -> None:
    rows = two_tasks(pictures())
    embark.evaluate(tiny, rows, settings=settings, show_progress=False)
    row = next(row for row in rows if row.evaluator == "zeroshot")
    study = analyze.similarity(tiny, row.name, settings=settings)
    assert [point.variant.name for point in study.curves[0].points] == ["cosine", "dot"]


def test_missing_vectors_name_the_command(settings: Settings) -> None:
    with pytest.raises(embark.EmbarkError, match=f"Embed them: embark run -m {MODEL} -t PocketCounting"):
        analyze.geometry(MODEL, "PocketCounting", settings=settings)


def test_more_shots_need_embedding(settings: Settings) -> None:
    call = {"shots": [40], "settings": settings, "show_progress": False}
    with pytest.raises(embark.EmbarkError, match="add --embed to this command, or embed=True in Python"):
        analyze.shots(MODEL, "PocketMotionProbe", **call)
    embedded = analyze.shots(MODEL, "PocketMotionProbe", embed=True, **call)
    assert embedded.curves[0].points[0].variant.name == "40 a class"
    assert analyze.shots(MODEL, "PocketMotionProbe", **call).table() == embedded.table()  # they are kept
    with pytest.raises(embark.EmbarkError, match="needs tasks of the evaluator probe or multilabel"):
        analyze.shots(MODEL, "PocketNameSTS", settings=settings)


def test_another_prompt_needs_embedding(settings: Settings) -> None:
    call = {"prompts": ["the flag of {}"], "settings": settings, "show_progress": False}
    with pytest.raises(embark.EmbarkError, match="add --embed to this command"):
        analyze.prompts(MODEL, "PocketFlagZeroShot", **call)
    study = analyze.prompts(MODEL, "PocketFlagZeroShot", embed=True, **call)
    assert "“the flag of {}”" in [point.variant.name for point in study.curves[0].points]


def test_a_study_notes_what_is_not_stored(tiny: embark.Encoder, pictures: Callable[..., Path]) -> None:
    row = next(row for row in two_tasks(pictures()) if row.evaluator == "zeroshot")
    embark.evaluate(tiny, [row], show_progress=False)
    assert analyze.prompts(tiny, row).notes == (
        f"{row.name}: bare class names are not stored (--embed, or embed=True in Python, adds them)",
    )
    assert analyze.prompts(tiny, row, embed=True, show_progress=False).notes == ()


def test_what_cannot_be_analyzed(settings: Settings) -> None:
    with pytest.raises(embark.EmbarkError, match=r"takes one task, and 46 were chosen: PocketNameToImage, "):
        analyze.geometry(MODEL, "Pocket*", settings=settings)
    with pytest.raises(embark.EmbarkError, match=r"no grouping of a map named 'color'\. There are side, label"):
        analyze.map(MODEL, "PocketNameSTS", by="color", settings=settings)
