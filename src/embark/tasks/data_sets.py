"""Data sets by the names that papers and model cards use, and the tasks whose pictures or texts come from each.

A task is over a data set if its items do, whichever split: a model that was trained on the training part of MSCOCO has
seen pictures and captions like those of every task below that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache

from embark.types import Task

TASKS_OVER: Mapping[str, tuple[str, ...]] = {  # names and patterns of tasks
    # pictures
    "MSCOCO": (
        "MSCOCO*", "AROCocoOrder", "SugarCrepe", "CVBenchCount", "CVBenchRelation", "VQA2IT2TRetrieval", "XFlickr30kCo*",
        "UniBench/coco_order", "UniBench/sugarcrepe", "MMEB/MSCOCO*", "MMEB/RefCOCO*", "MMEB/VisDial", "MMEB/OK-VQA",
        "MMEB/A-OKVQA", "MMEB/Visual7W*", "MMEB/SpeechCOCO",
    ),
    "Flickr30k": ("Flickr30k*", "XFlickr30kCo*", "AROFlickrOrder", "UniBench/flickr30k_order"),
    "Visual Genome": ("AROVisual*", "UniBench/vg_*", "MMEB/GQA", "MMEB/Visual7W*"),
    "ImageNet-1k": (
        "Imagenet1k*", "ImageNet10*", "ImageNetDog15*", "TinyImageNet*", "STL10*", "UniBench/imagenet1k", "UniBench/stl10",
        "UniBench/imagenetc", "UniBench/imagenet9", "UniBench/imagenete", "MMEB/ImageNet-1K",
    ),
    "ImageNet-21k": ("UniBench/imageneto",),
    "LAION-400M": ("UniBench/countbench",),
    "WIT": ("WITT2IRetrieval",),
    "Google Landmarks v2": ("GLDv2*",),
    "VOC2007": ("VOC2007", "UniBench/voc2007", "MMEB/VOC2007"),
    "SUN397": ("SUN397*", "UniBench/sun397", "MMEB/SUN397"),
    "HatefulMemes": ("HatefulMemes*", "MMEB/HatefulMemes"),
    "N24News": ("MMEB/N24News",),
    "VisualNews": ("VisualNews*", "MMEB/VisualNews*"),
    "Fashion200K": ("Fashion200k*",),
    "FashionIQ": ("FashionIQ*", "MMEB/FashionIQ"),
    "CIRR": ("CIRR*", "MMEB/CIRR"),
    "NIGHTS": ("NIGHTS*", "MMEB/NIGHTS"),
    "EDIS": ("EDIS*", "MMEB/EDIS"),
    "OVEN": ("OVEN*", "MMEB/OVEN"),
    "InfoSeek": ("InfoSeek*",),
    "WebQA": ("WebQA*", "MMEB/WebQA"),
    "OK-VQA": ("MMEB/OK-VQA",),
    "A-OKVQA": ("MMEB/A-OKVQA",),
    "Visual7W": ("MMEB/Visual7W*",),
    "VisDial": ("MMEB/VisDial",),
    # pages
    "DocVQA": ("VidoreDocVQA*", "MMEB/DocVQA", "MMEB/ViDoRe_docvqa", "MMEB/VisRAG_MP-DocVQA"),
    "InfographicsVQA": ("VidoreInfoVQA*", "MMEB/InfographicsVQA", "MMEB/ViDoRe_infovqa", "MMEB/VisRAG_InfoVQA"),
    "ArxivQA": ("VidoreArxivQA*", "MMEB/ViDoRe_arxivqa", "MMEB/VisRAG_ArxivQA"),
    "TAT-DQA": ("VidoreTatdqa*", "MMEB/ViDoRe_tatdqa"),
    "ChartQA": ("MMEB/ChartQA", "MMEB/VisRAG_ChartQA"),
    "PlotQA": ("MMEB/VisRAG_PlotQA",),
    "SlideVQA": ("MMEB/VisRAG_SlideVQA",),
    # texts
    "MS MARCO": ("MMEB/NanoBEIR_NanoMSMARCO",),
    "Natural Questions": ("MMEB/NanoBEIR_NanoNQ", "MMEB/Wiki-SS-NQ"),
    "HotpotQA": ("MMEB/NanoBEIR_NanoHotpotQA",),
    "FEVER": ("MMEB/NanoBEIR_NanoFEVER",),
    "Quora": ("MMEB/NanoBEIR_NanoQuoraRetrieval",),
}  # fmt: skip

COLLECTIONS: Mapping[str, tuple[str, ...]] = {  # data sets that collections of training data are made of
    "ImageNet-21k": ("ImageNet-1k",),
    "Merged-30M": ("ImageNet-21k", "CC12M", "CC3M", "Object365", "MSCOCO", "ADE20K"),
    "Merged-38M": ("ImageNet-21k", "CC12M", "CC3M", "Object365", "MSCOCO", "ADE20K", "OpenImages"),
    "PMD": (
        "MSCOCO", "SBU", "Localized Narratives", "CC3M", "Visual Genome", "WIT", "CC12M", "RedCaps", "YFCC100M",
    ),
    "M-BEIR": (
        "VisualNews", "MSCOCO", "Fashion200K", "WebQA", "EDIS", "NIGHTS", "OVEN", "InfoSeek", "FashionIQ", "CIRR",
    ),
    "MMEB-train": (
        "ImageNet-1k", "N24News", "HatefulMemes", "VOC2007", "SUN397", "OK-VQA", "A-OKVQA", "DocVQA", "InfographicsVQA",
        "ChartQA", "Visual7W", "VisDial", "CIRR", "VisualNews", "MSCOCO", "NIGHTS", "WebQA",
    ),
    "ColPali train set": ("DocVQA", "InfographicsVQA", "TAT-DQA", "ArxivQA"),
    "VisRAG train": ("ArxivQA", "ChartQA", "DocVQA", "InfographicsVQA", "PlotQA", "SlideVQA"),
}  # fmt: skip


def data_sets(task: Task) -> tuple[str, ...]:
    """The data sets that a task is over, by name; its own name and its source's id go first, for data of your own."""
    return (task.name, task.source.id, *_named(task.name))


def shared(trained_on: Iterable[str], task: Task) -> tuple[str, ...]:
    """Those of the data sets that a model was trained on, alone or in a collection, that a task is over."""
    known = expanded(trained_on)
    return tuple(name for name in data_sets(task) if name in known)


def expanded(names: Iterable[str]) -> frozenset[str]:
    """Data sets, with those that collections among them are made of."""
    names = [*names]
    parts = [part for name in names for part in COLLECTIONS.get(name, ())]
    return frozenset(names) | (expanded(parts) if parts else frozenset())


@cache
def _named(task: str) -> tuple[str, ...]:
    return tuple(
        name for name, patterns in TASKS_OVER.items() if any(fnmatchcase(task, pattern) for pattern in patterns)
    )
