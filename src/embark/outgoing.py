"""The one place through which files leave: pages, reports, cards, exports. Whatever is written here passes the gate.

Files that stay on this machine (results, vectors, caches, states of runs) are written elsewhere, as they need places
and names; `tests/test_outgoing.py` lists the modules that may.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from embark.atomic import atomically
from embark.redaction import Content, Private, redacted, redacted_value, this_machine


def write_text(path: Path, text: str, private: Private | None = None) -> Path:
    """Write a text; one that is marked as `Content` loses only folders of this machine and keys."""
    with atomically(path) as out:
        out.write(redacted(text, private or this_machine()).encode("utf-8", "surrogatepass"))
    return path


@contextmanager
def json_lines_file(path: Path, private: Private | None = None) -> Iterator[Callable[[Mapping[str, Any]], object]]:
    """A file of JSON objects, one a line: the block gets the function that writes one."""
    private = private or this_machine()
    with atomically(path) as out:
        yield lambda row: out.write(f"{json_text(row, private)}\n".encode("utf-8", "surrogatepass"))


def json_text(value: Any, private: Private, **layout: Any) -> str:
    """Plain values as JSON, as it may leave."""
    return json.dumps(redacted_value(value, private), ensure_ascii=False, **layout)


def write_bytes(path: Path, data: bytes) -> Path:
    """Write bytes that hold no text of this machine, or whose texts have passed the gate.

    Those are drawings, which pass it where they are drawn; the page's code; and media of the user's items, unchanged.
    """
    with atomically(path) as out:
        out.write(data)
    return path


@contextmanager
def numbers_file(path: Path) -> Iterator[BinaryIO]:
    """A file for numbers alone."""
    with atomically(path) as out:
        yield out


class ParquetFile:
    """A Parquet file that leaves: its facts pass the gate as words, its columns of text as content."""

    def __init__(self, out: Any, schema: pa.Schema, facts: Mapping[str, str], private: Private | None = None) -> None:
        self.private = private or this_machine()
        self.schema = schema.with_metadata(redacted_value(dict(facts), self.private) or None)
        self.writer = pq.ParquetWriter(out, self.schema, compression="zstd")

    def write(self, columns: list[Any]) -> None:
        """Write some rows, given as one array or list a column."""
        self.writer.write_table(content_table(pa.table(columns, schema=self.schema), self.private))

    def close(self) -> None:
        """Write the end of the file."""
        self.writer.close()


@contextmanager
def parquet_file(path: Path, schema: pa.Schema, facts: Mapping[str, str]) -> Iterator[ParquetFile]:
    """A Parquet file to write, which replaces `path` if the block ends without an error."""
    with atomically(path) as out:
        file = ParquetFile(out, schema, facts)
        try:
            yield file
        finally:
            file.close()


def content_table(table: pa.Table, private: Private) -> pa.Table:
    """A table whose texts are content: folders of this machine and keys are removed from them."""
    for number, field in enumerate(table.schema):
        if "string" in str(field.type):  # also lists of texts, and texts by number
            values = table.column(number).to_pylist()
            shown = redacted_value(_content(values), private)
            if shown != values:
                table = table.set_column(number, field, pa.array(shown, field.type))
    return table


def _content(value: Any) -> Any:
    """Values of a column with all texts marked as content."""
    if isinstance(value, str):
        return Content(value)
    if isinstance(value, dict):
        return {name: _content(entry) for name, entry in value.items()}
    return [_content(entry) for entry in value] if isinstance(value, list) else value


def parquet_bytes(table: pa.Table, private: Private) -> bytes:
    """The bytes of a Parquet file of a table as it may leave, without the facts that were in the table's own file."""
    sink = pa.BufferOutputStream()
    pq.write_table(content_table(table.replace_schema_metadata(None), private), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())
