"""Differences over several tasks: what they promise, on data of which the truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from embark.stats.paired import Difference, contrasts, difference, mean_difference, task_difference
from embark.stats.shared import Observations, Part
from embark.types import Array

ITEMS = 400  # of so many, signs are not flipped, which is slow
TASKS = 4


def models(rng: np.random.Generator, shared: float, edge: float = 0.0) -> Array:
    """The outcomes of two models on tasks over the same items, (models, tasks, items): what favours one on an item does
    so on every task.
    """
    favour = rng.normal(edge, shared, ITEMS) if shared else np.full(ITEMS, edge)
    hard = rng.normal(0.5, 0.1, (TASKS, ITEMS))
    halves = np.stack([favour, -favour])[:, None] / 2
    return np.asarray(hard + halves + rng.normal(0, 0.1, (2, TASKS, ITEMS)))


def over_tasks(values: Array, observations: list[Observations]) -> tuple[Difference, list[Difference]]:
    """The difference over all tasks, and the differences on each."""
    tasks, alone = [], []
    for number, of_task in enumerate(observations):
        a, b = ([Part("mean", "m", {"m": side[number]}, of_task)] for side in values)
        tasks.append(contrasts(number, a, b))
        alone.append(task_difference(tasks[-1], a, b))
    total = mean_difference(tasks, alone)
    assert total is not None
    return total, alone


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 0.15])
def test_equal_totals_are_parted_in_one_case_of_twenty(shared: float) -> None:
    """Type-I error of the difference of totals; of the same test with tasks as if they were independent; coverage."""
    rng = np.random.default_rng(7)
    same = [Observations.apart(ITEMS)] * TASKS
    other = [Observations(numbers, numbers) for numbers in np.arange(TASKS * ITEMS).reshape(TASKS, ITEMS)]
    replicates = 300
    parted = naive = covered = 0
    for _ in range(replicates):
        total, _ = over_tasks(models(rng, shared), same)
        parted += total.p < 0.05
        assert (total.p < 0.05) == (total.low > 0 or total.high < 0)
        apart = models(rng, shared, edge=0.1)
        total, alone = over_tasks(apart, same)
        covered += total.low <= 0.1 <= total.high
        naive += over_tasks(apart - np.array([0.05, -0.05])[:, None, None], other)[0].p < 0.05
        assert total.value == pytest.approx(np.mean([task.value for task in alone]))
    assert 0.03 <= parted / replicates <= 0.07
    assert 0.92 <= covered / replicates <= 0.98
    assert (naive / replicates > 0.2) == bool(shared)


def test_runs_of_one_task_move_it_alone() -> None:
    """The total's variance is the mean square of independent tasks' where they share nothing but the models."""
    rng = np.random.default_rng(0)
    tasks, alone = [], []
    for number in range(3):
        observations = Observations(*[np.arange(40) + 100 * number] * 2)
        parts = []
        for _ in range(2):
            runs = {f"m_run{run + 1}": rng.normal(0.5, 0.1, 40) + rng.normal(0, 0.1) for run in range(5)}
            parts.append([Part("runs", "m", runs, observations)])
        tasks.append(contrasts(number, *parts))
        alone.append(task_difference(tasks[-1], *parts))
    total = mean_difference(tasks, alone)
    assert total is not None
    widths = [each.high - each.low for each in alone]
    assert total.high - total.low == pytest.approx(np.linalg.norm(widths) / 3, rel=0.25)


def test_gains_of_few_queries_are_covered() -> None:
    """A stage that helps one query of eight and hurts none: so few differ that their spread alone says too little."""
    rng = np.random.default_rng(0)
    queries, gained, replicates = 40, 0.125, 300
    observations = Observations.apart(queries)
    covered = 0
    for _ in range(replicates):
        after = (rng.random(queries) < gained).astype(float)
        sides = ([Part("mean", "m", {"m": values}, observations)] for values in (after, np.zeros(queries)))
        gain = difference(*sides)
        assert (gain.p < 0.05) == (gain.low > 0 or gain.high < 0)
        covered += gain.low <= gained <= gain.high
    assert 0.93 <= covered / replicates <= 0.99  # 0.88 by Student's interval alone


def test_differences_that_cancel_out_on_every_item_are_none() -> None:
    """Queries that share a target, one better and one worse: they vary, and their targets do not."""
    observations = Observations(np.arange(8), np.arange(8) // 2)
    sides = (np.tile([1.0, 0.0], 4), np.tile([0.0, 1.0], 4))
    change = difference(*([Part("mean", "m", {"m": values}, observations)] for values in sides))
    assert (change.value, change.p) == (0, 1)
    assert change.low < 0 < change.high
