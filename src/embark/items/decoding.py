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

Size: TypeAlias = tuple[int, int]  # width, height
Frames: TypeAlias = Iterator[tuple[Size, Callable[[], Image.Image]]]  # decoded; calling one makes it an image
SLICE_THREADS = 2  # of a film's decoder
PIXEL = 4  # bytes of an image's pixel in memory
COPIES = {"JPEG2000": 16, "WEBP": 12, "AVIF": 8}  # bytes of a pixel beside these, in the decoders that take many
DECODER = 12  # bytes of a film's pixel for its decoder: frames that others refer to, and one on its way to an image
SAMPLE = 4  # bytes of a sound's sample
SOUND_BLOCK = 1 << 22  # samples of a sound that are read at a time, over all channels
CHARACTER = 128  # bytes that a character of a text takes until it is tokens, of the slowest tokenizers

# Between one and two times its size limit Pillow warns and decodes; where warnings are errors, the image would be lost.
warnings.simplefilter("ignore", Image.DecompressionBombWarning)


class UnreadableMedia(EmbarkError):
    """Bytes that do not decode; the task's `unreadable` says whether the item is an error or left out."""


class Budget:
    """The bytes that one item takes when it is decoded, all its parts together: counted before they are taken."""

    def __init__(self, encoded: int = 0) -> None:
        self.encoded = encoded
        self.taken = 0

    def check(self, size: int, what: str) -> None:
        """An error if so many bytes more are too many; `what` takes them."""
        if self.taken + size <= limits.ALWAYS:
            return
        limit = limits.item_bytes(self.encoded)
        if self.taken + size > limit:
            raise UnreadableMedia(limits.explain_item(what, self.taken + size, limit))

    def take(self, size: int, what: str) -> None:
        """Count so many bytes more; an error if they are too many."""
        self.check(size, what)
        self.taken += size

    def take_text(self, length: int) -> None:
        """Count a text of so many characters."""
        self.encoded += length
        size = CHARACTER * length
        if self.taken + size <= limits.ALWAYS:
            self.taken += size
        else:
            self.take(size, f"a text of {length:,} characters")


def decode(
    parts: Sequence[Part], frames: int, sample_rate: int, encoded: frozenset[Modality] = frozenset()
) -> list[Content]:
    """The parts, decoded: of videos `frames` evenly spaced frames, sounds resampled to `sample_rate`.

    Pictures that are plain JPEGs stay `Encoded` where `encoded` names images. What takes more memory than an item may
    (`limits.item_bytes`) is unreadable.
    """
    budget = Budget()
    return [
        Content(
            part.kind,
            _text(part, budget)
            if isinstance(part, Text)
            else _media(part, frames, sample_rate, part.kind in encoded, budget),
        )
        for part in parts
    ]


def _text(part: Text, budget: Budget) -> str:
    budget.take_text(len(part.text))
    return part.text


def _media(part: Media, frames: int, sample_rate: int, encoded: bool, budget: Budget) -> Any:
    in_frames = part.kind == "video" and len(part.chunks) > 1
    if in_frames:  # those that are not wanted are not even read
        part = Media(part.kind, tuple(part.chunks[position] for position in evenly(len(part.chunks), frames)))
    picture = view(part.chunks[0]) if part.kind == "image" else b""
    chunks = () if picture else part.read()
    size = len(picture) + sum(map(len, chunks))
    budget.encoded += size
    try:
        if part.kind == "image":
            orientation = part.orientation if isinstance(part, UprightMedia) else 1
            if encoded and (jpeg := plain_jpeg(picture, orientation)):
                return jpeg
            image = open_image(picture, budget)
            turn = TURNS.get(orientation)
            return image if turn is None else image.transpose(turn)
        if part.kind == "audio":
            return open_audio(chunks[0], sample_rate, budget)
        return [open_image(chunk, budget) for chunk in chunks] if in_frames else open_video(chunks, frames, budget)
    except (EmbarkError, MemoryError):
        raise
    except Exception as error:  # damage makes decoders raise whatever they like
        reason = str(error) or type(error).__name__
        if isinstance(error, Image.DecompressionBombError):
            reason = f"the image is too large. {reason}"  # Pillow's message has its size and the limit
        raise UnreadableMedia(f"{part.kind} of {size} bytes does not decode: {reason}") from error


def view(chunk: Bytes) -> bytes | memoryview:
    """The bytes of a chunk, or a view of them in larger memory (as parquet files have), for whoever lets go of it."""
    return chunk if isinstance(chunk, bytes) else getattr(chunk, "view", chunk)()


def open_image(data: bytes | memoryview, budget: Budget | None = None) -> Image.Image:
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
    image: Image.Image = limits.open_picture(data)
    if budget:
        pixels = image.width * image.height
        what = f"an image of {image.width} x {image.height} pixels"
        budget.check((PIXEL + COPIES.get(image.format or "", 0)) * pixels, what)
        budget.take(PIXEL * pixels, what)
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


def open_video(chunks: Sequence[bytes], frames: int, budget: Budget | None = None) -> list[Image.Image]:
    """Evenly spaced frames of a stored frame sequence, an animated image, or a video file."""
    budget = budget or Budget(sum(map(len, chunks)))
    if len(chunks) > 1:
        return [open_image(chunks[position], budget) for position in evenly(len(chunks), frames)]
    data = chunks[0]
    try:
        stated_length = getattr(limits.open_picture(data), "n_frames", 1)
    except UnidentifiedImageError:
        return _sample(data, _video_frames, _packet_count(data), frames, budget)
    return _sample(data, _animation_frames, stated_length, frames, budget)


def _sample(
    data: bytes,
    decode: Callable[[bytes, Callable[[Size], None]], Frames],
    length: int,
    frames: int,
    budget: Budget,
) -> list[Image.Image]:
    """Evenly spaced frames. All are decoded, so that damage anywhere is found; only these become images."""
    before = budget.taken

    def check(size: Size) -> None:
        """An error where frames of this size, those that are still wanted, take too much."""
        pixels = size[0] * size[1]
        what = f"a film of {len(wanted)} frames of {size[0]} x {size[1]} pixels"
        budget.check((PIXEL * (len(wanted) - len(images)) + DECODER) * pixels, what)

    while True:
        count = 0
        wanted = set(evenly(length, frames))
        images: list[Image.Image] = []
        for position, (size, image) in enumerate(decode(data, check)):
            count = position + 1
            if position in wanted:
                budget.take(PIXEL * size[0] * size[1], f"a frame of {size[0]} x {size[1]} pixels")
                images.append(image())
        if not count:
            raise UnreadableMedia(f"video of {len(data)} bytes has no frames")
        if count == length:
            return images
        # The length that a file states may be wrong: then sample again with the length that was counted.
        length = count
        images.clear()
        budget.taken = before


def _animation_frames(data: bytes, check: Callable[[Size], None]) -> Frames:
    animation = limits.open_picture(data)
    check(animation.size)
    for frame in ImageSequence.Iterator(animation):
        frame.load()
        yield frame.size, partial(frame.convert, "RGB")


def _video_frames(data: bytes, check: Callable[[Size], None]) -> Frames:
    with _container(data) as container:
        if container.streams.video:
            stream = container.streams.video[0]
            # What is shown of a damaged film depends on how many threads decode it: two on every machine, for slices.
            # Threads for frames would show something else each time, wait for ever where messages of the decoder go to
            # Python, and take more time than they save where workers decode one film each.
            stream.thread_type = "SLICE"
            stream.thread_count = SLICE_THREADS
            size = stream.width, stream.height
            _check_frame(size)
            check(size)
            for frame in container.decode(stream):
                if (frame.width, frame.height) != size:
                    size = frame.width, frame.height
                    _check_frame(size)
                    check(size)
                yield size, frame.to_image


def _check_frame(size: Size) -> None:
    """An error for frames of too many pixels."""
    if size[0] * size[1] > limits.FRAME:
        raise UnreadableMedia(limits.explain(f"a frame of {size[0]} x {size[1]}", limits.FRAME, "pixels"))


def _packet_count(data: bytes) -> int:
    """The number of packets, which is nearly always the number of frames, without decoding."""
    with _container(data) as container:
        return sum(packet.size > 0 for packet in container.demux(video=0)) if container.streams.video else 0


def _container(data: bytes) -> Any:
    _check_whole(data)
    return optional_library("av", "Decoding video needs PyAV", "video").open(io.BytesIO(data))


def open_audio(data: bytes, sample_rate: int, budget: Budget) -> Audio:
    """The sound as mono float32 at a sample rate; of all its channels, only some samples are in memory at a time."""
    import soundfile  # when it is used: it loads a library of its own

    _check_whole(data)
    with soundfile.SoundFile(io.BytesIO(data)) as sound:
        rate, length, channels = sound.samplerate, sound.frames, sound.channels
        resampled = length * sample_rate // rate if rate != sample_rate else 0
        # Some formats state no length: this is then the largest, and too much.
        what = f"a sound of {length:,} samples in {channels} channels at {rate:,} Hz"
        budget.take(SAMPLE * (length * channels + resampled), what)
        mono = np.empty(length, np.float32)
        count = 0
        while len(block := sound.read(max(1, SOUND_BLOCK // channels), dtype="float32", always_2d=True)):
            if not np.isfinite(block).all():
                raise UnreadableMedia(f"audio of {len(data)} bytes has samples that are not finite numbers")
            mono[count : count + len(block)] = mix(block)
            count += len(block)
        if count < length and sound.format == "FLAC":
            raise UnreadableMedia(f"audio of {len(data)} bytes is cut off after {count} of {length} samples")
    mono = mono[:count]
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
