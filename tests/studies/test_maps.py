"""Maps of vectors that fall into known groups."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from embark.catalogue import UnknownName
from embark.run.embedded_task import Embedded
from embark.studies import maps
from embark.types import EmbarkError, Groups, Qrels
from embedded import embedded, gaussian


def grouped(items: int = 120, groups: int = 3) -> Embedded:
    label = np.arange(items) % groups
    rows = 6 * gaussian(groups, 16)[label] + gaussian(items, 16, 1)
    return embedded("clustering", Groups(label, tuple(f"group {at}" for at in range(groups))), {"item": rows})


UMAP = pytest.param("umap", marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore")])  # numba warns on import


@pytest.mark.parametrize("method", ["tsne", "pca", UMAP])
def test_groups_stay_together(method: str) -> None:
    if method == "umap":
        pytest.importorskip("umap")
    found = maps.map_of(grouped(), "label", method)
    again = maps.map_of(grouped(), "label", method)
    np.testing.assert_array_equal(found.points, again.points)
    centres = np.array([found.points[found.groups == name].mean(axis=0) for name in sorted(found.of)])
    near = np.argmin(((found.points[:, None] - centres) ** 2).sum(axis=2), axis=1)
    assert (np.array(sorted(found.of))[near] == found.groups).all()
    assert found.trust > 0.8


def test_rare_labels_are_one_group() -> None:
    found = maps.map_of(grouped(110, 11), "label", "pca")
    assert len(found.of) == maps.GROUPS + 1
    assert found.of["4 others"] == 40


def test_sides_are_sampled_alike() -> None:
    rows = gaussian(700, 8)
    truth = Qrels(np.arange(700), np.arange(700), np.ones(700, int))
    found = maps.map_of(embedded("retrieval", truth, {"query": rows, "document": rows}), method="pca")
    assert found.of == {"query (text)": 700, "document (image)": 700}
    assert len(found.points) == 2 * maps.ITEMS
    half = maps.ITEMS
    np.testing.assert_allclose(found.points[:half], found.points[half:], atol=1e-5)


def test_what_cannot_be_drawn() -> None:
    truth = Qrels(np.arange(9), np.arange(9), np.ones(9, int))
    task = embedded("retrieval", truth, {"query": gaussian(9, 4), "document": gaussian(9, 4)})
    with pytest.raises(EmbarkError, match="have no labels"):
        maps.map_of(task, "label")
    with pytest.raises(UnknownName, match="method for maps"):
        maps.map_of(task, method="som")
    with pytest.raises(EmbarkError, match="at least five"):
        maps.plane(gaussian(4, 3), "pca")


def test_the_table_and_the_plot(tmp_path: Path) -> None:
    found = maps.map_of(grouped(), "label", "pca")
    study = maps.study([found, found, found])
    assert [row.cells for row in study.table.rows] == [(f"group {at}", 40, 40) for at in range(3)]
    study.save(tmp_path / "map.svg")
    words = (tmp_path / "map.svg").read_text()
    assert all(f"group {at}" in words for at in range(3))


def test_umap_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not installed
    with pytest.raises(EmbarkError, match=r"embark\[maps\]"):
        maps.map_of(grouped(), method="umap")
