"""The stored vectors of a task, for analyses: nothing is embedded unless that is asked for."""

from __future__ import annotations

from embark.data import readers
from embark.engine.local import Report
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.planning import Demand, Plan
from embark.run.embedded_task import Embedded, EmbeddedPart
from embark.run.models import choose_models
from embark.run.workbench import Workbench, cannot, needed_items, readable_items
from embark.settings import Settings
from embark.types import Dataset, EmbarkError, Side, Task


class NotStored(EmbarkError):
    """Some vectors are not in the store; the message says how to embed them."""


class Stored(Workbench):
    """One model's stored vectors. `embedding` embeds what is missing, and keeps it, instead of refusing."""

    def __init__(
        self,
        model: str | Encoder,
        settings: Settings,
        *,
        embedding: bool = False,
        loading: Loading | None = None,
        show_progress: bool = True,
    ) -> None:
        super().__init__(settings, show_progress=show_progress)
        (self.encoder,) = choose_models(model, loading, settings)
        self.embedding = embedding
        self._whole: dict[tuple[str, tuple[str, ...], str, str], Dataset] = {}

    def task(self, task: Task, command: str = "") -> Embedded:
        """A task with its vectors; `command` is what embeds them, if not a run of the task."""
        card = self.encoder.card
        if why := cannot(card, task):
            raise EmbarkError(f"{card.name} cannot do {task.name}: {why}.")
        demands = self.demands(task, self.encoder)
        report = self._complete(self.plan(self.encoder, demands), command)
        demands = [readable_items(asking, report) for asking in demands]
        notes = dict.fromkeys(warning for asking in demands for warning in asking.data.skipped)
        return Embedded(card.name, task, tuple(self._part(asking) for asking in demands), tuple(notes))

    def _read(self, task: Task, split: str, subset: str) -> Dataset:
        """Rows that differ only in what the evaluator is told share one reading."""
        part = (task.name, task.templates, split, subset)
        if part not in self._whole:
            self._whole[part] = readers.read(task, split, subset, self.hub)
        return needed_items(task, self._whole[part])

    def _complete(self, planned: Plan, command: str) -> Report:
        """Embed what is missing, or refuse; a row that goes without unreadable items goes without those."""
        total, task, card = planned.total, planned.demands[0].task, self.encoder.card
        if self.embedding or not planned.needs:
            return self.embed(self.encoder, planned)
        if task.unreadable == "skip" and total.stored:
            return Report(unreadable={need.key: "it is not stored" for need in planned.needs})
        command = command or f"embark run -m {card.name} -t {task.name}"
        raise NotStored(
            f"{total.missing:,} of the {total.unique:,} vectors of {task.name} by {card.name} are not stored in "
            f"{self.settings.store}. Embed them: {command}"
        )

    def _part(self, asking: Demand) -> EmbeddedPart:
        sides = asking.data.sides
        return EmbeddedPart(
            asking.split,
            asking.subset,
            asking.task.evaluator,
            asking.data.truth,
            self.vectors(self.encoder, asking),
            self.params(asking.task, self.encoder.card),
            {name: side.ids for name, side in sides.items()},
            {name: _modalities(side) for name, side in sides.items()},
        )


def _modalities(side: Side) -> str:
    return "+".join(dict.fromkeys(kind for item in side.items for kind in item.modalities))
