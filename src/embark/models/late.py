"""Late interaction: one vector for every token of a text and every patch of a page, compared by maxsim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from embark.models import checkpoints
from embark.models.device import to_numpy, without_gradients
from embark.models.encoder import Encoder, embed_in_groups
from embark.models.hf import check_vocabulary, load_model
from embark.models.loading import Loading, loaded_card
from embark.models.text import load_modules
from embark.models.text_length import TextLength
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered

MAXSIM: dict[str, Any] = {"similarity": "maxsim", "fusion": None}
PADDING = {"labels": -100}  # values that tensors are padded with, by name; others are padded with zeros


def load(card: ModelCard, loading: Loading) -> Encoder:
    """ColPali and ColQwen2 of transformers."""
    from transformers import AutoProcessor, ColPaliForRetrieval, ColQwen2ForRetrieval

    checkpoint = checkpoints.fetch_checkpoint(card, loading)
    kinds = {"colpali": ColPaliForRetrieval, "colqwen2": ColQwen2ForRetrieval}
    if (kind := checkpoint.config.get("model_type", "")) not in kinds:
        raise EmbarkError(f"{card.name} is of type '{kind}'; this loader knows {' and '.join(kinds)}.")
    model = load_model(kinds[kind], checkpoint, loading)
    processor = AutoProcessor.from_pretrained(
        checkpoint.folder, backend="pil", local_files_only=True, trust_remote_code=False
    )
    check_vocabulary(checkpoint, processor.tokenizer)
    ready = loaded_card(checkpoint.card, loading, model.config.embedding_dim, ("text", "image"), **MAXSIM)
    return PageEncoder(ready, model, processor)


def load_colbert(card: ModelCard, loading: Loading) -> Encoder:
    """ColBERT and later models of its kind, by sentence-transformers."""
    from sentence_transformers import MultiVectorEncoder

    checkpoint = checkpoints.fetch_checkpoint(card, loading, also=("*.metadata",))
    model = load_modules(MultiVectorEncoder, checkpoint, loading, {})
    tokens = getattr(model[0], "document_length", None) or model.max_seq_length
    record = TextLength(tokens, "the checkpoint").record
    ready = loaded_card(checkpoint.card, loading, model.get_embedding_dimension(), ("text",), record=record, **MAXSIM)
    return ColBertEncoder(ready, model)


@dataclass(eq=False)
class PageEncoder(Encoder):
    """Questions and images of pages; a text is a question in every role, as these models were trained."""

    card: ModelCard
    model: Any
    processor: Any
    lock: Any = field(default_factory=Lock)  # its tokeniser keeps state between calls

    def prepare(self, contents: Sequence[Content], mode: str) -> dict[str, Any]:
        """The processor's tensors of one item, with the prefix and the query augmentation tokens of the checkpoint."""
        [content] = contents
        with self.lock:
            if content.kind == "text":
                return dict(self.processor.process_queries([content.value]))
            return dict(self.processor.process_images([content.value.convert("RGB")]))

    @without_gradients
    def embed(self, batch: Sequence[dict[str, Any]]) -> list[Array]:
        """Texts in one pass, pages in another."""
        return embed_in_groups(batch, lambda tensors: "pixel_values" in tensors, self._pass)

    def _pass(self, _: bool, batch: Sequence[dict[str, Any]]) -> list[Array]:
        padding = {"input_ids": self.processor.tokenizer.pad_token_id, **PADDING}
        inputs = {
            name: _stacked([tensors[name] for tensors in batch], padding.get(name, 0)).to(self.model.device)
            for name in batch[0]
        }
        pairs = zip(self.model(**inputs).embeddings, inputs["attention_mask"].bool(), strict=True)
        return [to_numpy(vectors[mask]) for vectors, mask in pairs]


@dataclass(eq=False)
class ColBertEncoder(Encoder):
    """Texts; queries are padded with augmentation tokens, documents lose their punctuation."""

    card: ModelCard
    model: Any

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The item; the mode is how the model reads it, with the checkpoint's marks of queries or documents."""
        return Rendered(item.parts, "query" if role == "query" else "document")

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[str, str]:
        """(mode, text); the model itself tokenises."""
        return mode, " ".join(content.value for content in contents)

    @without_gradients
    def embed(self, batch: Sequence[tuple[str, str]]) -> list[Array]:
        """Queries in one pass, documents in another."""
        return embed_in_groups(batch, lambda prepared: prepared[0], self._pass)

    def _pass(self, mode: str, batch: Sequence[tuple[str, str]]) -> Iterable[Array]:
        encode = self.model.encode_query if mode == "query" else self.model.encode_document
        return map(to_numpy, encode([text for _, text in batch], batch_size=len(batch), show_progress_bar=False))


def _stacked(tensors: Sequence[Any], value: int) -> Any:
    """One tensor of all, padded along the second axis: tokens, or the patches of a page."""
    import torch

    longest = max(tensor.shape[1] for tensor in tensors)
    shapes = [(*(0, 0) * (tensor.ndim - 2), 0, longest - tensor.shape[1]) for tensor in tensors]
    return torch.cat(
        [torch.nn.functional.pad(tensor, shape, value=value) for tensor, shape in zip(tensors, shapes, strict=True)]
    )
