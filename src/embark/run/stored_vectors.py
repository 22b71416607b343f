"""The stored vectors of a task, for analyses: nothing is embedded unless that is asked for."""

from __future__ import annotations

from embark.data import fetch, readers
from embark.engine.local import Report, embed
from embark.engine.progress import progress
from embark.models import Loading
from embark.models.encoder import Encoder, fingerprint
from embark.plan import Demand, Plan, demand, plan
from embark.run import cannot, narrowed, parts, resolve_models
from embark.run.embedded_task import Embedded, EmbeddedPart
from embark.run.score import readable
from embark.settings import Settings
from embark.store import Store
from embark.types import Dataset, EmbarkError, Side, Task


class NotStored(EmbarkError):
    """Some vectors are not in the store; the message says how to embed them."""


class Stored:
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
        (self.encoder,) = resolve_models(model, loading, settings)
        self.settings, self.embedding, self.show = settings, embedding, show_progress
        self.space = Store(settings.store).space(fingerprint(self.encoder.card))
        self._read: dict[tuple[str, tuple[str, ...], str, str], Dataset] = {}

    def task(self, task: Task, command: str = "") -> Embedded:
        """A task with its vectors; `command` is what embeds them, if not a run of the task."""
        card = self.encoder.card
        if why := cannot(card, task):
            raise EmbarkError(f"{card.name} cannot do {task.name}: {why}.")
        with fetch.using(self.settings):
            demands = [demand(task, *part, self._data(task, *part), self.encoder) for part in parts(task)]
            report = self._complete(plan(demands, self.space.has), command)
        found = [readable(each, report) for each in demands]
        said = dict.fromkeys(text for _, warnings in found for text in warnings)
        return Embedded(card.name, task, tuple(self._part(each) for each, _ in found), tuple(said))

    def _data(self, task: Task, split: str, subset: str) -> Dataset:
        """A part of a task; rows that differ in what the evaluator is told are read once."""
        key = (task.name, task.templates, split, subset)
        if key not in self._read:
            self._read[key] = readers.read(task, split, subset)
        return narrowed(task, self._read[key])

    def _complete(self, planned: Plan, command: str) -> Report:
        """Embed what is missing, or refuse; a row that goes without unreadable items goes without those."""
        total, task, card = planned.total, planned.demands[0].task, self.encoder.card
        if not planned.needs:
            return Report()
        if self.embedding:
            with progress(card.name, total.missing, self.show) as advance, self.space.writer() as writer:
                report = embed(self.encoder, planned.needs, writer, workers=self.settings.workers, advance=advance)
            self.space.refresh()
            return report
        if task.unreadable == "skip" and total.stored:
            return Report(unreadable={need.key: "it is not stored" for need in planned.needs})
        command = command or f"embark run -m {card.name} -t {task.name}"
        raise NotStored(
            f"{total.missing:,} of the {total.unique:,} vectors of {task.name} by {card.name} are not stored in "
            f"{self.settings.store}. Embed them: {command}"
        )

    def _part(self, each: Demand) -> EmbeddedPart:
        task, data = each.task, each.data
        told = {"metric": task.metric, "similarity": self.encoder.card.similarity, "memory": self.settings.memory << 20}
        return EmbeddedPart(
            each.split,
            each.subset,
            task.evaluator,
            data.truth,
            {side: self.space.read(keys) for side, keys in each.keys.items()},
            {**task.params, **told},
            {side: found.ids for side, found in data.sides.items()},
            {side: _modalities(found) for side, found in data.sides.items()},
        )


def _modalities(side: Side) -> str:
    return "+".join(dict.fromkeys(kind for item in side.items for kind in item.modalities))
