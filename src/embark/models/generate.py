"""Generators: models that caption images and rewrite queries. They decode greedily, so that texts can be reproduced."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.models import checkpoints
from embark.models.chat import Chat, fill_template
from embark.models.device import pad, without_gradients
from embark.models.encoder import Capabilities, Generator
from embark.models.hf import Tokenizer, image_processor, load_model
from embark.models.loading import Loading, loaded_card
from embark.models.mllm import Prompt
from embark.models.pixels import BytePreprocessor, ImageInputs, LibraryPreprocessor, image_preprocessor
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered

ANSWERS_AT_ONCE = 32  # texts whose likelihoods are computed together; each takes a copy of the prompt's cache
MAX_TOKENS = 256  # of a text, unless the card's options state another number ("words")


def load(card: ModelCard, loading: Loading) -> Generator:
    """A chat model with the template of its checkpoint, or of its card's options."""
    checkpoint = checkpoints.fetch_checkpoint(card, loading)
    chat = Chat(checkpoint, loading)
    template = card.options.get("template") or _template(chat.tokenizer, card.name)
    end = chat.model.generation_config.eos_token_id
    chat.model.generation_config = _greedy(card, end, chat.tokenizer.padding)
    ready = loaded_card(checkpoint.card, loading, 1, card.modalities or chat.modalities, stored="uint8")
    return ChatGenerator(ready, chat, template)


def load_blip(card: ModelCard, loading: Loading) -> Generator:
    """BLIP's captioner."""
    from transformers import BlipForConditionalGeneration

    checkpoint = checkpoints.fetch_checkpoint(card, loading)
    model = load_model(BlipForConditionalGeneration, checkpoint, loading)
    return CaptionGenerator(
        loaded_card(checkpoint.card, loading, 1, ("image",), stored="uint8"),
        model,
        image_preprocessor(image_processor(checkpoint)),
        Tokenizer(checkpoint),
    )


@dataclass(eq=False)
class ChatGenerator(Generator):
    """The user's turn is the prompt and the item; the model's turn is the text."""

    card: ModelCard
    chat: Chat
    template: str

    def __post_init__(self) -> None:
        self.capabilities = Capabilities(likelihoods=self._likelihoods)

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """The tokens and tensors of the turn: the prompt, a new line, the item."""
        prompt, *item = contents
        return self.chat.prompt(*fill_template(self.template, body=[prompt, "\n", *item]))

    @without_gradients
    def generate(self, batch: Sequence[Prompt]) -> list[str]:
        """One text per item, decoded greedily."""
        inputs = self.chat.inputs(batch)
        return _texts(self.chat.tokenizer, self.chat.model.generate(**inputs)[:, inputs["input_ids"].shape[1] :])

    @without_gradients
    def _likelihoods(self, batch: Sequence[Prompt], texts: Sequence[str]) -> list[Array]:
        """The log-probabilities of texts as the model's turn; each prompt is read once, then all texts after it."""
        model = self.chat.model
        end = _first(model.generation_config.eos_token_id)
        answers = [[*self.chat.tokens(text), *end] for text in texts]
        return [self._answer_likelihoods(prompt, answers) for prompt in batch]

    def _answer_likelihoods(self, prompt: Prompt, answers: Sequence[list[int]]) -> Array:
        import torch

        model = self.chat.model
        inputs = self.chat.inputs([prompt])
        if hasattr(model.base_model, "rope_deltas"):
            model.base_model.rope_deltas = None  # else those of the last picture hold for a prompt without one
        read = model(**inputs, use_cache=True, logits_to_keep=1)
        parts = []
        for chunk in _chunks(answers):
            ids, mask = pad(chunk, self.chat.tokenizer.padding, "right", model.device)
            logits = read.logits.expand(len(chunk), -1, -1)
            if ids.shape[1] > 1:
                cache = copy.deepcopy(read.past_key_values)  # it grows with what is read
                cache.batch_repeat_interleave(len(chunk))
                seen = torch.cat([inputs["attention_mask"].expand(len(chunk), -1), mask[:, :-1]], 1)
                places = self._places(inputs["input_ids"].shape[1], ids[:, :-1])
                more = {"attention_mask": seen, "position_ids": places, "past_key_values": cache}
                logits = torch.cat([logits, model(input_ids=ids[:, :-1], **more).logits], 1)
            parts.append(_likelihoods(logits, ids, mask))
        return np.concatenate(parts)

    def _places(self, start: int, ids: Any) -> Any:
        """The positions of tokens after a prompt of `start` tokens; a picture takes fewer positions than tokens."""
        import torch

        places = torch.arange(start, start + ids.shape[1], device=ids.device).expand(len(ids), -1)
        shift = getattr(self.chat.model.base_model, "rope_deltas", None)
        return places if shift is None else (places + shift).expand(3, -1, -1)


@dataclass(eq=False)
class CaptionGenerator(Generator):
    """Captions of images; it takes no prompt, so there is none in what it sees."""

    card: ModelCard
    model: Any
    preprocessor: BytePreprocessor | LibraryPreprocessor
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        self.capabilities = Capabilities(likelihoods=self._likelihoods)

    def render(self, item: Item, prompt: str) -> Rendered:
        """The image alone."""
        return Rendered(item.parts)

    def prepare(self, contents: Sequence[Content], mode: str) -> ImageInputs:
        """The image's pixels."""
        [image] = contents
        return self.preprocessor.prepare(image.value)

    @without_gradients
    def generate(self, batch: Sequence[ImageInputs]) -> list[str]:
        """One caption an image, decoded greedily."""
        text_config = self.model.config.text_config
        greedy = _greedy(self.card, text_config.sep_token_id, text_config.pad_token_id)
        inputs = self.preprocessor.batch(batch, self.model)
        return _texts(self.tokenizer, self.model.generate(**inputs, generation_config=greedy))

    @without_gradients
    def _likelihoods(self, batch: Sequence[ImageInputs], texts: Sequence[str]) -> list[Array]:
        """The log-probabilities of texts as captions."""
        config = self.model.config.text_config
        with self.tokenizer.lock:
            tokens = self.tokenizer.inner(list(texts), add_special_tokens=False)["input_ids"]
        captions = [[config.bos_token_id, *ids, config.sep_token_id] for ids in tokens]
        states = self.model.vision_model(**self.preprocessor.batch(batch, self.model)).last_hidden_state
        return [self._caption_likelihoods(state, captions) for state in states]

    def _caption_likelihoods(self, state: Any, captions: Sequence[list[int]]) -> Array:
        parts = []
        for chunk in _chunks(captions):
            ids, mask = pad(chunk, self.model.config.text_config.pad_token_id, "right", self.model.device)
            pixels = state.expand(len(chunk), -1, -1)
            logits = self.model.text_decoder(
                input_ids=ids[:, :-1], attention_mask=mask[:, :-1], encoder_hidden_states=pixels
            ).logits
            parts.append(_likelihoods(logits, ids[:, 1:], mask[:, 1:]))
        return np.concatenate(parts)


def _template(tokenizer: Tokenizer, name: str) -> str:
    """The checkpoint's chat template for a user's turn, with {body} in place of the text."""
    if not tokenizer.inner.chat_template:
        raise EmbarkError(f"{name} has no chat template, so it cannot answer a prompt.")
    turn = [{"role": "user", "content": "{body}"}]
    return str(
        tokenizer.inner.apply_chat_template(turn, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    )


def _greedy(card: ModelCard, end: Any, padding: int) -> Any:
    """Greedy decoding instead of the checkpoint's own sampling."""
    from transformers import GenerationConfig

    limit = int(card.options.get("words", MAX_TOKENS))
    return GenerationConfig(do_sample=False, num_beams=1, max_new_tokens=limit, eos_token_id=end, pad_token_id=padding)


def _chunks(texts: Sequence[list[int]]) -> list[Sequence[list[int]]]:
    return [texts[start : start + ANSWERS_AT_ONCE] for start in range(0, len(texts), ANSWERS_AT_ONCE)]


def _likelihoods(logits: Any, ids: Any, mask: Any) -> Array:
    """(texts, 2): the log-probability of each row of tokens by the logits of its places, and how many tokens it has."""
    of_tokens = logits.float().log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1) * mask
    return np.column_stack([of_tokens.sum(1).cpu().numpy(), mask.sum(1).cpu().numpy()]).astype(np.float32)


def _first(end: int | Sequence[int] | None) -> list[int]:
    """The token that ends an answer, as a list; a checkpoint may state several, or none."""
    return [end] if isinstance(end, int) else list(end or ())[:1]


def _texts(tokenizer: Tokenizer, ids: Any) -> list[str]:
    with tokenizer.lock:
        return [text.strip() for text in tokenizer.inner.batch_decode(ids, skip_special_tokens=True)]
