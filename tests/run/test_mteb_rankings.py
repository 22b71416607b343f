"""Rows of MIEB on made-up data in the hub's layout: their scores are those of mteb's own loader and task class."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import embark
from embark.tasks import TASKS
from embark.types import Array, Source
from hub import FakeHub, parquet

pytestmark = pytest.mark.slow

SPACES = ("", "", " ", "\n", "\t", "\u00a0", "\u3000")
CONFIGS = ("corpus", "queries", "qrels")


def noise(content: bytes) -> Array:
    seed = int.from_bytes(hashlib.sha256(content).digest()[:8])
    return np.random.default_rng(seed).standard_normal(8).astype(np.float32)


def of_texts(texts: Sequence[str]) -> Array:
    """Vectors that hang on the words, and a little on every character."""
    return np.stack([noise(text.strip().encode()) + 0.5 * noise(text.encode()) for text in texts])


def of_images(images: Sequence[Image.Image]) -> Array:
    """Vectors that hang on the red channel, and a little on the whole picture."""
    content = [np.asarray(image.convert("RGB")) for image in images]
    return np.stack([noise(pixels[..., 0].tobytes()) + 0.7 * noise(pixels.tobytes()) for pixels in content])


ENCODER = embark.encoder(
    text=of_texts, image=of_images, name="test/noise", revision="1", fusion="sum", stored="float32"
)


def picture(red: int, green: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (2, 2), (red, green, 0)).save(file, "PNG")
    return file.getvalue()


def tables(direction: str, repeats: tuple[int, int], rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
    """Queries and documents with so many rows an id, and judgements; texts have white space around them, and titles."""
    ids = {"queries": 40, "corpus": 60}
    out: dict[str, dict[str, list[Any]]] = {}
    for name, content, rows in zip(("queries", "corpus"), direction.split("2"), repeats, strict=True):
        numbers = rng.permutation(np.repeat(np.arange(ids[name]), rows)).tolist()
        held: dict[str, list[Any]] = {"id": [f"{name[0]}{number}" for number in numbers]}
        if "i" in content:
            held["image"] = [picture(number, int(rng.integers(256))) for number in numbers]
        if "t" in content:
            words = [f"w{number}" + rng.choice(["", " again"]) for number in numbers]
            held["text"] = [rng.choice(SPACES) + word + rng.choice(SPACES) for word in words]
        if name == "corpus" and content == "t":
            held["title"] = [str(rng.choice(["", " ", "\tThe title"])) for _ in numbers]
        out[name] = held
    out["qrels"] = {
        "query-id": [f"q{number}" for number in range(39) for _ in range(3)],
        "corpus-id": [f"c{number}" for _ in range(39) for number in rng.permutation(60)[:3]],
        "score": [1] * 3 * 39,
    }
    return out


def _undescribed(data: bytes) -> bytes:
    """A table without the description of its columns, so that both sides get the bytes of its pictures."""
    file = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)).replace_schema_metadata(None), file)
    return file.getvalue()


def scores_of_mteb(folder: Path, direction: str) -> dict[str, float]:
    """What mteb's loader and AbsTaskRetrieval make of the files in the folder."""
    from mteb import TaskMetadata
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.models.model_meta import ModelMeta
    from mteb.similarity_functions import cos_sim

    modalities = ["text"] * ("t" in direction) + ["image"] * ("i" in direction)
    facts: dict[str, Any] = dict.fromkeys(
        ("date", "domains", "task_subtypes", "license", "annotations_creators", "dialect", "sample_creation")
    )
    facts |= {
        "name": "MadeUp", "description": "made up", "reference": None, "type": "Retrieval", "category": direction,
        "modalities": modalities, "eval_splits": ["test"], "eval_langs": ["eng-Latn"], "main_score": "ndcg_at_10",
        "dataset": {"path": str(folder), "revision": "1"}, "bibtex_citation": None,
    }  # fmt: skip

    class MadeUp(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(**facts)

    class Model:
        mteb_model_meta = ModelMeta.create_empty({"name": "test/noise", "revision": "1"})

        def encode(self, inputs: Any, **_: Any) -> Array:
            return np.concatenate([self._batch(batch) for batch in inputs])

        def _batch(self, batch: Mapping[str, Any]) -> Array:
            parts = [of_texts(batch["text"])] if "text" in batch else []
            if "image" in batch:
                parts.append(of_images([Image.open(io.BytesIO(data["bytes"])) for data in batch["image"]]))
            return np.sum(parts, axis=0)

        def similarity(self, one: Array, other: Array) -> Any:
            return cos_sim(one, other)

        def similarity_pairwise(self, one: Array, other: Array) -> Any:
            raise NotImplementedError

    [scores] = MadeUp().evaluate(Model(), encode_kwargs={"batch_size": 32, "show_progress_bar": False}).values()
    return scores


@pytest.mark.parametrize(
    ("name", "repeats"),
    [("SketchyI2IRetrieval", (6, 2)), ("ImageCoDeT2IRetrieval", (1, 9)), ("WebQAT2TRetrieval", (1, 1))],
)
def test_scores_are_those_of_mtebs_own_classes(
    hub: FakeHub, tmp_path: Path, name: str, repeats: tuple[int, int]
) -> None:
    pytest.importorskip("mteb")
    row = TASKS[name]
    direction = row.tags["direction"]
    made = tables(direction, repeats, np.random.default_rng(len(name)))
    card = "---\nconfigs:\n" + "".join(
        f"- config_name: {config}\n  data_files:\n  - split: test\n    path: {config}/test-*\n" for config in CONFIGS
    ) + "---\n"  # fmt: skip
    files = {f"{config}/test-0.parquet": _undescribed(parquet(made[config])) for config in CONFIGS}
    for path, data in {**files, "README.md": card.encode()}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    source = Source("org/made", hub.add("org/made", files, card=card), splits=("test",))
    row = replace(row, name=f"Made{name}", source=source, rows={}, pools=(), chance=None, instructions={})
    expected = scores_of_mteb(tmp_path, direction)
    found = {
        protocol: embark.evaluate(ENCODER, [row], protocol=protocol, show_progress=False).results[0]
        for protocol in ("mteb2", "paper")
    }
    metrics = {protocol: result.records[0].metrics for protocol, result in found.items()}
    for measure in ("ndcg_at_10", "map_at_5", "recall_at_20", "hit_rate_at_1", "hit_rate_at_3", "mrr_at_10"):
        assert metrics["mteb2"][measure] == pytest.approx(expected[measure], abs=1e-5), measure
    assert metrics["paper"]["ndcg_at_10"] != pytest.approx(expected["ndcg_at_10"], abs=1e-4)
