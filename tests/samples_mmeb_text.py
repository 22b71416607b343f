"""Small samples of MMEB-V3's text, agent and document data, in the archives, tables and columns of the hub."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from embark.tasks import mmeb
from embark.types import Task
from hub import FakeHub, parquet, png, tar, zipped
from sizes import Size, few, pooled

COLORS = ("red", "green", "blue")


def lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def table(rows: list[dict[str, Any]]) -> bytes:
    return parquet({name: [row[name] for row in rows] for name in rows[0]})


def named(count: int) -> tuple[str, ...]:
    """So many names."""
    return (*COLORS[:count], *(f"shade{at}" for at in range(len(COLORS), count)))


class Texts:
    """Names of queries and documents; a text is told from those of other corpora by its `suffix`."""

    def __init__(self, queries: int = len(COLORS), documents: int = len(COLORS), suffix: str = "") -> None:
        self.queries = named(queries)
        self.documents = named(documents)
        self.suffix = suffix

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every query with its document."""
        return [(query, self.documents[at % len(self.documents)]) for at, query in enumerate(self.queries)]


def _texts_of(task: Task, size: Size) -> Texts:
    """As many as a task has, with the texts of its own corpus."""
    corpus = next((pool.id for pool in task.pools if pool.side == "document"), task.name)
    counts = [size(pooled(task, side), len(COLORS)) for side in ("query", "document")]
    return Texts(*counts, suffix="" if size is few else f" of {corpus}")


# ── text ──


def bright(name: str, texts: Texts) -> dict[str, bytes]:
    asked = [
        {
            "query": f"why {one}?",
            "reasoning": "…",
            "id": str(at),
            "excluded_ids": ["N/A"],
            "gold_ids_long": ["unused"],
            "gold_ids": [f"{right}.txt"] + (["red.txt"] if at else []),
            "gold_answer": "",
        }
        for at, (one, right) in enumerate(texts.pairs)
    ]
    told = [{"id": f"{one}.txt", "content": f"all {one}{texts.suffix}"} for one in texts.documents]
    return {
        f"examples/{name}-00000-of-00001.parquet": table(asked),
        f"documents/{name}-00000-of-00001.parquet": table(told),
    }


def instructed(graded: bool, texts: Texts | None = None) -> dict[str, bytes]:
    texts = texts or Texts()
    asked = [
        {
            "_id": one,
            "text": f"{one} things",
            "instruction_og": f"Only {one} ones count.",
            "instruction_changed": f"No {one} ones count.",
            "short_query": one,
        }
        for one in texts.queries
    ]
    told = [
        {"_id": f"d-{one}", "title": one.title(), "text": f"is {one}\u2028indeed{texts.suffix}"}
        for one in texts.documents
    ]
    judged = [{"query-id": one, "corpus-id": f"d-{right}", "score": 2 if graded else 1} for one, right in texts.pairs]
    judged += [
        {"query-id": "red", "corpus-id": f"d-{one}", "score": score} for one, score in (("green", 1), ("blue", 0))
    ]
    changed = [{"query-id": "red", "corpus-id": "d-blue", "score": 1}]
    return {
        "queries.jsonl": lines(asked),
        "corpus.jsonl": lines([*told, {"_id": "empty", "title": "Empty", "text": ""}]),
        "qrels_og/test.jsonl": lines(judged),
        "qrels_changed/test.jsonl": lines(changed),
    }


def plain(
    texts: Texts, query: str, document: str, judged: tuple[str, str], queries: str = "queries.jsonl"
) -> dict[str, bytes]:
    return {
        queries: lines([{query: f"q-{one}", "text": f"a {one} one"} for one in texts.queries]),
        "corpus.jsonl": lines(
            [{document: f"d-{one}", "text": f"{one} and more{texts.suffix}"} for one in texts.documents]
        ),
        "qrels.jsonl": lines([{judged[0]: f"q-{one}", judged[1]: f"d-{right}"} for one, right in texts.pairs]),
    }


def nano(texts: Texts) -> dict[str, bytes]:
    documents = [{"_id": f"d-{one}", "text": f"{one}.{texts.suffix}"} for one in texts.documents]
    return {
        "queries/train-00000-of-00001.parquet": table([{"_id": one, "text": f"{one}?"} for one in texts.queries]),
        "corpus/train-00000-of-00001.parquet": table(documents),
        "qrels/train-00000-of-00001.parquet": table(
            [{"query-id": one, "corpus-id": f"d-{right}"} for one, right in texts.pairs]
        ),
    }


def texts(size: Size = few) -> dict[str, bytes]:
    """The one archive of all 53 text tasks."""
    made = {
        "FollowIR": lambda texts: instructed(True, texts),
        "InfoSearch": lambda texts: instructed(False, texts),
        "LongEmbed": lambda texts: plain(texts, "qid", "doc_id", ("qid", "doc_id")),
        "MultiConIR": lambda texts: plain(texts, "_id", "_id", ("query_id", "corpus_id")),
        "NanoBEIR": nano,
        "R2MED": lambda texts: plain(texts, "id", "id", ("q_id", "p_id"), "query.jsonl"),
    }
    found: dict[str, bytes] = {}
    for task in mmeb.TEXT:
        kind, _, name = task.name.removeprefix("MMEB/").partition("_")
        of_task = _texts_of(task, size)
        files = bright(name, of_task) if kind == "BRIGHT" else made[kind](of_task)
        found |= {f"{task.options['path']}/{file}": data for file, data in files.items()}
    return found


# ── agents ──


def tools(size: Size = few) -> dict[str, bytes]:
    """Every category's tools, and requests for one of them, two or none."""
    found: dict[str, bytes] = {}
    for category, (count, tasks) in mmeb.TOOLS.items():
        known = named(size(count, len(COLORS)))
        documents = [
            {"id": f"{category}_tool_{at}", "documentation": json.dumps({"name": f"paint_{one}", "doc": "für alle"})}
            for at, one in enumerate(known)
        ]
        found[f"tool-tasks/ToolDe-Candidates/{category}/tools-00000-of-00001.parquet"] = table(documents)
        for name, queries in tasks.items():
            asked = [
                {
                    "id": f"{name}_query_{at}",
                    "query": f"paint it {one}",
                    "instruction": "Given a wish, find tools.",
                    "category": category,
                    "labels": json.dumps(
                        [{"id": f"{category}_tool_{right}", "relevance": 1} for right in {at % len(known), 0}]
                    ),
                }
                for at, one in enumerate(named(size(queries, len(COLORS))))
            ]
            asked.append({**asked[0], "id": f"{name}_query_9x", "labels": "[]"})
            found[f"tool-tasks/ToolDe-Queries/{category}/{name}/queries-00000-of-00001.parquet"] = table(asked)
    return found


MEMORIES = {  # queries and documents
    "KnowMeBench": (2000, 27_000),
    "REALTALK": (679, 8900),
    "PeerQA": (136, 18_600),
    "DeepPlanning": (120, 19_800),
}


def memories(size: Size = few) -> dict[str, bytes]:
    """Four datasets, each with its corpus in another place; flat, as the archive has them."""
    found: dict[str, bytes] = {"memory-tasks/task_instructions.json": b"{}"}

    def put(name: str, part: str, corpus: str, header: bool = False) -> None:
        texts = Texts(*(size(count, len(COLORS)) for count in MEMORIES[name]))
        folder, home = f"memory-tasks/{name}/{part}".rstrip("/"), f"memory-tasks/{name}/{corpus}".rstrip("/")
        asked = [{"id": f"s_0_{one}", "text": f"when {one}?"} for one in texts.queries]
        found[f"{folder}/queries.jsonl"] = lines(asked)
        judged = ["query-id\tcorpus-id\tscore"] * header + [f"s_0_{one}\td_{right}\t1" for one, right in texts.pairs]
        found[f"{folder}/qrels.tsv"] = "\n".join(judged).encode()
        documents = [{"id": f"d_{one}", "title": part, "text": f"{one} day"} for one in texts.documents]
        found[f"{home}/corpus.jsonl"] = lines(documents)

    for scene in ("event_driven", "flashback_intensive"):
        for part in ("temporal_reasoning", "information_extraction"):
            put("KnowMeBench", f"{scene}/{part}", scene)
    for part in ("commonsense", "multi_hop"):
        put("REALTALK", part, "")
    put("PeerQA", "", "", header=True)
    for level in ("shopping_level1", "shopping_level2", "shopping_level3"):
        put("DeepPlanning", level, level)
    return found


def screens(name: str, size: Size = few) -> dict[str, bytes]:
    """Rows and the archive of screenshots of one dataset; one right candidate is in no corpus."""
    low = name.lower()
    shown = named(size(9_750, len(COLORS)))
    screenshots = {f"{low}/{one}.png": _screenshot(at, name) for at, one in enumerate(shown)}
    found = {f"gui_tasks/{name}.zip": zipped(screenshots)}
    names = {"cand_id": "pos_id", "cand_text": "pos_text", "cand_image_path": "pos_image_path"}
    for direction in ("q2s", "q2t", "s2s", "t2s"):
        seen, acted = direction[0] != "q", direction[2] == "t"
        rows = [
            {
                "qry_id": "same",
                "qry_text": "Find the next screen. <|image_1|>\nPaint it." if seen else f"Paint it {one}.",
                "qry_image_path": str([f"{low}/{one}.png"]) if seen else None,
                "pos_text": f"<|image_1|> click <|image_1|> {one}" if acted else "",
                "pos_image_path": str([f"{low}/{one}.png"] * (1 + acted)),
                "pos_id": f"{direction}-{one}",
                "retrieval_type": direction,
            }
            for one in shown
        ]
        corpus = [{name: row[of] for name, of in names.items()} for row in rows[:2] + rows[3:]]
        asked = rows[: size(1025, len(COLORS))]
        found[f"gui_tasks/GAE-{name}/queries/{direction}-00000-of-00001.parquet"] = table(asked)
        found[f"gui_tasks/GAE-{name}/corpus/{direction}-00000-of-00001.parquet"] = table(corpus)
    return found


def _screenshot(at: int, of: str) -> bytes:
    number = zlib.crc32(f"{of}/{at}".encode())
    return png(COLORS[at] if at < len(COLORS) else (number & 255, number >> 8 & 255, number >> 16 & 255))


def v3_files(size: Size = few) -> dict[str, bytes]:
    """The files of MMEB-V3's texts, tools, memories and interfaces; a large archive is in parts."""
    packed = tar(texts(size))
    part = len(packed) if size is few else len(packed) // 3 + 1
    parts = {
        f"text_tasks/text_tasks.tar.part-{number:03}": packed[start : start + part]
        for number, start in enumerate(range(0, len(packed), part))
    }
    return {
        **parts,
        "tool_tasks/tool_tasks.tar.gz": tar(tools(size), "w:gz"),
        "memory_tasks/memory-tasks.tar": tar(memories(size)),
        **screens("GUIAct", size),
        **screens("Mind2Web", size),
    }


def publish_v3(hub: FakeHub) -> None:
    """MMEB-V3 itself: text, tools, memories and interfaces."""
    hub.add(mmeb.HUB, v3_files(), mmeb.PINNED)


# ── documents ──

CARD = """---
configs:
- config_name: corpus
  data_files:
  - split: train
    path: data/corpus-*
- config_name: queries
  data_files:
  - split: train
    path: data/queries-*
- config_name: qrels
  data_files:
  - split: train
    path: data/qrels-*
---
"""


def publish_pages(hub: FakeHub, task: Task, size: Size = few) -> None:
    """Pages as pictures; VisRAG names its by file, ViDoRe numbers them."""
    visrag, graded, many = (
        task.options["parser"] == "visrag",
        task.options["graded"],
        task.options["positives"] == "many",
    )
    queries = named(size(pooled(task, "query"), len(COLORS)))
    shown = named(size(pooled(task, "document"), len(COLORS)))
    pages = [f"{one}.png" if visrag else at for at, one in enumerate(shown)]
    asked = [f"q{at}" if visrag else at for at in range(len(queries))]
    judged = [(query, pages[at % len(pages)], 2 if graded else 1) for at, query in enumerate(asked)]
    judged += [(asked[0], pages[1], 1)] if many else []
    tables = {
        "queries": [{"query-id": name, "query": f"a {one} page"} for name, one in zip(asked, queries, strict=True)],
        "corpus": [{"corpus-id": name, "image": _screenshot(at, task.source.id)} for at, name in enumerate(pages)],
        "qrels": [{"query-id": query, "corpus-id": page, "score": grade} for query, page, grade in judged],
    }
    place = "data/{}-00000-of-00001.parquet" if visrag else "{}/test-00000-of-00001.parquet"
    files = {place.format(config): table(rows) for config, rows in tables.items()}
    hub.add(task.source.id, files, card=CARD if visrag else "")


# ── judgements with faults ──


def faulty(judged: str, seed: int = 5) -> dict[str, list[dict[str, Any]]]:
    """Rows of queries, documents and qrels, whose texts are vectors; `judged` is binary, graded or gold.

    Relevant documents are missing from the corpus, or have no text there; ids and judgements come twice; a query has
    no text, and one has no relevant document.
    """
    chance = random.Random(seed)
    names = [f"d{number}" for number in range(40)]

    def vector() -> str:
        return " ".join(f"{chance.gauss(0, 1):.3f}" for _ in range(4))

    corpus = [{"_id": name, "text": vector() if number % 6 else ""} for number, name in enumerate(names[:30])]
    corpus += [{"_id": name, "text": vector()} for name in ("d1", "d2", "d6")]  # d6 had no text the first time
    queries: list[dict[str, Any]] = []
    qrels: list[dict[str, Any]] = []
    for number in range(12):
        positives = chance.choices(names, k=chance.randint(1, 8)) if number != 4 else []
        queries.append({"id": f"q{number}", "query": vector() if number != 7 else ""})
        if judged == "gold":
            name = "gold_ids" if number % 3 else "gold_ids_long"
            queries[-1] |= {"gold_ids": [], "gold_ids_long": [], name: positives}
        for name in positives:
            grade = chance.choice((0, 1, 2, 3)) if judged == "graded" else 1
            qrels.append({"q_id": f"q{number}", "p_id": name, "score": grade})
    queries.append(dict(queries[0], query=vector()))  # an id twice is two queries
    return {"queries": queries, "corpus": corpus, "qrels": [] if judged == "gold" else qrels}
