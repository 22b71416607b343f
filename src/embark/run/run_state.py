"""What a run is doing, as a small file that others may read: the page follows a run by it.

home/runs/<id>.json, replaced every second; nobody who reads it, or fails to, can hold the run up
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from embark.engine.activity import Activity
from embark.settings import Settings
from embark.threads import repeating

STATE_SECONDS = 1.0  # between two states
LAST = 20  # states of earlier runs that are kept
STALE = 15.0  # seconds without a new state, after which a run counts as killed


@contextmanager
def state_file(settings: Settings, id: str, state: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """A block during which a thread writes the state of a run, from when its home is there.

    A run that fails before it stored anything leaves no home behind; a home that cannot be written is left alone.
    """
    path = settings.home / "runs" / f"{id}.json"
    results = _folder_name(settings)
    started = time.time()

    def write(is_over: bool) -> None:
        if not settings.home.is_dir():
            return
        with suppress(Exception):  # a page is no reason to fail
            facts = {"id": id, "pid": os.getpid(), "started": started, "updated": time.time(), "ended": is_over}
            facts["results"] = results
            path.parent.mkdir(exist_ok=True)
            part = path.with_suffix(".part")
            part.write_text(json.dumps({**facts, **state()}), encoding="utf-8")
            part.replace(path)

    with suppress(OSError):
        _forget_old(path.parent)
    try:
        with repeating("embark-state", STATE_SECONDS, partial(write, False)):
            yield
    finally:
        write(True)


def activity_state(activity: Activity) -> dict[str, Any]:
    """The stages of an activity, how busy its device was, and what it waited for."""
    return {
        "title": activity.title,
        "stages": [
            {
                "name": stage.name,
                "unit": stage.unit,
                "done": stage.done,
                "total": stage.total,
                "count": stage.count(),
                "speed": stage.speed(),
                "left": stage.time_left(),
            }
            for stage in activity.stages()
        ],
        "status": activity.status(),
        "busy": round(activity.busy_share(), 3),
        "waits": {reason: round(share, 3) for reason, share in activity.idle_shares().items()},
    }


def is_of(state: Mapping[str, Any], settings: Settings) -> bool:
    """Whether a state is that of a run into the results folder of these settings."""
    return state.get("results") == _folder_name(settings)


def _folder_name(settings: Settings) -> str:
    """What stands for a results folder in a state: a hash of its place, because pages show states."""
    return hashlib.sha256(os.path.realpath(settings.results).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def run_states(settings: Settings) -> list[dict[str, Any]]:
    """The states of the last runs, newest first; one that stopped without an end is not `alive`."""
    states = []
    for path in sorted((settings.home / "runs").glob("*.json"), key=_changed, reverse=True):
        with suppress(OSError, ValueError, KeyError, TypeError):
            state = json.loads(path.read_bytes())
            state["alive"] = not state["ended"] and time.time() - state["updated"] < STALE
            states.append(state)
    return states


def _forget_old(folder: Path) -> None:
    for path in sorted(folder.glob("*.json"), key=_changed, reverse=True)[LAST:]:
        path.unlink(missing_ok=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # it was replaced meanwhile
        return 0.0
