"""Re-rankers on tiny checkpoints of their true architectures, against what the libraries themselves compute."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from embark.items.decoding import decode
from embark.models import find_card, get_model, get_reranker
from embark.models.cards.rerank import JINA, QWEN3, QWEN3_VL
from embark.models.encoder import Reranker, prepare_many
from embark.models.loading import Loading
from embark.models.rerank import load_jina
from embark.types import Array, EmbarkError
from folders import two_tasks
from tiny import byte_bpe, comparable, item, picture, same, saved, wordpiece

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

PAIRS = [
    ("dog", "a small dog"),
    ("what is shown?", "two people ride bicycles along the river in the evening"),
    ("a", "b"),
]
VISION = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
ROPE = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10_000.0}


def prepared(model: Reranker, pairs: Sequence[tuple[Any, Any]], instruction: str | None = None) -> list[Any]:
    """What `score` takes, made as the engine makes it; many pairs are prepared as each of them."""
    batch, modes = [], []
    for query, document in pairs:
        halves = [item(*(half if isinstance(half, tuple) else (half,))) for half in (query, document)]
        rendered = model.render(*halves, instruction)
        batch.append(decode(rendered.parts, model.card.frames, 16_000))
        modes.append(rendered.mode)
    out = [model.prepare(contents, mode) for contents, mode in zip(batch, modes, strict=True)]
    assert comparable(list(prepare_many(model, batch, modes))) == comparable(out)
    return out


def scores(model: Reranker, pairs: Sequence[tuple[Any, Any]], instruction: str | None = None) -> Array:
    return model.score(prepared(model, pairs, instruction))


def alone(model: Reranker, pairs: Sequence[tuple[Any, Any]]) -> Array:
    return np.concatenate([scores(model, [pair]) for pair in pairs])


# ── cross-encoders ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = wordpiece()
    ends = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, num_labels=1, initializer_range=0.5,
    )  # fmt: skip
    return saved(tmp_path_factory.mktemp("bert"), BertForSequenceClassification(config), tokenizer)


def test_a_cross_encoder_scores_as_sentence_transformers_does(bert: Path) -> None:
    from sentence_transformers import CrossEncoder

    ours, theirs = get_reranker(str(bert)), CrossEncoder(str(bert), device="cpu", local_files_only=True)
    expected = theirs.predict(PAIRS, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    assert same(scores(ours, PAIRS), expected)
    assert same(alone(ours, PAIRS), expected)
    assert np.ptp(expected) > 1e-3
    card = ours.card
    assert (card.kind, card.modalities, card.dim, card.stored) == ("reranker", ("text",), 1, "float32")


def test_long_pairs_are_cut_and_not_refused(bert: Path) -> None:
    [score] = scores(get_reranker(str(bert)), [("dog " * 100, "river " * 200)])
    assert np.isfinite(score)


def test_an_empty_document_is_read_alike_alone_and_among_others(bert: Path) -> None:
    model = get_reranker(str(bert))
    assert same(scores(model, [*PAIRS, ("dog", "")]), alone(model, [*PAIRS, ("dog", "")]))


def test_a_reranker_is_no_embedder(bert: Path) -> None:
    assert find_card(str(bert)).kind == "reranker"
    with pytest.raises(EmbarkError, match="is a re-ranker; what is needed here is an embedding model"):
        get_model(str(bert))


def test_classes_are_no_scores(bert: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig.from_pretrained(bert, num_labels=3)
    folder = saved(tmp_path, BertForSequenceClassification(config), wordpiece())
    with pytest.raises(EmbarkError, match="tells 3 classes apart"):
        get_reranker(f"cross-encoder:{folder}")


@pytest.mark.parametrize("known", [{}, {"pad_token_id": None}, {"pad_token_id": 300}])
@pytest.mark.parametrize("filling", [{"pad_token": "<|end|>"}, {"eos_token": "<|end|>"}])
def test_a_decoder_scores_a_pair_alike_alone_and_in_a_batch(
    known: dict[str, Any], filling: dict[str, str], tmp_path: Path
) -> None:
    from transformers import LlamaConfig, LlamaForSequenceClassification

    torch.manual_seed(0)
    tokenizer = byte_bpe("$A", **filling)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        num_key_value_heads=1, num_labels=1, initializer_range=0.3, **known,
    )  # fmt: skip
    library = LlamaForSequenceClassification(config).eval()
    ours = get_reranker(str(saved(tmp_path, library, tokenizer)))
    with torch.no_grad():
        states = [library.model(**tokenizer(*pair, return_tensors="pt")).last_hidden_state[:, -1] for pair in PAIRS]
        expected = library.score(torch.cat(states))[:, 0]
    assert same(scores(ours, PAIRS), expected)
    assert same(alone(ours, PAIRS), expected)


# ── yes or no ────────────────────────────────────────────────────────────────────────────────────────────────────────


def qwen_tokenizer() -> Any:
    more = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", *VISION, "yes", "no"]
    return byte_bpe(more=more, pad_token="<|endoftext|>", limit=4096)


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(1)
    tokenizer = qwen_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=4096, initializer_range=0.3,
    )  # fmt: skip
    return saved(tmp_path_factory.mktemp("qwen3"), Qwen3ForCausalLM(config), tokenizer)


def published(folder: Path, query: str, document: str, instruction: str) -> float:
    """As the model's page does it: three token lists put together, the two words' share of the probability."""
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    tokenizer, model = AutoTokenizer.from_pretrained(folder), Qwen3ForCausalLM.from_pretrained(folder).eval()
    before, after = QWEN3["template"].split("<Instruct>")[0], QWEN3["template"].split("{document}")[1]
    asked = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
    ids = [token for text in (before, asked, after) for token in tokenizer(text)["input_ids"]]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -1]
    words = torch.stack([logits[tokenizer.convert_tokens_to_ids(word)] for word in ("no", "yes")])
    return float(torch.logit(torch.softmax(words, 0)[1], eps=1e-7))


def test_a_language_model_is_asked_as_published(qwen3: Path) -> None:
    ours = get_reranker(f"yes-no:{qwen3}")
    expected = np.array([published(qwen3, *pair, QWEN3["instruction"]) for pair in PAIRS])
    assert same(scores(ours, PAIRS), expected, 1e-4)
    assert same(alone(ours, PAIRS), scores(ours, PAIRS))
    other = np.array([published(qwen3, *pair, "Find the dog.") for pair in PAIRS])
    assert same(scores(ours, PAIRS, "Find the dog."), other, 1e-4)
    assert not same(other, expected, 1e-2)
    assert ours.card.modalities == ("text",)


@pytest.mark.slow
def test_compiled_it_runs_what_was_compiled(qwen3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, graphs = torch.nn.Module.compile, []
    run = lambda graph, _: graphs.append(graph) or graph.forward  # noqa: E731
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: plain(module, backend=run))
    torch._dynamo.reset()
    compiled = scores(get_reranker(f"yes-no:{qwen3}", loading=Loading(device="cpu", compile=True)), PAIRS)
    assert graphs
    assert same(compiled, scores(get_reranker(f"yes-no:{qwen3}", loading=Loading(device="cpu")), PAIRS))


def test_what_is_too_long_is_cut_before_the_question(qwen3: Path) -> None:
    from embark.models.chat import Chat
    from embark.models.checkpoints import fetch_checkpoint

    card = replace(find_card(f"yes-no:{qwen3}"), context=80)
    chat = Chat(fetch_checkpoint(card, Loading("cpu")), Loading("cpu"))
    tail = QWEN3["template"].split("{document}")[1]
    prompt, whole = chat.prompt(["<|im_start|>", "dog " * 500], tail), chat.prompt(["<|im_start|>"], tail)
    assert len(prompt.ids) == 80
    assert prompt.ids[0] == whole.ids[0]
    assert prompt.ids[-len(whole.ids) + 1 :] == whole.ids[1:]


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SEEN = [
    (picture(1), "a small dog"),
    ("a red apple", picture(2, (60, 90))),
    (("dog", picture(3)), picture(4)),
    ("a small dog on the table", "two people"),
]


def vision(**more: Any) -> dict[str, Any]:
    return {"depth": 2, "num_heads": 2, "spatial_merge_size": 2, "temporal_patch_size": 2, **more}


def text(**more: Any) -> dict[str, Any]:
    return {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16,
        "num_key_value_heads": 1, "rope_parameters": ROPE, "initializer_range": 0.3, **more,
    }  # fmt: skip


def places(tokenizer: Any) -> dict[str, int]:
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    return dict(zip(names, tokenizer.convert_tokens_to_ids(VISION), strict=True))


@pytest.fixture(scope="module")
def qwen3_vl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    torch.manual_seed(2)
    tokenizer = qwen_tokenizer()
    config = Qwen3VLConfig(
        text_config=text(vocab_size=len(tokenizer), max_position_embeddings=4096),
        vision_config=vision(
            hidden_size=32, intermediate_size=64, out_hidden_size=32, patch_size=16, num_position_embeddings=64,
            deepstack_visual_indexes=[0], initializer_range=0.3,
        ),
        **places(tokenizer),
    )  # fmt: skip
    pixels = Qwen2VLImageProcessorPil(patch_size=16, merge_size=2)
    model = Qwen3VLForConditionalGeneration(config)
    return saved(tmp_path_factory.mktemp("qwen3vl"), model, tokenizer, pixels)


def put_together(folder: Path, template: str, fields: dict[str, Any], pixels: tuple[int, int]) -> dict[str, Any]:
    """The model's inputs for one pair, by the checkpoint's own tokeniser and image processor, without embark's code."""
    from transformers import AutoImageProcessor, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    prompt, images = template, []
    names = sorted(fields, key=lambda name: template.index(f"{{{name}}}"))
    for name in names:
        values = fields[name] if isinstance(fields[name], tuple) else (fields[name],)
        written = ""
        for value in sorted(values, key=lambda value: isinstance(value, str)):
            if not isinstance(value, str):
                size = {"shortest_edge": pixels[0], "longest_edge": pixels[1]}
                images.append(processor(images=[value], return_tensors="pt", size=size))
                count = int(images[-1]["image_grid_thw"].prod()) // 4
                value = f"<|vision_start|>{'<|image_pad|>' * count}<|vision_end|>"
            written += value
        prompt = prompt.replace(f"{{{name}}}", written)
    ids = torch.tensor([tokenizer(prompt)["input_ids"]])
    kinds = (ids == tokenizer.convert_tokens_to_ids("<|image_pad|>")).int()
    seen = {key: torch.cat([image[key] for image in images]) for key in ("pixel_values", "image_grid_thw") if images}
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "mm_token_type_ids": kinds, **seen}


def test_a_language_model_with_eyes(qwen3_vl: Path) -> None:
    from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

    ours = get_reranker(f"yes-no:{qwen3_vl}")
    tokenizer = AutoTokenizer.from_pretrained(qwen3_vl)
    model = Qwen3VLForConditionalGeneration.from_pretrained(qwen3_vl).eval()
    yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
    expected = []
    for query, document in SEEN:
        fields = {"instruction": QWEN3_VL["instruction"], "query": query, "document": document}
        with torch.no_grad():
            inputs = put_together(qwen3_vl, QWEN3_VL["template"], fields, QWEN3_VL["pixels"])
            logits = model(**inputs).logits[0, -1]
        expected.append(float(logits[yes] - logits[no]))
    assert same(scores(ours, SEEN), np.array(expected), 1e-4)
    assert same(alone(ours, SEEN), scores(ours, SEEN), 1e-4)
    assert np.ptp(expected) > 0.1
    assert ours.card.modalities == ("text", "image", "video")


def test_a_checkpoint_reranks_a_task(qwen3_vl: Path, tiny: embark.Encoder, pictures: Callable[..., Path]) -> None:
    task = two_tasks(pictures())[0]
    name = f"yes-no:{qwen3_vl}"
    run = embark.evaluate(tiny, task, stages=embark.Stages(rerank=name), show_progress=False)
    model, folder = get_reranker(name), Path(task.source.id)
    captions = ["a red page", "a green page", "a blue page"]
    images = [Image.open(folder / f"{colour}.png") for colour in ("red", "green", "blue")]
    best = [int(np.argmax(scores(model, [(caption, image) for image in images]))) for caption in captions]
    named = [["red.png", "green.png", "blue.png"][at] for at in best]
    assert run.results[0].outcomes()["top"].to_pylist() == named


def test_a_placeholder_in_a_text_asks_for_no_picture(qwen3_vl: Path) -> None:
    [score] = scores(get_reranker(f"yes-no:{qwen3_vl}"), [("<|image_pad|> dog", "an apple")])
    assert np.isfinite(score)


@pytest.fixture(scope="module")
def jina(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qwen2-VL with a head of two layers, its weights named as in the published checkpoint."""
    from safetensors.torch import load_file, save_file
    from transformers import Qwen2VLConfig, Qwen2VLModel
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    torch.manual_seed(3)
    tokenizer = qwen_tokenizer()
    config = Qwen2VLConfig(
        text_config={**text(vocab_size=len(tokenizer)), "head_dim": None},
        vision_config=vision(embed_dim=32, hidden_size=32, mlp_ratio=2, patch_size=14),
        **places(tokenizer),
    )
    folder = saved(tmp_path_factory.mktemp("jina"), Qwen2VLModel(config), tokenizer, Qwen2VLImageProcessorPil())
    weights = load_file(folder / "model.safetensors")
    head = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    head = {f"score.{name}": 10 * tensor.detach() for name, tensor in head.state_dict().items()}
    save_file({**weights, **head}, folder / "model.safetensors", {"format": "pt"})
    return folder


def test_jinas_head_reads_the_token_after_the_prompt(jina: Path) -> None:
    from safetensors.torch import load_file
    from transformers import Qwen2VLModel

    ours = get_reranker(f"jina-reranker:{jina}")
    model, head = Qwen2VLModel.from_pretrained(jina).eval(), load_file(jina / "model.safetensors")
    expected = []
    for query, document in SEEN:
        inputs = put_together(jina, JINA["template"], {"query": query, "document": document}, JINA["pixels"])
        for name, value in (("input_ids", 100), ("attention_mask", 1), ("mm_token_type_ids", 0)):
            inputs[name] = torch.cat([inputs[name], torch.full((1, 1), value, dtype=inputs[name].dtype)], 1)
        with torch.no_grad():
            state = model(**inputs).last_hidden_state[0, -1]
        inner = torch.relu(head["score.0.weight"] @ state + head["score.0.bias"])
        expected.append(float(head["score.2.weight"] @ inner + head["score.2.bias"]))
    assert same(scores(ours, SEEN), np.array(expected), 1e-4)
    assert same(alone(ours, SEEN), scores(ours, SEEN), 1e-4)
    assert same(scores(ours, SEEN, "Find it."), scores(ours, SEEN))  # its prompt has no place for an instruction


def test_another_head_in_a_folder_below_is_not_read(jina: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(jina, tmp_path / "jina"))
    (folder / "old").mkdir()
    weights = {
        name: -tensor if "score.2" in name else tensor
        for name, tensor in load_file(f"{jina}/model.safetensors").items()
    }
    save_file(weights, folder / "old" / "model.safetensors", {"format": "pt"})
    assert same(*(scores(get_reranker(f"jina-reranker:{each}"), PAIRS) for each in (folder, jina)))


def test_without_a_head_it_is_refused(qwen3_vl: Path) -> None:
    card = find_card(f"jina-reranker:{qwen3_vl}")
    with pytest.raises(EmbarkError, match=r"no weights named score\."):
        load_jina(card, Loading("cpu"))
