"""`embark tasks`, `benchmarks` and `models`: what there is."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from embark.cli.output import AsJson, print_columns, print_json

Names = Annotated[list[str] | None, typer.Argument(help="Names or patterns, such as '*ocket*'.")]


def tasks(
    names: Names = None,
    family: Annotated[list[str] | None, typer.Option("--family")] = None,
    category: Annotated[list[str] | None, typer.Option("--category")] = None,
    capability: Annotated[list[str] | None, typer.Option("--capability", help="Such as counting or reading.")] = None,
    evaluator: Annotated[
        list[str] | None, typer.Option("--type", "--evaluator", help="Evaluator: retrieval, choice, zeroshot…")
    ] = None,
    modality: Annotated[
        list[str] | None, typer.Option("--modality", help="Only tasks that need nothing but these.")
    ] = None,
    language: Annotated[list[str] | None, typer.Option("--language", help="Code, such as fra or zho-Hant.")] = None,
    licence: Annotated[list[str] | None, typer.Option("--licence", help="Name or pattern, such as 'cc-by*'.")] = None,
    max_items: Annotated[
        int | None, typer.Option("--max-items", min=1, help="Only tasks that are known to embed no more items.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List tasks; filters narrow together.

    \b
    embark tasks
    embark tasks --type zeroshot
    embark tasks --modality text --modality audio
    embark tasks --language fra --json
    embark tasks --family ARK --max-items 1000
    """
    from embark.tasks import get_tasks, size

    found = get_tasks(
        names,
        task_types=evaluator,
        families=family,
        categories=category,
        capabilities=capability,
        languages=language,
        modalities=modality,
        licences=licence,
        max_items=max_items,
    )
    if as_json:
        print_json([_plain(task) for task in found])
        return
    print_columns(
        ["task", "family", "category", "evaluator", "metric", "modalities", "languages", "items"],
        [[*_words(task), _number(size(task))] for task in found],
        right=("items",),
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
    from embark.catalogue import Catalogue
    from embark.models import LOADERS, MODELS

    known = dict.fromkeys(kind for card in MODELS.values() for kind in card.modalities)
    Catalogue("modality", known, str).match(modality or ())
    Catalogue("loader", LOADERS, str).match(loader or ())
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


def _plain(value: Any) -> dict[str, Any]:
    return dataclasses.asdict(value)


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _words(task: Any) -> list[str]:
    needs = "+".join(task.modalities)
    return [task.name, task.family, task.category, task.evaluator, task.metric, needs, _languages(task)]


def _languages(task: Any) -> str:
    return "+".join(task.languages) if len(task.languages) <= 2 else f"{len(task.languages)} languages"
