"""What the readers of MMEB share: candidates by name, media in archives, and texts without placeholders of media.

Everywhere in MMEB a candidate is identified by its name: of several with one name, the first is the candidate.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from inspect import getdoc
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from embark.atomic import atomically
from embark.catalogue import group_values
from embark.hub import Hub
from embark.items.lazy_media import video_from_frames
from embark.paths import inside, relative_path
from embark.readers import _table
from embark.readers._files import NO_TABLES, TABLES
from embark.readers.formats import open_table_file
from embark.readers.layout import natural
from embark.readers.rows import Archive, FilesBySource, Rows, open_archive, open_rows
from embark.seams import Files, Reader
from embark.types import Dataset, EmbarkError, Item, Media, Modality, Qrels, Side, Source, Task, Text

FRAMES = (".jpg", ".jpeg", ".png")
MEDIA = (  # images and frames that the rows of other datasets point to
    Source("VLM2Vec/MMEB-V3", "4a5560b2b64384204b6fea8a82ea986eba51f5aa"),
    Source("TIGER-Lab/MMEB-V2", "e7bbfeb69a70dfe32ff36da3d6d8dbe31fc36af1"),  # the same archives, in image-tasks/ …
)
_MEDIA_MARKS = re.compile(r"<\|(?:image|video|audio)(?:_\d+|_pad)\|>|<(?:image|video|audio)>")


# ── building a dataset ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Query:
    """A query, the names of its relevant candidates, and of all its candidates (none: the whole corpus).

    `absent` is the number of its relevant candidates that are not in the corpus: no model can find them.
    """

    item: Item
    relevant: Sequence[str]
    candidates: Sequence[str] = ()
    absent: int = 0


@dataclass(slots=True)
class Corpus:
    """Candidates by name, and warnings about rows that cannot be used."""

    items: dict[str, Item] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, name: str, make: Callable[[], Item]) -> str:
        """Add the item that `make` returns if the name is new; returns the name."""
        if name not in self.items:
            self.items[name] = make()
        return name


def reader(
    name: str, queries: Callable[[Task, str, Hub, Corpus], Iterable[Query]], files: Files, version: int = 1
) -> Reader:
    """The reader of a function that yields the queries of a split and adds their candidates to a corpus."""

    def read(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
        corpus = Corpus()
        return dataset(task, list(queries(task, split, hub, corpus)), corpus, split)

    return Reader(name, getdoc(queries) or "", read, ("retrieval", "choice"), files, version)


def dataset(task: Task, queries: Sequence[Query], corpus: Corpus, split: str | None = None) -> Dataset:
    """Queries over the corpus, or each over its own candidates, whose judgements are then graded 1 or 0.

    With a split, the number of queries must be the one that the task states for it.
    """
    expected = _expected_rows(task, split, task.source.config) if split else None
    if expected is not None and expected != len(queries):
        raise EmbarkError(
            f"Task {task.name} has {len(queries):,} queries at revision {task.source.revision}, expected {expected:,}."
        )
    if not queries:
        raise EmbarkError(f"Task {task.name} has no queries.")
    positions = {name: position for position, name in enumerate(corpus.items)}
    rows: list[tuple[int, int, int]] = []
    for number, query in enumerate(queries):
        relevant = set(query.relevant)
        candidates = query.candidates or positions
        if not relevant and not query.absent:
            raise EmbarkError(f"Task {task.name}: query {number} has no relevant candidate.")
        if missing := [name for name in query.relevant if name not in candidates]:
            raise EmbarkError(f"Task {task.name}: '{missing[0]}' is relevant to query {number} but no candidate of it.")
        judged = candidates if query.candidates or task.evaluator == "choice" else query.relevant
        rows += [(number, positions[name], int(name in relevant)) for name in dict.fromkeys(judged)]
    sides = {
        "query": Side([str(number) for number in range(len(queries))], [query.item for query in queries]),
        "document": Side([_short_id(name) for name in corpus.items], list(corpus.items.values())),
    }
    absent = np.array([query.absent for query in queries])
    outside = np.arange(absent.max()) < absent[:, None] if absent.any() else None
    query_rows, document_rows, grades = np.array(rows, np.int64).T
    truth = Qrels(query_rows, document_rows, grades, outside=None if outside is None else outside.astype(np.int64))
    return Dataset(sides, truth, tuple(corpus.skipped))


def _short_id(name: str) -> str:
    """The name, or, where it is a whole caption, its beginning and its hash."""
    if len(name) <= 96:
        return name
    return f"{name[:64]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def compose(media: Media | None, text: str) -> Item:
    """Media, then text; no empty text beside media."""
    if media is None:
        return Item((Text(text),))
    return Item((media, Text(text)) if text else (media,))


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def join_instruction(instruction: str | None, text: str | None, task_instruction: str) -> str:
    """A row's own instruction and text; the task's instruction is left out of both, as models add it themselves."""
    own = _without_marks(instruction)
    text = _without_marks(text)
    common = _core(task_instruction)
    if _core(own) == common:
        own = ""
    if task_instruction and text.casefold().startswith(common):
        text = text[len(common) :].lstrip(" .:\n")
    return " ".join(filter(None, (own, text)))


def _without_marks(text: str | None) -> str:
    """The text without placeholders of media such as <|image_1|>, which are the format of one model."""
    return _MEDIA_MARKS.sub("", text or "").strip()


def _core(text: str) -> str:
    return text.strip().rstrip(" .:").casefold()


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def task_rows(task: Task, split: str, hub: Hub, config: str | None = None) -> Rows:
    """The rows of a split of a config (default: the task's); their number must be the one that the task states."""
    config = config or task.source.config
    return open_rows(task.source, split, hub, config, expected=_expected_rows(task, split, config))


def _expected_rows(task: Task, split: str, config: str | None) -> int | None:
    """The number of rows that the task states for a table."""
    return task.rows.get(f"{config}/{split}", task.rows.get(split) if config == task.source.config else None)


def optional_column(rows: Rows, name: str, default: Any = "") -> list[Any]:
    """The values of a column, or the default for each row where there is no such column."""
    return rows.values(name) if name in rows.column_names else [default] * len(rows)


def json_list(value: Any) -> list[Any]:
    """The values of a list, of one value, or of either of them as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = json.loads(value)
    return _table.as_list(value)


def dataset_name(task: Task) -> str:
    """The dataset's own name: K700 for the task MMEB/K700."""
    return task.name.rpartition("/")[2]


# ── media ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ArchiveFolder:
    """The files of an archive under one folder, wherever in the archive that folder is."""

    def __init__(self, archive: Archive, *roots: str) -> None:
        self.archive = archive
        self.root = roots[0]
        names = archive.names()
        prefix = _prefix(names, roots)
        self.names = {name[len(prefix) :]: name for name in names if name.startswith(prefix)}  # in the archive, by path

    def __contains__(self, path: str) -> bool:
        return path in self.names

    def name(self, path: str) -> str:
        """The name in the archive of a file of the folder."""
        if path not in self.names:
            raise EmbarkError(f"{self.archive.path} has no file '{path}' in folder '{self.root}'.")
        return self.names[path]

    def media(self, kind: Modality, path: str) -> Media:
        """A file as media; its bytes are read when needed."""
        return self.archive.media(kind, self.name(path))

    def video(self, folder: str) -> Media:
        """The frames in a folder as a video, in the order of their numbers."""
        frames = [path for path in self.folders.get(folder, ()) if path.lower().endswith(FRAMES)]
        if not frames:
            raise EmbarkError(f"{self.archive.path} has no frames in folder '{self.root}/{folder}'.")
        return video_from_frames(self.media("image", path) for path in sorted(frames, key=natural))

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """The files of each folder."""
        return group_values((path.rpartition("/")[0], path) for path in self.names)

    def find(self, path: str) -> str:
        """The file whose name, and folder if the path has one, are those at the end of a path of another machine."""
        matches = self._by_ending.get("/".join(PurePosixPath(path).parts[-2:]), [])
        if len(matches) != 1:
            raise EmbarkError(f"{self.archive.path} has {len(matches)} files that end like '{path}'.")
        return matches[0]

    @cached_property
    def _by_ending(self) -> dict[str, list[str]]:
        return group_values(
            (ending, path)
            for path, name in self.names.items()
            for ending in (name.rpartition("/")[2], "/".join(name.split("/")[-2:]))
        )

    def lines(self, path: str) -> list[str]:
        """The lines of a small text file, without empty ones."""
        text = self.archive.read(self.name(path)).decode("utf-8-sig")
        return [line.rstrip("\r") for line in text.split("\n") if line.strip()]

    def table(self, *patterns: str) -> Rows:
        """The rows of the tables that match the first pattern with any; they are extracted, once."""
        for pattern in patterns:
            if paths := sorted((path for path in self.names if fnmatchcase(path, pattern)), key=natural):
                tables = [open_table_file(self._extract(path), self.archive.digests) for path in paths]
                return Rows(f"{self.archive.path}:{pattern}", tables)
        raise EmbarkError(f"{self.archive.path} has no table '{patterns[0]}' in folder '{self.root}'.")

    def _extract(self, path: str) -> Path:
        """A copy of a file of the archive on disk: parquet is read by position, and may be larger than memory."""
        target = inside(self.archive.unpacked, relative_path(self.name(path), str(self.archive.path)))
        if not target.exists():
            try:
                with atomically(target) as out:
                    self.archive.copy(self.name(path), out)
                self.archive.made(target)
            except OSError as error:
                raise EmbarkError(f"Cannot extract '{path}' of {self.archive.path}: {error}.") from error
        return target


def open_folder(task: Task, hub: Hub, *roots: str) -> ArchiveFolder:
    """A folder of the archive that the task's option `archive` names; other spellings of the folder may follow."""
    return ArchiveFolder(open_archive(task.source, task.options["archive"], hub), *roots)


def open_media(task: Task, hub: Hub, *roots: str) -> ArchiveFolder:
    """The task's images or frames, under a folder of their archive."""
    source, pattern = _media_archive(task, hub)
    return ArchiveFolder(open_archive(source, pattern, hub), *roots)


def needed_files(task: Task, hub: Hub) -> FilesBySource:
    """The task's own files, and the archive of its media where that is in another dataset."""
    own = TABLES.needed(task, hub)
    if "media" not in task.options:
        return own
    source, pattern = _media_archive(task, hub)
    parts = [file for file in hub.files(source.id, source.revision) if fnmatchcase(file.path, pattern)]
    return [*own, (source, parts)]


def other_sources(task: Task) -> tuple[str, ...]:
    """The datasets that may have the task's media."""
    return tuple(source.id for source in MEDIA) if "media" in task.options else ()


WITH_MEDIA = replace(NO_TABLES, needed=needed_files, other_sources=other_sources)  # the files of rows, and their media


def _media_archive(task: Task, hub: Hub) -> tuple[Source, str]:
    """The first dataset that has the archive of a task's media, and the pattern of its file or numbered parts."""
    archive: str = task.options["media"]
    for source in MEDIA:
        for path in (archive, archive.replace("_tasks/", "-tasks/")):
            if any(file.path.startswith(path) for file in hub.files(source.id, source.revision)):
                return source, f"{path}*"
    raise EmbarkError(f"There is no '{archive}' in {' or '.join(source.id for source in MEDIA)}.")


def _prefix(names: Sequence[str], roots: Sequence[str]) -> str:
    """The beginning of the names of all files in the first of these folders that the archive has."""
    for root in roots:
        for name in names:
            if (start := f"/{name}".find(f"/{root}/")) >= 0:
                return name[: start + len(root) + 1]
    raise EmbarkError(f"The archive has no folder '{roots[0]}'; it starts with {', '.join(names[:3]) or 'nothing'}.")
