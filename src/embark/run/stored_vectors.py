"""The stored vectors of a task, for analyses: nothing is embedded unless that is asked for."""

from __future__ import annotations

from embark import readers
from embark.engine.report import EmbeddingReport
from embark.items import as_items
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.planning import Demand, Plan
from embark.run.embedded_task import Embedded, EmbeddedPart
from embark.run.models import StoredOnly, choose_models
from embark.run.workbench import Workbench, incompatibility, needed_items, readable_items
from embark.settings import Settings
from embark.types import Dataset, EmbarkError, Side, Task


class NotStored(EmbarkError):
    """Some vectors are not in the store; the message says how to embed them."""


class Stored(Workbench):
    """One model's stored vectors.

    With `embedding`, missing vectors are embedded and stored, instead of being an error.
    """

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
        """A task with its vectors.

        `command` is the command that embeds them, for messages; by default a run of the task.
        """
        card = self.encoder.card
        if why := incompatibility(card, task):
            raise EmbarkError(f"{card.name} cannot do {task.name}: {why}.")
        demands = self.demands(task, self.encoder)
        report = self._complete(self.plan(self.encoder, demands), command)
        demands = [readable_items(demand, report) for demand in demands]
        notes = dict.fromkeys(warning for demand in demands for warning in demand.data.skipped)
        return Embedded(card.name, task, tuple(self._part(demand) for demand in demands), tuple(notes))

    def _read(self, task: Task, split: str, subset: str) -> Dataset:
        """One split and subset; rows that differ only in their evaluator's parameters share one reading."""
        part = (task.name, task.templates, split, subset)
        if part not in self._whole:
            self._whole[part] = readers.read(task, split, subset, self.hub)
        return needed_items(task, self._whole[part])

    def _complete(self, planned: Plan, command: str) -> EmbeddingReport:
        """Embed the missing vectors if `embedding`, else raise NotStored.

        For a task that leaves unreadable items out, items without a stored vector count as unreadable instead.
        """
        total = planned.total
        task = planned.demands[0].task
        card = self.encoder.card
        if self.embedding or not planned.needs:
            return self.embed(self.encoder, planned)
        if task.unreadable == "skip" and total.stored:
            return EmbeddingReport(unreadable=dict.fromkeys(planned.needs.keys.tolist(), "it is not stored"))
        if isinstance(self.encoder, StoredOnly):
            command = f"in Python, embark.evaluate(encoder, ['{task.name}'])"
        command = command or f"embark run -m {card.name} -t {task.name}"
        raise NotStored(
            f"{total.missing:,} of the {total.unique:,} vectors of {task.name} by {card.name} are not stored in "
            f"{self.settings.store}. Embed them: {command}"
        )

    def _part(self, demand: Demand) -> EmbeddedPart:
        sides = demand.data.sides
        return EmbeddedPart(
            demand.split,
            demand.subset,
            demand.task.evaluator,
            demand.data.truth,
            self.vectors(self.encoder, demand),
            self.params(demand.task, self.encoder.card),
            {name: side.ids for name, side in sides.items()},
            {name: _modalities(side) for name, side in sides.items()},
            sides,
        )


def _modalities(side: Side) -> str:
    return "+".join(dict.fromkeys(kind for kinds in as_items(side.items).kinds().names for kind in kinds))
