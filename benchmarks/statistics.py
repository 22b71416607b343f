"""Whether intervals, comparisons and leaderboards keep their promises, by simulation.

python benchmarks/statistics.py [--quick] [--json | --markdown FILE] [--workers N] [--replicates N] [--kind WORD]

Every cell draws many data sets of which the truth is known, and has embark's own functions make intervals and p-values:
`coverage` is the share of 95 % intervals that hold the truth (the score's mean over all data sets), `type_1` the share
of cases in which equal models are told apart at 5 %, `power` that share for models that do differ. Of leaderboards,
`coverage` is the share of boards of equal models on which all rank intervals at once hold all ranks, `type_1` the share
of those on which any two models are parted, and `power` the share of pairs of different models that are.
`n` is the number of independent items (of kinds of tasks, for leaderboards without items).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path = [place for place in sys.path if Path(place).resolve() != HERE]  # `statistics` is Python's own module
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # a process a core

import numpy as np  # noqa: E402

from embark.evaluators import evaluate  # noqa: E402
from embark.evaluators.clustering import clusterings  # noqa: E402
from embark.evaluators.probe import columns, samples  # noqa: E402
from embark.stats.paired import difference  # noqa: E402
from embark.stats.ranking import ItemSpread, over_kinds, places  # noqa: E402
from embark.stats.shared import Evidence, Observations, Part, interval, interval_of, scale_of  # noqa: E402
from embark.stats.statistics import pushes  # noqa: E402
from embark.types import Array, Split  # noqa: E402

LEVEL = 0.05
CHUNK = 25  # replicates at a time: a cell's draws do not depend on the number of workers
DEAR = 100.0  # milliseconds of a replicate from which on a cell has half as many
START, END = "<!-- made by benchmarks/statistics.py -->", "<!-- end -->"


class Draw(NamedTuple):
    """One data set: the score with its interval, and p-values of an equal model and of a better one.

    A leaderboard has, instead, whether all rank intervals of equal models hold all ranks, whether any were parted, and
    the share of pairs of different models that were.
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    equal: float = np.nan
    better: float = np.nan
    covered: float = np.nan
    parted: float = np.nan
    ordered: float = np.nan


Simulation = Callable[[np.random.Generator, int], Draw]


@dataclass(frozen=True)
class Cell:
    """A kind of score and a number of items; `cost` is roughly the milliseconds of a replicate."""

    kind: str
    n: int
    simulation: Simulation
    cost: float = 10.0


@dataclass(frozen=True)
class Row:
    """What a cell found."""

    kind: str
    n: int
    replicates: int
    coverage: float | None = None
    type_1: float | None = None
    power: float | None = None


# ── kinds of tasks ───────────────────────────────────────────────────────────────────────────────────────────────────


def judged(a: list[Part], equal: list[Part], better: list[Part]) -> Draw:
    """The interval of a task's score, and its comparison with two other models."""
    value = float(np.mean([pushes(part.statistic, part.main, part.outcomes).value for part in a]))
    return Draw(value, *interval(a), difference(a, equal).p, difference(better, a).p)


def mean_part(values: Array, observations: Observations | None = None) -> Part:
    """Outcomes of which the score is the mean."""
    return Part("mean", "score", {"score": values}, observations or Observations.apart(len(values)))


def three(rng: np.random.Generator, shape: tuple[int, ...], gain: float = 0.5) -> list[Array]:
    """What three models have in common on items, and what is their own: two equal ones and a better one."""
    common = rng.normal(size=shape)
    return [common + rng.normal(size=shape) + shift for shift in (0.0, 0.0, gain)]


def hits(level: float) -> Simulation:
    """Right or wrong, items independent."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        a, b, c = (mean_part((x > level).astype(float)) for x in three(rng, (n,)))
        return judged([a], [b], [c])

    return simulate


def ndcg(rng: np.random.Generator, n: int) -> Draw:
    """Graded outcomes between 0 and 1, with many at both ends."""
    a, b, c = (mean_part(np.where(x < -0.5, 0.0, 1 / np.log2(2 + np.exp(2 - 2 * x).round()))) for x in three(rng, (n,)))
    return judged([a], [b], [c])


def strict_pairs(rng: np.random.Generator, n: int) -> Draw:
    """Right only if four comparisons are."""
    a, b, c = (mean_part((x + 0.6 > 0).all(axis=1).astype(float)) for x in three(rng, (n, 4)))
    return judged([a], [b], [c])


def probe_parts(rng: np.random.Generator, n: int) -> list[Part]:
    """Linear probes of three models, fitted: new test items, and examples for every run from a pool so large that runs
    hardly share any.
    """
    classes, shots, runs = 5, 8, 5
    parts = []
    test_label, train_label = rng.integers(classes, size=n), np.repeat(np.arange(classes), 300)
    order = int(rng.integers(2**31))
    hard = rng.normal(size=n)[:, None], rng.normal(size=len(train_label))[:, None]
    for scale in (0.9, 0.9, 1.05):
        centres = np.eye(classes, 12) * 2 * scale
        test = centres[test_label] + rng.normal(size=(n, 12)) + 0.5 * hard[0]
        train = centres[train_label] + rng.normal(size=(len(train_label), 12)) + 0.5 * hard[1]
        truth = Split(train_label, test_label, tuple("abcde"))
        drawn = np.full((len(train_label), runs), -1)
        for run, rows in enumerate(samples(train_label, shots, runs, order)):
            drawn[rows, run] = np.arange(len(rows))
        vectors = {"train": train.astype(np.float32), "test": test.astype(np.float32)}
        params = {"shots": shots, "runs": runs}
        scores = evaluate("probe", replace(truth, drawn=drawn), vectors, params)
        parts.append(Part(scores.statistic, scores.main, scores.outcomes, Observations.apart(n)))
    return parts


def probe(rng: np.random.Generator, n: int) -> Draw:
    """Fitted linear probes."""
    a, b, c = probe_parts(rng, n)
    return judged([a], [b], [c])


def noisy_runs(rng: np.random.Generator, n: int) -> Draw:
    """Right or wrong in five runs, where the draw of the examples matters more than the test items."""
    of_item = rng.normal(size=n)
    parts = []
    for gain in (0.0, 0.0, 0.6):
        latent = of_item + rng.normal(size=n) + 0.35 * rng.normal(size=(5, 1)) + rng.normal(size=(5, n)) + gain
        outcomes = columns("accuracy", (latent > 0).astype(float))
        parts.append(Part("runs", "accuracy", outcomes, Observations.apart(n)))
    return judged([parts[0]], [parts[1]], [parts[2]])


def clustering(statistic: str, apart: float = 1.0) -> Simulation:
    """Fitted clusterings of vectors that hardly have clusters, so that the seed matters, or lie well `apart`."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        groups = 6
        label = rng.integers(groups, size=n)
        directions = np.eye(groups, 16)
        hard = rng.normal(size=(n, 16))
        parts = []
        for scale in (2.2 * apart, 2.2 * apart, 2.7 * apart):
            vectors = scale * directions[label] + 0.5 * hard + rng.normal(size=(n, 16))
            fitted = clusterings(vectors.astype(np.float32), groups, int(rng.integers(2**31)))
            parts.append(Part(statistic, statistic, {"label": label} | fitted, Observations.apart(n)))
        return judged([parts[0]], [parts[1]], [parts[2]])

    return simulate


def sts_part(gold: Array, similarity: Array, observations: Observations, statistic: str) -> Part:
    """Pairs with a gold score and a similarity."""
    from scipy.stats import rankdata

    ranks = {"gold_rank": rankdata(gold), "similarity_rank": rankdata(similarity)}
    return Part(statistic, statistic, {"gold": gold, "similarity": similarity, **ranks}, observations)


def sts(statistic: str) -> Simulation:
    """Pairs of different items."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        truth, apart = rng.normal(size=n), Observations.apart(n)
        gold = np.round(2.5 + 1.2 * truth + 0.3 * rng.normal(size=n)).clip(0, 5)
        noise = rng.normal(size=n)
        a, b, c = (
            sts_part(gold, truth + own * (noise + rng.normal(size=n)) / 2**0.5, apart, statistic)
            for own in (0.9, 0.9, 0.7)
        )
        return judged([a], [b], [c])

    return simulate


def pair_classification(share: float) -> Simulation:
    """Pairs of different items, of which a share match."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        gold = rng.permutation(np.arange(n) < max(2, share * n)) * 1.0
        noise, apart = rng.normal(size=n), Observations.apart(n)
        a, b, c = (
            Part("average_precision", "cosine_ap", {"gold": gold, "similarity": similarity}, apart)
            for distance in (1.2, 1.2, 1.8)
            for similarity in [distance * gold + (noise + rng.normal(size=n)) / 2**0.5]
        )
        return judged([a], [b], [c])

    return simulate


def sts_shared(statistic: str) -> Simulation:
    """Three pairs to an item, so that every item is in about six of them."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        left, right = rng.integers(n, size=(2, 3 * n))
        right = np.where(left == right, (right + 1) % n, right)
        items = rng.normal(size=(n, 8))
        gold = _cosine(items, left, right) + 0.1 * rng.normal(size=3 * n)
        parts = []
        for own in (0.6, 0.6, 0.45):
            vectors = items + own * rng.normal(size=items.shape) + 0.8 * rng.exponential(size=(n, 1))
            parts.append(sts_part(gold, _cosine(vectors, left, right), Observations(left, right), statistic))
        return judged([parts[0]], [parts[1]], [parts[2]])

    return simulate


def _cosine(vectors: Array, left: Array, right: Array) -> Array:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.einsum("nd,nd->n", unit[left], unit[right])


def subsets(rng: np.random.Generator, n: int) -> Draw:
    """The same items in eight languages of unequal size: what is hard in one is hard in all."""
    present = rng.random((8, n)) < np.linspace(1, 0.3, 8)[:, None]
    present[:, :5] = True
    hard = rng.normal(size=n)
    models = []
    for gain in (0.0, 0.0, 0.4):
        own = hard + rng.normal(size=n) + gain
        right = own + 0.7 * rng.normal(size=(8, n)) > 0.3
        rows = [np.flatnonzero(of_subset) for of_subset in present]
        models.append([mean_part(right[s, row].astype(float), Observations(row, row)) for s, row in enumerate(rows)])
    return judged(*models)


def captions(rng: np.random.Generator, n: int) -> Draw:
    """Five captions a picture, each a query of its own."""
    picture = np.repeat(np.arange(n), 5)
    observations = Observations(n + np.arange(5 * n), picture)
    hard = rng.normal(size=n)
    models = []
    for gain in (0.0, 0.0, 0.4):
        own = hard + rng.normal(size=n) + gain
        models.append([mean_part((own[picture] + rng.normal(size=5 * n) > 0).astype(float), observations)])
    return judged(*models)


# ── means over tasks ─────────────────────────────────────────────────────────────────────────────────────────────────


def tasks_of(rng: np.random.Generator, n: int, gains: tuple[float, ...], kinds: int) -> list[list[Part]]:
    """For each model, `kinds` tasks over the same items: hits, a graded measure, a probe's runs, an STS of pairs."""
    hard = rng.normal(size=n)
    own = [hard + rng.normal(size=n) + gain for gain in gains]
    left, right = rng.permutation(n), rng.permutation(n)
    gold = rng.normal(size=n)
    models = []
    for latent in own:
        parts = []
        for kind in range(kinds):
            rows = np.arange(n)[kind % 3 :] if kind < 4 else rng.permutation(n)[: n // 2]
            noisy = latent + 0.7 * rng.normal(size=n)
            items = Observations(rows, rows)
            if kind == 1:
                parts.append(mean_part(1 / (1 + np.exp(-2 * noisy[rows])), items))
            elif kind == 2:
                runs = noisy + 0.2 * rng.normal(size=(5, 1)) + 0.5 * rng.normal(size=(5, n)) > 0
                parts.append(Part("runs", "accuracy", columns("accuracy", runs[:, rows].astype(float)), items))
            elif kind == 3:
                similarity = gold + rng.normal(size=n) * np.exp(-0.25 * (latent[left] + latent[right]))
                parts.append(sts_part(gold, similarity, Observations(left, right), "spearman"))
            else:
                parts.append(mean_part((noisy[rows] > 0.4 * kind - 1).astype(float), items))
        models.append(parts)
    return models


def total(tasks: int) -> Simulation:
    """The mean over tasks that share items; two models are compared by their totals."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        models = tasks_of(rng, n, (0.0, 0.0, 0.4), tasks)
        evidence, totals, scales = evidence_of(models)
        ends = interval_of(totals[0], evidence.of(0), scale_of(scales))
        return Draw(totals[0], *ends, *(_p(evidence, totals, 0, other) for other in (1, 2)))

    return simulate


def evidence_of(models: list[list[Part]]) -> tuple[Evidence, list[float], list[str]]:
    """The totals of models, each the mean over its tasks, with their evidence and the scales of the tasks."""
    evidence = Evidence(len(models))
    totals = []
    for model, parts in enumerate(models):
        values = [pushes(part.statistic, part.main, part.outcomes) for part in parts]
        for task, (part, of_part) in enumerate(zip(parts, values, strict=True)):
            evidence.add(task, part.observations, of_part, 1 / len(parts), model)
        totals.append(float(np.mean([of_part.value for of_part in values])))
    return evidence, totals, [of_part.scale for of_part in values]


def _p(evidence: Evidence, totals: list[float], a: int, b: int) -> float:
    from embark.stats.intervals import two_sided

    variance, freedom = evidence.between(a, b)
    return two_sided((totals[a] - totals[b]) / variance**0.5, freedom)


# ── leaderboards ─────────────────────────────────────────────────────────────────────────────────────────────────────


def board_over_items(models: int) -> Simulation:
    """Leaderboards of outcomes: equal models over tasks that share items, then models that hardly differ."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        equal = _item_board(rng, n, (0.0,) * models)
        different = _item_board(rng, n, tuple((0.15 * np.arange(models)).tolist()))
        return _of_boards(equal, different)

    return simulate


def _item_board(rng: np.random.Generator, n: int, gains: tuple[float, ...]) -> list[Any]:
    evidence, totals, _ = evidence_of(tasks_of(rng, n, gains, 6))
    variance, freedom = evidence.differences
    return places(np.array(totals), ItemSpread(variance[:-1, :-1], freedom[:-1, :-1]))


def board_over_tasks(models: int) -> Simulation:
    """Leaderboards of published scores: ten tasks of each of `n` kinds, and models that are good at some kinds."""

    def simulate(rng: np.random.Generator, n: int) -> Draw:
        return _of_boards(_task_board(rng, n, np.zeros(models)), _task_board(rng, n, 0.02 * np.arange(models)))

    return simulate


def _task_board(rng: np.random.Generator, n: int, gains: Array) -> list[Any]:
    kind = np.repeat(np.arange(n), 10)
    level = rng.normal(0.5, 0.15, len(kind))
    talent = 0.08 * rng.normal(size=(len(gains), n))
    values = level + gains[:, None] + talent[:, kind] + 0.03 * rng.normal(size=(len(gains), len(kind)))
    weights = np.full(values.shape, 1 / len(kind))
    return places(values.mean(axis=1), over_kinds(values, weights, kind.tolist()))


def _of_boards(equal: list[Any], different: list[Any]) -> Draw:
    """What a board of equal models and one of different models show."""
    letters = np.array([place.tie for place in different])
    apart = letters[:, None] != letters
    return Draw(
        covered=float(all((place.low, place.high) == (1, len(equal)) for place in equal)),
        parted=float(any(place.tie != "A" for place in equal)),
        ordered=float(apart.sum() / (len(letters) * (len(letters) - 1))),
    )


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def cells(quick: bool) -> Iterator[Cell]:
    """Every kind; the quick run has fewer sizes."""
    sizes = (50, 200) if quick else (20, 50, 200, 1000)
    for n in sizes:
        yield Cell("hits, half of them right", n, hits(0.0), 4)
        yield Cell("hits, one in ten right", n, hits(1.8), 4)
        yield Cell("nDCG", n, ndcg, 30)
        yield Cell("zero-shot accuracy, nine in ten right", n, hits(-1.8), 4)
        yield Cell("strict pairs", n, strict_pairs, 4)
        yield Cell("runs that differ much", n, noisy_runs, 3)
        yield Cell("STS, Spearman", n, sts("spearman"), 4)
        yield Cell("STS, Pearson", n, sts("pearson"), 4)
        yield Cell("pairs, half of them match", n, pair_classification(0.5), 5)
        yield Cell("pairs, one in ten matches", n, pair_classification(0.1), 5)
        yield Cell("STS of pairs that share items", n, sts_shared("spearman"), 6)
        yield Cell("eight languages over the same items", n, subsets, 10)
        yield Cell("five captions a picture", n, captions, 6)
        yield Cell("category: three tasks over the same items", n, total(3), 6)
        yield Cell("total: six tasks over the same items", n, total(6), 10)
    for n in (50,) if quick else (20, 50, 200, 500):
        yield Cell("probe, fitted", n, probe, 120)
    for n in (100,) if quick else (50, 100, 300, 1000):
        yield Cell("clustering, NMI", n, clustering("nmi"), 400)
        yield Cell("clustering that is nearly perfect, NMI", n, clustering("nmi", 3.0), 400)
        if n == 300:
            yield Cell("clustering, ARI", n, clustering("ari"), 400)
            yield Cell("clustering, accuracy", n, clustering("cluster_accuracy"), 400)
    for n in (50,) if quick else (20, 50, 200):
        yield Cell("leaderboard of 8 models over items", n, board_over_items(8), 60)
    for n in (8,) if quick else (6, 8, 10, 16):
        yield Cell("leaderboard of 20 models over kinds of tasks", n, board_over_tasks(20), 15)


def draws(cell: Cell, replicates: int, seed: int) -> Array:
    """So many data sets of a cell."""
    rng = np.random.default_rng([seed, cell.n, *cell.kind.encode()])
    return np.array([cell.simulation(rng, cell.n) for _ in range(replicates)], np.float64).reshape(replicates, 8)


def summary(cell: Cell, found: Array) -> Row:
    """The rates of a cell."""
    value, low, high, equal, better, covered, parted, ordered = found.T
    if np.isnan(parted).all():
        truth = value.mean()
        hold = (low <= truth) & (truth <= high)
        return Row(cell.kind, cell.n, len(found), *(float(x.mean()) for x in (hold, equal < LEVEL, better < LEVEL)))
    return Row(cell.kind, cell.n, len(found), *(float(x.mean()) for x in (covered, parted, ordered)))


def _one_core() -> None:
    """Keep a worker on one core: fits make threads of their own, which would hinder those of other workers."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def _job(job: tuple[bool, int, int, int]) -> Array:
    quick, number, replicates, seed = job
    return draws(list(cells(quick))[number], replicates, seed)  # a cell's function does not travel between processes


def markdown(rows: list[Row]) -> str:
    """The table."""
    lines = ["| kind | n | replicates | coverage | type I | power |", "|:---|---:|---:|---:|---:|---:|"]
    for row in rows:
        rates = ["–" if rate is None else f"{rate:.3f}" for rate in (row.coverage, row.type_1, row.power)]
        lines.append(f"| {row.kind} | {row.n} | {row.replicates:,} | {' | '.join(rates)} |")
    return "\n".join(lines)


def main() -> int:
    """Run all cells, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and replicates: minutes on two cores")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", type=Path, help="put the table into this file, between its two marks")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replicates", type=int, help="of each cell; by default at least 1,000, or fewer if quick")
    parser.add_argument("--kind", default="", help="only kinds with this word in their name")
    args = parser.parse_args()
    chosen = [(number, cell) for number, cell in enumerate(cells(args.quick)) if args.kind in cell.kind]
    rows = []
    began = time.perf_counter()
    with ProcessPoolExecutor(args.workers, initializer=_one_core) as pool:
        waiting = []
        for number, cell in sorted(chosen, key=lambda pair: -pair[1].cost):
            usual = (750, 500) if args.quick else (2_000, 1_000)
            replicates = args.replicates or usual[cell.cost >= DEAR]
            sizes = [min(CHUNK, replicates - start) for start in range(0, replicates, CHUNK)]
            jobs = [pool.submit(_job, (args.quick, number, size, seed)) for seed, size in enumerate(sizes)]
            waiting.append((number, cell, jobs))
        for number, cell, jobs in waiting:
            row = summary(cell, np.concatenate([job.result() for job in jobs]))
            rows.append((number, row))
            print(f"{time.perf_counter() - began:6.0f} s  {row}", file=sys.stderr, flush=True)
    table = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    if args.json:
        print(json.dumps([vars(row) for row in table], indent=2))
    elif args.markdown is None:
        print(markdown(table))
    if args.markdown is not None:
        text = args.markdown.read_text(encoding="utf-8")
        before, _, rest = text.partition(START)
        _, _, after = rest.partition(END)
        args.markdown.write_text(f"{before}{START}\n{markdown(table)}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
