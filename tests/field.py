"""Synthetic fields of models and tasks with known answers, for tests of analyses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embark.boards.matrix import Matrix
from embark.tasks import TASKS
from embark.types import Array, ModelCard, Task

ROW = next(iter(TASKS.values()))


def task(name: str, category: str = "one", **tags: str) -> Task:
    return replace(ROW, name=name, family="Test", category=category, tags=tags)


def field(values: Array, categories: Sequence[str] | None = None) -> Matrix:
    """Models m0, m1… × tasks t0, t1…"""
    models, tasks = values.shape
    groups = categories or ["one"] * tasks
    rows = tuple(task(f"t{at}", group, type=group) for at, group in enumerate(groups))
    return Matrix(tuple(f"m{at}" for at in range(models)), rows, np.asarray(values, float))


def two_stories(models: int = 30, each: int = 4, noise: float = 0.02, seed: int = 0) -> Array:
    """Tasks that follow one of two unrelated abilities: the first `each` columns one, the rest the other."""
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.2, 0.9, size=(models, 2))
    return np.repeat(skill, each, axis=1) + noise * rng.normal(size=(models, 2 * each))


def card(name: str, **facts: object) -> ModelCard:
    given: dict[str, object] = {"modalities": ("text", "image")} | facts
    return ModelCard(name=name, revision="1", loader="random", **given)  # type: ignore[arg-type]
