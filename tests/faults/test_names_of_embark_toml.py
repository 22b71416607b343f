"""Own names of a folder or of results lead nowhere, run nothing and cost nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import embark
from embark.types import EmbarkError

TASKS = """
[[task]]
name = "Pages"
evaluator = "zeroshot"
reader = "labelled"
modalities = ["text", "image"]
columns = { image = "file", label = "label" }
labels = ["red", "green", "blue"]
source = { id = "Pages", files = { test = ["metadata.csv"] } }
"""


@pytest.fixture
def here(pictures: Callable[..., Path]) -> None:
    """The working folder with an own task: `tasks.toml`, and the data beside it."""
    pictures("Pages").rename("Pages")
    Path("tasks.toml").write_text(TASKS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('tasks = "../tasks.toml"', "'tasks': '../tasks.toml' is not a path inside"),
        ('tasks = "link.toml"', "'tasks': 'link.toml' is a link that leads out"),
        ("tasks = 3", "'tasks' must be a file of tasks, not 3"),
        ('task = "tasks.toml"', r"'task' must be \[\[task\]\] tables"),
        ('[[model]]\nname = "x"\ncheckpoint = "../x"', "model x: '../x' is not a path inside"),
        ('[[model]]\nname = "x"\ncheckpoint = "out"', "model x: 'out' is a link that leads out"),
        ('[[model]]\nname = "x"\ncheckpoint = "Pages"\nloader = "openai"', "There is no loader named 'openai'"),
        ('[[model]]\nname = "x"\ncheckpoint = "Pages"\nloader = "mine:load"', "There is no loader named 'mine:load'"),
        ('[[model]]\nname = "x"\ncheckpoint = "Pages"\noptions = {code = "x"}', "has no 'options'"),
        ('[[model]]\nname = "x"\nid = "openai/text-embedding-3-small"', "is behind an API: name it yourself"),
        ('[[model]]\nname = "openai/text-embedding-3-small"', "is behind an API: name it yourself"),
        ('[[model]]\nname = "x"\nid = "openai:http://attacker.example"', "There is no model named 'openai:http"),
        ('[[model]]\nname = "embark/random"\ncheckpoint = "Pages"', "built-in model is named embark/random, too"),
        ('[[model]]\nname = "x"\nid = "embark/random"\nparameters = "many"', "'parameters' of a model must be a whole"),
        ('[[benchmark]]\nname = "Pocket"\ntasks = ["PocketNameSTS"]', "built-in benchmark is named Pocket, too"),
        ('[[benchmark]]\nname = "B"\ntasks = "PocketNameSTS"', r"a \[\[benchmark\]\] has a name, a list of tasks"),
    ],
)
def test_embark_toml_names_nothing_outside_and_nothing_that_runs_or_costs(
    here: None, tmp_path: Path, text: str, message: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "tasks.toml").write_text(TASKS)
    Path("link.toml").symlink_to(outside / "tasks.toml")
    Path("out").symlink_to(outside)
    Path("embark.toml").write_text(f"{text}\n")
    kind = text.partition("]]")[0].removeprefix("[[")
    look_up = {"model": lambda: embark.evaluate("x" if '"x"' in text else None), "benchmark": embark.get_benchmarks}
    with pytest.raises(EmbarkError, match=message):
        look_up.get(kind, embark.get_tasks)()


def test_a_card_beside_results_sends_no_loader_anywhere(here: None, tiny: embark.Encoder) -> None:
    """A stranger's results folder: its cards name no API, no address, and no options of a loader."""
    (result, *_) = embark.evaluate(tiny, embark.load_tasks("tasks.toml"), show_progress=False).results
    assert result.path is not None
    meta = result.path.with_name("model_meta.json")
    facts = json.loads(meta.read_text())
    for theirs in (
        {"loader": "openai", "source": "text-embedding-3-small"},
        {"loader": "text", "source": "http://attacker.example/weights.safetensors"},
        {"loader": "their.module:load", "source": "x"},
        {"loader": "text", "source": ""},
    ):
        meta.write_text(json.dumps(facts | {"embark": facts["embark"] | theirs}))
        with pytest.raises(EmbarkError, match="has results, but cannot be loaded by its name: the source of its"):
            embark.analyze.geometry("test/tiny", "Pages")
