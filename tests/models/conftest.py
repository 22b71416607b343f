"""What tests of models share: providers on this machine, and torchvision for those that need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from api_server import FakeProvider, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """All providers at one address of this machine."""
    with serving(monkeypatch) as served:
        yield served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses torchvision is marked so: make test-all runs it apart, for transformers works otherwise beside it."""
    for item in items:
        if "torchvision" in getattr(item, "fixturenames", ()):
            item.add_marker("torchvision")


@pytest.fixture(scope="session")
def torchvision() -> Any:
    """torchvision, which timm and open_clip import.

    Beside a torch without CUDA the wheel's operators do not load, and its import fails where it describes two of them.
    Once they are declared it works but for these operators, which nothing here calls.
    """
    torch = pytest.importorskip("torch")
    try:
        return pytest.importorskip("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        module = pytest.importorskip("torchvision")
        module.declared = library  # kept: the declaration goes with it
        return module
