"""Makes items, and hashes them by content: equal content has one key, in whatever task it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from embark.types import Array, Bytes, Dataset, Item, Media, Modality, Part, Rendered, Side, Text

KEY = np.dtype("V32")
NAME = 60  # characters of a text that name it in messages
DECODING = 1  # part of every key, texts too: media that decode otherwise get a digest of their own, as upright.py does


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


def digest(parts: tuple[Part, ...], mode: str = "") -> bytes:
    """Hash of the parts in order: text by its UTF-8 bytes, media by their encoded bytes."""
    outer = hashlib.sha256(mode.encode())
    for part in parts:
        outer.update(b"\0" + part.kind.encode() + b"\0")
        if isinstance(part, Text):
            outer.update(hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).digest())
        else:
            outer.update(part.digest)
    return outer.digest()


def key(space: str, rendered: Rendered) -> bytes:
    """The key of a stored vector: the encoder's fingerprint and exactly what the encoder will see."""
    mode = rendered.mode if rendered.frames is None else f"{rendered.mode}\0{rendered.frames} frames"
    return hashlib.sha256(f"{space}\0{DECODING}\0".encode() + digest(rendered.parts, mode)).digest()


def as_keys(keys: list[bytes]) -> Array:
    """Keys as one array of 32-byte records."""
    return np.frombuffer(b"".join(keys), dtype=KEY)


def size_of(data: Dataset) -> int:
    """About how many bytes of memory the items of a dataset take."""
    return sum(800 * len(side) for side in data.sides.values())
