"""Checkpoints as people bring them: by folder, whole or broken, in a precision of their choice, and with consent."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import embark
from embark.models import Loading, find_card, get_model, get_reranker
from embark.models.checkpoints import folder_revision
from embark.protocol import vector_space
from embark.types import EmbarkError
from tiny import saved, wordpiece

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

TASK = "PocketNameClustering"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(3)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    tokens = wordpiece()
    model = transformers.BertModel(transformers.BertConfig(**shape, vocab_size=len(tokens)))
    return saved(tmp_path_factory.mktemp("models") / "my-bert", model, tokens)


@pytest.fixture
def other(bert: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(bert, tmp_path / "my-bert"))


def test_a_folder_has_its_vectors_wherever_it_lies(bert: Path, other: Path) -> None:
    here, there = (get_model(str(folder)).card for folder in (bert, other))
    assert here.source != there.source
    assert vector_space(here) == vector_space(there)


def test_a_loader_may_be_named_for_a_folder(bert: Path) -> None:
    card = get_model(f"text:{bert}").card
    assert (card.name, card.revision) == ("local/text:my-bert", folder_revision(bert))


def test_vectors_are_stored_in_float32_unless_another_precision_is_asked_for() -> None:
    single, half = (get_model("embark/pocket", loading=Loading(stored_dtype=dtype)).card for dtype in (None, "float16"))
    assert (single.stored, half.stored) == ("float32", "float16")
    assert (single.name, half.name) == ("embark/pocket", "embark/pocket (float16 vectors)")
    assert get_model("embark/pocket", loading=Loading(stored_dtype="float32")).card == single
    assert vector_space(single) != vector_space(half)
    with pytest.raises(EmbarkError, match="cannot be stored as 'int8'; known precisions: float32 and float16"):
        get_model("embark/pocket", loading=Loading(stored_dtype="int8"))


def test_a_model_stored_in_half_precision_is_found_by_the_name_of_its_results() -> None:
    loading = embark.Loading(stored_dtype="float16")
    assert embark.evaluate("embark/random", TASK, loading=loading, show_progress=False).embedded
    again = embark.evaluate("embark/random (float16 vectors)", TASK, rescore=True, show_progress=False)
    assert (again.embedded, again.computed) == (0, 1)
    assert embark.evaluate("embark/random", TASK, show_progress=False).embedded


@pytest.mark.parametrize("device", ["tpu", "banana", "cuda:", "cpu,tpu", "", 3])
def test_an_unknown_device_is_an_error_for_every_model(device: Any) -> None:
    with pytest.raises(EmbarkError, match=f"There is no device '{device}'. Write auto, cpu, cuda, mps, xpu"):
        Loading(device)


@pytest.mark.slow
def test_another_precision_has_results_of_its_own(bert: Path) -> None:
    full, half = (get_model(str(bert), loading=Loading(device="cpu", dtype=dtype)) for dtype in (None, "bfloat16"))
    assert [each.card.name for each in (full, half)] == ["local/my-bert", "local/my-bert (bfloat16)"]
    assert get_model(str(bert), loading=Loading(device="cpu", dtype="float32")).card == full.card
    computed = [embark.evaluate(model, TASK, show_progress=False).computed for model in (full, half, full)]
    assert computed == [1, 1, 0]
    with pytest.raises(EmbarkError, match="embark/pocket has one precision, float32"):
        get_model("embark/pocket", loading=Loading(dtype="bfloat16"))


def test_consent_is_on_record(other: Path) -> None:
    state = safetensors.load_file(other / "model.safetensors")
    assert "trust" not in get_model(str(other)).card.loaded
    torch.save(state, other / "pytorch_model.bin")
    (other / "model.safetensors").unlink()
    with pytest.raises(EmbarkError, match=f"pickles.*--trust {folder_revision(other)}"):
        get_model(str(other))
    model = get_model(str(other), loading=Loading(trust=folder_revision(other)))
    [result] = embark.evaluate(model, TASK, show_progress=False).results
    assert result.records[0].loaded["trust"] == folder_revision(other)
    saved_again = embark.evaluate(model, TASK, show_progress=False).results[0]
    assert saved_again.records[0].loaded["trust"] == folder_revision(other)


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def without_tokeniser(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def half_a_file(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:500])


def half_a_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def a_list_for_a_config(folder: Path) -> None:
    (folder / "config.json").write_text("[]")


def of_another_shape(folder: Path) -> None:
    state = safetensors.load_file(folder / "model.safetensors")
    name = "encoder.layer.0.output.dense.weight"
    safetensors.save_file({**state, name: torch.zeros(16, 8)}, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (without_weights, "there are no weights in"),
        (without_tokeniser, "holds no tokeniser"),
        (half_a_file, "local/my-bert cannot be loaded as 'text': "),
        (half_a_config, r"config\.json is no JSON"),
        (a_list_for_a_config, r"config\.json holds no names and values, but a list"),
        (of_another_shape, r"lacks 1 weights of AutoModel, the first is encoder\.layer\.0\.output\.dense\.weight"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_checkpoint_that_is_not_whole_is_not_loaded(
    other: Path, broken: Callable[[Path], None], message: str
) -> None:
    broken(other)
    with pytest.raises(EmbarkError, match=message):
        get_model(str(other))


def test_a_sentence_transformer_without_tokeniser_is_not_loaded(bert: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    folder = tmp_path / "st"
    library.SentenceTransformer(str(bert), device="cpu").save(str(folder))
    assert get_model(str(folder)).card.dim == 16
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(EmbarkError, match="holds no tokeniser"):
        get_model(str(folder))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "There is no folder ./nowhere"),
        ("daul:org/name", "There is no loader 'daul' for daul:org/name; there are .*dual"),
        ("org/unknown", "named by a folder with their checkpoint, or as LOADER:ID-OR-FOLDER"),
    ],
)
def test_names_that_mean_nothing(name: str, message: str) -> None:
    with pytest.raises(EmbarkError, match=message):
        find_card(name)


def test_an_option_that_the_loader_does_not_read_is_refused(bert: Path) -> None:
    card = replace(find_card(f"text:{bert}"), options={"poling": "last"})
    with pytest.raises(EmbarkError, match=r"no option of the loader text named 'poling'.* pooling"):
        get_model(card)
    loaded = get_model(f"text:{bert}").card
    assert loaded.options["loader"] > 1
    assert get_model(replace(loaded, loaded={})).card.options == loaded.options  # a loaded card is loaded again


def test_an_embedder_is_no_reranker(bert: Path) -> None:
    with pytest.raises(EmbarkError, match="is an embedding model; what is needed here is a re-ranker"):
        get_reranker(str(bert))


def test_a_card_of_ones_own_as_the_documentation_shows(bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```py\n(.*?)```", page, flags=re.S) if "ModelCard(" in b)
    shutil.copytree(bert, "my-checkpoint")
    exec(compile(block, "docs", "exec"), {})
    assert re.search(r" ± \d| \[\d", capsys.readouterr().out)


def test_loading_is_silent(bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    get_model(str(bert))
    assert capfd.readouterr().err == ""
