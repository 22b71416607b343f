"""Ranked lists, with and without labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from typer.testing import CliRunner

import embark
from embark import readers
from embark.cli import app
from embark.exchange.ranked_lists import rank
from embark.run.stages import Stages
from embark.tasks import TASKS
from embark.types import EmbarkError, Qrels
from hub import FakeHub, client, png

TASK = "PocketNameToImage"
COLORS = ("red", "green", "blue", "white")


def test_a_run_for_trec_eval_scores_as_we_do(tmp_path: Path, pocket_home: Path) -> None:
    [result] = embark.evaluate("embark/random", TASK, show_progress=False).results
    [ranking] = rank("embark/random", TASK, depth=50, show_progress=False)
    assert ranking.scores.shape == (len(ranking.queries), 50)
    assert (np.diff(ranking.scores, axis=1) <= 0).all()
    data = readers.read(TASKS[TASK], "test", "default", client())
    ids = {side: data.sides[side].ids for side in ("query", "document")}
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in zip(data.truth.query, data.truth.document, data.truth.grade, strict=True):  # type: ignore[union-attr]
        qrels.setdefault(ids["query"][query], {})[ids["document"][document]] = int(grade)
    run: dict[str, dict[str, float]] = {}
    for line in ranking.save(tmp_path, "trec").read_text().splitlines():
        name, zero, document, place, score, tag = line.split()
        assert (zero, tag) == ("Q0", "embark/random")
        assert run.setdefault(name, {}).setdefault(document, float(score)) == float(score)
        assert int(place) == len(run[name])
    found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    mean = np.mean([values["ndcg_cut_10"] for values in found.values()])
    assert mean == pytest.approx(result.records[0].metrics["ndcg_at_10"], abs=1e-6)


def test_hidden_labels_do_not_hide_the_ranking(hub: FakeHub, tmp_path: Path, tiny: embark.Encoder) -> None:
    files: dict[str, bytes | str] = {
        f"data/gallery/Physics_{at:06d}.png": png(colour) for at, colour in enumerate(COLORS)
    }
    gallery = [{"file_name": f"Physics_{at:06d}.png", "topic": "Physics", "corpus_id": f"P{at}"} for at in range(4)]
    queries = [{"topic": "Physics", "query_id": f"q{at}", "query": f"a {COLORS[at]} page"} for at in range(3)]
    for part, rows in (("gallery", gallery), ("queries", queries)):
        files[f"data/{part}/metadata.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    hub.add("XLearning-SCU/ARK-Bench", files)
    [ranking] = rank(tiny, "ARK/Physics", depth=2, show_progress=False)
    path = ranking.save(tmp_path)
    assert path == tmp_path / "test__tiny" / "ARK__Physics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["query_id"], line["corpus_ids"][0]) for line in lines] == [("q0", "P0"), ("q1", "P1"), ("q2", "P2")]
    assert all(len(line["corpus_ids"]) == len(line["scores"]) == 2 for line in lines)
    backwards = embark.models.generator(lambda texts, _: [f"a {COLORS[3]} page"] * len(texts), modalities=("text",))
    [rewritten] = rank(tiny, "ARK/Physics", depth=2, stages=Stages(rewrite=backwards), show_progress=False)
    assert {best[0] for best in rewritten.documents} == {"P3"}
    with pytest.raises(EmbarkError, match="takes no image"):
        list(rank(embark.encoder(text=lambda texts: np.ones((len(texts), 2)), name="t/t"), "ARK/Physics"))


def test_only_tasks_with_a_corpus_are_ranked(tmp_path: Path, pocket_home: Path) -> None:
    with pytest.raises(EmbarkError, match="Only retrieval tasks rank a corpus; PocketFlagZeroShot"):
        list(rank("embark/random", "PocketFlagZeroShot"))
    words = ["export", "ranked", "-o", str(tmp_path), "-m", "embark/random", "-t", TASK]
    wrong = CliRunner().invoke(app, [*words, "--layout", "trek"])
    assert "Did you mean trec" in str(wrong.exception)
    made = CliRunner().invoke(app, [*words, "--depth", "3"])
    assert made.stdout.strip() == str(tmp_path / "embark__random" / f"{TASK}.jsonl")


def test_lists_with_stages_rank_as_the_evaluation_does(tmp_path: Path, pocket_home: Path) -> None:
    """Hidden labels can be scored by their owners for every route: captions, rewriting, re-ranking."""
    name = "PocketARK/Counting"
    data = readers.read(TASKS[name], "test", "default", client())
    assert isinstance(data.truth, Qrels)
    queries, documents = data.sides["query"].ids, data.sides["document"].ids
    pairs = zip(data.truth.query.tolist(), data.truth.document.tolist(), strict=True)
    right = {queries[query]: documents[document] for query, document in pairs}
    rewrites, judgements = "embark/pocket-rewrites", "embark/pocket-judgements"
    for stages, files in (
        (Stages(caption="embark/pocket-captions"), "PocketARK__Counting.caption.jsonl"),
        (Stages(rewrite=rewrites), "PocketARK__Counting.rewrite.jsonl"),
        (Stages(rewrite=rewrites, rerank=judgements, depth=20), "PocketARK__Counting.rewrite+rerank-20.jsonl"),
    ):
        [result] = embark.evaluate("embark/random", name, stages=stages, show_progress=False).results
        [ranking] = rank("embark/random", name, depth=96, stages=stages, show_progress=False)
        assert ranking.model == result.model
        ranks = {q: list(best).index(right[q]) + 1 for q, best in zip(ranking.queries, ranking.documents, strict=True)}
        outcomes = result.outcomes()
        assert ranks == dict(zip(outcomes["id"].to_pylist(), outcomes["rank"].to_pylist(), strict=True))
        assert (np.diff(ranking.scores, axis=1) <= 0).all()
        assert ranking.save(tmp_path).name == files
    [short] = rank("embark/random", name, depth=5, stages=stages, show_progress=False)
    assert short.documents == tuple(best[:5] for best in ranking.documents)


def test_the_command_takes_stages(tmp_path: Path, pocket_home: Path) -> None:
    words = ["export", "ranked", "-o", str(tmp_path), "-m", "embark/random", "-t", "PocketARK/Clocks", "--depth", "3"]
    done = CliRunner().invoke(app, [*words, "--rerank", "embark/pocket-judgements:10"])
    assert done.exit_code == 0, done.output
    [path] = tmp_path.rglob("*.jsonl")
    assert path.name == "PocketARK__Clocks.rerank-10.jsonl"
    assert len(path.read_text().splitlines()) == 48
