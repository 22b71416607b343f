"""Image preprocessing: workers resize and crop bytes, and the model's device turns them into numbers.

Pillow works on bytes while other threads run, and bytes take a quarter of float32's memory to stack and to move. The
numbers are those of the checkpoint's image processor, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from embark.models.device import stack
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD
from embark.types import Array, EmbarkError, Encoded, ModelCard

if TYPE_CHECKING:
    from PIL.Image import Image

UNIBENCH = "UniBench"  # the style of its rows
OPENAI = "openai-"  # begins the name of UniBench's preprocessing in a card's answer, as in openai-224: mean, crop, side
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

        arrays = [row["pixel_values"] for row in rows]
        if any(array.dtype != np.uint8 for array in arrays):  # some were prepared for a style, and are numbers already
            return {"pixel_values": stack([self._numbers(array) for array in arrays], model)}
        pixels = stack(arrays, model)
        values = torch.from_numpy(self.byte_values).to(model.device, model.dtype)
        channels = [values[channel][pixels[..., channel].int()] for channel in range(3)]
        return {"pixel_values": torch.stack(channels, dim=1)}

    def pixels(self, image: Image) -> Array:
        """(3, height, width) of numbers, as the model will see them."""
        return self._numbers(self.prepare(image)["pixel_values"])

    def _numbers(self, array: Array) -> Array:
        """(3, height, width) of numbers, of bytes or of such numbers."""
        if array.dtype != np.uint8:
            return array
        return np.stack([self.byte_values[channel][array[..., channel]] for channel in range(3)])


@dataclass(frozen=True)
class AsStored:
    """The preparation for a device that decodes: a plain JPEG as it is; others are decoded already, and Pillow's."""

    by_pillow: BytePreprocessor

    def __call__(self, picture: Image | Encoded) -> ImageInputs | Encoded:
        """What the device gets."""
        return picture if isinstance(picture, Encoded) else self.by_pillow.prepare(picture)


@dataclass(frozen=True)
class LibraryPreprocessor:
    """Any image processor of transformers, in one step; some give a model more than pixels."""

    processor: Any

    def prepare(self, image: Image) -> ImageInputs:
        """All arrays that the processor returns."""
        arrays = self.processor(images=image.convert("RGB"), return_tensors="np")
        return {name: arrays[name][0] for name in arrays}

    def pixels(self, image: Image) -> Array:
        """The numbers of a picture; none where the model gets more than pixels."""
        inputs = self.prepare(image)
        return inputs["pixel_values"] if set(inputs) == {"pixel_values"} else np.empty(0)

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


# ── how the papers prepared pictures, where that was not the model's own way ─────────────────────────────────────────


def with_unibench_pixels(card: ModelCard, pixels: Callable[[Image], Any]) -> ModelCard:
    """The card with the answer to UniBench's rows: OpenAI's pixels in the model's size, whatever the card's name is.

    UniBench gave them to all its models (facebookresearch/unibench, models_zoo/wrappers/base.py@184f4df).
    `pixels` makes the numbers (3, side, side) of a picture as the model usually sees it. Where these are OpenAI's
    already, the answer names no others, so that vectors are shared with other tasks. A model that takes pictures of
    several shapes has no answer.
    """
    shape = np.shape(pixels(_noise(64, 48)))
    if len(shape) != 3 or shape[0] != 3 or shape[1] != shape[2]:
        return card
    side = shape[1]
    # Crops by 3 and by 1 pixel are rounded otherwise by torchvision than by transformers; the others are resized, too.
    samples = [_noise(*size) for size in ((side, side + 3), (side + 1, side), (2 * side + 1, side), (side, 3 * side))]
    own = [pixels(sample) for sample in samples]
    if any(np.shape(numbers) != shape for numbers in own):
        return card
    papers = [openai_pixels(sample, side) for sample in samples]
    differs = any(not np.allclose(a, b, atol=1e-3) for a, b in zip(own, papers, strict=True))
    stated = {name: value for name, value in card.styles.get(UNIBENCH, {}).items() if name != "pixels"}
    answer = {**stated, **({"pixels": f"{OPENAI}{side}"} if differs else {})}
    return replace(card, styles={**card.styles, UNIBENCH: answer})


def _noise(width: int, height: int) -> Image:
    from PIL import Image as pillow

    return pillow.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8))


def styled_preparations(card: ModelCard) -> dict[str, Callable[[Image], ImageInputs]]:
    """The preparations that a card's answers to styles name, which are also the modes of such pictures."""
    names = {answer["pixels"] for answer in card.styles.values() if "pixels" in answer}
    return {name: _preparation(card, name) for name in names}


def _preparation(card: ModelCard, name: str) -> Callable[[Image], ImageInputs]:
    side = name.removeprefix(OPENAI)
    if not side.isdigit() or side == name:
        raise EmbarkError(f"The card of {card.name} names pixels '{name}'; known are {OPENAI}SIDE, as in {OPENAI}224.")
    return partial(_openai_inputs, side=int(side))


def _openai_inputs(image: Image, side: int) -> ImageInputs:
    return {"pixel_values": openai_pixels(image, side)}


def openai_pixels(image: Image, side: int) -> Array:
    """(3, side, side) as UniBench prepares all pictures: the shorter side resized (bicubic), the middle cut out, scaled
    by OpenAI's mean and standard deviation. The crop's corner is rounded as torchvision rounds it.
    """
    from PIL import Image as pillow

    resized = Fit(side, None, pillow.Resampling.BICUBIC)(image if image.mode == "RGB" else image.convert("RGB"))
    left, top = (round((length - side) / 2) for length in resized.size)
    pixels = np.asarray(resized.crop((left, top, left + side, top + side)), np.float32) / 255
    numbers = (pixels - np.array(CLIP_MEAN, np.float32)) / np.array(CLIP_SPREAD, np.float32)
    return np.ascontiguousarray(numbers.transpose(2, 0, 1))


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
