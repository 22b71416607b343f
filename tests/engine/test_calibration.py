"""Calibration: the real pipeline over samples, for a bounded time, and no trace of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark import items
from embark.engine.calibration import calibrate
from embark.engine.local import embed
from embark.protocol import vector_space
from embark.store import Store
from embark.types import Content
from lengths import Lengths, needs, number, picture, text


class Slow(Lengths):
    """An encoder that sleeps for each item: texts are cheap, pictures are dear; the first batch pays for loading."""

    def __init__(self, of_text: float = 0.002, of_picture: float = 0.01, first: float = 0.0) -> None:
        super().__init__()
        self.of_text = of_text
        self.of_picture = of_picture
        self.first = first
        self.embedded: list[Any] = []

    def embed(self, batch: Sequence[Any]) -> Any:
        time.sleep(self.first + sum(self.of_text if isinstance(value, str) else self.of_picture for value in batch))
        self.first = 0.0
        self.embedded += batch
        return super().embed(batch)


def test_each_kind_has_a_rate_near_that_of_a_run(tmp_path: Path) -> None:
    wanted = needs(Lengths(), [text(n) for n in range(1, 201)] + [picture((n, 8, 7)) for n in range(30)])

    def ratio(attempt: int) -> float:
        rates = calibrate(Slow(), wanted, seconds=1.5, folder=tmp_path)
        assert rates["image",] > 2 * rates["text",]
        start = time.perf_counter()
        with Store(tmp_path / str(attempt)).space(vector_space(Lengths().card)).writer() as writer:
            embed(Slow(), wanted, writer)
        return (200 * rates["text",] + 30 * rates["image",]) / (time.perf_counter() - start)

    assert any(0.5 < value < 2 for value in map(ratio, range(3)))  # other work may slow down one half of an attempt


def test_loading_does_not_count(tmp_path: Path) -> None:
    kinds = list[int]()
    wanted = needs(Lengths(), [text(n) for n in range(1, 5)])
    rates = calibrate(Slow(first=1.0), wanted, seconds=2.0, folder=tmp_path, advance=kinds.append)
    assert rates["text",] < 0.25
    assert kinds == [1]


def test_the_time_is_bounded_and_nothing_is_left_behind(tmp_path: Path) -> None:
    encoder = Slow(of_text=0.002, of_picture=0.002)
    wanted = needs(encoder, [text(n) for n in range(1, 5001)] + [picture((n % 256, n // 256, 7)) for n in range(5000)])
    start = time.perf_counter()
    rates = calibrate(encoder, wanted, seconds=1.0, folder=tmp_path)
    assert time.perf_counter() - start < 5.0  # 20 s for all of them
    assert min(rates.values()) >= 0.002
    assert 20 < len(encoder.embedded) < 1000
    assert list(tmp_path.iterdir()) == []


def test_a_kind_whose_first_item_takes_all_the_time_is_measured_by_it(tmp_path: Path) -> None:
    encoder = Slow(of_text=0.3)
    rates = calibrate(encoder, needs(encoder, [text(n) for n in range(1, 9)]), seconds=0.1, folder=tmp_path)
    assert len(encoder.embedded) == 1
    assert 0.3 <= rates["text",] < 3


def test_samples_hold_short_and_long_texts_alike(tmp_path: Path) -> None:
    encoder = Slow(of_text=0.0)
    wanted = needs(encoder, [items.text(f"{n:04} {'x' * n}") for n in range(4096)])
    calibrate(encoder, wanted, seconds=0.5, folder=tmp_path)
    numbers = [number(value) for value in encoder.embedded[5:]]  # after the first, and four
    assert len(numbers) >= 16
    assert abs(np.mean(numbers) - 2048) < 200


def test_samples_are_prepared_by_workers(tmp_path: Path) -> None:
    class Watched(Lengths):
        threads: set[str]

        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            self.threads.add(threading.current_thread().name)
            return super().prepare(contents, mode)

    encoder = Watched()
    encoder.threads = set()
    calibrate(encoder, needs(encoder, [picture((n, 1, 2)) for n in range(64)]), seconds=1.0, workers=2, folder=tmp_path)
    assert threading.current_thread().name not in encoder.threads


@pytest.mark.parametrize("count", [1, 2])
def test_unreadable_pictures_are_passed_over(count: int, tmp_path: Path) -> None:
    wanted = needs(Lengths(), [items.media("image", b"no picture"), picture((1, 2, 3))][:count])
    assert set(calibrate(Lengths(), wanted, seconds=0.2, folder=tmp_path)) == {("image",)}


def test_no_items_have_no_rates() -> None:
    assert calibrate(Lengths(), [], seconds=0.1) == {}
