"""Whether an item has the same vector alone and in a batch: rows in another order give each item another's vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embark.engine.batching.check import check_vectors, has_tokens
from embark.engine.batching.forward import out_of_memory
from embark.models.device import free_device_memory
from embark.models.encoder import Encoder
from embark.planning import Need
from embark.types import Array, EmbarkError, ModelCard

CHECKED = 4  # items of each kind
TOLERANCE = {"float32": 1e-4, "float16": 5e-3, "bfloat16": 2e-2}  # of the distance between two unit vectors
GROSS = 0.3  # a distance beyond what padding and low precision explain: a cosine of 0.955


class Inconsistent(EmbarkError):
    """A model whose vectors cannot be trusted: none of its tasks is scored."""


def checked_places(items: int, most: int | None) -> list[int]:
    """The places of the items to check among so many, ordered by length; at most `most` (default: `CHECKED`)."""
    count = min(CHECKED, most or CHECKED)
    spread = sorted({place * (items - 1) // max(1, count - 1) for place in range(count)})
    return spread[1::2] + spread[::2]  # neither the shortest nor the longest first: models sort by length


def embed_twice(
    encoder: Encoder, needs: Sequence[Need], values: Sequence[Any], name: Callable[[Need], str]
) -> tuple[Array | list[Array], str] | None:
    """The vectors of prepared items, embedded alone and together, and a warning where these differ slightly.

    None where either fails: that is left to the run itself, where it is named.
    """
    if len(values) < 2:
        return None
    try:
        together = encoder.embed(list(values))
        stored = check_vectors(together, encoder.card, needs, name)
        alone = [encoder.embed([value])[0] for value in values]
        check_vectors(alone, encoder.card, needs, name)
    except Exception as error:
        if out_of_memory(error):
            free_device_memory()
        return None
    return stored, batch_warning(encoder.card, alone, together)


def batch_warning(card: ModelCard, alone: Any, together: Any) -> str:
    """What differs slightly between the same items' vectors alone and in one batch; empty where nothing does.

    Another order of rows, or vectors that are far apart, are an error.
    """
    own_rows = pooled(alone)
    batch_rows = pooled(together)
    worst = float(apart(card, own_rows, batch_rows).max())
    if worst <= limit(card):
        return ""
    if reordered(card, own_rows, batch_rows):
        difference = "a batch returns rows in another order than its items, so items would get each other's vectors"
    elif worst > GROSS:
        difference = f"an item has another vector in a batch than alone ({worst:.2g} apart, of 2 at most)"
    else:
        return f"vectors depend on their batch (up to {worst:.2g} apart): see `embark doctor {card.name}`"
    raise Inconsistent(f"{card.name} is not evaluated: {difference}. Examine it: embark doctor {card.name}")


def pooled(vectors: Any) -> Array:
    """One row an item; of late interaction, the mean of its tokens."""
    if has_tokens(vectors):
        vectors = [np.asarray(tokens, np.float64).mean(axis=0) for tokens in vectors]
    return np.asarray(vectors, np.float64)


def limit(card: ModelCard) -> float:
    """How far apart two vectors of the same item may be in the card's precision."""
    return TOLERANCE.get(card.dtype, TOLERANCE["float32"])


def apart(card: ModelCard, a: Array, b: Array) -> Array:
    """The distance of the rows' directions or, where similarity depends on lengths, of their lengths if larger."""
    direction = np.linalg.norm(unit_rows(a) - unit_rows(b), axis=1)
    if card.similarity == "cosine":
        return np.asarray(direction)
    lengths = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)
    length = np.abs(lengths[0] - lengths[1]) / np.maximum(np.maximum(*lengths), 1e-30)
    return np.asarray(np.maximum(direction, length))


def reordered(card: ModelCard, alone: Array, together: Array) -> bool:
    """Whether items have a vector far from their own, and another row of the batch has it."""
    distance = np.linalg.norm(unit_rows(alone)[:, None] - unit_rows(together)[None], axis=2)
    own = distance.diagonal()
    return bool(((own > limit(card)) & (distance.min(axis=1) <= own / 4)).any())


def unit_rows(rows: Array) -> Array:
    """Rows scaled to length one."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30))
