"""Omni models as embedders, from tiny thinkers of Qwen2.5-Omni, against what transformers computes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.items import key
from embark.items.decoding import decode
from embark.models import LOADERS, Encoder, get_model
from embark.models.cards import mllm as cards
from embark.models.encoder import render_item, unit
from embark.models.loading import Loading, build
from embark.protocol import vector_space
from embark.types import EmbarkError, ModelCard, Style, Text
from tiny import (
    TEXTS,
    byte_bpe,
    check_without_weights,
    film,
    item,
    one_by_one,
    picture,
    prepared,
    same,
    saved,
    sound,
    vectors,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

IMAGE, VIDEO, AUDIO = "<|IMAGE|>", "<|VIDEO|>", "<|AUDIO|>"
EYES, EARS = ("<|vision_bos|>", "<|vision_eos|>"), ("<|audio_bos|>", "<|audio_eos|>")
PIXELS = {"pixels": (64, 64 * 64), "frame_pixels": None}
THINGS: list[Any] = [
    "dog", TEXTS[2], picture(1), film(0, 3), sound(1), sound(2, 0.83), (sound(3), "dog"),
    (film(1, 2), sound(4), "a dog"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    marks = ("<|im_start|>", "<|im_end|>", *EYES, *EARS, IMAGE, VIDEO, AUDIO)
    tokens = byte_bpe(more=marks, pad_token="<|endoftext|>", limit=4096)
    number = tokens.convert_tokens_to_ids
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    config = transformers.Qwen2_5OmniThinkerConfig(
        text_config={
            "vocab_size": len(tokens), "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "rope_parameters": rope,
        },
        vision_config={
            "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "patch_size": 4,
            "out_hidden_size": 32, "window_size": 16, "fullatt_block_indexes": [1],
        },
        audio_config={
            "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 48, "n_window": 20,
            "num_mel_bins": 16, "output_dim": 32, "max_source_positions": 100,
        },
        image_token_index=number(IMAGE), video_token_index=number(VIDEO), audio_token_index=number(AUDIO),
        vision_start_token_id=number(EYES[0]), vision_end_token_id=number(EYES[1]),
        audio_start_token_id=number(EARS[0]), audio_end_token_id=number(EARS[1]),
    )  # fmt: skip
    torch.manual_seed(5)
    model = transformers.Qwen2_5OmniThinkerForConditionalGeneration(config)
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.2)
    eyes = transformers.Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 64, "longest_edge": 64 * 64})
    ears = transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=5, return_attention_mask=True)
    where: Path = saved(tmp_path_factory.mktemp("omni"), model, tokens, eyes)
    both = json.loads((where / "preprocessor_config.json").read_text()) | ears.to_dict()  # one file, as on the hub
    (where / "preprocessor_config.json").write_text(
        json.dumps({**both, "image_processor_type": "Qwen2VLImageProcessor"})
    )
    return where


def spoken(folder: Path, style: cards.Style, trust: str | None = None, **facts: Any) -> Any:
    card = ModelCard("tiny/omni", "main", "omni", (), source=str(folder), options={**style, **PIXELS}, **facts)
    return build(LOADERS["omni"], card, Loading(device="cpu", trust=trust))


def thinker(folder: Path, bidirectional: bool = False) -> Any:
    model = transformers.Qwen2_5OmniThinkerForConditionalGeneration.from_pretrained(folder).eval()
    if bidirectional:
        model.config.text_config.is_causal = False
    return model


def heard(folder: Path, sounds: Sequence[Any]) -> tuple[dict[str, Any], list[int]]:
    """Sounds as the library's processor prepares them, and how many placeholders each needs."""
    ears = transformers.WhisperFeatureExtractor.from_pretrained(folder)
    waves = [each.samples for each in sounds]
    out = ears(waves, sampling_rate=16_000, padding="max_length", return_attention_mask=True, return_tensors="pt")
    lengths = (out["attention_mask"].sum(-1) - 1) // 2 + 1
    media = {"input_features": out["input_features"], "feature_attention_mask": out["attention_mask"]}
    return media, ((lengths - 2) // 2 + 1).tolist()


def states(folder: Path, model: Any, prompt: str, **media: Any) -> Any:
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(prompt, return_tensors="pt")
    inputs = {name: tokens[name] for name in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        return model(**inputs, **media, output_hidden_states=True).hidden_states


def chat(content: str, answer: bool = True) -> str:
    turns = f"<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{content}<|im_end|>\n"
    return f"{turns}<|im_start|>assistant\n" if answer else turns


def test_an_answer_to_a_style_caps_pictures_and_texts(folder: Path) -> None:
    """Nemotron omni in MMEB-V3: smaller pictures and shorter texts than its card has, and the row's instruction."""
    answer = {**cards.NEMOTRON_MMEB["MMEB-V3"], "pixels": (64, 256), "context": 40}
    model = spoken(folder, cards.NEMOTRON, styles={"MMEB-V3": answer}, context=4096)
    style = Style("MMEB-V3", {"query": "{media}\n{instruction} {text}\n"}, 2)

    def ready(thing: Any, shown: Style | None) -> tuple[Any, Any]:
        rendered = render_item(model, item(*thing), "query", "Find it:", shown)
        contents = decode(rendered.parts, rendered.frames or model.card.frames, 16_000)
        return rendered, model.prepare(contents, rendered.mode)

    long = " ".join(["a dog"] * 60)
    usual, whole = ready((picture(1, (64, 64)), "dog"), None)
    styled, small = ready((picture(1, (64, 64)), "dog"), style)
    assert usual.mode == ""
    assert styled.mode.startswith("MMEB-V3 ")
    assert len(whole.media[0]["pixel_values"]) > len(small.media[0]["pixel_values"]) == 16
    assert len(ready((long,), None)[1].ids) > len(ready((long,), style)[1].ids) == 40
    assert ready((film(0, 6),), style)[0].frames == 2
    assert same(vectors(model, ["dog"], "query"), model.embed([ready(("dog",), None)[1]]))
    space = vector_space(model.card)
    assert key(space, usual) != key(space, styled)


def test_a_folder_is_recognised(folder: Path) -> None:
    model = get_model(str(folder), loading=Loading(device="cpu", dtype="float32"))
    assert model.card.loader == "omni"
    assert (model.card.dim, model.card.fusion) == (32, "native")
    assert model.card.modalities == ("text", "image", "video", "audio")


def test_sounds_agree_with_the_library(folder: Path) -> None:
    model, library = spoken(folder, cards.CHAT), thinker(folder)
    waves = [sound(1), sound(2, 0.83)]
    media, (first, second) = heard(folder, waves)
    prompt = chat(f"{EARS[0]}{AUDIO * first}{EARS[1]}{EARS[0]}{AUDIO * second}{EARS[1]}dog")
    expected = states(folder, library, prompt, **media)[-1][:, -1]
    assert same(vectors(model, [(*waves, "dog")]), unit(np.asarray(expected)))
    assert same(vectors(model, [TEXTS[2]]), unit(np.asarray(states(folder, library, chat(TEXTS[2]))[-1][:, -1])))


def test_films_with_sound_agree_with_the_library(folder: Path) -> None:
    model = spoken(folder, cards.CHAT)
    frames, wave = film(1, 4, (24, 16)), sound(1)
    (ready,) = prepared(model, [frames])
    media, (count,) = heard(folder, [wave])
    media |= dict(ready.media[0])  # its patches are compared with the library's in test_mllm
    assert media["video_grid_thw"].tolist() == [[2, 4, 6]]
    assert media["video_second_per_grid"].tolist() == [1.0]
    prompt = chat(f"{EYES[0]}{VIDEO * 12}{EYES[1]}{EARS[0]}{AUDIO * count}{EARS[1]}")
    expected = states(folder, thinker(folder), prompt, **media)[-1][:, -1]
    assert same(vectors(model, [(frames, wave)]), unit(np.asarray(expected)))


@pytest.mark.parametrize("style", ["CHAT", "NEMOTRON"])
def test_a_vector_knows_nothing_of_its_batch(style: str, folder: Path) -> None:
    chosen = getattr(cards, style)
    model = spoken(folder, chosen)
    alone = one_by_one(model, THINGS)
    assert same(vectors(model, THINGS), alone)
    assert same(vectors(spoken(folder, {**chosen, "padding": "right"}), THINGS), alone)
    assert len(np.unique(alone.round(4), axis=0)) == len(THINGS)


def test_a_long_silence_after_a_sound_changes_nothing(folder: Path) -> None:
    ears = spoken(folder, cards.CHAT).processors["audio"]
    for seconds in (0.3, 0.339375, 0.83, 4.99, 7):  # the last is longer than the model hears
        wave = sound(2, seconds)
        media, (count,) = heard(folder, [wave])
        seen = ears(wave)
        length = int(media["feature_attention_mask"].sum())
        assert seen.prompt.count(AUDIO) == count
        assert same(seen.tensors["input_features"], media["input_features"][..., :length])


# ── Omni-Embed-Nemotron ──────────────────────────────────────────────────────────────────────────────────────────────


def test_nemotron_sees_both_ways_and_takes_the_mean(folder: Path) -> None:
    model, library = spoken(folder, cards.NEMOTRON), thinker(folder, bidirectional=True)
    wave = sound(1)
    media, (count,) = heard(folder, [wave])
    prompt = chat(f"passage: a dog{EARS[0]}{AUDIO * count}{EARS[1]}", answer=False)
    expected = states(folder, library, prompt, **media)[-1].mean(1)
    assert same(vectors(model, [(wave, "a dog")]), unit(np.asarray(expected)))
    causal = states(folder, thinker(folder), prompt, **media)[-1].mean(1)
    assert not same(vectors(model, [(wave, "a dog")]), unit(np.asarray(causal)), 0.01)


def test_nemotron_has_a_prefix_for_each_role(folder: Path) -> None:
    model = spoken(folder, cards.NEMOTRON)
    shown = {role: _said(model, "dog", role) for role in ("query", "document", "item")}
    assert shown["query"] == chat("query: dog", answer=False)
    assert shown["document"] == shown["item"] == chat("passage: dog", answer=False)
    assert not same(vectors(model, ["dog"], "query"), vectors(model, ["dog"], "document"), 0.001)
    assert same(vectors(model, ["dog"], "query", "find it"), vectors(model, ["dog"], "query"))


def test_its_own_name_for_the_thinker_is_understood(folder: Path, tmp_path: Path) -> None:
    renamed = shutil.copytree(folder, tmp_path / "nemotron")
    config = json.loads((renamed / "config.json").read_text())
    (renamed / "config.json").write_text(
        json.dumps({**config, "model_type": "nvomniembed", "auto_map": {"AutoModel": "x.Y"}})
    )
    things = ["dog", sound(1)]
    assert same(vectors(spoken(renamed, cards.NEMOTRON), things), vectors(spoken(folder, cards.NEMOTRON), things))


def test_a_whole_omni_model_lends_its_thinker(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    whole = Path(shutil.copytree(folder, tmp_path / "whole"))
    weights = {f"thinker.{name}": weight for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(weights, whole / "model.safetensors", {"format": "pt"})
    thinking = json.loads((folder / "config.json").read_text())
    (whole / "config.json").write_text(json.dumps({"model_type": "qwen2_5_omni", "thinker_config": thinking}))
    models = [get_model(str(each), loading=Loading(device="cpu", dtype="float32")) for each in (folder, whole)]
    assert same(*(vectors(model, ["dog", sound(1), picture(1)]) for model in models))


# ── WAVE ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def wave_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The thinker with a head beside it, pickled, as it was published."""
    from safetensors.torch import load_file

    where = Path(shutil.copytree(folder, tmp_path_factory.mktemp("wave") / "wave"))
    (where / "model.safetensors").unlink()
    torch.manual_seed(9)
    head = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.Linear(32, 32))
    own = {f"classify_linear.{name}": weight for name, weight in head.state_dict().items()}
    torch.save(load_file(folder / "model.safetensors") | own, where / "pytorch_model.bin")
    return where


def _trusted(folder: Path) -> Any:
    with pytest.raises(EmbarkError, match="weights are pickles") as refused:
        spoken(folder, cards.WAVE, instructed=True)
    revision = str(refused.value).split("--trust ")[1].split()[0]
    return spoken(folder, cards.WAVE, trust=revision, instructed=True)


def test_items_are_prepared_without_weights(folder: Path, wave_folder: Path) -> None:
    check_without_weights(f"omni:{folder}", ["dog", sound(1), (picture(1), "a dog")])
    revision = _trusted(wave_folder).card.revision
    wave = ModelCard("test/wave", "1", "omni", (), source=str(wave_folder), options={**cards.WAVE, **PIXELS})
    check_without_weights(wave, ["dog", sound(1)], trust=revision)


def test_wave_reads_all_layers_of_media_and_the_last_of_texts(folder: Path, wave_folder: Path) -> None:
    model, library = _trusted(wave_folder), thinker(folder)
    weights = torch.load(wave_folder / "pytorch_model.bin", weights_only=True)
    noise = sound(1)
    media, (count,) = heard(folder, [noise])
    layers = states(folder, library, f"{EARS[0]}{AUDIO * count}{EARS[1]}what is it?<|im_end|>", **media)[1:]
    joint = torch.cat([layer[:, -1] for layer in layers], -1)
    inner = torch.nn.functional.linear(joint, weights["classify_linear.0.weight"], weights["classify_linear.0.bias"])
    inner = torch.nn.functional.gelu(inner)
    outer = torch.nn.functional.linear(inner, weights["classify_linear.2.weight"], weights["classify_linear.2.bias"])
    assert same(vectors(model, [noise], "query", "what is it?"), unit(np.asarray(outer)))
    text = states(folder, library, "a dog<|im_end|>")[-1][:, -1]
    assert same(vectors(model, ["a dog"]), unit(np.asarray(text)))
    assert same(vectors(model, THINGS), one_by_one(model, THINGS))


def test_another_head_in_a_folder_below_is_not_read(wave_folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(wave_folder, tmp_path / "wave"))
    (copy / "tried").mkdir()
    weights = torch.load(copy / "pytorch_model.bin", weights_only=True)
    torch.save({name: -weight for name, weight in weights.items()}, copy / "tried" / "pytorch_model.bin")
    assert same(*(vectors(_trusted(each), [sound(1)]) for each in (copy, wave_folder)))


def test_a_head_that_is_missing_is_told(folder: Path) -> None:
    with pytest.raises(EmbarkError, match=r"has no classify_linear\.\* among its weights"):
        spoken(folder, cards.WAVE)


def _said(model: Encoder, thing: Any, role: str) -> str:
    parts = model.render(item(thing), role, None).parts
    return "".join(part.text if isinstance(part, Text) else f"[{part.kind}]" for part in parts)
