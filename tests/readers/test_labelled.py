"""Labelled items, on small datasets of MIEB's shapes: what the reader makes of values, and of bad ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from embark.types import (
    Classes,
    EmbarkError,
    Groups,
    Split,
)
from hub import parquet, wav
from tables import IMAGES, Make, colours, kinds, texts

LABELLED = {"image": "img", "label": "fine"}


def labelled(images: Any = IMAGES[:3], labels: Any = (1, 0, 1), **more: Any) -> bytes:
    return parquet({"img": list(images), "fine": list(labels)}, **more)


def test_a_probe_reads_two_splits_and_leaves_out_the_rows_that_the_task_drops(read: Make) -> None:
    files = {"data/train-0.parquet": labelled(IMAGES[:4], (0, 1, 1, 0)), "data/test-0.parquet": labelled()}
    data = read("labelled", "probe", files, columns=LABELLED, options={"drop": {"train": [2]}})
    assert isinstance(data.truth, Split)
    assert data.truth.train.tolist() == [0, 1, 0]
    assert data.truth.test.tolist() == [1, 0, 1]
    assert data.truth.names == ("0", "1")
    assert data.sides["train"].ids == ("train-0", "train-1", "train-3")
    assert colours(data.sides["train"].items) == ["red", "green", "yellow"]
    assert data.skipped == ("left out 1 rows of train that the task drops: row 2",)


def test_dropping_a_row_that_is_not_there_is_an_error(read: Make) -> None:
    with pytest.raises(EmbarkError, match=r"drops rows that test does not have: \[9\]"):
        read("labelled", "clustering", {"data/test-0.parquet": labelled()}, columns=LABELLED,
             options={"drop": {"test": [9]}})  # fmt: skip


def test_a_probe_may_learn_from_another_split(read: Make) -> None:
    files = {"data/training-0.parquet": labelled(IMAGES[3:5], (1, 0)), "data/test-0.parquet": labelled()}
    data = read("labelled", "probe", files, columns=LABELLED, options={"train": "training"})
    assert colours(data.sides["train"].items) == ["yellow", "white"]


def test_several_labels_become_columns_of_booleans(read: Make) -> None:
    several = labelled(labels=(["dog", "cat"], [], ["dog"]))
    files = {"data/train-0.parquet": several, "data/test-0.parquet": labelled(labels=(["cow"], ["cat"], []))}
    data = read("labelled", "multilabel", files, columns=LABELLED)
    assert isinstance(data.truth, Split)
    assert data.truth.names == ("cat", "cow", "dog")
    assert data.truth.train.tolist() == [[True, False, True], [False, False, False], [False, False, True]]
    assert data.truth.test.tolist() == [[False, True, False], [True, False, False], [False, False, False]]


def test_groups_are_declared_classes_or_sorted_names(read: Make) -> None:
    declared = read("labelled", "clustering", {"data/test-0.parquet": labelled(classes={"fine": ["b", "a"]})},
                    columns=LABELLED)  # fmt: skip
    assert isinstance(declared.truth, Groups)
    assert (declared.truth.names, declared.truth.label.tolist()) == (("b", "a"), [1, 0, 1])
    named = read("labelled", "clustering", {"data/test-0.parquet": labelled(labels=("b", "a", "b"))}, columns=LABELLED)
    assert isinstance(named.truth, Groups)
    assert (named.truth.names, named.truth.label.tolist()) == (("a", "b"), [1, 0, 1])


def test_prompts_are_labels_in_templates_and_line_feeds_are_kept(read: Make) -> None:
    data = read("labelled", "zeroshot", {"data/test-0.parquet": labelled()}, columns=LABELLED,
                labels=("Andorra\n", "Chad\n"), templates=("a photo of {}.", "in {}"))  # fmt: skip
    assert isinstance(data.truth, Classes)
    assert texts(data.sides["prompt"].items) == [
        "a photo of Andorra\n.", "in Andorra\n", "a photo of Chad\n.", "in Chad\n",
    ]  # fmt: skip
    assert data.truth.prompt.tolist() == [0, 0, 1, 1]
    assert data.truth.label.tolist() == [1, 0, 1]


def test_class_names_of_the_data_are_cleaned_for_prompts(read: Make) -> None:
    clean = {"split": "/", "from": 2, "replace": {"_": " "}}
    names = {"fine": ["/a/abbey", "/b/bus_station/indoor"]}
    data = read("labelled", "zeroshot", {"data/test-0.parquet": labelled(classes=names)}, columns=LABELLED,
                templates=("{}.",), options={"labels": "class_names", "clean": clean})  # fmt: skip
    assert texts(data.sides["prompt"].items) == ["abbey.", "bus station indoor."]
    assert isinstance(data.truth, Classes)
    assert data.truth.names == tuple(names["fine"])


def test_equal_class_names_are_separate_classes(read: Make) -> None:
    data = read(
        "labelled", "zeroshot", {"data/test-0.parquet": labelled()}, columns=LABELLED, labels=("crane", "crane")
    )
    assert len(data.sides["prompt"]) == 2


@pytest.mark.parametrize(
    ("labels", "named"), [((0, 7, 1), "7"), (("red", "mauve", "blue"), "'mauve'"), ((0, -1, 1), "-1")]
)
def test_a_label_outside_the_list_is_named(read: Make, labels: Any, named: str) -> None:
    with pytest.raises(EmbarkError, match=rf"labels outside its 2 classes \(red, blue\): {named}"):
        read("labelled", "zeroshot", {"data/test-0.parquet": labelled(labels=labels)}, columns=LABELLED,
             labels=("red", "blue"))  # fmt: skip


def test_numbers_in_a_text_table_are_class_numbers_unless_they_are_names(read: Make) -> None:
    files: dict[str, Any] = {"test.csv": b"said,kind\noh,1\nah,0\n"}
    numbered = read("labelled", "zeroshot", files, columns={"text": "said", "label": "kind"}, labels=("low", "high"))
    assert isinstance(numbered.truth, Classes)
    assert numbered.truth.label.tolist() == [1, 0]
    named = read("labelled", "zeroshot", files, columns={"text": "said", "label": "kind"}, labels=("1", "0"))
    assert isinstance(named.truth, Classes)
    assert named.truth.label.tolist() == [0, 1]


def test_bare_numbers_cannot_be_prompts(read: Make) -> None:
    said = r"column 'fine' holds bare numbers, .* card of org/data name the classes: the row must list its `labels`"
    with pytest.raises(EmbarkError, match=said):
        read("labelled", "zeroshot", {"data/test-0.parquet": labelled()}, columns=LABELLED)


CARD = """---
dataset_info:
  features:
  - name: img
    dtype: image
  - name: fine
    dtype:
      class_label:
        names:
          '0': sea
          '1': no
  splits:
  - name: test
---
# Data
"""


def test_class_names_come_from_the_files_the_card_or_the_row(read: Make) -> None:
    def names(classes: Any = None, **more: Any) -> tuple[list[str], tuple[str, ...]]:
        files = {"data/test-0.parquet": labelled(**({"classes": classes} if classes else {}))}
        data = read("labelled", "zeroshot", files, columns=LABELLED, **more)
        return texts(data.sides["prompt"].items), data.skipped

    listed = {"names": ["sea", "land"]}
    assert names({"fine": ["sea", "wood"]}, card=CARD, options=listed) == (["sea", "wood"], ())
    assert names(card=CARD) == (["sea", "no"], ())  # not a truth value
    told = ("neither files nor card name the 2 classes: prompts are made of the row's list",)
    assert names(options=listed) == (["sea", "land"], told)
    assert names(card=CARD.replace("'1': no", "1: {"), options=listed) == (["sea", "land"], told)


def test_the_order_of_the_rows_list_is_held_against_the_data(read: Make) -> None:
    files = {"data/test-0.parquet": labelled(classes={"fine": ["Land_mass", "sea"]})}
    with pytest.raises(EmbarkError, match="'sea' is class 0 in the row's list and class 1 in the data"):
        read("labelled", "zeroshot", files, columns=LABELLED, options={"names": ["sea", "land mass"]})
    data = read("labelled", "zeroshot", files, columns=LABELLED, options={"names": ["land mass", "ocean"]})
    assert texts(data.sides["prompt"].items) == ["Land_mass", "sea"]  # other spellings are no fault


def test_a_probe_does_not_read_the_card(read: Make) -> None:
    data = read("labelled", "clustering", {"data/test-0.parquet": labelled()}, columns=LABELLED, card=CARD)
    assert isinstance(data.truth, Groups)
    assert data.truth.names == ("0", "1")


def test_a_missing_column_is_named_with_those_that_are_there(read: Make) -> None:
    with pytest.raises(EmbarkError, match="no column 'kind'; its columns are img, fine"):
        read("labelled", "clustering", {"data/test-0.parquet": labelled()}, columns={"image": "img", "label": "kind"})
    with pytest.raises(EmbarkError, match="no column 'jpg'; its columns are img, fine"):
        read("labelled", "clustering", {"data/test-0.parquet": labelled()}, columns={"image": "jpg", "label": "fine"})
    with pytest.raises(EmbarkError, match="names no column of content"):
        read("labelled", "clustering", {"data/test-0.parquet": labelled()}, columns={"label": "fine"})


def test_empty_cells_are_an_error_or_left_out(read: Make) -> None:
    files = {"data/test-0.parquet": labelled([IMAGES[0], None, IMAGES[2]])}
    with pytest.raises(EmbarkError, match=r"1 of 3 rows of test have no image: row 1.*unreadable='skip'"):
        read("labelled", "clustering", files, columns=LABELLED)
    data = read("labelled", "clustering", files, columns=LABELLED, unreadable="skip")
    assert isinstance(data.truth, Groups)
    assert data.truth.label.tolist() == [1, 1]
    assert data.sides["item"].ids == ("test-0", "test-2")
    assert data.skipped == ("left out 1 of 3 rows of test that have no image: row 1",)


def test_labelled_texts_and_sounds(read: Make) -> None:
    files = {"data/test-0.parquet": {"clip": [wav(300), wav(600)], "kind": ["low", "high"], "said": ["oh", "ah"]}}
    heard = read("labelled", "clustering", files, columns={"audio": "clip", "label": "kind"}, modalities=("audio",))
    assert [kinds(item) for item in heard.sides["item"].items] == [("audio",), ("audio",)]
    told = read("labelled", "clustering", files, columns={"text": "said", "label": "kind"})
    assert texts(told.sides["item"].items) == ["oh", "ah"]


def test_an_evaluator_that_labels_do_not_serve_is_an_error(read: Make) -> None:
    with pytest.raises(
        EmbarkError, match="the reader 'labelled' serves probe, multilabel, clustering, zeroshot, not 'sts'"
    ):
        read("labelled", "sts", {"data/test-0.parquet": labelled()}, columns=LABELLED)


def test_an_empty_split_is_an_error(read: Make) -> None:
    with pytest.raises(EmbarkError, match=r"org/data \(test\) has no rows"):
        read(
            "labelled",
            "clustering",
            {"data/test-0.parquet": labelled((), (), types={"img": pa.binary()})},
            columns=LABELLED,
        )
