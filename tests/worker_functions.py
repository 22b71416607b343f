"""What worker processes of tests do; in a module of its own, because they import it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embark.models.encoder import Capabilities, Encoder, Tower, Towers
from embark.models.loading import Loading
from embark.seams import Loader
from embark.types import Array, Content, EmbarkError, ModelCard


def items() -> Callable[[tuple[str, Any]], Any]:
    """Works on items as they say: ("kill", signal), ("sleep", seconds), ("array", size)…"""
    return work


def work(item: tuple[str, Any]) -> Any:
    kind, value = item
    if kind == "kill":
        os.kill(os.getpid(), value)
        time.sleep(60)
    if kind == "exit":
        os._exit(value)
    if kind == "once":  # kills its first worker only
        if not Path(value).exists():
            Path(value).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value
    if kind == "sleep":
        time.sleep(value)
    if kind == "spin":  # holds the interpreter and its signals
        sum(range(value))
    if kind == "array":
        return np.arange(value, dtype=np.int64)
    if kind == "sum":
        return int(value.sum())
    if kind == "raise":
        raise value
    if kind == "odd":
        raise Odd(value)
    if kind == "open":
        Path(value).read_bytes()
    if kind == "ending":
        return Ending()
    if kind == "pid":
        return os.getpid()
    if kind == "modules":
        return sorted(sys.modules)
    return value


class Ending:
    """A result that ends whoever unpickles it."""

    def __reduce__(self) -> Any:
        return sys.exit, (3,)


class Odd(Exception):
    """An error whose class does not take what it keeps."""

    def __init__(self, rows: dict[int, str]) -> None:
        super().__init__("; ".join(rows.values()))
        self.rows = rows


def broken() -> Any:
    raise ValueError("no such model")


def deadly() -> Any:
    os._exit(7)


def dies_again(path: str) -> Any:
    """Starts once; whoever starts it again finds it broken."""
    if Path(path).exists():
        raise ValueError("the device is gone")
    Path(path).touch()
    return work


class Colours(Encoder):
    """Embeds texts by their letters; a text may say what becomes of the worker that embeds it."""

    def __init__(self, card: ModelCard, loading: Loading) -> None:
        self.card = replace(card, loaded={"device": loading.device})
        self.capabilities = Capabilities(batch_size=card.options.get("batch"))
        self.log = card.options.get("log")
        self.loading = loading

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        return {"text": contents[0].value, "letters": np.frombuffer(contents[0].value.encode(), np.uint8)}

    def embed(self, batch: Sequence[Any]) -> Array:
        texts = [item["text"] for item in batch]
        if self.log:
            with open(self.log, "a") as out:
                print(self.loading.device, os.getpid(), file=out)
        if "no memory" in texts and len(batch) > 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        if "deadly" in texts:
            os.kill(os.getpid(), signal.SIGSEGV)
            time.sleep(60)
        if "endless" in texts:
            time.sleep(600)
        if hangs := self.card.options.get("hangs"):  # the first copy that gets here, once
            with suppress(FileExistsError):
                Path(hangs).touch(exist_ok=False)
                time.sleep(600)
        time.sleep(self.card.options.get("seconds", 0) * len(batch))
        return np.stack([np.bincount(item["letters"], minlength=128)[:128] + 0.5 for item in batch]).astype(np.float32)


def load_colours(card: ModelCard, loading: Loading) -> Encoder:
    """A loader of models that are light enough for a test's worker processes."""
    if marks := card.options.get("gone"):  # a device that is lost with its first worker
        mark = Path(marks, loading.device)
        if loading.device in card.options["lost"] and mark.exists():
            raise RuntimeError(card.options.get("reason", f"{loading.device} has fallen off the bus"))
        mark.touch()
    return Colours(card, loading)


COLOURS = ModelCard("test/colours", "1", "colours", ("text",), dim=128, stored="float32")
LOADER = Loader("colours", "worker_functions:load_colours", torch=True)


def load_pixels(card: ModelCard, loading: Loading) -> Encoder:
    """A loader of models of pictures, which a card's option lets try, in vain, to have their pixels from a GPU."""

    def embed(rows: list[Array]) -> Array:
        return np.stack([row.reshape(-1, 3).mean(0) for row in rows]).astype(np.float32)

    def on_cuda() -> Tower:
        raise EmbarkError("nvJPEG is not installed")

    image = Tower(embed, pixels, on_cuda=on_cuda if card.options.get("plain") else None)
    return Towers(replace(card, loaded={"device": loading.device}), {"image": image})


PICTURED = ModelCard("test/pictured", "1", "pictured", ("image",), dim=3, stored="float32")
PIXELS_LOADER = Loader("pictured", "worker_functions:load_pixels", torch=True)


# Colours of pictures, by what their process does.
KILLS, STALLS, FAILS = (1, 2, 3), (4, 5, 6), (7, 8, 9)
DEATHS = {"SIGSEGV": KILLS, "SIGKILL": (1, 2, 4), "SIGILL": (1, 2, 5)}


def pixels(image: Any) -> Array:
    """The pixels of a picture, whose first one may say what becomes of its process."""
    color = image.getpixel((0, 0))
    for name, deadly in DEATHS.items():
        if color == deadly:
            os.kill(os.getpid(), signal.Signals[name])
            time.sleep(60)
    if color == STALLS:
        time.sleep(60)
    if color == FAILS:
        raise ValueError("an odd picture")
    return np.asarray(image)
