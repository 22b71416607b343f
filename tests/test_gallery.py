"""The gallery: every figure that its script draws is shown on the page, and the files are small."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from embark.cli.analyze import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "examples" / "gallery.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_what_the_script_draws(gallery: ModuleType, tmp_path: Path) -> None:
    figures = gallery.figures(tmp_path)
    assert re.findall(r"\(gallery/([\w-]+)\.svg\)", PAGE) == list(figures)
    assert {path.stem for path in (DOCS / "gallery").iterdir()} == set(figures)
    for name, (command, _) in figures.items():
        assert f"`embark analyze {command} --plot {name}.svg`" in PAGE
        assert command.split()[0] in COMMANDS


def test_files_are_small_and_hold_text(gallery: ModuleType) -> None:
    files = list((DOCS / "gallery").iterdir())
    assert sum(path.stat().st_size for path in files) < 2_000_000
    for path in files:
        assert "<text" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["medians", "gains", "extremes", "scaling-held"])
def test_the_made_up_field_is_drawn_as_shown(gallery: ModuleType, name: str, tmp_path: Path) -> None:
    study = gallery.figures(tmp_path)[name][1]()
    assert study.caption in PAGE
