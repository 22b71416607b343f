"""Makes the cases mmeb_* by MMEB's own code: python make_mmeb.py CHECKOUT (of TIGER-AI-Lab/VLM2Vec at COMMIT).

Its `generate_cand_dataset` chooses the candidates. Its `eval.py` ranks and scores them, from vectors in the files where
it keeps those of a run that was interrupted. Modules that only models and media need are empty. With grades, `evaluate`
passes the relevant documents through a set before it pairs them with their grades, so that its nDCG depends on the hash
seed: there, `RankingMetrics.ndcg_at_k` is called for each query.

Of documents with equal scores, `eval.py` takes the order of numpy's argsort, which depends on the processor. So
documents that tie here are all irrelevant to all queries.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np

HERE = Path(__file__).parent
COMMIT = "6e1e1d42d4cba85ae4db4d3f7a25cba2465d1e16"
QUERIES, DOCUMENTS, DIM = 40, 60, 12
OURS = {
    "hit": "hit_rate",
    "ndcg_linear": "ndcg",
    "precision": "precision",
    "recall": "recall",
    "mrr": "mrr",
    "map": "map",
}
MODULES = [
    "pytrec_eval", "src.arguments", "src.data.collator", "src.data.collator.eval_collator", "src.model",
    "src.model.model", "src.model.processor", "src.utils.basic_utils",
]  # fmt: skip

# What a case has: several relevant documents, grades, lists of each query's own, and faults in them. `left_out`
# are measures that are defined otherwise: recall is 1 for a query without relevant documents, average precision
# divides by at most k relevant documents, and a list with a document twice holds it twice.
CASES: dict[str, dict[str, Any]] = {
    "mmeb_one": {"most": 1, "left_out": ()},
    "mmeb_several": {"most": 7, "left_out": ("map",)},
    "mmeb_faulty": {"most": 7, "faulty": True, "left_out": ("map", "recall")},
    "mmeb_graded": {"most": 7, "faulty": True, "graded": True, "left_out": ("map", "recall")},
    "mmeb_local": {"most": 1, "local": True, "left_out": ()},
    "mmeb_local_faulty": {"most": 3, "local": True, "faulty": True, "left_out": {*OURS} - {"hit"}},
}  # fmt: skip


def make(most: int, faulty: bool = False, graded: bool = False, local: bool = False, **_: Any) -> dict[str, Any]:
    """Vectors, candidates and relevant documents with repeated ids, ties, and absent or no relevant documents."""
    rng = np.random.default_rng([29, most, faulty, graded, local])
    corpus = [f"d{number}" for number in rng.permutation(DOCUMENTS)]
    vectors = rng.normal(size=(DOCUMENTS, DIM)).round(2)
    labels, grades, offered = [], [], []
    for number in range(QUERIES):
        known = rng.choice(DOCUMENTS, rng.integers(1, most + 1), replace=False)
        names = [corpus[place] for place in known]
        candidates = list({*names, *rng.choice(corpus, 12).tolist()}) if local else []
        candidates = rng.permutation(sorted(candidates)).tolist()
        if faulty:
            names += [f"absent{rng.integers(9)}" for _ in range(number % 3 * (not local))]
            names = list(dict.fromkeys(names)) if graded else [*names, *names[:1]]
            names = [] if number % 9 == 4 and not local else names
            candidates += candidates[:3]
        labels.append(names)
        grades.append(rng.integers(1, 4, len(names)).tolist() if graded else None)
        offered.append(candidates)
    relevant = {name for names in labels for name in names}
    tied = [place for place, name in enumerate(corpus) if name not in relevant]
    vectors[tied[1::2]] = vectors[tied[: len(tied) - 1 : 2][: len(tied[1::2])]]
    if faulty:  # repeated ids with other vectors: the first counts
        corpus += corpus[:6]
        vectors = np.concatenate([vectors, rng.normal(size=(6, DIM)).round(2)])
    places = [[corpus.index(name) for name in names if name in corpus] for names in labels]
    near = np.array([vectors[known[:2]].sum(axis=0) for known in places])  # zero where there are none
    queries = (near + rng.normal(size=(QUERIES, DIM))).round(2)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, vectors)]
    return {
        "queries": unit[0].astype(np.float32), "corpus": unit[1].astype(np.float32), "ids": corpus, "labels": labels,
        "grades": grades if graded else None, "offered": offered if local else None,
    }  # fmt: skip


def score(checkout: Path, data: dict[str, Any]) -> dict[str, float]:
    """The scores that MMEB's code writes."""
    sys.path.insert(0, str(checkout))
    for name in MODULES:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__dict__.update(__path__=[], __getattr__=lambda _: MagicMock())
    for name in ("src.data", "src.data.eval_dataset"):  # whose own modules import every data set's
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(checkout / name.replace(".", "/"))]
    import eval as mmeb  # their script
    from src.data.eval_dataset.base_eval_dataset import generate_cand_dataset
    from src.utils.eval_utils.metrics import RankingMetrics

    offered = data["offered"] or [[] for _ in data["labels"]]
    vector = {str(place): row for place, row in enumerate(data["corpus"])}
    place = {name: str(at) for at, name in reversed([*enumerate(data["ids"])])}

    def candidate(name: str, at: str) -> dict[str, Any]:
        return {"cand_text": [at], "cand_image": [None], "dataset_infos": {"cand_names": [name]}}

    corpus = [candidate(name, str(at)) for at, name in enumerate(data["ids"])]
    rows = [
        {
            "cand_text": [place[name] for name in names],
            "cand_image": [None] * len(names),
            "dataset_infos": {"cand_names": names},
        }
        for names in offered
    ]
    chosen = generate_cand_dataset(rows, corpus)
    vectors = {row["dataset_infos"]["cand_name"]: vector[row["cand_text"][0]] for row in chosen}
    infos = []
    for number, names in enumerate(data["labels"]):
        grades = data["grades"][number] if data["grades"] else None
        infos.append({"label_name": names, "cand_names": offered[number], "rel_scores": grades})
    with tempfile.TemporaryDirectory() as place_of_files:
        out = Path(place_of_files)
        (out / "case_qry").write_bytes(pickle.dumps(data["queries"]))
        (out / "case_tgt").write_bytes(pickle.dumps(vectors))
        (out / "case_info.jsonl").write_text("".join(json.dumps(info) + "\n" for info in infos))
        (out / "case.yaml").write_text(json.dumps({"case": {"eval_type": "local" if data["offered"] else "global"}}))
        settings = [SimpleNamespace(model_name="", model_backbone="toy"), SimpleNamespace(
            encode_output_path=str(out), dataset_config=str(out / "case.yaml"), data_basedir=None,
        ), SimpleNamespace(per_device_eval_batch_size=1, device="cpu")]  # fmt: skip
        mmeb.HfArgumentParser = lambda _: SimpleNamespace(parse_args_into_dataclasses=lambda: settings)
        mmeb.AutoConfig = mmeb.MMEBModel = mmeb.load_processor = MagicMock()
        sys.argv = ["eval.py"]
        if not data["grades"]:
            mmeb.main()
            return dict(json.loads((out / "case_score.json").read_text()))
        ungraded = [{**info, "rel_scores": None} for info in infos]
        (out / "case_info.jsonl").write_text("".join(json.dumps(info) + "\n" for info in ungraded))
        mmeb.main()
        scores = dict(json.loads((out / "case_score.json").read_text()))
        ranked = [json.loads(line)["prediction"] for line in (out / "case_pred.jsonl").read_text().splitlines()]
    metrics = RankingMetrics(["ndcg"])
    for k in metrics.k_list:
        of_queries = [
            metrics.ndcg_at_k(ranked[number], info["label_name"], k, info["rel_scores"])
            for number, info in enumerate(infos)
        ]
        scores[f"ndcg_linear@{k}"] = float(np.mean(of_queries))
    return scores


def main() -> None:
    """Write the folders of all cases, and where they are from."""
    checkout = Path(sys.argv[1]).resolve()
    for name, case in CASES.items():
        data = make(**case)
        scores = score(checkout, data)
        wanted = {}
        for measure, value in scores.items():
            kind, _, depth = measure.partition("@")
            if kind in OURS and kind not in case["left_out"]:
                wanted[f"{OURS[kind]}_at_{depth}"] = value
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        np.savez_compressed(folder / "inputs.npz", queries=data["queries"], corpus=data["corpus"])
        truth = {key: data[key] for key in ("ids", "labels", "grades", "offered")}
        (folder / "truth.json").write_text(json.dumps(truth) + "\n", encoding="utf-8")
        (folder / "expected.json").write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    source = {
        "repository": "TIGER-AI-Lab/VLM2Vec",
        "commit": COMMIT,
        "files": ["eval.py", "src/utils/eval_utils/metrics.py", "src/data/eval_dataset/base_eval_dataset.py"],
        "computed_with": {"numpy": np.__version__},
        "made_by": Path(__file__).name,
    }
    (HERE / "SOURCE_mmeb.json").write_text(json.dumps(source, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
