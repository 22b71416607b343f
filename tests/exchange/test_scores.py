"""Other tools' results come in under the protocol that made them, and ours go out as mteb reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from embark import published
from embark.boards.leaderboards import leaderboard
from embark.cli import app
from embark.exchange.scores import export_mteb, import_results
from embark.exchange.tools import read_mmeb, read_mteb, read_unibench, tool_of, write_mteb
from embark.models import MODELS
from embark.results import Results
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import EmbarkError
from folders import two_tasks

PEER = os.environ.get("EMBARK_PEER", sys.executable if find_spec("mteb") else None)
SAMPLE = Path(__file__).parents[1] / "samples" / "mteb"  # written by mteb 2.26.24: see make.py there
FILES = SAMPLE / "mteb__baseline-random-encoder" / "2"
MODEL = "mteb/baseline-random-encoder"


def invoke(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, words)])


def sample(tmp_path: Path, name: str = "CIFAR10ZeroShot", **changes: Any) -> Path:
    """A copy of a file of mteb's with other content, in mteb's layout, without model_meta.json."""
    content = json.loads((FILES / f"{name}.json").read_text()) | changes
    path = tmp_path / "org__some__model" / "abc" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def entry(subset: str, score: float, version: str | None = None) -> dict[str, Any]:
    """What the public results of MIEB have of each part, under mteb's name for the main score."""
    return {"main_score": score, "hf_subset": subset, "languages": ["eng-Latn"], "mteb_version": version}


# ── mteb's results ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_that_mteb_wrote_are_read_under_the_protocols_of_its_version() -> None:
    read = read_mteb(SAMPLE, TASKS)
    assert read.refused == {}
    cifar, stl = read.results
    assert (cifar.model, cifar.revision, cifar.task, cifar.made_by) == (MODEL, "2", "CIFAR10ZeroShot", "mteb")
    assert (cifar.score, cifar.protocol) == (0.166667, "paper")  # mteb 2 scores this row as the paper did
    assert (stl.score, stl.protocol) == (1.0, "mteb2")  # and this one otherwise
    assert cifar.records[0].metrics["f1"] == 0.133333
    assert "scores_per_experiment" not in stl.records[0].metrics
    assert cifar.warnings == ()


def test_the_first_mteb_is_the_papers_protocol(tmp_path: Path) -> None:
    scores = {"test": [entry("default", 0.5)]}
    path = sample(tmp_path, "STL10", mteb_version="1.16.5", scores=scores, dataset_revision="0123456789")
    [result] = read_mteb(tmp_path, TASKS).results
    assert (result.model, result.revision, result.protocol) == ("org/some__model", "abc", "paper")
    assert result.records[0].versions == {"mteb": "1.16.5"}
    assert result.warnings[0].startswith("made with revision 0123456 of the data, where the row has ")
    assert read_mteb(path.parent, TASKS).results == [result]  # from any level of the layout


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mteb_version": None}, "names no version of mteb, so its protocol is not known"),
        ({"mteb_version": "1.39.0-2.1.0"}, "names mteb 1 and 2"),
        ({"mteb_version": "0.9.1"}, "names mteb 0"),
        ({"task_name": "Elsewhere"}, "no task is named Elsewhere"),
        ({"scores": {"train": [entry("default", 0.5, "2.0.0")]}}, "lacks 1 of the 1 parts .* such as test/default"),
        ({"scores": {"test": [entry("default", None, "2.0.0")]}}, "has no accuracy for test, default"),  # type: ignore[arg-type]
        ({"scores": {"test": [{"main_score": 0.5}]}}, r"cannot be read \(KeyError: 'hf_subset'\)"),
        ({"scores": [1]}, "not the layout of mteb's results"),
        ({"embark": {}}, "embark made it"),
    ],
)
def test_what_is_no_result_of_a_row_is_refused_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    path = sample(tmp_path, **({"scores": {"test": [entry("default", 0.5)]}} | changes))
    read = read_mteb(tmp_path, TASKS)
    assert read.results == []
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(read.refused[path])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "its accuracy for test, default is nan, which is no score from -1 to 1"),
        (float("inf"), "is inf, which is no score"),
        (-1.5, "is -1.5, which is no score from -1 to 1; a fraction is wanted, not percent"),
        (41.5, "is 41.5, which is no score from -1 to 1; a fraction is wanted, not percent"),
        (3700.0, "is 3700, which is no score from -1 to 1"),
    ],
)
def test_what_no_score_can_be_is_refused(tmp_path: Path, value: float, why: str) -> None:
    path = sample(tmp_path, scores={"test": [entry("default", 0.5, "2.0.0") | {"accuracy": value}]})
    read = read_mteb(tmp_path, TASKS)
    assert read.results == []
    assert why in read.refused[path]
    bare = sample(tmp_path, scores={"test": [entry("default", value, "2.0.0")]})
    assert why.replace("accuracy", "main_score") in read_mteb(tmp_path, TASKS).refused[bare]
    score = tmp_path / "ImageNet-1K_score.json"
    score.write_text(json.dumps({"hit@1": value}))
    read = read_mmeb(tmp_path, TASKS, "org/model", "main", "paper")
    assert read.results == []
    assert why.replace("accuracy for test, default", "hit_rate_at_1") in read.refused[score]


@pytest.mark.parametrize("value", [-0.03, 0.0, 1.0, 1.0000000000000002])
def test_the_ends_of_the_scale_are_scores(tmp_path: Path, value: float) -> None:
    sample(tmp_path, scores={"test": [entry("default", value, "2.0.0")]})
    assert [result.score for result in read_mteb(tmp_path, TASKS).results] == [value]


def test_the_main_score_stands_for_the_rows_measure_only_where_mteb_defines_it_so(tmp_path: Path) -> None:
    sample(tmp_path / "mieb", scores={"test": [entry("default", 0.5, "2.0.0")]})
    [result] = read_mteb(tmp_path / "mieb", TASKS).results
    assert (result.metric, result.warnings) == ("accuracy", ("its main_score, which mteb defines as accuracy",))
    elsewhere = TASKS["PocketFlagZeroShot"]
    [split], [subset] = elsewhere.source.splits, elsewhere.subsets
    scores = {split: [entry(subset, 0.5, "2.0.0")]}
    path = sample(tmp_path / "other", task_name=elsewhere.name, scores=scores)
    read = read_mteb(tmp_path / "other", TASKS)
    assert read.refused == {path: f"it has no accuracy for {split}, {subset}, which PocketFlagZeroShot is scored by"}


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Broken.json").write_text("{")
    (tmp_path / "List.json").write_text("[]")
    assert sorted(path.name for path in read_mteb(tmp_path, TASKS).refused) == ["Broken.json", "List.json"]


def test_all_subsets_or_mtebs_own_mean_over_them(tmp_path: Path) -> None:
    row = TASKS["VisualSTS17Multilingual"]
    several = {"test": [entry(subset, at / 10) for at, subset in enumerate(row.subsets)]}
    sample(tmp_path / "a", task_name=row.name, mteb_version="1.14.15", scores=several)
    [result] = read_mteb(tmp_path / "a", TASKS).results
    assert [record.subset for record in result.records] == list(row.subsets)
    assert result.score == pytest.approx(sum(range(len(row.subsets))) / 10 / len(row.subsets))
    for version, warned in (("1.14.15", False), ("2.26.24", True)):
        whole = {"test": [entry("default", 0.4)]}
        sample(tmp_path / version, task_name=row.name, mteb_version=version, scores=whole)
        [result] = read_mteb(tmp_path / version, TASKS).results
        assert result.score == 0.4
        assert any("mean over all subsets" in warning for warning in result.warnings) is warned
    sample(tmp_path / "b", task_name=row.name, mteb_version="1.14.15", scores={"test": several["test"][:2]})
    assert read_mteb(tmp_path / "b", TASKS).results == []


def test_published_scores_come_back_as_they_were_printed(tmp_path: Path) -> None:
    """The public results are files of mteb 1: written out in its layout and read, they are the shipped ones."""
    shipped = [r for r in published.results("MIEB(lite)") if r.model == "royokong/e5-v"]
    for result in shipped:
        scores: dict[str, list[Any]] = {}
        for record in result.records:
            scores.setdefault(record.split, []).append(entry(record.subset, record.score))
        content = {"task_name": result.task, "mteb_version": "1.14.15", "scores": scores, "dataset_revision": ""}
        (tmp_path / f"{result.task}.json").write_text(json.dumps(content))
    read = read_mteb(tmp_path, TASKS)
    assert read.refused == {}
    assert {(r.task, r.protocol): pytest.approx(r.score) for r in shipped} == {
        (r.task, r.protocol): r.score for r in read.results
    }


# ── MMEB's score files ───────────────────────────────────────────────────────────────────────────────────────────────


def score_files(folder: Path) -> Path:
    for place, content in {
        "image/ImageNet-1K": {"hit@1": 0.652, "hit@5": 0.9, "ndcg_linear@5": 0.79, "num_data": 1000, "num_pred": 1000},
        "visdoc/ViDoRe_arxivqa": {"hit@1": 0.7, "ndcg_linear@5": 0.81, "ndcg_exponential@5": 0.8, "num_data": 500},
        "visdoc/ViDoRe_docvqa": {"hit@1": 0.4},
        "image/Elsewhere": {"hit@1": 0.5},
    }.items():
        path = folder / f"{place}_score.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return folder


def test_mmebs_score_files_by_the_rows_own_measure(tmp_path: Path) -> None:
    assert tool_of(score_files(tmp_path)) == "mmeb"
    read = read_mmeb(tmp_path, TASKS, "org/model", "main", "mmeb-v2.1")
    found = {result.task: result for result in read.results}
    assert {name: (r.metric, r.score) for name, r in found.items()} == {
        "MMEB/ImageNet-1K": ("hit_rate_at_1", 0.652),
        "MMEB/ViDoRe_arxivqa": ("ndcg_at_5", 0.81),
    }
    image = found["MMEB/ImageNet-1K"]
    assert (image.protocol, image.made_by, image.records[0].counts) == ("mmeb-v2.1", "mmeb", {"queries": 1000})
    assert {path.name: why for path, why in read.refused.items()} == {
        "Elsewhere_score.json": "no task is named MMEB/Elsewhere",
        "ViDoRe_docvqa_score.json": "it has no ndcg_at_5, which MMEB/ViDoRe_docvqa is scored by",
    }


# ── UniBench's frames ────────────────────────────────────────────────────────────────────────────────────────────────


CLIP = "openai/clip-vit-base-patch32"


def item_frame(folder: Path, model: str, benchmark: str, correct: list[int], **columns: Any) -> Path:
    """A frame of the columns that UniBench's handlers save, a row per item, as its OutputHandler writes it."""
    import pandas as pd

    path = folder / model / f"{benchmark}.f"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = range(len(correct))
    frame = {
        "model_name": model, "entropy": [0.1234] * len(correct), "image_class": [*rows], "split": "",
        "benchmark_name": benchmark, "correctness": correct, "correctness_top5": 1, "predictions": [*rows],
        "predictions_top5": [[0, 1, 2, 3, 4] for _ in rows], "confidence": [0.5] * len(correct),
        "image_name": [f"s{row:07d}" for row in rows],
    }  # fmt: skip
    pd.DataFrame(frame | columns).to_feather(path)
    return path


def aggregate_frame(folder: Path, rows: list[tuple[str, str, float]], name: str = "aggregate.f", **more: Any) -> Path:
    """UniBench's aggregate: the mean correctness of each model and benchmark."""
    import pandas as pd

    path = folder / name
    frame = pd.DataFrame(rows, columns=["model_name", "benchmark_name", "correctness"]).assign(**more)
    frame.to_parquet(path) if name.endswith(".parquet") else frame.to_feather(path)
    return path


def test_unibenchs_frames_are_read_by_item_and_as_aggregates(tmp_path: Path) -> None:
    aggregate_frame(
        tmp_path,
        [("clip_vitB32", "cifar10", 0.9), ("clip_vitB32", "winoground", 0.0875), ("own_model", "cifar10", 0.1),
         ("clip_vitB32", "bivlc", 0.5)],
    )  # fmt: skip
    item_frame(tmp_path, "clip_vitB32", "cifar10", [1, 1, 0, 1])
    (tmp_path / "clip_vitB32" / "broken.f").write_bytes(b"x")
    read = read_unibench(tmp_path, TASKS)
    results = {(result.model, result.task): result for result in read.results}
    assert {key: (result.metric, result.score) for key, result in results.items()} == {
        (CLIP, "UniBench/cifar10"): ("accuracy", 0.75),  # the items count where there are both
        (CLIP, "UniBench/winoground"): ("accuracy", 0.0875),
        ("own_model", "UniBench/cifar10"): ("accuracy", 0.1),
    }
    items = results[CLIP, "UniBench/cifar10"]
    assert (items.protocol, items.made_by, items.records[0].counts) == ("paper", "unibench", {"items": 4})
    assert items.warnings == ("scored on 4 items, where the row has 10,000",)
    refused = {path.name: why for path, why in read.refused.items()}
    assert refused["aggregate.f"] == "no task is named UniBench/bivlc"
    assert refused["broken.f"].startswith("it cannot be read (ArrowInvalid")


@pytest.mark.parametrize("name", ["aggregate.f", "renamed.parquet", "some.feather"])
def test_one_frame_alone_with_the_kinds_of_task_that_newer_versions_name(name: str, tmp_path: Path) -> None:
    kinds = ["zeroshot_classification", "vqa_multiple_choice", "relation_classification"]
    scores = [("clip_vitB32", "dtd", 0.4), ("clip_vitB32", "cifar10", 0.2), ("clip_vitB32", "coco_order", 0.3)]
    path = aggregate_frame(tmp_path, scores, name, task_name=kinds)
    read = read_unibench(path, TASKS)
    assert {result.task: (result.metric, result.score) for result in read.results} == {
        "UniBench/dtd": ("accuracy", 0.4), "UniBench/coco_order": ("text_acc", 0.3),
    }  # fmt: skip
    assert read.refused == {path: "no task is named vqa_multiple_choice"}


@pytest.mark.parametrize("name", ["aggregate.f", "aggregate.parquet"])
def test_a_benchmark_without_a_score_leaves_the_others(tmp_path: Path, name: str) -> None:
    """UniBench's frames have NaN where a model was not run."""
    path = aggregate_frame(tmp_path, [("clip_vitB32", "dtd", 0.4), ("clip_vitB32", "mnist", float("nan"))], name)
    read = read_unibench(path, TASKS)
    assert [(result.task, result.score) for result in read.results] == [("UniBench/dtd", 0.4)]
    assert read.refused == {}


def test_what_is_no_frame_of_unibenchs_is_refused(tmp_path: Path) -> None:
    import pandas as pd

    percent = aggregate_frame(tmp_path, [("clip_vitB32", "dtd", 41.5)])
    other = tmp_path / "other.f"
    pd.DataFrame({"model_name": ["clip_vitB32"]}).to_feather(other)
    assert read_unibench(tmp_path, TASKS).refused == {
        percent: "its correctness of clip_vitB32 on dtd is 41.5, which is no score from -1 to 1; "
        "a fraction is wanted, not percent",
        other: "it has no column benchmark_name, correctness, so it is no frame of UniBench's",
    }


@pytest.mark.slow
@pytest.mark.parametrize("words", [("unibench",), ()], ids=["named", "guessed"])
def test_all_models_of_unibench_are_compared_from_its_aggregate(
    words: tuple[str, ...], tmp_path: Path, elsewhere: Path
) -> None:
    """Scaling, correlations, a distilled set, a board and recommendations over a frame of the paper's size."""
    cards = {card.aliases["UniBench"]: card for card in MODELS.values() if "UniBench" in card.aliases}
    tasks = TASKS.match(embark.get_benchmark("UniBench").tasks)
    random = np.random.default_rng(0)
    skill = {key: (card.parameters or 1e8) / 3e9 for key, card in [*cards.items()][:59]}
    rows = [
        (key, task.name.removeprefix("UniBench/"), float(np.clip(0.3 + value / 3 + random.normal(0, 0.1), 0, 1)))
        for key, value in skill.items()
        for task in tasks
    ]
    made = invoke("import", *words, aggregate_frame(tmp_path, rows))
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("3,127 results of 59 models to ")
    board = leaderboard("UniBench")
    assert {entry.model.source for entry in board.entries[:59]} == {"unibench"}
    sun = Results(load_settings().results).folder(CLIP, "main") / "UniBench__sun397~unibench.json"
    assert "erratum unibench-sun397-data" in sun.read_text()
    scaling = embark.analyze.scaling("UniBench", by="type")
    assert len(scaling.trends) == 7
    assert all(trend.slope > 0 and trend.r.n == 59 for trend in scaling.trends)  # none twice
    assert len(embark.analyze.distill("UniBench", size=8, by="type").columns) == 8
    assert embark.analyze.correlate("UniBench").table().rows
    assert len(embark.recommend("relation", "UniBench", top=100).models) == 59


# ── in and out ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_imported_results_stand_beside_others_and_overwrite_none_of_ours(elsewhere: Path) -> None:
    imported = import_results(SAMPLE)
    assert imported.sentence() == f"2 results of 1 model to {load_settings().results} (protocol mteb2, paper)"
    assert [row.cells[2] for row in imported.table().rows] == ["CIFAR10ZeroShot", "STL10"]
    assert (imported.notes, imported.refused) == ((), {})
    folder = Results(load_settings().results).folder(MODEL, "2")
    assert sorted(path.name for path in folder.iterdir()) == [
        "CIFAR10ZeroShot~mteb.json", "STL10@mteb2~mteb.json", "model_meta.json",
    ]  # fmt: skip
    assert Results(load_settings().results).load(MODEL, "2", "CIFAR10ZeroShot") is None  # not ours
    [entry] = leaderboard("MIEB(Multilingual)", models=MODEL).entries
    assert (entry.model.source, entry.model.mean.count, entry.model.mean.value) == ("mteb", 1, 0.166667)
    [other] = leaderboard("MIEB(Multilingual)", models=MODEL, protocol="mteb2").entries
    assert other.model.mean.count == 2  # the row that mteb 2 scores otherwise joins in


@pytest.mark.parametrize("words", [("mteb",), ()], ids=["named", "guessed"])
def test_the_command_takes_a_tool_or_guesses_it(words: tuple[str, ...], elsewhere: Path) -> None:
    made = invoke("import", *words, SAMPLE)
    assert made.exit_code == 0, made.output
    assert made.stdout == f"2 results of 1 model to {load_settings().results} (protocol mteb2, paper)\n"


def test_mmebs_files_need_a_model_and_a_known_protocol(tmp_path: Path, elsewhere: Path) -> None:
    folder = score_files(tmp_path)
    with pytest.raises(EmbarkError, match="name neither model nor release"):
        import_results(folder)
    with pytest.raises(EmbarkError, match="Did you mean paper"):
        import_results(folder, model="org/model", protocol="papr")
    with pytest.raises(EmbarkError, match=r"holds no results of known tasks: .*not the layout of mteb's results"):
        import_results(folder, tool="mteb")
    made = invoke("import", "mmeb", folder, "-m", "org/model", "--protocol", "paper")
    assert "2 results of 1 model" in made.stdout
    assert "left out: image/Elsewhere_score.json: no task is named MMEB/Elsewhere" in made.stderr
    guessed = invoke("import", "-m", "org/model", folder, "--protocol", "paper", "--format", "json")
    assert len(json.loads(guessed.stdout)["rows"]) == 2


def test_many_refused_files_are_counted(tmp_path: Path, elsewhere: Path) -> None:
    for number in range(10):
        sample(tmp_path / str(number), task_name=f"Elsewhere{number}")
    sample(tmp_path, mteb_version="2.0.0")
    imported = import_results(tmp_path)
    assert len(imported.refused) == 10
    assert len(imported.notes) == 9
    assert imported.notes[-1] == "left out: 2 files more"


def test_a_folder_without_results_is_an_error(tmp_path: Path, elsewhere: Path) -> None:
    with pytest.raises(EmbarkError, match="holds no results of known tasks"):
        import_results(tmp_path)
    with pytest.raises(EmbarkError, match="There is no folder"):
        import_results(tmp_path / "nowhere")
    with pytest.raises(EmbarkError, match="no results of yours"):
        export_mteb(tmp_path / "out")


@pytest.fixture
def exported(tiny: embark.Encoder, tmp_path: Path, elsewhere: Path) -> Path:
    """A real run, exported."""
    embark.evaluate(tiny, ["PocketNameToImage", "PocketFlagZeroShot"], show_progress=False)
    made = invoke("export", "mteb", "-o", tmp_path / "out")
    assert "2 results to " in made.stdout, made.output
    return tmp_path / "out"


@pytest.mark.parametrize("name", ["out", "out/results"])
def test_an_export_is_where_mteb_looks_and_tells_the_line_that_loads_it(
    tiny: embark.Encoder, tmp_path: Path, name: str
) -> None:
    embark.evaluate(tiny, "PocketFlagZeroShot", show_progress=False)
    made = invoke("export", "mteb", "-o", tmp_path / name)
    cache = tmp_path / "out"  # mteb.ResultCache(cache) reads cache/results
    assert made.stdout.splitlines() == [
        f"1 result to {cache / 'results'}",
        f"Load them: mteb.ResultCache({str(cache)!r}).load_results()",
    ]
    assert (cache / "results" / "test__tiny" / "1" / "PocketFlagZeroShot.json").is_file()


def test_own_tasks_are_exported_under_each_protocol(
    tiny: embark.Encoder, tmp_path: Path, pictures: Callable[..., Path]
) -> None:
    retrieval, zeroshot = two_tasks(pictures("Holiday"))
    rows = [replace(retrieval, variants={"other": {"metric": "ndcg_at_10"}}), zeroshot]
    for protocol in (None, "other"):
        embark.evaluate(tiny, rows, protocol=protocol, show_progress=False)
    paper = export_mteb(tmp_path / "paper")
    assert [(result.task, result.metric) for result in paper] == [
        ("HolidayRetrieval", "hit_rate_at_1"), ("HolidayZeroShot", "accuracy"),
    ]  # fmt: skip
    other = export_mteb(tmp_path / "other", protocol="other")
    assert [result.metric for result in other] == ["ndcg_at_10", "accuracy"]
    assert (tmp_path / "other" / "results" / "test__tiny" / "1" / "HolidayRetrieval.json").is_file()


def schema(value: Any) -> Any:
    """The kinds of the values that mteb's reader looks at."""
    kinds = {name: type(one) for name, one in value.items() if name in ("dataset_revision", "task_name", "date")}
    [[first, *_], *_] = value["scores"].values()
    return kinds | {name: type(first[name]) for name in ("main_score", "hf_subset", "languages")}


@pytest.mark.slow
def test_our_export_has_the_schema_of_mtebs_own_files(exported: Path) -> None:
    theirs = schema(json.loads((FILES / "CIFAR10ZeroShot.json").read_text()))
    folder = exported / "results" / "test__tiny" / "1"
    assert sorted(path.name for path in folder.iterdir()) == [
        "PocketFlagZeroShot.json", "PocketNameToImage.json", "model_meta.json",
    ]  # fmt: skip
    for path in folder.glob("Pocket*.json"):
        content = json.loads(path.read_text())
        assert schema(content) == theirs
        assert {"mteb_version", "evaluation_time", "kg_co2_emissions"} <= content.keys()
    meta = json.loads((folder / "model_meta.json").read_text())
    assert (meta["name"], meta["revision"]) == ("test/tiny", "1")


def test_an_export_is_one_protocol(tiny: embark.Encoder, tmp_path: Path, elsewhere: Path) -> None:
    [result] = embark.evaluate(tiny, "PocketFlagZeroShot", show_progress=False).results
    with pytest.raises(EmbarkError, match="export one protocol at a time"):
        write_mteb([result, replace(result, protocol="other")], {}, tmp_path)


LOAD = """
import sys, mteb
for model in mteb.ResultCache(sys.argv[1]).load_results().model_results:
    for task in model.task_results:
        print(model.model_name, model.model_revision, task.task_name, task.get_score())
"""


@pytest.mark.slow
@pytest.mark.skipif(PEER is None, reason="needs mteb 2.26, here or where the python of EMBARK_PEER is")
def test_mteb_loads_our_export(exported: Path) -> None:
    assert PEER is not None
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run([PEER, "-c", LOAD, exported], capture_output=True, text=True, check=True, env=environment)
    loaded = {line.split()[2]: line.split() for line in ran.stdout.splitlines()}
    ours = {result.task: result for result in Results(exported / "results").all()}
    assert loaded.keys() == ours.keys()
    for name, result in ours.items():
        assert loaded[name][:2] == ["test/tiny", "1"]
        assert float(loaded[name][3]) == pytest.approx(result.score)
