"""Providers of embedding APIs, as a table: addresses, limits, and the format of requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from embark.types import Modality

RequestPart: TypeAlias = tuple[Literal["text", "image"], str]  # a text, or an image as a data URL
RequestParts: TypeAlias = tuple[RequestPart, ...]  # of one item


@dataclass(frozen=True)
class Provider:
    """An API for embeddings. The key is in {variable}_API_KEY, another address in {variable}_BASE_URL.

    Limits are below those of the providers: tokens are estimated here, and a smaller request loses less.
    """

    base: str
    path: str
    variable: str
    body: Callable[
        [Sequence[RequestParts], str], dict[str, Any]
    ]  # items and mode → the request, besides the model's name
    vectors: Callable[[Any], Iterable[tuple[int, Any]]]  # answer → (position, vector)
    indexed: bool = True  # the answer numbers its vectors; otherwise one with too few cannot be used
    modalities: tuple[Modality, ...] = ("text",)
    query: str = ""  # the provider's word for an input that is a query; empty: it has none
    document: str = ""
    cuts: bool = True  # it shortens a text that is too long for its model; where it refuses one, we cut
    dimensions: str = "dimensions"  # its name for the wanted dimension
    items: int = 128  # a request
    tokens: int = 100_000  # a request
    flight: int = 4  # requests at the same time
    largest: int = 16_000_000  # pixels of an image; a larger one is shrunk to the root of it on its longer side
    pixels: int = 1  # a token
    billed: tuple[int, int] = (0, 0)  # the fewest and the most pixels that an image counts as


def _by_index(answer: Any) -> list[tuple[int, Any]]:
    return [(row["index"], row["embedding"]) for row in answer["data"]]


def _texts(items: Sequence[RequestParts]) -> list[str]:
    return ["\n".join(text for _, text in parts) for parts in items]


def _voyage_multimodal(items: Sequence[RequestParts], mode: str) -> dict[str, Any]:
    def content(kind: str, value: str) -> dict[str, str]:
        return {"type": "text", "text": value} if kind == "text" else {"type": "image_base64", "image_base64": value}

    return {"inputs": [{"content": [content(*part) for part in parts]} for parts in items], "input_type": mode or None}


def _content(kind: str, value: str) -> dict[str, Any]:
    return {"type": "text", "text": value} if kind == "text" else {"type": "image_url", "image_url": {"url": value}}


def _cohere(items: Sequence[RequestParts], mode: str) -> dict[str, Any]:
    inputs = [{"content": [_content(*part) for part in parts]} for parts in items]
    return {"inputs": inputs, "input_type": mode, "embedding_types": ["float"]}


def _doubao(items: Sequence[RequestParts], mode: str) -> dict[str, Any]:
    (parts,) = items  # a request is one item, whatever it mixes
    return {"input": [_content(*part) for part in parts], "encoding_format": "float"}


def _chat(items: Sequence[RequestParts], mode: str) -> dict[str, Any]:
    (parts,) = items  # a request is one turn
    return {"messages": [{"role": "user", "content": [_content(*part) for part in parts]}]}


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        "/embeddings",
        "OPENAI",
        lambda items, mode: {"input": _texts(items), "encoding_format": "float"},
        _by_index,
        cuts=False,
    ),
    "openai-chat": Provider(  # a generator's: texts instead of vectors
        "https://api.openai.com/v1",
        "/chat/completions",
        "OPENAI",
        _chat,
        lambda answer: [(0, answer["choices"][0]["message"]["content"])],
        modalities=("text", "image"),
        items=1,
        flight=8,
        largest=4_000_000,
        pixels=750,
    ),
    "voyage": Provider(
        "https://api.voyageai.com/v1",
        "/embeddings",
        "VOYAGE",
        lambda items, mode: {"input": _texts(items), "input_type": mode or None},
        _by_index,
        query="query",
        document="document",
        dimensions="output_dimension",
    ),
    "voyage-multimodal": Provider(
        "https://api.voyageai.com/v1",
        "/multimodalembeddings",
        "VOYAGE",
        _voyage_multimodal,
        _by_index,
        modalities=("text", "image"),
        query="query",
        document="document",
        dimensions="output_dimension",
        items=32,
        pixels=560,
        billed=(50_000, 2_000_000),
    ),
    "cohere": Provider(
        "https://api.cohere.com/v2",
        "/embed",
        "COHERE",
        _cohere,
        lambda answer: enumerate(answer["embeddings"]["float"]),
        indexed=False,
        modalities=("text", "image"),
        query="search_query",
        document="search_document",
        dimensions="output_dimension",
        items=32,
        tokens=64_000,
        largest=2_458_624,  # its own limit, above which it shrinks them itself
        pixels=163,  # 512 × 512 are about 1,610 tokens
        billed=(3_136, 2_458_624),
    ),
    "doubao": Provider(
        "https://ark.cn-beijing.volces.com/api/v3",
        "/embeddings/multimodal",
        "ARK",
        _doubao,
        lambda answer: [(0, answer["data"]["embedding"])],
        modalities=("text", "image"),
        items=1,
        flight=16,
        pixels=784,
        billed=(784, 1_312 * 784),
    ),
}
