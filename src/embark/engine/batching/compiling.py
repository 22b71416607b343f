"""Whether a compiled forward pass pays: one batch of a kind is embedded both ways, when enough others are left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from embark.engine.batching.batches import Kind, seconds_left
from embark.engine.batching.self_check import apart, limit, pooled
from embark.models.encoder import Encoder
from embark.types import Modality

PAYS = 600.0  # seconds of work from which a trial pays: compiling takes about one minute, and may save a tenth or more
FASTER = 1.05  # how many times as fast a compiled pass must be
REPEATS = 3  # timed passes each way, of which the fastest counts


def trial_is_due(encoder: Encoder, kind: Kind, kinds: Sequence[Kind]) -> bool:
    """Whether to try compiled modules on this kind now: its batches have their size, and much work is left."""
    compilation = encoder.capabilities.compilation
    if compilation is None or kind.modalities in compilation.decisions or kind.size.growing or not kind.done:
        return False
    return seconds_left(kinds) > PAYS


def try_compiled(encoder: Encoder, kind: tuple[Modality, ...], batch: Sequence[Any]) -> str:
    """Decide for a kind of item, by a batch of it, and switch accordingly; returns a warning where compiling failed.

    Nothing else may run meanwhile. What fails plain, too, fails again when the batch is embedded.
    """
    compilation = encoder.capabilities.compilation
    assert compilation is not None
    compilation.decisions[kind] = False
    compilation.switch(False)
    problem = ""
    try:
        plain_seconds, plain = _timed(encoder, batch)
        compilation.switch(True)
        encoder.embed(list(batch))  # compiles
        seconds, compiled = _timed(encoder, batch)
        distance = float(apart(encoder.card, pooled(plain), pooled(compiled)).max())
        if not distance <= limit(encoder.card):
            problem = f"its vectors would differ (by up to {distance:.2g})"
        compilation.decisions[kind] = not problem and FASTER * seconds < plain_seconds
    except Exception as error:  # compilers raise all kinds of errors
        lines = str(error).strip().splitlines()
        problem = (lines or [type(error).__name__])[0] if compilation.on else ""
    compilation.switch(compilation.decisions[kind])
    if isinstance(encoder.card.loaded, dict):  # what results record
        kinds = [" and ".join(kind) for kind, compiled in compilation.decisions.items() if compiled]
        encoder.card.loaded["compile"] = f"auto: compiled for {', '.join(kinds)}" if kinds else "auto: plain"
    return f"{encoder.card.name} runs without being compiled: {problem}" if problem else ""


def _timed(encoder: Encoder, batch: Sequence[Any]) -> tuple[float, Any]:
    """The seconds of the fastest of some passes, and the vectors of the last."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        vectors = encoder.embed(list(batch))
        seconds.append(time.perf_counter() - start)
    return min(seconds), vectors
