"""What may go wrong in a stream of tasks: threads that wait for each other, failures here and there, memory and disks
that are full.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import embark
from embark import evaluators, readers
from embark.hub import Hub
from embark.models.functions import generator
from embark.readers.rows import open_archive
from embark.results import TaskResult
from embark.run import Run, evaluate
from embark.run.evaluation import Evaluation
from embark.run.ledger import Ledger
from embark.run.stages import Stages
from embark.run.workbench import Workbench
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import Source
from hub import FakeHub, client, tar
from rankings import WORDS, counting, hash_of, ranking


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task is a wave of its own, in order, and there is memory for one."""
    monkeypatch.setattr("embark.run.read_ahead.WAVE", 1)
    monkeypatch.setattr("embark.run.read_ahead.WAIT_SECONDS", 20.0)
    monkeypatch.setattr("embark.run.model_stream.size_of", lambda data: 1 << 40)


def in_time(work: Callable[[], Any]) -> Any:
    """What a call returns or raises; a failure where it does not end."""
    outcome: dict[str, Any] = {}

    def call() -> None:
        try:
            outcome["value"] = work()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for ever"
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


@pytest.mark.usefixtures("one_by_one")
def test_damaged_vectors_are_embedded_again_though_nothing_more_may_be_read(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embark.run.read_ahead.READERS", 1)
    tasks = [ranking(hub, number) for number in range(4)]
    before = evaluate(counting([]), tasks, show_progress=False)
    for path in load_settings().store.glob("*/*.vectors"):
        content = path.read_bytes()
        path.write_bytes(content[:4096] + bytes(len(content) - 4096))
        os.utime(path, (0, 0))
    run: Run = in_time(lambda: evaluate(counting([]), tasks, rescore=True, show_progress=False))
    assert [r.score for r in run.results] == [r.score for r in before.results]
    assert run.damaged == run.embedded == before.embedded


@pytest.mark.usefixtures("one_by_one")
def test_an_exit_while_a_task_is_scored_ends_the_run(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*args: Any) -> Any:
        raise SystemExit("enough")

    monkeypatch.setattr(evaluators, "evaluate", leave)
    with pytest.raises(SystemExit, match="enough"):
        in_time(lambda: evaluate(counting([]), [ranking(hub, number) for number in range(4)], show_progress=False))


def test_an_exit_while_a_task_is_read_ends_the_run(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*args: Any) -> Any:
        raise SystemExit("enough")

    monkeypatch.setattr("embark.run.workbench.readers.read", leave)
    with pytest.raises(SystemExit, match="enough"):
        in_time(lambda: evaluate(counting([]), [ranking(hub, 0)], show_progress=False))


@pytest.mark.usefixtures("one_by_one")
def test_failures_with_successes_between_them_are_not_in_a_row(hub: FakeHub) -> None:
    def embed(texts: list[str]) -> Any:
        if any("bad" in text for text in texts):
            raise RuntimeError("it is bad")
        return [[len(text), hash_of(text), 1.0] for text in texts]

    model = embark.encoder(text=embed, name="test/failing", revision="1")
    tasks = [
        ranking(hub, number, words=[f"bad{number}{word}" for word in WORDS] if number % 2 else WORDS)
        for number in range(10)
    ]
    run = evaluate(model, tasks, show_progress=False)
    assert [result.task for result in run.results] == [f"Stream{number}" for number in range(0, 10, 2)]
    assert {skip.why.split(" (")[0] for skip in run.skipped} == {"RuntimeError: it is bad"}


def test_a_model_is_gone_before_the_next_one_is_loaded(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[weakref.ref[Any]] = []
    alive = []

    def load(name: str, *args: Any) -> embark.Encoder:
        alive.append([ref() is not None for ref in loaded])
        encoder = embark.encoder(text=lambda texts: [[len(text), 1.0] for text in texts], name=name, revision="1")
        loaded.append(weakref.ref(encoder))
        return encoder

    monkeypatch.setattr("embark.run.evaluation.load_model", load)
    bench = Workbench(load_settings(), show_progress=False)
    run = Evaluation(bench, [ranking(hub, 0)], ["test/1", "test/2", "test/3"]).evaluate()
    assert len(run.results) == 3
    assert alive == [[], [False], [False, False]]


@pytest.mark.usefixtures("one_by_one")
def test_a_scored_task_lets_its_data_go_without_the_garbage_collector(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During a run, it hardly ever looks for what refers to itself."""
    held: list[weakref.ref[Any]] = []
    alive = []
    read = Workbench._read

    def tracked(self: Workbench, *args: Any) -> Any:
        alive.append(sum(ref() is not None for ref in held))
        data = read(self, *args)
        held.append(weakref.ref(data.sides["query"]))
        return data

    monkeypatch.setattr(Workbench, "_read", tracked)
    tasks = [ranking(hub, number) for number in range(8)]
    gc.disable()
    try:
        evaluate(counting([]), tasks, show_progress=False)
    finally:
        gc.enable()
    assert len(alive) == 8
    assert max(alive) <= 3  # one that is scored, and two that are read


@pytest.mark.usefixtures("one_by_one")
def test_what_failed_holds_no_memory(hub: FakeHub) -> None:
    """The frames of an error hold what was on the device."""
    held: list[weakref.ref[Any]] = []
    alive = []

    class Tensor:
        pass

    def embed(texts: list[str]) -> Any:
        alive.append(sum(ref() is not None for ref in held))
        tensor = Tensor()
        held.append(weakref.ref(tensor))
        if any("bad" in text for text in texts):
            raise RuntimeError("it is bad")
        return [[len(text), 1.0] for text in texts]

    model = embark.encoder(text=embed, name="test/failing", revision="1")
    tasks = [ranking(hub, 0, words=["bad", "worse"]), ranking(hub, 1)]
    run = evaluate(model, tasks, show_progress=False)
    assert len(run.skipped) == 1
    assert max(alive) == 0


@pytest.mark.usefixtures("one_by_one")
def test_warnings_about_vectors_stand_on_the_scores_of_all_waves(hub: FakeHub) -> None:
    def embed(texts: list[str]) -> Any:
        return [[len(text), hash_of(text), 0.1 * len(texts)] for text in texts]

    model = embark.encoder(text=embed, name="test/batches", revision="1")
    run = evaluate(model, [ranking(hub, number) for number in range(3)], show_progress=False)
    assert [any("depend on their batch" in text for text in r.warnings) for r in run.results] == [True] * 3


@pytest.mark.usefixtures("one_by_one")
def test_one_item_tells_nothing_about_the_order_of_rows(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [1]
    score = evaluators.evaluate

    def slow_score(*args: Any) -> Any:
        time.sleep(0.6)  # the model proves unusable while its first task is scored
        return score(*args)

    def embed(texts: list[str]) -> Any:
        return [[len(text), text.count("e"), hash_of(text), 1.0] for text in texts][:: steps[-1]]

    model = embark.encoder(text=embed, name="test/order", revision="1")
    known = [ranking(hub, 0, words=["red", "blue"]), ranking(hub, 1, "org/other", words=["blue", "green"])]
    assert len(evaluate(model, known, show_progress=False).results) == 2
    steps.append(-1)
    monkeypatch.setattr("embark.run.read_ahead.READERS", 1)
    monkeypatch.setattr("embark.run.model_stream.size_of", lambda data: 0)
    monkeypatch.setattr(evaluators, "evaluate", slow_score)
    tasks = [ranking(hub, 1, words=["red", "blue"]), ranking(hub, 2)]  # of the first, one query is to be embedded
    run = evaluate(model, tasks, show_progress=False)
    assert [skip.task for skip in run.skipped if "another order" in skip.why] == ["Stream2"]
    assert [result.task for result in run.results] == ["Stream1"]


@pytest.mark.usefixtures("one_by_one")
def test_a_stage_and_the_model_take_turns_on_the_device(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embark.run.model_stream.size_of", lambda data: 0)  # reading goes on while the model works
    working: list[str] = []
    together = []

    def work(name: str) -> None:
        working.append(name)
        time.sleep(0.05)
        together.append(len({*working}))
        working.remove(name)

    def embed(texts: list[str]) -> Any:
        work("model")
        return [[len(text), 1.0] for text in texts]

    def write(texts: list[str], prompt: str) -> list[str]:
        work("generator")
        return [f"about {text}" for text in texts]

    writer = generator(write, modalities=("text",), name="test/writer", revision="1")
    model = embark.encoder(text=embed, name="test/slow", revision="1")
    tasks = [ranking(hub, number) for number in range(6)]
    run = evaluate(model, tasks, stages=Stages(rewrite=writer), show_progress=False)
    assert len(run.results) == 6
    assert max(together) == 1


def test_evict_spares_the_media_that_other_tasks_need(tmp_path: Path) -> None:
    [rows, *_] = [task for task in TASKS.values() if task.source.id == "VLM2Vec/MMEB-V3"]
    [pictures, *_] = [task for task in TASKS.values() if task.options.get("media") == "image_tasks/mmeb_v1.tar.gz"]
    assert rows.source.id in readers.sources(pictures)
    bench = Workbench(load_settings(), show_progress=False)
    evaluation = Evaluation(bench, [rows, pictures], ["test/1"], evict=True)
    archive = tmp_path / "mmeb_v1.tar.gz"
    archive.write_bytes(b"pictures")
    bench.hub.add_made(rows.source.id, archive)
    evaluation.ledger.done(rows)
    assert archive.exists()
    evaluation.ledger.done(pictures)
    assert not archive.exists()


def test_evict_deletes_what_was_unpacked_of_an_archive(hub: FakeHub) -> None:
    from embark.readers._mmeb import ArchiveFolder

    revision = hub.add("org/packed", {"all.tar": tar({"data/rows.jsonl": b'{"a": 1}\n'})})
    known: Hub = client()
    folder = ArchiveFolder(open_archive(Source("org/packed", revision), "all.tar", known), "data")
    assert len(folder.table("rows.jsonl")) == 1
    assert list(known.home.glob("unpacked/*/*/*.jsonl"))
    known.evict("org/packed")
    assert not list(known.home.glob("unpacked/*/*/*.jsonl"))


def test_evict_does_not_download_far_ahead_of_the_scores(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of media take little memory, so that alone does not keep a disk from filling."""
    tasks = [ranking(hub, number) for number in range(10)]
    scored: list[str] = []
    ahead = []
    download = readers.needed_files

    def counted(task: Any, *args: Any) -> Any:
        ahead.append(int(task.name.removeprefix("Stream")) - len(scored))
        return download(task, *args)

    def computed(self: Ledger, result: TaskResult) -> None:
        keep(self, result)
        time.sleep(0 if scored else 1)  # enough to download much
        scored.append(result.task)

    keep = Ledger.computed

    monkeypatch.setattr("embark.run.fetching.readers.needed_files", counted)
    monkeypatch.setattr(Ledger, "computed", computed)
    settings = load_settings(workers=1)
    run = evaluate(counting([]), tasks, settings=settings, evict=True, show_progress=False)
    assert len(run.results) == 10
    assert max(ahead) <= 4
