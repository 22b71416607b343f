"""Making items, and hashing them by content: equal content is one item, whichever task it stands in."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import numpy as np

from embark.types import Array, Bytes, Item, Media, Modality, Part, Rendered, Text

KEY = np.dtype("V32")
DECODING = 1  # raise it when media.py decodes otherwise: other pixels are other vectors, so it is part of every key


def text(value: str) -> Item:
    """An item of text."""
    return Item((Text(value),))


def media(kind: Modality, *chunks: Bytes | Path) -> Item:
    """An item of one encoded image, sound or film (a film may come as its frames); files are read when needed."""
    return Item((Media(kind, tuple(partial(_read, c) if isinstance(c, Path) else c for c in chunks)),))


def mixed(*items: Item) -> Item:
    """One item made of several, in their order."""
    return Item(tuple(part for item in items for part in item.parts))


def digest(parts: tuple[Part, ...], mode: str = "") -> bytes:
    """Hash of the parts in order: text by its UTF-8 bytes, media by their encoded bytes."""
    outer = hashlib.sha256(mode.encode())
    for part in parts:
        outer.update(b"\0" + part.kind.encode() + b"\0")
        outer.update(
            hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).digest()
            if isinstance(part, Text)
            else part.digest
        )
    return outer.digest()


def key(space: str, rendered: Rendered) -> bytes:
    """The key of a stored vector: the encoder's fingerprint and exactly what the encoder will see."""
    return hashlib.sha256(f"{space}\0{DECODING}\0".encode() + digest(rendered.parts, rendered.mode)).digest()


def as_keys(keys: list[bytes]) -> Array:
    """Keys as one array of 32-byte records."""
    return np.frombuffer(b"".join(keys), dtype=KEY)


def _read(path: Path) -> bytes:
    return path.read_bytes()
