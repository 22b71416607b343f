"""Passes as graphs: the same numbers, whatever is recorded. Without a GPU nothing is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from embark.models.compilation import Compilation, is_compiled
from embark.models.cuda_graphs import SEEN, Graphed
from embark.models.device import own_stream

DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"


def layers() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).to(DEVICE).eval()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_graph_computes_what_the_function_does(threads: int) -> None:
    model = layers()
    calls = []

    def forward(pixels: Any) -> Any:
        calls.append(len(pixels))
        return model(pixels)

    graphed = Graphed(forward)

    def passes(seed: int) -> int:
        generator = torch.Generator().manual_seed(seed)
        with own_stream(DEVICE), torch.inference_mode():
            for number in range(5 * SEEN):
                batch = torch.randn((5 if number % 4 else 3, 8), generator=generator).to(DEVICE)
                torch.testing.assert_close(graphed(pixels=batch), model(batch), rtol=0, atol=0)
        return 5 * SEEN

    with ThreadPoolExecutor(threads) as pool:
        count = sum(pool.map(passes, range(threads)))
    assert len(calls) < count if DEVICE.startswith("cuda") else len(calls) == count


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, when its compiler is imported
def test_what_is_compiled_runs_as_it_is() -> None:
    model = layers()
    compilation = Compilation([model[0]])
    assert not is_compiled(model)
    compilation.switch(True)
    assert is_compiled(model)
    compilation.switch(False)
    assert not is_compiled(model)


def test_a_pass_that_waits_for_the_device_is_not_recorded() -> None:
    def forward(pixels: Any) -> Any:
        return pixels * float(pixels.sum().item())

    graphed = Graphed(forward)
    with own_stream(DEVICE), torch.inference_mode():
        for number in range(2 * SEEN):
            batch = torch.full((2, 2), float(number), device=DEVICE)
            torch.testing.assert_close(graphed(pixels=batch), batch * 4 * number, rtol=0, atol=0)
