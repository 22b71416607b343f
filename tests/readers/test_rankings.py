"""Readers of rankings, on small datasets of MIEB's shapes: three tables, pairs, questions; good values and bad ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from embark.evaluators import evaluate
from embark.evaluators.ranks import tie_places
from embark.items import digests
from embark.items.drop_items import sample, without
from embark.types import (
    EmbarkError,
    Matches,
    Media,
    Qrels,
)
from tables import IMAGES, Make, colours, kinds, texts

# ── beir ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

CORPUS = {"id": ["d1", "d2", "d3"], "title": ["Sun", "", None], "text": ["is hot", "moon", "star"]}
QUERIES = {"id": ["q1", "q2", "q3"], "text": ["hot?", "cold?", "far?"]}
QRELS = {"query-id": ["q1", "q1", "q2"], "corpus-id": ["d1", "d2", "d3"], "score": [1, 0, 2]}
TABLES: dict[str, Any] = {
    "corpus/test-0.parquet": CORPUS, "queries/test-0.parquet": QUERIES, "qrels/test-0.parquet": QRELS,
}  # fmt: skip


def test_three_tables_become_queries_documents_and_judgements(read: Make) -> None:
    data = read("beir", "retrieval", TABLES)
    assert isinstance(data.truth, Qrels)
    assert texts(data.sides["document"].items) == ["Sun is hot", "moon", "star"]
    assert data.sides["query"].ids == ("q1", "q2", "q3")  # also the one that nothing is known about
    assert list(zip(data.truth.query, data.truth.document, data.truth.grade, strict=True)) == [
        (0, 0, 1),
        (0, 1, 0),
        (1, 2, 2),
    ]
    assert not data.skipped


def test_ids_are_compared_as_strings_and_may_have_other_names(read: Make) -> None:
    files = {
        "corpus/test-0.parquet": {"corpus-id": [7, 8], "image": IMAGES[:2]},
        "queries/test-0.parquet": {"query-id": [1, 2], "query": ["a", "b"]},
        "qrels/test-0.parquet": {"query-id": ["2", "1"], "corpus-id": ["7", "8"], "score": [1, 1]},
    }
    columns = {"query_id": "query-id", "query_text": "query", "corpus_id": "corpus-id", "corpus_image": "image"}
    data = read("beir", "retrieval", files, columns=columns)
    assert isinstance(data.truth, Qrels)
    assert (data.truth.query.tolist(), data.truth.document.tolist()) == ([1, 0], [0, 1])
    assert colours(data.sides["document"].items) == ["red", "green"]


def test_mixed_items_are_image_then_text_and_hold_what_there_is(read: Make) -> None:
    files = TABLES | {
        "corpus/test-0.parquet": {
            "id": ["d1", "d2", "d3"],
            "text": ["a", "b", None],
            "image": [IMAGES[0], None, IMAGES[1]],
        },
        "queries/test-0.parquet": {**QUERIES, "image": IMAGES[:3]},
    }
    data = read("beir", "retrieval", files)
    assert [kinds(item) for item in data.sides["document"].items] == [("image", "text"), ("text",), ("image",)]
    assert [kinds(item) for item in data.sides["query"].items] == [("image", "text")] * 3
    columns = {"query_image": "image", "corpus_text": "text"}
    with pytest.raises(EmbarkError, match="1 of 3 rows of corpus have no text: row 2"):
        read("beir", "retrieval", files, columns=columns)
    only = read("beir", "retrieval", files, columns=columns, unreadable="skip")  # its judgements go with it
    assert isinstance(only.truth, Qrels)
    assert only.truth.document.tolist() == [0, 1]
    assert [kinds(item) for item in only.sides["query"].items] == [("image",)] * 3
    assert only.sides["document"].ids == ("d1", "d2")


@pytest.mark.parametrize(
    "paths",
    [
        ("corpus/corpus-0.parquet", "query/test-0.parquet", "qrels/test-0.parquet"),  # M-BEIR's
        ("corpus/test-0.parquet", "queries/test-0.parquet", "data/test-0.parquet"),  # judgements in the default config
        ("corpus/train-0.parquet", "queries/queries-0.parquet", "qrels/test-0.parquet"),
    ],
)
def test_tables_go_by_several_names(read: Make, paths: tuple[str, str, str]) -> None:
    data = read("beir", "retrieval", dict(zip(paths, (CORPUS, QUERIES, QRELS), strict=True)))
    assert [len(data.sides["document"]), len(data.sides["query"])] == [3, 3]


def config(name: str, *splits: str) -> str:
    """A config of a card, with its splits in a folder of its name."""
    files = "".join(f"  - split: {split}\n    path: {name}/{split}-*\n" for split in splits)
    return f"- config_name: {name}\n  data_files:\n{files}"


OTHER_QRELS = {"query-id": ["q3"], "corpus-id": ["d2"], "score": [1]}


def test_judgements_of_other_splits_are_not_merged(read: Make) -> None:
    """A repository with qrels/test and qrels/dev: only those of the task's split are read, card or no card."""
    files = TABLES | {"qrels/dev-0.parquet": OTHER_QRELS}
    card = "---\nconfigs:\n" + config("corpus", "test") + config("queries", "test") + config("qrels", "test", "dev")
    for text in (card + "---\n", ""):
        data = read("beir", "retrieval", files, card=text)
        assert isinstance(data.truth, Qrels)
        assert data.truth.query.tolist() == [0, 0, 1]


def test_the_card_wins_over_layouts(read: Make) -> None:
    """A folder looks like the judgements of the default config; the card says that they are in the config qrels."""
    files = TABLES | {"test/0.parquet": OTHER_QRELS}
    card = "---\nconfigs:\n" + config("corpus", "test") + config("queries", "test") + config("qrels", "test") + "---\n"
    data = read("beir", "retrieval", files, card=card)
    assert isinstance(data.truth, Qrels)
    assert data.truth.query.tolist() == [0, 0, 1]
    with pytest.raises(EmbarkError, match=r"could be test/0.parquet \(config default\), or qrels/test-0.parquet"):
        read("beir", "retrieval", files)
    named = {"configs": {"qrels": "default"}}
    assert pairs(read("beir", "retrieval", files, options=named).truth) == [(2, 1, 1)]


def test_a_folder_of_several_other_splits_is_not_one_table(read: Make) -> None:
    files = {path: table for path, table in TABLES.items() if not path.startswith("qrels")}
    files |= {"qrels/dev-0.parquet": QRELS, "qrels/dev2-0.parquet": QRELS, "qrels/train-0.parquet": OTHER_QRELS}
    with pytest.raises(EmbarkError, match=r"could be qrels/dev2?-0.parquet, or qrels/train-0.parquet"):
        read("beir", "retrieval", files)
    shards = {path: table for path, table in files.items() if not path.startswith("qrels")}
    shards |= {"qrels/part-0.parquet": QRELS, "qrels/part-1.parquet": OTHER_QRELS}  # of one table without a split
    assert len(pairs(read("beir", "retrieval", shards).truth)) == 4


def test_a_missing_table_is_an_error_that_says_what_is_there(read: Make) -> None:
    with pytest.raises(EmbarkError, match=r"no files for split 'test' of config 'query'.*corpus/test-0.parquet"):
        read("beir", "retrieval", {"corpus/test-0.parquet": CORPUS, "qrels/test-0.parquet": QRELS})


def test_tables_of_a_subset(read: Make) -> None:
    files = {f"de-{path}": held for path, held in TABLES.items()}
    assert len(read("beir", "retrieval", files, subset="de").sides["query"]) == 3
    named = {"de_c/test.parquet": CORPUS, "de_q/test.parquet": QUERIES, "de_r/test.parquet": QRELS}
    options = {"configs": {"corpus": "{subset}_c", "queries": "{subset}_q", "qrels": "{subset}_r"}}
    assert len(read("beir", "retrieval", named, subset="de", options=options).sides["query"]) == 3


def test_judgements_of_unknown_ids_are_an_error_or_left_out(read: Make) -> None:
    qrels = {"query-id": ["q1", "q9", "q2"], "corpus-id": ["d1", "d1", "d8"], "score": [1, 1, 1]}
    files = TABLES | {"qrels/test-0.parquet": qrels}
    said = r"2 of 3 judgements name 1 unknown queries \(q9\) and 1 unknown documents \(d8\)"
    with pytest.raises(EmbarkError, match=said):
        read("beir", "retrieval", files)
    data = read("beir", "retrieval", files, options={"unknown": "skip"})
    assert isinstance(data.truth, Qrels)
    assert data.truth.query.tolist() == [0]
    assert data.skipped[0].startswith("left out 2 of 3 judgements")
    with pytest.raises(EmbarkError, match=said):  # queries that nobody has cannot be scored, whatever their documents
        read("beir", "retrieval", files, options={"unknown": "miss"})


def test_positives_outside_the_corpus_count_and_cannot_be_retrieved(read: Make) -> None:
    """As in OVENIT2T: documents of another corpus are judged, twice at times; a query may have nothing else."""
    qrels = {
        "query-id": ["q1", "q1", "q1", "q1", "q2", "q3", "q3"],
        "corpus-id": ["d1", "6:a", "6:b", "6:a", "d3", "6:a", "6:c"],
        "score": [1, 1, 1, 3, 1, 1, 0],
    }
    files = TABLES | {"qrels/test-0.parquet": qrels}
    with pytest.raises(EmbarkError, match=r"5 of 7 judgements name 3 unknown documents .*unknown='miss'"):
        read("beir", "retrieval", files)
    data = read("beir", "retrieval", files, options={"unknown": "miss"})
    assert isinstance(data.truth, Qrels)
    assert (data.truth.query.tolist(), data.truth.document.tolist()) == ([0, 1], [0, 2])
    assert data.truth.outside is not None
    assert np.sort(data.truth.outside, axis=1).tolist() == [[1, 3], [0, 0], [0, 1]]
    assert data.skipped == (
        "5 of 7 judgements name 3 unknown documents (6:a, 6:b, 6:c): positives that no model can retrieve",
    )
    perfect = np.eye(3, dtype=np.float32)
    scores = evaluate("retrieval", data.truth, {"query": perfect[[0, 2, 1]], "document": perfect}, {})
    gain = 1 / (3 + 1 / np.log2(3) + 1 / np.log2(4))  # grades 3, 1 and 1; only one of the latter is within reach
    assert scores.outcomes["ndcg_at_10"].tolist() == pytest.approx([gain, 1, 0])
    assert scores.metrics["recall_at_10"] == pytest.approx((1 / 3 + 1 + 0) / 3)


def test_of_rows_with_one_id_the_last_counts_where_the_row_says_so(read: Make) -> None:
    """As in Sketchy and ImageCoDe: ids repeat in the queries and in the corpus."""
    files = TABLES | {
        "corpus/test-0.parquet": {"id": ["d1", "d2", "d1", "d3"], "text": ["old", "moon", "new", "star"]},
        "queries/test-0.parquet": {"id": ["q1", "q2", "q1", "q1"], "text": ["a", "cold?", "b", "hot?"]},
    }
    with pytest.raises(EmbarkError, match=r"4 rows of corpus have 3 ids.* d1 \(2 times\)\. .* repeated='last'"):
        read("beir", "retrieval", files)
    data = read("beir", "retrieval", files, options={"repeated": "last"})
    assert isinstance(data.truth, Qrels)
    assert data.sides["document"].ids == ("d1", "d2", "d3")
    assert texts(data.sides["document"].items) == ["new", "moon", "star"]
    assert texts(data.sides["query"].items) == ["hot?", "cold?"]
    assert list(zip(data.truth.query, data.truth.document, strict=True)) == [(0, 0), (0, 1), (1, 2)]
    assert data.skipped == (
        "4 rows of corpus have 3 ids: of rows with one id, the last counts",
        "4 rows of queries have 2 ids: of rows with one id, the last counts",
    )


REPEATED_IDS = TABLES | {
    "corpus/test-0.parquet": {"id": ["d1", "d2", "d1", "d3"], "text": ["old", "moon", "new", "star"]},
    "queries/test-0.parquet": {"id": ["q1", "q2", "q1", "q4"], "text": ["a", "cold?", "b", "hot?"]},
}


def test_all_rows_of_an_id_are_compared_where_the_row_says_heap(read: Make) -> None:
    with pytest.raises(EmbarkError, match=r"repeated='heap' scores them as mteb does"):
        read("beir", "retrieval", REPEATED_IDS)
    data = read("beir", "retrieval", REPEATED_IDS, options={"repeated": "heap"})
    assert isinstance(data.truth, Qrels)
    assert data.sides["document"].ids == ("d1", "d2", "d1 (2)", "d3")
    assert texts(data.sides["document"].items) == ["old", "moon", "new", "star"]
    assert data.sides["query"].ids == ("q1", "q2", "q1 (2)", "q4")
    assert data.truth.repeated
    assert data.truth.query_ids is not None
    assert data.truth.document_ids is not None
    assert data.truth.query_ids.tolist() == [b"q1", b"q2", b"q1", b"q4"]
    assert data.truth.document_ids.tolist() == [b"d1", b"d2", b"d1", b"d3"]
    assert list(zip(data.truth.query, data.truth.document, strict=True)) == [(0, 0), (0, 1), (1, 3)]  # first rows
    assert data.skipped == (
        "4 rows of corpus have 3 ids: of rows with one id, one counts for each query, as in mteb's search",
        "4 rows of queries have 3 ids: of rows with one id, one counts for each query, as in mteb's search",
    )
    plain = read("beir", "retrieval", TABLES, options={"repeated": "heap"})
    assert isinstance(plain.truth, Qrels)
    assert not plain.truth.repeated
    with pytest.raises(EmbarkError, match="repeated='heap' is for the evaluator 'retrieval' alone"):
        read("beir", "choice", REPEATED_IDS, options={"repeated": "heap"})


def test_a_sample_and_an_unreadable_row_leave_the_other_rows_of_an_id(read: Make) -> None:
    data = read("beir", "retrieval", REPEATED_IDS, options={"repeated": "heap"})
    drawn, size = sample(data, 1)
    assert size == 2
    kept = set(drawn.sides["query"].ids)
    assert kept in ({"q1", "q1 (2)"}, {"q2"})
    left = without(data, {"document": [0], "query": [2]})
    assert isinstance(left.truth, Qrels)
    assert left.sides["document"].ids == ("d2", "d1 (2)", "d3")
    assert list(zip(left.truth.query, left.truth.document, strict=True)) == [(0, 1), (0, 0), (1, 2)]
    assert isinstance(without(data, {"document": [0, 2]}).truth, Qrels)
    assert without(data, {"document": [0, 2]}).truth.document.tolist() == [0, 1]  # type: ignore[union-attr]


SPACES = " \t\r\n\v\f\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"


def test_texts_of_documents_are_stripped_as_mteb_2_strips_them(read: Make) -> None:
    """As `_corpus_to_dict` does: title, space and text, then str.strip; a title of white space is one. Queries stay."""
    titles = ["", " ", "\u00a0T", None, "T ", ""]
    bodies = [f"{SPACES}a b{SPACES}", "b", " c\t", "\u200bd\ufeff ", " \n", "  "]
    files = TABLES | {
        "corpus/test-0.parquet": {"id": [f"d{n}" for n in range(6)], "title": titles, "text": bodies},
        "queries/test-0.parquet": {"id": ["q1", "q2"], "text": [" hot? ", "\tcold?\u00a0"]},
        "qrels/test-0.parquet": {"query-id": ["q1"], "corpus-id": ["d1"], "score": [1]},
    }
    mteb2 = read("beir", "retrieval", files, options={"strip": ["document"]})
    expected = [(f"{title} {body}" if title else body).strip() for title, body in zip(titles, bodies, strict=True)]
    assert texts(mteb2.sides["document"].items) == expected
    assert expected == ["a b", "b", "T  c", "\u200bd\ufeff", "T", ""]
    assert texts(mteb2.sides["query"].items) == [" hot? ", "\tcold?\u00a0"]
    paper = read("beir", "retrieval", files, options={"titles": False})  # mteb 1 reads the text alone, as it is
    assert texts(paper.sides["document"].items) == bodies
    assert texts(read("beir", "retrieval", files).sides["document"].items)[1] == "  b"  # own tasks: titles, as they are


def test_the_text_of_a_mixed_document_is_stripped_and_its_picture_stays(read: Make) -> None:
    files = TABLES | {
        "corpus/test-0.parquet": {"id": ["d1", "d2", "d3"], "text": [" a\n", None, " "], "image": IMAGES[:3]},
        "queries/test-0.parquet": {"id": ["q1", "q2"], "text": ["x", "y"]},
    }
    data = read("beir", "retrieval", files, options={"strip": ["document"]}, upright=True, mixed=True)
    assert texts(data.sides["document"].items) == ["a", ""]
    assert [kinds(item) for item in data.sides["document"].items] == [("image", "text"), ("image",), ("image", "text")]
    assert colours(data.sides["document"].items) == ["red", "green", "blue"]


def test_captions_and_choices_are_stripped_after_equal_ones_were_found(read: Make) -> None:
    """HatefulMemes is unique by its texts as they are; CV-Bench's documents are its distinct choices as they are."""
    files = {"data/test-0.parquet": {"id": ["a", "b", "c"], "image": IMAGES[:3], "text": ["cat", " cat", "cat"]}}
    columns = {"image": "image", "text": "text", "id": "id"}
    options = {"query": "image", "unique": "text", "strip": ["document"]}
    data = read("paired", "retrieval", files, columns=columns, options=options)
    assert texts(data.sides["document"].items) == ["cat", "cat"]
    asked = {"question": [" which? "], "choices": [["red", " red", "blue\t"]], "answer": ["(C)"]}
    data = read("question", "choice", {"data/test-0.parquet": asked}, options={"strip": ["document"]})
    assert texts(data.sides["document"].items) == ["red", "red", "blue"]
    assert texts(data.sides["query"].items) == [" which? "]


def test_stripped_texts_are_items_of_their_own_and_equal_ones_are_one(read: Make) -> None:
    """The key of a vector is that of the text that a model sees, so both protocols share what is equal."""
    corpus = {"id": ["d1", "d2", "d3"], "text": [" sun", "sun", "moon"]}
    files = TABLES | {"corpus/test-0.parquet": corpus}
    paper, mteb2 = (read("beir", "retrieval", files, options=o) for o in ({}, {"strip": ["document"]}))
    as_is, stripped = (digests(data.sides["document"].items).tolist() for data in (paper, mteb2))
    assert stripped[0] == stripped[1] == as_is[1] != as_is[0]
    assert stripped[2] == as_is[2]


@pytest.mark.parametrize(
    ("grades", "found"), [([1, 1, 3], [(1, 1, 1), (0, 0, 3)]), ([3, 1, 1], [(0, 0, 3), (1, 1, 1)])]
)
def test_of_a_pair_that_is_judged_twice_the_larger_grade_counts(read: Make, grades: list[int], found: Any) -> None:
    qrels = {"query-id": ["q1", "q2", "q1"], "corpus-id": ["d1", "d2", "d1"], "score": grades}
    data = read("beir", "retrieval", TABLES | {"qrels/test-0.parquet": qrels})
    assert isinstance(data.truth, Qrels)
    assert list(zip(data.truth.query, data.truth.document, data.truth.grade, strict=True)) == found


def test_candidates_are_the_judged_documents(read: Make) -> None:
    data = read("beir", "choice", TABLES)
    assert isinstance(data.truth, Qrels)
    assert data.truth.document[data.truth.query == 0].tolist() == [0, 1]


def test_the_right_image_of_a_sample_comes_first(read: Make) -> None:
    corpus = {"id": [f"d{at}" for at in range(6)], "image": IMAGES}
    qrels = {
        "query-id": ["q2"] * 3 + ["q1"] * 3,
        "corpus-id": [f"d{at}" for at in range(6)],
        "score": [0, 1, 0, 0, 0, 1],
    }
    files = TABLES | {"corpus/test-0.parquet": corpus, "qrels/test-0.parquet": qrels}
    data = read("beir", "pairs", files)
    assert isinstance(data.truth, Matches)
    assert data.truth.text.tolist() == [[0], [1]]
    assert data.truth.image.tolist() == [[5, 3, 4], [1, 0, 2]]
    for score, said in ([0, 1, 0, 0, 1, 1], "exactly one relevant"), ([0, 1, 0, 0, 0, 0], "exactly one relevant"):
        with pytest.raises(EmbarkError, match=said):
            read("beir", "pairs", files | {"qrels/test-0.parquet": {**qrels, "score": score}})
    with pytest.raises(EmbarkError, match="not of one size"):
        read("beir", "pairs", files | {"qrels/test-0.parquet": {name: cells[1:] for name, cells in qrels.items()}})


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PAIRED = {"image": "image", "text": "text"}


def pairs(truth: Any) -> list[tuple[int, int, int]]:
    assert isinstance(truth, Qrels)
    return list(zip(truth.query.tolist(), truth.document.tolist(), truth.grade.tolist(), strict=True))


def test_every_caption_of_a_list_asks_for_its_image(read: Make) -> None:
    held = {"image_id": ["a", "b"], "image": IMAGES[:2], "captions": [["one", "two"], ["three"]]}
    columns = {"image": "image", "text": "captions", "id": "image_id"}
    files = {
        "data/de-0.parquet": held,
        "data/en-0.parquet": {"image_id": ["x"], "image": IMAGES[2:3], "captions": [["no"]]},
    }
    data = read("paired", "retrieval", files, subset="de", columns=columns, options={"subset_is": "split"})
    assert data.sides["query"].ids == ("query-a-0", "query-a-1", "query-b-0")
    assert data.sides["document"].ids == ("corpus-a", "corpus-b")
    assert texts(data.sides["query"].items) == ["one", "two", "three"]
    assert pairs(data.truth) == [(0, 0, 1), (1, 0, 1), (2, 1, 1)]
    back = read(
        "paired", "retrieval", files, subset="de", columns=columns, options={"subset_is": "split", "query": "image"}
    )
    assert back.sides["document"].ids == ("corpus-a-0", "corpus-a-1", "corpus-b-0")
    assert pairs(back.truth) == [(0, 0, 1), (0, 1, 1), (1, 2, 1)]


def test_rows_of_one_id_are_one_image(read: Make) -> None:
    held = {"id": [1, 2, 1], "image": [IMAGES[0], IMAGES[1], IMAGES[0]], "text": ["a", "b", "c"]}
    data = read("paired", "retrieval", {"data/test-0.parquet": held}, columns=PAIRED | {"id": "id"})
    assert data.sides["query"].ids == ("query-1", "query-2", "query-1-1")
    assert pairs(data.truth) == [(0, 0, 1), (1, 1, 1), (2, 0, 1)]


def test_texts_that_would_get_one_id_are_an_error(read: Make) -> None:
    held = {"id": ["x", "x", "x-1"], "image": IMAGES[:3], "text": ["a", "b", "c"]}
    with pytest.raises(EmbarkError, match="two texts of test would get the id 'x-1'"):
        read("paired", "retrieval", {"data/test-0.parquet": held}, columns=PAIRED | {"id": "id"})


def test_a_corpus_of_several_splits_without_ids(read: Make) -> None:
    files = {
        "data/test-0.parquet": {"image": IMAGES[:3], "text": ["a", None, "c"]},
        "data/train-0.parquet": {"image": IMAGES[3:5], "text": ["a", "e"]},
    }
    options = {"query": "image", "corpus": ("train", "test"), "missing": "skip"}
    data = read("paired", "retrieval", files, columns=PAIRED, options=options)
    assert data.sides["query"].ids == ("query-test-0", "query-test-1")
    assert data.sides["document"].ids == ("corpus-train-0", "corpus-train-1", "corpus-test-0", "corpus-test-1")
    assert pairs(data.truth) == [(0, 2, 1), (1, 3, 1)]
    assert data.skipped == ("left out 1 of 3 rows of test that have no text: row 1",)


@pytest.mark.parametrize("query", ["image", "text"])
def test_a_query_whose_document_gave_way_to_an_equal_text_scores_zero(read: Make, query: str) -> None:
    files = {
        "data/test-0.parquet": {"id": [1, 2, 3], "image": IMAGES[:3], "text": ["a", "b", "a"]},
        "data/train-0.parquet": {"id": [4, 5], "image": IMAGES[3:5], "text": ["b", "c"]},
    }
    options = {"query": query, "corpus": ("test", "train"), "unique": "text"}
    data = read("paired", "retrieval", files, columns=PAIRED | {"id": "id"}, options=options)
    assert data.sides["document"].ids == ("corpus-1", "corpus-2", "corpus-5")
    assert len(data.sides["query"]) == 3
    assert pairs(data.truth) == [(0, 0, 1), (1, 1, 1), (2, 0, 0)]
    assert data.skipped == ("1 queries have no relevant document, as their text is repeated: they score zero",)


def test_subsets_in_a_column(read: Make) -> None:
    held = {"language": ["de", "en", "de"], "image": IMAGES[:3], "text": ["ein", "a", "der"]}
    data = read("paired", "retrieval", {"data/test-0.parquet": held}, subset="de", columns=PAIRED,
                options={"subset_is": "column"})  # fmt: skip
    assert texts(data.sides["query"].items) == ["ein", "der"]
    with pytest.raises(EmbarkError, match="has no rows where language is 'fr'"):
        read("paired", "retrieval", {"data/test-0.parquet": held}, subset="fr", columns=PAIRED,
             options={"subset_is": "column"})  # fmt: skip
    with pytest.raises(EmbarkError, match="'subset_is' must be config, split, column or columns, not 'row'"):
        read("paired", "retrieval", {"data/test-0.parquet": held}, subset="fr", columns=PAIRED,
             options={"subset_is": "row"})  # fmt: skip


def test_pairs_need_two_columns_and_a_direction(read: Make) -> None:
    held = {"image": IMAGES[:2], "text": ["a", "b"]}
    with pytest.raises(EmbarkError, match="pairs need columns of two of text, image, audio, video"):
        read("paired", "retrieval", {"data/test-0.parquet": held}, columns={"image": "image"})
    with pytest.raises(EmbarkError, match=r"'query' must name the modality .*, one of image, text, not 'audio'"):
        read("paired", "retrieval", {"data/test-0.parquet": held}, columns=PAIRED, options={"query": "audio"})


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def asked(answers: list[Any], choices: Any = None) -> dict[str, Any]:
    size = len(answers)
    return {
        "image": IMAGES[:size], "question": [f"how many {at}?" for at in range(size)], "answer": answers,
        "choices": choices or [["1", "2", "3"]] * size, "task": ["Count"] * size,
    }  # fmt: skip


ASKED = {"image": "image", "question": "question", "choices": "choices", "answer": "answer"}


@pytest.mark.parametrize("answers", [["(C)", "(A)"], ["C", "a"], ["C.", "A)"], ["3", "1"], [2, 0]])
def test_answers_are_choices_letters_or_numbers(read: Make, answers: list[Any]) -> None:
    data = read("question", "choice", {"data/test-0.parquet": asked(answers)}, columns=ASKED)
    assert isinstance(data.truth, Qrels)
    assert texts(data.sides["document"].items) == ["1", "2", "3"]
    assert data.truth.grade.tolist() == [0, 0, 1, 1, 0, 0]
    assert [kinds(item) for item in data.sides["query"].items] == [("image", "text")] * 2


def test_only_the_rows_of_a_kind_and_equal_choices_are_one_document(read: Make) -> None:
    held = asked(["(B)", "(A)", "(A)"], [["one", "two"], ["near", "far"], ["two", "two", "six"]])
    held["task"] = ["Count", "Depth", "Count"]
    data = read(
        "question", "choice", {"data/test-0.parquet": held}, columns=ASKED, options={"where": {"task": "Count"}}
    )
    assert isinstance(data.truth, Qrels)
    assert data.sides["query"].ids == ("query-test-0", "query-test-1")
    assert colours(data.sides["query"].items) == ["red", "blue"]
    assert data.sides["document"].ids == ("corpus-test-0", "corpus-test-1", "corpus-test-2")
    assert texts(data.sides["document"].items) == ["one", "two", "six"]
    assert data.truth.query.tolist() == [0, 0, 1, 1]
    assert data.truth.document.tolist() == [0, 1, 1, 2]
    assert data.truth.grade.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("answer", ["(D)", "blue", "-1"])
def test_an_answer_that_is_no_choice_is_named(read: Make, answer: str) -> None:
    with pytest.raises(EmbarkError, match=r"the answer '.*' of row 1 of test is none of \['1', '2', '3'\]"):
        read("question", "choice", {"data/test-0.parquet": asked(["(A)", answer])}, columns=ASKED)


def test_no_rows_of_a_kind_is_an_error(read: Make) -> None:
    with pytest.raises(EmbarkError, match="has no rows where task is 'Depth'"):
        read(
            "question",
            "choice",
            {"data/test-0.parquet": asked(["A"])},
            columns=ASKED,
            options={"where": {"task": "Depth"}},
        )


# ── size ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_readers_do_not_read_media(read: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Media) -> tuple[bytes, ...]:
        raise AssertionError("media were read")

    monkeypatch.setattr(Media, "read", refuse)
    size = 20_000
    qrels = {
        "query-id": np.arange(size).astype(str),
        "corpus-id": np.arange(size)[::-1].astype(str),
        "score": [1] * size,
    }
    files = {
        "corpus/test-0.parquet": {"id": np.arange(size).astype(str), "image": [IMAGES[0]] * size},
        "queries/test-0.parquet": {"id": np.arange(size).astype(str), "text": ["t"] * size},
        "qrels/test-0.parquet": qrels,
    }
    data = read("beir", "retrieval", files)
    assert isinstance(data.truth, Qrels)
    assert data.truth.document.tolist() == list(range(size))[::-1]


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("longest", ["\U0001f600", "\U0001f600" * 3000])
def test_one_long_id_makes_the_others_no_larger_and_all_compare_as_text(read: Make, longest: str) -> None:
    ids = [*(f"{letter}{at}" for at in range(1000) for letter in "dDé"), longest]
    falling = sorted(ids, reverse=True)
    files: dict[str, Any] = {
        "corpus/test-0.parquet": {"id": ids, "text": ["same"] * len(ids)},
        "queries/test-0.parquet": {"id": ["q", longest], "text": ["same"] * 2},
        "qrels/test-0.parquet": {"query-id": ["q", longest], "corpus-id": falling[:2], "score": [1, 1]},
    }
    truth = read("beir", "retrieval", files).truth
    assert isinstance(truth, Qrels)
    assert truth.document_ids is not None
    assert truth.document_ids.nbytes < 1 << 20
    assert tie_places(truth.document_ids, len(ids)).tolist() == [falling.index(name) for name in ids]
    vectors = {"query": np.ones((2, 2), np.float32), "document": np.ones((len(ids), 2), np.float32)}
    for ignored, found in (
        (False, [1.0, 0.5]),
        (True, [1.0, 1.0]),
    ):  # a query's own document comes first, or not at all
        params = {"metric": "mrr_at_10", "ignore_identical_ids": ignored}
        assert evaluate("retrieval", truth, vectors, params).outcomes["mrr_at_10"].tolist() == found
