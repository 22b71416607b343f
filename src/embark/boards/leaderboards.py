"""Leaderboards: models by a benchmark's own rule, with rank intervals, tie groups, and whose scores they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import NamedTuple

import numpy as np

from embark.boards.aggregate import Standing, standings
from embark.boards.cards import card_of
from embark.boards.comparable_results import Include, ResultSet, load_results, printed_scores, rows_of
from embark.boards.contamination import zero_shot
from embark.boards.matrix import DEFAULT_RULE, matrix
from embark.boards.rules import by_difficulty, rule_of, summarize
from embark.catalogue import Catalogue, check_name, counted, listed
from embark.field_types import checked
from embark.models import MODELS, filter_cards
from embark.own.names import folder_tasks
from embark.results import Results, TaskResult
from embark.seams import Rule
from embark.settings import Settings, load_settings
from embark.stats import ranking
from embark.stats.means import Column, names, task_table
from embark.stats.ranking import FEWEST_KINDS, Place
from embark.tables import RANKED_SHARE, Note, Noted, Row, Table, applicable, comparable, first, footnoted, rounded
from embark.tasks import CHOSEN_TASKS, DEFAULT_BENCHMARK, Tasks, Wanted, chosen_benchmark
from embark.types import Array, EmbarkError, Task

NONE_RANKED = Note(f"#: no model has scores on {100 * RANKED_SHARE:.0f} % of the tasks, so none is ranked", column="#")
PARTIAL = "mean over the tasks with a score, not over all tasks"
KINDS = "per-item results are missing for some models, so the interval treats each task type as one sample"
FEW_KINDS = Note(f"95 %: no interval, because there are fewer than {FEWEST_KINDS} task types", column="95 %")
TIES = Note(
    "tie: models with the same letter cannot be told apart (paired differences, corrected for the number of pairs)",
    column="tie",
)


class Entry(NamedTuple):
    """A line of a leaderboard: a model, its place (none if it is not ranked) and its Borda points."""

    model: Standing
    place: Place | None
    points: float


@dataclass(frozen=True)
class Leaderboard(Noted):
    """Models best first, then those that are not ranked, by how many scores they have.

    Ranked are models whose means are over the same tasks (see `comparable`).

    `resampled` is what the intervals of ranks come from: items, tasks, or nothing.
    """

    tasks: tuple[Task, ...]
    entries: tuple[Entry, ...]
    rule: Rule
    resampled: str
    borda: bool = False

    @property
    def damaged(self) -> tuple[str, ...]:
        """Notes on files of outcomes that cannot be read, so that intervals stand on less."""
        return tuple(note for entry in self.entries for note in entry.model.readings.damaged.values())

    def table(self, top: int | None = None, room: int | None = None) -> Table:
        """One row per model, one column per total, then one per group; only the `top` models.

        With `room` for so many characters per line: the columns that fit, without a source that all models share.
        """
        shown = first(self.entries, top)
        totals, groups = _columns(self.tasks, self.rule, shown)
        partial = any(entry.model.mean.partial for entry in shown)
        scores = (*["tasks"] * partial, *["Borda"] * self.borda, *totals, *groups)
        rows = []
        labels = names([(entry.model.model, entry.model.revision, entry.model.source) for entry in self.entries])
        for label, (model, place, points) in zip(labels, shown, strict=False):
            rank = ("–", "", "") if place is None else (str(place.rank), place.interval, place.tie)
            covered = [model.mean.covered] * partial
            cells = (*map(model.totals.get, totals), *map((model.tasks | model.categories).get, groups))
            rows.append(Row((*rank, label, model.source, *covered, *[rounded(points)] * self.borda, *cells)))
        columns = ("#", "95 %", "tie", "model", "source", *scores)
        table = footnoted(Table(columns, tuple(rows), self._footnotes(shown), models="rows"), PARTIAL)
        return table if room is None else _without_shared_source(table).fitted(room)[0]

    def tasks_table(self, top: int | None = None) -> Table:
        """Tasks × the `top` models, grouped by category; the last lines are the totals of the rule."""
        models = [Column(entry.model.key, entry.model.tasks, entry.model.totals) for entry in first(self.entries, top)]
        totals = summarize(self.rule, self.tasks, {task.name: 0.0 for task in self.tasks}).totals
        labels = {name: str(self.rule).replace("-", " ").capitalize() if name == "mean" else name for name in totals}
        return task_table(self.tasks, models, labels)

    def _footnotes(self, shown: Sequence[Entry]) -> tuple[str, ...]:
        protocols = ", ".join(dict.fromkeys(task.protocol for task in self.tasks))
        ranked = sum(entry.place is not None for entry in self.entries)
        same = len(self.entries[0].model.mean.over) if ranked else 0  # the ranked models come first
        sure = ranked > 1 and self.resampled != "nothing"
        by_items = self.resampled == "items"
        kinds = len({kind_of(task) for task in self.tasks})
        others = "items" if by_items else f"{kinds} task types"
        models = [entry.model for entry in self.entries]
        partial = len(models) > 1 and any(model.mean.partial for model in models)
        in_common = len(shared(self.tasks, models))
        common = f"the {len(models)} models share {in_common} of the tasks"
        notes = {
            f"{counted(len(self.tasks), 'task')} by the rule {self.rule}, protocol {protocols}": True,
            NONE_RANKED: not ranked,
            Note(
                f"#: the ranked means are over the same {counted(same, 'task')} of {len(self.tasks)}; a mean over "
                "other tasks is not ranked (–)",
                column="#",
            ): ranked and any(entry.place is None for entry in shown),
            FEW_KINDS: ranked > 1 and not sure,
            Note(
                f"95 %: interval of the rank of the {ranked} models if the {others} were replaced by similar ones",
                column="95 %",
            ): sure,
            KINDS: sure and not by_items,
            TIES: sure,
            Note(
                f"{common}, and fewer models may share more",
                "--comparable, or comparable=True in Python, ranks them over those",
            ): partial and in_common,
            f"the {len(models)} models share none of the tasks; fewer models may share some": partial and not in_common,
        }
        return applicable(notes)


@checked
def leaderboard(
    tasks: Tasks = None,
    *,
    protocol: str | None = None,
    include: Include = "all",
    models: Wanted = None,
    families: Wanted = None,
    types: Wanted = None,
    modalities: Wanted = None,
    max_parameters: float | str | None = None,
    comparable: bool = False,
    zero_shot_only: bool = False,
    rule: str | None = None,
    weigh_by: str | None = None,
    borda: bool = False,
    settings: Settings | None = None,
) -> Leaderboard:
    """Models ranked over tasks (names, patterns, benchmarks, rows; your own tasks, too).

    By default, tasks are those that embark.toml of the working folder names, else the pocket benchmark.

    Results are the published ones, yours and imported ones, or with `include` only "published" ones, or only your "own"
    and imported ones: then the default is all tasks that you have results on. `models` are names or patterns; the next
    four are what their cards say, as for `get_models`. `comparable` takes only tasks that all these models have a score
    on, `zero_shot_only` only scores on data that the model is not known to be trained on. `rule` replaces the
    benchmark's (of tasks: the mean of categories), `weigh_by` weighs tasks by a model's shortfall, and `borda` ranks by
    Borda points.
    """
    if tasks is None and include != "own":
        tasks = folder_tasks() or DEFAULT_BENCHMARK
    benchmark = None if tasks is None else chosen_benchmark(tasks)
    settings = settings or load_settings()
    loaded = load_results(tasks, protocol=protocol, include=include, settings=settings)
    if not loaded.results:
        raise no_results(tasks, protocol, settings, loaded.notes)
    name = benchmark.name if benchmark else CHOSEN_TASKS
    rows: Sequence[Task] = loaded.tasks
    if weigh_by is None:
        chosen = rule_of(rule or (benchmark.rule if benchmark else DEFAULT_RULE))
    elif rule is None:
        rows, chosen = _rule_by_difficulty(loaded, weigh_by, name)
    else:
        raise EmbarkError("A rule and weights by a model (--rule, --weigh-by) are two rules: give one of them.")
    results, notes = _filter_models(loaded.results, models, families, types, modalities, max_parameters)
    if zero_shot_only:
        results, more = zero_shot(results, rows)
        notes = (*notes, *more)
    if comparable:
        rows = _common(rows, results)
    board = rank_models(rows, results, chosen, borda=borda)
    return replace(board, notes=(*loaded.notes, *board.damaged, *notes))


def rank_models(
    tasks: Sequence[Task], results: Iterable[TaskResult], rule: str | Rule = DEFAULT_RULE, *, borda: bool = False
) -> Leaderboard:
    """The leaderboard of these results, by the rule's first total or by Borda points."""
    rule = rule_of(rule)
    entries, resampled = ranked(tasks, standings(tasks, results, rule), borda)
    return Leaderboard(tuple(tasks), tuple(entries), rule, resampled, borda)


def ranked(tasks: Sequence[Task], models: Sequence[Standing], borda: bool = False) -> tuple[list[Entry], str]:
    """The entries of a leaderboard, and what was resampled for rank intervals: items, tasks, or nothing.

    Models come best first, then those whose means are over other tasks, by how many scores they have.
    """
    values = _array(tasks, [{name: score.value for name, score in model.tasks.items()} for model in models], np.nan)
    weights = _array(tasks, [model.weights for model in models], 0.0)
    if borda:
        values = ranking.points(values)
        weights = np.full(values.shape, 1 / max(len(tasks), 1))
    totals = (weights * np.nan_to_num(values)).sum(axis=1)
    enough = np.flatnonzero(comparable([model.mean for model in models])).tolist()
    spread: ranking.Spread | None = None
    resampled = "items"
    if not borda:
        spread = ranking.over_items([models[i].readings for i in enough], [models[i].weights for i in enough])
    if spread is None:
        spread = ranking.over_kinds(values[enough], weights[enough], [kind_of(task) for task in tasks])
        resampled = "nothing" if spread is None else "tasks"
    places = dict(zip(enough, ranking.places(totals[enough], spread), strict=True))

    def best_first(number: int) -> tuple[bool, int, list[str], float]:
        """Ranked models by their totals; of the others, only those over the same tasks are in the order of totals."""
        over = [] if number in places else sorted(models[number].mean.over)
        return number not in places, -len(over), over, -totals[number]

    order = sorted(range(len(models)), key=best_first)
    return [Entry(models[i], places.get(i), totals[i] * len(tasks)) for i in order], resampled


def kind_of(task: Task) -> str:
    """The kind of a task: tasks of one kind favour the same models, so only kinds count as independent."""
    return task.tags.get("type", task.category)


def shared(tasks: Sequence[Task], models: Sequence[Standing]) -> list[Task]:
    """The tasks that every model has a score on: over these, models with gaps compare with the others."""
    return [task for task in tasks if models and all(task.name in model.tasks for model in models)]


def no_results(
    tasks: Tasks,
    protocol: str | None,
    settings: Settings,
    notes: Sequence[str] = (),
) -> EmbarkError:
    """The error for a board or analysis without results: the reason, the notes on what there is, how to get results."""
    benchmark = None if tasks is None else chosen_benchmark(tasks)
    printed = printed_scores([] if benchmark is None else rows_of(benchmark))
    if tables := dict.fromkeys(score.table for score in printed if score.protocol == protocol != "paper"):
        commands = " and ".join(f"embark published show '{table}'" for table in tables)
        return EmbarkError(f"Under {protocol} only aggregates are published, not scores by task. See them: {commands}")
    on_disk = list(Results(settings.results).all())
    samples = sum(result.sampled for result in on_disk)
    sampled = f" (samples, made with --limit, do not count: {samples})" if samples else ""
    reasons = "".join(f" {note[:1].upper()}{note[1:].rstrip('.')}." for note in notes)
    place = f"in {settings.results}{sampled}.{reasons}"
    if benchmark is None:
        return EmbarkError(f"There are no results for these tasks {place} Make some: embark run")
    name = benchmark.name
    advice = f"Make some: embark run -b '{name}'."
    if not printed:
        advice += " Other benchmarks have published ones: embark leaderboard -b 'MIEB(Multilingual)'."
    if len(on_disk) > samples:
        advice += " Results on other tasks are ranked by: embark leaderboard --include own."
    return EmbarkError(f"There are no results for {name} {place} {advice}")


def _rule_by_difficulty(loaded: ResultSet, model: str, name: str) -> tuple[list[Task], Rule]:
    """The tasks that a model has a score on, and the rule that weights each by its distance from a full score."""
    field = matrix(loaded.tasks, loaded.results)
    check_name(f"model with results on {name}", model, field.models)
    values = field.values[field.models.index(model)].tolist()
    scores = {task: value for task, value in zip(field.names, values, strict=True) if not isnan(value)}
    return [task for task in loaded.tasks if task.name in scores], by_difficulty(model, scores)


def _filter_models(
    results: Sequence[TaskResult],
    names: Wanted,
    families: Wanted,
    types: Wanted,
    modalities: Wanted,
    max_parameters: float | str | None,
) -> tuple[list[TaskResult], tuple[str, ...]]:
    """The results of models that pass the filters; models without a card fail filters on card fields, with a note.

    A card is that of the catalogue, else the one that stands beside the model's scores.
    """
    present = dict.fromkeys(result.model for result in results)
    passing = present.keys() if names is None else Catalogue("model among these results", present, str).match(names)
    notes: tuple[str, ...] = ()
    if not (families is types is modalities is max_parameters is None):
        own = {result.model: card_of(result) for result in results if result.model not in MODELS}
        known = MODELS.with_rows(replace(card, name=name) for name, card in own.items() if card is not None)
        filters = {"families": families, "types": types, "modalities": modalities}
        allowed = {card.name for card in filter_cards(known, **filters, max_parameters=max_parameters)}
        if unknown := [name for name in passing if name not in known]:
            notes = (f"left out, because they have no card: {listed(unknown)}",)
        passing = [name for name in passing if name in allowed]
    if not passing:
        raise EmbarkError("No model with results passes the filters.")
    return [result for result in results if result.model in passing], notes


def _common(tasks: Sequence[Task], results: Sequence[TaskResult]) -> list[Task]:
    models = standings(tasks, results)
    if common := shared(tasks, models):
        return common
    raise EmbarkError(
        f"The {len(models)} models have no task in common: choose fewer of them (--model, or models in Python)."
    )


def _columns(tasks: Sequence[Task], rule: Rule, shown: Sequence[Entry]) -> tuple[list[str], list[str]]:
    """The columns of totals and groups; tasks instead of groups, where one group would hold all of them."""
    whole = summarize(rule, tasks, {task.name: 0.0 for task in tasks})
    totals = dict.fromkeys([*whole.totals, *(name for entry in shown for name in entry.model.totals)])
    real = [name for name, group in whole.groups.items() if group.of < len(tasks)] or [task.name for task in tasks]
    groups = dict.fromkeys([*real, *(n for e in shown for n in e.model.categories if n not in whole.groups)])
    return list(totals), [n for n in groups if any(n in (e.model.tasks | e.model.categories) for e in shown)]


def _without_shared_source(table: Table) -> Table:
    """The table without the column of sources if all rows have the same one; a note states it instead."""
    column = table.columns.index("source")
    sources = {row.cells[column] for row in table.rows}
    if len(sources) != 1:
        return table
    rows = tuple(replace(row, cells=row.cells[:column] + row.cells[column + 1 :]) for row in table.rows)
    columns = table.columns[:column] + table.columns[column + 1 :]
    return replace(table, columns=columns, rows=rows, notes=(*table.notes, f"source of all scores: {sources.pop()}"))


def _array(tasks: Sequence[Task], rows: Sequence[Mapping[str, float]], missing: float) -> Array:
    """Models × tasks."""
    cells = [row.get(task.name, missing) for row in rows for task in tasks]
    return np.array(cells, np.float64).reshape(len(rows), len(tasks))
