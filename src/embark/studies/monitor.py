"""Scores during training: a live module on a fixed small set, every so many steps, and the curve of them.

monitor = embark.Monitor(["PocketFlagZeroShot", "PocketNameSTS"], every=100, encoder=…, loggers=["curve.csv"])
for step, batch in enumerate(batches):
    …
    monitor.step(module, step)
monitor.curve().plot("curve.svg")
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embark.catalogue import group_values
from embark.outgoing import write_text
from embark.results.selection import select_tasks
from embark.run.live import MEAN, LiveScoring, Measurement, Point, ToEncoder, points_table
from embark.settings import Settings, load_settings
from embark.studies import trainers
from embark.studies.analysis import Analysis
from embark.studies.loggers import Target, csv_text, logger_of
from embark.studies.plotting import color, short_task
from embark.tables import Table
from embark.tasks import Tasks
from embark.types import EmbarkError, Task

log = logging.getLogger("embark")
MEAN_COLOR = "#444444"


class Monitor:
    """Scores a live module on the same tasks every so many steps; see `curve` for what came out.

    `every` is a number of steps. `encoder` says how the module embeds: an encoder of it, or a function from the module
    to one; a SentenceTransformer and a model of mteb need none. `loggers` get every measurement: a run of Weights &
    Biases, a SummaryWriter, mlflow, a logger of Lightning, "wandb", "tensorboard" or "mlflow", a .csv file, or a
    function. While it is scored, the module is in evaluation mode, without gradients; then its training flags and all
    random states are as before. No vector and no score is kept on disk.
    """

    def __init__(
        self,
        tasks: Tasks = None,
        *,
        every: int = 1,
        encoder: ToEncoder | None = None,
        loggers: Iterable[Target] | Target = (),
        batch_size: int | None = None,
        settings: Settings | None = None,
    ) -> None:
        if every < 1 or int(every) != every:
            raise EmbarkError(f"A monitor scores every so many whole steps, 1 or more, not {every}.")
        self.tasks = select_tasks(tasks, None, settings)
        self.every = every
        self.measurements: list[Measurement] = []
        self.notes: list[str] = []  # on steps that could not be scored
        self._tried: int | None = None  # the last step that was due
        targets = loggers if isinstance(loggers, Iterable) and not isinstance(loggers, str) else [loggers]
        self._loggers = [logger_of(target) for target in targets]
        self._scoring = LiveScoring(self.tasks, encoder, settings or load_settings(), batch_size)

    def score(self, module: Any, step: int = 0) -> Measurement:
        """Score the module as it is now."""
        measurement = self._scoring.measure(module, step)
        self.measurements.append(measurement)
        failures = []
        for write in self._loggers:
            try:
                write(measurement)
            except Exception as error:  # the other loggers get it all the same
                failures.append(error)
        if failures:
            raise failures[0]
        return measurement

    def step(self, module: Any, step: int) -> Measurement | None:
        """Score the module if it is due: every so many steps, and each step once.

        What fails at first is raised; later on, such as vectors that are not numbers any more, it is logged, and the
        training goes on.
        """
        if step % self.every or step == self._tried:
            return None
        first = self._tried is None
        self._tried = step
        try:
            return self.score(module, step)
        except Exception as error:
            if first:
                raise
            self.notes.append(f"step {step} could not be scored and logged: {error}")
            log.warning("%s", self.notes[-1])
            return None

    def curve(self) -> TrainingCurve:
        """All scores so far."""
        if not self.measurements:
            raise EmbarkError("Nothing has been scored yet: call step or score, or give a trainer the callback.")
        notes = (*(note for measurement in self.measurements for note in measurement.notes), *self.notes)
        return TrainingCurve(tuple(self.tasks), tuple(self.measurements), notes=tuple(dict.fromkeys(notes)))

    # ── trainers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def transformers(self) -> Any:
        """A TrainerCallback of transformers: Trainer(…, callbacks=[monitor.transformers()])."""
        return trainers.transformers_callback(self.step)

    def lightning(self) -> Any:
        """A Callback of Lightning: Trainer(callbacks=[monitor.lightning()])."""
        return trainers.lightning_callback(self.step)

    def sentence_transformers(self) -> Any:
        """An evaluator: SentenceTransformerTrainer(…, evaluator=monitor.sentence_transformers()).

        The trainer says when (`eval_steps`), whatever `every` is; the mean over the tasks is what it selects by.
        """
        return trainers.sentence_evaluator(self.score)


@dataclass(frozen=True)
class TrainingCurve(Analysis):
    """The scores of a training run, step by step."""

    tasks: tuple[Task, ...]
    measurements: tuple[Measurement, ...]

    @property
    def title(self) -> str:
        return "Scores during training, with 95 % intervals"

    def table(self) -> Table:
        """One row per step and task: its score, and the change since the step before."""
        return points_table(self.measurements)

    def save(self, path: Path | str) -> None:
        """Write all numbers as CSV."""
        write_text(Path(path), csv_text(self.measurements))

    def draw(self, figure: Any) -> None:
        """A line a task with its intervals; filled marks where a step differs from the one before; dots at chance."""
        axes = figure.subplots()
        points = group_values((point.task, (m.step, point)) for m in self.measurements for point in m.points)
        for number, (task, measured) in enumerate(points.items()):
            _draw_line(axes, MEAN_COLOR if task == MEAN else color(number), task, measured)
        axes.plot([], [], "o", ms=4, color=MEAN_COLOR, label="differs from the step before")
        chances = {task.chance for task in self.tasks if task.name in points and task.chance is not None}
        for number, chance in enumerate(sorted(chances)):
            axes.axhline(100 * chance, color=MEAN_COLOR, lw=0.8, ls=":", label="" if number else "chance")
        axes.set(xlabel="step", ylabel="score (points)")
        axes.legend(fontsize=8, loc="best")


def _draw_line(axes: Any, color: str, task: str, points: Sequence[tuple[int, Point]]) -> None:
    steps = [step for step, _ in points]
    scores, lows, highs = zip(*((100 * p.score, 100 * p.low, 100 * p.high) for _, p in points), strict=True)
    axes.plot(steps, scores, "--" if task == MEAN else "-", color=color, lw=1.4, label=short_task(task, 30))
    axes.fill_between(steps, lows, highs, color=color, alpha=0.15, lw=0)
    faces = [color if point.significant else "white" for _, point in points]
    axes.scatter(steps, scores, s=18, c=faces, edgecolors=color, linewidths=1, zorder=3)
