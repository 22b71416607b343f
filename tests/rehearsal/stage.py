"""A user's folders beside a hub of this machine, and the command line in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import samples_ark
from embark.store import Store
from hub import FakeHub
from sizes import hundredth

LONGEST = 240  # seconds that a process may take


@dataclass(frozen=True)
class Stage:
    """A hub, and a user's folders."""

    hub: FakeHub
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        folders = {"EMBARK_HOME": "home", "EMBARK_RESULTS": "results", "HF_HOME": "hub"}
        folders["EMBARK_ARK_LABELS"] = "labels.csv"
        return {
            **os.environ,
            **{name: str(self.root / folder) for name, folder in folders.items()},
            "EMBARK_ENDPOINT": self.hub.endpoint,
            "no_proxy": "127.0.0.1,localhost",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

    def start(self, *words: str | int) -> subprocess.Popen[str]:
        """The command line, in a process of its own."""
        command = [sys.executable, "-m", "rehearsal", *map(str, words)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.root, env=self.environment
        )

    def run(self, *words: str | int) -> tuple[int, str, str]:
        """The status of a command, and what it prints."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=LONGEST)
        finally:
            process.kill()
        return process.returncode, out, err

    def commits(self) -> int:
        """Objects in the store."""
        return len(list(self.root.glob("home/store/*/*.vectors")))

    def results(self) -> int:
        """Tasks with a result on disk."""
        return len([path for path in self.root.glob("results/*/*/*.json") if path.name != "model_meta.json"])

    def vectors(self) -> int:
        store = Store(self.root / "home" / "store")
        return sum(len(store.space(name)) for name in store.spaces())

    def scores(self) -> dict[str, object]:
        """Every score, its interval and its counts, by task."""
        found = {}
        for path in sorted(self.root.glob("results/*/*/*.json")):
            content = json.loads(path.read_text())
            for entries in content.get("scores", {}).values():
                for entry in entries:
                    entry["embark"] = {key: entry["embark"][key] for key in ("interval", "fingerprint", "encoder")}
            found[path.name] = content.get("scores")
        return found


def stage(hub: FakeHub, root: Path) -> Stage:
    root.mkdir()
    (root / "labels.csv").write_text(samples_ark.labels(hundredth))
    return Stage(hub, root)
