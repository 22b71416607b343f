"""Writes galleries as files of a page: by worker processes where there are many, which a damaged picture may kill."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from embark.processes import POSSIBLE, SINGLE_THREADED, NoWorkers, WorkerLost, Workers, WorkersDie
from embark.redaction import this_machine
from embark.results import TaskResult
from embark.settings import Settings, cores
from embark.site.galleries import Galleries
from embark.site.scripts import slug, write_script
from embark.site.thumbnails import TOTAL, Thumbnails
from embark.types import Task

PROCESSES = 4  # at most
ENOUGH_GALLERIES = 4  # galleries a process, which make up for its start
GALLERY_SECONDS = 600.0  # for one gallery

Job = tuple[Task, Sequence[TaskResult]]


class GalleryWriter:
    """Writes the gallery of one task at a time into the folder of a page."""

    def __init__(self, folder: Path, with_media: bool, settings: Settings, share: int = 1) -> None:
        self.folder = folder
        self.private = this_machine(settings)
        self.galleries = Galleries(Thumbnails(folder / "media", TOTAL // share), with_media, settings)

    def __call__(self, job: Job) -> bool:
        """Whether there is something to show."""
        task, results = job
        gallery = self.galleries.gallery(task, results)
        if gallery is not None:
            write_script(self.folder, f"items/{slug(task.name)}", vars(gallery), self.private)
        return gallery is not None


class GalleryFiles(AbstractContextManager["GalleryFiles"]):
    """The galleries of a page: `add` tasks, then ask for the `files`. Processes, if any, start at once."""

    def __init__(self, folder: Path, with_media: bool, settings: Settings, expected: int) -> None:
        self.notes: list[str] = []
        self._writer = partial(GalleryWriter, folder, with_media, settings)
        self._jobs: list[tuple[Job, Future[list[bool | WorkerLost]] | None]] = []
        count = min(cores(), expected // ENOUGH_GALLERIES, PROCESSES) if POSSIBLE else 1
        self._workers: Workers | None = None
        if count > 1:
            factory = partial(self._writer, share=count)
            self._workers = Workers([factory] * count, seconds=GALLERY_SECONDS, environment=SINGLE_THREADED)

    def add(self, task: Task, results: Sequence[TaskResult]) -> None:
        """A task that models have results on."""
        job = (task, results)
        self._jobs.append((job, self._submitted(job)))

    def files(self) -> dict[str, str]:
        """The written galleries: their files by task."""
        here = None
        files = {}
        for job, future in self._jobs:
            name = job[0].name
            written: bool | WorkerLost | None = None
            try:
                [written] = future.result() if future else [None]
            except WorkersDie as error:  # so might this process
                written = WorkerLost(str(error))
            except NoWorkers:
                pass
            if written is None:
                here = here or self._writer()
                written = here(job)
            if isinstance(written, WorkerLost):
                self.notes.append(f"The items of {name} are not shown: reading them {written.reason}.")
            elif written:
                files[name] = slug(name)
        return files

    def _submitted(self, job: Job) -> Future[list[bool | WorkerLost]] | None:
        try:
            return self._workers.submit([job]) if self._workers else None
        except NoWorkers as error:
            failed: Future[list[bool | WorkerLost]] = Future()
            failed.set_exception(error)
            return failed

    def __exit__(self, *error: object) -> None:
        if self._workers is not None:
            self._workers.close()
