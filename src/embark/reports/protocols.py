"""The small print of a report: what was run, warnings and errata, statistics, references, the protocol of each task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from embark import __version__
from embark import published as papers
from embark.boards.cards import card_of
from embark.boards.facts import EMPTY, Facts, fingerprints, known_errata, row_facts
from embark.boards.leaderboards import Entry
from embark.catalogue import counted, group_values, listed
from embark.documents import Block, Bullets, Commands, Definitions, NamedTable, Paragraph
from embark.models import short_count
from embark.redaction import public_row
from embark.reports.reported import Reported
from embark.results import TaskResult
from embark.tables import Cell, Exact, Row, Table, shown, without_advice
from embark.types import ModelCard, Task

SHOWN_PARTS = 3  # splits and subsets of a task whose fingerprints are shown
NAMED_TASKS = 5  # tasks that a warning names
ADDRESSES = 10  # of data sets, among the references
REVISION = 12  # letters of a revision; the files have it in full
UNKNOWN = "–"
SHARED = ("unique", "first", "embedded")  # counts that depend on the run, not on the protocol


def byline(reported: Reported) -> Iterator[str]:
    """When the scores were made, how many they are, and by whom."""
    if dates := _dates(reported.results):
        yield f"Scored on {dates}"
    versions = {record.versions.get("embark", "") for result in reported.results for record in result.records}
    embark = f"embark {', '.join(sorted(filter(None, versions)))}"
    sources = dict.fromkeys(entry.model.source for entry in reported.entries)
    by = ", ".join(embark if source == "yours" else source for source in sources)
    yield f"{counted(len(reported.scored), 'task')}, {counted(len(reported.entries), 'model')}; source of scores: {by}"


def what_was_run(reported: Reported, gaps: Sequence[str], commands: Sequence[str]) -> Iterator[Block]:
    """Models, versions, and what has no score, with the commands that make it."""
    columns = ("model", "revision", "source", "precision", "parameters", "scores", "scored on")
    cells = [_model_cells(entry) for entry in reported.entries]
    whole = Table(columns, tuple(map(Row, cells)))
    short_rows = [Row((model, str(revision)[:REVISION], *rest)) for model, revision, *rest in cells]
    table = _known_columns(replace(whole, rows=tuple(short_rows)))
    yield NamedTable("models", "The models, and where their scores come from.", table, whole)
    versions = group_values(
        {pair: None for result in reported.results for record in result.records for pair in record.versions.items()}
    )
    if versions:
        libraries = [f"{name} {', '.join(sorted(of_name))}" for name, of_name in sorted(versions.items())]
        yield Paragraph(f"Versions of the code that computed the scores: {'; '.join(libraries)}.")
    loaded = dict.fromkeys(
        f"{label} was loaded with {facts}" for label, entry in reported.own if (facts := _loading(entry))
    )
    yield from [Bullets(tuple(loaded))] * bool(loaded)
    if gaps:
        yield Paragraph("Scores that are missing:")
        yield Bullets(tuple(gaps))
    if commands:
        yield Paragraph("They are made by:")
        yield Commands(tuple(commands))


def warnings_and_errata(reported: Reported) -> Iterator[Block]:
    """Every footnote of a score, notes on what was left out, and the evidence for errata."""
    marks = group_values(
        (mark, (task, label))
        for label, entry in reported.labelled
        for task, score in entry.model.tasks.items()
        for mark in score.marks
    )
    lines = [f"{mark.rstrip('.')}. On {_scores_of(where)}." for mark, where in marks.items()]
    notes = [without_advice(note).rstrip(".") for note in reported.loaded.notes]
    lines += [f"{note[:1].upper()}{note[1:]}." for note in notes]
    yield from [Bullets(tuple(lines))] * bool(lines)
    errata = {erratum.footnote: erratum for erratum in papers.errata()}
    for erratum in (errata[mark] for mark in marks if mark in errata):
        rows = (("what", erratum.what), ("evidence", erratum.evidence), ("source", erratum.source))
        yield Definitions(f"Erratum {erratum.id}", rows)
    if not lines:
        yield Paragraph("No score has a warning, and no published score here is known to be wrong.")


def statistics(reported: Reported, compared: bool) -> Iterator[str]:
    """How intervals, ranks and, where models were `compared`, verdicts come about."""
    yield (
        "Every interval is a 95 % interval over the items that were scored. Observations that share an item (by "
        "the hash of its content) vary together, in whatever subset or task they are; all others count as "
        "independent. Shares of items get Wilson's interval with as many trials as the variance stands for, "
        "correlations are taken on Fisher's scale, and probes and clusterings are drawn with their runs and seeds. "
        "A 95 % interval holds the score over endlessly many items of the same kind in 95 % of cases; it says nothing "
        "about other data."
    )
    if reported.board.resampled == "items" and len(reported.entries) > 1:
        yield (
            "Ranks: intervals and tie letters come from t-tests of paired differences over items. Models with one "
            "letter cannot be told apart after a correction for the number of pairs in their group."
        )
    elif reported.board.resampled == "tasks":
        yield (
            "Ranks: published scores have no items, so kinds of tasks count as independent draws. The signs of "
            "differences are flipped kind by kind; models with one letter cannot be told apart. That asks what "
            "other kinds of tasks would have said, which is the harder question."
        )
    if compared:
        yield (
            "Comparisons: the difference of two models on the same items, with its interval and the p-value of the "
            "test that there is none. Holm's step-down correction controls the chance of any false verdict among the "
            "tasks of a comparison, and among the pairs of models."
        )
    yield (
        "Chance is the score of the measure on random directions, one for each distinct item. Where it is empty, "
        "it is not known."
    )


def references(reported: Reported) -> Iterator[Block]:
    """Papers of the benchmarks and addresses of data, as far as the catalogue has them."""
    lines = [f"{paper.rstrip('.')}. {address}" for _, paper, address in _sources(reported)]
    data = dict.fromkeys(task.source.reference for task in reported.scored if task.source.reference)
    lines += [f"Data: {address}" for address in data if address not in " ".join(lines)][:ADDRESSES]
    yield Bullets((*lines, f"embark: EMbedding BenchmARK, version {__version__}."))


def bibtex(reported: Reported) -> str:
    """The papers as BibTeX, with what the catalogue knows of them, and embark itself."""
    entries = []
    for number, (family, paper, address) in enumerate(_sources(reported)):
        key = f"{re.sub('[^a-z0-9]', '', family.lower())}{number or ''}"
        title = paper.replace("{", "").replace("}", "")
        fields = {"title": f"{{{title}}}", "url": address}
        if match := re.search(r"arxiv\.org/abs/(\d\d)(\d\d\.\d+)", address):
            fields |= {"year": f"20{match[1]}", "eprint": match[1] + match[2], "archivePrefix": "arXiv"}
        entries.append((key, fields))
    entries.append(("embark", {"title": "{embark: EMbedding BenchmARK}", "note": f"version {__version__}"}))
    return (
        "\n\n".join(
            "\n".join([f"@misc{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"])
            for key, fields in entries
        )
        + "\n"
    )


def protocols(reported: Reported) -> Iterator[Block]:
    """How each task is scored: a line each, then all that decides its score."""
    by_task = group_values((result.task, result) for result in reported.results)
    rows = [Row(_protocol_cells(task, by_task[task.name])) for task in reported.scored]
    columns = ("task", "metric", "protocol", "data", "revision", "items", "fingerprint")
    whole = Table(columns, tuple(rows))
    names = sorted({task.protocol for task in reported.scored})
    table = _known_columns(whole)
    if len(names) == 1:
        table = table.only(name for name in table.columns if name != "protocol")
    notes = (
        "fingerprint: a hash of all that can change a score besides the model (the row, the data, the versions of "
        "reader and evaluator); of a task with several splits or subsets, that of the first. items: those that are "
        "embedded, over all splits and subsets.",
    )
    caption = f"How each task is scored; protocol {' and '.join(names)}."
    yield NamedTable("protocols", caption, replace(table, notes=notes), whole)
    facts = {task.name: dict(_task_facts(task, by_task[task.name])) for task in reported.scored}
    first = next(iter(facts.values()))
    common = {name for name in first if all(other.get(name) == first[name] for other in facts.values())}
    common = common if len(facts) > 1 else set()
    if common:
        yield Definitions("All tasks", tuple((name, text) for name, text in first.items() if name in common))
    for task, of_task in facts.items():
        yield Definitions(task, tuple((name, text) for name, text in of_task.items() if name not in common))


def _scores_of(where: Sequence[tuple[str, str]]) -> str:
    """Tasks with the models that have a score there: by name, or their number."""
    models = {
        task: labels[0] if len(labels) == 1 else counted(len(labels), "model")
        for task, labels in group_values(where).items()
    }
    return listed([f"{task} ({model})" for task, model in models.items()], NAMED_TASKS)


def _sources(reported: Reported) -> list[tuple[str, str, str]]:
    """Family, paper and address of the benchmarks, as far as the catalogue has them."""
    families = dict.fromkeys(task.family for task in reported.scored)
    facts = [about for family in families if family in papers.FAMILIES for about in papers.tables(family).values()]
    return list(dict.fromkeys((about["family"], about["paper"], about["url"]) for about in facts))


def _model_cells(entry: Entry) -> tuple[Cell, ...]:
    results = list(entry.model.results.values())
    card: ModelCard | None = results[0].card() or card_of(results[0])
    own = entry.model.key[2] == "embark"
    size = short_count(card.parameters) if card and card.parameters is not None else UNKNOWN
    return (
        entry.model.model,
        entry.model.revision or UNKNOWN,
        entry.model.source,
        card.dtype if card and own else UNKNOWN,
        Exact(card.parameters if card else None, size),
        Exact(len(results), f"{len(results)} of {entry.model.mean.of}"),
        _dates(results) or UNKNOWN,
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


def _dates(results: Sequence[TaskResult]) -> str:
    """The first and the last day of results; empty where they have none."""
    days = sorted({datetime.fromtimestamp(r.date, UTC).strftime("%Y-%m-%d") for r in results if r.date})
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""


def _known_columns(table: Table) -> Table:
    """The columns in which anything is known."""
    columns = zip(*(row.cells for row in table.rows), strict=True)
    known = [any(shown(cell) != UNKNOWN for cell in column) for column in columns]
    return table.only(name for name, is_known in zip(table.columns, known, strict=True) if is_known)


def _protocol_cells(task: Task, results: Sequence[TaskResult]) -> tuple[Cell, ...]:
    first, *_ = results
    prints = _fingerprints(task, results)
    items = sum(record.counts.get("items", 0) for record in first.records)
    revision = first.dataset_revision or task.source.revision
    return (
        task.name,
        task.metric,
        task.protocol,
        public_row(task).source.id,
        revision[:REVISION],
        Exact(items or None, f"{items:,}" if items else UNKNOWN),
        next(iter(prints.values()), UNKNOWN),
    )


def _fingerprints(task: Task, results: Sequence[TaskResult]) -> dict[str, str]:
    """Fingerprints of the first splits and subsets: those of your records, else of the row."""
    records = [record for result in results if result.made_by == "embark" for record in result.records]
    prints = {f"{record.split}/{record.subset}": record.fingerprint for record in records}
    return dict(list((prints or fingerprints(task)).items())[:SHOWN_PARTS])


def _task_facts(task: Task, results: Sequence[TaskResult]) -> Iterator[tuple[str, str]]:
    """What decides a score, in words."""
    stated = row_facts(public_row(task))
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
