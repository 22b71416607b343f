"""Text embedders: all that sentence-transformers can load, and plain transformers with a pooling of our own."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embark.catalogue import group_values
from embark.models.checkpoints import PICKLED, Checkpoint, fetch_checkpoint, read_json
from embark.models.device import POOLING, pad, release_weights, to_device, to_numpy, without_gradients
from embark.models.encoder import Capabilities, Encoder, embed_in_groups, require_tokens
from embark.models.hf import Tokenizer, check_vocabulary, load_model, quiet
from embark.models.loading import Loading, loaded_card, record_loading, with_dim
from embark.models.prompts import Prompted, Prompts, join_texts, split_prompt
from embark.models.text_length import CARD, TextLength, text_length
from embark.types import MODALITIES, Array, Content, EmbarkError, Item, Modality, ModelCard, Rendered

# ── sentence-transformers ────────────────────────────────────────────────────────────────────────────────────────────

ROUTERS = (".Router", ".Asym")  # modules that choose between others; the second is the older name


def load_sentence_transformer(card: ModelCard, loading: Loading) -> Encoder:
    """A checkpoint with modules.json. Its own prompts are used, unless the card's options have others.

    Options: `prompts`, `template` (see `Prompts`), `tokens` (the longest text) and `tokenizer` (arguments for it).
    """
    import torch
    from sentence_transformers import SentenceTransformer

    checkpoint = fetch_checkpoint(card, loading)
    check_code(checkpoint)
    options = checkpoint.card.options
    model = load_modules(
        SentenceTransformer,
        checkpoint,
        loading,
        {"dtype": getattr(torch, checkpoint.card.dtype)},
        processor_kwargs=dict(options.get("tokenizer", {})),
    )
    length = _cut_texts(model, checkpoint)
    libraries = ("torch", "transformers", "sentence-transformers")
    encoder = SentenceEncoder(record_loading(checkpoint.card, loading, libraries, **length.record), model)
    release_weights(model, loading)
    return encoder


def _cut_texts(model: Any, checkpoint: Checkpoint) -> TextLength:
    """Cut the model's texts at `text_length`; first modules of other kinds (static vectors, routers) have limits of
    their own, unless the card states one.
    """
    options = checkpoint.card.options
    stated = options.get("tokens") or options.get("tokenizer", {}).get("model_max_length")
    first = json.loads((checkpoint.folder / "modules.json").read_text())[0]
    if first["type"].startswith("sentence_transformers.") and first["type"].endswith(".Transformer"):
        length = text_length(checkpoint.folder / first["path"], model[0].config.to_dict(), stated)
    else:
        length = TextLength(stated, CARD if stated else "")
    if length.tokens:
        model.max_seq_length = length.tokens
    return length


def load_modules(
    kind: Any, checkpoint: Checkpoint, loading: Loading, model_options: Mapping[str, Any], **options: Any
) -> Any:
    """A model of a class of sentence-transformers, on its device; weights that are missing are an error."""
    checkpoint.weight_files(_module_folders(checkpoint))  # raises unless pickles are trusted
    with _require_all_weights(checkpoint):
        model = kind(
            str(checkpoint.folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=checkpoint.trusted,
            model_kwargs={**model_options, **({} if checkpoint.trusted else {"use_safetensors": True})},
            **options,
        )
    check_vocabulary(checkpoint, model.tokenizer)
    return to_device(model, checkpoint.card, loading)


class SentenceEncoder(Prompted):
    """A SentenceTransformer as an encoder; modalities, similarity and dimension on the card are the model's."""

    def __init__(self, card: ModelCard, model: Any) -> None:
        self.model = model
        self.prompts = Prompts.from_options(card.options, role_prompts(model))
        kinds = tuple(kind for kind in MODALITIES if kind in model.modalities) or ("text",)
        native = len(kinds) > 1 and "message" in model.modalities
        self.plain = kinds == ("text",)
        # Separate modules for queries and documents: a role then decides more than the prompt.
        self.routed = any(type(module).__name__ == "Router" for module in model)
        card = replace(card, modalities=kinds, similarity=_similarity(card, model), fusion="native" if native else None)
        self.card = with_dim(card, self._dimension(kinds))

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The prompt, then the item; the mode names the route where the model has several."""
        rendered = super().render(item, role, instruction)
        if not self.routed:
            return rendered
        route = role if role in ("query", "document") else "document"
        return replace(rendered, mode=f"{route} {rendered.mode}".strip())

    def prepare(self, contents: Sequence[Content], mode: str) -> _Input:
        """The item with its prompt and route; the library itself prepares whole batches."""
        prompt, own = split_prompt(contents, mode)
        route = (mode or "document").split()[0] if self.routed else None
        if self.plain:
            return _Input(prompt, route, ("text",), join_texts(own))
        # Named by kind, because the library would take a text that looks like an address for an image to fetch.
        values = group_values((content.kind, library_value(content)) for content in own)
        by_kind = {kind: parts[0] if len(parts) == 1 else parts for kind, parts in values.items()}
        return _Input(prompt, route, tuple(sorted(by_kind)), by_kind)

    def embed(self, batch: Sequence[_Input]) -> Array:
        """One pass for each prompt and kind of item in the batch."""
        return np.stack(embed_in_groups(batch, lambda item: item[:3], self._pass))

    def _pass(self, group: tuple[str, str | None, tuple[Modality, ...]], batch: Sequence[_Input]) -> Array:
        prompt, route, _ = group
        vectors = self.model.encode(
            [item.value for item in batch],
            prompt=prompt,  # an empty one, too: without one the library would add its default
            batch_size=len(batch),
            convert_to_tensor=True,
            show_progress_bar=False,
            **({"task": route} if route else {}),
        )
        return to_numpy(vectors)

    def _dimension(self, kinds: tuple[Modality, ...]) -> int | None:
        """The dimension of a vector: that in a checkpoint's files is not always right."""
        if "text" not in kinds:
            size = self.model.get_embedding_dimension()
            return None if size is None else int(size)
        return int(self.embed([_Input("", "document" if self.routed else None, ("text",), "a")]).shape[1])


class _Input(NamedTuple):
    """An item for the library; those with equal first three fields can share a pass."""

    prompt: str
    route: str | None
    kinds: tuple[Modality, ...]
    value: Any


def library_value(content: Content) -> Any:
    """A text, an image or a sound as sentence-transformers and mteb take it."""
    if content.kind == "audio":
        return {"array": content.value.samples, "sampling_rate": content.value.rate}
    return content.value.convert("RGB") if content.kind == "image" else content.value


def role_prompts(model: Any) -> dict[str, str]:
    """By role, as the library's own `encode_query` and `encode_document` choose them."""
    names = {"query": "query", "document": "document", "": model.default_prompt_name}
    return {role: model.prompts.get(name) or "" for role, name in names.items()}


def _similarity(card: ModelCard, model: Any) -> Any:
    similarity = str(getattr(model, "_similarity_fn_name", None) or card.similarity)
    if similarity not in ("cosine", "dot"):
        raise EmbarkError(f"{card.name} compares vectors by {similarity} distance; embark has cosine and dot.")
    return similarity


def check_code(checkpoint: Checkpoint) -> None:
    """Raise an error if the checkpoint needs its own code and is not trusted: the library might use other code."""
    path = checkpoint.folder / "modules.json"
    if not path.is_file():
        raise EmbarkError(
            f"{checkpoint.name} has no modules.json, so it is no sentence-transformers checkpoint; "
            f"a plain transformers model is text:{checkpoint.card.source}"
        )
    foreign = [m["type"] for m in json.loads(path.read_text()) if not m["type"].startswith("sentence_transformers.")]
    if foreign or "AutoModel" in checkpoint.config.get("auto_map", {}):
        checkpoint.require_trust(f"its own code would run ({', '.join(foreign) or 'a model class of its own'})")


def _module_folders(checkpoint: Checkpoint) -> list[str]:
    """The sub-folders of a checkpoint's modules, including those that a router chooses between."""
    listed = checkpoint.folder / "modules.json"
    folders = []
    for module in json.loads(listed.read_text()) if listed.is_file() else [{"path": "", "type": ""}]:
        folder = module["path"]
        folders.append(folder)
        if module["type"].endswith(ROUTERS):
            files = [checkpoint.folder / folder / name for name in ("router_config.json", "config.json")]
            routes = next((read_json(path)["types"] for path in files if path.is_file()), ())
            folders += [str(Path(folder, name)) for name in routes]
    return folders


@contextmanager
def _require_all_weights(checkpoint: Checkpoint) -> Iterator[None]:
    """A block that raises an error if weights are missing: the library only logs it and uses random numbers."""
    logger = logging.getLogger("transformers.modeling_utils")
    listener = BufferingHandler(capacity=1 << 20)
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.WARNING))
    logger.propagate = False  # missing weights are an error below
    try:
        with quiet():
            yield
    except (OSError, ValueError) as error:
        if "model.safetensors" in str(error) and not checkpoint.complete:  # there are pickles, not fetched
            checkpoint.require_trust(PICKLED)
        raise
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = True
    messages = "\n".join(record.getMessage() for record in listener.buffer)
    missing = re.findall(r"^(\S+)\s*\|\s*MISSING", messages, flags=re.M)
    if needed := [key for key in missing if "pooler" not in key]:  # BERT's pooler is not used
        raise EmbarkError(
            f"{checkpoint.name} lacks {len(needed)} weights, the first is {needed[0]}; is the checkpoint complete?"
        )


# ── plain transformers ───────────────────────────────────────────────────────────────────────────────────────────────

WITH_POOLER = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")  # model types with a layer that is left out here
ALSO_ENCODERS = ("bert-generation", "xlnet")  # model types that transformers lists with decoders alone


def load(card: ModelCard, loading: Loading) -> Encoder:
    """A transformer whose token states are pooled.

    Options: `pooling` (last, first, mean; without it, last for causal models and mean for others), `pool_prompt`
    (False leaves the prompt's tokens out), `causal` (False lets a decoder see both ways), `normalise`, `tokens`,
    `tokenizer`, `prompts` and `template`.
    """
    from transformers import AutoConfig, AutoModel

    checkpoint = fetch_checkpoint(card, loading)
    options = checkpoint.card.options
    if "causal" in options:  # the card states what the checkpoint's own code does, so that it is not needed
        checkpoint = replace(checkpoint, trusted=False)
    elif "AutoModel" in checkpoint.config.get("auto_map", {}):
        checkpoint.require_trust("its own code would run (a model class of its own)")
    config = AutoConfig.from_pretrained(checkpoint.folder, local_files_only=True, trust_remote_code=checkpoint.trusted)
    if "causal" in options:
        config.is_causal = options["causal"]
    more: dict[str, Any] = {"add_pooling_layer": False} if config.model_type in WITH_POOLER else {}
    model = load_model(AutoModel, checkpoint, loading, config=config, **more)
    tokenizer = Tokenizer(checkpoint, options.get("tokens"), **options.get("tokenizer", {}))
    ready = loaded_card(
        checkpoint.card, loading, int(config.hidden_size), ("text",), record=tokenizer.length.record,
        options={"pooling": _pooling(config), **options},
    )  # fmt: skip
    return TextEncoder(ready, model, tokenizer, Prompts.from_options(options))


@dataclass(eq=False)
class TextEncoder(Prompted):
    """A transformer, its tokeniser, and a pooling over the states of its last layer."""

    card: ModelCard
    model: Any
    tokenizer: Tokenizer
    prompts: Prompts

    def __post_init__(self) -> None:
        self.capabilities = Capabilities(prepare_many=self._tokens)

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[list[int], int]:
        """(tokens, the number of tokens at the beginning that are not pooled)."""
        return self._tokens([contents], [mode])[0]

    def _tokens(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> list[tuple[list[int], int]]:
        """As `prepare` for each item; all are tokenised together."""
        items = [split_prompt(contents, mode) for contents, mode in zip(batch, modes, strict=True)]
        rows = self.tokenizer.many([prompt + join_texts(own) for prompt, own in items])
        prompts = {prompt for prompt, _ in items if prompt and not self.card.options.get("pool_prompt", True)}
        unpooled = {prompt: self.tokenizer(prompt) for prompt in prompts}
        return [
            (require_tokens(tokens), _shared(unpooled.get(prompt, ()), tokens))
            for (prompt, _), tokens in zip(items, rows, strict=True)
        ]

    @without_gradients
    def embed(self, batch: Sequence[tuple[list[int], int]]) -> Array:
        """One pass; padding is on the right, where it changes no state before it."""
        import torch

        ids, mask = pad([tokens for tokens, _ in batch], self.tokenizer.padding, "right", self.model.device)
        # Stated again: attention layers assume a causal model where no row is padded and the mask is left out.
        causal = {} if self.card.options.get("causal", True) else {"is_causal": False}
        hidden = self.model(input_ids=ids, attention_mask=mask, **causal).last_hidden_state
        if any(skipped for _, skipped in batch):
            first = torch.tensor([skipped for _, skipped in batch], device=mask.device)[:, None]
            mask = mask * (torch.arange(mask.shape[1], device=mask.device) >= first)
        vectors = POOLING[self.card.options["pooling"]](hidden, mask)
        if self.card.options.get("normalise"):
            vectors = torch.nn.functional.normalize(vectors.float(), dim=-1)
        return to_numpy(vectors)


def _shared(prompt: Sequence[int], tokens: Sequence[int]) -> int:
    """The number of tokens at the beginning that are the prompt's; a text that was cut off altogether leaves one."""
    pairs = enumerate(zip(prompt, tokens, strict=False))
    shared = next((position for position, (a, b) in pairs if a != b), len(prompt))
    return min(shared, len(tokens) - 1)


def _pooling(config: Any) -> str:
    """The default pooling: "last" for causal models, "mean" for others.

    The type decides, as a decoder that was saved without its head has another name.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    if type(config) in MODEL_FOR_MASKED_LM_MAPPING or config.model_type in ALSO_ENCODERS:
        causal = getattr(config, "is_decoder", False)
    else:
        named = any(name.endswith("ForCausalLM") for name in config.architectures or ())  # by the checkpoint's own code
        causal = (named or type(config) in MODEL_FOR_CAUSAL_LM_MAPPING) and not config.is_encoder_decoder
    bidirectional = getattr(config, "use_bidirectional_attention", None) in (True, "all")  # Gemma's name for it
    return "last" if causal and getattr(config, "is_causal", True) and not bidirectional else "mean"
