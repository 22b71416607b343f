"""Models by groups of tasks: means, ranks and medians by hand, and the drawings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embark.boards.aggregate import standings
from embark.catalogue import UnknownName
from embark.results import Record, TaskResult
from embark.studies.groups import Heatmap, Profile, field_of, heatmap, profile
from embark.types import Source, Task


def task(name: str, category: str) -> Task:
    return Task(name, "Test", "retrieval", "none", Source("test/data", "1"), "accuracy", category, ("text",))


TASKS = (task("Flags", "Retrieval"), task("Names", "Retrieval"), task("Clocks", "Reading"))


def result(model: str, name: str, score: float) -> TaskResult:
    ends = (score - 0.1, score + 0.1)
    record = Record(model, "1", name, "test", "default", ("eng",), "accuracy", score, ends, {}, "p", "e")
    return TaskResult(model, "1", name, "1", (record,), score, ends, 0.0)


RESULTS = [
    *(result("org/a", name, score) for name, score in (("Flags", 0.2), ("Names", 0.4), ("Clocks", 0.9))),
    *(result("org/b", name, score) for name, score in (("Flags", 0.6), ("Names", 0.8), ("Clocks", 0.1))),
    result("org/c", "Flags", 1.0),  # which has a part of a group
]


def test_means_over_other_tasks_have_a_number_and_no_color() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    study = heatmap("UniBench")
    study.draw(figure)
    [axes] = figure.axes
    groups = ["total", *study.groups]
    shades = np.ma.getmaskarray(np.ma.masked_invalid(axes.images[0].get_array()))
    assert shades[:, groups.index("total")].all()  # over 41 and over 1 of the 53 tasks
    assert shades[:, groups.index("Reasoning")].all()
    assert not shades[0, groups.index("Texture")]
    assert sum(text.get_text() == "71" for text in axes.texts) == 3  # still with their numbers: two means, and a group


def test_models_by_category_are_a_heat_map(tmp_path: Path) -> None:
    field = field_of(TASKS, standings(TASKS, RESULTS), "category")
    study = Heatmap("category", field.groups, field.models)
    frame = study.to_frame()
    assert frame["model"].tolist() == ["org/a", "org/b", "org/c"]  # by total, those with gaps last
    assert frame["Retrieval"].tolist() == pytest.approx([0.3, 0.7, 1.0])
    assert frame["Reading"].tolist()[:2] == [0.9, 0.1]
    assert "over 1 of 2 tasks" in str(study)
    reading = field.models[0].groups["Reading"]  # one task: its own interval
    assert (reading.low, reading.high) == pytest.approx((0.8, 1.0))
    study.plot(tmp_path / "heat.svg")
    assert "Reading" in (tmp_path / "heat.svg").read_text()
    with pytest.raises(UnknownName, match="Did you mean category"):
        field_of(TASKS, standings(TASKS, RESULTS), "categry")


def test_a_profile_stands_against_the_field(tmp_path: Path) -> None:
    field = field_of(TASKS, standings(TASKS, RESULTS), "category")
    study = Profile("category", field.groups, field.only("org/a").models, field.models)
    rows = study.to_frame().to_dict("records")
    retrieval, reading = rows
    assert (retrieval["score"], retrieval["median"], retrieval["rank"]) == pytest.approx((0.3, 0.5, 2))  # without c
    assert (reading["score"], reading["median"], reading["rank"]) == pytest.approx((0.9, 0.5, 1))
    assert "2 of 2" in str(study)
    study.plot(tmp_path / "profile.svg")
    assert "median of all" in (tmp_path / "profile.svg").read_text()


def test_published_models_by_type() -> None:
    study = heatmap("MIEB(lite)", by="type", models="*siglip*384*")
    assert study.models[0].model == "google/siglip-so400m-patch14-384"
    best = profile("MIEB(lite)")
    assert len(best.models) == 5
    assert best.notes[-1] == f"The 5 best of {len(best.field)} models; -m (models in Python) names others."
