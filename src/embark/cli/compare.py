"""`embark compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from embark.cli.output import AsJson, ResultsFolder, counted, print_columns, print_json, say

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.results import TaskResult
    from embark.stats.compare import Comparison, Pair

SHOWN = 20  # flipped items named each way


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A model with results; name@revision where it has several.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The model to compare it with.")],
    benchmark: Annotated[
        str | None, typer.Option("-b", "--benchmark", help="Only this benchmark's tasks (see: embark benchmarks).")
    ] = None,
    show: Annotated[
        str | None, typer.Option("--show", metavar="TASK", help="Name the items that only one of them gets right.")
    ] = None,
    as_json: AsJson = False,
    results: ResultsFolder = None,
) -> None:
    """Compare two models item by item: differences with intervals, and which of them are more than chance.

    \b
    embark compare embark/pocket embark/handmade
    embark compare embark/pocket embark/random -b Pocket --json
    embark compare embark/pocket embark/handmade --show PocketFlagZeroShot
    """
    from embark.results import Results
    from embark.settings import load_settings
    from embark.stats.compare import compare as compared
    from embark.stats.compare import flips
    from embark.tasks import TASKS, get_benchmark
    from embark.types import EmbarkError

    folder = load_settings(results=results).results
    found = list(Results(folder).all())
    if not found:
        raise EmbarkError(f"There are no results in {folder}. Make some: embark run")
    one, other = _of(found, a), _of(found, b)
    if show is not None:
        _print_flips(a, b, flips(one, other, TASKS[show]), as_json)
        return
    made = compared(one, other, TASKS.match(get_benchmark(benchmark).tasks) if benchmark else list(TASKS.values()))
    if not made.pairs and not made.refused:
        raise EmbarkError(f"Neither {a} nor {b} has a score on {benchmark or 'a known task'} in {folder}.")
    if as_json:
        print_json(_plain(a, b, made))
    elif made.pairs:
        _print(a, b, made)
    for name, why in made.refused.items():
        say(f"not comparable: {name}: {why}")
    if not made.pairs:
        raise EmbarkError(f"{a} and {b} have no task in common that can be compared.")


def _of(results: list[TaskResult], name: str) -> list[TaskResult]:
    """A model's results; where the folder has several revisions, the name must say which."""
    from embark.catalogue import UnknownName
    from embark.types import EmbarkError

    mine = [r for r in results if name in (r.model, f"{r.model}@{r.revision}")]
    if not mine:
        raise UnknownName("model in the results folder", name, {r.model for r in results})
    if len(revisions := sorted({r.revision for r in mine})) > 1:
        raise EmbarkError(f"{name} has several revisions; say {' or '.join(f'{name}@{r}' for r in revisions)}.")
    return mine


def _print(a: str, b: str, made: Comparison) -> None:
    columns = ["task", a, b, "difference", "95 %", "p", "p (Holm)", "verdict"]
    rows = [_row(pair) for pair in made.pairs]
    print_columns(columns, rows, right=tuple(columns[1:-1]))
    print()
    tallies = [*made.categories.items(), ("all", made.total)]
    columns = ["category", "wins", "ties", "losses", "mean difference"]
    counts = [[name, str(t.wins), str(t.ties), str(t.losses), _points(t.difference)] for name, t in tallies]
    print_columns(columns, counts, right=tuple(columns[1:]))
    print(f"\n{sentence(a, b, made)}")


def sentence(a: str, b: str, made: Comparison) -> str:
    """The comparison in words."""
    t, count = made.total, len(made.pairs)
    tasks = counted(count, "task")
    if not t.wins and not t.losses:
        return f"On {tasks}, no difference between {a} and {b} is more than chance would make."
    return (
        f"Over {tasks}, {a} is better than {b} on {t.wins}, worse on {t.losses}, and cannot be told apart on {t.ties} "
        f"(mean difference {_points(t.difference)} points)."
    )


def _row(pair: Pair) -> list[str]:
    scores = [f"{100 * pair.a:.1f}", f"{100 * pair.b:.1f}", _points(pair.difference)]
    interval = f"[{_points(pair.low)}, {_points(pair.high)}]"
    return [pair.task, *scores, interval, _p(pair.p), _p(pair.holm), pair.verdict]


def _points(value: float) -> str:
    return f"{round(100 * value, 1) + 0.0:+.1f}"  # adding zero: no -0.0


def _p(value: float) -> str:
    return "<0.0001" if value < 5e-5 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _plain(a: str, b: str, made: Comparison) -> dict[str, Any]:
    pairs = [vars(pair) | {"difference": pair.difference, "verdict": pair.verdict} for pair in made.pairs]
    return {
        "a": a,
        "b": b,
        "tasks": pairs,
        "categories": {name: vars(tally) for name, tally in made.categories.items()},
        "total": vars(made.total),
        "not comparable": made.refused,
    }


def _print_flips(a: str, b: str, found: tuple[list[str], list[str]], as_json: bool) -> None:
    if as_json:
        print_json({a: found[0], b: found[1]})
        return
    for name, ids in zip((a, b), found, strict=True):
        print(f"Only {name} is right on {counted(len(ids), 'item')}{':' if ids else '.'}")
        for item in ids[:SHOWN]:
            print(f"  {item}")
        if len(ids) > SHOWN:
            print(f"  … and {len(ids) - SHOWN} more (--json lists all)")
