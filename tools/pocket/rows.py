"""The rows of the pocket table: which emoji are kept, what people call them, what their code points say about them.

Needs the standard library only, so that training can read rows on a bare machine.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CODES = (
    "ar bg bn cs da de el en es et fa fi fil fr he hi hr hu id it "
    "ja ko mi nl no pl pt quz ro ru sv sw te th tr uk vi zh"
)
LANGUAGES = _CODES.split()
CLDR_LOCALE = {"quz": "qu"}  # where CLDR's code is not ours
TONES = {"1F3FB": "light", "1F3FC": "medium-light", "1F3FD": "medium", "1F3FE": "medium-dark", "1F3FF": "dark"}
KEPT_TONES = {"light", "medium", "dark"}  # three of five, to keep the file small
HAIR = {"1F9B0": "red", "1F9B1": "curly", "1F9B2": "bald", "1F9B3": "white"}
VARIATION, JOINER, FEMALE_SIGN, MALE_SIGN = "FE0F", "200D", "2640", "2642"
MAN, WOMAN, PERSON = "1F468", "1F469", "1F9D1"
COMPANIONS = {"1F466", "1F467", MAN, WOMAN, "2764", "1F48B"}  # boy, girl, man, woman, heart, kiss
MALE_WORDS = {"man", "men", "boy", "boys", "prince", "merman", "mermen"}
FEMALE_WORDS = {"woman", "women", "girl", "girls", "princess", "mermaid", "mermaids"}
REGIONAL_A, REGIONAL_Z, BLACK_FLAG, TAG_SPACE, TAG_END = 0x1F1E6, 0x1F1FF, 0x1F3F4, 0xE0000, 0xE007F


@dataclass(frozen=True)
class Row:
    """One emoji; `names` and `keywords` are keyed by language, `picture` is a file name in the Noto package."""

    emoji: str
    codepoints: str
    group: str
    subgroup: str
    base: str
    gender: str | None
    skin_tone: str | None
    hair: str | None
    is_flag: bool
    country: str | None
    capital: str | None
    continent: str | None
    names: dict[str, str]
    keywords: dict[str, list[str]]
    picture: str


# ── what the code points say ─────────────────────────────────────────────────────────────────────────────────────────


def plain(text: str) -> str:
    """The emoji without variation selectors, which the sources use differently."""
    return text.replace(chr(int(VARIATION, 16)), "")


def plain_code(codepoints: str) -> str:
    """'2764-FE0F' → '2764', in lower case: the spelling that all icon sets can be brought to."""
    return "-".join(part for part in codepoints.lower().split("-") if part != VARIATION.lower())


def base_of(codepoints: str) -> str:
    """The code without tone, hair and gender, a man or woman at work becoming a person at work."""
    bare = "-".join(part for part in codepoints.split("-") if part not in TONES and part != VARIATION)
    kept = [part for part in bare.split(f"-{JOINER}-") if part not in HAIR and part not in (FEMALE_SIGN, MALE_SIGN)]
    if kept and kept[0] in (MAN, WOMAN) and not COMPANIONS & set(kept[1:]):  # couples and families keep their members
        kept[0] = PERSON
    return f"-{JOINER}-".join(kept) or codepoints  # a lone male or female sign stays what it is


def gender_of(codepoints: str, name: str) -> str | None:
    """By the sign in the code, else by the words of the English name when they agree."""
    parts = codepoints.split("-")
    if FEMALE_SIGN in parts:
        return "female"
    if MALE_SIGN in parts:
        return "male"
    words = set(re.findall("[a-z]+", name.split(":")[0].lower()))
    male, female = not words.isdisjoint(MALE_WORDS), not words.isdisjoint(FEMALE_WORDS)
    return None if male == female else "male" if male else "female"


def flag_country(codepoints: str) -> str | None:
    """ISO 3166 code of a flag: 'FR' from a pair of letters, 'GB-SCT' from a tagged black flag."""
    points = [int(part, 16) for part in codepoints.split("-")]
    if len(points) == 2 and all(REGIONAL_A <= point <= REGIONAL_Z for point in points):
        return "".join(chr(point - REGIONAL_A + ord("A")) for point in points)
    if points[0] == BLACK_FLAG and points[-1] == TAG_END:
        letters = "".join(chr(point - TAG_SPACE) for point in points[1:-1]).upper()
        return f"{letters[:2]}-{letters[2:]}"
    return None


def held_out(base: str, language: str) -> bool:
    """Whether training must not see this emoji's name and keywords in this language: one pair in five."""
    return zlib.crc32(f"{base}-{language}".encode()) % 5 == 0


# ── reading the packages ─────────────────────────────────────────────────────────────────────────────────────────────


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def annotations(npm: Path, language: str) -> dict[str, tuple[str, list[str]]]:
    """{plain emoji: (name, keywords)}; CLDR publishes written and derived annotations in two packages."""
    found = {}
    for package, key in (
        ("cldr-annotations-full", "annotations"),
        ("cldr-annotations-derived-full", "annotationsDerived"),
    ):
        path = npm / package / key / CLDR_LOCALE.get(language, language) / "annotations.json"
        for emoji, entry in _json(path)[key]["annotations"].items() if path.exists() else ():
            if entry.get("tts"):
                found[plain(emoji)] = entry["tts"][0], entry.get("default", [])
    return found


def _forms(npm: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], str | None]]:
    """(entry, form, skin tone) of each emoji we keep: no components, mixed tones or in-between tones."""
    entries = [e for e in _json(npm / "emoji-datasource-google/emoji.json") if e["category"] != "Component"]
    forms = [(entry, form) for entry in entries for form in (entry, *entry.get("skin_variations", {}).values())]
    for entry, form in sorted(forms, key=lambda pair: (pair[0]["sort_order"], pair[1]["unified"])):
        tones = {TONES[part] for part in form["unified"].split("-") if part in TONES}
        if form["has_img_google"] and len(tones) <= 1 and tones <= KEPT_TONES:
            yield entry, form, next(iter(tones), None)


def load_rows(npm: Path) -> list[Row]:
    """Every kept emoji that has an English name, in Unicode's order."""
    words = {language: annotations(npm, language) for language in LANGUAGES}
    countries = _json(npm / "countries-list/countries.min.json")
    continents = _json(npm / "countries-list/continents.min.json")
    rows = []
    for entry, form, tone in _forms(npm):
        code = form["unified"]
        emoji = "".join(chr(int(part, 16)) for part in code.split("-"))
        known = {language: found[plain(emoji)] for language, found in words.items() if plain(emoji) in found}
        if "en" not in known:
            continue
        country = flag_country(code)
        facts = countries.get(country, {})
        rows.append(
            Row(
                emoji=emoji,
                codepoints=code,
                group=entry["category"],
                subgroup=entry["subcategory"],
                base=base_of(code),
                gender=gender_of(code, known["en"][0]),
                skin_tone=tone,
                hair=next((HAIR[part] for part in code.split("-") if part in HAIR), None),
                is_flag=entry["category"] == "Flags",
                country=country,
                capital=facts.get("capital") or None,
                continent=continents.get(facts.get("continent")),
                names={language: name for language, (name, _) in known.items()},
                keywords={language: keywords for language, (_, keywords) in known.items()},
                picture=form["image"],
            )
        )
    return rows
