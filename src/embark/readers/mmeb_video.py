"""MMEB's video group: rows of texts and video names, and archives of up to 64 frames per video.

Models see as many of the frames as the row's style says, or else their card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath

from embark import items
from embark.catalogue import group_values
from embark.hub import Hub
from embark.readers import _mmeb
from embark.readers._mmeb import ArchiveFolder, Corpus, Query
from embark.readers.layout import natural
from embark.readers.rows import Rows
from embark.types import EmbarkError, Item, Media, Task


def classification(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A video to the name of its class: among the row's own names, or those of all rows and the task."""
    rows = _mmeb.task_rows(task, split, hub)
    videos = _open_videos(task, hub)
    negatives = _mmeb.optional_column(rows, "neg_text", ())
    for (video, label), names in zip(rows.tuples("video_id", "pos_text"), negatives, strict=True):
        candidates = [_add_text(corpus, name) for name in names or () if task.options["parser"] == "ssv2"]
        yield Query(_video(videos, str(video)), [_add_text(corpus, label)], candidates)
    for name in task.labels:
        _add_text(corpus, name)


def retrieval(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A caption to its video, among the videos of all rows."""
    rows = _mmeb.task_rows(task, split, hub)
    videos = _open_videos(task, hub)
    columns = CAPTIONS[task.options["parser"]]
    for path, captions in rows.tuples(*columns):
        name = PurePosixPath(str(path)).stem if columns[0] == "video" else str(path)
        corpus.add(name, partial(_video, videos, name))
        caption = captions[0] if isinstance(captions, list) else captions
        yield Query(items.text(str(caption)), [name])


CAPTIONS = {  # the columns of a video's name and of its captions
    "msrvtt": ("video_id", "caption"),
    "msvd": ("video_id", "caption"),
    "didemo": ("video", "caption"),
    "vatex": ("videoID", "enCap"),
    "youcook2": ("id", "sentence"),
}


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

Question = tuple[str, str, list[tuple[str, str]], int]  # video, text, choices (name, text), position of the right one


def questions(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A video and a question with its choices, to one of the choices; the tables may be several configs."""
    videos = _open_videos(task, hub)
    for config in task.options.get("configs", (None,)):
        rows = _mmeb.task_rows(task, split, hub, config)
        for video, question, choices, answer in QUESTIONS[task.options["parser"]](rows):
            names = [corpus.add(name, partial(items.text, text)) for name, text in choices]
            if not 0 <= answer < len(names):
                raise EmbarkError(f"{rows.name}: the answer to '{question}' is none of its {len(names)} choices.")
            frames = videos.video(f"{config}/{video}" if config else video)
            yield Query(_mmeb.compose(frames, question), [names[answer]], names)


def _mvbench(rows: Rows) -> Iterator[Question]:
    """Choices keep their letters."""
    for video, question, choices, answer in rows.tuples("video", "question", "candidates", "answer"):
        if answer not in choices:
            raise EmbarkError(f"{rows.name}: '{answer}' answers '{question}', but it is none of the choices.")
        text, lettered = _with_choices(question, choices)
        yield str(video), text, [(choice, choice) for choice in lettered], choices.index(answer)


def _nextqa(rows: Rows) -> Iterator[Question]:
    """Choices have letters in the question alone."""
    for video, question, answer, *choices in rows.tuples("video", "question", "answer", "a0", "a1", "a2", "a3", "a4"):
        text, _ = _with_choices(question, choices)
        yield str(video), text, [(choice, choice) for choice in choices], int(answer)


def _videomme(rows: Rows) -> Iterator[Question]:
    """Choices come with letters, which are part of their names but not of their texts."""
    for video, question, choices, letter in rows.tuples("videoID", "question", "options", "answer"):
        yield str(video), "\n".join([question, *choices]), _without_letters(choices), ord(letter) - ord("A")


def _egoschema(rows: Rows) -> Iterator[Question]:
    """As above; the choices follow the question without a break, as published."""
    for video, question, choices, answer in rows.tuples("video_idx", "question", "option", "answer"):
        yield str(video), question + " ".join(choices), _without_letters(choices), int(answer)


def _activitynetqa(rows: Rows) -> Iterator[Question]:
    for video, question, answer in rows.tuples("video_name", "question", "answer"):
        choices = [("yes", "yes"), ("no", "no")]
        yield f"v_{video}", f"{question}? (A) yes; (B) no.", choices, ("yes", "no").index(answer)


QUESTIONS: dict[str, Callable[[Rows], Iterator[Question]]] = {
    "mvbench": _mvbench,
    "nextqa": _nextqa,
    "videomme": _videomme,
    "egoschema": _egoschema,
    "activitynetqa": _activitynetqa,
}


def _with_choices(question: str, choices: list[str]) -> tuple[str, list[str]]:
    """The question followed by its choices with letters, and these choices."""
    lettered = [f"({chr(ord('A') + number)}) {choice}" for number, choice in enumerate(choices)]
    return "\n".join([question, "Options:", *lettered]).rstrip(), lettered


def _without_letters(choices: list[str]) -> list[tuple[str, str]]:
    """The choices by name, and their texts without letters."""
    return [(choice, choice[choice.find(". ") :].strip(". ")) for choice in choices]


# ── moments ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def moments(task: Task, split: str, hub: Hub, corpus: Corpus) -> Iterator[Query]:
    """A sentence, mostly with a video, to the clip that shows it."""
    read = _momentseeker if task.options["parser"] == "momentseeker" else _clips
    return read(task, _mmeb.task_rows(task, split, hub), _open_videos(task, hub), corpus)


def _clips(task: Task, rows: Rows, videos: ArchiveFolder, corpus: Corpus) -> Iterator[Query]:
    """A video's folder has its frames in "query", and a folder for each clip; those called "positive…" are relevant."""
    folders = group_values((path.partition("/")[0], path) for path in sorted(videos.folders, key=natural))
    for sentence, video_path in rows.tuples("query", "video_path"):
        video = PurePosixPath(video_path).stem
        clips = [path for path in folders.get(video, ()) if path.count("/") == 1 and path != f"{video}/query"]
        for clip in clips:
            corpus.add(clip, partial(_video, videos, clip))
        relevant = [clip for clip in clips if clip.startswith(f"{video}/positive")]
        if not relevant:
            raise EmbarkError(f"Task {task.name}: video {video} has no positive clip among {len(clips)}.")
        yield Query(_mmeb.compose(videos.video(f"{video}/query"), sentence), relevant, clips)


def _momentseeker(task: Task, rows: Rows, videos: ArchiveFolder, corpus: Corpus) -> Iterator[Query]:
    """A text alone, or with an image or a video; several clips may be right."""
    columns = ("query", "input_frames", "positive_frames", "negative_frames")
    for sentence, path, positives, negatives in rows.tuples(*columns):
        clips = [_frames_folder(clip["output_path"]) for clip in (*positives, *negatives)]
        for clip in clips:
            corpus.add(clip, partial(_video, videos, clip))
        kind, media = _query_media(videos, path or "")
        text = _mmeb.join_instruction(task.options["instructions"][kind], sentence, "")
        yield Query(_mmeb.compose(media, text), clips[: len(positives)], clips)


def _query_media(videos: ArchiveFolder, path: str) -> tuple[str, Media | None]:
    """The kind of a query (video, image or text) and its media."""
    if path.endswith(".mp4"):
        return "video", videos.video(_frames_folder(path))
    return ("image", videos.media("image", f"query_{path}")) if path else ("text", None)


def _frames_folder(path: str) -> str:
    return "video_frames/" + path.partition(".mp4")[0].replace("/", "_")


def _video(videos: ArchiveFolder, folder: str) -> Item:
    return Item((videos.video(folder),))


def _open_videos(task: Task, hub: Hub) -> ArchiveFolder:
    """A folder of frames for each video, under the dataset's folder or one that the task names."""
    name = _mmeb.dataset_name(task)
    return _mmeb.open_media(task, hub, *task.options.get("folders", (f"{name}/frames", name)))


def _add_text(corpus: Corpus, name: str) -> str:
    return corpus.add(name, partial(items.text, name))


CLASSIFICATION = _mmeb.reader("mmeb-video-classification", classification, _mmeb.WITH_MEDIA)
QA = _mmeb.reader("mmeb-video-qa", questions, _mmeb.WITH_MEDIA)
RETRIEVAL = _mmeb.reader("mmeb-video-retrieval", retrieval, _mmeb.WITH_MEDIA)
MOMENTS = _mmeb.reader("mmeb-moments", moments, _mmeb.WITH_MEDIA)
