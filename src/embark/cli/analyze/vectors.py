"""`embark analyze`: what stored vectors tell. Nothing is embedded unless --embed asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import embark  # its parts are loaded at first use, so that --help stays fast
from embark.catalogue import Catalogue
from embark.cli.analyze.options import Plot, present
from embark.cli.output import Format, Home, Precision, ProtocolName, TaskNames, Trust
from embark.settings import load_settings

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.studies.stored_tasks import SharedArguments
    from embark.types import Task

Models = Annotated[list[str], typer.Option("-m", "--model", help="Model name; several are compared.")]
TaskName = Annotated[str, typer.Option("-t", "--task", help="Task name.")]
TasksFile = Annotated[Path | None, typer.Option("--tasks-file", help="Your own tasks: a TOML file.")]
Subset = Annotated[str | None, typer.Option("--subset", help="Which subset, where there are several (the first).")]
Embed = Annotated[bool, typer.Option("--embed", help="Embed what is not stored, instead of refusing.")]
Dims = Annotated[list[int] | None, typer.Option("--dims", help="Dimensions to keep; may be given several times.")]


def geometry(
    model: Models,
    task: TaskName,
    subset: Subset = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """The shape of a task's vectors: modality gap, hubs, anisotropy, alignment and uniformity.

    \b
    embark analyze geometry -m embark/pocket -t PocketNameToImage
    embark analyze geometry -m embark/pocket -m embark/random -t PocketNameToImage --plot geometry.svg
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.geometry(model, _one_task(task, tasks_file), subset=subset, **shared), style, plot)


def map_(
    model: Models,
    task: TaskName,
    by: Annotated[str, typer.Option("--by", help="Color points by side or label.")] = "side",
    method: Annotated[
        str | None, typer.Option("--method", help="umap, tsne or pca (default: umap where installed, else tsne).")
    ] = None,
    subset: Subset = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """A map of a task's vectors on the plane, colored by side or by label.

    \b
    embark analyze map -m embark/pocket -t PocketNameToImage --plot map.svg
    embark analyze map -m embark/pocket -t PocketGroupClustering --by label --plot groups.svg
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    study = embark.analyze.map(model, _one_task(task, tasks_file), by=by, method=method, subset=subset, **shared)
    present(study, style, plot)


def truncate(
    model: Models,
    task: TaskNames = None,
    dims: Dims = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """Scores of shortened vectors: the first dimensions (Matryoshka), and as many principal axes.

    \b
    embark analyze truncate -m embark/pocket -t PocketNameToImage --plot dims.svg
    embark analyze truncate -m embark/pocket -t 'Pocket*STS' --dims 128 --dims 32
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.truncate(model, _tasks(task, tasks_file), dims=dims or (), **shared), style, plot)


def quantize(
    model: Models,
    task: TaskNames = None,
    dims: Dims = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """Scores of vectors in fewer bits (int8, binary), also shortened, against the bytes of an item.

    \b
    embark analyze quantize -m embark/pocket -t PocketNameToImage --plot bytes.svg
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.quantize(model, _tasks(task, tasks_file), dims=dims or (), **shared), style, plot)


def similarity(
    model: Models,
    task: TaskNames = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """Scores by cosine and by dot product; for similarity tasks by distances, too.

    \b
    embark analyze similarity -m embark/pocket -t PocketNameToImage -t PocketNameSTS
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.similarity(model, _tasks(task, tasks_file), **shared), style, plot)


def topk(
    model: Models,
    task: TaskNames = None,
    measure: Annotated[
        str, typer.Option("--measure", help="hit_rate (top-k accuracy), recall, precision, ndcg, map or mrr.")
    ] = "hit_rate",
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """A ranking measure at every k: top-k accuracy of retrieval, choice and zero-shot classification.

    \b
    embark analyze topk -m embark/pocket -t PocketNameToImage -t PocketSubgroupZeroShot --plot topk.svg
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.topk(model, _tasks(task, tasks_file), measure=measure, **shared), style, plot)


def shots(
    model: Models,
    task: TaskNames = None,
    shots: Annotated[
        list[int] | None, typer.Option("--shots", min=1, help="Examples per class; may be given several times.")
    ] = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """Learning curves of probes: 1, 2, 4… examples per class, up to the row's own number.

    More than that needs vectors that a run does not make: --shots 64 --embed.

    \b
    embark analyze shots -m embark/pocket -t PocketGroupProbe --plot shots.svg
    embark analyze shots -m embark/pocket -t PocketGroupProbe --protocol sound --shots 16 --shots 64 --embed
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.shots(model, _tasks(task, tasks_file), shots=shots or (), **shared), style, plot)


def prompts(
    model: Models,
    task: TaskNames = None,
    prompt: Annotated[
        list[str] | None, typer.Option("--prompt", help="Another prompt to try, {} is the class; needs --embed.")
    ] = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """Zero-shot scores by prompt: all of a row's prompts together, each alone, and the bare class name.

    \b
    embark analyze prompts -m embark/pocket -t PocketSubgroupZeroShot --plot prompts.svg
    embark analyze prompts -m embark/pocket -t PocketFlagZeroShot --prompt 'the flag of {}' --embed
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.prompts(model, _tasks(task, tasks_file), prompts=prompt or (), **shared), style, plot)


def robustness(
    model: Models,
    task: TaskNames = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Format = "text",
    plot: Plot = None,
) -> None:
    """What each corruption costs: the score under every condition against the clean one.

    \b
    embark analyze robustness -m embark/pocket -t PocketRobustness
    """
    shared = _shared(protocol, embed, dtype, trust, home)
    present(embark.analyze.robustness(model, _tasks(task, tasks_file), **shared), style, plot)


def _shared(
    protocol: str | None, embed: bool, dtype: str | None, trust: str | None, home: Path | None
) -> SharedArguments:
    """The arguments that all analyses of stored vectors have in common."""
    from embark.models import Loading

    loading = Loading(dtype=dtype, trust=trust)
    return {"protocol": protocol, "embed": embed, "loading": loading, "settings": load_settings(home)}


def _tasks(names: list[str] | None, tasks_file: Path | None) -> list[str | Task]:
    """Tasks by name, and those of a file."""
    tasks: list[str | Task] = [*(names or []), *(embark.load_tasks(tasks_file) if tasks_file else [])]
    if not tasks:
        raise typer.BadParameter("name a task (-t) or a file of your own tasks (--tasks-file)")
    return tasks


def _one_task(name: str, tasks_file: Path | None) -> str | Task:
    """A task by name: of the file, where there is one."""
    if tasks_file is None:
        return name
    return Catalogue(f"task in {tasks_file}", embark.load_tasks(tasks_file), lambda task: task.name)[name]
