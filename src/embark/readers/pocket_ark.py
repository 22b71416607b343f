"""The reader of the pocket ARK: questions about emoji, each with one right picture, its skills and its demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import getdoc
from itertools import cycle, islice, product
from random import Random

import numpy as np

from embark import items
from embark.hub import Hub
from embark.items import drawing, emoji
from embark.items.emoji import Emoji
from embark.readers.pocket import COUNTS
from embark.seams import Files, Reader
from embark.types import Dataset, Item, Qrels, Task

KNOWLEDGE, CONCEPTS, DETAIL = "knowledge reasoning", "conceptual abstraction", "fine-grained visual reasoning"
LOGIC, SPACE, SYMBOLS = "logical reasoning", "spatial reasoning", "symbolic reasoning"
PERCEPTION, KNOWING, REASONING, BOTH = "perception-only", "knowledge-intensive", "reasoning-intensive", "both"
TILES = {"left": (3, 5), "right": (5, 3), "above": (1, 7), "below": (7, 1)}  # of the first and the second thing


@dataclass(frozen=True)
class Question:
    """A query, the name of its right picture, and its labels. `answer` is the query in words that one can see."""

    item: Item
    right: str
    skills: tuple[str, ...]
    demand: str
    answer: str


@dataclass(frozen=True)
class Picture:
    """A picture of a gallery, and its description in words."""

    item: Item
    words: str


@dataclass
class Questions:
    """The questions of a subtype, and its gallery."""

    topic: str
    rng: Random
    pictures: dict[str, Picture] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)

    def add(self, item: Item, right: str, skills: tuple[str, ...], demand: str, answer: str = "") -> None:
        """Add a question; its answer in words is the description of its picture, unless another is given."""
        number = f"{self.topic}-{len(self.questions):02d}"
        self.questions[number] = Question(item, right, skills, demand, answer or self.pictures[right].words)


def read(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """The queries of a subtype with their labels, and its gallery."""
    subtype = questions(task)
    position = {name: number for number, name in enumerate(subtype.pictures)}
    rows = list(subtype.questions.values())
    right = np.array([position[question.right] for question in rows])
    return Dataset(
        {
            "query": items.side({name: question.item for name, question in subtype.questions.items()}),
            "document": items.side({name: picture.item for name, picture in subtype.pictures.items()}),
        },
        Qrels(np.arange(len(rows)), right, np.ones(len(rows), np.int64)),
        about={
            "query": {
                "skills": [question.skills for question in rows],
                "demand": [question.demand for question in rows],
            }
        },
    )


def questions(task: Task) -> Questions:
    """The questions and pictures of a subtype, always the same ones."""
    topic = task.options["topic"]
    subtype = Questions(topic, Random(task.name))
    TOPICS[topic](subtype, task.options["queries"])
    return subtype


def _counting(subtype: Questions, count: int) -> None:
    for symbol in subtype.rng.sample(_things(), 16):
        for number in range(1, 7):
            tiles = tuple(subtype.rng.sample(range(6), number))
            scene = emoji.draw(drawing.arrangement, (symbol.art,) * number, tiles, 2)
            words = f"{COUNTS[number - 1]} picture{'s' if number > 1 else ''} of {symbol.name}"
            subtype.pictures[f"{symbol.code}-{number}"] = Picture(scene, words)
    for turn, right in enumerate(subtype.rng.sample(list(subtype.pictures), count)):
        words = subtype.pictures[right].words
        number = COUNTS.index(words.split()[0]) + 1
        if turn % 2 or number == 1:
            subtype.add(items.text(words), right, (DETAIL,), PERCEPTION)
        else:
            first = subtype.rng.randrange(1, number)
            thing = words.partition(" of ")[2]
            words = f"{COUNTS[first - 1]} picture{'s' if first > 1 else ''} of {thing}"
            words += f" and {COUNTS[number - first - 1]} more"
            subtype.add(items.text(words), right, (DETAIL, SYMBOLS), REASONING)


def _spatial(subtype: Questions, count: int) -> None:
    things = subtype.rng.sample(_things(), 32)
    pairs = list(zip(things[::2], things[1::2], strict=True))
    for (first, second), place in product(pairs, ("left", "right", "above", "below")):
        drawn = emoji.draw(drawing.arrangement, (first.art, second.art), TILES[place])
        subtype.pictures[f"{first.code}-{place}-{second.code}"] = Picture(drawn, _where(first, place, second))
    opposite = {"left": "right", "right": "left", "above": "below", "below": "above"}
    for turn, right in enumerate(subtype.rng.sample(list(subtype.pictures), count)):
        (first, second), place = list(product(pairs, opposite))[list(subtype.pictures).index(right)]
        words = _where(second, opposite[place], first) if turn % 2 else subtype.pictures[right].words
        subtype.add(items.text(words), right, (SPACE,), REASONING)


def _composition(subtype: Questions, count: int) -> None:
    forms = [
        (person, [emoji.variant(person, tone=tone) for tone in ("light", "medium", "dark")])
        for person in emoji.untoned()
    ]
    people = [
        (person, toned)
        for person, toned in forms
        if None not in toned and len({person.art, *(form.art for form in toned if form)}) == 4
    ]
    chosen = subtype.rng.sample(people, 20)
    for person, toned in chosen:
        for form in (person, *toned):
            assert form is not None
            subtype.pictures[form.code] = Picture(form.image, form.name)
    for turn, (person, toned) in enumerate(islice(cycle(chosen), count)):
        form = toned[(turn % len(chosen) + turn // len(chosen)) % 3]  # another tone in the second round
        assert form is not None
        item = items.mixed(person.image, items.text(f"{form.tone} skin tone"))
        subtype.add(item, form.code, (DETAIL,), PERCEPTION)


def _negation(subtype: Questions, count: int) -> None:
    shelves = [
        list({symbol.art: symbol for symbol in members}.values())
        for members in emoji.subgroups().values()
        if members[0].group in ("Animals & Nature", "Food & Drink")
    ]
    fours = [subtype.rng.sample(members, 4) for members in shelves if len(members) >= 4]
    subtype.pictures |= {symbol.code: Picture(symbol.image, symbol.name) for four in fours for symbol in four}
    members = {symbol: four for four in fours for symbol in four}
    for right in subtype.rng.sample(list(members), count):
        first, second, third = (symbol.name for symbol in members[right] if symbol is not right)
        words = f"{right.subgroup} but not {first}, {second} or {third}"
        subtype.add(items.text(words), right.code, (LOGIC, CONCEPTS), REASONING)


def _clocks(subtype: Questions, count: int) -> None:
    faces = emoji.clocks()
    subtype.pictures |= {face.code: Picture(face.image, face.name) for face in faces.values()}
    for turn, ((hour, half), face) in enumerate(islice(cycle(faces.items()), count)):
        later = 1 + turn % 3
        words = f"{COUNTS[later - 1]} hour{'s' if later > 1 else ''} later"
        right = faces[(hour + later) % 12, half].code
        if turn < count // 2:
            subtype.add(items.mixed(face.image, items.text(words)), right, (LOGIC, SYMBOLS, DETAIL), REASONING)
        else:
            subtype.add(items.text(f"it is {face.name} now; the clock {words}"), right, (LOGIC, SYMBOLS), REASONING)


def _capitals(subtype: Questions, count: int) -> None:
    counts = Counter(symbol.art for symbol in emoji.untoned())
    capitals = Counter(symbol.capital for symbol in emoji.untoned())
    flags = [
        flag
        for flag in emoji.untoned()
        if flag.capital and flag.continent and counts[flag.art] == 1 and capitals[flag.capital] == 1
        if flag.capital.lower() not in flag.name.lower()
    ]
    subtype.pictures |= {flag.code: Picture(flag.image, flag.name) for flag in flags}
    for turn, flag in enumerate(subtype.rng.sample(flags, count)):
        if turn % 5 < 3:
            words = f"the flag of the country whose capital is {flag.capital}"
            subtype.add(items.text(words), flag.code, (KNOWLEDGE,), KNOWING)
        else:
            neighbors = [other for other in flags if other.continent == flag.continent and other is not flag]
            other = subtype.rng.choice(neighbors)
            place = "first" if flag.capital < other.capital else "last"
            names = subtype.rng.sample([flag.capital, other.capital], 2)
            words = f"the flag of the country whose capital comes {place} in the alphabet: {names[0]} or {names[1]}"
            subtype.add(items.text(words), flag.code, (KNOWLEDGE, LOGIC), BOTH)


TOPICS: dict[str, Callable[[Questions, int], None]] = {
    "Counting": _counting,
    "Spatial": _spatial,
    "Composition": _composition,
    "Negation": _negation,
    "Clocks": _clocks,
    "Capitals": _capitals,
}


def _things() -> list[Emoji]:
    """Animals and fruits of different drawings."""
    symbols = [symbol for symbol in emoji.untoned() if symbol.subgroup in ("animal mammal", "food fruit")]
    return list({symbol.art: symbol for symbol in symbols}.values())


def _where(first: Emoji, place: str, second: Emoji) -> str:
    side = f"to the {place} of" if place in ("left", "right") else place
    return f"{first.name} {side} {second.name}"


ARK = Reader("pocket-ark", getdoc(read) or "", read, evaluators=("retrieval",), files=Files())
