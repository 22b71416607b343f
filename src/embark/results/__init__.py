"""Scores on disk: one JSON a (model, revision, task) that mteb's tools can read, outcomes in Parquet beside it.

    results/<org>__<model>/<revision>/<Task>.json, <Task>.parquet, model_meta.json

Scores under another protocol than the paper's lie beside them, as <Task>@<protocol>.json, and those of another tool as
<Task>~<tool>.json, without outcomes.

A record counts as computed when its protocol's and encoder's fingerprints are those of the run at hand.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embark.data.atomic import atomically
from embark.paths import place
from embark.results.task_rows import from_json, to_json
from embark.types import Array, EmbarkError, ModelCard, Task

SCORED_BY = (
    "name", "evaluator", "reader", "columns", "params", "options",
    "instructions", "labels", "templates", "metric", "unreadable",
)  # fmt: skip
OF_RESULT = ("model", "revision", "score", "interval", "protocol", "made_by")
OURS = "embark"  # the key under which our fields stand in an mteb-shaped entry


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

    @property
    def metric(self) -> str:
        """The main metric."""
        return self.records[0].metric

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning of its records, once."""
        return tuple(dict.fromkeys(w for record in self.records for w in record.warnings))

    def modalities(self) -> tuple[str, ...]:
        """What the model takes, as the card that was kept beside its scores says; nothing where there is none."""
        path = None if self.path is None else self.path.with_name("model_meta.json")
        facts = json.loads(path.read_text(encoding="utf-8")) if path and path.is_file() else {}
        return tuple(facts.get(OURS, {}).get("modalities", ()))

    def outcomes(self) -> pa.Table:
        """One row per item: split, subset, id, and the outcome columns."""
        if self.path is None:
            raise EmbarkError(f"The result of {self.model} on {self.task} is not on disk, so it has no outcomes.")
        return pq.read_table(self.path.with_suffix(".parquet"))


def fingerprint(task: Task, split: str, subset: str, evaluator: int, reader: int, external_state: str = "") -> str:
    """Fingerprint of all that can change a score besides the model: the row, the data, the code's versions."""
    stated = {name: getattr(task, name) for name in SCORED_BY}
    stated |= {"source": [task.source.id, task.source.revision, task.source.config, split, subset]}
    more = {"outside": external_state, "files": task.source.files}  # both are mostly empty
    stated |= {"versions": [evaluator, reader], **{name: value for name, value in more.items() if value}}
    text = json.dumps(stated, sort_keys=True, ensure_ascii=False, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Results:
    """The results folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, model: str, revision: str) -> Path:
        """The folder of a model's results."""
        return place(place(self.root, model), revision)

    def load(self, model: str, revision: str, task: str, protocol: str = "paper") -> TaskResult | None:
        """The stored result, if there is one of ours."""
        path = place(self.folder(model, revision), _stem(task, protocol), ".json")
        return _parse(path) if path.is_file() else None

    def save(self, result: TaskResult, card: ModelCard, outcomes: Sequence[Mapping[str, Any]]) -> TaskResult:
        """Write outcomes, then scores (the commit), each in one step; a kill leaves the old files or the new ones."""
        folder = self.folder(result.model, result.revision)
        name = place(folder, _stem(result.task, result.protocol), ".json").name
        table = pa.concat_tables([pa.table(dict(columns)) for columns in outcomes], promote_options="default")
        _replace((folder / name).with_suffix(".parquet"), lambda out: pq.write_table(table, out, compression="zstd"))
        return self.write(result, card, name)

    def write(self, result: TaskResult, card: ModelCard | None, name: str = "") -> TaskResult:
        """Write scores alone; by default under a name that tells their protocol and the tool that made them."""
        folder = self.folder(result.model, result.revision)
        tool = "" if result.made_by == "embark" else f"~{result.made_by}"
        path = folder / name if name else place(folder, _stem(result.task, result.protocol) + tool, ".json")
        meta = {"name": result.model, "revision": result.revision} if card is None else _meta(card)
        if card is not None or not (folder / "model_meta.json").exists():
            _replace(folder / "model_meta.json", lambda out: out.write(_json(meta).encode()))
        _replace(path, lambda out: out.write(_json(_mteb(result)).encode()))
        return dataclasses.replace(result, path=path)

    def check(self) -> None:
        """Raise an error if scores cannot be written, before hours are spent on embedding."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise EmbarkError(f"Scores cannot be written to {self.root} ({error.strerror}): set --results.") from error

    def all(self) -> Iterator[TaskResult]:
        """Every result of ours in the folder."""
        for path in sorted(self.root.glob("*/*/*.json")):
            if path.name != "model_meta.json" and (result := _parse(path)) is not None:
                yield result


def _stem(task: str, protocol: str) -> str:
    """The file name of a result, without its ending; it names the protocol unless that is the paper's."""
    return task if protocol == "paper" else f"{task}@{protocol}"


def outcome_columns(split: str, subset: str, ids: Sequence[str], outcomes: Mapping[str, Array]) -> dict[str, Any]:
    """Per-item outcomes of one record as columns."""
    count = len(ids)
    return {"split": [split] * count, "subset": [subset] * count, "id": list(ids)} | {
        k: v if isinstance(v, list) else np.asarray(v) for k, v in outcomes.items()
    }


NESTED = ("metrics", "counts", "timings", "versions", "loaded", "interval", "warnings", "languages")
RECORD_COLUMNS = tuple(field.name for field in dataclasses.fields(Record) if field.name not in NESTED)
LONG_COLUMNS = (*RECORD_COLUMNS, "low", "high", "protocol", "made_by", "items", "warnings")


def long_table(results: Iterable[TaskResult]) -> list[dict[str, Any]]:
    """One row per record, ready for a data frame."""
    rows = []
    for result in results:
        for record in result.records:
            row = {name: getattr(record, name) for name in RECORD_COLUMNS}
            low, high = record.interval
            more = {"items": record.counts.get("items"), "warnings": "; ".join(record.warnings)}
            rows.append(row | {"low": low, "high": high, "protocol": result.protocol, "made_by": result.made_by} | more)
    return rows


def _mteb(result: TaskResult) -> dict[str, Any]:
    """The file's content: mteb's result layout, our fields under one key."""
    row = {} if result.row is None else {"row": to_json(result.row)}
    scores: dict[str, list[dict[str, Any]]] = {}
    for record in result.records:
        ours = {
            name: getattr(record, name)
            for name in (
                "metric",
                "interval",
                "statistic",
                "encoder",
                "run",
                "counts",
                "timings",
                "versions",
                "loaded",
                "warnings",
            )
        }
        ours["protocol"] = record.fingerprint  # the name that it has had on disk from the start
        entry = dict(record.metrics) | {
            "main_score": record.score,
            "hf_subset": record.subset,
            "languages": record.languages,
        }
        scores.setdefault(record.split, []).append(entry | {OURS: ours})
    return {
        "dataset_revision": result.dataset_revision,
        "task_name": result.task,
        "mteb_version": result.records[0].versions.get("mteb"),
        "scores": scores,
        "evaluation_time": sum(sum(record.timings.values()) for record in result.records),
        "kg_co2_emissions": None,
        "date": result.date,
        OURS: {name: getattr(result, name) for name in OF_RESULT} | row,
    }


def _parse(path: Path) -> TaskResult | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise EmbarkError(
            f"The result file {path} is not valid JSON ({error}); delete it to compute it again."
        ) from error
    if not isinstance(content, dict) or OURS not in content:
        return None
    try:
        return _result(content, path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise EmbarkError(
            f"The result file {path} has the layout of another version of embark ({reason}); "
            "delete it to compute it again: its vectors are kept."
        ) from error


def _result(content: dict[str, Any], path: Path) -> TaskResult:
    top = content[OURS]
    records = []
    for split, entries in content["scores"].items():
        for entry in entries:
            ours = entry.pop(OURS)
            subset = entry.pop("hf_subset")
            languages = tuple(entry.pop("languages"))
            score = _number(entry.pop("main_score"))
            metrics = {name: _number(value) for name, value in entry.items()}
            ours["fingerprint"] = ours.pop("protocol")
            ours["interval"] = _bounds(ours["interval"])
            ours["warnings"] = tuple(ours["warnings"])
            names = {"model": top["model"], "revision": top["revision"], "task": content["task_name"]}
            records.append(
                Record(**names, split=split, subset=subset, languages=languages, score=score, metrics=metrics, **ours)
            )
    return TaskResult(
        top["model"], top["revision"], content["task_name"], content["dataset_revision"], tuple(records),
        _number(top["score"]), _bounds(top["interval"]), content["date"], path, top.get("protocol", "paper"),
        top.get("made_by", "embark"), row=from_json(top["row"]) if "row" in top else None,
    )  # fmt: skip


def _number(value: float | None) -> float:
    """A number of a result file: null stands for NaN, which JSON lacks."""
    return float("nan") if value is None else value


def _bounds(interval: Sequence[float | None]) -> tuple[float, float]:
    low, high = interval
    return _number(low), _number(high)


def _meta(card: ModelCard) -> dict[str, Any]:
    facts = {field.name: getattr(card, field.name) for field in dataclasses.fields(card)}
    return {"name": card.name, "revision": card.revision, OURS: facts}


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Plain values, with null for what is not finite: other tools' readers refuse NaN."""
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else _finite(_plain(value))


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


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    try:
        with atomically(path) as out:
            write(out)
    except OSError as error:
        text = f"The scores could not be written to {path} ({error}). Solve that and run again: no vector is lost."
        raise EmbarkError(text) from error
