"""Pictures on the device: the same code on the CPU, with Pillow where a GPU has nvJPEG."""

from __future__ import annotations

import ctypes
import io
import shutil
import sys
from collections.abc import Sequence
from ctypes.util import find_library
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from device_pictures import MODEL, PILLOW, VALUES, StandIn, damaged, jpeg, means
from embark.items.upright import TURNS
from embark.models import device_pixels, get_model, nvjpeg
from embark.models.device_pixels import DevicePixels, fits_device, on_gpu
from embark.models.encoder import CUDA_PIXELS, Towers, UnreadableRows, cuda_pixels
from embark.models.loading import Loading
from embark.models.pixel_towers import pixel_towers
from embark.models.pixels import BytePreprocessor, Fit
from embark.protocol import vector_space
from embark.types import Content, EmbarkError, Encoded, ModelCard
from tiny import picture

torch = pytest.importorskip("torch")
LIBRARIES = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


def by_pillow(*jpegs: Encoded) -> Any:
    images = [Image.open(io.BytesIO(jpeg.data)).convert("RGB") for jpeg in jpegs]
    turned = [
        image.transpose(TURNS[jpeg.orientation]) if jpeg.orientation in TURNS else image
        for image, jpeg in zip(images, jpegs, strict=True)
    ]
    return PILLOW.batch([PILLOW.prepare(image) for image in turned], MODEL)["pixel_values"]


def pixels(rows: Sequence[Any], stand_in: StandIn | None = None) -> Any:
    return DevicePixels(PILLOW, stand_in or StandIn()).batch(rows, MODEL)["pixel_values"]


def test_pictures_are_those_of_pillow_also_turned() -> None:
    jpegs = [jpeg(at, (20 + 3 * at, 31), orientation) for at, orientation in enumerate(range(1, 9))]
    assert torch.equal(pixels(jpegs), by_pillow(*jpegs))


def test_what_is_no_jpeg_shares_a_batch() -> None:
    made = DevicePixels(PILLOW, StandIn())
    first, second = jpeg(1), jpeg(2, (25, 60))
    drawing = made.prepare(picture(3, (33, 21), "RGBA"))
    styled = {"pixel_values": np.ones((3, 16, 19), np.float32)}
    rows = [drawing, made.prepare(first), styled, made.prepare(second)]
    found = pixels(rows)
    assert torch.equal(found[[1, 3]], by_pillow(first, second))
    assert torch.equal(found[0], PILLOW.batch([drawing], MODEL)["pixel_values"][0])
    assert (found[2] == 1).all()
    assert torch.equal(pixels([drawing]), found[:1])


def test_a_refused_picture_is_decoded_by_pillow_and_the_others_as_ever() -> None:
    jpegs = [jpeg(at, orientation=6 if at == 5 else 1) for at in range(9)]
    stand_in = StandIn(jpegs[5])
    assert torch.equal(pixels(jpegs, stand_in), by_pillow(*jpegs))
    assert stand_in.batches[0] == 9
    assert len(stand_in.batches) < 9  # by halves, not one by one


def test_pictures_that_nobody_reads_are_named() -> None:
    rows = [jpeg(0), damaged(1), PILLOW.prepare(picture(2, (9, 9))), jpeg(3), damaged(4)]
    with pytest.raises(UnreadableRows) as error:
        pixels(rows)
    assert error.value.rows.keys() == {1, 4}
    assert "does not decode" in error.value.rows[1]


def test_other_errors_of_the_device_are_not_of_a_picture() -> None:
    def full(jpegs: Sequence[Encoded], fit: Fit, values: Any) -> Any:
        raise MemoryError("out of memory")

    with pytest.raises(MemoryError):
        DevicePixels(PILLOW, full).batch([jpeg(0), jpeg(1)], MODEL)


def test_as_many_at_a_time_as_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_pixels, "MOST_PIXELS", 3000)
    stand_in = StandIn()
    jpegs = [jpeg(at, (40, 30)) for at in range(5)] + [jpeg(5, (100, 50))]
    assert torch.equal(pixels(jpegs, stand_in), by_pillow(*jpegs))
    assert stand_in.batches == [2, 2, 1, 1]


def test_half_precision() -> None:
    model = torch.zeros(1, dtype=torch.bfloat16)
    rows = [jpeg(0), jpeg(1)]
    found = DevicePixels(PILLOW, StandIn()).batch(rows, model)["pixel_values"]
    assert torch.equal(found, by_pillow(*rows).to(torch.bfloat16))


# ── which models have it ─────────────────────────────────────────────────────────────────────────────────────────────


def test_which_preprocessing_fits() -> None:
    assert fits_device(PILLOW)
    assert fits_device(BytePreprocessor(Fit((9, 9), None, 2), VALUES))
    assert not fits_device(BytePreprocessor(Fit(9, None, 2), VALUES))  # sizes of its pictures differ
    assert not fits_device(BytePreprocessor(lambda image: image, VALUES))
    assert not fits_device(object())


def test_without_cuda() -> None:
    with pytest.raises(EmbarkError, match="CUDA devices alone, and this is cpu"):
        on_gpu(PILLOW, torch.device("cpu"))
    with pytest.raises(EmbarkError, match=r"embark/pocket cannot have its pixels from a GPU: .* Use pixels pillow\."):
        get_model("embark/pocket", loading=Loading(pixels="cuda"))
    with pytest.raises(EmbarkError, match="no pixels 'gpu'; there are auto, pillow, cuda"):
        Loading(pixels="gpu")
    assert get_model("embark/pocket", loading=Loading(pixels="pillow")).card == get_model("embark/pocket").card


def test_a_processor_that_does_more_stays_on_the_cpu() -> None:
    transformers = pytest.importorskip("transformers")

    def towers(**options: Any) -> Towers:
        processor = transformers.CLIPImageProcessorPil(**options)
        model = pixel_towers(processor, MODEL, lambda pixel_values: pixel_values.mean((2, 3)))
        return Towers(ModelCard("tiny/x", "1", "own", ("image",)), model)

    with pytest.raises(EmbarkError, match="does more with pictures than resize"):
        cuda_pixels(towers(do_center_crop=False))  # pictures of several sizes
    with pytest.raises(EmbarkError, match="CUDA devices alone"):
        cuda_pixels(towers())


# ── an encoder with such a tower ─────────────────────────────────────────────────────────────────────────────────────


def test_other_pixels_are_another_vector_space() -> None:
    plain = means()
    other = cuda_pixels(plain)
    assert (plain.capabilities.encoded, other.capabilities.encoded) == (frozenset(), {"image"})
    assert (other.card.name, other.card.pixels) == ("tiny/means" + CUDA_PIXELS, "cuda")
    assert other.card.loaded == {"device": "cuda:0", "pixels": "cuda"}
    assert vector_space(other.card) != vector_space(plain.card) == vector_space(replace(plain.card, pixels="pillow"))
    assert plain.card.name == "tiny/means"


def test_rows_are_those_of_the_batch() -> None:
    encoder = cuda_pixels(means())
    text = Content("text", "abc")

    def item(*values: Any) -> Any:
        return encoder.prepare([text if value == "text" else Content("image", value) for value in values], "")

    sound = [item("text"), item(jpeg(0), "text"), item("text"), item(jpeg(1))]
    vectors = np.asarray(encoder.embed(sound))
    expected = by_pillow(jpeg(0), jpeg(1)).mean((2, 3)).numpy()
    assert np.allclose(vectors[[1, 3]], expected + np.array([[3, 1, 0], [0, 0, 0]]))
    with pytest.raises(UnreadableRows) as error:
        encoder.embed([*sound, item("text", damaged(4))])
    assert list(error.value.rows) == [4]


def test_a_library_without_the_functions_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = find_library("m")
    if name is None:
        pytest.skip("there is no library to stand for another")
    path = Path(ctypes.CDLL(name)._name)
    real = next((folder / path for folder in map(Path, LIBRARIES) if (folder / path).exists()), None)
    if real is None:
        pytest.skip("the library is somewhere else")
    (tmp_path / "torchvision.libs").mkdir()
    shutil.copy(real, tmp_path / "torchvision.libs" / "libnvjpeg.1.so.12")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    nvjpeg.library.cache_clear()
    try:
        with pytest.raises(EmbarkError, match="nvJPEG is not installed"):
            nvjpeg.library()
    finally:
        nvjpeg.library.cache_clear()
