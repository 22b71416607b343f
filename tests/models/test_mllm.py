"""Embedders made of multimodal language models, each from a tiny checkpoint, against what transformers computes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.models import MODELS, Encoder, Loading, get_model
from embark.models.cards import mllm as cards
from embark.models.encoder import unit
from embark.protocol import vector_space
from embark.types import Array, EmbarkError, ModelCard, Text
from tiny import TEXTS, check_without_weights, film, item, one_by_one, picture, prepared, same, vectors
from tiny_mllm import END, IMAGE, START, VIDEO, built, spoken

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ASK = "find an image that matches the text"
FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "llava_next")
QWEN = FAMILIES[:3]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            made[family] = built(family, tmp_path_factory.mktemp(family))
        return made[family]

    return folder


def reference(
    folder: Path, prompt: str, pool: Callable[[Any], Any] = lambda states: states[:, -1], **media: Any
) -> Array:
    """What the library's generator thinks after the prompt: its own tokens, its last hidden state."""
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(prompt, return_tensors="pt")
    if "qwen" in model.config.model_type:
        ids = tokens["input_ids"]
        kinds = (ids == model.config.image_token_id).int() + 2 * (ids == model.config.video_token_id).int()
        media["mm_token_type_ids"] = kinds
    with torch.inference_mode():
        out = model(
            input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"], output_hidden_states=True, **media
        )
        return np.asarray(pool(out.hidden_states[-1]))


def looked(folder: Path, images: Sequence[Any]) -> tuple[dict[str, Any], list[int]]:
    """Pictures through the library's processor, and how many placeholders each needs."""
    out = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(
        images=list(images), return_tensors="pt"
    )
    return dict(out), (out["image_grid_thw"].prod(1) // 4).tolist()


def sketch(model: Encoder, thing: Any, role: str = "document", instruction: str | None = None) -> str:
    """What a thing is rendered to, media as their kind in brackets."""
    parts = model.render(item(*(thing if isinstance(thing, tuple) else (thing,))), role, instruction).parts
    return "".join(part.text if isinstance(part, Text) else f"[{part.kind}]" for part in parts)


def chat(content: str, system: str = "You are a helpful assistant.", end: str = "") -> str:
    user = f"<|im_start|>user\n{content}<|im_end|>\n"
    return f"<|im_start|>system\n{system}<|im_end|>\n{user}<|im_start|>assistant\n{end}"


# ── the forward pass ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_is_recognised(family: str, folders: Callable[[str], Path]) -> None:
    card = get_model(str(folders(family)), loading=Loading(device="cpu", dtype="float32")).card
    assert card.loader == "mllm"
    assert (card.dim, card.fusion) == (32, "native")
    assert card.modalities == (("text", "image") if family == "llava_next" else ("text", "image", "video"))
    assert card.options == cards.DEFAULTS[family]
    assert card.revision.startswith("local-")
    assert set(card.loaded["libraries"]) == {"torch", "transformers"}


@pytest.mark.parametrize("family", ["qwen2_5_vl", "llava_next"])
def test_items_are_prepared_without_weights(family: str, folders: Callable[[str], Path]) -> None:
    check_without_weights(str(folders(family)), ["dog", picture(1), (picture(2), "a dog")])


@pytest.mark.parametrize("family", QWEN)
def test_qwen_agrees_with_the_library(family: str, folders: Callable[[str], Path]) -> None:
    folder, picked = folders(family), [picture(1), picture(2, (64, 20))]
    model = spoken(folder, cards.CHAT)
    media, (first, second) = looked(folder, picked)
    seen = f"{START}{IMAGE * first}{END}{START}{IMAGE * second}{END}"
    assert same(vectors(model, [TEXTS[2]]), unit(reference(folder, chat(TEXTS[2]))))
    assert same(vectors(model, [(*picked, "a dog")]), unit(reference(folder, chat(f"{seen}a dog"), **media)))


@pytest.mark.parametrize("family", QWEN)
def test_films_agree_with_the_library(family: str, folders: Callable[[str], Path]) -> None:
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    folder, frames = folders(family), film(1, 3, (24, 16))  # a size that fits the patches: nothing is resized
    eyes = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    pixels = [(np.asarray(frame) / 255 - eyes.image_mean) / eyes.image_std for frame in frames]
    shown = torch.tensor(np.stack(pixels)).permute(0, 3, 1, 2)[None].float()
    patches, *grid = Qwen3VLVideoProcessor.patchify(None, shown, 4, 2, 2)
    assert grid == [2, 4, 6]
    media = {"pixel_values_videos": patches[0], "video_grid_thw": torch.tensor([grid])}
    prompt = f"{START}{VIDEO * 12}{END}"
    if family == "qwen2_5_vl":
        media["second_per_grid_ts"] = torch.tensor([1.0])
    if family == "qwen3_vl":  # at two frames a second, the pairs are shown around 0.25 s and 1.25 s
        prompt = f"<0.2 seconds>{START}{VIDEO * 6}{END}<1.2 seconds>{START}{VIDEO * 6}{END}"
    model = spoken(folder, cards.CHAT)
    (ready,) = prepared(model, [frames])
    assert same(ready.media[0]["pixel_values_videos"], patches[0])
    assert same(vectors(model, [frames]), unit(reference(folder, chat(prompt), **media)))


def test_llava_agrees_with_the_library(folders: Callable[[str], Path]) -> None:
    folder, picked = folders("llava_next"), picture(2, (60, 25))
    tokens, config = (each.from_pretrained(folder) for each in (transformers.AutoTokenizer, transformers.AutoConfig))
    eyes = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    processor = transformers.LlavaNextProcessor(
        eyes, tokens, patch_size=4, vision_feature_select_strategy=config.vision_feature_select_strategy,
        num_additional_image_tokens=1,
    )  # fmt: skip
    model = get_model(str(folder), loading=Loading(device="cpu", dtype="float32"))
    for thing in (picked, (picked, "a red apple")):
        prompt = sketch(model, thing).replace("[image]", "<image>")
        out = processor(images=[picked], text=[prompt], return_tensors="pt")
        whole = tokens.decode(out["input_ids"][0]).removeprefix("<s>")
        media = {name: out[name] for name in ("pixel_values", "image_sizes")}
        assert same(vectors(model, [thing]), reference(folder, whole, **media))  # E5-V does not normalise
    assert same(vectors(model, ["dog"]), reference(folder, sketch(model, "dog")))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_vector_knows_nothing_of_its_batch(family: str, folders: Callable[[str], Path]) -> None:
    model: Any = get_model(str(folders(family)), loading=Loading(device="cpu", dtype="float32"))
    things: list[Any] = ["dog", TEXTS[2], picture(1), picture(2, (64, 20)), (picture(3), "a red apple")]
    if "video" in model.card.modalities:
        things += [film(0, 3), film(1, 4, (24, 24)), (film(2, 2), "dog"), (film(2, 1), picture(5))]
    alone = one_by_one(model, things)
    assert same(vectors(model, things), alone)
    assert same(vectors(model, things[::-1]), alone[::-1])
    for side in ("left", "right"):
        turned = type(model)(
            replace(model.card, options={**model.card.options, "padding": side}),
            model.model, model.tokenizer, model.processors,
        )  # fmt: skip
        assert same(vectors(turned, things), alone), side
    assert len(np.unique(alone.round(4), axis=0)) == len(things)


def test_items_are_prepared_in_several_threads(folders: Callable[[str], Path]) -> None:
    model = get_model(str(folders("qwen3_vl")), loading=Loading(device="cpu", dtype="float32"))
    things = [(picture(seed, (20 + seed, 30)), f"dog {seed}") for seed in range(12)]
    with ThreadPoolExecutor(4) as pool:
        ready = list(pool.map(lambda thing: prepared(model, [thing])[0], things))
    assert same(model.embed(ready), vectors(model, things))


def test_flat_positions_are_counted_one_by_one(folders: Callable[[str], Path]) -> None:
    folder, picked = folders("qwen2_vl"), picture(1)
    media, (count,) = looked(folder, [picked])
    prompt = f"{IMAGE * count} {ASK}: dog"
    tokens = len(transformers.AutoTokenizer.from_pretrained(folder)(prompt)["input_ids"])
    flat = reference(folder, prompt, **media, position_ids=torch.arange(tokens)[None])
    model = spoken(folder, cards.VLM2VEC)
    assert same(vectors(model, [(picked, "dog")], instruction=f"{ASK}: "), unit(flat))
    assert not same(flat, reference(folder, prompt, **media))


def test_lamra_pools_the_token_before_its_mark(folders: Callable[[str], Path]) -> None:
    folder, picked = folders("qwen2_vl"), picture(1)
    media, (count,) = looked(folder, [picked])
    asked = f"{START}{IMAGE * count}{END}{ASK}\nSummarize above image and sentence in one word: "
    whole = f"{chat(asked)}<emb>.<|im_end|>\n"  # the mark is no token here, so it is found from the end
    after = len(transformers.AutoTokenizer.from_pretrained(folder)("<emb>.<|im_end|>\n")["input_ids"])
    model = spoken(folder, cards.LAMRA)
    published = reference(folder, whole, lambda states: states[:, -1 - after], **media)
    assert same(vectors(model, [picked], "query", ASK), unit(published))


def test_how_films_are_taken(folders: Callable[[str], Path]) -> None:
    folder, frames = folders("qwen2_vl"), film(1, 5, (24, 24))
    middle, several = (spoken(folder, style) for style in (cards.GME, cards.OPS))
    assert same(vectors(middle, [frames]), vectors(middle, [frames[2]]))
    assert same(vectors(several, [frames]), vectors(several, [tuple(frames)]))
    assert not same(vectors(several, [frames]), vectors(spoken(folder, {**cards.OPS, "video": "native"}), [frames]))


def test_long_films_have_smaller_frames(folders: Callable[[str], Path]) -> None:
    style = {**cards.CHAT, "film_pixels": 4 * 1024}
    model = spoken(folders("qwen2_vl"), style, frames=16)
    short, long = prepared(model, [film(0, 2, (64, 64)), film(0, 16, (64, 64))])
    (wide,) = short.media[0]["video_grid_thw"].tolist()
    (small,) = long.media[0]["video_grid_thw"].tolist()
    assert wide == [1, 16, 16]  # 64 × 64 pixels in patches of 4
    assert small == [8, 4, 4]  # 16 frames of 512 pixels at most


# ── prompts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

GLUED, ENDED = f"{ASK} dog", "<|endoftext|>"
LLAMA = "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n \n"
PROMPTS: dict[str, dict[tuple[str, Any], str]] = {  # style: (role, thing) → as published, with the instruction ASK
    "QWEN3_VL": {
        ("query", "dog"): chat("dog", f"{ASK}."),
        ("document", "dog"): chat("dog", "Represent the user's input."),
        ("query", ("dog", "image")): chat("[image]dog", f"{ASK}."),
        ("document", "video"): chat("[video]", "Represent the user's input."),
    },
    "GME": {
        ("query", ("image", "dog")): chat("[image]dog", f"{ASK}.", ENDED),
        ("document", "image"): chat("[image]", end=ENDED),
    },
    "OPS": {("query", "dog"): chat("dog", ASK, ENDED), ("prompt", "dog"): chat("dog", end=ENDED)},
    "RZEN": {
        ("query", "dog"): chat(GLUED, end=ENDED),
        ("document", "image"): chat(f"[image]{ASK}", end=ENDED),
    },
    "LAMRA": {
        ("query", "dog"): chat(f"{GLUED}\nSummarize above sentence in one word: "),
        ("query", "image"): chat(f"[image]{ASK}\nSummarize above image and sentence in one word: "),
        ("document", "image"): chat("[image]\nSummarize above image in one word: "),
    },
    "VLM2VEC": {
        ("query", "dog"): GLUED,
        ("document", "image"): f"[image] {ASK}",
        ("query", ("dog", "image")): f"[image] {GLUED}",
    },
    "E5_V": {
        ("query", "dog"): LLAMA.format("dog\nSummary above sentence in one word: "),
        ("document", "image"): LLAMA.format("[image]\nSummary above image in one word: "),
        ("query", ("image", "dog")): LLAMA.format(
            '[INST] [image] Modify this image with "dog" Describe modified image in one word: [/INST]'
        ),
    },
    "BGE_VL": {
        ("query", ("image", "dog")): f"[INST] \n <instruct> {ASK} <query>  dog \n [image] [/INST]",
        ("document", "image"): "[INST]  [image] [/INST]",
    },
}  # fmt: skip
THINGS = {"image": picture(1), "video": film(1, 2)}


@pytest.mark.parametrize("style", PROMPTS)
def test_prompts_are_those_that_were_published(style: str, folders: Callable[[str], Path]) -> None:
    family = "llava_next" if style in ("E5_V", "BGE_VL") else "qwen2_vl"
    model = spoken(folders(family), getattr(cards, style))
    for (role, said), expected in PROMPTS[style].items():
        words = said if isinstance(said, tuple) else (said,)
        assert sketch(model, tuple(THINGS.get(word, word) for word in words), role, ASK) == expected


def test_instructions_show_where_the_card_says_so(folders: Callable[[str], Path]) -> None:
    folder = folders("qwen3_vl")
    model = spoken(folder, cards.QWEN3_VL)
    plain = vectors(model, ["dog", picture(1)])
    assert same(vectors(model, ["dog", picture(1)], "document", ASK), plain)
    assert same(vectors(model, ["dog", picture(1)], "query"), plain)
    asked = vectors(model, ["dog", picture(1)], "query", ASK)
    assert np.abs(asked - plain).max(axis=1).min() > 0.01
    deaf = spoken(folder, cards.QWEN3_VL, instructed=False)
    assert same(vectors(deaf, ["dog", picture(1)], "query", ASK), plain)
    both = spoken(folder, cards.RZEN)
    assert not same(vectors(both, ["dog"], "document", ASK), vectors(both, ["dog"], "document"))


def test_placeholders_in_a_text_are_no_media(folders: Callable[[str], Path]) -> None:
    model = spoken(folders("qwen2_vl"), cards.CHAT)
    odd = vectors(model, [f"a {IMAGE} dog", (picture(1), f"{VIDEO}dog")])
    assert same(odd, vectors(model, ["a   dog", (picture(1), " dog")]))


def test_an_empty_text_without_a_prompt_is_an_error(folders: Callable[[str], Path]) -> None:
    assert np.isfinite(vectors(spoken(folders("qwen2_vl"), cards.CHAT), [""])).all()
    with pytest.raises(EmbarkError, match="the text is empty"):
        prepared(spoken(folders("qwen2_vl"), cards.VLM2VEC), [""])


def test_long_texts_lose_their_end_but_no_mark(folders: Callable[[str], Path]) -> None:
    model = spoken(folders("qwen2_vl"), cards.CHAT, context=80)
    (full,) = prepared(model, [(picture(1), "dog")])
    (cut,) = prepared(model, [(picture(1), "dog " * 200)])
    assert len(full.ids) <= 80 == len(cut.ids)
    special, tokens = model.special, model.tokenizer.inner
    assert [each for each in cut.ids if each in special] == [each for each in full.ids if each in special]
    assert tokens.decode(cut.ids).endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert np.isfinite(model.embed([cut, full])).all()


# ── what is refused, and the cards ───────────────────────────────────────────────────────────────────────────────────


def test_checkpoints_that_contradict_are_refused(folders: Callable[[str], Path], tmp_path: Path) -> None:
    folder = folders("qwen2_vl")
    with pytest.raises(EmbarkError, match="makes vectors of 32 dimensions; its card says 64"):
        spoken(folder, cards.CHAT, dim=64)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(EmbarkError, match="type 'bert', which this loader does not know; it knows llava_next"):
        spoken(tmp_path, cards.CHAT)


@pytest.mark.parametrize("card", cards.CARDS, ids=lambda card: card.name)
def test_cards_are_complete(card: ModelCard) -> None:
    assert replace(MODELS[card.name], trained_on=card.trained_on) == card
    style = card.options
    assert set(cards.CHAT) <= set(style)
    assert style["video"] in ("native", "frames", "middle", None)
    assert ("video" in card.modalities) == bool(style["video"])
    known = {"media", "text", "asked", "instruction", "system", "prefix"}
    for forms in (style["templates"], style.get("asking", style["templates"])):
        assert set(forms) == {"text", "media", "mixed"}
        for kind, form in forms.items():
            used = set(re.findall(r"\{(\w*)\}", form))
            assert used <= known
            assert "media" in used or kind == "text"
            assert used & {"text", "asked"} or kind == "media"
    reads = {"{asked}", "{instruction}", "{system}"}
    asking = "".join(style.get("asking", style["templates"]).values())
    assert card.instructed == any(field in asking for field in reads)
    assert vector_space(card)
