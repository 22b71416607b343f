"""What the values of the seams declare, as tables: columns, options, parameters. Also as the page docs/readers.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias

from embark import evaluators
from embark.catalogue import check_name
from embark.data.readers import READERS, ReaderFacts, _table, reader_facts
from embark.data.tasks_file import METRICS
from embark.evaluators import EVALUATORS
from embark.results.table import Noted, Row, Table
from embark.types import Option

PAGE = """\
# Readers and evaluators

What a row of a task may state, by its `reader` (what the tables look like) and its `evaluator` (what is measured). The
page is made of what the code declares (`make docs`); `embark show --reader paired` and `embark show --evaluator pairs`
print the same, and so does `embark.reference("reader", "paired")`. [data.md](data.md) has an example of each.
"""
OPTION_HEADS = ("option", "value", "meaning")
Kind: TypeAlias = Literal["reader", "evaluator", "loader", "rule", "study"]
REGISTRIES: Mapping[Kind, str] = {  # imported at use
    "reader": "embark.data.readers:READERS",
    "evaluator": "embark.evaluators:EVALUATORS",
    "loader": "embark.models:LOADERS",
    "rule": "embark.boards.rules:RULES",
    "study": "embark.studies:STUDIES",
}
HEADS = {  # of a table of all values: the field that stands beside the name
    "reader": "evaluators", "evaluator": "readers", "loader": "kind", "rule": "by", "study": "needs",
}  # fmt: skip
PARTS = {"columns": "column", "options": "option", "params": "parameter"}  # entries of a field that is a mapping


@dataclass(frozen=True)
class Entry:
    """A column, option or parameter that a value of a seam declares, or another field of it."""

    part: str  # "column", "option", "parameter", or "field"
    name: str
    values: str
    about: str


@dataclass(frozen=True)
class Reference(Noted):
    """What a value of a seam declares, or all of its kind (`name` is empty, `rows` are their names)."""

    kind: Kind
    name: str
    about: str
    entries: tuple[Entry, ...] = ()
    rows: Mapping[str, tuple[str, ...]] | None = None

    def table(self) -> Table:
        """One row for each column, option, parameter and other field; of all of a kind, one row for each of them."""
        if self.rows is not None:
            rows = tuple(Row((name, *cells)) for name, cells in self.rows.items())
            return Table((self.kind, HEADS[self.kind], "meaning"), rows)
        lines = tuple(Row((entry.part, entry.name, entry.values, entry.about)) for entry in self.entries)
        return Table(("part", "name", "value", "meaning"), lines)


def reference(kind: Kind = "reader", name: str | None = None) -> Reference:
    """What a reader, evaluator, loader, rule or study declares: columns, options, parameters and other fields.

    Without a name, all of that kind, those of plug-ins too.
    """
    check_name("kind of reference", kind, REGISTRIES)
    if kind == "reader":
        return _reader(reader_facts(name)) if name else _readers()
    if kind == "evaluator":
        return _evaluator(name) if name else _evaluators()
    values: Mapping[str, Any] = resolve_name(REGISTRIES[kind])
    if name:
        return Reference(kind, name, _about(values[name]), tuple(_declared(values[name])))
    rows = {key: (_text(getattr(value, HEADS[kind])), _first(_about(value))) for key, value in values.items()}
    return Reference(kind, "", "", rows=rows)


def _about(value: Any) -> str:
    """What a value of a seam is about; of a loader, nothing."""
    return str(_fields(value).get("about", ""))


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a value of a seam by name."""
    if hasattr(value, "_asdict"):
        return dict(value._asdict())
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _declared(value: Any) -> Iterator[Entry]:
    """An entry for each column, option and parameter of a value of a seam, and for each other field with a content."""
    for name, fact in _fields(value).items():
        if isinstance(fact, Mapping):
            for key, item in fact.items():
                texts = (item.values, item.about) if isinstance(item, Option) else ("", str(item))
                yield Entry(PARTS.get(name, name), key, *texts)
        elif name not in ("name", "about") and not (fact is None or fact is False or fact in ("", ())):
            yield Entry("field", name, _text(fact), "")


def _text(value: Any) -> str:
    """A declared fact in words: a function or a type by its name, a value by its own fields."""
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    if is_dataclass(value) and not isinstance(value, type):
        return "; ".join(f"{name}: {_text(fact)}" for name, fact in _fields(value).items())
    if isinstance(value, type):
        return value.__name__
    return f"{value.__module__}:{value.__qualname__}" if callable(value) else str(value)


def page() -> str:
    """The text of docs/readers.md: every reader for own data, and every evaluator."""
    facts = [reader_facts(name) for name in READERS]
    own = [reader for reader in facts if reader.own]
    others = [reader for reader in facts if not reader.own]
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


def _reader_section(facts: ReaderFacts) -> list[str]:
    columns = [(f"`{name}`", about) for name, about in facts.columns.items()]
    own = {name: option for name, option in facts.options.items() if _table.OPTIONS.get(name) != option}
    tables = (_markdown(("column", "holds"), columns), _markdown(OPTION_HEADS, _options(own)))
    return [f"### {facts.name}\n", _prose(facts.about), *filter(None, tables)]


def _evaluator_section(kind: str) -> list[str]:
    params = _markdown(("parameter", *OPTION_HEADS[1:]), _options(evaluators.own_params(kind)))
    usual = f"Its usual measure is `{METRICS[kind]}`.\n"
    return [f"### Evaluator {kind}\n", _prose(evaluators.about(kind)), usual, *filter(None, [params])]


def _reader(facts: ReaderFacts) -> Reference:
    entries = tuple(entry for entry in _declared(facts) if entry.part in PARTS.values())
    note = () if facts.own else ("Its rows come with embark; it declares no options, as it is for one benchmark.",)
    return Reference("reader", facts.name, facts.about, entries, notes=note)


def _readers() -> Reference:
    own = [facts for facts in map(reader_facts, READERS) if facts.own]
    rows = {facts.name: (", ".join(facts.evaluators), _first(facts.about)) for facts in own}
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
    return [name for name in READERS if kind in reader_facts(name).evaluators]


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
