"""The score of a model that knows nothing: every item gets a random direction, and the measure is computed as ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embark.evaluators import evaluate
from embark.types import Array, Truth

DIM = 256
DRAWS = 5


def chance(
    kind: str, truth: Truth, contents: Mapping[str, Array], params: Mapping[str, Any], draws: int = DRAWS
) -> float:
    """The mean score of random vectors; `contents` has a number for each item of a side, and equal items are equal
    vectors.
    """
    scores = []
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        count = 1 + max(int(numbers.max(initial=0)) for numbers in contents.values())
        pool = rng.normal(size=(count, DIM)).astype(np.float32)
        pool /= np.linalg.norm(pool, axis=1, keepdims=True)
        vectors = {side: pool[numbers] for side, numbers in contents.items()}
        scores.append(evaluate(kind, truth, vectors, params).value)
    return float(np.mean(scores))
