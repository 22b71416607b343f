"""`embark analyze`: what the scores of many models tell about tasks and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark  # its parts are loaded at first use, so that --help stays fast
from embark.cli.analyze.options import OnBenchmark, OnTasks, Own, Plot, present
from embark.cli.output import Format, ResultsFolder
from embark.settings import load_settings

By = Annotated[str, typer.Option("--by", help="Group tasks by category, type, capability, domain… or task.")]
Correlation = Annotated[str, typer.Option("--correlation", help="spearman or pearson.")]


def correlate(
    benchmark: OnBenchmark = None,
    task: OnTasks = None,
    correlation: Correlation = "spearman",
    method: Annotated[str, typer.Option("--method", help="Of clustering: hierarchical, or umap (with HDBSCAN).")] = (
        "hierarchical"
    ),
    threshold: Annotated[float, typer.Option("--threshold", help="Mean correlation that joins clusters.")] = 0.8,
    style: Format = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """Which tasks rank models alike: their correlations over models, and clusters of tasks.

    \b
    embark analyze correlate -b ARK --plot ark.svg
    embark analyze correlate -b 'MIEB(Multilingual)' --method umap --plot map.svg
    """
    study = embark.analyze.correlate(
        benchmark,
        task,
        correlation=correlation,
        method=method,
        threshold=threshold,
        own=own,
        settings=load_settings(results=results),
    )
    present(study, style, plot)


def distill(
    benchmark: OnBenchmark = None,
    task: OnTasks = None,
    size: Annotated[int | None, typer.Option("--size", help="Tasks to keep (else as the threshold says).")] = None,
    threshold: Annotated[float, typer.Option("--threshold", help="Correlation above which one of two tasks goes.")] = (
        0.9
    ),
    method: Annotated[
        str | None, typer.Option("--method", help="totals (the default with --size), repeats, or average (MIEB's).")
    ] = None,
    by: By = "category",
    correlation: Correlation = "spearman",
    representatives: Annotated[
        bool, typer.Option("--representatives", help="Instead, the most representative task of each group.")
    ] = False,
    check: Annotated[
        str | None, typer.Option("--check", help="Instead, judge this benchmark as a lite set of the other.")
    ] = None,
    style: Format = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """A lite set of tasks, and how well it stands for all: totals, ranks, models held out, and random sets beside it.

    With a size, tasks are chosen whose mean follows that of their group (totals); else those that repeat another of
    their group are left out (repeats). Every group keeps at least one.

    \b
    embark analyze distill --size 51 --by type
    embark analyze distill --representatives --by type --plot types.svg
    embark analyze distill --check 'MIEB(lite)'
    """
    study = embark.analyze.distill(
        benchmark,
        task,
        size=size,
        threshold=threshold,
        method=method,
        by=by,
        correlation=correlation,
        representatives=representatives,
        check=check,
        own=own,
        settings=load_settings(results=results),
    )
    present(study, style, plot)


def predict(
    benchmark: OnBenchmark = None,
    task: OnTasks = None,
    part: Annotated[str, typer.Option("--from", help="The benchmark whose tasks are at hand.")] = "MIEB(lite)",
    style: Format = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """A model's full score from the tasks of a smaller benchmark, with a tested error bar.

    \b
    embark run -m MODEL -b 'MIEB(lite)'
    embark analyze predict -b 'MIEB(Multilingual)' --from 'MIEB(lite)' --plot predicted.svg
    """
    study = embark.analyze.predict(benchmark, task, part=part, own=own, settings=load_settings(results=results))
    present(study, style, plot)


def scaling(
    benchmark: OnBenchmark = None,
    task: OnTasks = None,
    against: Annotated[str, typer.Option("--against", help="parameters, or data (training examples).")] = "parameters",
    by: By = "category",
    style: Format = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """What ten times the parameters, or the training data, go with: points of score by group.

    \b
    embark analyze scaling --by type --plot size.svg
    embark analyze scaling --against data --by type
    embark analyze scaling -b UniBench --by task
    """
    settings = load_settings(results=results)
    present(embark.analyze.scaling(benchmark, task, against=against, by=by, own=own, settings=settings), style, plot)


def mllm(
    table: Annotated[Path, typer.Argument(help="CSV: a column of models, then a column for each measure.")],
    benchmark: OnBenchmark = None,
    task: OnTasks = None,
    by: By = "category",
    correlation: Correlation = "pearson",
    style: Format = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """Whether embedding scores foretell those of multimodal LLMs built on the encoders, or any other table of yours.

    \b
    embark analyze mllm mllm.csv --by type --plot mllm.svg
    """
    study = embark.analyze.mllm(
        table,
        benchmark,
        task,
        by=by,
        correlation=correlation,
        own=own,
        settings=load_settings(results=results),
    )
    present(study, style, plot)


def pareto(
    benchmark: OnBenchmark = None,
    task: OnTasks = None,
    against: Annotated[str, typer.Option("--against", help="parameters, dim, or time (of your own runs).")] = (
        "parameters"
    ),
    style: Format = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """The models that no other beats in both score and cost.

    \b
    embark analyze pareto --plot front.svg
    embark analyze pareto -b Pocket --own --against time
    """
    settings = load_settings(results=results)
    present(embark.analyze.pareto(benchmark, task, against=against, own=own, settings=settings), style, plot)
