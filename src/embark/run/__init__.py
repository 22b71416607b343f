"""One evaluation: read → plan → embed → score → record.

All chosen tasks are planned together, so that an item they share is embedded once; a score that is already on disk
under the same protocol and encoder is not computed again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np

from embark import evaluators, results
from embark.catalogue import UnknownName
from embark.data import readers
from embark.data.drop_items import without
from embark.data.fetch import Hub
from embark.data.items import as_keys
from embark.engine.local import Report, embed, measure
from embark.engine.price import bills
from embark.engine.progress import progress
from embark.models import Loading, get_model
from embark.models.encoder import Bill, Encoder, fingerprint
from embark.plan import Demand, Need, Plan, demand, plan
from embark.results import Results, TaskResult
from embark.results.table import Table
from embark.run.score import Scoring, fingerprint_of, score_task, scored_by
from embark.run.stages import Stages, Staging
from embark.settings import Settings, load_settings
from embark.stats.means import Column, by_model, grouped, mean_of_groups, mean_score, score, task_table
from embark.store import Space, Store
from embark.tasks import BENCHMARKS, TASKS, get_tasks
from embark.types import Benchmark, Dataset, EmbarkError, ModelCard, Task

DEFAULT_BENCHMARK = "Pocket"
DEFAULT_MODELS = ("embark/pocket", "embark/handmade", "embark/random")


@dataclass(frozen=True)
class Skipped:
    """A task that got no score, and why: `kind` is "not applicable", "not available" or "failed"."""

    model: str
    task: str
    kind: str
    why: str


@dataclass
class Run:
    """What an evaluation found."""

    tasks: list[Task]
    results: list[TaskResult] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    computed: int = 0  # scores computed now; the others were on disk
    embedded: int = 0
    seconds: float = 0.0

    @property
    def items(self) -> int:
        """Items that the scored tasks ask for, over all models."""
        return self._count("items")

    @property
    def unique(self) -> int:
        """Of these, the distinct ones: what embedding once embeds. An upper bound where `exact` is false."""
        return self._count("first")

    @property
    def exact(self) -> bool:
        """Whether each model's scores come from one evaluation, so that all items that tasks share are known."""
        made = {(result.model, result.revision, record.run) for result in self.results for record in result.records}
        return len(made) == len({(model, revision) for model, revision, _ in made})

    @property
    def reuse(self) -> float:
        """How many times an embedded item is used."""
        return self.items / self.unique if self.unique else 1.0

    def _count(self, name: str) -> int:
        return sum(record.counts.get(name, 0) for result in self.results for record in result.records)

    def table(self) -> Table:
        """Tasks × models, each score with its 95 % interval, and the mean of the categories' means."""
        categories = grouped(self.tasks, lambda task: task.category)
        models = []
        for who, results_by_task in by_model(self.tasks, self.results).items():
            scores = {task: score(result) for task, result in results_by_task.items()}
            total = mean_of_groups(categories, {task: one.value for task, one in scores.items()}).totals["mean"]
            models.append(Column(who, scores, {"mean": mean_score(total, scores)}))
        return task_table(self.tasks, models, {"mean": "Mean of categories"})

    def to_frame(self) -> Any:
        """One row a (model, task, split, subset) as a pandas data frame."""
        try:
            import pandas
        except ImportError as error:
            raise EmbarkError(
                "Data frames need pandas: pip install pandas. `Run.results` has the same values."
            ) from error
        return pandas.DataFrame(results.long_table(self.results))


Models = str | Encoder | Iterable[str | Encoder]
Tasks = str | Task | Benchmark | Iterable[str | Task] | None


def evaluate(
    model: Models,
    tasks: Tasks = None,
    *,
    protocol: str | None = None,
    settings: Settings | None = None,
    rescore: bool = False,
    batch_size: int | None = None,
    loading: Loading | None = None,
    stages: Stages | None = None,
    show_progress: bool = True,
) -> Run:
    """Evaluate one or more models over tasks (default: the pocket benchmark) and keep vectors and scores.

    `protocol` names another way of scoring than the paper's, for the tasks that have it; its results are kept apart.
    `rescore` computes scores again from the stored vectors, even those that are on disk. `loading` says where models
    that are given by name run, in which precision, and whose code is trusted. `stages` are models that work before and
    after: captions, rewritten queries, re-ranking. A failure costs the tasks that need what failed, and `Run.skipped`
    lists them; it is raised if there is no result at all.
    """
    start, chosen = time.perf_counter(), under(protocol, resolve_tasks(tasks))
    settings = settings or load_settings()
    staging = Staging(stages, loading or Loading(), settings, show_progress) if stages else None
    job = _Job(chosen, settings, rescore, batch_size, show_progress, staging)
    run = Run(job.tasks)
    for encoder in resolve_models(model, loading, job.settings):
        job.evaluate(encoder, run)
    if job.trouble and not run.results:
        raise job.trouble
    run.seconds = time.perf_counter() - start
    return run


@dataclass(frozen=True)
class Preview:
    """A plan with its price for each demand: bytes to store, and seconds to embed or what a provider charges for it."""

    model: str
    plan: Plan
    bytes: list[int]
    seconds: list[float]  # none for a model that is paid: it is not asked just to time it
    bills: list[Bill]  # none for a model that runs here


def preview(
    model: Models, tasks: Tasks = None, *, protocol: str | None = None, settings: Settings | None = None,
    loading: Loading | None = None,
) -> tuple[list[Preview], list[Skipped]]:  # fmt: skip
    """What an evaluation would embed, and what that would cost; nothing is stored. Keywords as for `evaluate`."""
    job, out, run = _Job(under(protocol, resolve_tasks(tasks)), settings or load_settings()), [], Run([])
    for encoder in resolve_models(model, loading, job.settings):
        demands = [d for task in job.applicable(encoder, run) for d in job.demands(task, encoder, run)]
        planned = plan(demands, job.space(encoder).has)
        dim = encoder.card.dim or 1024
        size = dim * np.dtype(encoder.card.stored).itemsize + 36
        sizes = [count.missing * size for count in planned.counts]
        charged = bills(encoder, planned.needs, len(demands))
        seconds = [] if charged else _seconds(encoder, planned)
        out.append(Preview(encoder.card.name, planned, sizes, seconds, charged))
    return out, run.skipped


def _seconds(encoder: Encoder, planned: Plan) -> list[float]:
    """What each demand would take, from a timed sample."""
    price, seconds = measure(encoder, planned.needs), [0.0] * len(planned.demands)
    for need in planned.needs:
        seconds[need.demand] += price[need.item.modalities]
    return seconds


def resolve_models(model: Models, loading: Loading | None = None, settings: Settings | None = None) -> list[Encoder]:
    """Names and encoders as encoders."""
    several: list[Any] = [model] if isinstance(model, str) or not isinstance(model, Iterable) else list(model)
    for one in several:
        if not isinstance(one, str) and not hasattr(one, "card"):
            raise EmbarkError(f"{one!r} is no model: give a name or an encoder (embark.encoder wraps functions).")
    how = vars(replace(loading or Loading(), settings=settings))
    return [get_model(m, **how) if isinstance(m, str) else m for m in several]


def resolve_tasks(tasks: Tasks) -> list[Task]:
    """Rows, task names, globs, benchmarks and benchmark names as rows, each once."""
    if tasks is None:
        tasks = BENCHMARKS[DEFAULT_BENCHMARK]
    several: list[Any] = [tasks] if isinstance(tasks, (str, Task, Benchmark)) else list(tasks)
    chosen: dict[str, Task] = {}
    for one in several:
        if isinstance(one, str) and one in BENCHMARKS:
            one = BENCHMARKS[one]
        rows = (
            TASKS.match(one.tasks) if isinstance(one, Benchmark) else [one] if isinstance(one, Task) else get_tasks(one)
        )
        for row in rows:
            if chosen.setdefault(row.name, row) != row:
                raise EmbarkError(f"Two different tasks are named {row.name}: rename one of them.")
    if not chosen:
        raise EmbarkError("No task was chosen.")
    return list(chosen.values())


def under(protocol: str | None, tasks: Sequence[Task]) -> list[Task]:
    """The rows as a protocol has them; one that no row knows is an error."""
    if protocol is None:
        return list(tasks)
    known = dict.fromkeys(["paper", *(name for task in tasks for name in (task.protocol, *task.variants))])
    if protocol not in known:
        raise UnknownName("protocol of the chosen tasks", protocol, known, f"They know {', '.join(known)}.")
    return [task.under(protocol) for task in tasks]


class _Job:
    """The state that models of one evaluation share: data is read once, whoever asks."""

    def __init__(
        self,
        tasks: Sequence[Task],
        settings: Settings,
        rescore: bool = False,
        batch_size: int | None = None,
        show: bool = True,
        staging: Staging | None = None,
    ) -> None:
        self.staging, self.rows = staging, {task.name: task for task in tasks}  # as they are read
        tasks = [staging.row(task) if staging else task for task in tasks]
        self.tasks, self.settings, self.rescore, self.batch_size, self.show = tasks, settings, rescore, batch_size, show
        self.results, self.store = Results(settings.results), Store(settings.store)
        self.hub = Hub(settings, partial(progress, show=show, what="bytes"))
        self.id = uuid4().hex[:12]
        self.trouble: EmbarkError | None = None  # of a model that could not embed everything
        self._read: dict[tuple[str, str, str], Dataset] = {}

    def read(self, task: Task, split: str, subset: str) -> Dataset:
        """A part of a task, read once for all models."""
        part = (task.name, split, subset)
        if part not in self._read:
            data = narrowed(task, readers.read(self.rows[task.name], split, subset, self.hub))
            self._read[part] = self.staging.retold(task, data) if self.staging else data
        return self._read[part]

    def space(self, encoder: Encoder) -> Space:
        """Where the encoder's vectors live."""
        return self.store.space(fingerprint(encoder.card))

    def applicable(self, encoder: Encoder, run: Run) -> list[Task]:
        """The tasks that the model can do; the others are reported before anything is embedded."""
        able = []
        for task in self.tasks:
            if task.evaluator not in evaluators.EVALUATORS:
                unknown = f"there is no evaluator '{task.evaluator}'"
                run.skipped.append(Skipped(encoder.card.name, task.name, "not available", unknown))
            elif why := cannot(encoder.card, task) or (self.staging and self.staging.cannot(self.rows[task.name])):
                run.skipped.append(Skipped(encoder.card.name, task.name, "not applicable", why))
            else:
                able.append(task)
        return able

    def evaluate(self, encoder: Encoder, run: Run) -> None:
        found: dict[str, TaskResult] = {}
        demands: dict[str, list[Demand]] = {}
        able = self.applicable(encoder, run)
        with progress(f"{encoder.card.name}: reading", len(able), self.show, "tasks") as advance:
            for task in able:
                if (known := self._known(task, encoder)) and not self.rescore:
                    found[task.name] = known
                elif asked := self.demands(task, encoder, run):
                    demands[task.name] = asked
                advance(1)
        if demands:
            self.results.check()
        space = self.space(encoder)
        planned = plan([d for several in demands.values() for d in several], space.has)
        try:
            report = self._embed(encoder, planned, space)
        except EmbarkError as error:  # what was embedded is kept, and the tasks that lack nothing are scored
            self.trouble, report = error, self._rescued(planned, space)
            for name in [name for name, asked in demands.items() if not _complete(asked, space)]:
                del demands[name]
                run.skipped.append(Skipped(encoder.card.name, name, "failed", str(error)))
        run.embedded += report.embedded
        counts = {id(each): count for each, count in zip(planned.demands, planned.counts, strict=True)}
        parts_of = {name: [(each, counts[id(each)]) for each in several] for name, several in demands.items()}

        memory = (self.settings.memory << 20) // max(1, min(self.settings.workers, len(demands)))  # for each at once
        given = Scoring(self._card(encoder), space, report, self.results, memory, self.id, self.staging)

        def score(task: Task) -> TaskResult | EmbarkError:
            try:
                return score_task(task, parts_of[task.name], given)
            except EmbarkError as error:
                return error

        todo = [task for task in self.tasks if task.name in demands]
        title = f"{encoder.card.name}: scoring"
        with (
            progress(title, len(todo), self.show, "tasks") as advance,
            ThreadPoolExecutor(self.settings.workers) as pool,
        ):
            for task, outcome in zip(todo, pool.map(score, todo), strict=True):
                advance(1)
                if isinstance(outcome, EmbarkError):
                    run.skipped.append(Skipped(encoder.card.name, task.name, "failed", str(outcome)))
                else:
                    found[task.name] = outcome
                    run.computed += 1
        run.results += [found[task.name] for task in self.tasks if task.name in found]

    def demands(self, task: Task, encoder: Encoder, run: Run) -> list[Demand]:
        """The keys of every split and subset; a task that cannot be read is reported and left out."""
        try:
            return [demand(task, *part, self.read(task, *part), encoder) for part in parts(task)]
        except EmbarkError as error:
            run.skipped.append(Skipped(encoder.card.name, task.name, "failed", str(error)))
            return []

    def _known(self, task: Task, encoder: Encoder) -> TaskResult | None:
        """The result on disk, if every part of it was made by this protocol and this encoder."""
        card = self._card(encoder)
        known = self.results.load(card.name, card.revision, task.name, task.protocol)
        if known is None:
            return None
        wanted = {part: (fingerprint_of(task, *part), scored_by(card)) for part in parts(task)}
        have = {(record.split, record.subset): (record.fingerprint, record.encoder) for record in known.records}
        return known if wanted == have else None

    def _card(self, encoder: Encoder) -> ModelCard:
        """The card under which results are kept."""
        return self.staging.card(encoder.card) if self.staging else encoder.card

    def _embed(self, encoder: Encoder, planned: Plan, space: Space) -> Report:
        if not planned.needs:
            return Report()

        def name(need: Need) -> str:
            each = planned.demands[need.demand]
            return f"{each.task.name} {need.side} '{each.data.sides[need.side].ids[need.row]}'"

        with progress(encoder.card.name, len(planned.needs), self.show) as advance, space.writer() as writer:
            size, workers = self.batch_size, self.settings.workers
            report = embed(encoder, planned.needs, writer, workers=workers, batch_size=size, name=name, advance=advance)
        space.refresh()
        return report

    def _rescued(self, planned: Plan, space: Space) -> Report:
        """What an embedding that failed has left in the store."""
        space.refresh()
        return Report(embedded=int(space.has(as_keys([need.key for need in planned.needs])).sum()))


def _complete(asked: Sequence[Demand], space: Space) -> bool:
    """Whether every vector that a task asks for is there."""
    return all(space.has(keys).all() for each in asked for keys in each.keys.values())


def narrowed(task: Task, data: Dataset) -> Dataset:
    """The dataset without items that no score looks at; left-out queries are said."""
    truth, needed = evaluators.narrow(task.evaluator, data.truth, task.params)
    data = replace(data, truth=truth)
    idle = {side: np.flatnonzero(~mask).tolist() for side, mask in needed.items() if not mask.all()}
    if not idle:
        return data
    said = (f"{len(idle['query']):,} queries have no judgements and are left out",) if "query" in idle else ()
    return replace(without(data, idle), skipped=(*data.skipped, *said))


def cannot(card: ModelCard, task: Task) -> str | None:
    """Why a model cannot do a task, or None if it can."""
    if missing := [modality for modality in task.modalities if modality not in card.modalities]:
        return f"the model takes no {' and no '.join(missing)}"
    if task.mixed and card.fusion is None:
        return "the model has no rule for items that mix modalities"
    return None


def parts(task: Task) -> list[tuple[str, str]]:
    """Every (split, subset) that a task is scored on."""
    return [(split, subset) for split in task.source.splits for subset in task.subsets]
