"""Scores on disk: one JSON per (model, revision, task) that mteb's tools can read, outcomes in Parquet beside it.

    results/<org>__<model>/<revision>/<Task>.json, <Task>.parquet, model_meta.json

Scores under another protocol than the paper's lie beside them, as <Task>@<protocol>.json, and those of another tool as
<Task>~<tool>.json, without outcomes.

A record counts as computed when its protocol's and encoder's fingerprints are those of the run at hand. A file states
the checksums of its own content and of its outcomes; one that cannot be read, or does not match, is named by a note and
left out; a run sets it aside as *.damaged and computes it again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from embark.atomic import NO_ROOM, atomically
from embark.catalogue import group_values
from embark.models.card_facts import public_card
from embark.paths import leads_out, place
from embark.redaction import Private, last_name, redacted_value
from embark.results.schema import (
    ABOUT,
    LARGEST_BYTES,
    LARGEST_CARD,
    LARGEST_OUTCOMES,
    LOOKS,
    META,
    NO_INTERVAL,
    OURS,
    PREDICTED,
    SAMPLED,
    Damaged,
    Record,
    Replaced,
    TaskResult,
    card_content,
    finite,
    json_bytes,
    outcomes_bytes,
    outcomes_in,
    parse_card,
    parse_result,
    read_card,
    read_result,
    result_bytes,
    result_content,
)
from embark.types import EmbarkError, ModelCard, Task

__all__ = [
    "ABOUT",
    "COMMIT",
    "LARGEST_BYTES",
    "LARGEST_CARD",
    "LARGEST_OUTCOMES",
    "LONG_COLUMNS",
    "META",
    "NO_INTERVAL",
    "OURS",
    "PREDICTED",
    "SAMPLED",
    "CannotSave",
    "Damaged",
    "Record",
    "Replaced",
    "Results",
    "TaskResult",
    "finite",
    "long_table",
    "mark_commits",
    "outcome_columns",
    "outcomes_in",
    "outgoing_card",
    "outgoing_result",
    "parse_card",
    "parse_result",
]  # fmt: skip
COMMIT = "scored on commit "  # how the mark of scores on other data begins


class CannotSave(EmbarkError):
    """Results cannot be written: no model could be evaluated."""


class Results:
    """The results folder; `notes` name the files that are damaged. A run sets them aside, readers leave them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes: list[str] = []

    def folder(self, model: str, revision: str) -> Path:
        """The folder of a model's results."""
        return place(place(self.root, model), revision)

    def load(self, model: str, revision: str, task: str, protocol: str = "paper") -> TaskResult | None:
        """The stored result, if there is one of ours that is whole, outcomes and all."""
        path = place(self.folder(model, revision), _stem(task, protocol), ".json")
        try:
            result = read_result(path) if path.is_file() else None
            if result is not None and (result.checksum or path.with_suffix(".parquet").exists()):
                result.outcomes()
            return result
        except Damaged as damage:
            self._set_aside(damage)
        except FileNotFoundError:
            note = f"{path} has lost its outcomes ({path.stem}.parquet) and is computed again"
            if note not in self.notes:
                self.notes.append(note)
        return None

    def save(self, result: TaskResult, card: ModelCard, outcomes: Sequence[Mapping[str, Any]]) -> TaskResult:
        """Write outcomes, then scores (the commit), each in one step; a kill leaves the old files or the new ones.

        Where another process saves the same task, the pair that stays is of one of them: whoever finds the other's
        outcomes beside its own scores writes both again.
        """
        name = place(self.folder(result.model, result.revision), _stem(result.task, result.protocol), ".json").name
        path = (self.folder(result.model, result.revision) / name).with_suffix(".parquet")
        data = outcomes_bytes(outcomes, result)
        result = dataclasses.replace(result, checksum=hashlib.sha256(data).hexdigest())
        result_bytes(result_content(result))  # what cannot be written fails before anything is replaced
        for _ in range(LOOKS):
            _replace(path, data)
            saved = self.write(result, card, name)
            if path.is_file() and path.read_bytes() == data:
                break
        return saved

    def file(self, result: TaskResult) -> Path:
        """Where a result of ours belongs: the folder and the name that its model, task and protocol have on disk."""
        folder = self.folder(result.model, result.revision)
        return place(folder, _stem(result.task, result.protocol), ".json")

    def write(self, result: TaskResult, card: ModelCard | None, name: str = "") -> TaskResult:
        """Write scores alone; by default under a name that tells their protocol and the tool that made them."""
        folder = self.folder(result.model, result.revision)
        tool = "" if result.made_by == "embark" else f"~{result.made_by}"
        path = folder / name if name else place(folder, _stem(result.task, result.protocol) + tool, ".json")
        meta = {"name": result.model, "revision": result.revision} if card is None else card_content(card)
        if card is not None or not (folder / META).exists():
            _replace(folder / META, json_bytes(meta))
        _replace(path, result_bytes(result_content(result)))
        return dataclasses.replace(result, path=path)

    def check(self) -> None:
        """Raise `CannotSave` if scores cannot be written, before hours are spent on embedding."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise CannotSave(f"Scores cannot be written to {self.root} ({error.strerror}): set --results.") from error

    def all(self) -> Iterator[TaskResult]:
        """Every result of ours in the folder; notes name those that are damaged."""
        for path in self.files():
            try:
                result = read_result(path) if path.is_file() else None
            except Damaged as damage:
                self.notes.append(f"left out: {damage}")
                continue
            if result is not None:
                yield result

    def files(self) -> list[Path]:
        """The files of scores and cards; folders that are links to elsewhere are not looked into."""
        models = _folders(self.root, self.root)
        revisions = [revision for model in models for revision in _folders(model, self.root)]
        return sorted(path for revision in revisions for path in revision.glob("*.json"))

    def cards(self) -> list[ModelCard]:
        """The cards of the models that have results of ours in the folder."""
        cards = [read_card(path) for path in self.files() if path.name == META]
        return [card for card in cards if card is not None]

    def _set_aside(self, damage: Damaged) -> None:
        """Keep a damaged file under another name, so that what it held is computed again; a note says so."""
        aside = damage.path.with_name(f"{damage.path.name}.damaged")
        try:
            damage.path.replace(aside)
            self.notes.append(f"damaged and set aside as {aside} ({damage.reason}): the next run computes it again")
        except OSError as error:
            self.notes.append(f"damaged and left out: {damage.path} ({damage.reason}; {error.strerror})")


def _stem(task: str, protocol: str) -> str:
    """The file name of a result, without its ending; it names the protocol unless that is the paper's."""
    return task if protocol == "paper" else f"{task}@{protocol}"


def outcome_columns(split: str, subset: str, ids: Any, outcomes: Mapping[str, Any]) -> dict[str, Any]:
    """Per-item outcomes of one record as columns, which are lists, numpy or Arrow arrays."""
    return {"split": pa.repeat(split, len(ids)), "subset": pa.repeat(subset, len(ids)), "id": ids, **outcomes}


NESTED = ("metrics", "counts", "timings", "versions", "loaded", "interval", "warnings", "languages")
RECORD_COLUMNS = tuple(field.name for field in dataclasses.fields(Record) if field.name not in NESTED)
LONG_COLUMNS = (*RECORD_COLUMNS, "low", "high", "protocol", "made_by", "items", "warnings")


def long_table(results: Iterable[TaskResult]) -> list[dict[str, Any]]:
    """One row per record, ready for a data frame."""
    return [_long_row(result, record) for result in results for record in result.records]


def _long_row(result: TaskResult, record: Record) -> dict[str, Any]:
    low, high = record.interval
    return {name: getattr(record, name) for name in RECORD_COLUMNS} | {
        "low": low,
        "high": high,
        "protocol": result.protocol,
        "made_by": result.made_by,
        "items": record.counts.get("items"),
        "warnings": "; ".join(record.warnings),
    }


def mark_commits(results: Iterable[TaskResult]) -> list[TaskResult]:
    """The results, with a warning on those whose data is another commit than that of most results of the same task.

    Where as many have one commit as the other, the newest result's counts.
    """
    listed = list(results)
    ours = [result for result in listed if result.made_by == "embark"]  # others say so when they are imported
    ours.sort(key=lambda result: result.date, reverse=True)
    commits = group_values((result.task, result.dataset_revision) for result in ours)
    usual = {task: max(dict.fromkeys(of_task), key=of_task.count) for task, of_task in commits.items()}
    return [
        _warned(result, f"{COMMIT}{result.dataset_revision[:12]} of the data, other models on another")
        if result.made_by == "embark" and result.dataset_revision != usual[result.task]
        else result
        for result in listed
    ]


def _warned(result: TaskResult, warning: str) -> TaskResult:
    """A result with one more warning on each of its records."""
    records = [
        dataclasses.replace(record, warnings=tuple(dict.fromkeys((*record.warnings, warning))))
        for record in result.records
    ]
    return dataclasses.replace(result, records=tuple(records))


def _folders(folder: Path, root: Path) -> list[Path]:
    """The folders of a folder, without links that lead out of the root."""
    return [path for path in folder.glob("*") if path.is_dir() and not leads_out(path, root)]


def outgoing_result(result: TaskResult, private: Private) -> bytes:
    """A result's file as it may leave this machine, made from its fields."""
    if result.row is not None:
        result = dataclasses.replace(result, row=_outgoing_row(result.row))
    return result_bytes(redacted_value(finite(result_content(result)), private))


def outgoing_card(model: str, revision: str, card: ModelCard | None, private: Private) -> bytes:
    """The file beside a model's results as it may leave this machine: its card, made from the fields, or names."""
    meta = {"name": model, "revision": revision} if card is None else card_content(public_card(card))
    return json_bytes(redacted_value(finite(meta), private))


def _outgoing_row(row: Task) -> Task:
    """The row of an own task for others: its folder by its last name, and still no data set of a hub."""
    id = row.source.id
    local = f"/{last_name(id)}" if Path(id).is_absolute() else id
    return dataclasses.replace(row, source=dataclasses.replace(row.source, id=local))


def _replace(path: Path, data: bytes) -> None:
    try:
        with atomically(path) as out:
            out.write(data)
    except OSError as error:
        if error.errno in NO_ROOM:
            need = f"There is no room for {path}: it needs {len(data):,} bytes ({error.strerror})."
            advice = "Make room, or choose another disk with --results, and run again: no vector is lost."
            raise EmbarkError(f"{need} {advice}") from error
        text = f"The scores could not be written to {path} ({error}). Solve that and run again: no vector is lost."
        raise EmbarkError(text) from error
