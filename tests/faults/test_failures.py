"""A failure costs its task or its model, whatever it raises; the others are scored."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import embark
from embark.hub.listing import load_listing
from embark.registries import EVALUATORS
from embark.run import NothingScored, Run, evaluate
from embark.settings import load_settings
from embark.types import Source, Task
from folders import two_tasks
from hub import FakeHub, parquet

Pictures = Callable[..., Path]
TABLES = {
    "corpus/test-0.parquet": parquet({"id": ["d1", "d2"], "text": ["a red page", "a blue page"]}),
    "queries/test-0.parquet": parquet({"id": ["q1", "q2"], "text": ["red", "blue"]}),
    "qrels/test-0.parquet": parquet({"query-id": ["q1", "q2"], "corpus-id": ["d1", "d2"], "score": [1, 1]}),
}


def ranking(hub: FakeHub, name: str, **tables: bytes) -> Task:
    """A retrieval task of the hub; `tables` replace those that are sound."""
    files = TABLES | {f"{table}/test-0.parquet": data for table, data in tables.items()}
    source = Source(f"org/{name.lower()}", hub.add(f"org/{name.lower()}", files))
    return Task(name, "Test", "retrieval", "beir", source, "ndcg_at_10", "Retrieval", ("text",))


def outcome(run: Run) -> tuple[list[str], list[str]]:
    """The tasks that were scored, and those that failed."""
    return [result.task for result in run.results], [skip.task for skip in run.skipped if skip.kind == "failed"]


class Failing(embark.Encoder):
    """A model whose forward pass has a bug."""

    def __init__(self, tiny: embark.Encoder) -> None:
        self.tiny = tiny
        self.card = replace(tiny.card, name="test/failing")

    def prepare(self, contents: Sequence[Any], mode: str) -> Any:
        return self.tiny.prepare(contents, mode)

    def embed(self, batch: Sequence[Any]) -> Any:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_a_bad_value_and_a_truncated_listing_cost_their_tasks(hub: FakeHub, tiny: embark.Encoder) -> None:
    judgements = parquet({"query-id": ["q1", "q2"], "corpus-id": ["d1", "d2"], "score": ["1", "much"]})
    tasks = [ranking(hub, "Grades", qrels=judgements), ranking(hub, "Listing", corpus=b"PAR1 is not enough")]
    tasks.append(ranking(hub, "Good"))
    truncated = ranking(hub, "Truncated", queries=parquet({"id": ["q1", "q2"], "text": ["red", "green"]}))
    embark.fetch([truncated], show_progress=False)
    [listing] = (load_settings().home / "hub" / "org__truncated").glob(f"{truncated.source.revision}.json")
    listing.write_bytes(listing.read_bytes()[:50])
    load_listing.cache_clear()  # as in another process
    run = evaluate(tiny, [*tasks, truncated])
    scored, failed = outcome(run)
    assert scored == ["Good", "Truncated"]  # which was listed again
    assert failed == ["Grades", "Listing"]
    assert run.table().rows


def test_a_bug_in_one_model_costs_that_model_and_is_logged(tiny: embark.Encoder, pictures: Pictures) -> None:
    run = evaluate([Failing(tiny), tiny], two_tasks(pictures()))
    assert outcome(run) == (["PagesRetrieval", "PagesZeroShot"], ["PagesRetrieval", "PagesZeroShot"])
    assert {result.model for result in run.results} == {"test/tiny"}
    [log] = (load_settings().home / "logs").iterdir()
    assert run.skipped[0].why == f"RuntimeError: mat1 and mat2 shapes cannot be multiplied (its traceback is in {log})"
    assert log.read_text().count("Traceback (most recent call last)") == 2
    assert "in embed" in log.read_text()


def test_a_run_without_failures_writes_no_log(tiny: embark.Encoder, pictures: Pictures) -> None:
    evaluate(tiny, two_tasks(pictures()))
    assert not (load_settings().home / "logs").exists()


def test_a_bug_in_an_evaluator_costs_the_task(
    tiny: embark.Encoder, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = replace(EVALUATORS["retrieval"], name="bug", evaluate=lambda truth, vectors, params: truth.no_such_field)
    monkeypatch.setattr(EVALUATORS, "own", {**EVALUATORS.own, "bug": bug})
    retrieval, zeroshot = two_tasks(pictures())
    run = evaluate(tiny, [replace(retrieval, evaluator="bug"), zeroshot])
    assert outcome(run) == (["PagesZeroShot"], ["PagesRetrieval"])
    assert "AttributeError: 'Qrels' object has no attribute 'no_such_field'" in run.skipped[0].why


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_costs_that_model(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "hidden_size"')
    command = ["run", "-m", str(folder), "-m", "embark/random", "-t", "PocketFlagZeroShot"]
    ran = subprocess.run(
        [sys.executable, "-m", "embark", *command], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert "PocketFlagZeroShot" in ran.stdout
    assert f"failed: PocketFlagZeroShot for {folder}: " in ran.stderr
    assert "Traceback" not in ran.stderr


def test_nothing_scored_is_an_error(tiny: embark.Encoder, pictures: Pictures) -> None:
    with pytest.raises(NothingScored, match="PagesRetrieval, PagesZeroShot for test/failing: RuntimeError") as raised:
        evaluate(Failing(tiny), two_tasks(pictures()))
    assert [skip.kind for skip in raised.value.run.skipped] == ["failed", "failed"]


def test_an_interrupt_is_not_contained(tiny: embark.Encoder, pictures: Pictures) -> None:
    def interrupt(batch: Any) -> Any:
        raise KeyboardInterrupt

    tiny.embed = interrupt  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        evaluate(tiny, two_tasks(pictures()))


def test_plans_and_fetching_contain_failures_too(
    hub: FakeHub, tiny: embark.Encoder, pictures: Pictures, tmp_path: Path
) -> None:
    bad, good = ranking(hub, "Bad", corpus=b"no table"), ranking(hub, "Good")
    planned = embark.plan([Failing(tiny), tiny], [bad, good], read_data=True)
    assert [plan.model for plan in planned.models] == ["test/tiny"]
    assert {(skip.model, skip.task) for skip in planned.skipped} >= {("test/tiny", "Bad"), ("test/failing", "Good")}
    fetched = embark.fetch([bad, good], show_progress=False)
    assert list(fetched.problems.values()) == [["Bad"]]


def test_ranked_lists_contain_failures_too(tiny: embark.Encoder, pictures: Pictures) -> None:
    retrieval, _ = two_tasks(pictures())
    rankings = embark.exchange.rank([Failing(tiny), tiny], [retrieval], show_progress=False)
    assert next(rankings).model == "test/tiny"
    with pytest.raises(embark.EmbarkError, match=r"ranked\.\nPagesRetrieval for test/failing: RuntimeError"):
        next(rankings)
