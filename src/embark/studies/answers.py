"""Generative models as classifiers: each item is asked about, and the answer matched to a class (UniBench, Table 2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.catalogue import listed
from embark.models import Loading, get_generator
from embark.models.encoder import Generator
from embark.results.drawing import PAGE
from embark.results.table import Row, Score, Table, applicable, points, short
from embark.run.stages import written_texts
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.stats.intervals import mean_interval
from embark.studies.plotting import color, short_task
from embark.studies.study import Study
from embark.tasks import Tasks, choose_tasks
from embark.types import Array, Classes, EmbarkError, Task

PROMPT = "Which of these is it: {classes}? Answer with one of them, and nothing else."
NO_CLASS = -1  # of an answer that names none


def answers(
    model: str | Generator | Sequence[str | Generator],
    tasks: Tasks,
    *,
    prompt: str = PROMPT,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> Answers:
    """Have generators classify the items of zero-shot tasks: accuracy of their answers, matched to the class names.

    `prompt` is the question; {classes} in it are the task's class names. An answer that names no class is wrong. What a
    generator wrote is kept like vectors: asking again costs nothing.
    """
    settings = settings or load_settings()
    bench = Workbench(settings, show_progress=show_progress)
    rows = choose_tasks(tasks, None)
    zeroshot = [row for row in rows if row.evaluator == "zeroshot"]
    others = [f"{row.name} ({row.evaluator})" for row in rows if row.evaluator != "zeroshot"]
    if not zeroshot:
        raise EmbarkError(f"Answers need zero-shot tasks; chosen were {listed(others)}.")
    options = {**vars(loading or Loading()), "settings": settings}
    models = [model] if isinstance(model, str) or not isinstance(model, Sequence) else model
    generators = [get_generator(name, **options) if isinstance(name, str) else name for name in models]
    parts = tuple(answered(bench, generator, row, prompt) for generator in generators for row in zeroshot)
    return Answers(prompt, parts, notes=(f"left out, no zero-shot tasks: {listed(others)}",) if others else ())


@dataclass(frozen=True)
class Answered:
    """A generator on a task: its answers, the class that each names (-1: none), and whether it is right."""

    model: str
    task: Task
    texts: tuple[str, ...]
    predicted: Array
    right: Array

    @property
    def score(self) -> Score:
        """The accuracy, with its 95 % interval over items."""
        return Score(float(self.right.mean()), *mean_interval(self.right))

    @property
    def unmatched(self) -> float:
        """The share of answers that name no class."""
        return float((self.predicted == NO_CLASS).mean())


@dataclass(frozen=True)
class Answers(Study):
    """Generators × zero-shot tasks."""

    prompt: str
    parts: tuple[Answered, ...]
    title = "Generative models as classifiers, by their answers"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.2 + 0.25 * len(self.parts)

    def table(self) -> Table:
        """One line per model and task."""
        rows = [
            Row(
                (
                    part.model, part.score, points(part.task.chance),
                    points(part.unmatched), len(part.right),
                ),
                part.task.name,
            )
            for part in self.parts
        ]  # fmt: skip
        notes = {
            f"Asked: “{self.prompt}”": True,
            "An answer counts for the class that it is, or else names first; one that names none is wrong.": True,
            "no class: share of answers that name none.": any(part.unmatched for part in self.parts),
        }
        return Table(("model", "accuracy", "chance", "no class", "items"), tuple(rows), applicable(notes))

    def draw(self, figure: Any) -> None:
        """Accuracy with its interval, and chance, a line per task and model."""
        axes = figure.subplots()
        models = list(dict.fromkeys(part.model for part in self.parts))
        for line, part in enumerate(self.parts):
            score = part.score
            tint = color(models.index(part.model))
            axes.hlines(line, 100 * score.low, 100 * score.high, color=tint)
            axes.plot(100 * score.value, line, "o", color=tint)
            if part.task.chance is not None:
                axes.plot(100 * part.task.chance, line, "|", color="black", ms=8)
        names = [f"{short_task(p.task.name)}, {short(p.model, 20)} (n = {len(p.right):,})" for p in self.parts]
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.margins(y=1 / (1 + len(names)))
        axes.set_xlabel("accuracy (%), 95 % intervals; tick: chance")


def answered(bench: Workbench, generator: Generator, task: Task, prompt: str = PROMPT) -> Answered:
    """Ask a generator about every item of a zero-shot task, over its splits and subsets."""
    texts: list[str] = []
    predicted: list[Array] = []
    right: list[Array] = []
    for part in task.parts:
        data = bench.read(task, *part)
        truth = data.truth
        assert isinstance(truth, Classes)
        question = prompt.replace("{classes}", ", ".join(truth.names))
        items = data.sides["item"].items
        written = written_texts(bench, generator, question, list(items), "answer")
        of_items = [written[item] or "" for item in items]
        classes = match_answers(of_items, truth.names)
        label = truth.label
        hits = label[np.arange(len(classes)), classes] if label.ndim == 2 else classes == label
        texts += of_items
        predicted.append(classes)
        right.append(np.where(classes == NO_CLASS, 0.0, hits.astype(float)))
    return Answered(generator.card.name, task, tuple(texts), np.concatenate(predicted), np.concatenate(right))


def match_answers(answers: Sequence[str], names: Sequence[str]) -> Array:
    """The number of the class that each answer is or else names first; -1 where it names none.

    Case and punctuation do not count. Of names that begin at the same place the longest wins (`tiger shark`, not
    `tiger`).
    """
    plain = [_plain(name) for name in names]
    number_of = {name: number for number, name in reversed([*enumerate(plain)]) if name}
    longest_first = sorted(number_of, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)") if number_of else None

    def match(answer: str) -> int:
        text = _plain(answer)
        if text in number_of:
            return number_of[text]
        mention = pattern.search(text) if pattern else None
        return number_of[mention[0]] if mention else NO_CLASS

    return np.array([match(answer) for answer in answers], int)


def _plain(text: str) -> str:
    """Words in lower case, with single spaces and without punctuation."""
    return " ".join(re.findall(r"\w+", text.casefold()))
