"""What the readers of MMEB share: candidates by name, media in archives, and texts without the marks of one model.

Everywhere in MMEB a candidate is known by its name: the first with a name is the candidate, wherever the name stands.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from embark.data.atomic import atomically
from embark.data.fetch import Hub, safe_path
from embark.data.formats import open_table_file
from embark.data.layout import natural
from embark.data.readers import _table
from embark.data.rows import Archive, Needed, Rows, film, open_archive, open_rows
from embark.types import Dataset, EmbarkError, Item, Media, Modality, Qrels, Side, Source, Task, Text

FRAMES = (".jpg", ".jpeg", ".png")
MEDIA = (  # images and frames that the rows of other datasets point to
    Source("VLM2Vec/MMEB-V3", "4a5560b2b64384204b6fea8a82ea986eba51f5aa"),
    Source("TIGER-Lab/MMEB-V2", "e7bbfeb69a70dfe32ff36da3d6d8dbe31fc36af1"),  # the same archives, in image-tasks/ …
)
_MARKS = re.compile(r"<\|(?:image|video|audio)(?:_\d+|_pad)\|>|<(?:image|video|audio)>")


# ── putting a dataset together ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ask:
    """A query, the names of its right candidates, and of all that it is offered; nothing: the whole corpus."""

    item: Item
    right: Sequence[str]
    offered: Sequence[str] = ()


@dataclass(slots=True)
class Corpus:
    """Candidates by name; the first with a name wins. Rows that cannot be used are told, not dropped in silence."""

    items: dict[str, Item] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def add(self, name: str, make: Callable[[], Item]) -> str:
        """The name, with its item made if it is new."""
        if name not in self.items:
            self.items[name] = make()
        return name


def dataset(task: Task, asks: Sequence[Ask], corpus: Corpus) -> Dataset:
    """Queries over the corpus, or each over its own list, whose candidates become graded judgements."""
    if not asks:
        raise EmbarkError(f"Task {task.name} has no queries.")
    where = {name: at for at, name in enumerate(corpus.items)}
    rows: list[tuple[int, int, int]] = []
    for at, ask in enumerate(asks):
        right = set(ask.right)
        offered = ask.offered or where
        if missing := [name for name in ask.right if name not in offered] or ([] if right else ["any"]):
            raise EmbarkError(f"Task {task.name}: query {at} is not offered its right candidate, '{missing[0]}'.")
        listed = offered if ask.offered or task.evaluator == "choice" else ask.right
        rows += [(at, where[name], int(name in right)) for name in dict.fromkeys(listed)]
    query, document, grade = np.array(rows, np.int64).T
    sides = {
        "query": Side([str(at) for at in range(len(asks))], [ask.item for ask in asks]),
        "document": Side([_short(name) for name in corpus.items], list(corpus.items.values())),
    }
    return Dataset(sides, Qrels(query, document, grade), tuple(corpus.skipped))


def _short(name: str) -> str:
    """A name that is a whole caption would make ids of thousands of letters."""
    if len(name) <= 96:
        return name
    return f"{name[:64]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def compose(media: Media | None, text: str) -> Item:
    """Media, then text; no empty text beside media."""
    told = (Text(text),) if text or media is None else ()
    return Item(((media,) if media else ()) + told)


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def told(instruction: str | None, text: str | None, fixed: str) -> str:
    """A row's instruction and text in one; what the task tells anyway is left out, for models render that."""
    own, text = _plain(instruction), _plain(text)
    if _bare(own) == _bare(fixed):
        own = ""
    if fixed and text.casefold().startswith(_bare(fixed)):
        text = text[len(_bare(fixed)) :].lstrip(" .:\n")
    return " ".join(filter(None, (own, text)))


def _plain(text: str | None) -> str:
    """Without the places where one model wants its media."""
    return _MARKS.sub("", text or "").strip()


def _bare(text: str) -> str:
    return text.strip().rstrip(" .:").casefold()


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rows_of(task: Task, split: str, hub: Hub, config: str | None = None) -> Rows:
    """The rows of a split, as many as the task's row states."""
    config = config or task.source.config
    return open_rows(task.source, split, hub, config, expected=expected(task, split, config))


def expected(task: Task, split: str, config: str | None = None) -> int | None:
    """The number of rows that the task's row states for a table."""
    return task.rows.get(f"{config}/{split}", task.rows.get(split) if config == task.source.config else None)


def column(rows: Rows, name: str, default: Any = "") -> list[Any]:
    """A column that a dataset may do without."""
    return rows.values(name) if name in rows.names else [default] * len(rows)


def first(value: Any) -> str:
    """The first of several captions, or the only one."""
    return str(value[0] if isinstance(value, list) else value)


def counted(task: Task, split: str, found: int) -> None:
    """Another number of queries than the task's row states is an error."""
    stated = expected(task, split, task.source.config)
    if stated is not None and stated != found:
        raise EmbarkError(
            f"Task {task.name} has {found:,} queries at revision {task.source.revision}, expected {stated:,}."
        )


def label(task: Task) -> str:
    """The dataset's own name: MMEB/K700 is of K700."""
    return task.name.rpartition("/")[2]


# ── media ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Files:
    """The members of an archive under one folder, wherever the archive puts that folder."""

    def __init__(self, archive: Archive, *roots: str) -> None:
        self.archive, self.root = archive, roots[0]
        names = archive.names()
        start = _start(names, roots)
        self.names = {name[len(start) :]: name for name in names if name.startswith(start)}

    def __contains__(self, path: str) -> bool:
        return path in self.names

    def name(self, path: str) -> str:
        """What the archive calls a file."""
        if path not in self.names:
            raise EmbarkError(f"{self.archive.path} has no file '{path}' in folder '{self.root}'.")
        return self.names[path]

    def file(self, kind: Modality, path: str) -> Media:
        """One file; its bytes are read when needed."""
        return self.archive.media(kind, self.name(path))

    def film(self, folder: str) -> Media:
        """The frames in a folder, in the order of their numbers."""
        frames = [path for path in self.folders.get(folder, ()) if path.lower().endswith(FRAMES)]
        if not frames:
            raise EmbarkError(f"{self.archive.path} has no frames in folder '{self.root}/{folder}'.")
        return film(self.file("image", path) for path in sorted(frames, key=natural))

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """The files of each folder."""
        found: dict[str, list[str]] = {}
        for path in self.names:
            found.setdefault(path.rpartition("/")[0], []).append(path)
        return found

    def find(self, path: str) -> str:
        """The file that a path of another machine means: the name agrees, and that of the folder if it is told."""
        found = self._tails.get("/".join(PurePosixPath(path).parts[-2:]), [])
        if len(found) != 1:
            raise EmbarkError(f"{self.archive.path} has {len(found)} files that end like '{path}'.")
        return found[0]

    @cached_property
    def _tails(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, name in self.names.items():
            for tail in (name.rpartition("/")[2], "/".join(name.split("/")[-2:])):
                found.setdefault(tail, []).append(path)
        return found

    def read(self, path: str) -> bytes:
        """The bytes of a small file."""
        return self.archive.read(self.name(path))

    def lines(self, path: str) -> list[str]:
        """The lines of a small text, without empty ones."""
        return [line.rstrip("\r") for line in self.read(path).decode("utf-8-sig").split("\n") if line.strip()]

    def table(self, *patterns: str) -> Rows:
        """The rows of the tables of the first pattern that any fits; they are unpacked, once."""
        for pattern in patterns:
            found = sorted((path for path in self.names if fnmatchcase(path, pattern)), key=natural)
            if found:
                laid, digests = map(self._laid, found), self.archive.digests
                return Rows(f"{self.archive.path}:{pattern}", [open_table_file(path, digests) for path in laid])
        raise EmbarkError(f"{self.archive.path} has no table '{patterns[0]}' in folder '{self.root}'.")

    def _laid(self, path: str) -> Path:
        """A member as a file: parquet is read by position. It may be larger than memory."""
        target = self.archive.unpacked / safe_path(self.name(path))
        if not target.exists():
            try:
                with atomically(target) as out:
                    self.archive.copy(self.name(path), out)
            except OSError as error:
                raise EmbarkError(f"Cannot lay out '{path}' of {self.archive.path}: {error}.") from error
        return target


def files(source: Source, archive: str, hub: Hub, *roots: str) -> Files:
    """The files under a folder of an archive; other spellings of the folder may follow."""
    return Files(open_archive(source, archive, hub), *roots)


def media(task: Task, hub: Hub, *roots: str) -> Files:
    """The task's images or frames, under a folder of their archive."""
    source, archive = _media(task, hub)
    return files(source, archive, hub, *roots)


def needed(task: Task, hub: Hub) -> Needed:
    """The task's own files, and the archive of its media where that lies in another dataset."""
    own = (task.source, _table.needed(task, hub))
    if "media" not in task.options:
        return [own]
    source, pattern = _media(task, hub)
    parts = [file for file in hub.files(source.id, source.revision) if fnmatchcase(file.path, pattern)]
    return [own, (source, parts)]


def _media(task: Task, hub: Hub) -> tuple[Source, str]:
    """Where the archive of a task's media is, whole or in numbered parts: the first dataset that has it."""
    archive: str = task.options["media"]
    for source in MEDIA:
        there = [file.path for file in hub.files(source.id, source.revision)]
        for spelled in (archive, archive.replace("_tasks/", "-tasks/")):
            if any(path.startswith(spelled) for path in there):
                return source, f"{spelled}*"
    raise EmbarkError(f"There is no '{archive}' in {' or '.join(source.id for source in MEDIA)}.")


def _start(names: Sequence[str], roots: Sequence[str]) -> str:
    """What comes before the files of a folder in the names of all files."""
    for root in roots:
        for name in names:
            if (at := f"/{name}".find(f"/{root}/")) >= 0:
                return name[: at + len(root) + 1]
    raise EmbarkError(f"The archive has no folder '{roots[0]}'; it starts with {', '.join(names[:3]) or 'nothing'}.")
