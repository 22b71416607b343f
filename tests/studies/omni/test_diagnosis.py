"""OmniSET's diagnosis: models whose behaviour is planted give the tables that they must."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embark
import samples_mmeb
from embark.items import digest, emoji
from embark.studies.diagnosis import Diagnosis
from embark.studies.omni.analyses import Asymmetry, Modalities, Retrieval, Shift
from embark.tasks.mmeb import OMNISET
from embark.tasks.omni import DIRECTIONS, KINDS, instruction
from embark.types import Array, EmbarkError, Item, Modality, ModelCard, Rendered, Text
from hub import FakeHub

CAST = [symbol.code for symbol in emoji.motions()]
WANTED = {instruction(*direction): direction[1] for direction in DIRECTIONS.values()}
Behaviour = Callable[[int, str, str], Array]  # of a query: its tuple, its modality, the one that it is told to find


@cache
def known() -> dict[bytes, tuple[int, Modality]]:
    """The tuple and the modality of every item, by its content."""
    return {digest(emoji.views(kind)[code].parts): (number, kind) for kind in KINDS for number, code in enumerate(CAST)}


class Planted(embark.Encoder):
    """A model that knows every item, and embeds queries as it is planted to."""

    def __init__(self, name: str, query: Behaviour, modalities: tuple[Modality, ...] = KINDS) -> None:
        self.card = ModelCard(f"planted/{name}", "1", "functions", modalities, instructed=True, stored="float32")
        self.query = query
        self.embedded = 0

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        number, kind = known()[digest(item.parts)]
        return Rendered((Text(f"{role} {number} {kind} {WANTED.get(instruction or '', '')}"),))

    def embed(self, batch: Sequence[Any]) -> Array:
        self.embedded += len(batch)
        return np.stack([self._vector(*content.value.split(" ")) for [content] in batch]).astype(np.float32)

    def _vector(self, role: str, number: str, kind: str, wanted: str) -> Array:
        return self.query(int(number), kind, wanted) if role == "query" else vector(int(number), kind)


def vector(number: int, kind: str, meaning: float = 1.0, modality: float = 1.0) -> Array:
    """A direction for the meaning, and one for the modality."""
    out = np.zeros(len(CAST) + len(KINDS))
    out[number] = meaning
    out[len(CAST) + KINDS.index(kind)] = modality
    return out


PLANTED: dict[str, Behaviour] = {
    "perfect": lambda number, kind, wanted: vector(number, wanted or kind, meaning=0.9),
    "own": lambda number, kind, wanted: vector(number, kind, meaning=0.1),
    "video": lambda number, kind, wanted: vector(number, "video", meaning=0.1),
    "deaf": lambda number, kind, wanted: vector(number, kind),
}


def diagnosed(name: str, **options: Any) -> Diagnosis:
    return embark.diagnose_omni(Planted(name, PLANTED[name]), method="pca", show_progress=False, **options)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> embark.Settings:
    """A home and results for the diagnoses that several tests look at."""
    root = tmp_path_factory.mktemp("omni")
    return embark.load_settings(root / "home", root / "results")


@pytest.fixture(scope="module")
def perfect(settings: embark.Settings) -> tuple[Planted, Diagnosis]:
    """A model that does as it is told, and its diagnosis."""
    model = Planted("perfect", PLANTED["perfect"])
    return model, embark.diagnose_omni(model, method="pca", show_progress=False, settings=settings)


@pytest.fixture(scope="module")
def films(settings: embark.Settings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Diagnosis, Path]:
    """The diagnosis of a model that always finds films, and the folder of its report."""
    folder = tmp_path_factory.mktemp("films")
    return diagnosed("video", out=folder, settings=settings), folder


@pytest.fixture(scope="module")
def half_obedient(settings: embark.Settings) -> Diagnosis:
    """The diagnosis of a model that obeys on every other tuple, in all directions alike."""
    model = Planted("half", lambda number, kind, wanted: vector(number, (wanted if number % 2 else "") or kind))
    return embark.diagnose_omni(model, method="pca", show_progress=False, settings=settings)


def columns(diagnosis: Diagnosis, study: str) -> dict[str, list[Any]]:
    """The columns of a study's table, without its total."""
    names, lines = diagnosis.analyses[study].table().flat()
    rows = [line for line in lines if line[0] != "mean"]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def test_a_perfect_model_obeys(perfect: tuple[Planted, Diagnosis]) -> None:
    _, diagnosis = perfect
    table = columns(diagnosis, "retrieval")
    assert len(table["direction"]) == 12
    assert {*table["Hit@1"]} == {*table["MRR"]} == {1.0}
    assert {*table["query first"]} == {0.0}
    assert {*table["of"]} == {"target's"}
    np.testing.assert_allclose(table["share"], 1.0)  # 16 candidates of every modality: more than ten
    modalities = diagnosis.analyses["modalities"]
    assert isinstance(modalities, Modalities)
    np.testing.assert_allclose(modalities.matrix("target", 1)[1], np.eye(4))
    np.testing.assert_allclose(modalities.matrix("query", 1)[1], (1 - np.eye(4)) / 3)
    sensitivity = columns(diagnosis, "sensitivity")
    np.testing.assert_allclose(sensitivity["1 − cos(raw, instructed)"], 1 / 1.81, atol=1e-6)
    shift = columns(diagnosis, "shift")
    np.testing.assert_allclose(shift["Δ distance"], -1 / np.sqrt(2 * 1.81), atol=1e-6)  # negative is closer
    assert {*shift["closer"]} == {1.0}
    assert {*columns(diagnosis, "asymmetry")["Δ MRR"]} == {0.0}
    assert "nearer to their targets in 12 of 12 directions" in " ".join(diagnosis.findings)


@pytest.mark.slow
def test_a_model_that_stays_in_the_modality_of_the_query() -> None:
    diagnosis = diagnosed("own")
    table = columns(diagnosis, "retrieval")
    assert {*table["Hit@1"]} == {0.0}
    assert {*table["query first"]} == {1.0}
    assert {*table["of"]} == {"query's"}
    np.testing.assert_allclose(table["share"], 1.0)
    modalities = diagnosis.analyses["modalities"]
    assert isinstance(modalities, Modalities)
    np.testing.assert_allclose(modalities.matrix("query")[1], np.eye(4))
    np.testing.assert_allclose(modalities.matrix("target")[1], (1 - np.eye(4)) / 3)


@pytest.mark.slow
def test_a_model_that_always_finds_films(films: tuple[Diagnosis, Path]) -> None:
    diagnosis, _ = films
    table = columns(diagnosis, "retrieval")
    right = [float(name.endswith("V")) for name in table["direction"]]
    assert table["Hit@1"] == right
    assert {*table["dominant"]} == {"video"}
    np.testing.assert_allclose(table["share"], 1.0)
    asymmetry = columns(diagnosis, "asymmetry")
    assert asymmetry["pair"][1] == "T→V − V→T"
    assert asymmetry["Δ Hit@1"] == [0.0, 1.0, 0.0, 1.0, 0.0, -1.0]
    low, high = asymmetry["Δ Hit@1 low"][1], asymmetry["Δ Hit@1 high"][1]
    assert 0 < low <= 1.0 <= high


@pytest.mark.slow
def test_a_model_that_ignores_instructions() -> None:
    diagnosis = diagnosed("deaf")
    assert {*columns(diagnosis, "retrieval")["query first"]} == {1.0}
    assert {*columns(diagnosis, "sensitivity")["1 − cos(raw, instructed)"]} == {0.0}
    assert {*columns(diagnosis, "shift")["Δ distance"]} == {0.0}
    assert {*columns(diagnosis, "shift-maps")["queries that move"]} == {0}
    assert any("the model does not read it" in finding for finding in diagnosis.findings)


@pytest.mark.slow
def test_scores_are_those_of_a_run() -> None:
    model = Planted("perfect", lambda number, kind, wanted: vector(number, wanted or kind, meaning=(number % 3) / 9))
    diagnosis = embark.diagnose_omni(model, method="pca", show_progress=False)
    result = embark.evaluate(model, "PocketOmni", show_progress=False).results[0]
    means = {record.subset: record.score for record in result.records}
    scores = dict(zip(DIRECTIONS, columns(diagnosis, "retrieval")["MRR"], strict=True))
    assert 0.1 < result.score < 0.9
    assert scores == pytest.approx(means)


def test_a_second_diagnosis_embeds_nothing(settings: embark.Settings, perfect: tuple[Planted, Diagnosis]) -> None:
    model, first = perfect
    embedded = model.embedded
    assert 0 <= embedded - 200 * (4 + 12 + 4) < 50  # candidates, queries with and without instructions; a few checks
    second = embark.diagnose_omni(model, method="pca", embed=False, show_progress=False, settings=settings)
    assert model.embedded == embedded
    assert str(first) == str(second)


@pytest.mark.slow
def test_modalities_that_a_model_does_not_take_are_left_out() -> None:
    model = Planted("silent", PLANTED["perfect"], ("text", "image", "video"))
    diagnosis = embark.diagnose_omni(model, method="pca", show_progress=False)
    table = columns(diagnosis, "distribution")
    assert table["direction"] == ["T→I", "T→V", "I→T", "I→V", "V→T", "V→I"]
    assert {*table["candidates"]} == {"48"}
    assert diagnosis.notes == ("left out, as planted/silent does not take it: audio",)
    with pytest.raises(EmbarkError, match="planted/blind takes too few modalities for any direction of PocketOmni"):
        embark.diagnose_omni(Planted("blind", PLANTED["perfect"], ("text",)), show_progress=False)


def test_tasks_of_other_shapes_are_refused() -> None:
    model = embark.get_model("embark/random")
    with pytest.raises(EmbarkError, match="PocketNameToImage: no list of candidates for each query"):
        embark.diagnose_omni(model, "PocketNameToImage", show_progress=False)
    with pytest.raises(EmbarkError, match="PocketClockReading mixes no modalities in the candidates of a query"):
        embark.diagnose_omni(model, "PocketClockReading", show_progress=False)
    with pytest.raises(EmbarkError, match=r"no format of figures named '\.gif'"):
        embark.diagnose_omni(model, figures="gif")
    with pytest.raises(EmbarkError, match=r"no method for maps named 'tsn'\. Did you mean tsne"):
        embark.diagnose_omni(model, method="tsn")


@pytest.mark.slow
def test_a_folder_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    for diagnose in (embark.diagnose_omni, embark.diagnose_ark):
        with pytest.raises(EmbarkError, match=r"No report can be written to .*taken: .*\. Name another folder\."):
            diagnose("no/such-model", out=taken)  # before the model is even looked for


def test_the_report_has_every_table_and_figure(films: tuple[Diagnosis, Path]) -> None:
    diagnosis, folder = films
    report = (folder / "report.md").read_text()
    assert report.startswith("# planted/video on PocketOmni")
    for name, study in diagnosis.analyses.items():
        drawing = (folder / "figures" / f"{name}.svg").read_text()
        text = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawing)).replace("\u00a0", " ")
        assert study.title in text
        assert "n = 200 queries" in study.caption.replace("\u00a0", " ")
        assert study.caption in report
        assert f"(figures/{name}.svg)" in report
        with (folder / "tables" / f"{name}.csv").open() as file:
            assert len(list(csv.reader(file))) == 1 + len(study.table().rows)
    shift = diagnosis.analyses["shift"]
    assert isinstance(shift, Shift)
    assert all("negative: the instruction brings the query closer" in text for text in (shift.caption, report))
    image = folder / "figures" / "shift.svg"
    assert shift.svg().encode() == image.read_bytes()


@pytest.mark.slow
def test_the_mean_moves_with_tuples_that_directions_share(half_obedient: Diagnosis) -> None:
    """Twelve directions over the same 200 tuples tell less than 2,400 independent queries would."""
    retrieval = half_obedient.analyses["retrieval"]
    assert isinstance(retrieval, Retrieval)
    mean = retrieval.table().rows[-1].cells[2]
    assert isinstance(mean, embark.Score)
    assert mean.value == pytest.approx(0.5, abs=0.01)
    half = (mean.high - mean.low) / 2
    assert half == pytest.approx(1.97 * 0.5 / np.sqrt(200), rel=0.1)  # not 0.5 / sqrt(2400)


def test_asymmetry_is_paired(half_obedient: Diagnosis) -> None:
    """Both ways fail on the same tuples: the difference is certain, though both scores are not."""
    asymmetry = half_obedient.analyses["asymmetry"]
    assert isinstance(asymmetry, Asymmetry)
    for test in asymmetry.differences("hit"):
        assert test.value == 0
        assert max(-test.low, test.high) < 0.02


def test_omniset_itself_is_diagnosed(hub: FakeHub) -> None:
    samples_mmeb.publish(hub, OMNISET[0])
    diagnosis = embark.diagnose_omni("embark/random", "OmniSET", method="pca", show_progress=False)
    assert diagnosis.title == "embark/random on OmniSET"
    table = columns(diagnosis, "distribution")
    assert len(table["direction"]) == 12
    assert table["instruction"][0] == "Find the image that best matches the given text:"
    assert {*columns(diagnosis, "retrieval")["query first"]} == {1.0}
