"""python -m recording write FILE [PART …], or python -m recording compare FILE [PART …]; see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import recording
from recording.parts import PARTS, record


def main() -> int:
    """Record, and write or compare; status 1 where something differs."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=recording.__doc__, formatter_class=plain)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help=f"all, or some of {', '.join(PARTS)}")
    args = parser.parse_args()
    before = recording.read(args.file) if args.action == "compare" else []
    names = args.parts or list(dict.fromkeys(fact.part for fact in before)) or list(PARTS)
    with tempfile.TemporaryDirectory() as folder:
        recorded = list(record(names, Path(folder), lambda line: print(line, file=sys.stderr, flush=True)))
    print(f"{len(recorded):,} facts: {recording.summary(recorded)}")
    if args.action == "write":
        recording.write(recorded, args.file)
        return 0
    lines = recording.differences([fact for fact in before if fact.part in names], recorded)
    print("\n".join(lines) or "No difference.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
