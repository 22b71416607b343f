"""The store's health: how large it is, whether every byte is sound, and what mends and cleans it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from embark.catalogue import counted, group_values
from embark.own import tables as own_tables
from embark.results import Results
from embark.settings import Settings, load_settings
from embark.store import Space
from embark.store.buckets import open_store
from embark.store.errors import Gone
from embark.tables import Exact, Row, Table, Tabular


@dataclass(frozen=True)
class SpaceHealth:
    """The vectors of one model: `damage` and `ignored` are texts about what is wrong and what is not read, `mended`
    segments rewritten, `freed` bytes.
    """

    space: str
    models: tuple[str, ...]  # whose vectors they are, as far as results tell
    vectors: int
    segments: int
    bytes: int
    damage: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    mended: int = 0
    freed: int = 0


@dataclass(frozen=True)
class StoreHealth(Tabular):
    """The spaces of a store, largest first, and what was done to them."""

    folder: str
    action: str  # "size", "check", "repair" or "gc"
    spaces: tuple[SpaceHealth, ...]
    own_data: int = 0  # bytes of data that was given in Python
    own_freed: int = 0
    left_out: tuple[str, ...] = ()  # notes on results that cannot be read, so that their models are not named

    @property
    def damage(self) -> tuple[str, ...]:
        """All that is wrong, a text each."""
        return tuple(text for space in self.spaces for text in space.damage)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What was found or done, in sentences."""
        size = sum(space.bytes for space in self.spaces)
        total = f"{self.folder}: {counted(sum(s.vectors for s in self.spaces), 'vector')}, {_size(size)}."
        own = (f"Data given in Python takes another {_size(self.own_data)}.",) if self.own_data else ()
        ignored = (text for space in self.spaces for text in space.ignored)
        mended = sum(space.mended for space in self.spaces)
        done = {
            "size": (),
            "check": (*(self.damage or ("Every byte matches its checksum.",)), *ignored),
            "repair": (f"{counted(mended, 'damaged object')} replaced by what was sound in them.",),
            "gc": (f"{_size(sum(space.freed for space in self.spaces) + self.own_freed)} freed.",),
        }
        return (total, *own, *done[self.action], *self.left_out)

    def table(self) -> Table:
        """Spaces × vectors, segments, bytes."""
        columns = ("space", "model", "vectors", "segments", "size", *(("damage",) if self.action == "check" else ()))
        rows = []
        for space in self.spaces:
            cells: list[Any] = [space.space, ", ".join(space.models) or "unknown"]
            cells += [Exact(count, f"{count:,}") for count in (space.vectors, space.segments)]
            cells.append(Exact(space.bytes, _size(space.bytes)))
            rows.append(Row((*cells, *([Exact(len(space.damage), str(len(space.damage)))] * (len(columns) == 6)))))
        return Table(columns, tuple(rows))


def store_size(settings: Settings | None = None) -> StoreHealth:
    """How many vectors the store holds of which model, and their bytes."""
    return _health("size", settings)


def check_store(settings: Settings | None = None) -> StoreHealth:
    """Verify every byte of the store; its `damage` lists what does not match its checksum."""
    return _health("check", settings)


def repair_store(settings: Settings | None = None) -> StoreHealth:
    """Write the sound vectors of damaged segments anew and delete those; what is lost is embedded when it is needed."""
    return _health("repair", settings)


def clean_store(settings: Settings | None = None) -> StoreHealth:
    """Delete what nobody reads: leftovers of killed writers, segments that newer ones wholly supersede, and data given
    in Python that has no result and was not used for a month.
    """
    return _health("gc", settings)


def _health(action: str, settings: Settings | None) -> StoreHealth:
    settings = settings or load_settings()
    store = open_store(settings)
    folder = Results(settings.results)
    results = list(folder.all())
    records = [record for result in results for record in result.records]
    models = group_values((record.encoder.split("-")[0], record.model) for record in records)
    spaces = [_space(store.space(name), action, models.get(name, ())) for name in store.spaces()]
    largest_first = tuple(sorted(spaces, key=lambda space: -space.bytes))
    revisions = {result.dataset_revision for result in results}
    damaged = bool(folder.notes)  # results that cannot tell what data they need
    freed = own_tables.collect(settings.home, revisions) if action == "gc" and not damaged else 0
    own = own_tables.size(settings.home)
    return StoreHealth(str(settings.store), action, largest_first, own, freed, tuple(folder.notes))


def _space(space: Space, action: str, models: Iterable[str], retries: int = 3) -> SpaceHealth:
    try:
        damage, ignored = (tuple(space.verify()), tuple(space.ignored())) if action == "check" else ((), ())
        mended = space.repair() if action == "repair" else 0
        freed = space.collect() if action == "gc" else 0
    except Gone:  # a writer has merged small segments into one since
        if not retries:
            raise
        space.refresh()
        return _space(space, action, models, retries - 1)
    names = tuple(dict.fromkeys(models))
    return SpaceHealth(space.path.name, names, len(space), space.segments, space.size, damage, ignored, mended, freed)


def _size(count: int) -> str:
    """Bytes as people read them."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
