"""Pictures for models that decode them on a device, with Pillow in the place of nvJPEG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embark.items.jpeg import plain_jpeg
from embark.models import resampling
from embark.models.device_pixels import DevicePixels, open_picture, upright
from embark.models.encoder import Tower, Towers
from embark.models.nvjpeg import JpegsRefused
from embark.models.pixels import BytePreprocessor, Fit
from embark.types import Encoded, ModelCard
from tiny import picture

torch = pytest.importorskip("torch")

MODEL = torch.zeros(1)  # stands where a model stands: it has a device and a precision
VALUES = np.linspace(-2, 2, 768, dtype=np.float32).reshape(256, 3).T  # in Fortran's order
PILLOW = BytePreprocessor(Fit(17, (16, 19), 3), VALUES)


def jpeg(at: int, size: tuple[int, int] = (40, 30), orientation: int = 1, **options: Any) -> Encoded:
    out = io.BytesIO()
    picture(at, size).convert("RGB").save(out, "JPEG", **options)
    encoded = plain_jpeg(out.getvalue(), orientation)
    assert encoded is not None
    return encoded


def damaged(at: int) -> Encoded:
    """Sound from its header to its end, but its codes mean nothing."""
    data = bytearray(jpeg(at).data)
    tables = data.index(b"\xff\xc4")
    data[tables + 5 : tables + 21] = b"\xff" * 16
    encoded = plain_jpeg(bytes(data))
    assert encoded is not None
    return encoded


class StandIn:
    """Pillow in the place of nvJPEG; refuses what it does not read, and the pictures of `refused`."""

    def __init__(self, *refused: Encoded) -> None:
        self.refused = refused
        self.batches: list[int] = []

    def __call__(self, jpegs: Sequence[Encoded], fit: Fit, values: Any) -> Any:
        self.batches.append(len(jpegs))
        try:
            if any(jpeg in self.refused for jpeg in jpegs):
                raise OSError
            pictures = [open_picture(jpeg.data) for jpeg in jpegs]
        except OSError as error:
            raise JpegsRefused("as nvJPEG") from error
        return resampling.resize(upright(pictures, jpegs), fit, values)


def means(stand_in: StandIn | None = None) -> Towers:
    """An encoder of pictures that can have its pixels from the stand-in."""

    def tower(preprocessor: Any) -> Tower:
        def embed(rows: list[Any]) -> Any:
            return preprocessor.batch(rows, MODEL)["pixel_values"].mean((2, 3)).numpy()

        return Tower(embed, preprocessor.prepare)

    image = replace(tower(PILLOW), on_cuda=lambda: tower(DevicePixels(PILLOW, stand_in or StandIn())))
    words = Tower(lambda texts: np.array([[len(text), 1, 0] for text in texts], np.float32))
    card = ModelCard("tiny/means", "1", "own", ("text", "image"), 3, fusion="sum", loaded={"device": "cuda:0"})
    return Towers(card, {"image": image, "text": words})
