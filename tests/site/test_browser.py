"""The page in a real browser, opened from disk with the network off."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import pytest

import embark
from embark.run.run_state import state_file
from embark.settings import load_settings
from embark.site.board_data import board_data
from embark.site.scripts import slug, write_script
from embark.tables import in_points, signed_points
from site_boards import of_board, tied_board

pytestmark = pytest.mark.slow
Opened = Callable[..., Any]
AXE = Path(__file__).with_name("axe.min.js")
MIEB = "#/board/MIEB(Multilingual)"
VIEWS = (
    "#/board/Pocket",
    MIEB,
    f"{MIEB}?cols=VisionCentricQA",
    "#/plots/MIEB(Multilingual)?plot=parameters",
    "#/plots/MIEB(Multilingual)?plot=profile",
    "#/plots/MIEB(Multilingual)?plot=profile&shape=radar",
    "#/plots/MIEB(Multilingual)?plot=scaling",
    "#/plots/MIEB(Multilingual)?plot=correlation",
    "#/plots/MIEB(Multilingual)?plot=languages",
    "#/plots/MIEB(Multilingual)?plot=spread",
    "#/compare/Pocket?task=PocketFlagCapital",
    "#/task/PocketMomentRetrieval",
    "#/task",
    "#/model/embark%2Fpocket",
    "#/model",
    "#/run?task=PocketFlagCapital",
)
BOARD = "ARK"  # whose place on the page a test's own board takes
HEADS = ("Rank", "Model", "Size")
HOSTILE = "=1+1<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def page(pocket_page: Path) -> Path:
    return pocket_page / "page"


def wait_until(page: Any, expression: str) -> None:
    """Wait until an expression holds; Playwright's own way would be evaluated by the page, whose policy forbids it."""
    for _ in range(150):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {expression}")


def models(page: Any) -> list[str]:
    page.wait_for_selector("table.board tbody tr")
    return list(page.locator("table.board tbody th a").all_inner_texts())


def address(view: str, chosen: str) -> str:
    return f"#/{view}?{urlencode({'models': chosen})}"


def shown_scores(page: Any) -> list[float]:
    """The scores of the fifth column of MIEB, without those that have none."""
    cells = page.locator("tbody td.score:not(.apart):nth-child(7)")
    return [float(text) for text in cells.evaluate_all("cells => cells.map(cell => cell.firstChild.textContent)")]


def test_the_whole_of_mieb_is_one_table(page: Path, opened: Opened) -> None:
    tab = opened(page, f"{MIEB}?cols=all")
    assert len(models(tab)) == 48
    assert tab.locator("tbody tr").first.locator("td.score").count() >= 130
    assert tab.locator("tbody td.score").count() > 5500


@pytest.mark.parametrize("name", ["MIEB(Multilingual)", "Ties"])
def test_every_cell_is_shown_as_on_the_command_line(page: Path, opened: Opened, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(page, tmp_path / "page"))
    board = tied_board() if name == "Ties" else embark.leaderboard(name)
    write_script(folder, f"board/{slug(BOARD)}", board_data(BOARD, board))
    tab = opened(folder, f"#/board/{BOARD}?cols=all")
    tab.wait_for_selector("table.board tbody tr")
    columns = [name for name in tab.locator("thead tr:last-child button").all_inner_texts() if name not in HEADS]
    printed = of_board(board)
    labels = models(tab)
    shown = tab.locator("table.board tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(3).map(cell => cell.firstChild.textContent))"
    )
    cells = {
        (model, column): text
        for model, line in zip(labels, shown, strict=True)
        for column, text in zip(columns, line, strict=True)
        if text != "–"
    }
    assert len(cells) > 200
    assert {place: text for place, text in cells.items() if printed[place] != text} == {}


def test_differences_of_the_page_are_rounded_as_python_does(page: Path, opened: Opened, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(page, tmp_path / "page"))
    board = tied_board()
    write_script(folder, f"board/{slug(BOARD)}", board_data(BOARD, board))
    for second in range(1, 8):
        a, b = board.entries[0].model, board.entries[second].model
        tab = opened(folder, address(f"compare/{BOARD}", f"{a.model}\n{b.model}"))
        lines = tab.locator("section.pair tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].slice(0, 4).map(cell => cell.textContent))"
        )
        assert len(lines) > 20
        for name, *texts in lines:
            x, y = ((model.totals | model.categories | model.tasks)[name].value for model in (a, b))
            assert texts == [in_points(x), in_points(y), signed_points(x - y).text], name
        tab.context.close()


def test_means_over_other_tasks_have_no_color_no_bold_and_come_last(page: Path, opened: Opened, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(page, tmp_path / "page"))
    for board in (embark.leaderboard("UniBench"), tied_board()):
        write_script(folder, f"board/{slug(BOARD)}", board_data(BOARD, board))
        tab = opened(folder, f"#/board/{BOARD}?sort=total%3Amean&dir=desc")
        tab.wait_for_selector("table.board tbody tr")
        looks = tab.locator("table.board tbody td.total").evaluate_all(
            "cells => cells.map(cell => [cell.className, cell.innerText, getComputedStyle(cell).fontWeight])"
        )
        ranked = sum(entry.place is not None for entry in board.entries)
        assert [bool(re.search(r"\bh\d", look)) for look, _, _ in looks] == [
            number < ranked for number in range(len(looks))
        ]
        assert [weight == "700" for _, _, weight in looks] == [number == 0 < ranked for number in range(len(looks))]
        assert all(re.search(r"\d+/\d+", text) for _, text, _ in looks[ranked:])
        tab.context.close()


def test_a_column_sorts_both_ways_and_the_address_has_it(page: Path, opened: Opened) -> None:
    tab = opened(page, MIEB)
    by_rank = models(tab)
    head = tab.get_by_role("button", name="ImageClustering")
    head.click()
    falling = models(tab)
    assert "sort=group%3AImageClustering" in tab.url
    assert tab.locator('th[aria-sort="descending"]').count() == 1
    assert shown_scores(tab) == sorted(shown_scores(tab), reverse=True)
    head.click()
    assert shown_scores(tab) == sorted(shown_scores(tab))
    assert models(tab) not in (falling, by_rank)
    head.click()
    assert models(tab) == by_rank


def test_search_and_filters_narrow_the_models(page: Path, opened: Opened) -> None:
    tab = opened(page, MIEB)
    everything = models(tab)
    tab.get_by_label("Search", exact=True).fill("siglip")
    siglip = models(tab)
    assert 0 < len(siglip) < len(everything)
    assert all("siglip" in name for name in siglip)
    tab.get_by_label("Size").select_option("100–500 M")
    assert 0 < len(models(tab)) < len(siglip)
    tab.get_by_label("Search", exact=True).fill("")
    tab.get_by_label("Size").select_option("")
    tab.get_by_label("Access").select_option("API")
    assert models(tab) == ["voyageai/voyage-multimodal-3"]
    tab.get_by_label("Access").select_option("")
    tab.get_by_label("Scores").select_option("own")
    assert tab.get_by_text("No model passes the filters.").count() == 1


def test_pins_come_first_and_a_copied_address_opens_the_same_page(page: Path, opened: Opened) -> None:
    tab = opened(page, f"{MIEB}?q=laion")
    last = models(tab)[-1]
    tab.get_by_role("button", name=f"Pin {last}").click()
    assert models(tab)[0] == last
    again = opened(page, tab.url.partition("index.html")[2])
    assert models(again) == models(tab)
    assert again.get_by_label("Search", exact=True).input_value() == "laion"


def test_tasks_of_a_group_are_columns(page: Path, opened: Opened) -> None:
    tab = opened(page, MIEB)
    tab.get_by_label("Columns").select_option("VisionCentricQA")
    tab.wait_for_selector("text=BLINKIT2IMultiChoice")
    names = tab.locator("thead th button").all_inner_texts()
    assert "CVBenchCount" in names
    assert "ImageClustering" not in names


def test_ranks_have_bars_and_errata_footnotes(page: Path, opened: Opened) -> None:
    tab = opened(page, MIEB)
    models(tab)
    assert tab.locator("td.rank svg rect.interval").count() == 38
    assert "tie group" in (tab.locator("td.rank svg").first.get_attribute("aria-label") or "")
    assert tab.locator("ol.footnotes li").count() > 0
    assert tab.locator("td sup").count() > 0


def test_a_board_says_who_leads_and_what_its_signs_mean(page: Path, opened: Opened) -> None:
    tab = opened(page, MIEB)
    models(tab)
    finding = tab.locator(".finding").inner_text()
    assert re.fullmatch(
        r"voyage-multimodal-3 leads with 63.8 points, but \d+ others cannot be told apart from it: "
        r"its rank lies between 1 and \d+ \(95 %\)\.",
        finding,
    )
    legend = tab.locator(".legend").inner_text()
    for words in ("95 % interval", "cannot be told apart", "worst to best of the column", "footnote"):
        assert words in legend


def test_groups_stand_above_their_tasks_which_lead_to_their_pages(page: Path, opened: Opened) -> None:
    tab = opened(page, f"{MIEB}?cols=all")
    models(tab)
    widths = tab.locator("tr.spans th").evaluate_all("heads => heads.map(head => [head.innerText, head.colSpan])")
    groups = dict(widths[1:])
    assert len(groups) == len(widths) - 1  # the tasks of a group lie side by side
    assert groups["ImageClustering"] == 5
    assert sum(groups.values()) == 130
    tab.get_by_role("link", name="About CVBenchCount", exact=True).focus()  # beneath the names, unless one scrolls
    tab.keyboard.press("Enter")
    tab.get_by_role("heading", name="CVBenchCount").wait_for()
    assert opened(page, MIEB).locator("tr.spans").count() == 0


def test_filters_are_cleared_and_pinned_models_compared(page: Path, opened: Opened) -> None:
    tab = opened(page, f"{MIEB}?q=siglip&size=100–500 M&sort=model&dir=asc")
    few = models(tab)
    tab.get_by_role("button", name=f"Pin {few[0]}", exact=True).click()
    assert tab.get_by_role("link", name="Compare the").count() == 0
    tab.get_by_role("button", name=f"Pin {few[1]}", exact=True).click()
    tab.get_by_role("button", name="Clear filters").click()
    assert len(models(tab)) == 48
    assert models(tab)[:2] == few[:2]
    assert "sort=model" in tab.url
    tab.get_by_role("link", name="Compare the 2 pinned").click()
    tab.get_by_role("heading", name=" against ".join(name.rpartition("/")[2] for name in few[:2])).wait_for()


def test_a_comparison_shows_flips_before_a_task_is_chosen(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/compare/Pocket")
    tab.locator("#flips article").first.wait_for()
    assert tab.get_by_role("img", name=re.compile("^pocket better on")).count() == 1
    tab.get_by_label("Model 3").locator("option").first.wait_for(state="attached")
    assert tab.get_by_label("Model 3").locator("option").first.inner_text() == "add a model"


def test_languages_have_their_names(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/plots/MIEB(Multilingual)?plot=languages")
    tab.get_by_role("rowheader", name="French fra").wait_for()
    tab.get_by_role("link", name="Scaling").click()
    tab.get_by_text("for ten times the parameters").first.wait_for()


def test_csv_and_latex_are_copied(page: Path, opened: Opened) -> None:
    tab = opened(page, MIEB, permissions=["clipboard-read", "clipboard-write"])
    models(tab)
    tab.get_by_role("button", name="Copy CSV").click()
    tab.get_by_text("copied").wait_for()
    rows = list(csv.reader(io.StringIO(tab.evaluate("navigator.clipboard.readText()"))))
    assert rows[0][:5] == ["rank", "model", "source", "tasks", "mean"]
    assert len(rows) == 49
    board = embark.leaderboard("MIEB(Multilingual)")
    assert [float(row[4]) for row in rows[1:]] == [entry.model.mean.value for entry in board.entries]
    tab.get_by_role("button", name="Copy LaTeX").click()
    wait_until(tab, "navigator.clipboard.readText().then(text => text.startsWith('\\\\begin{tabular}'))")


@pytest.mark.parametrize("task", ["PocketFlagCapital", "PocketMomentRetrieval", "PocketSpokenGroupZeroShot"])
def test_flips_show_media_that_load(page: Path, opened: Opened, task: str) -> None:
    tab = opened(page, "#/compare/Pocket")
    tab.get_by_role("button", name=task).click()
    flips = tab.locator("#flips")
    flips.locator("article").first.wait_for()
    assert flips.get_by_text("only pocket is right on").count() == 1
    assert flips.locator(".answer.right").count() >= 1
    assert flips.locator(".answer.wrong").count() >= 1
    assert flips.locator("ol.top").first.locator("li").count() >= 4
    pictures = flips.locator("img")
    for number in range(pictures.count()):
        pictures.nth(number).scroll_into_view_if_needed()
    wait_until(tab, "[...document.querySelectorAll('#flips img')].every(image => image.naturalWidth > 8)")
    wait_until(tab, "[...document.querySelectorAll('#flips audio')].every(sound => sound.duration > 0.1)")
    assert bool(flips.locator("audio").count()) == (task == "PocketSpokenGroupZeroShot")
    if task == "PocketMomentRetrieval":
        flips.get_by_role("button", name="Play").first.click()
        wait_until(tab, "document.querySelector('#flips .film input').value > 0")
    if task == "PocketFlagCapital":
        assert pictures.count() > 0


def test_a_task_page_has_protocol_items_and_scores(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/task/PocketMomentRetrieval")
    tab.get_by_role("heading", name="The hardest items").wait_for()
    text = tab.locator("main").inner_text()
    assert "fingerprint" in text
    assert "Apache-2.0" in text
    assert "Scores of 2 models" in text
    tab = opened(page, "#/task/VidoreDocVQARetrieval")
    tab.get_by_role("heading", name=re.compile("Scores of [34][0-9] models")).wait_for()


def test_a_model_page_has_card_profile_and_failures(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/model/embark%2Fhandmade?task=PocketFlagCapital")
    tab.locator("article").first.wait_for()
    text = tab.locator("main").inner_text()
    assert "on 3 tasks" in text
    assert "items a second" in text
    assert tab.locator(".answer.wrong").count() >= 1


def test_a_model_page_has_the_examination_and_the_verdict(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/model/embark%2Fpocket")
    tab.get_by_text("embark/pocket: no fault found.").wait_for()
    text = tab.locator("main").inner_text()
    assert "no faults" in text
    assert "reproduced" in text
    assert "revision" in text
    assert tab.get_by_role("region", name="Examination of embark/pocket").get_by_text("deterministic").count() > 0
    tab = opened(page, "#/model/embark%2Fhandmade")
    tab.get_by_text("No examination is kept").wait_for()


def test_sweeps_are_beside_the_runs_and_a_hostile_figure_is_inert(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/run")
    tab.locator("details.report").first.wait_for()
    addresses: list[str] = []
    tab.on("request", lambda request: addresses.append(request.url))
    for summary in tab.locator("details.report > summary").all():
        summary.click()
    figures = tab.locator("img.figure")
    wait_until(tab, "document.querySelectorAll('img.figure').length === 2")
    for number in range(2):
        figures.nth(number).scroll_into_view_if_needed()
    wait_until(tab, "[...document.querySelectorAll('img.figure')].every(image => image.naturalWidth > 8)")
    assert "</script><script>alert(4)</script>" in tab.locator("main").inner_text()
    assert tab.locator("main script, main img[src=x]").count() == 0
    assert not [url for url in addresses if url.startswith("http")]


def test_runs_have_their_costs(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/run")
    table = tab.get_by_role("region", name="Runs with results")
    table.wait_for()
    heads = table.locator("thead th").all_inner_texts()
    cells = table.locator("tbody tr").first.locator("th, td").all_inner_texts()
    row = dict(zip(heads, cells, strict=True))
    assert row["Tasks"] == "3"
    assert row["Took"].endswith("s")
    assert row["CPU hours"]
    assert row["GPU hours"] == "0"
    assert tab.locator(".run h2").first.inner_text().startswith("embark/pocket, embark/handmade on 3 tasks")


def test_a_profile_is_a_radar_if_asked(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/plots/MIEB(Multilingual)?plot=profile")
    tab.get_by_label("Drawn as").select_option("radar")
    tab.get_by_role("img", name=re.compile("as a radar")).wait_for()
    assert "shape=radar" in tab.url
    assert tab.locator("polygon.ring").count() == 4
    assert tab.locator("g.line path").count() == 6


def test_names_of_points_lie_off_the_front_and_off_each_other(page: Path, opened: Opened) -> None:
    tab = opened(page, "#/plots/MIEB(Multilingual)?plot=parameters")
    tab.wait_for_selector("svg.chart text.name")
    crossings = tab.evaluate(
        """() => {
          const boxes = [...document.querySelectorAll('svg.chart text.name')].map(name => name.getBBox());
          const path = document.querySelector('path.stair');
          const within = (box, x, y) =>
            x > box.x && x < box.x + box.width && y > box.y + 3 && y < box.y + box.height - 3;
          let count = 0;
          for (let at = 0; at < path.getTotalLength(); at++) {
            const {x, y} = path.getPointAtLength(at);
            count += boxes.some(box => within(box, x, y));
          }
          const apart = (a, b) => a.x + a.width < b.x || b.x + b.width < a.x ||
            a.y + a.height < b.y + 4 || b.y + b.height < a.y + 4;
          return count + boxes.filter((box, i) => boxes.some((other, j) => j < i && !apart(box, other))).length;
        }"""
    )
    assert tab.locator("text.name").count() >= 6
    assert crossings == 0


def test_light_and_dark_differ_and_are_remembered(page: Path, opened: Opened) -> None:
    tab = opened(page, "", color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(color)
    tab.get_by_role("button", name="Light").click()
    wait_until(tab, f"{color} !== '{dark}'")
    tab.reload()
    tab.wait_for_selector("main h1")
    assert tab.evaluate(color) != dark


def test_on_a_phone_nothing_is_wider_than_the_screen(page: Path, opened: Opened) -> None:
    for place in VIEWS:
        tab = opened(page, place, viewport={"width": 375, "height": 700})
        tab.wait_for_load_state()
        assert tab.evaluate("document.documentElement.scrollWidth") <= 376, place
        tab.context.close()


def test_the_keyboard_alone_searches_moves_pins_and_opens(page: Path, opened: Opened) -> None:
    tab = opened(page, MIEB)
    models(tab)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent").strip() == "Skip to the content"
    tab.keyboard.press("/")
    tab.keyboard.type("clip")
    wait_until(tab, "document.querySelectorAll('tbody tr').length < 48")
    tab.locator("tbody th a").first.focus()
    tab.keyboard.press("ArrowDown")
    second = models(tab)[1]
    assert tab.evaluate("document.activeElement.textContent") == second
    tab.keyboard.press("p")
    tab.wait_for_selector("tr.pinned")
    assert models(tab)[0] == second
    tab.locator("tbody th a").first.focus()
    tab.keyboard.press("Enter")
    tab.get_by_role("heading", name=second).wait_for()


def test_the_keyboard_alone_goes_through_all_views(page: Path, opened: Opened) -> None:
    def press_until(condition: str, key: str = "Tab") -> None:
        for _ in range(60):
            tab.keyboard.press(key)
            if tab.evaluate(condition):
                return
        raise AssertionError(f"never reached: {condition}")

    tab = opened(page, "#/board/Pocket")
    models(tab)
    for view in ("Plots", "Compare", "Tasks", "Models", "Runs"):
        tab.evaluate("document.activeElement.blur()")
        press_until(f"document.activeElement.matches('nav a') && document.activeElement.textContent === '{view}'")
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        tab.keyboard.press("Enter")
        tab.get_by_role("heading", level=1, name=view).wait_for()
        tab.wait_for_timeout(300)
    press_until("document.activeElement.matches('details.report > summary')")
    tab.keyboard.press("Enter")
    tab.locator("details.report[open] table").first.wait_for()
    press_until("document.activeElement.matches('details.report [role=region]')")
    tab.goto(f"{page.as_uri()}/index.html#/plots/MIEB(Multilingual)?plot=profile")
    tab.get_by_label("Drawn as").focus()
    press_until("location.hash.includes('shape=radar')", "ArrowDown")
    tab.goto(f"{page.as_uri()}/index.html#/compare/Pocket")
    tab.get_by_role("button", name="PocketMomentRetrieval").wait_for()
    press_until("document.activeElement.textContent === 'PocketMomentRetrieval'")
    tab.keyboard.press("Enter")
    tab.locator("#flips article").first.wait_for()
    press_until("document.activeElement.textContent === 'Play'")
    tab.keyboard.press("Space")
    wait_until(tab, "document.querySelector('#flips .film input').value > 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Path, opened: Opened, scheme: str) -> None:
    serious = {}
    for place in VIEWS:
        tab = opened(page, place, color_scheme=scheme, bypass_csp=True)  # axe adds styles
        tab.wait_for_timeout(300)
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        findings = tab.evaluate("axe.run(document, {preload: false}).then(results => results.violations)")
        serious[place] = [
            (finding["id"], finding["nodes"][0]["html"][:200])
            for finding in findings
            if finding["impact"] in ("serious", "critical")
        ]
        tab.context.close()
    assert not {place: findings for place, findings in serious.items() if findings}


def test_hostile_names_are_inert(
    tiny: embark.Encoder, pictures: Callable[..., Path], tmp_path: Path, opened: Opened
) -> None:
    table = "file,caption,label\n" + "".join(
        f'{name}.png,"{name} </script><script>alert(1)</script>",{name}\n' for name in ("red", "green", "blue")
    )
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    [task] = embark.folder_task(pictures("Pages", table), kinds="retrieval")[:1]
    embark.evaluate(tiny, [task], name=HOSTILE, settings=settings, show_progress=False)
    folder = embark.site.export(tmp_path / "page", include="own", settings=settings).folder
    tab = opened(folder, permissions=["clipboard-read", "clipboard-write"])
    assert models(tab) == ["=1+1<img src=x onerror=alert(1)>\\u202e"]
    tab.get_by_role("button", name="Copy CSV").click()
    tab.get_by_text("copied").wait_for()
    rows = list(csv.reader(io.StringIO(tab.evaluate("navigator.clipboard.readText()"))))
    assert rows[1][1] == "'=1+1<img src=x onerror=alert(1)>\\u202e"
    tab.locator("tbody th a").first.click()
    tab.get_by_role("heading", name="=1+1<img").wait_for()
    tab.goto(f"{folder.as_uri()}/index.html#/compare")
    tab.get_by_text("nothing to compare it with").wait_for()
    tab.goto(f"{folder.as_uri()}/index.html#/plots")
    tab.get_by_text("the three models that a plot needs").wait_for()
    tab.goto(f"{folder.as_uri()}/index.html#/task/{task.name}")
    tab.locator("article q").first.wait_for()
    assert "</script><script>alert(1)</script>" in tab.locator("main").inner_text()
    assert tab.locator("main script, main img[src=x]").count() == 0


@pytest.mark.parametrize("name", ["\ud800 half", "__proto__", "long " + 100_000 * "x"], ids=["half", "proto", "long"])
def test_odd_names_break_no_view(
    tiny: embark.Encoder, pictures: Callable[..., Path], tmp_path: Path, opened: Opened, name: str
) -> None:
    settings = load_settings(tmp_path / "home", tmp_path / "results")
    embark.evaluate(tiny, embark.folder_task(pictures(), kinds="retrieval"), settings=settings, show_progress=False)
    folder = embark.site.export(tmp_path / "page", include="own", settings=settings).folder
    for path in (folder / "data").rglob("*.js"):  # no results have such names: somebody wrote them into the page
        path.write_text(path.read_text().replace('"test/tiny"', json.dumps(name)))
    for place in ("#/board", "#/compare", "#/model", "#/task/PagesRetrieval", "#/run?task=PagesRetrieval"):
        tab = opened(folder, place, viewport={"width": 375, "height": 700})
        tab.get_by_text(name.strip("\ud800")[:5]).first.wait_for(state="attached")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 376, place
    tab = opened(folder, "#/model")
    tab.locator("table.board tbody a").first.click()
    tab.get_by_role("heading", name="Card").wait_for()


def test_a_served_page_follows_a_run(pocket_page: Path, opened: Opened) -> None:
    settings = load_settings(pocket_page / "home", pocket_page / "results")
    server = embark.site.serve("ARK", port=0, settings=settings)
    Thread(target=server.serve_forever, daemon=True).start()
    embedded = iter(range(10, 10_000))
    stage = {"name": "embed", "unit": "items", "done": 3, "total": 9, "count": "3 of 9 items", "speed": "", "left": ""}
    state = {"title": "my/model", "seconds": 1, "reused": 7, "stages": [stage], "status": ""}
    state |= {"scores": [], "skipped": []}
    try:
        with state_file(settings, "followed", lambda: {**state, "embedded": next(embedded)}):
            tab = opened(server.address, "#/run")
            tab.get_by_text("running").wait_for()
            tab.get_by_text("3 of 9 items").wait_for()
            before = tab.locator(".run .tiles").first.inner_text()
            wait_until(tab, f"document.querySelector('.run .tiles').innerText !== {json.dumps(before)}")
        tab.get_by_text("ended", exact=True).first.wait_for()
    finally:
        server.shutdown()
        server.server_close()
        (settings.home / "runs" / "followed.json").unlink(missing_ok=True)


def test_nothing_but_its_own_files_may_be_loaded(page: Path, opened: Opened) -> None:
    tab = opened(page)
    policy = tab.locator('meta[http-equiv="Content-Security-Policy"]').get_attribute("content")
    assert policy.startswith("default-src 'none'")
    assert json.dumps(policy).find("unsafe") < 0
