"""`embark analyze`: what stored vectors tell. Nothing is embedded unless --embed asks for it.

Each command declares the options of its own; `run` has those that all share, and does the work.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import typer

import embark  # its parts are loaded at first use, so that --help stays fast
from embark.cli.analyze.options import Plot, present
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
)
from embark.cli.run import AllowOutside, Folder, TasksFile, own_rows
from embark.settings import load_settings

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.types import Task

Models = Annotated[list[str], typer.Option("-m", "--model", help="Model, also of your results; several are compared.")]
TaskName = Annotated[str, typer.Option("-t", "--task", help="Task name, also of your own.")]
Subset = Annotated[str | None, typer.Option("--subset", help="Which subset, where there are several (the first).")]
Embed = Annotated[bool, typer.Option("--embed", help="Embed what is not stored, instead of refusing.")]
Dims = Annotated[list[int] | None, typer.Option("--dims", help="Dimensions to keep; may be given several times.")]


def geometry(model: Models, task: TaskName, subset: Subset = None) -> None:
    """The shape of a task's vectors: modality gap, hubs, anisotropy, alignment and uniformity.

    \b
    embark analyze geometry -m embark/pocket -t PocketNameToImage
    embark analyze geometry -m embark/pocket -m embark/random -t PocketNameToImage --plot geometry.svg
    """


def map_(
    model: Models,
    task: TaskName,
    by: Annotated[str, typer.Option("--by", help="Color points by side or label.")] = "side",
    method: Annotated[
        str | None, typer.Option("--method", help="umap, tsne or pca (default: umap where installed, else tsne).")
    ] = None,
    subset: Subset = None,
) -> None:
    """A map of a task's vectors on the plane, colored by side or by label.

    \b
    embark analyze map -m embark/pocket -t PocketNameToImage --plot map.svg
    embark analyze map -m embark/pocket -t PocketGroupClustering --by label --plot groups.svg
    """


def truncate(model: Models, task: TaskNames = None, dims: Dims = None) -> None:
    """Scores of shortened vectors: the first dimensions (Matryoshka), and as many principal axes.

    \b
    embark analyze truncate -m embark/pocket -t PocketNameToImage --plot dims.svg --save
    embark analyze truncate -m embark/pocket -t 'Pocket*STS' --dims 128 --dims 32
    """


def quantize(model: Models, task: TaskNames = None, dims: Dims = None) -> None:
    """Scores of vectors in fewer bits (int8, binary), also shortened, against the bytes of an item.

    \b
    embark analyze quantize -m embark/pocket -t PocketNameToImage --plot bytes.svg
    """


def similarity(model: Models, task: TaskNames = None) -> None:
    """Scores by cosine and by dot product; for similarity tasks by distances, too.

    \b
    embark analyze similarity -m embark/pocket -t PocketNameToImage -t PocketNameSTS
    """


def topk(
    model: Models,
    task: TaskNames = None,
    measure: Annotated[
        str, typer.Option("--measure", help="hit_rate (top-k accuracy), recall, precision, ndcg, map or mrr.")
    ] = "hit_rate",
) -> None:
    """A ranking measure at every k: top-k accuracy of retrieval, choice and zero-shot classification.

    \b
    embark analyze topk -m embark/pocket -t PocketNameToImage -t PocketSubgroupZeroShot --plot topk.svg
    """


def shots(
    model: Models,
    task: TaskNames = None,
    shots: Annotated[
        list[int] | None, typer.Option("--shots", min=1, help="Examples per class; may be given several times.")
    ] = None,
) -> None:
    """Learning curves of probes: 1, 2, 4… examples per class, up to the row's own number.

    More than that needs vectors that a run does not make: --shots 64 --embed.

    \b
    embark analyze shots -m embark/pocket -t PocketGroupProbe --plot shots.svg
    embark analyze shots -m embark/pocket -t PocketGroupProbe --protocol sound --shots 16 --shots 64 --embed
    """


def prompts(
    model: Models,
    task: TaskNames = None,
    prompts: Annotated[
        list[str] | None, typer.Option("--prompt", help="Another prompt to try, {} is the class; needs --embed.")
    ] = None,
) -> None:
    """Zero-shot scores by prompt: all of a row's prompts together, each alone, and the bare class name.

    \b
    embark analyze prompts -m embark/pocket -t PocketSubgroupZeroShot --plot prompts.svg
    embark analyze prompts -m embark/pocket -t PocketFlagZeroShot --prompt 'the flag of {}' --embed
    """


def robustness(model: Models, task: TaskNames = None) -> None:
    """What each corruption costs: the score under every condition against the clean one.

    \b
    embark analyze robustness -m embark/pocket -t PocketRobustness
    """


def index(
    model: Models,
    task: TaskName,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Measurements of each time.")] = 5,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="That build and search (default: all cores).")
    ] = None,
) -> None:
    """What search costs: score, bytes, build time and queries a second of exact, int8, binary and graph indexes.

    Needs usearch: pip install 'embark-bench[index]'. Times are of this machine; nothing else should run on it.

    \b
    embark analyze index -m embark/pocket -t PocketNameToImage --plot index.svg
    """


def run(
    analysis: str,
    options: dict[str, Any],
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
    style: Format = "text",
    select: Select = None,
    plot: Plot = None,
    save: Save = False,
) -> None:
    """Have `embark.analyze` do an analysis of stored vectors, and print it."""
    from embark.models import Loading

    settings = load_settings(home, results, store=store)
    study = getattr(embark.analyze, analysis)(
        options.pop("model"),
        _tasks(options.pop("task", None), own_rows(folder, tasks_file, allow_outside)),
        **options,
        protocol=protocol,
        embed=embed,
        loading=Loading(dtype=dtype, trust=trust),
        settings=settings,
    )
    present(study, style, plot, select, settings if save else None)


def _tasks(names: str | list[str] | None, own: list[Task]) -> str | Task | list[str | Task]:
    """Tasks by name, also own ones; without names, all own ones."""
    if isinstance(names, str):
        matching = [row for row in own if fnmatchcase(row.name, names)]
        return matching[0] if len(matching) == 1 else names
    if not (names or own):
        raise typer.BadParameter("name a task (-t), or your own tasks (--folder, --tasks-file)")
    from embark.data.own_tasks import tasks_among

    return [*(tasks_among(names, own) if own else names or [])]
