"""Tasks with vectors that were made up, for tests of analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embark.run.embedded_task import Embedded, EmbeddedPart
from embark.tasks import TASKS
from embark.types import Array, Truth

ROWS = {
    "retrieval": "PocketNameToImage",
    "choice": "PocketClockReading",
    "zeroshot": "PocketSubgroupZeroShot",
    "sts": "PocketNameSTS",
    "pair-classification": "PocketNameSTS",
    "probe": "PocketGroupProbe",
    "clustering": "PocketGroupClustering",
    "robustness": "PocketRobustness",
}


def embedded(
    evaluator: str,
    truth: Truth | Sequence[Truth],
    vectors: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    **params: Any,
) -> Embedded:
    """A task of that kind, of one part or several."""
    row = TASKS[ROWS[evaluator]]
    truths = truth if isinstance(truth, Sequence) else [truth]
    sides = vectors if isinstance(vectors, Sequence) else [vectors]
    told = {**row.params, "metric": row.metric, "similarity": "cosine", **params}
    parts = []
    for at, (known, found) in enumerate(zip(truths, sides, strict=True)):
        ids = {side: [f"{side}-{number}" for number in range(len(each))] for side, each in found.items()}
        kinds = {side: "text" if side in ("query", "prompt") else "image" for side in found}
        parts.append(EmbeddedPart("test", f"part{at}", evaluator, known, found, told, ids, kinds))
    return Embedded("test/model", row, tuple(parts))


def gaussian(rows: int, dim: int, seed: int = 0) -> Array:
    """Normal numbers as float32."""
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
