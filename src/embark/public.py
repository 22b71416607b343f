"""The public names: those at the top of `embark` and those by noun (`embark.store.size`), each with its module.

A name is loaded at first use, so that `import embark` costs nothing, and a noun can have functions of later rooms.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

TOP = {
    "Cluster": "engine.ray.cluster",
    "EmbarkError": "types",
    "Encoder": "models.encoder",
    "Loading": "models.loading",
    "Monitor": "studies.monitor",
    "Settings": "settings",
    "Stages": "run.stages",
    "compare": "stats.compare",
    "cost": "run.costs",
    "doctor": "run.examination",
    "encoder": "models.functions",
    "evaluate": "run",
    "fetch": "run.fetching",
    "folder_task": "own.folder",
    "get_benchmark": "tasks",
    "get_benchmarks": "tasks",
    "get_model": "models",
    "get_models": "models",
    "get_tasks": "own.names",
    "leaderboard": "boards.leaderboards",
    "load_results": "boards.comparable_results",
    "load_settings": "settings",
    "load_tasks": "own.tasks_file",
    "plan": "run.plans",
    "recommend": "studies.recommend",
    "report": "reports.report",
    "show": "boards.facts",
    "task": "own.make_task",
    "verify": "verification",
}
NOUNS: dict[str, dict[str, str]] = {
    "analyze": {  # and a function for each study
        "diagnose_ark": "studies.ark",
        "diagnose_omni": "studies.omni",
        "run": "analyze",
    },
    "exchange": {
        "card": "exchange.card_section",
        "export_inputs": "exchange.recording_inputs",
        "export_mteb": "exchange.scores",
        "export_vectors": "exchange.vector_files",
        "import_results": "exchange.scores",
        "import_vectors": "exchange.vector_files",
        "push": "exchange.upload",
        "rank": "exchange.ranked_lists",
    },
    "models": {
        "Generator": "models.encoder",
        "Reranker": "models.encoder",
        "from_mteb": "models.interop",
        "from_open_clip": "models.interop",
        "from_sentence_transformers": "models.interop",
        "generator": "models.functions",
        "get_generator": "models",
        "get_reranker": "models",
        "reranker": "models.functions",
    },
    "plugins": {
        "Plugin": "plugins",
        "allow": "plugins",
    },
    "published": {
        "cells": "published",
        "check": "boards.rederive",
        "errata": "published",
        "mark": "published",
        "overview": "published",
        "results": "published",
        "scores": "published",
        "tables": "published",
    },
    "seams": {
        "Evaluator": "seams.evaluator",
        "Files": "seams.reader",
        "Loader": "seams.loader",
        "Reader": "seams.reader",
        "Rule": "seams.rule",
        "Study": "seams.study",
        "Subtotal": "seams.rule",
        "reference": "declarations",
    },
    "site": {
        "export": "site.bundle",
        "save_report": "reports.kept",
        "serve": "site.server",
    },
    "store": {
        "check": "run.store_health",
        "clean": "run.store_health",
        "repair": "run.store_health",
        "size": "run.store_health",
    },
    "tasks": {
        "build_omni": "run.build_omni",
        "check": "run.checking",
        "to_toml": "own.tasks_file",
    },
    "types": {
        "Analysis": "studies.analysis",
        "ArkDiagnosis": "studies.ark",
        "Audio": "types",
        "Benchmark": "types",
        "CardSection": "exchange.card_section",
        "CheckReport": "run.checking",
        "Classes": "types",
        "Comparison": "stats.compare",
        "Content": "types",
        "CostReport": "run.costs",
        "Dataset": "types",
        "Diagnosis": "studies.diagnosis",
        "Encoded": "types",
        "Examination": "run.examination",
        "Facts": "boards.facts",
        "FetchReport": "run.fetching",
        "Flips": "stats.compare",
        "Gold": "types",
        "Groups": "types",
        "Imported": "exchange.scores",
        "Item": "types",
        "Leaderboard": "boards.leaderboards",
        "Matches": "types",
        "Matrix": "boards.matrix",
        "Measurement": "run.live",
        "Media": "types",
        "ModelCard": "types",
        "OmniDiagnosis": "studies.omni",
        "OmniSet": "run.build_omni",
        "Option": "types",
        "PageServer": "site.server",
        "PlanReport": "run.plans",
        "Pool": "types",
        "PublishedCheck": "boards.rederive",
        "Qrels": "types",
        "Ranking": "exchange.ranked_lists",
        "Recommendation": "studies.recommend",
        "Record": "results",
        "RecordingInputs": "exchange.recording_inputs",
        "Reference": "declarations",
        "Rendered": "types",
        "Report": "reports.report",
        "ResultSet": "boards.comparable_results",
        "Run": "run",
        "Score": "tables",
        "Scores": "types",
        "Side": "types",
        "Site": "site.bundle",
        "Source": "types",
        "Split": "types",
        "StoreHealth": "run.store_health",
        "Style": "types",
        "Table": "tables",
        "Task": "types",
        "TaskResult": "results",
        "Text": "types",
        "Upload": "exchange.upload",
        "VectorFile": "exchange.vector_files",
        "Verification": "verification",
    },
}


def load(name: str) -> Any:
    """What stands at the top of `embark` under this name: a noun's module, or what a module has."""
    if name in NOUNS:
        return import_module(f"embark.{name}")
    return _member("embark", name, TOP)


def names_of(noun: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a noun's module: its public names, wherever they are."""
    homes = NOUNS[noun]
    return lambda name: _member(f"embark.{noun}", name, homes), lambda: sorted(homes)


def _member(module: str, name: str, homes: dict[str, str]) -> Any:
    if name not in homes:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    return getattr(import_module(f"embark.{homes[name]}"), name)
