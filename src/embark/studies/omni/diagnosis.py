"""OmniSET's diagnosis for any model: does it find the modality that it is told to find, and what does telling it do?

The analyses are those of the paper (arXiv 2604.23321, sections 5 and A.4), over OmniSET itself, the pocket's small set
offline, or a set that `build_omni` made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from embark.catalogue import check_name, counted, listed
from embark.field_types import checked
from embark.models import Loading
from embark.models.encoder import Encoder
from embark.results.selection import select_tasks
from embark.settings import Settings, load_settings
from embark.stats.intervals import NO_SPREAD
from embark.studies.diagnosis import Diagnosis, make_folder
from embark.studies.maps import METHODS
from embark.studies.omni.analyses import (
    Asymmetry,
    Distribution,
    Modalities,
    OmniAnalysis,
    Retrieval,
    Sensitivity,
    Shift,
    dominant,
    mean_distance,
    mean_scores,
    whose,
)
from embark.studies.omni.directions import TOP, Direction, MixedLists, stored_directions
from embark.studies.omni.maps import ModalityMap, ShiftMaps, item_layout, shift_layout
from embark.tables import in_points, signed_points
from embark.tables.drawing import FORMATS
from embark.tasks import Tasks
from embark.tasks.omni import KINDS

DEFAULT = "PocketOmni"


@checked
def diagnose_omni(
    model: str | Encoder,
    tasks: Tasks = DEFAULT,
    *,
    out: Path | str | None = None,
    figures: str = "svg",
    method: str = "tsne",
    protocol: str | None = None,
    embed: bool = True,
    loading: Loading | None = None,
    settings: Settings | None = None,
    show_progress: bool = True,
) -> OmniDiagnosis:
    """Why a model finds, or does not find, an item of the modality that it is told to find.

    `tasks` are the directions of one set: "OmniSET", the pocket's "PocketOmni", or the tasks of `build_omni`. Queries
    are embedded with and without their instruction; what is stored is not embedded again, and unless `embed`, what is
    not stored is an error. Modalities that the model does not take are left out of the lists.

    `out` is a folder for report.md, tables (CSV, LaTeX) and `figures` (svg, pdf or png); `method` lays out the maps
    (tsne, umap or pca).
    """
    check_name("format of figures", f".{figures}", FORMATS)
    if out is not None:
        make_folder(out)
    check_name("method for maps", method, METHODS)
    settings = settings or load_settings()
    rows = select_tasks(tasks, protocol, settings)
    stored = MixedLists(model, settings, embedding=embed, loading=loading, show_progress=show_progress)
    directions = stored_directions(stored, rows)
    card = stored.encoder.card
    data = rows[0].name if len(rows) == 1 else rows[0].name.rpartition("/")[0] or rows[0].name
    diagnosis = examine(card.name, data, directions, method)
    if out is not None:
        diagnosis.write(out, figures)
    return diagnosis


@dataclass(frozen=True)
class OmniDiagnosis(Diagnosis):
    """The directions of a set as a model embedded them; `method` lays out the maps."""

    model: str
    data: str
    directions: tuple[Direction, ...]
    method: str = "tsne"

    @property
    def title(self) -> str:
        return f"{self.model} on {self.data}"

    @cached_property
    def analyses(self) -> Mapping[str, OmniAnalysis]:
        facts = (self.model, self.data, self.directions)
        return {
            "retrieval": Retrieval(*facts),
            "modalities": Modalities(*facts),
            "sensitivity": Sensitivity(*facts),
            "shift": Shift(*facts),
            "shift-maps": ShiftMaps(*facts, shift_layout(self.directions, self.method)),
            "map": ModalityMap(*facts, item_layout(self.directions, self.method)),
            "asymmetry": Asymmetry(*facts),
            "distribution": Distribution(*facts),
        }

    @cached_property
    def findings(self) -> tuple[str, ...]:
        return _findings(self.directions, Asymmetry(self.model, self.data, self.directions))


def examine(model: str, data: str, directions: Sequence[Direction], method: str = "tsne") -> OmniDiagnosis:
    """The diagnosis of directions that were embedded."""
    kinds = {kind for direction in directions for kind in (direction.query, direction.target)}
    missing = [kind for kind in KINDS if kind not in kinds]
    notes = (f"left out, as {model} does not take it: {listed(missing)}",) if missing else ()
    return OmniDiagnosis(model, data, tuple(directions), method, notes=notes)


def _findings(directions: Sequence[Direction], asymmetry: Asymmetry) -> tuple[str, ...]:
    """The conclusions from the analyses, in sentences."""
    count = len(directions)
    hit, reciprocal = mean_scores(directions)
    query_kinds = sum(whose(d, dominant(d.top)[0]) == "query's" for d in directions)
    target_kinds = sum(whose(d, dominant(d.top)[0]) == "target's" for d in directions)
    itself = float(np.mean([d.itself.mean() for d in directions]))
    moved = float(np.mean([d.moved.mean() for d in directions]))
    closer = sum(mean_distance(d.shift)[2] < 0 for d in directions)
    farther = sum(mean_distance(d.shift)[1] > 0 for d in directions)
    names = [
        f"{forth.name} ({signed_points(test.value).text})"
        for (forth, _), test in zip(asymmetry.pairs(), asymmetry.differences("reciprocal"), strict=True)
        if test.low > 0 or test.high < 0
    ]
    obeyed = f"Instructions move queries by a cosine distance of {moved:.3f} on average: nearer to their targets in "
    obeyed += f"{closer} of {count} directions, farther from them in {farther}."
    ignored = "Queries have the same vectors with and without their instruction: the model does not read it."
    return (
        f"Hit@1 {in_points(hit.value)} %, MRR {in_points(reciprocal.value)} % "
        f"(means of {counted(count, 'direction')}); {100 * itself:.0f} % of queries find themselves first.",
        f"The first {TOP} results are mostly of the query's own modality in {query_kinds} of {count} directions, "
        f"of the one that is asked for in {target_kinds}.",
        obeyed if moved > NO_SPREAD else ignored,
        f"Directions that differ from their reverse in MRR (points): {listed(names, len(names)) or 'none'}.",
    )
