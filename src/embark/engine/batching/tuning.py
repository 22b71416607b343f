"""Batch sizes that were fastest, remembered by model, device and kind of item: the next call begins with them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from embark.atomic import atomically
from embark.engine.batching.batches import BatchSize
from embark.protocol import vector_space
from embark.settings import cores
from embark.types import Modality, ModelCard

MOST_ENTRIES = 1000  # entries of the file; the oldest are forgotten


class Tuning(AbstractContextManager["Tuning"]):
    """The batch sizes of this process by model, device and kind; with a `path`, begun from that file and written to it
    at the end of a `with` block.

    The file may be deleted at any time: it only saves the first batches of a run.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._sizes: dict[str, BatchSize] = {}

    def size(self, card: ModelCard, kind: Sequence[Modality]) -> BatchSize:
        """The batch size of a model for a kind of item; the same object in every call."""
        name = f"{vector_space(card)} {device_name(card)} {'+'.join(kind)}"
        if name not in self._sizes:
            self._sizes[name] = _size(self._read().get(name))
        return self._sizes[name]

    def save(self) -> None:
        """Write what was learned to the file, beside what others have written; a folder that is read-only is left."""
        learned = {name: _entry(size) for name, size in self._sizes.items() if size.fastest}
        if self.path is None or not learned:
            return
        with suppress(OSError):
            known = self._read()
            if any(known.get(name) != entry for name, entry in learned.items()):
                entries = {name: entry for name, entry in known.items() if name not in learned} | learned
                with atomically(self.path) as file:
                    file.write(json.dumps(dict(list(entries.items())[-MOST_ENTRIES:]), indent=1).encode())

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.save()

    def _read(self) -> dict[str, Any]:
        """What the file says; nothing where it is missing or damaged."""
        if self.path is not None:
            with suppress(OSError, ValueError, RecursionError):
                entries = json.loads(self.path.read_bytes())
                return entries if isinstance(entries, dict) else {}
        return {}


def device_name(card: ModelCard) -> str:
    """The device of a loaded model, as sizes depend on it: a GPU's product name, else the CPU's number of cores."""
    device = str(card.loaded.get("device", "cpu"))
    compiled = " compiled" if card.loaded.get("compile") is True else ""
    torch = sys.modules.get("torch")
    if device.startswith("cuda") and torch is not None and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name(re.split('[,+]', device)[0])}{compiled}"
    return f"{device} of {cores()} cores{compiled}"


def _entry(size: BatchSize) -> dict[str, int]:
    return {"budget": size.fastest, "unit": size.unit} | ({"limit": size.limit} if size.limit else {})


def _size(entry: Any) -> BatchSize:
    """The size that an entry of the file states, or a new one; it may grow further, up to its limit."""
    numbers = entry if isinstance(entry, dict) else {}
    if not all(type(number) is int and 0 < number < 1 << 62 for number in numbers.values()):
        return BatchSize()
    budget = numbers.get("budget", 0)
    limit = numbers.get("limit")
    if not budget:
        return BatchSize()
    growing = limit is None or budget < limit
    return BatchSize(budget, limit, growing=growing, unit=numbers.get("unit", 1), fastest=budget, warm=False)
