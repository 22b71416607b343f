"""The catalogue of tasks and benchmarks: tables of data, and the ways to choose from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from embark import public
from embark.catalogue import Catalogue, UnknownName, match_words
from embark.plugins import with_plugins
from embark.settings import FOLDER_FILE, folder_names
from embark.tasks import ark, mieb, mmeb, pocket, pocket_ark, text_sts, unibench
from embark.tasks.benchmarks import read_benchmarks
from embark.types import Benchmark, EmbarkError, Task

if TYPE_CHECKING:  # public names that later rooms have: loaded at first use
    from embark.own.tasks_file import to_toml as to_toml
    from embark.run.build_omni import build_omni as build_omni
    from embark.run.checking import check as check
else:
    __getattr__, __dir__ = public.names_of("tasks")

DEFAULT_BENCHMARK = "Pocket"
_TABLES = (pocket, pocket_ark, mieb, ark, unibench, mmeb, text_sts)

TASKS: Catalogue[Task] = Catalogue(
    "task",
    lambda: with_plugins((row for table in _TABLES for row in table.TASKS), "tasks", lambda task: task.name),
    lambda task: task.name,
    "`embark tasks` lists them all.",
)
BENCHMARKS: Catalogue[Benchmark] = Catalogue(
    "benchmark",
    lambda: with_plugins(read_benchmarks(), "benchmarks", lambda benchmark: benchmark.name),
    lambda benchmark: benchmark.name,
    "`embark benchmarks` lists them all.",
)

Wanted = str | Iterable[str] | None


class TaskFilters(TypedDict, total=False):
    """Properties of tasks; each may be one value or several, and a glob.

    `evaluators` are retrieval, zeroshot… A task passes `languages` with any of its languages ("eng" is any script of
    English), `modalities` when it needs no others, and `max_items` when it is known to embed no more.
    """

    evaluators: Wanted
    families: Wanted
    categories: Wanted
    capabilities: Wanted
    languages: Wanted
    modalities: Wanted
    licenses: Wanted
    max_items: int | None


def filter_tasks(
    known: Catalogue[Task],
    tasks: Tasks = None,
    *,
    evaluators: Wanted = None,
    families: Wanted = None,
    categories: Wanted = None,
    capabilities: Wanted = None,
    languages: Wanted = None,
    modalities: Wanted = None,
    licenses: Wanted = None,
    max_items: int | None = None,
) -> list[Task]:
    """The known tasks of these names and properties; see `TaskFilters`."""
    chosen = list(known.values()) if tasks is None else choose_tasks(tasks, known=known)
    filters: tuple[tuple[str, Wanted, Callable[[Task], Iterable[str]]], ...] = (
        ("evaluator", evaluators, lambda task: (task.evaluator,)),
        ("family", families, lambda task: (task.family,)),
        ("category", categories, lambda task: (task.category,)),
        ("capability", capabilities, _capability),
        ("license", licenses, lambda task: (task.source.license,)),
        ("language", languages, _language_codes),
    )
    for name, wanted, values_of in filters:
        if (values := _values(known, name, wanted, values_of)) is not None:
            chosen = [task for task in chosen if not values.isdisjoint(values_of(task))]
    modality = _values(known, "modality", modalities, lambda task: task.modalities)
    return [
        task
        for task in chosen
        if (modality is None or modality.issuperset(task.modalities))
        and (max_items is None or ((count := size(task)) is not None and count <= max_items))
    ]


def get_tasks(tasks: Tasks = None, **filters: Unpack[TaskFilters]) -> list[Task]:
    """Built-in tasks by name and property; see `TaskFilters`."""
    return filter_tasks(TASKS, tasks, **filters)


Choice = str | Task | Benchmark  # the name of a task or benchmark, a pattern of names of tasks, or one of them itself
Tasks = Choice | Iterable[Choice] | None  # what every function takes as `tasks`
CHOSEN_TASKS = "the chosen tasks"  # what tasks are called that are no benchmark


def choices_of(tasks: Tasks) -> list[Choice]:
    """The choices one by one, names of benchmarks as benchmarks; None is the pocket benchmark."""
    tasks = DEFAULT_BENCHMARK if tasks is None else tasks
    benchmarks = known_benchmarks()
    choices: list[Any] = list(tasks) if isinstance(tasks, Iterable) and not isinstance(tasks, str) else [tasks]
    for choice in choices:
        if not isinstance(choice, (str, Task, Benchmark)):
            raise EmbarkError(
                f"Tasks are chosen by names, patterns, benchmarks or rows (embark.types.Task), not by {choice!r:.100}."
            )
    return [benchmarks.get(choice, choice) if isinstance(choice, str) else choice for choice in choices]


def chosen_benchmark(tasks: Tasks) -> Benchmark | None:
    """The benchmark, where just one is chosen and no other task: its name and its rule count."""
    match choices_of(tasks):
        case [Benchmark() as benchmark]:
            return benchmark
    return None


def by_benchmark(tasks: Tasks) -> dict[str, Tasks]:
    """The chosen benchmarks by name; where other tasks are chosen, too, all of them together."""
    choices = choices_of(tasks)
    benchmarks = [choice for choice in choices if isinstance(choice, Benchmark)]
    if len(benchmarks) < len(choices):
        return {CHOSEN_TASKS: choices}
    return {benchmark.name: benchmark for benchmark in benchmarks}


def task_names(tasks: Tasks) -> list[str]:
    """The names and patterns of tasks among the choices, also those of benchmarks."""
    names: list[str] = []
    for choice in choices_of(tasks):
        names += choice.tasks if isinstance(choice, Benchmark) else [choice] if isinstance(choice, str) else []
    return names


def choose_tasks(tasks: Tasks = None, protocol: str | None = None, known: Catalogue[Task] = TASKS) -> list[Task]:
    """Rows, task names, globs, benchmarks and their names as rows, each once; None is the pocket benchmark.

    `protocol` names another way of scoring than the paper's, for the tasks that have it; `known` are the tasks that
    names and globs are looked up in.
    """
    chosen: dict[str, Task] = {}
    for choice in choices_of(tasks):
        if isinstance(choice, Task):
            rows = [choice]
        elif isinstance(choice, Benchmark):
            rows = known.match(choice.tasks)
        else:
            rows = _matching(choice, known)
        for row in rows:
            if row.name in TASKS and TASKS[row.name].family != row.family:
                raise EmbarkError(f"A built-in task is named {row.name}, too: rename yours.")
            if chosen.setdefault(row.name, row) != row:
                raise EmbarkError(f"Two different tasks are named {row.name}: rename one of them.")
    if not chosen:
        raise EmbarkError("No task was chosen.")
    return under_protocol(protocol, list(chosen.values()))


def _matching(pattern: str, known: Catalogue[Task]) -> list[Task]:
    """The rows of a name or pattern; for one that fits none, tasks and benchmarks are suggested."""
    try:
        return known.match(pattern)
    except UnknownName:
        raise UnknownName("task or benchmark", pattern, [*known, *known_benchmarks()], known.hint) from None


def under_protocol(protocol: str | None, tasks: Sequence[Task]) -> list[Task]:
    """The rows as a protocol has them; a protocol that no row knows is an error."""
    if protocol is None:
        return list(tasks)
    known = dict.fromkeys(["paper", *(name for task in tasks for name in (task.protocol, *task.variants))])
    if protocol not in known:
        raise UnknownName("protocol of the chosen tasks", protocol, known, f"They know {', '.join(known)}.")
    return [task.under(protocol) for task in tasks]


def size(task: Task) -> int | None:
    """How many items a task embeds, if its row knows; a pool that it uses twice counts once."""
    return sum({pool.id: pool.items for pool in task.pools}.values()) if task.pools else None


def known_benchmarks() -> Catalogue[Benchmark]:
    """The built-in benchmarks, and those that embark.toml of the working folder names."""
    return BENCHMARKS.with_rows(map(_own_benchmark, folder_names().get("benchmark", ())))


def get_benchmarks(names: Wanted = None, *, families: Wanted = None) -> list[Benchmark]:
    """Benchmarks by name and family; each may be one value or several, and a glob."""
    known = known_benchmarks()
    chosen = list(known.values()) if names is None else known.match(names)
    family = match_words("family", (benchmark.family for benchmark in known.values()), families)
    return [benchmark for benchmark in chosen if family is None or benchmark.family in family]


def get_benchmark(name: str | Benchmark) -> Benchmark:
    """A benchmark by its name, also one that embark.toml of the working folder names; a benchmark is itself."""
    if isinstance(name, Benchmark):
        return name
    known = known_benchmarks()
    if name not in known and name in TASKS:
        raise EmbarkError(f"{name} is a task, not a benchmark: choose it with -t, or tasks= in Python.")
    return known[name]


def _own_benchmark(table: Mapping[str, Any]) -> Benchmark:
    """A [[benchmark]] table: `name`, `tasks` (names or patterns), `rule` and `description`."""
    texts = {name: table.get(name, default) for name, default in (("name", ""), ("rule", Benchmark.rule))}
    texts["description"] = table.get("description", "Named by embark.toml.")
    tasks = table.get("tasks")
    lists = isinstance(tasks, list) and bool(tasks) and all(isinstance(task, str) for task in tasks)
    unknown = sorted(set(table) - {*texts, "tasks"})
    if unknown or not lists or not all(isinstance(text, str) and text for text in texts.values()):
        wrong = f"it has {', '.join(unknown)}" if unknown else f"not {dict(table)!r}"
        raise EmbarkError(
            f"{Path(FOLDER_FILE).resolve()}: a [[benchmark]] has a name, a list of tasks, and perhaps a rule and a "
            f"description; {wrong}."
        )
    return Benchmark(texts["name"], "Own", tuple(tasks or ()), texts["rule"], texts["description"])


def _capability(task: Task) -> list[str]:
    return [task.tags["capability"]] if "capability" in task.tags else []


def _language_codes(task: Task) -> list[str]:
    """Its languages, with and without their scripts."""
    return [code for language in task.languages for code in (language, language.partition("-")[0])]


def _values(
    known: Catalogue[Task], name: str, wanted: Wanted, values_of: Callable[[Task], Iterable[str]]
) -> set[str] | None:
    """The wanted values of a property, or None for any; a value that no task has is an error with suggestions."""
    if wanted is None:
        return None
    values = dict.fromkeys(value for task in known.values() for value in values_of(task))
    return set(Catalogue(name, values, str).match(wanted))
