"""A report to attach to a paper: what was run, leaderboards, scores, comparisons, figures, statistics and protocols.

It is made of results on disk and of published scores; no model runs. The same results make the same bytes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import combinations
from math import isfinite
from pathlib import Path

import numpy as np

from embark import __version__
from embark import published as papers
from embark.boards.cards import card_of
from embark.boards.comparable_results import ResultSet, load_results
from embark.boards.facts import EMPTY, Facts, fingerprints, known_errata, row_facts
from embark.boards.leaderboards import Entry, Leaderboard, no_results, rank_models
from embark.boards.matrix import DEFAULT_RULE, Matrix, matrix
from embark.boards.rules import RULES
from embark.catalogue import Catalogue, UnknownName, counted, group_values, listed
from embark.data.atomic import atomically
from embark.models import known_models, short_count
from embark.results import TaskResult
from embark.results.drawing import PAGE
from embark.results.table import Cell, Exact, Noted, Row, Score, Table, footnoted, short, shown
from embark.settings import Settings, load_settings
from embark.stats.compare import Comparison, compare_results, difference_cells, holm, p_cell
from embark.stats.means import names, short_names
from embark.studies.document import (
    FIGURES,
    TABLES,
    Block,
    Bullets,
    Commands,
    Definitions,
    Document,
    NamedFigure,
    NamedTable,
    Paragraph,
    Section,
)
from embark.studies.groups import Field, Heatmap, Profile, field_of
from embark.studies.pareto import embedding_times, pareto_front, sizes
from embark.tasks import Tasks, Wanted, get_benchmark
from embark.types import Benchmark, EmbarkError, ModelCard, Task

BESIDE = 4  # models side by side in a table of scores with intervals …
WITHOUT = 6  # … and in one of scores without
DRAWN = 6  # models in a drawing with intervals
COMPARED = 8  # models of which every two are compared
IN_FULL = 3  # models that the best one is compared with task by task
LINES = 45  # tasks in a drawing of differences
BEST = 10  # published models that stand beside yours
PARTS = 3  # splits and subsets of a task whose fingerprints are told
TALL = 8.6  # inches of a drawing, at most
REVISION = 12  # letters of a revision; the files have it in full
UNKNOWN = "–"
SHARED = ("unique", "first", "embedded")  # counts that depend on the run, not on the protocol


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
        document = self.document if find_spec("matplotlib") else self.document.without_figures()
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
            with atomically(root / name) as out:
                out.write(text.encode())
        return (*(root / name for name in reversed(texts)), *written)


def report(
    benchmark: str | Benchmark | None = None,
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    protocol: str | None = None,
    published: bool = True,
    settings: Settings | None = None,
) -> Report:
    """A paper-like report on models over a benchmark or tasks, from the results on disk; `.write(folder)` writes it.

    `models` are names, name@revision or patterns: of models with results of yours, or with published scores (default:
    all of yours, or all published ones if there are none of yours). A model or task without a score is named with the
    command that makes it; nothing is run. Published scores under the same protocols stand beside yours, unless
    `published` is false. Without a benchmark and tasks: all tasks that you have results on.
    """
    published = published and not (benchmark is None and tasks is None)
    settings = settings or load_settings()
    if benchmark is not None:
        benchmark = get_benchmark(benchmark)
    loaded = load_results(benchmark, tasks, protocol=protocol, published=published, settings=settings)
    if not loaded.results:
        raise no_results(benchmark, tasks, protocol, settings)
    chosen, absent = _choose(loaded, models)
    name = benchmark.name if benchmark else "chosen tasks"
    if not chosen:
        command = _command(name if benchmark else "", loaded.tasks, absent)
        raise EmbarkError(f"{listed(absent)} has no scores on {name} in {settings.results}. Make them: {command}")
    board = rank_models(loaded.tasks, chosen, benchmark.rule if benchmark else DEFAULT_RULE)
    return _Writer(name, benchmark is not None, loaded, replace(board, notes=loaded.notes), absent).report()


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


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _points(score: Score) -> str:
    """A score in words, with its interval."""
    value = f"{100 * score.value:.1f} points"
    if not isfinite(score.low + score.high):
        return f"{value} (no interval)"
    return f"{value} (95 % interval {100 * score.low + 0.0:.1f} to {100 * score.high + 0.0:.1f})"


@dataclass(frozen=True)
class PageProfile(Profile):
    """A profile that fits on a page, below its caption."""

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, min(0.9 + len(self.groups) * (0.08 + 0.065 * len(self.models)), TALL)


@dataclass(frozen=True)
class _Writer:
    """The sections of a report."""

    name: str  # of the benchmark
    is_benchmark: bool
    loaded: ResultSet
    board: Leaderboard
    absent: Sequence[str]  # models without any score

    def report(self) -> Report:
        """The whole."""
        gaps, commands = self._gaps()
        pairs = self._comparisons()
        sections = (
            Section("Summary", (Paragraph(" ".join(self._summary())),)),
            Section("What was run", tuple(self._run(gaps, commands))),
            Section("Leaderboard", tuple(self._leaderboards())),
            Section("Scores by category", tuple(self._categories())),
            Section("Scores by task", tuple(self._tasks())),
            Section("Paired comparisons", tuple(self._pairs(pairs))),
            Section("Score against cost", tuple(self._costs())),
            Section("Warnings and errata", tuple(self._warnings())),
            Section("Statistics", tuple(map(Paragraph, self._statistics(pairs)))),
            Section("References", tuple(self._references())),
            Section("Protocols", tuple(self._protocols()), appendix=True),
            Section("Comparisons by task", tuple(_by_task(pairs)), appendix=True),
        )
        title = f"{listed(self._labels, 3)} on {self.name}" if len(self._labels) <= 3 else (
            f"{counted(len(self._labels), 'model')} on {self.name}"
        )  # fmt: skip
        document = Document(title, tuple(self._byline()), sections, _bibtex(self._sources()))
        notes = {
            "figures are left out: they need matplotlib (pip install 'embark[plots]')": not find_spec("matplotlib"),
            **{f"missing: {gap}": True for gap in gaps},
        }
        shown_notes = tuple(note for note, applies in notes.items() if applies)
        return Report(self.board, document, commands, notes=(*self.loaded.notes, *shown_notes))

    # ── who ──

    @property
    def _entries(self) -> tuple[Entry, ...]:
        return self.board.entries

    @property
    def _labels(self) -> list[str]:
        """The models' names, with revisions where one has several."""
        return names([entry.model.key for entry in self._entries])

    @property
    def _results(self) -> list[TaskResult]:
        return [result for entry in self._entries for result in entry.model.results.values()]

    @property
    def _own(self) -> list[tuple[str, Entry]]:
        """Models whose scores are yours, with their labels: those have outcomes of items."""
        return [(label, e) for label, e in zip(self._labels, self._entries, strict=True) if e.model.key[2] == "embark"]

    @property
    def _scored(self) -> list[Task]:
        """Tasks that any of the models has a score on."""
        return [task for task in self.board.tasks if any(task.name in entry.model.tasks for entry in self._entries)]

    @property
    def _certain(self) -> str:
        """What captions say of scores: that they have intervals, if any has."""
        known = any(isfinite(entry.model.mean.low) for entry in self._entries)
        return ", with 95 % intervals" if known else ""

    def _chunks(self) -> Iterator[tuple[str, Leaderboard]]:
        """The board in pieces of so many models as stand side by side, and what a caption says of each."""
        most = BESIDE if self._certain else WITHOUT
        pieces = [self._entries[start : start + most] for start in range(0, len(self._entries), most)]
        for number, entries in enumerate(pieces):
            first = number * most + 1
            part = f" Models {first} to {first + len(entries) - 1} of {len(self._entries)}." if len(pieces) > 1 else ""
            yield part, replace(self.board, entries=entries)

    # ── sections ──

    def _byline(self) -> Iterator[str]:
        dates = sorted({_date(result.date) for result in self._results if result.date})
        embark = sorted({v for result in self._results for r in result.records if (v := r.versions.get("embark"))})
        if dates:
            yield f"Scored on {dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'}"
        by = f"embark {', '.join(embark)}" if embark else "as published, without items or intervals"
        yield f"{counted(len(self._scored), 'task')}, {counted(len(self._entries), 'model')}; scores: {by}"

    def _summary(self) -> Iterator[str]:
        """Who is ahead, who cannot be told apart, and where nobody is better than guessing."""
        total = next(iter(self._entries[0].model.totals))
        measure = str(self.board.rule).replace("-", " ") if total == "mean" else total
        ranked = [(label, entry) for label, entry in zip(self._labels, self._entries, strict=True) if entry.place]
        label, best = ranked[0] if ranked else (self._labels[0], self._entries[0])
        tasks = counted(best.model.mean.of, "task")
        whole = f"over the {tasks} of {self.name}" if self.is_benchmark else f"over {tasks}"
        if not ranked:
            yield (
                f"No model has a score on enough of the {tasks} of {self.name} to be ranked; {label} has most, "
                f"{best.model.mean.count}, with a mean of {_points(best.model.mean)} over those."
            )
        elif len(ranked) == 1:
            yield f"{label} scores {_points(best.model.mean)} in the {measure} {whole}."
        else:
            yield f"{label} has the highest {measure} {whole}: {_points(best.model.mean)}."
            yield from self._ties(ranked)
        yield from self._guessing(label, best)

    def _ties(self, ranked: Sequence[tuple[str, Entry]]) -> Iterator[str]:
        if self.board.resampled == "nothing":
            yield "Ranks have no intervals here, and whether models differ by more than chance is not known."
            return
        groups = group_values((entry.place.tie if entry.place else "", label) for label, entry in ranked)
        first, *others = groups.values()
        second, entry = ranked[len(first)] if others else ("", ranked[0][1])
        if len(first) > 1:
            yield f"It cannot be told apart from {listed(first[1:], 5)}."
        else:
            yield f"Its lead over {second}, {_points(entry.model.mean)}, is more than chance would make."
        if tied := [members for members in others if len(members) > 1]:
            ties = "; ".join(listed(members, 4) for members in tied[:3])
            yield f"Among the others, these cannot be told apart from one another: {ties}."

    def _guessing(self, label: str, best: Entry) -> Iterator[str]:
        scores = [(task, best.model.tasks[task.name]) for task in self._scored if task.name in best.model.tasks]
        known = [(task, score) for task, score in scores if task.chance is not None and isfinite(score.low)]
        at_chance = [task.name for task, score in known if score.low <= (task.chance or 0.0)]
        if at_chance:
            yield (
                f"On {len(at_chance)} of {counted(len(known), 'task')} with a known level of chance, {label} may be no "
                f"better than guessing: {listed(at_chance, 4)}."
            )

    def _run(self, gaps: Sequence[str], commands: Sequence[str]) -> Iterator[Block]:
        columns = ("model", "revision", "source", "precision", "parameters", "scores", "scored on")
        cells = [_model_cells(label, entry) for label, entry in zip(self._labels, self._entries, strict=True)]
        whole = Table(columns, tuple(map(Row, cells)))
        short_rows = [Row((model, str(revision)[:REVISION], *rest)) for model, revision, *rest in cells]
        table = replace(whole, rows=tuple(short_rows)).only(
            name for name, column in zip(columns, zip(*cells, strict=True), strict=True) if {*column} != {UNKNOWN}
        )
        yield NamedTable("models", "The models, and where their scores come from.", table, whole)
        versions = group_values(
            {pair: None for result in self._results for record in result.records for pair in record.versions.items()}
        )
        if versions:
            libraries = [f"{name} {', '.join(sorted(of_name))}" for name, of_name in sorted(versions.items())]
            yield Paragraph(f"Versions of the code that computed the scores: {'; '.join(libraries)}.")
        loaded = dict.fromkeys(
            f"{label} was loaded with {facts}" for label, entry in self._own if (facts := _loading(entry))
        )
        yield from [Bullets(tuple(loaded))] * bool(loaded)
        if gaps:
            yield Paragraph("Scores that are missing:")
            yield Bullets(tuple(gaps))
            yield Paragraph("They are made by:")
            yield Commands(tuple(commands))

    def _gaps(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What has no score, in words, and the commands that make the scores."""
        gaps = [f"{model} has no score at all" for model in self.absent]
        wanting = list(self.absent)
        for label, entry in self._own:
            tasks = [task for task in self.board.tasks if task.name not in entry.model.tasks]
            card = card_of(next(iter(entry.model.results.values())))
            taken = {*card.modalities} if card and card.modalities else {*()}
            beyond = [task.name for task in tasks if taken and not taken.issuperset(task.modalities)]
            lacking = [task.name for task in tasks if task.name not in beyond]
            wanting += [entry.model.model] * bool(lacking)
            gaps += [f"{label}: {listed(lacking, 6)}"] * bool(lacking)
            gaps += [f"{label} does not take what these need: {listed(beyond, 6)}"] * bool(beyond)
        commands = [_command(self.name, (), wanting) if self.is_benchmark else _command("", self.board.tasks, wanting)]
        return tuple(gaps), tuple(commands) if wanting else ()

    def _leaderboards(self) -> Iterator[Block]:
        caption = f"Models by the rule {self.board.rule}; ranks{self._certain and ' and scores'} with 95 % intervals."
        yield NamedTable("leaderboard", caption, _ranks(self.board), self.board.table())
        others = [result for result in self.loaded.results if result.made_by == "published"]
        own = [result for result in self._results if result.made_by != "published"]
        if others and own:
            field = rank_models(self.board.tasks, (*others, *own), self.board.rule)
            first = [entry for entry in field.entries if entry.place][:BEST]
            shown_entries = [e for e in field.entries if e in first or e.model.key[2] != "published"]
            table = _ranks(replace(field, entries=tuple(shown_entries)))
            caption = (
                f"The same models among {counted(len(field.entries), 'model')}, most of them published under the same "
                f"protocols; the best {len(first)} are shown."
            )
            yield NamedTable("published", caption, table, field.table())

    def _categories(self) -> Iterator[Block]:
        whole = self._category_table(self.board)
        for number, (part, board) in enumerate(self._chunks()):
            table = replace(self._category_table(board), highlight=not part)
            caption = f"Mean scores by {self.board.rule.by[0]}, in points{self._certain}.{part}"
            name = f"categories{f'-{number + 1}' if part else ''}"
            yield NamedTable(name, caption, table, whole if part and not number else None)
        by = self.board.rule.by[0]
        with suppress(EmbarkError):
            yield from self._profiles(field_of(self.board.tasks, [entry.model for entry in self._entries], by), by, by)
        tagged = {task.tags["capability"] for task in self._scored if "capability" in task.tags}
        if len(tagged) > 1 and by != "capability":
            field = field_of(self.board.tasks, [entry.model for entry in self._entries], "capability")
            yield from self._profiles(field, "capability", "capabilities")

    def _profiles(self, field: Field, by: str, name: str) -> Iterator[Block]:
        profile = PageProfile(by, field.groups, field.models[:DRAWN], field.models)
        of = f"the first {DRAWN} of {len(field.models)} models" if len(field.models) > DRAWN else "all models"
        caption = f"Mean scores of {of} by {by}, in points{self._certain}."
        if len(field.models) > DRAWN:
            caption += " Grey: the range of all models, and their median."
        yield NamedFigure(f"scores-by-{name}", caption, profile)
        if len(field.models) > DRAWN:
            yield NamedFigure(f"all-by-{name}", f"All models by {by}: mean scores in points.", Heatmap(
                by, field.groups, field.models))  # fmt: skip

    def _category_table(self, board: Leaderboard) -> Table:
        """The groups of the rule × the models, then the totals; chance where all tasks of a group know it."""
        tasks = {task.name: task for task in self._scored}
        groups = dict.fromkeys(name for entry in self._entries for name in entry.model.categories)
        whole = board.rule(self._scored, dict.fromkeys(tasks, 0.0))
        rows = []
        for name in groups:
            mean = whole.groups.get(name)
            chances = [tasks[task].chance for task in mean.weights] if mean else [None]
            known = [chance for chance in chances if chance is not None]
            chance = float(np.mean(known)) if len(known) == len(chances) else None
            count = Exact(mean.of, str(mean.of)) if mean else Exact(None, "")
            cells: tuple[Cell, ...] = (name, count, _chance(chance))
            rows.append(Row((*cells, *(entry.model.categories.get(name) for entry in board.entries))))
        for total in dict.fromkeys(name for entry in self._entries for name in entry.model.totals):
            label = str(board.rule).replace("-", " ").capitalize() if total == "mean" else total
            of = whole.totals[total].of if total in whole.totals else None
            scores = (entry.model.totals.get(total) for entry in board.entries)
            rows.append(Row((label, Exact(of, str(of or "")), _chance(None), *scores), total=True))
        columns = (board.rule.by[0], "tasks", "chance", *short_names([entry.model.key for entry in board.entries]))
        return footnoted(Table(columns, tuple(rows)))

    def _tasks(self) -> Iterator[Block]:
        whole = self.board.tasks_table()
        for number, (part, board) in enumerate(self._chunks()):
            table = replace(board.tasks_table(), highlight=not part)
            caption = f"Scores by task in points{self._certain}, beside the score of guessing (chance).{part}"
            yield NamedTable(f"tasks{f'-{number + 1}' if part else ''}", caption, table,
                             whole if part and not number else None)  # fmt: skip

    def _comparisons(self) -> list[Comparison]:
        """Every two of your models, best first; those without a task in common are left out."""
        models = [(label, list(entry.model.results.values())) for label, entry in self._own[:COMPARED]]
        pairs = [
            replace(compare_results(of_a, of_b, self.board.tasks), a=a, b=b)
            for (a, of_a), (b, of_b) in combinations(models, 2)
        ]
        return [comparison for comparison in pairs if comparison.pairs]

    def _pairs(self, comparisons: Sequence[Comparison]) -> Iterator[Block]:
        if not comparisons:
            alone = len(self._entries) == 1
            why = "there is one model here" if alone else "no two of these models have outcomes of the same items"
            yield Paragraph(f"Models are compared item by item; {why}, so that there is nothing to compare.")
            return
        corrected = holm([1.0 if c.total.p is None else c.total.p for c in comparisons])
        rows = [
            Row((c.a, c.b, len(c.pairs), c.total.wins, c.total.ties, c.total.losses, *difference_cells(c.total),
                 p_cell(c.total.p), p_cell(p)))
            for c, p in zip(comparisons, corrected, strict=True)
        ]  # fmt: skip
        columns = ("a", "b", "tasks", "better", "alike", "worse", "a − b", "95 %", "p", "p (Holm)")
        notes = (
            "better, alike, worse: tasks on which a differs from b by more than chance would make, after Holm's "
            "correction for the number of tasks; a − b: the mean difference over tasks, in points, each task counting "
            "once; p (Holm): corrected for the number of pairs of models.",
        )
        yield NamedTable("comparisons", "Models compared item by item.", Table(columns, tuple(rows), notes))
        left = len(self._own) - COMPARED
        if left > 0:
            yield Paragraph(f"The first {COMPARED} models are compared; {left} more are not.")
        yield Bullets(tuple(comparison.sentence() for comparison in comparisons[:IN_FULL]))
        for number, comparison in enumerate(_with_best(comparisons)):
            yield from _differences(comparison, number)

    def _costs(self) -> Iterator[Block]:
        scores = matrix(self.board.tasks, self._results)
        scores = replace(scores, rule=str(self.board.rule)) if str(self.board.rule) in RULES else scores
        costs: dict[str, Callable[[], Mapping[str, float]]] = {
            "parameters": lambda: sizes(scores.cards, "parameters"),
            "time": lambda: embedding_times(self._results),
        }
        for against, of_models in costs.items():
            with suppress(EmbarkError):
                yield from _front(scores, of_models(), against)

    def _warnings(self) -> Iterator[Block]:
        marks = group_values(
            (mark, f"{task} ({label})")
            for label, entry in zip(self._labels, self._entries, strict=True)
            for task, score in entry.model.tasks.items()
            for mark in score.marks
        )
        lines = [f"{mark.rstrip('.')}. On {listed(where, 5)}." for mark, where in marks.items()]
        lines += [f"{note[:1].upper()}{note[1:]}." for note in self.loaded.notes]
        yield from [Bullets(tuple(lines))] * bool(lines)
        stated = {erratum.id: erratum for erratum in papers.errata()}
        ids = dict.fromkeys(match[1] for mark in marks if (match := re.match(r"(?:erratum|note) ([\w-]+):", mark)))
        for id in ids:
            if erratum := stated.get(id):
                rows = (("what", erratum.what), ("evidence", erratum.evidence), ("source", erratum.source))
                yield Definitions(f"Erratum {id}", rows)
        if not lines:
            yield Paragraph("No score has a warning, and no published score here is known to be wrong.")

    def _statistics(self, pairs: Sequence[Comparison]) -> Iterator[str]:
        yield (
            "Every interval is a 95 % interval over the items that were scored. Observations that share an item (by "
            "the hash of its content) vary together, in whatever subset or task they are; all others count as "
            "independent. Shares of items get Wilson's interval with as many trials as the variance stands for, "
            "correlations are taken on Fisher's scale, and probes and clusterings are drawn with their runs and seeds. "
            "An interval says what other items of the same kind would have given; it says nothing about other data."
        )
        if self.board.resampled == "items" and len(self._entries) > 1:
            yield (
                "Ranks: intervals and tie letters come from t-tests of paired differences over items. Models with one "
                "letter cannot be told apart after a correction for the number of pairs in their group."
            )
        elif self.board.resampled == "tasks":
            yield (
                "Ranks: published scores have no items, so kinds of tasks count as independent draws. The signs of "
                "differences are flipped kind by kind; models with one letter cannot be told apart. That asks what "
                "other kinds of tasks would have said, which is the harder question."
            )
        if pairs:
            yield (
                "Comparisons: the difference of two models on the same items, with the p-value that the true "
                "difference is none. Holm's step-down correction controls the chance of any false verdict among the "
                "tasks of a comparison, and among the pairs of models."
            )
        yield (
            "Chance is the score of the measure on random directions, one for each distinct item. Where it is empty, "
            "it is not known."
        )

    def _sources(self) -> list[tuple[str, str, str]]:
        """Family, paper and address of the benchmarks, as far as the catalogue has them."""
        families = dict.fromkeys(task.family for task in self._scored)
        facts = [about for family in families if family in papers.FAMILIES for about in papers.tables(family).values()]
        return list(dict.fromkeys((about["family"], about["paper"], about["url"]) for about in facts))

    def _references(self) -> Iterator[Block]:
        lines = [f"{paper.rstrip('.')}. {address}" for _, paper, address in self._sources()]
        data = dict.fromkeys(task.source.reference for task in self._scored if task.source.reference)
        lines += [f"Data: {address}" for address in data if address not in " ".join(lines)][:BEST]
        yield Bullets((*lines, f"embark: EMbedding BenchmARK, version {__version__}."))

    def _protocols(self) -> Iterator[Block]:
        by_task = group_values((result.task, result) for result in self._results)
        rows = [Row(_protocol_cells(task, by_task[task.name])) for task in self._scored]
        columns = ["task", "metric", "protocol", "data", "revision", "items", "fingerprint"]
        whole = Table(tuple(columns), tuple(rows))
        if len(protocols := {task.protocol for task in self._scored}) == 1:
            columns.remove("protocol")
        table = whole.only(columns)
        notes = (
            "fingerprint: a hash of all that can change a score besides the model (the row, the data, the versions of "
            "reader and evaluator); of a task with several splits or subsets, that of the first. items: those that are "
            "embedded, over all splits and subsets.",
        )
        caption = f"How each task is scored; protocol {' and '.join(sorted(protocols))}."
        yield NamedTable("protocols", caption, replace(table, notes=notes), whole)
        facts = {task.name: dict(_task_facts(task, by_task[task.name])) for task in self._scored}
        first = next(iter(facts.values()))
        common = {name for name in first if all(other.get(name) == first[name] for other in facts.values())}
        common = common if len(facts) > 1 else set()
        if common:
            yield Definitions("All tasks", tuple((name, text) for name, text in first.items() if name in common))
        for task, of_task in facts.items():
            yield Definitions(task, tuple((name, text) for name, text in of_task.items() if name not in common))


def _ranks(board: Leaderboard) -> Table:
    """A leaderboard without the columns of single groups, which have tables of their own."""
    table = board.table()
    totals = {name for entry in board.entries for name in entry.model.totals}
    columns = ("#", "95 %", "tie", "model", "source", "tasks", "Borda", *totals)
    return table.only(name for name in table.columns if name in columns)


def _chance(value: float | None) -> Exact:
    return Exact(value, "" if value is None else f"{100 * value:.1f}")


def _model_cells(label: str, entry: Entry) -> tuple[Cell, ...]:
    results = list(entry.model.results.values())
    dates = sorted({_date(result.date) for result in results if result.date})
    card: ModelCard | None = results[0].card() or card_of(results[0])
    own = entry.model.key[2] == "embark"
    size = short_count(card.parameters) if card and card.parameters is not None else UNKNOWN
    return (
        label.partition("@")[0] if "@" in label else label,
        entry.model.revision or UNKNOWN,
        entry.model.source,
        card.dtype if card and own else UNKNOWN,
        Exact(card.parameters if card else None, size),
        Exact(len(results), f"{len(results)} of {entry.model.mean.of}"),
        " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else UNKNOWN,
    )


def _loading(entry: Entry) -> str:
    """How a model was loaded, where its records tell: device, libraries, code that was trusted."""
    facts = dict.fromkeys(
        f"{name} {value}"
        for result in entry.model.results.values()
        for record in result.records
        for name, value in record.loaded.items()
        if isinstance(value, (str, int, float)) and value not in EMPTY
    )
    return ", ".join(sorted(facts))


def _with_best(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The best model against those that follow it."""
    return [comparison for comparison in comparisons if comparison.a == comparisons[0].a][:IN_FULL]


def _differences(comparison: Comparison, number: int) -> Iterator[NamedFigure]:
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


def _by_task(comparisons: Sequence[Comparison]) -> Iterator[NamedTable]:
    """The best model against those that follow it, task by task."""
    for number, comparison in enumerate(_with_best(comparisons) if comparisons else ()):
        table = comparison.table()
        columns = (table.columns[0], *(short(name) for name in table.columns[1:3]), *table.columns[3:])
        caption = f"{comparison.a} (a) against {comparison.b} (b), task by task: scores and differences in points."
        notes = [f"{task}: not compared: {reason}" for task, reason in comparison.refused.items()][:BEST]
        yield NamedTable(
            f"comparison-{number + 1}", caption, replace(table, columns=columns, notes=(*table.notes, *notes))
        )


def _front(scores: Matrix, costs: Mapping[str, float], against: str) -> Iterator[Block]:
    front = pareto_front(scores, costs, against)
    if len(front.models) > 1 and float(np.ptp(front.costs)) > 0:
        yield NamedFigure(f"pareto-{against}", front.caption, front)
        yield NamedTable(f"pareto-{against}", f"{front.title}.", front.table())


def _protocol_cells(task: Task, results: Sequence[TaskResult]) -> tuple[Cell, ...]:
    first, *_ = results
    prints = _fingerprints(task, results)
    items = sum(record.counts.get("items", 0) for record in first.records)
    revision = first.dataset_revision or task.source.revision
    return (
        task.name,
        task.metric,
        task.protocol,
        _data(task),
        revision[:12],
        Exact(items or None, f"{items:,}" if items else UNKNOWN),
        next(iter(prints.values()), UNKNOWN),
    )


def _data(task: Task) -> str:
    """The data set; of a folder its name alone, because reports are public and folders are not."""
    return Path(task.source.id).name if Path(task.source.id).is_absolute() else task.source.id


def _fingerprints(task: Task, results: Sequence[TaskResult]) -> dict[str, str]:
    """Fingerprints of the first splits and subsets: those of your records, else of the row."""
    records = [record for result in results if result.made_by == "embark" for record in result.records]
    prints = {f"{record.split}/{record.subset}": record.fingerprint for record in records}
    return dict(list((prints or fingerprints(task)).items())[:PARTS])


def _task_facts(task: Task, results: Sequence[TaskResult]) -> Iterator[tuple[str, str]]:
    """What decides a score, in words."""
    stated = row_facts(task)
    stated["data"] = stated["data"].replace(task.source.id, _data(task), 1)
    hidden = ("task", "family", "columns", "tags", "variants", "read by", "notes", "over")
    facts = {name: fact for name, fact in stated.items() if name not in hidden and fact not in EMPTY}
    lines: dict[str, list[str]] = {}
    name = ""
    for row in Facts("task", task, facts, {}).table().rows:
        name = shown(row.cells[0]) or name
        lines.setdefault(name, []).append(shown(row.cells[1]).replace(", see --format json", ""))
    yield "category", task.category
    yield from ((name, "; ".join(of_name)) for name, of_name in lines.items())
    counts: dict[str, int] = {}
    for record in results[0].records:
        for name, number in record.counts.items():
            if name not in SHARED and number:
                counts[name] = counts.get(name, 0) + number
    if counts:
        yield "counts", ", ".join(f"{number:,} {name}" for name, number in counts.items())
    prints = _fingerprints(task, results)
    more = f" (first {len(prints)} of {len(task.parts)})" if len(task.parts) > len(prints) else ""
    if prints:
        yield "fingerprints", ", ".join(f"{part}: {text}" for part, text in prints.items()) + more
    if task.notes:
        yield "notes", " ".join(task.notes)
    if errata := known_errata(task):
        yield "known faults", " ".join(f"{erratum.id}: {erratum.what}" for erratum in errata)


def _bibtex(sources: Sequence[tuple[str, str, str]]) -> str:
    """The papers as BibTeX, with what the catalogue knows of them, and embark itself."""
    entries = []
    for number, (family, paper, address) in enumerate(sources):
        key = f"{re.sub('[^a-z0-9]', '', family.lower())}{number or ''}"
        title = paper.replace("{", "").replace("}", "")
        fields = {"title": f"{{{title}}}", "url": address}
        if match := re.search(r"arxiv\.org/abs/(\d\d)(\d\d\.\d+)", address):
            fields |= {"year": f"20{match[1]}", "eprint": match[1] + match[2], "archivePrefix": "arXiv"}
        entries.append((key, fields))
    entries.append(("embark", {"title": "{embark: EMbedding BenchmARK}", "note": f"version {__version__}"}))
    return "\n\n".join(
        "\n".join([f"@misc{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"])
        for key, fields in entries
    ) + "\n"
