"""Encoded bytes → images, waveforms, frames. There is no other decoder, so every model sees the same pixels."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageSequence, UnidentifiedImageError

from embark.types import Audio, Content, EmbarkError, Media, Part, Text

Frames: TypeAlias = Iterator[Callable[[], Image.Image]]  # decoded, each not yet made an image

# Between one and two times its limit Pillow warns and decodes. Where warnings are errors, the picture would be lost.
warnings.simplefilter("ignore", Image.DecompressionBombWarning)


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
    except (EmbarkError, MemoryError):
        raise
    except Exception as error:  # damage makes decoders raise whatever they like
        why = str(error) or type(error).__name__
        if isinstance(error, Image.DecompressionBombError):
            why = f"the picture is too large. {why}"  # Pillow's words tell its size and the limit
        raise UnreadableMedia(f"{part.kind} of {sum(map(len, chunks))} bytes does not decode: {why}") from error


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
    data = chunks[0]
    try:
        told = getattr(Image.open(io.BytesIO(data)), "n_frames", 1)
    except UnidentifiedImageError:
        return _chosen(data, _film, _packets(data), frames)
    return _chosen(data, _animation, told, frames)


def _chosen(data: bytes, play: Callable[[bytes], Frames], told: int, frames: int) -> list[Image.Image]:
    """Evenly spaced frames. All are decoded, so that damage is found anywhere; only these become images."""
    count, wanted, shown = 0, set(evenly(told, frames)), []
    for at, image in enumerate(play(data)):
        count = at + 1
        if at in wanted:
            shown.append(image())
    if not count:
        raise UnreadableMedia(f"video of {len(data)} bytes has no frames")
    # What a file tells of its length is not always so: then once more, with what was counted.
    return shown if count == told else _chosen(data, play, count, frames)


def _animation(data: bytes) -> Frames:
    for frame in ImageSequence.Iterator(Image.open(io.BytesIO(data))):
        frame.load()
        yield partial(frame.convert, "RGB")


def _film(data: bytes) -> Frames:
    with _container(data) as container:
        if container.streams.video:
            yield from (frame.to_image for frame in container.decode(video=0))


def _packets(data: bytes) -> int:
    """How many frames a film should have, without decoding: nearly always one a packet."""
    with _container(data) as container:
        return sum(packet.size > 0 for packet in container.demux(video=0)) if container.streams.video else 0


def _container(data: bytes) -> Any:
    try:
        import av
    except ImportError as error:
        raise EmbarkError("Films need PyAV to decode: pip install 'embark[video]'.") from error
    return av.open(io.BytesIO(data))


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
