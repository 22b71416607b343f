"""Tasks of a user's folder: tables or subfolders of images, sounds or films become retrieval, zero-shot and probe rows.

The rows are those that a TOML file would have, of the readers `paired` and `labelled`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embark import readers
from embark.hub import Hub
from embark.hub.listing import files_below
from embark.own.columns import DIVIDE, FILES, MEDIA, PROBE, USUAL
from embark.readers._table import OUTSIDE, as_list, first_few
from embark.readers.folder import table_files
from embark.readers.formats import Parquet, is_media
from embark.readers.layout import media_kind
from embark.readers.rows import Rows, open_files, split_files
from embark.settings import load_settings
from embark.types import EmbarkError, Modality, Source, Task

NUMBERED = re.compile(r"(caption|text)_?(\d+)", re.IGNORECASE)  # caption_1, caption_2: several of a thing
LANGUAGE = re.compile(  # caption_de, caption_deu-Latn, caption_pt-BR
    r"(caption|text)[_-](([a-z]{2,3})([_-]([a-z]{4}|[a-z]{2}))?)", re.IGNORECASE
)
SCRIPT = 4  # letters of a script's code

KINDS = ("retrieval", "reverse", "zeroshot", "probe")  # text → media, media → text…
TEMPLATES: Mapping[str, str] = {"image": "a photo of {}", "audio": "a sound of {}", "video": "a video of {}"}

# Codes of two letters → of three, as languages of tasks are; others stay what they are.
LANGUAGES = {
    "ar": "ara", "bg": "bul", "bn": "ben", "ca": "cat", "cs": "ces", "cy": "cym", "da": "dan", "de": "deu", "el": "ell",
    "en": "eng", "es": "spa", "et": "est", "eu": "eus", "fa": "fas", "fi": "fin", "fr": "fra", "ga": "gle", "gl": "glg",
    "he": "heb", "hi": "hin", "hr": "hrv", "hu": "hun", "id": "ind", "is": "isl", "it": "ita", "ja": "jpn", "ko": "kor",
    "lt": "lit", "lv": "lav", "ms": "msa", "nb": "nob", "nl": "nld", "no": "nor", "pl": "pol", "pt": "por", "ro": "ron",
    "ru": "rus", "sk": "slk", "sl": "slv", "sq": "sqi", "sr": "srp", "sv": "swe", "sw": "swa", "ta": "tam", "te": "tel",
    "th": "tha", "tr": "tur", "uk": "ukr", "ur": "urd", "vi": "vie", "zh": "zho",
}  # fmt: skip


def folder_task(
    path: str | Path,
    *,
    name: str | None = None,
    table: str | None = None,
    file: str | None = None,
    caption: str | None = None,
    label: str | None = None,
    templates: Sequence[str] | None = None,
    language: str = "eng",
    kinds: str | Sequence[str] = "all",
    allow_outside: bool = False,
) -> list[Task]:
    """The tasks of a folder: retrieval both ways if its table has captions, zero-shot classification and a probe if it
    has labels; those that `embark run --folder` scores.

    The table is CSV (of any delimiter), TSV, JSON lines, JSON or Parquet and names images, sounds or films. `table` is
    its file (else `metadata.csv`…, the only one there is, or `test.csv` with `train.csv`); `file`, `caption` and
    `label` name its columns (else the usual names are looked for). Without a table, each subfolder of media is a class.
    Columns `caption_de`, `caption_fr`… become subsets; `caption_1`, `caption_2`… are several captions of a thing.

    `kinds` are some of retrieval, reverse (media to text), zeroshot and probe, or "all". A probe learns from half of
    each class where there is no table for training. `templates` are prompts with {} for the label ("a photo of {}"
    unless they are given). Equal content is one item. The table may name files outside the folder, and links lead
    there, only where `allow_outside` is true.
    """
    folder = Path(path).expanduser().resolve()
    if not folder.is_dir():
        table_of = f" It is a file: name its folder, {folder.parent}." * folder.is_file()
        raise EmbarkError(f"There is no folder {folder}.{table_of}")
    wanted = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    wanted = KINDS if "all" in wanted else wanted
    if unknown := [kind for kind in wanted if kind not in KINDS]:
        raise EmbarkError(f"There is no kind of task named '{unknown[0]}' for folders; known: {', '.join(KINDS)}, all.")
    source = Source(str(folder), "", files=table_files(folder, table, allow_outside))
    contents = _contents(source, file, caption, label, allow_outside)
    unused = len(contents.notes)
    base = Task(
        name or folder.name, "Folder", "retrieval", "paired", source, "hit_rate_at_1", "Retrieval", (),
        subsets={"default": (language,)}, options={OUTSIDE: True} if allow_outside else {}, upright=True,
    )  # fmt: skip
    tasks = _retrieval_tasks(base, contents, wanted) + _label_tasks(base, contents, wanted, templates)
    if not tasks:
        raise EmbarkError(" ".join(contents.notes[unused:]) or _nothing(contents, wanted))
    revisions: dict[tuple[object, ...], str] = {}  # tasks that read the same files share it
    hub = Hub(load_settings())
    for number, task in enumerate(tasks):
        named = (task.evaluator == "probe", *sorted(column for kind, column in task.columns.items() if kind in MEDIA))
        if named not in revisions:
            revisions[named] = readers.content_revision(task, hub)
        revised = replace(source, revision=revisions[named])
        tasks[number] = replace(task, source=revised, notes=tuple(contents.notes))
    return tasks


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Contents:
    """What the table of a folder holds: its columns by what they are, and notes on what no task could be made of."""

    place: str  # what messages call the table
    rows: Rows
    media: dict[Modality, str]
    caption: str | None
    languages: dict[str, tuple[str, ...]]  # subset → its language, where captions are columns of several
    label: str | None
    notes: list[str] = field(default_factory=list)


def _retrieval_tasks(base: Task, contents: Contents, kinds: Sequence[str]) -> list[Task]:
    """Text → media, media → text, and the same between media of two kinds."""
    columns: dict[Modality, str] = dict(contents.media)
    if contents.caption is not None:
        columns = {"text": contents.caption, **columns}
    pairs = [(query, document) for query in columns for document in columns if query != document]
    order = list(columns)
    tasks = []
    for query, document in pairs:
        forward = order.index(query) < order.index(document)
        if ("retrieval" if forward else "reverse") not in kinds:
            continue
        main = query == "text" and document == order[1]
        ending = "Retrieval" if main else f"{query.capitalize()}To{document.capitalize()}"
        missing = "keep" if "text" in (query, document) else "skip"
        by_language = contents.languages if "text" in (query, document) else {}
        tasks.append(
            replace(
                base,
                name=f"{base.name}{ending}",
                modalities=tuple(kind for kind in ("text", "image", "audio", "video") if kind in (query, document)),
                columns={document: columns[document], query: columns[query]},
                subsets=by_language or base.subsets,
                options={
                    "equal": "one", "missing": missing, "query": query, **base.options,
                    **({"subset_is": "columns"} if by_language else {}),
                },
            )
        )  # fmt: skip
    return tasks


def _label_tasks(base: Task, contents: Contents, kinds: Sequence[str], templates: Sequence[str] | None) -> list[Task]:
    """Zero-shot classification and a probe, where there are labels of two classes or more."""
    if contents.label is None or not {"zeroshot", "probe"} & {*kinds}:
        return []
    kind, column = next(iter(contents.media.items()))
    labels = contents.rows.values(contents.label)
    if any(isinstance(label, (list, tuple)) for label in labels):
        contents.notes.append(
            f"Column '{contents.label}' of {contents.place} holds lists: make a multilabel task of it."
        )
        return []
    classes = contents.rows.class_names(contents.label) or _classes(contents, labels, column)
    if len(classes) < 2:
        of_folders = contents.place == base.source.id
        where = "The folder" if of_folders else f"Column '{contents.label}' of"
        what = "subfolders of two classes" if of_folders else "two labels"
        few = first_few(map(repr, classes)) or "none"
        contents.notes.append(f"{where} {contents.place} needs {what} or more; it has {few}.")
        return []
    labelled = replace(
        base,
        reader="labelled",
        metric="accuracy",
        columns={kind: column, "label": contents.label},
        options={"equal": "one", "missing": "skip", **base.options},
        chance=1 / len(classes),
    )
    tasks = []
    named = all(isinstance(label, str) for label in labels if label is not None)
    if "zeroshot" in kinds and (named or contents.rows.class_names(contents.label)):
        tasks.append(
            replace(
                labelled,
                name=f"{base.name}ZeroShot",
                evaluator="zeroshot",
                category="Zero-shot",
                modalities=("text", kind),
                labels=tuple(classes),
                templates=_check_templates((TEMPLATES[kind],) if templates is None else templates),
            )
        )
    elif "zeroshot" in kinds:
        contents.notes.append(f"Column '{contents.label}' of {contents.place} holds numbers: no prompts can be made.")
    if "probe" in kinds:
        tasks += _probe(labelled, contents, kind, labels)
    return tasks


def _probe(labelled: Task, contents: Contents, kind: Modality, labels: Sequence[Any]) -> list[Task]:
    """A probe that learns from the table for training, or from half of each class."""
    divided = "train" not in labelled.source.files
    sizes = Counter(label for label in labels if label is not None)
    if divided and sum(size > 1 for size in sizes.values()) < 2:
        contents.notes.append(f"No probe: two classes of {contents.place} must have two items or more.")
        return []
    options = {**labelled.options, **({"divide": DIVIDE} if divided else {})}
    probe = replace(labelled, name=f"{labelled.name}Probe", evaluator="probe", category="Probe", modalities=(kind,))
    return [replace(probe, params=PROBE, options=options)]


def _classes(contents: Contents, labels: Sequence[Any], column: str) -> tuple[str, ...]:
    """The distinct labels, sorted; every file must have only one."""
    names = contents.rows.file_names(column) or list(map(str, range(len(labels))))
    by_file: dict[str | None, Any] = {}
    for name, label in zip(names, labels, strict=True):
        if label is not None and by_file.setdefault(name, label) != label:
            both = f"'{by_file[name]}' and '{label}'"
            raise EmbarkError(f"{name} has two labels in {contents.place}, {both}; a class needs one for each item.")
    return tuple(sorted({str(label) for label in by_file.values()}))


def _check_templates(templates: Sequence[str]) -> tuple[str, ...]:
    if isinstance(templates, str) or not templates or not all("{}" in template for template in templates):
        raise EmbarkError("templates must be a list of texts with {} where the label goes.")
    return tuple(templates)


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _contents(source: Source, file: str | None, caption: str | None, label: str | None, outside: bool) -> Contents:
    """The columns of a folder's table; an error where it names no files, or files that are not there."""
    hub = Hub(load_settings())
    paths = [table_file.path for table_file in split_files(source, "test", hub)]
    place = source.id if media_kind(paths[0]) else str(Path(source.id, paths[0]))
    rows = Rows(place, open_files(source, paths, hub, outside))
    if not len(rows):
        raise EmbarkError(f"{place} has no rows.")
    media = _media_columns(rows, file)
    if not media:
        usual = ", ".join((*FILES, *MEDIA))
        raise EmbarkError(f"{place} has no column of files ({usual}); its columns are {first_few(rows.column_names)}.")
    for kind, column in media.items():
        if not any(rows.media(kind, column)):  # which looks for every file
            raise EmbarkError(f"No row of {place} names a file in column '{column}'.")
    texts, languages = _caption_columns(rows, caption)
    notes = _loose_files(source) if place == source.id else []
    columns = [] if texts is None else [texts.replace("{subset}", subset) for subset in languages] or texts.split(",")
    if columns and not any(as_list(cell) for column in columns for cell in rows.values(column)):
        raise EmbarkError(f"Column '{texts}' of {place} is empty.")
    if caption is None and (unused := [column for column in _all_captions(rows) if column not in columns]):
        notes.append(
            f"Not used of {place}: {first_few(unused)}. Several languages are columns like caption_en, caption_de; "
            "several captions like caption_1, caption_2."
        )
    return Contents(place, rows, media, texts, languages, _column(rows, label, USUAL["label"]), notes)


def _loose_files(source: Source) -> list[str]:
    """A note on media that are in no subfolder, and so in no class."""
    names = [name for name, _ in files_below(Path(source.id)) if "/" not in name and media_kind(name)]
    loose = [name for name in names if not name.startswith(".")]
    return [f"Not used of {source.id}, as it is in no subfolder: {first_few(loose)}."] if loose else []


def _column(rows: Rows, wanted: str | None, usual: Sequence[str]) -> str | None:
    """The wanted column, or the first with a usual name, or None."""
    if wanted is not None and wanted not in rows.column_names:
        raise EmbarkError(f"{rows.name} has no column '{wanted}'; its columns are {first_few(rows.column_names)}.")
    by_name = {column.strip().lower(): column for column in rows.column_names}
    return wanted or next((by_name[name] for name in usual if name in by_name), None)


def _media_columns(rows: Rows, file: str | None) -> dict[Modality, str]:
    """The columns of media: the first of any kind, and one of each other kind."""
    columns: dict[Modality, str] = {}
    if (column := _column(rows, file, FILES)) is not None:
        columns[_kind(rows, column, strict=True) or "image"] = column
    for kind in MEDIA:
        column = _column(rows, None, USUAL[kind])
        if column is None or kind in columns:
            continue
        stored = _kind(rows, column)
        if stored == kind or (stored is None and (_holds_bytes(rows, column) or not columns)):
            columns[kind] = column
    return columns


def _kind(rows: Rows, column: str, strict: bool = False) -> Modality | None:
    """What a column holds, by the endings of the files that it names; None where they do not tell."""
    names = [name for name in rows.file_names(column) or () if name]
    kinds: dict[Modality | None, str] = {}
    for name in names:
        kinds.setdefault(media_kind(name), name)
    known = [(kind, name) for kind, name in kinds.items() if kind]
    if strict and len(known) > 1:
        several = " and ".join(f"{kind} ({name})" for kind, name in known)
        raise EmbarkError(f"Column '{column}' of {rows.name} names {several}: give each kind a column, or a table.")
    return known[0][0] if known else None


def _holds_bytes(rows: Rows, column: str) -> bool:
    return all(isinstance(table, Parquet) and is_media(table.schema.field(column).type) for table in rows.tables)


def _caption_columns(rows: Rows, caption: str | None) -> tuple[str | None, dict[str, tuple[str, ...]]]:
    """The column of captions, or several; and the languages where each has a column, whose name then has {subset}."""
    plain = _column(rows, caption, USUAL["text"])
    languages: dict[str, dict[str, str]] = {}  # beginning of the columns' names → ending → language
    for column in rows.column_names:
        if (named := _language(column)) and any(map(as_list, rows.values(column))):
            beginning, ending, language = named
            languages.setdefault(beginning, {})[ending] = language
    beginning, codes = max(languages.items(), key=lambda group: len(group[1]), default=("", {}))
    if caption is None and len(codes) > (plain is not None):
        return f"{beginning}{{subset}}", {code: (language,) for code, language in codes.items()}
    numbered = [column for column in rows.column_names if NUMBERED.fullmatch(column)]
    return (",".join(numbered) if plain is None and numbered else plain), {}


def _language(column: str) -> tuple[str, str, str] | None:
    """The beginning and ending of a name like caption_de, and the language; None where it is another name."""
    if not (match := LANGUAGE.fullmatch(column)):
        return None
    script = len(match[5] or "") == SCRIPT
    language = LANGUAGES.get(match[3].lower(), match[3])
    known = script or language in LANGUAGES.values()
    return (column[: match.start(2)], match[2], f"{language}-{match[5]}" if script else language) if known else None


def _all_captions(rows: Rows) -> list[str]:
    """The columns that could be captions by their names, and are not empty."""
    usual = USUAL["text"]
    named = [name for name in rows.column_names if name.lower() in usual or NUMBERED.fullmatch(name) or _language(name)]
    return [name for name in named if any(map(as_list, rows.values(name)))]


def _nothing(contents: Contents, kinds: Sequence[str]) -> str:
    captions = f"captions ({', '.join(USUAL['text'])})"
    labels = f"labels ({', '.join(USUAL['label'])})"
    lacking = f"neither a column of {captions} nor of {labels}"
    if not {"retrieval", "reverse"} & {*kinds}:
        lacking = f"no column of {labels}"
    if not {"zeroshot", "probe"} & {*kinds}:
        lacking = f"no column of {captions}"
    columns = first_few(contents.rows.column_names)
    return f"{contents.place} has {lacking}; its columns are {columns}. Rename one, or name it in Python: caption='…'."
