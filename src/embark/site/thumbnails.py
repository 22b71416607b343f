"""Media as small files that a browser shows, named after the hash of their content; made only where that is allowed."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from embark import readers
from embark.hub import Hub
from embark.hub.listing import is_local
from embark.hub.terms import are_free
from embark.items.decoding import decode, on_white
from embark.items.limits import open_picture
from embark.outgoing import write_bytes
from embark.redaction import Content
from embark.run.fetching import from_hub
from embark.types import Array, ClaimedTask, EmbarkError, Media, Part, Task, Text

SIDE = 160  # pixels of the longer side of a picture
FRAME = 96  # … and of a film's frame
FRAMES = 6  # of a film, side by side in one picture
SMALL_BYTES = 16_000  # bytes of a picture that is taken as it is
PNG, WEBP = b"\x89PNG\r\n\x1a\n", b"WEBP"
DRAWN = {  # chunks of which a picture is drawn; all others may tell more than pixels do
    PNG: {b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"bKGD", b"pHYs", b"IDAT", b"IEND"},
    WEBP: {b"VP8 ", b"VP8L", b"VP8X", b"ALPH"},
}
SOUND_SECONDS = 8  # of a sound
RATE = 16_000
WORDS = 600  # characters of a text
TOTAL = 40_000_000  # bytes of all thumbnails; what comes after is left out
UNSTATED = ("", "not specified")  # licenses of rows


def may_show(task: Task, hub: Hub) -> bool:
    """Whether items of a task may be shown to others, as far as this machine knows.

    One's own may be: folders and tables that this home has run, or that the command names. Data of the hub may be
    where every data set that is read is open to all, and its card, as it was recorded, and the row state nothing but
    free licenses. What only a results folder names may not.
    """
    if isinstance(task, ClaimedTask):
        return False
    if not from_hub(task):
        return is_local(task.source.id) or are_free([task.source.license])
    if task.source.license not in UNSTATED and not are_free([task.source.license]):
        return False
    try:
        read = {source.id: source.revision for source, _ in readers.needed_files(task, hub)}
    except EmbarkError:  # nor can it be read
        return False
    terms = [hub.terms(id, revision) for id, revision in read.items()]
    return {*readers.sources(task)} <= {*read} and all(of_one is not None and of_one.free for of_one in terms)


class Thumbnails:
    """The folder of thumbnails; each content is written once, until there are as many bytes as a page may have."""

    def __init__(self, folder: Path, most: int = TOTAL) -> None:
        self.folder = folder
        self.most = most
        self.bytes = 0
        self._parts: dict[bytes, dict[str, Any]] = {}

    def part(self, part: Part) -> dict[str, Any]:
        """A part of an item as the page shows it: words, or the address of its thumbnail. Both have a hash."""
        if isinstance(part, Text):
            more = "…" if len(part.text) > WORDS else ""
            return {"kind": "text", "text": Content(part.text[:WORDS] + more)}
        if part.digest not in self._parts:
            self._parts[part.digest] = {"kind": part.kind, "hash": part.digest.hex()[:32], **self._written(part)}
        return self._parts[part.digest]

    def _written(self, media: Media) -> dict[str, Any]:
        """The address of a thumbnail; nothing where the media do not decode, or where there are too many."""
        if self.bytes >= self.most:
            return {}
        try:
            data, ending, more = _thumbnail(media)
        except (EmbarkError, OSError, ValueError, MemoryError):
            return {}
        name = f"{media.digest.hex()[:32]}.{ending}"
        write_bytes(self.folder / name, data)
        self.bytes += len(data)
        return {"src": f"media/{name}", **more}


def _thumbnail(media: Media) -> tuple[bytes, str, dict[str, Any]]:
    """The bytes of a thumbnail, the ending of its file, and what else the page must know."""
    if media.kind == "image" and (small := _small(media)):
        return *small, {}
    [content] = decode([media], FRAMES, RATE)
    if media.kind == "audio":
        return _sound(content.value.samples, content.value.rate), "wav", {}
    if media.kind == "image":
        return _webp(_fitted(content.value, SIDE)), "webp", {}
    frames = [_fitted(frame, FRAME) for frame in content.value]
    width, height = frames[0].size
    strip = Image.new("RGB", (width * len(frames), height), "white")
    for number, frame in enumerate(frames):
        strip.paste(frame.resize((width, height)), (number * width, 0))
    return _webp(strip), "webp", {"frames": len(frames)}


def _small(media: Media) -> tuple[bytes, str] | None:
    """The bytes of a picture that is small enough as it is, and has nothing but pixels in it; and its ending."""
    [data] = media.read()
    kind = PNG if data.startswith(PNG) else WEBP if data[:4] == b"RIFF" and data[8:12] == WEBP else None
    if kind is None or len(data) > SMALL_BYTES or not DRAWN[kind].issuperset(_chunks(data, kind)):
        return None
    ending = "png" if kind == PNG else "webp"
    with open_picture(data) as image:
        return (data, ending) if max(image.size) <= SIDE and getattr(image, "n_frames", 1) == 1 else None


def _chunks(data: bytes, kind: bytes) -> Iterator[bytes]:
    """The names of the chunks of a PNG or a WebP, also of whatever stands behind its end."""
    start = len(PNG) if kind == PNG else 12
    while start < len(data):
        head = data[start : start + 8]
        yield head[4:] if kind == PNG else head[:4]
        size = int.from_bytes(head[:4], "big") if kind == PNG else int.from_bytes(head[4:], "little")
        start += 12 + size if kind == PNG else 8 + size + size % 2  # PNG has a checksum, WebP even places


def _fitted(image: Image.Image, side: int) -> Image.Image:
    image = on_white(image)
    image.thumbnail((side, side))
    return image


def _webp(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "WEBP", quality=75, method=2)
    return out.getvalue()


def _sound(samples: Array, rate: int) -> bytes:
    """The beginning of a sound as a WAV file."""
    mono = samples if samples.ndim == 1 else samples.mean(axis=int(np.argmin(samples.shape)))
    clipped = np.clip(mono[: SOUND_SECONDS * rate], -1, 1)
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((32_767 * clipped).astype("<i2").tobytes())
    return out.getvalue()
