"""Pictures on the GPU: JPEGs are decoded, turned, resized, cropped and made numbers there, a whole batch at once.

Decoding, colors and resizing are those of Pillow and its libjpeg, byte by byte. What is no plain JPEG comes from the
workers as Pillow made it, so which of the two decodes a picture depends on its bytes alone.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.models import jpeg_colors, resampling
from embark.models.encoder import UnreadableRows
from embark.models.nvjpeg import Decoder, Refused
from embark.models.pixels import BytePreprocessor, Fit, ImageInputs
from embark.types import EmbarkError, Encoded

logger = logging.getLogger("embark")
MOST_PIXELS = 1 << 27  # decoded at a time: 800 MB on the device, planes and colors
MOST_LEVELS = 2  # off Pillow: another version of libjpeg may round in another way
TURNS: dict[int, Callable[[Any], Any]] = {  # of (3, height, width), by EXIF orientation
    2: lambda picture: picture.flip(2),
    3: lambda picture: picture.flip(1, 2),
    4: lambda picture: picture.flip(1),
    5: lambda picture: picture.transpose(1, 2),
    6: lambda picture: picture.transpose(1, 2).flip(2),
    7: lambda picture: picture.transpose(1, 2).flip(1, 2),
    8: lambda picture: picture.transpose(1, 2).flip(1),
}


def fits_device(preprocessor: Any) -> bool:
    """Whether the device can do all that a preprocessor does: resize and crop to one size, then a number a byte."""
    if not isinstance(preprocessor, BytePreprocessor) or not isinstance(preprocessor.fit, Fit):
        return False
    return preprocessor.fit.crop is not None or isinstance(preprocessor.fit.size, tuple)


def on_gpu(by_pillow: BytePreprocessor, device: Any) -> DevicePixels:
    """The preprocessing on a CUDA device, by Triton's kernels where they work; an error where nvJPEG does not."""
    import torch

    if device.type != "cuda":
        raise EmbarkError(f"pictures are decoded on CUDA devices alone, and this is {device}")
    colors: Any = jpeg_colors.rgb
    resize: Any = resampling.resize
    picture = torch.arange(3 * 40 * 30, device=device).byte().view(3, 40, 30)
    jpeg = Encoded(b"", (30, 40), (2, 2))
    trial = Fit(9, (9, 9), 3), torch.arange(768.0, device=device).view(3, 256)
    try:
        from embark.models import jpeg_colors_cuda, resampling_cuda

        as_ever = resize(colors([picture], [jpeg]), *trial)
        if not torch.equal(resampling_cuda.resize(jpeg_colors_cuda.rgb([picture], [jpeg]), *trial), as_ever):
            raise EmbarkError("its kernels make other bytes here")
        colors = jpeg_colors_cuda.rgb
        resize = resampling_cuda.resize
    except Exception as error:  # Triton is not installed, finds no compiler, knows no such device…
        reason = str(error).strip().partition("\n")[0]
        logger.info("Pictures are resized without Triton, size by size: %s", reason)
    decoder = Decoder(device)

    def decode(jpegs: Sequence[Encoded], device: Any) -> list[Any]:
        return list(colors(decoder(jpegs, device), jpegs))

    pixels = DevicePixels(by_pillow, decode, resize)
    pixels.check(device)
    return pixels


@dataclass(frozen=True)
class DevicePixels:
    """The preprocessing of a plain image processor on the model's device; `by_pillow` is the same on the CPU.

    `decode` takes JPEGs to their pictures on the device, each (3, height, width) of bytes; one that it refuses is an
    error for all. `resize` is that of `resampling`, or a faster one.
    """

    by_pillow: BytePreprocessor
    decode: Callable[[Sequence[Encoded], Any], list[Any]]
    resize: Callable[[list[Any], Fit, Any], Any] = resampling.resize

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
            pictures = dict(zip(group, self._pictures(list(group.values()), model.device), strict=True))
            errors |= {number: str(error) for number, error in pictures.items() if isinstance(error, EmbarkError)}
            if not errors:
                pieces[tuple(group)] = self._pixels(list(pictures.values()), list(group.values()), model)
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

    def _pictures(self, jpegs: list[Encoded], device: Any) -> list[Any]:
        """The pictures as they are stored; an error stands for one that does not decode.

        Those that the decoder refuses are found by halving, and Pillow decodes them.
        """
        try:
            return self.decode(jpegs, device)
        except Refused:
            if len(jpegs) == 1:
                return [_by_pillow(jpegs[0].data, device)]
        half = len(jpegs) // 2
        return self._pictures(jpegs[:half], device) + self._pictures(jpegs[half:], device)

    def _pixels(self, pictures: list[Any], jpegs: list[Encoded], model: Any) -> Any:
        """The numbers of pictures, turned, resized and cropped."""
        import torch

        fit = self.by_pillow.fit
        assert isinstance(fit, Fit)
        upright = [
            TURNS[jpeg.orientation](picture) if jpeg.orientation in TURNS else picture
            for picture, jpeg in zip(pictures, jpegs, strict=True)
        ]
        values = torch.from_numpy(self.by_pillow.byte_values).to(model.dtype).contiguous()
        if model.device.type == "cuda":
            values = values.pin_memory().to(model.device, non_blocking=True)
        return self.resize(upright, fit, values)

    def check(self, device: Any) -> None:
        """An error unless a picture of each sampling decodes on the device, to Pillow's bytes."""
        from PIL import Image

        waves = np.sin(np.arange(3 * 41 * 67) / 5).reshape(41, 67, 3)
        image = Image.fromarray((127 + 120 * waves).astype(np.uint8))
        for number, sampling in enumerate(((1, 1), (2, 1), (2, 2), (0, 0))):
            data = io.BytesIO()
            if all(sampling):
                image.save(data, "JPEG", subsampling=number)
            else:
                image.convert("L").save(data, "JPEG")
            jpeg = Encoded(data.getvalue(), image.size, sampling)
            try:
                [picture] = self.decode([jpeg], device)
            except Refused as error:
                raise EmbarkError(f"nvJPEG does not decode pictures here ({error})") from error
            off = (picture.int() - _by_pillow(jpeg.data, device).int()).abs().max().item()
            if off > MOST_LEVELS:
                raise EmbarkError(f"nvJPEG's pictures are up to {off} levels off Pillow's here")


def _by_pillow(data: bytes, device: Any) -> Any:
    """The picture as Pillow decodes it, (3, height, width) on the device, or the error that it is unreadable."""
    import torch
    from PIL import Image

    try:
        pixels = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
    except Exception as error:  # damage makes decoders raise whatever they like
        return EmbarkError(f"image of {len(data)} bytes does not decode: {str(error) or type(error).__name__}")
    return torch.from_numpy(pixels).to(device).permute(2, 0, 1)


def _groups(jpegs: Mapping[int, Encoded]) -> Iterator[dict[int, Encoded]]:
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
