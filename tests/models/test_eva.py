"""EVA-02 towers against the same arithmetic in plain numpy, and against timm's where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embark.models.checkpoints import Checkpoint
from embark.types import Array, EmbarkError, ModelCard
from tiny import eva_weights, same

torch = pytest.importorskip("torch")

HEAD, GRID = 8, 3


@pytest.fixture
def state() -> dict[str, Any]:
    torch.manual_seed(0)
    return eva_weights(grid=GRID)


def images() -> Any:
    return torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("inner", [True, False], ids=["norm inside attention", "none"])
def test_a_tower_computes_as_plain_numpy_does(state: dict[str, Any], inner: bool) -> None:
    from embark.models.eva import Eva, rotation

    if not inner:
        state = {name: tensor for name, tensor in state.items() if "inner_attn_ln" not in name}
        state |= {f"blocks.{at}.attn.k_proj.bias": torch.randn(16) for at in range(2)}
    tower = Eva(state, rotation(HEAD, GRID, 16)).eval()
    assert tower.size == 12
    with torch.inference_mode():
        found = tower(images())
    assert same(found, plain({name: tensor.numpy() for name, tensor in state.items()}, images().numpy()))


def test_places_matter_to_patches_and_not_to_the_first_token() -> None:
    from embark.models.eva import rotate, rotation

    x = torch.ones(1, 1, 1 + GRID * GRID, HEAD)
    out = rotate(x, *rotation(HEAD, GRID, GRID))
    assert same(out[0, 0, :2], x[0, 0, :2])  # the patch at (0, 0) is rotated by nothing
    assert len({tuple(row) for row in out[0, 0, 1:].round(decimals=4).tolist()}) == GRID * GRID
    assert same(out.norm(dim=-1), x.norm(dim=-1))


def test_the_pooling_head_by_hand() -> None:
    from embark.models.eva import Pooling

    torch.manual_seed(2)
    shapes = {"Wq": (16, 16), "Wkv": (32, 16), "out_proj": (16, 16)}
    given = {f"attn.{name}.weight": shape for name, shape in shapes.items()} | {"norm1.weight": (16,)}
    given |= {"mlp.fc11.weight": (24, 16), "mlp.fc12.weight": (24, 16), "mlp.fc2.weight": (16, 24)}
    given |= {name.replace("weight", "bias"): shape[:1] for name, shape in given.items()}
    state = {name: torch.randn(shape) * 0.4 for name, shape in {**given, "attn.latent": (1, 1, 16)}.items()}
    x = torch.randn(2, 5, 16)
    with torch.inference_mode():
        found = Pooling(state, HEAD, 1e-6)(x)
    w = {name: tensor.numpy() for name, tensor in state.items()}
    keys, values = np.split(linear(x.numpy(), w, "attn.Wkv"), 2, axis=-1)
    query = np.broadcast_to(linear(w["attn.latent"], w, "attn.Wq"), (2, 1, 16))
    seen = norm(linear(attention(query, keys, values), w, "attn.out_proj"), w, "norm1")[:, 0]
    gated = linear(seen, w, "mlp.fc11") * silu(linear(seen, w, "mlp.fc12"))
    assert same(found, x.numpy()[:, 0] + linear(gated, w, "mlp.fc2"))


def test_missing_weights_are_an_error(state: dict[str, Any], tmp_path: Path) -> None:
    from embark.models.eva import Eva, rotation
    from embark.models.hf import read_weights

    del state["blocks.1.norm2.bias"]
    with pytest.raises(EmbarkError, match=r"lacks 1 weights of Eva, the first is blocks\.1\.norm2\.bias"):
        Eva(state, rotation(HEAD, GRID, 16))
    (tmp_path / "other.safetensors").touch()
    with pytest.raises(EmbarkError, match=r"no weights 'mine\.pth'"):
        read_weights(Checkpoint(tmp_path, ModelCard("test/eva", "1", "vista", ()), trusted=False), "mine.pth")


def test_a_tower_computes_as_timm_does(torchvision: Any, state: dict[str, Any]) -> None:
    eva = pytest.importorskip("timm.models.eva")
    from embark.models.eva import Eva, rotation

    theirs = eva.Eva(
        img_size=12, patch_size=4, embed_dim=16, depth=2, num_heads=2, mlp_ratio=1.5, qkv_fused=False, swiglu_mlp=True,
        scale_mlp=True, scale_attn_inner=True, use_rot_pos_emb=True, ref_feat_shape=(16, 16), num_classes=0,
        global_pool="token",
    ).eval()  # fmt: skip
    names = {"attn.inner_attn_ln": "attn.norm", "mlp.w1": "mlp.fc1_g", "mlp.w2": "mlp.fc1_x", "mlp.w3": "mlp.fc2"}
    names["mlp.ffn_ln"] = "mlp.norm"
    renamed = {}
    for name, tensor in state.items():
        part = name.split(".", 2)[2].rsplit(".", 1)[0] if name.startswith("blocks") else ""
        renamed[name.replace(part, names.get(part, part)) if part else name] = tensor
    told = theirs.load_state_dict(renamed, strict=False)
    assert not told.unexpected_keys
    assert not [name for name in told.missing_keys if name.startswith("blocks")]
    theirs.norm = torch.nn.Identity()
    with torch.inference_mode():
        assert same(Eva(state, rotation(HEAD, GRID, 16)).eval()(images()), theirs.forward_features(images()))


# ── the same in numpy ────────────────────────────────────────────────────────────────────────────────────────────────


def plain(w: dict[str, Array], pixels: Array) -> Array:
    """Patches by loops, rotation by complex numbers, one head at a time."""
    kernel = w["patch_embed.proj.weight"].reshape(16, -1)
    rows = [
        [pixels[n, :, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4].ravel() @ kernel.T for y in range(3) for x in range(3)]
        for n in range(len(pixels))
    ]
    patches = np.array(rows) + w["patch_embed.proj.bias"]
    x = np.concatenate([np.repeat(w["cls_token"], len(pixels), 0), patches], 1) + w["pos_embed"]
    for at in range(2):
        b = {name.removeprefix(f"blocks.{at}."): each for name, each in w.items() if name.startswith(f"blocks.{at}.")}
        y = norm(x, b, "norm1")
        query, key, value = (linear(y, b, f"attn.{letter}_proj") for letter in "qkv")
        seen = attention(turn(query), turn(key), value)
        if "attn.inner_attn_ln.weight" in b:
            seen = norm(seen, b, "attn.inner_attn_ln")
        x = x + linear(seen, b, "attn.proj")
        y = norm(x, b, "norm2")
        gated = silu(linear(y, b, "mlp.w1")) * linear(y, b, "mlp.w2")
        x = x + linear(norm(gated, b, "mlp.ffn_ln"), b, "mlp.w3")
    return x


def turn(x: Array) -> Array:
    out = x.copy()
    speeds = [10_000 ** -(at / 2) for at in range(2)]  # a quarter of a head's eight numbers
    for place in range(GRID * GRID):
        row, column = (16 * at / GRID for at in divmod(place, GRID))
        angles = np.array([row * speed for speed in speeds] + [column * speed for speed in speeds])
        pairs = x[:, 1 + place].reshape(len(x), -1, 4, 2)
        moved = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)
        out[:, 1 + place] = np.stack([moved.real, moved.imag], -1).reshape(len(x), -1)
    return out


def attention(query: Array, key: Array, value: Array) -> Array:
    parts = []
    for at in range(0, 16, HEAD):
        q, k, v = (each[..., at : at + HEAD] for each in (query, key, value))
        weight = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(HEAD))
        parts.append(weight / weight.sum(-1, keepdims=True) @ v)
    return np.concatenate(parts, -1)


def linear(x: Array, w: dict[str, Array], name: str) -> Array:
    return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", np.float32(0))


def norm(x: Array, w: dict[str, Array], name: str) -> Array:
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))
