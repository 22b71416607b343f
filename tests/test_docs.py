"""What the documentation shows works as shown: its tables are the data, its tasks and sessions are run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
import shown_data
from embark.cli import app
from embark.engine.rates import MEASURED
from embark.evaluators import EVALUATORS
from embark.models import LOADERS, short_count
from embark.models.providers import PROVIDERS
from embark.public import NOUNS, TOP
from embark.readers import READERS

DOCS = Path(__file__).parents[1] / "docs"
DATA = shown_data.PAGE
MODELS = (DOCS / "models.md").read_text(encoding="utf-8")
ANALYSES = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("analysis.md", "analysis-vectors.md"))
WALK = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text(encoding="utf-8"), flags=re.S)
TRAINING = (DOCS / "training.md").read_text(encoding="utf-8")
DIAGNOSES = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("diagnose.md", "diagnose-ark.md"))
FIRST_STEPS = "".join(
    (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for name in ("index", "quickstart", "choosing", "intervals", "report")
)
PYTHON = re.findall(r"```python\n(.*?)```", DATA + MODELS + ANALYSES + TRAINING + DIAGNOSES + FIRST_STEPS, flags=re.S)


@pytest.fixture
def shown(elsewhere: Path) -> None:
    """What docs/data.md shows, in the working folder."""
    shown_data.write(Path())


@pytest.mark.parametrize("model", ["embark/random", "embark/handmade"])
def test_every_task_is_scored(shown: None, model: str) -> None:
    tasks = embark.load_tasks("tasks.toml")
    run = embark.evaluate(model, tasks, show_progress=False)
    assert run.skipped == []
    assert [result.task for result in run.results] == [task.name for task in tasks]


def test_there_is_an_example_of_every_evaluator(shown: None) -> None:
    assert {task.evaluator for task in embark.load_tasks("tasks.toml")} == set(EVALUATORS)


def test_the_table_of_shapes_names_evaluators_and_readers() -> None:
    rows = re.findall(r"^\| ([a-z, -]+) \| `([a-z-]+)` \|", DATA, flags=re.M)
    assert {name for names, _ in rows for name in names.split(", ")} == set(EVALUATORS)
    assert {reader for _, reader in rows} <= set(READERS)


@pytest.mark.slow  # those of the README run in every test
@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.split("\n")[3][:40])
def test_python_blocks_run(shown: None, block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "docs", "exec"), {})
    assert re.search(r" ± | \[", capsys.readouterr().out)  # an interval


@pytest.mark.slow
def test_the_walk_through_the_api_runs(shown: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Block after block, as a notebook would."""
    names: dict[str, object] = {}
    for number, block in enumerate(WALK):
        exec(compile(block, f"python.md, block {number}", "exec"), names)
    out = capsys.readouterr().out
    assert re.search(r" ± \d| \[\d", out)
    assert "There is no task or benchmark named 'Poket'. Did you mean Pocket" in out


def test_the_walk_names_every_function() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    names = [*TOP, *(f"{noun}.{name}" for noun, members in NOUNS.items() for name in members)]
    functions = [name for name in names if name.rpartition(".")[2].islower()]
    elsewhere = {"load_tasks", "get_model", "get_benchmarks", "exchange.rank", "analyze.run", "plugins.allow"}
    elsewhere |= {name for name in functions if name.startswith("models.")}  # models.md, data.md, plugins.md
    elsewhere |= {"analyze.diagnose_ark", "exchange.export_inputs"}  # diagnose-ark.md
    elsewhere |= {f"published.{name}" for name in NOUNS["published"]} - {"published.check"}  # published.md
    assert [name for name in functions if f"embark.{name}" not in text and name not in elsewhere] == []


def test_every_loader_is_explained() -> None:
    """Those of checkpoints and of providers; the three that ship with embark need no words."""
    explained = {
        name for row in re.findall(r"^\| (`.*?) \|", MODELS, flags=re.M) for name in re.findall("`(.+?)`", row)
    }
    assert set(LOADERS) - {"pocket", "handmade", "random"} <= explained


def test_every_provider_is_listed() -> None:
    for name, provider in PROVIDERS.items():
        takes = ", ".join(provider.modalities)
        assert f"| `{name}` | `{provider.variable}_API_KEY` | `{provider.variable}_BASE_URL` | {takes} |" in MODELS


def test_the_table_of_costs_is_the_command_s() -> None:
    scale = (DOCS / "scale.md").read_text(encoding="utf-8")
    [(words, printed)] = re.findall(r"```console\n\$ embark (plan .*?)\n(.*?)```", scale, flags=re.S)
    assert CliRunner().invoke(app, words.split()).stdout == printed
    for row in MEASURED:
        size = short_count(round(row.parameters))
        share = f"{100 * row.utilization:.0f} %"
        assert f"| {row.model} | {size} | {row.tokens} | {row.rate:,} | {share} |" in scale
