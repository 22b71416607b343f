"""Faults 5 and 6, the store: writers share a home without locks, even with one host name and equal process ids."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embark.store import Store
from segments import holds

WRITE = """
import os, sys
from pathlib import Path
from embark.store import Store
from segments import keys, vectors
start = int(sys.argv[2])
with Store(Path(sys.argv[1])).space("5face").writer() as writer:
    for first in range(start, start + 200, 10):
        writer.add(keys(range(first, first + 10)), vectors(range(first, first + 10)))
        writer.commit()
print(os.getpid())
"""


def together(root: Path, *before: str) -> list[str]:
    """Two processes that write at once, some keys both; what each prints."""
    words = [*before, sys.executable, "-c", WRITE, str(root)]
    path = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))  # for segments.py
    env = {**os.environ, "PYTHONPATH": path}
    processes = [
        subprocess.Popen([*words, start], stdout=subprocess.PIPE, text=True, env=env) for start in ("0", "150")
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return outputs


def test_two_processes_write_one_store(tmp_path: Path) -> None:
    together(tmp_path)
    space = Store(tmp_path).space("5face")
    assert holds(space, range(350))
    assert space.verify() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a namespace of process ids")
@pytest.mark.slow
def test_two_containers_with_equal_process_ids_share_a_store(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode:
        pytest.skip("no namespace of process ids can be made here")
    one, other = together(tmp_path, "unshare", "--pid", "--fork")
    assert one == other  # the same process id
    space = Store(tmp_path).space("5face")
    assert holds(space, range(350))
    assert space.verify() == []
