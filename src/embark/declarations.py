"""What the values of the seams declare, as tables: columns, options, parameters. Also as the page docs/readers.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias

from embark.catalogue import check_name, group_values
from embark.readers import READERS, _table
from embark.registries import EVALUATORS
from embark.results.table import Noted, Row, Table
from embark.seams import AT_K, Evaluator, Reader
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
    "reader": "embark.readers:READERS",
    "evaluator": "embark.registries:EVALUATORS",
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
    """A column, option, parameter or measure that a value of a seam declares, or another field of it."""

    part: str  # "column", "option", "parameter", "measure", or "field"
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
        return _reader(READERS[name]) if name else _readers()
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
        f"The metric of a row that names none is {evaluator.main}{', and k is any whole number from 1' * any_cutoff}.",
        f"The truth is {kinds}. The score by chance {chance}.",
    )


def _reader(reader: Reader) -> Reference:
    entries = tuple(entry for entry in _declared(reader) if entry.part in PARTS.values())
    note = () if reader.own else ("Its rows come with embark; it declares no options, as it is for one benchmark.",)
    return Reference("reader", reader.name, reader.about, entries, notes=note)


def _readers() -> Reference:
    own = [reader for reader in READERS.values() if reader.own]
    rows = {reader.name: (", ".join(reader.evaluators), _first(reader.about)) for reader in own}
    others = ", ".join(name for name in READERS if name not in rows)
    return Reference("reader", "", "", rows=rows, notes=(f"Readers of one benchmark: {others}.",))


def _evaluator(kind: str) -> Reference:
    evaluator = EVALUATORS[kind]
    params = [Entry("parameter", name, option.values, option.about) for name, option in evaluator.params.items()]
    measures = [Entry("measure", name, "", f"statistic: {how}") for name, how in evaluator.measures.items()]
    notes = (" ".join(_evaluator_facts(evaluator)), f"Readers: {', '.join(_serving(kind)) or 'none for own data'}.")
    return Reference("evaluator", kind, evaluator.about, (*params, *measures), notes=notes)


def _evaluators() -> Reference:
    rows = {kind: (", ".join(_serving(kind)), _first(EVALUATORS[kind].about)) for kind in EVALUATORS}
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
