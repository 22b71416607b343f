"""What a recording consists of. A part is run by the real command line, in a home of its own."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

import hub as hubs
import recording
import rehearsal
import shown_data
from embark.items import emoji
from embark.models import LOADERS
from rehearsal.stage import Stage, stage

ROOT = Path(__file__).parents[2]
MODEL_TESTS = ROOT / "tests" / "models"
VISION = Path(sys.prefix) / "vision"  # libraries that make test-all installs apart
SAME_FOLDER = Path(tempfile.gettempdir()) / "embark-recording"
LONGEST = 1200  # seconds that a command may take
GROUPS = ("animals & nature", "flags", "food & drink")
OF_A_GROUP = 12  # emoji that a folder of own data has of each group


def families(hub: hubs.FakeHub, place: Stage, benchmark: str) -> None:
    """The rehearsal of a family: all its tasks, from a hub of this machine."""
    rehearsal.publish(hub, benchmark)
    _run(place, "rehearsal", "run", "-m", "embark/random", "-b", benchmark)


def pocket(hub: hubs.FakeHub, place: Stage) -> None:
    """What `make run` scores."""
    _run(place, "embark", "run")


def own(hub: hubs.FakeHub, place: Stage) -> None:
    """A user's data: classes in folders, a table, sounds, films, a TOML file with every evaluator, the hub, frames."""
    data = place.root / "data"
    shown_data.write(data)
    _class_folders(data / "classes")
    _table(data / "table")
    _sounds(data / "sounds")
    _films(data / "films")
    for folder in ("classes", "table", "sounds", "films"):
        _run(place, "embark", "run", "-m", "embark/pocket", "--folder", data / folder, *kinds(folder))
    _run(place, "embark", "run", "-m", "embark/pocket", "--tasks-file", data / "tasks.toml")
    pictures = [hubs.png(colour) for colour in ("red", "green", "blue", "white")]
    table = hubs.parquet({"image": pictures, "caption": ["a red page", "a green page", "a blue page", "a white page"]})
    hub.add("me/pages", {"data/test-00000-of-00001.parquet": table})
    _run(place, "embark", "run", "-m", "embark/pocket", "--dataset", "me/pages")
    _run(place, "recording.frames", data / "classes")


def models(hub: hubs.FakeHub, place: Stage) -> None:
    """What the models of the tests return: a tiny checkpoint for each loader family, and more."""
    found = place.root / "facts"
    found.mkdir()
    environment = {"EMBARK_RECORDING": str(found), "CI": "true", "PYTHONHASHSEED": "0"}  # the same examples each time
    # One process and one folder: names of folders are part of some fingerprints.
    words = ("--numprocesses", "0", "--basetemp", SAME_FOLDER, "-p", "recording.models", MODEL_TESTS)
    _run(place, "pytest", "-m", "not torchvision", *words, environment=environment)
    if not VISION.is_dir():
        raise SystemExit(f"The loaders open_clip and timm need {VISION}, which `make test-all` installs.")
    path = {"PYTHONPATH": os.pathsep.join([str(VISION), place.environment["PYTHONPATH"]])}
    _run(place, "pytest", "-m", "torchvision", *words, environment=environment | path)
    recorded = {fact.name.split()[0] for file in found.glob("*.parquet") for fact in recording.read(file)}
    if missing := unrecorded(recorded):
        raise SystemExit(f"No test of models ran a model of the loaders {', '.join(missing)}.")


def unrecorded(recorded: set[str]) -> list[str]:
    """The loader families that are not among the recorded ones; APIs have no checkpoint."""
    return [name for name, loader in LOADERS.items() if loader.type != "api" and name not in recorded]


def kinds(folder: str) -> tuple[str, ...]:
    """All kinds of tasks that a folder makes."""
    every = ("zeroshot", "probe") if folder == "classes" else ("retrieval", "reverse", "zeroshot", "probe")
    return tuple(word for kind in every for word in ("--kind", kind))


PARTS: dict[str, Callable[[hubs.FakeHub, Stage], None]] = {
    "own": own,
    "models": models,
    "pocket": pocket,
    **{
        benchmark: partial(families, benchmark=benchmark)
        for benchmark in ("MIEB(Multilingual)", "UniBench", "MMEB-V3", "OmniSET", "ARK")
    },
}


def record(names: list[str], folder: Path, say: Callable[[str], None] = print) -> Iterator[recording.Fact]:
    """The facts of these parts; they work in a folder, a home for each."""
    for number, name in enumerate(names):
        say(f"recording {name} …")
        with _hub() as hub:
            place = stage(hub, folder / str(number))
            PARTS[name](hub, place)
            yield from recording.facts(name, place.root / "results", place.root / "home" / "store")
            for path in place.root.glob("facts/*.parquet"):
                yield from recording.read(path)


@contextmanager
def _hub() -> Iterator[hubs.FakeHub]:
    served = hubs.FakeHub()
    served.page = 1000
    try:
        yield served
    finally:
        served.close()


def _run(place: Stage, module: str, *words: object, environment: Mapping[str, str] | None = None) -> None:
    """A module's command line in a process of its own; what it prints to standard error where it fails."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(
        command, cwd=ROOT if module == "pytest" else place.root, env={**place.environment, **(environment or {})},
        capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    if done.returncode > (module == "pytest"):  # tests that fail (1) do not hinder the recording
        printed = done.stdout[-2000:] + done.stderr
        raise SystemExit(f"{' '.join(command[2:])} ended with status {done.returncode}:\n{printed}")


# ── own data ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _symbols(group: str) -> list[emoji.Emoji]:
    return [symbol for symbol in emoji.untoned() if symbol.group.casefold() == group][:OF_A_GROUP]


def _class_folders(place: Path) -> None:
    """Emoji of three groups, a folder each."""
    for group in GROUPS:
        folder = place / group.partition(" ")[0]
        folder.mkdir(parents=True)
        for symbol in _symbols(group):
            (folder / f"{symbol.code}.png").write_bytes(symbol.art)


def _table(place: Path) -> None:
    """The same emoji in one folder, with captions and labels in a table."""
    place.mkdir(parents=True)
    with (place / "metadata.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "caption", "label"])
        for group in GROUPS:
            for symbol in _symbols(group):
                (place / f"{symbol.code}.png").write_bytes(symbol.art)
                table.writerow([f"{symbol.code}.png", symbol.name, group])


def _sounds(place: Path) -> None:
    """Noises in two classes, with captions."""
    place.mkdir(parents=True)
    rows = []
    for number in range(12):
        (place / f"{number}.wav").write_bytes(hubs.wav(220.0 * (1 + number % 2) + number))
        rows.append({"file": f"{number}.wav", "caption": f"tone {number}", "label": ("low", "high")[number % 2]})
    (place / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _films(place: Path) -> None:
    """Films of one second in two classes, with captions: a square of light moves to the right, or down."""
    import av

    place.mkdir(parents=True)
    rows = []
    for number in range(12):
        with av.open(str(place / f"{number}.mp4"), "w") as container:
            stream = container.add_stream("mpeg4", rate=8)
            stream.width, stream.height, stream.pix_fmt, stream.thread_count = 64, 64, "yuv420p", 1
            for step in range(8):
                pixels = np.full((64, 64, 3), 8 * number, np.uint8)
                across, down = (6 * step, 24) if number % 2 else (24, 6 * step)
                pixels[down : down + 16, across : across + 16] = 255
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels)))
            container.mux(stream.encode())
        label = ("down", "right")[number % 2]
        rows.append({"file": f"{number}.mp4", "caption": f"{label} {number}", "label": label})
    (place / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
