"""The examination of a model, or of this machine, before scores are trusted: `embark doctor` as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embark.engine.doctor import Finding, examine
from embark.field_types import checked
from embark.models import Loading, find_card
from embark.models.checkpoints import fetch_checkpoint
from embark.models.encoder import Encoder
from embark.models.stated_vectors import StatedVectors, stated_vectors
from embark.run.models import StoredOnly, load_model, model_card
from embark.settings import Settings, load_settings
from embark.tables import Noted, Row, Table
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


@checked
def doctor(
    model: str | Encoder | Any | None = None,
    *,
    loading: Loading | None = None,
    against: str | ModelCard | None = None,
    settings: Settings | None = None,
    say: Callable[[str], None] | None = None,
) -> Examination:
    """Examine a model on a few sample items: shape, finite and varied vectors, determinism, batches, order, roles…

    A model is a name (of embark.toml or of results, too), a checkpoint folder, LOADER:SOURCE, or a live one: an encoder
    (`embark.encoder`, or any object with a card and `embed`), a SentenceTransformer, an mteb encoder. Without one, this
    machine is examined: what is installed for which models, the device, room on the disk, the store. `loading` says how
    a model that is given by name is loaded; `say` is called with the name of the next check.

    Vectors are compared with those that the checkpoint's files state. `against` names another checkpoint, by its folder
    or as a model is named: that which an ONNX file was exported from, or which a live model is made of.
    """
    if model is None:
        from embark.run.environment import environment

        return Examination("This machine", environment(settings or load_settings()))
    compared = None if against is None else find_card(against) if isinstance(against, str) else against
    encoder = load_model(model, loading, settings)
    if isinstance(encoder, StoredOnly):
        raise EmbarkError(f"{encoder.card.name} is made of functions: examine it in Python, embark.doctor(encoder).")
    name = model if isinstance(model, str) else encoder.card.name
    compared = compared or _own_checkpoint(model, encoder, settings)
    loading = replace(loading or Loading(), compile=False, pixels="pillow", settings=settings or load_settings())

    def stated() -> StatedVectors:
        return _stated(compared, encoder, loading, here=against is None)

    return Examination(name, tuple(examine(encoder, say or (lambda check: None), stated)), encoder.card)


def _own_checkpoint(model: Any, encoder: Encoder, settings: Settings | None) -> ModelCard:
    """The card of a model as its user named it: loaders add options to it that no card states."""
    if not isinstance(model, (str, ModelCard)):
        return encoder.card
    return model_card(model, settings) or find_card(str(model))


def _stated(card: ModelCard, encoder: Encoder, loading: Loading, here: bool) -> StatedVectors:
    """What the files of a card's checkpoint state; only `here`: nothing is downloaded."""
    if not card.source:
        raise EmbarkError("the card names no checkpoint; say what to compare with: --against FOLDER")
    source = Path(card.source).expanduser()
    if source.is_file():
        card = replace(card, source=str(source.parent))
    assert loading.settings is not None
    if here:
        loading = replace(loading, settings=replace(loading.settings, offline=True))
    return stated_vectors(fetch_checkpoint(replace(card, dtype=encoder.card.dtype), loading), loading)
