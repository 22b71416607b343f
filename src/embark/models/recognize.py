"""A card for a checkpoint folder without one: the loader is chosen by the folder's files."""

from __future__ import annotations

from pathlib import Path

from embark.models.hub import folder_revision, read_json
from embark.types import EmbarkError, ModelCard

FILES = {  # a file that only one family has → loader
    "modules.json": "sentence-transformers",
    "open_clip_config.json": "open_clip",
}
MODEL_TYPES: dict[str, str] = {  # config.json's model_type → loader
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "mpnet", "modernbert", "distilbert"), "text"),
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3"), "text"),
    **dict.fromkeys(("clip", "siglip", "siglip2", "align", "metaclip_2", "altclip", "chinese_clip", "flava"), "dual"),
    **dict.fromkeys(("dinov2", "dinov2_with_registers", "dinov3_vit"), "dino"),
    "blip": "blip",
    "blip-2": "blip2",
    "jina_clip": "jina",
    "nomic_bert": "nomic",
    **dict.fromkeys(("colpali", "colqwen2"), "late"),
    "timm": "timm",  # whose config.json names no type
    **dict.fromkeys(("llava_next", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"), "mllm"),
    "phi3_v": "phi",
    **dict.fromkeys(("qwen2_5_omni_thinker", "qwen2_5_omni", "nvomniembed"), "omni"),
}


def recognize(folder: Path) -> ModelCard:
    """A card for the folder; its loader adds modalities and dimension."""
    name = f"local/{folder.resolve().name}"
    return ModelCard(name, folder_revision(folder), loader_of(folder), (), source=str(folder))


def loader_of(folder: Path) -> str:
    """The loader of a checkpoint folder."""
    loader = next((loader for name, loader in FILES.items() if (folder / name).is_file()), None)
    graphs = any(any(folder.glob(pattern)) for pattern in ("*model.onnx", "onnx/*model.onnx"))
    if loader is None and graphs and not any(any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.bin")):
        loader = "onnx"
    if loader is None and (config := folder / "config.json").is_file():
        facts = read_json(config)
        model_type = str(facts.get("model_type", "timm" if "pretrained_cfg" in facts else ""))
        loader = MODEL_TYPES.get(model_type)
        if any(name.endswith("ForSequenceClassification") for name in facts.get("architectures") or ()):
            loader = "cross-encoder"
        if loader is None:
            raise EmbarkError(
                f"{folder} holds a checkpoint of model type '{model_type}', which no loader claims; "
                f"name one: LOADER:{folder} (see: embark models --help)."
            )
    if loader is None:
        raise EmbarkError(
            f"{folder} holds no checkpoint that embark knows: there is no config.json, modules.json or model.onnx."
        )
    return loader
