"""The evaluation of several models over the same tasks, one model after the other; `model_stream` has one of them."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from embark import evaluators
from embark.allocation import keep_freed_memory, return_memory
from embark.engine.activity import SILENT, Activity
from embark.engine.ray.cluster import Cluster
from embark.engine.ray.engine import RayEngine
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.results import CannotSave
from embark.results.task_rows import remember
from embark.run.cluster import cluster_engine, loading_here, remote_scoring
from embark.run.fetching import require_data
from embark.run.ledger import Ledger
from embark.run.model_stream import ModelStream
from embark.run.models import Model, load_model, model_card, model_name
from embark.run.outcome import Run
from embark.run.predictions import TimePrediction, prediction_file
from embark.run.run_state import activity_state, state_file
from embark.run.workbench import Workbench
from embark.stats.means import score
from embark.tables import shown
from embark.threads import rare_garbage_collection
from embark.types import ModelCard, Task


class Evaluation:
    """Several models over the same tasks, on one workbench, into one `Run`.

    `evict`: after the last task of a data set, delete what this run downloaded of it.
    """

    def __init__(
        self,
        bench: Workbench,
        tasks: Sequence[Task],
        models: Sequence[Model],
        rescore: bool = False,
        loading: Loading | None = None,
        evict: bool = False,
        cluster: Cluster | None = None,
    ) -> None:
        self.bench = bench
        self.cluster = cluster
        self.tasks = [bench.row(task) for task in tasks]
        evaluators.check_tasks(self.tasks)
        remember(self.tasks, bench.settings.home)
        self.models = models
        self.rescore = rescore
        self.loading = loading
        self.ledger = Ledger(self.tasks, len(models), bench.settings, bench.hub, evict)
        self.cards: list[ModelCard] = []  # of the models that were loaded
        self._activity = SILENT  # of the present model
        self._gpu_uses: list[tuple[float, int]] = []  # when each model was loaded, and on how many GPUs
        self._start = time.monotonic()
        self._cpu_start = _cpu_seconds()

    def require_data(self) -> None:
        """Offline: refuse to begin where the data of a task is missing that has no result on disk yet."""
        cards = [model_card(model, self.bench.settings) for model in self.models]

        def recorded(task: Task) -> bool:
            results = [card and self.bench.result(self.ledger.folder, card, task) for card in cards]
            return None not in results

        require_data([task for task in self.tasks if self.rescore or not recorded(task)], self.bench.hub)

    def evaluate(self) -> Run:
        """Evaluate the models, one after the other; whatever fails costs tasks, not the run."""
        keep_freed_memory()
        try:
            with rare_garbage_collection(), state_file(self.bench.settings, self.ledger.log.id, self._state):
                for number, model in enumerate(self.models, 1):
                    self._evaluate(number, model)
                    gc.collect()  # what refers to itself still holds the model, and the next one needs its memory
                return self.ledger.run
        finally:
            return_memory()

    def _evaluate(self, number: int, model: Model) -> None:
        """Evaluate one model on the tasks that have no score of it yet."""
        self.ledger.begin_model()
        several = len(self.models) > 1
        heading = f"model {number} of {len(self.models)}, " if several else ""
        try:
            here = loading_here(self.loading) if self.cluster else self.loading
            encoder = load_model(model, here, self.bench.settings)
            self.cards.append(encoder.card)
            self._gpu_uses.append((time.monotonic(), str(encoder.card.loaded.get("device", "")).count("cuda")))
            with (
                Activity(f"{heading}{encoder.card.name}", self.bench.show_progress) as self._activity,
                self._engine(model, encoder) as engine,
            ):
                bench = self.bench.with_tools(
                    activity=self._activity,
                    keep_data=number < len(self.models),
                    engine=engine,
                    score_elsewhere=remote_scoring(self.cluster, self.bench.settings) if self.cluster else None,
                )
                ModelStream(bench, encoder, self.ledger, self.rescore).evaluate(self.tasks)
        except CannotSave:
            raise
        except Exception as error:
            self.ledger.fail(model_name(model), self.ledger.unreported, error)
        self.ledger.end_model()
        self._activity = SILENT

    def _engine(self, model: Model, encoder: Encoder) -> AbstractContextManager[RayEngine | None]:
        """The cluster that embeds for a model; none where this process does."""
        if self.cluster is None:
            return nullcontext()
        return cluster_engine(self.cluster, model, self.loading, self.bench, encoder)

    # ── what the run is doing, for whoever follows it ────────────────────────────────────────────────────────────────

    def _state(self) -> dict[str, Any]:
        run = self.ledger.run
        with self.ledger.lock:
            scores = [(result.model, result.task, shown(score(result), marks=False)) for result in self.ledger.scored]
            skipped = [(skip.model, skip.task, skip.kind, skip.why) for skip in run.skipped]
        return {
            "seconds": round(time.monotonic() - self._start, 1),
            "cpu_seconds": round(_cpu_seconds() - self._cpu_start, 1),
            "gpu_seconds": None if self.cluster else round(self._gpu_seconds(), 1),
            "predicted": self._predicted_seconds(),
            "models": [model_name(model) for model in self.models],
            "tasks": len(self.tasks),
            "embedded": run.embedded,
            "reused": self.ledger.reused,
            "scores": scores,
            "skipped": skipped,
            **activity_state(self._activity),
        }

    def _gpu_seconds(self) -> float:
        """How long the GPUs of this machine were held: each by a model, until the next one is loaded."""
        ends = [*(start for start, _ in self._gpu_uses[1:]), time.monotonic()]
        return sum(gpus * (end - start) for (start, gpus), end in zip(self._gpu_uses, ends, strict=False))

    def _predicted_seconds(self) -> float | None:
        """What a plan predicted for a run that did just this; None before it is done."""
        prediction = TimePrediction.load(prediction_file(self.bench.settings, self.cards, self.tasks))
        run = (self.ledger.run.computed, self.ledger.run.embedded)
        return prediction.seconds if prediction and run == (prediction.scores, prediction.embedded) else None


def _cpu_seconds() -> float:
    """The time that the cores have worked for this process, and for those of its processes that have ended."""
    return sum(os.times()[:4])
