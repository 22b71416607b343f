"""The emoji and the speech that come with the package, and an emoji as text, image, video or audio."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, cycle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from embark import items
from embark.catalogue import group_values
from embark.items import drawing
from embark.types import EmbarkError, Item

DATA = Path(__file__).parent / "pocket"
SPOKEN = ("de", "en", "es", "fr", "it")


@dataclass(frozen=True, eq=False)
class Emoji:
    """A row of the table. `code` (its code points) names it; its forms (gender, tone, hair) share a `base`."""

    code: str
    base: str
    name: str
    group: str
    subgroup: str
    gender: str | None
    tone: str | None
    hair: str | None
    country: str | None
    capital: str
    continent: str | None
    keywords: tuple[str, ...]
    art: bytes = field(repr=False)
    image: Item = field(repr=False)


@cache
def table() -> dict[str, Emoji]:
    """Every emoji by its code points."""
    columns = "codepoints base name_en group subgroup gender skin_tone hair country capital continent keywords_en image"
    rows = zip(*_columns("emoji", *columns.split()), strict=True)
    return {
        code: Emoji(
            code, base, name, group, subgroup.replace("-", " "), gender, tone, hair,
            country, capital or "", continent, tuple(keywords), art, items.media("image", art),
        )
        for code, base, name, group, subgroup, gender, tone, hair, country, capital, continent, keywords, art in rows
    }  # fmt: skip


@cache
def untoned() -> tuple[Emoji, ...]:
    """The emoji without a skin tone, which most tasks use."""
    return tuple(symbol for symbol in table().values() if not symbol.tone)


@cache
def subgroups() -> dict[str, list[Emoji]]:
    """The untoned emoji by subgroup."""
    return by_subgroup(untoned())


@cache
def views(kind: str, language: str = "en") -> dict[str, Item]:
    """Items of one kind (text, image, flag, label, audio, video) by code points, of the untoned emoji that have one."""
    if kind == "text":
        names = zip(table().values(), _columns("emoji", f"name_{language}")[0], strict=True)
        return {symbol.code: items.text(name) for symbol, name in names if name and not symbol.tone}
    if kind == "audio":
        return _speech()[language]
    if kind == "video":
        return {symbol.code: _video(symbol, motion) for symbol, motion in motions().items()}
    if kind == "label":
        return {symbol.code: draw(drawing.label, symbol.name) for symbol in untoned()}
    if kind in ("image", "flag"):
        return {symbol.code: symbol.image for symbol in untoned() if kind == "image" or symbol.country}
    raise EmbarkError(f"There is no view '{kind}' of an emoji; use text, image, flag, label, audio or video.")


def held_out(base: str, language: str) -> bool:
    """Whether the pocket model never saw this name in training."""
    return zlib.crc32(f"{base}-{language}".encode()) % 5 == 0


def variant(symbol: Emoji, **attributes: str | None) -> Emoji | None:
    """The form of an emoji with another gender, tone or hair, if there is one."""
    return _forms().get(
        (symbol.base, *(attributes.get(name, getattr(symbol, name)) for name in ("gender", "tone", "hair")))
    )


def differ(symbol: Emoji, other: Emoji | None) -> bool:
    """Whether both exist and have different images; a few emoji share one drawing."""
    return other is not None and symbol.art != other.art


@cache
def clocks() -> dict[tuple[int, bool], Emoji]:
    """The 24 clock faces by hour and whether it is half past."""
    hours = ("twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
    times = {f"{word} o’clock": (hour, False) for hour, word in enumerate(hours)}
    times |= {f"{word}-thirty": (hour, True) for hour, word in enumerate(hours)}
    return {times[symbol.name]: symbol for symbol in subgroups()["time"] if symbol.name in times}


@cache
def motions() -> dict[Emoji, str]:
    """The 200 emoji that have a video (and are spoken), each with its motion: five of each of 40 subgroups."""
    spoken = by_subgroup(table()[code] for code in _speech()["en"])
    fives = [members for members in spoken.values() if len({symbol.art for symbol in members}) == 5]
    return dict(zip(chain(*Random("PocketCast").sample(fives, 40)), cycle(drawing.MOTIONS), strict=False))


@cache
def sheets() -> dict[str, list[Emoji]]:
    """The untoned emoji, nine or fewer at a time, subgroup by subgroup."""
    return {
        f"{subgroup}-{start // 9 + 1}": members[start : start + 9]
        for subgroup, members in subgroups().items()
        for start in range(0, len(members), 9)
    }


@cache
def sheet_image(name: str) -> Item:
    """The images of a sheet on a grid."""
    return draw(drawing.sheet, tuple(symbol.art for symbol in sheets()[name]))


@cache
def corrupted_image(symbol: Emoji, corruption: str) -> Item:
    """An emoji's image under one of the corruptions."""
    return draw(drawing.corrupt, symbol.art, corruption, zlib.crc32(symbol.code.encode()))


def draw(function: Callable[..., bytes], *arguments: Any) -> Item:
    """An image that is drawn when its bytes are needed."""
    return items.media("image", drawing.Drawing(function, *arguments))


def by_subgroup(symbols: Iterable[Emoji]) -> dict[str, list[Emoji]]:
    """The emoji of each subgroup, in order."""
    return group_values((symbol.subgroup, symbol) for symbol in symbols)


def _video(symbol: Emoji, motion: str) -> Item:
    return items.media("video", *(drawing.Drawing(drawing.frame, symbol.art, motion, step, 8) for step in range(8)))


@cache
def _forms() -> dict[tuple[str | None, ...], Emoji]:
    return {(symbol.base, symbol.gender, symbol.tone, symbol.hair): symbol for symbol in table().values()}


@cache
def _speech() -> dict[str, dict[str, Item]]:
    """The spoken names by language and code points."""
    codes = dict(zip(*_columns("emoji", "emoji", "codepoints"), strict=True))
    spoken: dict[str, dict[str, Item]] = {language: {} for language in SPOKEN}
    for character, language, sound in zip(*_columns("speech", "emoji", "language", "audio"), strict=True):
        spoken[language][codes[character]] = items.media("audio", sound)
    return spoken


def _columns(name: str, *columns: str) -> list[list[Any]]:
    rows = pq.ParquetFile(DATA / f"{name}.parquet").read(columns=list(columns), use_threads=False)
    return [rows.column(column).to_pylist() for column in columns]
