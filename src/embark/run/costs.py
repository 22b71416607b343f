"""What benchmarks cost on a number of GPUs: an estimate from the rows' counts and measured rates, without any data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embark.catalogue import counted, group_values, listed
from embark.engine import rates
from embark.engine.rates import FASTEST, GPUS, SLOWEST, TYPICAL, Assumption, Gpu
from embark.field_types import checked
from embark.models import LOADERS, parameter_count, short_count
from embark.planning import Workload, workload
from embark.results.selection import select_tasks
from embark.run.models import Models, model_card, model_name, name_models
from embark.settings import Settings
from embark.tables import Exact, Interval, Row, Table, Tabular, applicable, by_column
from embark.tasks import Tasks, by_benchmark
from embark.types import EmbarkError

FAMILIES = ("MIEB(Multilingual)", "UniBench", "MMEB-V3", "ARK")
SIZES = ("100M", "1B", "8B")
NUMBERS = (1, 8, 64)
NAMED_TASKS = 4  # tasks that a note names
LEAST_HOURS = 0.01  # hours that are shown
TOWERS = "A card counts all towers of a model; an item goes through one: --parameters states the size of that one."


@dataclass(frozen=True)
class Estimate:
    """The cost of a benchmark for a model on a number of GPUs; hours of GPUs are those that the copies hold."""

    benchmark: str
    model: str
    parameters: float
    gpus: int
    copies: int  # of the model, side by side; 0: it does not fit
    items: int  # of all tasks
    unique: int  # distinct ones
    gpu_hours: float  # every distinct item once
    least: float  # with the quickest assumptions
    most: float  # with the slowest
    task_by_task: float  # gpu_hours with every task separately
    wall_hours: float | None


@dataclass(frozen=True)
class CostReport(Tabular):
    """Estimates of GPU hours and wall hours: benchmarks × models × numbers of GPUs, on one kind of GPU."""

    gpu: str
    estimates: tuple[Estimate, ...]
    uncounted: Mapping[str, Mapping[str, tuple[str, ...]]]  # benchmark → task → sides without a count; all: ()

    def rows(self) -> list[dict[str, Any]]:
        """One row per benchmark, model and number of GPUs."""
        return [{"gpu": self.gpu, **vars(estimate)} for estimate in self.estimates]

    def table(self) -> Table:
        """One line per benchmark and model; wall hours by number of GPUs side by side."""
        lines = group_values(((estimate.benchmark, estimate.model), estimate) for estimate in self.estimates)
        numbers = dict.fromkeys(estimate.gpus for estimate in self.estimates)
        columns = ("benchmark", "model", "items", "GPU hours", "from – to", "task by task")
        rows = [_line(estimates, benchmark in self.uncounted) for (benchmark, _), estimates in lines.items()]
        return Table((*columns, *(counted(number, "GPU") for number in numbers)), tuple(rows), self.notes)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the estimates rest on, and what they leave out."""
        sizes = {estimate.model: estimate.parameters for estimate in self.estimates}
        large = [_several(name, size, GPUS[self.gpu]) for name, size in sizes.items()]
        towers = {TOWERS: any(name != short_count(round(size)) for name, size in sizes.items())}
        left_out = [_left_out(benchmark, tasks) for benchmark, tasks in self.uncounted.items()]
        return (*_assumptions(GPUS[self.gpu]), *applicable(towers), *filter(None, large), *left_out)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {"estimates": self.rows(), "uncounted": self.uncounted, "notes": self.notes}

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """`rows` as columns."""
        return by_column(self.rows())


@checked
def cost(
    tasks: Tasks = None,
    *,
    model: Models | None = None,
    parameters: str | float | Iterable[str | float] | None = None,
    gpu: str = "h200",
    gpus: int | Iterable[int] = NUMBERS,
    protocol: str | None = None,
    settings: Settings | None = None,
) -> CostReport:
    """GPU hours and wall hours of benchmarks on `gpus` of a kind, without data, a model or a device: an estimate.

    Items are counted by the rows of tasks, rates follow from a model's size: that of its card, or `parameters` ("8B").
    `tasks` are benchmarks, which have a line each, or any tasks, which have one together. Without arguments: MIEB,
    UniBench, MMEB-V3 and ARK for 100 M, 1 B and 8 B parameters on 1, 8 and 64 GPUs.
    """
    kind = GPUS[gpu]
    numbers = [gpus] if isinstance(gpus, int) else list(gpus)
    if not numbers or min(numbers) < 1:
        raise EmbarkError(f"A run takes at least 1 GPU, not {min(numbers, default=0)}.")
    sizes = _sizes(model, parameters, settings)
    loads = {
        name: workload(select_tasks(choice, protocol, settings))
        for name, choice in by_benchmark(FAMILIES if tasks is None else tasks).items()
    }
    estimates = [
        _estimate(benchmark, load, name, size, kind, number)
        for benchmark, load in loads.items()
        for name, size in sizes.items()
        for number in dict.fromkeys(numbers)
    ]
    uncounted = {benchmark: load.uncounted for benchmark, load in loads.items() if load.uncounted}
    return CostReport(kind.name, tuple(estimates), uncounted)


def _estimate(benchmark: str, load: Workload, model: str, parameters: float, gpu: Gpu, gpus: int) -> Estimate:
    def hours(items: Mapping[tuple[str, ...], int], assumption: Assumption = TYPICAL) -> float:
        """Of one copy of the model."""
        seconds = (count * rates.seconds_per_item(kind, parameters, gpu, assumption) for kind, count in items.items())
        return sum(seconds) / 3600

    together = rates.gpus_per_copy(parameters, gpu)
    copies = gpus // together
    return Estimate(
        benchmark, model, parameters, gpus, copies,
        items=sum(load.by_task.values()),
        unique=sum(load.once.values()),
        gpu_hours=together * hours(load.once),
        least=together * hours(load.once, FASTEST),
        most=together * hours(load.once, SLOWEST),
        task_by_task=together * hours(load.by_task),
        wall_hours=hours(load.once) / copies if copies else None,
    )  # fmt: skip


def _sizes(
    model: Models | None, parameters: str | float | Iterable[str | float] | None, settings: Settings | None
) -> dict[str, float]:
    """Numbers of parameters by what tables call the model."""
    if parameters is None:
        parameters = SIZES if model is None else ()
    elif isinstance(parameters, (str, int, float)):
        parameters = (parameters,)
    counts = [parameter_count(size) if isinstance(size, str) else float(size) for size in parameters]
    if counts and min(counts) <= 0:
        raise EmbarkError("A model has more than 0 parameters; write 400M or 1.5B.")
    sizes: dict[str, float] = {}
    for name_or_encoder in name_models(model, settings=settings) if model is not None else ():
        name = model_name(name_or_encoder)
        card = model_card(name_or_encoder, settings)
        if card and LOADERS[card.loader].type == "api":
            raise EmbarkError(f"{name} is behind an API: a plan without GPUs estimates its price.")
        if not (card and card.parameters):
            raise EmbarkError(f"The number of parameters of {name} is not known: state it (--parameters 8B).")
        sizes[f"{name} ({short_count(card.parameters)})"] = float(card.parameters)
    return sizes | {short_count(round(count)): count for count in counts}


def _line(estimates: Sequence[Estimate], partial: bool) -> Row:
    """The estimates of a benchmark and a model on several numbers of GPUs; `partial`: not all items are counted."""
    first = estimates[0]
    walls = [
        Exact(None, "too few") if estimate.wall_hours is None else _hours(estimate.wall_hours) for estimate in estimates
    ]
    spread = Interval(first.least, first.most, f"{_hours(first.least).text} – {_hours(first.most).text}")
    items = Exact(first.unique, f"{first.unique:,}{'+' if partial else ''}")
    costs = (_hours(first.gpu_hours), spread, _hours(first.task_by_task))
    return Row((first.benchmark, first.model, items, *costs, *walls))


def _hours(hours: float) -> Exact:
    """Hours in two digits."""
    digits = 2 if hours < 1 else 1 if hours < 10 else 0
    return Exact(hours, f"< {LEAST_HOURS}" if 0 < hours < LEAST_HOURS else f"{hours:,.{digits}f}")


def _assumptions(gpu: Gpu) -> tuple[str, ...]:
    low, usual, high = FASTEST.tokens, TYPICAL.tokens, SLOWEST.tokens
    names = {"text": "a text", "passage": "a text searched by text", "image": "a picture", "audio": "a sound"}
    tokens = ", ".join(f"{about} {usual[part]} ({low[part]} to {high[part]:,})" for part, about in names.items())
    sizes = [round(measured.parameters) for measured in rates.MEASURED]
    notes = {
        f"Estimates: 2 × parameters × tokens operations for an item, at {_percent(TYPICAL)} of the {gpu.name}'s "
        f"{gpu.teraflops:,.0f} TFLOP/s in bfloat16. From {_percent(SLOWEST)} to {_percent(FASTEST)} were measured, for "
        f"towers of {short_count(min(sizes))} to {short_count(max(sizes))}; larger models were not measured.": True,
        f"Tokens are assumed: {tokens}; a film is {rates.FRAMES} pictures.": True,
        f"The {rates.CORES} cores beside each GPU prepare {TYPICAL.prepared:,} pictures a second ({SLOWEST.prepared:,} "
        f"from JPEGs of 640 × 480 to stored vectors; the GPU itself decodes {rates.DECODED:,}).": True,
        f"Rates were measured on an h200 alone; an {gpu.name} is taken to reach the same share of its own peak.": any(
            measured.gpu != gpu.name for measured in rates.MEASURED
        ),
        "Items and hours are of every distinct item once, for a model that sees it alike in every role; wall hours are "
        "GPU hours shared out evenly. Downloads, loading and scoring are not counted.": True,
    }
    return applicable(notes)


def _percent(assumption: Assumption) -> str:
    return f"{100 * assumption.utilization:.0f} %"


def _several(name: str, parameters: float, gpu: Gpu) -> str:
    together = rates.gpus_per_copy(parameters, gpu)
    if together == 1:
        return ""
    return (
        f"{name} takes {rates.WEIGHT * parameters / 1e9:,.0f} GB in bfloat16, too much for the {gpu.memory:,.0f} GB of "
        f"one {gpu.name}: a copy is spread over {together}, which compute one after another."
    )


def _left_out(benchmark: str, tasks: Mapping[str, tuple[str, ...]]) -> str:
    """The tasks, and the sides of tasks, that are not in the estimate."""
    groups = group_values((" and ".join(sides), task) for task, sides in tasks.items())
    pieces = [
        f"{f'the {side} side of ' if side else ''}{counted(len(names), 'task')} ({listed(names, NAMED_TASKS)})"
        for side, names in sorted(groups.items())
    ]
    return f"{benchmark}: not counted (+), because rows do not state sizes: {'; '.join(pieces)}."
