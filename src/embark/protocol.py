"""Identities and fingerprints: what decides a vector, and what decides a score.

    identity       the facts of a card that can change a vector
    vector_space   their hash: the name of the space that a model's vectors are stored in
    fingerprint    the hash of the protocol of a score: the row, the data, the versions of the code

The key of a vector is made of its space and the item as the model sees it (`embark.items.key`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from embark import evaluators, readers
from embark.types import EmbarkError, ModelCard, Style, Task

SCORED_BY = (
    "name", "evaluator", "reader", "columns", "params", "options",
    "instructions", "labels", "templates", "metric", "unreadable",
)  # fmt: skip
OF_VECTORS = ("revision", "loader", "dim", "fusion", "dtype", "stored", "frames", "sample_rate")


# ── what decides a vector ────────────────────────────────────────────────────────────────────────────────────────────


def identity(card: ModelCard) -> dict[str, Any]:
    """All facts of a card that can change a vector, and nothing else.

    An optional fact is left out at its default, so that a new field changes no key.
    """
    facts = {"name": card.keyed_as or card.name} | {name: getattr(card, name) for name in OF_VECTORS}
    facts["settings"] = card.options  # its name in the keys of stored vectors
    hashed = card.revision.startswith(("local-", "sha256-"))  # a hash of the files, wherever they are
    optional = {"source": "" if hashed else card.source, "context": card.context, "pixels": card.pixels}
    defaults = {"source": "", "context": None, "pixels": "pillow"}
    return facts | {name: value for name, value in optional.items() if value != defaults[name]}


def vector_space(card: ModelCard) -> str:
    """The name of a model's vector space: a hash of all that can change a vector."""
    return _digest(identity(card), 32, f"The card of {card.name}")


def encoder_fingerprint(card: ModelCard) -> str:
    """The identity of a model in a record: the space of its vectors, and the similarity that compares them."""
    return f"{vector_space(card)}-{card.similarity}"


def style_used(card: ModelCard, style: Style | None) -> str:
    """How a result says which rendering was used: empty where the row has no style."""
    if style is None:
        return ""
    return f"{style.name}: {'as the paper ran it' if style.name in card.styles else 'as its card says'}"


# ── what decides a score ─────────────────────────────────────────────────────────────────────────────────────────────


def fingerprint_of(task: Task, split: str, subset: str) -> str:
    """The fingerprint of the protocol by which this part of a task is scored, with the code and the data of now."""
    versions = evaluators.version(task.evaluator, task.params), readers.version(task.reader)
    return fingerprint(task, split, subset, *versions, readers.external_state(task))


def fingerprint(task: Task, split: str, subset: str, evaluator: int, reader: int, external_state: str = "") -> str:
    """Fingerprint of all that can change a score besides the model: the row, the data, the code's versions."""
    stated = {name: getattr(task, name) for name in SCORED_BY}
    id = task.source.id
    if Path(id).is_absolute():  # a folder is its content, wherever it lies and whoever may look into it
        id = "folder"
        stated["options"] = {name: value for name, value in task.options.items() if name != "allow_outside"}
    stated |= {"source": [id, task.source.revision, task.source.config, split, subset]}
    style = task.style and vars(task.style)
    upright = task.upright and "image" in task.modalities
    more: dict[str, Any] = {"outside": external_state, "files": task.source.files, "style": style, "upright": upright}
    more["limit"] = task.limit  # mostly, all of these are empty
    stated |= {"versions": [evaluator, reader], **{name: value for name, value in more.items() if value}}
    return _digest(stated, 16, f"The row of {task.name}")


def _digest(facts: Mapping[str, Any], length: int, whose: str) -> str:
    """A hash of facts that are text, numbers, lists and mappings; the order of a mapping or a set does not count."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, (set, frozenset)):
            return sorted(value)  # their own order differs from process to process
        if isinstance(value, (np.ndarray, np.generic)):
            return value.tolist()
        raise EmbarkError(
            f"{whose} holds {value!r}, which cannot be hashed: use text, numbers, lists and mappings in its options."
        )

    text = json.dumps(facts, sort_keys=True, ensure_ascii=False, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:length]
