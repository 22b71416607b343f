"""Fault 23: names that no folder can have, or that two names would share."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import embark
from embark.paths import component, original, place
from folders import two_tasks

NAMES = [
    "..", ".", "", "a\0b", "CON", "con", "aux.txt", "a.", "a ", "x" * 300, "x" * 301, "ä" * 150, "a/b", "a__b", "a_/b",
    "a/_b", "a%2Fb", "/etc", "../../x", "a\\b", "a\nb", "\udc80", "Model", "MODEL", "model", "É", "é",
]  # fmt: skip


def test_plain_names_stay_where_they_are() -> None:
    for name in ("org/model", "UniBench/mnist@digit-basic", "local/onnx:x (float16)", "a_b", "local-0f", "Öl~1"):
        assert component(name) == name.replace("/", "__")
    assert all(component(task) == task.replace("/", "__") for task in embark.tasks.TASKS)
    assert all(component(model) == model.replace("/", "__") for model in embark.models.MODELS)


def test_every_name_is_one_folder_of_its_own(tmp_path: Path) -> None:
    for name in NAMES:
        folder = place(tmp_path, name)
        assert folder.parent == tmp_path
        folder.mkdir()  # another's would be an error
        (folder / "name").write_bytes(name.encode("utf-8", "surrogatepass"))
        assert original(folder.name) == name or len(name.encode("utf-8", "surrogatepass")) > 200
    folded = {path.name.casefold() for path in tmp_path.iterdir()}
    assert len(folded) == len(NAMES)  # also where case does not count
    for name in NAMES:  # and each is found again
        assert (place(tmp_path, name) / "name").read_bytes() == name.encode("utf-8", "surrogatepass")
    devices = ("con", "aux.txt")
    assert not folded & set(devices)


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=12), min_size=2, max_size=2, unique=True))
def test_components_are_safe_reversible_and_different(names: list[str]) -> None:
    components = [component(name) for name in names]
    assert components[0] != components[1]
    for name, part in zip(names, components, strict=True):
        assert original(part) == name
        assert part not in ("", ".", "..")
        assert not set(part) & {"/", "\\", "\0"}


def test_alike_names_are_different_components() -> None:
    names = ["".join(letters) for length in range(6) for letters in product("aA_/%.é", repeat=length)]
    assert len(set(map(component, names))) == len(names) > 10_000


@pytest.mark.parametrize(("first", "second"), list(combinations(["test/tiny", "test__tiny", "Test/tiny"], 2)))
def test_results_of_alike_models_lie_apart(
    elsewhere: Path, tiny: embark.Encoder, pictures: object, first: str, second: str
) -> None:
    folder = pictures()  # type: ignore[operator]
    for name in (first, second):
        tiny.card = replace(tiny.card, name=name)
        embark.evaluate(tiny, two_tasks(folder), show_progress=False)
    folders = [path.name for path in (elsewhere / "results").iterdir()]
    assert len({name.casefold() for name in folders}) == 2


def test_tasks_of_alike_names_lie_apart(elsewhere: Path, tiny: embark.Encoder, pictures: object) -> None:
    folder = pictures()  # type: ignore[operator]
    names = ["..", "a/b", "a__b", "A/b", "CON", "n\0l", "x" * 300]
    rows = [replace(two_tasks(folder)[0], name=name) for name in names]
    run = embark.evaluate(tiny, rows, show_progress=False)
    assert not run.skipped
    files = [path for path in (elsewhere / "results").rglob("*.json") if path.name != "model_meta.json"]
    assert len({path.name.casefold() for path in files}) == len(names)
    assert {result.task for result in embark.results.Results(elsewhere / "results").all()} == set(names)
