"""CUDA graphs: a model's pass that is launched in one call instead of hundreds.

Between any two launches a thread may lose Python's interpreter to another one, as threads prepare and plan the next
batches meanwhile: the 276 operations of a ViT-B/32 took 8 ms to launch alone, 43 beside one busy thread, 150 beside
three.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakSet

logger = logging.getLogger("embark")
WORTH_IT = 1024  # items in batches of one shape after which it gets a graph: making one takes as long as a few passes
MOST_GRAPHS = 8  # graphs of one pass

Pass = Callable[[Any], Any]  # a tensor → a tensor
_made: WeakSet[Graphs] = WeakSet()


class Graphs:
    """A pass over a tensor on a CUDA device, as a graph for shapes that come again and again; any thread may call it.

    The numbers stay the same: a graph whose result is not that of the pass itself, bit by bit, is not used. There are
    none on other devices, nor while a module is compiled.
    """

    def __init__(self, function: Pass, model: Any) -> None:
        self._function = function
        self._modules = (model, *model.children())  # those that can be compiled, also in the middle of a run
        self._lock = Lock()
        self._items: Counter[tuple[int, ...]] = Counter()  # by shape, before it has a graph
        self._graphs: dict[tuple[int, ...], Pass] = {}
        self._recorder: Recorder | None = None
        self._given_up = False
        _made.add(self)

    def __call__(self, tensor: Any) -> Any:
        """The result of the pass, in the current stream."""
        if self._given_up or not tensor.is_cuda or self._compiled():
            return self._function(tensor)
        shape = tuple(tensor.shape)
        with self._lock:
            if graph := self._graphs.get(shape):
                return graph(tensor)
            before = self._items[shape]
            self._items[shape] += len(tensor)
        out = self._function(tensor)
        if before < WORTH_IT <= before + len(tensor):
            self._record(shape, tensor, out)
        return out

    def give_up(self) -> None:
        """Let go of all graphs and their memory, for good."""
        with self._lock:
            self._given_up = True
            self._graphs.clear()
            self._recorder = None

    def _compiled(self) -> bool:
        return any(getattr(module, "_compiled_call_impl", None) is not None for module in self._modules)

    def _record(self, shape: tuple[int, ...], tensor: Any, out: Any) -> None:
        """Make the graph of a shape, unless the pass cannot be recorded, or the graph's result is another."""
        import torch

        with self._lock:
            if self._given_up or len(self._graphs) == MOST_GRAPHS:
                return
            try:
                self._recorder = self._recorder or Recorder()
                graph = self._recorder.record(self._function, tensor)
                if torch.equal(graph(tensor), out):
                    self._graphs[shape] = graph
                    return
                reason = "its result would differ"
            except Exception as error:  # the pass waits for the device, memory does not suffice…
                reason = str(error).strip().partition("\n")[0] or type(error).__name__
        self.give_up()
        logger.info("The model's passes over %s are launched without CUDA graphs: %s", shape, reason)


def give_up_graphs() -> None:
    """Let go of the memory that graphs hold on their devices, because it does not suffice for other things."""
    for graphs in list(_made):
        graphs.give_up()


class Recorder:
    """Records graphs that share one piece of memory, so that one of them runs at a time, in whatever stream."""

    def __init__(self) -> None:
        import torch

        self._pool = torch.cuda.graph_pool_handle()
        self._free = torch.cuda.Event()  # when the latest run is over

    def record(self, function: Pass, tensor: Any) -> Pass:
        """The graph of a pass over tensors like this one; one thread may call it at a time."""
        import torch

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device_of(tensor):
            own = tensor.clone()
            # Other threads go on with their own streams, and ask for memory, while this one records.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                output = function(own)

        def run(tensor: Any) -> Any:
            stream = torch.cuda.current_stream(output.device)
            with torch.cuda.stream(stream):
                stream.wait_event(self._free)
                own.copy_(tensor)
                graph.replay()
                out = output.clone()
                self._free.record(stream)
            return out

        return run
