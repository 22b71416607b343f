"""What all results share: they print as a table, and other libraries read them as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embark.types import EmbarkError

if TYPE_CHECKING:
    import pyarrow as pa

VALUE_CHARACTERS = 60  # characters of a value that a repr shows
SHOWN_ENTRIES = 3  # entries that it shows


class Brief:
    """A data class whose `repr` is a line: its short fields, and how many entries the others have."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # one of the class, which @dataclass keeps

    def __repr__(self) -> str:
        parts = (_brief(field.name, getattr(self, field.name)) for field in fields(self) if field.repr)  # type: ignore[arg-type]
        return f"<{type(self).__name__}: {', '.join(filter(None, parts))}>"


class Columnar(Brief, ABC):
    """A value that is read as columns: by pandas, and by whatever reads Arrow (DuckDB, Polars) without it."""

    @abstractmethod
    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """Names of columns and lines of plain values, with full precision."""

    def to_frame(self) -> Any:
        """The value as a pandas data frame, with full precision."""
        try:
            import pandas
        except ImportError as error:
            raise EmbarkError(
                "Data frames need pandas: pip install pandas. Tables print and export without it, and to_arrow() needs "
                "no pandas."
            ) from error
        names, lines = self.flat()
        return pandas.DataFrame(lines, columns=names)

    def to_arrow(self) -> pa.Table:
        """The value as an Arrow table, with full precision; a column of words and numbers is one of words."""
        import pyarrow as pa

        names, lines = self.flat()
        columns = list(zip(*lines, strict=True)) or [()] * len(names)
        return pa.Table.from_arrays([_array(column) for column in columns], names=names)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The value for libraries that read the PyCapsule interface of Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def by_column(
    rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None
) -> tuple[list[str], list[list[Any]]]:
    """Names of columns and lines of values, from rows as mappings; a value that a row lacks is None."""
    names = list(dict.fromkeys(name for row in rows for name in row) if columns is None else columns)
    return names, [[row.get(name) for name in names] for row in rows]


def _array(values: Sequence[Any]) -> pa.Array:
    """A column of one type."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)  # what is no number is null
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _brief(name: str, value: object) -> str:
    """A field in a few words: its value, or how many entries it has; empty where it is."""
    if isinstance(value, str | int | float | Path):
        text = str(value)
        shown = text if len(text) <= VALUE_CHARACTERS else f"{text[: VALUE_CHARACTERS - 1]}…"
        return f"{name}={shown}" if text else ""
    if (
        isinstance(value, tuple)
        and len(value) <= SHOWN_ENTRIES
        and all(isinstance(entry, str | int | float) for entry in value)
    ):
        return f"{name}={value}" if value and len(str(value)) <= VALUE_CHARACTERS else ""
    shape = getattr(value, "shape", None) or ((len(value),) if isinstance(value, Collection) else ())
    return f"{' × '.join(map(str, shape))} {name}" if any(shape) else ""
