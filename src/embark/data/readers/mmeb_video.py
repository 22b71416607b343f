"""MMEB's video group: rows of texts and video names, and archives of up to 64 frames a video.

Models see as many of the frames as their card says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from embark.data.fetch import Hub
from embark.data.layout import natural
from embark.data.readers import _mmeb
from embark.data.readers._mmeb import Ask, Corpus, Files
from embark.data.rows import Rows
from embark.types import Dataset, EmbarkError, Item, Media, Task

VERSION = 1

needed = _mmeb.needed


def classification(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A video to the name of its class: among the row's own names, or those of all rows and the task."""
    rows, films, corpus = _mmeb.rows_of(task, split, hub), _films(task, hub), Corpus()
    asks = []
    for video, right, own in zip(
        rows.values("video_id"), rows.values("pos_text"), _mmeb.column(rows, "neg_text", ()), strict=True
    ):
        offered = [_text(corpus, name) for name in own or () if task.options["parser"] == "ssv2"]
        asks.append(Ask(_mmeb.compose(films.film(str(video)), ""), [_text(corpus, right)], offered))
    for name in task.labels:
        _text(corpus, name)
    return _mmeb.dataset(task, asks, corpus)


def retrieval(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A caption to its video, among the videos of all rows."""
    name, said = CAPTIONS[task.options["parser"]]
    rows, films, corpus, asks = _mmeb.rows_of(task, split, hub), _films(task, hub), Corpus(), []
    for video, caption in zip(rows.values(name), rows.values(said), strict=True):
        video = PurePosixPath(str(video)).stem if name == "video" else str(video)
        corpus.add(video, partial(_shown, films, video))
        asks.append(Ask(_mmeb.compose(None, _mmeb.first(caption)), [video]))
    return _mmeb.dataset(task, asks, corpus)


CAPTIONS = {  # the columns of a video's name and of its captions
    "msrvtt": ("video_id", "caption"),
    "msvd": ("video_id", "caption"),
    "didemo": ("video", "caption"),
    "vatex": ("videoID", "enCap"),
    "youcook2": ("id", "sentence"),
}


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

Question = tuple[str, str, list[tuple[str, str]], int]  # the folder, what is asked, options (name, text), the right one


def questions(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A video and a question with its options, to one of the options."""
    films, corpus, asks = _films(task, hub), Corpus(), []
    for folder, asked, options, right in QUESTIONS[task.options["parser"]](task, split, hub):
        names = [corpus.add(name, partial(_mmeb.compose, None, text)) for name, text in options]
        asks.append(Ask(_mmeb.compose(films.film(folder), asked), [names[right]], names))
    return _mmeb.dataset(task, asks, corpus)


def _mvbench(task: Task, split: str, hub: Hub) -> Iterator[Question]:
    """Twenty tables; options keep their letters."""
    for config in task.options["configs"]:
        rows = _mmeb.rows_of(task, split, hub, config)
        for video, asked, options, right in _columns(rows, "video", "question", "candidates", "answer"):
            shown = _lettered(options)
            if right not in options:
                raise EmbarkError(f"MVBench ({config}): '{right}' answers '{asked}', but it is no option.")
            yield f"{config}/{video}", _listed(asked, shown), [(one, one) for one in shown], options.index(right)


def _nextqa(task: Task, split: str, hub: Hub) -> Iterator[Question]:
    """Options are lettered in the question alone."""
    rows = _mmeb.rows_of(task, split, hub)
    for video, asked, right, *options in _columns(rows, "video", "question", "answer", "a0", "a1", "a2", "a3", "a4"):
        yield str(video), _listed(asked, _lettered(options)), [(one, one) for one in options], int(right)


def _videomme(task: Task, split: str, hub: Hub) -> Iterator[Question]:
    """Options come with letters, which name them; their texts go without."""
    rows = _mmeb.rows_of(task, split, hub)
    for video, asked, options, right in _columns(rows, "videoID", "question", "options", "answer"):
        yield str(video), "\n".join([asked, *options]), [(one, _unlettered(one)) for one in options], ord(right) - 65


def _egoschema(task: Task, split: str, hub: Hub) -> Iterator[Question]:
    """As above; the options follow the question without a break, as published."""
    rows = _mmeb.rows_of(task, split, hub)
    for video, asked, options, right in _columns(rows, "video_idx", "question", "option", "answer"):
        yield str(video), asked + " ".join(options), [(one, _unlettered(one)) for one in options], int(right)


def _activitynetqa(task: Task, split: str, hub: Hub) -> Iterator[Question]:
    rows = _mmeb.rows_of(task, split, hub)
    for video, asked, right in _columns(rows, "video_name", "question", "answer"):
        yield f"v_{video}", f"{asked}? (A) yes; (B) no.", [("yes", "yes"), ("no", "no")], ("yes", "no").index(right)


QUESTIONS: dict[str, Callable[[Task, str, Hub], Iterator[Question]]] = {
    "mvbench": _mvbench,
    "nextqa": _nextqa,
    "videomme": _videomme,
    "egoschema": _egoschema,
    "activitynetqa": _activitynetqa,
}


def _columns(rows: Rows, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows.values(name) for name in names), strict=True)


def _lettered(options: list[str]) -> list[str]:
    return [f"({chr(65 + at)}) {option}" for at, option in enumerate(options)]


def _unlettered(option: str) -> str:
    return option[option.find(". ") :].strip(". ")


def _listed(question: str, options: list[str]) -> str:
    return "\n".join([question, "Options:", *options]).rstrip()


# ── moments ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def moments(task: Task, split: str, subset: str, hub: Hub) -> Dataset:
    """A sentence, mostly with a video, to the clip that shows it."""
    rows, films, corpus = _mmeb.rows_of(task, split, hub), _films(task, hub), Corpus()
    read = _seeking if task.options["parser"] == "momentseeker" else _clips
    asks = list(read(task, rows, films, corpus))
    return _mmeb.dataset(task, asks, corpus)


def _clips(task: Task, rows: Rows, films: Files, corpus: Corpus) -> Iterator[Ask]:
    """A video's folder holds its own frames in "query" and those of its clips beside it; the right ones say so."""
    inside: dict[str, list[str]] = {}
    for folder in sorted(films.folders, key=natural):
        inside.setdefault(folder.partition("/")[0], []).append(folder)
    for sentence, path in _columns(rows, "query", "video_path"):
        video = PurePosixPath(path).stem
        clips = [folder for folder in inside.get(video, ()) if folder.count("/") == 1 and folder != f"{video}/query"]
        offered = [corpus.add(clip, partial(_shown, films, clip)) for clip in clips]
        right = [clip for clip in offered if clip.partition("/")[2].startswith("positive")]
        if not right:
            raise EmbarkError(f"Task {task.name}: video {video} has no positive clip among {len(clips)}.")
        yield Ask(_mmeb.compose(films.film(f"{video}/query"), sentence), right, offered)


def _seeking(task: Task, rows: Rows, films: Files, corpus: Corpus) -> Iterator[Ask]:
    """MomentSeeker: words alone, or with an image or a video; several clips may be right."""
    named = ("query", "input_frames", "positive_frames", "negative_frames")
    for sentence, beside, right, wrong in _columns(rows, *named):
        clips = [_folder(one["output_path"]) for one in (*right, *wrong)]
        offered = [corpus.add(clip, partial(_shown, films, clip)) for clip in clips]
        kind, media = _beside(films, beside or "")
        said = _mmeb.told(task.options["instructions"][kind], sentence, "")
        yield Ask(_mmeb.compose(media, said), offered[: len(right)], offered)


def _beside(films: Files, path: str) -> tuple[str, Media | None]:
    if path.endswith(".mp4"):
        return "video", films.film(_folder(path))
    return ("image", films.file("image", f"query_{path}")) if path else ("text", None)


def _folder(path: str) -> str:
    return "video_frames/" + path.partition(".mp4")[0].replace("/", "_")


def _shown(films: Files, folder: str) -> Item:
    return _mmeb.compose(films.film(folder), "")


def _films(task: Task, hub: Hub) -> Files:
    """A folder of frames a film, under the dataset's folder or one that the row names."""
    name = _mmeb.label(task)
    return _mmeb.media(task, hub, *task.options.get("folders", (f"{name}/frames", name)))


def _text(corpus: Corpus, name: str) -> str:
    return corpus.add(name, partial(_mmeb.compose, None, name))
