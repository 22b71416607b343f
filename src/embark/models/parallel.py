"""One encoder on several devices of this machine: a worker process a device, batches to whichever is free."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from embark.models.device import free_device_memory
from embark.models.encoder import (
    Encoder,
    Matching,
    Preparation,
    Reranker,
    Towers,
    cuda_pixels,
    has_matcher,
    prepare_many,
    render_item,
)
from embark.models.loading import Loader, Loading
from embark.models.tokens import FastTokenizer
from embark.processes import WorkerLost, Workers
from embark.types import Array, Content, EmbarkError, Encoded, Item, Modality, ModelCard, Rendered, Style

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
        self.origin = (loader, card, loading, devices)
        self.adapt = adapt
        self._load_first: Callable[[], Any] = lambda: loader(card, replace(loading, device=devices[0]))
        self.copy: Encoder = loader(card, replace(loading, device="cpu", compile=False, weights=False))
        self.workers = self._start_workers()
        loaded_card, self.batch_size, self.encoded = self._call("facts")
        self.card = replace(loaded_card, loaded={**loaded_card.loaded, "devices": ",".join(devices)})
        self.lanes = LANES * len(devices)

    def _start_workers(self) -> Workers:
        loader, card, loading, devices = self.origin
        return Workers(
            [partial(_load, loader, card, replace(loading, device=device), self.adapt) for device in devices],
            names=devices,
            seconds=BATCH_SECONDS,
        )

    def with_cuda_pixels(self) -> Devices:
        """The same with the pixels of the GPUs, and this one is closed; an error leaves it as it is."""
        if not hasattr(self.copy, "with_cuda_pixels"):
            raise EmbarkError(f"{self.card.name} prepares pictures on the CPU alone")
        if isinstance(self.copy, Towers):
            _ = self.copy.image_on_cuda  # an error now, not after all workers have loaded it again
        self.workers.close()  # the devices have no room for both
        try:
            return Devices(*self.origin, cuda_pixels)
        except EmbarkError:
            self.workers = self._start_workers()
            raise

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        """As a copy renders it."""
        return self.copy.render(item, role, instruction)

    def render_styled(self, item: Item, role: str, instruction: str | None, style: Style) -> Rendered:
        """As a copy renders it."""
        return render_item(self.copy, item, role, instruction, style)

    def prepare(self, contents: Sequence[Content], mode: str) -> Any:
        """As a copy prepares it, on the CPU; files that a GPU decodes stay as they are."""
        return _prepare(self.copy.prepare, contents, mode)

    def prepare_many(self, batch: Sequence[Sequence[Content]], modes: Sequence[str]) -> Sequence[Any]:
        """As a copy prepares them; these are texts."""
        return prepare_many(self.copy, batch, modes)

    @cached_property
    def preparation(self) -> Preparation | None:  # type: ignore[override]
        """That of a copy."""
        usual = self.copy.preparation
        return _WithFiles(usual) if usual and self.encoded else usual

    @property
    def text_preparation(self) -> FastTokenizer | None:  # type: ignore[override]
        """That of a copy."""
        return self.copy.text_preparation

    def embed(self, batch: Sequence[Any]) -> Array | Sequence[Array]:
        """The vectors of a free device."""
        vectors: Array | Sequence[Array] = self._call("embed", batch)
        return vectors

    @cached_property
    def matcher(self) -> Reranker:
        """That of a copy on the first device, in this process, where it has one; loaded when it is first needed."""
        if not has_matcher(self.copy):
            raise AttributeError("matcher")
        matcher: Reranker = self._load_first().matcher
        return matcher

    def render_pair(self, image: Item, text: Item, style: Style) -> Rendered:
        """As a copy renders it."""
        assert isinstance(self.copy, Matching)
        return self.copy.render_pair(image, text, style)

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
    encoder: Encoder = loader(card, loading)
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

    def facts(self) -> tuple[ModelCard, int | None, frozenset[str]]:
        """The card as loaded, the batch size, and the modalities that the encoder decodes itself."""
        return self.encoder.card, self.encoder.batch_size, getattr(self.encoder, "encoded", frozenset())

    def embed(self, batch: Sequence[Any]) -> Any:
        """The forward pass."""
        return self.encoder.embed(batch)
