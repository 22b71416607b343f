"""What the README shows works as shown."""

import re
from pathlib import Path

import pytest

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


def test_it_is_one_screen() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 64
