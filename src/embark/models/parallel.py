"""One encoder on several devices of this machine: a worker process a device, batches to whichever is free."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from embark.models.device import free_device_memory
from embark.models.encoder import (
    Capabilities,
    Encoder,
    Preparation,
    Reranker,
    Towers,
    cuda_pixels,
)
from embark.models.loading import Loading, build
from embark.processes import WorkerLost, Workers
from embark.seams import Loader
from embark.types import Array, Content, EmbarkError, Encoded, Modality, ModelCard

BATCH_SECONDS = 1800.0  # for one batch, after which its worker is killed: the first may wait for a compiler
LANES = 2  # batches that a device has at once: one is on its way while the other is computed


class Devices(Encoder):
    """A checkpoint on several devices. A copy on the CPU renders and prepares; its forward pass is never used.

    A worker that dies is started again, and its batch goes to whichever is free; a batch that kills two workers raises
    a `WorkerLost`. A device whose worker cannot be started again is given up; the others take its work.
    """

    def __init__(
        self,
        loader: Loader,
        card: ModelCard,
        loading: Loading,
        devices: Sequence[str],
        adapt: Callable[[Encoder], Encoder] | None = None,
    ) -> None:
        """`adapt`, which must pickle, makes another encoder of each that was loaded on a device."""
        loader = replace(loader, recognize=None)  # which need not pickle
        self.origin = (loader, card, loading, devices)
        self.adapt = adapt
        self._load_first: Callable[[], Encoder] = lambda: build(loader, card, replace(loading, device=devices[0]))
        self.copy: Encoder = build(loader, card, replace(loading, device="cpu", compile=False, weights=False))
        self.workers = self._start_workers()
        loaded_card, batch_size, encoded = self._call("facts")
        self.card = replace(loaded_card, loaded={**loaded_card.loaded, "devices": ",".join(devices)})
        self.render = self.copy.render
        self.capabilities = self._capabilities(batch_size, encoded)

    def _capabilities(self, batch_size: int | None, encoded: frozenset[Modality]) -> Capabilities:
        """Those of a copy; the workers say how many items a batch has, and which files their devices decode."""
        able = self.copy.capabilities
        return replace(
            able,
            batch_size=batch_size,
            lanes=LANES * len(self.origin[-1]),
            encoded=encoded,
            preparation=_WithFiles(able.preparation) if able.preparation and encoded else able.preparation,
            compilation=None,
            matching=able.matching and replace(able.matching, head=self._head),
            cuda_pixels=able.cuda_pixels and self._with_cuda_pixels,
        )

    def _start_workers(self) -> Workers:
        loader, card, loading, devices = self.origin
        return Workers(
            [partial(_load, loader, card, replace(loading, device=device), self.adapt) for device in devices],
            names=devices,
            seconds=BATCH_SECONDS,
        )

    def _with_cuda_pixels(self) -> Devices:
        """The same with the pixels of the GPUs, and this one is closed; an error leaves it as it is."""
        if isinstance(self.copy, Towers):
            _ = self.copy.image_on_cuda  # an error now, not after all workers have loaded it again
        self.workers.close()  # the devices have no room for both
        try:
            return Devices(*self.origin, cuda_pixels)
        except EmbarkError:
            self.workers = self._start_workers()
            raise

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        """As a copy prepares it, on the CPU; files that a GPU decodes stay as they are."""
        return _prepare(self.copy.prepare, contents, mode)

    def embed(self, batch: Sequence[Any]) -> Array | Sequence[Array]:
        """The vectors of a free device."""
        vectors: Array | Sequence[Array] = self._call("embed", batch)
        return vectors

    def _head(self) -> Reranker:
        """The matching head of a copy on the first device, in this process; loaded when it is first needed."""
        return self._matcher

    @cached_property
    def _matcher(self) -> Reranker:
        matching = self._load_first().capabilities.matching
        assert matching is not None
        return matching.head()

    def _call(self, name: str, *args: Any) -> Any:
        (result,) = self.workers.submit([(name, args)]).result()
        if isinstance(result, WorkerLost):
            raise result
        return result


@dataclass(frozen=True)
class _WithFiles:
    """A copy's preparation, of which files that a GPU decodes are left out."""

    usual: Preparation

    @property
    def modalities(self) -> frozenset[Modality]:
        return self.usual.modalities

    def __call__(self, contents: Sequence[Content], mode: str) -> Any:
        return _prepare(self.usual, contents, mode)


def _prepare(usual: Callable[[Sequence[Content], str], Any], contents: Sequence[Content], mode: str) -> Any:
    """As a copy prepares it; files that a GPU decodes stay as they are."""
    if not any(isinstance(content.value, Encoded) for content in contents):
        return usual(contents, mode)
    prepared: list[Any] = []  # towers prepare each part by itself
    for content in contents:
        is_file = isinstance(content.value, Encoded)
        prepared += [(content.kind, content.value)] if is_file else usual([content], mode)
    return prepared


def _load(
    loader: Loader, card: ModelCard, loading: Loading, adapt: Callable[[Encoder], Encoder] | None
) -> Callable[[tuple[str, tuple[Any, ...]]], Any]:
    """What a worker does: load the checkpoint, then answer calls."""
    encoder: Encoder = build(loader, card, loading)
    return _Copy(adapt(encoder) if adapt else encoder)


class _Copy:
    """The encoder of a worker process; a call is the name of a method here, and its arguments."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.failed = False

    def __call__(self, call: tuple[str, tuple[Any, ...]]) -> Any:
        if self.failed:  # what the failed pass had put on the device is free only now
            self.failed = False
            gc.collect()
            free_device_memory()
        name, args = call
        self.failed = True
        result = getattr(self, name)(*args)
        self.failed = False
        return result

    def facts(self) -> tuple[ModelCard, int | None, frozenset[Modality]]:
        """The card as loaded, the batch size, and the modalities that the encoder decodes itself."""
        able = self.encoder.capabilities
        return self.encoder.card, able.batch_size, able.encoded

    def embed(self, batch: Sequence[Any]) -> Any:
        """The forward pass."""
        return self.encoder.embed(batch)
