"""Writes the page into a folder: the built code, and the data that it shows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from embark import __version__
from embark.boards.cards import card_of
from embark.boards.comparable_results import Include, own_results
from embark.boards.leaderboards import Leaderboard, leaderboard
from embark.catalogue import counted, group_values
from embark.field_types import checked
from embark.models.card_facts import public_card
from embark.outgoing import write_bytes
from embark.redaction import this_machine
from embark.reports.kept import FOLDER
from embark.results import Results, TaskResult
from embark.settings import Settings, load_settings
from embark.site.board_data import board_data
from embark.site.comparisons import comparisons_data
from embark.site.gallery_files import GalleryFiles
from embark.site.model_data import model_data
from embark.site.plot_data import plot_data
from embark.site.report_data import heading, report_data
from embark.site.run_data import run_data
from embark.site.scripts import minute, slug, write_script
from embark.site.task_data import task_data
from embark.stats.means import names
from embark.studies.pareto import embedding_times
from embark.tables import RANKED_SHARE
from embark.tasks import BENCHMARKS, TASKS, Tasks, Wanted, by_benchmark
from embark.types import EmbarkError, ModelCard, Task

STATIC = Path(__file__).parent / "static"
FEWEST_MODELS = 3  # models that a plot needs
TITLE = "<title>embark</title>"  # of index.html
OWN = "Your results"  # the board of all tasks that the results folder has


@dataclass(frozen=True)
class Site:
    """A page on disk: its folder, and notes on what it lacks."""

    folder: Path
    boards: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def index(self) -> Path:
        """The file to open."""
        return self.folder / "index.html"

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


@checked
def export(
    out: Path | str | None = None,
    tasks: Tasks = None,
    *,
    models: Wanted = None,
    include: Include = "all",
    with_media: bool = False,
    live: bool = False,
    settings: Settings | None = None,
) -> Site:
    """Write the page: leaderboards, plots, comparisons, tasks, models and runs, to open from disk or to put on a host.

    By default into the folder `page` of the results, with the boards of all benchmarks that have scores. With `tasks`,
    those benchmarks have boards, or, where other tasks are chosen, one board has all of them. `models` are names or
    patterns of those that boards and runs show (default: all). Items are shown of your own data, and of the hub's that
    are recorded as free; `with_media` takes all of the hub's. A `live` page asks for the states of runs, again and
    again: for one that is served.
    """
    settings = settings or load_settings()
    folder = Path(out) if out is not None else settings.results / "page"
    private = this_machine(settings)
    stored = Results(settings.results)
    patterns = ["*"] if models is None else [models] if isinstance(models, str) else list(models)
    own = [
        result
        for result in stored.all()
        if result.made_by == "embark" and any(fnmatchcase(result.model, pattern) for pattern in patterns)
    ]
    with GalleryFiles(folder, with_media, settings, len({result.task for result in own})) as galleries:
        boards = dict(_boards(tasks, models, own, include, settings))
        if not boards:
            raise EmbarkError(f"There are no scores to show in {settings.results}. Make some: embark run")
        _prepare(folder)
        rows = _tasks(boards.values())
        current = _current(boards.values(), rows, own)
        for name, results in group_values((result.task, result) for result in current).items():
            galleries.add(rows[name], results)
        parts = _write_boards(folder, boards, rows, own, settings)
        write_script(folder, "compare", comparisons_data(_by_model(current), list(rows.values())), private)
        parts["items"] = galleries.files()
    write_script(folder, "index", _index(boards, rows) | parts | {"live": live}, private)
    damaged = dict.fromkeys(note for board in boards.values() for note in board.damaged)
    return Site(folder, tuple(boards), (*stored.notes, *damaged, *galleries.notes))


def _write_boards(
    folder: Path,
    boards: dict[str, Leaderboard],
    tasks: dict[str, Task],
    own: Sequence[TaskResult],
    settings: Settings,
) -> dict[str, object]:
    """Write the boards with their plots, tasks and models, the runs and the reports; what there is of them."""
    times = embedding_times(own)
    private = this_machine(settings)
    plots = []
    for name, board in boards.items():
        data = board_data(name, board)
        write_script(folder, f"board/{slug(name)}", data, private)
        if len(board.entries) >= FEWEST_MODELS:
            write_script(folder, f"plots/{slug(name)}", plot_data(board, times), private)
            plots.append(name)
    for family, rows in group_values((task.family, task) for task in tasks.values()).items():
        write_script(folder, f"tasks/{slug(family)}", task_data(rows), private)
    write_script(folder, "models", model_data(_cards(boards.values()), times), private)
    write_script(folder, "runs", run_data(own, settings), private)
    reports = report_data(settings.results / FOLDER)
    for report in reports:
        write_script(folder, f"reports/{report['file']}", report, private)
    return {"plots": plots, "reports": list(map(heading, reports))}


def _boards(
    tasks: Tasks, models: Wanted, own: Sequence[TaskResult], include: Include, settings: Settings
) -> Iterable[tuple[str, Leaderboard]]:
    """The leaderboards of chosen tasks, or all that have scores; then all of one's own tasks are a board, too, unless
    they are a whole benchmark's, or enough of its tasks to be ranked there.
    """
    if tasks is not None:
        for name, choice in by_benchmark(tasks).items():
            yield name, leaderboard(choice, include=include, models=models, settings=settings)
        return
    scored = {result.task for result in own}
    for name, benchmark in BENCHMARKS.items():
        if include != "own" or scored.intersection(benchmark.tasks):
            with suppress(EmbarkError):
                yield name, leaderboard(benchmark, include=include, models=models, settings=settings)
    covered = any(
        scored <= {*benchmark.tasks} and len(scored) >= RANKED_SHARE * len(benchmark.tasks)
        for benchmark in BENCHMARKS.values()
    )
    if scored and not covered and include != "published":
        with suppress(EmbarkError):  # all of them are outdated
            yield OWN, leaderboard(include="own", models=models, settings=settings)


def _prepare(folder: Path) -> None:
    """The folder with the code, and without the data of an earlier page; other files are left alone."""
    try:
        if folder.exists() and any(folder.iterdir()) and not _is_page(folder):
            raise EmbarkError(f"{folder} has other files than a page. Choose an empty or new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("data", "media"):
            if (folder / name).is_symlink():  # what it leads to is somebody else's
                (folder / name).unlink()
            shutil.rmtree(folder / name, ignore_errors=True)
        for path in STATIC.iterdir():
            (folder / path.name).unlink(missing_ok=True)  # a link would be written through
            write_bytes(folder / path.name, path.read_bytes())
    except OSError as error:
        why = f"The page cannot be written to {folder} ({error.strerror})."
        raise EmbarkError(f"{why} Choose another folder.") from error


def _is_page(folder: Path) -> bool:
    """Whether a folder has a page of an earlier export, which may be replaced."""
    if not (folder / "app.js").is_file():
        return False
    return TITLE in (folder / "index.html").read_text(encoding="utf-8", errors="replace")


def _tasks(boards: Iterable[Leaderboard]) -> dict[str, Task]:
    return {task.name: task for board in boards for task in board.tasks}


def _current(boards: Iterable[Leaderboard], tasks: dict[str, Task], own: Sequence[TaskResult]) -> list[TaskResult]:
    """Your results under the present protocols, the best models of the boards first."""
    models = list(dict.fromkeys(entry.model.model for board in boards for entry in board.entries))
    current, _ = own_results(list(tasks.values()), own)
    return sorted(current, key=lambda result: models.index(result.model) if result.model in models else len(models))


def _by_model(results: Sequence[TaskResult]) -> dict[str, list[TaskResult]]:
    """The results of each model, by the names that boards have."""
    keys = [(result.model, result.revision, result.made_by) for result in results]
    distinct = list(dict.fromkeys(keys))
    labels = dict(zip(distinct, names(distinct), strict=True))
    return group_values((labels[key], result) for key, result in zip(keys, results, strict=True))


def _cards(boards: Iterable[Leaderboard]) -> dict[str, ModelCard | None]:
    models = {entry.model.model: entry.model for board in boards for entry in board.entries}
    cards = {name: card_of(next(iter(model.results.values()))) for name, model in sorted(models.items())}
    return {name: card and public_card(card) for name, card in cards.items()}


def _index(boards: dict[str, Leaderboard], tasks: dict[str, Task]) -> dict[str, object]:
    """What the page needs before all else: which boards and tasks there are, and where."""
    place = {name: number for number, name in enumerate(tasks)}
    models = list(_cards(boards.values()))
    own = [name for name, board in boards.items() if any(entry.model.source == "yours" for entry in board.entries)]
    return {
        "version": __version__,
        "date": minute(time.time()),
        "first": (own or list(boards))[0],
        "boards": [
            {
                "name": name,
                "file": slug(name),
                "family": BENCHMARKS[name].family if name in BENCHMARKS else "",
                "about": BENCHMARKS[name].description if name in BENCHMARKS else "All tasks that you have results on.",
                "tasks": [place[task.name] for task in board.tasks],
                "models": sorted({models.index(entry.model.model) for entry in board.entries}),
                "size": f"{counted(len(board.entries), 'model')}, {counted(len(board.tasks), 'task')}",
            }
            for name, board in boards.items()
        ],
        "tasks": {
            "name": list(tasks),
            "family": [slug(task.family) for task in tasks.values()],
            "category": [task.category for task in tasks.values()],
            "known": [task.name in TASKS for task in tasks.values()],
        },
    }
