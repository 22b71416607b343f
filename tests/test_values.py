"""Public values: their `repr` fits on a screen; pandas and readers of Arrow's stream read results as columns."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import shutil
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

import embark
from embark import analyze, public
from embark.boards.comparable_results import load_results
from embark.studies import STUDIES
from embark.tables import Brief, Columnar, Interval, Row, Score, Table, Tabular
from embark.tables.drawing import Drawn
from matrix import every

LINES, CHARACTERS = 24, 120
LITE = "MIEB(lite)"
FLAGS, NAMES = "PocketFlagZeroShot", "PocketNameToImage"
MODELS = ["embark/handmade", "embark/random"]
ABSTRACT = {"Analysis", "Diagnosis", "Encoder", "Generator", "Reranker"}
# What is not made of scores, or costs more than a test: their classes are checked, and tests of their own make them.
BY_CLASS = {
    "ArkDiagnosis", "CardSection", "CheckReport", "CostReport", "Facts", "FetchReport", "Flips", "Imported",
    "Measurement", "OmniDiagnosis", "OmniSet", "PublishedCheck", "Reference", "StoreHealth", "Upload", "VectorFile",
    "Verification",
}  # fmt: skip


def all_classes() -> list[type[Any]]:
    """Every class of ours that is printed in brief; models are none, and need libraries that may not be installed."""
    for module in pkgutil.walk_packages(embark.__path__, "embark."):
        if not module.name.startswith(("embark.models.", "embark.__main__")):
            importlib.import_module(module.name)
    classes = [Brief]
    for known in classes:
        classes += [found for found in known.__subclasses__() if found not in classes]
    return classes[1:]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory, pocket_vectors: Path) -> embark.Settings:
    """Results of two models on two tasks."""
    home = shutil.copytree(pocket_vectors, tmp_path_factory.mktemp("values") / "home")
    settings = embark.load_settings(home, home / "results")
    embark.evaluate(MODELS, [FLAGS, NAMES], settings=settings, show_progress=False)
    return settings


RESULTS: dict[str, Callable[[embark.Settings], Any]] = {
    "Comparison": lambda here: embark.compare(*MODELS, settings=here),
    "Examination": lambda here: embark.doctor(settings=here),
    "Leaderboard": lambda here: embark.leaderboard(LITE, settings=here),
    "Matrix": lambda here: analyze.correlate(LITE, settings=here).matrix,
    "PlanReport": lambda here: embark.plan("embark/random", FLAGS, settings=here),
    "Ranking": lambda here: next(iter(embark.exchange.rank("embark/random", NAMES, settings=here))),
    "Recommendation": lambda here: embark.recommend(["retrieval"], settings=here),
    "Report": lambda here: embark.report(tasks=[FLAGS, NAMES], settings=here),
    "ResultSet": lambda here: load_results(LITE, settings=here),
    "Run": lambda here: embark.evaluate(MODELS, FLAGS, settings=here, show_progress=False),
    "Table": lambda here: embark.leaderboard(LITE, settings=here).table(),
}
PARTS: dict[str, Callable[[embark.Settings], Any]] = {
    "Benchmark": lambda here: max(embark.get_benchmarks(), key=lambda benchmark: len(benchmark.tasks)),
    "Task": lambda here: max(embark.get_tasks(), key=lambda task: len(repr(task))),
    "ModelCard": lambda here: max(embark.get_models(), key=lambda card: len(repr(card))),
    "TaskResult": lambda here: max(load_results(LITE).results, key=lambda result: len(repr(result))),
    "Record": lambda here: max(load_results(LITE).results, key=lambda result: len(result.records)).records[0],
    "Item": lambda here: embark.types.Item(
        (embark.types.Media("image", (b"\xff" * 100_000,)), embark.types.Text("a" * 100))
    ),
}


def fits_a_screen(text: str) -> bool:
    return sum(1 + len(line) // CHARACTERS for line in text.splitlines()) <= LINES


def test_every_public_result_type_is_checked() -> None:
    found = {
        name
        for names in (public.TOP, *public.NOUNS.values())
        for name, home in names.items()
        if inspect.isclass(value := getattr(importlib.import_module(f"embark.{home}"), name))
        and issubclass(value, Columnar)
    }
    assert found == {*RESULTS, *BY_CLASS, *(found & ABSTRACT)}


@every(all_classes())
def test_results_print_in_brief(result: type[Any]) -> None:
    """Data classes have a `repr` of all their fields, unless their class has one of its own."""
    assert not hasattr(result.__repr__, "__wrapped__"), "made by dataclasses"
    if not is_dataclass(result):
        assert result in (Columnar, Tabular, Drawn) or result.__repr__ is not Brief.__repr__


@every([STUDIES[name] for name in STUDIES.own])
def test_what_studies_return_is_read_as_columns(study: Any) -> None:
    returned = get_type_hints(study.function)["return"]
    assert all(issubclass(member, Columnar) for member in get_args(returned) or (returned,))


@pytest.mark.parametrize("name", [*RESULTS, *PARTS])
def test_a_repr_is_a_screen_at_most(name: str, scored: embark.Settings) -> None:
    value = (RESULTS | PARTS)[name](scored)
    assert type(value).__name__ == name
    assert fits_a_screen(repr(value))
    assert name in repr(value)


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_read_without_pandas(name: str, scored: embark.Settings) -> None:
    """The Arrow stream has what the data frame has; a result that has a table prints it."""
    value = RESULTS[name](scored)
    names, lines = value.flat()
    table = pa.RecordBatchReader.from_stream(value).read_all()
    assert table.column_names == names == list(value.to_frame().columns)
    assert table.num_rows == len(lines) == len(value.to_frame()) > 0
    assert table.equals(value.to_arrow())
    if isinstance(value, Tabular):
        assert str(value.table()) in str(value)


def test_columns_keep_numbers_and_mixed_ones_are_words() -> None:
    rows = (
        Row(("a", 1, Score(0.5, 0.4, float("nan")), Interval(0.1, 0.2, "[10, 20]"), "–")),
        Row(("b", None, None, None, 2.5)),
    )
    table = Table(("name", "n", "score", "95 %", "mixed"), rows).to_arrow()
    assert table.to_pydict() == {
        "name": ["a", "b"],
        "n": [1, None],
        "score": [0.5, None],
        "score low": [0.4, None],
        "score high": [None, None],
        "95 % low": [0.1, None],
        "95 % high": [0.2, None],
        "mixed": ["–", "2.5"],
    }
    assert Table(("name",), ()).to_arrow().column_names == ["name"]


def test_a_repr_names_short_values_and_counts_long_ones() -> None:
    matrix = embark.types.Matrix(("a", "b"), (), np.ones((2, 3)))
    assert repr(matrix) == "<Matrix: models=('a', 'b'), 2 × 3 values, rule=mean-of-categories>"
