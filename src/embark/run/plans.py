"""What a run would embed, store and cost, before it runs: on the data itself, or on the rows' own counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embark.catalogue import counted, group_values, listed
from embark.data.fetch import is_local
from embark.data.own_tasks import tasks_to_run
from embark.engine.local import measure
from embark.engine.price import bills, total
from embark.models import Loading
from embark.models.encoder import Bill, Encoder
from embark.planning import Count, Outline, Plan, outline
from embark.results.table import Exact, Row, Table, Tabular, applicable, data_frame, html_notes
from embark.run import Skipped, skipped_notes
from embark.run.failures import FailureLog
from embark.run.models import Models, load_model, model_name, name_models
from embark.run.workbench import Workbench, incompatibility
from embark.settings import Settings, load_settings
from embark.tasks import Tasks
from embark.types import EmbarkError, Task

SAVINGS = 12  # rows of the savings table
OVERHEAD = 44  # bytes that the store keeps for a vector beside its numbers
DECIMALS = {"seconds": ".1f", "dollars": ".4f"}


@dataclass(frozen=True)
class ModelPlan:
    """A plan for one model: by demand, bytes to store, and seconds to embed or a provider's bill."""

    model: str
    plan: Plan
    bytes: list[int]
    seconds: list[float]  # empty for a paid model: it is not called just to measure its speed
    bills: list[Bill]  # empty for a model that runs on this machine

    def rows(self) -> list[dict[str, Any]]:
        """One row per task (its splits and subsets together), then the total."""
        demands = group_values((demand.task.name, number) for number, demand in enumerate(self.plan.demands))
        counts = self.plan.counts
        rows = [
            self._row(task, sum((counts[number] for number in numbers), Count()), numbers)
            for task, numbers in demands.items()
        ]
        return [*rows, self._row("all", self.plan.total, range(len(counts)))]

    def _row(self, task: str, count: Count, demands: Sequence[int]) -> dict[str, Any]:
        row: dict[str, Any] = {
            "task": task,
            "items": count.items,
            "unique": count.unique,
            "stored": count.stored,
            "to embed": count.missing,
            "bytes": sum(self.bytes[number] for number in demands),
        }
        if self.bills:
            tokens, dollars = total([self.bills[number] for number in demands])
            return row | {"tokens": round(tokens), "dollars": dollars}
        return row | {"seconds": sum(self.seconds[number] for number in demands)}

    def table(self) -> Table:
        """Tasks × counts and prices."""
        rows = self.rows()
        lines = [Row(tuple(_cell(name, value) for name, value in row.items())) for row in rows]
        count = self.plan.total
        reuse = count.items / count.unique if count.unique else 1.0
        notes = {
            f"Each distinct item serves {reuse:.2f} times: "
            f"embedding once saves {count.items - count.unique:,} of {count.items:,}.": True,
            "Tokens and dollars are estimated from the items and the list price; nothing was sent.": self.bills,
        }
        return Table(tuple(rows[0]), tuple(lines), applicable(notes))


@dataclass(frozen=True)
class PlanReport(Tabular):
    """What a run would do: one plan per model, or an outline by the rows' counts where no data was read."""

    tasks: tuple[Task, ...]
    models: tuple[ModelPlan, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    outline: Outline | None = None

    def rows(self) -> list[dict[str, Any]]:
        """One row per model and task; of an outline, one per task."""
        if self.outline is None:
            return [{"model": plan.model, **row} for plan in self.models for row in plan.rows()]
        sizes = {task.name: sum(pool.items for pool in task.pools) for task in self.tasks}
        return [{"task": name, "items": items or None} for name, items in sizes.items()]

    def table(self) -> Table:
        """The plan of each model; of an outline, the sets of items that tasks share."""
        if self.outline is not None:
            return _savings_table(self.outline)
        tables = [plan.table() for plan in self.models]
        if len(tables) == 1:
            return tables[0]
        columns = dict.fromkeys(name for table in tables for name in table.columns)
        rows = []
        for plan, table in zip(self.models, tables, strict=True):
            for row in table.rows:
                cells = dict(zip(table.columns, row.cells, strict=True))
                rows.append(Row(tuple(cells.get(name, "") for name in columns), plan.model))
        notes = tuple(f"{plan.model}: {table.notes[0]}" for plan, table in zip(self.models, tables, strict=True))
        return Table(tuple(columns), tuple(rows), notes)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The tasks that are not planned, with the reason."""
        return skipped_notes(self.skipped)

    def summary(self) -> tuple[str, ...]:
        """Of an outline: items task by task, items embedded once, and what that saves."""
        return () if self.outline is None else _summary(self.tasks, self.outline)

    def __str__(self) -> str:
        return "\n".join((*self.summary(), super().__str__()))

    def _repr_html_(self) -> str:
        return html_notes(self.summary()) + super()._repr_html_()

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        if self.outline is None:
            return {
                "models": [{"model": plan.model, "tasks": plan.rows()} for plan in self.models],
                "skipped": [vars(skip) for skip in self.skipped],
            }
        rows = self.outline
        return {
            "items": rows.items,
            "unique": rows.unique,
            "saved": rows.items - rows.unique,
            "unknown": rows.unknown,
            "savings": [vars(saving) for saving in rows.savings],
            "tasks": [{"task": task.name, "pools": [vars(pool) for pool in task.pools]} for task in self.tasks],
        }

    def to_frame(self) -> Any:
        """`rows` as a pandas data frame."""
        return data_frame(self.rows())


def plan(
    model: Models | None = None,
    tasks: Tasks = None,
    *,
    protocol: str | None = None,
    read_data: bool | None = None,
    settings: Settings | None = None,
    loading: Loading | None = None,
) -> PlanReport:
    """What an evaluation would embed, store and cost; nothing is embedded but a small sample, and nothing stored.

    Tasks over hub data are planned on their rows' counts, without a model and in an instant, unless `read_data` is
    true. Seconds come from a sample timed on this machine; a model behind an API is not asked, its price is estimated.
    """
    chosen = tasks_to_run(tasks, protocol)
    if read_data is None:
        read_data = all(task.family in ("Pocket", "Folder") or is_local(task.source.id) for task in chosen)
    if not read_data:
        return PlanReport(tuple(chosen), outline=outline(chosen))
    bench = Workbench(settings or load_settings())
    log = FailureLog(bench.settings)
    skipped: list[Skipped] = []
    models: list[ModelPlan] = []
    errors: list[Exception] = []
    for name_or_encoder in name_models(model, settings=bench.settings):
        name = model_name(name_or_encoder)
        try:
            encoder = load_model(name_or_encoder, loading, bench.settings)
            models.append(_model_plan(bench, encoder, chosen, skipped, log))
        except Exception as error:  # it costs this model, not the others
            errors.append(error)
            why = log.reason(error, f"planning {name}")
            skipped += [Skipped(name, task.name, "failed", why) for task in chosen]
    if errors and not models:
        raise EmbarkError("; ".join(skipped_notes(skipped))) from errors[0]
    return PlanReport(tuple(chosen), tuple(models), tuple(skipped))


def _model_plan(
    bench: Workbench, encoder: Encoder, tasks: Sequence[Task], skipped: list[Skipped], log: FailureLog
) -> ModelPlan:
    demands = []
    for task in tasks:
        if why := incompatibility(encoder.card, task):
            skipped.append(Skipped(encoder.card.name, task.name, "not applicable", why))
            continue
        try:
            demands += bench.demands(task, encoder)
        except Exception as error:
            why = log.reason(error, f"planning {task.name}")
            skipped.append(Skipped(encoder.card.name, task.name, "failed", why))
    planned = bench.plan(encoder, demands)
    size = (encoder.card.dim or 1024) * np.dtype(encoder.card.stored).itemsize + OVERHEAD
    charged = bills(encoder, planned.needs, len(demands))
    return ModelPlan(
        encoder.card.name,
        planned,
        bytes=[count.missing * size for count in planned.counts],
        seconds=[] if charged else _seconds(encoder, planned),
        bills=charged,
    )


def _seconds(encoder: Encoder, planned: Plan) -> list[float]:
    """The estimated seconds of each demand, from a timed sample."""
    price = measure(encoder, planned.needs)
    seconds = [0.0] * len(planned.demands)
    for need in planned.needs:
        seconds[need.demand] += price[need.item.modalities]
    return seconds


def _summary(tasks: Sequence[Task], rows: Outline) -> tuple[str, ...]:
    saved = rows.items - rows.unique
    return (
        f"{counted(len(tasks), 'task')}, by the rows' own counts (no data was read; --data plans on the data itself)",
        f"  task by task   {rows.items:>12,} items to embed",
        f"  embedded once  {rows.unique:>12,} for a CLIP-like model, which sees an item the same way in every role",
        f"  saved          {saved:>12,} ({100 * saved / max(rows.items, 1):.1f} %)",
    )


def _savings_table(rows: Outline) -> Table:
    lines = [
        Row((saving.pool, saving.times, saving.saved, listed(saving.tasks, 4))) for saving in rows.savings[:SAVINGS]
    ]
    unknown = f"Not counted, because their sizes are not known: {', '.join(rows.unknown)}"
    return Table(("largest savings", "uses", "saved", "tasks"), tuple(lines), (unknown,) if rows.unknown else ())


def _cell(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return value
    return Exact(value, "?" if value is None else format(value, DECIMALS.get(name, ",")))
