"""Encoders, re-rankers and generators: their methods, their capabilities; encoders with a tower for each modality."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, final, overload

import numpy as np

from embark.catalogue import group_values
from embark.models.compilation import Compilation
from embark.models.tokens import FastTokenizer, Tokens
from embark.types import MODALITIES, Array, Content, EmbarkError, Item, Modality, ModelCard, Rendered, Style, Text

CUDA_PIXELS = " (cuda pixels)"  # ends the names of models that decode and resize JPEGs on their GPU
PICTURES = frozenset({"image", "video"})


# ── what a model may be able to do ───────────────────────────────────────────────────────────────────────────────────


class Preparation(Protocol):
    """What an encoder's `prepare` does with items of some modalities, without the model, so that it can be pickled."""

    @property
    def modalities(self) -> frozenset[Modality]:
        """The modalities that it prepares."""
        ...

    def __call__(self, contents: Sequence[Content], mode: str) -> Any:
        """As `prepare`."""
        ...


class Bill(NamedTuple):
    """An estimate of what a provider charges for an item; dollars are None where its price is not known."""

    tokens: float
    dollars: float | None


@dataclass(frozen=True)
class Matching:
    """A head of an encoder that reads a picture and a text together and scores the pair (a cross score).

    Where the card's answer to a style says `matching`, its score is added to the similarity of the pair's vectors.
    """

    head: Callable[[], Reranker]  # a re-ranker of texts (queries) and pictures (documents)
    render_pair: Callable[[Item, Item, Style], Rendered]  # what the head sees of (picture, text), answering a style


Likelihoods: TypeAlias = Callable[[Sequence[Any], Sequence[str]], list[Array]]


@dataclass(frozen=True)
class Capabilities:
    """Abilities of an encoder, re-ranker or generator besides its methods, and how the engine may use them.

    `prepare_many(batch, modes)` returns what `prepare` returns for each of many items, where that is faster.
    `preparation` does what `prepare` does in worker processes; `text_preparation` returns, always the same, what does
    so with items that are one text: its tokens are `TextParts` to `embed`. `styled_pixels`: the mode of pictures is the
    `pixels` of the card's answer to a style. `render_styled` answers styles in its own way: it says exactly what the
    model will see of an item; what changes pixels or tokens is in the mode, and so in the key, and where an answer
    changes nothing, the key is the usual one. `bill` is an estimate for a prepared item, of a model that costs money.
    `cuda_pixels` makes the encoder that decodes and resizes JPEGs on its GPU, or raises an error. `likelihoods(batch,
    texts)` of a generator returns, for each prepared item, (texts, 2): the log-probability of each text as its answer,
    and of how many tokens (0: not known); where the model has a token that ends an answer, it counts, too.
    """

    batch_size: int | None = None  # items in `embed` at once; None: the engine tries which number is fastest
    lanes: int = 1  # batches that may be in `embed` at once, each in a thread of its own
    prepare_many: Callable[[Sequence[Sequence[Content]], Sequence[str]], Sequence[Any]] | None = None
    preparation: Preparation | None = None
    text_preparation: Callable[[], FastTokenizer | None] | None = None
    encoded: frozenset[Modality] = frozenset()  # whose files `prepare` takes as `Encoded`, where the mode is ""
    compilation: Compilation | None = None  # what the engine may compile, if a trial shows that it pays
    styled_pixels: bool = False
    render_styled: Callable[[Item, str, str | None, Style], Rendered] | None = None
    bill: Callable[[Any], Bill] | None = None
    matching: Matching | None = None
    cuda_pixels: Callable[[], Encoder] | None = None
    likelihoods: Likelihoods | None = None

    def __post_init__(self) -> None:
        if self.lanes < 1 or (self.batch_size is not None and self.batch_size < 1):
            raise EmbarkError(f"A model has 1 lane or more, of 1 item or more; not {self.lanes} of {self.batch_size}.")

    @property
    def billed(self) -> bool:
        """Whether the model costs money per item: nothing is embedded just to measure its speed."""
        return self.bill is not None


@dataclass(frozen=True)
class AsItIs:
    """The rendering of an encoder that sees items as they are, in every role and whatever the instruction."""

    def __call__(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """The item alone."""
        return Rendered(item.parts)


# ── encoders, re-rankers and generators ──────────────────────────────────────────────────────────────────────────────


class Preparing:
    """The common base of encoders, re-rankers and generators."""

    card: ModelCard
    capabilities: Capabilities = Capabilities()

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        """CPU work for one decoded item (resize, tokenize), in threads. Here: its contents as they are.

        `mode` is that of `Rendered`, as `render` returned it: "" unless a model's own `render` sets another.
        """
        return contents


class Encoder(Preparing):
    """A model that embeds items. `render` and `prepare` may be left out by those who inherit."""

    # Exactly what the model will see of an item in a role, given the instruction; pure and cheap. Here: the item alone.
    render: Callable[[Item, str, str | None], Rendered] = AsItIs()

    def embed(self, batch: Sequence[Any]) -> Array | Sequence[Array]:
        """The forward pass over prepared items: (n, dim), or n arrays of (tokens, dim) for late interaction."""
        raise NotImplementedError


class Reranker(Preparing):
    """A model that scores pairs of a query and a document. `render` and `prepare` may be left out."""

    def render(self, query: Item, document: Item, instruction: str | None) -> Rendered:
        """Exactly what the model will see; the mode is the number of the query's parts. Here: the pair alone."""
        return Rendered((*query.parts, *document.parts), str(len(query.parts)))

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        """CPU work for one decoded pair. Here: (query, document)."""
        return contents[: int(mode)], contents[int(mode) :]

    def score(self, batch: Sequence[Any]) -> Array:
        """The relevance of each document to its query: one number per prepared pair, higher is better."""
        raise NotImplementedError


class Generator(Preparing):
    """A model that writes text about items: captions, rewritten queries. `render` and `prepare` may be left out."""

    def render(self, item: Item, prompt: str) -> Rendered:
        """Exactly what the model will see. Here: the prompt, then the item."""
        return Rendered((Text(prompt), *item.parts))

    def generate(self, batch: Sequence[Any]) -> list[str]:
        """One text per prepared item; greedy, so that it can be repeated."""
        raise NotImplementedError


def prepare_many(model: Preparing, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> Sequence[Any]:
    """Many items as a model prepares them: together, where it can."""
    together = model.capabilities.prepare_many
    if together is not None:
        return together(batch, modes)
    return [model.prepare(contents, mode) for contents, mode in zip(batch, modes, strict=True)]


def render_item(
    encoder: Encoder, item: Item, role: str, instruction: str | None, style: Style | None = None
) -> Rendered:
    """Exactly what an encoder will see of an item of a row with that style."""
    if style is None:
        return encoder.render(item, role, instruction)
    instruction = style.instruction(role, item, instruction)
    render_styled = encoder.capabilities.render_styled
    if render_styled is not None:
        rendered = render_styled(item, role, instruction, style)
    else:
        rendered = encoder.render(item, role, instruction)
        pixels = styled_pixels(encoder, style)
        rendered = replace(rendered, mode=pixels) if pixels and not PICTURES.isdisjoint(item.modalities) else rendered
    other_frames = "video" in item.modalities and style.frames not in (None, encoder.card.frames)
    return replace(rendered, frames=style.frames) if other_frames else rendered


def styled_pixels(encoder: Encoder, style: Style) -> str:
    """The mode of pictures in the card's answer to a style; empty where the answer changes none."""
    if not encoder.capabilities.styled_pixels:
        return ""
    return str(encoder.card.styles.get(style.name, {}).get("pixels", ""))


def renders_plainly(encoder: Encoder, style: Style | None, modalities: AbstractSet[Modality]) -> bool:
    """Whether an encoder sees items of these modalities as they are, in every role and whatever the instruction."""
    if not isinstance(encoder.render, AsItIs):
        return False
    if style is None:
        return True
    if encoder.capabilities.render_styled is not None or (styled_pixels(encoder, style) and PICTURES & modalities):
        return False
    return "video" not in modalities or style.frames in (None, encoder.card.frames)


def cuda_card(card: ModelCard) -> ModelCard:
    """The card of a model that decodes and resizes JPEGs on its GPU; its name stands apart."""
    other = replace(card, pixels="cuda", loaded={**card.loaded, "pixels": "cuda"})
    return other.with_name(lambda name: f"{name}{CUDA_PIXELS}")


def cuda_pixels(encoder: Encoder) -> Encoder:
    """The encoder that decodes and resizes JPEGs on its GPU; an error where it cannot."""
    other = encoder.capabilities.cuda_pixels
    if other is None:
        raise EmbarkError(f"{encoder.card.name} prepares pictures on the CPU alone")
    return other()


class Interrupted(EmbarkError):
    """An error in the middle of a batch; `done` are the vectors (of a generator, the texts) computed before it, by
    position in the batch.
    """

    def __init__(self, message: str, done: Mapping[int, Any]) -> None:
        super().__init__(message)
        self.done = done


class UnreadableRows(EmbarkError):
    """Items of a batch that do not decode; `rows` are the reasons, by position in the batch."""

    def __init__(self, rows: Mapping[int, str]) -> None:
        super().__init__("; ".join(rows.values()))
        self.rows = rows


def unit(x: Array) -> Array:
    """Rows scaled to length one; a zero row stays zero."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(np.divide(x, length, out=np.zeros_like(x), where=length > 0))


def require_tokens(tokens: list[int]) -> list[int]:
    """The tokens; none is an error, for the vector of padding alone would differ from batch to batch."""
    if not tokens:
        raise EmbarkError("the text is empty, and the model puts no token of its own around it to embed.")
    return tokens


def embed_in_groups(
    batch: Sequence[Any], key: Callable[[Any], Any], embed: Callable[[Any, list[Any]], Iterable[Array]]
) -> list[Array]:
    """The vectors of a batch, in its order; items with the same key are embedded together by `embed(key, items)`."""
    out: dict[int, Array] = {}
    for group, rows in group_values((key(item), row) for row, item in enumerate(batch)).items():
        out |= zip(rows, embed(group, [batch[row] for row in rows]), strict=True)
    return [out[row] for row in range(len(batch))]


def unchanged(value: Any) -> Any:
    """The part as it is."""
    return value


@dataclass(frozen=True)
class Tower:
    """The encoder of one modality: `prepare` takes one part, in a worker; `embed` takes many prepared ones.

    `styled` are other ways to prepare, by the `pixels` of a card's answer to a style; `embed` takes all alike.
    `prepare_many` returns what `prepare` returns for each of many parts, where that is faster; `sendable` returns what
    does the same in another process, if anything does. `on_cuda` makes the tower that decodes its pictures on the GPU,
    where there is one; it may raise an error.
    """

    embed: Callable[[Any], Array]
    prepare: Callable[[Any], Any] = unchanged
    styled: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    prepare_many: Callable[[list[Any]], Sequence[Any]] | None = None
    sendable: Callable[[], FastTokenizer | None] | None = None
    on_cuda: Callable[[], Tower] | None = None


class TextParts(Sequence[list[tuple[Modality, list[int]]]]):
    """Items of one text each, as towers take them, with the tokens of all in one array."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    @overload
    def __getitem__(self, row: int) -> list[tuple[Modality, list[int]]]: ...
    @overload
    def __getitem__(self, row: slice) -> TextParts: ...
    def __getitem__(self, row: int | slice) -> list[tuple[Modality, list[int]]] | TextParts:
        return TextParts(self.tokens[row]) if isinstance(row, slice) else [("text", self.tokens[row])]

    def __iter__(self) -> Iterator[list[tuple[Modality, list[int]]]]:
        return ([("text", tokens)] for tokens in self.tokens)

    def take(self, rows: Array) -> TextParts:
        """The items at these places."""
        return TextParts(self.tokens.take(rows))


@dataclass(frozen=True)
class TowerPreparation:
    """What towers do with parts before the model: their `prepare`, and by the mode of pictures, the styled ones."""

    name: str  # of the model
    usual: Mapping[Modality, Callable[[Any], Any]]
    styled: Mapping[Modality, Mapping[str, Callable[[Any], Any]]]

    @property
    def modalities(self) -> frozenset[Modality]:
        """The modalities that it prepares."""
        return frozenset(self.usual)

    def __call__(self, contents: Sequence[Content], mode: str) -> list[tuple[Modality, Any]]:
        """Each part with its modality, prepared."""
        return [(content.kind, self.of(content.kind, mode)(content.value)) for content in contents]

    def of(self, kind: Modality, mode: str) -> Callable[[Any], Any]:
        if not mode or kind not in PICTURES:
            return self.usual[kind]
        if mode not in self.styled[kind]:
            raise EmbarkError(f"{self.name} cannot prepare pictures as its card says for a style: '{mode}'.")
        return self.styled[kind][mode]

    def without(self, *kinds: Modality) -> TowerPreparation:
        """Without some modalities."""
        usual = {kind: prepare for kind, prepare in self.usual.items() if kind not in kinds}
        return replace(self, usual=usual, styled={kind: self.styled[kind] for kind in usual})

    def picklable(self) -> TowerPreparation | None:
        """With the modalities alone whose preparation can be pickled; None where none can."""
        refused = []
        for kind in self.usual:
            try:
                pickle.dumps((self.usual[kind], self.styled[kind]))
            except Exception:  # libraries raise whatever they like
                refused.append(kind)
        rest = self.without(*refused)
        return rest if rest.usual else None


@dataclass(eq=False)
class Towers(Encoder):
    """An encoder of single modalities; a mixed item becomes one vector by the card's fusion rule.

    Its capabilities are those of its towers. A class with another `prepare` holds towers, and inherits `Encoder`.
    """

    card: ModelCard
    towers: Mapping[Modality, Tower]

    def __post_init__(self) -> None:
        usual = {kind: tower.prepare for kind, tower in self.towers.items()}
        styled = {kind: tower.styled for kind, tower in self.towers.items()}
        self._preparation = TowerPreparation(self.card.name, usual, styled)
        text = self.towers.get("text")
        self.capabilities = replace(
            self.capabilities,
            prepare_many=self._prepare_many,
            # Texts are prepared faster than they are sent.
            preparation=self._preparation.without("text").picklable(),
            text_preparation=self._text_preparation if text is not None and text.sendable is not None else None,
            styled_pixels=True,
            cuda_pixels=self._with_cuda_pixels,
        )

    @property
    def image_on_cuda(self) -> Callable[[], Tower]:
        """What makes the tower of images that decodes on the GPU; an error where there is no such tower."""
        tower = self.towers.get("image")
        if tower is None or tower.on_cuda is None:
            raise EmbarkError(f"{self.card.name} does more with pictures than resize, crop and scale them to one size")
        return tower.on_cuda

    def _with_cuda_pixels(self) -> Towers:
        """The encoder that decodes and resizes JPEGs on its GPU: other pixels, so a card and a name of its own."""
        other = copy.copy(self)
        other.towers = {**self.towers, "image": self.image_on_cuda()}
        other.card = cuda_card(self.card)
        other.capabilities = replace(self.capabilities, encoded=frozenset({"image"}))
        other.__post_init__()
        return other

    @final
    def prepare(self, contents: Sequence[Content], mode: str) -> list[tuple[Modality, Any]]:
        """Each part with its modality, prepared by that tower."""
        return self._preparation(contents, mode)

    def _prepare_many(
        self, batch: Sequence[Sequence[Content]], modes: Sequence[str]
    ) -> Sequence[list[tuple[Modality, Any]]]:
        """As `prepare` for each item; parts of one modality and mode together, where the tower can."""
        kinds = {contents[0].kind if len(contents) == 1 else None for contents in batch}
        if len(kinds) == 1 and not any(modes) and (kind := kinds.pop()) is not None:  # millions of short texts
            values = self._prepare_parts(kind, "", [parts[0].value for parts in batch])
            return TextParts(values) if isinstance(values, Tokens) else [[(kind, value)] for value in values]
        items = list(zip(batch, modes, strict=True))
        parts = group_values(((part.kind, mode), part.value) for contents, mode in items for part in contents)
        prepared = {group: iter(self._prepare_parts(*group, values)) for group, values in parts.items()}
        return [[(part.kind, next(prepared[part.kind, mode])) for part in contents] for contents, mode in items]

    def _prepare_parts(self, kind: Modality, mode: str, values: list[Any]) -> Sequence[Any]:
        prepare = self._preparation.of(kind, mode)
        many = self.towers[kind].prepare_many
        if many is None or prepare is not self.towers[kind].prepare:
            return [prepare(value) for value in values]
        prepared = many(values)
        if len(prepared) != len(values):
            raise EmbarkError(f"{self.card.name} prepared {len(prepared)} {kind} inputs of {len(values)}.")
        return prepared

    def _text_preparation(self) -> FastTokenizer | None:
        return self._sendable

    @cached_property
    def _sendable(self) -> FastTokenizer | None:
        """What prepares items of one text in a worker process; None where only this process can."""
        sendable = self.towers["text"].sendable
        return None if sendable is None else sendable()

    def embed(self, batch: Sequence[list[tuple[Modality, Any]]]) -> Array:
        """All parts of one modality in one pass, then one vector per item."""
        if isinstance(batch, TextParts):
            return self._pass("text", batch.tokens, range(len(batch)))
        kinds = {parts[0][0] if len(parts) == 1 else None for parts in batch}
        if len(kinds) == 1 and (kind := kinds.pop()) is not None:
            return self._pass(kind, [parts[0][1] for parts in batch], range(len(batch)))
        owners = group_values((kind, row) for row, parts in enumerate(batch) for kind, _ in parts)
        values = group_values(part for parts in batch for part in parts)
        vectors = {kind: self._pass(kind, values[kind], owners[kind]) for kind in values}
        return self._fuse(len(batch), owners, vectors, np.array([len(parts) for parts in batch]))

    def _pass(self, kind: Modality, values: Sequence[Any], owners: Sequence[int]) -> Array:
        try:
            out = np.asarray(self.towers[kind].embed(values), np.float32)
        except UnreadableRows as error:  # it counts the parts of one modality
            raise UnreadableRows({owners[row]: reason for row, reason in error.rows.items()}) from error
        if out.ndim != 2 or len(out) != len(values):
            raise EmbarkError(
                f"{self.card.name} was given {len(values)} {kind} inputs and returned an array of shape {out.shape}; "
                f"expected ({len(values)}, dimension): one row per input, in their order."
            )
        return out

    def _fuse(
        self, rows: int, owners: Mapping[Modality, list[int]], vectors: Mapping[Modality, Array], parts: Array
    ) -> Array:
        if self.card.fusion not in ("sum", "unit-sum"):
            raise EmbarkError(
                f"{self.card.name} has no rule to fuse mixed items (its card says fusion={self.card.fusion!r})."
            )
        dims = {vector.shape[1] for vector in vectors.values()}
        if len(dims) > 1:
            raise EmbarkError(
                f"{self.card.name} cannot add vectors of different dimensions {sorted(dims)} to fuse a mixed item."
            )
        total = np.zeros((rows, dims.pop()), np.float32)
        for kind in sorted(vectors, key=MODALITIES.index):  # always in this order: a sum's last bits depend on it
            owner_rows = np.array(owners[kind])
            raw = vectors[kind]
            scaled = raw if self.card.fusion == "sum" else np.where(parts[owner_rows, None] > 1, unit(raw), raw)
            np.add.at(total, owner_rows, scaled)
        return total


def frame_mean(image: Tower) -> Tower:
    """A video tower from an image tower: the frames' unit vectors, added and scaled to length one."""

    def embed(videos: list[list[Any]]) -> Array:
        vectors = unit(np.asarray(image.embed([frame for video in videos for frame in video]), np.float32))
        starts = np.cumsum([0] + [len(video) for video in videos[:-1]])
        return unit(np.add.reduceat(vectors, starts))

    styled = {name: EachFrame(prepare) for name, prepare in image.styled.items()}
    return Tower(embed, EachFrame(image.prepare), styled)


@dataclass(frozen=True)
class EachFrame:
    """The preparation of a film, from that of a picture."""

    prepare: Callable[[Any], Any]

    def __call__(self, frames: list[Any]) -> list[Any]:
        return [self.prepare(frame) for frame in frames]


def image_towers(
    embed: Callable[[list[Any]], Array],
    prepare: Callable[[Any], Any],
    styled: Mapping[str, Callable[[Any], Any]] | None = None,
) -> dict[Modality, Tower]:
    """The tower of images, and that of videos as the mean of their frames."""
    image = Tower(embed, prepare, styled or {})
    return {"image": image, "video": frame_mean(image)}
