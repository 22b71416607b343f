"""Planted faults are named, by what records state, where differences are, and trials."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
from embark.models.encoder import Encoder
from embark.results import Record, TaskResult
from embark.run import causes
from embark.run.causes import Case
from embark.run.verdicts import Comparable, TaskCheck
from embark.run.verification import Verification
from embark.settings import Settings, load_settings
from embark.stats.reproduction import Tolerance
from embark.tables import Score
from embark.tasks import TASKS
from embark.types import Array, ModelCard
from numbers_model import NumbersModel, number_task, seeded

Scored = tuple[list[embark.Task], Settings]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Scored:
    """Tasks with and without an instruction, and a folder with the scores of a sound model."""
    root = tmp_path_factory.mktemp("published")
    theirs = load_settings(root / "home", root / "results")
    tasks = [number_task(f"Plain{number}", theirs) for number in range(4)]
    tasks += [number_task(f"Asked{number}", theirs, instructed=True) for number in range(4)]
    embark.evaluate(NumbersModel(), tasks, settings=theirs, show_progress=False)
    return tasks, theirs


def verified(model: Encoder, scored: Scored, results: Path) -> Verification:
    tasks, theirs = scored
    settings = load_settings(theirs.home, results)
    return embark.verify(model, tasks=tasks, against=theirs.results, settings=settings, show_progress=False)


@pytest.mark.slow
def test_prompts_that_are_not_applied(scored: Scored, tmp_path: Path) -> None:
    check = verified(NumbersModel("faulty", prompted=False), scored, tmp_path)
    assert check.status == 1
    assert [task.row.name for task in check.of_verdict("differs")] == [f"Asked{number}" for number in range(4)]
    [cause] = check.causes
    assert cause.name == "prompts not applied"
    assert cause.tasks == tuple(f"Asked{number}" for number in range(4))
    assert "4 of 4 tasks with an instruction differ, 0 of 4 without; p = 0.014" in cause.evidence
    assert "the model's input is the same without the instruction on 4 of them" in cause.evidence
    assert "likely cause: prompts not applied (" in str(check.table())
    assert json.loads(json.dumps(check.as_dict()))["causes"][0]["name"] == "prompts not applied"


def test_scores_on_disk_tell_where_the_differences_are(scored: Scored, tmp_path: Path) -> None:
    """Without the model, nobody can tell whether the instruction was read."""
    verified(NumbersModel("faulty", prompted=False), scored, tmp_path)
    tasks, theirs = scored
    settings = load_settings(theirs.home, tmp_path)
    check = embark.verify("test/numbers", tasks=tasks, against=theirs.results, settings=settings, run=False)
    assert [cause.name for cause in check.causes] == ["other prompts than the published ones, or none"]


@pytest.mark.slow
def test_prompts_that_the_published_score_lacks(scored: Scored, tmp_path: Path) -> None:
    tasks, theirs = scored
    published = load_settings(theirs.home, tmp_path / "without")
    embark.evaluate(NumbersModel("unprompted", prompted=False), tasks, settings=published, show_progress=False)
    mine = load_settings(theirs.home, tmp_path / "mine")
    check = embark.verify(NumbersModel(), tasks=tasks, against=published.results, settings=mine, show_progress=False)
    assert check.causes[0].name == "published without the instruction"
    assert "3 of 3 tried come out as published" in check.causes[0].evidence


@pytest.mark.slow
def test_another_similarity(scored: Scored, tmp_path: Path) -> None:
    check = verified(NumbersModel("dot", similarity="dot"), scored, tmp_path)
    [cause] = check.causes
    assert cause.name == "other normalization: compared by cosine"
    assert "so scored, 3 of 3 tried come out as published" in cause.evidence


def test_a_similarity_that_the_published_score_had(scored: Scored, tmp_path: Path) -> None:
    tasks, theirs = scored
    published = load_settings(theirs.home, tmp_path / "dot")
    embark.evaluate(NumbersModel("dot", similarity="dot"), tasks, settings=published, show_progress=False)
    mine = load_settings(theirs.home, tmp_path / "mine")
    check = embark.verify(NumbersModel(), tasks=tasks, against=published.results, settings=mine, show_progress=False)
    assert [cause.name for cause in check.causes] == ["other normalization: compared by dot"]


class LongNumbers(NumbersModel):
    """Vectors whose lengths differ ten thousandfold, or, as published, unit vectors."""

    def _vector(self, prompt: str, text: str) -> Array:
        own = np.asarray(super()._vector(prompt, text))
        length = 1.0 if self.card.revision == "unit" else 10_000.0 ** (zlib.crc32(text.encode()) % 100 / 100)
        return length * own / np.linalg.norm(own)


@pytest.mark.slow
def test_normalization_of_vectors_that_a_probe_learns_from(tmp_path: Path) -> None:
    """What compares vectors by their cosine agrees, what learns from them does not."""
    theirs = load_settings(tmp_path / "home", tmp_path / "published")
    tasks = [number_task(f"Plain{number}", theirs) for number in range(3)]
    for number in range(3):
        rows = [{"text": f"Probe{number} {row} {row % 5}", "label": f"class {row % 5}"} for row in range(500)]
        tasks.append(embark.task(rows, "probe", name=f"Probe{number}", settings=theirs))
    embark.evaluate(LongNumbers("unit"), tasks, settings=theirs, show_progress=False)
    mine = load_settings(tmp_path / "home", tmp_path / "mine")
    check = embark.verify(LongNumbers("raw"), tasks=tasks, against=theirs.results, settings=mine, show_progress=False)
    assert [task.row.name for task in check.of_verdict("differs")] == [f"Probe{number}" for number in range(3)]
    assert {cause.name for cause in check.causes} == {"normalization of the training vectors"}
    assert "so scored, 3 of 3 tried come out as published" in check.causes[0].evidence


@pytest.mark.slow
def test_pictures_that_are_preprocessed_otherwise(tmp_path: Path) -> None:
    """A number is the shade of a picture's corner; the faulty model swaps dark and bright."""

    def model(faulty: bool) -> Encoder:
        def texts(values: list[str]) -> Array:
            return np.stack([seeded(f"number {value.split()[-1]}") for value in values])

        def pictures(values: list[Any]) -> Array:
            shades = [int(np.asarray(value.convert("L"))[0, 0]) for value in values]
            noise = [seeded(str(np.asarray(value).tolist())) for value in values]
            numbers = [255 - shade if faulty else shade for shade in shades]
            return np.stack([seeded(f"number {n}") + 0.9 * own for n, own in zip(numbers, noise, strict=True)])

        revision = "faulty" if faulty else "sound"
        return embark.encoder(text=texts, image=pictures, name="test/shades", revision=revision)

    theirs = load_settings(tmp_path / "home", tmp_path / "published")
    tasks = [number_task(f"Plain{number}", theirs) for number in range(4)]
    for number in range(4):
        rng = np.random.default_rng(number)
        shades = rng.choice(256, 80, replace=False).astype(np.uint8)
        pages = rng.integers(0, 256, (80, 8, 8), np.uint8)
        pages[:, 0, 0] = shades
        rows = [{"image": page, "text": f"number {shade}"} for page, shade in zip(pages, shades, strict=True)]
        tasks.append(embark.task(rows, "retrieval", name=f"Seen{number}", settings=theirs))
    embark.evaluate(model(False), tasks, settings=theirs, show_progress=False)
    mine = load_settings(tmp_path / "home", tmp_path / "mine")
    check = embark.verify(model(True), tasks=tasks, against=theirs.results, settings=mine, show_progress=False)
    assert [task.row.name for task in check.of_verdict("differs")] == [f"Seen{number}" for number in range(4)]
    [cause] = check.causes
    assert cause.name == "other preprocessing of images"
    assert "4 of 4 tasks with images differ, 0 of 4 without" in cause.evidence


@pytest.mark.slow
def test_other_weights_are_everywhere(scored: Scored, tmp_path: Path) -> None:
    class Worse(NumbersModel):
        def _vector(self, prompt: str, text: str) -> Array:
            own = np.asarray(super()._vector(prompt, text))
            return own / np.linalg.norm(own) + 2 * np.random.default_rng(len(text)).normal(size=len(own)) / 5

    check = verified(Worse("worse"), scored, tmp_path)
    assert [cause.name for cause in check.causes] == ["other weights, pooling or normalization"]


def test_what_agrees_has_no_cause(scored: Scored, tmp_path: Path) -> None:
    assert verified(NumbersModel(), scored, tmp_path).causes == ()


# ── what records state, and concentration, on made-up cases ──────────────────────────────────────────────────────────


def case(task: str, differs: bool, revision: str = "b" * 40, dataset: str = "", **more: object) -> Case:
    row = TASKS[task]
    loaded = more.get("loaded", {})
    warnings = more.get("warnings", ())
    record = Record(
        "m", revision, task, "test", "default", (), row.metric, 0.5, (0.4, 0.6), {}, "", "",
        loaded=loaded, warnings=warnings,  # type: ignore[arg-type]
    )  # fmt: skip
    result = TaskResult("m", revision, task, dataset, (record,), 0.5, (0.4, 0.6), 0.0)
    reference = replace(result, revision="b" * 40, score=0.7 if differs else 0.5)
    scores = Comparable(result, reference, Score(0.5, 0.4, 0.6), Tolerance(0.001, 0.01), p=0.001 if differs else 1.0)
    return Case(row, scores, differs)


def test_another_revision_of_the_data_is_stated() -> None:
    same = TASKS["STL10"].source.revision
    cases = [case("STL10", True, dataset="a" * 40), case("CIFAR10ZeroShot", False), case("STL10", True, dataset=same)]
    cause = causes.data_revision(cases)
    assert cause is not None
    assert cause.tasks == ("STL10",)
    assert cause.sentence() == (
        "another revision of the data (STL10 was scored on another revision than the row names)"
    )
    imported = case("DTD", True, warnings=("made with revision 1234567 of the data, where the row has 7654321",))
    cause = causes.data_revision([imported, case("STL10", False, dataset="a" * 40)])
    assert cause is not None
    assert cause.evidence.endswith("; so were 1 task that agree")
    assert causes.data_revision([case("STL10", False, dataset="a" * 40)]) is None


def test_another_revision_of_the_model_is_stated() -> None:
    cause = causes.model_revision([case("STL10", True, revision="a" * 40), case("DTD", True)])
    assert cause is not None
    assert cause.tasks == ("STL10",)
    assert cause.evidence == f"published for {'b' * 12}, scored at {'a' * 12}"
    assert causes.model_revision([case("STL10", True, revision="main")]) is None


def test_pictures_decoded_on_a_gpu_are_stated() -> None:
    cause = causes.device_pixels([case("STL10", True, loaded={"pixels": "cuda"}), case("DTD", True)])
    assert cause is not None
    assert cause.name == "other preprocessing of pictures"
    assert cause.tasks == ("STL10",)
    assert causes.device_pixels([case("STL10", True)]) is None


def test_differences_on_probes_point_at_normalization() -> None:
    probes = ["STL10", "DTD", "EuroSAT", "Country211"]
    others = ["Winoground", "SugarCrepe", "CIRRIT2IRetrieval", "STS13VisualSTS", "Fashion200kI2TRetrieval"]
    cases = [*(case(task, True) for task in probes), *(case(task, False) for task in others)]
    [cause] = causes.concentrated(cases)
    assert cause.name == "normalization of the training vectors"
    assert cause.tasks == tuple(probes)


def rows_like(count: int, **properties: object) -> list[str]:
    """The names of the first rows whose modalities, evaluator, templates and instructions are these."""

    def fits(row: embark.Task) -> bool:
        return (
            set(row.modalities) == properties["modalities"]
            and bool(row.instructions) == properties.get("instructed", False)
            and bool(row.templates) == properties.get("templates", False)
            and row.evaluator in ("retrieval", "choice", "zeroshot")
        )

    names = [row.name for row in TASKS.match("*") if fits(row)]
    assert len(names) >= count
    return names[:count]


INSTRUCTED = {"instructed": True}
TEXT = {"modalities": {"text"}}
PICTURES = {"modalities": {"text", "image"}}
FILMS = {"modalities": {"text", "video"}}
SOUNDS = {"modalities": {"text", "audio"}}


@pytest.mark.parametrize(
    ("differing", "agreeing", "cause"),
    [
        ([PICTURES, PICTURES | INSTRUCTED], [TEXT, SOUNDS | INSTRUCTED], "other preprocessing of images"),
        ([FILMS | INSTRUCTED], [PICTURES | INSTRUCTED, TEXT], "other preprocessing of videos"),
        ([SOUNDS | INSTRUCTED], [PICTURES | INSTRUCTED, TEXT], "other preprocessing of sounds"),
        ([PICTURES | {"templates": True}], [PICTURES, TEXT], "other class names or prompts"),
        ([PICTURES | INSTRUCTED], [PICTURES, TEXT], "other prompts than the published ones, or none"),
    ],
)
def test_differences_on_one_kind_of_task_point_at_one_cause(
    differing: list[dict[str, object]], agreeing: list[dict[str, object]], cause: str
) -> None:
    cases = [case(name, True) for kind in differing for name in rows_like(5, **kind)]
    cases += [case(name, False) for kind in agreeing for name in rows_like(5, **kind)]
    checks = [TaskCheck(c.row, c.scores) for c in cases]
    assert [named.name for named in causes.likely_causes(checks, None, load_settings())] == [cause]


def test_few_or_scattered_differences_point_at_nothing() -> None:
    names = ["STL10", "Winoground", "DTD", "SugarCrepe", "EuroSAT", "CIRRIT2IRetrieval"]
    cases = [case(task, number < 2) for number, task in enumerate(names)]
    assert causes.concentrated(cases) == []
    assert causes.everywhere(cases) == []


@pytest.mark.slow
def test_other_pooling_is_tried(tmp_path: Path) -> None:
    """A tiny BERT whose published scores are of the mean, and ours of the first token."""
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertModel

    from tiny import wordpiece

    torch.manual_seed(0)
    tokenizer = wordpiece()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes)
    folder = tmp_path / "bert"
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    theirs = load_settings(tmp_path / "home", tmp_path / "published")
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "page", "house", "tree", "bird", "sea"])
    texts = [" ".join(rng.choice(words, 6)) for _ in range(160)]
    pairs = [{"left": a, "right": b, "score": len({*a.split()} & {*b.split()})} for a, b in zip(texts, texts[1:])]  # noqa: B905, RUF007
    task = embark.task(pairs, "sts", name="Words", settings=theirs)

    def model(pooling: str) -> Encoder:
        options = {"pooling": pooling}
        card = ModelCard("test/bert", "1", "text", ("text",), source=str(folder), options=options, parameters=10_000)
        return embark.get_model(card)

    embark.evaluate(model("mean"), [task], settings=theirs, show_progress=False)
    mine = load_settings(tmp_path / "home", tmp_path / "mine")
    check = embark.verify(model("first"), tasks=[task], against=theirs.results, settings=mine, show_progress=False)
    assert check.status == 1
    assert [cause.name for cause in check.causes] == ["other pooling: mean"]
