"""Which results may stand together: published, own and imported ones, under the rows' present protocols."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import embark
from embark import published
from embark.boards.comparable_results import ResultSet, load_results
from embark.catalogue import UnknownName
from embark.results import Results
from embark.settings import load_settings
from embark.tasks import BENCHMARKS, TASKS
from folders import two_tasks

Pictures = Callable[..., Path]
TASK = "PocketFlagZeroShot"


def sources(results: ResultSet) -> list[tuple[str, str]]:
    return [(result.task, result.made_by) for result in results.results]


def test_published_results_of_a_benchmark_of_tasks_and_of_everything() -> None:
    lite = load_results("MIEB(lite)", include="published")
    assert [task.name for task in lite.tasks] == list(BENCHMARKS["MIEB(lite)"].tasks)
    assert {result.made_by for result in lite.results} == {"published"}
    some = load_results(tasks=["STS1?VisualSTS", TASKS["ARK/Metro"]], include="published")
    assert {task.family for task in some.tasks} == {"MIEB", "ARK"}
    assert {result.task for result in some.results} == {task.name for task in some.tasks}
    everything = load_results(include="published")
    assert {task.family for task in everything.tasks} == set(published.FAMILIES)
    assert {result.task for result in everything.results} == {task.name for task in everything.tasks}


def test_unlike_published_scores_are_named_in_the_notes() -> None:
    [note] = load_results("MMEB-V3", include="published").notes
    assert note.startswith("left out, because the paper had other data or another measure: ")
    assert "MMEB/ViDoSeek-page of 5 models" in note


def test_published_scores_of_other_data_stand_alone_and_not_beside_own_ones(tiny: embark.Encoder) -> None:
    sop = "SOPI2IRetrieval"
    alone = load_results(tasks=sop)
    assert len(alone.results) > 40
    assert not alone.notes
    [result] = embark.evaluate(tiny, TASK, show_progress=False).results
    imported = replace(result, task=sop, made_by="mteb", records=tuple(replace(r, task=sop) for r in result.records))
    Results(load_settings().results).write(imported, None)
    beside = load_results(tasks=sop)
    assert sources(beside) == [(sop, "mteb")]
    assert beside.notes[0].endswith(f": {sop} of {len(alone.results)} models (embark published errata)")


def test_own_and_imported_results_stand_beside_each_other(tiny: embark.Encoder) -> None:
    [result] = embark.evaluate(tiny, TASK, show_progress=False).results
    Results(load_settings().results).write(replace(result, model="org/theirs", made_by="mteb"), None)
    assert sources(load_results("Pocket")) == [(TASK, "mteb"), (TASK, "embark")]
    assert sources(load_results(tasks=TASK)) == sources(load_results(tasks=TASKS[TASK]))
    assert load_results("Pocket", include="published").results == ()
    elsewhere = load_settings(results="elsewhere")
    assert load_results("Pocket", settings=elsewhere).results == ()


def test_stale_results_and_scores_that_are_no_numbers_are_named(tiny: embark.Encoder) -> None:
    [result] = embark.evaluate(tiny, TASK, show_progress=False).results
    results = Results(load_settings().results)
    old = replace(result, model="test/old", records=(replace(result.records[0], fingerprint="before"),))
    results.write(old, None)
    results.write(replace(result, model="test/void", score=math.nan), None)
    loaded = load_results("Pocket")
    assert [result.model for result in loaded.results] == ["test/tiny", "test/void"]
    assert loaded.notes == (
        "left out, because scored under another protocol, or on other data, than the row has now "
        f"(run again to compare): {TASK} of test/old",
        f"left out, because the score is not a number: {TASK} of test/void",
    )


def test_own_tasks_are_found_without_their_folder(tiny: embark.Encoder, pictures: Pictures) -> None:
    folder = pictures("Holiday")
    embark.evaluate([tiny, "embark/random"], two_tasks(folder), show_progress=False)
    shutil.rmtree(folder)
    loaded = load_results(tasks="Holiday*")
    assert [task.name for task in loaded.tasks] == ["HolidayRetrieval", "HolidayZeroShot"]
    assert len(loaded.results) == 4
    assert loaded.notes == ()
    assert {task.name for task in load_results(include="own").tasks} == {"HolidayRetrieval", "HolidayZeroShot"}


def test_the_newest_row_of_an_own_task_is_the_present_one(
    tiny: embark.Encoder, reader_of_colours: embark.Encoder, pictures: Pictures
) -> None:
    folder = pictures("Holiday")
    retrieval, zeroshot = two_tasks(folder)
    embark.evaluate(tiny, [retrieval, zeroshot], show_progress=False)
    changed = replace(zeroshot, templates=("{}",))
    embark.evaluate("embark/random", [changed], show_progress=False)
    loaded = load_results(tasks="Holiday*")
    assert [(result.model, result.task) for result in loaded.results] == [
        ("embark/random", "HolidayZeroShot"),
        ("test/tiny", "HolidayRetrieval"),
    ]
    assert loaded.notes[0].endswith("(run again to compare): HolidayZeroShot of test/tiny")
    earlier = load_results(tasks=zeroshot)  # a row that is given stands as it is
    assert [result.model for result in earlier.results] == ["test/tiny"]


def test_protocols_of_rows_and_of_papers() -> None:
    assert {result.protocol for result in load_results("ARK", protocol="captions").results} == {"captions"}
    assert {task.protocol for task in load_results("MIEB(lite)", protocol="mteb2").tasks} == {"paper", "mteb2"}
    with pytest.raises(UnknownName, match="no protocol of the chosen tasks named 'captions'"):
        load_results("MIEB(lite)", protocol="captions")


def test_a_benchmark_or_tasks() -> None:
    assert load_results("Pocket").tasks == load_results(["Pocket", TASK]).tasks
    with pytest.raises(UnknownName, match=r"no task or benchmark named 'Poket'. Did you mean Pocket or"):
        load_results("Poket")
    with pytest.raises(UnknownName, match="no task or benchmark named 'Elsewhere'"):
        load_results(tasks="Elsewhere")


def test_records_as_a_table_and_a_frame(tiny: embark.Encoder) -> None:
    embark.evaluate(tiny, TASK, show_progress=False)
    loaded = load_results("Pocket")
    table, frame = loaded.table(), loaded.to_frame()
    assert table.columns == (
        "model", "revision", "task", "split", "subset", "metric", "score", "protocol", "source",
    )  # fmt: skip
    [record] = loaded.results[0].records
    assert frame.loc[0, ["model", "task", "score", "low", "made_by", "protocol"]].tolist() == [
        "test/tiny", TASK, record.score, record.interval[0], "embark", "paper",
    ]  # fmt: skip
    assert table.to_frame().loc[0, "score high"] == record.interval[1]
    assert f'<td style="text-align:left">{TASK}</td>' in loaded._repr_html_()


def test_scores_of_other_pixels_are_marked(tiny: embark.Encoder) -> None:
    [result] = embark.evaluate(tiny, TASK, show_progress=False).results
    assert load_results("Pocket").notes == ()
    record = replace(result.records[0], loaded={"pixels": "cuda"})
    Results(load_settings().results).write(replace(result, model="test/other", records=(record,)), None)
    assert load_results("Pocket").notes == ("JPEGs decoded and resized on a GPU, not by Pillow: test/other",)
