"""all-MiniLM-L6-v2 by every loader meets its published scores, agrees with itself, and with mteb beside us."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.models.encoder import prepare_many
from embark.types import Array, Content
from real.proof import LENGTHS, MTEB, SCORES, VECTORS

pytestmark = pytest.mark.real

NAME = "all-MiniLM-L6-v2"
PUBLISHED = {"STSB": 82.032, "Banking77": 80.042, "LIMITsmall": 31.364}  # points; docs/proof.md says where they stand
REFERENCE = f"sentence-transformers:{NAME}"
LOADERS = {  # model → (its weights, the largest difference from a published score in points)
    REFERENCE: ("float32", 0.02),
    f"text:{NAME}": ("float32", 0.02),
    f"onnx:{NAME}-onnx": ("float32", 0.02),
    f"onnx:{NAME}-int8": ("int8", 0.1),
}
INT8 = 0.98  # the smallest cosine of int8 vectors with those of float32: kernels differ from processor to processor
WORDS = [
    "the", "old", "boat", "drifted", "slowly", "past", "a", "row", "of", "quiet", "houses", "while", "children",
    "threw", "bread", "to", "ducks", "and", "somebody", "played", "trumpet", "badly", "behind", "green", "shutters",
]  # fmt: skip
Prove = Callable[..., None]


def text(words: int) -> str:
    """A text of so many words, the same each time."""
    return " ".join(np.random.default_rng(words).choice(WORDS, words))


def at(folders: Path, model: str) -> str:
    """LOADER:SOURCE with the folder's place."""
    loader, _, folder = model.partition(":")
    return f"{loader}:{folders / folder}"


def vectors(model: Any, texts: Sequence[str]) -> Array:
    """Unit vectors of texts, embedded as one batch."""
    batch = prepare_many(model, [[Content("text", text)] for text in texts], [""] * len(texts))
    rows = np.asarray(model.embed(batch), np.float64)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def points(model: Any, task: str, data: Path) -> float:
    """The main score of a task of tasks.toml, by `embark.evaluate`."""
    [row] = [row for row in embark.load_tasks(data / "tasks.toml") if row.name == task]
    [result] = embark.evaluate(model, row, show_progress=False).results
    assert result.records[0].warnings == ()
    return 100 * result.score


@pytest.mark.parametrize(
    ("task", "model"),
    [("Banking77", REFERENCE), ("LIMITsmall", REFERENCE), *(("STSB", model) for model in LOADERS)],
)
def test_published_scores_are_met(task: str, model: str, folders: Path, real_data: Path, prove: Prove) -> None:
    weights, most = LOADERS[model]
    score = points(at(folders, model), task, real_data)
    difference = score - PUBLISHED[task]
    digits = 1 if weights == "int8" else 2
    command = f"`embark run -m {model} --tasks-file tasks.toml -t {task}`"
    prove(
        SCORES, weights, f"`{model.partition(':')[0]}`", task, f"{PUBLISHED[task]:.{digits}f}",
        f"{score:.{digits}f}", f"{round(difference, digits) + 0.0:+.{digits}f}", command,
    )  # fmt: skip
    assert abs(difference) <= most


# ── vectors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", [model for model in LOADERS if model != REFERENCE])
def test_loaders_agree_where_the_length_is_set(model: str, folders: Path, prove: Prove) -> None:
    texts = [text(words) for words in (5, 15, 140, 200, 600)]
    rows = []
    for name in (REFERENCE, model):
        loader, _, source = at(folders, name).partition(":")
        card = embark.types.ModelCard("test/minilm", "1", loader, ("text",), source=source, options={"tokens": 256})
        encoder = embark.get_model(card, loading=embark.Loading(device="cpu"))
        assert encoder.card.loaded["tokens"] == 256
        rows.append(vectors(encoder, texts))
    smallest = float((rows[0] * rows[1]).sum(1).min())
    weights = LOADERS[model][0]
    shown = f"at least {INT8}" if weights == "int8" else f"{smallest:.4f}"
    prove(VECTORS, weights, f"`{model.partition(':')[0]}`", shown)
    assert smallest >= (INT8 if weights == "int8" else 0.9999)


@pytest.mark.parametrize(
    ("model", "tokens", "stated_by"),
    [
        (REFERENCE, 256, "sentence_bert_config.json"),
        (f"text:{NAME}", 256, "sentence_bert_config.json"),
        (f"onnx:{NAME}-onnx", 512, "tokenizer_config.json"),
        (f"onnx:{NAME}-int8", 256, "sentence_bert_config.json"),
    ],
)
def test_a_folder_reads_as_long_a_text_as_its_files_state(
    model: str, tokens: int, stated_by: str, folders: Path, prove: Prove
) -> None:
    encoder = embark.get_model(at(folders, model), loading=embark.Loading(device="cpu"))
    loaded = encoder.card.loaded
    assert (loaded["tokens"], loaded["tokens stated by"]) == (tokens, stated_by)
    whole = ["boat"] * (tokens - 2)  # a word is one token, and two are [CLS] and [SEP]
    texts = [[*whole], [*whole, "trumpet"], [*whole[:-1], "trumpet"]]
    full, beyond, within = vectors(encoder, [" ".join(words) for words in texts])
    assert full @ beyond > 1 - 1e-6
    assert full @ within < 1 - 1e-5
    prove(LENGTHS, LOADERS[model][0], f"`{model.partition(':')[0]}`", str(tokens), f"`{stated_by}`")


# ── mteb ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def mteb_task(name: str, data: Path) -> Any:
    """mteb's own task with the files of a folder instead of those of the hub."""
    import mteb
    from datasets import Dataset

    if name == "STSB":
        with (data / name / "test.csv").open(encoding="utf-8", newline="") as file:
            rows = [{**row, "score": float(row["score"])} for row in csv.DictReader(file)]
        task = mteb.get_task("STSBenchmark")
        task.dataset = {"default": {"test": Dataset.from_list(rows)}}
    else:
        queries, corpus = (
            [json.loads(line) for line in (data / name / f"{side}.jsonl").read_text("utf-8").splitlines()]
            for side in ("queries", "corpus")
        )
        qrels: dict[str, dict[str, int]] = {}
        for line in (data / name / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]:
            query, document, grade = line.split("\t")
            qrels.setdefault(query, {})[document] = int(grade)
        task = mteb.get_task("LIMITSmallRetrieval")
        sides = [Dataset.from_list(rows).rename_column("_id", "id") for rows in (queries, corpus)]
        split = {"queries": sides[0], "corpus": sides[1], "relevant_docs": qrels, "top_ranked": None}
        task.dataset = {"default": {"test": split}}
    task.data_loaded = True
    return task


@pytest.mark.parametrize(("task", "measure"), [("STSB", "cosine_spearman"), ("LIMITsmall", "ndcg_at_10")])
@pytest.mark.filterwarnings("ignore")  # those of mteb
def test_mteb_has_the_same_score_of_the_same_model(
    task: str, measure: str, folders: Path, real_data: Path, prove: Prove
) -> None:
    import mteb
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folders / NAME), device="cpu")
    result = mteb.evaluate(
        model, mteb_task(task, real_data), cache=None, co2_tracker=False, show_progress_bar=False,
        encode_kwargs={"batch_size": 32, "show_progress_bar": False},
    )  # fmt: skip
    theirs = 100 * result.task_results[0].scores["test"][0][measure]
    ours = points(embark.models.from_sentence_transformers(model, name="test/minilm"), task, real_data)
    prove(MTEB, NAME, task, f"{theirs:.3f}", f"{ours:.3f}", f"{round(ours - theirs, 3) + 0.0:+.3f}", "`make test-real`")
    assert abs(ours - theirs) < 2e-3
