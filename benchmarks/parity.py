"""Whether the evaluators give the scores that mteb, or MMEB's code, gave on the same embeddings.

python benchmarks/parity.py ../shared/parity [--json]

A folder of cases has inputs.npz (embeddings), truth.json (ids, labels, parameters) and expected.json (every score) in
each. Prints the largest difference of each case and the numbers that we do not compute; ends with status 1 if a
difference is over its tolerance.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from embark.evaluators import evaluate
from embark.types import Array, Classes, Gold, Groups, Matches, Qrels, Scores, Split

EXACT = 1e-5  # expectations of rankings are rounded to five places
WHOLE = 1e-6  # expectations of MMEB are not rounded
FITTED = 1e-6  # probes and clusters are the same arithmetic, so a difference means another model
NOT_OURS = ("main_score", "scores_per_experiment")  # another number's second name; runs are averaged

Inputs = Mapping[str, Array]
Case = Callable[[Inputs, Mapping[str, Any]], Scores]


@dataclass(frozen=True)
class Outcome:
    """How far one case is from what was expected."""

    case: str
    difference: float
    worst: str
    tolerance: float
    numbers: int
    missing: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Everything that both compute agrees."""
        return self.numbers > 0 and self.difference <= self.tolerance


def main() -> int:
    """Run every case of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = [check(folder) for folder in sorted(path.parent for path in args.folder.glob("*/expected.json"))]
    if not found:
        parser.error(f"{args.folder} has no cases")
    if args.json:
        print(json.dumps([asdict(one) | {"good": one.good} for one in found], indent=2))
    else:
        for one in found:
            words = [f"{one.case:28} {one.difference:8.1e} of {one.tolerance:.0e}  {one.numbers:3} numbers"]
            words += [] if one.good else [f"OVER: {one.worst}"]
            words += [f"not computed: {', '.join(one.missing)}"] if one.missing else []
            print("  ".join(words))
    return 0 if all(one.good for one in found) else 1


def check(folder: Path) -> Outcome:
    """One case: every expected number that we compute, and the names of those that we do not."""
    truth, expected = (json.loads((folder / f"{name}.json").read_text()) for name in ("truth", "expected"))
    prefix = next(prefix for prefix in CASES if folder.name.startswith(prefix))
    score, tolerance = CASES[prefix]
    with np.load(folder / "inputs.npz") as inputs:
        ours = score(dict(inputs), truth).metrics
    wanted = {name: value for name, value in expected.items() if value is not None and name not in NOT_OURS}
    both = {name: abs(ours[name] - value) for name, value in wanted.items() if name in ours}
    worst = max(both, key=lambda name: both[name], default="")
    missing = tuple(name for name in wanted if name not in ours)
    return Outcome(folder.name, both.get(worst, 0.0), worst, tolerance, len(both), missing)


def retrieval(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """Every query ranks the corpus."""
    params = {
        "similarity": truth["similarity"],
        "ignore_identical_ids": truth.get("ignore_identical_ids", False),
        "skip_first": truth.get("skip_first_result", False),
    }
    return evaluate("retrieval", Qrels(*_pairs(truth, truth["qrels"]), *_ids(truth)), _two(inputs), params)


def choice(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """Every query ranks its own candidates."""
    grades = {q: {d: truth["qrels"][q].get(d, 0) for d in offered} for q, offered in truth["top_ranked"].items()}
    offered = Qrels(*_pairs(truth, grades), *_ids(truth))
    return evaluate("choice", offered, _two(inputs), {"similarity": truth["similarity"]})


def pairs(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """Samples of images and captions."""
    sides = {"image": inputs["images"], "text": inputs["texts"]}
    matches = Matches(**{k: np.arange(v.shape[0] * v.shape[1]).reshape(v.shape[:2]) for k, v in sides.items()})
    return evaluate("pairs", matches, {k: v.reshape(-1, v.shape[-1]) for k, v in sides.items()}, {})


def zero_shot(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """One prompt a class."""
    count = len(inputs["classes"])
    classes = Classes(np.array(truth["labels"]), np.arange(count), _names(count))
    return evaluate("zeroshot", classes, {"item": inputs["items"], "prompt": inputs["classes"]}, {})


def probe(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """A logistic regression on a few shots of each class."""
    train, test = np.array(truth["train_labels"]), np.array(truth["test_labels"])
    split = Split(train, test, _names(max(train.max(), test.max()) + 1))
    return evaluate("probe", split, inputs, _shots(truth))


def multilabel(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """One logistic regression a label."""
    count = 1 + max(label for row in truth["train_labels"] + truth["test_labels"] for label in row)
    train, test = (
        np.array([np.isin(np.arange(count), row) for row in truth[f"{s}_labels"]]) for s in ("train", "test")
    )
    return evaluate("multilabel", Split(train, test, _names(count)), inputs, _shots(truth))


def clustering(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """As many clusters as labels; the peer's score is that of the first seed."""
    label = np.array(truth["labels"])
    params = {"batch_size": truth["batch_size"], "seed": truth["seed"], "runs": 2}
    scores = evaluate("clustering", Groups(label, _names(label.max() + 1)), {"item": inputs["items"]}, params)
    prefix = "published_"
    measures = {name.removeprefix(prefix): v for name, v in scores.metrics.items() if name.startswith(prefix)}
    return replace(scores, metrics=measures)


def sts(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """Gold against the similarity of pairs."""
    rows = np.arange(len(truth["gold"]))
    sides = {"left": inputs["first"], "right": inputs["second"]}
    return evaluate("sts", Gold(rows, rows, np.array(truth["gold"])), sides, {})


def mmeb(inputs: Inputs, truth: Mapping[str, Any]) -> Scores:
    """Every query ranks the corpus, or its own candidates; of repeated ids the first counts, and ids may be absent."""
    place = {name: at for at, name in reversed([*enumerate(truth["ids"])])}
    first = sorted(place.values())
    document = {name: first.index(at) for name, at in place.items()}
    count = max(map(len, truth["labels"]))
    outside = np.zeros((len(truth["labels"]), count), np.int64)
    rows = []
    for query, names in enumerate(truth["labels"]):
        grades = dict(zip(names, truth["grades"][query] if truth["grades"] else [1] * len(names), strict=True))
        ranked = (
            truth["offered"][query] if truth["offered"] else [n for n in grades if n in document] or truth["ids"][:1]
        )
        rows += [(query, document[name], grades.get(name, 0)) for name in dict.fromkeys(ranked)]
        absent = [grade for name, grade in grades.items() if name not in document]
        outside[query, : len(absent)] = absent
    ids = np.arange(len(truth["labels"])).astype(str), np.array(truth["ids"])[first]
    qrels = Qrels(*np.array(rows, np.int64).T, *ids, outside=outside)
    vectors = {"query": inputs["queries"], "document": inputs["corpus"][first]}
    return evaluate("choice" if truth["offered"] else "retrieval", qrels, vectors, {"similarity": "dot"})


CASES: dict[str, tuple[Case, float]] = {
    "mmeb": (mmeb, WHOLE),
    "retrieval": (retrieval, EXACT),
    "multiple_choice": (choice, EXACT),
    "pairs": (pairs, EXACT),
    "zero_shot": (zero_shot, EXACT),
    "sts": (sts, EXACT),
    "linear_probe": (probe, FITTED),
    "multilabel_probe": (multilabel, FITTED),
    "clustering": (clustering, FITTED),
}


def _pairs(truth: Mapping[str, Any], grades: Mapping[str, Mapping[str, int]]) -> tuple[Array, Array, Array]:
    """Columns of query, document and grade."""
    query, document = ({name: at for at, name in enumerate(truth[f"{side}_ids"])} for side in ("query", "corpus"))
    rows = [(query[q], document[d], grade) for q, of_query in grades.items() for d, grade in of_query.items()]
    return tuple(np.array(rows, np.int64).T)


def _ids(truth: Mapping[str, Any]) -> tuple[Array, Array]:
    return np.array(truth["query_ids"]), np.array(truth["corpus_ids"])


def _two(inputs: Inputs) -> dict[str, Array]:
    return {"query": inputs["queries"], "document": inputs["corpus"]}


def _names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _shots(truth: Mapping[str, Any]) -> dict[str, Any]:
    return {"shots": truth["samples_per_label"], "runs": truth["n_experiments"], "seed": truth["seed"]}


if __name__ == "__main__":
    sys.exit(main())
