"""The pocket model in torch, as it is trained; `embark.models.pocket` runs the same towers in numpy."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embark.models.pocket import BUCKETS, MELS

CONFIG: dict[str, Any] = {
    "dim": 256,
    "buckets": BUCKETS,
    "text_width": 80,
    "text_hidden": 512,
    "stem": 32,
    "squeeze": 48,
    "blocks": [[32, 64, 2], [64, 64, 1], [64, 128, 2], [128, 128, 1], [128, 192, 2]],  # in, out, stride
    "audio": [[MELS, 96, 5, 1], [96, 128, 5, 2], [128, 192, 5, 2], [192, 192, 3, 2]],  # in, out, width, stride
}
CELLS = 16  # the image tower ends in 4x4 cells
DROPOUT = 0.1


class ConvNorm2d(nn.Sequential):
    """A convolution and its batch norm, which export folds into one."""

    def __init__(self, inputs: int, outputs: int, width: int, stride: int) -> None:
        conv = nn.Conv2d(inputs, outputs, width, stride, width // 2, bias=False)
        super().__init__(conv, nn.BatchNorm2d(outputs))


class ConvNorm1d(nn.Sequential):
    """The same over time."""

    def __init__(self, inputs: int, outputs: int, width: int, stride: int) -> None:
        conv = nn.Conv1d(inputs, outputs, width, stride, width // 2, bias=False)
        super().__init__(conv, nn.BatchNorm1d(outputs))


class Block(nn.Module):
    """Two 3x3 convolutions around a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = ConvNorm2d(inputs, outputs, 3, stride)
        self.second = ConvNorm2d(outputs, outputs, 3, 1)
        self.shortcut = ConvNorm2d(inputs, outputs, 1, stride) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(F.relu(self.first(x)))
        return F.relu(y + (self.shortcut(x) if self.shortcut else x))


class PocketTowers(nn.Module):
    """Images, texts and sounds as unit vectors of one space."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        dim, width, hidden = config["dim"], config["text_width"], config["text_hidden"]
        channels = config["blocks"][-1][1]
        self.stem = ConvNorm2d(3, config["stem"], 3, 2)
        self.blocks = nn.ModuleList(Block(*sizes) for sizes in config["blocks"])
        self.squeeze = nn.Conv2d(channels, config["squeeze"], 1)
        self.image_head = nn.Linear(channels + CELLS * config["squeeze"], dim)
        self.table = nn.EmbeddingBag(config["buckets"], width, mode="mean")
        nn.init.normal_(self.table.weight, std=0.1)
        self.text_norm = nn.LayerNorm(width)
        self.text_1, self.text_2 = nn.Linear(width, hidden), nn.Linear(hidden, dim)
        self.audio = nn.ModuleList(ConvNorm1d(*sizes) for sizes in config["audio"])
        self.audio_head = nn.Linear(2 * config["audio"][-1][1], dim)
        self.log_scale = nn.Parameter(torch.tensor(math.log(20.0)))

    def images(self, x: Tensor) -> Tensor:
        """(n, 3, 64, 64) in 0..1."""
        x = F.relu(self.stem(x * 2 - 1))
        for block in self.blocks:
            x = block(x)
        # Flags, clocks and arrows are told apart by layout, so the cells stay beside their mean.
        layout = F.relu(self.squeeze(x)).permute(0, 2, 3, 1).flatten(1)
        x = F.dropout(torch.cat([x.mean((2, 3)), layout], 1), DROPOUT, self.training)
        return _unit(self.image_head(x))

    def texts(self, ids: Tensor, starts: Tensor) -> Tensor:
        """Bags of n-gram buckets, end to end."""
        x = self.text_norm(F.dropout(self.table(ids, starts), DROPOUT, self.training))
        return _unit(self.text_2(F.gelu(self.text_1(x), approximate="tanh")))

    def sounds(self, x: Tensor) -> Tensor:
        """(n, frames, mels) in 0..1."""
        x = x.transpose(1, 2) * 2 - 1
        for layer in self.audio:
            x = F.relu(layer(x))
        return _unit(self.audio_head(torch.cat([x.mean(2), x.amax(2)], 1)))


def _unit(x: Tensor) -> Tensor:
    return F.normalize(x.float(), dim=-1)
