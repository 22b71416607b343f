"""BLIP's contrastive heads and BLIP-2's Q-Former as encoders, as MIEB uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

from embark.models.checkpoints import (
    Checkpoint,
    companion_checkpoint,
    fetch_checkpoint,
    fetch_weights_file,
    is_weights_file,
)
from embark.models.device import compile_children, pad, to_numpy, without_gradients
from embark.models.encoder import Encoder, Matching, Reranker, Towers, render_item
from embark.models.hf import (
    Tokenizer,
    image_processor,
    load_model,
    load_tensors,
    read_weights,
    rename_tensors,
    text_tower,
)
from embark.models.joint import JointEncoder, truncate
from embark.models.loading import Loading, loaded_card
from embark.models.pixel_towers import pixel_towers
from embark.models.pixels import (
    UNIBENCH,
    ImageInputs,
    image_preprocessor,
    styled_preparations,
    with_unibench_pixels,
)
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered, Style

CAPTION = 32  # tokens of a text without an image, as BLIP-2's retrieval models were trained


def load(card: ModelCard, loading: Loading) -> Encoder:
    """BLIP: the projected [CLS] of either tower, at unit length. Captioning and VQA checkpoints lack these heads; the
    option `untrained_heads` is a seed that draws them at random, as MIEB's runs of such checkpoints had them.

    A source is a repository or folder of transformers, or one file of BLIP's authors.
    """
    from torch.nn.functional import normalize

    load_parts = _from_authors_file if is_weights_file(card.source) else _from_transformers
    checkpoint, model, tokenizer, processor = load_parts(card, loading)
    compile_children(model, loading)
    preprocessor = image_preprocessor(processor)
    card = with_unibench_pixels(checkpoint.card, preprocessor.pixels)
    if "untrained_heads" not in card.options:  # UniBench adds the logit (models_zoo/wrappers/blip.py@fa232e3)
        card = replace(card, styles={**card.styles, UNIBENCH: {**card.styles.get(UNIBENCH, {}), "matching": "add"}})

    def first_state(out: Any, projection: Any) -> Any:
        return normalize(projection(out.last_hidden_state[:, 0]), dim=-1)

    text = text_tower(
        tokenizer,
        model,
        lambda ids, mask: first_state(model.text_encoder(input_ids=ids, attention_mask=mask), model.text_proj),
    )
    images = pixel_towers(
        processor, model, lambda **inputs: first_state(model.vision_model(**inputs), model.vision_proj), card
    )
    ready = loaded_card(card, loading, model.config.image_text_hidden_size, fusion=card.fusion or "unit-sum")
    matcher = BlipMatcher(
        replace(ready, kind="reranker", dim=1, stored="float32", options={**ready.options, "head": "itm"}),
        model,
        tokenizer,
        preprocessor,
        {"": preprocessor.prepare, **styled_preparations(card)},
    )
    return BlipEncoder(ready, {"text": text, **images}, matcher)


@dataclass(eq=False)
class BlipEncoder(Towers):
    """BLIP's towers, and its image–text-matching head beside them."""

    matcher: Reranker

    def __post_init__(self) -> None:
        super().__post_init__()
        matching = Matching(lambda: self.matcher, self._render_pair)
        self.capabilities = replace(self.capabilities, matching=matching)

    def _render_pair(self, image: Item, text: Item, style: Style) -> Rendered:
        """The text, then the picture; the mode is that of the picture alone."""
        return Rendered((*text.parts, *image.parts), render_item(self, image, "image", None, style).mode)


@dataclass(eq=False)
class BlipMatcher(Reranker):
    """The logit that a text belongs to a picture, of a text encoder that attends to the picture's patches."""

    card: ModelCard
    model: Any
    tokenizer: Tokenizer
    preprocessor: Any
    preparations: Mapping[str, Callable[[Any], ImageInputs]]  # by mode

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[list[int], ImageInputs]:
        """(tokens of the text, pixels)."""
        text, image = contents
        return self.tokenizer(text.value), self.preparations[mode](image.value)

    @without_gradients
    def score(self, batch: Sequence[tuple[list[int], ImageInputs]]) -> Array:
        """One pass over the pairs; a picture that stands in several of them is looked at once."""
        import torch

        images = {inputs["pixel_values"].tobytes(): inputs for _, inputs in batch}
        numbers = {pixels: number for number, pixels in enumerate(images)}
        patches = self.model.vision_model(**self.preprocessor.batch(list(images.values()), self.model))
        rows = torch.tensor([numbers[inputs["pixel_values"].tobytes()] for _, inputs in batch])
        seen = patches.last_hidden_state[rows.to(self.model.device)]
        ids, mask = pad([tokens for tokens, _ in batch], self.tokenizer.padding, "right", self.model.device)
        hidden = self.model.text_encoder(
            input_ids=ids,
            attention_mask=mask,
            encoder_hidden_states=seen,
            encoder_attention_mask=mask.new_ones(seen.shape[:2]),
        ).last_hidden_state
        return to_numpy(self.model.itm_head(hidden[:, 0])[:, 1])


def load_blip2(card: ModelCard, loading: Loading) -> Encoder:
    """BLIP-2: the first output of the Q-Former over text, image queries, or both; without contrastive projection."""
    import torch
    from transformers import Blip2ForImageTextRetrieval

    checkpoint = fetch_checkpoint(card, loading)
    model = load_model(Blip2ForImageTextRetrieval, checkpoint, loading)
    compile_children(model, loading)
    preprocessor = image_preprocessor(image_processor(checkpoint))
    tokenizer = Tokenizer(checkpoint, model.config.qformer_config.max_position_embeddings)

    def tokens(texts: Sequence[tuple[str | None, bool]]) -> list[list[int]]:
        rows = iter(tokenizer.many([text for text, _ in texts if text is not None]))
        tokenised = [([] if text is None else next(rows), with_image) for text, with_image in texts]
        return [ids if with_image else truncate(ids, card.context or CAPTION) for ids, with_image in tokenised]

    def text_states(ids: Any, mask: Any) -> Any:
        embeddings = model.embeddings(input_ids=ids)
        return model.qformer(embeddings, query_length=0, attention_mask=mask).last_hidden_state[:, 0]

    @without_gradients
    def embed_images(batch: list[ImageInputs], rows: list[list[int]]) -> Array:
        patches = model.vision_model(**preprocessor.batch(batch, model)).last_hidden_state
        queries = model.query_tokens.expand(len(patches), -1, -1)
        ids, mask = pad(rows, tokenizer.padding, "right", model.device)  # without a text, all of it is masked
        hidden = model.qformer(
            model.embeddings(input_ids=ids, query_embeds=queries),
            query_length=queries.shape[1],
            attention_mask=torch.cat([mask.new_ones(queries.shape[:2]), mask], dim=1),
            encoder_hidden_states=patches,
            encoder_attention_mask=mask.new_ones(patches.shape[:2]),
        ).last_hidden_state
        return to_numpy(hidden[:, 0])

    return JointEncoder(
        loaded_card(checkpoint.card, loading, model.config.qformer_config.hidden_size, fusion="native"),
        preprocessor.prepare,
        tokens,
        text_tower(tokenizer, model, text_states).embed,
        embed_images,
    )


# ── BLIP's parts: (checkpoint, model, tokeniser, image processor) ────────────────────────────────────────────────────


def _from_transformers(card: ModelCard, loading: Loading) -> tuple[Checkpoint, Any, Tokenizer, Any]:
    """A checkpoint in the format of transformers."""
    from transformers import BlipForImageTextRetrieval

    checkpoint = fetch_checkpoint(card, loading)
    seed = card.options.get("untrained_heads")
    parts = {} if seed is None else _with_untrained_heads(checkpoint, seed)
    model = load_model(BlipForImageTextRetrieval, checkpoint, loading, **parts)
    tokenizer = Tokenizer(checkpoint, card.context, model.config.text_config.to_dict())
    return checkpoint, model, tokenizer, image_processor(checkpoint)


def _with_untrained_heads(checkpoint: Checkpoint, seed: int) -> dict[str, Any]:
    """The towers of a checkpoint without heads (one that answers questions), and heads drawn at random by a seed.

    So MIEB ran such checkpoints; its own draw is not known. The spread is the library's.
    """
    import torch
    from transformers import BlipConfig

    config = BlipConfig.from_pretrained(checkpoint.folder, local_files_only=True)
    towers = ("vision_model.", "text_encoder.")
    state = {name: tensor for name, tensor in read_weights(checkpoint).items() if name.startswith(towers)}
    text, vision = config.text_config.hidden_size, config.vision_config.hidden_size
    widths = {
        "vision_proj": (config.image_text_hidden_size, vision),
        "text_proj": (config.image_text_hidden_size, text),
    }
    generator = torch.Generator().manual_seed(seed)
    for name, shape in {**widths, "itm_head": (2, text)}.items():
        state[f"{name}.weight"] = torch.randn(shape, generator=generator) * config.initializer_range
        state[f"{name}.bias"] = torch.zeros(shape[0])
    return {"state": state, "config": config}


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
HEAD_WIDTH = 64  # the width of an attention head in both towers; all other shapes are those of the weights
SPECIAL_TOKENS: dict[str, Any] = {"bos_token": "[DEC]", "extra_special_tokens": ["[ENC]"]}  # added to BERT's


def _from_authors_file(card: ModelCard, loading: Loading) -> tuple[Checkpoint, Any, Tokenizer, Any]:
    """A file of the authors', without what only pre-training needs (momentum towers, queues, a decoder).

    The vocabulary is BERT's, from the repository that the card's options name or from a folder `tokenizer` beside it.
    """
    from transformers import BlipForImageTextRetrieval, BlipImageProcessorPil

    checkpoint, path = fetch_weights_file(card, loading)
    content = load_tensors(path)
    state = rename_tensors(content.get("model", content), NAMES)
    model = load_model(BlipForImageTextRetrieval, checkpoint, loading, state, config=_config(checkpoint, state))
    files = ("config.json", "tokenizer*", "vocab.txt")
    checkpoint, vocabulary = companion_checkpoint(checkpoint, "tokenizer", loading, only=files)
    side = model.config.vision_config.image_size
    tokenizer = Tokenizer(vocabulary, card.context, model.config.text_config.to_dict(), **SPECIAL_TOKENS)
    return checkpoint, model, tokenizer, BlipImageProcessorPil(size={"height": side, "width": side})


def _config(checkpoint: Checkpoint, state: Mapping[str, Any]) -> Any:
    """The architecture, from the shapes of the weights."""
    from transformers import BlipConfig

    def shape(name: str) -> Any:
        if name not in state:
            raise EmbarkError(f"{checkpoint.name} is no BLIP with contrastive heads: its weights lack {name}.")
        return state[name].shape

    def tower(layers: str, inner: str) -> dict[str, int]:
        hidden, width = shape(f"{layers}.0.{inner}.weight")
        depth = sum(name.startswith(f"{layers}.") and name.endswith(f".{inner}.weight") for name in state)
        return {
            "hidden_size": width,
            "intermediate_size": hidden,
            "num_hidden_layers": depth,
            "num_attention_heads": width // HEAD_WIDTH,
        }

    patch = shape("vision_model.embeddings.patch_embedding.weight")[-1]
    side = patch * isqrt(shape("vision_model.embeddings.position_embedding")[1] - 1)
    words, positions = (shape(f"text_encoder.embeddings.{name}_embeddings.weight")[0] for name in ("word", "position"))
    image = {**tower("vision_model.encoder.layers", "mlp.fc1"), "patch_size": patch, "image_size": side}
    text = {**tower("text_encoder.encoder.layer", "intermediate.dense"), "vocab_size": words}
    return BlipConfig(
        text_config={**text, "max_position_embeddings": positions}, vision_config={**image, "layer_norm_eps": 1e-6},
        image_text_hidden_size=shape("text_proj.weight")[0],
    )  # fmt: skip
