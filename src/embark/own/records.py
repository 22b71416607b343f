"""Data of other libraries as rows: frames, tables, data sets of torchvision and `datasets`, lists of rows or pairs.

Libraries are recognised by what their objects have, so that none of them need be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from embark.types import EmbarkError

BATCH = 256  # rows of an Arrow table taken at a time
HEAD_ROWS = 50  # rows looked at to learn what columns hold
PAIR = ("item", "label")  # the columns of (item, label)
TRIPLE = ("left", "right", "score")  # the columns of (left, right, score)

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Records:
    """The rows of one split. `head` are the first of them, `class_names` the names behind the numbers of a column."""

    columns: tuple[str, ...]
    head: tuple[Record, ...]
    rest: Iterator[Record]
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Record]:
        return chain(self.head, self.rest)

    def sample(self, column: str) -> Any:
        """The first value of a column that is not missing; None where the first rows have none."""
        return next((cell for row in self.head if (cell := plain(row.get(column))) is not None), None)

    def all_different(self, column: str) -> bool:
        """Whether the first rows all have different texts in a column."""
        cells = [row.get(column) for row in self.head]
        return len(cells) > 1 and all(isinstance(cell, str) for cell in cells) and len({*cells}) == len(cells)


def splits(data: Any) -> dict[str, Records]:
    """The rows by split: of a mapping {"train": …, "test": …} each; anything else is one split, called ""."""
    if isinstance(data, Mapping):
        if not data:
            raise EmbarkError("There are no splits in an empty mapping.")
        return {str(split): records(rows) for split, rows in data.items()}
    return {"": records(data)}


def records(data: Any) -> Records:
    """The rows of a frame, table, data set, or sequence of rows or pairs; each is read once, in order."""
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):  # a LazyFrame of polars
        data = data.collect()
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return _records(_arrow_rows([data]), data.schema.names)
    if hasattr(data, "features") and hasattr(data, "with_format"):  # of `datasets`: media as they are stored
        return _of_datasets(data)
    if hasattr(data, "iter_rows") and hasattr(data, "columns"):  # polars
        return _records(data.iter_rows(named=True), data.columns)
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        cells = zip(*(data[name] for name in data.columns), strict=True)
        return _records((dict(zip(map(str, data.columns), row, strict=True)) for row in cells), data.columns)
    if isinstance(data, (str, bytes)) or not (hasattr(data, "__getitem__") or isinstance(data, Iterable)):
        raise EmbarkError(
            f"No task can be made of {type(data).__name__}: give a frame, a table, a data set, a list of rows "
            "(dictionaries) or of (item, label), a mapping of splits to these, or the id of a data set of the hub."
        )
    rows = _records(_named(_sequence(data)))
    classes = getattr(data, "classes", None) or getattr(getattr(data, "dataset", None), "classes", None)
    if classes is not None and rows.columns == PAIR and isinstance(rows.sample("label"), int):
        return replace(rows, class_names={"label": tuple(map(str, classes))})
    return rows


def plain(cell: Any) -> Any:
    """A cell as Python has it: None for what frames call missing, numbers and lists for those of numpy."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell):
        return None
    if getattr(cell, "shape", None) == () and hasattr(cell, "item"):  # a number of numpy or torch
        return plain(cell.item())
    return cell


def _records(rows: Iterable[Record], columns: Iterable[Any] = ()) -> Records:
    names = list(map(str, columns))
    if repeated := [name for name in names if names.count(name) > 1]:
        raise EmbarkError(f"Several columns are named '{repeated[0]}': give each a name of its own.")
    rest = iter(rows)
    head = tuple(islice(rest, HEAD_ROWS))
    if not head:
        raise EmbarkError("The data has no rows.")
    return Records(tuple(names) or tuple(dict.fromkeys(chain(*head))), head, rest)


def _arrow_rows(tables: Iterable[Any]) -> Iterator[Record]:
    for table in tables:
        for start in range(0, table.num_rows, BATCH):
            yield from table.slice(start, BATCH).to_pylist()


def _of_datasets(data: Any) -> Records:
    features = data.features or {}
    rows = _records(_arrow_rows(data.with_format("arrow").iter(batch_size=BATCH)), features)
    kinds = {name: getattr(kind, "feature", kind) for name, kind in features.items()}  # of lists, what they hold
    return replace(rows, class_names={name: tuple(k.names) for name, k in kinds.items() if getattr(k, "names", None)})


def _sequence(data: Any) -> Iterator[Any]:
    """The elements of a sequence or an iterable."""
    samples = getattr(data, "samples", None)
    if isinstance(samples, Sequence) and getattr(data, "transforms", None) is None and hasattr(data, "loader"):
        return ((Path(path), label) for path, label in samples)  # of torchvision's ImageFolder: the files themselves
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):  # some data sets never raise IndexError
        return (data[number] for number in range(len(data)))
    return iter(data)


def _named(elements: Iterator[Any]) -> Iterator[Record]:
    """Rows with the names of columns: those of dictionaries, `PAIR` or `TRIPLE`."""
    for number, element in enumerate(elements):
        if isinstance(element, Mapping):
            yield {str(name): cell for name, cell in element.items()}
        elif isinstance(element, (tuple, list)) and len(element) in (2, 3):
            yield dict(zip(PAIR if len(element) == 2 else TRIPLE, element, strict=True))
        else:
            size = f" of {len(element)}" if isinstance(element, (tuple, list)) else ""
            raise EmbarkError(
                f"Row {number} is a {type(element).__name__}{size}: rows are dictionaries, (item, label) or "
                "(left, right, score), and a mapping is one of splits to rows."
            )
