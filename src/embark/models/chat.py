"""Language models that answer: prompts of text and media in, the states that decide the next word out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from embark.models.device import last_token, pad
from embark.models.hf import Tokenizer, image_processor, weights
from embark.models.hub import Checkpoint
from embark.models.loading import Loading
from embark.models.mllm import LIMIT, Grid, Prompt, Sense, collated
from embark.types import Content, Modality

# How pictures and films are looked at, where a card does not say otherwise; `cards/mllm.py` tells what each means.
SIGHT = {"bare": False, "pixels": None, "video": "native", "frame_pixels": None, "film_pixels": None, "fps": 2.0}
SEEING = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")


class Chat:
    """A language model at work, with eyes where its checkpoint has them.

    `head` is whether it is loaded with the layer that gives each word its logit.
    """

    def __init__(self, found: Checkpoint, loading: Loading, head: bool = True) -> None:
        from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText

        config = AutoConfig.from_pretrained(found.folder, local_files_only=True, trust_remote_code=found.trusted)
        sees = config.model_type in SEEING
        self.model = weights(
            (AutoModelForImageTextToText if sees else AutoModelForCausalLM) if head else AutoModel, found, loading
        )
        self.config, self.card, self.tokenizer = config, found.card, Tokenizer(found, LIMIT)
        self.senses: dict[Modality, Sense] = {}
        self.foreign = re.compile("(?!)")
        if sees:
            eyes = Grid({**SIGHT, **found.card.options}, config, image_processor(found), self.tokenizer)
            self.senses, self.foreign = eyes.senses, re.compile(f"{re.escape(eyes.picture)}|{re.escape(eyes.film)}")
        self.modalities: tuple[Modality, ...] = ("text", *self.senses)
        self.special = {*self.tokenizer.inner.all_special_ids, *self.tokenizer.inner.added_tokens_decoder}

    def prompt(self, body: Sequence[str | Content], tail: str = "") -> Prompt:
        """Tokens and tensors of a prompt: `str` is a template's own text, contents are an item's.

        What does not fit the card's context is cut from the end of the body, media excepted.
        """
        texts, media = [], []
        for piece in body:
            if isinstance(piece, str):
                texts.append(piece)
            elif piece.kind == "text":  # a placeholder in it would ask for a picture that is not there
                texts.append(self.foreign.sub(" ", piece.value))
            else:
                seen = self.senses[piece.kind](piece.value)
                texts.append(seen.prompt)
                media.append(seen.tensors)
        ids, end = self._ids("".join(texts)), self._ids(tail)
        over = len(ids) + len(end) - (self.card.context or LIMIT)
        if over > 0:
            loose = [at for at, token in enumerate(ids) if token not in self.special]
            gone = set(loose[max(0, len(loose) - over) :])
            ids = [token for at, token in enumerate(ids) if at not in gone]
        return Prompt([*ids, *end], tuple(media))

    def inputs(self, batch: Sequence[Prompt]) -> dict[str, Any]:
        """What the model takes; padded on the left, so that words can be added on the right."""
        device = self.model.device
        ids, mask = pad([prompt.ids for prompt in batch], self.tokenizer.padding, "left", device)
        media = collated([tensors for prompt in batch for tensors in prompt.media])
        out = {
            name: tensor.to(device, self.model.dtype if tensor.is_floating_point() else None)
            for name, tensor in media.items()
        }
        if self.senses:
            kinds = (ids == self.config.image_token_id).int() + 2 * (ids == self.config.video_token_id).int()
            out["mm_token_type_ids"] = kinds
        return {"input_ids": ids, "attention_mask": mask, **out}

    def last_state(self, batch: Sequence[Prompt]) -> Any:
        """The final state after each prompt, from which the next word follows."""
        inputs = self.inputs(batch)
        hidden = self.model.base_model(**inputs, use_cache=False).last_hidden_state
        return last_token(hidden, inputs["attention_mask"])

    def _ids(self, text: str) -> list[int]:
        with self.tokenizer.lock:
            found: list[int] = self.tokenizer.inner(text, add_special_tokens=False)["input_ids"]
        return found


def filled(template: str, **fields: Sequence[str | Content]) -> tuple[list[str | Content], str]:
    """(body, tail) of a template with "{names}" in it: the tail is what stands after the last of them."""
    *body, tail = re.split(r"(\{[a-z]+\})", template)
    return [each for piece in body for each in fields.get(piece.strip("{}"), [piece])], tail
