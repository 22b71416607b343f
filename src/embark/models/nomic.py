"""Nomic Embed: a text and a vision checkpoint that share one vector space, as one encoder."""

from __future__ import annotations

from typing import Any

from embark.models.checkpoints import Checkpoint, companion_checkpoint, fetch_checkpoint
from embark.models.device import mean_token, to_device
from embark.models.encoder import Encoder, Towers
from embark.models.hf import Tokenizer, image_processor, load_model, read_weights, rename_tensors, text_tower
from embark.models.loading import Loading, loaded_card
from embark.models.pixel_towers import pixel_towers
from embark.types import EmbarkError, ModelCard

NAMES = {  # the vision checkpoint's names → EVA-CLIP's, for the same architecture
    r"^embeddings\.proj": "patch_embed.proj",
    r"^embeddings\.": "",
    r"^layers\.": "blocks.",
    r"attn\.out_proj": "attn.proj",
    r"mlp\.fc12": "mlp.w1",
    r"mlp\.fc11": "mlp.w2",
    r"mlp\.fc2": "mlp.w3",
    r"mlp\.norm": "mlp.ffn_ln",
}


def load(card: ModelCard, loading: Loading) -> Encoder:
    """Text: the mean of its tokens, layer norm, unit length; image: the pooled [CLS], unit length."""
    from torch.nn.functional import layer_norm, normalize
    from transformers import NomicBertModel

    checkpoint = fetch_checkpoint(card, loading)
    if "img_size" not in checkpoint.config:
        raise EmbarkError(
            f"{card.name} is no vision checkpoint of Nomic's; for its text model alone: text:{card.source}"
        )
    checkpoint, text_checkpoint = companion_checkpoint(checkpoint, "text", loading)
    text_model = load_model(NomicBertModel, text_checkpoint, loading)
    image_model = to_device(build_vision(checkpoint), checkpoint.card, loading)

    def text_vectors(ids: Any, mask: Any) -> Any:
        mean = mean_token(text_model(input_ids=ids, attention_mask=mask).last_hidden_state, mask)
        return normalize(layer_norm(mean, mean.shape[1:]), dim=-1)

    def image_vectors(pixel_values: Any) -> Any:
        return normalize(image_model(pixel_values).float(), dim=-1)

    text = text_tower(Tokenizer(text_checkpoint, card.context), text_model, text_vectors)
    images = pixel_towers(image_processor(checkpoint), text_model, image_vectors)
    ready = loaded_card(checkpoint.card, loading, text_model.config.hidden_size, fusion=card.fusion or "unit-sum")
    return Towers(ready, {"text": text, **images})


def build_vision(checkpoint: Checkpoint) -> Any:
    """The image tower: EVA-02 without norms inside its attention, and a pooling head."""
    from torch import nn

    from embark.models.eva import Eva, Pooling, rotation, under

    config = checkpoint.config
    state = read_weights(checkpoint)
    head = config["n_embd"] // config["n_head"]
    grid = config["img_size"] // config["patch_size"]
    trained = (config.get("ref_feat_shape") or [grid])[0]
    tower = Eva(_as_eva(state, config["patch_size"]), rotation(head, grid, trained), config["layer_norm_epsilon"], 1e-5)
    return nn.Sequential(tower, Pooling(under("selector.", state), head, config["layer_norm_epsilon"]))


def _as_eva(state: dict[str, Any], patch: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    tower = {name: tensor for name, tensor in state.items() if not name.startswith("selector.")}
    for name, tensor in rename_tensors(tower, NAMES).items():
        if ".Wqkv." in name:
            for letter, chunk in zip("qkv", tensor.chunk(3), strict=True):
                out[name.replace("Wqkv", f"{letter}_proj")] = chunk
        elif name == "patch_embed.proj.weight":
            out[name] = tensor.reshape(len(tensor), -1, patch, patch)  # a linear layer over a patch is a convolution
        else:
            out[name] = tensor
    return out
