"""Train the pocket towers, export them for the numpy runtime and measure them on what they never saw.

python tools/pocket/train.py --data train.npz --out OUT --device cuda --minutes 8.5
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from batches import LEVELS, Batch, TrainingData, cached_ids
from evaluate import evaluate
from export import export, parity
from torch import Tensor, nn
from torch.nn import functional as F
from towers import CONFIG, PocketTowers

WARM_UP, MAX_SCALE, WEIGHT_DECAY, GRADIENT_NORM = 50, 100, 0.02, 1.0
AVERAGE = 0.998  # share of the old weights in the moving average, once it has warmed up
LOG_SECONDS = 20


def contrast(a: Tensor, b: Tensor, scale: Tensor) -> Tensor:
    """CLIP's loss: row i of one side belongs to row i of the other."""
    logits, target = scale * a @ b.T, torch.arange(len(a), device=a.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def loss_of(model: PocketTowers, batch: Batch) -> Tensor:
    """Images against both wordings in full, the other pairs at half weight."""
    with torch.autocast("cuda", torch.bfloat16, enabled=batch.images.is_cuda):
        images, sounds = model.images(batch.images), model.sounds(batch.sounds)
        english, foreign = model.texts(*batch.english), model.texts(*batch.foreign)
    scale = model.log_scale.exp().clamp(max=MAX_SCALE)
    strong = contrast(images, english, scale) + contrast(images, foreign, scale)
    weak = contrast(english, foreign, scale)
    weak = weak + contrast(sounds, english[batch.heard], scale) + contrast(sounds, images[batch.heard], scale)
    return strong + weak / 2


def batches(data: TrainingData, size: int) -> Iterator[Batch]:
    """Endless; the next batch is drawn while this one trains."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(data.batch, size)
        while True:
            ready, coming = coming.result(), pool.submit(data.batch, size)
            yield ready


def optimiser(model: PocketTowers, rate: float) -> torch.optim.AdamW:
    """Decay for matrices only."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))


@torch.no_grad()
def follow(average: PocketTowers, model: PocketTowers, step: int) -> None:
    """Move the average towards the model, batch-norm statistics included; quickly at first."""
    old_share = min(AVERAGE, 1 - 1 / (1 + step / 8))
    for old, new in zip(average.state_dict().values(), model.state_dict().values(), strict=True):
        if old.is_floating_point():
            old.lerp_(new, 1 - old_share)
        else:
            old.copy_(new)


def train(data: TrainingData, minutes: float, size: int, rate: float) -> tuple[PocketTowers, int]:
    """The averaged model after `minutes`, and how many steps that were; the learning rate falls along a cosine."""
    model = PocketTowers(CONFIG).to(data.device, memory_format=torch.channels_last).train()
    average, optimise = copy.deepcopy(model).eval(), optimiser(model, rate)
    start = logged = time.monotonic()
    step = 0
    for step, batch in enumerate(batches(data, size), 1):
        done = (time.monotonic() - start) / (60 * minutes)
        if done >= 1:
            break
        cosine = 0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2
        for group in optimise.param_groups:
            group["lr"] = rate * min(1, step / WARM_UP) * cosine
        loss = loss_of(model, batch)
        optimise.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
        optimise.step()
        follow(average, model, step)
        if time.monotonic() - logged > LOG_SECONDS:
            logged = time.monotonic()
            print(f"step {step}, {100 * done:.0f} %, loss {loss.item():.3f}", flush=True)
    return average, step - 1


def agreement(model: PocketTowers, data: TrainingData, path: Path, count: int = 256) -> dict[str, float]:
    """Parity of torch and numpy over the first rows and clips."""
    images = (data.noto[:count].permute(0, 2, 3, 1) * 255).round().to(torch.uint8).numpy()
    ids = [cached_ids(row.names["en"]) for row in data.rows[:count]]
    mels = (data.clips[:count].float() / LEVELS).cpu().numpy()
    return parity(model, path, np.ascontiguousarray(images), ids, mels)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train, export and measure the pocket model.")
    parser.add_argument("--data", type=Path, default="train.npz", help="what build.py wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--batch", type=int, help="default: 1024 on a GPU, 256 on a CPU")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--share-alike", action="store_true", help="also train on the CC-BY-SA styles")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    data = TrainingData(args.data, args.device, args.share_alike)
    print(f"{len(data.rows)} emoji, {len(data.icons)} drawings, {len(data.clips)} clips", flush=True)
    size = args.batch or (256 if args.device == "cpu" else 1024)
    model, steps = train(data, args.minutes, size, args.rate)
    weights = args.out / "pocket.safetensors"
    export(model, CONFIG, weights)
    metrics = {"steps": steps, "minutes": args.minutes, "numpy_difference": agreement(model, data, weights)}
    metrics |= evaluate(model, data)
    (args.out / "metrics.json").write_text(json.dumps(metrics, indent=1))
    print(json.dumps(metrics, indent=1))


if __name__ == "__main__":
    main()
