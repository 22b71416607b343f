"""Models behind an API. Prices are the providers' list prices of 2025, in US dollars; `source` is the API's name."""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard


def _card(
    name: str, loader: str, source: str, dim: int, price: float | None, description: str, **more: Any
) -> ModelCard:
    """What all of them share: nobody outside knows their weights."""
    return ModelCard(
        name=name, loader=loader, source=source, dim=dim, price=price, description=description,
        **{"revision": "1", "modalities": ("text",), "license": "proprietary", **more},
    )  # fmt: skip


def _openai(source: str, dim: int, price: float, description: str) -> ModelCard:
    return _card(
        f"openai/{source}", "openai", source, dim, price, description, family="OpenAI", context=8191, normalized=True,
        reference="https://platform.openai.com/docs/guides/embeddings",
    )  # fmt: skip


def _voyage(source: str, price: float, description: str, loader: str = "voyage", **more: Any) -> ModelCard:
    return _card(
        f"voyageai/{source}", loader, source, 1024, price, description, family="Voyage", normalized=True,
        **{"reference": "https://docs.voyageai.com/docs/embeddings", "context": 32_000, **more},
    )  # fmt: skip


IMAGES: dict[str, Any] = {"modalities": ("text", "image"), "fusion": "native"}
VOYAGE_MULTIMODAL: dict[str, Any] = {
    **IMAGES,
    "loader": "voyage-multimodal",
    "image_price": 0.336,  # 0.60 dollars a billion pixels, at 560 pixels a token
    "reference": "https://docs.voyageai.com/docs/multimodal-embeddings",
}

CARDS = (
    _openai("text-embedding-3-small", 1536, 0.02, "OpenAI's small text embedding of 2024."),
    _openai("text-embedding-3-large", 3072, 0.13, "OpenAI's large text embedding of 2024."),
    _openai("text-embedding-ada-002", 1536, 0.10, "OpenAI's text embedding of 2022."),
    _voyage("voyage-3-large", 0.18, "Voyage's large text embedding of January 2025."),
    _voyage("voyage-3.5", 0.06, "Voyage's text embedding of May 2025."),
    _voyage("voyage-3.5-lite", 0.02, "Voyage's small text embedding of May 2025."),
    _voyage(
        "voyage-multimodal-3", 0.12, "Texts, images and mixtures through one backbone; told apart: queries, documents.",
        **VOYAGE_MULTIMODAL, aliases={"MIEB": "voyageai/voyage-multimodal-3"},
    ),
    _voyage("voyage-multimodal-3.5", 0.12, "The successor of voyage-multimodal-3.", **VOYAGE_MULTIMODAL),
    _card(
        "Cohere/Cohere-embed-v4.0", "cohere", "embed-v4.0", 1536, 0.12, "Texts, images and mixtures of them.",
        **IMAGES, family="Cohere", context=128_000, image_price=0.47, reference="https://docs.cohere.com/docs/cohere-embed",
    ),
    _card(
        "Bytedance/Seed1.6-embedding-1215", "doubao", "doubao-embedding-vision-251215", 2048, None,
        "Doubao's embedding of texts, images and mixtures; priced in yuan.",
        **IMAGES, family="Seed", reference="https://www.volcengine.com/docs/82379/1523520",
        aliases={"ARK": "Doubao-Embedding-Vision"},
    ),
)  # fmt: skip
