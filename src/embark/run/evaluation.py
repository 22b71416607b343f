"""The evaluation of several models over the same tasks, one model after the other; `model_stream` has one of them."""

from __future__ import annotations

import gc
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from embark.allocation import keep_freed_memory, return_memory
from embark.engine.activity import SILENT, Activity
from embark.engine.ray import RayEngine
from embark.models.encoder import Encoder
from embark.results import CannotSave, TaskResult
from embark.results.table import shown
from embark.run.cluster import cluster_engine, loading_here, remote_scoring
from embark.run.evaluation_state import EvaluationState, cpu_seconds
from embark.run.fetching import require_data
from embark.run.model_stream import ModelStream
from embark.run.models import Model, load_model, model_card, model_name
from embark.run.outcome import Run
from embark.run.predictions import Prediction, prediction_file
from embark.run.run_state import activity_state, state_file
from embark.stats.means import score
from embark.threads import rare_garbage_collection
from embark.types import Task


class Evaluation(EvaluationState):
    """Several models over the same tasks, on one workbench, into one `Run`."""

    def require_data(self) -> None:
        """Offline: refuse to begin where the data of a task is missing that has no result on disk yet."""
        cards = [model_card(model, self.bench.settings) for model in self.models]

        def recorded(task: Task) -> bool:
            return None not in cards and all(self.result(card, task) is not None for card in cards if card)

        require_data([task for task in self.tasks if self.rescore or not recorded(task)], self.bench.hub)

    def evaluate(self) -> Run:
        """Evaluate the models, one after the other; whatever fails costs tasks, not the run."""
        keep_freed_memory()
        try:
            with rare_garbage_collection(), state_file(self.bench.settings, self.log.id, self._state):
                return self._evaluate_all()
        finally:
            return_memory()

    def _state(self) -> dict[str, Any]:
        """What the run is doing, for whoever follows it."""
        with self.lock:
            scores = [(result.model, result.task, shown(score(result), marks=False)) for result in self.scored]
            skipped = [(skip.model, skip.task, skip.kind, skip.why) for skip in self.run.skipped]
        return {
            "seconds": round(time.monotonic() - self.start, 1),
            "cpu_seconds": round(cpu_seconds() - self.cpu_start, 1),
            "gpu_seconds": None if self.cluster else round(self._gpu_seconds(), 1),
            "predicted": self._predicted_seconds(),
            "models": [model_name(model) for model in self.models],
            "tasks": len(self.tasks),
            "embedded": self.run.embedded,
            "reused": self.reused,
            "scores": scores,
            "skipped": skipped,
            **activity_state(self.bench.activity),
        }

    def _gpu_seconds(self) -> float:
        """How long the GPUs of this machine were held: each by a model, until the next one is loaded."""
        ends = [*(start for start, _ in self.gpu_uses[1:]), time.monotonic()]
        return sum(gpus * (end - start) for (start, gpus), end in zip(self.gpu_uses, ends, strict=False))

    def _predicted_seconds(self) -> float | None:
        """What a plan predicted for a run that did just this; None before it is done."""
        prediction = Prediction.load(prediction_file(self.bench.settings, self.cards, self.tasks))
        run = (self.run.computed, self.run.embedded)
        return prediction.seconds if prediction and run == (prediction.scores, prediction.embedded) else None

    def _evaluate_all(self) -> Run:
        for number, model in enumerate(self.models, 1):
            self.bench.heading = f"model {number} of {len(self.models)}, " if len(self.models) > 1 else ""
            self.bench.keep_data = number < len(self.models)
            self._evaluate(model)
            gc.collect()  # what refers to itself still holds the model, and the next one needs its memory
        return self.run

    def _evaluate(self, model: Model) -> None:
        """Evaluate one model on the tasks that have no score of it yet."""
        on_disk: dict[str, TaskResult] = {}
        scored: dict[str, TaskResult] = {}
        failed_before = len(self.run.skipped)
        self._done.clear()
        try:
            here = loading_here(self.loading) if self.cluster else self.loading
            encoder = load_model(model, here, self.bench.settings)
            self.cards.append(encoder.card)
            self.gpu_uses.append((time.monotonic(), str(encoder.card.loaded.get("device", "")).count("cuda")))
            with (
                Activity(f"{self.bench.heading}{encoder.card.name}", self.bench.show_progress) as activity,
                self._engine(model, encoder) as self.bench.engine,
            ):
                if self.cluster:
                    self.bench.score_elsewhere = remote_scoring(self.cluster, self.bench.settings)
                self.bench.activity = activity
                ModelStream(self, encoder, activity, on_disk, scored).evaluate()
        except CannotSave:
            raise
        except Exception as error:
            done = {*on_disk, *scored, *(skip.task for skip in self.run.skipped[failed_before:])}
            self.fail(model_name(model), [task.name for task in self.tasks if task.name not in done], error)
        self.bench.engine = self.bench.score_elsewhere = None
        for task in self.tasks:
            self.done(task)
        place = {task.name: number for number, task in enumerate(self.tasks)}
        self.run.skipped[failed_before:] = sorted(self.run.skipped[failed_before:], key=lambda skip: place[skip.task])
        self.bench.activity = SILENT
        self.run.computed += len(scored)
        results_by_task = on_disk | scored
        self.run.results += [results_by_task[task.name] for task in self.tasks if task.name in results_by_task]

    def _engine(self, model: Model, encoder: Encoder) -> AbstractContextManager[RayEngine | None]:
        """The cluster that embeds for a model; none where this process does."""
        if self.cluster is None:
            return nullcontext()
        return cluster_engine(self.cluster, model, self.loading, self.bench, encoder)
