"""Reports that are kept in the results folder (`save_report`), as the page shows them: texts, tables, figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from embark.paths import leads_out
from embark.redaction import Markup
from embark.site.scripts import minute, slug

MOST_REPORTS = 60  # reports, the newest
LARGEST_BYTES = 16_000_000  # bytes of a file
SECTIONS = 40
COLUMNS = 40
MOST_ROWS = 400
LETTERS = 2_000  # of a text
FIGURE = 2_000_000  # letters of a figure
WORDS = ("kind", "title", "model", "revision", "verdict")


def report_data(folder: Path) -> list[dict[str, Any]]:
    """The reports, newest first; a file that is none, or a link to another place, is left out."""
    reports = []
    for path in [] if leads_out(folder, folder.parent) else sorted(folder.glob("*.json")):
        try:
            if path.is_file() and path.stat().st_size <= LARGEST_BYTES and not leads_out(path, folder):
                reports.append(_report(path.stem, json.loads(path.read_bytes())))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
    return sorted(reports, key=lambda report: -report["time"])[:MOST_REPORTS]


def heading(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the page knows of a report before it is opened."""
    return {name: report[name] for name in ("file", "date", *WORDS)}


def _report(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    written = float(content["date"])
    return {name: _text(content.get(name, "")) for name in WORDS} | {
        "file": slug(name),
        "time": written,
        "date": minute(written),
        "sentences": _texts(content["sentences"]),
        "sections": [_section(section) for section in islice(content["sections"], SECTIONS)],
    }


def _section(section: Mapping[str, Any]) -> dict[str, Any]:
    figure = str(section["figure"]).encode("utf-8", "replace").decode()
    return {
        "title": _text(section["title"]),
        "columns": _texts(section["columns"]),
        "rows": [
            (_text(name), bool(total), _texts(cells)) for name, total, cells in islice(section["rows"], MOST_ROWS)
        ],
        "notes": _texts(section["notes"]),
        "caption": _text(section["caption"]),
        "figure": Markup(figure if len(figure) <= FIGURE else ""),
    }


def _texts(values: Iterable[Any]) -> list[str]:
    return [_text(value) for value in islice(values, COLUMNS)]


def _text(value: Any) -> str:
    return str(value)[:LETTERS]
