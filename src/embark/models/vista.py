"""VISTA (Visualized BGE): a BERT that reads the patches of an EVA-02 tower before the words of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embark.models.checkpoints import Checkpoint, companion_checkpoint, fetch_checkpoint
from embark.models.device import pad, to_device, to_numpy, without_gradients
from embark.models.encoder import Encoder
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD, Tokenizer, read_weights, text_tower
from embark.models.joint import JointEncoder, truncate
from embark.models.loading import Loading, loaded_card
from embark.models.pixels import BytePreprocessor, Fit, ImageInputs
from embark.types import Array, EmbarkError, ModelCard


def load(card: ModelCard, loading: Loading) -> Encoder:
    """[CLS] of text, image, or both, at unit length. An image alone is read with an empty text."""
    import torch
    from torch.nn.functional import normalize

    checkpoint, text_checkpoint = companion_checkpoint(fetch_checkpoint(card, loading), "text", loading)
    modules = build_modules(checkpoint, text_checkpoint)
    bert, eva, projection = (to_device(module, checkpoint.card, loading) for module in modules)
    tokenizer = Tokenizer(text_checkpoint, card.context)
    preprocessor = eva_preprocessor(eva.size)
    patches = eva.pos_embed.shape[1] - 1

    def tokens(texts: Sequence[tuple[str | None, bool]]) -> list[list[int]]:
        rows = tokenizer.many([text or "" for text, _ in texts])
        limits = [tokenizer.limit - patches * with_image for _, with_image in texts]
        return list(map(truncate, rows, limits))

    def first_state(out: Any) -> Any:
        return normalize(out.last_hidden_state[:, 0].float(), dim=-1)

    @without_gradients
    def embed_images(batch: list[ImageInputs], rows: list[list[int]]) -> Array:
        image = projection(eva(preprocessor.batch(batch, bert)["pixel_values"])[:, 1:])
        image_positions = torch.arange(1, 1 + patches, device=bert.device)  # [CLS] is 0, words come after the patches
        image = bert.embeddings.LayerNorm(image + bert.embeddings.position_embeddings(image_positions))
        ids, mask = pad(rows, tokenizer.padding, "right", bert.device)
        text_positions = torch.arange(ids.shape[1], device=bert.device) + patches
        text_positions[0] = 0
        text = bert.embeddings(input_ids=ids, position_ids=text_positions.expand(len(ids), -1))
        states = torch.cat([text[:, :1], image, text[:, 1:]], dim=1)
        attended = torch.cat([mask.new_ones(len(ids), patches), mask], dim=1)[:, None, None]
        hidden = bert.encoder(states, attention_mask=(1 - attended.to(bert.dtype)) * torch.finfo(bert.dtype).min)
        return to_numpy(first_state(hidden))

    text = text_tower(tokenizer, bert, lambda ids, mask: first_state(bert(input_ids=ids, attention_mask=mask)))
    return JointEncoder(
        loaded_card(checkpoint.card, loading, bert.config.hidden_size, fusion="native"),
        preprocessor.prepare,
        tokens,
        text.embed,
        embed_images,
    )


def build_modules(checkpoint: Checkpoint, text_checkpoint: Checkpoint) -> tuple[Any, Any, Any]:
    """(BERT, EVA, projection) from one file of weights; the text repository gives the BERT's shape."""
    from torch import nn
    from transformers import AutoConfig, AutoModel

    from embark.models.eva import Eva, load_state, under

    state = read_weights(checkpoint, str(checkpoint.card.options.get("weights", "*")))
    config = AutoConfig.from_pretrained(text_checkpoint.folder, local_files_only=True, trust_remote_code=False)
    bert = AutoModel.from_config(config, add_pooling_layer=False)
    bert_state = {
        f"{part}.{name}": tensor
        for part in ("embeddings", "encoder")
        for name, tensor in under(f"bge_{part}.", state).items()
    }
    image = under("model_visual.visual.", state)
    if lacking := {"cls_token", "rope.freqs_cos", "rope.freqs_sin"} - image.keys():
        raise EmbarkError(f"{checkpoint.name} is no VISTA checkpoint: it lacks model_visual.visual.{min(lacking)}.")
    image = {
        name.replace("q_bias", "q_proj.bias").replace("v_bias", "v_proj.bias"): tensor for name, tensor in image.items()
    }
    projection = nn.Linear(image["cls_token"].shape[-1], bert.config.hidden_size)
    eva = Eva(image, (image["rope.freqs_cos"], image["rope.freqs_sin"]))
    return load_state(bert, bert_state), eva, load_state(projection, under("visual_proj.", state))


def eva_preprocessor(size: int) -> BytePreprocessor:
    """As EVA-CLIP evaluates: the shorter side resized, the middle cut out, CLIP's mean and deviation."""
    from PIL import Image

    resize = Fit(size, None, Image.Resampling.BICUBIC)

    def fit(image: Image.Image) -> Image.Image:
        image = resize(image)
        left, top = (round((side - size) / 2) for side in image.size)  # to even, unlike image processors
        return image.crop((left, top, left + size, top + size))

    byte_values = (np.arange(256)[:, None] / 255 - CLIP_MEAN) / CLIP_SPREAD
    return BytePreprocessor(fit, byte_values.T.astype(np.float32))
