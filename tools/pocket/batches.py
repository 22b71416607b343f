"""What the towers train on: train.npz in memory, batches drawn from it, and distortions that bridge drawing styles."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rows import LANGUAGES, Row, held_out
from torch import Tensor
from torch.nn import functional as F

from embark.models.pocket import FRAMES, SIDE, text_ids

LEVELS = 15  # log-mels are stored as 0..15
Bag = tuple[Tensor, Tensor]  # n-gram buckets of many texts end to end, and where each text starts


class Batch(NamedTuple):
    """Distinct emoji seen, named in English, named in any language, and heard where a clip exists."""

    images: Tensor
    english: Bag
    foreign: Bag
    sounds: Tensor
    heard: Tensor  # positions in the batch that `sounds` belong to


class TrainingData:
    """train.npz on the device; CC-BY-SA drawings stay out unless `share_alike`."""

    def __init__(self, path: Path, device: str, share_alike: bool = False, seed: int = 0) -> None:
        raw = np.load(path)
        meta = json.loads(raw["meta"].tobytes())
        self.device = device
        self.rows = [Row(**row) for row in meta["rows"]]
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)

        allowed = np.array([share_alike or "SA" not in license for _, license in meta["styles"]])[raw["icon_style"]]
        icons = _pixels(raw["icon_index"][allowed], raw["icon_palette"][allowed])
        self.icons, self.icons_of = torch.from_numpy(icons).to(device), self._by_row(raw["icon_row"][allowed])
        noto = _pixels(raw["noto_index"], raw["noto_palette"]) / np.float32(255)
        on_white = noto[..., :3] * noto[..., 3:] + 1 - noto[..., 3:]
        self.noto = torch.from_numpy(on_white).permute(0, 3, 1, 2)

        self.clips = torch.from_numpy(_clips(raw["mel"], raw["mel_frames"])).to(device)
        self.clip_row = raw["mel_row"]
        self.clip_held = np.array([held for _, _, held in meta["voices"]])[raw["mel_voice"]]
        self.clips_of = self._by_row(np.where(self.clip_held, -1, self.clip_row))

        self.languages = [[x for x in LANGUAGES if x in r.names and not held_out(r.base, x)] for r in self.rows]
        self.families: dict[str, list[int]] = {}
        for index, row in enumerate(self.rows):
            self.families.setdefault(row.base, []).append(index)
        self.drawn = np.array([index for index, icons in enumerate(self.icons_of) if icons])
        self.siblings = [[i for i in f if self.icons_of[i]] for f in self.families.values() if len(f) > 1]

    def _by_row(self, owners: np.ndarray) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.rows]
        for position, owner in enumerate(owners):
            if owner >= 0:
                found[owner].append(position)
        return found

    def batch(self, size: int) -> Batch:
        """Three quarters random emoji, one quarter whole families: gender, tone and hair forms are hard negatives."""
        families = self.random.sample(self.siblings, min(len(self.siblings), size // 12))
        rows = [index for family in families for index in family][: size // 4]
        rest = np.setdiff1d(self.drawn, rows)
        rows += self.numbers.choice(rest, min(len(rest), size - len(rows)), replace=False).tolist()
        heard = [position for position, row in enumerate(rows) if self.clips_of[row]]
        clips = self.clips[[self.random.choice(self.clips_of[rows[position]]) for position in heard]]
        icons = self.icons[[self.random.choice(self.icons_of[row]) for row in rows]]
        return Batch(
            distort_images(icons).contiguous(memory_format=torch.channels_last),
            bag([self._wording(row, english=True) for row in rows], self.device),
            bag([self._wording(row, english=False) for row in rows], self.device),
            distort_sounds(clips.float() / LEVELS),
            torch.tensor(heard, device=self.device),
        )

    def _wording(self, index: int, english: bool) -> np.ndarray:
        """Buckets of a name, a name with keywords, or keywords alone; a tenth of the n-grams drop out."""
        row, languages, pick = self.rows[index], self.languages[index], self.random
        language = "en" if english and "en" in languages else pick.choice(languages)
        name, words, luck = row.names[language], row.keywords.get(language, []), pick.random()
        if luck < 0.6 or not words or row.skin_tone:
            texts = [name]
        elif luck < 0.8:
            texts = [name, *pick.sample(words, min(len(words), pick.randint(1, 2)))]
        else:
            texts = pick.sample(words, min(len(words), pick.randint(2, 4)))
        ids = np.concatenate([cached_ids(text) for text in texts])
        kept = self.numbers.random(len(ids)) > 0.1
        return ids[kept] if kept.any() else ids


cached_ids = cache(text_ids)


def bag(ids: Sequence[np.ndarray], device: str | torch.device) -> Bag:
    """Texts of different lengths as an embedding bag takes them."""
    starts = np.cumsum([0] + [len(text) for text in ids[:-1]])
    return torch.from_numpy(np.concatenate(ids)).to(device), torch.from_numpy(starts).to(device)


def _pixels(index: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """(n, 64, 64, 4) from palette images."""
    flat = np.take_along_axis(palette, index.reshape(len(index), -1, 1).astype(np.intp), 1)
    return flat.reshape(-1, SIDE, SIDE, 4)


def _clips(mel: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """(n, 128, 40) from clips laid end to end, silence after each."""
    out = np.zeros((len(frames), FRAMES, mel.shape[1]), np.uint8)
    out[np.arange(FRAMES) < frames[:, None]] = mel
    return out


# ── distortions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _uniform(like: Tensor, low: float, high: float, channels: int = 1) -> Tensor:
    """A number an image (or channel), shaped to broadcast over its pixels."""
    return torch.rand(len(like), channels, 1, 1, device=like.device) * (high - low) + low


def distort_images(rgba: Tensor) -> Tensor:
    """(n, 64, 64, 4) bytes → (n, 3, 64, 64) in 0..1: warped, on a random ground, recoloured, with a hole."""
    x = rgba.permute(0, 3, 1, 2).float() / 255
    x = _warp(torch.cat([x[:, :3] * x[:, 3:], x[:, 3:]], 1))  # premultiplied, so that edges stay clean
    white = torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5
    ground = torch.where(white, 1.0, _uniform(x, 0, 1, channels=3))
    return _cut_out(_recolour(x[:, :3] + (1 - x[:, 3:]) * ground)).clamp(0, 1)


def _warp(x: Tensor) -> Tensor:
    """Turn, scale, stretch and shift; every second image also waves like a flag."""
    angle, scale, stretch, right, down = (
        _uniform(x, low, high).view(-1)
        for low, high in ((-0.2, 0.2), (0.8, 1.3), (0.85, 1.18), (-0.15, 0.15), (-0.15, 0.15))
    )
    sine, cosine = angle.sin() * scale, angle.cos() * scale
    affine = torch.stack([cosine * stretch, -sine, right, sine, cosine / stretch, down], 1).view(-1, 2, 3)
    grid = F.affine_grid(affine, list(x.shape), align_corners=False)
    across, along = grid.unbind(-1)
    height = _uniform(x, 0, 0.08)[:, 0] * (torch.rand(len(x), 1, 1, device=x.device) < 0.5)
    wave = height * torch.sin(across * _uniform(x, 2, 6)[:, 0] + _uniform(x, 0, 6.3)[:, 0])
    return F.grid_sample(x, torch.stack([across, along + wave], -1), align_corners=False)


def _recolour(x: Tensor) -> Tensor:
    """Blur or sharpen, then change saturation, mix channels, and change contrast, brightness and tint."""
    blurred = F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 3, 1)
    x = x + _uniform(x, -0.7, 1).clamp(min=-0.5) * (blurred - x)
    grey = x.mean(1, keepdim=True)
    mixing = 0.04 * torch.randn(len(x), 3, 3, device=x.device)
    x = grey + (x - grey) * _uniform(x, 0.5, 1.5) + (mixing @ (x - 0.5).flatten(2)).view_as(x)
    tint = 0.03 * torch.randn(len(x), 3, 1, 1, device=x.device)
    return (x - 0.5) * _uniform(x, 0.7, 1.3) + 0.5 + _uniform(x, -0.12, 0.12) + tint


def _cut_out(x: Tensor) -> Tensor:
    """A square of one colour over every second image."""
    at = torch.arange(SIDE, device=x.device)
    half = _uniform(x, -12, 12)  # negative: no hole
    inside = (at - _uniform(x, 0, SIDE)).abs() < half
    hole = inside & ((at - _uniform(x, 0, SIDE)).abs() < half).transpose(2, 3)
    return torch.where(hole, _uniform(x, 0, 1, channels=3), x)


def distort_sounds(x: Tensor) -> Tensor:
    """A later start, another loudness, some noise, and a silenced band."""
    n, _, bands = x.shape
    x = torch.roll(x, int(torch.randint(0, 7, ())), 1)
    x = x * (0.8 + 0.4 * torch.rand(n, 1, 1, device=x.device)) + 0.05 * torch.randn_like(x)
    distance = torch.arange(bands, device=x.device) - torch.randint(0, bands, (n, 1, 1), device=x.device)
    return (x * ~((distance >= 0) & (distance < 5))).clamp(0, 1)
