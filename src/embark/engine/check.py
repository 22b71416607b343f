"""What an encoder returned, checked before it is kept: right number of rows, one dimension, finite, not zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embark.planning import Need
from embark.types import Array, EmbarkError, ModelCard

SHOWN = 5


class Unsound(EmbarkError):
    """Some vectors of a batch cannot be kept; `rows` are their positions."""

    def __init__(self, said: str, rows: Sequence[int]) -> None:
        super().__init__(said)
        self.rows = rows


def checked(vectors: Any, card: ModelCard, needs: Sequence[Need], name: Callable[[Need], str]) -> Array | list[Array]:
    """The vectors in the card's stored precision, or an error that says what is wrong and names the items."""
    if not hasattr(vectors, "__len__"):
        raise EmbarkError(f"{card.name} returned a {type(vectors).__name__} from `embed`; expected one row an item.")
    if len(vectors) != len(needs):
        raise EmbarkError(
            f"{card.name} returned {len(vectors)} rows for a batch of {len(needs)} items. "
            "`embed` must return one row an item, in their order."
        )
    try:
        matrices = [np.asarray(v) for v in vectors] if _ragged(vectors) else [np.asarray(vectors)]
    except ValueError:
        raise EmbarkError(f"{card.name} returned rows of unequal length; a batch must have one dimension.") from None
    except (TypeError, RuntimeError) as error:  # a tensor on a device, with a gradient, or of a type of its own
        raise EmbarkError(f"{card.name} returned a {type(vectors).__name__} that is no array: {error}") from error
    if odd := [m.dtype for m in matrices if not np.can_cast(m.dtype, np.float64, "same_kind")]:
        raise EmbarkError(f"{card.name} returned {odd[0]} values; expected numbers.")
    if any(m.ndim != 2 for m in matrices):
        raise EmbarkError(f"{card.name} returned an array of shape {matrices[0].shape}; expected (items, dimension).")
    dims = {m.shape[1] for m in matrices}
    if len(dims) > 1 or (card.dim is not None and dims != {card.dim}):
        said = f"its card says {card.dim}" if card.dim is not None else "one batch must have one dimension"
        raise EmbarkError(f"{card.name} returned vectors of dimension {sorted(dims)}; {said}.")
    with np.errstate(over="ignore"):
        kept = [m.astype(card.stored) for m in matrices]
    axis = None if _ragged(vectors) else 1

    def refuse(what: str, arrays: list[Array], sound: Callable[..., Array]) -> None:
        good = np.array([sound(a, axis) for a in arrays]).ravel()
        if len(guilty := np.flatnonzero(~good)):
            named = ", ".join(name(needs[row]) for row in guilty[:SHOWN])
            more = f" and {len(guilty) - SHOWN} more" if len(guilty) > SHOWN else ""
            raise Unsound(f"{card.name} returned {what} for {named}{more}.", guilty.tolist())

    refuse("NaN or infinite vectors", matrices, lambda a, axis: np.isfinite(a).all(axis=axis))
    if card.kind != "embedder":  # scores may be zero, and texts are bytes
        return kept if _ragged(vectors) else kept[0]
    refuse("zero vectors", matrices, lambda a, axis: a.any(axis=axis))
    tiny = 256 * np.finfo(card.stored).smallest_subnormal  # the largest number has fewer than eight bits below this
    beyond = f"vectors beyond the range of {card.stored} (set stored='float32' on its card)"
    refuse(beyond, kept, lambda a, axis: np.isfinite(a).all(axis=axis) & (np.abs(a).max(axis=axis) >= tiny))
    return kept if _ragged(vectors) else kept[0]


def _ragged(vectors: Any) -> bool:
    return isinstance(vectors, (list, tuple)) and len(vectors) > 0 and np.ndim(vectors[0]) == 2
