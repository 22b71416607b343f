"""The public names, and what importing them costs."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import embark

PUBLIC = [
    "Analysis",
    "ArkDiagnosis",
    "Benchmark",
    "CardSection",
    "CheckReport",
    "Cluster",
    "Comparison",
    "Content",
    "CostReport",
    "Diagnosis",
    "EmbarkError",
    "Encoder",
    "Examination",
    "Facts",
    "FetchReport",
    "Flips",
    "Generator",
    "Imported",
    "Item",
    "Leaderboard",
    "Loading",
    "Matrix",
    "Measurement",
    "Media",
    "ModelCard",
    "Monitor",
    "OmniDiagnosis",
    "OmniSet",
    "PageServer",
    "PlanReport",
    "PublishedCheck",
    "Ranking",
    "Recommendation",
    "Record",
    "RecordingInputs",
    "Reference",
    "Rendered",
    "Report",
    "Reranker",
    "ResultSet",
    "Run",
    "Score",
    "Settings",
    "Site",
    "Source",
    "Stages",
    "StoreHealth",
    "Style",
    "Table",
    "Task",
    "TaskResult",
    "Text",
    "Upload",
    "VectorFile",
    "Verification",
    "analyze",
    "build_omni",
    "card",
    "check",
    "check_published",
    "check_store",
    "clean_store",
    "compare",
    "cost",
    "diagnose_ark",
    "diagnose_omni",
    "doctor",
    "encoder",
    "evaluate",
    "export_inputs",
    "export_mteb",
    "export_site",
    "export_vectors",
    "fetch",
    "folder_task",
    "from_mteb",
    "from_open_clip",
    "from_sentence_transformers",
    "generator",
    "get_benchmark",
    "get_benchmarks",
    "get_generator",
    "get_model",
    "get_models",
    "get_reranker",
    "get_tasks",
    "import_results",
    "import_vectors",
    "leaderboard",
    "load_results",
    "load_settings",
    "load_tasks",
    "plan",
    "published",
    "push",
    "rank",
    "recommend",
    "reference",
    "repair_store",
    "report",
    "reranker",
    "save_report",
    "serve",
    "show",
    "store_size",
    "task",
    "to_toml",
    "verify",
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


def test_type_checkers_see_every_name() -> None:
    stub = Path(embark.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r" as (\w+)$", stub, flags=re.M)) == sorted(PUBLIC)


def test_help_lists_every_name_with_its_meaning() -> None:
    text = pydoc.plain(pydoc.render_doc(embark))
    listed = set(re.findall(r"\w+", (embark.__doc__ or "")))
    assert set(PUBLIC) <= listed
    assert "leaderboard      models ranked, with rank intervals and ties" in text
    assert re.search(r"compare\(\s*a: 'str \| Encoder',\s+b: 'str \| Encoder'", text)  # Python 3.13 breaks lines


def test_functions_and_values_say_what_they_are() -> None:
    for name in PUBLIC:
        public = getattr(embark, name)
        assert (public.__doc__ or "").strip(), name
        if inspect.isfunction(public):
            assert inspect.signature(public).return_annotation is not inspect.Signature.empty, name


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'embark' has no attribute 'evalute'"):
        _ = embark.evalute


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
