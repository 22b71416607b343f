"""Columns, options, parameters and other facts that values of the seams declare, as tables and as docs/readers.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias

from embark.catalogue import check_name, group_values
from embark.readers import READERS, _table
from embark.registries import EVALUATORS
from embark.seams import AT_K, Evaluator, Reader
from embark.tables import Noted, Row, Table
from embark.types import Option

PAGE = """\
# Readers and evaluators

The fields of a task's row depend on its `reader` (the format of the tables) and its `evaluator` (what is measured).
This page is generated from the declarations in the code (`make docs`). `embark show --reader paired`,
`embark show --evaluator pairs` and `embark.seams.reference("reader", "paired")` print the same. [data.md](data.md) has
an example of each.
"""
OPTION_HEADS = ("option", "value", "meaning")
Kind: TypeAlias = Literal["reader", "evaluator", "loader", "rule", "study"]
SEAMS: Mapping[Kind, tuple[str, str]] = {  # the registry, imported at use; what stands beside names in a table of all
    "reader": ("embark.readers:READERS", "evaluators"),
    "evaluator": ("embark.registries:EVALUATORS", "readers"),
    "loader": ("embark.models:LOADERS", "kind"),
    "rule": ("embark.boards.rules:RULES", "by"),
    "study": ("embark.studies:STUDIES", "needs"),
}
SHOWN = {Reader: ("columns", "options"), Evaluator: ("params", "measures")}  # fields; of other seams, all
PARTS = {"columns": "column", "options": "option", "params": "parameter", "measures": "measure"}  # of fields that map


@dataclass(frozen=True)
class DeclaredValue:
    """A column, option, parameter or measure that a value of a seam declares, or another field of it."""

    part: str  # "column", "option", "parameter", "measure", or "field"
    name: str
    values: str
    about: str


@dataclass(frozen=True)
class Reference(Noted):
    """The declarations of a value of a seam, or the names of all of its kind (in `rows`, and `name` is empty)."""

    kind: Kind
    name: str
    about: str
    entries: tuple[DeclaredValue, ...] = ()
    rows: Mapping[str, tuple[str, ...]] | None = None

    def table(self) -> Table:
        """One row for each column, option, parameter and other field; of all of a kind, one row for each of them."""
        if self.rows is not None:
            rows = tuple(Row((name, *cells)) for name, cells in self.rows.items())
            return Table((self.kind, SEAMS[self.kind][1], "meaning"), rows)
        lines = tuple(Row((entry.part, entry.name, entry.values, entry.about)) for entry in self.entries)
        return Table(("part", "name", "value", "meaning"), lines)


def reference(kind: Kind = "reader", name: str | None = None) -> Reference:
    """The columns, options, parameters and other fields of a reader, evaluator, loader, rule or study.

    Without a name, all of that kind, those of plug-ins too.
    """
    check_name("kind of reference", kind, SEAMS)
    registry, head = SEAMS[kind]
    values: Mapping[str, Any] = resolve_name(registry)
    if name:
        value = values[name]
        return Reference(kind, name, _about(value), tuple(_declared(value)), notes=tuple(_notes(value)))
    listed = {key: value for key, value in values.items() if not isinstance(value, Reader) or value.own}
    rows = {
        key: (", ".join(_readers_for(key)) if head == "readers" else _text(getattr(value, head)), _first(_about(value)))
        for key, value in listed.items()
    }
    others = ", ".join(key for key in values if key not in listed)
    return Reference(kind, "", "", rows=rows, notes=(f"Readers of one benchmark: {others}.",) if others else ())


def _about(value: Any) -> str:
    """The description of a value of a seam; a loader has none."""
    return str(vars(value).get("about", ""))


def _declared(value: Any) -> Iterator[DeclaredValue]:
    """An entry for each column, option, parameter and measure of a value of a seam, and for other fields it has."""
    for name in SHOWN.get(type(value), vars(value)):
        fact = getattr(value, name)
        if isinstance(fact, Mapping):
            for key, item in fact.items():
                text = f"statistic: {item}" if name == "measures" else str(item)
                texts = (item.values, item.about) if isinstance(item, Option) else ("", text)
                yield DeclaredValue(PARTS.get(name, name), key, *texts)
        elif name not in ("name", "about") and not (fact is None or fact is False or fact in ("", ())):
            yield DeclaredValue("field", name, _text(fact), "")


def _notes(value: Any) -> Iterator[str]:
    """Sentences about a reader or an evaluator that its entries do not show."""
    if isinstance(value, Reader) and not value.own:
        yield "It declares no options: it is for one benchmark, whose rows come with it."
    if isinstance(value, Evaluator):
        yield " ".join(_evaluator_facts(value))
        yield f"Readers: {', '.join(_readers_for(value.name)) or 'none for own data'}."


def _readers_for(evaluator: str) -> list[str]:
    """The readers for own data that an evaluator works with."""
    return [name for name, reader in READERS.items() if reader.own and evaluator in reader.evaluators]


def _text(value: Any) -> str:
    """A declared fact in words: a function or a type by its name, a value by its own fields."""
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, type):
        return value.__name__
    if is_dataclass(value):
        return "; ".join(f"{name}: {_text(fact)}" for name, fact in vars(value).items())
    return f"{value.__module__}:{value.__qualname__}" if callable(value) else str(value)


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
            "All readers of tables have these options; most also have options of their own.\n",
            _markdown(OPTION_HEADS, _options(_table.OPTIONS)),
            *(line for reader in own for line in _reader_section(reader)),
            "## Evaluators\n",
            *(line for kind in EVALUATORS.own for line in _evaluator_section(EVALUATORS[kind])),
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


def _evaluator_section(evaluator: Evaluator) -> list[str]:
    params = _markdown(("parameter", *OPTION_HEADS[1:]), _options(evaluator.params))
    by_statistic = group_values((how, f"`{name}`") for name, how in evaluator.measures.items())
    measures = _markdown(("measures", "statistic"), [(", ".join(names), how) for how, names in by_statistic.items()])
    facts = "\n".join(_evaluator_facts(evaluator)) + "\n"
    return [f"### Evaluator {evaluator.name}\n", _prose(evaluator.about), facts, *filter(None, [params]), measures]


def _evaluator_facts(evaluator: Evaluator) -> tuple[str, ...]:
    """Sentences about the metric, the truth and the level of chance."""
    any_cutoff = any(name.endswith(AT_K) for name in evaluator.measures)
    kinds = " or ".join(kind.__name__ for kind in evaluator.truth)
    chance = "depends on the data" if evaluator.chance is None else f"is {evaluator.chance:g}"
    return (
        f"The default metric is {evaluator.main}{', and k is any whole number from 1' * any_cutoff}.",
        f"The truth is {kinds}. The chance level {chance}.",
    )


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
