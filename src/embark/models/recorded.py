"""Generators and re-rankers whose outputs lie in a file: what a model wrote or scored elsewhere, once and for good.

Each line of the file is a JSON object. A generator's has "input" and "output", or "likelihoods": log-probabilities of
texts as its answer, {"cat": -1.2}, with the number of tokens where it is known, {"cat": [-1.2, 3]}. A re-ranker's has
"query", "document" and "score". An input is a text, a picture, sound or film as {"sha256": "…"} of its file (of frames
in files of their own, a list of hashes), or a list of these in their order.
A re-ranker's file may say {"default": 0.0}: the score of documents that no line names, for the queries that some line
names, where documents are of a kind that it knows (files, or their captions). Any other input that the file lacks is an
error: nothing is made up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from embark.models.encoder import Capabilities, Generator, Reranker
from embark.models.loading import Loading
from embark.types import MODALITIES, Array, Content, EmbarkError, Item, Media, ModelCard, Rendered, Text

SHIPPED = Path(__file__).parent / "recordings"  # of the cards that come with embark
INPUT_CHARACTERS = 60  # characters of an input in messages


def load(card: ModelCard, loading: Loading) -> Generator:
    """The generator of a file of texts."""
    path, card = _with_revision(card)
    outputs: dict[str, str] = {}
    likelihoods: dict[str, dict[str, tuple[float, int]]] = {}
    for number, row in _rows(path):
        match row:
            case {"input": value, "output": str(text)}:
                _enter(outputs, input_key(value), text, path, number)
            case {"input": _, "likelihoods": dict()}:
                pass
            case _:
                raise EmbarkError(f'Line {number} of {path} has no "input" with a text as "output" or "likelihoods".')
        if "likelihoods" in row:
            texts = {name: _likelihood(cell, path, number) for name, cell in row["likelihoods"].items()}
            _enter(likelihoods, input_key(row["input"]), texts, path, number)
    return RecordedGenerator(replace(card, dim=1, stored="uint8"), path, outputs, likelihoods)


def load_scores(card: ModelCard, loading: Loading) -> Reranker:
    """The re-ranker of a file of scores."""
    path, card = _with_revision(card)
    scores: dict[str, dict[str, float]] = {}
    default: float | None = None
    for number, row in _rows(path):
        match row:
            case {"query": query, "document": document, "score": int() | float() as score}:
                _enter(scores.setdefault(input_key(query), {}), input_key(document), float(score), path, number)
            case {"default": int() | float() as score}:
                default = float(score)
            case _:
                raise EmbarkError(f'Line {number} of {path} has no "query", "document" and number as "score".')
    return RecordedReranker(replace(card, dim=1, stored="float32"), path, scores, default)


@dataclass(eq=False)
class RecordedGenerator(Generator):
    """It looks up the item, whatever the prompt is: the outputs were made with another one, or with the same."""

    card: ModelCard
    path: Path
    outputs: dict[str, str]
    known_likelihoods: dict[str, dict[str, tuple[float, int]]]

    def __post_init__(self) -> None:
        self.capabilities = Capabilities(likelihoods=self._likelihoods)

    def render(self, item: Item, prompt: str) -> Rendered:
        """The key of the item in the file."""
        return Rendered((Text(item_key(item)),))

    def prepare(self, contents: Sequence[Content], mode: str) -> str:
        """The key."""
        return str(contents[0].value)

    def generate(self, batch: Sequence[str]) -> list[str]:
        """The texts of the file."""
        if missing := [key for key in batch if key not in self.outputs]:
            raise EmbarkError(
                f"{self.path} has no output for {len(missing)} of {len(batch)} inputs, such as {_shown(missing[0])}. "
                'Add a line {"input": …, "output": …} for each.'
            )
        return [self.outputs[key] for key in batch]

    def _likelihoods(self, batch: Sequence[str], texts: Sequence[str]) -> list[Array]:
        """The log-probabilities of the file."""
        for key in batch:
            known = self.known_likelihoods.get(key, {})
            if missing := [text for text in texts if text not in known]:
                raise EmbarkError(
                    f"{self.path} has no likelihood of {len(missing)} of {len(texts)} texts for {_shown(key)}, such as "
                    f'\'{missing[0]}\'. Add a line {{"input": …, "likelihoods": {{TEXT: LOG-PROBABILITY, …}}}}.'
                )
        return [np.array([self.known_likelihoods[key][text] for text in texts], np.float32) for key in batch]


@dataclass(eq=False)
class RecordedReranker(Reranker):
    """It looks up pairs."""

    card: ModelCard
    path: Path
    scores: dict[str, dict[str, float]]
    default: float | None

    @cached_property
    def known_kinds(self) -> set[tuple[str, ...]]:
        """What the documents of the file are: texts, files, or both together."""
        return {_kinds(document) for documents in self.scores.values() for document in documents}

    def render(self, query: Item, document: Item, instruction: str | None) -> Rendered:
        """The keys of query and document in the file."""
        return Rendered((Text(item_key(query)), Text(item_key(document))), "1")

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[str, str]:
        """The keys."""
        query, document = contents
        return query.value, document.value

    def score(self, batch: Sequence[tuple[str, str]]) -> Array:
        """The scores of the file."""
        return np.array([self._score(query, document) for query, document in batch], np.float32)

    def _score(self, query: str, document: str) -> float:
        documents = self.scores.get(query)
        default = self.default if _kinds(document) in self.known_kinds else None
        score = None if documents is None else documents.get(document, default)
        if score is None:
            what = f"the query {_shown(query)}" if documents is None else f"{_shown(query)} with {_shown(document)}"
            raise EmbarkError(
                f'{self.path} has no score for {what}. Add a line {{"query": …, "document": …, "score": …}}.'
            )
        return score


def input_of(item: Item) -> Any:
    """An item as a recorded file writes it: a text, the hash of a file, or a list of these."""
    parts = [part.text if isinstance(part, Text) else {"sha256": _file_hashes(part)} for part in item.parts]
    return parts[0] if len(parts) == 1 else parts


def item_key(item: Item) -> str:
    """The key of an item, equal to the `input_key` of its input; the digests of media are known, so no file is read."""
    parts = [part.text if isinstance(part, Text) else {"digest": as_stored(part).digest.hex()} for part in item.parts]
    return json.dumps(parts, ensure_ascii=False)


def input_key(value: Any) -> str:
    """The key of an input of a recorded file."""
    parts = value if isinstance(value, list) else [value]
    return json.dumps([_part_key(part) for part in parts], ensure_ascii=False)


def _part_key(part: Any) -> Any:
    """A text, or the digest of media, which is the hash of the hashes of their files."""
    match part:
        case str():
            return part
        case {"sha256": str() | list() as hashes}:
            files = [hashes] if isinstance(hashes, str) else hashes
            return {"digest": hashlib.sha256(b"".join(map(bytes.fromhex, files))).hexdigest()}
        case _:
            raise EmbarkError(f'{json.dumps(part)[:INPUT_CHARACTERS]} is no input: write a text or {{"sha256": "…"}}.')


def _file_hashes(part: Media) -> str | list[str]:
    hashes = [hashlib.sha256(chunk).hexdigest() for chunk in as_stored(part).read()]
    return hashes[0] if len(hashes) == 1 else hashes


def as_stored(part: Media) -> Media:
    """The file itself, where a picture is turned upright."""
    stored: Media = getattr(part, "stored", part)
    return stored


def _with_revision(card: ModelCard) -> tuple[Path, ModelCard]:
    """The file of a card, and the card with all modalities; its revision is the hash of the file."""
    path = Path(card.source).expanduser() if card.source else SHIPPED / card.options["file"]
    if not path.is_file():
        raise EmbarkError(f"There is no file {path} of recorded outputs.")
    revision = f"sha256-{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    name = f"{card.loader}/{path.name}" if card.source else card.name
    return path, replace(card, name=name, revision=revision, modalities=card.modalities or MODALITIES)


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    """The lines of a file as (number, object)."""
    for number, line in enumerate(path.read_bytes().decode("utf-8-sig", "replace").splitlines(), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise EmbarkError(f"Line {number} of {path} is not JSON: {error}.") from None


def _enter(outputs: dict[str, Any], key: str, output: Any, path: Path, number: int) -> None:
    """Add an output; two different ones for an input are an error."""
    if outputs.setdefault(key, output) != output:
        raise EmbarkError(f"Line {number} of {path} has another output for {_shown(key)} than a line before it.")


def _likelihood(cell: Any, path: Path, number: int) -> tuple[float, int]:
    """A log-probability and its number of tokens, 0 where it is not known."""
    match cell:
        case int() | float():
            value, tokens = float(cell), 0
        case [int() | float() as log, int(tokens)]:
            value = float(log)
        case _:
            value, tokens = nan, 0
    if not value <= 0 or value == -inf or tokens < 0:
        raise EmbarkError(
            f"Line {number} of {path}: {json.dumps(cell)[:INPUT_CHARACTERS]} is no log-probability, a number up to 0 "
            "(or a list of that and the number of tokens)."
        )
    return value, tokens


def _kinds(key: str) -> tuple[str, ...]:
    return tuple("text" if isinstance(part, str) else "file" for part in json.loads(key))


def _shown(key: str) -> str:
    """An input in messages: its texts; of a file, nothing is known that people would recognize."""
    parts = [f'"{part}"' if isinstance(part, str) else "a file" for part in json.loads(key)]
    text = " and ".join(parts)
    return text if len(text) <= INPUT_CHARACTERS else f"{text[: INPUT_CHARACTERS - 1]}…"
