"""`embark plan`: what a run would embed and cost, on this machine or on GPUs elsewhere."""

from __future__ import annotations

from typing import Annotated

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
    Pixels,
    Precision,
    ProtocolName,
    StoredPrecision,
    StorePlace,
    TaskNames,
    Trust,
    emit,
    finish,
    print_table,
)
from embark.cli.run import (
    AllowOutside,
    Columns,
    ConfigName,
    DatasetId,
    Folder,
    FolderName,
    Kinds,
    Limit,
    ModelNames,
    Revision,
    SplitName,
    TasksFile,
    chosen_tasks,
    dataset_tasks,
    folder_tasks,
)

Gpus = Annotated[
    str | None, typer.Option("--gpus", metavar="N,…", help="Hours on so many GPUs, by the rows' counts: 1,8,64.")
]
GpuKind = Annotated[str | None, typer.Option("--gpu", metavar="KIND", help="Of --gpus: h200 (default), h100, a100.")]
Parameters = Annotated[
    str | None, typer.Option("--parameters", metavar="SIZE,…", help="Of --gpus, in place of a model: 100M,1B,8B.")
]


def plan(
    model: ModelNames = None,
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
    protocol: ProtocolName = None,
    limit: Limit = None,
    data: Annotated[bool, typer.Option("--data", help="Read the data of hub tasks, not just their rows.")] = False,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", show_default=False, help="For measuring a model's speed (20).")
    ] = 20.0,
    gpus: Gpus = None,
    gpu: GpuKind = None,
    parameters: Parameters = None,
    device: Device = "auto",
    dtype: Precision = None,
    stored_dtype: StoredPrecision = None,
    pixels: Pixels = "auto",
    compile: Compile = False,
    trust: Trust = None,
    offline: Offline = False,
    style: Format = "text",
    home: Home = None,
    store: StorePlace = None,
) -> None:
    """Show what a run would embed, store and cost, without doing it.

    Hub tasks are planned on their rows' counts unless --data is given.

    \b
    embark plan -b 'MIEB(Multilingual)'
    embark plan -m embark/pocket -t CIFAR10ZeroShot --data --limit 100
    embark plan -b MMEB-V3 --gpus 1,8,64 --gpu h200 --parameters 8B
    """
    settings = embark.load_settings(home, offline=offline or None, store=store)
    of_folder = folder_tasks(folder, name, kind, allow_outside=allow_outside)
    of_folder += dataset_tasks(dataset, columns, split, config, revision, name, kind, settings)
    if (name or kind) and not of_folder:
        raise typer.BadParameter("--name and --kind are about --folder or --dataset: name one")
    tasks = chosen_tasks(benchmark, task, of_folder, tasks_file, allow_outside=allow_outside)
    if gpus or gpu or parameters:
        if data or limit:
            raise typer.BadParameter("hours on GPUs are estimated by the rows' counts: leave out --data and --limit")
        estimate = embark.cost(
            tasks,
            model=model or None,
            parameters=parameters.split(",") if parameters else None,
            gpu=(gpu or "h200").lower(),
            gpus=_numbers(gpus or "1,8,64"),
            protocol=protocol,
            settings=settings,
        )
        emit(estimate.table(), style, estimate.as_dict(), local=True)
        return
    report = embark.plan(
        model or None,
        tasks,
        protocol=protocol,
        read_data=data or None,
        limit=limit,
        seconds=seconds,
        settings=settings,
        loading=embark.Loading(device, dtype, compile, trust, pixels=pixels, stored_dtype=stored_dtype),
    )
    if style != "text":
        emit(report.table(), style, report.as_dict(), local=True)
    elif report.outline is not None:
        print("\n".join((f"{benchmark or 'the chosen tasks'}: {report.summary()[0]}", *report.summary()[1:], "")))
        print_table(report.table())
    for of_model in report.models if style == "text" else ():
        print(f"\n{escape.terminal(of_model.model)}")
        print_table(of_model.table())
    finish(*report.notes, failed=any(skip.kind == "failed" for skip in report.skipped))


def _numbers(text: str) -> list[int]:
    """Numbers with commas between them."""
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise typer.BadParameter(f"'{text}' is no list of numbers; write 8 or 1,8,64", param_hint="--gpus")
    return list(map(int, words))
