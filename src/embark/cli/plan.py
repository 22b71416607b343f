"""`embark plan`: what a run would embed and cost, on this machine or on GPUs elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.options import DataOptions, Format, Limit, LoadingOptions, ModelNames, ProtocolName, RunSettings
from embark.cli.output import emit, finish, print_table

Gpus = Annotated[
    str | None, typer.Option("--gpus", metavar="N,…", help="Hours on so many GPUs, by the rows' counts: 1,8,64.")
]
GpuKind = Annotated[str | None, typer.Option("--gpu", metavar="KIND", help="Of --gpus: h200 (default), h100, a100.")]
Parameters = Annotated[
    str | None, typer.Option("--parameters", metavar="SIZE,…", help="Of --gpus, in place of a model: 100M,1B,8B.")
]


def plan(
    model: ModelNames = None,
    *,
    tasks: DataOptions,
    protocol: ProtocolName = None,
    limit: Limit = None,
    data: Annotated[bool, typer.Option("--data", help="Read the data of hub tasks, not just their rows.")] = False,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", show_default=False, help="For measuring a model's speed (20).")
    ] = 20.0,
    gpus: Gpus = None,
    gpu: GpuKind = None,
    parameters: Parameters = None,
    loading: LoadingOptions,
    places: RunSettings,
    style: Format = "text",
) -> None:
    """Show what a run would embed, store and cost, without doing it.

    Hub tasks are planned on their rows' counts unless --data is given.

    \b
    embark plan -b 'MIEB(Multilingual)'
    embark plan -m embark/pocket -t CIFAR10ZeroShot --data --limit 100
    embark plan -b MMEB-V3 --gpus 1,8,64 --gpu h200 --parameters 8B
    """
    from embark.tasks import by_benchmark

    settings = places.settings()
    chosen = tasks.chosen([*tasks.made(settings), *tasks.of_file()])
    if gpus or gpu or parameters:
        if data or limit:
            raise typer.BadParameter("hours on GPUs are estimated by the rows' counts: leave out --data and --limit")
        estimate = embark.cost(
            chosen,
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
        chosen,
        protocol=protocol,
        read_data=data or None,
        limit=limit,
        seconds=seconds,
        settings=settings,
        loading=loading.loading(),
    )
    if style != "text":
        emit(report.table(), style, report.as_dict(), local=True)
    elif report.outline is not None:
        print("\n".join((f"{', '.join(by_benchmark(chosen))}: {report.summary()[0]}", *report.summary()[1:], "")))
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
