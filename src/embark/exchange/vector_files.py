"""Vectors in files: those of a task for a vector database, and those made elsewhere, scored without a model.

A file has a row for each item: its split, subset, side (query, document…), id, the hash of its content, and the vector.
Parquet holds all of it; a .npy file holds the matrix, and a file of JSON lines beside it the rest.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embark.catalogue import check_name, counted, listed
from embark.engine.report import EmbeddingReport
from embark.evaluators.similarity import has_token_vectors
from embark.field_types import checked
from embark.items import digest, limits
from embark.items.lazy_media import changing_parquet_batches
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.outgoing import json_lines_file, numbers_file, parquet_file
from embark.planning import Demand, plan
from embark.redaction import Content
from embark.results import Results
from embark.results.selection import select_tasks
from embark.run import Run
from embark.run.crash_log import CrashLog
from embark.run.embedded_task import Embedded
from embark.run.models import check_free
from embark.run.score import Scoring, score_task
from embark.run.stored_vectors import Stored
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.tables import Noted, Row, Table
from embark.types import Array, EmbarkError, ModelCard, Side, Task

FORMATS = (".parquet", ".npy")
PLACE = ("split", "subset", "side")  # columns that, with the id, tell which item a vector is of
ID_COLUMNS = (*PLACE, "id", "content")
VECTOR = ("vector", "embedding", "embeddings")  # names that the column of vectors may have
BLOCK_ITEMS = 4096  # items held at a time
IDS = (".jsonl", ".csv", ".txt", ".parquet")


@dataclass(frozen=True)
class VectorFile(Noted):
    """A file with the vectors of a task: how many of which dimension, by side."""

    path: Path
    model: str
    task: str
    sides: Mapping[str, int]
    dim: int

    def table(self) -> Table:
        """One row per side."""
        rows = [Row((side, count, self.dim)) for side, count in self.sides.items()]
        return Table(("side", "vectors", "dimension"), tuple(rows))


@checked
def export_vectors(
    model: str | Encoder,
    task: str | Task,
    out: Path | str,
    *,
    protocol: str | None = None,
    embed: bool = False,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> VectorFile:
    """Write the stored vectors of a task's items to a .parquet or .npy file, as float32.

    Items that no score depends on are not embedded, and so not written. With `embed`, what is not stored is embedded
    first; else it is an error.
    """
    path = Path(out)
    check_name("format of vectors", path.suffix, FORMATS)
    settings = settings or load_settings()
    row = _task(task, protocol, settings)
    stored = Stored(model, settings, embedding=embed, loading=loading, show_progress=show_progress)
    embedded = stored.task(row)
    several = has_token_vectors(next(iter(embedded.parts[0].vectors.values())))
    if path.suffix == ".npy" and several:
        raise EmbarkError(f"{embedded.model} has several vectors per item, which .npy cannot hold: write .parquet.")
    facts = {"model": embedded.model, "revision": stored.encoder.card.revision, "task": row.name}
    facts |= {"similarity": stored.encoder.card.similarity}
    if path.suffix == ".parquet":
        _write_parquet(path, embedded, several, facts)
    else:
        _write_npy(path, embedded)
    sides: dict[str, int] = {}
    for part in embedded.parts:
        for side, ids in part.ids.items():
            sides[side] = sides.get(side, 0) + len(ids)
    return VectorFile(path, embedded.model, row.name, sides, embedded.dim, notes=embedded.notes)


def import_vectors(
    vectors: Path | str | Array,
    task: str | Task,
    *,
    ids: Path | str | Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    name: str | None = None,
    similarity: Literal["cosine", "dot"] = "cosine",
    protocol: str | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> Run:
    """Score vectors that were made elsewhere on a task, without a model, and keep the result beside the others.

    `vectors` are a .parquet file (columns id and vector), a .npy file or a matrix. `ids` of the last two are a file
    (.jsonl, .csv, .parquet, or .txt with an id per line; default: the .jsonl file beside the .npy), a list, or columns
    by name. Columns split, subset and side tell apart equal ids; a column content (the hash that an export writes) is
    checked. The result is under `name` (default: imported/FILE), the hash of matrix and ids is its revision, and a
    footnote says that it is imported.
    """
    start = time.perf_counter()
    check_name("similarity", similarity, ("cosine", "dot"))
    settings = settings or load_settings()
    row = _task(task, protocol, settings)
    if not name and (name is not None or not isinstance(vectors, Path | str)):
        raise EmbarkError("The vectors need a name: --as org/model (name='org/model' in Python).")
    check_free(name or "")
    matrix, columns = _read(vectors, ids)
    card = ModelCard(
        name=name or f"imported/{Path(str(vectors)).stem}",
        revision=f"sha256-{_identity(matrix, columns)}",
        loader="imported",
        modalities=row.modalities,
        dim=matrix.shape[1],
        similarity=similarity,
        fusion="native",
        stored="float32",
        description="Vectors that were made elsewhere.",
        loaded={"vectors": "imported"},
    )
    bench = _Imported(settings, matrix, columns, show_progress)
    encoder = _NoModel(card)
    demands = bench.demands(row, encoder)
    counts = plan(demands, lambda keys: np.ones(len(keys), bool)).counts
    results = Results(settings.results)
    results.check()
    scoring = Scoring(bench, encoder, EmbeddingReport(), results, CrashLog(settings).id)
    result = score_task(row, list(zip(demands, counts, strict=True)), scoring)
    unused = len(bench.rows) - len(bench.used)
    warnings = [f"{counted(unused, 'vector')} of the file belong to no item that the task scores"] if unused else []
    seconds = time.perf_counter() - start
    return Run([row], [result], computed=1, seconds=seconds, folder=settings.results, warnings=warnings)


class _NoModel(Encoder):
    """The card of imported vectors; nothing can be embedded."""

    def __init__(self, card: ModelCard) -> None:
        self.card = card

    def embed(self, batch: Sequence[Any]) -> Array:
        raise EmbarkError(f"{self.card.name} is a file of vectors, not a model: it cannot embed items.")


class _Imported(Workbench):
    """A workbench whose vectors come from a matrix instead of the store; `used` are the rows that items have."""

    def __init__(
        self, settings: Settings, matrix: Array, columns: Mapping[str, Sequence[str]], show_progress: bool
    ) -> None:
        super().__init__(settings, show_progress=show_progress)
        self.matrix = matrix
        self.columns = columns
        self.place = [name for name in PLACE if name in columns]
        self.rows: dict[tuple[str, ...], int] = {}
        self.used: set[int] = set()
        for number, key in enumerate(zip(*(columns[name] for name in (*self.place, "id")), strict=True)):
            first = self.rows.setdefault(key, number)
            if first != number and not np.array_equal(matrix[first], matrix[number]):
                raise EmbarkError(
                    f"The file has two vectors of '{' '.join(key)}'; the columns {', '.join(PLACE)} tell items apart."
                )

    def vectors(self, encoder: Encoder, demand: Demand) -> dict[str, Any]:
        """The rows of the matrix that belong to each side's items."""
        sides = demand.data.sides
        if "side" not in self.place:
            _require_distinct_ids(sides)
        return {name: self._of_side(demand, name, side) for name, side in sides.items()}

    def stage_notes(self, task: Task) -> tuple[str, ...]:
        """The mark of results that no model made here."""
        return ("scored from imported vectors, which were made elsewhere",)

    def _of_side(self, demand: Demand, name: str, side: Side) -> Array:
        values = {"split": demand.split, "subset": demand.subset, "side": name}
        place = tuple(values[column] for column in self.place)
        rows = [self.rows.get((*place, item_id), -1) for item_id in side.ids]
        if missing := [item_id for item_id, row in zip(side.ids, rows, strict=True) if row < 0]:
            where = " ".join(filter(None, (demand.split, "" if demand.subset == "default" else demand.subset, name)))
            raise EmbarkError(
                f"{len(missing):,} of the {len(rows):,} items of {demand.task.name} ({where}) have no vector in the "
                f"file; the first is '{missing[0]}'."
            )
        if contents := self.columns.get("content"):
            for item_id, row, item in zip(side.ids, rows, side.items, strict=True):
                if contents[row] != digest(item.parts).hex():
                    raise EmbarkError(
                        f"The vector of '{item_id}' is of other content than the item of {demand.task.name} ({name}) "
                        "has: the data has changed. Make the vectors again, or leave the column content out."
                    )
        vectors = self.matrix[rows]
        for wrong, problem in ((~np.isfinite(vectors).all(axis=1), "not finite"), (~vectors.any(axis=1), "zero")):
            if ids := [side.ids[row] for row in np.flatnonzero(wrong).tolist()]:
                verb = "is" if len(ids) == 1 else "are"
                raise EmbarkError(f"{counted(len(ids), 'vector')} ({name}) {verb} {problem}: {listed(ids)}.")
        self.used.update(rows)
        return vectors


def _task(task: str | Task, protocol: str | None, settings: Settings) -> Task:
    """One task by name, also an own one that results know."""
    rows = select_tasks([task], protocol, settings)
    if len(rows) > 1:
        raise EmbarkError(f"Vectors in a file are of one task, and '{task}' names {len(rows)}.")
    return rows[0]


def _require_distinct_ids(sides: Mapping[str, Side]) -> None:
    """An error if an id stands for different items on two sides."""
    items: dict[str, tuple[str, bytes]] = {}
    for name, side in sides.items():
        shared = {item_id for other, of_other in sides.items() if other != name for item_id in of_other.ids}
        for item_id, item in zip(side.ids, side.items, strict=True):
            if item_id in shared and items.setdefault(item_id, (name, digest(item.parts)))[1] != digest(item.parts):
                raise EmbarkError(
                    f"'{item_id}' is the id of an item on two sides ({items[item_id][0]} and {name}): add a column "
                    "side to the ids."
                )


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _blocks(embedded: Embedded) -> Iterator[tuple[dict[str, Sequence[str]], Any]]:
    """Some rows at a time: where they stand, and their vectors."""
    for part in embedded.parts:
        for name, side in part.sides.items():
            vectors = part.vectors[name]
            for start in range(0, len(side), BLOCK_ITEMS):
                rows = range(start, min(start + BLOCK_ITEMS, len(side)))
                columns: dict[str, Sequence[str]] = {
                    "split": [part.split] * len(rows),
                    "subset": [part.subset] * len(rows),
                    "side": [name] * len(rows),
                    "id": [Content(side.ids[row]) for row in rows],
                    "content": [digest(side.items[row].parts).hex() for row in rows],
                }
                yield columns, vectors[rows.start : rows.stop]


def _write_parquet(path: Path, embedded: Embedded, several: bool, facts: Mapping[str, str]) -> None:
    vector = pa.list_(pa.float32(), embedded.dim)
    fields = [pa.field(name, pa.string()) for name in (*PLACE, "id", "content")]
    schema = pa.schema([*fields, pa.field("vector", pa.list_(vector) if several else vector)])
    with parquet_file(path, schema, facts) as file:
        for columns, vectors in _blocks(embedded):
            rows = np.concatenate(vectors) if several else vectors
            flat = pa.array(np.asarray(rows, np.float32).ravel())
            column = pa.FixedSizeListArray.from_arrays(flat, embedded.dim)
            if several:
                ends = np.cumsum([0, *map(len, vectors)])
                column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), column)
            file.write([*columns.values(), column])


def _write_npy(path: Path, embedded: Embedded) -> None:
    count = sum(len(ids) for part in embedded.parts for ids in part.ids.values())
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, embedded.dim)}
    with numbers_file(path) as matrix, json_lines_file(path.with_suffix(".jsonl")) as write_row:
        np.lib.format.write_array_header_1_0(matrix, header)
        for columns, vectors in _blocks(embedded):
            matrix.write(np.ascontiguousarray(vectors, "<f4").tobytes())
            for values in zip(*columns.values(), strict=True):
                write_row(dict(zip(columns, values, strict=True)))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(vectors: Path | str | Array, ids: Any) -> tuple[Array, dict[str, list[str]]]:
    """A matrix as float32, and the columns that tell whose its rows are."""
    if isinstance(vectors, Path | str):
        path = Path(vectors)
        check_name("format of vectors", path.suffix, FORMATS)
        if not path.is_file():
            raise EmbarkError(f"There is no file {path}.")
        if path.suffix == ".parquet":
            matrix, columns = _read_parquet(path)
        else:
            matrix, columns = _load_npy(path), None
            ids = path.with_suffix(".jsonl") if ids is None else ids
    else:
        matrix, columns = np.asarray(vectors), None
    if columns is None or ids is not None:
        columns = _read_ids(ids)
    if matrix.ndim != 2 or not len(matrix) or matrix.dtype.kind not in "fiu":
        raise EmbarkError(f"Vectors are a matrix of numbers, a row for each item, not {matrix.dtype} {matrix.shape}.")
    if any(len(column) != len(matrix) for column in columns.values()):
        raise EmbarkError(f"There are {len(matrix):,} vectors, but {len(columns['id']):,} ids.")
    with np.errstate(over="ignore"):  # what float32 cannot hold is not finite, and named
        return np.ascontiguousarray(matrix, np.float32), columns


def _load_npy(path: Path) -> Array:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise EmbarkError(f"{path} holds no matrix that can be read: {error}") from error


def _read_parquet(path: Path) -> tuple[Array, dict[str, list[str]]]:
    schema, rows = _schema(path)
    names = [name for name in VECTOR if name in schema.names]
    if not names:
        raise EmbarkError(f"{path} has no column {' or '.join(VECTOR)}; it has {', '.join(schema.names)}.")
    kind = schema.field(names[0]).type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise EmbarkError(f"The column {names[0]} of {path} holds {kind}, not lists of numbers.")
    if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise EmbarkError(f"The column {names[0]} of {path} holds {kind}: one vector per item is needed.")
    columns = _columns(_ids_table(path), path)
    matrix = np.empty((0, 0), np.float32)
    row = 0
    for batch in _parquet_batches(path, names[:1]):
        vectors = batch.column(0)
        lengths = [] if vectors.null_count else np.unique(vectors.value_lengths().to_numpy()).tolist()
        if len(lengths) != 1 or (row and lengths[0] != matrix.shape[1]) or row + len(vectors) > rows:
            raise EmbarkError(f"The vectors of {path} are missing in some rows, or not of one length.")
        [dim] = lengths
        if not row:
            limit = limits.unpacked(path.stat().st_size)
            if rows * dim * matrix.itemsize > limit:
                raise EmbarkError(f"{path} cannot be read: {limits.explain('it', limit)}.")
            matrix = np.empty((rows, dim), np.float32)
        with np.errstate(over="ignore"):  # what float32 cannot hold is not finite, and named
            flat = vectors.flatten().to_numpy(zero_copy_only=False)
            matrix[row : row + len(vectors)] = flat.reshape(len(vectors), dim)
        row += len(vectors)
    return matrix[:row], columns


def _read_ids(ids: Any) -> dict[str, list[str]]:
    """The columns of a file of ids, of a mapping, or of a plain list."""
    if ids is None:
        raise EmbarkError("A matrix has no ids: give them with --ids (ids in Python).")
    if isinstance(ids, Mapping):
        return {name: [str(value) for value in ids[name]] for name in ids}
    if not isinstance(ids, Path | str):
        return {"id": [str(value) for value in ids]}
    path = Path(ids)
    if not path.is_file():
        raise EmbarkError(f"There is no file of ids {path}; name it with --ids (ids in Python).")
    check_name("format of ids", path.suffix, IDS)
    if path.suffix == ".parquet":
        return _columns(_ids_table(path), path)
    text = path.read_bytes().decode("utf-8-sig", "surrogatepass")
    if path.suffix == ".csv":
        return _columns(_by_column(list(csv.DictReader(io.StringIO(text, newline="")))), path)
    lines = text.removesuffix("\n").split("\n")
    if path.suffix == ".txt":
        return {"id": [line.removesuffix("\r") for line in lines]}
    try:
        values = [json.loads(line) for line in lines]
    except ValueError as error:
        raise EmbarkError(f"{path} is no file of JSON lines: {error}") from error
    if all(isinstance(value, dict) for value in values):
        return _columns(_by_column(values), path)
    return {"id": [str(value) for value in values]}


def _schema(path: Path) -> tuple[Any, int]:
    """The columns of a Parquet file, and its number of rows."""
    with _parquet_errors(path), pq.ParquetFile(path) as file:
        return file.schema_arrow, file.metadata.num_rows


def _ids_table(path: Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file that tell whose a vector is; of a file without them, its names with no values."""
    schema, _ = _schema(path)
    names = [name for name in ID_COLUMNS if name in schema.names]
    content: dict[str, list[Any]] = {name: [] for name in (names if "id" in names else schema.names)}
    for batch in _parquet_batches(path, names) if "id" in names else ():
        for name in names:
            content[name] += batch.column(name).to_pylist()
    return content


def _parquet_batches(path: Path, columns: list[str]) -> Iterator[Any]:
    """These columns of a Parquet file, some rows at a time; an error where they become too much for a file so small."""
    batches = changing_parquet_batches(str(path), columns)
    while True:
        with _parquet_errors(path):
            batch = next(batches, None)
        if batch is None:
            return
        if len(batch):
            yield batch


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except EmbarkError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise EmbarkError(f"{path} is no Parquet file that can be read: {error}") from error


def _by_column(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in (rows[0] if rows else ())}


def _columns(content: Mapping[str, Sequence[Any]], path: Path) -> dict[str, list[str]]:
    """The columns that tell whose a vector is, as text."""
    columns = {name: content[name] for name in ID_COLUMNS if name in content}
    if "id" not in columns:
        raise EmbarkError(f"{path} has no column id; it has {', '.join(content) or 'no columns'}.")
    if empty := [name for name, values in columns.items() if None in values]:
        raise EmbarkError(f"The column {empty[0]} of {path} is empty in some rows.")
    return {name: [str(value) for value in values] for name, values in columns.items()}


def _identity(matrix: Array, columns: Mapping[str, Sequence[str]]) -> str:
    """A hash of the vectors and of whose they are."""
    outer = hashlib.sha256(json.dumps([matrix.shape, columns], sort_keys=True, ensure_ascii=True).encode())
    outer.update(np.ascontiguousarray(matrix, "<f4").data)
    return outer.hexdigest()[:16]
