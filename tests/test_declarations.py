"""What readers and evaluators declare: it is all that they read, it is checked, a page and a command show it."""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import embark
from embark.boards.rules import RULES
from embark.cli import app
from embark.declarations import page
from embark.models import LOADERS
from embark.readers import READERS, _table
from embark.readers.registry import OWN as OWN_READERS
from embark.registries import EVALUATORS
from embark.seams import COMMON_PARAMS
from embark.tasks import TASKS

DOCS = Path(__file__).parents[1] / "docs"
OWN = [name for name, reader in READERS.items() if reader.own]


def printed(*words: str) -> str:
    ran = CliRunner().invoke(app, [*words])
    assert ran.exit_code == 0, (ran.output, ran.exception)
    return ran.stdout


def test_options_of_readers_are_shown_from_the_registry() -> None:
    """`subset_is`, `where` and the reader's own ones, with their values; without a name, all readers."""
    shown = printed("show", "--reader", "paired")
    for name, option in (READERS["paired"].options or {}).items():
        assert re.search(rf"^option +{name} +{re.escape(option.values)} +{re.escape(option.about)}", shown, re.M)
    assert re.search("^column +image ", shown, re.M)
    listed = printed("show", "--reader")
    assert all(re.search(f"^{name} ", listed, re.M) for name in OWN)
    rows = json.loads(printed("show", "--reader", "paired", "--format", "json"))
    assert {row["name"] for row in rows["rows"]} >= {"where", "subset_is", "query"}
    reference = embark.reference("reader", "paired")
    assert [entry.name for entry in reference.entries if entry.part == "option"] == [*(READERS["paired"].options or {})]


def test_parameters_of_evaluators_are_shown_from_the_registry() -> None:
    shown = printed("show", "--evaluator", "pairs")
    assert re.search("^parameter +strict +true or false +Ties count as wrong", shown, re.M)
    assert re.search("^measure +text_acc +statistic: mean$", shown, re.M)
    assert all(re.search(f"^{kind} ", printed("show", "--evaluator"), re.M) for kind in EVALUATORS)
    assert printed("show", "--evaluator", "sts").startswith("sts: Semantic textual similarity")
    notes = embark.reference("evaluator", "sts").notes
    assert "The truth is Gold. The chance level is 0." in notes[0]
    assert "is ndcg_at_10, and k is any whole number from 1." in embark.reference("evaluator", "retrieval").notes[0]


def test_rules_and_loaders_are_shown_with_their_fields() -> None:
    shown = printed("show", "--rule", "mmeb")
    assert shown.startswith("mmeb: The mean over tasks, by modality group and sub-category;")
    assert re.search("^field +by +group, category$", shown, re.M)
    assert re.search("^field +zeros_without +audio$", shown, re.M)
    assert "embark.boards.rules:median" in printed("show", "--rule", "median-of-types")
    listed = printed("show", "--rule")
    assert all(re.search(f"^{name} .*{re.escape(rule.about)}$", listed, re.M) for name, rule in RULES.items())
    rows = json.loads(printed("show", "--loader", "text", "--format", "json"))["rows"]
    assert {("extra", "torch"), ("kind", "embedder")} <= {(row["name"], row["value"]) for row in rows}
    assert all(re.search(f"^{name} ", printed("show", "--loader"), re.M) for name in LOADERS)
    with pytest.raises(embark.EmbarkError, match=r"There is no rule named 'mme'. Did you mean mmeb"):
        embark.reference("rule", "mme")


def test_the_page_is_made_of_the_registry() -> None:
    assert (DOCS / "readers.md").read_text(encoding="utf-8") == page() + "\n", "run `make docs`"


def _module(reader: str) -> str:
    return str(OWN_READERS[reader]).partition(":")[0]


@pytest.mark.parametrize("reader", OWN)
def test_readers_declare_every_option_that_they_read(reader: str) -> None:
    module = import_module(_module(reader))
    source = inspect.getsource(module) + inspect.getsource(_table)
    read = set(re.findall(r'options(?:\.get\(|\[)"(\w+)"', source))
    shared = {"train", "corpus", "configs", "files"}  # `_table` reads them for the readers that have them
    of_module = [name for name in OWN if _module(name) == module.__name__]
    declared = {option for name in of_module for option in READERS[name].options or ()}
    assert read - shared <= declared | {*_table.OPTIONS}


@pytest.mark.parametrize("kind", EVALUATORS)
def test_evaluators_declare_every_parameter_that_they_read(kind: str) -> None:
    source = Path(EVALUATORS[kind].evaluate.__code__.co_filename).read_text(encoding="utf-8")
    read = set(re.findall(r'params(?:\.get\(|\[)"(\w+)"', source))
    assert read <= {*COMMON_PARAMS, *EVALUATORS[kind].params}


def test_every_row_has_values_that_its_reader_accepts() -> None:
    """Rows of MMEB state facts about their data besides options of `beir`: only what is declared is looked at."""
    for task in TASKS.values():
        declared = READERS[task.reader].options or {}
        for name, value in task.options.items():
            assert name not in declared or declared[name].accepts(value), (task.name, name, value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('where = "cats"', "field 'options': The option 'where' of 'labelled' must be table, not 'cats'"),
        ('missing = "drop"', "The option 'missing' of 'labelled' must be \"skip\", \"error\", not 'drop'"),
        ('subset_s = "split"', "There is no option of 'labelled' named 'subset_s'. Did you mean subset_is?"),
    ],
)
def test_options_of_a_file_are_checked_by_their_type(options: str, message: str) -> None:
    Path("pets").mkdir()
    Path("pets/test.csv").write_text("text,label\na cat,cat\n")
    Path("tasks.toml").write_text(
        '[[task]]\nname = "A"\nevaluator = "clustering"\nreader = "labelled"\nmodalities = ["text"]\n'
        f'columns = {{ text = "text", label = "label" }}\noptions = {{ {options} }}\nsource = {{ id = "pets" }}\n'
    )
    with pytest.raises(embark.EmbarkError) as raised:
        embark.load_tasks("tasks.toml")
    assert message in str(raised.value)


def test_show_takes_one_thing() -> None:
    for words in ((), ("PocketSTS", "--reader", "paired"), ("--reader", "paired", "--evaluator", "pairs")):
        ran = CliRunner().invoke(app, ["show", *words])
        assert ran.exit_code == 2
        assert "give a name, or one of --reader, --evaluator, --loader, --rule, --study" in " ".join(ran.output.split())
    with pytest.raises(embark.EmbarkError, match=r"There is no evaluator named 'pair'. Did you mean pairs"):
        embark.reference("evaluator", "pair")
