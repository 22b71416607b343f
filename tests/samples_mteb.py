"""Messy made-up data for MIEB's tasks, in the hub's layout with every column that mteb's own classes expect.

What makes it messy: repeated ids, judgements of ids that no row has, lists of captions, white space around texts, empty and
missing texts, equal items under several ids, class names and classes without rows, and pictures that are turned (EXIF),
CMYK, palettes, transparent, grey, of 16 bits or of one.

Only what both sides can read is here: mteb stops at a missing text of an item that also has a picture, and at a judged
candidate that no row has.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from embark.tasks import TASKS
from embark.types import Task
from samples_mieb import card

Random = np.random.Generator
Picture = Mapping[str, Any]  # {"bytes", "path"}
Feature = Mapping[str, Any]  # how the `datasets` library reads a column

SPACES = ("", "", "", " ", "  ", "\n", "\t", "\u00a0", "\r\n", "\u3000")
WORDS = "red green blue dog cat bird car tree house old new small Straße Ñandú 猫 кот café cafe\u0301".split()
MODES = ("RGB", "RGB", "CMYK", "P", "P+alpha", "RGBA", "LA", "L", "1", "turned", "turned", "webp", "gif")


@dataclass(frozen=True)
class Table:
    """A table of a dataset: its config and split, its columns, and those that no feature of the usual kind describes."""

    config: str
    split: str
    columns: Mapping[str, Sequence[Any]]
    features: Mapping[str, Feature | None] = field(default_factory=dict)


def files(task: Task, seed: int) -> dict[str, bytes]:
    """The files of a task's dataset, with a card that names configs and splits; two shards a table."""
    rng = np.random.default_rng([seed, zlib.crc32(task.source.id.encode())])
    out: dict[str, bytes] = {}
    places = {}
    for table in MAKE[task.reader](task, rng):
        folder = "data" if table.config == "default" else table.config
        places[f"{folder}/{table.split}-*"] = (table.config, table.split)
        rows = len(next(iter(table.columns.values())))
        for shard, part in enumerate((slice(0, rows // 2), slice(rows // 2, rows))):
            columns = {name: cells[part] for name, cells in table.columns.items()}
            out[f"{folder}/{table.split}-{shard:05}-of-00002.parquet"] = _parquet(columns, table.features)
    return out | {"README.md": card(places).encode()}


def _parquet(columns: Mapping[str, Sequence[Any]], features: Mapping[str, Feature | None]) -> bytes:
    """A table as `push_to_hub` writes it: the schema tells the features."""
    arrays = {name: pa.array(cells, _type(cells)) for name, cells in columns.items()}
    stated = {name: features.get(name, _feature(array.type)) for name, array in arrays.items()}
    info = {"info": {"features": {name: feature for name, feature in stated.items() if feature}}}
    metadata = {"huggingface": json.dumps(info)} if all(stated.values()) else {}
    out = io.BytesIO()
    pq.write_table(pa.table(arrays).replace_schema_metadata(metadata), out, row_group_size=7)
    return out.getvalue()


def _type(cells: Sequence[Any]) -> pa.DataType | None:
    pictures = any(isinstance(cell, Mapping) for cell in cells)
    return pa.struct({"bytes": pa.binary(), "path": pa.string()}) if pictures else None


def _feature(kind: pa.DataType) -> Feature:
    if pa.types.is_struct(kind):
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}


# ── contents ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def text(rng: Random) -> str:
    """A few words with white space around them, or nothing but white space, or nothing."""
    start, stop = (SPACES[rng.integers(len(SPACES))] for _ in range(2))
    words = rng.choice(WORDS, size=rng.integers(0, 4))
    return f"{start}{(' ' + SPACES[rng.integers(4)]).join(words)}{stop}"


def texts(rng: Random, count: int) -> list[str]:
    """Texts of which some are equal, some differ in their white space alone."""
    out = [text(rng) for _ in range(count)]
    for row in rng.integers(0, count, count // 5):
        out[row] = out[rng.integers(count)] + SPACES[rng.integers(len(SPACES))]
    return out


def picture(rng: Random, hue: int = 0, modes: Sequence[str] = MODES) -> Picture:
    """A picture of any mode and format whose colour tells its hue."""
    mode = str(rng.choice(modes))
    height, width = rng.integers(5, 12, 2)
    base = np.random.default_rng(hue).integers(0, 200, 3)
    image = Image.fromarray((base + rng.integers(0, 56, (height, width, 3))).astype(np.uint8))
    out = io.BytesIO()
    exif = Image.Exif()
    if mode == "turned":
        exif[0x0112] = int(rng.integers(1, 9))
        image.save(out, str(rng.choice(("JPEG", "PNG"))), exif=exif)
    elif mode == "CMYK":
        image.convert("CMYK").save(out, "JPEG")
    elif mode == "P":
        image.quantize(8).save(out, "PNG")
    elif mode == "P+alpha":
        image.quantize(8).save(out, "PNG", transparency=3)
    elif mode in ("RGBA", "webp"):
        alpha = Image.fromarray(rng.integers(0, 256, (height, width), dtype=np.uint8))
        image.putalpha(alpha)
        image.save(out, "PNG") if mode == "RGBA" else image.save(out, "WEBP", lossless=True, exact=True)
    elif mode == "LA":
        image.convert("LA").save(out, "PNG")
    elif mode == "I;16":
        Image.fromarray(rng.integers(0, 1 << 16, (height, width)).astype(np.uint16)).save(out, "PNG")
    elif mode == "gif":
        image.quantize(16).save(out, "GIF")
    elif mode == "RGB":
        image.save(out, str(rng.choice(("JPEG", "PNG"))))
    else:
        image.convert(mode).save(out, "PNG")
    return {"bytes": out.getvalue(), "path": "file"}


def pictures(rng: Random, count: int, hues: Sequence[int] = (), modes: Sequence[str] = MODES) -> list[Picture]:
    """Pictures of which some are equal; `hues` are those of the rows."""
    out = [picture(rng, int(hues[row]) if len(hues) else int(rng.integers(9)), modes) for row in range(count)]
    for row in rng.integers(0, count, count // 8 * (not len(hues))):
        out[row] = out[rng.integers(count)]
    return out


# ── labels ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _labelled(task: Task, rng: Random) -> Iterator[Table]:
    image, label = task.columns["image"], task.columns["label"]
    names = task.labels or tuple(task.options.get("names", ())) or tuple(f" Class_{n} " for n in range(12))
    if "clean" in task.options:
        names = tuple(f"/{name[0]}/{name.replace(' ', '_')}" for name in names)
    bare = label == "cls"
    feature = None if bare else {"names": list(names), "_type": "ClassLabel"}
    seen = min(len(names), 7)
    for split in dict.fromkeys((*task.source.splits, *([task.options["train"]] if "train" in task.options else []))):
        rows = 150 if split == task.options.get("train") else 60
        if broken := max(task.options.get("drop", {}).get(split, (0,))):
            rows = broken + 1
        # The last class is rare in both splits, and the first one missing from the test split.
        numbers = np.where(rng.random(rows) < 0.03, seen - 1, rng.integers(split == "test" and seen > 2, seen - 1, rows))
        numbers = rng.integers(0, 2, rows) if seen == 2 else numbers
        if task.evaluator == "multilabel":
            cells: list[Any] = [
                sorted({int(number), *rng.integers(0, seen, rng.integers(0, 3)).tolist()}) for number in numbers
            ]
            described: Feature | None = {"feature": feature, "_type": "List"}
        else:
            cells, described = numbers.tolist(), feature
        features = {} if described is None else {label: described}
        images = pictures(rng, min(rows, 150), numbers)
        images = [images[row % len(images)] for row in range(rows)]
        for row in task.options.get("drop", {}).get(split, ()):
            images[row] = {"bytes": b"no picture", "path": "file"}
        yield Table("default", split, {image: images, label: cells}, features)


# ── rankings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _content(task: Task, role: str, rng: Random, rows: int, held: list[str]) -> dict[str, list[Any]]:
    """The content columns of a side, without the title."""
    out: dict[str, list[Any]] = {}
    for kind in held:
        column = task.columns[f"{role}_{kind}"]
        out[column] = pictures(rng, rows) if kind == "image" else texts(rng, rows)
    return out


def _beir(task: Task, rng: Random) -> Iterator[Table]:
    columns = task.columns
    sides = {role: [kind for kind in ("image", "text") if f"{role}_{kind}" in columns] for role in ("query", "corpus")}
    pages = columns["query_id"] == "query-id"
    queries, documents = 14, 40
    as_id: Callable[[str, int], Any] = (lambda role, n: n) if pages else (lambda role, n: f"{n % 3}:{role[0]}{n}")
    corpus = {columns["corpus_id"]: [as_id("corpus", n) for n in range(documents)]}
    corpus |= _content(task, "corpus", rng, documents, sides["corpus"])
    asked = {columns["query_id"]: [as_id("query", n) for n in range(queries)]}
    asked |= _content(task, "query", rng, queries, sides["query"])
    if task.params.get("skip_first") and sides["query"] == sides["corpus"]:  # the queries are in the corpus, too
        for column in _content(task, "query", rng, 1, sides["query"]):
            rows = rng.permutation(documents)[:queries]
            asked[column] = [corpus[column][row] for row in rows]
    if sides["corpus"] == ["text"] and not pages:
        corpus["title"] = [title if rng.random() < 0.5 else "" for title in texts(rng, documents)]
    if not pages:
        asked["modality"], corpus["modality"] = ["x"] * queries, ["x"] * documents
        for table in (asked, corpus):  # the usual tables have both columns
            for kind in ("image", "text"):
                table.setdefault(kind, [None] * len(table["modality"]))
    if task.evaluator == "pairs":
        judged = [(q, d, int(k == 0)) for q in range(queries) for k, d in enumerate(rng.permutation(documents)[:10])]
        judged = [judged[q * 10 + k] for q in range(queries) for k in rng.permutation(10)]
    else:
        few = (4, 7) if task.evaluator == "choice" else (1, 6)
        grades = (0, 1) if task.evaluator == "choice" else (0, 1, 1, 1, 2, 3)
        judged = [
            (q, int(d), int(rng.choice(grades)))
            for q in range(queries - 1)  # the last one has no judgement
            for d in rng.permutation(documents)[: rng.integers(*few)]
        ]
    qrels = {
        "query-id": [as_id("query", q) for q, *_ in judged],
        "corpus-id": [as_id("corpus", d) for _, d, _ in judged],
        "score": [grade for *_, grade in judged],
    }
    if task.options.get("unknown"):  # judgements of documents that are elsewhere
        for q in rng.integers(0, queries - 1, 9):
            qrels["query-id"].append(as_id("query", int(q)))
            qrels["corpus-id"].append(f"elsewhere-{rng.integers(99)}")
            qrels["score"].append(1)
    if task.options.get("repeated"):
        for table, count in ((corpus, documents), (asked, 0 if task.evaluator == "pairs" else queries)):
            rows = rng.integers(0, max(count, 1), count // 3)
            for name, cells in list(table.items()):
                ids = name in (columns["query_id"], columns["corpus_id"])
                fresh = [cells[row] for row in rows] if ids or name == "modality" else None
                kind = "image" if isinstance(cells[0], Mapping) else "text"
                table[name] = cells + (fresh or (pictures(rng, len(rows)) if kind == "image" else texts(rng, len(rows))) * bool(len(rows)))
    configs = {"corpus": "corpus", "queries": "query", "qrels": "qrels", **task.options.get("configs", {})}
    if pages:
        configs["queries"] = "queries"
    splits = {"corpus": "corpus" if not pages else "test", **task.options.get("splits", {})}
    split = task.source.splits[0]
    for name, table in (("corpus", corpus), ("queries", asked), ("qrels", qrels)):
        yield Table(configs[name], splits.get(name, split), table)


def _paired(task: Task, rng: Random) -> Iterator[Table]:
    column, id = task.columns["text"], task.columns.get("id")
    languages = task.options.get("subset_is") == "split"
    splits = task.subsets if languages else task.options.get("corpus", task.source.splits)
    first = 0
    # mteb packs WIT's pictures anew, JPEG with loss: see PICTURES_ANEW in the test.
    modes = ("RGBA", "P", "L", "1") if task.source.id == "mteb/wit" else MODES
    for split in splits:
        rows = 12 if languages else 25
        cells: list[Any] = texts(rng, rows)
        if column == "captions":
            cells = [texts(rng, int(rng.integers(1, 4))) for _ in range(rows)]
        elif task.options.get("missing") == "skip":
            cells = [cell if rng.random() > 0.2 else None for cell in cells]
        columns: dict[str, list[Any]] = {"image": pictures(rng, rows, modes=modes), column: cells}
        if id:
            number = rng.permutation(rows) + first
            columns[id] = [int(n) if task.source.id.endswith("Memes") else f"{n}" for n in number]
            first += rows
        for extra in EXTRA.get(task.source.id, ()):
            columns[extra] = ["x"] * rows
        if task.source.id.endswith(("xm3600", "xflickrco")):  # pictures that no feature describes
            yield Table("default", split, columns, {"image": {"bytes": {"dtype": "binary", "_type": "Value"}, "path": {"dtype": "string", "_type": "Value"}}})  # fmt: skip
        else:
            yield Table("default", split, columns)


EXTRA = {  # columns that nobody reads, but that mteb's code takes away by name
    "mteb/MMSoc_HatefulMemes": ("split", "label"),
    "mteb/MMSoc_Memotion_corrected": (
        "split", "text_ocr", "humor", "sarcasm", "offensive", "motivational", "sentiment",
    ),
    "mteb/SciMMIR": ("file_name_index", "class", "super_class", "sub_class", "split"),
    "mteb/xm3600": ("captions_tokenized", "captions_tokenized_lowercase", "image_locale"),
    "mteb/CV-Bench": (
        "type", "filename", "source", "source_dataset", "source_filename", "target_class", "target_size", "bbox", "prompt",
    ),
}  # fmt: skip


def _question(task: Task, rng: Random) -> Iterator[Table]:
    rows = 60
    pool = list(dict.fromkeys(texts(rng, 30)))
    choices = [[pool[n] for n in rng.permutation(len(pool))[: rng.integers(2, 7)]] for _ in range(rows)]
    choices[5] = [choices[5][0], *choices[5]]  # the same answer twice
    columns: dict[str, list[Any]] = {
        "idx": list(range(rows)),
        "image": pictures(rng, rows),
        "task": [("Count", "Relation", "Depth", "Distance")[rng.integers(4)] for _ in range(rows)],
        "question": texts(rng, rows),
        "choices": choices,
        "answer": [f"({'ABCDEF'[rng.integers(len(cell[:6]))]})" for cell in choices],
    }
    columns |= {extra: ["x"] * rows for extra in EXTRA["mteb/CV-Bench"]}
    yield Table("default", "test", columns)


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _captions(task: Task, rng: Random) -> Iterator[Table]:
    split = task.options.get("splits", {}).get("test", "test")
    rows = 40
    columns: dict[str, list[Any]] = {}
    for column in task.columns["images"].split(","):
        columns[column] = pictures(rng, rows)
    for column in task.columns["texts"].split(","):
        columns[column] = texts(rng, rows)
    first, *others = task.columns["texts"].split(",")
    for row in rng.integers(0, rows, 4):  # ties: a wrong caption that is the right one
        columns[others[-1]][row] = columns[first][row]
    yield Table("default", split, columns)


def _sts(task: Task, rng: Random) -> Iterator[Table]:
    kind = task.modalities[0]
    rows_of = [row for row in TASKS.values() if row.source.id == task.source.id]  # mteb reads all of them for a part
    subsets = dict.fromkeys(subset for row in rows_of for subset in row.subsets)
    splits = dict.fromkeys(split for row in rows_of for split in row.source.splits)
    for subset in subsets:
        for split in splits:
            rows = 25
            make = pictures if kind == "image" else texts
            left, right = make(rng, rows), make(rng, rows)
            for row in rng.integers(0, rows, 4):
                right[row] = left[row]
            scores = (rng.integers(0, 11, rows) / 2).tolist()
            columns = {task.columns["left"]: left, task.columns["right"]: right, task.columns["score"]: scores}
            yield Table(subset, split, columns)


MAKE: Mapping[str, Callable[[Task, Random], Iterator[Table]]] = {
    "labelled": _labelled,
    "beir": _beir,
    "paired": _paired,
    "question": _question,
    "captions": _captions,
    "rendered-sts": _sts,
}
