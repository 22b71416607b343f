"""Reads results of other tools, and writes ours for mteb.

Results that are read are marked with the tool that made them and with the protocol that the tool scores by: mteb 1 is
what MIEB's paper used, mteb 2 differs for the rows that have an "mteb2" variant. A file whose score is not the row's
(other parts, no version) is refused with the reason, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from embark.paths import component
from embark.results import OURS, Record, Results, TaskResult
from embark.types import EmbarkError, ModelCard, Task

UNKNOWN = (float("nan"), float("nan"))  # neither tools nor papers have intervals
MTEB = "MIEB"  # the family whose rows are scored by what mteb itself defines as main_score
AGGREGATE = "mteb 2 may have taken the mean over all subsets of the task that this one is a part of"
SCORES = "_score.json"  # how the names of MMEB's files end
NAMES = (("hit@", "hit_rate_at_"), ("ndcg_linear@", "ndcg_at_"), ("@", "_at_"))  # MMEB's measures in our words


@dataclass
class ReadResults:
    """The results of a folder, and the files that were refused, each with the reason."""

    results: list[TaskResult] = field(default_factory=list)
    refused: dict[Path, str] = field(default_factory=dict)


class _Refused(EmbarkError):
    """A file that is not a result of a known task; the message is the reason."""


def is_mmeb(folder: Path) -> bool:
    """Whether a folder holds MMEB's score files."""
    return any(folder.rglob(f"*{SCORES}"))


def read_mteb(folder: Path, tasks: Mapping[str, Task]) -> ReadResults:
    """mteb's results: <org>__<model>/<revision>/<Task>.json, from any of these levels down."""
    paths = [path for path in folder.rglob("*.json") if path.name != "model_meta.json"]
    return _read(paths, lambda path, content: _mteb_result(path, content, tasks))


def read_mmeb(folder: Path, tasks: Mapping[str, Task], model: str, revision: str, protocol: str) -> ReadResults:
    """MMEB's score files: <Dataset>_score.json in folders by modality. They name neither model nor release."""

    def result(path: Path, content: dict[str, Any]) -> TaskResult:
        task = _row(f"MMEB/{path.name.removesuffix(SCORES)}", tasks)
        measures = {_measure(name): value for name, value in _numbers(content).items() if name != "num_data"}
        if task.metric not in measures:
            raise _Refused(f"it has no {task.metric}, which {task.name} is scored by")
        [split], [subset] = task.source.splits, task.subsets
        counts = {"queries": int(content["num_data"])} if "num_data" in content else {}
        value = _score(measures[task.metric], task.metric)
        record = Record(
            model, revision, task.name, split, subset, task.languages, task.metric, value, UNKNOWN, measures,
            f"mmeb {protocol}", "mmeb", counts=counts,
        )  # fmt: skip
        where = (model, revision, task.name, "")
        return TaskResult(*where, (record,), record.score, UNKNOWN, 0.0, protocol=protocol, made_by="mmeb")

    return _read(folder.rglob(f"*{SCORES}"), result)


def write_mteb(results: Iterable[TaskResult], cards: Mapping[str, ModelCard], folder: Path) -> list[TaskResult]:
    """Results in mteb's layout: one protocol per folder, since mteb knows one result per task."""
    written: dict[tuple[str, str, str], TaskResult] = {}
    for result in results:
        key = (result.model, result.revision, result.task)
        if key in written:
            raise EmbarkError(
                f"There are two results of {result.model} on {result.task}: export one protocol at a time."
            )
        result = replace(result, checksum="")  # its outcomes stay where they are
        written[key] = Results(folder).write(result, cards.get(result.model), f"{component(result.task)}.json")
    return list(written.values())


# ── mteb ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mteb_result(path: Path, content: dict[str, Any], tasks: Mapping[str, Task]) -> TaskResult:
    if OURS in content:
        raise _Refused("embark made it")
    if "task_name" not in content or not isinstance(content.get("scores"), dict):
        raise _Refused("it has not the layout of mteb's results (since 1.11)")
    task = _row(content["task_name"], tasks)
    entries = {(split, entry["hf_subset"]): entry for split, several in content["scores"].items() for entry in several}
    versions = {entry.get("mteb_version") or content.get("mteb_version") or "" for entry in entries.values()}
    majors = {number for version in versions for number in re.findall(r"(?:^|-)(\d+)\.", version)}
    protocol = _protocol(task, majors)
    model, revision = _model(path.parent)
    version = ", ".join(sorted(versions))
    warnings = _differences(task, str(content.get("dataset_revision", "")))
    parts = _parts(task, entries)
    if majors == {"2"} and list(parts) != task.parts:
        warnings = (*warnings, AGGREGATE)
    records = []
    for (split, subset), entry in parts.items():
        measures = _numbers(entry)
        name = task.metric if task.metric in measures or task.family != MTEB else "main_score"
        if name not in measures:
            raise _Refused(f"it has no {task.metric} for {split}, {subset}, which {task.name} is scored by")
        value = _score(measures[name], f"{name} for {split}, {subset}")
        notes = [f"its main_score, which mteb defines as {task.metric}"] * (name == "main_score")
        record = Record(
            model, revision, task.name, split, subset, task.subsets.get(subset, task.languages), task.metric, value,
            UNKNOWN, {name: number for name, number in measures.items() if name != "main_score"}, f"mteb {version}",
            "mteb", versions={"mteb": version}, warnings=(*warnings, *notes),
        )  # fmt: skip
        records.append(record)
    score = fmean(record.score for record in records)
    where = (model, revision, task.name, str(content.get("dataset_revision", "")))
    date = float(content.get("date") or 0.0)
    return TaskResult(*where, tuple(records), score, UNKNOWN, date, protocol=protocol, made_by="mteb")


def _protocol(task: Task, majors: set[str]) -> str:
    """The name of the protocol that a version of mteb scores a row by."""
    if len(majors) != 1 or not majors <= {"1", "2"}:
        tool = f"mteb {' and '.join(sorted(majors))}" if majors else "no version of mteb"
        raise _Refused(f"it names {tool}, so its protocol is not known")
    return "mteb2" if majors == {"2"} and "mteb2" in task.variants else "paper"


def _parts(task: Task, entries: Mapping[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    """The entries of the row's splits and subsets, or mteb's one entry for all subsets ("default")."""
    whole = [(split, "default") for split in task.source.splits]
    for parts in (task.parts, whole):
        if all(part in entries for part in parts):
            return {part: entries[part] for part in parts}
    lacking = [f"{split}/{subset}" for split, subset in task.parts if (split, subset) not in entries]
    raise _Refused(f"it lacks {len(lacking)} of the {len(task.parts)} parts that {task.name} has, such as {lacking[0]}")


def _differences(task: Task, revision: str) -> tuple[str, ...]:
    if not revision or revision == task.source.revision:
        return ()
    return (f"made with revision {revision[:7]} of the data, where the row has {task.source.revision[:7]}",)


def _model(folder: Path) -> tuple[str, str]:
    """Name and revision: as the folder's model_meta.json has them, else as its path does."""
    meta = folder / "model_meta.json"
    if meta.is_file():
        content = json.loads(meta.read_text(encoding="utf-8"))
        if content.get("name"):
            return str(content["name"]), str(content.get("revision") or folder.name)
    return folder.parent.name.replace("__", "/", 1), folder.name


# ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(paths: Iterable[Path], result: Callable[[Path, dict[str, Any]], TaskResult]) -> ReadResults:
    read = ReadResults()
    for path in sorted(paths):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(content, dict):
                raise _Refused("it is not a table of scores")
            read.results.append(result(path, content))
        except _Refused as error:
            read.refused[path] = str(error)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            read.refused[path] = f"it cannot be read ({type(error).__name__}: {error})"
    return read


def _row(name: str, tasks: Mapping[str, Task]) -> Task:
    if name not in tasks:
        raise _Refused(f"no task is named {name}")
    return tasks[name]


def _numbers(entry: Mapping[str, Any]) -> dict[str, float]:
    return {n: float(v) for n, v in entry.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


def _score(value: float, name: str) -> float:
    """A score as a fraction, which both tools write."""
    if not abs(value) <= 1 + 1e-9:  # as rounding has it; also false for what is not a number
        percent = "; a fraction is wanted, not percent" if 1 < abs(value) <= 100 else ""
        raise _Refused(f"its {name} is {value:g}, which is no score from -1 to 1{percent}")
    return value


def _measure(name: str) -> str:
    """hit@1 → hit_rate_at_1."""
    for theirs, ours in NAMES:
        name = name.replace(theirs, ours)
    return name
