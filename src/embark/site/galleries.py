"""Items behind the scores: samples, the hardest, each model's failures, and those that only one of two gets right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow.compute as pc

from embark import readers
from embark.items import ItemList, content_numbers
from embark.redaction import Content
from embark.results import Damaged, TaskResult
from embark.run.workbench import ModelTools, Workbench
from embark.settings import Settings
from embark.site.best_answers import best_answers
from embark.site.scripts import points
from embark.site.thumbnails import Thumbnails, may_show
from embark.stats.compare import right_items
from embark.stats.means import names
from embark.stats.outcomes import NotComparable
from embark.types import (
    Array,
    Classes,
    Dataset,
    EmbarkError,
    Gold,
    Groups,
    Matches,
    ModelCard,
    Qrels,
    Side,
    Split,
    Task,
    Text,
)

SHOWN_PARTS = 3  # splits and subsets of a task that are looked at
FLIPS = 3  # items each way, of two models and one part
SHOWN_ITEMS = 2  # hardest ones, failures of a model, and samples of a part
MODELS = 6
LARGE_ITEMS = 100_000  # items of a part that are not read for a page
IN_MEMORY = 5_000  # items of a side that are held, so that they are hashed once
GOLD = 3  # right documents that are shown
HIDDEN = (
    "Shown are ids and scores: it is not known that these data are free. Their card must state a free license, and the "
    "hub give them to everybody (embark fetch records both); embark site --with-media shows them all the same."
)


@dataclass
class Gallery:
    """The chosen items of a task, as the page shows them; see Items in data.ts."""

    task: str
    models: list[str]
    note: str = ""
    contents: list[dict[str, Any]] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    sample: list[int] = field(default_factory=list)
    hardest: list[int] = field(default_factory=list)
    failures: list[list[int]] = field(default_factory=list)
    flips: list[dict[str, Any]] = field(default_factory=list)
    parts: dict[str, Any] | None = None  # scores by split and subset, where there are several


class Galleries:
    """Makes galleries of tasks whose data are on this machine; nothing is downloaded and no model is loaded."""

    def __init__(self, thumbnails: Thumbnails, with_media: bool, settings: Settings) -> None:
        self.thumbnails = thumbnails
        self.with_media = with_media
        self.bench = Workbench(replace(settings, offline=True), show_progress=False, tools=ModelTools(keep_data=False))

    def gallery(self, task: Task, results: Sequence[TaskResult]) -> Gallery | None:
        """The gallery of a task that some models have results on; None where no outcomes can be read."""
        results = results[:MODELS]
        try:
            tables = [_by_part(result) for result in results]
        except (Damaged, EmbarkError, OSError):
            return None
        gallery = Gallery(task.name, names([(result.model, result.revision, "") for result in results]))
        gallery.parts = _part_scores(results)
        gallery.failures = [[] for _ in results]
        gallery.flips = [
            {"a": a, "b": b, "only_a": [], "only_b": [], "count_a": 0, "count_b": 0}
            for a, b in combinations(range(len(results)), 2)
        ]
        gallery.note = self._why_hidden(task)
        shown = not gallery.note
        cards = [result.card() for result in results]
        for part in list(tables[0])[:SHOWN_PARTS]:
            aligned = _aligned([table.get(part) for table in tables])
            if aligned is not None:
                small = shown and not _too_large(gallery, results, part)
                _Part(self, gallery, task, part, aligned, cards, shown, small).add()
        return gallery

    def _why_hidden(self, task: Task) -> str:
        """Why nothing of a task's data may be shown but ids and scores; empty where it may."""
        try:
            readers.require_named(task)
        except readers.NotNamed as reason:
            return str(reason)
        return "" if self.with_media or may_show(task, self.bench.hub) else HIDDEN


class _Part:
    """One split and subset of a task, whose items are chosen and put into a gallery."""

    def __init__(
        self,
        galleries: Galleries,
        gallery: Gallery,
        task: Task,
        part: tuple[str, str],
        columns: list[dict[str, Array] | None],
        cards: Sequence[ModelCard | None],
        shown: bool,
        small: bool,
    ) -> None:
        self.galleries = galleries
        self.gallery = gallery
        self.task = task
        self.part = part
        self.columns = columns
        self.cards = cards
        self.ids = next(column["id"] for column in columns if column is not None)
        self.right = [_right(column, task) for column in columns]
        self.shown = shown
        self.data = self._read() if shown and small else None
        self.numbers: dict[int, int] = {}  # row of the outcomes → number of the item in the gallery
        self.content_numbers: dict[tuple[str, int], int] = {}

    def add(self) -> None:
        """Choose items, then describe them."""
        gallery = self.gallery
        gallery.sample += self._numbered(_spread(np.arange(len(self.ids)), SHOWN_ITEMS))
        gallery.hardest += self._numbered(self._hardest())
        for failures, right, column in zip(gallery.failures, self.right, self.columns, strict=True):
            if column is not None and right is not None:
                failures += self._numbered(_spread(np.flatnonzero(~right), SHOWN_ITEMS))
        for flips in gallery.flips:
            a, b = self.right[flips["a"]], self.right[flips["b"]]
            if a is not None and b is not None:
                for side, rows in (("a", np.flatnonzero(a & ~b)), ("b", np.flatnonzero(b & ~a))):
                    flips[f"only_{side}"] += self._numbered(_spread(rows, FLIPS))
                    flips[f"count_{side}"] += len(rows)
        rows = np.array(list(self.numbers), np.int64)
        positions = self._positions(rows)
        answers = [self._answers(model, rows, positions) for model in range(len(self.columns))]
        for place, row in enumerate(rows.tolist()):
            item = self._item(row, int(positions[place]))
            gallery.items.append(item | {"answers": [of_model[place] for of_model in answers]})

    def _read(self) -> Dataset | None:
        """The data, if they are on this machine."""
        try:
            return _remembering(self.galleries.bench.read(self.task, *self.part))
        except (EmbarkError, OSError) as error:
            self.gallery.note = f"The data are not shown: {error}"
            return None

    def _numbered(self, rows: Array) -> list[int]:
        start = len(self.gallery.items)
        return [self.numbers.setdefault(row, start + len(self.numbers)) for row in rows.tolist()]

    def _hardest(self) -> Array:
        """The items that fewest models get right; of equal ones, those with the worst ranks or values."""
        judged = [right for right in self.right if right is not None]
        if not judged:
            return np.empty(0, np.int64)
        ranks = [column["rank"] for column in self.columns if column is not None and "rank" in column]
        worst = np.sum(ranks, axis=0) if ranks else np.zeros(len(self.ids))
        order = np.lexsort((-worst, np.sum(judged, axis=0)))
        return np.asarray(order[:SHOWN_ITEMS])

    def _positions(self, rows: Array) -> Array:
        """The positions of items in their side of the data; -1 where there are none."""
        if self.data is None:
            return np.full(len(rows), -1)
        place = {name: number for number, name in enumerate(self.data.sides[_unit(self.data)].ids)}
        return np.array([place.get(self.ids[row], -1) for row in rows.tolist()], np.int64)

    def _item(self, row: int, position: int) -> dict[str, Any]:
        column = next(column for column in self.columns if column is not None)
        label = column["label"][row] if self.shown and "label" in column else None
        item: dict[str, Any] = {
            "id": Content(self.ids[row]),
            "part": "" if len(self.task.parts) == 1 else "/".join(self.part),
            "query": [],
            "gold": [],
            "label": None if label is None else Content(label),
        }
        if self.data is not None and isinstance(self.data.truth, Groups) and label is not None:
            item["label"] = Content(self.data.truth.names[int(label)])
        if "gold" in column:
            item["label"] = f"given similarity {float(column['gold'][row]):.2f}"
        if self.data is not None and position >= 0:
            item["query"], item["gold"] = self._contents(position, row, column)
        return item

    def _contents(self, position: int, row: int, column: dict[str, Array]) -> tuple[list[int], list[int]]:
        """The contents of an item, and of the right answers to it."""
        assert self.data is not None
        truth = self.data.truth
        unit = _unit(self.data)
        if isinstance(truth, Matches):
            sample = int(np.flatnonzero(truth.image[:, 0] == position)[0])
            images = [self._content("image", number) for number in truth.image[sample].tolist()]
            return images, [self._content("text", number) for number in truth.text[sample].tolist()]
        query = [self._content(unit, position)]
        if isinstance(truth, Gold):
            ids = list(self.data.sides["right"].ids)
            return [*query, self._content("right", ids.index(column["right"][row]))], []
        if not isinstance(truth, Qrels):
            return query, []
        relevant = truth.document[(truth.query == position) & (truth.grade > 0)][:GOLD]
        return query, [self._content("document", number) for number in relevant.tolist()]

    def _content(self, side: str, position: int) -> int:
        """The number of a content in the gallery; its media get thumbnails."""
        assert self.data is not None
        if (side, position) not in self.content_numbers:
            of_side = self.data.sides[side]
            item = of_side.items[position]
            number = int(content_numbers(of_side.items, np.array([position]))[0])
            parts = [self.galleries.thumbnails.part(part) for part in item.parts]
            self.content_numbers[side, position] = len(self.gallery.contents)
            self.gallery.contents.append(
                {"id": Content(of_side.ids[position]), "hash": f"{number & (1 << 64) - 1:016x}", "parts": parts}
            )
        return self.content_numbers[side, position]

    def _named_content(self, name: str) -> int:
        """The number of a content that is a class: its name."""
        key = ("class", hash(name))
        if key not in self.content_numbers:
            self.content_numbers[key] = len(self.gallery.contents)
            self.gallery.contents.append({"id": Content(name), "parts": [self.galleries.thumbnails.part(Text(name))]})
        return self.content_numbers[key]

    def _answers(self, model: int, rows: Array, positions: Array) -> list[dict[str, Any] | None]:
        """What a model made of each item: right or wrong, its rank, and the best documents or classes."""
        column = self.columns[model]
        card = self.cards[model]
        if column is None:
            return [None] * len(rows)
        best = None
        if self.data is not None and card is not None and (positions >= 0).all() and len(rows):
            best = best_answers(self.galleries.bench, card, self.task, self.part, self.data, positions)
        right = self.right[model]
        values = column.get(self.task.metric, column.get("similarity"))
        known = ("predicted", "predicted_run1", "top") if self.shown else ("top",)  # words of the data, and an id
        predicted = next((column[name] for name in known if name in column), None)
        return [
            {
                "right": None if right is None else bool(right[row]),
                "value": None if values is None else points(float(values[row])),
                "rank": int(column["rank"][row]) if "rank" in column else None,
                "predicted": None if predicted is None or predicted[row] is None else Content(predicted[row]),
                "top": [] if best is None else [(self._answer(number), round(s, 3)) for number, s in best[place]],
            }
            for place, row in enumerate(rows.tolist())
        ]

    def _answer(self, number: int) -> int:
        assert self.data is not None
        truth = self.data.truth
        if isinstance(truth, Classes):
            return self._named_content(truth.names[number])
        return self._content("document", number)


def _too_large(gallery: Gallery, results: Sequence[TaskResult], part: tuple[str, str]) -> bool:
    """Whether a part has so many items that reading them would take longer than a page is worth; the note says so."""
    records = [record for result in results for record in result.records if (record.split, record.subset) == part]
    items = max((record.counts.get("items", 0) for record in records), default=0)
    if items > LARGE_ITEMS:
        gallery.note = f"The items are not shown: {items:,} are too many to read for a page."
    return items > LARGE_ITEMS


def _part_scores(results: Sequence[TaskResult]) -> dict[str, Any] | None:
    """The scores of each model on each split and subset; None where a task has one part alone."""
    by_model = [
        {(record.split, record.subset): points(record.score) for record in result.records} for result in results
    ]
    parts = list(dict.fromkeys(part for scores in by_model for part in scores))
    if len(parts) < 2:
        return None
    several = len({split for split, _ in parts}) > 1
    names_of_parts = ["/".join(part) if several else part[1] for part in parts]
    return {"name": names_of_parts, "scores": [[scores.get(part) for part in parts] for scores in by_model]}


def _unit(data: Dataset) -> str:
    """The side that outcomes are about."""
    units = {Qrels: "query", Matches: "image", Gold: "left", Split: "test"}
    return units.get(type(data.truth), "item")


def _remembering(data: Dataset) -> Dataset:
    """The data with items in memory, where they are not too many: media hash their content once for all models."""
    sides = {
        name: Side(side.ids, ItemList(tuple(side.items))) if len(side) <= IN_MEMORY else side
        for name, side in data.sides.items()
    }
    return replace(data, sides=sides)


def _by_part(result: TaskResult) -> dict[tuple[str, str], dict[str, Array]]:
    """The outcomes of a result by split and subset, as arrays."""
    table = result.outcomes()
    parts = {}
    for record in result.records[:SHOWN_PARTS]:
        is_split = pc.equal(table["split"], record.split)
        rows = table.filter(pc.and_(is_split, pc.equal(table["subset"], record.subset)))
        columns = {name: rows[name].to_numpy() for name in rows.column_names}
        parts[record.split, record.subset] = columns
    return parts


def _aligned(tables: Sequence[dict[str, Array] | None]) -> list[dict[str, Array] | None] | None:
    """The outcomes of the models on the same items, in the same order; those on other items are left out."""
    first = next((table for table in tables if table is not None), None)
    if first is None or not len(first["id"]):
        return None
    return [table if table is not None and np.array_equal(table["id"], first["id"]) else None for table in tables]


def _right(columns: dict[str, Array] | None, task: Task) -> Array | None:
    if columns is None:
        return None
    try:
        return right_items(columns, task)
    except NotComparable:
        values = columns.get(task.metric)
        return None if values is None else np.asarray(values >= 1)  # a mean of several runs: right in all


def _spread(rows: Array, count: int) -> Array:
    """So many of the rows, evenly over all of them."""
    return rows[np.linspace(0, len(rows) - 1, count).astype(int)] if len(rows) > count else rows
