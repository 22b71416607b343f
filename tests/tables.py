"""What tests of table readers share: six pictures, and ways to look at what was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embark.types import Dataset, Item, Media, Text
from hub import png

COLORS = ("red", "green", "blue", "yellow", "white", "black")
IMAGES = [png(colour) for colour in COLORS]
Make = Callable[..., Dataset]


def texts(items: Any) -> list[str]:
    return [part.text for item in items for part in item.parts if isinstance(part, Text)]


def colours(items: Any) -> list[str]:
    return [COLORS[IMAGES.index(part.read()[0])] for item in items for part in item.parts if isinstance(part, Media)]


def kinds(item: Item) -> tuple[str, ...]:
    return tuple(part.kind for part in item.parts)
