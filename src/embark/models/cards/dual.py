"""Dual encoders of transformers: CLIP, SigLIP, MetaCLIP, ALIGN and their kin.

Where no source pins a revision it is "main", and the commit that this stood for is recorded with every vector.
Parameters of SigLIP 2 and MetaCLIP 2 are counted from their architectures; the same count is exact for CLIP and SigLIP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.types import ModelCard


def _row(name: str, revision: str, dim: int, **more: Any) -> ModelCard:
    return ModelCard(
        name, revision, "dual", ("text", "image", "video"), dim, fusion="sum", source=name,
        **{"architecture": "vit", **more},
    )  # fmt: skip


def _clip(name: str, revision: str, dim: int, parameters: int, size: int, **aliases: str) -> ModelCard:
    return _row(
        f"openai/clip-vit-{name}", revision, dim, parameters=parameters, image_size=size, context=77, family="CLIP",
        data=400, objective="contrastive", license="MIT", reference="https://arxiv.org/abs/2103.00020", aliases=aliases,
        description="The first of its kind: 400 million pairs of images and captions from the web.",
    )  # fmt: skip


def _siglip(
    name: str, revision: str, dim: int, parameters: int, size: int, context: int = 64, data: float | None = 10_000,
    aliases: Mapping[str, str] | None = None,
) -> ModelCard:  # fmt: skip
    return _row(
        f"google/siglip-{name}", revision, dim, parameters=parameters, image_size=size, context=context,
        family="SigLIP", data=data, objective="contrastive (sigmoid)", license="Apache-2.0",
        reference="https://arxiv.org/abs/2303.15343", aliases={"MIEB": f"google/siglip-{name}", **(aliases or {})},
        description="Every pair is judged on its own, by a sigmoid, instead of against its batch; trained on WebLI.",
    )  # fmt: skip


def _siglip2(name: str, dim: int, parameters: int, size: int | None) -> ModelCard:
    return _row(
        f"google/siglip2-{name}", "main", dim, parameters=parameters, image_size=size, context=64, family="SigLIP2",
        data=10_000, objective="contrastive (sigmoid)", license="Apache-2.0",
        reference="https://arxiv.org/abs/2502.14786",
        description="SigLIP with captioning, self-distillation and masked prediction; many languages."
        + ("" if size else " Images keep their shape."),
    )  # fmt: skip


def _metaclip(name: str, dim: int, parameters: int, data: float, unibench: str) -> ModelCard:
    return _row(
        f"facebook/metaclip-{name}", "main", dim, parameters=parameters, image_size=224, context=77, family="MetaCLIP",
        data=data, objective="contrastive", license="CC-BY-NC-4.0", reference="https://arxiv.org/abs/2309.16671",
        aliases={"UniBench": unibench}, description="CLIP's recipe on pairs that were balanced by metadata.",
    )  # fmt: skip


def _metaclip2(name: str, dim: int, parameters: int, size: int, **aliases: str) -> ModelCard:
    return _row(
        f"facebook/metaclip-2-worldwide-{name}", "main", dim, parameters=parameters, image_size=size, context=77,
        family="MetaCLIP2", objective="contrastive", license="CC-BY-NC-4.0", aliases=aliases,
        reference="https://arxiv.org/abs/2507.22062", description="MetaCLIP's curation for the web of all languages.",
    )  # fmt: skip


def _chinese(name: str, dim: int, parameters: int, size: int) -> ModelCard:
    return _row(
        f"OFA-Sys/chinese-clip-vit-{name}", "main", dim, parameters=parameters, image_size=size, context=52,
        options={"tokens": 52}, family="Chinese-CLIP", data=200, objective="contrastive", license="MIT",
        reference="https://arxiv.org/abs/2211.01335", description="CLIP for Chinese, on 200 million pairs.",
    )  # fmt: skip


CLIP = (
    _clip("base-patch32", "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268", 512, 151_277_313, 224,
          MIEB="openai/clip-vit-base-patch32", UniBench="clip_vitB32"),
    _clip("base-patch16", "57c216476eefef5ab752ec549e440a49ae4ae5f3", 512, 149_620_737, 224,
          MIEB="openai/clip-vit-base-patch16", UniBench="clip_vitB16"),
    _clip("large-patch14", "32bd64288804d66eefd0ccbe215aa642df71cc41", 768, 427_616_513, 224,
          MIEB="openai/clip-vit-large-patch14", UniBench="clip_vitL14"),
    _clip("large-patch14-336", "main", 768, 427_944_193, 336, ARK="CLIP-0.4B"),
)  # fmt: skip

SIGLIP = (
    _siglip("base-patch16-224", "7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed", 768, 203_155_970, 224),
    _siglip("base-patch16-256", "b078df89e446d623010d890864d4207fe6399f61", 768, 203_202_050, 256,
            aliases={"UniBench": "siglip_vitB16"}),
    _siglip("base-patch16-384", "41aec1c83b32e0a6fca20ad88ba058aa5b5ea394", 768, 203_447_810, 384),
    _siglip("base-patch16-512", "753a949581523b60257d93e18391e8c27f72eb22", 768, 203_791_874, 512),
    _siglip("large-patch16-256", "d0da9f876e7d66b4e250cd2450c3ba2ce735e447", 1024, 652_150_786, 256,
            aliases={"UniBench": "siglip_vitL16"}),
    _siglip("large-patch16-384", "ce005573a40965dfd21fd937fbdeeebf2439fc35", 1024, 652_478_466, 384),
    _siglip("so400m-patch14-224", "d04cf29fca7b6374f74d8bea1969314492266b5e", 1152, 877_360_306, 224, context=16),
    # ARK calls it SigLIP2, but links to this one, and 0.9B is its size.
    _siglip("so400m-patch14-384", "9fdffc58afc957d1a03a25b10dba0329ab15c2a3", 1152, 877_960_498, 384,
            aliases={"ARK": "SigLIP2-0.9B"}),
    _siglip("base-patch16-256-multilingual", "8952a4eafcde3cb7ab46b1dd629b33f8784ca9c6", 768, 370_626_050, 256,
            data=None),
    _siglip("so400m-patch16-256-i18n", "365d321c0cfdea96bc28e3a29787a11a062681a1", 1152, 1_128_758_962, 256,
            data=None),
)  # fmt: skip

SIGLIP2 = (
    _siglip2("base-patch32-256", 768, 376_856_066, 256),
    _siglip2("base-patch16-224", 768, 375_187_970, 224),
    _siglip2("base-patch16-256", 768, 375_234_050, 256),
    _siglip2("base-patch16-384", 768, 375_479_810, 384),
    _siglip2("base-patch16-512", 768, 375_823_874, 512),
    _siglip2("base-patch16-naflex", 768, 375_234_050, None),
    _siglip2("large-patch16-256", 1024, 881_526_786, 256),
    _siglip2("large-patch16-384", 1024, 881_854_466, 384),
    _siglip2("large-patch16-512", 1024, 882_313_218, 512),
    _siglip2("so400m-patch14-224", 1152, 1_135_463_602, 224),
    _siglip2("so400m-patch14-384", 1152, 1_136_008_498, 384),
    _siglip2("so400m-patch16-256", 1152, 1_135_670_962, 256),
    _siglip2("so400m-patch16-384", 1152, 1_136_039_602, 384),
    _siglip2("so400m-patch16-512", 1152, 1_136_555_698, 512),
    _siglip2("so400m-patch16-naflex", 1152, 1_135_670_962, None),
    _siglip2("giant-opt-patch16-256", 1536, 1_871_393_906, 256),
    _siglip2("giant-opt-patch16-384", 1536, 1_871_885_426, 384),
)

METACLIP = (
    _metaclip("b32-400m", 512, 151_277_313, 400, "openclip_vitB32_metaclip_400m"),
    _metaclip("b32-fullcc2.5b", 512, 151_277_313, 2500, "openclip_vitB32_metaclip_fullcc"),
    _metaclip("b16-400m", 512, 149_620_737, 400, "openclip_vitB16_metaclip_400m"),
    _metaclip("b16-fullcc2.5b", 512, 149_620_737, 2500, "openclip_vitB16_metaclip_fullcc"),
    _metaclip("l14-400m", 768, 427_616_513, 400, "openclip_vitL14_metaclip_400"),
    _metaclip("l14-fullcc2.5b", 768, 427_616_513, 2500, "openclip_vitL14_metaclip_fullcc"),
    _metaclip("h14-fullcc2.5b", 1024, 986_109_441, 2500, "openclip_vitH14_metaclip_fullcc"),
    _metaclip2("b32", 512, 587_614_465, 224),
    _metaclip2("b16", 512, 585_957_889, 224),
    _metaclip2("l14", 768, 1_082_122_241, 224),
    _metaclip2("huge-quickgelu", 1024, 1_858_783_745, 224, ARK="MetaCLIP2-2B"),
    _metaclip2("huge-378", 1024, 1_859_389_185, 378),
)

OTHERS = (
    _row(
        "kakaobrain/align-base", "e96a37facc7b1f59090ece82293226b817afd6ba", 640, parameters=172_117_841,
        context=64, options={"tokens": 64}, family="ALIGN", data=700, objective="contrastive", architecture="conv",
        license="not stated", reference="https://arxiv.org/abs/2102.05918", aliases={"MIEB": "kakaobrain/align-base"},
        description="An EfficientNet and a BERT on COYO's 700 million noisy pairs.",
    ),
    _row(
        "facebook/flava-full", "main", 768, parameters=241_356_289, image_size=224, context=77, options={"tokens": 77},
        family="FLAVA", data=70, objective="other", license="BSD-3-Clause", aliases={"UniBench": "flava_full"},
        reference="https://arxiv.org/abs/2112.04482", description="The contrastive towers of a model with many goals.",
    ),
    # Text and image tower have 0.7 and 17.5 billion parameters (the model's page).
    _row(
        "BAAI/EVA-CLIP-18B", "ecb774f7cbba81ad031555b951e126e78f978186", 1536, parameters=18_100_000_000,
        dtype="float16", image_size=224, context=77, options={"own_code": True, "tokens": 77}, family="EVA-CLIP",
        data=2700, objective="contrastive", license="Apache-2.0", reference="https://arxiv.org/abs/2402.04252",
        aliases={"ARK": "EVA-CLIP-18B"},
        description="The largest of EVA's CLIP models. Runs its own code (--trust), which was written for transformers "
        "4; pictures are prepared as OpenAI's CLIP prepares them, as its page says.",
    ),
    _row(
        "BAAI/AltCLIP", "main", 768, image_size=224, context=77, options={"tokens": 77}, family="AltCLIP",
        objective="contrastive", license="CreativeML OpenRAIL-M", reference="https://arxiv.org/abs/2211.06679",
        description="CLIP's images with a text tower for English and Chinese.",
    ),
    _chinese("base-patch16", 512, 188_000_000, 224),
    _chinese("large-patch14", 768, 406_000_000, 224),
    _chinese("large-patch14-336px", 768, 407_000_000, 336),
    _chinese("huge-patch14", 1024, 958_000_000, 224),
)  # fmt: skip

CARDS: tuple[ModelCard, ...] = (*CLIP, *SIGLIP, *SIGLIP2, *METACLIP, *OTHERS)
