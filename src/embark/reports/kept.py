"""Reports that are kept with the results, where the page shows them: examinations, verifications, analyses, diagnoses.

    results/reports/verify-1a2b3c4d.json

Each is one file of JSON, with its figures as SVG. A report with the title, model and revision of another replaces it.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embark.atomic import atomically
from embark.run.examination import Examination
from embark.run.verification import Verification
from embark.settings import Settings, load_settings
from embark.studies.analysis import Analysis
from embark.studies.ark import ArkDiagnosis
from embark.studies.diagnosis import Diagnosis
from embark.tables import Table, shown
from embark.tables.drawing import Drawn
from embark.types import EmbarkError

FOLDER = "reports"  # of the results folder


@dataclass(frozen=True)
class _Content:
    """What a report says besides its date; `model` is empty where it is about several, or about this machine."""

    kind: str
    title: str
    sentences: tuple[str, ...]
    sections: list[dict[str, Any]]
    verdict: str = ""
    model: str = ""
    revision: str = ""


def save_report(report: Examination | Verification | Analysis | Diagnosis, *, settings: Settings | None = None) -> Path:
    """Keep what `doctor`, `verify`, a study or a diagnosis returned in the results folder; returns the file.

    `export_site` and `serve` show it: on the page of its model, or beside the runs.
    """
    content = _content(report)
    identity = "\0".join((content.kind, content.title, content.model, content.revision))
    name = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    path = (settings or load_settings()).results / FOLDER / f"{content.kind}-{name}.json"
    try:
        with atomically(path) as out:
            out.write(json.dumps({"date": time.time(), **vars(content)}).encode())
    except OSError as error:
        raise EmbarkError(f"The report cannot be written to {path} ({error.strerror}): set --results.") from error
    return path


def _content(report: Examination | Verification | Analysis | Diagnosis) -> _Content:
    if isinstance(report, Examination):
        identity = (report.card.name, report.card.revision) if report.card else ("", "")
        verdict = "faults" if report.faults else "no faults"
        title = f"Examination of {report.model}" if report.card else "Examination of the machine"
        return _Content("doctor", title, (report.sentence(),), [_section("", report.table())], verdict, *identity)
    if isinstance(report, Verification):
        results = [check.scores.result for check in report.checks if check.scores is not None]
        revision = results[0].revision if results else ""
        section = _section("", report.table(), report)
        sentences = (report.sentence(), *report.notes)
        return _Content("verify", report.title, sentences, [section], report.verdict, report.model, revision)
    if isinstance(report, Diagnosis):
        sections = [_section(part.title, part.table(), part, part.caption) for part in report.analyses.values()]
        kind = type(report).__name__.removesuffix("Diagnosis").lower()
        identity = (report.model, report.revision) if isinstance(report, ArkDiagnosis) else ("", "")
        return _Content(kind, report.title, (*report.findings, *report.notes), sections, "", *identity)
    section = _section("", report.table(), report)
    return _Content(type(report).__name__.lower(), report.title, report.notes, [section])


def _section(title: str, table: Table, drawn: Drawn | None = None, caption: str = "") -> dict[str, Any]:
    """A table as texts, and its figure as SVG; empty where there is none, or no matplotlib to draw it."""
    try:
        figure = drawn.svg() if drawn else ""
    except EmbarkError:
        figure = ""
    rows = [(row.section, row.total, [shown(cell) for cell in row.cells]) for row in table.rows]
    return {
        "title": title,
        "columns": table.columns,
        "rows": rows,
        "notes": table.note_lines(advice=False),
        "figure": figure,
        "caption": caption,
    }
