"""`embark analyze`: what stored vectors tell. They are found, not made: embedding is asked for (--embed)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embark.cli.analyze import Plot, Style, present
from embark.cli.output import Home, Precision, ProtocolName, Trust, say
from embark.cli.run import chosen_tasks

if TYPE_CHECKING:  # help texts must not wait for numbers
    from embark.run.embedded_task import Embedded
    from embark.run.stored_vectors import Stored
    from embark.types import Task

Model = Annotated[list[str], typer.Option("-m", "--model", help="Model name; several are compared.")]
Names = Annotated[
    list[str] | None, typer.Option("-t", "--task", help="Task name or pattern; may be given several times.")
]
OneTask = Annotated[str, typer.Option("-t", "--task", help="Task name.")]
TasksFile = Annotated[Path | None, typer.Option("--tasks-file", help="Your own tasks: a TOML file.")]
Subset = Annotated[str | None, typer.Option("--subset", help="Which subset, where there are several (the first).")]
Embed = Annotated[bool, typer.Option("--embed", help="Embed what is not stored, instead of refusing.")]
Measure = Annotated[
    str, typer.Option("--measure", help="hit_rate (top-k accuracy), recall, precision, ndcg, map or mrr.")
]
Dims = Annotated[list[int] | None, typer.Option("--dims", help="Dimensions to keep; may be given several times.")]


def geometry(
    model: Model,
    task: OneTask,
    subset: Subset = None,
    tasks_file: TasksFile = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Style = "text",
    plot: Plot = None,
) -> None:
    """The shape of a task's vectors: modality gap, hubs, anisotropy, alignment and uniformity.

    \b
    embark analyze geometry -m embark/pocket -t PocketNameToImage
    embark analyze geometry -m embark/pocket -m embark/random -t PocketNameToImage --plot geometry.svg
    """
    from embark.studies import geometry as measures

    found = _embedded(model, [task], tasks_file, None, embed, dtype, trust, home)
    present(measures.study([measures.geometry(each, subset) for each in found]), style, plot)


def map_(
    model: Model,
    task: OneTask,
    by: Annotated[str, typer.Option("--by", help="What colours tell: side or label.")] = "side",
    method: Annotated[
        str | None, typer.Option("--method", help="umap, tsne or pca (default: umap where installed, else tsne).")
    ] = None,
    subset: Subset = None,
    tasks_file: TasksFile = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Style = "text",
    plot: Plot = None,
) -> None:
    """A map of a task's vectors on the plane, coloured by side or by label.

    \b
    embark analyze map -m embark/pocket -t PocketNameToImage --plot map.svg
    embark analyze map -m embark/pocket -t PocketGroupClustering --by label --plot groups.svg
    """
    from embark.studies import maps

    if by not in ("side", "label"):
        raise typer.BadParameter("--by is side or label")
    found = _embedded(model, [task], tasks_file, None, embed, dtype, trust, home)
    present(maps.study([maps.map_of(each, by, method, subset) for each in found]), style, plot)


def sweep(curves: Callable[..., Any]) -> Callable[..., None]:
    """A command that draws curves over the vectors of tasks: its own options, and those that all of these share."""

    def shared(
        model: Model,
        task: Names = None,
        tasks_file: TasksFile = None,
        protocol: ProtocolName = None,
        embed: Embed = False,
        dtype: Precision = None,
        trust: Trust = None,
        home: Home = None,
        style: Style = "text",
        plot: Plot = None,
        **own: Any,
    ) -> None:
        found = _embedded(model, task, tasks_file, protocol, embed, dtype, trust, home)
        present(curves(found, **own).study(), style, plot)

    every, own = signature(shared, eval_str=True), list(signature(curves, eval_str=True).parameters.values())[1:]
    common = [each for each in every.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    options = [*common[:2], *(each.replace(kind=Parameter.POSITIONAL_OR_KEYWORD) for each in own), *common[2:]]
    shared.__name__, shared.__doc__ = curves.__name__, curves.__doc__
    shared.__signature__ = every.replace(parameters=options)  # type: ignore[attr-defined]
    shared.__annotations__ = {each.name: each.annotation for each in options}
    return shared


@sweep
def truncate(found: Any, dims: Dims = None) -> Any:
    """Scores of shortened vectors: the first dimensions (Matryoshka), and as many principal axes.

    \b
    embark analyze truncate -m embark/pocket -t PocketNameToImage --plot dims.svg
    embark analyze truncate -m embark/pocket -t 'Pocket*STS' --dims 128 --dims 32
    """
    from embark.studies import sweeps

    return sweeps.truncate(found, dims or ())


@sweep
def quantize(found: Any, dims: Dims = None) -> Any:
    """Scores of vectors in fewer bits (int8, binary), also shortened, against the bytes of an item.

    \b
    embark analyze quantize -m embark/pocket -t PocketNameToImage --plot bytes.svg
    """
    from embark.studies import sweeps

    return sweeps.quantize(found, dims or ())


@sweep
def similarity(found: Any) -> Any:
    """Scores by cosine and by dot product; for similarity tasks by distances, too.

    \b
    embark analyze similarity -m embark/pocket -t PocketNameToImage -t PocketNameSTS
    """
    from embark.studies import sweeps

    return sweeps.similarity(found)


@sweep
def topk(found: Any, measure: Measure = "hit_rate") -> Any:
    """A ranking measure at every k: top-k accuracy of retrieval, choice and zero-shot classification.

    \b
    embark analyze topk -m embark/pocket -t PocketNameToImage -t PocketSubgroupZeroShot --plot topk.svg
    """
    from embark.studies import variants

    return variants.top_k(found, measure)


@sweep
def robustness(found: Any) -> Any:
    """What each corruption costs: the score under every condition against the clean one.

    \b
    embark analyze robustness -m embark/pocket -t PocketRobustness
    """
    from embark.studies import variants

    return variants.conditions(found)


def shots(
    model: Model,
    task: Names = None,
    shots: Annotated[
        list[int] | None, typer.Option("--shots", min=1, help="Examples a class; may be given several times.")
    ] = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Style = "text",
    plot: Plot = None,
) -> None:
    """Learning curves of probes: 1, 2, 4… examples a class, up to the row's own number.

    More than that needs vectors that a run does not make: --shots 64 --embed.

    \b
    embark analyze shots -m embark/pocket -t PocketGroupProbe --plot shots.svg
    embark analyze shots -m embark/pocket -t PocketGroupProbe --protocol sound --shots 16 --shots 64 --embed
    """
    from embark.studies import variants
    from embark.types import EmbarkError

    curves = []
    for stored in _stores(model, embed, dtype, trust, home):
        for row in _rows(task, tasks_file, protocol):
            if row.evaluator not in variants.SHOTS:
                raise EmbarkError(f"{row.name} learns from no examples; probes do (embark tasks --evaluator probe).")
            own = int(row.params.get("shots", variants.SHOTS[row.evaluator]))
            wanted = sorted(set(shots or [2**n for n in range(own.bit_length()) if 2**n < own] + [own]))
            rows = [replace(row, params={**row.params, "shots": k}) for k in wanted]
            curves.append([stored.task(each, "add --embed to this command") for each in rows])
    present(variants.shots(curves).study(), style, plot)


def prompts(
    model: Model,
    task: Names = None,
    prompt: Annotated[
        list[str] | None, typer.Option("--prompt", help="Another prompt to try, {} is the class; needs --embed.")
    ] = None,
    tasks_file: TasksFile = None,
    protocol: ProtocolName = None,
    embed: Embed = False,
    dtype: Precision = None,
    trust: Trust = None,
    home: Home = None,
    style: Style = "text",
    plot: Plot = None,
) -> None:
    """Zero-shot scores by prompt: all of a row's prompts together, each alone, and the bare class name.

    \b
    embark analyze prompts -m embark/pocket -t PocketSubgroupZeroShot --plot prompts.svg
    embark analyze prompts -m embark/pocket -t PocketFlagZeroShot --prompt 'the flag of {}' --embed
    """
    from embark.run.stored_vectors import NotStored
    from embark.studies import variants

    found, own = [], {}
    for stored in _stores(model, embed, dtype, trust, home):
        for row in _rows(task, tasks_file, protocol):
            templates = row.templates or ("{}",)
            own[row.name] = len(templates)
            asked = replace(row, templates=tuple(dict.fromkeys([*templates, *(prompt or ()), "{}"])))
            try:
                found.append(stored.task(asked, "add --embed to this command"))
            except NotStored:
                if prompt:
                    raise
                found.append(stored.task(row))
                say(f"{row.name}: bare class names are not stored; --embed adds them")
    present(variants.prompts(found, own).study(), style, plot)


COMMANDS: dict[str, Callable[..., None]] = {
    "geometry": geometry,
    "map": map_,
    "truncate": truncate,
    "quantize": quantize,
    "similarity": similarity,
    "topk": topk,
    "shots": shots,
    "prompts": prompts,
    "robustness": robustness,
}


def _embedded(
    model: Sequence[str],
    task: Sequence[str] | None,
    tasks_file: Path | None,
    protocol: str | None,
    embed: bool,
    dtype: str | None,
    trust: str | None,
    home: Path | None,
) -> list[Embedded]:
    """Every chosen task by every chosen model, from the store."""
    rows = _rows(task, tasks_file, protocol)
    return [stored.task(row) for stored in _stores(model, embed, dtype, trust, home) for row in rows]


def _stores(model: Sequence[str], embed: bool, dtype: str | None, trust: str | None, home: Path | None) -> list[Stored]:
    from embark.models import Loading
    from embark.run.stored_vectors import Stored
    from embark.settings import load_settings

    settings, loading = load_settings(home), Loading(dtype=dtype, trust=trust)
    return [Stored(name, settings, embedding=embed, loading=loading) for name in model]


def _rows(task: Sequence[str] | None, tasks_file: Path | None, protocol: str | None) -> list[Task]:
    from embark.tasks import choose_tasks

    chosen: Any = chosen_tasks(None, list(task or ()), None, tasks_file)
    if not chosen:
        raise typer.BadParameter("name a task (-t) or a file of your own tasks (--tasks-file)")
    return choose_tasks(chosen, protocol)
