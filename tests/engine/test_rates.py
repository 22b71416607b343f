"""Estimates of seconds for an item: they agree with what was measured, and grow with models and items."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embark.catalogue import UnknownName
from embark.engine import rates
from embark.engine.rates import FASTEST, GPUS, MEASURED, TYPICAL, Measured

H200 = GPUS["h200"]


@pytest.mark.parametrize("measured", MEASURED, ids=lambda measured: measured.model)
def test_an_estimate_is_near_what_was_measured(measured: Measured) -> None:
    tower = replace(TYPICAL, tokens={"text": measured.tokens})
    estimate = 1 / rates.seconds_per_item(("text",), measured.parameters, GPUS[measured.gpu], tower)
    assert 0.75 < estimate / measured.rate < 1.35


def test_a_second_by_hand() -> None:
    """A picture of 256 tokens through 8 B parameters: 4.1 TFLOP, at 295 TFLOP/s."""
    operations = 2 * 8e9 * 256
    seconds = rates.seconds_per_item(("image",), 8e9, H200)
    assert seconds == pytest.approx(operations / (TYPICAL.utilization * 989e12))
    assert rates.seconds_per_item(("image", "text"), 8e9, H200) == pytest.approx(seconds * (256 + 32) / 256)
    assert rates.seconds_per_item(("video",), 8e9, H200) == pytest.approx(8 * seconds)
    assert rates.seconds_per_item(("image",), 8e9, GPUS["a100"]) == pytest.approx(seconds * 989 / 312)


def test_small_models_wait_for_pictures_and_not_for_texts() -> None:
    assert rates.seconds_per_item(("image",), 1e6, H200) == 1 / rates.PREPARED
    assert rates.seconds_per_item(("video",), 1e6, H200) == rates.FRAMES / rates.PREPARED
    assert rates.seconds_per_item(("image",), 1e6, H200, FASTEST) == pytest.approx(1 / rates.DECODED, rel=0.01)
    assert rates.seconds_per_item(("text",), 1e6, H200) < 1e-6


def test_a_whole_pipeline_that_was_measured_is_near_its_estimate() -> None:
    """docs/performance.md: ViT-B/32 embeds 10,300 JPEGs a second, decoded on the GPU."""
    estimate = 1 / (1 / MEASURED[0].rate + 1 / rates.DECODED)
    assert 0.9 < 10_300 / estimate < 1.1


@pytest.mark.parametrize(
    ("parameters", "gpu", "gpus"),
    [(1e8, "a100", 1), (8e9, "a100", 1), (32e9, "h100", 1), (33e9, "h100", 2), (56e9, "h200", 1), (72e9, "h200", 2),
     (72e9, "h100", 3)],
)  # fmt: skip
def test_gpus_that_hold_a_copy(parameters: float, gpu: str, gpus: int) -> None:
    assert rates.gpus_per_copy(parameters, GPUS[gpu]) == gpus


def test_an_unknown_gpu_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"no kind of GPU named 'b200'.*Known are a100, h100, h200"):
        GPUS["b200"]
