"""Late interaction: a vector for every token of a query, every patch of a page; compared token by token (maxsim)."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from embark.models import hub
from embark.models.device import settle, to_numpy, without_gradients
from embark.models.encoder import Encoder
from embark.models.hf import check_vocabulary, weights
from embark.models.loading import Loading, loaded
from embark.models.text import modules, nothing_missing
from embark.types import Array, Content, EmbarkError, Item, ModelCard, Rendered

COMPARED: dict[str, Any] = {"similarity": "maxsim", "fusion": None}
FILL = {"labels": -100}  # what tensors are filled up with, where not with zeros


def load(card: ModelCard, loading: Loading) -> Encoder:
    """ColPali and ColQwen2, as transformers has them."""
    from transformers import AutoProcessor, ColPaliForRetrieval, ColQwen2ForRetrieval

    found = hub.checkpoint(card, loading)
    kinds = {"colpali": ColPaliForRetrieval, "colqwen2": ColQwen2ForRetrieval}
    if (kind := found.config.get("model_type", "")) not in kinds:
        raise EmbarkError(f"{card.name} is of type '{kind}'; this loader knows {' and '.join(kinds)}.")
    model = weights(kinds[kind], found, loading)
    processor = AutoProcessor.from_pretrained(
        found.folder, backend="pil", local_files_only=True, trust_remote_code=False
    )
    check_vocabulary(found, processor.tokenizer)
    ready = loaded(found.card, loading, model.config.embedding_dim, ("text", "image"), **COMPARED)
    return Pages(ready, model, processor)


def load_colbert(card: ModelCard, loading: Loading) -> Encoder:
    """ColBERT and its descendants of text, by sentence-transformers."""
    from sentence_transformers import MultiVectorEncoder

    found = hub.checkpoint(card, loading, also=("*.metadata",))
    found.weights(modules(found))  # consent, where they are pickles
    safe = {} if found.trusted else {"use_safetensors": True}
    with nothing_missing(found):
        model = MultiVectorEncoder(
            str(found.folder), device="cpu", local_files_only=True, trust_remote_code=found.trusted, model_kwargs=safe
        )
    check_vocabulary(found, model.tokenizer)
    ready = loaded(found.card, loading, model.get_embedding_dimension(), ("text",), **COMPARED)
    return ColBert(ready, settle(model, found.card, loading))


class Pages(Encoder):
    """Questions and pictures of pages; a text is a question, whatever its role, as these models were trained."""

    def __init__(self, card: ModelCard, model: Any, processor: Any) -> None:
        self.card, self.model, self.processor = card, model, processor
        self.lock = Lock()  # its tokeniser keeps state between calls

    def prepare(self, contents: Sequence[Content], mode: str) -> dict[str, Any]:
        """The processor's tensors for one item, with its prefix and its tokens to think with."""
        [content] = contents
        with self.lock:
            if content.kind == "text":
                return dict(self.processor.process_queries([content.value]))
            return dict(self.processor.process_images([content.value.convert("RGB")]))

    @without_gradients
    def embed(self, batch: Sequence[dict[str, Any]]) -> list[Array]:
        """Texts in one pass, pages in another."""
        out: dict[int, Array] = {}
        for paged in (False, True):
            rows = [row for row, each in enumerate(batch) if ("pixel_values" in each) == paged]
            if rows:
                out |= zip(rows, self._pass([batch[row] for row in rows]), strict=True)
        return [out[row] for row in range(len(batch))]

    def _pass(self, batch: Sequence[dict[str, Any]]) -> list[Array]:
        device, filled = self.model.device, self.processor.tokenizer.pad_token_id
        inputs = {
            name: _stacked([each[name] for each in batch], {"input_ids": filled, **FILL}.get(name, 0)).to(device)
            for name in batch[0]
        }
        vectors, mask = self.model(**inputs).embeddings, inputs["attention_mask"].bool()
        return [to_numpy(row[kept]) for row, kept in zip(vectors, mask, strict=True)]


class ColBert(Encoder):
    """Texts; queries are filled up with tokens to think with, documents lose their punctuation."""

    def __init__(self, card: ModelCard, model: Any) -> None:
        self.card, self.model, self.lock = card, model, Lock()

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The mode is how the text is read; the marks it is given are the checkpoint's."""
        return Rendered(item.parts, "query" if role == "query" else "document")

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[str, str]:
        """The text and its mode; the tokeniser belongs to the model, and is fast."""
        return " ".join(content.value for content in contents), mode

    @without_gradients
    def embed(self, batch: Sequence[tuple[str, str]]) -> list[Array]:
        """Queries in one pass, documents in another."""
        out: dict[int, Array] = {}
        for mode, encode in (("query", self.model.encode_query), ("document", self.model.encode_document)):
            rows = [row for row, (_, given) in enumerate(batch) if given == mode]
            if rows:
                found = encode([batch[row][0] for row in rows], batch_size=len(rows), show_progress_bar=False)
                out |= zip(rows, map(to_numpy, found), strict=True)
        return [out[row] for row in range(len(batch))]


def _stacked(tensors: Sequence[Any], value: int) -> Any:
    """One below the other, filled up along the second axis: tokens, or the patches of a page."""
    import torch

    longest = max(tensor.shape[1] for tensor in tensors)
    shapes = [(*(0, 0) * (tensor.ndim - 2), 0, longest - tensor.shape[1]) for tensor in tensors]
    return torch.cat(
        [torch.nn.functional.pad(tensor, shape, value=value) for tensor, shape in zip(tensors, shapes, strict=True)]
    )
