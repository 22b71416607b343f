"""The workbench of a run: read → plan → embed → vectors → score, one object for all who need any of these steps.

Evaluations, ranked lists, analyses of stored vectors and stages around a retriever use it: data is read once for all
models, and vectors in the store are never computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self

import numpy as np

from embark import evaluators, readers
from embark.catalogue import counted, group_values, listed
from embark.engine.activity import SILENT, Activity
from embark.engine.batching.tuning import Tuning
from embark.engine.local import Embedding, begin
from embark.engine.progress import Advance, progress
from embark.engine.ray.engine import RayEngine
from embark.engine.report import EmbeddingReport
from embark.engine.workers.preparing_processes import Preparer
from embark.evaluators.pairs import PairScores
from embark.hub import Hub
from embark.items import as_keys, item_name, key, size_of
from embark.items.drop_items import sample, without
from embark.items.equal_items import with_overlaps
from embark.models.encoder import Encoder, Generator, Reranker
from embark.planning import Demand, Need, Plan, plan, task_demand
from embark.protocol import vector_space
from embark.results import Results, TaskResult
from embark.run.fetching import from_hub
from embark.run.hashing import HashingProcesses
from embark.settings import Settings
from embark.store import Space
from embark.store.buckets import open_store
from embark.tasks import TASKS
from embark.types import (
    Array,
    Content,
    Dataset,
    EmbarkError,
    Item,
    Matches,
    Modality,
    ModelCard,
    Rendered,
    Scores,
    Task,
    role_of,
)

NAMED_ITEMS = 5  # unreadable items that a message names


@dataclass(frozen=True)
class ModelTools:
    """What serves one model while it is evaluated: the display of its run, worker processes, a cluster."""

    activity: Activity = SILENT  # shows all stages of the run
    keep_data: bool = True  # data sets that were read, for the next model; small ones, as memory is limited
    preparer: Preparer | None = None
    hashing: HashingProcesses | None = None
    engine: RayEngine | None = None  # of a model that runs on a cluster
    score_elsewhere: Callable[[ModelCard, Demand, Mapping[str, Any]], Scores | None] | None = None


class Workbench:
    """Settings, the hub that data comes from and the store that vectors go to. With `batch_size` None, it is tuned.

    Nothing of it changes but what it remembers: data sets that were read, spaces that were opened. `with_tools` is the
    same workbench with other tools.
    """

    def __init__(
        self,
        settings: Settings,
        batch_size: int | None = None,
        show_progress: bool = True,
        tools: ModelTools = ModelTools(),
    ) -> None:
        self.settings = settings
        self.batch_size = batch_size
        self.show_progress = show_progress
        self.tools = tools
        self.lock = Lock()
        self.hub = Hub(settings, lambda title, total: progress(title, total, show_progress, "bytes"))
        self.store = open_store(settings)
        self.tuning = Tuning(settings.home / "batches.json")
        self._spaces: dict[str, Space] = {}
        self._datasets: dict[Any, Dataset] = {}
        self._datasets_lock = Lock()
        self._self_checked: set[tuple[str, tuple[Modality, ...]]] = set()  # by space and kind

    def with_tools(self, **tools: Any) -> Self:
        """The same workbench, which remembers the same, with these tools in place of those of that name."""
        changed = copy(self)
        changed.tools = replace(self.tools, **tools)
        return changed

    def read(self, task: Task, split: str, subset: str) -> Dataset:
        """One split and subset of a task, read once; items that no score depends on are left out."""
        part = (task.name, task.templates, str(task.params), task.limit, split, subset)
        data = self._datasets.get(part) or self._read(task, split, subset)
        with self._datasets_lock:
            self._datasets.pop(part, None)
            size = sum(map(size_of, self._datasets.values()))
            if self.tools.keep_data and size + size_of(data) <= self.settings.memory << 18:  # a quarter of the memory
                self._datasets[part] = data
        return data

    def _read(self, task: Task, split: str, subset: str) -> Dataset:
        data = readers.read(task, split, subset, self.hub)
        if task.name not in TASKS:  # published rows are as they are
            evaluators.check_measure(task.evaluator, data.truth, {**task.params, "metric": task.metric})
            data = with_overlaps(data, task.params)
        return needed_items(task, _sample(task, data))

    def demands(self, task: Task, encoder: Encoder) -> list[Demand]:
        """The keys that every item of a task has for this encoder, one demand per split and subset."""
        demands = []
        for part in task.parts:
            data = self.read(task, *part)
            if self.tools.hashing is not None:
                self.tools.hashing.hash(data, encoder)
            demands.append(task_demand(task, *part, data, encoder))
        return demands

    def space(self, card: ModelCard) -> Space:
        """The space of the store that holds the vectors of a model; opened once, because opening it builds an index."""
        name = vector_space(card)
        if name not in self._spaces:
            self._spaces[name] = self.store.space(name)
        return self._spaces[name]

    def plan(self, encoder: Encoder, demands: Sequence[Demand], has: Callable[[Array], Array] | None = None) -> Plan:
        """The vectors that must be computed before these demands can be scored.

        `has` tells which keys have a vector, or will; it is asked after the store has looked for new ones.
        """
        space = self.space(encoder.card)
        space.refresh()  # another process may have embedded some of it by now
        return plan(demands, has or space.has)

    def embed(self, encoder: Encoder, planned: Plan) -> EmbeddingReport:
        """Embed and store the missing vectors of a plan."""
        return self.begin(encoder, planned).finish()

    def begin(self, encoder: Encoder, planned: Plan) -> Embedding:
        """Hand the missing vectors of a plan to the encoder: when this returns, the next plan may be begun."""

        def name(need: Need) -> str:
            demand = planned.demands[need.demand]
            return f"{demand.task.name} {_name(demand, need.side, need.row)}"

        space = vector_space(encoder.card)
        names, numbers = planned.needs.kinds()
        counts = np.bincount(numbers, minlength=len(names)).tolist()
        kinds = {(space, kind) for kind, count in zip(names, counts, strict=True) if count > 1}  # one tells nothing
        unchecked = not kinds <= self._self_checked
        self._self_checked |= kinds
        with self.lock:  # stages work beside it in other threads, and there is one device
            return self._begin(
                encoder,
                planned.needs,
                batch_size=self.batch_size,
                self_check=unchecked,
                name=name,
                preparer=self.tools.preparer,
            )

    @contextmanager
    def worker_processes(self) -> Iterator[Self]:
        """A block with this workbench, whose processes that hash and prepare items live on from call to call."""
        with Preparer(self.settings.workers) as preparer, HashingProcesses() as hashing:
            yield self.with_tools(preparer=preparer, hashing=hashing)

    def _begin(self, model: Encoder, needs: Sequence[Need], **options: Any) -> Embedding:
        """Have a model compute the needed vectors, and store them; `options` are those of `engine.local.begin`.

        On a cluster, other processes than those of `preparer` prepare the items, and all is done when this returns.
        """
        if not needs:
            return Embedding(EmbeddingReport(), ExitStack())
        space = self.space(model.card)
        with ExitStack() as contexts:
            advance = contexts.enter_context(self._progress(model, len(needs)))
            writer = contexts.enter_context(space.writer())
            shown: dict[str, Any] = {"advance": advance, "activity": self.tools.activity}
            engine = self.tools.engine
            if engine and engine.space == vector_space(model.card):
                options.pop("preparer", None)
                report = engine.embed(needs, writer, **shown, **options)
            else:
                workers = self.settings.workers
                embedding = begin(model, needs, writer, workers=workers, tuning=self.tuning, **shown, **options)
                report = contexts.enter_context(embedding).report
            return Embedding(report, contexts.pop_all(), space.refresh)

    @contextmanager
    def _progress(self, model: Encoder, items: int) -> Iterator[Advance]:
        """Shows the work on so many items: as a stage of a run, or alone."""
        activity = self.tools.activity
        if activity is SILENT:
            with progress(model.card.name, items, self.show_progress) as advance:
                yield advance
        else:
            stage = activity.stage("embed")
            stage.add(total=items)
            yield lambda count, left=None: stage.add(done=count, left=left)

    def vectors(self, encoder: Encoder, demand: Demand) -> dict[str, Any]:
        """The stored vectors of each side, mapped from disk."""
        space = self.space(encoder.card)
        return {side: space.read(keys) for side, keys in demand.keys.items()}

    def params(self, task: Task, card: ModelCard, tasks_at_once: int = 1) -> dict[str, Any]:
        """The evaluator's parameters: those of the row, the model's similarity and scale, and the bytes of memory."""
        memory = (self.settings.memory << 20) // max(1, tasks_at_once)
        scale = {} if card.logit_scale is None else {"logit_scale": card.logit_scale}
        return {**task.params, "metric": task.metric, "similarity": card.similarity, "memory": memory, **scale}

    def score_inputs(self, encoder: Encoder, demand: Demand, params: Mapping[str, Any]) -> dict[str, Any]:
        """The evaluator's inputs: the stored vectors of each side, and pair scores where the style wants them."""
        vectors = self.vectors(encoder, demand)
        if not self.needs_model(encoder.card, demand):
            return vectors
        style = demand.task.style
        assert style is not None
        matching = encoder.capabilities.matching
        if matching is None:
            raise EmbarkError(
                f"{encoder.card.name} has no head that scores pairs, which its card names for {style.name}."
            )

        def render(image: Item, text: Item) -> Rendered:
            return matching.render_pair(image, text, style)

        return {**vectors, "pairs": PairScores(self.scores_of_samples(matching.head(), demand, render), added=True)}

    def needs_model(self, card: ModelCard, demand: Demand) -> bool:
        """Whether a demand is scored by more than its vectors: by the model's own head, where its style wants that."""
        style = demand.task.style
        if demand.task.evaluator != "pairs" or style is None or "image" not in demand.task.modalities:
            return False
        return "matching" in card.styles.get(style.name, {})

    def scores_of_samples(self, model: Reranker, demand: Demand, render: Callable[[Item, Item], Rendered]) -> Array:
        """(samples, images, texts): the scores of each image with each text of a sample, as `render` shows a pair."""
        truth = demand.data.truth
        assert isinstance(truth, Matches)
        images = demand.data.sides["image"].items
        texts = demand.data.sides["text"].items
        pairs = [
            render(images[image], texts[text])
            for of_image, of_text in zip(truth.image.tolist(), truth.text.tolist(), strict=True)
            for image in of_image
            for text in of_text
        ]
        return self.pair_scores(model, pairs).reshape(*truth.image.shape, truth.text.shape[1])

    def pair_scores(self, model: Reranker, pairs: Sequence[Rendered]) -> Array:
        """The scores of rendered pairs, in their order; they are stored in a space of the model's own."""
        space = vector_space(model.card)
        needs = [
            _Pair(key(space, pair), Item(pair.parts), "pair", None, 0, row, mode=pair.mode)
            for row, pair in enumerate(pairs)
        ]
        stored, unreadable = self.outputs(_RerankerAsEncoder(model), needs)
        if unreadable:
            raise EmbarkError(f"{len(unreadable)} pairs cannot be scored: {next(iter(unreadable.values()))}")
        return np.array([stored[need.key][0] for need in needs], np.float32)

    def outputs(self, model: Encoder, needs: Sequence[Need]) -> tuple[dict[bytes, Array], dict[bytes, str]]:
        """Outputs by key, after the missing ones were computed; and by key, the reasons why items do not decode."""
        needs = list({need.key: need for need in needs}.values())
        with self.lock:  # tasks are scored in several threads, and there is one device
            space = self.space(model.card)
            keys_of_all = as_keys([need.key for need in needs])
            space.discard(keys_of_all)
            stored = space.has(keys_of_all)
            report = self._begin(model, [need for need, here in zip(needs, stored, strict=True) if not here]).finish()
        if report.too_large:
            raise EmbarkError(f"{next(iter(report.too_large.values()))}. Use a device with more memory.")
        if report.invalid:
            raise EmbarkError(f"{next(iter(report.invalid.values()))} for {counted(len(report.invalid), 'item')}.")
        keys = [need.key for need in needs if need.key not in report.unreadable]
        rows = space.read(as_keys(keys))
        return dict(zip(keys, rows[np.arange(len(keys))], strict=True)), report.unreadable

    def score(self, encoder: Encoder, demand: Demand, tasks_at_once: int = 1) -> Scores:
        """The scores of one split and subset, computed from stored vectors."""
        params = self.params(demand.task, encoder.card, tasks_at_once)
        elsewhere = None if self.needs_model(encoder.card, demand) else self.tools.score_elsewhere
        if elsewhere and (scores := elsewhere(encoder.card, demand, params)):
            return scores
        inputs = self.score_inputs(encoder, demand, params)
        return evaluators.evaluate(demand.task.evaluator, demand.data.truth, inputs, params)

    # ── what stages change ───────────────────────────────────────────────────────────────────────────────────────────

    def row(self, task: Task) -> Task:
        """The row under which a task is scored."""
        return task

    def card(self, card: ModelCard) -> ModelCard:
        """The card under which results are kept."""
        return card

    def result(self, results: Results, card: ModelCard, task: Task) -> TaskResult | None:
        """The result of a model that is on disk, current or not."""
        card = self.card(card)
        return results.load(card.name, card.revision, task.name, task.protocol)

    def incompatibility(self, card: ModelCard, task: Task) -> str | None:
        """The reason why a model cannot do a task, or None if it can."""
        return incompatibility(card, task)

    def stage_facts(self, demand: Demand) -> dict[str, Any]:
        """What a record says about stages: the fingerprint of the row without them, and the hashes of their prompts."""
        return {}

    def stage_notes(self, task: Task) -> tuple[str, ...]:
        """What a table says below scores that stand beside published ones of the same stages."""
        return ()


@dataclass
class _Pair(Need):
    """A missing score; its item holds what the model will see."""

    mode: str = ""

    def render(self, encoder: Encoder) -> Rendered:
        return Rendered(self.item.parts, self.mode)


class ModelAsEncoder(Encoder):
    """A re-ranker or generator for the engine."""

    def __init__(self, model: Reranker | Generator) -> None:
        self.model: Any = model
        self.card = model.card
        self.capabilities = model.capabilities

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return self.model.prepare(contents, mode)


class _RerankerAsEncoder(ModelAsEncoder):
    """A score is a vector of one number."""

    def embed(self, batch: Sequence[Any]) -> Array:
        return np.asarray(self.model.score(batch), np.float32)[:, None]


def _sample(task: Task, data: Dataset) -> Dataset:
    """The dataset, or the sample of it that a limit on the task draws."""
    if task.limit is None:
        return data
    kind = evaluators.base(task.evaluator, task.params)
    data, size = sample(data, task.limit, bool(evaluators.full_params(kind, task.params).get("judged_only")))
    mark = f"a sample (limit {task.limit:,}), no full score"
    if size <= task.limit:
        mark = f"all items (limit {task.limit:,}), kept apart from full scores"
    return replace(data, sampled_from=size, skipped=(*data.skipped, mark))


def needed_items(task: Task, data: Dataset) -> Dataset:
    """The dataset without items that no score depends on; left-out queries are counted in its warnings."""
    truth, needed = evaluators.narrow(task.evaluator, data.truth, task.params)
    data = replace(data, truth=truth)
    for side, mask in needed.items():
        if side in data.sides and len(mask) != len(data.sides[side]):
            what = f"a mask of {len(mask)} items of '{side}', which has {len(data.sides[side])}"
            raise EmbarkError(f"The evaluator '{task.evaluator}' broke its contract: it needs {what}.")
    unused = {side: np.flatnonzero(~mask).tolist() for side, mask in needed.items() if not mask.all()}
    if not unused:
        return data
    data = without(data, unused)
    if "query" not in unused:
        return data
    return replace(
        data, skipped=(*data.skipped, f"{len(unused['query']):,} queries have no judgements and are left out")
    )


def readable_items(demand: Demand, report: EmbeddingReport) -> Demand:
    """The demand after the task's policy on items that do not decode: left out with a warning, or an error.

    An item that is too large for the device's memory is always an error: another machine would score it. So is one
    that the model returned an invalid vector for.
    """
    for keys in demand.keys.values() if report.too_large else ():
        if reasons := [report.too_large[key] for key in keys.tolist() if key in report.too_large]:
            more = f", and for {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
            raise EmbarkError(f"{reasons[0]}{more}. Use a device with more memory, or --dtype bfloat16.")
    if places := _places(demand, report.invalid):
        problem = report.invalid[demand.keys[places[0][0]].tolist()[places[0][1]]]
        names = listed([_name(demand, side, row) for side, row in places], NAMED_ITEMS)
        raise EmbarkError(f"{problem} for {demand.task.name} {names}.")
    places = _places(demand, report.unreadable)
    if not places:
        return demand
    names = listed([_name(demand, side, row) for side, row in places], NAMED_ITEMS)
    unreadable: dict[str, list[int]] = {side: [] for side in demand.keys} | group_values(places)
    described = f"{len(places)} unreadable items: {names}"
    if demand.task.unreadable == "error":
        side, row = places[0]
        reason = report.unreadable[demand.keys[side].tolist()[row]].rstrip(".")
        raise EmbarkError(
            f"{described}{'; of the first,' if len(places) > 1 else ':'} {reason}. Repair them, or set "
            "unreadable='skip' on the task (--skip-unreadable) to score without them."
        )
    dropped = with_variants(unreadable)
    keys_left = {side: np.delete(keys, list(dropped[side])) for side, keys in demand.keys.items()}
    data = without(demand.data, dropped)
    return replace(demand, keys=keys_left, data=replace(data, skipped=(*data.skipped, f"left out {described}")))


def _places(demand: Demand, keys: Collection[bytes]) -> list[tuple[str, int]]:
    """(side, row) of the items that have one of these keys."""
    return [
        (side, row)
        for side, of_side in (demand.keys.items() if keys else ())
        for row, key in enumerate(of_side.tolist())
        if key in keys
    ]


def _name(demand: Demand, side: str, row: int) -> str:
    """An item in messages, which results and pages keep: its side, and its text or file; of the hub, its id alone."""
    items = demand.data.sides[side]
    if from_hub(demand.task):  # which may not be free to be quoted
        return f"{side} '{items.ids[row]}'"
    return f"{side} {item_name(items.items[row], items.ids[row], demand.task.source.id)}"


def with_variants(rows: Mapping[str, Iterable[int]]) -> dict[str, set[int]]:
    """The rows to leave out of each side: those of the side itself and of all variants of the same role."""
    return {side: {row for other in rows if role_of(other) == role_of(side) for row in rows[other]} for side in rows}


def incompatibility(card: ModelCard, task: Task) -> str | None:
    """The reason why a model cannot do a task, or None if it can."""
    if missing := [modality for modality in task.modalities if modality not in card.modalities]:
        return f"the model takes no {' and no '.join(missing)}"
    if task.mixed and card.fusion is None:
        return "the model has no rule for items that mix modalities"
    return None
