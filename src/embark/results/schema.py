"""The format of results: what a file of scores, the card beside it and a file of outcomes may hold.

Whatever is read passes here: a value of another type, out of range, missing or unknown makes the whole file `Damaged`,
and the error names the field. What is written passes here, too. docs/results.md has the table of the fields.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embark.catalogue import group_values
from embark.field_types import field_types
from embark.models.card_facts import card_facts
from embark.paths import leads_out
from embark.results.fields import Malformed, Value, load_json
from embark.results.task_rows import from_json, to_json
from embark.tables.values import Brief
from embark.types import MODALITIES, EmbarkError, ModelCard, Task

FORMAT = 2  # of the files that are written; files of format 1 state no number, and fingerprints as `protocol`
FORMATS = (1, FORMAT)  # that are read
OURS = "embark"  # the key under which our fields stand in an mteb-shaped entry
CHECKSUM = "checksum"  # of all else in the file
META = "model_meta.json"
OF_RESULT = ("model", "revision", "score", "interval", "protocol", "made_by")
OF_RECORD = (
    "metric", "interval", "statistic", "encoder", "run", "counts", "timings", "versions", "loaded", "warnings",
)  # fmt: skip
NO_INTERVAL = (float("nan"), float("nan"))  # of scores that other tools and papers state
SAMPLED = "sampled from"  # the count that results of a sample have
LARGEST_BYTES = 256 << 20  # bytes of a file of scores; one that claims to be larger is none
LARGEST_OUTCOMES = 4 << 30  # … of the outcomes of a task, in the file and in memory
LARGEST_CARD = 4 << 20  # … of a model's card
LOOKS = 20  # times, a twentieth of a second apart, that outcomes are looked at while another process writes them
BATCH = 4096  # rows of outcomes that are decoded at a time


@dataclass(frozen=True)
class Record(Brief):
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
class TaskResult(Brief):
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
        return None if self.path is None else read_card(self.path.with_name(META))

    @property
    def sampled(self) -> bool:
        """Whether this is no full score, but that of a sample (`limit`)."""
        return any(SAMPLED in record.counts for record in self.records)

    def outcomes(self, parts: bool = False) -> pa.Table:
        """One row per item: split, subset, id, and the outcome columns; an error if they are not of this result.

        With `parts`, also the columns with the parts of the items.
        """
        if self.path is None:
            raise EmbarkError(f"The result of {self.model} on {self.task} is not on disk, so it has no outcomes.")
        path = self.path.with_suffix(".parquet")
        return outcomes_in(self._outcomes_file(path, self.path), path, self, parts)

    def _outcomes_file(self, path: Path, scores: Path) -> bytes:
        """The content of the file of outcomes whose hash this result states."""
        require_own(path)
        for _ in range(LOOKS):
            if path.stat().st_size > LARGEST_OUTCOMES:
                raise Damaged(path, f"it is larger than {LARGEST_OUTCOMES >> 20:,} MiB")
            data = path.read_bytes()
            if not self.checksum or hashlib.sha256(data).hexdigest() == self.checksum:
                return data
            if _stored_checksum(scores) != self.checksum:
                raise Replaced(f"The result {scores} was replaced while it was read: read it again.")
            time.sleep(0.05)  # another process has written outcomes, and its scores are to follow
        raise Damaged(path, "its content is not what was written with the scores")


class Replaced(EmbarkError):
    """A result that another process wrote anew while its outcomes were read."""


class Damaged(EmbarkError):
    """A file of results that cannot be read; `path` is its place."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason}): run the task again, its vectors are kept.")
        self.path = path
        self.reason = reason


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_result(path: Path) -> TaskResult | None:
    """The result in a file, or None if the file is not of ours."""
    try:
        require_own(path)
        if path.stat().st_size > LARGEST_BYTES:
            raise Damaged(path, f"it is larger than {LARGEST_BYTES >> 20} MiB")
        return parse_result(path.read_bytes(), path)
    except FileNotFoundError:  # replaced or set aside by another process
        return None
    except OSError as error:
        raise Damaged(path, error.strerror or _reason(error)) from error


def parse_result(data: bytes, path: Path) -> TaskResult | None:
    """The result in the content of a file, whose place is `path`; None if it is not of ours: mteb's own, or a card."""
    try:
        content = load_json(data)
        if path.name == META:
            _card_in(content)
            return None
        return _result_in(content, path) if _is_ours(content) else None
    except Malformed as error:
        raise Damaged(path, str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:  # of JSON, and of rows
        raise Damaged(path, _reason(error)) from error


def _is_ours(content: Value) -> bool:
    """Whether a table has our fields, at the top or in any of its scores."""
    if OURS in content.fields():
        return True
    scores = content.fields().get("scores", Value({})).value
    splits = scores.values() if isinstance(scores, Mapping) else ()
    entries = (entry for split in splits if isinstance(split, list) for entry in split)
    return any(isinstance(entry, Mapping) and OURS in entry for entry in entries)


def _result_in(content: Value, path: Path | None) -> TaskResult:
    """The result in the content of a file: every field of ours is checked; mteb's other fields at the top are not."""
    fields = content.fields()
    if lacking := [name for name in (OURS, "task_name", "dataset_revision", "scores", "date") if name not in fields]:
        raise Malformed(f"it lacks {', '.join(lacking)}")
    format = _format(fields[OURS])
    top = fields[OURS].record((*OF_RESULT, CHECKSUM), ("format", "row", "outcomes"))
    _require_checksum(content, top[CHECKSUM].text())
    names = {
        "model": top["model"].name(),
        "revision": top["revision"].text(),
        "task": fields["task_name"].name(),
    }
    splits = fields["scores"].fields().items()
    records = [_record_in(entry, names, split, format) for split, value in splits for entry in value.entries()]
    if not records:
        raise Malformed("it has no scores")
    if len({(record.split, record.subset) for record in records}) < len(records):
        raise Malformed("it has several scores for a split and subset")
    return TaskResult(
        **names,
        dataset_revision=fields["dataset_revision"].text(),
        records=tuple(records),
        score=top["score"].number(),
        interval=top["interval"].ends(),
        date=fields["date"].date(),
        path=path,
        protocol=top["protocol"].name(),
        made_by=top["made_by"].name(),
        row=_row_in(top["row"], names["task"]) if "row" in top else None,
        checksum=top["outcomes"].text() if "outcomes" in top else "",
    )


def _format(ours: Value) -> int:
    """The number of the format that our fields have."""
    format = ours.fields().get("format", Value(1)).value
    if format not in FORMATS or isinstance(format, bool):
        known = " and ".join(map(str, FORMATS))
        raise Malformed(f"its format is {str(format)[:20]}; this version of embark reads {known}")
    return int(str(format))


def _record_in(entry: Value, names: Mapping[str, str], split: str, format: int) -> Record:
    """The record in an entry of mteb's layout: what is not a field is a measure."""
    fields = entry.fields()
    if lacking := [name for name in ("hf_subset", "languages", "main_score", OURS) if name not in fields]:
        raise Malformed(f"{entry.place} lacks {', '.join(lacking)}")
    fingerprint = "protocol" if format == 1 else "fingerprint"
    ours = fields[OURS].record((*OF_RECORD, fingerprint))
    measures = {name: value for name, value in fields.items() if name not in (*ENTRY, OURS)}
    counts = ours["counts"].table(Value.count)
    if counts.get(SAMPLED) == 0:
        ours["counts"].wrong("of a sample from some items")
    loaded = ours["loaded"].fields()
    if "stages" in loaded:
        loaded["stages"].fields().get("row", Value("")).text()
    return Record(
        **names,
        split=split,
        subset=fields["hf_subset"].name(),
        languages=fields["languages"].texts(),
        metric=ours["metric"].name(),
        score=fields["main_score"].number(),
        interval=ours["interval"].ends(),
        metrics={name: value.number() for name, value in measures.items()},
        fingerprint=ours[fingerprint].name(),
        encoder=ours["encoder"].name(),
        statistic=ours["statistic"].text(),
        run=ours["run"].text(),
        counts=counts,
        timings=ours["timings"].table(Value.amount),
        versions=ours["versions"].table(Value.text),
        loaded={name: value.plain() for name, value in loaded.items()},
        warnings=ours["warnings"].texts(),
    )


def _row_in(row: Value, task: str) -> Task:
    """The row that a file states, of the task that the file is about."""
    stated = from_json(row.plain())
    if stated.name != task:
        raise Malformed(f"its row is of another task, {stated.name}")
    return stated


def result_content(result: TaskResult) -> dict[str, Any]:
    """The content of a result's file, without its checksum: mteb's result layout, our fields under one key."""
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
        OURS: {"format": FORMAT} | {name: getattr(result, name) for name in OF_RESULT} | row | checksum,
    }


ENTRY = ("main_score", "hf_subset", "languages")  # the fields of a record besides ours and its measures


def _entry(record: Record) -> dict[str, Any]:
    """A record as mteb has it, our fields under one key."""
    ours = {name: getattr(record, name) for name in OF_RECORD}
    return dict(record.metrics) | {
        "main_score": record.score,
        "hf_subset": record.subset,
        "languages": record.languages,
        OURS: ours | {"fingerprint": record.fingerprint},
    }


def result_bytes(content: Mapping[str, Any]) -> bytes:
    """A file of scores, with the checksum of its content in it; an error if nobody could read it again."""
    content = finite(content)
    content[OURS][CHECKSUM] = _checksum(content)
    data = json_bytes(content)
    try:
        _result_in(load_json(data), None)
    except Malformed as error:
        about = f"{content[OURS]['model']} on {content['task_name']}"
        raise EmbarkError(f"The result of {about} cannot be kept: {error}.") from error
    return data


def _checksum(content: Mapping[str, Any]) -> str:
    """The sha256 of a file's values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _require_checksum(content: Value, stated: str) -> None:
    """An error if the values are not those that were written."""
    fields = {name: value.value for name, value in content.fields().items()}
    ours = {name: value.value for name, value in Value(fields[OURS]).fields().items() if name != CHECKSUM}
    if stated != _checksum(fields | {OURS: ours}):
        raise Malformed("its content is not what was written")


def require_own(path: Path) -> None:
    """Raise an error for a pipe, which would be waited for, and for a link that leads out of the results: a stranger's
    folder may have links to whatever is on this machine.
    """
    if leads_out(path, path.parents[2]):
        raise Damaged(path, "it is a link, or behind one, that leads out of the results: put the file itself there")
    if path.exists() and not path.is_file():
        raise Damaged(path, "it is no file")


def _stored_checksum(path: Path) -> str | None:
    """The checksum of the outcomes that a result file on disk names."""
    return result.checksum if (result := read_result(path)) else None


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


# ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_card(path: Path) -> ModelCard | None:
    """The card in a file beside results; None where there is none of ours."""
    try:
        require_own(path)
        return parse_card(path.read_bytes()) if path.stat().st_size <= LARGEST_CARD else None
    except (Damaged, OSError):
        return None


def parse_card(data: bytes) -> ModelCard | None:
    """The card in the content of a file; None where it is none of ours, or damaged (`Results.all` has a note on it)."""
    try:
        return _card_in(load_json(data))
    except (ValueError, RecursionError):
        return None


def card_content(card: ModelCard) -> dict[str, Any]:
    """The content of the file beside a model's results."""
    return {"name": card.name, "revision": card.revision, OURS: {"format": FORMAT} | vars(card)}


def _card_in(content: Value) -> ModelCard | None:
    """The card in the content of a file: fields of another version are left out; None where it is mteb's own."""
    ours = content.fields().get(OURS)
    if ours is None:
        return None
    _format(ours)
    known = field_types(ModelCard)
    try:
        return ModelCard(**card_facts({name: value.plain() for name, value in ours.fields().items() if name in known}))
    except EmbarkError as error:
        raise Malformed(str(error).rstrip(".")) from error
    except TypeError as error:  # a field without a default is missing
        raise Malformed("the card lacks fields") from error


# ── outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PREDICTED = r"predicted(_run\d+)?"  # columns of outcomes that hold the class that an item gets; "label" is its own
ABOUT = "about_"  # begins the columns of outcomes that hold what the data tell about an item
PART = "part_"  # begins the columns with the identities of an item's parts, by modality
PARTNER = "partner_"  # begins the columns of a partner
KEYS = ("split", "subset", "id")  # which every row has


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))


def _is_texts(kind: pa.DataType) -> bool:
    return bool(_is_text(kind) or pa.types.is_null(kind) or (pa.types.is_list(kind) and _is_texts(kind.value_type)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(_is_whole(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


IS_PART = re.compile(rf"({PARTNER})?{PART}({'|'.join(MODALITIES)})")
COLUMNS = (  # of outcomes: names, the type that they must have, and its name
    (re.compile("split|subset|id|partner|right|(item|partner)_cluster"), _is_text, "texts"),
    (re.compile("content|partner_content"), lambda kind: kind == pa.int64(), "int64"),
    (IS_PART, lambda kind: kind == pa.list_(pa.int64()), "lists of int64"),
    (re.compile(f"top|label|{PREDICTED}"), lambda kind: _is_text(kind) or _is_whole(kind), "texts or whole numbers"),
    (re.compile(f"{ABOUT}.*", re.DOTALL), _is_texts, "texts or lists of texts"),
    (re.compile(".*", re.DOTALL), _is_number, "numbers"),
)


def outcomes_bytes(outcomes: Iterable[Mapping[str, Any]], result: TaskResult) -> bytes:
    """The file of outcomes of a result's records; an error if nobody could read it again."""
    table = pa.concat_tables([pa.table(dict(columns)) for columns in outcomes], promote_options="default")
    try:
        _require_columns(table.schema)
        _require_rows(table, result)
    except Malformed as error:
        raise EmbarkError(f"The outcomes of {result.model} on {result.task} cannot be kept: {error}.") from error
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def outcomes_in(data: bytes, path: Path, result: TaskResult, parts: bool = False) -> pa.Table:
    """The outcomes in the content of a file, which must be about the records of this result."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        _require_columns(file.schema_arrow)
        names = [name for name in file.schema_arrow.names if parts or not IS_PART.fullmatch(name)]
        table = _read_table(file, names)
        table.validate(full=True)
        _require_rows(table, result)
    except Malformed as error:
        raise Damaged(path, str(error)) from error
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise Damaged(path, _reason(error)) from error
    return table


def _read_table(file: pq.ParquetFile, names: list[str]) -> pa.Table:
    """The rows of a file, decoded by and by: few bytes may stand for very many."""
    batches = []
    room = LARGEST_OUTCOMES
    # Not read_table: it returns while its threads still work, and a process that ends then is aborted.
    for batch in file.iter_batches(BATCH, columns=names, use_threads=False):
        room -= batch.nbytes
        if room < 0:
            raise Malformed(f"it holds more than {LARGEST_OUTCOMES >> 20:,} MiB")
        batches.append(batch)
    schema = pa.schema([file.schema_arrow.field(name) for name in names])
    return pa.Table.from_batches(batches, schema).combine_chunks()


def _require_columns(schema: pa.Schema) -> None:
    """An error for columns that outcomes cannot have, or lack."""
    if missing := [name for name in KEYS if name not in schema.names]:
        raise Malformed(f"it has no column {', '.join(missing)}")
    if len({*schema.names}) < len(schema.names):
        raise Malformed("several columns have one name")
    for name, kind in zip(schema.names, schema.types, strict=True):
        accepts, expected = next((accepts, expected) for names, accepts, expected in COLUMNS if names.fullmatch(name))
        if not accepts(kind):
            raise Malformed(f"column '{name}' must hold {expected}, not {kind}"[:200])


def _require_rows(table: pa.Table, result: TaskResult) -> None:
    """An error for rows that are not of the splits and subsets of a result, each of which has some."""
    for name in (*KEYS, "content"):
        if name in table.column_names and table[name].null_count:
            raise Malformed(f"column '{name}' has empty cells")
    columns = [table[name].cast(pa.large_string()) for name in KEYS[:2]]
    between = pa.scalar("\0", pa.large_string())
    pairs = pc.unique(pc.binary_join_element_wise(*columns, between))  # group_by would load pyarrow's scanner
    if {*pairs.to_pylist()} != {f"{record.split}\0{record.subset}" for record in result.records}:
        raise Malformed("its splits and subsets are not those of the scores")


# ── plain values ─────────────────────────────────────────────────────────────────────────────────────────────────────


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """A file of plain values."""
    return (json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def finite(value: Any) -> Any:
    """Plain values, with null for what is not finite: other tools' readers refuse NaN."""
    if isinstance(value, Mapping):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else finite(plain(value))


def plain(value: Any) -> Any:
    """A value of numpy, a set, a tuple or a mapping as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (tuple, np.ndarray)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in a result file")
