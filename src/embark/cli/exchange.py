"""`embark import` and `embark export`: results of other tools, results for them, ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embark.cli.output import Device, Home, Offline, ProtocolName, ResultsFolder, counted, say

FEW = 8  # refused files that are named

export = typer.Typer(
    help="Results for mteb, and ranked lists for leaderboards.", no_args_is_help=True, rich_markup_mode=None
)
Into = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write to.")]


def import_results(
    folder: Annotated[Path, typer.Argument(help="A folder of mteb's results, or of MMEB's *_score.json files.")],
    model: Annotated[
        str | None, typer.Option("-m", "--model", help="Whose scores they are: MMEB's files do not say.")
    ] = None,
    revision: Annotated[str, typer.Option("--revision", help="The model's revision, for MMEB's files.")] = "main",
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="For MMEB's files: paper (MMEB-V3), mmeb-v2.1…")
    ] = None,
    results: ResultsFolder = None,
) -> None:
    """Take in scores that mteb or MMEB's code made; leaderboards show them beside yours, as theirs.

    mteb's files tell the model and, by their version, the protocol. A file that is no result of a known task, or only a
    part of one, is left out with the reason.

    \b
    embark import ~/results/openai__clip-vit-base-patch32
    embark import exps/VLM2Vec-V2.0 -m VLM2Vec/VLM2Vec-V2.0 --protocol mmeb-v2.1
    """
    from embark import published
    from embark.catalogue import UnknownName
    from embark.results import Results
    from embark.results.exchange import is_mmeb, read_mmeb, read_mteb
    from embark.settings import load_settings
    from embark.tasks import TASKS
    from embark.types import EmbarkError

    if not folder.is_dir():
        raise EmbarkError(f"There is no folder {folder}.")
    if not is_mmeb(folder):
        read = read_mteb(folder, TASKS)
    elif model is None or protocol is None:
        raise EmbarkError(
            "MMEB's score files name neither model nor release: give --model, and --protocol (paper, if MMEB-V3's code "
            "made them)."
        )
    else:
        if protocol not in (known := {"paper", *(score.protocol for score in published.scores("MMEB-V3"))}):
            raise UnknownName("protocol of MMEB", protocol, known)
        read = read_mmeb(folder, TASKS, model, revision, protocol)
    for path, why in list(read.refused.items())[:FEW]:
        say(f"left out: {path.relative_to(folder)}: {why}")
    if len(read.refused) > FEW:
        say(f"left out: {len(read.refused) - FEW} files more")
    if not read.results:
        raise EmbarkError(f"{folder} holds no results of known tasks.")
    into = Results(load_settings(results=results).results)
    for result in read.results:
        into.write(result, None)
    models = counted(len({result.model for result in read.results}), "model")
    protocols = ", ".join(sorted({result.protocol for result in read.results}))
    print(f"{counted(len(read.results), 'result')} of {models} to {into.root} (protocol {protocols})")


@export.command("mteb")
def export_mteb(folder: Into, protocol: ProtocolName = None, results: ResultsFolder = None) -> None:
    """Write your results as mteb's own tools read them: <org>__<model>/<revision>/<Task>.json.

    One protocol at a time, because mteb knows one result a task: the paper's, or with --protocol another one for the
    tasks that have it.

    \b
    embark export mteb for-mteb/results
    embark export mteb for-mteb/results --protocol mteb2
    """
    from embark.models import MODELS
    from embark.results import Results
    from embark.results.exchange import export_mteb as write
    from embark.settings import load_settings
    from embark.tasks import TASKS, under_protocol
    from embark.types import EmbarkError

    source = load_settings(results=results).results
    scored = {task.name: task.protocol for task in under_protocol(protocol, list(TASKS.values()))}
    ours = [result for result in Results(source).all() if result.made_by == "embark"]
    found = [result for result in ours if result.protocol == scored.get(result.task, "paper")]
    if not found:
        raise EmbarkError(f"There are no results of yours under that protocol in {source}. Make some: embark run")
    written = write(found, MODELS, folder)
    print(f"{counted(len(written), 'result')} to {folder}")


@export.command("ranked")
def export_ranked(
    folder: Into,
    model: Annotated[list[str], typer.Option("-m", "--model", help="Model name (see: embark models).")],
    task: Annotated[list[str], typer.Option("-t", "--task", help="Retrieval tasks, by name or pattern.")],
    depth: Annotated[int, typer.Option("--depth", min=1, help="Documents a query.")] = 100,
    style: Annotated[
        str, typer.Option("--format", help="jsonl (one query a line) or trec (trec_eval's runs).")
    ] = "jsonl",
    home: Home = None,
    device: Device = "auto",
    offline: Offline = False,
) -> None:
    """Write the best documents of every query, with their scores; no labels are needed.

    This is what a leaderboard with hidden labels scores (ARK). Vectors that are stored are not computed again.

    \b
    embark export ranked lists -m google/siglip-so400m-patch14-384 -t 'ARK/*'
    embark export ranked runs -m embark/pocket -t PocketNameToImage --format trec --depth 1000
    """
    from embark.catalogue import UnknownName
    from embark.models import Loading
    from embark.run.ranked_lists import FORMATS, rank
    from embark.settings import load_settings

    if style not in FORMATS:
        raise UnknownName("format of ranked lists", style, FORMATS)
    settings = load_settings(home, offline=offline or None)
    for ranking in rank(model, task, depth=depth, settings=settings, loading=Loading(device)):
        print(ranking.save(folder, style))
