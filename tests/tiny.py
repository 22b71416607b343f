"""Tiny things that model tests are made of: tokenisers, pictures, sounds, films, and the way an engine embeds them."""

from __future__ import annotations

import gc
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from embark.items.decoding import decode
from embark.models import Encoder, Loading, get_model
from embark.models.encoder import prepare_many
from embark.protocol import vector_space
from embark.types import Array, Audio, EmbarkError, Item, Media, ModelCard, Part, Text

RATE = 16_000
SHORT_WORD = 5  # letters
SENTENCES = (
    "a red apple on a white table",
    "a photo of a small dog",
    "two people ride bicycles along the river in the evening",
    "the quick brown fox jumps over the lazy dog",
    "what is shown in the picture? find an image that matches the text: ",
    "Represent the given image with the following question, 0123456789.",
    "une pomme rouge, ein roter Apfel",
)
TEXTS = ("dog", "a red apple", "two people ride bicycles along the river, and then a small dog jumps over the table")


# ── tokenisers ───────────────────────────────────────────────────────────────────────────────────────────────────────
#
# Each is trained on SENTENCES and comes as transformers has it: `save_pretrained(folder)` makes it a checkpoint's.
# `special` are all special tokens, by their role in transformers (bos_token="<s>"); `more` are those without a role.
# `template` is what a text is wrapped in, as tokenizers writes it: "[CLS] $A [SEP]".


def byte_bpe(template: str = "", more: Sequence[str] = (), size: int = 320, limit: int = 64, **special: str) -> Any:
    """Byte-level BPE, as GPT-2, CLIP, RoBERTa and Qwen have it: any text, no unknown token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, special_tokens=_distinct(special, more), show_progress=False
    )
    return _trained(inner, trainer, template, more, limit, special)


def wordpiece(
    template: str = "[CLS] $A [SEP]", more: Sequence[str] = (), size: int = 200, limit: int = 64, **special: str
) -> Any:
    """WordPiece in lower case, as BERT has it, of letters and short words.

    It is not trained: the trainer of tokenizers makes another vocabulary in each process.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    special = {**names, "mask_token": "[MASK]", **special}
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    known = [normalizer.normalize_str(sentence) for sentence in (*SENTENCES, *TEXTS)]
    words = sorted({word for sentence in known for word, _ in splitter.pre_tokenize_str(sentence)})
    letters = sorted(set("".join(words)))
    pieces = [*_distinct(special, more), *letters, *(f"##{letter}" for letter in letters)]
    pieces += [word for word in words if 1 < len(word) <= SHORT_WORD]
    vocabulary = {piece: number for number, piece in enumerate(pieces[:size])}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token=special["unk_token"]))
    inner.normalizer, inner.pre_tokenizer, inner.decoder = normalizer, splitter, decoders.WordPiece()
    inner.add_special_tokens(_distinct(special, more))
    return _wrapped(inner, template, more, limit, special)


def unigram(
    template: str = "$A </s>", more: Sequence[str] = (), size: int = 120, limit: int = 64, **special: str
) -> Any:
    """Unigram, as SentencePiece models (T5, SigLIP, XLM-R, Gemma) have it, of letters and words; not trained."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", **special}
    splitter = pre_tokenizers.Metaspace()
    words = sorted({word for text in (*SENTENCES, *TEXTS) for word, _ in splitter.pre_tokenize_str(text)})
    letters = sorted(set("".join(words)))
    names = _distinct(special, more)
    pieces = [*names, *letters, *(word for word in words if len(word) > 1)][:size]
    costs = [0.0] * len(names) + [-8.0] * len(letters) + [-4.0] * len(pieces)
    inner = Tokenizer(models.Unigram(list(zip(pieces, costs, strict=False)), names.index(special["unk_token"])))
    inner.pre_tokenizer, inner.decoder = splitter, decoders.Metaspace()
    inner.add_special_tokens(names)
    return _wrapped(inner, template, more, limit, special)


def _distinct(special: dict[str, str], more: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*special.values(), *more)))


def _trained(inner: Any, trainer: Any, template: str, more: Sequence[str], limit: int, special: dict[str, str]) -> Any:
    inner.train_from_iterator([*SENTENCES, *TEXTS], trainer)
    return _wrapped(inner, template, more, limit, special)


def _wrapped(inner: Any, template: str, more: Sequence[str], limit: int, special: dict[str, str]) -> Any:
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    if template:
        used = [(token, inner.token_to_id(token)) for token in template.split() if not token.startswith("$")]
        inner.post_processor = TemplateProcessing(single=template, special_tokens=used)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        model_max_length=limit,
        **special,
        **({"extra_special_tokens": list(more)} if more else {}),
    )


# ── what is embedded ─────────────────────────────────────────────────────────────────────────────────────────────────


def picture(seed: int = 0, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> Image.Image:
    """A picture of coloured patches, another one for each seed; (width, height)."""
    patches = np.random.default_rng(seed).integers(0, 256, (4, 5, len(mode)), np.uint8)
    if mode == "L":
        patches = patches[:, :, 0]
    return Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC)


def sound(seed: int = 0, seconds: float = 0.5, rate: int = RATE) -> Audio:
    """A tone with some noise, another one for each seed."""
    noise = np.random.default_rng(seed).normal(0, 0.05, int(seconds * rate))
    tone = np.sin(2 * np.pi * (200 + 110 * seed) * np.arange(len(noise)) / rate)
    return Audio((0.5 * tone + noise).astype(np.float32), rate)


def film(seed: int = 0, frames: int = 3, size: tuple[int, int] = (40, 30)) -> list[Image.Image]:
    """Frames that differ."""
    return [picture(100 * (seed + 1) + at, size) for at in range(frames)]


def item(*values: str | Image.Image | Audio | list[Image.Image]) -> Item:
    """The values as the parts of one item, encoded without loss."""
    return Item(tuple(map(_part, values)))


def _part(value: str | Image.Image | Audio | list[Image.Image]) -> Part:
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, Audio):
        return Media("audio", (_wav(value),))
    if isinstance(value, list):
        return Media("video", tuple(map(_png, value)))
    return Media("image", (_png(value),))


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _wav(audio: Audio) -> bytes:
    import soundfile

    out = io.BytesIO()
    soundfile.write(out, audio.samples, audio.rate, format="WAV", subtype="FLOAT")
    return out.getvalue()


# ── embedding, comparing ─────────────────────────────────────────────────────────────────────────────────────────────


def prepared(
    model: Encoder, things: Iterable[Any], role: str = "document", instruction: str | None = None
) -> list[Any]:
    """What `embed` takes, made as the engine makes it; a thing is an item, one value, or a tuple of them (mixed).

    Every model's `prepare_many` must return what its `prepare` does.
    """
    batch, modes = [], []
    for thing in things:
        whole = thing if isinstance(thing, Item) else item(*(thing if isinstance(thing, tuple) else (thing,)))
        rendered = model.render(whole, role, instruction)
        batch.append(decode(rendered.parts, model.card.frames, model.card.sample_rate))
        modes.append(rendered.mode)
    ready = [model.prepare(contents, mode) for contents, mode in zip(batch, modes, strict=True)]
    assert comparable(list(prepare_many(model, batch, modes))) == comparable(ready)
    return ready


def comparable(value: Any) -> Any:
    """A prepared value with its arrays, tensors and pictures as bytes."""
    if isinstance(value, Mapping):
        return {name: comparable(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(comparable, value)]
    if isinstance(value, Image.Image):
        return value.mode, value.size, value.tobytes()
    if hasattr(value, "numpy"):
        value = value.numpy()
    return (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def check_without_weights(name: str | ModelCard, things: Sequence[Any], **loading: Any) -> None:
    """A model that is loaded without weights holds none, and prepares what one with weights does."""
    import torch

    whole = get_model(name, loading=Loading(device="cpu", **loading))
    gc.freeze()  # what is there already is not listed below
    try:
        bare = get_model(name, loading=Loading(device="cpu", weights=False, **loading))
        gc.collect()
        held = [each for each in gc.get_objects() if type(each) is torch.nn.Parameter]
    finally:
        gc.unfreeze()
    assert sum(each.nbytes for each in held if not each.is_meta) == 0
    assert vector_space(bare.card) == vector_space(whole.card)
    ready = prepared(bare, things)
    assert comparable(ready) == comparable(prepared(whole, things))
    assert len(whole.embed(ready)) == len(things)
    with pytest.raises((EmbarkError, RuntimeError, NotImplementedError), match=r"without its weights|[Mm]eta"):
        bare.embed(ready)


def vectors(model: Encoder, things: Iterable[Any], role: str = "document", instruction: str | None = None) -> Array:
    """One vector a thing, from one batch."""
    return np.asarray(model.embed(prepared(model, things, role, instruction)))


def one_by_one(model: Encoder, things: Iterable[Any], role: str = "document", instruction: str | None = None) -> Array:
    """One vector a thing, each from a batch of its own."""
    return np.concatenate([vectors(model, [thing], role, instruction) for thing in things])


def same(a: Any, b: Any, tolerance: float = 1e-4) -> bool:
    """Equal shapes, finite and equal numbers up to the tolerance; takes arrays and tensors."""
    left, right = (np.asarray(each.detach().float().cpu() if hasattr(each, "detach") else each) for each in (a, b))
    return left.shape == right.shape and bool(np.isfinite(left).all() and np.abs(left - right).max() <= tolerance)


def saved(folder: Path, *parts: Any) -> Path:
    """The folder, after a model, tokeniser or processor were saved there."""
    for part in parts:
        part.save_pretrained(folder)
    return folder


def eva_weights(width: int = 16, hidden: int = 24, depth: int = 2, patch: int = 4, grid: int = 3) -> dict[str, Any]:
    """Random weights of an EVA-02 image tower, by EVA-CLIP's names."""
    import torch

    shapes = {"cls_token": (1, 1, width), "pos_embed": (1, 1 + grid * grid, width)}
    shapes |= {"patch_embed.proj.weight": (width, 3, patch, patch), "patch_embed.proj.bias": (width,)}
    for at in range(depth):
        layers = {"attn.q_proj": (width, width), "attn.v_proj": (width, width), "attn.proj": (width, width)}
        layers |= {"mlp.w1": (hidden, width), "mlp.w2": (hidden, width), "mlp.w3": (width, hidden)}
        layers |= {"norm1": (width,), "norm2": (width,), "attn.inner_attn_ln": (width,), "mlp.ffn_ln": (hidden,)}
        shapes |= {f"blocks.{at}.{name}.weight": shape for name, shape in layers.items()}
        shapes |= {f"blocks.{at}.{name}.bias": shape[:1] for name, shape in layers.items()}
        shapes[f"blocks.{at}.attn.k_proj.weight"] = (width, width)
    return {
        name: torch.randn(shape) * (1 if "pos" in name or "norm" in name else 0.4) for name, shape in shapes.items()
    }
