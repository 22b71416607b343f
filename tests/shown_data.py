"""The data that docs/data.md shows: its tables, its rows as a TOML file, and pictures for the files that they name."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from PIL import Image

PAGE = (Path(__file__).parents[1] / "docs" / "data.md").read_text(encoding="utf-8")
TOML = "\n".join(re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S))


def write(place: Path) -> None:
    """Write them to a folder."""
    for path, text in re.findall(r"^`([\w/.-]+)`:\n\n```(?:csv|jsonl)\n(.*?)```", PAGE, flags=re.S | re.M):
        table = place / path
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text(text)
        for name in re.findall(r"[\w/-]+\.png", text):
            picture = table.parent / name
            picture.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 16), "#%06x" % (zlib.crc32(name.encode()) & 0xFFFFFF)).save(picture)
    (place / "tasks.toml").write_text(TOML)
