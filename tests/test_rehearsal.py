"""A rehearsal of the whole benchmarks: every task from a local hub to the table, through two kills on the way."""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rehearsal
from embark.tasks import TASKS, get_benchmark
from hub import FakeHub
from rehearsal.stage import LONGEST, stage

pytestmark = pytest.mark.slow

MODEL = "embark/random"
SUMMARY = r"Embedded ([\d,]+) items? in a run of .* s; ([\d,]+) scores? computed, ([\d,]+) already on disk"
SKIPS = ("not applicable:", "not available:", "failed:")


@pytest.fixture
def real_hub() -> Iterator[FakeHub]:
    """A hub whose listings have pages as long as the real one's."""
    served = FakeHub()
    served.page = 1000
    yield served
    served.close()


def kill_when(process: subprocess.Popen[str], count: Callable[[], int], enough: int) -> None:
    """Kill -9 as soon as so much is there."""
    limit = time.monotonic() + LONGEST
    while count() < enough and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.005)
    alive = process.poll() is None
    process.kill()
    process.communicate()
    assert alive, f"the run was over before {enough} were there"
    assert count() >= enough


def counts(err: str) -> tuple[int, ...]:
    """What a run says of itself: items embedded, scores computed, scores that were on disk."""
    summary = re.search(SUMMARY, err)
    assert summary, err
    return tuple(int(number.replace(",", "")) for number in summary.groups())


@pytest.mark.parametrize(
    ("benchmark", "batch_size", "commits"),
    [("MIEB(Multilingual)", 128, 8), ("UniBench", 128, 6), ("MMEB-V3", 64, 6), ("OmniSET", 4, 1), ("ARK", 16, 3)],
    ids=["MIEB", "UniBench", "MMEB-V3", "OmniSET", "ARK"],
)
def test_a_whole_benchmark_survives_two_kills(
    real_hub: FakeHub, tmp_path: Path, benchmark: str, batch_size: int, commits: int
) -> None:
    """One is struck while vectors are committed, the other while scores are; the third run prints the whole table."""
    rehearsal.publish(real_hub, benchmark)
    tasks = get_benchmark(benchmark).tasks
    killed = stage(real_hub, tmp_path / "killed")
    command = ("run", "-m", MODEL, "-b", benchmark, "--batch-size", batch_size)
    moments = random.Random(benchmark)

    kill_when(killed.start(*command), killed.commits, moments.randint(1, commits))
    assert killed.vectors()
    kill_when(killed.start(*command), killed.results, moments.randint(1, len(tasks) // 3))
    scored = killed.results()
    committed = killed.vectors()

    status, out, err = killed.run(*command)
    assert status == 0, err
    assert not [line for line in err.splitlines() if line.startswith(SKIPS)]
    for name in tasks:
        assert re.search(rf"^{re.escape(name)} .*\d\.\d", out, re.MULTILINE), name
    # What was committed is not embedded again.
    assert counts(err) == (killed.vectors() - committed, len(tasks) - scored, scored)

    status, out, err = killed.run(*command, "--format", "json")
    again = json.loads(out)
    assert (status, again["skipped"]) == (0, [])
    assert {row["task"] for row in again["results"]} == set(tasks)
    assert counts(err) == (0, 0, len(tasks))
    status, out, err = killed.run("leaderboard", "-b", benchmark, "--include", "own")
    assert (status, f"{len(tasks)} tasks by the rule" in out + err) == (0, True)
    status, out, err = killed.run("store", "check")
    assert status == 0, out + err

    if benchmark in CALM:
        calm = stage(real_hub, tmp_path / "calm")
        assert calm.run(*command)[0] == 0
        assert calm.scores() == killed.scores()
        assert calm.vectors() == killed.vectors()


CALM = ("MMEB-V3", "OmniSET", "ARK")  # benchmarks that are run without kills, too


# ── embark check ─────────────────────────────────────────────────────────────────────────────────────────────────────


def without_progress(err: str) -> str:
    """What a check prints to standard error but the lines of its progress, which come on a slow machine only."""
    return re.sub(r"^[-\d]+ [:\d]+ checking: .*\n", "", err, flags=re.MULTILINE)


@pytest.mark.parametrize("benchmark", ["UniBench", "MMEB-V3", "OmniSET", "ARK"])
def test_rows_agree_with_the_rehearsals_hub(real_hub: FakeHub, tmp_path: Path, benchmark: str) -> None:
    rehearsal.publish(real_hub, benchmark)
    status, out, err = stage(real_hub, tmp_path / "check").run("check", "-b", benchmark)
    count = len(get_benchmark(benchmark).tasks)
    assert (status, without_progress(err)) == (0, f"{count} of {count} tasks agree with the hub.\n")
    assert "DIFFERS" not in out


def test_planted_differences_are_found_among_all_tasks(real_hub: FakeHub, tmp_path: Path) -> None:
    """Of MIEB's 130 tasks, those differ whose data were changed, and no others."""
    rehearsal.publish(real_hub, "MIEB(Multilingual)")
    command = ("check", "-b", "MIEB(Multilingual)")
    status, out, err = stage(real_hub, tmp_path / "before").run(*command)
    assert (status, without_progress(err)) == (0, "130 of 130 tasks agree with the hub.\n")

    plant(real_hub, "DTDZeroShot", "data/test-", lambda table: table.slice(1))
    plant(real_hub, "RP2kI2IRetrieval", "corpus/", lambda table: table.rename_columns({"image": "picture"}))
    plant(real_hub, "CUB200I2IRetrieval", "corpus/", lambda table: table.rename_columns({"id": "number"}))
    plant(real_hub, "EuroSATZeroShot", "data/test-", swap_classes)
    plant(real_hub, "VidoreDocVQARetrieval", "corpus/", lambda table: table.take([0, 1, 2, 3, 3]))
    replace_text(real_hub, "SciMMIRT2IRetrieval", "README.md", "license: mit", "license: cc-by-nc-4.0")
    source = TASKS["STL10ZeroShot"].source
    del real_hub.data[source.id, source.revision]

    status, out, err = stage(real_hub, tmp_path / "after").run(*command)
    assert status == 1
    header, *lines = [line.split() for line in out.splitlines() if line.strip()]
    assert {(line[0], header[at]) for line in lines for at in range(len(line)) if line[at] == "DIFFERS"} == {
        *((name, "rows") for name in ("DTD", "DTDZeroShot")),
        ("RP2kI2IRetrieval", "columns"),
        ("CUB200I2IRetrieval", "columns"),
        ("EuroSATZeroShot", "classes"),
        ("VidoreDocVQARetrieval", "ids"),
        *((name, "license") for name in ("SciMMIRI2TRetrieval", "SciMMIRT2IRetrieval")),
        *((name, "revision") for name in ("STL10", "STL10ZeroShot")),
    }
    for text in (
        "DTDZeroShot: rows: test has 18 rows, expected 19",
        "RP2kI2IRetrieval: columns: there is no column 'image' (corpus_image)",
        "EuroSATZeroShot: classes: class 0 is",
        "VidoreDocVQARetrieval: ids: corpus/test has 5 rows and 4 ids",
        "the card says cc-by-nc-4.0, the row mit",
        "is gone",
        "120 of 130 tasks agree with the hub.",
    ):
        assert text in err


def plant(hub: FakeHub, task: str, start: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the files of a task's data whose paths start so; of several shards, the first."""
    source = TASKS[task].source
    files = hub.data[source.id, source.revision]
    path = min(path for path in files if path.startswith(start))
    out = io.BytesIO()
    pq.write_table(change(pq.read_table(io.BytesIO(files[path]))), out)
    files[path] = out.getvalue()


def swap_classes(table: pa.Table) -> pa.Table:
    """The first two names of its classes in the other order."""
    features = json.loads(table.schema.metadata[b"huggingface"])
    for feature in features["info"]["features"].values():
        if "names" in feature:
            feature["names"][:2] = feature["names"][1::-1]
    return table.replace_schema_metadata({"huggingface": json.dumps(features)})


def replace_text(hub: FakeHub, task: str, path: str, old: str, new: str) -> None:
    source = TASKS[task].source
    files = hub.data[source.id, source.revision]
    assert old in files[path].decode()
    files[path] = files[path].decode().replace(old, new).encode()
