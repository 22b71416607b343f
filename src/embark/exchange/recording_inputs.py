"""Inputs for generators and re-rankers that run elsewhere: a file of questions, which becomes a `recorded:` model.

A line has the input as a recorded file names it, the prompt, an id for people, and an empty "output" (or "score"); the
pictures, sounds and films lie beside it, named by their hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from embark.catalogue import check_name, counted
from embark.exchange.ranked_lists import StagedUnlabeled, Unlabeled, ranking_of
from embark.field_types import checked
from embark.models import Loading
from embark.models.encoder import Encoder, Reranker
from embark.models.recorded import as_stored, input_key, input_of
from embark.outgoing import write_bytes, write_text
from embark.planning import Demand
from embark.redaction import Content
from embark.results.selection import select_tasks
from embark.run.models import load_model
from embark.run.stages import DEPTH, Stages, caption_inputs, prompt_text, prompts, rewrite_inputs
from embark.settings import Settings, load_settings
from embark.tasks import Tasks
from embark.types import MODALITIES, Array, EmbarkError, Item, ModelCard, Task, Text

STAGES = ("caption", "rewrite", "rerank")
ANSWERS = {"caption": "output", "rewrite": "output", "rerank": "score"}  # what is filled in
LOADERS = {"caption": "recorded", "rewrite": "recorded", "rerank": "recorded-scores"}
MEDIA = "media"  # folder
HEADS = {
    b"\x89PNG": ".png", b"\xff\xd8": ".jpg", b"GIF8": ".gif", b"BM": ".bmp", b"fLaC": ".flac", b"OggS": ".ogg",
    b"ID3": ".mp3", b"\x1aE\xdf\xa3": ".mkv",
}  # fmt: skip


@dataclass(frozen=True)
class RecordingInputs:
    """A file of inputs: how many lines it has, how many of them are new, and how many wait to be filled."""

    path: Path
    stage: str
    count: int
    new: int
    empty: int

    def sentence(self) -> str:
        """What was written, and what to do with it."""
        name = f"--{self.stage} {LOADERS[self.stage]}:{self.path}"
        todo = f'Fill in "{ANSWERS[self.stage]}" of {self.empty:,}, then: {name}' if self.empty else f"Use it: {name}"
        return f"{counted(self.count, 'input')} in {self.path}, {self.new:,} of them new. {todo}"


@checked
def export_inputs(
    out: Path | str,
    tasks: Tasks,
    stage: str,
    *,
    model: str | Encoder | None = None,
    stages: Stages | None = None,
    depth: int = DEPTH,
    prompt: str | Path | None = None,
    settings: Settings | None = None,
    loading: Loading | None = None,
    show_progress: bool = True,
) -> RecordingInputs:
    """Write what a stage's model would be asked about tasks into OUT/<stage>.jsonl, and the media beside it.

    `stage` is caption, rewrite or rerank. For "rerank", `model` ranks first, with the `stages` before it, and the
    `depth` best documents of each query are written. `prompt` is what the generator is asked instead of our own words.
    A file that is there keeps its lines, filled or not; what is missing is added.
    """
    check_name("stage", stage, STAGES)
    settings = settings or load_settings()
    rows = select_tasks(tasks, None, settings)
    if others := [row.name for row in rows if row.evaluator != "retrieval"]:
        raise EmbarkError(f"Only retrieval tasks have stages; {', '.join(others[:3])} do not. Leave them out.")
    root = Path(out)
    if stage == "rerank":
        if model is None:
            raise EmbarkError("Name the model whose best documents are re-ranked (-m).")
        encoder = load_model(model, loading, settings)
        unlabeled = Unlabeled(settings, show_progress=show_progress)
        before = replace(stages or Stages(), rerank=_Unnamed(), depth=depth)
        lines = _pairs(_PairCollector(before, loading or Loading(), unlabeled), encoder, rows, root)
    else:
        words = prompts()[stage] if prompt is None else prompt_text(stage, prompt)
        lines = _inputs(Unlabeled(settings, show_progress=show_progress), rows, stage, words, root)
    return _merged(root / f"{stage}.jsonl", stage, lines)


def _inputs(bench: Unlabeled, rows: list[Task], stage: str, prompt: str, root: Path) -> Iterator[dict[str, Any]]:
    """The lines of a generator."""
    for task in rows:
        for part in task.parts:
            data = bench.read(task, *part)
            items = caption_inputs(data) if stage == "caption" else rewrite_inputs(data, MODALITIES)
            for id, item in items:
                _write_media(item, root / MEDIA)
                yield {"id": f"{task.name}/{id}", "prompt": prompt, "input": input_of(item), "output": None}


def _pairs(bench: _PairCollector, encoder: Encoder, rows: list[Task], root: Path) -> Iterator[dict[str, Any]]:
    """The lines of a re-ranker."""
    for task in map(bench.row, rows):
        if why := bench.incompatibility(encoder.card, task):
            raise EmbarkError(f"{encoder.card.name} cannot do {task.name}: {why}.")
        for part in task.parts:
            bench.pairs.clear()
            ranking_of(bench, encoder, task, *part, bench.depth)
            for id, query, document in bench.pairs:
                _write_media(query, root / MEDIA)
                _write_media(document, root / MEDIA)
                instruction = {"instruction": words} if (words := task.instruction("query", part[1])) else {}
                pair = {"query": input_of(query), "document": input_of(document)}
                yield {"id": f"{task.name}/{id}", **instruction, **pair, "score": None}


class _Unnamed(Reranker):
    """Stands for the re-ranker that runs elsewhere."""

    card = ModelCard("recorded/unnamed", "1", "recorded-scores", MODALITIES, kind="reranker", dim=1)

    def score(self, batch: Sequence[Any]) -> Array:
        raise NotImplementedError  # pairs are written instead


class _PairCollector(StagedUnlabeled):
    """Remembers the pairs that would be scored, with their ids, and scores none."""

    def __init__(self, stages: Stages, loading: Loading, bench: Unlabeled) -> None:
        super().__init__(stages, loading, bench)
        self.pairs: list[tuple[str, Item, Item]] = []

    def reranker_scores(self, demand: Demand, query: Array, document: Array) -> Array:
        queries = demand.data.sides["query"]
        documents = demand.data.sides["document"]
        self.pairs += [
            (f"{queries.ids[q]}/{documents.ids[d]}", queries.items[q], documents.items[d])
            for q, d in zip(query.tolist(), document.tolist(), strict=True)
        ]
        return np.zeros(len(query), np.float32)


def _merged(path: Path, stage: str, lines: Iterator[dict[str, Any]]) -> RecordingInputs:
    """The file with the lines that it lacks added."""
    known = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    rows = {_key(row): row for line in known if line.strip() and _key(row := json.loads(line))}
    defaults = [line for line in known if line.strip() and not _key(json.loads(line))]
    before = len(rows)
    for line in lines:
        rows.setdefault(_key(line), line)
    text = [*defaults, *(json.dumps(row, ensure_ascii=False) for row in rows.values())]
    write_text(path, Content("".join(f"{line}\n" for line in text)))  # questions about items: content
    empty = sum(row.get(ANSWERS[stage]) is None for row in rows.values())
    return RecordingInputs(path, stage, len(rows), len(rows) - before, empty)


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    """What a line is about; nothing, where it states a default."""
    return tuple(input_key(row[name]) for name in ("input", "query", "document") if name in row)


def _write_media(item: Item, folder: Path) -> None:
    """The files of an item, named by their hashes as its input names them."""
    for part in item.parts:
        if isinstance(part, Text):
            continue
        for data in as_stored(part).read():
            path = folder / f"{sha256(data).hexdigest()}{_ending(data)}"
            if not path.exists():
                write_bytes(path, data)


def _ending(data: bytes) -> str:
    """The ending of a file by its first bytes; none where they are not known."""
    inner = {b"WEBP": ".webp", b"WAVE": ".wav"}.get(data[8:12], "") or (".mp4" if data[4:8] == b"ftyp" else "")
    return next((ending for head, ending in HEADS.items() if data.startswith(head)), inner)
