"""Small datasets of the shape that UniBench's have on the hub: two shards, with names and templates beside them."""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from embark.types import Task
from hub import tar
from sizes import Size, few, pooled

SAMPLES = 6  # three a shard
COLORS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (0, 255, 255), (255, 0, 255))
SEVERAL = ("UniBench/imagenet9", "UniBench/imagenetc")  # their labels may come as lists


def webp(colour: tuple[int, int, int]) -> bytes:
    """A lossless plain picture."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(out, format="webp", lossless=True)
    return out.getvalue()


def npy(value: Any) -> bytes:
    """An array as the shards hold it."""
    out = io.BytesIO()
    np.save(out, np.array(value))
    return out.getvalue()


def shards(samples: Sequence[Mapping[str, bytes]], each: int = 3) -> dict[str, bytes]:
    """Samples as tars, with the count of them."""
    out, parts = {}, [range(at, min(at + each, len(samples))) for at in range(0, len(samples), each)]
    for number, part in enumerate(parts):
        members = {f"s{at:07d}.{ending}": data for at in part for ending, data in samples[at].items()}
        out[f"test/{number}.tar"] = tar(members)
    return {**out, "test/nshards.txt": f"{len(parts)}\n".encode()}


def lists(names: Sequence[str], templates: Sequence[str]) -> dict[str, bytes]:
    """Class names and templates as the hub spells them."""
    spelt = [name.replace(" ", "_").upper() for name in names]
    return {
        "classnames.txt": "".join(f"{name}\n" for name in spelt).encode(),
        "zeroshot_classification_templates.txt": "".join(t.replace("{}", "{c}") + "\n" for t in templates).encode(),
    }


def dataset(task: Task, size: Size = few) -> dict[str, bytes]:
    """Files for a row: as many classes, captions and pictures a sample as it has; two templates at most."""
    images = task.options.get("images", 1)
    stated = pooled(task, "item") or pooled(task, "image")
    count = size(task.rows.get("test", stated and stated // images), SAMPLES)
    each = max(SAMPLES // 2, -(-count // 3))  # samples a shard
    if task.reader == "webdataset-relation":
        captions = task.options["captions"]
        texts = [[f"caption {at} of sample {row} of {task.name}" for at in range(captions)] for row in range(count)]
        return shards(
            [
                {f"{at}.webp": webp(_color(task, row + at)) for at in range(images)} | {"npy": npy(texts[row])}
                for row in range(count)
            ],
            each,
        )
    classes = task.options["classes"]
    labels = [row % classes for row in range(count)]
    if task.name in SEVERAL:
        samples = [
            {"0.webp": webp(_color(task, row)), "npy": npy([label, classes - 1]), "split.txt": b"fog\n3"}
            for row, label in enumerate(labels)
        ]
    else:
        samples = [{"0.webp": webp(_color(task, row)), "cls": str(label).encode()} for row, label in enumerate(labels)]
    names = task.labels or tuple(f"class number {at}" for at in range(classes))
    return {**shards(samples, each), **lists(names, task.templates[:2])}


def _color(task: Task, row: int) -> tuple[int, int, int]:
    """The colour of a picture; those of one set of pictures are the same in all its tasks."""
    if row < len(COLORS):
        return COLORS[row]
    images = next((pool.id for pool in task.pools if pool.side in ("item", "image")), task.source.id)
    number = zlib.crc32(f"{images}/{row}".encode())
    return number & 255, number >> 8 & 255, number >> 16 & 255
