"""Jina-CLIP's way of loading, on a tiny repository with modelling code of its own: nothing runs without consent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from embark.models import Loading, get_model
from embark.models.checkpoints import folder_revision
from embark.models.encoder import unit
from embark.types import EmbarkError
from tiny import TEXTS, film, one_by_one, picture, same, vectors

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

PICTURES = [picture(1), picture(2, (31, 50)), picture(3, (64, 64), "RGBA")]
CODE = """
import numpy as np
import torch
from transformers import PretrainedConfig, PreTrainedModel


class Config(PretrainedConfig):
    model_type = "jina_clip"


class Model(PreTrainedModel):
    config_class = Config

    def __init__(self, config):
        super().__init__(config)
        self.text, self.image = torch.nn.Linear(256, 6), torch.nn.Linear(27, 6)
        self.post_init()

    @torch.inference_mode()
    def encode_text(self, texts, batch_size=32, show_progress_bar=None, convert_to_tensor=False):
        counts = np.stack([np.bincount(list(text.encode()), minlength=256) for text in texts])
        return torch.nn.functional.normalize(self.text(torch.tensor(counts, dtype=self.dtype)), dim=1)

    @torch.inference_mode()
    def encode_image(self, images, batch_size=32, show_progress_bar=None, convert_to_tensor=False):
        assert all(image.mode == "RGB" for image in images)
        pixels = np.stack([np.asarray(image.resize((3, 3))).ravel() / 255 for image in images])
        return torch.nn.functional.normalize(self.image(torch.tensor(pixels, dtype=self.dtype)), dim=1)
"""


@pytest.fixture
def jina(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository; transformers copies the code that it runs to a folder of the test's own."""
    from safetensors.torch import save_file
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / "jina"
    folder.mkdir()
    (folder / "modeling_clip.py").write_text(CODE)
    where = {"AutoConfig": "modeling_clip.Config", "AutoModel": "modeling_clip.Model"}
    (folder / "config.json").write_text(json.dumps({"model_type": "jina_clip", "auto_map": where}))
    made = torch.Generator().manual_seed(0)
    shapes = {"text.weight": (6, 256), "text.bias": (6,), "image.weight": (6, 27), "image.bias": (6,)}
    state = {name: torch.randn(shape, generator=made) for name, shape in shapes.items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    return folder


def test_own_code_runs_after_consent_only(jina: Path) -> None:
    with pytest.raises(EmbarkError, match=f"its modelling code would run.*--trust {folder_revision(jina)}"):
        get_model(str(jina), loading=Loading(device="cpu"))
    with pytest.raises(EmbarkError, match="modelling code"):
        get_model(str(jina), loading=Loading(device="cpu", trust="main"))
    assert not (jina.parent / "modules").exists()


def test_texts_and_images_as_the_code_has_them(jina: Path) -> None:
    from safetensors.torch import load_file

    model = get_model(str(jina), loading=Loading(device="cpu", trust=folder_revision(jina)))
    state = load_file(jina / "model.safetensors")
    counts = np.stack([np.bincount(list(text.encode()), minlength=256) for text in TEXTS])
    assert same(vectors(model, TEXTS), unit(counts @ state["text.weight"].numpy().T + state["text.bias"].numpy()))
    things = [*TEXTS, *PICTURES, film(1), ("dog", PICTURES[0])]
    whole = vectors(model, things)
    assert same(one_by_one(model, things), whole)
    assert same(whole[-1], whole[0] + whole[3])
    assert same(whole[6], unit(vectors(model, film(1)).sum(0)))
    assert (model.card.dim, model.card.fusion, model.card.revision) == (6, "sum", folder_revision(jina))


def test_missing_weights_are_an_error(jina: Path) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(jina / "model.safetensors")
    del state["image.bias"]
    save_file(state, jina / "model.safetensors", {"format": "pt"})
    with pytest.raises(EmbarkError, match=r"lacks 1 weights of its own code, the first is image\.bias"):
        get_model(str(jina), loading=Loading(device="cpu", trust=folder_revision(jina)))


def test_code_elsewhere_needs_a_revision(jina: Path) -> None:
    config = json.loads((jina / "config.json").read_text())
    config["auto_map"] = {kind: f"jinaai/jina-clip-implementation--{name}" for kind, name in config["auto_map"].items()}
    (jina / "config.json").write_text(json.dumps(config))
    with pytest.raises(EmbarkError, match="code from jinaai/jina-clip-implementation and no revision"):
        get_model(str(jina), loading=Loading(device="cpu", trust=folder_revision(jina)))
