"""`embark analyze`: what scores and stored vectors tell, as a table and a plot."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import typer

from embark.cli.analyze import generators, scores, vectors
from embark.cli.analyze.options import with_shared
from embark.cli.grammar import Command, Group

OF_SCORES: dict[str, Callable[..., None]] = {
    "correlate": scores.correlate,
    "distill": scores.distill,
    "predict": scores.predict,
    "scaling": scores.scaling,
    "gains": scores.gains,
    "medians": scores.medians,
    "extremes": scores.extremes,
    "mllm": scores.mllm,
    "pareto": scores.pareto,
    "heatmap": scores.heatmap,
    "profile": scores.profile,
    "languages": scores.languages,
    "rendering": scores.rendering,
}
OF_OUTCOMES: dict[str, Callable[..., None]] = {
    "confusion": scores.confusion,
    "calibration": scores.calibration,
    "breakdown": scores.breakdown,
}
OF_VECTORS: dict[str, Callable[..., None]] = {
    "geometry": vectors.geometry,
    "map": vectors.map_,
    "truncate": vectors.truncate,
    "quantize": vectors.quantize,
    "similarity": vectors.similarity,
    "topk": vectors.topk,
    "shots": vectors.shots,
    "prompts": vectors.prompts,
    "robustness": vectors.robustness,
    "index": vectors.index,
}
OF_GENERATORS: dict[str, Callable[..., None]] = {"answers": generators.answers}
COMMANDS = OF_SCORES | OF_OUTCOMES | OF_VECTORS | OF_GENERATORS


class Analyses(Group):
    """The analyses by what they look at."""

    HEADS: ClassVar = {
        "Scores of many models": tuple(OF_SCORES),
        "Items of your own runs": tuple(OF_OUTCOMES),
        "Stored vectors": tuple(OF_VECTORS),
        "Generators": tuple(OF_GENERATORS),
    }


app = typer.Typer(name="analyze", cls=Analyses, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def start() -> None:
    """What scores and stored vectors tell: each analysis prints a table and draws a plot (--plot FILE).

    Scores are the published ones and yours; vectors are those in the store, so nothing is embedded again.
    """


RUNS = (
    (OF_SCORES, scores.run),
    (OF_OUTCOMES, scores.run_on_outcomes),
    (OF_VECTORS, vectors.run),
    (OF_GENERATORS, generators.run),
)
for commands, run in RUNS:
    for name, declared in commands.items():
        app.command(name, cls=Command)(with_shared(name, declared, run))
