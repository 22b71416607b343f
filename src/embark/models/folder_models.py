"""The models that embark.toml of the working folder names.

The folder may be a stranger's: a model is one of the catalogue, or a checkpoint inside the folder, whose own code and
pickles run only if the user trusts them. Models behind an API, which cost money, are the user's to name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embark.models.card_facts import card_facts
from embark.settings import FOLDER_FILE, folder_names, in_folder
from embark.types import EmbarkError

STATED = ("family", "parameters", "data", "trained_on", "objective", "architecture", "license", "reference",
          "description")  # fmt: skip
PLACES = ("id", "checkpoint", "loader")


def folder_models() -> dict[str, Mapping[str, Any]]:
    """The [[model]] tables by name: `id` (of the catalogue) or `checkpoint` (a folder, perhaps with a `loader`), and
    facts about the model.
    """
    tables: dict[str, Mapping[str, Any]] = {}
    for table in folder_names().get("model", ()):
        texts = {field: table[field] for field in ("name", *PLACES) if field in table}
        name = texts.get("name")
        if unknown := sorted(set(table) - {"name", *PLACES, *STATED}):
            known = ", ".join(("name", *PLACES, *STATED))
            raise _error(f"a [[model]] has no '{unknown[0]}'; it may have {known}.")
        if not name or not all(isinstance(text, str) and text for text in texts.values()):
            raise _error(f"a [[model]] has a name, and perhaps an id or a checkpoint, all texts; not {dict(table)!r}.")
        if ("id" in table and "checkpoint" in table) or ("loader" in table and "checkpoint" not in table):
            raise _error(f"the model {name} has either an id, or a checkpoint and perhaps its loader.")
        if name in tables:
            raise _error(f"two models are named {name}.")
        tables[name] = table
    return tables


def checkpoint_of(name: str, table: Mapping[str, Any]) -> Path | None:
    """The folder of a model's checkpoint, inside the working folder; None for a model of the catalogue."""
    if "checkpoint" not in table:
        return None
    folder = in_folder(table["checkpoint"], f"model {name}")
    if not folder.is_dir():
        raise _error(f"the model {name} has its checkpoint in {folder}, and there is no such folder.")
    return folder


def stated_facts(table: Mapping[str, Any]) -> dict[str, Any]:
    """What a [[model]] table states about the model."""
    try:
        return card_facts({field: table[field] for field in STATED if field in table})
    except EmbarkError as error:
        raise _error(str(error)) from None


def _error(problem: str) -> EmbarkError:
    return EmbarkError(f"{Path(FOLDER_FILE).resolve()}: {problem}")
