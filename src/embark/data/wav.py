"""Wave files by their bytes: made of samples or of a film, measured, and cut without a change of encoding."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np

from embark.types import Array, EmbarkError


def length(data: bytes) -> float:
    """Seconds of sound."""
    form, sound = _chunks(data)
    rate, step = _rate(form)
    return (len(sound) // step) / rate


def cut(data: bytes, start: float, end: float) -> bytes:
    """The part between two moments, at least a sample long: a wave file of the same format."""
    form, sound = _chunks(data)
    rate, step = _rate(form)
    first = min(round(start * rate), max(0, len(sound) // step - 1))
    part = sound[first * step : max(round(end * rate), first + 1) * step]
    body = b"WAVE" + _chunk(b"fmt ", form) + _chunk(b"data", part)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def from_samples(samples: Array, rate: int) -> bytes:
    """A wave file of mono samples between -1 and 1, in 16 bits."""
    return _encoded(np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes(), rate)


def of_film(data: bytes, rate: int) -> bytes:
    """The sound of a film as a wave file, mono."""
    try:
        import av
    except ImportError as error:
        raise EmbarkError("The sound of films needs PyAV: pip install 'embark[video]'.") from error
    with av.open(io.BytesIO(data)) as film:
        resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
        frames = [part for frame in film.decode(audio=0) for part in resampler.resample(frame)]
        frames += resampler.resample(None)
    return _encoded(b"".join(bytes(frame.planes[0])[: 2 * frame.samples] for frame in frames), rate)


def _encoded(samples: bytes, rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(samples)
    return out.getvalue()


def _chunks(data: bytes) -> tuple[bytes, memoryview]:
    """The format and the samples. The standard library does not read the extensible format of 24-bit recordings."""
    found: dict[bytes, memoryview] = {}
    view, at = memoryview(data), 12
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        found.setdefault(name, view[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE" or b"fmt " not in found or b"data" not in found:
        raise EmbarkError(f"{len(data)} bytes that should be a wave file are not.")
    return bytes(found[b"fmt "]), found[b"data"]


def _rate(form: bytes) -> tuple[int, int]:
    """Samples a second, and bytes of one sample of all channels."""
    _, _, rate, _, step = struct.unpack_from("<HHIIH", form)
    return rate, step


def _chunk(name: bytes, content: bytes | memoryview) -> bytes:
    return name + struct.pack("<I", len(content)) + bytes(content) + b"\0" * (len(content) % 2)
