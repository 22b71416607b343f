"""What a run would embed, store and cost, before it runs: on the data itself, or on the rows' own counts."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from embark import evaluators
from embark.catalogue import counted, group_values, listed
from embark.engine.batching.batches import by_kind
from embark.engine.calibration import SAMPLE_SECONDS, calibrate
from embark.engine.price import bills, total
from embark.engine.progress import progress, span
from embark.field_types import checked
from embark.hub.listing import is_local
from embark.models import Loading
from embark.models.encoder import Bill, Encoder
from embark.planning import Count, Demand, Outline, Plan, outline
from embark.results.selection import select_tasks
from embark.run import Skipped, skipped_notes
from embark.run.crash_log import CrashLog
from embark.run.models import Models, load_model, model_name, name_models
from embark.run.predictions import TimePrediction, prediction_file, scoring_seconds
from embark.run.workbench import Workbench, incompatibility
from embark.settings import Settings, load_settings
from embark.tables import Exact, Note, Row, Table, Tabular, applicable, by_column, html_notes
from embark.tasks import Tasks
from embark.types import Array, EmbarkError, ModelCard, Task

SAVINGS = 12  # rows of the savings table
OVERHEAD = 44  # bytes that the store keeps for a vector beside its numbers
SCORING = 0.15  # of the time for measuring: the share for scoring
DECIMALS = {"seconds": ".1f", "dollars": ".4f"}


@dataclass(frozen=True)
class ModelPlan:
    """A plan for one model: by demand, bytes to store, and seconds to embed, read and score or a provider's bill."""

    model: str
    plan: Plan
    bytes: list[int]
    seconds: list[float]  # to embed; empty for a paid model: it is not called just to measure its speed
    bills: list[Bill]  # empty for a model that runs on this machine
    reading: list[float] = field(default_factory=list)  # and hashing
    scoring: list[float] = field(default_factory=list)
    loading: float = 0.0  # seconds

    def stages(self) -> dict[str, float]:
        """The predicted seconds of each stage; none of a paid model."""
        if self.bills:
            return {}
        stages = {"read": self.reading, "embed": self.seconds, "score": self.scoring}
        return {"load": self.loading} | {name: sum(seconds) for name, seconds in stages.items()}

    def rows(self) -> list[dict[str, Any]]:
        """One row per task (its splits and subsets together), then the total."""
        demands = group_values((demand.task.name, number) for number, demand in enumerate(self.plan.demands))
        counts = self.plan.counts
        rows = [
            self._row(task, sum((counts[number] for number in numbers), Count()), numbers)
            for task, numbers in demands.items()
        ]
        return [*rows, self._row("all", self.plan.total, range(len(counts)), self.loading)]

    def _row(self, task: str, count: Count, demands: Sequence[int], loading: float = 0.0) -> dict[str, Any]:
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
        by_demand = [sum(seconds) for seconds in zip(self.reading, self.seconds, self.scoring, strict=True)]
        return row | {"seconds": loading + sum(by_demand[number] for number in demands)}

    def table(self) -> Table:
        """Tasks × counts and prices."""
        rows = self.rows()
        lines = [Row(tuple(_cell(name, value) for name, value in row.items())) for row in rows]
        count = self.plan.total
        reuse = count.items / count.unique if count.unique else 1.0
        stages = ", ".join(f"{name} {span(seconds)}" for name, seconds in self.stages().items())
        notes = {
            f"Each distinct item serves {reuse:.2f} times: "
            f"embedding once saves {count.items - count.unique:,} of {count.items:,}.": True,
            f"Seconds as measured on this machine just now, one stage after another: {stages}.": stages,
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
                "models": [
                    {"model": plan.model, "tasks": plan.rows(), "seconds": plan.stages()} for plan in self.models
                ],
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

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """`rows` as columns."""
        return by_column(self.rows())


@checked
def plan(
    model: Models | None = None,
    tasks: Tasks = None,
    *,
    protocol: str | None = None,
    read_data: bool | None = None,
    limit: int | None = None,
    seconds: float = SAMPLE_SECONDS,
    settings: Settings | None = None,
    loading: Loading | None = None,
    show_progress: bool = True,
) -> PlanReport:
    """What an evaluation would embed, store and cost; nothing is embedded but samples, and no vector is stored.

    Tasks over hub data are planned on their rows' counts, without a model and in an instant, unless `read_data` is
    true. The time is predicted from what this machine does in about `seconds` for each model: samples of every kind of
    item go through the whole pipeline; a run within a day says how it compares. A model behind an API is not asked, its
    price is estimated. `limit` plans a sample of each task, as `evaluate` does.
    """
    chosen = select_tasks(tasks, protocol, settings)
    if limit is not None:
        chosen = [task.limited(limit) for task in chosen]
    evaluators.check_tasks(chosen)
    if read_data is None:
        read_data = all(task.family in ("Pocket", "Folder") or is_local(task.source.id) for task in chosen)
    if not read_data:
        return PlanReport(tuple(chosen), outline=outline(chosen))
    bench = Workbench(settings or load_settings(), show_progress=show_progress)
    log = CrashLog(bench.settings)
    skipped: list[Skipped] = []
    models: list[ModelPlan] = []
    cards: list[ModelCard] = []
    errors: list[Exception] = []
    for name_or_encoder in name_models(model, settings=bench.settings):
        name = model_name(name_or_encoder)
        try:
            start = time.perf_counter()
            encoder = load_model(name_or_encoder, loading, bench.settings)
            took = time.perf_counter() - start
            models.append(_model_plan(bench, encoder, chosen, skipped, log, took, seconds))
            cards.append(encoder.card)
        except Exception as error:  # it costs this model, not the others
            errors.append(error)
            why = log.reason(error, f"planning {name}")
            skipped += [Skipped(name, task.name, "failed", why) for task in chosen]
    if errors and not models:
        raise EmbarkError("; ".join(skipped_notes(skipped))) from errors[0]
    if not errors and not any(of_model.bills for of_model in models):
        _keep_prediction(prediction_file(bench.settings, cards, chosen), models)
    return PlanReport(tuple(chosen), tuple(models), tuple(skipped))


def _model_plan(
    bench: Workbench,
    encoder: Encoder,
    tasks: Sequence[Task],
    skipped: list[Skipped],
    log: CrashLog,
    loading: float,
    seconds: float,
) -> ModelPlan:
    name = encoder.card.name
    demands: list[Demand] = []
    reading: list[float] = []
    with progress(f"{name}: reading", len(tasks), bench.show_progress, "tasks") as advance:
        for task in tasks:
            if why := incompatibility(encoder.card, task):
                skipped.append(Skipped(name, task.name, "not applicable", why))
                continue
            start = _clocks()
            try:
                of_task = bench.demands(task, encoder)
                demands += of_task
                # Waiting for downloads is no work of the processor, and the run will not wait for them again.
                reading += [float(min(_clocks() - start)) / len(of_task)] * len(of_task)
            except Exception as error:
                why = log.reason(error, f"planning {task.name}")
                skipped.append(Skipped(name, task.name, "failed", why))
            finally:
                advance(1)
    planned = bench.plan(encoder, demands)
    size = (encoder.card.dim or 1024) * np.dtype(encoder.card.stored).itemsize + OVERHEAD
    charged = bills(encoder, planned.needs, len(demands))
    return ModelPlan(
        name,
        planned,
        bytes=[count.missing * size for count in planned.counts],
        seconds=[] if charged else _embedding_seconds(bench, encoder, planned, (1 - SCORING) * seconds),
        bills=charged,
        reading=reading,
        scoring=[] if charged else scoring_seconds(bench, encoder.card, demands, SCORING * seconds),
        loading=loading,
    )


def _clocks() -> Array:
    """The time, and what of it the processor worked for this process."""
    return np.array([time.perf_counter(), time.process_time()])


def _embedding_seconds(bench: Workbench, encoder: Encoder, planned: Plan, seconds: float) -> list[float]:
    """The seconds to embed what each demand lacks, as measured on samples."""
    if not planned.needs:
        return [0.0] * len(planned.demands)
    home = bench.settings.home  # the disk that the vectors will be on
    kinds = len(by_kind(planned.needs))
    with progress(f"{encoder.card.name}: measuring", kinds, bench.show_progress, "kinds of items") as advance:
        rates = calibrate(
            encoder,
            planned.needs,
            seconds=seconds,
            workers=bench.settings.workers,
            folder=home if home.is_dir() and os.access(home, os.W_OK) else None,
            advance=advance,
        )
    names, numbers = planned.needs.kinds()
    seconds_of_items = np.array([rates[name] for name in names])[numbers]
    return list(map(float, np.bincount(planned.needs.numbers, seconds_of_items, len(planned.demands))))


def _keep_prediction(path: Path, models: Sequence[ModelPlan]) -> None:
    """Keep what was predicted, for the run."""
    scores = sum(len({demand.task.name for demand in of_model.plan.demands}) for of_model in models)
    embedded = sum(of_model.plan.total.missing for of_model in models)
    seconds = sum(sum(of_model.stages().values()) for of_model in models)
    TimePrediction(scores, embedded, seconds, time.time()).save(path)


def _summary(tasks: Sequence[Task], rows: Outline) -> tuple[str, ...]:
    saved = rows.items - rows.unique
    whole = " with all their items" if any(task.limit for task in tasks) else ""
    return (
        Note(f"{counted(len(tasks), 'task')}{whole}, by the rows' own counts; no data was read", "--data reads it"),
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
