"""Imports go one way: a room knows only the rooms before it, some rooms do not know each other at all, and no two
modules import each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import embark

ROOT = Path(embark.__file__).parent
FLOW = (
    "types", "field_types", "metrics", "escape", "atomic", "paths", "file_hashes", "settings", "redaction", "outgoing",
    "catalogue", "seams", "threads", "halving", "interrupts", "allocation", "processes", "http", "plugins",
    "registries", "tasks", "hub", "items", "readers", "own", "models", "store", "evaluators", "protocol", "planning",
    "engine", "tables", "documents", "results", "published", "stats", "boards", "run", "studies", "reports",
    "declarations", "site", "cli", "__init__",
)  # fmt: skip
APART = (
    {"tasks", "models"}, {"evaluators", "models"}, {"evaluators", "store"}, {"boards", "engine"}, {"boards", "store"},
    *({data, other} for data in ("items", "readers", "own") for other in ("models", "evaluators")),
)  # fmt: skip


@cache
def doors() -> set[tuple[str, str, str]]:
    """(file, its room, the room that it imports from), for every import of ours."""
    out = set()
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in _at_run_time(tree) if room == "seams" else ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "embark":
                targets = [name.name for name in node.names if name.name in FLOW]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("embark."):
                targets = [str(node.module).split(".")[1]]
            elif isinstance(node, ast.Import):
                targets = [name.name.split(".")[1] for name in node.names if name.name.startswith("embark.")]
            else:
                continue
            out |= {(str(path.relative_to(ROOT)), room, target) for target in targets if target != room}
    return out


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING`: a seam may name types of later rooms in its annotations."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from _at_run_time(node)


def test_every_room_is_on_the_plan() -> None:
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert rooms - {"__main__"} == set(FLOW)


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in ROOT.rglob("*.py")}
    assert not [folder for folder in folders if not (folder / "__init__.py").is_file()]


def test_no_door_leads_against_the_flow() -> None:
    against = [door for door in doors() if door[1] in FLOW and FLOW.index(door[2]) > FLOW.index(door[1])]
    assert not against


def test_neighbours_that_must_not_know_each_other_do_not() -> None:
    assert not [door for door in doors() if {door[1], door[2]} in APART]


def test_no_two_modules_import_each_other() -> None:
    paths = {_module(path): path for path in ROOT.rglob("*.py")}
    imports = {name: _imports(path, set(paths)) for name, path in paths.items()}
    assert sum(map(len, imports.values())) > len(paths)
    assert not [(name, other) for name in imports for other in imports[name] if name < other and name in imports[other]]


def _module(path: Path) -> str:
    return ".".join(("embark", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def _imports(path: Path, modules: set[str]) -> set[str]:
    """The modules of ours that a file imports when it runs."""
    names = set()
    for node in _at_run_time(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("embark"):
            inside = {f"{node.module}.{name.name}" for name in node.names} & modules
            names |= inside if len(inside) == len(node.names) else {*inside, str(node.module)}
    return names - {_module(path)}
