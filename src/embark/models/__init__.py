"""Models by name: a card holds the facts about a checkpoint, and its loader builds the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from embark import plugins, public
from embark.catalogue import Catalogue, UnknownName, check_name, match_words
from embark.field_types import checked
from embark.models.cards import CARDS, NO_CARD
from embark.models.compilation import Compilation, noted_modules
from embark.models.encoder import Encoder, Generator, Reranker, cuda_pixels
from embark.models.folder_models import checkpoint_of, folder_models, stated_facts
from embark.models.functions import encoder, generator, reranker
from embark.models.loaders import LOADERS, OURS
from embark.models.loading import Loading, build
from embark.seams import Loader
from embark.settings import Settings
from embark.types import EmbarkError, ModelCard

if TYPE_CHECKING:  # public names that are loaded at first use
    from embark.models.interop import from_mteb as from_mteb
    from embark.models.interop import from_open_clip as from_open_clip
    from embark.models.interop import from_sentence_transformers as from_sentence_transformers
else:
    __getattr__, __dir__ = public.names_of("models")

__all__ = [
    "LOADERS",
    "MODELS",
    "NO_CARD",
    "Encoder",
    "Generator",
    "Loading",
    "Reranker",
    "encoder",
    "filter_cards",
    "find_card",
    "generator",
    "get_generator",
    "get_model",
    "get_models",
    "get_reranker",
    "known_models",
    "own_models",
    "parameter_count",
    "reranker",
    "short_count",
]

Words: TypeAlias = str | Iterable[str] | None  # a word or a glob, or several of them; None: no filter

MODELS: Catalogue[ModelCard] = Catalogue(
    "model",
    lambda: plugins.with_plugins(CARDS, "cards", lambda card: card.name),
    lambda card: card.name,
    hint="Others are named by a folder with their checkpoint, or as LOADER:ID-OR-FOLDER (see: embark models --help).",
)

UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}  # of numbers of parameters
KINDS = {"embedder": "an embedding model", "reranker": "a re-ranker", "generator": "a generator"}


@checked
def get_model(
    name: str | ModelCard,
    revision: str | None = None,
    *,
    loading: Loading | None = None,
    settings: Settings | None = None,
) -> Encoder:
    """The encoder of that name, ready to embed. A name is a card's, a checkpoint folder's, or LOADER:SOURCE.

    Instead of a name, a card of your own states what a checkpoint does not: prompts, pooling, other loader options.

    `loading` says where it runs, in which precision, and whose code is trusted. Its `pixels="auto"` are Pillow's here,
    where no store is asked which of them it holds.
    """
    return cast(Encoder, _load("embedder", name, revision, _loading(loading, settings)))


@checked
def get_models(
    names: Words = None,
    *,
    modalities: Words = None,
    families: Words = None,
    kinds: Words = None,
    loaders: Words = None,
    max_parameters: float | str | None = None,
    types: Words = None,
) -> list[ModelCard]:
    """Cards by name and property; each filter may be one word or several, and a glob. Unknown words are errors.

    A model passes `modalities` when it takes all of them, and `max_parameters` (500e6 or "500M") when it is known to
    have no more. `kinds` are embedder, reranker and generator; `types` are what a model is built on: encoder, mllm,
    late or api.
    """
    return filter_cards(
        known_models(), names, modalities=modalities, families=families, kinds=kinds, loaders=loaders,
        max_parameters=max_parameters, types=types,
    )  # fmt: skip


def filter_cards(
    known: Catalogue[ModelCard],
    names: Words = None,
    *,
    modalities: Words = None,
    families: Words = None,
    kinds: Words = None,
    loaders: Words = None,
    max_parameters: float | str | None = None,
    types: Words = None,
) -> list[ModelCard]:
    """The known cards that pass the filters of `get_models`."""
    cards = known.values()
    type_of = {name: loader.type for name, loader in LOADERS.items()}
    taken = match_words("modality", (kind for card in cards for kind in card.modalities), modalities)
    family = match_words("family", (card.family for card in cards if card.family), families)
    kind = match_words("kind", (card.kind for card in cards), kinds)
    loader = match_words("loader", type_of, loaders)
    type_names = match_words("type of model", type_of.values(), types)
    most = parameter_count(max_parameters) if isinstance(max_parameters, str) else max_parameters
    return [
        card
        for card in (cards if names is None else known.match(names))
        if (taken is None or taken <= set(card.modalities))
        and (family is None or card.family in family)
        and (kind is None or card.kind in kind)
        and (loader is None or card.loader in loader)
        and (type_names is None or type_of.get(card.loader) in type_names)
        and (most is None or (card.parameters is not None and card.parameters <= most))
    ]


@checked
def get_reranker(
    name: str | ModelCard,
    revision: str | None = None,
    *,
    loading: Loading | None = None,
    settings: Settings | None = None,
) -> Reranker:
    """The re-ranker of that name; arguments as for `get_model`."""
    return cast(Reranker, _load("reranker", name, revision, _loading(loading, settings)))


@checked
def get_generator(
    name: str | ModelCard,
    revision: str | None = None,
    *,
    loading: Loading | None = None,
    settings: Settings | None = None,
) -> Generator:
    """The captioner or rewriter of that name; arguments as for `get_model`."""
    return cast(Generator, _load("generator", name, revision, _loading(loading, settings)))


def _loading(loading: Loading | None, settings: Settings | None) -> Loading:
    """How a model is loaded, with the settings that were given beside it."""
    loading = loading or Loading()
    return loading if settings is None else replace(loading, settings=settings)


def parameter_count(text: str) -> float:
    """A number of parameters as people write it: 500k, 400M, 1.5B, 7e9, 151000000."""
    number = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)(e\+?\d+)?\s*([KMB]?)\s*", text, flags=re.I)
    if number is None:
        raise EmbarkError(f"'{text}' is no number of parameters; write 400M or 1.5B.")
    digits, exponent, unit = number.groups(default="")
    return float(digits + exponent) * UNITS[unit.upper()]


def short_count(value: int | None) -> str:
    """A number of parameters in three digits: 400M, 1.5B; "?" where it is not known."""
    if value is None:
        return "?"
    unit = max((unit for unit, scale in UNITS.items() if value >= scale), key=UNITS.__getitem__, default="")
    return f"{value / UNITS[unit]:.3g}{unit}"


def own_models() -> dict[str, Mapping[str, Any]]:
    """The models that embark.toml of the working folder names, see `folder_models`: none is behind an API."""
    tables = folder_models()
    for name, table in tables.items():
        id = table.get("id", name)
        if name in MODELS and ("checkpoint" in table or id != name):
            raise EmbarkError(f"A built-in model is named {name}, too: rename that of embark.toml.")
        if "checkpoint" not in table and LOADERS[MODELS[id].loader].type == "api":  # it costs money, and gets a key
            raise EmbarkError(f"{id} of embark.toml is behind an API: name it yourself, with --model.")
    return tables


def known_models() -> Catalogue[ModelCard]:
    """The cards of the catalogue, and of the models that embark.toml of the working folder names."""
    tables = own_models()
    return MODELS.with_rows(_own_card(name, tables[name], hashed=False) for name in tables if name not in MODELS)


def find_card(name: str, revision: str | None = None) -> ModelCard:
    """The card of a model: its row, or one made for a folder, LOADER:SOURCE, or a name of embark.toml."""
    if name not in MODELS:
        own = own_models().get(name)
        return _unlisted(name, revision or "main") if own is None else _own_card(name, own)
    card = MODELS[name]
    if revision not in (None, card.revision):
        if not card.source:
            raise EmbarkError(f"{name} has no revision '{revision}'; the one available is '{card.revision}'.")
        card = replace(card, revision=revision)
    return card


def _unlisted(name: str, revision: str) -> ModelCard:
    """The card of a checkpoint that no row describes: LOADER:SOURCE, or a folder."""
    loader, colon, source = name.partition(":")
    if colon and loader in LOADERS:
        folder = Path(source).expanduser()
        if folder.is_dir():
            name = f"local/{loader}:{folder.resolve().name}"  # the same wherever the folder lies
        return ModelCard(name, revision, loader, (), source=source, kind=LOADERS[loader].kind)
    if Path(name).expanduser().is_dir():
        from embark.models.recognize import recognize

        card = recognize(Path(name).expanduser())
        return replace(card, kind=LOADERS[card.loader].kind)
    if colon and not Path(name).exists():
        raise EmbarkError(f"There is no loader '{loader}' for {name}; there are {', '.join(LOADERS)}.")
    if name.startswith((".", "/", "~")):
        raise EmbarkError(f"There is no folder {name}; a checkpoint is a folder with its files.")
    if name in NO_CARD:
        raise EmbarkError(f"{name} has no card: {NO_CARD[name]}.")
    return MODELS[name]  # raises the error with suggestions


def _own_card(name: str, table: Mapping[str, Any], hashed: bool = True) -> ModelCard:
    """The card of a model that embark.toml names; not `hashed`: without the revision of a checkpoint's files."""
    folder = checkpoint_of(name, table)
    if folder is None:
        card = MODELS[table.get("id", name)]
    elif "loader" in table:
        check_name("loader", table["loader"], [own.name for own in OURS if own.type != "api"])
        card = _unlisted(f"{table['loader']}:{folder}", "main")
    elif hashed:
        card = _unlisted(str(folder), "main")
    else:
        from embark.models.recognize import loader_of

        card = ModelCard(name, "", loader_of(folder), (), source=str(folder))
    return replace(card.called(name), **stated_facts(table))


def _load(kind: str, model: str | ModelCard, revision: str | None, loading: Loading) -> Any:
    card = find_card(model, revision) if isinstance(model, str) else replace(model, revision=revision or model.revision)
    name = model if isinstance(model, str) else model.name
    if card.kind != kind:
        raise EmbarkError(f"{name} is {KINDS[card.kind]}; what is needed here is {KINDS[kind]}.")
    if card.loader not in LOADERS:
        raise UnknownName(f"loader for {name}", card.loader, LOADERS)
    loader = LOADERS[card.loader]
    if loading.dtype not in (None, card.dtype):
        if not loader.torch:
            raise EmbarkError(f"{name} has one precision, {card.dtype}; another is for models that run on torch.")
        card = replace(card, dtype=loading.dtype).with_name(lambda name: f"{name} ({loading.dtype})")  # stands apart
    if kind == "embedder" and loading.stored_dtype not in (None, card.stored):  # a name of its own for its results
        stored = cast(Any, loading.stored_dtype)  # checked by Loading
        card = replace(card, stored=stored).called(f"{card.name} ({stored} vectors)")
    pixels = card.pixels if loading.pixels == "auto" else loading.pixels
    card = replace(card, pixels="pillow")
    devices = _devices(loader, card, loading)
    trial = kind == "embedder" and devices[0].startswith("cuda") and len(devices) == 1 and "+" not in devices[0]
    if loading.compile == "auto" and not trial:
        loading = replace(loading, compile=False)
    if len(devices) > 1:
        from embark.models.parallel import Devices

        return Devices(loader, card, loading, devices, cuda_pixels if pixels == "cuda" else None)
    with noted_modules() as modules:
        loaded = build(loader, card, replace(loading, device=devices[0]))
    if kind != "embedder":
        return loaded
    encoder: Encoder = loaded
    if pixels == "cuda":
        try:
            encoder = cuda_pixels(encoder)
        except EmbarkError as error:
            raise EmbarkError(f"{name} cannot have its pixels from a GPU: {error}. Use pixels pillow.") from error
    able = encoder.capabilities
    if loading.compile == "auto" and modules:
        able = replace(able, compilation=Compilation(modules))
    encoder.capabilities = replace(able, lanes=max(able.lanes, lanes_on(devices[0], loader)))
    return encoder


def lanes_on(device: str, loader: Loader) -> int:
    """How many batches at once a model of this loader takes on a device."""
    return loader.lanes if device.startswith("cuda") and "+" not in device else 1


def _devices(loader: Loader, card: ModelCard, loading: Loading) -> tuple[str, ...]:
    """The devices to load a copy on each: several only for embedders that run on torch."""
    if not loader.torch:
        return (loading.device,)
    try:
        from embark.models.device_names import devices, joined

        names = devices(loading.device)
        if loading.device == "auto":
            names = joined(names, card.gpus or 1, card.name)
        return names[: None if card.kind == "embedder" else 1]
    except ImportError as error:
        raise EmbarkError(f"{card.name} needs torch: pip install 'embark-bench[torch]'") from error
