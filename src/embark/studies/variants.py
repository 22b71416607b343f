"""The same task set otherwise: fewer examples to learn from, other prompts, more results looked at, corrupted items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from embark.evaluators import full_params
from embark.evaluators.ranks import take
from embark.evaluators.similarity import whole
from embark.evaluators.zeroshot import class_vectors
from embark.metrics import CUTOFFS
from embark.run.embedded_task import Embedded, Part
from embark.studies.curves import Setting, Sweep, curve
from embark.types import Array, Classes, EmbarkError, Qrels, role_of

SHOTS = {"probe": 16, "multilabel": 8}  # examples a class, where the row does not say
MEASURES = ("hit_rate", "recall", "precision", "ndcg", "map", "mrr")


def shots(tasks: Iterable[Sequence[Embedded]]) -> Sweep:
    """Learning curves: each task as it stands with several numbers of examples a class, fewest first."""
    curves = []
    for several in tasks:
        settings = [(int(task.parts[0].params["shots"]), task) for task in several]
        curves.append(curve([Setting(f"{k} a class", task, "", k) for k, task in settings]))
    notes = (
        "Each run learns from so many examples of each class, or all that a class has;",
        "the examples of a smaller number are among those of a larger one.",
    )
    return Sweep("Score by number of examples", "examples a class", tuple(curves), notes)


def prompts(tasks: Iterable[Embedded], own: Mapping[str, int]) -> Sweep:
    """Zero-shot with a row's own prompts together (the first so many of each class), then with each prompt alone."""
    curves, notes = [], []
    for task in tasks:
        places, names = _places(task), list(task.task.templates)
        count = int(places[0].max()) + 1
        together = min(own[task.task.name], count)
        if count != len(names):  # the data brings its own
            names = [f"prompt {number}" for number in range(1, count + 1)]
            notes.append(f"{task.task.name} takes its prompts from its data: others cannot be tried.")
        found = [Setting(f"{together} together", _with(task, [place < together for place in places]))]
        found = found if together > 1 else []
        found += [Setting(f"“{name}”", _with(task, [place == at for place in places])) for at, name in enumerate(names)]
        curves.append(curve(found))
    return Sweep("Zero-shot score by prompt", "prompt", tuple(curves), tuple(dict.fromkeys(notes)), "names")


def top_k(tasks: Iterable[Embedded], measure: str = "hit_rate") -> Sweep:
    """A ranking measure at each cut-off; a classification counts as a ranking of the classes."""
    if measure not in MEASURES:
        raise EmbarkError(f"There is no ranking measure '{measure}'; there are {', '.join(MEASURES)}.")
    curves = []
    for task in tasks:
        ranked = replace(task, parts=tuple(as_ranking(part) for part in task.parts))
        offered = max(_offered(part) for part in ranked.parts)
        ks = [k for k in CUTOFFS if k == 1 or k < offered]
        settings = [Setting(f"{measure} at {k}", ranked.under(metric=f"{measure}_at_{k}"), "", k) for k in ks]
        curves.append(curve(settings, paired=False))
    notes = ("Classes are ranked by the similarity of their prompts.",)
    any_classes = any(each.task.task.evaluator == "zeroshot" for each in curves)
    return Sweep(f"{measure} at k", "k", tuple(curves), notes if any_classes else ())


def conditions(tasks: Iterable[Embedded]) -> Sweep:
    """A robustness task under each of its conditions, against the clean items."""
    curves = []
    for task in tasks:
        sides = task.parts[0].vectors
        if all(side == role_of(side) for side in sides):
            raise EmbarkError(f"{task.task.name} has no corrupted variant; tasks of the evaluator 'robustness' do.")
        names = dict.fromkeys(side.split(":", 1)[1] for side in sides if side != role_of(side))
        curves.append(curve([Setting(name or "clean", _under_condition(task, name)) for name in ("", *names)]))
    return Sweep("Score under corruption", "condition", tuple(curves), scale="names")


def as_ranking(part: Part) -> Part:
    """A classification by prompts as retrieval: every item ranks the classes. Rankings stay as they are."""
    if isinstance(part.truth, Qrels) and part.evaluator in ("retrieval", "choice"):
        return part
    if not isinstance(part.truth, Classes):
        raise EmbarkError(f"'{part.evaluator}' ranks nothing: top-k needs retrieval, choice or zero-shot.")
    label, classes = part.truth.label, len(part.truth.names)
    item, right = np.nonzero(label) if label.ndim == 2 else (np.arange(len(label)), label)
    rows = whole(part.vectors["prompt"], str(part.params.get("similarity", "cosine")))
    vectors = {"query": part.vectors["item"], "document": class_vectors(rows, part.truth.prompt, classes)}
    truth = Qrels(item, right, np.ones(len(item), np.int64))
    ids = {"query": part.ids["item"], "document": part.truth.names}
    return replace(part, evaluator="retrieval", truth=truth, vectors=vectors, ids=ids)


def _offered(part: Part) -> int:
    """How many documents a query can have at most."""
    if isinstance(part.truth, Qrels) and full_params(part.evaluator, part.params).get("judged_only"):
        return int(np.bincount(part.truth.query).max())
    return len(part.vectors["document"])


def _places(task: Embedded) -> list[Array]:
    """Of every prompt among those of its class, for each part."""
    found = []
    for part in task.parts:
        if not isinstance(part.truth, Classes):
            raise EmbarkError(f"{task.task.name} has no prompts: it is scored by '{part.evaluator}', not 'zeroshot'.")
        owner = part.truth.prompt
        count = np.bincount(owner)
        if (count != count[0]).any():
            raise EmbarkError(f"The classes of {task.task.name} have different numbers of prompts.")
        place = np.empty(len(owner), np.int64)
        place[np.argsort(owner, kind="stable")] = np.tile(np.arange(count[0]), len(count))
        found.append(place)
    return found


def _with(task: Embedded, kept: Sequence[Array]) -> Embedded:
    """The task with some of its prompts."""
    parts = []
    for part, mask in zip(task.parts, kept, strict=True):
        rows, truth = np.flatnonzero(mask), part.truth
        assert isinstance(truth, Classes)
        vectors = {**part.vectors, "prompt": take(part.vectors["prompt"], rows)}
        ids = {**part.ids, "prompt": [part.ids["prompt"][row] for row in rows.tolist()]}
        parts.append(replace(part, truth=replace(truth, prompt=truth.prompt[rows]), vectors=vectors, ids=ids))
    return replace(task, parts=tuple(parts))


def _under_condition(task: Embedded, name: str) -> Embedded:
    """The task by its base evaluator, with the items of one condition."""
    parts = []
    for part in task.parts:
        clean = {side: found for side, found in part.vectors.items() if side == role_of(side)}
        vectors = {side: part.vectors.get(f"{side}:{name}", found) for side, found in clean.items()}
        params = dict(part.params)
        base = str(params.pop("base", "retrieval"))
        params["metric"] = params.pop("base_metric", "hit_rate_at_1")
        parts.append(replace(part, evaluator=base, vectors=vectors, params=params))
    row = replace(task.task, metric=str(parts[0].params["metric"]))
    return replace(task, task=row, parts=tuple(parts))
