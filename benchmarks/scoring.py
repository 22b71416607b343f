"""How fast scoring is, and how much memory it takes, against mteb on the same embeddings and against the plain product.

python benchmarks/scoring.py [--json] [--peer PYTHON] [--large]

The peer is mteb 2.26.24 in an environment of its own: --peer, else $EMBARK_PEER, else ./.venv-peer/bin/python.
Make it: python3 -m venv .venv-peer && .venv-peer/bin/pip install torch==2.13.0 mteb==2.26.24
Every measurement is a fresh process; the two take turns, and the best of a few rounds counts. `--large` retrieves from
a million documents.
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
from typing import Any

import numpy as np
from peer_mteb import WARM, measured

from embark.evaluators import evaluate
from embark.types import Array, Qrels, Split

ROUNDS = 3
DIM = 512
AGREE = {"retrieval": 2e-5, "probe": 1e-6}  # mteb rounds rankings to five places
PEER_CASES = {"retrieval": ("retrieval", "retrieval_bare"), "probe": ("probe", "probe_lists")}
TARGETS = {"retrieval": "≥ 10 × faster, ≤ 1/4 memory", "probe": "≥ 10 × faster", "topk": "≥ 60 % of the product"}
HERE = Path(__file__).resolve().parent


def main() -> None:
    """Make the embeddings, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peer", default=os.environ.get("EMBARK_PEER", ".venv-peer/bin/python"))
    parser.add_argument("--large", action="store_true", help="20,000 × 1,000,000 × 512 only; minutes, and 1 GB of disk")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)  # one measurement, in this process
    args = parser.parse_args()
    if args.case:
        print(json.dumps(CASES[args.case[0]](Path(args.case[1]))))
        return
    peer = args.peer if Path(args.peer).is_file() else None
    if peer is None and not args.large:
        print(f"no peer at {args.peer}: measured without one (see --help)", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        rows = [large_case(Path(name))] if args.large else usual_cases(Path(name), peer)
    if args.json:
        print(json.dumps({"machine": machine(), "cases": rows}, indent=2))
    else:
        print(machine())
        for row in rows:
            print(f"\n{row.pop('case')} (target: {row.pop('target')})")
            for key, value in row.items():
                print(f"  {key:30} {value:12,.3f}")


def usual_cases(folder: Path, peer: str | None) -> list[dict[str, Any]]:
    """Retrieval and probe against the peer, top-k against the product."""
    rows = []
    for case, make in (("retrieval", make_retrieval), ("probe", make_probe)):
        at = folder / case
        at.mkdir()
        shape = make(at)
        ours, *theirs = best(at, case, *PEER_CASES[case], peer=peer)
        row = {"case": f"{case} {shape}", "s": ours["seconds"], "extra MB": ours["extra_rss_mb"]}
        for name, found in zip(PEER_CASES[case], theirs, strict=False):
            agree(case, ours["scores"], found["scores"])
            who = name.replace(case, "mteb")
            row |= {f"{who} s": found["seconds"], f"{who} extra MB": found["extra_rss_mb"]}
            row |= {f"{who} s ÷ ours": found["seconds"] / ours["seconds"]}
            row |= {f"our extra ÷ {who}'s": ours["extra_rss_mb"] / max(found["extra_rss_mb"], 1.0)}
        if product := ours.get("product"):
            row |= {"product s": product, "s ÷ product": ours["seconds"] / product}
        rows.append(row | {"target": TARGETS[case]})
    found = run([sys.executable, __file__, "--case", "topk", str(folder / "retrieval")])
    return [*rows, {"case": "top 100, 2,000 × 50,000 × 512"} | found | {"target": TARGETS["topk"]}]


def large_case(folder: Path) -> dict[str, Any]:
    """A million stored halves, memory-mapped."""
    rng, documents = np.random.default_rng(0), 1_000_000
    stored = np.lib.format.open_memmap(folder / "document.npy", "w+", np.float16, (documents, DIM))
    for at in range(0, documents, 50_000):
        stored[at : at + 50_000] = rng.standard_normal((50_000, DIM), np.float32)
    target = rng.integers(documents, size=20_000)
    noisy = stored[target] + 5 * rng.standard_normal((len(target), DIM), np.float32)
    np.save(folder / "query.npy", noisy.astype(np.float16))
    np.save(folder / "target.npy", target)
    stored.flush()
    del stored
    found = run([sys.executable, __file__, "--case", "large", str(folder)])
    values = {"s": found["seconds"], "extra MB": found["extra_rss_mb"], "ndcg@10": found["scores"]["ndcg_at_10"]}
    return {"case": "retrieval 20,000 × 1,000,000 × 512, fp16 on disk", **values, "target": "≤ 2,048 MB extra"}


# ── one measurement, in a process of its own ─────────────────────────────────────────────────────────────────────────


def retrieval(folder: Path) -> dict[str, Any]:
    """Our evaluator on the embeddings that the peer gets."""
    queries, documents = (np.load(folder / f"{side}.npy") for side in ("query", "document"))
    truth = json.loads((folder / "truth.json").read_text())
    names = {side: np.array(truth[f"{side}_ids"]) for side in ("query", "document")}
    place = {name: at for at, name in enumerate(truth["document_ids"])}
    rows = [(q, place[d], g) for q, name in enumerate(truth["query_ids"]) for d, g in truth["qrels"][name].items()]
    query, document, grade = np.array(rows).T
    qrels = Qrels(query, document, grade, names["query"], names["document"])

    def work(small: bool) -> dict[str, float]:
        if small:
            vectors, known = {"query": queries[:WARM], "document": documents[: 20 * WARM]}, np.arange(WARM)
            return dict(evaluate("retrieval", Qrels(known, known, known * 0 + 1), vectors, {}).metrics)
        return dict(evaluate("retrieval", qrels, {"query": queries, "document": documents}, {}).metrics)

    return measured(work) | {"product": min(clock(gemm(queries, documents)) for _ in range(ROUNDS))}


def probe(folder: Path) -> dict[str, Any]:
    """Our probe on the embeddings that the peer gets."""
    vectors = {side: np.load(folder / f"{side}.npy") for side in ("train", "test")}
    truth = json.loads((folder / "truth.json").read_text())
    train, test, names = np.array(truth["train"]), np.array(truth["test"]), tuple(map(str, range(truth["classes"])))

    def work(small: bool) -> dict[str, float]:
        some = WARM if small else None
        split, part = Split(train[:some], test[:some], names), {side: rows[:some] for side, rows in vectors.items()}
        params = {"shots": truth["shots"], "runs": truth["runs"]}
        return dict(evaluate("probe", split, part, params).metrics)

    return measured(work)


def topk_rate(folder: Path) -> dict[str, Any]:
    """Exact top 100 beside one product of the same shape, by turns in one process."""
    from embark.evaluators.topk import topk

    queries, documents = (np.load(folder / f"{side}.npy") for side in ("query", "document"))
    plain = gemm(queries, documents)
    seconds = [(clock(lambda: topk(queries, documents, 100)), clock(plain)) for _ in range(ROUNDS + 2)]
    ours, product = (min(column) for column in zip(*seconds, strict=True))
    return {"s": ours, "product s": product, "share of the product's rate": product / ours}


def large(folder: Path) -> dict[str, Any]:
    """Our retrieval from a memory-mapped corpus."""
    target = np.load(folder / "target.npy")
    vectors = {side: np.load(folder / f"{side}.npy", mmap_mode="r") for side in ("query", "document")}

    def work(small: bool) -> dict[str, float]:
        if small:
            return retrieve({side: rows[:WARM] for side, rows in vectors.items()}, np.arange(WARM))
        return retrieve(vectors, target)

    return measured(work)


def retrieve(vectors: dict[str, Any], target: Array) -> dict[str, float]:
    qrels = Qrels(np.arange(len(target)), target, np.ones(len(target), np.int64))
    return dict(evaluate("retrieval", qrels, vectors, {}).metrics)


CASES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "retrieval": retrieval,
    "probe": probe,
    "topk": topk_rate,
    "large": large,
}


# ── embeddings ───────────────────────────────────────────────────────────────────────────────────────────────────────


def make_retrieval(folder: Path, queries: int = 2_000, documents: int = 50_000) -> str:
    """Queries are noisy copies of documents; each has one to three relevant ones."""
    rng = np.random.default_rng(0)
    corpus = rng.standard_normal((documents, DIM), np.float32)
    relevant = [rng.choice(documents, size=rng.integers(1, 4), replace=False) for _ in range(queries)]
    noise = rng.standard_normal((queries, DIM), np.float32)
    np.save(folder / "document.npy", corpus)
    np.save(folder / "query.npy", np.stack([corpus[rows].sum(axis=0) for rows in relevant]) + 8 * noise)
    ids = {"query_ids": [f"q{i}" for i in range(queries)], "document_ids": [f"d{i}" for i in range(documents)]}
    qrels = {f"q{i}": {f"d{row}": 1 for row in rows} for i, rows in enumerate(relevant)}
    (folder / "truth.json").write_text(json.dumps(ids | {"qrels": qrels}))
    return f"{queries:,} × {documents:,} × {DIM}"


def make_probe(folder: Path, classes: int = 100, train: int = 5_000, test: int = 5_000) -> str:
    """Classes with overlap, at the length that unscaled vectors of CLIP-like models have: about 10."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((classes, DIM)) * 0.07
    truth: dict[str, Any] = {"classes": classes, "shots": 16, "runs": 5}
    for side, count in (("train", train), ("test", test)):
        label = rng.permutation(np.arange(count) % classes)
        truth[side] = label.tolist()
        np.save(folder / f"{side}.npy", (centres[label] + 0.43 * rng.standard_normal((count, DIM))).astype(np.float32))
    (folder / "truth.json").write_text(json.dumps(truth))
    return f"16 shots, {classes} classes × {DIM}, 5 runs, {test:,} test items"


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def best(folder: Path, case: str, *peer_cases: str, peer: str | None) -> list[dict[str, Any]]:
    """The quickest of a few rounds of each, in turns, so that a busy machine slows all."""
    commands = [[sys.executable, __file__, "--case", case]]
    commands += [[peer, str(HERE / "peer_mteb.py"), name] for name in peer_cases if peer]
    rounds = [[run([*command, str(folder)]) for command in commands] for _ in range(ROUNDS)]
    return [min(column, key=lambda found: found["seconds"]) for column in zip(*rounds, strict=True)]


def run(words: list[str]) -> dict[str, Any]:
    """What a fresh process measured: the last line that it prints."""
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def agree(case: str, ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Speed counts only for the same scores."""
    both = {name: abs(ours[name] - value) for name, value in theirs.items() if name in ours}
    assert both
    worst = max(both, key=lambda name: both[name])
    assert both[worst] <= AGREE[case], f"{case}: {worst} is {ours[worst]} here and {theirs[worst]} there"


def gemm(queries: Array, documents: Array) -> Callable[[], object]:
    """The plain product, into memory that is already there: no exact scoring can be faster."""
    scores = np.zeros((len(queries), len(documents)), np.float32)
    return lambda: np.matmul(queries, documents.T, out=scores)


def clock(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def machine() -> str:
    """The processor's name and the cores in use."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown processor")
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


if __name__ == "__main__":
    main()
