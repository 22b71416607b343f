"""All that is known about one task, benchmark or model: its row, its protocols, a sample item, published scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from embark import published as papers
from embark import readers
from embark.boards.aggregate import Standing, standings
from embark.boards.comparable_results import own_results, published_results
from embark.boards.contamination import shares
from embark.boards.leaderboards import ranked
from embark.catalogue import UnknownName, group_values, listed
from embark.hub import Hub
from embark.models import MODELS, find_card, known_models
from embark.models.encoder import Encoder
from embark.models.rendering import sketch
from embark.protocol import fingerprint_of
from embark.registries import EVALUATORS
from embark.results import Results, TaskResult
from embark.results.of_model import results_card
from embark.results.task_rows import known_tasks
from embark.settings import Settings, load_settings
from embark.stats.means import names, score
from embark.tables import Noted, Row, Score, Table, in_points
from embark.tasks import BENCHMARKS, TASKS, known_benchmarks, size
from embark.tasks.data_sets import data_sets
from embark.types import Benchmark, EmbarkError, Item, Media, ModelCard, Style, Task, Text, role_of

SHOWN_VALUES = 12  # values of a list
SHOWN_PARTS = 3  # splits and subsets whose fingerprints are shown
TEXT = 200  # characters of a sample
BEST = 5  # published models
EMPTY: tuple[Any, ...] = (None, "", [], {}, ())


@dataclass(frozen=True)
class Facts(Noted, Mapping[str, Any]):
    """What is known about a task, benchmark or model: a mapping, in the order in which people ask.

    `row` is the Task, Benchmark or ModelCard itself.
    """

    kind: Literal["task", "benchmark", "model"]
    row: Task | Benchmark | ModelCard
    facts: Mapping[str, Any]
    more: Mapping[str, Any]  # what the row itself does not state

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    def as_dict(self) -> dict[str, Any]:
        """Every field of the row, and what else is known."""
        return dataclasses.asdict(self.row) | dict(self.more)

    def table(self) -> Table:
        """One row per fact; several texts, and tables, take a row each."""
        rows = [
            Row(("" if number else name, line))
            for name, fact in self.facts.items()
            for number, line in enumerate(_lines(name, fact))
        ]
        return Table(("fact", "value"), tuple(rows))


def show(
    name: str | Task | Benchmark | ModelCard | Encoder, *, rows: Iterable[Task] = (), settings: Settings | None = None
) -> Facts:
    """All that is known about a task, a benchmark or a model: a row, a card or an encoder itself, or its name.

    Names are of the catalogue, of embark.toml of the working folder, of your results, and of `rows` of your own;
    the beginning of a task's name will do where no other task begins so. A model may also be a checkpoint folder or
    LOADER:SOURCE. A task's sample item is there when its data is on this machine; nothing is downloaded.
    """
    settings = settings or load_settings()
    row = name if isinstance(name, (str, Task, Benchmark, ModelCard)) else name.card
    if isinstance(row, str):
        row = _row(row, rows, settings)
    if isinstance(row, Benchmark):
        more = {"published": _published(row)} if row.name in BENCHMARKS else {}
        return _facts("benchmark", row, dataclasses.asdict(row), more)
    results = list(Results(settings.results).all())
    if isinstance(row, Task):
        return _task_facts(row, results, settings)
    of_model = {"zero-shot": shares(row), "results": _own_scores(row, results, settings), "published": _published(row)}
    return _facts("model", row, card_facts(row), of_model)


def _row(name: str, tasks: Iterable[Task], settings: Settings) -> Task | Benchmark | ModelCard:
    """The task, benchmark or model of a name; a task goes before all else of its name."""
    benchmarks = known_benchmarks()
    if name not in TASKS and name in benchmarks:
        return benchmarks[name]
    if name not in TASKS and (name in known_models() or (name and Path(name).expanduser().is_dir())):
        return find_card(name)
    own = {task.name: task for task in tasks}
    known = known_tasks(Results(settings.results).all(), settings.home)
    if name in own or name in known:
        return own.get(name) or known[name]
    if card := results_card(name, settings):
        return card
    if ":" in name:
        return find_card(name)
    beginning = [task for task in known if name and task.startswith(name)]
    if len(beginning) == 1:
        return known[beginning[0]]
    models = (card.name for card in Results(settings.results).cards())
    raise UnknownName("task, benchmark or model", name, [*own, *known, *benchmarks, *known_models(), *models])


def _task_facts(task: Task, results: Sequence[TaskResult], settings: Settings) -> Facts:
    """The facts about a task, with the results on disk that were made under its present protocol and data."""
    current, _ = own_results([task], results)
    labels = names([(result.model, result.revision, result.made_by) for result in current])
    scores = {
        label if result.made_by == "embark" else f"{label} (by {result.made_by})": _score(score(result))
        for label, result in zip(labels, current, strict=True)
    }
    more = {
        "protocols": fingerprints(task),
        "sample": _sample(task, settings),
        "results": scores,
        "published": _published(task),
    }
    return _facts("task", task, row_facts(task), more)


def _own_scores(card: ModelCard, results: Sequence[TaskResult], settings: Settings) -> dict[str, str]:
    """The model's scores in the results folder by task, under the present protocols and data."""
    of_model = [result for result in results if result.model == card.name and result.made_by == "embark"]
    if len({result.revision for result in of_model}) > 1:
        of_model = [result for result in of_model if result.revision == card.revision]
    scored = {result.task for result in of_model}
    known = known_tasks(results, settings.home)
    current, _ = own_results([row for row in known.values() if row.name in scored], of_model)
    return {result.task: _score(score(result)) for result in current}


def _facts(kind: Any, row: Any, facts: Mapping[str, Any], more: Mapping[str, Any]) -> Facts:
    more = {name: fact for name, fact in more.items() if fact not in EMPTY}
    return Facts(kind, row, {name: fact for name, fact in facts.items() if fact not in EMPTY} | more, more)


def _lines(name: str, value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key}: {_line(item)}" for key, item in value.items() if item not in EMPTY]
    if name == "notes":
        return list(value)
    if name == "templates":
        return [*value[:SHOWN_VALUES], *([f"… ({len(value):,} in all)"] if len(value) > SHOWN_VALUES else [])]
    return [_line(value)]


def _line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_line(item)}" for key, item in value.items() if item not in EMPTY)
    if isinstance(value, (list, tuple)):
        shown = ", ".join(_line(item) for item in value[:SHOWN_VALUES])
        return shown + (f", … ({len(value):,} in all, see --format json)" if len(value) > SHOWN_VALUES else "")
    return str(value)


# ── published scores ─────────────────────────────────────────────────────────────────────────────────────────────────


def _published(row: Task | Benchmark | ModelCard) -> dict[str, str]:
    """The best published scores on a task or benchmark, or a model's own, under the papers' protocols."""
    if isinstance(row, ModelCard):
        totals = {
            benchmark.name: model.mean for benchmark in BENCHMARKS.values() for model in _standings(benchmark, row.name)
        }
        return {name: _score(score) for name, score in totals.items()}
    if isinstance(row, Benchmark):
        entries, _ = ranked(TASKS.match(row.tasks), _standings(row))
        places = [entry for entry in entries if entry.place] or entries  # without ranks: how many tasks each is over
        scores = {entry.model.model: entry.model.mean for entry in places}
        measure = "by the benchmark's rule"
    else:
        of_family = [benchmark for benchmark in BENCHMARKS.values() if benchmark.family == row.family]
        benchmarks = [benchmark for benchmark in of_family if row.name in benchmark.tasks]
        models = _standings(benchmarks[0]) if benchmarks else []
        by_model = {model.model: model.tasks[row.name] for model in models if row.name in model.tasks}
        scores = dict(sorted(by_model.items(), key=lambda item: -item[1].value))
        measure = row.metric
    count = {f"({len(scores)} models)": f"{measure}; embark leaderboard has all"} if scores else {}
    return {model: _score(score) for model, score in list(scores.items())[:BEST]} | count


def _standings(benchmark: Benchmark, model: str | None = None) -> list[Standing]:
    """The published models on a benchmark, or one of them; scores that are unlike the row's are left out."""
    rows = TASKS.match(benchmark.tasks)
    results = [result for result in published_results(rows)[0] if model in (None, result.model)]
    return standings(rows, results, benchmark.rule)


def _score(score: Score) -> str:
    part = f", over {score.count + score.zeros} of {score.of} tasks" if score.partial else ""
    marks = f" ({'; '.join(mark.split(':')[0] for mark in score.marks)})" if score.marks else ""
    return f"{in_points(score.value)}{part}{marks}"


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────

GIVES = {"reranker": "a score for each pair of query and document", "generator": "text"}
COMPARED_BY = {"cosine": "cosines", "dot": "dot products", "maxsim": "the sum of each query token's best dot product"}
BUILT_FROM = {"functions": "functions of yours", "open_clip": "an object of yours", "mteb": "an object of yours",
              "imported": "vectors in a file"}  # fmt: skip
FUSION = {
    "sum": "the sum of their parts' vectors",
    "unit-sum": "the sum of their parts' vectors, each of length one",
    "native": "seen as a whole by the model",
}


def card_facts(card: ModelCard) -> dict[str, Any]:
    """The card in the order in which people ask."""
    return {
        "model": card.name,
        "family": ", ".join(filter(None, (card.family, card.architecture))),
        "what": card.description,
        "takes": ", ".join(card.modalities) or "what its checkpoint says, once it is loaded",
        "gives": GIVES.get(card.kind) or _vectors(card),
        "mixed items": FUSION.get(card.fusion or "", "not embedded") if len(card.modalities) > 1 else "",
        "instructions": "read" if card.instructed else "not read",
        "parameters": "" if card.parameters is None else f"{card.parameters:,}",
        "trained on": _training(card),
        "objective": card.objective,
        "context": f"{card.context:,} tokens" if card.context else "",
        "images": f"{card.image_size} × {card.image_size} pixels" if card.image_size else "",
        "GPUs": f"{card.gpus} for one copy" if card.gpus else "",
        "videos": f"{card.frames} frames" if "video" in card.modalities else "",
        "audio": f"{card.sample_rate:,} Hz" if "audio" in card.modalities else "",
        "precision": f"{card.dtype}; stored as {card.stored}",
        "pixels": "JPEGs are decoded and resized on the GPU" if card.pixels == "cuda" else "",
        "price": _price(card),
        "loaded by": card.loader,
        "from": f"{card.source or BUILT_FROM.get(card.loader, 'embark itself')}, revision {card.revision}",
        "options": {key: repr(value) if isinstance(value, str) else value for key, value in _flat(card.options)},
        "sees": _prompts(card),
        "answers": {key: repr(value) if isinstance(value, str) else value for key, value in _flat(card.styles)},
        "license": card.license,
        "reference": card.reference,
        "known as": {family: name for family, name in card.aliases.items() if name != card.name},
    }


def _prompts(card: ModelCard) -> dict[str, str]:
    """What a multimodal language model sees of a picture with a text, by role, and where a paper ran it otherwise."""
    if "templates" not in card.options:
        return {}
    item = Item((Media("image", ()), Text("{text}")))
    rows = {"": None} | {name: row.style for name in card.styles if (row := _row_of(name))}
    return {
        f"{role}{' in ' * bool(name)}{name}": repr(sketch(card, item, role, "{instruction}", style))
        for name, style in rows.items()
        for role in ("query", "document")
    }


def _row_of(style: str) -> Task | None:
    """A row of that style whose templates are known: questions about pictures first, as most models answer those."""
    rows = [row for row in TASKS.values() if row.style and row.style.name == style and row.style.templates]
    return next((row for row in rows if "image" in row.modalities and row.mixed), next(iter(rows), None))


def _training(card: ModelCard) -> str:
    """Examples and data sets, where they are stated."""
    examples = [] if card.data is None else [f"{card.data:,g} million examples"]
    return ": ".join((*examples, ", ".join(card.trained_on or ())) if card.trained_on else examples)


def _vectors(card: ModelCard) -> str:
    size = f" of {card.dim:,} numbers" if card.dim else ""
    token = " for every token" if card.similarity == "maxsim" else ""
    length = {True: ", of length one", False: ", of any length", None: ""}[card.normalized]
    return f"one vector{size}{token}{length}; compared by {COMPARED_BY[card.similarity]}"


def _price(card: ModelCard) -> str:
    pictures = "" if card.image_price is None else f" (of images: ${card.image_price:g})"
    return "" if card.price is None else f"${card.price:g} a million tokens{pictures}"


def _flat(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Options within options by their path, a line each."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def row_facts(task: Task) -> dict[str, Any]:
    """The row in the order in which people ask."""
    chance = "" if task.chance is None else f", {100 * task.chance:.2g} % by chance"
    source, subsets = task.source, task.subsets
    config = f", config {source.config}" if source.config else ""
    return {
        "task": task.name,
        "family": f"{task.family}, {task.category}",
        "scored by": f"{task.evaluator}, {task.metric}{chance}",
        "params": task.params,
        "needs": f"{' and '.join(task.modalities)}{', mixed in one item' if task.mixed else ''}",
        "data": f"{source.id}, revision {source.revision}{config}, splits {', '.join(source.splits)}",
        "over": data_sets(task)[2:],
        "read by": task.reader,
        "columns": _line(dict(task.columns)),
        "options": task.options,
        "license": source.license,
        "reference": source.reference,
        "subsets": "" if list(subsets) == ["default"] else tuple(subsets),
        "languages": task.languages,
        "instructions": task.instructions,
        "labels": task.labels,
        "templates": task.templates,
        "shown": _shown(task.style),
        "pictures": "turned as their EXIF orientation says" if task.upright and "image" in task.modalities else "",
        "unreadable": "items that do not decode are left out" if task.unreadable == "skip" else "",
        "tags": task.tags,
        "sizes": _sizes(task),
        "variants": {name: _differences(task, name) for name in task.variants},
        "notes": task.notes,
    }


def known_errata(task: Task) -> list[papers.Erratum]:
    """The known faults of a task's published scores."""
    of_family = papers.errata(task.family) if task.family in papers.FAMILIES else ()
    return [erratum for erratum in of_family if any(cell.name == task.name for cell in erratum.cells)]


def _shown(style: Style | None) -> dict[str, str]:
    """How the paper showed items to models: templates by role, frames of a film, whose cards have answers."""
    if style is None:
        return {}
    frames = {"frames": f"{style.frames} of a film"} if style.frames else {}
    answers = [card.name for card in MODELS.values() if style.name in card.styles]
    whom = {f"as {style.name}": f"cards with an answer: {listed(answers)}"} if answers else {}
    return {role: repr(template) for role, template in style.templates.items()} | frames | whom


def _sizes(task: Task) -> dict[str, str]:
    """Items by side, over all subsets."""
    sides = group_values((pool.side, (pool.id, pool.items)) for pool in task.pools)
    sizes = {side: f"{sum(dict(pools).values()):,} items" for side, pools in sides.items()}
    return sizes | ({"distinct": f"{size(task):,} items"} if len(sides) > 1 else {})


def _differences(task: Task, protocol: str) -> str:
    """The fields of the row that another protocol changes, and its fingerprint."""
    other = task.under(protocol)
    changed = []
    for name in task.variants[protocol]:
        if name == "style":
            changed.append("models see what their cards say" if other.style is None else f"style {other.style.name}")
            continue
        old, new = (getattr(row, name) for row in (task, other))
        if dataclasses.is_dataclass(old):
            old, new = vars(old), vars(new)
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            changed += [f"{name}.{key} {_line(old.get(key))} → {_line(new.get(key))}" for key in keys]
        else:
            changed.append(f"{name} {_line(old) or 'none'} → {_line(new) or 'none'}")
    return f"{'; '.join(changed)} (protocol {', '.join(dict.fromkeys(fingerprints(other).values()))})"


def fingerprints(task: Task) -> dict[str, str]:
    """The fingerprints of its first splits and subsets."""
    if task.evaluator not in EVALUATORS:
        return {}
    return {f"{split}/{subset}": fingerprint_of(task, split, subset) for split, subset in task.parts[:SHOWN_PARTS]}


def _sample(task: Task, settings: Settings) -> dict[str, str]:
    """The first item of each side, if the data is on this machine; else the reason why there is none."""
    try:
        data = readers.read(task, *task.parts[0], Hub(replace(settings, offline=True)))
        sides = {name: side for name, side in data.sides.items() if name == role_of(name)}
        return {name: f"{side.ids[0]}: {_item(side.items[0])}" for name, side in sides.items()}
    except EmbarkError as error:
        return {"none": str(error).removeprefix("Offline, and ")}


def _item(item: Item) -> str:
    return " ".join(
        f"“{part.text[:TEXT]}{'…' if len(part.text) > TEXT else ''}”"
        if isinstance(part, Text)
        else f"[{part.kind}{_measures(part.kind, part.read())}]"
        for part in item.parts
    )


def _measures(kind: str, chunks: tuple[bytes, ...]) -> str:
    from PIL import UnidentifiedImageError

    from embark.items.limits import open_picture

    size = f" of {sum(map(len, chunks)):,} bytes"
    try:
        if kind != "image":
            return size
        with open_picture(chunks[0]) as image:
            return f" of {image.width} × {image.height}, {image.format}"
    except UnidentifiedImageError:
        return f"{size}, unreadable"
