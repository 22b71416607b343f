"""What strangers get: wheel and source archive, citation, workflows, templates, image."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
import yaml

import embark
from embark.evaluators import EVALUATORS
from embark.types import MODALITIES

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
RELEASE = Path(sys.prefix) / "release" / "bin"  # what builds and lists a release
BINARY = {".bin", ".npz", ".parquet", ".safetensors", ".webp"}  # files of the repository that are no text
PYTHONS = ["3.11", "3.12", "3.13"]
CORE = {re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["dependencies"]}  # type: ignore[index]


def load(path: str) -> dict[str, Any]:
    """A YAML file of the repository; `on` of workflows reads as True."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    return loaded


def test_the_pythons_are_the_same_everywhere() -> None:
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert classifiers == PYTHONS
    assert load(".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_version_is_written_once_and_the_citation_has_it() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    citation = load("CITATION.cff")
    assert citation["version"] == embark.__version__
    assert (citation["license"], citation["keywords"]) == (PROJECT["license"], PROJECT["keywords"])
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    assert f"\n## {embark.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_hooks_of_pre_commit_run_what_make_runs() -> None:
    """Each hook is a program of .venv that the Makefile calls; no other repository is fetched."""
    [repository] = load(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    commands = [hook["entry"].replace(".venv/bin", "$(BIN)").split(" --")[0] for hook in repository["hooks"]]
    assert commands == ["$(BIN)/ruff check", "$(BIN)/ruff format", "$(BIN)/mypy"]
    assert [command for command in commands if f"\t{command}" not in MAKEFILE] == []


# Commands and advice that mean `embark` of the public index.
INSTALLS = r"(?:pip3?|pipx|conda) (?:install|download|wheel|run)|uvx|(?:uv|poetry|pdm) (?:add|tool install)"
STRANGERS = re.compile(
    rf"""(?:{INSTALLS})\b(?:\\\n|[^\n`#;&|])*?[\s'"]embark(?![\w-])(?!/)"""
    r"""|\bembark\\?\[[a-z\d_,-]+\\?\]|['"\s]embark ?[=~><]=? ?\d|\bpip['"]?: ?\[[^]]*['"]embark['"]"""
)


@pytest.mark.parametrize(
    ("line", "strange"),
    [
        ("pip install embark", True),
        ("pip install -U 'embark[torch]'", True),
        ("needs `embark[onnx]`", True),
        ("RUN pip install --no-cache-dir \\\n    embark", True),
        ("uv add embark", True),
        ("pip download embark", True),
        ('dependencies = ["embark>=0.1"]', True),
        ('runtime_env={"pip": ["torch", "embark"]}', True),
        (r'match=r"embark\[maps\]"', True),
        ("pip install 'embark-bench[torch]'", False),
        ("pip install embark_bench-0.1.0-py3-none-any.whl", False),
        ('assert embark["items"]', False),
        ("pip install --editable . && embark run", False),
        ('versions = {"embark": "0.1.0"}', False),
    ],
)
def test_a_command_that_installs_another_project_is_recognized(line: str, strange: bool) -> None:
    assert bool(STRANGERS.search(line)) is strange


def test_nothing_installs_the_package_of_that_name_on_the_public_index() -> None:
    """`embark` there is another project's; ours is `embark-bench`."""
    assert PROJECT["name"] == "embark-bench"
    listed = run("git", "-C", ROOT, "ls-files").split() if (ROOT / ".git").exists() else []
    paths = [ROOT / name for name in listed if name != "tests/test_packaging.py" and Path(name).suffix not in BINARY]
    strange = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in paths
        if path.is_file() and (found := STRANGERS.search(path.read_text(encoding="utf-8")))
    ]
    assert strange == []


def test_a_tag_is_the_version() -> None:
    """A source archive has no tags, nor have most checkouts: then there is nothing to agree with."""
    git = ["git", "-C", str(ROOT), "tag", "--points-at", "HEAD", "--list", "v*"]
    listed = subprocess.run(git, capture_output=True, text=True, check=False, timeout=60)
    assert set(listed.stdout.split()) <= {f"v{embark.__version__}"}


@pytest.mark.parametrize("name", ["ci", "release"])
def test_workflows_call_targets_that_exist(name: str) -> None:
    jobs = load(f".github/workflows/{name}.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = [target for command in commands if command.startswith("make ") for target in command.split()[1:]]
    assert targets
    assert [target for target in targets if f"\n{target}:" not in MAKEFILE] == []


def test_the_workflow_runs_what_ci_runs() -> None:
    jobs = load(".github/workflows/ci.yml")["jobs"]
    commands = {step.get("run") for job in jobs.values() for step in job["steps"]}
    targets = re.findall(r"^make .+$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), flags=re.M)
    assert {"make lint types", "make docs", "make wheel sbom", *targets} <= commands


def form(name: str) -> dict[str, dict[str, Any]]:
    """The fields of an issue form, by their ids."""
    return {field["id"]: field for field in load(f".github/ISSUE_TEMPLATE/{name}.yml")["body"] if "id" in field}


def required(row: type) -> set[str]:
    """The fields that a row cannot do without."""
    return {field.name for field in fields(row) if field.default is MISSING and field.default_factory is MISSING}


def test_the_model_form_has_the_fields_of_a_card() -> None:
    asked = form("new-model")
    assert set(asked) - {field.name for field in fields(embark.ModelCard)} == {"doctor"}
    assert required(embark.ModelCard) <= set(asked)
    assert [option["label"] for option in asked["modalities"]["attributes"]["options"]] == list(MODALITIES)


def test_the_task_form_has_the_fields_of_a_row() -> None:
    asked = form("new-task")
    known = {field.name for field in fields(embark.Task)} | {f"source_{field.name}" for field in fields(embark.Source)}
    assert set(asked) <= known
    assert required(embark.Task) - {"source"} <= set(asked)
    assert {f"source_{name}" for name in required(embark.Source)} <= set(asked)
    assert asked["evaluator"]["attributes"]["options"] == list(EVALUATORS)


def test_forms_follow_the_rules_of_their_kind() -> None:
    kinds = {"markdown", "input", "textarea", "dropdown", "checkboxes"}
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        template = load(str(path.relative_to(ROOT)))
        assert {"name", "description", "body"} <= set(template)
        assert {field["type"] for field in template["body"]} <= kinds
        assert all(re.fullmatch(r"[\w-]+", field["id"]) for field in template["body"] if "id" in field)
        assert all("label" in field["attributes"] for field in template["body"] if field["type"] != "markdown")


def test_the_image_is_built_of_files_that_are_there() -> None:
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), flags=re.M)
    assert [name for name in allowed if not (ROOT / name).exists()] == []
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    stages = set(re.findall(r"^FROM .+ AS (\w+)$", dockerfile, flags=re.M))
    assert stages == {"wheel", "cpu", "cuda"}
    named = re.findall(r"\.whl\)\[([\w,]+)\]", dockerfile)
    assert named
    assert {extra for names in named for extra in names.split(",")} <= set(PROJECT["optional-dependencies"])


# ── built, installed and run ─────────────────────────────────────────────────────────────────────────────────────────


def run(*command: str | Path, **environment: str) -> str:
    """The output of a command, without this checkout on its path; an error if it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONWARNINGS")}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=kept | environment,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of this tree, and the wheel that is built of the archive."""
    if not RELEASE.exists():
        pytest.skip("make wheel has not installed what builds it")
    folder = tmp_path_factory.mktemp("dist")
    run(RELEASE / "python", "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.mark.slow
def test_wheel_and_archive_hold_the_package_and_no_more(dist: Path) -> None:
    listed = run("git", "-C", ROOT, "ls-files", "src/embark") if (ROOT / ".git").exists() else ""
    package = {name.removeprefix("src/") for name in listed.split("\n") if name}
    [wheel] = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        [metadata] = [name for name in archive.namelist() if name.endswith("METADATA")]
        about = archive.read(metadata).decode()
    assert "embark/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"embark"}
    assert not [name for name in names if "__pycache__" in name]
    assert not package or package <= names
    assert f"\nVersion: {embark.__version__}\n" in about
    [source] = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        files = {name.split("/", 1)[1] for name in archive.getnames()}
    rest = {name for name in files if not name.startswith("src/embark/")}
    about_it = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert rest == about_it
    assert {name.removeprefix("src/") for name in files - rest} == names
    assert max(wheel.stat().st_size, source.stat().st_size) < 20 << 20


@pytest.mark.slow
def test_a_bare_install_runs(dist: Path, tmp_path: Path) -> None:
    """The wheel with what it requires, and nothing else."""
    venv.create(tmp_path / "bare")
    python = tmp_path / "bare" / "bin" / "python"
    [wheel] = dist.glob("*.whl")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", wheel)
    places = {"EMBARK_HOME": str(tmp_path / "home"), "EMBARK_RESULTS": str(tmp_path / "results")}
    command = tmp_path / "bare" / "bin" / "embark"
    assert run(command, "--version", **places) == f"embark {embark.__version__}\n"
    tasks = ("-t", "PocketFlagZeroShot", "-t", "PocketSpokenGroupProbe")
    table = run(command, "run", "-m", "embark/pocket", *tasks, **places)
    assert re.search(r"PocketFlagZeroShot +accuracy +0\.4 +95\.0 \[91\.2, 97\.2\]", table)
    assert re.search(r"PocketSpokenGroupProbe +accuracy ", table)
    assert "failed" not in table
    names = "from importlib.metadata import distributions; print(*(each.name for each in distributions()))"
    installed = run(python, "-c", names).lower().replace("_", "-").split()
    assert set(installed) >= CORE
    assert "torch" not in installed
    bill = json.loads(run(RELEASE / "cyclonedx-py", "environment", "--output-file", "-", python))
    parts = {part["name"].lower().replace("_", "-"): part["version"] for part in bill["components"]}
    assert set(parts) == set(installed)
    assert parts["embark-bench"] == embark.__version__
