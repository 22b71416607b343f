"""Messy made-up data for MIEB's tasks, in the hub's layout with every column that mteb's own classes expect.

What makes it messy: repeated ids, judgements of ids that no row has, lists of captions, white space around texts, empty
and missing texts, equal items under several ids, class names with spaces, classes without rows, and pictures that are
turned (EXIF), CMYK, palettes, transparent, grey or of one bit.

Only what both sides read alike is here, unless one of the `TRAPS` is asked for. mteb stops at a missing text of an item
that also has a picture, and at a judged candidate that no row has.
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

Picture = Mapping[str, Any]  # {"bytes", "path"}
Feature = Mapping[str, Any]  # how the `datasets` library reads a column

TRAPS = (
    "16 bits",  # grey pictures of 16 bits
    "anew",  # JPEG pictures where mteb encodes pictures anew
    "equal firsts",  # the first result is dropped, and several documents are equally near
    "graded twice",  # a pair that is judged twice, the second time with a lower grade
    "no right answer",  # a question without one
    "repeated labels",  # an item that has a label twice
)
SPACES = ("", "", "", " ", "  ", "\n", "\t", "\u00a0", "\r\n", "\u3000")
PLAIN = ("RGBA", "P", "P+alpha", "LA", "L", "1")  # PNG, which loses nothing where mteb encodes pictures anew
WORDS = (
    "red",
    "green",
    "blue",
    "dog",
    "cat",
    "bird",
    "car",
    "small",
    "Straße",
    "Ñandú",
    "猫",
    "кот",
    "café",
    "cafe\u0301",
)
MODES = ("RGB", "RGB", "CMYK", "P", "P+alpha", "RGBA", "LA", "L", "1", "turned", "turned", "webp", "gif")


@dataclass(frozen=True)
class Table:
    """A table of a dataset: its config and split, its columns, and the features of those that are not as usual."""

    config: str
    split: str
    columns: Mapping[str, Sequence[Any]]
    features: Mapping[str, Feature | None] = field(default_factory=dict)


class Random(np.random.Generator):
    """A generator of random numbers that knows which trap is set."""

    trap = ""


def files(task: Task, seed: int, trap: str = "") -> dict[str, bytes]:
    """The files of a task's dataset, with a card that names configs and splits; two shards a table."""
    rng = Random(np.random.PCG64([seed, zlib.crc32(task.source.id.encode())]))
    rng.trap = trap
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
    mode = str(rng.choice((*modes, "I;16") if rng.trap == "16 bits" else modes))
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


def pictures(
    rng: Random, count: int, hues: Sequence[int] = (), modes: Sequence[str] = MODES, alike: bool = True
) -> list[Picture]:
    """Pictures of which some are equal if they may be `alike`; `hues` are those of the rows."""
    out = [picture(rng, int(hues[row]) if len(hues) else int(rng.integers(9)), modes) for row in range(count)]
    for row in rng.integers(0, count, count // 8 * (alike and not len(hues))):
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
        numbers = np.where(
            rng.random(rows) < 0.03, seen - 1, rng.integers(split == "test" and seen > 2, seen - 1, rows)
        )
        numbers = rng.integers(0, 2, rows) if seen == 2 else numbers
        if task.evaluator == "multilabel":
            cells: list[Any] = [
                sorted({int(number), *rng.integers(0, seen, rng.integers(0, 3)).tolist()}) for number in numbers
            ]
            cells = [cell * (1 + (rng.trap == "repeated labels" and row % 2)) for row, cell in enumerate(cells)]
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


def _side(task: Task, role: str, rng: Random, count: int) -> dict[str, list[Any]]:
    """So many items of a side; where the row knows of repeated ids, a third of them have several rows."""
    id = task.columns[f"{role}_id"]
    repeated = rng.integers(0, count, count // 3).tolist() if _repeats(task, role) else []
    rows = [*range(count), *repeated]
    out: dict[str, list[Any]] = {id: [_id(task, role, number) for number in rows]}
    alike = not task.params.get("skip_first") or rng.trap == "equal firsts"
    modes = PLAIN if task.evaluator == "pairs" and rng.trap != "anew" else MODES
    for kind in ("image", "text"):
        column = task.columns.get(f"{role}_{kind}")
        if column:
            made = pictures(rng, len(rows), (), modes, alike) if kind == "image" else texts(rng, len(rows))
            out[column] = made
        elif not _is_pages(task):  # the usual tables have both columns
            out[kind] = [None] * len(rows)
    if not _is_pages(task):
        out["modality"] = ["x"] * len(rows)
    if role == "corpus" and f"{role}_text" in task.columns and f"{role}_image" not in task.columns:
        out["title"] = [title if rng.random() < 0.5 else "" for title in texts(rng, len(rows))]
    return out


def _repeats(task: Task, role: str) -> bool:
    """Whether ids repeat: those of ImageCoDe's sets of pictures, and all of Sketchy's."""
    return "repeated" in task.options and (role == "corpus" or "query_image" in task.columns)


def _is_pages(task: Task) -> bool:
    """Whether the tables are those of ViDoRe, whose ids are numbers."""
    return task.columns["query_id"] == "query-id"


def _id(task: Task, role: str, number: int) -> Any:
    return number if _is_pages(task) else f"{number % 3}:{role[0]}{number}"


def _beir(task: Task, rng: Random) -> Iterator[Table]:
    queries, documents = 14, 40
    corpus, asked = _side(task, "corpus", rng, documents), _side(task, "query", rng, queries)
    if task.params.get("skip_first"):  # the queries are in the corpus, too
        asked["image"] = [corpus["image"][row] for row in rng.permutation(documents)[:queries]]
    few = {"choice": (4, 7), "pairs": (10, 11)}.get(task.evaluator, (1, 6))
    grades = {"choice": (0, 1), "pairs": (0,)}.get(task.evaluator, (0, 1, 1, 1, 2, 3))
    judged = [
        [query, int(document), int(rng.choice(grades))]
        for query in range(queries - (task.evaluator != "pairs"))  # the last one has no judgement
        for document in rng.permutation(documents)[: rng.integers(*few)]
    ]
    if task.evaluator == "pairs" or (task.evaluator == "choice" and rng.trap != "no right answer"):
        for start in [row for row, (query, *_) in enumerate(judged) if not row or judged[row - 1][0] != query]:
            judged[start + int(rng.integers(4))][2] = 1
    if rng.trap == "graded twice":
        judged += [[query, document, 0] for query, document, _ in judged[::2]]
    qrels: dict[str, list[Any]] = {
        "query-id": [_id(task, "query", query) for query, *_ in judged],
        "corpus-id": [_id(task, "corpus", document) for _, document, _ in judged],
        "score": [grade for *_, grade in judged],
    }
    if task.options.get("unknown"):  # judgements of documents that are elsewhere
        for query in rng.integers(0, queries - 1, 9).tolist():
            qrels["query-id"].append(_id(task, "query", query))
            qrels["corpus-id"].append(f"elsewhere-{rng.integers(99)}")
            qrels["score"].append(1)
    configs = {"corpus": "corpus", "queries": "queries" if _is_pages(task) else "query", "qrels": "qrels"}
    configs |= task.options.get("configs", {})
    splits = {"corpus": "test" if _is_pages(task) else "corpus", **task.options.get("splits", {})}
    for name, table in (("corpus", corpus), ("queries", asked), ("qrels", qrels)):
        yield Table(configs[name], splits.get(name, task.source.splits[0]), table)


def _paired(task: Task, rng: Random) -> Iterator[Table]:
    column, id = task.columns["text"], task.columns.get("id")
    languages = task.options.get("subset_is") == "split"
    splits = task.subsets if languages else task.options.get("corpus", task.source.splits)
    first = 0
    modes = PLAIN if task.source.id == "mteb/wit" and rng.trap != "anew" else MODES
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
        yield Table("default", split, columns, {"image": BARE} if task.source.id in BARE_PICTURES else {})


BARE_PICTURES = ("mteb/xm3600", "mteb/xflickrco")  # datasets whose features do not say that these are pictures
BARE = {"bytes": {"dtype": "binary", "_type": "Value"}, "path": {"dtype": "string", "_type": "Value"}}
EXTRA = {  # columns that nobody reads, but that mteb's code takes away by name
    "mteb/MMSoc_HatefulMemes": ("split", "label"),
    "mteb/MMSoc_Memotion_corrected": (
        "split", "text_ocr", "humor", "sarcasm", "offensive", "motivational", "sentiment",
    ),
    "mteb/SciMMIR": ("file_name_index", "class", "super_class", "sub_class", "split"),
    "mteb/xm3600": ("captions_tokenized", "captions_tokenized_lowercase", "image_locale"),
    "mteb/CV-Bench": (
        "type", "filename", "source", "source_dataset", "source_filename", "target_class", "target_size", "bbox",
        "prompt",
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
    whole: dict[str, dict[str, list[Any]]] = {}
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
            for name, cells in columns.items() if kind == "text" and len(subsets) > 1 else ():
                whole.setdefault(split, {}).setdefault(name, []).extend(cells)
                whole[split].setdefault("lang", []).extend([subset] * (rows * (name == task.columns["left"])))
    for split, table in whole.items():  # mteb reads all subsets at once
        yield Table("default", split, table)


MAKE: Mapping[str, Callable[[Task, Random], Iterator[Table]]] = {
    "labelled": _labelled,
    "beir": _beir,
    "paired": _paired,
    "question": _question,
    "captions": _captions,
    "rendered-sts": _sts,
}
