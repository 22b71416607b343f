"""What a run says about tasks without a score, items without a vector, reuse, and times (issue 14)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from conftest import POCKET_TASKS
from embark.run import NothingScored, evaluate
from embark.tables import Score
from embark.tasks import TASKS
from folders import two_tasks

Pictures = Callable[..., Path]
TABLE = "file,caption,label\nred.png,no page,red\ngreen.png,a green page,green\nblue.png,a blue page,blue\n"
TOML = """
[[task]]
name = "Pairs"
reader = "paired"
evaluator = "retrieval"
modalities = ["text", "image"]
columns = { text = "caption", image = "file" }
source = { id = "Pages", files = { test = ["metadata.csv"] } }
"""


def spoil(encoder: embark.Encoder, text: str) -> None:
    """From now on, this text gets a zero vector."""
    forward = encoder.embed

    def embed(batch: Any) -> Any:
        vectors = np.array(forward(batch))
        vectors[[("text", text) in parts for parts in batch]] = 0
        return vectors

    encoder.embed = embed  # type: ignore[method-assign]


# ── tasks without a score ────────────────────────────────────────────────────────────────────────────────────────────


def test_skipped_tasks_are_shown_with_the_table(tiny: embark.Encoder, pictures: Pictures) -> None:
    old = two_tasks(pictures("Old"))
    Image.new("RGB", (9, 9)).save(Path(old[0].source.id) / "red.png")
    run = evaluate(tiny, old + two_tasks(pictures("Good")), show_progress=False)
    [note] = run.table().notes[-1:]
    assert note.startswith("failed: OldRetrieval, OldZeroShot for test/tiny: The folder ")
    assert note in str(run)
    assert repr(run).startswith("<Run: 2 scores of 1 model on 4 tasks; failed: OldRetrieval, OldZeroShot for test/tiny")
    assert run._repr_html_().count("failed: OldRetrieval") == 1


def test_no_result_at_all_is_raised(tiny: embark.Encoder, pictures: Pictures) -> None:
    old = two_tasks(pictures("Old"))
    Image.new("RGB", (9, 9)).save(Path(old[0].source.id) / "red.png")
    with pytest.raises(NothingScored, match="failed: OldRetrieval, OldZeroShot for test/tiny: The folder "):
        evaluate(tiny, old, show_progress=False)


def test_what_is_not_applicable_is_shown_too(reader_of_colours: embark.Encoder, pictures: Pictures) -> None:
    run = evaluate(reader_of_colours, two_tasks(pictures()), show_progress=False)
    note = "not applicable: PagesRetrieval, PagesZeroShot for test/reader: the model takes no image"
    assert str(run).splitlines()[-1] == note
    assert note in repr(run)


# ── items without a vector ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("turn", [1, -1])
def test_one_zero_vector_costs_the_tasks_that_need_it_in_any_order(
    tiny: embark.Encoder, pictures: Pictures, turn: int
) -> None:
    spoil(tiny, "no page")
    bad = [row for number in range(4) for row in two_tasks(pictures(f"Bad{number}", TABLE))[:1]]
    good = two_tasks(pictures("Good", TABLE.replace("no page", "a red page").replace("page", "sheet")))
    run = evaluate(tiny, (bad + good)[::turn], show_progress=False, batch_size=2)
    assert {result.task for result in run.results} == {"GoodRetrieval", "GoodZeroShot"}
    assert {skip.why for skip in run.skipped} == {
        f"test/tiny returned zero vectors for {task.name} query 'no page'." for task in bad
    }


@pytest.mark.parametrize("turn", [1, -1])
def test_an_item_that_a_model_fails_on_costs_the_tasks_that_need_it_in_any_order(
    tiny: embark.Encoder, pictures: Pictures, turn: int
) -> None:
    forward = tiny.embed

    def embed(batch: Any) -> Any:
        if any(("text", "no page") in parts for parts in batch):
            raise RuntimeError("a bug")
        return forward(batch)

    tiny.embed = embed  # type: ignore[method-assign]
    bad = [row for number in range(4) for row in two_tasks(pictures(f"Bad{number}", TABLE))[:1]]
    good = two_tasks(pictures("Good", TABLE.replace("no page", "a red page").replace("page", "sheet")))
    run = evaluate(tiny, (bad + good)[::turn], show_progress=False, batch_size=1)
    assert {result.task for result in run.results} == {"GoodRetrieval", "GoodZeroShot"}


def test_an_item_is_named_by_its_file(tiny: embark.Encoder, pictures: Pictures, tmp_path: Path) -> None:
    pictures()
    (tmp_path / "tasks.toml").write_text(TOML)
    forward = tiny.embed

    def embed(batch: Any) -> Any:
        return np.array(forward(batch)) * [[not (p[0][0] == "image" and p[0][1].getpixel((0, 0))[2])] for p in batch]

    tiny.embed = embed  # type: ignore[method-assign]
    with pytest.raises(NothingScored, match=r"zero vectors for Pairs document 'blue\.png'"):
        evaluate(tiny, embark.load_tasks(tmp_path / "tasks.toml"), show_progress=False)


# ── reuse and times ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_reuse_is_told_of_what_was_planned_together(tiny: embark.Encoder, pictures: Pictures) -> None:
    retrieval, zeroshot = two_tasks(pictures())
    whole = evaluate(tiny, [retrieval, zeroshot], show_progress=False)
    told = "The tasks use 12 items, 9 of them distinct: each is embedded once and serves 1.33 times."
    assert whole.summary()[-1] == told
    part = evaluate(tiny, zeroshot, show_progress=False)  # its pictures were counted for the other task
    assert (part.items, part.unique, part.reuse, part.exact) == (6, 6, 1.0, True)
    again = evaluate(tiny, [retrieval, zeroshot], show_progress=False)
    assert (again.unique, again.exact) == (12, False)
    assert not any("distinct" in sentence for sentence in again.summary())


def test_reuse_counts_scored_tasks_alone(tiny: embark.Encoder, pictures: Pictures) -> None:
    spoil(tiny, "no page")
    run = evaluate(tiny, two_tasks(pictures("Pages", TABLE)), show_progress=False)
    assert [result.task for result in run.results] == ["PagesZeroShot"]
    assert (run.items, run.unique) == (6, 6)


def test_scoring_again_keeps_the_times_of_embedding(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks = two_tasks(pictures())
    first = evaluate(tiny, tasks, show_progress=False)
    again = evaluate(tiny, tasks, rescore=True, show_progress=False)
    assert (again.computed, again.embedded) == (2, 0)
    times = [record.timings["embed"] for result in first.results for record in result.records]
    assert [record.timings["embed"] for result in again.results for record in result.records] == times
    assert min(times) > 0
    assert [result.records[0].counts["embedded"] for result in again.results] == [6, 3]


# ── samples ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_scores_a_marked_sample_apart_from_the_full_score(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks = two_tasks(pictures())
    full = evaluate(tiny, tasks, show_progress=False)
    run = evaluate(tiny, tasks, limit=2, show_progress=False)
    assert [result.protocol for result in run.results] == ["limit-2", "limit-2"]
    assert [len(result.outcomes()) for result in run.results] == [2, 2]
    for result, whole in zip(run.results, full.results, strict=True):
        assert result.path != whole.path
        assert result.records[0].fingerprint != whole.records[0].fingerprint
        assert result.records[0].counts["sampled from"] == 3
        assert result.interval[0] < result.score
    assert "(a) a sample (limit 2), no full score" in str(run)
    assert evaluate(tiny, tasks, show_progress=False).results == full.results  # the sample replaced nothing
    assert evaluate(tiny, tasks, limit=2, show_progress=False).computed == 0


def test_samples_are_on_no_board(tiny: embark.Encoder, pictures: Pictures) -> None:
    evaluate(tiny, [*two_tasks(pictures()), "PocketFlagZeroShot"], limit=2, show_progress=False)
    assert embark.load_results(include="own").results == ()
    with pytest.raises(embark.EmbarkError):
        embark.leaderboard(tasks="PagesRetrieval")
    with pytest.raises(embark.EmbarkError, match="There are no results of yours"):
        embark.exchange.export_mteb("out")


@pytest.mark.slow
def test_every_kind_of_task_has_samples(tmp_path: Path, pocket_vectors: Path) -> None:
    """A sample of the same vectors, always the same and part of a larger one."""
    home = shutil.copytree(pocket_vectors, tmp_path / "home")
    settings = embark.load_settings(home, tmp_path / "results")
    tasks = [TASKS[name] for name in POCKET_TASKS]
    limit = 7
    run = evaluate("embark/random", tasks, limit=limit, settings=settings, show_progress=False)
    larger = evaluate("embark/random", tasks, limit=limit + 20, settings=settings, show_progress=False)
    assert {task.evaluator for task in tasks} >= {"retrieval", "zeroshot", "probe", "pairs", "robustness"}
    assert (run.embedded, run.skipped) == (0, [])
    for result, other in zip(run.results, larger.results, strict=True):
        ids, more = (set(r.outcomes()["id"].to_pylist()) for r in (result, other))
        assert len(ids) <= limit
        assert ids <= more
        assert result.records[0].counts["sampled from"] == other.records[0].counts["sampled from"] > limit


def test_a_limit_beyond_the_data_is_no_sample(tiny: embark.Encoder, pictures: Pictures) -> None:
    run = evaluate(tiny, two_tasks(pictures()), limit=1000, show_progress=False)
    assert "all items (limit 1,000), kept apart from full scores" in str(run)
    assert all(result.sampled for result in run.results)
    assert not [note for note in run.notes if note.startswith("Own data")]  # a sample tells no size


def test_what_a_small_sample_cannot_tell_a_larger_may(tiny: embark.Encoder, elsewhere: Path) -> None:
    with pytest.raises(NothingScored, match=r"needs at least 2 pairs; there are 1\. A larger sample"):
        evaluate(tiny, "PocketNameSTS", limit=1, show_progress=False)


@pytest.mark.slow
def test_one_log_has_every_skipped_task_once(elsewhere: Path) -> None:
    words = [sys.executable, "-m", "embark", "run", "-m", "embark/random", "-t", "PocketFlagZeroShot"]
    words += ["-t", "PocketNameSTS", "--limit", "1"]
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert ran.stdout.count("failed: PocketNameSTS") == 1
    apart = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert apart.stdout.count("failed: PocketNameSTS") == apart.stderr.count("failed: PocketNameSTS") == 1


def test_the_mean_of_small_samples_is_as_uncertain_as_they_are(tmp_path: Path, pocket_vectors: Path) -> None:
    """Of one item there is no spread: its task would add nothing to the interval of the mean."""
    settings = embark.load_settings(shutil.copytree(pocket_vectors, tmp_path / "home"), tmp_path / "results")
    tasks = ["PocketFlagZeroShot", "PocketOmni", "PocketClockReading"]
    run = evaluate("embark/random", tasks, limit=1, settings=settings, show_progress=False)
    *scores, mean = [row.cells[-1] for row in run.table().rows if isinstance(row.cells[-1], Score)]
    assert min(score.high - score.low for score in scores) > 0.5
    assert mean.high - mean.low > 0.4
    single = evaluate("embark/random", "PocketNameSTS", limit=20, settings=settings, show_progress=False)
    score, mean = [row.cells[-1] for row in single.table().rows if isinstance(row.cells[-1], Score)]
    assert (mean.low, mean.high) == pytest.approx((score.low, score.high))


def test_a_sample_has_at_least_one_item(tiny: embark.Encoder, pictures: Pictures) -> None:
    with pytest.raises(embark.EmbarkError, match="A sample has at least 1 item, and whole ones, not 0"):
        evaluate(tiny, two_tasks(pictures()), limit=0)
    with pytest.raises(embark.EmbarkError, match=r"must be a whole number, not 2\.5"):
        evaluate(tiny, "PocketNameSTS", limit=2.5)  # type: ignore[arg-type]


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_scores_are_printed_as_they_come(
    tiny: embark.Encoder,
    pictures: Pictures,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("embark.run.model_stream.SCORES_AFTER_SECONDS", 0.0)
    evaluate(["embark/random", tiny], two_tasks(pictures()))
    out, err = capsys.readouterr()
    lines = [re.sub(r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d ", "at this time: ", line) for line in err.splitlines()]
    assert out == ""
    assert len(lines) == 4
    assert lines[2].startswith("at this time: model 2 of 2, test/tiny, task 1 of 2: Pages")
    assert lines[3].startswith("at this time: model 2 of 2, test/tiny, task 2 of 2: Pages")
    assert {line.split(": ")[2].split()[0] for line in lines[2:]} == {"PagesRetrieval", "PagesZeroShot"}  # in any order


def test_a_short_run_prints_no_scores(
    tiny: embark.Encoder, pictures: Pictures, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(tiny, two_tasks(pictures()))
    assert capsys.readouterr() == ("", "")
