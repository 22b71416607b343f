"""Tokens of many texts in one array: the lists that they stand for."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from embark.models.device import pad
from embark.models.encoder import TextParts
from embark.models.tokens import FastTokenizer, Tokens

ROWS = st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=6), max_size=12)


@given(ROWS, st.data())
def test_tokens_are_their_lists(rows: list[list[int]], data: st.DataObject) -> None:
    tokens = Tokens.of(rows)
    assert list(tokens) == rows
    assert [tokens[row] for row in range(-len(rows), len(rows))] == 2 * rows
    begin, end = (data.draw(st.integers(-3, len(rows) + 3)) for _ in range(2))
    assert list(tokens[begin:end]) == rows[begin:end]
    places = data.draw(st.lists(st.integers(0, len(rows) - 1))) if rows else []
    assert list(tokens.take(np.array(places, np.int64))) == [rows[place] for place in places]
    assert list(Tokens.joined([tokens[:begin], tokens[begin:]])) == rows
    assert list(TextParts(tokens)) == [[("text", row)] for row in rows]


@given(ROWS.filter(any))
def test_padding_is_the_same_for_both(rows: list[list[int]]) -> None:
    for side in ("left", "right"):
        for of_lists, of_tokens in zip(pad(rows, 7, side, "cpu"), pad(Tokens.of(rows), 7, side, "cpu"), strict=True):
            assert np.array_equal(of_lists, of_tokens)


def test_a_tokenizer_that_was_sent_makes_the_same_tokens() -> None:
    words = {"<s>": 0, "</s>": 1, "a": 2, "dog": 3, "runs": 4, "?": 5}
    inner = Tokenizer(models.WordLevel(words, unk_token="?"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    inner.enable_truncation(4)
    sent = pickle.loads(pickle.dumps(FastTokenizer(inner.to_str())))
    assert list(sent(["a dog", "", "a dog runs"])) == [[0, 2, 3, 1], [0, 1], [0, 2, 3, 1]]
