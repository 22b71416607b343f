"""Tokens of many texts in one array, and a tokeniser that worker processes can have.

A run has millions of short texts: a list of tokens for each would keep the interpreter busy, while the threads that
drive a device wait for their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, overload

import numpy as np

from embark.types import Array


class Tokens(Sequence[list[int]]):
    """The tokens of texts: all of them in one array, text after text, and the number of each text's."""

    def __init__(self, flat: Array, lengths: Array) -> None:
        self.flat = flat
        self.lengths = lengths

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Tokens:
        """The same of lists."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return cls(np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), lengths)

    @classmethod
    def joined(cls, parts: Iterable[Tokens]) -> Tokens:
        """Those of several, one after the other."""
        parts = list(parts)
        return cls(np.concatenate([part.flat for part in parts]), np.concatenate([part.lengths for part in parts]))

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, row: int) -> list[int]: ...
    @overload
    def __getitem__(self, row: slice) -> Tokens: ...
    def __getitem__(self, row: int | slice) -> list[int] | Tokens:
        rows = range(len(self))[row]
        if isinstance(rows, range) and rows.step != 1:
            return self.take(np.array(rows, np.int64))
        first, last = (rows.start, rows.stop) if isinstance(rows, range) else (rows, rows + 1)
        last = max(first, last)
        begin = int(self.lengths[:first].sum())
        flat = self.flat[begin : begin + int(self.lengths[first:last].sum())]
        return Tokens(flat, self.lengths[first:last]) if isinstance(rows, range) else flat.tolist()

    def __iter__(self) -> Iterator[list[int]]:
        ends = np.cumsum(self.lengths).tolist()
        tokens = self.flat.tolist()
        return (tokens[begin:end] for begin, end in zip([0, *ends], ends, strict=False))

    def take(self, rows: Array) -> Tokens:
        """The tokens of these texts."""
        lengths = self.lengths[rows]
        begins = (np.cumsum(self.lengths) - self.lengths)[rows]
        shifts = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
        return Tokens(self.flat[shifts + np.arange(len(shifts))], lengths)


@dataclass(frozen=True)
class FastTokenizer:
    """A tokeniser of the library tokenizers by itself, as its JSON says: it pickles, and does without transformers."""

    json: str

    def __call__(self, texts: list[str]) -> Tokens:
        """The tokens of each text."""
        return Tokens.of([encoding.ids for encoding in self._inner.encode_batch_fast(texts)])

    @cached_property
    def _inner(self) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_str(self.json)
