"""The plan: every distinct vector once, whichever tasks ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import embark
from embark.data import items
from embark.data.items import as_keys
from embark.models.encoder import Encoder
from embark.planning import Count, Demand, Plan, outline, plan, task_demand
from embark.tasks import get_tasks
from embark.types import Array, Dataset, Item, ModelCard, Pool, Qrels, Rendered, Side, Source, Task, Text


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
