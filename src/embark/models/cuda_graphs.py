"""A model's pass on a CUDA device as a graph: what it launches is recorded once, and launched in one call after that.

A thread gives up Python's lock at each of the hundreds of launches of a pass, and beside threads that prepare items it
waits for the lock each time. The kernels are the same, and so are the numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock, local
from typing import Any

logger = logging.getLogger("embark")
SEEN = 3  # passes of one shape in a thread before they are recorded: libraries choose their kernels in the first
MOST = 2  # graphs of a thread, each of which keeps the memory of its pass
RECORDING = Lock()  # one thread at a time


class Graphed:
    """`function`, from tensors by name to one tensor; shapes that come again and again in a thread become graphs.

    Only threads with a stream of their own record (see `own_stream`), and nobody does while `as_it_is()` is true. What
    cannot be recorded runs as it is.
    """

    def __init__(self, function: Callable[..., Any], as_it_is: Callable[[], bool] = lambda: False) -> None:
        self._function = function
        self._as_it_is = as_it_is
        self._own = local()  # a thread's graphs end with it

    def __call__(self, **inputs: Any) -> Any:
        """The function's tensor."""
        if self._as_it_is() or not all(map(_is_on_own_stream, inputs.values())):
            return self._function(**inputs)
        key = tuple((name, tensor.shape, tensor.dtype, tensor.device) for name, tensor in inputs.items())
        graphs: dict[Hashable, _Graph | int] = vars(self._own).setdefault("graphs", {})
        graph = graphs.get(key, 0)
        if isinstance(graph, _Graph):
            return graph(inputs)
        graphs[key] = graph + 1
        if graph + 1 == SEEN and sum(isinstance(other, _Graph) for other in graphs.values()) < MOST:
            try:
                graphs[key] = _Graph(self._function, inputs)
            except Exception as error:  # it waits for the device, has not enough memory…
                reason = str(error).strip().partition("\n")[0]
                logger.info("Passes of this model cannot be recorded as graphs: %s", reason)
        return self._function(**inputs)


class _Graph:
    """The recorded launches of one pass, and the tensors that they read and write."""

    def __init__(self, function: Callable[..., Any], inputs: dict[str, Any]) -> None:
        import torch

        self._inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        self._graph = torch.cuda.CUDAGraph()
        with RECORDING:
            self._graph.capture_begin(capture_error_mode="thread_local")  # other threads go on
            try:
                self._output = function(**self._inputs)
            except BaseException:
                with suppress(Exception):
                    self._graph.capture_end()
                raise
            self._graph.capture_end()

    def __call__(self, inputs: dict[str, Any]) -> Any:
        for name, tensor in inputs.items():
            self._inputs[name].copy_(tensor)
        self._graph.replay()
        return self._output.clone()  # the next pass writes to the same place


def _is_on_own_stream(tensor: Any) -> bool:
    import torch

    if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
        return False
    return bool(torch.cuda.current_stream(tensor.device) != torch.cuda.default_stream(tensor.device))
