"""An analysis: what every study returns, a table to read and a drawing of it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from embark.tables import Noted, Table
from embark.tables.drawing import Drawn


@dataclass(frozen=True)
class Analysis(Noted, Drawn):
    """The result of a study: `print` shows its table, a notebook its table and its drawing.

    `notes` tell which scores were used and what was left out; the table has notes of its own on how to read it.
    """

    @abstractmethod
    def table(self) -> Table:
        """The numbers, with notes on how to read them."""
