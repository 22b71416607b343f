"""Models that open_clip reads and MIEB evaluates: LAION's, DataComp's and EVA's; UniBench has all of them, too."""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard

OPEN_CLIP = "https://arxiv.org/abs/2212.07143"
DATACOMP = "https://arxiv.org/abs/2304.14108"


def row(name: str, revision: str, dim: int, parameters: int, data: float, unibench: str, **more: Any) -> ModelCard:
    """A card of this loader; `parameters` are those of both towers, `data` as UniBench states it."""
    aliases = {**more.pop("aliases", {}), **({"UniBench": unibench} if unibench else {})}
    return ModelCard(
        name, revision, "open_clip", ("text", "image", "video"), dim, parameters=parameters, data=data, aliases=aliases,
        **{
            "source": name, "fusion": "sum", "image_size": 224, "context": 77, "normalized": False,
            "architecture": "vit", "objective": "contrastive", "license": "MIT", **more,
        },
    )  # fmt: skip


def _laion(model: str, revision: str, dim: int, parameters: int, unibench: str, **more: Any) -> ModelCard:
    name = f"laion/CLIP-ViT-{model}"
    return row(
        name, revision, dim, parameters, 2000, unibench, **{
            "family": "OpenCLIP", "reference": OPEN_CLIP, "aliases": {"MIEB": name},
            "description": "CLIP's recipe on LAION's two billion pairs.", **more,
        },
    )  # fmt: skip


def _datacomp(model: str, revision: str, dim: int, parameters: int, unibench: str) -> ModelCard:
    name = f"laion/CLIP-ViT-{model}-DataComp.XL-s13B-b90K"
    return row(
        name, revision, dim, parameters, 12_800, unibench, family="DataComp", aliases={"MIEB": name},
        reference=DATACOMP,
        description="CLIP's recipe on what DataComp's filter left of its largest pool.",
    )  # fmt: skip


def _eva(model: str, source: str, tag: str, dim: int, parameters: int, unibench: str) -> ModelCard:
    """MIEB's names are of no repository; the weights are those of open_clip's tags."""
    name = f"QuanSun/EVA02-CLIP-{model}"
    return row(
        name, "main", dim, parameters, 2000, unibench, source=source, family="EVA-CLIP", aliases={"MIEB": name},
        options={"architecture": f"EVA02-{model.removeprefix('big')}", "pretrained": tag},
        reference="https://arxiv.org/abs/2303.15389",
        description="An image tower that learnt from masked images first, then as CLIP does.",
    )  # fmt: skip


CARDS = (
    _laion("B-32-laion2B-s34B-b79K", "08f73555f1b2fb7c82058aebbd492887a94968ef", 512, 151_277_313,
           "openclip_vitB32_2b"),
    _laion("L-14-laion2B-s32B-b82K", "1627032197142fbe2a7cfec626f4ced3ae60d07a", 768, 427_616_513,
           "openclip_vitL14_2b"),
    _laion("H-14-laion2B-s32B-b79K", "de081ac0a0ca8dc9d1533eed1ae884bb8ae1404b", 1024, 986_109_441, "openclip_vitH14"),
    _laion("g-14-laion2B-s34B-b88K", "15efd0f6ac0c40c0f9da7becca03c974d7012604", 1024, 1_366_678_273,
           "openclip_vitG14_2b"),
    _laion("bigG-14-laion2B-39B-b160k", "bc7788f151930d91b58474715fdce5524ad9a189", 1280, 2_539_567_105,
           "openclip_vitbigG14_2b"),
    _datacomp("B-32", "f0e2ffa09cbadab3db6a261ec1ec56407ce42912", 512, 151_277_313, "openclip_vitB32_datacomp_xl"),
    _datacomp("B-16", "d110532e8d4ff91c574ee60a342323f28468b287", 512, 149_620_737, "openclip_vitB16_datacomp_xl"),
    _datacomp("L-14", "84c9828e63dc9a9351d1fe637c346d4c1c4db341", 768, 427_616_513, "openclip_vitL14_datacomp_xl"),
    _eva("B-16", "timm/eva02_base_patch16_clip_224.merged2b_s8b_b131k", "merged2b_s8b_b131k", 512, 149_691_137,
         "eva02_vitB16_2b"),
    _eva("L-14", "timm/eva02_large_patch14_clip_224.merged2b_s4b_b131k", "merged2b_s4b_b131k", 768, 427_755_457,
         "eva02_vitL14_2b"),
    _eva("bigE-14", "timm/eva02_enormous_patch14_clip_224.laion2b_s4b_b115k", "laion2b_s4b_b115k", 1024, 4_704_589_569,
         "eva02_vitE14_2b"),
    _eva("bigE-14-plus", "timm/eva02_enormous_patch14_plus_clip_224.laion2b_s9b_b144k", "laion2b_s9b_b144k", 1024,
         5_044_889_089, "eva02_vitE14_plus_2b"),
)  # fmt: skip
