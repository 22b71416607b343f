"""The doctor as a value and as a command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.run.examination import doctor
from embark.types import Array


def constant(texts: list[str]) -> Array:
    return np.ones((len(texts), 3), np.float32)


def test_a_sound_model_has_no_faults() -> None:
    checks: list[str] = []
    examination = doctor("embark/random", say=checks.append)
    assert examination.faults == ()
    assert checks[:2] == ["text", "image"]
    assert examination.sentence() == "embark/random: no fault found."
    assert [row.cells[1] for row in examination.table().rows] == [finding.check for finding in examination.findings]
    assert examination.to_frame().shape == (len(examination.findings), 3)


def test_a_faulty_encoder_is_told_of() -> None:
    examination = doctor(embark.encoder(text=constant, name="test/constant", revision="1"))
    assert [fault.check for fault in examination.faults] == ["text: varied"]
    assert examination.sentence().startswith("test/constant: 1 of ")
    assert "✗" in {row.cells[0] for row in examination.table().rows}


@pytest.mark.parametrize("style", ["text", "json"])
def test_the_command_prints_what_the_function_returns(style: str) -> None:
    ran = CliRunner().invoke(app, ["doctor", "embark/random", "--format", style])
    assert ran.exit_code == 0
    assert ran.stderr.endswith("embark/random: no fault found.\n")
    checks = [finding.check for finding in doctor("embark/random").findings]
    if style == "json":
        assert [finding["check"] for finding in json.loads(ran.stdout)] == checks
    else:
        assert [check for check in checks if check not in ran.stdout] == []
        assert "examining text …" in ran.stderr


def test_without_a_model_this_machine_is_examined(pocket_home: Path) -> None:
    examination = doctor()
    findings = {finding.check: finding for finding in examination.findings}
    assert examination.faults == ()
    assert findings["embark"].message == embark.__version__
    assert findings["store"].message.endswith("GB")
    assert "vectors of 1 models" in findings["store"].message
    assert f"{pocket_home}, " in findings["home"].message
    assert "torch " in findings["torch"].message
    assert findings["torch"].message.startswith("sentence-transformers, ")
    assert examination.sentence() == "This machine: no fault found."
    ran = CliRunner().invoke(app, ["doctor"])
    assert (ran.exit_code, ran.stderr) == (0, "This machine: no fault found.\n")
    assert all(check in ran.stdout for check in ("python", "device", "store", "onnx"))
