"""MMEB's audio group: a tar per dataset, with tables and sounds in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np

from embark import items
from embark.catalogue import group_values
from embark.hub import Hub
from embark.items import wav
from embark.readers import _mmeb
from embark.readers._files import TABLES
from embark.readers._mmeb import ArchiveFolder, Corpus, Query
from embark.readers._table import first_few
from embark.readers.rows import Rows
from embark.types import EmbarkError, Item, Media, Task

CLASSIFICATION_TABLES = (  # of the five classifications: the query table of a sample, else all of a dataset
    "eval/query.parquet",
    "query_eval.parquet",
    "query_test.parquet",
    "csv_files/test.csv",
    "processed.csv",
    "*.parquet",
)
LABELS = ("category", "label_name", "class", "classname", "instrument_family_str", "major_emotion", "emotion", "label")
NUMBERS = ("label_id", "instrument_family", "instrument_family_id", "target", "classID", "class_id", "label")
MOST_CLASSES = 10_000
PATHS = ("audio_path", "path", "WavPath", "slice_file_name", "filename", "file")
DEVELOPMENT = "TUT-sound-events-2017-development"
WINDOW = 1.0  # duration of a quiet window, in seconds
STRIDE = 0.5  # seconds from one window to the next
WINDOWS = 50  # largest number of quiet windows in a recording
OVERLAP = 0.1  # largest overlap of a quiet window with an event
SHORTEST = 0.05  # shortest duration of an event, in seconds


def classification(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A sound to the name of its class, among the names of all rows.

    With the option pool="ids", as in the public code, also among the digits of class numbers that no row has.
    """
    folder = _open_folder(task, hub)
    rows = folder.table(*CLASSIFICATION_TABLES)
    labels = _labels(rows)
    pool = _numbered_names(rows, labels) if task.options.get("pool") == "ids" else sorted(set(labels))
    names = [corpus.add(name, partial(items.text, name)) for name in pool]
    for sound, label in zip(_sounds(folder, rows), labels, strict=True):
        yield Query(Item((sound,)), [label], names)


def _labels(rows: Rows) -> list[str]:
    """The class name of each row."""
    column = rows.first_column(*LABELS)
    if column is None:
        raise EmbarkError(f"{rows.name} has no column of class names; its columns are {', '.join(rows.column_names)}.")
    values = rows.values(column)
    if empty := [str(number) for number, value in enumerate(values) if value is None]:
        raise EmbarkError(f"{rows.name} has {len(empty)} rows without '{column}': row {first_few(empty)}.")
    names = rows.class_names(column)
    return [names[value] if names and isinstance(value, int) else str(value) for value in values]


def _numbered_names(rows: Rows, labels: list[str]) -> list[str]:
    """The class names in the order of their numbers, with digits for numbers that no row has; sorted, if unnumbered."""
    columns = [[str(value) for value in rows.values(name)] for name in NUMBERS if name in rows.column_names]
    numbers = next((list(map(int, values)) for values in columns if all(map(str.isdecimal, values))), [])
    if not numbers or max(numbers) >= MOST_CLASSES:
        return sorted(set(labels))
    by_number = dict(zip(reversed(numbers), reversed(labels), strict=True))  # of several names, the first counts
    return list(dict.fromkeys([*(by_number.get(n, str(n)) for n in range(max(numbers) + 1)), *labels]))


def retrieval(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A description or a sound, to the sound, image or video that belongs to it."""
    read = {
        "clotho_text_audio": _clotho,
        "sounddescs_text_audio": _sounddescs,
        "audio_ret_speechcoco": _speechcoco,
        "ave_retrieval": _ave,
    }[task.options["parser"]]
    return read(task, _open_folder(task, hub), corpus)


def _clotho(task: Task, folder: ArchiveFolder, corpus: Corpus) -> Iterator[Query]:
    """Five captions a sound, each a query."""
    rows = folder.table("*clotho_captions_evaluation.csv")
    for name, *captions in rows.tuples("file_name", *(f"caption_{number}" for number in range(1, 6))):
        corpus.add(name, partial(_sound, folder, folder.find(f"evaluation/{name}")))
        yield from (Query(items.text(caption.strip()), [name]) for caption in captions if caption)


def _sounddescs(task: Task, folder: ArchiveFolder, corpus: Corpus) -> Iterator[Query]:
    """A sample of the queries over the whole corpus; `judged` leaves only sounds that are relevant to a query."""
    queries, documents, qrels = (folder.table(f"eval/{name}*.parquet") for name in ("query", "corpus", "qrels"))
    judgements = qrels.tuples("query-id", "corpus-id", "score")
    relevant = group_values((str(query), str(document)) for query, document, score in judgements if score > 0)
    wanted = {name for names in relevant.values() for name in names} if task.options.get("judged") else None
    for name, sound in zip(map(str, documents.values("corpus-id")), _sounds(folder, documents), strict=True):
        if wanted is None or name in wanted:
            corpus.add(name, partial(_mmeb.compose, sound, ""))
    text_column = queries.first_column("text", "caption", "sentence", "query", "description") or "text"
    for query, text in queries.tuples("query-id", text_column):
        yield Query(items.text(text), relevant.get(str(query), ()))


def _speechcoco(task: Task, folder: ArchiveFolder, corpus: Corpus) -> Iterator[Query]:
    """A spoken caption to its image."""
    queries = folder.table("*query*.parquet")
    documents = folder.table("*corpus*.parquet")
    for name, image in zip(map(str, documents.values("corpus-id")), documents.media("image", "image"), strict=True):
        corpus.add(name, partial(_mmeb.compose, image, ""))
    for name, sound in zip(map(str, queries.values("image_id")), _sounds(folder, queries), strict=True):
        yield Query(Item((sound,)), [name])


def _ave(task: Task, folder: ArchiveFolder, corpus: Corpus) -> Iterator[Query]:
    """The sound of an event to the silent video that it is from; videos that are not in the archive are left out."""
    missing = []
    for line in folder.lines("AVE_Dataset/testSet.txt"):
        if line.startswith("Category&"):
            continue
        _, name, _, start, end = line.split("&")[:5]
        file = f"AVE_Dataset/AVE/{name}.mp4"
        frames = f"AVE_Dataset/frames/{name}"
        if file not in folder and frames not in folder.folders:
            missing.append(name)
            continue
        sound_file = f"AVE_Dataset/audios/{name}_{name}_{int(float(start))}_{int(float(end))}.wav"
        if sound_file in folder:
            sound = _sound(folder, sound_file)
        else:
            sound = items.media("audio", partial(_soundtrack, folder.media("video", file), float(start), float(end)))
        video = folder.video(frames) if frames in folder.folders else folder.media("video", file)
        corpus.add(name, partial(_mmeb.compose, video, ""))
        yield Query(sound, [name])
    if missing:
        corpus.skipped.append(f"left out {len(missing)} videos that are not in the archive: {first_few(missing)}")


def _soundtrack(video: Media, start: float, end: float) -> bytes:
    """The sound of a part of a video, in 16 kHz mono, as the benchmark has it."""
    return wav.cut(wav.from_video(video.read()[0], 16_000), start, end)


# ── grounding ────────────────────────────────────────────────────────────────────────────────────────────────────────

Span = tuple[float, float]  # start and end, in seconds


def grounding(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A recording and the name of an event, to the part where it is heard, among all events and quiet windows.

    Every part of the recording with that event is relevant; in the hard variant only the one event of the query.
    """
    folder = _open_folder(task, hub)
    hard = task.options["parser"].endswith("_hard")
    for path, annotated in sorted(_annotations(folder).items()):
        recording = folder.media("audio", f"{DEVELOPMENT}/{path}")
        seconds = wav.duration(recording.read()[0])
        events = [(_clip(span, seconds), name) for span, name in annotated]
        spans = [span for span, _ in events]
        spans += _quiet_windows(spans, seconds)
        candidates = [
            corpus.add(_segment_name(path, span), partial(items.media, "audio", partial(_cut, recording, span)))
            for span in spans
        ]
        for span, name in events:
            relevant = [span] if hard else [other for other, other_name in events if other_name == name]
            names = [_segment_name(path, other) for other in relevant]
            yield Query(_mmeb.compose(recording, name), names, candidates)


def _annotations(folder: ArchiveFolder) -> dict[str, list[tuple[Span, str]]]:
    """The events of each recording, in the order of the four folds."""
    files = [f"{DEVELOPMENT}/evaluation_setup/street_fold{fold}_evaluate.txt" for fold in range(1, 5)]
    lines = [line for file in files for line in folder.lines(file)]
    rows = [(line.split("\t") if line.count("\t") > 3 else line.split())[:5] for line in lines]
    return group_values(
        (path.strip(), ((float(start), float(end)), name.strip())) for path, _, start, end, name in rows
    )


def _clip(span: Span, seconds: float) -> Span:
    """The span inside a recording of this duration; never empty."""
    start = max(0.0, span[0])
    end = min(span[1] if span[1] > start else start + SHORTEST, seconds)
    return (start, end) if end > start else (max(0.0, seconds - SHORTEST), seconds)


def _quiet_windows(events: list[Span], seconds: float) -> list[Span]:
    """The first windows that hardly overlap with an event."""
    starts = np.arange(0, max(0.0, seconds - WINDOW) + 1e-9, STRIDE) if seconds >= WINDOW else ()
    windows = ((float(start), float(start) + WINDOW) for start in starts)
    return [window for window in windows if all(_overlap(window, event) < OVERLAP for event in events)][:WINDOWS]


def _overlap(first: Span, second: Span) -> float:
    """Intersection over union: the shared time divided by the time from the first start to the last end."""
    shared = max(0.0, min(first[1], second[1]) - max(first[0], second[0]))
    return shared / (max(first[1], second[1]) - min(first[0], second[0]))


def _segment_name(path: str, span: Span) -> str:
    return f"{path}|{span[0]:.3f}-{span[1]:.3f}"


def _cut(recording: Media, span: Span) -> bytes:
    return wav.cut(_read(recording), *span)


@lru_cache(maxsize=2)  # a recording is cut a hundred times in a row
def _read(recording: Media) -> bytes:
    return recording.read()[0]


# ── sounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _open_folder(task: Task, hub: Hub) -> ArchiveFolder:
    """The dataset's own tar; audio-tasks/AVE/AVE_Dataset is a folder of AVE."""
    return _mmeb.open_folder(task, hub, task.options["path"].split("/")[1])


def _sound(folder: ArchiveFolder, path: str) -> Item:
    return Item((folder.media("audio", path),))


def _sounds(folder: ArchiveFolder, rows: Rows) -> list[Media]:
    """The sound of each row: in a column, or in a file that a column names."""
    column = rows.first_column("audio", "audio_bytes")
    sounds = rows.media("audio", column) if column else [None] * len(rows)
    if None not in sounds:
        return [sound for sound in sounds if sound]
    paths = _mmeb.optional_column(rows, rows.first_column(*PATHS) or PATHS[0])
    folds = _mmeb.optional_column(rows, "fold", None)
    return [
        sound or folder.media("audio", folder.find(_path_in_fold(path or "", fold)))
        for sound, path, fold in zip(sounds, paths, folds, strict=True)
    ]


def _path_in_fold(path: str, fold: int | None) -> str:
    return path if not path or "/" in path or fold is None else f"fold{fold}/{path}"


CLASSIFICATION = _mmeb.reader("mmeb-audio-classification", classification, TABLES, version=2)
RETRIEVAL = _mmeb.reader("mmeb-audio-retrieval", retrieval, TABLES, version=2)
GROUNDING = _mmeb.reader("mmeb-audio-grounding", grounding, TABLES, version=2)
