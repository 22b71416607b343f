"""BLIP by its contrastive heads, and BLIP-2 by its Q-Former, as MIEB embeds with them."""

from __future__ import annotations

from typing import Any

from embark.models.device import pad, to_numpy, without_gradients
from embark.models.encoder import Encoder, Tower, Towers, frame_mean
from embark.models.hf import Tokenizer, image_processor, loaded, weights
from embark.models.hub import checkpoint
from embark.models.joint import Joint, cut
from embark.models.loading import Loading
from embark.types import Array, ModelCard

CAPTION = 32  # tokens of a text alone that BLIP-2's retrieval models were trained with


def load(card: ModelCard, loading: Loading) -> Encoder:
    """BLIP: the projected [CLS] of either tower, at unit length. Captioning and VQA checkpoints lack the heads."""
    from torch.nn.functional import normalize
    from transformers import BlipForImageTextRetrieval

    found = checkpoint(card, loading)
    model = weights(BlipForImageTextRetrieval, found, loading)
    tokens = Tokenizer(found, card.context or model.config.text_config.max_position_embeddings)

    @without_gradients
    def text(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, tokens.padding, "right", model.device)
        hidden = model.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return to_numpy(normalize(model.text_proj(hidden[:, 0]), dim=-1))

    @without_gradients
    def image(pixels: list[Any]) -> Array:
        hidden = model.vision_model(_stack(pixels, model)).last_hidden_state
        return to_numpy(normalize(model.vision_proj(hidden[:, 0]), dim=-1))

    pictures = Tower(image, _pixels(image_processor(found)))
    ready = loaded(found, loading, model.config.image_text_hidden_size, fusion="unit-sum")
    return Towers(ready, {"text": Tower(text, tokens), "image": pictures, "video": frame_mean(pictures)})


def load_blip2(card: ModelCard, loading: Loading) -> Encoder:
    """BLIP-2: the first output of the Q-Former over text, queries on the image, or both; no contrastive projection."""
    import torch
    from transformers import Blip2ForImageTextRetrieval

    found = checkpoint(card, loading)
    model = weights(Blip2ForImageTextRetrieval, found, loading)
    read = Tokenizer(found, model.config.qformer_config.max_position_embeddings)

    def tokens(text: str | None, pictured: bool) -> list[int]:
        ids = [] if text is None else read(text)
        return ids if pictured else cut(ids, card.context or CAPTION)

    @without_gradients
    def texts(rows: list[list[int]]) -> Array:
        ids, mask = pad(rows, read.padding, "right", model.device)
        words = model.embeddings(input_ids=ids)
        return to_numpy(model.qformer(words, query_length=0, attention_mask=mask).last_hidden_state[:, 0])

    @without_gradients
    def pictures(pixels: list[Any], rows: list[list[int]]) -> Array:
        seen = model.vision_model(_stack(pixels, model)).last_hidden_state
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

    ready = loaded(found, loading, model.config.qformer_config.hidden_size, fusion="native")
    return Joint(ready, _pixels(image_processor(found)), tokens, texts, pictures)


def _pixels(processor: Any) -> Any:
    return lambda image: processor(images=image, return_tensors="pt")["pixel_values"][0]


def _stack(pixels: list[Any], model: Any) -> Any:
    import torch

    return torch.stack(pixels).to(model.device, model.dtype)
