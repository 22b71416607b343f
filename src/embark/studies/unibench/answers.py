"""Generative models as classifiers (UniBench, Table 2): each item is asked about, and the answer matched to a class, or
the class is the one whose name is the likeliest answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.catalogue import check_name, listed
from embark.models import Loading, get_generator
from embark.models.adapt import as_generator
from embark.models.encoder import Generator
from embark.results.selection import select_tasks
from embark.run.stages import text_likelihoods, written_texts
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.stats.intervals import mean_interval
from embark.studies.analysis import Analysis
from embark.studies.plotting import color, draw_scores, short_task
from embark.tables import Note, Row, Score, Table, points, short
from embark.tables.drawing import PAGE
from embark.tasks import Tasks
from embark.types import Array, Classes, EmbarkError, Item, Task

LIKELIHOODS = ("likelihood", "mean-likelihood")
NAME_IT = "What is this? Answer with its name, and nothing else."
PROMPTS = {  # the default question, by how the class is found
    "answer": "Which of these is it: {classes}? Answer with one of them, and nothing else.",
    **dict.fromkeys(LIKELIHOODS, NAME_IT),
}
MATCHING = {  # how the class is found, as the table has it
    "answer": "An answer counts for the class that it is, or else names first; one that names none is wrong.",
    "likelihood": "The class whose name is the likeliest answer, by the log-probability of all its tokens.",
    "mean-likelihood": "The class whose name is the likeliest answer, by the mean log-probability of its tokens.",
}
NO_CLASS = -1  # of an answer that names none


def answers(
    model: str | Generator | Sequence[str | Generator],
    tasks: Tasks,
    *,
    by: str = "answer",
    prompt: str | None = None,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> Answers:
    """Have generators classify the items of zero-shot tasks: the accuracy of the classes that they choose.

    `by` "answer", they write one, which is matched to the class names; an answer that names no class is wrong. By
    "likelihood", it is the class whose name is their likeliest answer, by its log-probability, or by the mean of its
    tokens ("mean-likelihood"); that takes a local model, or a recorded one. `prompt` is the question; {classes} in it
    are the task's class names. What a generator wrote or scored is kept like vectors: asking again costs nothing.
    """
    check_name("way to choose a class", by, PROMPTS)
    question = PROMPTS[by] if prompt is None else prompt
    settings = settings or load_settings()
    bench = Workbench(settings, show_progress=show_progress)
    rows = select_tasks(tasks, None, settings)
    zeroshot = [row for row in rows if row.evaluator == "zeroshot"]
    others = [f"{row.name} ({row.evaluator})" for row in rows if row.evaluator != "zeroshot"]
    if not zeroshot:
        raise EmbarkError(f"Answers need zero-shot tasks; chosen were {listed(others)}.")
    models = [model] if isinstance(model, str) or not isinstance(model, Sequence) else model
    generators = [
        get_generator(name, loading=loading, settings=settings) if isinstance(name, str) else as_generator(name)
        for name in models
    ]
    parts = tuple(answered(bench, generator, row, question, by) for generator in generators for row in zeroshot)
    return Answers(question, by, parts, notes=(f"left out, no zero-shot tasks: {listed(others)}",) if others else ())


@dataclass(frozen=True)
class Answered:
    """A generator on a task: its answers, the class that each names (-1: none), and whether it is right.

    By likelihood, an answer is the name of the likeliest class.
    """

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
class Answers(Analysis):
    """Generators × zero-shot tasks."""

    prompt: str
    by: str
    parts: tuple[Answered, ...]

    @property
    def title(self) -> str:
        ways = {"answer": "their answers", "likelihood": "likelihood", "mean-likelihood": "mean likelihood of tokens"}
        return f"Generative models as classifiers, by {ways[self.by]}"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.2 + 0.25 * len(self.parts)

    def table(self) -> Table:
        """One line per model and task."""
        rows = []
        for part in self.parts:
            shares = (part.score, points(part.task.chance), points(part.unmatched))
            rows.append(Row((part.model, *shares, len(part.right)), part.task.name))
        unmatched = any(part.unmatched for part in self.parts)
        names_none = (Note("no class: share of answers that name none.", column="no class"),) if unmatched else ()
        notes = (f"Asked: “{self.prompt}”", MATCHING[self.by], *names_none)
        return Table(("model", "accuracy", "chance", "no class", "items"), tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """Accuracy with its interval, and chance, a line per task and model."""
        axes = figure.subplots()
        models = list(dict.fromkeys(part.model for part in self.parts))
        for line, part in enumerate(self.parts):
            draw_scores(axes, [line], [part.score], color(models.index(part.model)))
            if part.task.chance is not None:
                axes.plot(100 * part.task.chance, line, "|", color="black", ms=8)
        names = [f"{short_task(p.task.name)}, {short(p.model, 20)} (n = {len(p.right):,})" for p in self.parts]
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.margins(y=1 / (1 + len(names)))
        axes.set_xlabel("accuracy (%), 95 % intervals; tick: chance")


def answered(bench: Workbench, generator: Generator, task: Task, prompt: str, by: str = "answer") -> Answered:
    """Ask a generator about every item of a zero-shot task, over its splits and subsets."""
    texts: list[str] = []
    predicted: list[Array] = []
    right: list[Array] = []
    for part in task.parts:
        data = bench.read(task, *part)
        truth = data.truth
        assert isinstance(truth, Classes)
        question = prompt.replace("{classes}", ", ".join(truth.names))
        items = list(data.sides["item"].items)
        if by == "answer":
            written = written_texts(bench, generator, question, items, "answer")
            answers = [written[item] or "" for item in items]
            classes = match_answers(answers, truth.names)
        else:
            classes = likeliest(bench, generator, question, items, truth.names, by)
            answers = ["" if number == NO_CLASS else truth.names[number] for number in classes]
        label = truth.label
        hits = label[np.arange(len(classes)), classes] if label.ndim == 2 else classes == label
        texts += answers
        predicted.append(classes)
        right.append(np.where(classes == NO_CLASS, 0.0, hits.astype(float)))
    return Answered(generator.card.name, task, tuple(texts), np.concatenate(predicted), np.concatenate(right))


def likeliest(
    bench: Workbench, generator: Generator, question: str, items: Sequence[Item], names: Sequence[str], by: str
) -> Array:
    """The number of the class whose name is the likeliest answer about each item; -1 where it does not decode."""
    matrices = text_likelihoods(bench, generator, question, items, names)

    def best(matrix: Array | None) -> int:
        if matrix is None:
            return NO_CLASS
        log, tokens = matrix.T
        if by == "mean-likelihood" and not tokens.all():
            raise EmbarkError(
                f"{generator.card.name} does not tell how many tokens '{names[int(tokens.argmin())]}' has, which their "
                "mean needs: choose by likelihood, or record [LOG-PROBABILITY, TOKENS]."
            )
        return int((log / tokens if by == "mean-likelihood" else log).argmax())

    return np.array([best(matrices[item]) for item in items], int)


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
