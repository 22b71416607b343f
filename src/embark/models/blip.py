"""BLIP by its contrastive heads, and BLIP-2 by its Q-Former, as MIEB embeds with them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Any

from embark.models.device import pad, to_numpy, without_gradients
from embark.models.encoder import Encoder, Tower, Towers, frame_mean
from embark.models.hf import Tokenizer, image_processor, renamed, tensors, weights
from embark.models.hub import Checkpoint, checkpoint, companion, is_file, weights_file
from embark.models.joint import Joint, cut
from embark.models.loading import Loading, loaded
from embark.models.pixels import Prepared, pixels
from embark.types import Array, EmbarkError, ModelCard

CAPTION = 32  # tokens of a text alone that BLIP-2's retrieval models were trained with


def load(card: ModelCard, loading: Loading) -> Encoder:
    """BLIP: the projected [CLS] of either tower, at unit length. Captioning and VQA checkpoints lack the heads.

    A source is a repository or folder of transformers, or one file of the authors'.
    """
    from torch.nn.functional import normalize

    found, model, tokens, processor = _original(card, loading) if is_file(card.source) else _converted(card, loading)
    look = pixels(processor)
    _compile(model, loading)

    @without_gradients
    def text(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, tokens.padding, "right", model.device)
        hidden = model.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return to_numpy(normalize(model.text_proj(hidden[:, 0]), dim=-1))

    @without_gradients
    def image(batch: list[Prepared]) -> Array:
        hidden = model.vision_model(**look.batch(batch, model)).last_hidden_state
        return to_numpy(normalize(model.vision_proj(hidden[:, 0]), dim=-1))

    pictures = Tower(image, look.prepare)
    ready = loaded(found.card, loading, model.config.image_text_hidden_size, fusion=card.fusion or "unit-sum")
    return Towers(ready, {"text": Tower(text, tokens), "image": pictures, "video": frame_mean(pictures)})


def load_blip2(card: ModelCard, loading: Loading) -> Encoder:
    """BLIP-2: the first output of the Q-Former over text, queries on the image, or both; no contrastive projection."""
    import torch
    from transformers import Blip2ForImageTextRetrieval

    found = checkpoint(card, loading)
    model = weights(Blip2ForImageTextRetrieval, found, loading)
    _compile(model, loading)
    look, read = pixels(image_processor(found)), Tokenizer(found, model.config.qformer_config.max_position_embeddings)

    def tokens(text: str | None, pictured: bool) -> list[int]:
        ids = [] if text is None else read(text)
        return ids if pictured else cut(ids, card.context or CAPTION)

    @without_gradients
    def texts(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, read.padding, "right", model.device)
        words = model.embeddings(input_ids=ids)
        return to_numpy(model.qformer(words, query_length=0, attention_mask=mask).last_hidden_state[:, 0])

    @without_gradients
    def pictures(batch: list[Prepared], rows: list[list[int]]) -> Array:
        seen = model.vision_model(**look.batch(batch, model)).last_hidden_state
        queries = model.query_tokens.expand(len(seen), -1, -1)
        ids, mask = pad(rows, read.padding, "right", model.device)  # where there is no text, all of it is masked
        hidden = model.qformer(
            model.embeddings(input_ids=ids, query_embeds=queries),
            query_length=queries.shape[1],
            attention_mask=torch.cat([mask.new_ones(queries.shape[:2]), mask], dim=1),
            encoder_hidden_states=seen,
            encoder_attention_mask=mask.new_ones(seen.shape[:2]),
        ).last_hidden_state
        return to_numpy(hidden[:, 0])

    ready = loaded(found.card, loading, model.config.qformer_config.hidden_size, fusion="native")
    return Joint(ready, look.prepare, tokens, texts, pictures)


def _compile(model: Any, loading: Loading) -> None:
    """The parts, each for itself: vectors bypass `forward`, which is all that compiling the whole reaches."""
    if loading.compile:
        for part in model.children():
            part.compile()


# ── where BLIP's weights come from: (checkpoint, model, tokeniser, image processor) ──────────────────────────────────


def _converted(card: ModelCard, loading: Loading) -> tuple[Checkpoint, Any, Tokenizer, Any]:
    """A checkpoint as transformers has it."""
    from transformers import BlipForImageTextRetrieval

    found = checkpoint(card, loading)
    model = weights(BlipForImageTextRetrieval, found, loading)
    tokens = Tokenizer(found, card.context or model.config.text_config.max_position_embeddings)
    return found, model, tokens, image_processor(found)


NAMES = {  # the authors' → transformers'; the text tower and the heads are called alike
    r"^visual_encoder\.cls_token$": "vision_model.embeddings.class_embedding",
    r"^visual_encoder\.pos_embed$": "vision_model.embeddings.position_embedding",
    r"^visual_encoder\.patch_embed\.proj": "vision_model.embeddings.patch_embedding",
    r"^visual_encoder\.norm": "vision_model.post_layernorm",
    r"^visual_encoder\.blocks": "vision_model.encoder.layers",
    r"^(vision_model\..+)\.norm": r"\1.layer_norm",
    r"^(vision_model\..+)\.attn\.proj": r"\1.self_attn.projection",
    r"^(vision_model\..+)\.attn\.qkv": r"\1.self_attn.qkv",
}
HEAD = 64  # the width of an attention head in both towers; all other shapes are those of the weights
MARKS = {"bos_token": "[DEC]", "extra_special_tokens": ["[ENC]"]}  # words that the authors added to BERT's


def _original(card: ModelCard, loading: Loading) -> tuple[Checkpoint, Any, Tokenizer, Any]:
    """A file of the authors'. What pre-training needs besides (momentum towers, queues, a decoder) is left out.

    The words are BERT's, from the repository that the card's options name or from a folder `tokenizer` beside it.
    """
    from transformers import BlipForImageTextRetrieval, BlipImageProcessorPil

    found, path = weights_file(card, loading)
    content = tensors(path)
    state = renamed(content.get("model", content), NAMES)
    model = weights(BlipForImageTextRetrieval, found, loading, state, config=_config(found, state))
    found, words = companion(found, "tokenizer", loading, only=("config.json", "tokenizer*", "vocab.txt"))
    tokens = Tokenizer(words, card.context or model.config.text_config.max_position_embeddings, **MARKS)
    side = model.config.vision_config.image_size
    return found, model, tokens, BlipImageProcessorPil(size={"height": side, "width": side})


def _config(found: Checkpoint, state: Mapping[str, Any]) -> Any:
    """The architecture that the weights' shapes tell."""
    from transformers import BlipConfig

    def shape(name: str) -> Any:
        if name not in state:
            raise EmbarkError(f"{found.card.name} is no BLIP with contrastive heads: its weights lack {name}.")
        return state[name].shape

    def tower(layers: str, inner: str) -> dict[str, int]:
        hidden, width = shape(f"{layers}.0.{inner}.weight")
        depth = sum(name.startswith(f"{layers}.") and name.endswith(f".{inner}.weight") for name in state)
        sizes = {"hidden_size": width, "intermediate_size": hidden, "num_hidden_layers": depth}
        return {**sizes, "num_attention_heads": width // HEAD}

    patch = shape("vision_model.embeddings.patch_embedding.weight")[-1]
    side = patch * isqrt(shape("vision_model.embeddings.position_embedding")[1] - 1)
    words, places = (shape(f"text_encoder.embeddings.{name}_embeddings.weight")[0] for name in ("word", "position"))
    image = {**tower("vision_model.encoder.layers", "mlp.fc1"), "patch_size": patch, "image_size": side}
    text = {**tower("text_encoder.encoder.layer", "intermediate.dense"), "vocab_size": words}
    return BlipConfig(
        text_config={**text, "max_position_embeddings": places}, vision_config={**image, "layer_norm_eps": 1e-6},
        image_text_hidden_size=shape("text_proj.weight")[0],
    )  # fmt: skip
