"""Own tasks, models and benchmarks are named wherever built-in ones are (issue 14, findings 7 and 8)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.protocol import vector_space
from embark.types import Array, EmbarkError
from tiny import saved, wordpiece

TASKS = """
[[task]]
name = "PagesRetrieval"
evaluator = "retrieval"
reader = "paired"
modalities = ["text", "image"]
columns = { image = "file", text = "caption" }
options = { query = "text" }
source = { id = "Pages" }

[[task]]
name = "PagesZeroShot"
evaluator = "zeroshot"
reader = "labelled"
modalities = ["text", "image"]
columns = { image = "file", label = "label" }
labels = ["red", "green", "blue"]
templates = ["a {} page", "{}"]
source = { id = "Pages" }

[[task]]
name = "PagesClustering"
evaluator = "clustering"
reader = "labelled"
modalities = ["image"]
columns = { image = "file", label = "half" }
source = { id = "Pages" }
"""
TABLE = """file,caption,label,half
red.png,a red page,red,warm
green.png,a green page,green,cold
blue.png,a blue page,blue,cold
"""
NAMES = ["PagesRetrieval", "PagesZeroShot", "PagesClustering"]


@pytest.fixture
def here(pictures: Callable[..., Path]) -> Path:
    """The working folder with three own tasks: `tasks.toml`, and the data beside it."""
    shutil.move(pictures("Pages"), "Pages")
    Path("Pages", "test.csv").write_text(TABLE)
    Path("Pages", "metadata.csv").unlink()
    Path("tasks.toml").write_text(TASKS)
    return Path.cwd()


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny text model. Copy it."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = wordpiece()
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **sizes), add_pooling_layer=False)
    return saved(tmp_path_factory.mktemp("bert"), model, tokenizer)


def invoke(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, words)])


def printed(*words: str | Path) -> str:
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def colors(texts: list[str]) -> Array:
    return np.array([[0.01 + (color in text) for color in ("red", "green", "blue")] for text in texts], np.float32)


def means(images: list[Any]) -> Array:
    return np.stack([0.01 + np.asarray(image.convert("RGB"), np.float32).mean((0, 1)) for image in images])


def own_model(name: str = "me/tiny", **facts: Any) -> embark.Encoder:
    return embark.encoder(text=colors, image=means, name=name, revision="1", **facts)


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_t_names_a_task_of_a_tasks_file(here: Path) -> None:
    run = ("run", "-m", "embark/random", "--tasks-file", "tasks.toml", "--format", "json")
    tasks = [row["task"] for row in json.loads(printed(*run, "-t", "*Retrieval", "-t", "PocketNameSTS"))["results"]]
    assert "PagesRetrieval" in tasks
    assert "PagesZeroShot" not in tasks
    beside = json.loads(printed(*run, "-t", "PocketNameSTS"))["results"]  # names none of the file: all are added
    assert {row["task"] for row in beside} == {"PocketNameSTS", *NAMES}
    shown = printed("analyze", "geometry", "-m", "embark/random", "-t", "PagesRetrieval", "--tasks-file", "tasks.toml")
    assert "query → document" in shown
    assert "document" in printed("analyze", "map", "-m", "embark/random", "-t", "PagesRetrieval", "--method", "pca")


def test_run_finds_own_tasks_that_results_know(here: Path) -> None:
    embark.evaluate("embark/random", embark.load_tasks("tasks.toml"), show_progress=False)
    run = printed("run", "-m", "embark/handmade", "-t", "PagesZeroShot,PagesR*", "--format", "json")
    assert {row["task"] for row in json.loads(run)["results"]} == {"PagesZeroShot", "PagesRetrieval"}
    assert [task.name for task in embark.plan("embark/handmade", "PagesClustering", seconds=0.1).tasks] == NAMES[2:]


@pytest.mark.parametrize(("analysis", "scored"), [("topk", NAMES[:2]), ("prompts", NAMES[1:2])])
def test_rows_of_another_kind_are_left_out_with_a_note(here: Path, analysis: str, scored: list[str]) -> None:
    embark.evaluate(own_model(), embark.load_tasks("tasks.toml"), show_progress=False)
    study = getattr(embark.analyze, analysis)(own_model(), embark.load_tasks("tasks.toml"))
    assert [curve.task.task.name for curve in study.curves] == scored
    (note,) = (note for note in study.notes if "left out" in note)
    assert all((name in note) == (name not in scored) for name in NAMES)
    with pytest.raises(EmbarkError, match=r"needs tasks of the evaluator .*; chosen were PagesClustering \(clustering"):
        getattr(embark.analyze, analysis)(own_model(), "PagesClustering")


def test_commands_know_own_tasks_with_and_without_their_file(here: Path) -> None:
    file = ("--tasks-file", "tasks.toml")
    assert "PagesZeroShot" in printed("show", "PagesZeroShot", *file)  # before any result
    embark.evaluate([own_model(), "embark/random"], embark.load_tasks("tasks.toml"), show_progress=False)
    for more in (file, ()):
        assert "PagesRetrieval.jsonl" in printed(
            "export", "ranked", "-o", "out", "-m", "me/tiny", "-t", "PagesR*", *more
        )
        assert "2 tasks" in printed("leaderboard", "-t", "PagesR*", "-t", "PagesZ*", *more)
        assert "retrieval 1" in printed("recommend", "-t", "Pages*", "--include", "own", "--need", "retrieval", *more)
        assert "PagesRetrieval" in printed("compare", "me/tiny", "embark/random", "-t", "PagesR*", *more)
    assert "me/tiny" in printed("leaderboard", *file)
    assert embark.show(embark.load_tasks("tasks.toml")[0])["results"]["me/tiny"] == "100.0"


def test_embark_toml_names_tasks_models_and_benchmarks(here: Path) -> None:
    Path("embark.toml").write_text(
        'tasks = "tasks.toml"\n[[model]]\nname = "embark/random"\n[[model]]\nname = "mine"\nid = "embark/handmade"\n'
        'parameters = 1000\n[[benchmark]]\nname = "Pages"\ntasks = ["PagesRetrieval", "PocketNameSTS"]\n'
    )
    ran = invoke("run", "--format", "json")
    assert ran.exit_code == 0, ran.output
    assert ran.stderr.startswith("embark.toml of this folder names tasks, models, benchmarks\n")
    results = json.loads(ran.stdout)["results"]
    assert {(row["model"], row["task"]) for row in results} == {
        (model, task) for model in ("embark/random", "mine") for task in NAMES
    }
    of_benchmark = embark.evaluate("mine", "Pages", show_progress=False)
    assert [task.name for task in of_benchmark.tasks] == ["PagesRetrieval", "PocketNameSTS"]
    board = embark.leaderboard("Pages", max_parameters=1e6)
    assert [entry.model.model for entry in board.entries] == ["mine", "embark/random"]
    Path("embark.toml").write_text(Path("embark.toml").read_text().replace("1000", "2000000"))  # stated since the run
    assert [entry.model.model for entry in embark.leaderboard("Pages", max_parameters=1e6).entries] == ["embark/random"]
    with pytest.raises(EmbarkError, match=r"There are no results for Pages in .* embark run -b 'Pages'"):
        embark.leaderboard("Pages", settings=embark.load_settings(results="elsewhere"))
    assert len(embark.leaderboard().tasks) == 3
    assert [task.name for task in embark.get_tasks("Pages*")] == NAMES
    assert embark.show("Pages").kind == "benchmark"
    assert embark.show("PagesRetrieval")["results"].keys() == {"embark/random", "mine"}
    assert embark.get_models("mine")[0].keyed_as == "embark/handmade"
    assert "PagesZeroShot" in printed("tasks", "Pages*")
    assert "mine" in printed("analyze", "geometry", "-m", "mine", "-t", "PagesRetrieval")


def test_task_tables_may_stand_in_embark_toml_itself(here: Path) -> None:
    Path("embark.toml").write_text(TASKS)
    assert [task.name for task in embark.evaluate(own_model(), show_progress=False).tasks] == NAMES
    assert embark.plan(own_model()).tasks[0].name == "PagesRetrieval"
    assert embark.load_settings().notes == ("embark.toml of this folder names tasks",)
    Path("embark.toml").write_text(TASKS.replace("PagesZeroShot", "PocketNameSTS"))
    with pytest.raises(EmbarkError, match="built-in task is named PocketNameSTS, too: rename yours"):
        embark.get_tasks()


def test_a_folders_file_that_is_wrong_says_so(here: Path) -> None:
    file = Path("embark.toml")
    for content, message in (
        ("a = " + "[" * 5000 + "]" * 5000, "embark.toml is not valid TOML"),
        ('models = "x"', "unknown settings models; known: .*, tasks, task, model, benchmark"),
        ('tasks = "../tasks.toml"', "'../tasks.toml' is not a path inside this folder"),
    ):
        file.write_text(content)
        with pytest.raises(EmbarkError, match=message):
            embark.plan(own_model())


def test_a_benchmark_of_patterns_counts_its_tasks(here: Path) -> None:
    Path("embark.toml").write_text('tasks = "tasks.toml"\n[[benchmark]]\nname = "Mine"\ntasks = ["Pages*"]\n')
    (row,) = json.loads(printed("benchmarks", "Mine", "--format", "json"))
    assert (row["count"], row["tasks"]) == (3, NAMES)


def test_one_score_has_one_interval(here: Path) -> None:
    """In the table of a run, its mean, a leaderboard and a heat map."""
    run = embark.evaluate([own_model(), "embark/random"], embark.load_tasks("tasks.toml"), show_progress=False)
    ends = {result.model: result.interval for result in run.results if result.task == "PagesRetrieval"}
    study = embark.analyze.heatmap(tasks="Pages*", include="own")
    scores = [(m.model, m.groups["Retrieval"]) for m in study.models]
    board = embark.leaderboard(tasks="PagesRetrieval")
    scores += [(entry.model.model, entry.model.mean) for entry in board.entries]
    assert len(scores) == 4
    for model, score in scores:
        assert (score.low, score.high) == pytest.approx(ends[model]), model


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_card_beside_results_counts_like_one_of_the_catalogue(here: Path) -> None:
    tasks = embark.load_tasks("tasks.toml")
    embark.evaluate(own_model(parameters=12_000_000, family="Mine"), tasks, show_progress=False)
    embark.evaluate(own_model("me/large", parameters=12_000_000_000), tasks, show_progress=False)
    embark.evaluate("embark/random", tasks, show_progress=False)
    front = embark.analyze.pareto(tasks="Pages*", include="own")
    assert dict(zip(front.models, front.costs, strict=True)) == {"me/tiny": 12, "me/large": 12_000}
    assert {*embark.analyze.pareto(tasks="Pages*", include="own", against="dim").models} >= {"me/tiny", "me/large"}
    board = embark.leaderboard(tasks="Pages*", max_parameters="1B")
    assert [entry.model.model for entry in board.entries] == ["me/tiny", "embark/random"]
    assert [entry.model.model for entry in embark.leaderboard(tasks="Pages*", families="Mine").entries] == ["me/tiny"]
    choice = embark.recommend("retrieval", tasks="Pages*", max_parameters="1B", max_dim=3, include="own")
    assert [model.name for model in choice.models] == ["me/tiny"]
    free = embark.recommend("retrieval", tasks="Pages*", max_parameters=0, include="own")  # none is a number, too
    assert [model.name for model in free.models] == ["embark/random"]
    facts = embark.show("me/tiny")
    assert (facts.kind, facts["parameters"]) == ("model", "12,000,000")
    assert facts["results"]["PagesRetrieval"] == "100.0"
    assert "functions of yours" in facts["from"]


def test_a_card_that_somebody_broke_is_no_card(here: Path) -> None:
    tasks = embark.load_tasks("tasks.toml")
    (result, *_) = embark.evaluate(own_model(parameters=5), tasks, show_progress=False).results
    assert result.path is not None
    meta = result.path.with_name("model_meta.json")
    facts = json.loads(meta.read_text())
    for wrong in ({"parameters": "many"}, {"modalities": ["smell"]}, {"name": None}):
        meta.write_text(json.dumps(facts | {"embark": facts["embark"] | wrong}))
        assert result.card() is None
    meta.write_text(json.dumps(facts | {"embark": facts["embark"] | {"of another version": 1}}))
    assert result.card() == own_model(parameters=5).card
    meta.write_text("[" * 10_000)
    assert embark.leaderboard(tasks="Pages*").entries


def test_analyses_know_a_model_that_is_in_the_results_alone(here: Path) -> None:
    embark.evaluate(own_model(), embark.load_tasks("tasks.toml"), show_progress=False)
    words = ("-m", "me/tiny", "-t", "PagesRetrieval")
    assert printed("analyze", "geometry", *words, "--format", "json") == printed(
        "analyze", "geometry", "-m", "me/tiny@1", *words[2:], "--format", "json"
    )
    with pytest.raises(EmbarkError, match=r"vectors of PocketNameSTS by me/tiny are not stored .* in Python, embark"):
        embark.analyze.truncate("me/tiny", "PocketNameSTS")
    with pytest.raises(EmbarkError, match="me/tiny is made of functions"):
        embark.doctor("me/tiny")
    with pytest.raises(EmbarkError, match="no model named 'me/tinier'"):
        embark.analyze.geometry("me/tinier", "PagesRetrieval")


def test_as_names_a_model_and_leaves_its_vectors(here: Path) -> None:
    named = embark.evaluate(own_model(), embark.load_tasks("tasks.toml"), name="mine/v1", show_progress=False)
    assert {result.model for result in named.results} == {"mine/v1"}
    again = embark.evaluate(own_model(), embark.load_tasks("tasks.toml"), show_progress=False)
    assert (again.embedded, again.computed) == (0, 3)  # under its own name: scored again, from the same vectors
    assert named.results[0].records[0].encoder == again.results[0].records[0].encoder
    assert "mine/v1" in printed("leaderboard", "-t", "Pages*", "-m", "mine/*")
    assert "v1" in printed("analyze", "geometry", "-m", "mine/v1", "-t", "PagesRetrieval")
    assert embark.compare("mine/v1", own_model(), tasks="Pages*").total.difference == 0
    Path("embark.toml").write_text('[[model]]\nname = "theirs"\nid = "embark/handmade"\n')
    with pytest.raises(EmbarkError, match=r"A model of embark.toml is named theirs, too"):
        embark.evaluate(own_model(), ["PocketNameSTS"], name="theirs", show_progress=False)
    for names in ("embark/pocket", ["a", "b"], ""):
        with pytest.raises(EmbarkError, match=r"A built-in model is named|Give each of the 1 models a different name"):
            embark.evaluate(own_model(), ["PocketNameSTS"], name=names, show_progress=False)


@pytest.mark.slow
def test_checkpoints_in_folders_of_one_name(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps of a training, each in a folder `model`: by their names, folders, embark.toml, and after a change."""
    for step in ("100", "200"):
        shutil.copytree(bert, Path(step, "model"))
        Path(step, "model", "step").write_text(step)
    run = ("run", "-t", "PocketNameSTS", "--device", "cpu", "--format", "json")
    ran = printed(*run, "-m", "100/model", "-m", "200/model", "--as", "mine/100", "--as", "mine/200")
    assert [row["model"] for row in json.loads(ran)["results"]] == ["mine/100", "mine/200"]
    by_name = embark.compare("mine/100", "mine/200")
    by_folder = embark.compare("100/model", "200/model")
    assert by_name.as_dict()["tasks"] == by_folder.as_dict()["tasks"]
    again = embark.evaluate("mine/200", "PocketNameSTS", show_progress=False)  # it is loaded from its folder
    assert (again.embedded, again.computed) == (0, 0)
    assert "effective dimensions" in printed("analyze", "geometry", "-m", "mine/200", "-t", "PocketNameSTS")
    Path("embark.toml").write_text('[[model]]\nname = "last"\ncheckpoint = "200/model"\nlicense = "mit"\n')
    named = embark.evaluate("last", "PocketNameSTS", show_progress=False)
    assert (named.embedded, named.results[0].model) == (0, "last")
    assert embark.show("last")["license"] == "mit"
    assert embark.compare("last", "100/model").a == "last"
    Path("200", "model", "step").write_text("201")
    with pytest.raises(EmbarkError, match=r"mine/200 has results, .* by its name: the files of .* have changed"):
        embark.analyze.geometry("mine/200", "PocketNameSTS")
    with pytest.raises(EmbarkError, match=r"no results of last \(local-.*run it first"):
        embark.compare("last", "mine/100")


def test_compare_takes_what_run_takes(here: Path) -> None:
    mine, other = own_model(), own_model("me/other")
    embark.evaluate([mine, other], embark.load_tasks("tasks.toml"), show_progress=False)
    os.rename("tasks.toml", "rows.toml")
    comparison = embark.compare(mine, other, tasks=embark.load_tasks("rows.toml"))
    assert (comparison.a, comparison.b, len(comparison.pairs)) == ("me/tiny", "me/other", 3)
    shown = printed("compare", "me/tiny", "me/other", "--tasks-file", "rows.toml", "-t", "PagesZ*", "--format", "json")
    assert [pair["task"] for pair in json.loads(shown)["tasks"]] == ["PagesZeroShot"]
    with pytest.raises(EmbarkError, match=r"There are no results of me/new \(1\) in .*: run it first"):
        embark.compare(own_model("me/new"), mine)


class Live:
    """An encoder that states a card and embeds; it inherits nothing."""

    card = embark.types.ModelCard("me/live", "1", "mine", ("text",))

    def embed(self, batch: list[Any]) -> Array:
        return colors([contents[0].value for contents in batch]) + np.arange(3, dtype=np.float32)


def test_the_doctor_examines_live_models() -> None:
    assert embark.doctor(own_model()).model == "me/tiny"
    examination = embark.doctor(Live())
    assert examination.model == "me/live"
    assert "text: deterministic" in {finding.check for finding in examination.findings}
    assert embark.evaluate(Live(), "PocketNameSTS", show_progress=False).results[0].model == "me/live"
    with pytest.raises(EmbarkError, match="is no model"):
        embark.doctor(object())


@pytest.mark.slow
def test_the_doctor_examines_a_sentence_transformer(bert: Path) -> None:
    from sentence_transformers import SentenceTransformer

    examination = embark.doctor(SentenceTransformer(str(bert), device="cpu"))
    assert examination.model == "local/sentence-transformer"
    assert examination.faults == ()


def test_a_card_is_a_model_too() -> None:
    (card,) = embark.get_models("embark/random")
    run = embark.evaluate(card, "PocketNameSTS", name="me/random", show_progress=False)
    assert [(result.model, result.card()) for result in run.results] == [("me/random", card.called("me/random"))]


def test_a_name_of_the_users_is_no_part_of_the_identity() -> None:
    card = own_model().card
    assert vector_space(card.called("another")) == vector_space(card)
    assert vector_space(card.called("another").called("third")) == vector_space(card)
    other = card.called("another").with_name(lambda name: f"{name} (bfloat16)")
    assert (other.name, other.keyed_as) == ("another (bfloat16)", "me/tiny (bfloat16)")
    assert vector_space(other) != vector_space(card)
