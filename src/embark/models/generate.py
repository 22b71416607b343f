"""Generators: models that put pictures into words and rewrite queries; greedy, so that they can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embark.models import hub
from embark.models.chat import Chat, filled
from embark.models.device import without_gradients
from embark.models.encoder import Generator
from embark.models.hf import Tokenizer, image_processor, weights
from embark.models.loading import Loading, loaded
from embark.models.mllm import Prompt
from embark.models.pixels import Pixels, Prepared, Processed, pixels
from embark.types import Content, EmbarkError, Item, ModelCard, Rendered

WORDS = 256  # tokens an answer may have, unless the card's options say otherwise
BODY = "{body}"


def load(card: ModelCard, loading: Loading) -> Generator:
    """A chat model, by the template of its checkpoint (or of its card's options)."""
    found = hub.checkpoint(card, loading)
    chat = Chat(found, loading)
    template = card.options.get("template") or _template(chat.tokenizer, card.name)
    ready = loaded(found.card, loading, 1, card.modalities or chat.modalities, stored="uint8")
    return Answering(ready, chat, template)


def load_blip(card: ModelCard, loading: Loading) -> Generator:
    """BLIP's captioner."""
    from transformers import BlipForConditionalGeneration

    found = hub.checkpoint(card, loading)
    model = weights(BlipForConditionalGeneration, found, loading)
    ready = loaded(found.card, loading, 1, ("image",), stored="uint8")
    return Captioning(ready, model, pixels(image_processor(found)), Tokenizer(found))


class Answering(Generator):
    """One user's turn: the prompt, then the item; the model's turn is the text."""

    def __init__(self, card: ModelCard, chat: Chat, template: str) -> None:
        self.card, self.chat, self.template = card, chat, template
        known, tokenizer = chat.model.generation_config, chat.tokenizer
        chat.model.generation_config = _greedy(card, known.eos_token_id, tokenizer.padding)

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """Prompt and item, each on a line of its own where they are text."""
        first, *rest = contents
        body, tail = filled(self.template, body=[first, "\n", *rest])
        return self.chat.prompt(body, tail)

    @without_gradients
    def generate(self, batch: Sequence[Prompt]) -> list[str]:
        """One pass a word."""
        inputs = self.chat.inputs(batch)
        out = self.chat.model.generate(**inputs)[:, inputs["input_ids"].shape[1] :]
        return _texts(self.chat.tokenizer, out)


class Captioning(Generator):
    """A picture in, a caption out; it takes no prompt, so there is none in what it sees."""

    def __init__(self, card: ModelCard, model: Any, look: Pixels | Processed, tokenizer: Tokenizer) -> None:
        self.card, self.model, self.look, self.tokenizer = card, model, look, tokenizer
        self.greedy = _greedy(card, model.config.text_config.sep_token_id, model.config.text_config.pad_token_id)

    def render(self, item: Item, prompt: str) -> Rendered:
        """The picture alone."""
        return Rendered(item.parts)

    def prepare(self, contents: Sequence[Content], mode: str) -> Prepared:
        """Its pixels."""
        [picture] = contents
        return self.look.prepare(picture.value)

    @without_gradients
    def generate(self, batch: Sequence[Prepared]) -> list[str]:
        """One pass a word."""
        seen = self.look.batch(batch, self.model)
        return _texts(self.tokenizer, self.model.generate(**seen, generation_config=self.greedy))


def _template(tokenizer: Tokenizer, name: str) -> str:
    """What the checkpoint puts around a user's turn."""
    if not tokenizer.inner.chat_template:
        raise EmbarkError(f"{name} has no chat template: it is no model that answers.")
    turn = [{"role": "user", "content": BODY}]
    text: str = tokenizer.inner.apply_chat_template(
        turn, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    return text


def _greedy(card: ModelCard, end: Any, fill: int) -> Any:
    """The likeliest word each time: none of the checkpoint's own ideas of sampling."""
    from transformers import GenerationConfig

    limit = int(card.options.get("words", WORDS))
    return GenerationConfig(do_sample=False, num_beams=1, max_new_tokens=limit, eos_token_id=end, pad_token_id=fill)


def _texts(tokenizer: Tokenizer, ids: Any) -> list[str]:
    with tokenizer.lock:
        return [text.strip() for text in tokenizer.inner.batch_decode(ids, skip_special_tokens=True)]
