"""How near the store is to its ceilings: a plain file, and a matrix in memory.

python benchmarks/store.py [--rows 100000] [--dim 768] [--keys 1000000] [--folder DIR] [--json]
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from embark.engine.batching.check import check_vectors
from embark.engine.workers.sink import Sink
from embark.evaluators.similarity import as_float32
from embark.items import KEY
from embark.store import Store
from embark.types import Array, ModelCard


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; a temporary folder if not given")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        figures = vectors(Path(folder), args.rows, args.dim) | lookups(Path(folder), args.keys)
        figures |= sinking(Path(folder), args.keys) | growing(Path(folder), args.keys)
        figures |= checking(Path(folder)) | precisions(Path(folder), args.rows, args.dim)
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:28} {value:>14,.2f}")


def vectors(folder: Path, rows: int, dim: int, commits: int = 10) -> dict[str, float]:
    """Writing with durable commits against one plain file with as many fsyncs; gathering against `np.take`."""
    rng = np.random.default_rng(0)
    keys, matrix = random_keys(rng, rows), rng.standard_normal((rows, dim), np.float32).astype(np.float16)
    parts = np.array_split(np.arange(rows), commits)
    stores = iter(range(99))

    def store() -> None:
        with Store(folder / str(next(stores))).space("ab").writer() as writer:
            for part in parts:
                writer.add(keys[part[0] : part[-1] + 1], matrix[part[0] : part[-1] + 1])
                writer.commit()

    def plain() -> None:
        with (folder / f"plain{next(stores)}").open("xb", buffering=0) as file:
            for part in parts:
                file.write(matrix[part[0] : part[-1] + 1].data)
                os.fsync(file.fileno())

    written, floor = alternate(store, plain)
    space = Store(folder / "0").space("ab")
    order = rng.permutation(rows)
    shuffled, in_order = space.read(keys[order]), space.read(keys)
    result = {
        "write MB/s": matrix.nbytes / 1e6 / written,
        "write ÷ plain file": floor / written,
    }
    for name, view, places in ("shuffled", shuffled, order), ("in order", in_order, np.arange(rows)):
        gathered, taken = alternate(lambda v=view: v[:], lambda p=places: np.take(matrix, p, axis=0))
        result |= {f"gather {name} MB/s": matrix.nbytes / 1e6 / gathered, f"gather {name} ÷ np.take": taken / gathered}
    return result


def precisions(folder: Path, rows: int, dim: int, batch: int = 1024) -> dict[str, float]:
    """What storing vectors in float32 costs against float16: from float32 batches to the disk, and back to float32."""
    rng = np.random.default_rng(5)
    keys, matrix = random_keys(rng, rows), rng.standard_normal((rows, dim), np.float32)
    numbers = iter(range(99))

    def write(stored: str, place: Path) -> None:
        card = ModelCard("test/stored", "1", "functions", ("text",), dim, stored=stored)
        with Store(place).space("ab").writer() as writer, Sink(writer) as target:
            for start in range(0, rows, batch):
                part = slice(start, min(start + batch, rows))
                target.put(keys[part], check_vectors(matrix[part], card, range(part.start, part.stop), str))

    figures = {}
    places = {stored: folder / f"precision {stored}" for stored in ("float32", "float16")}
    for stored, place in places.items():
        write(stored, place)
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        figures[f"{stored} bytes a vector"] = size / rows
    anew = (lambda stored=stored: write(stored, folder / f"{stored} {next(numbers)}") for stored in places)
    wide, narrow = alternate(*anew)
    figures["write float16 ÷ float32"] = narrow / wide
    spaces = [Store(place).space("ab") for place in places.values()]
    wide, narrow = alternate(*(lambda space=space: as_float32(space.read(keys)[:]) for space in spaces))
    return figures | {"read float16 ÷ float32": narrow / wide}


def lookups(folder: Path, count: int) -> dict[str, float]:
    """Opening a space of many keys, and looking all of them up."""
    rng = np.random.default_rng(1)
    keys = random_keys(rng, count)
    with Store(folder).space("keys").writer() as writer:
        writer.add(keys, np.zeros((count, 1), np.uint8))
    opened = min(float(fresh_process(OPEN, str(folder))) for _ in range(3))  # a process opens a space once
    space, shuffled = Store(folder).space("keys"), rng.permutation(keys)
    seconds = best(lambda: space.has(shuffled))
    return {"open s": opened, "open keys/s": count / opened, "lookup keys/s": count / seconds}


def sinking(folder: Path, count: int, dim: int = 512, batch: int = 1024) -> dict[str, float]:
    """Batches through the writer thread as a run puts them, against a plain file with one fsync."""
    rng = np.random.default_rng(3)
    keys, matrix = random_keys(rng, count), rng.standard_normal((batch, dim), np.float32).astype(np.float16)
    numbers = iter(range(99))

    def sink() -> None:
        space = Store(folder / f"sink{next(numbers)}").space("ab")
        with space.writer() as writer, Sink(writer) as target:
            for start in range(0, count, batch):
                of_batch = keys[start : start + batch]
                target.put(of_batch, matrix[: len(of_batch)].copy())

    def plain() -> None:
        with (folder / f"plain sink{next(numbers)}").open("xb", buffering=0) as file:
            for start in range(0, count, batch):
                file.write(matrix[: count - start].data)
            os.fsync(file.fileno())

    seconds, floor = alternate(sink, plain, 2)
    return {"sink vectors/s": count / seconds, "sink ÷ plain file": floor / seconds}


def growing(folder: Path, count: int, waves: int = 100) -> dict[str, float]:
    """Adding to a space wave by wave and looking each up, for all waves; ten times the keys should take ten times."""
    keys = random_keys(np.random.default_rng(4), count)
    seconds = []
    for total in (count // 10, count):
        size = total // waves
        space = Store(folder / f"waves{total}").space("ab")
        spent = 0.0
        for start in range(0, size * waves, size):
            with space.writer() as writer:
                writer.add(keys[start : start + size], np.zeros((size, 1), np.uint8))
            begun = time.process_time()
            space.refresh()
            assert space.has(keys[start : start + size]).all()
            spent += time.process_time() - begun
        seconds.append(spent)
    return {"100 waves of lookups s": seconds[1], "10 × keys ÷ time": seconds[1] / seconds[0]}


OPEN = """
import sys, time
from pathlib import Path
from embark.store import Store
start = time.perf_counter()
len(Store(Path(sys.argv[1])).space("keys"))
print(time.perf_counter() - start)
"""
READ = """
import sys, time
from pathlib import Path
import numpy as np
from embark.items import KEY
from embark.store import Store, segments
if sys.argv[3] == "unchecked":
    segments.Segment._check = lambda self, local, rows: local[:0]
keys = np.fromfile(sys.argv[2], KEY)
vectors = Store(Path(sys.argv[1])).space("ab").read(keys)
vectors[:1000]
start = time.perf_counter()
vectors[:]
print(time.perf_counter() - start)
"""


def checking(folder: Path, count: int = 52_000, dim: int = 512) -> dict[str, float]:
    """What checking costs where as many float32 vectors are read as benchmarks/scoring.py's retrieval has."""
    rng = np.random.default_rng(2)
    keys, matrix = random_keys(rng, count), rng.standard_normal((count, dim), np.float32)
    with Store(folder / "checked").space("ab").writer() as writer:
        writer.add(keys, matrix)
    keys.tofile(folder / "keys.bin")
    words = (READ, str(folder / "checked"), str(folder / "keys.bin"))
    pairs = [[float(fresh_process(*words, how)) for how in ("checked", "unchecked")] for _ in range(5)]
    checked, unchecked = (min(column) for column in zip(*pairs, strict=True))
    return {"read checked ms": checked * 1e3, "read unchecked ms": unchecked * 1e3}


def fresh_process(*words: str) -> str:
    return subprocess.run([sys.executable, "-c", *words], check=True, capture_output=True, text=True).stdout


def random_keys(rng: np.random.Generator, count: int) -> Array:
    return np.frombuffer(rng.bytes(32 * count), KEY)


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the quickest of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def alternate(one: Callable[[], object], other: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """The quickest of each, in turns, so that a busy machine slows both."""
    pairs = [(best(one, 1), best(other, 1)) for _ in range(repeats)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


if __name__ == "__main__":
    main()
