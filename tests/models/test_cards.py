"""Every card is a row of the test matrix: its facts are plausible, and every model of the papers has one."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from typer.testing import CliRunner

from embark.cli import app
from embark.models import LOADERS, MODELS, NO_CARD, find_card
from embark.types import MODALITIES, EmbarkError, ModelCard
from matrix import every

CARDS = every(MODELS.values())
ON_THE_HUB = every(card for card in MODELS.values() if re.fullmatch(r"[\w.-]+/[\w.-]+", card.source))
CHATTY = every(card for card in MODELS.values() if card.loader in ("mllm", "omni"))

# ── the papers' models, as their tables name them ────────────────────────────────────────────────────────────────────

MIEB = """
    kakaobrain/align-base Salesforce/blip2-opt-2.7b Salesforce/blip2-opt-6.7b-coco Salesforce/blip-vqa-base
    Salesforce/blip-vqa-capfilt-large Salesforce/blip-itm-base-coco Salesforce/blip-itm-large-coco
    Salesforce/blip-itm-base-flickr Salesforce/blip-itm-large-flickr openai/clip-vit-large-patch14
    openai/clip-vit-base-patch32 openai/clip-vit-base-patch16 facebook/dinov2-small facebook/dinov2-base
    facebook/dinov2-large facebook/dinov2-giant royokong/e5-v QuanSun/EVA02-CLIP-B-16 QuanSun/EVA02-CLIP-L-14
    QuanSun/EVA02-CLIP-bigE-14 QuanSun/EVA02-CLIP-bigE-14-plus jinaai/jina-clip-v1 nyu-visionx/moco-v3-vit-b
    nyu-visionx/moco-v3-vit-l nomic-ai/nomic-embed-vision-v1.5 laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K
    laion/CLIP-ViT-B-32-DataComp.XL-s13B-b90K laion/CLIP-ViT-B-16-DataComp.XL-s13B-b90K
    laion/CLIP-ViT-bigG-14-laion2B-39B-b160k laion/CLIP-ViT-g-14-laion2B-s34B-b88K laion/CLIP-ViT-H-14-laion2B-s32B-b79K
    laion/CLIP-ViT-L-14-laion2B-s32B-b82K laion/CLIP-ViT-B-32-laion2B-s34B-b79K Alibaba-NLP/gme-Qwen2-VL-2B-Instruct
    Alibaba-NLP/gme-Qwen2-VL-7B-Instruct google/siglip-so400m-patch14-224 google/siglip-so400m-patch14-384
    google/siglip-so400m-patch16-256-i18n google/siglip-base-patch16-256-multilingual google/siglip-base-patch16-256
    google/siglip-base-patch16-512 google/siglip-base-patch16-384 google/siglip-base-patch16-224
    google/siglip-large-patch16-256 google/siglip-large-patch16-384 BAAI/bge-visualized-base BAAI/bge-visualized-m3
    TIGER-Lab/VLM2Vec-LoRA TIGER-Lab/VLM2Vec-Full voyageai/voyage-multimodal-3
"""
UNIBENCH = """
    blip_vitB16_14m blip_vitL16_129m blip_vitB16_129m blip_vitB16_coco blip_vitB16_flickr blip_vitL16_coco
    blip_vitL16_flickr eva02_vitE14_plus_2b eva02_vitE14_2b eva02_vitL14_2b eva02_vitB16_2b eva01_vitG14_plus_2b
    eva01_vitG14_400m clipa_vitbigG14 clipa_vitH14 clipa_vitL14 siglip_vitL16 siglip_vitB16
    openclip_vitB32_metaclip_fullcc openclip_vitB16_metaclip_400m openclip_vitB32_metaclip_400m
    openclip_vitB16_metaclip_fullcc openclip_vitL14_dfn2b openclip_vitL14_metaclip_400 openclip_vitL14_metaclip_fullcc
    openclip_vitH14_metaclip_fullcc openclip_vitH14_dfn5b openclip_convnext_base openclip_vitB32_datacomp_s
    openclip_vitB32_datacomp_m openclip_vitB32_datacomp_xl openclip_vitB16_datacomp_xl openclip_vitB16_datacomp_l
    openclip_vitH14 xvlm_flickr flava_full openclip_vitL14_400m openclip_vitL14_datacomp_xl openclip_vitL14_2b
    clip_vitL14 xvlm_coco openclip_vitB32_400m openclip_vitB32_2b openclip_vitG14_2b openclip_vitbigG14_2b
    openclip_vitB16_2b openclip_vitB16_400m opencoca_vitL14_2b opencoca_vitB32_2b negclip_vitB32 clip_vitB16
    clip_resnet50 openclip_resnet101_yfcc openclip_resnet50_yfcc openclip_resnet50_cc clip_resnet101 clip_resnet50x4
    clip_resnet50x16 clip_resnet50x64 clip_vitB32
"""
MMEB = """
    Qwen3-VL-Embedding-2B Qwen3-VL-Embedding-8B VLM2Vec-Qwen2VL-7B VLM2Vec-V2.0-2B GME-7B WAVE-7B Omni-Embed-Nemotron-3B
"""
ARK = """
    BGE-M3-0.6B Qwen3-Embed-4B Qwen3-Embed-8B Diver-Embed-1.7B Diver-Embed-4B ReasonIR-8B CLIP-0.4B BGE-VL-0.4B
    SigLIP2-0.9B MetaCLIP2-2B EVA-CLIP-18B VLM2VecV2-2B LamRA-Ret-7B RzenEmbed-7B Ops-MM-embed-v1-2B Ops-MM-embed-v1-7B
    Qwen3-VL-Embed-2B Qwen3-VL-Embed-8B Doubao-Embedding-Vision
"""
PAPERS = {"MIEB": (MIEB, 50), "UniBench": (UNIBENCH, 60), "MMEB": (MMEB, 7), "ARK": (ARK, 19)}


def test_models_without_a_card_say_why() -> None:
    assert set(NO_CARD) == {"xvlm_coco", "xvlm_flickr"}
    with pytest.raises(EmbarkError, match="xvlm_coco has no card: their weights fit"):
        find_card("xvlm_coco")
    shown = CliRunner().invoke(app, ["models"])
    assert "UniBench's xvlm_coco, xvlm_flickr have no card: their weights fit" in shown.stderr
    assert "xvlm" not in CliRunner().invoke(app, ["models", "--family", "CLIP"]).stderr


@pytest.mark.parametrize("paper", PAPERS)
def test_every_model_of_the_papers_has_a_card(paper: str) -> None:
    listed, count = PAPERS[paper]
    names = listed.split()
    known = {card.aliases[paper] for card in MODELS.values() if paper in card.aliases}
    assert len(names) == len(set(names)) == count
    assert [name for name in names if name not in known and name not in NO_CARD] == []
    assert [name for name in names if name in known and name in NO_CARD] == []


def test_names_in_the_papers_belong_to_one_model() -> None:
    named = Counter((paper, name) for card in MODELS.values() for paper, name in card.aliases.items())
    assert [each for each, count in named.items() if count > 1] == []


# ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_there_are_many_models() -> None:
    assert len(MODELS) >= 200
    assert {card.kind for card in MODELS.values()} == {"embedder", "reranker", "generator"}


@CARDS
def test_facts_are_plausible(card: ModelCard) -> None:
    assert card.loader in LOADERS
    assert card.modalities == tuple(dict.fromkeys(card.modalities))
    assert set(card.modalities) <= set(MODALITIES)
    assert card.dim is not None
    assert 1 <= card.dim <= 1 << 13
    assert card.parameters is None or card.parameters == 0 or 10**6 < card.parameters < 10**11
    assert card.context is None or 16 <= card.context <= 1 << 18
    assert card.image_size is None or 64 <= card.image_size <= 2048
    assert card.data is None or 0 < card.data <= 100_000
    assert card.dtype in ("float32", "bfloat16", "float16")
    assert card.price is None or 0 < card.price < 10
    assert card.reference == "" or card.reference.startswith("https://")
    assert card.description.endswith(".")


@CARDS
def test_mixed_items_have_a_rule(card: ModelCard) -> None:
    mixes = card.kind == "embedder" and "text" in card.modalities and len(card.modalities) > 1
    assert (card.fusion is not None) == mixes or card.similarity == "maxsim"


@CHATTY
def test_language_models_say_what_an_item_is_wrapped_in(card: ModelCard) -> None:
    templates = card.options["templates"]
    assert all("{text}" in templates[kind] or "{asked}" in templates[kind] for kind in ("text", "mixed"))
    assert all("{media}" in templates[kind] for kind in ("media", "mixed"))


@ON_THE_HUB
def test_checkpoints_on_the_hub_have_a_family_and_a_revision(card: ModelCard) -> None:
    assert re.fullmatch("[0-9a-f]{40}|main", card.revision)
    assert card.family
