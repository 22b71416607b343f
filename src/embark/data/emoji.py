"""The emoji and the speech that come with the package, and the ways to show an emoji: word, picture, film, sound."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from embark.data import drawing, items
from embark.types import EmbarkError, Item

DATA = Path(__file__).parent / "pocket"
SPOKEN = ("de", "en", "es", "fr", "it")


@dataclass(frozen=True, eq=False)
class Emoji:
    """A row of the table. `code` (its code points) names it; `base` is shared by its forms (gender, tone, hair)."""

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
            *(code, base, name, group, subgroup.replace("-", " "), gender, tone, hair),
            *(country, capital or "", continent, tuple(keywords), art, items.media("image", art)),
        )
        for code, base, name, group, subgroup, gender, tone, hair, country, capital, continent, keywords, art in rows
    }


@cache
def untoned() -> tuple[Emoji, ...]:
    """The emoji without a skin tone: the usual gallery."""
    return tuple(one for one in table().values() if not one.tone)


@cache
def subgroups() -> dict[str, list[Emoji]]:
    """The untoned emoji by subgroup."""
    return _by_subgroup(untoned())


@cache
def views(kind: str, language: str = "en") -> dict[str, Item]:
    """Every untoned emoji that can be shown this way, by code points: its text, image, flag, label, audio or video."""
    if kind == "text":
        spelled = zip(table().values(), _columns("emoji", f"name_{language}")[0], strict=True)
        return {one.code: items.text(name) for one, name in spelled if name and not one.tone}
    if kind == "audio":
        return _speech()[language]
    if kind == "video":
        return {one.code: _clip(one, motion) for one, motion in cast().items()}
    if kind == "label":
        return {one.code: draw(drawing.label, one.name) for one in untoned()}
    if kind in ("image", "flag"):
        return {one.code: one.image for one in untoned() if kind == "image" or one.country}
    raise EmbarkError(f"An emoji cannot be shown as '{kind}'.")


def held_out(base: str, language: str) -> bool:
    """Whether the pocket model never saw this name in training."""
    return zlib.crc32(f"{base}-{language}".encode()) % 5 == 0


def swapped(one: Emoji, **attributes: str | None) -> Emoji | None:
    """The form of an emoji with another gender, tone or hair, if there is one."""
    return _forms().get((one.base, *(attributes.get(name, getattr(one, name)) for name in ("gender", "tone", "hair"))))


def differ(one: Emoji, other: Emoji | None) -> bool:
    """Whether both exist and have different pictures; a few emoji share one drawing."""
    return other is not None and one.art != other.art


@cache
def clocks() -> dict[tuple[int, bool], Emoji]:
    """The 24 clock faces by hour and whether it is half past."""
    hours = ("twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
    times = {f"{word} o’clock": (hour, False) for hour, word in enumerate(hours)}
    times |= {f"{word}-thirty": (hour, True) for hour, word in enumerate(hours)}
    return {times[one.name]: one for one in subgroups()["time"] if one.name in times}


@cache
def cast() -> dict[Emoji, str]:
    """The 200 emoji that appear in films, all of them spoken too, and how each moves: five of each of 40 subgroups."""
    spoken = _by_subgroup(table()[code] for code in _speech()["en"])
    troupes = [members for members in spoken.values() if len({one.art for one in members}) == 5]
    actors = [one for members in Random("PocketCast").sample(troupes, 40) for one in members]
    return {one: list(drawing.MOTIONS)[at % 4] for at, one in enumerate(actors)}


@cache
def sheets() -> dict[str, list[Emoji]]:
    """The untoned emoji, nine or fewer at a time, subgroup by subgroup."""
    return {
        f"{subgroup}-{at // 9 + 1}": members[at : at + 9]
        for subgroup, members in subgroups().items()
        for at in range(0, len(members), 9)
    }


@cache
def sheet(name: str) -> Item:
    """The pictures of a sheet on a grid."""
    return draw(drawing.sheet, tuple(one.art for one in sheets()[name]))


@cache
def corrupted(one: Emoji, condition: str) -> Item:
    """An emoji's picture under a condition; "clean" is the picture as published."""
    if condition == "clean":
        return one.image
    return draw(drawing.corrupt, one.art, condition, zlib.crc32(one.code.encode()))


def draw(function: Callable[..., bytes], *arguments: Any) -> Item:
    """A picture that is drawn when its bytes are needed."""
    return items.media("image", drawing.Drawn(function, *arguments))


def _clip(one: Emoji, motion: str) -> Item:
    return items.media("video", *(drawing.Drawn(drawing.frame, one.art, motion, step, 8) for step in range(8)))


@cache
def _forms() -> dict[tuple[str | None, ...], Emoji]:
    return {(one.base, one.gender, one.tone, one.hair): one for one in table().values()}


@cache
def _speech() -> dict[str, dict[str, Item]]:
    codes = dict(zip(*_columns("emoji", "emoji", "codepoints"), strict=True))
    spoken: dict[str, dict[str, Item]] = {language: {} for language in SPOKEN}
    for shown, language, sound in zip(*_columns("speech", "emoji", "language", "audio"), strict=True):
        spoken[language][codes[shown]] = items.media("audio", sound)
    return spoken


def _columns(name: str, *columns: str) -> list[list[Any]]:
    found = pq.read_table(DATA / f"{name}.parquet", columns=list(columns))
    return [found.column(column).to_pylist() for column in columns]


def _by_subgroup(emoji: Iterable[Emoji]) -> dict[str, list[Emoji]]:
    found: dict[str, list[Emoji]] = {}
    for one in emoji:
        found.setdefault(one.subgroup, []).append(one)
    return found
