"""Cells of tables: words, numbers, scores with intervals. Numbers are rounded here and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from embark.tables.names import short

RANKED_SHARE = 0.9  # share of its tasks that a mean needs scores on to be compared with other means
LOPSIDED = 0.1  # share of its mean length by which an arm of an interval may be longer, before both ends are shown


@dataclass(frozen=True)
class Score:
    """A value with its 95 % interval, over `of` tasks when `count` of them have a score and `zeros` count as zero.

    `marks` are footnotes; `over` names the tasks that a mean is over, and is empty for the score of a single task.
    """

    value: float
    low: float
    high: float
    count: int = 1
    of: int = 1
    marks: tuple[str, ...] = ()
    zeros: int = 0
    over: frozenset[str] = frozenset()

    @property
    def partial(self) -> bool:
        """Whether some of the tasks it should cover have no score."""
        return self.count + self.zeros < self.of

    @property
    def covered(self) -> str:
        """How many of the tasks it is over, such as 41/53."""
        return f"{self.count + self.zeros}/{self.of}"

    @property
    def comparable(self) -> bool:
        """Whether it covers enough known tasks to be compared with means over the same ones."""
        return not self.partial or (bool(self.over) and self.count + self.zeros >= RANKED_SHARE * self.of)


@dataclass(frozen=True)
class Exact:
    """A name or number in full, and as people read it in a table: machines get `value`."""

    value: str | float | None
    text: str


@dataclass(frozen=True)
class Interval:
    """The ends of an interval, and the text that people read."""

    low: float
    high: float
    text: str


Cell = str | float | Score | Exact | Interval | None  # words, plain numbers, scores


def comparable(scores: Sequence[Score | None]) -> list[bool]:
    """Which of these scores may be ranked, shaded and set in bold together: those over the same tasks.

    Of several sets of tasks the one counts that most of the scores are over; of two such sets, the larger one. A mean
    over less than 90 % of its tasks is compared with nothing.
    """
    sets = Counter(score.over for score in scores if score is not None and score.comparable)
    chosen = max(sets, key=lambda over: (sets[over], len(over), sorted(over)), default=None)
    return [score is not None and score.comparable and score.over == chosen for score in scores]


def highest(cells: Sequence[Cell]) -> list[bool]:
    """Which cells are the highest of the scores that may be compared; none where it is the only one."""
    scores = [cell if isinstance(cell, Score) else None for cell in cells]
    rivals = comparable(scores)
    values = [score.value for score, rival in zip(scores, rivals, strict=True) if score is not None and rival]
    top = max(values) if len(values) > 1 else None
    return [rival and score is not None and score.value == top for score, rival in zip(scores, rivals, strict=True)]


def rounded(number: float, digits: int = 1, sign: bool = False) -> str:
    """A number of points as people read it, with its sign if wanted; never -0.0.

    Scores and differences are rounded here and nowhere else, once, from the full value.
    """
    return f"{round(number, digits) + 0.0:{'+' if sign else ''}.{digits}f}"  # adding zero: no -0.0


def in_points(value: float, digits: int = 1) -> str:
    """A score from 0 to 1, or an end of its interval, as text in points."""
    return rounded(100 * value, digits)


def points(value: float | None, digits: int = 1) -> Exact | None:
    """A score from 0 to 1 in points; None where it is not known."""
    return None if value is None else Exact(value, in_points(value, digits))


def signed_points(value: float, digits: int = 1) -> Exact:
    """A difference of such scores in points, with its sign."""
    return Exact(value, rounded(100 * value, digits, sign=True))


def signed_ends(low: float, high: float) -> Interval:
    """The ends of a difference's interval, in points."""
    return Interval(low, high, f"[{signed_points(low).text}, {signed_points(high).text}]")


def p_value(value: float | None) -> Exact | None:
    """A p-value with as many digits as tell something; None where there is none."""
    if value is None:
        return None
    return Exact(value, "<0.0001" if value < 5e-5 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}")


def named(name: str, most: int) -> Exact:
    """A model's or task's name, shortened where the table is text."""
    return Exact(name, short(name, most))


def shown(cell: Cell, between: str = " ± ", marks: bool = True, full: bool = False) -> str:
    """A cell as people read it: percent, and the interval as half its width or, where it is lopsided, by its ends.

    Names are short, unless in `full`.
    """
    if isinstance(cell, Exact):
        return cell.value if full and isinstance(cell.value, str) else cell.text
    if isinstance(cell, Interval):
        return cell.text
    if isinstance(cell, (int, float)):
        return (f"{cell:,}" if isinstance(cell, int) else f"{cell:.3f}") if isfinite(cell) else "–"
    if not isinstance(cell, Score):
        return cell if cell is not None else "–"
    return f"{in_points(cell.value)}{_ends(cell, between)}{signs(cell) if marks else ''}"


def _ends(cell: Score, between: str) -> str:
    """Half the width of the interval, or both of its ends where it is lopsided by more than a tenth."""
    below, above = 100 * (cell.value - cell.low), 100 * (cell.high - cell.value)
    if not isfinite(above + below):
        return ""
    if abs(above - below) > max(LOPSIDED * (above + below) / 2, 0.1):  # less than a tenth of a point is not seen
        return f" [{in_points(cell.low)}, {in_points(cell.high)}]"
    return f"{between}{rounded((above + below) / 2)}"


def raw(cell: Cell) -> str | float | Score | Interval | None:
    """A cell as machines read it; what is no number is None."""
    value = cell.value if isinstance(cell, Exact) else cell
    return None if isinstance(value, float) and not isfinite(value) else value


def values(cell: Cell, ends: tuple[str, ...]) -> list[str | float | None]:
    """The plain values of a cell, one for each column that it takes in a flat table."""
    if isinstance(cell, Score | Interval):
        numbers = (cell.value, cell.low, cell.high) if isinstance(cell, Score) else (cell.low, cell.high)
        return [number if isfinite(number) else None for number in numbers]
    value: Any = raw(cell)
    return [value, None, None][: len(ends)]


def signs(cell: Score) -> str:
    """The footnote signs of a score in brackets, as " (a,b)"; nothing where it has none."""
    return f" ({','.join(cell.marks)})" if cell.marks else ""
