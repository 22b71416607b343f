"""NaN, infinite and zero vectors name the item and cost only the tasks that need it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.run import evaluate
from folders import two_tasks

Pictures = Callable[..., Path]
TABLE = "file,caption,label\nred.png,no page,red\ngreen.png,a green page,green\nblue.png,a blue page,blue\n"


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_an_invalid_vector_costs_only_the_tasks_that_need_it(
    tiny: embark.Encoder, pictures: Pictures, value: float
) -> None:
    forward = tiny.embed

    def embed(batch: Any) -> Any:
        vectors = np.array(forward(batch))
        vectors[[("text", "no page") in parts for parts in batch]] = value
        return vectors

    tiny.embed = embed  # type: ignore[method-assign]
    run = evaluate(tiny, two_tasks(pictures("Bad", TABLE)) + two_tasks(pictures("Good")), batch_size=2)
    assert [result.task for result in run.results] == ["BadZeroShot", "GoodRetrieval", "GoodZeroShot"]
    assert [(skip.task, skip.kind) for skip in run.skipped] == [("BadRetrieval", "failed")]
    assert "vectors for BadRetrieval query 'no page'" in run.skipped[0].why


def test_a_model_that_fails_on_an_item_costs_only_the_tasks_that_need_it(
    tiny: embark.Encoder, pictures: Pictures
) -> None:
    forward = tiny.embed

    def embed(batch: Any) -> Any:
        if any(("text", "no page") in parts for parts in batch):
            raise RuntimeError("a bug")
        return forward(batch)

    tiny.embed = embed  # type: ignore[method-assign]
    run = evaluate(tiny, two_tasks(pictures("Bad", TABLE)) + two_tasks(pictures("Good")), batch_size=2)
    assert [result.task for result in run.results] == ["BadZeroShot", "GoodRetrieval", "GoodZeroShot"]
    assert [(skip.task, skip.kind) for skip in run.skipped] == [("BadRetrieval", "failed")]
