"""Half precision on CPUs that may trap its instructions.

Some virtual machines and sandboxes advertise Intel's AMX and trap it: bfloat16 and float16 on torch then end the
process by a signal, which cannot be caught. So a child process tries them first, and torch is switched to a mode in
which the child survives.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

from embark.models.device_names import devices
from embark.settings import cache_folder
from embark.types import EmbarkError

HALF = ("bfloat16", "float16")
USUAL, NO_ONEDNN, NO_FUSED, NONE = "as usual", "without oneDNN", "without oneDNN and fused attention", "not at all"
WAYS = (USUAL, NO_ONEDNN, NO_FUSED)  # in the order of their speed; fused attention calls MKL, which has AMX of its own
# For processes that are started from here: both libraries read them at their first use, which may lie behind us.
VARIABLES = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "MKL_ENABLE_INSTRUCTIONS": "AVX512_E3"}
TRIAL = "from embark.models.half_precision import trial; trial({way!r})"  # what the child process runs
LIMIT = 120.0  # time limit of the child in seconds; importing torch may take most of it
CPUINFO = Path("/proc/cpuinfo")
Outcome = Literal["survived", "died", "lost", "untried"]


def secure(dtype: str, device: str) -> dict[str, str]:
    """Make a precision safe to run on a device ("auto", "cpu", "cuda:0"…), before it first runs there.

    Returns what the card records: {"half precision": "without oneDNN, …"} where switches were set, else nothing.
    Nothing is tried for precisions and devices that cannot crash.
    """
    if dtype not in HALF:
        return {}
    if not devices(device)[0].startswith("cpu"):
        return {}
    way = _choose_way()
    if way == NONE:
        raise EmbarkError(
            f"{dtype} cannot run on this CPU: it ends the process, with and without oneDNN and fused attention. "
            "Use float32 (--dtype), or another device."
        )
    if way == USUAL:
        return {}
    switch(way)
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)
    return {"half precision": f"{way}, whose kernels are trapped on this CPU"}


def switch(way: str) -> None:
    """Set torch's switches for one of WAYS; they hold for the whole process, and at any time."""
    import torch

    if way != USUAL:
        torch.backends.mkldnn.enabled = False
    if way == NO_FUSED:
        torch.backends.cuda.enable_flash_sdp(False)  # of the CPU, too


def trial(way: str) -> None:
    """Run every kind of layer in half precision, large enough for the kernels that may be trapped."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a death that is expected leaves no core file behind
    switch(way)
    with torch.inference_mode():
        for dtype in (getattr(torch, name) for name in HALF):
            with suppress(RuntimeError):  # not every release has every layer in float16
                rows = torch.nn.Linear(512, 512, dtype=dtype)(torch.ones(256, 512, dtype=dtype))
                torch.bmm(rows[None], rows.T[None])
                torch.nn.Conv2d(64, 64, 3, dtype=dtype)(torch.ones(1, 64, 32, 32, dtype=dtype))
                heads = torch.ones(1, 4, 1024, 64, dtype=dtype)
                scaled_dot_product_attention(heads, heads, heads)


# ── choosing a way ───────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _choose_way() -> str:
    """The first way that a child process survives, or NONE; tried once per machine, with one warning per process."""
    if not _may_be_trapped():
        return USUAL
    machine = _machine()
    way = _read(machine) or _try_ways(machine)
    if way in (NO_ONEDNN, NO_FUSED):
        setting = " ".join(f"{name}={value}" for name, value in VARIABLES.items())
        warnings.warn(
            f"Half precision ends a process on this CPU, so torch runs {way}, which is slower. "
            f"--dtype float32 may be faster, and so may {setting} if set before the start.",
            stacklevel=3,
        )
    return way


def _may_be_trapped() -> bool:
    """Whether the CPU advertises AMX, by the operating system or by torch; True where that is not known."""
    import torch

    try:
        listed = "amx_" in CPUINFO.read_text(errors="replace")
    except OSError:
        return True
    advertised = getattr(torch.cpu, "_is_amx_tile_supported", bool)  # a sandbox's cpuinfo may lack it
    return bool(listed or advertised())


def _try_ways(machine: dict[str, str]) -> str:
    outcomes: list[Outcome] = []
    for way in WAYS:
        outcomes.append(_outcome(way))
        if outcomes[-1] in ("survived", "untried"):
            break
    else:
        way = NONE
    if {"survived", "died"}.issuperset(outcomes):  # other outcomes may be due to a busy machine: try again next time
        _write(machine, way)
    return way


def _outcome(way: str) -> Outcome:
    """The outcome of a child process that runs half precision this way."""
    import subprocess

    try:
        child = subprocess.run(
            [sys.executable, "-P", "-c", TRIAL.format(way=way)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "lost"
    except OSError:
        return "untried"
    if child.returncode in (-9, 137):  # killed from outside, such as when memory runs out
        return "lost"
    signalled = child.returncode < 0 or child.returncode >= 128
    return "died" if signalled else "untried" if child.returncode else "survived"


# ── what is known of a machine, on disk ──────────────────────────────────────────────────────────────────────────────


def _machine() -> dict[str, str]:
    """All that the outcome depends on: for another machine, CPU, system, torch or setting, the ways are tried again."""
    import torch

    cpu = platform.processor()
    with suppress(OSError):
        first = CPUINFO.read_text(errors="replace").partition("\n\n")[0]
        cpu = ", ".join(re.findall(r"^(?:vendor_id|cpu family|model|model name|stepping)\s*: (.*)", first, re.M)) or cpu
    return {
        "machine": platform.node(),
        "cpu": cpu,
        "system": platform.platform(),
        "torch": str(torch.__version__),
        **{name: os.environ.get(name, "") for name in (*VARIABLES, "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")},
    }


def _path(machine: dict[str, str]) -> Path:
    name = hashlib.sha256(json.dumps(machine).encode()).hexdigest()[:16]
    return cache_folder() / "embark" / "half-precision" / f"{name}.json"


def _read(machine: dict[str, str]) -> str | None:
    """The way that is recorded for this machine; a file with other content is ignored."""
    with suppress(OSError, ValueError):
        answer = json.loads(_path(machine).read_text(encoding="utf-8"))
        return next((way for way in (*WAYS, NONE) if answer == {**machine, "half precision": way}), None)
    return None


def _write(machine: dict[str, str], way: str) -> None:
    path = _path(machine)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with suppress(OSError):  # a folder that cannot be written to costs a trial a process
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps({**machine, "half precision": way}, indent=1), encoding="utf-8")
        part.replace(path)
