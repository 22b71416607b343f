"""Scores of changed tasks: fewer training examples, other prompts, other cut-offs of a ranking, corrupted items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from embark.catalogue import listed
from embark.evaluators import full_params
from embark.evaluators.ranks import take
from embark.evaluators.similarity import whole
from embark.evaluators.zeroshot import class_vectors
from embark.metrics import CUTOFFS
from embark.run.embedded_task import Embedded, EmbeddedPart
from embark.run.models import Models
from embark.run.stored_vectors import NotStored, Stored
from embark.studies.stored_tasks import HOW_TO_EMBED, SharedArguments, models_and_tasks
from embark.studies.sweep import Sweep, Variant, score_variants
from embark.tables import Note, applicable
from embark.tasks import Tasks
from embark.types import Array, Classes, EmbarkError, Qrels, Task, role_of

SHOTS = {"probe": 16, "multilabel": 8}  # examples per class, where the row does not say
MEASURES = ("hit_rate", "recall", "precision", "ndcg", "map", "mrr")
RANKED = ("retrieval", "choice", "zeroshot")  # evaluators whose queries rank documents or classes
CLASS_NAME = "{}"  # the prompt that is nothing but the name of the class


def topk(model: Models, tasks: Tasks, *, measure: str = "hit_rate", **shared: Unpack[SharedArguments]) -> Sweep:
    """Score rankings at every k: `measure` is hit_rate (top-k accuracy), recall, precision, ndcg, map or mrr.

    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    pairs, notes = _scored_by(models_and_tasks(model, tasks, **shared), RANKED, "topk")
    sweep = by_cutoff([stored.task(row) for stored, row in pairs], measure)
    return replace(sweep, notes=notes)


def robustness(model: Models, tasks: Tasks, **shared: Unpack[SharedArguments]) -> Sweep:
    """Score every corruption of a robustness task against the clean items.

    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    pairs, notes = _scored_by(models_and_tasks(model, tasks, **shared), ("robustness",), "robustness")
    return replace(by_condition([stored.task(row) for stored, row in pairs]), notes=notes)


def shots(model: Models, tasks: Tasks, *, shots: Sequence[int] = (), **shared: Unpack[SharedArguments]) -> Sweep:
    """Score probes that learn from `shots` examples per class: by default 1, 2, 4… up to the row's own number.

    More shots than the row's need vectors that a run does not make: `embed` adds them.
    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    pairs, notes = _scored_by(models_and_tasks(model, tasks, **shared), tuple(SHOTS), "shots")
    curves = [[stored.task(row, HOW_TO_EMBED) for row in with_shots(row, shots)] for stored, row in pairs]
    return replace(by_shots(curves), notes=notes)


def prompts(model: Models, tasks: Tasks, *, prompts: Sequence[str] = (), **shared: Unpack[SharedArguments]) -> Sweep:
    """Score zero-shot tasks by prompt: the row's prompts together, each alone, the bare class name, and `prompts`.

    Other prompts ("the flag of {}") need `embed`.
    `shared`: protocol, embed (what is not stored; else it is an error), loading, settings, show_progress.
    """
    embedded: list[Embedded] = []
    own: dict[str, int] = {}
    pairs, left_out = _scored_by(models_and_tasks(model, tasks, **shared), ("zeroshot",), "prompts")
    notes = [*left_out]
    for stored, row in pairs:
        templates = row.templates or (CLASS_NAME,)
        own[row.name] = len(templates)
        every_prompt = tuple(dict.fromkeys([*templates, *prompts, CLASS_NAME]))
        try:
            embedded.append(stored.task(replace(row, templates=every_prompt), HOW_TO_EMBED))
        except NotStored:
            if prompts:
                raise
            embedded.append(stored.task(row))
            notes.append(
                Note(f"{row.name}: bare class names are not stored", "--embed, or embed=True in Python, adds them")
            )
    return replace(by_prompt(embedded, own), notes=tuple(notes))


def _scored_by(
    pairs: Sequence[tuple[Stored, Task]], evaluators: Sequence[str], analysis: str
) -> tuple[list[tuple[Stored, Task]], tuple[str, ...]]:
    """The models and rows that are scored by one of these evaluators, and a note on the others; none is an error."""
    fitting = [(stored, row) for stored, row in pairs if row.evaluator in evaluators]
    others = list(dict.fromkeys(f"{row.name} ({row.evaluator})" for _, row in pairs if row.evaluator not in evaluators))
    needs = f"'{analysis}' needs tasks of the evaluator {' or '.join(evaluators)}"
    if not fitting:
        raise EmbarkError(f"{needs}; chosen were {listed(others)}. See: embark tasks --evaluator {evaluators[0]}")
    return fitting, (f"left out, because {needs}: {listed(others)}",) if others else ()


# ── sweeps over tasks with their vectors ─────────────────────────────────────────────────────────────────────────────


def by_cutoff(tasks: Iterable[Embedded], measure: str = "hit_rate") -> Sweep:
    """A ranking measure at each cut-off; a classification counts as a ranking of the classes."""
    if measure not in MEASURES:
        raise EmbarkError(f"There is no ranking measure '{measure}'; there are {', '.join(MEASURES)}.")

    def variants(task: Embedded) -> list[Variant]:
        ranked = replace(task, parts=tuple(as_ranking(part) for part in task.parts))
        documents = max(_documents(part) for part in ranked.parts)
        cutoffs = [k for k in CUTOFFS if k == 1 or k < documents]
        return [Variant(f"{measure} at {k}", ranked.under(metric=f"{measure}_at_{k}"), "", k) for k in cutoffs]

    curves = tuple(score_variants(variants(task), paired=False) for task in tasks)
    classes = any(curve.task.task.evaluator == "zeroshot" for curve in curves)
    definitions = applicable({"Classes are ranked by the similarity of their prompts.": classes})
    return Sweep(f"{measure} at k", "k", curves, definitions)


def by_condition(tasks: Iterable[Embedded]) -> Sweep:
    """A robustness task under each of its conditions, against the clean items."""

    def variants(task: Embedded) -> list[Variant]:
        corrupted = [side for side in task.parts[0].vectors if side != role_of(side)]
        if not corrupted:
            raise EmbarkError(f"{task.task.name} has no corrupted variant; tasks of the evaluator 'robustness' do.")
        conditions = dict.fromkeys(side.split(":", 1)[1] for side in corrupted)
        return [Variant(name or "clean", _under_condition(task, name)) for name in ("", *conditions)]

    curves = tuple(score_variants(variants(task)) for task in tasks)
    return Sweep("Score under corruption", "condition", curves, scale="names")


def by_shots(tasks: Iterable[Sequence[Embedded]]) -> Sweep:
    """Learning curves: each task with several numbers of examples per class, fewest first."""

    def variant(task: Embedded) -> Variant:
        shots = int(task.parts[0].params["shots"])
        return Variant(f"{shots} a class", task, "", shots)

    curves = tuple(score_variants([variant(task) for task in by_number]) for by_number in tasks)
    definitions = (
        "Each run learns from so many examples of each class, or all that a class has;",
        "the examples of a smaller number are among those of a larger one.",
    )
    return Sweep("Score by number of examples", "examples a class", curves, definitions)


def by_prompt(tasks: Iterable[Embedded], own: Mapping[str, int]) -> Sweep:
    """Zero-shot with a row's own prompts together (the first so many of each class), then with each prompt alone."""
    curves = []
    definitions = []
    for task in tasks:
        positions = _prompt_positions(task)
        count = int(positions[0].max()) + 1
        together = min(own[task.task.name], count)
        names = list(task.task.templates)
        if count != len(names):  # the data brings its own
            names = [f"prompt {number}" for number in range(1, count + 1)]
            definitions.append(f"{task.task.name} takes its prompts from its data: others cannot be tried.")
        chosen = [(f"“{name}”", [number]) for number, name in enumerate(names)]
        if together > 1:
            chosen.insert(0, (f"{together} together", list(range(together))))
        curves.append(
            score_variants([Variant(name, _with_prompts(task, positions, numbers)) for name, numbers in chosen])
        )
    return Sweep("Zero-shot score by prompt", "prompt", tuple(curves), tuple(dict.fromkeys(definitions)), "names")


# ── changes of tasks ─────────────────────────────────────────────────────────────────────────────────────────────────


def with_shots(row: Task, shots: Sequence[int] = ()) -> list[Task]:
    """The row with each number of examples per class: those wanted, or 1, 2, 4… up to its own."""
    if row.evaluator not in SHOTS:
        raise EmbarkError(f"{row.name} learns from no examples; probes do (embark tasks --evaluator probe).")
    if shots and min(shots) < 1:
        raise EmbarkError(f"A probe learns from at least one example a class, not from {min(shots)}.")
    own = int(row.params.get("shots", SHOTS[row.evaluator]))
    powers = [2**n for n in range(own.bit_length()) if 2**n < own]
    return [replace(row, params={**row.params, "shots": k}) for k in sorted(set(shots or [*powers, own]))]


def as_ranking(part: EmbeddedPart) -> EmbeddedPart:
    """A classification by prompts as retrieval: every item ranks the classes. Rankings stay as they are."""
    if isinstance(part.truth, Qrels) and part.evaluator in ("retrieval", "choice"):
        return part
    if not isinstance(part.truth, Classes):
        raise EmbarkError(f"'{part.evaluator}' ranks nothing: top-k needs retrieval, choice or zero-shot.")
    label = part.truth.label
    item, right_class = np.nonzero(label) if label.ndim == 2 else (np.arange(len(label)), label)
    rows = whole(part.vectors["prompt"], str(part.params.get("similarity", "cosine")))
    classes = class_vectors(rows, part.truth.prompt, len(part.truth.names))
    return replace(
        part,
        evaluator="retrieval",
        truth=Qrels(item, right_class, np.ones(len(item), np.int64)),
        vectors={"query": part.vectors["item"], "document": classes},
        ids={"query": part.ids["item"], "document": part.truth.names},
        sides={"query": part.sides["item"]} if part.sides else {},
    )


def _documents(part: EmbeddedPart) -> int:
    """How many documents a query can have at most."""
    if isinstance(part.truth, Qrels) and full_params(part.evaluator, part.params).get("judged_only"):
        return int(np.bincount(part.truth.query).max())
    return len(part.vectors["document"])


def _prompt_positions(task: Embedded) -> list[Array]:
    """The position of every prompt among those of its class, for each part."""
    positions = []
    for part in task.parts:
        if not isinstance(part.truth, Classes):
            raise EmbarkError(f"{task.task.name} has no prompts: it is scored by '{part.evaluator}', not 'zeroshot'.")
        class_of = part.truth.prompt
        count = np.bincount(class_of)
        if (count != count[0]).any():
            raise EmbarkError(f"The classes of {task.task.name} have different numbers of prompts.")
        position = np.empty(len(class_of), np.int64)
        position[np.argsort(class_of, kind="stable")] = np.tile(np.arange(count[0]), len(count))
        positions.append(position)
    return positions


def _with_prompts(task: Embedded, positions: Sequence[Array], chosen: Sequence[int]) -> Embedded:
    """The task with some prompts of every class, by their positions."""
    parts = []
    for part, position in zip(task.parts, positions, strict=True):
        truth = part.truth
        assert isinstance(truth, Classes)
        rows = np.flatnonzero(np.isin(position, chosen))
        vectors = {**part.vectors, "prompt": take(part.vectors["prompt"], rows)}
        ids = {**part.ids, "prompt": [part.ids["prompt"][row] for row in rows.tolist()]}
        parts.append(replace(part, truth=replace(truth, prompt=truth.prompt[rows]), vectors=vectors, ids=ids))
    return replace(task, parts=tuple(parts))


def _under_condition(task: Embedded, condition: str) -> Embedded:
    """The task by its base evaluator, with the items of one condition."""
    parts = []
    for part in task.parts:
        clean = [side for side in part.vectors if side == role_of(side)]
        vectors = {side: part.vectors.get(f"{side}:{condition}", part.vectors[side]) for side in clean}
        params = dict(part.params)
        evaluator = str(params.pop("base", "retrieval"))
        params["metric"] = params.pop("base_metric", "hit_rate_at_1")
        parts.append(replace(part, evaluator=evaluator, vectors=vectors, params=params))
    row = replace(task.task, metric=str(parts[0].params["metric"]))
    return replace(task, task=row, parts=tuple(parts))
