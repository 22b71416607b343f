"""The pocket ARK: six subtypes over the emoji that come with the package, on ARK's two axes, for use offline.

As in ARK, every query has one right picture in the gallery of its subtype, and near misses beside it; the data tell the
skills and the demand of every query.
"""

from __future__ import annotations

from embark.tasks.ark import COGNITION, FORMAL, NATURE, SOCIETY
from embark.tasks.pocket import SOURCE
from embark.types import Task


def _row(name: str, domain: str, queries: int, gallery: int, mixed: bool, *notes: str) -> Task:
    return Task(
        name=f"PocketARK/{name}", family="Pocket", evaluator="retrieval", reader="pocket-ark", source=SOURCE, metric="recall_at_1",
        category=domain, modalities=("text", "image"), options={"topic": name, "queries": queries}, mixed=mixed, chance=1 / gallery,
        tags={"capability": "reasoning", "domain": domain}, notes=notes,
    )  # fmt: skip


TASKS: tuple[Task, ...] = (
    _row("Counting", COGNITION, 40, 96, False,
         "\"four pictures of lemon\", or \"two pictures of lemon and two more\", to a scene; the other counts of the same thing are wrong."),
    _row("Spatial", COGNITION, 40, 64, False,
         "\"a fox to the right of a pear\" to a picture; the other three arrangements of the two are wrong."),
    _row("Composition", COGNITION, 40, 80, True,
         "A picture and \"dark skin tone\" to the changed picture; the other tones of the same person are wrong."),
    _row("Negation", NATURE, 40, 56, False,
         "\"animal bird but not owl, swan or duck\" to the fourth bird; the named ones are wrong."),
    _row("Clocks", FORMAL, 48, 24, True,
         "A clock face, or its name, and \"two hours later\" to one of 24 clock faces."),
    _row("Capitals", SOCIETY, 40, 223, False,
         "The capital of a country to its flag; in two of five queries, the right one of two capitals must be found first."),
)  # fmt: skip
