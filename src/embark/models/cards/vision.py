"""Models of images alone, as MIEB evaluates them: DINOv2 and MoCo v3."""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard


def _row(name: str, revision: str, loader: str, dim: int, parameters: int, **more: Any) -> ModelCard:
    return ModelCard(
        name, revision, loader, ("image", "video"), dim, parameters=parameters, source=name, image_size=224,
        normalized=False, architecture="vit", objective="self-supervised", aliases={"MIEB": name}, **more,
    )  # fmt: skip


def _dino(size: str, revision: str, dim: int, parameters: int) -> ModelCard:
    return _row(
        f"facebook/dinov2-{size}", revision, "dino", dim, parameters, family="DINOv2", data=142, license="Apache-2.0",
        reference="https://arxiv.org/abs/2304.07193",
        description="Learnt from 142 million images without a word about them; the class token is the vector.",
    )  # fmt: skip


def _moco(size: str, revision: str, dim: int, parameters: int, architecture: str) -> ModelCard:
    return _row(
        f"nyu-visionx/moco-v3-vit-{size}", revision, "timm", dim, parameters, family="MoCo-v3", data=1.28,
        options={"architecture": architecture}, license="CC-BY-NC-4.0", reference="https://arxiv.org/abs/2104.02057",
        description="Learnt to tell ImageNet's images apart; MIEB reads them on the pixel scale of timm's own weights.",
    )  # fmt: skip


CARDS = (
    _dino("small", "ed25f3a31f01632728cabb09d1542f84ab7b0056", 384, 22_056_576),
    _dino("base", "f9e44c814b77203eaa57a6bdbbd535f21ede1415", 768, 86_580_480),
    _dino("large", "47b73eefe95e8d44ec3623f8890bd894b6ea2d6c", 1024, 304_368_640),
    _dino("giant", "611a9d42f2335e0f921f1e313ad3c1b7178d206d", 1536, 1_136_480_768),
    _moco("b", "7d091cd70772c5c0ecf7f00b5f12ca609a99d69d", 768, 86_600_000, "vit_base_patch16_224"),
    _moco("l", "7bf75358d616f39b9716148bf4e3425f3bd35b47", 1024, 304_000_000, "vit_large_patch16_224"),
)
