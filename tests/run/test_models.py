"""Which pixels a model has in a run."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from device_pictures import means
from embark.items import as_keys
from embark.models.encoder import CUDA_PIXELS, Encoder, cuda_pixels
from embark.protocol import vector_space
from embark.results import Results
from embark.results.schema import card_content, json_bytes
from embark.run.models import _stored_pixels, load_model
from embark.settings import Settings, load_settings
from embark.store import Store
from embark.types import EmbarkError


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(tmp_path / "home", tmp_path / "results")


def store(settings: Settings, encoder: Encoder) -> None:
    """A vector of the encoder."""
    with Store(settings.store).space(vector_space(encoder.card)).writer() as writer:
        writer.add(as_keys([bytes(32)]), np.ones((1, 3), np.float16))


def test_auto_takes_those_of_the_gpu_for_a_model_without_vectors(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    chosen = _stored_pixels(means(), settings)
    assert chosen.card.pixels == "cuda"
    assert "tiny/means has no stored vectors" in caplog.text
    assert "--pixels pillow" in caplog.text
    caplog.clear()
    store(settings, chosen)
    assert _stored_pixels(means(), settings).card == chosen.card
    assert not caplog.text  # it is no news


def test_auto_keeps_to_the_pixels_of_stored_vectors(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    store(settings, means())
    assert _stored_pixels(means(), settings).card.pixels == "pillow"
    store(settings, cuda_pixels(means()))
    assert _stored_pixels(means(), settings).card.pixels == "pillow"
    assert not caplog.text


def test_auto_is_pillow_elsewhere(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    on_cpu = means()
    on_cpu.card = replace(on_cpu.card, loaded={"device": "cpu"})
    assert _stored_pixels(on_cpu, settings) is on_cpu
    other = means()
    other.towers = {"text": other.towers["text"]}
    assert _stored_pixels(other, settings) is other
    assert "prepared on the CPU" in caplog.text


def test_a_model_of_results_has_their_pixels(settings: Settings) -> None:
    """Here there is no GPU, so that the attempt is an error; it must not become another model in silence."""
    card = load_model("embark/pocket", settings=settings).card
    other = replace(card, name=card.name + CUDA_PIXELS, pixels="cuda")
    folder = Results(settings.results).folder(other.name, other.revision)
    folder.mkdir(parents=True)
    (folder / "model_meta.json").write_bytes(json_bytes(card_content(other)))
    with pytest.raises(EmbarkError, match="embark/pocket cannot have its pixels from a GPU"):
        load_model(other.name, settings=settings)
