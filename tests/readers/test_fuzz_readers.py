"""Every reader on damaged data: what was meant, or an error that names the place; nothing else, and in bounds."""

from __future__ import annotations

import gzip
import io
import json
import random
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import samples_mieb
import samples_mmeb
import samples_mmeb_text
import samples_unibench
from damage import damaged, damaged_bytes, within
from embark import readers
from embark.items import decoding, digest, wav
from embark.items.films import camera_film
from embark.own.tasks_file import load_tasks
from embark.readers import _mmeb, ark
from embark.readers.formats import open_table_file
from embark.readers.layout import card_configs, choose
from embark.readers.rows import Rows, open_archive
from embark.readers.tuples import COLUMNS
from embark.tasks import TASKS
from embark.tasks.mmeb import HUB
from embark.tasks.omni import DIRECTIONS, KINDS
from embark.types import EmbarkError, Source, Task
from folders import two_tasks
from hub import client, parquet, png, tar, zipped
from hub import wav as tone
from readers.test_ark import LABELS
from readers.test_ark import sample as ark_sample

SECONDS = 10.0  # for one example
SHARED_MEMORY = Path("/dev/shm")  # many small files are made and deleted
MEMORY = 2 << 30  # bytes that one example may take
DICE = st.randoms(use_true_random=False)
Check = Callable[[random.Random], None]


CHECKS: dict[str, tuple[Check, int]] = {}  # with twice the number of examples in the quick test


def fuzz(examples: int) -> Callable[[Check], Check]:
    """Enter a check that takes dice."""

    def enter(check: Check) -> Check:
        CHECKS[check.__name__] = (check, examples)
        return check

    return enter


@contextmanager
def bounded(*names: object) -> Iterator[None]:
    """Whatever happens inside ends in time and within memory; the only error is ours, and it has one of the names."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        with within(SECONDS):
            yield
    except EmbarkError as error:
        assert any(str(name) in str(error) for name in names), f"{error} names none of {names}"  # noqa: PT017
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def folder_of(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A new folder with these files; what is known about files by their paths is not known there."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield folder
    finally:
        shutil.rmtree(folder)


# ── formats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def npy(value: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, value)
    return out.getvalue()


TEXT = 'id,text,file,score\n1,one two,a.png,1\n2,"two, and\nmore",a.png,0.5\n3,three,,2\n'
LINES = '{"id": 1, "text": "one", "tags": ["a", "b"]}\n{"id": 2, "text": "two", "tags": []}\n'
PICTURES = [png("red"), png("green"), png("blue")]
SOUNDS = [{"array": [0.5, -0.5], "sampling_rate": 8000}] * 3
TABLES: dict[str, bytes] = {
    "a.csv": TEXT.encode(),
    "a.tsv": TEXT.replace(",", "\t").encode(),
    "a.jsonl": LINES.encode(),
    "a.json": b'[{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]',
    "columns.json": b'{"id": [1, 2], "text": ["one", "two"]}',
    "a.jsonl.gz": gzip.compress(LINES.encode()),
    "a.csv.gz": gzip.compress(TEXT.encode()),
    "a.parquet": parquet(
        {"id": [1, 2, 3], "text": ["a", "b", None], "image": PICTURES, "frames": [PICTURES[:2], [], PICTURES[:1]],
         "sound": SOUNDS, "label": [0, 1, 2], "score": [0.5, 1.0, 2.0]},
        classes={"label": ("x", "y", "z")}, rows=2,
    ),
    "a.tar": tar(
        {"0.png": png("red"), "0.cls": b"1", "0.json": b'{"a": 1}', "0.npy": npy(["x", "y"]),
         "1.png": png("blue"), "1.cls": b"0", "1.txt": b"words", "1.npy": npy([1, 2])}
    ),
}  # fmt: skip


@fuzz(150)
def damaged_tables(dice: random.Random) -> None:
    """Files of rows: CSV, TSV, JSON, packed, Parquet, webdataset tars."""
    name = dice.choice(list(TABLES))
    with folder_of({name: damaged(name, TABLES[name], dice), "a.png": png()}) as folder, bounded(folder / name):
        rows = Rows(name, [open_table_file(folder / name, folder / "digests")])
        rows.records() if len(rows) else None
        for column in rows.column_names:
            for look in (rows.class_names, partial(rows.media, "image"), partial(rows.list_media, "video")):
                with bounded(folder / name):
                    for cell in look(column) or ():
                        for part in cell if isinstance(cell, list) else [cell]:
                            part.read() if isinstance(part, decoding.Media) else None


PACKED = {"a.png": png(), "deep/b.json": b"[1]", "c.txt": b"words" * 200}
ARCHIVES = {
    "a.zip": zipped(PACKED), "stored.zip": zipped(PACKED, 0), "a.tar": tar(PACKED), "a.tar.gz": tar(PACKED, "w:gz"),
    "a.tar.bz2": tar(PACKED, "w:bz2"), "a.tar.xz": tar(PACKED, "w:xz"),
}  # fmt: skip


@fuzz(120)
def damaged_archives(dice: random.Random) -> None:
    """Archives: all members are read, hashed and copied."""
    name = dice.choice(list(ARCHIVES))
    with folder_of({name: damaged(name, ARCHIVES[name], dice)}) as folder, bounded(folder / name, "unpacked"):
        archive = open_archive(Source(str(folder), "1"), name, client(home=folder / "home"))
        for member in archive.names():
            with bounded(archive.path):
                archive.read(member)
                archive.copy(member, io.BytesIO())
                archive.media("image", member).digest  # noqa: B018


# ── media ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def picture(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((16, 16), 50).convert(mode).save(out, kind, **options)
    return out.getvalue()


@cache
def media_samples() -> dict[str, bytes]:
    import av
    import soundfile

    samples = {
        "png": picture("PNG"), "palette png": picture("PNG", "P"), "jpg": picture("JPEG"), "webp": picture("WEBP"),
        "bmp": picture("BMP"), "tiff": picture("TIFF"), "gif": picture("GIF", "P"), "wav": tone(),
    }  # fmt: skip
    frames = [Image.effect_noise((16, 16), 50).convert("P") for _ in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    samples["animation"] = out.getvalue()
    for kind in ("FLAC", "OGG"):
        out = io.BytesIO()
        soundfile.write(out, np.sin(np.arange(800) / 9), 8000, format=kind)
        samples[kind.lower()] = out.getvalue()
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as film:
        stream = film.add_stream("mpeg4", rate=8)
        stream.width = stream.height = 32
        for frame in range(4):
            pixels = np.full((32, 32, 3), frame * 60, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels)):
                film.mux(packet)
        for packet in stream.encode():
            film.mux(packet)
    samples["film"] = out.getvalue()
    return samples


@fuzz(150)
def damaged_media(dice: random.Random) -> None:
    """Encoded images, sounds and films: decoded, or unreadable."""
    name = dice.choice(list(media_samples()))
    content = damaged_bytes(media_samples()[name], dice)
    for kind in ("image", "audio", "video"):
        with bounded("bytes"):
            decoding.decode(readers_item(kind, content), 4, 8000)
    for read in (wav.duration, lambda data: wav.cut(data, 0.01, 0.02), lambda data: wav.from_video(data, 8000)):
        with bounded("wave file", "video"):
            read(content)


def readers_item(kind: Any, content: bytes) -> Any:
    return (decoding.Media(kind, (content,)),)


# ── what users write ─────────────────────────────────────────────────────────────────────────────────────────────────

CSV = "file,caption,label\nred.png,a red page,red\ngreen.png,a green page,green\nblue.png,a blue page,blue\n"


@fuzz(80)
def damaged_folders(dice: random.Random) -> None:
    """A user's folder of images with a CSV."""
    files = {"metadata.csv": damaged("metadata.csv", CSV.encode(), dice)}
    files |= {f"{color}.png": png(color) for color in ("red", "green", "blue")}
    with folder_of(files) as folder, bounded(folder):
        for task in two_tasks(folder):
            readers.read(task, "test", "default", client(home=folder / "home"))


TOML = """[[task]]
name = "Own"
evaluator = "retrieval"
reader = "beir"
modalities = ["text"]
subsets = { default = ["eng-Latn"] }
columns = { query_text = "text" }
source = { id = "data", splits = ["test"], files = { test = ["*.csv"] } }
rows = { test = 3 }
chance = 0.5

[[task]]
name = "Other"
evaluator = "zeroshot"
reader = "labelled"
modalities = ["image", "text"]
labels = ["a", "b"]
templates = ["a photo of {}"]
subsets = { default = ["eng-Latn"] }
source = { id = "org/data", revision = "0123456789012345678901234567890123456789", splits = ["test"] }
params = { shots = 3 }
options = { train = "train" }
variants = { other = { metric = "f1" } }
pools = [{ side = "document", items = 3 }]
"""
VALUES = ["3", "-1", "1e999", "nan", '"x"', "[]", "[[]]", "{}", "true", '["x", 3]', '""', "1979-05-27", "{ a = 1 }"]


def damaged_toml(dice: random.Random) -> str:
    """A tasks file with other values, other names or other bytes."""
    lines = TOML.splitlines()
    number = dice.choice([number for number, line in enumerate(lines) if " = " in line])
    name, _, value = lines[number].partition(" = ")
    kind = dice.choice(["value", "inner", "name", "lose", "repeat", "bytes", "deep"])
    if kind == "bytes":
        return damaged_bytes(TOML.encode(), dice).decode(errors="surrogateescape")
    if kind == "deep":
        value = "[" * 2000 + "]" * 2000
    elif kind == "value":
        value = dice.choice(VALUES)
    elif kind == "inner":
        inner = value.split(" = ")
        value = " = ".join([*inner[:-1], dice.choice(VALUES) + " }" * value.count("}")])
    elif kind == "name":
        name = dice.choice(["license", "items", "protocol", "nothing", "tags", "unreadable", "mixed", "notes"])
    lines[number] = f"{name} = {value}"
    if kind == "lose":
        del lines[number]
    elif kind == "repeat":
        lines.append(lines[number])
    return "\n".join(lines) + "\n"


@fuzz(120)
def damaged_tasks_files(dice: random.Random) -> None:
    """A user's file of tasks; what it accepts can be read, or says why not."""
    text = damaged_toml(dice).encode(errors="surrogateescape")
    with (
        folder_of({"tasks.toml": text, "data/corpus.csv": b"id,text\n1,one\n"}) as folder,
        bounded(folder / "tasks.toml"),
    ):
        here = client(home=folder / "home", offline=True)
        for task in load_tasks(folder / "tasks.toml"):
            for split, subset in task.parts:
                with bounded(task.name, task.source.id):
                    readers.read(task, split, subset, here)


CARD = """---
license: mit
configs:
- config_name: default
  data_files:
  - split: test
    path: data/test-*
  - split: train
    path: ["data/train-*", "more/{a,b}/**"]
- config_name: no
  data_files: x/*.parquet
  default: true
---
# Words
"""


@fuzz(150)
def damaged_cards(dice: random.Random) -> None:
    """The card of a dataset."""
    text = damaged_bytes(CARD.encode(), dice).decode(errors="replace")
    if dice.random() < 0.4:
        value = dice.choice(
            [
                "[",
                "{}",
                "[[]]",
                "*x",
                "&x [*x]",
                "!!python/name:os.system",
                "3",
                "null",
                "- - -",
                "'",
                "**/" * 12 + "x",
                "[z-a]",
            ]
        )
        lines = CARD.splitlines()
        number = dice.randrange(2, 12)
        lines[number] = lines[number].partition(":")[0] + ": " + value
        text = "\n".join(lines) + "\n"
    paths = ["data/test-0.parquet", "data/train-0.parquet", "x/0.parquet", "more/a/b.csv", "1²2.csv", "README.md"]
    with bounded("org/data"):
        card_configs(text, "org/data")
        choose(Source("org/data", "1"), dice.choice(["test", "train"]), dice.choice(["no", None]), paths, lambda: text)


# ── readers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Published:
    """The datasets that a sample publishes, by id; takes the place of a hub."""

    data: dict[str, dict[str, bytes]]

    def add(self, id: str, files: Mapping[str, bytes | str], revision: str = "", card: str = "") -> str:
        held = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
        self.data[id] = held | ({"README.md": card.encode()} if card else {})
        return "1"


@cache
def reader_samples() -> dict[str, tuple[Task, dict[str, dict[str, bytes]]]]:
    """A task of each reader, evaluator and parser, with its datasets."""
    smallest_last = sorted(TASKS.values(), key=lambda task: -len(task.parts))
    tasks = {(task.reader, task.evaluator, task.options.get("parser", "")): task for task in smallest_last}
    tasks["beir", "csv", ""] = Task(
        "Own", "Own", "retrieval", "beir", Source("own/data", "1", splits=("test",)), "ndcg_at_10", "", ("text",),
        subsets={"default": ("eng",)},
    )  # fmt: skip
    tasks["tuples", "choice", ""] = Task(
        "Own", "Own", "choice", "tuples", Source("own/data", "1", files={"test": ("tuples.jsonl",)}), "accuracy", "",
        KINDS, columns={role: role for role in COLUMNS}, subsets=dict.fromkeys(DIRECTIONS, ("eng",)),
    )  # fmt: skip
    tasks["labelled-pairs", "pair-classification", ""] = Task(
        "Own", "Own", "pair-classification", "labelled-pairs", Source("own/data", "1"), "cosine_ap", "", ("text",),
        columns={"left": "sentence1", "right": "sentence2", "label": "labels"}, subsets={"default": ("eng",)},
    )  # fmt: skip
    samples = {}
    for key, task in tasks.items():
        if task.reader.startswith("pocket"):
            continue  # made by code
        hub: Any = Published({})
        if key[1] == "csv":
            hub.add("own/data", {
                "corpus.jsonl": b'{"_id": "a", "title": "t", "text": "one"}\n{"_id": "b", "text": "two"}\n',
                "queries.jsonl": b'{"_id": "1", "text": "one?"}\n{"_id": "2", "text": "two?"}\n',
                "qrels/test.tsv": b"query-id\tcorpus-id\tscore\n1\ta\t2\n2\tb\t1\n",
            })  # fmt: skip
        elif task.reader == "labelled-pairs":
            lists = b'{"sentence1": ["a", "b"], "sentence2": ["a", "c"], "labels": [1, 0]}\n'
            hub.add("own/data", {"test.jsonl": lists})
        elif task.reader == "tuples":
            hub.add("own/data", tuple_sample())
        elif task.reader == "ark":
            task = TASKS["ARK/Physics"]
            hub.add(task.source.id, ark_sample())
        elif task.reader.startswith("webdataset"):
            hub.add(task.source.id, samples_unibench.dataset(task))
        elif task.options.get("parser") in ("vidore", "visrag"):
            samples_mmeb_text.publish_pages(hub, task)
        elif task.reader in ("mmeb-text", "mmeb-tools", "mmeb-memory", "mmeb-gui"):
            samples_mmeb_text.publish_v3(hub)
        elif task.reader.startswith("mmeb") or task.reader == "omniset":
            samples_mmeb.publish(hub, task)
        else:
            files, card = samples_mieb.sample(task)
            hub.add(task.source.id, files, card=card)
        samples["-".join(filter(None, key))] = (replace(task, rows={}), hub.data)
    return samples


def tuple_sample() -> dict[str, bytes]:
    """Two tuples, each the hard negative of the other."""
    files = {}
    lines = []
    for id, other in (("a", "b"), ("b", "a")):
        picture = io.BytesIO()
        Image.new("RGB", (8, 8), "red" if id == "a" else "blue").save(picture, "PNG")
        names = {"image": f"{id}.png", "video": f"{id}.mp4", "audio": f"{id}.wav"}
        sound = wav.from_samples(np.sin(np.arange(800) / 9), 16_000)
        contents = (picture.getvalue(), camera_film(picture.getvalue(), "in"), sound)
        files |= dict(zip(names.values(), contents, strict=True))
        lines.append(json.dumps({"id": id, "text": f"a page {id}", **names, "negatives": [other]}))
    return {**files, "tuples.jsonl": "\n".join(lines).encode()}


def read_all(
    task: Task, data: Mapping[str, dict[str, bytes]], files: Mapping[str, bytes], guard: Any = bounded
) -> None:
    """Read a task whose datasets are in folders, and decode its items."""
    with folder_of(files) as folder:
        local = {id: str(folder / str(number)) for number, id in enumerate(data)}
        task = replace(task, source=replace(task.source, id=local[task.source.id], revision="1"))
        with pytest.MonkeyPatch.context() as patch, guard(folder, task.name):
            sources = [replace(source, id=local.get(source.id, str(folder))) for source in _mmeb.MEDIA]
            patch.setattr(_mmeb, "MEDIA", tuple(sources))
            patch.setenv(ark.LABELS, str(folder / "labels.csv"))
            here = client(home=folder / "home")
            readers.needed_files(task, here)
            for split, subset in task.parts[:2]:
                sides = readers.read(task, split, subset, here).sides
                for item in (item for side in sides.values() for item in side.items):
                    with guard(folder, "bytes"):
                        digest(item.parts, "")
                        decoding.decode(item.parts, 2, 16_000)


def in_folders(data: Mapping[str, dict[str, bytes]]) -> dict[str, bytes]:
    return {
        f"{number}/{path}": content for number, files in enumerate(data.values()) for path, content in files.items()
    } | {"labels.csv": LABELS.encode()}


def test_every_sample_can_be_read() -> None:
    assert HUB in samples_mmeb.V3.id
    known = {name for name in readers.READERS if not name.startswith("pocket") and name not in ("folder", "conditions")}
    missing = known - {task.reader for task, _ in reader_samples().values()}
    assert not missing, "add a task of these readers and its data to reader_samples()"
    for task, data in reader_samples().values():
        read_all(task, data, in_folders(data), lambda *names: nullcontext())


@fuzz(60)
def damaged_readers(dice: random.Random) -> None:
    """The readers of all families, on samples of their shape."""
    task, data = reader_samples()[dice.choice(list(reader_samples()))]
    files = in_folders(data)
    for name in dice.sample(list(files), min(len(files), dice.choice([1, 1, 2]))):
        files[name] = damaged(name, files[name], dice)
        if dice.random() < 0.05:
            del files[name]
    read_all(task, data, files)


# ── the tests ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", CHECKS)
def test_damage_is_harmless_or_an_error_that_names_the_place(name: str) -> None:
    check, examples = CHECKS[name]
    settings(max_examples=-(-examples // 2), derandomize=True, database=None)(given(DICE)(check))()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_more_damage_is_harmless_or_an_error_that_names_the_place(name: str) -> None:
    check, examples = CHECKS[name]
    settings(max_examples=12 * examples, derandomize=True, database=None)(given(DICE)(check))()
