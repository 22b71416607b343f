"""Item by item, UniBench's own Evaluator gives what ours do on the same data and with the same toy model.

UniBench runs in a process of its own (unibench_peer.py), with what `make test-all` installs in .venv/unibench.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from embark.models.encoder import Tower, Towers
from embark.models.pixels import styled_preparations
from embark.tasks import TASKS
from embark.types import Array, ModelCard, Task
from hub import FakeHub
from samples_unibench import lists, npy, shards
from unibench_toy import DIM, picture_vectors, text_vectors

HERE = Path(__file__).parent
FOLDERS = [Path(sys.prefix) / name for name in ("unibench", "vision")]  # of UniBench, and of torchvision for it
SAVED = 6e-5  # UniBench saves numbers with four decimals
SAMPLES = 60
TEMPLATES = ("a photo of a {}.", "{}", "a BAD  photo of the {}, seen by_night.")
LETTERS = list("abcdefghijklmnopqrstuvwxyz ABC,.!_")
Sample = Mapping[str, bytes]


def picture(rng: np.random.Generator, number: int) -> bytes:
    """A picture of soft shapes in any size; every seventh in another mode, turned, or encoded otherwise."""
    width, height = (int(side) for side in rng.integers(30, 420, 2))
    shapes = rng.integers(0, 256, (5, 4, 3)).astype(np.uint8)
    image = Image.fromarray(shapes).resize((width, height), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    exif = Image.Exif()
    match number % 14:
        case 0:
            exif[0x0112] = 1 + number // 14 % 8
            image.save(out, "WEBP", lossless=True, exif=exif)
        case 2:
            image.putalpha(Image.fromarray(shapes[..., 0]).resize(image.size))
            image.save(out, "WEBP", lossless=True, exact=True)
        case 4:
            image.convert("CMYK").save(out, "JPEG")
        case 6:
            image.convert("P", palette=Image.Palette.ADAPTIVE, colors=9).save(out, "PNG", transparency=3)
        case 8:
            image.convert("LA").save(out, "PNG")
        case 10:
            image.resize((224, 224 + number)).save(out, "WEBP", lossless=True)
        case _:
            image.save(out, "WEBP", lossless=True)
    return out.getvalue()


def classified(rng: np.random.Generator, classes: int, several: bool) -> list[Sample]:
    """Pictures with a class, or with one to three classes, of which one may stand twice; told of them is a split."""
    samples = []
    for number in range(SAMPLES):
        sample = {"0.webp": picture(rng, number)}
        if several:
            labels = rng.integers(0, classes, rng.integers(1, 4)).tolist()
            sample |= {"npy": npy(labels), "split.txt": ("fog", "snow")[number % 2].encode()}
        else:
            sample |= {"cls": str(rng.integers(0, classes)).encode()}
        samples.append(sample)
    return samples


def captioned(rng: np.random.Generator, images: int, captions: int) -> list[Sample]:
    """Pictures with captions; in every sixth sample two captions, in every seventh both pictures are the same."""
    samples = []
    for number in range(SAMPLES):
        texts = ["".join(rng.choice(LETTERS, 12)) for _ in range(captions)]
        if number % 6 == 0:
            texts[-1] = texts[0]
        shown = [picture(rng, number + place) for place in range(images)]
        if number % 7 == 0:
            shown = shown[:1] * images
        files = {f"{place}.webp": data for place, data in enumerate(shown)}
        samples.append(files | {"npy": npy(texts), "split.txt": b"swap\nobject"})
    return samples


def names(classes: int) -> list[str]:
    """Names of classes: one is empty, two are the same."""
    return ["", *(f"thing {number}" for number in range(1, classes - 1)), "thing 1"]


@dataclass(frozen=True)
class Case:
    """A benchmark: its data, and what UniBench saves under the names of our outcomes."""

    samples: Callable[[np.random.Generator], Sequence[Sample]]
    outcomes: Mapping[str, str]
    classes: int = 0


ZEROSHOT = {
    "accuracy": "correctness", "top5_accuracy": "correctness_top5", "predicted": "predictions",
    "probability": "confidence", "entropy": "entropy",
}  # fmt: skip
# Of sets with fewer than five classes, UniBench saves as prediction a place in the batch, not a class.
FEW_CLASSES = {name: column for name, column in ZEROSHOT.items() if name != "predicted"}
CAPTIONS = {"text_acc": "correctness"}
GROUP = {"accuracy": "correctness", "text_acc": "text_correctness", "image_acc": "image_correctness"}
CASES = {
    "cifar10": Case(lambda rng: classified(rng, 10, False), ZEROSHOT, 10),
    "pcam": Case(lambda rng: classified(rng, 2, False), FEW_CLASSES, 2),
    "imagenet9": Case(lambda rng: classified(rng, 12, True), ZEROSHOT, 12),
    "imagenetc": Case(lambda rng: classified(rng, 12, True), ZEROSHOT, 12),
    "sugarcrepe": Case(lambda rng: captioned(rng, 1, 2), CAPTIONS),
    "coco_order": Case(lambda rng: captioned(rng, 1, 5), CAPTIONS),
    "winoground": Case(lambda rng: captioned(rng, 2, 2), GROUP),
}


def files_of(name: str, samples: Sequence[Sample]) -> dict[str, bytes]:
    """The files of a benchmark's data set; twelve shards, so that their order by name is not that of their numbers."""
    classes = CASES[name].classes
    return {**shards(samples, SAMPLES // 12), **(lists(names(classes), TEMPLATES) if classes else {})}


@pytest.fixture(scope="module")
def samples() -> dict[str, Sequence[Sample]]:
    return {
        name: case.samples(np.random.default_rng([29, number])) for number, (name, case) in enumerate(CASES.items())
    }


@pytest.fixture(scope="module")
def saved(samples: Mapping[str, Sequence[Sample]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What UniBench saves: rows of items by benchmark, and the mean of each."""
    if missing := [str(folder) for folder in FOLDERS if not folder.is_dir()]:
        pytest.skip(f"`make test-all` installs UniBench and torchvision in {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("unibench")
    for name in CASES:
        for path, content in files_of(name, samples[name]).items():
            place = folder / "data" / row(name).source.id.rpartition("/")[2] / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    environment = os.environ | dict.fromkeys(("HOME", "HF_HOME", "UNIBENCH_HUB", "TORCH_HOME"), str(folder))
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, [*FOLDERS, HERE])), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, HERE / "unibench_peer.py", folder, *CASES]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads((folder / "saved.json").read_text())
    return answer


def row(name: str) -> Task:
    """The row of a benchmark, whose data is smaller here."""
    return replace(TASKS[f"UniBench/{name}"], rows={})


def toy() -> Towers:
    """The toy model as a card says how UniBench ran it: with OpenAI's pixels."""
    card = ModelCard(
        "test/toy", "1", "functions", ("text", "image"), DIM, stored="float32",
        styles={"UniBench": {"pixels": "openai-224"}},
    )  # fmt: skip

    def pictures(rows: list[Any]) -> Array:
        return picture_vectors(np.stack([row["pixel_values"] for row in rows]))

    towers = {"text": Tower(text_vectors), "image": Tower(pictures, styled=styled_preparations(card))}
    return Towers(card, towers)  # type: ignore[arg-type]


def labels_of(sample: Sample) -> list[int]:
    """The classes of a sample, as its file has them."""
    return np.load(io.BytesIO(sample["npy"])).tolist() if "npy" in sample else [int(sample["cls"])]


def may_differ(name: str, outcome: str, sample: Sample) -> bool:
    """Whether UniBench is known to save something else for an item, or has no rule for it.

    - Two classes of one name tie. torch's topk has no order for ties; here the lower number is first.
    - UniBench joins labels and its top 5 bit by bit (2 and 1 is 0): a label that stands twice is never in its top 5.
    """
    if outcome not in ("accuracy", "top5_accuracy") or not CASES[name].classes:
        return False
    labels = labels_of(sample)
    tied = bool({1, CASES[name].classes - 1} & {*labels}) and CASES[name].classes > 2
    return tied or (outcome == "top5_accuracy" and len({*labels}) < len(labels))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_item_is_as_in_unibench(
    saved: Mapping[str, Any], samples: Mapping[str, Sequence[Sample]], hub: FakeHub, name: str
) -> None:
    task = row(name)
    pinned = "" if task.source.revision == "main" else task.source.revision
    hub.add(task.source.id, files_of(name, samples[name]), pinned)
    [result] = embark.evaluate(toy(), [task], show_progress=False).results
    outcomes = result.outcomes()
    theirs = {int(item["image_name"].removeprefix("s")): item for item in saved["rows"][name]}
    numbers = [int(id) // task.options.get("images", 1) for id in outcomes["id"].to_pylist()]
    assert numbers == sorted(theirs) == list(range(SAMPLES))
    different = {}
    for outcome, column in CASES[name].outcomes.items():
        for number, ours in zip(numbers, outcomes[outcome].to_pylist(), strict=True):
            wanted = theirs[number][column]
            same = ours == names(CASES[name].classes)[wanted] if outcome == "predicted" else abs(ours - wanted) < SAVED
            if not same and not may_differ(name, outcome, samples[name][number]):
                different[outcome, number] = ours, wanted
    assert not different, f"ours and UniBench's, by outcome and item: {different}"
    assert 0 < result.score < 1, "a score that any model has shows nothing"
    assert result.score == pytest.approx(saved["means"][name], abs=SAVED)
