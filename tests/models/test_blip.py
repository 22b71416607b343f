"""BLIP and BLIP-2 on tiny checkpoints: as the library computes, and fused or read together as their cards say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from embark import evaluate, load_settings
from embark.evaluators import pairs
from embark.items.decoding import decode
from embark.models import LOADERS, MODELS, Encoder, get_model
from embark.models.encoder import unit
from embark.models.joint import truncate
from embark.models.loading import Loading, build
from embark.protocol import vector_space
from embark.run.workbench import Workbench
from embark.tasks import TASKS
from embark.types import Content, EmbarkError, ModelCard, Style
from tiny import TEXTS, film, one_by_one, picture, prepared, same, saved, vectors, wordpiece

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PICTURES = [picture(1), picture(2, (31, 50)), picture(3, (64, 64), "L")]
LONG = " ".join(TEXTS) + " and more words than a caption has, a red apple, two people, a small dog, the river"
SIZES = {
    "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "initializer_range": 0.3,  # as small as is usual, all inputs would look alike
}  # fmt: skip


def tokens(folder: Path, texts: Any) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)(list(texts), padding=True, return_tensors="pt")


def pixels(folder: Path, pictures: Any) -> Any:
    images = [image.convert("RGB") for image in pictures]
    return transformers.BlipImageProcessorPil.from_pretrained(folder)(images, return_tensors="pt")["pixel_values"]


def shared(model: Encoder, mixed: list[Any]) -> None:
    """What every encoder must hold to: batches and threads change nothing, the card is complete."""
    things = [*TEXTS, *PICTURES, film(1), *mixed]
    whole = vectors(model, things)
    assert whole.dtype == np.float32
    assert whole.shape == (len(things), model.card.dim)
    assert same(one_by_one(model, things), whole)
    with ThreadPoolExecutor(4) as pool:
        ready = [each[0] for each in pool.map(lambda thing: prepared(model, [thing]), things * 3)]
    assert same(model.embed(ready), np.concatenate([whole] * 3))
    assert same(vectors(model, things, "query", "Find it."), whole)
    assert model.card.modalities == ("text", "image", "video")
    assert set(model.card.loaded["libraries"]) == {"torch", "transformers"}


# ── BLIP ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    read = wordpiece()
    text = {**SIZES, "vocab_size": len(read), "max_position_embeddings": 64, "encoder_hidden_size": 24}
    config = transformers.BlipConfig(
        text_config=text, vision_config={**SIZES, "image_size": 32, "patch_size": 8}, image_text_hidden_size=12
    )
    model = transformers.BlipForImageTextRetrieval(config)
    eyes = transformers.BlipImageProcessorPil(size={"height": 32, "width": 32})
    return saved(tmp_path_factory.mktemp("blip"), model, read, eyes)


def test_blip_embeds_as_the_library_does(blip: Path) -> None:
    model = get_model(str(blip), loading=Loading(device="cpu"))
    reference = transformers.BlipForImageTextRetrieval.from_pretrained(blip).eval()
    with torch.inference_mode():
        scores = reference(**_given(blip), use_itm_head=False).itm_score
    texts, images = vectors(model, TEXTS), vectors(model, PICTURES)
    assert np.allclose(np.linalg.norm([*texts, *images], axis=1), 1, atol=1e-5)
    assert same(images @ texts.T, scores)
    assert model.card.dim == 12
    assert model.card.fusion == "unit-sum"


def test_blip_keeps_to_the_rules(blip: Path) -> None:
    model = get_model(str(blip), loading=Loading(device="cpu"))
    shared(model, [("dog", PICTURES[0])])
    text, image, mixed = vectors(model, ["dog", PICTURES[0], ("dog", PICTURES[0])])
    assert same(mixed, text + image)
    assert same(vectors(model, [film(1)])[0], unit(unit(vectors(model, film(1))).sum(0)))


def styled(folder: Path) -> Any:
    """The checkpoint under a card of its own, which says nothing of UniBench: the loader knows its answer."""
    card = ModelCard("tiny/blip", "main", "blip", ("text", "image", "video"), source=str(folder))
    return build(LOADERS["blip"], card, Loading(device="cpu"))


def test_the_matching_head_scores_as_the_library_does(blip: Path) -> None:
    model = styled(blip)
    reference = transformers.BlipForImageTextRetrieval.from_pretrained(blip).eval()
    with torch.inference_mode():
        expected = reference(**_given(blip), use_itm_head=True).itm_score[:, 1]
    matcher = model.capabilities.matching.head()
    pairs = [[Content("text", text), Content("image", image)] for text, image in zip(TEXTS, PICTURES, strict=True)]
    ready = [matcher.prepare(pair, "") for pair in pairs]
    assert same(matcher.score(ready), expected)
    assert same(np.concatenate([matcher.score([one]) for one in ready]), expected)
    repeated = matcher.score([ready[0], (ready[1][0], ready[0][1]), ready[1]])  # a picture twice in one batch
    assert same(repeated[[0, 2]], expected[:2])
    assert vector_space(matcher.card) != vector_space(model.card)


def test_relation_tasks_of_unibench_add_the_matching_logit(blip: Path, elsewhere: Path) -> None:
    """UniBench's seven BLIP models; cosine alone is protocol `native`, and what MIEB has."""
    model = styled(blip)
    task = replace(TASKS["PocketHairPairs"], style=Style("UniBench"), variants={"native": {"style": None}})
    run = evaluate(model, [task], show_progress=False)
    native = evaluate(model, [task], protocol="native", show_progress=False)
    [result], [plain] = run.results, native.results
    assert result.records[0].loaded["style"] == "UniBench: as the paper ran it"
    assert "style" not in plain.records[0].loaded
    bench = Workbench(load_settings(), show_progress=False)
    [demand] = bench.demands(task, model)
    inputs = bench.score_inputs(model, demand, {})
    matching = inputs["pairs"].scores
    assert matching.shape == (*demand.data.truth.image.shape, demand.data.truth.text.shape[1])
    sides = demand.data.sides
    rendered = model.capabilities.matching.render_pair(sides["image"].items[0], sides["text"].items[0], task.style)
    contents = decode(rendered.parts, 8, 16_000)
    assert rendered.mode == "openai-32"
    matcher = model.capabilities.matching.head()
    assert same(matcher.score([matcher.prepare(contents, rendered.mode)]), matching[0, 0, :1])
    sums = pairs.evaluate(demand.data.truth, inputs, {"metric": "text_acc", "strict": True})
    alone = pairs.evaluate(demand.data.truth, {**inputs, "pairs": None}, {"metric": "text_acc", "strict": True})
    assert sums.metrics == result.records[0].metrics
    assert alone.outcomes.keys() == sums.outcomes.keys()
    assert evaluate(model, [task], rescore=True, show_progress=False).embedded == 0


def test_a_folder_answers_unibench_as_a_card_does(blip: Path) -> None:
    """OpenAI's pixels and the matching logit, whatever the checkpoint is called."""
    answer = {"UniBench": {"pixels": "openai-32", "matching": "add"}}
    assert get_model(str(blip), loading=Loading(device="cpu")).card.styles == styled(blip).card.styles == answer


def test_a_blip_without_heads_is_refused(blip: Path, tmp_path: Path) -> None:
    config = transformers.BlipConfig.from_pretrained(blip)
    saved(tmp_path, transformers.BlipForQuestionAnswering(config), wordpiece())
    with pytest.raises(EmbarkError, match=r"lacks 6 weights of BlipForImageTextRetrieval, the first is itm_head\.bias"):
        get_model(str(tmp_path), loading=Loading(device="cpu"))


def test_a_blip_for_questions_embeds_with_heads_drawn_by_a_seed(blip: Path, tmp_path: Path) -> None:
    """MIEB's two: published vectors came out of projections that nobody trained."""
    config = transformers.BlipConfig.from_pretrained(blip)
    torch.manual_seed(1)
    answering = transformers.BlipForQuestionAnswering(config).eval()
    eyes = transformers.BlipImageProcessorPil.from_pretrained(blip)
    saved(tmp_path, answering, wordpiece(), eyes)

    def load(seed: int) -> Any:
        card = ModelCard(
            "tiny/vqa", "main", "blip", ("text", "image", "video"), source=str(tmp_path),
            options={"untrained_heads": seed},
        )  # fmt: skip
        return build(LOADERS["blip"], card, Loading(device="cpu"))

    first, again, other = load(0), load(0), load(1)
    assert same(vectors(first, PICTURES), vectors(again, PICTURES))
    assert not same(vectors(first, PICTURES), vectors(other, PICTURES))
    assert vector_space(first.card) != vector_space(other.card)
    with torch.inference_mode():
        states = answering.vision_model(pixels(blip, PICTURES)).last_hidden_state[:, 0].numpy()
    draw = torch.randn((12, 24), generator=torch.Generator().manual_seed(0)).numpy()
    assert same(vectors(first, PICTURES), unit(states @ draw.T))
    for name in ("base", "capfilt-large"):
        card = MODELS[f"Salesforce/blip-vqa-{name}"]
        assert card.aliases == {"MIEB": card.name}
        assert card.options == {"untrained_heads": 0}


def test_pickled_weights_need_consent(blip: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((blip / name).read_bytes())
    state = transformers.BlipForImageTextRetrieval.from_pretrained(blip).state_dict()
    torch.save(state, tmp_path / "pytorch_model.bin")
    with pytest.raises(EmbarkError, match=r"pickles.*--trust local-") as told:
        get_model(str(tmp_path), loading=Loading(device="cpu"))
    revision = str(told.value).split("--trust ")[1].split()[0]
    trusted = get_model(str(tmp_path), loading=Loading(device="cpu", trust=revision))
    assert same(vectors(trusted, TEXTS), vectors(get_model(str(blip), loading=Loading(device="cpu")), TEXTS))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["blip", "blip2"])
def test_compiled_it_runs_what_was_compiled(
    family: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, plain, graphs = request.getfixturevalue(family), torch.nn.Module.compile, []
    run = lambda graph, _: graphs.append(graph) or graph.forward  # noqa: E731
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: plain(module, backend=run))
    torch._dynamo.reset()
    compiled, eager = (
        get_model(str(folder), loading=Loading(device="cpu", compile=chosen)) for chosen in (True, False)
    )
    for things in (TEXTS, PICTURES):
        known = len(graphs)
        assert same(vectors(compiled, things), vectors(eager, things))
        assert len(graphs) > known


# ── BLIP as its authors published it ─────────────────────────────────────────────────────────────────────────────────

BLOCK = {
    "layer_norm1": "norm1", "layer_norm2": "norm2", "self_attn.qkv": "attn.qkv", "self_attn.projection": "attn.proj",
    "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2",
}  # fmt: skip
OUTSIDE = {
    "embeddings.class_embedding": "cls_token", "embeddings.position_embedding": "pos_embed",
    "embeddings.patch_embedding.weight": "patch_embed.proj.weight",
    "embeddings.patch_embedding.bias": "patch_embed.proj.bias", "post_layernorm.weight": "norm.weight",
    "post_layernorm.bias": "norm.bias",
}  # fmt: skip


def theirs(name: str) -> str:
    """The authors' name of a weight in transformers."""
    tower, _, rest = name.partition(".")
    if tower != "vision_model":
        return name
    if rest in OUTSIDE:
        return f"visual_encoder.{OUTSIDE[rest]}"
    _, _, layer, inner = rest.split(".", 3)
    module, _, kind = inner.rpartition(".")
    return f"visual_encoder.blocks.{layer}.{BLOCK[module]}.{kind}"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of transformers whose towers are of unequal width, as in BLIP large."""
    torch.manual_seed(2)
    folder, read = tmp_path_factory.mktemp("large"), wordpiece()
    read.save_pretrained(folder / "tokenizer")  # as BERT's, without the two words that the authors added
    read.add_special_tokens({"bos_token": "[DEC]"})
    read.add_tokens(["[ENC]"], special_tokens=True)
    text = {**SIZES, "hidden_size": 64, "num_attention_heads": 1, "num_hidden_layers": 3, "vocab_size": len(read)}
    vision = {**SIZES, "hidden_size": 128, "intermediate_size": 48, "image_size": 48, "patch_size": 16}
    config = transformers.BlipConfig(
        text_config={**text, "max_position_embeddings": 40},
        vision_config={**vision, "layer_norm_eps": 1e-6},
        image_text_hidden_size=12,
    )
    model = transformers.BlipForImageTextRetrieval(config)
    for weight in model.parameters():  # biases too, which start as zeros
        torch.nn.init.normal_(weight, std=0.2)
    eyes = transformers.BlipImageProcessorPil(size={"height": 48, "width": 48})
    return saved(folder, model, read, eyes)


def published(large: Path, folder: Path, without: str = "(none)") -> Path:
    """The authors' file of the same weights, with what pre-training leaves in it, and the words beside it."""
    state = transformers.BlipForImageTextRetrieval.from_pretrained(large).state_dict()
    weights = {theirs(name): tensor for name, tensor in state.items() if not theirs(name).startswith(without)}
    towers = ("visual_encoder", "text_encoder", "vision_proj", "text_proj")
    for name in [name for name in weights if name.startswith(towers)]:
        tower, _, rest = name.partition(".")
        weights[f"{tower}_m.{rest}"] = torch.randn_like(weights[name])
    weights |= {"image_queue": torch.randn(12, 8), "queue_ptr": torch.zeros(1, dtype=torch.long)}
    weights |= {"temp": torch.tensor(0.07), "text_encoder.embeddings.position_ids": torch.arange(40)[None]}
    file = folder / "model_large.pth"
    torch.save({"model": weights, "epoch": 19, "config": {"image_size": 48, "vit": "large"}}, file)
    copytree(large / "tokenizer", folder / "tokenizer")
    return file


def trusted(file: Path) -> Encoder:
    with pytest.raises(EmbarkError, match=r"its weights are a pickle.*--trust sha256-") as told:
        get_model(f"blip:{file}", loading=Loading(device="cpu"))
    revision = str(told.value).split("--trust ")[1].split()[0]
    model = get_model(f"blip:{file}", loading=Loading(device="cpu", trust=revision))
    assert model.card.revision == revision
    return model


def test_the_authors_files_are_the_same_models(large: Path, tmp_path: Path) -> None:
    model, converted = trusted(published(large, tmp_path)), get_model(str(large), loading=Loading(device="cpu"))
    things = [*TEXTS, LONG, "[DEC] a dog [ENC]", *PICTURES, film(1), ("dog", PICTURES[0])]
    assert same(vectors(model, things), vectors(converted, things), 1e-5)
    assert prepared(model, ["[DEC] dog [ENC]"]) == prepared(converted, ["[DEC] dog [ENC]"])
    assert len(prepared(model, [LONG])[0][0][1]) == 40  # as long as there are positions
    assert (model.card.dim, model.card.fusion) == (12, "unit-sum")
    shared(model, [("dog", PICTURES[0])])


@pytest.mark.parametrize(
    ("without", "told"),
    [
        ("text_proj.weight", r"no BLIP with contrastive heads: its weights lack text_proj\.weight"),
        ("visual_encoder.pos_embed", "its weights lack vision_model.embeddings.position_embedding"),
        (
            "visual_encoder.blocks.1.norm2",
            "lacks 2 weights of .* the first is vision_model.encoder.layers.1.layer_norm2",
        ),
    ],
)
def test_an_authors_file_that_is_not_whole_is_refused(large: Path, tmp_path: Path, without: str, told: str) -> None:
    file = published(large, tmp_path, without)
    with pytest.raises(EmbarkError, match=told):
        trusted(file)


def test_an_authors_file_needs_words(large: Path, tmp_path: Path) -> None:
    file = published(large, tmp_path)
    (tmp_path / "tokenizer").rename(tmp_path / "elsewhere")
    with pytest.raises(EmbarkError, match="its tokenizer is missing"):
        trusted(file)


def test_a_pickle_of_more_than_weights_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "model.pth"
    torch.save({"model": {}, "made": Path("here")}, file)
    with pytest.raises(EmbarkError, match=r"model\.pth is not read: .*more than weights"):
        trusted(file)


# ── BLIP-2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def blip2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    read = wordpiece(bos_token="[DEC]")
    former = {**SIZES, "encoder_hidden_size": 24, "vocab_size": len(read), "max_position_embeddings": 64}
    config = transformers.Blip2Config(
        vision_config={**SIZES, "image_size": 28, "patch_size": 14},
        qformer_config={**former, "use_qformer_text_input": True, "cross_attention_frequency": 1},
        image_text_hidden_size=12,
        num_query_tokens=4,
    )
    model = transformers.Blip2ForImageTextRetrieval(config)
    torch.nn.init.normal_(model.query_tokens)  # zeros at first: all queries would be one
    eyes = transformers.BlipImageProcessorPil(size={"height": 28, "width": 28})
    return saved(tmp_path_factory.mktemp("blip2"), model, read, eyes)


def test_blip2_embeds_as_the_library_does(blip2: Path) -> None:
    """The library projects what we return; projecting our vectors must give its own."""
    model = get_model(str(blip2), loading=Loading(device="cpu"))
    reference = transformers.Blip2ForImageTextRetrieval.from_pretrained(blip2).eval()
    with torch.inference_mode():
        told = reference(**_given(blip2))
        seen = reference(**_given(blip2), use_image_text_matching_head=True)
    unprojected = [torch.from_numpy(vectors(model, things)) for things in (TEXTS, PICTURES)]
    heads = (reference.text_projection, reference.vision_projection)
    text, image = (
        torch.nn.functional.normalize(head(each), dim=-1) for head, each in zip(heads, unprojected, strict=True)
    )
    assert same(text, told.text_embeds)
    assert same(image, told.image_embeds[:, 0])
    both = vectors(model, list(zip(PICTURES, TEXTS, strict=True)))
    assert same(both, seen.text_model_output.last_hidden_state[:, 0])
    assert model.card.dim == 24
    assert model.card.fusion == "native"


def test_blip2_keeps_to_the_rules(blip2: Path) -> None:
    model = get_model(str(blip2), loading=Loading(device="cpu"))
    shared(model, [("dog", PICTURES[0]), (PICTURES[1], LONG), ("dog", film(2))])
    image, mixed = vectors(model, [PICTURES[0], ("dog", PICTURES[0])])
    assert not same(image, mixed)
    apart = vectors(model, [("dog", frame) for frame in film(2)])
    assert same(vectors(model, [("dog", film(2))])[0], unit(unit(apart).sum(0)))


def test_a_caption_is_cut_alone_and_not_beside_a_picture(blip2: Path) -> None:
    model = get_model(str(blip2), loading=Loading(device="cpu"))
    (_, alone), (_, beside) = prepared(model, [LONG, (LONG, PICTURES[0])])
    assert len(alone) == 32 < len(beside)
    assert truncate(beside, 32) == alone
    assert truncate(alone, 32) == alone
    assert alone[-1] == beside[-1]


def _given(folder: Path) -> dict[str, Any]:
    words = tokens(folder, TEXTS)
    return {
        "pixel_values": pixels(folder, PICTURES),
        "input_ids": words["input_ids"],
        "attention_mask": words["attention_mask"],
    }
