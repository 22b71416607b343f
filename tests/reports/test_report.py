"""Reports: the numbers of the board in every format, texts from outside that stay texts, and the same bytes twice."""

from __future__ import annotations

import base64
import csv
import io
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.ft2font import FT2Font
from PIL import Image
from typer.testing import CliRunner

import embark
from color_models import COLORS, model
from embark.catalogue import UnknownName
from embark.cli import app
from embark.documents import (
    DOCUMENT_PARTS,
    Bullets,
    Commands,
    Definitions,
    Document,
    NamedTable,
    Paragraph,
    Section,
)
from embark.redaction import redacted_value, this_machine
from embark.reports.comparisons import difference_figures
from embark.results import Results
from embark.stats.compare import compare_results
from embark.tables import Row, Score, Table, longtable, shown
from embark.types import Benchmark, EmbarkError
from folders import two_tasks

TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "nav", "a", "section", "figure",
    "figcaption", "div", "table", "thead", "tbody", "tr", "th", "td", "small", "br", "wbr", "img", "ul", "li", "dl",
    "dt", "dd", "pre", "code", "b",
}  # fmt: skip
EM, PAGE = 8.5, 483.7  # points: of the small type of tables, and 170 mm
HOSTILE = "evil/$x_{2$ <script>alert(1)</script> [a](b) *|* \\input{/etc/passwd} ‮é 日本 & -- #1 %"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> embark.Settings:
    """Results of three models, one with a hostile name, on three tasks, one with a hostile name."""
    root = tmp_path_factory.mktemp("report")
    settings = embark.load_settings(root / "home", root / "results")
    folder = root / "Holiday"
    folder.mkdir()
    lines = ["file,caption,label"]
    for number in range(24):
        color, rgb = list(COLORS.items())[number % 4]
        Image.new("RGB", (4, 4), tuple(max(0, value - 2 * number) for value in rgb)).save(folder / f"{number:02}.png")
        lines.append(f"{number:02}.png,{color} page {number},{color}")
    (folder / "metadata.csv").write_text("\n".join(lines))
    pairs = [(f"{color} {number}", f"a {color} page {number}") for number in range(5) for color in COLORS]
    named = embark.task(pairs, "retrieval", name="Pairs_<b>&$_%{")
    models = [model("test/sharp", 0.1), model(HOSTILE, 6.0), model("test/blind", 40.0)]
    embark.evaluate(models, [*two_tasks(folder), named], settings=settings, show_progress=False)
    return settings


@pytest.fixture(scope="module")
def written(scored: embark.Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report on all three."""
    folder = tmp_path_factory.mktemp("written") / "report"
    paths = embark.report(settings=scored).write(folder)
    assert all(path.is_file() for path in paths)
    return folder


class Elements(HTMLParser):
    """The tags of a page, and the values of those attributes that could load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.loaded: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        assert not [name for name, _ in attrs if name.startswith("on")]


def test_the_page_needs_no_other_file(written: Path) -> None:
    page = (written / "report.html").read_text()
    elements = Elements(page)
    assert not elements.tags.keys() & {"script", "link", "iframe", "object", "embed", "form", "base", "a:"}
    assert all(value.startswith(("data:image/svg+xml;base64,", "#")) for value in elements.loaded)
    assert not re.search(r"url\(|@import", page)
    images = [value for value in elements.loaded if value.startswith("data:")]
    drawn = sorted((written / "figures").glob("*.svg"))
    inlined = sorted(base64.b64decode(value.partition(",")[2]) for value in images)
    assert inlined == sorted(path.read_bytes() for path in drawn)
    assert {path.stem for path in drawn} >= {"scores-by-category", "differences-1", "differences-2"}


def test_numbers_are_those_of_the_board(scored: embark.Settings, written: Path) -> None:
    board = embark.leaderboard(include="own", settings=scored)
    texts = {name: (written / f"report.{name}").read_text() for name in ("html", "md", "tex")}
    for entry in board.entries:
        for score in (entry.model.mean, *entry.model.tasks.values()):
            assert shown(score, marks=False) in texts["html"]
            assert shown(score, marks=False).replace("[", "\\[").replace("]", "\\]") in texts["md"]
    rows = list(csv.DictReader(io.StringIO((written / "tables" / "leaderboard.csv").read_text())))
    assert [float(row["mean"]) for row in rows] == [entry.model.mean.value for entry in board.entries]
    assert [row["tie"] for row in rows] == [entry.place.tie for entry in board.entries if entry.place]
    prints = {record.fingerprint for e in board.entries for r in e.model.results.values() for record in r.records}
    assert all(fingerprint in text for fingerprint in prints for text in texts.values())
    assert str(scored.results.parent) not in "".join(texts.values())  # reports are public, folders are not


def test_two_reports_are_the_same_text(scored: embark.Settings, written: Path) -> None:
    document = redacted_value(embark.report(settings=scored).document, this_machine(), DOCUMENT_PARTS)
    texts = (document.markdown(), document.latex(), document.bibliography)
    files = ("report.md", "report.tex", "references.bib")
    assert texts == tuple((written / name).read_text() for name in files)


@pytest.mark.slow
def test_two_reports_are_the_same_bytes(scored: embark.Settings, written: Path, tmp_path: Path) -> None:
    embark.report(settings=scored).write(tmp_path)
    files = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {path.relative_to(written): path.read_bytes() for path in written.rglob("*") if path.is_file()}
    assert len(files) > 15


def test_the_summary_has_an_interval_and_tells_ties(scored: embark.Settings) -> None:
    report = embark.report(settings=scored)
    text = report.document.sections[0].blocks[0].text  # type: ignore[union-attr]
    best = report.board.entries[0]
    mean = f"{100 * best.model.mean.value:.1f} points (95 % interval"
    assert text.startswith(f"test/sharp has the highest mean of categories over 3 tasks: {mean}")
    second = report.board.entries[1].model.mean
    lead = 100 * (best.model.mean.value - second.value)
    assert f"follows with {100 * second.value:.1f} points (95 % interval" in text
    assert f": a lead of {lead:.1f} is more than chance would make." in text


def test_hostile_names_are_inert(written: Path) -> None:
    page = (written / "report.html").read_text()
    assert set(Elements(page).tags) <= TAGS
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.replace("<wbr>", "")
    markdown = (written / "report.md").read_text()
    assert not [line for line in markdown.splitlines() if "<script" in line and not line.startswith("    ")]  # code
    assert "](b)" not in markdown.replace("\\](b)", "")
    assert "‮" not in page + markdown
    check_latex((written / "report.tex").read_text())


def check_latex(text: str) -> None:
    """Environments and braces close, table rows have their cells, and no command is from outside."""
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", text):
        assert kind == "begin" or opened.pop() == name
        opened += [name] * (kind == "begin")
    assert not opened
    plain = re.sub(r"\\[\\{}]", "", text)
    assert plain.count("{") == plain.count("}")
    assert "\\input" not in text
    for layout, body in re.findall(r"\\begin\{longtable\}\{(.*?)\}\n(.*?)\\end\{longtable\}", text, flags=re.S):
        kinds = re.findall(r">\{\\raggedright\\arraybackslash\}p\{([\d.]+)em\}|[lr]", layout)
        lines = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        rows = [re.split(r"(?<!\\)&", line) for line in lines]
        assert {len(row) for row in rows} == {len(kinds)}
        columns = zip(kinds, zip(*rows, strict=True), strict=True)
        widths = [float(wrapped) * EM if wrapped else max(map(printed_width, cells)) for wrapped, cells in columns]
        assert sum(widths) + 8 * len(widths) <= PAGE, body[:200]


@cache
def computer_modern() -> FT2Font:
    """The font of LaTeX, as matplotlib brings it; at 8.5 points it is as wide as the one for 8 points."""
    font = FT2Font(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "cmr10.ttf"))
    font.set_size(EM, 72 * 64)
    return font


def printed_width(cell: str) -> float:
    """The points that a cell of a table takes, without its commands."""
    text = re.sub(r"\\(allowbreak ?|midrule|mathbf)", "", cell)
    text = re.sub(r"\\text\w+\{\}|\\pm", "+", text).replace("--", "-")
    computer_modern().set_text(re.sub(r"[^ -~]|[\\${}]", "", text).strip())
    return float(computer_modern().get_width_height()[0]) / 64 / 64


def test_the_latex_compiles(written: Path, tmp_path: Path) -> None:
    if not (pdflatex := shutil.which("pdflatex")):  # its structure is checked above
        return
    folder = shutil.copytree(written, tmp_path / "report")
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "report.tex"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert (folder / "report.pdf").stat().st_size > 10_000


def test_one_model_has_nothing_to_compare_with(scored: embark.Settings, tmp_path: Path) -> None:
    report = embark.report(models="test/sharp", settings=scored)
    report.write(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert text.startswith("# test/sharp on chosen tasks\n")
    assert "there is one model here" in text
    assert not list(tmp_path.glob("figures/differences*"))


def test_missing_scores_are_told_with_their_command(scored: embark.Settings, tmp_path: Path) -> None:
    report = embark.report(models=["test/sharp", "openai/clip-vit-base-patch32"], tasks="Holiday*", settings=scored)
    assert "missing: openai/clip-vit-base-patch32 has no score at all" in report.notes
    [command] = report.missing
    assert command.startswith("embark run -t HolidayRetrieval")
    assert command.endswith("-m openai/clip-vit-base-patch32")
    assert f"    {command}" in report.document.markdown()
    tasks = [*embark.get_tasks("PocketFlagZeroShot"), *embark.load_results(tasks="Holiday*", settings=scored).tasks]
    lacking = embark.report(models="test/blind", tasks=tasks, settings=scored)
    assert "missing: test/blind: PocketFlagZeroShot" in lacking.notes


def test_what_cannot_be_reported_is_told_in_words(scored: embark.Settings, tmp_path: Path) -> None:
    with pytest.raises(EmbarkError, match=r"has no scores on Pocket in .* embark run -b Pocket -m embark/pocket"):
        embark.report("Pocket", models="embark/pocket", settings=with_pocket(scored, tmp_path))
    with pytest.raises(EmbarkError, match=r"There are no results for Pocket in .* Make some: embark run -b 'Pocket'"):
        embark.report("Pocket", settings=scored)
    with pytest.raises(UnknownName, match="Did you mean test/sharp"):
        embark.report(models="test/shrp", settings=scored)
    with pytest.raises(EmbarkError, match="No task was chosen"):
        embark.report(Benchmark("Empty", "Own", ()), settings=scored)
    (tmp_path / "file").touch()
    with pytest.raises(EmbarkError, match="is a file"):
        embark.report(settings=scored).write(tmp_path / "file")


def test_samples_and_lone_scores_are_told_in_words(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    embark.evaluate("embark/random", "PocketClockReading", limit=20, settings=settings, show_progress=False)
    counted = r"samples, made with --limit, do not count: 1"
    with pytest.raises(EmbarkError, match=counted):
        embark.report(settings=settings)
    with pytest.raises(EmbarkError, match=counted) as told:
        embark.report("Pocket", settings=settings)
    assert "--include", "own" not in str(told.value)  # which has nothing to rank, either
    embark.evaluate("embark/random", "PocketClockReading", settings=settings, show_progress=False)
    embark.evaluate("embark/handmade", "PocketClockArithmetic", settings=settings, show_progress=False)
    apart = embark.report(settings=settings).document.markdown()
    assert "No model has scores on enough of the 2 tasks to be ranked. " in apart
    assert "others, has 1 score, with a mean of" in apart


def with_pocket(scored: embark.Settings, folder: Path) -> embark.Settings:
    """A folder with a result on one of Pocket's tasks."""
    settings = embark.load_settings(folder / "home", folder / "results")
    embark.evaluate("embark/random", "PocketClockReading", settings=settings, show_progress=False)
    return settings


def test_without_matplotlib_there_are_no_figures(
    scored: embark.Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embark.reports.report.find_spec", lambda name: None)
    report = embark.report(settings=scored)
    report.write(tmp_path)
    assert any("matplotlib" in note for note in report.notes)
    assert not (tmp_path / "figures").exists()
    assert "Figure" not in (tmp_path / "report.html").read_text()


def test_published_models_break_over_pages(tmp_path: Path) -> None:
    """48 models × 130 tasks: eight tables of six models, which longtable breaks."""
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    report = embark.report("MIEB(Multilingual)", settings=settings)
    latex = report.document.latex()
    check_latex(latex)
    names = [table.name for table in report.document.tables]
    assert names.count("leaderboard") == 1
    assert [name for name in names if name.startswith("tasks")] == [f"tasks-{number}" for number in range(1, 9)]
    [first] = [table for table in report.document.tables if table.name == "tasks-1"]
    assert len([row for row in first.table.rows if not row.total]) == 130
    assert first.whole is not None
    assert len(first.whole.columns) == 3 + 48
    assert "mieb-collapsed-probe" in latex
    assert "eprint = {2504.10471}" in report.document.bibliography
    assert "Models 43 to 48 of 48." in report.document.markdown()
    assert "nothing to compare" in report.document.markdown()


@pytest.mark.slow
def test_the_largest_report_is_written_and_compiles(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    embark.report("MIEB(Multilingual)", settings=settings).write(tmp_path / "report")
    assert (tmp_path / "report" / "report.html").stat().st_size < 5_000_000
    test_the_latex_compiles(tmp_path / "report", tmp_path / "compiled")


def test_own_models_stand_among_published_ones(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    printed = embark.load_results("ARK", include="published", settings=settings).results
    best = {task: max(r.score for r in printed if r.task == task) for task in {result.task for result in printed}}
    for result in {result.task: result for result in printed}.values():
        mine = replace(result, model="me/model", revision="1", made_by="mteb", score=best[result.task], date=1.0)
        Results(settings.results).write(mine, None)
    report = embark.report("ARK", settings=settings)
    assert [entry.model.model for entry in report.board.entries] == ["me/model"]
    [table] = [table for table in report.document.tables if table.name == "published"]
    model = table.table.columns.index("model")
    names = [row.cells[model] for row in table.table.rows]
    assert names[0] == "me/model"
    assert len(names) == 10
    assert "Scored on 1970-01-01" in report.document.markdown()
    other = embark.report("ARK", models=["me/model", printed[0].model], include="all", settings=settings)
    assert {entry.model.source for entry in other.board.entries} == {"mteb", "published"}
    alone = embark.report("ARK", include="own", settings=settings)
    assert "published" not in [table.name for table in alone.document.tables]


def test_scores_that_are_not_numbers_are_no_scores(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    result = embark.load_results("ARK", include="published", settings=settings).results[0]
    broken = replace(result, model="me/model", revision="1", made_by="mteb", score=float("nan"))
    Results(settings.results).write(broken, None)
    with pytest.raises(EmbarkError, match="There are no results for ARK"):
        embark.report("ARK", include="own", settings=settings)


def test_differences_of_many_tasks_take_several_drawings(scored: embark.Settings) -> None:
    results = embark.load_results(include="own", settings=scored)
    sharp, blind = ([r for r in results.results if r.model == name] for name in ("test/sharp", "test/blind"))
    comparison = compare_results(sharp, blind, results.tasks)
    many = embark.types.Comparison(
        "a", "b", comparison.pairs * 31, comparison.categories, comparison.total, comparison.refused
    )
    figures = list(difference_figures(many, 0))
    assert [figure.name for figure in figures] == ["differences-1-1", "differences-1-2", "differences-1-3"]
    assert sum(len(figure.drawing.pairs) for figure in figures) == 93  # type: ignore[attr-defined]
    assert max(figure.drawing.size[1] for figure in figures) < 11


def test_the_command_writes_the_report(scored: embark.Settings, tmp_path: Path) -> None:
    words = ["report", "-t", "Holiday*", "-m", "test/*", "-o", str(tmp_path / "out"), "--results", str(scored.results)]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.exception
    assert ran.stdout.startswith(f"The report is {tmp_path}/out/report.html, with report.md, report.tex, figures")
    assert (tmp_path / "out" / "report.tex").is_file()


def test_lines_of_markdown_stay_text() -> None:
    texts = ("# x", "- x", "1. x", "> x", "```x", "=== x", "+ x", "    x", "![x](y)", "---")
    blocks = (*map(Paragraph, texts), Bullets(texts), Definitions("# x", (("- a", "# b"),)), Commands(("a\nb",)))
    text = Document("# t", ("- b",), (Section("1. s", blocks),)).markdown()
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# \\# t", "## 1\\. 1\\. s", "### \\# x"]
    assert not [line for line in lines if re.match(r"(?:\+|>|=|---|```|\d+\.)", line)]
    assert "    a\\nb" in lines


def test_a_wide_table_wraps_words_and_repeats_its_head() -> None:
    rows = tuple(Row((f"Task/{'Name' * 20}{number}", Score(0.5, 0.4, 0.6)), "Section_1") for number in range(3))
    text = longtable(Table(("task", *["score"]), rows, ("note_1",)), "Caption")
    assert text.count(r"\shortstack[l]{task}") == 2  # on the first page, and on others
    assert r"p{" not in longtable(Table(("task", "x"), (Row(("short", 1)),)), "")
    assert r"\raggedright\arraybackslash}p{" in longtable(Table(("a", "b"), (Row(("Ab" * 50, "Cd" * 50)),)), "")
    assert r"\allowbreak" in text
    assert r"\textit{Section\_1}} \\*" in text.splitlines()[-7]  # on the page of its first row
    assert r"note\_1" in text


def test_a_table_in_pieces_has_no_best_score() -> None:
    table = Table(("task", "a", "b"), (Row(("x", Score(0.5, 0.4, 0.6), Score(0.6, 0.5, 0.7))),))
    assert r"\mathbf{60.0}" in longtable(table, "")
    pieces = NamedTable("x", "", Table(table.columns, table.rows, highlight=False))
    assert r"\mathbf" not in longtable(pieces.table, "")
    assert "<b>" not in pieces.table.format("html")
