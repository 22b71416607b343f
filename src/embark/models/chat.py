"""Chat models, with or without vision: prompts of text and media to tokens, and to the state after the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from embark.models.checkpoints import Checkpoint
from embark.models.device import last_token, pad
from embark.models.hf import Tokenizer, image_processor, load_model
from embark.models.loading import Loading
from embark.models.mllm import (
    QWEN_VL,
    GridProcessor,
    MediaInput,
    MediaProcessor,
    Prompt,
    collate,
    drop_last,
    prompt_part,
    token_kinds,
)
from embark.types import Content, Modality

# Options of images and films, where a card does not state others; `cards/mllm.py` explains each.
VISION_DEFAULTS = {
    "bare": False, "pixels": None, "video": "native", "frame_pixels": None, "film_pixels": None, "fps": 2.0
}  # fmt: skip


class Chat:
    """A loaded chat model, with its vision tower where the checkpoint has one.

    `head`: with the layer that computes the logits of tokens.
    """

    def __init__(self, checkpoint: Checkpoint, loading: Loading, head: bool = True) -> None:
        from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText

        self.config = AutoConfig.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=checkpoint.trusted
        )
        with_vision = self.config.model_type in QWEN_VL
        with_head = AutoModelForImageTextToText if with_vision else AutoModelForCausalLM
        self.model = load_model(with_head if head else AutoModel, checkpoint, loading)
        self.card = checkpoint.card
        self.tokenizer = Tokenizer(checkpoint, cut=False)
        self.processors: dict[Modality, MediaProcessor] = {}
        self.placeholders = re.compile("(?!)")  # matches nothing
        if with_vision:
            options = {**VISION_DEFAULTS, **checkpoint.card.options}
            grid = GridProcessor(options, self.config, image_processor(checkpoint), self.tokenizer)
            self.processors = grid.by_modality
            self.placeholders = re.compile(f"{re.escape(grid.image_token)}|{re.escape(grid.video_token)}")
        self.modalities: tuple[Modality, ...] = ("text", *self.processors)
        self.special = {*self.tokenizer.inner.all_special_ids, *self.tokenizer.inner.added_tokens_decoder}

    def prompt(self, body: Sequence[str | Content], tail: str = "") -> Prompt:
        """Tokens and tensors of a prompt: a `str` is text of a template, a `Content` is a part of an item.

        Tokens beyond the card's context are cut from the end of the body, but never media or special tokens.
        """
        inputs = [
            MediaInput(piece, {}) if isinstance(piece, str) else prompt_part(piece, self.processors, self.placeholders)
            for piece in body
        ]
        ids = self.tokens("".join(part.prompt for part in inputs))
        tail_ids = self.tokens(tail)
        excess = max(0, len(ids) + len(tail_ids) - self.card.context) if self.card.context else 0
        media = tuple(part.tensors for part in inputs if part.tensors)
        return Prompt([*drop_last(ids, excess, self.special), *tail_ids], media)

    def inputs(self, batch: Sequence[Prompt]) -> dict[str, Any]:
        """The model's arguments; padded on the left, so that tokens can be generated on the right."""
        ids, mask = pad([prompt.ids for prompt in batch], self.tokenizer.padding, "left", self.model.device)
        inputs = {"input_ids": ids, "attention_mask": mask, **collate(batch, self.model)}
        if self.processors:
            inputs["mm_token_type_ids"] = token_kinds(ids, self.config)
        return inputs

    def last_state(self, batch: Sequence[Prompt]) -> Any:
        """The final state of each prompt's last token, from which the next one is predicted."""
        inputs = self.inputs(batch)
        return last_token(self.model.base_model(**inputs, use_cache=False).last_hidden_state, inputs["attention_mask"])

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, without special ones."""
        with self.tokenizer.lock:
            return list(self.tokenizer.inner(text, add_special_tokens=False)["input_ids"])


def fill_template(template: str, **fields: Sequence[str | Content]) -> tuple[list[str | Content], str]:
    """(body, tail) of a template with {fields}: the tail is the text after the last field."""
    *pieces, tail = re.split(r"(\{[a-z]+\})", template)
    return [value for piece in pieces for value in fields.get(piece.strip("{}"), [piece])], tail
