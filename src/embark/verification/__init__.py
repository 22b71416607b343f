"""Whether a model's scores reproduce the published ones: every task's score held against the paper's, with a verdict.

A task's score is taken from disk or computed, and compared under the same protocol; `stats.reproduction` has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from embark.boards.comparable_results import own_results, rows_of
from embark.catalogue import counted, listed
from embark.field_types import checked
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.results import SAMPLED, Record, Results, TaskResult
from embark.results.of_model import results_of_model
from embark.results.task_rows import known_tasks
from embark.run import NothingScored, Skipped, evaluate
from embark.run.models import load_model, model_card, model_name
from embark.settings import Settings, load_settings
from embark.stats.intervals import LEVEL, combined_interval, holm
from embark.stats.outcomes import NotComparable, parts_of
from embark.stats.reproduction import Tolerance, assumed_error, mean_tolerance, standard_error, tolerance
from embark.stats.shared import ItemNumbers
from embark.stats.statistics import pushes
from embark.tables import Exact, Noted, Row, Score, Table, in_points, points, short, signed_points
from embark.tables.drawing import Drawn
from embark.tasks import Tasks
from embark.types import Array, EmbarkError, Task
from embark.verification.causes import Cause, likely_causes
from embark.verification.references import UNPUBLISHED, ScoreReference, folder_references, printed_references
from embark.verification.verdicts import Comparable, TaskCheck, Verdict

STATUS = {"reproduced": 0, "differs": 1, "not comparable": 3}  # of the command; 2 is an error of the user's
COLORS: dict[Verdict, str] = {"reproduced": "#0072B2", "differs": "#D55E00"}
SHOWN = 4  # tasks that the sentence names


@dataclass(frozen=True)
class Verification(Noted, Drawn):
    """A model's scores held against published ones, task by task, and the likely causes of differences."""

    model: str
    published_as: str
    source: str  # the papers' tables, or a folder
    checks: tuple[TaskCheck, ...]
    mean: MeanCheck | None  # of all tasks that can be compared
    causes: tuple[Cause, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """That of all tasks: one that differs, or failed, is enough, and so is their mean."""
        verdicts = {check.verdict for check in self.checks}
        if "differs" in verdicts or any(check.failed for check in self.checks) or (self.mean and self.mean.differs):
            return "differs"
        return "reproduced" if "reproduced" in verdicts else "not comparable"

    @property
    def status(self) -> int:
        """The exit status of the command: 0 reproduced, 1 something differs or failed, 3 nothing can be compared."""
        return STATUS[self.verdict]

    def of_verdict(self, verdict: Verdict) -> list[TaskCheck]:
        """The tasks with a verdict."""
        return [check for check in self.checks if check.verdict == verdict]

    def table(self) -> Table:
        """One row per task, those that differ first; differences in points."""
        order: tuple[Verdict, ...] = ("differs", "reproduced", "not comparable")
        rows = [Row(_cells(check), verdict) for verdict in order for check in self.of_verdict(verdict)]
        if self.mean is not None:
            mean = signed_points(self.mean.difference, 2)
            rows.append(Row(("mean of all", None, None, mean, _allowed(self.mean.tolerance), ""), total=True))
        notes = [f"likely cause: {cause.sentence()}" for cause in self.causes]
        if rows[:-1] and self.mean is not None:
            notes.append(
                "allowed: the difference, in points, of 95 % of reproductions of one task. Verdicts are corrected for "
                "the number of tasks (Holm)."
            )
        return Table(("task", "published", "ours", "difference", "allowed", "note"), tuple(rows), tuple(notes))

    @property
    def title(self) -> str:
        return f"{self.model} against {Path(self.source).name}"

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, min(1.6 + 0.2 * sum(check.scores is not None for check in self.checks), 24.0)

    def draw(self, figure: Any) -> None:
        """The difference of each task beside what a reproduction of it alone would stay within."""
        pairs = [(check, check.scores) for check in self.checks if check.scores is not None]
        axes = figure.subplots()
        axes.axvline(0, color="black", lw=0.8)
        rows = range(0, -len(pairs), -1)
        allowed = np.array([100 * scores.tolerance.allowed for _, scores in pairs])
        axes.hlines(rows, -allowed, allowed, color="#BBBBBB", lw=5, label="allowed (one task alone)")
        for verdict, tint in COLORS.items():
            own = [(row, scores) for row, (check, scores) in zip(rows, pairs, strict=True) if check.verdict == verdict]
            differences = [100 * scores.difference for _, scores in own]
            axes.plot(differences, [row for row, _ in own], "o", ms=4, color=tint, label=f"{verdict} ({len(own)})")
        axes.set_yticks(rows, [short(check.row.name, 34) for check, _ in pairs], fontsize=7)
        axes.margins(y=1 / (2 + len(pairs)))
        axes.grid(visible=False, axis="y")
        axes.set(xlabel="difference from the published score (points)")
        figure.legend(loc="outside lower center", ncols=3, fontsize=8)

    def sentence(self) -> str:
        """The verdict in words."""
        reproduced = self.of_verdict("reproduced")
        differing = sorted(self.of_verdict("differs"), key=lambda check: -abs(_difference(check)))
        compared = len(reproduced) + len(differing)
        name = self.model if self.model == self.published_as else f"{self.model} (published as {self.published_as})"
        if not compared:
            return f"{name}: none of {counted(len(self.checks), 'task')} can be compared with {self.source}."
        text = f"{name}: {len(reproduced)} of {counted(compared, 'score')} are as published"
        if differing:
            names = [f"{check.row.name} ({signed_points(_difference(check), 2).text})" for check in differing]
            text += f"; {len(differing)} differ: {listed(names, SHOWN)}"
        if self.mean is not None:
            text += f"; in the mean {signed_points(self.mean.difference, 2).text} points ({self.mean.verdict})"
        left_out = len(self.checks) - compared
        return text + (f"; {counted(left_out, 'task')} cannot be compared." if left_out else ".")

    def as_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "model": self.model,
            "published as": self.published_as,
            "source": self.source,
            "verdict": self.verdict,
            "status": self.status,
            "mean difference": self.mean and self.mean.difference,
            "tasks": [_as_dict(check) for check in self.checks],
            "causes": [vars(cause) for cause in self.causes],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class MeanCheck:
    """The mean difference over all tasks that can be compared, and how far it may be from zero."""

    difference: float
    tolerance: Tolerance
    p: float

    @property
    def differs(self) -> bool:
        """Whether it is more than that."""
        return self.p < 1 - LEVEL

    @property
    def verdict(self) -> str:
        """The verdict on the mean."""
        return "differs" if self.differs else f"{_allowed(self.tolerance).text} allowed"


@checked
def verify(
    model: str | Encoder,
    tasks: Tasks = None,
    *,
    published_as: str | None = None,
    against: Path | str | None = None,
    protocol: str | None = None,
    limit: int | None = None,
    run: bool = True,
    batch_size: int | None = None,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> Verification:
    """Hold a model's scores on tasks against the published ones: reproduced, or not, and why.

    Only tasks that have a published score of the model under the same protocol are run; scores on disk, yours and
    imported ones, are taken as they are, and nothing is run unless `run`. `published_as` is the model's name in the
    tables, where it is not that of the model. `against` is a folder of results to compare with instead of the papers'
    tables: mteb's, MMEB's, UniBench's or embark's. `limit` scores samples of so many queries, test items or pairs.
    """
    if tasks is None:
        raise EmbarkError("Name a benchmark or tasks whose published scores are to be reproduced.")
    settings = settings or load_settings()
    stored = Results(settings.results)
    on_disk = list(stored.all())
    known = known_tasks(on_disk, settings.home)
    rows = rows_of(tasks, protocol, known)
    published_name = published_as or _name(model, on_disk, settings)
    references = (
        printed_references(rows, published_name)
        if against is None
        else folder_references(rows, Path(against), published_name, known, protocol)
    )
    notes = list(stored.notes)
    own_protocols = {name for row in rows_of(tasks, None, known) for name in (row.protocol, *row.variants)}
    if run and protocol not in (None, "paper", *own_protocols):
        run = False
        notes.append(f"not run, as {protocol} takes stages (embark run --caption, --rewrite or --rerank)")
    own = _OwnScores(model, None if isinstance(model, str) else load_model(model), notes=notes)
    own.read([row for row in rows if isinstance(references[row.name], ScoreReference)], stored, on_disk, limit, run)
    if run and own.to_run:
        own.run(loading, settings, batch_size, show_progress)
    checks, mean = _corrected([own.check(row, references[row.name], limit) for row in rows])
    verification = Verification(
        own.encoder.card.name if own.encoder else _name(model, on_disk, settings),
        published_name,
        "the papers' tables" if against is None else str(against),
        tuple(checks),
        mean,
        notes=(*notes, *_notes(checks, limit)),
    )
    if verification.verdict != "differs":
        return verification
    return replace(verification, causes=likely_causes(checks, own.encoder, settings))


# ── scores of ours ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _OwnScores:
    """A model's scores, from disk and from a run; `encoder` is the model, where it is loaded."""

    model: str | Encoder
    encoder: Encoder | None
    notes: list[str]
    results: dict[str, TaskResult] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    to_run: list[Task] = field(default_factory=list)

    def read(
        self, rows: Sequence[Task], stored: Results, on_disk: Sequence[TaskResult], limit: int | None, run: bool
    ) -> None:
        """Take what is on disk: of other tools, where there is nothing of ours; of ours, unless it is to be run.

        A run takes scores from disk, too, and knows whether they are of this very model.
        """
        self.results = _imported(rows, on_disk, model_name(self.model))
        self.to_run = [row for row in rows if row.name not in self.results]
        if limit is not None:
            self.to_run = [row.limited(limit) for row in self.to_run if row.evaluator != "clustering"]
        if not run:
            self.results |= _on_disk(stored, on_disk, self.to_run, self.model)

    def run(self, loading: Loading | None, settings: Settings, batch_size: int | None, show_progress: bool) -> None:
        """Evaluate the model; one that cannot be loaded is an error, unless it has imported scores."""
        try:
            self.encoder = self.encoder or load_model(self.model, loading, settings)
        except EmbarkError as error:
            if not self.results:
                raise
            self.notes.append(f"not run: {error}")
            return
        try:
            run = evaluate(
                self.encoder, self.to_run, settings=settings, batch_size=batch_size, show_progress=show_progress
            )
        except NothingScored as failed:
            run = failed.run
        self.results |= {result.task: result for result in run.results}
        self.skipped = {skip.task: skip for skip in run.skipped}

    def check(self, row: Task, reference: ScoreReference | str, limit: int | None) -> TaskCheck:
        """Our score on a task beside the published one, or why there is none of either."""
        if isinstance(reference, str):
            return TaskCheck(row, why=reference)
        if row.name in self.results:
            return _check(row, self.results[row.name], reference, limit)
        if skip := self.skipped.get(row.name):
            return TaskCheck(row, why=f"{skip.kind}: {skip.why}", failed=skip.kind == "failed")
        if limit is not None and row.evaluator == "clustering":
            return TaskCheck(row, why="a clustering's score depends on the number of items: run it in full")
        return TaskCheck(row, why="it has no score on disk")


def _name(model: str | Encoder, on_disk: Sequence[TaskResult], settings: Settings) -> str:
    """The model's name in results, as far as it is known before the model is loaded."""
    if isinstance(model, str):
        if any(model in (result.model, f"{result.model}@{result.revision}") for result in on_disk):
            return model.partition("@")[0]
        card = model_card(model, settings)
        return model if card is None else card.name
    return model_name(model)


def _imported(rows: Sequence[Task], on_disk: Sequence[TaskResult], name: str) -> dict[str, TaskResult]:
    """By task, a model's results of other tools, of tasks that have none of ours."""
    current, _ = own_results(rows, on_disk)
    of_model = [r for r in current if name in (r.model, f"{r.model}@{r.revision}") and not isnan(r.score)]
    ours = {result.task for result in of_model if result.made_by == "embark"}
    return {result.task: result for result in of_model if result.task not in ours}


def _on_disk(
    stored: Results, on_disk: Sequence[TaskResult], rows: Sequence[Task], model: str | Encoder
) -> dict[str, TaskResult]:
    """By task, a model's results of ours under the rows' present protocols."""
    if not rows:
        return {}
    current, _ = own_results(rows, [result for result in on_disk if result.made_by == "embark"])
    if not current:
        return {}
    return {result.task: result for result in results_of_model(stored, current, model)}


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check(row: Task, result: TaskResult, references: ScoreReference, limit: int | None) -> TaskCheck:
    """Two scores of a task side by side, not judged yet."""
    reference = references.nearest(result.revision)
    if isnan(result.score) or isnan(reference.score):
        return TaskCheck(row, why="the score is not a number")
    records = _shared_parts(result, reference)
    if not records:
        return TaskCheck(row, why="it is published on other splits or subsets")
    note = ""
    value, interval = result.score, result.interval
    if len(records) < len(result.records):
        note = f"over the {len(records)} of {len(result.records)} parts that are published"
        value = fmean(record.score for record in records)
        interval = combined_interval([record.score for record in records], [record.interval for record in records])
    items, runs = _outcomes(result)
    error = standard_error(value, interval, reference.score)
    if isnan(error):
        items = items or sum(rows for part, rows in row.rows.items() if part.rpartition("/")[2] in row.source.splits)
        error = assumed_error(value, items, row.evaluator == "sts") if items else 0.0
    sizes = [record.counts[SAMPLED] for record in records if SAMPLED in record.counts]
    sampled = min((min(1.0, (limit or size) / size) for size in sizes), default=1.0)
    published_runs = 1 if row.evaluator == "clustering" else max(len(runs), 1)
    allowed = tolerance(
        error, items, rounding=references.rounding, sampled=sampled, runs=runs, published_runs=published_runs
    )
    return TaskCheck(row, Comparable(result, reference, Score(value, *interval), allowed, note=note))


def _corrected(checks: Sequence[TaskCheck]) -> tuple[list[TaskCheck], MeanCheck | None]:
    """The tasks with p-values that are corrected for their number, and their mean, which is one more."""
    scores = [check.scores for check in checks if check.scores is not None]
    if not scores:
        return list(checks), None
    mean = fmean(pair.difference for pair in scores)
    allowed = mean_tolerance([pair.tolerance for pair in scores])
    alone = [pair.tolerance.p_value(pair.difference) for pair in scores]
    p_values = iter(holm([*alone, allowed.p_value(mean)] if len(scores) > 1 else alone))
    corrected = [
        check if check.scores is None else replace(check, scores=replace(check.scores, p=next(p_values)))
        for check in checks
    ]
    return corrected, MeanCheck(mean, allowed, next(p_values)) if len(scores) > 1 else None


def _shared_parts(result: TaskResult, reference: TaskResult) -> list[Record]:
    """Our records of the splits and subsets that the published score is the mean of; a single one is of the whole."""
    if len(reference.records) == 1:
        return list(result.records)
    parts = {(record.split, record.subset) for record in reference.records}
    shared = [record for record in result.records if (record.split, record.subset) in parts]
    return shared if len(shared) == len(parts) else []


def _outcomes(result: TaskResult) -> tuple[int, Array]:
    """The number of outcomes that a score of ours is made of, and the scores of its runs, where it has several."""
    try:
        parts = parts_of(result, ItemNumbers()).values()
    except NotComparable:
        return sum(record.counts.get("items", 0) for record in result.records), np.empty(0)
    runs = [pushes(part.statistic, part.main, part.outcomes).runs for part in parts]
    count = min(map(len, runs))
    return sum(len(part.outcomes["id"]) for part in parts), np.mean([of_part[:count] for of_part in runs], axis=0)


def _notes(checks: Sequence[TaskCheck], limit: int | None) -> list[str]:
    """How much the comparison can tell, and what it takes for granted."""
    pairs = [check.scores for check in checks if check.scores is not None]
    notes = []
    if not any(check.scores or check.failed for check in checks) and any(UNPUBLISHED in check.why for check in checks):
        notes.append("name the model as the tables do (--published-as NAME, or published_as in Python)")
    if sampled := [pair.tolerance.allowed for pair in pairs if limit is not None and _is_sample(pair.result, limit)]:
        notes.append(
            f"{counted(len(sampled), 'score')} of samples (limit {limit:,}): their intervals are as wide as that makes "
            f"them, and half of the tasks may be off by {in_points(median(sampled))} points unnoticed"
        )
    if made_by := sorted({pair.result.made_by for pair in pairs} - {"embark"}):
        notes.append(f"scores of {listed(made_by)} have no outcomes: the effect of numerics is assumed, not measured")
    return notes


def _is_sample(result: TaskResult, limit: int) -> bool:
    """Whether a limited score is of fewer items than there are: a small task is scored as a whole."""
    return any(record.counts.get(SAMPLED, 0) > limit for record in result.records)


# ── words and cells ──────────────────────────────────────────────────────────────────────────────────────────────────


def _difference(check: TaskCheck) -> float:
    return 0.0 if check.scores is None else check.scores.difference


def _cells(check: TaskCheck) -> tuple[Any, ...]:
    pair = check.scores
    if pair is None:
        return check.row.name, None, None, None, None, check.why
    published = points(pair.reference.score)
    return check.row.name, published, pair.ours, signed_points(pair.difference, 2), _allowed(pair.tolerance), pair.note


def _allowed(tolerance: Tolerance) -> Exact:
    return Exact(tolerance.allowed, f"±{in_points(tolerance.allowed, 2)}")


def _as_dict(check: TaskCheck) -> dict[str, Any]:
    pair = check.scores
    facts: dict[str, Any] = {"task": check.row.name, "verdict": check.verdict, "why": check.why or None}
    if pair is None:
        return facts
    return facts | {
        "published": pair.reference.score,
        "ours": pair.ours.value,
        "low": pair.ours.low,
        "high": pair.ours.high,
        "difference": pair.difference,
        "allowed": pair.tolerance.allowed,
        "p (Holm)": pair.p,
        "made by": pair.result.made_by,
        "note": pair.note or None,
    }
