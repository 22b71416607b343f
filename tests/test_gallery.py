"""The gallery: every figure that its script draws is shown on the page, and the files are small."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from cases import slow
from embark.cli import app

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
    for command, _ in figures.values():
        assert f"`embark {command}`" in PAGE


def test_every_command_that_draws_is_shown(gallery: ModuleType, tmp_path: Path) -> None:
    commands = [command.split() for command, _ in gallery.figures(tmp_path).values()]
    shown = {tuple(words[: 2 if words[0] in ("analyze", "diagnose") else 1]) for words in commands}
    assert shown == {words for words, command in leaves(get_command(app)) if drawing_options(command)}


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from leaves(inner, (*words, name))
    if not hasattr(command, "commands"):
        yield words, command


def drawing_options(command: Any) -> bool:
    return bool({"--plot", "--figures"} & {option for parameter in command.params for option in parameter.opts})


def test_files_are_small_and_hold_text(gallery: ModuleType) -> None:
    files = list((DOCS / "gallery").iterdir())
    assert max(path.stat().st_size for path in files) < 310_000
    assert sum(path.stat().st_size for path in files) < 3_500_000
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "<text" in text
        width = re.search(r'<svg[^>]*? width="([\d.]+)pt"', text)
        assert width, path.name
        assert float(width[1]) <= 7 * 72, path.name  # a page


def test_numbers_in_texts_keep_their_digits(gallery: ModuleType) -> None:
    drawn = '<path d="M 1.23456 2"/><text x="7.891">\u22120.416</text>'
    assert gallery.shortened(drawn) == '<path d="M 1.23 2"/><text x="7.89">\u22120.416</text>'


@pytest.mark.parametrize("name", ["medians", *slow("gains", "extremes", "scaling-held")])
def test_the_made_up_field_is_drawn_as_shown(gallery: ModuleType, name: str, tmp_path: Path) -> None:
    study = gallery.figures(tmp_path)[name][1]()
    assert study.caption in PAGE
