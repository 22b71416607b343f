"""The public names, and what importing them costs."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import embark
from embark.studies import STUDIES

TOP = [
    "Cluster", "EmbarkError", "Encoder", "Loading", "Monitor", "Settings", "Stages", "analyze", "compare",
    "cost", "doctor", "encoder", "evaluate", "exchange", "fetch", "folder_task", "get_benchmark",
    "get_benchmarks", "get_model", "get_models", "get_tasks", "leaderboard", "load_results", "load_settings",
    "load_tasks", "models", "plan", "plugins", "published", "recommend", "report", "seams", "show", "site",
    "store", "task", "tasks", "types", "verify",
]  # fmt: skip
NOUNS = {
    "analyze": ["diagnose_ark", "diagnose_omni", "run"],
    "exchange": [
        "card", "export_inputs", "export_mteb", "export_vectors", "import_results", "import_vectors", "push",
        "rank",
    ],
    "models": [
        "Generator", "Reranker", "from_mteb", "from_open_clip", "from_sentence_transformers", "generator",
        "get_generator", "get_reranker", "reranker",
    ],
    "plugins": ["Plugin", "allow"],
    "published": ["cells", "check", "errata", "mark", "overview", "results", "scores", "tables"],
    "seams": ["Evaluator", "Files", "Loader", "Reader", "Rule", "Study", "Subtotal", "reference"],
    "site": ["export", "save_report", "serve"],
    "store": ["check", "clean", "repair", "size"],
    "tasks": ["build_omni", "check", "to_toml"],
    "types": [
        "Analysis", "ArkDiagnosis", "Audio", "Benchmark", "CardSection", "CheckReport", "Classes", "Comparison",
        "Content", "CostReport", "Dataset", "Diagnosis", "Encoded", "Examination", "Facts", "FetchReport", "Flips",
        "Gold", "Groups", "Imported", "Item", "Leaderboard", "Matches", "Matrix", "Measurement", "Media",
        "ModelCard", "OmniDiagnosis", "OmniSet", "Option", "PageServer", "PlanReport", "Pool", "PublishedCheck",
        "Qrels", "Ranking", "Recommendation", "Record", "RecordingInputs", "Reference", "Rendered", "Report",
        "ResultSet", "Run", "Score", "Scores", "Side", "Site", "Source", "Split", "StoreHealth", "Style", "Table",
        "Task", "TaskResult", "Text", "Upload", "VectorFile", "Verification",
    ],
}  # fmt: skip
PUBLIC = [*TOP, *(f"{noun}.{name}" for noun, names in NOUNS.items() for name in names)]


def value(name: str) -> Any:
    """A public name, given as `evaluate` or `store.size`."""
    return attrgetter(name)(embark)


def test_the_export_list_is_this_one() -> None:
    assert embark.__all__ == TOP
    assert dir(embark) == TOP
    assert len(TOP) <= 40  # what a user meets first
    assert {noun: dir(getattr(embark, noun)) for noun in NOUNS} == NOUNS | {
        "analyze": sorted([*NOUNS["analyze"], *STUDIES])
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_each_name_can_be_imported(name: str) -> None:
    noun, _, member = name.rpartition(".")
    found: dict[str, object] = {}
    exec(f"from {f'embark.{noun}' if noun else 'embark'} import {member}", found)
    assert found[member] is value(name)
    assert found[member].__doc__


def test_a_name_has_one_home() -> None:
    """No value is public twice, and each has the name that its module gives it."""
    found = {id(value(name)): name for name in PUBLIC}
    assert len(found) == len(PUBLIC)
    assert [name for name in PUBLIC if name not in NOUNS and value(name).__name__ != name.rpartition(".")[2]] == []


def test_no_name_of_a_noun_is_a_module_of_it() -> None:
    """Python would set the module in its place when it is imported."""
    root = Path(embark.__file__).parent
    modules = {f"{path.parent.name}.{path.stem}" for noun in NOUNS for path in (root / noun).glob("*.py")}
    assert modules.isdisjoint(PUBLIC)


def test_type_checkers_see_every_name() -> None:
    root = Path(embark.__file__).parent
    assert sorted(stubs(root / "__init__.pyi")) == TOP
    for noun, names in NOUNS.items():
        path = root / f"{noun}.py" if (root / f"{noun}.py").exists() else root / noun / "__init__.py"
        assert not set(names) - stubs(path), noun


def stubs(path: Path) -> set[str]:
    """The names that a type checker may import from a module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {name.name for name in node.names if name.asname == name.name}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names |= set(ast.literal_eval(node.value))
    return names


def test_help_lists_every_name_with_its_meaning() -> None:
    text = pydoc.plain(pydoc.render_doc(embark))
    listed = set(re.findall(r"\w+(?:\.\w+)?", (embark.__doc__ or "")))
    assert not {f"embark.{name}" if name in NOUNS else name.removeprefix("types.") for name in PUBLIC} - listed
    assert "leaderboard      models ranked, with rank intervals and ties" in text
    assert re.search(r"compare\(\s*a: 'str \| Encoder',\s+b: 'str \| Encoder'", text)  # Python 3.13 breaks lines


def test_functions_and_values_say_what_they_are() -> None:
    for name in PUBLIC:
        public = value(name)
        assert (public.__doc__ or "").strip(), name
        if inspect.isfunction(public):
            assert inspect.signature(public).return_annotation is not inspect.Signature.empty, name


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'embark' has no attribute 'evalute'"):
        _ = embark.evalute  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'embark\.store' has no attribute 'sise'"):
        _ = embark.store.sise  # type: ignore[attr-defined]


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert embark.__version__ == version("embark-bench")


def loaded_with(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"sklearn", "scipy", "PIL", "pyarrow", "torch", "pandas", "matplotlib"}
    assert not loaded_with("embark") & {*heavy, "numpy", "typer", "rich"}
    assert not loaded_with("embark.cli") & heavy
