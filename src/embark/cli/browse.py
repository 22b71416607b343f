"""`embark tasks`, `benchmarks`, `models` and `show`: what there is."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from embark.cli.output import AsJson, print_columns, print_json

Names = Annotated[list[str] | None, typer.Argument(help="Names or patterns, such as 'Pocket*'.")]


def tasks(
    names: Names = None,
    evaluator: Annotated[
        list[str] | None, typer.Option("--type", help="Evaluator: retrieval, choice, zeroshot…")
    ] = None,
    family: Annotated[list[str] | None, typer.Option("--family")] = None,
    category: Annotated[list[str] | None, typer.Option("--category")] = None,
    language: Annotated[list[str] | None, typer.Option("--language", help="Three-letter code, such as fra.")] = None,
    modality: Annotated[
        list[str] | None, typer.Option("--modality", help="Only tasks that need nothing but these.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List tasks.

    \b
    embark tasks
    embark tasks --type zeroshot
    embark tasks --modality text --modality audio
    embark tasks --language fra --json
    """
    from embark.tasks import get_tasks

    found = get_tasks(
        names, task_types=evaluator, families=family, categories=category, languages=language, modalities=modality
    )
    if as_json:
        print_json([_plain(task) for task in found])
        return
    print_columns(
        ["task", "family", "category", "evaluator", "metric", "modalities", "languages"],
        [[t.name, t.family, t.category, t.evaluator, t.metric, "+".join(t.modalities), _languages(t)] for t in found],
    )


def benchmarks(as_json: AsJson = False) -> None:
    """List benchmarks.

    \b
    embark benchmarks
    embark benchmarks --json
    """
    from embark.tasks import BENCHMARKS

    if as_json:
        print_json(
            [{"name": b.name, "family": b.family, "count": len(b.tasks), "tasks": b.tasks} for b in BENCHMARKS.values()]
        )
        return
    rows = [[b.name, b.family, str(len(b.tasks)), b.description] for b in BENCHMARKS.values()]
    print_columns(["benchmark", "family", "tasks", "what"], rows, right=("tasks",))


def models(
    names: Names = None,
    modality: Annotated[
        list[str] | None, typer.Option("--modality", help="Only models that take all of these.")
    ] = None,
    loader: Annotated[list[str] | None, typer.Option("--loader", help="Loader family.")] = None,
    as_json: AsJson = False,
) -> None:
    """List models.

    \b
    embark models
    embark models --modality audio
    """
    from embark.models import MODELS

    found = [
        card
        for card in MODELS.match(names or ["*"])
        if set(modality or ()) <= set(card.modalities) and (not loader or card.loader in loader)
    ]
    if as_json:
        print_json([_plain(card) for card in found])
        return
    rows = [
        [c.name, c.revision, c.loader, "+".join(c.modalities), _number(c.dim), _number(c.parameters)] for c in found
    ]
    columns = ["model", "revision", "loader", "modalities", "dim", "parameters"]
    print_columns(columns, rows, right=("dim", "parameters"))


def show(name: Annotated[str, typer.Argument(help="A task, benchmark or model.")], as_json: AsJson = False) -> None:
    """Show all that is known about one task, benchmark or model.

    \b
    embark show PocketFlagZeroShot
    embark show embark/pocket
    """
    from embark.catalogue import UnknownName
    from embark.models import MODELS
    from embark.tasks import BENCHMARKS, TASKS

    found: Any = next((c[name] for c in (TASKS, BENCHMARKS, MODELS) if name in c), None)
    if found is None:
        raise UnknownName("task, benchmark or model", name, [*TASKS, *BENCHMARKS, *MODELS])
    facts = _plain(found)
    if name in TASKS:
        facts |= {"protocols": _protocols(found)}
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        if value not in (None, "", [], {}, ()):
            print(f"{key:<13} {_line(value)}")


def _plain(value: Any) -> dict[str, Any]:
    return dataclasses.asdict(value)


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _languages(task: Any) -> str:
    return "+".join(task.languages) if len(task.languages) <= 2 else f"{len(task.languages)} languages"


def _protocols(task: Any) -> dict[str, str]:
    from embark.evaluators import EVALUATORS
    from embark.run import parts
    from embark.run.score import protocol_of

    if task.evaluator not in EVALUATORS:
        return {}
    return {f"{split}/{subset}": protocol_of(task, split, subset) for split, subset in parts(task)[:3]}


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_line(v)}" for k, v in value.items() if v not in (None, "", ()))
    if isinstance(value, (list, tuple)):
        some = [str(v) for v in value[:12]]
        return ", ".join(some) + (f", … ({len(value)} in all)" if len(value) > 12 else "")
    return str(value)
