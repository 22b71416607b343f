"""What checkpoint files state: the doctor names every planted departure from them, and none in sound models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import embark
from embark.engine.doctor import Finding, check_files
from embark.models import Encoder, Loading, find_card, get_model
from embark.models.checkpoints import fetch_checkpoint
from embark.models.stated_vectors import stated_vectors
from embark.types import Array
from models.test_dual import FAMILIES
from planted import FAULTS, PROMPTS, SENTENCE_TRANSFORMERS, Fault, Wrapper, check_named, edited
from tiny import saved, wordpiece

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
SIDE = 16
LAYERS: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32
}  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sentence-transformers, as it writes them: a transformer of 64 tokens, mean, normalized."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(0)
    tokenizer = wordpiece()
    config = transformers.BertConfig(vocab_size=len(tokenizer), initializer_range=0.3, **LAYERS)
    root = tmp_path_factory.mktemp("st")
    plain = saved(root / "plain", transformers.BertModel(config, add_pooling_layer=False), tokenizer)
    model = SentenceTransformer(modules=[Transformer(str(plain)), Pooling(16, "mean"), Normalize()], device="cpu")
    model.save_pretrained(str(root / "whole"))
    (root / "whole" / "sentence_bert_config.json").write_text('{"max_seq_length": 64}')
    return root / "whole"


def files(model: Any, **how: Any) -> list[tuple[str, str]]:
    """The doctor's findings about the files: (verdict, message)."""
    findings = embark.doctor(model, loading=Loading("cpu"), **how).findings
    return [(f.verdict, f.message) for f in findings if f.check.endswith("files")]


def checked(model: Encoder, folder: str) -> list[Finding]:
    """The doctor's findings about the files of a folder, without its other checks."""
    loading = Loading("cpu")
    return check_files(model, lambda: stated_vectors(fetch_checkpoint(find_card(folder), loading), loading))


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named(texts: Path, tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    folder = edited(texts, tmp_path / "files", *fault.files)
    check_named(checked(fault.wrapper.encoder(folder), str(folder)), fault)


def test_sound_models_have_no_fault(texts: Path) -> None:
    for model, against in ((str(texts), None), (Wrapper().encoder(texts), str(texts))):
        examination = embark.doctor(model, loading=embark.Loading(device="cpu"), against=against)
        assert examination.faults == ()
        assert [f.verdict for f in examination.findings if f.check == "text: files"] == ["ok"]


def test_prompts_of_the_files_are_met(texts: Path, tmp_path: Path) -> None:
    folder = edited(texts, tmp_path / "prompted", (SENTENCE_TRANSFORMERS, PROMPTS))
    assert [verdict for verdict, _ in files(str(folder))] == ["ok"]
    assert {message for verdict, message in files(f"text:{folder}") if verdict != "ok"} == {
        "texts of the role document have no prompt; the files say the prompt 'passage: '.",
        "texts of the role query have no prompt; the files say the prompt 'query: '.",
    }


def test_a_short_text_that_is_delayed_is_not_called_filled_up(texts: Path) -> None:
    """By other processes of a busy machine, here by sleep: the model's work is in proportion to its texts."""
    sound = Wrapper().encoder(texts).towers["text"].embed  # type: ignore[attr-defined]
    loading = Loading("cpu")
    stated = stated_vectors(fetch_checkpoint(find_card(str(texts)), loading), loading)

    def embed(values: list[str]) -> Array:
        compute(values)
        time.sleep(0.4 * (len(values) == 1 and len(values[0]) < 100))
        return np.asarray(sound(values))

    def by_the_files(values: Sequence[str], role: str) -> Array:
        compute(values)
        return stated.embed(values, role)

    model = embark.encoder(text=embed, revision="1")
    findings = check_files(model, lambda: replace(stated, embed=by_the_files))
    assert [(finding.check, finding.verdict) for finding in findings] == [("text: files", "ok")]


def compute(values: Sequence[str]) -> None:
    """Work of the processor: 20 ms, and 10 µs a character."""
    end = time.process_time() + 2e-2 + 1e-5 * sum(map(len, values))
    while time.process_time() < end:
        pass


def test_what_a_card_states_comes_before_the_files(texts: Path, tmp_path: Path) -> None:
    folder = edited(texts, tmp_path / "prompted", (SENTENCE_TRANSFORMERS, PROMPTS))
    options = {"prompts": {"query": "a red "}, "tokens": 20}
    card = embark.types.ModelCard(
        "me/own", "1", "sentence-transformers", ("text",), source=str(folder), options=options
    )
    assert [verdict for verdict, _ in files(card)] == ["ok"]
    other = replace(card, loader="text", options={"pooling": "first"})
    assert files(other) == [("note", "not checked: the card replaces what the files say, by its own pooling")]


def test_a_model_whose_files_state_too_little_is_not_checked(texts: Path, tmp_path: Path) -> None:
    folder = edited(texts, tmp_path / "plain")
    (folder / "modules.json").unlink()
    [(verdict, message)] = files(str(folder))
    assert (verdict, message.partition(" /")[0]) == ("note", "not checked:")
    assert "no modules.json" in message
    [(verdict, message)] = files("embark/random")
    assert (verdict, message) == (
        "note", "not checked: the card names no checkpoint; say what to compare with: --against FOLDER"
    )  # fmt: skip


def test_an_export_is_held_against_its_original(texts: Path) -> None:
    whole = Wrapper().encoder(texts)

    def rounded(values: list[str]) -> Array:
        """As an export with whole numbers has it: near, and never equal."""
        return np.round(24 * whole.towers["text"].embed(values)) / 24  # type: ignore[attr-defined]

    [(verdict, message)] = files(embark.encoder(text=rounded, revision="1"), against=str(texts))
    assert (verdict, "8 of 8 differ" in message) == ("note", True)
    shorter = embark.encoder(text=lambda values: rounded(values)[:, :8], revision="1")
    assert "vectors have 8 dimensions" in files(shorter, against=str(texts))[0][1]


# ── images ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny CLIP."""
    torch.manual_seed(0)
    tokenizer = wordpiece()
    vision = {**LAYERS, "image_size": SIDE, "patch_size": 8, "initializer_factor": 10.0}
    text = {**LAYERS, "vocab_size": len(tokenizer), "max_position_embeddings": 20}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=12)
    sizes = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    processor = transformers.CLIPImageProcessorPil(**sizes)
    return saved(tmp_path_factory.mktemp("clip"), transformers.CLIPModel(config), tokenizer, processor)


def clip(folder: Path, prepare: Any = lambda image: image, similarity: Any = "cosine", **changes: Any) -> Encoder:
    """How a user's function embeds pictures with a CLIP."""
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    processor = transformers.CLIPImageProcessorPil.from_pretrained(folder)

    @torch.no_grad()
    def embed(pictures: Sequence[Image.Image]) -> Array:
        rows = [processor(prepare(p.convert("RGB")), return_tensors="pt", **changes) for p in pictures]
        return np.concatenate([model.get_image_features(**row).pooler_output.numpy() for row in rows])

    return embark.encoder(image=embed, name="me/clip", revision="1", similarity=similarity)


def bgr(image: Image.Image) -> Image.Image:
    return Image.merge("RGB", image.split()[::-1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prepare": bgr}, "channels in the order BGR"),
        ({"do_normalize": False}, "pixels are not normalized"),
        ({"do_rescale": False}, "not scaled to 0…1"),
        ({"do_rescale": False, "do_normalize": False}, "neither scaled nor normalized"),
        ({"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, "by the mean and spread of 0.5"),
        ({"do_center_crop": False, "size": {"height": SIDE, "width": SIDE}}, "squeezed into a square"),
        ({"do_resize": False}, "not resized before"),
        ({"size": {"shortest_edge": 18}}, "resized to 18 pixels before they are cropped"),
        ({"resample": 0}, "nearest resampling"),
        ({"prepare": lambda image: image.resize((8, 8))}, "vectors are others"),
        ({"prepare": lambda image: ImageOps.pad(image, (SIDE, SIDE))}, "vectors are others"),
    ],
)
def test_wrong_pixels_are_named(images: Path, changes: dict[str, Any], words: str) -> None:
    check_named(checked(clip(images, **changes), str(images)), Fault(Wrapper(), "image: files", words))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_image_models_is_sound(tmp_path: Path, family: str) -> None:
    model, *parts = FAMILIES[family]()
    folder = str(saved(tmp_path / family, model, *parts))
    assert [finding.verdict for finding in checked(get_model(folder, loading=Loading(device="cpu")), folder)] == ["ok"]


def test_right_pixels_have_no_fault(images: Path) -> None:
    for model in (str(images), clip(images)):
        assert [verdict for verdict, _ in files(model, against=str(images))] == ["ok"]


def test_a_similarity_that_is_not_that_of_the_model_is_named(images: Path) -> None:
    [fault] = embark.doctor(
        clip(images, similarity="dot"), loading=embark.Loading(device="cpu"), against=str(images)
    ).faults
    assert (fault.check, "by cosine, the card by dot" in fault.message) == ("similarity", True)
