"""VLM2Vec on Phi-3.5-vision, from a tiny checkpoint, against its parts in transformers put together by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark.models import LOADERS, get_model
from embark.models.cards import mllm as cards
from embark.models.encoder import unit
from embark.models.hf import CLIP_MEAN, CLIP_SPREAD
from embark.models.loading import Loading, build
from embark.types import Array, EmbarkError, ModelCard
from tiny import TEXTS, byte_bpe, check_without_weights, one_by_one, picture, prepared, same, saved, vectors

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

EYES, SIDE, PATCH = "model.vision_embed_tokens.", 16, 4
THINGS = ["dog", TEXTS[2], picture(1), picture(2, (20, 60)), picture(3, (90, 20)), (picture(4), "what is it?")]


class Parts:
    """The true architecture: Phi-3 with long rope, CLIP's eyes, a projection and two marks."""

    def __init__(self) -> None:
        self.tokens = byte_bpe("<s> $A", more=("<|image|>",), bos_token="<s>", pad_token="<|endoftext|>", limit=4096)
        shape = {"intermediate_size": 48, "num_hidden_layers": 2}
        self.rope = {"short_factor": [1.5] * 4, "long_factor": [2.0] * 4, "type": "longrope"}
        phi = transformers.Phi3Config(
            **shape, hidden_size=16, num_attention_heads=2, num_key_value_heads=2, vocab_size=len(self.tokens),
            rope_scaling=dict(self.rope), original_max_position_embeddings=4096, max_position_embeddings=131072,
            pad_token_id=0, bos_token_id=1, eos_token_id=0,
        )  # fmt: skip
        clip = transformers.CLIPVisionConfig(
            **{**shape, "num_hidden_layers": 3},
            hidden_size=64,
            num_attention_heads=1,
            image_size=SIDE,
            patch_size=PATCH,
        )
        torch.manual_seed(3)
        self.words, self.eyes = transformers.Phi3Model(phi).eval(), transformers.CLIPVisionModel(clip).eval()
        self.projection = torch.nn.Sequential(torch.nn.Linear(256, 16), torch.nn.GELU(), torch.nn.Linear(16, 16))
        self.whole, self.line = torch.randn(1, 1, 256), torch.randn(1, 1, 1, 256)
        for weight in (*self.words.parameters(), *self.eyes.parameters()):
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=0.2)

    def save(self, folder: Path) -> Path:
        """With the names that the published checkpoints have."""
        from safetensors.torch import save_file

        state = {f"model.{name}": weight for name, weight in self.words.state_dict().items()}
        state["lm_head.weight"] = torch.zeros(len(self.tokens), 16)
        looks = {name.removeprefix("vision_model."): weight for name, weight in self.eyes.state_dict().items()}
        state |= {f"{EYES}img_processor.vision_model.{name}": weight for name, weight in looks.items()}
        state |= {f"{EYES}img_projection.{name}": weight for name, weight in self.projection.state_dict().items()}
        state |= {f"{EYES}glb_GN": self.whole, f"{EYES}sub_GN": self.line}
        save_file({name: weight.contiguous() for name, weight in state.items()}, folder / "model.safetensors")
        own = {"model_type": "phi3_v", "auto_map": {"AutoConfig": "configuration_phi3_v.Phi3VConfig"}}
        own |= {"rope_scaling": {**self.rope, "type": "su"}, "rope_theta": 10000.0}
        facts = {name: value for name, value in self.words.config.to_dict().items() if name != "rope_parameters"}
        (folder / "config.json").write_text(json.dumps({**facts, **own}))
        return saved(folder, self.tokens)

    def seen(self, page: Image.Image) -> Any:
        """A page that is a multiple of squares: what stands for it before the language model, state by state."""
        whole = (torch.tensor(np.asarray(page)) / 255 - torch.tensor(CLIP_MEAN)) / torch.tensor(CLIP_SPREAD)
        pixels = whole.permute(2, 0, 1).float()
        small = torch.nn.functional.interpolate(pixels[None], size=(SIDE, SIDE), mode="bicubic")[0]
        return self.projection(torch.stack([*self._walk(pixels), self.whole.flatten(), *self._walk(small)]))

    def _walk(self, pixels: Any) -> list[Any]:
        """Down the page and along each line, two patches by two at a time."""
        across = SIDE // PATCH
        features = {}
        for top in range(0, pixels.shape[1], SIDE):
            for left in range(0, pixels.shape[2], SIDE):
                crop = pixels[None, :, top : top + SIDE, left : left + SIDE]
                features[top, left] = self.eyes(crop, output_hidden_states=True).hidden_states[-2][0, 1:]
        out = []
        for y in range(0, pixels.shape[1] // PATCH, 2):
            for x in range(0, pixels.shape[2] // PATCH, 2):
                four = [
                    features[r // across * SIDE, c // across * SIDE][r % across * across + c % across]
                    for r, c in ((y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1))
                ]
                out.append(torch.cat(four))
            out.append(self.line.flatten())
        return out

    def vector(self, page: Image.Image | None, text: str) -> Array:
        with torch.inference_mode():
            words = self.words.get_input_embeddings()(self.tokens(text, return_tensors="pt")["input_ids"][0])
            if page is not None:  # the empty text before the picture has its token of beginning, too
                first = self.words.get_input_embeddings()(self.tokens("", return_tensors="pt")["input_ids"][0].long())
                words = torch.cat([first, self.seen(page), words])
            return unit(np.asarray(self.words(inputs_embeds=words[None]).last_hidden_state[:, -1]))


@pytest.fixture(scope="module")
def parts() -> Parts:
    return Parts()


@pytest.fixture(scope="module")
def folder(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parts.save(tmp_path_factory.mktemp("phi"))


def test_a_folder_is_recognised(folder: Path) -> None:
    card = get_model(str(folder), loading=Loading(device="cpu")).card
    assert (card.loader, card.dim, card.modalities) == ("phi", 16, ("text", "image"))
    assert card.options == {**cards.PHI, "loader": 2}


def test_items_are_prepared_without_weights(folder: Path) -> None:
    check_without_weights(str(folder), THINGS)


def test_other_weights_in_a_folder_below_are_not_read(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    expected = vectors(get_model(str(folder), loading=Loading(device="cpu")), THINGS)
    copy = Path(shutil.copytree(folder, tmp_path / "phi"))
    (copy / "old").mkdir()
    state = load_file(copy / "model.safetensors")
    save_file({name: -weight for name, weight in state.items()}, copy / "old" / "model.safetensors")
    assert same(vectors(get_model(str(copy), loading=Loading(device="cpu")), THINGS), expected)


@pytest.mark.parametrize("size", [(16, 16), (32, 32), (64, 16), (16, 48), (30, 20)])
def test_pictures_agree_with_the_parts(size: tuple[int, int], folder: Path, parts: Parts) -> None:
    model: Any = get_model(str(folder), loading=Loading(device="cpu"))
    picked = picture(1, size)
    page = model.processors["image"].image(picked)
    asked = " Represent the given image with the following question: a dog"
    assert same(vectors(model, [picked]), parts.vector(page, " Represent the given image."))
    assert same(vectors(model, [(picked, "a dog")]), parts.vector(page, asked))


def test_texts_agree_with_the_parts_and_are_cut(folder: Path, parts: Parts) -> None:
    model: Any = get_model(str(folder), loading=Loading(device="cpu"))
    assert same(vectors(model, [TEXTS[2]]), parts.vector(None, TEXTS[2]))
    card = ModelCard("tiny/phi", "main", "phi", (), source=str(folder), context=12)
    (ready,) = prepared(build(LOADERS["phi"], card, Loading(device="cpu")), ["dog " * 50])
    assert ready.ids == parts.tokens("dog " * 50)["input_ids"][:12]


def test_pages_are_squares_that_fit_the_picture(folder: Path) -> None:
    model: Any = get_model(str(folder), loading=Loading(device="cpu"))
    page = model.processors["image"].image
    sizes = {(10, 10): (32, 32), (100, 20): (64, 16), (20, 100): (16, 64), (30, 20): (32, 32), (60, 20): (48, 16)}
    assert {size: page(picture(1, size)).size for size in sizes} == sizes  # at most four squares
    white = page(Image.new("RGB", (30, 20), "black")).getpixel((0, 0))
    assert white == (255, 255, 255)  # 21 lines of the picture, 5 of white above and 6 below
    tall, wide = picture(1, (20, 60)), picture(1, (20, 60)).transpose(Image.Transpose.TRANSPOSE)
    assert page(tall).transpose(Image.Transpose.TRANSPOSE).tobytes() == page(wide).tobytes()


def test_a_vector_knows_nothing_of_its_batch(folder: Path) -> None:
    alone = one_by_one(get_model(str(folder), loading=Loading(device="cpu")), THINGS)
    for side in ("left", "right"):
        style = {**cards.PHI, "padding": side}
        card = ModelCard("tiny/phi", "main", "phi", (), source=str(folder), options=style)
        assert same(vectors(build(LOADERS["phi"], card, Loading(device="cpu")), THINGS), alone), side
    assert len(np.unique(alone.round(4), axis=0)) == len(THINGS)


def test_adapters_are_merged(folder: Path, parts: Parts, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    name = "base_model.model.model.layers.1.self_attn.qkv_proj"
    down, up = torch.randn(2, 16), torch.randn(48, 2)
    save_file({f"{name}.lora_A.weight": down, f"{name}.lora_B.weight": up}, tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 1, "base_model_name_or_path": "-"}))
    style = {**cards.PHI, "base": str(folder)}
    card = ModelCard("tiny/lora", "main", "phi", (), source=str(tmp_path), options=style)
    model = build(LOADERS["phi"], card, Loading("cpu"))
    weight = parts.words.layers[1].self_attn.qkv_proj.weight
    before = weight.data.clone()
    try:
        weight.data += 0.5 * up @ down
        assert same(vectors(model, ["a dog"]), parts.vector(None, "a dog"))
    finally:
        weight.data = before


def test_missing_weights_are_told(folder: Path, parts: Parts, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    parts.save(tmp_path)
    state = load_file(folder / "model.safetensors")
    del state["model.norm.weight"]
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(EmbarkError, match=r"lacks 1 weights of Phi3Model, the first is norm\.weight"):
        get_model(str(tmp_path), loading=Loading(device="cpu"))
