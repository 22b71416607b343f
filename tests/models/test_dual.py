"""Dual encoders, each from a tiny checkpoint of its true architecture, against what transformers itself computes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.items.decoding import decode
from embark.models import MODELS, Encoder, get_model
from embark.models.cards.dual import CARDS
from embark.models.dual import ARCHITECTURES, load
from embark.models.encoder import render_item, unit
from embark.models.loading import Loading
from embark.models.pixels import openai_pixels
from embark.protocol import style_used, vector_space
from embark.types import EmbarkError, ModelCard, Style
from tiny import (
    SENTENCES,
    TEXTS,
    byte_bpe,
    check_without_weights,
    film,
    item,
    one_by_one,
    picture,
    prepared,
    same,
    saved,
    unigram,
    vectors,
    wordpiece,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

LAYERS = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SQUARE = {"size": {"height": 16, "width": 16}}
PICTURES = [picture(1), picture(2, (16, 50)), picture(3, (7, 7))]
COUNTED = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>"}


def vit(patch: int = 8) -> dict[str, Any]:
    return {**LAYERS, "image_size": 16, "patch_size": patch}


def clip_images(kind: str = "CLIPImageProcessorPil") -> Any:
    return getattr(transformers, kind)(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})


def clip(name: str = "CLIP", **special: str) -> tuple[Any, ...]:
    names = special or {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    tokens = byte_bpe(f"{names['bos_token']} $A {names['eos_token']}", **names)
    special = {f"{role}_token_id": getattr(tokens, f"{role}_token_id") for role in ("bos", "eos", "pad")}
    text = {**LAYERS, "vocab_size": len(tokens), "max_position_embeddings": 20, **special}
    config = getattr(transformers, f"{name}Config")(text_config=text, vision_config=vit(), projection_dim=12)
    return getattr(transformers, f"{name}Model")(config), tokens, clip_images()


def altclip() -> tuple[Any, ...]:
    tokens = byte_bpe("<s> $A </s>", **COUNTED)
    text = {**LAYERS, "vocab_size": len(tokens), "max_position_embeddings": 22, "project_dim": 24, "pad_token_id": 1}
    config = transformers.AltCLIPConfig(text_config=text, vision_config=vit(), projection_dim=12)
    return transformers.AltCLIPModel(config), tokens, clip_images()


def chinese_clip() -> tuple[Any, ...]:
    tokens = wordpiece()
    text = {**LAYERS, "vocab_size": len(tokens), "max_position_embeddings": 20}
    config = transformers.ChineseCLIPConfig(text_config=text, vision_config=vit(), projection_dim=12)
    return (
        transformers.ChineseCLIPModel(config),
        tokens,
        transformers.ChineseCLIPImageProcessorPil(**SQUARE, do_center_crop=False),
    )


def siglip() -> tuple[Any, ...]:
    tokens = unigram(bos_token="<s>")
    text = {**LAYERS, "vocab_size": len(tokens), "max_position_embeddings": 20, "bos_token_id": 3, "eos_token_id": 1}
    config = transformers.SiglipConfig(text_config=text, vision_config=vit())
    return transformers.SiglipModel(config), tokens, transformers.SiglipImageProcessorPil(**SQUARE)


def siglip2() -> tuple[Any, ...]:
    tokens = unigram(bos_token="<s>")
    text = {**LAYERS, "vocab_size": len(tokens), "max_position_embeddings": 20, "bos_token_id": 3, "eos_token_id": 1}
    config = transformers.Siglip2Config(
        text_config={**text, "projection_size": 16}, vision_config={**LAYERS, "num_patches": 16, "patch_size": 4}
    )
    return (
        transformers.Siglip2Model(config),
        tokens,
        transformers.Siglip2ImageProcessorPil(patch_size=4, max_num_patches=12),
    )


def align() -> tuple[Any, ...]:
    tokens = wordpiece()
    text = {**LAYERS, "vocab_size": len(tokens), "max_position_embeddings": 20}
    image = {
        "image_size": 32, "width_coefficient": 1.0, "depth_coefficient": 1.0, "depth_divisor": 4, "hidden_dim": 12,
        "kernel_sizes": [3, 3], "in_channels": [32, 8], "out_channels": [8, 12], "strides": [1, 2],
        "num_block_repeats": [1, 1], "expand_ratios": [1, 2],
    }  # fmt: skip
    config = transformers.AlignConfig(text_config=text, vision_config=image, projection_dim=12)
    images = transformers.EfficientNetImageProcessorPil(size={"height": 32, "width": 32}, do_center_crop=False)
    return transformers.AlignModel(config), tokens, images


def flava() -> tuple[Any, ...]:
    tokens = wordpiece()
    config = transformers.FlavaConfig(
        text_config={**LAYERS, "vocab_size": len(tokens), "max_position_embeddings": 20},
        image_config={**vit(), "vocab_size": 10}, multimodal_config=LAYERS, hidden_size=16, projection_dim=16,
        init_codebook=False,
    )  # fmt: skip
    images = transformers.FlavaImageProcessorPil(**SQUARE, crop_size=SQUARE["size"])
    return transformers.FlavaForPreTraining(config), tokens, images  # as published, with heads that are not needed


FAMILIES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "clip": clip,
    "metaclip_2": lambda: clip("MetaClip2", **COUNTED),
    "altclip": altclip,
    "chinese_clip": chinese_clip,
    "siglip": siglip,
    "siglip2": siglip2,
    "align": align,
    "flava": flava,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each architecture."""
    out = {}
    for name, build in FAMILIES.items():
        torch.manual_seed(7)
        model, *parts = build()
        for each in model.parameters():  # biases and norms at their start would hide mistakes
            each.data += 0.3 * torch.randn_like(each)
        out[name] = saved(tmp_path_factory.mktemp(name), model.eval(), *parts)
    return out


@pytest.fixture(scope="module")
def models(folders: dict[str, Path]) -> dict[str, Encoder]:
    """Each of them loaded, by its folder's name alone."""
    return {name: get_model(str(folder), loading=Loading(device="cpu")) for name, folder in folders.items()}


FAMILY = pytest.mark.parametrize("family", FAMILIES)


def reference(folder: Path, family: str) -> tuple[Any, Any]:
    """(texts, images) by the library alone, in one batch each."""
    kind = ARCHITECTURES[family]
    model = getattr(transformers, kind.model).from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)
    images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(PICTURES, return_tensors="pt")
    padding = "max_length" if kind.filled else True
    texts = tokens(list(TEXTS), padding=padding, truncation=True, max_length=20, return_tensors="pt")
    ids = {"input_ids": texts["input_ids"], **({} if kind.filled else {"attention_mask": texts["attention_mask"]})}
    with torch.no_grad():
        found = model.get_text_features(**ids).pooler_output, model.get_image_features(**images).pooler_output
    return tuple(each[:, 0] if family == "flava" else each for each in found)  # type: ignore[return-value]


def token_counts(model: Encoder, texts: list[str]) -> list[int]:
    return [len(ids) for ((_, ids),) in prepared(model, texts)]


@pytest.mark.parametrize("family", ["clip", "siglip2"])
def test_items_are_prepared_without_weights(folders: dict[str, Path], family: str) -> None:
    check_without_weights(str(folders[family]), ["dog", picture(1)])


def test_every_architecture_is_tried() -> None:
    assert set(FAMILIES) == set(ARCHITECTURES)


@FAMILY
def test_vectors_are_those_of_the_library(family: str, folders: dict[str, Path], models: dict[str, Encoder]) -> None:
    model = models[family]
    texts, images = reference(folders[family], family)
    assert same(vectors(model, TEXTS), texts)
    assert same(vectors(model, PICTURES), images)
    assert not same(texts[0], texts[1])
    assert not same(images[0], images[1])
    assert model.card.dim == texts.shape[1] == images.shape[1]
    assert model.card.modalities == ("text", "image", "video")


@FAMILY
def test_the_batch_does_not_matter(family: str, models: dict[str, Encoder]) -> None:
    model = models[family]
    things = [*TEXTS, *PICTURES, film(1), film(2, 1), (picture(4), "a small dog"), ""]
    assert same(vectors(model, things), one_by_one(model, things), 1e-5)


@FAMILY
def test_mixed_items_are_sums_and_videos_means(family: str, models: dict[str, Encoder]) -> None:
    model = models[family]
    frames = film(3)
    text, image, mixed, video, *shown = vectors(
        model, ["a red apple", picture(5), ("a red apple", picture(5)), frames, *frames]
    )
    assert model.card.fusion == "sum"
    assert same(mixed, text + image, 1e-5)
    assert same(video, unit(unit(np.stack(shown)).sum(0)), 1e-5)


@FAMILY
def test_items_are_prepared_by_many_threads_at_once(family: str, models: dict[str, Encoder]) -> None:
    model = models[family]
    things = [thing for seed in range(12) for thing in (SENTENCES[seed % 7][seed:], picture(seed, (20 + seed, 30)))]
    with ThreadPoolExecutor(8) as pool:
        ready = list(pool.map(lambda thing: prepared(model, [thing])[0], things))
    assert same(model.embed(ready), vectors(model, things), 0)


@FAMILY
def test_long_texts_are_cut(family: str, models: dict[str, Encoder]) -> None:
    text, longer = "a red apple " * 30, "a red apple " * 40
    assert token_counts(models[family], [text]) == [20]
    assert same(*vectors(models[family], [text, longer]))


def test_a_card_says_where_texts_are_cut(folders: dict[str, Path]) -> None:
    card = ModelCard("a/b", "main", "dual", (), source=str(folders["flava"]), options={"tokens": 6})
    model = load(card, Loading("cpu"))
    assert token_counts(model, [SENTENCES[0], "dog"]) == [6, 3]
    assert vector_space(model.card) != vector_space(replace(model.card, options={}))


def test_the_scale_of_similarities_comes_from_the_checkpoint(
    folders: dict[str, Path], models: dict[str, Encoder]
) -> None:
    scale = transformers.CLIPModel.from_pretrained(folders["clip"]).logit_scale.exp().item()
    assert models["clip"].card.logit_scale == pytest.approx(scale)


def test_instructions_and_roles_do_not_matter(models: dict[str, Encoder]) -> None:
    model = models["clip"]
    assert same(vectors(model, TEXTS, "query", "Find it."), vectors(model, TEXTS), 0)


def left_sided(folder: Path, copy: Path) -> Path:
    """The checkpoint, with a tokeniser that fills up on the left."""
    shutil.copytree(folder, copy)
    path = copy / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "padding_side": "left"}))
    return copy


def test_padding_is_on_the_right_where_positions_count(
    folders: dict[str, Path], models: dict[str, Encoder], tmp_path: Path
) -> None:
    left = left_sided(folders["clip"], tmp_path / "left")
    assert same(
        vectors(get_model(str(left), loading=Loading(device="cpu")), TEXTS), vectors(models["clip"], TEXTS), 1e-5
    )
    assert not same(reference(left, "clip")[0], vectors(models["clip"], TEXTS))


def test_siglip_fills_up_on_the_side_that_its_tokeniser_says(
    folders: dict[str, Path], models: dict[str, Encoder], tmp_path: Path
) -> None:
    left = left_sided(folders["siglip"], tmp_path / "left")
    found = vectors(get_model(str(left), loading=Loading(device="cpu")), TEXTS)
    assert same(found, reference(left, "siglip")[0])
    assert not same(found, vectors(models["siglip"], TEXTS))


@pytest.mark.parametrize("family", ["siglip", "siglip2"])
def test_siglip_reads_lower_case(family: str, models: dict[str, Encoder]) -> None:
    model = models[family]
    assert same(*vectors(model, ["A Red APPLE", "a red apple"]))
    assert not same(*vectors(models["clip"], ["A Red APPLE", "a red apple"]))


def test_siglips_own_tokeniser_drops_punctuation(folders: dict[str, Path], tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_prefix=str(tmp_path / "spiece"), vocab_size=80, pad_id=0, eos_id=1,
        unk_id=2, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    tokens = transformers.SiglipTokenizer(str(tmp_path / "spiece.model"), model_max_length=20)
    _, _, images = siglip()
    folder = saved(tmp_path / "own", transformers.SiglipModel.from_pretrained(folders["siglip"]), tokens, images)
    model = get_model(str(folder), loading=Loading(device="cpu"))
    assert same(*vectors(model, ["A red, apple!", "a red apple"]))
    assert same(vectors(model, TEXTS), reference(folder, "siglip")[0])


@FAMILY
def test_images_of_any_mode_are_read(family: str, models: dict[str, Encoder]) -> None:
    model = models[family]
    clear, grey = picture(6, mode="RGBA"), picture(6, mode="L")
    pairs = [clear, clear.convert("RGB"), grey, grey.convert("RGB")]
    a, b, c, d = vectors(model, pairs)
    assert same(a, b)
    assert same(c, d)


def test_precision_names_another_space(folders: dict[str, Path], models: dict[str, Encoder]) -> None:
    exact, rough = models["clip"], get_model(str(folders["clip"]), loading=Loading(device="cpu", dtype="bfloat16"))
    things = [*TEXTS, *PICTURES]
    assert same(vectors(exact, things), vectors(rough, things), 0.1)
    assert not same(vectors(exact, things), vectors(rough, things))
    assert vectors(rough, things).dtype == np.float32
    assert vector_space(exact.card) != vector_space(rough.card)


def test_a_wrong_dimension_is_an_error(folders: dict[str, Path]) -> None:
    card = ModelCard("a/b", "main", "dual", (), dim=13, source=str(folders["clip"]))
    with pytest.raises(EmbarkError, match="12 dimensions; its card says 13"):
        load(card, Loading("cpu"))


def test_missing_weights_are_an_error(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "part"
    shutil.copytree(folders["clip"], folder)
    kept = safetensors.load_file(folder / "model.safetensors")
    del kept["visual_projection.weight"]
    safetensors.save_file(kept, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(EmbarkError, match="lacks 1 weights of CLIPModel, the first is visual_projection"):
        get_model(str(folder), loading=Loading(device="cpu"))


def test_other_model_types_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(EmbarkError, match="model type 'bert', which is no dual encoder"):
        get_model(f"dual:{tmp_path}", loading=Loading(device="cpu"))


def test_cards_are_of_sizes_that_their_names_say() -> None:
    for card in CARDS:
        said = [
            part
            for part in card.name.removesuffix("px").split("-")
            if part in ("224", "256", "336", "378", "384", "512")
        ]
        assert said in ([], [str(card.image_size)]), card.name
        assert card.fusion == "sum"
        assert card.options.get("tokens", card.context) == card.context


def test_a_style_changes_pixels_and_keys_of_pictures_alone(folders: dict[str, Path]) -> None:
    card = ModelCard("tiny/siglip", "main", "dual", ("text", "image", "video"), source=str(folders["siglip"]))
    model = load(card, Loading(device="cpu"))
    style = Style("UniBench")

    def ready(thing: Any, shown: Style | None) -> tuple[Any, Any]:
        rendered = render_item(model, item(thing), "item", None, shown)
        return rendered, model.prepare(decode(rendered.parts, 2, 16_000), rendered.mode)

    for thing in (PICTURES[1], film(1, 2)):
        (usual, own), (styled, papers) = ready(thing, None), ready(thing, style)
        assert (usual.mode, styled.mode) == ("", "openai-16")
        alone = np.concatenate([model.embed([own]), model.embed([papers])])
        assert not same(alone[0], alone[1])
        assert same(model.embed([own, papers]), alone)
    assert ready("a dog", style)[0] == ready("a dog", None)[0]
    space = vector_space(model.card)
    assert vector_space(replace(model.card, styles={})) == space  # vectors of other rows stay valid
    with pytest.raises(EmbarkError, match="cannot prepare pictures as its card says for a style: 'openai-32'"):
        model.prepare(decode(item(PICTURES[0]).parts, 2, 16_000), "openai-32")


@FAMILY
def test_unibench_shows_its_pixels_to_a_folder_as_to_a_card(
    family: str, folders: dict[str, Path], models: dict[str, Encoder]
) -> None:
    """The name decides nothing: the size and the usual pixels of the checkpoint do."""
    style = Style("UniBench")
    stated = ModelCard("openai/tiny", "main", "dual", (), source=str(folders[family]))
    sides = {"align": 32, "siglip2": None}
    side = sides.get(family, 16)
    for model in (models[family], load(stated, Loading("cpu"))):
        for shown in (picture(1, (19, 16)), picture(2, (16, 19)), picture(3, (40, 30)), picture(4, (9, 25))):
            rendered = render_item(model, item(shown), "item", None, style)
            if side is None:  # NaFlex: patches of pictures in their own shapes
                assert (rendered.mode, style_used(model.card, style)) == ("", "UniBench: as its card says")
                continue
            assert rendered.mode == f"openai-{side}"
            ((_, inputs),) = model.prepare(decode(rendered.parts, 2, 16_000), rendered.mode)
            assert np.array_equal(inputs["pixel_values"], openai_pixels(shown, side))
            assert style_used(model.card, style) == "UniBench: as the paper ran it"
    assert render_item(models[family], item("a dog"), "item", None, style).mode == ""


def test_a_checkpoint_with_code_of_its_own_runs_it_after_consent(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVA-CLIP-18B: the methods of CLIP in a class of its own, no preprocessing beside it."""
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = Path(shutil.copytree(folders["clip"], tmp_path / "eva"))
    (folder / "preprocessor_config.json").unlink()
    (folder / "modeling_eva.py").write_text("from transformers import CLIPModel\n\n\nclass Eva(CLIPModel):\n    pass\n")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "modeling_eva.Eva"}}))
    card = replace(MODELS["BAAI/EVA-CLIP-18B"], source=str(folder), dim=None, dtype="float32")
    assert card.options["own_code"]
    with pytest.raises(EmbarkError, match=r"its modelling code would run.*--trust local-") as refused:
        load(card, Loading(device="cpu"))
    model = load(card, Loading(device="cpu", trust=str(refused.value).split("--trust ")[1].split()[0]))
    plain = get_model(str(folders["clip"]), loading=Loading(device="cpu"))
    assert same(vectors(model, [*TEXTS, *PICTURES]), vectors(plain, [*TEXTS, *PICTURES]))
