"""What a Ray cluster adds and costs: the rate of four copies against one, and memory over a million items.

python benchmarks/cluster.py [--only rate,memory] [--items 1000000] [--quick] [--json]

A local Ray with pretended CPUs, and an encoder that sleeps, so that the cores of this machine do not matter: four
copies should have four times the rate of one, measured in the same run after the actors have started. Then an encoder
that costs nothing embeds a million texts into a store, while the anonymous memory of the driver and of every actor is
sampled: it should be the same after a tenth of the items and at the end. Whoever reads stored vectors afterwards holds
an index of their keys: the last figure is what that takes.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import gc
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embark.allocation import return_memory
from embark.engine.ray.cluster import Cluster
from embark.engine.ray.engine import RayEngine
from embark.items.lazy_items import Texts, text_array
from embark.models.encoder import Encoder, Tower, Towers
from embark.planning import Needs, keys_of, plan, task_demand
from embark.protocol import vector_space
from embark.store import Space, Store
from embark.types import Dataset, Groups, ModelCard, Side, Source, Task

COPIES = 4
DIM = 64
SECONDS = 0.002  # of an item, for the encoder that sleeps
CARD = ModelCard("benchmark/lengths", "1", "functions", ("text",), dim=DIM)
LIMITS = {"rate": 0.9, "memory": 1.1}
SAMPLE_SECONDS = 0.5


def main() -> int:
    """Measure, print; status 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="rate,memory", help="parts, with commas between")
    parser.add_argument("--items", type=int, default=1_000_000, help="of the part memory")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    report: dict[str, Any] = {"cores": os.cpu_count(), "claims": []}
    with tempfile.TemporaryDirectory() as folder, local_ray():
        if "rate" in args.only:
            measure_rate(Path(folder), 2_000 if args.quick else 20_000, report)
        if "memory" in args.only:
            measure_memory(Path(folder), min(args.items, 50_000) if args.quick else args.items, report)
    print(json.dumps(report, indent=2)) if args.json else show(report)
    return 0 if all(claim["holds"] for claim in report["claims"]) else 1


def show(report: dict[str, Any]) -> None:
    """Print the figures and the claims."""
    for part in ("rate", "memory"):
        for name, value in report.get(part, {}).items():
            print(f"{name:40} {value:12,.1f}")
    for row in report["claims"]:
        word = "at least" if row["least"] else "at most"
        holds = "holds" if row["holds"] else "DOES NOT HOLD"
        print(f"{row['claim']}: {row['value']:.3g} ({word} {row['limit']:g}): {holds}")


@contextmanager
def local_ray() -> Iterator[None]:
    """A Ray of this machine alone, with more CPUs than it has."""
    import ray

    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init("local", num_cpus=2 * COPIES, object_store_memory=400 << 20, **quiet)
    try:
        yield
    finally:
        ray.shutdown()


def lengths(seconds: float) -> Encoder:
    """A model of the lengths of texts, which sleeps so long for each."""

    def embed(texts: list[str]) -> Any:
        time.sleep(seconds * len(texts))
        return np.repeat(np.array([[len(text)] for text in texts], np.float32), DIM, axis=1)

    return Towers(CARD, {"text": Tower(embed)})


def needs_of_texts(count: int, word: str) -> Needs:
    """So many texts to embed."""
    side = Side([str(row) for row in range(count)], Texts(text_array([f"{word} {row}" for row in range(count)])))
    task = Task("Items", "Own", "clustering", "labelled", Source("items", "1"), "nmi", "clustering", ())
    data = Dataset({"item": side}, Groups(np.zeros(count, np.int64), ("all",)))
    return plan([task_demand(task, "test", "default", data, lengths(0))], lambda keys: np.zeros(len(keys), bool)).needs


def engine(seconds: float, copies: int, preparers: int) -> RayEngine:
    cluster = Cluster(copies=copies, preparers=preparers)
    return RayEngine(cluster, partial(lengths, seconds), partial(lengths, 0), None, vector_space(CARD))


# ── the rate of several copies ───────────────────────────────────────────────────────────────────────────────────────


def measure_rate(folder: Path, items: int, report: dict[str, Any]) -> None:
    """Items a second of one copy and of several, which embed as many each; one before and after, the quicker counts."""
    turns = [(copies, rate(folder / str(turn), copies, items)) for turn, copies in enumerate((1, COPIES, 1))]
    rates = {copies: max(value for number, value in turns if number == copies) for copies in (1, COPIES)}
    report["rate"] = {f"items/s of {copies} copies": value for copies, value in rates.items()}
    share = rates[COPIES] / (COPIES * rates[1])
    claim = {"claim": f"the rate of {COPIES} copies, of {COPIES} times that of one", "value": share}
    report["claims"].append({**claim, "limit": LIMITS["rate"], "least": True, "holds": share >= LIMITS["rate"]})


def rate(folder: Path, copies: int, items: int) -> float:
    with engine(SECONDS, copies, 1) as ray_engine, Store(folder).space("a").writer() as writer:
        ray_engine.embed(needs_of_texts(512 * copies, "first"), writer)  # until every copy has begun
        needs = needs_of_texts(copies * items, "text")
        start = time.perf_counter()
        ray_engine.embed(needs, writer)
        return copies * items / (time.perf_counter() - start)


# ── memory over many items ───────────────────────────────────────────────────────────────────────────────────────────


def measure_memory(folder: Path, items: int, report: dict[str, Any]) -> None:
    """The anonymous memory of the driver and of the largest actor, after a tenth of the items and at the end."""
    needs = needs_of_texts(items, "text")
    space = Store(folder / "memory").space("a")
    done = 0
    ended = threading.Event()
    samples: list[tuple[int, float, float]] = []

    def advance(count: int, left: float | None) -> None:
        nonlocal done
        done += count

    def sample() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            samples.append((done, anonymous(os.getpid()), max(map(anonymous, actors()), default=0.0)))

    with engine(0.0, 1, 1) as ray_engine, space.writer() as writer:
        sampler = threading.Thread(target=sample, daemon=True)
        sampler.start()
        start = time.perf_counter()
        ray_engine.embed(needs, writer, advance=advance)
        seconds = time.perf_counter() - start
        ended.set()
        sampler.join()
    samples = [row for row in samples if row[2]]  # not before the actors began
    if not samples:
        raise SystemExit("It was over before memory could be measured: give more --items.")
    early = [row for row in samples if 0.1 * items <= row[0] <= 0.2 * items] or samples[:1]
    late = [row for row in samples if row[0] >= 0.9 * items] or samples[-1:]
    figures = {"items": float(items), "items/s": items / seconds}
    for place, name in ((1, "driver"), (2, "largest actor")):
        before, after = (float(np.median([row[place] for row in rows])) for rows in (early, late))
        figures |= {f"{name}, MB after a tenth": before, f"{name}, MB at the end": after}
        claim = {"claim": f"memory of the {name} at the end, of that after a tenth", "value": after / before}
        report["claims"].append(
            {**claim, "limit": LIMITS["memory"], "least": False, "holds": after <= LIMITS["memory"] * before}
        )
    figures["the store's index, bytes a vector"] = index_bytes(space, keys_of(needs))
    report["memory"] = figures


def index_bytes(space: Space, keys: Any) -> float:
    """The memory that it takes to look up one of these stored keys, by how many there are."""
    gc.collect()
    return_memory()
    before = anonymous(os.getpid())
    space.refresh()
    if not space.has(keys[-1:]).all():
        raise SystemExit("A vector that was embedded is not stored.")
    return_memory()
    return 2**20 * (anonymous(os.getpid()) - before) / len(keys)


def actors() -> list[int]:
    """The processes of Ray's actors here: Ray names them after what they do."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith((b"ray::Preparing", b"ray::Embedding")):
                processes.append(int(path.parent.name))
        except OSError:  # it has just ended
            continue
    return processes


def anonymous(process: int) -> float:
    """The anonymous memory of a process in MB."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:  # it has just ended
        return 0.0
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")) / 1024


if __name__ == "__main__":
    sys.exit(main())
