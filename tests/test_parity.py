"""The evaluators give the scores of mteb, and of MMEB's code, on the same embeddings."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.metrics import classification

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "samples" / "parity"
SCRIPT = ROOT / "benchmarks" / "parity.py"


@pytest.fixture(scope="module")
def parity() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parity", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", sorted(path.parent.name for path in CASES.glob("*/expected.json")))
def test_every_case_agrees(parity: ModuleType, case: str) -> None:
    found = parity.check(CASES / case)
    assert found.good, f"{found.worst} is off by {found.difference:.1e}"
    assert not found.missing


def test_a_folder_without_cases_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has no cases" in done.stderr


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_classification_agrees_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    label, predicted = np.array(pairs).T
    found = classification(label, predicted, 9)
    assert found["accuracy"] == pytest.approx(accuracy_score(label, predicted))
    for average, ending in (("macro", ""), ("weighted", "_weighted")):
        oracle = precision_recall_fscore_support(label, predicted, average=average, zero_division=0)
        for name, value in zip(("precision", "recall", "f1"), oracle, strict=False):
            assert found[f"{name}{ending}"] == pytest.approx(value, abs=1e-12), name
