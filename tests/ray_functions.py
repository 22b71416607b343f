"""What actors of tests do; in a module of its own, because they import it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np

import embark
from embark.data.lazy_items import Texts, text_array
from embark.models.encoder import Encoder
from embark.planning import Needs, plan, task_demand
from embark.types import Dataset, Groups, Side, Source, Task


def lengths(seconds: float = 0.0, log: str = "", fails: bool = False) -> Encoder:
    """A model of the length of a text, which takes so long for each; it logs its node, process and how many it embeds.

    A text that is "hang" never ends, one that is "kill" ends the process.
    """

    def embed(texts: list[str]) -> Any:
        time.sleep(seconds * len(texts))
        if fails:
            raise ValueError("a broken model")
        if "kill" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        while "hang" in texts:
            time.sleep(1)
        if log:
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{node()} {os.getpid()} {len(texts)}\n")
        return np.array([[len(text), text.count("a") + 1] for text in texts], np.float32)

    return embark.encoder(text=embed, name="test/lengths", revision="1")


def node() -> str:
    """The node of this actor."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def needs_of_texts(count: int, *more: str) -> Needs:
    """So many texts that are to be embedded, and others."""
    texts = [f"text {row} {'a' * (row % 50)}" for row in range(count)] + list(more)
    count = len(texts)
    side = Side(tuple(map(str, range(count))), Texts(text_array(texts)))
    task = Task("Items", "Own", "clustering", "labelled", Source("items", "1"), "nmi", "clustering", ())
    data = Dataset({"item": side}, Groups(np.zeros(count, np.int64), ("all",)))
    return plan([task_demand(task, "test", "default", data, lengths())], lambda keys: np.zeros(len(keys), bool)).needs
