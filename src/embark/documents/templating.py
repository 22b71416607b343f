"""Jinja2 templates in which every text is escaped for the format of the document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).with_name("templates")
# In LaTeX, braces are everywhere.
LATEX = {
    "block_start_string": "<%", "block_end_string": "%>", "variable_start_string": "<<", "variable_end_string": ">>",
    "comment_start_string": "<#", "comment_end_string": "#>",
}  # fmt: skip


class Raw(str):
    """Text that is in the format of the document already."""

    __slots__ = ()


def render(
    template: str,
    escape: Callable[[str], str],
    filters: Mapping[str, Callable[[Any], str]],
    **values: Any,
) -> str:
    """A document of a template by its name; what `filters` return is in the format already."""

    def escaped(value: object) -> str:
        return value if isinstance(value, Raw) else escape(str(value))

    syntax: dict[str, Any] = LATEX if template.endswith(".tex") else {}
    environment = Environment(  # `finalize` escapes, for every format
        loader=FileSystemLoader(TEMPLATES), finalize=escaped, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, **syntax,
    )  # fmt: skip
    environment.filters["raw"] = Raw
    for name, function in filters.items():
        environment.filters[name] = _raw(function)
    return environment.get_template(template).render(**values)


def _raw(function: Callable[[Any], str]) -> Callable[[Any], Raw]:
    return lambda value: Raw(function(value))
