"""Fault 24: an installed plug-in runs only where the user allows its distribution."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cases import slow

CODE = """
import pathlib
from embark.types import ModelCard
from embark.plugins import Plugin

pathlib.Path("it-ran").touch()
plugin = Plugin(cards=(ModelCard("me/mine", "1", "random", ("text",)),))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """What pip leaves behind for two packages: the first has a plug-in, the second is broken."""
    for name, code in (("my_package", CODE), ("broken", "raise RuntimeError('out of order')")):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[embark]\n{name} = {name}:plugin\n")
        (tmp_path / f"{name}.py").write_text(code)
    return tmp_path


def models(site: Path, *words: str, flags: tuple[str, ...] = (), **variables: str) -> subprocess.CompletedProcess[str]:
    """`embark models`, with these options before it."""
    path = os.pathsep.join((str(site), os.environ.get("PYTHONPATH", "")))
    env = {**os.environ, "PYTHONPATH": path, **variables}
    line = (sys.executable, *flags, "-m", "embark", *words, "models", "--format", "csv")
    return subprocess.run(line, capture_output=True, text=True, check=False, env=env, timeout=60)


def test_a_plug_in_does_not_run_unless_it_is_allowed(site: Path) -> None:
    done = models(site)
    assert done.returncode == 0, done.stderr
    assert "me/mine" not in done.stdout
    assert not Path("it-ran").exists()
    assert done.stderr.count("plug-in 'my_package': it is not run") == 1
    assert "EMBARK_PLUGINS=my_package" in done.stderr


@pytest.mark.parametrize("way", ["option", *slow("environment", "settings file")])
def test_the_user_allows_it_by_name(site: Path, elsewhere: Path, way: str) -> None:
    own = elsewhere / "config" / "embark"
    own.mkdir(parents=True)
    (own / "settings.toml").write_text('plugins = ["my-package"]\n' if way == "settings file" else "")
    words = ("--plugins", "My.Package") if way == "option" else ()
    done = models(site, *words, EMBARK_PLUGINS="other, my_package" if way == "environment" else "")
    assert "me/mine" in done.stdout, done.stderr
    assert "plug-in 'broken': it is not run" in done.stderr


def test_a_folder_does_not_allow_plug_ins(site: Path) -> None:
    Path("embark.toml").write_text('plugins = ["my_package"]\n')
    models(site)
    assert not Path("it-ran").exists()


def test_a_broken_plug_in_breaks_no_command_when_warnings_are_errors(site: Path) -> None:
    done = models(site, flags=("-W", "error"), EMBARK_PLUGINS="broken")
    assert done.returncode == 0, done.stderr
    assert "embark/pocket" in done.stdout
    assert done.stderr.count("plug-in 'broken': it is left out (RuntimeError: out of order)") == 1
    assert done.stderr.count("plug-in 'my_package': it is not run") == 1
