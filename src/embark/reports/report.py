"""A report to attach to a paper: what was run, leaderboards, scores, comparisons, figures, statistics and protocols.

It is made of results on disk and of published scores; no model runs. The same results make the same bytes.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from embark.boards.cards import card_of
from embark.boards.comparable_results import Include, ResultSet, load_results
from embark.boards.leaderboards import Leaderboard, no_results, rank_models
from embark.boards.matrix import DEFAULT_RULE
from embark.catalogue import Catalogue, UnknownName, counted, listed
from embark.documents import DOCUMENT_PARTS, FIGURES, TABLES, Document, NamedTable, Paragraph, Section
from embark.field_types import checked
from embark.models import known_models
from embark.outgoing import write_text
from embark.redaction import Content, redacted_value, this_machine
from embark.reports.comparisons import compare_models, comparisons_by_task, paired_comparisons
from embark.reports.protocols import (
    bibtex,
    byline,
    protocols,
    references,
    statistics,
    warnings_and_errata,
    what_was_run,
)
from embark.reports.reported import Reported
from embark.reports.scores import category_scores, costs_of_models, leaderboards, summary, task_scores
from embark.results import TaskResult
from embark.settings import Settings, load_settings
from embark.tables import Noted, Table, applicable
from embark.tasks import Tasks, Wanted, chosen_benchmark
from embark.types import EmbarkError, Task

NAMED_MODELS = 3  # models that the title names
NO_FIGURES = "figures are left out: they need matplotlib (pip install 'embark-bench[plots]')"


@dataclass(frozen=True)
class Report(Noted):
    """A report on models: `board` ranks them, `document` is the whole of it; `write` makes a folder of files.

    Its table is the leaderboard. `missing` are commands that make the scores that are not there.
    """

    board: Leaderboard
    document: Document = field(repr=False)
    missing: tuple[str, ...] = ()

    def table(self) -> Table:
        """The leaderboard."""
        return self.board.table()

    def write(self, folder: Path | str = "report") -> tuple[Path, ...]:
        """Write report.html (one file that needs no other), report.md, report.tex, figures and tables; their paths.

        Figures need matplotlib, and are left out without it.
        """
        root = Path(folder)
        if root.exists() and not root.is_dir():
            raise EmbarkError(f"{root} is a file: name a folder for the report.")
        private = this_machine()
        document = redacted_value(self.document, private, DOCUMENT_PARTS)
        if not find_spec("matplotlib"):
            document = document.without_figures()
        written: list[Path] = []
        images: dict[str, bytes] = {}
        for figure in document.figures:
            for ending in (".svg", ".pdf"):
                path = root / FIGURES / f"{figure.name}{ending}"
                figure.drawing.plot(path)
                written.append(path)
            images[figure.name] = (root / FIGURES / f"{figure.name}.svg").read_bytes()
        texts = {f"{TABLES}/{table.name}.csv": _csv(table) for table in document.tables}
        texts |= {"report.tex": document.latex(), "references.bib": document.bibliography}
        texts |= {"report.md": document.markdown(), "report.html": document.html(images)}
        for name, text in texts.items():
            write_text(root / name, Content(text), private)  # its parts are redacted as words, before they are escaped
        return (*(root / name for name in reversed(texts)), *written)


@checked
def report(
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    protocol: str | None = None,
    include: Include = "all",
    settings: Settings | None = None,
) -> Report:
    """A paper-like report on models over tasks, from the results on disk; `.write(folder)` writes it.

    `models` are names, name@revision or patterns: of models with results of yours, or with published scores (default:
    all of yours, or all published ones if there are none of yours). A model or task without a score is named with the
    command that makes it; nothing is run. Published scores under the same protocols stand beside yours, unless
    `include` is "own". Without tasks: all tasks that you have results on.
    """
    if tasks is None and include == "all":
        include = "own"
    settings = settings or load_settings()
    benchmark = None if tasks is None else chosen_benchmark(tasks)
    loaded = load_results(tasks, protocol=protocol, include=include, settings=settings)
    if not loaded.results:
        raise no_results(tasks, protocol, settings, loaded.notes)
    chosen, absent = _choose(loaded, models)
    name = benchmark.name if benchmark else "chosen tasks"
    if not chosen:
        command = _command(name if benchmark else "", loaded.tasks, absent)
        raise EmbarkError(f"{listed(absent)} has no scores on {name} in {settings.results}. Make them: {command}")
    board = rank_models(loaded.tasks, chosen, benchmark.rule if benchmark else DEFAULT_RULE)
    if not board.entries:  # scores that are not numbers
        raise no_results(tasks, protocol, settings, loaded.notes)
    return _composed(Reported(name, benchmark is not None, loaded, board, absent))


def _composed(reported: Reported) -> Report:
    """The sections in their order, and notes on what is missing."""
    gaps, commands = _missing_scores(reported)
    pairs = compare_models(reported)
    sections = (
        Section("Summary", (Paragraph(" ".join(summary(reported))),)),
        Section("What was run", tuple(what_was_run(reported, gaps, commands))),
        Section("Leaderboard", tuple(leaderboards(reported))),
        Section("Scores by category", tuple(category_scores(reported))),
        Section("Scores by task", tuple(task_scores(reported))),
        Section("Paired comparisons", tuple(paired_comparisons(reported, pairs))),
        Section("Score against cost", tuple(costs_of_models(reported))),
        Section("Warnings and errata", tuple(warnings_and_errata(reported))),
        Section("Statistics", tuple(map(Paragraph, statistics(reported, bool(pairs))))),
        Section("References", tuple(references(reported))),
        Section("Protocols", tuple(protocols(reported)), appendix=True),
        Section("Comparisons by task", tuple(comparisons_by_task(pairs)), appendix=True),
    )
    labels = reported.labels
    models = listed(labels) if len(labels) <= NAMED_MODELS else counted(len(labels), "model")
    document = Document(f"{models} on {reported.name}", tuple(byline(reported)), sections, bibtex(reported))
    notes = applicable({NO_FIGURES: not find_spec("matplotlib")} | {f"missing: {gap}": True for gap in gaps})
    return Report(reported.board, document, commands, notes=(*reported.loaded.notes, *reported.board.damaged, *notes))


def _missing_scores(reported: Reported) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What has no score, in words, and the commands that make the scores."""
    gaps = [f"{model} has no score at all" for model in reported.absent]
    wanting = list(reported.absent)
    for label, entry in reported.own:
        tasks = [task for task in reported.board.tasks if task.name not in entry.model.tasks]
        card = card_of(next(iter(entry.model.results.values())))
        taken = set(card.modalities) if card else set()
        beyond = [task.name for task in tasks if taken and not taken.issuperset(task.modalities)]
        lacking = [task.name for task in tasks if task.name not in beyond]
        wanting += [entry.model.model] * bool(lacking)
        gaps += [f"{label}: {listed(lacking, 6)}"] * bool(lacking)
        gaps += [f"{label} does not take what these need: {listed(beyond, 6)}"] * bool(beyond)
    if not wanting:
        return tuple(gaps), ()
    return tuple(gaps), (_command(reported.name if reported.is_benchmark else "", reported.board.tasks, wanting),)


def _choose(loaded: ResultSet, models: Wanted) -> tuple[list[TaskResult], list[str]]:
    """The results of the models that are named: yours, else published ones; and the names of models without any."""
    own = [result for result in loaded.results if result.made_by != "published"]
    if models is None:
        return own or list(loaded.results), []
    present = dict.fromkeys(result.model for result in loaded.results)
    present |= dict.fromkeys(f"{result.model}@{result.revision}" for result in loaded.results)
    known = Catalogue("model with scores", present, str)
    wanted: list[str] = []
    absent: list[str] = []
    for word in [models] if isinstance(models, str) else models:
        try:
            wanted += known.match(word)
        except UnknownName:
            if word not in known_models():
                raise
            absent.append(word)
    of_own = {name for result in own for name in (result.model, f"{result.model}@{result.revision}")}

    def is_chosen(result: TaskResult) -> bool:
        named = {result.model, f"{result.model}@{result.revision}"} & {*wanted}
        return bool(named) and (result.made_by != "published" or not named & of_own)

    return [result for result in loaded.results if is_chosen(result)], list(dict.fromkeys(absent))


def _csv(table: NamedTable) -> str:
    return (table.whole or table.table).format("csv") + "\n"


def _command(benchmark: str, tasks: Sequence[Task], models: Sequence[str]) -> str:
    """The command that makes scores."""
    where = ["-b", benchmark] if benchmark else [word for task in tasks for word in ("-t", task.name)]
    return shlex.join(["embark", "run", *where, *(word for model in models for word in ("-m", model))])
