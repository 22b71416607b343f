"""Whole evaluations of a small folder of pictures: what is computed, what is not, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import embark
from embark.catalogue import UnknownName
from embark.protocol import vector_space
from embark.results import Results
from embark.run import Run, Skipped, evaluate
from embark.run.models import choose_models
from embark.run.plans import plan
from embark.settings import load_settings
from embark.store import Store
from embark.tasks import BENCHMARKS, TASKS, choose_tasks
from embark.types import Array, Benchmark, EmbarkError
from folders import two_tasks

TABLE = "file,caption,label\nred.png,no page,red\ngreen.png,a green page,green\nblue.png,a blue page,blue\n"
Pictures = Callable[..., Path]


def counted(encoder: embark.Encoder) -> list[int]:
    """The sizes of the batches that reach a model from now on."""
    forward, batches = encoder.embed, list[int]()

    def embed(batch: Any) -> Any:
        batches.append(len(batch))
        return forward(batch)

    encoder.embed = embed  # type: ignore[method-assign]
    return batches


def scores(run: Run) -> dict[str, float]:
    return {result.task: result.score for result in run.results}


def breakage(folder: Path) -> None:
    """The blue picture becomes unreadable."""
    (folder / "blue.png").write_bytes((folder / "blue.png").read_bytes()[:40])


# ── one model ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_and_two_functions_make_scores(tiny: embark.Encoder, pictures: Pictures) -> None:
    batches = counted(tiny)
    run = evaluate(tiny, two_tasks(pictures()))
    assert scores(run) == {"PagesRetrieval": 1.0, "PagesZeroShot": 1.0}
    assert (run.computed, run.skipped) == (2, [])
    assert run.embedded == 3 + 3 + 3  # pictures, captions, prompts
    assert sum(batches) <= 9 + 4 + 3  # up to four texts and pictures are embedded twice, to see whether order holds
    assert (run.items, run.unique) == (12, 9)  # both tasks use the pictures
    assert run.reuse == pytest.approx(12 / 9)
    assert run.seconds > 0


def test_scores_vectors_and_outcomes_are_kept(tiny: embark.Encoder, pictures: Pictures) -> None:
    run = evaluate(tiny, two_tasks(pictures()))
    kept = load_settings()
    assert list(Results(kept.results).all()) == run.results
    assert len(Store(kept.store).space(vector_space(tiny.card))) == 9
    retrieval, zeroshot = run.results
    assert retrieval.outcomes()["id"].to_pylist() == ["caption-00000", "caption-00001", "caption-00002"]
    assert retrieval.outcomes()["top"].to_pylist() == ["red.png", "green.png", "blue.png"]  # by id, not by position
    assert zeroshot.outcomes().column_names[:4] == ["split", "subset", "id", "accuracy"]
    assert zeroshot.outcomes()["id"].to_pylist() == ["red.png", "green.png", "blue.png"]
    [record] = zeroshot.records
    assert record.interval[0] < record.score == record.interval[1]
    assert record.encoder == f"{vector_space(tiny.card)}-cosine"
    assert (record.counts["items"], record.counts["embedded"]) == (
        6,
        3,
    )  # the pictures were embedded for the other task


def test_the_second_run_computes_and_embeds_nothing(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks = two_tasks(pictures())
    first, batches = evaluate(tiny, tasks), counted(tiny)
    second = evaluate(tiny, tasks)
    assert (second.computed, second.embedded, batches) == (0, 0, [])
    assert second.results == first.results


def test_rescoring_uses_the_stored_vectors(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks = two_tasks(pictures())
    first, batches = evaluate(tiny, tasks), counted(tiny)
    again = evaluate(tiny, tasks, rescore=True)
    assert (again.computed, again.embedded, batches) == (2, 0, [])
    assert scores(again) == scores(first)
    assert again.results[0].date > first.results[0].date


def test_a_lost_result_is_scored_again_without_the_model(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks = two_tasks(pictures())
    path = evaluate(tiny, tasks).results[0].path
    assert path is not None
    path.unlink()
    again = evaluate(tiny, tasks)
    assert (again.computed, again.embedded) == (1, 0)


def test_a_changed_table_is_another_protocol(tiny: embark.Encoder, pictures: Pictures) -> None:
    folder = pictures()
    before = evaluate(tiny, two_tasks(folder))
    table = folder / "metadata.csv"
    table.write_text(table.read_text().replace("red.png,a red page", "red.png,a blue page"))
    after = evaluate(tiny, two_tasks(folder))
    assert after.computed == 2
    assert after.embedded == 0  # the words were all known
    assert after.results[0].records[0].fingerprint != before.results[0].records[0].fingerprint
    table.write_text(table.read_text().replace("a green page", "green"))
    assert evaluate(tiny, two_tasks(folder)).embedded == 1


def test_a_changed_model_is_embedded_again(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks = two_tasks(pictures())
    evaluate(tiny, tasks)
    tiny.card = replace(tiny.card, options={**tiny.card.options, "resolution": 8})
    again = evaluate(tiny, tasks)
    assert (again.computed, again.embedded) == (2, 9)


def test_batch_size_and_folders_are_options(tiny: embark.Encoder, pictures: Pictures, tmp_path: Path) -> None:
    batches = counted(tiny)
    options = load_settings(tmp_path / "h", tmp_path / "r", 1)
    evaluate(tiny, two_tasks(pictures()), settings=options, batch_size=2)
    assert max(batches) == 2
    assert (tmp_path / "h" / "store").is_dir()
    assert (tmp_path / "r" / "test__tiny" / "1" / "PagesZeroShot.json").is_file()
    assert not load_settings().results.exists()


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_a_table_and_a_frame(tiny: embark.Encoder, pictures: Pictures) -> None:
    run = evaluate(tiny, two_tasks(pictures()))
    lines = str(run.table()).splitlines()
    assert lines[0].split() == ["task", "metric", "chance", "tiny"]
    assert lines[2].split()[:3] == ["PagesRetrieval", "hit_rate_at_1", "100.0"]
    frame = run.to_frame()
    assert frame["task"].tolist() == ["PagesRetrieval", "PagesZeroShot"]
    assert frame["score"].tolist() == [1.0, 1.0]
    assert {"model", "revision", "split", "subset", "low", "high", "fingerprint", "items"} <= set(frame.columns)


def test_several_models_are_columns_in_their_order(tiny: embark.Encoder, pictures: Pictures) -> None:
    run = evaluate(["embark/random", tiny], two_tasks(pictures()))
    assert [result.model for result in run.results] == ["embark/random"] * 2 + ["test/tiny"] * 2
    assert run.table().columns[3:] == ("random", "tiny")
    assert run.embedded == 18


# ── what cannot be done ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_without_a_modality_is_not_applicable_and_embeds_nothing(
    reader_of_colours: embark.Encoder, pictures: Pictures
) -> None:
    batches = counted(reader_of_colours)
    run = evaluate(reader_of_colours, two_tasks(pictures()))
    why = "the model takes no image"
    assert run.skipped == [
        Skipped("test/reader", "PagesRetrieval", "not applicable", why),
        Skipped("test/reader", "PagesZeroShot", "not applicable", why),
    ]
    assert (run.results, run.embedded, batches) == ([], 0, [])
    assert run.reuse == 1.0


def test_a_model_that_cannot_fuse_is_not_applicable_to_mixed_items(tiny: embark.Encoder, pictures: Pictures) -> None:
    tiny.card = replace(tiny.card, fusion=None)
    first, second = two_tasks(pictures())
    run = evaluate(tiny, [replace(first, mixed=True), second])
    assert [(s.task, s.kind) for s in run.skipped] == [("PagesRetrieval", "not applicable")]
    assert list(scores(run)) == ["PagesZeroShot"]


def test_an_evaluator_that_is_still_to_come_is_not_available(tiny: embark.Encoder, pictures: Pictures) -> None:
    first, second = two_tasks(pictures())
    run = evaluate(tiny, [replace(first, evaluator="divination"), second])
    assert [(s.task, s.kind) for s in run.skipped] == [("PagesRetrieval", "not available")]
    assert list(scores(run)) == ["PagesZeroShot"]


def test_an_unreadable_picture_fails_its_tasks_by_name_and_no_others(tiny: embark.Encoder, pictures: Pictures) -> None:
    bad, good = pictures("Bad"), pictures("Good")
    breakage(bad)
    run = evaluate(tiny, two_tasks(bad) + two_tasks(good))
    assert [(s.task, s.kind) for s in run.skipped] == [("BadRetrieval", "failed"), ("BadZeroShot", "failed")]
    first, rest = run.skipped[0].why.split(": image of ")
    assert first == "1 unreadable items: document 'blue.png'"
    assert "bytes does not decode: " in rest
    assert ". Repair them, or set unreadable=" in rest
    assert scores(run) == {"GoodRetrieval": 1.0, "GoodZeroShot": 1.0}
    assert not (load_settings().results / "test__tiny" / "1" / "BadRetrieval.json").exists()


def test_an_unreadable_picture_can_be_left_out_with_a_warning(tiny: embark.Encoder, pictures: Pictures) -> None:
    folder = pictures()
    breakage(folder)
    tasks = [replace(task, unreadable="skip") for task in two_tasks(folder)]
    run = evaluate(tiny, tasks)
    said = "left out 1 unreadable items: "
    assert [result.warnings for result in run.results] == [
        (f"{said}document 'blue.png'",),
        (f"{said}item 'blue.png'",),
    ]
    retrieval, zeroshot = run.results
    assert retrieval.records[0].counts["queries left out"] == 1
    assert zeroshot.outcomes()["id"].to_pylist() == ["red.png", "green.png"]
    assert f"{said}document 'blue.png'" in str(run.table())
    assert evaluate(tiny, tasks).computed == 0


def test_a_folder_that_changed_under_a_task_fails_that_task(tiny: embark.Encoder, pictures: Pictures) -> None:
    old, good = pictures("Old"), pictures("Good")
    tasks = two_tasks(old) + two_tasks(good)
    Image.new("RGB", (9, 9)).save(old / "red.png")
    run = evaluate(tiny, tasks)
    assert {s.task for s in run.skipped} == {"OldRetrieval", "OldZeroShot"}
    assert "has changed since" in run.skipped[0].why
    assert len(run.results) == 2


def test_a_model_that_fails_is_an_error_and_what_it_did_is_kept(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks, forward = two_tasks(pictures()), tiny.embed

    def embed(batch: Any) -> Array:
        vectors = np.asarray(forward(batch))
        return vectors * np.nan if batch[0][0][0] == "image" else vectors

    tiny.embed = embed  # type: ignore[method-assign]
    with pytest.raises(
        EmbarkError, match=r"test/tiny returned NaN or infinite vectors for PagesRetrieval document 'red\.png'"
    ):
        evaluate(tiny, tasks)
    tiny.embed = forward  # type: ignore[method-assign]
    assert evaluate(tiny, tasks).embedded == 3


def test_a_model_that_fails_costs_only_the_tasks_that_need_what_it_cannot_do(
    tiny: embark.Encoder, reader_of_colours: embark.Encoder, pictures: Pictures
) -> None:
    good, bad = two_tasks(pictures("Good")), two_tasks(pictures("Bad", TABLE))
    forward = tiny.embed

    def embed(batch: Any) -> Array:
        vectors = np.array(forward(batch))
        return vectors * np.nan if ("text", "no page") in batch[0] else vectors

    tiny.embed = embed  # type: ignore[method-assign]
    evaluate(tiny, good)  # so that its vectors are there
    run = evaluate([tiny, reader_of_colours], good + bad, rescore=True, batch_size=1)
    assert [(s.task, s.kind) for s in run.skipped if s.model == "test/tiny"] == [("BadRetrieval", "failed")]
    assert run.skipped[0].why.startswith("test/tiny returned NaN or infinite vectors for BadRetrieval query")
    assert [result.task for result in run.results] == ["GoodRetrieval", "GoodZeroShot", "BadZeroShot"]
    assert {s.kind for s in run.skipped if s.model == "test/reader"} == {"not applicable"}  # it had its turn


# ── choosing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tasks_are_names_patterns_rows_benchmarks_or_lists_of_them() -> None:
    flags, clock = TASKS["PocketFlagZeroShot"], TASKS["PocketClockReading"]
    assert choose_tasks("PocketFlagZeroShot") == [flags]
    assert {task.name for task in choose_tasks("PocketClock*")} >= {"PocketClockReading", "PocketClockArithmetic"}
    assert choose_tasks(flags) == [flags]
    assert choose_tasks([clock, "PocketFlagZ*", clock]) == [clock, flags]
    assert choose_tasks(BENCHMARKS["Pocket(lite)"]) == choose_tasks("Pocket(lite)")
    assert choose_tasks(Benchmark("Mine", "Mine", ("PocketFlagZ*",))) == [flags]
    assert choose_tasks(None) == choose_tasks("Pocket")
    with pytest.raises(EmbarkError, match="No task was chosen"):
        choose_tasks([])


def test_models_are_names_encoders_or_lists_of_them(tiny: embark.Encoder) -> None:
    assert choose_models(tiny) == [tiny]
    assert [encoder.card.name for encoder in choose_models([tiny, "embark/random"])] == ["test/tiny", "embark/random"]
    assert choose_models("embark/random")[0].card.name == "embark/random"


@pytest.mark.parametrize(
    ("model", "task", "near"),
    [
        ("embark/pockt", "PocketFlagZeroShot", "embark/pocket"),
        ("embark/random", "PocketFlagZeroshots", "PocketFlagZeroShot"),
    ],
)
def test_unknown_names_come_with_suggestions(model: str, task: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"Did you mean .*{near}"):
        evaluate(model, task)


def test_an_unknown_benchmark_comes_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"no benchmark named 'Poket'\. Did you mean Pocket"):
        embark.get_benchmark("Poket")


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_preview_prices_what_is_missing_and_stores_nothing(tiny: embark.Encoder, pictures: Pictures) -> None:
    tasks = two_tasks(pictures())
    report = plan(tiny, tasks)
    [before], skipped = report.models, report.skipped
    assert skipped == ()
    assert [count.missing for count in before.plan.counts] == [6, 3]
    assert before.bytes == [6 * (3 * 4 + 44), 3 * (3 * 4 + 44)]
    assert min(before.seconds) > 0
    assert not load_settings().store.exists()
    evaluate(tiny, tasks)
    [after] = plan(tiny, tasks).models
    assert (after.plan.total.missing, after.bytes, after.seconds) == (0, [0, 0], [0.0, 0.0])


def test_a_preview_says_what_cannot_be_done(reader_of_colours: embark.Encoder, pictures: Pictures) -> None:
    report = plan(reader_of_colours, two_tasks(pictures()))
    [made], skipped = report.models, report.skipped
    assert made.plan.needs == ()
    assert [s.kind for s in skipped] == ["not applicable"] * 2


def test_counts_of_shared_items_are_a_bound_where_scores_come_from_several_runs(
    tiny: embark.Encoder, pictures: Pictures
) -> None:
    first, second = two_tasks(pictures())
    evaluate(tiny, first)
    assert evaluate(tiny, second).embedded == 3
    run = evaluate(tiny, [first, second])
    assert (run.items, run.unique, run.exact) == (12, 12, False)
    again = evaluate(tiny, [first, second], rescore=True)
    assert (again.items, again.unique, again.exact) == (12, 9, True)


def test_a_bare_function_is_no_model() -> None:
    with pytest.raises(EmbarkError, match=r"len.* is no model: give a name or an encoder \(embark.encoder wraps"):
        embark.evaluate(len)  # type: ignore[arg-type]


def test_another_similarity_is_another_score_from_the_same_vectors(pictures: Pictures) -> None:
    def words(texts: list[str]) -> Array:
        return np.array([[len(text), 1.0] for text in texts], np.float32)

    def pixels(images: list[Image.Image]) -> Array:
        return np.array([[1.0, 1.0 + np.asarray(image)[..., 2].mean()] for image in images], np.float32)

    rows = two_tasks(pictures())
    first, second = (
        evaluate(embark.encoder(text=words, image=pixels, name="test/m", revision="1", similarity=kind), rows)
        for kind in ("cosine", "dot")
    )
    assert (first.computed, second.computed) == (len(rows), len(rows))
    assert (first.embedded > 0, second.embedded) == (True, 0)
