"""Runs UniBench's own Evaluator over folders of shards, with the toy model; prints what it saved of each item, as JSON.

    python unibench_peer.py FOLDER BENCHMARK…

FOLDER/data has a folder for each data set, named as on the hub, with test/*.tar and the lists of classes and templates.
UniBench is used as its wheel has it, except that the hub is a folder: `load_dataset` opens the shards and
`hf_hub_download` returns the path of a list. Modules that only its model zoo or command line needs are empty.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from unibench_toy import picture_vectors, text_vectors

BATCH = 8


def main(folder: Path, benchmarks: list[str]) -> None:
    """Evaluate the toy model, and print the saved rows by benchmark."""
    prepare_imports()
    import datasets
    import pandas as pd
    from unibench import Evaluator
    from unibench.benchmarks_zoo.wrappers import huggingface
    from unibench.models_zoo.wrappers import ClipModel

    data = folder / "data"

    def load_dataset(url: str, **_: Any) -> Any:
        shards = sorted(map(str, (data / url.rpartition("/")[2]).glob("test/*.tar")))
        cache = str(folder / "cache")
        return datasets.load_dataset("webdataset", data_files={"test": shards}, split="test", cache_dir=cache)

    def hf_hub_download(repo_id: str, filename: str, **_: Any) -> Path:
        return data / repo_id.rpartition("/")[2] / filename

    huggingface.load_dataset, huggingface.hf_hub_download = load_dataset, hf_hub_download
    (folder / "out").mkdir()  # it fails without results of somebody before
    before = {"model_name": ["other"], "benchmark_name": benchmarks[:1], "correctness": [0.5]}
    pd.DataFrame(before).to_feather(folder / "out" / "aggregate.f")
    toy = partial(ClipModel, model=Toy(), model_name="toy", tokenizer=tokens)
    evaluator = Evaluator(
        num_workers=0, models=["clip_vitB32"], benchmarks=benchmarks, output_dir=folder / "out",
        benchmarks_dir=folder / "loaded", download_aggregate_precomputed=False,
    )  # fmt: skip
    evaluator.models.clear()
    evaluator.add_model(toy)
    evaluator.evaluate(device="cpu", batch_per_gpu=BATCH)
    saved = {name: pd.read_feather(folder / "out" / "toy" / f"{name}.f") for name in benchmarks}
    total = pd.read_feather(folder / "out" / "aggregate.f").query("model_name == 'toy'")
    means = dict(zip(total["benchmark_name"], total["correctness"], strict=True))
    rows = {name: json.loads(frame.to_json(orient="records")) for name, frame in saved.items()}
    (folder / "saved.json").write_text(json.dumps({"rows": rows, "means": means}), encoding="utf-8")


def prepare_imports() -> None:
    """Empty modules for what loads models or parses a command line, and the operators that torchvision describes."""
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    prepare_imports.declared = library  # type: ignore[attr-defined]  # kept: the declaration goes with it
    for name in ("clip", "git", "fire"):
        sys.modules[name] = ModuleType(name)
    sys.modules["git"].Repo = None  # type: ignore[attr-defined]


class Toy(torch.nn.Module):
    """The toy model as UniBench's wrapper of CLIP models calls it."""

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        """Vectors of scaled pixels."""
        return torch.from_numpy(picture_vectors(images.numpy()))

    def encode_text(self, texts: Texts) -> torch.Tensor:
        """Vectors of texts."""
        return torch.from_numpy(text_vectors(texts))


class Texts(list[str]):
    """Texts that are their own tokens."""

    def to(self, device: str) -> Texts:
        """Themselves: they are on no device."""
        return self


def tokens(texts: list[str], context_length: int) -> Texts:
    """The texts as they are."""
    return Texts(texts)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
