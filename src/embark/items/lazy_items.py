"""Items and ids that are rows of Arrow arrays or of files: they take few bytes each, and are made when asked for."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain as chain_iterables
from itertools import pairwise
from operator import eq
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embark.catalogue import group_values
from embark.items import KEY, ItemList, Items, Kinds
from embark.items.errors import errors_about
from embark.items.lazy_media import LazyBytes, MediaSequence, StoredMedia
from embark.items.upright import UprightMedia
from embark.types import Array, Item, Modality, Part, Side, Text

BLOCK_VALUES = 1024  # values that are made at a time


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def text_array(values: Iterable[str | None]) -> Any:
    """Texts as an Arrow array: of bytes where a text has lone surrogates, which no Arrow string may hold."""
    values = list(values)
    try:
        return pa.array(values, pa.large_string())
    except UnicodeEncodeError:
        encoded = [None if value is None else value.encode("utf-8", "surrogatepass") for value in values]
        return pa.array(encoded, pa.large_binary())


def concat_texts(arrays: Sequence[Any]) -> Any:
    """Several arrays of texts as one."""
    kind = pa.large_binary() if any(array.type == pa.large_binary() for array in arrays) else pa.large_string()
    return pa.concat_arrays([pa.array([], kind), *(array.cast(kind) for array in arrays)])


def same_type(one: Any, other: Any) -> tuple[Any, Any]:
    """Two arrays of texts with one type, so that they can be compared."""
    return (one, other) if one.type == other.type else (one.cast(pa.large_binary()), other.cast(pa.large_binary()))


def decoded(array: Any) -> list[Any]:
    """The texts of an array."""
    values: list[Any] = array.to_pylist()
    return list(map(_decoded, values)) if array.type == pa.large_binary() else values


def _decoded(value: Any) -> Any:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def _rows(rows: Array) -> Any:
    return pa.array(np.asarray(rows, np.int64))


class Texts(Items):
    """Items of one text each; `array` is as `text_array` makes it, without nulls."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), BLOCK_VALUES):
            for text in decoded(self.array.slice(start, BLOCK_VALUES)):
                yield Item((Text(text),))

    def item(self, row: int) -> Item:
        return Item((Text(_decoded(self.array[row].as_py())),))

    def take(self, rows: Array) -> Texts:
        return Texts(self.array.take(_rows(rows)))

    def stripped(self) -> Texts:
        return Texts(text_array(map(str.strip, self.texts())))

    def texts(self) -> list[str]:
        return decoded(self.array)

    def several_parts(self) -> bool:
        return False

    def kinds(self) -> Kinds:
        return uniform(("text",), len(self))

    def lengths(self) -> Array:
        if self.array.type == pa.large_binary():
            return np.array(list(map(len, decoded(self.array))), np.int64)
        lengths: Array = pc.utf8_length(self.array).to_numpy(zero_copy_only=False)
        return lengths

    def hashed(self) -> Iterator[bytes]:
        sha256 = hashlib.sha256
        for start in range(0, len(self), BLOCK_VALUES):
            array = self.array.slice(start, BLOCK_VALUES)
            _, offsets, data = array.buffers()
            text = memoryview(b"" if data is None else data)
            ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1].tolist()
            for begin, end in pairwise(ends):
                yield b"\0text\0" + sha256(text[begin:end]).digest()

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)


def uniform(kind: tuple[Modality, ...], count: int) -> Kinds:
    """The kinds of items that are all of one."""
    return Kinds((kind,) if count else (), np.zeros(count, np.int8))


# ── media ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class MediaItems(Items):
    """Items of one picture, sound or film each, by their positions in a sequence (and locations, in archives)."""

    kind: Modality
    sequence: MediaSequence
    positions: Array
    locations: Array | None = None  # (items, 3)
    turned: bool = False  # pictures are upright

    @classmethod
    def of_chunks(cls, kind: Modality, chunks: Sequence[LazyBytes]) -> MediaItems:
        """The media that are chunks of one sequence."""
        locations = np.array([chunk.location for chunk in chunks], np.int64).reshape(len(chunks), -1)
        positions = np.array([chunk.position for chunk in chunks], np.int64)
        return cls(kind, chunks[0].sequence, positions, locations if locations.size else None)

    def __len__(self) -> int:
        return len(self.positions)

    def item(self, row: int) -> Item:
        location = () if self.locations is None else self.locations[row].tolist()
        media = StoredMedia(self.kind, (self.sequence.chunk(int(self.positions[row]), *location),))
        return Item((UprightMedia(media.kind, media.chunks, media) if self.turned else media,))

    def take(self, rows: Array) -> MediaItems:
        locations = None if self.locations is None else self.locations[rows]
        return replace(self, positions=self.positions[rows], locations=locations)

    def several_parts(self) -> bool:
        return False

    def kinds(self) -> Kinds:
        return uniform((self.kind,), len(self))

    def lengths(self) -> Array:
        return np.zeros(len(self), np.int64)

    def pictures(self) -> list[tuple[bytes | memoryview, int]] | None:
        if self.kind != "image" or self.locations is not None:
            return None
        with errors_about(self.sequence.path):
            views = [view for view in map(self.sequence.view, self.positions.tolist()) if view is not None]
        return list(zip(views, self._turns().tolist(), strict=True)) if len(views) == len(self) else None

    def _turns(self) -> Array:
        return self.sequence.orientations(self.positions) if self.turned else np.ones(len(self), np.uint8)

    def hashed(self) -> Iterator[bytes]:
        if not len(self):
            return
        sha256 = hashlib.sha256
        head = f"\0{self.kind}\0".encode()
        hashes = self.sequence.hashes(self.positions)
        turns = self._turns()
        for start in range(0, len(self), BLOCK_VALUES):
            block = slice(start, start + BLOCK_VALUES)
            of_bytes = hashes[block].view(KEY).ravel().tolist()
            for content, turn in zip(of_bytes, turns[block].tolist(), strict=True):
                digest = sha256(content).digest()
                yield head + (digest if turn == 1 else sha256(b"upright\0" + digest).digest())

    def scans(self) -> Iterator[Callable[[], None]]:
        return self.sequence.scans(self.positions)

    @property
    def nbytes(self) -> int:
        return int(self.positions.nbytes) + (0 if self.locations is None else int(self.locations.nbytes))

    def upright(self, turned: Callable[[Item], Item]) -> Items:
        return replace(self, turned=True) if self.kind == "image" else self


# ── several sequences ────────────────────────────────────────────────────────────────────────────────────────────────


class Mixed(Items):
    """Items that have a part from each of several sequences; `present` (items, sequences) tells where one lacks it."""

    def __init__(self, columns: Sequence[Items], present: Array | None = None) -> None:
        self.columns = tuple(columns)
        self.present = np.ones((len(columns[0]), len(columns)), bool) if present is None else present

    def __len__(self) -> int:
        return len(self.present)

    def __iter__(self) -> Iterator[Item]:
        for present, *parts in zip(self.present.tolist(), *self.columns, strict=True):
            yield _mix(present, parts)

    def item(self, row: int) -> Item:
        return _mix(self.present[row].tolist(), [column.item(row) for column in self.columns])

    def take(self, rows: Array) -> Mixed:
        return Mixed([column.take(rows) for column in self.columns], self.present[rows])

    def kinds(self) -> Kinds:
        names: dict[tuple[Modality, ...], int] = {}
        modalities = [[modality for name in column.kinds().names for modality in name] for column in self.columns]
        patterns, first, numbers = np.unique(self.present, axis=0, return_index=True, return_inverse=True)
        codes = np.empty(len(patterns), np.int64)
        for pattern in np.argsort(first).tolist():
            parts = (of_column for of_column, has in zip(modalities, patterns[pattern], strict=True) if has)
            kind = tuple(dict.fromkeys(modality for of_column in parts for modality in of_column))
            codes[pattern] = names.setdefault(kind, len(names))
        return Kinds(tuple(names), codes[numbers.reshape(-1)])

    def lengths(self) -> Array:
        lengths: Array = sum(
            (column.lengths() * self.present[:, number] for number, column in enumerate(self.columns)),
            np.zeros(len(self), np.int64),
        )
        return lengths

    def several_parts(self) -> bool:
        return bool((self.present.sum(axis=1) > 1).any()) or any(column.several_parts() for column in self.columns)

    def hashed(self) -> Iterator[bytes]:
        columns = (column.hashed() for column in self.columns)
        for present, *parts in zip(self.present.tolist(), *columns, strict=True):
            yield b"".join(part for part, has in zip(parts, present, strict=True) if has)

    def scans(self) -> Iterator[Callable[[], None]]:
        return chain_iterables.from_iterable(column.scans() for column in self.columns)

    @property
    def nbytes(self) -> int:
        return self.present.nbytes + sum(column.nbytes for column in self.columns)

    def upright(self, turned: Callable[[Item], Item]) -> Items:
        return Mixed([column.upright(turned) for column in self.columns], self.present)

    def stripped(self) -> Items:
        return Mixed([column.stripped() for column in self.columns], self.present)


def _mix(present: Sequence[bool], items: Sequence[Item]) -> Item:
    return Item(tuple(part for item, has in zip(items, present, strict=True) if has for part in item.parts))


class Chained(Items):
    """The items of several sequences, one after another, or those at `rows` of them all."""

    def __init__(self, sequences: Sequence[Items], rows: Array | None = None) -> None:
        self.sequences = tuple(sequences)
        self.starts = np.cumsum([0, *map(len, self.sequences)])
        self.rows = np.arange(self.starts[-1]) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def item(self, row: int) -> Item:
        place = self.rows[row]
        number = int(np.searchsorted(self.starts, place, "right")) - 1
        return self.sequences[number].item(int(place - self.starts[number]))

    def take(self, rows: Array | slice) -> Chained:
        taken = copy(self)
        taken.rows = self.rows[rows]
        return taken

    def kinds(self) -> Kinds:
        names: dict[tuple[Modality, ...], int] = {}
        numbers = np.empty(len(self), np.int32)
        for rows, number, places in self.by_sequence():
            kinds = self._taken(number, places).kinds()
            numbers[rows] = np.array([names.setdefault(name, len(names)) for name in kinds.names], int)[kinds.numbers]
        _, first = np.unique(numbers, return_index=True)
        order = np.argsort(first)  # as they occur first
        return Kinds(tuple(list(names)[number] for number in order.tolist()), np.argsort(order)[numbers])

    def lengths(self) -> Array:
        lengths = np.empty(len(self), np.int64)
        for rows, number, places in self.by_sequence():
            lengths[rows] = self._taken(number, places).lengths()
        return lengths

    def texts(self) -> list[str] | None:
        texts = np.empty(len(self), object)
        for rows, number, places in self.by_sequence():
            of_sequence = self._taken(number, places).texts()
            if of_sequence is None:
                return None
            texts[rows] = of_sequence
        return texts.tolist()

    def pictures(self) -> list[tuple[bytes | memoryview, int]] | None:
        pictures: dict[int, tuple[bytes | memoryview, int]] = {}
        for rows, number, places in self.by_sequence():
            of_sequence = self._taken(number, places).pictures()
            if of_sequence is None:
                return None
            pictures |= zip(rows.tolist(), of_sequence, strict=True)
        return [pictures[row] for row in range(len(self))]

    def several_parts(self) -> bool:
        return any(items.several_parts() for items in self.sequences)

    def hashed(self) -> Iterator[bytes]:
        if (np.diff(self.rows) > 0).all():
            for _, number, places in self.by_sequence():
                yield from self._taken(number, places).hashed()
            return
        out: dict[int, bytes] = {}
        for rows, number, places in self.by_sequence():
            out |= zip(rows.tolist(), self._taken(number, places).hashed(), strict=True)
        yield from (out[row] for row in range(len(self)))

    def scans(self) -> Iterator[Callable[[], None]]:
        return chain_iterables.from_iterable(
            self._taken(number, places).scans() for _, number, places in self.by_sequence()
        )

    def _taken(self, number: int, places: Array) -> Items:
        items = self.sequences[number]
        whole = len(places) == len(items) and (np.diff(places) == 1).all()  # without a copy
        return items if whole else items.take(places)

    def by_sequence(self) -> Iterator[tuple[Array, int, Array]]:
        """For each sequence (its number), the rows that have its items, and the places of these items in it."""
        numbers = np.searchsorted(self.starts, self.rows, "right") - 1
        order = np.argsort(numbers, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else ():
            number = int(numbers[rows[0]])
            yield rows, number, self.rows[rows] - self.starts[number]

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes) + sum(items.nbytes for items in self.sequences)

    def upright(self, turned: Callable[[Item], Item]) -> Items:
        return Chained([items.upright(turned) for items in self.sequences], self.rows)

    def stripped(self) -> Items:
        return Chained([items.stripped() for items in self.sequences], self.rows)


def chain(sequences: Sequence[Items]) -> Items:
    """The items of several sequences, one after another."""
    if len(sequences) == 1:
        return sequences[0]
    if sequences and all(isinstance(items, Texts) for items in sequences):
        return Texts(concat_texts([items.array for items in sequences if isinstance(items, Texts)]))
    return Chained(sequences)


def compact_side(side: Side) -> Side:
    """A side in less memory, whatever its reader made it of."""
    ids = side.ids if isinstance(side.ids, Ids) else Names(text_array(side.ids))
    return Side(ids, side.items if isinstance(side.items, Items) else compact(side.items))


def compact(items: Sequence[Item]) -> Sequence[Item]:
    """Items in less memory, where their parts are texts or media of larger files."""
    patterns = group_values((tuple(map(_source, item.parts)), row) for row, item in enumerate(items))
    if len(patterns) > MOST_PATTERNS or all(None in pattern for pattern in patterns):
        return items
    sequences = [_columns(pattern, [items[row] for row in rows]) for pattern, rows in patterns.items()]
    if len(sequences) == 1:
        return sequences[0]
    return Chained(sequences, np.argsort(np.concatenate([np.array(rows, np.int64) for rows in patterns.values()])))


MOST_PATTERNS = 64  # kinds and files of parts


def _source(part: Part) -> Any:
    """What the parts of one column have in common; None for those that stay as they are."""
    if isinstance(part, Text):
        return "text"
    chunk = part.chunks[0] if type(part) is StoredMedia and len(part.chunks) == 1 else None
    return (part.kind, chunk.sequence) if isinstance(chunk, LazyBytes) else None


def _columns(pattern: Sequence[Any], items: Sequence[Item]) -> Items:
    if None in pattern or not pattern:
        return ItemList(items)
    columns: list[Items] = []
    for source, parts in zip(pattern, zip(*(item.parts for item in items), strict=True), strict=True):
        if source == "text":
            columns.append(Texts(text_array(part.text for part in parts)))
        else:
            columns.append(MediaItems.of_chunks(source[0], [part.chunks[0] for part in parts]))
    return columns[0] if len(columns) == 1 else Mixed(columns)


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Ids(Sequence[str]):
    """Ids that are rows of an array: each is made when it is asked for."""

    @abstractmethod
    def take(self, rows: Array) -> Ids:
        """The ids at these positions."""

    @property
    @abstractmethod
    def distinct(self) -> int:
        """How many different ids these are."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The memory that they take."""

    @abstractmethod
    def id(self, row: int) -> str:
        """The id at a position, which is not negative."""

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Ids: ...
    def __getitem__(self, row: int | slice) -> str | Ids:
        rows = range(len(self))[row]
        return self.take(np.array(rows, np.int64)) if isinstance(rows, range) else self.id(rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))


class Names(Ids):
    """Ids in an array as `text_array` makes it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def take(self, rows: Array) -> Names:
        return Names(self.array.take(_rows(rows)))

    def id(self, row: int) -> str:
        return str(_decoded(self.array[row].as_py()))

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK_VALUES):
            yield from decoded(self.array.slice(start, BLOCK_VALUES))

    @property
    def distinct(self) -> int:
        return int(pc.count_distinct(self.array).as_py())

    @property
    def nbytes(self) -> int:
        return int(self.array.nbytes)


class Numbered(Ids):
    """Numbers as ids, with the same text before each."""

    def __init__(self, numbers: Sequence[int] | Array, prefix: str = "") -> None:
        self.numbers = np.asarray(numbers, np.int64)
        self.prefix = prefix

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Array) -> Numbered:
        return Numbered(self.numbers[rows], self.prefix)

    def id(self, row: int) -> str:
        return f"{self.prefix}{self.numbers[row]}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{number}" for number in self.numbers.tolist())

    @property
    def distinct(self) -> int:
        return len(distinct_numbers(self.numbers))

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes)


def take_ids(ids: Sequence[str], rows: Array) -> Sequence[str]:
    """The ids at these positions."""
    return ids.take(rows) if isinstance(ids, Ids) else tuple(ids[row] for row in rows.tolist())


def distinct_ids(ids: Sequence[str]) -> int:
    """How many different ids these are."""
    return ids.distinct if isinstance(ids, Ids) else len(set(ids))


def distinct_numbers(numbers: Array) -> Array:
    """The different ones of whole numbers, in order: as np.unique, in a fraction of its time."""
    if (numbers[1:] > numbers[:-1]).all():
        return numbers
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])])


def id_array(ids: Sequence[str]) -> Any:
    """Ids as an Arrow array of strings, which hold no lone surrogates: these are spelled out."""
    if isinstance(ids, Numbered):
        return pc.binary_join_element_wise(ids.prefix, pa.array(ids.numbers).cast(pa.string()), "")
    if isinstance(ids, Names) and ids.array.type == pa.large_string():
        return ids.array.cast(pa.string())
    names = list(ids)
    try:
        return pa.array(names, pa.string())
    except UnicodeEncodeError:  # as in the names of files that are not UTF-8
        return pa.array([name.encode("utf-8", "backslashreplace").decode() for name in names], pa.string())
