"""Text from outside (names, notes, labels) made inert for each place that it is printed in."""

from __future__ import annotations

import html as entities
import re
import textwrap

# Characters that move the cursor, color the screen, end the line or turn the direction of writing.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
FORMULAS = tuple("=+-@＝＋－＠")  # what spreadsheets take for the start of a formula
MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*[]|$"} | {"<": "&lt;", ">": "&gt;"})
# What stands before the sign that begins a heading, a list, a rule or a fence.
BEFORE_MARKER = re.compile(r"\s*(?=#{1,6}(?:\s|$)|[+\-=~_])|\s*\d+(?=[.)])")
LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    | {"<": r"\textless{}", ">": r"\textgreater{}"}
    | {sign: f"{{{sign}}}" for sign in "[]*"}  # after the end of a row they would be its arguments
)


def terminal(text: str) -> str:
    r"""One line in which control characters are spelled out: \n, \x1b, \u202e."""
    return CONTROLS.sub(lambda sign: repr(sign[0])[1:-1], text)


def folded(text: str, room: int) -> list[str]:
    """A text as lines of at most `room` characters for a terminal; words and names stay whole."""
    return textwrap.wrap(
        terminal(text), room, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    ) or [""]


def csv(text: str) -> str:
    """A cell that spreadsheets take for text: an apostrophe stands before what they would compute."""
    text = terminal(text)
    return f"'{text}" if text.lstrip().startswith(FORMULAS) else text


def markdown(text: str) -> str:
    """Text that makes no cells, links, code, formulas or HTML; underscores in names stay as they are."""
    return terminal(text).translate(MARKDOWN)


def markdown_line(text: str) -> str:
    """Such text at the beginning of a line, where it makes no heading, list or rule either."""
    line = markdown(text)
    before = BEFORE_MARKER.match(line)
    return f"{before[0]}\\{line[before.end() :]}" if before else line


def latex(text: str) -> str:
    """Text without commands."""
    return terminal(text).translate(LATEX)


def html(text: str) -> str:
    """Text without tags, for elements and quoted attributes."""
    return entities.escape(terminal(text))


def json(text: str) -> str:
    """A JSON document in which the control characters that JSON allows are escaped, so that it may be printed."""
    return CONTROLS.sub(lambda sign: sign[0] if sign[0] == "\n" else f"\\u{ord(sign[0]):04x}", text)
