"""Results that are seen as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from embark.redaction import redacted_value, this_machine
from embark.tables.markup import html_notes
from embark.tables.table import Table
from embark.tables.values import Columnar


class Tabular(Columnar):
    """A value that can be seen as a table: printed, in a notebook, or as columns.

    `notes` tell what was left out, and why; a command prints them beside its table.
    """

    notes: tuple[str, ...]

    def table(self) -> Table:
        """The value as a table."""
        raise NotImplementedError

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """Names of columns and lines of plain values, with full precision."""
        return self.table().flat()

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        table = self.table()
        notes = [note for note in self.notes if note not in table.notes]
        private = this_machine()  # notebooks are shared
        return table.outgoing(private).format("html") + html_notes(redacted_value(notes, private))


@dataclass(frozen=True)
class Noted(Tabular):
    """A value that can be seen as a table, and was made together with its notes."""

    notes: tuple[str, ...] = field(default=(), kw_only=True)
