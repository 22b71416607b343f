"""Stages around a retriever: queries rewritten and media put into words before it, its best results re-ranked after it.

What a generator wrote and how a re-ranker scored lie in the store like vectors, each in its model's own space and under
a key of exactly what the model saw: nothing is written or scored twice, and a killed run goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from embark.data.drop_items import without
from embark.data.items import as_keys, key
from embark.engine.local import embed
from embark.engine.progress import progress
from embark.evaluators.rerank import Reranked, shortlist
from embark.models import Loading, get_generator, get_reranker
from embark.models.encoder import Encoder, Generator, Reranker, fingerprint
from embark.plan import Demand, Need
from embark.settings import Settings
from embark.store import Store
from embark.types import (
    Array,
    Content,
    Dataset,
    EmbarkError,
    Item,
    Modality,
    ModelCard,
    Part,
    Rendered,
    Side,
    Task,
    Text,
    role_of,
)

RANKINGS = ("retrieval", "choice")  # evaluators that know queries and documents
DEPTH = 50


@cache
def prompts() -> dict[str, str]:
    """What generators are asked: the requirements of the ARK paper, in words of our own."""
    return dict(json.loads((Path(__file__).parent / "prompts.json").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Stages:
    """The models that work with a retriever, by name or as objects.

    `rewrite` is a generator that rewrites the text of every query. `caption` is one that puts every image, sound and
    film into words, so that a model of text can do any task. `rerank` orders the `depth` best documents of each query
    anew. `prompts` replaces what "rewrite" and "caption" are asked.
    """

    rewrite: str | Generator | None = None
    caption: str | Generator | None = None
    rerank: str | Reranker | None = None
    depth: int = DEPTH
    prompts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise EmbarkError(f"Re-ranking needs at least one document a query, not {self.depth}.")


class Staging:
    """Stages at work: models loaded, their outputs kept in the store."""

    def __init__(self, stages: Stages, loading: Loading, settings: Settings, show: bool) -> None:
        self.depth, self.settings, self.show = stages.depth, settings, show
        self.store, self.lock = Store(settings.store), Lock()
        self.prompts = prompts() | dict(stages.prompts)
        said = {**vars(loading), "settings": settings}
        self.generators: dict[str, Generator] = {
            name: get_generator(given, **said) if isinstance(given, str) else given
            for name, given in (("rewrite", stages.rewrite), ("caption", stages.caption))
            if given is not None
        }
        chosen = stages.rerank
        self.reranker = get_reranker(chosen, **said) if isinstance(chosen, str) else chosen

    # ── what rows and results are called ─────────────────────────────────────────────────────────────────────────────

    def row(self, task: Task) -> Task:
        """The row as the stages leave it, under a protocol of its own."""
        said: dict[str, Any] = {
            name: [fingerprint(each.card), self.prompts[name]] for name, each in self.generators.items()
        }
        names = [task.protocol] * (task.protocol != "paper") + list(said)
        if self.reranker is not None:
            said["rerank"] = [fingerprint(self.reranker.card), self.depth]
            names.append(f"rerank-{self.depth}")
        only_text: dict[str, Any] = {"modalities": ("text",), "mixed": False} if "caption" in said else {}
        params = {**task.params, "stages": said}
        return replace(task, params=params, protocol="+".join(names), variants={}, **only_text)

    def card(self, card: ModelCard) -> ModelCard:
        """The card under which results are kept: all the models that made them."""
        models: list[Generator | Reranker] = [*self.generators.values(), *([self.reranker] if self.reranker else [])]
        return replace(card, name=" + ".join(dict.fromkeys([card.name, *(each.card.name for each in models)])))

    def cannot(self, task: Task) -> str | None:
        """Why the stages have nothing to do for a task as its row has it, or None."""
        if task.evaluator not in RANKINGS and (self.reranker is not None or "rewrite" in self.generators):
            return "there are no queries to rewrite, or rankings to re-rank"
        media: tuple[Modality, ...] = tuple(kind for kind in task.modalities if kind != "text")
        captioner = self.generators.get("caption")
        if captioner and not media:
            return "there is nothing to caption: the task is text"
        takes: list[tuple[ModelCard, tuple[Modality, ...]]] = [(captioner.card, media)] if captioner else []
        if self.reranker is not None:
            takes.append((self.reranker.card, ("text",) if captioner else task.modalities))
        for card, kinds in takes:
            if missing := [kind for kind in kinds if kind not in card.modalities]:
                return f"{card.name} takes no {' and no '.join(missing)}"
        return None

    # ── before the retriever ─────────────────────────────────────────────────────────────────────────────────────────

    def retold(self, task: Task, data: Dataset) -> Dataset:
        """The dataset with its queries rewritten and its media in words."""
        if rewriter := self.generators.get("rewrite"):
            kinds = rewriter.card.modalities  # one that cannot see rewrites by the text alone
            seen = {item: Item(tuple(part for part in item.parts if part.kind in kinds)) for item in _queries(data)}
            texts = self._texts("rewrite", [item for item in seen.values() if item.parts])
            data = _changed(task, data, lambda _, item: _rewritten(item, texts, seen.get(item)))
        if "caption" in self.generators:
            items = [item for each in data.sides.values() for item in each.items]
            texts = self._texts("caption", [Item((part,)) for item in items for part in item.parts if _media(part)])
            data = _changed(task, data, lambda _, item: _in_words(item, texts))
        return data

    def _texts(self, stage: str, items: Sequence[Item]) -> dict[Item, str | None]:
        """What the stage's generator wrote about each item; None where it would not decode."""
        model, prompt = self.generators[stage], self.prompts[stage]
        space = fingerprint(model.card)
        keys = {item: key(space, model.render(item, prompt)) for item in dict.fromkeys(items)}
        needs = [Need(found, item, stage, prompt, 0, row) for row, (item, found) in enumerate(keys.items())]
        stored, unreadable = self._computed(_Writing(model), needs)
        return {
            item: None if found in unreadable else bytes(stored[found]).decode()[:-1] for item, found in keys.items()
        }

    # ── after the retriever ──────────────────────────────────────────────────────────────────────────────────────────

    def reranked(self, each: Demand, vectors: Mapping[str, Any], params: Mapping[str, Any]) -> Reranked | None:
        """The best pairs of a first ranking with the re-ranker's scores; None without a re-ranker."""
        if self.reranker is None:
            return None
        truth: Any = each.data.truth
        query, document = shortlist(truth, vectors, params, self.depth)
        queries, documents = each.data.sides["query"].items, each.data.sides["document"].items
        asked, space = each.task.instructions.get("query"), fingerprint(self.reranker.card)
        needs = []
        for row, (q, d) in enumerate(zip(query.tolist(), document.tolist(), strict=True)):
            seen = self.reranker.render(queries[q], documents[d], asked)
            needs.append(_Pair(key(space, seen), Item(seen.parts), "pair", asked, 0, row, seen.mode))
        stored, unreadable = self._computed(_Scoring(self.reranker), needs)
        if unreadable:
            raise EmbarkError(f"{len(unreadable)} pairs cannot be re-ranked: {next(iter(unreadable.values()))}")
        return Reranked(query, document, np.array([stored[need.key][0] for need in needs], np.float32))

    def _computed(self, model: Encoder, needs: Sequence[Need]) -> tuple[dict[bytes, Array], dict[bytes, str]]:
        """Stored outputs by key, after what was missing was computed; and what would not decode."""
        needs = list({need.key: need for need in needs}.values())
        with self.lock:  # tasks are scored in several threads, and there is one device
            space = self.store.space(fingerprint(model.card))
            keys = as_keys([need.key for need in needs])
            missing = [need for need, here in zip(needs, space.has(keys), strict=True) if not here]
            unreadable: dict[bytes, str] = {}
            if missing:
                with progress(model.card.name, len(missing), self.show) as advance, space.writer() as writer:
                    report = embed(model, missing, writer, workers=self.settings.workers, advance=advance)
                unreadable = report.unreadable
                space.refresh()
        needs = [need for need in needs if need.key not in unreadable]
        rows = space.read(as_keys([need.key for need in needs]))
        return dict(zip([need.key for need in needs], rows[np.arange(len(needs))], strict=True)), unreadable


@dataclass(frozen=True)
class _Pair(Need):
    """A missing score; its item holds what the re-ranker will see."""

    mode: str

    def render(self, encoder: Encoder) -> Rendered:
        return Rendered(self.item.parts, self.mode)


class _Scoring(Encoder):
    """A re-ranker as the engine sees it: a score is a vector of one number."""

    def __init__(self, model: Reranker) -> None:
        self.model, self.card = model, model.card

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return self.model.prepare(contents, mode)

    def embed(self, batch: Sequence[Any]) -> Array:
        return np.asarray(self.model.score(batch), np.float32)[:, None]


class _Writing(Encoder):
    """A generator as the engine sees it: a text is a matrix with a byte a row; a newline keeps it from being empty."""

    def __init__(self, model: Generator) -> None:
        self.model, self.card = model, model.card

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return self.model.render(item, instruction or "")

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return self.model.prepare(contents, mode)

    def embed(self, batch: Sequence[Any]) -> list[Array]:
        return [
            np.frombuffer(f"{text}\n".encode(errors="replace"), np.uint8)[:, None]
            for text in self.model.generate(batch)
        ]


def _media(part: Part) -> bool:
    return not isinstance(part, Text)


def _queries(data: Dataset) -> list[Item]:
    return [item for side, each in data.sides.items() if role_of(side) == "query" for item in each.items]


def _rewritten(item: Item, texts: Mapping[Item, str | None], seen: Item | None) -> Item | None:
    """The new text in the place of the old; media stay."""
    if seen is None or not seen.parts:
        return item
    text = texts[seen]
    if text is None:
        return None
    first = next((at for at, part in enumerate(item.parts) if not _media(part)), len(item.parts))
    before, after = item.parts[:first], tuple(part for part in item.parts[first:] if _media(part))
    return Item((*before, Text(text), *after))


def _in_words(item: Item, texts: Mapping[Item, str | None]) -> Item | None:
    """One text, with what was written about each medium in its place."""
    if item.modalities == ("text",):
        return item
    said = [part.text if isinstance(part, Text) else texts[Item((part,))] for part in item.parts]
    known = [text for text in said if text is not None]
    return Item((Text("\n".join(known)),)) if len(known) == len(said) else None


def _changed(task: Task, data: Dataset, change: Any) -> Dataset:
    """The dataset with every item changed; None is an item that would not decode, and the row's policy decides."""
    made = {side: [change(side, item) for item in each.items] for side, each in data.sides.items()}
    sides = {
        side: Side(each.ids, [new or old for new, old in zip(made[side], each.items, strict=True)])
        for side, each in data.sides.items()
    }
    data, bad = replace(data, sides=sides), dict[str, set[int]]()
    for side, items in made.items():
        rows = {row for row, item in enumerate(items) if item is None}
        for other in made:  # the variants of a side keep in step
            if rows and role_of(other) == role_of(side):
                bad.setdefault(other, set()).update(rows)
    if not bad:
        return data
    count = sum(item is None for items in made.values() for item in items)
    if task.unreadable == "error":
        raise EmbarkError(f"{count} items cannot be put into words, because they do not decode.")
    return replace(without(data, bad), skipped=(*data.skipped, f"left out {count} items that do not decode"))
