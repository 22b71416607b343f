"""Small datasets of the shape that MIEB's have on the hub, made from a task's own row: a few rows of every table."""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from PIL import Image

from embark.catalogue import group_values
from embark.tasks.mieb import COPIES
from embark.types import Task
from hub import parquet
from sizes import Size, few, pooled

ITEMS = 6
SHARD = 100  # rows
REPEATED = ("mteb/sketchy", "mteb/imagecode", "mteb/imagecode-multi")  # datasets whose ids occur several times
OUTSIDE = {  # datasets whose judgements name documents of another corpus, and how many for a query
    "mteb/mbeir_oven_task6": 9,
    "mteb/mbeir_oven_task8": 1,
    "mteb/mbeir_infoseek_task6": 1,
    "mteb/InfoSeekIT2ITRetrieval": 1,
}
UNNAMED = ("mteb/stl10", "mteb/cifar100")  # datasets that have bare numbers of classes; the row's list names them
Files = dict[str, bytes]
Columns = Mapping[str, Sequence[Any]]


@lru_cache(1 << 16)
def picture(at: int, of: str = "", kind: str = "png") -> bytes:
    """The picture of that number in a dataset; every fifth JPEG lies on its side, as its EXIF data say."""
    number = zlib.crc32(f"{of}/{at}".encode())
    image = Image.new("RGB", (8, 8), (number & 255, number >> 8 & 255, number >> 16 & 255))
    image.paste((number >> 24, 0, 0), (0, 0, 3, 5))
    out = io.BytesIO()
    if kind == "jpg":
        exif = Image.Exif()
        exif[0x0112] = 1 if at % 5 else 6
        image.save(out, "JPEG", exif=exif)
    else:
        image.save(out, kind, **({"lossless": True} if kind == "webp" else {}))
    return out.getvalue()


def sample(task: Task, size: Size = few) -> tuple[Files, str]:
    """The files of a task's dataset, and its card."""
    files, places = MAKE[task.reader](task, size)
    return files, card(places, task.source.license)


def card(places: Mapping[str, tuple[str, str]], license: str = "") -> str:
    """A card that tells which files hold which config and split."""
    head = f"license: {license}\n" if license and " " not in license and "/" not in license else ""
    files = ((config, f'  - split: "{split}"\n    path: {path}\n') for path, (config, split) in places.items())
    by_config = group_values(files)
    entries = [f"- config_name: {config}\n  data_files:\n{''.join(lines)}" for config, lines in by_config.items()]
    head += "configs:\n" + "".join(entries) if entries else ""
    return f"---\n{head}---\n# A dataset\n" if head else ""


def shards(path: str, columns: Columns, classes: Mapping[str, Sequence[str]] | None = None) -> Files:
    """A table as one file or several: "path-00000-of-00002.parquet"."""
    rows = len(next(iter(columns.values())))
    parts = [slice(start, start + SHARD) for start in range(0, rows, SHARD)]
    return {
        f"{path}-{number:05}-of-{len(parts):05}.parquet": parquet(
            {name: cells[part] for name, cells in columns.items()}, classes=classes, rows=50
        )
        for number, part in enumerate(parts)
    }


Made = tuple[Files, dict[str, tuple[str, str]]]  # files, and the config and split of those that the card names


def _kind(column: str) -> str:
    return column if column in ("jpg", "webp", "png") else "png"


def _class_names(task: Task) -> tuple[str, ...]:
    """The names that the row knows, else as many as it has classes; SUN397's are paths."""
    count = pooled(task, "prompt") or round(1 / (task.chance or 1 / 20))
    names = task.labels or tuple(task.options.get("names", ())) or tuple(f"class_{at}" for at in range(count))
    if "clean" in task.options:
        return tuple(f"/{name[0]}/{name.replace(' ', '_')}" for name in names)
    return names


def _labelled(task: Task, size: Size) -> Made:
    image, label, id = task.columns["image"], task.columns["label"], COPIES.get(task.source.id, task.source.id)
    names = _class_names(task)
    splits = {*task.source.splits, *([task.options["train"]] if "train" in task.options else [])}
    drop = task.options.get("drop", {})
    sizes = {split: size(task.rows.get(split), ITEMS) for split in sorted(splits)}
    seen = min(len(names), max(3, min(sizes.values()) // 4))  # classes of which there are several examples
    out: Files = {}
    for split, rows in sizes.items():
        rows = max(rows, 1 + max(drop.get(split, [0])))
        pictures = [picture(at % max(sizes.values()), f"{id}/{split}", _kind(image)) for at in range(rows)]
        for bad in drop.get(split, ()):
            pictures[bad] = b"not a picture"
        labels: list[Any] = [at % seen for at in range(rows)]
        if task.evaluator == "multilabel":
            labels = [[at % seen, (at + 1) % seen] if at % 2 else [at % seen] for at in range(rows)]
        elif label == "common":  # Birdsnap's labels are names
            labels = [names[number] for number in labels]
        bare = label in ("cls", "common") or task.source.id in UNNAMED  # webdatasets have bare numbers
        declared = {} if bare else {label: names}
        out |= shards(f"data/{split}", {image: pictures, label: labels, "other": ["x"] * rows}, declared)
    return out, {}


def _beir(task: Task, size: Size) -> Made:
    id = COPIES.get(task.source.id, task.source.id)
    each = 10 if task.evaluator == "pairs" else 2
    queries = size(pooled(task, "text" if task.evaluator == "pairs" else "query"), 4)
    documents = max(each + 1, size(task.rows.get("corpus/test", pooled(task, "document")), 3 * each + 1))
    among = bool({pool.id for pool in task.pools if pool.side == "query"} & {
        pool.id for pool in task.pools if pool.side == "document"
    })  # fmt: skip

    def side(role: str, rows: int, ids: int) -> dict[str, list[Any]]:
        held: dict[str, list[Any]] = {task.columns[f"{role}_id"]: [f"{role}-{at % ids}" for at in range(rows)]}
        pictured = f"{id}/{'corpus' if among else role}"
        for kind in ("image", "text"):
            column = task.columns.get(f"{role}_{kind}")
            if column:
                held[column] = [
                    picture(at, pictured) if kind == "image" else f"{role} text {at} of {id}" for at in range(rows)
                ]
        if len(held) == 3:  # an item of both may lack its words
            held[task.columns[f"{role}_text"]][5::7] = [None] * len(range(5, rows, 7))
        held.setdefault("modality", ["x"] * rows)
        return held

    ids, repeated = documents, 1
    if task.source.id in REPEATED:  # Sketchy: 6 rows a query and 2 a document; ImageCoDe: a set a text
        ids = max(each + 1, documents // 2)
        documents = max(documents, 2 * ids)
        repeated = 6 if task.source.id == "mteb/sketchy" else 1
    judged = range(queries - 1)  # the last query has no judgement
    pairs = [(query, (query * each + at) % ids, int(at == 1)) for query in judged for at in range(each)]
    qrels: dict[str, list[Any]] = {
        "query-id": [f"query-{query}" for query, _, _ in pairs],
        "corpus-id": [f"corpus-{document}" for _, document, _ in pairs],
        "score": [grade for *_, grade in pairs],
    }
    outside = [(query, at) for query in range(0, queries, 3) for at in range(OUTSIDE.get(task.source.id, 0))]
    qrels["query-id"] += [f"query-{query}" for query, _ in outside]
    qrels["corpus-id"] += [f"6:elsewhere-{query}-{at}" for query, at in outside]
    qrels["score"] += [1] * len(outside)
    tables = {
        "corpus": side("corpus", documents, ids),
        "queries": side("query", queries * repeated, queries),
        "qrels": qrels,
    }
    split, named = task.source.splits[0], task.options.get("configs", {})
    if named or "mbeir" in task.source.id:
        names = {"corpus": "corpus", "queries": "query", "qrels": "qrels", **named}
        splits = {"corpus": "corpus", **task.options.get("splits", {})}
        places = {f"{names[one]}/{splits.get(one, split)}": one for one in tables}
        return _union(shards(path, tables[one]) for path, one in places.items()), {}
    configs = {"corpus": "corpus", "queries": "queries", "qrels": "default"}
    if "query-id" in tables["queries"]:
        configs["qrels"] = "qrels"
    files = _union(shards(f"{configs[one]}/{split}", tables[one]) for one in tables)
    files |= _union(shards(f"{configs[one]}/dev", tables[one]) for one in ("queries", "qrels"))  # which nobody reads
    places = {f"{config}/{split}-*": (config, split) for config in configs.values()}
    return files, places | {f"{configs[one]}/dev-*": (configs[one], "dev") for one in ("queries", "qrels")}


def _union(parts: Any) -> Files:
    return {path: data for files in parts for path, data in files.items()}


def _paired(task: Task, size: Size) -> Made:
    by_language = task.options.get("subset_is") == "split"
    splits = task.subsets if by_language else task.options.get("corpus", task.source.splits)
    one_set = any("/all/" in pool.id for pool in task.pools)
    stated = pooled(task, "query")
    out: Files = {}
    first = 0
    for split in splits:
        text, rows = task.columns["text"], size(task.rows.get(split, None if by_language else stated), ITEMS)
        words: list[Any] = [f"{split} words {at // 2}" for at in range(rows)]  # of which every second one is new
        if text == "captions":
            words = [[f"{split} words {at}.{k}" for k in range(1 + at % 2)] for at in range(rows)]
        if task.options.get("missing") == "skip":
            words[1] = None
        pictures = [picture(first + at, task.source.id) for at in range(rows)]
        held: dict[str, list[Any]] = {"image": pictures, text: words}
        if "id" in task.columns:
            held[task.columns["id"]] = [f"{first + at:05d}" for at in range(rows)]
        out |= shards(f"data/{split}", held)
        first += 0 if one_set else rows
    return out, {}


def _question(task: Task, size: Size) -> Made:
    kinds = ("Count", "Relation", "Depth", "Distance")
    rows = range(size(task.rows.get("test"), 8))
    held = {
        "idx": list(rows), "image": [picture(at, task.source.id) for at in rows],
        "task": [kinds[at % 4] for at in rows], "question": [f"what about {at}?" for at in rows],
        "answer": [("(B)", "(A)")[at % 2] for at in rows],
        "choices": [["one", "two"] if at % 3 else ["two", "six", "ten"] for at in rows],
    }  # fmt: skip
    return shards("data/test", held), {}


def _captions(task: Task, size: Size) -> Made:
    split = task.options.get("splits", {}).get("test", "test")
    rows = range(size(task.rows.get(split), ITEMS))
    images, words = (task.columns[side].split(",") for side in ("images", "texts"))
    held: dict[str, list[Any]] = {
        column: [picture(row, f"{task.source.id}/{column}") for row in rows] for column in images
    }
    if task.name == "SugarCrepe":  # not seen: some of these columns may hold lists
        held = {column: [[one] for one in cells] for column, cells in held.items()}
    held |= {column: [f"{column} {row} of {task.name}" for row in rows] for column in words}
    return shards(f"data/{split}", held), {}


def _sts(task: Task, size: Size) -> Made:
    out: Files = {}
    for subset in task.subsets:
        for split in task.source.splits:
            rows = size(task.rows.get(f"{subset}/{split}", task.rows.get(split)), ITEMS)
            place = f"{task.source.id}/{subset}/{split}"
            held = {
                task.columns["left"]: [picture(at, place) for at in range(rows)],
                task.columns["right"]: [picture(500 + at, place) for at in range(rows)],
                task.columns["score"]: [at % 6 * 5 / 6 for at in range(rows)],
            }
            folder = "data" if subset == "default" else subset
            out |= shards(f"{folder}/{split}", held)
    return out, {}


MAKE = {
    "labelled": _labelled,
    "beir": _beir,
    "paired": _paired,
    "question": _question,
    "captions": _captions,
    "rendered-sts": _sts,
}
