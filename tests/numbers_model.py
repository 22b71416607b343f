"""A model that reads numbers and the instruction before them, and tasks of numbers, for tests of verification."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import embark
from embark.models.prompts import Prompted, Prompts, join_texts, split_prompt
from embark.settings import Settings
from embark.types import Array, Content, Item, ModelCard, Rendered, Task

ASK = "Find the number after this one."
DIM = 24
CHOICES = 12


def seeded(text: str) -> Array:
    return np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIM)


class NumbersModel(Prompted):
    """A number is a direction, with noise and a length by the text; the instruction adds one to it."""

    def __init__(self, revision: str = "1", prompted: bool = True, **facts: Any) -> None:
        self.card = ModelCard("test/numbers", revision, "functions", ("text",), DIM, stored="float32", **facts)
        self.prompts = Prompts(template="{instruction}" if prompted else "")
        self.prompted = prompted

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return super().render(item, role, instruction if self.prompted else None)

    def prepare(self, contents: Sequence[Content], mode: str) -> tuple[str, str]:
        prompt, own = split_prompt(contents, mode)
        return prompt, join_texts(own)

    def embed(self, batch: Sequence[tuple[str, str]]) -> Array:
        return np.stack([self._vector(*prepared) for prepared in batch]).astype(np.float32)

    def _vector(self, prompt: str, text: str) -> Array:
        number = int(text.split()[-1]) + (prompt == ASK)
        length = 1 + 3 * (zlib.crc32(f"length of {text}".encode()) % 100) / 100
        return length * (seeded(f"number {number}") + 0.9 * seeded(f"noise of {text}"))


def number_task(name: str, settings: Settings, instructed: bool = False, items: int = 150) -> Task:
    """Which of several numbers is the one that a query names, or, with an instruction, the one after it."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rows = []
    for row in range(items):
        numbers = rng.choice(1_000, CHOICES, replace=False)
        answer = int(numbers[0])
        rng.shuffle(numbers)
        rows.append(
            {
                "question": f"{name} {row} {answer - instructed}",
                "choices": [f"number {number}" for number in numbers],
                "answer": f"number {answer}",
            }
        )
    more = {"instructions": {"query": ASK}} if instructed else {}
    return embark.task(rows, "choice", name=name, settings=settings, **more)
