"""Tasks as a stream: the first score before the last download, items embedded once, data let go and evicted."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import constants

import embark
from embark import readers
from embark.engine.batching.self_check import Inconsistent
from embark.engine.local import Embedding
from embark.planning import reading_order
from embark.results import TaskResult
from embark.run import evaluate
from embark.run.ledger import Ledger
from embark.run.workbench import Workbench
from embark.types import Pool, Source, Task
from hub import FakeHub
from rankings import counting, ranking


def cached() -> set[str]:
    """The contents that are in the cache of downloads."""
    return {path.name for path in Path(constants.HF_HUB_CACHE).glob("datasets--*/blobs/*")}


def test_the_first_score_comes_before_the_last_download(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [ranking(hub, number) for number in range(4)]
    scored = threading.Event()
    waited = []
    read = readers.read

    def slow_read(task: Task, *args: Any) -> Any:
        if task.name == tasks[-1].name:
            waited.append(scored.wait(30))  # as long as the last download takes
        return read(task, *args)

    def computed(self: Ledger, result: TaskResult) -> None:
        keep(self, result)
        scored.set()

    keep = Ledger.computed

    monkeypatch.setattr("embark.run.workbench.readers.read", slow_read)
    monkeypatch.setattr(Ledger, "computed", computed)
    run = evaluate(counting([]), tasks, show_progress=False)
    assert len(run.results) == 4
    assert waited == [True]


def test_an_item_of_an_earlier_wave_is_not_embedded_again(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embark.run.read_ahead.WAVE", 1)  # each task is a wave of its own
    calls: list[int] = []
    tasks = [ranking(hub, number) for number in range(3)]
    run = evaluate(counting(calls), tasks, show_progress=False)
    assert run.embedded == 6 + 3 * 6  # the corpus is the same in all
    assert (run.items, run.unique) == (36, 24)
    apart = evaluate(counting([]), tasks, settings=embark.load_settings(home="apart", results="apart"))
    assert [r.score for r in run.results] == [r.score for r in apart.results]
    assert [r.interval for r in run.results] == [r.interval for r in apart.results]


# ── waves that overlap ───────────────────────────────────────────────────────────────────────────────────────────────


class Overlapping:
    """A model of two lanes, in a run whose tasks are a wave each. Its first batches in lanes wait until the next wave
    has been planned; they may fail then.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> None:
        monkeypatch.setattr("embark.run.read_ahead.WAVE", 1)
        self.embedded: list[str] = []
        self.next_planned = threading.Event()
        self.came: list[bool] = []  # whether the next plan came while a batch waited
        plans: list[Any] = []
        plan = Workbench.plan

        def counted(*args: Any) -> Any:
            plans.append(plan(*args))
            if len(plans) == 2:
                self.next_planned.set()
            return plans[-1]

        monkeypatch.setattr(Workbench, "plan", counted)
        plain = counting([])

        def embed(texts: list[str]) -> Any:
            if threading.current_thread().name.startswith("embark-lane") and not self.came:
                self.came.append(self.next_planned.wait(10))
                if fails:
                    raise RuntimeError("the model failed on this batch")
            self.embedded.extend(texts)
            return plain.embed([[("text", text)] for text in texts])

        self.encoder = embark.encoder(text=embed, name="test/overlapping", revision="1")
        self.encoder.capabilities = replace(self.encoder.capabilities, lanes=2)


def test_the_next_wave_is_handed_over_while_the_one_before_is_embedded(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [ranking(hub, number) for number in range(3)]
    apart = evaluate(counting([]), tasks, settings=embark.load_settings(home="apart", results="apart"))
    model = Overlapping(monkeypatch)
    run = evaluate(model.encoder, tasks, show_progress=False)
    assert model.came
    assert all(model.came)
    assert (run.embedded, run.items, run.unique, run.damaged) == (24, 36, 24, 0)
    twice = {text for text in model.embedded if model.embedded.count(text) > 1}
    assert all(text.endswith((" 0", "page")) for text in twice)  # by the self-check, which is of the first wave
    assert [r.score for r in run.results] == [r.score for r in apart.results]


def test_what_a_wave_relied_on_and_did_not_come_it_embeds_itself(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [ranking(hub, number) for number in range(3)]
    apart = evaluate(counting([]), tasks, settings=embark.load_settings(home="apart", results="apart"))
    model = Overlapping(monkeypatch, fails=True)
    run = evaluate(model.encoder, tasks, show_progress=False)
    assert model.came
    assert all(model.came)
    assert run.damaged == 0
    assert [r.score for r in run.results] == [r.score for r in apart.results]


def test_an_error_of_an_unfinished_wave_ends_the_run(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Overlapping(monkeypatch)

    def finish(self: Embedding) -> Any:
        with self:
            raise Inconsistent("the model mixes items up")

    monkeypatch.setattr(Embedding, "finish", finish)
    with pytest.raises(embark.EmbarkError, match=r"Stream0, Stream1, Stream2 for test/overlapping: .* mixes items up"):
        evaluate(model.encoder, [ranking(hub, number) for number in range(3)], show_progress=False)
    assert model.came


# ── what is let go ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_scored_task_lets_its_data_go(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embark.run.read_ahead.WAVE", 1)
    alive: list[weakref.ref[Any]] = []
    most = []
    read = Workbench._read

    def tracked(self: Workbench, *args: Any) -> Any:
        gc.collect()
        most.append(sum(ref() is not None for ref in alive))
        data = read(self, *args)
        alive.append(weakref.ref(data.sides["query"]))
        return data

    monkeypatch.setattr(Workbench, "_read", tracked)
    settings = embark.load_settings(memory=1)
    monkeypatch.setattr("embark.run.model_stream.size_of", lambda data: 1 << 20)  # twice the room for reading ahead
    evaluate(counting([]), [ranking(hub, number) for number in range(8)], settings=settings, show_progress=False)
    assert len(most) == 8
    assert max(most) <= 3  # one that is scored, and two that are read
    gc.collect()
    assert not any(ref() for ref in alive)


def test_evict_deletes_what_the_run_downloaded_after_the_last_task(hub: FakeHub) -> None:
    known = ranking(hub, 0)
    embark.fetch([known], show_progress=False)
    before = cached()
    assert before
    shared = ranking(hub, 1, "org/shared")
    tasks = [known, shared, ranking(hub, 2)]
    run = evaluate(counting([]), tasks, evict=True, show_progress=False)
    assert len(run.results) == 3
    assert cached() == before  # of what was there, nothing is gone; of the rest, nothing is left
    again = evaluate(counting([]), tasks, rescore=True, show_progress=False)
    assert again.embedded == 0
    assert cached() > before  # without evict, data stays


def test_evict_keeps_data_that_another_model_needs(hub: FakeHub) -> None:
    tasks = [ranking(hub, number) for number in range(2)]
    by_length = embark.encoder(text=lambda texts: [[len(text), 1.0] for text in texts], name="test/2", revision="1")
    evaluate([counting([]), by_length], tasks, evict=True, show_progress=False)
    assert len(hub.asked("/lfs/")) == 2 * 3  # each file of both datasets once
    assert not cached()


def test_evict_goes_on_after_a_model_that_cannot_be_used(hub: FakeHub) -> None:
    in_disorder = embark.encoder(text=lambda texts: np.eye(len(texts), 8) + 1, name="test/disorder", revision="1")
    run = evaluate([counting([]), in_disorder], [ranking(hub, 0)], evict=True, show_progress=False)
    assert [skip.model for skip in run.skipped] == ["test/disorder"]
    assert not cached()


def test_evict_spares_the_content_of_another_revision(hub: FakeHub) -> None:
    old = ranking(hub, 0, "org/moved")
    embark.fetch([old], show_progress=False)
    before = cached()
    new = ranking(hub, 1, "org/moved")  # another commit, in which the corpus is the same file
    evaluate(counting([]), [new], evict=True, show_progress=False)
    assert cached() == before


def test_tasks_of_one_dataset_follow_each_other_and_small_ones_come_first(hub: FakeHub) -> None:
    def task(name: str, source: str, *pools: Pool) -> Task:
        return Task(name, "Test", "retrieval", "beir", Source(source, "1"), "ndcg_at_10", "R", ("text",), pools=pools)

    big = task("big", "a", Pool("document", 1000, "corpus a"))
    small = task("small", "b", Pool("document", 10, "corpus b"))
    also_a = task("also a", "a", Pool("query", 5, "queries"))
    shares = task("shares", "c", Pool("document", 1000, "corpus a"))
    unknown = task("unknown", "d")
    order = [task.name for task in reading_order([big, small, also_a, shares, unknown])]
    assert order == ["unknown", "small", "also a", "big", "shares"]
