"""Encoded bytes → images, waveforms, frames. There is no other decoder, so every model sees the same pixels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageSequence, UnidentifiedImageError

from embark.types import Audio, Content, EmbarkError, Media, Part, Text


class UnreadableMedia(EmbarkError):
    """Bytes that do not decode; what happens then is the task's policy."""


def decode(parts: Sequence[Part], frames: int, sample_rate: int) -> list[Content]:
    """Each part as content. Videos keep `frames` evenly spaced frames, sounds are brought to `sample_rate`."""
    return [
        Content("text", part.text) if isinstance(part, Text) else Content(part.kind, _media(part, frames, sample_rate))
        for part in parts
    ]


def _media(part: Media, frames: int, sample_rate: int) -> Any:
    chunks = part.read()
    try:
        if part.kind == "image":
            return open_image(chunks[0])
        if part.kind == "audio":
            return open_audio(chunks[0], sample_rate)
        return open_video(chunks, frames)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, RuntimeError, EOFError) as error:
        raise UnreadableMedia(f"{part.kind} of {sum(map(len, chunks))} bytes does not decode: {error}") from error


def open_image(data: bytes) -> Image.Image:
    """RGB or RGBA as stored, pixels loaded; other modes become RGB."""
    image: Image.Image = Image.open(io.BytesIO(data))
    image.load()
    if image.mode in ("RGB", "RGBA"):
        return image
    if image.mode in ("I", "F"):
        raise UnreadableMedia(f"image of {len(data)} bytes has pixels of mode {image.mode}, whose white nobody knows")
    if image.mode.startswith("I;16"):  # Pillow would cut everything above 255 off, and leave a white page
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert("RGBA" if "transparency" in image.info or image.mode in ("LA", "PA") else "RGB")


def on_white(image: Image.Image) -> Image.Image:
    """Transparent pixels laid on white; what drawings on a page look like."""
    if image.mode != "RGBA":
        return image.convert("RGB")
    page = Image.new("RGBA", image.size, "white")
    page.alpha_composite(image)
    return page.convert("RGB")


def evenly(count: int, wanted: int) -> list[int]:
    """`wanted` evenly spaced positions out of `count`, both ends included; all of them when there are no more."""
    if count <= wanted:
        return list(range(count))
    # Cut off and not rounded, as the public code of MMEB does: other frames would be other scores.
    return [int(at) for at in np.linspace(0, count - 1, wanted)]


def open_video(chunks: Sequence[bytes], frames: int) -> list[Image.Image]:
    """Evenly spaced frames of a stored frame sequence, an animated image, or a film."""
    if len(chunks) > 1:
        return [open_image(chunks[at]) for at in evenly(len(chunks), frames)]
    try:
        animated = Image.open(io.BytesIO(chunks[0]))
    except UnidentifiedImageError:
        return _film(chunks[0], frames)
    shown = [frame.convert("RGB") for frame in ImageSequence.Iterator(animated)]
    return [shown[at] for at in evenly(len(shown), frames)]


def _film(data: bytes, frames: int) -> list[Image.Image]:
    try:
        import av
    except ImportError as error:
        raise EmbarkError("Films need PyAV to decode: pip install 'embark[video]'.") from error
    with av.open(io.BytesIO(data)) as container:
        shown = [frame.to_image() for frame in container.decode(video=0)]
    if not shown:
        raise UnreadableMedia(f"video of {len(data)} bytes has no frames")
    return [shown[at] for at in evenly(len(shown), frames)]


def open_audio(data: bytes, sample_rate: int) -> Audio:
    """Mono float32 at the wanted rate."""
    try:
        import soundfile
    except ImportError as error:
        raise EmbarkError("Sounds need soundfile to decode: pip install 'embark[audio]'.") from error
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    mono = samples.mean(axis=1)
    wave = mono if rate == sample_rate else _resample(mono, rate, sample_rate)
    if not len(wave):
        raise UnreadableMedia(f"audio of {len(data)} bytes has no samples")
    return Audio(wave, sample_rate)


def _resample(samples: Any, rate: int, wanted: int) -> Any:
    try:
        import soxr
    except ImportError as error:
        raise EmbarkError(
            f"Sound at {rate} Hz must be resampled to {wanted} Hz: pip install 'embark[audio]'."
        ) from error
    return soxr.resample(samples, rate, wanted)
