"""mteb's own scoring on given embeddings, timed; run by the Python that has mteb (see scoring.py).

python benchmarks/peer_mteb.py retrieval|retrieval_bare|probe|probe_lists FOLDER

The task classes, evaluators and parameters are mteb's. Its encoder is a stub that returns the embeddings. `retrieval`
and `probe` are timed as a user has them; `retrieval_bare` without the loaders that make batches for a model, and
`probe_lists` without what `datasets` costs, so that what is left is comparing, ranking, fitting and measuring.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM = 64  # rows of a first, small evaluation: lazy imports and thread pools are not part of the scoring


def measured(work: Callable[[bool], dict[str, float]]) -> dict[str, Any]:
    """Seconds, extra peak memory and scores of `work(False)`, after the small `work(True)`."""
    work(True)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before, start = _memory("VmRSS"), time.perf_counter()
    scores = work(False)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "extra_rss_mb": _memory("VmHWM") - before, "scores": scores}


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


class Stub:
    """An encoder whose embeddings are known; it is asked for them in order."""

    def __init__(self, **sides: Any) -> None:
        from mteb.models.model_meta import ModelMeta

        self.mteb_model_meta = ModelMeta.create_empty({"name": "embark/stub", "revision": "1"})
        self.sides, self.at = sides, dict.fromkeys(sides, 0)

    def encode(self, inputs: Any, *, hf_split: str, prompt_type: Any = None, **kwargs: Any) -> Any:
        side = str(getattr(prompt_type, "value", hf_split))
        count = sum(len(batch["text"]) for batch in inputs) if hasattr(inputs, "dataset") else len(inputs)
        self.at[side] += count
        return self.sides[side][self.at[side] - count : self.at[side]]

    def similarity(self, one: Any, other: Any) -> Any:
        from mteb.similarity_functions import cos_sim

        return cos_sim(one, other)

    def similarity_pairwise(self, one: Any, other: Any) -> Any:
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(one, other)


def retrieval_bare(folder: Path) -> dict[str, Any]:
    """Without the loaders that make the batches that a model is fed with."""
    return retrieval(folder, loaders=False)


def retrieval(folder: Path, loaders: bool = True) -> dict[str, Any]:
    """AbsTaskRetrieval: its top-1000 search, then its pytrec_eval measures."""
    import mteb.models.search_wrappers as search
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.timing import TimingStack

    if not loaders:
        search.create_dataloader = lambda data, **_: data
    queries, documents = (np.load(folder / f"{side}.npy") for side in ("query", "document"))
    truth = json.loads((folder / "truth.json").read_text())

    def data(rows: int, columns: int) -> dict[str, Any]:
        ids = truth["query_ids"][:rows], truth["document_ids"][:columns]
        keep = set(ids[1])
        qrels = {q: {d: g for d, g in truth["qrels"][q].items() if d in keep} or {ids[1][0]: 1} for q in ids[0]}
        sides = (Dataset.from_dict({"id": names, "text": names}) for names in ids)
        return dict(zip(("queries", "corpus"), sides, strict=True)) | {"relevant_docs": qrels, "top_ranked": None}

    task = _task(AbsTaskRetrieval, "Retrieval", "ndcg_at_10")
    parts = {True: data(WARM, 20 * WARM), False: data(len(queries), len(documents))}

    def work(small: bool) -> dict[str, float]:
        model = Stub(query=queries, document=documents)
        found = task._evaluate_subset(
            model, parts[small], encode_kwargs=QUIET, hf_split="test", hf_subset="default", timer=TimingStack()
        )
        return {name: float(value) for name, value in found.items() if "_at_" in name and "nauc" not in name}

    return measured(work)


def probe(folder: Path) -> dict[str, Any]:
    """AbsTaskClassification: sampling, fitting and measuring of its experiments."""
    import mteb.abstasks.classification as classification
    from datasets import Dataset, DatasetDict
    from mteb.timing import TimingStack

    train, test = (np.load(folder / f"{side}.npy") for side in ("train", "test"))
    truth = json.loads((folder / "truth.json").read_text())
    task = _task(classification.AbsTaskClassification, "Classification", "accuracy")
    task.samples_per_label, task.n_experiments = truth["shots"], truth["runs"]
    task.evaluator_model.set_params(random_state=task.seed)

    def data(rows: int) -> Any:
        sides = {side: truth[side][:rows] for side in ("train", "test")}
        return DatasetDict({s: Dataset.from_dict({"text": [""] * len(y), "label": y}) for s, y in sides.items()})

    classification.create_dataloader = lambda data, **_: data
    parts = {True: data(WARM), False: data(len(train))}
    asked = {small: _sampled(task, part["train"]) for small, part in parts.items()}

    def work(small: bool) -> dict[str, float]:
        model = Stub(train=train[asked[small]], test=test)
        found = task._evaluate_subset(
            model, parts[small], encode_kwargs=QUIET, hf_split="test", hf_subset="default", timer=TimingStack()
        )
        return {name: float(v) for name, v in found.items() if isinstance(v, float) and not np.isnan(v)}

    return measured(work)


def probe_lists(folder: Path) -> dict[str, Any]:
    """The probe with label columns read at once: row by row, as `datasets` does, takes nine tenths of the time."""
    from datasets import Dataset

    lazy = Dataset.__getitem__
    Dataset.__getitem__ = lambda self, key: lazy(self, key)[:] if isinstance(key, str) else lazy(self, key)
    return probe(folder)


def _sampled(task: Any, train: Any) -> list[int]:
    """The training rows that any experiment uses, in the order in which mteb encodes them; it asks for no others."""
    order, rows = None, set()
    for experiment in range(task.n_experiments):
        _, order, picked = task._undersample_data(train, experiment, order)
        rows.update(picked)
    return sorted(rows)


def _task(kind: Any, name: str, metric: str) -> Any:
    """A text task of mteb's kind; its data is handed over, never loaded."""
    from mteb import TaskMetadata

    facts: dict[str, Any] = dict.fromkeys(
        ("date", "domains", "task_subtypes", "license", "annotations_creators", "dialect", "sample_creation")
    )
    facts |= {"name": f"Peer{name}", "description": "peer", "reference": None, "type": name, "category": "t2t"}
    facts |= {"modalities": ["text"], "eval_splits": ["test"], "eval_langs": ["eng-Latn"], "main_score": metric}
    facts |= {"dataset": {"path": "none/none", "revision": "1"}, "bibtex_citation": None}
    return type(f"Peer{name}", (kind,), {"metadata": TaskMetadata(**facts)})()


QUIET = {"show_progress_bar": False}

if __name__ == "__main__":
    cases = {
        "retrieval": retrieval,
        "retrieval_bare": retrieval_bare,
        "probe": probe,
        "probe_lists": probe_lists,
    }
    print(json.dumps(cases[sys.argv[1]](Path(sys.argv[2]))))
