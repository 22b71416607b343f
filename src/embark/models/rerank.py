"""Re-rankers: cross-encoders of text, and language models that are asked whether a document answers a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from embark.models import hub
from embark.models.cards.rerank import JINA, QWEN3, QWEN3_VL
from embark.models.chat import SEEING, Chat, filled
from embark.models.device import pad, to_numpy, without_gradients
from embark.models.encoder import Reranker
from embark.models.hf import Tokenizer, weights
from embark.models.hub import Checkpoint
from embark.models.loading import Loading, loaded
from embark.models.mllm import Prompt
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered, Text

INSTRUCTION = "{instruction}"


def load(card: ModelCard, loading: Loading) -> Reranker:
    """A sequence classifier with one label, such as sentence-transformers' CrossEncoder takes."""
    from transformers import AutoModelForSequenceClassification

    found = hub.checkpoint(card, loading)
    model = weights(AutoModelForSequenceClassification, found, loading)
    if model.config.num_labels != 1:
        raise EmbarkError(f"{card.name} tells {model.config.num_labels} classes apart; a re-ranker gives one score.")
    tokenizer, config = Tokenizer(found, card.context), model.config.get_text_config()
    known = (tokenizer.inner.pad_token_id, getattr(config, "pad_token_id", None), tokenizer.inner.eos_token_id)
    # Decoders read the score at the last token that is not this one: it must be what rows are filled up with.
    config.pad_token_id = next((token for token in known if token is not None), 0)
    ready = loaded(found.card, loading, 1, ("text",), stored="float32")
    return CrossEncoder(ready, model, tokenizer)


def load_yes_no(card: ModelCard, loading: Loading) -> Reranker:
    """A language model that answers yes or no; the score is by how much "yes" is the likelier word."""
    found = hub.checkpoint(card, loading)
    found = _styled(found, QWEN3_VL if found.config.get("model_type") in SEEING else QWEN3)
    chat = Chat(found, loading)
    if loading.compile:
        chat.model.base_model.compile()  # states bypass `forward`, which is all that compiling the whole reaches
    words = [chat.tokenizer.inner.convert_tokens_to_ids(found.card.options[word]) for word in ("yes", "no")]
    rows = chat.model.get_output_embeddings().weight[words].float()

    def score(states: Any) -> Any:
        return states.float() @ (rows[0] - rows[1])

    ready = loaded(found.card, loading, 1, card.modalities or chat.modalities, stored="float32")
    return Asked(ready, chat, score)


def load_jina(card: ModelCard, loading: Loading) -> Reranker:
    """Jina's m0: Qwen2-VL with two layers instead of words, read at a token that ends every prompt."""
    import torch

    found = _styled(hub.checkpoint(card, loading), JINA)
    chat = Chat(found, loading, head=False)
    head = {name: tensor.to(chat.model.device, chat.model.dtype) for name, tensor in _tensors(found, "score.").items()}

    def score(states: Any) -> Any:
        inner = torch.nn.functional.linear(states, head["score.0.weight"], head["score.0.bias"]).relu()
        return torch.nn.functional.linear(inner, head["score.2.weight"], head["score.2.bias"])[:, 0]

    ready = loaded(found.card, loading, 1, card.modalities or chat.modalities, stored="float32")
    return Asked(ready, chat, score)


class CrossEncoder(Reranker):
    """Query and document in one sequence; the score is the classifier's logit."""

    def __init__(self, card: ModelCard, model: Any, tokenizer: Tokenizer) -> None:
        self.card, self.model, self.tokenizer = card, model, tokenizer

    def prepare(self, contents: Sequence[Content], mode: str) -> dict[str, list[int]]:
        """Tokens of the pair; what is too long is cut from the longer of the two."""
        query, document = (" ".join(content.value for content in half) for half in super().prepare(contents, mode))
        with self.tokenizer.lock:
            return dict(self.tokenizer.inner(query, document, truncation=True, max_length=self.tokenizer.limit))

    @without_gradients
    def score(self, batch: Sequence[dict[str, list[int]]]) -> Array:
        """One pass over the batch."""
        device, fill = self.model.device, self.model.config.get_text_config().pad_token_id
        ids, mask = pad([pair["input_ids"] for pair in batch], fill, "right", device)
        more = {}
        if "token_type_ids" in batch[0]:
            more["token_type_ids"], _ = pad([pair["token_type_ids"] for pair in batch], 0, "right", device)
        return to_numpy(self.model(input_ids=ids, attention_mask=mask, **more).logits[:, 0])


class Asked(Reranker):
    """Query and document in one prompt (the card's "template"); the score is read from the state after it."""

    def __init__(self, card: ModelCard, chat: Chat, head: Callable[[Any], Any]) -> None:
        self.card, self.chat, self.head = card, chat, head
        self.template: str = card.options["template"]

    def render(self, query: Item, document: Item, instruction: str | None) -> Rendered:
        """The instruction first, where the prompt has a place for it."""
        if INSTRUCTION not in self.template:
            return super().render(query, document, instruction)
        asked = Text(instruction or self.card.options["instruction"])
        return Rendered((asked, *query.parts, *document.parts), str(1 + len(query.parts)))

    def prepare(self, contents: Sequence[Content], mode: str) -> Prompt:
        """The prompt's tokens and tensors; within query and document media come first, as these models were trained."""
        query, document = super().prepare(contents, mode)
        asked = query[:1] if INSTRUCTION in self.template else []
        fields = {"instruction": asked, "query": _media_first(query[len(asked) :]), "document": _media_first(document)}
        body, tail = filled(self.template, **fields)
        prompt = self.chat.prompt(body, tail)
        return prompt._replace(ids=[*prompt.ids, *self.card.options.get("end", ())])

    @without_gradients
    def score(self, batch: Sequence[Prompt]) -> Array:
        """One pass over the batch."""
        return to_numpy(self.head(self.chat.last_state(batch)))


def _styled(found: Checkpoint, style: Mapping[str, Any]) -> Checkpoint:
    """With the family's prompt, where the card has none."""
    return replace(found, card=replace(found.card, options={**style, **found.card.options}))


def _media_first(contents: Sequence[Content]) -> list[Content]:
    return sorted(contents, key=lambda content: content.kind == "text")


def _tensors(found: Checkpoint, prefix: str) -> dict[str, Any]:
    """The checkpoint's tensors whose names begin so."""
    from safetensors import safe_open

    out: dict[str, Any] = {}
    for path in found.weights():
        with safe_open(path, "pt") as file:
            out |= {name: file.get_tensor(name) for name in file.keys() if name.startswith(prefix)}  # noqa: SIM118
    if not out:
        raise EmbarkError(f"The checkpoint of {found.card.name} has no weights named {prefix}…, which score a pair.")
    return out
