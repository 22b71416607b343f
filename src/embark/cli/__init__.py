"""The command line: parse, call, print."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from contextlib import redirect_stdout, suppress
from typing import Annotated, ClassVar

import typer

from embark import __version__
from embark.cli import (
    analyze,
    board,
    browse,
    build,
    card,
    compare,
    diagnose,
    doctor,
    exchange,
    fetch,
    plan,
    published,
    recommend,
    report,
    run,
    show,
    site,
    store,
    vectors,
    verify,
)
from embark.cli.complete import quote_for_bash
from embark.cli.grammar import Command, Group
from embark.cli.options import expanded
from embark.cli.output import say
from embark.escape import terminal
from embark.interrupts import end_soon
from embark.plugins import allow
from embark.settings import load_settings
from embark.types import EmbarkError


class CommandGroup(Group):
    """The commands by what they are for."""

    HEADS: ClassVar = {
        "Run models": ("run", "plan", "fetch", "check", "build", "doctor", "store"),
        "Read scores": ("leaderboard", "compare", "verify", "recommend", "analyze", "diagnose", "published"),
        "Show": ("report", "site", "serve"),
        "Look up": ("tasks", "benchmarks", "models", "show"),
        "Exchange": ("import", "export", "vectors", "card", "push"),
    }


app = typer.Typer(
    name="embark",
    cls=CommandGroup,
    epilog="Start with:  embark run   (the pocket benchmark, offline, in about a minute)",
    no_args_is_help=True,
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
    """What a multimodal embedding model can do, every score with its interval."""
    allow(*plugins.split(","))
    with suppress(EmbarkError):  # whoever needs the settings tells it
        say(*load_settings().notes)


for command in (
    run.run,
    plan.plan,
    fetch.fetch,
    fetch.check,
    board.leaderboard,
    compare.compare,
    verify.verify,
    recommend.recommend,
    browse.tasks,
    browse.benchmarks,
    browse.models,
    doctor.doctor,
    show.show,
    card.card,
    card.push,
    report.report,
    site.site,
    site.serve,
):
    app.command(cls=Command, epilog=None)(expanded(command))
app.add_typer(exchange.import_, name="import")
app.add_typer(exchange.export, name="export")
app.add_typer(analyze.app, name="analyze")
app.add_typer(build.app, name="build")
app.add_typer(diagnose.app, name="diagnose")
app.add_typer(published.app, name="published")
app.add_typer(store.app, name="store")
app.add_typer(vectors.app, name="vectors")


def main() -> None:
    """Run the command line; errors that a user can act on are printed as a message, without a traceback."""
    _secure_streams()
    try:
        with end_soon("interrupted; what was embedded is kept, run the same command to go on"):
            if os.environ.get("_EMBARK_COMPLETE") == "complete_bash":
                _complete_in_bash()
            else:
                app(prog_name="embark")
    except EmbarkError as error:
        print(f"error: {terminal(str(error))}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:  # not about the user's files: a bug of ours
            raise
        print(f"error: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


def _complete_in_bash() -> None:
    """Print what completes the words of a command line in bash."""
    completions = io.StringIO()
    try:
        with redirect_stdout(completions):
            app(prog_name="embark")
    finally:
        sys.stdout.write(quote_for_bash(completions.getvalue()))


def _secure_streams() -> None:
    """Standard streams that any letter can be written to.

    A stream that the shell closed (2>&-) goes nowhere, instead of into the next file that is opened under its number.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number, which is this one
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        codecs.register_error("plain", _plain)
        sys.stdout.reconfigure(errors="plain")


PLAIN = {"✓": "+", "✗": "x", "·": ".", "…": "...", "–": "-", "—": "-", "−": "-", "─": "-", "×": "x", "±": "+-"}


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What is printed in place of letters that the output cannot take."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(letter, "?") for letter in error.object[error.start : error.end]), error.end
