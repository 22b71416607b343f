"""Nomic Embed: a text and a vision checkpoint that share one vector space, as one encoder."""

from __future__ import annotations

from typing import Any

from embark.models.device import mean_token, pad, to_device, to_numpy, without_gradients
from embark.models.encoder import Encoder, Tower, Towers, image_towers
from embark.models.hf import Tokenizer, image_processor, load_model, read_weights, rename_tensors
from embark.models.hub import Checkpoint, companion_checkpoint, fetch_checkpoint
from embark.models.loading import Loading, loaded_card
from embark.models.pixels import ImageInputs, image_preprocessor
from embark.types import Array, EmbarkError, ModelCard

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
    tokenizer = Tokenizer(text_checkpoint, card.context)
    preprocessor = image_preprocessor(image_processor(checkpoint))

    @without_gradients
    def embed_texts(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, tokenizer.padding, "right", text_model.device)
        mean = mean_token(text_model(input_ids=ids, attention_mask=mask).last_hidden_state, mask)
        return to_numpy(normalize(layer_norm(mean, mean.shape[1:]), dim=-1))

    @without_gradients
    def embed_images(batch: list[ImageInputs]) -> Array:
        pixels = preprocessor.batch(batch, text_model)["pixel_values"]
        return to_numpy(normalize(image_model(pixels).float(), dim=-1))

    ready = loaded_card(checkpoint.card, loading, text_model.config.hidden_size, fusion=card.fusion or "unit-sum")
    return Towers(ready, {"text": Tower(embed_texts, tokenizer), **image_towers(embed_images, preprocessor.prepare)})


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
