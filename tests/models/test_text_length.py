"""How long a text a model reads: one decision from card and files, the same in every loader with a tokeniser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.models import Loading, get_model, get_reranker
from embark.models.text_length import TextLength, position_count, text_length
from embark.types import Content, EmbarkError
from tiny import saved, vectors, wordpiece

BERT = {"model_type": "bert", "max_position_embeddings": 512}
ROBERTA = {"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}
ROTARY = {"model_type": "qwen3", "max_position_embeddings": 512, "rope_theta": 1e6}
SENTENCES, TOKENIZER, EXPORT = "sentence_bert_config.json", "tokenizer_config.json", "tokenizer.json"
LEFT_BEHIND = {"truncation": {"max_length": 128}, "padding": {"strategy": {"Fixed": 128}}}  # by many exporters


@pytest.mark.parametrize(
    ("files", "config", "stated", "expected"),
    [
        ({SENTENCES: {"max_seq_length": 256}, TOKENIZER: {"model_max_length": 512}}, BERT, None, (256, SENTENCES)),
        ({TOKENIZER: {"model_max_length": 384}, EXPORT: LEFT_BEHIND}, BERT, None, (384, TOKENIZER)),
        ({SENTENCES: {"max_seq_length": 256}}, BERT, 64, (64, "the card")),
        ({SENTENCES: {"max_seq_length": None}, TOKENIZER: {"model_max_length": 384}}, BERT, None, (384, TOKENIZER)),
        ({SENTENCES: {"tokenizer_args": {"model_max_length": 99}, "max_seq_length": 256}}, BERT, None, (99, SENTENCES)),
        ({"sentence_roberta_config.json": {"max_seq_length": 75}}, ROBERTA, None, (75, "sentence_roberta_config.json")),
        ({TOKENIZER: {"model_max_length": 1e30}, EXPORT: LEFT_BEHIND}, BERT, None, (512, "config.json")),
        ({TOKENIZER: {"model_max_length": int(1e30)}}, ROBERTA, None, (512, "config.json")),
        ({TOKENIZER: {"model_max_length": 514}}, ROBERTA, None, (512, "config.json")),
        ({SENTENCES: {"max_seq_length": 514}}, ROBERTA, None, (512, "config.json")),
        ({}, BERT, 4096, (512, "config.json")),
        ({TOKENIZER: {"model_max_length": 8192}}, ROTARY, None, (512, "config.json")),
        ({SENTENCES: {"max_seq_length": 8192}}, ROTARY, None, (8192, SENTENCES)),
        ({}, ROTARY, 8192, (8192, "the card")),
        ({EXPORT: LEFT_BEHIND}, {}, None, (128, EXPORT)),
        ({EXPORT: {"truncation": None}}, {}, None, (None, "")),
        ({}, {"max_position_embeddings": -1}, None, (None, "")),
    ],
)  # fmt: skip
def test_the_card_comes_first_then_the_files_within_the_models_positions(
    tmp_path: Path, files: dict[str, Any], config: dict[str, Any], stated: int | None, expected: tuple[Any, str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert text_length(tmp_path, config, stated) == TextLength(*expected)


@pytest.mark.parametrize("stated", [0, -1, "256", True, float("nan")])
def test_a_length_that_is_none_is_refused(tmp_path: Path, stated: Any) -> None:
    with pytest.raises(EmbarkError, match="is no length of a text; write a whole number of tokens"):
        text_length(tmp_path, BERT, stated)


@pytest.mark.parametrize("kind", ["roberta", "mpnet", "camembert", "xlm-roberta", "altclip_text_model"])
def test_positions_are_those_that_the_library_has_rows_for(kind: str) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoConfig, AutoModel

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    if kind == "altclip_text_model":
        from transformers import AltCLIPTextConfig, AltCLIPTextModel

        config = AltCLIPTextConfig(vocab_size=9, max_position_embeddings=14, **sizes)
        model = AltCLIPTextModel(config)
    else:
        config = AutoConfig.for_model(kind, vocab_size=9, max_position_embeddings=14, pad_token_id=1, **sizes)
        model = AutoModel.from_config(config)
    most = position_count(config.to_dict())
    assert most == 12
    model.eval()(torch.full((1, most), 5))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, most + 1), 5))


# ── the loaders ──────────────────────────────────────────────────────────────────────────────────────────────────────


def left_behind(folder: Path, cut: int = 6, fill: int = 12) -> None:
    """The lengths of an exporter in the folder's tokenizer.json."""
    from tokenizers import Tokenizer

    path = folder / EXPORT
    inner = Tokenizer.from_file(str(path))
    inner.enable_truncation(cut)
    inner.enable_padding(length=fill)
    inner.save(str(path))


def checkpoint(folder: Path, kind: str) -> Path:
    """A tiny BERT that reads 20 tokens by sentence_bert_config.json, with an exporter's lengths beside that."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    torch.manual_seed(0)
    tokenizer = wordpiece()
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=1, max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    model = BertForSequenceClassification(config) if kind == "cross-encoder" else BertModel(config)
    saved(folder, model, tokenizer)
    if kind == "sentence-transformers":
        modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
        rows = [{"name": name, "path": path, "type": f"sentence_transformers.models.{name}"} for name, path in modules]
        (folder / "modules.json").write_text(json.dumps([{"idx": idx, **row} for idx, row in enumerate(rows)]))
        (folder / "1_Pooling").mkdir()
        pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / SENTENCES).write_text('{"max_seq_length": 20}')
    left_behind(folder)
    return folder


@pytest.mark.parametrize("loader", ["text", "sentence-transformers"])
def test_encoders_read_what_sentence_transformers_says(loader: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = get_model(f"{loader}:{checkpoint(tmp_path, loader)}", loading=Loading(device="cpu"))
    assert (model.card.loaded["tokens"], model.card.loaded["tokens stated by"]) == (20, SENTENCES)
    words = ["dog"] * 18
    whole, within, beyond = vectors(model, [" ".join(text) for text in (words, [*words[:-1], "a"], [*words, "a"])])
    assert np.abs(whole - within).max() > 1e-3
    assert np.abs(whole - beyond).max() < 1e-6


def test_rerankers_read_what_sentence_transformers_says(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = get_reranker(f"cross-encoder:{checkpoint(tmp_path, 'cross-encoder')}", loading=Loading(device="cpu"))
    pair = [Content("text", "dog"), Content("text", "a dog " * 30)]
    assert len(model.prepare(pair, "1")["input_ids"]) == model.card.loaded["tokens"] == 20
