"""Pictures on the GPU: JPEGs are decoded, turned, resized, cropped and made numbers there, a whole batch at once.

Decoding, colors and resizing are those of Pillow and its libjpeg, byte by byte. What is no plain JPEG comes from the
workers as Pillow made it, so which of the two decodes a picture depends on its bytes alone.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.halving import by_halves
from embark.models import resampling
from embark.models.encoder import UnreadableRows
from embark.models.jpeg_colors import rgb
from embark.models.nvjpeg import Decoder, JpegsRefused
from embark.models.pixels import AsStored, BytePreprocessor, Fit, ImageInputs
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
    if device.type != "cuda":
        raise EmbarkError(f"pictures are decoded on CUDA devices alone, and this is {device}")
    try:
        decoder = Decoder(device)
    except (JpegsRefused, MemoryError) as error:
        raise EmbarkError(f"nvJPEG cannot be used here ({error})") from error

    def by_torch(jpegs: Sequence[Encoded], fit: Fit, values: Any) -> Any:
        planes, starts = decoder(jpegs, values.device)
        pieces = [planes[start:][: 3 * math.prod(jpeg.size)] for start, jpeg in zip(starts, jpegs, strict=True)]
        pictures = [piece.view(3, *jpeg.size[::-1]) for piece, jpeg in zip(pieces, jpegs, strict=True)]
        return resampling.resize(upright(rgb(pictures, jpegs), jpegs), fit, values)

    def by_triton(jpegs: Sequence[Encoded], fit: Fit, values: Any) -> Any:
        from embark.models import pixels_cuda

        return pixels_cuda.pixels(*decoder(jpegs, values.device), jpegs, fit, values)

    slow = _checked(DevicePixels(by_pillow, by_torch), device)
    try:
        return _checked(DevicePixels(by_pillow, by_triton), device)
    except Exception as error:  # Triton is not installed, finds no compiler, knows no such device…
        reason = str(error).strip().partition("\n")[0]
        logger.info("Pictures are resized without Triton, size by size: %s", reason)
        return slow


@dataclass(frozen=True)
class DevicePixels:
    """The preprocessing of a plain image processor on the model's device; `by_pillow` is the same on the CPU.

    `pixels` takes JPEGs, and the numbers (3, 256) of each channel's bytes, to the numbers (n, 3, height, width) of the
    pictures, turned, resized and cropped; one picture that it refuses is an error for all (`Refused`).
    """

    by_pillow: BytePreprocessor
    pixels: Callable[[Sequence[Encoded], Fit, Any], Any]

    @property
    def fit(self) -> Fit:
        """How pictures are resized and cropped."""
        assert isinstance(self.by_pillow.fit, Fit)
        return self.by_pillow.fit

    @property
    def prepare(self) -> AsStored:
        """What workers do."""
        return AsStored(self.by_pillow)

    def batch(self, rows: Sequence[Encoded | ImageInputs], model: Any) -> dict[str, Any]:
        """(rows, 3, height, width) on the model's device and in its precision, by the name of the model's argument."""
        import torch

        jpegs = {number: row for number, row in enumerate(rows) if isinstance(row, Encoded)}
        others = {number: row for number, row in enumerate(rows) if not isinstance(row, Encoded)}
        values = torch.from_numpy(self.by_pillow.byte_values).to(model.dtype).contiguous()
        if model.device.type == "cuda":
            values = values.pin_memory().to(model.device, non_blocking=True)
        pieces: dict[tuple[int, ...], Any] = {}
        errors: dict[int, str] = {}
        for group in _groups(jpegs):
            pieces |= self._pieces(group, values, errors)
        if errors:
            raise UnreadableRows(errors)
        if others:
            pieces[tuple(others)] = self.by_pillow.batch(list(others.values()), model)["pixel_values"]
        if len(pieces) == 1:
            return {"pixel_values": next(iter(pieces.values()))}
        places = torch.from_numpy(np.argsort([number for numbers in pieces for number in numbers]))
        if model.device.type == "cuda":
            places = places.pin_memory()  # so that nobody waits for the device
        return {"pixel_values": torch.cat(list(pieces.values()))[places.to(model.device, non_blocking=True)]}

    def _pieces(self, jpegs: dict[int, Encoded], values: Any, errors: dict[int, str]) -> dict[tuple[int, ...], Any]:
        """The pixels of pictures, by their numbers; those that do not decode are added to `errors`.

        Those that the device refuses are found by halving, and Pillow decodes them.
        """

        def decode(numbers: Sequence[int]) -> list[tuple[tuple[int, ...], Any]]:
            try:
                return [(tuple(numbers), self.pixels([jpegs[number] for number in numbers], self.fit, values))]
            except JpegsRefused:
                if len(numbers) > 1:
                    raise
            [number] = numbers
            jpeg = jpegs[number]
            try:
                picture = open_picture(jpeg.data)
            except Exception as error:  # damage makes decoders raise whatever they like
                reason = str(error) or type(error).__name__
                errors[number] = f"image of {len(jpeg.data)} bytes does not decode: {reason}"
                return []
            return [((number,), resampling.resize(upright([picture.to(values.device)], [jpeg]), self.fit, values))]

        return dict(by_halves(list(jpegs), decode, JpegsRefused))


def open_picture(data: bytes | memoryview) -> Any:
    """The picture as Pillow decodes it: (3, height, width) of bytes."""
    import torch
    from PIL import Image

    return torch.from_numpy(np.array(Image.open(io.BytesIO(data), formats=("JPEG",)).convert("RGB"))).permute(2, 0, 1)


def upright(pictures: Sequence[Any], jpegs: Sequence[Encoded]) -> list[Any]:
    """The pictures, turned as their orientation says."""
    return [
        TURNS[jpeg.orientation](picture) if jpeg.orientation in TURNS else picture
        for picture, jpeg in zip(pictures, jpegs, strict=True)
    ]


def _checked(made: DevicePixels, device: Any) -> DevicePixels:
    """The same; an error unless pictures of each sampling, turned and not, come out as Pillow makes them, or nearly."""
    import torch
    from PIL import Image

    values = torch.arange(256.0, device=device).expand(3, 256).contiguous()
    waves = np.sin(np.arange(3 * 41 * 67) / 5).reshape(41, 67, 3)
    image = Image.fromarray((127 + 120 * waves).astype(np.uint8))
    jpegs = []
    for number, sampling in enumerate(((1, 1), (2, 1), (2, 2), (0, 0))):
        data = io.BytesIO()
        if all(sampling):
            image.save(data, "JPEG", subsampling=number)
        else:
            image.convert("L").save(data, "JPEG")
        jpegs.append(Encoded(data.getvalue(), image.size, sampling, 1 + 2 * number))
    fit = Fit(29, (29, 31), Image.Resampling.BICUBIC)
    try:
        pixels = made.pixels(jpegs, fit, values)
    except JpegsRefused as error:
        raise EmbarkError(f"nvJPEG does not decode pictures here ({error})") from error
    pictures = upright([open_picture(jpeg.data) for jpeg in jpegs], jpegs)
    off = (pixels.cpu() - resampling.resize(pictures, fit, values.cpu())).abs().max().item()
    if off > MOST_LEVELS:
        raise EmbarkError(f"pictures from the GPU are up to {off:.0f} levels off Pillow's here")
    return made


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
