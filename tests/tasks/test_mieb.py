"""MIEB's rows hold what the benchmark's facts say, and share the items that the benchmark shares."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from embark import evaluators
from embark.readers import READERS
from embark.tasks import TASKS, get_benchmark, get_tasks, mieb
from embark.types import Pool, Task
from matrix import every

FACTS = json.loads((Path(__file__).parents[1] / "samples" / "facts" / "mieb.json").read_text(encoding="utf-8"))
ROWS = every(mieb.TASKS)

TYPES = {
    "ImageClassification": 22,
    "ImageClustering": 5,
    "ZeroShotClassification": 23,
    "VisionCentricQA": 6,
    "Compositionality": 7,
    "VisualSTS(eng)": 7,
    "Any2AnyRetrieval": 45,
    "DocumentUnderstanding": 10,
    "Any2AnyMultilingualRetrieval": 3,
    "VisualSTS(multi)": 2,
}
LANGUAGES = [
    "ara", "ben", "bul", "ces", "dan", "deu", "ell", "eng", "est", "fas", "fil", "fin", "fra", "heb",
    "hin", "hrv", "hun", "ind", "ita", "jpn", "kor", "mri", "nld", "nor", "pol", "por", "quz", "ron",
    "rus", "spa", "swa", "swe", "tel", "tha", "tur", "ukr", "vie", "zho",
]  # fmt: skip
SIDES = {
    "retrieval": "query document", "choice": "query document", "zeroshot": "item prompt", "probe": "train test",
    "multilabel": "train test", "clustering": "item", "pairs": "image text", "sts": "left right",
}  # fmt: skip
KINDS = {
    "linear_probe": "probe", "multilabel_probe": "multilabel", "zero_shot": "zeroshot", "multi_choice": "choice",
    "image_text_pair": "pairs", "visual_sts": "sts",
}  # fmt: skip

CORRECTED = {  # where mteb counts rows and not ids, one document too many, or not the paper's corpus
    "ImageCoDeT2IRetrieval": {"query": 2_302, "document": 10_390},
    **{f"HatefulMemes{way}Retrieval": {"query": 1_000, "document": 9_000} for way in ("I2T", "T2I")},
    **{f"Memotion{way}Retrieval": {"query": 697, "document": 6_289} for way in ("I2T", "T2I")},
}


def fact(task: Task) -> Any:
    return next(row for row in FACTS["tasks"] if row["name"] == task.name)


def row(name: str) -> Task:
    return TASKS[name]


def pool(name: str, side: str) -> Pool:
    """The only pool of a side."""
    [found] = [pool for pool in row(name).pools if pool.side == side]
    return found


# ── the boards ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_counts() -> None:
    assert len(mieb.TASKS) == 132
    sizes = {
        name: len(get_benchmark(name).tasks) for name in ("MIEB(Multilingual)", "MIEB(eng)", "MIEB(lite)", "MIEB(Img)")
    }
    assert list(sizes.values()) == [130, 125, 51, 49]
    assert {get_benchmark(name).rule for name in sizes} == {"mean-of-types"}
    assert Counter(row(name).tags["type"] for name in get_benchmark("MIEB(Multilingual)").tasks) == TYPES
    english = Counter(row(name).tags["type"] for name in get_benchmark("MIEB(eng)").tasks)
    assert english == {
        kind: count for kind, count in TYPES.items() if "ultilingual" not in kind and "multi" not in kind
    }


@pytest.mark.parametrize("name", ["MIEB(Multilingual)", "MIEB(eng)", "MIEB(lite)", "MIEB(Img)"])
def test_boards_list_the_tasks_of_the_facts(name: str) -> None:
    stated = FACTS["benchmarks"][name]
    assert set(get_benchmark(name).tasks) == set(stated["tasks"])
    assert Counter(row(task).tags["type"] for task in get_benchmark(name).tasks) == stated["by_type"]


# ── the rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@ROWS
def test_rows_are_complete(task: Task) -> None:
    assert task.evaluator in evaluators.EVALUATORS
    assert task.reader in READERS
    assert len(task.source.revision) == 40
    assert task.source.license
    assert task.source.reference.startswith("http")
    assert {pool.side for pool in task.pools} == set(SIDES[task.evaluator].split())
    assert task.tags["type"] in TYPES
    if task.evaluator == "zeroshot":
        assert bool(task.labels) != (task.options.get("labels") == "class_names")
        assert pool(task.name, "prompt").items == (len(task.labels) or round(1 / (task.chance or 1)))


@ROWS
def test_rows_agree_with_the_facts(task: Task) -> None:
    stated = fact(task)
    assert (task.source.id, task.source.revision) == (stated["dataset"]["path"], stated["dataset"]["revision"])
    assert list(task.source.splits) == stated["eval_splits"]
    assert task.source.license == stated["license"]
    assert task.evaluator == KINDS.get(stated["evaluator"], stated["evaluator"])
    assert (task.metric, task.category, task.tags["type"]) == (
        stated["main_score"],
        stated["paper_category"],
        stated["mteb_type"],
    )
    assert {subset: list(languages) for subset, languages in task.subsets.items()} == stated["subsets"]
    assert set(task.modalities) == set(stated["modalities"])
    assert task.instructions.get("query") == stated.get("query_instruction")
    assert [task.tags.get("domain", ""), task.tags.get("subtype", "")] == [
        ", ".join(stated[name]) for name in ("domains", "task_subtypes")
    ]


@ROWS
def test_sizes_agree_with_the_facts(task: Task) -> None:
    stated = fact(task).get("samples", {})
    if task.name in CORRECTED:
        assert {pool.side: pool.items for pool in task.pools} == CORRECTED[task.name]
    elif task.evaluator in ("retrieval", "choice"):
        assert sum(pool.items for pool in task.pools) == stated["test"]
    elif task.evaluator in ("probe", "multilabel", "clustering", "zeroshot"):
        assert task.rows == {split: stated[split] for split in task.rows}
    elif task.evaluator == "sts" and stated:
        for split in stated:
            assert sum(rows for key, rows in task.rows.items() if key.endswith(split)) == stated[split]


@every(task for task in mieb.TASKS if task.evaluator == "zeroshot")
def test_prompts_agree_with_the_facts(task: Task) -> None:
    stated = fact(task)["zero_shot"]
    assert task.templates == (stated["template"].replace("{label}", "{}"),)
    end = "\n" if stated.get("newline_after_label") else ""
    assert list(task.labels) == [label + end for label in stated.get("labels", [])]
    assert task.options.get("column") == stated.get("class_names_column")


def test_rows_that_read_class_names_know_them_where_a_public_list_has_their_order() -> None:
    reading = [task for task in mieb.TASKS if task.options.get("labels") == "class_names"]
    assert len(reading) == 14
    unknown = {task.name for task in reading if "names" not in task.options}
    assert unknown == {f"{name}ZeroShot" for name in ("Birdsnap", "Caltech101", "OxfordPets", "UCF101")}
    for task in reading:
        assert len(task.options.get("names", ())) in (0, round(1 / (task.chance or 1)))
    assert row("FGVCAircraftZeroShot").options["names"][:2] == ["707-320", "727-200"]


def test_labels_are_all_used() -> None:
    assert set(mieb.LABELS) == {task.name for task in mieb.TASKS if task.labels}
    assert {name: len(labels) for name, labels in mieb.LABELS.items() if len(labels) > 40} == {
        "Country211ZeroShot": 211,
        "GTSRBZeroShot": 43,
        "Imagenet1kZeroShot": 1000,
    }


@every(LANGUAGES)
def test_languages_are_reached(language: str) -> None:
    found = get_tasks(families="MIEB", languages=language)
    assert found
    [full] = {code for task in found for code in task.languages if code.startswith(language)}
    assert get_tasks(families="MIEB", languages=full) == found


def test_there_are_38_languages() -> None:
    every = {code.split("-")[0] for task in mieb.TASKS for code in task.languages}
    assert every - set(LANGUAGES) == {"cmn", "nno", "nob"}  # other names of Chinese and Norwegian
    assert len(LANGUAGES) == 38


# ── the paper against the code ───────────────────────────────────────────────────────────────────────────────────────


WITH_DOCUMENT_TEXTS = {
    "BLINKIT2TMultiChoice", "BLINKIT2TRetrieval", "CVBenchCount", "CVBenchDepth", "CVBenchDistance", "CVBenchRelation",
    "EDIST2ITRetrieval", "Fashion200kI2TRetrieval", "Flickr30kI2TRetrieval", "GLDv2I2TRetrieval",
    "HatefulMemesI2TRetrieval", "InfoSeekIT2ITRetrieval", "InfoSeekIT2TRetrieval", "MSCOCOI2TRetrieval",
    "MemotionI2TRetrieval", "OVENIT2ITRetrieval", "OVENIT2TRetrieval", "SciMMIRI2TRetrieval", "VQA2IT2TRetrieval",
    "VisualNewsI2TRetrieval", "VizWizIT2TRetrieval", "WebQAT2ITRetrieval", "WebQAT2TRetrieval",
}  # fmt: skip


def test_mteb2_strips_the_texts_of_documents_and_the_paper_leaves_out_their_titles() -> None:
    stripped = {task.name for task in mieb.TASKS if task.under("mteb2").options.get("strip") == ["document"]}
    assert stripped == WITH_DOCUMENT_TEXTS
    assert not any("strip" in task.options for task in mieb.TASKS)
    untitled = {task.name for task in mieb.TASKS if task.options.get("titles") is False}
    assert untitled == {name for name in WITH_DOCUMENT_TEXTS if row(name).reader == "beir"}
    assert not any("titles" in task.under("mteb2").options for task in mieb.TASKS)
    assert row("OVENIT2TRetrieval").under("mteb2").options["unknown"] == "miss"


def test_variants() -> None:
    varied = {task.name for task in mieb.TASKS if "mteb2" in task.variants}
    assert varied == {
        "VOC2007", "STL10", "HatefulMemesI2TRetrieval", "HatefulMemesT2IRetrieval",
        *(f"{name}I2IRetrieval" for name in ("CUB200", "MET", "RP2k", "SOP", "StanfordCars")),
        *(f"R{city}{level}I2IRetrieval" for city in ("Oxford", "Paris") for level in ("Easy", "Medium", "Hard")),
        "SketchyI2IRetrieval", "ImageCoDeT2IRetrieval", *WITH_DOCUMENT_TEXTS,
        *(f"{name}Clustering" for name in ("CIFAR10", "CIFAR100", "ImageNetDog15", "ImageNet10", "TinyImageNet")),
    }  # fmt: skip
    assert row("CIFAR10Clustering").under("mteb2").params == {"batch_size": 500, "seed": 42, "runs": 1}
    assert {
        name: (row("STL10").params[name], row("STL10").under("mteb2").params[name]) for name in ("shots", "runs")
    } == {
        "shots": (16, 8),
        "runs": (5, 10),
    }
    assert row("VOC2007").params["classifier"] == "logistic"
    assert row("VOC2007").under("mteb2").params["classifier"] == "knn"
    assert row("RParisHardI2IRetrieval").params == {"judged_only": True}
    assert row("RParisHardI2IRetrieval").under("mteb2").params == {}
    assert row("SOPI2IRetrieval").params == {"skip_first": "hit_rate"}
    assert row("SOPI2IRetrieval").under("mteb2").params == {"skip_first": True}
    assert row("DTD").under("mteb2") is row("DTD")
    sound = {task.name for task in mieb.TASKS if task.under("sound").params.get("probe") == "sound"}
    assert sound == {task.name for task in mieb.TASKS if task.evaluator == "probe"}


# ── items that tasks share ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "places",
    [
        [("CIFAR10", "test"), ("CIFAR10ZeroShot", "item"), ("CIFAR10Clustering", "item")],
        [("UCF101", "test"), ("UCF101ZeroShot", "item")],
        [("FGVCAircraft", "test"), ("FGVCAircraftZeroShot", "item")],
        [("MSCOCOI2TRetrieval", "query"), ("MSCOCOT2IRetrieval", "document")],
        [("MSCOCOI2TRetrieval", "document"), ("MSCOCOT2IRetrieval", "query")],
        [("SciMMIRI2TRetrieval", "query"), ("SciMMIRT2IRetrieval", "document")],
        [("CUB200I2IRetrieval", "query"), ("CUB200I2IRetrieval", "document")],
        [("BLINKIT2IMultiChoice", "query"), ("BLINKIT2IRetrieval", "query")],
        [("ROxfordEasyI2IRetrieval", "document"), ("ROxfordHardI2IRetrieval", "document")],
        [("ImageCoDe", "image"), ("ImageCoDeT2IRetrieval", "document")],
        [("ImageCoDe", "text"), ("ImageCoDeT2IRetrieval", "query")],
    ],
)
def test_twins_share_their_items(places: list[tuple[str, str]]) -> None:
    assert len({(pool(*place).id, pool(*place).items) for place in places}) == 1


def test_queries_are_a_part_of_the_documents() -> None:
    for name, parts in {
        "METI2IRetrieval": [87942, 172713],
        "HatefulMemesI2TRetrieval": [1000, 9000],
        "VisualNewsT2IRetrieval": [20000, 522246],
    }.items():
        assert [pool.items for pool in row(name).pools if pool.side == "document"] == parts
    met = row("METI2IRetrieval").pools
    assert met[0].id == met[1].id != met[2].id


def test_parts_of_sts_share_with_their_whole() -> None:
    ids = {name: {pool.id for pool in row(name).pools} for name in TASKS if "VisualSTS" in name}
    assert ids["VisualSTS17Eng"] | ids["VisualSTS17Multilingual"] == ids["STS17MultilingualVisualSTS"]
    assert ids["VisualSTS-b-Eng"] | ids["VisualSTS-b-Multilingual"] < ids["STSBenchmarkMultilingualVisualSTS"]


def test_embedding_once() -> None:
    """Task by task, MIEB is 11.17 million items (10.96 without examples for probes); 1.42 million are repeats."""
    pools = [pool for name in get_benchmark("MIEB(Multilingual)").tasks for pool in row(name).pools]
    each, once = sum(pool.items for pool in pools), sum({pool.id: pool.items for pool in pools}.values())
    assert (each, once, each - once) == (11_170_173, 9_749_167, 1_421_006)
    assert sum(pool.items for pool in pools if pool.side == "train") == 208_987
    counted = Counter(pool.id for pool in pools)
    saved = {pool.id: (counted[pool.id] - 1) * pool.items for pool in pools}
    assert sorted(saved.values())[-3:] == [87_942, 126_000, 697_222]
    assert saved["mteb/xm3600/-/all/image"] == 35 * 3600


# ── the data as they are ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("OVENIT2TRetrieval", ("442,650 of 492,654", "no model can retrieve")),
        ("InfoSeekIT2TRetrieval", ("7,547 of 73,869", "no model can retrieve")),
        ("SketchyI2IRetrieval", ("452,886 query rows have 75,481", "25,000 document rows", "heap of 1,000 scores")),
        ("ImageCoDe", ("23,020 picture rows have 10,390 ids", "last counts")),
        ("ImageCoDe", ("scrambled", "5499")),
        ("ImageCoDeT2IRetrieval", ("23,020 picture rows have 10,390 ids", "a heap of 1,000 scores")),
        ("ImageCoDeT2IRetrieval", ("10,359 different pictures",)),
        ("HatefulMemesI2TRetrieval", ("10,000 rows", "8,045", "mteb2", "0.433 to 0.393")),
        ("HatefulMemesT2IRetrieval", ("0.465 to 0.429",)),
        ("SOPI2IRetrieval", ("22,634 queries, 97,419", "120,053 and 840,927", "cannot be compared")),
    ],
)
def test_notes_tell_the_truth_about_the_data_in_one_line(name: str, parts: tuple[str, ...]) -> None:
    assert any(all(part in note for part in parts) for note in row(name).notes), row(name).notes


def test_rows_say_how_repeated_ids_are_read() -> None:
    repeated = {task.name: task.options["repeated"] for task in mieb.TASKS if "repeated" in task.options}
    assert repeated == {"SketchyI2IRetrieval": "heap", "ImageCoDe": "last", "ImageCoDeT2IRetrieval": "heap"}
    for name in ("SketchyI2IRetrieval", "ImageCoDeT2IRetrieval"):
        assert (row(name).params, row(name).under("mteb2").params) == ({"heap": "mteb1"}, {"heap": "mteb2"})
    assert not any("five sixths" in note for note in row("SketchyI2IRetrieval").notes)


def test_rows_whose_positives_are_out_of_reach() -> None:
    missed = {task.name for task in mieb.TASKS if task.options.get("unknown") == "miss"}
    assert missed == {f"{name}{way}Retrieval" for name in ("OVEN", "InfoSeek") for way in ("IT2T", "IT2IT")}


def test_the_papers_default_retrieval_loader_passed_no_revision() -> None:
    notes = {task.name: note for task in mieb.TASKS for note in task.notes if "The paper's release read" in note}
    unpinned = {name for name, note in notes.items() if "passed no revision" in note}
    assert {"SOPI2IRetrieval", "BLINKIT2IMultiChoice", "OVENIT2TRetrieval"} < unpinned
    rankings = {"Any2AnyRetrieval", "VisionCentricQA"}
    assert unpinned == {name for name in notes if row(name).reader == "beir" and row(name).tags["type"] in rankings}
    assert "as it was on that day, whatever revision its results state (0b3a16" in notes["SOPI2IRetrieval"]
