"""`embark analyze`: studies as commands. Each calls `embark.analyze.run`, prints a table and draws a plot.

A command has the options that all studies of its need share, and those that its `Study` declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

import embark  # its parts are loaded at first use, so that --help stays fast
from embark.cli.grammar import Command, Group
from embark.cli.output import (
    Format,
    Home,
    Precision,
    ProtocolName,
    ResultsFolder,
    Save,
    Select,
    StorePlace,
    TaskNames,
    Trust,
    emit,
    say,
)
from embark.cli.run import AllowOutside, Folder, TasksFile, named_tasks
from embark.seams import Study
from embark.settings import Settings, load_settings
from embark.studies import STUDIES
from embark.types import Option

HEADS = {
    "scores": "Scores of many models",
    "outcomes": "Items of your own runs",
    "vectors": "Stored vectors",
    "generators": "Generators",
}
PLUGINS = "Of plug-ins"
KEYWORD = Parameter.KEYWORD_ONLY
FLAGS = {"models": ("-m", "--model"), "prompts": ("--prompt",)}  # where it is not the name of the option

OnBenchmark = Annotated[
    str | None, typer.Option("-b", "--benchmark", help="Benchmark name (default: MIEB(Multilingual)).")
]
OnTasks = Annotated[
    list[str] | None, typer.Option("-t", "--task", help="Instead, tasks by name or pattern, also your own.")
]
Models = Annotated[list[str], typer.Option("-m", "--model", help="Model, also of your results; several are compared.")]
Generators = Annotated[list[str], typer.Option("-m", "--model", help="Generator; several are compared.")]
Embed = Annotated[bool, typer.Option("--embed", help="Embed what is not stored, instead of refusing.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it into this file: .svg, .pdf or .png.")]
Own = Annotated[bool, typer.Option("--own", help="Only your own results, without the published ones.")]


class StudyCommands(Mapping[str, Any]):
    """The command of every study by its name, made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return command(STUDIES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(STUDIES)

    def __len__(self) -> int:
        return len(STUDIES)


class Studies(Group):
    """The studies by what they need, then those of plug-ins."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": StudyCommands()})

    def heads(self) -> Mapping[str, tuple[str, ...]]:
        """The names of studies by heading."""
        needs = {name: STUDIES[name].needs for name in STUDIES.own}
        ours = {head: tuple(name for name in needs if needs[name] == need) for need, head in HEADS.items()}
        added = tuple(name for name in STUDIES if name not in STUDIES.own)
        return {**ours, PLUGINS: added} if added else ours


app = typer.Typer(name="analyze", cls=Studies, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def start() -> None:
    """Analyze scores and stored vectors: each study prints a table and draws a plot (--plot FILE).

    Scores are the published ones and yours; vectors are those in the store, so nothing is embedded again.
    """


def command(study: Study) -> Any:
    """The command of a study: what it works on, its own options, then those that it shares with others."""
    arguments_of = ARGUMENTS[study.needs]
    shared = signature(arguments_of, eval_str=True).parameters.values()
    printing = [option for option in signature(present, eval_str=True).parameters.values() if option.kind == KEYWORD]

    def call(**words: Any) -> None:
        options = {name: words.pop(name) for name in study.options}
        printed = {option.name: words.pop(option.name) for option in printing}
        arguments = arguments_of(**words) | {name: value for name, value in options.items() if value is not None}
        present(embark.analyze.run(study.name, **arguments), arguments["settings"], **printed)

    first = [option.replace(kind=KEYWORD) for option in shared if option.kind != KEYWORD]
    own = [parameter(name, option) for name, option in study.options.items()]
    others = [option for option in shared if option.kind == KEYWORD]
    call.__signature__ = Signature([*first, *own, *others, *printing])  # type: ignore[attr-defined]
    text = "\n\n\b\n".join([study.about, "\n".join(study.examples)])
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(study.name, cls=Command, help=text)(call)
    return typer.main.get_command(alone)


def parameter(name: str, option: Option) -> Parameter:
    """An option of a study as one of its command; without it, the default of the study's function counts."""
    flags = FLAGS.get(name, (f"--{name.replace('_', '-')}",))
    kind: Any = option.kind
    text = option.about
    if isinstance(option.kind, tuple):
        *others, last = option.kind
        kind, text = str, f"{', '.join(others)} or {last}. {text}"
    return Parameter(name, KEYWORD, default=None, annotation=Annotated[kind | None, typer.Option(*flags, help=text)])


def of_scores(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    *,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    own: Own = False,
    results: ResultsFolder = None,
) -> dict[str, Any]:
    """The arguments of a study of scores."""
    return {"own": own, **of_outcomes(benchmark, tasks, folder=folder, tasks_file=tasks_file, results=results)}


def of_outcomes(
    benchmark: OnBenchmark = None,
    tasks: OnTasks = None,
    *,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    results: ResultsFolder = None,
) -> dict[str, Any]:
    """The arguments of a study of the items of own runs."""
    named = named_tasks(tasks, folder, tasks_file)
    return {"benchmark": benchmark, "tasks": named, "settings": load_settings(results=results)}


def of_vectors(
    model: Models,
    tasks: TaskNames = None,
    *,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    allow_outside: AllowOutside = False,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
) -> dict[str, Any]:
    """The arguments of a study of stored vectors."""
    named = named_tasks(tasks, folder, tasks_file, allow_outside)
    if not named:
        raise typer.BadParameter("name a task (-t), or your own tasks (--folder, --tasks-file)")
    return {
        "model": model,
        "tasks": named,
        "protocol": protocol,
        "embed": embed,
        "loading": embark.Loading(dtype=dtype, trust=trust),
        "settings": load_settings(home, results, store=store),
    }


def of_generators(
    model: Generators,
    tasks: TaskNames = None,
    *,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
) -> dict[str, Any]:
    """The arguments of a study of what generators write."""
    if not tasks:
        raise typer.BadParameter("name a zero-shot task (-t)")
    loading = embark.Loading(dtype=dtype, trust=trust)
    return {"model": model, "tasks": tasks, "loading": loading, "settings": load_settings(home, results, store=store)}


ARGUMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "scores": of_scores,
    "outcomes": of_outcomes,
    "vectors": of_vectors,
    "generators": of_generators,
}


def present(
    analysis: Any,  # an embark.types.Analysis
    settings: Settings,
    *,
    style: Format = "text",
    select: Select = None,
    plot: Plot = None,
    save: Save = False,
) -> None:
    """Print the notes and the table of an analysis, draw its plot into a file, and keep it in the results folder."""
    say(*analysis.notes)
    if save:
        say(f"kept: {embark.site.save_report(analysis, settings=settings)}")
    if plot is not None:  # first: whoever reads the table may stop reading
        analysis.plot(plot)
        say(f"drawn: {plot}")
    emit(analysis.table(), style, columns=select)
