"""VISTA (Visualized BGE): patches of an EVA-02 tower read by a BERT beside the words."""

from __future__ import annotations

from typing import Any

import numpy as np

from embark.models.device import pad, settle, to_numpy, without_gradients
from embark.models.encoder import Encoder
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD, Tokenizer
from embark.models.hub import Checkpoint, checkpoint, companion
from embark.models.joint import Joint, cut
from embark.models.loading import Loading, loaded
from embark.models.pixels import Fit, Pixels, Prepared
from embark.types import Array, EmbarkError, ModelCard


def load(card: ModelCard, loading: Loading) -> Encoder:
    """[CLS] of text, image, or both, at unit length. An image alone is read beside an empty text."""
    import torch
    from torch.nn.functional import normalize

    found = checkpoint(card, loading)
    found, words = companion(found, "text", loading)
    bert, eva, project = (settle(part, found.card, loading) for part in modules(found, words))
    read = Tokenizer(words, card.context)
    look, patches = eyes(eva.size), eva.pos_embed.shape[1] - 1

    def tokens(text: str | None, pictured: bool) -> list[int]:
        ids = read(text or "")
        return cut(ids, read.limit - patches) if pictured else ids

    @without_gradients
    def texts(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, read.padding, "right", bert.device)
        return to_numpy(normalize(bert(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0].float(), dim=-1))

    @without_gradients
    def pictures(batch: list[Prepared], rows: list[list[int]]) -> Array:
        seen = project(eva(look.batch(batch, bert)["pixel_values"])[:, 1:])
        places = torch.arange(1, 1 + patches, device=bert.device)  # [CLS] is at 0, the words come after the patches
        seen = bert.embeddings.LayerNorm(seen + bert.embeddings.position_embeddings(places))
        ids, mask = pad(rows, read.padding, "right", bert.device)
        after = torch.arange(ids.shape[1], device=bert.device) + patches
        after[0] = 0
        said = bert.embeddings(input_ids=ids, position_ids=after.expand(len(ids), -1))
        whole = torch.cat([said[:, :1], seen, said[:, 1:]], dim=1)
        known = torch.cat([mask.new_ones(len(ids), patches), mask], dim=1)[:, None, None]
        hidden = bert.encoder(whole, attention_mask=(1 - known.to(bert.dtype)) * torch.finfo(bert.dtype).min)
        return to_numpy(normalize(hidden.last_hidden_state[:, 0].float(), dim=-1))

    ready = loaded(found.card, loading, bert.config.hidden_size, fusion="native")
    return Joint(ready, look.prepare, tokens, texts, pictures)


def modules(found: Checkpoint, words: Checkpoint) -> tuple[Any, Any, Any]:
    """(BERT, EVA, projection) from one file of weights; the text repository gives the BERT's shape."""
    from torch import nn
    from transformers import AutoConfig, AutoModel

    from embark.models.eva import Eva, fill, read, under

    state = read(found, str(found.card.options.get("weights", "*")))
    config = AutoConfig.from_pretrained(words.folder, local_files_only=True, trust_remote_code=False)
    bert = AutoModel.from_config(config, add_pooling_layer=False)
    parts = {
        f"{name}.{key}": each
        for name in ("embeddings", "encoder")
        for key, each in under(f"bge_{name}.", state).items()
    }
    image = under("model_visual.visual.", state)
    if lacking := {"cls_token", "rope.freqs_cos", "rope.freqs_sin"} - image.keys():
        raise EmbarkError(f"{found.card.name} is no VISTA checkpoint: it lacks model_visual.visual.{min(lacking)}.")
    image = {
        name.replace("q_bias", "q_proj.bias").replace("v_bias", "v_proj.bias"): each for name, each in image.items()
    }
    project = nn.Linear(image["cls_token"].shape[-1], bert.config.hidden_size)
    eva = Eva(image, (image["rope.freqs_cos"], image["rope.freqs_sin"]))
    return fill(bert, parts), eva, fill(project, under("visual_proj.", state))


def eyes(size: int) -> Pixels:
    """The shorter side resized, the middle cut out, CLIP's mean and deviation taken: as EVA-CLIP evaluates."""
    from PIL import Image

    resize = Fit(size, None, Image.Resampling.BICUBIC)

    def fit(image: Image.Image) -> Image.Image:
        image = resize(image)
        left, top = (round((side - size) / 2) for side in image.size)  # to even, unlike image processors
        return image.crop((left, top, left + size, top + size))

    tones = (np.arange(256)[:, None] / 255 - CLIP_MEAN) / CLIP_SPREAD
    return Pixels(fit, tones.T.astype(np.float32))
