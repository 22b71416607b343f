"""Devices, precision, padding and pooling, as all models that run on torch share them."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np

from embark.models.compilation import note
from embark.models.device_names import JOINED, devices
from embark.models.graphs import give_up_graphs
from embark.models.half_precision import secure
from embark.models.loading import Loading
from embark.models.tokens import Tokens
from embark.threads import held_in_common
from embark.types import Array, EmbarkError, ModelCard

FILLED = 0.85  # of a GPU's free memory, by weights: the rest is for batches
Function = TypeVar("Function", bound=Callable[..., Any])


def split_options(device: str, model: str) -> dict[str, Any]:
    """What transformers must know to put a model on several devices at once; nothing for one device."""
    names = device.split(JOINED)
    if len(names) == 1:
        return {}
    if find_spec("accelerate") is None:
        raise EmbarkError(f"{model} on several devices needs accelerate: pip install accelerate.")
    import torch

    room: dict[int | str, int] = {}
    for name in names:
        place = torch.device(name)
        if place.type == "cuda":
            room[place.index or 0] = int(FILLED * torch.cuda.mem_get_info(place)[0])
        else:
            room[place.type] = 1 << 50
    return {"device_map": "auto", "max_memory": room}


def to_device(model: Any, card: ModelCard, loading: Loading) -> Any:
    """The module on its device, in its precision, without dropout or gradients; compiled if `loading` says so."""
    import torch

    secure(card.dtype, loading.device)
    if card.dtype == "float32":
        torch.backends.cudnn.allow_tf32 = False  # or patches would be embedded in ten bits, on GPUs alone
    device = devices(loading.device)[0]
    if JOINED in device:
        if getattr(model, "hf_device_map", None) is None:
            raise EmbarkError(f"{card.name} cannot stand on several devices at once ({device}): name one.")
    else:
        model = model.to(device)
    model = model.eval().requires_grad_(False)
    for weight in model.state_dict(keep_vars=True).values():
        # Weights alone: what a model computes for itself stays exact. Rotary frequencies in half precision would turn
        # the thousandth token by another angle.
        if weight.is_floating_point():
            weight.data = weight.data.to(getattr(torch, card.dtype))
    compile_module(model, loading)
    return model


def release_weights(model: Any, loading: Loading) -> None:
    """Let go of a module's weights, if `loading` says so: for models that tell some of their facts by a pass."""
    if not loading.weights:
        model.to("meta")  # torch's device for tensors without memory


def compile_module(module: Any, loading: Loading) -> None:
    """Compile a module in place, if `loading` says so; with "auto", note it for the engine, which tries if it pays."""
    if loading.compile == "auto":
        note(module)
    elif loading.compile:
        module.compile()  # methods and names stay as they are


def compile_children(model: Any, loading: Loading) -> None:
    """Compile each child module.

    Needed where vectors are computed without calling `forward`: compiling the whole model covers `forward` alone.
    """
    for child in model.children():
        compile_module(child, loading)


def free_device_memory() -> None:
    """Give back what torch keeps of a device's memory for later; nothing where torch was not used."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        give_up_graphs()
        torch.cuda.empty_cache()


def without_gradients(function: Function) -> Function:
    """The function in torch's inference mode."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        import torch

        with torch.inference_mode():
            return function(*args, **kwargs)

    return run  # type: ignore[return-value]


@held_in_common
@contextmanager
def varying_shapes() -> Iterator[None]:
    """A block in which attention on CUDA is not computed by cuDNN, which plans each new shape for long, and that again
    in every thread: batches of texts rarely have the same shape twice.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.backends.cuda.cudnn_sdp_enabled():
        yield
        return
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)


def to_numpy(tensor: Any) -> Array:
    """The tensor as a numpy array of float32, as numpy has no bfloat16.

    From a GPU it comes in its own precision, by memory that the device can write to by itself, and other streams go on.
    """
    tensor = tensor.detach()
    if tensor.is_cuda:
        import torch

        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        torch.cuda.current_stream(tensor.device).synchronize()
        tensor = host
    return np.asarray(tensor.cpu().float().numpy())


_free_streams: dict[str, SimpleQueue[Any]] = defaultdict(SimpleQueue)  # by device


@contextmanager
def own_stream(device: str) -> Iterator[None]:
    """A block whose work on a CUDA device runs in a stream of its own, beside that of other threads.

    One stream serves many blocks, one after the other: torch keeps the memory of each stream for itself, and it takes
    long to ask the device for more. Elsewhere, and where this process has not used CUDA, it changes nothing.
    """
    torch = sys.modules.get("torch")
    if torch is None or not device.startswith("cuda") or JOINED in device or not torch.cuda.is_initialized():
        yield
        return
    free = _free_streams[device]
    try:
        stream = free.get_nowait()
    except Empty:
        stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.default_stream(device))  # weights may still be on their way
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        free.put(stream)


def stack(rows: Sequence[Any], model: Any) -> Any:
    """Arrays of one shape as one tensor on the model's device; floats in its precision, integers as they are."""
    import torch

    first = np.asarray(rows[0])
    dtype = torch.from_numpy(np.empty(0, first.dtype)).dtype
    pinned = model.device.type == "cuda"  # memory that the device can fetch from by itself
    tensor = torch.empty((len(rows), *first.shape), dtype=dtype, pin_memory=pinned)
    np.stack(rows, out=tensor.numpy())
    moved = tensor.to(model.device, non_blocking=pinned)
    return moved.to(model.dtype) if moved.is_floating_point() else moved


def pad(rows: Sequence[Sequence[int]], value: int, side: str, device: str | Any) -> tuple[Any, Any]:
    """(ids, mask) of token lists of unequal length, padded on one side."""
    import torch

    tokens = rows if isinstance(rows, Tokens) else Tokens.of(rows)
    lengths = tokens.lengths[:, None]
    longest = int(lengths.max())
    positions = np.arange(longest)
    filled = positions < lengths if side == "right" else positions >= longest - lengths
    ids = np.full(filled.shape, value)
    ids[filled] = tokens.flat

    def send(array: Array) -> Any:
        tensor = torch.from_numpy(array)
        if torch.device(device).type != "cuda":
            return tensor.to(device)
        return tensor.pin_memory().to(device, non_blocking=True)  # the device fetches it by itself

    return send(ids), send(filled).long()


# ── pooling: (batch, tokens, width) and a mask → (batch, width), whichever side the padding is on ────────────────────


def last_token(hidden: Any, mask: Any) -> Any:
    """The state of the last token that is no padding."""
    import torch

    last = mask.shape[1] - 1 - mask.flip(1).argmax(1)
    return hidden[torch.arange(len(hidden), device=hidden.device), last]


def first_token(hidden: Any, mask: Any) -> Any:
    """The state of the first token that is no padding."""
    import torch

    return hidden[torch.arange(len(hidden), device=hidden.device), mask.argmax(1)]


def mean_token(hidden: Any, mask: Any) -> Any:
    """The mean over tokens that are no padding, in float32: sums in half precision lose digits."""
    weight = mask.unsqueeze(-1).float()
    return (hidden.float() * weight).sum(1) / weight.sum(1).clamp(min=1)


POOLING: dict[str, Callable[[Any, Any], Any]] = {"last": last_token, "first": first_token, "mean": mean_token}
