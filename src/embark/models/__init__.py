"""Models by name: cards say what there is, loaders build it when it is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from embark import plugins
from embark.catalogue import Catalogue, UnknownName
from embark.models.cards import CARDS
from embark.models.encoder import Encoder, Generator, Reranker
from embark.models.functions import encoder, generator, reranker
from embark.models.loading import Loader, Loading
from embark.settings import Settings
from embark.types import EmbarkError, ModelCard

__all__ = [
    "LOADERS",
    "MODELS",
    "Encoder",
    "Generator",
    "Loading",
    "Reranker",
    "encoder",
    "find_card",
    "generator",
    "get_generator",
    "get_model",
    "get_reranker",
    "loaders",
    "reranker",
]

MODELS: Catalogue[ModelCard] = Catalogue(
    "model",
    lambda: plugins.after(CARDS, "cards", lambda card: card.name),
    lambda card: card.name,
    hint="Others are named by a folder with their checkpoint, or as LOADER:ID-OR-FOLDER (see: embark models --help).",
)

KINDS = {"embedder": "an embedding model", "reranker": "a re-ranker", "generator": "a generator"}
ON_TORCH = ("torch", "open_clip", "timm")  # extras whose models can stand on several devices

# Imported at use: most of them need libraries that not everybody has.
LOADERS: dict[str, Loader] = {
    "pocket": Loader("embark.models.pocket:load"),
    "handmade": Loader("embark.models.baselines:load_handmade"),
    "random": Loader("embark.models.baselines:load_random"),
    **dict.fromkeys(
        ("openai", "voyage", "voyage-multimodal", "cohere", "doubao"), Loader("embark.models.api:load", type="api")
    ),
    "sentence-transformers": Loader("embark.models.text:load_sentence_transformer", "torch"),
    "text": Loader("embark.models.text:load", "torch", version=2),  # plain transformers, token states pooled
    "onnx": Loader("embark.models.onnx:load", "onnx"),
    "dual": Loader("embark.models.dual:load", "torch"),  # CLIP, SigLIP, ALIGN… of transformers
    "blip": Loader("embark.models.blip:load", "torch"),
    "blip2": Loader("embark.models.blip:load_blip2", "torch"),
    "jina": Loader("embark.models.jina:load", "torch"),  # by the checkpoint's own code
    "nomic": Loader("embark.models.nomic:load", "torch", version=2),
    "vista": Loader("embark.models.vista:load", "torch", version=2),
    "open_clip": Loader("embark.models.open_clip:load", "open_clip"),
    "dino": Loader("embark.models.vision:load_dino", "torch"),
    "timm": Loader("embark.models.vision:load_timm", "timm", version=2),
    "late": Loader("embark.models.late:load", "torch", type="late"),  # ColPali, ColQwen2
    "colbert": Loader("embark.models.late:load_colbert", "torch", type="late"),
    "cross-encoder": Loader("embark.models.rerank:load", "torch", "reranker", version=2),
    "yes-no": Loader("embark.models.rerank:load_yes_no", "torch", "reranker"),
    "jina-reranker": Loader("embark.models.rerank:load_jina", "torch", "reranker", version=2),
    "chat": Loader("embark.models.generate:load", "torch", "generator"),
    "blip-caption": Loader("embark.models.generate:load_blip", "torch", "generator"),
    "mllm": Loader("embark.models.mllm:load", "torch", type="mllm"),  # LLaVA-NeXT, Qwen2-VL, Qwen2.5-VL, Qwen3-VL
    "phi": Loader("embark.models.phi:load", "torch", version=2, type="mllm"),  # Phi-3.5-vision
    "omni": Loader("embark.models.omni:load", "torch", version=2, type="mllm"),  # Qwen2.5-Omni
}


def get_model(
    name: str | ModelCard,
    revision: str | None = None,
    *,
    device: str = "auto",
    dtype: str | None = None,
    compile: bool = False,
    trust: str | None = None,
    settings: Settings | None = None,
) -> Encoder:
    """The encoder of that name, ready to embed. A name is a card's, a checkpoint folder's, or LOADER:SOURCE.

    A card of your own says what a checkpoint does not: prompts, pooling, and what else its loader reads.

    The keywords are those of `Loading`: where it runs, in which precision, and the revision whose code you trust.
    """
    loading = Loading(device, dtype, compile, trust, settings)
    model: Encoder = _load("embedder", name, revision, loading)
    return model


def get_reranker(name: str, revision: str | None = None, **loading: Any) -> Reranker:
    """The re-ranker of that name; keywords as for `get_model`."""
    model: Reranker = _load("reranker", name, revision, Loading(**loading))
    return model


def get_generator(name: str, revision: str | None = None, **loading: Any) -> Generator:
    """The captioner or rewriter of that name; keywords as for `get_model`."""
    model: Generator = _load("generator", name, revision, Loading(**loading))
    return model


def loaders() -> dict[str, Loader]:
    """Every loader family: ours, and those of plug-ins."""
    brought = plugins.loaders(tuple(LOADERS))
    return {name: Loader(given) if isinstance(given, str) else given for name, given in brought.items()} | LOADERS


def find_card(name: str, revision: str | None = None) -> ModelCard:
    """The facts about a model: its row, or what a folder or LOADER:SOURCE stands for."""
    if name not in MODELS:
        return _unlisted(name, revision or "main")
    card = MODELS[name]
    if revision not in (None, card.revision):
        if not card.source:
            raise EmbarkError(f"{name} has no revision '{revision}'; the one available is '{card.revision}'.")
        card = replace(card, revision=revision)
    return card


def _unlisted(name: str, revision: str) -> ModelCard:
    """The card of a checkpoint that no row describes: LOADER:SOURCE, or a folder."""
    loader, colon, source = name.partition(":")
    if colon and loader in loaders():
        folder = Path(source).expanduser()
        called = f"local/{loader}:{folder.resolve().name}" if folder.is_dir() else name  # wherever it lies
        return ModelCard(called, revision, loader, (), source=source, kind=loaders()[loader].kind)
    if Path(name).expanduser().is_dir():
        from embark.models.recognize import recognize

        card = recognize(Path(name).expanduser())
        return replace(card, kind=LOADERS[card.loader].kind)
    if colon and not Path(name).exists():
        raise EmbarkError(f"There is no loader '{loader}' for {name}; there are {', '.join(loaders())}.")
    if name.startswith((".", "/", "~")):
        raise EmbarkError(f"There is no folder {name}; a checkpoint is a folder with its files.")
    return MODELS[name]  # which explains what may be given


def _load(kind: str, given: str | ModelCard, revision: str | None, loading: Loading) -> Any:
    card = find_card(given, revision) if isinstance(given, str) else replace(given, revision=revision or given.revision)
    name = given if isinstance(given, str) else given.name
    if card.kind != kind:
        raise EmbarkError(f"{name} is {KINDS[card.kind]}; what is needed here is {KINDS[kind]}.")
    if card.loader not in loaders():
        raise UnknownName(f"loader for {name}", card.loader, loaders())
    loader = loaders()[card.loader]
    if loading.dtype not in (None, card.dtype):
        if card.loader in LOADERS and loader.extra not in ON_TORCH:
            raise EmbarkError(f"{name} has one precision, {card.dtype}; another is for models that run on torch.")
        card = replace(card, name=f"{card.name} ({loading.dtype})", dtype=loading.dtype)  # its scores stand apart
    places = _devices(loader, card, loading)
    copies = [loader(card, replace(loading, device=place)) for place in places]
    if len(copies) == 1 or kind != "embedder":
        return copies[0]
    from embark.models.parallel import Replicas

    return Replicas(copies)


def _devices(loader: Loader, card: ModelCard, loading: Loading) -> tuple[str, ...]:
    """Where to load it: one copy a device, for what runs on torch."""
    if loader.extra not in ON_TORCH:
        return (loading.device,)
    try:
        from embark.models.device import devices

        return devices(loading.device)[: None if card.kind == "embedder" else 1]
    except ImportError as error:
        raise EmbarkError(f"{card.name} needs torch: pip install 'embark[torch]'") from error
