"""Pictures on their way to a model: resized and cropped as bytes by the workers, made numbers of on the model's device.

Pillow works on bytes while other threads run, and bytes are a quarter of what float32 takes to stack and to move. The
numbers are the image processor's own, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embark.models.device import stack
from embark.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

Prepared = dict[str, Array]  # of one picture, by the names of the model's arguments
PLAIN = {  # classes of transformers that resize, crop, and make of each byte a number of its own; nothing else
    f"{name}ImageProcessorPil" for name in ("Bit", "Blip", "ChineseCLIP", "CLIP", "EfficientNet", "Siglip", "ViT")
}
SIZES = {"shortest_edge"}, {"height", "width"}  # how they may say to which size


def pixels(processor: Any) -> Pixels | Processed:
    """What an image processor makes of pictures; in the library's own way where it does more than the plain ones."""
    return Pixels(_fit(processor), _tones(processor)) if _plain(processor) else Processed(processor)


@dataclass(frozen=True)
class Pixels:
    """`fit` gives an RGB picture its size; `tones` (3, 256) are what a byte of each channel becomes."""

    fit: Callable[[Image], Image]
    tones: Array

    def prepare(self, image: Image) -> Prepared:
        """The bytes that the model will see: (height, width, 3)."""
        return {"pixel_values": np.asarray(self.fit(image if image.mode == "RGB" else image.convert("RGB")))}

    def batch(self, rows: Sequence[Prepared], model: Any) -> dict[str, Any]:
        """(rows, 3, height, width) where the model is and in its precision, by the name of the model's argument."""
        import torch

        values = stack([row["pixel_values"] for row in rows], model)
        tones = torch.from_numpy(self.tones).to(model.device, model.dtype)
        return {"pixel_values": torch.stack([tones[at][values[..., at].int()] for at in range(3)], dim=1)}


@dataclass(frozen=True)
class Processed:
    """Any image processor of transformers, in one step; some give a model more than pixels."""

    processor: Any

    def prepare(self, image: Image) -> Prepared:
        """All that the processor makes of it."""
        made = self.processor(images=image.convert("RGB"), return_tensors="np")
        return {name: made[name][0] for name in made}

    def batch(self, rows: Sequence[Prepared], model: Any) -> dict[str, Any]:
        """The same of all of them, where the model is."""
        return {name: stack([row[name] for row in rows], model) for name in rows[0]}


@dataclass(frozen=True)
class Fit:
    """Resize, then cut out the middle, as image processors do it; sides are (height, width).

    `size` is that of the shorter side, or both sides. A picture smaller than `crop` gets a black border.
    """

    size: int | tuple[int, int] | None
    crop: tuple[int, int] | None
    resample: int

    def __call__(self, image: Image) -> Image:
        """The picture in its new size."""
        if isinstance(self.size, int):
            short = min(image.size)
            width, height = (int(self.size * side / short) for side in image.size)
            image = image.resize((width, height), self.resample)
        elif self.size:
            image = image.resize(self.size[::-1], self.resample)
        if self.crop:
            height, width = self.crop
            left, top = (image.width - width) // 2, (image.height - height) // 2
            image = image.crop((left, top, left + width, top + height))
        return image


def _plain(processor: Any) -> bool:
    """Whether the class is one of the plain ones, and its options ask for nothing that `Fit` does not know."""
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


def _tones(processor: Any) -> Array:
    """What the processor itself makes of every byte, so that no sum of ours can differ from its."""
    from PIL import Image

    ramp = Image.fromarray(np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2))
    made = processor(images=ramp, do_resize=False, do_center_crop=False, return_tensors="np")["pixel_values"]
    return np.asarray(made[0][:, 0], np.float32)
