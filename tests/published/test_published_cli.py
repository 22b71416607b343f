"""`embark published` as people meet it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from embark import published
from embark.cli import app
from embark.types import EmbarkError


def said(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["published", *words])
    assert result.exit_code == code, result.output
    return result.stdout


def test_check_prints_a_line_a_table_and_the_sum() -> None:
    lines = said("check").splitlines()
    assert lines[0].split() == ["table", "cells", "agreeing", "errata", "unexplained", "which", "errata"]
    assert next(line.split()[1:] for line in lines if line.startswith("all ")) == ["1,940", "1,888", "52", "0"]
    assert "Spearman 0.991, Pearson 0.987 (the paper says 0.992 and 0.986)" in lines[-1]


@pytest.mark.slow
def test_check_as_json() -> None:
    found = json.loads(said("check", "--format", "json"))
    assert all(table["unexplained"] == [] for table in found["tables"])
    assert found["MIEB-lite"]["models"] == 38


@pytest.fixture
def altered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The shipped tables with one cell changed: WAVE's mean over text tasks in Table 9."""
    shutil.copytree(published._HERE, tmp_path / "data")
    path = tmp_path / "data" / "mmeb.parquet"
    rows = pq.read_table(path).to_pylist()
    [cell] = [
        r for r in rows if (r["table"], r["model"], r["name"]) == ("MMEB-V3 Table 9", "tsinghua-ee/WAVE-7B", "text")
    ]
    cell["value"] = 0.2
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), path)
    monkeypatch.setattr(published, "_HERE", tmp_path / "data")
    published.scores.cache_clear()
    yield
    published.scores.cache_clear()


@pytest.mark.slow
def test_an_unexplained_cell_is_named_and_fails(altered: None) -> None:
    result = CliRunner().invoke(app, ["published", "check"])
    assert result.exit_code == 1
    said = [line for line in result.stderr.splitlines() if line.startswith("unexplained: ")]
    assert len(said) == 2  # it follows neither from its rows nor from Table 3
    assert said[0].startswith("unexplained: MMEB-V3 Table 9, tsinghua-ee/WAVE-7B, text: 0.2 printed, 0.136")


def test_list_show_and_errata() -> None:
    assert "MIEB Table 22" in said("list")
    listed = json.loads(said("list", "--family", "ARK", "--format", "json"))
    assert {about["family"] for about in listed.values()} == {"ARK"}
    shown = said("show", "MMEB-V3 Table 8", "-m", "tsinghua-ee/WAVE-7B")
    assert any("A-RET" in line and line.endswith("mmeb-wave-audio-retrieval") for line in shown.splitlines())
    cells = json.loads(said("show", "MIEB results", "-m", "QuanSun/EVA02-CLIP-B-16", "--format", "json"))["cells"]
    assert [c["name"] for c in cells if "mieb-collapsed-probe" in c["errata"]] == [
        "Birdsnap", "Country211", "Imagenet1k", "SUN397", "StanfordCars",
    ]  # fmt: skip
    assert "mieb-collapsed-probe" in said("errata", "--family", "MIEB")
    assert len(json.loads(said("errata", "--format", "json"))) == 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "MIEB Table 23"], "Did you mean MIEB Table 2"),
        (["show", "MIEB Table 22", "-m", "royokong/e5"], "Did you mean royokong/e5-v"),
        (["errata", "--family", "mieb"], "Did you mean MIEB"),
    ],
)
def test_unknown_names_get_suggestions(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["published", *words])
    assert isinstance(result.exception, EmbarkError)
    assert message in str(result.exception)


def test_one_erratum_has_its_evidence_and_cells() -> None:
    lines = said("errata", "mieb-collapsed-probe").splitlines()
    assert lines[0] == "id        mieb-collapsed-probe"
    assert any(line.startswith("evidence  ") and len(line) > 40 for line in lines)
    assert sum(line.startswith("MIEB results  ") for line in lines) == 13
    unknown = CliRunner().invoke(app, ["published", "errata", "mieb-collapsed"])
    assert "Did you mean mieb-collapsed-probe" in str(unknown.exception)
