"""Objects of sentence-transformers, open_clip and mteb as encoders."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from embark.models.encoder import Encoder, Towers, embed_in_groups
from embark.models.functions import with_revision
from embark.models.half_precision import secure
from embark.models.open_clip import build_towers
from embark.models.pixels import with_unibench_pixels
from embark.models.text import library_value
from embark.types import MODALITIES, Array, Content, EmbarkError, Item, ModelCard, Rendered

UNKNOWN = ("no_model_name/available", "no_revision_available")  # mteb's values for an unknown name and revision
TASK_TYPES = {"train": "Classification", "test": "Classification", "left": "STS", "right": "STS"}  # mteb's, by role


def from_sentence_transformers(
    model: Any, *, name: str = "", revision: str | None = None, **card_fields: Any
) -> Encoder:
    """A SentenceTransformer (or the name or folder of one) as an encoder, with the prompts that it has.

    Without a `revision`, a hash of its vectors of fixed inputs is the revision. Further keywords go to the `ModelCard`.
    """
    if isinstance(model, str):
        from embark.models import MODELS, get_model

        if name or card_fields:
            raise EmbarkError(f"{model} is loaded by its name and has a card: name and card fields go with an object.")
        return get_model(model if model in MODELS else f"sentence-transformers:{model}", revision)
    from embark.models.text import SentenceEncoder

    # Part of the card, because the long text of the probe may be shorter than this limit.
    options = {"tokens": model.max_seq_length, **card_fields.pop("options", {})}
    facts = {"dtype": _dtype(model), "options": options, "loaded": _secure_weights(model), **card_fields}
    card = ModelCard(name or "local/sentence-transformer", revision or "", "sentence-transformers", (), **facts)
    return with_revision(SentenceEncoder(card, model.eval()), revision)


def from_open_clip(
    model: Any,
    preprocess: Any,
    tokenizer: Any,
    *,
    name: str = "local/open_clip",
    revision: str | None = None,
    fusion: Literal["sum", "unit-sum"] | None = "unit-sum",
    **card_fields: Any,
) -> Encoder:
    """What `open_clip.create_model_and_transforms` and `open_clip.get_tokenizer` return, as an encoder.

    `preprocess` is the transform for inference (the last of the three). Keywords as for `from_sentence_transformers`.
    """
    facts = {"fusion": fusion, "dtype": _dtype(model), "loaded": _secure_weights(model), **card_fields}
    card = ModelCard(name, revision or "", "open_clip", ("text", "image", "video"), **facts)
    card = with_unibench_pixels(card, preprocess)
    towers = build_towers(model.eval(), tokenizer, lambda image: preprocess(image.convert("RGB")), card)
    return with_revision(Towers(card, towers), revision)


def from_mteb(model: Any, *, name: str = "", revision: str | None = None, **card_fields: Any) -> Encoder:
    """A model of mteb's encoder protocol (2.x); its `mteb_model_meta` has name, revision, modalities and dimension.

    Unless the meta has use_instructions=False, the model gets roles, and an instruction as the task's prompt.
    """
    meta = model.mteb_model_meta
    known = {meta.name, meta.revision} - {None, *UNKNOWN}
    card = ModelCard(
        name or (meta.name if meta.name in known else "local/mteb"),
        revision or (meta.revision if meta.revision in known else ""),
        "mteb",
        tuple(kind for kind in MODALITIES if kind in (meta.modalities or ["text"])),
        dim=meta.embed_dim if isinstance(meta.embed_dim, int) else None,
        similarity=_similarity(meta),
        fusion="native" if len(meta.modalities or ()) > 1 else None,
        instructed=meta.use_instructions is not False,
        loaded=_secure_weights(model),
        **card_fields,
    )
    return with_revision(MtebEncoder(card, model), card.revision or None)


@dataclass(eq=False)
class MtebEncoder(Encoder):
    """A model of mteb as an encoder: each batch becomes a data loader, as mteb's own tasks make them."""

    card: ModelCard
    model: Any

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The item; for a model with instructions, the mode is its role and the instruction."""
        return Rendered(item.parts, f"{role}\n{instruction or ''}" if self.card.instructed else "")

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[str, dict[str, Any]]:
        """(mode, a row of mteb's data)."""
        row: dict[str, Any] = {}
        for content in contents:
            value = _value(content)
            if content.kind == "text" and "text" in row:
                value = f"{row['text']} {value}"
            elif content.kind in row:
                raise EmbarkError(
                    f"{self.card.name} takes one {content.kind} an item in mteb's data; here are several."
                )
            row[content.kind] = value
        return mode, row

    def embed(self, batch: Sequence[tuple[str, dict[str, Any]]]) -> Array:
        """One call for each mode and kind of row in the batch."""
        return np.stack(embed_in_groups(batch, lambda prepared: (prepared[0], *sorted(prepared[1])), self._pass))

    def _pass(self, group: tuple[str, ...], batch: Sequence[tuple[str, dict[str, Any]]]) -> Array:
        from torch.utils.data import DataLoader

        mode, *kinds = group
        rows = [dict(row) for _, row in batch]
        role, _, instruction = mode.partition("\n")
        side = role if role in ("query", "document") else None
        for row in rows:  # mteb has a second column for the text of a query and of a document
            if side and "text" in row:
                row["query" if side == "query" else "body"] = row["text"]
        task = _task(TASK_TYPES.get(role, "Retrieval"), kinds, {side or "query": instruction} if instruction else None)
        out = self.model.encode(
            DataLoader(_Rows(rows), batch_size=len(rows), collate_fn=_collate),
            task_metadata=task, hf_split="test", hf_subset="default", prompt_type=_prompt_type(side),
            batch_size=len(rows), show_progress_bar=False,
        )  # fmt: skip
        vectors = np.asarray(out.detach().float().cpu() if hasattr(out, "detach") else out, np.float32)
        if vectors.ndim != 2 or len(vectors) != len(rows):
            raise EmbarkError(f"{self.card.name} returned {vectors.shape} for {len(rows)} items.")
        return vectors


class PromptType(StrEnum):
    """A copy of mteb's, for models that implement its protocol where it is not installed."""

    query = "query"
    document = "document"


class _Rows(list[dict[str, Any]]):
    """A data set for mteb's wrappers: rows, and `features` that name the columns."""

    @property
    def features(self) -> dict[str, Any]:
        return dict.fromkeys(self[0])


def _collate(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {column: [row[column] for row in rows] for column in rows[0]}


def _prompt_type(side: str | None) -> Any:
    if side is None:
        return None
    try:
        from mteb.types import PromptType as prompt_type
    except ImportError:
        prompt_type = PromptType
    return prompt_type(side)


def _task(kind: str, kinds: list[str], prompt: Mapping[str, str] | None) -> Any:
    """The fields of a task that models read; mteb's own class where it is installed, for its methods."""
    facts: dict[str, Any] = {
        "name": "embark", "description": "", "type": kind, "prompt": prompt, "modalities": kinds,
        "category": None, "eval_splits": ["test"], "eval_langs": ["eng-Latn"], "main_score": "main_score",
        "dataset": {"path": "embark", "revision": "1"}, "task_subtypes": [], "domains": [],
    }  # fmt: skip
    try:
        from mteb.abstasks.task_metadata import TaskMetadata
    except ImportError:
        return SimpleNamespace(**facts, languages=["eng"])
    return TaskMetadata.model_construct(**facts)


def _value(content: Content) -> Any:
    if content.kind != "video":
        return library_value(content)
    import torch

    frames = np.stack([np.asarray(frame.convert("RGB")) for frame in content.value])
    return torch.from_numpy(frames).permute(0, 3, 1, 2)


def _similarity(meta: Any) -> Any:
    name = str(getattr(meta.similarity_fn_name, "value", meta.similarity_fn_name) or "cosine").lower()
    if name not in ("cosine", "dot"):
        raise EmbarkError(f"{meta.name} compares vectors by {name}; embark has cosine and dot for models of mteb.")
    return name


def _dtype(model: Any) -> str:
    weight = next(model.parameters(), None)
    return "float32" if weight is None else str(weight.dtype).removeprefix("torch.")


def _secure_weights(model: Any) -> dict[str, str]:
    """Make half precision safe for the torch weights of an object, or of its parts; returns what the card records."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    parts = (model, *getattr(model, "__dict__", {}).values())
    modules = [part for part in parts if isinstance(part, torch.nn.Module)]
    kinds = {(weight.dtype, weight.device.type) for module in modules for weight in module.parameters()}
    records = (secure(str(dtype).removeprefix("torch."), device) for dtype, device in kinds)
    return {name: value for record in records for name, value in record.items()}
