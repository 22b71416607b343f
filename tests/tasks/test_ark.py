"""The rows of ARK add up to the paper's numbers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from embark.readers import ark as reader
from embark.tasks import ark, get_benchmark, get_tasks, size

FACTS = Path(__file__).parents[1] / "samples" / "facts" / "ark.json"


def total(side: str) -> int:
    return sum(pool.items for task in ark.TASKS for pool in task.pools if pool.side == side)


def test_counts_are_the_papers() -> None:
    assert len(ark.TASKS) == len(get_benchmark("ARK").tasks) == 17
    assert (total("query"), total("document")) == (1547, 36030)
    domains = Counter(task.category for task in ark.TASKS)
    assert list(domains.values()) == [4, 3, 2, 5, 3]


def test_rows_are_those_of_the_facts() -> None:
    stated = json.loads(FACTS.read_text(encoding="utf-8"))["subtypes"]
    assert [task.name for task in ark.TASKS] == [f"ARK/{row['subtype']}" for row in stated]
    for task, row in zip(ark.TASKS, stated, strict=True):
        origin = row["adapted_from"].replace("Manually collected", "collected by hand")
        assert (task.category, task.tags["adapted_from"]) == (row["domain"], origin), task.name
        assert [pool.items for pool in task.pools] == [row["queries"], row["gallery"]], task.name
        assert task.mixed == ("image" in row["query_modality"]), task.name
        for tag, fact in ("visual_types", "visual_types"), ("skills", "reasoning_skills"):
            assert task.tags[tag] == ", ".join(row[fact]), task.name


def test_the_second_axis_is_known_to_the_reader() -> None:
    assert (tuple(ark.SKILLS), tuple(ark.DEMANDS)) == (reader.SKILLS, reader.DEMANDS)
    assert sum(ark.DEMANDS.values()) == total("query")
    listed = {skill for task in ark.TASKS for skill in task.tags["skills"].split(", ") if skill}
    assert listed == set(ark.SKILLS)


def test_a_demand_and_a_skill_are_whole_subtypes() -> None:
    queries = {task.name: task.pools[0].items for task in ark.TASKS}
    assert queries["ARK/Daily-Life"] == ark.DEMANDS["perception-only"]
    assert queries["ARK/Fine-Grained"] == ark.SKILLS["fine-grained visual reasoning"]


def test_rows_tell_what_is_not_known() -> None:
    assert all(ark.HIDDEN in task.notes and ark.LICENCE in task.notes for task in ark.TASKS)
    [metro] = get_tasks("ARK/Metro")
    assert metro.category == "Humanity & Social Science"
    assert any("Table 5 says Engineering & Technology" in note for note in metro.notes)
    assert size(metro) == 37 + 280
    assert [task.name for task in get_tasks(families="ARK", max_items=400)] == ["ARK/Metro", "ARK/Electronics"]
    assert get_tasks("ARK/*", languages="eng") == list(ark.TASKS)
