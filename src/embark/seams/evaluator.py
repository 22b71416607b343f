"""The seam of evaluators: what one declares, and the contract between it and whatever reads its scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from embark.catalogue import UnknownName
from embark.metrics import Measure
from embark.seams.checks import Declared
from embark.types import Array, EmbarkError, Option, Scores, Truth

Params: TypeAlias = Mapping[str, Any]

# What turns outcomes into a score, and the columns of outcomes that it needs; `stats.statistics` computes them.
STATISTICS: Mapping[str, tuple[str, ...]] = {
    "mean": ("{main}",),
    "runs": ("{main}", "{main}_run1"),
    "pearson": ("gold", "similarity"),
    "spearman": ("gold_rank", "similarity_rank"),
    "average_precision": ("gold", "similarity"),
    "nmi": ("label", "cluster_run1"),
    "v_measure": ("label", "cluster_run1"),
    "ari": ("label", "cluster_run1"),
    "cluster_accuracy": ("label", "cluster_run1"),
}

# Parameters that every evaluator accepts; they come from the row's metric, the model's card and the settings. `stages`
# (of a run with stages) is here only because the fingerprint covers a row's parameters; evaluators do not read it.
COMMON_PARAMS = {
    "metric": Option(str, "The main measure."),
    "similarity": Option(str, "How the model compares vectors: cosine, dot or maxsim."),
    "logit_scale": Option(float, "What the model multiplies similarities by before a softmax."),
    "memory": Option(int, "The bytes that scoring may take."),
    "stages": Option(dict, "The models that work before and after."),
}
AT_K = "_at_k"  # ends the name of a measure that takes any cut-off
OF_ITEMS = r"split|subset|id|content|item_cluster|partner|partner_.*|part_.*|about_.*"  # columns beside the outcomes
OF_RECORDS = r"main_score|hf_subset|languages|embark|rank|top|right|label|predicted|predicted_run\d+"  # no measures
SLACK = 1e-6  # by which rounding may lead an outcome beyond 1
BASE_VERSION = 1000  # what the version of a base is multiplied by


@dataclass(frozen=True)
class Evaluator(Declared):
    """How vectors and a truth become scores. This is the contract of every evaluator, ours or a plug-in's.

    **In.** `evaluate(truth, vectors, params)` gets a truth of one of the `truth` kinds. `vectors` has a collection for
    each side of the data set ("query", "item"…), with a vector for each item: rows of numbers, which may lie on disk
    and are read in slices, or a list of matrices where items have several vectors; `embark.evaluators.similarity`
    reads both. `params` are those of the row, the main measure as `metric`, and what else `COMMON_PARAMS` names. No
    vector is missing: items that cannot be embedded leave the data set before. One that is not finite is an error.

    **Pure.** Equal arguments give equal scores: seeds are parameters, ties are resolved by ids or positions, and the
    number of threads changes nothing. An evaluator reads no file and calls no model. Data that it cannot score are an
    `EmbarkError`.

    **Out.** `Scores`:

    - `metrics` has the value of every measure; `main`, that is `evaluator.metric(params)`, names the score among them.
    - `unit` is the side that outcomes are about, and `rows` the position in it of the item of each outcome: a query, a
      test item, the first item of a pair. For two models these are the same. Intervals and paired tests draw items, and
      draw those of equal content together, the pairs that share an item, and the queries that share their answer.
    - `outcomes` are columns as long as `rows`, and `statistic` names what turns them into the score:

      | statistic | the score is | columns |
      | --- | --- | --- |
      | mean | the mean of the items | the main measure's name, from 0 to 1, or from -1 |
      | runs | the mean over items and runs | `NAME_run1`, `NAME_run2`…, and their mean as NAME |
      | pearson | the correlation | `gold`, `similarity` |
      | spearman | the correlation of the ranks | `gold_rank`, `similarity_rank` |
      | average_precision | the mean, over the matches, of the precision there | `gold` (1: match, or 0), `similarity` |
      | nmi, v_measure, ari, cluster_accuracy | the agreement, the mean of the runs | `label`, `cluster_run1`… |

      Of clusterings, `cluster_refit1` and `cluster_refit2` (and so on) are fits to either half of the items. Galleries
      of failures and tables of confusions show these columns, which an evaluator may add: `rank` of the first right
      document (-1: not ranked), `top` (the position of the best document, -1: none), `right` (the position of a pair's
      other half), `label` and `predicted`, or `predicted_run1`… (class numbers). No measure has one of these names, and
      no column that of a column about items (`id`, `split`, `content`…).
    - `counts` are numbers of items for the record, `warnings` sentences below the table. An item without an outcome is
      in neither `rows` nor `outcomes`, and is counted.

    `check_scores` checks this after every evaluation, and `stats.statistics.check_score` computes the score from the
    outcomes before it is recorded. A plug-in takes its statistic from this table: results are also read where it is
    not installed. A measure without a statistic (F1) may be reported, but has no interval, and is no row's metric.
    """

    name: str
    about: str  # what it measures, as `embark show` prints it
    truth: tuple[type[Truth], ...]  # the kinds of truth that it takes
    evaluate: Callable[[Any, Mapping[str, Any], Params], Scores]
    measures: Mapping[str, str]  # that may be a row's `metric` → statistic; "ndcg_at_k" has any cut-off
    main: str  # the metric of a row that names none
    version: int = 1  # part of every fingerprint: raised when a score can change
    params: Mapping[str, Option] = field(default_factory=dict)  # that a row may set, besides the common ones
    preset: Params = field(default_factory=dict)  # values of parameters that a row does not set
    chance: float | None = None  # the score of random vectors; None: it depends on the data, see `evaluators.chance`
    imports: tuple[str, ...] = ()  # modules that are loaded before, one thread at a time
    # The evaluator that it calls, and the parameters that it gives it.
    base: Callable[[Params], tuple[Evaluator, Params]] | None = None
    # The truth with its samples drawn, and by side a mask of the items that the score needs. Others are never embedded:
    # training rows of a probe that no run draws, queries without judgements. Of a side without a mask, all are needed.
    narrow: Callable[[Any, Params], tuple[Any, dict[str, Array]]] | None = None
    # The value that the metric has for every model, and measures that tell something; None where models may differ.
    constant: Callable[[Any, Params], tuple[float, list[str]] | None] | None = None

    def faults(self) -> Iterator[str]:
        """A message for each measure and parameter that cannot be used."""
        if self.version >= BASE_VERSION:
            yield f"its `version` must be a whole number below {BASE_VERSION}, not {self.version}"
        for measure, statistic in self.measures.items():
            if statistic not in STATISTICS:
                yield f"'{measure}' has the unknown statistic {statistic!r}; known: {', '.join(STATISTICS)}"
            if re.fullmatch(f"{OF_ITEMS}|{OF_RECORDS}", measure) or not measure:
                yield f"no measure can have the name {measure!r}, which means something else in results"
            if not re.fullmatch(r"\w+", measure):
                yield f"the measure {measure!r} must have letters, digits and underscores alone"
            if Measure.parse(measure).cutoff is not None:
                yield f"'{measure}' has a fixed cut-off; state '{Measure.parse(measure).name}{AT_K}'"
        if self._statistic(self.main) is None:
            yield f"its `main` must be one of its measures ({self.measure_names}), not {self.main!r}"
        for name in COMMON_PARAMS.keys() & {*self.params, *self.preset}:
            yield f"its parameter '{name}' is one that every evaluator has"
        if self.chance is not None and not -1 <= self.chance <= 1:
            yield f"its `chance` must be from -1 to 1, not {self.chance}"
        for name, value in self.preset.items():
            if name in self.params and not self.params[name].accepts(value):
                yield f"its preset '{name}' must be {self.params[name].values}, not {value!r}"

    # ── measures ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def measure_names(self) -> str:
        """The measures that may be a row's metric, in words."""
        any_cutoff = any(name.endswith(AT_K) for name in self.measures)
        return ", ".join(self.measures) + (" (k is a whole number from 1)" if any_cutoff else "")

    def metric(self, params: Params) -> str:
        """The main measure: the parameter `metric`, by default `main`. One that the evaluator lacks is an error."""
        metric = str(params.get("metric", self.main))
        self.statistic(metric)
        return metric

    def statistic(self, metric: str) -> str:
        """The name of the statistic that computes a measure from outcomes."""
        statistic = self._statistic(metric)
        if statistic is None:
            raise EmbarkError(f"'{self.name}' has no measure '{metric}'; it has {self.measure_names}.")
        return statistic

    def _statistic(self, metric: str) -> str | None:
        measure = Measure.parse(metric)
        if measure.cutoff is not None:
            return self.measures.get(f"{measure.name}{AT_K}")
        return None if metric.endswith(AT_K) else self.measures.get(metric)

    # ── parameters ───────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, params: Params) -> None:
        """Raise an error for an unknown parameter, value or metric: ignored, it would leave the score under another
        protocol.
        """
        base, base_params = self.base(params) if self.base else (None, {})
        known = {**COMMON_PARAMS, **self.params, **(base.params if base else {})}
        for name, value in params.items():
            if name not in known:
                raise UnknownName(f"parameter of '{self.name}'", name, known)
            allowed = known[name].kind
            if not known[name].accepts(value):
                one_of = f"one of {', '.join(map(repr, allowed))}" if isinstance(allowed, tuple) else ""
                expected = one_of or f"of type {getattr(allowed, '__name__', '')}"
                raise EmbarkError(f"The parameter '{name}' of '{self.name}' must be {expected}, not {value!r}.")
        self.metric(params)
        if base:
            base.check(base_params)

    def full_version(self, params: Params) -> int:
        """The version in fingerprints; one with a base adds the base's version times 1000."""
        base, base_params = self.base(params) if self.base else (None, {})
        return self.version + (BASE_VERSION * base.full_version(base_params) if base else 0)

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_scores(self, scores: Scores, vectors: Mapping[str, Any], params: Params) -> None:
        """Raise an error where scores are not as the contract says."""
        for problem in self._contradictions(scores, vectors, params):
            raise EmbarkError(
                f"The evaluator '{self.name}' broke its contract (see embark.seams.Evaluator): {problem}."
            )

    def _contradictions(self, scores: Scores, vectors: Mapping[str, Any], params: Params) -> Iterator[str]:
        if not isinstance(scores, Scores):
            yield f"it returned no Scores, but {type(scores).__name__}"
        if scores.main != self.metric(params):
            yield f"the main measure is '{scores.main}', not '{self.metric(params)}'"
        if taken := [name for name in scores.metrics if re.fullmatch(f"{OF_ITEMS}|{OF_RECORDS}", name)]:
            yield f"no measure can have the name {taken[0]!r}, which means something else in results"
        if not isinstance(scores.warnings, tuple):
            yield f"its warnings must be a tuple of texts, not {scores.warnings!r}"
        if not (isinstance(scores.metrics.get(scores.main), Real) and np.isfinite(scores.value)):
            yield f"metrics['{scores.main}'] is missing or not finite"
        if scores.statistic != self.statistic(scores.main):
            yield f"the statistic of '{scores.main}' is '{scores.statistic}', not '{self.statistic(scores.main)}'"
        for needed in (name.format(main=scores.main) for name in STATISTICS[scores.statistic]):
            if needed not in scores.outcomes:
                yield f"the statistic '{scores.statistic}' needs outcomes['{needed}']"
        if not (isinstance(scores.rows, np.ndarray) and scores.rows.ndim == 1 and scores.rows.dtype.kind in "iu"):
            yield "rows must be an array of positions"
        if not len(scores.rows):
            yield "it returned no outcomes"
        for name, column in scores.outcomes.items():
            if re.fullmatch(OF_ITEMS, name):
                yield f"outcomes['{name}'] has the name of a column about items"
            if np.ndim(column) != 1:
                yield f"outcomes['{name}'] is no column, but of the shape {np.shape(column)}"
            if len(column) != len(scores.rows):
                yield f"outcomes['{name}'] has {len(column)} values for {len(scores.rows)} rows"
            averaged = name == scores.main and scores.statistic in ("mean", "runs")
            if averaged and not (np.abs(np.asarray(column, np.float64)) <= 1 + SLACK).all():
                yield f"outcomes['{name}'] has values that are not from -1 to 1"
        if scores.unit not in vectors:
            yield f"the unit '{scores.unit}' is no side of the data ({', '.join(vectors)})"
        if not 0 <= scores.rows.min() <= scores.rows.max() < len(vectors[scores.unit]):
            yield f"rows are not positions among the {len(vectors[scores.unit])} items of '{scores.unit}'"
