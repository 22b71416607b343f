"""Encoders from ONNX files, compared with the numbers that their graphs stand for, and without torch at run time."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark.models import get_model
from embark.models.encoder import unit
from embark.types import Array, EmbarkError
from tiny import TEXTS, film, item, one_by_one, picture, prepared, same, saved, vectors, wordpiece

onnx = pytest.importorskip("onnx")
WIDTH, SIDE = 6, 4
RANDOM = np.random.default_rng(0)
WORDS = RANDOM.normal(size=(200, WIDTH)).astype(np.float32)
PIXELS = RANDOM.normal(size=(3 * SIDE * SIDE, WIDTH)).astype(np.float32)
CONFIG: dict[str, Any] = {
    "do_resize": True, "size": {"shortest_edge": SIDE}, "resample": 3,
    "do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE},
    "do_rescale": True, "rescale_factor": 1 / 255,
    "do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4],
}  # fmt: skip


@cache
def tokenizer() -> Any:
    """One for all: two that were trained alike may number their words otherwise."""
    return wordpiece()


def graph(path: Path, nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], **weights: Array) -> None:
    from onnx import helper, numpy_helper

    def values(told: dict[str, Any]) -> list[Any]:
        return [helper.make_tensor_value_info(name, *how) for name, how in told.items()]

    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    whole = helper.make_graph(nodes, "tiny", values(inputs), values(outputs), held)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), str(path))


def words(
    path: Path, masked: bool = True, output: str = "last_hidden_state", shape: tuple[Any, Any] = ("batch", "tokens")
) -> None:
    """A row of the table for each token; where it can see the others, with their sum."""
    from onnx import TensorProto as Kind
    from onnx import helper

    inputs: dict[str, Any] = {"input_ids": (Kind.INT64, [*shape])}
    nodes = [helper.make_node("Gather", ["table", "input_ids"], [output])]
    if masked:
        inputs["attention_mask"] = (Kind.INT64, [*shape])
        nodes = [
            helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=Kind.FLOAT),
            helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
            helper.make_node("Mul", ["rows", "column"], ["seen"]),
            helper.make_node("ReduceSum", ["seen", "middle"], ["sum"], keepdims=1),
            helper.make_node("Add", ["rows", "sum"], [output]),
        ]
    held = {"table": WORDS, **({"last": np.array([2]), "middle": np.array([1])} if masked else {})}
    graph(path, nodes, inputs, {output: (Kind.FLOAT, [*shape, WIDTH])}, **held)


def images(path: Path) -> None:
    from onnx import TensorProto as Kind
    from onnx import helper

    nodes = [
        helper.make_node("Flatten", ["pixel_values"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weights"], ["image_embeds"]),
    ]
    inputs = {"pixel_values": (Kind.FLOAT, ["batch", 3, SIDE, SIDE])}
    graph(path, nodes, inputs, {"image_embeds": (Kind.FLOAT, ["batch", WIDTH])}, weights=PIXELS)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = saved(tmp_path / "text", tokenizer())
    words(folder / "model.onnx")
    (folder / "embark.json").write_text('{"pooling": "mean"}')
    return folder


def states(text: str) -> Array:
    rows = WORDS[tokenizer()(text)["input_ids"]]
    return np.asarray(rows + rows.sum(0))


def pixels(image: Image.Image) -> Array:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    told = {name: value for name, value in CONFIG.items() if name != "resample"}
    values = CLIPImageProcessorPil(**told, resample=Image.Resampling.BICUBIC)(image, return_tensors="np")
    return np.asarray(values["pixel_values"][0].reshape(-1) @ PIXELS)


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_texts_are_pooled_as_said(texts: Path, pooling: str) -> None:
    (texts / "embark.json").write_text(json.dumps({"pooling": pooling, "normalise": pooling == "mean"}))
    model = get_model(f"onnx:{texts}")
    assert (model.card.modalities, model.card.dim, model.card.fusion) == (("text",), WIDTH, None)
    assert model.card.revision.startswith("local-")
    pool = {"mean": lambda s: s.mean(0), "first": lambda s: s[0], "last": lambda s: s[-1]}[pooling]
    expected = np.stack([pool(states(text)) for text in TEXTS])
    expected = unit(expected) if pooling == "mean" else expected
    assert same(vectors(model, TEXTS), expected)
    assert same(one_by_one(model, TEXTS), expected)


def test_the_pooling_that_sentence_transformers_wrote(texts: Path) -> None:
    (texts / "embark.json").unlink()
    (texts / "1_Pooling").mkdir()
    for told in ({"pooling_mode": "cls"}, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}):
        (texts / "1_Pooling" / "config.json").write_text(json.dumps(told))
        assert same(vectors(get_model(f"onnx:{texts}"), ["a dog"]), states("a dog")[:1])


def test_one_file_in_the_usual_folder(texts: Path) -> None:
    (texts / "onnx").mkdir()
    file = (texts / "model.onnx").rename(texts / "onnx" / "model_quantized.onnx")
    model = get_model(f"onnx:{file}")
    assert same(vectors(model, ["a dog"]), states("a dog").mean(0)[None])
    with pytest.raises(EmbarkError, match="holds no ONNX encoder"):
        get_model(f"onnx:{texts}")
    file.rename(texts / "onnx" / "model.onnx")
    assert get_model(str(texts)).card.loader == "onnx"  # the folder's name alone, as exporters lay it out


def test_padding_that_cannot_be_masked_is_avoided(tmp_path: Path) -> None:
    folder = saved(tmp_path / "text", tokenizer())
    words(folder / "text_model.onnx", masked=False)
    (folder / "embark.json").write_text('{"pooling": "last", "tokens": 6}')
    model = get_model(f"onnx:{folder}")
    expected = np.stack([WORDS[tokenizer()(text, truncation=True, max_length=6)["input_ids"][-1]] for text in TEXTS])
    assert same(vectors(model, TEXTS), expected)


def exported(folder: Path, cut: int, fill: int, **files: Any) -> Path:
    """The folder with lengths in its tokenizer.json, as exporters leave them there, and these JSON files."""
    from tokenizers import Tokenizer

    inner = Tokenizer.from_file(str(folder / "tokenizer.json"))
    inner.enable_truncation(cut)
    inner.enable_padding(length=fill, pad_id=3)
    inner.save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


LONG = "two people ride bicycles along the river, and then a small dog jumps over the table " * 4


@pytest.mark.parametrize(
    ("files", "tokens"),
    [
        ({"sentence_bert_config": {"max_seq_length": 20}}, 20),
        ({"tokenizer_config": {"model_max_length": 30}}, 30),
        ({"tokenizer_config": {"model_max_length": 1e30}, "config": {"max_position_embeddings": 40}}, 40),
        ({"embark": {"pooling": "mean", "tokens": 9}, "sentence_bert_config": {"max_seq_length": 20}}, 9),
        ({"config": {"text_config": {"max_position_embeddings": 40}}, "tokenizer_config": {}}, 40),
    ],
)
def test_lengths_that_an_exporter_left_in_the_tokeniser_decide_nothing(
    texts: Path, files: dict[str, Any], tokens: int
) -> None:
    model = get_model(f"onnx:{exported(texts, 6, 12, **files)}")
    assert model.card.loaded["tokens"] == tokens
    cut = tokenizer()(LONG, truncation=True, max_length=tokens)["input_ids"]
    assert same(vectors(model, [LONG]), (WORDS[cut] + WORDS[cut].sum(0)).mean(0)[None], 1e-5)
    ((_, (ids, mask)),) = prepared(model, ["dog"])[0]
    assert len(ids) == len(tokenizer()("dog")["input_ids"]) == sum(mask)  # no padding before there is a batch
    assert same(vectors(model, ["dog", LONG]), one_by_one(model, ["dog", LONG]), 1e-5)


def test_a_text_is_cut_on_the_side_that_the_tokeniser_names(texts: Path) -> None:
    facts = {"model_max_length": 9, "truncation_side": "left"}
    model = get_model(f"onnx:{exported(texts, 6, 12, tokenizer_config=facts)}")
    ids = tokenizer()(LONG)["input_ids"]
    kept = [ids[0], *ids[-8:]]
    assert same(vectors(model, [LONG]), (WORDS[kept] + WORDS[kept].sum(0)).mean(0)[None], 1e-5)


@pytest.mark.parametrize("shape", [("batch", 12), (1, 12), (2, "tokens"), (3, 12)])
def test_a_graph_of_fixed_size_gets_it(texts: Path, shape: tuple[Any, Any]) -> None:
    words(texts / "model.onnx", shape=shape)
    model = get_model(f"onnx:{exported(texts, 6, 20, tokenizer_config={'model_max_length': 30})}")
    tokens = 12 if shape[1] == 12 else 30
    assert model.card.loaded["tokens"] == tokens
    several = ["dog", "a red apple", LONG, "a photo", "two people"]
    cut = [tokenizer()(text, truncation=True, max_length=tokens)["input_ids"] for text in several]
    expected = np.stack([(WORDS[ids] + WORDS[ids].sum(0)).mean(0) for ids in cut])
    assert same(vectors(model, several), expected, 1e-5)
    assert same(one_by_one(model, several), expected, 1e-5)


def test_padding_that_the_model_reads_stays(tmp_path: Path) -> None:
    """SigLIP's graph takes no mask: its texts are filled up to the length that its tokeniser states."""
    folder = saved(tmp_path / "text", tokenizer())
    words(folder / "text_model.onnx", masked=False)
    (folder / "embark.json").write_text('{"pooling": "last"}')
    model = get_model(f"onnx:{exported(folder, 64, 64, tokenizer_config={'model_max_length': 64})}")
    ((_, (ids, mask)),) = prepared(model, ["dog"])[0]
    assert (len(ids), ids[-1], sum(mask)) == (64, 3, len(tokenizer()("dog")["input_ids"]))


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        ({"model_type": "siglip", "text_config": {"max_position_embeddings": 16}}, 16),
        ({"model_type": "siglip_text_model", "max_position_embeddings": 16}, 16),
        ({"model_type": "bert", "max_position_embeddings": 16}, None),
    ],
)
@pytest.mark.parametrize("fill", [0, 64])
def test_the_model_decides_whether_padding_is_read_and_not_the_exporter(
    config: dict[str, Any], tokens: int | None, fill: int, tmp_path: Path
) -> None:
    folder = saved(tmp_path / "text", tokenizer())
    words(folder / "text_model.onnx", masked=False)
    if fill:
        exported(folder, fill, fill)
    (folder / "embark.json").write_text('{"pooling": "last"}')
    (folder / "config.json").write_text(json.dumps(config))
    ((_, (ids, _)),) = prepared(get_model(f"onnx:{folder}"), ["dog"])[0]
    own = tokenizer()("dog")["input_ids"]
    padding = 3 if fill else tokenizer().pad_token_id
    assert ids == own + [padding] * ((tokens or len(own)) - len(own))


def test_prompts(texts: Path) -> None:
    told = {"pooling": "mean", "prompts": {"query": "a red "}, "template": "{instruction}: "}
    (texts / "embark.json").write_text(json.dumps(told))
    model = get_model(f"onnx:{texts}")
    assert same(vectors(model, ["dog"], "query"), states("a red dog").mean(0)[None])
    assert same(vectors(model, ["dog"], "document"), states("dog").mean(0)[None])
    assert same(vectors(model, ["dog"], "query", "two people"), states("two people: dog").mean(0)[None])
    assert model.render(item("dog"), "query", None) != model.render(item("dog"), "document", None)


def test_texts_and_images_together(texts: Path) -> None:
    (texts / "model.onnx").rename(texts / "text_model.onnx")
    images(texts / "vision_model.onnx")
    (texts / "preprocessor_config.json").write_text(json.dumps(CONFIG))
    model = get_model(f"onnx:{texts}")
    assert (model.card.modalities, model.card.fusion) == (("text", "image", "video"), "unit-sum")
    shown = [picture(1), picture(2, (20, 50)), picture(3, (31, 31), "RGBA")]
    expected = np.stack([pixels(image.convert("RGB")) for image in shown])
    assert same(vectors(model, shown), expected)
    assert same(one_by_one(model, shown), expected)
    both = unit(expected[0]) + unit(states("a dog").mean(0))
    assert same(vectors(model, [("a dog", shown[0])]), both[None])
    frames = film(1)
    mean = unit(np.sum([unit(pixels(frame)) for frame in frames], 0))
    assert same(vectors(model, [frames]), mean[None])


@pytest.mark.parametrize("size", [{"height": 5, "width": 3}, {"shortest_edge": 7}])
def test_pixels_are_those_of_transformers(size: dict[str, int]) -> None:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    from embark.models.onnx import ImagePreprocessor

    told = {**CONFIG, "size": size, "do_center_crop": False}
    library = CLIPImageProcessorPil(**told)
    for image in (picture(1), picture(2, (23, 50)), picture(3, (31, 31), "L")):
        expected = library(image.convert("RGB"), return_tensors="np")["pixel_values"][0]
        assert same(ImagePreprocessor(told)(image), expected, 1e-6)


def test_mistakes_are_explained(texts: Path) -> None:
    (texts / "embark.json").write_text("{}")
    with pytest.raises(EmbarkError, match="nothing says how to pool them"):
        get_model(f"onnx:{texts}")
    (texts / "embark.json").write_text('{"pooling": "max"}')
    with pytest.raises(EmbarkError, match="no pooling 'max'; there are last, first, mean"):
        get_model(f"onnx:{texts}")
    (texts / "tokenizer.json").unlink()
    with pytest.raises(EmbarkError, match=r"no tokenizer\.json"):
        get_model(f"onnx:{texts}")


def test_inputs_that_nobody_makes_are_named(texts: Path) -> None:
    from onnx import TensorProto as Kind
    from onnx import helper

    inputs: dict[str, Any] = {name: (Kind.INT64, ["b", "t"]) for name in ("input_ids", "past_key_values")}
    nodes = [helper.make_node("Add", ["input_ids", "past_key_values"], ["out"])]
    graph(texts / "model.onnx", nodes, inputs, {"out": (Kind.INT64, ["b", "t"])})
    with pytest.raises(EmbarkError, match="asks for past_key_values"):
        get_model(f"onnx:{texts}")


def test_torch_is_not_needed(texts: Path) -> None:
    code = (
        "import sys; from embark import get_model; from embark.types import Content\n"
        f"m = get_model('onnx:{texts}'); m.embed([m.prepare([Content('text', 'dog')], '')])\n"
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
