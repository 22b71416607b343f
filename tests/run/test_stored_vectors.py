"""Stored vectors are found again, scored alike, and never made unless that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import embark
from embark.run.stored_vectors import NotStored, Stored
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import EmbarkError
from folders import two_tasks

Pictures = Callable[..., Path]
KINDS = (
    "PocketFlagZeroShot", "PocketClockReading", "PocketClockArithmetic", "PocketHairPairs", "PocketNameSTS",
    "PocketSpokenLanguageProbe",
)  # fmt: skip


def test_a_run_s_scores_again(pocket_home: Path) -> None:
    rows = [TASKS[name] for name in KINDS]
    run = embark.evaluate("embark/random", rows, show_progress=False)
    stored = Stored("embark/random", load_settings())
    for row, result in zip(rows, run.results, strict=True):
        found = stored.task(row)
        assert np.mean([part.scores().value for part in found.parts]) == result.score
        assert found.model == "embark/random"
        assert {side: len(each) for side, each in found.parts[0].vectors.items()} == {
            side: len(ids) for side, ids in found.parts[0].ids.items()
        }


def test_modalities_of_sides(tiny: embark.Encoder, pictures: Pictures) -> None:
    rows = two_tasks(pictures())
    embark.evaluate(tiny, rows, show_progress=False)
    row = next(row for row in rows if row.evaluator == "zeroshot")
    found = Stored(tiny, load_settings()).task(row)
    assert found.parts[0].modalities == {"item": "image", "prompt": "text"}
    assert (found.dim, found.itemsize, found.tokens) == (3, 4, 1.0)


def test_what_is_missing_is_named_with_the_command(tiny: embark.Encoder, pictures: Pictures) -> None:
    row = next(row for row in two_tasks(pictures()) if row.evaluator == "zeroshot")
    stored = Stored(tiny, load_settings())
    with pytest.raises(NotStored, match=rf"6 of the 6 vectors .* embark run -m test/tiny -t {row.name}"):
        stored.task(row)
    with pytest.raises(NotStored, match="add --embed"):
        stored.task(row, "add --embed")
    assert not list(load_settings().store.glob("*/*"))


def test_embedding_on_demand_is_kept(tiny: embark.Encoder, pictures: Pictures) -> None:
    row = next(row for row in two_tasks(pictures()) if row.evaluator == "zeroshot")
    made = Stored(tiny, load_settings(), embedding=True, show_progress=False).task(row)
    again = Stored(tiny, load_settings()).task(row)
    assert made.parts[0].scores().metrics == again.parts[0].scores().metrics


def test_rows_that_differ_in_templates_are_read_apart(tiny: embark.Encoder, pictures: Pictures) -> None:
    row = next(row for row in two_tasks(pictures()) if row.evaluator == "zeroshot")
    stored = Stored(tiny, load_settings(), embedding=True, show_progress=False)
    one, two = stored.task(row), stored.task(replace(row, templates=(*row.templates, "{}")))
    assert [len(each.parts[0].vectors["prompt"]) for each in (one, two)] == [3, 6]


def test_items_that_do_not_decode_are_left_out_as_the_row_says(tiny: embark.Encoder, pictures: Pictures) -> None:
    folder = pictures()
    (folder / "blue.png").write_bytes(b"no picture")
    row = next(row for row in two_tasks(folder) if row.evaluator == "zeroshot")
    row = replace(row, unreadable="skip")
    run = embark.evaluate(tiny, [row], show_progress=False)
    found = Stored(tiny, load_settings()).task(row)
    assert found.parts[0].scores().value == run.results[0].score
    assert len(found.parts[0].vectors["item"]) == 2
    assert any("left out 1 unreadable item" in note for note in found.notes)


def test_a_task_that_the_model_cannot_do(reader_of_colours: embark.Encoder) -> None:
    with pytest.raises(EmbarkError, match="cannot do PocketNameToImage: the model takes no image"):
        Stored(reader_of_colours, load_settings()).task(TASKS["PocketNameToImage"])
