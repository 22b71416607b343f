"""MMEB's texts, tools, memories, interfaces and pages, read from samples of their shape and scored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import embark
from embark.readers import needed_files, read
from embark.tasks import TASKS, mmeb
from embark.types import Dataset, EmbarkError, Item, Media, Qrels, Task, Text
from hub import FakeHub, client, tar
from samples_mmeb_text import COLORS, faulty, instructed, lines, memories, publish_pages, publish_v3, table

EVERY = (*mmeb.TEXT, *mmeb.AGENT, *mmeb.DOCUMENTS)


def row(name: str) -> Task:
    return replace(TASKS[f"MMEB/{name}"], rows={})  # samples are smaller than the real data


def opened(task: Task) -> Dataset:
    return read(task, task.source.splits[0], "default", client())


def told(item: Item) -> str:
    """The item's parts: texts as they are, pictures as their kind."""
    return "|".join(part.text if isinstance(part, Text) else f"<{part.kind}>" for part in item.parts)


def relevant(data: Dataset) -> dict[str, dict[str, float]]:
    """Query → document → grade, by id."""
    assert isinstance(data.truth, Qrels)
    found: dict[str, dict[str, float]] = {name: {} for name in data.sides["query"].ids}
    for query, document, grade in zip(data.truth.query, data.truth.document, data.truth.grade, strict=True):
        if grade > 0:
            found[data.sides["query"].ids[query]][data.sides["document"].ids[document]] = grade
    return found


def publish(hub: FakeHub, folder: str, files: dict[str, bytes], part: int = 1 << 30) -> None:
    """One folder of the text tasks, in an archive of one part or several."""
    whole = tar({f"text-tasks/{folder}/{path}": data for path, data in files.items()})
    parts = [whole[at : at + part] for at in range(0, len(whole), part)]
    hub.add(mmeb.HUB, {f"text_tasks/text_tasks.tar.part-{at:03}": data for at, data in enumerate(parts)}, mmeb.PINNED)


def numbers(texts: list[str]) -> np.ndarray[Any, Any]:
    """The numbers that each text holds; of other texts, one more than how often four letters occur."""
    words = [text.split() if text[-1:].isdigit() else [1 + text.count(letter) for letter in "aeio"] for text in texts]
    return np.array(words, np.float32)


@pytest.fixture
def v3(hub: FakeHub) -> FakeHub:
    publish_v3(hub)
    return hub


@pytest.mark.slow
def test_every_row_runs(v3: FakeHub) -> None:
    """124 tasks at once; every score is a number, and every file that was fetched is one that the row names."""
    for task in mmeb.DOCUMENTS:
        publish_pages(v3, task)
    rows = [replace(task, rows={}) for task in EVERY]
    run = embark.evaluate("embark/random", rows, show_progress=False)
    assert len(run.results) == len(rows) == 124
    assert all(0 <= result.score <= 1 for result in run.results)
    for task in rows:
        assert all(files for _, files in needed_files(task, client())), task.name


# ── texts ──


def test_gold_ids_are_judgements_and_excluded_ones_stay(v3: FakeHub) -> None:
    data = opened(row("BRIGHT_biology"))
    assert [told(item) for item in data.sides["query"].items] == [f"why {one}?" for one in COLORS]
    assert list(relevant(data).values()) == [
        {"red.txt": 1},
        {"green.txt": 1, "red.txt": 1},
        {"blue.txt": 1, "red.txt": 1},
    ]
    assert len(data.sides["document"]) == 3


def test_instructions_of_rows_come_before_the_query(v3: FakeHub) -> None:
    original, changed = opened(row("FollowIR_core17-instructions")), opened(row("InfoSearch_Length-v1"))
    assert told(original.sides["query"].items[0]) == "Only red ones count. red things"
    assert told(changed.sides["query"].items[0]) == "No red ones count. red things"
    assert not row("FollowIR_core17-instructions").instructions


def test_grades_stay_with_their_documents(v3: FakeHub, tiny: embark.Encoder) -> None:
    task = row("FollowIR_news21-instructions")
    data = opened(task)
    assert relevant(data)["red"] == {"d-red": 2, "d-green": 1}
    assert told(data.sides["document"].items[0]) == "Red\nis red\u2028indeed"  # which some take for the end of a line
    assert data.skipped == ("1 documents without text, such as empty",)
    [result] = embark.evaluate(tiny, [task], show_progress=False).results
    assert (result.metric, result.score) == ("ndcg_at_5", pytest.approx(1.0))


@pytest.mark.parametrize("name", ["LongEmbed_needle", "MultiConIR_Legal Document", "NanoBEIR_NanoNQ", "R2MED_Biology"])
def test_columns_of_many_names(v3: FakeHub, tiny: embark.Encoder, name: str) -> None:
    [result] = embark.evaluate(tiny, [row(name)], show_progress=False).results
    assert result.score == 1.0
    assert sorted(len(right) for right in relevant(opened(row(name))).values()) == [1, 1, 1]


def test_ids_that_come_twice_are_two_queries(hub: FakeHub) -> None:
    files = {
        "queries.jsonl": lines([{"qid": "a", "text": "red"}, {"qid": "a", "text": "rot"}]),
        "corpus.jsonl": lines([{"doc_id": "d", "text": "x"}]),
        "qrels.jsonl": lines([{"qid": "a", "doc_id": "d"}]),
    }
    publish(hub, "LongEmbed/needle", files)
    assert relevant(opened(row("LongEmbed_needle"))) == {"a": {"d": 1}, "a#1": {"d": 1}}


def test_an_archive_in_parts_is_one(hub: FakeHub) -> None:
    publish(hub, "FollowIR/core17-instructions", instructed(True), part=3000)
    assert len(hub.data[mmeb.HUB, hub.branches[mmeb.HUB, "main"]]) > 2
    assert len(opened(row("FollowIR_core17-instructions")).sides["query"]) == 3


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("queries.jsonl", {"_id": "a", "text": "b"}, "no column 'instruction_og'; it has _id, text"),
        ("corpus.jsonl", None, "no table 'corpus.jsonl'"),
        ("corpus.jsonl", {"_id": "a", "words": "b"}, "none of the columns text, content; it has _id, words"),
        ("corpus.jsonl", {"_id": None, "text": "b"}, "empty id: _id=None, text='b'"),
        ("qrels_og/test.jsonl", {"query-id": "a", "score": 1}, "none of the columns corpus_id"),
    ],
)
def test_other_data_is_an_error_that_tells_what_is_there(
    hub: FakeHub, name: str, change: dict[str, Any] | None, message: str
) -> None:
    files = instructed(True)
    del files[name]
    files |= {name: lines([change])} if change else {}
    publish(hub, "FollowIR/core17-instructions", files)
    with pytest.raises(EmbarkError, match=message):
        opened(row("FollowIR_core17-instructions"))


def test_judged_documents_that_are_lost_are_told(hub: FakeHub) -> None:
    files = instructed(True) | {"corpus.jsonl": lines([{"_id": "d-red", "text": "red"}])}
    publish(hub, "FollowIR/core17-instructions", files)
    data = opened(row("FollowIR_core17-instructions"))
    lost = "3 relevant documents are not in the corpus, or have no text there, and cannot be retrieved: d-green, d-blue"
    assert data.skipped == (lost,)
    assert relevant(data) == {"red": {"d-red": 2}, "green": {}, "blue": {}}
    [result] = embark.evaluate("embark/random", [row("FollowIR_core17-instructions")], show_progress=False).results
    ideal = 2 + 1 / np.log2(3)  # the one document is first; the missing one of grade 1 stays in the ideal ranking
    assert result.score == pytest.approx(2 / ideal / 3)  # the queries whose documents are lost are misses


@pytest.mark.parametrize(
    ("judged", "seed", "ndcg_at_5"),
    [
        ("binary", 5, 0.1958000894185213),
        ("binary", 6, 0.12419085757979338),
        ("graded", 5, 0.08235651279758593),
        ("graded", 6, 0.15054790679149344),
        ("gold", 5, 0.1958000894185213),
        ("gold", 6, 0.12419085757979338),
    ],
)
def test_faulty_judgements_score_as_in_the_code_of_mmeb(hub: FakeHub, judged: str, seed: int, ndcg_at_5: float) -> None:
    """Scores of VLM2Vec's own code for the same rows.

    Its complex_text_retrieve.py read them, and its metrics.py (6e1e1d4) scored them: `evaluate`, and for grades
    `ndcg_at_k`, since `evaluate` passes the documents through a set before it pairs them with their grades.
    """
    rows = faulty(judged, seed)
    if judged == "gold":
        task = row("BRIGHT_biology")
        files = {
            "examples/biology-0.parquet": table(rows["queries"]),
            "documents/biology-0.parquet": table(rows["corpus"]),
        }
        publish(hub, "BRIGHT", files)
    else:
        task = row("R2MED_Biology")
        files = {"query.jsonl": lines(rows["queries"]), "corpus.jsonl": lines(rows["corpus"])}
        publish(hub, "R2MED/Biology", files | {"qrels.jsonl": lines(rows["qrels"])})
    model = embark.encoder(text=numbers, name="test/numbers")
    [result] = embark.evaluate(model, [task], show_progress=False).results
    assert result.score == pytest.approx(ndcg_at_5, abs=1e-9)


# ── agents ──


def test_tools_are_their_documentation(v3: FakeHub, tiny: embark.Encoder) -> None:
    data = opened(row("Tool-apibank"))
    assert told(data.sides["query"].items[1]) == "Given a wish, find tools. paint it green"
    assert told(data.sides["document"].items[0]) == '{"name": "paint_red", "doc": "f\\u00fcr alle"}'
    assert list(relevant(data).values()) == [
        {"web_tool_0": 1},
        {"web_tool_0": 1, "web_tool_1": 1},
        {"web_tool_0": 1, "web_tool_2": 1},
        {},
    ]
    [result] = embark.evaluate(tiny, [row("Tool-apibank")], show_progress=False).results
    assert (result.metric, result.score) == ("hit_rate_at_1", 0.75)  # any right tool is a hit


@pytest.mark.parametrize(
    ("name", "queries", "documents", "first"),
    [
        ("KnowMeBench", 12, 6, "Given a query, retrieve documents that answer the query when red?"),
        ("REALTALK", 6, 3, "Given a query, retrieve documents that answer the query when red?"),
        ("PeerQA", 3, 3, "Given a query, retrieve documents that answer the query when red?"),
        ("DeepPlanning", 9, 9, "Given a query, retrieve items that satisfy the requirements when red?"),
    ],
)
def test_memories_share_one_corpus(v3: FakeHub, name: str, queries: int, documents: int, first: str) -> None:
    data = opened(row(name))
    assert (len(data.sides["query"]), len(data.sides["document"])) == (queries, documents)
    assert told(data.sides["query"].items[0]) == first
    assert all(len(right) == 1 for right in relevant(data).values())


def test_memories_are_told_apart_by_their_folders(v3: FakeHub) -> None:
    data = opened(row("KnowMeBench"))
    assert relevant(data)["event_driven/temporal_reasoning::s_0_red"] == {"event_driven::d_red": 1}
    assert "retrieve passages that answer the question" in told(data.sides["query"].items[3])


@pytest.mark.parametrize("line", ["{query}\t{document}\t1", "{query} Q0 {document} 1", "{query}\tq0\t{document}\t1"])
def test_judgements_of_memories_are_in_columns_or_as_trec_writes_them(hub: FakeHub, line: str) -> None:
    """MMEB's loader reads both, with tabs or blanks."""
    judged = [line.format(query=f"s_0_{color}", document=f"d_{color}") for color in COLORS]
    files = {path: "\n".join(judged).encode() if path.endswith("tsv") else data for path, data in memories().items()}
    hub.add(mmeb.HUB, {"memory_tasks/memory-tasks.tar": tar(files)}, mmeb.PINNED)
    assert list(relevant(opened(row("PeerQA"))).values()) == [{f"d_{color}": 1} for color in COLORS]


def test_a_memory_without_an_instruction_is_an_error(hub: FakeHub) -> None:
    files = {path.replace("shopping_level1", "travel"): data for path, data in memories().items()}
    hub.add(mmeb.HUB, {"memory_tasks/memory-tasks.tar": tar(files)}, mmeb.PINNED)
    with pytest.raises(EmbarkError, match="no instruction for 'travel'; it has some for shopping_level1"):
        opened(row("DeepPlanning"))


def test_a_memory_without_a_corpus_is_an_error(hub: FakeHub) -> None:
    files = {path: data for path, data in memories().items() if not path.endswith("corpus.jsonl")}
    hub.add(mmeb.HUB, {"memory_tasks/memory-tasks.tar": tar(files)}, mmeb.PINNED)
    with pytest.raises(EmbarkError, match=r"Folder 'REALTALK/commonsense' of the archive has no corpus.jsonl"):
        opened(row("REALTALK"))


def test_screenshots_stand_where_the_text_has_marks(v3: FakeHub) -> None:
    asked, states = opened(row("GAE-guiact-t2s")), opened(row("GAE-mind2web-q2t"))
    assert told(asked.sides["query"].items[0]) == "Find the next screen.|<image>|Paint it."
    assert told(asked.sides["document"].items[0]) == "<image>"
    assert told(states.sides["query"].items[0]) == "Paint it red."
    assert told(states.sides["document"].items[0]) == "<image>|click|<image>|red"
    part = asked.sides["document"].items[1].parts[0]
    assert isinstance(part, Media)
    assert part.read()[0].startswith(b"\x89PNG")


def test_a_candidate_that_only_a_query_names_is_there(v3: FakeHub, tiny: embark.Encoder) -> None:
    data = opened(row("GAE-guiact-q2s"))
    assert data.sides["document"].ids == ("q2s-red", "q2s-green", "q2s-blue")
    assert data.sides["query"].ids == ("same", "same#1", "same#2")
    [result] = embark.evaluate(tiny, [row("GAE-guiact-q2s")], show_progress=False).results
    assert result.score == 1.0


# ── pages ──


@pytest.mark.parametrize(
    "name", ["ViDoRe_docvqa", "ViDoRe_esg_reports_human_labeled_v2", "VisRAG_SlideVQA", "ViDoSeek-doc"]
)
def test_pages(hub: FakeHub, tiny: embark.Encoder, name: str) -> None:
    task = row(name)
    publish_pages(hub, task)
    data = opened(task)
    assert [told(item) for item in data.sides["query"].items] == [f"a {one} page" for one in COLORS]
    assert isinstance(data.truth, Qrels)
    assert sorted(np.unique(data.truth.grade)) == ([1, 2] if task.options["graded"] else [1])
    [result] = embark.evaluate(tiny, [task], show_progress=False).results
    assert (result.metric, len(data.truth.grade)) == ("ndcg_at_5", 4)
    assert result.score > 0.9


def test_another_number_of_queries_is_an_error(hub: FakeHub) -> None:
    task: Any = TASKS["MMEB/ViDoRe_arxivqa"]
    publish_pages(hub, task)
    with pytest.raises(EmbarkError, match="3 rows at revision main, expected 500"):
        opened(task)
