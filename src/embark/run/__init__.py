"""One evaluation: read → plan → embed → score → record.

All chosen tasks are planned together, so that an item they share is embedded once; a score that is already on disk
under the same protocol and encoder is not computed again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embark import evaluators, results
from embark.catalogue import counted, group_values, listed
from embark.data.items import as_keys
from embark.data.local_state import STATES
from embark.data.own_tasks import tasks_to_run
from embark.engine.progress import Advance, log, progress, span
from embark.engine.report import Report
from embark.engine.self_check import Inconsistent
from embark.models import Loading
from embark.models.encoder import Billed, Encoder
from embark.planning import Demand, Plan
from embark.results import CannotSave, Results, TaskResult
from embark.results.table import Table, Tabular, applicable, data_frame, shown
from embark.run.failures import FailureLog
from embark.run.fetching import require_data
from embark.run.models import Model, Models, load_model, model_card, model_name, name_models
from embark.run.predictions import prediction_file, settle_prediction
from embark.run.score import Scoring, commit_now, encoder_fingerprint, fingerprint_of, score_task
from embark.run.stages import StagedWorkbench, Stages
from embark.run.workbench import Workbench
from embark.settings import Settings, load_settings
from embark.stats.means import Column, by_model, grouped, mean_of_groups, mean_score, score, task_table
from embark.stats.outcomes import Readings
from embark.store import MissingVectors
from embark.tasks import Tasks
from embark.types import EmbarkError, ModelCard, Task

LONG = 60.0  # seconds after which scores are printed one by one, as they come
GIVE_UP = 3  # tasks in a row whose items a model fails to embed


@dataclass(frozen=True)
class Skipped:
    """A task that got no score, and why: `kind` is "not applicable", "not available" or "failed"."""

    model: str
    task: str
    kind: str
    why: str


def skipped_notes(skipped: Iterable[Skipped]) -> tuple[str, ...]:
    """One line per reason and model, with the tasks that it holds for."""

    def reason(skip: Skipped) -> tuple[str, str, str]:
        """Kind, model and text; the same one for several tasks is one reason."""
        return skip.kind, "" if skip.kind == "not available" else skip.model, skip.why.replace(skip.task, "{task}")

    notes = []
    for (kind, model, why), tasks in group_values((reason(skip), skip.task) for skip in skipped).items():
        names = list(dict.fromkeys(tasks))
        why = why.replace("{task}", names[0] if len(names) == 1 else "each")
        notes.append(f"{kind}: {listed(names)}{f' for {model}' if model else ''}: {why}")
    return tuple(notes)


@dataclass(repr=False)
class Run(Tabular):
    """The outcome of an evaluation: results, skipped tasks, and how much was computed."""

    tasks: list[Task]
    results: list[TaskResult] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    computed: int = 0  # scores computed now; the others were on disk
    distinct: int = 0  # items of these scores, over all models
    embedded: int = 0
    damaged: int = 0  # stored vectors that did not match their checksums, and were embedded again
    seconds: float = 0.0
    predicted: float | None = None  # seconds; None where no plan of the last day was about just this run
    folder: Path | None = None  # where the results are
    warnings: list[str] = field(default_factory=list)  # about results on disk

    @property
    def items(self) -> int:
        """The number of items of the scored tasks, over all models."""
        return self._count("items")

    @property
    def unique(self) -> int:
        """The number of distinct items, each of which is embedded once. An upper bound where `exact` is false."""
        return self.distinct if self._all_computed else self._count("unique")

    @property
    def exact(self) -> bool:
        """Whether all items that scores share are known: all were computed now, or there is one for each model."""
        scores = [(result.model, result.revision) for result in self.results for record in result.records]
        return self._all_computed or len(scores) == len(set(scores))

    @property
    def _all_computed(self) -> bool:
        return self.computed == len(self.results)

    @property
    def reuse(self) -> float:
        """How many times an embedded item is used."""
        return self.items / self.unique if self.unique else 1.0

    def _count(self, name: str) -> int:
        return sum(record.counts.get(name, 0) for result in self.results for record in result.records)

    def __repr__(self) -> str:
        models = counted(len({(result.model, result.revision) for result in self.results}), "model")
        scores = f"{counted(len(self.results), 'score')} of {models} on {counted(len(self.tasks), 'task')}"
        return f"<Run: {'; '.join((scores, *skipped_notes(self.skipped)))}>"

    def table(self) -> Table:
        """Tasks × models, each score with its 95 % interval, and the mean of the categories' means; below them, the
        tasks that got no score.
        """
        categories = grouped(self.tasks, lambda task: task.category)
        models = []
        for key, results_by_task in by_model(self.tasks, self.results).items():
            scores = {task: score(result) for task, result in results_by_task.items()}
            means = mean_of_groups(categories, {task: task_score.value for task, task_score in scores.items()})
            mean = mean_score(means.totals["mean"], scores, readings=Readings(results_by_task))
            models.append(Column(key, scores, {"mean": mean}))
        table = task_table(self.tasks, models, {"mean": "Mean of categories"} if models else {})
        return replace(table, notes=(*table.notes, *skipped_notes(self.skipped)))

    def summary(self) -> tuple[str, ...]:
        """What the run took, in sentences."""
        place = f" in {self.folder}" if self.folder else ""
        sentences = {
            f"Embedded {counted(self.embedded, 'item')} in a run of {self.seconds:.1f} s; "
            f"{counted(self.computed, 'score')} computed, {len(self.results) - self.computed} already on "
            f"disk{place}.": True,
            f"The plan predicted {span(self.predicted or 0)}; it took {span(self.seconds)}.": self.predicted,
            f"{counted(self.damaged, 'stored vector')} did not match their checksums and were embedded again; "
            "see: embark store check": self.damaged,
            f"The tasks use {self.items:,} items, {self.unique:,} of them distinct: each is embedded once and serves "
            f"{self.reuse:.2f} times.": self.exact and self.unique,
        }
        return applicable(sentences)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The tasks that got no score, with the reason (tasks with the same share a line); warnings about results; the
        size of own data that say nothing about it: a file cut off between two lines cannot be told in another way.
        """
        sizes = {
            result.task: sum(record.counts.get("items", 0) for record in result.records)
            for result in self.results
            if result.row and not result.row.rows and not result.sampled
        }
        counts = [f"Own data: {listed([f'{task} has {size:,} items' for task, size in sizes.items()])}."] * bool(sizes)
        return (*skipped_notes(self.skipped), *self.warnings, *counts)

    def to_frame(self) -> Any:
        """One row per (model, task, split, subset) as a pandas data frame."""
        return data_frame(results.long_table(self.results), results.LONG_COLUMNS)


class NothingScored(EmbarkError):
    """No task could be scored, and something failed; `run` is what there is to say about it."""

    def __init__(self, run: Run) -> None:
        notes = skipped_notes(skip for skip in run.skipped if skip.kind == "failed")
        super().__init__("\n".join(["Nothing could be scored.", *notes]))
        self.run = run


def evaluate(
    model: Models | None = None,
    tasks: Tasks = None,
    *,
    protocol: str | None = None,
    settings: Settings | None = None,
    limit: int | None = None,
    rescore: bool = False,
    batch_size: int | None = None,
    loading: Loading | None = None,
    stages: Stages | None = None,
    show_progress: bool = True,
    name: str | Sequence[str] | None = None,
) -> Run:
    """Evaluate one or more models over tasks and keep vectors and scores.

    Without models and tasks: those that embark.toml of the working folder names, else the pocket model and two
    baselines over the pocket benchmark. `name` is what results and tables call the model (of several: one for each);
    its vectors are stored as ever.

    `protocol` names another way of scoring than the paper's, for the tasks that have it; its results are kept apart.
    `limit` scores a sample of so many queries, test items or pairs of each split and subset, always the same ones, over
    the whole corpus; such scores are marked, kept apart from full ones, and on no board.
    `rescore` computes scores again from the stored vectors, even those that are on disk. `loading` says where models
    that are given by name run, in which precision, and whose code is trusted. `stages` are models that work before and
    after: captions, rewritten queries, re-ranking. A failure, whatever it raises, costs the tasks that need what failed
    or the model that cannot be loaded; `Run.skipped` lists them. Where that leaves no result at all, it is raised.
    """
    start = time.perf_counter()
    chosen = tasks_to_run(tasks, protocol)
    if limit is not None:
        chosen = [task.limited(limit) for task in chosen]
    bench = Workbench(settings or load_settings(), batch_size, show_progress)
    if stages:
        bench = StagedWorkbench(stages, loading or Loading(), bench)
    models = name_models(model, name, bench.settings)
    evaluation = _Evaluation(bench, chosen, rescore, loading)
    if bench.settings.offline:
        evaluation.require_data(models)
    for number, name_or_encoder in enumerate(models, 1):
        bench.heading = f"model {number} of {len(models)}, " if len(models) > 1 else ""
        evaluation.evaluate(name_or_encoder)
    evaluation.run.seconds = time.perf_counter() - start
    evaluation.settle_prediction(chosen)
    if evaluation.failed and not evaluation.run.results:
        raise NothingScored(evaluation.run)
    return evaluation.run


class _Evaluation:
    """Several models over the same tasks, on one workbench, into one `Run`."""

    def __init__(self, bench: Workbench, tasks: Sequence[Task], rescore: bool, loading: Loading | None) -> None:
        self.bench = bench
        self.tasks = [bench.row(task) for task in tasks]
        self.rescore = rescore
        self.loading = loading
        self.folder = Results(bench.settings.results)
        self.log = FailureLog(bench.settings)
        self.run = Run(self.tasks, folder=bench.settings.results, warnings=self.folder.notes)
        self.failed = False
        self.start = time.monotonic()
        self.cards: list[ModelCard] = []  # of the models that were loaded

    def require_data(self, models: Sequence[Model]) -> None:
        """Offline: refuse to begin where the data of a task is missing that has no result on disk yet."""
        cards = [model_card(model, self.bench.settings) for model in models]

        def recorded(task: Task) -> bool:
            return None not in cards and all(self._result(card, task) is not None for card in cards if card)

        require_data([task for task in self.tasks if self.rescore or not recorded(task)], self.bench.hub)

    def evaluate(self, model: Model) -> None:
        """Evaluate one model on the tasks that have no score of it yet; whatever fails costs tasks, not the run."""
        on_disk: dict[str, TaskResult] = {}
        outdated: dict[str, TaskResult] = {}
        scored: dict[str, TaskResult] = {}
        failed_before = len(self.run.skipped)
        try:
            encoder = load_model(model, self.loading, self.bench.settings)
            self.cards.append(encoder.card)
            demands = self._read(encoder, on_disk, outdated)
            if demands:
                self.folder.check()
            planned = self.bench.plan(encoder, [demand for of_task in demands.values() for demand in of_task])
            report = self._embed(encoder, planned, demands)
            self.run.embedded += report.embedded
            try:
                self._score(encoder, planned, demands, report, scored, outdated)
            finally:
                self.run.distinct += self._distinct(encoder, planned, demands, scored)
        except CannotSave:
            raise
        except Exception as error:
            done = {*on_disk, *scored, *(skip.task for skip in self.run.skipped[failed_before:])}
            self._fail(model_name(model), [task.name for task in self.tasks if task.name not in done], error)
        self.run.computed += len(scored)
        results_by_task = on_disk | scored
        self.run.results += [results_by_task[task.name] for task in self.tasks if task.name in results_by_task]

    def settle_prediction(self, tasks: Sequence[Task]) -> None:
        """Record what a plan predicted for this run."""
        path = prediction_file(self.bench.settings, self.cards, tasks)
        self.run.predicted = settle_prediction(path, self.run.computed, self.run.embedded, self.run.seconds)

    def _distinct(
        self, encoder: Encoder, planned: Plan, demands: Mapping[str, list[Demand]], scored: Mapping[str, TaskResult]
    ) -> int:
        """How many distinct items the scored tasks have."""
        if len(scored) < len({demand.task.name for demand in planned.demands}):
            planned = self.bench.plan(encoder, [demand for task in scored for demand in demands[task]])
        return planned.total.unique

    def _read(
        self, encoder: Encoder, on_disk: dict[str, TaskResult], outdated: dict[str, TaskResult]
    ) -> dict[str, list[Demand]]:
        """The demands by task, of tasks without a result in the folder; such results are put into `on_disk`, and those
        that will be replaced into `outdated`.
        """
        demands: dict[str, list[Demand]] = {}
        tasks = self._applicable(encoder)
        with self._progress(f"{encoder.card.name}: reading", len(tasks)) as advance:
            for task in tasks:
                try:
                    result = self._result(encoder.card, task)
                    if result:
                        self._check_folder(task, result)
                    if result and not self.rescore and self._is_current(result, task, encoder):
                        on_disk[task.name] = result
                        continue
                    if result:
                        outdated[task.name] = result
                    demands[task.name] = self.bench.demands(task, encoder)
                except Exception as error:
                    self._fail(encoder.card.name, [task.name], error)
                finally:
                    advance(1)
        return demands

    def _applicable(self, encoder: Encoder) -> list[Task]:
        """The tasks that the model can do; the others are reported before anything is embedded."""
        applicable = []
        for task in self.tasks:
            if task.evaluator not in evaluators.EVALUATORS:
                why = f"there is no evaluator '{task.evaluator}'"
                self.run.skipped.append(Skipped(encoder.card.name, task.name, "not available", why))
            elif reason := self.bench.incompatibility(encoder.card, task):
                self.run.skipped.append(Skipped(encoder.card.name, task.name, "not applicable", reason))
            else:
                applicable.append(task)
        return applicable

    def _check_folder(self, task: Task, result: TaskResult) -> None:
        """Refuse to replace the result of another folder that is still there: two things have one name."""
        other = result.row.source if result.row else task.source
        by_content = all(source.revision.startswith(STATES) for source in (other, task.source))
        if (
            by_content
            and other.id != task.source.id
            and other.revision != task.source.revision
            and Path(other.id).is_dir()
        ):
            raise EmbarkError(
                f"The results have {task.name} of another folder, {other.id}. Give this one another name (--name, or "
                "name=… in Python), or keep its results elsewhere (--results)."
            )

    def _is_current(self, result: TaskResult, task: Task, encoder: Encoder) -> bool:
        """Whether every part of a result was made by this protocol and this encoder, of the data as it is."""
        card = self.bench.card(encoder.card)
        current = {part: (fingerprint_of(task, *part), encoder_fingerprint(card)) for part in task.parts}
        recorded = {(record.split, record.subset): (record.fingerprint, record.encoder) for record in result.records}
        return current == recorded and self._of_present_data(result, task)

    def _of_present_data(self, result: TaskResult, task: Task) -> bool:
        """Whether a result's data is at the commit that the row's branch has now; so it is if nobody can tell."""
        try:
            return commit_now(task, result.dataset_revision, self.bench.hub) == result.dataset_revision
        except EmbarkError as error:
            source = task.source
            note = f"scores on disk stand, though {source.revision} of {source.id} could not be looked up: {error}"
            if note not in self.run.warnings:
                self.run.warnings.append(note)
            return True

    def _result(self, card: ModelCard, task: Task) -> TaskResult | None:
        card = self.bench.card(card)
        return self.folder.load(card.name, card.revision, task.name, task.protocol)

    def _embed(self, encoder: Encoder, planned: Plan, demands: dict[str, list[Demand]]) -> Report:
        """Embed what is missing. After a failure, the tasks that lack a vector are tried one by one, or dropped."""
        try:
            return self.bench.embed(encoder, planned)
        except Inconsistent:
            raise
        except Exception as error:
            failure = error
        return self._embed_singly(encoder, planned, demands, failure)

    def _embed_singly(
        self, encoder: Encoder, planned: Plan, demands: dict[str, list[Demand]], error: Exception
    ) -> Report:
        """Embed task by task, so that a failure costs only the tasks that need what failed.

        A model that embeds nothing of several tasks in a row is given up; one that costs money is not tried again.
        """
        space = self.bench.space(encoder.card)
        report = Report()
        tried: set[bytes] = set()  # keys of tasks that failed: another that lacks nothing else proves nothing new
        failures = GIVE_UP if isinstance(encoder, Billed) else 0
        for name in list(demands):
            missing = self.bench.plan(encoder, demands[name])
            if not missing.needs:
                continue
            if failures < GIVE_UP:
                try:
                    report.add(self.bench.embed(encoder, missing))
                    failures = 0
                    continue
                except Exception as of_task:
                    error = of_task
                keys = [need.key for need in missing.needs]
                space.refresh()
                if space.has(as_keys(keys)).any():
                    failures = 0
                elif not tried.issuperset(keys):
                    failures += 1
                tried.update(keys)
            del demands[name]
            self._fail(encoder.card.name, [name], error)
        space.refresh()
        report.embedded = int(space.has(as_keys([need.key for need in planned.needs])).sum())
        return report

    def _score(
        self,
        encoder: Encoder,
        planned: Plan,
        demands: dict[str, list[Demand]],
        report: Report,
        scored: dict[str, TaskResult],
        outdated: Mapping[str, TaskResult],
        again: bool = False,
    ) -> None:
        """Score several tasks at once, into `scored`. Failures are reported; damaged vectors are embedded again."""
        counts = {id(demand): count for demand, count in zip(planned.demands, planned.counts, strict=True)}
        tasks = [task for task in self.tasks if task.name in demands]
        workers = self.bench.settings.workers
        at_once = min(workers, len(tasks))
        scoring = Scoring(self.bench, encoder, report, self.folder, self.log.id, at_once, outdated)

        def score_one(task: Task) -> TaskResult | Exception:
            try:
                return score_task(task, [(demand, counts[id(demand)]) for demand in demands[task.name]], scoring)
            except Exception as error:
                return error

        damaged: dict[str, list[Demand]] = {}
        with (
            self._progress(f"{encoder.card.name}: scoring", len(tasks)) as advance,
            ThreadPoolExecutor(workers) as pool,
        ):
            for number, (task, outcome) in enumerate(zip(tasks, pool.map(score_one, tasks), strict=True), 1):
                advance(1)
                if isinstance(outcome, MissingVectors) and not again:
                    damaged[task.name] = demands[task.name]
                elif isinstance(outcome, Exception):
                    if task.limit is not None and type(outcome) is EmbarkError:
                        outcome = EmbarkError(f"{outcome} Of a larger sample (limit) there may be a score.")
                    self._fail(encoder.card.name, [task.name], outcome)
                    self._log(f"{encoder.card.name}, task {number} of {len(tasks)}: {task.name} failed")
                else:
                    scored[task.name] = outcome
                    value = f"{task.name} {shown(score(outcome), marks=False)} ({outcome.metric})"
                    self._log(f"{encoder.card.name}, task {number} of {len(tasks)}: {value}")
        if damaged:
            renewed = self._embed_again(encoder, damaged)
            renewed.unreadable |= report.unreadable
            self._score(encoder, planned, damaged, renewed, scored, outdated, again=True)

    def _embed_again(self, encoder: Encoder, demands: dict[str, list[Demand]]) -> Report:
        """Embed the damaged vectors of these tasks again."""
        all_demands = [demand for of_task in demands.values() for demand in of_task]
        space = self.bench.space(encoder.card)
        for demand in all_demands:
            for keys in demand.keys.values():
                space.discard(keys)
        renewed = self._embed(encoder, self.bench.plan(encoder, all_demands), demands)
        self.run.damaged += renewed.embedded
        self.run.embedded += renewed.embedded
        return renewed

    def _progress(self, title: str, tasks: int) -> AbstractContextManager[Advance]:
        return progress(f"{self.bench.heading}{title}", tasks, self.bench.show_progress, "tasks")

    def _log(self, text: str) -> None:
        """Print a line at once, in a run that somebody has to wait for."""
        if self.bench.show_progress and time.monotonic() - self.start >= LONG:
            log(f"{self.bench.heading}{text}")

    def _fail(self, model: str, tasks: Sequence[str], error: Exception) -> None:
        """Report that tasks got no score because of an error."""
        self.failed = True  # the error itself is not kept: its frames hold what was on the device
        why = self.log.reason(error, f"{model}: {listed(tasks)}")
        self.run.skipped += [Skipped(model, task, "failed", why) for task in tasks]
