"""A page of two models with pictures, sounds and films, made once for all processes; and a real browser."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import embark
from embark.settings import load_settings

TASKS = ["PocketFlagCapital", "PocketMomentRetrieval", "PocketSpokenGroupZeroShot"]
MODELS = ["embark/pocket", "embark/handmade"]
BOARDS = ["Pocket", "MIEB(Multilingual)", "ARK"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


HOSTILE_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90" onload="alert(1)"><script>alert(2)</script>'
    '<image href="http://127.0.0.1:9/x.png"/><foreignObject><body onload="alert(3)"/></foreignObject>'
    '<rect width="90" height="90" fill="red"/></svg>'
)


def keep_reports(settings: embark.Settings) -> None:
    """Keep an examination, a verification, a sweep, and a report of somebody who means harm."""
    embark.site.save_report(embark.doctor(MODELS[0], settings=settings), settings=settings)
    verification = embark.verify(MODELS[0], tasks=TASKS, against=settings.results, run=False, settings=settings)
    embark.site.save_report(verification, settings=settings)
    sweep = embark.analyze.truncate(MODELS[0], TASKS[0], settings=settings)
    path = embark.site.save_report(sweep, settings=settings)
    report = json.loads(path.read_text())
    report["title"] = "</script><script>alert(4)</script>"
    report["sections"][0] |= {"figure": HOSTILE_SVG, "title": "<img src=x onerror=alert(5)>"}
    path.with_name("hostile.json").write_text(json.dumps(report))
    path.with_name("deep.json").write_text("[" * 100_000)


@pytest.fixture(scope="session")
def pocket_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `home`, `results`, and the `page` of them."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "pocket-page"
    with (base / "pocket-page.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            settings = load_settings(folder / "home", folder / "results")
            embark.evaluate(MODELS, TASKS, settings=settings, show_progress=False)
            keep_reports(settings)
            embark.site.export(folder / "page", BOARDS, settings=settings)
            (folder / "complete").touch()
    return folder


@pytest.fixture
def scored(tiny: embark.Encoder, pictures: Callable[..., Path], tmp_path: Path) -> embark.Settings:
    """Results of two models on an own folder."""
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    tasks = embark.folder_task(pictures(), kinds=["retrieval", "zeroshot"])
    embark.evaluate(tiny, tasks, settings=settings, show_progress=False)
    blind = embark.encoder(
        text=lambda texts: [[1.0, 2.0]] * len(texts), image=lambda images: [[1.0, 2.0]] * len(images), name="test/blind"
    )
    embark.evaluate(blind, tasks, settings=settings, show_progress=False)
    return settings


@pytest.fixture(scope="module")  # Playwright runs a loop of asyncio, which other modules start for themselves
def chromium() -> Iterator[Any]:
    """A real browser, without a sandbox, as tests run as root in containers."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address without a network; a message on the console, or an error of the page, fails the test."""
    contexts = []
    problems: list[str] = []

    def opened(address: Path | str, place: str = "", **options: Any) -> Any:
        offline = isinstance(address, Path)
        context = chromium.new_context(offline=offline, **{"viewport": {"width": 1300, "height": 800}, **options})
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if message.type != "info" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog {dialog.message}"))
        page.goto(f"{address.as_uri()}/index.html{place}" if isinstance(address, Path) else f"{address}{place}")
        page.wait_for_selector("main h1")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems
