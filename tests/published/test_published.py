"""The shipped tables: what they hold, under which names, and how they become results."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import re
from pathlib import Path

import pytest

from embark import published
from embark.boards.leaderboards import rank_models
from embark.catalogue import UnknownName
from embark.tasks import BENCHMARKS, TASKS
from embark.types import Task

E5V = "royokong/e5-v"
TOOL = Path(__file__).parents[2] / "tools" / "published" / "build.py"


def rows(benchmark: str) -> list[Task]:
    return TASKS.match(BENCHMARKS[benchmark].tasks)


@pytest.mark.parametrize("family", published.FAMILIES)
def test_every_table_has_a_source_and_every_source_its_cells(family: str) -> None:
    tables = published.tables(family)
    assert {score.table for score in published.scores(family)} == set(tables)
    for about in tables.values():
        assert {"title", "paper", "url", "license", "version"} <= set(about)


@pytest.mark.parametrize("family", published.FAMILIES)
def test_tasks_have_our_names_and_values_are_fractions(family: str) -> None:
    for score in published.scores(family):
        assert score.kind in ("task", "aggregate")
        assert math.isfinite(score.value)
        assert -1 <= score.value <= 1
        if score.kind == "task" and score.name != "MMEB/MomentSeeker_1k8":  # of MMEB-V2's first release only
            assert TASKS[score.name].family == family


@pytest.mark.parametrize("family", published.FAMILIES)
def test_a_cell_is_there_once(family: str) -> None:
    keys = [tuple(score)[:9] for score in published.scores(family)]
    assert len(set(keys)) == len(keys)


def test_miebs_results_are_all_there() -> None:
    found = [score for score in published.scores("MIEB") if score.table == "MIEB results"]
    assert len(found) == 9105
    assert len({score.model for score in found}) == 48


def test_results_average_splits_and_subsets() -> None:
    found = {(r.model, r.task): r for r in published.results("MIEB(Multilingual)")}
    wit = found[E5V, "WITT2IRetrieval"]
    assert len(wit.records) > 5
    assert wit.score == pytest.approx(sum(record.score for record in wit.records) / len(wit.records))
    assert {record.languages for record in wit.records} <= set(TASKS["WITT2IRetrieval"].subsets.values())
    assert wit.metric == TASKS["WITT2IRetrieval"].metric
    assert math.isnan(wit.interval[0])


@pytest.mark.parametrize(
    ("benchmark", "models", "cells"),
    [
        ("MIEB(Multilingual)", 48, 5537),
        ("MMEB-V3", 7, 5 * 179 + 2 * 190),  # two models take audio
        ("OmniSET", 3, 2 * 12 + 6),
        ("ARK", 13, 13 * 17),
        ("UniBench", 10, 46 + 9),
        ("Pocket", 0, 0),
    ],
)
def test_results_cover_what_the_paper_has(benchmark: str, models: int, cells: int) -> None:
    found = published.results(benchmark)
    assert (len({result.model for result in found}), len(found)) == (models, cells)
    assert {result.task for result in found} <= set(BENCHMARKS[benchmark].tasks)


def test_unlike_protocols_come_only_when_asked_for_and_do_not_compare() -> None:
    task = TASKS["ARK/Physics"]
    ours, captions = published.results("ARK"), published.results("ARK", "captions")
    assert "BAAI/bge-m3" not in {result.model for result in ours}
    assert {result.protocol for result in captions} == {"captions"}
    assert published.comparable(next(r for r in ours if r.task == task.name), task)
    assert not any(published.comparable(result, task) for result in captions if result.task == task.name)
    assert {r.protocol for r in published.results("MMEB-V3", "mmeb-v2.1")} == {"mmeb-v2.1"}
    old = next(result for result in published.results("UniBench") if result.task == "UniBench/sun397")
    assert not published.comparable(old, TASKS["UniBench/sun397"])  # the hub's data was replaced since
    row = TASKS["STL10"].under("mteb2")
    assert not any(published.comparable(r, row) for r in published.results("MIEB(eng)") if r.task == "STL10")


@pytest.mark.slow
def test_a_leaderboard_of_published_models_shows_the_papers_means_and_the_errata() -> None:
    board = rank_models(rows("MIEB(Multilingual)"), published.results("MIEB(Multilingual)"), "mean-of-types")
    table = board.table()
    lines = str(table).splitlines()
    [second] = [line.split()[:8] for line in lines if E5V in line]
    assert second == ["2", "1–37", "A", E5V, "published", "130/130", "58.2", "58.6"]  # Table 2
    [sign] = [note.sign for note in table.footnotes if "mieb-collapsed-probe" in note.text]
    marked = {line.split()[3] for line in lines if re.search(rf"\((\w+,)*{sign}(,\w+)*\)", line) and line[0] != "("}
    assert len(marked) == 6
    assert not any("voc2007" in note for note in table.note_lines())  # a note about one cell does not mark the means
    some = [result for result in published.results("MIEB(Multilingual)") if result.model.startswith("QuanSun/")]
    text = str(rank_models(rows("MIEB(Multilingual)"), some, "mean-of-types").tasks_table())
    assert re.search(r"Imagenet1k .* 0\.1 \(\w+(,\w+)*\)", text)
    assert "label ranking average precision" in text
    assert "±" not in text  # papers print no intervals


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean MIEB"):
        published.scores("MTEB")
    with pytest.raises(UnknownName):
        published.errata("MTEB")


def test_the_build_makes_the_shipped_rows_from_csv(tmp_path: Path) -> None:
    """MIEB's results written out as they came, and its printed tables, which lie beside the tool."""
    shipped = published.scores("MIEB")
    path = tmp_path / "mieb" / "results" / "mieb_results.csv"
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "revision", "task", "subset", "split", "metric", "value"])
        for s in shipped:
            if s.table == "MIEB results":
                writer.writerow([s.model, s.revision, s.name, s.subset, s.split, "main_score", s.value])
    spec = importlib.util.spec_from_file_location("published_build", TOOL)
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    made = {tuple(row[name] for name in published.Published._fields) for row in build.mieb(tmp_path)}
    assert made == {tuple(score) for score in shipped}


def test_tables_and_their_cells() -> None:
    tables = published.overview()
    assert list(tables) == list(published.tables())
    assert sum(about["cells"] for about in tables.values()) == sum(
        len(published.scores(family)) for family in published.FAMILIES
    )
    assert {about["family"] for about in published.overview("ARK").values()} == {"ARK"}
    cells = published.cells("MIEB Table 22", "royokong/e5-v")
    assert {cell.model for cell in cells} == {"royokong/e5-v"}
    assert len(published.cells("MIEB Table 22")) == tables["MIEB Table 22"]["cells"]
    [cell] = [cell for cell in published.cells("MMEB-V3 Table 8", "tsinghua-ee/WAVE-7B") if cell.name == "A-RET"]
    assert [erratum.id for erratum in published.errata_of(cell)] == ["mmeb-wave-audio-retrieval"]


def test_published_scores_on_hateful_memes_are_of_the_corpus_with_duplicates() -> None:
    scores = [r for r in published.results("MIEB(eng)") if r.task.startswith("HatefulMemes")]
    for name in ("HatefulMemesI2TRetrieval", "HatefulMemesT2IRetrieval"):
        row = TASKS[name]
        assert "unique" not in row.options
        assert all(published.comparable(result, row) for result in scores if result.task == name)
        today = row.under("mteb2")
        strip = {"strip": ["document"]} if name == "HatefulMemesI2TRetrieval" else {}
        assert today.options == {**row.options, "unique": "text", **strip}
        assert not any(published.comparable(result, today) for result in scores if result.task == name)


def test_published_scores_on_sop_are_of_other_data() -> None:
    scores = [result for result in published.results("MIEB(eng)") if result.task == "SOPI2IRetrieval"]
    row = TASKS["SOPI2IRetrieval"]
    assert scores
    assert not any(published.comparable(result, row) for result in scores)
    assert all(published.of_other_data(result, row) for result in scores)
    assert not any(published.of_other_data(result, row.under("mteb2")) for result in scores)
    assert published.mark(scores[0].model, "SOPI2IRetrieval") == ("mieb-sop-data",)
    assert "mieb-imagecode-labels" in published.mark(scores[0].model, "ImageCoDe")


def test_scores_of_multimodal_llms_have_the_printed_averages() -> None:
    """Of all 16 measures, one of which counts up to 2,000 and is divided by 20."""
    data = json.loads((Path(published.__file__).parent / "mllm.json").read_text(encoding="utf-8"))
    for encoder in data["encoders"]:
        first, *others = encoder["scores"]
        assert len(others) == 15
        assert (first / 20 + sum(others)) / 16 == pytest.approx(encoder["average"], abs=0.0051), encoder["encoder"]
    known = {score.model for score in published.scores("MIEB")}
    assert {*published.mllm_scores().scores["OCRBench"]} <= known
