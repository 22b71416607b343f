"""What a provider would charge for a plan, estimated from the items themselves: nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from embark.engine.local import prepare
from embark.models.encoder import Bill, Billed, Encoder
from embark.planning import Need
from embark.types import EmbarkError, Modality

SAMPLE = 24  # items with media that are looked at, of each kind and demand; texts are all counted


def bills(encoder: Encoder, needs: Iterable[Need], demands: int) -> list[Bill]:
    """The bill for each demand, about; none for a model that runs here and charges nothing."""
    if not isinstance(encoder, Billed):
        return []
    groups: dict[tuple[int, tuple[Modality, ...]], list[Need]] = {}
    for need in needs:
        groups.setdefault((need.demand, need.item.modalities), []).append(need)
    out = [Bill(0.0, 0.0)] * demands
    for (demand, kinds), group in groups.items():
        few = group if kinds == ("text",) else group[:: max(1, len(group) // SAMPLE)][:SAMPLE]
        found: list[Bill] = []
        for need in few:
            with suppress(EmbarkError):  # the run will name it
                found.append(encoder.bill(prepare(encoder, need)))
        if found:
            out[demand] = total([out[demand], total(found, len(group) / len(found))])
    return out


def total(several: Sequence[Bill], times: float = 1.0) -> Bill:
    """Several bills as one, so many times over; without a sum where one of them has none."""
    dollars = [bill.dollars for bill in several if bill.dollars is not None]
    known = len(dollars) == len(several)
    return Bill(times * sum(bill.tokens for bill in several), times * sum(dollars) if known else None)
