"""ARK's two axes and the gains of stages, against numbers computed by hand from the ranks of single queries."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from math import log2
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import embark
import samples_ark
from embark.cli import app
from embark.models.recorded import input_of
from embark.readers.pocket_ark import questions
from embark.settings import Settings, load_settings
from embark.studies.ark import ArkDiagnosis, diagnose_ark
from embark.studies.ark.queries import METRICS, QueryGroup
from embark.tasks import TASKS
from embark.tasks.ark import DEMANDS, SKILLS
from embark.types import EmbarkError, Text
from hub import FakeHub

POCKET = ("PocketARK/Counting", "PocketARK/Clocks", "PocketARK/Capitals")  # three of six: less to wait for
REWRITES, JUDGEMENTS, CAPTIONS = "embark/pocket-rewrites", "embark/pocket-judgements", "embark/pocket-captions"
COUNTING = "PocketARK/Counting"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("ark")
    return load_settings(root / "home", root / "results")


@pytest.fixture(scope="module")
def diagnosis(settings: Settings) -> ArkDiagnosis:
    """Three subtypes, with recorded rewriting and re-ranking."""
    return diagnose_ark(
        "embark/random", POCKET, rewrite=REWRITES, rerank=JUDGEMENTS, settings=settings, show_progress=False
    )


def group(diagnosis: ArkDiagnosis, kind: str, name: str, axis: str = "") -> QueryGroup:
    [wanted] = [g for g in diagnosis.groups if (g.kind, g.name) == (kind, name) and axis in ("", g.axis)]
    return wanted


def ranks_by_task(diagnosis: ArkDiagnosis, route: str) -> Mapping[str, dict[str, int]]:
    """The rank of the right picture by task and query id, as results on disk have it."""
    [results] = [r.results for r in diagnosis.routes if r.name == route]
    tables = {task: result.outcomes().to_pydict() for task, result in results.items()}
    return {task: dict(zip(table["id"], table["rank"], strict=True)) for task, table in tables.items()}


def by_hand(rank: int, metric: str) -> float:
    name, depth = metric.split("_at_")
    if not 0 < rank <= int(depth):
        return 0.0
    return 1.0 if name == "recall" else 1 / log2(rank + 1)


ROUTES = ("plain", "rewrite", "re-rank 50", "rewrite + re-rank 50")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("route", ROUTES)
def test_scores_and_gains_are_those_computed_by_hand(diagnosis: ArkDiagnosis, route: str, metric: str) -> None:
    def values(of_route: str) -> dict[str, dict[str, float]]:
        ranks = ranks_by_task(diagnosis, of_route)
        return {task: {query: by_hand(rank, metric) for query, rank in own.items()} for task, own in ranks.items()}

    own, plain = values(route), values("plain")
    labels = {task: questions(TASKS[task]).questions for task in POCKET}

    def pooled(table: Mapping[str, Mapping[str, float]], label: str) -> float:
        return fmean(
            value
            for task, of_task in table.items()
            for query, value in of_task.items()
            if label in (*labels[task][query].skills, labels[task][query].demand)
        )

    def expected(table: Mapping[str, Mapping[str, float]]) -> dict[tuple[str, str, str], float]:
        subtypes = {task: fmean(of_task.values()) for task, of_task in table.items()}
        domains = {TASKS[task].category for task in POCKET}
        of_domain = {d: fmean(subtypes[task] for task in POCKET if TASKS[task].category == d) for d in domains}
        present = {label for of_task in labels.values() for q in of_task.values() for label in (*q.skills, q.demand)}
        skills = {skill: pooled(table, skill) for skill in SKILLS if skill in present}
        return {
            **{("knowledge axis", "subtype", task): value for task, value in subtypes.items()},
            **{("knowledge axis", "domain", domain): value for domain, value in of_domain.items()},
            ("knowledge axis", "average", "average"): fmean(subtypes.values()),
            **{("reasoning axis", "skill", skill): value for skill, value in skills.items()},
            ("reasoning axis", "average", "average"): fmean(skills.values()),
            **{("reasoning axis", "demand", name): pooled(table, name) for name in DEMANDS if name in present},
        }

    scores, before = expected(own), expected(plain)
    assert {(g.axis, g.kind, g.name) for g in diagnosis.groups} == set(scores)
    for one in diagnosis.groups:
        key = (one.axis, one.kind, one.name)
        score = diagnosis.score(route, one, metric)
        assert score.value == pytest.approx(scores[key], abs=1e-12)
        assert score.low <= score.value <= score.high
        if route != "plain":
            gain = diagnosis.gain(route, one, metric)
            assert gain.difference.value == pytest.approx(scores[key] - before[key], abs=1e-12)
            assert gain.difference.low <= gain.difference.value <= gain.difference.high


def test_the_interval_of_a_gain_is_that_of_students_paired_test(diagnosis: ArkDiagnosis) -> None:
    """Where every query and every right picture stands alone."""
    ranks = {route: ranks_by_task(diagnosis, route)[COUNTING] for route in ("plain", "re-rank 50")}
    after, before = (
        [by_hand(ranks[route][query], "recall_at_1") for query in ranks["plain"]] for route in ("re-rank 50", "plain")
    )
    test = stats.ttest_rel(after, before)
    ends = test.confidence_interval(0.95)
    gain = diagnosis.gain("re-rank 50", group(diagnosis, "subtype", COUNTING)).difference
    # Queries and their pictures count as items here, so that there are twice as many degrees of freedom.
    assert (gain.low, gain.high) == pytest.approx((ends.low, ends.high), abs=0.005)


def test_the_records_have_the_same_scores(diagnosis: ArkDiagnosis) -> None:
    for task in POCKET:
        record = diagnosis.routes[0].results[task].records[0]
        for metric in METRICS:
            value = diagnosis.score("plain", group(diagnosis, "subtype", task), metric).value
            assert value == pytest.approx(record.metrics[metric], abs=1e-9)


# ── planted stages ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stage_that_does_nothing_gains_nothing(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "same.jsonl"
    rows = []
    for task in POCKET:
        for question in questions(TASKS[task]).questions.values():
            [words] = [part.text for part in question.item.parts if isinstance(part, Text)]
            rows.append({"input": input_of(question.item), "output": words})
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    same = diagnose_ark("embark/random", POCKET, rewrite=f"recorded:{path}", settings=settings, show_progress=False)
    assert [route.name for route in same.routes] == ["plain", "rewrite"]
    for gain in same.gains("recall_at_1") + same.gains("ndcg_at_10"):
        value, low, high, p = gain.difference
        assert (value, p) == (0, 1)
        assert low <= 0 <= high
    assert "changes nothing beyond chance" in " ".join(same.findings)


@pytest.mark.parametrize("depth", [5, 50])
def test_a_perfect_reranker_gains_all_that_was_in_its_reach(settings: Settings, tmp_path: Path, depth: int) -> None:
    """Every query whose right picture was among the `depth` best is right, and no other one becomes so."""
    subtype = questions(TASKS[COUNTING])
    rows: list[object] = [{"default": 0.0}]
    rows += [
        {"query": input_of(question.item), "document": input_of(right.item), "score": 1}
        for question in subtype.questions.values()
        for right in [subtype.pictures[question.right]]
    ]
    path = tmp_path / "perfect.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    perfect = diagnose_ark(
        "embark/random", COUNTING, rerank=f"recorded-scores:{path}", depth=depth, settings=settings, show_progress=False
    )
    ranks = np.array(list(ranks_by_task(perfect, "plain")[COUNTING].values()))
    whole = group(perfect, "average", "average", "knowledge axis")
    gain = perfect.gain(f"re-rank {depth}", whole)
    assert gain.before == (ranks == 1).mean()
    assert gain.after == ((ranks > 0) & (ranks <= depth)).mean()
    assert gain.difference.value == pytest.approx(((ranks > 1) & (ranks <= depth)).mean())
    assert gain.difference.low > 0 if depth == 50 else gain.difference.low <= gain.difference.value


# ── routes, files and the command ────────────────────────────────────────────────────────────────────────────────────


def test_a_model_of_text_starts_from_captions(settings: Settings) -> None:
    letters = embark.encoder(
        text=lambda texts: [[1 + text.count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts],
        name="test/letters",
        revision="1",
    )
    with pytest.raises(EmbarkError, match=r"test/letters cannot do these tasks: .*--caption"):
        diagnose_ark(letters, COUNTING, settings=settings, show_progress=False)
    read = diagnose_ark(letters, COUNTING, caption=CAPTIONS, rewrite=REWRITES, settings=settings, show_progress=False)
    assert [route.name for route in read.routes] == ["captions", "captions + rewrite"]
    assert read.gain("captions + rewrite", read.groups[0]).before == read.score("captions", read.groups[0]).value


def test_only_tasks_with_one_right_answer_are_diagnosed(settings: Settings) -> None:
    with pytest.raises(EmbarkError, match="PocketNameToImage has queries with several right answers"):
        _ = diagnose_ark("embark/random", "PocketNameToImage", settings=settings, show_progress=False).queries
    with pytest.raises(EmbarkError, match="ARK's tables are of retrieval, which is not what PocketFlagZeroShot"):
        diagnose_ark("embark/random", "PocketFlagZeroShot", settings=settings)


def test_a_prompt_needs_its_stage(settings: Settings) -> None:
    with pytest.raises(EmbarkError, match="There is a prompt for 'rewrite', but no model that it is for"):
        diagnose_ark("embark/random", COUNTING, prompts={"rewrite": "Again."}, settings=settings, show_progress=False)


def test_tables_have_a_row_for_each_group_and_route(diagnosis: ArkDiagnosis) -> None:
    assert [row.cells[0] for row in diagnosis.table().rows] == list(ROUTES) * 2  # two axes
    knowledge = diagnosis.axis_table("knowledge axis")
    assert [row.cells[0] for row in knowledge.rows][-1] == "average"
    assert knowledge.columns[2:] == ("R@1", "R@5", "R@10", "nDCG@5", "nDCG@10", "nDCG@20")
    assert len(diagnosis.gains_table().rows) == 3 * len(diagnosis.groups)
    paper = diagnosis.paper_table("reasoning axis", "ndcg_at_5")
    assert [row.cells[0] for row in paper.rows] == [f"embark/random, {route}" for route in ROUTES]
    assert any(line.startswith("re-rank 50 gains on the knowledge axis: +") for line in diagnosis.findings)


@pytest.mark.slow
def test_the_report_has_every_table_and_figure(diagnosis: ArkDiagnosis, tmp_path: Path) -> None:
    written = diagnosis.write(tmp_path)
    assert set(written) == {path for path in tmp_path.rglob("*") if path.is_file()}
    report = (tmp_path / "report.md").read_text()
    assert "## Gains over 'plain': random on PocketARK" in report
    assert "rewrite by embark/pocket-rewrites at sha256-" in report
    assert all(f"(tables/{path.name})" in report for path in (tmp_path / "tables").iterdir())
    for number in (2, 3, *range(10, 20)):
        [path] = tmp_path.glob(f"tables/table-{number:02d}-*.csv")
        rows = list(csv.DictReader(path.read_text().splitlines()))
        assert [row["model"] for row in rows] == [f"embark/random, {route}" for route in ROUTES]
    rows = list(csv.DictReader((tmp_path / "tables" / "gains-all-metrics.csv").read_text().splitlines()))
    assert len(rows) == 3 * len(diagnosis.groups) * len(METRICS)
    assert r"\toprule" in (tmp_path / "tables" / "routes.tex").read_text()
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "routes.svg", "knowledge-axis.svg", "reasoning-axis.svg", "gains.svg",
    }  # fmt: skip


@pytest.mark.slow
def test_the_command_is_the_function(diagnosis: ArkDiagnosis, settings: Settings) -> None:
    places = ["--home", str(settings.home), "--results", str(settings.results)]
    words = ["diagnose", "ark", "-m", "embark/random", *places]
    stages = ["--rewrite", REWRITES, "--rerank", f"{JUDGEMENTS}:50"]
    tasks = [word for task in POCKET for word in ("-t", task)]
    done = CliRunner().invoke(app, [*words, *stages, *tasks, "--format", "csv"])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == diagnosis.table().format("csv")
    both = CliRunner().invoke(app, [*words, "-b", "ARK(emoji)", "-t", COUNTING])
    assert "either a benchmark or tasks" in both.output


@pytest.mark.slow
def test_without_labels_it_is_the_pocket_ark(settings: Settings, tmp_path: Path) -> None:
    places = ["--home", str(settings.home), "--results", str(settings.results)]
    done = CliRunner().invoke(app, ["diagnose", "ark", "-m", "embark/random", *places, "--out", str(tmp_path)])
    assert "so this is the pocket ARK" in done.stderr
    assert "248 queries" in (tmp_path / "report.md").read_text()
    assert not (tmp_path / "figures" / "gains.svg").exists()  # there is no stage


@pytest.mark.slow
def test_ark_itself_stands_beside_the_published_models(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("XLearning-SCU/ARK-Bench", dict(samples_ark.files()))
    labels = tmp_path / "labels.csv"
    labels.write_text(samples_ark.labels())
    monkeypatch.setenv("EMBARK_ARK_LABELS", str(labels))
    words = embark.models.generator(lambda values, _: ["words"] * len(values), name="test/words", revision="1")
    ark = diagnose_ark("embark/random", rewrite=words, show_progress=False)
    assert len(ark.tasks) == 17
    table = ark.paper_table("knowledge axis", "recall_at_5")
    assert [row.section for row in table.rows] == ["yours"] * 2 + ["ARK Table 10"] * 19
    assert len(table.columns) == 1 + 17 + 1
    assert all(cell is not None for row in table.rows for cell in row.cells)
    reasoning = ark.paper_table("reasoning axis", "ndcg_at_20")
    assert len(reasoning.rows) == 2 + 19
    assert len(reasoning.columns) == 1 + 6 + 1 + 3  # three queries a subtype have three demands
