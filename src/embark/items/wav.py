"""Wave files as bytes: encode samples or a video's sound, measure the duration, cut without re-encoding."""

from __future__ import annotations

import io
import struct
import wave
from itertools import chain

import numpy as np

from embark.items import limits
from embark.items.decoding import optional_library
from embark.items.errors import errors_about
from embark.types import Array, EmbarkError

COPIES = 2  # of the samples, until they are a file
FORMAT = struct.Struct("<HHIIH")  # coding, channels, frames per second, bytes per second, bytes of a frame


def duration(data: bytes) -> float:
    """The duration of a wave file in seconds."""
    _, samples, rate, size = _parse(data)
    return (len(samples) // size) / rate


def cut(data: bytes, start: float, end: float) -> bytes:
    """The part between two times in seconds, at least one sample long, as a wave file of the same format."""
    header, samples, rate, size = _parse(data)
    first = min(round(start * rate), max(0, len(samples) // size - 1))
    last = max(round(end * rate), first + 1)
    body = b"WAVE" + _chunk(b"fmt ", header) + _chunk(b"data", samples[first * size : last * size])
    return b"RIFF" + struct.pack("<I", len(body)) + body


def from_samples(samples: Array, rate: int) -> bytes:
    """A 16-bit wave file of mono samples between -1 and 1."""
    return _encode(np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes(), rate)


def from_video(data: bytes, rate: int) -> bytes:
    """The sound of an encoded video as a mono 16-bit wave file."""
    av = optional_library("av", "Reading the sound of a video needs PyAV", "video")
    with errors_about(f"The sound of a video of {len(data)} bytes"), av.open(io.BytesIO(data)) as video:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
        sound = bytearray()
        limit = limits.item_bytes(len(data))
        for frame in chain(video.decode(audio=0), [None]):  # None: what the resampler still holds
            for part in resampler.resample(frame):
                sound += bytes(part.planes[0])[: 2 * part.samples]
            if COPIES * len(sound) > limit:
                reason = limits.explain_item("The sound of a video", COPIES * len(sound), limit)
                raise EmbarkError(f"{reason}.")
    return _encode(bytes(sound), rate)


def _encode(samples: bytes, rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)
    return out.getvalue()


def _parse(data: bytes) -> tuple[bytes, memoryview, int, int]:
    """The "fmt " and "data" chunks, frames per second, and the bytes of a frame (one sample of each channel).

    The wave module does not read the extensible format of 24-bit recordings.
    """
    chunks: dict[bytes, memoryview] = {}
    offset = 12
    while offset + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, offset)
        chunks.setdefault(name, memoryview(data)[offset + 8 : offset + 8 + size])
        offset += 8 + size + size % 2
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE" or not {b"fmt ", b"data"} <= chunks.keys():
        raise EmbarkError(f"Expected a wave file, got {len(data)} bytes of something else.")
    header = bytes(chunks[b"fmt "])
    if len(header) < FORMAT.size or 0 in (format := FORMAT.unpack_from(header)):
        raise EmbarkError(f"The head of a wave file of {len(data)} bytes is damaged.")
    _, _, rate, _, size = format
    return header, chunks[b"data"], rate, size


def _chunk(name: bytes, content: bytes | memoryview) -> bytes:
    return name + struct.pack("<I", len(content)) + bytes(content) + b"\0" * (len(content) % 2)
