"""What the models of the papers saw, held against public code and facts, for each (family, model family) pair.

Media stand as [image], [video], [audio]. The table in docs/models.md has the same lines.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from embark.items import key
from embark.models import MODELS
from embark.models.encoder import render_item
from embark.models.rendering import Unloaded, sketch
from embark.planning import plan, task_demand
from embark.protocol import fingerprint_of, style_used
from embark.tasks import TASKS
from embark.types import Dataset, Item, Media, ModelCard, Part, Qrels, Rendered, Side, Task, Text

VLM2VEC = "TIGER-AI-Lab/VLM2Vec"
LOADERS = f"{VLM2VEC} src/data/eval_dataset"
PROCESSOR = f"{VLM2VEC} src/model/processor.py@1e402c4"
MTEB = "embeddings-benchmark/mteb mteb/models"
CHAT = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
ANSWER = "<|im_end|>\n<|im_start|>assistant\n"
QA = "Represent the given image with the following question:"
VIDEO_QA = (
    "Given a video and a question, select the most accurate answer from the provided candidates. "
    "Return only the exact text of your chosen answer. Question: "
)
V2, GME, LAMRA = "VLM2Vec/VLM2Vec-V2.0", "Alibaba-NLP/gme-Qwen2-VL-7B-Instruct", "code-kunkun/LamRA-Ret"
NEMOTRON, QWEN3, WAVE = "nvidia/omni-embed-nemotron-3b", "Qwen/Qwen3-VL-Embedding-8B", "tsinghua-ee/WAVE-7B"


class Line(NamedTuple):
    """What `model` sees of an item (its media and text) in a role of a task, and the source that says so."""

    task: str
    model: str
    role: str
    media: str
    text: str
    seen: str
    source: str


def clip(name: str) -> tuple[Line, ...]:
    """Two towers: a text as it is, a picture as it is."""
    source = f"{MTEB}, model implementations without prompts; facts/mieb/models.json"
    return (
        Line("Flickr30kT2IRetrieval", name, "query", "", "a dog", "a dog", source),
        Line("Flickr30kT2IRetrieval", name, "document", "image", "", "[image]", source),
    )


LINES = (
    # ── MIEB ──
    *clip("openai/clip-vit-base-patch32"), *clip("google/siglip-base-patch16-224"), *clip("kakaobrain/align-base"),
    *clip("Salesforce/blip-itm-base-coco"), *clip("Salesforce/blip2-itm-vit-g"), *clip("QuanSun/EVA02-CLIP-L-14"),
    *clip("laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K"), *clip("jinaai/jina-clip-v1"),
    *clip("laion/CLIP-ViT-B-32-laion2B-s34B-b79K"),
    *clip("nomic-ai/nomic-embed-vision-v1.5"), *clip("BAAI/bge-visualized-base"), *clip("voyageai/voyage-multimodal-3"),
    Line("Flickr30kT2IRetrieval", "royokong/e5-v", "query", "", "a dog",
         "<|start_header_id|>user<|end_header_id|>\n\na dog\nSummary above sentence in one word: <|eot_id|>"
         "<|start_header_id|>assistant<|end_header_id|>\n\n \n", f"{MTEB}/e5_v.py"),
    Line("Flickr30kT2IRetrieval", "royokong/e5-v", "document", "image", "",
         "<|start_header_id|>user<|end_header_id|>\n\n[image]\nSummary above image in one word: <|eot_id|>"
         "<|start_header_id|>assistant<|end_header_id|>\n\n \n", f"{MTEB}/e5_v.py"),
    Line("Flickr30kT2IRetrieval", GME, "query", "", "a dog",
         "<|im_start|>system\nFind an image that matches the given caption.<|im_end|>\n<|im_start|>user\n"
         f"a dog{ANSWER}<|endoftext|>", f"{MTEB}/gme_v_models.py"),
    Line("Flickr30kT2IRetrieval", GME, "document", "image", "", f"{CHAT}[image]{ANSWER}<|endoftext|>",
         f"{MTEB}/gme_v_models.py"),
    Line("Flickr30kT2IRetrieval", "TIGER-Lab/VLM2Vec-Full", "query", "", "a dog", "a dog", f"{MTEB}/vlm2vec_models.py"),
    Line("Flickr30kT2IRetrieval", "TIGER-Lab/VLM2Vec-Full", "document", "image", "",
         "[image] Represent the given image.", f"{MTEB}/vlm2vec_models.py"),
    # ── UniBench: all models by the class of one wrapper, texts as they are ──
    *(Line("UniBench/imagenet1k", model, "prompt", "", "a photo of a dog.", "a photo of a dog.",
           "facebookresearch/unibench models_zoo/wrappers/clip.py@fa232e3")
      for model in ("openai/clip-vit-base-patch32", "google/siglip-large-patch16-256", "facebook/flava-full",
                    "UCSC-VLAA/ViT-L-14-CLIPA-datacomp1B", "apple/DFN5B-CLIP-ViT-H-14", "unibench/blip_vitB16_14m",
                    "facebook/metaclip-b32-400m", "QuanSun/EVA01-CLIP-g-14", "laion/CoCa-ViT-B-32-laion2B-s13B-b90k",
                    "unibench/negclip_vitB32", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "jienengchen/ViTamin-S",
                    "laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K")),
    # ── MMEB-V3: VLM2Vec. `process_input_text` writes "<image> \n…", and the loaders replace " \n" by "\n". ──
    Line("MMEB/ImageNet-1K", V2, "query", "image", "", "[image] Represent the given image for classification\n",
         f"{LOADERS}/image_cls_dataset.py@1e402c4; facts/mmeb/tasks.json query_template"),
    Line("MMEB/OK-VQA", V2, "query", "image", "What is it?", f"[image]\n{QA} What is it?\n",
         f"{LOADERS}/image_qa_dataset.py@6ac33bb; facts/mmeb/tasks.json query_template; CORRECTIONS.md"),
    Line("MMEB/OK-VQA", "TIGER-Lab/VLM2Vec-Qwen2VL-7B", "query", "image", "What is it?", f"[image]\n{QA} What is it?\n",
         f"{LOADERS}/image_qa_dataset.py@6ac33bb; facts/mmeb/tasks.json query_template; CORRECTIONS.md"),
    Line("MMEB/OK-VQA", V2, "document", "", "a dog", "a dog", f"{LOADERS}/image_qa_dataset.py@6ac33bb"),
    Line("MMEB/CIRR", V2, "query", "image", "make it red",
         "[image]\nGiven an image, find a similar everyday image with the described changes: make it red\n",
         f"{LOADERS}/image_i2i_vg_dataset.py@6ac33bb"),
    Line("MMEB/CIRR", V2, "document", "image", "", "[image] Represent the given image",
         f"{LOADERS}/image_i2i_vg_dataset.py@6ac33bb"),
    Line("MMEB/VisDial", V2, "query", "", "Q: who? A: he",
         "Represent the given dialogue about an image, which is used for image retrieval: Q: who? A: he\n\n",
         f"{LOADERS}/image_t2i_eval.py@1e402c4"),
    Line("MMEB/WebQA", V2, "document", "image", "Rome",
         "[image] Represent the given Wikipedia image with related text information: Rome\n",
         f"{LOADERS}/image_t2i_eval.py@1e402c4"),
    Line("MMEB/MCMR", V2, "document", "image", "title: shoe", "[image]  title: shoe",
         f"{LOADERS}/mcmr_dataset.py@1e402c4"),
    Line("MMEB/NExTQA", V2, "query", "video", "why?", f"[video] {VIDEO_QA} why?",
         f"{LOADERS}/nextqa_dataset.py@1e402c4"),
    Line("MMEB/MSR-VTT", V2, "query", "", "a dog",
         "Find a video that contains the following visual content: a dog", f"{LOADERS}/msrvtt_dataset.py@1e402c4"),
    Line("MMEB/MSR-VTT", V2, "document", "video", "", "[video] Understand the content of the provided video.",
         f"{LOADERS}/msrvtt_dataset.py@1e402c4"),
    Line("MMEB/QVHighlight", V2, "query", "video", "a dog",
         "[video] Find the clip that corresponds to the described scene in the given video: a dog",
         f"{LOADERS}/moment_retrieval_datasets.py@1e402c4"),
    Line("MMEB/ViDoRe_arxivqa", V2, "query", "", "a dog", "Find a document image that matches the given query: a dog",
         f"{LOADERS}/vidore_dataset.py@1286f17"),
    Line("MMEB/ViDoRe_arxivqa", V2, "document", "image", "",
         "[image] Understand the content of the provided document image.", f"{LOADERS}/vidore_dataset.py@1286f17"),
    Line("MMEB/BRIGHT_biology", V2, "query", "", "why?", "why?", f"{LOADERS}/complex_text_retrieve.py@7aae439"),
    # ── MMEB-V3: GME and LamRA get the loaders' text in their own chat ──
    Line("MMEB/OK-VQA", GME, "query", "image", "What is it?",
         f"{CHAT}[image]\n{QA} What is it?\n{ANSWER}<|endoftext|>",
         f"{VLM2VEC} src/model/vlm_backbone/gme/gme_inference.py@6ac33bb; facts/mmeb/models.json"),
    Line("MMEB/MSR-VTT", GME, "document", "video", "",
         f"{CHAT}[video]Understand the content of the provided video. {ANSWER}<|endoftext|>",
         f"{VLM2VEC} src/model/vlm_backbone/gme/gme_inference.py@6ac33bb; facts/mmeb/models.json"),
    Line("MMEB/OK-VQA", LAMRA, "query", "image", "What is it?",
         f"{CHAT}[image]\n{QA} What is it?\n{ANSWER}<emb>.{ANSWER}",
         f"{VLM2VEC} src/model/baseline_backbone/lamra/lamra_inference.py@787a763"),
    Line("MMEB/OK-VQA", LAMRA, "document", "", "a dog", f"{CHAT}a dog\n{ANSWER}<emb>.{ANSWER}",
         f"{VLM2VEC} src/model/baseline_backbone/lamra/lamra_inference.py@787a763"),
    # ── MMEB-V3: Nemotron omni: media, instruction, text; white space becomes blanks ──
    Line("MMEB/OK-VQA", NEMOTRON, "query", "image", "What is it?", f"{CHAT}[image]{QA} What is it?<|im_end|>\n",
         f"{PROCESSOR} NVOmni_process_fn; CORRECTIONS.md"),
    Line("MMEB/ESC-50", NEMOTRON, "query", "audio", "",
         f"{CHAT}[audio]Recognize the environmental sound category of the audio.<|im_end|>\n",
         f"{LOADERS}/audio_cls_dataset.py@1e402c4; {PROCESSOR}"),
    Line("MMEB/Clotho", NEMOTRON, "query", "", "rain",
         f"{CHAT}Retrieve audio clips that best match the given textual description. Query: rain<|im_end|>\n",
         f"{LOADERS}/audio_instruction_utils.py@1e402c4; {PROCESSOR}"),
    Line("MMEB/Clotho", NEMOTRON, "document", "audio", "", f"{CHAT}[audio][AUDIO]<|im_end|>\n",
         f"{LOADERS}/clotho_dataset.py@1e402c4; CORRECTIONS.md"),
    Line("MMEB/SoundDescs", NEMOTRON, "document", "audio", "", f"{CHAT}[audio][AUDIO]<|im_end|>\n",
         f"{LOADERS}/sounddescs_retrieval_dataset.py@1e402c4; CORRECTIONS.md"),
    Line("MMEB/TUTSound", NEMOTRON, "query", "audio", "car",
         f"{CHAT}[audio]Retrieve the sound event categories that best match the given audio. Query: car<|im_end|>\n",
         f"{LOADERS}/tutsound_dataset.py@1e402c4; CORRECTIONS.md"),
    Line("MMEB/AVE", NEMOTRON, "document", "video", "",
         f"{CHAT}[video]Understand the content of the provided video.<|im_end|>\n",
         f"{LOADERS}/ave_retreival_dateset.py@1e402c4"),
    Line("OmniSET/T2V", NEMOTRON, "query", "", "a dog",
         f"{CHAT}Find the video that best matches the given text: a dog<|im_end|>\n",
         f"{LOADERS}/mscoco_cmret.py@1a4dd67; facts/mmeb/omniset.json"),
    Line("OmniSET/T2A", NEMOTRON, "query", "", "a dog",
         f"{CHAT}Find the audio that best matches the given text: a dog<|im_end|>\n",
         f"{LOADERS}/mscoco_cmret.py@1a4dd67; facts/mmeb/omniset.json"),
    Line("OmniSET/I2T", NEMOTRON, "query", "image", "",
         f"{CHAT}[image]Find the text that best matches the given image:<|im_end|>\n",
         f"{LOADERS}/mscoco_cmret.py@1a4dd67; facts/mmeb/omniset.json"),
    Line("OmniSET/I2T", NEMOTRON, "document", "", "a dog", f"{CHAT}a dog<|im_end|>\n",
         "facts/mmeb/omniset.json instructions.target_side_applies_to"),
    Line("OmniSET/I2T", NEMOTRON, "document", "image", "",
         f"{CHAT}[image]Represent the given text, image, video, or audio.<|im_end|>\n",
         "facts/mmeb/omniset.json instructions.target_side"),
    # ── MMEB-V3: WAVE: the loaders' text; the prompt around it is not known (facts/mmeb/models.json: null) ──
    Line("OmniSET/I2T", WAVE, "document", "", "a dog", "a dog<|im_end|>", "facts/mmeb/omniset.json"),
    Line("MMEB/Clotho", WAVE, "query", "", "rain",
         "Retrieve audio clips that best match the given textual description.\nQuery: rain<|im_end|>",
         f"{LOADERS}/audio_instruction_utils.py@1e402c4"),
    Line("MMEB/Clotho", WAVE, "document", "audio", "", "[audio][AUDIO]<|im_end|>",
         f"{LOADERS}/clotho_dataset.py@1e402c4"),
    # ── MMEB-V3: Qwen3-VL-Embedding as its authors run it: the paper's columns have six inference faults ──
    Line("MMEB/OK-VQA", QWEN3, "query", "image", "What is it?",
         f"<|im_start|>system\n{QA}<|im_end|>\n<|im_start|>user\n[image]What is it?{ANSWER}",
         "facts/mmeb/models.json prompt; VLM2Vec docs/mmebv2_reproduction/README.md"),
    Line("MMEB/OK-VQA", QWEN3, "document", "", "a dog",
         f"<|im_start|>system\nRepresent the user's input.<|im_end|>\n<|im_start|>user\na dog{ANSWER}",
         "facts/mmeb/models.json prompt; VLM2Vec docs/mmebv2_reproduction/README.md"),
    # ── ARK: rows without instruction; the paper prints no retrieval prompts, so models see what their authors write ──
    *(Line("ARK/Biology", model, "query", "", "a bird", "a bird", "ARK Tables 6 and 7; the model's hub page")
      for model in ("BAAI/bge-m3", "Qwen/Qwen3-Embedding-4B", "AQ-MedAI/Diver-Retriever-4B",
                    "openai/clip-vit-large-patch14-336", "BAAI/BGE-VL-large", "google/siglip-so400m-patch14-384",
                    "facebook/metaclip-2-worldwide-huge-quickgelu", "BAAI/EVA-CLIP-18B", V2,
                    "Bytedance/Seed1.6-embedding-1215")),
    Line("ARK/Biology", "reasonir/ReasonIR-8B", "query", "", "a bird", "<|embed|>\na bird", "the model's hub page"),
    Line("ARK/Biology", "qihoo360/RzenEmbed", "query", "", "a bird", f"{CHAT}a bird{ANSWER}<|endoftext|>",
         "the model's hub page"),
    Line("ARK/Biology", "OpenSearch-AI/Ops-MM-embedding-v1-2B", "query", "", "a bird",
         f"{CHAT}a bird{ANSWER}<|endoftext|>", "the model's hub page"),
    Line("ARK/Biology", LAMRA, "query", "", "a bird",
         f"{CHAT}a bird\nSummarize above sentence in one word: {ANSWER}", "the model's repository"),
    Line("ARK/Biology", QWEN3, "query", "", "a bird",
         f"<|im_start|>system\nRepresent the user's input.<|im_end|>\n<|im_start|>user\na bird{ANSWER}",
         "the model's hub page"),
)  # fmt: skip


def table() -> str:
    """The lines as the table of docs/models.md: models that see texts and pictures as they are share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for line in LINES:
        item = " + ".join(filter(None, (line.media, "text" * bool(line.text))))
        plain = line.seen in (line.text, f"[{line.media}]")
        seen = "as it is" if plain else f"`{line.seen!r}`".replace("|", "\\|")
        family = TASKS[line.task].family
        everywhere = plain and family != "MMEB-V3"
        place = (family, "all", item) if everywhere else (family, line.task, f"{line.role}: {item}")
        rows.setdefault((*place, seen), []).append(card(line.model).family)
    head = "| benchmark | task | item | models | what they see |\n| --- | --- | --- | --- | --- |\n"
    cells = [(b, t, w, ", ".join(dict.fromkeys(names)), seen) for (b, t, w, seen), names in rows.items()]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in cells)


def test_the_documentation_has_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "models.md"
    assert table() in page.read_text(encoding="utf-8")


def item_of(media: str, text: str) -> Item:
    parts: list[Part] = [Media(kind, (kind.encode(),)) for kind in media.split()]  # type: ignore[arg-type]
    return Item((*parts, *([Text(text)] if text else [])))


def card(name: str) -> ModelCard:
    return MODELS[name]


def planned(task: Task, model: str, role: str, item: Item) -> Rendered:
    """What a run has the model see, through the plan."""
    encoder = Unloaded(card(model))
    sides = {side: Side(("0",), (item,)) for side in {role, "query", "document"}}
    data = Dataset(sides, Qrels(np.array([0]), np.array([0]), np.array([1])))
    needs = plan([task_demand(task, "test", "default", data, encoder)], lambda keys: np.zeros(len(keys), bool)).needs
    wanted = key_of(encoder, task, role, item)
    return next(need for need in needs if need.key == wanted).render(encoder)


def key_of(encoder: Unloaded, task: Task, role: str, item: Item) -> bytes:
    from embark.protocol import vector_space

    rendered = render_item(encoder, item, role, task.instructions.get(role), task.style)
    return key(vector_space(encoder.card), rendered)


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.task}-{line.model}-{line.role}-{line.media or 'text'}")
def test_models_see_what_the_papers_gave_them(line: Line) -> None:
    task = TASKS[line.task]
    item = item_of(line.media, line.text)
    assert line.source
    assert sketch(card(line.model), item, line.role, task.instructions.get(line.role), task.style) == line.seen
    parts = planned(task, line.model, line.role, item).parts
    assert "".join(part.text if isinstance(part, Text) else f"[{part.kind}]" for part in parts) == line.seen


def test_instructions_of_directions_reach_the_omni_embedder() -> None:
    """With equal queries, the diagnostic of OmniSET could not show any effect of the instruction."""
    tasks = [TASKS[f"OmniSET/{name}"] for name in ("T2V", "T2A", "T2I")]
    assert len({planned(task, NEMOTRON, "query", item_of("", "a dog")).parts for task in tasks}) == 3


def test_every_row_of_mmeb_states_both_sides() -> None:
    rows = [task for task in TASKS.values() if task.family == "MMEB-V3"]
    assert all(row.style is not None and {"query", "document"} <= row.style.templates.keys() for row in rows)
    assert {row.style.frames for row in rows if row.style} == {8, None}
    assert all(row.style.frames == row.options.get("frames") for row in rows if row.style)


def test_screens_stand_where_the_text_has_them() -> None:
    """The GUI rows' texts have their pictures inside: src/data/eval_dataset/gui_dataset.py@1e402c4."""
    screens = Item((Text("state 1: "), Media("image", (b"1",)), Text(" then "), Media("image", (b"2",))))
    task = TASKS["MMEB/GAE-guiact-q2t"]
    assert sketch(card(V2), screens, "document", None, task.style) == "state 1: [image] then [image]"


def test_the_omni_embedder_has_the_papers_limits() -> None:
    answer = card(NEMOTRON).styles["MMEB-V3"]
    assert (answer["pixels"][1], answer["context"]) == (64 * 28 * 28, 2048)
    task = TASKS["MMEB/OK-VQA"]
    shown = planned(task, NEMOTRON, "query", item_of("image", "What is it?"))
    native = planned(task.under("native"), NEMOTRON, "query", item_of("image", "What is it?"))
    assert shown.mode.startswith("MMEB-V3 ")
    assert native.mode == ""
    assert native.parts[0] == Text(f"{CHAT}query: What is it?")


def test_films_have_the_rows_frames_and_not_the_cards() -> None:
    task = TASKS["MMEB/K700"]
    assert card(QWEN3).frames == 64
    assert planned(task, QWEN3, "query", item_of("video", "")).frames == 8
    assert planned(task.under("native"), QWEN3, "query", item_of("video", "")).frames is None
    assert planned(task, V2, "query", item_of("video", "")).frames is None  # 8 is its own number
    assert planned(task, QWEN3, "document", item_of("", "running")).frames is None


def test_styles_change_no_key_of_a_model_without_an_answer() -> None:
    """Stored vectors stay valid: a style enters the key only where it changes what a model sees."""
    items = {"MMEB/OK-VQA": ("image", "What?"), "MMEB/K700": ("video", ""), "MMEB/Clotho": ("", "rain")}
    for name, (media, text) in items.items():
        task = TASKS[name]
        for model in ("openai/clip-vit-base-patch32", "qihoo360/RzenEmbed", "BAAI/BGE-VL-MLLM-S1"):
            encoder = Unloaded(card(model))
            item = item_of(media, text)
            assert key_of(encoder, task, "query", item) == key_of(encoder, replace(task, style=None), "query", item)


def test_results_say_which_rendering_was_used() -> None:
    style = TASKS["MMEB/OK-VQA"].style
    assert style_used(card(NEMOTRON), style) == "MMEB-V3: as the paper ran it"
    assert style_used(card("openai/clip-vit-base-patch32"), style) == "MMEB-V3: as its card says"
    assert style_used(card(NEMOTRON), None) == ""


def test_a_style_is_part_of_a_rows_fingerprint() -> None:
    task = TASKS["MMEB/OK-VQA"]
    paper, native = (fingerprint_of(row, "test", "default") for row in (task, task.under("native")))
    assert paper != native


def test_no_card_answers_unibench_for_its_name() -> None:
    """Loaders do, by the checkpoint: a folder without a card gets the same pixels."""
    assert [row.name for row in MODELS.values() if "UniBench" in row.styles] == []
    rows = [task for task in TASKS.values() if task.family == "UniBench"]
    assert all(task.style is not None and task.under("native").style is None for task in rows)


def test_every_pair_of_the_papers_has_a_line() -> None:
    """Every model family that a paper's tables have (by its cards' aliases) is in the table."""
    families = {"MIEB": "MIEB", "UniBench": "UniBench", "MMEB": "MMEB-V3", "ARK": "ARK"}
    wanted = {
        (families[benchmark], row.family)
        for row in MODELS.values()
        for benchmark in row.aliases
        if benchmark in families and row.kind == "embedder" and "text" in row.modalities
    }
    lines = {(TASKS[line.task].family, card(line.model).family) for line in LINES}
    assert sorted(wanted - lines) == []
