"""The plan: every distinct vector once, whichever tasks ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import embark
from embark import items
from embark.items import as_keys
from embark.models.adapt import as_encoder
from embark.models.encoder import Encoder, Tower, Towers, render_item, renders_plainly
from embark.planning import Count, Demand, Need, Plan, outline, plan, task_demand, workload
from embark.protocol import vector_space
from embark.run.models import renamed
from embark.tasks import get_tasks
from embark.types import (
    MODALITIES,
    Array,
    Dataset,
    Item,
    Media,
    ModelCard,
    Pool,
    Qrels,
    Rendered,
    Side,
    Source,
    Style,
    Task,
    Text,
    role_of,
)


class Plain(Encoder):
    """Sees the text alone."""

    card = ModelCard("test/plain", "1", "none", ("text",), dim=2)


class Instructed(Encoder):
    """Puts the instruction before the text."""

    card = ModelCard("test/instructed", "1", "none", ("text",), dim=2)

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Rendered((Text(instruction), *item.parts) if instruction else item.parts)


def asks(encoder: Encoder, name: str, instructions: Mapping[str, str] | None = None, **sides: str) -> Demand:
    """A task whose sides are words."""
    source = Source("test/data", "1")
    task = Task(name, "Test", "retrieval", "none", source, "ndcg_at_10", "Retrieval", ("text",))
    task = replace(task, instructions=instructions or {})
    made = {role: Side(words.split(), tuple(map(items.text, words.split()))) for role, words in sides.items()}
    none = np.zeros(0, np.int64)
    return task_demand(task, "test", "default", Dataset(made, Qrels(none, none, none)), encoder)


def nothing(keys: Array) -> Array:
    return np.zeros(len(keys), bool)


def texts(made: Plan) -> list[str]:
    return [need.item.parts[0].text for need in made.needs]  # type: ignore[union-attr]


def test_an_item_that_two_tasks_share_is_planned_once() -> None:
    made = plan(
        [asks(Plain(), "A", query="a b", document="c d"), asks(Plain(), "B", query="e", document="d c b")], nothing
    )
    assert texts(made) == ["a", "b", "c", "d", "e"]
    assert [(need.demand, need.side, need.row) for need in made.needs] == [
        (0, "query", 0), (0, "query", 1), (0, "document", 0), (0, "document", 1), (1, "query", 0),
    ]  # fmt: skip
    assert len({need.key for need in made.needs}) == 5


def test_query_and_document_are_one_vector_to_an_encoder_that_ignores_roles() -> None:
    made = plan([asks(Plain(), "A", {"query": "Find it."}, query="a b", document="a b")], nothing)
    assert texts(made) == ["a", "b"]
    assert made.total.items == 4


def test_query_and_document_are_two_vectors_to_an_encoder_that_reads_the_instruction() -> None:
    made = plan([asks(Instructed(), "A", {"query": "Find it."}, query="a b", document="a b")], nothing)
    assert texts(made) == ["a", "b", "a", "b"]
    assert [need.instruction for need in made.needs] == ["Find it.", "Find it.", None, None]
    assert made.needs[0].render(Instructed()) == Rendered((Text("Find it."), Text("a")))
    assert made.needs[2].render(Instructed()) == Rendered((Text("a"),))


def test_different_instructions_are_different_vectors_and_equal_ones_are_not() -> None:
    demands = [
        asks(Instructed(), name, {"query": said}, query="a")
        for name, said in (("A", "One."), ("B", "Two."), ("C", "One."))
    ]
    assert [need.demand for need in plan(demands, nothing).needs] == [0, 1]


def test_a_subset_may_have_an_instruction_of_its_own() -> None:
    words = {"query": "Find it.", "query:default": "Find the sound.", "query:other": "Find the film."}
    made = plan([asks(Instructed(), "A", words, query="a", document="a")], nothing)
    assert [need.instruction for need in made.needs] == ["Find the sound.", None]
    usual = asks(Instructed(), "B", {"query": "Find the sound."}, query="a")
    assert made.needs[0].key == usual.keys["query"].tolist()[0]


def test_variants_of_a_side_play_its_role() -> None:
    data = {"document": "a", "document:noise": "a b"}
    made = plan([asks(Instructed(), "A", {"document": "Represent it."}, **data)], nothing)
    assert [(need.side, need.instruction) for need in made.needs] == [
        ("document", "Represent it."),
        ("document:noise", "Represent it."),
    ]
    assert made.needs[1].render(Instructed()) == Rendered((Text("Represent it."), Text("b")))


def test_two_encoders_share_no_keys() -> None:
    one, other = (asks(encoder, "A", query="a").keys["query"].tolist() for encoder in (Plain(), Instructed()))
    assert one != other


def test_counts_of_a_small_case() -> None:
    demands = [
        asks(Plain(), "A", query="a a b", document="b c"),
        asks(Plain(), "B", query="c d", document="e e a"),
        asks(Plain(), "C", query="a b"),
    ]
    known = {demands[0].keys["query"][2].tobytes(), demands[1].keys["query"][1].tobytes()}  # b and d

    def stored(keys: Array) -> Array:
        return np.array([key in known for key in keys.tolist()], bool)

    made = plan(demands, stored)
    assert made.counts == (
        Count(items=5, unique=3, stored=1, first=3, missing=2),
        Count(items=5, unique=4, stored=1, first=2, missing=1),
        Count(items=2, unique=2, stored=1, first=0, missing=0),
    )
    assert texts(made) == ["a", "c", "e"]
    assert made.total == Count(items=12, unique=5, stored=2, first=5, missing=3)


def test_nothing_is_missing_when_everything_is_stored() -> None:
    made = plan([asks(Plain(), "A", query="a b")], lambda keys: np.ones(len(keys), bool))
    assert made.needs == ()
    assert made.total == Count(2, 2, 2, 2, 0)


def test_no_demands_make_an_empty_plan() -> None:
    made = plan([], nothing)
    assert (made.needs, made.counts, made.total) == ((), (), Count(0, 0, 0, 0, 0))


@pytest.mark.parametrize("words", ["a", "a b c", "b a a"])
def test_keys_stand_in_the_order_of_the_items(words: str) -> None:
    found = asks(Plain(), "A", query=words).keys["query"]
    singly = [asks(Plain(), "A", query=word).keys["query"][0].tobytes() for word in words.split()]
    assert found.tolist() == as_keys(singly).tolist()


def test_an_encoder_made_of_functions_ignores_roles(tiny: embark.Encoder) -> None:
    assert len(plan([asks(tiny, "A", {"query": "Find it."}, query="red", document="red")], nothing).needs) == 1


# ── keys of whole sides ──────────────────────────────────────────────────────────────────────────────────────────────


class Prefixed(Towers):
    """Puts a word before every item, which a style's pixels do not change."""

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Rendered((Text(role), *item.parts), "prefixed")


def towers(kind: type[Towers], **facts: object) -> Towers:
    tower = Tower(lambda values: np.zeros((len(values), 2)))
    card = ModelCard("test/towers", "1", "none", MODALITIES, dim=2, styles={"Paper": facts} if facts else {})
    return kind(card, dict.fromkeys(MODALITIES, tower))


ENCODERS = (Plain(), Instructed(), towers(Towers), towers(Towers, pixels="squash"), towers(Prefixed, pixels="squash"))
part = st.text(st.characters(), max_size=8).map(Text) | st.builds(
    Media,
    st.sampled_from(["image", "audio", "video"]),
    st.lists(st.binary(max_size=4), min_size=1, max_size=3).map(tuple),
)
some_items = st.lists(st.lists(part, min_size=1, max_size=3).map(tuple).map(Item), max_size=40)
styles = st.none() | st.builds(Style, st.sampled_from(["Paper", "Other"]), frames=st.sampled_from([None, 8, 5]))


@given(some_items, st.sampled_from(ENCODERS), styles, st.none() | st.just("Find it."))
def test_keys_of_a_side_are_those_of_its_rendered_items(
    contents: list[Item], encoder: Encoder, style: Style | None, instruction: str | None
) -> None:
    task = Task("A", "Test", "retrieval", "none", Source("test/data", "1"), "ndcg_at_10", "Retrieval", MODALITIES)
    task = replace(task, style=style, instructions={"query": instruction} if instruction else {})
    none = np.zeros(0, np.int64)
    data = Dataset({"query": Side([str(row) for row in range(len(contents))], contents)}, Qrels(none, none, none))
    demand = task_demand(task, "test", "default", data, encoder)
    space = vector_space(encoder.card)
    rendered = [render_item(encoder, item, "query", instruction, style) for item in contents]
    assert demand.keys["query"].tolist() == [items.key(space, each) for each in rendered]


@pytest.mark.parametrize("modalities", [{"text"}, {"image"}, {"video"}, {"text", "video"}])
def test_only_what_changes_no_item_renders_plainly(modalities: set[embark.types.Modality]) -> None:
    pictures = {"image", "video"}
    paper = Style("Paper", frames=5)
    expected = [
        (True, "video" not in modalities),
        (False, False),
        (True, "video" not in modalities),
        (True, not pictures & modalities),
        (False, False),
    ]
    assert [tuple(renders_plainly(encoder, style, modalities) for style in (None, paper)) for encoder in ENCODERS] == [
        tuple(map(bool, pair)) for pair in expected
    ]


def patched() -> Encoder:
    encoder = towers(Towers)
    encoder.render = Instructed().render
    return encoder


class Unrelated:
    """Inherits nothing of ours."""

    card = ModelCard("test/towers", "1", "none", MODALITIES, dim=2)

    def embed(self, batch: Any) -> Any:
        return np.zeros((len(batch), 2))


class Own(Unrelated):
    render = Instructed.render


class Inheriting(Towers):
    render = Instructed.render


class Wrapping(Encoder):
    """Another encoder, with a `render` of its own."""

    def __init__(self, model: Encoder) -> None:
        self.model = model
        self.card = model.card

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        rendered = self.model.render(item, role, instruction)
        return replace(rendered, parts=(Text(instruction or ""), *rendered.parts))


class Passing:
    """Passes on to another encoder all but `render`."""

    def __init__(self, model: Encoder) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Instructed().render(item, role, instruction)


RENDERING = {
    "inherits": lambda: towers(Inheriting),
    "patched": patched,
    "inherits nothing": Own,
    "wraps": lambda: Wrapping(towers(Towers)),
    "passes on": lambda: Passing(towers(Towers)),
    "stands beside": lambda: renamed(as_encoder(Own()), "test/towers"),
}


@pytest.mark.parametrize("case", RENDERING)
def test_an_encoder_with_a_render_of_its_own_has_keys_of_its_own(case: str) -> None:
    encoder = as_encoder(RENDERING[case]())
    words = {"query": "Find it."}
    [own], [usual] = (asks(model, "A", words, query="a").keys["query"].tolist() for model in (encoder, towers(Towers)))
    assert own == items.key(vector_space(encoder.card), Rendered((Text("Find it."), Text("a"))))
    assert own != usual == items.key(vector_space(encoder.card), Rendered((Text("a"),)))
    assert not renders_plainly(encoder, None, {"text"})


def test_an_encoder_without_a_render_has_the_keys_of_any_other() -> None:
    keys = {asks(as_encoder(model), "A", query="a").keys["query"].tobytes() for model in (Unrelated(), towers(Towers))}
    assert len(keys) == 1
    assert renders_plainly(as_encoder(Unrelated()), None, {"text"})


# ── needs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def one_by_one(demands: Sequence[Demand], known: set[bytes]) -> tuple[list[Count], list[Need]]:
    """A plan made in the plainest way."""
    counts, needs = [], []
    planned: set[bytes] = set()
    for number, demand in enumerate(demands):
        places = {}
        for side, keys in demand.keys.items():
            for row, key in enumerate(keys.tolist()):
                places.setdefault(key, (side, row))
        new = {key: place for key, place in places.items() if key not in planned}
        missing = {key: place for key, place in new.items() if key not in known}
        size = sum(map(len, demand.keys.values()))
        counts.append(Count(size, len(places), len(places.keys() & known), len(new), len(missing)))
        for key, (side, row) in missing.items():
            instruction = demand.task.instructions.get(role_of(side))
            item = demand.data.sides[side].items[row]
            needs.append(Need(key, item, side, instruction, number, row, demand.task.style))
        planned |= places.keys()
    return counts, needs


words = st.lists(st.sampled_from("abcdefgh"), max_size=6).map(" ".join)


@given(st.lists(st.tuples(words, words), max_size=4), st.sets(st.sampled_from("abcdefgh")))
def test_a_plan_is_the_one_that_goes_item_by_item(sides: list[tuple[str, str]], stored: set[str]) -> None:
    demands = [asks(Plain(), "A", query=query, document=document) for query, document in sides]
    known = {asks(Plain(), "A", query=word).keys["query"][0].tobytes() for word in stored}
    made = plan(demands, lambda keys: np.array([key in known for key in keys.tolist()], bool))
    counts, needs = one_by_one(demands, known)
    assert list(made.counts) == counts
    assert list(made.needs) == needs
    assert made.needs == needs
    assert made.needs.keys.tolist() == [need.key for need in needs]
    assert made.needs.numbers.tolist() == [need.demand for need in needs]
    assert [made.needs[row] for row in range(-len(needs), len(needs))] == needs + needs
    assert list(made.needs[1:5:2]) == needs[1:5:2]
    order = np.random.default_rng(0).permutation(len(needs))
    assert list(made.needs.take(order)) == [needs[row] for row in order.tolist()]
    assert made.needs.take(order).texts() == [needs[row].item.parts[0].text for row in order.tolist()]  # type: ignore[union-attr]


def test_many_needs_are_made_in_blocks_and_in_order() -> None:
    demands = [asks(Plain(), name, query=" ".join(f"{name}{row}" for row in range(2500))) for name in "AB"]
    needs = plan(demands, nothing).needs
    assert [need.row for need in needs] == [*range(2500)] * 2
    assert needs.kinds().names == (("text",),)
    assert needs.lengths().tolist() == [len(need.item.parts[0].text) for need in needs]  # type: ignore[union-attr]


def test_keys_that_begin_alike_are_told_apart() -> None:
    keys = as_keys([bytes(8) + bytes([last]) * 24 for last in (1, 2, 1, 2, 3, 1)])
    assert items.first_positions(keys).tolist() == [0, 1, 0, 1, 4, 0]
    assert items.first_positions(keys[:0]).tolist() == []


# ── on rows alone ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_outline_counts_a_shared_pool_once_and_names_the_saving() -> None:
    row = get_tasks("PocketNameToImage")[0]
    images, names = Pool("document", 100, "data/images"), Pool("query", 30, "data/names")
    there = replace(row, name="T2I", pools=(names, images))
    back = replace(row, name="I2T", pools=(Pool("query", 100, "data/images"), Pool("document", 30, "data/names")))
    blank = replace(row, name="Blank", pools=())
    found = outline([there, back, blank])
    assert (found.items, found.unique, found.unknown) == (260, 130, ("Blank",))
    assert [(s.pool, s.times, s.saved, s.tasks) for s in found.savings] == [
        ("data/images", 2, 100, ("T2I", "I2T")),
        ("data/names", 2, 30, ("T2I", "I2T")),
    ]


def test_pools_of_one_id_but_other_sizes_count_as_the_largest() -> None:
    row = get_tasks("PocketNameToImage")[0]
    found = outline([replace(row, name=str(n), pools=(Pool("item", n, "same"),)) for n in (5, 8)])
    assert (found.items, found.unique) == (13, 8)


@pytest.mark.parametrize(
    ("direction", "query", "document"),
    [
        ("t2i", ("text",), ("image",)),
        ("i2t", ("image",), ("text",)),  # captions
        ("it2t", ("image", "text"), ("passage",)),
        ("t2it", ("text",), ("image", "passage")),
        ("v2a", ("video",), ("audio",)),
        ("upwards", ("text", "image"), ("text", "image")),  # of own tasks, a tag may be any word
    ],
)
def test_kinds_of_items_follow_a_row_s_direction(
    direction: str, query: tuple[str, ...], document: tuple[str, ...]
) -> None:
    row = get_tasks("PocketNameToImage")[0]
    pools = (Pool("query", 3, "queries"), Pool("document", 5, "documents"))
    tagged = replace(row, pools=pools, modalities=("text", "image"), tags={"direction": direction})
    kinds: dict[tuple[str, ...], int] = {}
    for kind, items_of_kind in ((query, 3), (document, 5)):
        kinds[kind] = kinds.get(kind, 0) + items_of_kind
    assert workload([tagged]).once == kinds


def test_a_workload_counts_shared_items_once_and_names_what_rows_do_not_state() -> None:
    row = replace(get_tasks("PocketNameToImage")[0], tags={"direction": "t2i"})
    images = Pool("document", 100, "images")
    first = replace(row, name="First", pools=(Pool("query", 30, "names"), images))
    second = replace(row, name="Second", pools=(images,))
    third = replace(row, name="Third", pools=())
    load = workload([first, second, third])
    assert load.by_task == {("text",): 30, ("image",): 200}
    assert load.once == {("text",): 30, ("image",): 100}
    assert load.uncounted == {"Second": ("query",), "Third": ()}


def test_every_row_of_the_four_families_tells_the_kinds_of_its_items() -> None:
    """Items of several modalities only where the row has mixed items."""
    families = get_tasks(families=["MIEB", "UniBench", "MMEB-V3", "ARK"])
    plain = [task for task in families if task.pools and not task.mixed]
    assert len(plain) > 250
    assert [task.name for task in plain if any(len(kind) > 1 for kind in workload([task]).once)] == []
