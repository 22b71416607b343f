"""Generators: models that caption images and rewrite queries. They decode greedily, so that texts can be reproduced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embark.models import hub
from embark.models.chat import Chat, fill_template
from embark.models.device import without_gradients
from embark.models.encoder import Generator
from embark.models.hf import Tokenizer, image_processor, load_model
from embark.models.loading import Loading, loaded_card
from embark.models.mllm import Prompt
from embark.models.pixels import BytePreprocessor, ImageInputs, LibraryPreprocessor, image_preprocessor
from embark.types import Content, EmbarkError, Item, ModelCard, Rendered

MAX_TOKENS = 256  # of a text, unless the card's options state another number ("words")


def load(card: ModelCard, loading: Loading) -> Generator:
    """A chat model with the template of its checkpoint, or of its card's options."""
    checkpoint = hub.fetch_checkpoint(card, loading)
    chat = Chat(checkpoint, loading)
    template = card.options.get("template") or _template(chat.tokenizer, card.name)
    end = chat.model.generation_config.eos_token_id
    chat.model.generation_config = _greedy(card, end, chat.tokenizer.padding)
    ready = loaded_card(checkpoint.card, loading, 1, card.modalities or chat.modalities, stored="uint8")
    return ChatGenerator(ready, chat, template)


def load_blip(card: ModelCard, loading: Loading) -> Generator:
    """BLIP's captioner."""
    from transformers import BlipForConditionalGeneration

    checkpoint = hub.fetch_checkpoint(card, loading)
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

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """The tokens and tensors of the turn: the prompt, a new line, the item."""
        prompt, *item = contents
        return self.chat.prompt(*fill_template(self.template, body=[prompt, "\n", *item]))

    @without_gradients
    def generate(self, batch: Sequence[Prompt]) -> list[str]:
        """One text per item, decoded greedily."""
        inputs = self.chat.inputs(batch)
        return _texts(self.chat.tokenizer, self.chat.model.generate(**inputs)[:, inputs["input_ids"].shape[1] :])


@dataclass(eq=False)
class CaptionGenerator(Generator):
    """Captions of images; it takes no prompt, so there is none in what it sees."""

    card: ModelCard
    model: Any
    preprocessor: BytePreprocessor | LibraryPreprocessor
    tokenizer: Tokenizer

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


def _texts(tokenizer: Tokenizer, ids: Any) -> list[str]:
    with tokenizer.lock:
        return [text.strip() for text in tokenizer.inner.batch_decode(ids, skip_special_tokens=True)]
