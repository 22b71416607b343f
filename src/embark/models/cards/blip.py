"""BLIP and BLIP-2 retrieval models.

MIEB lists BLIP's vectors as 768 wide, and ran two checkpoints that answer questions. The heads project to 256, and
those checkpoints have none: their published vectors came out of projections that were drawn at random, by a seed that
nobody wrote down. Their cards draw them by seed 0: images compare with images, and texts with texts, nearly as
published (a random projection keeps distances), and images with texts by chance, as published. MIEB's two BLIP-2 rows
carry the names of generation models; what ran was the image-text-matching model of the same training.
"""

from __future__ import annotations

from typing import Any

from embark.types import ModelCard

TUNED = {"coco": "COCO", "flickr": "Flickr30k"}


def _row(name: str, revision: str, loader: str, dim: int, **more: Any) -> ModelCard:
    return ModelCard(
        f"Salesforce/{name}", revision, loader, ("text", "image", "video"), dim, source=f"Salesforce/{name}", data=129,
        objective="contrastive, matching, captioning", architecture="vit", **more,
    )  # fmt: skip


def _blip(size: str, tuned: str, revision: str, parameters: int, unibench: str) -> ModelCard:
    name = f"blip-itm-{size}-{tuned}"
    return _row(
        name, revision, "blip", 256, fusion="unit-sum", family="BLIP", parameters=parameters, context=512,
        image_size=384, license="BSD-3-Clause", reference="https://arxiv.org/abs/2201.12086",
        aliases={"MIEB": f"Salesforce/{name}", "UniBench": unibench},
        description=f"BLIP, trained on captions that it filtered and wrote itself; tuned on {TUNED[tuned]}.",
    )  # fmt: skip


def _blip_vqa(name: str, revision: str) -> ModelCard:
    return _row(
        f"blip-vqa-{name}", revision, "blip", 256, fusion="unit-sum", options={"untrained_heads": 0}, family="BLIP",
        parameters=384_672_572, context=512, image_size=384, license="BSD-3-Clause",
        reference="https://arxiv.org/abs/2201.12086", aliases={"MIEB": f"Salesforce/blip-vqa-{name}"},
        description="BLIP tuned to answer questions. It has no projections into one space: as in MIEB's run they are "
        "drawn at random (here by seed 0), so texts and images meet by chance.",
    )  # fmt: skip


def _blip2(name: str, size: int, mieb: str, tuned: str) -> ModelCard:
    return _row(
        name, "main", "blip2", 768, fusion="native", family="BLIP-2", parameters=1_173_000_000, context=32,
        image_size=size, license="MIT", reference="https://arxiv.org/abs/2301.12597", aliases={"MIEB": mieb},
        description=f"A Q-Former between a frozen image tower and text{tuned}; as in MIEB, without its heads.",
    )  # fmt: skip


CARDS = (
    _blip("base", "coco", "7eaa90c11850c0b17fc38c6a11e7d88bd6ac231f", 223_744_258, "blip_vitB16_coco"),
    _blip("large", "coco", "fef05cafc05298067cbbca00b125749394a77a6f", 446_128_642, "blip_vitL16_coco"),
    _blip("base", "flickr", "1de29e660d91ae1786c1876212ea805a22eab251", 223_744_258, "blip_vitB16_flickr"),
    _blip("large", "flickr", "bda12e6506758f54261b5ab174b2c55a3ba143fb", 446_128_642, "blip_vitL16_flickr"),
    _blip_vqa("base", "c7df8e7cd7aa2ee9af18f56e2b29e59a92651b64"),
    _blip_vqa("capfilt-large", "e53f95265aeab69013fabb5380500ab984adbbb4"),
    _blip2("blip2-itm-vit-g", 224, "Salesforce/blip2-opt-2.7b", ""),
    _blip2("blip2-itm-vit-g-coco", 364, "Salesforce/blip2-opt-6.7b-coco", ", tuned on COCO"),
)
