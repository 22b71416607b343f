"""The seam of readers: what one declares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from embark.seams.checks import are_texts
from embark.types import Dataset, EmbarkError, Option, Task

if TYPE_CHECKING:  # names in annotations: a seam imports no later room
    from embark.hub import Hub
    from embark.readers._files import TableFiles
    from embark.readers.rows import FilesBySource


class Read(Protocol):
    """Return the items and truth of one split and subset of a task; `hub` gets the files."""

    def __call__(self, task: Task, split: str, subset: str, hub: Hub, /) -> Dataset: ...


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
class Reader:
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

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise EmbarkError(f"The reader '{self.name}' is declared wrongly: {fault}.")

    def _faults(self) -> Iterator[str]:
        """A text for each declaration that cannot be used."""
        if not (isinstance(self.name, str) and self.name.strip() and isinstance(self.about, str)):
            yield "its `name` and `about` must be texts"
        if not isinstance(self.files, Files):
            yield f"its `files` must be a value of embark.seams.Files, not {self.files!r}"
        hooks: dict[str, object] = {f"files.{name}": hook for name, hook in vars(self.files).items()}
        hooks |= {"read": self.read, "read_unlabeled": self.read_unlabeled or self.read}
        hooks |= {"require": self.require, "external_state": self.external_state}
        for name, hook in hooks.items():
            if not callable(hook):
                yield f"its `{name}` must be a function, not {hook!r}"
        if not (self.evaluators and are_texts(self.evaluators)):
            yield f'its `evaluators` must be a tuple of names, as in ("retrieval",), not {self.evaluators!r}'
        if type(self.version) is not int or self.version < 1:
            yield f"its `version` must be a whole number from 1, not {self.version!r}"
        if not (isinstance(self.columns, Mapping) and are_texts((*self.columns, *self.columns.values()))):
            yield f"its `columns` must map roles to texts, not {self.columns!r}"
        options = {} if self.options is None else self.options
        if not (isinstance(options, Mapping) and all(isinstance(option, Option) for option in options.values())):
            yield f"its `options` must map names to values of embark.types.Option, not {self.options!r}"
        elif not are_texts((*options, *self.path_options)) or {*self.path_options} - {*options}:
            yield f"its `path_options` must be names of its options, not {self.path_options!r}"
        elif self.base_option and self.base_option not in options:
            yield f"its `base_option` must be one of its options, not {self.base_option!r}"

    @property
    def own(self) -> bool:
        """Whether it reads data of users, and so declares its options."""
        return self.options is not None
