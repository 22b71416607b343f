"""How near the engine comes to its ceilings: workers that only prepare, and a device that only computes.

python benchmarks/pipeline.py [--json] [--items 2048] [--size base|large] [--dtype bfloat16] [--workers 8]

A CLIP of true size with random weights embeds JPEGs of 640 × 480 made on the spot. The slower of the two ceilings,
measured in the same run on the same items, is what no pipeline can beat.
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import io
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from embark.data.items import key, media
from embark.engine.local import embed
from embark.engine.preparing import prepare
from embark.models import Encoder, get_model
from embark.models.encoder import fingerprint
from embark.planning import Need
from embark.settings import load_settings
from embark.store import Store

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
SIZES = {  # of the image tower: width, depth, heads, patch
    "base": (768, 12, 12, 16),
    "large": (1024, 24, 16, 14),
}
BATCH = 256


def main() -> None:
    """Make the model and the pictures, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--items", type=int, default=2048)
    parser.add_argument("--size", choices=SIZES, default="large")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=load_settings().workers)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        made = checkpoint(Path(name) / "clip", args.size)
        encoder = get_model(f"dual:{made}", device=args.device, dtype=args.dtype)
        needs = pictures(encoder, args.items, args.workers)
        found = measure(encoder, needs, args.workers, Path(name) / "store")
    found |= {
        "device": encoder.card.loaded["device"],
        "dtype": args.dtype,
        "workers": args.workers,
        "items": args.items,
    }
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        for what, value in found.items():
            print(f"{what:28} {value:12,.2f}" if isinstance(value, float) else f"{what:28} {value:>12}")


def measure(encoder: Encoder, needs: list[Need], workers: int, folder: Path) -> dict[str, Any]:
    """Items a second of preparing alone, of the forward pass alone, and of the engine; the pipeline's share."""
    some = [prepare(encoder, need) for need in needs[:BATCH]]
    encoder.embed(some)  # the first pass pays for loading
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda need: prepare(encoder, need), needs):
            pass
    preparing = len(needs) / (time.perf_counter() - start)
    start, turns = time.perf_counter(), max(2, len(needs) // BATCH)
    for _ in range(turns):
        encoder.embed(some)
    forward = turns * len(some) / (time.perf_counter() - start)
    with Store(folder).space(fingerprint(encoder.card)).writer() as writer:
        report = embed(encoder, needs, writer, workers=workers)
    pipeline = report.embedded / report.seconds
    share = pipeline / min(preparing, forward)
    return {"preparing a second": preparing, "forward a second": forward, "engine a second": pipeline, "share": share}


def pictures(encoder: Encoder, count: int, workers: int) -> list[Need]:
    """Distinct JPEGs with the texture of photographs, smooth shapes and some noise: windows of one large picture."""
    rng, down, across = np.random.default_rng(0), *np.mgrid[0:960, 0:1280]
    waves = [128 + 90 * np.sin(across / a + down / b) for a, b in rng.uniform(9, 90, (3, 2))]
    grain = rng.integers(-12, 12, (960, 1280, 1))
    large = Image.fromarray((np.stack(waves, -1) + grain).clip(0, 255).astype(np.uint8))

    def picture(number: int) -> Need:
        top, left = divmod(number, 640)
        out = io.BytesIO()
        large.crop((left, top, left + 640, top + 480)).save(out, "JPEG", quality=90)
        item = media("image", out.getvalue())
        return Need(key("", encoder.render(item, "document", None)), item, "document", None, 0, number)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(picture, range(count)))


def checkpoint(folder: Path, size: str) -> Path:
    """A CLIP of that size with random weights."""
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    from tiny import byte_bpe, saved

    width, depth, heads, patch = SIZES[size]
    tokens = byte_bpe("<s> $A </s>", bos_token="<s>", eos_token="</s>", pad_token="</s>", unk_token="</s>", limit=77)
    vision = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": depth}
    vision |= {"num_attention_heads": heads, "patch_size": patch, "image_size": 224}
    text = {"vocab_size": len(tokens), "bos_token_id": tokens.bos_token_id, "eos_token_id": tokens.eos_token_id}
    model = CLIPModel(CLIPConfig(vision_config=vision, text_config=text, projection_dim=768))
    return Path(saved(folder, model, tokens, CLIPImageProcessorPil()))


if __name__ == "__main__":
    main()
