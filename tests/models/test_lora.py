"""Adapters: a tiny LoRA on a tiny Qwen2-VL, against the weights added by hand; the merge alone, against numpy."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.models import LOADERS
from embark.models.cards.mllm import VLM2VEC
from embark.models.checkpoints import Checkpoint
from embark.models.loading import Loading, build
from embark.models.lora import WEIGHTS, merge
from embark.types import EmbarkError, ModelCard
from tiny import picture, same, saved, vectors
from tiny_mllm import built, spoken

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

ADAPTED = "base_model.model.model.layers.{}.self_attn.{}_proj"  # as transformers 4 had it


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("qwen2_vl", tmp_path_factory.mktemp("base"))


def adapter(folder: Path, names: Sequence[str], pickled: bool = False, **config: Any) -> dict[str, Any]:
    """A LoRA in the folder, and its matrices."""
    from safetensors.torch import save_file

    torch.manual_seed(11)
    wide = {name: 16 if ".v_" in name else 32 for name in names}
    thin = {f"{name}.lora_A.weight": torch.randn(4, 32) * 0.3 for name in names}
    thin |= {f"{name}.lora_B.weight": torch.randn(wide[name], 4) * 0.3 for name in names}
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": "nowhere/base", **config}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    if pickled:
        torch.save(thin, folder / "adapter_model.bin")
    else:
        save_file(thin, folder / "adapter_model.safetensors")
    return thin


def test_adapters_are_merged(base: Path, tmp_path: Path) -> None:
    names = [ADAPTED.format(layer, which) for layer in (0, 1) for which in "qv"]
    thin = adapter(tmp_path, names)
    style = {**VLM2VEC, "base": str(base)}
    model = spoken(tmp_path, style)
    whole = transformers.Qwen2VLForConditionalGeneration.from_pretrained(base)
    for name in names:
        weight = whole.get_submodule(name.replace("base_model.model.model", "model.language_model")).weight
        weight.data += 2 * thin[f"{name}.lora_B.weight"] @ thin[f"{name}.lora_A.weight"]
    merged = saved(tmp_path / "merged", whole)
    for path in base.iterdir():
        if not (merged / path.name).exists():
            shutil.copy(path, merged)
    expected = spoken(merged, VLM2VEC)
    things = ["dog", (picture(1), "a red apple")]
    assert same(vectors(model, things), vectors(expected, things))
    assert not same(vectors(model, things), vectors(spoken(base, VLM2VEC), things))
    assert re.fullmatch(re.escape(f"{base}@") + r"local-[0-9a-f]{16}", model.card.options["base"])


@pytest.mark.parametrize(("config", "scale"), [({}, 8 / 4), ({"use_rslora": True}, 8 / 4**0.5)])
def test_the_merge_is_that_of_numpy(config: dict[str, Any], scale: float, tmp_path: Path) -> None:
    names = [ADAPTED.format(layer, which) for layer in (0, 1) for which in "qv"]
    thin = {name: matrix.double().numpy() for name, matrix in adapter(tmp_path, names, **config).items()}
    layers = [{"q_proj": torch.nn.Linear(32, 32), "v_proj": torch.nn.Linear(32, 16)} for _ in range(2)]
    blocks = [torch.nn.ModuleDict({"self_attn": torch.nn.ModuleDict(layer)}) for layer in layers]
    model = torch.nn.ModuleDict({"model": torch.nn.ModuleDict({"layers": torch.nn.ModuleList(blocks)})})
    expected = {name: weight.detach().double().numpy() for name, weight in model.named_parameters()}
    for name in names:
        weight = f"{name.removeprefix('base_model.model.')}.weight"
        expected[weight] = expected[weight] + scale * thin[f"{name}.lora_B.weight"] @ thin[f"{name}.lora_A.weight"]
    merge(model, Checkpoint(tmp_path, ModelCard("tiny/lora", "main", "mllm", ()), trusted=False))
    for name, weight in model.named_parameters():
        assert np.abs(weight.detach().numpy() - expected[name]).max() < 1e-6, name


def test_adapters_that_do_not_fit_are_refused(base: Path, tmp_path: Path) -> None:
    style = {**VLM2VEC, "base": str(base)}
    adapter(tmp_path, ["base_model.model.model.layers.7.self_attn.q_proj"])
    with pytest.raises(EmbarkError, match=r"adapts .*layers\.7.* which its base model does not have"):
        spoken(tmp_path, style)
    adapter(tmp_path, [ADAPTED.format(0, "q")], use_dora=True)
    with pytest.raises(EmbarkError, match="cannot merge"):
        spoken(tmp_path, style)


def test_what_cannot_be_merged_is_not_left_out_silently(base: Path, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    style = {**VLM2VEC, "base": str(base)}
    thin = adapter(tmp_path, [ADAPTED.format(0, "q")])
    save_file({**thin, "base_model.model.model.embed_tokens.weight": torch.zeros(3, 32)}, tmp_path / WEIGHTS[0])
    with pytest.raises(EmbarkError, match=r"more than low-rank matrices.*embed_tokens"):
        spoken(tmp_path, style)
    adapter(tmp_path, [ADAPTED.format(0, "q")], rank_pattern={"q_proj": 2})
    with pytest.raises(EmbarkError, match="cannot merge"):
        spoken(tmp_path, style)


def test_pickled_adapters_need_consent(base: Path, tmp_path: Path) -> None:
    adapter(tmp_path, [ADAPTED.format(0, "q")], pickled=True)
    style = {**VLM2VEC, "base": str(base)}
    with pytest.raises(EmbarkError, match="--trust local-") as refused:
        spoken(tmp_path, style)
    (revision,) = re.findall(r"--trust (\S+)", str(refused.value))
    card = ModelCard("tiny/mllm", "main", "mllm", (), source=str(tmp_path), options=style)
    assert build(LOADERS["mllm"], card, Loading(device="cpu", trust=revision)).card.dim == 32
