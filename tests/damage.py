"""Damage to files as disks, networks and people do it: bytes, cells, rows and columns, in files within files, too."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import signal
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hub import tar, zipped

ODD: list[Any] = [
    None, "", "x", "é\u0000\u202e", "../../x", "/etc/hostname", "a" * 5000, True, -1, 0, 7, 10**30, 10**400, 1.5, -0.0,
    float("nan"), float("inf"), -1e308, [], [[]], [None], ["x", 3], {}, {"bytes": None}, {"x": {"y": []}},
    {"array": [1.0], "sampling_rate": 0}, b"\xff\xfe\x00",
]  # fmt: skip
DEEP = "[" * 3000 + "]" * 3000


def damaged(name: str, data: bytes, dice: random.Random) -> bytes:
    """A file's content after damage; to its bytes, or to what it holds."""
    rewrite = next((change for ending, change in CONTENT.items() if name.endswith(ending)), None)
    if rewrite and dice.random() < 0.6:
        with suppress(NotRewritable):
            return rewrite(name, data, dice)
    return damaged_bytes(data, dice)


def damaged_bytes(data: bytes, dice: random.Random) -> bytes:
    """Bytes that are flipped, cut, overwritten, zeroed, inserted, repeated, in another encoding, or gone."""
    content = bytearray(data)
    start = dice.randrange(len(content) + 1)
    end = min(len(content), start + dice.choice([1, 1, 2, 8, 64, 1024]))
    kind = dice.choice(["flip", "flip", "cut", "noise", "zero", "insert", "repeat", "remove", "empty", "encoding"])
    if kind == "flip":
        for position in range(start, min(end, start + 3)):
            content[position] ^= 1 << dice.randrange(8)
    elif kind == "cut":
        del content[start:]
    elif kind == "noise":
        content[start:end] = dice.randbytes(end - start)
    elif kind == "zero":
        content[start:end] = bytes(end - start)
    elif kind == "insert":
        content[start:start] = dice.choice([b"\0", b'"', b"\n", b",", b"{", b"\xff", b"\t", b"\r", dice.randbytes(30)])
    elif kind == "repeat":
        content[start:start] = content[start:end]
    elif kind == "remove":
        del content[start:end]
    elif kind == "empty":
        content.clear()
    else:
        with suppress(UnicodeDecodeError):
            content = bytearray(data.decode().encode(dice.choice(["utf-16", "utf-8-sig", "cp037"]), "replace"))
    return bytes(content)


class NotRewritable(Exception):
    """What a file holds cannot be written again after a change."""


def odd(dice: random.Random) -> Any:
    return dice.choice(ODD)


def damaged_rows(rows: list[dict[str, Any]], dice: random.Random) -> list[dict[str, Any]]:
    """Rows with an odd value, swapped columns, a repeated or lost row, a lost or a new column."""
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        raise NotRewritable
    rows = [dict(row) for row in rows]
    row = dice.choice(rows)
    column = dice.choice(list(row))
    kind = dice.choice(["value", "value", "value", "column", "swap", "repeat", "lose", "drop", "rename", "inner"])
    if kind == "value":
        row[column] = odd(dice)
    elif kind == "column":
        value = odd(dice)
        for each in rows:
            each[column] = value
    elif kind == "swap":
        other = dice.choice(list(row))
        for each in rows:
            each[column], each[other] = each.get(other), each.get(column)
    elif kind == "repeat":
        rows.insert(dice.randrange(len(rows)), dict(row))
    elif kind == "lose":
        rows.remove(row)
    elif kind == "drop":
        for each in rows:
            each.pop(column, None)
    elif kind == "rename":
        for each in rows:
            each["renamed"] = each.pop(column, None)
    else:
        row[column] = changed_inside(row[column], dice)
    return rows


def changed_inside(value: Any, dice: random.Random) -> Any:
    """A value with something odd in its depth."""
    if isinstance(value, list) and value:
        position = dice.randrange(len(value))
        return [*value[:position], changed_inside(value[position], dice), *value[position + 1 :]]
    if isinstance(value, dict) and value:
        name = dice.choice(list(value))
        return {**value, name: changed_inside(value[name], dice)}
    return odd(dice)


def _parquet(name: str, data: bytes, dice: random.Random) -> bytes:
    table = pq.read_table(io.BytesIO(data))
    rows = damaged_rows(table.to_pylist(), dice)
    out = io.BytesIO()
    try:
        names = dict.fromkeys(column for row in rows for column in row)
        changed = pa.table({column: pa.array([row.get(column) for row in rows]) for column in names})
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), out)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise NotRewritable from None
    return out.getvalue()


def _json(name: str, data: bytes, dice: random.Random) -> bytes:
    text = data.decode()
    if dice.random() < 0.05:
        return DEEP.encode()
    try:
        if name.endswith("l"):
            rows = damaged_rows([json.loads(line) for line in text.splitlines() if line.strip()], dice)
            return "".join(json.dumps(row) + "\n" for row in rows).encode()
        return json.dumps(changed_inside(json.loads(text), dice)).encode()
    except TypeError:  # bytes
        raise NotRewritable from None


def _separated(name: str, data: bytes, dice: random.Random) -> bytes:
    separator = "\t" if name.endswith("tsv") else ","
    rows = damaged_rows(list(csv.DictReader(io.StringIO(data.decode()), delimiter=separator)), dice)
    out = io.StringIO()
    writer = csv.DictWriter(out, dict.fromkeys(column for row in rows for column in row), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _gzip(name: str, data: bytes, dice: random.Random) -> bytes:
    return gzip.compress(damaged(name.removesuffix(".gz"), gzip.decompress(data), dice))


def _member(name: str, data: bytes, dice: random.Random) -> bytes:
    """One file of an archive is damaged, renamed, lost or empty."""
    packed = data[:2] == b"PK"
    if packed:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {member: archive.read(member) for member in archive.namelist()}
    else:
        with tarfile.open(fileobj=io.BytesIO(data)) as tape:
            files = {member.name: tape.extractfile(member).read() for member in tape if member.isfile()}  # type: ignore[union-attr]
    member = dice.choice(list(files))
    kind = dice.choice(["damage", "damage", "damage", "damage", "rename", "lose"])
    content = files.pop(member)
    if kind == "damage":
        files[member] = damaged(member, content, dice)
    elif kind == "rename":
        files[dice.choice(["../x", "other", f"{member}.x", "a/b.json"])] = content
    return zipped(files) if packed else tar(files)


Change = Callable[[str, bytes, random.Random], bytes]
CONTENT: dict[str, Change] = {
    ".parquet": _parquet, ".jsonl": _json, ".json": _json, ".csv": _separated, ".tsv": _separated,
    ".jsonl.gz": _gzip, ".csv.gz": _gzip, ".tar.gz": _gzip, ".tar": _member, ".tar.part-000": _member, ".zip": _member,
}  # fmt: skip


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """An error in the main thread if the block takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"It hangs: more than {seconds:.0f} s.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
