"""Files that leave are written in one place: every other module that writes files is listed here, with what stays."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import embark

ROOT = Path(embark.__file__).parent
GATE = "outgoing.py"
STAYS = {  # modules whose files stay on this machine
    "atomic.py": "the means",
    "hub/cache.py": "the hub's cache",
    "items/lazy_media.py": "the hub's cache",
    "own/tables.py": "own tables, in the home",
    "readers/_mmeb.py": "the hub's cache",
    "readers/rows.py": "the hub's cache",
    "items/encode.py": "media in memory",
    "items/films.py": "media in memory",
    "items/wav.py": "media in memory",
    "file_hashes.py": "hashes of files, in the home",
    "engine/batching/tuning.py": "measured speeds, in the home",
    "models/half_precision.py": "what the processor can do, in the cache",
    "models/checkpoints.py": "the hub's cache",
    "processes.py": "pipes",
    "results/__init__.py": "the results folder",
    "results/schema.py": "outcomes in memory",
    "tables/drawing.py": "drawings in memory",
    "results/task_rows.py": "rows of own tasks, in the home",
    "run/build_omni.py": "a data set of one's own",
    "run/crash_log.py": "logs, in the home",
    "run/predictions.py": "plans, in the home",
    "run/run_state.py": "states of runs, in the home",
    "site/thumbnails.py": "sounds in memory",
    "store/buckets.py": "vectors",
    "store/disk.py": "vectors",
    "store/index.py": "vectors",
    "store/segments.py": "vectors",
    "reports/kept.py": "the results folder",
    "studies/loggers.py": "a log of training, which its user names",
}
WRITERS = {"atomically", "write_text", "write_bytes", "savefig", "ParquetWriter", "write_table", "write_feather",
           "to_csv", "to_parquet", "to_json", "copyfile", "copy2"}  # fmt: skip
MODE = re.compile("[rbt]{0,2}[wax+][rbt+]{0,2}")


def writes(path: Path) -> list[str]:
    """The calls of a module that write files without the gate."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    gated = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "embark.outgoing"
        for name in node.names
    }
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        bare = isinstance(node.func, ast.Name)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        arguments = (*node.args, *(keyword.value for keyword in node.keywords))
        stated = [word.value for word in arguments if isinstance(word, ast.Constant)]
        opened = name == "open" and any(isinstance(word, str) and MODE.fullmatch(word) for word in stated)
        if opened or (name in WRITERS and not (bare and name in gated)):
            found.append(f"{name}, line {node.lineno}")
    return found


def test_every_module_that_writes_files_is_known() -> None:
    modules = {str(path.relative_to(ROOT)): writes(path) for path in ROOT.rglob("*.py")}
    unknown = {name: calls for name, calls in modules.items() if calls and name not in {GATE, *STAYS}}
    assert unknown == {}


def test_what_leaves_goes_through_the_gate() -> None:
    """The modules of outputs import the gate's writers."""
    outputs = ("tables/drawing", "results/exchange", "boards/card_section", "boards/push", "run/ranked_lists",
               "run/recording_inputs", "run/vector_files", "site/scripts", "site/bundle", "site/thumbnails",
               "reports/report", "studies/diagnosis", "studies/monitor")  # fmt: skip
    for name in outputs:
        assert "from embark.outgoing import" in (ROOT / f"{name}.py").read_text(encoding="utf-8"), name
