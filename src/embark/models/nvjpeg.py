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
from threading import Lock
from typing import Any

import numpy as np

from embark.types import EmbarkError, Encoded

HARDWARE, ANY = 3, 0  # which part of the GPU decodes: its JPEG engines, or whatever it has
PLANES = 1  # the output: Y, Cb and Cr as they are stored
NO_MEMORY = 5  # a status


class Refused(RuntimeError):
    """A batch that nvJPEG does not decode, for one of its pictures."""


class Decoder:
    """nvJPEG on one CUDA device: one batch at a time, whichever thread brings it."""

    def __init__(self, device: Any) -> None:
        import torch

        self._library = library()
        self._handle = ctypes.c_void_p()
        self._state = ctypes.c_void_p()
        self._count = 0
        self._lock = Lock()
        with torch.cuda.device(device):
            torch.cuda.init()
            handle = ctypes.byref(self._handle)
            if self._library.nvjpegCreateEx(HARDWARE, None, None, 0, handle):
                _check(self._library.nvjpegCreateEx(ANY, None, None, 0, handle))
            _check(self._library.nvjpegJpegStateCreate(self._handle, ctypes.byref(self._state)))

    def __call__(self, jpegs: Sequence[Encoded], device: Any) -> list[Any]:
        """Planes (3, height, width) of bytes for each picture, on the device; color fills as much as it has."""
        import torch

        pinned, places = _gathered([jpeg.data for jpeg in jpegs])  # which the device reads by itself
        sizes = np.array([jpeg.size for jpeg in jpegs], np.uint64)
        areas = sizes[:, 0] * sizes[:, 1]
        out = torch.empty(3 * int(areas.sum()), dtype=torch.uint8, device=device)
        goals = np.zeros((len(jpegs), 8), np.uint64)  # addresses of four planes, then the bytes of their lines
        goals[:, 0] = out.data_ptr() + 3 * (np.cumsum(areas) - areas)
        goals[:, 1] = goals[:, 0] + areas
        goals[:, 2] = goals[:, 1] + areas
        goals[:, 4:7] = sizes[:, :1]
        lengths = np.array([len(jpeg.data) for jpeg in jpegs], np.uint64)
        stream = torch.cuda.current_stream(device)
        with self._lock, torch.cuda.device(device):
            if self._count != len(jpegs):
                self._count = 0
                _check(self._library.nvjpegDecodeBatchedInitialize(self._handle, self._state, len(jpegs), 1, PLANES))
                self._count = len(jpegs)
            try:
                status = self._library.nvjpegDecodeBatched(
                    self._handle, self._state, *(array.ctypes.data for array in (places, lengths, goals)),
                    stream.cuda_stream,
                )  # fmt: skip
            finally:
                stream.synchronize()  # it reads the pinned memory, and its own, until then
            if status:
                self._count = 0
        _check(status)
        del pinned
        planes = out.split((3 * areas).astype(np.int64).tolist())
        return [plane.view(3, *jpeg.size[::-1]) for plane, jpeg in zip(planes, jpegs, strict=True)]


@cache
def library() -> Any:
    """The library, of torchvision, of torch or of CUDA."""
    for path in _candidates():
        try:
            nvjpeg = ctypes.CDLL(path)
        except OSError:
            continue
        pointer = ctypes.c_void_p
        number = ctypes.c_int
        nvjpeg.nvjpegCreateEx.argtypes = [number, pointer, pointer, ctypes.c_uint, pointer]
        nvjpeg.nvjpegJpegStateCreate.argtypes = [pointer, pointer]
        nvjpeg.nvjpegDecodeBatchedInitialize.argtypes = [pointer, pointer, number, number, number]
        nvjpeg.nvjpegDecodeBatched.argtypes = [pointer] * 6
        return nvjpeg
    raise EmbarkError("nvJPEG is not installed, which decodes them; torchvision brings it: pip install torchvision")


def _candidates() -> Iterator[str]:
    for folder in map(Path, sys.path):
        for pattern in ("torchvision.libs/libnvjpeg*.so*", "nvidia/*/lib/libnvjpeg.so*"):
            yield from map(str, sorted(folder.glob(pattern)))
    if name := find_library("nvjpeg"):
        yield name


def _gathered(data: Sequence[bytes]) -> tuple[Any, Any]:
    """The bytes of all pictures in one piece of pinned memory, and the address of each."""
    import torch

    lengths = np.array([len(jpeg) for jpeg in data])
    ends = np.cumsum(lengths)
    pinned = torch.empty(int(ends[-1]), dtype=torch.uint8, pin_memory=True)
    room = pinned.numpy()
    for jpeg, end in zip(data, ends.tolist(), strict=True):
        room[end - len(jpeg) : end] = np.frombuffer(jpeg, np.uint8)
    return pinned, (pinned.data_ptr() + ends - lengths).astype(np.uint64)


def _check(status: int) -> None:
    if status == NO_MEMORY:
        raise MemoryError("nvJPEG has not enough memory on the device")
    if status:
        raise Refused(f"nvJPEG: status {status}")
