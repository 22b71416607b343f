"""The documentation as a whole: links, commands and numbers of its pages, and the site that is made of them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.tasks import BENCHMARKS, TASKS
from local_server import LocalServer, QuietHandler

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "AGENTS", "CONTRIBUTING", "SECURITY")),
    *sorted(DOCS.glob("*.md")),
]
CODE = re.compile(r"^ *```(\w*)\n(.*?)^ *```[ ]*$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]+`", "", CODE.sub("", text(page)))


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as mkdocs and code hosts make them."""
    titles = re.findall(r"^#+ +(.+)$", CODE.sub("", text(page)), flags=re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for path, anchor in LINK.findall(prose(page)):
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
        assert target.is_relative_to(ROOT), path
    assert broken == []


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.M)
    assert sorted(listed) == sorted(page.name for page in DOCS.glob("*.md"))


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def blocks(page: Path, *languages: str) -> Iterator[str]:
    return (code for language, code in CODE.findall(text(page)) if language in languages)


def shown(page: Path) -> Iterator[list[str]]:
    """The commands of embark that a page shows, as words; placeholders such as MODEL stay."""
    for code in blocks(page, "sh", "console"):
        for line in re.sub(r"\\\n *", "", code).splitlines():
            command = re.match(r"(?:\$ )?(?:\.venv/bin/)?embark (?!\w+ \|)(.+)", line.strip())
            if command:
                words = shlex.split(command[1], comments=True)
                yield words[: next((i for i, word in enumerate(words) if word[0] in "|>"), len(words))]


@cache
def all_commands() -> Any:
    """The command line, made once: it takes as long as a hundred commands."""
    return get_command(app)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_accepted(page: Path) -> None:
    """Every command and option exists; values are not tried."""
    for words in shown(page):
        command = all_commands()
        rest = [word for word in words if "…" not in word]
        if rest and rest[0] == "--plugins":
            rest = rest[2:]
        while isinstance(command, TyperGroup):
            command = command.commands[rest.pop(0)]
        try:
            command.make_context("embark", rest).close()
        except typer.BadParameter:  # a file that is not here
            continue


PRINTED = [
    "embark leaderboard -b 'MIEB(Multilingual)' --top 4",
    "embark plan -b",
    pytest.param("embark published check", marks=pytest.mark.slow),
    "embark recommend",
    "embark run -m embark/pocket -t PocketFlagZeroShot",
]


@pytest.mark.parametrize("start", PRINTED)
def test_what_commands_print_is_as_shown(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    compared = 0
    for page in (DOCS / f"{name}.md" for name in ("index", "quickstart", "catalogue", "choosing")):
        for session in "\n".join(blocks(page, "console")).split("$ "):
            command, _, printed = session.partition("\n")
            if command.startswith(start) and printed.strip():
                words = shlex.split(command.partition(" | ")[0])[1:]
                output = CliRunner().invoke(app, words, catch_exceptions=False).stdout.splitlines()
                lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
                assert [line for line in lines if line not in {out.rstrip() for out in output}] == []
                compared += 1
    assert compared


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("page", "benchmark"), [("mieb", "MIEB(Multilingual)"), ("unibench", "UniBench"), ("ark", "ARK")]
)
def test_tables_of_categories_are_the_rows(page: str, benchmark: str) -> None:
    rows = re.findall(r"^\| ([A-Z][\w &-]+) \| (\d+) \|", text(DOCS / f"{page}.md"), flags=re.M)
    counts = Counter(TASKS[name].category for name in BENCHMARKS[benchmark].tasks)
    assert {category: int(tasks) for category, tasks in rows} == counts


@pytest.mark.parametrize("page", ["mieb", "unibench", "mmeb"])
def test_tables_of_benchmarks_are_the_rows(page: str) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (\d+) \|", text(DOCS / f"{page}.md"), flags=re.M)
    assert rows
    assert {name: int(tasks) for name, tasks in rows} == {name: len(BENCHMARKS[name].tasks) for name, _ in rows}


def test_all_pains_of_users_are_answered() -> None:
    """Those of public issue threads, by how loud they are: each has a mark in the page."""
    numbers = [int(number) for number in re.findall(r"^<!-- pain (\d+) -->$", text(DOCS / "faq.md"), flags=re.M)]
    assert sorted(numbers) == list(range(1, 21))


def test_the_extras_are_as_stated() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = text(DOCS / "quickstart.md").partition("| extra | for |")[2].partition("\n\n")[0]
    rows = " ".join(re.findall(r"^\| (`.+?`) \|", table, flags=re.M))
    named = {*re.findall(r"`([\w-]+)`", rows), "open_clip", "timm"}
    assert named == set(project["optional-dependencies"]) - {"docs", "test", "test-all"}


class Files(QuietHandler, SimpleHTTPRequestHandler):
    """The files of a folder; `directory` is set by whoever serves it."""

    directory: str

    def __init__(self, *request: Any) -> None:
        super().__init__(*request, directory=self.directory)


# ── the site ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built as `make docs` builds it; a warning is an error, and so is a line of output."""
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "true"},
        timeout=300,
        check=False,
    )
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return folder


@pytest.mark.slow
def test_the_reference_has_every_public_name(site: Path) -> None:
    ids = set(re.findall(r'id="([\w.]+)"', (site / "reference.html").read_text(encoding="utf-8")))
    assert [name for name in embark.__all__ if f"embark.{name}" not in ids] == []


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//""")
    linked = re.compile(r"""<link\b[^>]*\bhref=["']?(?:https?:)?//""")
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        assert not loaded.search(html), page.name
        assert not linked.search(html), page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


@pytest.mark.slow
def test_a_browser_asks_nobody_else_and_finds_things(site: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    server = LocalServer(Files, directory=str(site))
    address = server.endpoint
    with closing(server), playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        asked: list[str] = []
        faults: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error: faults.append(str(error)))
        for name in ("index", "mieb", "reference", "faq", "concepts"):
            tab.goto(f"{address}/{name}.html")
        tab.fill(".md-search__input", "Winoground")
        tab.wait_for_selector(".md-search-result__item a[href*='unibench']", timeout=30_000)
        browser.close()
    assert [url for url in asked if not url.startswith(address)] == []
    assert faults == []
