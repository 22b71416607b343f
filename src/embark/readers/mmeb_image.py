"""MMEB's image group: rows of texts and image paths with their own candidates, and one archive of all images."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any

from embark import items
from embark.hub import Hub
from embark.readers import _mmeb
from embark.readers._mmeb import ArchiveFolder, Corpus, Query, json_list
from embark.readers._table import first_few
from embark.types import EmbarkError, Item, Task

TEXTS = ("image_cls", "image_qa", "image_i2t")  # parsers whose candidates are texts, and named by them
COLUMNS = ("qry_inst", "qry_text", "qry_img_path", "tgt_inst", "tgt_text", "tgt_img_path")
FIELDS = ("title", "description", "features", "price", "Date First Available")

OpenRoot = Callable[[str], ArchiveFolder]  # the folder of the archive that has that name


def images(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """Every row names its candidates; the first is the relevant one.

    An image is named by its path; where objects of one image compete, also by its caption.
    """
    rows = _mmeb.task_rows(task, split, hub)
    open_root = cache(partial(_mmeb.open_media, task, hub))  # one archive has the images of all the image tasks
    parser = task.options["parser"]
    columns = (_mmeb.optional_column(rows, name) for name in COLUMNS)
    for instruction, text, image, target_instruction, captions, paths in zip(*columns, strict=True):
        candidates = []
        for caption, path in zip(captions, paths or [""] * len(captions), strict=True):
            if parser in TEXTS:
                candidates.append(corpus.add(caption, partial(items.text, caption)))
                continue
            name = path if parser == "image_t2i" else f"{path}:{caption.strip(chr(34))}"
            make = partial(_item, task, "document", open_root, path, target_instruction, caption)
            candidates.append(corpus.add(name, make))
        yield Query(_item(task, "query", open_root, image, instruction, text), candidates[:1], candidates)


def _item(task: Task, role: str, open_root: OpenRoot, path: str, instruction: str, text: str) -> Item:
    """An image with its instruction and text; each may be empty."""
    text = _mmeb.join_instruction(instruction, text, task.instructions.get(role, ""))
    root, _, rest = path.partition("/")
    return _mmeb.compose(open_root(root).media("image", rest) if path else None, text)


# ── products ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def products(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """MCMR: a wish to all products that meet it; a product is its first image and its description.

    With the option unknown="miss", products that are not among the candidates are positives that no model can find:
    a wish with no other is a miss. Else such products are ignored, and such wishes left out.
    """
    folder = _mmeb.open_folder(task, hub, "MCMR")
    missed = task.options.get("unknown") == "miss"
    for row in folder.table("candidates.jsonl").records():
        corpus.add(str(row["candidate_id"]), partial(_product, folder, row))
    unanswered = []
    for row in folder.table("query.jsonl").records():
        positives = dict.fromkeys(name for value in json_list(row["pos_ids"]) if (name := str(value).strip()))
        relevant = [name for name in positives if name in corpus.items]
        if not relevant:
            unanswered.append(str(row["qid"]))
        if relevant or missed:
            absent = max(len(positives) - len(relevant), int(not relevant)) if missed else 0
            yield Query(items.text(_field_text(row["query"])), relevant, absent=absent)
    if unanswered:
        what = "misses" if missed else "left out"
        names = first_few(unanswered)
        corpus.skipped.append(f"{len(unanswered)} queries have no product among the candidates and are {what}: {names}")


def _product(folder: ArchiveFolder, row: Mapping[str, Any]) -> Item:
    lines = [f"{name}: {value}" for name in FIELDS if (value := _field_text(row.get(name)))]
    for image in json_list(row.get("images")):
        url = image if isinstance(image, str) else image.get("url") or image.get("path") or image.get("image") or ""
        path = f"images/{PurePosixPath(url.split('?')[0]).name}"
        if path in folder:
            return _mmeb.compose(folder.media("image", path), "\n".join(lines))
    raise EmbarkError(f"Product {row['candidate_id']} has no image in the archive.")


def _field_text(value: Any) -> str:
    """A field of a product as text."""
    if isinstance(value, list):
        return " ".join(filter(None, map(_field_text, value)))
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else str(value).strip()


IMAGE = _mmeb.reader("mmeb-image", images, _mmeb.WITH_MEDIA)
MCMR = _mmeb.reader("mmeb-mcmr", products, _mmeb.WITH_MEDIA)
