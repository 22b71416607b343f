"""docs/proof.md: the rows that the tests of real weights measured, and what differs from the committed page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

NUMBER = re.compile(r"[+-]?\d+\.\d+")
PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
SCORES, MTEB, VECTORS, LENGTHS, PICTURES, SOUNDS = "scores", "mteb", "vectors", "lengths", "pictures", "sounds"
HEAD = """# Proof with real weights

Real checkpoints against published scores, and against other programs on the same data. `make proof` measures and writes
this page. `make test-real` measures it again and fails if a number differs by more than one unit of its last digit.

Weights are downloaded with pinned hashes. The sets of the published scores are read from the folder that
`EMBARK_REAL_DATA` names; without it, `make test-real` lists their rows as not checked. Scores are in points (of 100).
"""
TABLES = {  # table → (heading, what it shows, columns)
    SCORES: (
        "Published scores",
        "all-MiniLM-L6-v2 by each loader. Published are the public results of mteb for STSBenchmark (Spearman "
        "correlation of cosines) and Banking77Classification (accuracy of 10 probes, each of 8 texts a class), and "
        "what mteb 2.26.24 gives on the same files for LIMIT-small (nDCG@10). The int8 weights are rounded from the "
        "published ones. The tasks are [tasks.toml](../tests/real/tasks.toml), which lies beside the data.",
        ("weights", "loader", "task", "published", "embark", "difference", "command"),
    ),
    MTEB: (
        "mteb beside embark",
        "mteb 2.26.24 and embark score one SentenceTransformer object on the same files, each with batches of its own.",
        ("model", "task", "mteb", "embark", "difference", "command"),
    ),
    VECTORS: (
        "Vectors of the loaders",
        "The smallest cosine between a loader's vector of a text and that of `sentence-transformers`, over texts of "
        "5, 15, 140, 200 and 600 words. Every card states a length of 256 tokens. The suite fails below 0.9999, or "
        "0.98 for int8.",
        ("weights", "loader", "smallest cosine"),
    ),
    LENGTHS: (
        "Lengths of texts",
        "The longest text that each folder's own files state. What is beyond it does not change the vector.",
        ("weights", "loader", "tokens", "stated by"),
    ),
    PICTURES: (
        "Images",
        "EfficientNet-Lite0 as a function of a test, on 1,200 images of Fashion-MNIST. scikit-learn scores the same "
        "vectors, without embark's readers, store and evaluators.",
        ("task", "measure", "scikit-learn", "embark", "difference", "command"),
    ),
    SOUNDS: (
        "Voices",
        "Resemblyzer 0.1.4 (Apache-2.0) as a function of a test: which of the six voices of the pocket's speech is it? "
        "The voices are synthetic. scikit-learn scores the same vectors.",
        ("task", "measure", "scikit-learn", "embark", "difference", "command"),
    ),
}


class Row(NamedTuple):
    """A line of one of the page's tables."""

    table: str
    cells: tuple[str, ...]

    @property
    def line(self) -> str:
        return f"| {' | '.join(self.cells)} |"


def page(measured: Iterable[Row]) -> str:
    """The page of these rows."""
    ordered = sorted(set(measured))
    parts = [HEAD]
    for table, (heading, text, columns) in TABLES.items():
        lines = [row.line for row in ordered if row.table == table]
        rule = "| --- " * len(columns) + "|"
        parts.append("\n".join([f"## {heading}\n\n{fill(text, 120)}\n", Row(table, columns).line, rule, *lines, ""]))
    return "\n".join(parts)


def rows(text: str) -> list[Row]:
    """The rows of a page."""
    tables = {heading: table for table, (heading, _, _) in TABLES.items()}
    parts = [part.partition("\n") for part in text.split("\n## ")[1:]]
    lines = [(tables[heading], line) for heading, _, part in parts for line in part.splitlines() if line[:2] == "| "]
    found = [Row(table, tuple(line.strip("| ").split(" | "))) for table, line in lines if "---" not in line]
    return [row for row in found if row.cells != TABLES[row.table][2]]


def differences(measured: Iterable[Row], committed: str) -> tuple[list[str], list[str]]:
    """(what was measured and is otherwise on the committed page, the page's lines that were not measured)."""
    unmeasured = {_words(row.line): row.line for row in rows(committed)}
    wrong = []
    for row in sorted(set(measured)):
        line = unmeasured.pop(_words(row.line), None)
        if line is None or not _agree(row.line, line):
            wrong.append(f"measured {row.line}\n  the page {line or 'has no such row'}")
    return wrong, list(unmeasured.values())


def _words(line: str) -> str:
    """A line without its numbers."""
    return NUMBER.sub("#", line)


def _agree(measured: str, committed: str) -> bool:
    """Whether the numbers differ by at most one unit of the last digit."""
    pairs = zip(NUMBER.findall(measured), NUMBER.findall(committed), strict=True)
    return all(abs(float(one) - float(other)) < 1.5 * 10.0 ** -len(other.partition(".")[2]) for one, other in pairs)
