"""Screenshots of every view of the page, for docs/page.md:

    python tools/screenshots.py PAGE [FOLDER]

PAGE is the folder of a page (embark site) with the pocket run and MIEB; needs playwright and chromium.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

VIEWS = {
    "board": "#/board/MIEB(Multilingual)",
    "plots": "#/plots/MIEB(Multilingual)?plot=parameters",
    "compare": "#/compare/Pocket?task=PocketSpokenNameToImage",
    "task": "#/task/PocketNameToVideo",
    "model": "#/model/google%2Fsiglip-so400m-patch14-384",
    "run": "#/run?task=PocketFlagCapital",
    "dark": "#/board/Pocket",
    "phone": "#/board/Pocket",
}
WHOLE = ("compare",)  # not only what fits on a screen


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
            picture = Image.open(io.BytesIO(tab.screenshot(full_page=name in WHOLE)))
            picture.convert("RGB").save(folder / f"{name}.webp", quality=80)
            context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "docs/screenshots"))
