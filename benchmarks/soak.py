"""Thousands of small runs against one store and one results folder, killed and damaged at random: nothing may be wrong.

python benchmarks/soak.py [--seconds 600] [--runs N] [--seed 0] [--folder DIR] [--json]

A round starts up to six processes at once: evaluations of tiny models, now and then `store repair` or `store gc`.
They are forks of one that has embark loaded; every 50th is a fresh interpreter. A third is killed (SIGKILL) at a random
moment. When all have ended, fresh processes look at the store and the results; then bytes of random files are flipped,
zeroed, overwritten or cut, half of the time without a trace in the file's times. Must be 0, or the exit status is 1:

wrong scores          scores, intervals or metrics unlike those of the same model in a clean home
failed runs           nothing prevents a run here, so none may fail; their messages are printed
lost commits          vectors whose commit had returned, that were not damaged, and are absent
losses beyond damage  vectors that damage to files without them made absent
needless embeddings   vectors computed again that were there and sound
hung runs             processes that took longer than a minute
"""

from __future__ import annotations

import sys

sys.path.append(sys.path.pop(0))  # this folder last: `statistics` is Python's own module

import argparse
import faulthandler
import hashlib
import json
import math
import os
import random
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process a core, each with one thread

import numpy as np
from PIL import Image

import embark
from embark.engine.workers import sink
from embark.items import as_keys
from embark.protocol import vector_space
from embark.results import Results, TaskResult
from embark.settings import Settings, load_settings
from embark.store import Store, Writer
from embark.types import Array, Task

DIM = 16
BATCH = 4
AT_ONCE = 6
ACTIVE = 3  # models that runs choose from; the oldest is replaced after so many rounds:
ROUNDS_A_MODEL = 5
KILLED = 1 / 3
WINDOW = 0.02  # seconds between commits: runs are short, and kills shall strike between and within commits
DAMAGED = 0.6  # of the rounds
FRESH = 50  # every so many runs is a fresh interpreter
PATIENCE = 60.0  # seconds
WRONG = ("wrong scores", "failed runs", "lost commits", "losses beyond damage", "needless embeddings", "hung runs")
COUNTED = (
    "runs", "fresh interpreters", "kills", "kills that struck", "repairs and collections", "models", "scores compared",
    "stored results compared", "vectors embedded", "vectors committed", "damaged files", "damaged bytes",
    "vectors lost to damage", "files set aside", *WRONG, "seconds",
)  # fmt: skip


def main() -> None:
    """Run, print what was counted; the exit status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--runs", type=int, default=1_000_000, help="at most so many")
    parser.add_argument("--seed", type=int, default=0, help="of kills and damage; the machine's own pace differs")
    parser.add_argument("--folder", type=Path, help="on the disk to use; a temporary folder if not given")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)  # a fresh interpreter: folder, log, job
    args = parser.parse_args()
    if args.process:
        folder, log, job = args.process
        faulthandler.enable()
        work(Path(folder), load_tasks(Path(folder)), Path(log), Job(*json.loads(job)))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        soak = Soak(Path(name), args.seed)
        soak.run(args.seconds, args.runs)
    wrong = sum(soak.count[name] for name in WRONG)
    if args.json:
        print(json.dumps({name: soak.count[name] for name in COUNTED} | {"problems": soak.problems}, indent=2))
    else:
        for name in COUNTED:
            print(f"{name:26} {soak.count[name]:>12,.0f}")
        print("\n".join(soak.problems))
    raise SystemExit(1 if wrong else 0)


# ── what a process does ──────────────────────────────────────────────────────────────────────────────────────────────


class Job(NamedTuple):
    """What a process does: "evaluate", "rescore", "repair" or "gc"; the model's revision; its home's name."""

    kind: str
    revision: str
    home: str = "shared"


def work(folder: Path, tasks: Sequence[Task], log: Path, job: Job) -> None:
    """Do a job, and log commits as soon as they have returned, at the end what came of it."""
    with log.open("ab", buffering=0) as file:

        def tell(**facts: Any) -> None:
            file.write(json.dumps(facts).encode() + b"\n")  # one write: whole, unless the kill strikes in it

        log_commits(tell)
        sink.COMMIT_SECONDS = WINDOW
        try:
            tell(**do(folder, tasks, job))
        except Exception as error:
            tell(scores={}, failures=[f"{type(error).__name__}: {error}"])


def do(folder: Path, tasks: Sequence[Task], job: Job) -> dict[str, Any]:
    """A job's scores, and why tasks failed."""
    settings = load_settings(folder / job.home / "home", folder / job.home / "results", workers=2)
    if job.kind in ("repair", "gc"):
        (embark.store.repair if job.kind == "repair" else embark.store.clean)(settings)
        return {"scores": {}, "failures": []}
    rescore = job.kind == "rescore"
    encoder = model(job.revision)
    run = embark.evaluate(encoder, tasks, settings=settings, batch_size=BATCH, rescore=rescore, show_progress=False)
    return {"scores": scores(run.results), "failures": [skip.why for skip in run.skipped]}


def log_commits(tell: Callable[..., None]) -> None:
    """Have this process log the keys of vectors that it adds, and again when they are committed."""
    pending: list[str] = []
    add, commit = Writer.add, Writer.commit

    def logged_add(self: Writer, keys: Array, *vectors: Any, **options: Any) -> None:
        add(self, keys, *vectors, **options)
        names = [key.tobytes().hex() for key in keys]
        tell(space=self._space.path.name, added=names)
        pending.extend(names)

    def logged_commit(self: Writer) -> None:
        commit(self)
        if pending:
            tell(space=self._space.path.name, committed=pending)
            pending.clear()

    Writer.add, Writer.commit = logged_add, logged_commit  # type: ignore[method-assign, assignment]


def scores(results: Iterable[TaskResult]) -> dict[str, Any]:
    """All numbers of results that must be equal."""
    return {
        result.task: [result.score, result.interval]
        + [[record.split, record.subset, record.score, record.interval, record.metrics] for record in result.records]
        for result in results
    }


def model(revision: str) -> embark.Encoder:
    """A model whose vectors are random, and depend on its revision and the item."""

    def vector(content: bytes) -> Array:
        seed = int.from_bytes(hashlib.sha256(revision.encode() + content).digest()[:8], "little")
        return np.random.default_rng(seed).standard_normal(DIM, np.float32)

    def text(texts: list[str]) -> Array:
        time.sleep(0.002)  # a slower model, so that kills strike at work
        return np.stack([vector(text.encode()) for text in texts])

    def image(images: list[Image.Image]) -> Array:
        time.sleep(0.002)
        return np.stack([vector(image.convert("RGB").tobytes()) for image in images])

    return embark.encoder(text=text, image=image, name="soak/random", revision=revision)


def make_data(folder: Path) -> None:
    """Two folders of tiny pictures with captions and labels, which share some pictures."""
    for name, numbers in (("First", range(36)), ("Second", range(24, 48))):
        place = folder / name
        place.mkdir()
        rows = ["file,caption,label"]
        for number in numbers:
            pixels = np.random.default_rng(number).integers(0, 255, (4, 4, 3), np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
            rows.append(f"{number}.png,picture number {number},kind {number % 6}")
        (place / "metadata.csv").write_text("\n".join(rows) + "\n")


def load_tasks(folder: Path) -> list[Task]:
    """Retrieval and zero-shot classification on each folder."""
    return [task for name in ("First", "Second") for task in embark.folder_task(folder / name)]


# ── the soak ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Soak:
    """One home that is used, killed in and damaged; what was counted, and what must hold about its vectors."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.count: Counter[str] = Counter()
        self.problems: list[str] = []
        self.reference: dict[str, dict[str, Any]] = {}  # of each model
        self.models: list[str] = []  # that are active
        self.spaces: dict[str, str] = {}  # model → name of its space
        self.known: dict[str, set[str]] = {}  # by space, keys that were ever added
        self.expected: dict[str, set[str]] = {}  # by space, keys that were committed and not damaged
        make_data(folder)
        self.tasks = load_tasks(folder)

    @property
    def settings(self) -> Settings:
        """Of the home that is shared."""
        return load_settings(self.folder / "shared" / "home", self.folder / "shared" / "results")

    def run(self, seconds: float, runs: int) -> None:
        """Rounds until time or runs are used up, then a look at everything."""
        start = time.monotonic()
        do(self.folder, self.tasks, Job("evaluate", "warm", "warm"))  # imports all that its children need
        shown = start
        rounds = 0
        while time.monotonic() < start + seconds and self.count["runs"] < runs:
            if rounds % ROUNDS_A_MODEL == 0:
                self.new_model()
            self.round()
            rounds += 1
            if rounds % 40 == 0:
                self.look(self.expected, "stored")
            if time.monotonic() > shown + 10:
                shown = time.monotonic()
                named = ("runs", "kills that struck", "damaged bytes", "vectors lost to damage", *WRONG)
                print(", ".join(f"{self.count[name]:,} {name}" for name in named), file=sys.stderr, flush=True)
        self.look(self.expected, "stored")
        for revision in list(self.reference):
            self.models = [revision]
            self.end(self.start(Job("evaluate", revision)), math.inf)
        self.count["files set aside"] = len(list(self.settings.results.rglob("*.damaged")))
        self.count["seconds"] = round(time.monotonic() - start)

    def new_model(self) -> None:
        """Another model in place of the oldest; its reference is computed in a clean home."""
        revision = f"{self.count['models']}"
        log = self.end(self.start(Job("evaluate", revision, "clean")), math.inf)
        shutil.rmtree(self.folder / "clean")
        self.reference[revision] = log[-1]["scores"]
        if not self.reference[revision] or log[-1]["failures"]:
            raise SystemExit(f"The reference of model {revision} failed: {log[-1]}")
        self.models = [*self.models, revision][-ACTIVE:]
        self.spaces[revision] = vector_space(model(revision).card)
        self.known[self.spaces[revision]] = set()
        self.expected[self.spaces[revision]] = set()
        self.count["models"] += 1

    def round(self) -> None:
        """Several processes at once, some of them killed; a look at what they left; damage."""
        spaces = [self.spaces[revision] for revision in self.models]
        before = {space: set(self.expected[space]) for space in spaces}
        begun = time.monotonic()
        jobs = [self.draw() for _ in range(self.random.randint(1, AT_ONCE))]
        ends = [begun + self.random.uniform(0.01, 0.4) if self.random.random() < KILLED else math.inf for _ in jobs]
        processes = [self.start(job) for job in jobs]
        for _, process in sorted(zip(ends, processes, strict=True), key=lambda pair: pair[0]):
            self.end(process, ends[processes.index(process)])
        for process in processes:
            for entry in process.entries():
                self.note(entry, before)
        self.look(spaces, "stored" if self.random.random() < 0.2 else "")
        if self.random.random() < DAMAGED:
            self.damage()

    def draw(self) -> Job:
        kind = self.random.choices(["evaluate", "rescore", "repair", "gc"], [60, 34, 3, 3])[0]
        return Job(kind, self.random.choice(self.models))

    def note(self, entry: dict[str, Any], before: dict[str, set[str]]) -> None:
        """Enter what a process has added or committed."""
        if "committed" in entry:
            self.expected[entry["space"]].update(entry["committed"])
            self.count["vectors committed"] += len(entry["committed"])
        if "added" in entry:
            self.known[entry["space"]].update(entry["added"])
            self.count["vectors embedded"] += len(entry["added"])
            self.wrong("needless embeddings", len(before[entry["space"]].intersection(entry["added"])), entry["space"])

    def wrong(self, kind: str, number: int, detail: object) -> None:
        self.count[kind] += number
        if number and len(self.problems) < 50:
            self.problems.append(f"{kind} (run {self.count['runs']:,}): {number}: {detail}"[:1500])

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, job: Job) -> Process:
        """A process that does a job."""
        self.count["runs"] += job.home == "shared"
        log = self.folder / "logs" / f"{self.count['runs']}-{job.home}-{time.monotonic_ns()}"
        log.parent.mkdir(exist_ok=True)
        fresh = self.count["runs"] % FRESH == 0
        self.count["fresh interpreters"] += fresh
        self.count["repairs and collections"] += job.kind in ("repair", "gc")

        def target() -> None:
            if fresh:
                words = [sys.executable, __file__, "--process", str(self.folder), str(log), json.dumps(job)]
                print("a fresh interpreter", file=sys.stderr, flush=True)
                os.execv(sys.executable, words)
            work(self.folder, self.tasks, log, job)

        return Process(fork(target, log), log, job)

    def end(self, process: Process, kill: float) -> list[dict[str, Any]]:
        """Wait for a process, kill it at a moment, check what it says; its log."""
        limit = time.monotonic() + PATIENCE
        self.count["kills"] += kill < math.inf
        status = wait(process.pid, min(kill, limit))
        entries = process.entries()
        if kill < math.inf and status == signal.SIGKILL:
            self.count["kills that struck"] += 1
            return entries
        if status == signal.SIGKILL:
            self.wrong("hung runs", 1, process.job)
        elif status or not entries or "scores" not in entries[-1]:
            self.wrong("failed runs", 1, f"{process.job}, status {status}: {process.errors()}")
        else:
            self.judge(process.job, entries[-1])
        return entries

    def judge(self, job: Job, outcome: dict[str, Any]) -> None:
        """Compare the scores of a run that has ended."""
        self.wrong("failed runs", bool(outcome["failures"]), f"{job}: {outcome['failures']}")
        if job.home == "shared" and not outcome["failures"] and job.kind in ("evaluate", "rescore"):
            self.count["scores compared"] += len(outcome["scores"])
            self.compare(job.revision, outcome["scores"])
            if len(outcome["scores"]) != len(self.tasks):
                self.wrong("failed runs", 1, f"{job}: only {list(outcome['scores'])}")

    def compare(self, revision: str, scored: dict[str, Any]) -> None:
        unlike = [task for task, numbers in scored.items() if numbers != self.reference[revision][task]]
        self.wrong("wrong scores", len(unlike), f"model {revision}, {unlike}")

    # ── looking and damaging ─────────────────────────────────────────────────────────────────────────────────────────

    def look(self, spaces: Iterable[str], results: str = "") -> None:
        """Check in a fresh process that committed vectors are there and sound, on request the results on disk, too."""
        for space, present in self.sound(self.settings.store, spaces).items():
            self.wrong("lost commits", len(self.expected[space] - present), space)
            self.expected[space] = present  # with those whose commit returned and was not logged before the kill
        if results:
            loaded = self.ask(lambda: self.load(list(self.models)))
            for revision, scored in loaded.items():
                self.count["stored results compared"] += len(scored)
                self.compare(revision, scored)

    def load(self, models: Sequence[str]) -> dict[str, Any]:
        """The results on disk, of models."""
        folder = Results(self.settings.results)
        by_model = {}
        for revision in models:
            results = [folder.load("soak/random", revision, task.name) for task in self.tasks]
            by_model[revision] = scores(result for result in results if result is not None)
        return by_model

    def sound(self, root: Path, spaces: Iterable[str]) -> dict[str, set[str]]:
        """By space, the keys that a store holds, all checked."""
        keys = {space: sorted(self.known[space]) for space in spaces}

        def check() -> dict[str, list[str]]:
            present = {}
            for name, known in keys.items():
                space = Store(root).space(name)
                array = as_keys([bytes.fromhex(key) for key in known])
                space.discard(array)
                present[name] = [key for key, here in zip(known, space.has(array), strict=True) if here]
            return present

        return {space: set(present) for space, present in self.ask(check).items()}

    def ask(self, question: Callable[[], Any]) -> Any:
        """What a function returns in a process of its own, which knows nothing of earlier ones."""
        log = self.folder / "answer"
        log.unlink(missing_ok=True)
        status = wait(fork(lambda: log.write_text(json.dumps(question())) and None, log), time.monotonic() + PATIENCE)
        if status:
            errors = log.with_suffix(".err").read_text()
            self.wrong("failed runs", 1, f"a look at the home, status {status}: {errors}")
            return {}
        return json.loads(log.read_text())

    def damage(self) -> None:
        """Damage a few files; only vectors that lie in them may be gone after that."""
        shared = self.folder / "shared"
        files = [path for path in (*self.settings.store.rglob("*"), *shared.glob("results/**/*")) if path.is_file()]
        active = {*self.models, *(self.spaces[revision] for revision in self.models)}
        if not files:  # all that ran so far was killed at once
            return
        recent = [path for path in files if path.parent.name in active]
        copies = self.folder / "copies"
        for _ in range(self.random.randint(1, 3)):
            path = self.random.choice(recent if recent and self.random.random() < 0.9 else files)
            if path.suffix == ".vectors":
                copy = copies / path.parent.name / path.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy) if not copy.exists() else None
            self.count["damaged files"] += 1
            self.count["damaged bytes"] += harm(path, self.random)
        if copies.exists():
            spaces = [entry.name for entry in copies.iterdir()]
            inside = self.sound(copies, spaces)
            for space, present in self.sound(self.settings.store, spaces).items():
                gone = self.expected[space] - present
                self.count["vectors lost to damage"] += len(gone)
                self.wrong("losses beyond damage", len(gone - inside[space]), space)
                self.expected[space] = present
            shutil.rmtree(copies)


def harm(path: Path, dice: random.Random) -> int:
    """Damage a file in place; the number of bytes that are others now, or gone."""
    state = path.stat()
    whole = path.read_bytes()
    content = bytearray(whole)
    start = dice.randrange(len(content) + 1)
    length = min(len(content) - start, dice.choice([1, 1, 2, 8, 64, 512]))
    kind = dice.choice(["flip", "zero", "noise", "cut"])
    if kind == "cut":
        del content[start:]
    elif kind == "zero":
        content[start : start + length] = bytes(length)
    elif kind == "noise":
        content[start : start + length] = dice.randbytes(length)
    else:
        for position in range(start, start + length):
            content[position] ^= 1 << dice.randrange(8)
    with path.open("r+b") as file:
        file.write(content)
        file.truncate(len(content))
    if dice.random() < 0.5:  # as a disk damages: nobody has written
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return len(whole) - len(content) + sum(a != b for a, b in zip(whole, content, strict=False))


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Process(NamedTuple):
    """A process that works."""

    pid: int
    log: Path
    job: Job

    def entries(self) -> list[dict[str, Any]]:
        """What it has logged; a line that the kill cut does not count."""
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def errors(self) -> str:
        """What it wrote to stderr."""
        return self.log.with_suffix(".err").read_text()


def fork(target: Callable[[], None], log: Path) -> int:
    """Run a function in a child, with its output in a file beside the log; the child's process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        errors = os.open(log.with_suffix(".err"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        faulthandler.enable()  # where it was, if a signal ends it
        target()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def wait(pid: int, limit: float) -> int:
    """The status of a child that ends, or is killed at a moment; a signal's number if one ended it."""
    pause = 0.001
    while time.monotonic() < limit:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else os.WTERMSIG(status)
        time.sleep(min(pause, max(0.0, limit - time.monotonic())))
        pause = min(0.02, pause * 1.5)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else os.WTERMSIG(status)


if __name__ == "__main__":
    main()
