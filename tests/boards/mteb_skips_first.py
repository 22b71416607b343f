"""mteb scores a task that drops the first result, on given vectors: python FILE VECTORS.npz QRELS.json TASK."""

import json
import sys
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from datasets import Dataset
from mteb.similarity_functions import cos_sim, pairwise_cos_sim
from PIL import Image


class Stored:
    """A model of mteb's that gives a picture the vector whose position its one pixel holds."""

    mteb_model_meta = mteb.get_model_meta("mteb/baseline-random-encoder")

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    def encode(self, inputs: Any, **_: Any) -> Any:
        pixels = [picture.getpixel((0, 0)) for batch in inputs for picture in batch["image"]]
        return self.vectors[[red + 256 * green for red, green, _ in pixels]]

    def similarity(self, left: Any, right: Any) -> Any:
        return cos_sim(left, right)

    def similarity_pairwise(self, left: Any, right: Any) -> Any:
        return pairwise_cos_sim(left, right)


def pictures(ids: list[str], first: int) -> Dataset:
    images = [Image.new("RGB", (1, 1), (place % 256, place // 256, 0)) for place in range(first, first + len(ids))]
    return Dataset.from_dict({"id": ids, "image": images, "modality": ["image"] * len(ids)})


if __name__ == "__main__":
    data = np.load(sys.argv[1])
    task = mteb.get_task(sys.argv[3])
    assert task.skip_first_result
    queries = pictures(data["query_ids"].tolist(), 0)
    corpus = pictures(data["document_ids"].tolist(), len(queries))
    qrels = json.loads(Path(sys.argv[2]).read_text())
    task.dataset = {
        "default": {"test": {"queries": queries, "corpus": corpus, "relevant_docs": qrels, "top_ranked": None}}
    }
    task.data_loaded = True
    model = Stored(np.concatenate([data["query"], data["document"]]))
    [result] = mteb.evaluate(model, task, cache=None, co2_tracker=False).task_results
    [scores] = result.scores["test"]
    print(json.dumps({name: score for name, score in scores.items() if isinstance(score, float)}))
