"""The UniBench family: 53 benchmarks of vision–language models in 7 types and 18 capabilities, zero-shot or by captions.

From the paper (arXiv 2408.04810, Table 7) and the authors' registry (0.3.1); class names and templates lie in unibench_labels.json.
Every model was shown OpenAI's pixels (mean, standard deviation, centre crop) and is so here where its card answers the style;
protocol `native` shows each model its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from embark.types import Pool, Source, Style, Task

LISTS: Mapping[str, Any] = json.loads(Path(__file__).with_name("unibench_labels.json").read_text(encoding="utf-8"))

# Commits that public pages name; all else is read from the branch main.
REVISIONS = {
    "countbench": "a54b04030680563e97da7cb4fc91173e6a7a9707",
    "imagenetc": "00eaaa80a52b4652bbc040ebdb7ce42fee29e415",
    "vg_attribution": "c93d830289a9eb99634a3f0429647554bd33b4b2",
}

# As the original sets state them; the hub's copies state none.
LICENCES = {
    "caltech101": "CC-BY-4.0", "clevr_count": "CC-BY-4.0", "clevr_distance": "CC-BY-4.0", "eurosat": "MIT", "fashion_mnist": "MIT",
    "kitti_distance": "CC-BY-NC-SA-3.0", "pcam": "CC0-1.0", "pets": "CC-BY-SA-4.0", "pug_imagenet": "CC-BY-NC-4.0", "sugarcrepe": "MIT",
    "imagenet1k": "ImageNet terms (research, non-commercial)", "imagenetc": "CC-BY-4.0 over ImageNet terms",
    "winoground": "META IMAGES RESEARCH LICENSE",
}  # fmt: skip

FILES = ("classnames.txt", "zeroshot_classification_templates.txt")  # beside the shards

MAIN = "The revision is not pinned (the branch main): the data may have changed since the paper."
PINNED = "The revision is the newest that a public page names; whether the paper's numbers come from it is not known."
SIZE = "The number of rows is inferred: the published accuracy times it is a whole number."
UNSEEN = "The number of rows is not published."
OWN = "Class names and templates are read from the dataset's own files, as UniBench does; the row's lists are a copy to check and plan with (protocol 'listed' uses them)."
HUB = "Class names are known only from the dataset's own file; templates are expected to be ImageNet's 80, as the builder falls back to them."
BORROWED = "No templates of its own in the public lists: ImageNet's 80 are expected, the dataset's file decides."
CAPTIONS = "One image against its captions; caption 0 is right and wins ties."


STYLE = Style("UniBench")


def _row(key: str, hub: str, type_: str, capability: str, marks: str, group: str, chance: float, *notes: str, **more: Any) -> Task:  # fmt: skip
    """`marks`: c for curated, o for object-centric."""
    source = Source(
        id=f"haideraltahan/wds_{hub}", revision=REVISIONS.get(key, "main"), files={"test": ("test/*.tar",)}, license=LICENCES.get(key, ""),
        reference="https://arxiv.org/abs/2408.04810",
    )  # fmt: skip
    variants = {"native": {"style": None}, **more.pop("variants", {})}
    return Task(
        name=f"UniBench/{key}", family="UniBench", source=source, style=STYLE, variants=variants, category=type_, modalities=("text", "image"), chance=chance,
        upright=True,  # as its loader has them: the `datasets` library turns pictures when it decodes them
        tags={
            "type": type_.lower(), "capability": capability, "curated": str("c" in marks).lower(), "object_centric": str("o" in marks).lower(),
            "registry_group": group,
        },
        subsets={"default": ("eng-Latn",)}, notes=(*notes, PINNED if key in REVISIONS else MAIN), **more,
    )  # fmt: skip


def _zeroshot(
    key: str, type_: str, capability: str, marks: str, group: str, classes: int, size: int | None, *notes: str,
    hub: str | None = None, names: str | None = None, images: str | None = None, checked: bool = True,
) -> Task:  # fmt: skip
    """`names` are the class names that it takes (its own, if any); `images` the benchmark whose images it shares."""
    names = names or key
    hub = hub or key
    prompts = key if key in LISTS["templates"] else "imagenet1k"
    listed = names in LISTS["classes"]
    templates = tuple(LISTS["templates"][prompts]["templates"])
    remarks = [OWN if listed else HUB]
    if listed and prompts == "imagenet1k" and names not in ("imagenet1k", "imageneta", "imageneto", "imagenetr"):
        remarks.append(BORROWED)
    remarks.append(UNSEEN if size is None else SIZE if checked else "")
    pools = () if not size else (
        Pool("item", size, f"haideraltahan/wds_{images or hub}/-/test/image"),
        Pool("prompt", classes * len(templates), f"haideraltahan/wds_{'imagenet1k' if names == 'imagenet1k' else hub}/-/test/prompt"),
    )  # fmt: skip
    return _row(
        key, hub, type_, capability, marks, group, 1 / classes, *notes, *filter(None, remarks), evaluator="zeroshot",
        reader="webdataset-zeroshot", metric="accuracy", columns={"image": "webp", "label": "cls"}, pools=pools,
        options={"labels": "dataset", "classes": classes, "files": FILES}, rows={"test": size} if size and checked else {},
        labels=tuple(LISTS["classes"][names]["names"]) if listed else (), templates=templates,
        variants={"listed": {"options": {"labels": "row", "classes": classes}}} if listed else {},
    )  # fmt: skip


def _relation(
    key: str, type_: str, capability: str, group: str, captions: int, size: int | None, *notes: str, images: int = 1, checked: bool = True
) -> Task:  # fmt: skip
    data, group_score = f"haideraltahan/wds_{key}/-/test", images > 1
    pools = (Pool("image", size * images, f"{data}/image"), Pool("text", size * captions, f"{data}/caption")) if size else ()  # fmt: skip
    return _row(
        key, key, type_, capability, "", group, 1 / 6 if group_score else 1 / captions, *notes, *(() if size else (UNSEEN,)),
        evaluator="pairs", reader="webdataset-relation", metric="accuracy" if group_score else "text_acc", pools=pools,
        columns={"image": "webp", "captions": "npy"}, options={"images": images, "captions": captions},
        params={"strict": True} if group_score else {}, rows={"test": size} if size and checked else {},
    )  # fmt: skip


OBJECTS, REASONING, RELATION, TEXTURE = "Object Recognition", "Reasoning", "Relation", "Texture"
UNNATURAL, ROBUSTNESS, CORRUPTION = "Non-Natural Images", "Robustness", "Corruption"
TYPES = (OBJECTS, REASONING, RELATION, TEXTURE, UNNATURAL, ROBUSTNESS, CORRUPTION)
STANDARD, SPECIES, SCENES, CHARACTERS = "standard object recognition", "specifies classification", "scene recognition", "character recognition"  # fmt: skip
PLACES, SPACE, DEPTH, POSE, COUNTING = "geographic diversity", "spatial understanding", "depth estimation", "pose detection", "counting"  # fmt: skip
NATURAL, HARD = "natural transformations", "challenging imagenet"
TWINS = "The images are expected to be those of UniBench/{}: the same part of the original set."
SUBSET = "200 classes compete, not ImageNet's 1,000."

ROWS: tuple[Task, ...] = (
    # ── object recognition: capability, marks, registry group, classes, rows ──
    _zeroshot("caltech101", OBJECTS, STANDARD, "o", "vtab", 102, 6084,
              "The hub's class names did not match its labels until June 2025 (issue #20): published scores are wrong (0.167 for a model at 0.948 elsewhere).",
              "The mended copy may hold another number of rows (6,084 before) and another order of classes than the row's list.", checked=False),
    _zeroshot("cars", OBJECTS, STANDARD, "o", "transfer", 196, 8041),
    _zeroshot("cifar10", OBJECTS, STANDARD, "o", "transfer", 10, 10_000),
    _zeroshot("cifar100", OBJECTS, STANDARD, "o", "vtab", 100, 10_000),
    _zeroshot("fgvc_aircraft", OBJECTS, STANDARD, "o", "transfer", 100, 3333),
    _zeroshot("food101", OBJECTS, STANDARD, "o", "transfer", 101, 25_250),
    _zeroshot("gtsrb", OBJECTS, STANDARD, "o", "transfer", 43, 12_630),
    _zeroshot("pug_imagenet", OBJECTS, STANDARD, "o", "transfer", 151, 88_328,
              "88,328 rows fit the published accuracy, the hub's page shows 75k: the number is not checked.", checked=False),
    _zeroshot("stl10", OBJECTS, STANDARD, "o", "transfer", 10, 8000),
    _zeroshot("voc2007", OBJECTS, STANDARD, "o", "transfer", 20, 14_976, "Object crops with one label, not the multi-label set."),
    _zeroshot("imagenet1k", OBJECTS, "imagenet", "o", "imagenet", 1000, 50_000),
    _zeroshot("country211", OBJECTS, PLACES, "", "transfer", 211, 21_100),
    _zeroshot("dollar_street", OBJECTS, PLACES, "o", "transfer", 60, 4470, "Top-1; DataComp reports top-5.",
              "The hub's page shows 4.47k rows.", checked=False),
    _zeroshot("cub", OBJECTS, SPECIES, "", "vtab", 200, 5794),
    _zeroshot("flowers102", OBJECTS, SPECIES, "o", "vtab", 102, 6149, hub="flowers"),
    _zeroshot("inaturalist", OBJECTS, SPECIES, "o", "transfer", 5089, None,
              "Published scores are at chance for every model (0.00025 for EVA01 g/14): the order of the labels is suspect."),
    _zeroshot("pets", OBJECTS, SPECIES, "o", "vtab", 37, 3669),
    _zeroshot("places365", OBJECTS, SCENES, "", "transfer", 365, 36_500),
    _zeroshot("sun397", OBJECTS, SCENES, "", "vtab", 397, 19_850,
              "The paper scored all 108,754 images; the hub's copy was replaced by the first official test part (19,850) after issue #10, so published scores are not comparable.", checked=False),
    _zeroshot("fashion_mnist", OBJECTS, CHARACTERS, "co", "transfer", 10, 10_000),
    _zeroshot("mnist", OBJECTS, CHARACTERS, "co", "transfer", 10, 10_000),
    _zeroshot("renderedsst2", OBJECTS, CHARACTERS, "co", "transfer", 2, 1821),
    _zeroshot("svhn", OBJECTS, CHARACTERS, "o", "vtab", 10, 26_032,
              "Published 0.519 where open_clip's table has 0.589 for the same checkpoint: the hub's class names or templates probably differ from the public lists."),
    # ── reasoning ──
    _zeroshot("clevr_count", REASONING, COUNTING, "c", "vtab", 8, 15_000, hub="clevr_count_all"),
    _relation("countbench", REASONING, COUNTING, "vtab", 10, 513, CAPTIONS,
              "Table 7 lists it as zero-shot, the code runs it as relation.",
              "Ten captions by the registry's class count; the original set counts from two to ten (nine), which would make chance 1/9."),
    _zeroshot("clevr_distance", REASONING, SPACE, "c", "vtab", 6, 15_000, TWINS.format("clevr_count"),
              "The fourth class name is empty.", "Published scores differ from open_clip's table for the same checkpoint.",
              hub="clevr_closest_object_distance", images="clevr_count_all"),
    _zeroshot("dspr_x_position", REASONING, SPACE, "c", "vtab", 32, 73_728, TWINS.format("dspr_orientation"),
              hub="dsprites_label_x_position", images="dsprites_label_orientation"),
    _zeroshot("dspr_y_position", REASONING, SPACE, "c", "transfer", 32, 73_728, TWINS.format("dspr_orientation"),
              "In group vtab from 0.4.0 (issue #11).", hub="dsprites_label_y_position", images="dsprites_label_orientation"),
    _zeroshot("smallnorb_elevation", REASONING, SPACE, "c", "vtab", 9, 12_150, TWINS.format("smallnorb_azimuth"),
              hub="smallnorb_label_elevation", images="smallnorb_label_azimuth"),
    _zeroshot("dmlab", REASONING, DEPTH, "c", "vtab", 6, 22_735, "Class names do not describe the images well (issue #14)."),
    _zeroshot("kitti_distance", REASONING, DEPTH, "", "vtab", 4, 711, hub="kitti_closest_vehicle_distance"),
    _zeroshot("dspr_orientation", REASONING, POSE, "c", "vtab", 40, 73_728,
              "Class names are the bins 0 to 39 in templates that ask for an angle (issue #14).", hub="dsprites_label_orientation"),
    _zeroshot("smallnorb_azimuth", REASONING, POSE, "c", "vtab", 18, 12_150, hub="smallnorb_label_azimuth"),
    # ── relation: captions, rows ──
    _relation("coco_order", RELATION, "relations", "relation", 5, None, CAPTIONS, "Four re-orderings of the true caption (ARO)."),
    _relation("flickr30k_order", RELATION, "relations", "relation", 5, None, CAPTIONS, "Four re-orderings of the true caption (ARO)."),
    _relation("sugarcrepe", RELATION, "relations", "relation", 2, 7511, CAPTIONS, "Seven sub-tasks in one mean.",
              "7,511 rows by a public log of a run over the hub's copy."),
    _relation("vg_attribution", RELATION, "relations", "relation", 2, 28_748, CAPTIONS,
              "28,748 rows as in ARO; the hub's page shows 28.7k.", checked=False),
    _relation("vg_relation", RELATION, "relations", "relation", 2, 23_937, CAPTIONS,
              "23,937 rows as in ARO; the hub's page shows 23.9k.", checked=False),
    _relation("winoground", RELATION, "relations", "relation", 2, None,
              "Two images, two captions; right when all four comparisons are, ties are wrong. Chance is 1/6, not 1/classes.", images=2),
    # ── texture ──
    _zeroshot("dtd", TEXTURE, "texture detection", "c", "vtab", 47, 1880),
    # ── non-natural images ──
    _zeroshot("eurosat", UNNATURAL, "satellite", "", "vtab", 10, 5400),
    _zeroshot("resisc45", UNNATURAL, "satellite", "", "vtab", 45, 6300),
    _zeroshot("imagenet_sketch", UNNATURAL, "rendition", "co", "robustness", 1000, 50_889, names="imagenet1k"),
    _zeroshot("imagenetr", UNNATURAL, "rendition", "co", "robustness", 200, 30_000, SUBSET),
    _zeroshot("pcam", UNNATURAL, "medical", "c", "vtab", 2, 32_768),
    _zeroshot("retinopathy", UNNATURAL, "medical", "", "vtab", 5, 42_670, hub="diabetic_retinopathy"),
    # ── robustness ──
    _zeroshot("imagenet9", ROBUSTNESS, NATURAL, "co", "robustness", 1000, 4050,
              "1,000 classes: the nine super-classes are not merged; an image may have several labels, any of which is right.", names="imagenet1k"),
    _zeroshot("imagenete", ROBUSTNESS, NATURAL, "co", "robustness", 1000, None, names="imagenet1k"),
    _zeroshot("objectnet", ROBUSTNESS, NATURAL, "o", "robustness", 113, 18_574, "The 113 classes that overlap ImageNet."),
    _zeroshot("imageneta", ROBUSTNESS, HARD, "co", "robustness", 200, 7500, SUBSET),
    _zeroshot("imageneto", ROBUSTNESS, HARD, "co", "robustness", 200, 2000, SUBSET,
              "Ordinary zero-shot accuracy; the set's own measure (AUPR of out-of-distribution detection) is not used."),
    _zeroshot("imagenetv2", ROBUSTNESS, HARD, "co", "robustness", 1000, 10_000, names="imagenet1k"),
    # ── corruption ──
    _zeroshot("imagenetc", CORRUPTION, "corruption", "co", "corruption", 1000, 4_690_000,
              "One flat mean over all corruptions and severities, not the mCE of the original paper.",
              "The hub's page shows 4.69M rows. The sizes of its class and template files are those of the row's lists.", names="imagenet1k", checked=False),
)  # fmt: skip


# ── the MNIST prompt study (paper, A.4): which words for a digit, in which prompts ──

STUDY: tuple[tuple[str, str], ...] = (  # from best to worst, as the paper ranks them
    ("word", "specialized-word"), ("word", "basic"), ("word", "specialized-digit"),
    ("digit", "specialized-digit"), ("digit", "basic"), ("digit", "specialized-word"),
)  # fmt: skip


def _mnist(place: int, form: str, prompts: str) -> Task:
    study, group, name = LISTS["mnist_prompts"], "mnist prompt study", f"mnist@{form}-{prompts}"
    labels, templates = tuple(study["labels"][form]), tuple(study["templates"][prompts])
    return _row(
        name, "mnist", OBJECTS, CHARACTERS, "co", group, 1 / 10, f"The paper ranks this variant {place} of 6.", SIZE,
        evaluator="zeroshot", reader="webdataset-zeroshot", metric="accuracy", columns={"image": "webp", "label": "cls"},
        options={"labels": "row", "classes": 10}, rows={"test": 10_000}, labels=labels, templates=templates,
        pools=(
            Pool("item", 10_000, "haideraltahan/wds_mnist/-/test/image"),
            Pool("prompt", 10 * len(templates), f"haideraltahan/wds_mnist/{form}-{prompts}/test/prompt"),
        ),
    )  # fmt: skip


def _sampled(row: Task, size: int) -> Task:
    """The row with so many of its pictures, drawn as UniBench's code draws them since 0.4: shuffled with seed 42, the first ones."""
    [items, prompts] = row.pools
    return replace(
        row, name=f"{row.name}@{size}", options={**row.options, "sample": size}, pools=(Pool("item", size, f"{items.id}@{size}"), prompts),
        variants={
            name: {**changes, "options": {**changes.get("options", row.options), "sample": size}}
            for name, changes in row.variants.items()
        },
        notes=(*row.notes, f"{size:,} of the pictures, as UniBench's `evaluate(max_num_samples={size})` draws them; all shards are fetched."),
    )  # fmt: skip


SAMPLED = tuple(_sampled(row, 5000) for row in ROWS if row.name == "UniBench/imagenetc")
MNIST = tuple(_mnist(place, *variant) for place, variant in enumerate(STUDY, 1))
TASKS: tuple[Task, ...] = ROWS + MNIST + SAMPLED
