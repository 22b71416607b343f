"""Films of a still picture: a camera pans over it or zooms. The same picture and motion give the same bytes."""

from __future__ import annotations

import io
import zlib
from typing import Any

from PIL import Image, ImageOps

from embark.items.decoding import on_white, open_image, optional_library
from embark.types import EmbarkError

# Motion → the middle of the camera's window at both ends, as shares of the room that it has, and the window's sides.
MOTIONS: dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "left": ((1.0, 0.5, 0.75), (0.0, 0.5, 0.75)),
    "right": ((0.0, 0.5, 0.75), (1.0, 0.5, 0.75)),
    "up": ((0.5, 1.0, 0.75), (0.5, 0.0, 0.75)),
    "down": ((0.5, 0.0, 0.75), (0.5, 1.0, 0.75)),
    "in": ((0.5, 0.5, 1.0), (0.5, 0.5, 0.7)),
    "out": ((0.5, 0.5, 0.7), (0.5, 0.5, 1.0)),
}
FRAMES, RATE = 16, 8  # of a film; frames a second
SIDE = 256  # the longer side of a frame, in pixels
CODECS = ("libx264", "mpeg4")  # the first that is there


def motion_of(id: str) -> str:
    """The motion of a picture's film, which its id decides."""
    return list(MOTIONS)[zlib.crc32(id.encode("utf-8", "surrogatepass")) % len(MOTIONS)]


def camera_frames(picture: bytes, motion: str, frames: int = FRAMES, side: int = SIDE) -> list[Image.Image]:
    """What a camera sees that moves over a picture at constant speed, transparent parts on white."""
    image = on_white(ImageOps.exif_transpose(open_image(picture)))
    scale = side / max(image.size)
    size = tuple(max(2, round(length * scale / 2) * 2) for length in image.size)  # codecs want even sides
    start, end = MOTIONS[motion]
    out = []
    for step in range(frames):
        share = step / max(1, frames - 1)
        across, down, window = (a + (b - a) * share for a, b in zip(start, end, strict=True))
        width, height = (length * window for length in image.size)
        left = across * (image.width - width)
        top = down * (image.height - height)
        box = (left, top, left + width, top + height)
        out.append(image.resize((size[0], size[1]), Image.Resampling.BICUBIC, box))
    return out


def camera_film(picture: bytes, motion: str) -> bytes:
    """The frames of a moving camera as an MP4 file."""
    av = optional_library("av", "Making films needs PyAV", "video")
    frames = camera_frames(picture, motion)
    out = io.BytesIO()
    with av.open(out, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        stream = _stream(av, container, frames[0].size)
        for image in frames:
            for packet in stream.encode(av.VideoFrame.from_image(image)):
                container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)
    return out.getvalue()


def _stream(av: Any, container: Any, size: tuple[int, int]) -> Any:
    """A stream of video whose bytes depend on its frames alone: one thread, no clock."""
    codec = next((name for name in CODECS if name in av.codec.codecs_available), None)
    if codec is None:
        raise EmbarkError(f"This build of PyAV cannot write films: it has none of {', '.join(CODECS)}.")
    stream = container.add_stream(codec, rate=RATE)
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    stream.thread_count = 1
    stream.codec_context.flags |= av.codec.context.Flags.bitexact
    if codec == "libx264":
        stream.options = {"crf": "20", "preset": "medium"}
    return stream
