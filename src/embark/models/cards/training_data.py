"""The training sets that papers, model cards and mteb's model data state, by model.

A model that is not here has not stated its data, or states it in part: its card has None. Web crawls stand under their
names (LAION-2B, WebLI …), which no task is over; that they hold none of a task's pictures, nobody knows. Names of data
sets and collections are those of embark.tasks.data_sets, where they have tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from embark.types import ModelCard

BLIP_14M = ("MSCOCO", "Visual Genome", "CC3M", "CC12M", "SBU")
BLIP_129M = (*BLIP_14M, "LAION-115M")
MERGED_2B = ("LAION-2B", "COYO-700M")
E5 = ("MS MARCO", "Natural Questions", "NLI")
MULTILINGUAL_E5 = (
    *E5, "TriviaQA", "SQuAD", "ELI5", "NLLB", "DuReader", "FEVER", "HotpotQA", "Quora", "Mr. TyDi", "MIRACL",
)  # fmt: skip
SENTENCE_TRANSFORMERS = (
    "Reddit comments", "S2ORC", "WikiAnswers", "PAQ", "Stack Exchange", "MS MARCO", "GOOAQ", "Yahoo Answers",
    "CodeSearchNet", "MSCOCO", "SPECTER", "SearchQA", "ELI5", "Flickr30k", "NLI", "Quora", "Natural Questions", "SQuAD",
    "TriviaQA", "AltLex", "Simple Wikipedia",
)  # fmt: skip

TRAINED_ON: Mapping[str, tuple[str, ...]] = {  # names and patterns of models; the first that fits counts
    # CLIP and its kin
    "openai/clip-*": ("WebImageText-400M",),
    "timm/resnet*_clip.openai": ("WebImageText-400M",),
    "timm/resnet*_clip.yfcc15m": ("YFCC-15M",),
    "unibench/openclip_resnet*_yfcc": ("YFCC-15M",),
    "timm/resnet50_clip.cc12m": ("CC12M",),
    "unibench/openclip_resnet50_cc": ("CC12M",),
    "unibench/negclip_vitB32": ("WebImageText-400M", "MSCOCO"),
    "google/siglip*": ("WebLI",),
    "facebook/metaclip-2-*": ("CommonCrawl",),
    "facebook/metaclip-*": ("CommonCrawl",),
    "kakaobrain/align-base": ("COYO-700M",),
    "facebook/flava-full": ("PMD", "ImageNet-1k", "CCNews", "BookCorpus"),
    "OFA-Sys/chinese-clip-*": ("LAION-5B", "Wukong", "Visual Genome", "MSCOCO"),
    "*laion2B*": ("LAION-2B",),
    "*laion400*": ("LAION-400M",),
    "unibench/openclip_vitB32_400m": ("LAION-400M",),
    "laion/*-DataComp.XL-*": ("DataComp-1B",),
    "laion/*-DataComp.*": ("CommonPool",),
    "UCSC-VLAA/*-datacomp1B": ("DataComp-1B",),
    "jienengchen/ViTamin-*": ("DataComp-1B",),
    "apple/DFN2B-*": ("DFN-2B",),
    "apple/DFN5B-*": ("DFN-5B",),
    "QuanSun/EVA01-CLIP-g-14": ("LAION-400M", "Merged-30M"),
    "QuanSun/EVA01-CLIP-g-14-plus": (*MERGED_2B, "Merged-30M"),
    "QuanSun/EVA02-CLIP-B-16": (*MERGED_2B, "ImageNet-21k"),
    "QuanSun/EVA02-CLIP-L-14": (*MERGED_2B, "Merged-38M"),
    "jinaai/jina-clip-v1": ("LAION-400M", "ShareGPT4V", "MS MARCO", "Natural Questions", "HotpotQA", "NLI"),
    # BLIP
    "Salesforce/blip-itm-*-coco": BLIP_129M,
    "Salesforce/blip-itm-*-flickr": (*BLIP_129M, "Flickr30k"),
    "Salesforce/blip2-itm-*": BLIP_129M,
    "Salesforce/blip-image-captioning-*": BLIP_129M,
    "Salesforce/blip-vqa-*": (*BLIP_129M, "VQA v2"),
    "unibench/blip_vitB16_14m": BLIP_14M,
    "unibench/blip_vit*_129m": BLIP_129M,
    # pictures alone
    "facebook/dinov2-*": ("LVD-142M", "ImageNet-21k", "Google Landmarks v2"),
    "nyu-visionx/moco-v3-*": ("ImageNet-1k",),
    # language models that see
    "royokong/e5-v": ("NLI",),
    "TIGER-Lab/VLM2Vec-*": ("MMEB-train",),
    "VLM2Vec/VLM2Vec-V2.0": ("MMEB-train", "ColPali train set", "VisRAG train", "LLaVA-Hound"),
    "code-kunkun/LamRA-Ret*": ("NLI", "M-BEIR"),
    "BAAI/BGE-VL-MLLM-S2": ("MegaPairs", "MMEB-train"),
    "BAAI/BGE-VL-*": ("MegaPairs",),
    "Alibaba-NLP/gme-Qwen2-VL-*": (
        "MS MARCO", "Natural Questions", "HotpotQA", "TriviaQA", "SQuAD", "FEVER", "NLI", "ImageNet-1k", "LAION",
        "MSCOCO", "Docmatix", "M-BEIR",
    ),
    "vidore/col*": ("ColPali train set",),
    # texts
    "colbert-ir/colbertv2.0": ("MS MARCO",),
    "cross-encoder/ms-marco-*": ("MS MARCO",),
    "intfloat/e5-*-v2": E5,
    "intfloat/multilingual-e5-*": MULTILINGUAL_E5,
    "intfloat/e5-mistral-7b-instruct": (
        "MS MARCO", "Natural Questions", "NLI", "TriviaQA", "SQuAD", "ELI5", "DuReader", "FEVER", "HotpotQA", "Quora",
        "Mr. TyDi", "MIRACL", "T2Ranking",
    ),
    "sentence-transformers/all-*": SENTENCE_TRANSFORMERS,
    "BAAI/bge-m3": (
        "HotpotQA", "TriviaQA", "Natural Questions", "MS MARCO", "COLIEE", "PubMedQA", "SQuAD", "NLI", "DuReader",
        "T2Ranking", "CMedQA", "Mr. TyDi", "MIRACL", "MLDR",
    ),
}  # fmt: skip


def with_training_data(card: ModelCard) -> ModelCard:
    """A card with the training sets that are stated for its model, unless it has them."""
    sets = next((sets for pattern, sets in TRAINED_ON.items() if fnmatchcase(card.name, pattern)), None)
    return replace(card, trained_on=sets) if card.trained_on is None else card
