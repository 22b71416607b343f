"""`embark build`: data sets of your own pictures, captions and sounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark
from embark.cli.grammar import Command, Group
from embark.cli.options import Format, LoadingOptions, OutFolder, StoreSettings, expanded
from embark.cli.output import emit, finish, say

app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode=None)
From = Annotated[str, typer.Argument(metavar="SOURCE", help="Pictures with a table of captions, or a retrieval task.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What its task is called.")]
Films = Annotated[
    Path | None, typer.Option("--films", metavar="DIR", help="Films named like the pictures (else a camera moves).")
]
Sounds = Annotated[
    Path | None, typer.Option("--sounds", metavar="DIR", help="Sounds named like the pictures (else espeak-ng speaks).")
]
Voice = Annotated[str, typer.Option("--voice", metavar="NAME", help="A voice of espeak-ng.")]
Categories = Annotated[
    str | None, typer.Option("--categories", metavar="COLUMN", help="Of the table: what hard negatives share.")
]
Neighbors = Annotated[
    str | None, typer.Option("--neighbors", metavar="MODEL", help="Instead, a model whose neighbors are negatives.")
]
Near = Annotated[float, typer.Option("--near", metavar="COSINE", help="Neighbors above it are duplicates.")]
Negatives = Annotated[int, typer.Option("--negatives", min=1, metavar="N", help="Hard negatives of a query.")]
Queries = Annotated[
    int | None, typer.Option("--queries", min=1, metavar="N", help="Pictures that are queries (default: all).")
]


@app.callback()
def start() -> None:
    """Data sets of your own, made in a folder that embark can run."""


@app.command("omni", cls=Command)
@expanded
def omni(
    source: From,
    out: OutFolder,
    name: Name = None,
    films: Films = None,
    sounds: Sounds = None,
    voice: Voice = "en",
    categories: Categories = None,
    neighbors: Neighbors = None,
    near: Near = 0.95,
    negatives: Negatives = 15,
    queries: Queries = None,
    *,
    loading: LoadingOptions,
    places: StoreSettings,
    style: Format = "text",
) -> None:
    """A set like OmniSET from pictures and captions: each as text, image, film and speech, with hard negatives.

    Films are supplied, or a camera moves over the picture (PyAV); sounds are supplied, or espeak-ng speaks the
    caption. The same pictures give the same bytes.

    \b
    embark build omni photos --categories category --out photos-omni
    embark build omni Flickr30kT2IRetrieval --neighbors MODEL --queries 100 --out flickr-omni
    embark diagnose omni -m MODEL --tasks-file photos-omni/tasks.toml
    """
    built = embark.tasks.build_omni(
        source,
        out,
        name=name,
        films=films,
        sounds=sounds,
        voice=voice,
        categories=categories,
        neighbors=neighbors,
        near=near,
        negatives=negatives,
        queries=queries,
        loading=loading.loading(),
        settings=places.settings(),
    )
    say(*built.notes)
    emit(built.table(), style, local=True)
    finish(f"built {out}. Run it: embark diagnose omni -m MODEL --tasks-file {out / 'tasks.toml'}")
