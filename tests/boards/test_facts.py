"""Everything that is known about one thing: in words, as a table, and as data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.boards.facts import show
from embark.catalogue import UnknownName
from embark.cli import app
from embark.models import MODELS
from embark.settings import load_settings
from embark.tasks import BENCHMARKS, TASKS
from folders import two_tasks
from hub import FakeHub

TASK = "PocketFlagZeroShot"


def shown(name: str) -> str:
    ran = CliRunner().invoke(app, ["show", name])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.mark.parametrize(
    ("name", "kind", "fact"),
    [
        (TASK, "task", ("scored by", "zeroshot, accuracy")),
        ("Pocket(lite)", "benchmark", ("rule", "mean-of-categories")),
        ("embark/random", "model", ("loaded by", "random")),
    ],
)
def test_facts_are_a_mapping_a_table_and_a_dictionary(name: str, kind: str, fact: tuple[str, str]) -> None:
    facts = show(name)
    assert facts.kind == kind
    assert facts.row in (TASKS.get(name), BENCHMARKS.get(name), MODELS.get(name))
    assert facts[fact[0]].startswith(fact[1])
    assert len(facts) == len(list(facts)) == len(dict(facts))
    assert facts.as_dict()["name"] == name
    lines = [row.cells for row in facts.table().rows]
    assert [name for name, _ in lines if name] == list(facts)
    assert f"{fact[0]:<14}{fact[1]}" in shown(name)
    assert json.loads(CliRunner().invoke(app, ["show", name, "--format", "json"]).stdout)["name"] == name
    assert fact[1] in facts._repr_html_()


def test_a_model_in_words() -> None:
    facts = show("Alibaba-NLP/gme-Qwen2-VL-2B-Instruct")
    assert facts["gives"] == "one vector of 1,536 numbers, of length one; compared by cosines"
    assert facts["parameters"] == "2,208,985,600"
    assert "templates.text: '<|im_start|>system\\n{system}" in shown("Alibaba-NLP/gme-Qwen2-VL-2B-Instruct")
    assert "a score for each pair" in show("BAAI/bge-reranker-v2-m3")["gives"]
    assert show("voyageai/voyage-multimodal-3")["price"] == "$0.12 a million tokens (of images: $0.336)"
    assert show("vidore/colqwen2-v1.0-hf")["gives"].startswith("one vector of 128 numbers for every token")


def test_a_task_with_a_sample_and_without_a_download(hub: FakeHub) -> None:
    facts = show(TASK)
    assert facts["sample"]["item"] == "1F1E6-1F1E8: [image of 64 × 64, WEBP]"
    assert "“flag: Afghanistan”" in facts["sample"]["prompt"]
    assert list(facts["protocols"]) == ["test/default"]
    metro = show("ARK/Metro")
    assert metro["sizes"]["query"] == "37 items"
    assert metro["sample"]["none"].startswith("The relevance labels of ARK/Metro are not published")
    assert metro["license"].startswith("Apache-2.0 (hub card)")
    assert hub.requests == []


def test_published_scores() -> None:
    assert show("royokong/e5-v")["published"]["MIEB(Multilingual)"].startswith("58.2")
    best = show("MIEB(Multilingual)")["published"]
    assert best["voyageai/voyage-multimodal-3"] == "63.8 (erratum mieb-voyage-rerun)"
    assert show("Imagenet1k")["published"]["(46 models)"] == "accuracy; embark leaderboard has all"
    assert "published" not in show("Pocket")
    assert "published" not in show("Pocket").as_dict()


@pytest.mark.parametrize(
    ("beginning", "task"),
    [
        ("OVENIT2T", "OVENIT2TRetrieval"), ("Sketchy", "SketchyI2IRetrieval"), ("ImageCoDe", "ImageCoDe"),
        ("HatefulMemesI2T", "HatefulMemesI2TRetrieval"), ("SOPI2I", "SOPI2IRetrieval"),
    ],
)  # fmt: skip
def test_the_beginning_of_a_name_will_do(beginning: str, task: str) -> None:
    """As the papers shorten them; but not where several tasks begin so."""
    assert show(beginning).row.name == task
    with pytest.raises(UnknownName, match="Did you mean MemotionI2TRetrieval or MemotionT2IRetrieval"):
        show("Memotion")


def test_unknown_names_get_suggestions() -> None:
    with pytest.raises(UnknownName, match="Did you mean PocketFlagZeroShot"):
        show("pocketflagzeroshot")


def test_only_results_on_the_present_data_are_shown(tiny: embark.Encoder, pictures: Callable[..., Path]) -> None:
    folder = pictures("Trip")
    embark.evaluate([tiny, "embark/random"], two_tasks(folder), show_progress=False)
    table = next(folder.glob("*.csv"))
    table.write_text("\n".join(table.read_text().splitlines()[:-1]))
    embark.evaluate(tiny, two_tasks(folder), show_progress=False)
    assert list(embark.show("TripRetrieval")["results"]) == [tiny.card.name]


def test_an_own_task_from_its_results_alone(tiny: embark.Encoder, pictures: Callable[..., Path]) -> None:
    folder = pictures("Holiday")
    embark.evaluate(tiny, two_tasks(folder), show_progress=False)
    facts = show("HolidayZeroShot")
    assert facts["results"] == {"test/tiny": "100.0"}
    assert facts["sample"]["item"] == "red.png: [image of 4 × 4, PNG]"
    shutil.rmtree(folder)
    again = show("HolidayZeroShot")
    assert "none" in again["sample"]
    assert {name: again[name] for name in again if name != "sample"} == {
        name: facts[name] for name in facts if name != "sample"
    }
    assert "scored by     zeroshot, accuracy, 33 % by chance" in shown("HolidayZeroShot")
    with pytest.raises(UnknownName, match="Did you mean HolidayZeroShot"):
        show("HolidayZeroshot")
    with pytest.raises(UnknownName):
        show("HolidayZeroShot", settings=load_settings(results="elsewhere"))


def test_imported_results_tell_who_made_them() -> None:
    embark.exchange.import_results(Path(__file__).parents[1] / "samples/mteb")
    assert embark.show("CIFAR10ZeroShot")["results"] == {"mteb/baseline-random-encoder (by mteb)": "16.7"}
