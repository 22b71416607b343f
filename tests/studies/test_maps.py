"""Maps of vectors that fall into known groups."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cases import slow
from embark.catalogue import UnknownName
from embark.run.embedded_task import Embedded
from embark.studies import maps
from embark.types import EmbarkError, Groups, Qrels
from embedded import embedded, gaussian


def grouped(items: int = 120, groups: int = 3) -> Embedded:
    label = np.arange(items) % groups
    rows = 6 * gaussian(groups, 16)[label] + gaussian(items, 16, 1)
    return embedded("clustering", Groups(label, tuple(f"group {number}" for number in range(groups))), {"item": rows})


UMAP = pytest.param("umap", marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore")])  # numba warns on import


@pytest.mark.parametrize("method", ["pca", *slow("tsne"), UMAP])
def test_groups_stay_together(method: str) -> None:
    if method == "umap":
        pytest.importorskip("umap")
    layout = maps.lay_out(grouped(), "label", method)
    again = maps.lay_out(grouped(), "label", method)
    np.testing.assert_array_equal(layout.points, again.points)
    centres = np.array([layout.points[layout.groups == name].mean(axis=0) for name in sorted(layout.sizes)])
    near = np.argmin(((layout.points[:, None] - centres) ** 2).sum(axis=2), axis=1)
    assert (np.array(sorted(layout.sizes))[near] == layout.groups).all()
    assert layout.trust > 0.8


def test_rare_labels_are_one_group() -> None:
    layout = maps.lay_out(grouped(160, 16), "label", "pca")
    assert len(layout.sizes) == maps.LABELS + 1
    assert layout.sizes["4 others"] == 40


def test_sides_are_sampled_alike() -> None:
    rows = gaussian(700, 8)
    truth = Qrels(np.arange(700), np.arange(700), np.ones(700, int))
    layout = maps.lay_out(embedded("retrieval", truth, {"query": rows, "document": rows}), method="pca")
    assert layout.sizes == {"query (text)": 700, "document (image)": 700}
    assert len(layout.points) == 2 * maps.ITEMS
    half = maps.ITEMS
    np.testing.assert_allclose(layout.points[:half], layout.points[half:], atol=1e-5)


def test_what_cannot_be_drawn() -> None:
    truth = Qrels(np.arange(9), np.arange(9), np.ones(9, int))
    task = embedded("retrieval", truth, {"query": gaussian(9, 4), "document": gaussian(9, 4)})
    with pytest.raises(EmbarkError, match="have no labels"):
        maps.lay_out(task, "label")
    with pytest.raises(UnknownName, match="method for maps"):
        maps.lay_out(task, method="som")
    with pytest.raises(EmbarkError, match="at least five"):
        maps.plane(gaussian(4, 3), "pca")


def test_the_table_and_the_plot(tmp_path: Path) -> None:
    layout = maps.lay_out(grouped(), "label", "pca")
    study = maps.Maps((layout, layout, layout))
    assert [row.cells for row in study.table().rows] == [(f"group {number}", 40, 40) for number in range(3)]
    study.plot(tmp_path / "map.svg")
    words = (tmp_path / "map.svg").read_text()
    assert all(f"group {number}" in words for number in range(3))


def test_umap_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not installed
    with pytest.raises(EmbarkError, match=r"embark-bench\[maps\]"):
        maps.lay_out(grouped(), method="umap")
