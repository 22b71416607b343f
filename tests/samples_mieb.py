"""Small datasets of the shape that MIEB's have on the hub, made from a task's own row: a few rows of every table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.types import Task
from hub import parquet, png

ITEMS = 6
NAMES = ("/a/apple_tree", "/b/bus", "/c/cat/indoor")  # of classes; SUN397's look like this
Files = dict[str, bytes]


def picture(at: int) -> bytes:
    """The picture of that number."""
    return png((at * 37 % 256, at * 91 % 256, at * 151 % 256))


def sample(task: Task) -> tuple[Files, str]:
    """The files of a task's dataset, and its card."""
    return MAKE[task.reader](task)


def card(places: Mapping[str, tuple[str, str]]) -> str:
    """A card that tells which files hold which config and split."""
    entries = [
        f"- config_name: {config}\n  data_files:\n  - split: {split}\n    path: {path}\n"
        for path, (config, split) in places.items()
    ]
    return "---\nconfigs:\n" + "".join(entries) + "---\n# A dataset\n"


def _labelled(task: Task) -> tuple[Files, str]:
    label, declared = task.columns["label"], {}
    numbers: list[Any] = [at % 3 for at in range(ITEMS)]
    if task.labels:
        numbers = [at % min(len(task.labels), 3) for at in range(ITEMS)]
    elif task.evaluator == "multilabel":
        numbers = [[at % 3, (at + 1) % 3] if at % 2 else [at % 3] for at in range(ITEMS)]
    if label != "cls":  # webdatasets have bare numbers
        declared = {label: task.labels or NAMES}
    splits = {*task.source.splits, *([task.options["train"]] if "train" in task.options else [])}
    drop = task.options.get("drop", {})
    out = {}
    for number, split in enumerate(sorted(splits)):
        size = 1 + max(drop.get(split, [ITEMS - 1]))
        cells = [picture(number * ITEMS + at % ITEMS) for at in range(size)]
        for bad in drop.get(split, ()):
            cells[bad] = b"not a picture"
        given = [numbers[at % ITEMS] for at in range(size)]
        held = {task.columns["image"]: cells, label: given, "other": ["x"] * size}
        out[f"data/{split}-00000-of-00001.parquet"] = parquet(held, classes=declared)
    return out, ""


def _beir(task: Task) -> tuple[Files, str]:
    def side(role: str, size: int, first: int) -> dict[str, list[Any]]:
        held: dict[str, list[Any]] = {task.columns[f"{role}_id"]: [f"{role}-{at}" for at in range(size)]}
        for kind in ("image", "text"):
            column = task.columns.get(f"{role}_{kind}")
            if column:
                held[column] = [picture(first + at) if kind == "image" else f"{role} text {at}" for at in range(size)]
        held.setdefault("modality", ["x"] * size)
        return held

    each = 10 if task.evaluator == "pairs" else 2
    corpus, queries = side("corpus", 3 * each + 1, 0), side("query", 4, 3 * each + 1)
    pairs = [(query, query * each + at, int(at == 1)) for query in range(3) for at in range(each)]
    qrels = {
        "query-id": [f"query-{query}" for query, _, _ in pairs],
        "corpus-id": [f"corpus-{document}" for _, document, _ in pairs],
        "score": [grade for *_, grade in pairs],
    }
    if task.options.get("unknown") == "miss":  # documents of another corpus are judged, too
        for query in ("query-0", "query-3"):
            for column, cell in (("query-id", query), ("corpus-id", "6:elsewhere"), ("score", 1)):
                qrels[column].append(cell)
    if task.options.get("repeated"):  # Sketchy: 6 rows a query and 2 a document; ImageCoDe: a set a text
        corpus = {column: cells * 2 for column, cells in corpus.items()}
        if task.name == "SketchyI2IRetrieval":
            queries = {column: cells * 6 for column, cells in queries.items()}
    tables = {"corpus": corpus, "queries": queries, "qrels": qrels}
    split, named = task.source.splits[0], task.options.get("configs", {})
    if named or "mbeir" in task.source.id:
        names = {"corpus": "corpus", "queries": "query", "qrels": "qrels", **named}
        splits = {"corpus": "corpus", **task.options.get("splits", {})}
        places = {f"{names[one]}/{splits.get(one, split)}-00000-of-00001.parquet": one for one in tables}
        return {path: parquet(tables[one]) for path, one in places.items()}, ""
    configs = {"corpus": "corpus", "queries": "queries", "qrels": "qrels" if "query-id" in corpus else "default"}
    told = {f"{config}/part-0.parquet": (config, split) for config in configs.values()}
    return {path: parquet(tables[one]) for path, one in zip(told, tables, strict=True)}, card(told)


def _paired(task: Task) -> tuple[Files, str]:
    splits = (
        task.subsets if task.options.get("subset_is") == "split" else task.options.get("corpus", task.source.splits)
    )
    out = {}
    for number, split in enumerate(splits):
        text, first = task.columns["text"], number * ITEMS
        words: list[Any] = [f"{split} words {at // 2}" for at in range(ITEMS)]  # of which every second one is new
        if text == "captions":
            words = [[f"{split} words {at}.{k}" for k in range(1 + at % 2)] for at in range(ITEMS)]
        if task.options.get("missing") == "skip":
            words[1] = None
        held: dict[str, list[Any]] = {"image": [picture(first + at) for at in range(ITEMS)], text: words}
        if "id" in task.columns:
            held[task.columns["id"]] = [f"{first + at:05d}" for at in range(ITEMS)]
        out[f"data/{split}-00000-of-00001.parquet"] = parquet(held)
    return out, ""


def _question(task: Task) -> tuple[Files, str]:
    kinds = ("Count", "Relation", "Depth", "Distance")
    held = {
        "idx": list(range(8)), "image": [picture(at) for at in range(8)], "task": [kinds[at % 4] for at in range(8)],
        "question": [f"what about {at}?" for at in range(8)], "answer": ["(B)", "(A)"] * 4,
        "choices": [["one", "two"] if at % 3 else ["two", "six", "ten"] for at in range(8)],
    }  # fmt: skip
    return {"data/test-00000-of-00001.parquet": parquet(held)}, ""


def _captions(task: Task) -> tuple[Files, str]:
    split = task.options.get("splits", {}).get("test", "test")
    images, words = (task.columns[side].split(",") for side in ("images", "texts"))
    held: dict[str, list[Any]] = {
        column: [picture(10 * at + row) for row in range(ITEMS)] for at, column in enumerate(images)
    }
    if task.name == "SugarCrepe":  # not seen: some of these columns may hold lists
        held = {column: [[one] for one in cells] for column, cells in held.items()}
    held |= {column: [f"{column} {row}" for row in range(ITEMS)] for column in words}
    return {f"data/{split}-00000-of-00001.parquet": parquet(held)}, ""


def _sts(task: Task) -> tuple[Files, str]:
    out = {}
    for subset in task.subsets:
        for split in task.source.splits:
            held = {
                task.columns["left"]: [picture(at) for at in range(ITEMS)],
                task.columns["right"]: [picture(50 + at) for at in range(ITEMS)],
                task.columns["score"]: [at * 5 / ITEMS for at in range(ITEMS)],
            }
            folder = "data" if subset == "default" else subset
            out[f"{folder}/{split}-00000-of-00001.parquet"] = parquet(held)
    return out, ""


MAKE = {
    "labelled": _labelled,
    "beir": _beir,
    "paired": _paired,
    "question": _question,
    "captions": _captions,
    "rendered-sts": _sts,
}
