"""`embark run` and `embark plan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import embark
from embark.cli.output import (
    BenchmarkName,
    Compile,
    Device,
    Format,
    Home,
    Offline,
    Pixels,
    Precision,
    ProtocolName,
    ResultsFolder,
    Select,
    StoredPrecision,
    StorePlace,
    TaskNames,
    Trust,
    beside_stderr,
    emit,
    finish,
    say,
)

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.types import Task

ModelNames = Annotated[
    list[str] | None,
    typer.Option("-m", "--model", metavar="NAME", help="Model, checkpoint folder or LOADER:ID; repeatable."),
]
As = Annotated[
    list[str] | None,
    typer.Option("--as", metavar="NAME", help="The name of the model in results and tables."),
]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="DIR", help="Your media, with a table or a folder a class."),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Of --folder or --dataset: retrieval, probe…"),
]
FolderName = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="What tasks of --folder or --dataset are called.")
]
DatasetId = Annotated[
    str | None, typer.Option("--dataset", metavar="ID", help="A data set of the hub, whose columns become a task.")
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="ROLE=NAME,…", help="Of --dataset: image=img,text=caption."),
]
SplitName = Annotated[str | None, typer.Option("--split", metavar="NAME", help="Of --dataset (default: test…).")]
ConfigName = Annotated[str | None, typer.Option("--config", metavar="NAME", help="Of --dataset, where it has several.")]
Revision = Annotated[
    str | None, typer.Option("--revision", metavar="COMMIT", help="Of --dataset (default: main as it is now).")
]
TasksFile = Annotated[
    Path | None, typer.Option("--tasks-file", metavar="FILE", help="Your tasks: TOML, one [[task]] table a task.")
]
AllowOutside = Annotated[
    bool, typer.Option("--allow-outside", help="Let your CSV or TOML name files outside its folder.")
]
SkipUnreadable = Annotated[
    bool, typer.Option("--skip-unreadable", help="Score your data without files that do not decode.")
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, metavar="N", help="Items per forward pass (default: by trial).")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="N", help="A quick look: a sample of N queries or items."),
]
Rescore = Annotated[bool, typer.Option("--rescore", help="Compute scores again from the stored vectors.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, metavar="N", help="Workers that decode media, and score.")
]
Evict = Annotated[bool, typer.Option("--evict", help="Delete what was downloaded after its last task.")]
Engine = Annotated[
    str | None, typer.Option("--engine", metavar="NAME", help="local, or ray[:copies=8,gpus=1] (EMBARK_ENGINE).")
]
Address = Annotated[
    str | None, typer.Option("--address", metavar="PLACE", help="Of Ray: auto, host:port, ray://… (EMBARK_ADDRESS).")
]
Rewrite = Annotated[str | None, typer.Option("--rewrite", metavar="NAME", help="A generator that rewrites queries.")]
Caption = Annotated[
    str | None, typer.Option("--caption", metavar="NAME", help="A generator that puts media into words.")
]
Rerank = Annotated[
    str | None, typer.Option("--rerank", metavar="NAME[:N]", help="A re-ranker of the N (50) best documents.")
]


Prompt = Annotated[
    list[str] | None,
    typer.Option("--prompt", metavar="STAGE=FILE", help="Your prompt for rewrite or caption; repeatable."),
]


def run(
    model: ModelNames = None,
    names: As = None,
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    folder: Folder = None,
    dataset: DatasetId = None,
    columns: Columns = None,
    split: SplitName = None,
    config: ConfigName = None,
    revision: Revision = None,
    name: FolderName = None,
    kind: Kinds = None,
    tasks_file: TasksFile = None,
    allow_outside: AllowOutside = False,
    skip_unreadable: SkipUnreadable = False,
    protocol: ProtocolName = None,
    limit: Limit = None,
    rescore: Rescore = False,
    batch_size: BatchSize = None,
    workers: Workers = None,
    device: Device = "auto",
    dtype: Precision = None,
    stored_dtype: StoredPrecision = None,
    pixels: Pixels = "auto",
    compile: Compile = False,
    trust: Trust = None,
    rewrite: Rewrite = None,
    caption: Caption = None,
    rerank: Rerank = None,
    prompt: Prompt = None,
    offline: Offline = False,
    evict: Evict = False,
    engine: Engine = None,
    address: Address = None,
    style: Format = "text",
    select: Select = None,
    home: Home = None,
    store: StorePlace = None,
    results: ResultsFolder = None,
) -> None:
    """Evaluate models over tasks: by default those of embark.toml, else Pocket.

    \b
    embark run -m embark/pocket -t 'Pocket*ZeroShot' --engine ray
    embark run -m ./step-500/model --as mine/step-500 -b 'MIEB(lite)' --limit 100
    embark run -m embark/pocket --folder holiday-photos --kind retrieval
    embark run -m embark/pocket --dataset owner/name --columns image=img,text=caption
    """
    from embark.results import long_table
    from embark.run import NothingScored

    settings = embark.load_settings(
        home, results, workers, offline=offline or None, store=store, engine=engine, address=address
    )
    if address and not settings.engine.startswith("ray"):
        raise typer.BadParameter("--address is that of a Ray cluster: add --engine ray")
    of_folder = folder_tasks(folder, name, kind, skip_unreadable, allow_outside)
    of_folder += dataset_tasks(dataset, columns, split, config, revision, name, kind, settings, skip_unreadable)
    if (name or kind) and not of_folder:
        raise typer.BadParameter("--name and --kind are about --folder or --dataset: name one")
    try:
        report = embark.evaluate(
            model or None,
            chosen_tasks(benchmark, task, of_folder, tasks_file, skip_unreadable, allow_outside),
            protocol=protocol,
            settings=settings,
            limit=limit,
            rescore=rescore,
            batch_size=batch_size,
            loading=embark.Loading(device, dtype, compile, trust, pixels=pixels, stored_dtype=stored_dtype),
            stages=chosen_stages(rewrite, caption, rerank, prompt or []),
            evict=evict,
            name=names or None,
        )
    except NothingScored as failed:
        report = failed.run
    table = report.table()
    if report.results or style != "text":
        data = {"results": long_table(report.results), "skipped": [vars(skip) for skip in report.skipped]}
        emit(table, style, data, select)
    on_screen = table.notes if report.results and style == "text" and beside_stderr() else ()
    notes = [note for note in report.notes if note not in on_screen]
    say(*report.summary(), *notes, *_rows(of_folder))
    finish(failed=any(skip.kind == "failed" for skip in report.skipped))


def chosen_tasks(
    benchmark: str | None,
    task: list[str] | None,
    of_folder: Sequence[embark.types.Task],
    tasks_file: Path | None,
    skip_unreadable: bool = False,
    allow_outside: bool = False,
) -> Any:
    """What the options of a command name."""
    if benchmark and (task or of_folder or tasks_file):
        raise typer.BadParameter("give either a benchmark or tasks, not both")
    if benchmark:
        return embark.get_benchmark(benchmark)
    own = _skipping(own_rows(None, tasks_file, allow_outside), skip_unreadable)
    return _among(task, [*of_folder, *own])


def named_tasks(
    task: list[str] | None, folder: Path | None, tasks_file: Path | None, allow_outside: bool = False
) -> Any:
    """The tasks that -t names, also those of a folder or file; without -t, all of these. None where none is named."""
    return _among(task, own_rows(folder, tasks_file, allow_outside))


def own_rows(folder: Path | None, tasks_file: Path | None, allow_outside: bool = False) -> list[Task]:
    """The tasks of a folder and of a file."""
    own = embark.load_tasks(tasks_file, allow_outside=allow_outside) if tasks_file else []
    return [*folder_tasks(folder, None, None, allow_outside=allow_outside), *own]


def _among(names: list[str] | None, own: list[Task]) -> Any:
    if not own:
        return names or None
    from embark.own.names import tasks_among

    return tasks_among(names, own)


def folder_tasks(
    folder: Path | None,
    name: str | None,
    kinds: list[str] | None,
    skip_unreadable: bool = False,
    allow_outside: bool = False,
) -> list[embark.types.Task]:
    """The tasks of the option --folder, of all kinds unless some are named."""
    if folder is None:
        return []
    return _skipping(
        embark.folder_task(folder, name=name, kinds=kinds or "all", allow_outside=allow_outside), skip_unreadable
    )


def dataset_tasks(
    dataset: str | None,
    columns: str | None,
    split: str | None,
    config: str | None,
    revision: str | None,
    name: str | None,
    kinds: list[str] | None,
    settings: embark.Settings,
    skip_unreadable: bool = False,
) -> list[embark.types.Task]:
    """The tasks of the option --dataset, one for each kind."""
    if dataset is None:
        if columns or split or config or revision:
            raise typer.BadParameter("--columns, --split, --config and --revision are about --dataset: name one")
        return []
    if name and len(kinds or ()) > 1:
        raise typer.BadParameter("--name names one task: give one --kind, or leave it out")
    by_role = _columns(columns)
    tasks = [
        embark.task(dataset, kind, by_role, name=name, split=split, config=config, revision=revision, settings=settings)
        for kind in kinds or [""]
    ]
    return _skipping(tasks, skip_unreadable)


def _columns(stated: str | None) -> dict[str, str] | None:
    """Columns by role, of "image=img,texts=right,wrong"."""
    if not stated:
        return None
    columns: dict[str, str] = {}
    for piece in stated.split(","):
        role, equals, column = piece.partition("=")
        if equals:
            columns[role.strip()] = column
        elif columns:
            columns[list(columns)[-1]] += f",{piece}"
        else:
            raise typer.BadParameter(f"'{piece}' names no role; write image=NAME,text=NAME", param_hint="--columns")
    return columns


def _skipping(tasks: list[embark.types.Task], skip_unreadable: bool) -> list[embark.types.Task]:
    return [replace(row, unreadable="skip") for row in tasks] if skip_unreadable else tasks


def _rows(tasks: Sequence[embark.types.Task]) -> list[str]:
    """The rows of a folder's tasks as TOML, and the notes on what no task was made of."""
    if not tasks:
        return []
    notes = dict.fromkeys(note for task in tasks for note in task.notes)
    lines = "\n".join(embark.tasks.to_toml(task) for task in tasks).splitlines()
    return [*notes, "To keep or change these tasks, save their rows for embark run --tasks-file FILE:", "", *lines]


def chosen_stages(rewrite: str | None, caption: str | None, rerank: str | None, prompts: Sequence[str] = ()) -> Any:
    """What the options of stages name; None where there are none."""
    if not (rewrite or caption or rerank or prompts):
        return None
    reranker, depth = reranker_and_depth(rerank)
    return embark.Stages(rewrite, caption, reranker, depth, prompt_files(prompts))


def prompt_files(prompts: Sequence[str]) -> dict[str, Path]:
    """The files of "rewrite=FILE", by stage."""
    files = dict(prompt.partition("=")[::2] for prompt in prompts)
    if missing := [stage for stage, file in files.items() if not file]:
        raise typer.BadParameter(
            f"'{missing[0]}' names no file; write rewrite=FILE or caption=FILE", param_hint="--prompt"
        )
    return {stage: Path(file) for stage, file in files.items()}


def reranker_and_depth(rerank: str | None) -> tuple[str | None, int]:
    """The name and the number of documents of "NAME:50"."""
    from embark.run.stages import DEPTH

    name, _, depth = (rerank or "").rpartition(":")
    return (name, int(depth)) if name and depth.isdigit() else (rerank, DEPTH)
