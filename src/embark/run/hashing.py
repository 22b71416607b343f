"""Hashes of media by processes, for models whose device several threads drive: these would wait for those that hash."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from threading import Lock

from embark.items import as_items
from embark.items.lazy_media import Scan
from embark.models.encoder import Encoder, unchanged
from embark.processes import POSSIBLE, SINGLE_THREADED, NoWorkers, Workers
from embark.settings import cores
from embark.types import Dataset, Item

FEWEST_CORES = 8
MOST_PROCESSES = 8  # else one for two cores: eight hash twice as many pictures as an H200 embeds in the same time
ENOUGH_BLOCKS = 10  # blocks of media, which make up for the start of processes


class HashingProcesses(AbstractContextManager["HashingProcesses"]):
    """Processes that read media and keep their hashes on disk, where keys find them; started when they are needed."""

    def __init__(self) -> None:
        self._workers: Workers | None = None
        self._lock = Lock()
        self._possible = POSSIBLE and cores() >= FEWEST_CORES

    def hash(self, data: Dataset, encoder: Encoder) -> None:
        """Have the hashes of a dataset's media computed, if they are many and threads drive the encoder's device."""
        if self._possible and encoder.capabilities.lanes > 1:
            self.scan(side.items for side in data.sides.values())

    def scan(self, sides: Iterable[Sequence[Item]]) -> None:
        """Compute the hashes of media in larger files that are not on disk; what fails is left to who needs them."""
        scans = [scan for items in sides for scan in as_items(items).scans() if isinstance(scan, Scan)]
        missing = [scan for scan in scans if not scan.is_done()]
        if len(missing) < (ENOUGH_BLOCKS if self._workers is None else 1):
            return
        try:
            workers = self._started()
            for future in [workers.submit([scan]) for scan in missing]:
                future.exception()
        except NoWorkers:
            self._possible = False

    def _started(self) -> Workers:
        with self._lock:
            if self._workers is None:
                processes = min(MOST_PROCESSES, cores() // 2)
                self._workers = Workers([partial(unchanged, operator.call)] * processes, environment=SINGLE_THREADED)
            return self._workers

    def __exit__(self, *error: object) -> None:
        if self._workers is not None:
            self._workers.close()
