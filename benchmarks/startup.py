"""What starting costs: `import embark` and `embark --help` against `python -c "import numpy"`, in one run.

python benchmarks/startup.py [--json]
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import json
import subprocess
import time

ROUNDS = 7
COMMANDS = {
    "import numpy": ["-c", "import numpy"],
    "import embark": ["-c", "import embark"],
    "import embark, use evaluate": ["-c", "import embark; embark.evaluate"],
    "embark --help": ["-m", "embark", "--help"],
    "embark tasks": ["-m", "embark", "tasks"],
}
MEMORY = "import resource, sys; exec(sys.argv[1]); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def seconds(words: list[str]) -> float:
    """The best of several starts: the rest is the machine's noise."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
    return best


def megabytes(statement: str) -> float:
    """Peak memory of a fresh process that executes the statement."""
    done = subprocess.run([sys.executable, "-c", MEMORY, statement], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def main() -> None:
    """Measure and print."""
    taken = {name: seconds(words) for name, words in COMMANDS.items()}
    rows = [{"what": name, "seconds": s, "ratio to numpy": s / taken["import numpy"]} for name, s in taken.items()]
    memory = {name: megabytes(name) for name in ("import numpy", "import embark")}
    if "--json" in sys.argv:
        print(json.dumps({"times": rows, "megabytes": memory}, indent=2))
        return
    for row in rows:
        print(f"{row['what']:<28} {row['seconds']:6.3f} s   {row['ratio to numpy']:5.2f} × numpy")
    for name, size in memory.items():
        print(f"{name:<28} {size:6.1f} MB")


if __name__ == "__main__":
    main()
