"""Makes items, and hashes them by content: equal content has one key, in whatever task it is."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import islice, product
from operator import eq
from pathlib import Path
from typing import NamedTuple, Self, overload

import numpy as np

from embark.settings import cores
from embark.threads import DaemonThreads
from embark.types import MODALITIES, Array, Bytes, Dataset, Item, Media, Modality, Part, Rendered, Side, Text

KEY = np.dtype("V32")
NAME = 60  # characters of a text that name it in messages
DECODING = 1  # part of every key, texts too: media that decode otherwise get a digest of their own, as upright.py does
KINDS: dict[bytes, Modality] = {kind.encode(): kind for kind in MODALITIES}
JOINED_HASHES = 4096  # hashes that are joined at a time
HASHED_MEDIA = 16  # media that a thread hashes at a time
HASHING_THREADS = 4  # they read as fast as disks, and leave their turn to the threads that drive a device


def text(value: str) -> Item:
    """An item of text."""
    return Item((Text(value),))


def media(kind: Modality, *chunks: Bytes | Path) -> Item:
    """An item of one encoded image, sound or video (a video may be its frames); files are read when needed."""
    return Item((Media(kind, tuple(partial(Path.read_bytes, c) if isinstance(c, Path) else c for c in chunks)),))


def mixed(*items: Item) -> Item:
    """One item made of several, in their order."""
    return Item(tuple(part for item in items for part in item.parts))


def prompts(names: Iterable[str], templates: Iterable[str]) -> list[Item]:
    """A text for each class name and template; the prompts of a class follow each other."""
    return [text(template.replace("{}", name)) for name, template in product(names, templates)]


def side(by_id: Mapping[str, Item]) -> Side:
    """The side of a dataset that holds these items."""
    return Side(tuple(by_id), tuple(by_id.values()))


def item_name(item: Item, id: str, folder: str = "") -> str:
    """What people know an item by: the beginning of its text, its file (as seen from `folder`), else its id."""
    names = [name for part in item.parts if (name := _part_name(part, folder))]
    return " + ".join(names) or (f"'{id}'" if item.modalities != ("text",) else f"'{id}' (an empty text)")


def _part_name(part: Part, folder: str) -> str:
    if isinstance(part, Text):
        words = " ".join(part.text.split())
        return words and f"'{words if len(words) <= NAME else f'{words[: NAME - 1]}…'}'"
    calls = (chunk for chunk in part.chunks if isinstance(chunk, partial))  # as `media` makes them of files
    path = next((call.args[0] for call in calls if call.args and isinstance(call.args[0], Path)), None)
    if path is None:
        return ""
    return f"'{path.relative_to(folder) if folder and path.is_relative_to(folder) else path}'"


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def digest(parts: tuple[Part, ...], mode: str = "") -> bytes:
    """Hash of the parts in order: text by its UTF-8 bytes, media by their encoded bytes."""
    return hashlib.sha256(mode.encode() + hashed(parts)).digest()


def hashed(parts: Iterable[Part]) -> bytes:
    """What `digest` hashes of the parts: the kind and the hash of each."""
    return b"".join(b"\0" + part.kind.encode() + b"\0" + _content_hash(part) for part in parts)


def _content_hash(part: Part) -> bytes:
    if isinstance(part, Text):
        return hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).digest()
    return part.digest


def key(space: str, rendered: Rendered) -> bytes:
    """The key of a stored vector: the encoder's fingerprint and exactly what the encoder will see."""
    mode = rendered.mode if rendered.frames is None else f"{rendered.mode}\0{rendered.frames} frames"
    return hashlib.sha256(_prefix(space) + digest(rendered.parts, mode)).digest()


def plain_keys(space: str, items: Sequence[Item]) -> Array:
    """The keys of items that the encoder sees as they are; on the way, their `content_numbers` are remembered."""
    prefix = _prefix(space)
    sha256 = hashlib.sha256
    hashed = hash_content(items)
    parts_of_items = hashed.hashed()
    numbers = [np.empty(0, ">i8")]
    keys = []
    while contents := [sha256(parts).digest() for parts in islice(parts_of_items, JOINED_HASHES)]:
        numbers.append(np.frombuffer(b"".join(contents), ">i8")[::4].copy())
        keys.append(b"".join([sha256(prefix + content).digest() for content in contents]))
    vars(hashed)["contents"] = np.concatenate(numbers)  # some kinds of items are frozen
    return np.frombuffer(b"".join(keys), KEY)


def content_numbers(items: Sequence[Item], rows: Array) -> Array:
    """The first 64 bits of the digests of the items at these rows, as numbers."""
    if (known := getattr(items, "contents", None)) is not None:
        return np.asarray(known[rows])
    distinct, places = np.unique(rows, return_inverse=True)
    return np.asarray(digests(take(items, distinct)).view(">i8")[::4][places.reshape(-1)])


def part_numbers(items: Sequence[Item]) -> Iterator[list[tuple[Modality, int]]]:
    """The modality and the identity of each part of each item: as `content_numbers` of an item that is this part."""
    for parts in hash_content(items).hashed():
        out: list[tuple[Modality, int]] = []
        start = 0
        while start < len(parts):
            name = parts.index(b"\0", start + 1)
            end = name + 1 + KEY.itemsize
            number = hashlib.sha256(parts[start:end]).digest()[:8]
            out.append((KINDS[parts[start + 1 : name]], int.from_bytes(number, signed=True)))
            start = end
        yield out


def digests(items: Sequence[Item]) -> Array:
    """The digest of each item, as an array like that of keys."""
    return as_keys(hashlib.sha256(parts).digest() for parts in hash_content(items).hashed())


def as_keys(keys: Iterable[bytes]) -> Array:
    """Keys as one array of 32-byte records."""
    rest = iter(keys)
    blocks = iter(
        lambda: b"".join(islice(rest, JOINED_HASHES)), b""
    )  # a list of millions of keys would take thrice the memory
    return np.frombuffer(b"".join(blocks), dtype=KEY)


def first_positions(keys: Array) -> Array:
    """For each key, the position of the first one that equals it."""
    words = np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 4).T
    order = np.argsort(words[0], kind="stable")  # keys are hashes: no two begin alike, unless someone makes them up
    begins = _changes(words, order)
    if len(begins) > len(_changes(words[:1], order)):
        order = np.lexsort(words)
        begins = _changes(words, order)
    first = np.empty(len(order), np.int64)
    first[order] = np.repeat(order[begins], np.diff(begins, append=len(order)))  # equal keys are in their order
    return first


def _changes(words: Array, order: Array) -> Array:
    """The places where another key begins, of keys in this order."""
    begins = np.arange(len(order)) == 0
    for word in words:
        in_order = word[order]
        begins[1:] |= in_order[1:] != in_order[:-1]
    return np.flatnonzero(begins)


def _prefix(space: str) -> bytes:
    return f"{space}\0{DECODING}\0".encode()


# ── sequences of items ───────────────────────────────────────────────────────────────────────────────────────────────


class Kinds(NamedTuple):
    """The kinds of items (their modalities), in the order in which they occur first, and the kind of each item."""

    names: tuple[tuple[Modality, ...], ...]
    numbers: Array


class Items(Sequence[Item]):
    """Items whose content is in tables or files: each is made when it is asked for, so that many take little memory."""

    contents: Array | None = None  # of each item, the first 64 bits of its digest, where they were computed

    def __copy__(self) -> Self:
        """A copy that is to hold other items: what is remembered of these is left out."""
        other = object.__new__(type(self))
        vars(other).update({name: value for name, value in vars(self).items() if name != "contents"})
        return other

    @abstractmethod
    def item(self, row: int) -> Item:
        """The item at a position, which is not negative."""

    @abstractmethod
    def take(self, rows: Array) -> Items:
        """The items at these positions, in this order."""

    @abstractmethod
    def kinds(self) -> Kinds:
        """The kinds of the items."""

    @abstractmethod
    def lengths(self) -> Array:
        """The number of characters in the texts of each item."""

    def texts(self) -> list[str] | None:
        """The text of each item, where each is one text."""
        parts = [item.parts[0] if len(item.parts) == 1 else None for item in self]
        texts = [part.text for part in parts if isinstance(part, Text)]
        return texts if len(texts) == len(parts) else None

    def pictures(self) -> list[tuple[bytes | memoryview, int]] | None:
        """The bytes of each item and the EXIF orientation to apply, where each is one picture that lies in a file with
        many; None for others, which are read item by item.
        """
        return None

    def several_parts(self) -> bool:
        """Whether some items have several parts."""
        return True

    @abstractmethod
    def hashed(self) -> Iterator[bytes]:
        """What `digest` hashes of the parts of each item."""

    def scans(self) -> Iterator[Callable[[], None]]:
        """What there is to do before the hashes of media are known, in parts for threads."""
        return iter(())

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The memory that the items take, about."""

    def upright(self, turned: Callable[[Item], Item]) -> Items:
        """The items with their pictures upright, see `upright.py`; `turned` turns those of an item in memory."""
        return self

    def stripped(self) -> Items:
        """The items with their texts as `str.strip` leaves them: without white space of any kind at both ends."""
        return self

    @overload
    def __getitem__(self, row: int) -> Item: ...
    @overload
    def __getitem__(self, row: slice) -> Items: ...
    def __getitem__(self, row: int | slice) -> Item | Items:
        rows = range(len(self))[row]
        return self.take(np.array(rows, np.int64)) if isinstance(rows, range) else self.item(rows)

    def __iter__(self) -> Iterator[Item]:
        return map(self.item, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))


def hash_content(items: Sequence[Item]) -> Items:
    """The items, after the hashes of their media were computed in several threads, where they are not known yet."""
    items = as_items(items)
    scans = list(items.scans())
    if len(scans) > 1:  # a single one costs no more later
        with DaemonThreads(min(cores(), HASHING_THREADS), "embark-hash") as pool:
            for done in [pool.submit(scan) for scan in scans]:
                done.result()
    return items


def as_items(items: Sequence[Item]) -> Items:
    """The items themselves, or a list of them with the methods of `Items`."""
    return items if isinstance(items, Items) else ItemList(items)


def take(items: Sequence[Item], rows: Array) -> Sequence[Item]:
    """The items at these positions."""
    return items.take(rows) if isinstance(items, Items) else tuple(items[row] for row in rows.tolist())


class ItemList(Items):
    """Items that are in memory."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def item(self, row: int) -> Item:
        return self.items[row]

    def take(self, rows: Array) -> Items:
        return ItemList([self.items[row] for row in rows.tolist()])

    def upright(self, turned: Callable[[Item], Item]) -> Items:
        return ItemList(tuple(map(turned, self.items)))

    def stripped(self) -> Items:
        return ItemList(
            [
                Item(tuple(Text(part.text.strip()) if isinstance(part, Text) else part for part in item.parts))
                for item in self.items
            ]
        )

    def kinds(self) -> Kinds:
        numbers: dict[tuple[Modality, ...], int] = {}
        of_items = [numbers.setdefault(item.modalities, len(numbers)) for item in self.items]
        return Kinds(tuple(numbers), np.array(of_items, np.int32))

    def lengths(self) -> Array:
        return np.array(
            [sum(len(part.text) for part in item.parts if isinstance(part, Text)) for item in self.items], np.int64
        )

    def several_parts(self) -> bool:
        return any(len(item.parts) > 1 for item in self.items)

    def hashed(self) -> Iterator[bytes]:
        return (hashed(item.parts) for item in self.items)

    def scans(self) -> Iterator[Callable[[], None]]:
        media = {id(part): part for item in self.items for part in item.parts if isinstance(part, Media)}
        new = [part for part in media.values() if "digest" not in vars(part)]
        return (partial(_hash_media, new[start : start + HASHED_MEDIA]) for start in range(0, len(new), HASHED_MEDIA))

    @property
    def nbytes(self) -> int:
        sample = self.items[:: max(1, len(self) // SAMPLE)]
        return sum(ITEM + sum(map(_part_bytes, item.parts)) for item in sample) * len(self) // max(1, len(sample))


SAMPLE = 256  # items whose size is looked at
ITEM = 120  # bytes of an item in memory, and of its place in a tuple
PART = 400  # bytes of a part that is not in memory itself, with its digest
TEXT = 110  # bytes of a text besides its characters


def _part_bytes(part: Part) -> int:
    if isinstance(part, Text):
        return TEXT + len(part.text)
    return PART + sum(len(chunk) if isinstance(chunk, bytes) else 0 for chunk in part.chunks)


def size_of(data: Dataset) -> int:
    """The memory that a dataset takes, in bytes, about: its items, ids and truth."""
    truth = (getattr(data.truth, spec.name) for spec in fields(data.truth))
    ids = (getattr(side.ids, "nbytes", TEXT * len(side)) for side in data.sides.values())
    return (
        sum(as_items(side.items).nbytes for side in data.sides.values())
        + sum(ids)
        + sum(values.nbytes for values in truth if isinstance(values, np.ndarray))
        + sum(TEXT * len(values) for facts in data.about.values() for values in facts.values())
    )


def _hash_media(parts: Sequence[Media]) -> None:
    for part in parts:
        _ = part.digest  # which it remembers
