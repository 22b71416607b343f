"""What tests share: a place of their own, a tiny model, a tiny folder of pictures and vectors of pocket tasks."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer.testing
from huggingface_hub import constants
from hypothesis import HealthCheck, settings
from PIL import Image

import buckets
import embark
from embark import http
from embark.models.half_precision import secure
from embark.settings import cores, load_settings
from embark.store import Space, Store
from embark.tasks import get_benchmark
from embark.types import Array
from hub import FakeHub

typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]  # 60 ms a call
settings.register_profile(
    "embark",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize="CI" in os.environ,  # CI repeats the same examples; everybody else tries new ones
)
settings.load_profile("embark")

COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
TABLE = "file,caption,label\nred.png,a red page,red\ngreen.png,a green page,green\nblue.png,a blue page,blue\n"
POCKET_TASKS = [
    *get_benchmark("Pocket(lite)").tasks, "PocketMotionProbe", "PocketNameToImage", "PocketRobustness",
    "PocketSubgroupZeroShot",
]  # fmt: skip


def pytest_configure() -> None:
    """A shell starts what runs in the background without Ctrl-C; tests send it to processes of theirs."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A process a core; two more for quick tests, which wait for disks and processes. Slow ones have time limits."""
    return cores() + 2 * ("not slow" in config.option.markexpr)


def pytest_collection_finish() -> None:
    """Garbage is collected rarely: looking at the million objects of libraries was a twentieth of the tests' time."""
    gc.set_threshold(50_000, 20, 100)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With EMBARK_NO_SKIPS, as in CI, a test that was skipped is a failure: what it needs is missing."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("EMBARK_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the skipped tests where they are failures."""
    skipped = terminalreporter.stats.get("skipped", [])
    if os.environ.get("EMBARK_NO_SKIPS") and skipped:
        terminalreporter.section("skipped tests are failures (EMBARK_NO_SKIPS)", red=True)
        for report in skipped:
            terminalreporter.line(f"{report.nodeid}: {report.longrepr[2]}")


@pytest.fixture(scope="session", autouse=True)
def half_precision(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests may run half precision on torch before our code does: a CPU that traps it is known by then."""
    if "torch" in sys.modules:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
            secure("bfloat16", "cpu")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test writes to the user's folders, or depends on the user's settings."""
    root = tmp_path_factory.mktemp("elsewhere")
    (root / "here").mkdir()
    monkeypatch.chdir(root / "here")
    monkeypatch.delenv("COLUMNS", raising=False)  # which xdist sets, and tables would be fitted to
    for name, folder in (("EMBARK_HOME", "home"), ("EMBARK_RESULTS", "results"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(name, str(root / folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "cache"))
    monkeypatch.setenv("HF_HOME", str(root / "huggingface"))  # for children; here it was read long ago
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(root / "huggingface" / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(root / "huggingface" / "token"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)  # it would ask the real hub for something
    for name in (
        "EMBARK_WORKERS",
        "EMBARK_MEMORY",
        "EMBARK_ENDPOINT",
        "EMBARK_OFFLINE",
        "EMBARK_STORE",
        "EMBARK_ENGINE",
        "EMBARK_ADDRESS",
        "HF_ENDPOINT",
        "HF_HUB_OFFLINE",
        "HF_TOKEN",
        "EMBARK_ARK_LABELS",
    ):
        monkeypatch.delenv(name, raising=False)
    return root


def words(texts: list[str]) -> Array:
    """How often each colour is named."""
    return np.array([[0.01 + text.count(colour) for colour in COLORS] for text in texts], np.float32)


def pixels(images: list[Image.Image]) -> Array:
    """The mean colour."""
    return np.stack([0.01 + np.asarray(image.convert("RGB"), np.float32).mean((0, 1)) for image in images])


@pytest.fixture
def tiny() -> embark.Encoder:
    """A model that knows three colours, in words and in pictures."""
    return embark.encoder(text=words, image=pixels, name="test/tiny", revision="1")


@pytest.fixture
def reader_of_colours() -> embark.Encoder:
    """The half of it that reads and cannot see."""
    return embark.encoder(text=words, name="test/reader", revision="1")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub of datasets on this machine, which the settings point to; failed requests are tried again at once."""
    served = FakeHub()
    monkeypatch.setenv("EMBARK_ENDPOINT", served.endpoint)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setattr(http, "PAUSE", 0.0)
    for module in ("huggingface_hub.file_download", "huggingface_hub.utils._http"):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(sleep=lambda seconds: None, time=time.time))
    yield served
    served.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder of three plain pictures with a table."""

    def make(name: str = "Pages", table: str = TABLE) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for colour, rgb in COLORS.items():
            Image.new("RGB", (4, 4), rgb).save(folder / f"{colour}.png")
        (folder / "metadata.csv").write_text(table)
        return folder

    return make


@pytest.fixture(scope="session")
def pocket_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with embark/random's vectors and results of POCKET_TASKS, made once for all processes. Copy it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home = base / "pocket-vectors"
    with (base / "pocket-vectors.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            here = load_settings(home, home / "results")
            embark.evaluate("embark/random", POCKET_TASKS, settings=here, show_progress=False)
            (home / "complete").touch()
    return home


@pytest.fixture
def pocket_home(pocket_vectors: Path, elsewhere: Path) -> Path:
    """EMBARK_HOME with a copy of these vectors; no results in EMBARK_RESULTS."""
    return shutil.copytree(pocket_vectors, elsewhere / "home")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store in a bucket of an S3 server on this machine; failed requests are tried again at once."""
    buckets.use_server(monkeypatch, buckets.server())
    monkeypatch.setattr(http, "PAUSE", 0.0)
    return buckets.new_store(tmp_path / "mirror")


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    """An empty store: a folder, or a bucket where a module's tests run on both."""
    bucket = getattr(request, "param", "folder") == "bucket"
    return request.getfixturevalue("bucket") if bucket else Store(tmp_path / "store")


@pytest.fixture
def space(store: Store) -> Space:
    """An empty space of a store."""
    return store.space("5face")
