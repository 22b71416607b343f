"""`embark plan` on rows alone: what a benchmark of hub data would embed, before any of it is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from embark.cli.output import counted, print_columns, print_json

if TYPE_CHECKING:
    from embark.types import Task

SHOWN = 12  # savings


def print_outline(name: str, tasks: Sequence[Task], as_json: bool) -> None:
    """Items task by task, items embedded once, and where the difference comes from."""
    from embark.plan import outline

    found = outline(tasks)
    saved = found.items - found.unique
    if as_json:
        sizes = [{"task": t.name, "pools": [vars(p) if hasattr(p, "__dict__") else p for p in t.pools]} for t in tasks]
        facts = {"plan": name, "items": found.items, "unique": found.unique, "saved": saved, "unknown": found.unknown}
        print_json(facts | {"savings": [vars(saving) for saving in found.savings], "tasks": sizes})
        return
    count = counted(len(tasks), "task")
    print(f"{name}: {count}, by the rows' own counts (no data was read; --data plans on the data itself)")
    print(f"  task by task   {found.items:>12,} items to embed")
    print(f"  embedded once  {found.unique:>12,} for a CLIP-like model, which sees an item the same way in every role")
    print(f"  saved          {saved:>12,} ({100 * saved / max(found.items, 1):.1f} %)\n")
    if found.savings:
        rows = [[s.pool, str(s.times), f"{s.saved:,}", _names(s.tasks)] for s in found.savings[:SHOWN]]
        print_columns(["largest savings", "uses", "saved", "tasks"], rows, right=("uses", "saved"))
    if found.unknown:
        print(f"\nNot counted, because their sizes are not known: {', '.join(found.unknown)}")


def _names(tasks: tuple[str, ...]) -> str:
    return ", ".join(tasks[:4]) + (f" and {len(tasks) - 4} more" if len(tasks) > 4 else "")
