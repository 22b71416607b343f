"""Readers turn the rows of a source into items and the truth about them.

A reader is a value (`embark.seams.Reader`) in `READERS`; its module is imported when it is first used.

    registry      the readers by name, and what the reader of a task declares: files, options, version
    reading       the items and truth of a split and subset, checked
    folder_state  the content of a task's folder, as its revision
    _files        the files of readers of tables: `TABLES`
    _table        what readers of tables share: rows, selected, as items (`open_table`)

The other modules are readers, and `_mmeb` is shared by those of MMEB.
"""

from embark.readers._errors import UnexpectedData
from embark.readers._files import TABLES, TableFiles, has_column
from embark.readers._table import OPTIONS as TABLE_OPTIONS
from embark.readers._table import open_table
from embark.readers.folder_state import check_state, content_revision
from embark.readers.reading import read, read_unlabeled
from embark.readers.registry import (
    READERS,
    NotNamed,
    check_options,
    external_state,
    listed_classes,
    needed_files,
    options,
    path_options,
    require,
    require_named,
    sources,
    stored_columns,
    tables,
    version,
)

__all__ = [
    "READERS", "TABLES", "TABLE_OPTIONS", "NotNamed", "TableFiles", "UnexpectedData", "check_options", "check_state",
    "content_revision", "external_state", "has_column", "listed_classes", "needed_files", "open_table", "options",
    "path_options", "read", "read_unlabeled", "require", "require_named", "sources", "stored_columns", "tables",
    "version",
]  # fmt: skip
