"""Re-rankers: cross-encoders of text, and language models that are asked whether a document answers a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from embark.models import checkpoints
from embark.models.cards.rerank import JINA, QWEN3, QWEN3_VL
from embark.models.chat import Chat, fill_template
from embark.models.device import compile_module, pad, to_numpy, without_gradients
from embark.models.encoder import Capabilities, Reranker
from embark.models.hf import Tokenizer, load_model, read_weights, two_layers
from embark.models.loading import Loading, loaded_card
from embark.models.mllm import QWEN_VL, Prompt
from embark.models.prompts import join_texts
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered, Text

INSTRUCTION = "{instruction}"


def load(card: ModelCard, loading: Loading) -> Reranker:
    """A sequence classifier with one label, as for sentence-transformers' CrossEncoder."""
    from transformers import AutoModelForSequenceClassification

    checkpoint = checkpoints.fetch_checkpoint(card, loading)
    model = load_model(AutoModelForSequenceClassification, checkpoint, loading)
    if model.config.num_labels != 1:
        raise EmbarkError(f"{card.name} tells {model.config.num_labels} classes apart; a re-ranker gives one score.")
    tokenizer = Tokenizer(checkpoint, card.options.get("tokens", card.context))
    config = model.config.get_text_config()
    candidates = (tokenizer.inner.pad_token_id, getattr(config, "pad_token_id", None), tokenizer.inner.eos_token_id)
    # Decoders read the score at the last token that is not this one: it must be the one that rows are padded with.
    config.pad_token_id = next((token for token in candidates if token is not None), 0)
    ready = loaded_card(checkpoint.card, loading, 1, ("text",), record=tokenizer.length.record, stored="float32")
    return CrossEncoder(ready, model, tokenizer)


def load_yes_no(card: ModelCard, loading: Loading) -> Reranker:
    """A language model that answers yes or no; the score is the logit of "yes" minus that of "no"."""
    checkpoint = checkpoints.fetch_checkpoint(card, loading)
    with_vision = checkpoint.config.get("model_type") in QWEN_VL
    checkpoint = checkpoint.with_options(**{**(QWEN3_VL if with_vision else QWEN3), **card.options})
    chat = Chat(checkpoint, loading)
    compile_module(chat.model.base_model, loading)  # scores bypass `forward`, all that compiling the whole covers
    answers = [chat.tokenizer.inner.convert_tokens_to_ids(checkpoint.card.options[word]) for word in ("yes", "no")]
    yes, no = chat.model.get_output_embeddings().weight[answers].float()
    return PromptReranker(
        loaded_card(checkpoint.card, loading, 1, card.modalities or chat.modalities, stored="float32"),
        chat,
        lambda states: states.float() @ (yes - no),
    )


def load_jina(card: ModelCard, loading: Loading) -> Reranker:
    """Jina's m0: Qwen2-VL with two layers in place of the logits, on the state of a token that ends every prompt."""
    import torch

    checkpoint = checkpoints.fetch_checkpoint(card, loading).with_options(**{**JINA, **card.options})
    chat = Chat(checkpoint, loading, head=False)
    weights = read_weights(checkpoint).items()
    state = {name.removeprefix("score."): tensor for name, tensor in weights if name.startswith("score.")}
    if not state:
        raise EmbarkError(f"The checkpoint of {checkpoint.name} has no weights named score.…, which score a pair.")
    head = two_layers(state, torch.nn.ReLU()).to(chat.model.device, chat.model.dtype)
    return PromptReranker(
        loaded_card(checkpoint.card, loading, 1, card.modalities or chat.modalities, stored="float32"),
        chat,
        lambda states: head(states)[:, 0],
    )


@dataclass(eq=False)
class CrossEncoder(Reranker):
    """Query and document in one sequence; the score is the classifier's logit."""

    card: ModelCard
    model: Any
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        self.capabilities = Capabilities(prepare_many=self._prepare_many)

    def prepare(self, contents: Sequence[Content], mode: str) -> dict[str, list[int]]:
        """Tokens of the pair, cut to the limit from the longer of the two."""
        return self._tokens(*self._pair(contents, mode))

    def _prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> list[dict[str, list[int]]]:
        """As `prepare` for each pair."""
        pairs = list(map(self._pair, batch, modes))
        queries, documents = map(list, zip(*pairs, strict=True))
        if not all(documents):  # alone, an empty document is none; among others, it would get a mark of its end
            return [self._tokens(*pair) for pair in pairs]
        columns = self._tokens(queries, documents)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _pair(self, contents: Sequence[Content], mode: str) -> tuple[str, str]:
        query, document = super().prepare(contents, mode)
        return join_texts(query), join_texts(document)

    def _tokens(self, query: Any, document: Any) -> dict[str, list[Any]]:
        """By name, the tokens and types of a pair, or of many: lists of queries and documents."""
        with self.tokenizer.lock:
            return dict(self.tokenizer.inner(query, document, truncation=True, max_length=self.tokenizer.limit))

    @without_gradients
    def score(self, batch: Sequence[dict[str, list[int]]]) -> Array:
        """One pass over the batch."""
        device = self.model.device
        padding = self.model.config.get_text_config().pad_token_id
        ids, mask = pad([pair["input_ids"] for pair in batch], padding, "right", device)
        inputs = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in batch[0]:
            inputs["token_type_ids"], _ = pad([pair["token_type_ids"] for pair in batch], 0, "right", device)
        return to_numpy(self.model(**inputs).logits[:, 0])


@dataclass(eq=False)
class PromptReranker(Reranker):
    """Query and document in one prompt (the card's "template"); `head` scores the state of its last token."""

    card: ModelCard
    chat: Chat
    head: Callable[[Any], Any]

    def render(self, query: Item, document: Item, instruction: str | None) -> Rendered:
        """The instruction where the template has a field for it, the query, the document."""
        if INSTRUCTION not in self.card.options["template"]:
            return super().render(query, document, instruction)
        first = Text(instruction or self.card.options["instruction"])
        return Rendered((first, *query.parts, *document.parts), str(1 + len(query.parts)))

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """The prompt's tokens and tensors; media stand before texts in query and document, as in training."""
        query, document = super().prepare(contents, mode)
        template = self.card.options["template"]
        instruction = query[:1] if INSTRUCTION in template else []
        body, tail = fill_template(
            template,
            instruction=instruction,
            query=_media_first(query[len(instruction) :]),
            document=_media_first(document),
        )
        prompt = self.chat.prompt(body, tail)
        return prompt._replace(ids=[*prompt.ids, *self.card.options.get("end", ())])

    @without_gradients
    def score(self, batch: Sequence[Prompt]) -> Array:
        """One pass over the batch."""
        return to_numpy(self.head(self.chat.last_state(batch)))


def _media_first(contents: Sequence[Content]) -> list[Content]:
    return sorted(contents, key=lambda content: content.kind == "text")
