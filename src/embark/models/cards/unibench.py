"""The models of UniBench that no other table here holds; open_clip reads all but BLIP's.

UniBench gave all of them CLIP's crop and pixel scale, and loaders do so in its rows (`with_unibench_pixels`). Where
UniBench ran weights with another activation than theirs, that is kept, under its key.
"""

from __future__ import annotations

from typing import Any

from embark.models.cards.open_clip import DATACOMP, OPEN_CLIP, row
from embark.types import ModelCard

CLIP = "https://arxiv.org/abs/2103.00020"
WRONG = " Run as UniBench ran it, with GELU where it was trained with QuickGELU."
BERT = "google-bert/bert-base-uncased@86b5e0934494bd15c9632b12f734a8a67f723594"
RESNETS = {  # architecture → dimension, parameters
    "RN50": (1024, 102_007_137),
    "RN101": (512, 119_688_033),
    "RN50x4": (640, 178_300_601),
    "RN50x16": (768, 290_979_217),
    "RN50x64": (1024, 623_258_305),
}


def _tag(source: str, model: str, pretrained: str, *facts: Any, **more: Any) -> ModelCard:
    """Weights that open_clip knows by a tag, from the repository that the tag stands for."""
    return row(
        more.pop("name", source), "main", *facts, source=source,
        options={"architecture": model, "pretrained": pretrained}, **more,
    )  # fmt: skip


def _resnet(model: str, corpus: str, data: float, unibench: str, size: int = 224, quick: bool = True) -> ModelCard:
    dim, parameters = RESNETS[model]
    source = f"timm/{model.replace('RN', 'resnet')}_clip.{corpus}"
    own = corpus == "openai"
    return _tag(
        source, f"{model}-quickgelu" if quick else model, corpus, dim, parameters, data, unibench,
        name=source if quick else f"unibench/{unibench}", image_size=size, architecture="conv",
        family="CLIP" if own else "OpenCLIP", reference=CLIP if own else OPEN_CLIP,
        description="A CLIP with a convolutional image tower." + ("" if quick else WRONG),
    )  # fmt: skip


def _vitamin(model: str, repository: str, size: int, dim: int, parameters: int, unibench: str) -> ModelCard:
    return _tag(
        f"jienengchen/ViTamin-{repository}", f"ViTamin-{model}", "datacomp1b", dim, parameters, 1280, unibench,
        image_size=size, family="ViTamin", architecture="vitamin", license="not stated", reference="https://arxiv.org/abs/2404.02132",
        description="Convolutions first, then attention, made for vision with language.",
    )  # fmt: skip


def _clipa(model: str, dim: int, parameters: int, unibench: str) -> ModelCard:
    return _tag(
        f"UCSC-VLAA/ViT-{model}-CLIPA-datacomp1B", f"ViT-{model}-CLIPA", "datacomp1b", dim, parameters, 1280, unibench,
        context=32, family="CLIPA", license="Apache-2.0", reference="https://arxiv.org/abs/2306.15658",
        description="CLIP trained on small images and short texts, and for a while on full ones.",
    )  # fmt: skip


def _open(source: str, model: str, pretrained: str, *facts: Any, **more: Any) -> ModelCard:
    return _tag(source, model, pretrained, *facts, **{
        "family": "OpenCLIP", "reference": OPEN_CLIP, "description": "CLIP's recipe on LAION's pairs.", **more,
    })  # fmt: skip


def _datacomp(model: str, scale: str, dim: int, parameters: int, data: float, unibench: str) -> ModelCard:
    return _tag(
        f"laion/CLIP-ViT-{model}-DataComp.{scale}", f"ViT-{model}", f"datacomp_{scale.lower().replace('-', '_')}",
        dim, parameters, data, unibench, family="DataComp", reference=DATACOMP,
        description="CLIP's recipe on what DataComp's filter left of a smaller pool.",
    )  # fmt: skip


def _blip(size: str, file: str, parameters: int, data: float, unibench: str) -> ModelCard:
    """As it was pre-trained; tuned on COCO and Flickr30k, it stands among the hub's."""
    return ModelCard(
        f"unibench/{unibench}", "main", "blip", ("text", "image", "video"), 256, fusion="unit-sum",
        source=f"https://storage.googleapis.com/sfr-vision-language-research/BLIP/models/{file}.pth",
        options={"tokenizer": BERT}, family="BLIP", parameters=parameters, context=512, image_size=224,
        normalized=True, data=data, objective="contrastive, matching, captioning", architecture="vit",
        license="BSD-3-Clause", reference="https://arxiv.org/abs/2201.12086", aliases={"UniBench": unibench},
        description=f"BLIP {size}, trained on captions that it filtered and wrote itself; tuned on nothing after that.",
    )  # fmt: skip


EVA = {
    "family": "EVA-CLIP", "reference": "https://arxiv.org/abs/2303.15389",
    "description": "An image tower that learnt from masked images first, then as CLIP does.",
}  # fmt: skip
DFN = {
    "family": "DFN", "reference": "https://arxiv.org/abs/2309.17425", "license": "other (Apple's)",
    "description": "CLIP's recipe on pairs that a filtering network chose.",
}  # fmt: skip
COCA = {
    "family": "OpenCoCa", "reference": "https://arxiv.org/abs/2205.01917", "objective": "contrastive, captioning",
    "context": 76, "normalized": True, "description": "The contrastive towers of a model that also writes captions.",
}  # fmt: skip

CARDS = (
    _blip("B/16", "model_base_14M", 223_452_418, 14, "blip_vitB16_14m"),
    _blip("B/16", "model_base", 223_452_418, 129, "blip_vitB16_129m"),
    _blip("L/16", "model_large", 445_739_522, 129, "blip_vitL16_129m"),
    _tag("timm/eva_giant_patch14_plus_clip_224.merged2b_s11b_b114k", "EVA01-g-14-plus", "merged2b_s11b_b114k",
         1024, 1_366_621_569, 2000, "eva01_vitG14_plus_2b", name="QuanSun/EVA01-CLIP-g-14-plus", **EVA),
    _tag("timm/eva_giant_patch14_clip_224.laion400m_s11b_b41k", "EVA01-g-14", "laion400m_s11b_b41k",
         1024, 1_136_435_841, 400, "eva01_vitG14_400m", name="QuanSun/EVA01-CLIP-g-14", **EVA),
    _clipa("L-14", 768, 414_210_561, "clipa_vitL14"),
    _clipa("H-14", 1024, 968_235_009, "clipa_vitH14"),
    _clipa("bigG-14", 1280, 2_517_223_937, "clipa_vitbigG14"),
    _tag("apple/DFN2B-CLIP-ViT-L-14", "ViT-L-14-quickgelu", "dfn2b", 768, 427_616_513, 2000, "openclip_vitL14_dfn2b",
         **DFN),
    _tag("apple/DFN5B-CLIP-ViT-H-14", "ViT-H-14-quickgelu", "dfn5b", 1024, 986_109_441, 5000, "openclip_vitH14_dfn5b",
         **DFN),
    _datacomp("B-32", "S-s13M-b4K", 512, 151_277_313, 13, "openclip_vitB32_datacomp_s"),
    _datacomp("B-32", "M-s128M-b4K", 512, 151_277_313, 128, "openclip_vitB32_datacomp_m"),
    _datacomp("B-16", "L-s1B-b8K", 512, 149_620_737, 1280, "openclip_vitB16_datacomp_l"),
    _open("laion/CLIP-ViT-B-16-laion2B-s34B-b88K", "ViT-B-16", "laion2b_s34b_b88k", 512, 149_620_737, 2000,
          "openclip_vitB16_2b"),
    _open("timm/vit_base_patch16_clip_224.laion400m_e32", "ViT-B-16", "laion400m_e32", 512, 149_620_737, 400,
          "openclip_vitB16_400m"),
    _open("timm/vit_large_patch14_clip_224.laion400m_e32", "ViT-L-14", "laion400m_e32", 768, 427_616_513, 400,
          "openclip_vitL14_400m"),
    _open("timm/vit_base_patch32_clip_224.laion400m_e32", "ViT-B-32-quickgelu", "laion400m_e32", 512, 151_277_313, 400,
          "openclip_vitB32_quickgelu_400m"),
    _open("timm/vit_base_patch32_clip_224.laion400m_e32", "ViT-B-32", "laion400m_e32", 512, 151_277_313, 400,
          "openclip_vitB32_400m", name="unibench/openclip_vitB32_400m",
          description="CLIP's recipe on LAION's pairs." + WRONG),
    _open("laion/CLIP-convnext_base-laion400M-s13B-b51K", "convnext_base", "laion400m_s13b_b51k", 512, 151_518_849, 400,
          "openclip_convnext_base", architecture="conv"),
    _tag("laion/CoCa-ViT-B-32-laion2B-s13B-b90k", "coca_ViT-B-32", "laion2b_s13b_b90k", 512, 253_560_065, 2000,
         "opencoca_vitB32_2b", **COCA),
    _tag("laion/CoCa-ViT-L-14-laion2B-s13B-b90k", "coca_ViT-L-14", "laion2b_s13b_b90k", 768, 638_450_177, 2000,
         "opencoca_vitL14_2b", **COCA),
    _resnet("RN50", "openai", 400, "clip_resnet50"),
    _resnet("RN101", "openai", 400, "clip_resnet101"),
    _resnet("RN50x4", "openai", 400, "clip_resnet50x4", 288),
    _resnet("RN50x16", "openai", 400, "clip_resnet50x16", 384),
    _resnet("RN50x64", "openai", 400, "clip_resnet50x64", 448),
    _resnet("RN50", "yfcc15m", 15, "clip_resnet50_quickgelu_yfcc15m"),
    _resnet("RN50", "yfcc15m", 15, "openclip_resnet50_yfcc", quick=False),
    _resnet("RN50", "cc12m", 12, "clip_resnet50_quickgelu_cc12m"),
    _resnet("RN50", "cc12m", 12, "openclip_resnet50_cc", quick=False),
    _resnet("RN101", "yfcc15m", 15, "clip_resnet101_quickgelu_yfcc15m"),
    _resnet("RN101", "yfcc15m", 15, "openclip_resnet101_yfcc", quick=False),
    row(
        "unibench/negclip_vitB32", "main", 512, 151_277_313, 400, "negclip_vitB32",
        options={"architecture": "ViT-B-32"},
        source="https://drive.usercontent.google.com/download?id=1ooVVPxB-tvptgmHlIMMFGV3Cg-IrhbRZ&confirm=t",
        family="NegCLIP", objective="contrastive, hard negatives", reference="https://arxiv.org/abs/2210.01936",
        description="CLIP tuned against captions whose words were shuffled.",
    ),
    _vitamin("S", "S", 224, 384, 62_469_185, "vitamin_s_1b"),
    _vitamin("S-LTT", "S-LTT", 224, 768, 145_822_913, "vitamin_s_ltt_1b"),
    _vitamin("B", "B", 224, 512, 150_953_345, "vitamin_b_1b"),
    _vitamin("B-LTT", "B-LTT", 224, 768, 211_372_161, "vitamin_b_ltt_1b"),
    _vitamin("L", "L-224px", 224, 768, 456_968_353, "vitamin_l_1b"),
    _vitamin("L-256", "L-256px", 256, 768, 457_029_793, "vitamin_l_256_1b"),
    _vitamin("L-336", "L-336px", 336, 768, 457_219_233, "vitamin_l_336_1b"),
    _vitamin("L2", "L2-224px", 224, 1024, 687_612_833, "vitamin_l2_1b"),
    _vitamin("L2-256", "L2-256px", 256, 1024, 687_674_273, "vitamin_l2_256_1b"),
    _vitamin("L2-336", "L2-336px", 336, 1024, 687_863_713, "vitamin_l2_336_1b"),
    _vitamin("XL-256", "XL-256px", 256, 1152, 924_776_257, "vitamin_xl_256_1b"),
    _vitamin("XL-336", "XL-336px", 336, 1152, 924_776_257, "vitamin_xl_336_1b"),
)  # fmt: skip
