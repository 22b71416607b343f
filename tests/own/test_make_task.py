"""`embark.task`: any data is a task, run, kept and compared like every other."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

import embark
from embark import readers
from embark.hub import Hub
from embark.types import Classes, Gold, Matches, Qrels, Split

COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}


def picture(name: str, shade: int = 0) -> Image.Image:
    return Image.new("RGB", (8, 8), tuple(max(0, value - shade) for value in COLORS[name]))


def rows(count: int = 12) -> list[dict[str, Any]]:
    names = list(COLORS)
    return [
        {"image": picture(names[row % 3], row), "caption": f"a {names[row % 3]} page {row}", "label": names[row % 3]}
        for row in range(count)
    ]


class Pages:
    """A data set as torchvision has them: numbers behind which `classes` are, and no end."""

    classes = ("red", "green", "blue")

    def __init__(self, count: int = 12) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> tuple[Image.Image, int]:
        return picture(self.classes[row % 3], row), row % 3


def read(task: embark.types.Task, split: str = "test") -> Any:
    return readers.read(task, split, "default", Hub(embark.load_settings()))


def score(model: Any, task: embark.types.Task) -> float:
    run = embark.evaluate(model, [task], show_progress=False)
    assert run.skipped == []
    return run.results[0].score


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def frames() -> Iterator[Any]:
    table = [row | {"image": png(row["image"])} for row in rows()]
    yield pd.DataFrame(table)
    yield pa.Table.from_pylist(table)
    yield table
    yield iter(table)


def test_equal_content_is_one_task_whatever_object_it_came_in(tiny: embark.Encoder) -> None:
    """A pandas frame, an Arrow table, a list of rows and an iterator: one identity, so one evaluation."""
    tasks = [embark.task(data, columns={"image": "image", "text": "caption"}, name="Pages") for data in frames()]
    assert len(set(map(repr, tasks))) == 1
    assert (tasks[0].evaluator, tasks[0].reader, tasks[0].modalities) == ("retrieval", "paired", ("text", "image"))
    first = embark.evaluate(tiny, [tasks[0]], show_progress=False)
    again = embark.evaluate(tiny, [tasks[-1]], show_progress=False)
    assert first.embedded > 0
    assert (again.embedded, again.computed) == (0, 0)
    other = embark.task(rows(9), columns={"image": "image", "text": "caption"}, name="Pages")
    assert other.source.revision != tasks[0].source.revision


def test_a_data_set_of_torchvision_is_a_task(tiny: embark.Encoder) -> None:
    """Its numbers get the names of its classes; a probe's test is held out, and the row says how."""
    task = embark.task(Pages())
    assert (task.evaluator, task.labels) == ("zeroshot", ("red", "green", "blue"))
    assert score(tiny, task) == 1.0
    probe = embark.task(Pages(30), "probe", name="PagesProbe", params={"shots": 4, "runs": 2})
    assert dict(probe.options) == {"equal": "one", "divide": {"train": 0.5, "seed": 42}}
    run = embark.evaluate(tiny, [probe], show_progress=False)
    assert run.results[0].score == 1.0
    warnings = " ".join(run.results[0].records[0].warnings)
    assert "15 of 30 rows of test are for training: drawn by content, 50% of each class, seed 42" in warnings
    splits = embark.task({"train": Pages(9), "test": Pages(30)}, "probe", params={"shots": 2, "runs": 2})
    assert (dict(splits.rows), splits.source.splits) == ({"train": 9, "test": 30}, ("test",))
    assert isinstance(read(splits).truth, Split)
    assert "divide" in embark.task({"train": Pages(9)}, "probe").options  # never from what is scored
    with pytest.raises(embark.EmbarkError, match="cannot learn from 'test', which is scored"):
        embark.task({"train": Pages(9), "test": Pages(30)}, "probe", train="test")


@pytest.mark.slow
def test_results_are_compared_ranked_and_shown_afterwards(tiny: embark.Encoder) -> None:
    """In a process that never saw the data."""
    task = embark.task(Pages(), name="Pages")
    blind = embark.encoder(image=lambda images: np.ones((len(images), 3)) + np.arange(3), text=lambda texts: np.ones(
        (len(texts), 3)) + np.arange(3), name="test/blind", revision="1")  # fmt: skip
    embark.evaluate([tiny, blind], [task], show_progress=False)
    code = (
        "import embark;"
        "print([entry.model.model for entry in embark.leaderboard(tasks='Pages').entries]);"
        "print(embark.compare('test/tiny', 'test/blind', tasks='Pages').sentence());"
        "print(list(embark.show('Pages')['sample']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "['test/tiny', 'test/blind']" in ran.stdout
    assert "test/tiny is better" in ran.stdout
    assert "item" in ran.stdout.splitlines()[-1]


def test_splits_by_a_column_or_held_out_by_content() -> None:
    """Equal content is on one side of a split that is made, whatever the order; another seed draws others."""
    labeled = [{"text": f"{row % 20}", "label": row % 2, "split": "train" if row % 3 else "test"} for row in range(60)]
    task = embark.task(labeled, "probe")
    assert dict(task.rows) == {"test": 20, "train": 40}
    assert "split" not in task.columns
    unsplit = [{name: row[name] for name in ("text", "label")} for row in labeled]
    made = read(embark.task(unsplit, "probe"))
    texts = {side: {item.parts[0].text for item in made.sides[side].items} for side in ("train", "test")}
    assert (len(texts["train"]), len(texts["test"])) == (10, 10)
    assert not texts["train"] & texts["test"]
    turned = read(embark.task(unsplit[::-1], "probe"))
    assert {item.parts[0].text for item in turned.sides["test"].items} == texts["test"]
    other = read(embark.task(unsplit, "probe", options={"divide": {"train": 0.5, "seed": 1}}))
    assert {item.parts[0].text for item in other.sides["test"].items} != texts["test"]


def test_each_kind_of_task_is_made_of_its_usual_columns(tiny: embark.Encoder) -> None:
    """Each from the columns that it is usually in."""
    similar = [("a red page", "a red sheet", 5), ("a red page", "a blue page", 1.5), ("green", "green", 4)]
    sts = embark.task(similar)
    assert (sts.evaluator, sts.modalities, type(read(sts).truth)) == ("sts", ("text",), Gold)
    same = [{"sentence1": "a red page", "sentence2": word, "labels": int(word == "red")} for word in ("red", "blue")]
    duplicates = embark.task(same)
    assert (duplicates.evaluator, duplicates.metric, duplicates.category) == (
        "pair-classification", "cosine_ap", "Pair classification",
    )  # fmt: skip
    assert read(duplicates).truth.score.tolist() == [1, 0]
    fits = [{"image": picture("red"), "caption": f"a {name} page", "label": name == "red"} for name in COLORS]
    shown = embark.task(fits, "pair-classification", {"label": "label", "left": "image", "right": "caption"})
    assert (shown.modalities, dict(shown.options)) == (("text", "image"), {"left": "image"})
    assert [read(shown).sides[side].items[0].modalities for side in ("left", "right")] == [("image",), ("text",)]
    assert 0 <= score(tiny, shown) <= 1
    questions = [{"image": picture("red"), "question": "?", "choices": ["red", "blue"], "answer": 0}]
    choice = embark.task(questions)
    assert (choice.evaluator, choice.mixed, type(read(choice).truth)) == ("choice", True, Qrels)
    swaps = [{"photo": picture(name), "right": name, "wrong": "nothing"} for name in COLORS]
    pairs = embark.task(swaps, columns={"images": "photo", "texts": "right,wrong"})
    assert (pairs.evaluator, pairs.metric, type(read(pairs).truth)) == ("pairs", "text_acc", Matches)
    assert score(tiny, pairs) == 1.0
    tags = [{"text": f"{row % 4} and {row % 3}", "labels": [str(row % 4), f"t{row % 3}"]} for row in range(24)]
    multilabel = embark.task(tags)
    assert (multilabel.evaluator, type(read(multilabel).truth)) == ("multilabel", Split)
    answers = embark.task([("who sleeps?", "the cat"), ("who barks?", "the dog")], "retrieval")
    assert dict(answers.columns) == {"query_text": "item", "corpus_text": "label"}
    assert type(read(answers).truth) is Qrels
    spoken = [{"image": picture("red"), "audio": (np.ones(80), 8000)}]
    heard = embark.task(spoken, columns={"audio": "audio", "image": "image"})
    assert (heard.evaluator, heard.options["query"]) == ("retrieval", "audio")
    assert read(heard).sides["query"].items[0].modalities == ("audio",)
    groups = embark.task(rows(), "clustering")
    assert dict(groups.columns) == {"image": "image", "label": "label"}  # the pictures, not their captions
    zeroshot = embark.task(rows(), "zero-shot", templates="a {} page")
    assert (zeroshot.evaluator, zeroshot.templates) == ("zeroshot", ("a {} page",))
    assert isinstance(read(zeroshot).truth, Classes)
    assert score(tiny, zeroshot) == 1.0


def test_items_are_pictures_arrays_paths_and_bytes(tmp_path: Path) -> None:
    """Equal pixels are one content: of a PIL image, of arrays with the channels first or last, of floats."""
    pixels = np.asarray(picture("red", 3))
    items = [picture("red", 3), pixels, np.moveaxis(pixels, -1, 0), (pixels / 255).astype(np.float32)]
    torch = pytest.importorskip("torch")
    items += [torch.tensor(np.moveaxis(pixels, -1, 0).copy()) / 255]
    task = embark.task([(item, f"page {row}") for row, item in enumerate(items)], "retrieval")
    data = read(task)
    assert (len(data.sides["document"]), len(data.sides["query"])) == (1, 5)
    (tmp_path / "red.png").write_bytes(png(picture("red")))
    table = [{"file": "red.png", "label": "a"}, {"file": "red.png", "label": "b"}]
    files = embark.task(table, "zeroshot", folder=tmp_path, options={"equal": "apart"})
    pairs = [(png(picture("red")), "a"), (tmp_path / "red.png", "b")]
    encoded = embark.task(pairs, "zeroshot", options={"equal": "apart"})
    digests = [item.parts[0].digest for task in (files, encoded) for item in read(task).sides["item"].items]
    assert len(digests) == 4
    assert len(set(digests)) == 1
    with pytest.raises(embark.EmbarkError, match=r"Row 0: .* outside 0 to 1: give the pictures before"):
        embark.task([(pixels.astype(np.float32), "a")])


def test_sounds_are_arrays_with_their_rate() -> None:
    tone = np.sin(np.arange(800) / 20)
    task = embark.task([((tone, 8000), "a tone"), ({"array": tone, "sampling_rate": 8000}, "the same")], "retrieval")
    assert task.modalities == ("text", "audio")
    [sound] = read(task).sides["document"].items  # equal samples are one sound
    with wave.open(io.BytesIO(sound.parts[0].read()[0])) as file:
        assert (file.getframerate(), file.getnframes()) == (8000, 800)
    assert embark.task([(tone, "a")], "retrieval", rate=8000).modalities == ("text", "audio")
    with pytest.raises(embark.EmbarkError, match="has no rate: give rate=…, or each sound as"):
        embark.task([(tone, "a")], "retrieval")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (rows(), {}, "What is the task? Name its kind (retrieval, zeroshot"),
        (rows(), {"columns": {"picture": "image"}, "kind": "zeroshot"}, "has no column for 'picture'; its roles are"),
        (rows(), {"columns": {"image": "imag", "label": "label"}}, "no column named 'imag'. Did you mean image"),
        ([{"a": 1, "b": 2}], {"kind": "probe"}, "It needs image (or text, audio, video) and label; name them, as in"),
        (rows(), {"kind": "ranking"}, "There is no kind named 'ranking'"),
        (rows(), {"kind": "zeroshot", "metrics": "x"}, "no field of a task named 'metrics'. Did you mean metric"),
        (rows(), {"kind": "retrieval", "options": {"quer": "image"}}, "no option of 'paired' named 'quer'"),
        (rows(), {"kind": "retrieval", "options": {"query": 3}}, "'query' of 'paired' must be text or list, not 3"),
        ([], {}, "The data has no rows"),
        (["a", "b"], {}, "Row 0 is a str: rows are dictionaries"),
        (17, {}, "No task can be made of int"),
        ([(row["image"], row["caption"]) for row in rows()], {}, "if it holds captions, say kind='retrieval'"),
        ({"text": ["a", "b"], "label": [1, 2]}, {}, "a mapping is one of splits to rows"),
        ({"train": rows(), "other": rows(), "third": rows()}, {"kind": "zeroshot"}, "Name it with split=…"),
        ([("a", {"boxes": 1})], {"kind": "zeroshot"}, "Column 'label' holds dict"),
        ([(Path("missing.png"), "a")], {}, "Row 0: There is no image missing.png"),
    ],
)  # fmt: skip
def test_errors_say_what_to_name(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(embark.EmbarkError) as raised:
        embark.task(data, **options)
    assert message in str(raised.value)


def test_the_row_can_be_kept_in_a_file(tiny: embark.Encoder) -> None:
    """Its data is in home, outside the file's folder, so the user allows it; the scores on disk stand."""
    task = embark.task(rows(), "retrieval", name="Pages")
    embark.evaluate(tiny, [task], show_progress=False)
    Path("tasks.toml").write_text(embark.tasks.to_toml(task))
    [row] = embark.load_tasks("tasks.toml", allow_outside=True)
    assert row.source == task.source
    again = embark.evaluate(tiny, [row], show_progress=False)
    assert (again.embedded, again.computed) == (0, 0)


def test_a_folder_of_tables_is_a_task(tiny: embark.Encoder) -> None:
    Path("pets").mkdir()
    Path("pets/test.csv").write_text("words,colour\na red page,red\na blue page,blue\na red sheet,red\n")
    task = embark.task("pets", "clustering", {"text": "words", "label": "colour"})
    assert (task.name, task.source.id) == ("petsClustering", str(Path("pets").resolve()))
    assert score(tiny, task) == 1.0
    with pytest.raises(embark.EmbarkError, match="is a file: its folder is the data"):
        embark.task("pets/test.csv")


def test_missing_values_of_frames_are_missing() -> None:
    frame = pd.DataFrame({"text": ["a", None, "c"], "label": ["x", "y", float("nan")]})
    task = embark.task(frame, "clustering", unreadable="skip")
    assert len(read(task).sides["item"]) == 1
    with pytest.raises(embark.EmbarkError, match="1 of 3 rows of test have no label: row 2"):
        read(embark.task(frame, "clustering"))


def test_a_failure_leaves_nothing_behind(elsewhere: Path) -> None:
    data = [(picture("red"), "a"), (object(), "b")]
    with pytest.raises(embark.EmbarkError, match="Row 1: object is no image"):
        embark.task(data, "zeroshot")
    own = elsewhere / "home" / "own"
    assert list(own.iterdir()) == []
    (own / ".part-killed").mkdir()
    os.utime(own / ".part-killed", (0, 0))
    task = embark.task(Pages())
    assert [path.name for path in own.iterdir()] == [Path(task.source.id).name]


@pytest.mark.slow
def test_frames_of_polars_and_data_sets_of_datasets_are_tasks() -> None:
    """The libraries themselves, which the extra test-all brings: the same rows are the same task."""
    datasets = pytest.importorskip("datasets")
    polars = pytest.importorskip("polars")
    table = [row | {"image": png(row["image"])} for row in rows()]
    columns = {"image": "image", "text": "caption"}
    task = embark.task(table, columns=columns)
    assert embark.task(polars.DataFrame(table), columns=columns) == task
    assert embark.task(polars.LazyFrame(table), columns=columns) == task
    classes = datasets.ClassLabel(names=[*COLORS])
    kinds = {"image": datasets.Image(), "caption": datasets.Value("string"), "label": classes}
    stored = [row | {"image": {"bytes": row["image"], "path": None}} for row in table]
    data = datasets.Dataset.from_list(stored, datasets.Features(kinds))
    assert embark.task(data, columns=columns) == task  # media as they are stored, not decoded and encoded again
    both = embark.task(datasets.DatasetDict({"train": data, "test": data.select(range(6))}), "probe")
    assert (both.labels, dict(both.rows)) == (tuple(COLORS), {"train": 12, "test": 6})
    assert embark.task(data.to_iterable_dataset(), "zeroshot").labels == tuple(COLORS)


def test_names_of_files_beside_labels_are_files(tmp_path: Path) -> None:
    for number, name in enumerate(COLORS):
        picture(name).save(tmp_path / f"{number}.png")
    pairs = [(f"{number}.png", name) for number, name in enumerate(COLORS)]
    task = embark.task(pairs, "zeroshot", folder=tmp_path)
    assert task.columns == {"image": "item", "label": "label"}


def test_numbers_are_not_cut() -> None:
    pairs = [("a", str(row), row % 5 if row < 1200 else 0.5) for row in range(1500)]
    with pytest.raises(embark.EmbarkError, match="'score' holds whole numbers first, and fractions up to row 1500"):
        embark.task(pairs)
    assert embark.task([(left, right, float(score)) for left, right, score in pairs]).evaluator == "sts"


def test_two_columns_of_one_name_and_broken_text_are_errors() -> None:
    with pytest.raises(embark.EmbarkError, match="Several columns are named 'text'"):
        embark.task(pd.DataFrame([["a", "b", "x"]], columns=["text", "text", "label"]), "clustering")
    with pytest.raises(embark.EmbarkError, match="Row 1: Column 'item' holds a text that is not valid Unicode"):
        embark.task([("a", "x"), ("b\ud800", "y")], "clustering")


def test_a_folder_of_media_is_shown_the_way(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    picture("red").save(tmp_path / "a" / "a.png")
    with pytest.raises(embark.EmbarkError, match=r"embark\.folder_task\(folder\)"):
        embark.task(tmp_path)


def test_unknown_kinds_and_roles_are_named() -> None:
    with pytest.raises(embark.EmbarkError, match=r"no kind named 'foo'\. There are retrieval, zeroshot"):
        embark.task(rows(), "foo")
    with pytest.raises(embark.EmbarkError, match=r"no role of a column named 'imag'\. Did you mean image"):
        embark.task(rows(), columns={"imag": "image", "text": "caption"})


def test_pictures_without_pixels_are_errors(tmp_path: Path) -> None:
    with pytest.raises(embark.EmbarkError, match="Row 1: An image of 4 × 0 has no pixels"):
        embark.task([(np.zeros((4, 4, 3), np.uint8), "a"), (np.zeros((0, 4, 3), np.uint8), "b")], "zeroshot")
    Image.effect_noise((64, 64), 50).save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:500])
    with (
        Image.open(tmp_path / "cut.png") as cut,
        pytest.raises(embark.EmbarkError, match=r"Row 1: An image \(.*cut\.png\) cannot be decoded"),
    ):
        embark.task([(picture("red"), "a"), (cut, "b")], "zeroshot")
