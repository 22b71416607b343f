"""Errors about data that a reader does not understand, or that its hub does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from embark.hub import Hub
from embark.readers._table import first_few
from embark.readers.layout import NoFiles
from embark.types import EmbarkError, Task


class UnexpectedData(EmbarkError):
    """Data that a reader does not understand; the error that it met is the cause."""


@contextmanager
def checked_listing(task: Task, hub: Hub) -> Iterator[None]:
    """A list of files that lacks what a task needs may be wrong: it is not kept."""
    try:
        yield
    except NoFiles:
        hub.forget(task.source.id, task.source.revision)
        raise


@contextmanager
def expected_data(task: Task, hub: Hub) -> Iterator[None]:
    """Whatever a reader raises about data that it does not expect is an error that names the task or its data."""
    try:
        yield
    except Exception as error:
        files = [path for (id, _), opened in hub.opened.items() if id == task.source.id for path in opened]
        if not isinstance(error, EmbarkError):
            named = first_few(files) or "no files"
            raise UnexpectedData(
                f"Task {task.name}: the data of {task.source.id} ({named}) does not have the layout that the reader "
                f"'{task.reader}' expects ({type(error).__name__}: {error}); it may be damaged."
            ) from error
        if not any(name in str(error) for name in (task.name, task.source.id, *files)):
            error.args = (f"Task {task.name} ({first_few(files) or task.source.id}): {error}",)
        raise
