"""Readers over the emoji and speech that come with the package: small tasks of every kind, offline, reproducible."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from random import Random

import numpy as np

from embark.data import drawing, emoji, items
from embark.data.emoji import Emoji
from embark.data.fetch import Hub
from embark.types import Array, Classes, Dataset, Gold, Groups, Item, Matches, Qrels, Side, Split, Task

VERSION = 1

COUNTS = ("one", "two", "three", "four", "five", "six")

# ── retrieval ────────────────────────────────────────────────────────────────────────────────────────────────────────


def names(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """From one view of an emoji to another: its name in a language, its picture, its clip, its spoken name."""
    language = "en" if subset == "default" else subset
    queries, documents = emoji.views(task.options["query"], language), emoji.views(task.options["document"])
    queries = {code: item for code, item in queries.items() if code in documents}
    if task.options.get("held_out"):
        queries = {code: item for code, item in queries.items() if emoji.held_out(emoji.table()[code].base, language)}
    return _retrieval(queries, documents, ((code, code) for code in queries))


def robustness(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """English names to the pictures of a sample, clean and made harder to see in several ways."""
    distinct = list({one.art: one for one in emoji.untoned()}.values())
    sample = Random(task.name).sample(distinct, task.options["sample"])
    queries = {one.code: items.text(one.name) for one in sample}
    clean = _retrieval(queries, {one.code: one.image for one in sample}, ((code, code) for code in queries))
    harder = {
        f"document:{condition}": _side({one.code: emoji.corrupted(one, condition) for one in sample})
        for condition in task.options["conditions"]
    }
    return replace(clean, sides={**clean.sides, **harder})


def tones(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """From a picture with a skin tone to the same picture without one."""
    toned = [(one, emoji.swapped(one, tone=task.options["tone"])) for one in emoji.untoned()]
    pairs = [(other, one) for one, other in toned if other and emoji.differ(one, other)]
    queries = {one.code: one.image for one, _ in pairs}
    return _retrieval(queries, emoji.views("image"), ((one.code, other.code) for one, other in pairs))


def composed_tones(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """An untoned picture and the words "… skin tone", to the picture with that tone; tones take turns."""
    queries, pairs = {}, []
    people = [one for one in emoji.untoned() if emoji.differ(one, emoji.swapped(one, tone="dark"))]
    for at, one in enumerate(people):
        tone = ("light", "medium", "dark")[at % 3]
        other = emoji.swapped(one, tone=tone)
        assert other is not None  # the tones of a person come together
        queries[one.code] = items.mixed(one.image, items.text(f"{tone} skin tone"))
        pairs.append((one.code, other.code))
    return _retrieval(queries, {one.code: one.image for one in emoji.table().values()}, pairs)


def clock_sums(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A clock face and the words "two hours later", to the clock face of that time."""
    faces = emoji.clocks()
    queries, pairs = {}, []
    for (hour, half), face in faces.items():
        for later in (1, 2, 3):
            words = f"{COUNTS[later - 1]} hour{'s' if later > 1 else ''} later"
            queries[f"{face.code}-plus-{later}"] = items.mixed(face.image, items.text(words))
            pairs.append((f"{face.code}-plus-{later}", faces[(hour + later) % 12, half].code))
    return _retrieval(queries, {face.code: face.image for face in faces.values()}, pairs)


def pages(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A name to the page it is printed on, or a list of names to the sheet of those pictures."""
    rng, sheets = Random(task.name), emoji.sheets()
    if task.options["show"] == "names":
        queries = {name: items.text(rng.choice(shown).name) for name, shown in sheets.items()}
        drawn = {name: emoji.draw(drawing.page, tuple(one.name for one in shown)) for name, shown in sheets.items()}
    else:
        queries = {name: items.text(", ".join(one.name for one in shown)) for name, shown in sheets.items()}
        drawn = {name: emoji.sheet(name) for name in sheets}
    return _retrieval(queries, drawn, ((name, name) for name in sheets))


# ── labels ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def probe(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A training and a test side with one label an item; forms of one emoji stay on one side."""
    examples = _examples(task)
    labels, names = _numbered([one.label for one in examples])
    train = np.array([_trains(one.base) for one in examples])
    return Dataset(_split_sides(examples, train), Split(labels[train], labels[~train], names))


def keywords(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The commonest English keywords as labels, several an item; items without any of them are left out."""
    counts = Counter(word for one in emoji.untoned() for word in one.keywords)
    top = tuple(sorted(counts, key=lambda word: (-counts[word], word))[: task.options["labels"]])
    shown = [one for one in emoji.untoned() if set(top) & set(one.keywords)]
    labels = np.array([[word in one.keywords for word in top] for one in shown])
    train = np.array([_trains(one.base) for one in shown])
    examples = [Example(one.code, one.image, "", one.base) for one in shown]
    return Dataset(_split_sides(examples, train), Split(labels[train], labels[~train], top))


def groups(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Items and the group each belongs to."""
    examples = _examples(task)
    labels, names = _numbered([one.label for one in examples])
    return Dataset({"item": _side({one.id: one.item for one in examples})}, Groups(labels, names))


def zeroshot(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Items, and a prompt for each class and template."""
    examples = _examples(task)
    labels, names = _numbered([one.label for one in examples])
    prompts = {
        name if len(task.templates) == 1 else f"{name}-{at}": items.text(template.replace("{}", name))
        for name in names
        for at, template in enumerate(task.templates)
    }
    owners = np.repeat(np.arange(len(names)), len(task.templates))
    sides = {"item": _side({one.id: one.item for one in examples}), "prompt": _side(prompts)}
    return Dataset(sides, Classes(labels, owners, names))


# ── pairs and similarity ─────────────────────────────────────────────────────────────────────────────────────────────


def swaps(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Two pictures and two names that differ in one attribute."""
    attribute = task.options["attribute"]
    samples = [
        (one, other)
        for a, b in task.options["swaps"]
        for one in emoji.table().values()
        if getattr(one, attribute) == a and (other := emoji.swapped(one, **{attribute: b})) and emoji.differ(one, other)
    ]
    shown = dict.fromkeys(one for sample in samples for one in sample)
    where = {one: at for at, one in enumerate(shown)}
    rows = np.array([[where[one], where[other]] for one, other in samples])
    sides = {
        "image": _side({one.code: one.image for one in shown}),
        "text": _side({one.code: items.text(one.name) for one in shown}),
    }
    return Dataset(sides, Matches(rows, rows))


def sts(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Pairs whose similarity is the overlap of their human-written keywords; the same pairs for every view."""
    told = [one for one in emoji.untoned() if len(one.keywords) > 2]  # a flag's only keyword is "flag"
    pool = Random("PocketSTS").sample(told, task.options["pool"])
    shown = {one.code: emoji.views(task.options["view"])[one.code] for one in pool}
    pairs = _overlapping(tuple(pool))
    left, right, score = (np.array(column) for column in zip(*pairs, strict=True))
    return Dataset({"left": _side(shown), "right": _side(shown)}, Gold(left, right, score))


@cache
def _overlapping(pool: tuple[Emoji, ...]) -> list[tuple[int, int, float]]:
    """Every pair that clearly overlaps, and half as many that do not at all."""
    words = [{word for phrase in one.keywords for word in phrase.split()} for one in pool]
    scored = [
        (a, b, len(words[a] & words[b]) / max(1, len(words[a] | words[b])))
        for a, b in combinations(range(len(pool)), 2)
        if emoji.differ(pool[a], pool[b])
    ]
    near = [pair for pair in scored if pair[2] > 0.15]
    far = [pair for pair in scored if not pair[2]]
    return near + Random("PocketSTS").sample(far, len(near) // 2)


# ── multiple choice ──────────────────────────────────────────────────────────────────────────────────────────────────


def clocks(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """What time is it? Four answers to a clock face, several times with other wrong answers."""
    rng, faces = Random(task.name), list(emoji.clocks().values())
    queries, offers = {}, {}
    for face in faces:
        for turn in range(task.options["turns"]):
            asked = f"{face.code}-{turn + 1}"
            queries[asked] = face.image
            offers[asked] = [face.code, *rng.sample([other.code for other in faces if other is not face], 3)]
    return _choice(rng, queries, {face.code: items.text(face.name) for face in faces}, offers)


def counting(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """How many? Four numbers for a scene of one to six equal animals or fruits."""
    rng = Random(task.name)
    kinds = [one for one in emoji.untoned() if one.subgroup in ("animal mammal", "food fruit")]
    queries, documents, offers = {}, {}, {}
    for at in range(task.options["scenes"]):
        one, count = rng.choice(kinds), at % 6 + 1
        asked = f"count-{at:03d}"
        queries[asked] = emoji.draw(drawing.scene, one.art, tuple(rng.sample(range(6), count)))
        answers = [count, *rng.sample([other for other in range(1, 7) if other != count], 3)]
        offers[asked] = [f"{one.code}-{answer}" for answer in answers]
        for answer in answers:
            words = f"{COUNTS[answer - 1]} picture{'s' if answer > 1 else ''} of {one.name}"
            documents[f"{one.code}-{answer}"] = items.text(words)
    return _choice(rng, queries, documents, offers)


def capitals(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The capital of a flag's country among three more of its continent; ones that the name gives away are out."""
    rng, seen = Random(task.name), Counter(one.image for one in emoji.untoned())
    flags = [
        one
        for one in emoji.untoned()
        if one.capital and one.continent and seen[one.image] == 1 and one.capital.lower() not in one.name.lower()
    ]
    queries, offers = {}, {}
    for flag in flags:
        wrong = sorted({other.capital for other in flags if other.continent == flag.continent} - {flag.capital})
        if len(wrong) >= 3:
            queries[flag.code] = flag.image
            offers[flag.code] = [flag.capital, *rng.sample(wrong, 3)]
    documents = {capital: items.text(capital) for offer in offers.values() for capital in offer}
    return _choice(rng, queries, documents, offers)


def negation(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """ "… but not …": another picture of the subgroup is right, the named one and a stranger are wrong."""
    rng, queries, offers = Random(task.name), {}, {}
    documents: dict[str, Item] = {}
    subgroups = [members for members in emoji.subgroups().values() if len(members) > 3]
    for at in range(task.options["questions"]):
        named, right = rng.sample(rng.choice(subgroups), 2)
        while not emoji.differ(named, right):
            named, right = rng.sample(rng.choice(subgroups), 2)
        stranger = rng.choice([one for one in emoji.untoned() if one.group != named.group])
        asked = f"not-{at:03d}"
        queries[asked] = items.text(f"{named.subgroup} but not {named.name}")
        offers[asked] = [right.code, named.code, stranger.code]
        documents |= {one.code: one.image for one in (right, named, stranger)}
    return _choice(rng, queries, documents, offers)


def grounding(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A sheet of nine pictures and a name, to the cut-out of the picture that is meant."""
    rng, queries, offers = Random(task.name), {}, {}
    documents: dict[str, Item] = {}
    full = [name for name, shown in emoji.sheets().items() if len({one.image for one in shown}) == 9]
    for name in rng.sample(full, task.options["sheets"]):
        shown = emoji.sheets()[name]
        documents |= {f"{name}-{one.code}": emoji.draw(drawing.cell, one.art) for one in shown}
        for one in rng.sample(shown, 2):
            asked = f"{name}-{one.code}"
            queries[asked] = items.mixed(emoji.sheet(name), items.text(one.name))
            offers[asked] = [asked, *(f"{name}-{other.code}" for other in shown if other is not one)]
    return _choice(rng, queries, documents, offers)


def moments(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A film of four emoji, one after another, and a name, to the part of the film that shows it."""
    rng, queries, offers = Random(task.name), {}, {}
    documents: dict[str, Item] = {}
    actors = rng.sample(list(emoji.cast()), 4 * task.options["films"])
    for at in range(task.options["films"]):
        parts = {f"film-{at:02d}-{one.code}": one for one in actors[4 * at : 4 * at + 4]}
        moves = [(one.art, emoji.cast()[one], step) for one in parts.values() for step in range(2)]
        frames = [drawing.Drawn(drawing.frame, *move, 2) for move in moves]
        film = items.media("video", *frames)
        documents |= {part: items.media("video", *frames[2 * k : 2 * k + 2]) for k, part in enumerate(parts)}
        for part, one in parts.items():
            queries[part] = items.mixed(film, items.text(one.name))
            offers[part] = [part, *(other for other in parts if other != part)]
    return _choice(rng, queries, documents, offers)


def omni(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """One emoji in one modality, to itself in another among five of its subgroup; a subset is a direction."""
    asked, offered = subset.split("-to-")
    troupes: dict[str, list[str]] = {}
    for one in emoji.cast():
        troupes.setdefault(one.subgroup, []).append(one.code)
    offers = {
        code: [code, *(other for other in members if other != code)] for members in troupes.values() for code in members
    }
    queries, documents = emoji.views(asked), emoji.views(offered)
    cast = {code: queries[code] for code in offers}
    return _choice(Random(task.name), cast, {code: documents[code] for code in offers}, offers)


# ── how a dataset is put together ────────────────────────────────────────────────────────────────────────────────────


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
        return _languages(task)
    found, motions = [], {one.code: motion for one, motion in emoji.cast().items()}
    for code, item in emoji.views(task.options["view"]).items():
        one = emoji.table()[code]
        value = motions.get(code) if label == "motion" else getattr(one, label)
        found += [Example(code, item, value, one.base)] if value else []
    return found


def _languages(task: Task) -> list[Example]:
    """As many spoken names of each language as the rarest has."""
    spoken = {language: emoji.views("audio", language) for language in emoji.SPOKEN}
    rarest = min(map(len, spoken.values()))
    return [
        Example(f"{code}-{language}", clips[code], language, emoji.table()[code].base)
        for language, clips in spoken.items()
        for code in Random(task.name).sample(list(clips), rarest)
    ]


def _trains(base: str) -> bool:
    return zlib.crc32(base.encode()) % 10 < 7


def _split_sides(examples: Sequence[Example], train: Array) -> dict[str, Side]:
    return {
        "train": _side({one.id: one.item for one, first in zip(examples, train, strict=True) if first}),
        "test": _side({one.id: one.item for one, first in zip(examples, train, strict=True) if not first}),
    }


def _numbered(labels: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Labels as numbers of their sorted names."""
    names, numbers = np.unique(labels, return_inverse=True)
    return numbers, tuple(map(str, names))


def _side(shown: Mapping[str, Item]) -> Side:
    return Side(tuple(shown), tuple(shown.values()))


def _retrieval(queries: Mapping[str, Item], documents: Mapping[str, Item], pairs: Iterable[tuple[str, str]]) -> Dataset:
    """Relevance holds for equal content: some flags share one drawing, and either is then a right answer."""
    twins: dict[Item, list[int]] = {}
    for at, item in enumerate(documents.values()):
        twins.setdefault(item, []).append(at)
    wanted: dict[Item, set[int]] = {}
    for query, document in pairs:
        wanted.setdefault(queries[query], set()).update(twins[documents[document]])
    rows = [(at, document) for at, item in enumerate(queries.values()) for document in sorted(wanted[item])]
    query, document = np.array(rows).T
    sides = {"query": _side(queries), "document": _side(documents)}
    return Dataset(sides, Qrels(query, document, np.ones(len(rows), np.int64)))


def _choice(
    rng: Random, queries: Mapping[str, Item], documents: Mapping[str, Item], offers: Mapping[str, Sequence[str]]
) -> Dataset:
    """The first of each offer is right; offers are shuffled, so that their order gives nothing away."""
    where = {name: at for at, name in enumerate(documents)}
    rows = [
        (at, where[offered], int(offered == offers[asked][0]))
        for at, asked in enumerate(queries)
        for offered in rng.sample(list(offers[asked]), len(offers[asked]))
    ]
    query, document, grade = np.array(rows).T
    return Dataset({"query": _side(queries), "document": _side(documents)}, Qrels(query, document, grade))
