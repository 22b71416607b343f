"""Late interaction on tiny checkpoints: token vectors as the libraries make them, kept ragged, scored by maxsim."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.evaluators.similarity import exact
from embark.models import Encoder, get_model
from embark.protocol import vector_space
from embark.settings import load_settings
from embark.store import Store
from embark.types import Array, EmbarkError
from folders import two_tasks
from tiny import TEXTS, byte_bpe, check_without_weights, picture, prepared, same, saved, unigram, wordpiece

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

PAGES = [picture(1), picture(2, (90, 60)), picture(3, (60, 120), "RGBA")]


def tokens(model: Encoder, things: Sequence[Any], role: str = "document") -> list[Array]:
    """A matrix a thing, from one batch."""
    return list(model.embed(prepared(model, things, role)))


def alike(ours: Sequence[Array], theirs: Sequence[Any]) -> bool:
    return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))


def maxsim(queries: list[Array], documents: list[Array]) -> Array:
    query, document = (grid.ravel() for grid in np.indices((len(queries), len(documents))))
    return exact(queries, documents, query, document, "maxsim").reshape(len(queries), -1)


@pytest.fixture(scope="module")
def colqwen2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import ColQwen2Config, ColQwen2ForRetrieval, ColQwen2Processor, Qwen2VLConfig
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    torch.manual_seed(0)
    vision = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = byte_bpe(more=["<|im_start|>", *vision], eos_token="<|im_end|>", pad_token="<|endoftext|>", limit=512)
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10_000.0}
    inner = Qwen2VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "rope_parameters": rope, "initializer_range": 0.3,
        },
        vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2},
        **dict(zip(names, tokenizer.convert_tokens_to_ids(vision), strict=True)),
    )  # fmt: skip
    model = ColQwen2ForRetrieval(ColQwen2Config(vlm_config=inner, embedding_dim=8))
    look = Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12_544)
    return saved(tmp_path_factory.mktemp("colqwen2"), model, ColQwen2Processor(look, tokenizer))


@pytest.fixture(scope="module")
def colpali(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import ColPaliConfig, ColPaliForRetrieval, ColPaliProcessor, PaliGemmaConfig
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    torch.manual_seed(1)
    tokenizer = unigram("$A", more=["<image>"], bos_token="<bos>")
    look = SiglipImageProcessorPil(size={"height": 28, "width": 28})
    look.image_seq_length = 4
    processor = ColPaliProcessor(look, tokenizer)
    inner = PaliGemmaConfig(
        text_config={
            "model_type": "gemma", "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
            "initializer_range": 0.3,
        },
        vision_config={
            "model_type": "siglip_vision_model", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 2, "image_size": 28, "patch_size": 14,
        },
        projection_dim=32, image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )  # fmt: skip
    model = ColPaliForRetrieval(ColPaliConfig(vlm_config=inner, embedding_dim=8))
    return saved(tmp_path_factory.mktemp("colpali"), model, processor)


@pytest.fixture(params=["colpali", "colqwen2"])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def test_questions_and_pages_as_transformers_embeds_them(folder: Path) -> None:
    from transformers import AutoProcessor, ColPaliForRetrieval, ColQwen2ForRetrieval

    ours = get_model(str(folder))
    processor = AutoProcessor.from_pretrained(folder, backend="pil")
    kind = ColPaliForRetrieval if "colpali" in folder.name else ColQwen2ForRetrieval
    model = kind.from_pretrained(folder).eval()
    questions, pages = tokens(ours, TEXTS), tokens(ours, PAGES)
    theirs = []
    for things, process in ((TEXTS, processor.process_queries), (PAGES, processor.process_images)):
        one_by_one = [each if isinstance(each, str) else each.convert("RGB") for each in things]
        with torch.no_grad():
            theirs.append([model(**process([each])).embeddings[0] for each in one_by_one])
    assert alike(questions, theirs[0])
    assert alike(pages, theirs[1])
    assert same(maxsim(questions, pages), processor.score_retrieval(*theirs))
    assert len({len(each) for each in questions}) > 1  # no padding is kept
    card = ours.card
    assert (card.dim, card.similarity, card.modalities, card.fusion) == (8, "maxsim", ("text", "image"), None)


def test_items_are_prepared_without_weights(folder: Path) -> None:
    check_without_weights(str(folder), [TEXTS[0], PAGES[0]])


def test_a_batch_may_hold_both(folder: Path) -> None:
    ours = get_model(str(folder))
    both = tokens(ours, [PAGES[0], TEXTS[0], PAGES[1], TEXTS[2]])
    assert alike(both, [tokens(ours, [thing])[0] for thing in (PAGES[0], TEXTS[0], PAGES[1], TEXTS[2])])


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sentence_transformers import MultiVectorEncoder
    from transformers import BertConfig, BertModel

    torch.manual_seed(2)
    tokenizer = wordpiece(limit=128)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        initializer_range=0.3,
    )  # fmt: skip
    base = saved(tmp_path_factory.mktemp("bert"), BertModel(config), tokenizer)
    made = MultiVectorEncoder(str(base), device="cpu", local_files_only=True)
    folder = tmp_path_factory.mktemp("colbert")
    made.save(str(folder), create_model_card=False)
    return folder


def test_colbert_as_sentence_transformers_embeds_it(colbert: Path) -> None:
    from sentence_transformers import MultiVectorEncoder

    ours, theirs = (
        get_model(f"colbert:{colbert}"),
        MultiVectorEncoder(str(colbert), device="cpu", local_files_only=True),
    )
    queries, documents = tokens(ours, TEXTS, "query"), tokens(ours, TEXTS)
    assert alike(queries, [theirs.encode_query([text], convert_to_numpy=True)[0] for text in TEXTS])
    assert alike(documents, [theirs.encode_document([text], convert_to_numpy=True)[0] for text in TEXTS])
    assert ours.card.dim == queries[0].shape[1]
    assert ours.card.similarity == "maxsim"


def test_a_colbert_that_is_not_whole_is_refused(colbert: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(colbert, tmp_path / "torn")
    weights = load_file(folder / "model.safetensors")
    gone = next(name for name in weights if name.endswith("layer.1.output.dense.weight"))
    del weights[gone]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(EmbarkError, match=r"lacks 1 weights, the first is .*layer\.1\.output"):
        get_model(f"colbert:{folder}")


def test_a_projection_that_is_a_pickle_needs_consent(colbert: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    folder = Path(shutil.copytree(colbert, tmp_path / "pickled"))
    [safe] = folder.glob("*_Dense/model.safetensors")
    torch.save(load_file(safe), safe.with_name("pytorch_model.bin"))
    safe.unlink()
    with pytest.raises(EmbarkError, match=r"its weights are pickles.*--trust local-"):
        get_model(f"colbert:{folder}")


def test_a_checkpoint_of_another_kind_is_refused(colbert: Path) -> None:
    with pytest.raises(EmbarkError, match="this loader knows colpali and colqwen2"):
        get_model(f"late:{colbert}")


def test_token_vectors_are_stored_and_scored(colqwen2: Path, pictures: Callable[..., Path]) -> None:
    model = get_model(str(colqwen2))
    tasks = two_tasks(pictures())[:1]
    run = embark.evaluate(model, tasks, show_progress=False)
    assert not run.skipped
    assert run.embedded == 6
    space = Store(load_settings().store).space(vector_space(model.card))
    assert space.head is not None
    assert space.head.ragged
    [result] = run.results
    assert 0 <= result.score <= 1
    again = embark.evaluate(model, tasks, rescore=True, show_progress=False)
    assert (again.embedded, again.results[0].score) == (0, result.score)
