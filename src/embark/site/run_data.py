"""The runs that made the results of a folder, and those under way: what, how much, how long, with what warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embark.catalogue import group_values
from embark.results import Record, TaskResult
from embark.run.run_state import is_of, run_states
from embark.settings import Settings
from embark.site.scripts import minute

STATES = 3  # of the last runs that are shown in full
WARNINGS = 20
NO_STATE: dict[str, Any] = {
    "title": "", "seconds": 0, "embedded": 0, "reused": 0, "stages": [], "status": "", "scores": [], "skipped": [],
}  # fmt: skip  # of a run that was killed early
SHOWN_FIELDS = (*NO_STATE, "id", "started", "updated", "ended", "alive", "models", "tasks", "busy", "waits",
         "cpu_seconds", "gpu_seconds", "predicted")  # fmt: skip
COSTS = ("seconds", "cpu_seconds", "gpu_seconds", "predicted")


def run_data(results: Sequence[TaskResult], settings: Settings) -> dict[str, Any]:
    """The states of the last runs into this results folder, and all runs that have results in it, newest first.

    Runs into other results folders share the home, where states are, and are nobody's business here (see `run_state`).
    A run that is over and had nothing to do is left out.
    """
    by_run = group_values((record.run, (result, record)) for result in results for record in result.records)
    states = [state for state in run_states(settings) if is_of(state, settings)]
    by_id = {str(state.get("id")): state for state in states}
    runs = [_run(id, records, by_id.get(id, {})) for id, records in by_run.items() if id]
    shown = [state for state in states if not state["ended"] or state.get("scores") or state.get("skipped")]
    live = [NO_STATE | {name: fact for name, fact in state.items() if name in SHOWN_FIELDS} for state in shown[:STATES]]
    return {"live": live, "done": sorted(runs, key=lambda run: -run["time"])}


def _run(id: str, records: Sequence[tuple[TaskResult, Record]], state: Mapping[str, Any]) -> dict[str, Any]:
    """A run by the results that it wrote; what they do not tell is in its state, as long as that is kept."""
    latest = max(result.date for result, _ in records)
    warnings = dict.fromkeys(f"{record.task}: {text}" for _, record in records for text in record.warnings)
    return {
        "id": id,
        "time": latest,
        "date": minute(latest),
        "models": list(dict.fromkeys(record.model for _, record in records)),
        "tasks": len({record.task for _, record in records}),
        "items": sum(record.counts.get("items", 0) for _, record in records),
        "embedded": sum(record.counts.get("embedded", 0) for _, record in records),
        "embedding": sum(record.timings.get("embed", 0.0) for _, record in records),
        "scoring": sum(record.timings.get("score", 0.0) for _, record in records),
        **{name: state.get(name) for name in COSTS},
        "warnings": list(warnings)[:WARNINGS],
    }
