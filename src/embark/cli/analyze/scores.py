"""`embark analyze`: what the scores of many models tell about tasks and models.

Each command declares the options of its own; `run` has those that all share, and does the work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import embark  # its parts are loaded at first use, so that --help stays fast
from embark.cli.analyze.options import OnBenchmark, OnTasks, Own, Plot, present
from embark.cli.output import Format, ResultsFolder, Save, Select
from embark.cli.run import Folder, TasksFile, named_tasks
from embark.settings import load_settings

By = Annotated[str, typer.Option("--by", help="Group tasks by category, type, capability, domain… or task.")]
OfModels = Annotated[
    list[str] | None, typer.Option("-m", "--model", help="Only these models: names or patterns, '*siglip*'.")
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="Only models with this on their card: architecture=vit, data=400..2000 (millions)."),
]
Correlation = Annotated[str, typer.Option("--correlation", help="spearman or pearson.")]


def correlate(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    correlation: Correlation = "spearman",
    method: Annotated[str, typer.Option("--method", help="Of clustering: hierarchical, or umap (with HDBSCAN).")] = (
        "hierarchical"
    ),
    threshold: Annotated[float, typer.Option("--threshold", help="Mean correlation that joins clusters.")] = 0.8,
) -> None:
    """Which tasks rank models alike: their correlations over models, and clusters of tasks.

    \b
    embark analyze correlate -b ARK --plot ark.svg
    embark analyze correlate -b 'MIEB(Multilingual)' --method umap --plot map.svg
    """


def distill(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
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
) -> None:
    """A lite set of tasks, and how well it stands for all: totals, ranks, models held out, and random sets beside it.

    With a size, tasks are chosen whose mean follows that of their group (totals); else those that repeat another of
    their group are left out (repeats). Every group keeps at least one.

    \b
    embark analyze distill --size 51 --by type
    embark analyze distill --representatives --by type --plot types.svg
    embark analyze distill --check 'MIEB(lite)'
    """


def predict(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    part: Annotated[str, typer.Option("--from", help="The benchmark whose tasks are at hand.")] = "MIEB(lite)",
) -> None:
    """A model's full score from the tasks of a smaller benchmark, with a tested error bar.

    \b
    embark run -m MODEL -b 'MIEB(lite)'
    embark analyze predict -b 'MIEB(Multilingual)' --from 'MIEB(lite)' --plot predicted.svg
    """


def scaling(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    against: Annotated[str, typer.Option("--against", help="parameters, or data (training examples).")] = "parameters",
    by: By = "category",
    hold: Annotated[
        str | None, typer.Option("--hold", help="Compare models with the same architecture, objective, family, data…")
    ] = None,
    models: OfModels = None,
    where: Where = None,
) -> None:
    """What ten times the parameters, or the training data, go with: points of score by group.

    \b
    embark analyze scaling --by type --plot size.svg
    embark analyze scaling --against data --by type --hold architecture
    embark analyze scaling --by type --where architecture=vit --where data=400..2000
    embark analyze scaling -b UniBench --by task
    """


def gains(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    against: Annotated[str, typer.Option("--against", help="data (training examples), or parameters.")] = "data",
    by: Annotated[
        str | None, typer.Option("--by", help="Group tasks by this tag (default: capability, else category).")
    ] = None,
    reference: Annotated[str | None, typer.Option("--reference", help="The task to compare with (ImageNet).")] = None,
    models: OfModels = None,
    where: Where = None,
) -> None:
    """What scale buys in every group of tasks, relative to what it buys on ImageNet.

    \b
    embark analyze gains --by type --against parameters --plot gains.svg
    embark analyze gains -b UniBench --own --where architecture=vit
    """


def medians(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    by: By = "category",
    models: OfModels = None,
    where: Where = None,
) -> None:
    """What the whole field can do: the median over models on every task, against chance.

    \b
    embark analyze medians -b UniBench --plot medians.svg
    embark analyze medians --where parameters=..500 --format latex
    """


def extremes(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    by: By = "category",
    models: OfModels = None,
    where: Where = None,
) -> None:
    """The mean, the best and the worst model in every group of tasks, and how far those differ in scale.

    \b
    embark analyze extremes --by type
    embark analyze extremes -b UniBench --own --by capability --format latex
    """


def mllm(
    table: Annotated[
        Path | None, typer.Argument(help="CSV: a column of models, then one for each measure; else Cambrian-1's.")
    ] = None,
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    by: By = "category",
    correlation: Correlation = "pearson",
) -> None:
    """Whether embedding scores foretell those of multimodal LLMs built on the encoders (MIEB's Figure 4; the scores are
    Cambrian-1's), or any other table of yours.

    \b
    embark analyze mllm --plot mllm.svg
    embark analyze mllm mllm.csv --by type
    """


def pareto(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    against: Annotated[str, typer.Option("--against", help="parameters, dim, price, or time (of your own runs).")] = (
        "parameters"
    ),
) -> None:
    """The models that no other beats in both score and cost.

    \b
    embark analyze pareto --plot front.svg
    embark analyze pareto -b Pocket --own --against time
    """


def heatmap(benchmark: OnBenchmark = None, tasks: OnTasks = None, by: By = "category", models: OfModels = None) -> None:
    """Models × categories of tasks: the mean score of every model in every group.

    \b
    embark analyze heatmap -b 'MIEB(lite)' --plot heatmap.svg
    embark analyze heatmap -b Pocket --own --by capability --format latex
    """


def profile(benchmark: OnBenchmark = None, tasks: OnTasks = None, by: By = "category", models: OfModels = None) -> None:
    """Where models are strong and weak: scores by group of tasks, with ranks and the median of all models.

    \b
    embark analyze profile -m '*siglip-so400m*' -m royokong/e5-v --plot profile.svg
    embark analyze profile -b Pocket --own -m embark/pocket
    """


def languages(benchmark: OnBenchmark = None, tasks: OnTasks = None, models: OfModels = None) -> None:
    """Scores by language, on tasks that have several.

    \b
    embark analyze languages -t PocketNamesIn38Languages --own --plot languages.svg
    embark analyze languages -t XM3600T2IRetrieval -m '*siglip*'
    """


def confusion(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    models: OfModels = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="Instead, every pair of classes that are confused.")] = False,
) -> None:
    """Your zero-shot and probe tasks class by class: precision, recall, and what each class is taken for.

    \b
    embark analyze confusion -t PocketGroupZeroShot -m embark/pocket --plot confusion.svg
    embark analyze confusion -t PocketGroupProbe --matrix --format csv
    """


def calibration(benchmark: OnBenchmark = None, tasks: OnTasks = None, models: OfModels = None) -> None:
    """Whether your zero-shot models know when they are right: confidence, entropy, calibration error.

    \b
    embark analyze calibration -t PocketGroupZeroShot --plot calibration.svg
    """


def breakdown(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    by: Annotated[str | None, typer.Option("--by", help="The label to go by (default: every one).")] = None,
    pool: Annotated[bool, typer.Option("--pool", help="The items of all tasks together: one group a value.")] = False,
) -> None:
    """Your scores within groups of items: by skill, corruption, attribute or whatever the data tell about each.

    Robustness tasks have the label condition; tasks of classification have class, if it is named.

    \b
    embark analyze breakdown -t UniBench/imagenetc
    embark analyze breakdown -b 'ARK(emoji)' --by skills --pool --plot skills.svg
    embark analyze breakdown -t PocketRobustness --by condition
    """


def rendering(
    benchmark: Annotated[str | None, typer.Option("-b", "--benchmark", help="Its visual STS (default: all).")] = None,
    tasks: OnTasks = None,
) -> None:
    """What reading costs: the same pairs of sentences as pictures (visual STS) and as text (their twins).

    \b
    embark run -m MODEL -t STS13VisualSTS -t STS13
    embark analyze rendering -t STS13VisualSTS
    embark analyze rendering -b 'MIEB(Multilingual)' --plot reading.svg
    """


def run(
    analysis: str,
    options: dict[str, Any],
    *,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    style: Format = "text",
    select: Select = None,
    plot: Plot = None,
    save: Save = False,
    own: Own = False,
    results: ResultsFolder = None,
) -> None:
    """Have `embark.analyze` do an analysis of scores, and print it."""
    _run(analysis, options | {"own": own}, folder, tasks_file, style, select, plot, save, results)


def run_on_outcomes(
    analysis: str,
    options: dict[str, Any],
    *,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    style: Format = "text",
    select: Select = None,
    plot: Plot = None,
    save: Save = False,
    results: ResultsFolder = None,
) -> None:
    """Have `embark.analyze` do an analysis of the items of your own runs, and print it."""
    _run(analysis, options, folder, tasks_file, style, select, plot, save, results)


def _run(
    analysis: str,
    options: dict[str, Any],
    folder: Path | None,
    tasks_file: Path | None,
    style: str,
    select: list[str] | None,
    plot: Path | None,
    save: bool,
    results: Path | None,
) -> None:
    if folder or tasks_file:
        options["tasks"] = named_tasks(options.get("tasks"), folder, tasks_file)
    settings = load_settings(results=results)
    study = getattr(embark.analyze, analysis)(**options, settings=settings)
    present(study, style, plot, select, settings if save else None)
