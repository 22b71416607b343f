"""Nomic Embed: a text and a vision checkpoint that share one space, in one encoder."""

from __future__ import annotations

from typing import Any

from embark.models.device import mean_token, pad, settle, to_numpy, without_gradients
from embark.models.encoder import Encoder, Tower, Towers, frame_mean
from embark.models.hf import Tokenizer, image_processor, renamed, weights
from embark.models.hub import Checkpoint, checkpoint, companion
from embark.models.loading import Loading, loaded
from embark.models.pixels import Prepared, pixels
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

    found = checkpoint(card, loading)
    if "img_size" not in found.config:
        raise EmbarkError(
            f"{card.name} is no vision checkpoint of Nomic's; for its text model alone: text:{card.source}"
        )
    found, words = companion(found, "text", loading)
    reader, viewer = weights(NomicBertModel, words, loading), settle(vision(found), found.card, loading)
    tokens, look = Tokenizer(words, card.context), pixels(image_processor(found))

    @without_gradients
    def text(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, tokens.padding, "right", reader.device)
        mean = mean_token(reader(input_ids=ids, attention_mask=mask).last_hidden_state, mask)
        return to_numpy(normalize(layer_norm(mean, mean.shape[1:]), dim=-1))

    @without_gradients
    def image(batch: list[Prepared]) -> Array:
        seen = look.batch(batch, reader)["pixel_values"]
        return to_numpy(normalize(viewer(seen).float(), dim=-1))

    pictures = Tower(image, look.prepare)
    ready = loaded(found.card, loading, reader.config.hidden_size, fusion=card.fusion or "unit-sum")
    return Towers(ready, {"text": Tower(text, tokens), "image": pictures, "video": frame_mean(pictures)})


def vision(found: Checkpoint) -> Any:
    """The image tower: EVA-02 without norms inside its attention, and a pooling head."""
    from torch import nn

    from embark.models.eva import Eva, Pooling, read, rotation, under

    config, state = found.config, read(found)
    head, grid = config["n_embd"] // config["n_head"], config["img_size"] // config["patch_size"]
    trained = (config.get("ref_feat_shape") or [grid])[0]
    tower = Eva(_as_eva(state, config["patch_size"]), rotation(head, grid, trained), config["layer_norm_epsilon"], 1e-5)
    return nn.Sequential(tower, Pooling(under("selector.", state), head, config["layer_norm_epsilon"]))


def _as_eva(state: dict[str, Any], patch: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, tensor in renamed(state, NAMES).items():
        if name.startswith("selector."):
            continue
        if ".Wqkv." in name:
            for letter, part in zip("qkv", tensor.chunk(3), strict=True):
                out[name.replace("Wqkv", f"{letter}_proj")] = part
        elif name == "patch_embed.proj.weight":
            out[name] = tensor.reshape(len(tensor), -1, patch, patch)  # a linear layer over a patch is a convolution
        else:
            out[name] = tensor
    return out
