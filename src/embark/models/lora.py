"""Low-rank adapters, merged into the weights of the model that they were trained on."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from embark.models import hub
from embark.models.hf import tensors
from embark.models.hub import Checkpoint
from embark.models.loading import Loading
from embark.types import EmbarkError

CONFIG, WEIGHTS = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")


def adapted(found: Checkpoint, loading: Loading) -> tuple[Checkpoint, Checkpoint]:
    """The checkpoint and its base model: itself, unless it is an adapter.

    An adapter's card names the base in its options as "ID@REVISION"; the commit that was found stands there after.
    """
    if not (found.folder / CONFIG).is_file():
        return found, found
    named = found.card.options.get("base") or _config(found)["base_model_name_or_path"]
    source, _, revision = str(named).partition("@")
    base = hub.checkpoint(replace(found.card, source=source, revision=revision or "main"), loading)
    options = {**found.card.options, "base": f"{source}@{base.card.revision}"}
    return replace(found, card=replace(found.card, options=options)), base


def merge(model: Any, found: Checkpoint) -> None:
    """Add the adapter's product of two thin matrices to each weight that it names."""
    import torch

    config, thin = _config(found), _weights(found)
    odd = [name for name in ("use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out") if config.get(name)]
    if config.get("peft_type", "LORA") != "LORA" or odd:
        raise EmbarkError(f"{found.card.name} is an adapter of a kind that embark cannot merge; plain LoRA it can.")
    if more := sorted(name for name in thin if not re.search(r"\.lora_[AB]\b", name)):
        raise EmbarkError(
            f"{found.card.name} brings more than low-rank matrices, which embark cannot merge: {more[0]}."
        )
    root = torch.tensor(config["r"], dtype=torch.float64).sqrt() if config.get("use_rslora") else config["r"]
    scale = float(config["lora_alpha"] / root)
    weights = {name.removesuffix(".weight"): weight for name, weight in model.named_parameters()}
    for name in sorted(thin):
        if ".lora_A" not in name:
            continue
        down, up = thin[name], thin[name.replace(".lora_A", ".lora_B")]
        weight = weights[_owner(name.split(".lora_A")[0], weights, found)]
        weight.data += (scale * (up.float() @ down.float())).to(weight.device, weight.dtype)


def _owner(name: str, weights: dict[str, Any], found: Checkpoint) -> str:
    """The weight of that name; libraries have renamed outer modules since, so the longest ending that fits counts."""
    parts = name.split(".")
    for start in range(len(parts)):
        ending = ".".join(parts[start:])
        fitting = [each for each in weights if each == ending or each.endswith(f".{ending}")]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            break
    raise EmbarkError(f"{found.card.name} adapts {name}, which its base model does not have (or has more than once).")


def _config(found: Checkpoint) -> dict[str, Any]:
    return hub.described(found.folder / CONFIG)


def _weights(found: Checkpoint) -> dict[str, Any]:
    safe, pickled = (found.folder / name for name in WEIGHTS)
    if safe.is_file():
        return tensors(safe)
    found.consent(hub.PICKLED)
    return tensors(pickled)
