"""Readers over the emoji and speech that come with the package: small tasks of every kind, offline, reproducible."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from inspect import getdoc
from itertools import chain, combinations, compress
from random import Random

import numpy as np

from embark import items
from embark.catalogue import group_values
from embark.hub import Hub
from embark.items import drawing, emoji, tuples
from embark.items.emoji import Emoji
from embark.readers._table import zeroshot_dataset
from embark.seams import Files, Read, Reader
from embark.tasks.omni import DIRECTIONS, KINDS
from embark.types import Array, Dataset, Gold, Groups, Item, Matches, Qrels, Side, Split, Task

COUNTS = ("one", "two", "three", "four", "five", "six")

# ── retrieval ────────────────────────────────────────────────────────────────────────────────────────────────────────


def names(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """From one view of an emoji to another: its name in a language, its image, its video, its spoken name."""
    language = "en" if subset == "default" else subset
    queries = emoji.views(task.options["query"], language)
    documents = emoji.views(task.options["document"])
    queries = {code: item for code, item in queries.items() if code in documents}
    if task.options.get("held_out"):
        queries = {code: item for code, item in queries.items() if emoji.held_out(emoji.table()[code].base, language)}
    return _retrieval(queries, documents, ((code, code) for code in queries))


def robustness(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """English names to the images of a sample, clean and under several corruptions."""
    distinct = list({symbol.art: symbol for symbol in emoji.untoned()}.values())
    sample = Random(task.name).sample(distinct, task.options["sample"])
    queries = {symbol.code: items.text(symbol.name) for symbol in sample}
    clean = _retrieval(queries, {symbol.code: symbol.image for symbol in sample}, ((code, code) for code in queries))
    corrupted = {
        f"document:{condition}": items.side(
            {symbol.code: emoji.corrupted_image(symbol, condition) for symbol in sample}
        )
        for condition in task.options["conditions"]
    }
    return replace(clean, sides={**clean.sides, **corrupted})


def tones(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """From an image with a skin tone to the same image without one."""
    variants = [(symbol, emoji.variant(symbol, tone=task.options["tone"])) for symbol in emoji.untoned()]
    pairs = [(toned, plain) for plain, toned in variants if toned and emoji.differ(plain, toned)]
    queries = {toned.code: toned.image for toned, _ in pairs}
    return _retrieval(queries, emoji.views("image"), ((toned.code, plain.code) for toned, plain in pairs))


def composed_tones(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """An untoned image and the words "… skin tone", to the image with that tone; the queries rotate through tones."""
    queries = {}
    pairs = []
    people = [symbol for symbol in emoji.untoned() if emoji.differ(symbol, emoji.variant(symbol, tone="dark"))]
    for number, person in enumerate(people):
        tone = ("light", "medium", "dark")[number % 3]
        toned = emoji.variant(person, tone=tone)
        assert toned is not None  # a person has all tones or none
        queries[person.code] = items.mixed(person.image, items.text(f"{tone} skin tone"))
        pairs.append((person.code, toned.code))
    return _retrieval(queries, {symbol.code: symbol.image for symbol in emoji.table().values()}, pairs)


def clock_sums(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A clock face and the words "two hours later", to the clock face of that time."""
    faces = emoji.clocks()
    queries = {}
    pairs = []
    for (hour, half), face in faces.items():
        for later in (1, 2, 3):
            query = f"{face.code}-plus-{later}"
            words = f"{COUNTS[later - 1]} hour{'s' if later > 1 else ''} later"
            queries[query] = items.mixed(face.image, items.text(words))
            pairs.append((query, faces[(hour + later) % 12, half].code))
    return _retrieval(queries, {face.code: face.image for face in faces.values()}, pairs)


def pages(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A name to the page it is printed on, or a list of names to the sheet of those images."""
    sheets = {sheet: [symbol.name for symbol in symbols] for sheet, symbols in emoji.sheets().items()}
    if task.options["show"] == "names":
        rng = Random(task.name)
        queries = {sheet: items.text(rng.choice(printed)) for sheet, printed in sheets.items()}
        documents = {sheet: emoji.draw(drawing.page, tuple(printed)) for sheet, printed in sheets.items()}
    else:
        queries = {sheet: items.text(", ".join(printed)) for sheet, printed in sheets.items()}
        documents = {sheet: emoji.sheet_image(sheet) for sheet in sheets}
    return _retrieval(queries, documents, ((sheet, sheet) for sheet in sheets))


# ── labels ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def probe(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A training and a test side with one label per item; forms of one emoji stay on one side."""
    examples = _examples(task)
    return _split(examples, *_class_numbers(examples))


def keywords(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The commonest English keywords as labels, several per item; items without any of them are left out."""
    counts = Counter(word for symbol in emoji.untoned() for word in symbol.keywords)
    top = tuple(sorted(counts, key=lambda word: (-counts[word], word))[: task.options["labels"]])
    symbols = [symbol for symbol in emoji.untoned() if set(top) & set(symbol.keywords)]
    labels = np.array([[word in symbol.keywords for word in top] for symbol in symbols])
    return _split([Example(symbol.code, symbol.image, "", symbol.base) for symbol in symbols], labels, top)


def groups(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Items and the group each belongs to."""
    examples = _examples(task)
    return Dataset({"item": _side(examples)}, Groups(*_class_numbers(examples)))


def zeroshot(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Items, and a prompt for each class and template."""
    examples = _examples(task)
    labels, names = _class_numbers(examples)
    return zeroshot_dataset(
        _side(examples),
        labels,
        names,
        task.templates,
        lambda number, template: names[number] if len(task.templates) == 1 else f"{names[number]}-{template}",
    )


# ── pairs and similarity ─────────────────────────────────────────────────────────────────────────────────────────────


def swaps(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Two images and two names that differ in one attribute."""
    attribute = task.options["attribute"]
    samples = [
        (symbol, other)
        for before, after in task.options["swaps"]
        for symbol in emoji.table().values()
        if getattr(symbol, attribute) == before
        and (other := emoji.variant(symbol, **{attribute: after}))
        and emoji.differ(symbol, other)
    ]
    position = {symbol: number for number, symbol in enumerate(dict.fromkeys(chain(*samples)))}
    pairs = np.array([[position[symbol], position[other]] for symbol, other in samples])
    sides = {
        "image": items.side({symbol.code: symbol.image for symbol in position}),
        "text": items.side({symbol.code: items.text(symbol.name) for symbol in position}),
    }
    return Dataset(sides, Matches(pairs, pairs))


def sts(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Pairs whose similarity is the overlap of their human-written keywords; the same pairs for every view."""
    described = [symbol for symbol in emoji.untoned() if len(symbol.keywords) > 2]  # a flag's only keyword is "flag"
    pool = Random("PocketSTS").sample(described, task.options["pool"])
    side = items.side({symbol.code: emoji.views(task.options["view"])[symbol.code] for symbol in pool})
    left, right, score = (np.array(column) for column in zip(*_keyword_overlaps(tuple(pool)), strict=True))
    return Dataset({"left": side, "right": side}, Gold(left, right, score))


@cache
def _keyword_overlaps(pool: tuple[Emoji, ...]) -> list[tuple[int, int, float]]:
    """(left, right, overlap) of every pair that clearly overlaps, and of half as many that do not at all."""
    words = [{word for phrase in symbol.keywords for word in phrase.split()} for symbol in pool]
    overlaps = [
        (left, right, len(words[left] & words[right]) / max(1, len(words[left] | words[right])))
        for left, right in combinations(range(len(pool)), 2)
        if emoji.differ(pool[left], pool[right])
    ]
    near = [pair for pair in overlaps if pair[2] > 0.15]
    far = [pair for pair in overlaps if not pair[2]]
    return near + Random("PocketSTS").sample(far, len(near) // 2)


# ── multiple choice ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Choices:
    """Queries, documents, and the documents that each query has to choose from: the first is the right one."""

    rng: Random
    documents: dict[str, Item] = field(default_factory=dict)
    queries: dict[str, Item] = field(default_factory=dict)
    candidates: dict[str, Sequence[str]] = field(default_factory=dict)

    def add(self, query: str, item: Item, candidates: Sequence[str]) -> None:
        """Add a query and its candidates."""
        self.queries[query] = item
        self.candidates[query] = candidates

    def dataset(self) -> Dataset:
        """The dataset; candidates are shuffled, so that their order does not show the right one."""
        position = {name: number for number, name in enumerate(self.documents)}
        rows = [
            (number, position[document], int(document == candidates[0]))
            for number, candidates in enumerate(self.candidates.values())
            for document in self.rng.sample(candidates, len(candidates))
        ]
        sides = {"query": items.side(self.queries), "document": items.side(self.documents)}
        return Dataset(sides, Qrels(*np.array(rows).T))


def _multiple_choice(fill: Callable[[Task, str, Choices], None]) -> Callable[[Task, str, str, Hub], Dataset]:
    """The reader of a function that adds queries and documents to choices, for a task and subset."""

    @wraps(fill)
    def read(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
        choices = Choices(Random(task.name))
        fill(task, subset, choices)
        return choices.dataset()

    return read


@_multiple_choice
def clocks(task: Task, subset: str, choices: Choices) -> None:
    """What time is it? Four answers to a clock face, several times with other wrong answers."""
    faces = list(emoji.clocks().values())
    choices.documents |= {face.code: items.text(face.name) for face in faces}
    for face in faces:
        others = [other.code for other in faces if other is not face]
        for turn in range(task.options["turns"]):
            choices.add(f"{face.code}-{turn + 1}", face.image, [face.code, *choices.rng.sample(others, 3)])


@_multiple_choice
def counting(task: Task, subset: str, choices: Choices) -> None:
    """How many? Four numbers for a scene of one to six equal animals or fruits."""
    kinds = [symbol for symbol in emoji.untoned() if symbol.subgroup in ("animal mammal", "food fruit")]
    for number in range(task.options["scenes"]):
        symbol = choices.rng.choice(kinds)
        count = number % 6 + 1
        scene = emoji.draw(drawing.scene, symbol.art, tuple(choices.rng.sample(range(6), count)))
        answers = [count, *choices.rng.sample([other for other in range(1, 7) if other != count], 3)]
        choices.add(f"count-{number:03d}", scene, [f"{symbol.code}-{answer}" for answer in answers])
        for answer in answers:
            words = f"{COUNTS[answer - 1]} picture{'s' if answer > 1 else ''} of {symbol.name}"
            choices.documents[f"{symbol.code}-{answer}"] = items.text(words)


@_multiple_choice
def capitals(task: Task, subset: str, choices: Choices) -> None:
    """The capital of a flag's country among four of its continent; not where the country's name holds its capital."""
    counts = Counter(symbol.image for symbol in emoji.untoned())
    flags = [
        flag
        for flag in emoji.untoned()
        if flag.capital and flag.continent and counts[flag.image] == 1 and flag.capital.lower() not in flag.name.lower()
    ]
    for flag in flags:
        wrong = sorted({other.capital for other in flags if other.continent == flag.continent} - {flag.capital})
        if len(wrong) >= 3:
            answers = [flag.capital, *choices.rng.sample(wrong, 3)]
            choices.add(flag.code, flag.image, answers)
            choices.documents |= {capital: items.text(capital) for capital in answers}


@_multiple_choice
def negation(task: Task, subset: str, choices: Choices) -> None:
    """ "… but not …": another image of the subgroup is right, the named one and one of another group are wrong."""
    subgroups = [members for members in emoji.subgroups().values() if len(members) > 3]
    for number in range(task.options["questions"]):
        named, right = choices.rng.sample(choices.rng.choice(subgroups), 2)
        while not emoji.differ(named, right):
            named, right = choices.rng.sample(choices.rng.choice(subgroups), 2)
        unrelated = choices.rng.choice([symbol for symbol in emoji.untoned() if symbol.group != named.group])
        images = {symbol.code: symbol.image for symbol in (right, named, unrelated)}
        choices.add(f"not-{number:03d}", items.text(f"{named.subgroup} but not {named.name}"), list(images))
        choices.documents |= images


@_multiple_choice
def grounding(task: Task, subset: str, choices: Choices) -> None:
    """A sheet of nine images and a name, to the tile with that name."""
    distinct = [sheet for sheet, symbols in emoji.sheets().items() if len({symbol.image for symbol in symbols}) == 9]
    for sheet in choices.rng.sample(distinct, task.options["sheets"]):
        tiles = {f"{sheet}-{symbol.code}": symbol for symbol in emoji.sheets()[sheet]}
        choices.documents |= {tile: emoji.draw(drawing.tile, symbol.art) for tile, symbol in tiles.items()}
        for tile in choices.rng.sample(list(tiles), 2):
            query = items.mixed(emoji.sheet_image(sheet), items.text(tiles[tile].name))
            choices.add(tile, query, _first(tile, tiles))


@_multiple_choice
def moments(task: Task, subset: str, choices: Choices) -> None:
    """A video of four emoji, one after another, and a name, to the clip of the video that shows it."""
    symbols = choices.rng.sample(list(emoji.motions()), 4 * task.options["films"])
    for number in range(task.options["films"]):
        clips = {f"film-{number:02d}-{symbol.code}": symbol for symbol in symbols[4 * number : 4 * number + 4]}
        frames = {
            clip: [drawing.Drawing(drawing.frame, symbol.art, emoji.motions()[symbol], step, 2) for step in range(2)]
            for clip, symbol in clips.items()
        }
        video = items.media("video", *chain(*frames.values()))
        for clip, symbol in clips.items():
            choices.documents[clip] = items.media("video", *frames[clip])
            choices.add(clip, items.mixed(video, items.text(symbol.name)), _first(clip, clips))


def omni(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """An emoji in one modality, to itself in another, among all modalities of it and of others; a subset: a direction.

    The wrong emoji are those that share most of its group, subgroup and keywords.
    """
    views = {kind: emoji.views(kind) for kind in KINDS}
    cast = {
        code: tuples.Tuple({kind: views[kind][code] for kind in KINDS}, negatives)
        for code, negatives in _omni_negatives(task.options["negatives"]).items()
    }
    return tuples.direction(cast, *DIRECTIONS[subset])


@cache
def _omni_negatives(count: int) -> dict[str, tuple[str, ...]]:
    cast = {symbol.code: symbol for symbol in emoji.motions()}
    facts = {code: {symbol.group, symbol.subgroup, *symbol.keywords} for code, symbol in cast.items()}
    hashes = {code: tuples.picture_hash(symbol.art) for code, symbol in cast.items()}
    return tuples.negatives_by_category(
        cast, facts, count, lambda code, other: tuples.look_alike(hashes[code], hashes[other])
    )


def _first(right: str, candidates: Iterable[str]) -> list[str]:
    """The candidates with the right one before the others."""
    return [right, *(other for other in candidates if other != right)]


# ── building a dataset ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Example:
    """An item with a label; examples of one `base` must not be on both sides of a split."""

    id: str
    item: Item
    label: str
    base: str


def _examples(task: Task) -> list[Example]:
    """The items of the task's view that have the task's label."""
    label = task.options["label"]
    if label == "language":
        return _spoken_names(task)
    motions = {symbol.code: motion for symbol, motion in emoji.motions().items()}
    examples = []
    for code, item in emoji.views(task.options["view"]).items():
        symbol = emoji.table()[code]
        value = motions.get(code) if label == "motion" else getattr(symbol, label)
        if value:
            examples.append(Example(code, item, value, symbol.base))
    return examples


def _spoken_names(task: Task) -> list[Example]:
    """The same number of spoken names for each language: as many as the language with the fewest has."""
    spoken = {language: emoji.views("audio", language) for language in emoji.SPOKEN}
    rarest = min(map(len, spoken.values()))
    return [
        Example(f"{code}-{language}", sounds[code], language, emoji.table()[code].base)
        for language, sounds in spoken.items()
        for code in Random(task.name).sample(list(sounds), rarest)
    ]


def _class_numbers(examples: Sequence[Example]) -> tuple[Array, tuple[str, ...]]:
    """The labels as numbers of their sorted names, and those names."""
    names, numbers = np.unique([example.label for example in examples], return_inverse=True)
    return numbers, tuple(map(str, names))


def _split(examples: Sequence[Example], labels: Array, names: tuple[str, ...]) -> Dataset:
    """About 70% of the bases on the training side, the others on the test side."""
    train = np.array([zlib.crc32(example.base.encode()) % 10 < 7 for example in examples])
    sides = {"train": _side(compress(examples, train)), "test": _side(compress(examples, ~train))}
    return Dataset(sides, Split(labels[train], labels[~train], names))


def _side(examples: Iterable[Example]) -> Side:
    return items.side({example.id: example.item for example in examples})


def _retrieval(queries: Mapping[str, Item], documents: Mapping[str, Item], pairs: Iterable[tuple[str, str]]) -> Dataset:
    """A retrieval dataset. Documents with equal content are all relevant: some flags share one drawing."""
    positions = group_values((item, position) for position, item in enumerate(documents.values()))
    relevant: dict[Item, set[int]] = {}
    for query, document in pairs:
        relevant.setdefault(queries[query], set()).update(positions[documents[document]])
    rows = [(query, position, 1) for query, item in enumerate(queries.values()) for position in sorted(relevant[item])]
    return Dataset({"query": items.side(queries), "document": items.side(documents)}, Qrels(*np.array(rows).T))


# ── the readers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _reader(name: str, read: Read, evaluator: str) -> Reader:
    return Reader(name, getdoc(read) or "", read, (evaluator,), Files())


NAMES = _reader("pocket-names", names, "retrieval")
ROBUSTNESS = _reader("pocket-robustness", robustness, "robustness")
TONES = _reader("pocket-tones", tones, "retrieval")
COMPOSED_TONES = _reader("pocket-composed-tones", composed_tones, "retrieval")
CLOCK_SUMS = _reader("pocket-clock-sums", clock_sums, "retrieval")
PAGES = _reader("pocket-pages", pages, "retrieval")
PROBE = _reader("pocket-probe", probe, "probe")
KEYWORDS = _reader("pocket-keywords", keywords, "multilabel")
GROUPS = _reader("pocket-groups", groups, "clustering")
ZEROSHOT = _reader("pocket-zeroshot", zeroshot, "zeroshot")
SWAPS = _reader("pocket-swaps", swaps, "pairs")
STS = _reader("pocket-sts", sts, "sts")
CLOCKS = _reader("pocket-clocks", clocks, "choice")
COUNTING = _reader("pocket-counting", counting, "choice")
CAPITALS = _reader("pocket-capitals", capitals, "choice")
NEGATION = _reader("pocket-negation", negation, "choice")
GROUNDING = _reader("pocket-grounding", grounding, "choice")
MOMENTS = _reader("pocket-moments", moments, "choice")
OMNI = _reader("pocket-omni", omni, "choice")
