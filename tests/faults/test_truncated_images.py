"""A picture that is cut off or damaged is unreadable, and says so."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from embark.items import decoding
from embark.types import Media


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_truncated_image_is_unreadable(kind: str, part: float) -> None:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(out, kind)
    whole = out.getvalue()
    decoding.decode([Media("image", (whole,))], 8, 16_000)
    with pytest.raises(decoding.UnreadableMedia, match=r"image of .* bytes does not decode"):
        decoding.decode([Media("image", (whole[: int(len(whole) * part)],))], 8, 16_000)
