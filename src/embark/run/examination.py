"""The examination of a model, or of this machine, before scores are trusted: `embark doctor` as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from embark.engine.doctor import Finding, examine
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.results.table import Noted, Row, Table
from embark.run.models import StoredOnly, load_model
from embark.settings import Settings, load_settings
from embark.types import EmbarkError, ModelCard

SIGNS = {"ok": "✓", "wrong": "✗", "note": "·"}


@dataclass(frozen=True)
class Examination(Noted):
    """The findings of all checks of one model, or of this machine, which has no card."""

    model: str
    findings: tuple[Finding, ...]
    card: ModelCard | None = None

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that make scores doubtful."""
        return tuple(finding for finding in self.findings if finding.verdict == "wrong")

    def table(self) -> Table:
        """One row per check."""
        return Table(
            ("", "check", "finding"),
            tuple(Row((SIGNS[finding.verdict], finding.check, finding.message)) for finding in self.findings),
        )

    def sentence(self) -> str:
        """The examination in words."""
        if not self.faults:
            return f"{self.model}: no fault found."
        return f"{self.model}: {len(self.faults)} of {len(self.findings)} checks found a fault."

    def as_dict(self) -> list[dict[str, Any]]:
        """The findings, ready for JSON."""
        return [vars(finding) for finding in self.findings]


def doctor(
    model: str | Encoder | Any | None = None,
    *,
    device: str = "auto",
    dtype: str | None = None,
    compile: bool | Literal["auto"] = False,
    trust: str | None = None,
    settings: Settings | None = None,
    pixels: str = "auto",
    say: Callable[[str], None] | None = None,
) -> Examination:
    """Examine a model on a few sample items: shape, finite and varied vectors, determinism, batches, order, roles…

    A model is a name (of embark.toml or of results, too), a checkpoint folder, LOADER:SOURCE, or a live one: an encoder
    (`embark.encoder`, or any object with a card and `embed`), a SentenceTransformer, an mteb encoder. Without one, this
    machine is examined: what is installed for which models, the device, room on the disk, the store. The keywords up to
    `pixels` are those of `get_model`; `say` is called with the name of the next check.
    """
    if model is None:
        from embark.run.environment import environment

        return Examination("This machine", environment(settings or load_settings()))
    encoder = load_model(model, Loading(device, dtype, compile, trust, pixels=pixels), settings)
    if isinstance(encoder, StoredOnly):
        raise EmbarkError(f"{encoder.card.name} is made of functions: examine it in Python, embark.doctor(encoder).")
    name = model if isinstance(model, str) else encoder.card.name
    return Examination(name, tuple(examine(encoder, say or (lambda check: None))), encoder.card)
