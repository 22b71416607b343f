"""The devices of this machine by name."""

from __future__ import annotations

import os
from collections.abc import Sequence

from embark.types import EmbarkError

CONNECTIONS = "32"  # queues of a GPU, of which CUDA uses 8: streams that share one wait for each other
JOINED = "+"  # between the devices of one copy


def devices(wanted: str) -> tuple[str, ...]:
    """The names of the devices wanted; "auto" is every CUDA device, else Apple's, else the CPU.

    "cuda:0+cuda:1" is one device of several, for a model that is larger than each; "split" joins all CUDA devices.
    """
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", CONNECTIONS)  # which CUDA reads when it is first used
    import torch

    if wanted not in ("auto", "split"):
        names = tuple(name.strip() for name in wanted.split(","))
        for name in (part for whole in names for part in whole.split(JOINED)):
            try:
                torch.empty(0, device=name)
            except (RuntimeError, AssertionError) as error:
                reason = str(error).splitlines()[0]
                raise EmbarkError(f"There is no device '{name}' to use here ({reason}); try cpu.") from error
        return names
    if torch.cuda.is_available():
        names = tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
        return names if wanted == "auto" else (JOINED.join(names),)
    return ("mps",) if torch.backends.mps.is_available() else ("cpu",)


def joined(names: Sequence[str], gpus: int, model: str) -> tuple[str, ...]:
    """GPUs joined so many at a time, for a model that needs them; other devices stay as they are."""
    if gpus < 2 or not names[0].startswith("cuda"):
        return tuple(names)
    if len(names) < gpus:
        raise EmbarkError(f"{model} needs {gpus} GPUs for one copy, and there are {len(names)} here.")
    return tuple(JOINED.join(names[start : start + gpus]) for start in range(0, len(names) - gpus + 1, gpus))
