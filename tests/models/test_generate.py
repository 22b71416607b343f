"""Generators on tiny checkpoints: greedy, the same in any batch, and as the libraries themselves generate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.items.decoding import decode
from embark.models import find_card, generate, get_generator
from embark.models.encoder import Generator
from embark.types import EmbarkError
from tiny import TEXTS, byte_bpe, film, item, picture, saved, wordpiece

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

VISION = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PROMPT = "what is shown in the picture?"
WORDS = 10


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights rarely come to an end by themselves."""
    monkeypatch.setattr(generate, "MAX_TOKENS", WORDS)


def written(model: Generator, *things: Any, prompt: str = PROMPT) -> list[str]:
    """Texts about the things, from one batch."""
    ready = []
    for thing in things:
        rendered = model.render(item(*(thing if isinstance(thing, tuple) else (thing,))), prompt)
        ready.append(model.prepare(decode(rendered.parts, model.card.frames, 16_000), rendered.mode))
    return model.generate(ready)


def qwen_tokenizer() -> Any:
    tokenizer = byte_bpe(more=["<|im_start|>", *VISION], eos_token="<|im_end|>", pad_token="<|endoftext|>", limit=4096)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(1)
    tokenizer = qwen_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, initializer_range=0.5, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    sampling = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}  # as the published ones come
    model.generation_config.update(**sampling)
    return saved(tmp_path_factory.mktemp("qwen3"), model, tokenizer)


@pytest.mark.slow
def test_a_rewriter_answers_as_the_library_does_word_by_word(qwen3: Path) -> None:
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    ours = get_generator(f"chat:{qwen3}")
    tokenizer, model = AutoTokenizer.from_pretrained(qwen3), Qwen3ForCausalLM.from_pretrained(qwen3).eval()
    expected = []
    for text in TEXTS:
        turn = [{"role": "user", "content": f"{PROMPT}\n{text}"}]
        ids = tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_tensors="pt", return_dict=False)
        start = ids.shape[1]
        for _ in range(WORDS):
            with torch.no_grad():
                best = model(ids).logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, best], 1)
            if int(best) == tokenizer.eos_token_id:
                break
        expected.append(tokenizer.decode(ids[0, start:], skip_special_tokens=True).strip())
    assert [written(ours, text)[0] for text in TEXTS] == expected
    assert written(ours, *TEXTS) == expected  # left padding changes nothing
    assert written(ours, *TEXTS, prompt="find the dog") != expected
    assert len(set(expected)) > 1
    card = ours.card
    assert (card.kind, card.modalities, card.stored, card.dim) == ("generator", ("text",), "uint8", 1)


CLASSES = ["dog", "a dog on a beach", "cat", "zebra crossing", "2"]


def scored(model: Any, *things: Any, texts: list[str] = CLASSES) -> Any:
    """The likelihoods of texts about the things, from one batch: (things, texts, 2)."""
    rendered = [model.render(item(thing), PROMPT) for thing in things]
    ready = [model.prepare(decode(r.parts, model.card.frames, 16_000), r.mode) for r in rendered]
    return np.stack(model.capabilities.likelihoods(ready, texts))


def by_hand(model: Any, ids: Any, answer: list[int], kinds: Any, media: Any) -> float:
    """The log-probability of an answer after a prompt, token by token, each time from the beginning."""
    total = 0.0
    for token in answer:
        grown = torch.nn.functional.pad(kinds, (0, ids.shape[1] - kinds.shape[1]))
        with torch.no_grad():
            logits = model(input_ids=ids, **media, **({"mm_token_type_ids": grown} if media else {})).logits
        total += float(logits[0, -1].float().log_softmax(-1)[token])
        ids = torch.cat([ids, torch.tensor([[token]])], 1)
    return total


def test_the_likelihood_of_an_answer_is_that_of_its_tokens_and_its_end(qwen3: Path) -> None:
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    ours = get_generator(f"chat:{qwen3}")
    tokenizer, model = AutoTokenizer.from_pretrained(qwen3), Qwen3ForCausalLM.from_pretrained(qwen3).eval()
    answers = [[*tokenizer(name)["input_ids"], tokenizer.eos_token_id] for name in CLASSES]
    prompts = [f"<|im_start|>user\n{PROMPT}\n{text}<|im_end|>\n<|im_start|>assistant\n" for text in TEXTS]
    prompt_ids = [tokenizer(prompt, return_tensors="pt")["input_ids"] for prompt in prompts]
    expected = [[by_hand(model, ids, answer, kinds=ids, media={}) for answer in answers] for ids in prompt_ids]
    values = scored(ours, *TEXTS)
    np.testing.assert_allclose(values[..., 0], expected, atol=1e-3)
    np.testing.assert_array_equal(values[..., 1], [list(map(len, answers))] * len(TEXTS))
    np.testing.assert_allclose(scored(ours, TEXTS[1]), values[1:2], atol=1e-4)
    many = [*CLASSES, *(f"class {number}" for number in range(40))]  # more than are computed together
    np.testing.assert_allclose(scored(ours, TEXTS[0], texts=many)[:, : len(CLASSES)], values[:1], atol=1e-4)


def test_without_a_chat_template_it_does_not_answer(qwen3: Path, tmp_path: Path) -> None:
    from transformers import Qwen3ForCausalLM

    plain = byte_bpe(more=["<|im_start|>", *VISION], eos_token="<|im_end|>", pad_token="<|endoftext|>")
    folder = saved(tmp_path, Qwen3ForCausalLM.from_pretrained(qwen3), plain)
    with pytest.raises(EmbarkError, match="has no chat template"):
        get_generator(f"chat:{folder}")


@pytest.fixture(scope="module")
def qwen2_vl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    torch.manual_seed(3)
    tokenizer = qwen_tokenizer()
    names = ("vision_start_token_id", "vision_end_token_id", "image_token_id", "video_token_id")
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10_000.0}
    config = Qwen2VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "rope_parameters": rope, "initializer_range": 0.5,
            "eos_token_id": tokenizer.eos_token_id,
        },
        vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2},
        **dict(zip(names, tokenizer.convert_tokens_to_ids(VISION), strict=True)),
    )  # fmt: skip
    model, pixels = Qwen2VLForConditionalGeneration(config), Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12_544)
    return saved(tmp_path_factory.mktemp("qwen2vl"), model, tokenizer, pixels)


def test_a_captioner_looks_at_pictures_and_films(qwen2_vl: Path) -> None:
    from transformers import AutoImageProcessor, AutoTokenizer, Qwen2VLForConditionalGeneration

    ours = get_generator(f"chat:{qwen2_vl}")
    tokenizer, model = (
        AutoTokenizer.from_pretrained(qwen2_vl),
        Qwen2VLForConditionalGeneration.from_pretrained(qwen2_vl).eval(),
    )
    look = AutoImageProcessor.from_pretrained(qwen2_vl, backend="pil")
    pictures, expected = [picture(1), picture(2, (90, 60)), picture(3, (60, 90))], []
    for each in pictures:
        seen = look(images=[each], return_tensors="pt")
        shown = f"<|vision_start|>{'<|image_pad|>' * (int(seen['image_grid_thw'].prod()) // 4)}<|vision_end|>"
        prompt = f"<|im_start|>user\n{PROMPT}\n{shown}<|im_end|>\n<|im_start|>assistant\n"
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        kinds = (ids == tokenizer.convert_tokens_to_ids("<|image_pad|>")).int()
        out = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=kinds, do_sample=False,
            max_new_tokens=WORDS, pad_token_id=tokenizer.pad_token_id, **seen,
        )  # fmt: skip
        expected.append(tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True).strip())
    assert [written(ours, each)[0] for each in pictures] == expected
    assert written(ours, *pictures, "dog") == [*expected, *written(ours, "dog")]
    assert len(set(expected)) == 3
    [told] = written(ours, film())
    assert told
    assert ours.card.modalities == ("text", "image", "video")


def test_the_likelihood_of_an_answer_about_a_picture(qwen2_vl: Path) -> None:
    from transformers import AutoImageProcessor, AutoTokenizer, Qwen2VLForConditionalGeneration

    ours = get_generator(f"chat:{qwen2_vl}")
    tokenizer = AutoTokenizer.from_pretrained(qwen2_vl)
    model = Qwen2VLForConditionalGeneration.from_pretrained(qwen2_vl).eval()
    look = AutoImageProcessor.from_pretrained(qwen2_vl, backend="pil")
    answers = [[*tokenizer(name)["input_ids"], tokenizer.eos_token_id] for name in CLASSES]
    pictures = [picture(1), picture(2, (90, 60))]
    expected = []
    for each in pictures:
        seen = dict(look(images=[each], return_tensors="pt"))
        shown = f"<|vision_start|>{'<|image_pad|>' * (int(seen['image_grid_thw'].prod()) // 4)}<|vision_end|>"
        prompt = f"<|im_start|>user\n{PROMPT}\n{shown}<|im_end|>\n<|im_start|>assistant\n"
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        kinds = (ids == tokenizer.convert_tokens_to_ids("<|image_pad|>")).int()
        expected.append([by_hand(model, ids, answer, kinds=kinds, media=seen) for answer in answers])
    values = scored(ours, *pictures)
    np.testing.assert_allclose(values[..., 0], expected, atol=1e-3)
    text = scored(get_generator(f"chat:{qwen2_vl}"), "dog")  # by a model that has seen no picture yet
    np.testing.assert_allclose(scored(ours, "dog"), text, atol=1e-4)
    assert np.abs(values[0, :, 0] - values[1, :, 0]).max() > 0.01  # it looks at the picture


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import BlipConfig, BlipForConditionalGeneration
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    torch.manual_seed(4)
    tokenizer = wordpiece(more=["[DEC]", "[ENC]"])
    ids = dict(zip(("bos", "sep", "pad"), tokenizer.convert_tokens_to_ids(["[DEC]", "[SEP]", "[PAD]"]), strict=True))
    config = BlipConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "encoder_hidden_size": 32, "intermediate_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 2, "projection_dim": 16, "initializer_range": 0.5,
            "bos_token_id": ids["bos"], "sep_token_id": ids["sep"], "eos_token_id": ids["sep"],
            "pad_token_id": ids["pad"], "max_position_embeddings": 512,
        },
        vision_config={
            "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
            "image_size": 32, "patch_size": 16, "initializer_range": 0.5,
        },
        projection_dim=16,
    )  # fmt: skip
    pixels = BlipImageProcessorPil(size={"height": 32, "width": 32})
    return saved(tmp_path_factory.mktemp("blip"), BlipForConditionalGeneration(config), tokenizer, pixels)


def test_blip_captions_pictures(blip: Path) -> None:
    from transformers import AutoImageProcessor, AutoTokenizer, BlipForConditionalGeneration

    ours = get_generator(f"blip-caption:{blip}")
    tokenizer, model = AutoTokenizer.from_pretrained(blip), BlipForConditionalGeneration.from_pretrained(blip).eval()
    look = AutoImageProcessor.from_pretrained(blip, backend="pil")
    pictures = [picture(1), picture(2, (90, 60)), picture(3, (60, 90), "RGBA")]
    expected = []
    for each in pictures:
        seen = look(images=[each.convert("RGB")], return_tensors="pt")
        out = model.generate(**seen, do_sample=False, max_new_tokens=WORDS)
        expected.append(tokenizer.decode(out[0], skip_special_tokens=True).strip())
    assert [written(ours, each)[0] for each in pictures] == expected
    assert written(ours, *pictures) == expected
    assert ours.render(item(pictures[0]), "one prompt") == ours.render(item(pictures[0]), "another")
    assert ours.card.modalities == ("image",)
    assert find_card(f"blip-caption:{blip}").kind == "generator"


def test_the_likelihood_of_a_caption(blip: Path) -> None:
    from transformers import AutoImageProcessor, AutoTokenizer, BlipForConditionalGeneration

    ours = get_generator(f"blip-caption:{blip}")
    tokenizer, model = AutoTokenizer.from_pretrained(blip), BlipForConditionalGeneration.from_pretrained(blip).eval()
    look = AutoImageProcessor.from_pretrained(blip, backend="pil")
    config = model.config.text_config
    names = ["dog", "the dog on the beach", "page"]
    expected = []
    for each in (picture(1), picture(2, (90, 60))):
        pixels = look(images=[each], return_tensors="pt")
        row = []
        for name in names:
            ids = [config.bos_token_id, *tokenizer(name, add_special_tokens=False)["input_ids"], config.sep_token_id]
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([ids]), **pixels).logits[0, :-1].log_softmax(-1)
            row.append(float(logits[torch.arange(len(ids) - 1), ids[1:]].sum()))
        expected.append(row)
    np.testing.assert_allclose(scored(ours, picture(1), picture(2, (90, 60)), texts=names)[..., 0], expected, atol=1e-3)
