"""The terms of a data set of the hub: what its card and the hub say of license and access, and whether that is free.

They are recorded when a data set is listed or fetched (`Hub.terms`), so that a page can be made without a network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FIELDS = ("gated", "private", "cardData")  # that are asked of a hub


@dataclass(frozen=True)
class Terms:
    """The licenses that a data set's card states, and whether everybody may get it from the hub."""

    licenses: tuple[str, ...]
    open: bool

    @property
    def free(self) -> bool:
        """Whether its items may be shown to others: nobody is kept out, and every stated license is free.

        A card states identifiers: one with more words ("mit (research only)") is none of the free.
        """
        return self.open and bool(self.licenses) and all(name.strip().lower() in _free() for name in self.licenses)


def read_terms(info: Any) -> Terms | None:
    """The terms that a hub's answer about a data set states; None where it does not tell of access.

    `gated` is false, "auto" or "manual".
    """
    if not isinstance(info, dict) or not {"gated", "private"} <= {*info}:
        return None
    card = info.get("cardData")
    stated = card.get("license") if isinstance(card, dict) else None
    licenses = stated if isinstance(stated, list) else [stated] if stated else []
    open_to_all = info["gated"] is False and info["private"] is False
    return Terms(tuple(map(str, licenses)), open_to_all)


def are_free(licenses: Iterable[str]) -> bool:
    """Whether there are licenses, and all are known to be free; "A (pictures), B (names)" are two."""
    names = [
        name.strip() for text in licenses for name in re.split(r"[,;]| and ", re.sub(r"\([^)]*\)", "", text.lower()))
    ]
    return bool(names) and all(name in _free() for name in names)


@cache
def _free() -> frozenset[str]:
    path = Path(__file__).with_name("free_licenses.json")
    return frozenset(json.loads(path.read_text(encoding="utf-8"))["free"])
