"""The loader families: how the card of a checkpoint becomes a model, and which loader a checkpoint folder needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from embark import plugins
from embark.catalogue import Registry
from embark.seams import Loader

Recognizes = Callable[[Path, Mapping[str, Any]], bool]

LANES = 4  # batches at once on a CUDA device: some are moved there or decoded, one is computed, one comes back
ENCODERS = ("bert", "roberta", "xlm-roberta", "mpnet", "modernbert", "distilbert")
DECODERS = ("llama", "mistral", "qwen2", "qwen3")
TWO_TOWERS = ("clip", "siglip", "siglip2", "align", "metaclip_2", "altclip", "chinese_clip", "flava")


# ── which folders are whose: by their files, and by config.json ──────────────────────────────────────────────────────


def has_file(name: str) -> Recognizes:
    """Folders with a file that only one family has."""
    return lambda folder, config: (folder / name).is_file()


def has_type(*types: str) -> Recognizes:
    """Folders whose configuration is of one of these model types."""
    return lambda folder, config: config.get("model_type") in types


def has_graphs(folder: Path, config: Mapping[str, Any]) -> bool:
    """Folders with ONNX files, and without weights in another format."""
    graphs = any(any(folder.glob(pattern)) for pattern in ("*model.onnx", "onnx/*model.onnx"))
    return graphs and not any(any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.bin"))


def has_classifier(folder: Path, config: Mapping[str, Any]) -> bool:
    """Folders whose model scores a sequence."""
    return any(name.endswith("ForSequenceClassification") for name in config.get("architectures") or ())


def is_timm(folder: Path, config: Mapping[str, Any]) -> bool:
    """Folders of timm, whose configuration names no type."""
    model_type: str = config.get("model_type", "timm" if "pretrained_cfg" in config else "")
    return model_type == "timm"


# ── the loaders ──────────────────────────────────────────────────────────────────────────────────────────────────────

on_torch = partial(Loader, extra="torch", torch=True)
in_lanes = partial(on_torch, lanes=LANES)  # `embed` is safe in threads

# The first that recognizes a folder loads it: those with the surest signs stand before others.
OURS = (
    Loader("pocket", "embark.models.pocket:load"),
    Loader("handmade", "embark.models.baselines:load_handmade", version=2),  # edges alike on every processor
    Loader("random", "embark.models.baselines:load_random"),
    *(
        Loader(name, "embark.models.api:load", type="api")
        for name in ("openai", "voyage", "voyage-multimodal", "cohere", "doubao")
    ),
    on_torch(  # it tokenizes in `embed`, which is unsafe in threads, as those of ColBERT and Jina do
        "sentence-transformers",
        "embark.models.text:load_sentence_transformer",
        weightless=True,
        recognize=has_file("modules.json"),
    ),
    in_lanes(
        "open_clip", "embark.models.open_clip:load", extra="open_clip", weightless=True,
        recognize=has_file("open_clip_config.json"),
    ),
    Loader("onnx", "embark.models.onnx:load", extra="onnx", version=2, recognize=has_graphs),
    on_torch(
        "cross-encoder", "embark.models.rerank:load", kind="reranker", version=3, recognize=has_classifier
    ),
    in_lanes(  # transformers, pooled
        "text", "embark.models.text:load", version=3, weightless=True, recognize=has_type(*ENCODERS, *DECODERS)
    ),
    in_lanes(  # CLIP, SigLIP, ALIGN… of transformers
        "dual", "embark.models.dual:load", weightless=True, recognize=has_type(*TWO_TOWERS)
    ),
    in_lanes("blip", "embark.models.blip:load", recognize=has_type("blip")),
    in_lanes("blip2", "embark.models.blip:load_blip2", recognize=has_type("blip-2")),
    on_torch("jina", "embark.models.jina:load", recognize=has_type("jina_clip")),  # by the checkpoint's own code
    in_lanes("nomic", "embark.models.nomic:load", version=2, recognize=has_type("nomic_bert")),
    in_lanes("vista", "embark.models.vista:load", version=2),
    in_lanes(
        "dino", "embark.models.vision:load_dino", weightless=True,
        recognize=has_type("dinov2", "dinov2_with_registers", "dinov3_vit"),
    ),
    in_lanes("timm", "embark.models.vision:load_timm", extra="timm", version=2, recognize=is_timm),
    in_lanes(  # ColPali, ColQwen2
        "late", "embark.models.late:load", type="late", weightless=True, recognize=has_type("colpali", "colqwen2")
    ),
    on_torch("colbert", "embark.models.late:load_colbert", type="late"),
    on_torch("yes-no", "embark.models.rerank:load_yes_no", kind="reranker"),
    on_torch("jina-reranker", "embark.models.rerank:load_jina", kind="reranker", version=2),
    on_torch("chat", "embark.models.generate:load", kind="generator"),
    on_torch("blip-caption", "embark.models.generate:load_blip", kind="generator"),
    Loader("openai-chat", "embark.models.chat_api:load", kind="generator", type="api"),
    Loader("recorded", "embark.models.recorded:load", kind="generator"),  # texts of a file
    Loader("recorded-scores", "embark.models.recorded:load_scores", kind="reranker"),
    in_lanes(  # LLaVA-NeXT, Qwen-VL
        "mllm", "embark.models.mllm:load", type="mllm", weightless=True,
        recognize=has_type("llava_next", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"),
    ),
    in_lanes(  # Phi-3.5-vision
        "phi", "embark.models.phi:load", version=2, type="mllm", weightless=True, recognize=has_type("phi3_v")
    ),
    in_lanes(  # Qwen2.5-Omni
        "omni", "embark.models.omni:load", version=2, type="mllm", weightless=True,
        recognize=has_type("qwen2_5_omni_thinker", "qwen2_5_omni", "nvomniembed"),
    ),
)  # fmt: skip

LOADERS: Registry[Loader] = plugins.registry("loader", {loader.name: loader for loader in OURS}, "loaders")
