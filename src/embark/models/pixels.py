"""Image preprocessing: workers resize and crop bytes, and the model's device turns them into numbers.

Pillow works on bytes while other threads run, and bytes take a quarter of float32's memory to stack and to move. The
numbers are those of the checkpoint's image processor, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embark.models.device import stack, to_numpy, without_gradients
from embark.models.encoder import Tower, image_towers
from embark.types import Array, Modality

if TYPE_CHECKING:
    from PIL.Image import Image

ImageInputs = dict[str, Array]  # the arrays of one image, by the names of the model's arguments
PLAIN = {  # classes of transformers that resize, crop, and map each byte to a number; nothing else
    f"{name}ImageProcessorPil" for name in ("Bit", "Blip", "ChineseCLIP", "CLIP", "EfficientNet", "Siglip", "ViT")
}
SIZES = {"shortest_edge"}, {"height", "width"}  # how they may state the size


def image_preprocessor(processor: Any) -> BytePreprocessor | LibraryPreprocessor:
    """The preprocessing of an image processor of transformers: on bytes if it is a plain one, else by the processor."""
    if _is_plain(processor):
        return BytePreprocessor(_fit(processor), _byte_values(processor))
    return LibraryPreprocessor(processor)


def pixel_towers(processor: Any, model: Any, forward: Callable[..., Any]) -> dict[Modality, Tower]:
    """The towers of images and videos; `forward` takes the processor's arrays of a batch, by name, to vectors."""
    preprocessor = image_preprocessor(processor)

    @without_gradients
    def embed(rows: list[ImageInputs]) -> Array:
        return to_numpy(forward(**preprocessor.batch(rows, model)))

    return image_towers(embed, preprocessor.prepare)


@dataclass(frozen=True)
class BytePreprocessor:
    """`fit` resizes and crops an RGB image; `byte_values` (3, 256) are the numbers of each channel's bytes."""

    fit: Callable[[Image], Image]
    byte_values: Array

    def prepare(self, image: Image) -> ImageInputs:
        """The bytes that the model will see: (height, width, 3)."""
        return {"pixel_values": np.asarray(self.fit(image if image.mode == "RGB" else image.convert("RGB")))}

    def batch(self, rows: Sequence[ImageInputs], model: Any) -> dict[str, Any]:
        """(rows, 3, height, width) on the model's device and in its precision, by the name of the model's argument."""
        import torch

        pixels = stack([row["pixel_values"] for row in rows], model)
        values = torch.from_numpy(self.byte_values).to(model.device, model.dtype)
        channels = [values[channel][pixels[..., channel].int()] for channel in range(3)]
        return {"pixel_values": torch.stack(channels, dim=1)}


@dataclass(frozen=True)
class LibraryPreprocessor:
    """Any image processor of transformers, in one step; some give a model more than pixels."""

    processor: Any

    def prepare(self, image: Image) -> ImageInputs:
        """All arrays that the processor returns."""
        arrays = self.processor(images=image.convert("RGB"), return_tensors="np")
        return {name: arrays[name][0] for name in arrays}

    def batch(self, rows: Sequence[ImageInputs], model: Any) -> dict[str, Any]:
        """The arrays of all images, stacked on the model's device."""
        return {name: stack([row[name] for row in rows], model) for name in rows[0]}


@dataclass(frozen=True)
class Fit:
    """Resize, then cut out the middle, as image processors do it; sides are (height, width).

    `size` is that of the shorter side, or of both sides. An image smaller than `crop` gets a black border.
    """

    size: int | tuple[int, int] | None
    crop: tuple[int, int] | None
    resample: int

    def __call__(self, image: Image) -> Image:
        """The image in its new size."""
        if isinstance(self.size, int):
            shorter = min(image.size)
            width, height = (int(self.size * side / shorter) for side in image.size)
            image = image.resize((width, height), self.resample)
        elif self.size:
            image = image.resize(self.size[::-1], self.resample)
        if self.crop:
            height, width = self.crop
            left, top = (image.width - width) // 2, (image.height - height) // 2
            image = image.crop((left, top, left + width, top + height))
        return image


def _is_plain(processor: Any) -> bool:
    """Whether the class is one of the plain ones, and its options need no more than `Fit` can do."""
    kind = type(processor)
    return (
        kind.__module__.startswith("transformers.")
        and kind.__name__ in PLAIN
        and not processor.do_pad
        and (not processor.do_resize or (set(dict(processor.size)) in SIZES and isinstance(processor.resample, int)))
        and (not processor.do_center_crop or set(dict(processor.crop_size)) == {"height", "width"})
    )


def _fit(processor: Any) -> Fit:
    def sides(size: Any) -> Any:
        return size.get("shortest_edge") or (size.get("height"), size.get("width"))

    return Fit(
        sides(processor.size) if processor.do_resize else None,
        sides(processor.crop_size) if processor.do_center_crop else None,
        processor.resample,
    )


def _byte_values(processor: Any) -> Array:
    """The number that the processor itself returns for every byte, so that no arithmetic of ours can differ."""
    from PIL import Image

    ramp = Image.fromarray(np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2))
    values = processor(images=ramp, do_resize=False, do_center_crop=False, return_tensors="np")["pixel_values"]
    return np.asarray(values[0][:, 0], np.float32)
