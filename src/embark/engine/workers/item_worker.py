"""What a worker process does with an item: decoding, and the encoder's own CPU work; it imports as little as it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageFile

from embark.items.decoding import UnreadableMedia, decode
from embark.types import Modality, Part

if TYPE_CHECKING:
    from embark.models.encoder import Preparation


@dataclass(frozen=True)
class RenderedItem:
    """What travels to a process: parts as the model will see them, the mode, the frames of a video."""

    parts: tuple[Part, ...]
    mode: str
    frames: int


@dataclass(frozen=True)
class PillowOptions:
    """What a process lets Pillow decode: the same files shall be readable in all of them."""

    most_pixels: int | None
    truncated: bool

    @staticmethod
    def of_this_process() -> PillowOptions:
        return PillowOptions(Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)

    def apply(self) -> None:
        Image.MAX_IMAGE_PIXELS = self.most_pixels
        ImageFile.LOAD_TRUNCATED_IMAGES = self.truncated


def item_worker(
    preparation: Preparation,
    sample_rate: int,
    encoded: frozenset[Modality] = frozenset(),
    options: PillowOptions | None = None,
) -> Callable[[RenderedItem], Any]:
    """As `engine.preparing.prepare` without the encoder; returns the error that an item is unreadable."""
    if options:
        options.apply()

    def work(item: RenderedItem) -> Any:
        try:
            contents = decode(item.parts, item.frames, sample_rate, frozenset() if item.mode else encoded)
            return preparation(contents, item.mode)
        except UnreadableMedia as error:
            return UnreadableMedia(str(error))

    return work
