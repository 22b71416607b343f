"""How long an item of each kind takes on this machine: the real pipeline over samples, for a bounded time.

Samples grow until they tell enough: prepared by workers, embedded in tuned batches and written to a store that is
thrown away. The first item of a kind pays for what is done once, so it does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from embark.engine.batching.batches import by_kind
from embark.engine.local import embed
from embark.models.encoder import Encoder
from embark.planning import Need
from embark.protocol import vector_space
from embark.store import Store
from embark.types import Modality

SAMPLE_SECONDS = 20.0
GROWTH = 4  # from one sample to the next
ENOUGH_SHARE = 0.25  # of a kind's share of the time: a sample that took as long tells enough


def calibrate(
    encoder: Encoder,
    needs: Sequence[Need],
    *,
    seconds: float = SAMPLE_SECONDS,
    workers: int = 2,
    folder: Path | None = None,
    advance: Callable[[int], None] = lambda kinds: None,
) -> dict[tuple[Modality, ...], float]:
    """Seconds for an item of each kind, measured in about `seconds` altogether; one item of each is always embedded.

    Vectors go to a temporary store in `folder` (default: where temporary files are). `advance` is called after each
    kind.
    """
    groups = by_kind(needs)
    end = time.perf_counter() + seconds
    rates = {}
    with TemporaryDirectory(prefix="embark-calibration-", dir=folder) as place:
        for number, (modalities, group) in enumerate(groups):
            share = max(0.0, end - time.perf_counter()) / (len(groups) - number)
            rates[modalities] = _seconds_per_item(encoder, group, Path(place, str(number)), share, workers)
            advance(1)
    return rates


def _seconds_per_item(encoder: Encoder, group: Sequence[Need], folder: Path, seconds: float, workers: int) -> float:
    """Seconds for an item of a kind, by the largest sample that `seconds` suffice for."""

    def timed(count: int, name: str) -> float:
        """The seconds for so many items, short and long ones as they come in the whole group."""
        step = len(group) // count
        sample = group[step // 2 :: step][:count]
        start = time.perf_counter()
        with Store(folder / name).space(vector_space(encoder.card)).writer() as writer:
            embed(encoder, sample, writer, workers=workers)
        return time.perf_counter() - start

    end = time.perf_counter() + seconds
    count = 1
    taken = timed(count, "first")
    while (left := end - time.perf_counter()) > 0:
        count = min(GROWTH * count, len(group))
        taken = timed(count, str(count))
        if count == len(group) or taken > ENOUGH_SHARE * seconds or GROWTH * taken > left - taken:
            break
    return taken / count
