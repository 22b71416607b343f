"""MMEB's audio group: a tar a dataset, with tables and sounds in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np

from embark.data import items, wav
from embark.data.fetch import Hub
from embark.data.readers import _mmeb
from embark.data.readers._mmeb import Ask, Corpus, Files
from embark.data.readers._table import listed
from embark.data.rows import Rows
from embark.types import Dataset, EmbarkError, Item, Media, Task

VERSION = 2
TABLES = (  # of the five classifications: the query table of a sample, else all of a dataset
    "eval/query.parquet",
    "query_eval.parquet",
    "query_test.parquet",
    "csv_files/test.csv",
    "processed.csv",
    "*.parquet",
)
LABELS = ("category", "label_name", "class", "classname", "instrument_family_str", "major_emotion", "emotion", "label")
PATHS = ("audio_path", "path", "WavPath", "slice_file_name", "filename", "file")
WINDOW, STRIDE, WINDOWS, OVERLAP, SHORTEST = 1.0, 0.5, 50, 0.1, 0.05  # seconds, but for the third and fourth


def classification(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A sound to the name of its class, among the names of all rows."""
    files = _open(task, hub)
    rows = files.table(*TABLES)
    names, corpus = _labels(rows), Corpus()
    for name in sorted(set(names)):
        corpus.add(name, partial(items.text, name))
    asks = [
        Ask(_mmeb.compose(sound, ""), [name], list(corpus.items))
        for sound, name in zip(_sounds(files, rows), names, strict=True)
    ]
    _mmeb.counted(task, split, len(rows))
    return _mmeb.dataset(task, asks, corpus)


def _labels(rows: Rows) -> list[str]:
    column = next((name for name in LABELS if name in rows.names), None)
    if column is None:
        raise EmbarkError(f"{rows.what} has no column of class names; its columns are {', '.join(rows.names)}.")
    names, cells = rows.class_names(column), rows.values(column)
    if empty := [str(at) for at, value in enumerate(cells) if value is None]:
        raise EmbarkError(f"{rows.what} has {len(empty)} rows without '{column}': row {listed(empty)}.")
    return [names[value] if names and isinstance(value, int) else str(value) for value in cells]


def retrieval(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A description or a sound, to the sound, image or video that belongs to it."""
    read = {
        "clotho_text_audio": _clotho,
        "sounddescs_text_audio": _sounddescs,
        "audio_ret_speechcoco": _speechcoco,
        "ave_retrieval": _ave,
    }[task.options["parser"]]
    corpus = Corpus()
    asks = list(read(task, _open(task, hub), corpus))
    _mmeb.counted(task, split, len(asks))
    return _mmeb.dataset(task, asks, corpus)


def _clotho(task: Task, files: Files, corpus: Corpus) -> Iterator[Ask]:
    """Five captions a sound, each a query."""
    rows = files.table("*clotho_captions_evaluation.csv")
    captions = [rows.values(f"caption_{at}") for at in range(1, 6)]
    for name, *said in zip(rows.values("file_name"), *captions, strict=True):
        corpus.add(name, partial(_heard, files, files.find(f"evaluation/{name}")))
        yield from (Ask(items.text(caption.strip()), [name]) for caption in said if caption)


def _sounddescs(task: Task, files: Files, corpus: Corpus) -> Iterator[Ask]:
    """A sample of the queries over the whole corpus; `judged` leaves only sounds that answer a query."""
    queries, documents, judged = (files.table(f"eval/{name}*.parquet") for name in ("query", "corpus", "qrels"))
    right: dict[str, list[str]] = {}
    for query, document, score in zip(*map(judged.values, ("query-id", "corpus-id", "score")), strict=True):
        if score > 0:
            right.setdefault(str(query), []).append(str(document))
    wanted = {name for names in right.values() for name in names} if task.options.get("judged") else None
    for name, sound in zip(map(str, documents.values("corpus-id")), _sounds(files, documents), strict=True):
        if wanted is None or name in wanted:
            corpus.add(name, partial(_mmeb.compose, sound, ""))
    said = next(name for name in ("text", "caption", "sentence", "query", "description") if name in queries.names)
    for query, text in zip(map(str, queries.values("query-id")), queries.values(said), strict=True):
        yield Ask(items.text(text), right.get(query, ()))


def _speechcoco(task: Task, files: Files, corpus: Corpus) -> Iterator[Ask]:
    """A spoken caption to its image."""
    queries, documents = files.table("*query*.parquet"), files.table("*corpus*.parquet")
    for name, image in zip(map(str, documents.values("corpus-id")), documents.media("image", "image"), strict=True):
        corpus.add(name, partial(_mmeb.compose, image, ""))
    for name, sound in zip(map(str, queries.values("image_id")), _sounds(files, queries), strict=True):
        yield Ask(_mmeb.compose(sound, ""), [name])


def _ave(task: Task, files: Files, corpus: Corpus) -> Iterator[Ask]:
    """The sound of an event to the silent film that it is from; films that are not there are no candidates."""
    gone = []
    for line in files.lines("AVE_Dataset/testSet.txt"):
        if line.startswith("Category&"):
            continue
        _, video, _, start, end = line.split("&")[:5]
        film, frames = f"AVE_Dataset/AVE/{video}.mp4", f"AVE_Dataset/frames/{video}"
        if film not in files and frames not in files.folders:
            gone.append(video)
            continue
        sound = f"AVE_Dataset/audios/{video}_{video}_{int(float(start))}_{int(float(end))}.wav"
        span = float(start), float(end)
        heard = files.file("audio", sound) if sound in files else _part_of(files.file("video", film), *span)
        shown = files.film(frames) if frames in files.folders else files.file("video", film)
        corpus.add(video, partial(_mmeb.compose, shown, ""))
        yield Ask(_mmeb.compose(heard, ""), [video])
    if gone:
        corpus.skipped.append(f"left out {len(gone)} films that are not in the archive: {listed(gone)}")


def _part_of(film: Media, start: float, end: float) -> Media:
    """The sound of a part of a film, cut out when it is needed."""
    return Media("audio", (partial(_soundtrack, film, start, end),))


def _soundtrack(film: Media, start: float, end: float) -> bytes:
    """16 kHz mono, as the benchmark has it."""
    return wav.cut(wav.of_film(film.read()[0], 16_000), start, end)


# ── grounding ────────────────────────────────────────────────────────────────────────────────────────────────────────

Span = tuple[float, float]


def grounding(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A recording and the name of an event, to the part where it is heard, among all events and quiet windows.

    Every part of the recording with that event is right; in the hard variant only the very event that was asked for.
    """
    files, corpus, asks = _open(task, hub), Corpus(), []
    heard: dict[str, list[tuple[float, float, str]]] = {}
    for fold in range(1, 5):
        for line in files.lines(f"{DEVELOPMENT}/evaluation_setup/street_fold{fold}_evaluate.txt"):
            path, _, start, end, name = (line.split("\t") if line.count("\t") > 3 else line.split())[:5]
            heard.setdefault(path.strip(), []).append((float(start), float(end), name.strip()))
    for path in sorted(heard):
        recording = files.file("audio", f"{DEVELOPMENT}/{path}")
        seconds = wav.length(recording.read()[0])
        events = [(_within(start, end, seconds), name) for start, end, name in heard[path]]
        spans = [span for span, _ in events] + _quiet([span for span, _ in events], seconds)
        offered = [corpus.add(_called(path, span), partial(_segment, recording, span)) for span in spans]
        for span, name in events:
            alike = [other for other, called in events if called == name]
            right = [_called(path, one) for one in ([span] if task.options["parser"].endswith("_hard") else alike)]
            asks.append(Ask(_mmeb.compose(recording, name), right, offered))
    _mmeb.counted(task, split, len(asks))
    return _mmeb.dataset(task, asks, corpus)


DEVELOPMENT = "TUT-sound-events-2017-development"


def _within(start: float, end: float, seconds: float) -> Span:
    """A span inside the recording that is not empty."""
    start = max(0.0, start)
    end = min(end if end > start else start + SHORTEST, seconds)
    return (start, end) if end > start else (max(0.0, seconds - SHORTEST), seconds)


def _quiet(events: list[Span], seconds: float) -> list[Span]:
    """The first windows that hardly touch an event."""
    starts = np.arange(0, max(0.0, seconds - WINDOW) + 1e-9, STRIDE) if seconds >= WINDOW else ()
    spans = ((float(start), float(start) + WINDOW) for start in starts)
    return [span for span in spans if all(_overlap(span, event) < OVERLAP for event in events)][:WINDOWS]


def _overlap(one: Span, other: Span) -> float:
    """Shared time over the time from the first start to the last end."""
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0])) / (max(one[1], other[1]) - min(one[0], other[0]))


def _called(path: str, span: Span) -> str:
    return f"{path}|{span[0]:.3f}-{span[1]:.3f}"


def _segment(recording: Media, span: Span) -> Item:
    return items.media("audio", partial(_cut, recording, span))


def _cut(recording: Media, span: Span) -> bytes:
    return wav.cut(_whole(recording), *span)


@lru_cache(maxsize=2)
def _whole(recording: Media) -> bytes:
    """A recording is cut a hundred times in a row: it is read once."""
    return recording.read()[0]


# ── sounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _open(task: Task, hub: Hub) -> Files:
    """The dataset's own tar; audio-tasks/AVE/AVE_Dataset is a folder of AVE."""
    return _mmeb.files(task.source, task.options["archive"], hub, task.options["path"].split("/")[1])


def _heard(files: Files, path: str) -> Item:
    return _mmeb.compose(files.file("audio", path), "")


def _sounds(files: Files, rows: Rows) -> list[Media]:
    """The sound of each row: in a column, or in a file that a column names."""
    column = next((name for name in ("audio", "audio_bytes") if name in rows.names), None)
    found = rows.media("audio", column) if column else [None] * len(rows)
    if None not in found:
        return [sound for sound in found if sound]
    paths = _mmeb.column(rows, next((name for name in PATHS if name in rows.names), PATHS[0]))
    folds = _mmeb.column(rows, "fold", None)
    told = (
        path if not path or "/" in path or fold is None else f"fold{fold}/{path}"
        for path, fold in zip(paths, folds, strict=True)
    )
    return [sound or files.file("audio", files.find(path or "")) for sound, path in zip(found, told, strict=True)]
