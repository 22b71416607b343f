"""Pictures prepared on the CPU, against as many plain Pillow processes that decode and resize the same ones.

    python benchmarks/cpu_pixels.py [WORKERS [SECONDS]]

prints JSON: pictures a second of bare Pillow processes, of embark's worker processes and of its threads, each from JPEG
bytes of 640 × 480 pixels to 224 × 224 bytes (bicubic) in this process, and the shares of the first. On a machine with
other work, compare processor times: those of workers a picture, and that of this process, which all workers share.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

from embark.engine.batching.batches import BatchSize
from embark.engine.workers.preparing_processes import Preparer, prepared
from embark.items import media
from embark.models.encoder import Towers, image_towers
from embark.models.pixels import BytePreprocessor, Fit
from embark.planning import Need
from embark.settings import cores
from embark.types import Array, ModelCard

DISTINCT = 64  # pictures, read again and again
SIZE = (640, 480)
SIDE = 224

PLAIN = """
import io, sys, time
from pathlib import Path
import numpy as np
from PIL import Image
data = [path.read_bytes() for path in sorted(Path(sys.argv[1]).glob("*.jpg"))]
side, seconds = int(sys.argv[2]), float(sys.argv[3])

def prepare(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    image = image.convert("RGB")
    shorter = min(image.size)
    image = image.resize([int(side * length / shorter) for length in image.size], Image.Resampling.BICUBIC)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return np.asarray(image.crop((left, top, left + side, top + side)))

for row in range(8):
    prepare(data[row])
print("ready", flush=True)
sys.stdin.readline()
start, busy = time.perf_counter(), time.process_time()
count = 0
while time.perf_counter() - start < seconds:
    prepare(data[count % len(data)])
    count += 1
print(count / (time.perf_counter() - start), 1000 * (time.process_time() - busy) / count)
"""


def measure(workers: int | None = None, seconds: float = 4.0) -> dict[str, Any]:
    """Pictures a second of plain processes, of worker processes and of threads, `workers` of each; and shares."""
    workers = workers or cores()
    with TemporaryDirectory() as folder:
        files = make_pictures(Path(folder))
        size = round(np.mean([path.stat().st_size for path in files]))
        before = plain_rate(workers, Path(folder), seconds)
        processes = engine_rate(workers, files, seconds, processes=True)
        threads = engine_rate(workers, files, seconds, processes=False)
        plain = (before + plain_rate(workers, Path(folder), seconds)) / 2  # before and after: machines are shared
    return {
        "workers": workers,
        "picture": {"size": SIZE, "bytes": size},
        "pictures a second": {"plain Pillow": plain[0], "worker processes": processes[0], "threads": threads[0]},
        "share of plain Pillow": {"worker processes": processes[0] / plain[0], "threads": threads[0] / plain[0]},
        "processor milliseconds a picture": {
            "plain Pillow": plain[1],
            "worker process": processes[1],
            "beside worker processes": processes[2],
            "threads": threads[2],
        },
    }


def make_pictures(folder: Path) -> list[Path]:
    """JPEG files of photographic size: noise, blurred as cameras do."""
    random = np.random.default_rng(0)
    paths = []
    for number in range(DISTINCT):
        small = Image.fromarray(random.integers(0, 256, (SIZE[1] // 4, SIZE[0] // 4, 3), np.uint8))
        image = small.resize(SIZE, Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(0.5))
        data = io.BytesIO()
        image.save(data, "JPEG", quality=90)
        paths.append(folder / f"{number:03}.jpg")
        paths[-1].write_bytes(data.getvalue())
    return paths


def plain_rate(workers: int, folder: Path, seconds: float) -> Array:
    """Pictures a second of processes that do nothing else, all at once; and processor milliseconds a picture."""
    command = [sys.executable, "-c", PLAIN, str(folder), str(SIDE), str(seconds)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    figures = np.array([child.communicate(timeout=60 + 10 * seconds)[0].split() for child in children], float)
    return np.array([figures[:, 0].sum(), figures[:, 1].mean()])


def engine_rate(workers: int, files: list[Path], seconds: float, processes: bool) -> tuple[float, float, float]:
    """Prepared pictures a second that arrive here, in order, after all workers have begun; and processor milliseconds a
    picture, of worker processes and of this one.
    """
    encoder = pixel_encoder()
    needs = [
        Need(number.to_bytes(32, "little"), media("image", files[number % len(files)]), "document", None, 0, number)
        for number in range(1_000_000)
    ]
    size = BatchSize()
    with Preparer(workers, lambda *_: processes) as preparer:
        preparer.begin(encoder, needs)
        with closing(prepared(encoder, needs, workers, size, str, preparer)) as ready:
            begin = time.perf_counter() + (2.0 if processes else 0.5)  # all have started, and have worked a little
            while time.perf_counter() < begin:
                next(ready)
            pids = preparer.processes.pids if preparer.processes else []
            start = time.perf_counter()
            busy = time.process_time()
            of_workers = processor_seconds(pids)
            count = 0
            while time.perf_counter() - start < seconds:
                _, value, _ = next(ready)
                assert value[0][1]["pixel_values"].shape == (SIDE, SIDE, 3)
                count += 1
            rate = count / (time.perf_counter() - start)
            here = 1000 * (time.process_time() - busy) / count
            of_workers = 1000 * (processor_seconds(pids) - of_workers) / count
    return rate, of_workers, here


def processor_seconds(pids: list[int]) -> float:
    """The processor time of processes so far."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


def pixel_encoder() -> Towers:
    """An encoder with a plain processor of pictures, and a model that costs nothing."""

    def embed(rows: list[Any]) -> Array:
        return np.ones((len(rows), 8), np.float32)

    preprocessor = BytePreprocessor(Fit(SIDE, (SIDE, SIDE), Image.Resampling.BICUBIC), np.zeros((3, 256), np.float32))
    card = ModelCard("benchmark/pixels", "1", "functions", ("image", "video"), dim=8)
    return Towers(card, image_towers(embed, preprocessor.prepare))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    figures = measure(int(arguments[0]) if arguments else None, float(arguments[1]) if arguments[1:] else 4.0)
    print(json.dumps(figures, indent=2))
