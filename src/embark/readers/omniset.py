"""OmniSET: one meaning as text, image, video and audio. A query in one modality is to find another, among all four."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from embark import items
from embark.hub import Hub
from embark.readers import _mmeb
from embark.readers._files import TABLES
from embark.readers._mmeb import ArchiveFolder, Corpus, Query
from embark.types import EmbarkError, Item, Modality, Task

ENDINGS: dict[Modality, str] = {"text": "txt", "image": "jpg", "video": "mp4", "audio": "wav"}
FOLDERS = {"image": "val2014", "video": "videos", "audio": "audios"}


def queries(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A tuple's item in one modality to its item in another.

    The candidates are all items of the tuple, the query itself among them, and of its hard negatives; every caption is
    that of its own image. (Public code gave all of a query's texts the query's caption.)
    """
    folder = _mmeb.open_folder(task, hub, "omniset")
    rows = folder.table("omniset.jsonl").records()
    captions = _captions(folder, rows)
    for row in rows:
        own = int(row["image_id"])
        tuples = dict.fromkeys([own, *map(int, row["hard_negatives"])])
        candidates = [
            corpus.add(_name(image, kind), partial(_item, folder, captions, image, kind))
            for image in tuples
            for kind in ENDINGS
        ]
        yield Query(corpus.items[_name(own, task.options["query"])], [_name(own, task.options["target"])], candidates)


def _captions(folder: ArchiveFolder, rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """The caption of each image; that of a query is the one that its sound was made from."""
    catalog = folder.table("catalog.jsonl").records()
    captions = {int(row["image_id"]): str(row["captions"][0]) for row in catalog if row["captions"]}
    return captions | {int(row["image_id"]): str(row["qry_text"]) for row in rows if row.get("qry_text")}


def _item(folder: ArchiveFolder, captions: Mapping[int, str], image: int, kind: Modality) -> Item:
    name = _name(image, kind)
    if kind == "text":
        if image not in captions:
            raise EmbarkError(f"OmniSET has no caption for image {image}.")
        return items.text(captions[image])
    frames = f"frames_omni/{name.removesuffix('.mp4')}"
    in_frames = kind == "video" and frames in folder.folders
    return Item((folder.video(frames) if in_frames else folder.media(kind, f"{FOLDERS[kind]}/{name}"),))


def _name(image: int, kind: Modality) -> str:
    return f"COCO_val2014_{image:012d}.{ENDINGS[kind]}"


OMNISET = _mmeb.reader("omniset", queries, TABLES)
