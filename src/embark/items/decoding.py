"""Decoding: encoded bytes → images, waveforms, frames. The only decoder, so every model sees the same pixels."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageSequence, UnidentifiedImageError

from embark.items import limits
from embark.items.containers import stated_end
from embark.items.jpeg import plain_jpeg
from embark.items.upright import TURNS, UprightMedia
from embark.types import Array, Audio, Bytes, Content, EmbarkError, Media, Modality, Part, Text

Frames: TypeAlias = Iterator[Callable[[], Image.Image]]  # decoded; calling one makes it an image
SLICE_THREADS = 2  # of a film's decoder

# Between one and two times its size limit Pillow warns and decodes; where warnings are errors, the image would be lost.
warnings.simplefilter("ignore", Image.DecompressionBombWarning)


class UnreadableMedia(EmbarkError):
    """Bytes that do not decode; the task's `unreadable` says whether the item is an error or left out."""


def decode(
    parts: Sequence[Part], frames: int, sample_rate: int, encoded: frozenset[Modality] = frozenset()
) -> list[Content]:
    """The parts, decoded: of videos `frames` evenly spaced frames, sounds resampled to `sample_rate`.

    Pictures that are plain JPEGs stay `Encoded` where `encoded` names images.
    """
    return [
        Content("text", part.text)
        if isinstance(part, Text)
        else Content(part.kind, _media(part, frames, sample_rate, part.kind in encoded))
        for part in parts
    ]


def _media(part: Media, frames: int, sample_rate: int, encoded: bool) -> Any:
    in_frames = part.kind == "video" and len(part.chunks) > 1
    if in_frames:  # those that are not wanted are not even read
        part = Media(part.kind, tuple(part.chunks[position] for position in evenly(len(part.chunks), frames)))
    picture = view(part.chunks[0]) if part.kind == "image" else b""
    chunks = () if picture else part.read()
    try:
        if part.kind == "image":
            orientation = part.orientation if isinstance(part, UprightMedia) else 1
            if encoded and (jpeg := plain_jpeg(picture, orientation)):
                return jpeg
            image = open_image(picture)
            turn = TURNS.get(orientation)
            return image if turn is None else image.transpose(turn)
        if part.kind == "audio":
            return open_audio(chunks[0], sample_rate)
        return [open_image(chunk) for chunk in chunks] if in_frames else open_video(chunks, frames)
    except (EmbarkError, MemoryError):
        raise
    except Exception as error:  # damage makes decoders raise whatever they like
        reason = str(error) or type(error).__name__
        if isinstance(error, Image.DecompressionBombError):
            reason = f"the image is too large. {reason}"  # Pillow's message has its size and the limit
        size = len(picture) + sum(map(len, chunks))
        raise UnreadableMedia(f"{part.kind} of {size} bytes does not decode: {reason}") from error


def view(chunk: Bytes) -> bytes | memoryview:
    """The bytes of a chunk, or a view of them in larger memory (as parquet files have), for whoever lets go of it."""
    return chunk if isinstance(chunk, bytes) else getattr(chunk, "view", chunk)()


def open_image(data: bytes | memoryview) -> Image.Image:
    """The image with its pixels loaded, in RGB, or in RGBA where it has transparency.

    | stored as                                  | becomes                                                            |
    |--------------------------------------------|--------------------------------------------------------------------|
    | RGB, RGBA of 8 bits                        | the same pixels                                                    |
    | RGB, RGBA, grey of 16 bits                 | the upper 8 bits                                                   |
    | grey, black and white, palette             | RGB; RGBA where an alpha channel, palette or color is transparent  |
    | CMYK, YCbCr, LAB                           | RGB by Pillow's formulas, without the file's color profile         |
    | animations                                 | their first frame                                                  |
    | with an EXIF orientation                   | turned where the task's row says `upright`                         |
    | grey of 32 bits or of floats               | unreadable: their range is not fixed                               |

    Models that take no transparency see it `on_white`.
    """
    # Without `draft`: a JPEG decoded at a smaller scale is faster, but has other pixels.
    image: Image.Image = Image.open(io.BytesIO(data))
    image.load()
    if image.mode in ("RGB", "RGBA"):
        return image
    if image.mode in ("I", "F"):
        raise UnreadableMedia(f"image of {len(data)} bytes has mode {image.mode}, which has no fixed range")
    if image.mode.startswith("I;16"):  # Pillow would clip everything above 255 to white
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert("RGBA" if "transparency" in image.info or image.mode in ("LA", "PA") else "RGB")


def on_white(image: Image.Image) -> Image.Image:
    """The image in RGB, transparent pixels on a white background."""
    if image.mode != "RGBA":
        return image.convert("RGB")
    background = Image.new("RGBA", image.size, "white")
    background.alpha_composite(image)
    return background.convert("RGB")


def evenly(count: int, wanted: int) -> list[int]:
    """`wanted` evenly spaced positions out of `count`, both ends included; all where `count` is no more than that."""
    if count <= wanted:
        return list(range(count))
    # Truncated and not rounded, as the public code of MMEB does: other frames would be other scores.
    return [int(position) for position in np.linspace(0, count - 1, wanted)]


def open_video(chunks: Sequence[bytes], frames: int) -> list[Image.Image]:
    """Evenly spaced frames of a stored frame sequence, an animated image, or a video file."""
    if len(chunks) > 1:
        return [open_image(chunks[position]) for position in evenly(len(chunks), frames)]
    data = chunks[0]
    try:
        stated_length = getattr(Image.open(io.BytesIO(data)), "n_frames", 1)
    except UnidentifiedImageError:
        return _sample(data, _video_frames, _packet_count(data), frames)
    return _sample(data, _animation_frames, stated_length, frames)


def _sample(data: bytes, decode: Callable[[bytes], Frames], length: int, frames: int) -> list[Image.Image]:
    """Evenly spaced frames. All are decoded, so that damage anywhere is found; only these become images."""
    count = 0
    wanted = set(evenly(length, frames))
    images = []
    for position, image in enumerate(decode(data)):
        count = position + 1
        if position in wanted:
            images.append(image())
    if not count:
        raise UnreadableMedia(f"video of {len(data)} bytes has no frames")
    # The length that a file states may be wrong: then sample again with the length that was counted.
    return images if count == length else _sample(data, decode, count, frames)


def _animation_frames(data: bytes) -> Frames:
    for frame in ImageSequence.Iterator(Image.open(io.BytesIO(data))):
        frame.load()
        yield partial(frame.convert, "RGB")


def _video_frames(data: bytes) -> Frames:
    with _container(data) as container:
        if container.streams.video:
            stream = container.streams.video[0]
            # What is shown of a damaged film depends on how many threads decode it: two on every machine, for slices.
            # Threads for frames would show something else each time, wait for ever where messages of the decoder go to
            # Python, and take more time than they save where workers decode one film each.
            stream.thread_type = "SLICE"
            stream.thread_count = SLICE_THREADS
            for frame in container.decode(stream):
                if frame.width * frame.height > limits.FRAME:
                    raise UnreadableMedia(limits.explain(f"a frame of {frame.width} x {frame.height}", limits.FRAME))
                yield frame.to_image


def _packet_count(data: bytes) -> int:
    """The number of packets, which is nearly always the number of frames, without decoding."""
    with _container(data) as container:
        return sum(packet.size > 0 for packet in container.demux(video=0)) if container.streams.video else 0


def _container(data: bytes) -> Any:
    _check_whole(data)
    return optional_library("av", "Decoding video needs PyAV", "video").open(io.BytesIO(data))


def open_audio(data: bytes, sample_rate: int) -> Audio:
    """The sound as mono float32 at a sample rate."""
    import soundfile  # when it is used: it loads a library of its own

    _check_whole(data)
    with soundfile.SoundFile(io.BytesIO(data)) as sound:
        if sound.frames * sound.channels > limits.SAMPLES:  # some formats state no length: this is then the largest
            raise UnreadableMedia(limits.explain(f"audio of {len(data)} bytes", limits.SAMPLES, "samples"))
        samples = sound.read(dtype="float32", always_2d=True)
        if len(samples) < sound.frames and sound.format == "FLAC":
            raise UnreadableMedia(
                f"audio of {len(data)} bytes is cut off after {len(samples)} of {sound.frames} samples"
            )
        rate = sound.samplerate
    if not np.isfinite(samples).all():
        raise UnreadableMedia(f"audio of {len(data)} bytes has samples that are not finite numbers")
    mono = mix(samples)
    if rate != sample_rate:
        soxr = optional_library("soxr", f"Resampling audio from {rate} to {sample_rate} Hz needs soxr", "audio")
        mono = soxr.resample(mono, rate, sample_rate)
    if not len(mono):
        raise UnreadableMedia(f"audio of {len(data)} bytes has no samples")
    return Audio(mono, sample_rate)


def mix(samples: Array) -> Array:
    """The mean of a sound's channels, (samples, channels)."""
    channels = samples.shape[1]
    if channels >= 8:  # numpy adds so many numbers in another order
        return np.asarray(samples.mean(axis=1))
    # Whole channels at a time: to the last bit as `mean` (from zero on, so that no zero is negative), but much faster.
    total = reduce(np.add, samples.T, np.float32(0))
    return np.asarray(total / channels if channels > 1 else total)


def _check_whole(data: bytes) -> None:
    """An error for a sound or film that is cut off."""
    end = stated_end(data)
    if end > len(data):
        raise UnreadableMedia(f"{len(data)} bytes of sound or film are cut off: {end - len(data)} are missing")


def optional_library(name: str, need: str, extra: str) -> Any:
    """The module of a library that an extra of the package installs; where it is missing, the error states the need."""
    try:
        return import_module(name)
    except ImportError as error:
        raise EmbarkError(f"{need}: pip install 'embark-bench[{extra}]'.") from error
