"""A short soak: small runs on one home, killed and damaged at random, score as in a clean home and lose nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.slow
def test_a_short_soak_finds_nothing_wrong(tmp_path: Path) -> None:
    words = [sys.executable, str(SOAK), "--seconds", "20", "--folder", str(tmp_path), "--json"]
    process = subprocess.run(words, capture_output=True, text=True, timeout=300)
    counted = json.loads(process.stdout)
    assert process.returncode == 0, counted["problems"]
    assert not counted["problems"]
    assert min(counted[name] for name in ("kills that struck", "damaged files", "scores compared")) > 0
