"""Whether a score reproduces a published one: how far it may be from it, and when it is further than that.

A published score has no interval; where it was computed on the same items as ours, the sampling of items is no excuse.
What may part two true reproductions is

- rounding: half of the last digit that the table prints, and never less than EXACT; and one item, whatever it is worth;
- numerics: another machine, precision or library changes the outcomes of a few items, as if REDRAWN of them had been
  drawn again. That moves a score by √(2 · REDRAWN) of its standard error over items;
- runs: probes and clusterings are means over random runs, ours over as many as there are, the published over as many
  or, of a clustering, over one;
- sampling, where ours is of n out of N items: √(1 − n/N) of its standard error.

The first is a bound, the others are added as variances. Over many tasks, Holm's correction keeps the chance of a false
"differs" among true reproductions at 5 % in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np

from embark.stats.intervals import quantile, two_sided
from embark.types import Array

EXACT = 0.0005  # half of the last digit of percent with one decimal
REDRAWN = 0.01  # share of the items whose outcomes another machine may draw again


@dataclass(frozen=True)
class Tolerance:
    """How far a reproduction may be from the published score: by rounding and one item (`bound`), and by chance."""

    bound: float
    error: float
    freedom: float = inf

    @property
    def allowed(self) -> float:
        """The largest difference, either way, of 95 % of reproductions."""
        return self.bound + (quantile(self.freedom) * self.error if self.error else 0.0)

    def p_value(self, difference: float) -> float:
        """How often a reproduction would be as far from the published score, at most."""
        beyond = abs(difference) - self.bound
        if beyond <= 0:
            return 1.0
        return two_sided(beyond / self.error, self.freedom) if self.error else 0.0


def tolerance(
    error: float,
    items: int,
    *,
    rounding: float = 0.0,
    sampled: float = 1.0,
    runs: Array | None = None,
    published_runs: int = 1,
) -> Tolerance:
    """The tolerance of a score with a standard error over so many items (0: not known).

    `sampled` is the share of the items that ours is of; `runs` are the scores of our runs, where there are several.
    """
    of_items = error**2 * (1 - sampled + 2 * REDRAWN)
    of_runs = 0.0
    freedom = inf
    if runs is not None and len(runs) > 1:
        of_runs = float(np.var(runs, ddof=1)) * (1 / len(runs) + 1 / published_runs)
    if of_runs:  # Satterthwaite: as if the sum of variances were one
        freedom = (of_items + of_runs) ** 2 / (of_runs**2 / (len(runs) - 1))  # type: ignore[arg-type]
    return Tolerance(max(rounding, EXACT) + (1 / items if items else 0.0), sqrt(of_items + of_runs), freedom)


def standard_error(value: float, interval: tuple[float, float], published: float) -> float:
    """The standard error on the published score's side of ours, from our 95 % interval; NaN where there is none."""
    low, high = interval
    arm = value - low if published < value else high - value
    return max(arm, 0.0) / quantile(inf) if isfinite(arm) else float("nan")


def assumed_error(value: float, items: int, correlation: bool = False) -> float:
    """The standard error of a score without outcomes: the largest that so many items from 0 to 1 can have."""
    if correlation:
        return (1 - value**2) / sqrt(max(items - 3, 1))
    return sqrt(max(value * (1 - value), 0.0) / max(items, 1))


def mean_tolerance(tolerances: list[Tolerance]) -> Tolerance:
    """The tolerance of the mean difference over tasks, however much they move together."""
    count = len(tolerances)
    return Tolerance(sum(t.bound for t in tolerances) / count, sum(t.error for t in tolerances) / count)
