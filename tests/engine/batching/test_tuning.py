"""Batch sizes that are remembered: from call to call, and in a file from run to run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embark import items
from embark.engine.batching.batches import FIRST_BATCH, BatchSize
from embark.engine.batching.tuning import MOST_ENTRIES, Tuning, device_name
from embark.store import Store
from lengths import CARD, Lengths, needs, picture, run


def fixed_length(count: int) -> list[Any]:
    return [items.text(f"{n:06} x") for n in range(count)]


def tuned(path: Path | None, budget: int = 800, limit: int | None = None) -> Tuning:
    tuning = Tuning(path)
    size = tuning.size(CARD, ("text",))
    size.budget = size.fastest = budget
    size.limit = limit
    size.unit = 8
    tuning.save()
    return tuning


def test_the_next_call_begins_with_the_size_that_the_last_one_found(store: Store) -> None:
    encoder, tuning = Lengths(), Tuning()
    run(store, encoder, needs(encoder, fixed_length(2000)), tuning=tuning)
    largest = max(encoder.batches)
    assert encoder.batches[0] == FIRST_BATCH < largest
    encoder.batches.clear()
    run(store, encoder, needs(encoder, fixed_length(2000)), tuning=tuning)
    assert encoder.batches[0] >= largest


def test_the_next_run_begins_with_the_size_that_the_last_one_found(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "home" / "batches.json"
    encoder = Lengths()
    run(store, encoder, needs(encoder, fixed_length(2000)), tuning=Tuning(path))
    [name] = json.loads(path.read_text())
    assert name.endswith(" text")
    encoder.batches.clear()
    pictures = [picture((n, 2, 3)) for n in range(40)]
    run(store, encoder, needs(encoder, [*fixed_length(2000), *pictures]), tuning=Tuning(path))
    assert max(encoder.batches[:3]) > FIRST_BATCH
    assert len(json.loads(path.read_text())) == 2  # pictures have a size of their own


def test_a_remembered_size_may_grow_and_its_first_batch_is_no_measure(tmp_path: Path) -> None:
    path = tmp_path / "batches.json"
    tuned(path)
    size = Tuning(path).size(CARD, ("text",))
    assert (size.now, size.growing) == (100, True)
    size.record_time(800, 100.0)  # libraries wake up
    assert (size.now, size.best) == (100, 0.0)
    size.record_time(800, 1.0)
    assert size.now == 200


def test_a_limit_of_memory_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "batches.json"
    tuned(path, limit=800)
    size = Tuning(path).size(CARD, ("text",))
    assert (size.now, size.limit, size.growing) == (100, 800, False)


def test_sizes_belong_to_a_model_a_device_and_a_kind(tmp_path: Path) -> None:
    path = tmp_path / "batches.json"
    tuned(path)
    other = Tuning(path)
    assert other.size(replace(CARD, revision="2"), ("text",)) == BatchSize()
    assert other.size(CARD, ("image",)) == BatchSize()
    assert other.size(replace(CARD, loaded={"device": "mps"}), ("text",)) == BatchSize()
    assert other.size(replace(CARD, loaded={"device": "cpu", "compile": True}), ("text",)) == BatchSize()
    assert other.size(CARD, ("text",)).budget == 800
    assert other.size(CARD, ("text",)) is other.size(CARD, ("text",))


def test_a_device_has_a_name_without_cuda() -> None:
    assert device_name(CARD).startswith("cpu of ")
    assert device_name(replace(CARD, loaded={"device": "mps", "compile": True})).endswith(" compiled")


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"[1, 2]", b"null", b"\xff\xfe", b'{"KEY": 7}', b'{"KEY": {"budget": "x"}}',
                b'{"KEY": {"budget": -5}}', b'{"KEY": {"budget": 1e400}}', b'{"KEY": {"unit": 3}}',
                b'{"KEY": {"budget": true}}', b"[" * 100_000]
)  # fmt: skip
def test_a_damaged_file_is_no_file(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "batches.json"
    tuned(path)
    [name] = json.loads(path.read_text())
    path.write_bytes(damaged.replace(b"KEY", name.encode()))
    assert Tuning(path).size(CARD, ("text",)) == BatchSize()
    tuned(path)  # and it can be written again
    assert Tuning(path).size(CARD, ("text",)).budget == 800


def test_what_others_wrote_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "batches.json"
    mine = Tuning(path)
    size = mine.size(CARD, ("text",))
    others = Tuning(path)
    theirs = others.size(CARD, ("image",))
    size.budget = size.fastest = 5
    theirs.budget = theirs.fastest = 7
    others.save()
    mine.save()
    assert sorted(entry["budget"] for entry in json.loads(path.read_text()).values()) == [5, 7]


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "batches.json"
    path.write_text(json.dumps({f"model {n}": {"budget": 1, "unit": 1} for n in range(MOST_ENTRIES + 5)}))
    tuned(path)
    names = list(json.loads(path.read_text()))
    assert len(names) == MOST_ENTRIES
    assert names[0] == "model 6"


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_memory(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    tuned(tmp_path / "home" / "batches.json")


def test_a_size_that_is_stated_is_not_tuned(store: Store, tmp_path: Path) -> None:
    encoder, path = Lengths(), tmp_path / "batches.json"
    run(store, encoder, needs(encoder, fixed_length(200)), tuning=Tuning(path), batch_size=7)
    assert set(encoder.batches) == {7, 200 % 7}
    assert not path.exists()


def test_a_size_below_its_limit_grows_in_the_next_run(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from device_pictures import jpeg, means
    from embark.models.encoder import cuda_pixels

    path = tmp_path / "batches.json"
    encoder = cuda_pixels(means())  # whose batches have a limit from the start
    pictures = [items.media("image", jpeg(at).data) for at in range(40)]
    run(store, encoder, needs(encoder, pictures), tuning=Tuning(path))
    size = Tuning(path).size(encoder.card, ("image",))
    assert size.limit is not None
    assert size.budget < size.limit
    assert size.growing
