"""Inputs that are exported, filled elsewhere and recorded give what the same models give directly."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.models.recorded import input_key
from embark.types import EmbarkError

CLOCKS = "PocketARK/Clocks"  # 48 queries of a picture and words


def words(value: Any) -> str:
    """The texts of an input, whether a recorded file or a function holds it."""
    parts = value if isinstance(value, list) else [value]
    return " ".join(part for part in parts if isinstance(part, str))


def rewrite(values: list[Any], _: str) -> list[str]:
    return [f"{words(value)[::-1]} clock" for value in values]


def relevance(pairs: list[tuple[Any, Any]]) -> Any:
    """How near the brightness of a picture is to a number that the words of the query make."""
    wanted = [sum(map(ord, words(query))) % 256 for query, _ in pairs]
    bright = [
        0.0 if isinstance(document, str) else float(np.asarray(document.convert("RGB")).mean()) for _, document in pairs
    ]
    return -np.abs(np.array(wanted, float) - np.array(bright))


def judged(row: dict[str, Any], media: Path) -> dict[str, Any]:
    """The same judge on a line of the file."""
    [path] = media.glob(f"{row['document']['sha256']}.*")
    with Image.open(path) as picture:
        return {"score": float(relevance([(row["query"], picture)])[0])}


def fill(path: Path, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(f"{json.dumps(row | answer(row))}\n" for row in rows))
    return str(path)


@pytest.mark.slow
def test_exported_filled_and_recorded_is_the_same_diagnosis(tmp_path: Path, pocket_home: Path) -> None:
    quiet: dict[str, Any] = {"show_progress": False}
    written = embark.exchange.export_inputs(tmp_path, CLOCKS, "rewrite", **quiet)
    assert (written.count, written.new, written.empty) == (48, 48, 48)
    rewrites = f"recorded:{fill(written.path, lambda row: {'output': rewrite([row['input']], '')[0]})}"
    model = "embark/random"
    plain = embark.exchange.export_inputs(tmp_path, CLOCKS, "rerank", model=model, depth=5, **quiet)
    assert plain.count == 48 * 5
    judge = partial(judged, media=tmp_path / "media")
    fill(plain.path, judge)
    both = embark.exchange.export_inputs(
        tmp_path, CLOCKS, "rerank", model=model, depth=5, stages=embark.Stages(rewrite=rewrites), **quiet
    )
    assert (both.count, both.new, both.empty) == (48 * 10, 48 * 5, 48 * 5)  # what was filled is kept
    scores = f"recorded-scores:{fill(both.path, judge)}"
    recorded = embark.analyze.diagnose_ark(model, CLOCKS, rewrite=rewrites, rerank=scores, depth=5, **quiet)
    direct = embark.analyze.diagnose_ark(
        model,
        CLOCKS,
        rewrite=embark.models.generator(rewrite, name="test/backwards", revision="1"),
        rerank=embark.models.reranker(relevance, modalities=("text", "image"), name="test/judge", revision="1"),
        depth=5,
        **quiet,
    )
    assert [route.name for route in recorded.routes] == ["plain", "rewrite", "re-rank 5", "rewrite + re-rank 5"]
    assert recorded.findings == direct.findings
    assert recorded.gains_table(None) == direct.gains_table(None)


def test_captions_have_their_pictures_beside_them(tmp_path: Path, pocket_home: Path) -> None:
    output = tmp_path / "offline"
    done = CliRunner().invoke(app, ["export", "inputs", "-o", str(output), "--for", "caption", "-t", CLOCKS])
    assert done.exit_code == 0, done.output
    assert 'Fill in "output" of 24, then: --caption recorded:' in done.stdout
    rows = [json.loads(line) for line in (output / "caption.jsonl").read_text().splitlines()]
    files = {path.stem: path for path in (output / "media").iterdir()}
    assert {row["input"]["sha256"] for row in rows} == set(files)
    assert all(sha256(path.read_bytes()).hexdigest() == name for name, path in files.items())
    assert {path.suffix for path in files.values()} == {".webp"}
    assert all(row["prompt"] and row["id"].startswith(f"{CLOCKS}/") and row["output"] is None for row in rows)
    with pytest.raises(EmbarkError, match=r'Line 1 of .* has no "input" with a text as "output"'):
        embark.models.get_generator(f"recorded:{output / 'caption.jsonl'}")
    captions = f"recorded:{fill(output / 'caption.jsonl', lambda row: {'output': input_key(row['input'])})}"
    diagnosis = embark.analyze.diagnose_ark("embark/random", CLOCKS, caption=captions, show_progress=False)
    assert [route.name for route in diagnosis.routes] == ["plain", "captions"]


def test_misuse_is_told(tmp_path: Path, pocket_home: Path) -> None:
    with pytest.raises(EmbarkError, match="Name the model whose best documents are re-ranked"):
        embark.exchange.export_inputs(tmp_path, CLOCKS, "rerank")
    with pytest.raises(EmbarkError, match="Only retrieval tasks have stages; PocketFlagZeroShot"):
        embark.exchange.export_inputs(tmp_path, "PocketFlagZeroShot", "caption")
    with pytest.raises(EmbarkError, match="stage"):
        embark.exchange.export_inputs(tmp_path, CLOCKS, "summarize")
    assert not list(tmp_path.iterdir())
