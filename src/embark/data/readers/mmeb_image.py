"""MMEB's image group: rows of texts and image paths with their own candidates, and one archive of all images."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from embark.data.fetch import Hub
from embark.data.readers import _mmeb
from embark.data.readers._mmeb import Ask, Corpus, Files
from embark.data.readers._table import listed
from embark.types import Dataset, EmbarkError, Item, Media, Task

VERSION = 1
TEXTS = ("image_cls", "image_qa", "image_i2t")  # candidates are texts, and named by them
FIELDS = ("title", "description", "features", "price", "Date First Available")

needed = _mmeb.needed


def images(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """Every row names its candidates; the first is the right one.

    An image is named by its path; where objects of one image compete, also by its caption.
    """
    rows, pictures = _mmeb.rows_of(task, split, hub), _Pictures(task, hub)
    parser, telling = task.options["parser"], task.instructions.get
    names = ("qry_inst", "qry_text", "qry_img_path", "tgt_inst", "tgt_text", "tgt_img_path")
    corpus, asks = Corpus(), []
    for own, text, image, inst, captions, paths in zip(*(_mmeb.column(rows, name) for name in names), strict=True):
        offered = []
        for caption, path in zip(captions, paths or [""] * len(captions), strict=True):
            if parser in TEXTS:
                offered.append(corpus.add(caption, partial(_mmeb.compose, None, caption)))
                continue
            name = path if parser == "image_t2i" else f"{path}:{caption.strip(chr(34))}"
            offered.append(corpus.add(name, partial(pictures.beside, path, inst, caption, telling("document", ""))))
        asks.append(Ask(pictures.beside(image, own, text, telling("query", "")), offered[:1], offered))
    return _mmeb.dataset(task, asks, corpus)


class _Pictures:
    """The images of all the image tasks; the archive is opened when the first is asked for."""

    def __init__(self, task: Task, hub: Hub) -> None:
        self.task, self.hub = task, hub
        self.folders: dict[str, Files] = {}

    def beside(self, path: str, instruction: str, text: str, fixed: str) -> Item:
        """An image with what is told about it; either may be missing."""
        return _mmeb.compose(self._image(path) if path else None, _mmeb.told(instruction, text, fixed))

    def _image(self, path: str) -> Media:
        root, _, rest = path.partition("/")
        if root not in self.folders:
            self.folders[root] = _mmeb.media(self.task, self.hub, root)
        return self.folders[root].file("image", rest)


# ── products ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def products(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """MCMR: a wish to all products that meet it; a product is its first image and its description."""
    files = _mmeb.files(task.source, task.options["archive"], hub, "MCMR")
    corpus = Corpus()
    for row in files.table("candidates.jsonl").records():
        corpus.add(str(row["candidate_id"]), partial(_product, files, row))
    asks, lost = [], []
    for row in files.table("query.jsonl").records():
        right = [name for name in map(str, _several(row["pos_ids"])) if name in corpus.items]
        if right:
            asks.append(Ask(_mmeb.compose(None, _flat(row["query"])), right))
        else:
            lost.append(str(row["qid"]))
    if lost:
        corpus.skipped.append(f"left out {len(lost)} queries without a product among the candidates: {listed(lost)}")
    return _mmeb.dataset(task, asks, corpus)


def _product(files: Files, row: Mapping[str, Any]) -> Item:
    lines = [f"{name}: {value}" for name in FIELDS if (value := _flat(row.get(name)))]
    for shown in _several(row.get("images") or []):
        url = shown if isinstance(shown, str) else shown.get("url") or shown.get("path") or shown.get("image") or ""
        path = f"images/{PurePosixPath(url.split('?')[0]).name}"
        if path in files:
            return _mmeb.compose(files.file("image", path), "\n".join(lines))
    raise EmbarkError(f"Product {row['candidate_id']} has no image in the archive.")


def _several(value: Any) -> list[Any]:
    """A list, also one written as JSON in a string."""
    if isinstance(value, str) and value.startswith("["):
        value = json.loads(value)
    return value if isinstance(value, list) else [value]


def _flat(value: Any) -> str:
    """A field of a product as text."""
    if isinstance(value, list):
        return " ".join(filter(None, map(_flat, value)))
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else str(value).strip()
