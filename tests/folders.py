"""Tasks of folders that tests make: fewer than a folder has, for tests that count them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embark.own.folder import folder_task
from embark.types import Task


def two_tasks(folder: str | Path, **options: Any) -> list[Task]:
    """The retrieval of a folder's media by their captions, and the recognition of their labels."""
    return folder_task(folder, kinds=("retrieval", "zeroshot"), **options)
