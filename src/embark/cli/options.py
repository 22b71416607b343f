"""The options that commands share, each declared once, in groups: a group is one parameter of a command.

A group is a dataclass whose fields are options; its methods make of them what the public functions take. `expanded`
gives a command the options of its groups, which its help lists under the group's title.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

import typer

import embark
from embark.catalogue import check_name
from embark.cli.complete import benchmark_names, choices, model_names, task_names

if TYPE_CHECKING:  # importing numpy and others would slow down --help
    from embark.tasks import Choice, Tasks

Words = list[str] | None


def expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups in place of the parameters that are groups."""
    groups: dict[str, type[Any]] = {}
    options: list[Parameter] = []
    for parameter in signature(function, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation) and isinstance(parameter.annotation, type):
            groups[parameter.name] = parameter.annotation
            options += _options(parameter.annotation)
        else:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    def command(**words: Any) -> None:
        for name, group in groups.items():
            words[name] = group(**{spec.name: words.pop(spec.name) for spec in fields(group)})
        function(**words)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = Signature(options)  # type: ignore[attr-defined]
    return command


def _options(group: Any) -> list[Parameter]:
    """The options of a group, under its title."""
    hints = get_type_hints(group, include_extras=True)
    parameters = []
    for spec in fields(group):
        kind, *_ = hints[spec.name].__args__
        option = copy.copy(hints[spec.name].__metadata__[0])
        option.rich_help_panel = group.TITLE
        hint = Annotated[kind, option]  # type: ignore[valid-type]
        parameters.append(Parameter(spec.name, Parameter.KEYWORD_ONLY, default=spec.default, annotation=hint))
    return parameters


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MODELS = typer.Option(
    "-m", "--model", metavar="NAME", autocompletion=model_names,
    help="Model, checkpoint folder or LOADER:ID; repeatable.",
)  # fmt: skip
ModelNames = Annotated[Words, MODELS]
SomeModels = Annotated[list[str], MODELS]
ModelName = Annotated[
    str,
    typer.Option(
        "-m", "--model", metavar="NAME", autocompletion=model_names, help="Model, checkpoint folder or LOADER:ID."
    ),
]
ModelPatterns = Annotated[
    Words,
    typer.Option(
        "-m", "--model", metavar="NAME", autocompletion=model_names,
        help="Only these models: names or patterns, '*siglip*'; repeatable.",
    ),
]  # fmt: skip
ModelWithResults = Annotated[
    str,
    typer.Option(
        "-m", "--model", metavar="NAME", autocompletion=model_names,
        help="A model with results; name@revision where it has several.",
    ),
]  # fmt: skip
Modalities = Annotated[Words, typer.Option("--modality", metavar="NAME", help="Only models that take all of these.")]
Families = Annotated[Words, typer.Option("--family", metavar="NAME", help="Only families of models: SigLIP, 'EVA*'…")]
Types = Annotated[
    Words,
    typer.Option(
        "--type", metavar="TYPE", autocompletion=choices("encoder", "mllm", "late", "api"),
        help="Only encoder, mllm, late (interaction) or api.",
    ),
]  # fmt: skip
MaxParams = Annotated[
    str | None, typer.Option("--max-params", metavar="SIZE", help="Only models of known size, up to 500M, 7B…")
]


def _compile_choice(word: str) -> bool | str:
    """What --compile says: alone, "auto" or "no"."""
    check_name("way to compile", word or "auto", ("auto", "no"))
    return {"": True, "no": False}.get(word, word)


@dataclass(frozen=True)
class LoadingOptions:
    """Where and how models run."""

    TITLE: ClassVar[str] = "Loading of models"
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="NAME", show_default=False, autocompletion=choices("auto", "cpu", "mps", "cuda", "xpu"),
            help="auto, cpu, mps, cuda:1, or cuda:0,cuda:1.",
        ),
    ] = "auto"  # fmt: skip
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype", metavar="TYPE", autocompletion=choices("float32", "bfloat16", "float16"),
            help="float32, bfloat16, float16 (default: the card's).",
        ),
    ] = None  # fmt: skip
    stored_dtype: Annotated[
        str | None,
        typer.Option(
            "--stored-dtype", metavar="TYPE", autocompletion=choices("float32", "float16"),
            help="Of vectors on disk: float32 (default), or float16.",
        ),
    ] = None  # fmt: skip
    pixels: Annotated[
        str,
        typer.Option(
            "--pixels", metavar="PATH", show_default=False, autocompletion=choices("auto", "pillow", "cuda"),
            help="What decodes JPEGs: pillow, cuda, or auto.",
        ),
    ] = "auto"  # fmt: skip
    compile: Annotated[
        Any,
        typer.Option(
            "--compile", metavar="[auto|no]", parser=_compile_choice, show_default=False,
            help="Compile the forward pass: slow start; auto: on trial.",
        ),
    ] = False  # fmt: skip
    trust: Annotated[
        str | None,
        typer.Option("--trust", metavar="REVISION", help="Run code, open pickles of exactly this revision."),
    ] = None

    def loading(self) -> embark.Loading:
        """How models are loaded."""
        return embark.Loading(
            self.device, self.dtype, self.compile, self.trust, pixels=self.pixels, stored_dtype=self.stored_dtype
        )


@dataclass(frozen=True)
class StageOptions:
    """Models that work before and after a retriever."""

    TITLE: ClassVar[str] = "Stages"
    rewrite: Annotated[
        str | None, typer.Option("--rewrite", metavar="NAME", help="A generator that rewrites queries.")
    ] = None
    caption: Annotated[
        str | None, typer.Option("--caption", metavar="NAME", help="A generator that puts media into words.")
    ] = None
    rerank: Annotated[
        str | None, typer.Option("--rerank", metavar="NAME[:N]", help="A re-ranker of the N (50) best documents.")
    ] = None
    prompt: Annotated[
        Words, typer.Option("--prompt", metavar="STAGE=FILE", help="Your prompt for rewrite or caption; repeatable.")
    ] = None

    def stages(self) -> embark.Stages | None:
        """The stages, where there are any."""
        if not (self.rewrite or self.caption or self.rerank or self.prompt):
            return None
        reranker, depth = self.reranker()
        return embark.Stages(self.rewrite, self.caption, reranker, depth, self.prompts())

    def reranker(self) -> tuple[str | None, int]:
        """The name and the number of documents of "NAME:50"."""
        from embark.run.stages import DEPTH

        name, _, depth = (self.rerank or "").rpartition(":")
        return (name, int(depth)) if name and depth.isdigit() else (self.rerank, DEPTH)

    def prompts(self) -> dict[str, Path]:
        """The files of "rewrite=FILE", by stage."""
        files = dict(prompt.partition("=")[::2] for prompt in self.prompt or [])
        if missing := [stage for stage, file in files.items() if not file]:
            raise typer.BadParameter(
                f"'{missing[0]}' names no file; write rewrite=FILE or caption=FILE", param_hint="--prompt"
            )
        return {stage: Path(file) for stage, file in files.items()}


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class TasksByName:
    """Benchmarks, and names and patterns of tasks."""

    benchmark: Annotated[
        Words,
        typer.Option(
            "-b", "--benchmark", metavar="NAME", autocompletion=benchmark_names,
            help="Benchmark (see: embark benchmarks); repeatable.",
        ),
    ] = None  # fmt: skip
    task: Annotated[
        Words,
        typer.Option(
            "-t", "--task", metavar="NAME", autocompletion=task_names,
            help="Task or pattern, also of your own: -t A -t B, or -t A,B.",
        ),
    ] = None  # fmt: skip


@dataclass(frozen=True)
class TasksOfOwn:
    """Tasks of one's own: of a folder, and of a file."""

    TITLE: ClassVar[str] = "Choice of tasks"
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Your media, with a table or a folder a class.")
    ] = None
    tasks_file: Annotated[
        Path | None, typer.Option("--tasks-file", metavar="FILE", help="Your tasks: TOML, one [[task]] table a task.")
    ] = None
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Let your CSV or TOML name files outside its folder.")
    ] = False

    def own(self) -> list[embark.types.Task]:
        """The tasks of one's own folder and file."""
        return [*self.of_folder(), *self.of_file()]

    def of_folder(self) -> list[embark.types.Task]:
        """The tasks of --folder, of all kinds."""
        return embark.folder_task(self.folder, kinds="all", allow_outside=self.allow_outside) if self.folder else []

    def of_file(self) -> list[embark.types.Task]:
        """The tasks of --tasks-file."""
        return embark.load_tasks(self.tasks_file, allow_outside=self.allow_outside) if self.tasks_file else []


@dataclass(frozen=True)
class TaskOptions(TasksOfOwn, TasksByName):
    """The choice of tasks: benchmarks, names and patterns, and tasks of one's own."""

    def chosen(self, own: Sequence[embark.types.Task] | None = None) -> Tasks:
        """What the options choose, among `own` rows (default: those of the options); None where they choose nothing."""
        own = self.own() if own is None else own
        if self.benchmark and (self.task or own):
            raise typer.BadParameter("give either a benchmark or tasks, not both")
        if self.benchmark:
            return [embark.get_benchmark(name) for name in self._names(self.benchmark)]
        if own:
            from embark.own.names import tasks_among

            return tasks_among(self._names(self.task), own)
        names: list[Choice] = [*self._names(self.task)]
        return names or None

    def required(self) -> Tasks:
        """The chosen tasks; an error where there are none."""
        if (tasks := self.chosen()) is None:
            raise typer.BadParameter("name a benchmark (-b), tasks (-t), or your own tasks (--folder, --tasks-file)")
        return tasks

    @staticmethod
    def _names(words: Words) -> list[str]:
        return [name.strip() for word in words or () for name in word.split(",")]


@dataclass(frozen=True)
class DataOptions(TaskOptions):
    """The choice of tasks, with what makes tasks of a folder or of a data set of the hub."""

    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="ID", help="A data set of the hub, whose columns become a task.")
    ] = None
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="ROLE=NAME,…", help="Of --dataset: image=img,text=caption.")
    ] = None
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help="Of --dataset (default: test…).")] = None
    config: Annotated[
        str | None, typer.Option("--config", metavar="NAME", help="Of --dataset, where it has several.")
    ] = None
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="COMMIT", help="Of --dataset (default: main as it is now).")
    ] = None
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What tasks of --folder or --dataset are called.")
    ] = None
    kind: Annotated[
        Words, typer.Option("--kind", metavar="KIND", help="Of --folder or --dataset: retrieval, probe…")
    ] = None
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Score your data without files that do not decode.")
    ] = False

    def of_folder(self) -> list[embark.types.Task]:
        """The tasks of --folder, of all kinds unless some are named."""
        if self.folder is None:
            return []
        return self._skipping(
            embark.folder_task(self.folder, name=self.name, kinds=self.kind or "all", allow_outside=self.allow_outside)
        )

    def of_file(self) -> list[embark.types.Task]:
        """The tasks of --tasks-file."""
        return self._skipping(super().of_file())

    def of_dataset(self, settings: embark.Settings) -> list[embark.types.Task]:
        """The tasks of --dataset, one for each kind."""
        if self.dataset is None:
            if self.columns or self.split or self.config or self.revision:
                raise typer.BadParameter("--columns, --split, --config and --revision are about --dataset: name one")
            return []
        if self.name and len(self.kind or ()) > 1:
            raise typer.BadParameter("--name names one task: give one --kind, or leave it out")
        by_role = _columns(self.columns)
        source = {"name": self.name, "split": self.split, "config": self.config, "revision": self.revision}
        return self._skipping(
            [
                embark.task(self.dataset, kind, by_role, **source, settings=settings)  # type: ignore[arg-type]
                for kind in self.kind or [""]
            ]
        )

    def made(self, settings: embark.Settings) -> list[embark.types.Task]:
        """The tasks that are made of --folder and --dataset."""
        made = [*self.of_folder(), *self.of_dataset(settings)]
        if (self.name or self.kind) and not made:
            raise typer.BadParameter("--name and --kind are about --folder or --dataset: name one")
        return made

    def _skipping(self, tasks: list[embark.types.Task]) -> list[embark.types.Task]:
        return [replace(row, unreadable="skip") for row in tasks] if self.skip_unreadable else tasks


def _columns(stated: str | None) -> dict[str, str] | None:
    """Columns by role, of "image=img,texts=right,wrong"."""
    if not stated:
        return None
    columns: dict[str, str] = {}
    for piece in stated.split(","):
        role, equals, column = piece.partition("=")
        if equals:
            columns[role.strip()] = column
        elif columns:
            columns[list(columns)[-1]] += f",{piece}"
        else:
            raise typer.BadParameter(f"'{piece}' names no role; write image=NAME,text=NAME", param_hint="--columns")
    return columns


ProtocolName = Annotated[
    str | None, typer.Option("--protocol", metavar="NAME", help="Score by this protocol where it differs: mteb2…")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="A quick look: a sample of N queries or items.")
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, metavar="N", help="Items per forward pass (default: by trial).")
]
Embed = Annotated[bool, typer.Option("--embed", help="Embed what is not stored, instead of refusing.")]


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ScoreSettings:
    """Where scores lie, for commands that only read them."""

    TITLE: ClassVar[str] = "Settings"
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="Folder of scores (EMBARK_RESULTS, or ./results)."),
    ] = None
    home: Annotated[
        Path | None, typer.Option("--home", metavar="DIR", help="Folder of vectors and data (EMBARK_HOME).")
    ] = None

    def settings(self) -> embark.Settings:
        """The settings in force."""
        return embark.load_settings(**vars(self))


@dataclass(frozen=True)
class StoreSettings(ScoreSettings):
    """Where scores and vectors lie, and whether the hub is asked."""

    store: Annotated[
        str | None, typer.Option("--store", metavar="PLACE", help="Vectors in DIR or s3://bucket/… (EMBARK_STORE).")
    ] = None
    offline: Annotated[
        bool | None, typer.Option("--offline", help="Use only data that is here; never ask the hub.")
    ] = None


@dataclass(frozen=True)
class RunSettings(StoreSettings):
    """All settings of a run."""

    workers: Annotated[
        int | None, typer.Option("--workers", min=1, metavar="N", help="Workers that decode media, and score.")
    ] = None
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="local, or ray[:copies=8,gpus=1] (EMBARK_ENGINE).")
    ] = None
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="PLACE", help="Of Ray: auto, host:port, ray://… (EMBARK_ADDRESS)."),
    ] = None

    def settings(self) -> embark.Settings:
        """The settings in force; --address without a cluster is an error."""
        settings = super().settings()
        if self.address and not settings.engine.startswith("ray"):
            raise typer.BadParameter("--address is that of a Ray cluster: add --engine ray")
        return settings


# ── what is printed and written ──────────────────────────────────────────────────────────────────────────────────────

FORMATS = ("text", "json", "csv", "markdown", "latex", "html")


def _known(style: str) -> str:
    """The format, if it exists: checked before the work, not after it."""
    check_name("format", style, FORMATS)
    return style


Format = Annotated[
    str,
    typer.Option(
        "--format", metavar="FORMAT", callback=_known, show_default=False, autocompletion=choices(*FORMATS),
        help="text, json, csv, markdown or latex.",
    ),
]  # fmt: skip
Select = Annotated[Words, typer.Option("--select", metavar="NAMES", help="Only these columns of the table: a,'b*'.")]
Save = Annotated[bool, typer.Option("--save", help="Keep it in the results folder, where the page shows it.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it into this file: .svg, .pdf or .png.")
]
Include = Annotated[
    str,
    typer.Option(
        "--include", metavar="WHICH", show_default=False, autocompletion=choices("all", "own", "published"),
        help="Results: all (default), own or published ones.",
    ),
]  # fmt: skip
OutFolder = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The folder to write to.")]
