"""A folder of images and a CSV becomes tasks, or an error that says what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from embark.items.decoding import decode
from embark.readers import read
from embark.types import Classes, EmbarkError, Qrels
from folders import two_tasks
from hub import client


def make(folder: Path, table: str | bytes, files: str = "a.png b.png c.png", name: str = "data.csv") -> Path:
    for at, file in enumerate(files.split()):
        (folder / file).parent.mkdir(exist_ok=True)
        Image.new("RGB", (2, 2), (at, 0, 0)).save(folder / file)
    (folder / name).write_bytes(table if isinstance(table, bytes) else table.encode())
    return folder


def texts(data: object, role: str) -> list[str]:
    return [item.parts[0].text for item in data.sides[role].items]  # type: ignore[attr-defined]


def test_captions_make_a_retrieval_task(tmp_path: Path) -> None:
    make(tmp_path, "file,caption\na.png,red\nb.png,red\na.png,rot\nc.png,blue\na.png,red\n")
    [task] = two_tasks(tmp_path, name="Mine")
    assert (task.name, task.evaluator, task.source.id) == ("MineRetrieval", "retrieval", str(tmp_path.resolve()))
    data = read(task, "test", "default", client())
    assert isinstance(data.truth, Qrels)
    assert texts(data, "query") == ["red", "rot", "blue"]
    assert data.sides["document"].ids == ("a.png", "b.png", "c.png")
    assert list(zip(data.truth.query, data.truth.document, strict=True)) == [(0, 0), (0, 1), (1, 0), (2, 2)]
    [content] = decode(data.sides["document"].items[2].parts, 8, 16_000)
    assert content.value.getpixel((0, 0)) == (2, 0, 0)


def test_labels_make_a_zero_shot_task(tmp_path: Path) -> None:
    make(tmp_path, "Image,Class\na.png,cat\nb.png,dog\nc.png,cat\n")
    [task] = two_tasks(tmp_path, templates=["a {}", "the {}"])
    assert (task.evaluator, task.labels, task.chance) == ("zeroshot", ("cat", "dog"), 0.5)
    data = read(task, "test", "default", client())
    assert isinstance(data.truth, Classes)
    assert texts(data, "prompt") == ["a cat", "the cat", "a dog", "the dog"]
    np.testing.assert_array_equal(data.truth.label, [0, 1, 0])
    np.testing.assert_array_equal(data.truth.prompt, [0, 0, 1, 1])


def test_both_make_both_and_empty_cells_are_reported(tmp_path: Path) -> None:
    make(tmp_path, "path,text,label\na.png,one,x\nb.png,,y\nc.png,three,\n")
    captions, labels = two_tasks(tmp_path)
    assert [task.name for task in (captions, labels)] == [f"{tmp_path.name}Retrieval", f"{tmp_path.name}ZeroShot"]
    data = read(captions, "test", "default", client())
    assert (len(data.sides["query"]), len(data.sides["document"]), data.skipped) == (
        2,
        3,
        ("1 of 3 rows of test have no text: row 1; what they name is in the corpus",),
    )
    skipped = ("left out 1 of 3 rows of test that have no label: row 2",)
    assert read(labels, "test", "default", client()).skipped == skipped


def test_many_empty_cells_are_one_word(tmp_path: Path) -> None:
    make(tmp_path, "file,caption\na.png,one\n" + "b.png,\n" * 2994)
    [task] = two_tasks(tmp_path)
    [warning] = read(task, "test", "default", client()).skipped
    assert warning.startswith("2994 of 2995 rows of test have no caption: row 1, 2, 3, 4, 5 and 2989 more; ")


def test_marks_quotes_newlines_folders_and_other_scripts(tmp_path: Path) -> None:
    table = 'file_name,caption\r\nbilder/größe.png,"two\r\nlines, ""quoted"""\r\n猫.png,猫\r\n'
    make(tmp_path, b"\xef\xbb\xbf" + table.encode(), "bilder/größe.png 猫.png")
    [task] = two_tasks(tmp_path)
    data = read(task, "test", "default", client())
    assert texts(data, "query") == ['two\r\nlines, "quoted"', "猫"]
    assert data.sides["document"].ids == ("bilder/größe.png", "猫.png")


def test_columns_and_the_table_can_be_named(tmp_path: Path) -> None:
    make(tmp_path, "pic,says,kind\na.png,one,x\nb.png,two,y\n", name="other.csv")
    make(tmp_path, "file,caption\na.png,one\n", name="metadata.csv")
    assert len(two_tasks(tmp_path)) == 1  # metadata.csv is the default
    tasks = two_tasks(tmp_path, table="other.csv", file="pic", caption="says", label="kind")
    assert [read(task, "test", "default", client()).truth.__class__ for task in tasks] == [Qrels, Classes]


def test_a_changed_folder_is_noticed(tmp_path: Path) -> None:
    [task] = two_tasks(make(tmp_path, "file,caption\na.png,one\n"))
    assert two_tasks(tmp_path) == [task]
    os.utime(tmp_path / "a.png", ns=(1, 1))
    assert two_tasks(tmp_path) == [task]  # touched, not changed
    Image.new("RGB", (2, 2), "white").save(tmp_path / "a.png")
    with pytest.raises(EmbarkError, match="has changed since"):
        read(task, "test", "default", client())
    assert two_tasks(tmp_path)[0].source.revision != task.source.revision


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "has no rows"),
        ("file,caption\n", "has no rows"),
        ("thing,caption\na.png,one\n", "no column of files.*its columns are thing, caption"),
        ("file,title\na.png,one\n", "neither a column of captions.*its columns are file, title"),
        ("file,caption\n" + "".join(f"{at}.png,x\n" for at in range(7)), "7 of 7 files.*0.png, 1.png.* and 2 more"),
        ("file,caption\n,one\n", "No row of .*data.csv names a file in column 'file'"),
        ("file,label\na.png,x\nb.png,x\n", "needs two labels or more; it has 'x'"),
        ("file,label\na.png,\n", "needs two labels or more; it has none"),
        ("file,label\na.png,x\na.png,y\n", "a.png has two labels.*'x' and 'y'"),
        ("file,caption\na.png,\n", "Column 'caption'.*is empty"),
        ("file,caption\na.png,red, round\n", "row 1 has more cells than the header: quote"),
        ('file,caption\na.png,"red\n', "data.csv cannot be read: unexpected end of data"),
        ("file,caption\na.png,größe\n".encode("latin-1"), "not UTF-8"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, table: str | bytes, message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        two_tasks(make(tmp_path, table))


def test_errors_about_the_folder_and_the_options(tmp_path: Path) -> None:
    with pytest.raises(EmbarkError, match="There is no folder"):
        two_tasks(tmp_path / "nowhere")
    with pytest.raises(EmbarkError, match=r"has no table .* and no subfolders of media"):
        two_tasks(tmp_path)
    make(tmp_path, "file,label\na.png,x\nb.png,y\n", name="one.csv")
    with pytest.raises(EmbarkError, match="There is no file"):
        two_tasks(tmp_path, table="two.csv")
    with pytest.raises(EmbarkError, match="no column 'tag'; its columns are file, label"):
        two_tasks(tmp_path, label="tag")
    for templates in ("a photo of {}", ["a photo"], []):
        with pytest.raises(EmbarkError, match="templates must be"):
            two_tasks(tmp_path, templates=templates)
    make(tmp_path, "", name="two.csv")
    with pytest.raises(EmbarkError, match=r"several tables \(one.csv, two.csv\)"):
        two_tasks(tmp_path)
