"""`embark leaderboard`."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Annotated

import typer

from embark.cli.output import ProtocolName, ResultsFolder, counted, print_table, say, some

if TYPE_CHECKING:  # help texts must not wait for numbers
    from pathlib import Path

    from embark.boards.rules import Rule
    from embark.results import TaskResult
    from embark.results.table import Table
    from embark.types import Benchmark, EmbarkError, ModelCard, Task

TOP = 20  # models shown on a terminal
WIDTH = 120  # where there is no terminal
BESIDE = 5  # of them side by side
Names = Annotated[list[str] | None, typer.Option("-m", "--models", help="Only these: names or patterns, '*siglip*'.")]
Families = Annotated[list[str] | None, typer.Option("--family", help="Only families of models: SigLIP, 'EVA*'…")]
Types = Annotated[list[str] | None, typer.Option("--type", help="Only encoder, mllm, late (interaction) or api.")]
Modalities = Annotated[list[str] | None, typer.Option("--modality", help="Only models that take all of these.")]
MaxParams = Annotated[str | None, typer.Option("--max-params", help="Only models of known size, up to 500M, 7B…")]


def leaderboard(
    benchmark: Annotated[
        str, typer.Option("-b", "--benchmark", help="Benchmark name (see: embark benchmarks).")
    ] = "Pocket",
    protocol: ProtocolName = None,
    published: Annotated[bool, typer.Option("--published", help="Only published scores.")] = False,
    own: Annotated[bool, typer.Option("--own", help="Only what is in the results folder.")] = False,
    models: Names = None,
    family: Families = None,
    kind: Types = None,
    modality: Modalities = None,
    max_params: MaxParams = None,
    comparable: Annotated[
        bool, typer.Option("--comparable", help="Only the tasks that all shown models have a score on.")
    ] = False,
    rule: Annotated[
        str | None, typer.Option("--rule", help="Another rule than the benchmark's: mean-of-capabilities…")
    ] = None,
    weigh_by: Annotated[
        str | None, typer.Option("--weigh-by", metavar="MODEL", help="Weigh tasks by what this model lacks in them.")
    ] = None,
    borda: Annotated[bool, typer.Option("--borda", help="Rank by Borda points over tasks.")] = False,
    by_task: Annotated[bool, typer.Option("--by-task", help="One line a task, one column a model.")] = False,
    top: Annotated[int | None, typer.Option("--top", min=1, help="So many models (default: 20, or 5 by task).")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="All models and columns, however wide.")] = False,
    style: Annotated[str, typer.Option("--format", help="text, csv, json, markdown or latex.")] = "text",
    results: ResultsFolder = None,
) -> None:
    """Rank models by a benchmark's own rule: the published ones and yours, with rank intervals and ties.

    \b
    embark leaderboard -b 'MIEB(Multilingual)'
    embark leaderboard -b MMEB-V3 --comparable
    embark leaderboard -b 'MIEB(lite)' --type encoder --max-params 500M --top 10
    embark leaderboard -b 'MIEB(eng)' --by-task -m '*EVA02*'
    embark leaderboard -b 'MIEB(lite)' --weigh-by openai/clip-vit-base-patch32
    embark leaderboard --own --format markdown > board.md
    """
    from embark.boards.comparable_results import rows_of
    from embark.tasks import get_benchmark

    asked = get_benchmark(benchmark)
    rows = rows_of(asked, protocol)
    found = [*([] if own else printed_results(asked, rows)), *([] if published else own_results(rows, results))]
    if not found:
        raise _nothing(asked, protocol, results)
    rows, chosen = _ruled(asked, rows, found, rule, weigh_by)
    found = _filtered(found, models, family, kind, modality, max_params)
    if comparable:
        rows = _shared(rows, found)
    many = len({(result.model, result.revision, result.made_by) for result in found})
    top = top or (many if wide or style != "text" else BESIDE if by_task else TOP)
    made = _table(rows, found, chosen, borda, by_task, top)
    if style != "text":
        print(made.format(style))
    else:
        print_table(made if wide else _narrow(made))
    if top < many:
        say(f"{top} of {many} models are shown; --top {many} shows all, as --wide and the other formats do")


def _table(
    rows: Sequence[Task], found: list[TaskResult], rule: str | Rule, borda: bool, by_task: bool, top: int
) -> Table:
    from embark.boards import leaderboards as board
    from embark.boards.aggregate import standings

    if not by_task:
        return board.leaderboard(rows, found, rule, borda=borda, top=top, skills=_skills(rows))
    best, _ = board.ranked(rows, standings(rows, found, rule), borda)
    return board.by_task(rows, [result for entry in best[:top] for result in entry.model.results.values()], rule)


def _ruled(
    benchmark: Benchmark, rows: list[Task], results: list[TaskResult], name: str | None, weigh_by: str | None
) -> tuple[list[Task], str | Rule]:
    """The benchmark's rule, another one, or one that a model's own scores make; and the rows that it is about."""
    from embark.boards.matrix import matrix
    from embark.boards.rules import Difficulty, rule_of
    from embark.catalogue import UnknownName
    from embark.types import EmbarkError

    if weigh_by is None:
        rule_of(name or benchmark.rule)
        return rows, name or benchmark.rule
    if name is not None:
        raise EmbarkError("--rule and --weigh-by are two rules: give one of them.")
    field = matrix(rows, results)
    if weigh_by not in field.models:
        raise UnknownName(f"model with results on {benchmark.name}", weigh_by, field.models)
    values = field.values[field.models.index(weigh_by)].tolist()
    scores = {task: value for task, value in zip(field.names, values, strict=True) if not isnan(value)}
    return [row for row in rows if row.name in scores], Difficulty(weigh_by, scores)


def _skills(rows: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """The skills and the demand of ARK's queries, where a labels file tells them."""
    if rows[0].family != "ARK":
        return {}
    from embark.data.readers import ark

    given = ark.labels(rows[0]) if ark.external_state(rows[0]) else {}
    return {query: (*label.skills, *[label.demand] * bool(label.demand)) for query, label in given.items()}


def _shared(rows: Sequence[Task], found: list[TaskResult]) -> list[Task]:
    from embark.boards.aggregate import standings
    from embark.boards.leaderboards import shared
    from embark.types import EmbarkError

    models = standings(rows, found)
    if common := shared(rows, models):
        return common
    raise EmbarkError(f"The {len(models)} models have no task in common: choose fewer of them (--models, --own…).")


def _narrow(table: Table) -> Table:
    """As many columns as the terminal has room for; the rest are named. A source that all share is said below."""
    table = _without_source(table)
    whole, *rest = table.fitted(shutil.get_terminal_size((WIDTH, 24)).columns)
    if table.models == "columns" or not rest:
        return table
    kept = whole.columns
    say(f"--wide shows more columns: {some([name for name in table.columns if name not in kept])}")
    return whole


def _without_source(table: Table) -> Table:
    at = table.columns.index("source") if "source" in table.columns else None
    sources = set() if at is None else {row.cells[at] for row in table.rows}
    if at is None or len(sources) > 1:
        return table
    rows = tuple(replace(row, cells=row.cells[:at] + row.cells[at + 1 :]) for row in table.rows)
    columns = table.columns[:at] + table.columns[at + 1 :]
    return replace(table, columns=columns, rows=rows, notes=(*table.notes, f"source of all scores: {sources.pop()}"))


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def printed_results(benchmark: Benchmark, rows: Sequence[Task]) -> list[TaskResult]:
    """The published scores; what is unlike is said."""
    from embark.boards.comparable_results import published_results

    found, unlike = published_results(benchmark, rows)
    if unlike:
        models = Counter(result.task for result in unlike)
        told = some([f"{task} of {counted(count, 'model')}" for task, count in models.items()])
        say(f"left out, because the paper had other data or another measure (embark published errata): {told}")
    return found


def own_results(rows: Sequence[Task], folder: Path | None) -> list[TaskResult]:
    """Results on disk that were made under these rows' present protocols; what is stale is said."""
    from embark.boards import comparable_results as joined
    from embark.settings import load_settings

    found, stale = joined.own_results(rows, load_settings(results=folder).results)
    if stale:
        names = some(sorted({f"{result.task} of {result.model}" for result in stale}))
        say(f"left out, because scored under another protocol than the row has now (run again to compare): {names}")
    if void := sorted({f"{result.task} of {result.model}" for result in found if isnan(result.score)}):
        say(f"left out, because the score is not a number: {some(void)}")
    return found


def _nothing(benchmark: Benchmark, protocol: str | None, folder: Path | None) -> EmbarkError:
    from embark.boards.comparable_results import printed
    from embark.settings import load_settings
    from embark.types import EmbarkError

    scores = printed(benchmark)
    if tables := dict.fromkeys(score.table for score in scores if score.protocol == protocol != "paper"):
        shown = " and ".join(f"embark published show '{table}'" for table in tables)
        return EmbarkError(f"Under {protocol} only aggregates are published, not scores by task. See them: {shown}")
    where, name = load_settings(results=folder).results, benchmark.name
    there = "" if scores else " Other benchmarks have published ones: embark leaderboard -b 'MIEB(Multilingual)'"
    return EmbarkError(f"There are no results for {name} in {where}. Make some: embark run -b '{name}'.{there}")


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _filtered(
    results: list[TaskResult],
    names: list[str] | None,
    family: list[str] | None,
    kind: list[str] | None,
    modality: list[str] | None,
    max_params: str | None,
) -> list[TaskResult]:
    """The results of models that pass; a filter by a fact leaves out models without a card, and says so."""
    from embark.catalogue import Catalogue
    from embark.cli.browse import chosen, parameter_count
    from embark.models import MODELS, loaders
    from embark.types import MODALITIES, EmbarkError

    present = dict.fromkeys(result.model for result in results)
    kept = Catalogue("model among these results", present, str).match(names or ["*"])
    families = chosen("family", (card.family for card in MODELS.values() if card.family), family)
    types = chosen("type of model", ("encoder", "mllm", "late", "api"), kind)
    takes = chosen("modality", MODALITIES, modality)
    most, by_loader = None if max_params is None else parameter_count(max_params), loaders()

    def passes(card: ModelCard) -> bool:
        return (
            (not families or card.family in families)
            and (not types or by_loader[card.loader].type in types)
            and takes <= set(card.modalities)
            and (most is None or (card.parameters is not None and card.parameters <= most))
        )

    if families or types or takes or most is not None:
        if unknown := [name for name in kept if name not in MODELS]:
            say(f"left out, because no card tells what they are: {some(unknown)}")
        kept = [name for name in kept if name in MODELS and passes(MODELS[name])]
    if not kept:
        raise EmbarkError("No model with results passes the filters.")
    return [result for result in results if result.model in set(kept)]
