"""Fault 7, the store: a full disk is a clean stop that tells how much is needed, and the next run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from embark.store import Space, Store
from embark.types import EmbarkError
from segments import holds, keys, vectors

WRITE = """
import resource, sys
from pathlib import Path
from embark.store import Store
from embark.types import EmbarkError
from segments import keys, vectors
resource.setrlimit(resource.RLIMIT_FSIZE, (8192 + 100 * 12, resource.RLIM_INFINITY))
with Store(Path(sys.argv[1])).space("5face").writer() as writer:
    for numbers in (range(100), range(100, 400)):
        writer.add(keys(numbers), vectors(numbers))
        try:
            writer.commit()
        except EmbarkError as error:
            print(error)
"""


def test_a_file_that_may_not_grow_is_a_clean_stop(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITE, tmp_path / "store"]
    path = os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))  # for segments.py
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    needed = 4096 * 4 + 300 * 12
    assert f"There is no room in {tmp_path / 'store'} for another {needed:,} bytes (File too large)" in done.stdout
    assert "Everything committed is safe: make room and run again" in done.stdout
    resumes(Store(tmp_path / "store").space("5face"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_is_a_clean_stop(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True, text=True)
    if mount.returncode:
        pytest.skip(f"no disk can be mounted here: {mount.stderr}")
    try:
        space = Store(disk / "store").space("5face")
        writer = space.writer()
        writer.add(keys(range(100)), vectors(range(100)))
        writer.commit()
        writer.add(keys(range(100, 400)), np.zeros((300, 3), np.float32))
        writer.add(keys(range(400, 5000)), np.zeros((4600, 3), np.float32))
        with pytest.raises(EmbarkError, match=r"no room in .*disk/store for another [\d,]+ bytes.*No space left.*safe"):
            writer.commit()
        writer.close()
        resumes(space)
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def resumes(space: Space) -> None:
    space.refresh()
    assert holds(space, range(100))
    assert space.verify() == []
    assert [path.suffix for path in space.path.iterdir()] == [".vectors"]
    with space.writer() as writer:
        writer.add(keys(range(100, 400)), vectors(range(100, 400)))
    space.refresh()
    assert holds(space, range(400))
