"""`embark import` and `embark export`: results of other tools, results for them, ranked lists, inputs of generators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import embark
from embark import escape
from embark.catalogue import check_name, counted
from embark.cli.grammar import Command, Group
from embark.cli.output import Device, Format, Home, Offline, ProtocolName, ResultsFolder, StorePlace, emit, say
from embark.cli.run import (
    AllowOutside,
    Caption,
    Folder,
    Prompt,
    Rerank,
    Rewrite,
    TasksFile,
    chosen_stages,
    named_tasks,
)

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
    help="Results for mteb, ranked lists for leaderboards, inputs for generators that run elsewhere.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
From = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to read, from any level of its folders.")]
Into = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write to.")]
Whose = Annotated[str | None, typer.Option("-m", "--model", help="The model of these scores; the files have no name.")]
Revision = Annotated[str, typer.Option("--revision", help="The model's revision.")]
Release = Annotated[
    str | None, typer.Option("--protocol", help="What made them: paper (MMEB-V3), mmeb-v2.1, mmeb-v2.0.1…")
]


@import_.command("mteb", cls=Command)
def import_mteb(folder: From, style: Format = "text", results: ResultsFolder = None) -> None:
    """Take in mteb's results; leaderboards show them beside yours, as mteb's.

    The files tell the model and, by their version, the protocol. One that is no result of a known task, or only a part
    of one, is left out with the reason. Scores of releases of mteb that score a task otherwise than it states are
    marked, and kept off boards.

    \b
    embark import mteb ~/results/openai__clip-vit-base-patch32
    """
    _import(style, folder, tool="mteb", results=results)


@import_.command("mmeb", cls=Command)
def import_mmeb(
    folder: From,
    model: Whose = None,
    revision: Revision = "main",
    protocol: Release = None,
    style: Format = "text",
    results: ResultsFolder = None,
) -> None:
    """Take in MMEB's *_score.json files; leaderboards show them beside yours, as MMEB's.

    \b
    embark import mmeb exps/VLM2Vec-V2.0 -m VLM2Vec/VLM2Vec-V2.0 --protocol mmeb-v2.1
    """
    _import(style, folder, tool="mmeb", model=model, revision=revision, protocol=protocol, results=results)


@import_.command("unibench", cls=Command)
def import_unibench(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="UniBench's outputs folder, or one frame of it.")],
    style: Format = "text",
    results: ResultsFolder = None,
) -> None:
    """Take in UniBench's result frames; leaderboards show them beside yours, as UniBench's.

    They are feather or Parquet: aggregate.f, as the hub has it too (haideraltahan/unibench), or <model>/<benchmark>.f.

    \b
    embark import unibench ~/.cache/unibench/outputs
    embark import unibench aggregate.f
    """
    _import(style, path, tool="unibench", results=results)


@import_.command("guess", cls=Command, hidden=True)
def import_guess(
    folder: From,
    model: Whose = None,
    revision: Revision = "main",
    protocol: Release = None,
    style: Format = "text",
    results: ResultsFolder = None,
) -> None:
    """Take in results of mteb, MMEB or UniBench, whichever the files are of."""
    _import(style, folder, model=model, revision=revision, protocol=protocol, results=results)


def _import(style: str, folder: Path, results: Path | None, **options: Any) -> None:

    imported: Imported = embark.exchange.import_results(
        folder, settings=embark.load_settings(results=results), **options
    )
    say(*imported.notes)
    if style == "text":
        print(escape.terminal(imported.sentence()))
    else:
        emit(imported.table(), style)


@export.command("mteb", cls=Command)
def export_mteb(folder: Into, protocol: ProtocolName = None, results: ResultsFolder = None) -> None:
    """Write your results where mteb.ResultCache(DIR) looks: DIR/results/<org>__<model>/<revision>/<Task>.json.

    One protocol at a time, because mteb knows one result per task: the paper's, or with --protocol another one for the
    tasks that have it.

    \b
    embark export mteb for-mteb
    embark export mteb for-mteb --protocol mteb2
    """
    from embark.exchange.scores import mteb_cache

    written = embark.exchange.export_mteb(folder, protocol=protocol, settings=embark.load_settings(results=results))
    cache = mteb_cache(folder)
    print(f"{counted(len(written), 'result')} to {cache / 'results'}")
    print(f"Load them: mteb.ResultCache({str(cache)!r}).load_results()")


@export.command("ranked", cls=Command)
def export_ranked(
    into: Into,
    model: Annotated[list[str], typer.Option("-m", "--model", help="Model, also one of your results.")],
    task: Annotated[
        list[str] | None, typer.Option("-t", "--task", help="Retrieval tasks, by name or pattern, also your own.")
    ] = None,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    allow_outside: AllowOutside = False,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Documents per query.")] = 100,
    style: Annotated[
        str, typer.Option("--format", help="jsonl (one query per line) or trec (trec_eval's runs).")
    ] = "jsonl",
    rewrite: Rewrite = None,
    caption: Caption = None,
    rerank: Rerank = None,
    prompt: Prompt = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
    device: Device = "auto",
    offline: Offline = False,
) -> None:
    """Write the best documents of every query, with their scores; no labels are needed.

    This is what a leaderboard with hidden labels scores (ARK), for every route: the model alone, or with stages around
    it. Vectors that are stored are not computed again.

    \b
    embark export ranked lists -m google/siglip-so400m-patch14-384 -t 'ARK/*'
    embark export ranked lists -m BAAI/bge-m3 -t 'ARK/*' --caption Qwen/Qwen3-VL-8B-Instruct
    embark export ranked runs -m embark/pocket -t PocketNameToImage --format trec --depth 1000
    embark export ranked lists -m embark/pocket -t PetsRetrieval --tasks-file tasks.toml
    """
    from embark.exchange.ranked_lists import FORMATS

    check_name("format of ranked lists", style, FORMATS)
    settings = embark.load_settings(home, results, offline=offline or None, store=store)
    tasks = named_tasks(task, folder, tasks_file, allow_outside)
    if tasks is None:
        raise typer.BadParameter("name tasks (-t), or your own tasks (--folder, --tasks-file)")
    stages = chosen_stages(rewrite, caption, rerank, prompt or [])
    loading = embark.Loading(device)
    for ranking in embark.exchange.rank(model, tasks, depth=depth, stages=stages, settings=settings, loading=loading):
        print(ranking.save(into, style))


@export.command("inputs", cls=Command)
def export_inputs(
    into: Into,
    stage: Annotated[str, typer.Option("--for", metavar="STAGE", help="caption, rewrite or rerank.")],
    task: Annotated[
        list[str] | None, typer.Option("-t", "--task", help="Retrieval tasks, by name or pattern, also your own.")
    ] = None,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    allow_outside: AllowOutside = False,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="NAME", help="For rerank: the model that ranks first.")
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="For rerank: documents per query.")] = 50,
    rewrite: Rewrite = None,
    caption: Caption = None,
    prompt: Annotated[
        Path | None, typer.Option("--prompt", metavar="FILE", help="The prompt of a generator, instead of ours.")
    ] = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
    device: Device = "auto",
    offline: Offline = False,
) -> None:
    """Write what a generator or re-ranker would be asked, for models that run elsewhere: DIR/<stage>.jsonl, and the
    pictures, sounds and films beside it.

    Fill in "output" (or "score") of each line; then the file is a model: recorded:FILE, or recorded-scores:FILE.
    Written again, it keeps what is filled in, and gains what is missing.

    \b
    embark export inputs offline --for rewrite -t 'PocketARK/*'
    embark export inputs offline --for rerank -m embark/pocket -t 'PocketARK/*'
    embark export inputs offline --for rerank -m embark/pocket -t 'PocketARK/*' --rewrite recorded:offline/rewrite.jsonl
    """
    settings = embark.load_settings(home, results, offline=offline or None, store=store)
    tasks = named_tasks(task, folder, tasks_file, allow_outside)
    if tasks is None:
        raise typer.BadParameter("name tasks (-t), or your own tasks (--folder, --tasks-file)")
    written = embark.exchange.export_inputs(
        into,
        tasks,
        stage,
        model=model,
        stages=chosen_stages(rewrite, caption, None),
        depth=depth,
        prompt=prompt,
        settings=settings,
        loading=embark.Loading(device),
    )
    print(escape.terminal(written.sentence()))
