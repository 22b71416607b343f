"""`embark run` and `embark plan`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import embark
from embark import escape
from embark.cli.output import (
    BenchmarkName,
    Compile,
    Device,
    Format,
    Home,
    Offline,
    Precision,
    ProtocolName,
    ResultsFolder,
    TaskNames,
    Trust,
    emit,
    finish,
    print_table,
)

ModelNames = Annotated[
    list[str] | None,
    typer.Option("-m", "--model", metavar="NAME", help="Model, checkpoint folder or LOADER:ID; several may be given."),
]
Folder = Annotated[
    Path | None, typer.Option("--folder", metavar="DIR", help="Your images, with a CSV of captions or labels.")
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
    int | None, typer.Option("--workers", min=1, metavar="N", help="Threads that decode media and score tasks.")
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
    typer.Option("--prompt", metavar="STAGE=FILE", help="Your prompt for rewrite or caption; may be given twice."),
]


def run(
    model: ModelNames = None,
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    folder: Folder = None,
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
    compile: Compile = False,
    trust: Trust = None,
    rewrite: Rewrite = None,
    caption: Caption = None,
    rerank: Rerank = None,
    prompt: Prompt = None,
    offline: Offline = False,
    style: Format = "text",
    home: Home = None,
    results: ResultsFolder = None,
) -> None:
    """Evaluate models over tasks and print the table.

    Without arguments: the pocket benchmark with the pocket model and two baselines, offline.

    \b
    embark run
    embark run -m embark/pocket -t 'Pocket*ZeroShot'
    embark run -m ./my-checkpoint -b 'MIEB(lite)' --dtype bfloat16 --limit 100
    embark run -m embark/pocket --folder holiday-photos
    embark run -m BAAI/bge-m3 -b ARK --caption Qwen/Qwen3-VL-8B-Instruct
    """
    from embark.results import long_table
    from embark.run import NothingScored

    settings = embark.load_settings(home, results, workers, offline=offline or None)
    try:
        report = embark.evaluate(
            model or None,
            chosen_tasks(benchmark, task, folder, tasks_file, skip_unreadable, allow_outside),
            protocol=protocol,
            settings=settings,
            limit=limit,
            rescore=rescore,
            batch_size=batch_size,
            loading=embark.Loading(device, dtype, compile, trust),
            stages=_stages(rewrite, caption, rerank, prompt or []),
        )
    except NothingScored as failed:
        report = failed.run
    table = report.table()
    if report.results or style != "text":
        data = {"results": long_table(report.results), "skipped": [vars(skip) for skip in report.skipped]}
        emit(table, style, data)
    on_screen = table.notes if report.results and style == "text" and sys.stdout.isatty() else ()
    notes = [note for note in report.notes if note not in on_screen]
    finish(*report.summary(), *notes, failed=any(skip.kind == "failed" for skip in report.skipped))


def plan(
    model: ModelNames = None,
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    allow_outside: AllowOutside = False,
    protocol: ProtocolName = None,
    data: Annotated[bool, typer.Option("--data", help="Read the data of hub tasks, not just their rows.")] = False,
    device: Device = "auto",
    dtype: Precision = None,
    compile: Compile = False,
    trust: Trust = None,
    offline: Offline = False,
    style: Format = "text",
    home: Home = None,
) -> None:
    """Show what a run would embed, store and cost, without doing it.

    Tasks over hub data are planned on their rows' counts, in an instant, unless --data is given. Seconds come from a
    small sample timed on this machine; a model behind an API is not asked, its price is estimated.

    \b
    embark plan
    embark plan -b 'MIEB(Multilingual)'
    embark plan -m embark/pocket -b Pocket --format json
    """
    report = embark.plan(
        model or None,
        chosen_tasks(benchmark, task, folder, tasks_file, allow_outside=allow_outside),
        protocol=protocol,
        read_data=data or None,
        settings=embark.load_settings(home, offline=offline or None),
        loading=embark.Loading(device, dtype, compile, trust),
    )
    if style != "text":
        emit(report.table(), style, report.as_dict())
    elif report.outline is not None:
        print("\n".join((f"{benchmark or 'the chosen tasks'}: {report.summary()[0]}", *report.summary()[1:], "")))
        print_table(report.table())
    for of_model in report.models if style == "text" else ():
        print(f"\n{escape.terminal(of_model.model)}")
        print_table(of_model.table())
    finish(*report.notes, failed=any(skip.kind == "failed" for skip in report.skipped))


def chosen_tasks(
    benchmark: str | None,
    task: list[str] | None,
    folder: Path | None,
    tasks_file: Path | None,
    skip_unreadable: bool = False,
    allow_outside: bool = False,
) -> Any:
    """What the options of a command name."""
    from dataclasses import replace

    if benchmark and (task or folder or tasks_file):
        raise typer.BadParameter("give either a benchmark or tasks, not both")
    if benchmark:
        return embark.get_benchmark(benchmark)
    own = embark.folder_task(folder, allow_outside=allow_outside) if folder else []
    own += embark.load_tasks(tasks_file, allow_outside=allow_outside) if tasks_file else []
    if skip_unreadable:
        own = [replace(row, unreadable="skip") for row in own]
    return [*(task or []), *own] or None


def _stages(rewrite: str | None, caption: str | None, rerank: str | None, prompts: Sequence[str] = ()) -> Any:
    from embark.run.stages import DEPTH

    if not (rewrite or caption or rerank or prompts):
        return None
    files = dict(prompt.partition("=")[::2] for prompt in prompts)
    if missing := [stage for stage, file in files.items() if not file]:
        raise typer.BadParameter(
            f"'{missing[0]}' names no file; write rewrite=FILE or caption=FILE", param_hint="--prompt"
        )
    paths = {stage: Path(file) for stage, file in files.items()}
    name, _, depth = (rerank or "").rpartition(":")
    stated = bool(name) and depth.isdigit()
    return embark.Stages(rewrite, caption, name if stated else rerank, int(depth) if stated else DEPTH, paths)
