"""`embark doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

import embark
from embark.cli.complete import model_names
from embark.cli.options import Format, LoadingOptions, Save, StoreSettings
from embark.cli.output import emit, finish, say


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(
            autocompletion=model_names,
            help="A name, checkpoint folder or LOADER:SOURCE, as for run; else this machine.",
        ),
    ] = None,
    *,
    loading: LoadingOptions,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME",
            help="A checkpoint whose files state the vectors: what an ONNX file is exported from.",
        ),
    ] = None,
    save: Save = False,
    style: Format = "text",
    places: StoreSettings,
) -> None:
    """Examine a model before you trust its scores: in under a minute, on a few sample items.

    Without a model: this machine. What is installed for which models, device, memory, room on the disk, the store.

    Checks shape, vectors that are finite, varied and fit to be stored, determinism, batches, order, instructions,
    roles, mixed items, declared length, speed and memory, and whether vectors are those that the checkpoint's files
    state. Ends with status 1 if something is wrong.

    \b
    embark doctor
    embark doctor embark/pocket
    embark doctor ./my-checkpoint --device cpu
    embark doctor ./my-checkpoint --save
    embark doctor ./my-export --against org/original
    """
    settings = places.settings()
    examination = embark.doctor(
        model,
        loading=loading.loading(),
        settings=settings,
        against=against,
        say=lambda check: say(f"examining {check} …") if style == "text" else None,
    )
    if save:
        say(f"kept: {embark.site.save_report(examination, settings=settings)}")
    emit(examination.table(), style, examination.as_dict())
    finish(examination.sentence(), failed=examination.faults)
