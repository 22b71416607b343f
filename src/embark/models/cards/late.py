"""Late-interaction models: a vector for every token or patch, compared by maxsim."""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard


def _card(name: str, loader: str, family: str, parameters: int | None, **facts: Any) -> ModelCard:
    return ModelCard(
        name, loader=loader, family=family, parameters=parameters, **{
            "revision": "main", "dim": 128, "similarity": "maxsim", "source": name, "objective": "contrastive",
            "license": "Apache-2.0", "reference": f"https://huggingface.co/{name}", **facts,
        },
    )  # fmt: skip


_PAGES: dict[str, Any] = {"modalities": ("text", "image"), "dtype": "bfloat16"}
_TEXT: dict[str, Any] = {"modalities": ("text",)}

CARDS: tuple[ModelCard, ...] = (
    _card(
        "vidore/colpali-v1.2-hf", "late", "ColPali", 2_920_000_000, **_PAGES, architecture="PaliGemma-3B",
        image_size=448, license="Gemma", description="Questions and pictures of pages, by PaliGemma.",
    ),
    _card(
        "vidore/colpali-v1.3-hf", "late", "ColPali", 2_920_000_000, **_PAGES, architecture="PaliGemma-3B",
        image_size=448, license="Gemma", description="Questions and pictures of pages, by PaliGemma.",
        aliases={"MMEB-V3": "vidore/colpali-v1.3"},
    ),
    _card(
        "vidore/colqwen2-v1.0-hf", "late", "ColQwen2", 2_210_000_000, **_PAGES, architecture="Qwen2-VL-2B",
        context=32_768, description="Questions and pictures of pages in their own shapes, by Qwen2-VL.",
    ),
    _card(
        "colbert-ir/colbertv2.0", "colbert", "ColBERT", 109_580_544, **_TEXT, architecture="BERT base", context=512,
        license="MIT", description="English text, trained on web search.",
    ),
    _card(
        "lightonai/GTE-ModernColBERT-v1", "colbert", "ColBERT", None, **_TEXT, architecture="ModernBERT base",
        context=8192, description="English text of any length.",
    ),
)  # fmt: skip
