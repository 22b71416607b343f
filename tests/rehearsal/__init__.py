"""Every task of a benchmark on a hub of this machine, in the layout of the real data, cut down 1:100.

Tasks that read one dataset find it once, with all that any of them needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import samples_ark
import samples_mieb
import samples_mmeb
import samples_mmeb_text
import samples_unibench
from embark.catalogue import group_values
from embark.tasks import get_benchmark, get_tasks, mmeb
from embark.types import Task
from hub import FakeHub
from sizes import hundredth


def publish(hub: FakeHub, *benchmarks: str) -> None:
    """Publish the data of all tasks of some benchmarks."""
    tasks = get_tasks([name for benchmark in benchmarks for name in get_benchmark(benchmark).tasks])
    for family, rows in group_values((task.family, task) for task in tasks).items():
        FAMILIES[family](hub, rows)
    for files in hub.data.values():
        files[".gitattributes"] = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"


def _mieb(hub: FakeHub, tasks: Sequence[Task]) -> None:
    for id, rows in group_values((task.source.id, task) for task in tasks).items():
        files, card = samples_mieb.sample(_union(rows), hundredth)
        hub.add(id, files, rows[0].source.revision, card)


def _union(tasks: Sequence[Task]) -> Task:
    """One row that asks for all that several rows of a dataset ask for."""
    whole = tasks[0]
    for task in tasks[1:]:
        whole = replace(
            whole,
            source=replace(whole.source, splits=tuple(dict.fromkeys((*whole.source.splits, *task.source.splits)))),
            options={**task.options, **whole.options},
            subsets={**whole.subsets, **task.subsets},
            rows={**whole.rows, **task.rows},
            pools=(*whole.pools, *task.pools),
            labels=whole.labels or task.labels,
        )
    return whole


def _unibench(hub: FakeHub, tasks: Sequence[Task]) -> None:
    for task in tasks:
        revision = "" if task.source.revision == "main" else task.source.revision
        hub.add(task.source.id, samples_unibench.dataset(task, hundredth), revision)


def _mmeb(hub: FakeHub, tasks: Sequence[Task]) -> None:
    """All groups: tables of many datasets, and one dataset with the archives of all."""
    archives: dict[str, dict[str, bytes]] = {}
    tables: dict[str, dict[str, bytes]] = {}
    places: dict[str, dict[str, tuple[str, str]]] = {}
    files = samples_mmeb_text.v3_files(hundredth)
    for task in tasks:
        group = task.tags["group"]
        if group in ("text", "agent"):
            continue
        if group == "visdoc":
            samples_mmeb_text.publish_pages(hub, task, hundredth)
        elif samples_mmeb.packed(task):
            if task.options["archive"] not in files:
                files[task.options["archive"]] = samples_mmeb.pack(task, hundredth)
        else:
            of_task, configs, archive, members = samples_mmeb.tables_and_media(task, hundredth)
            tables.setdefault(task.source.id, {}).update(of_task)
            places.setdefault(task.source.id, {}).update(configs)
            archives.setdefault(archive, {}).update(members)
    for archive, members in archives.items():
        files |= samples_mmeb.archived(archive, members)
    for id, of_dataset in tables.items():
        hub.add(id, of_dataset, card=samples_mmeb.card(places[id]))
    hub.add(mmeb.HUB, files, mmeb.PINNED)


def _ark(hub: FakeHub, tasks: Sequence[Task]) -> None:
    hub.add(tasks[0].source.id, samples_ark.files(hundredth), card=samples_mieb.card({}, "apache-2.0"))


FAMILIES = {"MIEB": _mieb, "UniBench": _unibench, "MMEB-V3": _mmeb, "ARK": _ark}
