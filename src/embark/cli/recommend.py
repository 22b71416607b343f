"""`embark recommend`."""

from __future__ import annotations

from typing import Annotated

import typer

import embark  # its parts are loaded at first use, so that --help stays fast
from embark.cli.analyze import present
from embark.cli.options import Format, Include, Plot, ScoreSettings, Select, TaskOptions


def recommend(
    need: Annotated[
        str, typer.Option("--need", metavar="NAMES", help="Categories, capabilities, domains, languages: a,b,c.")
    ],
    *,
    tasks: TaskOptions,
    include: Include = "all",
    max_params: Annotated[
        str | None, typer.Option("--max-params", metavar="SIZE", help="Such as 400M or 1.5B.")
    ] = None,
    modality: Annotated[
        str, typer.Option("--modality", metavar="NAMES", help="What the model must take: text,image,audio,video.")
    ] = "",
    min_dim: Annotated[
        int | None, typer.Option("--min-dim", min=1, metavar="N", help="Least dimension of its vectors.")
    ] = None,
    max_dim: Annotated[
        int | None, typer.Option("--max-dim", min=1, metavar="N", help="Greatest dimension of its vectors.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="Models to show.")] = 15,
    style: Format = "text",
    select: Select = None,
    plot: Plot = None,
    places: ScoreSettings,
) -> None:
    """Rank models for your needs, within your limits; with ties, and notes on missing scores.

    \b
    embark recommend --need retrieval,documents --max-params 1B
    embark recommend --need 'visual sts' --max-dim 768 --plot choice.svg
    embark recommend -b ARK --need 'natural science'
    embark recommend -t 'Pets*' --include own --need retrieval --max-params 100M
    """
    settings = places.settings()
    recommendation = embark.recommend(
        need,
        tasks.chosen(),
        max_parameters=max_params,
        modalities=modality,
        min_dim=min_dim,
        max_dim=max_dim,
        top=top,
        include=include,  # type: ignore[arg-type]
        settings=settings,
    )
    present(recommendation, settings, style=style, select=select, plot=plot)
