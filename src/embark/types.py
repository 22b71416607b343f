"""The types of embark, as frozen values: items, truths, tasks, cards, scores.

Everything here is data. Nothing reads a file, loads a model or imports another module of ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, get_args, get_origin

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Modality = Literal["text", "image", "audio", "video"]
MODALITIES: tuple[Modality, ...] = ("text", "image", "audio", "video")
Bytes: TypeAlias = bytes | Callable[[], bytes]


class EmbarkError(Exception):
    """An error that a user can act on: its message says what to do."""


# ── items ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text, exactly as published."""

    text: str
    kind: ClassVar[Modality] = "text"


@dataclass(frozen=True)
class Media:
    """An encoded image, sound or video: one file, or a video's frames in order. Bytes are read when needed."""

    kind: Modality
    chunks: tuple[Bytes, ...] = field(repr=False)

    def read(self) -> tuple[bytes, ...]:
        """The encoded bytes of each chunk."""
        return tuple(chunk if isinstance(chunk, bytes) else chunk() for chunk in self.chunks)

    @property
    def digest(self) -> bytes:
        """Hash of the published bytes; remembered, because reading them may cost a disk seek."""
        known: bytes | None = self.__dict__.get("digest")  # a cached_property would let one thread in at a time
        return known or self.__dict__.setdefault("digest", self.compute_digest())

    def compute_digest(self) -> bytes:
        """The hash of the hashes of all chunks."""
        return hashlib.sha256(b"".join(hashlib.sha256(chunk).digest() for chunk in self.read())).digest()


Part: TypeAlias = Text | Media


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to embed: an ordered mix of text, image, audio and video parts."""

    parts: tuple[Part, ...]

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """The kinds of its parts, in order, without repeats."""
        return tuple(dict.fromkeys(part.kind for part in self.parts))


@dataclass(frozen=True, slots=True)
class Rendered:
    """Exactly what a model will see: the parts with prompts applied, and the mode it runs in (an adapter)."""

    parts: tuple[Part, ...]
    mode: str = ""
    frames: int | None = None  # taken from each video, where a row's style says so; None: as many as the card says


@dataclass(frozen=True, slots=True)
class Audio:
    """A decoded waveform: mono float32 samples at a rate."""

    samples: Array
    rate: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """A plain JPEG for an encoder that decodes pictures itself.

    `size` is (width, height) as stored, `orientation` the EXIF turn to apply. `sampling` are the samples of brightness,
    across and down, for each of color: (2, 2) is 4:2:0, and (0, 0) is grey. `data` may be a part of larger memory.
    """

    data: bytes | memoryview
    size: tuple[int, int]
    sampling: tuple[int, int]
    orientation: int = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """With bytes of its own, which another process needs."""
        return Encoded, (bytes(self.data), self.size, self.sampling, self.orientation)


@dataclass(frozen=True, slots=True)
class Content:
    """A decoded part: `str` for text, a PIL image, an `Audio`, or a list of PIL frames for video.

    A picture may be `Encoded` for encoders that decode it themselves.
    """

    kind: Modality
    value: Any


# ── truth: labels, relevance and other facts about items ─────────────────────────────────────────────────────────────
#
# A truth is a table over the sides of a dataset. Its fields either hold positions in a side (`index`) or have one row
# for each item of a side (`aligned`), so that unreadable items can be left out consistently.


def index(side: str) -> Any:
    """A field whose values are positions in `side`; rows with the position of a dropped item are dropped too."""
    return field(metadata={"index": side})


def aligned(side: str, **default: Any) -> Any:
    """A field with one row for each item of `side`."""
    return field(metadata={"aligned": side}, **default)


def value() -> Any:
    """A field without positions: a column of the table, or a fact about it."""
    return field()


@dataclass(frozen=True)
class Qrels:
    """Graded relevance of documents to queries; a pair that is not listed is not relevant.

    Whether a query ranks all documents or only those listed for it is decided by the evaluator, not here. Positives
    that are not among the documents count in the ideal ranking and in recall, and nothing can retrieve them.
    Where several rows have one id (`repeated`), the first of them stands for the id in `query` and `document`.
    """

    query: Array = index("query")
    document: Array = index("document")
    grade: Array = value()
    query_ids: Array | None = aligned("query", default=None)  # ids resolve ties; without them, positions do
    document_ids: Array | None = aligned("document", default=None)
    outside: Array | None = aligned("query", default=None)  # (queries, n): grades of such positives, filled up with 0
    repeated: bool = False  # several rows may have one id


@dataclass(frozen=True)
class Classes:
    """The class of each item, and the class that each prompt describes (several prompts per class are an ensemble).

    `label` is (items,) of class numbers, or (items, classes) of booleans where an item has several.
    """

    label: Array = aligned("item")
    prompt: Array = aligned("prompt")
    names: tuple[str, ...] = value()


@dataclass(frozen=True)
class Split:
    """Labels of a training and a test side; (n,) of class numbers, or (n, classes) of booleans for several per row."""

    train: Array = aligned("train")
    test: Array = aligned("test")
    names: tuple[str, ...] = value()
    drawn: Array | None = aligned("train", default=None)  # (train, runs): position in a run's sample, or -1


@dataclass(frozen=True)
class Groups:
    """The group each item belongs to, for clustering."""

    label: Array = aligned("item")
    names: tuple[str, ...] = value()


@dataclass(frozen=True)
class Matches:
    """Samples of n images × m texts, as (samples, n) and (samples, m) indices; text j belongs to image j."""

    image: Array = index("image")
    text: Array = index("text")


@dataclass(frozen=True)
class Gold:
    """Human similarity of pairs: left[i] and right[i] were given score[i]; or 1 if they match, and 0 if not."""

    left: Array = index("left")
    right: Array = index("right")
    score: Array = value()


Truth: TypeAlias = Qrels | Classes | Split | Groups | Matches | Gold


def role_of(side: str) -> str:
    """The role of a side: "document:noise" holds the documents under a condition, in the same order."""
    return side.split(":", 1)[0]


Label: TypeAlias = str | tuple[str, ...] | None  # what the data tell about an item: a value, several, or nothing


@dataclass(frozen=True)
class Side:
    """The items of one role in a task (its queries, its documents, its prompts…), with their ids."""

    ids: Sequence[str]
    items: Sequence[Item]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True)
class Dataset:
    """One split and subset of a task, as a reader returns it: sides by role, and the truth about them."""

    sides: Mapping[str, Side]
    truth: Truth
    skipped: tuple[str, ...] = ()  # rows that were left out, each with its reason
    revision: str = ""  # of the source that was read: a commit, also where the row names a branch
    about: Mapping[str, Mapping[str, Sequence[Label]]] = field(default_factory=dict)  # side → label's name → by item
    counts: Mapping[str, int] = field(default_factory=dict)  # of items that are equal, or on both sides
    sampled_from: int | None = None  # queries, test items or pairs that a sample was drawn from


# ── tasks and benchmarks ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Source:
    """Where the rows come from: a hub dataset, a folder, or the package itself, at a pinned revision.

    `files` names a split's files by patterns, where neither the dataset's card nor a usual layout does.
    """

    id: str
    revision: str
    config: str | None = None
    splits: tuple[str, ...] = ("test",)
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    license: str = ""
    reference: str = ""


@dataclass(frozen=True)
class Pool:
    """Items that a task embeds for one side of one subset; tasks with a pool of the same id share them."""

    side: str
    items: int
    id: str


@dataclass(frozen=True)
class Style:
    """How the paper of a row showed items to its models; a card may have an answer to it, under its name.

    `templates` put {media}, {instruction} and {text} in order ({item}: all parts in their own order), by role
    ("document"), or for items of text alone ("document:text"); where a template has no {instruction}, no model reads
    one. `frames` are taken from each video.
    """

    name: str
    templates: Mapping[str, str] = field(default_factory=dict)
    frames: int | None = None

    def template(self, role: str, item: Item) -> str | None:
        """The template for an item in a role; None where the paper's is not known."""
        only_text = self.templates.get(f"{role}:text") if item.modalities == ("text",) else None
        return self.templates.get(role) if only_text is None else only_text

    def instruction(self, role: str, item: Item, instruction: str | None) -> str | None:
        """The row's instruction for an item in a role; None where the paper's template has no place for one."""
        template = self.template(role, item)
        return instruction if template is None or "{instruction}" in template else None


@dataclass(frozen=True)
class Task:
    """A row of data: which dataset, read how, scored how. A row states everything that changes the score."""

    name: str
    family: str
    evaluator: str
    reader: str
    source: Source
    metric: str
    category: str
    modalities: tuple[Modality, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)  # to the evaluator
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)  # to the reader
    # The languages of each subset.
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"default": ("eng",)}, repr=False)
    instructions: Mapping[str, str] = field(default_factory=dict)  # by role; "query:SUBSET": of one subset
    labels: tuple[str, ...] = field(default=(), repr=False)
    templates: tuple[str, ...] = field(default=(), repr=False)
    mixed: bool = False  # some items hold more than one modality
    unreadable: Literal["error", "skip"] = "error"
    upright: bool = False  # pictures are turned as their EXIF orientation says
    tags: Mapping[str, str] = field(default_factory=dict)  # capability, domain…
    chance: float | None = None
    rows: Mapping[str, int] = field(default_factory=dict, repr=False)  # expected by "config/split" (or "split")
    pools: tuple[Pool, ...] = field(
        default=(), repr=False
    )  # the items that it embeds, as far as they are known without the data
    style: Style | None = None  # how the paper showed items to models; None: each model as its card says
    limit: int | None = None  # queries, test items or pairs that are drawn from each split and subset; None: all count
    protocol: str = "paper"
    # Other protocols: the fields that differ.
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def languages(self) -> tuple[str, ...]:
        """Every language of its subsets, in order."""
        return tuple(dict.fromkeys(language for group in self.subsets.values() for language in group))

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Every (split, subset) that it is scored on."""
        return [(split, subset) for split in self.source.splits for subset in self.subsets]

    def instruction(self, role: str, subset: str) -> str | None:
        """What models that read instructions are told about items of a role: in a subset of its own words, those."""
        return self.instructions.get(f"{role}:{subset}", self.instructions.get(role))

    def under(self, protocol: str) -> Task:
        """The row under another protocol; unchanged if it has no variant of that name."""
        changes = self.variants.get(protocol)
        return self if changes is None else replace(self, protocol=protocol, variants={}, **changes)

    def limited(self, limit: int) -> Task:
        """The row on a sample of its queries, test items or pairs: a protocol of its own, of which no board tells."""
        if limit < 1 or int(limit) != limit:
            raise EmbarkError(f"A sample has at least 1 item, and whole ones, not {limit}.")
        limit = int(limit)
        names = [self.protocol] * (self.protocol != "paper") + [f"limit-{limit}"]
        return replace(self, limit=limit, protocol="+".join(names), variants={})


@dataclass(frozen=True, eq=False)
class ClaimedTask(Task):
    """A row that a file of results states, and nobody here has named: facts to show. Its data are never opened."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # as that of every row, which has tables


@dataclass(frozen=True)
class Benchmark:
    """A named list of tasks and the rule that turns their scores into the family's table."""

    name: str
    family: str
    tasks: tuple[str, ...] = field(repr=False)
    rule: str = "mean-of-categories"
    description: str = ""


OPTION_NOUNS: Mapping[Any, str] = {
    str: "text", bool: "true or false", int: "whole number", float: "number", Path: "file", list: "list",
    dict: "table", object: "text or list",
}  # fmt: skip


@dataclass(frozen=True)
class Option:
    """An option of a reader or study, or a parameter of an evaluator: its type, or the values it may have, and what it
    does.

    The type `object` is a text or a list of texts.
    """

    kind: type | tuple[Any, ...]
    about: str

    def __post_init__(self) -> None:
        [kind] = get_args(self.kind) if get_origin(self.kind) is list else [self.kind]
        if not (self.kind if isinstance(self.kind, tuple) else kind in [*OPTION_NOUNS]):
            names = ", ".join(known.__name__ for known in OPTION_NOUNS)
            raise EmbarkError(f"The `kind` of an option must be {names}, or a tuple of values, not {self.kind!r}.")

    def accepts(self, value: Any) -> bool:
        """Whether a value is of the type, or one of the values; tuples are lists."""
        if isinstance(self.kind, tuple):
            return value in self.kind
        if get_origin(self.kind) is list:
            [kind] = get_args(self.kind)
            return isinstance(value, (list, tuple)) and all(type(member) is kind for member in value)
        alike: dict[type, tuple[type, ...]] = {list: (list, tuple), dict: (Mapping,), object: (str, list, tuple)}
        return isinstance(value, alike[self.kind]) if self.kind in alike else type(value) is self.kind

    @property
    def values(self) -> str:
        """What it may be, in words, as TOML has it."""
        if isinstance(self.kind, tuple):
            return ", ".join(str(value).lower() if isinstance(value, bool) else f'"{value}"' for value in self.kind)
        if get_origin(self.kind) is list:
            return f"list of {OPTION_NOUNS[get_args(self.kind)[0]]}s"
        return OPTION_NOUNS[self.kind]


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ModelCard:
    """The facts about a checkpoint. Those of `protocol.identity` decide its vectors, and so their keys."""

    name: str
    revision: str
    loader: str
    modalities: tuple[Modality, ...]
    dim: int | None = None
    similarity: Literal["cosine", "dot", "maxsim"] = "cosine"
    fusion: Literal["sum", "unit-sum", "native"] | None = None  # how mixed items become one vector; None: they cannot
    dtype: str = "float32"  # of the forward pass
    stored: Literal["float16", "float32", "uint8"] = "float32"  # of vectors on disk; uint8: the texts of generators
    frames: int = 8  # taken evenly from a video, both ends included
    sample_rate: int = 16_000
    pixels: Literal["pillow", "cuda"] = "pillow"  # what decodes and resizes JPEGs
    options: Mapping[str, Any] = field(default_factory=dict)  # to the loader
    source: str = ""  # of the checkpoint: a hub id, a folder, an address; empty: it ships with embark
    kind: Literal["embedder", "reranker", "generator"] = "embedder"
    family: str = ""
    parameters: int | None = None
    context: int | None = None  # tokens; several loaders cut there
    image_size: int | None = None  # pixels per side, where it is fixed
    gpus: int | None = None  # that one copy needs, where it is larger than one of them
    instructed: bool = False  # reads a task's instruction
    normalized: bool | None = None  # whether vectors come with length one; None: not stated
    data: float | None = None  # millions of training examples
    trained_on: tuple[str, ...] | None = None  # the training sets that are publicly stated; None: not stated
    objective: str = ""
    architecture: str = ""
    price: float | None = None  # US dollars per million tokens
    image_price: float | None = None  # the same for tokens of images, where they cost otherwise
    license: str = ""
    reference: str = ""
    description: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)  # its names in the papers' tables, by benchmark family
    styles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # its answers to styles: options that differ
    loaded: Mapping[str, Any] = field(default_factory=dict)  # how it was loaded: device, libraries, trusted code
    logit_scale: float | None = None  # what it multiplies similarities by before a softmax; None: not stated
    keyed_as: str = ""  # its name in the keys of stored vectors, where `name` is one that the user gave

    def called(self, name: str) -> ModelCard:
        """The card under a name of the user's, for results and tables; its vectors stay what they are."""
        return self if name == self.name else replace(self, name=name, keyed_as=self.keyed_as or self.name)

    def with_name(self, change: Callable[[str], str]) -> ModelCard:
        """The card of other vectors, whose name is a change of this one's."""
        return replace(self, name=change(self.name), keyed_as=change(self.keyed_as) if self.keyed_as else "")


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Scores:
    """The result of an evaluator: every metric of its kind, the name of the main one, and outcomes of each item.

    `statistic` turns the outcomes into the main score: by default, the mean of `outcomes[main]`. The whole contract is
    the docstring of `embark.seams.Evaluator`.
    """

    metrics: Mapping[str, float]
    main: str
    unit: str  # the side that outcomes are about
    rows: Array  # for each outcome, the position of its item in that side
    outcomes: Mapping[str, Array]
    statistic: str = "mean"
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The main score."""
        return self.metrics[self.main]
