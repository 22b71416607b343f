"""The comparisons of a report: every two models on the same items, in a table, in drawings, and task by task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from embark.documents import Block, Bullets, NamedFigure, NamedTable, Paragraph
from embark.reports.reported import Reported
from embark.stats.compare import Comparison, compare_results, difference_cells
from embark.stats.intervals import holm
from embark.tables import Row, Table, p_value, short

COMPARED = 8  # models of which every two are compared
IN_FULL = 3  # models that the best one is compared with task by task
LINES = 45  # tasks in a drawing of differences
REFUSED = 10  # tasks that cannot be compared, and are named with the reason


def compare_models(reported: Reported) -> list[Comparison]:
    """Every two of your models, best first; those without a task in common are left out."""
    models = [(label, list(entry.model.results.values())) for label, entry in reported.own[:COMPARED]]
    pairs = [
        replace(compare_results(of_a, of_b, reported.board.tasks), a=a, b=b)
        for (a, of_a), (b, of_b) in combinations(models, 2)
    ]
    return [comparison for comparison in pairs if comparison.pairs]


def paired_comparisons(reported: Reported, comparisons: Sequence[Comparison]) -> Iterator[Block]:
    """A line for every two models, the first in sentences, and drawings of the best against those that follow."""
    if not comparisons:
        alone = len(reported.entries) == 1
        why = "there is one model here" if alone else "no two of these models have outcomes of the same items"
        yield Paragraph(f"Models are compared item by item; {why}, so that there is nothing to compare.")
        return
    corrected = holm([1.0 if c.total.p is None else c.total.p for c in comparisons])
    rows = [
        Row((c.a, c.b, len(c.pairs), c.total.wins, c.total.ties, c.total.losses, *difference_cells(c.total),
             p_value(c.total.p), p_value(p)))
        for c, p in zip(comparisons, corrected, strict=True)
    ]  # fmt: skip
    columns = ("a", "b", "tasks", "better", "alike", "worse", "a − b", "95 %", "p", "p (Holm)")
    notes = (
        "better, alike, worse: tasks on which a differs from b by more than chance would make, after Holm's "
        "correction for the number of tasks; a − b: the mean difference over tasks, in points, each task counting "
        "once; p (Holm): corrected for the number of pairs of models.",
    )
    yield NamedTable("comparisons", "Models compared item by item.", Table(columns, tuple(rows), notes))
    left = len(reported.own) - COMPARED
    if left > 0:
        yield Paragraph(f"The first {COMPARED} models are compared; {left} more are not.")
    yield Bullets(tuple(comparison.sentence() for comparison in comparisons[:IN_FULL]))
    for number, comparison in enumerate(_with_best(comparisons)):
        yield from difference_figures(comparison, number)


def comparisons_by_task(comparisons: Sequence[Comparison]) -> Iterator[NamedTable]:
    """The best model against those that follow it, task by task."""
    for number, comparison in enumerate(_with_best(comparisons) if comparisons else ()):
        table = comparison.table()
        columns = (table.columns[0], *(short(name) for name in table.columns[1:3]), *table.columns[3:])
        caption = f"{comparison.a} (a) against {comparison.b} (b), task by task: scores and differences in points."
        notes = [f"{task}: not compared: {reason}" for task, reason in comparison.refused.items()][:REFUSED]
        yield NamedTable(
            f"comparison-{number + 1}", caption, replace(table, columns=columns, notes=(*table.notes, *notes))
        )


def difference_figures(comparison: Comparison, number: int) -> Iterator[NamedFigure]:
    """The drawings of a comparison, each of as many tasks as a page has room for."""
    pieces = [comparison.pairs[start : start + LINES] for start in range(0, len(comparison.pairs), LINES)]
    for piece, pairs in enumerate(pieces):
        several = f" Part {piece + 1} of {len(pieces)}." if len(pieces) > 1 else ""
        caption = (
            f"{comparison.a} minus {comparison.b} by task, in points, with 95 % intervals; colors are verdicts after "
            f"Holm's correction.{several}"
        )
        name = f"differences-{number + 1}{f'-{piece + 1}' if several else ''}"
        yield NamedFigure(name, caption, replace(comparison, pairs=pairs))


def _with_best(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The best model against those that follow it."""
    return [comparison for comparison in comparisons if comparison.a == comparisons[0].a][:IN_FULL]
