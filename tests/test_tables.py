"""Tables: the same scores in every format, rounded for people and exact for machines."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embark.boards.leaderboards import rank_models
from embark.catalogue import UnknownName
from embark.results import Record, TaskResult
from embark.tables import (
    FORMATS,
    Exact,
    Interval,
    Note,
    Row,
    Score,
    Table,
    comparable,
    footnoted,
    in_points,
    named,
    rounded,
    signed_points,
    without_advice,
)
from embark.tables.terminal import print_table
from embark.types import Source, Task


def task(name: str, category: str, chance: float | None = 0.25) -> Task:
    source = Source("test/data", "1")
    return Task(name, "Test", "retrieval", "none", source, "accuracy", category, ("text",), chance=chance)


TASKS = (task("Flags", "Retrieval"), task("Clocks", "Reasoning", None), task("Names", "Retrieval"))


def result(model: str, name: str, score: float, *warnings: str, revision: str = "1") -> TaskResult:
    interval = (score - 0.05, score + 0.05)
    record = Record(
        model, revision, name, "test", "default", ("eng",), "accuracy", score, interval, {}, "p", "e", warnings=warnings
    )
    return TaskResult(model, revision, name, "1", (record,), score, interval, 0.0)


def by_task(tasks: Sequence[Task], results: Sequence[TaskResult]) -> Table:
    return rank_models(tasks, results).tasks_table()


NAMES = ("Flags", "Clocks", "Names")
COMPLETE = [result("org/one", "Flags", 1 / 3), result("org/one", "Clocks", 0.5), result("org/one", "Names", 2 / 3)]
PARTIAL = [result("org/two", "Flags", 0.9, "one item was left out")]


@pytest.fixture
def table() -> Table:
    return by_task(TASKS, COMPLETE + PARTIAL)


def test_text_is_what_print_shows(table: Table) -> None:
    assert str(table).splitlines() == [
        "task                metric    chance         one             two",
        "— Retrieval",
        "Flags               accuracy    25.0  33.3 ± 5.0  90.0 ± 5.0 (a)",
        "Names               accuracy    25.0  66.7 ± 5.0               –",
        "— Reasoning",
        "Clocks              accuracy          50.0 ± 5.0               –",
        "----------------------------------------------------------------",
        "Mean of categories                    50.0 ± 3.1  90.0 ± 5.0 (b)",
        "(a) one item was left out",
        "(b) over 1 of 3 tasks",
    ]


def test_a_narrow_terminal_gets_fewer_columns_and_then_several_tables(table: Table) -> None:
    assert table.fitted(table.width()) == [table]
    [narrow] = table.fitted(50)
    assert narrow.columns == ("task", "one", "two")
    assert narrow.width() <= 50
    pieces = table.fitted(36)
    assert [piece.columns for piece in pieces] == [("task", "one"), ("task", "two")]
    assert [row.cells[1] for row in pieces[1].rows] == [row.cells[4] for row in table.rows]


def test_where_a_name_and_a_score_do_not_fit_names_are_wrapped(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    print_table(table, 30, limited=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "task                       one",
        "— Retrieval",
        "Flags               33.3 ± 5.0",
        "Names               66.7 ± 5.0",
        "— Reasoning",
    ]
    assert lines[-1] == "(b) over 1 of 3 tasks"
    assert all(len(line) <= 30 or line.startswith("(") for line in lines)
    task = "VidoreSyntheticDocQAHealthcareIndustryRetrieval"
    columns = ("task", "openai/clip-vit-base-patch32", "google/siglip-base", "difference", "p", "p (Holm)", "verdict")
    wide = Table(columns, (Row((task, 0.5, 0.25, 0.25, 0.001, 0.012, "win")),))
    print_table(wide, 80, limited=True)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    pieces = [line.split()[0] for line in lines if not line.startswith(("task", " ", "("))]
    assert "".join(pieces) == task
    assert lines[-1] == "(a wider terminal shows p and p (Holm), too)"
    print_table(wide, 80, limited=False)
    assert task in capsys.readouterr().out


def test_wide_letters_take_two_columns_of_a_terminal() -> None:
    table = Table(("task", "n"), (Row(("言語", 1)), Row(("four", 2))))
    assert str(table).splitlines() == ["task  n", "言語  1", "four  2"]


def test_columns_by_choice_and_the_best_in_bold(table: Table) -> None:
    chosen = table.only(["two", "ta*", "one"])
    assert chosen.columns == ("two", "task", "one")
    assert r"$\mathbf{90.0} \pm 5.0$ (a) & Flags & $33.3 \pm 5.0$ \\" in chosen.format("latex").splitlines()
    assert chosen.only("task").notes == ()  # footnotes go with their scores
    with pytest.raises(UnknownName, match="There is no column named 'three'"):
        table.only("three")


@pytest.mark.parametrize("style", ["csv", "markdown", "latex", "json"])
def test_exported_notes_have_no_advice_on_the_command_line(style: str) -> None:
    marks = (Note("in part not zero-shot", "--zero-shot-only leaves them out"),)
    rows = (Row(("a", Score(0.5, 0.4, 0.6, marks=marks))),)
    notes = (
        Note("the 3 models share 2 of the tasks", "--comparable, or comparable=True in Python, ranks them over those"),
        Note("5 more models follow", "--top, or top in Python"),
        Note("2 vectors are damaged", "embark store repair leaves them out"),
        "kept 3 of 5 (p-values are two-sided)",
    )
    table = footnoted(Table(("model", "score"), rows, notes))
    for shown in (str(table), table.format("html"), table.outgoing().format("html")):
        assert "the 3 models share 2 of the tasks (--comparable, or comparable=True in Python, ranks" in shown
        assert "(a) in part not zero-shot (--zero-shot-only leaves them out)" in shown
    for exported in (table.format(style), table.outgoing().format(style)):
        assert "--" not in exported.replace(":---", "").replace("---:", "")
        assert "embark" not in exported
        assert "in part not zero-shot" in exported
        if style != "csv":  # which has footnotes alone
            assert "5 more models follow" in exported
            assert "kept 3 of 5 (p-values are two-sided)" in exported


def test_a_note_is_text_with_parts_that_copies_keep() -> None:
    note = Note("rank on other tasks", "--top shows more", column="95 %")
    assert note == str(note) == "rank on other tasks (--top shows more)"
    for copied in (pickle.loads(pickle.dumps(note)), copy.deepcopy(note)):
        assert (copied.text, copied.advice, copied.column) == (note.text, note.advice, note.column)
    table = Table(("model", "95 %"), (Row(("a", "1–2")),), (note, "95 %: of what?"))
    assert table.only("model").notes == ("95 %: of what?",)
    assert without_advice("as it is (--top)") == "as it is (--top)"


def test_the_best_is_the_best_of_several_models(table: Table) -> None:
    best = {row.cells[0]: best for row, best in zip(table.rows, table.best, strict=True)}
    assert best["Flags"] == (False, False, False, False, True)
    assert not any(best["Names"])  # nobody to compare with
    ranked = rank_models(TASKS, COMPLETE + PARTIAL).table()
    one, two = ranked.best
    assert not any(one + two)  # their means are over other tasks


def test_means_over_different_tasks_are_not_set_in_bold_together() -> None:
    four = [result(f"org/{model}", name, score) for model, score in (("a", 0.5), ("b", 0.6)) for name in NAMES]
    whole = rank_models(TASKS, four + PARTIAL)
    for style, bold in (("latex", r"\mathbf{60.0}"), ("html", "<b>60.0")):
        table = whole.table().format(style)
        assert bold in table
        assert r"\mathbf{90.0}" not in table
        assert "<b>90.0" not in table
    by_task = whole.tasks_table().format("latex").splitlines()
    assert r"\mathbf{90.0}" in next(line for line in by_task if line.startswith("Flags"))  # of one task, all compare
    assert r"\mathbf{60.0}" in next(line for line in by_task if "Mean of categories" in line)


def test_comparable_means_are_over_the_same_tasks_and_enough_of_them() -> None:
    def mean(value: float, *over: str, of: int = 10) -> Score:
        return Score(value, value, value, len(over), of, over=frozenset(over))

    nine, other, ten = "abcdefghi", "bcdefghij", "abcdefghij"
    assert comparable([mean(1, *nine), mean(2, *nine), mean(3, *ten)]) == [True, True, False]
    assert comparable([mean(1, *nine), mean(3, *ten), None]) == [False, True, False]  # the larger of two alike
    assert comparable([mean(1, *nine), mean(2, *other)]) == comparable([mean(2, *nine), mean(1, *other)])
    assert comparable([mean(1, "a"), mean(2, "a")]) == [False, False]  # too few of the tasks
    assert comparable([Score(1, 1, 1, 9, 10), Score(1, 1, 1)]) == [False, True]  # of unknown tasks
    assert comparable([]) == []


@given(st.integers(-4000, 4000), st.integers(1, 2))
def test_a_number_is_rounded_once_and_never_to_minus_zero(quarters: int, digits: int) -> None:
    number = quarters / 4
    exact = Decimal(number).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    assert Decimal(rounded(number, digits)) == exact
    assert rounded(number, digits) == in_points(number / 100, digits) or number / 100 * 100 != number
    assert not rounded(-abs(number) / 1e6, digits).startswith("-") or abs(number) > 1e3
    assert Decimal(rounded(number, digits, sign=True)) == exact
    assert signed_points(-0.0004).text == "+0.0"


def test_what_is_no_number_is_null_in_json() -> None:
    table = Table(("task", "one"), (Row(("Flags", Score(float("nan"), float("nan"), float("nan")))),))
    assert json.loads(table.format("json"), parse_constant=pytest.fail)["rows"][0]["one"]["score"] is None


def test_markdown(table: Table) -> None:
    lines = table.format("markdown").splitlines()
    assert lines[:4] == [
        "| task | metric | chance | one | two |",
        "| :--- | :--- | ---: | ---: | ---: |",
        "| **Retrieval** |  |  |  |  |",
        "| Flags | accuracy | 25.0 | 33.3 ± 5.0 | 90.0 ± 5.0 (a) |",
    ]
    assert lines[5:8] == [
        "| **Reasoning** |  |  |  |  |",
        "| Clocks | accuracy |  | 50.0 ± 5.0 | – |",
        "| **Mean of categories** |  |  | 50.0 ± 3.1 | 90.0 ± 5.0 (b) |",
    ]
    assert "(b) over 1 of 3 tasks" in lines
    assert r"| a\|b |" in Table(("name",), (Row(("a|b",)),)).format("markdown")
    assert r"| \$x_1\$ |" in Table(("name",), (Row(("$x_1$",)),)).format("markdown")  # else a formula


def test_long_names_over_scores_take_several_lines() -> None:
    score = Score(0.5, 0.5, 0.5)
    names = (
        "a model with a long name",
        "ImageClassification",
        "siglip-so400m-patch14-384",
        "mean (en)",
        "Any2AnyX(multi)",
    )
    lines = str(Table(names, (Row(("m", *[score] * 4)),))).splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["siglip-"],
        ["so400m-"],
        ["Image", "patch14-", "Any2AnyX"],
        ["a", "model", "with", "a", "long", "name", "Classification", "384", "mean", "(en)", "(multi)"],
    ]
    assert len({len(line) for line in lines[3:5]}) == 1


def test_latex(table: Table) -> None:
    lines = table.format("latex").splitlines()
    assert lines[:4] == [
        r"\begin{tabular}{llrrr}",
        r"\toprule",
        r"task & metric & chance & one & two \\ \midrule",
        r"\multicolumn{5}{l}{\textit{Retrieval}} \\",
    ]
    assert r"Names & accuracy & 25.0 & $66.7 \pm 5.0$ & -- \\" in lines
    assert lines[-5] == r"\midrule Mean of categories &  &  & $50.0 \pm 3.1$ & $90.0 \pm 5.0$ (b) \\"
    assert lines[-4:] == [
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\footnotesize (a) one item was left out",
        r"\par\footnotesize (b) over 1 of 3 tasks",
    ]
    assert r"50\% of a\_b \& c" in Table(("name",), (Row(("50% of a_b & c",)),)).format("latex")


def test_latex_escapes_every_sign_of_a_name() -> None:
    text = Table(("a\\b{c}", "x^2~y"), (Row(("<s>", "50 %")),)).format("latex")
    assert r"a\textbackslash{}b\{c\} & x\textasciicircum{}2\textasciitilde{}y" in text
    assert r"\textless{}s\textgreater{} & 50 \%" in text


def test_csv_has_full_precision_and_three_columns_a_score(table: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(table.format("csv"))))
    names = ["task", "metric", "chance", "one", "one low", "one high", "two", "two low", "two high", "section", "notes"]
    assert list(rows[0]) == names
    assert [row["section"] for row in rows] == ["Retrieval", "Retrieval", "Reasoning", ""]
    assert [row["chance"] for row in rows] == ["0.25", "0.25", "", ""]  # in the unit of the scores
    assert float(rows[0]["one"]) == 1 / 3
    assert float(rows[0]["one low"]) == 1 / 3 - 0.05
    assert rows[1]["two"] == rows[1]["two low"] == ""


def test_json_has_full_precision_and_coverage(table: Table) -> None:
    content = json.loads(table.format("json"))
    flags, mean = content["rows"][0], content["rows"][-1]
    assert flags["one"] == {"score": 1 / 3, "low": 1 / 3 - 0.05, "high": 1 / 3 + 0.05, "tasks": 1, "of": 1, "marks": []}
    assert (flags["task"], flags["section"]) == ("Flags", "Retrieval")
    assert (mean["one"]["tasks"], mean["one"]["of"]) == (3, 3)
    assert (mean["two"]["tasks"], mean["two"]["of"], mean["two"]["marks"]) == (1, 3, ["b"])
    assert content["notes"] == ["(a) one item was left out", "(b) over 1 of 3 tasks"]


def test_an_unknown_format_is_an_error_with_a_suggestion(table: Table) -> None:
    with pytest.raises(UnknownName, match=r"no table format named 'markdwon'\. Did you mean markdown"):
        table.format("markdwon")


def test_the_mean_is_over_categories_and_not_over_tasks() -> None:
    made = by_task(TASKS, COMPLETE)
    [mean] = [row.cells[-1] for row in made.rows if row.total]
    assert isinstance(mean, Score)
    assert mean.value == pytest.approx(((1 / 3 + 2 / 3) / 2 + 0.5) / 2)
    assert not mean.partial


def test_tasks_without_any_score_are_left_out() -> None:
    assert [row.cells[0] for row in by_task(TASKS, PARTIAL).rows] == ["Flags", "Mean of categories"]


def test_names_are_as_long_as_they_must_be() -> None:
    def names(*results: TaskResult) -> tuple[str, ...]:
        return by_task(TASKS, results).columns[3:]

    assert names(result("a/x", "Flags", 0), result("a/y", "Flags", 0)) == ("x", "y")
    assert names(result("a/x", "Flags", 0), result("b/x", "Flags", 0)) == ("a/x", "b/x")
    assert names(result("a/x", "Flags", 0), result("a/x", "Flags", 0, revision="2")) == ("a/x@1", "a/x@2")


def test_rows_as_columns_keep_footnotes_and_notes() -> None:
    ranked = rank_models(TASKS, COMPLETE + PARTIAL).table()
    assert ranked.footnotes
    assert ranked.transposed().note_lines() == ranked.note_lines()
    assert ranked.transposed().columns[0] == "rank"


def test_one_note_has_one_mark_wherever_it_is_used_and_no_mark_two_notes() -> None:
    cells = [Score(0.5, 0.4, 0.6, marks=(f"note {n}",)) for n in (*range(60), 0)]
    made = footnoted(Table(tuple(map(str, range(61))), (Row(tuple(cells)),)))
    marks = [cell.marks for cell in made.rows[0].cells if isinstance(cell, Score)]
    assert marks[0] == marks[60] == ("a",)
    assert len(set(marks)) == 60
    assert len(made.footnotes) == len(made.note_lines()) == 60
    assert made.notes == ()


def test_an_empty_table_is_a_table() -> None:
    empty = by_task(TASKS, [])
    assert all(empty.format(style) for style in FORMATS)
    assert empty.format("csv") == "task,metric,chance\nMean of categories,,"


def test_a_csv_says_footnotes_in_full_and_leaves_unknown_bounds_out() -> None:
    cell = Score(0.5, float("nan"), float("nan"), marks=("too easy",))
    made = footnoted(Table(("task", "one", "two"), (Row(("Flags", cell, Score(0.25, 0.2, 0.3))),)))
    [line] = csv.DictReader(io.StringIO(made.format("csv")))
    assert line["one low"] == ""
    assert (line["two"], line["notes"]) == ("0.25", "one: too easy")


def test_the_order_of_results_does_not_matter() -> None:
    assert by_task(TASKS, COMPLETE) == by_task(TASKS, COMPLETE[::-1])


def test_scores_under_another_protocol_are_not_a_rows_scores() -> None:
    other = replace(result("org/one", "Flags", 0.99), protocol="mteb2")
    for found in ([*COMPLETE, other], [other, *COMPLETE]):
        assert str(by_task(TASKS, found)) == str(by_task(TASKS, COMPLETE))
    rows = tuple(replace(one, protocol="mteb2") for one in TASKS)
    assert "99.0" in str(by_task(rows, [*COMPLETE, other]))


def test_names_and_numbers_are_short_for_people_and_whole_for_machines() -> None:
    name = "org/a-model-with-a-very-long-name-indeed"
    table = Table(("model", "cost"), (Row((named(name, 12), Exact(8355.4, "8,355"))), Row((named("o/b", 12), None))))
    assert str(table).splitlines()[1] == "a-mode…ndeed  8,355"
    assert table.format("csv") == f"model,cost\n{name},8355.4\no/b,"
    assert json.loads(table.format("json"))["rows"][0] == {"model": name, "cost": 8355.4}
    assert f"| {name} | 8,355 |" in table.format("markdown")
    assert rf"{name} & 8,355 \\" in table.format("latex")


def test_only_a_table_with_sections_has_a_column_of_them() -> None:
    rows = (Row(("a", float("nan")), "first"), Row(("a", 2.0), "second"))
    assert Table(("task", "r"), rows).format("csv") == "task,r,section\na,,first\na,2.0,second"
    assert Table(("task", "r"), tuple(replace(row, section="") for row in rows)).format("csv") == "task,r\na,\na,2.0"


def test_html_escapes_everything_and_tells_the_intervals() -> None:
    mark = Score(0.5, 0.4, 0.6, marks=("1 < 2 & 3",))
    rows = (Row(("<b>a</b>", mark, Score(0.25, 0.2, 0.3)), "<section>"), Row(("mean", mark, None), total=True))
    html = footnoted(Table(("task", "<one>", "two"), rows, ("see <here>",))).format("html")
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "&lt;one&gt;" in html
    assert "&lt;section&gt;" in html
    assert "(a) 1 &lt; 2 &amp; 3<br>\nsee &lt;here&gt;" in html
    assert '<td style="text-align:right" title="95 %: 40.0 to 60.0"><b>50.0 ± 10.0 (a)</b></td>' in html  # the best
    assert ">25.0 ± 5.0</td>" in html
    assert "<script" not in Table(("<script>",), (Row(("<script>",)),), ("<script>",))._repr_html_()


def test_a_frame_has_the_columns_of_the_csv(table: Table) -> None:
    frame = table.to_frame()
    assert list(frame.columns) == table.format("csv").splitlines()[0].split(",")
    assert frame.loc[0, "one"] == 1 / 3
    assert frame.loc[0, "section"] == "Retrieval"
    assert frame.loc[0, "notes"] == "two: one item was left out"
    assert frame["two"].isna().tolist() == [False, True, True, False]


def test_an_interval_is_two_numbers_for_machines() -> None:
    rows = (Row(("a", Interval(-0.1, 0.2, "[-10.0, +20.0]"))), Row(("b", None)))
    table = Table(("task", "95 %"), rows)
    assert str(table).splitlines()[1] == "a     [-10.0, +20.0]"
    assert table.format("csv") == "task,95 % low,95 % high\na,-0.1,0.2\nb,,"
    assert json.loads(table.format("json"))["rows"][0]["95 %"] == {"low": -0.1, "high": 0.2}
