"""What a run uses of a cluster, by the settings; runs themselves are in tests/engine/ray/test_engine.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.models.hf import WithoutWeights
from embark.run.cluster import cluster_engine, cluster_of, loading_here
from embark.run.models import load_model
from embark.run.workbench import Workbench
from embark.types import EmbarkError
from tiny_mllm import built


def cluster(engine: str, address: str | None = None) -> embark.Cluster | None:
    return cluster_of(embark.load_settings(engine=engine, address=address))


def test_an_engine_names_a_cluster_and_what_to_use_of_it() -> None:
    assert cluster("local", "auto") is None
    assert cluster("ray") == embark.Cluster()
    assert cluster("ray:copies=8,gpus=0.5,preparers=2-16,shared", "head:6379") == embark.Cluster(
        "head:6379", copies=8, gpus=0.5, preparers=(2, 16), shared=True
    )


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("rai", "There is no engine named 'rai'"),
        ("ray:copy=8", "There is no option of the engine named 'copy'"),
        ("ray:copies=many", r"'copies=many' is not understood; write copies=8 or copies=2-8\."),
        ("ray:gpus", r"'gpus=' is not understood; write gpus=1\."),
        ("ray:shared=2", r"'shared=2' is not understood; write shared\."),
    ],
)
def test_an_engine_that_makes_no_sense_is_an_error(engine: str, message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        cluster(engine)


def test_the_driver_of_a_cluster_needs_no_gpu() -> None:
    here = embark.Loading("cpu", pixels="pillow", weights=False)
    assert loading_here(embark.Loading("cuda:0", compile=True)) == here
    with pytest.raises(EmbarkError, match="leave --pixels out"):
        loading_here(embark.Loading(pixels="cuda"))


def test_only_actors_that_embed_have_weights(tmp_path: Path) -> None:
    folder = str(built("qwen2_5_vl", tmp_path))
    settings = embark.load_settings(home=tmp_path / "home")
    loading = embark.Loading("cpu")
    driver = load_model(folder, loading_here(loading), settings)
    engine = cluster_engine(embark.Cluster(), folder, loading, Workbench(settings), driver)
    assert has_weights(engine._load())
    assert not has_weights(driver)
    assert not has_weights(engine._copy())


def has_weights(model: Any) -> bool:
    return not isinstance(model.model, WithoutWeights) and next(model.model.parameters()).nbytes > 0


def test_the_command_line_passes_the_engine_on() -> None:
    ran = CliRunner().invoke(app, ["run", "-t", "PocketNameSTS", "-m", "embark/random", "--address", "auto"])
    assert ran.exit_code == 2
    assert "--address is that of a Ray cluster: add --engine ray" in ran.output
    words = ["run", "-t", "PocketNameSTS", "-m", "embark/random", "--engine", "ray", "--address", "127.0.0.1:9"]
    ran = CliRunner().invoke(app, words)
    assert "There is no Ray cluster at '127.0.0.1:9': Connection refused" in ran.output
