"""How near the engine comes to its ceilings: each stage alone, all together, and bare loops of the same work.

python benchmarks/pipeline.py [--only image,cuda,mixed,text,video,audio,run,ranks] [--size b32] [--items N]
                              [--device auto] [--dtype bfloat16] [--stored-dtype float32] [--workers N] [--quick]
                              [--json]

CLIPs of true size with random weights embed JPEGs of 640 × 480 (`image` by Pillow, `cuda` on the GPU, `mixed` there in
several sizes), captions and films that are made on the spot; sounds go to a small function. Pictures for the GPU are
rows of a parquet file. Rates are items a second. The stages: read and hash (keys), decode, prepare (decode, then resize
or tokenise), forward (the encoder's `embed`), write (to the store, committed). `engine` is all of them but the keys,
from encoded bytes to committed vectors; `engine with keys` computes those beside it, as a run does: the items are those
of tasks, which threads read ahead. The ceilings, in the same run on the same items: as many plain processes that decode
and resize as there are workers, the bare model on inputs that are on its device, and, in a process of their own, nvJPEG
alone and a bare overlap of nvJPEG, resize and model on streams of their own.

`run` is a whole `embark.evaluate` of eight tasks; `ranks` are those of a large retrieval, against a matrix product and
the top 100. Pictures on the GPU need torchvision. `--size` is b32, b16 or l14, or several with commas between.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # not in processes, which have the path of this one
    sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import io
import json
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
from PIL import Image

from embark.engine.batching.batches import cost
from embark.engine.batching.tuning import Tuning
from embark.engine.local import Embedding, begin, embed
from embark.engine.report import EmbeddingReport
from embark.engine.workers.preparing import prepare
from embark.engine.workers.preparing_processes import Preparer
from embark.items import Items, media, take, text
from embark.items.decoding import decode
from embark.items.lazy_items import MediaItems, Numbered, Texts, text_array
from embark.items.lazy_media import ParquetColumn
from embark.models import Encoder, Loading, get_model
from embark.models.device_names import CONNECTIONS
from embark.models.encoder import prepare_many
from embark.planning import Demand, Need, Plan, plan, task_demand
from embark.protocol import vector_space
from embark.run.hashing import HashingProcesses
from embark.run.read_ahead import Opened, ReadAhead
from embark.settings import load_settings
from embark.store import Store, Writer
from embark.types import Dataset, Groups, Item, Side, Source, Task

SIZES = {  # the image tower's width, depth, heads, patch; the text tower's width and heads; dimensions of vectors
    "b32": (768, 12, 12, 32, 512, 8, 512),
    "b16": (768, 12, 12, 16, 512, 8, 512),
    "l14": (1024, 24, 16, 14, 768, 12, 768),
    "tiny": (64, 2, 2, 32, 64, 2, 64),
}
SIDE = 224
PARTS = ("image", "cuda", "mixed", "text", "video", "audio", "run", "ranks")
TASKS = 32  # of equal size, for which keys are computed beside the engine
DISTINCT = 1024  # pictures; further items are copies with another comment in the file
ROW_GROUP = 256  # pictures
BARE = 16_384  # pictures, which are enough for the rate of a bare loop
PHOTOS = ((640, 480), (480, 640), (500, 375), (800, 600), (427, 640), (1024, 683), (640, 360), (300, 300))
FRAMES = 48  # of a film
RATE = 16_000
LIMITS = {
    "cuda of overlap": 0.90,
    "cuda of slower": 0.80,
    "mixed of slower": 0.75,
    "l14 of forward": 0.95,
    "pillow of processes": 0.90,
    "text of forward": 0.80,
    "ranks": 3.0,
}


def main() -> int:
    """Measure and print; status 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--size", default="b32", help="models, with commas between")
    parser.add_argument("--items", type=int, help="pictures; eight times as many texts")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", help="of the forward pass (bfloat16 with CUDA, else float32)")
    parser.add_argument("--stored-dtype", default="float32", help="of the vectors in the store")
    parser.add_argument("--workers", type=int, default=load_settings().workers)
    parser.add_argument("--quick", action="store_true", help="a tiny model and few items")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", CONNECTIONS)  # CUDA is used before a model sets it
    import torch

    device = ("cuda" if torch.cuda.is_available() else "cpu") if args.device == "auto" else args.device
    cuda = device.startswith("cuda")
    items = args.items or (48 if args.quick else 131_072 if cuda else 32)
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(device) if cuda else "cpu", "workers": args.workers}
    report |= {"torch": torch.__version__, "items": items, "parts": {}, "claims": []}
    with tempfile.TemporaryDirectory() as name:
        for size in ("tiny",) if args.quick else args.size.split(","):
            dtype = args.dtype or ("bfloat16" if cuda else "float32")
            bench = Bench(Path(name, size), size, device, dtype, args.stored_dtype, args.workers, items, args.quick)
            for part in args.only.split(","):
                if part != "ranks":
                    report["parts"][f"{size} {part}"] = getattr(bench, part)()
                    print(f"{size} {part}: {report['parts'][f'{size} {part}']}", file=sys.stderr, flush=True)
            report["claims"] += bench.claims
        if "ranks" in args.only.split(","):
            report["parts"]["ranks"], claims = rank_rates(cuda, args.quick)
            report["claims"] += claims
    print(json.dumps(report, indent=2)) if args.json else show(report)
    return 0 if all(claim["holds"] for claim in report["claims"]) else 1


def show(report: dict[str, Any]) -> None:
    """Print rates part by part, then the claims."""
    print(", ".join(f"{name} {value}" for name, value in report.items() if not isinstance(value, (dict, list))))
    for part, rates in report["parts"].items():
        print(part)
        for name, value in rates.items():
            print(f"    {name:36} {value:14,.2f}" if isinstance(value, float) else f"    {name:36} {value!s:>14}")
    for claim in report["claims"]:
        word = "at least" if claim["least"] else "at most"
        holds = "holds" if claim["holds"] else "DOES NOT HOLD"
        print(f"{claim['claim']}: {claim['value']:.3g} ({word} {claim['limit']:g}): {holds}")


def best_rate(count: int, work: Callable[[], object], turns: int = 2) -> float:
    """Items a second of the quickest of a few turns."""
    seconds = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return count / min(seconds)


class Bench:
    """A model and the items that it embeds."""

    def __init__(
        self, folder: Path, size: str, device: str, dtype: str, stored: str, workers: int, items: int, quick: bool
    ) -> None:
        self.folder = folder
        self.size = size
        self.device = device
        self.dtype = dtype
        self.stored = stored
        self.workers = workers
        self.items = items // 2 if size == "l14" else items  # it is several times as slow as the others
        self.quick = quick
        self.on_cuda = device.startswith("cuda")
        self.claims: list[dict[str, Any]] = []
        self.checkpoint = checkpoint(folder / "clip", size)
        self.stores = iter(range(9999))
        self.batch = 512 if self.on_cuda else 16
        self.turns = 2 if self.on_cuda and size != "l14" else 1  # of what takes long

    @property
    def pixels_on_device(self) -> bool:
        """Whether the GPU can decode pictures."""
        return self.on_cuda and find_spec("torchvision") is not None

    def claim(self, name: str, value: float, limit: str, at_least: bool = True) -> None:
        """Hold a figure against its limit."""
        holds = value >= LIMITS[limit] if at_least else value <= LIMITS[limit]
        row = {"claim": f"{self.size}: {name}", "value": value, "limit": LIMITS[limit], "least": at_least}
        self.claims.append(row | {"holds": bool(holds)})

    def model(self, **options: Any) -> Encoder:
        """The CLIP, as embark loads it."""
        loading = Loading(self.device, self.dtype, stored_dtype=self.stored, **options)
        return get_model(f"dual:{self.checkpoint}", loading=loading)

    # ── stages ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def stages(self, encoder: Encoder, make: Callable[[], Sequence[Item]], sample: int) -> dict[str, Any]:
        """Every stage alone, on a sample of the items, then the engine on all of them."""
        items = make()
        few = planned(encoder, first(items, sample)).needs
        parts = [need.render(encoder).parts for need in few]
        frames, rate = encoder.card.frames, encoder.card.sample_rate
        rates: dict[str, Any] = {}
        with ThreadPoolExecutor(self.workers) as pool:
            if not encoder.capabilities.encoded:  # else the encoder itself decodes
                decoding = partial(decode, frames=frames, sample_rate=rate)
                rates["decode, threads"] = best_rate(len(few), lambda: list(pool.map(decoding, parts)), 1)
            values = list(pool.map(partial(prepare, encoder), few))
            rates["prepare, threads"] = best_rate(len(few), lambda: list(pool.map(partial(prepare, encoder), few)), 1)
        batches = [values[start : start + self.batch] for start in range(0, len(values), self.batch)]
        vectors = np.concatenate([np.asarray(encoder.embed(batch)) for batch in batches])
        rates["forward"] = best_rate(len(few), lambda: [encoder.embed(batch) for batch in batches], self.turns)
        matrix = np.tile(vectors, (-(-len(items) // len(vectors)), 1))[: len(items)].astype(self.stored)
        keys = np.frombuffer(np.random.default_rng(0).bytes(32 * len(items)), "V32")
        rates["write"] = best_rate(len(items), lambda: self._write(keys, matrix))
        return rates | self.engine_rates(encoder, make, items)

    def _write(self, keys: Any, matrix: Any) -> None:
        with Store(self.folder / f"write{next(self.stores)}").space("ab").writer() as writer:
            for start in range(0, len(keys), self.batch):
                writer.add(keys[start : start + self.batch], matrix[start : start + self.batch])
            writer.commit()

    def engine_rates(
        self, encoder: Encoder, make: Callable[[], Sequence[Item]], items: Sequence[Item]
    ) -> dict[str, Any]:
        """The engine from encoded bytes to committed vectors, without and with what keys cost; the better of two."""
        best = {"engine": 0.0, "engine with keys": 0.0, "keys": 0.0}
        enough = None if self.quick else lambda *_: True  # as in a long run, for which processes are worth their start
        with Preparer(self.workers, enough) as preparer, HashingProcesses() as hashing:
            options = {"workers": self.workers, "preparer": preparer, "tuning": Tuning()}
            warm = planned(encoder, first(items, max(self.items // 8, 1)), hashing)
            self._engine(encoder, warm.needs, options)  # pays for loading, processes and trials of batch sizes
            for _ in range(self.turns):
                fresh = make()  # items remember their hashes
                start = time.perf_counter()
                needs = planned(encoder, fresh, hashing).needs
                keys_seconds = time.perf_counter() - start
                seconds = self._engine(encoder, needs, options)
                both_seconds = self._with_keys(encoder, make(), hashing, options)
                rates = (len(needs) / measured for measured in (seconds, both_seconds, keys_seconds))
                best = {name: max(best[name], rate) for name, rate in zip(best, rates, strict=True)}
        return best

    def _with_keys(
        self, encoder: Encoder, items: Sequence[Item], hashing: HashingProcesses, options: dict[str, Any]
    ) -> float:
        """The seconds of keys and engine, into one store: tasks are read ahead, and those that were read by the time
        that the model takes new batches are handed to it, as in a run. The model is checked in the first wave alone.
        """
        space = Store(self.folder / f"store{next(self.stores)}").space(vector_space(encoder.card))
        rows = np.array_split(np.arange(len(items)), min(TASKS, len(items)))
        of_task = {f"Items{number}": take(items, part) for number, part in enumerate(rows)}

        def finish(embedding: Embedding, writer: Writer, needs: Sequence[Need]) -> None:
            require_all(embedding.finish(), needs)
            writer.close()

        def read(task: Task) -> Opened:
            return Opened(task, (demand(encoder, of_task[task.name], hashing, task),))

        start = time.perf_counter()
        with ThreadPoolExecutor(1) as finisher, ReadAhead(list(map(row, of_task)), read, 1) as reading:
            unfinished: deque[Future[None]] = deque()
            while wave := reading.take():
                space.refresh()
                needs = plan([each for opened in wave for each in demands_of(opened)], space.has).needs
                writer = space.writer()
                embedding = begin(encoder, needs, writer, self_check=not unfinished, **options)
                unfinished.append(finisher.submit(finish, embedding, writer, needs))
                if len(unfinished) > 1:
                    unfinished.popleft().result()
            for future in unfinished:
                future.result()
        return time.perf_counter() - start

    def _engine(self, encoder: Encoder, needs: Sequence[Need], options: dict[str, Any]) -> float:
        with Store(self.folder / f"store{next(self.stores)}").space(vector_space(encoder.card)).writer() as writer:
            start = time.perf_counter()
            report = embed(encoder, needs, writer, self_check=True, **options)
            seconds = time.perf_counter() - start
        require_all(report, needs)
        return seconds

    def processes(self, work: Callable[[str], int], content: Sequence[bytes], count: int) -> float:
        """Files a second of plain processes, as many as there are workers, after one round."""
        folder = self.folder / f"files{next(self.stores)}"
        folder.mkdir(parents=True)
        names = []
        for number, data in enumerate(content):
            names.append(str(folder / str(number)))
            Path(names[-1]).write_bytes(data)
        names = (names * -(-count // len(names)))[:count]
        with get_context("spawn").Pool(self.workers) as pool:
            pool.map(work, names[: 4 * self.workers], 1)
            return best_rate(count, lambda: pool.map(work, names, 8))

    # ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def image(self) -> dict[str, Any]:
        """JPEGs of one size, by Pillow and, with CUDA, on the device."""
        content = jpegs(min(self.items, 64 if self.quick else DISTINCT), [(640, 480)], self.workers)
        rates = {"bytes of a picture": float(np.mean([len(data) for data in content]))}
        rates["bare forward"] = forward = self.bare_forward()
        count = min(self.items, 4096)
        many = count if self.quick else max(count, 512)  # enough for a steady rate, where it is quick
        before = self.processes(pillow_224, content, many)
        encoder = self.model()
        pillow = self.stages(encoder, lambda: variants(content, count), min(count, 512 if self.on_cuda else 32))
        rates |= {f"pillow: {name}": value for name, value in pillow.items()}
        ours = pillow["engine"]
        if not self.on_cuda or forward < before:  # a model that costs nothing shows how fast the workers are
            make = partial(variants, content, many)
            ours = self.engine_rates(without_forward(encoder), make, make())["engine"]
            rates["pillow: engine, no forward pass"] = ours
        rates["Pillow processes"] = processes = max(before, self.processes(pillow_224, content, many))
        self.claim("CPU pixels, of Pillow processes", ours / processes, "pillow of processes")
        return rates

    def cuda(self) -> dict[str, Any]:
        """JPEGs of one size with pixels on the GPU, against nvJPEG alone and a bare overlap; nothing without one."""
        if not self.pixels_on_device:
            return {"skipped": "needs CUDA and torchvision"}
        content = jpegs(DISTINCT, [(640, 480)], self.workers)
        rates = {"bytes of a picture": float(np.mean([len(data) for data in content]))}
        rates["bare forward"] = forward = self.bare_forward()
        make = self.table(content, "photographs")
        stages = self.stages(self.model(pixels="cuda"), make, 2048)
        rates |= stages
        engine = stages["engine with keys"]
        if self.size == "l14":
            self.claim("pixels on the GPU, of the bare forward pass", engine / forward, "l14 of forward")
            return rates
        rates |= self.bare_pixels(content)
        rates["bare overlap with as many queues"] = self.bare_pixels(content, CONNECTIONS)["bare overlap"]
        slower = min(rates["nvJPEG alone"], forward)
        self.claim("pixels on the GPU, of the bare overlap", engine / rates["bare overlap"], "cuda of overlap")
        self.claim("pixels on the GPU, of nvJPEG or forward pass", engine / slower, "cuda of slower")
        return rates

    def mixed(self) -> dict[str, Any]:
        """JPEGs of many sizes with pixels on the GPU; nothing without one."""
        if not self.pixels_on_device:
            return {"skipped": "needs CUDA and torchvision"}
        content = jpegs(DISTINCT, PHOTOS, self.workers)
        rates = {"bytes of a picture": float(np.mean([len(data) for data in content]))}
        rates["bare forward"] = forward = self.bare_forward()
        rates |= self.bare_pixels(content)
        make = self.table(content, "mixed")
        rates |= self.engine_rates(self.model(pixels="cuda"), make, make())
        slower = min(rates["nvJPEG alone"], forward)
        self.claim("mixed sizes, of nvJPEG or forward pass", rates["engine with keys"] / slower, "mixed of slower")
        return rates

    def table(self, content: list[bytes], name: str) -> Callable[[], Sequence[Item]]:
        """A function that returns the pictures as rows of a parquet file, as tasks have them, their hashes unknown."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / f"{name}.parquet"
        schema = pa.schema([("image", pa.binary())])
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
            for start in range(0, self.items, ROW_GROUP):
                rows = range(start, min(self.items, start + ROW_GROUP))
                pictures = [varied(content[row % len(content)], row) for row in rows]
                file.write_table(pa.table({"image": pa.array(pictures, pa.binary())}))
        os.sync()  # or gigabytes would go to the disk while it is measured

        def make() -> Sequence[Item]:
            column = ParquetColumn(str(path), str(self.folder / f"digests{next(self.stores)}"), "image")
            return MediaItems("image", column, np.arange(self.items))

        return make

    def bare_pixels(self, content: list[bytes], connections: str = "") -> dict[str, float]:
        """`bare_pixels` in a process of its own, as a plain script would have it: with the queues that CUDA takes by
        itself, or so many.
        """
        ours = os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", "")
        os.environ |= {"CUDA_DEVICE_MAX_CONNECTIONS": connections} if connections else {}
        try:
            with get_context("spawn").Pool(1) as pool:
                return pool.apply(bare_pixels, (content, str(self.checkpoint), self.device, self.dtype))
        finally:
            os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = ours

    def bare_forward(self) -> float:
        """Pictures a second of the bare image tower."""
        import torch

        tower = self.bare_model
        pixels = torch.randn((self.batch, 3, SIDE, SIDE), device=self.device).to(tower.dtype)
        turns = max(2, min(self.items, 16_384) // self.batch)
        return bare_rate(
            self.device, [partial(tower.get_image_features, pixel_values=pixels)] * turns, self.batch, self.turns
        )

    @cached_property
    def bare_model(self) -> Any:
        """The model of transformers itself."""
        return bare_clip(self.checkpoint, self.device, self.dtype)

    # ── the other modalities ─────────────────────────────────────────────────────────────────────────────────────────

    def text(self) -> dict[str, Any]:
        """Captions."""
        captions = caption_list(8 * self.items)
        rates: dict[str, Any] = {"bare forward": self.bare_text_forward(captions)}
        encoder = self.model()
        few = planned(encoder, [text(caption) for caption in captions[:4096]]).needs
        rates["tokenise, one by one"] = best_rate(len(few), lambda: [prepare(encoder, need) for need in few], 1)
        contents = [decode(need.render(encoder).parts, 1, RATE) for need in few]
        rates["tokenise, many"] = best_rate(len(few), lambda: prepare_many(encoder, contents, [""] * len(few)))
        column = text_array(captions)  # as tasks have them: a column of a table
        make = partial(Texts, column)
        rates |= self.stages(encoder, make, min(len(captions), 64 * self.batch if self.on_cuda else 64))
        values = sorted(prepare_many(encoder, contents, [""] * len(few)), key=cost)
        sizes = (512, 1024, 2048, 4096) if self.on_cuda else (16, 64)
        rates["forward"] = max(self.forward_rate(encoder, values, size) for size in sizes)
        self.claim("short texts, of the forward pass", rates["engine"] / rates["forward"], "text of forward")
        return rates

    def forward_rate(self, encoder: Encoder, values: Sequence[Any], size: int) -> float:
        """Items a second of `embed` alone, from prepared items of like length to vectors."""
        batches = [list(values[start : start + size]) for start in range(0, len(values), size)]
        encoder.embed(batches[0])
        return best_rate(len(values), lambda: [encoder.embed(batch) for batch in batches], self.turns)

    def bare_text_forward(self, captions: list[str]) -> float:
        """Captions a second of the bare text tower: tokenised, sorted by length and on the device beforehand."""
        from transformers import AutoTokenizer

        tower = self.bare_model
        tokens = AutoTokenizer.from_pretrained(self.checkpoint)
        ids = sorted(tokens(captions)["input_ids"], key=len)
        size = 2 * self.batch
        batches = []
        for start in range(0, len(ids), size):
            padded = tokens.pad({"input_ids": ids[start : start + size]}, return_tensors="pt")
            batches.append({name: tensor.to(self.device) for name, tensor in padded.items()})
        calls = [partial(tower.get_text_features, **batch) for batch in batches]
        return bare_rate(self.device, calls, len(ids) / len(calls), self.turns)

    def video(self) -> dict[str, Any]:
        """Films of two seconds, of which the model sees eight frames."""
        if not find_spec("av"):
            return {"skipped": "needs PyAV"}
        count = max(8, min(self.items, 2048) // 8)
        content = films(min(count, 64))
        processes = self.processes(pyav_224, content, count)
        make = partial(variants, content, count, "video")
        rates = self.stages(self.model(), make, min(count, 128))
        return {"bytes of a film": float(np.mean(list(map(len, content)))), "PyAV processes": processes, **rates}

    def audio(self) -> dict[str, Any]:
        """Sounds of five seconds at 44.1 kHz, for a function that takes spectra."""
        import embark

        if not (find_spec("soundfile") and find_spec("soxr")):
            return {"skipped": "needs soundfile and soxr"}
        count = max(8, min(self.items, 4096) // 4)
        content = sounds(min(count, 64))
        processes = self.processes(soundfile_16k, content, count)
        encoder = embark.encoder(audio=spectra, name="spectra/encoder", revision="1")
        rates = self.stages(encoder, partial(variants, content, count, "audio"), min(count, 256))
        return {"bytes of a sound": float(np.mean(list(map(len, content)))), "plain processes": processes, **rates}

    # ── a whole run ──────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> dict[str, Any]:
        """`embark.evaluate` of eight tasks, from parquet tables of pictures to scores."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        import embark

        content = jpegs(min(self.items, 64 if self.quick else DISTINCT), [(640, 480)], self.workers)
        count = min(self.items, 16_384) // 8
        tasks = []
        for number in range(8):
            folder = self.folder / "run" / str(number)
            folder.mkdir(parents=True)
            rows = [varied(content[row % len(content)], number * count + row) for row in range(count)]
            labels = [f"thing {row % 4}" for row in range(count)]
            table = pa.table({"image": pa.array(rows, pa.binary()), "label": labels})
            pq.write_table(table, folder / "test.parquet", row_group_size=256, compression="none")
            tasks.append(embark.task(folder, "zeroshot", name=f"Run{number}"))
        settings = load_settings(home=self.folder / "home", results=self.folder / "results", workers=self.workers)
        encoder = self.model(**({"pixels": "cuda"} if self.pixels_on_device else {}))
        start = time.perf_counter()
        done = embark.evaluate(encoder, tasks, settings=settings, show_progress=False)
        seconds = time.perf_counter() - start
        if done.skipped:
            raise SystemExit(str(done.skipped))
        return {"tasks": len(tasks), "pictures": 8 * count, "pictures a second": 8 * count / seconds}


def first(items: Sequence[Item], count: int) -> Sequence[Item]:
    """So many of the items."""
    return take(items, np.arange(min(count, len(items))))


def require_all(report: EmbeddingReport, needs: Sequence[Need]) -> None:
    """End the benchmark if some items have no vector."""
    if report.embedded != len(needs):
        raise SystemExit(f"{len(needs) - report.embedded} of {len(needs)} items have no vector: {report}")


def row(name: str = "Items") -> Task:
    """A task of items alone."""
    return Task(name, "Own", "clustering", "labelled", Source("items", "1"), "nmi", "clustering", ())


def demand(encoder: Encoder, items: Sequence[Item], hashing: HashingProcesses | None, task: Task) -> Demand:
    """The keys of these items, which a task needs."""
    ids = Numbered(np.arange(len(items)))
    truth = Groups(np.zeros(len(items), np.int64), ("all",))
    data = Dataset({"item": Side(ids, items if isinstance(items, Items) else tuple(items))}, truth)
    if hashing is not None:
        hashing.hash(data, encoder)
    return task_demand(task, "test", "default", data, encoder)


def demands_of(opened: Opened) -> list[Demand]:
    """What a task that was read needs; its error, if reading failed."""
    if isinstance(opened.content, Exception):
        raise opened.content
    return list(opened.demands)


def planned(encoder: Encoder, items: Sequence[Item], hashing: HashingProcesses | None = None) -> Plan:
    """A plan of the vectors that one task of these items needs: their keys, with nothing stored."""
    return plan([demand(encoder, items, hashing, row())], lambda keys: np.zeros(len(keys), bool))


def without_forward(encoder: Any) -> Encoder:
    """The encoder with towers that return ones at once."""
    dim = encoder.card.dim

    def ones(rows: list[Any]) -> Any:
        return np.ones((len(rows), dim), np.float32)

    towers = {kind: replace(tower, embed=ones) for kind, tower in encoder.towers.items()}
    free: Encoder = replace(encoder, towers=towers)
    return free


# ── bare loops ───────────────────────────────────────────────────────────────────────────────────────────────────────


def bare_rate(device: str, calls: Sequence[Callable[[], Any]], size: float, turns: int) -> float:
    """Items a second of calls of a model, each for `size` of them; their vectors come to the CPU in half precision."""
    import torch

    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)

    def work() -> None:
        with torch.inference_mode():
            for call in calls:
                features(call()).half().to("cpu", non_blocking=True)
        wait()

    with torch.inference_mode():
        calls[0]()
    wait()
    return best_rate(round(size * len(calls)), work, turns)


def features(output: Any) -> Any:
    """The vectors of a CLIP's output, which is them in some releases of transformers."""
    return getattr(output, "pooler_output", output)


def bare_clip(checkpoint: str | Path, device: str, dtype: str) -> Any:
    """The model of transformers itself."""
    import torch
    from transformers import CLIPModel

    return CLIPModel.from_pretrained(checkpoint).to(device, getattr(torch, dtype)).eval()


def bare_pixels(content: list[bytes], checkpoint: str, device: str, dtype: str) -> dict[str, float]:
    """Pictures a second of nvJPEG alone and, if they have one size, of a bare overlap of nvJPEG, resize and model."""
    files = [varied(content[row % len(content)], row) for row in range(BARE)]
    rates = {"nvJPEG alone": nvjpeg_rate(files, device)}
    if len({Image.open(io.BytesIO(data)).size for data in content[:64]}) == 1:
        tower = bare_clip(checkpoint, device, dtype)
        rates["bare overlap"] = max(overlap_rate(files, tower, device, threads) for threads in (1, 2, 3))
    return rates


def nvjpeg_rate(content: list[bytes], device: str) -> float:
    """Pictures a second of nvJPEG alone."""
    import torch
    from torchvision.io import decode_jpeg

    encoded = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in content]
    batches = [encoded[start : start + 256] for start in range(0, len(encoded), 256)]

    def work() -> None:
        for batch in batches:
            decode_jpeg(batch, device=device)
        torch.cuda.synchronize(device)

    work()
    return best_rate(len(content), work)


def overlap_rate(content: list[bytes], tower: Any, device: str, threads: int) -> float:
    """Pictures a second of nvJPEG and resize in threads with streams of their own, and the model in this one."""
    import torch
    from torchvision.io import decode_jpeg

    resize = resizer(Image.open(io.BytesIO(content[0])).size, device, tower.dtype)
    encoded = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in content]
    batches = [encoded[start : start + 256] for start in range(0, len(encoded), 256)]
    own = local()

    def pixels(batch: list[Any]) -> tuple[Any, Any]:
        if not hasattr(own, "stream"):
            own.stream = torch.cuda.Stream(device)
        with torch.cuda.stream(own.stream), torch.inference_mode():
            ready = resize(torch.stack(decode_jpeg(batch, device=device)))
            return ready, own.stream.record_event()

    def overlapped() -> None:
        waiting: deque[Future[tuple[Any, Any]]] = deque()
        todo = iter(batches)
        with ThreadPoolExecutor(threads) as pool, torch.inference_mode():
            while True:
                for batch in todo:
                    waiting.append(pool.submit(pixels, batch))
                    if len(waiting) > 2 * threads:
                        break
                if not waiting:
                    break
                ready, event = waiting.popleft().result()
                torch.cuda.current_stream().wait_event(event)
                ready.record_stream(torch.cuda.current_stream())
                features(tower.get_image_features(pixel_values=ready)).half().to("cpu", non_blocking=True)
            torch.cuda.synchronize()

    overlapped()
    return best_rate(sum(map(len, batches)), overlapped)


def resizer(size: tuple[int, int], device: str, dtype: Any) -> Callable[[Any], Any]:
    """Resize, crop and scale pictures of one size, as two matrix products; the weights are those of an identity."""
    import torch
    from torch.nn.functional import interpolate

    def weights(length: int) -> Any:
        target = length * SIDE // min(size)
        identity = torch.eye(length)[None, None]
        matrix = interpolate(identity, (target, length), mode="bicubic", antialias=True)[0, 0]
        first = (target - SIDE) // 2
        return matrix[first : first + SIDE].to(device, dtype)

    width, height = size
    rows = weights(height)
    columns = weights(width).T.contiguous()
    return lambda pictures: (rows @ pictures.to(dtype)) @ columns / 64 - 2


def pillow_224(name: str) -> int:
    """Decode and resize a picture, as a plain script does."""
    return int(fitted(Image.open(name)).nbytes)


def fitted(image: Any) -> Any:
    """The bytes of the middle of a picture, its shorter side resized to 224."""
    image = image.convert("RGB")
    shorter = min(image.size)
    image = image.resize([int(SIDE * length / shorter) for length in image.size], Image.Resampling.BICUBIC)
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    return np.asarray(image.crop((left, top, left + SIDE, top + SIDE)))


def pyav_224(name: str) -> int:
    """Decode a film and resize eight of its frames."""
    import av

    with av.open(name) as container:
        frames = list(container.decode(video=0))
    wanted = np.linspace(0, len(frames) - 1, 8).astype(int)
    return sum(int(fitted(frames[number].to_image()).nbytes) for number in wanted)


def soundfile_16k(name: str) -> int:
    """Decode a sound and resample it."""
    import soundfile
    import soxr

    samples, rate = soundfile.read(name, dtype="float32", always_2d=True)
    return int(soxr.resample(samples.mean(axis=1), rate, RATE).nbytes)


def spectra(waves: list[Any]) -> Any:
    """A vector for each sound: the means and deviations of its spectrum."""
    rows = []
    for wave in waves:
        frames = np.pad(wave, (0, -len(wave) % 512)).reshape(-1, 512)
        power = np.log1p(np.abs(np.fft.rfft(frames, axis=1)[:, 1:]))
        rows.append(np.concatenate([power.mean(axis=0), power.std(axis=0)]))
    return np.stack(rows)


# ── the items ────────────────────────────────────────────────────────────────────────────────────────────────────────


def jpegs(count: int, sizes: Sequence[tuple[int, int]], workers: int) -> list[bytes]:
    """JPEGs with the texture of photographs, smooth shapes and some noise: windows of one large picture."""
    rng = np.random.default_rng(0)
    down, across = np.mgrid[0:1200, 0:1600]
    waves = [128 + 90 * np.sin(across / a + down / b) for a, b in rng.uniform(9, 90, (3, 2))]
    grain = rng.integers(-12, 12, (1200, 1600, 1))
    large = Image.fromarray((np.stack(waves, -1) + grain).clip(0, 255).astype(np.uint8))

    def picture(number: int) -> bytes:
        width, height = sizes[number % len(sizes)]
        left, top = 37 * number % (1600 - width), 11 * number % (1200 - height)
        out = io.BytesIO()
        large.crop((left, top, left + width, top + height)).save(out, "JPEG", quality=90)
        return out.getvalue()

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(picture, range(count)))


def variants(content: list[bytes], count: int, kind: Any = "image") -> list[Item]:
    """So many items, all different: copies of files whose comments (or last bytes, which nobody plays) differ."""
    return [media(kind, varied(content[row % len(content)], row, kind)) for row in range(count)]


def varied(data: bytes, number: int, kind: str = "image") -> bytes:
    """The same media in a file with another number in it."""
    mark = number.to_bytes(8, "big")
    if kind == "image":
        return data[:2] + b"\xff\xfe\x00\x0a" + mark + data[2:]  # a comment of JPEG
    if kind == "video":
        return data + (16).to_bytes(4, "big") + b"free" + mark  # an empty box of MP4
    size = int.from_bytes(data[4:8], "little") + 16
    return data[:4] + size.to_bytes(4, "little") + data[8:] + b"JUNK" + (8).to_bytes(4, "little") + mark  # of WAVE


def caption_list(count: int) -> list[str]:
    """Distinct captions of six to fourteen words."""
    rng = np.random.default_rng(0)
    words = np.array(WORDS.split())
    ends = np.cumsum(rng.integers(6, 15, count)).tolist()
    chosen = words[rng.integers(len(words), size=ends[-1])].tolist()
    return [f"{' '.join(chosen[start:end])} {end}" for start, end in pairwise([0, *ends])]


WORDS = (
    "a an the two three some many red blue green yellow white black small large old young wooden metal bright dark man "
    "woman child dog cat horse bird fish car bus train bicycle boat house tree river mountain beach street table chair "
    "window door book cup plate apple bread cake flower grass snow rain sun cloud night morning evening sits stands "
    "runs walks jumps rides holds eats drinks reads sleeps plays looks smiles on in under over beside behind near with "
    "without and or while during after before along across through photo picture painting drawing view of"
)


def films(count: int) -> list[bytes]:
    """MP4s of 48 frames of 320 × 240."""
    import av

    def film(number: int) -> bytes:
        out = io.BytesIO()
        rng = np.random.default_rng(number)
        ground = rng.integers(0, 255, (240, 320 + FRAMES, 3)).astype(np.uint8)
        ground = np.asarray(Image.fromarray(ground).resize((40, 30)).resize((320 + FRAMES, 240)))
        with av.open(out, "w", format="mp4") as container:
            stream = container.add_stream("mpeg4", rate=24)
            stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
            for shift in range(FRAMES):
                picture = np.ascontiguousarray(ground[:, shift : shift + 320])
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        return out.getvalue()

    return [film(number) for number in range(count)]


def sounds(count: int) -> list[bytes]:
    """WAVE files of five seconds at 44.1 kHz."""
    import soundfile

    def sound(number: int) -> bytes:
        seconds = np.arange(5 * 44_100) / 44_100
        noise = np.random.default_rng(number).normal(0, 0.05, len(seconds))
        out = io.BytesIO()
        soundfile.write(out, 0.3 * np.sin((200 + 40 * number) * 6.28 * seconds) + noise, 44_100, format="WAV")
        return out.getvalue()

    return [sound(number) for number in range(count)]


def checkpoint(folder: Path, size: str) -> Path:
    """A CLIP of that size with random weights, and a tokeniser of the captions' words."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    width, depth, heads, patch, text_width, text_heads, dim = SIZES[size]
    tokens = tokenizer()
    vision = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": depth}
    vision |= {"num_attention_heads": heads, "patch_size": patch, "image_size": SIDE}
    words = {"hidden_size": text_width, "intermediate_size": 4 * text_width, "num_attention_heads": text_heads}
    words |= {"num_hidden_layers": min(depth, 12), "vocab_size": 49_408, "max_position_embeddings": 77}
    words |= {"bos_token_id": tokens.bos_token_id, "eos_token_id": tokens.eos_token_id}
    torch.manual_seed(0)
    model = CLIPModel(CLIPConfig(vision_config=vision, text_config=words, projection_dim=dim))
    for part in (model, tokens, CLIPImageProcessorPil()):
        part.save_pretrained(folder)
    return folder


def tokenizer() -> Any:
    """Byte-level BPE in which most words of the captions are one token, as captions are to CLIP's own."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"], show_progress=False
    )
    inner.train_from_iterator(caption_list(2000), trainer)
    special = [(name, inner.token_to_id(name)) for name in ("<s>", "</s>")]
    inner.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=special)
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "unk_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=77, **names)


# ── ranks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rank_rates(cuda: bool, quick: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Ranks of one relevant document a query, against the product and the top 100; seconds, and how many times."""
    from embark.evaluators.ranks import ranks, tie_places

    queries, documents, dim = (20_000, 542_246, 512) if cuda and not quick else (400, 20_000, 128)
    rng = np.random.default_rng(0)
    corpus = rng.standard_normal((documents, dim), np.float32)
    relevant = rng.integers(documents, size=queries)
    asked = corpus[relevant] + 4 * rng.standard_normal((queries, dim), np.float32)
    ceiling = 1 / best_rate(1, top_100(asked, corpus, cuda), 4)
    rates: dict[str, Any] = {"queries": queries, "documents": documents, "dim": dim, "product and top 100, s": ceiling}
    claims = []
    for dtype in (np.float16, np.float32):
        sides = asked.astype(dtype), corpus.astype(dtype)
        pairs = np.arange(queries), relevant
        work = partial(ranks, *sides, *pairs, "cosine", tie_places(None, documents), depth=1000)
        seconds = 1 / best_rate(1, work, 3)
        rates |= {f"ranks of {dtype.__name__}, s": seconds, f"ranks of {dtype.__name__}, times": seconds / ceiling}
        if cuda and not quick:
            row = {"claim": f"ranks of {dtype.__name__}, times product and top 100", "value": seconds / ceiling}
            claims.append(
                row | {"limit": LIMITS["ranks"], "least": False, "holds": seconds / ceiling <= LIMITS["ranks"]}
            )
    return rates, claims


def top_100(asked: Any, corpus: Any, cuda: bool) -> Callable[[], None]:
    """The product of vectors that are on the device, and the best 100 of every query."""
    if not cuda:
        return lambda: list(tile_top(asked, corpus)).clear()
    import torch

    on_device = torch.from_numpy(asked).cuda(), torch.from_numpy(corpus).cuda()

    def work() -> None:
        for start in range(0, len(asked), 2000):
            (on_device[0][start : start + 2000] @ on_device[1].T).topk(100, dim=1)
        torch.cuda.synchronize()

    return work


def tile_top(asked: Any, corpus: Any) -> Iterator[Any]:
    """The best 100 of every query, by numpy."""
    for start in range(0, len(asked), 200):
        yield np.argpartition(asked[start : start + 200] @ corpus.T, -100, axis=1)[:, -100:]


if __name__ == "__main__":
    sys.exit(main())
