"""`embark analyze`: what generative models answer. What they wrote is stored, so that nothing is asked twice."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import embark  # its parts are loaded at first use, so that --help stays fast
from embark.cli.analyze.options import Plot, present
from embark.cli.output import Format, Home, Precision, ResultsFolder, Save, Select, StorePlace, TaskNames, Trust
from embark.settings import load_settings

Generators = Annotated[list[str], typer.Option("-m", "--model", help="Generator; several are compared.")]


def answers(
    model: Generators,
    tasks: TaskNames = None,
    by: Annotated[
        str, typer.Option("--by", metavar="WAY", help="How they choose: answer, likelihood or mean-likelihood.")
    ] = "answer",
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="The question; {classes} are the names of the classes.")
    ] = None,
) -> None:
    """Generative models as classifiers: their answers about the items of zero-shot tasks, matched to the classes, or
    the class whose name is their likeliest answer.

    \b
    embark analyze answers -m Qwen/Qwen2-VL-2B-Instruct -t UniBench/mnist
    embark analyze answers -m Qwen/Qwen2-VL-2B-Instruct -t UniBench/mnist --by likelihood
    embark analyze answers -m MODEL -t PocketGroupZeroShot --prompt 'Is it one of {classes}? Which?'
    """


def run(
    analysis: str,
    options: dict[str, Any],
    *,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
    style: Format = "text",
    select: Select = None,
    plot: Plot = None,
    save: Save = False,
) -> None:
    """Have `embark.analyze` do an analysis of generators, and print it."""
    from embark.models import Loading

    if not options.get("tasks"):
        raise typer.BadParameter("name a zero-shot task (-t)")
    settings = load_settings(home, results, store=store)
    study = getattr(embark.analyze, analysis)(**options, loading=Loading(dtype=dtype, trust=trust), settings=settings)
    present(study, style, plot, select, settings if save else None)
