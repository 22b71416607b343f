"""Reads results of other tools, and writes ours for mteb.

Results that are read are marked with the tool that made them and with the protocol that the tool scores by: mteb 1 is
what MIEB's paper used, mteb 2 differs for the rows that have an "mteb2" variant; UniBench's code is its paper's. A file
whose score is not the row's (other parts, no version) is refused with the reason, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embark.boards.mteb_versions import agrees, fault
from embark.catalogue import counted, listed
from embark.items import limits
from embark.items.lazy_media import changing_parquet_batches
from embark.models import MODELS
from embark.outgoing import write_bytes
from embark.paths import component
from embark.redaction import redacted, this_machine
from embark.results import META, NO_INTERVAL, OURS, Record, Results, TaskResult, outgoing_card, outgoing_result
from embark.types import EmbarkError, ModelCard, Task

Tool: TypeAlias = Literal["mteb", "mmeb", "unibench"]
MTEB = "MIEB"  # the family whose rows are scored by what mteb itself defines as main_score
AGGREGATE = "mteb 2 may have taken the mean over all subsets of the task that this one is a part of"
SCORES = "_score.json"  # how the names of MMEB's files end
FRAMES = (".f", ".feather")  # UniBench's, which hold a row per item, or a row per model and benchmark (aggregate.f)
FRAME_COLUMNS = ("model_name", "benchmark_name", "correctness")
VECTOR_TASKS = {"zeroshot_classification", "relation_classification"}  # of UniBench; others question language models
NAMES = (("hit@", "hit_rate_at_"), ("ndcg_linear@", "ndcg_at_"), ("@", "_at_"))  # MMEB's measures in our words


@dataclass
class ReadResults:
    """The results of a folder, and the files that were refused, each with the reason."""

    results: list[TaskResult] = field(default_factory=list)
    refused: dict[Path, str] = field(default_factory=dict)


class _Refused(EmbarkError):
    """A file that is not a result of a known task; the message is the reason."""


def tool_of(path: Path) -> Tool:
    """The tool that made a folder of results, or a file of them, by the names of the files."""
    if path.is_file():
        return "unibench"
    if any(path.rglob(f"*{SCORES}")):
        return "mmeb"
    frames = any(file.suffix in FRAMES for file in path.rglob("*"))
    return "unibench" if frames and not any(path.rglob("*.json")) else "mteb"


def read_results(
    tool: Tool, path: Path, tasks: Mapping[str, Task], model: str, revision: str, protocol: str
) -> ReadResults:
    """The results of a tool; `model`, `revision` and `protocol` are what MMEB's files do not state."""
    if tool == "unibench":
        return read_unibench(path, tasks)
    return read_mteb(path, tasks) if tool == "mteb" else read_mmeb(path, tasks, model, revision, protocol)


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
            model, revision, task.name, split, subset, task.languages, task.metric, value, NO_INTERVAL, measures,
            f"mmeb {protocol}", "mmeb", counts=counts,
        )  # fmt: skip
        where = (model, revision, task.name, "")
        return TaskResult(*where, (record,), record.score, NO_INTERVAL, 0.0, protocol=protocol, made_by="mmeb")

    return _read(folder.rglob(f"*{SCORES}"), result)


def read_unibench(path: Path, tasks: Mapping[str, Task]) -> ReadResults:
    """UniBench's frames: aggregate.f, and <model>/<benchmark>.f with a row per item, which tell how many there were.

    Feather or Parquet; a folder, or one file. Models that have a card get its name. Where both kinds have a score, that
    of the items counts.
    """
    names = {card.aliases["UniBench"]: card.name for card in MODELS.values() if "UniBench" in card.aliases}
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.suffix in (*FRAMES, ".parquet")]
    read = ReadResults()
    rows = []
    for file in sorted(files):
        try:
            of_file, other = _frame(file)
            unknown = [f"UniBench/{name}" for name in dict.fromkeys(row.benchmark for row in of_file)]
            unknown = [name for name in unknown if name not in tasks]
            if other or unknown:
                read.refused[file] = f"no task is named {listed([*unknown, *other])}"
            rows += [row for row in of_file if f"UniBench/{row.benchmark}" in tasks]
        except _Refused as error:
            read.refused[file] = str(error)
        except (TypeError, ValueError, OSError) as error:  # pyarrow's errors among them
            read.refused[file] = f"it cannot be read ({type(error).__name__}: {error})"
    best = {(row.model, row.benchmark): row for row in sorted(rows, key=lambda row: row.items > 0)}
    for row in best.values():
        read.results.append(_unibench_result(row, names.get(row.model, row.model), tasks[f"UniBench/{row.benchmark}"]))
    return read


def write_mteb(results: Iterable[TaskResult], cards: Mapping[str, ModelCard], folder: Path) -> list[TaskResult]:
    """Results in mteb's layout: one protocol per folder, since mteb knows one result per task."""
    written: dict[tuple[str, str, str], TaskResult] = {}
    stored = Results(folder)
    private = this_machine()
    for result in results:
        key = (result.model, result.revision, result.task)
        if key in written:
            raise EmbarkError(
                f"There are two results of {result.model} on {result.task}: export one protocol at a time."
            )
        of_model = stored.folder(redacted(result.model, private), result.revision)
        path = of_model / f"{component(result.task)}.json"
        card = cards.get(result.model)
        if card is not None or not (of_model / META).exists():
            write_bytes(of_model / META, outgoing_card(result.model, result.revision, card, private))
        write_bytes(path, outgoing_result(replace(result, checksum=""), private))  # its outcomes stay where they are
        written[key] = replace(result, checksum="", path=path)
    return list(written.values())


# ── mteb ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mteb_result(path: Path, content: dict[str, Any], tasks: Mapping[str, Task]) -> TaskResult:
    if OURS in content:
        raise _Refused("embark made it")
    if "task_name" not in content or not isinstance(content.get("scores"), dict):
        raise _Refused("it has not the layout of mteb's results (since 1.11)")
    task = _row(content["task_name"], tasks)
    entries = {(split, entry["hf_subset"]): entry for split, several in content["scores"].items() for entry in several}
    versions = {part: entry.get("mteb_version") or content.get("mteb_version") or "" for part, entry in entries.items()}
    stated = ", ".join(sorted({version for version in versions.values() if version}))
    majors = {number for version in versions.values() for number in re.findall(r"(?:^|-)(\d+)\.", version)}
    protocol = _protocol(task, majors)
    row = task.under(protocol)
    model, revision = _model(path.parent)
    warnings = _differences(task, str(content.get("dataset_revision", "")))
    parts = _parts(task, entries)
    if majors == {"2"} and list(parts) != task.parts:
        warnings = (*warnings, AGGREGATE)
    records = []
    for (split, subset), entry in parts.items():
        version = versions[split, entry["hf_subset"]] or stated
        measures = _numbers(entry)
        name = task.metric if task.metric in measures or task.family != MTEB else "main_score"
        if name not in measures:
            raise _Refused(f"it has no {task.metric} for {split}, {subset}, which {task.name} is scored by")
        value = _score(measures[name], f"{name} for {split}, {subset}")
        notes = [f"its main_score, which mteb defines as {task.metric}"] * (name == "main_score")
        measures.pop("main_score", None)
        if why := fault(row, version):
            notes.append(why)  # boards leave the score out
        elif wrong := [name for name in measures if not agrees(row, version, name)]:
            notes.append(f"without {counted(len(wrong), 'measure')} that mteb {version} scores otherwise than the task")
            measures = {name: number for name, number in measures.items() if name not in wrong}
        record = Record(
            model, revision, task.name, split, subset, task.subsets.get(subset, task.languages), task.metric, value,
            NO_INTERVAL, measures, f"mteb {version}", "mteb", versions={"mteb": version}, warnings=(*warnings, *notes),
        )  # fmt: skip
        records.append(record)
    score = fmean(record.score for record in records)
    where = (model, revision, task.name, str(content.get("dataset_revision", "")))
    date = float(content.get("date") or 0.0)
    return TaskResult(*where, tuple(records), score, NO_INTERVAL, date, protocol=protocol, made_by="mteb")


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


# ── UniBench ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _MeanScore(NamedTuple):
    """The score of a model on a benchmark in a frame of UniBench's; `items` is 0 where it does not tell them."""

    model: str
    benchmark: str
    score: float
    items: int


def _frame_table(path: Path) -> pa.Table:
    """The columns of a frame that are needed, those that are there; an error where so small a file becomes too much."""
    wanted = (*FRAME_COLUMNS, "task_name")
    if path.suffix == ".parquet":
        schema = pq.read_schema(path)
        names = [name for name in schema.names if name in wanted]
        fields = [schema.field(name) for name in names]
        return pa.Table.from_batches(changing_parquet_batches(str(path), names), pa.schema(fields))
    limit = limits.unpacked(path.stat().st_size)
    reader = pa.ipc.open_file(path)
    batches = []
    size = 0
    for number in range(reader.num_record_batches):
        batches.append(reader.get_batch(number))
        size += batches[-1].nbytes
        if size > limit:
            raise _Refused(limits.explain("it", limit))
    return pa.Table.from_batches(batches, reader.schema)


def _frame(path: Path) -> tuple[list[_MeanScore], list[str]]:
    """The mean of each model and benchmark in a frame, and the kinds of task in it that no vectors are scored by.

    What has no correctness (NaN) was not scored.
    """
    table = _frame_table(path)
    lacking = [name for name in FRAME_COLUMNS if name not in table.column_names]
    if lacking:
        raise _Refused(f"it has no column {listed(lacking)}, so it is no frame of UniBench's")
    other: list[str] = []
    if "task_name" in table.column_names:
        other = sorted({*map(str, table["task_name"].unique().to_pylist())} - VECTOR_TASKS)
        table = table.filter(pc.is_in(table["task_name"], pa.array(sorted(VECTOR_TASKS))))
    correctness = pc.cast(table["correctness"], pa.float64())
    missing = pc.fill_null(pc.is_nan(correctness), True)
    table = table.select(FRAME_COLUMNS).set_column(2, "correctness", correctness).filter(pc.invert(missing))
    means = table.group_by(["model_name", "benchmark_name"], use_threads=False).aggregate(
        [("correctness", "mean"), ("correctness", "count")]
    )
    rows = [_MeanScore(*(row[name] for name in means.column_names)) for row in means.to_pylist()]
    if all(row.items == 1 for row in rows):  # an aggregate
        rows = [row._replace(items=0) for row in rows]
    for row in rows:
        _score(row.score, f"correctness of {row.model} on {row.benchmark}")
    return rows, other


def _unibench_result(row: _MeanScore, model: str, task: Task) -> TaskResult:
    [(split, subset)] = task.parts
    size = task.rows.get(split, row.items)
    unlike = row.items and row.items != size
    record = Record(
        model, "main", task.name, split, subset, task.languages, task.metric, row.score, NO_INTERVAL,
        {task.metric: row.score}, "unibench", "unibench", counts={"items": row.items} if row.items else {},
        warnings=(f"scored on {row.items:,} items, where the row has {size:,}",) if unlike else (),
    )  # fmt: skip
    return TaskResult(model, "main", task.name, "", (record,), row.score, NO_INTERVAL, 0.0, made_by="unibench")


# ── all ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
