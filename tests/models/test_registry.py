"""Every card is a row of the test matrix: well formed, loadable, and as good as its word on one item a modality."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from embark.catalogue import UnknownName
from embark.models import LOADERS, MODELS, get_model
from embark.models.cards import builtin
from embark.protocol import vector_space
from embark.types import MODALITIES, Audio, Content, EmbarkError, Modality, ModelCard
from matrix import every

CARDS = every(MODELS.values())
BUILTIN = pytest.mark.parametrize("card", builtin.CARDS, ids=lambda card: card.name)
SAMPLES = {
    "text": "a red apple",
    "image": Image.new("RGB", (80, 50), "red"),
    "audio": Audio(np.sin(np.arange(16_000, dtype=np.float32)), 16_000),
    "video": [Image.new("RGB", (80, 50), colour) for colour in ("red", "blue")],
}


@CARDS
def test_cards_are_well_formed(card: ModelCard) -> None:
    organisation, model = card.name.split("/")
    assert organisation
    assert model
    assert card.revision
    assert card.loader in LOADERS
    assert card.modalities
    assert set(card.modalities) <= set(MODALITIES)
    assert card.license
    assert card.description


def test_every_card_has_its_own_space() -> None:
    assert len({vector_space(card) for card in MODELS.values()}) == len(MODELS)


@every(LOADERS)
def test_loaders_exist(loader: str) -> None:
    module, function = str(LOADERS[loader].load).split(":")
    assert callable(getattr(import_module(module), function))


@every(MODELS)
def test_cards_have_options_that_their_loader_reads(model: str) -> None:
    card = MODELS[model]
    assert card.options.keys() <= dict(LOADERS[card.loader].options or {}).keys()


@BUILTIN
def test_models_embed_what_their_cards_say(card: ModelCard) -> None:
    model = get_model(card.name)
    version = LOADERS[card.loader].version
    assert model.card == replace(card, options={"loader": version} if version > 1 else {})
    for kind in card.modalities:
        vector = model.embed([model.prepare([Content(kind, SAMPLES[kind])], "")])
        assert np.shape(vector) == (1, card.dim), kind
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6), kind


@BUILTIN
def test_mixed_items_have_one_vector(card: ModelCard) -> None:
    model = get_model(card.name)
    kinds: list[Modality] = ["image", "text"]
    assert np.shape(model.embed([model.prepare([Content(kind, SAMPLES[kind]) for kind in kinds], "")])) == (1, card.dim)


def test_unknown_names_get_suggestions() -> None:
    with pytest.raises(UnknownName, match="Did you mean embark/pocket"):
        get_model("embark/poket")


def test_other_revisions_are_refused() -> None:
    pocket = MODELS["embark/pocket"]
    assert get_model("embark/pocket", pocket.revision).card == pocket
    with pytest.raises(EmbarkError, match=f"no revision 'main'; the one available is '{pocket.revision}'"):
        get_model("embark/pocket", "main")


def test_import_is_light() -> None:
    heavy = {"PIL", "torch", "sklearn", "pyarrow", "soundfile"}
    code = f"import sys, embark.models; print(*{heavy} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""
