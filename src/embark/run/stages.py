"""Stages around a retriever: queries rewritten and media put into words before it, its best results re-ranked after it.

What a generator wrote and how a re-ranker scored lie in the store like vectors, each in its model's own space and under
a key of exactly what the model saw: nothing is written or scored twice, and a killed run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from embark import published as papers
from embark.catalogue import check_name
from embark.evaluators.pairs import PairScores
from embark.evaluators.rerank import Reranked, shortlist
from embark.items import key
from embark.items.drop_items import without
from embark.models import Loading, get_generator, get_reranker
from embark.models.adapt import as_generator, as_reranker
from embark.models.encoder import Encoder, Generator, Interrupted, Likelihoods, Reranker, prepare_many
from embark.planning import Demand, Need
from embark.protocol import fingerprint_of, vector_space
from embark.run.workbench import ModelAsEncoder, Workbench, incompatibility, with_variants
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
    """The default prompts of generators: the requirements of the ARK paper, in our own words."""
    return dict(json.loads((Path(__file__).parent / "prompts.json").read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Stages:
    """The models that work with a retriever, by name or as objects.

    `rewrite` is a generator that rewrites the text of every query. `caption` is one that puts every image, sound and
    film into words, so that a model of text can do any task. `rerank` orders the `depth` best documents of each query
    anew. `prompts` are what "rewrite" and "caption" are asked instead of our own words: texts, or files that hold them.
    """

    rewrite: str | Generator | None = None
    caption: str | Generator | None = None
    rerank: str | Reranker | None = None
    depth: int = DEPTH
    prompts: Mapping[str, str | Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise EmbarkError(f"Re-ranking needs at least one document per query, not {self.depth}.")
        for stage in self.prompts:
            check_name("stage with a prompt", stage, prompts())
            if getattr(self, stage) is None:
                raise EmbarkError(f"There is a prompt for '{stage}' but no model: name one (--{stage}).")

    def own_prompts(self) -> dict[str, str]:
        """The user's prompts, exactly as given; of a file, all but its last line feed."""
        return {stage: prompt_text(stage, prompt) for stage, prompt in self.prompts.items()}


def prompt_hash(prompt: str) -> str:
    """The name of a prompt in results."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:12]


def prompt_text(stage: str, prompt: str | Path) -> str:
    """A stage's own prompt, from a text or a file."""
    try:
        text = prompt if isinstance(prompt, str) else prompt.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EmbarkError(f"The prompt for '{stage}' cannot be read from {prompt}: {error}.") from error
    if not text.strip():
        raise EmbarkError(f"The prompt for '{stage}' is empty.")
    return text


class StagedWorkbench(Workbench):
    """A workbench with stages: what is read is rewritten and put into words, what is scored is re-ranked first."""

    def __init__(self, stages: Stages, loading: Loading, bench: Workbench) -> None:
        super().__init__(bench.settings, bench.batch_size, bench.show_progress)
        self.depth = stages.depth
        self.own_prompts = stages.own_prompts()
        self.prompts = prompts() | self.own_prompts
        options: Any = {"loading": loading, "settings": bench.settings}
        self.generators: dict[str, Generator] = {
            stage: get_generator(model, **options) if isinstance(model, str) else as_generator(model)
            for stage, model in (("rewrite", stages.rewrite), ("caption", stages.caption))
            if model is not None
        }
        reranker = stages.rerank
        if isinstance(reranker, str):
            reranker = get_reranker(reranker, **options)
        self.reranker = None if reranker is None else as_reranker(reranker)
        self._plain_rows: dict[str, Task] = {}  # as they are read

    # ── what rows and results are called ─────────────────────────────────────────────────────────────────────────────

    def row(self, task: Task) -> Task:
        """The row after all stages, under a protocol of its own."""
        self._plain_rows[task.name] = task
        stages: dict[str, Any] = {
            stage: [vector_space(model.card), self.prompts[stage]] for stage, model in self.generators.items()
        }
        names = [task.protocol] * (task.protocol != "paper") + [_protocol_word(task, stage) for stage in stages]
        if self.reranker is not None:
            stages["rerank"] = [vector_space(self.reranker.card), self.depth]
            names.append(f"rerank-{self.depth}")
        only_text: dict[str, Any] = {"modalities": ("text",), "mixed": False} if "caption" in stages else {}
        return replace(
            task, params={**task.params, "stages": stages}, protocol="+".join(names), variants={}, **only_text
        )

    def stage_facts(self, demand: Demand) -> dict[str, Any]:
        """The fingerprint of the row without stages, and the hash of each prompt."""
        row = fingerprint_of(self._plain_rows[demand.task.name], demand.split, demand.subset)
        return {
            "stages": {"row": row, "prompts": {stage: prompt_hash(self.prompts[stage]) for stage in self.generators}}
        }

    def stage_notes(self, task: Task) -> tuple[str, ...]:
        """Whose prompts were used, where a paper printed scores under the same protocol, made with its own prompts."""
        if task.protocol == "paper" or task.protocol not in published_protocols(task.family):
            return ()
        return tuple(
            f"the prompt for '{stage}' is {'the user' if stage in self.own_prompts else 'embark'}'s "
            f"({prompt_hash(self.prompts[stage])}), not the published one"
            for stage in self.generators
        )

    def card(self, card: ModelCard) -> ModelCard:
        """The card of the results: its name joins the names of all models involved."""
        models: list[Generator | Reranker] = [*self.generators.values(), *([self.reranker] if self.reranker else [])]
        return card.with_name(lambda name: " + ".join(dict.fromkeys([name, *(model.card.name for model in models)])))

    def incompatibility(self, card: ModelCard, task: Task) -> str | None:
        """The reason why the model cannot do the task, or why a stage has nothing to do for it; else None."""
        return incompatibility(card, task) or self._nothing_to_do(self._plain_rows[task.name])

    def _nothing_to_do(self, task: Task) -> str | None:
        if task.evaluator not in RANKINGS and "rewrite" in self.generators:
            return "there are no queries to rewrite"
        if task.evaluator not in (*RANKINGS, "pairs") and self.reranker is not None:
            return "there are no rankings to re-rank, and no pairs of images and texts to score"
        media: tuple[Modality, ...] = tuple(kind for kind in task.modalities if kind != "text")
        captioner = self.generators.get("caption")
        if captioner and not media:
            return "there is nothing to caption: the task is text"
        takes: list[tuple[ModelCard, tuple[Modality, ...]]] = [(captioner.card, media)] if captioner else []
        if self.reranker is not None:
            takes.append((self.reranker.card, ("text",) if captioner else task.modalities))
        for card, modalities in takes:
            if missing := [kind for kind in modalities if kind not in card.modalities]:
                return f"{card.name} takes no {' and no '.join(missing)}"
        return None

    # ── before the retriever ─────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, task: Task, split: str, subset: str) -> Dataset:
        """The dataset with its queries rewritten and its media in words."""
        data = super()._read(self._plain_rows[task.name], split, subset)
        if rewriter := self.generators.get("rewrite"):
            kinds = rewriter.card.modalities
            seen = {item: _seen(item, kinds) for item in _queries(data)}
            texts = self._texts("rewrite", [item for _, item in rewrite_inputs(data, kinds)])
            data = _map_items(task, data, lambda item: _rewritten(item, texts, seen.get(item)))
        if "caption" in self.generators:
            texts = self._texts("caption", [item for _, item in caption_inputs(data)])
            data = _map_items(task, data, lambda item: _in_words(item, texts))
        return data

    def _texts(self, stage: str, items: Sequence[Item]) -> dict[Item, str | None]:
        """What the stage's generator wrote about each item; None where it would not decode."""
        return written_texts(self, self.generators[stage], self.prompts[stage], items, stage)

    # ── after the retriever ──────────────────────────────────────────────────────────────────────────────────────────

    def needs_model(self, card: ModelCard, demand: Demand) -> bool:
        """Also where a re-ranker works on the vectors' ranking."""
        return self.reranker is not None or super().needs_model(card, demand)

    def score_inputs(self, encoder: Encoder, demand: Demand, params: Mapping[str, Any]) -> dict[str, Any]:
        """The stored vectors, and the best pairs of a first ranking with the re-ranker's scores; of pairs of images and
        texts, the re-ranker's scores in place of the vectors' similarity.
        """
        reranker = self.reranker
        if reranker is None:
            return super().score_inputs(encoder, demand, params)
        vectors = self.vectors(encoder, demand)
        if demand.task.evaluator == "pairs":
            scores = self.scores_of_samples(reranker, demand, lambda image, text: reranker.render(text, image, None))
            return {**vectors, "pairs": PairScores(scores, added=False)}
        truth: Any = demand.data.truth
        query, document = shortlist(demand.task.evaluator, truth, vectors, params, self.depth)
        return {**vectors, "reranked": Reranked(query, document, self.reranker_scores(demand, query, document))}

    def reranker_scores(self, demand: Demand, query: Array, document: Array) -> Array:
        """The re-ranker's scores of pairs of a query and a document, which are positions in their sides."""
        reranker = self.reranker
        assert reranker is not None
        queries = demand.data.sides["query"].items
        documents = demand.data.sides["document"].items
        instruction = demand.task.instruction("query", demand.subset)
        pairs = zip(query.tolist(), document.tolist(), strict=True)
        return self.pair_scores(reranker, [reranker.render(queries[q], documents[d], instruction) for q, d in pairs])


def written_texts(
    bench: Workbench, model: Generator, prompt: str, items: Sequence[Item], stage: str
) -> dict[Item, str | None]:
    """What a generator writes about each item, from the store or now; None where an item would not decode."""
    space = vector_space(model.card)
    keys = {item: key(space, model.render(item, prompt)) for item in dict.fromkeys(items)}
    needs = [Need(text_key, item, stage, prompt, 0, row) for row, (item, text_key) in enumerate(keys.items())]
    stored, unreadable = bench.outputs(_GeneratorAsEncoder(model), needs)
    return {
        item: None if text_key in unreadable else bytes(stored[text_key]).decode()[:-1]
        for item, text_key in keys.items()
    }


def text_likelihoods(
    bench: Workbench, model: Generator, prompt: str, items: Sequence[Item], texts: Sequence[str]
) -> dict[Item, Array | None]:
    """How likely each text is as a generator's answer about each item, from the store or now: (texts, 2).

    The columns are log-probabilities and numbers of tokens (0: not known); None where an item would not decode.
    """
    likelihoods = model.capabilities.likelihoods
    if likelihoods is None:
        raise EmbarkError(
            f"{model.card.name} does not tell how likely a given text is as its answer. Local models do, and recorded "
            'files with "likelihoods"; servers tell it of their own texts alone: match their answers (--by answer).'
        )
    scorer = _AnswerScorerAsEncoder(model, likelihoods, texts)
    space = vector_space(scorer.card)
    keys = {item: key(space, scorer.render(item, "likelihood", prompt)) for item in dict.fromkeys(items)}
    needs = [Need(own, item, "likelihood", prompt, 0, row) for row, (item, own) in enumerate(keys.items())]
    stored, unreadable = bench.outputs(scorer, needs)
    return {item: None if own in unreadable else np.asarray(stored[own]) for item, own in keys.items()}


class _AnswerScorerAsEncoder(ModelAsEncoder):
    """The likelihoods of texts are a matrix in a space of their own; what the texts are is part of the key."""

    def __init__(self, model: Generator, likelihoods: Likelihoods, texts: Sequence[str]) -> None:
        super().__init__(model)
        self._likelihoods = likelihoods
        self.card = replace(model.card, dim=2, stored="float32")
        self.texts = tuple(texts)
        self.hash = hashlib.sha256(json.dumps(self.texts).encode()).hexdigest()
        self.capabilities = replace(model.capabilities, prepare_many=self._prepare_many, preparation=None)

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        rendered: Rendered = self.model.render(item, instruction or "")
        return replace(rendered, mode=f"{rendered.mode}|{self.hash}")

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return super().prepare(contents, mode.rpartition("|")[0])

    def _prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> Sequence[Any]:
        return prepare_many(self.model, batch, [mode.rpartition("|")[0] for mode in modes])

    def embed(self, batch: Sequence[Any]) -> list[Array]:
        return [np.asarray(of_item, np.float32) for of_item in self._likelihoods(batch, self.texts)]


class _GeneratorAsEncoder(ModelAsEncoder):
    """A text is a matrix with one byte per row. A newline keeps it from being empty."""

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        rendered: Rendered = self.model.render(item, instruction or "")
        return rendered

    def embed(self, batch: Sequence[Any]) -> list[Array]:
        try:
            return list(map(_as_bytes, self.model.generate(batch)))
        except Interrupted as error:  # what was written, and perhaps paid for, is kept
            raise Interrupted(str(error), {row: _as_bytes(str(text)) for row, text in error.done.items()}) from error


def _as_bytes(text: str) -> Array:
    return np.frombuffer(f"{text}\n".encode(errors="replace"), np.uint8)[:, None]


def _protocol_word(task: Task, stage: str) -> str:
    """A stage in a protocol's name: a paper's own word for it, where the task's family has published scores of it."""
    word = {"caption": "captions"}.get(stage, stage)
    return word if word in published_protocols(task.family) else stage


def published_protocols(family: str) -> frozenset[str]:
    """The protocols of the scores that are published for a family."""
    return frozenset(score.protocol for score in papers.scores(family)) if family in papers.FAMILIES else frozenset()


def _media(part: Part) -> bool:
    return not isinstance(part, Text)


def rewrite_inputs(data: Dataset, kinds: Sequence[Modality]) -> list[tuple[str, Item]]:
    """The ids of queries, and what a rewriter that takes these modalities sees of them."""
    queries = [side for name, side in data.sides.items() if role_of(name) == "query"]
    inputs = [(id, _seen(item, kinds)) for side in queries for id, item in zip(side.ids, side.items, strict=True)]
    return [(id, item) for id, item in inputs if item.parts]


def caption_inputs(data: Dataset) -> list[tuple[str, Item]]:
    """The media of all items, each alone, with the id of its item."""
    return [
        (id, Item((part,)))
        for side in data.sides.values()
        for id, item in zip(side.ids, side.items, strict=True)
        for part in item.parts
        if _media(part)
    ]


def _seen(item: Item, kinds: Sequence[Modality]) -> Item:
    """A rewriter without vision gets the text alone."""
    return Item(tuple(part for part in item.parts if part.kind in kinds))


def _queries(data: Dataset) -> list[Item]:
    return [item for name, side in data.sides.items() if role_of(name) == "query" for item in side.items]


def _rewritten(item: Item, texts: Mapping[Item, str | None], seen: Item | None) -> Item | None:
    """The item with its texts replaced by the new text; media stay."""
    if seen is None or not seen.parts:
        return item
    text = texts[seen]
    if text is None:
        return None
    first = next((place for place, part in enumerate(item.parts) if not _media(part)), len(item.parts))
    before, after = item.parts[:first], tuple(part for part in item.parts[first:] if _media(part))
    return Item((*before, Text(text), *after))


def _in_words(item: Item, texts: Mapping[Item, str | None]) -> Item | None:
    """The item as one text: each medium is replaced by the text that was written about it."""
    if item.modalities == ("text",):
        return item
    parts = [part.text if isinstance(part, Text) else texts[Item((part,))] for part in item.parts]
    words = [text for text in parts if text is not None]
    return Item((Text("\n".join(words)),)) if len(words) == len(parts) else None


def _map_items(task: Task, data: Dataset, change: Callable[[Item], Item | None]) -> Dataset:
    """The dataset with `change` applied to every item.

    Where it returns None, the item does not decode, and the task's policy on unreadable items applies.
    """
    changed = {name: [change(item) for item in side.items] for name, side in data.sides.items()}
    sides = {
        name: Side(side.ids, [new or old for new, old in zip(changed[name], side.items, strict=True)])
        for name, side in data.sides.items()
    }
    data = replace(data, sides=sides)
    unreadable = {name: [row for row, item in enumerate(items) if item is None] for name, items in changed.items()}
    count = sum(map(len, unreadable.values()))
    if not count:
        return data
    if task.unreadable == "error":
        raise EmbarkError(f"{count} items cannot be captioned, because they cannot be decoded.")
    return replace(
        without(data, with_variants(unreadable)), skipped=(*data.skipped, f"left out {count} items that do not decode")
    )
