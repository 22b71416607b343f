"""`embark run` and `embark plan`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any

import typer

from embark.cli.outline import print_outline
from embark.cli.output import (
    AsJson,
    Compile,
    Device,
    Home,
    Offline,
    Precision,
    ProtocolName,
    ResultsFolder,
    Trust,
    counted,
    print_columns,
    print_json,
    print_table,
    say,
    some,
)

ModelNames = Annotated[
    list[str] | None,
    typer.Option("-m", "--model", help="Model: a name, a checkpoint folder, or LOADER:ID; may be given several times."),
]
BenchmarkName = Annotated[
    str | None, typer.Option("-b", "--benchmark", help="Benchmark name (see: embark benchmarks).")
]
TaskNames = Annotated[
    list[str] | None, typer.Option("-t", "--task", help="Task name or pattern; may be given several times.")
]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Your own data: a folder of images with a CSV of captions or labels.")
]
TasksFile = Annotated[
    Path | None, typer.Option("--tasks-file", help="Your own data: a TOML file with one [[task]] table a task.")
]
SkipUnreadable = Annotated[
    bool, typer.Option("--skip-unreadable", help="Score your own data without the files that do not decode.")
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Items a forward pass (default: found by trial).")
]
Rescore = Annotated[bool, typer.Option("--rescore", help="Compute scores again from the stored vectors.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Threads that decode media and score tasks.")]
Rewrite = Annotated[str | None, typer.Option("--rewrite", help="A generator that rewrites the queries first.")]
Caption = Annotated[
    str | None, typer.Option("--caption", help="A generator that puts media into words, for models of text.")
]
Rerank = Annotated[
    str | None, typer.Option("--rerank", help="A re-ranker of each query's best documents: NAME or NAME:50.")
]


def run(
    model: ModelNames = None,
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    skip_unreadable: SkipUnreadable = False,
    protocol: ProtocolName = None,
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
    offline: Offline = False,
    as_json: AsJson = False,
    home: Home = None,
    results: ResultsFolder = None,
) -> None:
    """Evaluate models over tasks and print the table.

    Without arguments: the pocket benchmark with the pocket model and two baselines, offline.

    \b
    embark run
    embark run -m embark/pocket -t 'Pocket*ZeroShot'
    embark run -m ./my-checkpoint --dtype bfloat16
    embark run -m embark/pocket --folder holiday-photos
    embark run -m embark/pocket --tasks-file tasks.toml
    embark run -m BAAI/bge-m3 -b ARK --caption Qwen/Qwen3-VL-8B-Instruct --rerank BAAI/bge-reranker-v2-m3:50
    """
    from embark.models import Loading
    from embark.run import DEFAULT_MODELS, evaluate
    from embark.settings import load_settings

    settings = load_settings(home, results, workers, offline=offline or None)
    found = evaluate(
        model or DEFAULT_MODELS,
        chosen_tasks(benchmark, task, folder, tasks_file, skip_unreadable),
        protocol=protocol,
        settings=settings,
        rescore=rescore,
        batch_size=batch_size,
        loading=Loading(device, dtype, compile, trust),
        stages=_stages(rewrite, caption, rerank),
    )
    _show(found, as_json)
    _report(found, settings.results)
    if any(skipped.kind == "failed" for skipped in found.skipped):
        raise typer.Exit(1)


def plan(
    model: ModelNames = None,
    benchmark: BenchmarkName = None,
    task: TaskNames = None,
    folder: Folder = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    data: Annotated[bool, typer.Option("--data", help="Read the data of hub tasks, not just their rows.")] = False,
    device: Device = "auto",
    dtype: Precision = None,
    compile: Compile = False,
    trust: Trust = None,
    offline: Offline = False,
    as_json: AsJson = False,
    home: Home = None,
) -> None:
    """Show what a run would embed, store and cost, without doing it.

    Tasks over hub data are planned on their rows' counts, in an instant, unless --data is given. Seconds come from a
    small sample timed on this machine; a model behind an API is not asked, its price is estimated.

    \b
    embark plan
    embark plan -b 'MIEB(Multilingual)'
    embark plan -m embark/pocket -b Pocket --json
    """
    from embark.data.fetch import is_local
    from embark.models import Loading
    from embark.run import DEFAULT_MODELS, preview, resolve_tasks, under
    from embark.settings import load_settings

    chosen = chosen_tasks(benchmark, task, folder, tasks_file)
    wanted = under(protocol, resolve_tasks(chosen))
    if not data and any(row.family not in ("Pocket", "Folder") and not is_local(row.source.id) for row in wanted):
        print_outline(benchmark or "the chosen tasks", wanted, as_json)
        return
    settings = load_settings(home, offline=offline or None)
    how = Loading(device, dtype, compile, trust)
    previews, skipped = preview(model or DEFAULT_MODELS, chosen, protocol=protocol, settings=settings, loading=how)
    if as_json:
        print_json(
            {
                "models": [{"model": p.model, "tasks": _plan_rows(p)} for p in previews],
                "skipped": [vars(s) for s in skipped],
            }
        )
        return
    for preview_ in previews:
        _print_plan(preview_)
    _say_skipped(skipped)


def _print_plan(preview: Any) -> None:
    rows = _plan_rows(preview)
    columns, total = list(rows[0]), preview.plan.total
    print(f"\n{preview.model}")
    print_columns(columns, [[_shown(name, row[name]) for name in columns] for row in rows], right=tuple(columns[1:]))
    reuse = total.items / total.unique if total.unique else 1.0
    print(
        f"Each distinct item serves {reuse:.2f} times: "
        f"embedding once saves {total.items - total.unique:,} of {total.items:,}."
    )
    if preview.bills:
        print("Tokens and dollars are estimated from the items and the list price; nothing was sent.")


def chosen_tasks(
    benchmark: str | None,
    task: list[str] | None,
    folder: Path | None,
    tasks_file: Path | None,
    skip_unreadable: bool = False,
) -> Any:
    """What the options of a command name."""
    from dataclasses import replace

    from embark.data.readers.folder import folder_task
    from embark.data.tasks_file import load_tasks
    from embark.tasks import get_benchmark

    if benchmark and (task or folder or tasks_file):
        raise typer.BadParameter("give either a benchmark or tasks, not both")
    if benchmark:
        return get_benchmark(benchmark)
    own = [*(folder_task(folder) if folder else []), *(load_tasks(tasks_file) if tasks_file else [])]
    if skip_unreadable:
        own = [replace(row, unreadable="skip") for row in own]
    return [*(task or []), *own] or None


def _stages(rewrite: str | None, caption: str | None, rerank: str | None) -> Any:
    from embark.run.stages import DEPTH, Stages

    if not (rewrite or caption or rerank):
        return None
    name, _, depth = (rerank or "").rpartition(":")
    stated = bool(name) and depth.isdigit()
    return Stages(rewrite, caption, name if stated else rerank, int(depth) if stated else DEPTH)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "?"
    decimals = {"seconds": ".1f", "dollars": ".4f", "task": ""}
    return format(value, decimals.get(name, ","))


def _plan_rows(preview: Any) -> list[dict[str, Any]]:
    """One row a task (its splits and subsets together), then the total."""
    from embark.engine.price import total

    def row(task: str, count: Any, demands: Iterable[int]) -> dict[str, Any]:
        counts = {"items": count.items, "unique": count.unique, "stored": count.stored, "to embed": count.missing}
        price: dict[str, Any] = {"bytes": sum(preview.bytes[at] for at in demands)}
        if preview.bills:
            tokens, dollars = total([preview.bills[at] for at in demands])
            price |= {"tokens": round(tokens), "dollars": dollars}
        else:
            price["seconds"] = sum(preview.seconds[at] for at in demands)
        return {"task": task} | counts | price

    tasks: dict[str, list[int]] = {}
    for at, each in enumerate(preview.plan.demands):
        tasks.setdefault(each.task.name, []).append(at)
    counts = preview.plan.counts
    rows = [row(name, reduce(add, [counts[at] for at in demands]), demands) for name, demands in tasks.items()]
    return [*rows, row("all", preview.plan.total, range(len(counts)))]


def _show(found: Any, as_json: bool) -> None:
    from embark.results import long_table

    if as_json:
        print_json({"results": long_table(found.results), "skipped": [vars(s) for s in found.skipped]})
    elif found.results:
        print_table(found.table())


def _report(found: Any, folder: Path) -> None:
    on_disk = len(found.results) - found.computed
    say(
        f"Embedded {counted(found.embedded, 'item')} in a run of {found.seconds:.1f} s; "
        f"{counted(found.computed, 'score')} computed, {on_disk} already on disk in {folder}."
    )
    if found.unique:
        say(
            f"The tasks ask for {found.items:,} items, {'' if found.exact else 'at most '}{found.unique:,} of them "
            f"distinct: {found.items - found.unique:,} are shared (reuse ratio {found.reuse:.2f})."
        )
    _say_skipped(found.skipped)


def _say_skipped(skipped: list[Any]) -> None:
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for s in skipped:
        why = s.why.replace(s.task, "{task}")  # the same reason for several tasks is said once
        names = reasons.setdefault((s.kind, s.model if s.kind != "not available" else "", why), [])
        if s.task not in names:
            names.append(s.task)
    for (kind, model, why), names in reasons.items():
        why = why.replace("{task}", names[0] if len(names) == 1 else "each")
        say(f"{kind}: {some(names)}{f' for {model}' if model else ''}: {why}")
