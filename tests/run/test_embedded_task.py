"""The items that outcomes stand on, and their parts: questions on one picture have that picture in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from embark.items import ItemList, Items, media, mixed, text
from embark.items.lazy_items import Chained, Mixed, Texts, text_array
from embark.run.embedded_task import item_columns, part_columns
from embark.types import Array, Item, Qrels, Scores, Side

PICTURES = [media("image", bytes([number])) for number in range(3)]
QUESTIONS = ["What is it?", "Where is it?"]


def scores(rows: Array) -> Scores:
    return Scores({"accuracy": 1.0}, "accuracy", "query", rows, {"accuracy": np.ones(len(rows))})


def columns(queries: list[Item] | Items, documents: list[Item], rows: Any = None) -> list[dict[str, Any]]:
    """The columns of items and of parts, where each query is answered by the document at its place."""
    items = queries if isinstance(queries, Items) else ItemList(queries)
    places = np.arange(len(items))
    rows = places if rows is None else np.array(rows)
    truth = Qrels(rows, rows, np.ones(len(rows)))
    sides = {
        "query": Side([f"q{place}" for place in places], items),
        "document": Side([f"d{place}" for place in places], ItemList(documents)),
    }
    parts = part_columns(sides, truth, scores(rows))
    return [item_columns(sides, truth, scores(rows)), {name: column.to_pylist() for name, column in parts.items()}]


def test_questions_on_one_picture_have_its_number() -> None:
    queries = [mixed(picture, text(question)) for picture in PICTURES[:2] for question in QUESTIONS]
    items, parts = columns(queries, [text(str(number)) for number in range(4)])
    assert len(set(items["content"].tolist())) == 4
    first, second, third, fourth = parts["part_image"]
    assert first == second != third == fourth
    assert parts["part_text"][:2] == parts["part_text"][2:]
    assert parts["part_text"][0] != parts["part_text"][1]
    assert {*parts} == {"part_image", "part_text"}  # documents have one part, which their content names


def test_a_part_has_the_number_of_an_item_that_holds_it_alone() -> None:
    queries = [mixed(PICTURES[0], text("What is it?")), PICTURES[0], text("What is it?")]
    items, parts = columns(queries, [text("a"), text("b"), text("c")])
    _, picture, question = items["content"].tolist()
    assert parts == {"part_image": [[picture], [picture], []], "part_text": [[question], [], [question]]}


def test_items_of_one_part_need_no_columns() -> None:
    assert columns([text("a"), PICTURES[0]], [text("a"), text("b")])[1] == {}
    assert columns(Texts(text_array(["a", "b"])), PICTURES[:2])[1] == {}


def test_several_pictures_of_an_item_and_those_of_its_partner_are_listed() -> None:
    documents = [mixed(PICTURES[0], PICTURES[1]), mixed(PICTURES[1], PICTURES[2])]
    _, parts = columns([text("a"), text("b")], documents)
    [first, second] = parts["partner_part_image"]
    assert first[1] == second[0]
    assert len({*first, *second}) == 3


def test_lazy_items_have_the_parts_of_those_in_memory() -> None:
    texts = Texts(text_array(["a", "b", "c"]))
    pictures = ItemList(PICTURES)
    lazy = Chained([Mixed([pictures, texts], np.array([[1, 1], [1, 0], [0, 1]], bool)), texts], np.array([4, 0, 2, 1]))
    plain = [text("b"), mixed(PICTURES[0], text("a")), text("c"), PICTURES[1]]
    documents = [text(str(number)) for number in range(4)]
    for rows in ([0, 1, 2, 3], [1, 3], [2]):
        assert columns(lazy, documents, rows)[1] == columns(plain, documents, rows)[1]
    assert columns(lazy, documents, [2])[1] == {}


def test_the_columns_are_lists_of_numbers() -> None:
    side = Side(["q"], ItemList([mixed(PICTURES[0], text("a"))]))
    first = np.zeros(1, int)
    parts = part_columns({"query": side, "document": side}, Qrels(first, first, np.ones(1)), scores(first))
    assert {column.type for column in parts.values()} == {pa.list_(pa.int64())}
