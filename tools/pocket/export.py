"""From the trained torch towers to the file that the numpy runtime reads, and a check that the two agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from batches import bag
from safetensors.torch import save_file
from torch import Tensor, nn
from towers import PocketTowers

from embark.models.pocket import Network


def folded(layer: nn.Sequential) -> tuple[Tensor, Tensor]:
    """(weight, bias) of a convolution with its batch norm worked in."""
    conv, norm = layer
    gain = norm.weight / (norm.running_var + norm.eps).sqrt()
    weight = conv.weight * gain.view(-1, *[1] * (conv.weight.ndim - 1))
    return weight, norm.bias - norm.running_mean * gain


def layers(model: PocketTowers) -> dict[str, tuple[Tensor, Tensor]]:
    """(weight, bias) of each layer under the runtime's name for it."""
    convolutions = {"stem": model.stem}
    for number, block in enumerate(model.blocks):
        parts = {"0": block.shortcut, "1": block.first, "2": block.second}
        convolutions |= {f"block{number}.{name}": part for name, part in parts.items() if part is not None}
    convolutions |= {f"audio{number}": layer for number, layer in enumerate(model.audio)}
    plain = ("squeeze", "image_head", "text_norm", "text_1", "text_2", "audio_head")
    return {name: folded(layer) for name, layer in convolutions.items()} | {
        name: (getattr(model, name).weight, getattr(model, name).bias) for name in plain
    }


def export(model: PocketTowers, config: dict[str, Any], path: Path) -> None:
    """Weights at `path` in half precision, the config beside them."""
    tensors = {"table": model.table.weight}
    for name, (weight, bias) in layers(model).items():
        tensors |= {f"{name}.w": weight, f"{name}.b": bias}
    save_file({name: tensor.detach().half().cpu().contiguous() for name, tensor in tensors.items()}, path)
    path.with_suffix(".json").write_text(json.dumps(config))


@torch.no_grad()
def parity(
    model: PocketTowers, path: Path, images: np.ndarray, ids: Sequence[np.ndarray], mels: np.ndarray
) -> dict[str, float]:
    """Largest difference between the torch towers and the exported file, over bytes, buckets and spectrograms."""
    torch.backends.cudnn.allow_tf32 = False  # compare at full precision on a GPU too
    device, net = model.log_scale.device, Network(path)
    pixels = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float() / 255
    pairs = {
        "images": (model.images(pixels), net.images(list(images))),
        "texts": (model.texts(*bag(ids, device)), net.texts(list(ids))),
        "sounds": (model.sounds(torch.from_numpy(mels).to(device)), net.sounds(list(mels))),
    }
    return {kind: float(np.abs(ours.cpu().numpy() - theirs).max()) for kind, (ours, theirs) in pairs.items()}
