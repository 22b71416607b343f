"""How soon the page of MIEB (48 models × 130 tasks) can be used, opened from disk: milliseconds to the first row, and
to an answer to a key in its search box.

    python benchmarks/page.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

from playwright.sync_api import sync_playwright

import embark

BENCHMARK = "MIEB(Multilingual)"
FIRST_ROW = """() => new Promise(resolve => {
  const look = () =>
    document.querySelector('tbody td.score') ? resolve(performance.now()) : requestAnimationFrame(look);
  look();
})"""
SEARCH = """() => new Promise(resolve => {
  const start = performance.now();
  const box = document.querySelector('#search');
  box.value = 'siglip';
  box.dispatchEvent(new Event('input', {bubbles: true}));
  const rows = () => document.querySelectorAll('tbody tr').length;
  const look = () => rows() < 48 ? resolve(performance.now() - start) : requestAnimationFrame(look);
  look();
})"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = embark.site.export(Path(folder) / "page", BENCHMARK)
        print(f"page: {page.bytes / 1e6:.2f} MB")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for columns in ("groups", "all"):
            for _ in range(3):
                tab = browser.new_page()
                tab.goto(f"{page.index.as_uri()}#/board/{BENCHMARK}?cols={columns}", wait_until="commit")
                opened = tab.evaluate(FIRST_ROW)
                print(f"{columns}: {opened:.0f} ms to the first row, {tab.evaluate(SEARCH):.0f} ms to search")
                tab.close()
        browser.close()


if __name__ == "__main__":
    main()
