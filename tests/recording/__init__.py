"""A recording: every score, interval, fingerprint and vector that a commit makes, which the next one is held to.

make record                                       # before a change: writes build/recording.parquet
make compare-recording FILE=build/recording.parquet  # after it: records again, and names every difference

A recording is of one machine: processors differ in the last bits. It holds facts, each a number or a text under a name:
the scores, intervals and fingerprints of results, and two numbers of each stored vector under its key: its length and
its product with a fixed direction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embark.catalogue import counted
from embark.store import Store

SCORE_TOLERANCE = 1e-7  # of scores and intervals
VECTOR_TOLERANCE = 1e-4  # of a vector's length: batches of another size may change its last bits
CHANGING = {"timings", "versions", "loaded", "run", "embedded", "first"}  # what differs between two runs of one commit
BLOCK = 8192  # vectors that are read at once
SHOWN = 5  # keys that are named of those that a space lost or gained
SCHEMA = pa.schema({"part": pa.string(), "name": pa.string(), "number": pa.float64(), "text": pa.string()})


@dataclass(frozen=True)
class Fact:
    """A number, or a text, that one part of a recording holds under a name."""

    part: str
    name: str
    number: float | None = None
    text: str | None = None


# ── what a run left on the disk ──────────────────────────────────────────────────────────────────────────────────────


def facts(part: str, results: Path, store: Path) -> Iterator[Fact]:
    """All facts of a folder of results, and of the store that their vectors are in."""
    models: dict[str, str] = {}
    for path in sorted(results.glob("*/*/*.json")):
        content = json.loads(path.read_text())
        content.get("embark", {}).pop("format", None)
        if "scores" not in content:  # the card of a model
            yield Fact(part, f"{path.parent.parent.name} card", text=json.dumps(_stable(content), sort_keys=True))
            continue
        model = content["embark"]["model"]
        for split, entries in content["scores"].items():
            for entry in entries:
                models[entry["embark"]["encoder"].partition("-")[0]] = model
                if "fingerprint" in entry["embark"]:  # under the name of format 1, which older recordings have
                    entry["embark"]["protocol"] = entry["embark"].pop("fingerprint")
                place = f"{model} {content['task_name']} {split}/{entry['hf_subset']}"
                yield from (_fact(part, f"{place} {name}", value) for name, value in leaves(_stable(entry)))
    opened = Store(store)
    for name in sorted(opened.spaces()):
        yield from _vectors(part, f"{models.get(name, 'no results')} vectors {name}", opened.space(name))


def _fact(part: str, name: str, value: Any) -> Fact:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Fact(part, name, float(value)) if is_number else Fact(part, name, text=json.dumps(value))


def _stable(value: Any) -> Any:
    """A value of JSON without what differs between two runs of one commit."""
    if isinstance(value, Mapping):
        return {name: _stable(inner) for name, inner in value.items() if name not in CHANGING}
    return value


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables and lists, each under the names that lead to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, f"{name}.{key}".strip("."))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from leaves(inner, f"{name}[{place}]")
    else:
        yield name, value


def _vectors(part: str, name: str, space: Any) -> Iterator[Fact]:
    """Two facts about each vector of a space: its length, and its product with a fixed direction."""
    keys = space.keys()
    for start in range(0, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        for key, vector in zip(block, space.read(block)[:], strict=True):
            yield from numbers(part, f"{name} {key.tobytes().hex()}", np.atleast_2d(vector))


def numbers(part: str, name: str, matrix: Any) -> Iterator[Fact]:
    """Two numbers that stand for a vector, or for the vectors of late interaction."""
    exact = matrix.astype(np.float64)
    direction = np.cos(np.arange(exact.shape[1]) ** 2)
    yield Fact(part, f"{name} length", float(np.linalg.norm(exact)))
    yield Fact(part, f"{name} product", float((exact @ direction).sum()))


# ── files of recordings ──────────────────────────────────────────────────────────────────────────────────────────────


def write(recorded: Iterable[Fact], path: Path) -> int:
    """Write facts to a file; returns how many there were."""
    table = pa.Table.from_pylist([vars(fact) for fact in recorded], SCHEMA)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return table.num_rows


def read(path: Path) -> list[Fact]:
    """The facts of a file."""
    return [Fact(**row) for row in pq.read_table(path, schema=SCHEMA).to_pylist()]


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def differences(before: Iterable[Fact], after: Iterable[Fact]) -> list[str]:
    """A line for each difference. Vectors that are missing or new are counted by space, and the first are named."""
    old, new = ({(fact.part, fact.name): fact for fact in recorded} for recorded in (before, after))
    lines = []
    keys: dict[tuple[str, str, str], list[str]] = {}
    for place in dict.fromkeys([*old, *new]):
        one, other = old.get(place), new.get(place)
        part, name = place
        space, vectors, key = name.partition(" vectors ")
        if one is None or other is None:
            change = "missing" if other is None else "new"
            if vectors:
                keys.setdefault((part, space, change), []).append(key.split()[1])
            else:
                lines.append(f"{part}: {name}: {change} ({_shown(one or other)})")
        elif not _equal(one, other, VECTOR_TOLERANCE if vectors else SCORE_TOLERANCE):
            lines.append(f"{part}: {name}: {_shown(one)} before, {_shown(other)} now")
    for (part, space, change), named in keys.items():
        distinct = list(dict.fromkeys(named))
        first = ", ".join(f"{key[:16]}…" for key in distinct[:SHOWN]) + ", …" * (len(distinct) > SHOWN)
        lines.append(f"{part}: {space}: {counted(len(distinct), 'vector')} {change}: {first}")
    return lines


def _shown(fact: Fact | None) -> str:
    assert fact is not None
    return f"{fact.number:.9g}" if fact.number is not None else str(fact.text)


def _equal(one: Fact, other: Fact, tolerance: float) -> bool:
    if one.number is None or other.number is None:
        return one == other
    return bool(np.isclose(one.number, other.number, rtol=tolerance, atol=tolerance, equal_nan=True))


def summary(recorded: Iterable[Fact]) -> str:
    """How many facts each part holds."""
    counts = Counter(fact.part for fact in recorded)
    return ", ".join(f"{part} {count:,}" for part, count in counts.items())
