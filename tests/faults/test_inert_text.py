"""Text from outside is inert wherever it is printed: CSV, Markdown, LaTeX, HTML, JSON, the terminal."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from embark import escape
from embark.cli import main
from embark.cli.output import print_json, say
from embark.documents import Bullets, Commands, Definitions, Document, NamedTable, Paragraph, Section
from embark.engine.progress import progress
from embark.studies.groups import GroupScores, Profile
from embark.tables import NUMBERS, Exact, Row, Score, Table

HOSTILE = (
    "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "<script>alert(1)</script>",
    "[x](javascript:alert(1))", "![x](http://h/x.png)", "<javascript:alert(1)>", r"\input{/etc/passwd}",
    "a~b^c_d&e%f$g#h{i}", "\x1b[2J\x1b]0;owned\x07", "\x9b31m", "\u202egnp.exe\u2066", "two\nlines", "a|b", "\\|",
    r"\write18{ls}", "a\\", "[1ex]", "*", "\u2028", "\x00", "x\x85y", "\ud800",
)  # fmt: skip
SIGNS = "=+-@\t\r\n|\\<[`'\" a"
TEXT = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=())), st.text(SIGNS))


def table(text: str) -> Table:
    first = Row((text, 0.5, Score(0.25, 0.2, 0.3)), text or "none")
    second = Row((Exact(text, text), -1, None), "other", total=True)
    return Table((text, "number", f"score {text}"), (first, second), (text,))


def controls(text: str) -> list[str]:
    """Characters that steer a terminal or turn the direction of writing; the ends of lines are ours."""
    steering = ("Cc", "Cs", "Zl", "Zp")
    turning = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    marks = "\u200e\u200f\u061c"
    return [
        sign
        for sign in text.replace("\n", "")
        if unicodedata.category(sign) in steering or unicodedata.bidirectional(sign) in turning or sign in marks
    ]


@given(TEXT)
@pytest.mark.parametrize("style", ["text", "markdown", "latex", "csv", "json", "html"])
def test_no_format_has_control_characters(style: str, text: str) -> None:
    assert not controls(table(text).format(style))


@given(TEXT)
def test_a_csv_cell_is_the_text_or_its_escape_and_never_a_formula(text: str) -> None:
    names, first, second = csv.reader(io.StringIO(table(text).format("csv"), newline=""), strict=True)
    assert first[:2] == [escape.csv(text), "0.5"]
    assert second[:2] == [escape.csv(text), "-1"]  # numbers stay numbers
    assert names[0] == escape.csv(text)
    assert not first[0].lstrip().startswith(escape.FORMULAS)
    if not controls(text) and "\n" not in text and not text.lstrip().startswith(escape.FORMULAS):
        assert first[0] == text


@given(TEXT)
def test_a_markdown_table_has_its_columns_and_nothing_else(text: str) -> None:
    lines = table(text).format("markdown").split("\n")
    cells = [re.findall(r"(?:\\.|[^|\\])*\|", line) for line in lines[:6]]
    assert {len(line) for line in cells} == {4}  # the first ends before the first cell
    whole = "\n".join(lines)
    assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`]", whole)  # no links, no code
    assert "<" not in whole
    assert len(lines) == 8  # head, rule, two sections, two rows, an empty line, the note


@given(TEXT)
def test_latex_has_no_commands_but_ours(text: str) -> None:
    inert = escape.latex(text)
    commands = re.findall(r"\\(?:[a-zA-Z]+\{\}|.|$)", inert)
    allowed = {f"\\{sign}" for sign in "&%$#_{}"} | {
        rf"\text{name}{{}}" for name in ("backslash", "asciitilde", "asciicircum", "less", "greater")
    }
    assert set(commands) <= allowed
    rest = re.sub(r"\\(?:[a-zA-Z]+\{\}|.)", "", inert)
    assert not set(rest) & set("\\&%$#_~^")
    assert not re.search(r"(?<!\{)[\[*]", rest)  # arguments of the row's end before them
    word = "Word" if text else ""
    assume(text not in NUMBERS)  # columns of these names are set to the right
    assert table(text).format("latex") == table(word).format("latex").replace("Word", inert)


@given(TEXT)
def test_html_has_no_tags_but_ours(text: str) -> None:
    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attributes: object) -> None:
            tags.add(tag)

    tags: set[str] = set()
    Tags().feed(table(text).format("html"))
    assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "b", "p", "small", "br"}


@given(TEXT)
def test_json_keeps_the_text(text: str) -> None:
    content = json.loads(table(text).format("json"))
    assert content["notes"] == [text]


@given(TEXT)
def test_the_text_form_has_one_line_a_row(text: str) -> None:
    note = escape.terminal(text)
    assert "\n" not in note
    lines = str(Table(("name", "number"), (Row((text, 1)), Row(("b", 2))), (text,))).split("\n")
    assert len(lines) == 4
    assert lines[3] == note


@pytest.mark.parametrize("text", HOSTILE)
def test_notes_errors_and_json_reach_the_terminal_inert(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"left out: {text}")
    print_json({"name": text})
    written = capsys.readouterr()
    assert not controls(written.err + written.out)
    assert written.err.count("\n") == 1
    assert json.loads(written.out) == {"name": text}


def test_an_error_names_what_was_typed_and_stays_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["embark", "show", "\x1b[2Jno\u202esuch\nname"])
    with pytest.raises(SystemExit):
        main()
    written = capsys.readouterr().err
    assert not controls(written)
    assert r"\x1b[2Jno\u202esuch\nname" in written


def test_a_progress_line_shows_names_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("embark.engine.progress.QUIET_SECONDS", 0.0)
    with progress("\x1b[2Jmodel [/b]", 2) as advance:
        advance(1)
    assert r" \x1b[2Jmodel [/b]: 1 of 2 items" in capsys.readouterr().err


# ── documents: reports in HTML, Markdown and LaTeX ───────────────────────────────────────────────────────────────────


TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "nav", "a", "section", "figure",
    "figcaption", "div", "table", "thead", "tbody", "tr", "th", "td", "small", "br", "wbr", "ul", "li", "dl", "dt",
    "dd", "pre", "code", "b",
}  # fmt: skip


def document(text: str) -> Document:
    blocks = (
        Paragraph(text), Bullets((text, text)), Definitions(text, ((text, text),)), Commands((text,)),
        NamedTable("name", text, table(text)),
    )  # fmt: skip
    return Document(text, (text,), (Section(text, blocks), Section(text, blocks, appendix=True)))


@given(TEXT)
def test_a_document_has_no_control_characters_and_no_tags_but_ours(text: str) -> None:
    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attributes: object) -> None:
            tags.add(tag)

    tags: set[str] = set()
    whole = document(text)
    page = whole.html({})
    Tags().feed(page)
    assert tags <= TAGS
    assert not controls(page + whole.markdown() + whole.latex())


@given(TEXT)
@example("# a")
@example("+ a")
@example("2) a")
def test_a_markdown_document_has_its_lines_and_no_others(text: str) -> None:
    lines = document(text).markdown().splitlines()
    prose = [line for line in lines if not line.startswith("    ")]  # code is as it was typed
    assert len([line for line in prose if re.match(r"#{1,6}( |$)", line)]) == 5  # the title; twice a section, a heading
    markers = re.compile(r" {0,3}(```|~~~|>|=+ *$|(\* *){3,}$|(_ *){3,}$|\+ |\d+[.)] )")
    assert not list(filter(markers.match, prose))
    assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`]", "\n".join(prose))  # no links, no code
    assert "<" not in "\n".join(prose)


@given(TEXT)
def test_a_latex_document_has_no_commands_but_ours(text: str) -> None:
    def commands(latex: str) -> Counter[str]:
        return Counter(re.findall(r"\\[a-zA-Z]+", latex[latex.index(r"\begin{document}") :]))

    ours = commands(document("Word").latex())
    known = {rf"\text{name}" for name in ("backslash", "asciitilde", "asciicircum", "less", "greater")}
    layout = {r"\allowbreak", r"\raggedright", r"\arraybackslash", r"\multicolumn", r"\textit", r"\addlinespace"}
    assert set(commands(document(text).latex())) - known - layout <= set(ours)


@pytest.mark.parametrize("text", ["\x1b[2J", "\x00", "\uffff", "<b>&", "$x_{$", "two\nlines"])
def test_a_drawing_is_xml_whatever_is_named(text: str) -> None:
    model = GroupScores(text, Score(0.5, 0.4, 0.6), {text: Score(0.5, 0.4, 0.6)})
    image = Profile("category", {text: 1}, (model,), (model,))._image("svg").decode()
    texts = "".join(ElementTree.fromstring(image).itertext())
    assert "\x1b" not in texts
    assert "Scores by category" in texts
