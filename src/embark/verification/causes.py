"""Likely causes of scores that differ from published ones, each with its evidence.

Three kinds of evidence: what the records state (another revision of the data or the model), where the differences are
(on tasks with an instruction and nowhere else), and trials: the same task scored another way comes out as published.
Trials use stored vectors, and embed at most CHEAP items.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import numpy as np

from embark.catalogue import counted, listed
from embark.models import get_model
from embark.models.encoder import Encoder, render_item
from embark.results import COMMIT
from embark.run.embedded_task import Embedded
from embark.run.stored_vectors import Stored
from embark.settings import Settings
from embark.stats.intervals import LEVEL
from embark.tables import in_points
from embark.types import Array, Item, Task, Text
from embark.verification.verdicts import Comparable, TaskCheck

logger = logging.getLogger("embark")
CHEAP = 1_000  # items that a trial may embed
TRIED = 3  # tasks that a trial is made on, those with the fewest items
SMALL_PARAMETERS = 1_000_000_000  # parameters of a model that is loaded once more for a trial
NEARLY_ALL = 0.8  # share of the tasks that differ, from which on it is no matter of the kind of task
FEWEST_TASKS = 3  # tasks from which on "nearly all" tells something
COMPARED = ("retrieval", "choice", "zeroshot", "pairs", "robustness")  # evaluators that compare vectors
LEARNING = ("probe", "multilabel", "clustering")  # evaluators that learn from raw ones
POOLINGS = ("last", "first", "mean")
OTHER_REVISION = "made with revision "  # begins the warning of imported results on other data


@dataclass(frozen=True)
class Cause:
    """A likely cause: its name, the tasks that it would explain, and the evidence in words."""

    name: str
    tasks: tuple[str, ...]
    evidence: str

    def sentence(self) -> str:
        """The cause in words."""
        return f"{self.name} ({self.evidence})"


@dataclass(frozen=True)
class Case:
    """A task that can be compared, with its row and both scores."""

    row: Task
    scores: Comparable
    differs: bool


def likely_causes(checks: Sequence[TaskCheck], encoder: Encoder | None, settings: Settings) -> tuple[Cause, ...]:
    """The causes that the evidence speaks for, the strongest first; `encoder`, where it is at hand, is tried."""
    cases = [Case(check.row, check.scores, check.verdict == "differs") for check in checks if check.scores is not None]
    if not any(case.differs for case in cases):
        return ()
    stated = filter(None, (data_revision(cases), model_revision(cases), device_pixels(cases)))
    tried = [] if encoder is None else trials(cases, encoder, settings)
    placed = concentrated(cases, encoder) or ([] if tried else everywhere(cases))
    return (*tried, *stated, *placed)


# ── what the records state ───────────────────────────────────────────────────────────────────────────────────────────


def data_revision(cases: Sequence[Case]) -> Cause | None:
    """Tasks that differ and were scored on another revision of the data than the row's."""
    names = [case.row.name for case in cases if case.differs and _other_data(case)]
    if not names:
        return None
    alike = sum(not case.differs and _other_data(case) for case in cases)
    also = f"; so were {counted(alike, 'task')} that agree" if alike else ""
    evidence = f"{_tasks(names)} scored on another revision than the row names{also}"
    return Cause("another revision of the data", tuple(names), evidence)


def model_revision(cases: Sequence[Case]) -> Cause | None:
    """Tasks that differ and are published for another revision of the model."""
    others = [case for case in cases if case.differs and _other_revision(case)]
    if not others:
        return None
    published = sorted({case.scores.reference.revision[:12] for case in others})
    ours = sorted({case.scores.result.revision[:12] for case in others})
    evidence = f"published for {listed(published)}, scored at {listed(ours)}"
    return Cause("another revision of the model", tuple(case.row.name for case in others), evidence)


def device_pixels(cases: Sequence[Case]) -> Cause | None:
    """Tasks of pictures that differ and whose pictures were decoded on a GPU, as no paper did."""
    names = [
        case.row.name
        for case in cases
        if case.differs and any(record.loaded.get("pixels") == "cuda" for record in case.scores.result.records)
    ]
    evidence = f"{_tasks(names)} scored on pictures decoded on a GPU; --pixels pillow decodes as papers did"
    return Cause("other preprocessing of pictures", tuple(names), evidence) if names else None


def _other_data(case: Case) -> bool:
    result = case.scores.result
    stated = any(warning.startswith((OTHER_REVISION, COMMIT)) for warning in result.warnings)
    pinned = len(case.row.source.revision) == 40  # a commit; what a branch had is not known
    return stated or bool(pinned and result.dataset_revision and result.dataset_revision != case.row.source.revision)


def _other_revision(case: Case) -> bool:
    revisions = {case.scores.reference.revision, case.scores.result.revision}
    return len(revisions) == 2 and all(len(revision) == 40 for revision in revisions)


# ── where the differences are ────────────────────────────────────────────────────────────────────────────────────────


def concentrated(cases: Sequence[Case], encoder: Encoder | None = None) -> list[Cause]:
    """The properties of tasks that the differences go with, by Fisher's exact test: the one with the least p-value."""
    properties: dict[str, Callable[[Task], bool]] = {
        "an instruction": lambda row: bool(row.instructions),
        "images": lambda row: "image" in row.modalities,
        "videos": lambda row: "video" in row.modalities,
        "sounds": lambda row: "audio" in row.modalities,
        "class prompts": lambda row: bool(row.templates),
        "a probe or clustering": lambda row: row.evaluator in LEARNING,
    }
    p_values = {name: _fisher(cases, has) for name, has in properties.items()}
    best = min(p_values.values())
    strongest = [name for name, p in p_values.items() if p == best < 1 - LEVEL]
    return [_of_property(name, properties[name], cases, encoder, best, len(strongest) - 1) for name in strongest]


def everywhere(cases: Sequence[Case]) -> list[Cause]:
    """What is wrong where nearly all tasks differ, of all kinds."""
    names = tuple(case.row.name for case in cases if case.differs)
    if len(cases) < FEWEST_TASKS or len(names) < NEARLY_ALL * len(cases):
        return []
    evidence = f"{len(names)} of {counted(len(cases), 'task')} differ, of all kinds"
    return [Cause("other weights, pooling or normalization", names, evidence)]


def _fisher(cases: Sequence[Case], has: Callable[[Task], bool]) -> float:
    """How often chance would put as many of the differences on the tasks with a property."""
    from scipy.stats import hypergeom

    with_it = [case for case in cases if has(case.row)]
    both = sum(case.differs for case in with_it)
    return float(hypergeom.sf(both - 1, len(cases), sum(case.differs for case in cases), len(with_it)))


def _of_property(
    name: str, has: Callable[[Task], bool], cases: Sequence[Case], encoder: Encoder | None, p: float, rivals: int
) -> Cause:
    """The cause that a property of tasks points at."""
    with_it = [case for case in cases if has(case.row)]
    without = [case for case in cases if not has(case.row)]
    differing = [case for case in with_it if case.differs]
    evidence = (
        f"{len(differing)} of {counted(len(with_it), 'task')} with {name} differ, "
        f"{sum(case.differs for case in without)} of {len(without)} without; p = {p:.2g}"
    )
    if rivals:
        evidence += "; these tasks also have other properties in common"
    cause = {
        "an instruction": "other prompts than the published ones, or none",
        "class prompts": "other class names or prompts",
        "a probe or clustering": "normalization of the training vectors",
    }.get(name, f"other preprocessing of {name}")
    if name == "an instruction" and encoder is not None:
        unread = [case.row.name for case in differing if not reads_instruction(encoder, case.row)]
        if unread:
            cause = "prompts not applied"
            evidence += f"; the model's input is the same without the instruction on {len(unread)} of them"
    return Cause(cause, tuple(case.row.name for case in differing), evidence)


def reads_instruction(encoder: Encoder, row: Task) -> bool:
    """Whether the model's input changes with the row's instructions."""
    item = Item((Text("text"),))
    return any(
        render_item(encoder, item, role, instruction, row.style) != render_item(encoder, item, role, None, row.style)
        for role, instruction in row.instructions.items()
    )


# ── trials ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def trials(cases: Sequence[Case], encoder: Encoder, settings: Settings) -> list[Cause]:
    """The changes with which the smallest of the differing tasks come out as published."""
    differing = [case for case in cases if case.differs and not case.scores.result.sampled]
    differing.sort(key=lambda case: sum(record.counts.get("unique", 0) for record in case.scores.result.records))
    ways: dict[str, Callable[[Task], Embedded | None]] = {
        "other normalization: compared by {}": lambda row: _otherwise_compared(_vectors(encoder, row, settings)),
        "normalization of the training vectors": lambda row: _normalized(_vectors(encoder, row, settings)),
        "published without the instruction": lambda row: _without_instruction(encoder, row, settings),
        **{f"other pooling: {pooling}": partial(_pooled, encoder, settings, pooling) for pooling in POOLINGS},
    }
    causes = []
    for name, change in ways.items():
        names: list[str] = []
        values: list[str] = []
        tried = 0
        for case in differing:
            outcome = _tried(change, case.row) if tried < TRIED else None
            if outcome is None:
                continue
            tried += 1
            value, similarity = outcome
            published = case.scores.reference.score
            if abs(value - published) <= min(case.scores.tolerance.allowed, abs(case.scores.difference)):
                names.append(case.row.name)
                values.append(f"{case.row.name} {in_points(value, 2)}, published {in_points(published, 2)}")
                name = name.format(similarity)
        if tried and len(names) == tried:
            evidence = f"so scored, {len(names)} of {tried} tried come out as published: {listed(values)}"
            causes.append(Cause(name, tuple(names), evidence))
    return causes


def _tried(change: Callable[[Task], Embedded | None], row: Task) -> tuple[float, str] | None:
    """A task's score after a change, and its similarity; None where the change does not apply, or cannot be made."""
    try:
        changed = change(row)
        if changed is None:
            return None
        value = fmean(part.scores().value for part in changed.parts)
        return value, str(changed.parts[0].params.get("similarity", ""))
    except Exception as error:  # a trial that fails tells nothing, and must not cost the verdicts
        logger.info("A trial on %s failed: %s", row.name, error)
        return None


def _vectors(encoder: Encoder, row: Task, settings: Settings) -> Embedded | None:
    """A task with its vectors; None if more than CHEAP are not stored, or any of a model that costs money."""
    stored = Stored(encoder, settings, embedding=True, show_progress=False)
    most = 0 if encoder.capabilities.billed else CHEAP
    if len(stored.plan(encoder, stored.demands(row, encoder)).needs) > most:
        return None
    return stored.task(row)


def _otherwise_compared(task: Embedded | None) -> Embedded | None:
    """The task by cosine instead of the dot product, or the other way round."""
    if task is None or task.task.evaluator not in COMPARED:
        return None
    own = task.parts[0].params.get("similarity", "cosine")
    other = {"cosine": "dot", "dot": "cosine"}.get(str(own))
    return None if other is None else task.under(similarity=other)


def _normalized(task: Embedded | None) -> Embedded | None:
    """The task with vectors of length one, where raw ones are learnt from."""
    return None if task is None or task.task.evaluator not in LEARNING else task.changed(_unit)


def _unit(rows: Array) -> Array:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, length, out=np.zeros_like(rows), where=length > 0))


def _without_instruction(encoder: Encoder, row: Task, settings: Settings) -> Embedded | None:
    if not row.instructions or not reads_instruction(encoder, row):
        return None
    return _vectors(encoder, replace(row, instructions={}), settings)


def _pooled(encoder: Encoder, settings: Settings, pooling: str, row: Task) -> Embedded | None:
    """The task by the model with another pooling, where its card states one and it is small."""
    card = encoder.card
    own = card.options.get("pooling")
    if own not in POOLINGS or own == pooling or not 0 < (card.parameters or 0) <= SMALL_PARAMETERS:
        return None
    other = get_model(replace(card, options={**card.options, "pooling": pooling}, loaded={}))
    return _vectors(other, row, settings)


def _tasks(names: Sequence[str]) -> str:
    return f"{listed(names)} {'were' if len(names) > 1 else 'was'}"
