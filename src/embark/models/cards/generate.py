"""Generators: captioners and rewriters."""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard


def _card(name: str, loader: str, family: str, **facts: Any) -> ModelCard:
    return ModelCard(
        name, loader=loader, family=family, **{
            "revision": "main", "modalities": ("text", "image", "video"), "dim": 1, "stored": "uint8", "source": name,
            "kind": "generator", "dtype": "bfloat16", "license": "Apache-2.0",
            "reference": f"https://huggingface.co/{name}", **facts,
        },
    )  # fmt: skip


_CAPTIONS = "Puts pictures and films into words, and rewrites queries."
_BLIP: dict[str, Any] = {"modalities": ("image",), "dtype": "float32", "license": "BSD-3-Clause", "image_size": 384}

CARDS: tuple[ModelCard, ...] = (
    _card("Qwen/Qwen3-VL-2B-Instruct", "chat", "Qwen3-VL", architecture="Qwen3-VL-2B", description=_CAPTIONS),
    _card("Qwen/Qwen3-VL-4B-Instruct", "chat", "Qwen3-VL", architecture="Qwen3-VL-4B", description=_CAPTIONS),
    _card(
        "Qwen/Qwen3-VL-8B-Instruct", "chat", "Qwen3-VL", architecture="Qwen3-VL-8B",
        description=_CAPTIONS + " The ARK paper's captioner.",
    ),
    _card("Qwen/Qwen2.5-VL-7B-Instruct", "chat", "Qwen2.5-VL", architecture="Qwen2.5-VL-7B", description=_CAPTIONS),
    _card("Qwen/Qwen2-VL-2B-Instruct", "chat", "Qwen2-VL", architecture="Qwen2-VL-2B", description=_CAPTIONS),
    _card(
        "Qwen/Qwen3-8B", "chat", "Qwen3", modalities=("text",), architecture="Qwen3-8B",
        description="Rewrites queries of text; answers without thinking aloud.",
    ),
    _card(
        "Salesforce/blip-image-captioning-base", "blip-caption", "BLIP", **_BLIP, architecture="BLIP ViT-B/16",
        description="Short captions of pictures; takes no prompt.",
    ),
    _card(
        "Salesforce/blip-image-captioning-large", "blip-caption", "BLIP", **_BLIP, architecture="BLIP ViT-L/16",
        description="Short captions of pictures; takes no prompt.",
    ),
)  # fmt: skip
