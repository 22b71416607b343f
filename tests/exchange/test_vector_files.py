"""Vectors to files and back: the same scores, and errors that name what does not fit."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.exchange import vector_files
from embark.items import digest, text
from embark.run.stored_vectors import NotStored
from embark.types import EmbarkError
from peak_memory import PEAK, linux

MODEL = "embark/random"
TASK = "PocketClockReading"


@pytest.fixture
def run() -> embark.types.Run:
    return embark.evaluate(MODEL, TASK, show_progress=False)


def said(*words: str | Path) -> tuple[str, str]:
    done = CliRunner().invoke(app, ["vectors", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


@pytest.mark.parametrize("ending", [".parquet", ".npy"])
def test_exported_vectors_are_scored_without_a_model(ending: str, run: embark.types.Run, tmp_path: Path) -> None:
    file = tmp_path / f"clocks{ending}"
    written = embark.exchange.export_vectors(MODEL, TASK, file)
    again = embark.exchange.import_vectors(file, TASK)
    [before], [after] = run.results, again.results
    assert (after.score, after.interval) == (before.score, before.interval)
    assert after.model == "imported/clocks"
    assert after.revision.startswith("sha256-")
    assert after.warnings == (*before.warnings, "scored from imported vectors, which were made elsewhere")
    assert after.records[0].loaded["vectors"] == "imported"
    assert embark.compare("imported/clocks", MODEL).sentence().startswith("On 1 task, no difference")
    assert sum(written.sides.values()) == len(pq.read_table(file)) if ending == ".parquet" else len(np.load(file))


def test_a_file_tells_whose_vectors_it_has(run: embark.types.Run, tmp_path: Path) -> None:
    embark.exchange.export_vectors(MODEL, TASK, tmp_path / "clocks.parquet")
    table = pq.read_table(tmp_path / "clocks.parquet")
    assert table.column_names == ["split", "subset", "side", "id", "content", "vector"]
    assert {*table["side"].to_pylist()} == {"query", "document"}
    assert table.schema.metadata[b"model"] == MODEL.encode()
    content = dict(zip(table["id"].to_pylist(), table["content"].to_pylist(), strict=True))
    assert digest(text("nine o’clock").parts).hex() in content.values()
    with pytest.raises(NotStored, match="Embed them"):
        embark.exchange.export_vectors(MODEL, "PocketNameSTS", tmp_path / "sts.npy")
    with pytest.raises(EmbarkError, match=r"format of vectors named '.csv'"):
        embark.exchange.export_vectors(MODEL, TASK, tmp_path / "clocks.csv")


def test_ids_come_in_many_forms(run: embark.types.Run, tmp_path: Path) -> None:
    embark.exchange.export_vectors(MODEL, TASK, tmp_path / "v.npy")
    matrix = np.load(tmp_path / "v.npy")
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text(encoding="utf-8").splitlines()]
    columns = {name: [row[name] for row in rows] for name in ("side", "id")}
    score = run.results[0].score
    assert embark.exchange.import_vectors(matrix, TASK, ids=columns, name="me/array").results[0].score == score
    with (tmp_path / "ids.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("side", "id"), *zip(columns["side"], columns["id"], strict=True)])
    assert embark.exchange.import_vectors(tmp_path / "v.npy", TASK, ids=tmp_path / "ids.csv").results[0].score == score
    lists = pa.table(columns | {"embedding": list(matrix.astype(np.float64))})  # lists of any length, doubles
    pq.write_table(lists, tmp_path / "lists.parquet")
    order = np.random.default_rng(0).permutation(len(matrix))
    pq.write_table(lists.take(order), tmp_path / "shuffled.parquet")
    for name in ("lists", "shuffled"):
        assert embark.exchange.import_vectors(tmp_path / f"{name}.parquet", TASK).results[0].score == score
    more = np.vstack([matrix, matrix[:2]])
    extra = {"side": [*columns["side"], "query", "query"], "id": [*columns["id"], "x", "y"]}
    assert embark.exchange.import_vectors(more, TASK, ids=extra, name="me/more").notes == (
        "2 vectors of the file belong to no item that the task scores",
    )


def test_what_does_not_fit_is_named(run: embark.types.Run, tmp_path: Path) -> None:
    embark.exchange.export_vectors(MODEL, TASK, tmp_path / "v.npy")
    matrix = np.load(tmp_path / "v.npy")
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text(encoding="utf-8").splitlines()]
    columns = {name: [row[name] for row in rows] for name in rows[0]}

    def refused(why: str, matrix: Any = matrix, ids: Any = columns, **options: Any) -> None:
        with pytest.raises(EmbarkError, match=why):
            embark.exchange.import_vectors(matrix, TASK, ids=ids, name="me/array", **options)

    fewer = {name: values[1:] for name, values in columns.items()}
    refused(f"1 of the .* items of {TASK} .* have no vector in the file; the first is '{columns['id'][0]}'",
            matrix[1:], fewer)  # fmt: skip
    refused("vectors, but", matrix[1:])
    refused("is of other content", ids=columns | {"content": ["0" * 64] * len(matrix)})
    refused("no ids", ids=None)
    refused("There is no file of ids", ids=tmp_path / "none.txt")
    refused("a matrix of numbers", matrix[0])
    twice = {name: [*values, values[0]] for name, values in columns.items()}
    refused("two vectors of", np.vstack([matrix, matrix[0] + 1]), twice)
    refused("Did you mean dot", similarity="dott")
    matrix = matrix.copy()
    matrix[0, 0] = np.nan
    refused(f"1 vector .* is not finite: {columns['id'][0]}", matrix)
    np.save(tmp_path / "pickled.npy", np.array([{}]), allow_pickle=True)
    refused("no matrix that can be read", tmp_path / "pickled.npy")
    with pytest.raises(EmbarkError, match="The vectors need a name"):
        embark.exchange.import_vectors(matrix, TASK, ids=columns)
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "bare.parquet")
    refused("has no column vector", tmp_path / "bare.parquet", None)


BOMB = f"""{PEAK}
import sys
from pathlib import Path
from embark.exchange import vector_files
from embark.types import EmbarkError

before = peak()
try:
    print(vector_files._read(Path(sys.argv[1]), sys.argv[2] or None)[0].shape, end=" ")
except EmbarkError as error:
    print(error, end=" ")
print(peak() - before)
"""


def read_by_a_process(file: Path, ids: str = "") -> tuple[str, int]:
    """What a process says that reads vectors, and by how many megabytes its memory grew."""
    child = subprocess.run([sys.executable, "-c", BOMB, str(file), ids], capture_output=True, text=True, timeout=300)
    assert not child.returncode, child.stderr
    words, _, peak = child.stdout.strip().rpartition(" ")
    return words, int(peak)


def constant(path: Path, rows: int, dim: int, parts: int) -> Path:
    """A file of equal vectors: some kilobytes, however many there are."""
    flat = pa.array(np.ones(rows * dim, np.float32))
    vectors = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * dim), flat)
    table = pa.table({"id": [str(row) for row in range(rows)], "vector": vectors})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as file:
        for _ in range(parts):
            file.write_table(table)
    return path


@linux
def test_a_small_file_of_very_many_vectors_is_refused_before_they_are_read(tmp_path: Path) -> None:
    file = constant(tmp_path / "x.parquet", 1000, 16_000, 10)  # 640 MB of numbers, and as much again twice
    assert file.stat().st_size < 500_000
    words, peak = read_by_a_process(file)
    assert "x.parquet cannot be read: column 'vector.list.element' becomes more than 536,870,912 bytes" in words
    assert "EMBARK_LIMITS raises the limit" in words
    assert peak < 100


@linux
def test_vectors_are_read_by_and_by(tmp_path: Path) -> None:
    words, peak = read_by_a_process(constant(tmp_path / "x.parquet", 500, 16_000, 6))
    assert words == "(3000, 16000)"
    assert peak < 192 + 150  # megabytes of the matrix, and what a part of it needs


@linux
def test_a_small_file_of_very_long_ids_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1000, 2), np.float32))
    value = pa.array(["a" * 9_000_000])
    ids = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), value)
    pq.write_table(pa.table({"id": ids}), tmp_path / "ids.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "ids.parquet").stat().st_size < 100_000
    words, peak = read_by_a_process(tmp_path / "x.npy", str(tmp_path / "ids.parquet"))
    assert "ids.parquet cannot be read: it becomes more than" in words
    assert peak < 1000


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[1.0, 2.0], None], pa.list_(pa.float32())),
        ([None, None], pa.list_(pa.float32())),
        ([[1.0, 2.0], [1.0]], pa.list_(pa.float32())),
        ([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
    ],
)
def test_vectors_that_are_missing_or_of_several_lengths_are_refused(rows: Any, kind: Any, tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b"], "vector": pa.array(rows, kind)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=1)
    with pytest.raises(EmbarkError, match="missing in some rows, or not of one length"):
        embark.exchange.import_vectors(tmp_path / "x.parquet", TASK)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float16(), pa.int8()])
def test_numbers_of_all_kinds_become_floats(kind: Any, tmp_path: Path) -> None:
    vectors = pa.array(np.arange(12).reshape(6, 2).astype(kind.to_pandas_dtype()).tolist(), pa.list_(kind))
    pq.write_table(pa.table({"id": list("abcdef"), "vector": vectors}), tmp_path / "x.parquet", row_group_size=4)
    matrix, columns = vector_files._read(tmp_path / "x.parquet", None)
    assert matrix.dtype == np.float32
    assert matrix.tolist() == np.arange(12).reshape(6, 2).tolist()
    assert columns == {"id": list("abcdef")}


def test_equal_ids_on_two_sides_need_a_column() -> None:
    with pytest.raises(EmbarkError, match="add a column side"):
        embark.exchange.import_vectors(np.eye(4), "PocketNameToImage", ids=["1F600", "b", "c", "d"], name="me/array")


def test_commands_export_and_import_vectors(run: embark.types.Run, tmp_path: Path) -> None:
    file = tmp_path / "clocks.parquet"
    assert f"of dimension 256 to {file} (" in said("export", "-m", MODEL, "-t", TASK, "-o", file)[0]
    out, notes = said("import", file, "-t", TASK, "--as", "me/mine", "--format", "json")
    assert json.loads(out)["results"][0]["model"] == "me/mine"
    assert "kept as me/mine, revision sha256-" in notes


def test_vectors_that_no_model_may_return_are_refused_by_name(run: embark.types.Run, tmp_path: Path) -> None:
    embark.exchange.export_vectors(MODEL, TASK, tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    first = table["id"][0].as_py()
    vectors = np.array(table["vector"].to_pylist())
    for value, problem in ((0.0, "zero"), (1e300, "not finite")):  # the second overflows in float32
        vectors[0] = value
        with pytest.raises(EmbarkError, match=rf"1 vector \(query\) is {problem}: {first}"):
            embark.exchange.import_vectors(vectors, TASK, ids=table.drop_columns("vector").to_pydict(), name="me/wrong")
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(EmbarkError, match="a matrix of numbers, a row for each item"):
        embark.exchange.import_vectors(tmp_path / "empty.parquet", TASK)
    pq.write_table(pa.concat_tables([table, table.slice(0, 2)]), tmp_path / "twice.parquet")
    assert embark.exchange.import_vectors(tmp_path / "twice.parquet", TASK).notes == ()  # equal rows are one


def test_imported_vectors_take_no_built_in_name(run: embark.types.Run, tmp_path: Path) -> None:
    embark.exchange.export_vectors(MODEL, TASK, tmp_path / "v.parquet")
    with pytest.raises(EmbarkError, match="A built-in model is named embark/random, too"):
        embark.exchange.import_vectors(tmp_path / "v.parquet", TASK, name=MODEL)
    with pytest.raises(EmbarkError, match="need a name"):
        embark.exchange.import_vectors(tmp_path / "v.parquet", TASK, name="")
    embark.exchange.import_vectors(tmp_path / "v.parquet", TASK)
    assert embark.show("imported/v")["from"].startswith("vectors in a file, revision sha256-")
