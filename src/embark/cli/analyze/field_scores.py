"""`embark analyze`: what the scores of a whole field tell about tasks and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embark.cli.analyze import OnBenchmark, Own, Plot, Style, present, scores
from embark.cli.output import ResultsFolder

MIEB = "MIEB(Multilingual)"
By = Annotated[str, typer.Option("--by", help="Group tasks by category, type, capability, domain… or task.")]
Kind = Annotated[str, typer.Option("--kind", help="Of correlation: spearman or pearson.")]


def correlate(
    benchmark: OnBenchmark = MIEB,
    kind: Kind = "spearman",
    method: Annotated[str, typer.Option("--method", help="Of clustering: hierarchical, or umap (with HDBSCAN).")] = (
        "hierarchical"
    ),
    threshold: Annotated[float, typer.Option("--threshold", help="Mean correlation that joins clusters.")] = 0.8,
    style: Style = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """Which tasks rank models alike: their correlations over models, and clusters of tasks.

    \b
    embark analyze correlate -b ARK --plot ark.svg
    embark analyze correlate -b 'MIEB(Multilingual)' --method umap --plot map.svg
    """
    from embark.studies import correlate as study

    present(study.correlate(scores(benchmark, results, own), kind, method, threshold).study(), style, plot)


def distill(
    benchmark: OnBenchmark = MIEB,
    size: Annotated[int | None, typer.Option("--size", help="Tasks to keep (else as the threshold says).")] = None,
    threshold: Annotated[float, typer.Option("--threshold", help="Correlation above which one of two tasks goes.")] = (
        0.9
    ),
    by: By = "category",
    kind: Kind = "spearman",
    one_each: Annotated[
        bool, typer.Option("--representatives", help="Instead, the most representative task of each group.")
    ] = False,
    check: Annotated[
        str | None, typer.Option("--check", help="Instead, judge this benchmark as a lite set of the other.")
    ] = None,
    style: Style = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """A lite set of tasks, and how well it stands for all: totals, ranks, and models held out.

    Tasks that repeat another of their group are left out; every group keeps at least one.

    \b
    embark analyze distill --size 51 --by type
    embark analyze distill --representatives --by type --plot types.svg
    embark analyze distill --check 'MIEB(lite)'
    """
    from embark.studies import distill as study
    from embark.studies.representatives import representatives
    from embark.tasks import TASKS, get_benchmark

    rule, matrix = get_benchmark(benchmark).rule, scores(benchmark, results, own)
    if one_each:
        present(representatives(matrix, rule, by, kind).study(), style, plot)
        return
    if check is None:
        present(study.distill(matrix, rule, by, size, threshold, kind).study(), style, plot)
        return
    names = [task.name for task in TASKS.match(get_benchmark(check).tasks)]
    made = study.beside(study.judged(matrix, rule, names, by, kind), check, names)
    if (benchmark, check) == (MIEB, "MIEB(lite)"):
        from embark.cli.published import PAPER

        said = "The paper says Spearman {} and Pearson {} (section 6.3)."
        made = study.noted(made, said.format(*PAPER))
    present(made.study(), style, plot)


def predict(
    benchmark: OnBenchmark = MIEB,
    part: Annotated[str, typer.Option("--from", help="The benchmark whose tasks are at hand.")] = "MIEB(lite)",
    style: Style = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """A model's full score from the tasks of a smaller benchmark, with a tested error bar.

    \b
    embark run -m MODEL -b 'MIEB(lite)'
    embark analyze predict -b 'MIEB(Multilingual)' --from 'MIEB(lite)' --plot predicted.svg
    """
    from embark.studies import predict as study
    from embark.tasks import TASKS, get_benchmark

    names = [task.name for task in TASKS.match(get_benchmark(part).tasks)]
    made = study.predict(scores(benchmark, results, own), names, get_benchmark(benchmark).rule)
    present(made.study(), style, plot)


def scaling(
    benchmark: OnBenchmark = MIEB,
    against: Annotated[str, typer.Option("--against", help="parameters, or data (training examples).")] = "parameters",
    by: By = "category",
    style: Style = "text",
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
    from embark.boards.cards import cards
    from embark.studies import scaling as study
    from embark.tasks import get_benchmark

    matrix = scores(benchmark, results, own)
    facts = cards(matrix.models, get_benchmark(benchmark).family)
    present(study.scaling(matrix, facts, against, by).study(), style, plot)


def mllm(
    table: Annotated[Path, typer.Argument(help="CSV: a column of models, then a column for each measure.")],
    benchmark: OnBenchmark = MIEB,
    by: By = "category",
    kind: Kind = "pearson",
    style: Style = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """Whether embedding scores foretell those of multimodal LLMs built on the encoders, or any other table of yours.

    \b
    embark analyze mllm mllm.csv --by type --plot mllm.svg
    """
    from embark.studies.external_scores import outside, read

    present(outside(scores(benchmark, results, own), read(table), by, kind).study(), style, plot)


def pareto(
    benchmark: OnBenchmark = MIEB,
    against: Annotated[str, typer.Option("--against", help="parameters, dim, or time (of your own runs).")] = (
        "parameters"
    ),
    style: Style = "text",
    plot: Plot = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """The models that no other beats in both score and cost.

    \b
    embark analyze pareto --plot front.svg
    embark analyze pareto -b Pocket --own --against time
    """
    from embark.boards.cards import cards
    from embark.results import Results
    from embark.settings import load_settings
    from embark.studies import pareto as study
    from embark.tasks import get_benchmark

    wanted, matrix = get_benchmark(benchmark), scores(benchmark, results, own)
    if against == "time":
        costs = study.times(Results(load_settings(results=results).results).all())
    else:
        costs = study.sizes(cards(matrix.models, wanted.family), against)
    present(study.pareto(matrix, costs, wanted.rule, against).study(), style, plot)
