"""Towers of images and videos for models whose image processor is one of transformers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from embark.models.device import to_numpy, without_gradients
from embark.models.device_pixels import DevicePixels, fits_device, on_gpu
from embark.models.encoder import Tower, frame_mean
from embark.models.graphs import Graphs
from embark.models.pixels import BytePreprocessor, LibraryPreprocessor, image_preprocessor, styled_preparations
from embark.types import Array, Modality, ModelCard


def pixel_towers(
    processor: Any, model: Any, forward: Callable[..., Any], card: ModelCard | None = None
) -> dict[Modality, Tower]:
    """The towers of images and videos; `forward` takes the processor's arrays of a batch, by name, to vectors.

    With a card, also the preparations that its answers to styles name.
    """
    preprocessor = image_preprocessor(processor)
    styled = styled_preparations(card) if card else {}

    def tower(
        preprocessor: BytePreprocessor | LibraryPreprocessor | DevicePixels, forward: Callable[..., Any]
    ) -> Tower:
        @without_gradients
        def embed(rows: list[Any]) -> Array:
            return to_numpy(forward(**preprocessor.batch(rows, model)))

        return Tower(embed, preprocessor.prepare, styled)

    def on_cuda() -> Tower:
        assert isinstance(preprocessor, BytePreprocessor)
        on_device = on_gpu(preprocessor, model.device)
        graphs = Graphs(lambda pixels: forward(pixel_values=pixels), model)
        return tower(on_device, lambda pixel_values: graphs(pixel_values))

    image = replace(tower(preprocessor, forward), on_cuda=on_cuda if fits_device(preprocessor) else None)
    return {"image": image, "video": frame_mean(image)}
