"""Text embedders on tiny checkpoints: equal to their libraries, with prompts where the card or the checkpoint says."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.items import key
from embark.models import LOADERS, Loading, get_model
from embark.models.text import _pooling, load, load_sentence_transformer
from embark.protocol import vector_space
from embark.types import EmbarkError, ModelCard
from tiny import (
    TEXTS,
    byte_bpe,
    check_without_weights,
    item,
    one_by_one,
    picture,
    prepared,
    same,
    saved,
    vectors,
    wordpiece,
)

CPU = Loading("cpu")
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
DECODERS = ("mistral", "qwen3", "llama", "gemma3_text")
ASK = "Find a sentence about an animal"


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT without a pooler, as many embedders are published."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = wordpiece()
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **SIZES), add_pooling_layer=False)
    return saved(tmp_path_factory.mktemp("bert"), model, tokenizer)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal model whose tokeniser ends every text with a token to pool, and pads on the left."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(1)
    tokenizer = byte_bpe("$A <|end|>", pad_token="<|end|>", padding_side="left")
    config = Qwen3Config(vocab_size=len(tokenizer), num_key_value_heads=1, head_dim=8, **SIZES)
    return saved(tmp_path_factory.mktemp("qwen"), Qwen3ForCausalLM(config), tokenizer)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(2)
    tokenizer = byte_bpe("<s> $A", bos_token="<s>", pad_token="<pad>", limit=128)
    config = LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=1, **SIZES)
    return saved(tmp_path_factory.mktemp("llama"), LlamaForCausalLM(config), tokenizer)


def sentence_transformer(folder: Path, plain: Path, pooling: str = "mean", include: bool = True, **how: Any) -> Path:
    """The plain checkpoint as a sentence-transformers folder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    modules = [Transformer(str(plain)), Pooling(16, pooling, include_prompt=include), Normalize()]
    SentenceTransformer(modules=modules, device="cpu", **how).save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def prompted(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prompts = {"query": "a photo of: ", "document": "the text: "}
    return sentence_transformer(tmp_path_factory.mktemp("st") / "prompted", bert, prompts=prompts)


def reference(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu")


# ── sentence-transformers ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_embeds_as_its_library_does(prompted: Path) -> None:
    model, library = get_model(str(prompted), loading=Loading(device="cpu")), reference(prompted)
    assert (model.card.loader, model.card.modalities, model.card.dim) == ("sentence-transformers", ("text",), 16)
    assert model.card.loaded["libraries"]["sentence-transformers"]
    for role, ours in (
        ("query", library.encode_query),
        ("document", library.encode_document),
        ("item", library.encode),
    ):
        assert same(vectors(model, TEXTS, role), ours(list(TEXTS)), 1e-5), role
    assert np.allclose(np.linalg.norm(vectors(model, TEXTS), axis=1), 1, atol=1e-5)


def test_items_are_prepared_without_weights(prompted: Path, qwen: Path) -> None:
    for folder in (prompted, qwen):
        check_without_weights(str(folder), TEXTS)


def test_a_batch_changes_no_vector(prompted: Path) -> None:
    model = get_model(str(prompted), loading=Loading(device="cpu"))
    assert same(vectors(model, TEXTS), one_by_one(model, TEXTS), 1e-5)
    roles = ("query", "document", "item")
    mixed = model.embed([p for role in roles for p in prepared(model, TEXTS, role)])
    assert same(mixed, np.concatenate([one_by_one(model, TEXTS, role) for role in roles]), 1e-5)


def test_prompts_are_part_of_the_key(prompted: Path) -> None:
    model = get_model(str(prompted), loading=Loading(device="cpu"))
    space = vector_space(model.card)
    keys = {role: key(space, model.render(item("dog"), role, None)) for role in ("query", "document", "item", "left")}
    assert len(set(keys.values())) == 3
    assert keys["item"] == keys["left"]
    assert [part.text for part in model.render(item("dog"), "query", ASK).parts] == ["a photo of: ", "dog"]


def test_settings_replace_the_prompts_of_the_checkpoint(prompted: Path) -> None:
    settings = {"prompts": {"query": "", "": "a red "}, "template": "{instruction}! "}
    card = ModelCard("test/st", "1", "sentence-transformers", ("text",), source=str(prompted), options=settings)
    model, library = load_sentence_transformer(card, CPU), reference(prompted)
    assert same(vectors(model, TEXTS, "query"), library.encode(list(TEXTS)), 1e-5)
    assert same(vectors(model, TEXTS, "left"), library.encode(list(TEXTS), prompt="a red "), 1e-5)
    assert same(vectors(model, TEXTS, "query", ASK), library.encode(list(TEXTS), prompt=f"{ASK}! "), 1e-5)
    assert same(vectors(model, TEXTS, "document", ASK), library.encode(list(TEXTS), prompt="the text: "), 1e-5)
    with pytest.raises(EmbarkError, match="no place for the instruction"):
        load_sentence_transformer(replace(card, options={"template": "Query: "}), CPU)


def test_prompts_that_are_not_pooled(bert: Path, tmp_path: Path) -> None:
    folder = sentence_transformer(tmp_path / "st", bert, include=False, prompts={"query": "two people ", "": ""})
    model, library = get_model(str(folder), loading=Loading(device="cpu")), reference(folder)
    assert same(vectors(model, TEXTS, "query"), library.encode_query(list(TEXTS)), 1e-5)
    pooled = library.encode(["two people " + text for text in TEXTS])
    assert not same(vectors(model, TEXTS, "query"), pooled, 1e-3)


def test_the_checkpoint_says_how_vectors_are_compared(bert: Path, tmp_path: Path) -> None:
    folder = sentence_transformer(tmp_path / "dot", bert, similarity_fn_name="dot")
    assert get_model(str(folder), loading=Loading(device="cpu")).card.similarity == "dot"
    folder = sentence_transformer(tmp_path / "far", bert, similarity_fn_name="euclidean")
    with pytest.raises(EmbarkError, match="by euclidean distance; embark has cosine and dot"):
        get_model(str(folder), loading=Loading(device="cpu"))


def test_longest_text_and_precision_are_the_cards(prompted: Path) -> None:
    card = ModelCard("test/st", "1", "sentence-transformers", ("text",), source=str(prompted))
    short = load_sentence_transformer(replace(card, options={"tokens": 4}), CPU)
    assert same(vectors(short, [TEXTS[2]], "item"), vectors(short, [TEXTS[2] + " and more"], "item"), 0)
    half = load_sentence_transformer(replace(card, dtype="bfloat16"), CPU)
    whole = load_sentence_transformer(card, CPU)
    assert 1e-5 < np.abs(vectors(half, TEXTS) - vectors(whole, TEXTS)).max() < 0.1


def test_a_wrong_dimension_is_an_error(prompted: Path) -> None:
    card = ModelCard("test/st", "1", "sentence-transformers", ("text",), dim=32, source=str(prompted))
    with pytest.raises(EmbarkError, match="makes vectors of 16 dimensions; its card says 32"):
        load_sentence_transformer(card, CPU)


def test_missing_weights_are_an_error(prompted: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "holes"
    shutil.copytree(prompted, folder)
    tensors = load_file(folder / "model.safetensors")
    lost = next(name for name in tensors if "layer.1.attention.self.query.weight" in name)
    save_file({name: t for name, t in tensors.items() if name != lost}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(EmbarkError, match=r"lacks 1 weights, the first is .*query\.weight"):
        get_model(str(folder), loading=Loading(device="cpu"))


@pytest.mark.parametrize("where", ["modules.json", "config.json"])
def test_code_of_the_checkpoint_needs_consent(prompted: Path, tmp_path: Path, where: str) -> None:
    folder = tmp_path / "own"
    shutil.copytree(prompted, folder)
    told = json.loads((folder / where).read_text())
    if where == "modules.json":
        told[1]["type"] = "own_pooling.Pooling"
    else:
        told["auto_map"] = {"AutoModel": "own_model.Model"}
    (folder / where).write_text(json.dumps(told))
    with pytest.raises(EmbarkError, match=r"its own code would run.*--trust local-"):
        get_model(str(folder), loading=Loading(device="cpu"))


@pytest.mark.parametrize("routed", [False, True])
def test_a_module_that_is_a_pickle_needs_consent(bert: Path, tmp_path: Path, routed: bool) -> None:
    import torch
    from safetensors.torch import load_file
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Router, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    modules = [Transformer(str(bert)), Pooling(16, "mean"), Dense(16, 8)]
    whole = [Router.for_query_document(modules, modules)] if routed else modules
    SentenceTransformer(modules=whole, device="cpu").save_pretrained(str(tmp_path / "st"))
    expected = vectors(get_model(str(tmp_path / "st"), loading=Loading(device="cpu")), TEXTS)
    for safe in list((tmp_path / "st").glob("*_Dense/model.safetensors")):  # a route may have a copy of its own
        torch.save(load_file(safe), safe.with_name("pytorch_model.bin"))
        safe.unlink()
    with pytest.raises(EmbarkError, match=r"its weights are pickles.*--trust local-") as told:
        get_model(str(tmp_path / "st"), loading=Loading(device="cpu"))
    revision = str(told.value).split("--trust ")[1].split()[0]
    model = get_model(str(tmp_path / "st"), loading=Loading(device="cpu", trust=revision))
    assert (model.card.loaded["trust"], model.card.dim) == (revision, 8)
    assert same(vectors(model, TEXTS), expected)


def test_a_folder_without_modules_is_none_of_theirs(bert: Path) -> None:
    with pytest.raises(EmbarkError, match=r"no modules\.json.*text:"):
        get_model(f"sentence-transformers:{bert}", loading=Loading(device="cpu"))


def test_queries_and_documents_may_have_modules_of_their_own(bert: Path, qwen: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    def modules(folder: Path, how: str) -> list[Any]:
        return [Transformer(str(folder)), Pooling(16, how)]

    router = Router.for_query_document(modules(bert, "mean"), modules(qwen, "lasttoken"))
    SentenceTransformer(modules=[router], device="cpu").save_pretrained(str(tmp_path / "routed"))
    model, library = get_model(str(tmp_path / "routed"), loading=Loading(device="cpu")), reference(tmp_path / "routed")
    assert same(vectors(model, TEXTS, "query"), library.encode_query(list(TEXTS)), 1e-5)
    assert same(vectors(model, TEXTS, "document"), library.encode_document(list(TEXTS)), 1e-5)
    assert model.render(item("dog"), "query", None) != model.render(item("dog"), "document", None)


def test_pictures_where_the_library_takes_them(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from transformers import CLIPConfig, CLIPModel, CLIPProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = byte_bpe("<s> $A </s>", bos_token="<s>", eos_token="</s>", pad_token="</s>", limit=32)
    marks = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    text = {**SIZES, **marks, "vocab_size": len(tokenizer), "max_position_embeddings": 32}
    vision = {**SIZES, "image_size": 16, "patch_size": 8}
    pixels = CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size=16)
    clip = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=12))
    plain = saved(tmp_path / "clip", clip, CLIPProcessor(pixels, tokenizer))
    SentenceTransformer(str(plain), device="cpu").save_pretrained(str(tmp_path / "st"))
    model, library = get_model(str(tmp_path / "st"), loading=Loading(device="cpu")), reference(tmp_path / "st")
    assert (model.card.modalities, model.card.dim, model.card.fusion) == (("text", "image"), 12, None)
    texts, pictures = [*TEXTS[:2], "https://example.org/dog.png"], [picture(1), picture(2, (20, 50))]
    assert same(vectors(model, texts[:2]), library.encode(texts[:2]), 1e-5)
    assert same(vectors(model, pictures), library.encode(pictures), 1e-5)
    both = [*texts, *pictures]  # an address is a text like others, and nothing is fetched
    assert same(vectors(model, both), one_by_one(model, both), 1e-5)


# ── plain transformers ───────────────────────────────────────────────────────────────────────────────────────────────


def test_last_token_with_either_padding(qwen: Path, tmp_path: Path) -> None:
    template = "Instruct: {instruction}\nQuery:"
    settings = {"template": template, "normalise": True}
    card = ModelCard("test/qwen", "1", "text", ("text",), source=str(qwen), options=settings)
    model = load(card, CPU)
    library = reference(sentence_transformer(tmp_path / "st", qwen, "lasttoken"))
    assert library.tokenizer.padding_side == "left"
    assert (model.card.dim, model.card.options["pooling"]) == (16, "last")
    assert same(vectors(model, TEXTS), library.encode(list(TEXTS)), 1e-4)
    assert same(vectors(model, TEXTS), one_by_one(model, TEXTS), 1e-5)
    asked = library.encode([f"Instruct: {ASK}\nQuery:{text}" for text in TEXTS])
    assert same(vectors(model, TEXTS, "query", ASK), asked, 1e-4)
    assert not same(vectors(model, TEXTS, "query", ASK), vectors(model, TEXTS, "query"), 1e-2)
    assert same(vectors(model, TEXTS, "document", ASK), vectors(model, TEXTS, "document"), 0)


def test_a_decoder_that_sees_both_ways(llama: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    settings = {
        "causal": False,
        "pooling": "mean",
        "pool_prompt": False,
        "template": "<|user|>\n{instruction}\n<|embed|>\n",
        "prompts": {"": "<|embed|>\n"},
    }
    model = load(ModelCard("test/llama", "1", "text", ("text",), source=str(llama), options=settings), CPU)
    library = AutoModel.from_pretrained(llama, attn_implementation="eager", dtype=torch.float32).eval()
    library.config.is_causal = False
    tokenizer = AutoTokenizer.from_pretrained(llama)

    def expected(prompt: str, text: str) -> Any:
        ids = tokenizer(prompt + text, return_tensors="pt")["input_ids"]
        skipped = len(tokenizer(prompt)["input_ids"])
        with torch.no_grad():
            return library(input_ids=ids).last_hidden_state[0, skipped:].mean(0)

    asked = torch.stack([expected(f"<|user|>\n{ASK}\n<|embed|>\n", text) for text in TEXTS])
    bare = torch.stack([expected("<|embed|>\n", text) for text in TEXTS])
    assert same(vectors(model, TEXTS, "query", ASK), asked)
    assert same(one_by_one(model, TEXTS, "query", ASK), asked)
    assert same(vectors(model, TEXTS, "document", ASK), bare)
    causal = load(replace(model.card, options={**settings, "causal": True}), CPU)
    assert not same(vectors(causal, TEXTS, "query", ASK), asked, 1e-2)


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_an_encoder(bert: Path, pooling: str) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    card = ModelCard("test/bert", "1", "text", ("text",), source=str(bert), options={"pooling": pooling})
    model = load(card, CPU)
    library, tokenizer = AutoModel.from_pretrained(bert, add_pooling_layer=False), AutoTokenizer.from_pretrained(bert)
    with torch.no_grad():
        states = [library(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in TEXTS]
    expected = torch.stack([s[0] if pooling == "first" else s.mean(0) for s in states])
    assert same(vectors(model, TEXTS), expected)
    assert same(one_by_one(model, TEXTS), expected)


def test_a_plain_folder_is_recognised(bert: Path, qwen: Path) -> None:
    pooled = {
        folder: get_model(str(folder), loading=Loading(device="cpu")).card.options["pooling"] for folder in (bert, qwen)
    }
    assert pooled == {bert: "mean", qwen: "last"}


def test_a_decoder_that_was_saved_without_its_head_is_pooled_alike(qwen: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    base = shutil.copytree(qwen, tmp_path / "base")
    AutoModel.from_pretrained(qwen).save_pretrained(base)
    assert json.loads((base / "config.json").read_text())["architectures"] == ["Qwen3Model"]
    model, headed = (get_model(str(folder), loading=Loading(device="cpu")) for folder in (base, qwen))
    assert model.card.options == {"pooling": "last", "loader": LOADERS["text"].version}
    assert same(vectors(model, TEXTS), vectors(headed, TEXTS), 0)


@pytest.mark.parametrize(
    ("kind", "told"),
    [(kind, {}) for kind in ("bert", "xlm-roberta", "modernbert", "mpnet", "bert-generation", "mistral", "gpt_neox",
     "modernbert-decoder", "gemma3_text")]
    + [("roberta", {"is_decoder": True}), ("qwen3", {"is_causal": False}), ("llama", {"is_decoder": False}),
       ("gemma3_text", {"use_bidirectional_attention": True})],
)  # fmt: skip
def test_the_last_token_is_pooled_where_tokens_see_only_what_is_before(kind: str, told: dict[str, Any]) -> None:
    import torch
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    own = {**SIZES, "num_key_value_heads": 1, "head_dim": 8} if kind in DECODERS else SIZES
    config = AutoConfig.for_model(kind, vocab_size=50, pad_token_id=0, **own, **told)
    model, ids = AutoModel.from_config(config).eval(), torch.tensor([[5, 6, 7, 8], [5, 6, 9, 10]])
    with torch.no_grad():
        first, second = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[:, :2]
    assert _pooling(config) == ("last" if same(first, second, 1e-6) else "mean")


def test_own_code_of_a_plain_model_needs_consent(llama: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(llama, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "own.Model"}}))
    with pytest.raises(EmbarkError, match="its own code would run"):
        get_model(str(folder), loading=Loading(device="cpu"))
    card = ModelCard("test/own", "1", "text", ("text",), source=str(folder), options={"causal": False})
    assert load(card, CPU).card.dim == 16  # the card knows what that code does


def test_a_prompt_that_fills_the_limit_leaves_a_token(llama: Path) -> None:
    settings = {"tokens": 6, "pool_prompt": False, "prompts": {"": "two people ride bicycles along the river "}}
    model = load(ModelCard("test/llama", "1", "text", ("text",), source=str(llama), options=settings), CPU)
    assert prepared(model, ["dog"])[0][1] == 5
    assert np.isfinite(vectors(model, ["dog"])).all()


def test_a_decoder_in_half_precision_keeps_its_frequencies(qwen: Path, tmp_path: Path) -> None:
    import torch

    plain = load(ModelCard("test/qwen", "1", "text", ("text",), source=str(qwen), dtype="bfloat16"), CPU)
    assert (plain.model.dtype, plain.model.rotary_emb.inv_freq.dtype) == (torch.bfloat16, torch.float32)
    folder = sentence_transformer(tmp_path / "st", qwen, "lasttoken")
    theirs = get_model(str(folder), loading=Loading(device="cpu", dtype="bfloat16")).model[0].auto_model
    assert (theirs.dtype, theirs.rotary_emb.inv_freq.dtype) == (torch.bfloat16, torch.float32)


def test_an_empty_text_has_a_vector_or_is_an_error(bert: Path, qwen: Path, tmp_path: Path) -> None:
    for folder in (bert, qwen):  # whose tokenisers add tokens of their own
        model = load(ModelCard("test/m", "1", "text", ("text",), source=str(folder)), CPU)
        assert same(vectors(model, ["", *TEXTS])[:1], vectors(model, [""]))
    bare = shutil.copytree(qwen, tmp_path / "bare")
    byte_bpe(pad_token="<|end|>").save_pretrained(bare)
    model = load(ModelCard("test/m", "1", "text", ("text",), source=str(bare)), CPU)
    with pytest.raises(EmbarkError, match="the text is empty"):
        prepared(model, [""])


def test_texts_are_cut_to_the_positions_where_the_tokeniser_knows_no_limit(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "endless")
    wordpiece(limit=10**30).save_pretrained(folder)
    model = load(ModelCard("test/bert", "1", "text", ("text",), source=str(folder)), CPU)
    (tokens, _), closing = prepared(model, ["dog " * 2000])[0], prepared(model, ["dog"])[0][0][-1]
    assert (len(tokens), tokens[-1]) == (512, closing)
    assert np.isfinite(vectors(model, ["dog " * 2000])).all()
