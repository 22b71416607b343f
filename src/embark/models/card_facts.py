"""Cards from plain values, as JSON and TOML have them; whatever comes from a file is checked field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from embark.redaction import last_name
from embark.types import MODALITIES, EmbarkError, ModelCard

Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0  # true is an int, too


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value))


_KINDS: tuple[tuple[str, Check, tuple[str, ...]], ...] = (
    ("a text", _is_text, ("name", "revision", "loader", "dtype", "source", "family", "objective", "architecture",
                          "license", "reference", "description", "keyed_as")),
    ("a whole number", _is_whole, ("dim", "frames", "sample_rate", "parameters", "context", "image_size", "gpus")),
    ("a number", _is_number, ("data", "price", "image_price", "logit_scale")),
    ("true or false", _is_flag, ("instructed", "normalized")),
    ("a list of texts", _are_texts, ("trained_on",)),
    ("a table", lambda value: isinstance(value, Mapping), ("options", "aliases", "styles", "loaded")),
    ("a list of modalities", lambda value: _are_texts(value) and set(value) <= set(MODALITIES), ("modalities",)),
    ("cosine, dot or maxsim", lambda value: value in ("cosine", "dot", "maxsim"), ("similarity",)),
    ("sum, unit-sum or native", lambda value: value in ("sum", "unit-sum", "native"), ("fusion",)),
    ("float16, float32 or uint8", lambda value: value in ("float16", "float32", "uint8"), ("stored",)),
    ("pillow or cuda", lambda value: value in ("pillow", "cuda"), ("pixels",)),
    ("embedder, reranker or generator", lambda value: value in ("embedder", "reranker", "generator"), ("kind",)),
)  # fmt: skip
_CHECKS = {name: (description, check) for description, check, names in _KINDS for name in names}
_TUPLES = ("modalities", "trained_on")
_OPTIONAL = {spec.name for spec in fields(ModelCard) if spec.default is None}


def card_facts(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a card's fields; another kind of value than the field has is an error that names it."""
    facts = {}
    for name, value in stated.items():
        description, check = _CHECKS[name]
        if not (check(value) or (value is None and name in _OPTIONAL)):
            raise EmbarkError(f"'{name}' of a model must be {description}, not {value!r}.")
        facts[name] = tuple(value) if name in _TUPLES and value is not None else value
    return facts


def stored_card(stated: Mapping[str, Any]) -> ModelCard | None:
    """The card that stands beside results; None where it is damaged. Fields of another version are left out."""
    try:
        return ModelCard(**card_facts({name: value for name, value in stated.items() if name in _CHECKS}))
    except (EmbarkError, TypeError):  # a wrong value, or none where one must be
        return None


LOCAL_REVISIONS = ("local-", "sha256-")  # begin the revisions of checkpoints on this machine: a hash of their files


def public_card(card: ModelCard) -> ModelCard:
    """The card for others: a checkpoint of this machine is named by its last folder, as nobody else has the others."""
    local = card.revision.startswith(LOCAL_REVISIONS) or Path(card.source).expanduser().is_absolute()
    return replace(card, source=last_name(card.source)) if local else card
