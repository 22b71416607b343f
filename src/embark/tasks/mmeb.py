"""The MMEB-V3 family: 190 rankings in 23 sub-categories of six groups, and the 12 directions of OmniSET, a diagnostic beside them.

From the paper (arXiv 2604.23321) and the public loaders of VLM2Vec; the data itself was not seen. A row and its reader share the instructions
so: an instruction that holds for the whole task is in `instructions`, and `style` says how the paper put media, instruction and text of both
sides together, and how many frames of a film it took; protocol `native` shows every model what its own card says. Where each query brings its
own instruction (`options["instruction"] == "row"`), the reader writes it into the query's text in the order of `options["template"]`, and the
model is given none. `options["path"]` is a path of the unpacked data; where the hub has an
archive in its place, `options["archive"]` names it. The class names of four video tasks lie in mmeb.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embark.tasks.omni import DIRECTIONS, instruction
from embark.types import MODALITIES, Modality, Pool, Source, Style, Task

HUB = "VLM2Vec/MMEB-V3"
PINNED = "4a5560b2b64384204b6fea8a82ea986eba51f5aa"  # the commit that a public download script of the authors' names
PAPER = "https://arxiv.org/abs/2604.23321"
LETTERS: dict[str, Modality] = {"T": "text", "I": "image", "V": "video", "A": "audio"}
LABELS: Mapping[str, list[str]] = json.loads(Path(__file__).with_name("mmeb.json").read_text(encoding="utf-8"))[
    "labels"
]
ENGLISH = ("eng-Latn",)
FRENCH = ("fra-Latn",)
FOUR_LANGUAGES = ("eng-Latn", "fra-Latn", "deu-Latn", "spa-Latn")
METRICS = {
    "image": "hit_rate_at_1",
    "video": "hit_rate_at_1",
    "visdoc": "ndcg_at_5",
    "audio": "hit_rate_at_1",
    "text": "ndcg_at_5",
    "agent": "hit_rate_at_1",
}

REVISION = (
    "The dataset's revision is not known, so it is not pinned; its layout was read from public loaders, not seen."
)
LAYOUT = "The dataset's layout was read from public loaders, not seen."
QWEN = "The paper's Qwen3-VL-Embedding columns were made with six inference faults; the authors' later run of the 8B model has 80.1, 67.6 and 82.0 for image, video and visdoc in place of 73.0, 58.5 and 73.1."
OWN_INSTRUCTIONS = "Each row of the data brings its instructions (qry_inst, tgt_inst); these were read from converted samples, and their last full stop or colon may differ."
TRAINING_TARGET = "The candidates' instruction was read from training rows of the same dataset."
FIRST_RIGHT = "The first entry of a row's target list is right, all others are wrong."
FRAMES = "Of the stored frames, 8 are taken evenly, both ends included."
MIDDLE_FRAME = "The paper's GME and LamRA columns saw only the middle frame."
GRADES = "The original code passes the relevant documents through a set before it pairs them with their grades, so its nDCG depends on the hash seed; here grades stay with their documents."
COUNTED_ANYWAY = "A query without a relevant document counts as a miss."

# How the loaders wrote both sides (VLM2Vec, src/data/eval_dataset/*@1e402c4); a field without content goes with its blank.
PLAIN_TEXT = "{text}"
WITH_MEDIA = "{media} {instruction} {text}"
BESIDE_SOUND = "{media} [AUDIO]"


def _style(options: Mapping[str, Any], query: str, document: str, ways: str) -> Style:
    """The style of a row: its query's template is that of `options` where `query` is empty."""
    template = str(options.get("template", ""))
    if options.get("instruction") == "row":  # the reader has written it into the text
        template = PLAIN_TEXT
    for name, field in {
        "{image}": "{media}",
        "{video}": "{media}",
        "{query}": "{text}",
        "{question}{options}": "{text}",
    }.items():
        template = template.replace(name, field)
    if template in ("{instruction} + audio", "{media} {instruction}"):
        template = WITH_MEDIA
    if "{media}" not in template and ways.split()[0] != "T":
        template = f"{{media}} {template}"
    return Style("MMEB-V3", {"query": query or template, "document": document}, options.get("frames"))


def _row(
    name: str,
    group: str,
    subcategory: str,
    reader: str,
    parser: str,
    ways: str,
    *notes: str,
    source: Source,
    ranking: str = "global",
    queries: int | None = None,
    documents: int | None = None,
    shared: Mapping[str, str] | None = None,
    sizes: str = "",
    query: str = "",
    target: str = "",
    versions: str = "V3",
    languages: tuple[str, ...] = ENGLISH,
    options: Mapping[str, Any] | None = None,
    shown: tuple[str, str] = ("", PLAIN_TEXT),
    **more: Any,
) -> Task:
    """`ways` are the modalities of query and target ("I+T T"); `shared` names pools that other rows hold too, by side.

    `shown` are the paper's templates of query (empty: that of the options) and document.
    """
    known = {"query": queries, "document": documents}
    unknown = " and ".join(
        {"query": "queries", "document": "distinct candidates"}[side] for side, count in known.items() if count is None
    )
    return Task(
        name=f"MMEB/{name}", family="MMEB-V3", evaluator="choice" if ranking == "local" else "retrieval", reader=reader, source=source,
        metric=METRICS[group], category=subcategory, modalities=tuple(m for m in MODALITIES if m in {LETTERS[letter] for letter in ways if letter in LETTERS}),
        mixed="+" in ways, subsets={"default": languages}, instructions={role: text for role, text in (("query", query), ("document", target)) if text},
        options={"parser": parser, **(options or {})}, tags={"group": group, "subcategory": subcategory, "parser": parser, "versions": versions, "direction": _letters(ways)},
        pools=tuple(
            Pool(side, count, (shared or {}).get(side, f"{source.id}/{name}/{source.splits[0]}/{side}")) for side, count in known.items() if count is not None
        ),
        style=_style(options or {}, *shown, ways), variants={"native": {"style": None}},
        notes=(*notes, *((f"The number of {unknown} is not known exactly{f' ({sizes})' if sizes else ''} and is left out of the plan.",) if unknown else ()), LAYOUT if source.revision == PINNED else REVISION),
        **more,
    )  # fmt: skip


def _letters(ways: str) -> str:
    """The modalities of query and target in MIEB's letters: "I+T T" is it2t."""
    return ways.lower().replace("+", "").replace(" ", "2")


def _packed(archive: str) -> dict[str, Any]:
    """Options of a dataset that lies in an archive and in no tables of its own."""
    return {"archive": archive, "configs": (), "files": (archive,)}


# ── image: 37, of which 36 choose among up to 1,000 candidates of their own ──


def _image(
    name: str,
    subcategory: str,
    parser: str,
    ways: str,
    query: str,
    target: str,
    *notes: str,
    offered: int = 1000,
    labels: bool = False,
    ood: bool = False,
) -> Task:
    templates = {
        "image_cls": "{image} {instruction} {text}\n",
        "image_i2t": "{image} {instruction} {text}\n",
        "image_t2i": "{instruction} {text}\n",
    }
    target_ways = ways.split()[1]
    captioned = f"{WITH_MEDIA}\n" if "+" in target_ways or parser == "image_t2i" else WITH_MEDIA
    return _row(
        name, "image", subcategory, "mmeb-image", parser, ways, *notes, FIRST_RIGHT, OWN_INSTRUCTIONS, QWEN,
        source=Source("ziyjiang/MMEB_Test_Instruct", "main", config=name, splits=("test",), reference="https://arxiv.org/abs/2410.05160"),
        ranking="local", queries=1000, documents=offered if labels else None, sizes=f"{offered:,} a query", query=query, target=target,
        versions="V1 V2 V3", chance=1 / offered,
        shown=("{instruction} {text}\n\n" if name == "VisDial" else "", PLAIN_TEXT if target_ways == "T" else captioned),
        options={
            "path": f"image-query/{name}", "media": "image_tasks/mmeb_v1.tar.gz", "ood": ood, "positives": "one",
            "template": templates.get(parser, "{image}\n{instruction} {text}\n"),
        },
    )  # fmt: skip


def _labels(name: str, query: str, labels: int, ways: str = "I T", ood: bool = False) -> Task:
    return _image(name, "I-CLS", "image_cls", ways, query, "", offered=labels, labels=True, ood=ood)


def _answers(name: str, ood: bool = False) -> Task:
    return _image(
        name, "I-QA", "image_qa", "I+T T", "Represent the given image with the following question:", "", ood=ood
    )


CROP = "Represent the given cropped image of the object"
PICTURE = "Represent the given image"
WIKIPEDIA = "Represent the given Wikipedia image with related text information:"
CLASSIFY = "Represent the given image for classification"
SCENE = "Identify the scene shown in the image"
OBJECT = "Identify the object shown in the image"
REFERRED = "Select the portion of the image that follows the language expressions"

IMAGE: tuple[Task, ...] = (
    # ── name, instruction, labels ──
    _labels("ImageNet-1K", CLASSIFY, 1000),
    _labels("N24News", "Represent the given news image with the following caption for domain classification:", 24, "I+T T"),
    _labels("HatefulMemes", "Represent the given image for binary classification to determine whether it constitutes hateful speech or not", 2),
    _labels("VOC2007", OBJECT, 20),
    _labels("SUN397", SCENE, 397),
    _labels("Place365", SCENE, 365, ood=True),
    _labels("ImageNet-A", CLASSIFY, 1000, ood=True),
    _labels("ImageNet-R", CLASSIFY, 200, ood=True),
    _labels("ObjectNet", OBJECT, 313, ood=True),
    _labels("Country211", "Identify the country depicted in the image", 211, ood=True),
    _answers("OK-VQA"),
    _answers("A-OKVQA"),
    _answers("DocVQA"),
    _answers("InfographicsVQA"),
    _answers("ChartQA"),
    _answers("Visual7W"),
    _answers("ScienceQA", ood=True),
    _answers("VizWiz", ood=True),
    _answers("GQA", ood=True),
    _answers("TextVQA", ood=True),
    # ── name, sub-category, parser, query and target, their instructions ──
    _image("VisDial", "I-RET", "image_t2i", "T I", "Represent the given dialogue about an image, which is used for image retrieval:", PICTURE,
           "The query's text ends in one more line feed than others.", TRAINING_TARGET),
    _image("CIRR", "I-RET", "image_i2i_vg", "I+T I", "Given an image, find a similar everyday image with the described changes:", PICTURE, TRAINING_TARGET),
    _image("VisualNews_t2i", "I-RET", "image_t2i", "T I", "Retrieve an image of this news caption.", PICTURE, TRAINING_TARGET),
    _image("VisualNews_i2t", "I-RET", "image_i2t", "I T", "Find a caption for the news in the given photo.", ""),
    _image("MSCOCO_t2i", "I-RET", "image_t2i", "T I", "Find me an everyday image that matches the given caption:", PICTURE, TRAINING_TARGET),
    _image("MSCOCO_i2t", "I-RET", "image_i2t", "I T", "Find an image caption describing the given everyday image.", ""),
    _image("NIGHTS", "I-RET", "image_i2i_vg", "I I", "Find a day-to-day image that looks similar to the provided image.", PICTURE, TRAINING_TARGET),
    _image("WebQA", "I-RET", "image_t2i", "T I+T", "Find a Wikipedia image that answers this question:", WIKIPEDIA),
    _image("FashionIQ", "I-RET", "image_i2i_vg", "I+T I", "Find an image to match the fashion image and style note:", PICTURE, TRAINING_TARGET, ood=True),
    _image("Wiki-SS-NQ", "I-RET", "image_t2i", "T I", "Find the document image that can answer the given query:", PICTURE, ood=True),
    _image("OVEN", "I-RET", "image_i2i_vg", "I+T I+T", "Retrieve a Wikipedia image-description pair that provides evidence for the question of this image:", WIKIPEDIA, ood=True),
    _image("EDIS", "I-RET", "image_t2i", "T I+T", "Find a news image that matches the provided caption:", "Represent the given image with related text information:", ood=True),
    _row("MCMR", "image", "I-RET", "mmeb-mcmr", "mcmr", "T I+T",
         "A candidate's text is its title, description, features, price and Date First Available, one \"field: value\" line each, with the first picture of the product.",
         "A query whose products are not among the candidates is a miss, as in the public code.",
         "New in V3 and not among the 111 new tasks that the paper counts; I-RET of VLM2Vec and GME in Table 5 leaves it out.",
         source=Source(HUB, PINNED, splits=("test",), reference="https://arxiv.org/abs/2603.01082"), sizes="a public run speaks of 123k pictures",
         query="Find an image-text pair that matches the given query", shown=("", "{media}  {text}"),
         options={"path": "image-tasks/MCMR", **_packed("image_tasks/MCMR.tar.gz"), "positives": "many_allowed", "unknown": "miss", "template": "{instruction} {query}"}),
    _image("MSCOCO", "I-VG", "image_i2i_vg", "I+T I", "Select the portion of the image that isolates the object labeled as", CROP, "Candidates are cut-out objects."),
    _image("RefCOCO", "I-VG", "image_i2i_vg", "I+T I", f"{REFERRED}.", CROP, "Candidates are cut-out objects.", ood=True),
    _image("RefCOCO-Matching", "I-VG", "image_i2i_vg", "I+T I+T", f"{REFERRED}:", f"{REFERRED}:",
           "Query and candidates are whole pictures with an expression; another expression for the same object is right.", ood=True),
    _image("Visual7W-Pointing", "I-VG", "image_i2i_vg", "I+T I", "Select the portion of the image that answers the question", CROP, "Candidates are cut-out objects.", ood=True),
)  # fmt: skip


# ── video: 18 ──

ARCHIVES = {"V-CLS": "video_cls", "V-QA": "video_qa", "V-RET": "video_ret", "V-MR": "video_mret"}  # of frames
FOLDERS_OF = {  # in them, where a dataset's is not called as the task is
    "SmthSmthV2": ("SSv2",), "EgoSchema": ("egoschema", "EgoSchema"), "Charades-STA": ("Charades-STA", "Charades_STA"),
}  # fmt: skip


def _video(
    name: str, subcategory: str, reader: str, parser: str, hub: str, ways: str, query: str, queries: int, *notes: str,
    path: str, template: str, offered: int | None = None, config: str | None = None, split: str = "test", **more: Any,
) -> Task:  # fmt: skip
    more.setdefault("ranking", "local")
    options = {
        "path": f"video-tasks/data/{path}",
        "media": f"video_tasks/frames/{ARCHIVES[subcategory]}.tar.gz",
        **({"folders": FOLDERS_OF[name]} if name in FOLDERS_OF else {}),
        "frames": 8,
        "template": template,
        **more.pop("options", {}),
    }
    return _row(
        name, "video", subcategory, f"mmeb-video-{reader}" if reader != "moments" else "mmeb-moments", parser, ways, *notes, FRAMES, MIDDLE_FRAME, QWEN,
        source=Source(hub, "main", config=config, splits=(split,), reference="https://arxiv.org/abs/2507.04590"), queries=queries, query=query,
        versions="V2 V3", chance=1 / offered if offered and options["positives"] == "one" else None, options=options,
        sizes=f"{offered:,} a query" if offered else "2 to 5 a query", **more,
    )  # fmt: skip


def _actions(
    name: str,
    hub: str,
    query: str,
    queries: int,
    labels: int,
    *notes: str,
    path: str,
    parser: str = "video_classification",
) -> Task:
    return _video(
        name, "V-CLS", "classification", parser, hub, "V T", query, queries, *notes, path=path, template="{video} {instruction}",
        offered=labels, documents=labels, ranking="local" if parser == "ssv2" else "global", labels=tuple(LABELS.get(name, ())), options={"positives": "one"},
    )  # fmt: skip


def _questions(
    name: str,
    parser: str,
    hub: str,
    queries: int,
    offered: int | None,
    *notes: str,
    path: str,
    config: str | None = None,
    split: str = "test",
) -> Task:
    instruction = "Given a video and a question, select the most accurate answer from the provided candidates. Return only the exact text of your chosen answer. Question: "
    return _video(
        name, "V-QA", "qa", parser, hub, "V+T T", instruction, queries, *notes, path=path, template="{video} {instruction} {question}{options}",
        offered=offered, documents=offered if parser == "activitynetqa" else None, config=config, split=split,
        options={"positives": "one", **({"configs": MVBENCH} if parser == "mvbench" else {})},
    )  # fmt: skip


def _films(
    name: str,
    parser: str,
    hub: str,
    query: str,
    queries: int,
    *notes: str,
    path: str,
    config: str | None = None,
    split: str = "test",
) -> Task:
    return _video(
        name, "V-RET", "retrieval", parser, hub, "T V", query, queries, *notes, path=path, template="{instruction} {text}", offered=queries,
        documents=queries, config=config, split=split, ranking="global", target="Understand the content of the provided video.", options={"positives": "one"},
        shown=("", WITH_MEDIA),
    )  # fmt: skip


def _clips(name: str, hub: str, queries: int, path: str) -> Task:
    return _video(
        name, "V-MR", "moments", "moment_retrieval", hub, "V+T V", "Find the clip that corresponds to the described scene in the given video:", queries,
        "The query is the whole film and a sentence; its candidates are that film's clips, one right and nine wrong.", path=path,
        template="{video} {instruction} {text}", offered=10, target="Understand the content of the provided video.", options={"positives": "one"},
        shown=("", WITH_MEDIA),
    )  # fmt: skip


MVBENCH = (
    "episodic_reasoning", "action_sequence", "action_prediction", "action_antonym", "fine_grained_action", "unexpected_action", "object_existence",
    "object_interaction", "object_shuffle", "moving_direction", "action_localization", "scene_transition", "action_count", "moving_count", "moving_attribute",
    "state_change", "fine_grained_pose", "character_order", "egocentric_navigation", "counterfactual_inference",
)  # fmt: skip

VIDEO: tuple[Task, ...] = (
    # ── name, dataset, instruction, queries, labels ──
    _actions("K700", "VLM2Vec/Kinetics-700", "Recognize the category of the video content.", 1000, 700, path="k700.jsonl"),
    _actions("SmthSmthV2", "VLM2Vec/SmthSmthV2", "What actions or object interactions are being performed by the person in the video?", 1000, 174,
             "Candidates are the row's neg_text, which holds the right one too.", path="ssv2.jsonl", parser="ssv2"),
    _actions("HMDB51", "VLM2Vec/HMDB51", "What actions or objects interactions are the person in the video doing?", 1000, 51, path="hmdb51.jsonl"),
    _actions("UCF101", "VLM2Vec/UCF101", "What activities or sports are being performed by the person in the video?", 1000, 101,
             "Labels are the dataset's class names in CamelCase.", path="ucf101.jsonl"),
    _actions("Breakfast", "VLM2Vec/Breakfast", "Recognize the breakfast type that the person is cooking in the video. ", 433, 10, path="breakfast.jsonl"),
    # ── name, parser, dataset, queries, options ──
    _questions("MVBench", "mvbench", "VLM2Vec/MVBench", 4000, None, "20 subsets of 200 questions, put together.",
               "Options stand in the question and are the candidates, both with their letter; start and end of the film are ignored.", path="mvbench", split="train"),
    _questions("Video-MME", "videomme", "VLM2Vec/Video-MME", 2700, 4, "900 films, three questions each, no subtitles.",
               "Options have their letter in the question, not as candidates.", path="video-mme.jsonl"),
    _questions("NExTQA", "nextqa", "VLM2Vec/NExTQA", 8564, 5, "Options a0 to a4 have letters in the question, not as candidates.", path="nextqa.jsonl", config="MC"),
    _questions("EgoSchema", "egoschema", "VLM2Vec/EgoSchema", 500, 5, "No line feed between question and options; letters are cut from the candidates.",
               path="egoschema.jsonl", config="Subset"),
    _questions("ActivityNetQA", "activitynetqa", "VLM2Vec/ActivityNetQA", 1000, 2, "Yes or no: 1,000 sampled questions that end in \"? (A) yes; (B) no.\"",
               path="activitynetqa.jsonl"),
    # ── name, parser, dataset, instruction, queries ──
    _films("DiDeMo", "didemo", "VLM2Vec/DiDeMo", "Find a video that includes the following described scenes:", 1004, path="didemo.jsonl"),
    _films("MSR-VTT", "msrvtt", "VLM2Vec/MSR-VTT", "Find a video that contains the following visual content:", 1000, path="msr-vtt.jsonl", config="test_1k"),
    _films("MSVD", "msvd", "VLM2Vec/MSVD", "Find the video snippet that corresponds to the given summary:", 670, "Only the first caption of a film is used.", path="msvd.jsonl"),
    _films("VATEX", "vatex", "VLM2Vec/VATEX", "Select a video that fits the description provided:", 4478,
           "Only the first English caption is used; films that are no longer online are left out.", path="vatex.jsonl"),
    _films("YouCook2", "youcook2", "lmms-lab/YouCook2", "Find a video that demonstrates the following action while making a recipe:", 3179,
           "Slightly fewer rows than the official validation list; the dataset moved here from VLM2Vec/YouCook2.", path="youcook2-val.jsonl", split="val"),
    _clips("QVHighlight", "VLM2Vec/QVHighlight", 1083, "qvhighlight.jsonl"),
    _clips("Charades-STA", "VLM2Vec/Charades-STA", 727, "charades_sta.jsonl"),
    _video("MomentSeeker", "V-MR", "moments", "momentseeker", "VLM2Vec/MomentSeeker", "T+I+V V", "", 1602,
           "The query is a text, or a text with a picture or a film, each with its own instruction; several clips may be right, and all listed wrong ones are used.",
           "1,602 queries after repeats were dropped; the variant of 1,800 is MomentSeeker_1k8.", path="momentseeker_1k6.jsonl",
           template="{video} {instruction} {text}", offered=10, target="Understand the content of the provided video clip.", shown=("", WITH_MEDIA),
           options={"positives": "many_allowed", "instruction": "row", "instructions": {
               "text": "Find the clip that corresponds to the given text:", "image": "Select the video clip that aligns with the given text and image:",
               "video": "Find the clip that corresponds to the given sentence and video segment:"}}),
)  # fmt: skip


# ── visual documents: 24 ──


def _pages(
    name: str, subcategory: str, hub: str, path: str, queries: int, *notes: str, documents: int | None = None, positives: str = "many", graded: bool = False,
    languages: tuple[str, ...] = ENGLISH, visrag: bool = False,
) -> Task:  # fmt: skip
    split = "train" if visrag else "test"
    twin = {
        side: f"mteb/{hub.removeprefix('vidore/')}/{config}/test/{column}"
        for side, config, column in (("query", "queries", "text"), ("document", "corpus", "image"))
    }
    return _row(
        name, "visdoc", subcategory, "beir", "visrag" if visrag else "vidore", "T I", *notes, *((GRADES,) if graded else ()), QWEN,
        source=Source(hub, "main", splits=(split,), reference="https://arxiv.org/abs/2507.04590"), queries=queries, documents=documents,
        shared=twin if documents else None, query="Find a document image that matches the given query:", versions="V2 V3", languages=languages,
        target="Understand the content of the provided document image.", rows={f"queries/{split}": queries}, shown=("", WITH_MEDIA),
        columns={"query_id": "query-id", "query_text": "query", "corpus_id": "corpus-id", "corpus_image": "image"},
        options={
            "path": f"visdoc-tasks/data/{path}", "configs": {name: name for name in ("corpus", "queries", "qrels")}, "positives": positives, "graded": graded,
            "template": "{instruction} {query}",
        },
    )  # fmt: skip


def _vidore(
    name: str,
    queries: int,
    documents: int,
    positives: str = "one",
    languages: tuple[str, ...] = ENGLISH,
    suffix: str = "test_beir",
) -> Task:
    return _pages(
        f"ViDoRe_{name}",
        "ViDoRe-V1",
        f"vidore/{name}_{suffix}",
        f"{name}_{suffix}",
        queries,
        documents=documents,
        positives=positives,
        languages=languages,
    )


def _visrag(name: str, queries: int, positives: str = "one") -> Task:
    return _pages(
        f"VisRAG_{name}",
        "VisRAG",
        f"openbmb/VisRAG-Ret-Test-{name}",
        f"VisRAG-Ret-Test-{name}",
        queries,
        positives=positives,
        visrag=True,
    )


FAULTY_PAGES = "The first data was faulty (VLM2Vec issue 167) and was replaced in 2025-11; Table 7 mixes both: VLM2Vec on the repaired data, GME and very likely Qwen3, WAVE and Nemotron on the faulty. Scores differ by up to 60 points."
ALL_LANGUAGES = "All languages together; the English-only variant is configured and not scored. Table 7's header says 7 ViDoRe-V2 tasks and lists 4."
WHOLE_DOCUMENT = "Any page of the right document is relevant."

DOCUMENTS: tuple[Task, ...] = (
    # ── name, queries, pages; the pages are counted in MIEB's copies of the same data ──
    _vidore("arxivqa", 500, 500, suffix="test_subsampled_beir"),
    _vidore("docvqa", 451, 500, "many", suffix="test_subsampled_beir"),
    _vidore("infovqa", 494, 500, "many", suffix="test_subsampled_beir"),
    _vidore("tabfquad", 280, 70, languages=FRENCH, suffix="test_subsampled_beir"),
    _vidore("tatdqa", 1646, 277, "many"),
    _vidore("shiftproject", 100, 1000, languages=FRENCH),
    _vidore("syntheticDocQA_artificial_intelligence", 100, 968),
    _vidore("syntheticDocQA_energy", 100, 977),
    _vidore("syntheticDocQA_government_reports", 100, 972),
    _vidore("syntheticDocQA_healthcare_industry", 100, 965),
    # ── name, sub-category, dataset, folder, queries ──
    _pages("ViDoRe_esg_reports_human_labeled_v2", "ViDoRe-V2", "vidore/esg_reports_human_labeled_v2", "esg_reports_human_labeled_v2", 52, graded=True),
    _pages("ViDoRe_biomedical_lectures_v2_multilingual", "ViDoRe-V2", "vidore/biomedical_lectures_v2", "biomedical_lectures_v2", 640, ALL_LANGUAGES, languages=FOUR_LANGUAGES),
    _pages("ViDoRe_economics_reports_v2_multilingual", "ViDoRe-V2", "vidore/economics_reports_v2", "economics_reports_v2", 232, ALL_LANGUAGES, languages=FOUR_LANGUAGES),
    _pages("ViDoRe_esg_reports_v2_multilingual", "ViDoRe-V2", "vidore/esg_reports_v2", "esg_reports_v2", 228, ALL_LANGUAGES, languages=FOUR_LANGUAGES),
    _visrag("ArxivQA", 816),
    _visrag("ChartQA", 63),
    _visrag("MP-DocVQA", 591),
    _visrag("SlideVQA", 556, "many"),
    _visrag("InfoVQA", 718),
    _visrag("PlotQA", 863),
    _pages("ViDoSeek-page", "VisDoc-OOD", "VLM2Vec/ViDoSeek-page-fixed", "ViDoSeek-page", 1142, FAULTY_PAGES, positives="one"),
    _pages("ViDoSeek-doc", "VisDoc-OOD", "VLM2Vec/ViDoSeek", "ViDoSeek", 1142, WHOLE_DOCUMENT, graded=True),
    _pages("MMLongBench-page", "VisDoc-OOD", "VLM2Vec/MMLongBench-page-fixed", "MMLongBench-page", 838, FAULTY_PAGES),
    _pages("MMLongBench-doc", "VisDoc-OOD", "VLM2Vec/MMLongBench-doc", "MMLongBench-doc", 838, WHOLE_DOCUMENT, graded=True),
)  # fmt: skip


# ── audio: 11 ──


def _audio(
    name: str, subcategory: str, reader: str, parser: str, ways: str, query: str, folder: str, *notes: str, template: str, frames: int | None = None,
    split: str = "test", positives: str = "one", options: Mapping[str, Any] | None = None, **more: Any,
) -> Task:  # fmt: skip
    return _row(
        name, "audio", subcategory, f"mmeb-audio-{reader}", parser, ways, *notes, source=Source(HUB, PINNED, splits=(split,), reference=PAPER), query=query,
        options={"path": f"audio-tasks/{folder}", **_packed(f"audio_tasks/{folder.split('/')[0]}.tar"), "positives": positives, "template": template, **({"frames": frames} if frames else {}), **(options or {})}, **more,
    )  # fmt: skip


def _sounds(name: str, query: str, folder: str, queries: int | None, labels: int, *notes: str, sizes: str = "") -> Task:
    return _audio(
        name, "A-CLS", "classification", "audio_cls", "A T", query, folder, *notes, template="{instruction} + audio", ranking="local", queries=queries,
        documents=labels, sizes=sizes, chance=1 / labels, options={"pool": "ids"},
    )  # fmt: skip


def _events(name: str, parser: str, positives: str, *notes: str) -> Task:
    instruction = "Retrieve the sound event categories that best match the given audio."
    return _audio(
        name, "A-TG", "grounding", parser, "A+T A", instruction, "tutsound/TUT-sound-events-2017-development", *notes,
        "The query is a whole street recording and an event's label, one for each event of the four street_fold*_evaluate.txt files.",
        "Candidates are that recording's segments: every event, and the first 50 windows of 1 s (every 0.5 s) that overlap no event by an IoU of 0.1; events without length get 0.05 s.",
        "The task is to find a segment, but the instruction speaks of categories.", template="{instruction}\nQuery: {text}", ranking="local", queries=659, target=instruction,
        sizes="51 to 106 a query", positives=positives, shown=("", WITH_MEDIA), shared={"query": f"{HUB}/TUTSound/test/query"},
    )  # fmt: skip


PLACEHOLDER = 'The original candidates carry the text "[AUDIO]" beside the sound, as models see it that the paper ran.'

AUDIO: tuple[Task, ...] = (
    # ── name, instruction, folder, queries, labels ──
    _sounds("NSynth", "Recognize the musical instrument category of the audio.", "nsynth-1k", 1000, 10,
            "Labels are rebuilt from the sampled rows by their id; an id that was not seen becomes its digits, a candidate more than the families that occur."),
    _sounds("UrbanSound8K", "Recognize the urban sound category of the audio.", "urbansound8k", None, 10, "csv_files/test.csv.", sizes="paper: 1.7K queries"),
    _sounds("ESC-50", "Recognize the environmental sound category of the audio.", "esc50", 2000, 50, "All five folds."),
    _sounds("SpeechCommands", "Recognize the spoken word category in the audio.", "speechcommand-1k", 1000, 36, "query_eval.parquet."),
    _sounds("CREMA-D", "Recognize the emotion expressed in the speech audio.", "creamD", None, 6, "The whole dataset; its folder is spelled creamD.", sizes="paper: 7.4K queries"),
    # ── name, sub-category, reader, parser, query and target, instruction, folder ──
    _audio("Clotho", "A-RET", "retrieval", "clotho_text_audio", "T A", "Retrieve audio clips that best match the given textual description.", "clotho",
           "Each of the five captions of a clip is a query.", PLACEHOLDER, template="{instruction}\nQuery: {text}", shown=("", BESIDE_SOUND), sizes="paper: 5.2K queries, 1K clips"),
    _audio("SoundDescs", "A-RET", "retrieval", "sounddescs_text_audio", "T A", "Retrieve audio samples that best match the given sound description.", "sounddescs-1k",
           "All clips are ranked, as in the paper (4.9K); the public loader keeps those that are right for some query, about 1K, which lifts scores (VLM2Vec issue 207: 24.8 in place of 17.2).",
           "Every query has the same candidates.", PLACEHOLDER, template="{instruction}\nQuery: {text}", shown=("", BESIDE_SOUND), ranking="local", queries=1000, sizes="paper: 4.9K clips"),
    _audio("AVE", "A-RET", "retrieval", "ave_retrieval", "A V", "Retrieve the video that best matches the given audio event.", "AVE/AVE_Dataset",
           "The query is the sound of the annotated event alone, at 16 kHz; the target is the whole film, silent, in 8 frames.",
           "Candidates are the films of testSet.txt that are there, so a lost file makes the task easier.", template="{instruction} + audio", frames=8, ranking="local",
           queries=402, documents=402, target="Understand the content of the provided video.", shown=("", WITH_MEDIA), chance=1 / 402),
    _audio("SpeechCOCO", "A-RET", "retrieval", "audio_ret_speechcoco", "A I", "Retrieve images that best match the given spoken description.", "speechcoco-1k",
           "The paper says 10K candidates, a comment in the public loader 1,250.", template="{instruction} + audio", split="validation", queries=1000,
           sizes="paper: 10K pictures", target="Understand the content of the provided image.", shown=("", WITH_MEDIA)),
    _events("TUTSound", "tutsound_audio_gnd", "many_allowed",
            "Every segment with that label is right, as in the public code of V3; an earlier state of it took only the exact segment."),
    _events("TUTSound_hard", "tutsound_audio_gnd_hard", "one", "The strict variant: only the exact segment is right."),
)  # fmt: skip


# ── text: 53 ──


def _text(
    name: str, subcategory: str, path: str, tables: Mapping[str, str], *notes: str, queries: int | None = None, documents: int | None = None, corpus: str = "",
    template: str = "{query}", graded: bool | None = False, **more: Any,
) -> Task:  # fmt: skip
    return _row(
        name, "text", subcategory, "mmeb-text", "complex_text_retrieve", "T T", *notes, COUNTED_ANYWAY, source=Source(HUB, PINNED, splits=("test",), reference=PAPER),
        queries=queries, documents=documents, shared={"document": f"{HUB}/{corpus}/test/document"} if corpus else None,
        options={"path": f"text-tasks/{path}", **_packed("text_tasks/text_tasks.tar.part-*"), "tables": tables, "positives": "many", "graded": graded, "template": template, **({"instruction": "row"} if "instruction" in template else {})},
        **more,
    )  # fmt: skip


PLAIN = {"queries": "queries.jsonl", "corpus": "corpus.jsonl", "qrels": "qrels.jsonl"}
ORIGINAL = {**PLAIN, "qrels": "qrels_og/test.jsonl"}
FOLDERS = {"queries": "queries/*.parquet", "corpus": "corpus/*.parquet", "qrels": "qrels/*.parquet"}

EXCLUDED = "BRIGHT's excluded_ids stay in the ranking here, unlike in BRIGHT itself; gold_ids are the relevant documents, and the query is the original one."
TWICE = "BRIGHT_biology and R2MED_Biology are the same data, counted twice."
P_MRR = "nDCG@5 with the original instructions and judgements; FollowIR's own measure, p-MRR over changed instructions, is not used."
MISMATCH = "The query carries the changed instruction while the judgements are those of the original one; InfoSearch's own measures, WISE and SICR, are not used."

# Name → queries, documents, and the corpus where two tasks search the same one.
BRIGHT: dict[str, tuple[int, int, str]] = {
    "aops": (111, 188002, "BRIGHT_aops"), "biology": (103, 57359, ""), "earth_science": (116, 121249, ""), "economics": (103, 50220, ""),
    "leetcode": (142, 413932, ""), "pony": (112, 7894, ""), "psychology": (101, 52835, ""), "robotics": (101, 61961, ""),
    "stackoverflow": (117, 107081, ""), "sustainable_living": (108, 60792, ""), "theoremqa_questions": (194, 188002, "BRIGHT_aops"),
    "theoremqa_theorems": (76, 23839, ""),
}  # fmt: skip
FOLLOWIR = {"core17-instructions": 20, "news21-instructions": 32, "robust04-instructions": 52}
INFOSEARCH = ("Audience-v1", "Clarity-v1", "Format-v1", "Language-v1", "Length-v1", "Source-v1")
LONGEMBED = {
    "2wikimqa": (300, 300), "narrativeqa": (10449, 355), "needle": (400, 800), "passkey": (400, 800), "qmsum": (1527, 197), "summ_screen_fd": (336, 336),
}  # fmt: skip
MULTICONIR = ("Books", "Legal Document", "Medical Case", "Movies", "People")
NANOBEIR = {
    "ArguAna": (50, 3635), "ClimateFEVER": (50, 3408), "DBPedia": (50, 6045), "FEVER": (50, 4996), "FiQA2018": (50, 4598), "HotpotQA": (50, 5090), "MSMARCO": (50, 5043),
    "NFCorpus": (50, 2953), "NQ": (50, 5035), "QuoraRetrieval": (50, 5046), "SCIDOCS": (50, 2210), "SciFact": (50, 2919), "Touche2020": (49, 5745),
}  # fmt: skip
R2MED = {
    "Bioinformatics": (77, 47473), "Biology": (103, 57359), "IIYi-Clinical": (129, 10449), "MedQA-Diag": (118, 56250), "MedXpertQA-Exam": (97, 61379),
    "Medical-Sciences": (88, 34810), "PMC-Clinical": (114, 60406), "PMC-Treatment": (150, 28954),
}  # fmt: skip

TEXT: tuple[Task, ...] = (
    *(_text(f"BRIGHT_{name}", "T-RR", "BRIGHT", {"queries": f"examples/{name}-*.parquet", "corpus": f"documents/{name}-*.parquet"}, EXCLUDED, *((TWICE,) if name == "biology" else ()), queries=queries, documents=documents, corpus=corpus)
      for name, (queries, documents, corpus) in BRIGHT.items()),
    *(_text(f"FollowIR_{name}", "T-IF", f"FollowIR/{name}", ORIGINAL, P_MRR, GRADES, queries=queries, sizes="paper: 98K over the three", graded=True, template="{instruction_og} {query}")
      for name, queries in FOLLOWIR.items()),
    *(_text(f"InfoSearch_{name}", "T-IF", f"InfoSearch/{name}", ORIGINAL, MISMATCH, "Columns other than the instructions were not seen.", graded=None,
            sizes="paper: 1.6K and 6.3K over the six", template="{instruction_changed} {query}")
      for name in INFOSEARCH),
    *(_text(f"LongEmbed_{name}", "T-LR", f"LongEmbed/{name}", PLAIN, "The paper calls it LongEmb.", *(("All context lengths are put together.",) if documents == 800 else ()),
            queries=queries, documents=documents)
      for name, (queries, documents) in LONGEMBED.items()),
    *(_text(f"MultiConIR_{name}", "T-MR", f"MultiConIR_v2/{name}", PLAIN, "The folder is MultiConIR_v2; its columns were not seen.", graded=None, sizes="paper: 9K and 25K over the five")
      for name in MULTICONIR),
    *(_text(f"NanoBEIR_Nano{name}", "T-GR", f"NanoBEIR/Nano{name}", FOLDERS, queries=queries, documents=documents) for name, (queries, documents) in NANOBEIR.items()),
    *(_text(f"R2MED_{name}", "T-RR", f"R2MED/{name}", {**PLAIN, "queries": "query.jsonl"}, "The paper spells it R2MD.", *((TWICE,) if name == "Biology" else ()), queries=queries, documents=documents)
      for name, (queries, documents) in R2MED.items()),
)  # fmt: skip


# ── agent: 35 tools, 8 interfaces, 4 memories ──


def _tool(category: str, name: str, queries: int, tools: int) -> Task:
    return _row(
        f"Tool-{name}", "agent", "Tool", "mmeb-tools", "toolde", "T T",
        f"Queries search the tools of their own category, {category}; a tool's document is its whole documentation as JSON.",
        "A hit is any right tool, though many queries need several.", COUNTED_ANYWAY,
        "The paper calls the set Tool-REX, the data ToolDe; Table 1 prints 4.4K tools, the text says over 43,000, and ToolRet, whose sizes these are, has 43,215.",
        source=Source(HUB, PINNED, splits=("test",), reference=PAPER), queries=queries, documents=tools, shared={"document": f"{HUB}/tools/test/{category}"},
        options={
            "path": "tool-tasks", **_packed("tool_tasks/tool_tasks.tar.gz"),
            "tables": {"queries": f"ToolDe-Queries/{category}/{name}/*.parquet", "corpus": f"ToolDe-Candidates/{category}/*.parquet"},
            "positives": "many", "graded": False, "instruction": "row", "template": "{instruction} {query}",
        },
    )  # fmt: skip


MIND2WEB = {"q2t": (253, 1261)}  # queries and candidates of this direction; each of the others has 321 and 3,207


def _interface(name: str, direction: str) -> Task:
    folder = {"guiact": "GUIAct", "mind2web": "Mind2Web"}[name]
    queries, documents = MIND2WEB.get(direction, (321, 3207)) if name == "mind2web" else (None, None)
    return _row(
        f"GAE-{name}-{direction}", "agent", "GUI", "mmeb-gui", "gui", "I+T I+T",
        f"{direction}: from query to trajectory or screen: q is a text, s a screenshot, t a trajectory of screenshots and actions.",
        "Each row of the queries has one right candidate; instructions are part of its text, and <|image_1|> marks where a screenshot stands.",
        "A direction's rows are in files of its name; one public loader reads all of a folder's files together, which would make the four directions equal.",
        source=Source(
            HUB, PINNED, splits=(direction,), reference="https://arxiv.org/abs/2506.22056",
            files={f"{config}/{direction}": (f"gui_tasks/GAE-{folder}/{config}/{direction}-*.parquet",) for config in ("queries", "corpus")},
        ),
        sizes="paper: 8.2K and 78K over the eight", queries=queries, documents=documents, shown=("{item}", "{item}"),
        columns={
            "query_id": "qry_id", "query_text": "qry_text", "query_images": "qry_image_path", "positive_id": "pos_id", "positive_text": "pos_text",
            "positive_images": "pos_image_path", "document_id": "cand_id", "document_text": "cand_text", "document_images": "cand_image_path",
        },
        options={"path": f"gui_tasks/GAE-{folder}", "configs": ("queries", "corpus"), "images": f"gui_tasks/{folder}.zip", "files": (f"gui_tasks/{folder}.zip",), "positives": "one", "graded": False, "instruction": "row", "template": "{text}"},
    )  # fmt: skip


def _memory(name: str, category: str, queries: int | None, sizes: str, instructions: Mapping[str, str]) -> Task:
    return _row(
        name, "agent", "Memory", "mmeb-memory", "memory_retrieval", "T T",
        "All subsets are put together and search one corpus: that is how the run that reproduced the paper's numbers read them. LMEB itself ranks by subset, and inside lists of candidates where there are any.",
        "A later public loader writes a line feed after the instruction and ranks inside the lists of candidates.", COUNTED_ANYWAY,
        source=Source(HUB, PINNED, splits=("test",), reference="https://huggingface.co/datasets/KaLM-Embedding/LMEB"), queries=queries, sizes=sizes,
        options={
            "path": name, "category": category, **_packed("memory_tasks/memory-tasks.tar"), "positives": "many", "instruction": "row",
            "instructions": dict(instructions), "template": "{instruction} {query}",
        },
    )  # fmt: skip


ANSWER = "Given a query, retrieve documents that answer the query"
SATISFY = "Given a query, retrieve items that satisfy the requirements"

# Category → its tools, and the queries of each task.
TOOLS: dict[str, tuple[int, dict[str, int]]] = {
    "code": (3794, {
        "craft-math-algebra": 280, "craft-tabmwp": 174, "craft-vqa": 200, "gorilla-huggingface": 500, "gorilla-pytorch": 43, "gorilla-tensor": 55, "toolink": 497,
    }),
    "web": (36978, {
        "apibank": 101, "apigen": 1000, "mnms": 33, "reversechain": 200, "rotbench": 550, "t-eval-dialog": 50, "t-eval-step": 50, "taskbench-daily": 40, "toolace": 1000,
        "toolbench": 1100, "toolemu": 38, "tooleyes": 95, "toollens": 314, "ultratool": 500, "autotools-food": 22, "autotools-music": 32, "autotools-weather": 11,
        "restgpt-spotify": 40, "restgpt-tmdb": 54,
    }),
    "customized": (2443, {
        "appbench": 32, "gpt4tools": 32, "gta": 14, "taskbench-huggingface": 23, "taskbench-multimedia": 40, "metatool": 200, "tool-be-honest": 350, "toolalpaca": 94,
        "toolbench-sam": 197,
    }),
}  # fmt: skip

AGENT: tuple[Task, ...] = (
    *(_tool(category, name, queries, tools) for category, (tools, tasks) in TOOLS.items() for name, queries in tasks.items()),
    *(_interface(name, direction) for name in ("guiact", "mind2web") for direction in ("q2s", "q2t", "s2s", "t2s")),
    _memory("KnowMeBench", "Episodic", None, "paper: 2K queries, 27K documents", {
        "adversarial_abstention": ANSWER,
        "information_extraction": ANSWER,
        "mind-body_interaction": "Given a mind-body interaction query, retrieve passages linking physical actions with internal states to answer the query",
        "mnestic_trigger_analysis": "Given a mnestic trigger query, retrieve passages where sensory or associative cues trigger memories, highlighting the cue, recalled event, and context to answer the query",
        "temporal_reasoning": "Given a temporally constrained query, retrieve passages that answer the question",
    }),
    _memory("REALTALK", "Dialogue", 679, "paper: 8.9K documents", {
        "commonsense": ANSWER,
        "multi_hop": "Given a multi-hop question, retrieve relevant passages that answer the query",
        "temporal_reasoning": "Given a temporal query, retrieve relevant passages that answer the query",
    }),
    _memory("PeerQA", "Semantic", 136, "paper: 18.6K documents", {"PeerQA": ANSWER}),
    _memory("DeepPlanning", "Procedural", 120, "paper: 19.8K documents", {"shopping_level1": SATISFY, "shopping_level2": SATISFY, "shopping_level3": SATISFY}),
)  # fmt: skip


# ── OmniSET: one meaning in four modalities ──


def _direction(query: Modality, target: Modality) -> Task:
    return Task(
        name=f"OmniSET/{query[0].upper()}2{target[0].upper()}", family="MMEB-V3", evaluator="choice", reader="omniset", metric="hit_rate_at_1", category="OmniSET", modalities=MODALITIES,
        source=Source(HUB, PINNED, splits=("test",), reference=PAPER), subsets={"default": ENGLISH},
        instructions={"query": instruction(query, target), "document": "Represent the given text, image, video, or audio."},
        options={"parser": "omniset", "query": query, "target": target, "path": "omniset/omniset.jsonl", **_packed("omniset.tar.gz"), "frames": 8, "positives": "one"},
        style=Style("MMEB-V3", {"query": "{media} {instruction}{text}", "document": WITH_MEDIA, "document:text": PLAIN_TEXT}, 8),
        variants={"native": {"style": Style("native", {"document:text": PLAIN_TEXT})}},
        tags={"group": "omniset", "subcategory": "OmniSET", "parser": "omniset", "versions": "V3", "direction": f"{query[0]}2{target[0]}"}, pools=(Pool("query", 101, f"{HUB}/OmniSET/test/{query}"),),
        notes=(
            "A diagnostic beside the 190 tasks. A query ranks one list of all four modalities: its own tuple, which holds the query itself, and 15 to 20 hard wrong ones.",
            "The paper says 100 queries; WAVE's scores and a public run say 101.",
            "Films were made from the picture and speech from the caption, so I-V and T-A are near by construction.",
            "Candidates that are text are the bare caption; the candidates' instruction is for the other three.",
            "Stored loaders write the query's caption into every text candidate, drop films that cannot be read, and join equal file names over all queries.",
            "The number of distinct candidates is not known exactly (paper: 8.2K in all lists) and is left out of the plan.", LAYOUT,
        ),
    )  # fmt: skip


OMNISET: tuple[Task, ...] = tuple(_direction(query, target) for query, target in DIRECTIONS.values())

GROUPS = {"image": IMAGE, "video": VIDEO, "visdoc": DOCUMENTS, "audio": AUDIO, "text": TEXT, "agent": AGENT}
TASKS: tuple[Task, ...] = (*(task for group in GROUPS.values() for task in group), *OMNISET)
