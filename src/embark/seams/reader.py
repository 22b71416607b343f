"""The seam of readers: what one declares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from embark.field_types import misfits
from embark.seams.checks import Declared
from embark.types import Dataset, Option, Task

if TYPE_CHECKING:  # names in annotations: a seam imports no later room
    from embark.hub import Hub
    from embark.readers._files import TableFiles
    from embark.readers.rows import FilesBySource


# Returns the items and truth of one split and subset of a task; the hub gets the files.
Read: TypeAlias = Callable[[Task, str, str, "Hub"], Dataset]


@dataclass(frozen=True)
class Files:
    """The files of a reader's tasks, as far as they are known before a task is read: to fetch, hash and check them.

    `Files()` is that of a reader without files, `embark.readers.TABLES` that of most readers of tables.
    """

    needed: Callable[[Task, Hub], FilesBySource] = lambda task, hub: []  # to read the task, by dataset
    tables: Callable[[Task, Hub], Sequence[TableFiles]] = lambda task, hub: ()  # that have the columns of the row
    other_sources: Callable[[Task], Sequence[str]] = lambda task: ()  # ids of data sets besides the task's own
    # The names among `known` that a file may have for a column of the row: of its role, the column, known.
    stored_columns: Callable[[str, str, Collection[str]], set[str]] = lambda role, column, known: {column} & {*known}
    listed_classes: Callable[[Task, Hub], Sequence[str]] = lambda task, hub: ()  # class names in a file beside tables


@dataclass(frozen=True)
class Reader(Declared):
    """How the rows of a source become items and the truth about them."""

    name: str
    about: str  # what data it reads, as `embark show` prints it
    read: Read
    evaluators: tuple[str, ...]  # that its truth is for
    files: Files
    version: int = 1  # part of every fingerprint: raised when items or truth can change
    columns: Mapping[str, str] = field(default_factory=dict)  # by role: what the column holds
    options: Mapping[str, Option] | None = None  # that a row may set; None: a reader of one benchmark, any are accepted
    path_options: tuple[str, ...] = ()  # the options that are paths of this machine
    base_option: str = ""  # the option that names another reader, whose options a row may set, too
    read_unlabeled: Read | None = None  # the items without labels, for rankings that are scored elsewhere; None: `read`
    require: Callable[[Task], None] = lambda task: None  # raises an error where a file of labels is missing
    external_state: Callable[[Task], str] = lambda task: ""  # of a file of labels: part of the fingerprint

    def faults(self) -> Iterator[str]:
        """A message for what is wrong with its files, and for each name of an option that it does not declare."""
        yield from misfits(self.files)
        options = self.options or {}
        if {*self.path_options} - {*options}:
            yield f"its `path_options` must be names of its options, not {self.path_options!r}"
        if self.base_option and self.base_option not in options:
            yield f"its `base_option` must be one of its options, not {self.base_option!r}"

    @property
    def own(self) -> bool:
        """Whether it reads data of users, and so declares its options."""
        return self.options is not None
