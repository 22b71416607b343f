"""Every row of the task tables is valid, is found by its name, and passes the filters that it should."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from embark import evaluators, protocol, tasks
from embark.catalogue import UnknownName
from embark.readers import READERS
from embark.tasks import BENCHMARKS, TASKS, choose_tasks, get_benchmark, get_tasks
from embark.types import MODALITIES, Benchmark, EmbarkError, Task
from matrix import every

# Kind → the sides that its datasets have.
SIDES = {
    "retrieval": {"query", "document"},
    "choice": {"query", "document"},
    "zeroshot": {"item", "prompt"},
    "probe": {"train", "test"},
    "multilabel": {"train", "test"},
    "clustering": {"item"},
    "pairs": {"image", "text"},
    "sts": {"left", "right"},
}
ROWS = every(TASKS.values())


PROGRAM = """
from embark import protocol
from embark.tasks import TASKS
def fingerprint(task):
    return protocol.fingerprint(task, task.source.splits[0], next(iter(task.subsets)), 1, 1)
"""


def fingerprint(task: Task) -> str:
    return protocol.fingerprint(task, task.source.splits[0], next(iter(task.subsets)), 1, 1)


@ROWS
def test_rows_are_valid(task: Task) -> None:
    assert task.evaluator in evaluators.EVALUATORS
    assert set(task.modalities) <= set(MODALITIES)
    assert len(set(task.modalities)) == len(task.modalities) > 0
    assert all((task.name, task.family, task.category, task.metric))
    assert all((task.source.id, task.source.revision, task.source.splits))
    assert task.chance is None or 0 <= task.chance < 1
    assert task.subsets
    assert all(re.fullmatch("[a-z]{3}(-[A-Z][a-z]{3})?", language) for language in task.languages)
    assert all("{}" in template for template in task.templates)
    assert all(note.strip() for note in task.notes)
    assert all(isinstance(value, str) for value in task.tags.values())
    assert all(count > 0 for count in task.rows.values())


@ROWS
def test_readers_exist(task: Task) -> None:
    assert callable(READERS[task.reader].read)


@ROWS
def test_readers_serve_their_evaluators(task: Task) -> None:
    assert task.evaluator in READERS[task.reader].evaluators


def test_lists_beside_the_tables_are_all_used() -> None:
    beside = {path.stem: json.loads(path.read_text("utf-8")) for path in Path(tasks.__file__).parent.glob("*.json")}
    assert set(beside) == {"benchmarks", "mieb_labels", "unibench_labels", "mmeb"}
    classes, templates, digits = (beside["unibench_labels"][name] for name in ("classes", "templates", "mnist_prompts"))
    lists = [*beside["mieb_labels"].values(), *beside["mmeb"]["labels"].values()]
    lists += [one["names"] for one in classes.values()] + [one["templates"] for one in templates.values()]
    lists += [*digits["labels"].values(), *digits["templates"].values()]
    used = {tuple(map(str.strip, held)) for task in TASKS.values() for held in (task.labels, task.templates)}
    assert [held for held in lists if tuple(map(str.strip, held)) not in used] == []


@ROWS
def test_pools_are_of_the_sides_that_the_evaluator_has(task: Task) -> None:
    sides = {pool.side.partition(":")[0] for pool in task.pools}
    known = SIDES.get(task.evaluator) or SIDES.get(str(task.params.get("base")), set())
    assert sides <= known  # where a size is not known, its pool is not there
    assert all(pool.items > 0 and pool.id for pool in task.pools)


def test_a_pool_has_one_size() -> None:
    sizes: dict[str, int] = {}
    for task in TASKS.values():
        for pool in task.pools:
            assert sizes.setdefault(pool.id, pool.items) == pool.items, f"{task.name}: {pool.id}"


@ROWS
def test_variants_are_other_protocols(task: Task) -> None:
    for name in task.variants:
        other = task.under(name)
        assert (other.name, other.protocol) == (task.name, name)
        assert fingerprint(other) != fingerprint(task)


def test_fingerprints_are_the_same_in_another_process() -> None:
    ours = " ".join(fingerprint(task) for task in TASKS.values())
    code = f"{PROGRAM}\nprint(*(fingerprint(task) for task in TASKS.values()))"
    where = os.environ | {"PYTHONHASHSEED": "7"}
    theirs = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where)
    assert theirs.stdout.strip() == ours
    assert len(set(ours.split())) == len(TASKS)


@ROWS
def test_names_lead_back_to_their_rows(task: Task) -> None:
    assert TASKS[task.name] is task
    assert get_tasks(task.name) == [task]


@every(BENCHMARKS.values())
def test_benchmarks_list_tasks_once(benchmark: Benchmark) -> None:
    assert get_benchmark(benchmark.name) is benchmark
    assert len(set(benchmark.tasks)) == len(benchmark.tasks) > 0
    assert all(name in TASKS for name in benchmark.tasks)


def test_a_row_that_is_added_joins_no_benchmark() -> None:
    """Their lists are data: each has as many tasks as when it was written down."""
    assert {name: len(benchmark.tasks) for name, benchmark in BENCHMARKS.items()} == {
        "Pocket": 40, "Pocket(lite)": 8, "ARK(emoji)": 6, "MIEB(Multilingual)": 130, "MIEB(eng)": 125,
        "MIEB(lite)": 51, "MIEB(Img)": 49, "ARK": 17, "UniBench": 53, "UniBench(types)": 8, "UniBench(5 minutes)": 8,
        "UniBench(capabilities)": 18, "UniBench(object recognition)": 23, "UniBench(reasoning)": 10,
        "UniBench(relation)": 6, "UniBench(texture)": 1, "UniBench(non-natural images)": 6, "UniBench(robustness)": 6,
        "UniBench(corruption)": 1, "UniBench(MNIST prompts)": 6, "MMEB-V3": 190, "MMEB-V3(image)": 37,
        "MMEB-V3(video)": 18, "MMEB-V3(visdoc)": 24, "MMEB-V3(audio)": 11, "MMEB-V3(text)": 53, "MMEB-V3(agent)": 47,
        "OmniSET": 12,
    }  # fmt: skip


def test_without_filters_everything_is_chosen() -> None:
    assert get_tasks() == list(TASKS.values())


def test_globs_and_lists() -> None:
    pairs = get_tasks("Pocket*Pairs")
    assert [task.evaluator for task in pairs] == ["pairs"] * 3
    assert get_tasks(["PocketHairPairs", "Pocket*Pairs"])[0].name == "PocketHairPairs"
    assert len(get_tasks(["PocketHairPairs", "Pocket*Pairs"])) == 3


def test_filters_narrow_together() -> None:
    assert {task.evaluator for task in get_tasks(evaluators=["sts", "pairs"], families="Pocket")} == {"sts", "pairs"}
    assert {task.category for task in get_tasks(categories="*etrieval")} >= {"Retrieval", "Composed retrieval"}
    spoken = get_tasks(families="Pocket", languages="spa", modalities=("audio", "image"))
    assert [task.name for task in spoken] == ["PocketSpokenIn4Languages", "PocketSpokenLanguageProbe"]
    assert all(task.modalities == ("text",) for task in get_tasks(modalities="text"))
    assert get_tasks("PocketNameSTS", modalities="image") == []


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"tasks": "PocketHairPair"}, "no task or benchmark named 'PocketHairPair'. Did you mean PocketHairPairs"),
        ({"evaluators": "retrival"}, "no evaluator named 'retrival'. Did you mean retrieval"),
        ({"families": ["Pockt"]}, "no family named 'Pockt'. Did you mean Pocket"),
        ({"categories": "Vidio"}, "no category named 'Vidio'. Did you mean Video"),
        ({"languages": "engl"}, "no language named 'engl'. Did you mean eng"),
        ({"modalities": "images"}, "no modality named 'images'. Did you mean image"),
    ],
)
def test_unknown_values_get_suggestions(filters: dict[str, str], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        get_tasks(**filters)


def test_unknown_benchmarks_get_suggestions() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean Pocket or Pocket\(lite\)"):
        get_benchmark("pocket")


def test_benchmarks_are_found_by_name_and_family() -> None:
    assert tasks.get_benchmarks() == list(BENCHMARKS.values())
    assert [b.name for b in tasks.get_benchmarks("Pocket*")] == ["Pocket", "Pocket(lite)"]
    assert {b.family for b in tasks.get_benchmarks(families=["ARK", "MI*"])} == {"ARK", "MIEB"}
    with pytest.raises(UnknownName, match="Did you mean Pocket"):
        tasks.get_benchmarks("Poket")


def test_an_own_task_must_not_have_the_name_of_a_built_in_one() -> None:
    own = replace(TASKS["PocketFlagZeroShot"], family="Folder")
    with pytest.raises(EmbarkError, match="A built-in task is named PocketFlagZeroShot, too"):
        choose_tasks(own)
