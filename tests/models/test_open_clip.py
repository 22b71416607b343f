"""open_clip: sources are understood without the library; with it, our vectors are the library's own."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.items.decoding import decode
from embark.models import MODELS, find_card, get_model
from embark.models.encoder import render_item, unit
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD
from embark.models.interop import from_open_clip
from embark.models.loading import Loading
from embark.models.open_clip import load, resolve_source
from embark.models.pixels import openai_pixels
from embark.protocol import style_used
from embark.settings import load_settings as settings
from embark.types import EmbarkError, ModelCard, Style
from tiny import TEXTS, check_without_weights, film, item, one_by_one, picture, prepared, same, vectors, wordpiece

MEAN, STD = [0.5, 0.4, 0.3], [0.3, 0.4, 0.5]

# ── what a source stands for ─────────────────────────────────────────────────────────────────────────────────────────

ARCHITECTURES = ("ViT-B-32", "ViT-B-32-quickgelu", "ViTamin-S")
TAGS = {
    ("ViT-B-32", "laion2b"): {"hf_hub": "laion/CLIP-ViT-B-32/", "mean": (0.5,)},
    ("ViT-B-32", "openai"): {"hf_hub": "timm/vit_base.openai/", "quick_gelu": True},
    ("ViT-B-32-quickgelu", "openai"): {"hf_hub": "timm/vit_base.openai/", "quick_gelu": True},
    ("ViTamin-S", "datacomp1b"): {"hf_hub": "jienengchen/ViTamin-S/pytorch_model.bin"},
}


def meant(source: str, **settings: str) -> ModelCard:
    card = replace(find_card(f"open_clip:{source}"), options=settings)
    return resolve_source(card, ARCHITECTURES, lambda *names: TAGS.get(names, {}))


@pytest.mark.parametrize(
    ("source", "hub_id", "architecture", "tag"),
    [
        ("ViT-B-32/laion2b", "laion/CLIP-ViT-B-32", "ViT-B-32", "laion2b"),
        ("ViT-B-32-quickgelu/openai", "timm/vit_base.openai", "ViT-B-32-quickgelu", "openai"),
        ("ViTamin-S/datacomp1b", "jienengchen/ViTamin-S", "ViTamin-S", "datacomp1b"),
    ],
)
def test_tags_stand_for_hub_repositories(source: str, hub_id: str, architecture: str, tag: str) -> None:
    card = meant(source)
    assert card.source == hub_id
    assert card.options == {"architecture": architecture, "pretrained": tag}


def test_files_and_addresses_are_weights_of_an_architecture(tmp_path: Path) -> None:
    file = tmp_path / "negclip.pth"
    file.touch()
    for weights in (str(file), "https://example.org/negclip.pth"):
        card = meant(f"ViT-B-32/{weights}")
        assert (card.source, card.options) == (weights, {"architecture": "ViT-B-32"})


def test_other_sources_are_left_alone(tmp_path: Path) -> None:
    for source in ("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", str(tmp_path)):
        assert meant(source).source == source
        assert meant(source).options == {}
    assert meant("ViT-B-32/laion2b", architecture="ViT-B-32").source == "ViT-B-32/laion2b"


def test_what_nobody_knows_is_an_error() -> None:
    with pytest.raises(EmbarkError, match="'laion9b' is no file here and no weights that open_clip knows for ViT-B-32"):
        meant("ViT-B-32/laion9b")


def test_weights_of_another_activation_are_refused() -> None:
    with pytest.raises(EmbarkError, match="open_clip:ViT-B-32-quickgelu/openai is the architecture"):
        meant("ViT-B-32/openai")


# ── with the library ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def open_clip(torchvision: Any) -> Any:
    return pytest.importorskip("open_clip")


TEXT = {"context_length": 24, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
VISION = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 16}
KINDS: dict[str, dict[str, Any]] = {  # what tells the library's kinds of models apart
    "vit": {},
    "resnet": {"vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8}, "quick_gelu": True},
    "timm": {"vision_cfg": {"image_size": 160, "timm_model_name": "test_vit", "timm_proj": "linear"}},
    "coca": {
        "custom_text": True,
        "vision_cfg": {
            **VISION,
            "attentional_pool": True,
            "attn_pooler_queries": 4,
            "attn_pooler_heads": 2,
            "output_tokens": True,
        },
        "text_cfg": {**TEXT, "embed_cls": True, "output_tokens": True},
        "multimodal_cfg": {**TEXT, "attn_pooler_heads": 2},
    },
}


def config(**more: Any) -> dict[str, Any]:
    return {"embed_dim": 12, "vision_cfg": VISION, "text_cfg": TEXT, **more}


def repository(open_clip: Any, folder: Path, scale: Any = (MEAN, STD), **more: Any) -> Path:
    """A folder as the hub has it, with random weights; `scale` is the mean and deviation of pixels."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    preprocess = {"mean": scale[0], "std": scale[1], "interpolation": "bicubic", "resize_mode": "shortest"}
    made = {"model_cfg": config(**more), "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(made))
    torch.manual_seed(0)
    weights = open_clip.create_model(f"local-dir:{folder}").state_dict()
    if "text_decoder.text_projection" in weights:  # of CoCa, which open_clip does not initialize
        weights["text_decoder.text_projection"].zero_()
    save_file(weights, folder / "open_clip_model.safetensors")
    return folder


@pytest.fixture(scope="module")
def folder(open_clip: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repository(open_clip, tmp_path_factory.mktemp("open_clip") / "tiny")


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_the_library_s(open_clip: Any, kind: str, tmp_path: Path) -> None:
    import torch

    made = repository(open_clip, tmp_path, **KINDS[kind])
    library, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{made}")
    tokens = open_clip.get_tokenizer(f"local-dir:{made}")(list(TEXTS))
    model = get_model(str(made), loading=Loading(device="cpu"))
    assert (model.card.loader, model.card.dim, model.card.fusion) == ("open_clip", 12, "sum")
    assert model.card.modalities == ("text", "image", "video")
    pictures = [picture(0), picture(1, (33, 70)), picture(2, (64, 64))]
    with torch.no_grad():
        assert same(vectors(model, TEXTS), library.eval().encode_text(tokens))
        pixels = torch.stack([preprocess(each) for each in pictures])
        assert same(vectors(model, pictures), library.encode_image(pixels))


def test_a_vector_does_not_depend_on_its_batch(folder: Path) -> None:
    model = get_model(f"open_clip:{folder}", loading=Loading(device="cpu"))
    things = [*TEXTS, picture(3), ("a red apple", picture(4))]
    assert same(vectors(model, things), one_by_one(model, things), 1e-5)


def test_items_are_prepared_without_weights(folder: Path) -> None:
    check_without_weights(str(folder), ["dog", picture(1)])


def test_parts_are_added_and_frames_averaged(folder: Path) -> None:
    model = get_model(str(folder), loading=Loading(device="cpu"))
    text, image = vectors(model, ["a red apple"]), vectors(model, [picture(4)])
    assert same(vectors(model, [("a red apple", picture(4))]), text + image, 1e-5)
    frames = film(frames=3)
    assert same(vectors(model, [frames]), unit(unit(vectors(model, frames)).sum(0, keepdims=True)), 1e-5)


@pytest.mark.parametrize(("scale", "mode"), [((MEAN, STD), "openai-32"), ((CLIP_MEAN, CLIP_SPREAD), "")])
def test_unibench_shows_its_pixels_to_a_folder(open_clip: Any, tmp_path: Path, scale: Any, mode: str) -> None:
    """Where they are the model's own, as of most of the library's, pictures share their vectors with other tasks."""
    made = repository(open_clip, tmp_path, scale)
    style = Style("UniBench")
    library, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{made}")
    for model in (
        get_model(str(made), loading=Loading(device="cpu")),
        from_open_clip(library, preprocess, open_clip.get_tokenizer(f"local-dir:{made}")),
    ):
        assert style_used(model.card, style) == "UniBench: as the paper ran it"
        for shown in (picture(1, (35, 32)), picture(2, (32, 33)), picture(3, (70, 41))):
            rendered = render_item(model, item(shown), "item", None, style)
            assert rendered.mode == mode
            ((_, pixels),) = model.prepare(decode(rendered.parts, 2, 16_000), rendered.mode)
            assert np.allclose(pixels, openai_pixels(shown, 32), atol=1e-5)


def test_transparent_and_grey_pictures_are_read(folder: Path) -> None:
    model = get_model(str(folder), loading=Loading(device="cpu"))
    assert np.isfinite(vectors(model, [picture(5, mode="RGBA"), picture(5, mode="L")])).all()


def test_items_are_prepared_in_several_threads(open_clip: Any, tmp_path: Path) -> None:
    tokens = wordpiece()
    text = {**TEXT, "hf_tokenizer_name": "its-own", "vocab_size": len(tokens), "pool_type": "first"}
    made = repository(open_clip, tmp_path / "words", text_cfg=text)
    tokens.save_pretrained(made)
    model = get_model(str(made), loading=Loading(device="cpu"))
    with ThreadPoolExecutor(8) as pool:
        ready = [each[0] for each in pool.map(lambda text: prepared(model, [text]), TEXTS * 40)]
    assert same(model.embed(ready), np.tile(vectors(model, TEXTS), (40, 1)), 1e-5)


def test_another_precision_is_another_space_near_by(folder: Path) -> None:
    model = get_model(str(folder), loading=Loading(device="cpu", dtype="bfloat16"))
    things = [*TEXTS, picture(3)]
    near = (
        unit(vectors(model, things)) * unit(vectors(get_model(str(folder), loading=Loading(device="cpu")), things))
    ).sum(1)
    assert model.card.dtype == "bfloat16"
    assert (near > 0.99).all()


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pickles_need_consent(folder: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    (tmp_path / "open_clip_config.json").write_bytes((folder / "open_clip_config.json").read_bytes())
    weights = sorted(load_file(folder / "open_clip_model.safetensors").items())  # in an order that is always the same
    torch.save(dict(weights), tmp_path / "open_clip_pytorch_model.bin")
    with pytest.raises(EmbarkError, match="its weights for open_clip are pickles") as refusal:
        get_model(str(tmp_path), loading=Loading(device="cpu"))
    revision = str(refusal.value).split("--trust ")[1].split()[0]
    trusted = get_model(str(tmp_path), loading=Loading(device="cpu", trust=revision))
    assert same(vectors(trusted, TEXTS), vectors(get_model(str(folder), loading=Loading(device="cpu")), TEXTS))


def test_weights_that_do_not_fit_are_an_error(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    (tmp_path / "open_clip_config.json").write_bytes((folder / "open_clip_config.json").read_bytes())
    state = load_file(folder / "open_clip_model.safetensors")
    state.pop("text_projection")
    save_file(state, tmp_path / "open_clip_model.safetensors")
    with pytest.raises(EmbarkError, match=r"open_clip_model.safetensors does not fit its model .*text_projection"):
        get_model(str(tmp_path), loading=Loading(device="cpu"))


def test_cards_that_are_wrong_about_the_dimension_are_refused(folder: Path) -> None:
    card = replace(find_card(str(folder)), dim=512)
    with pytest.raises(EmbarkError, match="makes vectors of 12 dimensions; its card says 512"):
        load(card, Loading(device="cpu"))


@pytest.fixture(scope="module")
def architecture(open_clip: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("architectures") / "embark-tiny.json"
    path.write_text(json.dumps(config()))
    open_clip.add_model_config(path)
    return path.stem


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/open_clip_model.safetensors"
        server.shutdown()
        thread.join()


def test_one_file_of_weights_is_enough(architecture: str, folder: Path) -> None:
    file = folder / "open_clip_model.safetensors"
    model = get_model(f"open_clip:{architecture}/{file}", loading=Loading(device="cpu"))
    assert model.card.revision.startswith("sha256-")
    assert model.card.options == {"architecture": architecture}
    assert same(vectors(model, TEXTS), vectors(get_model(str(folder), loading=Loading(device="cpu")), TEXTS))


def test_a_card_s_architecture_goes_before_the_folder_s(open_clip: Any, architecture: str, tmp_path: Path) -> None:
    made = repository(open_clip, tmp_path, quick_gelu=True)
    card = replace(find_card(str(made)), options={"architecture": architecture})
    slow, quick = load(card, Loading(device="cpu")), get_model(str(made), loading=Loading(device="cpu"))
    weights = get_model(
        f"open_clip:{architecture}/{made / 'open_clip_model.safetensors'}", loading=Loading(device="cpu")
    )
    assert same(vectors(slow, TEXTS), vectors(weights, TEXTS))
    assert not same(vectors(slow, TEXTS), vectors(quick, TEXTS))


def test_weights_at_an_address_are_fetched_once(architecture: str, folder: Path, address: str, tmp_path: Path) -> None:
    name, here = f"open_clip:{architecture}/{address}", settings(home=tmp_path)
    with pytest.raises(EmbarkError, match="embark is offline"):
        get_model(name, loading=Loading(device="cpu"), settings=replace(here, offline=True))
    fetched = get_model(name, loading=Loading(device="cpu"), settings=here)
    again = get_model(name, loading=Loading(device="cpu"), settings=replace(here, offline=True))
    assert again.card == fetched.card
    assert same(vectors(again, TEXTS), vectors(get_model(str(folder), loading=Loading(device="cpu")), TEXTS))


def test_an_address_without_weights_is_an_error(architecture: str, address: str, tmp_path: Path) -> None:
    with pytest.raises(EmbarkError, match=r"could not be fetched .*404"):
        get_model(f"open_clip:{architecture}/{address}.none", loading=Loading("cpu"), settings=settings(home=tmp_path))


def test_the_library_knows_what_the_cards_name(open_clip: Any) -> None:
    for card in (card for card in MODELS.values() if card.loader == "open_clip" and "architecture" in card.options):
        architecture, tag = card.options["architecture"], card.options.get("pretrained")
        told = open_clip.get_model_config(architecture)
        assert told["embed_dim"] == card.dim, card.name
        assert told["vision_cfg"]["image_size"] == card.image_size, card.name
        assert told["text_cfg"].get("context_length", 77) == card.context, card.name
        if tag:
            hub_id = open_clip.get_pretrained_cfg(architecture, tag)["hf_hub"]
            assert "/".join(hub_id.split("/")[:2]) == card.source, card.name
