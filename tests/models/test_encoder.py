"""Encoders made of towers: fusion by hand, frames to films, errors, and the name of a vector space."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from embark import models
from embark.models.encoder import Encoder, Tower, Towers, frame_mean, prepare_many, unit
from embark.protocol import vector_space
from embark.types import MODALITIES, Array, Content, EmbarkError, Item, ModelCard, Text

CARD = ModelCard("local/towers", "1", "none", MODALITIES, dim=2)
PLAIN = Tower(lambda rows: np.array(rows, np.float32))  # the values are the vectors


def towers(**changes: Any) -> Towers:
    return Towers(replace(CARD, **changes), {"text": PLAIN, "image": PLAIN, "audio": PLAIN, "video": frame_mean(PLAIN)})


def embed(model: Towers, *items: list[tuple[Any, Any]]) -> Array:
    return model.embed([model.prepare([Content(kind, value) for kind, value in item], "") for item in items])


@pytest.mark.parametrize(
    ("fusion", "expected"),
    [("sum", [[3, 4], [3, 9], [0, 2]]), ("unit-sum", [[3, 4], [0.6, 1.8], [0, 2]])],
)
def test_mixed_items_fuse_by_the_rule(fusion: str, expected: list[list[float]]) -> None:
    out = embed(
        towers(fusion=fusion),
        [("text", [3, 4])],  # alone: as the model returned it
        [("text", [3, 4]), ("image", [0, 5])],
        [("image", [0, 2])],
    )
    assert np.allclose(out, expected)


def test_parts_of_one_kind_fuse_too() -> None:
    assert np.allclose(embed(towers(fusion="unit-sum"), [("text", [2, 0]), ("text", [0, 7])]), [[1, 1]])


def test_a_zero_part_adds_nothing() -> None:
    assert np.allclose(embed(towers(fusion="unit-sum"), [("text", [0, 0]), ("image", [0, 7])]), [[0, 1]])


@pytest.mark.parametrize("fusion", [None, "native"])
def test_without_a_rule_mixed_items_are_refused(fusion: str | None) -> None:
    model = towers(fusion=fusion)
    assert np.allclose(embed(model, [("text", [3, 4])]), [[3, 4]])
    with pytest.raises(EmbarkError, match="no rule to fuse"):
        embed(model, [("text", [3, 4]), ("image", [0, 5])])


def test_vectors_of_other_dimensions_are_not_added() -> None:
    with pytest.raises(EmbarkError, match=r"dimensions \[2, 3\]"):
        embed(towers(fusion="sum"), [("text", [3, 4]), ("image", [0, 5, 1])])


@pytest.mark.parametrize("result", [np.zeros((1, 4)), np.zeros(2), np.zeros((2, 1, 4))])
def test_a_wrong_number_of_rows_is_an_error(result: Array) -> None:
    model = Towers(CARD, {"text": Tower(lambda values: result)})
    with pytest.raises(EmbarkError, match="given 2 text inputs and returned an array of shape"):
        embed(model, [("text", "a")], [("text", "b")])


def test_films_are_the_mean_direction_of_their_frames() -> None:
    film = [[1, 0], [0, 9]]  # how long a frame's vector is does not count
    out = embed(towers(), [("video", film)], [("video", [[0, 5]])], [("video", [[3, 4], [3, 4], [3, 4]])])
    assert np.allclose(out, [[0.5**0.5, 0.5**0.5], [0, 1], [0.6, 0.8]])


def test_frames_are_prepared_like_images() -> None:
    tower = frame_mean(Tower(PLAIN.embed, lambda value: [value, 1]))
    assert tower.prepare([5, 6]) == [[5, 1], [6, 1]]


def test_roles_and_instructions_change_nothing_unless_a_model_says_so() -> None:
    item = Item((Text("a cat"),))
    assert towers().render(item, "query", "Find it") == towers().render(item, "document", None)


@given(arrays(np.float32, (5, 3), elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False)))
def test_unit_rows(rows: Array) -> None:
    rows = np.where(np.abs(rows) < 1e-6, 0, rows)
    lengths = np.linalg.norm(unit(rows), axis=1)
    assert np.allclose(lengths, rows.any(1), atol=1e-5)


# ── many items at once ───────────────────────────────────────────────────────────────────────────────────────────────

PARTS = st.lists(st.sampled_from([Content("text", "a"), Content("text", "bb"), Content("image", "x")]), max_size=3)


def batching() -> tuple[Towers, list[list[str]]]:
    """Towers of which that of texts prepares many together, and the lists that it was given."""
    calls: list[list[str]] = []

    def many(texts: list[str]) -> list[str]:
        calls.append(texts)
        return [text.upper() for text in texts]

    image = Tower(PLAIN.embed, lambda value: f"<{value}>", {"other": lambda value: f"[{value}]"})
    return Towers(CARD, {"text": Tower(PLAIN.embed, str.upper, prepare_many=many), "image": image}), calls


@given(st.lists(st.tuples(PARTS, st.sampled_from(["", "other"])), max_size=6))
def test_many_items_are_prepared_as_one_is(items: list[tuple[list[Content], str]]) -> None:
    model, _ = batching()
    together = prepare_many(model, [contents for contents, _ in items], [mode for _, mode in items])
    assert together == [model.prepare(contents, mode) for contents, mode in items]


def test_a_tower_that_prepares_many_gets_them_in_one_call() -> None:
    model, calls = batching()
    prepare_many(model, [[Content("text", word)] for word in "abc"], [""] * 3)
    assert calls == [["a", "b", "c"]]


def test_an_encoder_with_a_prepare_of_its_own_is_asked_for_that() -> None:
    class Marked(Encoder):
        """Prepares in its own way what towers prepare."""

        card = CARD

        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            return "own", model.prepare(contents, mode)

    model, calls = batching()
    own = Marked()
    batch = [[Content("text", "a")], [Content("text", "b")]]
    assert prepare_many(own, batch, ["", ""]) == [own.prepare(contents, "") for contents in batch]
    assert not calls


def test_a_tower_that_loses_a_part_is_an_error() -> None:
    model = Towers(CARD, {"text": Tower(PLAIN.embed, prepare_many=lambda texts: texts[1:])})
    with pytest.raises(EmbarkError, match="prepared 1 text inputs of 2"):
        prepare_many(model, [[Content("text", "a")], [Content("text", "b")]], ["", ""])


OTHER: dict[str, Any] = {
    "name": "local/other",
    "keyed_as": "local/other",
    "revision": "2",
    "loader": "other",
    "dim": 3,
    "fusion": "sum",
    "dtype": "bfloat16",
    "stored": "float16",
    "frames": 4,
    "sample_rate": 48_000,
    "options": {"pooling": "mean"},
    "source": "org/other",
    "context": 77,
    "pixels": "cuda",
}
SAME: dict[str, Any] = {
    "modalities": ("text",),
    "similarity": "dot",
    "kind": "reranker",
    "family": "Other",
    "parameters": 7,
    "image_size": 224,
    "instructed": True,
    "normalized": True,
    "data": 400,
    "trained_on": ("ImageNet-1k",),
    "objective": "contrastive",
    "architecture": "vit",
    "price": 0.1,
    "image_price": 0.2,
    "logit_scale": 100.0,
    "gpus": 2,
    "aliases": {"MIEB": "other"},
    "loaded": {"device": "cpu"},
    "styles": {"MIEB": {"pixels": "openai-224"}},
    "license": "MIT",
    "reference": "https://example.org",
    "description": "Other words.",
}


def test_every_field_of_a_card_was_thought_of() -> None:
    assert {field.name for field in fields(ModelCard)} == OTHER.keys() | SAME.keys()


@pytest.mark.parametrize("name", OTHER)
def test_what_changes_vectors_changes_the_fingerprint(name: str) -> None:
    assert vector_space(replace(CARD, **{name: OTHER[name]})) != vector_space(CARD)


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_change_vectors_does_not(name: str) -> None:
    assert vector_space(replace(CARD, **{name: SAME[name]})) == vector_space(CARD)


READ = {  # fields that code of models may read although they are no part of the key, and why
    "modalities": "what may be embedded, not how",
    "similarity": "how vectors are compared",
    "instructed": "what `render` makes of it is in the key",
    "kind": "which protocol it follows",
    "loaded": "how it was put to work",
    "styles": "what `render` makes of an answer, and its facts about pixels and tokens (the mode), are in the key",
    **dict.fromkeys(("price", "image_price"), "the bill"),
}
LISTED = {"__init__": {"family", "parameters", "gpus"}}  # which `get_models` filters by, and which devices it takes


@pytest.mark.parametrize("path", sorted(Path(models.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_loaders_read_nothing_of_a_card_that_the_key_leaves_out(path: Path) -> None:
    known = {field.name for field in fields(ModelCard)}
    allowed = OTHER.keys() | READ.keys() | LISTED.get(path.stem, set())
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in known:
            owner = ast.unparse(node.value)
            if owner.split(".")[-1] in ("card", "ready"):
                assert node.attr in allowed, f"line {node.lineno}: {owner}.{node.attr}"


def test_the_order_of_settings_does_not_matter() -> None:
    one, other = ({"a": 1, "b": (2, 3)}, {"b": (2, 3), "a": 1})
    assert vector_space(replace(CARD, options=one)) == vector_space(replace(CARD, options=other))


def test_no_setting_is_left_out_of_the_name_of_a_space() -> None:
    card = ModelCard("test/m", "1", "none", ("text",))
    spaces = {
        vector_space(replace(card, options=settings))
        for settings in (
            {"a": {"b": 1}},
            {"a": {"b": 2}},
            {"a": MappingProxyType({"b": 3})},
            MappingProxyType({"a": {"b": 4}}),
            {"a": {"b"}},
            {"a": np.array([1.5])},
            {"a": np.array([2.5])},
        )
    }
    assert len(spaces) == 7
    plain, proxy = {"a": {"b": 1}}, MappingProxyType({"a": MappingProxyType({"b": 1})})
    assert vector_space(replace(card, options=plain)) == vector_space(replace(card, options=proxy))
    with pytest.raises(EmbarkError, match="cannot be hashed"):
        vector_space(replace(card, options={"a": object()}))
