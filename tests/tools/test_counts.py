"""Counts in the README and the documentation are those of the registries."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "counts.py"
spec = importlib.util.spec_from_file_location("counts", TOOL)
assert spec
assert spec.loader
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


@pytest.mark.parametrize("file", tool.SENTENCES)
def test_counts_are_those_of_the_registries(file: str) -> None:
    path = tool.ROOT / file
    assert tool.written()[path] == path.read_text(encoding="utf-8"), "A count differs: run make counts."


def test_a_count_is_replaced_wherever_a_line_breaks() -> None:
    known = {"models": 1234, "silent": 6}
    text = tool.counted("Of all, 5 of\n220 cards state nothing.", "{silent} of {models} cards state nothing", known)
    assert text == "Of all, 6 of\n1,234 cards state nothing."


def test_a_sentence_that_is_gone_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"lacks the sentence '\{models\} models are known'"):
        tool.counted("Many models are known.", "{models} models are known", {"models": 1})
