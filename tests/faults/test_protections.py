"""The table of protections is complete and as the source is; a sample of it is tried."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults.protections import ACCEPTED, PROCESSES, PROTECTIONS, ROOT, UNPROTECTED, files_of_tests, run_without

LONG = ("test_fault_01", "test_fault_18", "test_fault_20_whatever")  # a kill, bombs, a loop without end


def test_every_protection_is_once_in_its_file() -> None:
    edits = {edit for removal in PROTECTIONS for edit in removal.edits}
    texts = {file: (ROOT / "src" / "embark" / file).read_text(encoding="utf-8") for file, _, _ in edits}
    moved = [edit for edit in edits if texts[edit.file].count(edit.text) != 1 or edit.text == edit.without]
    assert moved == [], "you changed a protection: change its row, and run python tests/faults/protections.py"


def test_every_test_of_a_fault_has_its_protection() -> None:
    held = {removal.test.partition("[")[0] for removal in PROTECTIONS}
    assert not held & set(UNPROTECTED)
    assert held | set(UNPROTECTED) == set(files_of_tests())


@pytest.mark.slow
def test_a_sample_of_tests_fails_without_protections() -> None:
    """Six of them; `python tests/faults/protections.py` tries all of them."""
    quick = [removal for removal in PROTECTIONS if not removal.test.startswith(LONG)]
    sample = random.Random(0).sample(quick, 6)
    with ThreadPoolExecutor(PROCESSES) as pool:
        outcomes = dict(zip(sample, pool.map(run_without, sample), strict=True))
    assert {removal: outcome for removal, outcome in outcomes.items() if outcome.verdict not in ACCEPTED} == {}
