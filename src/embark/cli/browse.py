"""`embark tasks`, `benchmarks` and `models`: what there is."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import embark
from embark.cli.options import Families, Format, MaxParams, Modalities, Types, Words
from embark.cli.output import emit, listing, say

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from collections.abc import Sequence

    from embark.types import Benchmark, ModelCard, Task

Names = Annotated[Words, typer.Argument(help="Names or patterns, such as '*ocket*'.")]

TaskFamilies = Annotated[Words, typer.Option("--family", metavar="NAME", help="Such as MIEB or Pocket.")]


def tasks(
    names: Names = None,
    family: TaskFamilies = None,
    category: Annotated[Words, typer.Option("--category", metavar="NAME", help="Such as Retrieval.")] = None,
    capability: Annotated[
        Words, typer.Option("--capability", metavar="NAME", help="Such as counting or reading.")
    ] = None,
    evaluator: Annotated[
        Words, typer.Option("--evaluator", metavar="NAME", help="Such as retrieval, choice or zeroshot.")
    ] = None,
    modality: Annotated[
        Words, typer.Option("--modality", metavar="NAME", help="Only tasks that have no other modalities.")
    ] = None,
    language: Annotated[
        Words, typer.Option("--language", metavar="NAME", help="Code, such as fra or zho-Hant.")
    ] = None,
    license: Annotated[
        Words, typer.Option("--license", metavar="NAME", help="Name or pattern, such as 'cc-by*'.")
    ] = None,
    max_items: Annotated[
        int | None,
        typer.Option("--max-items", min=1, metavar="N", help="Only tasks that are known to embed no more items."),
    ] = None,
    style: Format = "text",
) -> None:
    """List tasks; filters narrow together.

    \b
    embark tasks
    embark tasks --evaluator zeroshot
    embark tasks --modality text --modality audio
    embark tasks --language fra --format json
    embark tasks --family ARK --max-items 1000
    """
    chosen = embark.get_tasks(
        names,
        evaluators=evaluator,
        families=family,
        categories=category,
        capabilities=capability,
        languages=language,
        modalities=modality,
        licenses=license,
        max_items=max_items,
    )
    columns = ("task", "family", "category", "evaluator", "metric", "modalities", "languages", "items")
    emit(listing(columns, list(map(_task, chosen))), style, list(map(asdict, chosen)), local=True)


def benchmarks(names: Names = None, family: TaskFamilies = None, style: Format = "text") -> None:
    """List benchmarks.

    \b
    embark benchmarks
    embark benchmarks --format json
    """
    chosen = embark.get_benchmarks(names, families=family)
    tasks = [_tasks_of(benchmark) for benchmark in chosen]
    rows = [(b.name, b.family, len(names), b.description) for b, names in zip(chosen, tasks, strict=True)]
    data = [
        {"name": b.name, "family": b.family, "count": len(names), "tasks": names}
        for b, names in zip(chosen, tasks, strict=True)
    ]
    emit(listing(("benchmark", "family", "tasks", "what"), rows), style, data)


def models(
    names: Names = None,
    modality: Modalities = None,
    family: Families = None,
    type: Types = None,
    kind: Annotated[Words, typer.Option("--kind", metavar="NAME", help="embedder, reranker or generator.")] = None,
    max_params: MaxParams = None,
    loader: Annotated[
        Words, typer.Option("--loader", metavar="NAME", help="What loads it: dual, mllm, openai…")
    ] = None,
    style: Format = "text",
) -> None:
    """List models; filters narrow together.

    Commands take models that are not listed, too: a folder with a checkpoint (./my-model), or LOADER:ID and
    LOADER:FOLDER, where a loader is one of those that --loader knows (dual:org/new-clip, onnx:./my-model).

    \b
    embark models
    embark models --modality audio
    embark models --family CLIP --max-params 200M
    embark models --kind reranker
    """
    from embark.catalogue import group_values, listed
    from embark.models import MODELS, NO_CARD

    cards = embark.get_models(
        names,
        modalities=modality,
        families=family,
        types=type,
        kinds=kind,
        max_parameters=max_params,
        loaders=loader,
    )
    columns = ("model", "family", "gives", "size", "takes")  # as much as fits: the rest is in JSON
    emit(listing(columns, list(map(_model, cards))), style, list(map(asdict, cards)), local=True)
    if len(cards) == len(MODELS):
        reasons = group_values((reason, name) for name, reason in NO_CARD.items())
        say(*(f"UniBench's {listed(names)} have no card: {reason}." for reason, names in reasons.items()))


def _tasks_of(benchmark: Benchmark) -> Sequence[str]:
    """The names of a benchmark's tasks: one of embark.toml may have patterns."""
    return [task.name for task in embark.get_tasks(benchmark.tasks)] if benchmark.family == "Own" else benchmark.tasks


def _task(task: Task) -> tuple[Any, ...]:
    from embark.tables import Exact
    from embark.tasks import size

    languages = "+".join(task.languages) if len(task.languages) <= 2 else f"{len(task.languages)} languages"
    items = size(task)
    about = (task.name, task.family, task.category, task.evaluator, task.metric, "+".join(task.modalities), languages)
    return (*about, Exact(items, "?" if items is None else f"{items:,}"))


def _model(card: ModelCard) -> tuple[Any, ...]:
    from embark.models import short_count
    from embark.tables import Exact

    gives = {"reranker": "score", "generator": "text"}.get(card.kind)
    output = Exact(gives or card.dim, gives or str(card.dim or "?"))
    parameters = Exact(card.parameters, short_count(card.parameters))
    return card.name, card.family, output, parameters, ", ".join(card.modalities)
