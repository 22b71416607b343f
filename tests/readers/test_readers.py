"""A reader says what it declares, and is refused where that cannot be; the registry has each by its own name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from embark import readers
from embark.catalogue import Registry
from embark.evaluators import EVALUATORS
from embark.readers import READERS
from embark.seams import Files, Reader
from embark.tasks import TASKS
from embark.types import EmbarkError, Option

VALID = READERS["labelled"]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_serves_evaluators_that_exist_and_says_what_it_reads(name: str) -> None:
    reader = READERS[name]
    assert set(reader.evaluators) <= set(EVALUATORS)
    assert reader.about


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", " ", "its `name` must not be empty"),
        ("name", "a\nb", "its `name` must have letters, digits, dots and dashes alone"),
        ("about", None, "its `about` must be a text, not None"),
        ("read", "module:read", "its `read` must be a function, not 'module:read'"),
        ("external_state", "", "its `external_state` must be a function"),
        ("read_unlabeled", 1, "its `read_unlabeled` must be a function"),
        ("files", None, "its `files` must be a Files, not None"),
        ("files", Files(None), "its `needed` must be a function, not None"),  # type: ignore[arg-type]
        ("evaluators", "sts", "its `evaluators` must be a tuple of texts, not 'sts'"),
        ("evaluators", (), "its `evaluators` must not be empty"),
        ("version", 0, "its `version` must be a whole number from 1, not 0"),
        ("version", True, "its `version` must be a whole number, not True"),
        ("columns", {"image": 1}, "its `columns` must be a table of texts"),
        ("options", {"where": dict}, "its `options` must be a table of Options"),
        ("path_options", ("labels.csv",), "its `path_options` must be names of its options"),
        ("base_option", "reader", "its `base_option` must be one of its options, not 'reader'"),
    ],
)
def test_a_declaration_that_cannot_be_is_an_error_that_names_the_reader(field: str, value: Any, message: str) -> None:
    name = value if field == "name" else "labelled"
    with pytest.raises(EmbarkError, match=rf"^The reader '{name}' is declared wrongly: {message}"):
        replace(VALID, **{field: value})


def test_the_registry_refuses_a_reader_of_another_name() -> None:
    own: dict[str, Reader | str] = {"labeled": "embark.readers.labelled:LABELLED"}
    registry: Registry[Reader] = Registry("reader", own, dict)
    with pytest.raises(EmbarkError, match="as the reader 'labeled', and its name is 'labelled'"):
        registry["labeled"]


def test_a_row_of_conditions_may_have_the_options_of_its_base() -> None:
    task = replace(TASKS["PocketNameSTS"], reader="conditions", options={"reader": "paired"})
    assert readers.options(task) == {**(READERS["conditions"].options or {}), **(READERS["paired"].options or {})}
    assert readers.path_options(replace(task, options={"reader": "ark"})) == ("labels",)
    assert readers.options(replace(task, options={"reader": "pocket-sts"})) is None
    for base in ("conditions", "nothing", ["paired"]):
        row = replace(task, options={"reader": base})
        assert readers.options(row) == READERS["conditions"].options


def test_a_reader_without_files_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(VALID, name="mine", files=Files(), options={"size": Option(int, "Rows.")})
    monkeypatch.setitem(readers.registry.OWN, "mine", own)
    task = replace(TASKS["PocketNameSTS"], reader="mine")
    hub: Any = None
    assert readers.needed_files(task, hub) == []
    assert readers.tables(task, hub) == []
    assert readers.sources(task) == (task.source.id,)
