"""EVA-02 image towers as torch modules, for VISTA and Nomic, with the weight names of EVA-CLIP's checkpoints.

This module imports torch: loaders import it inside their functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

from embark.types import EmbarkError

State = Mapping[str, Any]  # name → tensor


def under(prefix: str, state: State) -> dict[str, Any]:
    """The tensors whose names begin with the prefix, by the rest of their names."""
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def load_state(module: Any, state: State) -> Any:
    """The module with these weights; a missing weight is an error, never a random number."""
    if missing := module.load_state_dict(state, strict=False).missing_keys:
        raise EmbarkError(
            f"The checkpoint lacks {len(missing)} weights of {type(module).__name__}, the first is {missing[0]}."
        )
    return module


def rotation(width: int, grid: int, trained: int) -> tuple[Any, Any]:
    """(cosines, sines) of the rotary positions of all patches: half of a head by the row, half by the column.

    `width` is that of a head. Positions are those of the grid of the first training, stretched over this grid.
    """
    frequency = 10_000 ** -(torch.arange(width // 4) / (width // 4))
    angle = (torch.arange(grid) / grid * trained)[:, None] * frequency
    rows = angle[:, None].expand(grid, grid, -1)
    columns = angle[None].expand(grid, grid, -1)
    angles = torch.cat([rows, columns], dim=-1).flatten(0, 1).repeat_interleave(2, dim=-1)
    return angles.cos(), angles.sin()


class Eva(nn.Module):  # type: ignore[misc]
    """Pixels → states of [CLS] and all patches after the last block, without a final norm."""

    def __init__(self, state: State, rotation: tuple[Any, Any], eps: float = 1e-6, inner_eps: float = 1e-6) -> None:
        super().__init__()
        width, _, _, patch = state["patch_embed.proj.weight"].shape
        depth = len({name.split(".")[1] for name in state if name.startswith("blocks.")})
        self.size = patch * isqrt(state["pos_embed"].shape[1] - 1)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, patch)})
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(state["pos_embed"].shape))
        self.blocks = nn.ModuleList(Block(width, state, eps, inner_eps) for _ in range(depth))
        self.register_buffer("cosines", rotation[0], persistent=False)
        self.register_buffer("sines", rotation[1], persistent=False)
        load_state(self, state)

    def forward(self, pixels: Any) -> Any:
        """(n, 3, size, size) → (n, 1 + patches, width)."""
        patches = self.patch_embed["proj"](pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x, self.cosines.to(x.dtype), self.sines.to(x.dtype))
        return x


class Block(nn.Module):  # type: ignore[misc]
    """Attention with rotary positions, then a gated layer; norms before both, and inside if the weights have them."""

    def __init__(self, width: int, state: State, eps: float, inner_eps: float) -> None:
        super().__init__()
        hidden = state["blocks.0.mlp.w1.weight"].shape[0]
        self.norm1 = nn.LayerNorm(width, eps)
        self.norm2 = nn.LayerNorm(width, eps)
        self.attn = nn.ModuleDict({name: nn.Linear(width, width) for name in ("q_proj", "v_proj", "proj")})
        self.attn["k_proj"] = nn.Linear(width, width, bias="blocks.0.attn.k_proj.bias" in state)
        has_inner_norm = "blocks.0.attn.inner_attn_ln.weight" in state
        self.attn["inner_attn_ln"] = nn.LayerNorm(width, inner_eps) if has_inner_norm else nn.Identity()
        self.mlp = nn.ModuleDict({name: nn.Linear(width, hidden) for name in ("w1", "w2")})
        self.mlp.update({"ffn_ln": nn.LayerNorm(hidden, inner_eps), "w3": nn.Linear(hidden, width)})

    def forward(self, x: Any, cosines: Any, sines: Any) -> Any:
        """The residual stream through both halves."""
        x = x + self._attend(self.norm1(x), cosines, sines)
        y = self.norm2(x)
        mlp = self.mlp
        return x + mlp["w3"](mlp["ffn_ln"](silu(mlp["w1"](y)) * mlp["w2"](y)))

    def _attend(self, x: Any, cosines: Any, sines: Any) -> Any:
        projections = (self.attn[name](x) for name in ("q_proj", "k_proj", "v_proj"))
        query, key, value = (split_heads(projection, cosines.shape[1]) for projection in projections)
        attended = scaled_dot_product_attention(rotate(query, cosines, sines), rotate(key, cosines, sines), value)
        return self.attn["proj"](self.attn["inner_attn_ln"](attended.transpose(1, 2).flatten(2)))


class Pooling(nn.Module):  # type: ignore[misc]
    """Nomic's head: a learned query attends to all states; the result is added to [CLS] through a gated layer."""

    def __init__(self, state: State, head: int, eps: float) -> None:
        super().__init__()
        hidden, width = state["mlp.fc11.weight"].shape
        self.head = head
        self.attn = nn.ModuleDict({"Wq": nn.Linear(width, width), "Wkv": nn.Linear(width, 2 * width)})
        self.attn["out_proj"] = nn.Linear(width, width)
        self.attn.register_parameter("latent", nn.Parameter(torch.zeros(1, 1, width)))
        self.norm1 = nn.LayerNorm(width, eps)
        self.mlp = nn.ModuleDict({"fc11": nn.Linear(width, hidden), "fc12": nn.Linear(width, hidden)})
        self.mlp["fc2"] = nn.Linear(hidden, width)
        load_state(self, state)

    def forward(self, x: Any) -> Any:
        """(n, tokens, width) → (n, width)."""
        query = split_heads(self.attn["Wq"](self.attn.latent).expand(len(x), -1, -1), self.head)
        key, value = (split_heads(half, self.head) for half in self.attn["Wkv"](x).chunk(2, dim=-1))
        attended = self.attn["out_proj"](scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))
        y = self.norm1(attended[:, 0])
        return x[:, 0] + self.mlp["fc2"](self.mlp["fc11"](y) * silu(self.mlp["fc12"](y)))


def split_heads(x: Any, width: int) -> Any:
    """(n, tokens, heads · width) → (n, heads, tokens, width)."""
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


def rotate(x: Any, cosines: Any, sines: Any) -> Any:
    """Each patch's pairs of numbers rotated by its angles; [CLS] has no position and stays."""
    patches = x[:, :, 1:]
    orthogonal = torch.stack([-patches[..., 1::2], patches[..., ::2]], dim=-1).flatten(-2)
    return torch.cat([x[:, :, :1], patches * cosines + orthogonal * sines], dim=2)
