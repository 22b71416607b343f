"""The two steps of our own make the very pixels that transformers' image processors make in one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from embark.models.device import stack
from embark.models.pixels import BytePreprocessor, Fit, LibraryPreprocessor, image_preprocessor, openai_pixels
from tiny import picture

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SQUARE, EDGE, WIDE = {"height": 17, "width": 17}, {"shortest_edge": 17}, {"height": 9, "width": 20}
MODEL = torch.zeros(1)  # stands where a model stands: it has a device and a precision
PROCESSORS = {
    "clip": ("CLIP", {"size": EDGE, "crop_size": SQUARE}),
    "clip, crop larger": ("CLIP", {"size": {"shortest_edge": 8}, "crop_size": {"height": 13, "width": 20}}),
    "clip, crop of one number": ("CLIP", {"size": 16, "crop_size": 15, "resample": 1}),
    "clip, no resize": ("CLIP", {"do_resize": False, "crop_size": SQUARE}),
    "chinese clip": ("ChineseCLIP", {"size": SQUARE, "do_center_crop": False}),
    "siglip": ("Siglip", {"size": WIDE}),
    "siglip, bare": ("Siglip", {"size": WIDE, "do_rescale": False, "do_normalize": False}),
    "siglip, not normalized": ("Siglip", {"size": WIDE, "do_normalize": False, "rescale_factor": 1 / 127.5}),
    "blip": ("Blip", {"size": SQUARE}),
    "vit": ("ViT", {"size": SQUARE, "image_mean": 0.3, "image_std": 0.2}),
    "vit, crop": ("ViT", {"size": EDGE, "do_center_crop": True, "crop_size": {"height": 16, "width": 14}}),
    "dino": ("Bit", {"size": {"shortest_edge": 20}, "crop_size": SQUARE, "resample": 2}),
    "align": ("EfficientNet", {"size": SQUARE, "do_center_crop": True, "crop_size": {"height": 14, "width": 14}}),
    "efficientnet": ("EfficientNet", {"size": SQUARE, "include_top": False, "rescale_offset": True}),
}
SHAPES = [(1, 1), (1, 50), (50, 1), (3, 200), (120, 7), (17, 17), (16, 16), (18, 35), (8, 9), (64, 48), (301, 203)]
PICTURES = [picture(at, shape, mode) for at, shape in enumerate(SHAPES) for mode in ("RGB", "RGBA", "L")]


def processor(name: str, **more: Any) -> Any:
    kind, told = PROCESSORS[name]
    return getattr(transformers, f"{kind}ImageProcessorPil")(**{**told, **more})


def by_the_library(library: Any, image: Image.Image, **settings: Any) -> Any:
    return library(images=image.convert("RGB"), return_tensors="np", **settings)["pixel_values"][0]


@pytest.mark.parametrize("name", PROCESSORS)
def test_plain_processors_in_two_steps(name: str) -> None:
    library = processor(name)
    look = image_preprocessor(library)
    assert isinstance(look, BytePreprocessor)
    unscaled = {"do_rescale": False, "do_normalize": False}
    unscaled |= {"include_top": False} if "EfficientNet" in PROCESSORS[name] else {}
    for image in PICTURES:
        ready = look.prepare(image)
        assert ready["pixel_values"].dtype == np.uint8
        assert np.array_equal(ready["pixel_values"].transpose(2, 0, 1), by_the_library(library, image, **unscaled))
        assert np.array_equal(look.batch([ready], MODEL)["pixel_values"][0], by_the_library(library, image))


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_any_size_is_fitted_as_the_library_does(width: int, height: int, edge: int, high: int, wide: int) -> None:
    library = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": edge}, crop_size={"height": high, "width": wide}, do_rescale=False, do_normalize=False
    )
    image = picture(width, (width, height))
    ours = np.asarray(Fit(edge, (high, wide), 3)(image)).transpose(2, 0, 1)
    assert np.array_equal(ours, by_the_library(library, image))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_batches_have_the_models_precision(dtype: str) -> None:
    library, model = processor("clip"), torch.zeros(1, dtype=getattr(torch, dtype))
    look = image_preprocessor(library)
    [(name, values)] = look.batch([look.prepare(image) for image in PICTURES], model).items()
    expected = np.stack([by_the_library(library, image) for image in PICTURES])
    assert (name, values.dtype) == ("pixel_values", model.dtype)
    assert torch.equal(values, torch.from_numpy(expected).to(model.dtype))


def special() -> list[Any]:
    """Processors that do more than the plain ones, by their class or by their settings."""
    clip = transformers.CLIPImageProcessorPil

    class Own(clip):  # type: ignore[misc,valid-type]
        """Of somebody else, who may do anything under a known name."""

    Own.__name__ = clip.__name__
    return [
        transformers.FlavaImageProcessorPil(size=SQUARE, crop_size=SQUARE),
        transformers.Siglip2ImageProcessorPil(patch_size=4, max_num_patches=12),
        clip(size={"shortest_edge": 8, "longest_edge": 17}, crop_size=SQUARE),
        transformers.SiglipImageProcessorPil(size=SQUARE, do_pad=True, pad_size={"height": 20, "width": 20}),
        Own(size=EDGE, crop_size=SQUARE),
    ]


@pytest.mark.parametrize("at", range(5), ids=["flava", "naflex", "longest edge", "padding", "own class"])
def test_other_processors_are_left_to_the_library(at: int) -> None:
    library = special()[at]
    look = image_preprocessor(library)
    assert isinstance(look, LibraryPreprocessor)
    some = PICTURES[-3:]
    seen = look.batch([look.prepare(image) for image in some], MODEL.bfloat16())
    expected = library(images=[image.convert("RGB") for image in some], return_tensors="pt")
    assert seen.keys() == expected.keys()
    for name, values in seen.items():
        assert torch.equal(values, expected[name].bfloat16() if name == "pixel_values" else expected[name])


def test_stacks_take_arrays_and_tensors() -> None:
    bytes_, half = np.arange(6, dtype=np.uint8).reshape(2, 3), torch.zeros(1, dtype=torch.bfloat16)
    assert torch.equal(stack([bytes_, bytes_ + 1], half)[1], torch.arange(1, 7, dtype=torch.uint8).reshape(2, 3))
    assert torch.equal(stack([torch.ones(2), torch.zeros(2)], half), torch.tensor([[1, 1], [0, 0]]).bfloat16())


# ── how UniBench prepared all pictures ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("image", PICTURES[9:], ids=lambda image: f"{image.size}-{image.mode}")
def test_unibenchs_pixels_are_those_of_its_transforms(image: Image.Image) -> None:
    """Resize(17, bicubic), CenterCrop(17), ToTensor, Normalize of torchvision, written out; SigLIP and CLIPA have other
    pixels, which protocol `native` shows them.
    """
    side = 17
    shorter = min(image.size)
    wide, high = (int(side * length / shorter) for length in image.size)
    resized = image.convert("RGB").resize((wide, high), Image.Resampling.BICUBIC)
    top, left = round((high - side) / 2.0), round((wide - side) / 2.0)
    crop = np.asarray(resized)[top : top + side, left : left + side].astype(np.float32) / 255
    mean, spread = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    expected = ((crop - np.float32(mean)) / np.float32(spread)).transpose(2, 0, 1)
    assert np.allclose(openai_pixels(image, side), expected, atol=1e-6)


def test_pictures_of_a_style_and_others_share_a_batch() -> None:
    look = image_preprocessor(processor("siglip", size=SQUARE))
    assert isinstance(look, BytePreprocessor)
    image = picture(4, (30, 21))
    own = look.prepare(image)
    styled = {"pixel_values": openai_pixels(image, 17)}
    mixed = look.batch([own, styled], MODEL)["pixel_values"]
    assert np.array_equal(mixed[0], look.batch([own], MODEL)["pixel_values"][0])
    assert np.array_equal(mixed[1], styled["pixel_values"])
