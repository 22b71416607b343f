"""The pocket tasks: every row reads, twice alike, with the numbers of items that its notes promise."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from PIL import Image

from embark import items, readers
from embark.catalogue import UnknownName
from embark.items import drawing, emoji
from embark.readers import pocket
from embark.tasks import get_benchmark
from embark.tasks.pocket import LANGUAGES, SOURCE, TASKS
from embark.types import Classes, Dataset, EmbarkError, Gold, Groups, Matches, Qrels, Side, Split, Task
from hub import client

TRUTHS = {
    "retrieval": Qrels,
    "robustness": Qrels,
    "choice": Qrels,
    "zeroshot": Classes,
    "probe": Split,
    "multilabel": Split,
    "clustering": Groups,
    "pairs": Matches,
    "sts": Gold,
}
BY_NAME = {task.name: task for task in TASKS}
ROWS = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def read(name: str, subset: str = "default") -> Dataset:
    return readers.read(BY_NAME[name], "test", subset, client())


def every(task: Task) -> Iterator[Dataset]:
    return (readers.read(task, split, subset, client()) for split in task.source.splits for subset in task.subsets)


@cache
def parts(name: str) -> list[Dataset]:
    """The parts of a task, read once for all tests that look at them."""
    return list(every(BY_NAME[name]))


def sizes(data: Dataset) -> dict[str, int]:
    return {role: len(side) for role, side in data.sides.items()}


@ROWS
def test_every_row_reads_with_what_it_says(task: Task) -> None:
    shown = set()
    for data in parts(task.name):
        assert type(data.truth) is TRUTHS[task.evaluator]
        kinds = {item.modalities for side in data.sides.values() for item in side.items}
        assert task.mixed == any(len(combined) > 1 for combined in kinds)
        shown |= {kind for combined in kinds for kind in combined}
    assert shown == set(task.modalities)


@ROWS
def test_chance_is_what_guessing_gives(task: Task) -> None:
    assert task.chance is not None
    truth = parts(task.name)[0].truth
    if task.evaluator == "choice":
        assert isinstance(truth, Qrels)
        candidates = round(1 / truth.grade.mean())
        if task.metric.startswith("mrr"):  # the query itself is always first
            assert task.chance == pytest.approx(sum(1 / rank for rank in range(2, candidates + 1)) / (candidates - 1))
        else:
            assert task.chance == pytest.approx(1 / candidates)
        np.testing.assert_array_equal(np.bincount(truth.query, truth.grade), 1)
    elif isinstance(truth, Qrels):
        documents = len(parts(task.name)[0].sides["document"])
        assert task.chance == pytest.approx(1 / documents)
        assert set(truth.query) == set(range(len(parts(task.name)[0].sides["query"])))
    elif isinstance(truth, Classes | Split) and task.evaluator != "multilabel":
        assert task.chance == pytest.approx(1 / len(truth.names))
    elif isinstance(truth, Matches):
        assert task.chance == pytest.approx(1 / 6)


def content(data: Dataset) -> dict[str, tuple[list[str], list[bytes]]]:
    """Every id, and the content of the first items."""
    sides = data.sides.items()
    return {role: (list(side.ids), [items.digest(item.parts) for item in side.items[:20]]) for role, side in sides}


@pytest.mark.slow
def test_reading_twice_gives_equal_items_and_truth() -> None:
    first = {task.name: [(content(data), data.truth) for data in every(task)] for task in TASKS}
    for value in vars(emoji).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
    for task in TASKS:
        for (seen, truth), data in zip(first[task.name], every(task), strict=True):
            assert content(data) == seen
            for spec in fields(truth):
                np.testing.assert_array_equal(getattr(truth, spec.name), getattr(data.truth, spec.name))


def test_the_numbers_that_notes_promise() -> None:
    assert (len(emoji.table()), len(emoji.untoned()), len(emoji.sheets()), len(emoji.clocks())) == (2875, 1906, 251, 24)
    assert sizes(read("PocketNameToImage")) == {"query": 1906, "document": 1906}
    assert sizes(read("PocketHeldOutNameToImage")) == {"query": 406, "document": 1906}
    assert sizes(read("PocketFlagZeroShot")) == {"item": 262, "prompt": 262}
    assert sizes(read("PocketSubgroupZeroShot")) == {"item": 1906, "prompt": 3 * 98}
    assert sizes(read("PocketSpokenNameToText")) == {"query": 468, "document": 1906}
    assert set(sizes(read("PocketRobustness")).values()) == {300}
    assert len(BY_NAME["PocketNamesIn38Languages"].subsets) == len(LANGUAGES) == 38
    assert len(BY_NAME["PocketOmni"].subsets) == 12
    for language in ("de", "es", "fr", "it"):
        assert sizes(read("PocketSpokenIn4Languages", language)) == {"query": 40, "document": 1906}


@pytest.mark.slow
def test_films_are_few_and_shared() -> None:
    shown = [side for task in TASKS for data in every(task) for side in data.sides.values()]
    films = {item for side in shown for item in side.items if item.modalities == ("video",)}
    assert len(films) == 240
    omni, named = read("PocketOmni", "text-to-video"), read("PocketNameToVideo")
    shown = {item for item in omni.sides["document"].items if item.modalities == ("video",)}
    assert shown == set(named.sides["document"].items) < films


def test_an_omni_query_ranks_all_modalities_of_itself_and_of_its_like() -> None:
    data = read("PocketOmni", "audio-to-image")
    truth = data.truth
    assert isinstance(truth, Qrels)
    queries, documents = data.sides["query"], data.sides["document"]
    assert (len(queries), len(documents)) == (200, 800)
    for number, code in enumerate(queries.ids):
        listed = [documents.ids[row] for row in truth.document[truth.query == number]]
        assert len({*listed}) == 64
        assert {name.rpartition("-")[0] for name in listed} >= {code}
        assert {name.rpartition("-")[2] for name in listed} == {"text", "image", "video", "audio"}
        [right] = truth.document[(truth.query == number) & (truth.grade > 0)]
        assert documents.ids[right] == f"{code}-image"
        assert queries.items[number] in [documents.items[documents.ids.index(f"{code}-audio")]]
    near = [other for other in emoji.motions() if other.subgroup == emoji.table()[queries.ids[0]].subgroup]
    listed = {documents.ids[row].rpartition("-")[0] for row in truth.document[truth.query == 0]}
    assert {other.code for other in near} <= listed


@pytest.mark.parametrize("name", [task.name for task in TASKS if task.evaluator in ("probe", "multilabel")])
def test_forms_of_an_emoji_do_not_leak_from_training_to_test(name: str) -> None:
    data = read(name)
    bases = {
        role: {emoji.table()[one if one in emoji.table() else one.rsplit("-", 1)[0]].base for one in side.ids}
        for role, side in data.sides.items()
    }
    assert bases["train"].isdisjoint(bases["test"])
    share = len(data.sides["test"]) / sum(sizes(data).values())
    assert 0.2 < share < 0.4
    truth = data.truth
    assert isinstance(truth, Split)
    if truth.train.ndim == 1:
        assert set(truth.train) == set(truth.test) == set(range(len(truth.names)))
    else:
        assert truth.train.any(0).all()
        assert truth.test.any(0).all()
        assert truth.test.any(1).all()


@ROWS
def test_no_wrong_answer_equals_a_right_one(task: Task) -> None:
    for data in parts(task.name):
        if isinstance(data.truth, Qrels):
            offered = data.sides["document"].items
            rows = list(zip(data.truth.query, data.truth.document, data.truth.grade, strict=True))
            right = {query: offered[document] for query, document, grade in rows if grade}
            assert all(grade or offered[document] != right[query] for query, document, grade in rows)
        if isinstance(data.truth, Matches):
            image, text = data.sides["image"].items, data.sides["text"].items
            assert all(image[a] != image[b] for a, b in data.truth.image)
            assert all(text[a] != text[b] for a, b in data.truth.text)


def test_equal_drawings_are_equally_right() -> None:
    data = read("PocketNameToImage")
    assert isinstance(data.truth, Qrels)
    ids = data.sides["query"].ids
    norway = [ids[d] for q, d in zip(data.truth.query, data.truth.document, strict=True) if ids[q] == "1F1F3-1F1F4"]
    names = sorted(emoji.table()[code].name for code in norway)
    assert names == ["flag: Bouvet Island", "flag: Norway", "flag: Svalbard & Jan Mayen"]


def test_a_clock_two_hours_later() -> None:
    data = read("PocketClockArithmetic")
    assert isinstance(data.truth, Qrels)
    eleven = emoji.clocks()[11, True].code
    at = data.sides["query"].ids.index(f"{eleven}-plus-2")
    [found] = data.truth.document[data.truth.query == at]
    assert emoji.table()[data.sides["document"].ids[found]].name == "one-thirty"


def picture(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def test_a_cell_is_what_cutting_it_out_of_the_sheet_gives() -> None:
    arts = [one.art for one in emoji.untoned()[:9]]
    sheet = picture(drawing.sheet(arts))
    assert sheet.crop((64, 128, 128, 192)).tobytes() == picture(drawing.tile(arts[7])).tobytes()


def test_a_scene_shows_as_many_as_it_says() -> None:
    one = emoji.untoned()[0]
    scene, cell = picture(drawing.scene(one.art, (1, 5))), picture(drawing.tile(one.art)).tobytes()
    boxes = [(64 * (at % 3), 64 * (at // 3)) for at in range(6)]
    assert [scene.crop((x, y, x + 64, y + 64)).tobytes() == cell for x, y in boxes] == [at in (1, 5) for at in range(6)]


def test_films_move_the_way_they_say() -> None:
    art = emoji.table()["1F7E9"].art  # a green square
    for motion, (across, down) in drawing.MOTIONS.items():
        frames = [np.asarray(picture(drawing.frame(art, motion, step, 8))) for step in range(8)]
        middles = np.array([np.argwhere(frame.min(2) < 200).mean(0) for frame in frames])
        moved = np.diff(middles, axis=0)  # rows, columns
        assert (np.sign(moved.round(3)) == (down, across)).all()


def test_corruptions_are_reproducible_and_change_the_picture() -> None:
    art = emoji.table()["1F600"].art
    clean = picture(drawing.tile(art)).tobytes()
    for kind in drawing.CORRUPTIONS:
        assert drawing.corrupt(art, kind, 1) == drawing.corrupt(art, kind, 1)
        assert picture(drawing.corrupt(art, kind, 1)).tobytes() != clean
    assert drawing.corrupt(art, "noise", 1) != drawing.corrupt(art, "noise", 2)
    assert set(read("PocketRobustness").sides) == {"query", "document", *(f"document:{c}" for c in drawing.CORRUPTIONS)}


@pytest.mark.slow
def test_pages_have_room_for_every_name() -> None:
    for shown in emoji.sheets().values():
        longest = max((one.name for one in shown), key=len)
        paper = np.asarray(picture(drawing.page([longest] * 9)))
        assert paper[:, -4:].min() == paper[-4:].min() == 255


def test_drawn_items_travel_to_other_processes() -> None:
    for data in (read("PocketNameToVideo"), read("PocketRobustness"), read("PocketNamePages")):
        item = data.sides["document"].items[3]
        assert items.digest(pickle.loads(pickle.dumps(item)).parts) == items.digest(item.parts)


def test_the_revision_is_the_data_that_is_shipped() -> None:
    found = hashlib.sha256(b"".join((emoji.DATA / f"{name}.parquet").read_bytes() for name in ("emoji", "speech")))
    assert found.hexdigest()[:12] == SOURCE.revision


def test_lite_covers_every_modality() -> None:
    lite = get_benchmark("Pocket(lite)")
    assert {kind for name in lite.tasks for kind in BY_NAME[name].modalities} == {"text", "image", "audio", "video"}


def test_unknown_readers_splits_and_subsets_get_suggestions() -> None:
    task = BY_NAME["PocketOmni"]
    with pytest.raises(UnknownName, match=r"no reader named 'pocket-omnj'.*pocket-omni"):
        readers.read(replace(task, reader="pocket-omnj"), "test", "text-to-image", client())
    with pytest.raises(UnknownName, match="no split of PocketOmni named 'train'"):
        readers.read(task, "train", "text-to-image", client())
    with pytest.raises(UnknownName, match=r"no subset of PocketOmni named 'text-image'.*text-to-image"):
        readers.read(task, "test", "text-image", client())


@pytest.mark.parametrize(
    ("ids", "labels", "message"),
    [
        (("a",), [0, 0], "1 ids for 2 items"),
        (("a", "a"), [0, 0], "repeated ids"),
        (("a", "b"), [0], "'label' has 1 rows for 2 items"),
    ],
)
def test_inconsistent_data_is_refused(
    monkeypatch: pytest.MonkeyPatch, ids: tuple[str, ...], labels: list[int], message: str
) -> None:
    wrong = Dataset({"item": Side(ids, (items.text("x"), items.text("y")))}, Groups(np.array(labels), ("n",)))
    reader = replace(pocket.GROUPS, read=lambda task, split, subset, hub: wrong)
    monkeypatch.setattr(pocket, "GROUPS", reader)
    with pytest.raises(EmbarkError, match=message):
        read("PocketGroupClustering")


@pytest.mark.parametrize(("document", "message"), [([2], "outside"), ([-1], "outside"), ([0.0], "not positions")])
def test_indices_out_of_bounds_are_refused(
    monkeypatch: pytest.MonkeyPatch, document: list[float], message: str
) -> None:
    one = Side(("a",), (items.text("x"),))
    wrong = Dataset({"query": one, "document": one}, Qrels(np.array([0]), np.array(document), np.ones(1)))
    reader = replace(pocket.NAMES, read=lambda task, split, subset, hub: wrong)
    monkeypatch.setattr(pocket, "NAMES", reader)
    with pytest.raises(EmbarkError, match=message):
        read("PocketNameToImage")
