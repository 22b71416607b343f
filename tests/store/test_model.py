"""Any interleaving of writers, commits, crashes and re-opens of a store agrees with a dictionary."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from buckets import new_store
from embark.store import Store, Writer
from segments import holds, keys, vectors


class Model(RuleBasedStateMachine):
    """Any interleaving of writers, commits, crashes and re-opens agrees with a dictionary."""

    writers: dict[int, tuple[Writer, list[int]]]

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.store = self.new_store()
        self.space = self.store.space("ab")
        self.writers, self.committed = {}, set[int]()

    def new_store(self) -> Store:
        return Store(self.root)

    @rule(who=st.integers(0, 2), numbers=st.lists(st.integers(0, 30), max_size=6))
    def add(self, who: int, numbers: list[int]) -> None:
        writer, pending = self.writers.setdefault(who, (self.space.writer(), []))
        writer.add(keys(numbers), vectors(numbers))
        pending += numbers

    @rule(who=st.integers(0, 2), how=st.sampled_from(["commit", "close", "crash"]))
    def end(self, who: int, how: str) -> None:
        if who in self.writers:
            writer, pending = self.writers[who]
            if how != "crash":
                writer.commit() if how == "commit" else writer.close()
                self.committed.update(pending)
                pending.clear()
            if how != "commit":
                del self.writers[who]

    @rule(again=st.booleans())
    def look(self, again: bool) -> None:
        if again:
            self.space = self.store.space("ab")
        self.space.refresh()
        assert self.space.has(keys(range(31))).tolist() == [n in self.committed for n in range(31)]
        assert holds(self.space, self.committed)

    @invariant()
    def sound(self) -> None:
        assert self.space.verify() == []

    def teardown(self) -> None:
        shutil.rmtree(self.root)


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=25, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


class BucketModel(Model):
    """The same in a bucket."""

    def new_store(self) -> Store:
        return new_store(self.root)


@pytest.mark.slow
@pytest.mark.usefixtures("bucket")
class TestBucketModel(BucketModel.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(TestModel.settings, max_examples=10)
