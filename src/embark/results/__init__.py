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
import json
import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embark.catalogue import group_values
from embark.data.atomic import NO_ROOM, atomically
from embark.models.card_facts import public_card, stored_card
from embark.paths import leads_out, place
from embark.redaction import Private, last_name, redacted_value
from embark.results.task_rows import from_json, to_json
from embark.types import EmbarkError, ModelCard, Task

OF_RESULT = ("model", "revision", "score", "interval", "protocol", "made_by")
OF_RECORD = (
    "metric", "interval", "statistic", "encoder", "run", "counts", "timings", "versions", "loaded", "warnings",
)  # fmt: skip
OURS = "embark"  # the key under which our fields stand in an mteb-shaped entry
CHECKSUM = "checksum"  # of all else in the file
META = "model_meta.json"
SAMPLED = "sampled from"  # the count that results of a sample have
COMMIT = "scored on commit "  # how the mark of scores on other data begins
LARGEST = 256 << 20  # bytes of a file of scores; one that claims to be larger is none
PATIENCE = 20  # times, a twentieth of a second apart, that outcomes are looked at while another process writes them


@dataclass(frozen=True)
class Record:
    """One score: a model on one split and subset of a task, under one protocol."""

    model: str
    revision: str
    task: str
    split: str
    subset: str
    languages: tuple[str, ...]
    metric: str
    score: float
    interval: tuple[float, float]
    metrics: Mapping[str, float]
    fingerprint: str  # of the protocol: the row, the data and the versions of the code that can change a score
    encoder: str
    statistic: str = ""  # turns outcomes into the score and its interval, by name; empty: not recorded
    run: str = ""  # the evaluation that computed it; counts of shared items hold within one
    counts: Mapping[str, int] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    loaded: Mapping[str, Any] = field(default_factory=dict)  # how the model was loaded: device, library versions
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskResult:
    """A model's records on one task, their mean over subsets with its interval, and where the outcomes are."""

    model: str
    revision: str
    task: str
    dataset_revision: str
    records: tuple[Record, ...]
    score: float
    interval: tuple[float, float]
    date: float
    path: Path | None = None
    protocol: str = "paper"  # by name; its fingerprint is on each record
    made_by: str = "embark"  # or the paper or the tool that computed it
    row: Task | None = None  # of a task that is not in the catalogue
    checksum: str = field(default="", compare=False)  # sha256 of the file of outcomes; empty: not recorded

    @property
    def metric(self) -> str:
        """The main metric."""
        return self.records[0].metric

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning of its records, once."""
        return tuple(dict.fromkeys(w for record in self.records for w in record.warnings))

    def card(self) -> ModelCard | None:
        """The model's card, as it was kept beside its scores; None where there is none."""
        return None if self.path is None else _card(self.path.with_name(META))

    @property
    def sampled(self) -> bool:
        """Whether this is no full score, but that of a sample (`limit`)."""
        return any(SAMPLED in record.counts for record in self.records)

    def outcomes(self) -> pa.Table:
        """One row per item: split, subset, id, and the outcome columns; an error if they are not of this result."""
        if self.path is None:
            raise EmbarkError(f"The result of {self.model} on {self.task} is not on disk, so it has no outcomes.")
        path = self.path.with_suffix(".parquet")
        _require_own(path)
        for _ in range(PATIENCE):
            data = path.read_bytes()
            if not self.checksum or hashlib.sha256(data).hexdigest() == self.checksum:
                break
            if _stored_checksum(self.path) != self.checksum:
                raise Replaced(f"The result {self.path} was replaced while it was read: read it again.")
            time.sleep(0.05)  # another process has written outcomes, and its scores are to follow
        else:
            raise Damaged(path, "its content is not what was written with the scores")
        try:
            # Not read_table: it returns while its threads still work, and a process that ends then is aborted.
            return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        except (OSError, ValueError, KeyError) as error:  # pyarrow's errors among them
            raise Damaged(path, _reason(error)) from error


class CannotSave(EmbarkError):
    """Results cannot be written: no model could be evaluated."""


class Replaced(EmbarkError):
    """A result that another process wrote anew while its outcomes were read."""


class Damaged(EmbarkError):
    """A file of results that cannot be read; `path` is its place."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason}): run the task again, its vectors are kept.")
        self.path = path
        self.reason = reason


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
            result = _parse(path) if path.is_file() else None
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
        table = pa.concat_tables([pa.table(dict(columns)) for columns in outcomes], promote_options="default")
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        result = dataclasses.replace(result, checksum=hashlib.sha256(data).hexdigest())
        _content(result)  # what cannot be written fails before anything is replaced
        for _ in range(PATIENCE):
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
        meta = {"name": result.model, "revision": result.revision} if card is None else _meta(card)
        if card is not None or not (folder / META).exists():
            _replace(folder / META, _json(meta))
        _replace(path, _content(result))
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
                result = _parse(path) if path.is_file() else None
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
        cards = [_card(path) for path in self.files() if path.name == META]
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


PREDICTED = r"predicted(_run\d+)?"  # columns of outcomes that hold the class that an item gets; "label" is its own
ABOUT = "about_"  # begins the columns of outcomes that hold what the data tell about an item


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


def _mteb(result: TaskResult) -> dict[str, Any]:
    """The file's content: mteb's result layout, our fields under one key."""
    row = {} if result.row is None else {"row": to_json(result.row)}
    checksum = {"outcomes": result.checksum} if result.checksum else {}
    return {
        "dataset_revision": result.dataset_revision,
        "task_name": result.task,
        "mteb_version": result.records[0].versions.get("mteb"),
        "scores": group_values((record.split, _entry(record)) for record in result.records),
        "evaluation_time": sum(sum(record.timings.values()) for record in result.records),
        "kg_co2_emissions": None,
        "date": result.date,
        OURS: {name: getattr(result, name) for name in OF_RESULT} | row | checksum,
    }


def _entry(record: Record) -> dict[str, Any]:
    """A record as mteb has it, our fields under one key."""
    ours = {name: getattr(record, name) for name in OF_RECORD}
    return dict(record.metrics) | {
        "main_score": record.score,
        "hf_subset": record.subset,
        "languages": record.languages,
        OURS: ours | {"protocol": record.fingerprint},  # the name that it has had on disk from the start
    }


def _content(result: TaskResult) -> bytes:
    """The file's bytes, with their checksum in them."""
    content = finite(_mteb(result))
    content[OURS][CHECKSUM] = _checksum(content)
    return _json(content)


def _checksum(content: Mapping[str, Any]) -> str:
    """The sha256 of a file's values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _check(content: dict[str, Any]) -> None:
    """An error if the values are not those that were written; older files state no checksum."""
    checksum = content[OURS].pop(CHECKSUM, None)
    if checksum is None and (unknown := content[OURS].keys() - {*OF_RESULT, "row", "outcomes"}):
        raise ValueError(f"it has unknown fields: {', '.join(sorted(unknown))}")
    if checksum not in (None, _checksum(content)):
        raise ValueError("its content is not what was written")


def _parse(path: Path) -> TaskResult | None:
    """The result in a file, or None if the file is not of ours."""
    try:
        _require_own(path)
        if path.stat().st_size > LARGEST:
            raise Damaged(path, f"it is larger than {LARGEST >> 20} MiB")
        return parse_result(path.read_bytes(), path)
    except FileNotFoundError:  # replaced or set aside by another process
        return None


def parse_result(data: bytes, path: Path) -> TaskResult | None:
    """The result in the content of a file, whose place is `path`; None if it is not of ours."""
    try:
        content = json.loads(data)
        if path.name == META:
            dict(content)
            return None
        return _result(content, path) if isinstance(content, dict) and OURS in content else None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Damaged(path, _reason(error)) from error


def _folders(folder: Path, root: Path) -> list[Path]:
    """The folders of a folder, without links that lead out of the root."""
    return [path for path in folder.glob("*") if path.is_dir() and not leads_out(path, root)]


def _require_own(path: Path) -> None:
    """Raise an error for a pipe, which would be waited for, and for a link that leads out of the results: a stranger's
    folder may have links to whatever is on this machine.
    """
    if leads_out(path, path.parents[2]):
        raise Damaged(path, "it is a link, or behind one, that leads out of the results: put the file itself there")
    if path.exists() and not path.is_file():
        raise Damaged(path, "it is no file")


def _stored_checksum(path: Path) -> str | None:
    """The checksum of the outcomes that a result file on disk names."""
    return result.checksum if (result := _parse(path)) else None


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _result(content: dict[str, Any], path: Path) -> TaskResult:
    _check(content)
    top = content[OURS]
    names: dict[str, Any] = {"model": _words(top["model"]), "revision": _words(top["revision"])}
    names["task"] = _words(content["task_name"])
    records = []
    for split, entries in content["scores"].items():
        for entry in entries:
            ours = entry.pop(OURS)
            subset = _words(entry.pop("hf_subset"))
            languages = tuple(map(_words, entry.pop("languages")))
            score = _number(entry.pop("main_score"))
            metrics = {name: _number(value) for name, value in entry.items()}
            ours["fingerprint"] = ours.pop("protocol")
            ours["interval"] = _bounds(ours["interval"])
            ours["warnings"] = tuple(map(_words, ours["warnings"]))
            records.append(
                Record(**names, split=split, subset=subset, languages=languages, score=score, metrics=metrics, **ours)
            )
    if not records:
        raise ValueError("it has no scores")
    return TaskResult(
        **names, dataset_revision=_words(content["dataset_revision"]), records=tuple(records),
        score=_number(top["score"]), interval=_bounds(top["interval"]), date=_number(content["date"]), path=path,
        protocol=_words(top.get("protocol", "paper")), made_by=_words(top.get("made_by", "embark")),
        row=_row(top["row"], names["task"]) if "row" in top else None, checksum=_words(top.get("outcomes", "")),
    )  # fmt: skip


def _row(content: dict[str, Any], task: str) -> Task:
    """The row that a file states, of the task that the file is about."""
    row = from_json(content)
    if row.name != task:
        raise ValueError(f"its row is of another task, {row.name}")
    return row


def _number(value: object) -> float:
    """A number of a result file: null stands for NaN, which JSON lacks."""
    if value is None:
        return float("nan")
    if isinstance(value, (int, float)):
        return value
    raise TypeError(f"{value!r} is not a number")


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is not a text")


def _bounds(interval: Sequence[object]) -> tuple[float, float]:
    low, high = interval
    return _number(low), _number(high)


def _card(path: Path) -> ModelCard | None:
    """The card in a file beside results; None where there is none of ours."""
    try:
        _require_own(path)
        return parse_card(path.read_bytes())
    except (Damaged, OSError):
        return None


def parse_card(data: bytes) -> ModelCard | None:
    """The card in the content of a file; None where it is none of ours."""
    try:
        facts = json.loads(data)[OURS]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return stored_card(facts) if isinstance(facts, dict) else None


def outgoing_result(result: TaskResult, private: Private) -> bytes:
    """A result's file as it may leave this machine, made from its fields."""
    if result.row is not None:
        result = dataclasses.replace(result, row=_outgoing_row(result.row))
    content = redacted_value(finite(_mteb(result)), private)
    content[OURS][CHECKSUM] = _checksum(content)
    return _json(content)


def outgoing_card(model: str, revision: str, card: ModelCard | None, private: Private) -> bytes:
    """The file beside a model's results as it may leave this machine: its card, made from the fields, or names."""
    meta = {"name": model, "revision": revision} if card is None else _meta(public_card(card))
    return _json(redacted_value(finite(meta), private))


def _outgoing_row(row: Task) -> Task:
    """The row of an own task for others: its folder by its last name, and still no data set of a hub."""
    id = row.source.id
    local = f"/{last_name(id)}" if Path(id).is_absolute() else id
    return dataclasses.replace(row, source=dataclasses.replace(row.source, id=local))


def _meta(card: ModelCard) -> dict[str, Any]:
    return {"name": card.name, "revision": card.revision, OURS: vars(card)}


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def finite(value: Any) -> Any:
    """Plain values, with null for what is not finite: other tools' readers refuse NaN."""
    if isinstance(value, Mapping):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else finite(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (tuple, np.ndarray)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in a result file")


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
