"""VISTA on tiny checkpoints of both text families: patches beside words, as the library's BERT reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark.models import Encoder, Loading, get_model
from embark.models.checkpoints import folder_revision
from embark.models.encoder import unit
from embark.types import EmbarkError
from tiny import TEXTS, eva_weights, film, one_by_one, picture, prepared, same, saved, unigram, vectors, wordpiece

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PICTURES = [picture(1), picture(2, (31, 50)), picture(3, (64, 64), "L")]
SIZES = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 66, "initializer_range": 0.3,
}  # fmt: skip


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def vista(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from embark.models.eva import rotation

    torch.manual_seed(0)
    if request.param == "bert":
        read = wordpiece()
        config = transformers.BertConfig(**SIZES, vocab_size=len(read))
    else:
        marks = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
        read = unigram("<s> $A </s>", **marks)
        config = transformers.XLMRobertaConfig(**SIZES, vocab_size=len(read), pad_token_id=read.pad_token_id)
    bert = transformers.AutoModel.from_config(config)
    folder = tmp_path_factory.mktemp("vista")
    saved(folder / "text", config, read)
    torch.save(published(bert, *rotation(8, 3, 16)), folder / "visualized.pth")
    return folder


def published(bert: Any, cosines: Any, sines: Any) -> dict[str, Any]:
    """Weights as the repository names them, with those that nobody reads."""
    out = {f"bge_{name}": tensor for name, tensor in bert.state_dict().items()}
    eva = eva_weights() | {"rope.freqs_cos": cosines, "rope.freqs_sin": sines}
    eva |= {"blocks.0.attn.rope.freqs_cos": cosines, "norm.weight": torch.ones(16), "head.weight": torch.ones(4, 16)}
    for name, tensor in eva.items():
        name = name.replace("q_proj.bias", "q_bias").replace("v_proj.bias", "v_bias")
        out[f"model_visual.visual.{name}"] = tensor
    project = {"visual_proj.weight": torch.randn(16, 16), "visual_proj.bias": torch.randn(16)}
    return out | project | {"model_visual.logit_scale": torch.tensor(1.0)}


@pytest.fixture(scope="module")
def model(vista: Path) -> Encoder:
    return get_model(f"vista:{vista}", loading=Loading(device="cpu", trust=folder_revision(vista)))


def bert_of(folder: Path) -> tuple[Any, dict[str, Any]]:
    state = torch.load(folder / "visualized.pth", weights_only=True)
    bert = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(folder / "text")).eval()
    bert.load_state_dict({name.removeprefix("bge_"): each for name, each in state.items() if name.startswith("bge_")})
    return bert, state


def test_texts_are_those_of_the_bert(vista: Path, model: Encoder) -> None:
    bert, _ = bert_of(vista)
    read = transformers.AutoTokenizer.from_pretrained(vista / "text")(list(TEXTS), padding=True, return_tensors="pt")
    given = {name: read[name] for name in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        assert same(vectors(model, TEXTS), unit(bert(**given).last_hidden_state[:, 0].numpy()))


@pytest.mark.parametrize("text", ["", TEXTS[0], TEXTS[2]], ids=["image alone", "short", "long"])
def test_pictures_are_read_beside_words(vista: Path, model: Encoder, text: str) -> None:
    """The library's BERT gets patches as words; the type that it adds to all of them is taken off the patches."""
    from embark.models.eva import Eva
    from embark.models.vista import eva_preprocessor

    bert, state = bert_of(vista)
    prefix = "model_visual.visual."
    image = {name.removeprefix(prefix): each for name, each in state.items() if name.startswith(prefix)}
    image = {name.replace("_bias", "_proj.bias"): each for name, each in image.items()}
    tower = Eva(image, (image["rope.freqs_cos"], image["rope.freqs_sin"]))
    ids = torch.tensor([transformers.AutoTokenizer.from_pretrained(vista / "text")(text)["input_ids"]])
    look = eva_preprocessor(12)
    with torch.inference_mode():
        patches = tower(look.batch([look.prepare(PICTURES[1])], bert)["pixel_values"])[:, 1:]
        seen = patches @ state["visual_proj.weight"].T + state["visual_proj.bias"]
        words = bert.embeddings.word_embeddings(ids)
        whole = torch.cat([words[:, :1], seen - bert.embeddings.token_type_embeddings.weight[0], words[:, 1:]], 1)
        places = torch.arange(whole.shape[1])[None]
        expected = bert(inputs_embeds=whole, position_ids=places).last_hidden_state[:, 0].numpy()
    assert same(vectors(model, [(PICTURES[1], text) if text else PICTURES[1]]), unit(expected))


def test_batches_frames_and_card(model: Encoder) -> None:
    assert (model.card.dim, model.card.fusion, model.card.modalities) == (16, "native", ("text", "image", "video"))
    mixed = [("dog", PICTURES[0]), (PICTURES[1], TEXTS[2]), ("dog", film(2))]
    things = [*TEXTS, *PICTURES, film(1), *mixed]
    whole = vectors(model, things)
    assert same(one_by_one(model, things), whole)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
    assert same(whole[-1], unit(vectors(model, [("dog", frame) for frame in film(2)]).sum(0)))
    assert same(vectors(model, things, "query", "Find it."), whole)


def test_words_make_room_for_patches(model: Encoder) -> None:
    text = " ".join(TEXTS * 4)
    (_, alone), (_, beside) = prepared(model, [text, (text, PICTURES[0])])
    assert (len(alone), len(beside)) == (64, 64 - 9)


def test_pickles_need_consent(vista: Path) -> None:
    with pytest.raises(EmbarkError, match=f"pickles.*--trust {folder_revision(vista)}"):
        get_model(f"vista:{vista}", loading=Loading(device="cpu"))


def test_pixels_are_resized_cropped_and_scaled() -> None:
    from embark.models.vista import eva_preprocessor

    image = Image.new("RGB", (40, 10), "black")
    image.paste("white", (15, 0, 25, 10))
    look = eva_preprocessor(10)
    out = look.batch([look.prepare(image)], torch.zeros(1))["pixel_values"][0]
    assert out.shape == (3, 10, 10)
    assert same(
        out[:, 0, 0], (1 - np.array([0.48145466, 0.4578275, 0.40821073])) / [0.26862954, 0.26130258, 0.27577711]
    )
    assert eva_preprocessor(12).prepare(Image.new("L", (7, 31)))["pixel_values"].shape == (12, 12, 3)


def test_half_precision_is_close(vista: Path, model: Encoder) -> None:
    half = get_model(f"vista:{vista}", loading=Loading(device="cpu", dtype="bfloat16", trust=folder_revision(vista)))
    things = [*TEXTS, *PICTURES, ("dog", PICTURES[0])]
    assert half.card.dtype == "bfloat16"
    assert same(vectors(half, things), vectors(model, things), 0.1)


def test_other_weights_are_refused(vista: Path, tmp_path: Path) -> None:
    saved(tmp_path / "text", transformers.AutoConfig.from_pretrained(vista / "text"))
    torch.save({"bge_encoder.weight": torch.ones(1)}, tmp_path / "other.pth")
    with pytest.raises(EmbarkError, match=r"is no VISTA checkpoint: it lacks model_visual\.visual\.cls_token"):
        get_model(f"vista:{tmp_path}", loading=Loading(device="cpu", trust=folder_revision(tmp_path)))
