"""Why a model fails on ARK: its scores on both axes, and what captions, rewriting and re-ranking gain for it.

Tables 2, 3 and 10 to 19 of the paper for one's own model. Every route (the model alone, or with stages around it) ranks
the same queries, so gains are differences query by query, against the same model without these stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embark import published
from embark.catalogue import check_name, counted, group_values, listed
from embark.field_types import checked
from embark.models import Loading, get_generator, get_reranker
from embark.models.encoder import Encoder, Generator, Reranker
from embark.readers import ark as ark_reader
from embark.results import NO_INTERVAL
from embark.results.selection import select_tasks
from embark.run import evaluate
from embark.run.models import load_model
from embark.run.outcome import skipped_notes
from embark.run.stages import DEPTH, Stages, prompt_hash
from embark.run.stages import prompts as default_prompts
from embark.settings import Settings, load_settings
from embark.stats.paired import Difference, difference
from embark.stats.shared import Part, interval
from embark.studies.analysis import Analysis
from embark.studies.ark.queries import KNOWLEDGE, METRICS, Queries, QueryGroup, Route, groups_of
from embark.studies.diagnosis import Diagnosis, make_folder
from embark.studies.plotting import MARKERS, color, draw_scores, draw_series, legend_below
from embark.tables import Exact, Row, Score, Table, p_value, points, short, signed_ends, signed_points
from embark.tables.drawing import FORMATS, PAGE
from embark.tasks import TASKS, Tasks
from embark.types import EmbarkError, Task

MAIN = METRICS[0]
STAGE_WORDS = {"caption": "captions", "rewrite": "rewrite", "rerank": "re-rank"}
PAPER = {  # the number of the paper's table, by metric and axis
    **dict(zip(METRICS, ((2, 3), (10, 15), (11, 16), (12, 17), (13, 18), (14, 19)), strict=True))
}
POCKET = (
    f"ARK's labels are not published and {ark_reader.LABELS} names none, so this is the pocket ARK: emoji, "
    "six subtypes (embark show 'ARK(emoji)')"
)


@checked
def diagnose_ark(
    model: str | Encoder,
    tasks: Tasks = None,
    *,
    caption: str | Generator | None = None,
    rewrite: str | Generator | None = None,
    rerank: str | Reranker | None = None,
    depth: int = DEPTH,
    prompts: Mapping[str, str | Path] | None = None,
    out: Path | str | None = None,
    figures: str = "svg",
    settings: Settings | None = None,
    loading: Loading | None = None,
    show_progress: bool = True,
) -> ArkDiagnosis:
    """A model on ARK's two axes, alone and with each stage, and what each stage gains for it.

    `tasks` are ARK's where a file of labels is named (EMBARK_ARK_LABELS), else the pocket ARK's; any retrieval tasks
    with one right answer a query will do. `caption` and `rewrite` are generators, `rerank` orders the `depth` best
    documents anew; each is a name, LOADER:SOURCE (openai-chat:gpt-5.2, recorded:rewrites.jsonl) or an object. A model
    of text alone is measured with `caption`, and the gains of other stages are counted from there. `prompts` are what
    "rewrite" and "caption" are asked instead of our own words. `out` is a folder for report.md, tables (CSV, LaTeX) and
    `figures` (svg, pdf or png).
    """
    check_name("format of figures", f".{figures}", FORMATS)
    if out is not None:
        make_folder(out)
    settings = settings or load_settings()
    notes: list[str] = []
    if tasks is None:
        labeled = bool(ark_reader.external_state(TASKS["ARK/Art"]))
        tasks = "ARK" if labeled else "ARK(emoji)"
        notes += [] if labeled else [POCKET]
    rows = select_tasks(tasks, None, settings)
    if others := [row.name for row in rows if row.evaluator != "retrieval"]:
        raise EmbarkError(f"ARK's tables are of retrieval, which is not what {listed(others)} ask for: leave them out.")
    loading = loading or Loading()
    encoder = load_model(model, loading, settings)
    options: Any = {"loading": loading, "settings": settings}
    captioner = get_generator(caption, **options) if isinstance(caption, str) else caption
    rewriter = get_generator(rewrite, **options) if isinstance(rewrite, str) else rewrite
    reranker = get_reranker(rerank, **options) if isinstance(rerank, str) else rerank
    prompts = prompts or {}
    if unused := [stage for stage in prompts if {"caption": captioner, "rewrite": rewriter}.get(stage) is None]:
        raise EmbarkError(f"There is a prompt for '{unused[0]}', but no model that it is for: name one.")

    def route(**stages: Any) -> Route:
        route_prompts = {stage: prompt for stage, prompt in prompts.items() if stage in stages}
        staged = Stages(**stages, depth=depth, prompts=route_prompts) if stages else None
        run = evaluate(encoder, rows, settings=settings, loading=loading, stages=staged, show_progress=show_progress)
        notes.extend(note for note in (*skipped_notes(run.skipped), *run.warnings) if note not in notes)
        return Route(_route_name(stages, depth), {result.task: result for result in run.results}, staged)

    plain = route()
    routes = [plain] if plain.results else []
    base = {"caption": captioner} if captioner is not None and not routes else {}
    if captioner is not None:
        routes.append(route(caption=captioner))
    if not routes:
        raise EmbarkError(f"{encoder.card.name} cannot do these tasks: {notes[-1]}. Captions may help (--caption).")
    further = {"rewrite": rewriter} if rewriter else {}, {"rerank": reranker} if reranker else {}
    both = further[0] | further[1] if all(further) else {}
    routes += [route(**base, **stages) for stages in (*further, both) if stages]
    scored = tuple(route for route in routes if route.results)
    diagnosis = ArkDiagnosis(encoder.card.name, encoder.card.revision, tuple(rows), scored, notes=tuple(notes))
    if out is not None:
        diagnosis.write(out, figures)
    return diagnosis


class StageGain(NamedTuple):
    """The scores of a group of queries without and with the stages of a route, by a metric, and their difference."""

    route: str
    group: QueryGroup
    metric: str
    before: float
    after: float
    difference: Difference


@dataclass(frozen=True)
class ArkDiagnosis(Diagnosis):
    """A model on ARK's two axes, by all routes; the first route is the one that gains are counted from."""

    model: str
    revision: str
    tasks: tuple[Task, ...]
    routes: tuple[Route, ...]

    @cached_property
    def queries(self) -> Queries:
        """The queries that all routes ranked."""
        return Queries.of(self.tasks, self.routes)

    @cached_property
    def groups(self) -> tuple[QueryGroup, ...]:
        """Subtypes, domains and the average of the knowledge axis; skills, their average and demands."""
        return groups_of(self.tasks, self.queries)

    def score(self, route: str, group: QueryGroup, metric: str = MAIN) -> Score:
        """The score of a route on a group of queries, with its interval."""
        parts = self.queries.parts(route, group, metric)
        return Score(_mean(parts, metric), *interval(parts))

    def gain(self, route: str, group: QueryGroup, metric: str = MAIN) -> StageGain:
        """The gain of a route over the first one on a group of queries, query by query; computed once."""
        key = (route, group, metric)
        if key not in self._gains:
            before, after = (self.queries.parts(name, group, metric) for name in (self.routes[0].name, route))
            value, low, high, p = difference(after, before)
            within = Difference(value, max(low, -1.0), min(high, 1.0), p)
            self._gains[key] = StageGain(*key, _mean(before, metric), _mean(after, metric), within)
        return self._gains[key]

    @cached_property
    def _gains(self) -> dict[tuple[str, QueryGroup, str], StageGain]:
        return {}

    def gains(self, metric: str | None = None) -> list[StageGain]:
        """The gains of every route and group, by a metric or by all of them."""
        metrics = METRICS if metric is None else (metric,)
        staged = [route.name for route in self.routes[1:]]
        return [self.gain(name, group, measure) for name in staged for group in self.groups for measure in metrics]

    # ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def axis_table(self, axis: str, route: str | None = None) -> Table:
        """The scores of a route (default: the first) on an axis by all six metrics, one row per group."""
        name = route or self.routes[0].name
        rows = [
            Row(
                (_shown(group), Exact(group.count, f"{group.count:,}"), *(self.score(name, group, m) for m in METRICS)),
                total=group.kind == "average",
                section=group.kind if group.kind != "average" else "",
            )
            for group in self.groups
            if group.axis == axis
        ]
        return Table((axis, "queries", *map(_metric_name, METRICS)), tuple(rows), (f"Route: {name}.",))

    def gains_table(self, metric: str | None = MAIN) -> Table:
        """One row per route and group: the score before and after, the gain with its interval, the p-value."""
        rows = []
        for gain in self.gains(metric):
            group = gain.group
            measure = () if metric else (gain.metric,)
            scores = [points(gain.before), points(gain.after)]
            count = Exact(group.count, f"{group.count:,}")
            name = group.axis if group.kind == "average" else _shown(group)
            rows.append(Row((gain.route, group.kind, name, count, *measure, *scores, *_gain_cells(gain))))
        measure = () if metric else ("metric",)
        columns = ("route", "kind", "group", "queries", *measure, "before", "after", "gain", "95 %", "p")
        return Table(columns, tuple(rows))

    def paper_table(self, axis: str, metric: str) -> Table:
        """A table as the paper prints it: models down, groups across; your routes first, then the published models."""
        groups = [group for group in self.groups if group.axis == axis and group.kind != "domain"]
        rows = [
            Row((f"{self.model}, {route.name}", *(self.score(route.name, group, metric) for group in groups)), "yours")
            for route in self.routes
        ]
        number = f"ARK Table {PAPER[metric][axis != KNOWLEDGE]}"
        cells = group_values(
            ((cell.model, cell.protocol), (cell.name, cell))
            for cell in (published.scores("ARK") if all(task.family == "ARK" for task in self.tasks) else ())
            if cell.table == number
        )
        for (model, protocol), pairs in cells.items():
            by_name = dict(pairs)
            shown = [by_name.get(_published_name(group)) for group in groups]
            scores = [cell and Score(cell.value, *NO_INTERVAL, marks=published.footnotes(cell)) for cell in shown]
            rows.append(Row((f"{model}, {protocol}", *scores), number))
        return Table(("model", *(_shown(group) for group in groups)), tuple(rows), models="rows")

    # ── the report ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def title(self) -> str:
        families = listed(list(dict.fromkeys(task.name.partition("/")[0] for task in self.tasks)))
        return f"{short(self.model, 40)} on {families}"

    @property
    def data(self) -> str:
        """The model, and how many queries of how many subtypes it was measured on."""
        return f"{self.model}, {counted(len(self.routes[0].results), 'subtype')}, {self.queries.count:,} queries"

    @cached_property
    def findings(self) -> tuple[str, ...]:
        """The data, and the gains of stages in words."""
        revisions = sorted({result.dataset_revision[:12] for result in self.routes[0].results.values()})
        lines = [f"{self.data}; the model at revision {self.revision}, the data at {listed(revisions)}."]
        if self.queries.dropped:
            lines.append(f"Queries that some route did not rank were left out: {self.queries.dropped:,}.")
        for route in self.routes[1:]:
            for group in self.averages:
                value, low, high, _ = self.gain(route.name, group).difference
                verdict = "gains" if low > 0 else "loses" if high < 0 else "changes nothing beyond chance"
                change = f"{signed_points(value).text} points {signed_ends(low, high).text}"
                lines.append(f"{route.name} {verdict} on the {group.axis}: {change}.")
        return tuple(lines)

    @cached_property
    def analyses(self) -> Mapping[str, Analysis]:
        """The routes, both axes and, where there are stages, their gains."""
        by_name: dict[str, Analysis] = {"routes": Routes(self)}
        by_name |= {_slug(axis): Axis(self, axis) for axis in self._axes}
        return by_name | ({"gains": StageGains(self)} if len(self.routes) > 1 else {})

    @cached_property
    def further_tables(self) -> Mapping[str, Table]:
        """The paper's tables, both axes of the routes with stages, and gains by all metrics."""
        tables = {
            f"table-{PAPER[metric][axis != KNOWLEDGE]:02d}-{metric}-{_slug(axis)}": self.paper_table(axis, metric)
            for metric in METRICS
            for axis in self._axes
        }
        routes = {
            f"{_slug(route.name)}-{_slug(axis)}": self.axis_table(axis, route.name)
            for route in self.routes[1:]
            for axis in self._axes
        }
        gains = {"gains-all-metrics": self.gains_table(None)} if len(self.routes) > 1 else {}
        return dict(sorted(tables.items())) | routes | gains

    @property
    def averages(self) -> list[QueryGroup]:
        """The average of each axis."""
        return [group for group in self.groups if group.kind == "average"]

    @property
    def _axes(self) -> list[str]:
        return list(dict.fromkeys(group.axis for group in self.groups))

    def stage_notes(self) -> tuple[str, ...]:
        """The models of the stages, with their revisions and the hashes of their prompts."""
        lines = []
        for route in self.routes[1:]:
            stages = route.stages
            assert stages is not None
            prompts = default_prompts() | stages.own_prompts()
            models = {"caption": stages.caption, "rewrite": stages.rewrite, "rerank": stages.rerank}
            for stage, stage_model in models.items():
                if stage_model is not None and not isinstance(stage_model, str):
                    card = stage_model.card
                    prompt = f"prompt {prompt_hash(prompts[stage])}" if stage in prompts else f"depth {stages.depth}"
                    lines.append(f"{STAGE_WORDS[stage]} by {card.name} at {card.revision}, {prompt}.")
        return tuple(dict.fromkeys(lines))


# ── analyses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Routes(Analysis):
    """The averages of both axes by route, and what stages gain."""

    diagnosis: ArkDiagnosis

    @property
    def title(self) -> str:
        return f"Recall at 1 by route: {self.diagnosis.title}"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.0 + 0.2 * len(self.diagnosis.routes)

    @property
    def caption(self) -> str:
        return f"Average recall at 1 on each axis, with 95 % intervals over queries. {self.diagnosis.data}."

    def table(self) -> Table:
        """For each axis, one row per route: the average by recall at 1, and what it gains."""
        own = self.diagnosis
        rows = []
        for group in own.averages:
            for route in own.routes:
                first = route is own.routes[0]
                gain = [None] * 3 if first else _gain_cells(own.gain(route.name, group))
                rows.append(Row((route.name, own.score(route.name, group), *gain), group.axis))
        gains = f"Gains are points over '{own.routes[0].name}', query by query, with 95 % intervals and p-values."
        notes = (f"{own.data}; recall at 1.", *([gains] if len(own.routes) > 1 else ()), *own.stage_notes())
        return Table(("route", "R@1", "gain", "95 %", "p"), tuple(rows), notes)

    def draw(self, figure: Any) -> None:
        """A panel for each axis, a line for each route."""
        own = self.diagnosis
        places = list(range(0, -len(own.routes), -1))
        panels = np.atleast_1d(figure.subplots(1, len(own.averages), sharey=True))
        for axes, group in zip(panels, own.averages, strict=True):
            for number, (place, route) in enumerate(zip(places, own.routes, strict=True)):
                draw_scores(axes, [place], [own.score(route.name, group)], color(number), MARKERS[number])
            axes.set(xlabel="recall at 1 (%)", xlim=(-2, 102))
            axes.set_title(f"{group.axis} (n = {group.count:,})")
        panels[0].set_yticks(places, [route.name for route in own.routes])
        panels[0].set_ylim(places[-1] - 0.6, 0.6)


@dataclass(frozen=True)
class Axis(Analysis):
    """An axis by all metrics for the first route, and by recall at 1 for all of them."""

    diagnosis: ArkDiagnosis
    axis: str

    @property
    def title(self) -> str:
        return f"{self.axis.capitalize()}: {self.diagnosis.title}"

    @property
    def groups(self) -> list[QueryGroup]:
        """Those that are drawn: a domain is the mean of its subtypes."""
        return [group for group in self.diagnosis.groups if group.axis == self.axis and group.kind != "domain"]

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.2 + (0.1 + 0.075 * len(self.diagnosis.routes)) * len(self.groups)

    @property
    def caption(self) -> str:
        kinds = " and ".join(dict.fromkeys(group.kind for group in self.groups if group.kind != "average"))
        return (
            f"Recall at 1 by {kinds}, with 95 % intervals over queries; in brackets: the number of queries. "
            f"{self.diagnosis.data}."
        )

    def table(self) -> Table:
        """The scores of the first route by all six metrics, one row per group."""
        return self.diagnosis.axis_table(self.axis)

    def draw(self, figure: Any) -> None:
        """Recall at 1 of every group with its interval, by route."""
        axes = figure.subplots()
        places = _places(self.groups)
        names = [route.name for route in self.diagnosis.routes]
        rows = list(zip(places, self.groups, strict=True))
        draw_series(axes, {name: {place: self.diagnosis.score(name, group) for place, group in rows} for name in names})
        _label_rows(axes, self.groups, places)
        _shade(axes, places)
        axes.set(xlabel="recall at 1 (%)", xlim=(-2, 102))
        if len(names) > 1:
            legend_below(figure, *reversed(axes.get_legend_handles_labels()))


@dataclass(frozen=True)
class StageGains(Analysis):
    """The gains of stages by subtype, domain, skill and demand."""

    diagnosis: ArkDiagnosis

    @property
    def title(self) -> str:
        return f"Gains over '{self.diagnosis.routes[0].name}': {self.diagnosis.title}"

    @property
    def size(self) -> tuple[float, float]:
        return PAGE, 1.3 + 0.2 * len(self.diagnosis.groups)

    @property
    def caption(self) -> str:
        return (
            f"Gain in recall at 1 over '{self.diagnosis.routes[0].name}', query by query, with 95 % intervals; filled: "
            f"more than chance; in brackets: the number of queries. {self.diagnosis.data}."
        )

    def table(self) -> Table:
        """The gains by recall at 1."""
        return self.diagnosis.gains_table()

    def draw(self, figure: Any) -> None:
        """A panel for each route; filled points are gains and losses that are more than chance."""
        routes = self.diagnosis.routes[1:]
        groups = self.diagnosis.groups
        places = _places(groups)
        panels = np.atleast_1d(figure.subplots(1, len(routes), sharey=True, sharex=True))
        for number, (axes, route) in enumerate(zip(panels, routes, strict=True), 1):
            axes.axvline(0, color="black", lw=0.8)
            for place, group in zip(places, groups, strict=True):
                gain = Score(*self.diagnosis.gain(route.name, group).difference[:3])
                face = color(number) if gain.low > 0 or gain.high < 0 else "white"
                draw_scores(axes, [place], [gain], color(number), MARKERS[number], mfc=face)
            axes.set_title(route.name.replace(" + ", "\n+ "))
            axes.locator_params(axis="x", nbins=5)
            _shade(axes, places)
        _label_rows(panels[0], groups, places)
        figure.supxlabel("gain in recall at 1 (points)", fontsize=8)


# ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mean(parts: Sequence[Part], metric: str) -> float:
    return float(np.mean([np.mean(part.outcomes[metric]) for part in parts]))


def _route_name(stages: Mapping[str, Any], depth: int) -> str:
    words = {**STAGE_WORDS, "rerank": f"re-rank {depth}"}
    return " + ".join(words[stage] for stage in stages) or "plain"


def _published_name(group: QueryGroup) -> str:
    return group.axis if group.kind == "average" else group.name


def _shown(group: QueryGroup) -> str:
    """A group's name in tables: a subtype's without its family."""
    return group.name.rpartition("/")[2] if group.kind == "subtype" else group.name


def _metric_name(metric: str) -> str:
    name, _, depth = metric.partition("_at_")
    return f"{'R' if name == 'recall' else 'nDCG'}@{depth}"


def _slug(name: str) -> str:
    return "-".join(name.replace("+", " ").split())


def _gain_cells(gain: StageGain) -> list[Any]:
    value, low, high, p = gain.difference
    return [signed_points(value), signed_ends(low, high), p_value(p)]


def _places(groups: Sequence[QueryGroup]) -> list[float]:
    """Heights of rows, from the top down, with a gap between kinds."""
    heights = [0.0]
    for before, group in pairwise(groups):
        heights.append(heights[-1] - (1.0 if group.kind == before.kind else 1.6))
    return heights


def _shade(axes: Any, places: Sequence[float]) -> None:
    """A grey band behind every second row, to lead the eye to its name."""
    for place in places[::2]:
        axes.axhspan(place - 0.5, place + 0.5, color="#F4F4F4", lw=0, zorder=0)


def _label_rows(axes: Any, groups: Sequence[QueryGroup], places: Sequence[float]) -> None:
    names = [f"{group.axis}: average" if group.kind == "average" else _shown(group) for group in groups]
    counted_names = [f"{name} ({group.count:,})" for name, group in zip(names, groups, strict=True)]
    axes.set_yticks(list(places), counted_names)
    axes.set_ylim(places[-1] - 0.8, places[0] + 0.8)
    axes.grid(visible=False, axis="y")
