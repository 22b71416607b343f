"""Tokenisers of checkpoints: many texts at once have the tokens of each alone, from any thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.models.checkpoints import Checkpoint
from embark.models.hf import Tokenizer, only_wraps
from embark.types import ModelCard
from tiny import SENTENCES, byte_bpe, saved, unigram, wordpiece

pytest.importorskip("transformers")

KINDS: dict[str, Callable[[], Any]] = {
    "bpe": lambda: byte_bpe("<s> $A </s>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"),
    "wordpiece": wordpiece,
    "unigram": unigram,
    "bare": lambda: byte_bpe(pad_token="<pad>"),
}
TEXT = st.text() | st.lists(st.sampled_from([*SENTENCES, "[SEP]", "<s>", "</s>", "é你🙂"])).map(" ".join)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    return {name: tokenizer(tmp_path_factory.mktemp(name), make()) for name, make in KINDS.items()}


def tokenizer(folder: Path, inner: Any, limit: int | None = None) -> Tokenizer:
    card = ModelCard("local/tokens", "1", "text", ("text",), source=str(folder))
    return Tokenizer(Checkpoint(saved(folder, inner), card, trusted=False), limit)


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(TEXT, max_size=6), limit=st.integers(3, 40))
def test_many_texts_have_the_tokens_of_each_alone(
    tokenizers: dict[str, Tokenizer], kind: str, texts: list[str], limit: int
) -> None:
    tokenize = tokenizers[kind]
    assert tokenize.fast
    tokenize.limit = limit
    tokenize.inner(["", "a longer text than this"], padding=True)  # as another user of the tokeniser leaves it
    together = tokenize.many(texts)
    assert together == [tokenize(text) for text in texts]
    assert all(len(tokens) <= limit for tokens in together)


@pytest.mark.slow
def test_a_slow_tokeniser_is_asked_one_by_one(tmp_path: Path) -> None:
    from transformers import CanineTokenizer

    tokenize = tokenizer(tmp_path, CanineTokenizer(), limit=12)
    assert not tokenize.fast
    assert tokenize.many(list(SENTENCES)) == [tokenize(text) for text in SENTENCES]


def test_a_tokeniser_that_changes_texts_itself_is_no_plain_one(tokenizers: dict[str, Tokenizer]) -> None:
    plain = tokenizers["wordpiece"].inner

    class Shouting(type(plain)):  # type: ignore[misc]
        def _encode_plus(self, text: str, *args: Any, **options: Any) -> Any:
            return super()._encode_plus(text.upper(), *args, **options)

    assert only_wraps(plain)
    assert not only_wraps(Shouting(tokenizer_object=plain.backend_tokenizer))


def test_threads_may_tokenise_at_the_same_time(tokenizers: dict[str, Tokenizer]) -> None:
    tokenize = tokenizers["wordpiece"]
    tokenize.limit = 12
    expected = [tokenize(text) for text in SENTENCES]

    def work(number: int) -> bool:
        if number % 2:
            return tokenize.many(list(SENTENCES)) == expected
        return [tokenize(text) for text in SENTENCES] == expected

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))
