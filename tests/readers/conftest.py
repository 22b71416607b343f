"""What tests of readers share: a way to publish tables and read them back as a task."""

from __future__ import annotations

from typing import Any

import pytest

from embark import readers
from embark.types import Dataset, Source, Task
from hub import FakeHub, client, parquet
from tables import Make


@pytest.fixture
def read(hub: FakeHub) -> Make:
    """Publishes tables and reads them as a task: read(reader, evaluator, {path: columns}, **fields of the row)."""

    def make(reader: str, evaluator: str, files: dict[str, Any], subset: str = "default", **more: Any) -> Dataset:
        published = {path: parquet(held) if isinstance(held, dict) else held for path, held in files.items()}
        revision = hub.add("org/data", published, card=more.pop("card", ""))
        source = Source("org/data", revision, more.pop("config", None), splits=("test",))
        row = {"category": "", "modalities": ("image", "text"), "subsets": {subset: ("eng-Latn",)}, **more}
        task = Task("T", "MIEB", evaluator, reader, source, "m", **row)
        return readers.read(task, "test", subset, client())

    return make
