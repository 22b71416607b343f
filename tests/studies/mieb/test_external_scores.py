"""Embedding scores beside a table from elsewhere: MIEB's Figure 4, and the tables of users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embark.boards.matrix import load_matrix
from embark.studies.mieb.external_scores import correlate_external, mllm, read_external_scores
from embark.types import EmbarkError
from field import field


def test_an_outside_table_is_read_and_correlated(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(size=(12, 4))
    lines = [
        "model,MMMU,OCRBench",
        *(f"m{number},{values[number, :2].mean()},{'' if number < 2 else number}" for number in range(12)),
    ]
    (tmp_path / "mllm.csv").write_text("\n".join([*lines, "other/model,1,2", ""]))
    study = correlate_external(field(values, ["a", "a", "b", "b"]), read_external_scores(tmp_path / "mllm.csv"))
    assert study.values["a", "MMMU"].value == pytest.approx(1)
    assert (study.values["b", "OCRBench"].n, study.unmatched) == (10, ("other/model",))
    assert study.table().rows[0].cells[0] == "a"
    study.plot(tmp_path / "mllm.svg")
    assert "OCRBench" in (tmp_path / "mllm.svg").read_text()


def test_miebs_figure_4_is_made_from_shipped_scores(tmp_path: Path) -> None:
    """The paper says of Visual STS: over 99 % with OCRBench and TextVQA, least with CV-Bench 3D."""
    study = mllm()
    of_visual_sts = {measure: study.values["Visual STS", measure] for measure in study.measures}
    assert len(of_visual_sts) == 16
    assert {r.n for r in of_visual_sts.values()} == {7}
    assert of_visual_sts["OCRBench"].value > 0.99
    assert of_visual_sts["TextVQA"].value > 0.985
    assert min(of_visual_sts, key=lambda measure: of_visual_sts[measure].value) == "CV-Bench-3D"
    assert "arxiv.org/abs/2406.16860" in study.caption
    assert study.size[0] <= 7
    study.plot(tmp_path / "mllm.svg")
    assert "Embedding scores and multimodal LLMs" in (tmp_path / "mllm.svg").read_text(encoding="utf-8")


def test_measures_need_no_file() -> None:
    models = load_matrix("ARK").models
    table = {"MMMU": {model: float(number) for number, model in enumerate(models)}}
    study = mllm("ARK", table=table, correlation="spearman")
    assert (study.measures, study.correlation, study.unmatched) == (("MMMU",), "spearman", ())


def test_faulty_tables_say_where(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,MMMU\nm0,high\n")
    with pytest.raises(EmbarkError, match="line 2: 'high' under 'MMMU'"):
        read_external_scores(path)
    path.write_text("model\n")
    with pytest.raises(EmbarkError, match="header line"):
        read_external_scores(path)
    with pytest.raises(EmbarkError, match="Fewer than 3 models"):
        correlate_external(field(np.ones((4, 2))), {"MMMU": {"m0": 1.0, "nobody": 2.0}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,ocr,vqa,ocr\nm0,1,2,3\n", "columns 2 and 4 are both named 'ocr'"),
        ("model,ocr\nm0,1\n\nm1,2\nm0 ,3\n", "lines 2 and 5 are both about 'm0'"),
        ("model,ocr\nm0,1,5\n", "line 2: '5' stands in a column without a name"),
        ("model,ocr,\nm0,1,5\n", "line 2: '5' stands in a column without a name"),
    ],
)
def test_a_table_that_says_two_things_is_an_error_that_names_both(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(EmbarkError, match=said):
        read_external_scores(tmp_path / "t.csv")


def test_empty_columns_at_the_end_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,ocr,,\nm0,1,,\n,,,\n")
    assert read_external_scores(tmp_path / "t.csv") == {"ocr": {"m0": 1.0}}


def test_a_table_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("modèle,ocr\nm0,1\n".encode("latin-1"))
    with pytest.raises(EmbarkError, match=r"t\.csv is not UTF-8 text"):
        read_external_scores(tmp_path / "t.csv")


def test_one_model_under_two_names_is_an_error_and_so_is_one_name_of_two() -> None:
    matrix = replace(field(np.random.default_rng(0).uniform(size=(5, 2))), models=("o/a", "o/b", "o/c", "o/d", "p/d"))
    with pytest.raises(EmbarkError, match="has o/b twice: as 'b' and as 'o/b'"):
        correlate_external(matrix, {"ocr": {"o/a": 1.0, "b": 2.0, "o/b": 3.0, "c": 4.0}})
    with pytest.raises(EmbarkError, match="'d' in the table may be o/d or p/d"):
        correlate_external(matrix, {"ocr": {"a": 1.0, "b": 2.0, "d": 3.0}})
    assert correlate_external(matrix, {"ocr": {"a": 1.0, "b": 2.0, "p/d": 3.0}}).values["one", "ocr"].n == 3
