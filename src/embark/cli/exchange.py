"""`embark import` and `embark export`: results of other tools, results for them, ranked lists, inputs of generators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import embark
from embark import escape
from embark.catalogue import check_name, counted
from embark.cli.complete import choices, model_names
from embark.cli.grammar import Command, Group
from embark.cli.options import (
    Format,
    LoadingOptions,
    ModelPatterns,
    OutFolder,
    ProtocolName,
    ScoreSettings,
    SomeModels,
    StageOptions,
    StoreSettings,
    TaskOptions,
    expanded,
)
from embark.cli.output import emit, say

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.exchange.scores import Imported


class Tools(Group):
    """Tools whose results can be taken in; a folder alone tells which one made its files."""

    UNNAMED: ClassVar[str] = "guess"


import_ = typer.Typer(
    help="Scores that mteb, MMEB's or UniBench's code made, beside yours.",
    cls=Tools,
    no_args_is_help=True,
    rich_markup_mode=None,
)
export = typer.Typer(
    cls=Group,
    help="Results for mteb, ranked lists for leaderboards, inputs for generators that run elsewhere.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
From = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to read, from any level of its folders.")]
Whose = Annotated[
    str | None, typer.Option("-m", "--model", metavar="NAME", help="The model of these scores; the files have no name.")
]
Revision = Annotated[str, typer.Option("--revision", metavar="COMMIT", help="The model's revision.")]
Release = Annotated[
    str | None,
    typer.Option("--protocol", metavar="NAME", help="What made them: paper (MMEB-V3), mmeb-v2.1, mmeb-v2.0.1…"),
]


@import_.command("mteb", cls=Command)
@expanded
def import_mteb(folder: From, *, places: ScoreSettings, style: Format = "text") -> None:
    """Take in mteb's results; leaderboards show them beside yours, as mteb's.

    The files tell the model and, by their version, the protocol. One that is no result of a known task, or only a part
    of one, is left out with the reason. Scores of releases of mteb that score a task otherwise than it states are
    marked, and kept off boards.

    \b
    embark import mteb ~/results/openai__clip-vit-base-patch32
    """
    _import(style, folder, tool="mteb", places=places)


@import_.command("mmeb", cls=Command)
@expanded
def import_mmeb(
    folder: From,
    model: Whose = None,
    revision: Revision = "main",
    protocol: Release = None,
    *,
    places: ScoreSettings,
    style: Format = "text",
) -> None:
    """Take in MMEB's *_score.json files; leaderboards show them beside yours, as MMEB's.

    \b
    embark import mmeb exps/VLM2Vec-V2.0 -m VLM2Vec/VLM2Vec-V2.0 --protocol mmeb-v2.1
    """
    _import(style, folder, tool="mmeb", model=model, revision=revision, protocol=protocol, places=places)


@import_.command("unibench", cls=Command)
@expanded
def import_unibench(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="UniBench's outputs folder, or one frame of it.")],
    *,
    places: ScoreSettings,
    style: Format = "text",
) -> None:
    """Take in UniBench's result frames; leaderboards show them beside yours, as UniBench's.

    They are feather or Parquet: aggregate.f, as the hub has it too (haideraltahan/unibench), or <model>/<benchmark>.f.

    \b
    embark import unibench ~/.cache/unibench/outputs
    embark import unibench aggregate.f
    """
    _import(style, path, tool="unibench", places=places)


@import_.command("guess", cls=Command, hidden=True)
@expanded
def import_guess(
    folder: From,
    model: Whose = None,
    revision: Revision = "main",
    protocol: Release = None,
    *,
    places: ScoreSettings,
    style: Format = "text",
) -> None:
    """Take in results of mteb, MMEB or UniBench, whichever the files are of."""
    _import(style, folder, model=model, revision=revision, protocol=protocol, places=places)


def _import(style: str, folder: Path, places: ScoreSettings, **options: Any) -> None:
    imported: Imported = embark.exchange.import_results(folder, settings=places.settings(), **options)
    say(*imported.notes)
    if style == "text":
        print(escape.terminal(imported.sentence()))
    else:
        emit(imported.table(), style)


@export.command("mteb", cls=Command)
@expanded
def export_mteb(
    out: OutFolder,
    model: ModelPatterns = None,
    *,
    tasks: TaskOptions,
    protocol: ProtocolName = None,
    places: ScoreSettings,
) -> None:
    """Write your results where mteb.ResultCache(DIR) looks: DIR/results/<org>__<model>/<revision>/<Task>.json.

    One protocol at a time, because mteb knows one result per task: the paper's, or with --protocol another one for the
    tasks that have it.

    \b
    embark export mteb -o for-mteb
    embark export mteb -o for-mteb --protocol mteb2
    """
    from embark.exchange.scores import mteb_cache

    written = embark.exchange.export_mteb(
        out, tasks.chosen(), models=model, protocol=protocol, settings=places.settings()
    )
    cache = mteb_cache(out)
    print(f"{counted(len(written), 'result')} to {cache / 'results'}")
    print(f"Load them: mteb.ResultCache({str(cache)!r}).load_results()")


@export.command("ranked", cls=Command)
@expanded
def export_ranked(
    model: SomeModels,
    out: OutFolder,
    *,
    tasks: TaskOptions,
    depth: Annotated[int, typer.Option("--depth", min=1, metavar="N", help="Documents per query.")] = 100,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            metavar="NAME",
            autocompletion=choices("jsonl", "trec"),
            help="jsonl (one query per line) or trec (trec_eval's runs).",
        ),
    ] = "jsonl",
    stages: StageOptions,
    loading: LoadingOptions,
    places: StoreSettings,
) -> None:
    """Write the best documents of every query, with their scores; no labels are needed.

    This is what a leaderboard with hidden labels scores (ARK), for every route: the model alone, or with stages around
    it. Vectors that are stored are not computed again.

    \b
    embark export ranked -o lists -m google/siglip-so400m-patch14-384 -t 'ARK/*'
    embark export ranked -o lists -m BAAI/bge-m3 -t 'ARK/*' --caption Qwen/Qwen3-VL-8B-Instruct
    embark export ranked -o runs -m embark/pocket -t PocketNameToImage --layout trec --depth 1000
    embark export ranked -o lists -m embark/pocket -t PetsRetrieval --tasks-file tasks.toml
    """
    from embark.exchange.ranked_lists import FORMATS

    check_name("layout of ranked lists", layout, FORMATS)
    rankings = embark.exchange.rank(
        model,
        tasks.required(),
        depth=depth,
        stages=stages.stages(),
        settings=places.settings(),
        loading=loading.loading(),
    )
    for ranking in rankings:
        print(ranking.save(out, layout))


@export.command("inputs", cls=Command)
@expanded
def export_inputs(
    stage: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="STAGE",
            autocompletion=choices("caption", "rewrite", "rerank"),
            help="caption, rewrite or rerank.",
        ),
    ],
    out: OutFolder,
    model: Annotated[
        str | None,
        typer.Option(
            "-m", "--model", metavar="NAME", autocompletion=model_names, help="For rerank: the model that ranks first."
        ),
    ] = None,
    *,
    tasks: TaskOptions,
    depth: Annotated[int, typer.Option("--depth", min=1, metavar="N", help="For rerank: documents per query.")] = 50,
    stages: StageOptions,
    loading: LoadingOptions,
    places: StoreSettings,
) -> None:
    """Write what a generator or re-ranker would be asked, for models that run elsewhere: DIR/<stage>.jsonl, and the
    pictures, sounds and films beside it.

    Fill in "output" (or "score") of each line; then the file is a model: recorded:FILE, or recorded-scores:FILE.
    Written again, it keeps what is filled in, and gains what is missing.

    \b
    embark export inputs -o offline --for rewrite -t 'PocketARK/*'
    embark export inputs -o offline --for rerank -m embark/pocket -t 'PocketARK/*'
    embark export inputs -o offline --for rerank -m embark/pocket -t 'PocketARK/*' --rewrite recorded:FILE.jsonl
    """
    prompts = stages.prompts()
    written = embark.exchange.export_inputs(
        out,
        tasks.required(),
        stage,
        model=model,
        stages=replace(stages, prompt=None).stages(),
        depth=depth,
        prompt=prompts.get(stage),
        settings=places.settings(),
        loading=loading.loading(),
    )
    print(escape.terminal(written.sentence()))
