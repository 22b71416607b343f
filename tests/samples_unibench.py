"""Small datasets of the shape that UniBench's have on the hub: two shards, with names and templates beside them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from embark.types import Task
from hub import tar

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


def dataset(task: Task) -> dict[str, bytes]:
    """Files for a row: as many classes, captions and pictures a sample as it has; two templates at most."""
    if task.reader == "webdataset-relation":
        images, captions = task.options["images"], task.options["captions"]
        texts = [[f"caption {at} of sample {row}" for at in range(captions)] for row in range(SAMPLES)]
        return shards(
            [
                {f"{at}.webp": webp(COLORS[(row + at) % 6]) for at in range(images)} | {"npy": npy(texts[row])}
                for row in range(SAMPLES)
            ]
        )
    classes = task.options["classes"]
    labels = [row % classes for row in range(SAMPLES)]
    if task.name in SEVERAL:
        samples = [
            {"0.webp": webp(COLORS[row]), "npy": npy([label, classes - 1]), "split.txt": b"fog\n3"}
            for row, label in enumerate(labels)
        ]
    else:
        samples = [{"0.webp": webp(COLORS[row]), "cls": str(label).encode()} for row, label in enumerate(labels)]
    names = task.labels or tuple(f"class number {at}" for at in range(classes))
    return {**shards(samples), **lists(names, task.templates[:2])}
