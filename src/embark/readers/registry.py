"""The readers by name, ours and those of plug-ins, and what the reader of a task declares about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain

from embark.catalogue import Registry, UnknownName
from embark.hub import Hub
from embark.plugins import registry
from embark.readers._errors import checked_listing, expected_data
from embark.readers._files import TableFiles
from embark.readers.rows import FilesBySource
from embark.seams import Reader
from embark.types import ClaimedTask, EmbarkError, Option, Task

# Name → where the reader is, which is imported at use.
OWN: dict[str, Reader | str] = {
    "pocket-names": "embark.readers.pocket:NAMES",
    "pocket-robustness": "embark.readers.pocket:ROBUSTNESS",
    "pocket-tones": "embark.readers.pocket:TONES",
    "pocket-composed-tones": "embark.readers.pocket:COMPOSED_TONES",
    "pocket-clock-sums": "embark.readers.pocket:CLOCK_SUMS",
    "pocket-pages": "embark.readers.pocket:PAGES",
    "pocket-probe": "embark.readers.pocket:PROBE",
    "pocket-keywords": "embark.readers.pocket:KEYWORDS",
    "pocket-groups": "embark.readers.pocket:GROUPS",
    "pocket-zeroshot": "embark.readers.pocket:ZEROSHOT",
    "pocket-swaps": "embark.readers.pocket:SWAPS",
    "pocket-sts": "embark.readers.pocket:STS",
    "pocket-clocks": "embark.readers.pocket:CLOCKS",
    "pocket-counting": "embark.readers.pocket:COUNTING",
    "pocket-capitals": "embark.readers.pocket:CAPITALS",
    "pocket-negation": "embark.readers.pocket:NEGATION",
    "pocket-grounding": "embark.readers.pocket:GROUNDING",
    "pocket-moments": "embark.readers.pocket:MOMENTS",
    "pocket-omni": "embark.readers.pocket:OMNI",
    "pocket-ark": "embark.readers.pocket_ark:ARK",
    "ark": "embark.readers.ark:ARK",
    "conditions": "embark.readers.conditions:CONDITIONS",
    "folder": "embark.readers.folder:FOLDER",
    "mmeb-image": "embark.readers.mmeb_image:IMAGE",
    "mmeb-mcmr": "embark.readers.mmeb_image:MCMR",
    "mmeb-video-classification": "embark.readers.mmeb_video:CLASSIFICATION",
    "mmeb-video-qa": "embark.readers.mmeb_video:QA",
    "mmeb-video-retrieval": "embark.readers.mmeb_video:RETRIEVAL",
    "mmeb-moments": "embark.readers.mmeb_video:MOMENTS",
    "mmeb-audio-classification": "embark.readers.mmeb_audio:CLASSIFICATION",
    "mmeb-audio-retrieval": "embark.readers.mmeb_audio:RETRIEVAL",
    "mmeb-audio-grounding": "embark.readers.mmeb_audio:GROUNDING",
    "omniset": "embark.readers.omniset:OMNISET",
    "labelled": "embark.readers.labelled:LABELLED",
    "beir": "embark.readers.beir:BEIR",
    "paired": "embark.readers.paired:PAIRED",
    "tuples": "embark.readers.tuples:TUPLES",
    "question": "embark.readers.question:QUESTION",
    "captions": "embark.readers.captions:CAPTIONS",
    "rendered-sts": "embark.readers.rendered_sts:RENDERED_STS",
    "labelled-pairs": "embark.readers.labelled_pairs:LABELLED_PAIRS",
    "mmeb-text": "embark.readers.mmeb_text:TEXT",
    "mmeb-tools": "embark.readers.mmeb_text:TOOLS",
    "mmeb-memory": "embark.readers.mmeb_text:MEMORY",
    "mmeb-gui": "embark.readers.mmeb_text:GUI",
    "webdataset-zeroshot": "embark.readers.webdataset:ZEROSHOT",
    "webdataset-relation": "embark.readers.webdataset:RELATION",
}
READERS: Registry[Reader] = registry("reader", OWN, "readers", "embark show --reader lists all.")


class NotNamed(EmbarkError):
    """Data that only a file of results names: the file may be a stranger's."""


def require_named(task: Task) -> None:
    """Raise `NotNamed` for a row that only a file of results states: whatever opens data asks here before."""
    if isinstance(task, ClaimedTask):
        raise NotNamed(
            f"The data of {task.name} are not opened, because this home has not run the task and the results folder "
            "may come from somebody else. If they are your own, run the task again with its folder, file or data "
            "set (embark run --folder, --tasks-file or --dataset): existing scores and vectors are not computed again."
        )


def reader_of(task: Task) -> Reader:
    """The reader of a task, for whatever opens files or asks a hub: an error where nothing may be opened."""
    require_named(task)
    return READERS[task.reader]


# ── identity ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def version(name: str) -> int:
    """The version of a reader; it is raised when the items or the truth that it returns can change."""
    return READERS[name].version


def external_state(task: Task) -> str:
    """The state of what the truth depends on besides the dataset (a file of labels); empty for most readers."""
    return "" if isinstance(task, ClaimedTask) else reader_of(task).external_state(task)


def require(task: Task) -> None:
    """Raise an error where a task cannot be read, whatever its dataset holds: a file of labels is missing."""
    reader_of(task).require(task)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def needed_files(task: Task, hub: Hub) -> FilesBySource:
    """The files needed to read a task, by dataset."""
    reader = reader_of(task)
    with checked_listing(task, hub), expected_data(task, hub):
        return reader.files.needed(task, hub)


def sources(task: Task) -> tuple[str, ...]:
    """The ids of the datasets that a task may read: its own, and those that its reader names."""
    others = READERS[task.reader].files.other_sources(task) if task.reader in READERS else ()
    return tuple(dict.fromkeys((task.source.id, *others)))


def tables(task: Task, hub: Hub) -> list[TableFiles]:
    """The tables of a task with their files, where its reader is one of tables."""
    reader = reader_of(task)
    with checked_listing(task, hub):
        return list(reader.files.tables(task, hub))


def stored_columns(task: Task, role: str, column: str, known: Collection[str]) -> set[str]:
    """The columns of a task's files that its reader takes for a column of the row, whose role it is."""
    if "{subset}" in column:
        return {column.replace("{subset}", subset) for subset in task.subsets} & {*known}
    return READERS[task.reader].files.stored_columns(role, column, known)


def listed_classes(task: Task, hub: Hub) -> tuple[str, ...]:
    """The class names in a file beside the tables, where a task's reader takes them from one."""
    return tuple(reader_of(task).files.listed_classes(task, hub))


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def options(task: Task) -> Mapping[str, Option] | None:
    """The options that a task of this reader may have; None for readers of one benchmark, which declare none."""
    declared = [reader.options for reader in _with_base(task)]
    known = [options for options in declared if options is not None]
    return dict(chain.from_iterable(options.items() for options in known)) if len(known) == len(declared) else None


def check_options(task: Task) -> None:
    """An error for an unknown option or value: ignored, it would leave the score under a wrong protocol."""
    known = options(task)
    if known is None:
        return
    for name, value in task.options.items():
        if name not in known:
            raise UnknownName(f"option of '{task.reader}'", name, known)
        if not known[name].accepts(value):
            raise EmbarkError(f"The option '{name}' of '{task.reader}' must be {known[name].values}, not {value!r}.")


def check_row(task: Task) -> None:
    """An error for a row of a plug-in's reader with another option or evaluator than it declares.

    Rows of our readers may have options that only tell what they are, and an evaluator of a plug-in; files of tasks and
    `embark.task` check theirs.
    """
    if task.reader in READERS.own:
        return
    check_options(task)
    served = READERS[task.reader].evaluators
    if task.evaluator not in served:
        raise EmbarkError(f"Task {task.name}: '{task.reader}' serves {', '.join(served)}, not '{task.evaluator}'.")


def path_options(task: Task) -> tuple[str, ...]:
    """The options of a task that are paths of this machine."""
    return tuple(option for reader in _with_base(task) for option in reader.path_options)


def _with_base(task: Task) -> list[Reader]:
    """The reader of a task, and the one that an option of the row names as its base."""
    reader = READERS[task.reader]
    base = task.options.get(reader.base_option)
    return [reader, READERS[base]] if isinstance(base, str) and base in READERS else [reader]
