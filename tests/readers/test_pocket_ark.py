"""The pocket ARK: one right picture a query, near misses in its gallery, labels of both axes."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from embark import readers
from embark.items import digest
from embark.readers.pocket_ark import questions
from embark.tasks import BENCHMARKS
from embark.tasks.ark import DEMANDS, SKILLS
from embark.tasks.pocket_ark import TASKS
from embark.types import Qrels, Task
from hub import client

ROWS = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


@ROWS
def test_every_query_has_one_right_picture_in_a_gallery_of_different_ones(task: Task) -> None:
    data = readers.read(task, "test", "default", client())
    assert isinstance(data.truth, Qrels)
    queries, documents = data.sides["query"], data.sides["document"]
    assert len(queries) == task.options["queries"]
    assert task.chance == pytest.approx(1 / len(documents))
    np.testing.assert_array_equal(data.truth.query, np.arange(len(queries)))
    assert len({digest(item.parts) for item in documents.items}) == len(documents)
    assert len({digest(item.parts) for item in queries.items}) == len(queries)
    kinds = {item.modalities for item in queries.items}
    assert task.mixed == (("image", "text") in kinds)


@ROWS
def test_it_reads_the_same_twice(task: Task) -> None:
    first, second = (readers.read(task, "test", "default", client()) for _ in range(2))
    for role, side in first.sides.items():
        assert list(side.ids) == list(second.sides[role].ids)
        assert [digest(item.parts) for item in side.items] == [digest(i.parts) for i in second.sides[role].items]
    assert first.about == second.about


def test_all_skills_and_demands_occur() -> None:
    rows = [question for task in TASKS for question in questions(task).questions.values()]
    skills = Counter(skill for question in rows for skill in question.skills)
    demands = Counter(question.demand for question in rows)
    assert set(skills) == set(SKILLS)
    assert set(demands) == set(DEMANDS)
    assert sum(demands.values()) == len(rows) == 248
    assert min(skills.values()) >= 40
    assert min(demands.values()) >= 16


def test_answers_are_right() -> None:
    """A few, as a person would check them."""
    by_task = {task.options["topic"]: questions(task) for task in TASKS}
    for subtype in by_task.values():
        assert all(question.answer == subtype.pictures[question.right].words for question in subtype.questions.values())
    capitals = {
        question.item.parts[0].text: question.answer  # type: ignore[union-attr]
        for question in by_task["Capitals"].questions.values()
    }
    assert capitals["the flag of the country whose capital is Copenhagen"] == "flag: Denmark"
    words = "the flag of the country whose capital comes first in the alphabet: Brussels or Kyiv"
    assert capitals[words] == "flag: Belgium"
    sums = [q for q in by_task["Counting"].questions.values() if "symbolic reasoning" in q.skills]
    numbers = {word: value for value, word in enumerate(("one", "two", "three", "four", "five", "six"), 1)}
    for question in sums:
        said = question.item.parts[0].text.split()  # type: ignore[union-attr]
        assert numbers[said[0]] + numbers[said[-2]] == numbers[question.answer.split()[0]]
    negations = by_task["Negation"]
    for question in negations.questions.values():
        excluded = question.item.parts[0].text.partition(" but not ")[2]  # type: ignore[union-attr]
        assert question.answer not in re.split(", | or ", excluded)


def test_it_is_no_part_of_the_default_benchmark() -> None:
    assert not {task.name for task in TASKS} & {*BENCHMARKS["Pocket"].tasks}
    assert BENCHMARKS["ARK(emoji)"].tasks == tuple(task.name for task in TASKS)
