"""`embark show`: all that is known about one task, benchmark or model."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embark.cli.output import AsJson, Home, print_json, wrapped

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.boards.aggregate import Standing
    from embark.results.table import Score
    from embark.types import Benchmark, Item, ModelCard, Task

WIDTH = 14  # of the names of facts
SHOWN = 12  # values of a list
PARTS = 3  # splits and subsets whose fingerprints are shown
TEXT = 200  # characters of a sample
BEST = 5  # published models


def show(
    name: Annotated[str, typer.Argument(help="A task, benchmark or model; a checkpoint folder, too.")],
    as_json: AsJson = False,
    home: Home = None,
) -> None:
    """Show all that is known about one task, benchmark or model, published scores among it.

    A task's sample item is shown when its data is on this machine; nothing is downloaded.

    \b
    embark show PocketFlagZeroShot
    embark show embark/pocket
    """
    from embark.catalogue import UnknownName
    from embark.models import MODELS, find_card
    from embark.tasks import BENCHMARKS, TASKS

    found: Any = next((c[name] for c in (TASKS, BENCHMARKS, MODELS) if name in c), None)
    if found is None and (":" in name or Path(name).expanduser().is_dir()):
        found = find_card(name)
    if found is None:
        raise UnknownName("task, benchmark or model", name, [*TASKS, *BENCHMARKS, *MODELS])
    facts = dataclasses.asdict(found)
    if name in TASKS:
        derived = {"protocols": _protocols(found), "sample": _sample(found, home)}
        facts = (facts if as_json else _told(found)) | derived
    elif name not in BENCHMARKS and not as_json:
        facts = _told_model(found)
    if published := _published(found):
        facts["published"] = published
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        if value not in (None, "", [], {}, ()):
            _print(key, value)


def _print(name: str, value: Any) -> None:
    """A fact on one line; several texts, and tables, on a line each."""
    if isinstance(value, dict) and value:
        lines = [f"{key}: {_line(one)}" for key, one in value.items() if one not in (None, "", (), [], {})]
    elif name == "notes":
        lines = list(value)
    elif name == "templates":
        lines = [*value[:SHOWN], *([f"… ({len(value):,} in all)"] if len(value) > SHOWN else [])]
    else:
        lines = [_line(value)]
    for at, line in enumerate(lines):
        print(f"{'' if at else name:<{WIDTH}}{wrapped(line, WIDTH)}")


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_line(v)}" for k, v in value.items() if v not in (None, "", (), [], {}))
    if isinstance(value, (list, tuple)):
        some = [_line(v) for v in value[:SHOWN]]
        return ", ".join(some) + (f", … ({len(value):,} in all, see --json)" if len(value) > SHOWN else "")
    return str(value)


# ── published scores ─────────────────────────────────────────────────────────────────────────────────────────────────


def _published(found: Task | Benchmark | ModelCard) -> dict[str, str]:
    """The best published scores on a task or benchmark, or a model's own, under the papers' protocols."""
    from embark.boards.leaderboards import ranked
    from embark.tasks import BENCHMARKS, TASKS
    from embark.types import Benchmark, ModelCard

    if isinstance(found, ModelCard):
        made = {one.name: _totals(one) for one in BENCHMARKS.values()}
        own = {name: next((s for s in several if s.model == found.name), None) for name, several in made.items()}
        return {name: _told_score(one.mean) for name, one in own.items() if one is not None}
    if isinstance(found, Benchmark):
        entries, _ = ranked(TASKS.match(found.tasks), _totals(found))
        scores, what = {entry.model.model: entry.model.mean for entry in entries}, "by the benchmark's rule"
    else:
        whole = [one for one in BENCHMARKS.values() if one.family == found.family and found.name in one.tasks]
        several = _totals(whole[0]) if whole else []
        several = sorted(
            (one for one in several if found.name in one.tasks), key=lambda one: -one.tasks[found.name].value
        )
        scores, what = {one.model: one.tasks[found.name] for one in several}, found.metric
    more = {f"({len(scores)} models)": f"{what}; embark leaderboard has all"} if scores else {}
    return {model: _told_score(score) for model, score in list(scores.items())[:BEST]} | more


def _totals(benchmark: Benchmark) -> list[Standing]:
    """The published models on a benchmark; scores that are unlike the row's are left out."""
    from embark.boards.aggregate import standings
    from embark.boards.comparable_results import published_results
    from embark.tasks import TASKS

    rows = TASKS.match(benchmark.tasks)
    return standings(rows, published_results(rows)[0], benchmark.rule)


def _told_score(score: Score) -> str:
    part = f", over {score.count} of {score.of} tasks" if score.partial else ""
    marks = f" ({'; '.join(mark.split(':')[0] for mark in score.marks)})" if score.marks else ""
    return f"{100 * score.value:.1f}{part}{marks}"


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────

GIVES = {"reranker": "a score for each pair of query and document", "generator": "text"}
LIKENESS = {"cosine": "cosines", "dot": "dot products", "maxsim": "the sum of each query token's best dot product"}
FUSION = {
    "sum": "the sum of their parts' vectors",
    "unit-sum": "the sum of their parts' vectors, each of length one",
    "native": "seen as a whole by the model",
}


def _told_model(card: ModelCard) -> dict[str, Any]:
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
        "trained on": "" if card.data is None else f"{card.data:,g} million examples",
        "objective": card.objective,
        "context": f"{card.context:,} tokens" if card.context else "",
        "images": f"{card.image_size} × {card.image_size} pixels" if card.image_size else "",
        "videos": f"{card.frames} frames" if "video" in card.modalities else "",
        "audio": f"{card.sample_rate:,} Hz" if "audio" in card.modalities else "",
        "precision": f"{card.dtype}; stored as {card.stored}",
        "price": _price(card),
        "loaded by": card.loader,
        "from": f"{card.source or 'embark itself'}, revision {card.revision}",
        "settings": {key: repr(value) if isinstance(value, str) else value for key, value in _flat(card.options)},
        "license": card.license,
        "reference": card.reference,
        "known as": {family: name for family, name in card.aliases.items() if name != card.name},
    }


def _vectors(card: ModelCard) -> str:
    size = f" of {card.dim:,} numbers" if card.dim else ""
    each = " for every token" if card.similarity == "maxsim" else ""
    length = {True: ", of length one", False: ", of any length", None: ""}[card.normalized]
    return f"one vector{size}{each}{length}; compared by {LIKENESS[card.similarity]}"


def _price(card: ModelCard) -> str:
    pictures = "" if card.image_price is None else f" (of images: ${card.image_price:g})"
    return "" if card.price is None else f"${card.price:g} a million tokens{pictures}"


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Settings within settings by their path, a line each."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _told(task: Task) -> dict[str, Any]:
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
        "unreadable": "items that do not decode are left out" if task.unreadable == "skip" else "",
        "tags": task.tags,
        "sizes": _sizes(task),
        "variants": {name: _differences(task, name) for name in task.variants},
        "notes": task.notes,
    }


def _sizes(task: Task) -> dict[str, str]:
    """Items by side, over all subsets."""
    from embark.tasks import size

    sides: dict[str, dict[str, int]] = {}
    for pool in task.pools:
        sides.setdefault(pool.side, {})[pool.id] = pool.items
    told = {side: f"{sum(pools.values()):,} items" for side, pools in sides.items()}
    return told | ({"distinct": f"{size(task):,} items"} if len(sides) > 1 else {})


def _differences(task: Task, protocol: str) -> str:
    """What another protocol changes, and its fingerprint."""
    other = task.under(protocol)
    changed = []
    for name in task.variants[protocol]:
        old, new = (getattr(row, name) for row in (task, other))
        if dataclasses.is_dataclass(old):
            old, new = vars(old), vars(new)
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            changed += [f"{name}.{key} {_line(old.get(key))} → {_line(new.get(key))}" for key in keys]
        else:
            changed.append(f"{name} {_line(old) or 'none'} → {_line(new) or 'none'}")
    return f"{'; '.join(changed)} (protocol {', '.join(dict.fromkeys(_protocols(other).values()))})"


def _protocols(task: Task) -> dict[str, str]:
    from embark.evaluators import EVALUATORS
    from embark.run import parts
    from embark.run.score import fingerprint_of

    if task.evaluator not in EVALUATORS:
        return {}
    return {f"{split}/{subset}": fingerprint_of(task, split, subset) for split, subset in parts(task)[:PARTS]}


def _sample(task: Task, home: Path | None) -> dict[str, str]:
    """The first item of each side, from data that is here; without it, why there is none."""
    from embark.data import readers
    from embark.data.fetch import using
    from embark.run import parts
    from embark.settings import load_settings
    from embark.types import EmbarkError, role_of

    try:
        with using(load_settings(home, offline=True)):
            data = readers.read(task, *parts(task)[0])
            clean = {side: some for side, some in data.sides.items() if side == role_of(side)}
            return {side: f"{some.ids[0]}: {_item(some.items[0])}" for side, some in clean.items()}
    except EmbarkError as error:
        return {"none": str(error).removeprefix("Offline, and ")}


def _item(item: Item) -> str:
    from embark.types import Text

    told = []
    for part in item.parts:
        if isinstance(part, Text):
            told.append(f"“{part.text[:TEXT]}{'…' if len(part.text) > TEXT else ''}”")
        else:
            told.append(f"[{part.kind}{_measures(part.kind, part.read())}]")
    return " ".join(told)


def _measures(kind: str, chunks: tuple[bytes, ...]) -> str:
    from PIL import Image, UnidentifiedImageError

    size = f" of {sum(map(len, chunks)):,} bytes"
    try:
        if kind != "image":
            return size
        with Image.open(io.BytesIO(chunks[0])) as image:
            return f" of {image.width} × {image.height}, {image.format}"
    except UnidentifiedImageError:
        return f"{size}, unreadable"
