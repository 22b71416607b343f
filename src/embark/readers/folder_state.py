"""The state of a task whose data is a folder: what its files hold, and whether they are still the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from embark.hub import Hub
from embark.hub.listing import is_local
from embark.readers._table import OUTSIDE, as_list
from embark.readers.formats import RecordFile
from embark.readers.layout import card_head
from embark.readers.local_state import CONTENT, revision_of_files, revision_of_folder
from embark.readers.registry import reader_of, tables
from embark.readers.rows import open_files
from embark.readers.sibling_files import SiblingFiles
from embark.settings import load_settings
from embark.types import EmbarkError, Task

MEDIA_ROLE = re.compile("(^|_)(image|audio|video)s?$")  # of columns that hold or name media
FILE_ROLE = "file"  # of a column that names media of any kind


def content_revision(task: Task, hub: Hub) -> str:
    """The revision of a task whose data is a folder: the content of all files that the task reads, and of no others.

    Where the tables are not known, it is that of the whole folder.
    """
    reader_of(task)  # an error where nothing may be opened
    try:
        paths = dict.fromkeys(file.path for table in tables(task, hub) for file in table.files)
        files = _named_files(task, list(paths), hub) if paths else None
    except EmbarkError:  # reading it tells what is wrong
        files = None
    if files is None:
        return revision_of_folder(Path(task.source.id), load_settings(hub.home))
    card = Path(task.source.id, "README.md")  # its head may name files and classes
    head = card_head(card.read_text(encoding="utf-8", errors="replace")) if card.is_file() else ""
    return revision_of_files(files, hub.home, card=head)


def _named_files(task: Task, paths: Sequence[str], hub: Hub) -> list[tuple[str, Path]]:
    """The tables of a folder, and the media that they name."""
    root = Path(task.source.id)
    files = {path: root / path for path in paths}
    if task.modalities == ("text",):
        return list(files.items())
    named = {
        name.strip()
        for role, columns in task.columns.items()
        if role == FILE_ROLE or MEDIA_ROLE.search(role)
        for name in columns.split(",")
    }
    outside = bool(task.options.get(OUTSIDE))
    for table in open_files(task.source, paths, hub, outside):
        siblings = getattr(table, "siblings", None)
        if not isinstance(siblings, SiblingFiles) or not siblings.table:
            continue
        for column in table.column_names:
            if column in named or MEDIA_ROLE.search(column):
                cells = table.values(column) if isinstance(table, RecordFile) else table.file_names(column)
                for name in dict.fromkeys(name for cell in cells or () for name in as_list(cell)):
                    if isinstance(name, str) and name and (file := siblings.find(name)):
                        files.setdefault(f"{siblings.table}: {name}", file)
    return list(files.items())


def check_state(task: Task, hub: Hub) -> None:
    """Raise an error where a folder has changed since the task was made of it."""
    revision = task.source.revision
    if not is_local(task.source.id) or not revision.startswith(CONTENT) or task in hub.unchanged:
        return
    if content_revision(task, hub) != revision:
        advice = "make it again (embark run, or folder_task and load_tasks in Python)"
        raise EmbarkError(f"The folder {task.source.id} has changed since task {task.name} was made: {advice}.")
    hub.unchanged.append(task)
