"""A recording names every difference between two commits, and none where there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import embark
import recording
from embark.models import LOADERS
from embark.settings import load_settings
from recording import Fact, differences
from recording.parts import unrecorded

TASK = "PocketFlagZeroShot"


@pytest.fixture
def recorded(pocket_home: Path, elsewhere: Path) -> list[Fact]:
    """The facts of one task, whose vectors are stored already."""
    embark.evaluate("embark/random", TASK, show_progress=False)
    return facts_of(elsewhere)


def facts_of(root: Path) -> list[Fact]:
    return list(recording.facts("part", root / "results", root / "home" / "store"))


def test_a_recording_is_read_as_it_was_written(recorded: list[Fact], tmp_path: Path) -> None:
    recording.write(recorded, tmp_path / "recording.parquet")
    assert recording.read(tmp_path / "recording.parquet") == recorded
    names = [fact.name for fact in recorded]
    assert f"embark/random {TASK} test/default accuracy" in names
    assert f"embark/random {TASK} test/default embark.interval[1]" in names
    assert f"embark/random {TASK} test/default embark.protocol" in names
    vectors = len(embark.store.Store(load_settings().home / "store").space(space_of(recorded)).keys())
    assert sum(" vectors " in name and name.endswith(" length") for name in names) == vectors > 500


def space_of(recorded: list[Fact]) -> str:
    """The name of the space whose vectors the facts are of."""
    return next(fact.name.split(" vectors ")[1].split()[0] for fact in recorded if " vectors " in fact.name)


def test_scoring_again_makes_no_difference(recorded: list[Fact], elsewhere: Path) -> None:
    embark.evaluate("embark/random", TASK, rescore=True, show_progress=False)
    assert differences(recorded, facts_of(elsewhere)) == []


def test_a_changed_score_is_named(recorded: list[Fact], elsewhere: Path) -> None:
    [path] = (elsewhere / "results").glob(f"*/*/{TASK}.json")
    content = json.loads(path.read_text())
    content["scores"]["test"][0]["accuracy"] += 1e-5
    path.write_text(json.dumps(content))
    [line] = differences(recorded, facts_of(elsewhere))
    assert line.startswith(f"part: embark/random {TASK} test/default accuracy: 0.0114503817 before, 0.0114603817 now")


def test_vectors_that_changed_moved_or_are_gone_are_named(recorded: list[Fact]) -> None:
    first, second = [fact for fact in recorded if fact.name.endswith(" product")][:2]
    key = second.name.removesuffix(" product")
    others = [fact for fact in recorded if not fact.name.startswith(key)]
    assert first.number is not None
    moved = [replace(fact, number=fact.number + 0.01) if fact is first else fact for fact in others]  # type: ignore[operator]
    changed, missing = differences(recorded, moved)
    assert changed.startswith(f"part: {first.name}: ")
    assert missing == f"part: embark/random: 1 vector missing: {key.split()[-1][:16]}…"
    [new] = differences(others, recorded)
    assert "1 vector new" in new


def test_last_bits_are_no_difference() -> None:
    facts = [Fact("part", "model task test/default accuracy", 0.5), Fact("part", "model vectors space key length", 1.0)]
    assert differences(facts, [replace(facts[0], number=0.5 + 1e-9), replace(facts[1], number=1 + 1e-6)]) == []
    assert len(differences(facts, [replace(facts[0], number=0.5 + 1e-6), replace(facts[1], number=1 + 1e-3)])) == 2


def test_a_loader_that_no_test_of_models_runs_is_named() -> None:
    with_checkpoints = {name for name, loader in LOADERS.items() if loader.type != "api"}
    assert unrecorded(with_checkpoints) == []
    assert unrecorded(with_checkpoints - {"timm", "phi"}) == ["timm", "phi"]
