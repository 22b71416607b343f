"""`embark recommend`."""

from __future__ import annotations

from typing import Annotated

import typer

from embark.cli.analyze import OnBenchmark, Own, Plot, Style, present, scores
from embark.cli.output import ResultsFolder


def recommend(
    need: Annotated[str, typer.Option("--need", help="Categories, capabilities, domains, languages: a,b,c.")],
    benchmark: OnBenchmark = "MIEB(Multilingual)",
    max_params: Annotated[str | None, typer.Option("--max-params", help="Such as 400M or 1.5B.")] = None,
    modality: Annotated[str, typer.Option("--modality", help="That the model must take: text,image,audio,video.")] = "",
    min_dim: Annotated[int | None, typer.Option("--min-dim", min=1, help="Least dimension of its vectors.")] = None,
    max_dim: Annotated[int | None, typer.Option("--max-dim", min=1, help="Greatest dimension of its vectors.")] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Models to show.")] = 15,
    style: Style = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """Rank models for your needs, within your limits; ties and missing scores are said.

    \b
    embark recommend --need retrieval,documents --max-params 1B
    embark recommend --need 'visual sts' --max-dim 768 --plot choice.svg
    embark recommend -b ARK --need 'natural science'
    """
    from embark.boards.cards import cards
    from embark.catalogue import Catalogue
    from embark.studies import recommend as choice
    from embark.tasks import get_benchmark
    from embark.types import MODALITIES

    matrix = scores(benchmark, results, own)
    limits = choice.Limits(
        None if max_params is None else choice.amount(max_params),
        tuple(Catalogue("modality", MODALITIES, str).match(_listed(modality))),
        min_dim,
        max_dim,
    )
    facts = cards(matrix.models, get_benchmark(benchmark).family)
    present(choice.recommend(matrix, facts, _listed(need), limits).study(top), style, plot)


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
