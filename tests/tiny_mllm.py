"""Tiny checkpoints of multimodal language models, and the way a card's style is put on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from embark.models import LOADERS
from embark.models.cards.mllm import Style
from embark.models.loading import Loading, build
from embark.types import ModelCard
from tiny import byte_bpe, saved

START, END, IMAGE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
MARKS = ("<|im_start|>", "<|im_end|>", START, END, IMAGE, VIDEO)
PIXELS = {"pixels": (64, 64 * 64), "frame_pixels": None}  # patches are tiny here, and so must pictures be


def built(family: str, folder: Path) -> Path:
    """The folder, with a tiny random checkpoint of that family."""
    import torch

    torch.manual_seed(7)
    model, *others = BUILDERS[family]()
    for weight in model.parameters():  # as far apart as trained ones: what differs must show
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.2)
    return saved(folder, model, *others)


def spoken(folder: Path, style: Style, **facts: Any) -> Any:
    """The checkpoint under a card with that style."""
    facts = {"instructed": True, **facts}
    card = ModelCard("tiny/mllm", "main", "mllm", (), source=str(folder), options={**style, **PIXELS}, **facts)
    return build(LOADERS["mllm"], card, Loading(device="cpu"))


def qwen(name: str) -> tuple[Any, ...]:
    """Qwen2VL, Qwen2_5_VL or Qwen3VL: model, tokeniser, image processor."""
    import transformers

    tokens = byte_bpe(more=MARKS, pad_token="<|endoftext|>", limit=4096)
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "rope_parameters": rope}
    text = {"vocab_size": len(tokens), "hidden_size": 32, "intermediate_size": 48, "head_dim": 16, **layers}
    eye = {
        "depth": 2,
        "hidden_size": 32,
        "num_heads": 2,
        "patch_size": 4,
        "intermediate_size": 48,
        "out_hidden_size": 32,
    }
    vision = {
        "Qwen2VL": {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 4},
        "Qwen2_5_VL": {**eye, "window_size": 16, "fullatt_block_indexes": [1]},
        "Qwen3VL": {**eye, "num_position_embeddings": 64, "deepstack_visual_indexes": [0]},
    }[name]
    ids = dict(zip(("image", "video", "vision_start", "vision_end"), (IMAGE, VIDEO, START, END), strict=True))
    named = {f"{role}_token_id": tokens.convert_tokens_to_ids(token) for role, token in ids.items()}
    config = getattr(transformers, f"{name}Config")(text_config=text, vision_config=vision, **named)
    eyes = transformers.Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 64, "longest_edge": 64 * 64})
    return getattr(transformers, f"{name}ForConditionalGeneration")(config), tokens, eyes


def llava() -> tuple[Any, ...]:
    """LLaVA-NeXT, with tiles of 16 pixels."""
    import transformers

    tokens = byte_bpe("<s> $A", more=("<image>",), bos_token="<s>", pad_token="<pad>", limit=4096)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    tiles = [[32, 16], [16, 32], [32, 32]]
    config = transformers.LlavaNextConfig(
        text_config=transformers.LlamaConfig(**shape, vocab_size=len(tokens)).to_dict(),
        vision_config=transformers.CLIPVisionConfig(**shape, image_size=16, patch_size=4).to_dict(),
        image_token_index=tokens.convert_tokens_to_ids("<image>"), image_grid_pinpoints=tiles, vision_feature_layer=-1,
    )  # fmt: skip
    side = {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}
    eyes = transformers.LlavaNextImageProcessorPil(**side, image_grid_pinpoints=tiles)
    return transformers.LlavaNextForConditionalGeneration(config), tokens, eyes


BUILDERS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "qwen2_vl": lambda: qwen("Qwen2VL"),
    "qwen2_5_vl": lambda: qwen("Qwen2_5_VL"),
    "qwen3_vl": lambda: qwen("Qwen3VL"),
    "llava_next": llava,
}
