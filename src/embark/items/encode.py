"""Content as Python programs hold it (pictures, arrays, paths, bytes) as the encoded bytes that items are made of.

Pixels and samples are written without compression: equal content is equal bytes, on every machine.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from PIL import Image

from embark.items import wav
from embark.types import Array, Audio, EmbarkError, Modality

ENDINGS: dict[str, Modality] = {
    **dict.fromkeys(("png", "jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "avif"), "image"),
    **dict.fromkeys(("wav", "flac", "mp3", "ogg", "opus", "m4a"), "audio"),
    **dict.fromkeys(("mp4", "mkv", "webm", "mov", "avi"), "video"),
}  # fmt: skip
HEADS: dict[bytes, Modality] = {
    **dict.fromkeys((b"\xff\xd8", b"\x89PNG", b"GIF8", b"BM", b"II*\0", b"MM\0*"), "image"),
    **dict.fromkeys((b"fLaC", b"OggS", b"ID3", b"\xff\xfb"), "audio"),
    b"\x1aE\xdf\xa3": "video",
}
INNER: dict[bytes, Modality] = {b"WEBP": "image", b"WAVE": "audio"}  # of RIFF files
CHANNELS = (1, 3, 4)


def modality(cell: Any) -> Modality | None:
    """What a value is, by itself: texts are text, paths and bytes what their ending or head says; None: no content."""
    if isinstance(cell, (str, list)):
        return "text" if isinstance(cell, str) or all(isinstance(part, str) for part in cell) else None
    if isinstance(cell, PurePath):
        return ENDINGS.get(cell.suffix.lower().lstrip("."))
    if isinstance(cell, bytes):
        head = next((kind for head, kind in HEADS.items() if cell.startswith(head)), None)
        return head or INNER.get(cell[8:12]) or ("video" if cell[4:8] == b"ftyp" else None)
    if isinstance(cell, Image.Image):
        return "image"
    if isinstance(cell, Audio) or _sound(cell) is not None:
        return "audio"
    if isinstance(cell, Mapping) and {"bytes", "path"} & {*cell}:
        return modality(cell["bytes"]) if cell.get("bytes") else modality(PurePath(str(cell.get("path"))))
    dimensions = len(getattr(cell, "shape", ()))
    return "audio" if dimensions == 1 else "image" if dimensions in (2, 3) else None


def encode(cell: Any, kind: Modality, rate: int | None = None) -> bytes | Path:
    """The encoded bytes of a picture, sound or film, or the file that has them; `rate` is that of bare samples."""
    if isinstance(cell, (bytes, bytearray, memoryview)):
        return bytes(cell)
    if isinstance(cell, (str, PurePath)):
        return Path(cell)
    if isinstance(cell, Mapping) and {"bytes", "path"} & {*cell}:
        return bytes(cell["bytes"]) if cell.get("bytes") is not None else Path(str(cell["path"]))
    if isinstance(cell, Image.Image) and kind == "image":
        return _tiff(cell)
    sound = (cell.samples, cell.rate) if isinstance(cell, Audio) else _sound(cell)
    samples, own_rate = sound or (cell, rate)
    if kind in ("image", "audio") and hasattr(samples, "shape"):
        return _tiff(_image(_array(samples))) if kind == "image" else _wave(_array(samples), own_rate)
    known = {"image": "a PIL image, an array", "audio": "(array, rate)", "video": "a film"}.get(kind, "")
    raise EmbarkError(f"{type(cell).__name__} is no {kind}: it may be {known}, a path or encoded bytes.")


def _sound(cell: Any) -> tuple[Any, int] | None:
    """Samples and their rate, of (samples, rate) or of a dictionary as `datasets` has it."""
    if isinstance(cell, Mapping) and {"array", "sampling_rate"} <= {*cell}:
        return np.asarray(cell["array"]), int(cell["sampling_rate"])
    if isinstance(cell, tuple) and len(cell) == 2 and hasattr(cell[0], "shape") and isinstance(cell[1], int):
        return cell[0], cell[1]
    return None


def _array(value: Any) -> Array:
    """An array of numpy, or of torch, which has channels first as our images have them last."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    array: Array = np.asarray(value)
    return array


def _image(pixels: Array) -> Image.Image:
    """A picture of (height, width), or of three dimensions with the channels first or last."""
    if pixels.ndim == 3 and pixels.shape[-1] not in CHANNELS and pixels.shape[0] in CHANNELS:
        pixels = np.moveaxis(pixels, 0, -1)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[-1] not in CHANNELS):
        raise EmbarkError(f"An array of shape {pixels.shape} is no image: it must be (height, width, 1, 3 or 4).")
    if pixels.dtype.kind == "f":
        if not (np.isfinite(pixels).all() and pixels.min(initial=0) >= 0 and pixels.max(initial=0) <= 1):
            raise EmbarkError(
                "An image of floats has values outside 0 to 1: give the pictures before they are normalized."
            )
        pixels = np.rint(pixels * 255)
    elif pixels.dtype != np.uint8:
        raise EmbarkError(f"An image of {pixels.dtype} has no fixed range: give uint8, or floats from 0 to 1.")
    pixels = pixels.astype(np.uint8)
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 and pixels.ndim == 3 else pixels)


def _tiff(image: Image.Image) -> bytes:
    """The pixels as an uncompressed TIFF, turned as the picture's EXIF orientation says."""
    from PIL import ImageOps

    if 0 in image.size:
        raise EmbarkError(f"An image of {image.width} × {image.height} has no pixels.")
    try:
        image = ImageOps.exif_transpose(image)
        image.load()
    except (OSError, SyntaxError) as error:  # of a broken file, which is read only now
        file = getattr(image, "filename", "") or "of no file"
        raise EmbarkError(f"An image ({file}) cannot be decoded: {error}.") from None
    if image.mode not in ("L", "RGB", "RGBA") and not image.mode.startswith("I;16"):
        image = image.convert("RGBA" if "transparency" in image.info or image.mode in ("LA", "PA") else "RGB")
    bare = Image.frombytes(image.mode, image.size, image.tobytes())  # without dates and whatever else a file states
    out = io.BytesIO()
    bare.save(out, "TIFF")
    return out.getvalue()


def _wave(samples: Array, rate: int | None) -> bytes:
    """Samples of one channel, or of several as (channels, samples), as a mono wave file."""
    if rate is None:
        raise EmbarkError("A sound of bare samples has no rate: give rate=…, or each sound as (array, rate).")
    if samples.ndim == 2:
        samples = samples.mean(axis=0 if samples.shape[0] <= samples.shape[1] else 1)
    if samples.ndim != 1 or not np.isfinite(samples).all():
        raise EmbarkError(f"An array of shape {samples.shape} is no sound: samples are one row of finite numbers.")
    scale = float(np.iinfo(samples.dtype).max) + 1 if samples.dtype.kind == "i" else 1.0
    return wav.from_samples(samples.astype(np.float64) / scale, rate)
