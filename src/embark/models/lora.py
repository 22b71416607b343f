"""LoRA adapters, merged into the weights of their base model."""

from __future__ import annotations

import re
from typing import Any

from embark.models import checkpoints
from embark.models.checkpoints import Checkpoint
from embark.models.hf import load_tensors
from embark.models.loading import Loading
from embark.types import EmbarkError

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
UNSUPPORTED = ("use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out")  # of adapter_config.json


def adapter_and_base(checkpoint: Checkpoint, loading: Loading) -> tuple[Checkpoint, Checkpoint]:
    """The adapter's checkpoint and that of its base model; the same checkpoint twice if it is no adapter.

    An adapter's card may name the base in its options as "ID@REVISION"; the returned card names the base's exact
    commit.
    """
    if not (checkpoint.folder / CONFIG).is_file():
        return checkpoint, checkpoint
    base = checkpoint.card.options.get("base") or _config(checkpoint)["base_model_name_or_path"]
    return checkpoints.companion_checkpoint(checkpoint.with_options(base=base), "base", loading)


def merge(model: Any, adapter: Checkpoint) -> None:
    """Add the adapter's product of two low-rank matrices to each weight that it names; none if it is no adapter."""
    import torch

    if not (adapter.folder / CONFIG).is_file():
        return
    config = _config(adapter)
    matrices = _matrices(adapter)
    if config.get("peft_type", "LORA") != "LORA" or any(config.get(name) for name in UNSUPPORTED):
        raise EmbarkError(f"{adapter.name} is an adapter that embark cannot merge: it merges plain LoRA only.")
    if others := sorted(name for name in matrices if not re.search(r"\.lora_[AB]\b", name)):
        raise EmbarkError(f"{adapter.name} brings more than low-rank matrices, which embark cannot merge: {others[0]}.")
    rank = torch.tensor(config["r"], dtype=torch.float64).sqrt() if config.get("use_rslora") else config["r"]
    scale = float(config["lora_alpha"] / rank)
    weights = {name.removesuffix(".weight"): weight for name, weight in model.named_parameters()}
    for name in sorted(name for name in matrices if ".lora_A" in name):
        down = matrices[name]
        up = matrices[name.replace(".lora_A", ".lora_B")]
        weight = weights[_weight_name(name.split(".lora_A")[0], weights, adapter)]
        weight.data += (scale * (up.float() @ down.float())).to(weight.device, weight.dtype)


def _weight_name(name: str, weights: dict[str, Any], adapter: Checkpoint) -> str:
    """The base model's name of a weight: that with the longest common ending, as outer modules have been renamed."""
    parts = name.split(".")
    for start in range(len(parts)):
        ending = ".".join(parts[start:])
        matches = [weight for weight in weights if weight == ending or weight.endswith(f".{ending}")]
        if len(matches) == 1:
            return matches[0]
        if matches:
            break
    raise EmbarkError(f"{adapter.name} adapts {name}, which its base model does not have (or has more than once).")


def _config(checkpoint: Checkpoint) -> dict[str, Any]:
    return checkpoints.read_json(checkpoint.folder / CONFIG)


def _matrices(adapter: Checkpoint) -> dict[str, Any]:
    safe, pickled = (adapter.folder / name for name in WEIGHTS)
    if safe.is_file():
        return load_tensors(safe)
    adapter.require_trust(checkpoints.PICKLED)
    return load_tensors(pickled)
