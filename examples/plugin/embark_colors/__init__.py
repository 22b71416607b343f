"""A plug-in for embark: does a model find colors of one family alike?

It brings a reader of colors, an evaluator of neighbors, a task and its benchmark, a model and a study.
"""

import csv
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from embark import Encoder, items, load_results
from embark.evaluators.similarity import whole
from embark.plugins import Plugin
from embark.seams import Evaluator, Files, Loader, Reader, Study
from embark.tables import Row
from embark.types import (
    Analysis,
    Benchmark,
    Dataset,
    EmbarkError,
    Groups,
    ModelCard,
    Option,
    Scores,
    Source,
    Table,
    Task,
)

# ── the reader: rows of a table of colors become pictures, and the family of each ───────────────────────────────────


def read_colors(task, split, subset, hub):
    """Each color of the package's table as a picture."""
    with Path(__file__).with_name("colors.csv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    families, label = np.unique([row["family"] for row in rows], return_inverse=True)
    pictures = {row["name"]: items.media("image", _png(row["color"])) for row in rows}
    return Dataset({"item": items.side(pictures)}, Groups(label, tuple(families.tolist())))


def _png(color):
    out = BytesIO()
    Image.new("RGB", (32, 32), color).save(out, "PNG")
    return out.getvalue()


READER = Reader("colors", "Named colors as pictures, with their families.", read_colors, ("neighbors",), Files())

# ── the evaluator: how many of an item's nearest neighbors are of its group ────────────────────────────────────────


def share_alike(truth, vectors, params):
    """For each item, the share of its nearest neighbors that have its label."""
    vectors = whole(vectors["item"], params.get("similarity", "cosine"))
    similarity = vectors @ vectors.T
    np.fill_diagonal(similarity, -np.inf)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, : params["neighbors"]]
    alike = (truth.label[nearest] == truth.label[:, None]).mean(axis=1)
    score = {"share_alike": float(alike.mean())}
    return Scores(score, main="share_alike", unit="item", rows=np.arange(len(alike)), outcomes={"share_alike": alike})


EVALUATOR = Evaluator(
    "neighbors", "The share of an item's nearest neighbors that are of its group.", (Groups,), share_alike,
    measures={"share_alike": "mean"}, main="share_alike",
    params={"neighbors": Option(int, "Neighbors of each item.")}, preset={"neighbors": 3},
)  # fmt: skip

TASK = Task(
    "ColorFamilies", "Colors", "neighbors", "colors", Source("colors.csv", "1"), "share_alike", "Colors", ("image",),
    params={"neighbors": 3}, chance=5 / 35, notes=("CSS names of colors.",),
)  # fmt: skip

# ── the model: the mean color of a picture ──────────────────────────────────────────────────────────────────────────


class MeanColor(Encoder):
    """The mean of a picture's red, green and blue, around grey."""

    def __init__(self, card):
        self.card = card

    def prepare(self, contents, mode):
        return np.asarray(contents[0].value, np.float32).mean(axis=(0, 1)) - 127.5

    def embed(self, batch):
        return np.stack(batch)


def load(card, loading):
    """The model of a card."""
    return MeanColor(replace(card, dim=3))


# ── the study: the items that most models get wrong ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Hardest(Analysis):
    """The mean outcome of items over models, lowest first."""

    outcomes: dict[str, float]
    title = "Items that models find hardest"

    def table(self):
        return Table(("item", "outcome"), tuple(Row(row) for row in self.outcomes.items()))

    def draw(self, figure):
        figure.subplots().barh([*self.outcomes], [*self.outcomes.values()])


def hardest(tasks=None, *, top=10, settings=None):
    """The items of your own runs that have the lowest outcome, as a mean over models and tasks."""
    found = load_results(tasks, include="own", settings=settings)
    by_item = {}
    for result in found.results:
        outcomes = result.outcomes()
        for name, outcome in zip(outcomes["id"].to_pylist(), outcomes[result.metric].to_pylist(), strict=True):
            by_item.setdefault(name, []).append(outcome)
    if not by_item:
        raise EmbarkError("None of your runs has results on these tasks. Make some: embark run")
    means = sorted((float(np.mean(values)), name) for name, values in by_item.items())
    return Hardest({name: mean for mean, name in means[:top]}, notes=found.notes)


STUDY = Study("hardest", "The items that most models get wrong.", hardest, "outcomes", {"top": Option(int, "Items.")})


def plugin():
    """What embark adds to its own."""
    card = ModelCard("colors/mean", "1", "mean-color", ("image",), dim=3, description="The mean color of a picture.")
    return Plugin(
        cards=(card,), loaders=(Loader("mean-color", "embark_colors:load"),), tasks=(TASK,),
        benchmarks=(Benchmark("Colors", "Colors", (TASK.name,)),),
        readers=(READER,), evaluators=(EVALUATOR,), studies=(STUDY,),
    )  # fmt: skip
