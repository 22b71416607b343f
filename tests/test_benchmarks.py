"""The benchmarks of speed run, in their quick form, and what does not depend on the machine holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
PEER = os.environ.get("EMBARK_PEER", sys.executable if find_spec("mteb") else None)

pytestmark = pytest.mark.slow


def figures(script: str, *options: str) -> dict[str, Any]:
    """What a benchmark measured; its status tells whether claims about speed hold, which a busy machine decides."""
    words = [sys.executable, str(FOLDER / script), "--quick", "--json", *options]
    process = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert process.returncode in (0, 1), process.stderr
    assert process.stdout, process.stderr
    report: dict[str, Any] = json.loads(process.stdout)
    return report


def test_the_peers_job_has_ten_scores_and_encodes_items_once() -> None:
    embark = figures("peers.py", "--peer", "")["embark"]
    assert len(embark["scores"]) == 10
    assert all(0 < score <= 1 for score in embark["scores"].values())
    distinct = 200 + 3 * 20 + 100 + 100 + 10 + 2 * 50 + 2 * 60  # corpus, queries, both splits, prompts, pairs
    assert embark["items"] < 1.1 * distinct  # a few are embedded twice, to check the model


@pytest.mark.skipif(PEER is None, reason="no Python that has mteb")
def test_mteb_has_the_same_scores_and_encodes_more() -> None:
    report = figures("peers.py")
    claims = {claim["claim"]: claim for claim in report["claims"]}
    assert claims["items encoded, of mteb's"]["holds"]
    assert claims["largest difference of scores"]["holds"]


def test_growth_has_exponents_and_shared_items_are_encoded_once() -> None:
    report = figures("growth.py", "--only", "items,sharing")
    assert set(report["axes"]) == {"items", "sharing"}
    small, large = report["axes"]["items"]["rows"]
    assert 10 * small["items"] <= large["items"] + 200  # the prompts are few
    assert large["encoded"] < 1.01 * large["items"]
    claims = {claim["claim"].split(" ")[0]: claim for claim in report["claims"]}
    assert claims["items"]["holds"], claims["items"]


def test_a_stream_of_texts_and_pictures_scores_as_its_tasks_do_one_by_one() -> None:
    report = figures("growth.py", "--stream")
    claims = {claim["claim"]: claim for claim in report["claims"]}
    assert claims["scores that equal those of single evaluations"]["holds"]
    assert claims["peak anonymous memory in MB"]["holds"]
    assert report["stream"]["items"] >= 20_000 - report["tasks"]
    assert report["stream"]["read by then"] < 1  # the first score does not wait for the last data


@pytest.mark.parametrize("part", ["image", "text", "video", "audio", "run", "ranks"])
def test_every_part_of_the_pipeline_has_rates(part: str) -> None:
    report = figures("pipeline.py", "--only", part, "--device", "cpu")
    rates = report["parts"]["ranks" if part == "ranks" else f"tiny {part}"]
    assert all(value > 0 for value in rates.values())
    if part in ("image", "text", "video", "audio"):
        assert any(name.endswith("engine") for name in rates)


def test_four_copies_on_a_cluster_have_four_times_the_rate_of_one() -> None:
    report = figures("cluster.py", "--only", "rate")
    [claim] = report["claims"]
    assert claim["value"] > 0.2  # the claim itself, 0.9, is of a machine that does nothing else
    memory = figures("cluster.py", "--only", "memory")
    assert all(0.5 < claim["value"] < 2 for claim in memory["claims"])  # flat is what many items are
