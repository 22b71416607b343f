"""The command line: parse, call, print."""

from __future__ import annotations

import errno
import sys
from contextlib import suppress
from typing import Annotated, ClassVar

import typer

from embark import __version__
from embark.cli import analyze, board, browse, compare, doctor, exchange, fetch, published, recommend, run, show, store
from embark.cli.grammar import Command, Group
from embark.cli.output import say
from embark.escape import terminal
from embark.plugins import allow
from embark.settings import load_settings
from embark.types import EmbarkError


class Commands(Group):
    """The commands by what they are for."""
    HEADS: ClassVar = {
        "Run models": ("run", "plan", "fetch", "doctor", "store"),
        "Read scores": ("leaderboard", "compare", "recommend", "analyze", "published"),
        "Look up": ("tasks", "benchmarks", "models", "show"),
        "Exchange": ("import", "export"),
    }


app = typer.Typer(
    name="embark",
    cls=Commands,
    epilog="Start with:  embark run   (the pocket benchmark, offline, in about a minute)",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"embark {__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    plugins: Annotated[
        str, typer.Option("--plugins", metavar="NAMES", help="Run plug-ins of these distributions (a,b).")
    ] = "",
) -> None:
    """What a multimodal embedding model can do: every item embedded once, every score with its interval."""
    allow(*plugins.split(","))
    with suppress(EmbarkError):  # whoever needs the settings tells it
        say(*load_settings().notes)


for command in (
    run.run,
    run.plan,
    fetch.fetch,
    board.leaderboard,
    compare.compare,
    recommend.recommend,
    browse.tasks,
    browse.benchmarks,
    browse.models,
    doctor.doctor,
    show.show,
):
    app.command(cls=Command, epilog=None)(command)
app.add_typer(exchange.import_, name="import")
app.add_typer(exchange.export, name="export")
app.add_typer(analyze.app, name="analyze")
app.add_typer(published.app, name="published")
app.add_typer(store.app, name="store")


INTERRUPTED = 130  # the status that typer leaves with after Ctrl-C


def main() -> None:
    """Run the command line; errors that a user can act on are printed as a message, without a traceback."""
    try:
        app()
    except EmbarkError as error:
        print(f"error: {terminal(str(error))}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:  # not about the user's files: a bug of ours
            raise
        print(f"error: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as stopped:
        if stopped.code == INTERRUPTED:
            print("interrupted; what was embedded is kept, run the same command to go on", file=sys.stderr)
        raise
