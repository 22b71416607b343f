"""`embark analyze`: what scores and stored vectors tell, as a table and a plot."""

from __future__ import annotations

from collections.abc import Callable

import typer

from embark.cli.analyze import scores, vectors
from embark.cli.grammar import Command

COMMANDS: dict[str, Callable[..., None]] = {
    "correlate": scores.correlate,
    "distill": scores.distill,
    "predict": scores.predict,
    "scaling": scores.scaling,
    "mllm": scores.mllm,
    "pareto": scores.pareto,
    "geometry": vectors.geometry,
    "map": vectors.map_,
    "truncate": vectors.truncate,
    "quantize": vectors.quantize,
    "similarity": vectors.similarity,
    "topk": vectors.topk,
    "shots": vectors.shots,
    "prompts": vectors.prompts,
    "robustness": vectors.robustness,
}
OLD_NAMES = {"distil": "distill", "quantise": "quantize"}

app = typer.Typer(name="analyze", no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def start() -> None:
    """What scores and stored vectors tell: each analysis prints a table and draws a plot (--plot FILE).

    Scores are the published ones and yours; vectors are those in the store, so nothing is embedded again.
    """


for name, command in COMMANDS.items():
    app.command(name, cls=Command)(command)
for old_name, name in OLD_NAMES.items():
    app.command(old_name, cls=Command, hidden=True)(COMMANDS[name])
