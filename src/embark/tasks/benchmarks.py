"""The benchmarks of all families: each is a frozen list of tasks, which a row that is added to a family does not join."""

from __future__ import annotations

import json
from pathlib import Path

from embark.types import Benchmark


def read_benchmarks() -> tuple[Benchmark, ...]:
    """The benchmarks of benchmarks.json, in their order."""
    rows = json.loads(Path(__file__).with_name("benchmarks.json").read_text(encoding="utf-8"))
    return tuple(Benchmark(**{**row, "tasks": tuple(row["tasks"])}) for row in rows)
