"""Generators behind an API that speaks OpenAI's chat completions: OpenAI itself, vLLM, Ollama, llama.cpp and others.

The address is OPENAI_BASE_URL (default: OpenAI's), the key OPENAI_API_KEY. Nothing is said about sampling unless the
name does ("openai-chat:MODEL?temperature=0&max_tokens=300"), since some models refuse it. Texts are kept in the store,
so what was written once is never asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from embark.models import api
from embark.models.api import Remote, RequestItem
from embark.models.encoder import Generator
from embark.models.loading import Loading
from embark.types import Content, EmbarkError, ModelCard


def load(card: ModelCard, loading: Loading) -> Generator:
    """The chat model of the card's source; nothing is sent yet, and no key is needed."""
    name, _, query = card.source.partition("?")
    if not name:
        raise EmbarkError("Name the model: openai-chat:MODEL, as its server calls it.")
    stated = {parameter: _value(text) for parameter, text in parse_qsl(query, strict_parsing=bool(query))}
    parameters = {**card.options.get("parameters", {}), **stated}
    options = {**card.options, **({"parameters": parameters} if parameters else {})}
    card = replace(card, source=name, options=options, dim=1, stored="uint8")
    remote = api.load(card, loading)
    return ChatGenerator(_Chat(replace(remote.card, fusion=None), remote.endpoint, remote.settings))


class ChatGenerator(Generator):
    """The user's turn is the prompt and the item; the answer is the text."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.card = remote.card

    def prepare(self, contents: Sequence[Content], mode: str) -> RequestItem:
        """Texts, and images as PNG."""
        return self.remote.prepare(contents, mode)

    def generate(self, batch: Sequence[RequestItem]) -> list[str]:
        """One text per item, several requests at the same time; an error carries the texts that were answered."""
        return self.remote.outputs(batch)


class _Chat(Remote):
    """Requests of one turn each, whose answers are texts."""

    def _outputs(self, page: bytes, items: Sequence[RequestItem], key: str) -> list[tuple[int, Any]]:
        return self._vectors(page, len(items), key)

    def _decoded(self, output: Any) -> str:
        if not isinstance(output, str) or not output.strip():
            raise ValueError(f"the answer holds no text but {output!r}")
        return output.strip()

    def _remove_wrong_shapes(self, batch: Sequence[RequestItem], vectors: dict[int, Any]) -> EmbarkError | None:
        return None


def _value(text: str) -> Any:
    with suppress(ValueError):
        return json.loads(text)
    return text
