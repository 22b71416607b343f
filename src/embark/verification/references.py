"""The scores that ours are held against: those of the papers' tables, or of a folder of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from embark import published as papers
from embark.boards.comparable_results import printed_scores
from embark.boards.mteb_versions import fault_of
from embark.catalogue import group_values, listed
from embark.exchange.tools import read_results, tool_of
from embark.models import MODELS
from embark.results import Results, TaskResult
from embark.types import EmbarkError, Task

UNPUBLISHED = "is published"  # ends the reason where nothing is


@dataclass(frozen=True)
class ScoreReference:
    """The scores of a model on a task that ours are held against, one for each of its revisions."""

    results: tuple[TaskResult, ...]
    rounding: float = 0.0

    def nearest(self, revision: str) -> TaskResult:
        """That of the same revision, else the newest."""
        return max(self.results, key=lambda result: (result.revision == revision, result.date))


def printed_references(rows: Sequence[Task], name: str) -> dict[str, ScoreReference | str]:
    """By task, the published scores of a model, or why there are none to compare with."""
    card = MODELS.get(name)
    of_protocols = [papers.results(rows, protocol) for protocol in dict.fromkeys(row.protocol for row in rows)]
    results = group_values(((r.model, r.task, r.protocol), r) for of_protocol in of_protocols for r in of_protocol)
    protocols = group_values(((s.model, s.name), s.protocol) for s in printed_scores(rows) if s.kind == "task")
    references: dict[str, ScoreReference | str] = {}
    for row in rows:
        alias = name if card is None else card.aliases.get(row.family, name)
        if of_task := results.get((alias, row.name, row.protocol)):
            references[row.name] = _usable(of_task, row)
        elif others := sorted({*protocols.get((alias, row.name), ())} - {row.protocol}):
            references[row.name] = f"published under {listed(others)}, and this is under {row.protocol}"
        else:
            references[row.name] = f"no score of {alias} {UNPUBLISHED}"
    return references


def _usable(results: list[TaskResult], row: Task) -> ScoreReference | str:
    """Published scores of a task, unless an erratum says that they cannot be reproduced with the row."""
    first = results[0]
    errata = listed(list(papers.mark(first.model, row.name)))
    if not papers.comparable(first, row):
        return f"the published score is of other data or another measure (erratum {errata})"
    if papers.is_wrong(first, row):
        return f"the published score is an artefact (erratum {errata})"
    return ScoreReference(tuple(results), papers.rounding(first, row))


def folder_references(
    rows: Sequence[Task], folder: Path, name: str, known: Mapping[str, Task], protocol: str | None
) -> dict[str, ScoreReference | str]:
    """By task, the scores of a model in a folder of results, or why there are none to compare with."""
    if not folder.is_dir():
        raise EmbarkError(f"There is no folder {folder}.")
    tool = tool_of(folder)
    results = read_results(tool, folder, known, name, "main", protocol or "paper").results
    if tool == "mteb":  # mteb's tools read our files, too: they may lie in one folder
        roots = [root for root in (folder, folder / "results") if root.is_dir()]
        results = [*(result for root in roots for result in Results(root).all()), *results]
    of_model = [result for result in results if result.model == name and not isnan(result.score)]
    references: dict[str, ScoreReference | str] = {}
    for row in rows:
        of_task = [result for result in of_model if result.task == row.name]
        same = [result for result in of_task if result.protocol == row.protocol]
        if sound := tuple(result for result in same if not fault_of(result, row)):
            references[row.name] = ScoreReference(sound)
        elif same:
            references[row.name] = fault_of(same[0], row)
        elif of_task:
            protocols = listed(sorted({result.protocol for result in of_task}))
            references[row.name] = f"scored under {protocols} there, and this is under {row.protocol}"
        else:
            references[row.name] = f"{folder} has no score of {name}"
    return references
