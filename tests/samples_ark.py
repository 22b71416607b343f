"""ARK's folders of pictures with tables of metadata, and the labels that users supply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from embark.tasks.ark import DEMANDS, SKILLS, TASKS
from embark.types import Task
from samples_mieb import picture
from sizes import Size, few, pooled

FIRST_FILE = 131  # files are numbered otherwise than ids


def files(size: Size = few) -> dict[str, bytes]:
    """The whole dataset: a gallery a topic; queries are texts, pictures with texts, or several pictures."""
    out: dict[str, bytes] = {}
    gallery, queries = [], []
    for task in TASKS:
        topic, asked, shown = _counts(task, size)
        for at in range(shown):
            name = f"{topic}_{at + FIRST_FILE:06d}.jpg"
            out[f"data/gallery/{name}"] = picture(at, f"gallery/{topic}", "jpg")
            gallery.append({"file_name": name, "topic": topic, "corpus_id": at})
        modality = task.tags["query_modality"]
        for at in range(asked):
            row: dict[str, object] = {"topic": topic, "query_id": at}
            count = 2 if "several" in modality else int("image" in modality and (at % 2 == 0 or "may" not in modality))
            names = [f"{topic}_{at:06d}_{number}.png" for number in range(count)]
            out |= {f"data/queries/{name}": picture(at, f"queries/{name}") for name in names}
            if "text" in modality:
                row["query"] = f"question {at} about {topic}"
            if names:
                row["file_names"] = names
            queries.append(row)
    out["data/gallery/metadata.jsonl"] = _lines(gallery)
    out["data/queries/metadata.jsonl"] = _lines(queries)
    return out


def labels(size: Size = few) -> str:
    """A CSV of labels for every query."""
    rows = ["topic,query_id,corpus_id,skills,demand"]
    skills, demands = list(SKILLS), list(DEMANDS)
    for number, task in enumerate(TASKS):
        topic, asked, shown = _counts(task, size)
        rows += [
            f"{topic},{at},{at * 2 % shown},{skills[number % len(skills)]},{demands[at % len(demands)]}"
            for at in range(asked)
        ]
    return "\n".join([*rows, ""])


def _counts(task: Task, size: Size) -> tuple[str, int, int]:
    return str(task.options["topic"]), size(pooled(task, "query"), 3), size(pooled(task, "document"), 4)


def _lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
