"""Cards by name and property, and numbers of parameters as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from embark.catalogue import UnknownName
from embark.models import LOADERS, MODELS, get_models, parameter_count, short_count
from embark.types import EmbarkError


def names(*patterns: Any, **filters: Any) -> list[str]:
    return [card.name for card in get_models(*patterns, **filters)]


def test_without_filters_all_cards_are_listed_in_their_order() -> None:
    assert get_models() == list(MODELS.values())


def test_names_are_exact_or_patterns() -> None:
    assert names("embark/pocket") == ["embark/pocket"]
    assert names(["embark/r*", "embark/pocket"]) == ["embark/random", "embark/pocket"]
    assert names([]) == []


def test_a_model_takes_all_the_modalities() -> None:
    audio = get_models(modalities="audio")
    assert 0 < len(audio) < len(MODELS)
    assert all("audio" in card.modalities for card in audio)
    both = get_models(modalities=["audio", "text"])
    assert both == [card for card in audio if "text" in card.modalities]


def test_other_properties_need_one_of_the_words() -> None:
    assert {card.family for card in get_models(families=["CLIP", "SigLIP*"])} == {"CLIP", "SigLIP", "SigLIP2"}
    assert {card.kind for card in get_models(kinds=["reranker", "gen*"])} == {"reranker", "generator"}
    assert {card.loader for card in get_models(loaders="open_clip")} == {"open_clip"}
    assert {LOADERS[card.loader].type for card in get_models(types=["mllm", "late"])} == {"mllm", "late"}
    assert get_models(loaders="onnx") == []  # a loader without a card


def test_a_model_of_unknown_size_passes_no_limit() -> None:
    small = get_models(max_parameters="200M")
    assert small == get_models(max_parameters=200e6)
    assert small == [card for card in MODELS.values() if card.parameters is not None and card.parameters <= 2e8]


def test_filters_narrow_together() -> None:
    found = names("openai/*", families="CLIP", max_parameters="400M", modalities=["text", "image"], kinds="embedder")
    assert found == ["openai/clip-vit-base-patch32", "openai/clip-vit-base-patch16"]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"names": "embark/poket"}, "no model named 'embark/poket'. Did you mean embark/pocket"),
        ({"families": "SigLP"}, "no family named 'SigLP'. Did you mean SigLIP"),
        ({"kinds": "rerankers"}, "no kind named 'rerankers'. Did you mean reranker"),
        ({"loaders": "smell"}, "no loader named 'smell'.*There are pocket, "),
        ({"types": "llm"}, "no type of model named 'llm'. Did you mean mllm"),
        ({"modalities": ["text", "images"]}, "no modality named 'images'. Did you mean image"),
    ],
)
def test_unknown_words_are_errors_with_suggestions(filters: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        get_models(**filters)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("400M", 4e8),
        ("1.5B", 1.5e9),
        ("7e9", 7e9),
        ("2.5E+9", 2.5e9),
        ("500k", 5e5),
        (".5b", 5e8),
        ("7.", 7),
        ("151000000", 151e6),
        (" 3 M ", 3e6),
        ("0", 0),
    ],
)
def test_numbers_of_parameters(text: str, count: float) -> None:
    assert parameter_count(text) == count


@pytest.mark.parametrize("text", ["", "M", "many", "4T", "-4M", "1.2.3B", "nan", "inf", "4e-3", "1e", "4MB", "."])
def test_what_is_no_number_of_parameters_is_an_error(text: str) -> None:
    with pytest.raises(EmbarkError, match=r"is no number of parameters; write 400M or 1\.5B"):
        parameter_count(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "?"),
        (0, "0"),
        (999, "999"),
        (1_000, "1K"),
        (22_056_576, "22.1M"),
        (400_000_000, "400M"),
        (1_500_000_000, "1.5B"),
        (7_070_000_000, "7.07B"),
    ],
)
def test_short_numbers(count: int | None, text: str) -> None:
    assert short_count(count) == text
