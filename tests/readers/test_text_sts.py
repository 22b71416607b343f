"""The text twins of visual STS are read from the layouts that mteb's data sets have."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from embark import readers
from embark.tasks import TASKS
from embark.types import Gold, Text
from hub import FakeHub, client, parquet

PAIRS = {"sentence1": ["A dog.", "A cat."], "sentence2": ["A hound.", "A car."], "score": [4.5, 0.5]}


def lines() -> bytes:
    rows = [dict(zip(PAIRS, values, strict=True)) for values in zip(*PAIRS.values(), strict=True)]
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())


@pytest.mark.parametrize(
    ("name", "part", "files"),
    [
        ("STS12", ("test", "default"), {"test.jsonl.gz": lines(), "train.jsonl.gz": lines()}),
        ("STSBenchmark", ("test", "default"), {"test.jsonl.gz": lines(), "validation.jsonl.gz": lines()}),
        ("STS17", ("test", "en-de"), {"en-de/test.jsonl.gz": lines(), "en-en/test.jsonl.gz": lines()}),
        (
            "STSBenchmarkMultilingualSTS",
            ("dev", "de"),
            {f"{code}/{split}-00000-of-00001.parquet": {**PAIRS, "similarity_score": PAIRS["score"]}
             for code in ("de", "en") for split in ("dev", "test")},
        ),
    ],
)  # fmt: skip
def test_pairs_of_sentences_are_read(name: str, part: tuple[str, str], files: dict[str, Any], hub: FakeHub) -> None:
    row = TASKS[name]
    held = {
        path: content
        if isinstance(content, bytes)
        else parquet({column: values for column, values in content.items() if column != "score"})
        for path, content in files.items()
    }
    revision = hub.add(row.source.id, held)
    data = readers.read(replace(row, source=replace(row.source, revision=revision), rows={}), *part, client())
    assert isinstance(data.truth, Gold)
    assert data.truth.score.tolist() == [4.5, 0.5]
    assert [item.parts for item in data.sides["left"].items] == [(Text("A dog."),), (Text("A cat."),)]
    assert [item.parts for item in data.sides["right"].items] == [(Text("A hound."),), (Text("A car."),)]
