"""The workbench of a run: read → plan → embed → vectors → score, one object for whoever needs any of these steps.

Evaluations, ranked lists, analyses of stored vectors and the models that work before and after a retriever all stand on
it: data is read once, whichever model asks, and what is stored is never embedded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embark import evaluators
from embark.data import readers
from embark.data.drop_items import without
from embark.data.fetch import Hub
from embark.engine.local import Report, embed
from embark.engine.progress import progress
from embark.models.encoder import Encoder, fingerprint
from embark.planning import Demand, Need, Plan, demand, plan
from embark.settings import Settings
from embark.store import Space, Store
from embark.types import Dataset, EmbarkError, ModelCard, Scores, Task, role_of

NAMED = 5  # unreadable items that a message names


@dataclass
class Workbench:
    """Settings, the hub that data comes from and the store that vectors go to; `batch_size` None is found by trial."""

    settings: Settings
    batch_size: int | None = None
    show_progress: bool = True
    _datasets: dict[Any, Dataset] = field(default_factory=dict, repr=False)
    _self_checked: set[str] = field(default_factory=set, repr=False)  # fingerprints

    def __post_init__(self) -> None:
        self.hub = Hub(self.settings, lambda title, total: progress(title, total, self.show_progress, "bytes"))
        self.store = Store(self.settings.store)

    def read(self, task: Task, split: str, subset: str) -> Dataset:
        """One split and subset of a task, read once: its items without those that no score looks at."""
        part = (task.name, task.templates, str(task.params), split, subset)
        if part not in self._datasets:
            self._datasets[part] = self._read(task, split, subset)
        return self._datasets[part]

    def _read(self, task: Task, split: str, subset: str) -> Dataset:
        return needed_items(task, readers.read(task, split, subset, self.hub))

    def demands(self, task: Task, encoder: Encoder) -> list[Demand]:
        """The keys that every item of a task has for this encoder, one demand a split and subset."""
        return [demand(task, *part, self.read(task, *part), encoder) for part in task.parts]

    def space(self, card: ModelCard) -> Space:
        """Where the vectors of a model live."""
        return self.store.space(fingerprint(card))

    def plan(self, encoder: Encoder, demands: Sequence[Demand]) -> Plan:
        """What must be embedded before these demands can be scored."""
        return plan(demands, self.space(encoder.card).has)

    def embed(self, encoder: Encoder, planned: Plan) -> Report:
        """Embed and store all that the plan lacks."""

        def name(need: Need) -> str:
            asking = planned.demands[need.demand]
            return f"{asking.task.name} {need.side} '{asking.data.sides[need.side].ids[need.row]}'"

        space = fingerprint(encoder.card)
        unchecked = bool(planned.needs) and space not in self._self_checked
        if unchecked:
            self._self_checked.add(space)
        return self.compute(encoder, planned.needs, batch_size=self.batch_size, self_check=unchecked, name=name)

    def compute(self, model: Encoder, needs: Sequence[Need], **options: Any) -> Report:
        """Have a model compute what is needed, and store it; `options` are those of the engine."""
        if not needs:
            return Report()
        space = self.space(model.card)
        with progress(model.card.name, len(needs), self.show_progress) as advance, space.writer() as writer:
            report = embed(model, needs, writer, workers=self.settings.workers, advance=advance, **options)
        space.refresh()
        return report

    def vectors(self, encoder: Encoder, asking: Demand) -> dict[str, Any]:
        """The stored vectors of each side, mapped from disk."""
        space = self.space(encoder.card)
        return {side: space.read(keys) for side, keys in asking.keys.items()}

    def params(self, task: Task, card: ModelCard, tasks_at_once: int = 1) -> dict[str, Any]:
        """What the evaluator is told: the row's parameters, the model's similarity, and how many bytes it may use."""
        memory = (self.settings.memory << 20) // max(1, tasks_at_once)
        return {**task.params, "metric": task.metric, "similarity": card.similarity, "memory": memory}

    def score_inputs(self, encoder: Encoder, asking: Demand, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the evaluator looks at: the stored vectors of each side."""
        return self.vectors(encoder, asking)

    def score(self, encoder: Encoder, asking: Demand, tasks_at_once: int = 1) -> Scores:
        """The scores of one split and subset, from what is stored."""
        params = self.params(asking.task, encoder.card, tasks_at_once)
        inputs = self.score_inputs(encoder, asking, params)
        return evaluators.evaluate(asking.task.evaluator, asking.data.truth, inputs, params)

    # ── what stages change ───────────────────────────────────────────────────────────────────────────────────────────

    def row(self, task: Task) -> Task:
        """The row under which a task is scored."""
        return task

    def card(self, card: ModelCard) -> ModelCard:
        """The card under which results are kept."""
        return card

    def cannot(self, card: ModelCard, task: Task) -> str | None:
        """Why a model cannot do a task, or None if it can."""
        return cannot(card, task)


def needed_items(task: Task, data: Dataset) -> Dataset:
    """The dataset without items that no score looks at; queries that are left out are counted in its warnings."""
    truth, needed = evaluators.narrow(task.evaluator, data.truth, task.params)
    data = replace(data, truth=truth)
    unused = {side: np.flatnonzero(~mask).tolist() for side, mask in needed.items() if not mask.all()}
    if not unused:
        return data
    data = without(data, unused)
    if "query" not in unused:
        return data
    return replace(
        data, skipped=(*data.skipped, f"{len(unused['query']):,} queries have no judgements and are left out")
    )


def readable_items(asking: Demand, report: Report) -> Demand:
    """Apply the task's policy to items that would not decode: leave them out and say so, or refuse to score.

    An item that is too large for the device's memory is always refused: another machine would score it.
    """
    for keys in asking.keys.values() if report.too_large else ():
        if reasons := [report.too_large[key] for key in keys.tolist() if key in report.too_large]:
            more = f", and for {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
            raise EmbarkError(f"{reasons[0]}{more}. Use a device with more memory, or --dtype bfloat16.")
    unreadable = {
        side: [row for row, key in enumerate(keys.tolist()) if key in report.unreadable]
        for side, keys in asking.keys.items()
        if report.unreadable
    }
    names = [f"{side} '{asking.data.sides[side].ids[row]}'" for side, rows in unreadable.items() for row in rows]
    if not names:
        return asking
    counted = f"{len(names)} unreadable items: {', '.join(names[:NAMED])}{'…' if len(names) > NAMED else ''}"
    if asking.task.unreadable == "error":
        raise EmbarkError(
            f"{counted}. Mend them, or set unreadable='skip' on the task (--skip-unreadable) to score without them."
        )
    dropped = in_step(unreadable)
    keys_left = {side: np.delete(keys, list(dropped[side])) for side, keys in asking.keys.items()}
    data = without(asking.data, dropped)
    return replace(asking, keys=keys_left, data=replace(data, skipped=(*data.skipped, f"left out {counted}")))


def in_step(rows: Mapping[str, Iterable[int]]) -> dict[str, set[int]]:
    """The rows to leave out of each side: its own, and those of its variants, which keep in step with it."""
    return {side: {row for other in rows if role_of(other) == role_of(side) for row in rows[other]} for side in rows}


def cannot(card: ModelCard, task: Task) -> str | None:
    """Why a model cannot do a task, or None if it can."""
    if missing := [modality for modality in task.modalities if modality not in card.modalities]:
        return f"the model takes no {' and no '.join(missing)}"
    if task.mixed and card.fusion is None:
        return "the model has no rule for items that mix modalities"
    return None
