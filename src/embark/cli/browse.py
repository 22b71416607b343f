"""`embark tasks`, `benchmarks` and `models`: what there is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from embark.cli.output import AsJson, print_columns, print_json

Names = Annotated[list[str] | None, typer.Argument(help="Names or patterns, such as '*ocket*'.")]
SCALES = {"B": 10**9, "M": 10**6, "K": 10**3}


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
    license: Annotated[list[str] | None, typer.Option("--license", help="Name or pattern, such as 'cc-by*'.")] = None,
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
        licenses=license,
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
    family: Annotated[list[str] | None, typer.Option("--family", help="Name or pattern: CLIP, '*LIP*', GME…")] = None,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="embedder, reranker or generator.")] = None,
    max_params: Annotated[
        str | None, typer.Option("--max-params", help="Only models known to have no more parameters: 500M, 7B…")
    ] = None,
    loader: Annotated[list[str] | None, typer.Option("--loader", help="What loads it: dual, mllm, openai…")] = None,
    as_json: AsJson = False,
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
    from embark.models import MODELS, loaders

    cards = MODELS.values()
    wanted = {
        "modality": chosen("modality", (each for card in cards for each in card.modalities), modality),
        "family": chosen("family", (card.family for card in cards if card.family), family),
        "kind": chosen("kind", (card.kind for card in cards), kind),
        "loader": chosen("loader", loaders(), loader),
    }
    most = None if max_params is None else parameter_count(max_params)
    found = [
        card
        for card in MODELS.match(names or ["*"])
        if wanted["modality"] <= set(card.modalities)
        and all(not wanted[each] or getattr(card, each) in wanted[each] for each in ("family", "kind", "loader"))
        and (most is None or (card.parameters is not None and card.parameters <= most))
    ]
    if as_json:
        print_json([_plain(card) for card in found])
        return
    columns = ["model", "family", "gives", "size", "takes"]  # as much as fits: the rest is in --json
    print_columns(columns, [_facts(card) for card in found], right=("gives", "size"))


def chosen(what: str, known: Iterable[str], patterns: list[str] | None) -> set[str]:
    """The known words that match; a pattern that matches none is an error."""
    from embark.catalogue import Catalogue

    words = dict.fromkeys(known)
    return set(Catalogue(what, words, str, hint=f"There are {', '.join(words)}.").match(patterns or ()))


def parameter_count(text: str) -> float:
    """A number as people write it: 500M, 7B, 151000000."""
    from embark.types import EmbarkError

    digits, scale = (text[:-1], SCALES[text[-1].upper()]) if text[-1:].upper() in SCALES else (text, 1)
    try:
        return float(digits) * scale
    except ValueError:
        raise EmbarkError(f"'{text}' is no number of parameters; write 500M or 7B.") from None


def short(value: int | None) -> str:
    """A number of parameters as people write it."""
    if value is None:
        return "?"
    letter, scale = next(((each, size) for each, size in SCALES.items() if value >= size), ("", 1))
    return f"{value / scale:.3g}{letter}"


def _facts(card: Any) -> list[str]:
    gives = {"reranker": "score", "generator": "text"}.get(card.kind, str(card.dim or "?"))
    return [card.name, card.family, gives, short(card.parameters), ", ".join(card.modalities)]


def _plain(value: Any) -> dict[str, Any]:
    return dataclasses.asdict(value)


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _words(task: Any) -> list[str]:
    needs = "+".join(task.modalities)
    return [task.name, task.family, task.category, task.evaluator, task.metric, needs, _languages(task)]


def _languages(task: Any) -> str:
    return "+".join(task.languages) if len(task.languages) <= 2 else f"{len(task.languages)} languages"
