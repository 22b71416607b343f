"""UniBench's rows agree with the paper's facts, and every one of them runs on data of its shape."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import embark
from embark.readers import needed_files, read
from embark.tasks import BENCHMARKS, TASKS, get_benchmark, unibench
from embark.types import Classes, Matches, Task
from hub import FakeHub, client
from matrix import every
from samples_unibench import SAMPLES, dataset, lists

FACTS = json.loads((Path(__file__).parents[1] / "samples" / "facts" / "unibench.json").read_text(encoding="utf-8"))
BY_KEY = {task.name.removeprefix("UniBench/"): task for task in unibench.TASKS}


def spelt(text: str) -> str:
    return text.replace("_", " ").replace("  ", " ").lower()


def members(benchmark: str) -> list[Task]:
    return TASKS.match(get_benchmark(benchmark).tasks)


# ── the table ──


def test_counts() -> None:
    assert len(get_benchmark("UniBench").tasks) == len(unibench.ROWS) == 53
    assert Counter(task.category for task in unibench.ROWS) == {
        "Object Recognition": 23, "Reasoning": 10, "Relation": 6, "Texture": 1, "Non-Natural Images": 6,
        "Robustness": 6, "Corruption": 1,
    }  # fmt: skip
    assert len({task.tags["capability"] for task in unibench.ROWS}) == 18
    assert sum(task.evaluator == "pairs" for task in unibench.ROWS) == 7  # the relations, and countbench


def test_benchmarks() -> None:
    types = [get_benchmark(f"UniBench({name.lower()})").tasks for name in unibench.TYPES]
    assert sorted(name for tasks in types for name in tasks) == sorted(get_benchmark("UniBench").tasks)
    assert len(get_benchmark("UniBench(types)").tasks) == 8
    assert {task.category for task in members("UniBench(types)")} == set(unibench.TYPES)
    assert len({task.tags["capability"] for task in members("UniBench(capabilities)")}) == 18
    assert len(get_benchmark("UniBench(MNIST prompts)").tasks) == 6
    assert sum(benchmark.family == "UniBench" for benchmark in BENCHMARKS.values()) == 12


def test_the_5_minute_set_samples_imagenet_c() -> None:
    paper, short = get_benchmark("UniBench(types)").tasks, get_benchmark("UniBench(5 minutes)").tasks
    assert [(a, b) for a, b in zip(paper, short, strict=True) if a != b] == [
        ("UniBench/imagenetc", "UniBench/imagenetc@5000")
    ]
    assert TASKS[short[-1]].options["sample"] == 5000
    items = [pool for name in short for pool in TASKS[name].pools if pool.side != "prompt"]
    assert sum(pool.items for pool in items) < 250_000


def test_rows_are_those_of_the_paper() -> None:
    known = {row["key"]: row for row in FACTS["benchmarks"]}
    assert set(known) == {task.name.removeprefix("UniBench/") for task in unibench.ROWS}
    for key, row in known.items():
        task = BY_KEY[key]
        assert task.source.id == row["dataset_id"]
        assert (task.evaluator == "pairs") == (row["handler"] == "relation")
        for tag in ("capability", "registry_group", "type"):
            assert task.tags[tag] == row[tag], key
        for tag in ("curated", "object_centric"):
            assert task.tags[tag] == str(row[tag]).lower(), key
        assert task.chance == pytest.approx(row["chance"], abs=1e-6), key
        assert row["num_classes"] == task.options.get("classes", task.options.get("captions")), key
        if key not in ("caltech101", "sun397", "pug_imagenet", "sugarcrepe"):  # their notes say why
            assert task.rows.get("test") == row["n_test"], key


def test_lists_are_those_of_the_facts() -> None:
    for folder, field in (("classes", "names"), ("templates", "templates")):
        for key, texts in FACTS[folder].items():
            ours = unibench.LISTS[folder][key]
            assert ours[field] == [spelt(text) for text in texts], key
            assert ours["source"]
    for key, row in ((row["key"], row) for row in FACTS["benchmarks"] if row["handler"] == "zero-shot"):
        names = unibench.LISTS["classes"][row["classes"]]["names"] if "classes" in row else []
        assert list(BY_KEY[key].labels) == names, key
        templates = unibench.LISTS["templates"][row["templates"]]["templates"]
        assert list(BY_KEY[key].templates) == templates, key


def test_representatives_are_those_of_the_tables() -> None:
    rows = FACTS["representatives"]
    chosen = members("UniBench(capabilities)")
    assert [f"UniBench/{row['benchmark'].replace(' ', '_')}" for row in rows] == [task.name for task in chosen]
    assert [task.tags["capability"] for task in chosen] == [row["capability"] for row in rows]
    assert len(FACTS["distilled"]) == len(members("UniBench(types)"))


def test_prompt_study_is_the_paper_s() -> None:
    study = FACTS["prompt_study"]
    names = {"word": "word labels", "digit": "digit labels"}
    order = [f"{names[form]} + {prompts.replace('-', ' ')}" for form, prompts in unibench.STUDY]
    assert order == study["ranking_best_to_worst"]
    for form, prompts in unibench.STUDY:
        task = BY_KEY[f"mnist@{form}-{prompts}"]
        assert list(task.templates) == study[prompts.replace("-", "_")]
        assert task.labels[7] == {"word": "seven", "digit": "7"}[form]


@every(unibench.TASKS)
def test_rows_say_what_they_know(task: Task) -> None:
    assert any("revision" in note for note in task.notes)
    assert (task.source.revision == "main") == any("not pinned" in note for note in task.notes)
    assert [pool.side for pool in task.pools] in ([], ["item", "prompt"], ["image", "text"])
    if task.evaluator == "zeroshot":
        assert len(task.labels) in (0, task.options["classes"])
        assert bool(task.labels) == ("listed" in task.variants or task.options["labels"] == "row")


def test_pools_are_shared_where_the_images_are() -> None:
    def pool(key: str, side: str) -> str:
        return next(pool.id for pool in BY_KEY[key].pools if pool.side == side)

    for group in (
        ("mnist", "mnist@word-basic", "mnist@digit-basic"), ("clevr_count", "clevr_distance"),
        ("dspr_orientation", "dspr_x_position", "dspr_y_position"), ("smallnorb_azimuth", "smallnorb_elevation"),
    ):  # fmt: skip
        assert len({pool(key, "item") for key in group}) == 1
        assert len({pool(key, "prompt") for key in group}) == len(group)
    assert pool("imagenet1k", "prompt") == pool("imagenetv2", "prompt") == pool("imagenetc", "prompt")
    ids: dict[str, set[int]] = {}
    for task in unibench.TASKS:
        for one in task.pools:
            ids.setdefault(one.id, set()).add(one.items)
    assert all(len(sizes) == 1 for sizes in ids.values())


# ── every row, end to end ──


def shape(task: Task) -> tuple[object, ...]:
    """What decides how the row's data is laid out and read."""
    return (*sorted(task.options), *(task.options.get(name) for name in ("labels", "captions", "images")))


QUICK = {shape(task): task.name for task in unibench.TASKS}.values()  # one row of every shape


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=() if task.name in QUICK else pytest.mark.slow) for task in unibench.TASKS],
    ids=lambda task: task.name,
)
def test_every_row_runs(task: Task, hub: FakeHub) -> None:
    files = dataset(task)
    hub.add(task.source.id, files, revision="" if task.source.revision == "main" else task.source.revision)
    row = replace(task, rows={})
    run = embark.evaluate("embark/random", row, show_progress=False)
    assert not run.skipped
    (result,) = run.results
    (record,) = result.records
    assert record.metric == task.metric
    assert 0 <= record.score <= 1
    assert record.counts["items" if task.evaluator == "zeroshot" else "samples"] >= SAMPLES
    ((_, found),) = needed_files(row, client())
    assert {file.path for file in found} == {
        path for path in files if path.endswith(".tar") or path in task.options.get("files", ())
    }
    assert all("templates" in warning for warning in record.warnings)  # the sample has two of them at most


@pytest.mark.parametrize("key", ["gtsrb", "clevr_distance", "cifar10", "imageneta"])
def test_ensembles_are_exact(key: str, hub: FakeHub) -> None:
    task = replace(BY_KEY[key], rows={})
    hub.add(task.source.id, dataset(task) | lists(task.labels, task.templates))
    data, listed = read(task, "test", "default", client()), read(task.under("listed"), "test", "default", client())
    assert data.skipped == ()
    texts = [item.parts[0].text for item in data.sides["prompt"].items]  # type: ignore[union-attr]
    assert texts == [template.replace("{}", name) for name in task.labels for template in task.templates]
    assert texts == [item.parts[0].text for item in listed.sides["prompt"].items]  # type: ignore[union-attr]
    assert isinstance(data.truth, Classes)
    assert data.truth.prompt.tolist() == [at for at in range(len(task.labels)) for _ in task.templates]


def test_known_oddities(hub: FakeHub) -> None:
    assert BY_KEY["clevr_distance"].labels[3] == ""
    assert BY_KEY["imagenet1k"].labels.count("missile") == 2
    task = replace(BY_KEY["winoground"], rows={})
    hub.add(task.source.id, dataset(task))
    data = read(task, "test", "default", client())
    assert isinstance(data.truth, Matches)
    assert data.truth.image.shape == data.truth.text.shape == (SAMPLES, 2)
    assert task.params == {"strict": True}
