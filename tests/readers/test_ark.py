"""ARK's folders of pictures, with labels that a user supplies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark import readers
from embark.cli import app
from embark.protocol import fingerprint_of
from embark.readers import ark
from embark.settings import load_settings
from embark.tasks import TASKS
from embark.types import EmbarkError, Qrels, Task
from hub import FakeHub, client, png

ID = "XLearning-SCU/ARK-Bench"
PHYSICS, SPATIAL = TASKS["ARK/Physics"], TASKS["ARK/Spatial-3D"]
COLORS = ("red", "green", "blue", "white")


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def sample() -> dict[str, bytes | str]:
    """Two subtypes: text queries, and a picture with words. Ids count from 0 in each; files are named otherwise."""
    gallery = [(topic, at) for topic in ("Physics", "Spatial-3D") for at in range(len(COLORS))]
    files: dict[str, bytes | str] = {
        f"data/gallery/{topic}_{at + 131:06d}.png": png(COLORS[at], (8, 8 + len(topic))) for topic, at in gallery
    }
    files["data/gallery/metadata.jsonl"] = lines(
        [{"file_name": f"{topic}_{at + 131:06d}.png", "topic": topic, "corpus_id": at} for topic, at in gallery]
    )
    files["data/queries/Spatial-3D_000000.png"] = png("grey")
    asked = [{"topic": "Physics", "query_id": at, "query": f"a {COLORS[at]} page"} for at in range(3)]
    seen = {"topic": "Spatial-3D", "query_id": 0, "query": "turned", "file_name": "Spatial-3D_000000.png"}
    files["data/queries/metadata.jsonl"] = lines([*asked, seen])
    return files


LABELS = """topic,query_id,corpus_id,skills,demand
Physics,0,0,knowledge reasoning,knowledge-intensive
Physics,1,1,knowledge reasoning; logical reasoning,both
Physics,2,2,,
Spatial-3D,0,3,spatial reasoning,reasoning-intensive
"""


@pytest.fixture
def supplied(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample on the hub, and labels for it."""
    hub.add(ID, sample())
    path = tmp_path / "labels.csv"
    path.write_text(LABELS)
    monkeypatch.setenv(ark.LABELS, str(path))
    return path


def test_a_subtype_is_searched_in_its_own_gallery(supplied: Path) -> None:
    data = readers.read(PHYSICS, "test", "default", client())
    assert data.sides["query"].ids == ("0", "1", "2")
    assert data.sides["document"].ids == ("0", "1", "2", "3")
    assert isinstance(data.truth, Qrels)
    assert data.truth.document.tolist() == [0, 1, 2]
    assert data.skipped == ()
    [item] = readers.read(SPATIAL, "test", "default", client()).sides["query"].items
    assert item.modalities == ("image", "text")


def test_it_is_scored_end_to_end(supplied: Path, tiny: embark.Encoder) -> None:
    run = embark.evaluate([tiny, "embark/random"], [PHYSICS, SPATIAL], show_progress=False)
    assert run.skipped == []
    best, _, *others = run.results
    assert (best.task, best.metric, best.score) == ("ARK/Physics", "recall_at_1", 1.0)
    assert len(others) == 2


def test_labels_carry_the_second_axis(supplied: Path) -> None:
    found = ark.labels(PHYSICS)
    assert found["physics", "1"] == ark.Label("1", ("knowledge reasoning", "logical reasoning"), "both")
    assert found["physics", "2"] == ark.Label("2")
    assert ark.labels_of(SPATIAL) == {"0": ark.Label("3", ("spatial reasoning",), "reasoning-intensive")}


def test_ids_count_from_0_in_every_topic_and_nothing_collides(supplied: Path, tiny: embark.Encoder) -> None:
    """Query 0 of one topic is not query 0 of another: in labels, in exports, in pools of skills."""
    data = readers.read(SPATIAL, "test", "default", client())
    assert (data.sides["query"].ids, data.sides["document"].ids) == (("0",), ("0", "1", "2", "3"))
    assert isinstance(data.truth, Qrels)
    assert data.truth.document.tolist() == [3]
    ranked = list(embark.exchange.rank(tiny, [PHYSICS, SPATIAL], show_progress=False))
    assert [ranking.queries for ranking in ranked] == [("0", "1", "2"), ("0",)]
    assert [row[0] for row in ranked[0].documents] == ["0", "1", "2"]
    assert json.loads(next(ranked[0].lines("jsonl")))["query_id"] == "0"
    embark.evaluate(tiny, [PHYSICS, SPATIAL], show_progress=False)
    said = CliRunner().invoke(app, ["leaderboard", "-b", "ARK", "--include", "own", "--format", "json"])
    [row] = json.loads(said.stdout)["rows"]
    assert [row[name]["tasks"] for name in ("knowledge reasoning", "spatial reasoning")] == [2, 1]


def test_numbers_with_gaps_are_floats_in_a_table(hub: FakeHub, supplied: Path) -> None:
    names = [f"Physics_{at:06d}.png" for at in range(3)]
    rows = [{"file_name": name, "topic": "Physics", "corpus_id": float(at)} for at, name in enumerate(names)]
    gallery = lines([dict(row) for row in rows])
    pictures: dict[str, bytes | str] = {f"data/gallery/{name}": png(COLORS[at]) for at, name in enumerate(names)}
    queries = str(sample()["data/queries/metadata.jsonl"]).splitlines()[:3]
    hub.add(ID, pictures | {"data/gallery/metadata.jsonl": gallery, "data/queries/metadata.jsonl": "\n".join(queries)})
    assert readers.read(PHYSICS, "test", "default", client()).sides["document"].ids == ("0", "1", "2")


def test_the_leaderboard_pools_queries_by_skill_and_demand(supplied: Path, tiny: embark.Encoder) -> None:
    embark.evaluate(tiny, [PHYSICS, SPATIAL], show_progress=False)
    said = CliRunner().invoke(app, ["leaderboard", "-b", "ARK", "--include", "own", "--format", "json"])
    [row] = json.loads(said.stdout)["rows"]
    assert (row["knowledge reasoning"]["score"], row["knowledge reasoning"]["tasks"]) == (1, 2)
    assert {"logical reasoning", "spatial reasoning", "both"} < {*row}
    assert "reasoning axis" not in row  # three of its six skills have no query here


def test_other_labels_are_another_protocol(supplied: Path, tiny: embark.Encoder) -> None:
    before = fingerprint_of(PHYSICS, "test", "default")
    assert embark.evaluate(tiny, PHYSICS, show_progress=False).results[0].score == 1
    supplied.write_text(LABELS.replace("Physics,0,0", "Physics,0,3"))
    assert fingerprint_of(PHYSICS, "test", "default") != before
    assert embark.evaluate(tiny, PHYSICS, show_progress=False).results[0].score == pytest.approx(2 / 3)


def test_queries_without_a_label_are_counted(supplied: Path) -> None:
    supplied.write_text("topic,query_id,corpus_id\nPhysics,1,1\n")
    data = readers.read(PHYSICS, "test", "default", client())
    assert data.sides["query"].ids == ("1",)
    assert data.skipped == ("left out 2 of 3 queries, which have no label",)


def test_pictures_without_metadata_go_by_their_names(hub: FakeHub, supplied: Path) -> None:
    hub.add(ID, {path: data for path, data in sample().items() if path != "data/gallery/metadata.jsonl"})
    supplied.write_text("topic,query_id,corpus_id\nPhysics,1,Physics_000132\n")
    assert len(readers.read(PHYSICS, "test", "default", client()).sides["document"]) == 4


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_metadata_may_be_other_tables(hub: FakeHub, supplied: Path, tmp_path: Path, ending: str) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    files = sample()
    rows = [json.loads(line) for line in str(files.pop("data/gallery/metadata.jsonl")).splitlines()]
    {"csv": pyarrow.csv.write_csv, "parquet": pyarrow.parquet.write_table}[ending](
        pa.Table.from_pylist(rows), tmp_path / "table"
    )
    hub.add(ID, files | {f"data/gallery/metadata.{ending}": (tmp_path / "table").read_bytes()})
    assert len(readers.read(PHYSICS, "test", "default", client()).sides["document"]) == 4


def test_without_labels_it_says_what_is_needed(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ark.LABELS, raising=False)
    with pytest.raises(EmbarkError, match=r"needs a labels file: set EMBARK_ARK_LABELS .*topic,query_id,corpus_id"):
        readers.read(PHYSICS, "test", "default", client())
    assert hub.requests == []


def with_labels(path: Path) -> Task:
    return replace(PHYSICS, options={**PHYSICS.options, "labels": str(path)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "topic,query_id,corpus_id\nPhysics,0,9\n",
            "1 queries name images outside the gallery.*'9' for '0'",
        ),
        ("topic,query_id,corpus_id\nArt,0,0\n", "None of the 3 queries of ARK/Physics is in the labels file"),
        ("query_id,corpus_id\n0,1\n", "Row 1 of .* lacks topic or query_id or corpus_id"),
        (f"{LABELS}Physics,0,1,,\n", "two labels for query '0' of Physics"),
        (LABELS.replace("both", "neither"), "has 'neither'; skills and demands are"),
    ],
)
def test_wrong_labels_are_named(supplied: Path, content: str, message: str) -> None:
    other = supplied.with_name("other.csv")
    other.write_text(content)
    with pytest.raises(EmbarkError, match=message):
        readers.read(with_labels(other), "test", "default", client())


def test_a_labels_file_that_is_not_there(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(EmbarkError, match=r"There is no labels file .*nowhere\.csv"):
        readers.read(with_labels(tmp_path / "nowhere.csv"), "test", "default", client())


@pytest.mark.parametrize("name", ["1.5", '{"a": 1}'])
def test_metadata_that_nobody_expects_is_named_and_the_traceback_logged(
    supplied: Path, hub: FakeHub, tiny: embark.Encoder, name: str
) -> None:
    files = sample()
    metadata = "data/gallery/metadata.jsonl"
    files[metadata] = str(files[metadata]).replace('"Physics_000132.png"', name, 1)
    hub.add(ID, files)
    with pytest.raises(EmbarkError) as info:
        embark.evaluate(tiny, PHYSICS, show_progress=False)
    [log] = (load_settings().home / "logs").iterdir()
    for words in (f"Task ARK/Physics: the data of {ID}", metadata, "'ark' expects (TypeError", f"is in {log}"):
        assert words in str(info.value)
    assert "Traceback" in log.read_text()


def test_labels_that_are_no_text_are_named(supplied: Path) -> None:
    supplied.write_bytes(LABELS.encode("utf-16"))
    with pytest.raises(EmbarkError, match=rf"{supplied} cannot be read: .*Repair the file"):
        ark.labels(PHYSICS)
