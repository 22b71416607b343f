"""Paired comparison: the statistics on numbers that are known, then two real models end to end."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from typer.testing import CliRunner

import embark
from embark.cli import app
from embark.evaluators.clustering import contingency, from_contingency
from embark.results import Record, Results, TaskResult, outcome_columns
from embark.settings import load_settings
from embark.stats.compare import Comparison, Flips, compare, compare_results, flipped_items
from embark.stats.intervals import holm
from embark.stats.outcomes import parts_of
from embark.stats.paired import sign_flip
from embark.stats.shared import ItemNumbers, interval
from embark.tasks import TASKS
from embark.types import Array, EmbarkError, ModelCard, Task
from folders import two_tasks

METRIC = "hit_rate_at_1"
TASK = dataclasses.replace(TASKS["PocketOtherSkinTone"], metric=METRIC)
OTHER = dataclasses.replace(TASK, name="Other", category="Other things")
Outcomes = dict[str, Array]

STATISTIC = {"nmi": "nmi", "cosine_spearman": "spearman", "cosine_pearson": "pearson"}  # by metric


class Shelf:
    """Makes stored results from outcomes."""

    def __init__(self, root: Path) -> None:
        self.results = Results(root)

    def put(
        self,
        model: str,
        parts: dict[str, Outcomes] | Outcomes | Array,
        task: Task = TASK,
        protocol: str = "p",
        ids: Sequence[str] | None = None,
        score: float | None = None,
    ) -> TaskResult:
        if isinstance(parts, np.ndarray):
            parts = {METRIC: parts}
        if not isinstance(next(iter(parts.values())), dict):
            parts = {"default": parts}  # type: ignore[dict-item]
        records, columns = [], []
        for subset, outcomes in parts.items():
            values = dict(outcomes)
            count = len(next(iter(values.values())))
            names = list(ids or map(str, range(count)))
            mean = float(values[METRIC].mean()) if METRIC in values else score or 0.0
            records.append(
                Record(
                    model,
                    "1",
                    task.name,
                    "test",
                    subset,
                    ("eng",),
                    task.metric,
                    mean,
                    (0, 1),
                    {},
                    protocol + subset,
                    "e",
                    statistic=STATISTIC.get(task.metric, "mean"),
                )
            )
            columns.append(outcome_columns("test", subset, names, values))
        mean = float(np.mean([record.score for record in records]))
        result = TaskResult(model, "1", task.name, "r", tuple(records), mean, (0, 1), 0.0)
        return self.results.save(result, ModelCard(model, "1", "none", ("text",)), columns)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf")


def coins(seed: int, count: int = 200, chance: float = 0.5) -> Array:
    return (np.random.default_rng(seed).random(count) < chance).astype(float)


# ── the statistics ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.slow
def test_p_values_are_uniform_where_nothing_differs() -> None:
    rng = np.random.default_rng(0)
    p = np.sort([sign_flip(rng.standard_normal(40), seed=seed) for seed in range(400)])
    assert np.abs(p - (np.arange(400) + 0.5) / 400).max() < 0.07  # Kolmogorov–Smirnov, 1.36 / √400


def test_p_values_do_not_reject_too_often_on_right_or_wrong() -> None:
    p = np.array([sign_flip(coins(2 * seed) - coins(2 * seed + 1), seed=seed) for seed in range(300)])
    assert (p < 0.05).mean() < 0.08
    assert (p < 0.5).mean() == pytest.approx(0.5, abs=0.1)


def test_a_clear_effect_has_a_small_p_value_and_no_effect_has_none() -> None:
    assert sign_flip(coins(0, chance=0.2)) < 0.001
    assert sign_flip(np.zeros(50)) == 1
    assert sign_flip(np.array([1.0, 1.0, 1.0])) == pytest.approx(0.25, abs=0.02)  # exactly 2 of 8 sign patterns


def test_grouping_sizes_leaves_the_p_value_as_it_is() -> None:
    values = np.random.default_rng(3).standard_normal(5_000) + 0.03
    signs = np.random.default_rng(4).choice([-1.0, 1.0], size=(2_000, len(values)))
    slow = (np.abs(signs @ np.abs(values)) >= abs(values.sum())).mean()
    assert sign_flip(values) == pytest.approx(slow, abs=0.03)


@pytest.mark.slow
def test_the_interval_covers_the_true_difference(shelf: Shelf) -> None:
    inside = 0
    for seed in range(100):
        a = shelf.put("x/a", coins(2 * seed, 300, 0.6))
        b = shelf.put("x/b", coins(2 * seed + 1, 300, 0.5))
        pair = compare_results([a], [b], [TASK]).pairs[0]
        inside += pair.low <= 0.1 <= pair.high
    assert 88 <= inside <= 100


def test_the_same_item_in_several_subsets_counts_once(shelf: Shelf) -> None:
    a, b = coins(0), coins(1)
    thrice = [shelf.put(n, {f"s{i}": {METRIC: values} for i in range(3)}) for n, values in (("x/a", a), ("x/b", b))]
    once = [shelf.put(n, values, OTHER) for n, values in (("x/a", a), ("x/b", b))]
    three, one = compare_results([thrice[0], once[0]], [thrice[1], once[1]], [TASK, OTHER]).pairs
    assert three.difference == pytest.approx(one.difference)
    assert three.p == pytest.approx(one.p, abs=0.02)
    assert three.high - three.low == pytest.approx(one.high - one.low, rel=0.1)
    assert three.items == one.items == 200


@pytest.mark.parametrize("metric", ["cosine_spearman", "cosine_pearson", "nmi"])
@pytest.mark.parametrize("sign", [1, -1])
def test_statistics_that_are_no_means(shelf: Shelf, metric: str, sign: int) -> None:
    rng, task = np.random.default_rng(0), dataclasses.replace(TASK, metric=metric)
    label = rng.permutation(np.repeat(np.arange(10), 30))

    def put(name: str, noise: float) -> TaskResult:
        if metric == "nmi":
            cluster = np.where(rng.random(300) < noise / 10, rng.integers(0, 10, 300), label)
            score = from_contingency(contingency(label, cluster)[0])["nmi"]
            return shelf.put(name, {"label": label, "cluster_run1": cluster}, task, score=float(score))
        noisy = label + rng.normal(0, noise, 300)
        columns = {"gold": label.astype(float), "similarity": noisy}
        columns |= {f"{side}_rank": rankdata(values) for side, values in columns.items()}
        pair = ("gold", "similarity") if metric == "cosine_pearson" else ("gold_rank", "similarity_rank")
        return shelf.put(name, columns, task, score=float(np.corrcoef(*(columns[side] for side in pair))[0, 1]))

    good, bad = put("x/good", 1), put("x/bad", 6)
    pair = compare_results(*(([good], [bad]) if sign > 0 else ([bad], [good])), [task]).pairs[0]
    assert pair.verdict == ("win" if sign > 0 else "loss")
    assert pair.low <= pair.difference <= pair.high
    assert pair.low * pair.high > 0
    if sign < 0:
        return  # equals are the same either way round
    verdicts = [compare_results([put("x/a", 1)], [put("x/b", 1)], [task]).pairs[0].verdict for _ in range(40)]
    assert verdicts.count("tie") >= 32  # 38 are expected; NMI of a few hundred items is known to be a little bold


# ── the comparison ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_b_against_a_is_the_mirror_image(shelf: Shelf) -> None:
    a = [shelf.put("x/a", coins(0, chance=0.7)), shelf.put("x/a", coins(1), OTHER)]
    b = [shelf.put("x/b", coins(2, chance=0.4)), shelf.put("x/b", coins(3), OTHER)]
    there, back = compare_results(a, b, [TASK, OTHER]), compare_results(b, a, [TASK, OTHER])
    for one, other in zip(there.pairs, back.pairs, strict=True):
        assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
        assert (one.p, one.holm) == (other.p, other.holm)
        assert {one.verdict, other.verdict} in ({"win", "loss"}, {"tie"})
    assert there.total.wins == back.total.losses == 1
    assert there.total.difference == pytest.approx(-back.total.difference)
    assert list(there.categories) == [TASK.category, OTHER.category]
    assert compare_results(a, b, [TASK, OTHER]) == there  # nothing is left to chance


def test_models_that_agree_on_every_item_are_tied(shelf: Shelf) -> None:
    pair = compare_results([shelf.put("x/a", coins(0))], [shelf.put("x/b", coins(0))], [TASK]).pairs[0]
    assert (pair.difference, pair.p, pair.verdict) == (0, 1, "tie")
    assert pair.low == -pair.high < 0


def test_the_order_of_rows_does_not_matter(shelf: Shelf) -> None:
    a, b, order = coins(0), coins(1), np.random.default_rng(0).permutation(200)
    plain = compare_results([shelf.put("x/a", a)], [shelf.put("x/b", b)], [TASK])
    turned = shelf.put("x/b", b[order], ids=[str(i) for i in order])
    assert compare_results([shelf.put("x/a", a)], [turned], [TASK]) == plain


def test_what_cannot_be_compared_is_listed_with_its_reason(shelf: Shelf) -> None:
    a = shelf.put("x/a", coins(0))

    def why(a: list[TaskResult], b: list[TaskResult]) -> str:
        found = compare_results(a, b, [TASK, OTHER])
        assert not found.pairs
        assert list(found.refused) == [TASK.name]
        return found.refused[TASK.name]

    assert "other protocols" in why([a], [shelf.put("x/b", coins(1), protocol="q")])
    assert why([a], []) == "only x/a has a score"
    assert "not on disk" in why([a], [dataclasses.replace(a, path=None)])
    assert "other items" in why([a], [shelf.put("x/b", coins(1, 150))])
    nothing: dict[str, Any] = {"seen": np.zeros(200)}
    assert "no outcome" in why([shelf.put("x/c", nothing)], [shelf.put("x/b", nothing)])
    gone = shelf.put("x/b", coins(1))
    assert gone.path is not None
    gone.path.with_suffix(".parquet").unlink()
    assert "not on disk" in why([a], [gone])


def test_flips_are_the_items_that_one_alone_gets_right(shelf: Shelf) -> None:
    a, b = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0])
    assert flipped_items([shelf.put("x/a", a)], [shelf.put("x/b", b)], TASK) == (["1"], ["2"])
    ranked = [
        shelf.put(name, {METRIC: np.array(values), "rank": np.array(ranks)})
        for name, values, ranks in (("x/a", [1.0, 0.6], [1, 2]), ("x/b", [0.5, 1.0], [3, 1]))
    ]
    assert flipped_items(ranked[:1], ranked[1:], TASK) == (["0"], ["1"])
    halves = [shelf.put(name, np.array([0.5, 0.2])) for name in ("x/a", "x/b")]
    with pytest.raises(EmbarkError, match="right or wrong"):
        flipped_items(halves[:1], halves[1:], TASK)


# ── totals ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def several_tasks(shelf: Shelf) -> Comparison:
    """Two models on four tasks over the same 60 items: what favours one on an item does so on every task."""
    rng = np.random.default_rng(1)
    tasks = [dataclasses.replace(TASK, name=f"T{number}", category=f"C{number % 2}") for number in range(4)]
    favour = rng.normal(0.2, 0.15, 60)
    results: tuple[list[TaskResult], list[TaskResult]] = ([], [])
    for task in tasks:
        hard = rng.normal(0.5, 0.1, 60)
        for side, sign in enumerate((1, -1)):
            values = np.clip(hard + sign * favour / 2 + rng.normal(0, 0.05, 60), 0, 1)
            results[side].append(shelf.put(f"x/{'ab'[side]}", values, task))
    return compare_results(*results, tasks)


def test_a_difference_of_totals_is_shown_wherever_the_tasks_are(shelf: Shelf) -> None:
    comparison = several_tasks(shelf)
    total = comparison.total
    assert total.low is not None
    assert 0 < total.low < total.difference
    assert total.difference == pytest.approx(np.mean([pair.difference for pair in comparison.pairs]))
    mean = comparison.to_frame().iloc[-1]
    names = ["task", "difference", "95 % low", "95 % high", "p", "verdict"]
    assert mean[names].tolist() == ["mean", total.difference, total.low, total.high, total.p, "win"]
    assert comparison.as_dict()["total"] == vars(total)
    assert comparison.categories_table().to_frame()["p"].tolist()[-1] == total.p
    # Half the width that independent tasks would have had.
    naive = np.linalg.norm([pair.high - pair.low for pair in comparison.pairs]) / 4
    assert total.high is not None
    assert total.high - total.low > 1.7 * naive
    assert f"points [{100 * total.low:+.1f}, " in comparison.sentence()


def test_the_total_of_one_task_is_the_task(shelf: Shelf) -> None:
    comparison = compare_results([shelf.put("x/a", coins(0))], [shelf.put("x/b", coins(1))], [TASK])
    [pair] = comparison.pairs
    total = comparison.total
    assert (total.difference, total.low, total.high, total.p) == (pair.difference, pair.low, pair.high, pair.p)
    assert comparison.categories == {TASK.category: total}
    assert len(comparison.table().rows) == 1


def test_equal_outcomes_on_all_tasks_still_have_an_interval(shelf: Shelf) -> None:
    a, b = ([shelf.put(name, coins(0)), shelf.put(name, coins(1), OTHER)] for name in ("x/a", "x/b"))
    comparison = compare_results(a, b, [TASK, OTHER])
    assert (comparison.total.difference, comparison.total.p) == (0, 1)
    assert comparison.total.low == pytest.approx(comparison.pairs[0].low)


def test_what_a_total_does_not_tell_is_said(shelf: Shelf) -> None:
    sts = dataclasses.replace(OTHER, metric="cosine_pearson")
    three = {"gold": np.arange(3.0), "similarity": np.array([0.1, 0.3, 0.2])}
    a, b = ([shelf.put(name, coins(seed)), shelf.put(name, three, sts)] for seed, name in enumerate(("x/a", "x/b")))
    comparison = compare_results(a, b, [TASK, sts])
    assert (comparison.total.low, comparison.total.high, comparison.total.p) == (None, None, None)
    assert "too few pairs" in str(comparison.table())
    assert "too few pairs" in str(comparison.categories_table())
    third = dataclasses.replace(OTHER, name="Third")
    a.append(shelf.put("x/a", coins(3), third))
    comparison = compare_results([a[0], a[2]], [b[0], shelf.put("x/b", coins(4), third, protocol="q")], [TASK, third])
    assert not comparison.table().notes  # one task is left, and no mean
    fourth = dataclasses.replace(OTHER, name="Fourth")
    more = [shelf.put(name, coins(seed), fourth) for seed, name in ((5, "x/a"), (6, "x/b"))]
    comparison = compare_results([*a, more[0]], [b[0], more[1]], [TASK, third, fourth])
    assert "over the 2 tasks that can be compared; 1 cannot" in str(comparison.table())
    assert comparison.total.p is not None


# ── end to end ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[embark.types.Run, Path]:
    """A run of two models, and the folder of its results."""
    root = tmp_path_factory.mktemp("two")
    settings = embark.load_settings(root / "home", root / "results")
    names = ["PocketPictureSTS", "PocketClockReading"]
    run = embark.evaluate(["embark/handmade", "embark/random"], names, settings=settings, show_progress=False)
    return run, settings.results


@pytest.fixture
def two_models(ran: tuple[embark.types.Run, Path], monkeypatch: pytest.MonkeyPatch) -> embark.types.Run:
    """A run of two models, whose results the settings point to."""
    run, results = ran
    monkeypatch.setenv("EMBARK_RESULTS", str(results))
    return run


def said(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["compare", *words])
    assert done.exit_code == status, done.output
    return done.output


def test_real_results(two_models: embark.types.Run) -> None:
    comparison = compare("embark/handmade", "embark/random", "Pocket")
    assert {pair.task: pair.verdict for pair in comparison.pairs} == {
        "PocketPictureSTS": "win", "PocketClockReading": "tie",
    }  # fmt: skip
    assert comparison.sentence().startswith(
        "Over 2 tasks, embark/handmade is better than embark/random on 1, worse on 0"
    )
    assert comparison.notes == ()
    turned = compare("embark/random", "embark/handmade", tasks="PocketPicture*")
    [pair] = turned.pairs
    scores = {(r.model, r.task): r.score for r in two_models.results}
    assert pair.difference == pytest.approx(
        scores["embark/random", "PocketPictureSTS"] - scores["embark/handmade", "PocketPictureSTS"]
    )
    assert pair.low <= pair.difference <= pair.high
    assert (turned.total.wins, turned.total.losses) == (0, 1)
    frame = turned.to_frame()
    assert frame.loc[0, ["difference", "95 % low", "95 % high", "p (Holm)"]].tolist() == [
        pair.difference, pair.low, pair.high, pair.holm,
    ]  # fmt: skip
    assert "<td" in turned._repr_html_()


def test_the_command_prints_what_the_function_returns(two_models: embark.types.Run) -> None:
    names = ("embark/handmade", "embark/random")
    comparison = compare(*names)
    tables = (comparison.sentence(), comparison.table(), comparison.categories_table())
    assert said(*names) == "\n\n".join(map(str, tables)) + "\n"
    assert said(*names, "--format", "csv") == comparison.table().format("csv") + "\n"
    assert json.loads(said(*names, "--format", "json")) == json.loads(json.dumps(comparison.as_dict()))
    flips = comparison.flips("PocketClockReading")
    assert said(*names, "--show", "PocketClockReading").splitlines() == flips.lines(20)
    assert json.loads(said(*names, "--show", "PocketClockReading", "--format", "json")) == flips.as_dict()


def test_flips_name_the_items(two_models: embark.types.Run) -> None:
    flips = compare("embark/handmade", "embark/random").flips("PocketClockReading")
    rows = [row.cells for row in flips.table().rows]
    assert rows == [("embark/handmade", item) for item in flips.only_a] + [
        ("embark/random", item) for item in flips.only_b
    ]
    assert flips.lines()[0].startswith(f"Only embark/handmade is right on {len(flips.only_a)} item")
    assert len(flips.lines(1)) < len(flips.lines())
    assert Flips("T", "a", "b", ("1", "2"), ()).lines(1) == [
        "Only a is right on 2 items:",
        "  1",
        "  … and 1 more (--format json lists all)",
        "Only b is right on 0 items.",
    ]


def test_unknown_models_and_tasks_get_a_suggestion(two_models: embark.types.Run) -> None:
    with pytest.raises(EmbarkError, match="Did you mean embark/handmade"):
        compare("embark/handmad", "embark/random")
    with pytest.raises(EmbarkError, match="Did you mean PocketClockReading"):
        compare("embark/handmade", "embark/random").flips("PocketClockRead")
    with pytest.raises(EmbarkError, match=r"Neither embark/handmade nor embark/random has a score on ARK in "):
        compare("embark/handmade", "embark/random", "ARK")
    done = CliRunner().invoke(app, ["compare", "embark/handmade", "embark/random", "--show", "PocketClockRead"])
    assert "Did you mean PocketClockReading" in str(done.exception)


def test_models_without_a_common_task_are_refused() -> None:
    embark.evaluate("embark/handmade", "PocketHairPairs", show_progress=False)
    embark.evaluate("embark/random", "PocketClockReading", show_progress=False)
    with pytest.raises(EmbarkError, match=r"no task in common.*PocketClockReading: only embark/random has a score"):
        compare("embark/handmade", "embark/random")


def test_revisions_are_told_apart(shelf: Shelf) -> None:
    result = shelf.put("test/a", coins(0), task=TASKS["PocketClockReading"])
    shelf.results.write(dataclasses.replace(result, revision="2"), None)
    settings = load_settings(results=shelf.results.root)
    with pytest.raises(EmbarkError, match="test/a has several revisions; name test/a@1 or test/a@2"):
        compare("test/a", "test/a", settings=settings)


def test_own_tasks_are_compared_without_their_folder(tiny: embark.Encoder, pictures: Callable[..., Path]) -> None:
    folder = pictures("Holiday")
    embark.evaluate([tiny, "embark/random"], two_tasks(folder), show_progress=False)
    shutil.rmtree(folder)
    comparison = compare("test/tiny", "embark/random")
    assert [pair.task for pair in comparison.pairs] == ["HolidayRetrieval", "HolidayZeroShot"]
    assert comparison == compare("test/tiny", "embark/random", tasks="Holiday*")
    assert set(comparison.flips("HolidayZeroShot").only_a) <= {"red.png", "green.png", "blue.png"}


# ── properties ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_and_never_lowers_a_p_value(p: list[float]) -> None:
    corrected = holm(p)
    assert all(before <= after <= 1 for before, after in zip(p, corrected, strict=True))
    order = np.argsort(p, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()
    assert max(corrected) == pytest.approx(min(1, max(corrected)))


@pytest.mark.parametrize("seed", range(3))
def test_the_mirror_image_with_several_subsets(shelf: Shelf, seed: int) -> None:
    parts = [{s: {METRIC: coins(seed + 10 * m + n, 40 + 9 * n)} for n, s in enumerate("xyz")} for m in (0, 1)]
    a, b = shelf.put("test/a", parts[0]), shelf.put("test/b", parts[1])
    [one], [other] = (compare_results([x], [y], [TASK]).pairs for x, y in ((a, b), (b, a)))
    assert (one.low, one.high, one.p) == (-other.high, -other.low, other.p)
    assert one.low <= one.difference <= one.high


def test_a_damaged_table_of_outcomes_is_refused_and_one_subset_under_another_protocol_too(shelf: Shelf) -> None:
    parts = {s: {METRIC: coins(1)} for s in "xy"}
    a, b = shelf.put("test/a", parts), shelf.put("test/b", parts)
    moved = dataclasses.replace(b.records[1], fingerprint="other")
    unlike = dataclasses.replace(b, records=(b.records[0], moved))
    assert "other protocols" in compare_results([a], [unlike], [TASK]).refused[TASK.name]
    assert b.path is not None
    b.path.with_suffix(".parquet").write_bytes(b"nonsense")
    assert ".parquet is damaged" in compare_results([a], [b], [TASK]).refused[TASK.name]


def test_probes_are_compared_as_their_interval_was_made(elsewhere: object) -> None:
    """Runs and items both count, for a record's interval and for what a comparison reads of it."""
    [probe] = embark.evaluate("embark/handmade", "PocketSpokenLanguageProbe", show_progress=False).results
    [record] = probe.records
    assert record.statistic == "runs"
    again = interval(list(parts_of(probe, ItemNumbers()).values()))
    assert again == pytest.approx(record.interval)
