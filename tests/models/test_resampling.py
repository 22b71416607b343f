"""Resizing and colors by torch: the bytes of Pillow and its libjpeg, whatever the filter, the size and the batch."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any

import numpy as np
import PIL
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from embark.models.jpeg_colors import rgb
from embark.models.pixels import Fit
from embark.models.resampling import plan, resize, resized_bytes
from embark.types import Encoded

torch = pytest.importorskip("torch")

PILLOW = tuple(int(number) for number in PIL.__version__.split(".")[:1])
sides = st.integers(1, 70)
fits = st.builds(
    Fit,
    st.one_of(st.integers(1, 50), st.tuples(sides, sides), st.none()),
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.integers(0, 5),
)


def noise(size: tuple[int, int], seed: int = 0) -> Any:
    """Every byte for itself, many of them black or white: the sharpest edges."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    return np.where(rng.random(pixels.shape) < 0.5, np.uint8(255) * (pixels > 127), pixels)


@settings(deadline=None, max_examples=150)
@given(fits, st.tuples(st.integers(1, 130), st.integers(1, 130)), st.integers(0, 9))
def test_bytes_are_those_of_pillow(fit: Fit, size: tuple[int, int], seed: int) -> None:
    pixels = noise(size, seed)
    if plan(size, fit).down_first and PILLOW < (13,):
        return  # it began across then
    expected = np.asarray(fit(Image.fromarray(pixels)))
    found = resized_bytes([torch.from_numpy(pixels).permute(2, 0, 1)], fit)[0]
    assert np.array_equal(found.permute(1, 2, 0), expected)


@pytest.mark.parametrize("resample", [1, 2, 3])
@pytest.mark.parametrize("size", [(320, 240), (150, 600)])
def test_true_sizes(size: tuple[int, int], resample: int) -> None:
    pixels = noise(size)
    for fit in (Fit(112, (112, 112), resample), Fit((112, 112), None, resample)):
        if plan(size, fit).down_first and PILLOW < (13,):
            continue
        found = resized_bytes([torch.from_numpy(pixels).permute(2, 0, 1)], fit)[0]
        assert np.array_equal(found.permute(1, 2, 0), np.asarray(fit(Image.fromarray(pixels))))


def test_pictures_do_not_depend_on_their_batch() -> None:
    fit = Fit(20, (24, 18), 3)
    pictures = [torch.from_numpy(noise(size)).permute(2, 0, 1) for size in [(50, 40), (9, 80), (50, 40), (3, 3)]]
    values = torch.linspace(-2, 2, 768).view(3, 256)
    together = resize(pictures, fit, values)
    assert together.shape == (4, 3, 24, 18)
    for picture, found in zip(pictures, together, strict=True):
        assert torch.equal(resize([picture], fit, values)[0], found)
        assert torch.equal(resize([picture.contiguous()], fit, values)[0], found)


def planes_of(data: bytes) -> Any:
    """Planes Y, Cb and Cr of a JPEG of 4:2:0, as libjpeg decodes them: at half the size, it has no color to enlarge."""

    def at(size: tuple[int, int]) -> Any:
        image = Image.open(io.BytesIO(data))
        image.draft("YCbCr", size)
        return np.asarray(image).transpose(2, 0, 1)

    width, height = Image.open(io.BytesIO(data)).size
    planes = at((width, height)).copy()
    half = at((width // 2, height // 2))
    planes[1:] = 0
    planes[1:, : half.shape[1], : half.shape[2]] = half[1:]
    return torch.from_numpy(planes)


@settings(deadline=None, max_examples=60)
@given(st.tuples(st.integers(2, 70), st.integers(2, 70)), st.integers(30, 100), st.booleans())
def test_colors_are_those_of_libjpeg(size: tuple[int, int], quality: int, smooth: bool) -> None:
    image = Image.fromarray(noise(size))
    if smooth:
        image = image.resize((max(1, size[0] // 6), max(1, size[1] // 6))).resize(size, Image.Resampling.BICUBIC)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, subsampling=2)
    [picture] = rgb([planes_of(out.getvalue())], [Encoded(out.getvalue(), size, (2, 2))])
    assert np.array_equal(picture.permute(1, 2, 0), np.asarray(Image.open(out)))


def test_colors_of_full_planes_and_of_grey() -> None:
    image = Image.fromarray(noise((37, 21)))
    out = io.BytesIO()
    image.save(out, "JPEG", subsampling=0)
    stored = Image.open(io.BytesIO(out.getvalue()))
    stored.draft("YCbCr", stored.size)
    planes = torch.from_numpy(np.array(stored)).permute(2, 0, 1)
    full, grey = (Encoded(b"", (37, 21), sampling) for sampling in ((1, 1), (0, 0)))
    colored, plain = rgb([planes, planes], [full, grey])
    assert np.array_equal(colored.permute(1, 2, 0), np.asarray(Image.open(out)))
    assert all(torch.equal(channel, planes[0]) for channel in plain)


@pytest.mark.slow  # without a GPU, Triton's interpreter runs the kernels, one number after the other
def test_the_kernels_make_the_same_numbers() -> None:
    """In a process of its own: Triton decides when it is first imported whether it interprets."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    code = "from models.test_resampling import run_kernels; run_kernels()"
    process = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr


def run_kernels() -> None:
    """Pixels by the kernels, held against those by torch's operations."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    from embark.models import pixels_cuda
    from embark.models.device_pixels import upright

    rng = np.random.default_rng(1)
    values = torch.arange(768.0).view(3, 256)
    for fit in (Fit(9, (9, 12), 3), Fit((11, 8), None, 2), Fit(20, (30, 13), 0)):
        sizes = [(int(width), int(height)) for width, height in rng.integers(1, 50, (6, 2))]
        samplings = [(1, 1), (2, 1), (2, 2), (0, 0), (2, 2), (2, 1)]
        turns = rng.integers(1, 9, 6).tolist()
        jpegs = [Encoded(b"", *facts) for facts in zip(sizes, samplings, turns, strict=True)]
        planes = [torch.from_numpy(rng.integers(0, 256, (3, *size[::-1]), dtype=np.uint8)) for size in sizes]
        lengths = np.array([plane.numel() for plane in planes])
        flat = torch.cat([plane.reshape(-1) for plane in planes])
        found = pixels_cuda.pixels(flat.to(device), np.cumsum(lengths) - lengths, jpegs, fit, values.to(device))
        assert torch.equal(found.cpu(), resize(upright(rgb(planes, jpegs), jpegs), fit, values))
