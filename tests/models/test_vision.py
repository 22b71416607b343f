"""Models of images alone: their vectors are their libraries' own, and texts are not theirs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embark.models import MODELS, find_card, get_model
from embark.models.encoder import unit
from embark.models.loading import Loading
from embark.models.vision import load_dino, load_timm
from embark.types import EmbarkError
from tiny import check_without_weights, film, one_by_one, picture, same, saved, vectors

PICTURES = (picture(0), picture(1, (33, 70)), picture(2, (64, 64)), picture(3, mode="L"), picture(4, mode="RGBA"))

# ── transformers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def dino_config(kind: str) -> Any:
    from transformers import AutoConfig

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
    more = {"intermediate_size": 32, "num_register_tokens": 2} if kind == "dinov3_vit" else {"mlp_ratio": 2}
    return AutoConfig.for_model(kind, **sizes, **more)


@pytest.fixture(scope="module", params=["dinov2", "dinov2_with_registers", "dinov3_vit"])
def dino(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import AutoModel, BitImageProcessorPil

    torch.manual_seed(0)
    processor = BitImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 28, "width": 28}, resample=3, image_mean=[0.485, 0.456, 0.406]
    )
    model = AutoModel.from_config(dino_config(request.param))
    return saved(tmp_path_factory.mktemp("vision") / request.param, model, processor)


def test_dino_is_the_class_token(dino: Path) -> None:
    import torch
    from transformers import AutoImageProcessor, AutoModel

    model = get_model(str(dino), loading=Loading(device="cpu"))
    assert (model.card.loader, model.card.dim, model.card.modalities) == ("dino", 16, ("image", "video"))
    processor = AutoImageProcessor.from_pretrained(dino, backend="pil")
    pixels = processor(images=[each.convert("RGB") for each in PICTURES], return_tensors="pt")
    with torch.no_grad():
        wanted = AutoModel.from_pretrained(dino).eval()(**pixels).last_hidden_state[:, 0]
    assert same(vectors(model, PICTURES), wanted)
    assert same(one_by_one(model, PICTURES), wanted)


def test_pictures_are_prepared_without_weights(dino: Path) -> None:
    check_without_weights(str(dino), PICTURES)


def test_dino_films_are_the_mean_of_their_frames(dino: Path) -> None:
    model, frames = get_model(str(dino), loading=Loading(device="cpu")), film(frames=3)
    assert same(vectors(model, [frames]), unit(unit(vectors(model, frames)).sum(0, keepdims=True)), 1e-5)


def test_the_card_is_checked_against_the_checkpoint(dino: Path) -> None:
    with pytest.raises(EmbarkError, match="makes vectors of 16 dimensions; its card says 384"):
        load_dino(replace(find_card(str(dino)), dim=384), Loading(device="cpu"))


def test_other_model_types_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "resnet"}')
    with pytest.raises(EmbarkError, match="of model type 'resnet'; this loader knows dinov2"):
        get_model(f"dino:{tmp_path}", loading=Loading(device="cpu"))


# ── timm ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def timm(torchvision: Any) -> Any:
    return pytest.importorskip("timm")


@pytest.fixture(scope="module")
def folder(timm: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as timm writes them, of timm's own tiny model with a classifier of seven classes."""
    import torch

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("timm") / "tiny"
    timm.models.save_for_hf(timm.create_model("test_vit", num_classes=7), made, safe_serialization=True)
    return made


def test_timm_features_are_the_library_s(timm: Any, folder: Path) -> None:
    import torch

    library = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(library), is_training=False)
    model = get_model(str(folder), loading=Loading(device="cpu"))
    assert (model.card.loader, model.card.dim, model.card.modalities) == ("timm", 64, ("image", "video"))
    with torch.no_grad():
        wanted = library(torch.stack([transform(each.convert("RGB")) for each in PICTURES]))
    assert same(vectors(model, PICTURES), wanted)
    assert same(one_by_one(model, PICTURES), wanted)


def test_timm_films_are_the_mean_of_their_frames(folder: Path) -> None:
    model, frames = get_model(f"timm:{folder}", loading=Loading(device="cpu")), film(frames=3)
    assert same(vectors(model, [frames]), unit(unit(vectors(model, frames)).sum(0, keepdims=True)), 1e-5)


def test_bare_weights_need_an_architecture(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    card = find_card(f"timm:{tmp_path}")
    with pytest.raises(EmbarkError, match="states no architecture"):
        load_timm(card, Loading(device="cpu"))
    bare = load_timm(replace(card, options={"architecture": "test_vit"}), Loading(device="cpu"))
    assert same(vectors(bare, PICTURES), vectors(get_model(str(folder), loading=Loading(device="cpu")), PICTURES))


def test_weights_that_do_not_fit_are_an_error(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    first = state.pop("cls_token")
    card = replace(find_card(f"timm:{tmp_path}"), options={"architecture": "test_vit"})
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(EmbarkError, match="lacks 1 weights of its model, the first is cls_token"):
        load_timm(card, Loading(device="cpu"))
    save_file({**state, "cls_token": first[..., :3].clone()}, tmp_path / "model.safetensors")
    with pytest.raises(EmbarkError, match=r"does not fit its model .*cls_token"):
        load_timm(card, Loading(device="cpu"))


def test_timm_knows_the_architectures_of_the_cards(timm: Any) -> None:
    for card in (card for card in MODELS.values() if card.loader == "timm"):
        assert timm.is_model(card.options["architecture"]), card.name
