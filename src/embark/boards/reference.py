"""The reference of readers and evaluators, made of what they declare: columns, options, parameters. Also as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from embark import evaluators
from embark.catalogue import check_name
from embark.data.readers import READERS, _table
from embark.data.tasks_file import METRICS
from embark.evaluators import EVALUATORS
from embark.results.table import Noted, Row, Table
from embark.seams import Reader
from embark.types import Option

PAGE = """\
# Readers and evaluators

What a row of a task may state, by its `reader` (what the tables look like) and its `evaluator` (what is measured). The
page is made of what the code declares (`make docs`); `embark show --reader paired` and `embark show --evaluator pairs`
print the same, and so does `embark.reference("reader", "paired")`. [data.md](data.md) has an example of each.
"""
OPTION_HEADS = ("option", "value", "meaning")


@dataclass(frozen=True)
class Entry:
    """A column, option or parameter of a reader or evaluator."""

    part: Literal["column", "option", "parameter"]
    name: str
    values: str
    about: str


@dataclass(frozen=True)
class Reference(Noted):
    """What is declared about a reader or evaluator, or about all of them (`name` is empty, `rows` are their names)."""

    kind: Literal["reader", "evaluator"]
    name: str
    about: str
    entries: tuple[Entry, ...] = ()
    rows: Mapping[str, tuple[str, ...]] | None = None

    def table(self) -> Table:
        """One row for each column, option and parameter; of all readers or evaluators, one row for each of them."""
        if self.rows is not None:
            partners = "evaluators" if self.kind == "reader" else "readers"
            rows = tuple(Row((name, *cells)) for name, cells in self.rows.items())
            return Table((self.kind, partners, "meaning"), rows)
        lines = tuple(Row((entry.part, entry.name, entry.values, entry.about)) for entry in self.entries)
        return Table(("part", "name", "value", "meaning"), lines)


def reference(kind: Literal["reader", "evaluator"] = "reader", name: str | None = None) -> Reference:
    """The columns and options of a reader, or the parameters of an evaluator; without a name, all that there are."""
    check_name("kind of reference", kind, ("reader", "evaluator"))
    if kind == "reader":
        return _reader(READERS[name]) if name else _readers()
    return _evaluator(name) if name else _evaluators()


def page() -> str:
    """The text of docs/readers.md: every reader for own data, and every evaluator."""
    own = [reader for reader in READERS.values() if reader.own]
    others = [reader for reader in READERS.values() if not reader.own]
    summaries = [(f"`{reader.name}`", ", ".join(reader.evaluators), _first(reader.about)) for reader in own]
    return "\n".join(
        [
            PAGE,
            "## Readers\n",
            _markdown(("reader", "evaluators", "what its rows are"), summaries),
            "Every reader of tables has these options; each has its own besides them.\n",
            _markdown(OPTION_HEADS, _options(_table.OPTIONS)),
            *(line for reader in own for line in _reader_section(reader)),
            "## Evaluators\n",
            *(line for kind in EVALUATORS for line in _evaluator_section(kind)),
            "## Readers of one benchmark\n",
            "Their rows come with embark, and their options are not for other data.\n",
            _markdown(("reader", "what its rows are"), [(f"`{other.name}`", _first(other.about)) for other in others]),
        ]
    ).rstrip("\n")


def _reader_section(reader: Reader) -> list[str]:
    columns = [(f"`{name}`", about) for name, about in reader.columns.items()]
    own = {name: option for name, option in (reader.options or {}).items() if _table.OPTIONS.get(name) != option}
    tables = (_markdown(("column", "holds"), columns), _markdown(OPTION_HEADS, _options(own)))
    return [f"### {reader.name}\n", _prose(reader.about), *filter(None, tables)]


def _evaluator_section(kind: str) -> list[str]:
    params = _markdown(("parameter", *OPTION_HEADS[1:]), _options(evaluators.own_params(kind)))
    usual = f"Its usual measure is `{METRICS[kind]}`.\n"
    return [f"### Evaluator {kind}\n", _prose(evaluators.about(kind)), usual, *filter(None, [params])]


def _reader(reader: Reader) -> Reference:
    columns = [Entry("column", name, "", about) for name, about in reader.columns.items()]
    options = [Entry("option", name, option.values, option.about) for name, option in (reader.options or {}).items()]
    note = () if reader.own else ("Its rows come with embark; it declares no options, as it is for one benchmark.",)
    return Reference("reader", reader.name, reader.about, (*columns, *options), notes=note)


def _readers() -> Reference:
    own = [reader for reader in READERS.values() if reader.own]
    rows = {reader.name: (", ".join(reader.evaluators), _first(reader.about)) for reader in own}
    others = ", ".join(name for name in READERS if name not in rows)
    return Reference("reader", "", "", rows=rows, notes=(f"Readers of one benchmark: {others}.",))


def _evaluator(kind: str) -> Reference:
    params = evaluators.own_params(kind)
    entries = [Entry("parameter", name, option.values, option.about) for name, option in params.items()]
    metric = f"Its usual measure is {METRICS[kind]}; readers: {', '.join(_serving(kind))}."
    return Reference("evaluator", kind, evaluators.about(kind), tuple(entries), notes=(metric,))


def _evaluators() -> Reference:
    rows = {kind: (", ".join(_serving(kind)), _first(evaluators.about(kind))) for kind in EVALUATORS}
    return Reference("evaluator", "", "", rows=rows)


def _serving(kind: str) -> list[str]:
    """The readers for own data that an evaluator works with."""
    return [name for name, reader in READERS.items() if reader.own and kind in reader.evaluators]


def _options(options: Mapping[str, Option]) -> list[tuple[str, ...]]:
    return [(f"`{name}`", option.values, option.about) for name, option in options.items()]


def _first(text: str) -> str:
    """The first paragraph, as one line."""
    return " ".join(text.split("\n\n")[0].split())


def _prose(text: str) -> str:
    """A docstring as paragraphs; Markdown takes <name> for HTML."""
    return text.replace("<", "\\<") + "\n"


def _markdown(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table; nothing where it has no rows."""
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    lines = [heads, ("---",) * len(heads), *cells] if rows else []
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    print(page())
