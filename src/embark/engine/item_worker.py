"""What a worker process does with an item: decoding, and the encoder's own CPU work; it imports as little as it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embark.data.media import UnreadableMedia, decode
from embark.types import Modality, Part

if TYPE_CHECKING:
    from embark.models.encoder import Preparation


@dataclass(frozen=True)
class RenderedItem:
    """What travels to a process: parts as the model will see them, the mode, the frames of a video."""

    parts: tuple[Part, ...]
    mode: str
    frames: int


def item_worker(
    preparation: Preparation, sample_rate: int, encoded: frozenset[Modality] = frozenset()
) -> Callable[[RenderedItem], Any]:
    """As `engine.preparing.prepare` without the encoder; returns the error that an item is unreadable."""

    def work(item: RenderedItem) -> Any:
        try:
            contents = decode(item.parts, item.frames, sample_rate, frozenset() if item.mode else encoded)
            return preparation(contents, item.mode)
        except UnreadableMedia as error:
            return UnreadableMedia(str(error))

    return work
