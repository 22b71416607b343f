"""`embark site` and `embark serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import embark
from embark import escape
from embark.cli.options import Include, ModelPatterns, StoreSettings, TaskOptions
from embark.cli.output import say

WithMedia = Annotated[
    bool, typer.Option("--with-media", help="Show items of the hub's data, too, that are not known to be free.")
]


def site(
    model: ModelPatterns = None,
    *,
    tasks: TaskOptions,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Where to write it (default: page, in the results)."),
    ] = None,
    include: Include = "all",
    with_media: WithMedia = False,
    places: StoreSettings,
) -> None:
    """Write the page: leaderboards, plots, comparisons, tasks, models and runs, as files that open from disk.

    DIR/index.html opens by a double click, without a server or a network; any static host can serve the folder.

    \b
    embark site
    embark site -o public -b 'MIEB(lite)' -b Pocket
    embark site -o public --include own --with-media
    """
    page = embark.site.export(
        out,
        tasks.chosen(),
        models=model,
        include=include,  # type: ignore[arg-type]
        with_media=with_media,
        settings=places.settings(),
    )
    say(*page.notes)
    print(f"The page is {escape.terminal(str(page.index))}: {page.bytes / 1e6:.1f} MB, open it in a browser.")


def serve(
    model: ModelPatterns = None,
    *,
    tasks: TaskOptions,
    include: Include = "all",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, metavar="N", help="0: any that is free.")] = 8017,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Not only this machine: viewers need a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option("--token", metavar="TEXT", help="What viewers must know (default: made up).")
    ] = None,
    with_media: WithMedia = False,
    places: StoreSettings,
) -> None:
    """Serve the page on this machine, and follow runs while they go; Ctrl-C ends it, and harms no run.

    At another address, viewers need the token that is printed.

    \b
    embark serve
    embark serve --port 0 -b Pocket
    embark serve --host 0.0.0.0 --token 'a long secret'
    """
    server = embark.site.serve(
        tasks.chosen(),
        models=model,
        include=include,  # type: ignore[arg-type]
        host=host,
        port=port,
        token=token,
        with_media=with_media,
        settings=places.settings(),
    )
    print(f"The page is at {server.address} (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
