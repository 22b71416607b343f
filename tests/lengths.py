"""A plain encoder whose vectors tell what they were made of, and the engine run with it over a real store."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PIL import Image

from embark import items
from embark.engine.local import embed
from embark.items import as_keys, key
from embark.models.encoder import Encoder
from embark.planning import Need
from embark.protocol import vector_space
from embark.store import Space, Store
from embark.types import Array, Content, Item, ModelCard

CARD = ModelCard("test/engine", "1", "none", ("text", "image"), dim=3, stored="float32")
Change = Callable[[Array, list[str]], Any]


class Lengths(Encoder):
    """A text becomes (its number, its length, 1), a picture its first pixel; `change` may spoil what comes out."""

    def __init__(self, change: Change = lambda out, texts: out, card: ModelCard = CARD) -> None:
        self.card, self.change, self.batches = card, change, list[int]()

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return contents[0].value

    def embed(self, batch: Sequence[Any]) -> Any:
        self.batches.append(len(batch))
        texts = [value for value in batch if isinstance(value, str)]
        rows = [[number(v), len(v), 1] if isinstance(v, str) else v.getpixel((0, 0)) for v in batch]
        return self.change(np.array(rows, np.float64), texts)


def number(text: str) -> int:
    return int(text.split()[0])


def text(n: int) -> Item:
    return items.text(f"{n} {'x' * (n * 7 % 5)}")


def picture(colour: tuple[int, int, int]) -> Item:
    out = io.BytesIO()
    Image.new("RGB", (2, 2), colour).save(out, "PNG")
    return items.media("image", out.getvalue())


def needs(encoder: Encoder, wanted: Sequence[Item]) -> list[Need]:
    space = vector_space(encoder.card)
    return [Need(key(space, encoder.render(i, "item", None)), i, "item", None, 0, row) for row, i in enumerate(wanted)]


def name(need: Need) -> str:
    return f"item {need.row}"


def run(store: Store, encoder: Encoder, wanted: Sequence[Need], **options: Any) -> tuple[Any, Space]:
    space = store.space(vector_space(encoder.card))
    with space.writer() as writer:
        report = embed(encoder, wanted, writer, name=name, **options)
    space.refresh()
    return report, space


def stored_numbers(store: Store, encoder: Encoder, wanted: Sequence[Need]) -> list[int]:
    """The rows whose vectors are in the store, and are theirs."""
    space = store.space(vector_space(encoder.card))
    present = [need for need in wanted if space.has(as_keys([need.key]))[0]]
    for need in present:
        assert space.read(as_keys([need.key]))[0][0] == number(need.item.parts[0].text)  # type: ignore[union-attr]
    return [need.row for need in present]
