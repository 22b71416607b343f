"""Visual STS beside the same pairs as text: what reading costs a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

import embark
from embark.exchange.scores import import_results
from embark.protocol import fingerprint_of
from embark.results import Record, Results, TaskResult, outcome_columns
from embark.settings import load_settings
from embark.studies.mieb.rendering import rendering
from embark.tasks import BENCHMARKS, TASKS
from embark.tasks.text_sts import TWINS
from embark.types import Array, EmbarkError, ModelCard

CLIP = "openai/clip-vit-base-patch32"


def test_every_visual_sts_task_has_a_text_twin_with_the_same_parts_and_sizes() -> None:
    visual = [row for row in TASKS.values() if row.category == "Visual STS" and row.family == "MIEB"]
    assert {row.name for row in visual} == {name for name in TWINS if not name.startswith("Pocket")}
    for row in visual:
        text = TASKS[TWINS[row.name]]
        assert (text.evaluator, text.metric, text.modalities) == ("sts", row.metric, ("text",))
        assert {*row.parts} <= {*text.parts}
        assert row.subsets.items() <= text.subsets.items()
        assert row.rows.items() <= text.rows.items()


def test_no_board_lists_the_twins() -> None:
    listed = {task for benchmark in BENCHMARKS.values() for task in benchmark.tasks}
    assert not listed & ({*TWINS.values()} - {"PocketNameSTS"} | {"STSBenchmark"})


def test_your_text_scores_stand_beside_published_ones_on_pictures(tmp_path: Path, elsewhere: Path) -> None:
    """The published visual scores, and text scores of mteb's: the cost is the mean over the parts that both have."""
    with pytest.raises(EmbarkError, match="embark run -m MODEL -t STS12VisualSTS -t STS12"):
        rendering()
    english = {"test": [{"main_score": 0.7, "cosine_spearman": 0.7, "hf_subset": "default", "mteb_version": "2.0.0"}]}
    several = {"test": [english["test"][0] | {"hf_subset": code} for code in TASKS["STS17"].subsets]}
    folder = tmp_path / CLIP.replace("/", "__") / "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"
    folder.mkdir(parents=True)
    for name, scores in (("STS12", english), ("STS17", several)):
        (folder / f"{name}.json").write_text(json.dumps({"task_name": name, "scores": scores}))
    import_results(tmp_path)
    study = rendering("MIEB(Multilingual)")
    by_task = {cost.task: cost for cost in study.costs}
    assert {cost.model for cost in study.costs} == {CLIP}
    assert {task: cost.parts for task, cost in by_task.items()} == {
        "STS12VisualSTS": 1, "VisualSTS17Eng": 1, "VisualSTS17Multilingual": 10,
    }  # fmt: skip
    [printed] = [r for r in embark.published.results("MIEB(lite)") if (r.model, r.task) == (CLIP, "STS13VisualSTS")]
    assert "STS13VisualSTS" not in by_task  # it has no text score
    assert printed.score > 0
    for cost in study.costs:
        assert cost.text.value == pytest.approx(0.7)
        [shipped] = [r for r in embark.published.results([TASKS[cost.task]]) if r.model == CLIP]
        assert cost.pictures.value == pytest.approx(shipped.score)
    rows = [row.cells for row in study.table().rows]
    assert [cells[1] for cells in rows] == ["STS12VisualSTS", "VisualSTS17Eng", "VisualSTS17Multilingual", "mean"]
    assert all(np.isnan(cost.difference.low) for cost in (*study.costs, *study.means))
    assert "published and imported scores" in str(study)


def test_own_runs_of_pocket_show_it_offline(tiny: embark.Encoder, elsewhere: Path) -> None:
    embark.evaluate(tiny, ["PocketNameSTS", "PocketRenderedSTS"], show_progress=False)
    [cost] = rendering("Pocket", include="own").costs
    assert (cost.task, cost.parts) == ("PocketRenderedSTS", 1)
    assert cost.aligned
    assert cost.difference.low < cost.difference.value < cost.difference.high
    with pytest.raises(EmbarkError, match="None of these tasks has a text twin"):
        rendering(tasks="PocketNameSTS")


def put(name: str, gold: Array, similarity: Array, ids: list[str]) -> None:
    """A result on a task of pairs, as a run would leave it."""
    columns = {"gold": gold, "similarity": similarity, "right": np.array(ids)}
    columns |= {f"{side}_rank": rankdata(columns[side]) for side in ("gold", "similarity")}
    score = float(np.corrcoef(columns["gold_rank"], columns["similarity_rank"])[0, 1])
    row = TASKS[name]
    [(split, subset)] = row.parts
    protocol = fingerprint_of(row, split, subset)
    record = Record(
        "me/m", "1", name, split, subset, ("eng",), row.metric, score, (-1, 1), {}, protocol, "e", statistic="spearman"
    )  # fmt: skip
    result = TaskResult("me/m", "1", name, row.source.revision, (record,), score, (-1, 1), 0.0)
    table = outcome_columns(split, subset, ids, columns)
    Results(load_settings().results).save(result, ModelCard("me/m", "1", "none", ("text", "image")), [table])


@pytest.mark.parametrize("aligned", [True, False])
def test_the_same_pairs_make_a_paired_difference(elsewhere: Path, aligned: bool) -> None:
    """Text and pictures err on the same pairs, so that their difference is surer than either; unless pairs are others,
    in any order.
    """
    rng = np.random.default_rng(3)
    gold = rng.random(300)
    common = gold + rng.normal(0, 0.3, 300)
    ids = [str(number) for number in range(300)]
    put("PocketNameSTS", gold, common + rng.normal(0, 0.05, 300), ids)
    order = rng.permutation(300)
    drawn = (common + rng.normal(0, 0.05, 300))[order]
    names = [ids[number] for number in order]
    put("PocketRenderedSTS", gold[order], drawn, names if aligned else [f"p{name}" for name in names])
    study = rendering("Pocket", include="own")
    [cost] = study.costs
    width = cost.difference.high - cost.difference.low
    sides = np.hypot(cost.text.high - cost.text.low, cost.pictures.high - cost.pictures.low)
    assert cost.aligned == aligned
    assert ("could not be aligned" in str(study)) != aligned
    if aligned:
        assert width < sides / 3
    else:
        assert width == pytest.approx(sides, rel=0.15)
