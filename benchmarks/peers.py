"""One small job end to end in mteb and in embark: ten tasks over four shared data sets, with the same encoder.

python benchmarks/peers.py [--peer PYTHON] [--cost 1] [--scale 1] [--quick] [--json]

Three sets of queries search one corpus of articles; labelled topics are classified, clustered and recognised by their
names; sentences are compared by two kinds of human scores; and descriptions find each other in both directions. The
data is made on the spot, the encoder hashes words, and `--cost` lets it take so many milliseconds an item besides, as a
model does (sleeping, as a device that computes). Each side is a process of its own: what is counted is the items that
its encoder was given, the seconds of the evaluation and of the whole process, and the process's peak memory.

mteb is run as its documentation says (`mteb.evaluate`, without a cache of embeddings, which is its default) by the
Python of `--peer` (or $EMBARK_PEER, or this one), if it has mteb; without one, only embark is measured.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import json
import os
import re
import tempfile
import time
import zlib
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

PEER = os.environ.get("EMBARK_PEER", sys.executable if find_spec("mteb") else None)
DIM = 384
TOPICS = 10
MOST_CALLS = 0.6  # of mteb's encoded items
TOLERANCE = 1e-3  # of scores that both compute in the same way
SEARCHES = ("headlines", "questions", "quotes")  # the sets of queries
METRICS = {  # task → its score in mteb and in embark
    **{f"Articles{name.capitalize()}": ("ndcg_at_10", "ndcg_at_10") for name in SEARCHES},
    "DescriptionsForward": ("ndcg_at_10", "ndcg_at_10"),
    "DescriptionsBack": ("ndcg_at_10", "ndcg_at_10"),
    "TopicsProbe": ("accuracy", "accuracy"),
    "TopicsZeroShot": ("accuracy", "accuracy"),
    "TopicsClustering": ("v_measure", "published_v_measure"),
    "SentencesSimilarity": ("cosine_spearman", "cosine_spearman"),
    "SentencesRelatedness": ("cosine_spearman", "cosine_spearman"),
}


def main() -> int:
    """Make the data, run both sides, compare and print; status 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=PEER, help="the Python that has mteb")
    parser.add_argument("--cost", type=float, default=1.0, help="milliseconds an item that the encoder takes besides")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of items")
    parser.add_argument("--quick", action="store_true", help="a tenth of the items, and a free encoder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.scale, args.cost = 0.1, 0.0
    if args.side:
        measured = SIDES[args.side](args.folder, HashEncoder(args.cost))
        (args.folder / f"{args.side}.json").write_text(json.dumps(measured))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        make_data(Path(folder), args.scale)
        sides = {"embark": one_side("embark", sys.executable, Path(folder), args.cost)}
        if args.peer:
            sides["mteb"] = one_side("mteb", args.peer, Path(folder), args.cost)
    report = {"cost ms": args.cost, "scale": args.scale, **sides}
    if "mteb" in sides:
        report["claims"] = claims(sides["embark"], sides["mteb"])
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)
    return 0 if all(claim["holds"] for claim in report.get("claims", [])) else 1


class HashEncoder:
    """A deterministic encoder: words and their beginnings, hashed into a vector; it counts what it is given."""

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.items = 0
        self.calls = 0

    def __call__(self, texts: Sequence[str]) -> Any:
        """One vector for each text."""
        self.calls += 1
        self.items += len(texts)
        vectors = np.zeros((len(texts), DIM), np.float32)
        for row, text in enumerate(texts):
            words = re.findall(r"\w+", text.lower())
            hashes = np.array([zlib.crc32(part.encode()) for word in words for part in (word, word[:4])], np.int64)
            weights = 0.5 + hashes // DIM % 9973 / 9973  # of every word another: equal similarities are rare
            np.add.at(vectors[row], hashes % DIM, np.where(hashes & 0x40000000, weights, -weights))
        time.sleep(self.cost * len(texts) / 1000)
        return vectors


def one_side(side: str, python: str, folder: Path, cost: float) -> dict[str, Any]:
    """Run one side in a process of its own; its counts and scores, and what the system measured."""
    words = [python, str(Path(__file__).resolve()), "--side", side, "--folder", str(folder), "--cost", str(cost)]
    own = {"HF_HOME": str(folder / "hf"), "MTEB_CACHE": str(folder / "mteb"), "HF_HUB_OFFLINE": "1"}
    own |= {"EMBARK_HOME": str(folder / "home"), "EMBARK_RESULTS": str(folder / "results")}
    log = os.open(folder / f"{side}.log", os.O_CREAT | os.O_WRONLY)
    start = time.perf_counter()
    process = os.posix_spawn(
        python, words, os.environ | own, file_actions=[(os.POSIX_SPAWN_DUP2, log, out) for out in (1, 2)]
    )
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - start
    os.close(log)
    if status:
        raise SystemExit(f"{side} failed:\n{(folder / f'{side}.log').read_text()[-4000:]}")
    measured = json.loads((folder / f"{side}.json").read_text())
    return measured | {"process seconds": seconds, "peak MB": usage.ru_maxrss / 1024}


def claims(embark: dict[str, Any], mteb: dict[str, Any]) -> list[dict[str, Any]]:
    """What must hold, each with the figure and its limit."""
    apart = {name: abs(embark["scores"][name] - mteb["scores"][name]) for name in METRICS}
    rows = [
        ("items encoded, of mteb's", embark["items"] / mteb["items"], MOST_CALLS),
        ("seconds of the evaluation, of mteb's", embark["seconds"] / mteb["seconds"], 1.0),
        ("seconds of the whole process, of mteb's", embark["process seconds"] / mteb["process seconds"], 1.0),
        ("largest difference of scores", max(apart.values()), TOLERANCE),
    ]
    return [{"claim": name, "value": value, "limit": limit, "holds": value <= limit} for name, value, limit in rows]


def show(report: dict[str, Any]) -> None:
    """Print the sides beside each other, and the claims."""
    names = [side for side in ("embark", "mteb") if side in report]
    print(" " * 28 + "".join(f"{side + ' ' + report[side]['version']:>16}" for side in names))
    for what in ("items", "calls", "seconds", "process seconds", "peak MB"):
        print(f"{what:28}" + "".join(f"{report[side][what]:16,.{2 if 'seconds' in what else 0}f}" for side in names))
    for task, (metric, _) in METRICS.items():
        scores = "".join(f"{report[side]['scores'][task]:16.5f}" for side in names)
        print(f"{task:28}{scores}   {metric}")
    for claim in report.get("claims", []):
        word = "holds" if claim["holds"] else "DOES NOT HOLD"
        print(f"{claim['claim']}: {claim['value']:.3g} (at most {claim['limit']:g}): {word}")


# ── the data ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def make_data(folder: Path, scale: float) -> None:
    """Four data sets of generated texts, as parquet tables; every topic has words of its own."""
    rng = np.random.default_rng(0)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ai", "or", "en")]
    words = list(dict.fromkeys("".join(rng.choice(syllables, rng.integers(2, 4))) for _ in range(6000)))
    general, own = np.array(words[:2000]), np.array_split(np.array(words[2000:]), TOPICS)

    def text(topic: int, length: int, share: float = 0.4) -> list[str]:
        mine = np.minimum(rng.exponential(60, length).astype(int), len(own[topic]) - 1)
        return list(np.where(rng.random(length) < share, own[topic][mine], rng.choice(general, length)))

    def other(of: Sequence[str], keep: float) -> list[str]:
        return list(np.where(rng.random(len(of)) < keep, np.array(of), rng.choice(general, len(of))))

    articles = [text(int(rng.integers(TOPICS)), 60) for _ in range(int(2000 * scale))]
    ids = [f"d{number}" for number in range(len(articles))]
    write(folder / "articles" / "corpus.parquet", id=ids, text=map(" ".join, articles))
    for name, length in zip(SEARCHES, (6, 8, 12), strict=True):
        wanted = rng.choice(len(articles), int(200 * scale), replace=False)
        queries = [other(articles[at][:length], 0.6) for at in wanted]
        query_ids = [f"q{number}" for number in range(len(queries))]
        write(folder / "articles" / "queries" / f"{name}.parquet", id=query_ids, text=map(" ".join, queries))
        judged = {"query-id": query_ids, "corpus-id": [ids[at] for at in wanted], "score": [1] * len(queries)}
        write(folder / "articles" / "qrels" / f"{name}.parquet", **judged)
    names = [str(words_of[0]) for words_of in own]
    for split, count in (("train", 500), ("test", 1000)):
        topics = [number % TOPICS for number in range(max(10 * TOPICS, int(count * scale)))]
        texts = [" ".join(text(topic, 24, 0.5)) for topic in topics]
        write(folder / "topics" / f"{split}.parquet", text=texts, label=[names[topic] for topic in topics])
    left = [text(int(rng.integers(TOPICS)), 14) for _ in range(int(500 * scale))]
    likeness = rng.random(len(left))
    right = [other(sentence, keep) for sentence, keep in zip(left, likeness, strict=True)]
    scores = {"similarity": 5 * likeness, "relatedness": np.clip(5 * likeness**2 + rng.normal(0, 0.5, len(left)), 0, 5)}
    write(folder / "sentences" / "test.parquet", left=map(" ".join, left), right=map(" ".join, right), **scores)
    scenes = [text(int(rng.integers(TOPICS)), 16) for _ in range(int(600 * scale))]
    sides = {name: [" ".join(other(scene, 0.55)) for scene in scenes] for name in ("left", "right")}
    write(folder / "descriptions" / "test.parquet", **sides)


def write(path: Path, **columns: Iterable[Any]) -> None:
    """A parquet table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)


def read(path: Path) -> dict[str, list[Any]]:
    """The columns of a parquet table."""
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    return columns


# ── embark ───────────────────────────────────────────────────────────────────────────────────────────────────────────

LABELED = 'columns = { text = "text", label = "label" }'
TABLES = {  # task → evaluator, reader, data set, and further lines of its table in the file of tasks
    **{
        f"Articles{name.capitalize()}": (
            "retrieval",
            "beir",
            f'"articles", splits = ["{name}"]',
            'options = { splits = { corpus = "corpus" } }',
        )
        for name in SEARCHES
    },
    "DescriptionsForward": (
        "retrieval",
        "paired",
        '"descriptions"',
        'columns = { query_text = "left", corpus_text = "right" }',
    ),
    "DescriptionsBack": (
        "retrieval",
        "paired",
        '"descriptions"',
        'columns = { query_text = "right", corpus_text = "left" }',
    ),
    "TopicsProbe": (
        "probe",
        "labelled",
        '"topics"',
        f'{LABELED}\nparams = {{ shots = 8, runs = 10, seed = 42, probe = "published" }}',
    ),
    "TopicsZeroShot": ("zeroshot", "labelled", '"topics"', f'{LABELED}\ntemplates = ["a text about {{}}"]'),
    "TopicsClustering": ("clustering", "labelled", '"topics"', LABELED),
    **{
        f"Sentences{score.capitalize()}": (
            "sts",
            "rendered-sts",
            '"sentences"',
            f'columns = {{ left = "left", right = "right", score = "{score}" }}',
        )
        for score in ("similarity", "relatedness")
    },
}
TABLE = """
[[task]]
name = "{}"
evaluator = "{}"
reader = "{}"
source = {{ id = {} }}
modalities = ["text"]
{}
"""


def embark_side(folder: Path, encode: HashEncoder) -> dict[str, Any]:
    """A file of tasks and an encoder of one function, as a user has them."""
    import embark

    (folder / "tasks.toml").write_text("".join(TABLE.format(name, *lines) for name, lines in TABLES.items()))
    start = time.perf_counter()
    model = embark.encoder(text=encode, name="hashing/encoder", revision="1", stored="float32")
    run = embark.evaluate(model, embark.load_tasks(folder / "tasks.toml"), show_progress=False)
    seconds = time.perf_counter() - start
    if run.skipped:
        raise SystemExit(str(run.skipped))
    scores = {result.task: result.records[0].metrics[METRICS[result.task][1]] for result in run.results}
    return side_report(embark.__version__, encode, seconds, scores)


def side_report(release: str, encode: HashEncoder, seconds: float, scores: dict[str, float]) -> dict[str, Any]:
    """What a side measured itself."""
    counts = {"items": encode.items, "calls": encode.calls, "seconds": seconds}
    return {"version": release, **counts, "scores": scores}


# ── mteb ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def mteb_side(folder: Path, encode: HashEncoder) -> dict[str, Any]:
    """Task classes of mteb's kinds that load these tables, an encoder of its protocol, and `mteb.evaluate`."""
    import mteb
    from mteb.models.model_meta import ModelMeta
    from mteb.similarity_functions import cos_sim, pairwise_cos_sim

    class Model:
        mteb_model_meta = ModelMeta.create_empty({"name": "hashing/encoder", "revision": "1"})

        def encode(self, inputs: Any, **_: Any) -> Any:
            return np.concatenate([encode(batch["text"]) for batch in inputs])

        def similarity(self, left: Any, right: Any) -> Any:
            return cos_sim(left, right)

        def similarity_pairwise(self, left: Any, right: Any) -> Any:
            return pairwise_cos_sim(left, right)

    start = time.perf_counter()
    results = mteb.evaluate(Model(), mteb_tasks(folder))
    seconds = time.perf_counter() - start
    by_name = {result.task_name: result.scores["test"][0] for result in results.task_results}
    scores = {name: by_name[name][metric] for name, (metric, _) in METRICS.items()}
    return side_report(version("mteb"), encode, seconds, scores)


def mteb_tasks(folder: Path) -> list[Any]:
    """The ten tasks."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import (
        AbsTaskClassification,
        AbsTaskClusteringLegacy,
        AbsTaskRetrieval,
        AbsTaskSTS,
        AbsTaskZeroShotClassification,
    )

    def search(queries: dict[str, Any], corpus: dict[str, Any], qrels: dict[str, dict[str, int]]) -> Any:
        sides = {"queries": Dataset.from_dict(queries), "corpus": Dataset.from_dict(corpus)}
        return {"default": {"test": sides | {"relevant_docs": qrels, "top_ranked": None}}}

    def articles(name: str) -> Any:
        tables = {kind: read(folder / "articles" / kind / f"{name}.parquet") for kind in ("queries", "qrels")}
        judged = zip(*(tables["qrels"][column] for column in ("query-id", "corpus-id", "score")), strict=True)
        return search(
            tables["queries"], read(folder / "articles" / "corpus.parquet"), {q: {d: s} for q, d, s in judged}
        )

    def descriptions(query: str, document: str) -> Any:
        table = read(folder / "descriptions" / "test.parquet")
        ids = [str(number) for number in range(len(table[query]))]
        sides = [{"id": [f"{side}-{i}" for i in ids], "text": table[side]} for side in (query, document)]
        return search(*sides, {f"{query}-{i}": {f"{document}-{i}": 1} for i in ids})

    def topics(split: str) -> Any:
        table = read(folder / "topics" / f"{split}.parquet")
        names = sorted(set(table["label"]))
        return {"text": table["text"], "label": [names.index(label) for label in table["label"]]}, names

    def probe() -> Any:
        return DatasetDict({split: Dataset.from_dict(topics(split)[0]) for split in ("train", "test")})

    def zero_shot() -> Any:
        return DatasetDict({"test": Dataset.from_dict(topics("test")[0])})

    def clusters() -> Any:
        rows, _ = topics("test")
        return DatasetDict({"test": Dataset.from_dict({"sentences": [rows["text"]], "labels": [rows["label"]]})})

    def sentences(score: str) -> Any:
        table = read(folder / "sentences" / "test.parquet")
        rows = {"sentence1": table["left"], "sentence2": table["right"], "score": table[score]}
        return DatasetDict({"test": Dataset.from_dict(rows)})

    prompts = {
        "input_column_name": "text",
        "get_candidate_labels": lambda self: [f"a text about {name}" for name in topics("test")[1]],
    }
    makers = [(AbsTaskRetrieval, f"Articles{n.capitalize()}", lambda n=n: articles(n), {}) for n in SEARCHES]
    makers += [
        (AbsTaskRetrieval, "DescriptionsForward", lambda: descriptions("left", "right"), {}),
        (AbsTaskRetrieval, "DescriptionsBack", lambda: descriptions("right", "left"), {}),
        (AbsTaskClassification, "TopicsProbe", probe, {}),
        (AbsTaskZeroShotClassification, "TopicsZeroShot", zero_shot, prompts),
        (AbsTaskClusteringLegacy, "TopicsClustering", clusters, {}),
        (AbsTaskSTS, "SentencesSimilarity", lambda: sentences("similarity"), {"min_score": 0, "max_score": 5}),
        (AbsTaskSTS, "SentencesRelatedness", lambda: sentences("relatedness"), {"min_score": 0, "max_score": 5}),
    ]
    return [mteb_task(*maker) for maker in makers]


def mteb_task(kind: Any, name: str, data: Any, more: dict[str, Any]) -> Any:
    """A task of one of mteb's kinds whose data is made by `data()`."""
    from mteb import TaskMetadata

    type_name = kind.__name__.removeprefix("AbsTask").removesuffix("Legacy")
    facts: dict[str, Any] = dict.fromkeys(
        ("date", "domains", "task_subtypes", "license", "annotations_creators", "dialect", "sample_creation")
    )
    facts |= {"name": name, "description": "peer", "reference": None, "type": type_name, "category": "t2t"}
    facts |= {"modalities": ["text"], "eval_splits": ["test"], "eval_langs": ["eng-Latn"]}
    facts |= {
        "main_score": METRICS[name][0],
        "bibtex_citation": None,
        "dataset": {"path": "none/none", "revision": "1"},
    }

    def load_data(self: Any, **_: Any) -> None:
        if not self.data_loaded:
            self.dataset = data()
            self.data_loaded = True

    return type(name, (kind,), {"metadata": TaskMetadata(**facts), "load_data": load_data, **more})()


SIDES = {"embark": embark_side, "mteb": mteb_side}

if __name__ == "__main__":
    sys.exit(main())
