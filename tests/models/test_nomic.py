"""Nomic's pair on a tiny checkpoint: text as transformers has it, images by the names that the repository uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.models import Loading, get_model
from embark.models.encoder import unit
from embark.types import EmbarkError
from tiny import TEXTS, eva_weights, film, one_by_one, picture, same, saved, vectors, wordpiece

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PICTURES = [picture(1), picture(2, (31, 50)), picture(3, (64, 64), "L")]
CONFIG = {
    "model_type": "nomic_bert", "n_embd": 16, "n_head": 2, "n_layer": 2, "n_inner": 24, "img_size": 12, "patch_size": 4,
    "layer_norm_epsilon": 1e-6,
}  # fmt: skip
NAMES = {"attn.proj": "attn.out_proj", "mlp.w1": "mlp.fc12", "mlp.w2": "mlp.fc11", "mlp.w3": "mlp.fc2"}


def tower() -> tuple[dict[str, Any], dict[str, Any]]:
    """(EVA weights without norms inside attention, weights of the pooling head)."""
    torch.manual_seed(0)
    eva = {name: tensor for name, tensor in eva_weights().items() if "inner_attn_ln" not in name}
    eva |= {f"blocks.{at}.attn.k_proj.bias": torch.randn(16) for at in range(2)}
    shapes: dict[str, tuple[int, ...]] = {"attn.Wq": (16, 16), "attn.Wkv": (32, 16), "attn.out_proj": (16, 16)}
    shapes |= {"norm1": (16,), "mlp.fc11": (24, 16), "mlp.fc12": (24, 16), "mlp.fc2": (16, 24)}
    head = {f"{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
    head |= {f"{name}.bias": torch.randn(shape[:1]) for name, shape in shapes.items()}
    return eva, head | {"attn.latent": torch.randn(1, 1, 16)}


def published(eva: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
    """The same weights as the repository names them."""
    out = {f"selector.{name}": tensor for name, tensor in head.items()}
    for name, tensor in eva.items():
        if name.startswith("patch_embed"):
            out[name.replace("patch_embed", "embeddings")] = tensor.flatten(1) if tensor.ndim > 1 else tensor
        elif not name.startswith("blocks"):
            out[f"embeddings.{name}"] = tensor
        elif "q_proj" in name:
            parts = [eva[name.replace("q_proj", f"{letter}_proj")] for letter in "qkv"]
            out[name.replace("blocks", "layers").replace("q_proj", "Wqkv")] = torch.cat(parts)
        elif "k_proj" not in name and "v_proj" not in name:
            for ours, theirs in {**NAMES, "mlp.ffn_ln": "mlp.norm", "blocks": "layers"}.items():
                name = name.replace(ours, theirs)
            out[name] = tensor
    return {name: tensor.contiguous() for name, tensor in out.items()}


@pytest.fixture(scope="module")
def nomic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from safetensors.torch import save_file

    folder, read = tmp_path_factory.mktemp("nomic"), wordpiece()
    config = transformers.NomicBertConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, vocab_size=len(read),
        initializer_range=0.3,
    )  # fmt: skip
    saved(folder / "text", transformers.NomicBertModel(config), read)
    size = {"shortest_edge": 12}
    saved(folder, transformers.CLIPImageProcessorPil(size=size, crop_size={"height": 12, "width": 12}))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file(published(*tower()), folder / "model.safetensors")
    return folder


def test_texts_are_pooled_as_published(nomic: Path) -> None:
    model = get_model(str(nomic), loading=Loading(device="cpu"))
    reader = transformers.NomicBertModel.from_pretrained(nomic / "text").eval()
    read = transformers.AutoTokenizer.from_pretrained(nomic / "text")
    expected = []
    for text in TEXTS:
        with torch.inference_mode():
            mean = reader(torch.tensor([read(text)["input_ids"]])).last_hidden_state[0].mean(0).numpy()
        expected.append(unit((mean - mean.mean()) / np.sqrt(mean.var() + 1e-5)))
    assert same(vectors(model, TEXTS), np.stack(expected))
    assert same(one_by_one(model, TEXTS), np.stack(expected))


def test_images_are_those_of_an_eva_tower_with_the_pooling_head(nomic: Path) -> None:
    from embark.models.eva import Eva, Pooling, rotation

    eva, head = tower()
    eyes = transformers.CLIPImageProcessorPil.from_pretrained(nomic)
    seen = eyes([image.convert("RGB") for image in PICTURES], return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        expected = Pooling(head, 8, 1e-6)(Eva(eva, rotation(8, 3, 3), 1e-6, 1e-5)(seen))
    model = get_model(str(nomic), loading=Loading(device="cpu"))
    found = vectors(model, PICTURES)
    assert same(found, unit(expected.numpy()))
    assert not same(found[0], found[1])


def test_the_pair_is_one_encoder(nomic: Path) -> None:
    model = get_model(f"nomic:{nomic}", loading=Loading(device="cpu"))
    assert (model.card.dim, model.card.fusion) == (16, "unit-sum")
    assert model.card.modalities == ("text", "image", "video")
    things = [*TEXTS, *PICTURES, film(1), ("dog", PICTURES[0])]
    whole = vectors(model, things)
    assert same(one_by_one(model, things), whole)
    assert same(whole[-1], whole[0] + whole[3])
    assert same(whole[6], unit(vectors(model, film(1)).sum(0)))
    assert same(vectors(model, things, "query", "Find it."), whole)  # MIEB puts no prefix before texts


def test_a_text_half_alone_is_told_apart(nomic: Path) -> None:
    with pytest.raises(EmbarkError, match=r"is no vision checkpoint of Nomic's.*text:"):
        get_model(str(nomic / "text"), loading=Loading(device="cpu"))
