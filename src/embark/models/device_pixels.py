"""Pictures on the GPU: JPEGs are decoded, turned, resized, cropped and made numbers there, a whole batch at once.

nvJPEG decodes, through torchvision; resizing is Pillow's, byte by byte. What is no plain JPEG comes from the workers as
Pillow made it, so which of the two decodes a picture depends on its bytes alone.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from embark.models.encoder import UnreadableRows
from embark.models.pixels import BytePreprocessor, Fit, ImageInputs
from embark.models.resampling import resize
from embark.types import Array, EmbarkError, Encoded

logger = logging.getLogger("embark")
MOST_PIXELS = 1 << 28  # decoded at a time: 800 MB on the device
TURNS: dict[int, Callable[[Any], Any]] = {  # of (3, height, width), by EXIF orientation
    2: lambda picture: picture.flip(2),
    3: lambda picture: picture.flip(1, 2),
    4: lambda picture: picture.flip(1),
    5: lambda picture: picture.transpose(1, 2),
    6: lambda picture: picture.transpose(1, 2).flip(2),
    7: lambda picture: picture.transpose(1, 2).flip(1, 2),
    8: lambda picture: picture.transpose(1, 2).flip(1),
}
NO_MEMORY = re.compile(r"out of memory|: 5$", re.MULTILINE | re.IGNORECASE)  # 5 is nvJPEG's own number for it


def fits_device(preprocessor: Any) -> bool:
    """Whether the device can do all that a preprocessor does: resize and crop to one size, then a number a byte."""
    if not isinstance(preprocessor, BytePreprocessor) or not isinstance(preprocessor.fit, Fit):
        return False
    return preprocessor.fit.crop is not None or isinstance(preprocessor.fit.size, tuple)


@dataclass(frozen=True)
class DevicePixels:
    """The preprocessing of a plain image processor on the model's device; `by_pillow` is the same on the CPU.

    `decode` takes the bytes of JPEGs and the device to their pictures there, each (3, height, width) of bytes, and to
    whatever must live until the device has read it; one picture that it refuses is an error for all. `resize` is that
    of `resampling`, or a faster one.
    """

    by_pillow: BytePreprocessor
    decode: Callable[[list[bytes], Any], tuple[list[Any], Any]]
    resize: Callable[[list[Any], Fit, Any], Any] = resize

    def prepare(self, picture: Any) -> Encoded | ImageInputs:
        """A plain JPEG as it is; others are decoded already, and prepared by Pillow."""
        return picture if isinstance(picture, Encoded) else self.by_pillow.prepare(picture)

    def batch(self, rows: Sequence[Encoded | ImageInputs], model: Any) -> dict[str, Any]:
        """(rows, 3, height, width) on the model's device and in its precision, by the name of the model's argument."""
        jpegs = {number: row for number, row in enumerate(rows) if isinstance(row, Encoded)}
        others = {number: row for number, row in enumerate(rows) if not isinstance(row, Encoded)}
        pieces: dict[tuple[int, ...], Any] = {}
        errors: dict[int, str] = {}
        for group in _groups(jpegs):
            pieces[tuple(group)] = self._pixels(group, model, errors)
        if errors:
            raise UnreadableRows(errors)
        if others:
            pieces[tuple(others)] = self.by_pillow.batch(list(others.values()), model)["pixel_values"]
        first = next(iter(pieces.values()))
        if len(pieces) == 1:
            return {"pixel_values": first}
        out = first.new_empty((len(rows), *first.shape[1:]))
        for numbers, pixels in pieces.items():
            out[list(numbers)] = pixels
        return {"pixel_values": out}

    def _pixels(self, jpegs: dict[int, Encoded], model: Any, errors: dict[int, str]) -> Any:
        """The pixels of pictures; those that do not decode are added to `errors`, each with its reason."""
        import torch

        # The decoder writes in a stream of its own to memory that this stream may have freed a moment ago.
        _synchronize(model.device)
        held, pictures = self._pictures(list(jpegs.values()), model.device)
        errors |= {
            number: str(picture)
            for number, picture in zip(jpegs, pictures, strict=True)
            if isinstance(picture, EmbarkError)
        }
        pixels = None
        if not errors:
            upright = [
                TURNS[jpeg.orientation](picture) if jpeg.orientation in TURNS else picture
                for jpeg, picture in zip(jpegs.values(), pictures, strict=True)
            ]
            fit = self.by_pillow.fit
            assert isinstance(fit, Fit)
            values = torch.from_numpy(self.by_pillow.byte_values).to(model.dtype)
            if model.device.type == "cuda":
                values = values.pin_memory().to(model.device, non_blocking=True)
            pixels = self.resize(upright, fit, values)
        _synchronize(model.device)
        del held  # the decoder read from it until now
        return pixels

    def _pictures(self, jpegs: list[Encoded], device: Any) -> tuple[list[Any], list[Any]]:
        """(what must live on, pictures as they are stored); an error stands for a picture that does not decode.

        Those that the decoder refuses are found by halving, and Pillow decodes them.
        """
        try:
            pictures, held = self.decode([jpeg.data for jpeg in jpegs], device)
        except RuntimeError as error:
            if NO_MEMORY.search(str(error)):
                raise MemoryError(str(error)) from error
            _synchronize(device)  # raises if it is the device that has failed
            if len(jpegs) == 1:
                return [], [_by_pillow(jpegs[0].data, device)]
            half = len(jpegs) // 2
            left, right = self._pictures(jpegs[:half], device), self._pictures(jpegs[half:], device)
            return left[0] + right[0], left[1] + right[1]
        return [held], pictures


def on_gpu(by_pillow: BytePreprocessor, device: Any) -> DevicePixels:
    """The preprocessing on a CUDA device, by Triton's kernels where they work; an error where nvJPEG does not."""
    import torch

    check_nvjpeg(device)
    pictures = [torch.arange(3 * 40 * 30, device=device).byte().view(3, 40, 30)]
    trial = pictures, Fit(9, (9, 9), 3), torch.arange(768.0, device=device).view(3, 256)
    try:
        from embark.models import resampling_cuda

        if torch.equal(resampling_cuda.resize(*trial), resize(*trial)):
            return DevicePixels(by_pillow, decode_jpegs, resampling_cuda.resize)
        reason = "its kernels make other bytes here"
    except Exception as error:  # it is not installed, finds no compiler, knows no such device…
        reason = str(error).strip().partition("\n")[0]
    logger.info("Pictures are resized without Triton, size by size: %s", reason)
    return DevicePixels(by_pillow, decode_jpegs)


def decode_jpegs(data: list[bytes], device: Any) -> tuple[list[Any], Any]:
    """nvJPEG's pictures of a batch, and the pinned memory that it reads the bytes from."""
    import numpy as np
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    ends = np.cumsum([len(jpeg) for jpeg in data])
    pinned = torch.empty(int(ends[-1]), dtype=torch.uint8, pin_memory=True)
    bytes_there: Array = pinned.numpy()
    for jpeg, end in zip(data, ends, strict=True):
        bytes_there[end - len(jpeg) : end] = np.frombuffer(jpeg, np.uint8)
    parts = list(pinned.split([len(jpeg) for jpeg in data]))
    with torch.cuda.device(device):
        return decode_jpeg(parts, mode=ImageReadMode.RGB, device=device), pinned


def check_nvjpeg(device: Any) -> None:
    """An error unless nvJPEG decodes a picture here."""
    from PIL import Image

    if device.type != "cuda":
        raise EmbarkError(f"pictures are decoded on CUDA devices alone, and this is {device}")
    if not find_spec("torchvision"):
        raise EmbarkError("torchvision is not installed, whose nvJPEG decodes pictures: pip install torchvision")
    picture = io.BytesIO()
    Image.new("RGB", (16, 16)).save(picture, "JPEG")
    try:
        [decoded], _ = decode_jpegs([picture.getvalue()], device)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise EmbarkError(f"torchvision's nvJPEG does not decode pictures here ({reason})") from error
    if tuple(decoded.shape) != (3, 16, 16):
        raise EmbarkError(f"torchvision's nvJPEG makes pictures of shape {tuple(decoded.shape)} of 16 x 16 pixels")


def _by_pillow(data: bytes, device: Any) -> Any:
    """The picture as Pillow decodes it, (3, height, width) on the device, or the error that it is unreadable."""
    import numpy as np
    import torch
    from PIL import Image

    try:
        pixels = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
    except Exception as error:  # damage makes decoders raise whatever they like
        return EmbarkError(f"image of {len(data)} bytes does not decode: {str(error) or type(error).__name__}")
    return torch.from_numpy(pixels).to(device).permute(2, 0, 1)


def _groups(jpegs: dict[int, Encoded]) -> Iterator[dict[int, Encoded]]:
    """The pictures, as many at a time as the device's memory should hold."""
    group: dict[int, Encoded] = {}
    pixels = 0
    for number, jpeg in jpegs.items():
        area = jpeg.size[0] * jpeg.size[1]
        if group and pixels + area > MOST_PIXELS:
            yield group
            group = {}
            pixels = 0
        group[number] = jpeg
        pixels += area
    if group:
        yield group


def _synchronize(device: Any) -> None:
    """Wait for the work of this thread's stream."""
    import torch

    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
