"""Webdataset shards with classes or captions: what is read, how it is scored, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

import embark
from embark.catalogue import UnknownName
from embark.items.drop_items import without
from embark.readers import read
from embark.types import Classes, EmbarkError, Matches, Source, Task
from hub import FakeHub, client
from samples_unibench import lists, npy, shards, webp

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
NAMES, TEMPLATES = ("red", "green", "dark blue"), ("a {} page.", "the {} page.")

ZEROSHOT = Task(
    name="Colours", family="Test", evaluator="zeroshot", reader="webdataset-zeroshot", metric="accuracy",
    category="Test", modalities=("text", "image"), source=Source("test/wds_colours", "main"),
    columns={"image": "webp", "label": "cls"},
)  # fmt: skip
RELATION = replace(
    ZEROSHOT, evaluator="pairs", reader="webdataset-relation", metric="text_acc",
    columns={"image": "webp", "captions": "npy"},
)  # fmt: skip


def classed(*labels: tuple[tuple[int, int, int], object]) -> dict[str, bytes]:
    """Pictures with a class number each, or a list of them."""
    return shards(
        [
            {
                "0.webp": webp(colour),
                **({"cls": str(label).encode()} if isinstance(label, int) else {"npy": npy(label)}),
            }
            for colour, label in labels
        ]
    )


def captioned(*samples: tuple[Sequence[tuple[int, int, int]], object]) -> dict[str, bytes]:
    """Pictures with captions."""
    return shards(
        [
            {f"{at}.webp": webp(one) for at, one in enumerate(colours)} | {"npy": npy(texts)}
            for colours, texts in samples
        ]
    )


def add(hub: FakeHub, *files: Mapping[str, bytes]) -> None:
    hub.add("test/wds_colours", {path: data for some in files for path, data in some.items()})


def test_classes_and_prompts_come_from_the_dataset(hub: FakeHub, tiny: embark.Encoder) -> None:
    add(hub, classed((RED, 0), (GREEN, 1), (BLUE, 2), (RED, 1)), lists(NAMES, TEMPLATES))
    data = read(ZEROSHOT, "test", "default", client())
    assert isinstance(data.truth, Classes)
    assert data.truth.names == NAMES  # spelt RED, GREEN, DARK_BLUE in the file
    assert data.truth.label.tolist() == [0, 1, 2, 1]
    assert data.truth.prompt.tolist() == [0, 0, 1, 1, 2, 2]
    texts = [item.parts[0].text for item in data.sides["prompt"].items]  # type: ignore[union-attr]
    assert texts[-2:] == ["a dark blue page.", "the dark blue page."]
    assert data.skipped == ()
    (result,) = embark.evaluate(tiny, ZEROSHOT, show_progress=False).results
    assert result.score == 0.75


def test_the_row_s_own_lists(hub: FakeHub) -> None:
    add(hub, classed((RED, 0), (GREEN, 1)))
    row = replace(ZEROSHOT, options={"labels": "row"}, labels=("red", "green"), templates=("{}",))
    data = read(row, "test", "default", client())
    assert isinstance(data.truth, Classes)
    assert data.truth.names == ("red", "green")


def test_empty_names_and_odd_spaces_are_kept_as_unibench_does(hub: FakeHub) -> None:
    files = {
        "classnames.txt": b"near\n\nHead_of  a crocodile\n",
        "zeroshot_classification_templates.txt": b"A {c} One.\n",
    }
    add(hub, classed((RED, 0), (GREEN, 1)), files)
    data = read(ZEROSHOT, "test", "default", client())
    assert isinstance(data.truth, Classes)
    assert data.truth.names == ("near", "", "head of a crocodile")
    assert [item.parts[0].text for item in data.sides["prompt"].items][1] == "a  one."  # type: ignore[union-attr]


def test_several_labels_count_if_any_is_right(hub: FakeHub, tiny: embark.Encoder) -> None:
    add(hub, classed((RED, [1, 0]), (GREEN, [0, 2]), (BLUE, [2])), lists(NAMES, TEMPLATES))
    data = read(ZEROSHOT, "test", "default", client())
    assert isinstance(data.truth, Classes)
    assert data.truth.label.tolist() == [[True, True, False], [True, False, True], [False, False, True]]
    (result,) = embark.evaluate(tiny, ZEROSHOT, show_progress=False).results
    assert result.score == pytest.approx(2 / 3)


def test_lists_of_one_label_are_plain_labels(hub: FakeHub) -> None:
    add(hub, classed((RED, [1]), (GREEN, [2])), lists(NAMES, TEMPLATES))
    data = read(ZEROSHOT, "test", "default", client())
    assert isinstance(data.truth, Classes)
    assert data.truth.label.tolist() == [1, 2]


def test_differences_from_the_row_are_told(hub: FakeHub) -> None:
    add(hub, classed((RED, 0)), lists(NAMES, TEMPLATES))
    row = replace(ZEROSHOT, options={"classes": 4}, labels=("red", "green", "blue", "grey"), templates=TEMPLATES[:1])
    assert read(row, "test", "default", client()).skipped == (
        "3 class names where the task expects 4",
        "the dataset's class names are not those listed in the task; the first that differs: 'dark blue' for 'blue'",
        "the dataset's templates are not those listed in the task; the first that differs: 'the {} page.' for None",
    )


@pytest.mark.parametrize("missing", ["classnames.txt", "zeroshot_classification_templates.txt"])
def test_missing_lists_are_explained(missing: str, hub: FakeHub) -> None:
    files = lists(NAMES, TEMPLATES)
    del files[missing]
    add(hub, classed((RED, 0)), files)
    with pytest.raises(EmbarkError, match=f"Colours takes its prompts from the dataset's {missing}.* has no file"):
        read(ZEROSHOT, "test", "default", client())
    with pytest.raises(EmbarkError, match="Protocol 'listed' uses the task's own lists"):
        read(replace(ZEROSHOT, variants={"listed": {}}), "test", "default", client())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (classed((RED, 0), (RED, 3)), r"sample 1 has class \[3\], but there are 3 class names"),
        (classed((RED, ["red"])), "labels must be whole numbers, sample 0 has 'red'"),
        (classed((RED, 0), (RED, [1])), "1 samples lack 'cls', the first is number 1"),
        (shards([{"0.webp": webp(RED), "1.webp": webp(RED), "cls": b"0"}]), "needs 1 images .* 0.webp, 1.webp, cls"),
        (
            shards([{"0.webp": webp(RED), "cls": b"0"}, {"cls": b"0"}]),
            "1 samples lack an image, the first is number 1",
        ),
    ],
)
def test_wrong_samples_are_refused(files: Mapping[str, bytes], message: str, hub: FakeHub) -> None:
    add(hub, files, lists(NAMES, TEMPLATES))
    with pytest.raises(EmbarkError, match=message):
        read(ZEROSHOT, "test", "default", client())


def test_templates_need_a_place_for_the_name(hub: FakeHub) -> None:
    add(hub, classed((RED, 0)), lists(NAMES, ("a page",)))
    with pytest.raises(EmbarkError, match=r"needs class names and templates with \{\}"):
        read(ZEROSHOT, "test", "default", client())


def test_the_number_of_rows_is_checked(hub: FakeHub) -> None:
    add(hub, classed((RED, 0), (GREEN, 1)), lists(NAMES, TEMPLATES))
    assert len(read(replace(ZEROSHOT, rows={"test": 2}), "test", "default", client()).sides["item"]) == 2
    with pytest.raises(EmbarkError, match=r"has 2 rows .* expected 3"):
        read(replace(ZEROSHOT, rows={"test": 3}), "test", "default", client())


# ── captions ──


def test_the_first_caption_is_right_and_wins_ties(hub: FakeHub, tiny: embark.Encoder) -> None:
    add(
        hub,
        captioned(
            ([RED], ["red", "green", "blue"]),  # right
            ([GREEN], ["red", "green", "blue"]),  # wrong
            ([BLUE], ["grey", "white", "black"]),  # a tie: the model knows none of these words
            ([BLUE], ["blue", "red", "blue"]),  # a tie for the best
        ),
    )
    data = read(RELATION, "test", "default", client())
    assert isinstance(data.truth, Matches)
    assert data.truth.image.tolist() == [[0], [1], [2], [3]]
    assert data.truth.text.tolist() == np.arange(12).reshape(4, 3).tolist()
    (result,) = embark.evaluate(tiny, RELATION, show_progress=False).results
    assert result.score == 0.75


def test_winoground_is_strict(hub: FakeHub, tiny: embark.Encoder) -> None:
    add(
        hub,
        captioned(
            ([RED, GREEN], ["red", "green"]),  # right
            ([GREEN, RED], ["red", "green"]),  # crossed
            ([RED, RED], ["red", "green"]),  # both images prefer one caption
            ([RED, GREEN], ["grey", "grey"]),  # ties
        ),
    )
    row = replace(RELATION, metric="accuracy", params={"strict": True}, options={"images": 2, "captions": 2})
    (result,) = embark.evaluate(tiny, row, show_progress=False).results
    (record,) = result.records
    assert record.metrics["accuracy"] == record.metrics["text_acc"] == record.metrics["image_acc"] == 0.25
    assert record.score == 0.25


def test_another_number_of_captions_is_told(hub: FakeHub) -> None:
    add(hub, captioned(([RED], ["one", "two"])))
    data = read(replace(RELATION, options={"captions": 10}), "test", "default", client())
    assert data.skipped == ("2 captions per sample where the task expects 10",)


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        ((["a", "b"], ["a"]), r"same number of captions, found arrays of \[\(1,\), \(2,\)\]"),
        (([["a", "b"]],), r"found arrays of \[\(1, 2\)\]"),
        (([1, 2],), "same number of captions"),
    ],
)
def test_wrong_captions_are_refused(captions: tuple[list[object], ...], message: str, hub: FakeHub) -> None:
    add(hub, captioned(*(([RED], one) for one in captions)))
    with pytest.raises(EmbarkError, match=message):
        read(RELATION, "test", "default", client())


def test_pickles_are_refused(hub: FakeHub) -> None:
    add(hub, captioned(([RED], np.array(["a", "longer"], dtype=object))))
    with pytest.raises(EmbarkError, match="pickled objects"):
        read(RELATION, "test", "default", client())


def told(hub: FakeHub) -> None:
    """Pictures that tell their corruption as UniBench's ImageNet-C does (split.txt), and more in a json."""
    colours = [RED, GREEN, BLUE, RED, GREEN, BLUE]
    samples = [
        {
            "0.webp": webp(colour),
            "cls": str(row % 2 if row > 3 else row % 3).encode(),
            "split.txt": b"blur\n" if row % 2 else b"fog\n",
            "json": json.dumps({"severity": row // 3, "attribute": None if row else "big"}).encode(),
        }
        for row, colour in enumerate(colours)
    ]
    add(hub, shards(samples), lists(NAMES, TEMPLATES))


def test_what_archives_tell_about_pictures_is_kept_with_the_outcomes(hub: FakeHub, tiny: embark.Encoder) -> None:
    told(hub)
    data = read(ZEROSHOT, "test", "default", client())
    assert list(data.about["item"]["split"]) == ["fog", "blur"] * 3
    assert list(data.about["item"]["severity"]) == ["0"] * 3 + ["1"] * 3
    assert data.about["item"]["attribute"][:2] == ["big", None]
    fewer = without(data, {"item": [0, 1]})
    assert list(fewer.about["item"]["severity"]) == ["0", "1", "1", "1"]
    (result,) = embark.evaluate(tiny, ZEROSHOT, show_progress=False).results
    outcomes = result.outcomes().to_pydict()
    assert outcomes["about_split"] == ["fog", "blur"] * 3
    study = embark.analyze.breakdown(tasks=ZEROSHOT, by="split")
    parts = {part.value: part for part in study.parts}
    right = np.array(outcomes["accuracy"])
    means = {"fog": right[::2].mean(), "blur": right[1::2].mean()}
    assert {value: part.score for value, part in parts.items()} == means
    assert parts["fog"].items == 3
    assert study.table().rows[0].cells[:3] == ("Colours", "split", "blur")
    every = embark.analyze.breakdown(tasks=ZEROSHOT).parts
    assert {part.fact for part in every} == {"split", "severity", "attribute"}
    with pytest.raises(UnknownName, match="severity"):
        embark.analyze.breakdown(tasks=ZEROSHOT, by="severty")


def test_facts_of_samples_with_captions(hub: FakeHub, tiny: embark.Encoder) -> None:
    samples = [{"0.webp": webp(RED), "npy": npy(["red", "green"]), "split.txt": name} for name in (b"swap", b"add")]
    add(hub, shards(samples))
    (result,) = embark.evaluate(tiny, RELATION, show_progress=False).results
    assert result.outcomes()["about_split"].to_pylist() == ["swap", "add"]


def test_without_facts_there_is_nothing_to_break_down(hub: FakeHub, tiny: embark.Encoder) -> None:
    add(hub, classed((RED, 0), (GREEN, 1)), lists(NAMES, TEMPLATES))
    (result,) = embark.evaluate(tiny, ZEROSHOT, show_progress=False).results
    assert not any(name.startswith("about_") for name in result.outcomes().column_names)
    with pytest.raises(EmbarkError, match="No result on disk has facts about its items"):
        embark.analyze.breakdown(tasks=ZEROSHOT)


def test_a_sample_is_drawn_as_unibench_draws_it(hub: FakeHub) -> None:
    """Rows are shuffled with seed 42 as `datasets` does, and the first ones taken; the others are never read."""
    told(hub)
    row = replace(ZEROSHOT, options={"sample": 4})
    chosen = sorted(np.random.default_rng(42).permutation(6)[:4].tolist())
    data = read(row, "test", "default", client())
    whole = read(ZEROSHOT, "test", "default", client())
    assert data.sides["item"].ids == list(map(str, chosen))
    assert [item.parts[0].digest for item in data.sides["item"].items] == [  # type: ignore[union-attr]
        whole.sides["item"].items[number].parts[0].digest
        for number in chosen  # type: ignore[union-attr]
    ]
    assert isinstance(data.truth, Classes)
    assert isinstance(whole.truth, Classes)
    assert data.truth.label.tolist() == whole.truth.label[chosen].tolist()
    assert list(data.about["item"]["split"]) == [whole.about["item"]["split"][number] for number in chosen]
    assert len(read(replace(row, options={"sample": 9}), "test", "default", client()).sides["item"]) == 6


@pytest.mark.slow
def test_a_sample_is_that_of_the_datasets_library() -> None:
    datasets = pytest.importorskip("datasets")
    shuffled = datasets.Dataset.from_dict({"row": list(range(100))}).shuffle(seed=42)["row"][:9]
    assert list(shuffled) == np.random.default_rng(42).permutation(100)[:9].tolist()
