"""OmniSET: one meaning as text, image, video and audio. A query in one modality asks for another, among all four."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embark.data import items
from embark.data.fetch import Hub
from embark.data.readers import _mmeb
from embark.data.readers._mmeb import Ask, Corpus, Files
from embark.types import Dataset, EmbarkError, Item, Task

VERSION = 1
ENDINGS = {"text": "txt", "image": "jpg", "video": "mp4", "audio": "wav"}


def read(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A tuple's item in one modality to its item in another.

    Offered are all items of the tuple, the query itself among them, and of its hard negatives; every caption is that
    of its own image. (Public code gave all of a query's texts the query's caption.)
    """
    asked, wanted = task.options["query"], task.options["target"]
    files = _mmeb.files(task.source, task.options["archive"], hub, "omniset")
    queries = files.table("omniset.jsonl").records()
    captions = _captions(files, queries)
    corpus, asks = Corpus(), []
    for row in queries:
        own = int(row["image_id"])
        tuples = dict.fromkeys([own, *map(int, row["hard_negatives"])])
        offered = [_offer(files, captions, corpus, image, kind) for image in tuples for kind in ENDINGS]
        asks.append(Ask(corpus.items[_name(own, asked)], [_name(own, wanted)], offered))
    _mmeb.counted(task, split, len(asks))
    return _mmeb.dataset(task, asks, corpus)


def _captions(files: Files, queries: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The caption of each image; that of a query is the one that its sound was made from."""
    catalogue = files.table("catalog.jsonl").records()
    known = {int(row["image_id"]): str(row["captions"][0]) for row in catalogue if row["captions"]}
    return known | {int(row["image_id"]): str(row["qry_text"]) for row in queries if row.get("qry_text")}


def _offer(files: Files, captions: Mapping[int, str], corpus: Corpus, image: int, kind: str) -> str:
    return corpus.add(_name(image, kind), lambda: _item(files, captions, image, kind))


def _item(files: Files, captions: Mapping[int, str], image: int, kind: str) -> Item:
    name = _name(image, kind)
    if kind == "text":
        if image not in captions:
            raise EmbarkError(f"OmniSET has no caption for image {image}.")
        return items.text(captions[image])
    if kind == "image":
        return _mmeb.compose(files.file("image", f"val2014/{name}"), "")
    if kind == "audio":
        return _mmeb.compose(files.file("audio", f"audios/{name}"), "")
    frames = f"frames_omni/{name.removesuffix('.mp4')}"
    return _mmeb.compose(files.film(frames) if frames in files.folders else files.file("video", f"videos/{name}"), "")


def _name(image: int, kind: str) -> str:
    return f"COCO_val2014_{image:012d}.{ENDINGS[kind]}"
