"""Device out of memory: batches are halved and that is recorded; an item that never fits costs only its tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

import embark
from embark.run import evaluate
from folders import two_tasks

Pictures = Callable[..., Path]


def limited(encoder: embark.Encoder, fits: Callable[[Any], bool]) -> None:
    """From now on the model runs out of memory where a batch does not fit."""
    forward = encoder.embed

    def embed(batch: Any) -> Any:
        if not fits(batch):
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return forward(batch)

    encoder.embed = embed  # type: ignore[method-assign]


def test_a_batch_that_does_not_fit_is_halved_and_recorded(tiny: embark.Encoder, pictures: Pictures) -> None:
    whole = evaluate(tiny, two_tasks(pictures()), settings=embark.load_settings(results="other", home="other-home"))
    limited(tiny, lambda batch: len(batch) <= 1)
    run = evaluate(tiny, whole.tasks)
    assert [result.score for result in run.results] == [result.score for result in whole.results]
    assert {record.loaded.get("batch size") for result in run.results for record in result.records} == {1}
    assert {record.loaded.get("batch size") for result in whole.results for record in result.records} == {None}


def test_an_item_that_never_fits_costs_only_the_tasks_that_need_it(tiny: embark.Encoder, pictures: Pictures) -> None:
    large, good = pictures("Large"), pictures("Good")
    Image.new("RGB", (64, 64), (255, 0, 0)).save(large / "red.png")
    limited(tiny, lambda batch: all(getattr(value, "width", 0) < 64 for parts in batch for _, value in parts))
    tasks = [replace(task, unreadable="skip") for task in two_tasks(large)] + two_tasks(good)
    run = evaluate(tiny, tasks)
    assert [result.task for result in run.results] == ["GoodRetrieval", "GoodZeroShot"]
    assert {skip.task for skip in run.skipped} == {"LargeRetrieval", "LargeZeroShot"}
    assert run.skipped[0].why.startswith("test/tiny has not enough memory for one item: LargeRetrieval document 'red.p")
