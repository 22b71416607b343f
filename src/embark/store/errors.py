"""What may be wrong with stored vectors."""

from __future__ import annotations

from collections.abc import Sequence

from embark.types import Array, EmbarkError


class MissingVectors(EmbarkError):
    """Vectors that are not stored, or no more: a run embeds them."""


class DamagedVectors(MissingVectors):
    """Stored vectors do not match their checksums. They count as absent from now on, so a run embeds them again."""

    def __init__(self, place: str, segments: Sequence[str], keys: Array) -> None:
        self.keys = keys
        named = ", ".join(segments[:3]) + ("…" if segments[3:] else "")
        super().__init__(
            f"{len(keys):,} stored vectors in {place} are damaged (in {named}). A run that scores them embeds them "
            "again (--rescore); embark store check lists all damage."
        )


class Gone(EmbarkError):
    """A segment was deleted or cut since it was opened."""
