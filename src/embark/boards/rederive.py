"""Published aggregates computed again from their parts: which agree, which are known errata, which are neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np

from embark.boards.rules import RULES, summarize
from embark.catalogue import group_values
from embark.evaluators.sts import correlation
from embark.published import PrintedCell, Published, errata, results, scores
from embark.stats.means import Summary
from embark.tables import Noted, Row, Table
from embark.tasks import TASKS, get_benchmark

Values = dict[str, float]
EXACT = 1e-9
POINT = 0.01  # a point of percent, as a fraction

LITE_IN_PAPER = {"spearman": 0.992, "pearson": 0.986}  # of MIEB-lite with MIEB, as section 6.3 says
MMEB_TABLES = [f"MMEB-V3 Table {number}" for number in (2, 5, 6, 7, 8, 9, 10)]  # that print aggregates beside tasks
ALSO_TASKS = {"perception-only": "ARK/Daily-Life", "fine-grained visual reasoning": "ARK/Fine-Grained"}


@dataclass(frozen=True)
class Derived:
    """A published cell, the value derived from its parts, and the tolerance for rounding."""

    table: str
    model: str
    name: str
    published: float
    derived: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the cell agrees with its parts."""
        return abs(self.published - self.derived) <= self.tolerance + EXACT

    @property
    def erratum(self) -> str | None:
        """The erratum that describes this disagreement."""
        return next((erratum.id for erratum in errata() if any(map(self._is, erratum.cells))), None)

    def _is(self, cell: PrintedCell) -> bool:
        same = (cell.table, cell.model, cell.name) == (self.table, self.model, self.name)
        return same and _near(cell.published, self.published) and _near(cell.derived, self.derived)


@dataclass(frozen=True)
class Check:
    """The comparison of one table's aggregates with their parts."""

    table: str
    cells: int
    agreeing: int
    errata: dict[str, int]
    unexplained: tuple[Derived, ...]


@dataclass(frozen=True)
class LiteAgreement:
    """How well MIEB-lite's mean follows MIEB's over the models that have every task."""

    models: int
    spearman: float
    pearson: float


@dataclass(frozen=True)
class PublishedCheck(Noted):
    """The comparison of all published aggregates, by table; `notes` name those that no erratum explains."""

    checks: tuple[Check, ...]
    lite: LiteAgreement

    def table(self) -> Table:
        """One row per table, and the sum."""
        counts = [
            (check.cells, check.agreeing, sum(check.errata.values()), len(check.unexplained)) for check in self.checks
        ]
        rows = [Row((check.table, *row, _known(check))) for check, row in zip(self.checks, counts, strict=True)]
        total = Row(("all", *(sum(column) for column in zip(*counts, strict=True)), ""))
        return Table(("table", "cells", "agreeing", "errata", "unexplained", "which errata"), (*rows, total))

    def sentence(self) -> str:
        """How well MIEB-lite stands for MIEB."""
        lite = self.lite
        return (
            f"MIEB-lite ranks {lite.models} fully covered models as MIEB does: Spearman {lite.spearman:.3f}, Pearson "
            f"{lite.pearson:.3f} (the paper says {LITE_IN_PAPER['spearman']} and {LITE_IN_PAPER['pearson']})."
        )

    def as_dict(self) -> dict[str, Any]:
        """All numbers, ready for JSON."""
        return {
            "tables": [asdict(check) for check in self.checks],
            "MIEB-lite": asdict(self.lite) | {"paper": LITE_IN_PAPER},
        }


def check_published() -> PublishedCheck:
    """Compute every published aggregate again from its parts, and compare MIEB-lite with MIEB."""
    checks = check()
    notes = tuple(
        f"unexplained: {of_table.table}, {cell.model}, {cell.name}: {cell.published:g} printed, {cell.derived:g} here"
        for of_table in checks
        for cell in of_table.unexplained
    )
    return PublishedCheck(tuple(checks), lite_agreement(), notes=notes)


def check() -> list[Check]:
    """Every aggregate of the shipped tables that its published parts determine."""
    families = (_mieb_table_22, _mieb_table_2, _mmeb_averages, _mmeb_repeats, _mmeb_counts, _ark, _unibench)
    by_table = group_values((cell.table, cell) for cells_of in families for cell in cells_of())
    return [_checked(table, cells) for table, cells in by_table.items()]


def lite_agreement() -> LiteAgreement:
    """MIEB-lite beside MIEB, both by the mean over task types."""
    from scipy.stats import rankdata

    full, lite = (
        {
            model: summary.totals["mean"].value
            for model, summary in _summaries(name).items()
            if not summary.totals["mean"].partial
        }
        for name in ("MIEB(Multilingual)", "MIEB(lite)")
    )
    models = [model for model in full if model in lite]
    a, b = (np.array([means[model] for model in models]) for means in (full, lite))
    return LiteAgreement(len(models), correlation(rankdata(a), rankdata(b)), correlation(a, b))


def _checked(table: str, cells: Sequence[Derived]) -> Check:
    wrong = [(cell, cell.erratum) for cell in cells if not cell.agrees]
    known = Counter(erratum for _, erratum in wrong if erratum is not None)
    unexplained = tuple(cell for cell, erratum in wrong if erratum is None)
    return Check(table, len(cells), len(cells) - len(wrong), dict(known), unexplained)


def _known(check: Check) -> str:
    return ", ".join(f"{erratum} ({count})" for erratum, count in check.errata.items())


def _near(stated: float | None, value: float) -> bool:
    return stated is not None and abs(stated - value) < 0.01 * POINT


def _aggregates(family: str, *tables: str) -> Iterator[Published]:
    return (score for score in scores(family) if score.kind == "aggregate" and score.table in tables)


def _by_model(benchmark: str) -> dict[str, Values]:
    """{model: {task: value}} of a benchmark, under the paper's protocol."""
    scores_of = group_values((result.model, (result.task, result.score)) for result in results(benchmark))
    return {model: dict(task_scores) for model, task_scores in scores_of.items()}


def _summaries(benchmark: str, rule: str = "mean-of-types") -> dict[str, Summary]:
    tasks = TASKS.match(get_benchmark(benchmark).tasks)
    return {model: summarize(RULES[rule], tasks, values) for model, values in _by_model(benchmark).items()}


def _mieb_table_2() -> Iterator[Derived]:
    """Printed to one digit after a rounding to two, as Table 22 has them."""
    for table, benchmark in (("MIEB Table 2", "MIEB(Multilingual)"), ("MIEB Table 2 (lite)", "MIEB(lite)")):
        summaries = _summaries(benchmark)
        for cell in _aggregates("MIEB", table):
            totals = summaries[cell.model].totals
            means = {"Mean (m)": totals["mean"], "Mean (en)": totals["mean (en)"]} | summaries[cell.model].groups
            yield Derived(table, cell.model, cell.name, cell.value, means[cell.name].value, 0.055 * POINT)


def _mieb_table_22() -> Iterator[Derived]:
    summaries = _summaries("MIEB(Multilingual)", "coarse-and-fine")
    for cell in _aggregates("MIEB", "MIEB Table 22"):
        totals = summaries[cell.model].totals
        means = {"Mean (m)": totals["mean"], "Mean (en)": totals["mean (en)"]} | summaries[cell.model].groups
        yield Derived(cell.table, cell.model, cell.name, cell.value, means[cell.name].value, 0.01 * POINT)


def _mmeb_averages() -> Iterator[Derived]:
    tasks = TASKS.match(get_benchmark("MMEB-V3").tasks)
    new = [task for task in tasks if task.tags["group"] in ("audio", "text", "agent")]  # the tasks of Table 2
    values = _by_model("MMEB-V3")
    rule = RULES["mmeb"]
    summaries = {
        model: (summarize(rule, tasks, scores, ["audio"]), summarize(rule, new, scores, ["audio"]))
        for model, scores in values.items()
    }
    for cell in _aggregates("MMEB-V3", "MMEB-V3 Table 3", *MMEB_TABLES):
        summary = summaries[cell.model][cell.table == "MMEB-V3 Table 2"]
        mean = (summary.groups | summary.totals)[cell.name]
        yield Derived(cell.table, cell.model, cell.name, cell.value, mean.value, 0.1 * POINT)


def _mmeb_repeats() -> Iterator[Derived]:
    """Group means that Table 3 prints, too."""
    summary = {(cell.model, cell.name): cell.value for cell in _aggregates("MMEB-V3", "MMEB-V3 Table 3")}
    for cell in _aggregates("MMEB-V3", *MMEB_TABLES):
        if (cell.model, cell.name) in summary and cell.name not in ("All", "All*"):
            table = f"{cell.table} against Table 3"
            yield Derived(table, cell.model, cell.name, cell.value, summary[cell.model, cell.name], 0)


def _mmeb_counts() -> Iterator[Derived]:
    """How many tasks the tables say that an aggregate has."""
    tasks = TASKS.match(get_benchmark("MMEB-V3").tasks)
    seen = set()
    for cell in scores("MMEB-V3"):
        if cell.parts is not None and (cell.table, cell.name) not in seen and not cell.name.startswith("All"):
            seen.add((cell.table, cell.name))
            count = sum(cell.name in (task.category, task.tags["group"]) for task in tasks)
            yield Derived("MMEB-V3 task counts", cell.table, cell.name, cell.parts, count, 0)


def _ark() -> Iterator[Derived]:
    """Averages of Tables 2, 3 and 9 to 19; skills and demands that are one subtype's queries; what Table 8 repeats."""
    tasks = TASKS.match(get_benchmark("ARK").tasks)
    cells: dict[tuple[str, str, str], Values] = {}  # (table, model, protocol) → name → value
    printed: dict[tuple[str, str, str, str], float] = {}  # (model, protocol, metric, name) → value
    for score in scores("ARK"):
        if score.table != "ARK Table 8":
            cells.setdefault((score.table, score.model, score.protocol), {})[score.name] = score.value
            printed[score.model, score.protocol, score.metric, score.name] = score.value
    for (table, model, _), values in cells.items():
        if "knowledge axis" in values:
            derived = summarize(RULES["ark"], tasks, values).totals["knowledge axis"].value
            yield Derived(table, model, "knowledge axis", values["knowledge axis"], derived, 0.011 * POINT)
        else:
            skills = [value for name, value in values.items() if name.endswith(("reasoning", "abstraction"))]
            yield Derived(table, model, "reasoning axis", values["reasoning axis"], fmean(skills), 0.011 * POINT)
    for score in scores("ARK"):
        task = ALSO_TASKS.get(score.name)
        if score.table == "ARK Table 8":
            same = (score.model, score.protocol, score.metric, score.name)
        elif task and score.table != "ARK Table 9":
            same = (score.model, score.protocol, score.metric, task)
        else:
            continue
        if same in printed:
            yield Derived(score.table, score.model, score.name, score.value, printed[same], 0)


def _unibench() -> Iterator[Derived]:
    """The Overall rows, and the types of Table 1 from the capabilities of Table 5, which is truncated to one digit."""
    means = {
        table: {cell.name: cell.value for cell in _aggregates("UniBench", table) if cell.subset == "mean"}
        for table in ("UniBench Table 1", "UniBench Table 5")
    }
    for table, rows in means.items():
        derived = fmean(value for name, value in rows.items() if name != "Overall")
        yield Derived(table, "mean of models", "Overall", rows["Overall"], derived, 0.05 * POINT)
    tasks = TASKS.match(get_benchmark("UniBench").tasks)
    capabilities = means["UniBench Table 5"]
    for name, value in means["UniBench Table 1"].items():
        if name != "Overall":
            parts = [capabilities[task.tags["capability"]] for task in tasks if task.category == name]
            derived = fmean(parts) + 0.05 * POINT  # what truncation takes away, on average
            yield Derived("UniBench Table 1", "mean of models", name, value, derived, 0.1 * POINT)
    first = {(cell.name, cell.subset): cell for cell in _aggregates("UniBench", "UniBench Table 1")}
    for cell in _aggregates("UniBench", "UniBench Table 5"):
        type_ = {"corruption": "Corruption", "texture detection": "Texture", "relations": "Relation"}.get(cell.name)
        if type_:  # the same benchmarks under two names
            same = first[type_, cell.subset]
            yield Derived("UniBench Table 5 against Table 1", cell.model, cell.name, cell.value, same.value, 0)
