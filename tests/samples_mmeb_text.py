"""Small samples of MMEB-V3's text, agent and document data, in the archives, tables and columns of the hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from embark.tasks import mmeb
from embark.types import Task
from hub import FakeHub, parquet, png, tar, zipped

COLORS = ("red", "green", "blue")


def lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def table(rows: list[dict[str, Any]]) -> bytes:
    return parquet({name: [row[name] for row in rows] for name in rows[0]})


# ── text ──


def bright(name: str) -> dict[str, bytes]:
    asked = [
        {
            "query": f"why {one}?",
            "reasoning": "…",
            "id": str(at),
            "excluded_ids": ["N/A"],
            "gold_ids_long": ["unused"],
            "gold_ids": [f"{one}.txt"] + (["red.txt"] if at else []),
            "gold_answer": "",
        }
        for at, one in enumerate(COLORS)
    ]
    told = [{"id": f"{one}.txt", "content": f"all {one}"} for one in COLORS]
    return {
        f"examples/{name}-00000-of-00001.parquet": table(asked),
        f"documents/{name}-00000-of-00001.parquet": table(told),
    }


def instructed(graded: bool) -> dict[str, bytes]:
    asked = [
        {
            "_id": one,
            "text": f"{one} things",
            "instruction_og": f"Only {one} ones count.",
            "instruction_changed": f"No {one} ones count.",
            "short_query": one,
        }
        for one in COLORS
    ]
    told = [{"_id": f"d-{one}", "title": one.title(), "text": f"is {one}\u2028indeed"} for one in COLORS]
    judged = [{"query-id": one, "corpus-id": f"d-{one}", "score": 2 if graded else 1} for one in COLORS]
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


def plain(query: str, document: str, judged: tuple[str, str], queries: str = "queries.jsonl") -> dict[str, bytes]:
    return {
        queries: lines([{query: f"q-{one}", "text": f"a {one} one"} for one in COLORS]),
        "corpus.jsonl": lines([{document: f"d-{one}", "text": f"{one} and more"} for one in COLORS]),
        "qrels.jsonl": lines([{judged[0]: f"q-{one}", judged[1]: f"d-{one}"} for one in COLORS]),
    }


def nano() -> dict[str, bytes]:
    return {
        "queries/train-00000-of-00001.parquet": table([{"_id": one, "text": f"{one}?"} for one in COLORS]),
        "corpus/train-00000-of-00001.parquet": table([{"_id": f"d-{one}", "text": f"{one}."} for one in COLORS]),
        "qrels/train-00000-of-00001.parquet": table([{"query-id": one, "corpus-id": f"d-{one}"} for one in COLORS]),
    }


def texts() -> dict[str, bytes]:
    """The one archive of all 53 text tasks."""
    made = {
        "FollowIR": instructed(True),
        "InfoSearch": instructed(False),
        "LongEmbed": plain("qid", "doc_id", ("qid", "doc_id")),
        "MultiConIR": plain("_id", "_id", ("query_id", "corpus_id")),
        "NanoBEIR": nano(),
        "R2MED": plain("id", "id", ("q_id", "p_id"), "query.jsonl"),
    }
    found: dict[str, bytes] = {}
    for task in mmeb.TEXT:
        kind, _, name = task.name.removeprefix("MMEB/").partition("_")
        files = bright(name) if kind == "BRIGHT" else made[kind]
        found |= {f"{task.options['path']}/{file}": data for file, data in files.items()}
    return found


# ── agents ──


def tools() -> dict[str, bytes]:
    """Every category's tools, and requests for one of them, two or none."""
    found: dict[str, bytes] = {}
    for category, (_, tasks) in mmeb.TOOLS.items():
        documents = [
            {"id": f"{category}_tool_{at}", "documentation": json.dumps({"name": f"paint_{one}", "doc": "für alle"})}
            for at, one in enumerate(COLORS)
        ]
        found[f"tool-tasks/ToolDe-Candidates/{category}/tools-00000-of-00001.parquet"] = table(documents)
        for name in tasks:
            asked = [
                {
                    "id": f"{name}_query_{at}",
                    "query": f"paint it {one}",
                    "instruction": "Given a wish, find tools.",
                    "category": category,
                    "labels": json.dumps([{"id": f"{category}_tool_{right}", "relevance": 1} for right in {at, 0}]),
                }
                for at, one in enumerate(COLORS)
            ]
            asked.append({**asked[0], "id": f"{name}_query_9", "labels": "[]"})
            found[f"tool-tasks/ToolDe-Queries/{category}/{name}/queries-00000-of-00001.parquet"] = table(asked)
    return found


def memories() -> dict[str, bytes]:
    """Four datasets, each with its corpus in another place; flat, as the archive has them."""
    found: dict[str, bytes] = {"memory-tasks/task_instructions.json": b"{}"}

    def put(name: str, part: str, corpus: str, header: bool = False) -> None:
        folder, home = f"memory-tasks/{name}/{part}".rstrip("/"), f"memory-tasks/{name}/{corpus}".rstrip("/")
        found[f"{folder}/queries.jsonl"] = lines([{"id": f"s_0_{one}", "text": f"when {one}?"} for one in COLORS])
        judged = ["query-id\tcorpus-id\tscore"] * header + [f"s_0_{one}\td_{one}\t1" for one in COLORS]
        found[f"{folder}/qrels.tsv"] = "\n".join(judged).encode()
        documents = [{"id": f"d_{one}", "title": part, "text": f"{one} day"} for one in COLORS]
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


def screens(name: str) -> dict[str, bytes]:
    """Rows and the archive of screenshots of one dataset; one right candidate is in no corpus."""
    low = name.lower()
    found = {f"gui_tasks/{name}.zip": zipped({f"{low}/{one}.png": png(one) for one in COLORS})}
    names = {"cand_id": "pos_id", "cand_text": "pos_text", "cand_image_path": "pos_image_path"}
    for direction in ("q2s", "q2t", "s2s", "t2s"):
        seen, shown = direction[0] != "q", direction[2] == "t"
        asked = [
            {
                "qry_id": "same",
                "qry_text": "Find the next screen. <|image_1|>\nPaint it." if seen else f"Paint it {one}.",
                "qry_image_path": str([f"{low}/{one}.png"]) if seen else None,
                "pos_text": f"<|image_1|> click <|image_1|> {one}" if shown else "",
                "pos_image_path": str([f"{low}/{one}.png"] * (1 + shown)),
                "pos_id": f"{direction}-{one}",
                "retrieval_type": direction,
            }
            for one in COLORS
        ]
        corpus = [{name: row[of] for name, of in names.items()} for row in asked[:2]]
        found[f"gui_tasks/GAE-{name}/queries/{direction}-00000-of-00001.parquet"] = table(asked)
        found[f"gui_tasks/GAE-{name}/corpus/{direction}-00000-of-00001.parquet"] = table(corpus)
    return found


def publish_v3(hub: FakeHub) -> None:
    """MMEB-V3 itself: text, tools, memories and interfaces."""
    files = {
        "text_tasks/text_tasks.tar.part-000": tar(texts()),
        "tool_tasks/tool_tasks.tar.gz": tar(tools(), "w:gz"),
        "memory_tasks/memory-tasks.tar": tar(memories()),
        **screens("GUIAct"),
        **screens("Mind2Web"),
    }
    hub.add(mmeb.HUB, files, mmeb.PINNED)


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


def publish_pages(hub: FakeHub, task: Task) -> None:
    """Pages as pictures; VisRAG names its by file, ViDoRe numbers them."""
    visrag, graded, many = (
        task.options["parser"] == "visrag",
        task.options["graded"],
        task.options["positives"] == "many",
    )
    pages = [f"{one}.png" if visrag else at for at, one in enumerate(COLORS)]
    asked = [f"q{at}" if visrag else at for at in range(len(COLORS))]
    judged = [(query, page, 2 if graded else 1) for query, page in zip(asked, pages, strict=True)]
    judged += [(asked[0], pages[1], 1)] if many else []
    tables = {
        "queries": [{"query-id": name, "query": f"a {one} page"} for name, one in zip(asked, COLORS, strict=True)],
        "corpus": [{"corpus-id": name, "image": png(one)} for name, one in zip(pages, COLORS, strict=True)],
        "qrels": [{"query-id": query, "corpus-id": page, "score": grade} for query, page, grade in judged],
    }
    place = "data/{}-00000-of-00001.parquet" if visrag else "{}/test-00000-of-00001.parquet"
    files = {place.format(config): table(rows) for config, rows in tables.items()}
    hub.add(task.source.id, files, card=CARD if visrag else "")
