"""Issue 14: what people's own folders and TOML files hold is read by one rule, and known by its content."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import embark
from embark import readers
from embark.cli import app
from embark.items import digest
from embark.own.tasks_file import load_tasks, local_source, to_toml
from embark.types import Classes, Dataset, EmbarkError, Qrels, Split, Task
from folders import two_tasks
from hub import client, png, wav

Pictures = Callable[..., Path]
COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
PAIRS = """
[[task]]
name = "Own"
evaluator = "retrieval"
reader = "paired"
modalities = ["text", "image"]
columns = { image = "file", text = "caption" }
source = { id = "%s", files = { test = ["metadata.csv"] } }
"""


def evaluate(model: Any, tasks: Any, **options: Any) -> embark.types.Run:
    return embark.evaluate(model, tasks, show_progress=False, **options)


def read(task: Task, subset: str = "default") -> Dataset:
    return readers.read(task, "test", subset, client())


def texts(data: Dataset, side: str = "query") -> list[str]:
    return ["+".join(getattr(part, "text", part.kind) for part in item.parts) for item in data.sides[side].items]


def pairs(data: Dataset) -> list[tuple[str, str]]:
    """The relevant pairs by their ids."""
    assert isinstance(data.truth, Qrels)
    query, document = data.sides["query"].ids, data.sides["document"].ids
    return [(query[q], document[d]) for q, d in zip(data.truth.query, data.truth.document, strict=True)]


def folder_of(place: Path, **files: str | bytes) -> Path:
    """A folder with these files; in their names, __ is a dot and ___ a slash."""
    for name, content in files.items():
        path = place / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def shades() -> dict[str, bytes]:
    """Two red pictures, a green one and a copy of it."""
    green = png((0, 255, 0))
    return {"a__png": png((255, 0, 0)), "b__png": png((200, 0, 0)), "c__png": green, "copy__png": green}


# ── equal content is one thing ───────────────────────────────────────────────────────────────────────────────────────


def test_equal_captions_are_one_thing_in_both_forms(tmp_path: Path, tiny: embark.Encoder) -> None:
    table = "file,caption\na.png,a red page\nb.png,a red page\nc.png,a green page\ncopy.png,so green\n"
    folder = folder_of(tmp_path / "pages", metadata__csv=table, **shades())
    (tmp_path / "tasks.toml").write_text(PAIRS % "pages")
    of_folder = two_tasks(folder)
    of_file = load_tasks(tmp_path / "tasks.toml")
    for [task] in (of_folder, of_file):
        data = read(task)
        assert texts(data) == ["a red page", "a green page", "so green"]
        assert data.sides["document"].ids == ("a.png", "b.png", "c.png")  # the copy is c.png
        answers = [("caption-00000", "a.png"), ("caption-00000", "b.png")]
        assert pairs(data) == [*answers, ("caption-00002", "c.png"), ("caption-00003", "c.png")]
        assert data.counts == {"equal items of side 'query'": 1, "equal items of side 'document'": 1}
    results = evaluate(tiny, [*of_folder, *of_file]).results
    assert [(result.metric, result.score) for result in results] == [("hit_rate_at_1", 1.0)] * 2


def test_a_file_may_let_each_row_count(tmp_path: Path) -> None:
    folder_of(tmp_path / "pages", metadata__csv="file,caption\na.png,red\nb.png,red\n", **shades())
    (tmp_path / "tasks.toml").write_text(PAIRS % "pages" + 'options = { equal = "apart" }\n')
    assert texts(read(load_tasks(tmp_path / "tasks.toml")[0])) == ["red", "red"]


def test_equal_items_have_one_label(tmp_path: Path) -> None:
    table = "file,label\na.png,red\nc.png,green\ncopy.png,%s\n"
    folder = folder_of(tmp_path / "pages", metadata__csv=table % "green", **shades())
    assert read(two_tasks(folder)[0]).sides["item"].ids == ("a.png", "c.png")
    folder_of(folder, metadata__csv=table % "lime")
    data = read(two_tasks(folder)[0])
    assert data.sides["item"].ids == ("a.png",)  # nobody can tell which label is right
    [note] = data.skipped
    assert note.startswith("2 items were left out, because equal ones have other labels: c.png ('green') and copy.png")


# ── constant measures ────────────────────────────────────────────────────────────────────────────────────────────────

SWAPS = """
[[task]]
name = "Swaps"
evaluator = "pairs"
reader = "captions"
modalities = ["text", "image"]
columns = { images = "file", texts = "right,wrong" }
source = { id = "pages", files = { test = ["metadata.csv"] } }
"""


def test_a_measure_that_is_constant_is_an_error_that_names_another(tmp_path: Path, tiny: embark.Encoder) -> None:
    table = "file,right,wrong,caption\na.png,a red page,a blue page,red\nc.png,a green page,a red page,green\n"
    folder_of(tmp_path / "pages", metadata__csv=table, **shades())
    file = tmp_path / "tasks.toml"
    pairs_at_3 = PAIRS % "pages" + 'metric = "hit_rate_at_3"\n'
    for rows, advice in (
        (SWAPS, "'accuracy' is 0 for every model on data of this shape: use 'text_acc'"),
        (SWAPS + 'metric = "image_acc"\n', "'image_acc' is 0 for every model on data of this shape: use 'text_acc'"),
        (pairs_at_3, "'hit_rate_at_3' is 1 for every model on data of this shape: use 'hit_rate_at_1' or 'ndcg_at_10'"),
    ):
        file.write_text(rows)
        with pytest.raises(EmbarkError, match=advice):
            evaluate(tiny, load_tasks(file))
    file.write_text(SWAPS + 'metric = "text_acc"\n')
    assert evaluate(tiny, load_tasks(file)).results[0].score == 1.0


# ── items on both sides ──────────────────────────────────────────────────────────────────────────────────────────────


def labelled(folder: Path, evaluator: str, **more: Any) -> Task:
    row: dict[str, Any] = {"columns": {"text": "text", "label": "label"}, **more}
    return Task("Own", "Own", evaluator, "labelled", local_source(folder), "accuracy", "Own", ("text",), **row)


def test_training_items_in_the_test_are_counted_and_said(tmp_path: Path, tiny: embark.Encoder) -> None:
    rows = "".join(f"{color} {number},{color}\n" for number in range(3) for color in ("red", "blue"))
    folder = folder_of(tmp_path, train__csv="text,label\n" + rows, test__csv="text,label\n" + rows + "so blue,blue\n")
    task = labelled(folder, "probe", params={"shots": 1, "runs": 2})
    run = evaluate(tiny, task)
    [record] = run.results[0].records
    assert record.counts["test items among the training items"] == 6
    assert "6 of 7 test items are training items, too (test-0 first)" in record.warnings
    assert "6 of 7 test items are training items" in str(run.table())


def test_queries_in_the_corpus_are_counted_and_said(tmp_path: Path, tiny: embark.Encoder) -> None:
    folder = folder_of(tmp_path, test__csv="query,answer\nred,red\nblue,green blue\ngreen,green green\n")
    columns = {"query_text": "query", "corpus_text": "answer"}
    task = Task(
        "Own", "Own", "retrieval", "paired", local_source(folder), "hit_rate_at_1", "Own", ("text",), columns=columns
    )
    [record] = evaluate(tiny, task).results[0].records
    assert record.counts["queries among the documents"] == 1
    assert any(warning.startswith("1 of 3 queries are in the corpus as they are") for warning in record.warnings)
    by_design = Task(**{**vars(task), "name": "Other", "params": {"skip_first": True}})
    assert "queries among the documents" not in evaluate(tiny, by_design).results[0].records[0].counts


# ── identity ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_folders_of_one_name_do_not_replace_each_other(
    tmp_path: Path, tiny: embark.Encoder, pictures: Pictures
) -> None:
    first = pictures("Pages")
    second = folder_of(tmp_path / "other" / "Pages", metadata__csv="file,caption\na.png,red\nc.png,green\n", **shades())
    before = evaluate(tiny, two_tasks(first)[:1])
    with pytest.raises(EmbarkError, match=r"The results have PagesRetrieval of another folder, .*--name"):
        evaluate(tiny, two_tasks(second))
    assert evaluate(tiny, two_tasks(first)[:1]).computed == 0
    assert len(evaluate(tiny, two_tasks(second, name="Other")).results) == 1
    shutil.rmtree(first)  # now the other one is the only one of its name
    assert evaluate(tiny, two_tasks(second)).computed == 1
    assert before.results[0].score == 1.0


@pytest.mark.parametrize("form", ["folder", "TOML"])
def test_own_data_is_known_by_its_content(tmp_path: Path, tiny: embark.Encoder, pictures: Pictures, form: str) -> None:
    (tmp_path / "project").mkdir()
    pictures("project/Pages")

    def run(project: Path) -> int:
        if form == "folder":
            return evaluate(tiny, two_tasks(project / "Pages")).computed
        (project / "tasks.toml").write_text(PAIRS % "Pages")
        return evaluate(tiny, load_tasks(project / "tasks.toml")).computed

    project = tmp_path / "project"
    assert run(project) > 0
    for path in project.rglob("*"):
        os.utime(path, ns=(1, 1))
    (project / "Pages" / "notes.txt").write_text("unrelated")
    (project / "Pages" / "README.md").write_text("# My pages\n")
    (project / "Pages" / "plot.png").write_bytes(png("black"))
    assert run(project) == 0
    copy = shutil.copytree(project, tmp_path / "elsewhere" / "project")
    assert run(copy) == 0
    (copy / "Pages" / "red.png").write_bytes(png((250, 0, 0)))
    shutil.rmtree(project)
    assert run(copy) > 0


@pytest.mark.parametrize("outside", [False, True])
def test_a_linked_folder_is_read_alike_in_both_forms(tmp_path: Path, outside: bool) -> None:
    folder = folder_of(tmp_path / "pages", metadata__csv="file,caption\nlinked/a.png,red\nlinked/c.png,green\n")
    target = folder_of(tmp_path / "private" if outside else folder / "photos", **shades())
    (folder / "linked").symlink_to(target)
    (tmp_path / "tasks.toml").write_text(PAIRS % "pages")
    for make in (
        lambda **options: two_tasks(folder, **options),
        lambda **options: load_tasks(tmp_path / "tasks.toml", **options),
    ):
        if outside:
            with pytest.raises(EmbarkError, match="leads out of"):
                make()
        [task] = make(allow_outside=outside)
        assert read(task).sides["document"].ids == ("linked/a.png", "linked/c.png")


def test_rows_of_the_reader_folder_are_read(pictures: Pictures, tiny: embark.Encoder) -> None:
    """Results have rows of the reader `folder`; files of tasks may."""
    folder = pictures()
    row: dict[str, Any] = {"columns": {"file": "file", "caption": "caption"}, "upright": True}
    source = embark.types.Source(str(folder), "0123456789ab", config="metadata.csv")
    task = Task("Old", "Folder", "retrieval", "folder", source, "hit_rate_at_1", "Retrieval", ("text", "image"), **row)
    assert read(task).sides["document"].ids == ("red.png", "green.png", "blue.png")
    assert evaluate(tiny, task).results[0].score == 1.0


# ── folders ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def round_trip(task: Task, folder: Path) -> Task:
    """The task after it was written to a TOML file beside its data and read again."""
    file = folder.parent / "rows.toml"
    file.write_text(to_toml(task, folder.parent))
    [again] = load_tasks(file)
    return again


def test_a_subfolder_is_a_class(tmp_path: Path, tiny: embark.Encoder) -> None:
    files = {
        f"{name}___{number}__png": png(tuple(value * (10 - number) // 10 for value in color))  # type: ignore[arg-type]
        for name, color in COLORS.items()
        for number in range(4)
    }
    folder = folder_of(tmp_path / "colors", **files, __hidden___x__png=b"no picture")
    zeroshot, probe = embark.folder_task(folder, kinds="all")
    assert (zeroshot.labels, zeroshot.chance) == (("blue", "green", "red"), 1 / 3)
    data = read(zeroshot)
    assert isinstance(data.truth, Classes)
    assert [data.truth.names[number] for number in data.truth.label] == ["blue"] * 4 + ["green"] * 4 + ["red"] * 4
    assert [round_trip(task, folder) for task in (zeroshot, probe)] == [zeroshot, probe]
    assert [result.score for result in evaluate(tiny, [zeroshot, probe]).results] == [1.0, 1.0]


def test_subfolders_may_be_divided_into_train_and_test(tmp_path: Path) -> None:
    files = {f"{split}___{name}___a__png": png(color) for split in ("train", "test") for name, color in COLORS.items()}
    _, probe = embark.folder_task(folder_of(tmp_path, **files), kinds="all")
    data = read(probe)
    assert data.sides["train"].ids == ("train/blue/a.png", "train/green/a.png", "train/red/a.png")
    assert data.sides["test"].ids == ("test/blue/a.png", "test/green/a.png", "test/red/a.png")


FORMS = [";.csv", "\t.csv", "|.csv", ",.csv", ", .csv", "\t.tsv", "jsonl", "json", "parquet", "bytes"]


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_every_form(tmp_path: Path, form: str) -> None:
    folder = folder_of(tmp_path / "pages", **shades())
    rows = [{"file": "a.png", "caption": "a red, page"}, {"file": "c.png", "caption": "a green page; really"}]
    separator, _, ending = form.rpartition(".")
    if separator:
        lines = ["file" + separator + "caption", *(f'{row["file"]}{separator}"{row["caption"]}"' for row in rows)]
        (folder / f"metadata.{ending}").write_text("\n".join(lines))
    elif ending == "jsonl":
        (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    elif ending == "json":
        (folder / "metadata.json").write_text(json.dumps(rows))
    else:
        files: list[Any] = [row["file"] for row in rows]
        if form == "bytes":
            files = [{"bytes": (folder / file).read_bytes(), "path": file} for file in files]
        columns = {"file" if form == "parquet" else "image": files, "caption": [row["caption"] for row in rows]}
        pq.write_table(pa.table(columns), folder / "data.parquet")
    [task] = two_tasks(folder)
    data = read(task)
    assert texts(data) == ["a red, page", "a green page; really"]
    assert [digest(item.parts) for item in data.sides["document"].items] == [
        digest(embark.types.Item((embark.types.Media("image", (png(color),)),)).parts)
        for color in ((255, 0, 0), (0, 255, 0))
    ]
    assert round_trip(task, folder) == task


@pytest.mark.parametrize(("kind", "ending"), [("audio", "wav"), ("video", "mp4"), ("audio", "FLAC")])
def test_sounds_and_films_become_tasks(tmp_path: Path, kind: str, ending: str) -> None:
    table = f"file,caption,label\na.{ending},low,x\nb.{ending},high,y\n"
    folder = folder_of(tmp_path, metadata__csv=table, **{f"a__{ending}": wav(220), f"b__{ending}": wav(880)})
    tasks = embark.folder_task(folder, name="Own", kinds="all")
    assert [task.name for task in tasks] == ["OwnRetrieval", f"Own{kind.capitalize()}ToText", "OwnZeroShot"]
    assert [task.modalities for task in tasks] == [("text", kind)] * 3
    assert tasks[2].templates == ({"audio": "a sound of {}", "video": "a video of {}"}[kind],)
    assert [item.modalities for item in read(tasks[0]).sides["document"].items] == [(kind,)] * 2
    assert tasks[0].notes == (f"No probe: two classes of {folder / 'metadata.csv'} must have two items or more.",)


def test_both_directions_of_several_captions(tmp_path: Path) -> None:
    tables = (
        "file,caption\na.png,red\na.png,rot\nc.png,green\n",
        "file,caption_1,caption_2\na.png,red,rot\nc.png,green,\n",
    )
    lists = '{"file": "a.png", "captions": ["red", "rot"]}\n{"file": "c.png", "captions": ["green"]}\n'
    for number, (name, table) in enumerate((("a.csv", tables[0]), ("a.csv", tables[1]), ("a.jsonl", lists))):
        folder = folder_of(tmp_path / str(number), **shades(), **{name.replace(".", "__"): table})
        forward, back = embark.folder_task(folder, name="Own", kinds="all")
        assert (forward.name, back.name) == ("OwnRetrieval", "OwnImageToText")
        assert texts(read(forward)) == texts(read(back), "document") == ["red", "rot", "green"]
        of_image = [(document, query) for query, document in pairs(read(forward))]
        assert sorted(pairs(read(back))) == sorted(of_image)
        assert [round_trip(task, folder) for task in (forward, back)] == [forward, back]


def test_one_label_does_not_cost_the_captions(tmp_path: Path, tiny: embark.Encoder) -> None:
    table = "file,caption,label\na.png,red,page\nc.png,green,page\n"
    [task] = two_tasks(folder_of(tmp_path, metadata__csv=table, **shades()), name="Own")
    assert task.name == "OwnRetrieval"
    assert "needs two labels or more; it has 'page'" in task.notes[0]
    assert evaluate(tiny, task).results[0].score == 1.0


def test_one_table_is_divided_by_content(tmp_path: Path, tiny: embark.Encoder) -> None:
    files = {f"{name}{number}__png": png((number, 0, 0)) for number in range(20) for name in ("x", "y")}  # each twice
    rows = [f"{name}{number}.png,{'odd' if number % 2 else 'even'}" for number in range(20) for name in ("x", "y")]
    folder = folder_of(tmp_path / "pages", metadata__csv="\n".join(["file,label", *rows]), **files)
    [probe] = embark.folder_task(folder, kinds=["probe"])
    data = read(probe)
    assert isinstance(data.truth, Split)
    contents = {side: {digest(item.parts) for item in data.sides[side].items} for side in ("train", "test")}
    assert (len(contents["train"]), len(contents["test"])) == (10, 10)
    assert contents["train"].isdisjoint(contents["test"])
    assert np.bincount(data.truth.train).tolist() == [5, 5]
    [note] = data.skipped
    assert note == "20 of 40 rows of test are for training: drawn by content, 50% of each class, seed 42"
    (folder / "metadata.csv").write_text("\n".join(["file,label", *reversed(rows)]))  # the order does not matter
    again = read(embark.folder_task(folder, kinds=["probe"])[0])
    assert {digest(item.parts) for item in again.sides["train"].items} == contents["train"]
    other = read(Task(**{**vars(probe), "source": local_source(folder, files=probe.source.files),
                         "options": {**probe.options, "divide": {"train": 0.2, "seed": 1}}}))  # fmt: skip
    assert len(other.sides["train"]) == 4
    assert note in str(evaluate(tiny, embark.folder_task(folder, kinds=["probe"])).table())


def test_languages_are_columns(tmp_path: Path, tiny: embark.Encoder) -> None:
    table = "file,caption_en,caption_de,text_id\na.png,red,eine red Seite,7\nc.png,green,,8\nb.png,blue,blue,9\n"
    folder = folder_of(tmp_path / "pages", metadata__csv=table, **shades())
    [task] = two_tasks(folder)
    assert task.subsets == {"en": ("eng",), "de": ("deu",)}
    assert texts(read(task, "en")) == ["red", "green", "blue"]
    assert texts(read(task, "de")) == ["eine red Seite", "blue"]
    assert len(read(task, "de").sides["document"]) == 3
    assert round_trip(task, folder) == task
    assert [record.languages for record in evaluate(tiny, task).results[0].records] == [("eng",), ("deu",)]


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ({"audio": "sound", "image": "file"}, {"query": "audio"}, (["audio", "audio"], ["image", "image"])),
        ({"audio": "sound", "image": "file"}, {"query": "image"}, (["image", "image"], ["audio", "audio"])),
        (
            {"audio": "sound", "image": "file", "text": "caption"},
            {"query": ["audio", "text"]},
            (["audio+low", "audio+high"], ["image", "image"]),
        ),
        (
            {"query_image": "file", "query_text": "caption", "corpus_image": "other", "corpus_text": "label"},
            {},
            (["image+low", "image+high"], ["image+x", "image+y"]),
        ),
        ({"query_text": "caption", "corpus_text": "label"}, {}, (["low", "high"], ["x", "y"])),
    ],
)
def test_pairs_of_any_modalities(
    tmp_path: Path, columns: dict[str, str], options: dict[str, Any], expected: tuple[list[str], list[str]]
) -> None:
    table = "file,sound,caption,other,label\na.png,a.wav,low,c.png,x\nb.png,b.wav,high,copy.png,y\n"
    folder = folder_of(tmp_path / "pages", metadata__csv=table, a__wav=wav(220), b__wav=wav(880), **shades())
    source = local_source(folder, files={"test": ("metadata.csv",)})
    modalities = ("text", "image", "audio")
    for equal in ({}, {"equal": "one"}):
        row = {"columns": columns, "options": {**options, **equal}, "mixed": True}
        task = Task("Own", "Own", "retrieval", "paired", source, "hit_rate_at_1", "Own", modalities, **row)
        data = read(task)
        assert (texts(data), texts(data, "document")) == expected
        assert len(pairs(data)) == 2
    assert len(embark.folder_task(folder, kinds="all")) == 7  # text, image and sound both ways, and labels


def test_a_column_of_words_is_no_column_of_films(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, metadata__csv="file,caption,clip\na.png,red,no\nc.png,green,yes\n", **shades())
    [task] = two_tasks(folder)
    assert task.columns == {"image": "file", "text": "caption"}


def test_a_column_of_two_kinds_is_an_error(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, metadata__csv="file,caption\na.png,a\na.wav,b\n", a__wav=wav(), **shades())
    with pytest.raises(EmbarkError, match=r"names image \(a.png\) and audio \(a.wav\): give each kind a column"):
        two_tasks(folder)


def test_the_command_prints_the_rows_that_it_made(pictures: Pictures, tmp_path: Path) -> None:
    folder = pictures("Holiday")
    done = CliRunner().invoke(app, ["run", "-m", "embark/random", "--folder", str(folder), "--name", "Mine"])
    assert done.exit_code == 0, done.output
    file = tmp_path / "tasks.toml"
    file.write_text(done.stderr[done.stderr.index("[[task]]") - 40 :].partition("FILE:\n")[2])
    assert load_tasks(file, allow_outside=True) == [
        Task(**{**vars(task), "options": {**task.options, "allow_outside": True}})
        for task in embark.folder_task(folder, name="Mine", kinds="all")
    ]
    some = CliRunner().invoke(
        app, ["run", "-m", "embark/random", "--folder", str(folder), "--kind", "reverse", "--format", "json"]
    )
    assert [row["task"] for row in json.loads(some.stdout)["results"]] == ["HolidayImageToText"]


def test_rows_of_every_shape_come_back_from_toml(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "own data", test__csv='text,label\n"a",x\n')
    odd = {'a "quote"': "tab\tand \\ and \x7f", "ünder": "line\nbreak"}
    task = Task(
        "Odd [name]", "Other", "multilabel", "labelled", local_source(folder), "hamming", "Cat", ("text",), columns=odd,
        params={"shots": 3, "runs": 2},
        options={"equal": "one", "where": {"label": ["x", "y"]}, "divide": {"train": 0.25}},
        subsets={"de": ("deu-Latn",), "x y": ("eng",)}, labels=("a", "b"), chance=0.5, upright=False, tags={"k": "v"},
        variants={"bare": {"templates": ("{}",), "params": {"shots": 1}}}, rows={"test": 1}, unreadable="skip",
        pools=(embark.types.Pool("item", 3, "x"),), notes=("one", "two"),
    )  # fmt: skip
    again = round_trip(task, folder)
    assert Task(**{**vars(again), "source": task.source}) == task
    assert again.source.id == task.source.id
    apart = Task(**{**vars(task), "options": {}})
    assert round_trip(apart, folder).options == {"equal": "apart"}


def test_what_is_scored_may_be_called_val(tmp_path: Path) -> None:
    files = {f"{part}___{name}___a__png": png(color) for part in ("train", "val") for name, color in COLORS.items()}
    zeroshot, probe = embark.folder_task(folder_of(tmp_path / "folders", **files), kinds="all")
    assert zeroshot.labels == ("blue", "green", "red")
    assert read(probe).sides["test"].ids == ("val/blue/a.png", "val/green/a.png", "val/red/a.png")
    table = "file,label\na.png,x\nc.png,y\n"
    tables = folder_of(tmp_path / "tables", **shades(), train__csv=table, val__csv=table, test__csv=table)
    assert embark.folder_task(tables, kinds="probe")[0].source.files == {"test": ("test.csv",), "train": ("train.csv",)}


def test_folders_of_one_name_are_no_classes(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, cat___2020___a__png=png((1, 2, 3)), dog___2020___a__png=png((3, 2, 1)))
    with pytest.raises(EmbarkError, match=r"Which folders .* cat/2020 and dog/2020 have one name"):
        two_tasks(folder)


def test_one_class_of_folders_is_said_as_such(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, cat___a__png=png((1, 2, 3)))
    with pytest.raises(EmbarkError, match=r"The folder .* needs subfolders of two classes or more; it has 'cat'"):
        two_tasks(folder)


def test_media_without_a_class_are_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, cat___a__png=png((1, 2, 3)), dog___a__png=png((3, 2, 1)), stray__png=png((0, 0, 0)))
    [task] = two_tasks(folder)
    assert task.notes == (f"Not used of {folder}, as it is in no subfolder: stray.png.",)


def test_columns_of_captions_that_are_not_used_are_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "one", **shades(), m__csv="file,caption,caption_de\na.png,red,rot\n")
    [task] = two_tasks(folder)
    assert task.columns["text"] == "caption"
    assert task.notes[0].startswith(f"Not used of {folder / 'm.csv'}: caption_de.")
    empty = folder_of(tmp_path / "two", **shades(), m__csv="file,caption_en,caption_de,caption_fr\na.png,red,rot,\n")
    [task] = two_tasks(empty)
    assert (list(task.subsets), task.notes) == (["en", "de"], ())


def test_a_probe_of_copies_says_what_it_lacks(tmp_path: Path) -> None:
    table = "file,label\nc.png,green\ncopy.png,green\na.png,red\na.png,red\n"
    [task] = embark.folder_task(folder_of(tmp_path, **shades(), m__csv=table), kinds="probe")
    with pytest.raises(EmbarkError, match="no class of test has two different items"):
        read(task)


def test_tables_may_name_files_by_their_whole_path(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, **shades(), m__csv=f"file,caption\n{tmp_path / 'a.png'},red\nc.png,green\n")
    assert len(read(two_tasks(folder)[0]).sides["document"]) == 2


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("m__csv", "file,caption,caption\na.png,red,rot\n", "several columns are named 'caption'"),
        ("m__csv", "file,caption\n../x/a.png,red\n", r"'\.\./x/a\.png' is not a path inside"),
        ("m__jsonl", '{"file": "a.png", "caption": "red"}\n{bro', "line 2 is not JSON"),
        ("m__jsonl", '{"file": {"path": "a.png"}, "caption": "red"}\n', r"Row 1 .* holds .* not the name of a file"),
        ("m__jsonl", '{"file": "a.png", "label": ["x", "y"]}\n', "holds lists: make a multilabel task of it.$"),
    ],
)
def test_errors_of_tables_name_the_place(tmp_path: Path, name: str, table: str, message: str) -> None:
    folder_of(tmp_path / "x", **shades())
    with pytest.raises(EmbarkError, match=message):
        two_tasks(folder_of(tmp_path / "own", **shades(), **{name: table}))


def test_a_template_has_a_place_for_the_class(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, **shades(), test__csv="text,label\na,red\nc,green\n")
    with pytest.raises(EmbarkError, match="the template 'a photo' has no"):
        read(labelled(folder, "zeroshot", templates=("a photo",)))


def test_an_option_for_one_value_is_not_taken_twice(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "-m", "embark/random", "--folder", "a", f"--folder={tmp_path}"])
    assert done.exit_code == 2
    assert "--folder takes one value, and there are 2" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("retrieval", "pairs"), "field 'reader': 'paired' serves retrieval, not 'pairs'"),
        (('id = "pets"', 'id = "petz"'), "pinned to a commit, and there is no folder .*petz"),
    ],
)
def test_errors_of_rows_say_what_is_wrong(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    folder = folder_of(tmp_path / "pets", **shades(), m__csv="file,caption\na.png,red\nc.png,green\n")
    (tmp_path / "tasks.toml").write_text(to_toml(two_tasks(folder)[0], tmp_path).replace(*change))
    with pytest.raises(EmbarkError, match=message):
        load_tasks(tmp_path / "tasks.toml")


def test_descriptions_fit_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(app, ["show", "--reader", "paired"]).output.partition("\npart ")[0].splitlines()
    assert lines[0].startswith("paired: ")
    assert max(map(len, lines)) <= 80
    with pytest.raises(EmbarkError, match="embark show --reader lists all"):
        embark.seams.reference("reader", "nope")


def test_a_kind_has_one_category_in_all_forms(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pets", **shades(), test__csv="file,label\na.png,red\nc.png,green\n")
    [of_folder] = two_tasks(folder)
    toml = to_toml(of_folder, tmp_path)
    assert "category" not in toml
    rows = [{"image": (folder / name).read_bytes(), "label": name} for name in ("a.png", "c.png")]
    assert embark.task(rows, "zeroshot").category == of_folder.category == "Zero-shot"


def test_options_of_a_folder_need_one() -> None:
    done = CliRunner().invoke(app, ["run", "-m", "embark/random", "-t", "PocketNameSTS", "--kind", "probe"])
    assert done.exit_code == 2
    assert "about --folder or --dataset" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"divide": {"train": 0.5, "sed": 1}}, "the option 'divide' must be like"),
        ({"divide": {"train": 0.5}, "drop": {"test": [0, 9]}}, r"drops rows that test does not have: \[9\]"),
        ({}, "no files for split 'train'.* The option `divide` makes both splits of one"),
    ],
)
def test_errors_of_probes_say_what_is_wrong(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = folder_of(tmp_path, test__csv="text,label\na,red\nb,red\nc,green\nd,green\n")
    with pytest.raises(EmbarkError, match=message):
        read(labelled(folder, "probe", options=change))


def test_chance_is_a_share(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pets", **shades(), m__csv="file,label\na.png,red\nc.png,green\n")
    toml = to_toml(two_tasks(folder)[0], tmp_path)
    (tmp_path / "tasks.toml").write_text(toml.replace("chance = 0.5", "chance = 50"))
    with pytest.raises(EmbarkError, match="field 'chance': must be a number from 0 to 1, not 50"):
        load_tasks(tmp_path / "tasks.toml")


def test_languages_may_have_regions_and_scripts(tmp_path: Path) -> None:
    table = "file,caption_pt_BR,caption_zh-Hans,caption_de,caption_of_it\na.png,vermelho,hong,rot,x\n"
    [task] = two_tasks(folder_of(tmp_path, **shades(), m__csv=table))
    assert task.subsets == {"pt_BR": ("por",), "zh-Hans": ("zho-Hans",), "de": ("deu",)}


def test_errors_of_folders_say_what_lacks(tmp_path: Path) -> None:
    table = "file,caption,caption_1\na.png,red,scarlet\nc.png,green,lime\n"
    folder = folder_of(tmp_path, **shades(), m__csv=table)
    with pytest.raises(EmbarkError, match=r"m\.csv has no column of labels \(label, .*\); its columns are file"):
        embark.folder_task(folder, kinds="zeroshot")
    with pytest.raises(EmbarkError, match=r"It is a file: name its folder"):
        two_tasks(folder / "m.csv")
    assert embark.folder_task(folder, kinds=["all"]) == embark.folder_task(folder, kinds="all")
