"""Estimates what a provider would charge for a plan, from the items alone: nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from embark.catalogue import group_values
from embark.engine.workers.preparing import prepare
from embark.models.encoder import Bill, Encoder
from embark.planning import Need
from embark.types import EmbarkError

SAMPLE = 24  # items with media that are prepared as a sample, for each kind and demand; of texts, all are


def bills(encoder: Encoder, needs: Iterable[Need], demands: int) -> list[Bill]:
    """An estimated bill for each demand; an empty list for a model that runs here and charges nothing."""
    bill = encoder.capabilities.bill
    if bill is None:
        return []
    out = [Bill(0.0, 0.0)] * demands
    for (demand, kinds), group in group_values(((need.demand, need.item.modalities), need) for need in needs).items():
        sample = group if kinds == ("text",) else group[:: max(1, len(group) // SAMPLE)][:SAMPLE]
        sample_bills: list[Bill] = []
        for need in sample:
            with suppress(EmbarkError):  # the run will report the item
                sample_bills.append(bill(prepare(encoder, need)))
        if sample_bills:
            out[demand] = total([out[demand], total(sample_bills, len(group) / len(sample_bills))])
    return out


def total(several: Sequence[Bill], times: float = 1.0) -> Bill:
    """The sum of several bills, times a factor; without dollars where one of them has none."""
    dollars = [bill.dollars for bill in several if bill.dollars is not None]
    return Bill(
        times * sum(bill.tokens for bill in several), times * sum(dollars) if len(dollars) == len(several) else None
    )
