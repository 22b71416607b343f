"""Which changes of a function do its tests not notice?

    python tools/mutate.py [WORD …]                        the protections of protections.toml with a WORD in their
                                                           names or tests; without a word all of them
    python tools/mutate.py --tests FILE … -- FUNCTION …    these functions (hub.Hub._verify) against these tests

Each mutant is a copy of src/ with one small change of one function: a call is left out, a condition is negated, an
error is not raised or not caught, a `with` has no context, or the last argument of a call is returned or set for it.
The tests run against it in a process of their own. A mutant that passes them is printed. Some mutants do nothing wrong;
a function of which no mutant fails is not held by its tests at all, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("protections.toml")  # file of tests → functions whose protections it holds
SECONDS = 300  # for the tests of one mutant, quick or slow
PROCESSES = 2
CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 30, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


PLACES = (ast.Return, ast.Assign, ast.FormattedValue)  # where the last argument may stand for a call
CHANGED = (ast.Expr, ast.If, ast.While, ast.IfExp, ast.comprehension, ast.Raise, ast.ExceptHandler, ast.With, *PLACES)


class Mutant(NamedTuple):
    """A function with one change: where, what was changed, and the source of its whole module."""

    function: str
    line: int
    change: str
    source: str


# ── mutants ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def module_of(function: str, package: Path) -> tuple[Path, list[str]]:
    """The file of a function that is named from the package on (hub.Hub.get), and its names in that file."""
    parts = function.split(".")
    for end in range(len(parts) - 1, -1, -1):
        for path in (package.joinpath(*parts[:end]).with_suffix(".py"), package.joinpath(*parts[:end], "__init__.py")):
            if path.is_file():
                return path, parts[end:]
    raise ValueError(f"There is no module of {function}.")


def find(tree: ast.Module, names: Sequence[str]) -> ast.AST:
    """The function or method of these names."""
    node: ast.AST = tree
    for name in names:
        body = getattr(node, "body", [])
        matches = [child for child in ast.walk(ast.Module(body, [])) if getattr(child, "name", None) == name]
        definitions = [child for child in matches if isinstance(child, ast.FunctionDef | ast.ClassDef)]
        if not definitions:
            raise ValueError(f"There is no {'.'.join(names)}.")
        node = definitions[0]
    return node


def mutants(function: str, package: Path) -> Iterator[Mutant]:
    """Every mutant of a function; what an error says is left as it is."""
    path, names = module_of(function, package)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(find(tree, names)))
    messages = {id(part) for node in nodes if isinstance(node, ast.Raise) for part in ast.iter_child_nodes(node)}
    messages |= {id(part) for node in nodes if id(node) in messages for part in ast.walk(node)}
    for number, node in enumerate(nodes[1:], 1):
        if id(node) in messages or not (isinstance(node, CHANGED) or _is_map(node)):
            continue
        changed = copy.deepcopy(tree)
        if kind := _change(list(ast.walk(find(changed, names)))[number]):
            text = ast.unparse(node).strip().splitlines()[0][:90]
            line = getattr(node, "lineno", 0) or node.target.lineno
            yield Mutant(function, line, f"{kind}: {text}", ast.unparse(changed))


def _change(node: ast.AST) -> str:
    """Change a node in place; the name of the change, empty where there is none for it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Yield | ast.Await):
        node.value = ast.Constant(None)
        return "left out"
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return "negated"
    if isinstance(node, ast.comprehension) and node.ifs:
        node.ifs = [ast.UnaryOp(ast.Not(), ast.BoolOp(ast.And(), node.ifs) if len(node.ifs) > 1 else node.ifs[0])]
        return "negated"
    if isinstance(node, ast.Raise):
        _replace(node, ast.Pass())
        return "not raised"
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        node.type = ast.Tuple([], ast.Load())
        return "not caught"
    if isinstance(node, ast.With) and any(item.optional_vars is None for item in node.items):
        node.items = [item for item in node.items if item.optional_vars is not None]
        if not node.items:
            _replace(node, ast.If(ast.Constant(True), node.body, []))
        return "without its context"
    if _is_map(node):
        _replace(node, node.args[1])  # type: ignore[attr-defined]
        return "without map"
    arguments = node.value.args if isinstance(node, PLACES) and isinstance(node.value, ast.Call) else []
    if arguments and not isinstance(arguments[-1], ast.Starred | ast.GeneratorExp):
        node.value = arguments[-1]
        return "without its call"
    return ""


def _is_map(node: ast.AST) -> bool:
    """Whether a node calls a function for each of some values: map(escape, names)."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "map" and len(node.args) == 2


def _replace(node: ast.AST, other: ast.AST) -> None:
    """Make a node another one, where it stands."""
    node.__class__ = other.__class__  # type: ignore[assignment]
    vars(node).update(vars(other))


# ── their tests ──────────────────────────────────────────────────────────────────────────────────────────────────────


def noticed(mutant: Mutant, tests: Sequence[str], source: Path, root: Path = ROOT) -> bool:
    """Whether the tests fail, hang or end when src/ is the copy at `source` with the mutant in it."""
    path, _ = module_of(mutant.function, next(source.iterdir()))
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    try:
        return not passes(tests, source, root)
    finally:
        path.write_text(original, encoding="utf-8")


def passes(tests: Sequence[str], source: Path, root: Path = ROOT) -> bool:
    """Whether the tests pass against a copy of src/, the quick ones first, each kind in time."""
    return all(_pass(tests, marked, source, root) for marked in ("not slow", "slow"))


def _pass(tests: Sequence[str], marked: str, source: Path, root: Path) -> bool:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "EMBARK_"))}
    environment = outside | {
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",  # a mutant may be as old and as long as the last one
        "OMP_NUM_THREADS": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(source.parent / "hypothesis"),
    }
    options = ["-x", "-q", "-m", marked, "-p", "no:cacheprovider", f"--basetemp={source.parent / 'tests'}"]
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, *options, *tests], cwd=root, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(SECONDS) in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and whatever the tests started
        process.wait()


def examine(functions: Sequence[str], tests: Sequence[str], root: Path = ROOT, processes: int = PROCESSES) -> list[str]:
    """Try all mutants of the functions and print those that pass the tests; the functions that no test holds."""
    with TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(processes):
            ignored = shutil.ignore_patterns("__pycache__")
            copies.put(Path(shutil.copytree(root / "src", Path(folder, str(number), "src"), ignore=ignored)))
        package = next(path for path in (root / "src").iterdir() if (path / "__init__.py").is_file())
        source = copies.get()
        if not passes(tests, source, root):
            raise ValueError(f"{' '.join(tests)} fail without any change.")
        copies.put(source)

        def try_out(mutant: Mutant) -> bool:
            source = copies.get()
            try:
                return noticed(mutant, tests, source, root)
            finally:
                copies.put(source)

        unheld = []
        with ThreadPoolExecutor(processes) as pool:
            for function in functions:
                made = list(mutants(function, package))
                outcomes = list(pool.map(try_out, made))
                print(f"{function}: {sum(outcomes)} of {len(made)} mutants are noticed", flush=True)
                for mutant, was_noticed in zip(made, outcomes, strict=True):
                    if not was_noticed:
                        print(f"    line {mutant.line}, {mutant.change}", flush=True)
                unheld += [function] if not any(outcomes) else []
        return unheld


def main(words: Sequence[str]) -> int:
    """Examine what the command line names; the exit status."""
    parser = argparse.ArgumentParser(description="Which changes of a function do its tests not notice?")
    parser.add_argument("--tests", nargs="+", default=[], metavar="FILE")
    parser.add_argument("words", nargs="*", metavar="FUNCTION or WORD")
    chosen = parser.parse_args(words)
    table = {" ".join(chosen.tests): chosen.words} if chosen.tests else _chosen(chosen.words)
    unheld = [f"{name} by {tests}" for tests, names in table.items() for name in examine(names, tests.split())]
    if unheld:
        print("Not held at all: " + ", ".join(unheld))
    return int(bool(unheld))


def _chosen(words: Sequence[str]) -> dict[str, list[str]]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    named = {
        tests: [name for name in names if not words or any(word in f"{tests} {name}" for word in words)]
        for tests, names in table.items()
    }
    return {tests: names for tests, names in named.items() if names}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
