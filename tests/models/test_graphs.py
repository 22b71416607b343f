"""Passes as CUDA graphs: when they are made, that they change no number, and when there are none.

A stand-in records here, as there is no GPU; `benchmarks/pipeline.py` uses the true ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from embark.models import graphs
from embark.models.device import free_device_memory
from embark.models.graphs import WORTH_IT, Graphs

torch = pytest.importorskip("torch")


class OnGpu(torch.Tensor):  # type: ignore[misc]
    """A tensor that says it is on a GPU."""

    is_cuda = True


class Recorded:
    """Stands in for the recorder: what it recorded is called again, and changed by `after`."""

    def __init__(self, after: Callable[[Any], Any] = lambda out: out, error: Exception | None = None) -> None:
        self.shapes: list[tuple[int, ...]] = []  # that were recorded
        self.runs = 0
        self._after = after
        self._error = error

    def record(self, function: Callable[[Any], Any], tensor: Any) -> Callable[[Any], Any]:
        self.shapes.append(tuple(tensor.shape))
        if self._error:
            raise self._error

        def run(tensor: Any) -> Any:
            self.runs += 1
            return self._after(function(tensor))

        return run


def batch(rows: int) -> Any:
    return torch.arange(3.0 * rows).reshape(rows, 3).as_subclass(OnGpu)


@pytest.fixture
def passes() -> tuple[Graphs, Any]:
    """The passes of a model, with graphs, and the model."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2)).requires_grad_(False)
    return Graphs(lambda tensor: model(tensor.as_subclass(torch.Tensor)), model), model


def use(monkeypatch: pytest.MonkeyPatch, recorder: Recorded) -> Recorded:
    monkeypatch.setattr(graphs, "Recorder", lambda: recorder)
    return recorder


def test_shapes_that_come_often_get_a_graph(passes: tuple[Graphs, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    by_graphs, model = passes
    recorder = use(monkeypatch, Recorded())
    rows = WORTH_IT // 4
    expected = model(batch(rows).as_subclass(torch.Tensor))
    for number in range(8):
        assert torch.equal(by_graphs(batch(rows)), expected)
        by_graphs(batch(rows + 1 + number))  # the last batch of a wave: each has a size of its own
        assert recorder.shapes == ([(rows, 3)] if number >= 3 else [])
    assert recorder.runs == 1 + 4  # once to compare


def test_there_are_a_few_graphs_at_most(passes: tuple[Graphs, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    by_graphs, _ = passes
    recorder = use(monkeypatch, Recorded())
    for rows in range(WORTH_IT, WORTH_IT + 20):
        by_graphs(batch(rows))
    assert len(recorder.shapes) == graphs.MOST_GRAPHS


@pytest.mark.parametrize(
    ("recorder", "reason"),
    [
        (Recorded(after=lambda out: out + 1e-6), "its result would differ"),
        (Recorded(error=RuntimeError("CUDA error: operation not permitted\nCompile with…")), "operation not permitted"),
        (Recorded(error=MemoryError()), "MemoryError"),
    ],
)
def test_a_graph_that_does_not_serve_is_not_used(
    passes: tuple[Graphs, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    recorder: Recorded,
    reason: str,
) -> None:
    by_graphs, model = passes
    use(monkeypatch, recorder)
    caplog.set_level(logging.INFO, "embark")
    for _ in range(3):
        out = by_graphs(batch(WORTH_IT))
    assert torch.equal(out, model(batch(WORTH_IT).as_subclass(torch.Tensor)))
    assert len(recorder.shapes) == 1  # nobody tries again
    assert reason in caplog.text
    assert "Compile with" not in caplog.text


def test_compiled_modules_and_other_devices_have_none(
    passes: tuple[Graphs, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_graphs, model = passes
    recorder = use(monkeypatch, Recorded())
    by_graphs(batch(WORTH_IT).as_subclass(torch.Tensor))
    assert not recorder.shapes
    by_graphs(batch(WORTH_IT))
    assert recorder.runs == 1
    model[0]._compiled_call_impl = model[0]._call_impl  # as a trial in the middle of a run does it
    by_graphs(batch(WORTH_IT))
    assert recorder.runs == 1
    model[0]._compiled_call_impl = None
    by_graphs(batch(WORTH_IT))
    assert recorder.runs == 2


def test_their_memory_is_let_go_where_it_is_short(passes: tuple[Graphs, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    by_graphs, _ = passes
    recorder = use(monkeypatch, Recorded())
    by_graphs(batch(WORTH_IT))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    free_device_memory()
    for _ in range(3):
        by_graphs(batch(WORTH_IT))
    assert len(recorder.shapes) == 1
    assert recorder.runs == 1
    assert not by_graphs._graphs


def test_several_threads_share_one_graph(passes: tuple[Graphs, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    by_graphs, model = passes
    recorder = use(monkeypatch, Recorded())
    inputs = [batch(WORTH_IT // 2) + number for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(by_graphs, inputs))
    assert recorder.shapes == [(WORTH_IT // 2, 3)]
    for tensor, out in zip(inputs, found, strict=True):
        assert torch.equal(out, model(tensor.as_subclass(torch.Tensor)))
