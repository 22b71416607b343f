"""Retrieval tasks of a hub on this machine, and a model of texts, for tests of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import embark
from embark.types import Source, Task
from hub import FakeHub, parquet

WORDS = ("red", "green", "blue", "round", "small", "old")


def ranking(hub: FakeHub, number: int, dataset: str = "", words: Sequence[str] = WORDS) -> Task:
    """A retrieval task of the hub, over a dataset of its own unless one is named."""
    ids = [f"d{row}" for row in range(len(words))]
    files = {
        "corpus/test-0.parquet": parquet({"id": ids, "text": [f"a {word} page" for word in words]}),
        "queries/test-0.parquet": parquet({"id": ids, "text": [f"{word} {number}" for word in words]}),
        "qrels/test-0.parquet": parquet({"query-id": ids, "corpus-id": ids, "score": [1] * len(ids)}),
    }
    id = dataset or f"org/set{number}"
    source = Source(id, hub.add(id, files))
    return Task(f"Stream{number}", "Test", "retrieval", "beir", source, "ndcg_at_10", "Retrieval", ("text",))


def counting(calls: list[int]) -> embark.Encoder:
    def embed(texts: list[str]) -> Any:
        calls.append(len(texts))
        return np.array([[len(text), text.count("e"), hash_of(text), 1.0] for text in texts], np.float32)

    return embark.encoder(text=embed, name="test/counting", revision="1")


def hash_of(text: str) -> float:
    return float(sum(map(ord, text)) % 97)
