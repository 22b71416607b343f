"""nvJPEG, the JPEG decoder of NVIDIA's GPUs, by its C functions: planes of brightness and color of whole batches.

torchvision brings the library along, but offers only colors that nvJPEG mixes in its own way. The planes themselves are
those of libjpeg, byte by byte.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from embark.types import Array, EmbarkError, Encoded

HARDWARE, ANY = 3, 0  # which part of the GPU decodes: its JPEG engines, or whatever it has
PLANES = 1  # the output: Y, Cb and Cr as they are stored
NO_MEMORY = 5  # a status
AT_ONCE = 2  # batches: while the engines decode one, the CPU copies the bytes of the other


class JpegsRefused(RuntimeError):
    """A batch that nvJPEG does not decode, for one of its pictures."""


class Decoder:
    """nvJPEG on one CUDA device, for whichever thread brings a batch; two batches at a time, as more are refused."""

    def __init__(self, device: Any) -> None:
        import torch

        self._library = library()
        self._free: SimpleQueue[_State] = SimpleQueue()
        with torch.cuda.device(device):
            torch.cuda.init()
            for _ in range(AT_ONCE):
                self._free.put(_State(self._library))

    def __call__(self, jpegs: Sequence[Encoded], device: Any) -> tuple[Any, Array]:
        """(planes, starts): Y, Cb and Cr of all pictures on the device, in one piece, and where each begins there.

        Every plane has the room of the whole picture; color fills as much of it as it has, top left.
        """
        import torch

        sizes = np.array([jpeg.size for jpeg in jpegs])
        areas = sizes[:, 0] * sizes[:, 1]
        starts = 3 * (np.cumsum(areas) - areas)
        out = torch.empty(3 * int(areas.sum()), dtype=torch.uint8, device=device)
        goals = np.zeros((len(jpegs), 8), np.uint64)  # addresses of four planes, then the bytes of their lines
        for plane in range(3):
            goals[:, plane] = out.data_ptr() + starts + plane * areas
            goals[:, 4 + plane] = sizes[:, 0]
        lengths = np.array([len(jpeg.data) for jpeg in jpegs], np.uint64)
        data = np.array([_address(jpeg.data) for jpeg in jpegs], np.uint64)  # nothing is copied
        stream = torch.cuda.current_stream(device)
        state = self._free.get()
        try:
            with torch.cuda.device(device):
                status = state.decode(data, lengths, goals, stream)
        finally:
            self._free.put(state)
        _check(status)
        return out, starts


class _State:
    """What nvJPEG needs to decode one batch after the other."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self._state = ctypes.c_void_p()
        self._count = 0  # of the pictures that it is set up for
        handle = ctypes.byref(self._handle)
        if library.nvjpegCreateEx(HARDWARE, None, None, 0, handle):
            _check(library.nvjpegCreateEx(ANY, None, None, 0, handle))
        _check(library.nvjpegJpegStateCreate(self._handle, ctypes.byref(self._state)))

    def decode(self, data: Array, lengths: Array, goals: Array, stream: Any) -> int:
        """Decode a batch, and wait until it is done; returns the status."""
        status = 0
        if self._count != len(data):
            status = self._library.nvjpegDecodeBatchedInitialize(self._handle, self._state, len(data), 1, PLANES)
        if not status:
            status = self._library.nvjpegDecodeBatched(
                self._handle, self._state, data.ctypes.data, lengths.ctypes.data, goals.ctypes.data, stream.cuda_stream
            )
            stream.synchronize()  # it reads the bytes until then
        self._count = 0 if status else len(data)
        return int(status)


@cache
def library() -> Any:
    """The library, of torchvision, of torch or of CUDA."""
    for path in _candidates():
        pointer = ctypes.c_void_p
        number = ctypes.c_int
        try:
            nvjpeg = ctypes.CDLL(path)
            nvjpeg.nvjpegCreateEx.argtypes = [number, pointer, pointer, ctypes.c_uint, pointer]
            nvjpeg.nvjpegJpegStateCreate.argtypes = [pointer, pointer]
            nvjpeg.nvjpegDecodeBatchedInitialize.argtypes = [pointer, pointer, number, number, number]
            nvjpeg.nvjpegDecodeBatched.argtypes = [pointer] * 6
        except (OSError, AttributeError):  # it needs another system, or is too old to have these functions
            continue
        return nvjpeg
    raise EmbarkError("nvJPEG is not installed, which decodes them; torchvision brings it: pip install torchvision")


def _candidates() -> Iterator[str]:
    for folder in map(Path, sys.path):
        for pattern in ("torchvision.libs/libnvjpeg*.so*", "nvidia/*/lib/libnvjpeg.so*"):
            yield from map(str, sorted(folder.glob(pattern)))
    if name := find_library("nvjpeg"):
        yield name


def _address(data: bytes | memoryview) -> int:
    return int(np.frombuffer(data, np.uint8).__array_interface__["data"][0])


def _check(status: int) -> None:
    if status == NO_MEMORY:
        raise MemoryError("nvJPEG has not enough memory on the device")
    if status:
        raise JpegsRefused(f"nvJPEG: status {status}")
