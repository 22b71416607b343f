"""Scores held against published ones: mteb's are reproduced, planted faults differ, and the exit status says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embark
from embark import published, verification
from embark.catalogue import group_values
from embark.cli import app
from embark.models import MODELS
from embark.results import Results
from embark.settings import Settings, load_settings
from embark.tasks import TASKS, get_benchmark
from embark.types import Array, EmbarkError
from embark.verification.references import ScoreReference, printed_references
from numbers_model import NumbersModel, number_task

CLIP = "openai/clip-vit-base-patch32"
LITE = get_benchmark("MIEB(lite)").tasks
PARITY = Path(__file__).parents[1] / "samples" / "parity"
Change = Callable[[published.Published], float]


def as_mteb(folder: Path, change: Change | None = None, tasks: Sequence[str] = LITE) -> Path:
    """MIEB's published results of CLIP as the files that mteb wrote, with other values where `change` has some."""
    alias = MODELS[CLIP].aliases["MIEB"]
    scores = [score for score in published.scores("MIEB") if score.model == alias and score.name in tasks]
    for (task, revision), parts in group_values(((score.name, score.revision), score) for score in scores).items():
        entries = group_values(
            (
                part.split or "test",
                {
                    "main_score": part.value if change is None else change(part),
                    "hf_subset": part.subset or "default",
                    "languages": ["eng-Latn"],
                },
            )
            for part in parts
        )
        path = folder / CLIP.replace("/", "__") / revision / f"{task}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"task_name": task, "mteb_version": "1.16.5", "scores": entries}))
    return folder


def invoke(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, words)])


def values(check: verification.Verification) -> dict[str, str]:
    return {task.row.name: task.verdict for task in check.checks}


# ── results of mteb against the papers' tables ───────────────────────────────────────────────────────────────────────


def test_results_that_mteb_made_are_reproduced(tmp_path: Path) -> None:
    embark.exchange.import_results(as_mteb(tmp_path))
    result = invoke("verify", "-m", CLIP, "-b", "MIEB(lite)", "--stored")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{CLIP}: 51 of 51 scores are as published; in the mean +0.00 points")
    assert "scores of mteb have no outcomes" in result.stderr
    check = embark.verify(CLIP, "MIEB(lite)", run=False)
    assert (check.status, check.verdict, check.causes) == (0, "reproduced", ())
    assert "XM3600T2IRetrieval" in values(check)  # a mean over languages


def test_imported_results_need_no_model(tmp_path: Path) -> None:
    """Nothing is loaded where every task has a score: the model is not to be had here."""
    tasks = ["CIFAR10ZeroShot", "Winoground"]
    embark.exchange.import_results(as_mteb(tmp_path, tasks=tasks))
    assert embark.verify(CLIP, tasks=tasks).status == 0


def test_a_score_that_differs_is_named_and_fails(tmp_path: Path) -> None:
    def change(part: published.Published) -> float:
        return part.value - 0.02 if part.name == "CIFAR100ZeroShot" else part.value

    embark.exchange.import_results(as_mteb(tmp_path, change=change))
    plot = tmp_path / "differences.svg"
    result = invoke("verify", "-m", CLIP, "-b", "MIEB(lite)", "--stored", "--format", "json", "--plot", plot)
    assert result.exit_code == 1
    for label in ("differs (1)", "reproduced (50)", "allowed (one task alone)", "CIFAR100ZeroShot"):
        assert label in plot.read_text()
    content = json.loads(result.stdout)
    assert (content["verdict"], content["status"]) == ("differs", 1)
    [differing] = [task for task in content["tasks"] if task["verdict"] == "differs"]
    assert differing["task"] == "CIFAR100ZeroShot"
    assert differing["difference"] == pytest.approx(-0.02)
    assert differing["allowed"] < 0.003


def test_a_tenth_of_a_point_on_fifty_thousand_pictures_differs_and_half_of_that_does_not(tmp_path: Path) -> None:
    for change, status in ((0.0004, 0), (0.002, 1)):
        settings = load_settings(results=tmp_path / f"results {change}")
        less = partial(lambda change, part: part.value - change, change)
        embark.exchange.import_results(as_mteb(tmp_path / str(change), less, ["Imagenet1kZeroShot"]), settings=settings)
        assert embark.verify(CLIP, tasks=["Imagenet1kZeroShot"], settings=settings).status == status


def test_all_tasks_a_little_off_differ_in_the_mean(tmp_path: Path) -> None:
    embark.exchange.import_results(as_mteb(tmp_path, change=lambda part: part.value - 0.004))
    check = embark.verify(CLIP, "MIEB(lite)", run=False)
    assert check.mean is not None
    assert check.mean.difference == pytest.approx(-0.004)
    assert check.status == 1


# ── what cannot be compared ──────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_published_is_a_status_of_its_own() -> None:
    result = invoke("verify", "-m", "embark/pocket", "-t", "PocketFlagZeroShot", "-t", "PocketNameSTS")
    assert result.exit_code == 3
    assert "none of 2 tasks can be compared with the papers' tables" in result.stdout
    assert "no score of embark/pocket is published" in result.stdout
    assert "name the model as the tables do (--published-as NAME" in result.stderr


def test_artefacts_other_data_and_other_protocols_are_told() -> None:
    eva = "QuanSun/EVA02-CLIP-B-16"
    name = next(card.name for card in MODELS.values() if card.aliases.get("MIEB") == eva)
    why = {task.row.name: task.why for task in embark.verify(name, tasks=["Imagenet1k"], run=False).checks}
    assert why == {"Imagenet1k": "the published score is an artefact (erratum mieb-collapsed-probe)"}
    [task] = embark.verify(CLIP, tasks=["STL10"], protocol="mteb2", run=False).checks
    assert task.why == "published under paper, and this is under mteb2"
    [task] = embark.verify(CLIP, tasks=["STL10"], run=False).checks
    assert (task.verdict, task.why, task.failed) == ("not comparable", "it has no score on disk", False)


def test_every_published_score_is_comparable_or_says_why() -> None:
    rows = [task for task in TASKS.values() if task.family in published.FAMILIES]
    for model in (CLIP, "google/siglip-so400m-patch14-384"):
        reasons = printed_references(rows, model)
        assert len(reasons) == len(rows)
        usable = [reference for reference in reasons.values() if not isinstance(reference, str)]
        assert len(usable) > 100
        assert all(0 < reference.rounding <= 0.0005 for reference in usable)


def test_a_benchmark_or_tasks_must_be_named() -> None:
    with pytest.raises(EmbarkError, match="Name a benchmark or tasks"):
        embark.verify(CLIP)
    with pytest.raises(EmbarkError, match="There is no folder nowhere"):
        embark.verify(CLIP, "Pocket", against="nowhere", run=False)


def test_parts_that_are_not_published_are_left_out(tmp_path: Path) -> None:
    """The published mean over three languages is held against ours over these three."""
    row = TASKS["XM3600T2IRetrieval"]
    embark.exchange.import_results(as_mteb(tmp_path, tasks=[row.name]))
    [ours] = [result for result in Results(load_settings().results).all() if result.task == row.name]
    few = replace(ours, records=ours.records[:3], score=float(np.mean([r.score for r in ours.records[:3]])))
    check = verification._check(row, ours, ScoreReference((few,)), None)
    assert check.scores is not None
    assert check.scores.note == f"over the 3 of {len(ours.records)} parts that are published"
    assert check.scores.difference == pytest.approx(0)
    elsewhere = [replace(record, subset="elsewhere") for record in few.records]
    check = verification._check(row, ours, ScoreReference((replace(few, records=tuple(elsewhere)),)), None)
    assert check.why == "it is published on other splits or subsets"


# ── runs against another tool's results ──────────────────────────────────────────────────────────────────────────────


def lookup(vectors: dict[str, Array]) -> Callable[[list[str]], Array]:
    nothing = np.ones_like(next(iter(vectors.values())))  # for the texts that the encoder's revision is made of
    return lambda texts: np.stack([vectors.get(text, nothing) for text in texts])


@pytest.fixture
def peer(tmp_path: Path) -> tuple[list[embark.types.Task], dict[str, Array], Path]:
    """Two tasks on random vectors, the vectors, and what mteb 2.26.24 scored on them, as its files have it."""
    vectors: dict[str, Array] = {}
    with np.load(PARITY / "sts" / "inputs.npz") as arrays:
        pairs = {f"{side} {row}": vector for side in arrays for row, vector in enumerate(arrays[side])}
    gold = json.loads((PARITY / "sts" / "truth.json").read_text())["gold"]
    sts = [{"left": f"first {row}", "right": f"second {row}", "score": score} for row, score in enumerate(gold)]
    with np.load(PARITY / "zero_shot" / "inputs.npz") as arrays:
        items = {f"item {row}": vector for row, vector in enumerate(arrays["items"])}
        names = [f"class {row:02}" for row in range(len(arrays["classes"]))]
        classes = dict(zip(names, arrays["classes"], strict=True))
    labels = json.loads((PARITY / "zero_shot" / "truth.json").read_text())["labels"]
    shown = [{"text": f"item {row}", "label": names[label]} for row, label in enumerate(labels)]
    for table in (pairs, items, classes):  # of different dimensions
        vectors |= {name: np.pad(vector, (0, 32 - len(vector))) for name, vector in table.items()}
    tasks = [
        embark.task(sts, "sts", name="PeerSTS"),
        embark.task(shown, "zeroshot", name="PeerZeroShot", templates=("{}",)),
    ]
    for task, case in zip(tasks, ("sts", "zero_shot"), strict=True):
        [(split, subset)] = task.parts
        expected = json.loads((PARITY / case / "expected.json").read_text())
        entry = {name: value for name, value in expected.items() if value is not None} | {"hf_subset": subset}
        path = tmp_path / "peer" / "test__lookup" / "1" / f"{task.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"task_name": task.name, "mteb_version": "2.26.24", "scores": {split: [entry]}}))
    return tasks, vectors, tmp_path / "peer"


def test_the_scores_of_mteb_on_the_same_vectors_are_reproduced(
    peer: tuple[list[embark.types.Task], dict[str, Array], Path],
) -> None:
    tasks, vectors, folder = peer
    model = embark.encoder(text=lookup(vectors), name="test/lookup", revision="1", stored="float32")
    embark.evaluate(model, tasks, show_progress=False)  # so that rows are known beside results
    check = embark.verify(model, tasks=tasks, against=folder, show_progress=False)
    assert values(check) == {"PeerSTS": "reproduced", "PeerZeroShot": "reproduced"}
    assert check.status == 0
    assert [abs(task.scores.difference) < 1e-4 for task in check.checks if task.scores] == [True, True]


def test_noise_on_the_vectors_differs(peer: tuple[list[embark.types.Task], dict[str, Array], Path]) -> None:
    tasks, vectors, folder = peer
    rng = np.random.default_rng(0)
    noisy = {name: vector + rng.normal(size=len(vector)).astype(np.float32) for name, vector in vectors.items()}
    model = embark.encoder(text=lookup(noisy), name="test/lookup", revision="2", stored="float32")
    embark.evaluate(model, tasks, show_progress=False)
    check = embark.verify(model, tasks=tasks, against=folder, show_progress=False)
    assert values(check) == {"PeerSTS": "differs", "PeerZeroShot": "differs"}


# ── runs of ours ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def elsewhere_scored(tmp_path: Path) -> tuple[list[embark.types.Task], Settings]:
    """Tasks with and without an instruction, and a folder with the scores of a sound model."""
    theirs = load_settings(results=tmp_path / "published")
    tasks = [number_task(f"Plain{number}", theirs) for number in range(4)]
    tasks += [number_task(f"Asked{number}", theirs, instructed=True) for number in range(4)]
    embark.evaluate(NumbersModel(), tasks, settings=theirs, show_progress=False)
    return tasks, theirs


def test_tasks_are_run_where_they_have_no_score(elsewhere_scored: tuple[list[embark.types.Task], Settings]) -> None:
    tasks, theirs = elsewhere_scored
    check = embark.verify(NumbersModel(), tasks=tasks, against=theirs.results, show_progress=False)
    assert (check.status, len(check.of_verdict("reproduced"))) == (0, 8)
    assert len(list(Results(load_settings().results).all())) == 8
    again = embark.verify("test/numbers", tasks=tasks, against=theirs.results, run=False)
    assert again.checks == check.checks
    assert "8 of 8 scores are as published" in again.sentence()


@pytest.mark.slow
def test_samples_say_how_much_they_can_tell(elsewhere_scored: tuple[list[embark.types.Task], Settings]) -> None:
    tasks, theirs = elsewhere_scored
    check = embark.verify(NumbersModel(), tasks=tasks, against=theirs.results, limit=50, show_progress=False)
    assert check.status == 0
    [note] = check.notes
    assert note.startswith("8 scores of samples (limit 50): their intervals are as wide as that makes them")
    pairs = [task.scores for task in check.checks if task.scores is not None]
    assert all(pair.tolerance.allowed > 0.05 for pair in pairs)
    assert any(pair.difference for pair in pairs)  # another score than of all items
    again = embark.verify("test/numbers", tasks=tasks, against=theirs.results, limit=50, run=False)
    assert again.checks == check.checks
    whole = embark.verify(NumbersModel(), tasks=tasks, against=theirs.results, limit=10_000, show_progress=False)
    assert whole.notes == ()  # so small tasks are no samples


def test_clusterings_are_not_compared_by_samples(tmp_path: Path) -> None:
    embark.exchange.import_results(as_mteb(tmp_path, tasks=["TinyImageNetClustering"]))
    results = load_settings().results
    shutil.move(results, tmp_path / "published")
    [task] = embark.verify(
        CLIP, tasks=["TinyImageNetClustering"], against=tmp_path / "published", limit=100, run=False
    ).checks
    assert "depends on the number of items" in task.why


def test_a_task_that_fails_is_no_success(elsewhere_scored: tuple[list[embark.types.Task], Settings]) -> None:
    tasks, theirs = elsewhere_scored

    class Broken(NumbersModel):
        def embed(self, batch: Any) -> Array:
            if any("Asked3" in text for _, text in batch):
                raise ValueError("it is broken")
            return super().embed(batch)

    check = embark.verify(Broken("3"), tasks=tasks, against=theirs.results, show_progress=False, batch_size=8)
    [failed] = [task for task in check.checks if task.failed]
    assert failed.row.name == "Asked3"
    assert "it is broken" in failed.why
    assert check.status == 1


def test_the_name_in_the_tables_may_be_another(elsewhere_scored: tuple[list[embark.types.Task], Settings]) -> None:
    tasks, theirs = elsewhere_scored
    mine = embark.encoder(text=lambda texts: np.ones((len(texts), 4)), name="test/mine", revision="1")
    check = embark.verify(
        mine, tasks=tasks[:1], published_as="test/numbers", against=theirs.results, show_progress=False
    )
    assert check.status == 1
    assert check.sentence().startswith("test/mine (published as test/numbers): 0 of 1 score")
    assert embark.verify(mine, tasks=tasks[:1], against=theirs.results, show_progress=False).status == 3


def test_the_command_runs_and_compares_with_an_export(tmp_path: Path) -> None:
    tasks = ("-t", "PocketNameSTS", "-t", "PocketFlagZeroShot")
    assert invoke("run", "-m", "embark/random", *tasks).exit_code == 0
    embark.exchange.export_mteb(tmp_path / "export")
    words = ("verify", "-m", "embark/random", *tasks, "--results", tmp_path / "mine")
    result = invoke(*words, "--against", tmp_path / "export")
    assert result.exit_code == 0, result.output
    assert "embark/random: 2 of 2 scores are as published" in result.stdout
    assert len(list((tmp_path / "mine").rglob("Pocket*.json"))) == 2
    assert "difference" in invoke(*words, "--against", tmp_path / "export", "--format", "latex").stdout


def test_protocols_of_several_models_are_not_run() -> None:
    name = next(card.name for card in MODELS.values() if "ARK" in card.aliases and "text" in card.modalities)
    check = embark.verify(name, "ARK", protocol="captions")
    assert check.status == 3
    assert check.notes[0].startswith("not run, as captions takes stages")
