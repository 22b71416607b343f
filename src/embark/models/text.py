"""Text embedders: whatever sentence-transformers can load, and plain transformers with a pooling of our own."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embark.models.device import POOLING, pad, settle, to_numpy, without_gradients
from embark.models.encoder import Encoder, some
from embark.models.hf import Tokenizer, check_vocabulary, quiet, weights
from embark.models.hub import PICKLED, Checkpoint, checkpoint, described
from embark.models.loading import Loading, put_to_work, with_dim
from embark.models.prompts import Prompted, Prompts, joined, split
from embark.types import MODALITIES, Array, Content, EmbarkError, Item, Modality, ModelCard, Rendered

# ── sentence-transformers ────────────────────────────────────────────────────────────────────────────────────────────

ROUTERS = (".Router", ".Asym")  # modules that are made of others; the second is the older name


def load_sentence_transformer(card: ModelCard, loading: Loading) -> Encoder:
    """A checkpoint with modules.json. Its own prompts hold, unless the card's options have others.

    Settings: `prompts`, `template` (see `Prompts`), `tokens` (the longest text) and `tokenizer` (arguments for it).
    """
    import torch
    from sentence_transformers import SentenceTransformer

    found = checkpoint(card, loading)
    _needs_no_code(found)
    found.weights(modules(found))  # consent, where they are pickles
    options = found.card.options
    with nothing_missing(found):
        model = SentenceTransformer(
            str(found.folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=found.trusted,
            model_kwargs={
                "dtype": getattr(torch, found.card.dtype),
                **({} if found.trusted else {"use_safetensors": True}),
            },
            processor_kwargs=dict(options.get("tokenizer", {})),
        )
    check_vocabulary(found, model.tokenizer)
    if "tokens" in options:
        model.max_seq_length = options["tokens"]
    model = settle(model, found.card, loading)
    return SentenceEncoder(put_to_work(found.card, loading, ("torch", "transformers", "sentence-transformers")), model)


class SentenceEncoder(Prompted):
    """A SentenceTransformer behind our protocol; the card is completed with what the model knows about itself."""

    def __init__(self, card: ModelCard, model: Any) -> None:
        self.model = model
        self.prompts = Prompts.of(card.options, _prompts(model))
        kinds = tuple(kind for kind in MODALITIES if kind in model.modalities) or ("text",)
        native = len(kinds) > 1 and "message" in model.modalities
        self.plain = kinds == ("text",)
        # Modules for queries and documents apart: a role is then more than its prompt.
        self.routed = any(type(module).__name__ == "Router" for module in model)
        card = replace(card, modalities=kinds, similarity=_similarity(card, model), fusion="native" if native else None)
        self.card = with_dim(card, self._probe(kinds))

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The prompt, then the item; the mode names the route where the model has several."""
        rendered = super().render(item, role, instruction)
        if not self.routed:
            return rendered
        route = role if role in ("query", "document") else "document"
        return replace(rendered, mode=f"{route} {rendered.mode}".strip())

    def prepare(self, contents: Sequence[Content], mode: str) -> _Input:
        """The library prepares whole batches; here it is only said how."""
        prompt, own = split(contents, mode)
        route = (mode or "document").split()[0] if self.routed else None
        if self.plain:
            return _Input(prompt, route, ("text",), joined(own))
        # Named by kind, because a text that looks like an address would be taken for a picture to fetch.
        values: dict[Modality, list[Any]] = {}
        for content in own:
            values.setdefault(content.kind, []).append(_value(content))
        whole = {kind: found[0] if len(found) == 1 else found for kind, found in values.items()}
        return _Input(prompt, route, tuple(sorted(whole)), whole)

    def embed(self, batch: Sequence[_Input]) -> Array:
        """One pass for each prompt and kind of item in the batch."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row, item in enumerate(batch):
            groups.setdefault(item[:3], []).append(row)
        out: Array | None = None
        for (prompt, route, _), rows in groups.items():
            values = [batch[row].value for row in rows]
            how = {"task": route} if route else {}
            # An empty prompt is one too: without it the library would add its default.
            vectors = to_numpy(
                self.model.encode(
                    values, prompt=prompt, batch_size=len(rows), convert_to_tensor=True, show_progress_bar=False, **how
                )
            )
            out = np.empty((len(batch), vectors.shape[1]), np.float32) if out is None else out
            out[rows] = vectors
        assert out is not None  # a batch is never empty
        return out

    def _probe(self, kinds: tuple[Modality, ...]) -> int | None:
        """The dimension as it comes out: what a checkpoint's files say of it is not always so."""
        if "text" not in kinds:
            size = self.model.get_embedding_dimension()
            return None if size is None else int(size)
        return int(self.embed([_Input("", "document" if self.routed else None, ("text",), "a")]).shape[1])


class _Input(NamedTuple):
    """One item for the library, with what decides the pass that it can share."""

    prompt: str
    route: str | None
    kinds: tuple[Modality, ...]
    value: Any


def _value(content: Content) -> Any:
    if content.kind == "audio":
        return {"array": content.value.samples, "sampling_rate": content.value.rate}
    return content.value.convert("RGB") if content.kind == "image" else content.value


def _prompts(model: Any) -> dict[str, str]:
    """By role, as the library's own `encode_query` and `encode_document` choose them."""
    named = model.prompts
    found = {role: named.get(role) or "" for role in ("query", "document")}
    return {**found, "": named.get(model.default_prompt_name) or ""}


def _similarity(card: ModelCard, model: Any) -> Any:
    said = str(getattr(model, "_similarity_fn_name", None) or card.similarity)
    if said not in ("cosine", "dot"):
        raise EmbarkError(f"{card.name} compares vectors by {said} distance; embark has cosine and dot.")
    return said


def _needs_no_code(found: Checkpoint) -> None:
    """Consent to code that the checkpoint brings along; without it the library might quietly use code of its own."""
    path = found.folder / "modules.json"
    if not path.is_file():
        raise EmbarkError(
            f"{found.card.name} has no modules.json, so it is no sentence-transformers checkpoint; "
            f"a plain transformers model is text:{found.card.source}"
        )
    foreign = [m["type"] for m in json.loads(path.read_text()) if not m["type"].startswith("sentence_transformers.")]
    if foreign or "AutoModel" in found.config.get("auto_map", {}):
        found.consent(f"its own code would run ({', '.join(foreign) or 'a model class of its own'})")


def modules(found: Checkpoint) -> list[str]:
    """The folders of its modules, those between which a router chooses among them."""
    listed, out = found.folder / "modules.json", []
    for module in json.loads(listed.read_text()) if listed.is_file() else [{"path": "", "type": ""}]:
        part = module["path"]
        out.append(part)
        if module["type"].endswith(ROUTERS):
            files = [found.folder / part / name for name in ("router_config.json", "config.json")]
            routes = next((described(path)["types"] for path in files if path.is_file()), ())
            out += [str(Path(part, name)) for name in routes]
    return out


@contextmanager
def nothing_missing(found: Checkpoint) -> Iterator[None]:
    """An error where weights are missing: the library only logs it and goes on with random numbers."""
    told: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    logger, listener = logging.getLogger("transformers.modeling_utils"), Listener(logging.WARNING)
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.WARNING))
    logger.propagate = False  # what matters in it is said below
    try:
        with quiet():
            yield
    except (OSError, ValueError) as error:
        if "model.safetensors" in str(error) and not found.whole:  # then there are pickles, which were not fetched
            found.consent(PICKLED)
        raise
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = True
    missing = [key for text in told for key in re.findall(r"^(\S+)\s*\|\s*MISSING", text, flags=re.M)]
    if lacking := [key for key in missing if "pooler" not in key]:  # nobody asks BERT's pooler
        raise EmbarkError(
            f"{found.card.name} lacks {len(lacking)} weights, the first is {lacking[0]}; is the checkpoint complete?"
        )


# ── plain transformers ───────────────────────────────────────────────────────────────────────────────────────────────

POOLER = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")  # model types with a layer that is left out here
BOTH = ("bert-generation", "xlnet")  # encoders, too, though transformers lists them with decoders alone


def load(card: ModelCard, loading: Loading) -> Encoder:
    """A transformer whose token states are pooled.

    Settings: `pooling` (last, first, mean; without it, last for causal models and mean for others), `pool_prompt`
    (False leaves the prompt's tokens out), `causal` (False lets a decoder see both ways), `normalise`, `tokens`,
    `tokenizer`, `prompts` and `template`.
    """
    from transformers import AutoConfig, AutoModel

    found = checkpoint(card, loading)
    options = found.card.options
    if "causal" in options:  # then the card knows what the checkpoint's own code does, and that is not needed
        found = replace(found, trusted=False)
    elif "AutoModel" in found.config.get("auto_map", {}):
        found.consent("its own code would run (a model class of its own)")
    config = AutoConfig.from_pretrained(found.folder, local_files_only=True, trust_remote_code=found.trusted)
    if "causal" in options:
        config.is_causal = options["causal"]
    more: dict[str, Any] = {"add_pooling_layer": False} if config.model_type in POOLER else {}
    model = weights(AutoModel, found, loading, config=config, **more)
    tokenizer = Tokenizer(found, options.get("tokens"), **options.get("tokenizer", {}))
    card = replace(found.card, modalities=("text",), options={"pooling": _pooling(config), **options})
    dim = int(config.hidden_size)
    return TextEncoder(put_to_work(with_dim(card, dim), loading, ("torch", "transformers")), model, tokenizer)


class TextEncoder(Prompted):
    """A transformer, its tokeniser, and a pooling over the states of its last layer."""

    def __init__(self, card: ModelCard, model: Any, tokenizer: Tokenizer) -> None:
        self.card, self.model, self.tokenizer = card, model, tokenizer
        self.prompts = Prompts.of(card.options)
        self.pool = POOLING[card.options["pooling"]]

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[list[int], int]:
        """(tokens, how many of them at the beginning are not pooled)."""
        prompt, own = split(contents, mode)
        tokens = some(self.tokenizer(prompt + joined(own)))
        if not prompt or self.card.options.get("pool_prompt", True):
            return tokens, 0
        alone = self.tokenizer(prompt)
        shared = next((at for at, (a, b) in enumerate(zip(alone, tokens, strict=False)) if a != b), len(alone))
        return tokens, min(shared, len(tokens) - 1)  # a text that was cut off altogether leaves one token to pool

    @without_gradients
    def embed(self, batch: Sequence[tuple[list[int], int]]) -> Array:
        """Tokens padded on the right, where they change no state before them."""
        import torch

        ids, mask = pad([tokens for tokens, _ in batch], self.tokenizer.padding, "right", self.model.device)
        # Said again: attention layers take themselves for causal where no row is padded and the mask is left out.
        how = {} if self.card.options.get("causal", True) else {"is_causal": False}
        hidden = self.model(input_ids=ids, attention_mask=mask, **how).last_hidden_state
        for row, (_, skipped) in enumerate(batch):
            mask[row, :skipped] = 0
        vectors = self.pool(hidden, mask)
        if self.card.options.get("normalise"):
            vectors = torch.nn.functional.normalize(vectors.float(), dim=-1)
        return to_numpy(vectors)


def _pooling(config: Any) -> str:
    """By the kind of model, for a decoder that was saved without its head has no name that tells."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    if type(config) in MODEL_FOR_MASKED_LM_MAPPING or config.model_type in BOTH:
        causal = getattr(config, "is_decoder", False)
    else:
        named = any(name.endswith("ForCausalLM") for name in config.architectures or ())  # by the checkpoint's own code
        causal = (named or type(config) in MODEL_FOR_CAUSAL_LM_MAPPING) and not config.is_encoder_decoder
    freed = getattr(config, "use_bidirectional_attention", None) in (True, "all")  # Gemma's way to say it
    return "last" if causal and getattr(config, "is_causal", True) and not freed else "mean"
