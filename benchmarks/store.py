"""How near the store is to its ceilings: a plain file, and a matrix in memory.

python benchmarks/store.py [--rows 100000] [--dim 768] [--keys 1000000] [--folder DIR] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from embark.data.items import KEY
from embark.store import Store
from embark.types import Array


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


def lookups(folder: Path, count: int) -> dict[str, float]:
    """Opening a space of many keys, and looking all of them up."""
    rng = np.random.default_rng(1)
    keys = random_keys(rng, count)
    with Store(folder).space("keys").writer() as writer:
        writer.add(keys, np.zeros((count, 1), np.uint8))
    opened = best(lambda: len(Store(folder).space("keys")))
    space, shuffled = Store(folder).space("keys"), rng.permutation(keys)
    return {"open keys/s": count / opened, "lookup keys/s": count / best(lambda: space.has(shuffled))}


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
