"""What the README shows works as shown."""

import re
from pathlib import Path

import pytest

from embark.models import MODELS
from embark.tasks import BENCHMARKS, TASKS

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.startswith("import")], ids=lambda block: block.split("\n")[-2][:40]
)
def test_python_blocks_run(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "README.md", "exec"), {})
    assert re.search(r" ± | \[", capsys.readouterr().out)  # an interval


def test_adding_a_model_takes_five_lines_at_most() -> None:
    block = next(b for b in BLOCKS if "embark.encoder(" in b)
    call = block[block.index("mine =") : block.index(")\nprint")]
    assert call.count("\n") + 1 <= 5


def test_files_that_it_links_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_the_number_of_models_is_right() -> None:
    assert f"{len(MODELS)} models are known by name" in README.read_text(encoding="utf-8")


def test_the_numbers_of_the_catalogue_are_right() -> None:
    told = " ".join(README.read_text(encoding="utf-8").split())
    pinned = sum(len(task.source.revision) == 40 for task in TASKS.values())
    branches = sum(task.source.revision == "main" for task in TASKS.values())
    named = ("MIEB(Multilingual)", "UniBench", "MMEB-V3", "OmniSET", "ARK", "Pocket", "ARK(emoji)")
    listed = {task for benchmark in named for task in BENCHMARKS[benchmark].tasks}
    assert f"{len(TASKS)} tasks: MIEB ({len(BENCHMARKS['MIEB(Multilingual)'].tasks)}," in told
    assert f"and {len(TASKS) - len(listed)} variants." in told
    assert f"{pinned} rows pin a commit of their data, Pocket's bring it along, and {branches} follow a branch." in told
