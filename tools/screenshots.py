"""Screenshots of every view of the page, for docs/page.md:

    python tools/screenshots.py PAGE [FOLDER]

PAGE is the folder of a page (embark site) with the pocket run, MIEB, and kept reports (--save) of embark/pocket:
doctor, verify, analyze truncate and diagnose omni. Needs playwright and chromium.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

VIEWS = {
    "board": "#/board/MIEB(Multilingual)",
    "plots": "#/plots/MIEB(Multilingual)?plot=parameters",
    "compare": "#/compare/Pocket?task=PocketSpokenNameToImage",
    "task": "#/task/PocketNameToVideo",
    "model": "#/model/google%2Fsiglip-so400m-patch14-384",
    "radar": "#/plots/MIEB(Multilingual)?plot=profile&shape=radar",
    "examined": "#/model/embark%2Fpocket",
    "run": "#/run?task=PocketFlagCapital",
    "sweep": "#/run",
    "diagnosis": "#/run",
    "dark": "#/board/Pocket",
    "phone": "#/board/Pocket",
}
WHOLE = ("compare",)  # not only what fits on a screen
PARTS = {  # what is opened and shown instead of the top of the page
    "examined": "section:has(> h2:text('Examined'))",
    "sweep": "details.report:has(.tag:text('sweep'))",
    "diagnosis": "details.report:has(.tag:text('OmniSET'))",
}
HEIGHT = 1700  # pixels of a part that are shown


def main(page: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, place in VIEWS.items():
            size = {"width": 375, "height": 720} if name == "phone" else {"width": 1300, "height": 850}
            context = browser.new_context(
                viewport=size, offline=True, color_scheme="dark" if name == "dark" else "light", device_scale_factor=1
            )
            tab = context.new_page()
            tab.goto(f"{page.resolve().as_uri()}/index.html{place}")
            tab.wait_for_selector("main h1")
            tab.wait_for_timeout(1500)
            picture = Image.open(
                io.BytesIO(_part(tab, PARTS[name]) if name in PARTS else tab.screenshot(full_page=name in WHOLE))
            )
            picture.convert("RGB").save(folder / f"{name}.webp", quality=80)
            context.close()
        browser.close()


def _part(tab: Page, selector: str) -> bytes:
    """A picture of a part of the page, opened if it is closed, with all figures in it."""
    part = tab.locator(selector).first
    if part.evaluate("element => element.matches('details:not([open])')"):
        part.locator("summary").first.click()
        part.locator("table").first.wait_for()
    for figure in part.locator("img").all():
        figure.scroll_into_view_if_needed()
    tab.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(part.screenshot()))
    out = io.BytesIO()
    picture.crop((0, 0, picture.width, min(picture.height, HEIGHT))).save(out, "PNG")
    return out.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "docs/screenshots"))
