"""What the page is made of: boards as columns, items with thumbnails, and nothing that is not allowed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.hub import Hub
from embark.protocol import fingerprint_of
from embark.redaction import Content, Private
from embark.results import Record, Results, TaskResult
from embark.site import galleries
from embark.site.board_data import board_data
from embark.site.bundle import STATIC
from embark.site.report_data import report_data
from embark.site.scripts import script, slug, write_script
from embark.site.thumbnails import SIDE, may_show
from embark.tasks import TASKS
from embark.types import EmbarkError
from site_boards import of_board, on_the_command_line, on_the_page, read, tied_board

MEGABYTE = 1_000_000


def data(folder: Path, name: str) -> Any:
    """What a script of a page hands over."""
    text = (folder / "data" / f"{name}.js").read_text(encoding="utf-8")
    stated, content = json.loads(text.removeprefix("embark(...").removesuffix(");\n"))
    assert stated == name
    return content


def test_a_board_is_what_the_leaderboard_says(tmp_path: Path) -> None:
    site = embark.site.export(tmp_path / "page", "ARK")
    entry = data(site.folder, "index")["boards"][0]
    board = data(site.folder, f"board/{entry['file']}")
    expected = embark.leaderboard("ARK")
    assert board["models"]["label"] == [line.model.model for line in expected.entries]
    names = [column["name"] for column in board["columns"]]
    for row, line in enumerate(expected.entries):
        cells = board["values"][row * len(names) : (row + 1) * len(names)]
        scores = line.model.totals | line.model.categories | line.model.tasks
        assert [cell and cell[0] for cell in cells] == [scores[n].value if n in scores else None for n in names]
        assert board["models"]["rank"][row] == (line.place and line.place.rank)
    marked = {mark for line in expected.entries for score in line.model.tasks.values() for mark in score.marks}
    assert marked <= set(board["footnotes"])


@pytest.mark.parametrize("name", ["MIEB(Multilingual)", "UniBench", "MMEB-V3"])
def test_every_cell_of_a_board_is_that_of_the_command_line(name: str) -> None:
    board = read(script("board", board_data(name, embark.leaderboard(name)), Private()))
    shown = on_the_page(board)
    printed = on_the_command_line(name, board["models"]["name"])
    assert {place: text for place, text in shown.items() if printed[place] != text} == {}
    assert len(shown) > (10 if name == "UniBench" else 500)


@pytest.mark.parametrize("seed", range(5))
def test_scores_between_two_tenths_are_rounded_alike_and_in_full(seed: int) -> None:
    board = tied_board(seed)
    content = read(script("board", board_data("Ties", board), Private()))
    printed = of_board(board)
    assert on_the_page(content) == {place: printed[place] for place in on_the_page(content)}
    places = zip(content["low"], content["high"], strict=True)
    ends = {f"95 %: {low[1]} to {high[1]}" for low, high in places if low and high}
    tables = board.table().format("html") + board.tasks_table().format("html")
    assert ends == set(re.findall(r'title="(.*?)"', tables))
    for entry, start in zip(board.entries, range(0, len(content["values"]), len(content["columns"])), strict=True):
        for column, cell in zip(content["columns"], content["values"][start:], strict=False):
            score = (entry.model.totals | entry.model.categories | entry.model.tasks).get(column["name"])
            assert (cell and cell[0]) == (score and score.value)


def test_means_over_other_tasks_stand_apart_and_tell_how_many_they_are_over() -> None:
    board = board_data("UniBench", embark.leaderboard("UniBench"))
    width = len(board["columns"])
    means = range(0, len(board["values"]), width)
    assert set(means) <= set(board["apart"])
    assert [board["covered"][cell] for cell in means] == ["41/53", *["1/53"] * 9]
    tasks = {number for number, column in enumerate(board["columns"]) if column["kind"] == "task"}
    assert not [cell for cell in board["apart"] if cell % width in tasks]  # a task's scores compare with each other


def test_your_results_are_the_board_of_the_command_line(scored: embark.Settings, tmp_path: Path) -> None:
    site = embark.site.export(tmp_path / "page", include="own", settings=scored)
    shown = data(site.folder, f"board/{data(site.folder, 'index')['boards'][0]['file']}")
    words = ["leaderboard", "--include", "own", "--results", str(scored.results), "--wide", "--format", "json"]
    lines = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)["rows"]
    assert {column["name"] for column in shown["columns"] if column["kind"] == "task"} == {
        "PagesRetrieval",
        "PagesZeroShot",
    }
    assert data(site.folder, "index")["boards"][0]["size"] == "2 models, 2 tasks"
    assert [str(rank) for rank in shown["models"]["rank"]] == [line["#"] for line in lines] == ["1", "2"]
    assert shown["models"]["tie"] == [line["tie"] for line in lines]
    places = zip(shown["models"]["low"], shown["models"]["high"], strict=True)
    assert [f"{low}–{high}" if low != high else f"{low}" for low, high in places] == [line["95 %"] for line in lines]
    mean = [column["name"] for column in shown["columns"]].index("mean")
    for row, line in enumerate(lines):
        cell = row * len(shown["columns"]) + mean
        ends = [shown[name][cell][0] for name in ("values", "low", "high")]
        assert ends == [line["mean"][name] for name in ("score", "low", "high")]


@pytest.mark.slow
def test_results_on_a_part_of_a_benchmark_are_ranked_as_on_the_command_line(tmp_path: Path) -> None:
    settings = replace(embark.load_settings(), results=tmp_path / "results")
    rows = [TASKS[name] for name in embark.get_benchmark("Pocket").tasks[:3]]
    for number, model in enumerate(("test/one", "test/two")):
        for row in rows:
            ends = (0.1, 0.9)
            parts = [
                Record(
                    model, "1", row.name, split, subset, ("eng",), row.metric, 0.3 + number / 4, ends, {},
                    fingerprint_of(row, split, subset), "embark",
                )
                for split, subset in row.parts
            ]  # fmt: skip
            result = TaskResult(model, "1", row.name, "1", tuple(parts), parts[0].score, ends, 0.0)
            Results(settings.results).write(result, None)
    site = embark.site.export(tmp_path / "page", include="own", settings=settings)
    index = data(site.folder, "index")["boards"]
    boards = {entry["name"]: data(site.folder, f"board/{entry['file']}") for entry in index}
    assert boards["Pocket"]["models"]["rank"] == [None, None]
    assert boards["Your results"]["models"]["rank"] == [1, 2]


def test_all_published_tables_take_less_than_five_megabytes_and_the_code_less_than_one_and_a_half(
    tmp_path: Path,
) -> None:
    site = embark.site.export(tmp_path / "page")
    assert sum(path.stat().st_size for path in (site.folder / "data").rglob("*.js")) < 5 * MEGABYTE
    assert sum(path.stat().st_size for path in STATIC.iterdir()) < 1.5 * MEGABYTE
    assert "MIEB(Multilingual)" in site.boards


def test_own_results_have_items_with_pictures(scored: embark.Settings, tmp_path: Path) -> None:
    site = embark.site.export(tmp_path / "page", include="own", settings=scored)
    assert site.boards == ("Your results",)
    index = data(site.folder, "index")
    gallery = data(site.folder, f"items/{index['items']['PagesRetrieval']}")
    assert gallery["models"] == ["test/tiny", "test/blind"]
    flips = gallery["flips"][0]
    assert flips["count_a"] > 0
    item = gallery["items"][flips["only_a"][0]]
    assert [answer["right"] for answer in item["answers"]] == [True, False]
    assert item["answers"][0]["top"][0][0] in item["gold"]
    sources = [part["src"] for content in gallery["contents"] for part in content["parts"] if "src" in part]
    assert sources
    for source in sources:
        with Image.open(site.folder / source) as picture:
            assert max(picture.size) <= SIDE
    [pair] = data(site.folder, "compare")
    assert (pair["a"], pair["b"]) == ("test/tiny", "test/blind")
    assert data(site.folder, "runs")["done"][0]["tasks"] == 2


def test_without_its_data_a_run_shows_what_it_has(scored: embark.Settings, tmp_path: Path) -> None:
    for picture in (tmp_path / "Pages").iterdir():
        picture.unlink()
    site = embark.site.export(tmp_path / "page", include="own", settings=scored)
    gallery = data(site.folder, f"items/{data(site.folder, 'index')['items']['PagesRetrieval']}")
    assert "not shown" in gallery["note"]
    assert gallery["items"][0]["id"]
    assert gallery["contents"] == []
    assert not (site.folder / "media").exists()


def test_data_that_are_too_large_are_not_read(
    scored: embark.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(galleries, "LARGE_ITEMS", 5)
    site = embark.site.export(tmp_path / "page", include="own", settings=scored)
    gallery = data(site.folder, f"items/{data(site.folder, 'index')['items']['PagesRetrieval']}")
    assert "6 are too many" in gallery["note"]
    assert gallery["contents"] == []
    assert gallery["flips"][0]["count_a"] > 0


def test_only_free_licenses_are_shown_unless_media_are_wanted(tmp_path: Path) -> None:
    task = TASKS["PocketFlagCapital"]
    hub = Hub(embark.load_settings(tmp_path, offline=True))
    assert may_show(task, hub)
    for license in ("", "not specified", "CC-BY-NC-4.0", "CC-BY-4.0 over ImageNet terms", "mit, research only"):
        assert not may_show(replace(task, source=replace(task.source, license=license)), hub), license
    assert may_show(replace(task, source=replace(task.source, license="CC-BY-4.0")), hub)
    own = replace(task, name="my own", reader="paired", source=replace(task.source, license=""))
    assert may_show(replace(own, source=replace(own.source, id=str(tmp_path))), hub)
    assert not may_show(replace(own, source=replace(own.source, id="owner/pages")), hub)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(EmbarkError, match="other files"):
        embark.site.export(tmp_path, "ARK")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_another_page_with_the_same_file_names_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text("my own")
    (tmp_path / "index.html").write_text("<title>mine</title>")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "years.csv").write_text("of work")
    with pytest.raises(EmbarkError, match="other files"):
        embark.site.export(tmp_path, "ARK")
    assert (tmp_path / "data" / "years.csv").read_text() == "of work"


def test_an_older_page_is_replaced_and_links_in_it_are_not_written_through(tmp_path: Path) -> None:
    page = embark.site.export(tmp_path / "page", "ARK").folder
    (page / "data" / "old.js").write_text("embark()")
    (page / "notes.txt").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "keep.txt").write_text("kept")
    (tmp_path / "profile").write_text("kept")
    (page / "app.css").unlink()
    (page / "app.css").symlink_to(tmp_path / "profile")
    (page / "media").symlink_to(tmp_path / "outside")
    embark.site.export(page, "ARK")
    assert not (page / "data" / "old.js").exists()
    assert (page / "notes.txt").read_text() == "mine"
    assert (tmp_path / "profile").read_text() == "kept"
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["keep.txt"]


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbarkError, match=r"cannot be written to .*file"):
        embark.site.export(tmp_path / "file", "ARK")


def test_folders_of_the_machine_are_not_told(scored: embark.Settings, tmp_path: Path) -> None:
    model = next(scored.results.glob("*/*/PagesRetrieval.json")).parent
    (model / "Torn.json").write_text("{")
    (model / "Deep.json").write_text("[" * 100_000)
    site = embark.site.export(tmp_path / "page", include="own", settings=scored)
    assert any("Torn.json" in note for note in site.notes)
    texts = [path.read_text(encoding="utf-8") for path in (site.folder / "data").rglob("*.js")]
    assert any("left out: Torn.json is damaged" in text for text in texts)
    assert not [text for text in texts if str(tmp_path) in text]


@pytest.mark.parametrize(
    "content",
    ["[", "[]", '{"date": "x"}', '{"date": 1, "sentences": 3, "sections": []}', '{"date": 1e999}', "[" * 100_000, "1",
     '{"date": 1, "sentences": [], "sections": [{"figure": {}}]}'],
)  # fmt: skip
def test_a_report_that_is_none_is_left_out(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    assert report_data(tmp_path) == []


def test_a_report_is_cut_to_what_can_be_looked_at(tmp_path: Path) -> None:
    section = {
        "title": "t" * 9999,
        "columns": ["c"] * 999,
        "rows": [["", False, ["x"]]] * 999,
        "notes": [],
        "caption": "",
    }
    report = {
        "date": 1e300,
        "title": "\ud800",
        "sentences": ["s"],
        "sections": [section | {"figure": "f\ud800" * 9}] * 99,
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    [shown] = report_data(tmp_path)
    assert shown["date"] == ""
    assert len(shown["sections"]) == 40
    assert len(shown["sections"][0]["rows"]) == 400
    assert len(shown["sections"][0]["title"]) == 2000
    assert "\ud800" not in shown["sections"][0]["figure"]
    assert script("report", shown, Private())


def test_nothing_to_show_is_an_error(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    with pytest.raises(EmbarkError, match="embark run"):
        embark.site.export(tmp_path / "page", include="own", settings=settings)


@given(st.text(st.characters(exclude_categories=())))
def test_a_script_is_json_in_a_call_without_control_characters(text: str) -> None:
    line = script("name", {"text": Content(text)}, Private()).removesuffix("\n")
    assert not [sign for sign in line if ord(sign) < 32 or sign in "\u2028\u2029\u202e"]
    assert json.loads(line.removeprefix("embark(...").removesuffix(");"))[1]["text"] == text


@given(st.text(), st.text())
def test_slugs_are_plain_file_names(name: str, other: str) -> None:
    assert slug(name).replace("-", "").isalnum()
    assert slug(name).isascii()
    assert (slug(name) == slug(other)) == (name == other)


def test_numbers_that_are_not_finite_are_null(tmp_path: Path) -> None:
    write_script(tmp_path, "numbers", [float("nan"), float("inf"), 1.5])
    assert data(tmp_path, "numbers") == [None, None, 1.5]


@pytest.mark.slow
def test_the_documentation_works_as_shown(elsewhere: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "page.md").read_text(encoding="utf-8")
    [session] = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    exec(session, {})
    assert (elsewhere / "here" / "public" / "index.html").exists()


def test_the_built_page_is_that_of_its_sources() -> None:
    """A rough guard: every view of the sources is in the bundle."""
    code = (STATIC / "app.js").read_text(encoding="utf-8")
    for words in ("Leaderboard", "The hardest items", "Strengths", "Runs with results", "Flips of", "spread"):
        assert words in code
    assert "preact" in (STATIC / "LICENSES.txt").read_text(encoding="utf-8")
