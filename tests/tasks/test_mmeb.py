"""MMEB-V3's rows agree with the paper's facts, and tell what is not known."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from embark.tasks import TASKS, get_benchmark, get_tasks, mmeb
from embark.types import Pool, Task
from matrix import every

FACTS = json.loads((Path(__file__).parents[1] / "samples" / "facts" / "mmeb.json").read_text(encoding="utf-8"))
ROWS = {task.name.removeprefix("MMEB/"): task for group in mmeb.GROUPS.values() for task in group}
COUNTS = {"image": 37, "video": 18, "visdoc": 24, "audio": 11, "text": 53, "agent": 47}
METRICS = {"Hit@1": "hit_rate_at_1", "NDCG@5": "ndcg_at_5"}
LETTERS = {"T": "text", "I": "image", "V": "video", "A": "audio", "D": "image"}


def known(field: str) -> dict[str, Any]:
    return {row["name"]: row[field] for row in FACTS["tasks"]}


def pool(name: str, side: str) -> Pool | None:
    return next((pool for pool in ROWS[name].pools if pool.side == side), None)


# ── the table ──


def test_counts() -> None:
    assert {name: len(group) for name, group in mmeb.GROUPS.items()} == COUNTS
    assert sum(COUNTS.values()) == len(ROWS) == len(get_benchmark("MMEB-V3").tasks) == 190
    assert len({task.category for task in ROWS.values()}) == 23
    assert [len(get_benchmark(f"MMEB-V3({name})").tasks) for name in COUNTS] == list(COUNTS.values())
    assert len(get_benchmark("OmniSET").tasks) == 12
    assert len(get_tasks(families="MMEB-V3")) == 202
    rules = {get_benchmark(name).rule for name in ("MMEB-V3", "OmniSET", *(f"MMEB-V3({name})" for name in COUNTS))}
    assert rules == {"mmeb"}


def test_groups_are_told_by_their_tag() -> None:
    assert Counter(task.tags["group"] for task in mmeb.TASKS) == {**COUNTS, "omniset": 12}
    assert all(set(task.tags) == {"group", "subcategory", "parser", "versions", "direction"} for task in mmeb.TASKS)


def test_rows_are_those_of_the_facts() -> None:
    assert list(ROWS) == list(known("name"))
    for name, row in ((row["name"], row) for row in FACTS["tasks"]):
        task = ROWS[name]
        assert task.metric == METRICS[row["metric"]], name
        assert task.evaluator == ("choice" if row["ranking"] == "local" else "retrieval"), name
        assert (task.category, task.tags["group"]) == (row["subcategory"], row["group"]), name
        assert task.tags["versions"] == " ".join(row["in_versions"]), name
        assert task.options["parser"] == (row["parser"] or "memory_retrieval"), name
        assert task.source.id == row["hub_id"], name
        assert task.source.splits == (row["hub_split"] or "test",), name
        assert task.options.get("frames") == row["num_frames"], name
        if row["group"] in ("image", "video"):
            assert task.source.config == row["hub_subset"], name


def test_instructions_are_those_of_the_facts() -> None:
    target = known("target_instruction")
    for name, query in known("query_instruction").items():
        task = ROWS[name]
        assert task.instructions.get("document") == target[name], name
        if isinstance(query, str) and not query.startswith("per-row"):
            assert task.instructions["query"] == query, name
        else:
            assert "query" not in task.instructions, name
            own = isinstance(query, dict) or bool(query) or task.category in ("GUI", "V-MR")
            assert (task.options.get("instruction") == "row") == own, name
            assert not isinstance(query, dict) or task.options["instructions"] == query, name
    for name, template in known("query_template").items():
        if template and name != "GUI" and ROWS[name].category != "GUI":
            assert ROWS[name].options["template"] == template.replace("\\n", "\n"), name


def test_modalities_are_those_of_the_facts() -> None:
    target = known("target_modality")
    for name, query in known("query_modality").items():
        both = f"{query} {target[name]}".replace("(page image)", "")
        assert set(ROWS[name].modalities) == {LETTERS[letter] for letter in both if letter in LETTERS}, name
        assert ROWS[name].mixed == ("+" in both or ROWS[name].category == "GUI"), name


def test_sizes_are_those_of_the_facts() -> None:
    candidates, scope = known("n_candidates"), known("n_candidates_scope")
    for name, queries in known("n_queries").items():
        if name.startswith("GAE-mind2web"):  # later facts: the sizes of its files
            q2t = name.endswith("q2t")
            assert [pool.items for pool in ROWS[name].pools] == ([253, 1261] if q2t else [321, 3207])
            continue
        task, asked, offered = ROWS[name], pool(name, "query"), pool(name, "document")
        assert (asked.items if asked else None) == queries, name
        if scope[name] == "corpus" and candidates[name]:
            assert offered is not None
            assert offered.items == candidates[name], name
        elif offered and task.category != "ViDoRe-V1":  # counted in MIEB's copies
            assert offered.items == candidates[name], name
        told = any("left out of the plan" in note for note in task.notes)
        assert told == (asked is None or offered is None), name


def test_omniset_is_that_of_the_facts() -> None:
    stated = FACTS["omniset"]
    assert [task.name for task in mmeb.OMNISET] == [f"OmniSET/{name}" for name in stated["directions"]]
    for task in mmeb.OMNISET:
        assert task.instructions["query"] == stated["query_instructions"][task.name.removeprefix("OmniSET/")]
        assert task.instructions["document"] == stated["target_instruction"]
        assert (task.evaluator, task.metric) == ("choice", "hit_rate_at_1")


# ── what tasks share ──


@pytest.mark.parametrize(
    ("side", "one", "other"),
    [
        ("document", "MMEB/Tool-apibank", "MMEB/Tool-ultratool"),
        ("document", "MMEB/BRIGHT_aops", "MMEB/BRIGHT_theoremqa_questions"),
        ("query", "MMEB/TUTSound", "MMEB/TUTSound_hard"),
        ("query", "OmniSET/T2I", "OmniSET/T2A"),
        ("document", "MMEB/ViDoRe_arxivqa", "VidoreArxivQARetrieval"),
        ("query", "MMEB/ViDoRe_tatdqa", "VidoreTatdqaRetrieval"),
    ],
)
def test_twins_share_their_items(side: str, one: str, other: str) -> None:
    first, second = ([pool for pool in TASKS[name].pools if pool.side == side] for name in (one, other))
    assert first == second != []


def test_all_tools_are_counted_once() -> None:
    tools = {pool.id: pool.items for task in get_tasks("MMEB/Tool-*") for pool in task.pools if pool.side == "document"}
    asked = [pool.items for task in get_tasks("MMEB/Tool-*") for pool in task.pools if pool.side == "query"]
    assert (len(tools), sum(tools.values()), sum(asked)) == (3, 43_215, 7_961)


def test_class_names() -> None:
    labelled = {task.name: len(task.labels) for task in mmeb.VIDEO if task.labels}
    assert labelled == {"MMEB/K700": 700, "MMEB/HMDB51": 51, "MMEB/UCF101": 101, "MMEB/Breakfast": 10}
    assert all(len(set(task.labels)) == len(task.labels) for task in mmeb.VIDEO)


# ── what is not known, or wrong ──

FAULTS = {
    "ViDoSeek-page": "issue 167",
    "MMLongBench-page": "issue 167",
    "MMLongBench-doc": "hash seed",
    "FollowIR_core17-instructions": "hash seed",
    "BRIGHT_pony": "excluded_ids stay",
    "BRIGHT_biology": "counted twice",
    "R2MED_Biology": "counted twice",
    "InfoSearch_Source-v1": "changed instruction while the judgements are those of the original",
    "SoundDescs": "issue 207",
    "AVE": "a lost file makes the task easier",
    "NSynth": "becomes its digits",
    "TUTSound": "public code of V3",
    "MCMR": "leaves it out",
    "K700": "middle frame",
    "ImageNet-1K": "six inference faults",
    "GAE-guiact-q2s": "make the four directions equal",
    "KnowMeBench": "reproduced the paper's numbers",
    "ViDoRe_esg_reports_v2_multilingual": "lists 4",
}


@pytest.mark.parametrize(("name", "fault"), FAULTS.items(), ids=list(FAULTS))
def test_rows_tell_what_is_wrong(name: str, fault: str) -> None:
    assert any(fault in note for note in ROWS[name].notes)


@every(mmeb.TASKS)
def test_rows_tell_what_is_not_pinned(task: Task) -> None:
    pinned = task.source.id == mmeb.HUB
    assert task.source.revision == (mmeb.PINNED if pinned else "main")
    assert (mmeb.LAYOUT if pinned else mmeb.REVISION) in task.notes
