"""Thin callbacks for the usual trainers, made from the function that scores a module at a step.

A training on several processes is scored by the first of them: its module must be whole there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from embark.run.live import Measurement
from embark.types import EmbarkError

Step = Callable[[Any, int], Measurement | None]
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")  # the same library under its two names
EVALUATION = ("sentence_transformers.base.evaluation.evaluator", "sentence_transformers.evaluation")  # since 6, before


def transformers_callback(step: Step) -> Any:
    """A TrainerCallback that scores the model before the first step and after steps."""
    return _joined(_TransformersCallback, _imported("transformers", ("transformers",)).TrainerCallback, step)


def lightning_callback(step: Step) -> Any:
    """A Callback that scores the LightningModule before the first step and after steps."""
    return _joined(_LightningCallback, _imported("lightning", LIGHTNING).Callback, step)


def sentence_evaluator(score: Callable[[Any, int], Measurement]) -> Any:
    """A SentenceEvaluator: scores by name, of which the mean over tasks is the primary one."""
    return _joined(MonitorEvaluator, _imported("sentence-transformers", EVALUATION).SentenceEvaluator, score)


class _TransformersCallback:
    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        if state.is_world_process_zero:
            self.step(model, state.global_step)

    on_step_end = on_train_begin


class _LightningCallback:
    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step

    def on_train_start(self, trainer: Any, pl_module: Any, *batch: Any) -> None:
        if trainer.is_global_zero:
            self.step(pl_module, trainer.global_step)

    on_train_batch_end = on_train_start


class MonitorEvaluator:
    """The evaluator; sentence-transformers prints its name."""

    def __init__(self, score: Callable[[Any, int], Measurement]) -> None:
        super().__init__()
        self.score = score
        self.calls = 0

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Scores by name."""
        measurement = self.score(model, steps if steps >= 0 else self.calls)
        self.calls += 1
        self.primary_metric = f"embark_{measurement.points[-1].task}"
        metrics = measurement.metrics("embark_")
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)  # type: ignore[attr-defined]
        return metrics


def _joined(own: type, base: type, function: Any) -> Any:
    """An object of our class that is one of the library's, too."""
    return type(own.__name__.strip("_"), (own, base), {})(function)


def _imported(package: str, names: tuple[str, ...]) -> Any:
    """The first of these modules that can be imported; one that is in use comes first."""
    for name in sorted(names, key=lambda name: name not in sys.modules):
        try:
            return import_module(name)
        except ImportError as error:
            missing = error
    raise EmbarkError(f"This callback needs {package}: pip install {package}") from missing
