"""What actors of tests do, and the clusters they do it on; in a module of its own, because actors import it."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.items.lazy_items import Texts, text_array
from embark.models.encoder import Encoder, Tower, Towers
from embark.planning import Needs, plan, task_demand
from embark.protocol import vector_space
from embark.types import Dataset, Groups, ModelCard, Side, Source, Task

MEMORY = {"object_store_memory": 150 << 20}  # of a node


def import_path() -> str:
    """The variable PYTHONPATH with which actors import what tests import, `tests` itself among it."""
    return os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])


@contextmanager
def three_nodes() -> Iterator[Any]:
    """A cluster of three nodes on this machine."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", import_path())
        cluster = Nodes(initialize_head=True, head_node_args={"num_cpus": 2, **MEMORY})
        for _ in range(2):
            cluster.add_node(num_cpus=3, **MEMORY)
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def lengths(
    seconds: float = 0.0, log: str = "", fails: bool = False, reverses: bool = False, prepared: str = ""
) -> Encoder:
    """A model of the length of a text, which takes so long for each; it logs its node, process and how many it embeds.

    In the file `prepared`, it logs the same of every text that it prepares, which then takes as long as embedding it.

    The text "stuck" is never prepared, "hang" never embedded, "kill" ends the process, "large" needs too much memory,
    and about "odd" it logs a warning.
    """

    def embed(texts: list[str]) -> Any:
        time.sleep(seconds * len(texts))
        if fails:
            raise ValueError("a broken model")
        if "odd" in texts:
            logging.getLogger("embark").warning("an odd text")
        if "large" in texts:
            raise MemoryError("out of memory")
        if "kill" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        while "hang" in texts:
            time.sleep(1)
        if log:
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{node()} {os.getpid()} {len(texts)}\n")
        rows = [[len(text), text.count("a") + 1] for text in texts]
        return np.array(rows[::-1] if reverses else rows, np.float32)

    def prepare(text: str) -> str:
        while text == "stuck":
            time.sleep(1)
        if prepared:
            time.sleep(seconds)
            with open(prepared, "a", encoding="utf-8") as file:
                file.write(f"{node()} {os.getpid()} 1\n")
        return text

    card = ModelCard("test/lengths", "1", "functions", ("text",), dim=2)
    return Towers(card, {"text": Tower(embed, prepare)})


def dying(log: str) -> Encoder:
    """A model that ends the process that loads it; logs its node and process."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{node()} {os.getpid()}\n")
    os.kill(os.getpid(), signal.SIGKILL)
    return lengths()


SPACE = vector_space(lengths().card)


def node() -> str:
    """The node of this actor."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def needs_of_texts(count: int, *more: str) -> Needs:
    """So many texts that are to be embedded, and others."""
    texts = [*(f"text {row} {'a' * (row % 50)}" for row in range(count)), *more]
    side = Side(tuple(map(str, range(len(texts)))), Texts(text_array(texts)))
    task = Task("Items", "Own", "clustering", "labelled", Source("items", "1"), "nmi", "clustering", ())
    data = Dataset({"item": side}, Groups(np.zeros(len(texts), np.int64), ("all",)))
    return plan([task_demand(task, "test", "default", data, lengths())], lambda keys: np.zeros(len(keys), bool)).needs
