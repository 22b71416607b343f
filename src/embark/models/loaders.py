"""The loader families: how the card of a checkpoint becomes a model, and which loader a checkpoint folder needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from embark import plugins
from embark.catalogue import Registry
from embark.seams import Loader

Recognizes = Callable[[Path, Mapping[str, Any]], bool]

LANES = 4  # batches at once on a CUDA device: some are moved there or decoded, one is computed, one comes back
ENCODERS = ("bert", "roberta", "xlm-roberta", "mpnet", "modernbert", "distilbert")
DECODERS = ("llama", "mistral", "qwen2", "qwen3")
TWO_TOWERS = ("clip", "siglip", "siglip2", "align", "metaclip_2", "altclip", "chinese_clip", "flava")


# ── which folders are whose: by their files, and by config.json ──────────────────────────────────────────────────────


def has_file(name: str) -> Recognizes:
    """Folders with a file that only one family has."""
    return lambda folder, config: (folder / name).is_file()


def has_type(*types: str) -> Recognizes:
    """Folders whose configuration is of one of these model types."""
    return lambda folder, config: config.get("model_type") in types


def has_graphs(folder: Path, config: Mapping[str, Any]) -> bool:
    """Folders with ONNX files, and without weights in another format."""
    graphs = any(any(folder.glob(pattern)) for pattern in ("*model.onnx", "onnx/*model.onnx"))
    return graphs and not any(any(folder.glob(pattern)) for pattern in ("*.safetensors", "*.bin"))


def has_classifier(folder: Path, config: Mapping[str, Any]) -> bool:
    """Folders whose model scores a sequence."""
    return any(name.endswith("ForSequenceClassification") for name in config.get("architectures") or ())


def is_timm(folder: Path, config: Mapping[str, Any]) -> bool:
    """Folders of timm, whose configuration names no type."""
    model_type: str = config.get("model_type", "timm" if "pretrained_cfg" in config else "")
    return model_type == "timm"


# ── the options of cards, and what they say: a card with another option is refused ────────────────────────────────────

TOKENS = {"tokens": "the number of tokens that a text is cut to"}
PROMPTS = {
    "prompts": "the text before an item, by role",
    "template": "the text before an item with an instruction, which stands at {instruction}",
}
STATES = {
    "pooling": "which states become the vector: last, first, mean",
    "normalise": "whether vectors have length one",
}
CAUSAL = {"causal": "whether a token sees only what is before it"}
TOKENIZER = {"tokenizer": "further arguments of the tokenizer"}
FILE = {"file": "the file, of several"}
API = {
    "endpoint": "the address of the provider",
    "dimensions": "the dimension that the provider is asked for",
    "parameters": "further fields of every request",
    "cut": "texts are cut to the card's context before they are sent; set by the loader",
}
PICTURES = {
    "pixels": "(fewest, most) of a picture",
    "frame_pixels": "(fewest, most) of a frame of a film",
    "film_pixels": "most of a whole film",
    "video": "how a film is shown: native, frames, middle",
    "fps": "the rate of frames that the model is told",
    "bare": "whether placeholders have no start and end marks",
    "resize": "the side of the squares that pictures are made first",
}
PROMPTED = {  # cards/mllm.py explains them
    "templates": "the prompt of a text, of media, of both",
    "asking": "the prompts of roles that read instructions",
    "uninstructed": "roles that read no instruction",
    "system": "the system's message where there is no instruction",
    "prefixes": "the text before an item, by role",
    "stop": "whether an instruction ends with a full stop",
    "gap": "whether the blank before an empty text stays",
    "squeeze": "whether white space becomes single blanks",
    "padding": "the side of a batch that is padded",
    "positions": "how tokens are counted: model, flat",
    "crops": "most squares that a picture is cut into",
    "base": "the model that an adapter was trained on, as ID@REVISION",
}
JUDGED = {
    "template": "the prompt of a query and a document",
    "instruction": "the instruction where a task has none",
    "yes": "the token of a document that answers the query",
    "no": "the token of another",
    "end": "tokens after the prompt",
}
TEXT_PART = {"text": "the model of texts, as ID@REVISION"}
WRITTEN = {"words": "the number of tokens of a text that is written"}

SENTENCES = {**TOKENS, **TOKENIZER, **PROMPTS}
TEXT = {**SENTENCES, **STATES, **CAUSAL, "pool_prompt": "whether the prompt is pooled, too"}
ONNX = {**FILE, **STATES, **TOKENS, **PROMPTS}
DUAL = {**TOKENS, "own_code": "whether the checkpoint brings a class of its own"}
OPEN_CLIP = {"architecture": "open_clip's name of the model", "pretrained": "open_clip's name of the weights"}
BLIP = {"tokenizer": "the vocabulary, as ID@REVISION", "untrained_heads": "the seed that heads are drawn by"}
JINA = {"code": "the revision of the code"}
VISTA = {**TEXT_PART, "weights": "the pattern of the names of files of weights"}
TIMM = {"architecture": "timm's name of the model"}
MLLM = {**PROMPTED, **STATES, **CAUSAL, **PICTURES}
JUDGE = {**JUDGED, **PICTURES}
CHAT = {**PICTURES, **WRITTEN, "template": "the prompt of a turn"}


# ── the loaders ──────────────────────────────────────────────────────────────────────────────────────────────────────

MODELS = "embark.models"
plain = partial(Loader, options={})
on_torch = partial(plain, extra="torch", torch=True)
in_lanes = partial(on_torch, lanes=LANES)  # not those that tokenize in `embed`, which is unsafe in threads

# The first that recognizes a folder loads it: those with the surest signs stand before others.
OURS = (
    plain("pocket", f"{MODELS}.pocket:load"),
    plain("handmade", f"{MODELS}.baselines:load_handmade", version=2),  # edges alike on every processor
    plain("random", f"{MODELS}.baselines:load_random"),
    *(
        plain(name, f"{MODELS}.api:load", type="api", options=API)
        for name in ("openai", "voyage", "voyage-multimodal", "cohere", "doubao")
    ),
    on_torch(
        "sentence-transformers", f"{MODELS}.text:load_sentence_transformer", weightless=True,
        recognize=has_file("modules.json"), options=SENTENCES,
    ),
    in_lanes(
        "open_clip", f"{MODELS}.open_clip:load", extra="open_clip", weightless=True,
        recognize=has_file("open_clip_config.json"), options=OPEN_CLIP,
    ),
    plain(
        "onnx", f"{MODELS}.onnx:load", extra="onnx", version=2, recognize=has_graphs, options=ONNX,
    ),
    on_torch(
        "cross-encoder", f"{MODELS}.rerank:load", kind="reranker", version=3,
        recognize=has_classifier, options=TOKENS,
    ),
    in_lanes(  # transformers, pooled
        "text", f"{MODELS}.text:load", version=3, weightless=True,
        recognize=has_type(*ENCODERS, *DECODERS), options=TEXT,
    ),
    in_lanes(  # CLIP, SigLIP, ALIGN… of transformers
        "dual", f"{MODELS}.dual:load", weightless=True,
        recognize=has_type(*TWO_TOWERS), options=DUAL,
    ),
    in_lanes("blip", f"{MODELS}.blip:load", recognize=has_type("blip"), options=BLIP),
    in_lanes("blip2", f"{MODELS}.blip:load_blip2", recognize=has_type("blip-2")),
    on_torch(  # by the checkpoint's own code
        "jina", f"{MODELS}.jina:load", recognize=has_type("jina_clip"), options=JINA,
    ),
    in_lanes(
        "nomic", f"{MODELS}.nomic:load", version=2, recognize=has_type("nomic_bert"), options=TEXT_PART,
    ),
    in_lanes("vista", f"{MODELS}.vista:load", version=2, options=VISTA),
    in_lanes(
        "dino", f"{MODELS}.vision:load_dino", weightless=True,
        recognize=has_type("dinov2", "dinov2_with_registers", "dinov3_vit"),
    ),
    in_lanes(
        "timm", f"{MODELS}.vision:load_timm", extra="timm", version=2, recognize=is_timm, options=TIMM,
    ),
    in_lanes(  # ColPali, ColQwen2
        "late", f"{MODELS}.late:load", type="late", weightless=True, recognize=has_type("colpali", "colqwen2"),
    ),
    on_torch("colbert", f"{MODELS}.late:load_colbert", type="late"),
    on_torch("yes-no", f"{MODELS}.rerank:load_yes_no", kind="reranker", options=JUDGE),
    on_torch("jina-reranker", f"{MODELS}.rerank:load_jina", kind="reranker", version=2, options=JUDGE),
    on_torch("chat", f"{MODELS}.generate:load", kind="generator", options=CHAT),
    on_torch("blip-caption", f"{MODELS}.generate:load_blip", kind="generator", options=WRITTEN),
    plain("openai-chat", f"{MODELS}.chat_api:load", kind="generator", type="api", options=API),
    plain("recorded", f"{MODELS}.recorded:load", kind="generator", options=FILE),  # texts of a file
    plain("recorded-scores", f"{MODELS}.recorded:load_scores", kind="reranker", options=FILE),
    in_lanes(  # LLaVA-NeXT, Qwen-VL
        "mllm", f"{MODELS}.mllm:load", type="mllm", weightless=True,
        recognize=has_type("llava_next", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"), options=MLLM,
    ),
    in_lanes(  # Phi-3.5-vision
        "phi", f"{MODELS}.phi:load", version=2, type="mllm", weightless=True,
        recognize=has_type("phi3_v"), options=MLLM,
    ),
    in_lanes(  # Qwen2.5-Omni
        "omni", f"{MODELS}.omni:load", version=2, type="mllm", weightless=True,
        recognize=has_type("qwen2_5_omni_thinker", "qwen2_5_omni", "nvomniembed"), options=MLLM,
    ),
)  # fmt: skip

LOADERS: Registry[Loader] = plugins.registry("loader", {loader.name: loader for loader in OURS}, "loaders")
