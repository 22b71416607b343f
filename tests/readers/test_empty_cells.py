"""Empty cells of text tables hold nothing: every reader leaves such rows out, with one word on them, or refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import embark
from embark.types import EmbarkError, Qrels
from hub import FakeHub, client, png, tar, wav
from tables import COLORS, Make, texts

PICTURES: dict[str, Any] = {f"{colour}.png": png(colour) for colour in COLORS}
WIKI: dict[str, Any] = {
    "corpus.csv": b"id,title,text\nd1,Sun,\nd2,,moon\nd3,,\n,,star\n",
    "queries.csv": b"id,text\nq1,hot?\nq2,\n",
    "qrels/test.csv": b"query-id,corpus-id,score\nq1,d1,1\nq1,d2,\n,d2,1\nq1,,1\nq2,d2,1\nq1,d3,1\n",
}


@pytest.mark.parametrize("evaluator", ["zeroshot", "clustering"])
def test_labels_and_texts(read: Make, evaluator: str) -> None:
    files = {"test.csv": b"said,kind\na,x\n,y\nc,\nd,y\n,\n"}
    columns = {"text": "said", "label": "kind"}
    with pytest.raises(EmbarkError, match=r"2 of 5 rows of test have no kind: row 2, 4\. .*unreadable='skip'"):
        read("labelled", evaluator, files, columns=columns)
    data = read("labelled", evaluator, files, columns=columns, unreadable="skip")
    assert data.truth.names == ("x", "y")  # type: ignore[union-attr]
    assert texts(data.sides["item"].items) == ["a", "d"]
    assert data.skipped == (
        "left out 2 of 5 rows of test that have no kind: row 2, 4",
        "left out 1 of 3 rows of test that have no text: row 1",
    )


def test_pairs_and_their_ids(read: Make) -> None:
    rows = "".join(f"{colour}.png,{at},{said}\n" for colour, at, said in [("red", "1", "a"), ("green", "", "b"),
                   ("blue", "", "c"), ("white", "4", "")])  # fmt: skip
    files = PICTURES | {"test.tsv": f"file,id,said\n{rows}".replace(",", "\t").encode()}
    columns = {"image": "file", "text": "said", "id": "id"}
    data = read("paired", "retrieval", files, columns=columns, unreadable="skip")
    assert (data.sides["query"].ids, data.sides["document"].ids) == (("query-1",), ("corpus-1",))
    assert data.skipped == (
        "left out 1 of 4 rows of test that have no said: row 3",
        "left out 2 of 3 rows of test that have no id: row 1, 2",
    )


def test_three_tables(read: Make) -> None:
    with pytest.raises(EmbarkError, match="1 of 4 rows of corpus have no id: row 3"):
        read("beir", "retrieval", WIKI)
    data = read("beir", "retrieval", WIKI, unreadable="skip")
    assert isinstance(data.truth, Qrels)
    assert texts(data.sides["document"].items) == ["Sun", "moon"]  # a title alone is something to show
    assert (data.sides["document"].ids, data.sides["query"].ids) == (("d1", "d2"), ("q1",))
    assert (data.truth.document.tolist(), data.truth.grade.tolist()) == ([0], [1])
    assert data.skipped == (
        "left out 1 of 4 rows of corpus that have no id: row 3",
        "left out 1 of 3 rows of corpus that have no text: row 2",
        "left out 1 of 2 rows of queries that have no text: row 1",
        "left out 1 of 6 rows of qrels that have no query-id: row 2",
        "left out 1 of 5 rows of qrels that have no corpus-id: row 3",
        "left out 1 of 4 rows of qrels that have no score: row 1",
    )


def test_captions_questions_and_similar_pairs(read: Make) -> None:
    files = PICTURES | {"test.csv": b"file,right,wrong,score\nred.png,a,b,1\nblue.png,,d,\n,e,f,2\n"}
    swaps = read("captions", "pairs", files, columns={"images": "file", "texts": "right,wrong"}, unreadable="skip")
    assert texts(swaps.sides["text"].items) == ["a", "b"]
    assert swaps.skipped == ("left out 2 of 3 rows of test that have no file or right or wrong: row 1, 2",)
    alike = {"left": "right", "right": "wrong"}
    similar = read("rendered-sts", "sts", files, columns=alike, modalities=("text",), unreadable="skip")
    assert texts(similar.sides["left"].items) == ["a", "e"]
    assert similar.skipped == ("left out 1 of 3 rows of test that have no score: row 1",)
    asked = {"question": "right", "choices": "wrong", "answer": "score"}
    with pytest.raises(EmbarkError, match="1 of 3 rows of test have no right: row 1"):
        read("question", "choice", files, columns=asked)


def test_a_class_of_sounds(hub: FakeHub) -> None:
    task = embark.get_tasks("MMEB/CREMA-D")[0]
    held = {"creamD/processed.csv": b"file,emotion\n1.wav,anger\n2.wav,\n", "creamD/AudioWAV/1.wav": wav(100.0)}
    hub.add(task.source.id, {task.options["archive"]: tar(held)}, task.source.revision)
    with pytest.raises(EmbarkError, match=r"processed\.csv has 1 rows without 'emotion': row 1"):
        embark.readers.read(task, "test", "default", client())


def test_a_result_says_once_how_many_rows_went(tmp_path: Path, tiny: embark.Encoder) -> None:
    for colour in ("red", "blue"):
        (tmp_path / f"{colour}.png").write_bytes(png(colour))
    (tmp_path / "test.csv").write_text("file,label\nred.png,red\nblue.png,blue\n" + "red.png,\n" * 300)
    (tmp_path / "tasks.toml").write_text("""
[[task]]
name = "Pages"
evaluator = "zeroshot"
reader = "labelled"
modalities = ["text", "image"]
columns = { image = "file", label = "label" }
unreadable = "skip"
source = { id = "." }
""")
    run = embark.evaluate(tiny, embark.load_tasks(tmp_path / "tasks.toml"), show_progress=False)
    assert run.skipped == []
    said = "left out 300 of 302 rows of test that have no label: row 2, 3, 4, 5, 6 and 295 more"
    assert (run.results[0].score, run.results[0].warnings) == (1.0, (said,))
