"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import embark

PUBLIC = [
    "EmbarkError",
    "Encoder",
    "Item",
    "ModelCard",
    "Recommendation",
    "Run",
    "Stages",
    "Study",
    "Task",
    "analyze",
    "encoder",
    "evaluate",
    "folder_task",
    "from_mteb",
    "from_open_clip",
    "from_sentence_transformers",
    "generator",
    "get_benchmark",
    "get_model",
    "get_tasks",
    "load_tasks",
    "recommend",
    "reranker",
]


def test_the_export_list_is_this_one() -> None:
    assert embark.__all__ == PUBLIC
    assert dir(embark) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_each_name_can_be_imported(name: str) -> None:
    found: dict[str, object] = {}
    exec(f"from embark import {name}", found)
    assert found[name] is getattr(embark, name)
    assert found[name].__doc__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'embark' has no attribute 'evalute'"):
        _ = embark.evalute


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert embark.__version__ == version("embark")


def loaded_with(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"sklearn", "scipy", "PIL", "pyarrow", "torch", "pandas", "matplotlib"}
    assert not loaded_with("embark") & {*heavy, "numpy", "typer", "rich"}
    assert not loaded_with("embark.cli") & heavy
