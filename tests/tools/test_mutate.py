"""Mutants are small changes of a function, and those that its tests do not notice are printed."""

from __future__ import annotations

import ast
import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "mutate.py"
spec = importlib.util.spec_from_file_location("mutate", TOOL)
assert spec
assert spec.loader
tool = importlib.util.module_from_spec(spec)
sys.modules["mutate"] = tool
spec.loader.exec_module(tool)

MODULE = """
import threading
LOCK = threading.Lock()

class Till:
    def pay(self, paid, sums):
        if paid < 0:
            raise ValueError(str(paid))
        try:
            with LOCK:
                sums.append(paid)
        except AttributeError:
            paid = 0
        return round(paid)

def check(paid):
    if paid < 0:
        raise ValueError(paid)

def idle(paid):
    assert str(paid)
    if paid < 0:
        raise ValueError(paid)
"""
TESTS = """
import pytest
from shop.till import check

def test_check():
    check(0)
    with pytest.raises(ValueError):
        check(-1)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a package, of which the tests hold one function."""
    package = tmp_path / "src" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "till.py").write_text(MODULE)
    (tmp_path / "test_till.py").write_text(TESTS)
    return tmp_path


def test_every_kind_of_change_is_made_once(shop: Path) -> None:
    made = list(tool.mutants("till.Till.pay", shop / "src" / "shop"))
    assert sorted((mutant.line, mutant.change) for mutant in made) == [
        (7, "negated: if paid < 0:"),
        (8, "not raised: raise ValueError(str(paid))"),
        (10, "without its context: with LOCK:"),
        (11, "left out: sums.append(paid)"),
        (12, "not caught: except AttributeError:"),
        (14, "without its call: return round(paid)"),
    ]
    for mutant in made:
        compile(mutant.source, "till.py", "exec")
        assert mutant.source not in (MODULE, *(other.source for other in made if other is not mutant))


def test_what_no_test_notices_is_printed(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.examine(["till.check", "till.idle"], ["test_till.py"], shop) == ["till.idle"]
    assert capsys.readouterr().out.splitlines() == [
        "till.check: 2 of 2 mutants are noticed",
        "till.idle: 0 of 2 mutants are noticed",
        "    line 22, negated: if paid < 0:",
        "    line 23, not raised: raise ValueError(paid)",
    ]
    assert (shop / "src" / "shop" / "till.py").read_text() == MODULE


def test_tests_that_fail_without_a_change_are_an_error(shop: Path) -> None:
    (shop / "test_till.py").write_text("def test_nothing():\n    assert False\n")
    with pytest.raises(ValueError, match=r"test_till\.py fail without any change"):
        tool.examine(["till.idle"], ["test_till.py"], shop)


def test_the_table_names_functions_and_files_of_tests() -> None:
    for tests, functions in tomllib.loads(tool.TABLE.read_text(encoding="utf-8")).items():
        assert (tool.ROOT / tests).is_file(), tests
        for function in functions:
            path, names = tool.module_of(function, tool.ROOT / "src" / "embark")
            assert isinstance(tool.find(ast.parse(path.read_text(encoding="utf-8")), names), ast.FunctionDef), function
