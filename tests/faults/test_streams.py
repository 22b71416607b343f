"""Standard streams that are not as expected: an output that cannot take UTF-8, a closed error stream."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from embark.cli import app


def embark(words: str, redirect: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} -m embark {words} {redirect}"
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def test_an_output_that_cannot_take_utf8_gets_replacements() -> None:
    ran = embark("doctor embark/random", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout.splitlines()[1].startswith("+  text: shape")
    words = "show PocketFlagZeroShot --format json"
    ran = embark(words, PYTHONIOENCODING="ascii")
    assert json.loads(ran.stdout) == json.loads(CliRunner().invoke(app, shlex.split(words)).stdout)


@pytest.mark.slow
def test_a_closed_error_stream_changes_nothing() -> None:
    words = "run -m embark/random -t PocketFlagZeroShot --format json"
    ran = embark(words, "2>&-")
    assert ran.returncode == 0
    assert len(json.loads(ran.stdout)["results"]) == 1  # and nothing else was printed there
    again = CliRunner().invoke(app, shlex.split(words))
    assert json.loads(again.stdout) == json.loads(ran.stdout)
    failed = embark("run -m embark/no-such-model", "2>&-")
    assert (failed.returncode, failed.stdout) == (2, "")
