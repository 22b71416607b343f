"""Scores for a model card: the hub's metadata and a table, in a card that stays what it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from typer.testing import CliRunner

import embark
from embark.catalogue import UnknownName
from embark.cli import app
from embark.exchange.card_section import BEGIN, END
from embark.types import EmbarkError
from folders import two_tasks

CARD = """---
license: mit  # ours
language: [de,
  en]
model-index:
- name: embark/random
  results:
  - task: {type: Classification}
    dataset: {type: mteb/banking77, name: MTEB Banking77, config: default, split: test}
    metrics:
    - {type: accuracy, value: 79.5}
- name: someone/else
  results: []
pipeline_tag: feature-extraction
---
# My model

Words — with `---` and a dash.
"""


@pytest.fixture
def scored(pocket_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """embark/random's results on a few pocket tasks, by the environment."""
    monkeypatch.setenv("EMBARK_RESULTS", str(pocket_home / "results"))
    return pocket_home / "results"


def front(text: str) -> Any:
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.slow
def test_the_hub_reads_the_metadata(scored: Path) -> None:
    section = embark.exchange.card("embark/random", "Pocket(lite)")
    [index] = section.model_index()
    name, evaluations = model_index_to_eval_results([index])
    assert name == "embark/random"
    assert [evaluation.dataset_name for evaluation in evaluations] == [task.name for task in section.tasks]
    results = {result.task: result for result in section.results}
    for evaluation in evaluations:
        result = results[evaluation.dataset_name]
        assert evaluation.metric_value == pytest.approx(result.score, abs=1e-6)
        assert evaluation.metric_args == {"interval": pytest.approx(result.interval, abs=1e-6), "level": 0.95}
        assert (evaluation.dataset_type, evaluation.dataset_revision) == ("embark/pocket", result.dataset_revision)
    assert ModelCard(str(section)).data.to_dict()["model-index"] == [index]
    types = {evaluation.dataset_name: evaluation.task_type for evaluation in evaluations}
    assert types["PocketFlagZeroShot"] == "zero-shot-image-classification"
    assert types["PocketSpokenLanguageProbe"] == "audio-classification"
    assert types["PocketNameSTS"] == "sentence-similarity"


def test_people_read_a_table_with_intervals(scored: Path) -> None:
    section = embark.exchange.card("embark/random", tasks=["PocketClockReading", "PocketFlagZeroShot"])
    text = section.section()
    assert text.startswith(f"{BEGIN}\n## Scores\n")
    assert text.endswith(f"{END}\n")
    assert "| PocketClockReading |" in text.replace("  ", " ")
    assert re.search(r"\| \d+\.\d( ± \d| \\\[\d)", text)
    assert "Mean of categories" in text
    assert f"embark {embark.__version__}" in text


@pytest.mark.slow
def test_mtebs_layout_has_an_entry_a_split_and_subset() -> None:
    embark.evaluate("embark/random", "PocketSpokenIn4Languages", show_progress=False)
    [index] = embark.exchange.card("embark/random", layout="mteb").model_index()
    [result] = embark.exchange.card("embark/random").results
    entries = index["results"]
    assert [(e["dataset"]["name"], e["dataset"]["config"]) for e in entries] == [
        (f"PocketSpokenIn4Languages ({code})", code) for code in ("de", "es", "fr", "it")
    ]
    scores = [round(record.score, 6) for record in result.records]
    metric = "hit_rate_at_1"
    assert [e["metrics"] for e in entries] == [[{"type": metric, "value": v, "name": metric}] for v in scores]
    assert entries[0]["task"] == {"type": "feature-extraction", "name": "Audio"}
    with pytest.raises(UnknownName, match="no layout of a card named 'mtebs'"):
        embark.exchange.card("embark/random", layout="mtebs")  # type: ignore[arg-type]


def test_a_card_stays_what_it_was(scored: Path, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(CARD, encoding="utf-8")
    section = embark.exchange.card("embark/random", tasks="PocketClockReading")
    section.write(readme)
    text = readme.read_text(encoding="utf-8")
    body = CARD.split("---\n", 2)[2]
    assert "license: mit  # ours\nlanguage: [de,\n  en]\nmodel-index:\n" in text
    assert text.split("---\n", 2)[2].startswith(body.rstrip("\n"))
    index = front(text)["model-index"]
    assert [(model["name"], len(model["results"])) for model in index] == [("someone/else", 0), ("embark/random", 2)]
    assert front(text)["pipeline_tag"] == "feature-extraction"
    section.write(readme)
    assert readme.read_text(encoding="utf-8") == text  # again: the same card
    readme.write_text(text + "\nA last word.\n", encoding="utf-8")
    embark.exchange.card("embark/random", tasks=["PocketClockReading", "PocketFlagZeroShot"]).write(readme)
    longer = readme.read_text(encoding="utf-8")
    assert longer.count(BEGIN) == longer.count(END) == 1
    assert longer.endswith(f"{END}\n\nA last word.\n")
    assert len(front(longer)["model-index"][1]["results"]) == 3


def test_a_card_that_cannot_be_changed_safely_is_refused(scored: Path, tmp_path: Path) -> None:
    section = embark.exchange.card("embark/random", tasks="PocketClockReading")
    for text, message in (
        (f"{BEGIN}\nno end", "not one pair of marks"),
        (f"{END}\n{BEGIN}\n", "not one pair of marks"),
        ("---\nmodel-index: [1, 2\n---\n", "metadata of the card cannot be read"),
        ("---\nlicense: mit\nx: [1\n---\n", r"cannot be read \(line 4: expected ',' or ']'"),
        ("---\nmodel-index:\n- results: []\n---\n", "model-index is not as the hub has it"),
        ("---\n- a\n---\n", "has no keys"),
        ("---\nlicense: mit\n", "begins with --- and never ends"),
        ("---\n{license: mit, model-index: []}\n---\n", "cannot be read|has no place for model-index"),
    ):
        readme = tmp_path / "README.md"
        readme.write_text(text)
        with pytest.raises(EmbarkError, match=message):
            section.write(readme)
        assert readme.read_text() == text


def test_cards_of_other_hands_keep_keys_and_line_ends(scored: Path, tmp_path: Path) -> None:
    section = embark.exchange.card("embark/random", tasks="PocketClockReading")
    readme = tmp_path / "README.md"
    for index in ('"model-index":\n- name: o\n  results: []\n', "model-index:\n# theirs\n- name: o\n  results: []\n"):
        readme.write_text(f"---\nlicense: mit\n{index}# a tag\ntags: [a]\n---\nText\n")
        section.write(readme)
        text = readme.read_text()
        assert text.count("model-index") == 1
        assert "# a tag\ntags: [a]\n---\n" in text
        assert [model["name"] for model in front(text)["model-index"]] == ["o", "embark/random"]
        section.write(readme)
        assert readme.read_text() == text
    readme.write_bytes(b"\xef\xbb\xbf---\r\nlicense: mit\r\n---\r\nText\r\n")
    section.write(readme)
    written = readme.read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n")
    assert front(written.decode().replace("\r\n", "\n"))["license"] == "mit"
    readme.write_bytes(b"caf\xe9")
    with pytest.raises(EmbarkError, match="is not UTF-8 text"):
        section.write(readme)
    assert readme.read_bytes() == b"caf\xe9"


def test_own_data_is_named_by_its_task_alone(pictures: Callable[..., Path], tiny: embark.Encoder) -> None:
    folder = pictures("Secret project")
    embark.evaluate(tiny, two_tasks(folder), show_progress=False)
    section = embark.exchange.card("test/tiny")
    assert len(section.results) > 1
    assert str(folder) not in str(section)
    entries = section.model_index()[0]["results"]
    assert [entry["dataset"]["type"] for entry in entries] == [task.name for task in section.tasks]


def test_models_are_named_as_in_their_results(scored: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean embark/random"):
        embark.exchange.card("embark/randon")
    with pytest.raises(EmbarkError, match=r"no such results.*embark run -m me/x"):
        embark.exchange.card("me/x", settings=embark.load_settings(results=scored / "none"))


def test_the_command_prints_or_writes(scored: Path) -> None:
    printed = CliRunner().invoke(app, ["card", "-m", "embark/random", "-t", "PocketClockReading"])
    section = embark.exchange.card("embark/random", tasks="PocketClockReading")
    assert (printed.exit_code, printed.stdout) == (0, str(section))
    as_json = CliRunner().invoke(app, ["card", "-m", "embark/random", "-t", "PocketClockReading", "--format", "json"])
    assert json.loads(as_json.stdout) == section.model_index()
    written = CliRunner().invoke(app, ["card", "-m", "embark/random", "-t", "PocketClockReading", "--readme", "new.md"])
    assert written.stdout == "scores of embark/random on 1 task to new.md\n"
    assert Path("new.md").read_text(encoding="utf-8") == str(section)
