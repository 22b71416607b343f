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
from embark.cli.complete import choices, model_names
from embark.cli.grammar import Command, Group
from embark.cli.options import (
    Embed,
    Format,
    Include,
    LoadingOptions,
    Plot,
    ProtocolName,
    Save,
    ScoreSettings,
    Select,
    SomeModels,
    StoreSettings,
    TaskOptions,
    expanded,
)
from embark.cli.output import emit, say
from embark.seams import Study
from embark.settings import Settings
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
METAVARS: Mapping[str, tuple[Any, ...]] = {"N": (int, float, list[int], list[float]), "FILE": (Path,)}


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
    call.__name__ = study.name
    text = "\n\n\b\n".join([study.about, "\n".join(study.examples)])
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(study.name, cls=Command, help=text)(expanded(call))
    return typer.main.get_command(alone)


def parameter(name: str, option: Option) -> Parameter:
    """An option of a study as one of its command; without it, the default of the study's function counts."""
    flags = FLAGS.get(name, (f"--{name.replace('_', '-')}",))
    kind: Any = option.kind
    text = option.about
    if isinstance(option.kind, tuple):
        *others, last = option.kind
        kind, text = str, f"{', '.join(others)} or {last}. {text}"
    known = option.kind if isinstance(option.kind, tuple) else ()
    complete = model_names if name == "models" else choices(*known) if known else None
    shown = None if kind is bool else next((word for word, kinds in METAVARS.items() if kind in kinds), "NAME")
    declared = typer.Option(*flags, metavar=shown, help=text, autocompletion=complete)
    return Parameter(name, KEYWORD, default=None, annotation=Annotated[kind | None, declared])


def of_scores(*, tasks: TaskOptions, include: Include = "all", places: ScoreSettings) -> dict[str, Any]:
    """The arguments of a study of scores."""
    return {"include": include, **of_outcomes(tasks=tasks, places=places)}


def of_outcomes(*, tasks: TaskOptions, places: ScoreSettings) -> dict[str, Any]:
    """The arguments of a study of the items of own runs."""
    return {"tasks": tasks.chosen(), "settings": places.settings()}


def of_vectors(
    model: SomeModels,
    *,
    tasks: TaskOptions,
    protocol: ProtocolName = None,
    embed: Embed = False,
    loading: LoadingOptions,
    places: StoreSettings,
) -> dict[str, Any]:
    """The arguments of a study of stored vectors."""
    return {
        "model": model,
        "tasks": tasks.required(),
        "protocol": protocol,
        "embed": embed,
        "loading": loading.loading(),
        "settings": places.settings(),
    }


def of_generators(
    model: SomeModels, *, tasks: TaskOptions, loading: LoadingOptions, places: StoreSettings
) -> dict[str, Any]:
    """The arguments of a study of what generators write."""
    return {
        "model": model,
        "tasks": tasks.required(),
        "loading": loading.loading(),
        "settings": places.settings(),
    }


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
