"""The scores of a report: the summary, leaderboards, scores by category and by task, and score against cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from embark.boards.leaderboards import Entry, Leaderboard, rank_models
from embark.boards.matrix import Matrix, matrix
from embark.boards.rules import RULES, summarize
from embark.catalogue import counted, group_values, listed
from embark.documents import Block, NamedFigure, NamedTable
from embark.reports.reported import Reported, points
from embark.stats.means import short_names
from embark.studies.groups import Field, Heatmap, Profile, field_of
from embark.studies.pareto import embedding_times, pareto_front, sizes
from embark.tables import Cell, Exact, Row, Table, footnoted, in_points
from embark.tables.drawing import PAGE
from embark.types import EmbarkError

DOTS = 5  # models that a drawing of scores against costs has at least; fewer stand in a table alone
DRAWN = 6  # models in a drawing with intervals
BEST = 10  # published models that stand beside yours
TALL = 8.6  # inches of a drawing, at most


def summary(reported: Reported) -> Iterator[str]:
    """Who is ahead, who cannot be told apart, and where nobody is better than guessing."""
    total = next(iter(reported.entries[0].model.totals))
    measure = str(reported.board.rule).replace("-", " ") if total == "mean" else total
    ranked = [(label, entry) for label, entry in reported.labelled if entry.place]
    label, best = ranked[0] if ranked else (reported.labels[0], reported.entries[0])
    tasks = counted(best.model.mean.of, "task")
    mean = best.model.mean
    part = f"{mean.count + mean.zeros} of " if mean.partial else ""
    whole = f"over {part}the {tasks} of {reported.name}" if reported.is_benchmark else f"over {part}{tasks}"
    if not ranked:
        of_name = f" of {reported.name}" if reported.is_benchmark else ""
        yield (
            f"No model has scores on enough of the {tasks}{of_name} to be ranked. {label}, which has no fewer than the "
            f"others, has {counted(best.model.mean.count, 'score')}, with a mean of {points(best.model.mean)}."
        )
    elif len(ranked) == 1:
        yield f"{label} scores {points(best.model.mean)} in the {measure} {whole}."
    else:
        yield f"{label} has the highest {measure} {whole}: {points(best.model.mean)}."
        yield from _ties(reported, ranked)
    yield from _guessing(reported, label, best)


def leaderboards(reported: Reported) -> Iterator[Block]:
    """The models ranked, and their places among published ones where there are any."""
    board = reported.board
    known = ["ranks"] * (board.resampled != "nothing") + ["scores"] * bool(reported.certain)
    intervals = f"; {' and '.join(known)} with 95 % intervals" if known else ""
    yield NamedTable("leaderboard", f"Models by the rule {board.rule}{intervals}.", _ranks(board), board.table())
    others = [result for result in reported.loaded.results if result.made_by == "published"]
    own = [result for result in reported.results if result.made_by != "published"]
    if others and own:
        field = rank_models(board.tasks, (*others, *own), board.rule)
        first = [entry for entry in field.entries if entry.place][:BEST]
        entries = [entry for entry in field.entries if entry in first or entry.model.key[2] != "published"]
        caption = (
            f"The same beside published scores under the same protocols: places among {len(field.entries)} models, of "
            f"which the best {len(first)} are shown."
        )
        yield NamedTable("published", caption, _ranks(replace(field, entries=tuple(entries))), field.table())


def category_scores(reported: Reported) -> Iterator[Block]:
    """The groups of the benchmark's rule, as tables and drawn; capabilities, where tasks state them."""
    by = reported.board.rule.by[0]
    models = [entry.model for entry in reported.entries]
    whole = _category_table(reported, reported.board)
    for number, (part, board) in enumerate(reported.chunks()):
        table = replace(_category_table(reported, board), highlight=not part)
        caption = f"Mean scores by {by}, in points{reported.certain}.{part}"
        name = f"categories{f'-{number + 1}' if part else ''}"
        yield NamedTable(name, caption, table, whole if part and not number else None)
    with suppress(EmbarkError):  # tasks without that tag
        yield from _profiles(reported, field_of(reported.board.tasks, models, by), by, by)
    tagged = {task.tags["capability"] for task in reported.scored if "capability" in task.tags}
    if len(tagged) > 1 and by != "capability":
        field = field_of(reported.board.tasks, models, "capability")
        yield from _profiles(reported, field, "capability", "capabilities")


def task_scores(reported: Reported) -> Iterator[Block]:
    """Every score, a few models side by side."""
    whole = reported.board.tasks_table()
    for number, (part, board) in enumerate(reported.chunks()):
        table = replace(board.tasks_table(), highlight=not part)
        caption = f"Scores by task in points{reported.certain}, beside the score of guessing (chance).{part}"
        name = f"tasks{f'-{number + 1}' if part else ''}"
        yield NamedTable(name, caption, table, whole if part and not number else None)


def costs_of_models(reported: Reported) -> Iterator[Block]:
    """The models that no other beats in both score and parameters or time, where those of several are known."""
    scores = matrix(reported.board.tasks, reported.results)
    scores = replace(scores, rule=str(reported.board.rule)) if str(reported.board.rule) in RULES else scores
    costs = {"parameters": sizes(scores.cards, "parameters"), "time": embedding_times(reported.results)}
    for against, of_models in costs.items():
        with suppress(EmbarkError):
            yield from _front(scores, of_models, against)


@dataclass(frozen=True)
class PageProfile(Profile):
    """A profile that fits on a page, below its caption."""

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, min(0.9 + len(self.groups) * (0.08 + 0.065 * len(self.models)), TALL)


def _ties(reported: Reported, ranked: Sequence[tuple[str, Entry]]) -> Iterator[str]:
    """Which of several ranked models cannot be told apart."""
    if reported.board.resampled == "nothing":
        yield "Ranks have no intervals here, and whether models differ by more than chance is not known."
        return
    groups = group_values((entry.place.tie if entry.place else "", label) for label, entry in ranked)
    first, *others = groups.values()
    second, entry = ranked[len(first)] if others else ("", ranked[0][1])
    if len(first) > 1:
        yield f"It cannot be told apart from {listed(first[1:], 5)}."
    else:
        lead = in_points(ranked[0][1].model.mean.value - entry.model.mean.value)
        yield f"{second} follows with {points(entry.model.mean)}: a lead of {lead} is more than chance would make."
    if tied := [members for members in others if len(members) > 1]:
        ties = "; ".join(listed(members, 4) for members in tied[:3])
        yield f"Among the others, these cannot be told apart from one another: {ties}."


def _guessing(reported: Reported, label: str, best: Entry) -> Iterator[str]:
    """The tasks on which the interval of the best model reaches down to chance."""
    scores = [(task, best.model.tasks[task.name]) for task in reported.scored if task.name in best.model.tasks]
    known = [(task, score) for task, score in scores if task.chance is not None and isfinite(score.low)]
    at_chance = [task.name for task, score in known if score.low <= (task.chance or 0.0)]
    if at_chance:
        yield (
            f"On {len(at_chance)} of {counted(len(known), 'task')} with a known level of chance, {label} may be no "
            f"better than guessing: {listed(at_chance, 4)}."
        )


def _ranks(board: Leaderboard) -> Table:
    """A leaderboard without the columns of single groups, which have tables of their own."""
    table = board.table()
    totals = {name for entry in board.entries for name in entry.model.totals}
    columns = ("#", "95 %", "tie", "model", "source", "tasks", "Borda", *totals)
    return table.only(name for name in table.columns if name in columns)


def _profiles(reported: Reported, field: Field, by: str, name: str) -> Iterator[Block]:
    """The first models with intervals; all of them as a heat map, where they are more."""
    profile = PageProfile(by, field.groups, field.models[:DRAWN], field.models)
    of = f"the first {DRAWN} of {len(field.models)} models" if len(field.models) > DRAWN else "all models"
    caption = f"Mean scores of {of} by {by}, in points{reported.certain}."
    if len(field.models) > DRAWN:
        caption += " Grey: the range of all models, and their median."
    yield NamedFigure(f"scores-by-{name}", caption, profile)
    if len(field.models) > DRAWN:
        heatmap = Heatmap(by, field.groups, field.models)
        yield NamedFigure(f"all-by-{name}", f"All models by {by}: mean scores in points.", heatmap)


def _category_table(reported: Reported, board: Leaderboard) -> Table:
    """The groups of the rule × the models, then the totals; chance where all tasks of a group know it."""
    tasks = {task.name: task for task in reported.scored}
    groups = dict.fromkeys(name for entry in reported.entries for name in entry.model.categories)
    whole = summarize(board.rule, reported.scored, dict.fromkeys(tasks, 0.0))
    rows = []
    for name in groups:
        mean = whole.groups.get(name)
        chances = [tasks[task].chance for task in mean.weights] if mean else []
        known = [chance for chance in chances if chance is not None]
        chance = float(np.mean(known)) if mean and len(known) == mean.of else None
        count = Exact(mean.of, str(mean.of)) if mean else Exact(None, "")
        cells: tuple[Cell, ...] = (name, count, _chance(chance))
        rows.append(Row((*cells, *(entry.model.categories.get(name) for entry in board.entries))))
    for total in dict.fromkeys(name for entry in reported.entries for name in entry.model.totals):
        label = str(board.rule).replace("-", " ").capitalize() if total == "mean" else total
        of = whole.totals[total].of if total in whole.totals else None
        scores = (entry.model.totals.get(total) for entry in board.entries)
        rows.append(Row((label, Exact(of, str(of or "")), _chance(None), *scores), total=True))
    columns = (board.rule.by[0], "tasks", "chance", *short_names([entry.model.key for entry in board.entries]))
    return footnoted(Table(columns, tuple(rows)))


def _chance(value: float | None) -> Exact:
    return Exact(value, "" if value is None else in_points(value))


def _front(scores: Matrix, costs: Mapping[str, float], against: str) -> Iterator[Block]:
    front = pareto_front(scores, costs, against)
    if len(front.models) > 1 and float(np.ptp(front.costs)) > 0:
        if len(front.models) >= DOTS:
            yield NamedFigure(f"pareto-{against}", front.caption, front)
        yield NamedTable(f"pareto-{against}", f"{front.title}.", front.table())
