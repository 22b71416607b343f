"""Multimodal language models as embedders, with the prompts and options of each.

A card's `options` are one of the styles below. Their keys:

- `templates`: the prompt for an item of text alone, of media alone, or of both (`text`, `media`, `mixed`); `asking`:
  others for roles that read instructions. Fields: {media}, {text}; {asked}: instruction and text; {instruction};
  {system}: the instruction, or `system` where there is none; {prefix}: by role, from `prefixes` ("" is any other role).
- `uninstructed`: roles that never read an instruction; `stop`: an instruction ends with a full stop.
- `pooling`, `normalise`, `padding`: which states become the vector; `positions`: "flat" counts tokens one by one, where
  the published code did so, instead of giving patches their place in the picture.
- `pixels`, `frame_pixels`: (fewest, most) of a picture, of a film's frame; `film_pixels`: most of a whole film.
- `video`: "native", "frames" (as images), "middle" (that frame alone); `fps`: the rate that the model is told.
- `bare`: placeholders without start and end marks; `resize`: pictures are first made squares of that side.
- `crops`: most squares that a picture is cut into. `causal`: whether a token sees only what is before it.
- `base`: what an adapter was trained on, ID@REVISION.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embark.types import Modality, ModelCard

Style = Mapping[str, Any]

HELPFUL = "You are a helpful assistant."
SYSTEM = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n"
DEFAULT_SYSTEM = SYSTEM.replace("{system}", HELPFUL)
ANSWER = "<|im_end|>\n<|im_start|>assistant\n"
CANDIDATES = ("document", "prompt")
PATCH = 28 * 28  # pixels of a merged patch of Qwen2-VL


def _forms(text: str, media: str, mixed: str) -> dict[str, str]:
    return {"text": text, "media": media, "mixed": mixed}


def _style(forms: Mapping[str, str], **others: Any) -> Style:
    return {
        "templates": forms, "system": "", "prefixes": {}, "uninstructed": (), "stop": False, "pooling": "last",
        "normalise": True, "padding": "left", "positions": "model", "pixels": None, "frame_pixels": None,
        "film_pixels": None, "video": "native", "fps": 2.0, "bare": False, "causal": True, **others,
    }  # fmt: skip


def _chat(content: str, end: str = ANSWER, system: str = SYSTEM) -> dict[str, str]:
    """The user's turn, the same for text, media and both."""
    return dict.fromkeys(("text", "media", "mixed"), system + content + end)


CHAT = _style(_chat("{media}{text}"), system=HELPFUL, uninstructed=CANDIDATES)
QWEN3_VL = _style(
    _chat("{media}{text}"),
    system="Represent the user's input.", stop=True, uninstructed=CANDIDATES, padding="right",
    pixels=(4 * 32 * 32, 1800 * 32 * 32), frame_pixels=(4 * 32 * 32, 768 * 32 * 32), film_pixels=10 * 768 * 32 * 32,
)  # fmt: skip
GME = _style(
    _chat("{media}{text}", f"{ANSWER}<|endoftext|>"),
    system=HELPFUL, stop=True, uninstructed=CANDIDATES, positions="flat", pixels=(4 * PATCH, 1280 * PATCH),
    video="middle",
)  # fmt: skip
OPS = _style(
    _chat("{media}{text}", f"{ANSWER}<|endoftext|>"),
    system=HELPFUL, uninstructed=CANDIDATES, pixels=(256 * PATCH, 1280 * PATCH), video="frames",
)  # fmt: skip
RZEN = _style(
    _chat("{media}{asked}", f"{ANSWER}<|endoftext|>", DEFAULT_SYSTEM),
    padding="right", positions="flat", pixels=(256 * PATCH, 1280 * PATCH), frame_pixels=(160 * PATCH, 180 * PATCH),
    video="frames",
)  # fmt: skip
LAMRA = _style(
    # The published prompt goes on with "<emb>." and pools the token before it; what follows cannot change that state.
    _forms(
        f"{DEFAULT_SYSTEM}{{asked}}\nSummarize above sentence in one word: {ANSWER}",
        f"{DEFAULT_SYSTEM}{{media}}\nSummarize above image in one word: {ANSWER}",
        f"{DEFAULT_SYSTEM}{{media}}{{asked}}\nSummarize above image and sentence in one word: {ANSWER}",
    ),
    uninstructed=CANDIDATES, pixels=(256 * PATCH, 1280 * PATCH), video="middle",
)  # fmt: skip
VLM2VEC = _style(
    _forms("{asked}", "{media}", "{media} {asked}"), positions="flat", pixels=(4 * PATCH, 1280 * PATCH), bare=True
)
PHI = _style(
    _forms(
        "{text}", "{media} Represent the given image.",
        "{media} Represent the given image with the following question: {text}",
    ),
    padding="right", video=None, crops=4,
)  # fmt: skip
_LLAMA = "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n \n"
E5_V = _style(
    _forms(
        _LLAMA.replace("{}", "{text}\nSummary above sentence in one word: "),
        _LLAMA.replace("{}", "{media}\nSummary above image in one word: "),
        _LLAMA.replace(
            "{}", '[INST] {media} Modify this image with "{text}" Describe modified image in one word: [/INST]'
        ),
    ),
    normalise=False, video=None,
)  # fmt: skip
BGE_VL = _style(
    _forms("[INST]  {text} \n [/INST]", "[INST]  {media} [/INST]", "[INST]  {text} \n {media} [/INST]"),
    asking=_forms(
        "[INST] \n <instruct> {instruction} <query>  {text} \n [/INST]",
        "[INST] \n <instruct> {instruction} <query>  {media} [/INST]",
        "[INST] \n <instruct> {instruction} <query>  {text} \n {media} [/INST]",
    ),
    uninstructed=CANDIDATES, video=None, resize=512,
)  # fmt: skip
NEMOTRON = _style(
    _chat("{prefix}{text}{media}", "<|im_end|>\n", DEFAULT_SYSTEM),
    prefixes={"query": "query: ", "": "passage: "}, pooling="mean", causal=False,
    frame_pixels=(32 * 14 * 14, 64 * PATCH),
)  # fmt: skip
WAVE = _style(dict.fromkeys(("text", "media", "mixed"), "{media}{asked}<|im_end|>"), pooling="layers")

DEFAULTS: Mapping[str, Style] = {  # of a checkpoint that no card describes, by its config's model_type
    "llava_next": E5_V,
    "qwen2_vl": CHAT,
    "qwen2_5_vl": CHAT,
    "qwen3_vl": QWEN3_VL,
    "qwen2_5_omni_thinker": CHAT,
    "phi3_v": PHI,
}


# ── the checkpoints ──────────────────────────────────────────────────────────────────────────────────────────────────

QWEN2_2B = "Qwen/Qwen2-VL-2B-Instruct@895c3a49bc3fa70a340399125c650a463535e71c"
PHI_35 = "microsoft/Phi-3.5-vision-instruct@12b77fb40b63a2c73c68243d3f767aab688a1b2a"
QWEN2_7B = "Qwen/Qwen2-VL-7B-Instruct@eed13092ef92e448dd6875b2a00151bd3f7db0ac"
VISION: tuple[Modality, ...] = ("text", "image", "video")


def _card(
    name: str, revision: str, family: str, style: Style, dim: int, parameters: int, architecture: str, **others: Any
) -> ModelCard:
    """A row; it takes films if the style has an option for them."""
    return ModelCard(
        name, revision, dim=dim, family=family, options=style, source=name, fusion="native", parameters=parameters,
        normalized=style["normalise"], architecture=architecture, **{
            "loader": "mllm", "modalities": VISION if style["video"] else VISION[:2], "dtype": "bfloat16",
            "instructed": True, "objective": "contrastive", "license": "Apache-2.0", **others,
        },
    )  # fmt: skip


def _qwen3(size: str, revision: str, dim: int, parameters: int) -> ModelCard:
    return _card(
        f"Qwen/Qwen3-VL-Embedding-{size}", revision, "Qwen3-VL-Embedding", QWEN3_VL, dim, parameters, "Qwen3-VL",
        context=8192, frames=64, reference="https://arxiv.org/abs/2601.04720",
        aliases={"MMEB": f"Qwen3-VL-Embedding-{size}", "ARK": f"Qwen3-VL-Embed-{size}"},
        description="Instruction in the system turn, none for candidates; frames are told as two a second (inferred).",
    )  # fmt: skip


def _gme(size: str, revision: str, dim: int, parameters: int, **aliases: str) -> ModelCard:
    name = f"gme-Qwen2-VL-{size}-Instruct"
    return _card(
        f"Alibaba-NLP/{name}", revision, "GME", GME, dim, parameters, "Qwen2-VL", dtype="float16", context=1800,
        reference="https://arxiv.org/abs/2412.16855",
        aliases={"MIEB": f"Alibaba-NLP/{name}", "MMEB-V2": name, **aliases},
        description="Instruction in the system turn as its authors and MIEB do (MMEB put it before the text); of a "
        "film, the middle frame. Token positions are flat, as in the code for transformers 4.51 (inferred).",
    )  # fmt: skip


def _vlm2vec(name: str, revision: str, base: str, dim: int, parameters: int, **others: Any) -> ModelCard:
    return _card(
        name, revision, "VLM2Vec", {**VLM2VEC, "base": base}, dim, parameters, "Qwen2-VL, LoRA", context=32768,
        description="Media, instruction, text, and no chat template; without the marks around media the published code "
        "counts all positions one by one (inferred).", **others,
    )  # fmt: skip


def _phi(name: str, revision: str, parameters: int, **style: str) -> ModelCard:
    return _card(
        f"TIGER-Lab/{name}", revision, "VLM2Vec", {**PHI, **style}, 3072, parameters, "Phi-3.5-vision", loader="phi",
        instructed=False, context=256, data=0.66, reference="https://arxiv.org/abs/2410.05160",
        aliases={"MIEB": f"TIGER-Lab/{name}"},
        description="Prompts and limits as in MIEB's run: texts without a prompt, cut to 256 tokens.",
    )  # fmt: skip


def _lamra(name: str, architecture: str, **aliases: str) -> ModelCard:
    return _card(
        f"code-kunkun/{name}", "main", "LamRA", LAMRA, 3584, 8_290_000_000, architecture,
        reference="https://arxiv.org/abs/2412.01720", aliases={"MMEB-V2": name, **aliases},
        description="Asks for a summary in one word; of a film, the middle frame. Pixel limits as in MMEB's code; the "
        "instruction stands before the text (inferred).",
    )  # fmt: skip


def _ops(size: str, dim: int, parameters: int) -> ModelCard:
    return _card(
        f"OpenSearch-AI/Ops-MM-embedding-v1-{size}", "main", "Ops-MM-embedding", OPS, dim, parameters, "Qwen2-VL",
        context=32768, reference=f"https://huggingface.co/OpenSearch-AI/Ops-MM-embedding-v1-{size}",
        aliases={"ARK": f"Ops-MM-embed-v1-{size}"},
        description="Instruction in the system turn, for queries only (inferred); a film is so many pictures.",
    )  # fmt: skip


def _bge_vl(stage: str, revision: str) -> ModelCard:
    return _card(
        f"BAAI/BGE-VL-MLLM-{stage}", revision, "BGE-VL", BGE_VL, 4096, 7_566_264_320, "LLaVA-NeXT (Mistral)",
        license="MIT", context=32768, data=26, reference="https://arxiv.org/abs/2412.14475",
        description="Queries carry their task between marks, candidates nothing; pictures are made squares first.",
    )  # fmt: skip


CARDS = (
    _card(
        "royokong/e5-v", "0c1f22679417b3ae925d779442221c40cd1861ab", "E5-V", E5_V, 4096, 8_355_276_800,
        "LLaVA-NeXT (Llama 3)", instructed=False, dtype="float16", context=8192, data=0.27, license="not stated",
        reference="https://arxiv.org/abs/2407.12580", aliases={"MIEB": "royokong/e5-v"},
        description="Trained on text pairs alone; asks for a summary in one word.",
    ),
    _bge_vl("S1", "455ac20c111813fbb263dd0f22d47d173a971582"),
    _bge_vl("S2", "20137e245f277e7eca277bbb436ce7d632a16406"),
    _gme("2B", "ce765ae71b8cdb208203cd8fb64a170b1b84293a", 1536, 2_208_985_600),
    _gme("7B", "477027a6480f8630363be77751f169cc3434b673", 3584, 7_746_378_240, MMEB="GME-7B"),
    _qwen3("2B", "9f2f7e710d6d81056aa5c0a4f04764fec6bb7bda", 2048, 2_127_532_032),
    _qwen3("8B", "2c4565515e0f265c6511776e7193b22c0968ddc7", 4096, 8_144_793_840),
    _vlm2vec(
        "VLM2Vec/VLM2Vec-V2.0", "e39ff079b8275ef876d3656da8c0bddbff3c4dde", QWEN2_2B, 1536, 2_208_985_600,
        reference="https://arxiv.org/abs/2507.04590",
        aliases={"MMEB": "VLM2Vec-V2.0-2B", "MMEB-V2": "VLM2Vec-V2.0-Qwen2VL-2B", "ARK": "VLM2VecV2-2B"},
    ),
    _vlm2vec(
        "TIGER-Lab/VLM2Vec-Qwen2VL-7B", "main", QWEN2_7B, 3584, 8_290_000_000,
        reference="https://arxiv.org/abs/2410.05160",
        aliases={"MMEB": "VLM2Vec-Qwen2VL-7B", "MMEB-V2": "VLM2Vec-V1-Qwen2VL-7B"},
    ),
    _vlm2vec(
        "TIGER-Lab/VLM2Vec-Qwen2VL-2B", "main", QWEN2_2B, 1536, 2_208_985_600,
        reference="https://arxiv.org/abs/2410.05160", aliases={"MMEB-V2": "VLM2Vec-V1-Qwen2VL-2B"},
    ),
    _phi("VLM2Vec-Full", "e9afa98002097ac2471827ba23ea1f2ddd229480", 4_146_621_440),
    _phi("VLM2Vec-LoRA", "7403b6327958071c1e33c822c7453adadccc7298", 4_161_891_328, base=PHI_35),
    _lamra("LamRA-Ret", "Qwen2-VL", ARK="LamRA-Ret-7B"),
    _lamra("LamRA-Ret-Qwen2.5VL-7b", "Qwen2.5-VL"),
    _card(
        "qihoo360/RzenEmbed", "main", "RzenEmbed", RZEN, 3584, 8_290_000_000, "Qwen2-VL", context=2000,
        reference="https://huggingface.co/qihoo360/RzenEmbed", aliases={"ARK": "RzenEmbed-7B"},
        description="Instruction before the text, on both sides; a film is so many small pictures. Token positions are "
        "flat, as in its own code (inferred).",
    ),
    _ops("2B", 1536, 2_208_985_600),
    _ops("7B", 3584, 8_290_000_000),
    _card(
        "nvidia/omni-embed-nemotron-3b", "main", "Omni-Embed-Nemotron", NEMOTRON, 2048, 4_700_000_000,
        "Qwen2.5-Omni thinker, bidirectional", loader="omni", modalities=(*VISION, "audio"), instructed=False,
        context=32768, license="NVIDIA OneWay Noncommercial", reference="https://arxiv.org/abs/2510.03458",
        aliases={"MMEB": "Omni-Embed-Nemotron-3B"},
        description="Queries and passages have their prefix; sound and picture of a film stay apart. The order of text "
        "and media in the prompt is inferred.",
    ),
    _card(
        "tsinghua-ee/WAVE-7B", "main", "WAVE", WAVE, 3584, 7_000_000_000, "Qwen2.5-Omni thinker, all-layer fusion",
        loader="omni", modalities=(*VISION, "audio"), context=32768, reference="https://arxiv.org/abs/2509.21990",
        aliases={"MMEB": "WAVE-7B"},
        description="Media pass a head over all layers, texts do not. Sounds are heard by the speech encoder alone, "
        "which is the default of MMEB-V3's script; the published model has a second one (BEATs).",
    ),
)  # fmt: skip
