"""BLIP and BLIP-2 on tiny checkpoints: as the library computes, and fused or read together as their cards say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.models import Encoder, get_model
from embark.models.encoder import unit
from embark.models.joint import cut
from embark.types import EmbarkError
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
    model = get_model(str(blip), device="cpu")
    reference = transformers.BlipForImageTextRetrieval.from_pretrained(blip).eval()
    with torch.inference_mode():
        scores = reference(**_given(blip), use_itm_head=False).itm_score
    texts, images = vectors(model, TEXTS), vectors(model, PICTURES)
    assert np.allclose(np.linalg.norm([*texts, *images], axis=1), 1, atol=1e-5)
    assert same(images @ texts.T, scores)
    assert model.card.dim == 12
    assert model.card.fusion == "unit-sum"


def test_blip_keeps_to_the_rules(blip: Path) -> None:
    model = get_model(str(blip), device="cpu")
    shared(model, [("dog", PICTURES[0])])
    text, image, mixed = vectors(model, ["dog", PICTURES[0], ("dog", PICTURES[0])])
    assert same(mixed, text + image)
    assert same(vectors(model, [film(1)])[0], unit(unit(vectors(model, film(1))).sum(0)))


def test_a_blip_without_heads_is_refused(blip: Path, tmp_path: Path) -> None:
    config = transformers.BlipConfig.from_pretrained(blip)
    saved(tmp_path, transformers.BlipForQuestionAnswering(config), wordpiece())
    with pytest.raises(EmbarkError, match=r"lacks 6 weights of BlipForImageTextRetrieval, the first is itm_head\.bias"):
        get_model(str(tmp_path), device="cpu")


def test_pickled_weights_need_consent(blip: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((blip / name).read_bytes())
    state = transformers.BlipForImageTextRetrieval.from_pretrained(blip).state_dict()
    torch.save(state, tmp_path / "pytorch_model.bin")
    with pytest.raises(EmbarkError, match=r"pickles.*--trust local-") as told:
        get_model(str(tmp_path), device="cpu")
    revision = str(told.value).split("--trust ")[1].split()[0]
    trusted = get_model(str(tmp_path), device="cpu", trust=revision)
    assert same(vectors(trusted, TEXTS), vectors(get_model(str(blip), device="cpu"), TEXTS))


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
    model = get_model(str(blip2), device="cpu")
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
    model = get_model(str(blip2), device="cpu")
    shared(model, [("dog", PICTURES[0]), (PICTURES[1], LONG), ("dog", film(2))])
    image, mixed = vectors(model, [PICTURES[0], ("dog", PICTURES[0])])
    assert not same(image, mixed)
    apart = vectors(model, [("dog", frame) for frame in film(2)])
    assert same(vectors(model, [("dog", film(2))])[0], unit(unit(apart).sum(0)))


def test_a_caption_is_cut_alone_and_not_beside_a_picture(blip2: Path) -> None:
    model = get_model(str(blip2), device="cpu")
    (_, alone), (_, beside) = prepared(model, [LONG, (LONG, PICTURES[0])])
    assert len(alone) == 32 < len(beside)
    assert cut(beside, 32) == alone
    assert cut(alone, 32) == alone
    assert alone[-1] == beside[-1]


def _given(folder: Path) -> dict[str, Any]:
    words = tokens(folder, TEXTS)
    return {
        "pixel_values": pixels(folder, PICTURES),
        "input_ids": words["input_ids"],
        "attention_mask": words["attention_mask"],
    }
