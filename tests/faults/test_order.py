"""Wrong rows, dimension or dtype are errors; a shuffled order is found by a self-check at the start of each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.engine.batching import self_check
from embark.models.encoder import Bill, Capabilities
from embark.run import NothingScored, evaluate
from embark.settings import load_settings
from folders import two_tasks

Pictures = Callable[..., Path]


def spoilt(encoder: embark.Encoder, change: Callable[[Any, Any], Any]) -> list[int]:
    """The sizes of the batches of a model whose vectors are changed from now on."""
    forward, batches = encoder.embed, list[int]()

    def embed(batch: Any) -> Any:
        batches.append(len(batch))
        return change(np.asarray(forward(batch)), batch)

    encoder.embed = embed  # type: ignore[method-assign]
    return batches


def by_length(vectors: Any, batch: Any) -> Any:
    """Sorted by length of the text, as models do for speed, and never put back."""
    order = np.argsort([len(str(parts[0][1])) for parts in batch], kind="stable")
    return vectors[order]


SHUFFLES: dict[str, Callable[[Any, Any], Any]] = {
    "reversed": lambda vectors, batch: vectors[::-1],
    "rotated": lambda vectors, batch: np.roll(vectors, 1, axis=0),
    "shortest first": by_length,
    "longest first": lambda vectors, batch: vectors[
        np.argsort([-len(str(parts[0][1])) for parts in batch], kind="stable")
    ],
    "only pictures": lambda vectors, batch: vectors[::-1] if batch[0][0][0] == "image" else vectors,
}
TABLE = "file,caption,label\nred.png,a red,red\ngreen.png,a page that is green,green\nblue.png,so blue a page,blue\n"


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_shuffled_order_stops_the_model(tiny: embark.Encoder, pictures: Pictures, shuffle: str) -> None:
    sound = replace(tiny, card=replace(tiny.card, name="test/sound"))  # type: ignore[type-var]
    spoilt(tiny, SHUFFLES[shuffle])
    run = evaluate([tiny, sound], two_tasks(pictures("Pages", TABLE)))
    assert {result.model for result in run.results} == {"test/sound"}
    [why] = {skip.why for skip in run.skipped}
    assert why == (
        "test/tiny is not evaluated: a batch returns rows in another order than its items, so items would "
        "get each other's vectors. Examine it: embark doctor test/tiny"
    )


def test_vectors_that_depend_on_their_batch_are_recorded(tiny: embark.Encoder, pictures: Pictures) -> None:
    spoilt(tiny, lambda vectors, batch: vectors + 0.02 * len(batch) * np.array([[0.1, 0, 0]]))
    run = evaluate(tiny, two_tasks(pictures()))
    assert len(run.results) == 2
    assert any("vectors depend on their batch" in warning for warning in run.results[0].warnings)


def test_the_self_check_is_cheap_and_its_vectors_are_stored(tiny: embark.Encoder, pictures: Pictures) -> None:
    batches = spoilt(tiny, lambda vectors, batch: vectors)
    run = evaluate(tiny, two_tasks(pictures()))
    assert sum(batches) - run.embedded <= 2 * self_check.CHECKED  # of texts, of pictures
    assert not run.results[0].warnings
    assert evaluate(tiny, run.tasks, rescore=True).embedded == 0


def test_a_model_that_costs_money_is_not_asked_twice(tiny: embark.Encoder, pictures: Pictures) -> None:
    batches = spoilt(tiny, lambda vectors, batch: vectors)
    tiny.capabilities = Capabilities(bill=lambda prepared: Bill(1.0, None))
    run = evaluate(tiny, two_tasks(pictures()))
    assert sum(batches) == run.embedded == 9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda vectors, batch: vectors[:-1], "rows for a batch of"),
        (lambda vectors, batch: vectors[:, :2], "vectors of dimension"),
        (lambda vectors, batch: vectors.astype(str), "expected numbers"),
    ],
)
def test_wrong_rows_dimension_and_dtype_are_errors(
    tiny: embark.Encoder, pictures: Pictures, change: Any, words: str
) -> None:
    tiny.card = replace(tiny.card, dim=3)
    spoilt(tiny, change)
    with pytest.raises(NothingScored, match=words):
        evaluate(tiny, two_tasks(pictures()))
    assert not list(load_settings().results.glob("*/*/*.json"))
