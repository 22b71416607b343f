"""What tests of models share: providers on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api_server import FakeProvider, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """All providers at one address of this machine."""
    with serving(monkeypatch) as served:
        yield served
