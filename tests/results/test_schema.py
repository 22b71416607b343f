"""The schema of results: whatever a file of them holds, it is read as it was meant, or left out and named."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cases
import embark
from embark.results import META, OURS, Damaged, Results, TaskResult
from embark.results.schema import CHECKSUM, FORMAT, _checksum, parse_result, result_bytes, result_content
from embark.settings import Settings, load_settings
from embark.types import EmbarkError

FEW = 8  # of the mutations, every eighth is tried by a quick test, so that each kind of value comes to another field
STS, CLASSES = "PocketNameSTS", "PocketFlagZeroShot"
TASKS = [STS, CLASSES]
MODELS = ["test/one", "test/two"]

DEEP: Any = []
for _ in range(60):
    DEEP = [DEEP]
WRONG: dict[str, Any] = {
    "null": None, "true": True, "a number": 3, "less than nothing": -7.5, "huge": 1e308, "a long number": 10**400,
    "NaN": float("nan"), "infinity": float("inf"), "no text": "", "a text": "high", "a long text": "x" * 2_000_000,
    "a lone surrogate": "a\ud800b", "a list": [], "texts": ["a", "b"], "reversed": [2, 1], "a table": {},
    "a table of tables": {"a": {"b": [1]}}, "deep": DEEP,
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two results of each of two models."""
    folder = tmp_path_factory.mktemp("written")
    here = load_settings(folder / "home", folder / "results")
    for number, name in enumerate(MODELS):
        model = embark.encoder(
            text=lambda texts, number=number: np.array([[len(text), text.count("a"), number] for text in texts], float),
            image=lambda images: np.array([image.resize((1, 1)).convert("RGB").getpixel((0, 0)) for image in images]),
            name=name,
            revision="1",
        )
        embark.evaluate(model, TASKS, settings=here, show_progress=False)
    return folder / "results"


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else writes here, so nobody is waited for."""
    monkeypatch.setattr("embark.results.schema.LOOKS", 1)


@dataclass(frozen=True)
class Desk:
    """A copy of the results, one of which is mutated."""

    folder: Path
    home: Path

    @property
    def settings(self) -> Settings:
        return load_settings(self.home, self.folder)

    def path(self, task: str, suffix: str = ".json") -> Path:
        return self.folder / "test__one" / "1" / f"{task}{suffix}"

    def sign(self, task: str, **ours: Any) -> None:
        """Write a result again, as somebody would who knows how files are checked."""
        content = json.loads(self.path(task).read_bytes())
        content[OURS] |= ours
        self.path(task).write_bytes(signed(content))

    def show(self) -> list[str]:
        """Everything that shows results in memory; the notes."""
        loaded = embark.load_results(tasks=TASKS, include="own", settings=self.settings)
        str(loaded.table())
        notes = list(loaded.notes)
        for show in (
            lambda: embark.leaderboard(tasks=TASKS, include="own", settings=self.settings),
            lambda: embark.compare(*MODELS, TASKS, settings=self.settings),
        ):
            try:
                shown = show()
            except EmbarkError as error:
                notes.append(str(error))
            else:
                str(shown.table())
                notes += shown.notes
        return notes


@pytest.fixture
def desk(written: Path, tmp_path: Path) -> Desk:
    return Desk(Path(shutil.copytree(written, tmp_path / "results")), tmp_path / "home")


def signed(content: dict[str, Any]) -> bytes:
    """The bytes of a file of scores whose checksum is right, whatever else is wrong."""
    ours = content.get(OURS)
    if isinstance(ours, dict) and isinstance(ours.get(CHECKSUM), str):
        del ours[CHECKSUM]
        ours[CHECKSUM] = _checksum(content)
    return json.dumps(content).encode()


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a file; of a list, the first entry."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*place, key)
        yield from places(below, (*place, key))


def put(holder: Any, key: Any, value: Any) -> None:
    holder[key] = value


CHANGES: dict[str, Callable[[Any, Any], object]] = {
    "is deleted": lambda holder, key: holder.pop(key),
    **{f"is {label}": partial(put, value=wrong) for label, wrong in WRONG.items()},
}
CHANGES_OF_TABLES: dict[str, Callable[[Any, Any], object]] = CHANGES | {
    "has a neighbour": lambda holder, key: holder.update({"colour": "red"}),
    "is renamed": lambda holder, key: holder.update({f"{key}\ud800": holder.pop(key)}),
}


def mutations(content: dict[str, Any], step: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The content with each field deleted, replaced, renamed, or joined by one that nobody knows; every so many."""
    changes = [
        (above, key, label, change)
        for *above, key in places(content)
        for label, change in (CHANGES_OF_TABLES if isinstance(key, str) else CHANGES).items()
    ]
    for above, key, label, change in changes[::step]:
        changed = copy.deepcopy(content)
        holder: Any = changed
        for name in above:
            holder = holder[name]
        change(holder, key)
        yield f"{'.'.join(map(str, (*above, key)))} {label}", changed
    for version in (0, FORMAT + 1, str(FORMAT), True, [FORMAT], None, FORMAT + 0.5):
        changed = copy.deepcopy(content)
        changed[OURS]["format"] = version
        yield f"format {version!r}", changed


@pytest.mark.parametrize("step", [FEW, *cases.slow(1)])
def test_a_mutated_file_of_scores_is_left_out_and_named_or_is_a_result(desk: Desk, step: int) -> None:
    path = desk.path(STS)
    whole = json.loads(path.read_bytes())
    counts = {"refused": 0, "read": 0}
    silent = []
    for number, (name, content) in enumerate(mutations(whole, step)):
        path.write_bytes(signed(content))
        results = Results(desk.folder)
        loaded = list(results.all())
        if len(loaded) == 4:
            counts["read"] += 1
            [result] = [result for result in loaded if result.path == path]
            again = parse_result(result_bytes(result_content(result)), path)
            assert again is not None, name
            assert repr(again) == repr(result), name
        else:
            counts["refused"] += 1
            silent += [name] * (len(loaded) != 3 or not any(str(path) in note for note in results.notes))
        if len(loaded) == 4 or number % 40 == 0:
            notes = desk.show()
            silent += [f"{name}: shown"] * (len(loaded) == 3 and not any(str(path) in note for note in notes))
    assert silent == []
    assert counts["refused"] > 500 / step
    assert counts["read"] > 50 / step


@pytest.mark.parametrize("text", ["null", "[]", "3", '"embark"', "", "{", "NaN", '{"embark": NaN}', "[" * 100_000])
def test_a_file_that_is_no_result_is_named(desk: Desk, text: str) -> None:
    desk.path(STS).write_text(text)
    results = Results(desk.folder)
    assert len(list(results.all())) == 3
    assert [str(desk.path(STS)) in note for note in results.notes] == [True]


def test_a_result_without_our_fields_at_the_top_is_named(desk: Desk) -> None:
    content = json.loads(desk.path(STS).read_bytes())
    del content[OURS]
    desk.path(STS).write_text(json.dumps(content))
    results = Results(desk.folder)
    assert len(list(results.all())) == 3
    assert "lacks embark" in results.notes[0]


def test_a_later_format_is_named_with_its_number(desk: Desk) -> None:
    desk.sign(STS, format=FORMAT + 1)
    results = Results(desk.folder)
    assert len(list(results.all())) == 3
    assert f"its format is {FORMAT + 1}; this version of embark reads 1 and {FORMAT}" in results.notes[0]


def test_files_of_format_1_are_read(desk: Desk) -> None:
    """They state no number, and call the fingerprint of a record its protocol."""
    before = list(Results(desk.folder).all())
    shown = desk.show()
    for path in desk.folder.glob("*/*/Pocket*.json"):
        content = json.loads(path.read_bytes())
        del content[OURS]["format"]
        for entries in content["scores"].values():
            for entry in entries:
                entry[OURS]["protocol"] = entry[OURS].pop("fingerprint")
        path.write_bytes(signed(content))
    for path in desk.folder.glob(f"*/*/{META}"):
        content = json.loads(path.read_bytes())
        del content[OURS]["format"]
        path.write_text(json.dumps(content))
    results = Results(desk.folder)
    assert (list(results.all()), results.notes) == (before, [])
    assert len(results.cards()) == len(MODELS)
    assert desk.show() == shown


# ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", [FEW, *cases.slow(1)])
def test_a_mutated_card_is_left_out_and_named_or_is_a_card(desk: Desk, step: int) -> None:
    path = desk.path(STS).with_name(META)
    whole = json.loads(path.read_bytes())
    counts = {"refused": 0, "read": 0}
    silent = []
    for number, (name, content) in enumerate(mutations(whole, step)):
        path.write_text(json.dumps(content))
        results = Results(desk.folder)
        assert len(list(results.all())) == 4, name  # scores need no card
        known = len(results.cards()) == 2
        counts["read" if known else "refused"] += 1
        foreign = not isinstance(content, dict) or OURS not in content
        silent += [name] * (not known and not foreign and not any(str(path) in note for note in results.notes))
        if number % 50 == 0:
            desk.show()
    assert silent == []
    assert counts["refused"] > 200 / step


# ── outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def tables(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The outcomes with each column dropped, renamed, or of other values, and with other rows."""
    count = len(table)
    columns: dict[str, Any] = {
        "nulls": pa.nulls(count), "texts": pa.array(["x"] * count), "numbers": pa.array([0.5] * count),
        "infinite": pa.array([np.inf] * count), "NaN": pa.array([np.nan] * count), "huge": pa.array([1e308] * count),
        "flags": pa.array([True] * count), "one flag": pa.array([True] + [None] * (count - 1)),
        "whole": pa.array(range(count)), "negative": pa.array([-(2**62)] * count), "bytes": pa.array([b"\xff"] * count),
        "lists": pa.array([["x"]] * count), "tables": pa.array([{"a": 1}] * count),
        "dates": pa.array([0] * count, pa.timestamp("s")), "bad text": pa.array([b"\xff"] * count).view(pa.string()),
        "words": pa.array(["x"] * count).dictionary_encode(), "some texts": pa.array(["x"] + [None] * (count - 1)),
    }  # fmt: skip
    for number, name in enumerate(table.column_names):
        yield f"{name} dropped", table.drop_columns([name])
        names = [*table.column_names[:number], "x", *table.column_names[number + 1 :]]
        yield f"{name} renamed", table.rename_columns(names)
        yield f"{name} twice", table.append_column(name, table[name])
        for label, column in columns.items():
            yield f"{name} is {label}", table.set_column(number, name, column)
    for label, column in columns.items():
        yield f"a new column of {label}", table.append_column("new", column)
        yield f"parts of {label}", table.append_column("part_image", column)
        yield f"clusters of {label}", table.append_column("item_cluster", column)
    yield "no rows", table[:0]
    yield "one row", table[:1]
    yield "half of the rows", table[: count // 2]
    yield "all rows twice", pa.concat_tables([table, table])
    yield (
        "rows of another split",
        pa.concat_tables([table, table[:1].set_column(0, "split", pa.array(["other"]))], promote_options="permissive"),
    )


def reason(result: TaskResult) -> str:
    """Why the outcomes of a result cannot be read; empty where they can."""
    try:
        result.outcomes()
    except Damaged as damage:
        return str(damage)
    return ""


@pytest.mark.parametrize(("task", "step"), [(STS, FEW), (CLASSES, FEW), *cases.slow((STS, 1), (CLASSES, 1))])
def test_mutated_outcomes_are_named_and_break_nothing(desk: Desk, task: str, step: int) -> None:
    path = desk.path(task, ".parquet")
    table = pq.ParquetFile(path).read(use_threads=False)
    counts = {"refused": 0, "read": 0}
    for number, (name, changed) in enumerate(islice(tables(table), 0, None, step)):
        pq.write_table(changed, path)
        desk.sign(task, outcomes=hashlib.sha256(path.read_bytes()).hexdigest())
        [result] = [result for result in Results(desk.folder).all() if result.path == desk.path(task)]
        why = reason(result)
        counts["refused" if why else "read"] += 1
        assert not why or str(path) in why, name
        if not why or number % FEW == 0:
            notes = desk.show()
            assert not why or any(str(path) in note for note in notes), name
    assert counts["refused"] > 100 / step
    assert counts["read"] > 20 / step


@pytest.mark.parametrize("column", ["id", "content"])
def test_outcomes_with_an_empty_cell_are_named(desk: Desk, column: str) -> None:
    path = desk.path(STS, ".parquet")
    table = pq.ParquetFile(path).read(use_threads=False)
    place = table.column_names.index(column)
    values = pa.array([None, *table[column].to_pylist()[1:]], table[column].type)
    pq.write_table(table.set_column(place, column, values), path)
    desk.sign(STS, outcomes=hashlib.sha256(path.read_bytes()).hexdigest())
    assert any(f"{path} is damaged (column '{column}' has empty cells)" in note for note in desk.show())


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 300])
def test_outcomes_that_are_no_parquet_are_named(desk: Desk, data: bytes) -> None:
    path = desk.path(STS, ".parquet")
    path.write_bytes(data)
    desk.sign(STS, outcomes=hashlib.sha256(data).hexdigest())
    assert any(str(path) in note for note in desk.show())


# ── everything that shows results ────────────────────────────────────────────────────────────────────────────────────


def bad_name(desk: Desk) -> Path:
    """A surrogate in the name of a split."""
    content = json.loads(desk.path(STS).read_bytes())
    content["scores"]["a\ud800b"] = content["scores"].pop("test")
    desk.path(STS).write_bytes(signed(content))
    return desk.path(STS)


def bad_number(desk: Desk) -> Path:
    """A score that no board could print."""
    desk.sign(STS, score=1e308)
    return desk.path(STS)


def bad_null(desk: Desk) -> Path:
    """A file that holds null alone."""
    desk.path(STS).write_text("null")
    return desk.path(STS)


def bad_card(desk: Desk) -> Path:
    """A card with a value of another type."""
    path = desk.path(STS).with_name(META)
    content = json.loads(path.read_bytes())
    content[OURS]["modalities"] = {"text": 1}
    path.write_text(json.dumps(content))
    return path


def bad_outcomes(desk: Desk) -> Path:
    """Outcomes without the column that tells the items."""
    path = desk.path(CLASSES, ".parquet")
    pq.write_table(pq.ParquetFile(path).read(use_threads=False).drop_columns(["id"]), path)
    desk.sign(CLASSES, outcomes=hashlib.sha256(path.read_bytes()).hexdigest())
    return path


@pytest.mark.parametrize("spoil", [bad_name, bad_number, bad_null, bad_card, bad_outcomes])
def test_whatever_shows_results_goes_on_without_a_bad_file_and_names_it(desk: Desk, spoil: Any, tmp_path: Path) -> None:
    here = desk.settings
    path = spoil(desk)
    views: dict[str, Callable[[], Any]] = {
        "page": lambda: embark.site.export(tmp_path / "page", include="own", settings=here),
        "store size": lambda: embark.store.size(settings=here),
        "leaderboard": lambda: embark.leaderboard(tasks=TASKS, include="own", settings=here),
        "comparison": lambda: embark.compare(*MODELS, TASKS, settings=here),
        "report": lambda: embark.report(tasks=TASKS, settings=here),
        "card": lambda: embark.exchange.card("test/one", tasks=TASKS, settings=here),
        "recommendation": lambda: embark.recommend("eng", tasks=TASKS, include="own", settings=here),
        "upload": lambda: embark.exchange.push("test/one", "me/scores", TASKS, settings=here, outcomes=True),
    }
    silent = []
    for view, show in views.items():
        try:
            notes = [*show().notes]
        except EmbarkError as error:
            notes = [str(error)]
        silent += [view] * (not any(path.name in note for note in notes))
    assert (tmp_path / "page" / "index.html").is_file()
    reading_no_outcomes = ["store size", "card", "recommendation"]
    assert silent == (reading_no_outcomes if path.suffix == ".parquet" else [])
